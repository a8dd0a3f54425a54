"""Quantized operators."""
import numpy as np
from graph import STEP, EXACT, FLOATS, SUM, Unfit, near, ulp

F = np.float32
Q = (np.uint8, np.int8)


def qvalues(g, t, shape):
    i = np.iinfo(t)
    return g.rng.integers(i.min, i.max, shape, endpoint=True).astype(t)


def qparams(g, t, shape=()):
    s = g.pick(0.01, 0.05, 0.5, 0.25, 1.0)
    scale = np.full(shape, s, F) if g.chance(50) else (np.abs(g.values(F, shape, "mild")) * 0.1 + 0.01).astype(F)
    i = np.iinfo(t)
    zero = g.rng.integers(max(i.min, -200), min(i.max, 200), shape, endpoint=True).astype(t)
    return [g.const(scale), g.const(zero)]


def quantize(domain=""):
    def f(g):
        t = g.pick(*Q) if g.opset < 21 and not domain else g.pick(np.uint8, np.int8, np.uint16, np.int16)
        x = g.take((F,), 0, 4)
        s = g.dims(x)
        attrs, shape = {}, ()
        if s and g.chance(40) and (g.opset >= 13 or domain):
            axis = g.between(-len(s), len(s) - 1)
            shape = (s[axis],)
            attrs["axis"] = axis
        scale, zero = qparams(g, t, shape)
        if g.chance(50):  # ties
            scale = g.const(np.full(shape, 0.5 if g.chance(50) else 1, F))
            x = g.hold((g.rng.integers(-600, 600, s) / 4).astype(F), g.chance(20))
        elif g.wild and g.chance(80):
            x = g.hold(np.where(np.isnan(g.value(x)), F(1), g.value(x)), g.chance(20))
        ins = [x, scale] + ([zero] if g.chance(80) else [])
        return g.emit("QuantizeLinear", ins, domain=domain, **attrs)
    return f


def dequantize(domain=""):
    def f(g):
        t = g.pick(np.uint8, np.int8, np.int32) if g.opset < 21 else g.pick(np.uint8, np.int8, np.uint16, np.int16, np.int32)
        s = g.shape(0, 4)
        x = g.hold(g.values(t, s) if t == np.int32 else qvalues(g, t, s), g.chance(20))
        attrs, shape = {}, ()
        if s and g.chance(40) and (g.opset >= 13 or domain):
            axis = g.between(-len(s), len(s) - 1)
            shape = (s[axis],)
            attrs["axis"] = axis
        scale, zero = qparams(g, t, shape)
        if t == np.int32:
            zero = g.const(np.zeros(shape, t))
        if not domain and g.opset >= 21 and g.chance(20) and len(s) == 2 and 0 not in s and t != np.int32:
            b = g.pick(1, 2, 4)
            x = g.hold(qvalues(g, t, (s[0], s[1] * b)), False)
            scale, zero = qparams(g, t, s)
            attrs = {"axis": 1, "block_size": b}
        ins = [x, scale] + ([zero] if g.chance(80) else [])
        return g.emit("DequantizeLinear", ins, ulp(1), domain=domain, **attrs)
    return f


def dynamic(g):
    x = g.new(F, g.shape(0, 4), "mild")
    if g.value(x).size == 0:
        raise Unfit
    how = g.upto(4)
    if how == 0:
        x = g.hold(np.zeros(g.dims(x), F), g.chance(20))
    elif how == 1:
        x = g.hold(np.abs(g.value(x)), g.chance(20))
    elif how == 2:
        x = g.hold(-np.abs(g.value(x)), g.chance(20))
    return g.emit("DynamicQuantizeLinear", [x], STEP, outs=3)


def qinput(g, t, shape, vector=None):
    x = g.hold(qvalues(g, t, shape), g.chance(15))
    return [x] + qparams(g, t, () if vector is None else vector)


def qlinear_conv(g):
    k, groups = g.pick(1, 3), g.pick(1, 1, 2)
    c, o = groups * g.pick(1, 2, 4), groups * g.pick(1, 3, 8)
    t, wt = g.pick(*Q), g.pick(*Q)
    d = g.pick(1, 2, 2)
    x = qinput(g, t, (g.pick(1, 2), c) + (g.between(k, 8),) * d)
    w = [g.const(qvalues(g, wt, (o, c // groups) + (k,) * d)), *qparams(g, wt)]
    if g.chance(40) and wt == np.int8:
        w[1], w[2] = g.const((np.abs(g.values(F, (o,), "mild")) * 0.1 + 0.01).astype(F)), g.const(np.zeros(o, wt))
    y = qparams(g, t)
    y[0] = g.const(float(g.pick(1.0, 3.0, 10.0)), F)
    bias = [g.const(g.rng.integers(-3000, 3000, o).astype(np.int32))] if g.chance(50) else []
    attrs = {"pads": [k // 2] * (2 * d)} if g.chance(60) else {}
    if groups > 1:
        attrs["group"] = groups
    if g.chance(40):
        attrs["strides"] = [g.pick(1, 2)] * d
    return g.emit("QLinearConv", x + w + y + bias, STEP, **attrs)


def qlinear_matmul(g):
    t, wt = g.pick(*Q), g.pick(*Q)
    m, k, n = g.between(1, 9), g.between(1, 17), g.between(1, 9)
    lead = g.pick((), (), (2,))
    a, b = qinput(g, t, lead + (m, k)), qinput(g, wt, g.pick(lead, ()) + (k, n))
    y = qparams(g, t)
    y[0] = g.const(float(g.pick(1.0, 3.0, 10.0)), F)
    return g.emit("QLinearMatMul", a + b + y, STEP)


def zeros(g, t, n=None):
    return g.const(np.array(g.pick(0, 3, 100), t) if n is None else np.full(n, 5, t))


def conv_integer(g):
    t, wt = g.pick(*Q), g.pick(*Q)
    c, o, k, d = g.pick(1, 3), g.pick(1, 4, 5), g.pick(1, 2, 3), g.pick(1, 2, 2)
    x = g.hold(qvalues(g, t, (g.pick(1, 2), c) + (g.between(k, 7),) * d), False)
    ins = [x, g.const(qvalues(g, wt, (o, c) + (k,) * d))]
    if g.chance(70):
        ins.append(zeros(g, t))
        if g.chance(50):
            ins.append(zeros(g, wt))
    attrs = {"pads": [g.upto(k - 1) for _ in range(2 * d)]} if g.chance(60) else {}
    return g.emit("ConvInteger", ins, **attrs)


def matmul_integer(g):
    t, wt = g.pick(*Q), g.pick(*Q)
    m, k, n = g.between(1, 9), g.between(1, 17), g.between(1, 9)
    lead = g.pick((), (), (2,))
    ins = [g.hold(qvalues(g, t, lead + (m, k)), False), g.hold(qvalues(g, wt, g.pick(lead, ()) + (k, n)), g.chance(60))]
    if g.chance(70):
        ins.append(zeros(g, t))
        if g.chance(50):
            ins.append(zeros(g, wt, n if g.chance(30) and not lead else None))
    return g.emit("MatMulInteger", ins)


def ms_binary(op):
    def f(g):
        t = g.pick(*Q)
        s = g.shape(1, 4)
        y = qparams(g, t)
        y[0] = g.const(float(g.pick(0.1, 1.0, 3.0)), F)
        return g.emit(op, qinput(g, t, s) + qinput(g, t, g.cut(s)) + y, STEP, domain="com.microsoft")
    return f


def ms_unary(op):
    def f(g):
        t = g.pick(*Q)
        s = (g.pick(1, 2), g.pick(1, 3, 8), g.between(2, 7), g.between(2, 7)) if "Pool" in op else g.shape(1, 4)
        if 0 in s:
            raise Unfit
        attrs = {}
        if op == "QLinearAveragePool":
            attrs = {"kernel_shape": [2, 2], "strides": [g.pick(1, 2)] * 2}
            if g.chance(40):
                attrs["pads"] = [1, 0, 0, 1]
            if g.chance(40):
                attrs["count_include_pad"] = 1
        if op == "QLinearLeakyRelu":
            attrs["alpha"] = 0.1
        if op == "QLinearSoftmax":
            attrs = {"axis": -1, "opset": 13}
        y = qparams(g, t)
        if op in ("QLinearSoftmax", "QLinearSigmoid"):
            y = [g.const(1 / 256, F), g.const(0 if t == np.uint8 else -128, t)]
        return g.emit(op, qinput(g, t, s) + y, STEP, domain="com.microsoft", **attrs)
    return f


def ms_concat(g):
    t = g.pick(*Q)
    s = g.shape(1, 4)
    axis = g.between(-len(s), len(s) - 1)
    ins = qparams(g, t)
    for _ in range(g.between(1, 3)):
        d = list(s)
        d[axis] = g.between(1, 5)
        ins += qinput(g, t, d)
    return g.emit("QLinearConcat", ins, STEP, domain="com.microsoft", axis=axis)


def qgemm(g):
    t, wt = g.pick(*Q), np.int8
    m, k, n, tb = g.between(1, 9), g.between(1, 17), g.between(1, 9), g.upto(1)
    ins = qinput(g, t, (m, k)) + qinput(g, wt, (n, k) if tb else (k, n))
    ins += [g.const(g.rng.integers(-3000, 3000, n).astype(np.int32)) if g.chance(60) else ""]
    if g.chance(70):
        y = qparams(g, t)
        ins += [g.const(3.0, F), y[1]]
    while not ins[-1]:
        ins.pop()
    return g.emit("QGemm", ins, STEP if len(ins) > 7 else near(1e-4), domain="com.microsoft", transB=tb)


def matmul_nbits(g):
    k, n, block = g.pick(32, 64, 48), g.pick(1, 8, 17), 32
    blocks = -(-k // block)
    w = g.rng.integers(0, 256, (n, blocks, block // 2)).astype(np.uint8)
    ins = [g.new(F, (g.pick(1, 3), k), "mild"), g.const(w), g.const(g.values(F, (n * blocks,), "mild"))]
    if g.chance(50):
        ins.append(g.const(g.rng.integers(0, 256, n * ((blocks + 1) // 2)).astype(np.uint8)))
    return g.emit("MatMulNBits", ins, near(1e-4), domain="com.microsoft", K=k, N=n, bits=4, block_size=block)


MS = "com.microsoft."
OPS = {"QuantizeLinear": quantize(), MS + "QuantizeLinear": quantize("com.microsoft"), "DequantizeLinear": dequantize(),
       MS + "DequantizeLinear": dequantize("com.microsoft"), "DynamicQuantizeLinear": dynamic, "QLinearConv": qlinear_conv,
       "QLinearMatMul": qlinear_matmul, "ConvInteger": conv_integer, "MatMulInteger": matmul_integer,
       **{MS + o: ms_binary(o) for o in ("QLinearAdd", "QLinearMul")},
       **{MS + o: ms_unary(o) for o in ("QLinearSigmoid", "QLinearLeakyRelu", "QLinearGlobalAveragePool", "QLinearAveragePool",
                                        "QLinearSoftmax")},
       MS + "QLinearConcat": ms_concat, MS + "QGemm": qgemm, MS + "MatMulNBits": matmul_nbits}
