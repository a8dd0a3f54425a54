"""Sequences, optional values, control flow: several nodes that only make sense together."""
import numpy as np
from graph import ALL, FLOATS, NUMBERS, EXACT, Unfit, near, ulp
from onnx import TensorProto as T, helper as h, numpy_helper as nh


def info(name, value):
    return h.make_tensor_value_info(name, h.np_dtype_to_tensor_dtype(value.dtype), value.shape)


def sequence(g):
    """Made of tensors, changed, and one or all taken out."""
    x = g.take(NUMBERS, 1, 3)
    n = g.between(1, 4)
    s = g.dims(x)
    parts = [x] + [g.new(g.dtype(x), s) for _ in range(n - 1)]
    p = [h.make_node("SequenceConstruct", parts, ["s0"])]
    at = "s0"
    if g.chance(40):
        y, i = g.new(g.dtype(x), s), g.const(g.between(-n, n), np.int64)
        parts += [y, i] if g.chance(70) else [y]
        p.append(h.make_node("SequenceInsert", [at, y] + ([i] if parts[-1] == i else []), ["s1"]))
        at, n = "s1", n + 1
    if g.chance(40) and n > 1:
        i = g.const(g.between(-n, n - 1), np.int64)
        some = g.chance(70)
        parts += [i] if some else []
        p.append(h.make_node("SequenceErase", [at] + ([i] if some else []), ["s2"]))
        at, n = "s2", n - 1
    out = g.name()
    how = g.upto(3)
    if how == 0:
        i = g.const(g.between(-n, n - 1), g.pick(np.int64, np.int32))
        parts.append(i)
        p.append(h.make_node("SequenceAt", [at, i], [out]))
    elif how == 1:
        p.append(h.make_node("SequenceLength", [at], [out]))
    else:
        new = g.upto(1)
        axis = g.between(-len(s) - new, len(s) + new - 1)
        p.append(h.make_node("ConcatFromSequence", [at], [out], axis=axis, new_axis=new))
    return g.snippet(p[-1].op_type, p, parts, [out])


def split_to_sequence(g):
    x = g.take(NUMBERS, 1, 3)
    s = g.dims(x)
    axis = g.between(-len(s), len(s) - 1)
    if s[axis] == 0:
        raise Unfit
    attrs = {"axis": axis} if axis or g.chance(50) else {}
    ins = [x]
    n = s[axis]
    if g.chance(60):
        if g.chance(50):
            c = g.between(1, n)
            ins.append(g.const(c, np.int64))
            n = -(-n // c)
        else:
            cuts = sorted(g.upto(n) for _ in range(2))
            ins.append(g.ints(cuts[0], cuts[1] - cuts[0], n - cuts[1]))
            n = 3
    elif g.chance(50):
        attrs["keepdims"] = g.upto(1)
    i = g.const(g.between(-n, n - 1), np.int64)
    out = g.name()
    return g.snippet("SplitToSequence", [h.make_node("SplitToSequence", ins, ["s0"], **attrs),
                                         h.make_node("SequenceAt", ["s0", i], [out])], ins + [i], [out])


def branch(g, name, x, out):
    op = g.pick("Neg", "Abs", "Identity", "Relu")
    k = nh.from_array(g.values(g.dtype(x), g.dims(x)), name + "_k")
    if g.chance(30):
        return h.make_graph([h.make_node("Identity", [name + "_k"], [out])], name, [], [info(out, g.value(x))], [k])
    return h.make_graph([h.make_node(op, [x], [out])], name, [], [info(out, g.value(x))])


def if_(g):
    x = g.take((np.float32,), 0, 3)
    c = g.hold(np.array(g.upto(1), bool), g.chance(40))
    out = g.name()
    node = h.make_node("If", [c], [out], then_branch=branch(g, "then", x, "a"), else_branch=branch(g, "else", x, "b"))
    return g.snippet("If", [node], [c, x], [out])


def body(g, nodes, ins, outs):
    return h.make_graph(nodes, "body", [info(*i) for i in ins], [info(*o) for o in outs])


def states(g, names, after):
    """Nodes that make new values of states, which read each other, and an outer tensor, at will."""
    nodes, made = [], list(names)
    for i in range(g.between(len(names), 2 * len(names) + 1)):
        a, b = g.pick(*made), g.pick(*made, after)
        op = g.pick("Add", "Sub", "Max", "Tanh", "Neg", "Abs")
        nodes.append(h.make_node(op, [a] if op in ("Tanh", "Neg", "Abs") else [a, b], [f"e{i}"]))
        made.append(f"e{i}")
    out = [g.pick(*made) for _ in names]
    nodes += [h.make_node("Identity", [v], [f"n{k}"]) for k, v in enumerate(out)]
    if g.chance(30):  # a branch in the round
        arm = lambda op, y: h.make_graph([h.make_node(op, ["n0"], [y])], y, [], [info(y, g.value(after))])
        nodes += [h.make_node("ReduceSum", ["n0"], ["total"], keepdims=0), h.make_node("Cast", ["total"], ["odd"], to=T.BOOL),
                  h.make_node("If", ["odd"], ["m0"], then_branch=arm("Neg", "ya"), else_branch=arm("Identity", "yb"))]
        return nodes, ["m0"] + [f"n{k}" for k in range(1, len(names))]
    return nodes, [f"n{k}" for k in range(len(names))]


def loop(g):
    """States that are made of each other, in a few or many rounds, which a run may decide; what is scanned out."""
    shape = g.shape(0, 2)
    first = [g.new(np.float32, shape, "mild") for _ in range(g.between(1, 3))]
    outer = g.new(np.float32, shape, "mild")
    v, names = g.value(outer), [f"v{k}" for k in range(len(first))]
    nodes, after = states(g, names, outer)
    known = g.chance(50)
    pieces = known and g.chance(60)
    n = g.pick(g.upto(4), g.between(5, 40))
    count, go = g.hold(np.array(n, np.int64), known), g.hold(np.array(g.chance(90)), known)
    outs = [g.name() for _ in first]
    yes, none = np.array(True), np.array(0, np.int64)
    if pieces:
        nodes.append(h.make_node("Neg", [after[0]], ["o"]))
    if not known and g.chance(50):
        nodes += [h.make_node("Mul", ["i", "i"], ["ii"]), h.make_node("Less", ["ii", count], ["c2"])]
    else:
        nodes.append(h.make_node("Identity", ["c"], ["c2"]))
    b = body(g, nodes, [("i", none), ("c", yes)] + [(k, v) for k in names],
             [("c2", yes)] + [(k, v) for k in after] + ([("o", v)] if pieces else []))
    used = go if not pieces and g.chance(50) else ""
    ins = [count, used] + first
    if pieces:
        outs.append(g.name())
    return g.snippet("Loop", [h.make_node("Loop", ins, outs, body=b)], [count] + ([go] if used else []) + first + [outer], outs,
                     near(1e-5))


def scan(g):
    n, s = g.pick(g.between(1, 4), g.between(5, 40)), g.shape(0, 2)
    x, start = g.new(np.float32, (n,) + s, "mild"), g.new(np.float32, s, "mild")
    v = g.value(start)
    b = body(g, [h.make_node("Sub", ["st", "e"], ["st2"]), h.make_node("Abs", ["st2"], ["o"])], [("st", v), ("e", v)],
             [("st2", v), ("o", v)])
    attrs = {}
    if g.chance(40):
        attrs["scan_input_directions"] = [g.upto(1)]
    if g.chance(40):
        attrs["scan_output_directions"] = [g.upto(1)]
    if g.chance(30):
        attrs["scan_output_axes"] = [g.between(-1 - len(s), len(s))]
    outs = [g.name(), g.name()]
    return g.snippet("Scan", [h.make_node("Scan", [start, x], outs, body=b, num_scan_inputs=1, **attrs)],
                     [start, x], outs, near(1e-5))


def optional(g):
    x = g.take((np.float32, np.int64), 0, 3)
    out = g.name()
    last = g.pick("OptionalGetElement", "OptionalHasElement")
    return g.snippet(last, [h.make_node("Optional", [x], ["o"]), h.make_node(last, ["o"], [out])], [x], [out])


OPS = {"SequenceConstruct": sequence, "SequenceInsert": sequence, "SplitToSequence": split_to_sequence, "If": if_,
       "Loop": loop, "Scan": scan, "Optional": optional}
