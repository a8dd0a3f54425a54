#!/usr/bin/env python3
"""Writes the models of counted/: make_counted.py (needs onnx, numpy, onnxruntime).

counted/NAME.onnx      a small network with results whose sizes its inputs' values decide
counted/NAME.K.in.npz  the K-th inputs; NAME.K.out.npz what ONNX Runtime makes of them
counted/cases.txt      NAME, how many inputs, the options for the model
"""
import os
import re

import numpy as np
import onnxruntime as ort
from make import B, F, I, h, init, model, node, value

HERE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "counted")
rng = np.random.default_rng(11)
lines = []


def f(*s):
    return rng.standard_normal(s).astype(np.float32)


def ints(*v):
    return np.array(v, np.int64)


def flags(share, *s):
    return rng.random(s) < share


def case(name, options, feeds, nodes, ins, outs, opset=17, **inits):
    m = model(nodes, ins, [value(o, F, None) if isinstance(o, str) else o for o in outs],
              [init(k, v) for k, v in inits.items()], opset=opset).SerializeToString()
    with open(os.path.join(HERE, name + ".onnx"), "wb") as out:
        out.write(m)
    so = ort.SessionOptions()
    so.log_severity_level = 3
    session = ort.InferenceSession(m, so, providers=["CPUExecutionProvider"])
    for k, feed in enumerate(feeds):
        np.savez_compressed(os.path.join(HERE, f"{name}.{k}.in.npz"), **feed)
        np.savez_compressed(os.path.join(HERE, f"{name}.{k}.out.npz"),
                            **dict(zip([o.name for o in session.get_outputs()], session.run(None, feed))))
    lines.append(f"{name} {len(feeds)} {options}".strip())


def masked():
    """Rows that a mask chooses, in a network of their own; none, some, all."""
    case("masked", "", [dict(x=f(9, 6), m=flags(d, 9)) for d in (0, 0.5, 1)],
         [node("NonZero", "m", "i"), node("Transpose", "i", "it", perm=[1, 0]), node("GatherND", "x it", "s"),
          node("MatMul", "s w", "d"), node("Softmax", "d", "y", axis=-1), node("Shape", "s", "sh"), node("Expand", "one sh", "e"),
          node("ReduceSum", "s", "z", keepdims=0), node("Add", "s e", "a")],
         [value("x", F, [9, 6]), value("m", B, [9])], [value("y", F, ["chosen", 8]), value("sh", I, [2]), "a", "z"],
         w=f(6, 8), one=f(1))


def chosen():
    """Compress along an axis and of all cells, the k largest, and those again."""
    case("chosen", "--dim N=1..8",
         [dict(x=f(n, 7), c=flags(d, n), d=flags(d, 5), k=ints(k)) for n, d, k in ((1, 0, 0), (8, 0.5, 3), (5, 1, 7), (8, 0, 1))],
         [node("Compress", "x c", "y", axis=0), node("Compress", "x d", "z"), node("TopK", "x k", "v i", axis=1),
          node("TopK", "v k", "w j", axis=1, largest=0), node("Relu", "y", "r")],
         [value("x", F, ["N", 7]), value("c", B, ["N"]), value("d", B, [5]), value("k", I, [1])],
         ["r", "z", value("i", I, None), "w", value("j", I, None)])


def counted():
    """Coordinates of what is not zero, in three dimensions."""
    case("counted", "", [dict(x=(f(3, 4, 5) * flags(d, 3, 4, 5)).astype(np.float32)) for d in (0, 0.1, 0.9)],
         [node("NonZero", "x", "y"), node("Shape", "y", "s"), node("ReduceMax", "x", "m")],
         [value("x", F, [3, 4, 5])], [value("y", I, [3, None]), value("s", I, [2]), "m"])


def sliced():
    """Ends alone, starts and ends from both sides, and all operands: to the left, in steps, of axes in any order."""
    case("sliced", "--dim N=1..9", [dict(x=f(n, 7), e=ints(e)) for n, e in ((9, 0), (9, 3), (4, -2), (1, 99))],
         [node("Slice", "x axis e second", "y"), node("Slice", "x axis e axis", "r"), node("Relu", "r", "z")],
         [value("x", F, ["N", 7]), value("e", I, [1])], ["y", "z"], axis=ints(0), second=ints(1))
    least = -(2**63)
    case("steps", "",
         [dict(x=f(5, 7), s=ints(*s), e=ints(*e), a=ints(*a), t=ints(*t)) for s, e, a, t in (
             ((0, 0), (5, 7), (0, 1), (1, 1)), ((6, 4), (-100, 0), (1, 0), (-2, -1)), ((1, 1), (4, 9), (-1, -2), (2, 3)),
             ((0, -1), (9, least + 1), (0, 1), (2**63 - 1, -3)), ((3, 2), (1, 2), (0, 1), (1, 1)))],
         [node("Slice", "x s e", "y"), node("Slice", "x s e a t", "z")],
         [value("x", F, [5, 7])] + [value(k, I, [2]) for k in "seat"], ["y", "z"])


def shaped():
    """Shapes as they come: ranges, a reshape with 0 and -1, and what grows."""
    case("ranges", "--dim y.0=0..20 --dim count=0..20",
         [dict(s=np.array(s), l=np.array(l), d=np.array(d), fs=np.array(s / 2, np.float32), fl=np.array(l / 2, np.float32),
               fd=np.array(d / 2, np.float32))
          for s, l, d in ((0, 5, 1), (10, -3, -4), (3, 3, 1), (-5, 7, 3))],
         [node("Range", "s l d", "y"), node("Range", "fs fl fd", "z")],
         [value(k, I, []) for k in "sld"] + [value(k, F, []) for k in ("fs", "fl", "fd")],
         [value("y", I, None), value("z", F, ["count"])])
    case("reshaped", "--dim a=1..24 --dim b=1..24 --dim c=1..24",
         [dict(x=f(4, 6), s=ints(*s), t=ints(*t)) for s, t in (((2, 3, 4), (24,)), ((-1, 2, 2), (-1,)), ((0, 0, 1), (24,)))],
         [node("Reshape", "x s", "y"), node("Reshape", "x t", "z0"), node("Neg", "z0", "z")],
         [value("x", F, [4, 6]), value("s", I, [3]), value("t", I, [1])], [value("y", F, ["a", "b", "c"]), "z"])
    case("declared", "", [dict(x=f(4, 6), s=ints(*s), t=ints(2, 1)) for s in ((8, 3), (-1, 3))],
         [node("Reshape", "x s", "y"), node("Tile", "x t", "z")],
         [value("x", F, [4, 6]), value("s", I, [2]), value("t", I, [2])], [value("y", F, [8, 3]), value("z", F, [8, 6])])
    case("grown", "--dim *=0..5",
         [dict(x=f(3, 1), s=ints(*s), t=ints(*t)) for s, t in (((2, 3, 4), (1, 1)), ((1, 1, 1), (2, 5)), ((5, 3, 1), (4, 0)))],
         [node("Expand", "x s", "y"), node("Tile", "x t", "z"), node("ConstantOfShape", "s", "c"), node("Shape", "z", "n")],
         [value("x", F, [3, 1]), value("s", I, [3]), value("t", I, [2])], ["y", "z", "c", value("n", I, [2])])


def axes():
    """Axes of reductions, and which diagonal."""
    ops = ("Sum", "Max", "LogSumExp", "L2")
    nodes = [node("Reduce" + op, f"x {a}", f"{op}_{a}{k}", keepdims=k) for op in ops for a in "ac" for k in (0, 1)]
    case("axes", "", [dict(x=f(3, 2, 4), a=ints(a), c=ints(*c)) for a, c in ((0, (0, 1)), (1, (-1, 0)), (-1, (2, 1)))],
         nodes, [value("x", F, [3, 2, 4]), value("a", I, [1]), value("c", I, [2])], [n.output[0] for n in nodes], opset=18)
    case("split", "", [dict(x=f(3, 7), s=ints(*s), a=ints(*a), d=ints(d), q=f(1, 3, 1, 4)) for s, a, d in (
             ((1, 2, 4), (0, 1), 0), ((0, 7, 0), (1, 3), 2), ((3, 3, 1), (-1, -3), -2))],
         [node("Split", "x s", "b c e", axis=1), node("Unsqueeze", "x a", "y"), node("Squeeze", "q d", "z")],
         [value("x", F, [3, 7]), value("s", I, [3]), value("a", I, [2]), value("d", I, [1]), value("q", F, [1, 3, 1, 4])],
         ["b", "c", "e", "y", "z"])
    case("diagonal", "--dim N=1..5", [dict(x=f(2, n, 4), k=np.array(k)) for n, k in ((1, 0), (5, -2), (4, 1), (3, 9))],
         [node("Trilu", "x k", "y"), node("Trilu", "x k", "z", upper=0)],
         [value("x", F, [2, "N", 4]), value("k", I, [])], ["y", "z"])


def resized():
    """Scales, sizes and crops: each method, each kind of coordinates, one axis or all, up and down."""
    ways = [dict(mode="linear"), dict(mode="nearest", nearest_mode="ceil", coordinate_transformation_mode="asymmetric"),
            dict(mode="cubic", exclude_outside=1), dict(mode="linear", coordinate_transformation_mode="pytorch_half_pixel"),
            dict(mode="nearest", coordinate_transformation_mode="half_pixel_symmetric")]
    nodes = [node("Resize", "x _ s", f"y{k}", **w) for k, w in enumerate(ways)]
    nodes += [node("Resize", "x _ _ n", f"z{k}", axes=[3, 2], **w) for k, w in enumerate((
        dict(mode="cubic", coordinate_transformation_mode="align_corners", cubic_coeff_a=-0.5),
        dict(mode="nearest", keep_aspect_ratio_policy="not_larger"),
        dict(mode="nearest", nearest_mode="round_prefer_ceil", keep_aspect_ratio_policy="not_smaller")))]
    nodes.append(node("Resize", "x r _ n", "c", axes=[2, 3], mode="linear",
                      coordinate_transformation_mode="tf_crop_and_resize", extrapolation_value=7.0))
    case("resized", "--dim *=1..12",
         [dict(x=f(1, 2, 4, 5), s=np.array((1, 1, h, w), np.float32), n=ints(*n), r=np.array(r, np.float32))
          for h, w, n, r in ((2, 1.5, (7, 9), (0.1, 0.2, 0.8, 0.9)), (0.5, 0.8, (3, 2), (-0.3, 0.4, 0.6, 1.4)),
                             (1, 2.25, (1, 1), (0.5, 0, 0.25, 1)), (0.25, 1, (12, 4), (0, 0, 1, 1)))],
         nodes, [value("x", F, [1, 2, 4, 5]), value("s", F, [4]), value("n", I, [2]), value("r", F, [4])],
         [n.output[0] for n in nodes], opset=19)
    case("upsampled", "--dim H=1..8 --dim *=0..24", [dict(x=f(1, 2, h, 3), s=np.array(s, np.float32)) for h, s in (
             (8, (1, 1, 2, 3)), (1, (1, 1, 1.5, 1)))],
         [node("Upsample", "x s", "y", mode="nearest"), node("Upsample", "x s", "z", mode="linear")],
         [value("x", F, [1, 2, "H", 3]), value("s", F, [4])], ["y", "z"], opset=9)


def rounds():
    """Results of as many rounds as the run says, of none, and of a loop that runs or does not."""
    body = h.make_graph([node("Mul", "s w", "sw"), node("Add", "sw x", "s1"), node("Identity", "s1", "p"), node("Identity", "c", "c1")],
                        "body", [value("i", I, []), value("c", B, []), value("s", F, [3])],
                        [value("c1", B, []), value("s1", F, [3]), value("p", F, [3])])
    case("rounds", "--dim z.0=0..9 --dim u.0=0..9",
         [dict(x=f(3), m=np.array(m), c=np.array(c)) for m, c in ((4, True), (0, True), (9, False), (-3, True), (9, True))],
         [node("Loop", "m _ x", "y z", body=body), node("ReduceSum", "z", "t", keepdims=0), node("Loop", "m c x", "v u", body=body),
          node("Loop", "three c x", "a b", body=body)],
         [value("x", F, [3]), value("m", I, []), value("c", B, [])], ["y", "z", "t", "v", "u", "a", "b"],
         w=np.array((0.5, 1, -2), np.float32), three=np.array(3))


def grown():
    """Borders in every mode, of axes in any order; crops; one-hot codes; windows."""
    modes = ("constant", "edge", "reflect", "wrap")
    nodes = [node("Pad", "x p v" if m == "constant" else "x p", m, mode=m) for m in modes]
    case("padded", "--dim N=3..6 --dim *=0..24",
         [dict(x=f(n, 5), p=ints(*p), v=f(), a=ints(*a), q=ints(*p[1:3]), s=ints(*s)) for n, p, a, s in (
             (3, (0, 0, 0, 0), (1,), (3, 5)), (6, (2, 1, 3, 4), (0,), (4, 8)), (4, (-1, 2, 2, -2), (-2,), (9, 2)))],
         nodes + [node("Pad", "x q v a", "axis"), node("CenterCropPad", "x s", "crop"), node("CenterCropPad", "x s", "swap", axes=[-1, 0])],
         [value("x", F, ["N", 5]), value("p", I, [4]), value("v", F, []), value("a", I, [1]), value("q", I, [2]), value("s", I, [2])],
         [*modes, "axis", "crop", "swap"], opset=18)
    nodes = [node(w + "Window", "d", f"{w}{p}", periodic=p) for w in ("Hann", "Hamming", "Blackman") for p in (0, 1)]
    case("coded", "--dim *=0..16",
         [dict(i=ints(*i).reshape(2, 3), d=np.array(d), v=f(2)) for i, d in (
             ((0, 1, 2, -1, -3, 5), 2), ((0, 6, 7, -7, -8, 3), 7), ((15, -16, 16, 2, 1, 0), 16))],
         [node("OneHot", "i d v", "y"), node("OneHot", "i d v", "z", axis=0)] + nodes,
         [value("i", I, [2, 3]), value("d", I, []), value("v", F, [2])], ["y", "z"] + [n.output[0] for n in nodes])


def boxed():
    """Boxes without those that overlap a better one: corners and centers, few wanted and all, with and without a threshold."""
    def feed(n, most, overlap, least):
        x = np.concatenate([rng.integers(0, 9, (n, 12, 2)), rng.integers(0, 9, (n, 12, 2))], 2).astype(np.float32)
        scores = (rng.integers(0, 8, (n, 3, 12)) / 8).astype(np.float32)
        return dict(x=x, s=scores, m=ints(most), t=np.array([overlap], np.float32), l=np.array([least], np.float32))
    case("boxed", "--dim N=1..3", [feed(1, 4, 0.5, 0.25), feed(3, 100, 0.125, 0.875), feed(2, 0, 0, 0), feed(2, 1, 0, 1)],
         [node("NonMaxSuppression", "x s m t l", "y"), node("NonMaxSuppression", "x s m", "c", center_point_box=1),
          node("NonMaxSuppression", "x s five t", "z"), node("NonMaxSuppression", "x s", "e")],
         [value("x", F, ["N", 12, 4]), value("s", F, ["N", 3, 12]), value("m", I, [1]), value("t", F, [1]), value("l", F, [1])],
         [value(o, I, None) for o in "ycze"], five=ints(5))


def agreeing():
    """Rows chosen twice by equal masks, which meet again; of those chosen some are chosen."""
    case("agreeing", "", [dict(x=f(16, 3), w=f(16, 3), m=flags(d, 16)) for d in (0, 0.5, 1)],
         [node("Compress", "x m", "a", axis=0), node("NonZero", "m", "i"), node("Transpose", "i", "it", perm=[1, 0]),
          node("GatherND", "w it", "b"), node("Add", "a b", "c"), node("Max", "b c a", "y"), node("Greater", "a b", "q"),
          node("Where", "q a c", "v"), node("ReduceSum", "c axis", "s", keepdims=0), node("Greater", "s zero", "p"),
          node("NonZero", "p", "j"), node("Squeeze", "j zeroth", "js"), node("Gather", "c js", "z", axis=0)],
         [value("x", F, [16, 3]), value("w", F, [16, 3]), value("m", B, [16])], ["y", "v", "z"],
         axis=ints(1), zero=np.float32([0]), zeroth=ints(0))


def averaged():
    """Means of integers along axes that the run says, rounded once."""
    x = rng.integers(-9, 9, (5, 4, 7)).astype(np.int64)
    case("averaged", "", [dict(x=x, a=ints(0, 2)), dict(x=x, a=ints(1, -1)), dict(x=x + 4, a=ints(2, 0))],
         [node("ReduceMean", "x a", "y"), node("ReduceMean", "x a", "z", keepdims=0)],
         [value("x", I, [5, 4, 7]), value("a", I, [2])], [value(o, I, None) for o in "yz"], opset=18)


if __name__ == "__main__":
    os.makedirs(HERE, exist_ok=True)
    masked()
    chosen()
    counted()
    sliced()
    shaped()
    axes()
    resized()
    rounds()
    grown()
    boxed()
    case("nothing", "", [dict(x=f(2, 0), s=ints(0, 0))], [node("Split", "x s", "y z", axis=1)],
         [value("x", F, [2, 0]), value("s", I, [2])], ["y", "z"])
    rng = np.random.default_rng(12)
    agreeing()
    rng = np.random.default_rng(13)
    averaged()
    for name in ("chosen", "sliced", "diagonal", "boxed"): # and without an upper bound
        lines.append(re.sub(r"N=1\.\.\d+", "N=1..", next(line for line in lines if line.split()[0] == name)))
    with open(os.path.join(HERE, "cases.txt"), "w") as out:
        out.write("\n".join(lines) + "\n")
    print(len(os.listdir(HERE)), "files,", sum(os.path.getsize(os.path.join(HERE, n)) for n in os.listdir(HERE)), "bytes")
