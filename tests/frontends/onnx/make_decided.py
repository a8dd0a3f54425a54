#!/usr/bin/env python3
"""Writes the models of decided/: make_decided.py (needs onnx, numpy, onnxruntime).

Operators whose sizes, axes and lengths are inputs; files as make_counted.py writes them.  Each case has random
numbers of its own, so that a new one changes no other.
"""
import os
import zlib

import numpy as np
import onnx
import onnxruntime as ort
from onnx.reference import ReferenceEvaluator

from make import F, I, h, init, model, node, value

HERE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "decided")
lines = []


def ints(*v):
    return np.array(v, np.int64)


def one(v, t=np.int64):
    return np.array(v, t)


def case(name, options, feeds, nodes, ins, outs, opset=20, by_reference=False, **inits):
    """A feed is a function of a generator; outs are names, or values with the shape that the model declares."""
    rng = np.random.default_rng(zlib.crc32(name.encode()))
    m = model(nodes, ins, [value(o, F, None) if isinstance(o, str) else o for o in outs],
              [init(k, v) for k, v in inits.items()], opset=opset).SerializeToString()
    with open(os.path.join(HERE, name + ".onnx"), "wb") as out:
        out.write(m)
    made = [o if isinstance(o, str) else o.name for o in outs]
    so = ort.SessionOptions()
    so.log_severity_level = 3
    session = None if by_reference else ort.InferenceSession(m, so, providers=["CPUExecutionProvider"])
    for k, feed in enumerate(feeds):
        feed = feed(lambda *s: rng.standard_normal(s).astype(np.float32))
        np.savez_compressed(os.path.join(HERE, f"{name}.{k}.in.npz"), **feed)
        got = ReferenceEvaluator(m).run(None, feed) if by_reference else session.run(None, feed)
        np.savez_compressed(os.path.join(HERE, f"{name}.{k}.out.npz"), **dict(zip(made, got)))
    lines.append(f"{name} {len(feeds)} {options}".strip())


def again(name, options):
    """The same model and feeds with other bounds."""
    lines.append(next(f"{name} {line.split()[1]} {options}" for line in lines if line.split()[0] == name))


def grids():
    """Of pictures and volumes, with the ends and with the middles of cells; the picture's sizes are declared, the others not."""
    feed = lambda N, h, w, d: lambda f: dict(t=f(N, 2, 3), s=ints(N, 3, h, w), u=f(1, 3, 4), v=ints(1, 2, d, h, w))
    case("grids", "--dim N=1..3 --dim h=1..9 --dim w=1..9 --dim z.1=1..4 --dim z.2=1..9 --dim z.3=1..9",
         [feed(1, 4, 5, 3), feed(3, 9, 2, 4), feed(2, 7, 9, 2)],
         [node("AffineGrid", "t s", "y"), node("AffineGrid", "u v", "z", align_corners=1)],
         [value("t", F, ["N", 2, 3]), value("s", I, [4]), value("u", F, [1, 3, 4]), value("v", I, [5])],
         [value("y", F, ["N", "h", "w", 2]), "z"])


def columns():
    """Blocks that overlap, with gaps in them, beyond the borders, and of one dimension."""
    def feed(N, C, picture, block, row):
        tall = [(p + 1 - (b - 1) * 2 - 1) // s + 1 for p, b, s in zip(picture, block, (2, 1))]
        return lambda f: dict(x=f(N, C * block[0] * block[1], tall[0] * tall[1]), p=ints(*picture), b=ints(*block),
                              r=f(1, 4, row - 1), q=ints(row), c=ints(2))
    case("columns", "--dim N=1..2 --dim C=1..12 --dim L=1..64 --dim R=1..9 --dim y.2=1..9 --dim y.3=1..9 --dim z.2=1..9",
         [feed(1, 1, (7, 6), (2, 2), 5), feed(2, 3, (9, 9), (1, 3), 9), feed(1, 2, (5, 8), (3, 1), 3)],
         [node("Col2Im", "x p b", "y", dilations=[2, 2], pads=[0, 1, 1, 0], strides=[2, 1]), node("Col2Im", "r q c", "z")],
         [value("x", F, ["N", "C", "L"]), value("p", I, [2]), value("b", I, [2]), value("r", F, [1, 4, "R"]), value("q", I, [1]),
          value("c", I, [1])], ["y", "z"])


def spectra():
    """Axes and lengths of the run: longer and shorter than the signal, one side, and back."""
    feed = lambda axis, length: lambda f: dict(x=f(2, 7, 5, 1), a=one(axis), n=one(length), h=f(2, 4, 5, 2))
    case("spectra", "--dim *=1..12", [feed(1, 7), feed(2, 12), feed(-2, 3), feed(0, 2)],
         [node("DFT", "x _ a", "y"), node("DFT", "x n a", "z"), node("DFT", "x n a", "one", onesided=1),
          node("DFT", "h _ a", "back", inverse=1), node("DFT", "x n axis", "long")],
         [value("x", F, [2, 7, 5, 1]), value("a", I, []), value("n", I, []), value("h", F, [2, 4, 5, 2])],
         ["y", "z", "one", "back", "long"], axis=one(1))


def frames():
    """Steps and lengths of frames; windows of the run."""
    feed = lambda step, length: lambda f: dict(x=f(2, 40), s=one(step), n=one(length), w=one(16))
    case("frames", "--dim window.0=1..16", [feed(4, 16), feed(7, 9), feed(1, 40)],
         [node("HannWindow", "w", "window"), node("STFT", "x s window", "y"), node("STFT", "x s _ n", "z", onesided=0)],
         [value("x", F, [2, 40]), value("s", I, []), value("n", I, []), value("w", I, [])], ["y", "z", "window"])


def bands():
    feed = lambda m, n, rate, lo, hi: lambda f: dict(m=one(m), n=one(n), r=one(rate), lo=one(lo, np.float32), hi=one(hi, np.float32))
    case("bands", "--dim y.0=1..40 --dim y.1=1..16", [feed(8, 16, 8192, 0, 4000), feed(16, 64, 16000, 100, 7000), feed(3, 8, 8000, 0, 3000)],
         [node("MelWeightMatrix", "m n r lo hi", "y")],
         [value("m", I, []), value("n", I, []), value("r", I, []), value("lo", F, []), value("hi", F, [])], ["y"])


def nothing():
    """Reductions along axes of the run, of dimensions that may be empty."""
    feed = lambda n, m, axis: lambda f: dict(all=f(4, 3, 5), k=ints(n, m), a=ints(axis))
    case("nothing", "", [feed(0, 5, 0), feed(4, 0, 2), feed(3, 2, -2), feed(0, 0, 2)],
         [node("Slice", "all begin k ends", "x"), node("ReduceSum", "x a", "s"), node("ReduceProd", "x a", "p", keepdims=0), node("ReduceL2", "x a", "l"),
          node("ReduceSumSquare", "x a", "q", keepdims=0), node("ReduceMin", "x a", "least"),
          node("ReduceLogSumExp", "x a", "e")],
         [value("all", F, [4, 3, 5]), value("k", I, [2]), value("a", I, [1])], ["s", "p", "l", "q", "least", "e"],
         begin=ints(0, 0), ends=ints(0, 2))


def repeated():
    """Quotients by a size that may be 0: nothing repeated is nothing."""
    feed = lambda n: lambda f: dict(x=f(7, 3), n=ints(n))
    case("repeated", "", [feed(0), feed(3), feed(7)],
         [node("Slice", "x begin n", "h"), node("Tile", "h reps", "y"), node("Slice", "y one last", "z")],
         [value("x", F, [7, 3]), value("n", I, [1])], ["y", "z"], begin=ints(0), reps=ints(3, 2), one=ints(1), last=ints(-1))


def smooth():
    """Resize with antialias, by scales and by sizes."""
    feed = lambda s, n: lambda f: dict(x=f(1, 2, 9, 8), s=np.array(s, np.float32), n=ints(*n))
    case("smooth", "--dim *=1..20", [feed((0.5, 0.6), (3, 8)), feed((0.3, 1), (9, 2)), feed((1.5, 0.25), (1, 13))],
         [node("Resize", "x _ s", "l", mode="linear", antialias=1, axes=[2, 3]),
          node("Resize", "x _ s", "c", mode="cubic", antialias=1, axes=[2, 3]),
          node("Resize", "x _ _ n", "o", mode="cubic", antialias=1, axes=[2, 3], exclude_outside=1)],
         [value("x", F, [1, 2, 9, 8]), value("s", F, [2]), value("n", I, [2])], ["l", "c", "o"])


def larger():
    """MaxUnpool into a size of the run, which ONNX Runtime takes the indices to be of."""
    feed = lambda *s: lambda f: dict(x=f(1, 1, 4, 6), s=ints(1, 1, *s))
    case("larger", "--dim y.2=4..8 --dim y.3=6..9", [feed(4, 6), feed(5, 9), feed(8, 7)],
         [node("MaxPool", "x", "p i", kernel_shape=[2, 2], strides=[2, 2]), node("MaxUnpool", "p i s", "y", kernel_shape=[2, 2], strides=[2, 2])],
         [value("x", F, [1, 1, 4, 6]), value("s", I, [4])], ["y"], opset=11, by_reference=True)


def unsaid():
    """No bounds at all, and sizes that are equal since their values are; indices of fewer rows than the data."""
    feed = lambda n, m: lambda f: dict(n=one(n), m=ints(m), x=f(9, 3))
    case("unsaid", "-Wno-dim-bound", [feed(3, 2), feed(9, 9), feed(1, 5), feed(4, 0)],
         [node("Range", "zero n step", "r"), node("ConstantOfShape", "m", "c"), node("Slice", "x begin m", "h"),
          node("Expand", "x0 m", "e"), node("Add", "c e", "a"), node("Concat", "m three", "shape", axis=0),
          node("ConstantOfShape", "shape", "i", value=init("v", ints(1))), node("GatherElements", "x i", "g"),
          node("Pad", "h pads", "p")],
         [value("n", I, []), value("m", I, [1]), value("x", F, [9, 3])],
         [value("r", I, None), "a", "g", "p"], zero=one(0), step=one(1), begin=ints(0), x0=np.float32([2]), three=ints(3), pads=ints(0, 1, 1, 0))


def groups():
    """What is there once: cells, rows, columns of more dimensions; in order and as they come; put together again."""
    def feed(n):
        few = lambda f, *s: np.round(f(*s)).astype(np.float32)
        return lambda f: dict(x=few(f, n, 3), z=few(f, 3, n), i=np.array([3, 1, -2, 1, 3, 3, 1, 7]))
    outs = lambda k: " ".join(f"{name}{k}" for name in ("v", "at", "inv", "many"))
    whole = [f"{name}{k}" for name in ("at", "inv", "many") for k in range(5)] + ["v4", "back4"]
    case("groups", "--dim N=1..9", [feed(1), feed(9), feed(6)],
         [node("Unique", "x", outs(0)), node("Unique", "x", outs(1), sorted=0), node("Unique", "x", outs(2), axis=0),
          node("Unique", "z", outs(3), axis=-1, sorted=0), node("Unique", "i", outs(4)), node("Gather", "v4 inv4", "back4"),
          node("Transpose", "v3", "t3"), node("Concat", "v2 t3", "both", axis=0),
          node("Gather", "v2 inv2", "back2"), node("Concat", "back2 x", "beside", axis=1)],
         [value("x", F, ["N", 3]), value("z", F, [3, "N"]), value("i", I, [8])],
         ["v0", "v1", "v2", "v3", "both", "beside"] + [value(o, I, None) for o in whole])


def recurrent():
    """Sequences of lengths of their own, back and forth, with all that a cell may have; sizes of the run."""
    H, I = 3, 2
    feed = lambda T, *lens: lambda f: dict(x=f(T, len(lens), I), n=np.array(lens, np.int32), p=f(2, 3 * H))
    weights = np.random.default_rng(5)
    w = lambda *s: weights.standard_normal(s).astype(np.float32)
    case("recurrent", "--dim T=1..9 --dim N=1..4", [feed(1, 1), feed(9, 3, 9, 1, 6), feed(5, 5, 2)],
         [node("LSTM", "x wl rl bl n _ _ p", "yl hl cl", hidden_size=H, direction="bidirectional", clip=0.7),
          node("LSTM", "x wl rl", "yp hp cp", hidden_size=H, direction="bidirectional"),
          node("LSTM", "x w1 r1 _ n", "ys", hidden_size=H, direction="reverse", activations=["Sigmoid", "Relu", "Tanh"]),
          node("GRU", "x wg rg bg n", "yg hg", hidden_size=H, direction="bidirectional"),
          node("GRU", "x wg rg bg n", "yz hz", hidden_size=H, direction="bidirectional", linear_before_reset=1),
          node("RNN", "x wr rr br n", "yr hr", hidden_size=H, direction="bidirectional", activations=["Tanh", "Relu"])],
         [value("x", F, ["T", "N", I]), value("n", onnx.TensorProto.INT32, ["N"]), value("p", F, [2, 3 * H])],
         ["yl", "hl", "cl", "yp", "hp", "cp", "ys", "yg", "hg", "yz", "hz", "yr", "hr"],
         wl=w(2, 4 * H, I), rl=w(2, 4 * H, H), bl=w(2, 8 * H), w1=w(1, 4 * H, I), r1=w(1, 4 * H, H),
         wg=w(2, 3 * H, I), rg=w(2, 3 * H, H), bg=w(2, 6 * H), wr=w(2, H, I), rr=w(2, H, H), br=w(2, 2 * H))


def rounds():
    """What a round slices has a size of its own, the pieces that it gives are of the one that the body declares."""
    body = h.make_graph(
        [node("Identity", "go", "on"), node("Unsqueeze", "i axis", "at"), node("Add", "at m", "to"), node("Slice", "x at to", "part"),
         node("ReduceSum", "part", "sum", keepdims=0), node("Add", "s sum", "t"), node("Mul", "part m0", "piece")], "body",
        [value("i", I, []), value("go", onnx.TensorProto.BOOL, []), value("s", F, [])],
        [value("on", onnx.TensorProto.BOOL, []), value("t", F, []), value("piece", F, [2])])
    feed = lambda *_: lambda f: dict(x=f(7), m=ints(2), s=one(1, np.float32))
    case("rounds", "", [feed()],
         [node("Cast", "m", "m0", to=F), node("Loop", "n _ s", "y z", body=body)],
         [value("x", F, [7]), value("m", I, [1]), value("s", F, [])], ["y", "z"], n=one(5), axis=ints(0))


def counted():
    """Rounds as TensorFlow's exporter has them, up to the length of a sequence, which a state hands on; down to a number; and at most as
    many as another dimension says."""
    body = lambda compare, step: h.make_graph(
        [node("Add", "k %s" % step, "k1"), node("Cast", "k1", "kf", to=F), node("Cast", "t", "tf", to=F), node(compare, "kf tf", "on"),
         node("Clip", "k zero", "at"), node("Gather", "x at", "row", axis=0), node("Add", "s row", "s1"), node("Tanh", "s1", "piece")], "body",
        [value("i", I, []), value("go", onnx.TensorProto.BOOL, []), value("k", I, []), value("t", I, []), value("s", F, [3])],
        [value("on", onnx.TensorProto.BOOL, []), value("k1", I, []), value("t", I, []), value("s1", F, [3]), value("piece", F, [3])])
    feed = lambda T, N: lambda f: dict(x=f(T, 3), v=f(N, 2))
    case("steps", "--dim T=1..9 --dim N=1..5", [feed(1, 5), feed(9, 5), feed(6, 2)],
         [node("Shape", "x", "xs"), node("Gather", "xs zero", "T"), node("Cast", "T", "Tf", to=F), node("Less", "zero_f Tf", "first"),
          node("Loop", "_ first zero T none", "k0 t0 y yp", body=body("Less", "one")),
          node("Sub", "T one", "last"), node("Loop", "_ _ last minus none", "k1o t1o z zp", body=body("Greater", "minus")),
          node("Shape", "v", "vs"), node("Gather", "vs zero", "N"),
          node("Loop", "N first zero T none", "k2 t2 w wp", body=body("Less", "one"))],
         [value("x", F, ["T", 3]), value("v", F, ["N", 2])], ["y", "yp", "z", "zp", "w", "wp"],
         zero=one(0), one=one(1), minus=one(-1), zero_f=one(0, np.float32), none=np.zeros(3, np.float32))


def unread():
    """States as PaddlePaddle's exporter has them: a flag whose rank a round changes, and one that rounds make only."""
    body = h.make_graph(
        [node("Add", "k one", "k1"), node("Gather", "x k", "row", axis=0), node("Add", "s row", "s1"), node("Tanh", "s1", "last1"),
         node("ReduceMax", "s1", "most", keepdims=0), node("Less", "most limit", "small"), node("Less", "k1 n", "more"),
         node("And", "small more", "on"), node("Reshape", "small shape", "flag1"), node("Not", "flag", "other"),
         node("Cast", "other", "piece", to=F)], "body",
        [value("i", I, []), value("go", onnx.TensorProto.BOOL, []), value("k", I, []), value("s", F, [1, 3]), value("flag", onnx.TensorProto.BOOL, None),
         value("last", F, None)],
        [value("on", onnx.TensorProto.BOOL, []), value("k1", I, []), value("s1", F, [1, 3]), value("flag1", onnx.TensorProto.BOOL, None),
         value("last1", F, None)])
    feed = lambda limit: lambda f: dict(x=f(8, 3), limit=one(limit, np.float32))
    case("unread", "", [feed(-9), feed(1.5), feed(99)],
         [node("Loop", "_ _ zero none no undefined", "k1o s flag l", body=body), node("Relu", "s", "y"), node("Mul", "l two", "z"),
          node("Cast", "flag", "f", to=F)],
         [value("x", F, [8, 3]), value("limit", F, [])], ["y", "z", "f"],
         zero=one(0), one=one(1), n=one(8), none=np.zeros((1, 3), np.float32), no=np.array(False), undefined=one(0, np.float32),
         two=one(2, np.float32), shape=ints(1))


def products():
    """Columns and rows that masks of their own choose, as many of both; a column and a row that the model knows."""
    feed = lambda *m: lambda f: dict(x=f(3, 6), y=f(6, 4), m=np.array(m, bool), k=np.array(m[::-1], bool), w=f(2, 3))
    case("products", "", [feed(1, 0, 1, 1, 0, 0), feed(1, 1, 1, 0, 0, 0)],
         [node("Compress", "x m", "a", axis=1), node("Compress", "y k", "b", axis=0), node("MatMul", "a b", "p"),
          node("MatMul", "w b", "q"), node("Transpose", "b", "t"), node("MatMul", "t v", "r")],
         [value("x", F, [3, 6]), value("y", F, [6, 4]), value("m", onnx.TensorProto.BOOL, [6]), value("k", onnx.TensorProto.BOOL, [6]),
          value("w", F, [2, 3])], ["p", "q", "r"], v=np.float32([[1], [-2], [3]]))


def one_step():
    """Rows read backwards, each of its own length, where there is one step."""
    H, C = 2, 3
    w = lambda *s: np.random.default_rng(s).standard_normal(s).astype(np.float32)
    feed = lambda *n: lambda f: dict(x=f(1, 2, C), n=np.array(n, np.int32))
    case("one_step", "", [feed(1, 1)],
         [node("LSTM", "x wl rl _ n", "yl hl cl", hidden_size=H, direction="bidirectional"),
          node("GRU", "x wg rg _ n", "yg hg", hidden_size=H, direction="reverse"),
          node("RNN", "x wr rr _ n", "yr hr", hidden_size=H, direction="bidirectional")],
         [value("x", F, [1, 2, C]), value("n", onnx.TensorProto.INT32, [2])], ["yl", "hl", "cl", "yg", "hg", "yr", "hr"],
         wl=w(2, 4 * H, C), rl=w(2, 4 * H, H), wg=w(1, 3 * H, C), rg=w(1, 3 * H, H), wr=w(2, H, C), rr=w(2, H, H))


def of_nothing():
    """A tensor without cells repeated and cut backwards, and axes of which there are none."""
    feed = lambda a, b, step: lambda f: dict(x=f(2, 0), r=ints(a, b), c=ints(step), s=f(3, 5), a=ints())
    case("of_nothing", "--dim m=0..9", [feed(3, 2, -1), feed(0, 1, 1), feed(1, 0, -2)],
         [node("Tile", "x r", "y"), node("Slice", "x from to last c", "z"), node("Unsqueeze", "s a", "t"),
          node("ReduceProd", "x first", "p", keepdims=0)],
         [value("x", F, [2, 0]), value("r", I, [2]), value("c", I, [1]), value("s", F, [3, 5]), value("a", I, [0])],
         [value("y", F, ["m", 0]), value("z", F, [2, 0]), value("t", F, [3, 5]), value("p", F, [2])],
         **{"from": ints(0), "to": ints(-9), "last": ints(1), "first": ints(1)})


def ordered():
    """Rows without a limit in order: the first of them, as many as the run says; once each; boxes apart; what is not zero."""
    def feed(T, k, most):
        boxes = lambda f: np.sort(f(1, T, 2, 2), 2).reshape(1, T, 4)
        return lambda f: dict(x=np.round(2 * f(2, T)), k=ints(k), b=boxes(f), s=f(1, 2, T), m=ints(most))
    case("ordered", "--dim T=3..", [feed(3, 3, 2), feed(70, 9, 100), feed(700, 650, 5)],
         [node("TopK", "x k", "v at"), node("TopK", "x three", "w wat", largest=0), node("Unique", "x", "u first inv many"),
          node("NonMaxSuppression", "b s m half", "boxes"), node("NonZero", "x", "z"), node("Transpose", "z", "zt"),
          node("GatherND", "x zt", "y")],
         [value("x", F, [2, "T"]), value("k", I, [1]), value("b", F, [1, "T", 4]), value("s", F, [1, 2, "T"]), value("m", I, [1])],
         ["v", "w", "u", "y"] + [value(o, I, None) for o in ("at", "wat", "first", "inv", "many", "boxes", "z")],
         three=ints(3), half=np.float32([0.5]))


def buffered():
    """A row of a buffer for each step, as the older exporter of PyTorch writes index_copy: a size is put into a shape."""
    feed = lambda N, *at: lambda f: dict(k=f(N, 2, 9, 4), v=f(N, 2, len(at), 4), at=np.array(at))
    case("buffered", "--dim N=1..3 --dim S=1..9", [feed(1, 3), feed(3, 0, 8, 4), feed(2, *range(9))],
         [node("Unsqueeze", "at axes", "u"), node("Shape", "k", "ks"), node("Shape", "at", "n"), node("ScatterElements", "ks two n", "shape"),
          node("Expand", "u shape", "i"), node("ScatterElements", "k i v", "y", axis=2)],
         [value("k", F, ["N", 2, 9, 4]), value("v", F, ["N", 2, "S", 4]), value("at", I, ["S"])], ["y"],
         axes=ints(0, 1, 3), two=ints(2))


def main():
    for make in (grids, columns, spectra, frames, bands, nothing, repeated, smooth, larger, unsaid, groups, recurrent, rounds, counted, unread,
                 products, one_step, of_nothing, ordered, buffered):
        make()
    again("columns", "--dim N=1.. --dim C=1.. --dim L=1.. --dim R=1.. --dim y.2=1..9 --dim y.3=1..9 --dim z.2=1..9")
    again("groups", "--dim N=1..")
    again("steps", "--dim T=1.. --dim N=1..")
    with open(os.path.join(HERE, "cases.txt"), "w") as out:
        out.write("".join(line + "\n" for line in lines))


main()
