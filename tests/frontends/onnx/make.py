#!/usr/bin/env python3
"""Writes the small models of these tests: make.py (needs onnx, numpy, onnxruntime).

models/bad_*.onnx   what must be refused, and how it is said (goldens.txt)
models/strict_*.onnx what nodes may not have, and declarations that contradict; most can be let pass by name
models/dim_*.onnx    dimensions without a value, by all names
models/ok_*.onnx    what imports to the text in goldens.txt
models/run_*.onnx   with run_*.npz: arrays in.NAME (random) and out.NAME (ONNX Runtime's results); those of
                    operators of later opsets and other domains are written by make_ops.py

The models are the seeds of tests/fuzz/fuzz_onnx.c too.  All is committed; tests need no Python.
"""
import os

import numpy as np
import onnx
from onnx import TensorProto as T, helper as h, numpy_helper as nh

HERE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "models")
SEEDS = os.path.join(HERE, "../../../fuzz/corpus/onnx")
F, I, B = T.FLOAT, T.INT64, T.BOOL


def node(op, ins, outs, name=None, **attrs):
    ins, outs = ins.split(), outs.split()
    return h.make_node(op, ["" if i == "_" else i for i in ins], outs, name=name or outs[0], **attrs)


def value(name, t, shape):
    return h.make_tensor_value_info(name, t, shape)


def init(name, array):
    return nh.from_array(np.asarray(array), name)


def model(nodes, ins, outs, inits=(), opset=17, domains=(), functions=()):
    graph = h.make_graph(nodes, "g", ins, outs, list(inits))
    imports = [h.make_opsetid("", opset)] + [h.make_opsetid(d, 1) for d in domains]
    return h.make_model(graph, opset_imports=imports, ir_version=8, functions=list(functions))


def save(name, m):
    data = m if isinstance(m, bytes) else m.SerializeToString()
    assert len(data) < 2048, (name, len(data))
    with open(os.path.join(HERE, name + ".onnx"), "wb") as f:
        f.write(data)
    if not name.startswith("run_lstm"):  # slow for a fuzzer
        with open(os.path.join(SEEDS, name), "wb") as f:
            f.write(data)


# ---- refused -----------------------------------------------------------------------------------

def bad():
    x, y = value("x", F, [2, 3]), value("y", F, None)
    one = lambda *nodes, ins=[x], inits=(), **k: model(list(nodes), ins, [y], inits, **k)

    save("bad_operators", model(
        [node("Frobnicate", "x", "a"), node("Celu", "a", "b"), node("Frobnicate", "b", "c", "second"),
         node("Relu", "c", "d"), node("Fancy", "d", "e", domain="org.example"), node("Unique", "e", "y")],
        [x], [y], opset=11, domains=["org.example"]))
    save("bad_decoder", model([node("ImageDecoder", "x", "y")], [value("x", T.UINT8, ["n"])], [value("y", T.UINT8, [4, 4, 3])], opset=20))
    save("bad_dim", one(node("Relu", "x", "y"), ins=[value("x", F, [1, "T", 3])]))
    save("bad_rank", one(node("Relu", "x", "y"), ins=[value("x", F, None)]))
    save("bad_order", one(node("Relu", "a", "y"), node("Abs", "x", "a")))
    save("bad_cycle", one(node("Add", "x b", "a"), node("Relu", "a", "b"), node("Abs", "b", "y")))
    save("bad_name", one(node("Relu", "nowhere", "y")))
    save("bad_twice", one(node("Relu", "x", "y"), node("Abs", "x", "y")))
    save("bad_broadcast", one(node("Add", "x w", "y"), inits=[init("w", np.zeros((2, 4), np.float32))]))
    save("bad_matmul", one(node("MatMul", "x w", "y"), inits=[init("w", np.zeros((4, 2), np.float32))]))
    image = [value("x", F, [1, 6, 8, 8])]
    save("bad_group", one(node("Conv", "x w", "y", "Conv_12", group=4), ins=image,
                          inits=[init("w", np.zeros((8, 2, 1, 1), np.float32))]))
    save("bad_channels", one(node("Conv", "x w", "y", "stem/conv"), ins=image,
                             inits=[init("w", np.zeros((8, 3, 1, 1), np.float32))]))
    save("bad_pads", one(node("Conv", "x w", "y", pads=[1, 1]), ins=image,
                         inits=[init("w", np.zeros((8, 6, 1, 1), np.float32))]))
    save("bad_axis", one(node("Softmax", "x", "y", axis=5)))
    save("bad_reshape", one(node("Reshape", "x s", "y"), inits=[init("s", np.array([4, -1], np.int64))]))
    save("dim_shape_input", one(node("Reshape", "x s", "y"), ins=[x, value("s", I, [2])]))
    save("bad_index", one(node("Gather", "x i", "y"), inits=[init("i", np.array([0, 2], np.int64))]))
    save("bad_huge", one(node("Expand", "x s", "y"),
                         inits=[init("s", np.array([1 << 40, 1 << 20, 2, 3], np.int64))]))
    save("bad_string", one(node("Relu", "x", "y"), ins=[value("x", T.STRING, [1])]))
    save("bad_output", model([node("Relu", "x", "a")], [x], [y]))
    save("bad_no_output", model([node("Relu", "x", "a")], [x], []))
    save("bad_output_twice", model([node("Relu", "x", "y")], [x], [y, y]))
    save("bad_input_twice", one(node("Relu", "x", "y"), ins=[x, value("x", F, [3])]))
    save("bad_attribute", one(node("Softmax", "x", "y", axis=1.0)))
    refers = node("Softmax", "x", "y", axis=1)
    refers.attribute[0].ref_attr_name = "axis"
    save("bad_reference", one(refers))
    save("bad_mask", one(node("BatchNormalization", "x s s s s", "y i"), ins=image,
                         inits=[init("s", np.ones(6, np.float32))], opset=8))
    save("bad_pool_indices", one(node("MaxPool", "x", "y i", kernel_shape=[2, 3]), ins=[value("x", F, [1, 2, (1 << 32) - 1, 6])]))
    w = init("w", np.zeros(6, np.float32))
    w.raw_data = w.raw_data[:-3]
    save("bad_data", one(node("Add", "x w", "y"), inits=[w]))
    for name, place in (("parent", "../secret.bin"), ("absolute", "/etc/passwd"), ("inside", "a/../../b"),
                        ("missing", "missing.bin")):
        save("bad_external_" + name, one(node("Add", "x w", "y"), inits=[external("w", [2, 3], place)]))
    save("bad_external_length", one(node("Add", "x w", "y"),
                                    inits=[external("w", [2, 3], "weights.bin", 12, 24)]))
    for name, place in (("offset", (33, None)), ("number", ("1e3", None)), ("negative", (-4, 24)), ("end", (12, None)),
                        ("size", (0, 20)), ("huge", (4, 1 << 64)), ("wraps", ((1 << 64) - 4, 24))):
        save("bad_external_" + name, one(node("Add", "x w", "y"), inits=[external("w", [2, 3], "weights.bin", *place)]))
    def loop(*nodes, gives="v2"):
        return h.make_graph(nodes, "body", [value("i", I, []), value("c", B, []), value("v", F, None)],
                            [value("c2", B, None)] + [value(v, F, None) for v in gives.split()])
    n, same = value("n", I, []), node("Identity", "c", "c2")
    grow = loop(same, node("Concat", "v v", "v2", axis=0))
    save("bad_loop", one(node("Loop", "n _ x", "y", body=grow), ins=[x, n]))
    save("bad_loop_endless", one(node("Loop", "_ _ x", "y", body=loop(same, node("Add", "v v", "v2")))))
    save("dim_loop_pieces", one(node("Loop", "n _ x", "y z", body=loop(same, node("Add", "v v", "v2"), gives="v2 v2")),
                                ins=[x, n]))
    save("bad_loop_condition", one(node("Loop", "n _ x", "y", body=loop(node("Less", "v v", "c2"), node("Add", "v v", "v2"))),
                                   ins=[x, n]))
    arm = lambda name, shape: h.make_graph(
        [node("Constant", "", name, value=init("k", np.zeros(shape, np.float32)))], name, [],
        [value(name, F, shape)])
    save("bad_branches", one(node("If", "c", "y", then_branch=arm("a", [1]), else_branch=arm("b", [1, 2])),
                             ins=[value("c", B, [])]))
    # Rates of a voice detector: windows of another length for each, of which one size fits one branch.
    rate = lambda w: h.make_graph([node("MatMul", "x " + w, w + "y")], w, [], [value(w + "y", F, None)])
    rates = dict(then_branch=rate("w16"), else_branch=rate("w8"))
    windows = [init("w16", np.ones((6, 2), np.float32)), init("w8", np.ones((3, 2), np.float32))]
    k16 = [init("k16", np.array(16000, np.int64))]
    equal, sr = node("Equal", "sr k16", "c"), value("sr", I, [])
    save("bad_branch_else", one(equal, node("If", "c", "y", "rates", **rates), ins=[value("x", F, [1, 6]), sr], inits=windows + k16))
    save("bad_branch_then", one(equal, node("If", "c", "y", "rates", **rates), ins=[value("x", F, [1, 3]), sr], inits=windows + k16))
    save("bad_branch_bool", one(node("If", "wide", "y", "rates", **rates), ins=[value("x", F, [1, 3]), value("wide", B, [])],
                                inits=windows))
    save("bad_branch_inputs", one(node("Equal", "sr rate", "c"), node("If", "c", "y", "rates", **rates),
                                  ins=[value("x", F, [1, 6]), sr, value("rate", I, [])], inits=windows))
    f = h.make_function("local", "Again", ["x"], ["y"], [h.make_node("Again", ["x"], ["y"], domain="local")],
                        [h.make_opsetid("local", 1)])
    save("bad_recursion", one(h.make_node("Again", ["x"], ["y"], "again", domain="local"),
                              domains=["local"], functions=[f]))
    for mode in ("edge", "reflect", "wrap"):  # of what is cut off
        save("bad_pad_" + mode, one(node("Pad", "x p", "y", mode=mode), opset=19,
                                    inits=[init("p", np.array([0, 1, 0, -3 + (mode == "reflect")], np.int64))]))
    whole = one(node("Relu", "x", "y")).SerializeToString()
    save("bad_truncated", whole[:-9])
    save("bad_bytes", b"\x08\x08\x3a\x05hello")
    deep = b""
    for _ in range(200):  # attribute { g { node { attribute { g ...
        deep = b"\x0a" + length(b"\x2a" + length(b"\x32" + length(deep)))
    save("bad_deep", b"\x08\x08\x3a" + length(deep) + b"\x42\x02\x10\x11")


# Reads and writes at indices that are inputs; tests/driver/indices.py gives them what lies outside.
def indices():
    n = 18
    for name, t in (("i32", T.INT32), ("i64", I)):
        x, rows, cells = value("x", F, [5, 3]), value("u", F, [n, 3]), value("u", F, [n])
        one = lambda op, i, *more, **attrs: model(
            [node(op, "x i" + " u" * len(more), "y", **attrs)], [x, value("i", t, i), *more], [value("y", F, None)])
        save(f"index_gather_{name}", one("Gather", [n]))
        save(f"index_gather_elements_{name}", one("GatherElements", [n, 3], axis=0))
        save(f"index_gather_nd_{name}", one("GatherND", [n, 1]))
        save(f"index_scatter_elements_{name}", one("ScatterElements", [n, 3], rows, axis=0, reduction="add"))
        save(f"index_scatter_nd_{name}", one("ScatterND", [n, 1], rows, reduction="add"))


# What the standard does not let nodes have, declarations that contradict, versions that are unknown.
def strict():
    x, y, y2 = value("x", F, [2, 3]), value("y", F, None), value("y", F, [2, 4])
    relu, two = node("Relu", "x", "y"), init("w", np.zeros((2, 3), np.float32))
    one = lambda *nodes, ins=[x], out=y, inits=(), **k: model(list(nodes), ins, [out], inits, **k)
    leaky = lambda ins="x", outs="y", name=None: node("LeakyRelu", ins, outs, name, alhpa=0.3)

    save("strict_attribute", one(leaky()))
    save("strict_attributes", one(leaky("x", "a"), leaky("a", "b"), node("Relu", "b", "c", axis=1), leaky("c", "d"),
                                  node("Flatten", "d", "y", _internal=1, __internal=1, dim=2)))
    save("strict_choice", one(node("DepthToSpace", "x", "y", blocksize=2, mode="CDR"), ins=[value("x", F, [1, 4, 2, 2])]))
    own = node("Softmax", "x", "y", axis=1)
    own.attribute.add(name="axis", i=0, type=onnx.AttributeProto.INT)
    save("strict_attribute_twice", one(own))
    save("strict_attribute_missing", one(node("Concat", "x x", "y")))
    fused = lambda gamma: node("FusedGemm", "x w", "y", domain="com.microsoft", **gamma)
    w = init("w", np.zeros((3, 2), np.float32))
    save("strict_unread", one(fused({"activation_gamma": 2.0}), inits=[w], domains=["com.microsoft"]))
    quant = lambda p: one(node("QuantizeLinear", "x s", "y", precision=p), opset=23,
                          inits=[init("s", np.float32(1))], out=value("y", T.UINT8, None))
    save("strict_unread_precision", quant(10))
    save("ok_unread_default", quant(0))
    body = [h.make_node("QuantizeLinear", ["x", "x_scale"], ["y"])]
    body[0].attribute.add(name="precision", ref_attr_name="precise", type=onnx.AttributeProto.INT)
    f = h.make_function("local", "Steps", ["x", "x_scale"], ["y"], body, [h.make_opsetid("", 23)], ["precise"])
    steps = lambda **k: one(h.make_node("Steps", ["x", "s"], ["y"], "call", domain="local", **k), opset=23,
                            inits=[init("s", np.float32(1))], out=value("y", T.UINT8, None), domains=["local"],
                            functions=[f])
    save("strict_unread_function", steps(precise=10))
    save("ok_unread_function", steps())
    save("strict_split", one(h.make_node("Split", ["x"], ["y", "z"], "halves", num_outputs=3), opset=18))
    save("ok_split", one(h.make_node("Split", ["x"], ["y", "z"], "halves", num_outputs=2), opset=18))
    save("ok_ignored", one(node("Conv", "x w", "a", auto_pad="SAME_UPPER", pads=[1, 1, 1, 1]),
                           h.make_node("Dropout", ["a"], ["b"], "drop", seed=7), node("Cast", "b", "y", to=F, saturate=0),
                           ins=[value("x", F, [1, 1, 4, 4])], inits=[init("w", np.ones((1, 1, 3, 3), np.float32))],
                           opset=19))
    save("ok_recurrent", one(h.make_node("RNN", ["x", "w", "w"], ["", "y"], "rnn", hidden_size=2, activations=["Relu"],
                                         activation_alpha=[0.5], activation_beta=[0.5]),
                             ins=[value("x", F, [3, 1, 2])], inits=[init("w", np.ones((1, 2, 2), np.float32))]))
    save("strict_dequantize", one(node("DequantizeLinear", "q s", "y", output_dtype=T.FLOAT16), opset=23,
                                  ins=[value("q", T.UINT8, [2, 3])], inits=[init("s", np.float32(1))],
                                  out=value("y", T.FLOAT16, None)))
    save("strict_inputs", one(node("Relu", "x x _", "y")))
    save("strict_inputs_missing", one(node("Conv", "x _ x", "y")))
    save("strict_outputs", one(node("Relu", "x", "y z")))
    save("strict_trailing", one(h.make_node("Relu", ["x", "", ""], ["y", ""])))
    save("strict_opset", one(relu, opset=99))
    learned = one(node("Scaler", "x", "y", domain="ai.onnx.ml", offset=[0.0], scale=[1.0]), domains=["ai.onnx.ml"])
    learned.opset_import[-1].version = 99
    save("strict_opset_domain", learned)
    twice = one(relu)
    twice.opset_import.add(domain="ai.onnx", version=13)
    save("strict_opset_twice", twice)
    twice = one(relu)
    del twice.opset_import[:]
    save("strict_opset_missing", twice)
    save("strict_old", one(node("Mish", "x", "y"), opset=17))
    ir = one(relu)
    ir.ir_version = 99
    save("strict_ir", ir)
    save("strict_declared", one(relu, out=y2))
    save("strict_declared_rank", one(relu, out=value("y", F, [6])))
    save("strict_declared_type", one(relu, out=value("y", I, [2, 3])))
    save("strict_declared_symbol", one(relu, out=value("y", F, [2, "N"])))
    inner = one(node("Relu", "x", "a"), node("Abs", "a", "y"))
    inner.graph.value_info.append(value("a", F, ["N", 5]))
    save("strict_value_info", inner)
    save("strict_constant", one(node("Add", "x w", "y"), ins=[x, value("w", F, [3])], inits=[two]))
    arm = lambda name, n: h.make_graph([n], name, [], [value(n.output[0], F, [2, 3])])
    save("strict_branch", one(node("If", "c", "y", then_branch=arm("then", leaky("x", "a")),
                                   else_branch=arm("else", node("Relu", "x x", "b"))), ins=[x, value("c", B, [])]))
    body = [leaky("x", "y"), h.make_node("Elu", ["x"], ["z"])]
    body[1].attribute.add(name="alpha", ref_attr_name="slope", type=onnx.AttributeProto.FLOAT)
    f = h.make_function("local", "Both", ["x"], ["y", "z"], body, [h.make_opsetid("", 17)], ["slope"])
    save("strict_function", one(h.make_node("Both", ["x", "x"], ["y"], "call", domain="local", slop=1.0),
                                domains=["local"], functions=[f]))
    body = [h.make_node("LeakyRelu", ["x"], ["y"])]
    body[0].attribute.add(name="alpha", ref_attr_name="slope", type=onnx.AttributeProto.FLOAT)
    f = h.make_function("local", "Leaky", ["x"], ["y"], body, [h.make_opsetid("", 17)], [],
                        [h.make_attribute("slope", 0.5)])
    save("ok_function_default", one(h.make_node("Leaky", ["x"], ["y"], "call", domain="local"),
                                    domains=["local"], functions=[f]))


# Dimensions as exporters name them.
def dims():
    y = value("y", F, None)
    relu = node("Relu", "x", "y")
    one = lambda *shape: model([relu], [value("x", F, list(shape))], [y])
    two = lambda a, b: model([relu, node("Relu", "z", "w")], [value("z", F, a), value("x", F, b)], [y, value("w", F, None)])

    save("dim_image", one("N", 3, "height", "width"))
    save("dim_picture", one("height", "width", 3))
    save("dim_row", one("?"))
    save("dim_states", two([2, "batch_size", 4], ["unk__7", 3]))
    save("dim_late", two(["T"], [1, "T"]))
    save("dim_placeholders", two([1, "?", "unk__1"], ["", "?", "unk__1"]))
    minus = one(1, 5)
    minus.graph.input[0].type.tensor_type.shape.dim[1].dim_value = -1
    save("dim_minus", minus)
    save("dim_several", model([relu, node("Relu", "ids", "w"), node("Relu", "image", "v")],
                              [value("x", F, ["batch", "tokens"]), value("ids", F, ["tokens"]),
                               value("image", F, [1, 3, "?", "?"])], [y]))


def length(data):
    n, out = len(data), b""
    while n > 127:
        out, n = out + bytes([n & 127 | 128]), n >> 7
    return out + bytes([n]) + data


def external(name, shape, place, offset=0, size=None):
    t = T(name=name, data_type=F, dims=shape, data_location=T.EXTERNAL)
    for k, v in (("location", place), ("offset", str(offset)), ("length", size and str(size))):
        if v is not None:
            t.external_data.add(key=k, value=v)
    return t


# ---- imported: text ------------------------------------------------------------------------------

def ok():
    x, y = value("x", F, [2, 3]), value("y", F, None)
    k = lambda *v, t=np.int64: init("k", np.array(v, t))

    with open(os.path.join(HERE, "weights.bin"), "wb") as f:
        f.write(np.arange(8, dtype=np.float32).tobytes())
    save("ok_external", model([node("Add", "x w", "y")], [x], [y], [external("w", [2, 3], "weights.bin", 4, 24)]))
    save("ok_fold_once", model([node("Transpose", "w", "a", perm=[1, 0]), node("Transpose", "w", "b", perm=[1, 0]),
                                node("MatMul", "x a", "t"), node("MatMul", "t b", "y")], [value("x", F, [2, 3])], [y],
                               [init("w", np.arange(9, dtype=np.float32).reshape(3, 3))]))
    save("ok_external_rest", model([node("Add", "x w", "y")], [x], [y], [external("w", [3], "weights.bin", 4)]))
    # of files that external.sh makes: of 2.4 GB
    save("external_large", model([node("Gather", "w i", "y")], [value("i", I, [2])], [y],
                                 [external("w", [600_000_000], "large.bin")]))
    # at the end of a file of 7 TiB that external.sh makes: twenty views of it would have no room
    save("external_far", model([node("Sum", " ".join(f"x{i}" for i in range(20)), "y")], [], [y],
                               [external(f"x{i}", [2], "far.bin", (7 << 40) - 8 * (i + 1), 8) for i in range(20)]))
    save("ok_batch", model([node("Relu", "x", "y")], [value("x", F, ["N", 3])], [y]))
    save("ok_dims", model([node("Add", "x z", "y")], [value("x", F, ["N", "T"]), value("z", F, ["T"])], [y]))
    save("ok_softmax_12", model([node("Softmax", "x", "y")], [value("x", F, [2, 3, 4])], [y], opset=12))
    save("ok_softmax_13", model([node("Softmax", "x", "y")], [value("x", F, [2, 3, 4])], [y], opset=13))
    # the shape of x, as exporters compute it: all folded
    save("ok_shape", model(
        [node("Shape", "x", "s"), node("Gather", "s zero", "b"), node("Unsqueeze", "b k", "b1"),
         node("Concat", "b1 rest", "t", axis=0), node("Reshape", "x t", "y")],
        [value("x", F, [2, 3, 4])], [y],
        [k(0), init("zero", np.array(0, np.int64)), init("rest", np.array([-1], np.int64))]))
    arm = lambda op, out: h.make_graph([node(op, "x", out)], out, [], [value(out, F, [2, 3])])
    branch = node("If", "c", "y", then_branch=arm("Relu", "a"), else_branch=arm("Abs", "b"))
    save("ok_if", model([branch], [x, value("c", B, [])], [y]))
    save("ok_if_known", model([branch], [x], [y], [init("c", np.array(False))]))
    loop = h.make_graph([node("Identity", "c", "c2"), node("Add", "v x", "v2")], "body",
                        [value("i", I, []), value("c", B, []), value("v", F, [2, 3])],
                        [value("c2", B, []), value("v2", F, [2, 3])])
    save("ok_loop", model([node("Loop", "n _ x", "y", body=loop)], [x], [y], [init("n", np.array(3))]))
    save("ok_loop_trips", model([node("Transpose", "w", "wt"), node("Loop", "n _ x", "y", body=h.make_graph(
        [node("Identity", "c", "c2"), node("MatMul", "v wt", "t"), node("Tanh", "t", "v2")], "body",
        [value("i", I, []), value("c", B, []), value("v", F, [2, 3])], [value("c2", B, []), value("v2", F, [2, 3])]))],
        [x, value("w", F, [3, 3]), value("n", I, [])], [y]))
    # A count that a branch before the loop has for itself stays there: of the loop it is an argument.
    counted = h.make_graph([node("NonZero", "x", "at"), node("Cast", "at", "f", to=F), node("ReduceSum", "f", "t", keepdims=0)],
                           "then", [], [value("t", F, [])])
    most = h.make_graph([node("ReduceMax", "x", "u", keepdims=0)], "else", [], [value("u", F, [])])
    save("ok_loop_around", model([node("If", "b", "w", then_branch=counted, else_branch=most), node("Loop", "n _ x", "y", body=h.make_graph(
        [node("Identity", "c", "c2"), node("Mul", "v w", "v2")], "body",
        [value("i", I, []), value("c", B, []), value("v", F, [2, 3])], [value("c2", B, []), value("v2", F, [2, 3])]))],
        [x, value("b", B, []), value("n", I, [])], [y]))
    save("dim_in_body", model([node("Loop", "n _ x", "y", body=h.make_graph(
        [node("Identity", "c", "c2"), node("ConstantOfShape", "m", "t"), node("ReduceSum", "t", "s", keepdims=0), node("Add", "v s", "v2")], "body",
        [value("i", I, []), value("c", B, []), value("v", F, [2, 3])], [value("c2", B, []), value("v2", F, [2, 3])]))],
        [x, value("m", I, [1]), value("n", I, [])], [y]))
    # of four sizes the model knows two
    save("dim_sizes_beside", model([node("Shape", "x", "s"), node("Slice", "s zero two", "t"), node("Concat", "t n", "to", axis=0), node("Resize", "x _ _ to", "y")],
                                   [value("x", F, [1, 3, 4, 4]), value("n", I, [2])], [y], [init("zero", [0]), init("two", [2])]))
    f = h.make_function("local", "Scale", ["a"], ["b"],
                        [node("LeakyRelu", "a", "t"), node("Add", "t t", "b")], [h.make_opsetid("", 17)], ["alpha"])
    f.node[0].attribute.append(h.make_attribute_ref("alpha", onnx.AttributeProto.FLOAT, "alpha"))
    save("ok_function", model([h.make_node("Scale", ["x"], ["y"], "call", domain="local", alpha=0.25)], [x], [y],
                              domains=["local"], functions=[f]))
    q = [init("s", np.float32(0.5)), init("z", np.int8(3))]
    save("ok_qdq", model([node("QuantizeLinear", "x s z", "q"), node("DequantizeLinear", "q s z", "y")], [x], [y], q))
    save("ok_clip_6", model([node("Clip", "x", "y", min=0.0, max=6.0)], [x], [y], opset=6))
    save("ok_outputs", model([node("Split", "x", "a b", axis=1)], [value("x", F, [2, 4])],
                             [value("b", F, None), value("a", F, None)], opset=13))


# ---- imported and run -------------------------------------------------------------------------------

def run():
    rng = np.random.default_rng(1)
    f = lambda *s: rng.standard_normal(s).astype(np.float32)
    small = lambda *v: np.array(v, np.int64)

    def case(name, nodes, feeds, outs="y", opset=17, domains=(), **inits):
        import onnxruntime as ort
        types = {np.dtype(np.float32): F, np.dtype(np.int64): I, np.dtype(bool): B, np.dtype(np.uint8): T.UINT8,
                 np.dtype(np.int8): T.INT8, np.dtype(np.float16): T.FLOAT16, np.dtype(np.int32): T.INT32,
                 np.dtype(np.float64): T.DOUBLE}
        ins = [value(k, types[v.dtype], v.shape) for k, v in feeds.items()]
        outs = outs.split()
        m = model(nodes, ins, [onnx.ValueInfoProto(name=o) for o in outs],
                  [init(k, v) for k, v in inits.items()], opset, domains)
        save("run_" + name, m)
        so = ort.SessionOptions()
        so.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
        so.log_severity_level = 3
        got = ort.InferenceSession(m.SerializeToString(), so, providers=["CPUExecutionProvider"]).run(outs, feeds)
        np.savez_compressed(os.path.join(HERE, "run_" + name + ".npz"), **{"in." + k: v for k, v in feeds.items()},
                            **{"out." + k: v for k, v in zip(outs, got)})

    img = {"x": f(1, 4, 6, 5)}
    case("activations", [node("Elu", "x", "a", alpha=0.5), node("Selu", "a", "b"), node("HardSigmoid", "b", "c"),
                         node("Softplus", "c", "d"), node("Softsign", "d", "e"), node("ThresholdedRelu", "e", "g", alpha=0.3),
                         node("HardSwish", "x", "k"), node("Add", "g k", "y")], {"x": f(2, 7)})
    case("prelu", [node("PRelu", "x p", "a"), node("PRelu", "a q", "y")], img, p=f(4, 1, 1), q=f(5))
    case("pow_mod", [node("Pow", "x two", "a"), node("Mod", "i m", "b"), node("Mod", "x fm", "c", fmod=1)],
         {"x": f(3, 4), "i": small(-5, 4, 7)}, "a b c", two=np.array(2, np.int64), m=small(3), fm=np.float32(0.75))
    case("clip", [node("Clip", "x lo hi", "a"), node("Clip", "a _ top", "y")], {"x": f(4, 4)}, lo=np.float32(-1),
         hi=np.float32(1), top=np.float32(0.5))
    case("where", [node("Greater", "x z", "c"), node("Where", "c x w", "y")], {"x": f(3, 4)}, z=np.float32(0), w=f(4))
    case("conv_same", [node("Conv", "x w", "y", auto_pad="SAME_LOWER", strides=[2, 2])], img, w=f(2, 4, 3, 2))
    case("conv_group", [node("Conv", "x w b", "y", group=2, pads=[1, 0, 2, 1], dilations=[2, 1])], img, w=f(6, 2, 2, 2),
         b=f(6))
    case("conv_1d", [node("Conv", "x w b", "y", pads=[1, 1])], {"x": f(1, 3, 9)}, w=f(4, 3, 3), b=f(4))
    case("conv_transpose", [node("ConvTranspose", "x w b", "y", strides=[2, 3], pads=[1, 0, 0, 1], output_padding=[1, 1])],
         {"x": f(1, 3, 4, 3)}, w=f(3, 2, 3, 3), b=f(2))
    case("gemm", [node("Gemm", "a b c", "y", alpha=0.5, beta=2.0, transA=1, transB=1)], {"a": f(4, 3)}, b=f(5, 4), c=f(3, 1))
    case("matmul", [node("MatMul", "a b", "c"), node("MatMul", "c v", "y")], {"a": f(2, 3, 4)}, b=f(4, 5), v=f(5))
    case("matmul_batch", [node("MatMul", "a b", "y")], {"a": f(2, 1, 3, 4)}, b=f(3, 4, 2))
    case("einsum", [node("Einsum", "a b", "c", equation="bik,bjk->bij"), node("Einsum", "c", "y", equation="...ij->...ji")],
         {"a": f(2, 3, 4)}, b=f(2, 5, 4))
    case("pools", [node("MaxPool", "x", "a", kernel_shape=[3, 2], strides=[2, 2], ceil_mode=1),
                   node("AveragePool", "x", "b", kernel_shape=[3, 3], pads=[1, 1, 1, 1]),
                   node("AveragePool", "x", "c", kernel_shape=[3, 3], pads=[1, 1, 1, 1], count_include_pad=1),
                   node("GlobalMaxPool", "x", "d"), node("LpPool", "x", "e", kernel_shape=[2, 2])], img, "a b c d e")
    case("pool_1d", [node("MaxPool", "x", "a", kernel_shape=[3], strides=[2]), node("GlobalAveragePool", "x", "b")],
         {"x": f(2, 3, 9)}, "a b")
    case("norms", [node("InstanceNormalization", "x s b", "i"), node("LRN", "i", "l", size=3, alpha=0.1),
                   node("LpNormalization", "l", "y", axis=1)], img, s=f(4), b=f(4))
    case("batch_norm", [node("BatchNormalization", "x s b m v", "y")], img, s=f(4), b=f(4), m=f(4), v=abs(f(4)))
    case("layer_norm", [node("LayerNormalization", "x s b", "y", axis=-2)], {"x": f(2, 3, 4)}, s=f(3, 4), b=f(3, 4))
    case("group_norm", [node("GroupNormalization", "x s b", "y", num_groups=2)], img, opset=21, s=f(4), b=f(4))
    case("softmax_12", [node("Softmax", "x", "a", axis=1), node("LogSoftmax", "x", "b", axis=2)], {"x": f(2, 3, 4)}, "a b",
         opset=12)
    case("reduce", [node("ReduceSum", "x ax", "a", keepdims=0), node("ReduceL2", "x", "b", axes=[1]),
                    node("ReduceLogSumExp", "x", "c", axes=[0, 2]), node("ReduceMean", "x", "d"),
                    node("ReduceProd", "x", "e", axes=[-1], keepdims=0)], {"x": f(2, 3, 4)}, "a b c d e", ax=small(-1, 0))
    case("arg", [node("ArgMax", "x", "a", axis=1), node("ArgMin", "x", "b", axis=-1, keepdims=0, select_last_index=1)],
         {"x": np.array([[1, 3, 3], [0, 0, 2]], np.float32)}, "a b")
    case("topk", [node("TopK", "x k", "v i", axis=1), node("TopK", "x k", "w j", axis=1, largest=0)],
         {"x": f(2, 5)}, "v i w j", k=small(3))
    case("cumsum", [node("CumSum", "x ax", "a"), node("CumSum", "x ax", "b", exclusive=1, reverse=1)], {"x": f(2, 5)}, "a b",
         ax=np.array(1, np.int64))
    case("squeeze", [node("Squeeze", "x ax", "a"), node("Unsqueeze", "a bx", "b"), node("Flatten", "b", "y", axis=2)],
         {"x": f(2, 1, 3, 1)}, ax=small(-1), bx=small(0, 3))
    case("squeeze_11", [node("Squeeze", "x", "a", axes=[1]), node("Unsqueeze", "a", "y", axes=[0, -1])],
         {"x": f(2, 1, 3)}, opset=11)
    case("slices", [node("Slice", "x s e ax st", "a"), node("Slice", "x s2 e2", "b")], {"x": f(5, 6)}, "a b",
         s=small(-1, 1), e=small(-1000, 5), ax=small(0, 1), st=small(-2, 2), s2=small(1, -4), e2=small(1000, -1))
    case("split", [node("Split", "x p", "a b c", axis=1)], {"x": f(2, 6)}, "a b c", p=small(1, 2, 3))
    case("split_18", [node("Split", "x", "a b c", axis=1, num_outputs=3)], {"x": f(2, 8)}, "a b c", opset=18)
    case("expand_tile", [node("Expand", "x s", "a"), node("Tile", "a r", "y")], {"x": f(3, 1)}, s=small(2, 1, 4),
         r=small(1, 2, 1))
    case("pads", [node("Pad", "x p v", "a"), node("Pad", "x p", "b", mode="reflect"), node("Pad", "x p", "c", mode="edge"),
                  node("Pad", "x n", "d")], {"x": f(3, 4)}, "a b c d", p=small(1, 2, 0, 1), v=np.float32(7), n=small(-1, 1, 0, -2))
    case("space_depth", [node("DepthToSpace", "x", "a", blocksize=2), node("DepthToSpace", "x", "b", blocksize=2, mode="CRD"),
                         node("SpaceToDepth", "a", "c", blocksize=2)], {"x": f(1, 8, 2, 3)}, "a b c")
    case("gather", [node("Gather", "x i", "a", axis=1), node("GatherElements", "x j", "b", axis=0),
                    node("GatherND", "x n", "c")],
         {"x": f(3, 4), "i": small(-1, 0), "j": np.array([[0, -1, 1, 2]]), "n": np.array([[2, -1], [0, 1]])}, "a b c")
    case("scatter", [node("ScatterElements", "x j u", "a", axis=1, reduction="add"), node("ScatterND", "x n w", "b")],
         {"x": f(3, 4), "j": np.array([[0, 0], [1, -1]]), "u": f(2, 2), "n": np.array([[2], [0]]), "w": f(2, 4)}, "a b",
         opset=18)
    case("one_hot", [node("OneHot", "i d v", "y", axis=0)], {"i": small(1, -1, 0)}, d=small(3), v=np.array([2, 5], np.float32))
    case("trilu", [node("Trilu", "x", "a"), node("Trilu", "x k", "b", upper=0)], {"x": f(3, 4)}, "a b", k=np.array(-1, np.int64))
    case("resize", [node("Resize", "x _ s", "a", mode="linear"),
                    node("Resize", "x _ s", "b", mode="nearest", coordinate_transformation_mode="asymmetric",
                         nearest_mode="floor"),
                    node("Resize", "x _ _ z", "c", mode="cubic"),
                    node("Resize", "x _ _ z", "d", mode="linear", coordinate_transformation_mode="align_corners")],
         {"x": f(1, 2, 4, 3)}, "a b c d", s=np.array([1, 1, 2, 1.5], np.float32), z=small(1, 2, 3, 5))
    case("upsample", [node("Upsample", "x s", "y", mode="nearest")], {"x": f(1, 2, 2, 3)}, opset=9,
         s=np.array([1, 1, 2, 3], np.float32))
    for kind, gates, extra in (("LSTM", 4, "c"), ("GRU", 3, ""), ("RNN", 1, "")):
        outs = "y h " + extra
        case(kind.lower(), [node(kind, "x w r b _ h0", outs, hidden_size=2, direction="bidirectional")],
             {"x": f(3, 1, 2), "h0": f(2, 1, 2)}, outs, w=f(2, gates * 2, 2), r=f(2, gates * 2, 2), b=f(2, gates * 4))
    case("qdq", [node("QuantizeLinear", "x s z", "q", axis=1), node("DequantizeLinear", "q s z", "y", axis=1)],
         {"x": f(2, 3)}, s=np.array([0.1, 0.02, 0.5], np.float32), z=np.array([0, 3, -7], np.int8))
    case("qlinear_conv", [node("QuantizeLinear", "x xs xz", "q"), node("QLinearConv", "q xs xz w ws wz ys yz", "c"),
                          node("DequantizeLinear", "c ys yz", "y")], img, xs=np.float32(0.03), xz=np.uint8(120),
         w=rng.integers(-90, 90, (2, 4, 3, 3)).astype(np.int8), ws=np.array([0.01, 0.02], np.float32),
         wz=np.array([0, 0], np.int8), ys=np.float32(0.1), yz=np.uint8(128))
    case("dynamic_quantize", [node("DynamicQuantizeLinear", "x", "q s z"), node("MatMulInteger", "q w z", "y")],
         {"x": f(3, 4)}, "s y", w=rng.integers(0, 200, (4, 2)).astype(np.uint8))
    arm = lambda op, out: h.make_graph([node(op, "x", out)], out, [], [value(out, F, [2, 3])])
    case("if", [node("ReduceSum", "x", "t", keepdims=0), node("Greater", "t z", "c"),
                node("If", "c", "y", then_branch=arm("Exp", "a"), else_branch=arm("Neg", "b"))], {"x": f(2, 3)}, z=np.float32(0))
    scan = h.make_graph([node("Add", "s e", "s2"), node("Mul", "s2 e", "o")], "body", [value("s", F, [2]), value("e", F, [2])],
                        [value("s2", F, [2]), value("o", F, [2])])
    case("scan", [node("Scan", "i x", "y o", body=scan, num_scan_inputs=1, scan_output_directions=[1])], {"i": f(2), "x": f(4, 2)},
         "y o")
    seq = [node("SplitToSequence", "x", "s", axis=1), node("SequenceAt", "s one", "a"), node("SequenceInsert", "s a zero", "t"),
           node("SequenceErase", "t", "u"), node("SequenceLength", "u", "n"), node("ConcatFromSequence", "u", "y", axis=1)]
    case("sequence", seq, {"x": f(2, 4)}, "y n", one=np.array(1, np.int64), zero=np.array(0, np.int64))
    case("grid_sample", [node("GridSample", "x g", "a", padding_mode="reflection"), node("GridSample", "x g", "b", mode="nearest"),
                         node("GridSample", "x g", "c", mode="bicubic", padding_mode="border", align_corners=1)],
         {"x": f(1, 2, 4, 3), "g": f(1, 3, 2, 2)}, "a b c")
    case("stft", [node("STFT", "x step w", "a"), node("DFT", "a", "b", axis=1)], {"x": f(1, 16)}, "a b", step=np.array(4, np.int64),
         w=np.hanning(8).astype(np.float32))
    case("loss", [node("SoftmaxCrossEntropyLoss", "x t w", "a b", ignore_index=1)],
         {"x": f(3, 4), "t": small(0, 1, 3)}, "a b", w=abs(f(4)))
    case("blocks", [node("DequantizeLinear", "w s z", "v", axis=0, block_size=2), node("MatMul", "x v", "y")], {"x": f(2, 4)},
         opset=21, w=rng.integers(-100, 100, (4, 3)).astype(np.int8), s=abs(f(2, 3)), z=np.ones((2, 3), np.int8))
    case("volume", [node("Conv", "x w b", "c", group=2, pads=[1, 0, 1, 1, 1, 0], strides=[2, 1, 1]),
                    node("MaxPool", "c", "a", kernel_shape=[2, 2, 2], ceil_mode=1, strides=[2, 1, 1]),
                    node("AveragePool", "c", "m", kernel_shape=[2, 2, 1], pads=[1, 0, 0, 0, 1, 0])],
         {"x": f(1, 2, 4, 3, 3)}, "a m", w=f(2, 1, 2, 2, 2), b=f(2))
    ms = lambda *a, **k: node(*a, domain="com.microsoft", **k)
    case("contrib", [ms("BiasGelu", "x v", "a"), ms("FastGelu", "x v", "b"), ms("SkipLayerNormalization", "a b v v", "c"),
                     ms("SkipSimplifiedLayerNormalization", "a c v", "d"), ms("FusedGemm", "d w", "y", activation="LeakyRelu",
                                                                              activation_alpha=0.2, transB=1)],
         {"x": f(3, 8)}, "c y", domains=["com.microsoft"], v=f(8), w=f(2, 8))
    case("nbits", [ms("MatMulNBits", "x w s z", "y", K=40, N=3, bits=4, block_size=16)], {"x": f(2, 40)},
         domains=["com.microsoft"], w=rng.integers(0, 256, (3, 3, 8)).astype(np.uint8), s=abs(f(9)),
         z=rng.integers(0, 256, 6).astype(np.uint8))
    case("fused_conv", [ms("FusedConv", "x w b", "y", activation="Clip", activation_params=[-0.5, 0.5])], img,
         domains=["com.microsoft"], w=f(3, 4, 2, 2), b=f(3))
    case("cast", [node("Cast", "x", "a", to=T.INT32), node("Cast", "a", "b", to=B), node("Cast", "b", "c", to=T.FLOAT16)],
         {"x": f(8) * 3}, "a c")
    # ---- corners that tests/graphs found
    inf, nan = np.float32(np.inf), np.float32(np.nan)
    k = np.array([2], np.int64)
    case("topk_ties", [node("TopK", "x k", "a b"), node("TopK", "x k", "c d", largest=0), node("TopK", "z m", "e g")],
         {"x": np.array([2, 2, 3, 0, 0, 0, 0, 0, 3, 2], np.float32), "z": rng.integers(0, 3, (2, 50)).astype(np.float32)},
         "a b c d e g", k=k, m=np.array([20], np.int64))
    for op in ("Softmax", "LogSoftmax", "Hardmax"):
        case(op.lower() + "_11_rank_1", [node(op, "x", "a", axis=-1), node(op, "z", "b", axis=-2)], {"x": f(5), "z": f(2, 3)},
             "a b", opset=11)
    ties = dict(coordinate_transformation_mode="asymmetric", nearest_mode="round_prefer_ceil")
    case("resize_ties", [node("Resize", "x _ _ s", "a", **ties),
                         node("Resize", "z _ _ t", "b", coordinate_transformation_mode="pytorch_half_pixel", nearest_mode="floor"),
                         node("Resize", "x _ u", "c", coordinate_transformation_mode="asymmetric", nearest_mode="floor"),
                         node("Resize", "x _ v", "d", coordinate_transformation_mode="half_pixel", nearest_mode="ceil"),
                         node("Resize", "z _ none", "e")],
         {"x": np.arange(15, dtype=np.float32).reshape(15, 1), "z": np.arange(21, dtype=np.float32).reshape(21, 1)}, "a b c d e",
         opset=18, s=small(6, 1), t=small(43, 1), u=np.array([1 / 3, 1], np.float32), v=np.array([0.6, 1], np.float32),
         none=np.array([0.01, 1], np.float32))
    case("resize_coordinates", [node("Resize", "x _ s", "y", coordinate_transformation_mode="half_pixel_symmetric")],
         {"x": f(1, 1, 1, 7)}, opset=19, s=np.array([1, 1, 1, 0.6], np.float32))
    logs = [node("ReduceLogSumExp", "x", "a", axes=[1], keepdims=0), node("ReduceLogSum", "i", "b", axes=[1]),
            node("ReduceL2", "i", "c", axes=[1]), node("ReduceLogSumExp", "i", "d", axes=[1])]
    case("reduce_logs", logs, {"x": np.array([[-inf, -inf], [inf, 1], [nan, 1], [-inf, 1], [inf, -inf], [200, 200]], np.float32),
                               "i": np.array([[3, 4], [30, 400]], np.int32)}, "a b c d")
    case("dynamic_quantize_zeros", [node("DynamicQuantizeLinear", "x", "a b c")], {"x": np.zeros((2, 3), np.float32)}, "a b c")
    ones = lambda *s: np.ones(s, np.float32)
    case("empty", [node("Concat", "x z", "a", axis=1), node("ArgMax", "x", "b", axis=1, keepdims=0), node("Hardmax", "x", "c"),
                   node("ScatterElements", "w i e", "d"), node("Compress", "w no", "g", axis=0),
                   node("LpPool", "p", "l", kernel_shape=[2], p=1)],
         {"x": ones(2, 3, 0), "z": ones(2, 4, 0), "w": f(3, 2), "p": ones(0, 1, 4)}, "a b c d g l", i=np.zeros((0, 2), np.int64), e=ones(0, 2),
         no=np.zeros(3, bool))
    case("gather_elements_empty", [node("GatherElements", "x i", "y", axis=0)], {"x": ones(0, 3)}, i=np.zeros((0, 2), np.int64))
    case("gather_nothing", [node("Gather", "x i", "rows", axis=0), node("GatherND", "x i", "cells")], {"x": ones(0, 3)}, "rows cells",
         i=np.zeros((0, 2), np.int64))
    case("shrink_integers", [node("Shrink", "x", "a", lambd=1.5, bias=1.0)], {"x": np.arange(8, dtype=np.uint8)}, "a")
    case("clip_infinite", [node("Clip", "x lo", "a"), node("Clip", "x _ hi", "b"), node("Clip", "x", "c"), node("Clip", "x most", "d")],
         {"x": np.array([-inf, inf, nan, 1], np.float32)}, "a b c d", lo=np.float32(0), hi=np.float32(0.5), most=np.float32(inf))
    case("softplus_small", [node("Softplus", "x", "a"), node("Mul", "a big", "y")], {"x": np.arange(-20, 0, 1.5, dtype=np.float32)},
         big=np.float32(1e6))
    case("layer_norm_stash", [node("LayerNormalization", "x w", "a b c")], {"x": f(3, 4).astype(np.float64)}, "a b c",
         w=np.ones(4))
    # spread so little that f16 loses the variance
    case("layer_norm_halves", [node("LayerNormalization", "x w", "a b c")], {"x": (f(3, 17) / 8 + 4).astype(np.float16)}, "c",
         w=np.ones(17, np.float16))
    case("pad_corners", [node("Pad", "x w", "a", mode="wrap"), node("Pad", "i p v", "b"), node("Pad", "x p z", "c")],
         {"x": f(5), "i": small(1, 2), "z": np.array(0.5, np.float32)}, "a b c", opset=19, w=small(4, -1), p=small(1, 2),
         v=np.array(2**62 + 1, np.int64))
    # more than the tensor, and of what is left when an end is cut off
    case("pad_wrap", [node("Pad", "x a", "far", mode="wrap"), node("Pad", "x b", "cut", mode="wrap")], {"x": f(2, 3)}, "far cut",
         opset=19, a=small(3, 7, 4, 2), b=small(0, 5, 2, -1))
    # deviations near what keeps them from 0
    case("mean_variance_norm", [node("MeanVarianceNormalization", "x", "y", axes=[1])], {"x": f(4, 5) * np.float32(1e-4) + 0.25})

    # ---- loops
    def body(nodes, ins, outs):
        of = lambda names: [value(k, t, s) for k, t, s in names]
        return h.make_graph(nodes, "body", of(ins), of(outs))
    start, c2 = [("i", I, []), ("c", B, [])], ("c2", B, [])
    v, v2, r = ("v", F, [3]), ("v2", F, [3]), ("r", F, [3])
    again = node("Identity", "c", "c2")
    number = lambda n: np.array(n, np.int64)
    grown = body([node("Add", "v w", "t"), node("Add", "t v", "v2"), node("ReduceMax", "v2", "m", keepdims=0), node("Less", "m top", "c2")],
                 start + [v], [c2, v2])
    case("loop_while", [node("Loop", "_ c x", "a", body=grown), node("Loop", "n c x", "b", body=grown),
                        node("Loop", "n d x", "e", body=grown)],
         {"x": abs(f(3)), "n": number(2), "c": np.array(True), "d": np.array(False)}, "a b e", w=abs(f(3)), top=np.float32(50))
    fib = body([again, node("Add", "v r", "v2"), node("Identity", "v", "r2")], start + [v, r], [c2, ("r2", F, [3]), v2])
    case("loop_trips", [node("Loop", "n _ x z", "a b", body=fib), node("Loop", "none _ x z", "d e", body=fib)],
         {"x": f(3), "z": f(3), "n": number(9), "none": number(0)}, "a b d e")
    inner = body([node("Identity", "ic", "ic2"), node("Add", "iv v", "t"), node("Sin", "t", "iv2")],
                 [("j", I, []), ("ic", B, []), ("iv", F, [3])], [("ic2", B, []), ("iv2", F, [3])])
    arm = lambda op, out: h.make_graph([node(op, "r", out)], out, [], [value(out, F, [3])])
    outer = body([again, node("Loop", "i _ v", "r", body=inner), node("Less", "i two", "few"),
                  node("If", "few", "v2", then_branch=arm("Exp", "p"), else_branch=arm("Neg", "q"))], start + [v], [c2, v2])
    case("loop_nested", [node("Loop", "n _ x", "y", body=outer)], {"x": f(3), "n": number(5)}, two=number(2))
    case("loop_pieces", [node("Loop", "n _ x", "a b", body=body(
        [again, node("Cast", "i", "k", to=F), node("Mul", "v w", "t"), node("Add", "t k", "v2"), node("Neg", "v2", "o")], start + [v],
        [c2, v2, ("o", F, [3])]))], {"x": f(3)}, "a b", n=number(40), w=f(3) / 4)
    for name, attrs in (("", {}), ("_axes", dict(scan_input_axes=[1], scan_output_axes=[-1])),
                        ("_backwards", dict(scan_input_directions=[1], scan_output_directions=[1]))):
        case("scan_long" + name, [node("Scan", "s x", "y o", body=h.make_graph(
            [node("Add", "s e", "s2"), node("Mul", "s2 e", "o")], "body", [value("s", F, [2]), value("e", F, [2])],
            [value("s2", F, [2]), value("o", F, [2])]), num_scan_inputs=1, **attrs)],
             {"s": f(2), "x": f(2, 40) if name == "_axes" else f(40, 2)}, "y o")

    case("scan_batches", [node("Scan", "_ s x", "y o", body=h.make_graph(
        [node("Add", "s e", "s2"), node("Mul", "s2 e", "o")], "body", [value("s", F, [2]), value("e", F, [2])],
        [value("s2", F, [2]), value("o", F, [2])]), num_scan_inputs=1, directions=[1])], {"s": f(3, 2), "x": f(3, 40, 2)}, "y o", opset=8)


if __name__ == "__main__":
    os.makedirs(HERE, exist_ok=True)
    os.makedirs(SEEDS, exist_ok=True)
    bad()
    strict()
    indices()
    dims()
    ok()
    run()
    print(len(os.listdir(HERE)), "files,", sum(os.path.getsize(os.path.join(HERE, n)) for n in os.listdir(HERE)), "bytes")
