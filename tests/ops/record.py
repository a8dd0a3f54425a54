"""Records tests/ops/<operator>.case: what each operator gives, by numpy and onnxruntime.

    python3 tests/ops/record.py            # needs numpy, onnx, onnxruntime; writes beside itself

A case file holds one or more cases, separated by lines of dashes:

    fn @main(%0: Tensor[(2, 3), f32], %1: Tensor[(3), f32]) { add(%0, %1) }
    in rand -2 2 1              an operand: number i is lo + (hi - lo) * u(i, seed), see `rand`
    in vals 1 2 3               .. or as listed
    out 0.5 1.25 ..             each result, flattened; nan, inf and -inf are words
    tol 1e-05                   relative and absolute; exact where it is absent

tests/unit/test_ops.c runs them through the interpreter and compares.  The expected numbers owe
nothing to this project: keep it so.
"""
import os
import sys

import ml_dtypes
import numpy as np
import onnx
import onnxruntime as ort
from onnx import TensorProto, helper

DT = {"f32": np.float32, "f64": np.float64, "i8": np.int8, "u8": np.uint8, "i32": np.int32, "i64": np.int64,
      "u32": np.uint32, "i16": np.int16, "u16": np.uint16, "bool": np.bool_, "f16": np.float16}
CASES = {}  # file name -> list of texts


def rand(shape, dtype, lo, hi, seed):
    """The formula of `in rand`; test_ops.c has the same."""
    n = int(np.prod(shape))
    x = np.arange(n, dtype=np.uint64) + np.uint64(seed) * np.uint64(1000003)
    x = (x * np.uint64(2654435761) + np.uint64(40503)) & np.uint64(0xFFFFFFFF)
    x = x ^ (x >> np.uint64(15))
    x = (x * np.uint64(2246822519)) & np.uint64(0xFFFFFFFF)
    x = x ^ (x >> np.uint64(13))
    u = (x >> np.uint64(8)).astype(np.float64) / 16777216.0
    v = lo + (hi - lo) * u
    if not np.issubdtype(DT[dtype], np.floating):
        v = np.floor(v)
    return v.astype(DT[dtype]).reshape(shape)


class In:
    def __init__(self, dtype, *shape, lo=-2.0, hi=2.0, vals=None):
        self.dtype, self.shape, self.lo, self.hi, self.vals = dtype, shape, lo, hi, vals

    def make(self, seed):
        if self.vals is not None:
            a = np.array(self.vals, DT[self.dtype]).reshape(self.shape)
            return a, "in vals " + " ".join(num(v) for v in a.flatten())
        a = rand(self.shape, self.dtype, self.lo, self.hi, seed)
        return a, f"in rand {self.lo:g} {self.hi:g} {seed}"

    def type(self):
        return f"Tensor[({', '.join(map(str, self.shape))}{',' if len(self.shape) == 1 else ''}), {self.dtype}]"


def num(v):
    if isinstance(v, (np.floating, float)):
        if np.isnan(v):
            return "nan"
        if np.isinf(v):
            return "inf" if v > 0 else "-inf"
        return "%.9g" % v if not isinstance(v, np.float64) else "%.17g" % v
    return str(int(v))


def case(name, call, ins, fn, tol=None):
    """`call` is Relay text over %0, %1 ..; `fn` of the arrays gives the expected array or a tuple of them."""
    args, lines = [], []
    for i, x in enumerate(ins):
        a, text = x.make(i + 1 + 10 * len(CASES.get(name, [])))
        args.append(a)
        lines.append(text)
    with np.errstate(all="ignore"):
        want = fn(*args)
    want = want if isinstance(want, (tuple, list)) else (want,)
    params = ", ".join(f"%{chr(97 + i)}: {x.type()}" for i, x in enumerate(ins))
    body = call
    for i in range(len(ins)):
        body = body.replace(f"%{i}", f"%{chr(97 + i)}")
    out = [f"fn @main({params}) {{ {body} }}"] + lines
    for w in want:
        out.append(("out " + " ".join(num(v) for v in np.asarray(w).flatten())).rstrip())
    if tol:
        out.append(f"tol {tol:g}")
    CASES.setdefault(name, []).append("\n".join(out) + "\n")


def run_ort(op, inputs, nout=1, opset=18, **attrs):
    """One ONNX node; None is an input that is left out."""
    np2t = {np.dtype(v): helper.np_dtype_to_tensor_dtype(np.dtype(v)) for v in DT.values()}
    names = ["" if x is None else f"x{i}" for i, x in enumerate(inputs)]
    outs = [f"y{i}" for i in range(nout)]
    node = helper.make_node(op, names, outs, **attrs)
    graph = helper.make_graph(
        [node], "g", [helper.make_tensor_value_info(n, np2t[x.dtype], x.shape) for n, x in zip(names, inputs) if n],
        [helper.make_empty_tensor_value_info(o) for o in outs])
    m = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)
    so = ort.SessionOptions()
    so.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    so.log_severity_level = 3
    s = ort.InferenceSession(m.SerializeToString(), so, providers=["CPUExecutionProvider"])
    r = s.run(None, {n: x for n, x in zip(names, inputs) if n})
    return r[0] if nout == 1 else tuple(r)


F = lambda *s, lo=-2.0, hi=2.0: In("f32", *s, lo=lo, hi=hi)
V = lambda dtype, *vals: In(dtype, len(vals), vals=vals)
NAN, INF = float("nan"), float("inf")


def elementwise():
    both = [F(2, 3, 5), F(3, 1)]
    for name, fn, tol in (("add", np.add, 0), ("subtract", np.subtract, 0), ("multiply", np.multiply, 0),
                          ("divide", np.divide, 0), ("maximum", np.maximum, 0), ("minimum", np.minimum, 0)):
        case(name, f"{name}(%0, %1)", both, fn, tol)
        case(name, f"{name}(%0, %1)", [V("f32", 1, NAN, -0.0, INF, -INF), V("f32", NAN, 2, 0.0, -INF, -INF)], fn)
    case("add", "add(%0, %1)", [F(1, 7, 2, 3), F(1, 7, 2, 3)], np.add)
    case("multiply", "multiply(%0, %1)", [F(1, 7, 2, 3), F(7, 1, 1)], np.multiply)
    case("add", "add(%0, %1)", [V("i8", 127, -128, 5), V("i8", 1, -1, 6)], np.add)
    case("multiply", "multiply(%0, %1)", [V("i64", 3, -4, 1 << 40), V("i64", 5, 6, 7)], np.multiply)
    case("divide", "divide(%0, %1)", [V("i32", 7, -7, 7, -7, 9), V("i32", 2, 2, -2, -2, 3)],
         lambda a, b: np.trunc(a / b).astype(np.int32))
    case("power", "power(%0, %1)", [F(3, 4, lo=0.1, hi=3), F(4)], np.power, 1e-5)
    case("power", "power(%0, %1)", [V("i64", 2, 3, -2), V("i64", 10, 3, 3)], np.power)
    case("mod", "mod(%0, %1)", [F(4, 5, lo=-9, hi=9), F(5, lo=0.5, hi=3)], np.fmod, 1e-6)
    case("mod", "mod(%0, %1)", [V("i32", 7, -7, 7, -7), V("i32", 3, 3, -3, -3)], np.fmod)
    case("floor_mod", "floor_mod(%0, %1)", [V("i32", 7, -7, 7, -7, 6), V("i32", 3, 3, -3, -3, 3)], np.mod)
    case("floor_mod", "floor_mod(%0, %1)", [F(4, 5, lo=-9, hi=9), F(5, lo=0.5, hi=3)], np.mod, 1e-6)
    case("floor_divide", "floor_divide(%0, %1)", [V("i32", 7, -7, 7, -7, 6), V("i32", 3, 3, -3, -3, 3)],
         np.floor_divide)
    case("floor_divide", "floor_divide(%0, %1)", [F(4, 5, lo=-9, hi=9), F(5, lo=0.5, hi=3)], lambda a, b: np.floor(a / b))
    case("left_shift", "left_shift(%0, %1)", [V("i32", 1, 5, -3), V("i32", 4, 1, 2)], np.left_shift)
    case("right_shift", "right_shift(%0, %1)", [V("i32", 64, 5, -9), V("i32", 4, 1, 2)], np.right_shift)
    case("right_shift", "right_shift(%0, %1)", [V("u8", 255, 128), V("u8", 4, 1)], np.right_shift)
    for name, fn in (("and", np.bitwise_and), ("or", np.bitwise_or), ("xor", np.bitwise_xor)):
        case("bitwise_" + name, f"bitwise_{name}(%0, %1)", [V("i32", 12, -5, 255), V("i32", 10, 3, 129)], fn)
    truth = [In("bool", 4, 1, vals=[0, 1, 1, 0]), In("bool", 2, vals=[0, 1])]
    for name, fn in (("and", np.logical_and), ("or", np.logical_or), ("xor", np.logical_xor)):
        case("logical_" + name, f"logical_{name}(%0, %1)", truth, fn)
    case("logical_not", "logical_not(%0)", truth[:1], np.logical_not)
    case("bitwise_not", "bitwise_not(%0)", [V("i32", 0, 5, -9)], np.bitwise_not)
    for name, fn in (("equal", np.equal), ("not_equal", np.not_equal), ("less", np.less), ("less_equal", np.less_equal),
                     ("greater", np.greater), ("greater_equal", np.greater_equal)):
        case(name, f"{name}(%0, %1)", [In("f32", 2, 3, vals=[1, 2, NAN, -0.0, INF, 3]), V("f32", 1, 3, NAN)], fn)
        case(name, f"{name}(%0, %1)", [V("i64", 1, 2, 3), V("i64", 2, 2, 2)], fn)
    case("where", "where(%0, %1, %2)", [In("bool", 3, 1, vals=[0, 1, 1]), F(3, 4), F(1, 4)], np.where)

    from math import erf
    wide = F(3, 7, lo=-6, hi=6)
    for name, fn, x, tol in (
            ("copy", lambda a: a, wide, 0), ("negative", np.negative, wide, 0), ("abs", np.abs, wide, 0),
            ("sqrt", np.sqrt, F(21, lo=0, hi=9), 1e-7), ("rsqrt", lambda a: 1 / np.sqrt(a), F(21, lo=0.1, hi=9), 1e-6),
            ("exp", np.exp, wide, 1e-6), ("log", np.log, F(21, lo=0.01, hi=9), 1e-6), ("tanh", np.tanh, wide, 1e-6),
            ("erf", np.vectorize(erf, otypes=[np.float32]), wide, 1e-6),
            ("sigmoid", lambda a: (1 / (1 + np.exp(-a.astype(np.float64)))).astype(np.float32), wide, 1e-6),
            ("sin", np.sin, wide, 1e-6), ("cos", np.cos, wide, 1e-6), ("tan", np.tan, F(21, lo=-1.2, hi=1.2), 1e-6),
            ("asin", np.arcsin, F(21, lo=-1, hi=1), 1e-6), ("acos", np.arccos, F(21, lo=-1, hi=1), 1e-6),
            ("atan", np.arctan, wide, 1e-6), ("sinh", np.sinh, F(21), 1e-6), ("cosh", np.cosh, F(21), 1e-6),
            ("asinh", np.arcsinh, wide, 1e-6), ("acosh", np.arccosh, F(21, lo=1, hi=9), 1e-6),
            ("atanh", np.arctanh, F(21, lo=-0.9, hi=0.9), 1e-6), ("floor", np.floor, wide, 0), ("ceil", np.ceil, wide, 0),
            ("round", np.round, wide, 0), ("trunc", np.trunc, wide, 0)):
        case(name, f"{name}(%0)", [x], fn, tol)
        if name in ("exp", "tanh", "sigmoid", "sqrt", "abs", "copy", "negative"):
            case(name, f"{name}(%0)", [F(1, 5, 3, 2, lo=0, hi=2)], fn, tol)
    case("round", "round(%0)", [V("f32", 0.5, 1.5, 2.5, -0.5, -1.5, NAN)], np.round)
    case("floor", "floor(%0)", [V("i32", 3, -4)], lambda a: a)
    case("abs", "abs(%0)", [V("i32", 3, -4, 0)], np.abs)
    case("negative", "negative(%0)", [V("i64", 3, -4, 0)], np.negative)
    case("sign", "sign(%0)", [V("f32", 3, -4, 0, NAN, INF)], np.sign)
    case("sign", "sign(%0)", [V("i32", 3, -4, 0)], np.sign)
    case("isnan", "isnan(%0)", [V("f32", 3, -4, 0, NAN, INF, -INF)], np.isnan)
    case("isinf", "isinf(%0)", [V("f32", 3, -4, 0, NAN, INF, -INF)], np.isinf)
    for a, b in (("f32", "i32"), ("f32", "i64"), ("i64", "f32"), ("bool", "f32"), ("f32", "f64"), ("i32", "i8"), ("f32", "f16")):
        x = In(a, 6, vals=[0, 1, 1, 0, 1, 1]) if a == "bool" else In(a, 6, lo=-100, hi=100)
        case("cast", f"cast(%0, dtype={b})", [x], lambda v: v.astype(DT[b]))
    for a, b in (("f32", "i32"), ("i32", "f32"), ("u16", "f16"), ("i8", "u8"), ("u8", "i8"), ("f64", "i64"), ("bool", "u8")):
        x = In(a, 3, 4, lo=0 if a == "bool" else -100 if a[0] != "u" else 0, hi=2 if a == "bool" else 100)
        case("bitcast", f"bitcast(%0, dtype={b})", [x], lambda v, b=b: v.view(DT[b]))
    case("bitcast", "bitcast(%0, dtype=u32)", [V("f32", -0.0, INF, NAN, 1e-45)], lambda v: v.view(np.uint32))
    case("cast", "cast(%0, dtype=bool)", [V("f32", 0, 0.5, -2, NAN)], lambda v: v != 0)
    case("cast", "cast(%0, dtype=i32)", [F(1, 5, 3, 2, lo=-9, hi=9)], lambda v: v.astype(np.int32))
    stored_casts()
    case("clip", "clip(%0, a_min=0.0, a_max=6.0)", [F(1, 5, 3, 2, lo=-9, hi=9)], lambda v: np.clip(v, 0, 6))
    case("clip", "clip(%0, a_min=1.0, a_max=2.5)", [V("f32", 0, 1, 2, 3, NAN, INF, -INF)], lambda v: np.clip(v, 1, 2.5))
    case("clip", "clip(%0, a_min=1.0, a_max=2.0)", [F(1, 5, 3, 2)], lambda v: np.clip(v, 1, 2))
    case("clip", "clip(%0, a_min=-3.5, a_max=1000.0)", [V("i8", 5, -5, 127)], lambda v: np.clip(v, -3, 127))
    case("nn.relu", "nn.relu(%0)", [F(1, 5, 3, 2)], lambda v: np.maximum(v, 0))
    case("nn.relu", "nn.relu(%0)", [V("f32", NAN, -1, -0.0, INF)], lambda v: np.maximum(v, 0))
    case("nn.leaky_relu", "nn.leaky_relu(%0, alpha=0.125)", [F(1, 5, 3, 2)], lambda v: np.where(v < 0, v * np.float32(0.125), v))
    case("nn.prelu", "nn.prelu(%0, %1)", [F(2, 3, 4), F(3)], lambda v, a: np.where(v < 0, v * a[None, :, None], v))
    case("nn.bias_add", "nn.bias_add(%0, %1)", [F(1, 5, 3, 2), F(5)], lambda v, b: v + b[:, None, None])
    case("nn.bias_add", "nn.bias_add(%0, %1)", [F(2, 16, 3, 2), F(16)], lambda v, b: v + b[:, None, None])
    case("nn.bias_add", "nn.bias_add(%0, %1, axis=-1)", [F(2, 5), F(5)], lambda v, b: v + b)


def stored_casts():
    """Through types that only memory has: the largest numbers and beyond, the smallest, ties, all codes of 4 bits."""
    ties = [m * 2.0**e for e in (-18, -17, -16, -11, -10, -9, -8, -7, -1, 0, 3) for m in (0.75, 1.0, 1.0625, 1.125, 1.5, 1.875)]
    edges = [0.0, -0.0, 240, 248, 249, 448, 464, 465, 480, 57344, 61439, 61440, 1e9, 3e38, INF, NAN]
    x = In("f32", 2 * len(edges) + 2 * len(ties), vals=[s * v for v in edges + ties for s in (1, -1)])
    for name in ("e4m3fn", "e4m3fnuz", "e5m2", "e5m2fnuz"):
        t = getattr(ml_dtypes, "float8_" + name)
        case("cast", f"cast(cast(%0, dtype=f8{name}), dtype=f32)", [x],
             lambda v, t=t: onnx.numpy_helper.saturate_cast(v, t).astype(np.float32))
        case("cast", f"cast(cast(%0, dtype=f8{name}, saturate=false), dtype=f32)", [x],
             lambda v, t=t: v.astype(t).astype(np.float32))
    case("cast", "cast(cast(%0, dtype=f4e2m1fn), dtype=f32)", [x],
         lambda v: v.astype(ml_dtypes.float4_e2m1fn).astype(np.float32))
    positive = In("f32", 12, vals=[1e-45, 2.0**-127, 2.0**-126, 1.5 * 2.0**-126, 0.75, 1, 1.4, 1.5, 1.6, 3, 3e38, NAN])
    for mode in ("up", "down", "nearest"):
        case("cast", f'cast(cast(%0, dtype=f8e8m0fnu, round_mode="{mode}"), dtype=f32)', [positive],
             lambda v, mode=mode: onnx.numpy_helper.to_float8e8m0(v, True, mode).astype(np.float32))
    for name, t in (("i4", ml_dtypes.int4), ("u4", ml_dtypes.uint4), ("i2", ml_dtypes.int2), ("u2", ml_dtypes.uint2)):
        case("cast", f"cast(cast(%0, dtype={name}), dtype=i32)", [In("i32", 20, vals=list(range(-10, 10)))],
             lambda v, t=t: v.astype(t).astype(np.int32))
        case("cast", f"cast(cast(%0, dtype={name}), dtype=f32)", [F(20, lo=-9, hi=9)],
             lambda v, t=t: v.astype(np.int32).astype(t).astype(np.float32))
    # other operators: numbers in between, cells where they only move
    fp8 = lambda v: v.astype(ml_dtypes.float8_e4m3fn).astype(np.float32)
    case("cast", "cast(transpose(cast(%0, dtype=f8e4m3fn), axes=[1, 0]), dtype=f32)", [F(3, 5)], lambda v: fp8(v).T)
    case("cast", "cast(concatenate((cast(%0, dtype=i4), cast(%1, dtype=i4)), axis=0), dtype=i32)",
         [In("i32", 3, lo=-8, hi=8), In("i32", 4, lo=-8, hi=8)], lambda a, b: np.concatenate([a, b]))
    case("cast", "cast(strided_slice(cast(%0, dtype=u2), begin=[1], end=[9], strides=[3]), dtype=i32)",
         [In("i32", 10, lo=0, hi=4)], lambda v: v[1:9:3])
    case("cast", "cast(where(%0, cast(%1, dtype=f8e4m3fn), cast(%2, dtype=f8e4m3fn)), dtype=f32)",
         [In("bool", 4, vals=[0, 1, 1, 0]), F(4), F(4)], lambda m, a, b: np.where(m, fp8(a), fp8(b)))


def normalization():
    def bn(x, g, b, m, v):
        s = (slice(None),) + (None,) * (x.ndim - 2)
        y = (x.astype(np.float64) - m[s]) / np.sqrt(v[s].astype(np.float64) + 1e-5) * g[s] + b[s]
        return y.astype(np.float32), m, v
    case("nn.batch_norm", "nn.batch_norm(%0, %1, %2, %3, %4)",
         [F(2, 3, 4, 5), F(3), F(3), F(3), F(3, lo=0.5, hi=2)], bn, 1e-5)
    case("nn.batch_norm", "nn.batch_norm(%0, %1, %2, %3, %4)", [F(4, 6), F(6), F(6), F(6), F(6, lo=0.5, hi=2)], bn, 1e-5)
    case("nn.dropout", "nn.dropout(%0)", [F(2, 3)], lambda x: (x, np.ones_like(x)))

    def ln(x, g, b, axis=-1):
        ax = tuple(range(axis % x.ndim, x.ndim))
        x = x.astype(np.float64)
        m = x.mean(ax, keepdims=True)
        v = ((x - m) ** 2).mean(ax, keepdims=True)
        return ((x - m) / np.sqrt(v + 1e-5) * g + b).astype(np.float32)
    case("nn.layer_norm", "nn.layer_norm(%0, %1, %2)", [F(2, 3, 7), F(7), F(7)], ln, 1e-5)
    case("nn.layer_norm", "nn.layer_norm(%0, %1, %2, axis=1)", [F(2, 3, 4), F(3, 4), F(3, 4)], lambda x, g, b: ln(x, g, b, 1), 1e-5)

    def softmax(x, axis, log=False):
        x = x.astype(np.float64)
        x = x - x.max(axis, keepdims=True)
        s = np.exp(x).sum(axis, keepdims=True)
        return (x - np.log(s) if log else np.exp(x) / s).astype(np.float32)
    for axis, shape in ((-1, (3, 7)), (1, (2, 5, 3)), (0, (4,)), (-1, (1, 2, 3, 9))):
        case("nn.softmax", f"nn.softmax(%0, axis={axis})", [F(*shape, lo=-9, hi=90)], lambda x: softmax(x, axis), 1e-5)
        case("nn.log_softmax", f"nn.log_softmax(%0, axis={axis})", [F(*shape, lo=-9, hi=90)], lambda x: softmax(x, axis, True), 1e-5)


def convolution():
    def conv(n, c, h, w, o, kh, kw, s=(1, 1), p=(0, 0, 0, 0), d=(1, 1), g=1):
        attrs = f"strides={list(s)}, padding={list(p)}, dilation={list(d)}, groups={g}, channels={o}, kernel_size=[{kh}, {kw}]"
        case("nn.conv2d", f"nn.conv2d(%0, %1, {attrs})", [F(n, c, h, w), F(o, c // g, kh, kw)],
             lambda x, k: run_ort("Conv", [x, k], strides=s, pads=p, dilations=d, group=g, kernel_shape=[kh, kw]), 1e-4)
    conv(1, 3, 5, 7, 4, 3, 3)
    conv(1, 8, 6, 6, 8, 3, 3, p=(1, 1, 1, 1))
    conv(2, 5, 7, 6, 7, 3, 2, s=(2, 1), p=(1, 0, 2, 1))
    conv(1, 16, 5, 5, 8, 1, 1)
    conv(1, 12, 5, 5, 20, 1, 1, s=(2, 2))
    conv(1, 4, 9, 9, 6, 3, 3, d=(2, 3), p=(2, 3, 2, 3))
    conv(1, 8, 6, 5, 8, 3, 3, p=(1, 1, 1, 1), g=8)
    conv(1, 5, 6, 5, 5, 3, 3, p=(1, 1, 1, 1), g=5)
    conv(1, 6, 6, 5, 12, 3, 3, s=(2, 2), p=(0, 0, 1, 1), g=6)
    conv(1, 16, 4, 4, 16, 3, 3, p=(1, 1, 1, 1), g=2)
    conv(1, 6, 4, 4, 9, 3, 3, g=3)
    conv(1, 1, 8, 8, 1, 5, 5, p=(4, 4, 4, 4))
    case("nn.conv2d", "nn.conv2d(%0, %1)", [In("i8", 1, 3, 4, 4, lo=-128, hi=128), In("i8", 2, 3, 3, 3, lo=-128, hi=128)],
         lambda x, k: run_ort("ConvInteger", [x, k]) if False else np.array(
             [[[[np.sum(x[0, :, i:i + 3, j:j + 3].astype(np.int32) * k[o].astype(np.int32)) for j in range(2)]
                for i in range(2)] for o in range(2)]], np.int32))
    for c, n, o, k, s, p, d, g in ((3, 9, 4, 3, 2, (1, 1), 1, 1), (4, 10, 4, 3, 1, (2, 0), 2, 4), (6, 5, 8, 1, 1, (0, 0), 1, 1)):
        case("nn.conv1d", f"nn.conv1d(%0, %1, strides=[{s}], padding={list(p)}, dilation=[{d}], groups={g})",
             [F(2, c, n), F(o, c // g, k)],
             lambda x, w: run_ort("Conv", [x, w], strides=[s], pads=p, dilations=[d], group=g), 1e-4)

    def deconv(c, h, w, o, kh, kw, s=(1, 1), p=(0, 0, 0, 0), d=(1, 1), g=1, extra=(0, 0)):
        attrs = f"strides={list(s)}, padding={list(p)}, dilation={list(d)}, groups={g}, output_padding={list(extra)}"
        case("nn.conv2d_transpose", f"nn.conv2d_transpose(%0, %1, {attrs})", [F(1, c, h, w), F(c, o // g, kh, kw)],
             lambda x, k: run_ort("ConvTranspose", [x, k], strides=s, pads=p, dilations=d, group=g, output_padding=extra), 1e-4)
    deconv(3, 4, 5, 4, 3, 3)
    deconv(4, 3, 4, 2, 4, 4, s=(2, 2), p=(1, 1, 1, 1))
    deconv(4, 3, 4, 6, 3, 2, s=(2, 3), p=(1, 0, 0, 1), g=2, extra=(1, 1))
    deconv(2, 4, 4, 3, 3, 3, d=(2, 2), p=(1, 2, 1, 2))


def winograd():
    def wino(n, c, h, w, o, m, p=(1, 1, 1, 1), block=0, groups=1):
        shape = (n, c // block, h, w, block) if block else (n, c, h, w)
        attrs = f"tile_size={m}, padding={list(p)}" + (f', data_layout="NCHW{block}c"' if block else "")
        attrs += f", groups={groups}" if groups > 1 else ""
        name = "nn.contrib_conv2d_winograd_without_weight_transform"

        def f(x, k):
            if block:
                x = x.transpose(0, 1, 4, 2, 3).reshape(n, c, h, w)
            y = run_ort("Conv", [x, k], pads=p, group=groups)
            return y.reshape(n, -1, block, *y.shape[2:]).transpose(0, 1, 3, 4, 2) if block else y
        case(name, f"{name}(%0, nn.contrib_conv2d_winograd_weight_transform(%1, tile_size={m}), {attrs})",
             [F(*shape), F(o, c // groups, 3, 3)], f, 1e-4)
    for m in (2, 4):
        wino(1, 3, 8, 8, 4, m)
        wino(2, 2, 7, 5, 3, m, p=(0, 1, 2, 0))
        wino(1, 8, 6, 9, 16, m, block=8)
    wino(1, 2, 6, 6, 2, 4, p=(0, 0, 0, 0))
    for m in (2, 4):
        wino(1, 6, 5, 6, 6, m, groups=3)
        wino(1, 16, 5, 6, 16, m, block=8, groups=4)
        wino(1, 8, 5, 6, 32, m, block=8, groups=4)
        wino(1, 8, 5, 6, 64, m, block=8, groups=2)
        wino(1, 16, 5, 6, 16, m, block=8, groups=2)
        wino(1, 16, 3, 3, 32, m, block=4, groups=2)

    def weight(w, m):
        G = {2: [[1, 0, 0], [.5, .5, .5], [.5, -.5, .5], [0, 0, 1]],
             4: [[1 / 4, 0, 0], [-1 / 6, -1 / 6, -1 / 6], [-1 / 6, 1 / 6, -1 / 6],
                 [1 / 24, 1 / 12, 1 / 6], [1 / 24, -1 / 12, 1 / 6], [0, 0, 1]]}[m]
        return np.einsum("rk,oikl,ql->rqoi", np.array(G), w.astype(np.float64), np.array(G)).astype(np.float32)
    for m in (2, 4):
        name = "nn.contrib_conv2d_winograd_weight_transform"
        case(name, f"{name}(%0, tile_size={m})", [F(2, 3, 3, 3)], lambda w: weight(w, m), 1e-7)


def strassen():
    name = "nn.contrib_dense_strassen"

    def product(x, w):
        return np.matmul(x.astype(np.float64), w.T.astype(np.float64)).astype(np.float32)
    for x, w in (((5, 32), (64, 32)), ((2, 4, 32), (64, 32)), ((2, 3, 8), (6, 8)), ((2, 2), (2, 2))):
        case(name, f"{name}(%0, {name}_weight(%1))", [F(*x), F(*w)], product, 1e-5)

    def weight(w):
        (e, g), (f, h) = [np.split(half, 2, 1) for half in np.split(w, 2, 0)]
        return np.stack([e + h, e, f - h, g - e, h, e + f, g + h])
    case(f"{name}_weight", f"{name}_weight(%0)", [F(4, 6)], weight, 0)


def pooling():
    def pool(name, shape, k, s=(1, 1), p=(0, 0, 0, 0), d=(1, 1), ceil=0, inc=0):
        op = "MaxPool" if name == "max" else "AveragePool"
        kw = dict(kernel_shape=k, strides=s, pads=p, ceil_mode=ceil, dilations=d)
        if name == "avg":
            kw["count_include_pad"] = inc
        text = (f"nn.{name}_pool2d(%0, pool_size={list(k)}, strides={list(s)}, dilation={list(d)}, padding={list(p)}, "
                f"ceil_mode={'true' if ceil else 'false'}, count_include_pad={'true' if inc else 'false'})")
        case(f"nn.{name}_pool2d", text, [F(*shape)], lambda x: run_ort(op, [x], opset=19, **kw), 1e-6)
    for name in ("max", "avg"):
        pool(name, (1, 3, 6, 6), (2, 2), (2, 2))
        pool(name, (1, 5, 7, 7), (3, 3), (2, 2), (1, 1, 1, 1))
        pool(name, (1, 8, 7, 6), (3, 3), (2, 2), ceil=1)
        pool(name, (1, 2, 5, 5), (3, 2), (1, 2), (1, 0, 0, 1))
        pool(name, (1, 2, 9, 9), (2, 3), (2, 1), (0, 0, 0, 0), d=(2, 3))
    pool("avg", (1, 3, 6, 6), (3, 3), (1, 1), (1, 1, 1, 1), inc=1)
    pool("avg", (1, 3, 7, 7), (3, 3), (2, 2), (1, 1, 1, 1), ceil=1, inc=0)
    pool("max", (1, 3, 4, 4), (2, 2), (1, 1), (0, 0, 1, 1))
    case("nn.max_pool2d", "nn.max_pool2d(%0, pool_size=[2, 2], strides=[2, 2])", [In("i8", 1, 2, 4, 4, lo=-128, hi=128)],
         lambda x: x.reshape(1, 2, 2, 2, 2, 2).max((3, 5)))
    for shape in ((1, 8, 3, 5), (2, 5, 7, 7)):
        case("nn.global_avg_pool2d", "nn.global_avg_pool2d(%0)", [F(*shape)], lambda x: run_ort("GlobalAveragePool", [x]), 1e-5)
        case("nn.global_max_pool2d", "nn.global_max_pool2d(%0)", [F(*shape)], lambda x: x.max((2, 3), keepdims=True))


def products():
    mm = lambda a, b: np.matmul(a.astype(np.float64), b.astype(np.float64)).astype(np.float32)
    T = lambda a: np.swapaxes(a, -1, -2)
    case("nn.dense", "nn.dense(%0, %1)", [F(3, 5), F(4, 5)], lambda x, w: mm(x, w.T), 1e-5)
    case("nn.dense", "nn.dense(%0, %1)", [F(1, 17), F(33, 17)], lambda x, w: mm(x, w.T), 1e-5)
    case("nn.dense", "nn.dense(%0, %1, units=4)", [F(2, 3, 5), F(4, 5)], lambda x, w: mm(x, w.T), 1e-5)
    case("nn.dense", "nn.dense(%0, %1)", [In("u8", 2, 9, lo=0, hi=256), In("i8", 3, 9, lo=-128, hi=128)],
         lambda x, w: x.astype(np.int32) @ w.astype(np.int32).T)
    case("nn.matmul", "nn.matmul(%0, %1)", [F(3, 5), F(5, 4)], mm, 1e-5)
    case("nn.matmul", "nn.matmul(%0, %1, transpose_a=true, transpose_b=true)", [F(5, 3), F(4, 5)], lambda a, b: mm(a.T, b.T), 1e-5)
    # Rows of the second matrix lie along k: turned into panels, the last one partly; one row without that.
    case("nn.matmul", "nn.matmul(%0, %1, transpose_b=true)", [F(9, 19), F(37, 19)], lambda a, b: mm(a, b.T), 1e-5)
    case("nn.matmul", "nn.matmul(%0, %1, transpose_b=true)", [F(1, 75), F(9, 75)], lambda a, b: mm(a, b.T), 1e-5)
    case("nn.batch_matmul", "nn.batch_matmul(%0, %1)", [F(3, 4, 9), F(3, 18, 9)], lambda a, b: mm(a, T(b)), 1e-5)
    case("nn.batch_matmul", "nn.batch_matmul(%0, %1)", [F(2, 3, 5), F(2, 4, 5)], lambda a, b: mm(a, T(b)), 1e-5)
    case("nn.batch_matmul", "nn.batch_matmul(%0, %1, transpose_b=false)", [F(2, 1, 3, 5), F(4, 5, 6)], mm, 1e-5)
    case("nn.batch_matmul", "nn.batch_matmul(%0, %1, transpose_a=true, transpose_b=false)", [F(2, 5, 3), F(5, 6)],
         lambda a, b: mm(T(a), b), 1e-5)


def attention():
    T = lambda a: np.swapaxes(a, -1, -2)

    def ref(scale=1.0, fill=-np.inf, axes=(None,) * 4):
        def f(q, k, v, mask=None):
            q, k, v = (a if o is None else a.transpose(o) for a, o in zip((q, k, v), axes))
            s = q.astype(np.float64) @ T(k.astype(np.float64)) * scale
            if mask is not None:
                s = np.where(mask, s, fill) if mask.dtype == np.bool_ else s + mask.astype(np.float64)
            p = np.exp(s - s.max(-1, keepdims=True))
            y = p / p.sum(-1, keepdims=True) @ v.astype(np.float64)
            return (y if axes[3] is None else y.transpose(axes[3])).astype(np.float32)
        return f

    def one(q, k, v, mask=None, attrs="", **kw):
        ins = [q, k, v] + ([mask] if mask else [])
        operands = ", ".join(f"%{i}" for i in range(len(ins)))
        case("nn.attention", f"nn.attention({operands}{attrs})", ins, ref(**kw), 2e-6)

    one(F(3, 5), F(4, 5), F(4, 6))
    one(F(2, 9, 5), F(2, 17, 5), F(2, 17, 18), attrs=", scale=0.5", scale=0.5)
    one(F(1, 3, 20, 8), F(1, 1, 37, 8), F(1, 3, 37, 16), F(37, lo=-5, hi=0), ", scale=0.35", scale=0.35)
    one(F(1, 20, 2, 8), F(1, 33, 2, 8), F(1, 33, 2, 24), F(1, 1, 20, 33), ", scale=0.35, axes_q=[0, 2, 1, 3], axes_k=[0, 2, 1, 3], "
        "axes_v=[0, 2, 1, 3], axes_out=[0, 2, 1, 3]", scale=0.35, axes=((0, 2, 1, 3),) * 4)
    one(F(2, 11, 16), F(2, 16, 32), F(2, 32, 16), attrs=", axes_k=[0, 2, 1]", axes=(None, (0, 2, 1), None, None))
    # rows that are masked in part, one as a whole
    shut = [-np.inf if j % 3 == 0 or i == 2 else j / 8 for i in range(9) for j in range(16)]
    one(F(9, 4), F(16, 4), F(16, 16), In("f32", 9, 16, vals=shut))
    open_ = [int(j <= i + 7 and i != 1) for i in range(9) for j in range(16)]
    one(F(2, 9, 4), F(2, 16, 4), F(2, 16, 16), In("bool", 9, 16, vals=open_))
    one(F(2, 9, 4), F(2, 16, 4), F(2, 16, 16), In("bool", 9, 16, vals=open_), ", fill=-3.0", fill=-3.0)
    # keys by chunks: one that is left over, first chunks that are masked as a whole, more room than keys
    one(F(2, 21, 5), F(2, 37, 5), F(2, 37, 9), attrs=", scale=0.5, chunk=16", scale=0.5)
    late = [-np.inf if j < 17 + i % 3 or i == 2 else j / 8 for i in range(9) for j in range(40)]
    one(F(9, 4), F(40, 4), F(40, 6), In("f32", 9, 40, vals=late), ", chunk=8")
    one(F(1, 10, 2, 8), F(1, 24, 2, 8), F(1, 24, 2, 12), F(1, 1, 10, 24), ", scale=0.35, axes_q=[0, 2, 1, 3], axes_k=[0, 2, 1, 3], "
        "axes_v=[0, 2, 1, 3], axes_out=[0, 2, 1, 3], chunk=32", scale=0.35, axes=((0, 2, 1, 3),) * 4)
    one(F(2, 9, 4), F(2, 16, 4), F(2, 16, 16), In("bool", 9, 16, vals=open_), ", fill=-3.0, chunk=4", fill=-3.0)


def lstm():
    def ref(direction):
        def f(x, w, r, b, h0, c0):
            return run_ort("LSTM", [x, w, r, b, None, h0, c0], nout=3, hidden_size=int(r.shape[2]), direction=direction)
        return f
    for direction, d, t, n, i, h in (("forward", 1, 3, 1, 4, 5), ("reverse", 1, 4, 2, 3, 8), ("bidirectional", 2, 3, 1, 5, 19)):
        case("nn.lstm", f'nn.lstm(%0, %1, %2, %3, %4, %5, direction="{direction}")',
             [F(t, n, i), F(d, 4 * h, i, lo=-0.5, hi=0.5), F(d, 4 * h, h, lo=-0.5, hi=0.5), F(d, 8 * h, lo=-0.5, hi=0.5),
              F(d, n, h), F(d, n, h)], ref(direction), 1e-5)

    def onnx(op, **attrs):
        return lambda x, w, r, b, h0: run_ort(op, [x, w, r, b, None, h0], nout=2, hidden_size=int(r.shape[2]), **attrs)
    for direction, d, t, n, i, h in (("forward", 1, 3, 1, 4, 5), ("reverse", 1, 4, 2, 3, 16), ("bidirectional", 2, 3, 3, 5, 19)):
        for linear in (0, 1):
            case("nn.gru", f'nn.gru(%0, %1, %2, %3, %4, direction="{direction}", linear_before_reset={"true" if linear else "false"})',
                 [F(t, n, i), F(d, 3 * h, i, lo=-0.5, hi=0.5), F(d, 3 * h, h, lo=-0.5, hi=0.5), F(d, 6 * h, lo=-0.5, hi=0.5),
                  F(d, n, h)], onnx("GRU", direction=direction, linear_before_reset=linear), 1e-5)
        for f in ("Tanh", "Relu"):
            case("nn.rnn", f'nn.rnn(%0, %1, %2, %3, %4, direction="{direction}", f="{f.lower()}")',
                 [F(t, n, i), F(d, h, i, lo=-0.5, hi=0.5), F(d, h, h, lo=-0.5, hi=0.5), F(d, 2 * h, lo=-0.5, hi=0.5),
                  F(d, n, h)], onnx("RNN", direction=direction, activations=[f] * d), 1e-5)

    sig = lambda v: 1 / (1 + np.exp(-v))

    def cell(kind, direction, gates, sums):  # xw [T, N, D*gates*H], r [D, H, sums, H]
        def f(xw, r, h0, more=None):
            (d, hid, _, _), steps = r.shape, xw.shape[0]
            xw = xw.astype(np.float64).reshape(steps, xw.shape[1], d, gates, hid).transpose(2, 0, 3, 1, 4)
            w, ys, hs, cs = r.astype(np.float64).transpose(0, 2, 1, 3), np.zeros((steps, d, h0.shape[1], hid)), [], []
            for k in range(d):
                h, c = h0[k].astype(np.float64), more[k].astype(np.float64) if kind == "lstm" else None
                back = direction == "reverse" or k == 1
                for t in reversed(range(steps)) if back else range(steps):
                    x, p = xw[k, t], [h @ w[k, g] for g in range(sums)]
                    if kind == "lstm":
                        i, o, f, g = (x[q] + p[q] for q in range(4))
                        c = sig(f) * c + sig(i) * np.tanh(g)
                        h = sig(o) * np.tanh(c)
                    elif kind == "rnn":
                        h = np.tanh(x[0] + p[0])
                    else:
                        z, q = sig(x[0] + p[0]), sig(x[1] + p[1])
                        n = q * (p[2] + more[k]) if kind == "gru_linear" else (q * h) @ more[k].astype(np.float64)
                        h = (1 - z) * np.tanh(x[2] + n) + z * h
                    ys[t, k] = h
                hs.append(h)
                cs.append(c)
            outs = (ys, np.stack(hs)) + ((np.stack(cs),) if kind == "lstm" else ())
            return tuple(v.astype(np.float32) for v in outs)
        return f
    for kind, gates, sums in (("lstm", 4, 4), ("gru", 3, 2), ("gru_linear", 3, 3), ("rnn", 1, 1)):
        for direction, d, n, h in (("forward", 1, 2, 4), ("reverse", 1, 1, 18), ("bidirectional", 2, 3, 16)):
            more = {"lstm": [F(d, n, h)], "gru": [F(d, h, h, lo=-0.5, hi=0.5)], "gru_linear": [F(d, h)], "rnn": []}
            operands = ", ".join(f"%{i}" for i in range(3 + len(more[kind])))
            rnn_f = ', f="tanh"' if kind == "rnn" else ""
            case("nn.recurrent", f'nn.recurrent({operands}, cell="{kind}", direction="{direction}"{rnn_f})',
                 [F(3, n, d * gates * h), F(d, h, sums, h, lo=-0.5, hi=0.5), F(d, n, h)] + more[kind],
                 cell(kind, direction, gates, sums), 1e-5)


def moving():
    case("full", "full(%0, shape=[2, 3], dtype=i64)", [In("i64", vals=[7])], lambda v: np.full((2, 3), v))
    case("zeros", "zeros(shape=[2, 2], dtype=f32)", [], lambda: np.zeros((2, 2), np.float32))
    case("ones", "ones(shape=[3], dtype=i32)", [], lambda: np.ones(3, np.int32))
    case("arange", "arange(start=1.0, stop=2.0, step=0.25)", [], lambda: np.arange(1, 2, 0.25, np.float32))
    case("arange", "arange(start=7.0, stop=-3.0, step=-3.0, dtype=i64)", [], lambda: np.arange(7, -3, -3))
    case("arange", "arange(cells=[3], start=7.0, step=-3.0, dtype=i64)", [], lambda: np.arange(7, 0, -3))
    case("dim_values", "dim_values(dims=[7, 0, 13])", [], lambda: np.array([7, 0, 13]))
    case("shape_of", "shape_of(%0)", [F(2, 3, 4)], lambda v: np.array(v.shape))
    case("broadcast_to", "broadcast_to(%0, shape=[2, 3, 4])", [F(3, 1)], lambda v: np.broadcast_to(v, (2, 3, 4)))
    case("reshape", "reshape(%0, newshape=[0, -1])", [F(2, 3, 4)], lambda v: v)
    case("reshape", "reshape(%0, newshape=[4, 6, 1])", [F(2, 3, 4)], lambda v: v)
    case("squeeze", "squeeze(%0)", [F(1, 3, 1, 2)], lambda v: v)
    case("squeeze", "squeeze(%0, axis=[-2])", [F(1, 3, 1, 2)], lambda v: v)
    case("expand_dims", "expand_dims(%0, axis=1, num_newaxis=2)", [F(2, 3)], lambda v: v)
    case("expand_dims", "expand_dims(%0, axis=-1)", [F(2, 3)], lambda v: v)
    def interleave(crd, c, h, w, block=0):  # of 2 rows and 3 columns
        def f(v):
            v = v.transpose(0, 1, 4, 2, 3).reshape(1, -1, *v.shape[2:4]) if block else v
            n, ch, y, x = v.shape
            v = (v.reshape(n, ch // 6, 2, 3, y, x).transpose(0, 1, 4, 2, 5, 3) if crd else
                 v.reshape(n, 2, 3, ch // 6, y, x).transpose(0, 3, 4, 1, 5, 2))
            v = v.reshape(n, ch // 6, 2 * y, 3 * x)[:, :c, :h, :w]
            return v.reshape(n, -1, block, h, w).transpose(0, 1, 3, 4, 2) if block else v
        return f

    D = lambda more: f"nn.depth_to_space(%0, block_size=[2, 3]{more})"
    case("nn.depth_to_space", D(""), [F(2, 12, 2, 3)], interleave(False, 2, 4, 9))
    case("nn.depth_to_space", D(', mode="CRD"'), [F(2, 12, 2, 3)], interleave(True, 2, 4, 9))
    case("nn.depth_to_space", D(', mode="CRD", channels=1, size=[3, 8]'), [F(1, 12, 2, 3)], interleave(True, 1, 3, 8))
    case("nn.depth_to_space", D(', channels=3, size=[3, 7]'), [F(1, 24, 2, 3)], interleave(False, 3, 3, 7))
    case("nn.depth_to_space", D(', layout="NCHW4c"'), [F(1, 12, 2, 2, 4)], interleave(False, 8, 4, 6, 4))
    case("nn.depth_to_space", D(', layout="NCHW4c", channels=4, size=[4, 5]'), [F(1, 12, 2, 2, 4)], interleave(False, 4, 4, 5, 4))
    case("transpose", "transpose(%0)", [F(2, 3, 4)], np.transpose)
    case("transpose", "transpose(%0, axes=[1, -1, 0])", [F(2, 3, 4)], lambda v: v.transpose(1, 2, 0))
    case("concatenate", "concatenate((%0, %1, %2), axis=1)", [F(1, 8, 2, 2), F(1, 16, 2, 2), F(1, 3, 2, 2)],
         lambda *v: np.concatenate(v, 1))
    case("concatenate", "concatenate((%0, %1), axis=-1)", [F(2, 3), F(2, 1)], lambda *v: np.concatenate(v, -1))
    case("stack", "stack((%0, %1, %2), axis=1)", [F(2, 3)] * 3, lambda *v: np.stack(v, 1))
    case("stack", "stack((%0, %1), axis=-1)", [F(3)] * 2, lambda *v: np.stack(v, -1))
    case("split", "split(%0, sections=3, axis=1)", [F(2, 6)], lambda v: np.split(v, 3, 1))
    case("split", "split(%0, indices=[1, 4], axis=-1)", [F(2, 6)], lambda v: np.split(v, [1, 4], 1))
    S = lambda t: f"strided_slice(%0, {t})"
    case("strided_slice", S("begin=[1, 0], end=[2, 9]"), [F(3, 4)], lambda v: v[1:2, 0:9])
    case("strided_slice", S("begin=[-1], end=[-1000], strides=[-1], axes=[1]"), [F(3, 4)], lambda v: v[:, ::-1])
    case("strided_slice", S("begin=[-2, 3], end=[100, 0], strides=[1, -2], axes=[0, 2]"), [F(3, 2, 5)], lambda v: v[-2:, :, 3:0:-2])
    case("strided_slice", S("begin=[2], end=[1], axes=[0]"), [F(3, 2)], lambda v: v[2:1])
    case("strided_slice", S("begin=[0], end=[9223372036854775807], strides=[3]"), [F(10)], lambda v: v[::3])
    case("tile", "tile(%0, reps=[2, 1, 3])", [F(2, 3)], lambda v: np.tile(v, (2, 1, 3)))
    case("repeat", "repeat(%0, repeats=3, axis=1)", [F(2, 3)], lambda v: np.repeat(v, 3, 1))
    case("reverse", "reverse(%0, axis=-2)", [F(2, 3, 2)], lambda v: v[:, ::-1])
    case("trilu", "trilu(%0)", [F(2, 4, 5)], np.triu)
    case("trilu", "trilu(%0, upper=false, k=1)", [F(4, 5)], lambda v: np.tril(v, 1))
    case("trilu", "trilu(%0, k=-2)", [F(4, 3)], lambda v: np.triu(v, -2))
    pads = lambda v: [(v[2 * i], v[2 * i + 1]) for i in range(len(v) // 2)]
    for mode, width in (("constant", [0, 1, 2, 0, 1, 1]), ("edge", [1, 1, 0, 2, 3, 0]), ("reflect", [0, 0, 2, 1, 3, 3])):
        case("nn.pad", f'nn.pad(%0, pad_width={width}, pad_mode="{mode}")', [F(2, 3, 4)], lambda v: np.pad(v, pads(width), mode))
    case("nn.pad", "nn.pad(%0, pad_width=[-1, 1, 0, -2], pad_value=1.5)", [F(3, 4)],
         lambda v: np.pad(v[1:, :-2], [(0, 1), (0, 0)], constant_values=1.5))
    I = lambda *s, lo, hi: In("i64", *s, lo=lo, hi=hi)
    case("take", "take(%0, %1)", [F(5, 3), I(2, 4, lo=0, hi=5)], lambda v, i: np.take(v, i, 0))
    case("take", "take(%0, %1, axis=1)", [F(2, 5, 3), V("i32", 0, 9, -4)], lambda v, i: np.take(v, i, 1, mode="clip"))
    case("take", 'take(%0, %1, axis=-1, mode="wrap")', [F(2, 5), I(3, lo=-5, hi=5)], lambda v, i: np.take(v, i, -1))
    case("take", "take(%0, %1)", [F(5), In("i64", vals=[3])], lambda v, i: v[3])
    case("take", "take(%0, %1, axis=1, batch_dims=1)", [F(2, 5), I(2, 3, lo=0, hi=5)], lambda v, i: np.take_along_axis(v, i, 1))
    case("gather", "gather(%0, %1, axis=1)", [F(3, 5), I(3, 4, lo=-5, hi=5)], lambda v, i: run_ort("GatherElements", [v, i], axis=1))
    case("gather", "gather(%0, %1, axis=0)", [F(4, 3, 2), I(2, 3, 1, lo=0, hi=4)], lambda v, i: run_ort("GatherElements", [v, i], axis=0))
    first = lambda i: np.moveaxis(i, 0, -1)
    case("gather_nd", "gather_nd(%0, %1)", [F(3, 4, 2), I(2, 5, lo=-3, hi=3)], lambda v, i: run_ort("GatherND", [v, first(i)]))
    case("gather_nd", "gather_nd(%0, %1, batch_dims=1)", [F(2, 4, 3), I(1, 2, 3, lo=0, hi=4)],
         lambda v, i: run_ort("GatherND", [v, first(i)], batch_dims=1))
    for red, onnx_red in (("update", "none"), ("add", "add"), ("mul", "mul"), ("max", "max"), ("min", "min")):
        idx = In("i64", 2, 3, vals=[0, 1, -1, 3, 2, 0])
        if red != "update":
            idx = In("i64", 2, 3, vals=[0, 1, 1, 3, 2, 2])
        case("scatter_elements", f'scatter_elements(%0, %1, %2, axis=1, reduction="{red}")', [F(3, 4), idx, F(2, 3)],
             lambda v, i, u: run_ort("ScatterElements", [v, i, u], axis=1, reduction=onnx_red), 1e-6)
    case("scatter_nd", "scatter_nd(%0, %1, %2)", [F(4, 3), In("i64", 1, 2, vals=[2, -4]), F(2, 3)],
         lambda v, i, u: run_ort("ScatterND", [v, first(i), u]))
    case("scatter_nd", 'scatter_nd(%0, %1, %2, mode="add")', [F(4, 3), In("i64", 2, 3, vals=[0, 0, 3, 1, 1, 2]), F(3)],
         lambda v, i, u: run_ort("ScatterND", [v, first(i), u], reduction="add"), 1e-6)
    def scatter_rows(v, i, u):
        v = v.copy()
        for k, at in enumerate(i[0]):
            v[:, :, at] = u[k]
        return v
    case("scatter_nd", "scatter_nd(%0, %1, %2, axes=[2])", [F(2, 3, 5, 2), In("i64", 1, 2, vals=[4, -4]), F(2, 2, 3, 2)], scatter_rows)
    def update(v, s, i):
        v = v.copy()
        if 0 <= i < len(v):
            v[i] = s
        return v
    case("update_slice", "update_slice(%0, %1, %2)", [F(4, 2, 3), F(2, 3), In("i64", vals=[2])], update)
    case("update_slice", "update_slice(%0, %1, %2)", [F(4, 5), F(5), In("i32", vals=[-1])], update)
    case("update_slice", "update_slice(%0, %1, %2)", [F(3), F(), In("u8", vals=[3])], update)
    def update_range(v, u, start, axis, circular=False):
        v = np.moveaxis(v.copy(), axis, 1)
        for n, first in enumerate(start):
            for k, cells in enumerate(np.moveaxis(u, axis, 1)[n]):
                at = (first + k) % v.shape[1] if circular else first + k
                if 0 <= at < v.shape[1]:
                    v[n, at] = cells
        return np.moveaxis(v, 1, axis)
    case("update_range", "update_range(%0, %1, %2, axis=2)", [F(3, 2, 5, 2), F(3, 2, 3, 2), In("i64", 3, vals=[1, 3, -2])],
         lambda v, u, i: update_range(v, u, i, 2))
    case("update_range", "update_range(%0, %1, %2, axis=-1, circular=true)", [F(3, 4), F(3, 3), In("i32", 3, vals=[2, -1, 7])],
         lambda v, u, i: update_range(v, u, i, 1, True))
    case("one_hot", "one_hot(%0, %1, %2, depth=4)", [V("i64", 0, 3, -1, 7), In("f32", vals=[2]), In("f32", vals=[-1])],
         lambda i, on, off: run_ort("OneHot", [i, np.array(4), np.array([off, on], np.float32)]))
    case("one_hot", "one_hot(%0, %1, %2, depth=3, axis=0)", [In("i64", 2, 2, vals=[0, 1, 2, 0]), In("f32", vals=[1]), In("f32", vals=[0])],
         lambda i, on, off: run_ort("OneHot", [i, np.array(3), np.array([off, on], np.float32)], axis=0))

    def block(x, b):
        n, c, h, w = x.shape
        x = np.pad(x, [(0, 0), (0, -c % b), (0, 0), (0, 0)])
        return x.reshape(n, -1, b, h, w).transpose(0, 1, 3, 4, 2)
    L = lambda s, d, c=0: f'layout_transform(%0, src_layout="{s}", dst_layout="{d}"{f", channels={c}" if c else ""})'
    case("layout_transform", L("NCHW", "NCHW8c"), [F(1, 16, 2, 3)], lambda v: block(v, 8))
    case("layout_transform", L("NCHW", "NCHW8c"), [F(2, 11, 2, 1)], lambda v: block(v, 8))
    case("layout_transform", L("NCHW4c", "NCHW", 6), [F(1, 2, 2, 2, 4)], lambda v: v.transpose(0, 1, 4, 2, 3).reshape(1, 8, 2, 2)[:, :6])
    case("layout_transform", L("NCHW4c", "NCHW8c"), [F(1, 3, 2, 2, 4)],
         lambda v: block(v.transpose(0, 1, 4, 2, 3).reshape(1, 12, 2, 2), 8))
    case("layout_transform", L("NCHW", "NHWC"), [F(1, 3, 2, 4)], lambda v: v.transpose(0, 2, 3, 1))


def linear_attention(rule, q, k, v, state, *more):
    decay = more[0] if "gated" in rule else np.ones_like(k)
    beta = more[-1] if "delta" in rule else None
    y, state = np.zeros(q.shape[:4] + v.shape[3:]), state.astype(np.float64)
    for t in range(q.shape[1]):
        state = state * decay[:, t, :, :, None]
        add = v[:, t] if beta is None else beta[:, t, :, None] * (v[:, t] - np.einsum("nhdj,nhd->nhj", state, k[:, t]))
        state = state + k[:, t, :, :, None] * add[:, :, None]
        y[:, t] = np.einsum("nhgd,nhdj->nhgj", q[:, t], state)
    return y.astype(np.float32), state.astype(np.float32)


def reductions():
    for name, fn, tol in (("sum", np.sum, 1e-6), ("mean", np.mean, 1e-6), ("max", np.max, 0), ("min", np.min, 0), ("prod", np.prod, 1e-5)):
        case(name, f"{name}(%0)", [F(3, 4)], fn, tol)
        case(name, f"{name}(%0, axis=[1, -1], keepdims=true)", [F(2, 3, 4)], lambda v: fn(v, (1, 2), keepdims=True), tol)
        case(name, f"{name}(%0, axis=[1])", [F(2, 5, 3)], lambda v: fn(v, 1), tol)
        case(name, f"{name}(%0, axis=[1], exclude=true)", [F(2, 5, 3)], lambda v: fn(v, (0, 2)), tol)
    case("max", "max(%0, axis=[1])", [In("f32", 2, 2, vals=[1, NAN, -INF, -INF])], lambda v: v.max(1))
    case("max", "max(%0)", [V("i64", -(2 ** 63), 5 - 2 ** 63)], np.max)
    case("min", "min(%0)", [V("u8", 255, 255)], np.min)
    case("sum", "sum(%0, axis=[0])", [V("i64", 1 << 40, 7, -3)], np.sum)
    t = [In("bool", 3, 2, vals=[1, 0, 1, 1, 0, 0])]
    case("all", "all(%0, axis=[1])", t, lambda v: v.all(1))
    case("any", "any(%0, axis=[1])", t, lambda v: v.any(1))
    case("variance", "variance(%0, %1, axis=[1])", [F(2, 7), F(2, 1)], lambda v, m: ((v - m) ** 2).mean(1), 1e-6)
    case("variance", "variance(%0, %1, axis=[0], keepdims=true, unbiased=true)", [F(5, 3), F(1, 3)],
         lambda v, m: ((v - m) ** 2).sum(0, keepdims=True) / 4, 1e-6)
    for name, fn in (("argmax", np.argmax), ("argmin", np.argmin)):
        case(name, f"{name}(%0, axis=1, dtype=i64)", [F(3, 7)], lambda v: fn(v, 1))
        case(name, f"{name}(%0, axis=-2, keepdims=true)", [In("i32", 2, 5, 3, lo=0, hi=3)],
             lambda v: np.expand_dims(fn(v, -2), -2).astype(np.int32))
        case(name, f"{name}(%0, select_last_index=true)", [V("f32", 1, 0, 1, 0, 0.5)],
             lambda v: np.int32(4 - fn(v[::-1])))
        case(name, f"{name}(%0)", [V("f32", 1, NAN, 3, NAN)], lambda v: np.int32(fn(v)))
    for rule, n in (("linear", 0), ("gated", 1), ("delta", 1), ("gated_delta", 2)):
        q, k, v, first = F(2, 3, 2, 2, 5), F(2, 3, 2, 5), F(2, 3, 2, 9), F(2, 2, 5, 9)
        decay, beta = F(2, 3, 2, 5, lo=0.5, hi=1), F(2, 3, 2, lo=0, hi=1)
        more = ([decay] if "gated" in rule else []) + ([beta] if "delta" in rule else [])
        args = ", ".join(f"%{i}" for i in range(4 + len(more)))
        case("nn.linear_attention", f'nn.linear_attention({args}, rule="{rule}")', [q, k, v, first] + more,
             lambda *a, rule=rule: linear_attention(rule, *a), 1e-5)
    more = [F(1, 4, 1, 1, lo=0.5, hi=1), F(1, 4, 1, lo=0, hi=1)]
    case("nn.linear_attention", 'nn.linear_attention(%0, %1, %2, %3, %4, %5, rule="gated_delta")',
         [F(1, 4, 1, 1, 16), F(1, 4, 1, 16), F(1, 4, 1, 16), F(1, 1, 16, 16)] + more,
         lambda *a: linear_attention("gated_delta", *a), 1e-5)
    case("cumsum", "cumsum(%0)", [F(5)], np.cumsum, 1e-6)
    case("cumsum", "cumsum(%0, axis=1)", [F(2, 4, 3)], lambda v: np.cumsum(v, 1), 1e-6)
    case("cumsum", "cumsum(%0, axis=-1, exclusive=true)", [In("i64", 2, 4, lo=-9, hi=9)], lambda v: np.cumsum(v, -1) - v)
    case("cumsum", "cumsum(%0, axis=0)", [F(1, 2)], lambda v: v)
    case("cumsum", "cumsum(%0, axis=-1)", [F(3, 7, 5)], lambda v: np.cumsum(v, -1), 1e-6)
    case("cumsum", "cumsum(%0, axis=1, exclusive=true)", [F(2, 3, 19)], lambda v: np.cumsum(v, 1) - v, 1e-6)
    case("cumsum", "cumsum(%0, axis=0)", [In("i32", 5, 1, lo=-9, hi=9)], lambda v: np.cumsum(v, 0))
    case("cumprod", "cumprod(%0, axis=-1)", [F(3, 9)], lambda v: np.cumprod(v, -1), 1e-6)
    case("cumprod", "cumprod(%0, axis=1)", [F(2, 5, 3)], lambda v: np.cumprod(v, 1), 1e-6)
    shifted = lambda v, axis: np.insert(np.delete(np.cumprod(v, axis), -1, axis), 0, 1, axis)
    case("cumprod", "cumprod(%0, axis=1, exclusive=true)", [In("i32", 2, 5, lo=-4, hi=4)], lambda v: shifted(v, 1))
    case("cumprod", "cumprod(%0, axis=0, exclusive=true)", [In("i64", 4, 3, lo=-4, hi=4)], lambda v: shifted(v, 0))
    for n in (1, 2, 7, 16, 33):
        x = In("f32", 2, n, lo=-5, hi=5)
        case("sort", "sort(%0)", [x], lambda v: np.sort(v, -1))
        case("argsort", "argsort(%0, dtype=i64)", [x], lambda v: np.argsort(v, -1, kind="stable"))
    case("sort", "sort(%0, axis=0, is_ascend=false)", [F(5, 3)], lambda v: -np.sort(-v, 0))
    case("sort", "sort(%0)", [V("f32", NAN, 3, -INF, INF, NAN, 0)], np.sort)
    case("argsort", "argsort(%0, is_ascend=false)", [V("i32", 3, 1, 3, 2, 1, 3)], lambda v: np.argsort(-v, kind="stable").astype(np.int32))
    case("topk", "topk(%0, k=3, dtype=i64)", [F(2, 9)], lambda v: run_ort("TopK", [v, np.array([3])], nout=2))
    case("topk", "topk(%0, k=2, axis=1, is_ascend=true)", [F(2, 5, 3)],
         lambda v: tuple(w.astype(t) for w, t in zip(run_ort("TopK", [v, np.array([2])], nout=2, axis=1, largest=0), (np.float32, np.int32))))
    # Kept in a heap: ties in their order, zeros of both signs, NaN.
    case("topk", "topk(%0, k=20, dtype=i64)", [F(2, 50)], lambda v: run_ort("TopK", [v, np.array([20])], nout=2))
    ties = [i * 7 % 13 - 6 for i in range(40)]
    case("topk", "topk(%0, k=18, is_ascend=true)", [V("i32", *ties)],
         lambda v: (np.sort(v)[:18], np.argsort(v, kind="stable")[:18].astype(np.int32)))
    case("topk", 'topk(%0, k=18, ret_type="indices")',
         [V("f32", *[-0.0 if i % 5 == 1 else np.nan if i % 17 == 3 else v / 4 for i, v in enumerate(ties)])],
         lambda v: np.argsort(np.where(np.isnan(v), -np.inf, -v), kind="stable")[:18].astype(np.int32))
    case("topk", 'topk(%0, k=2, ret_type="indices")', [V("i32", 4, 9, 9, 1)], lambda v: np.array([1, 2], np.int32))
    case("topk", 'topk(%0, k=2, ret_type="values")', [V("i32", 4, 9, 9, 1)], lambda v: np.array([9, 9], np.int32))


def resize():
    names = {"nearest": "nearest_neighbor", "linear": "linear", "cubic": "cubic"}

    def one(mode, coord, rounding, shape, size, scales=None):
        text = (f'image.resize2d(%0, size={list(size)}, method="{names[mode]}", coordinate_transformation_mode="{coord}", '
                f'rounding_method="{rounding}"' + (f", scales=[{scales[0]}, {scales[1]}]" if scales else "") + ")")
        kw = dict(mode=mode, coordinate_transformation_mode=coord, nearest_mode=rounding)
        if mode != "nearest":
            del kw["nearest_mode"]

        def f(x):
            if scales:
                return run_ort("Resize", [x, None, np.array([1, 1, *scales], np.float32)], **kw)
            return run_ort("Resize", [x, None, None, np.array([*x.shape[:2], *size], np.int64)], **kw)
        case("image.resize2d", text, [F(*shape)], f, 1e-5)
    one("nearest", "asymmetric", "floor", (1, 3, 3, 4), (6, 8))
    one("nearest", "asymmetric", "floor", (1, 8, 3, 4), (6, 8), (2.0, 2.0))
    one("nearest", "half_pixel", "round_prefer_floor", (1, 2, 4, 5), (7, 3))
    one("nearest", "half_pixel", "round_prefer_ceil", (1, 2, 4, 4), (8, 2))
    one("nearest", "asymmetric", "ceil", (1, 1, 5, 5), (3, 7))
    one("nearest", "align_corners", "round_prefer_floor", (1, 1, 4, 5), (7, 9))
    one("linear", "half_pixel", "floor", (1, 2, 3, 4), (6, 7))
    one("linear", "align_corners", "floor", (1, 2, 3, 4), (5, 9))
    one("linear", "asymmetric", "floor", (1, 1, 4, 4), (6, 3), (1.5, 0.75))
    one("linear", "pytorch_half_pixel", "floor", (1, 1, 3, 4), (1, 6))
    one("cubic", "half_pixel", "floor", (1, 1, 4, 5), (8, 7))


def trees():
    def walk(x, feature, split, way, root, target, weight, targets=2, how="sum"):
        first = {"min": np.inf, "max": -np.inf}.get(how, 0)
        y = np.full((len(x), targets), first, np.float32)
        for n, row in enumerate(x):
            for at in root:
                while at >= 0:
                    v = row[feature[at]]
                    at = way[at, 2] if np.isnan(v) and way.shape[1] > 2 else way[at, 1 if v <= split[at] else 0]
                for k, w in zip(target[-1 - at], weight[-1 - at]):
                    y[n, k] = {"min": min, "max": max}.get(how, lambda a, b: a + b)(y[n, k], w)
        return (y / len(root)).astype(np.float32) if how == "average" else y
    shaped = lambda t, shape, *v: In(t, *shape, vals=list(v))
    x = shaped("f32", (4, 3), 1, 2, 3, -1, NAN, 0.5, 0, 0.25, -3, 5, -5, NAN)
    ways = shaped("i32", (4, 3), 1, 2, 2, -1, -2, -2, -3, 3, -1, -2, -4, -3)
    ins = [x, V("i32", 0, 1, 2, 1), V("f32", 0.5, 0.25, 1, -1), ways, V("i32", 0, 2, -1),
           shaped("i32", (4, 2), 0, 1, 1, 0, 0, 0, 1, 1), shaped("f32", (4, 2), 1, 2, 0.5, -1, 3, 0, 0.125, 0)]
    for how in ("sum", "average", "min", "max"):
        case("tree_ensemble", f'tree_ensemble(%0, %1, %2, %3, %4, %5, %6, targets=2, depth=3, aggregate="{how}")', ins,
             lambda *a, how=how: walk(*a, how=how), 1e-6)
    two = shaped("i32", (4, 2), 1, 2, -1, -2, -3, 3, -2, -4)
    case("tree_ensemble", "tree_ensemble(%0, %1, %2, %3, %4, %5, %6, targets=2, depth=3)", ins[:3] + [two] + ins[4:], walk, 1e-6)


def vision():
    boxes = V("f32", -3, 1, 9, 5, 0.5, 0.5, 4.25, 6, 2, 2, 2.5, 2.2, 5, 5, 30, 40)
    boxes.shape = (4, 4)
    for ratio, mode, aligned in ((2, "avg", True), (0, "avg", False), (0, "avg", True), (3, "max", False), (0, "max", True)):
        text = f'pooled_size=[3, 2], spatial_scale=0.75, sample_ratio={ratio}, mode="{mode}", aligned={str(aligned).lower()}'
        fn = lambda x, r, i: run_ort("RoiAlign", [x, r, i], output_height=3, output_width=2, spatial_scale=0.75,
                                     sampling_ratio=ratio, mode=mode,
                                     coordinate_transformation_mode="half_pixel" if aligned else "output_half_pixel")
        case("vision.roi_align", f"vision.roi_align(%0, %1, %2, {text})", [F(2, 3, 7, 6), boxes, V("i64", 1, 0, 1, 0)], fn, 1e-5)
    boxes = V("f32", 0, 0, 4, 4, 4, 5, 0, 1, 9, 9, 6, 6, 8, 8, 5, 5, 2, 2, 2, 9, 0, 0, 4, 4)
    boxes.shape = (1, 6, 4)
    scores = V("f32", 0.5, 0.5, 0.25, 0.75, 1, 0.5, -INF, 0.125, 0.25, 0.5, 0.75, 1)
    order = V("i64", 4, 3, 0, 1, 5, 2, 5, 4, 3, 2, 1, 0)
    scores.shape = order.shape = (1, 2, 6)

    def left(x, s, order, most, overlap, least=(), room=6, center=0):
        extra = [np.atleast_1d(least)] if np.size(least) else []
        chosen = run_ort("NonMaxSuppression", [x, s, np.atleast_1d(most), np.atleast_1d(overlap), *extra], center_point_box=center)
        out = np.full((1, 2, room), -1, np.int64)
        for k in range(2):
            of = chosen[chosen[:, 1] == k][:room, 2]
            out[0, k, :len(of)] = of
        return out
    for most, overlap, least, room, center in ((6, 0.25, 0.375, 6, 0), (1, 0.5, 0, 6, 0), (9, 0, None, 2, 0), (0, 0, None, 6, 0), (6, 0.125, None, 6, 1)):
        ins = [boxes, scores, order] + [In(t, vals=[v]) for t, v in (("i64", most), ("f32", overlap), ("f32", least)) if v is not None]
        case("vision.non_max_suppression",
             f"vision.non_max_suppression({', '.join('%' + str(i) for i in range(len(ins)))}, room=[{room}], center={str(bool(center)).lower()})",
             ins, lambda *a, room=room, center=center: left(*a, room=room, center=center))


def quantized():
    Q = lambda *s: In("i8", *s, lo=-128, hi=128)
    s0, z0 = In("f32", vals=[0.0625]), In("i8", vals=[3])
    case("qnn.quantize", "qnn.quantize(%0, %1, %2)", [F(3, 9, lo=-20, hi=20), s0, z0],
         lambda x, s, z: run_ort("QuantizeLinear", [x, s, z]))
    case("qnn.quantize", "qnn.quantize(%0, %1, %2, out_dtype=u8)",
         [V("f32", 0.5, 1.5, 2.5, -0.5, 300, -300), In("f32", vals=[1]), In("u8", vals=[7])],
         lambda x, s, z: run_ort("QuantizeLinear", [x, s, z]))
    case("qnn.quantize", "qnn.quantize(%0, %1, %2, axis=1)", [F(2, 3, 4, lo=-20, hi=20), F(3, lo=0.05, hi=0.2), In("i8", 3, lo=-9, hi=9)],
         lambda x, s, z: run_ort("QuantizeLinear", [x, s, z], axis=1))
    case("qnn.dequantize", "qnn.dequantize(%0, %1, %2)", [Q(3, 5), s0, z0], lambda x, s, z: run_ort("DequantizeLinear", [x, s, z]))
    case("qnn.dequantize", "qnn.dequantize(%0, %1, %2, axis=0)", [Q(3, 5), F(3, lo=0.05, hi=0.2), In("i8", 3, lo=-9, hi=9)],
         lambda x, s, z: run_ort("DequantizeLinear", [x, s, z], axis=0))
    case("qnn.dequantize", "qnn.dequantize(%0, %1, %2, axis=0)", [In("i32", 3, lo=-9999, hi=9999), F(3, lo=0.05, hi=0.2), In("i32", 3, vals=[0, 0, 0])],
         lambda x, s, z: run_ort("DequantizeLinear", [x, s, z], axis=0))

    def requant(x, s, z, s2, z2):
        y = run_ort("DequantizeLinear", [x, s, z])
        return run_ort("QuantizeLinear", [y, s2, z2])
    case("qnn.requantize", "qnn.requantize(%0, %1, %2, %3, %4)", [Q(4, 9), s0, z0, In("f32", vals=[0.11]), In("i8", vals=[-5])], requant)


def main():
    for family in (elementwise, normalization, convolution, winograd, pooling, products, strassen, attention, lstm, moving, reductions, resize, vision, trees, quantized):
        family()
    here = os.path.dirname(os.path.abspath(__file__))
    for name, cases in CASES.items():
        with open(os.path.join(here, name + ".case"), "w") as f:
            f.write(f"# {name}; written by record.py with numpy {np.__version__}, onnxruntime {ort.__version__}\n")
            f.write("----\n".join(cases))
    print(f"{len(CASES)} operators, {sum(map(len, CASES.values()))} cases", file=sys.stderr)


if __name__ == "__main__":
    main()
