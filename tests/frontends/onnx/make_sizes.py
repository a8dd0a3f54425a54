#!/usr/bin/env python3
"""Writes the models of sizes/: make_sizes.py (needs onnx, numpy, onnxruntime).

sizes/NAME.onnx      a small network with named dimensions, its shape arithmetic as exporters write it
sizes/NAME.K.in.npz  inputs of the K-th size, random; NAME.K.out.npz what ONNX Runtime makes of them
sizes/cases.txt      NAME, how many sizes, the options that leave the dimensions to the run
"""
import os

import numpy as np
import onnxruntime as ort
from make import B, F, I, init, model, node, value

HERE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "sizes")
rng = np.random.default_rng(7)
lines = []


def f(*s):
    return rng.standard_normal(s).astype(np.float32)


def ints(*v):
    return np.array(v, np.int64)


def case(name, options, sizes, nodes, ins, outs, **inits):
    m = model(nodes, ins, [value(o, F, None) if isinstance(o, str) else o for o in outs],
              [init(k, v) for k, v in inits.items()]).SerializeToString()
    with open(os.path.join(HERE, name + ".onnx"), "wb") as out:
        out.write(m)
    so = ort.SessionOptions()
    so.log_severity_level = 3
    session = ort.InferenceSession(m, so, providers=["CPUExecutionProvider"])
    for k, size in enumerate(sizes):
        feeds = {}
        for i in session.get_inputs():
            shape = [eval(d, {}, size) if isinstance(d, str) else d for d in i.shape]
            feeds[i.name] = rng.integers(0, 2, shape) if i.type == "tensor(int64)" else f(*shape)
        np.savez_compressed(os.path.join(HERE, f"{name}.{k}.in.npz"), **feeds)
        np.savez_compressed(os.path.join(HERE, f"{name}.{k}.out.npz"),
                            **dict(zip([o.name for o in session.get_outputs()], session.run(None, feeds))))
    lines.append(f"{name} {len(sizes)} {options}")


def classifier():
    """Flatten by Shape, Gather, Concat and Reshape."""
    case("classifier", "--dim N=1..64", [dict(N=n) for n in (1, 5, 64)],
         [node("Conv", "x w", "c", pads=[1, 1, 1, 1]), node("Relu", "c", "r"),
          node("MaxPool", "r", "p", kernel_shape=[2, 2], strides=[2, 2]), node("Shape", "p", "s"),
          node("Gather", "s zero", "n"), node("Unsqueeze", "n axis", "n1"), node("Concat", "n1 rest", "to", axis=0),
          node("Reshape", "p to", "f"), node("Gemm", "f d b", "g"), node("Softmax", "g", "y")],
         [value("x", F, ["N", 3, 6, 6])], ["y"], w=f(4, 3, 3, 3), zero=np.array(0), axis=ints(0), rest=ints(-1), d=f(36, 5), b=f(5))


def heads(x, w, to, perm, out):
    """x times w, cut into heads: the sizes of each from a Shape of its own."""
    return [node("MatMul", f"{x} {w}", out + "0"), node("Shape", x, out + "s"), node("Gather", f"{out}s zero", out + "b"),
            node("Gather", f"{out}s one", out + "t"), node("Unsqueeze", f"{out}b axis", out + "b1"),
            node("Unsqueeze", f"{out}t axis", out + "t1"), node("Concat", f"{out}b1 {out}t1 {to}", out + "n", axis=0),
            node("Reshape", f"{out}0 {out}n", out + "1"), node("Transpose", out + "1", out, perm=perm)]


def encoder():
    """A layer of an encoder with a mask."""
    case("encoder", "--dim B=1..4 --dim T=1..32", [dict(B=b, T=t) for b, t in ((1, 1), (3, 7), (4, 32))],
         [node("Gather", "table ids", "e"), node("LayerNormalization", "e g h", "x", axis=-1)]
         + heads("x", "wq", "by", [0, 2, 1, 3], "q") + heads("x", "wk", "by", [0, 2, 3, 1], "k") + heads("x", "wv", "by", [0, 2, 1, 3], "v")
         + [node("MatMul", "q k", "s0"), node("Mul", "s0 half", "s1"), node("Unsqueeze", "mask twice", "m0"),
            node("Cast", "m0", "m1", to=F), node("Sub", "onef m1", "m2"), node("Mul", "m2 low", "m3"), node("Add", "s1 m3", "s2"),
            node("Softmax", "s2", "p", axis=-1), node("MatMul", "p v", "o0"), node("Transpose", "o0", "o1", perm=[0, 2, 1, 3]),
            node("Shape", "o1", "os"), node("Slice", "os axis two", "o2"), node("Concat", "o2 all", "on", axis=0),
            node("Reshape", "o1 on", "o3"), node("MatMul", "o3 wo", "o4"), node("Add", "o4 x", "z"),
            node("LayerNormalization", "z g h", "y", axis=-1)],
         [value("ids", I, ["B", "T"]), value("mask", I, ["B", "T"])], ["y"], table=f(3, 8), g=f(8), h=f(8), wq=f(8, 8), wk=f(8, 8),
         wv=f(8, 8), wo=f(8, 8), zero=np.array(0), one=np.array(1), axis=ints(0), by=ints(2, 4), half=np.float32(0.5),
         twice=ints(1, 2), onef=np.float32(1), low=np.float32(-1e4), two=ints(2), all=ints(8))


def decoder():
    """A layer of a decoder: keys of earlier steps, positions from their number, a causal mask cut out of a table."""
    to = "by"
    case("decoder", "--dim B=1..2 --dim S=1..16 --dim P=1..30",
         [dict(B=b, S=s, P=p) for b, s, p in ((1, 1, 1), (2, 16, 30), (1, 1, 13), (2, 5, 8))],
         [node("MatMul", "x w", "k0"), node("Reshape", f"k0 {to}", "k1"), node("Transpose", "k1", "k2", perm=[0, 2, 1, 3]),
          node("Concat", "past k2", "k", axis=2), node("Shape", "k", "ks"), node("Gather", "ks two", "all"),
          node("Shape", "past", "ps"), node("Gather", "ps two", "before"), node("Range", "before all one", "at"),
          node("Gather", "places at", "place"), node("Add", "x place", "xp"), node("MatMul", "xp w", "q0"),
          node("Reshape", f"q0 {to}", "q1"), node("Transpose", "q1", "q", perm=[0, 2, 1, 3]),
          node("Transpose", "k", "kt", perm=[0, 1, 3, 2]), node("MatMul", "q kt", "s0"), node("Unsqueeze", "before axis", "b1"),
          node("Unsqueeze", "all axis", "a1"), node("Slice", "causal b1 a1 axis", "c0"), node("Slice", "c0 axis a1 second", "c1"),
          node("Where", "c1 s0 low", "s1"), node("Softmax", "s1", "p", axis=-1), node("MatMul", "p k", "y")],
         [value("x", F, ["B", "S", 8]), value("past", F, ["B", 2, "P", 4])], ["y", "k"], w=f(8, 8), by=ints(0, 0, 2, 4),
         two=np.array(2), one=np.array(1), places=f(48, 8), causal=np.tril(np.ones((48, 48), bool)), low=np.float32(-1e4),
         axis=ints(0), second=ints(1))


def pictures():
    """Down, up again and joined: rows and columns are even, as the model says."""
    case("pictures", "--dim N=1..4 --dim H=2..16 --dim W=2..16",
         [dict(N=n, H=h, W=w) for n, h, w in ((1, 2, 2), (3, 16, 5), (4, 7, 16))],
         [node("Conv", "x w", "c", pads=[1, 1, 1, 1], strides=[2, 2]), node("Relu", "c", "r"),
          node("Resize", "r _ twice", "u", mode="nearest", coordinate_transformation_mode="asymmetric", nearest_mode="floor"),
          node("Concat", "u x", "j", axis=1), node("Conv", "j v", "d", pads=[1, 1, 1, 1]), node("GlobalAveragePool", "d", "m"),
          node("Mul", "d m", "y")],
         [value("x", F, ["N", 3, "2*H", "2*W"])], ["y"], w=f(4, 3, 3, 3), v=f(2, 7, 3, 3), twice=np.array([1, 1, 2, 2], np.float32))


def tiles():
    """Convolutions of 3x3 that Winograd's algorithm is taken for, at sizes that fill its tiles and others."""
    global rng
    rng = np.random.default_rng(8)
    same = dict(pads=[1, 1, 1, 1], kernel_shape=[3, 3])
    for name, options in (("tiles", "--dim H=32..64 --dim W=32..80"), ("tiles_open", "--dim H=32.. --dim W=32..")):
        case(name, options, [dict(H=32, W=32), dict(H=33, W=79), dict(H=50, W=65)],
             [node("Conv", "x w0", "a", **same), node("Conv", "a w1 b1", "b", **same), node("Relu", "b", "c"),
              node("Conv", "c w2", "d", **same), node("Add", "d a", "e"), node("Conv", "e w3", "y", kernel_shape=[1, 1])],
             [value("x", F, [1, 3, "H", "W"])], ["y"], w0=f(32, 3, 3, 3) * 0.2, w1=f(32, 32, 3, 3) * 0.06, b1=f(32),
             w2=f(32, 32, 3, 3) * 0.06, w3=f(2, 32, 1, 1) * 0.2)


def pixels():
    """Convolutions of 1x1, whose pixels are one line, pools of rows and of all: lines of one pixel, of less than a tile,
    of a block and of several."""
    global rng
    rng = np.random.default_rng(9)
    for name, options, sizes in (
            ("pixels", "--dim N=1..3 --dim H=1..64 --dim W=1..80", ((1, 1, 1), (3, 2, 3), (1, 7, 14), (2, 33, 41), (1, 64, 79))),
            ("pixels_open", "--dim N=1 --dim H=1.. --dim W=1..", ((1, 3, 1), (1, 26, 25), (1, 90, 61)))):
        case(name, options, [dict(N=n, H=h, W=w) for n, h, w in sizes],
             [node("Conv", "x w0", "a", pads=[1, 1, 1, 1], strides=[2, 2]), node("Conv", "a w1 b1", "b"), node("Relu", "b", "c"),
              node("Conv", "c w2", "d"), node("Add", "d a", "e"), node("MaxPool", "e", "p", kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1]),
              node("Conv", "p w3", "q"), node("AveragePool", "q", "r", kernel_shape=[2, 2], pads=[1, 1, 1, 1]), node("GlobalAveragePool", "r", "m"),
              node("Conv", "e w4", "y")],
             [value("x", F, ["N", 3, "H", "W"])], ["m", "y"], w0=f(16, 3, 3, 3) * 0.2, w1=f(96, 16, 1, 1) * 0.2, b1=f(96),
             w2=f(16, 96, 1, 1) * 0.1, w3=f(40, 16, 1, 1) * 0.2, w4=f(8, 16, 1, 1) * 0.2)


def arithmetic():
    """What else is done with sizes: products, quotients, floats, choices, constants of them."""
    case("arithmetic", "--dim N=1..9 --dim T=2..20", [dict(N=n, T=t) for n, t in ((1, 2), (9, 20), (4, 13))],
         [node("Shape", "x", "s"), node("Gather", "s zero", "n"), node("Gather", "s one", "t"), node("Size", "x", "all"),
          node("ReduceProd", "s", "cells", keepdims=1), node("Reshape", "x cells", "flat"), node("Concat", "minus cells", "m1", axis=0),
          node("Equal", "m1 minus", "eq"), node("Where", "eq ones m1", "m2"), node("Expand", "r m2", "e"),
          node("Add", "e flat", "a"), node("Cast", "t", "tf", to=F), node("Mul", "tf half", "th"), node("Floor", "th", "tl"),
          node("Cast", "tl", "ti", to=I), node("Unsqueeze", "ti axis", "t1"), node("Slice", "x axis t1 second", "left"),
          node("Slice", "x t1 huge second", "right"), node("ReduceSum", "left second", "ls", keepdims=0),
          node("ReduceMax", "right", "rm", axes=[1], keepdims=0), node("Mul", "ls rm", "b"), node("ConstantOfShape", "s", "z"),
          node("Add", "x z", "xz"), node("Range", "zero t one", "i"), node("Cast", "i", "if", to=F), node("Mul", "xz if", "c0"),
          node("Cast", "all", "af", to=F), node("Div", "c0 af", "c"), node("Unsqueeze", "n axis", "n1"),
          node("Concat", "n1 ones", "reps", axis=0), node("Tile", "row reps", "d"), node("Neg", "n", "nn"), node("Sub", "t nn", "tn"),
          node("Max", "tn t", "mx"), node("Unsqueeze", "mx axis", "mx1"), node("Expand", "r mx1", "g")],
         [value("x", F, ["N", "T"])], ["a", "b", "c", "d", "g"], zero=np.array(0), one=np.array(1), axis=ints(0), second=ints(1),
         minus=ints(-1), ones=ints(1), r=f(1), half=np.float32(0.5), huge=ints(2**63 - 1), row=f(2, 3))


if __name__ == "__main__":
    os.makedirs(HERE, exist_ok=True)
    classifier()
    encoder()
    decoder()
    pictures()
    arithmetic()
    tiles()
    pixels()
    with open(os.path.join(HERE, "cases.txt"), "w") as out:
        out.write("\n".join(lines) + "\n")
    print(len(os.listdir(HERE)), "files,", sum(os.path.getsize(os.path.join(HERE, n)) for n in os.listdir(HERE)), "bytes")
