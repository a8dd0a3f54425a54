#!/usr/bin/env python3
"""Writes the models of exported/, forms that PyTorch exports, as make_counted.py does (needs onnx, numpy, onnxruntime)."""
import os

import make_counted
import numpy as np
from make import B, F, I, node, value
from make_counted import case, f, flags, ints

HERE = make_counted.HERE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "exported")
make_counted.rng = np.random.default_rng(13)


def cached():
    """Keys of a cache that is empty at first."""
    case("cached", "--dim P=0..6 --dim T=1..4", [dict(p=f(2, n, 4), k=f(2, t, 4)) for n, t in ((0, 3), (6, 1), (2, 4))],
         [node("Concat", "p k", "now", axis=1), node("Transpose", "now", "kt", perm=[0, 2, 1]), node("MatMul", "k kt", "s"),
          node("Softmax", "s", "w", axis=-1), node("MatMul", "w now", "y")],
         [value("p", F, [2, "P", 4]), value("k", F, [2, "T", 4])], ["y", "now"])


def recurrent():
    """Layers of as many steps and rows as the run has, both ways."""
    nodes = []
    weights = {}
    for op, gates, extra in (("LSTM", 4, {}), ("GRU", 3, {"linear_before_reset": 1}), ("RNN", 1, {})):
        weights |= {op + "w": f(2, 5 * gates, 3), op + "r": f(2, 5 * gates, 5), op + "b": f(2, 10 * gates)}
        nodes.append(node(op, f"x {op}w {op}r {op}b", f"{op}y {op}h", hidden_size=5, direction="bidirectional", **extra))
        nodes.append(node(op, f"x {op}w1 {op}r1", f"{op}v", hidden_size=5, direction="reverse"))
        weights |= {op + "w1": weights[op + "w"][:1], op + "r1": weights[op + "r"][:1]}
    case("recurrent", "--dim T=1..7 --dim N=1..3", [dict(x=f(*s, 3)) for s in ((1, 1), (7, 3), (4, 2))], nodes,
         [value("x", F, ["T", "N", 3])], [o for n in nodes for o in n.output], **weights)


def bordered():
    """Pads that are computed as a matrix of befores and afters; a table that is stretched to the picture."""
    case("bordered", "--dim H=3..9", [dict(x=f(1, 2, h, 4)) for h in (3, 9, 6)],
         [node("Shape", "x", "s"), node("Gather", "s two", "h", axis=0), node("Mod", "h three", "m"), node("Concat", "zero m zero zero", "some", axis=0),
          node("Concat", "some zero4", "all", axis=0), node("Reshape", "all pairs", "p2"), node("Slice", "p2 back least zero back", "flip"),
          node("Transpose", "flip", "pt", perm=[1, 0]), node("Reshape", "pt flat", "pads"), node("Pad", "x pads", "y"),
          node("Concat", "one two h four", "to", axis=0), node("Resize", "table _ _ to", "z", mode="cubic", coordinate_transformation_mode="pytorch_half_pixel"),
          node("Resize", "x _ _ big", "a", mode="linear", coordinate_transformation_mode="align_corners")],
         [value("x", F, [1, 2, "H", 4])], ["y", "z", "a"], two=ints(2), three=ints(3), zero=ints(0), zero4=ints(0, 0, 0, 0), pairs=ints(-1, 2),
         back=ints(-1), least=ints(-2**62), flat=ints(-1), one=ints(1), four=ints(4), table=f(1, 2, 5, 4), big=ints(1, 2, 7, 9))


def detected():
    """Boxes above a threshold, those that do not overlap, the best of them; what is chosen put back."""
    def feed(n, least):
        x = np.sort(make_counted.rng.integers(0, 9, (n, 2, 2)), 1).reshape(n, 4).astype(np.float32)
        return dict(x=x, s=make_counted.rng.permutation(n).astype(np.float32) / n, l=np.float32([least]))
    case("detected", "--dim N=1..12", [feed(1, 0), feed(12, 0.3), feed(7, 0.5), feed(5, 2)],
         [node("Greater", "s l", "m"), node("NonZero", "m", "i"), node("Transpose", "i", "it", perm=[1, 0]), node("GatherND", "x it", "b"),
          node("NonZero", "m", "j"), node("Transpose", "j", "jt", perm=[1, 0]), node("GatherND", "s jt", "t"),
          node("Unsqueeze", "t one", "t1"), node("Add", "b t1", "moved"),
          node("Unsqueeze", "b zero", "b3"), node("Unsqueeze", "t zero2", "t3"), node("NonMaxSuppression", "b3 t3 most overlap", "k"),
          node("Gather", "k two", "kept", axis=1), node("Gather", "b kept", "y", axis=0),
          node("Shape", "kept", "count"), node("Min", "count three", "few"), node("Gather", "t kept", "tk", axis=0), node("TopK", "tk few", "v p"),
          node("ScatterND", "x it moved", "back")],
         [value("x", F, ["N", 4]), value("s", F, ["N"]), value("l", F, [1])], ["y", "v", value("p", I, None), "back"],
         one=ints(1), zero=ints(0), zero2=ints(0, 1), most=ints(100), overlap=np.float32([0.3]), two=np.array(2), three=ints(3))


if __name__ == "__main__":
    os.makedirs(HERE, exist_ok=True)
    cached()
    recurrent()
    bordered()
    detected()
    with open(os.path.join(HERE, "cases.txt"), "w") as out:
        out.write("\n".join(make_counted.lines) + "\n")
