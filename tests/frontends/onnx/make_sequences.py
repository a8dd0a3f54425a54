#!/usr/bin/env python3
"""Writes the models of sequences/: make_sequences.py (needs onnx, numpy, onnxruntime).

sequences/NAME.onnx    a small network with sequences or optional values, or a step of an optimizer
sequences/NAME.K/      the K-th inputs, input_0.pb .., and what ONNX Runtime makes of them, output_0.pb ..; of optimizers,
                       which it does not have, what the package onnx does
sequences/cases.txt    NAME, how many inputs, the options for the model
"""
import os
import shutil

import numpy as np
import onnx
import onnxruntime as ort
from make import B, F, I, SEEDS, h, init, model, node, value
from onnx import numpy_helper as nh
from onnx.reference import ReferenceEvaluator

HERE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "sequences")
rng = np.random.default_rng(19)
lines = []
T = onnx.TensorProto


def f(*s):
    return rng.standard_normal(s).astype(np.float32)


def ints(*v):
    return np.array(v, np.int64)


def of_tensor(t=F, shape=None):
    return h.make_tensor_type_proto(t, shape)


def seq(name, t=F, shape=None):
    return h.make_value_info(name, h.make_sequence_type_proto(of_tensor(t, shape)))


def opt(name, inner):
    return h.make_value_info(name, h.make_optional_type_proto(inner))


def message(v, info):
    what = info.type.WhichOneof("value")
    if what == "optional_type":
        return nh.from_optional(v)
    return nh.from_list(list(v)) if what == "sequence_type" else nh.from_array(np.asarray(v))


def case(name, options, feeds, nodes, ins, outs, opset=17, domains=(), fuzz=True, **inits):
    m = model(nodes, ins, outs, [init(k, v) for k, v in inits.items()], opset=opset, domains=domains)
    data = m.SerializeToString()
    with open(os.path.join(HERE, name + ".onnx"), "wb") as out:
        out.write(data)
    if fuzz:
        with open(os.path.join(SEEDS, f"seq_{name}"), "wb") as out:
            out.write(data)
    so = ort.SessionOptions()
    so.log_severity_level = 3
    session = ReferenceEvaluator(m) if domains else ort.InferenceSession(data, so, providers=["CPUExecutionProvider"])
    for k, feed in enumerate(feeds):
        folder = os.path.join(HERE, f"{name}.{k}")
        shutil.rmtree(folder, ignore_errors=True)
        os.makedirs(folder)
        got = session.run(None, feed)
        for what, infos, values in ("input", ins, [feed.get(v.name) for v in ins]), ("output", outs, got):
            for i, (info, v) in enumerate(zip(infos, values)):
                if v is None and what == "input":
                    continue
                with open(f"{folder}/{what}_{i}.pb", "wb") as out:
                    out.write(message(v, info).SerializeToString())
    lines.append(f"{name} {len(feeds)} {options}".strip())


def edited():
    """A sequence that is an input, elements of it, one more, one less, and all behind each other."""
    case("edited", "", [dict(s=[f(2, 3), f(1, 3), f(4, 3)], x=f(2, 3)), dict(s=[f(5, 3)] * 4, x=f(1, 3))],
         [node("SequenceInsert", "s x one", "t"), node("SequenceErase", "t zero", "u"), node("SequenceAt", "u last", "a"),
          node("ConcatFromSequence", "u", "c", axis=0), node("SequenceLength", "u", "n"), node("Relu", "a", "r")],
         [seq("s"), value("x", F, [None, 3])],
         [seq("u"), value("r", F, None), value("c", F, None), value("n", I, [])], one=ints(1), zero=ints(0), last=ints(-1))


def mapped():
    """SequenceMap over two sequences and a tensor, with two results."""
    body = h.make_graph([node("Mul", "a b", "ab"), node("Add", "ab c", "y"), node("Shape", "a", "z")], "body",
                        [value("a", F, ["N"]), value("b", F, ["N"]), value("c", F, [1])], [value("y", F, ["N"]), value("z", I, [1])])
    case("mapped", "", [dict(s=[f(3), f(1), f(7)], t=[f(3), f(1), f(7)], x=f(1)), dict(s=[f(2)], t=[f(2)], x=f(1))],
         [node("SequenceMap", "s t x", "y z", body=body)], [seq("s", F, ["N"]), seq("t", F, ["N"]), value("x", F, [1])],
         [seq("y", F, ["N"]), seq("z", I, [1])])


def maybe():
    """A value that is there or not; what is not there is not looked at."""
    given = h.make_graph([node("OptionalGetElement", "o", "v"), node("Mul", "v v", "y")], "then", [], [value("y", F, [3])])
    none = h.make_graph([node("Neg", "x", "y")], "else", [], [value("y", F, [3])])
    feeds = [dict(o=f(3), x=f(3)), dict(o=None, x=f(3))]
    case("maybe", "", feeds,
         [node("OptionalHasElement", "o", "has"), node("If", "has", "y", then_branch=given, else_branch=none),
          node("Identity", "o", "p")],
         [opt("o", of_tensor(F, [3])), value("x", F, [3])], [value("y", F, [3]), value("has", B, []), opt("p", of_tensor(F, [3]))],
         opset=18)
    case("maybe_several", "", [dict(o=[f(3), f(3)]), dict(o=None)],
         [node("OptionalHasElement", "o", "has")],
         [h.make_value_info("o", h.make_optional_type_proto(h.make_sequence_type_proto(of_tensor(F, [3]))))],
         [value("has", B, [])], opset=18)


def moved():
    """Positions that a run says, in a sequence whose elements differ."""
    case("moved", "", [dict(s=[f(2, 3), f(1, 3), f(4, 3)], x=f(3, 3), p=np.array(p), q=ints(q)) for p, q in ((0, -1), (2, 0), (-1, 3))],
         [node("SequenceInsert", "s x p", "t"), node("SequenceAt", "t q", "a"), node("SequenceErase", "t q", "u"),
          node("SequenceInsert", "u a", "v"), node("SequenceErase", "v", "w"), node("ConcatFromSequence", "w", "c", axis=0), node("SequenceLength", "v", "n"),
          node("ReduceSum", "a zero", "r", keepdims=0), node("Sub", "c r", "d")],
         [seq("s"), value("x", F, [3, 3]), value("p", I, []), value("q", I, [1])],
         [seq("v"), value("a", F, None), value("d", F, None), value("n", I, [])], zero=ints(0))


def stacked():
    """Equal elements by a position of the run, one behind the other and in a dimension of their own."""
    case("stacked", "", [dict(x=f(4, 6), p=np.array(p)) for p in (0, 3)],
         [node("SplitToSequence", "x", "s", axis=1), node("SequenceErase", "s p", "t"),
          node("ConcatFromSequence", "t", "y", axis=1), node("ConcatFromSequence", "t", "z", axis=-1, new_axis=1)],
         [value("x", F, [4, 6]), value("p", I, [])], [value("y", F, None), value("z", F, None)])


def pieces():
    """SplitToSequence by sizes that a run says, each or one for all."""
    case("pieces", "", [dict(x=f(5, 4), n=np.array(n), k=ints(*k)) for n, k in ((2, (1, 4)), (5, (0, 5)), (1, (3, 2)), (9, (5, 0)))],
         [node("SplitToSequence", "x n", "s", axis=0), node("SplitToSequence", "x k", "t", axis=0),
          node("SequenceLength", "s", "m"), node("ConcatFromSequence", "s", "y", axis=0), node("SequenceAt", "t one", "z")],
         [value("x", F, [5, 4]), value("n", I, []), value("k", I, [2])],
         [seq("s"), seq("t"), value("m", I, []), value("y", F, None), value("z", F, None)], one=np.array(1))


def branches():
    """Branches of other sizes: by number, by values of the run, in sequences, of other lengths."""
    then = h.make_graph([node("Slice", "x zero two zero", "a"), node("SequenceConstruct", "x a", "s"), node("NonZero", "a", "b")], "then", [],
                        [value("a", F, None), seq("s"), value("b", I, None)])
    other = h.make_graph([node("Concat", "x x", "c", axis=0), node("SequenceConstruct", "c", "t"), node("NonZero", "c", "d")], "other", [],
                         [value("c", F, None), seq("t"), value("d", I, None)])
    case("branches", "", [dict(x=f(3, 2) * (rng.random((3, 2)) < 0.5), go=np.array(g)) for g in (True, False)],
         [node("If", "go", "y s i", then_branch=then, else_branch=other), node("Relu", "y", "r"), node("Shape", "y", "n"),
          node("ReduceSum", "i zero", "j"), node("ConcatFromSequence", "s", "k", axis=0)],
         [value("x", F, [3, 2]), value("go", B, [])],
         [value("r", F, None), value("n", I, [2]), seq("s"), value("i", I, None), value("j", I, None), value("k", F, None)],
         zero=ints(0), two=ints(2))


def grown():
    """A loop that makes a sequence of elements of other sizes, and one that keeps what is largest so far."""
    body = h.make_graph(
        [node("Add", "i one", "e"), node("Slice", "x zero e zero", "part"), node("SequenceInsert", "s part", "t"),
         node("SequenceLength", "t", "k"), node("Cast", "k", "kf", to=F), node("Mul", "a kf", "b"),
         node("Less", "k most", "go")], "body",
        [value("i", I, []), value("c", B, []), seq("s"), value("a", F, [2])], [value("go", B, []), seq("t"), value("b", F, [2])])
    case("grown", "--dim s=0..9", [dict(x=f(4, 2), n=np.array(n), most=np.array(k)) for n, k in ((3, 9), (7, 9), (0, 9), (9, 2))],
         [node("SequenceEmpty", "", "none"), node("Loop", "n _ none start", "s a", body=body),
          node("SequenceInsert", "s x", "u"), node("ConcatFromSequence", "u", "y", axis=0), node("SequenceLength", "s", "k")],
         [value("x", F, [4, 2]), value("n", I, []), value("most", I, [])],
         [seq("s"), value("a", F, [2]), value("y", F, None), value("k", I, [])], one=ints(1), zero=ints(0), start=f(2))


def growing():
    """States that get a row more in each round, and scan outputs whose width the run says."""
    body = h.make_graph(
        [node("Slice", "v last end zero", "row"), node("Mul", "row half", "half_row"), node("Concat", "v half_row", "w", axis=0),
         node("ReduceSum", "v zero", "sum", keepdims=0), node("Slice", "sum zero k zero", "part"), node("Identity", "c", "d")], "body",
        [value("i", I, []), value("c", B, []), value("v", F, None)], [value("d", B, []), value("w", F, None), value("part", F, None)])
    for name, options in ("growing", "--dim y.0=1..12"), ("growing_known", ""):
        known = name == "growing_known"
        sizes = ((12, 2),) if known else ((1, 3), (4, 0), (9, 1))
        ins = [value("x", F, [1, 3]), value("k", I, [1])] + ([] if known else [value("n", I, [])])
        more = dict(n=np.array(12)) if known else {}
        case(name, options,
             [dict(x=f(1, 3), k=ints(k), **({} if known else dict(n=np.array(t)))) for t, k in sizes],
             [node("Loop", "n _ x", "y z", body=body), node("Relu", "y", "r")], ins,
             [value("y", F, None), value("z", F, [12 if known else None, None]), value("r", F, None)], zero=ints(0), last=ints(-1),
             end=ints(2**31), half=np.float32(0.5), **more)


def optimizers():
    """A step of each optimizer for two parameters, the first one and a later one."""
    def step(name, op, states, **attrs):
        groups = ["x", "g"] + states
        ins = [value("r", F, []), value("t", I, [])]
        ins += [value(f"{v}{k}", F, s) for v in groups for k, s in ((0, [2, 3]), (1, [4]))]
        outs = [value(f"{v}{k}_new", F, s) for v in ["x"] + states for k, s in ((0, [2, 3]), (1, [4]))]
        feeds = []
        for t in 0, 3:
            feed = {v.name: abs(f(*(d.dim_value for d in v.type.tensor_type.shape.dim))) for v in ins}
            feed.update(r=np.float32(0.1), t=np.array(t))
            feeds.append(feed)
        case(name, "", feeds, [node(op, " ".join(v.name for v in ins), " ".join(v.name for v in outs),
                                    domain="ai.onnx.preview.training", **attrs)], ins, outs,
             domains=["ai.onnx.preview.training"])

    step("adagrad", "Adagrad", ["h"], decay_factor=0.1, norm_coefficient=0.01, epsilon=1e-5)
    step("adam", "Adam", ["v", "h"], alpha=0.9, beta=0.95, norm_coefficient=0.01, norm_coefficient_post=0.1)
    step("momentum", "Momentum", ["v"], alpha=0.9, beta=0.8, norm_coefficient=0.01, mode="standard")
    step("nesterov", "Momentum", ["v"], alpha=0.9, beta=0.8, norm_coefficient=0.01, mode="nesterov")


if __name__ == "__main__":
    os.makedirs(HERE, exist_ok=True)
    for make in edited, mapped, maybe, moved, stacked, pieces, branches, grown, growing, optimizers:
        rng = np.random.default_rng(19)
        make()
    with open(os.path.join(HERE, "cases.txt"), "w") as out:
        out.write("\n".join(lines) + "\n")
