"""Cases of operators of tensors: element by element, moving cells, reductions, pictures, boxes, trees (record.py)."""
import ml_dtypes
import numpy as np
import onnx

from recording import case, DT, F, In, INF, NAN, run_ort, V


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
    # Quotients that an approximation rounds to another number; subnormal ones, none at all; whole ones.
    small, large = np.float32(2**-149), np.float32(2**127)
    case("divide", "divide(%0, %1)", [F(300), F(300)], np.divide)
    case("divide", "divide(%0, %1)",
         [V("f32", 1, large, small, 3 * small, 2**-126, 1, large, -5, 16777215, 1, 2**-126, 0),
          V("f32", 3, 2**-126, large, 2, 3, large, 0.75, 0, 8388609, INF, 16777215, -3)], np.divide)
    case("mod", "mod(%0, %1)",
         [V("f32", 1e30, -1e30, large, 5.5, -0.0, 7, INF, 1, 3 * small, 6, -2**-125, 0.3),
          V("f32", 3, 0.1, 5 * small, -INF, 2, 0, 2, NAN, 2 * small, 6, 3 * 2**-130, 0.1)], np.fmod)
    case("floor_divide", "floor_divide(%0, %1)",
         [V("f32", 63, 49, 1e6, 41, 8388607, -63, 121, 1000003), V("f32", 7, 7, 1e3, 41, 47, 9, 11, 1000003)],
         lambda a, b: np.floor(a / b))
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
    case("take", 'take(%0, %1, axis=-1, mode="wrap")', [F(41, 6), I(19, lo=-6, hi=6)], lambda v, i: np.take(v, i, -1))
    case("take", "take(%0, %1, axis=2)", [F(2, 9, 5, 2), I(11, lo=0, hi=5)], lambda v, i: np.take(v, i, 2))
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
    for name, fn, tol in (("sum", np.sum, 1e-6), ("mean", np.mean, 1e-6), ("max", np.max, 0), ("min", np.min, 0)):
        case(name, f"{name}(%0, axis=[2])", [F(3, 13, 7)], lambda v: fn(v, 2), tol)
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

    # As GPUs have them: networks of whole rows and of chunks, whose runs are merged or sorted again;
    # sums by doubling.  Lengths that are no powers of two, rows of which the last chunk is one cell.
    network = lambda chunk: f'algorithm="network", chunk={chunk}'
    for shape, axis, chunk in (((3, 37), -1, 0), ((2, 33), 1, 16), ((45, 2), 0, 8), ((2, 19, 3), 1, 4), ((1, 70), -1, 2)):
        case("argsort", f"argsort(%0, axis={axis}, {network(chunk)})", [In("i32", *shape, lo=-9, hi=9)],
             lambda v, axis=axis: np.argsort(v, axis, kind="stable").astype(np.int32))
    case("argsort", f"argsort(%0, is_ascend=false, dtype=i64, {network(8)})", [In("u8", 2, 29, lo=0, hi=5)],
         lambda v: np.argsort(-v.astype(np.int32), -1, kind="stable"))
    case("sort", f"sort(%0, {network(4)})", [V("f32", NAN, 3, -INF, INF, NAN, 0, -2, 5, 1, 1, -7)], np.sort)
    case("sort", f"sort(%0, is_ascend=false, {network(0)})", [In("i64", 3, 11, lo=-9, hi=9)], lambda v: -np.sort(-v, -1))
    case("sort", f"sort(%0, axis=0, {network(8)})", [In("u32", 21, 3, lo=0, hi=99)], lambda v: np.sort(v, 0))
    for k, chunk in ((1, 8), (2, 8), (3, 8), (5, 8), (20, 8), (61, 16), (4, 0)):
        case("topk", f"topk(%0, k={k}, {network(chunk)})", [In("i32", 2, 61, lo=-20, hi=20)],
             lambda v, k=k: (-np.sort(-v, -1)[:, :k], np.argsort(-v, -1, kind="stable")[:, :k].astype(np.int32)))
    case("topk", f'topk(%0, k=9, ret_type="indices", {network(16)})',
         [V("f32", *[-0.0 if i % 5 == 1 else np.nan if i % 17 == 3 else v / 4 for i, v in enumerate(ties)])],
         lambda v: np.argsort(np.where(np.isnan(v), -np.inf, -v), kind="stable")[:9].astype(np.int32))
    doubling = lambda chunk: f'algorithm="doubling", chunk={chunk}'
    for shape, axis, chunk in (((3, 37), -1, 0), ((2, 65), 1, 8), ((45, 2), 0, 4), ((2, 19, 3), 1, 4)):
        case("cumsum", f"cumsum(%0, axis={axis}, {doubling(chunk)})", [In("i32", *shape, lo=-9, hi=9)],
             lambda v, axis=axis: np.cumsum(v, axis).astype(np.int32))
    case("cumsum", f"cumsum(%0, axis=-1, exclusive=true, {doubling(8)})", [F(2, 50)], lambda v: np.cumsum(v, -1) - v, 1e-5)
    case("cumsum", f"cumsum(%0, axis=0, {doubling(0)})", [V("f32", -0.0, -0.0, -0.0)], np.cumsum)
    case("cumsum", 'cumsum(%0, axis=1, algorithm="columns")', [F(2, 7, 5)], lambda v: np.cumsum(v, 1), 1e-6)
    case("cumprod", f"cumprod(%0, axis=1, exclusive=true, {doubling(4)})", [In("i64", 2, 11, lo=-4, hi=4)], lambda v: shifted(v, 1))
    case("cumprod", f"cumprod(%0, axis=0, {doubling(0)})", [F(9, 3)], lambda v: np.cumprod(v, 0), 1e-6)


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
