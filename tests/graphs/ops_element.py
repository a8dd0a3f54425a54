"""Element by element."""
import numpy as np
from onnx import helper as h, numpy_helper as nh
from graph import ALL, EXACT, FLOATS, INTS, NUMBERS, SIGNED, SUM, UNSIGNED, Unfit, is_float, near, ulp

FEW = ulp(8)  # functions of libm, and short formulas of them
ABS = ulp(16, 4e-7)  # onnxruntime's polynomials, which are near in absolute terms

UNARY = {
    "Abs": (NUMBERS, EXACT), "Acos": (FLOATS, FEW), "Acosh": (FLOATS, FEW), "Asin": (FLOATS, FEW),
    "Asinh": (FLOATS, FEW), "Atan": (FLOATS, FEW), "Atanh": (FLOATS, FEW), "BitwiseNot": (INTS, EXACT),
    "Ceil": (FLOATS, EXACT), "Cos": (FLOATS, ABS), "Cosh": (FLOATS, FEW), "Erf": (FLOATS, ABS),
    "Exp": (FLOATS, FEW), "Floor": (FLOATS, EXACT), "IsNaN": (FLOATS, EXACT), "Log": (FLOATS, FEW),
    "Neg": (FLOATS + SIGNED, EXACT), "Not": ((np.bool_,), EXACT), "Relu": (FLOATS + SIGNED, EXACT),
    "Round": (FLOATS, EXACT), "Sigmoid": (FLOATS, ABS), "Sign": (NUMBERS, EXACT), "Sin": (FLOATS, ABS),
    "Sinh": (FLOATS, FEW), "Sqrt": (FLOATS, ulp(1)), "Tan": (FLOATS, ulp(8, 4e-7)), "Tanh": (FLOATS, ABS),
    "Identity": (ALL, EXACT), "IsInf": (FLOATS, EXACT), "Reciprocal": (FLOATS, ulp(1)), "Softplus": (FLOATS, ABS),
    "Softsign": (FLOATS, FEW), "Elu": (FLOATS, ABS), "Selu": (FLOATS, ABS), "Celu": (FLOATS, ABS),
    "LeakyRelu": (FLOATS, ulp(1)), "ThresholdedRelu": (FLOATS, EXACT), "HardSigmoid": (FLOATS, ABS),
    "HardSwish": (FLOATS, ABS), "Mish": (FLOATS, ABS), "Gelu": (FLOATS, ulp(16, 2e-6)), "Swish": (FLOATS, ulp(16, 4e-6)),
    "Shrink": (NUMBERS, ulp(1)),
}


def unary(op):
    types, tol = UNARY[op]

    def f(g):
        attrs = {}
        if op in ("Elu", "Celu", "LeakyRelu", "ThresholdedRelu", "Selu", "HardSigmoid", "Swish") and g.chance(60):
            attrs["alpha"] = float(g.pick(0.5, 0.01, 1.0, 2.0, 0.3))
        if op == "HardSigmoid" and g.chance(50):
            attrs["beta"] = float(g.pick(0.0, 0.6, 0.5))
        if op == "Selu" and g.chance(50):
            attrs["gamma"] = float(g.pick(1.0, 1.5))
        if op == "Gelu" and g.chance(60):
            attrs["approximate"] = g.pick("tanh", "none")
        if op == "Shrink" and g.chance(70):
            attrs.update(lambd=float(g.pick(0.5, 1.0, 0.0)), bias=float(g.pick(0.0, 0.5, 1.0)))
        if op == "IsInf":
            for a in ("detect_negative", "detect_positive"):
                if g.chance(50):
                    attrs[a] = g.upto(1)
        return g.emit(op, [g.take(types)], tol, **attrs)
    return f


BINARY = {
    "Add": (NUMBERS, ulp(0)), "Sub": (NUMBERS, ulp(0)), "Mul": (NUMBERS, ulp(0)), "Div": (NUMBERS, ulp(1)),
    "And": ((np.bool_,), EXACT), "Or": ((np.bool_,), EXACT), "Xor": ((np.bool_,), EXACT),
    "BitwiseAnd": (INTS, EXACT), "BitwiseOr": (INTS, EXACT), "BitwiseXor": (INTS, EXACT),
    "Equal": (ALL, EXACT), "Less": (NUMBERS, EXACT), "LessOrEqual": (NUMBERS, EXACT),
    "Greater": (NUMBERS, EXACT), "GreaterOrEqual": (NUMBERS, EXACT), "PRelu": (FLOATS + INTS, ulp(1)),
}


def operands(g, types, kind="any"):
    """Two that broadcast."""
    x = g.take(types, kind=kind)
    y = g.new(g.dtype(x), g.cut(g.dims(x)), kind)
    if g.chance(15) and g.dims(x):  # a larger one
        y = g.new(g.dtype(x), (g.pick(1, 2, 3),) + g.dims(y) if len(g.dims(y)) == len(g.dims(x)) else g.dims(y), kind)
    return (x, y)


def binary(op):
    types, tol = BINARY[op]

    def f(g):
        old = g.opset < 7 and op != "PRelu"
        x, y = operands(g, types)
        attrs = {}
        if op == "PRelu" or old:
            if len(g.dims(y)) > len(g.dims(x)):
                raise Unfit
        if old and g.dims(x) != g.dims(y):
            s = g.dims(x)
            axis = g.upto(len(s))
            y = g.new(g.dtype(x), s[axis:axis + g.upto(len(s) - axis)])
            attrs = {"broadcast": 1}
            if g.chance(70):
                attrs["axis"] = axis
        elif g.chance(40) and op != "PRelu" and not old:
            x, y = y, x
        return g.emit(op, [x, y], tol, **attrs)
    return f


def whole_parts(x, y):
    """Quotient without its fraction; by 0 it is 0, as numpy's, and what the type does not hold wraps."""
    one = lambda a, b: 0 if b == 0 else abs(a) // abs(b) * (-1 if (a < 0) != (b < 0) else 1)
    return np.frompyfunc(one, 2, 1)(x.astype(object), y.astype(object))


def divided(g, op, x, y, **attrs):
    """Integers by any: where onnxruntime would crash, by 0 and the least by -1, numpy says it."""
    a, b = g.value(x), g.value(y)
    wrong = (b == 0) | (b == np.array(-1).astype(b.dtype)) & (np.iinfo(b.dtype).min < 0)
    if g.chance(50):
        y = g.hold(np.where(wrong, np.array(3, b.dtype), b), g.chance(50))
        return g.emit(op, [x, y], **attrs)
    if op == "Div":
        r = whole_parts(a, b)
    elif attrs.get("fmod"):
        r = np.where(b == 0, 0, a.astype(object) - whole_parts(a, b) * b.astype(object))
    else:
        r = np.frompyfunc(lambda a, b: a % b if b else 0, 2, 1)(a.astype(object), b.astype(object))
    bits = 8 * a.dtype.itemsize
    wrap = np.frompyfunc(lambda v: (v + 2 ** (bits - 1)) % 2 ** bits - 2 ** (bits - 1) if a.dtype.kind == "i" else v, 1, 1)
    value = nh.from_array(np.asarray(wrap(r)).astype(a.dtype))
    return g.emit(op, [x, y], oracle=lambda ins, outs: ([h.make_node("Constant", [], outs, value=value)], 21), **attrs)


def div(g):
    x, y = operands(g, NUMBERS if g.opset >= 7 else FLOATS)
    if g.opset < 7 and g.dims(x) != g.dims(y):
        raise Unfit
    return g.emit("Div", [x, y], ulp(1)) if is_float(g.dtype(x)) else divided(g, "Div", x, y)


def mod(g):
    x, y = operands(g, NUMBERS)
    fmod = g.upto(1) or is_float(g.dtype(x))
    attrs = {"fmod": int(fmod)} if fmod or g.chance(50) else {}
    return g.emit("Mod", [x, y], **attrs) if is_float(g.dtype(x)) else divided(g, "Mod", x, y, **attrs)


def power(g):
    x, y = operands(g, FLOATS + (np.int32, np.int64) if g.opset >= 12 else FLOATS, g.pick("any", "mild"))
    if g.opset >= 12 and g.chance(60):
        y = g.new(g.pick(np.float32, np.float64, np.int32, np.int64), g.cut(g.dims(x)), "mild")
        if g.chance(40):
            y = g.hold(np.array(g.pick(0, 1, 2, 3, -1, 4), g.dtype(y)), True)
    elif g.chance(60):
        y = g.hold(np.array(g.pick(0, 1, 2, 3, 0.5, -1, -2, 0.25, 4, 10, -0.5), g.dtype(x)), g.chance(70))
    if g.opset < 7 and g.dims(x) != g.dims(y):
        raise Unfit
    if not is_float(g.dtype(x)):  # what no integer holds is undefined
        x = g.new(g.dtype(x), g.dims(x), "mild")
        with np.errstate(all="ignore"):
            if not (np.abs(np.power(g.value(x).astype(float), g.value(y).astype(float))) < 2.0 ** 31).all():
                raise Unfit
        return g.emit("Pow", [x, y])
    return g.emit("Pow", [x, y], ulp(32))


def bit_shift(g):
    x = g.take(UNSIGNED)
    t = g.dtype(x)
    y = g.hold(g.rng.integers(0, np.iinfo(t).bits, g.cut(g.dims(x))).astype(t), g.chance(50))
    return g.emit("BitShift", [x, y], direction=g.pick("LEFT", "RIGHT"))


def variadic(op):
    def f(g):
        types = FLOATS if op in ("Sum", "Mean") else NUMBERS if g.opset >= 12 else FLOATS
        x = g.take(types)
        ins = [x]
        for _ in range(g.pick(0, 1, 1, 1, 2, 3)):
            ins.append(g.new(g.dtype(x), g.dims(x) if g.opset < 8 else g.cut(g.dims(x))))
        if g.chance(30):
            ins.reverse()
        return g.emit(op, ins, EXACT if op in ("Max", "Min") else SUM if not g.wild else ulp(8))
    return f


def where(g):
    x = g.take(ALL)
    y = g.new(g.dtype(x), g.cut(g.dims(x)))
    c = g.take((np.bool_,), shape=g.cut(g.dims(x)))
    ins = [c, x, y] if g.chance(50) else [c, y, x]
    return g.emit("Where", ins)


def clip(g):
    x = g.take(NUMBERS if g.opset >= 12 else FLOATS)
    t = g.dtype(x)
    ends = [t(v) for v in ((0, 1, 5, 6, 9, 100) if t in UNSIGNED else (-3, -1, 0, 0.5, 6, 1))]
    if is_float(t) and g.chance(20):
        ends += [t(np.inf), t(-np.inf), t(np.nan), np.finfo(t).max]
    if g.opset < 11:
        ends.sort(key=lambda v: (v != v, v))
        attrs = {k: float(g.pick(*e)) for k, e in (("min", ends[:2]), ("max", ends[2:])) if g.chance(70)}
        return g.emit("Clip", [x], **attrs)
    ins = [x] + [g.hold(np.array(g.pick(*ends), t), g.chance(80)) if g.chance(75) else "" for _ in range(2)]
    while not ins[-1]:
        ins.pop()
    return g.emit("Clip", ins)


def fits(x, to):
    """Cells whose cast is defined: to integers, what they hold."""
    if not is_float(x.dtype) or is_float(to) or to == np.bool_:
        return x
    info = np.iinfo(to)
    with np.errstate(all="ignore"):
        t = np.trunc(x.astype(np.float64))
        ok = (t >= float(info.min)) & (t < float(info.max)) & np.isfinite(x)
    return np.where(ok, x, x.dtype.type(1))


def cast(g):
    x = g.take(ALL)
    to = g.pick(*ALL)
    if is_float(g.dtype(x)) and not is_float(to) and g.chance(85):
        x = g.hold(fits(g.value(x), to), g.chance(20))
    return g.emit("Cast", [x], to=int(h.np_dtype_to_tensor_dtype(np.dtype(to))))


def cast_like(g):
    x = g.take(ALL)
    to = g.pick(*ALL)
    if is_float(g.dtype(x)) and not is_float(to) and g.chance(85):
        x = g.hold(fits(g.value(x), to), g.chance(20))
    return g.emit("CastLike", [x, g.new(to, g.shape(0, 2))])


def bias_gelu(op):
    def f(g):
        x = g.take((np.float32,), 1)
        ins = [x, g.new(np.float32, g.dims(x)[-1:], "mild")]
        if op == "FastGelu" and g.chance(40):
            ins.pop()
        return g.emit(op, ins, ulp(32, 1e-6), domain="com.microsoft")
    return f


def ms_unary(op):
    def f(g):
        attrs = {"alpha": float(g.pick(1.0, 1.702, 0.5))} if op == "QuickGelu" and g.chance(60) else {}
        return g.emit(op, [g.take((np.float32,))], ulp(32, 4e-6), domain="com.microsoft", **attrs)
    return f


OPS = {**{o: unary(o) for o in UNARY}, **{o: binary(o) for o in BINARY}, "Div": div, "Mod": mod, "Pow": power,
       "BitShift": bit_shift, **{o: variadic(o) for o in ("Sum", "Max", "Min", "Mean")}, "Where": where, "Clip": clip,
       "Cast": cast, "CastLike": cast_like, **{"com.microsoft." + o: bias_gelu(o) for o in ("BiasGelu", "FastGelu")},
       **{"com.microsoft." + o: ms_unary(o) for o in ("Gelu", "QuickGelu")}}
