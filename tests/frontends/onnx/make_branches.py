#!/usr/bin/env python3
"""Writes the models of branches/: make_branches.py (needs onnx, numpy).

Branches that give values of different ranks; files as make_counted.py writes them, but the results are those of ONNX's
reference evaluator.  A name with bad_ is refused.
"""
import os

import numpy as np
from make import B, F, h, init, model, node, value
from onnx.reference import ReferenceEvaluator

HERE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "branches")


def choice(by="d", dims=(1,)):
    """A number, or the square of d or x."""
    then = h.make_graph([node("Constant", "", "a", value=init("a", np.float32(0.5)))], "then", [], [value("a", F, [])])
    other = h.make_graph([node("Mul", f"{by} {by}", "b")], "else", [], [value("b", F, list(dims))])
    return node("If", "c", "s", then_branch=then, else_branch=other)


def write(name, nodes, outs):
    m = model(nodes, [value("c", B, []), value("d", F, [1]), value("x", F, [2, 3])], [value(o, F, None) for o in outs])
    with open(os.path.join(HERE, name + ".onnx"), "wb") as out:
        out.write(m.SerializeToString())
    return m


if __name__ == "__main__":
    os.makedirs(HERE, exist_ok=True)
    outs = ["y", "z", "w"]
    ranks = write("ranks", [choice(), node("Mul", "x s", "y"), node("Exp", "s", "e"), node("Add", "e s", "f"), node("Where", "c f x", "z"),
                            node("CastLike", "x s", "k"), node("Sub", "s k", "w")], outs)
    rng = np.random.default_rng(19)
    for k, c in enumerate((True, False)):
        feed = dict(c=np.array(c), d=rng.standard_normal(1).astype(np.float32), x=rng.standard_normal((2, 3)).astype(np.float32))
        np.savez_compressed(os.path.join(HERE, f"ranks.{k}.in.npz"), **feed)
        np.savez_compressed(os.path.join(HERE, f"ranks.{k}.out.npz"), **dict(zip(outs, ReferenceEvaluator(ranks).run(None, feed))))
    with open(os.path.join(HERE, "cases.txt"), "w") as out:
        out.write("ranks 2\n")
    write("bad_output", [choice(), node("Exp", "s", "y")], ["y"])
    write("bad_shape", [choice(), node("Shape", "s", "n"), node("Cast", "n", "y", to=F)], ["y"])
    write("bad_cells", [choice("x", (2, 3)), node("Mul", "x s", "y")], ["y"])
