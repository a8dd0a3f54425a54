#!/usr/bin/env python3
"""Writes the models of optimized/: make_optimized.py (needs onnx, numpy, onnxruntime; a machine with AVX-512).

Small networks as ONNX Runtime's optimizer writes them at each of its levels, against the results of the original.
Files are as those of sizes/ (make_sizes.py).  At level 3 the blocks of channels are those of the machine, of 16
cells; `blocks_8` is the same file with weights in blocks of 8.
"""
import os

import numpy as np
import onnx
import onnxruntime as ort
from make import F, I, init, model, node, value
from onnx import numpy_helper

HERE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "optimized")
LEVELS = {"basic": 1, "extended": 2, "layout": 3}
lines = []
rng = np.random.default_rng(11)


def f(*s):
    return (rng.standard_normal(s) / np.sqrt(np.prod(s[1:]) or 1)).astype(np.float32)


def session(m, level, path=""):
    so = ort.SessionOptions()
    so.log_severity_level = 4
    so.graph_optimization_level = ort.GraphOptimizationLevel(level)
    so.optimized_model_filepath = path
    return ort.InferenceSession(m, so, providers=["CPUExecutionProvider"])


def case(name, nodes, feeds, options="", **inits):
    ints = lambda v: F if v.dtype == np.float32 else I
    m = model(nodes, [value(k, ints(v), v.shape) for k, v in feeds.items()], [value("y", F, None)],
              [init(k, v) for k, v in inits.items()]).SerializeToString()
    y = session(m, 0).run(None, feeds)
    for level, number in LEVELS.items():
        path = os.path.join(HERE, f"{name}_{level}.onnx")
        session(m, number, path)
        record(f"{name}_{level}", feeds, y, options if level == "layout" else "")


def record(name, feeds, y, options):
    np.savez_compressed(os.path.join(HERE, name + ".0.in.npz"), **feeds)
    np.savez_compressed(os.path.join(HERE, name + ".0.out.npz"), y=y[0])
    lines.append(f"{name} 1 {options}".rstrip())


def pictures():
    """Whole and partial blocks, few channels, depthwise, groups, pools, sums, concatenation, twice the size."""
    conv = lambda x, w, y, k=3, **a: node("Conv", f"{x} {w}", y, kernel_shape=[k, k], pads=[k // 2] * 4, **a)
    case("pictures",
         [conv("x", "w1", "a0"), node("Relu", "a0", "a"), conv("a", "w2", "b0", group=32), node("Clip", "b0 zero six", "b"),
          conv("b", "w3", "c0", 1), node("Add", "c0 a", "c1"), node("Relu", "c1", "c"), node("MaxPool", "c", "d", kernel_shape=[2, 2], strides=[2, 2]),
          conv("d", "w4", "e", group=2), node("AveragePool", "e", "f", kernel_shape=[3, 3], pads=[1] * 4), node("Concat", "f d", "g", axis=1),
          node("Resize", "g _ scales", "h", mode="nearest", coordinate_transformation_mode="asymmetric", nearest_mode="floor"),
          conv("h", "w5", "i0", 1), node("LeakyRelu", "i0", "i", alpha=0.1), node("GlobalAveragePool", "i", "j"), node("Flatten", "j", "k"),
          node("Gemm", "k w6", "l"), node("Tanh", "l", "y")],
         {"x": rng.standard_normal((1, 3, 8, 8)).astype(np.float32)}, "--dim nchwc=16", w1=f(32, 3, 3, 3), w2=f(32, 1, 3, 3), w3=f(32, 32, 1, 1),
         w4=f(32, 16, 3, 3), w5=f(24, 64, 1, 1), w6=f(24, 5), zero=np.float32(0), six=np.float32(6), scales=np.array([1, 1, 2, 2], np.float32))


def planes():
    """Channels that fill no block, on the way in and out."""
    conv = lambda x, w, y, k: node("Conv", f"{x} {w}", y, kernel_shape=[k, k], pads=[k // 2] * 4)
    case("planes", [conv("x", "w1", "a0", 3), node("Relu", "a0", "a"), conv("a", "w2", "b", 1), node("GlobalMaxPool", "a", "c"),
                    node("ReduceMean", "c", "e"), node("Mul", "b e", "d"), node("Sigmoid", "d", "y")],
         {"x": rng.standard_normal((1, 20, 5, 4)).astype(np.float32)}, "--dim nchwc=16", w1=f(36, 20, 3, 3), w2=f(20, 36, 1, 1))


def blocks_8():
    """pictures_layout, as a machine with vectors of 8 cells would have it: its 24 channels are whole blocks."""
    m = onnx.load(os.path.join(HERE, "pictures_layout.onnx"))
    weights = {i.name: i for i in m.graph.initializer}
    for n in m.graph.node:
        if n.op_type != "Conv":
            continue
        w = numpy_helper.to_array(weights[n.input[1]])
        O, I, h, v = w.shape
        both = I >= 16
        if both:
            plain = w.reshape(O // 16, I // 16, h, v, 16, 16).transpose(0, 5, 1, 4, 2, 3).reshape(O, I, h, v)
        else:
            plain = w.reshape(O // 16, I, h, v, 16).transpose(0, 4, 1, 2, 3).reshape(O, I, h, v)
        if O == 32 and n.output[0] and not plain[24:].any():  # 24 channels and 8 of filling
            plain, O = plain[:24], 24
        w = plain.reshape(O // 8, 8, I // 8, 8, h, v).transpose(0, 2, 4, 5, 3, 1) if both else plain.reshape(O // 8, 8, I, h, v).transpose(
            0, 2, 3, 4, 1)
        weights[n.input[1]].CopyFrom(numpy_helper.from_array(np.ascontiguousarray(w).reshape(O, I, h, v), n.input[1]))
    with open(os.path.join(HERE, "blocks_8.onnx"), "wb") as out:
        out.write(m.SerializeToString())
    load = lambda what: dict(np.load(os.path.join(HERE, f"pictures_layout.0.{what}.npz")))
    record("blocks_8", load("in"), [load("out")["y"]], "")


def words():
    """An encoder's layer in the pieces that exporters write: norms, Gelu and attention are put together again."""
    mean = lambda x, y: [node("ReduceMean", x, y + "m", axes=[-1]), node("Sub", f"{x} {y}m", y + "d"), node("Pow", f"{y}d two", y + "q"),
                         node("ReduceMean", y + "q", y + "v", axes=[-1]), node("Add", f"{y}v eps", y + "e"), node("Sqrt", y + "e", y + "s"),
                         node("Div", f"{y}d {y}s", y + "n"), node("Mul", f"{y}n g", y + "g"), node("Add", f"{y}g h", y)]
    heads = lambda w, y, perm: [node("MatMul", f"x {w}", y + "0"), node("Reshape", f"{y}0 by", y + "1"), node("Transpose", y + "1", y, perm=perm)]
    case("words", [node("Gather", "table ids", "e")] + mean("e", "x") + heads("wq", "q", [0, 2, 1, 3]) + heads("wk", "k", [0, 2, 3, 1])
         + heads("wv", "v", [0, 2, 1, 3])
         + [node("MatMul", "q k", "s0"), node("Div", "s0 two", "s1"), node("Softmax", "s1", "p", axis=-1), node("MatMul", "p v", "o0"),
            node("Transpose", "o0", "o1", perm=[0, 2, 1, 3]), node("Reshape", "o1 flat", "o2"), node("MatMul", "o2 wo", "o3"),
            node("Add", "o3 x", "r")] + mean("r", "z")
         + [node("MatMul", "z wu", "u0"), node("Add", "u0 bu", "u"), node("Div", "u root", "t0"), node("Erf", "t0", "t1"), node("Add", "t1 one", "t2"),
            node("Mul", "u t2", "t3"), node("Mul", "t3 half", "t4"), node("MatMul", "t4 wd", "y0"), node("Add", "y0 z", "y1")] + mean("y1", "y"),
         {"ids": rng.integers(0, 9, (2, 5))}, table=f(9, 8), g=1 + f(8), h=f(8), wq=f(8, 8), wk=f(8, 8), wv=f(8, 8), wo=f(8, 8), wu=f(8, 16), bu=f(16),
         wd=f(16, 8), by=np.array([2, 5, 2, 4]), flat=np.array([2, 5, 8]), two=np.float32(2), eps=np.float32(1e-5), one=np.float32(1),
         half=np.float32(0.5), root=np.float32(np.sqrt(2)))


def bytes_():
    """Quantized: at level 3 channels are last."""
    q = {"s": np.float32(0.02), "z": np.uint8(128), "t": np.float32(0.01), "o": np.int8(0)}
    quant = lambda x, s="s z": [node("QuantizeLinear", f"{x} {s}", x + "q"), node("DequantizeLinear", f"{x}q {s}", x + "d")]
    weight = lambda w: [node("DequantizeLinear", f"{w} t o", w + "d")]
    case("bytes", quant("x") + weight("w1") + weight("w2")
         + [node("Conv", "xd w1d", "a0", pads=[1] * 4), node("Relu", "a0", "a")] + quant("a") + [node("Conv", "ad w2d", "b")] + quant("b")
         + [node("Add", "bd ad", "c")] + quant("c") + [node("GlobalAveragePool", "cd", "e")] + quant("e") + [node("Identity", "ed", "y")],
         {"x": rng.standard_normal((1, 3, 6, 6)).astype(np.float32)}, w1=rng.integers(-99, 99, (16, 3, 3, 3)).astype(np.int8),
         w2=rng.integers(-99, 99, (16, 16, 1, 1)).astype(np.int8), **q)


if __name__ == "__main__":
    os.makedirs(HERE, exist_ok=True)
    for family in (pictures, planes, blocks_8, words, bytes_):
        family()
    with open(os.path.join(HERE, "cases.txt"), "w") as out:
        out.write("\n".join(lines) + "\n")
