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


def loop(g):
    """A state that is doubled or negated, and what is scanned out."""
    x = g.new(np.float32, g.shape(0, 2), "mild")
    n = g.upto(4)
    v = g.value(x)
    body = h.make_graph(
        [h.make_node("Identity", ["c"], ["c2"]), h.make_node("Add", ["v", "v"], ["v2"]),
         h.make_node("Neg", ["v2"], ["o"])], "body",
        [h.make_tensor_value_info("i", T.INT64, []), h.make_tensor_value_info("c", T.BOOL, []), info("v", v)],
        [h.make_tensor_value_info("c2", T.BOOL, []), info("v2", v), info("o", v)])
    count, go = g.const(n, np.int64), g.const(True, bool)
    outs = [g.name(), g.name()]
    return g.snippet("Loop", [h.make_node("Loop", [count, go if g.chance(50) else "", x], outs, body=body)],
                     [count, go, x], outs)


def scan(g):
    n, s = g.between(1, 4), g.shape(0, 2)
    x, start = g.new(np.float32, (n,) + s, "mild"), g.new(np.float32, s, "mild")
    v = g.value(start)
    body = h.make_graph([h.make_node("Sub", ["st", "e"], ["st2"]), h.make_node("Abs", ["st2"], ["o"])], "body",
                        [info("st", v), info("e", v)], [info("st2", v), info("o", v)])
    attrs = {}
    if g.chance(40):
        attrs["scan_input_directions"] = [g.upto(1)]
    if g.chance(40):
        attrs["scan_output_directions"] = [g.upto(1)]
    outs = [g.name(), g.name()]
    return g.snippet("Scan", [h.make_node("Scan", [start, x], outs, body=body, num_scan_inputs=1, **attrs)],
                     [start, x], outs, near(1e-5))


def optional(g):
    x = g.take((np.float32, np.int64), 0, 3)
    out = g.name()
    last = g.pick("OptionalGetElement", "OptionalHasElement")
    return g.snippet(last, [h.make_node("Optional", [x], ["o"]), h.make_node(last, ["o"], [out])], [x], [out])


OPS = {"SequenceConstruct": sequence, "SequenceInsert": sequence, "SplitToSequence": split_to_sequence, "If": if_,
       "Loop": loop, "Scan": scan, "Optional": optional}
