#!/usr/bin/env python3
"""Writes broken/: models that are refused, and a few that goldens.txt prints."""
import json
import os

from coremltools.proto import Model_pb2

HERE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "broken")


def model(version=4, kind="neuralNetwork", inputs=(("x", [4]),), outputs=("y",)):
    m = Model_pb2.Model()
    m.specificationVersion = version
    for name, shape in inputs:
        f = m.description.input.add()
        f.name = name
        f.type.multiArrayType.shape.extend(shape)
        f.type.multiArrayType.dataType = 65568
    for name in outputs:
        f = m.description.output.add()
        f.name = name
        f.type.multiArrayType.dataType = 65568
    n = getattr(m, kind)
    n.SetInParent()
    if kind.startswith("neural"):
        n.arrayInputShapeMapping = 1
    return m, n


def layer(n, kind, name, inputs, outputs):
    l = n.layers.add()
    l.name = name
    l.input.extend(inputs)
    l.output.extend(outputs)
    p = getattr(l, kind)
    p.SetInParent()
    return p


def save(name, m):
    with open(os.path.join(HERE, name), "wb") as f:
        f.write(m if isinstance(m, bytes) else m.SerializeToString(deterministic=True))


def dense(n, cells=8, name="dense", x="x"):
    p = layer(n, "innerProduct", name, [x], ["y"])
    p.inputChannels, p.outputChannels = 4, 2
    p.weights.floatValue.extend([0.5] * cells)
    return p


def program(version=7):
    m, p = model(version, "mlProgram")
    p.version = 1
    f = p.functions["main"]
    f.opset = "CoreML7"
    tensor(f.inputs.add(), "x", 4)
    b = f.block_specializations["CoreML7"]
    b.outputs.append("y")
    return m, b


def tensor(named, name, *dims, kind=11):
    named.name = name
    named.type.tensorType.dataType = kind
    named.type.tensorType.rank = len(dims)
    for d in dims:
        named.type.tensorType.dimensions.add().constant.size = d


def operation(b, kind, out, *dims, **inputs):
    o = b.operations.add()
    o.type = kind
    for k, v in inputs.items():
        o.inputs[k].arguments.add().name = v
    tensor(o.outputs.add(), out, *dims)
    return o


def main():
    os.makedirs(HERE, exist_ok=True)
    m, n = model(99)
    layer(n, "activation", "relu", ["x"], ["y"]).ReLU.SetInParent()
    save("bad_version.mlmodel", m)
    save("bad_kind.mlmodel", model(kind="treeEnsembleClassifier")[0])
    m, n = model()
    layer(n, "custom", "mine", ["x"], ["a"])
    layer(n, "custom", "other", ["a"], ["b"])
    layer(n, "branch", "either", ["b"], ["y"])
    save("bad_layers.mlmodel", m)
    m, n = model()
    dense(n, 7)
    save("bad_weights.mlmodel", m)
    m, n = model()
    dense(n, x="z")
    save("bad_order.mlmodel", m)
    # Loops: left where there is none, of values that grow, without an end; a name that one branch gives.
    m, n = model()
    layer(n, "loopBreak", "leave", [], [])
    save("bad_leave.mlmodel", m)
    m, n = model()
    p = layer(n, "loop", "grow", [], [])
    p.maxLoopIterations = 3
    layer(p.bodyNetwork, "concatND", "more", ["x", "x"], ["x"])
    save("bad_growth.mlmodel", m)
    m, n = model()
    p = layer(n, "loop", "forever", [], [])
    p.conditionVar = "go"
    layer(p.conditionNetwork, "rangeStatic", "always", [], ["go"]).endValue = 1
    p.conditionNetwork.layers[0].rangeStatic.startValue = 0.5
    p.conditionNetwork.layers[0].rangeStatic.stepSizeValue = 1
    layer(p.bodyNetwork, "activation", "relu", ["x"], ["x"]).ReLU.SetInParent()
    save("bad_forever.mlmodel", m)
    m, n = model(inputs=(("x", [4]), ("c", [1])))
    p = layer(n, "branch", "either", ["c"], [])
    layer(p.ifBranch, "copy", "one", ["x"], ["z"])
    layer(n, "copy", "use", ["z"], ["y"])
    save("bad_branch.mlmodel", m)
    m, n = model()
    data = dense(n)
    data.MergeFromString(b"\xe8\x05\x01")  # field 93
    save("bad_field.mlmodel", m)
    m, n = model()
    p = layer(n, "unary", "root", ["x"], ["y"])
    p.type = 42
    save("bad_mode.mlmodel", m)
    m, n = model(outputs=("y", "z"))
    dense(n)
    save("bad_output.mlmodel", m)
    save("bad_truncated.mlmodel", m.SerializeToString(deterministic=True)[:-5])
    m, n = model()
    dense(n).weights.quantization.numberOfBits = 9
    del n.layers[0].innerProduct.weights.floatValue[:]
    n.layers[0].innerProduct.weights.rawValue = b"1234"
    save("bad_bits.mlmodel", m)
    m, b = program()
    operation(b, "fft", "a", 4, x="x")
    operation(b, "relu", "y", 4, x="a", slope="a")
    save("bad_operators.mlmodel", m)
    m, b = program()
    operation(b, "softmax", "y", 4, x="x", axes="x")
    save("bad_input.mlmodel", m)
    m, b = program()
    operation(b, "relu", "y", 5, x="x")
    save("bad_declared.mlmodel", m)
    m, b = program()
    o = operation(b, "const", "c", 4)
    v = o.attributes["val"]
    tensor_value = o.outputs[0].type
    v.type.CopyFrom(tensor_value)
    v.blobFileValue.fileName = "@model_path/../weight.bin"
    operation(b, "add", "y", 4, x="x", y="c")
    save("bad_blob.mlmodel", m)
    os.makedirs(os.path.join(HERE, "bad_manifest.mlpackage"), exist_ok=True)
    with open(os.path.join(HERE, "bad_manifest.mlpackage", "Manifest.json"), "w", encoding="utf-8") as f:
        json.dump({"fileFormatVersion": "1.0.0", "itemInfoEntries": {"1": {"path": "../../bad_kind.mlmodel"}}, "rootModelIdentifier": "1"}, f)
    # Sizes that may differ.
    m, n = model(inputs=(("x", [1, 3, 8, 8]),))
    t = m.description.input[0].type.multiArrayType
    for lo, hi in ((1, 4), (3, 3), (4, 64), (4, -1)):
        r = t.shapeRange.sizeRanges.add()
        r.lowerBound, r.upperBound = lo, hi
    layer(n, "activation", "relu", ["x"], ["y"]).ReLU.SetInParent()
    save("ok_range.mlmodel", m)
    # More dimensions in the ranges than there may be.
    m, n = model(inputs=(("x", [2]),))
    for _ in range(40):
        r = m.description.input[0].type.multiArrayType.shapeRange.sizeRanges.add()
        r.lowerBound, r.upperBound = 1, 2
    layer(n, "activation", "relu", ["x"], ["y"]).ReLU.SetInParent()
    save("bad_range.mlmodel", m)
    m, n = model()
    layer(n, "activation", "relu", ["x"], ["y"]).ReLU.SetInParent()
    n.preprocessing.add(featureName="image").scaler.channelScale = 2
    save("bad_preprocessing.mlmodel", m)
    m, n = model(inputs=(("x", [2, 3]),))
    for shape in ([2, 3], [2, 6], [2, 9]):
        m.description.input[0].type.multiArrayType.enumeratedShapes.shapes.add().shape.extend(shape)
    layer(n, "activation", "relu", ["x"], ["y"]).ReLU.SetInParent()
    save("ok_listed.mlmodel", m)
    # Layers of five dimensions stand one behind the other.
    m, n = model(3, inputs=(("x", [2, 4, 4]),))
    n.arrayInputShapeMapping = 0
    for i in range(2):
        p = layer(n, "convolution", f"conv{i}", ["x" if i == 0 else "b0"], [f"a{i}"])
        p.outputChannels, p.kernelChannels, p.nGroups = 2, 2, 1
        p.kernelSize.extend([1, 1])
        p.valid.paddingAmounts.borderAmounts.add()
        p.valid.paddingAmounts.borderAmounts.add()
        p.weights.floatValue.extend([1, 2, 3, 4])
        layer(n, "activation", f"relu{i}", [f"a{i}"], ["b0" if i == 0 else "y"]).ReLU.SetInParent()
    save("ok_images.mlmodel", m)


main()
