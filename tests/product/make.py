"""Small models and recorded results for the additions of a product: pictures, softmax, argmax,
top-k, inner tensors, states.

    python make.py FOLDER        numpy, onnx and onnxruntime; the values come from these, not from us
"""
import sys

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

rng = np.random.default_rng(7)
folder = sys.argv[1]


def session(model, outputs):
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    m = onnx.ModelProto()
    m.CopyFrom(model)
    known = {o.name for o in m.graph.output}
    m.graph.output.extend(onnx.ValueInfoProto(name=o) for o in outputs if o not in known)
    return onnxruntime.InferenceSession(m.SerializeToString(), options)


def save(name, graph):
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)])
    model.ir_version = 8
    onnx.checker.check_model(model)
    onnx.save(model, f"{folder}/{name}.onnx")
    return model


def weight(name, *shape):
    return numpy_helper.from_array(
        (rng.standard_normal(shape) / np.sqrt(np.prod(shape[1:]))).astype(np.float32), name)


# ---- a classifier of pictures: conv, relu, pool, dense -----------------------------------------
graph = helper.make_graph(
    [helper.make_node("Conv", ["data", "w0", "b0"], ["conv"], "conv_node", pads=[1, 1, 1, 1], strides=[2, 2]),
     helper.make_node("Relu", ["conv"], ["features"], "relu_node"),
     helper.make_node("GlobalAveragePool", ["features"], ["pool"], "pool_node"),
     helper.make_node("Flatten", ["pool"], ["flat"], "flat_node"),
     helper.make_node("Gemm", ["flat", "w1", "b1"], ["logits"], "fc_node", transB=1)],
    "classifier",
    [helper.make_tensor_value_info("data", TensorProto.FLOAT, [2, 3, 18, 20])],
    [helper.make_tensor_value_info("logits", TensorProto.FLOAT, [2, 10])],
    [weight("w0", 16, 3, 3, 3), weight("b0", 16), weight("w1", 10, 16), weight("b1", 10)])
model = save("classifier", graph)

picture = rng.integers(0, 256, (2, 18, 20, 3), dtype=np.uint8)
mean = np.array([103.939, 116.779, 123.68])
std = np.array([57.375, 57.12, 58.395])
run = session(model, ["features"])


def of(x):
    features, logits = run.run(["features", "logits"], {"data": np.ascontiguousarray(x.astype(np.float32))})
    e = np.exp(logits.astype(np.float64) - logits.max(1, keepdims=True))
    order = np.argsort(-logits, axis=1, kind="stable")[:, :3]
    return {
        "features": features,
        "logits": logits,
        "logits_softmax": (e / e.sum(1, keepdims=True)).astype(np.float32),
        "logits_argmax": logits.argmax(1).astype(np.int32),
        "logits_topk": np.take_along_axis(logits, order, 1),
        "logits_topk_index": order.astype(np.int32),
    }


nchw = picture.astype(np.float64).transpose(0, 3, 1, 2)
# BGR model, mean and deviation of its channels
bgr = of((nchw[:, ::-1] - mean[:, None, None]) / std[:, None, None])
np.savez(f"{folder}/bgr.in.npz", data=picture)
np.savez(f"{folder}/bgr.out.npz", **bgr)
# scaled to 0..1, then normalised, planes as they are
unit = of((nchw / 255 - np.array([0.485, 0.456, 0.406])[:, None, None]) /
          np.array([0.229, 0.224, 0.225])[:, None, None])
np.savez(f"{folder}/planes.in.npz", data=picture.transpose(0, 3, 1, 2))
np.savez(f"{folder}/planes.out.npz", logits=unit["logits"])
# floats, one mean for all
one = of(nchw - 127.5)
np.savez(f"{folder}/floats.in.npz", data=picture.astype(np.float32))
np.savez(f"{folder}/floats.out.npz", logits=one["logits"])

# ---- states: an exchange of two, and one that is read after the other is known ------------------
graph = helper.make_graph(
    [helper.make_node("Add", ["x", "h"], ["s"], "add"),
     helper.make_node("Tanh", ["s"], ["h_next"], "tanh"),
     helper.make_node("MatMul", ["h_next", "w"], ["mixed"], "mix"),
     helper.make_node("Mul", ["mixed", "h"], ["y"], "late"),
     helper.make_node("Identity", ["b"], ["a_next"], "swap_a"),
     helper.make_node("Identity", ["a"], ["b_next"], "swap_b")],
    "states",
    [helper.make_tensor_value_info(n, TensorProto.FLOAT, [1, 32]) for n in ("x", "h", "a", "b")],
    [helper.make_tensor_value_info(n, TensorProto.FLOAT, [1, 32])
     for n in ("h_next", "a_next", "b_next", "y")],
    [weight("w", 32, 32)])
model = save("states", graph)
run = session(model, [])
x = {n: rng.standard_normal((1, 32)).astype(np.float32) for n in ("x", "h", "a", "b")}
step = x
for i in range(3):
    out = dict(zip(("h_next", "a_next", "b_next", "y"), run.run(["h_next", "a_next", "b_next", "y"], step)))
    step = {"x": x["x"], "h": out["h_next"], "a": out["a_next"], "b": out["b_next"]}
# raw, for states.c: x h a b, then h_next a_next b_next y of the third step
np.concatenate([x[n].ravel() for n in ("x", "h", "a", "b")] +
               [out[n].ravel() for n in ("h_next", "a_next", "b_next", "y")]).tofile(f"{folder}/states.f32")

# ---- shape buckets: any number of rows ------------------------------------------------------------
graph = helper.make_graph(
    [helper.make_node("Conv", ["data", "w0", "b0"], ["conv"], pads=[1, 1, 1, 1]),
     helper.make_node("Relu", ["conv"], ["relu"]),
     helper.make_node("GlobalAveragePool", ["relu"], ["pool"]),
     helper.make_node("Flatten", ["pool"], ["flat"]),
     helper.make_node("Gemm", ["flat", "w1", "b1"], ["hidden"], transB=1),
     helper.make_node("Tanh", ["hidden"], ["tanh"]),
     helper.make_node("Gemm", ["tanh", "w2"], ["y"], transB=1)],
    "rows",
    [helper.make_tensor_value_info("data", TensorProto.FLOAT, ["N", 3, 10, 12])],
    [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["N", 24])],
    [weight("w0", 32, 3, 3, 3), weight("b0", 32), weight("w1", 64, 32), weight("b1", 64),
     weight("w2", 24, 64)])
model = save("rows", graph)
data = rng.standard_normal((8, 3, 10, 12)).astype(np.float32)
y = session(model, []).run(["y"], {"data": data})[0]
np.concatenate([data.ravel(), y.ravel()]).tofile(f"{folder}/rows.f32")  # for rows.c
for n in (1, 3, 4):
    np.savez(f"{folder}/rows{n}.in.npz", data=data[:n])
    np.savez(f"{folder}/rows{n}.out.npz", y=y[:n])
np.savez(f"{folder}/rows18.in.npz", data=np.zeros((18, 3, 10, 12), np.float32))
