"""Reductions, order, softmax and normalization."""
import numpy as np
from onnx import helper as h
from graph import ALL, EXACT, FLOATS, INTS, NUMBERS, SUM, Unfit, is_float, near, ulp

REDUCE = {"ReduceSum": SUM, "ReduceMean": SUM, "ReduceMax": EXACT, "ReduceMin": EXACT, "ReduceProd": ulp(64),
          "ReduceL1": SUM, "ReduceL2": SUM, "ReduceSumSquare": SUM, "ReduceLogSum": near(1e-5),
          "ReduceLogSumExp": near(1e-5)}


def reduce(op):
    def f(g):
        types = ALL if op in ("ReduceMax", "ReduceMin") and g.opset >= 20 else NUMBERS
        x = g.take(types, 0, 5, kind="any" if op in ("ReduceMax", "ReduceMin") else g.pick("infinite", "mild", "mild"))
        if is_float(g.dtype(x)) is False and op not in ("ReduceMax", "ReduceMin"):
            x = g.new(g.dtype(x), g.dims(x), "mild")
        rank = len(g.dims(x))
        attrs, ins = {}, [x]
        if g.chance(60):
            attrs["keepdims"] = g.upto(1)
        as_input = g.opset >= (13 if op == "ReduceSum" else 18)
        if g.chance(80) and (as_input or rank):
            axes = g.axes(rank)
            if as_input:
                ins.append(g.ints(*axes))
            elif axes:
                attrs["axes"] = axes
        if as_input and g.chance(30):
            attrs["noop_with_empty_axes"] = g.upto(1)
        return g.emit(op, ins, REDUCE[op], **attrs)
    return f


def arg(op):
    def f(g):
        x = g.take(NUMBERS, 0 if g.chance(10) else 1, 5)
        if g.chance(40):
            x = g.hold((g.rng.integers(0, 3, g.dims(x))).astype(g.dtype(x)), g.chance(20))
        attrs = {}
        if g.chance(85):
            attrs["axis"] = g.axis(len(g.dims(x)))
        if g.chance(60):
            attrs["keepdims"] = g.upto(1)
        if g.opset >= 12 and g.chance(50):
            attrs["select_last_index"] = g.upto(1)
        return g.emit(op, [x], **attrs)
    return f


def cumsum(g):
    x = g.take((np.float32, np.float64, np.int32, np.int64), 1, 4, kind=g.pick("mild", "infinite"))
    axis = g.const(g.axis(len(g.dims(x))), g.pick(np.int32, np.int64))
    if g.chance(20):
        axis = g.const([g.value(axis)], g.dtype(axis))
    attrs = {a: g.upto(1) for a in ("exclusive", "reverse") if g.chance(50)}
    return g.emit("CumSum", [x, axis], SUM, **attrs)


def topk(g):
    x = g.take(NUMBERS if g.opset >= 11 else FLOATS, 1, 4)
    if g.chance(30):
        x = g.new(g.dtype(x), g.shape(0, 1) + (g.pick(40, 64, 100, 257),))
    if g.chance(50):  # ties
        lo = 0
        v = g.rng.integers(lo, g.pick(2, 4), g.dims(x)).astype(g.dtype(x))
        if is_float(g.dtype(x)) and g.wild:
            with np.errstate(all="ignore"):
                v = np.where(g.rng.random(v.shape) < 0.1, g.rng.choice(np.array([-0.0, np.inf, -np.inf], v.dtype), v.shape), v)
        x = g.hold(v, g.chance(20))
    elif is_float(g.dtype(x)) and g.chance(80):  # the order of NaN is nobody's
        x = g.hold(np.where(np.isnan(g.value(x)), g.dtype(x)(1), g.value(x)), g.chance(20))
    rank = len(g.dims(x))
    axis = g.axis(rank)
    n = g.dims(x)[axis] if -rank <= axis < rank else 3
    k = g.pick(g.upto(n), min(n, 1), n, min(n, 5))
    attrs = {"axis": axis} if axis != -1 or g.chance(50) else {}
    if g.opset < 10:
        return g.emit("TopK", [x], outs=2, k=max(k, 1), **attrs)
    if g.opset >= 11:
        attrs.update({a: g.upto(1) for a in ("largest",) if g.chance(60)})
        if g.chance(30):
            attrs["sorted"] = 1
    return g.emit("TopK", [x, g.ints(k)], outs=2, **attrs)


def softmax(op):
    def f(g):
        x = g.take(FLOATS, 0 if g.chance(10) else 1, 4, kind=g.pick("infinite", "any", "mild"))
        if g.chance(30) and g.dims(x):
            x = g.new(g.dtype(x), g.dims(x)[:-1] + (g.pick(1, 5, 17, 100),), g.pick("infinite", "mild"))
        attrs = {"axis": g.axis(len(g.dims(x)))} if g.chance(80) else {}
        return g.emit(op, [x], EXACT if op == "Hardmax" else ulp(64, 1e-6), **attrs)
    return f


def channels(g, lo=2, hi=4, types=FLOATS):
    """A tensor with its second dimension not 0, and the types of it."""
    x = g.take(types, lo, hi, kind="mild")
    if len(g.dims(x)) < 2 or g.dims(x)[1] == 0:
        raise Unfit
    return x, g.dtype(x), g.dims(x)[1]


def batch_norm(g):
    x, t, c = channels(g, 2, 5)
    w = lambda kind: g.weight(t, (c,), kind)
    attrs = {"epsilon": float(g.pick(1e-5, 1e-3, 0.1))} if g.chance(50) else {}
    if g.opset < 9 and g.chance(30):
        attrs["spatial"] = 1
    ins, oracle = [x, w("mild"), w("mild"), w("mild"), w("positive")], None
    if g.opset < 7:  # onnxruntime has none of these
        same = dict(attrs)
        oracle = lambda ins, outs: ([h.make_node("BatchNormalization", ins, outs, **same)], 7)
        attrs["is_test"] = 1
    if g.opset < 6:
        attrs["consumed_inputs"] = [0, 0, 0, 1, 1]
    return g.emit("BatchNormalization", ins, near(1e-4), oracle=oracle, **attrs)


def instance_norm(g):
    x, t, c = channels(g, 3, 4)
    attrs = {"epsilon": float(g.pick(1e-5, 1e-3, 0.1))} if g.chance(50) else {}
    return g.emit("InstanceNormalization", [x, g.weight(t, (c,)), g.weight(t, (c,))], near(1e-3), **attrs)


def group_norm(g):
    groups = g.pick(1, 2, 3)
    c = groups * g.pick(1, 2, 4)
    x = g.new(g.pick(*FLOATS), (g.pick(1, 2), c) + tuple(g.between(1, 9) for _ in range(g.pick(1, 2))), "mild")
    n = groups if g.opset < 21 else c
    return g.emit("GroupNormalization", [x, g.weight(g.dtype(x), (n,)), g.weight(g.dtype(x), (n,))], near(1e-3),
                  num_groups=groups)


def layer_norm(g):
    x = g.take(FLOATS, 1, 4, kind="mild")
    s = g.dims(x)
    axis = g.axis(len(s))
    if not -len(s) <= axis < len(s) or np.prod(s[axis:]) < 2:
        raise Unfit
    w = s[axis:]
    ins = [x, g.weight(g.dtype(x), w)] + ([g.weight(g.dtype(x), w)] if g.chance(70) else [])
    attrs = {"axis": axis} if axis != -1 or g.chance(40) else {}
    if g.chance(40):
        attrs["epsilon"] = float(g.pick(1e-5, 1e-2))
    return g.emit("LayerNormalization", ins, near(1e-3), outs=g.pick(1, 1, 3), **attrs)


def rms_norm(g):
    x = g.take(FLOATS, 1, 4, kind="mild")
    s = g.dims(x)
    axis = g.between(-len(s), len(s) - 1)
    if 0 in s[axis:]:
        raise Unfit
    return g.emit("RMSNormalization", [x, g.weight(g.dtype(x), s[axis:])], near(1e-3), axis=axis)


def simplified_layer_norm(g):
    x = g.take((np.float32,), 1, 4, kind="mild")
    if g.dims(x)[-1] == 0:
        raise Unfit  # which onnxruntime calls wrong, and the standard does not know
    return g.emit("SimplifiedLayerNormalization", [x, g.weight(np.float32, g.dims(x)[-1:])], near(1e-3), axis=-1,
                  epsilon=float(g.pick(1e-5, 1e-3)))


def skip_norm(op):
    def f(g):
        s = (g.pick(1, 2), g.pick(1, 3, 7), g.pick(4, 8, 13, 32))
        x, skip = g.new(np.float32, s, "mild"), g.new(np.float32, s, "mild")
        w = lambda: g.weight(np.float32, s[-1:])
        ins = [x, skip, w()]
        if op == "SkipLayerNormalization":
            ins += [w()] if g.chance(70) else [""]
        if g.chance(40):
            ins.append(w())
        while not ins[-1]:
            ins.pop()
        return g.emit(op, ins, near(1e-3), outs=g.pick([1], [1, 0, 0, 1]), domain="com.microsoft")
    return f


def lp_norm(g):
    x = g.take(FLOATS, 1, 4, kind="mild")
    attrs = {"p": g.pick(1, 2)} if g.chance(70) else {}
    if g.chance(70):
        attrs["axis"] = g.axis(len(g.dims(x)))
    return g.emit("LpNormalization", [x], near(1e-5), **attrs)


def mvn(g):
    x = g.take((np.float32,), 4 if g.chance(60) else 1, 4, kind="mild")
    attrs = {}
    if len(g.dims(x)) < 4 or g.chance(60):
        attrs["axes"] = g.axes(len(g.dims(x)))
        if not attrs["axes"]:
            raise Unfit
    return g.emit("MeanVarianceNormalization", [x], near(1e-3), **attrs)


def lrn(g):
    x, t, c = channels(g, 4, 4, (np.float32,))
    attrs = {k: v for k, v in (("alpha", 0.01), ("beta", 0.5), ("bias", 2.0)) if g.chance(40)}
    return g.emit("LRN", [x], near(1e-4), size=g.pick(1, 3, 5), **attrs)


def dropout(g):
    x = g.take(FLOATS)
    outs = g.pick(1, 1, 2)
    if g.opset >= 12:
        ins = [x] + ([g.const(0.3, np.float32)] if g.chance(50) else [])
        return g.emit("Dropout", ins, outs=outs)
    attrs = {"ratio": 0.3} if g.chance(50) else {}
    if g.opset < 7:
        attrs["is_test"] = 1
    return g.emit("Dropout", [x], outs=outs, **attrs)


OPS = {**{o: reduce(o) for o in REDUCE}, "ArgMax": arg("ArgMax"), "ArgMin": arg("ArgMin"), "CumSum": cumsum,
       "TopK": topk, **{o: softmax(o) for o in ("Softmax", "LogSoftmax", "Hardmax")},
       "BatchNormalization": batch_norm, "InstanceNormalization": instance_norm, "GroupNormalization": group_norm,
       "LayerNormalization": layer_norm, "RMSNormalization": rms_norm,
       "SimplifiedLayerNormalization": simplified_layer_norm, "LpNormalization": lp_norm,
       "MeanVarianceNormalization": mvn, "LRN": lrn, "Dropout": dropout,
       **{"com.microsoft." + o: skip_norm(o) for o in ("SkipLayerNormalization", "SkipSimplifiedLayerNormalization")}}
