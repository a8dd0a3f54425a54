"""Operators of 8 and 16 bits that LiteRT's reference kernels compute in integers, to the last bit."""
import numpy as np

from cases import model
from make_model import Model
from ops_quantized import steps


class Bits:
    """What the models of one type have in common: a scale, a zero point, the versions of operators."""

    def __init__(self, dtype):
        self.dtype, self.words = dtype, dtype == "int16"
        self.scale, self.zero = (0.0003, 0) if self.words else (0.07, {"int8": -6, "uint8": 121}[dtype])
        self.least = np.iinfo(dtype).min
        self.version = {"int8": 2, "int16": 3, "uint8": 1}[dtype]


def all_steps(r, dtype):
    """All bytes that there are, or words from all along."""
    if dtype == "int16":
        return (np.arange(-32768, 32768, 64) + r.integers(0, 64, 1024)).astype(dtype).reshape(4, -1)
    i = np.iinfo(dtype)
    return r.permutation(np.arange(i.min, i.max + 1)).astype(dtype).reshape(4, -1)


def functions(r, dtype):
    """Of one operand."""
    k, q = Bits(dtype), all_steps(r, dtype)
    m, feeds = Model(), []

    def add(op, name, out, zero_out, options=None, scale=k.scale, zero=k.zero, version=k.version, least=None, **fields):
        x = m.input(name + "_x", q.shape, dtype, scale=scale, zero=zero)
        m.op(op, [x], m.output(name, q.shape, dtype, scale=out, zero=zero_out), options, version=version, **fields)
        feeds.append(q if least is None else np.maximum(q, least).astype(dtype))
    z = k.zero
    middle = 0 if dtype != "uint8" else 128
    for name, by in (("", 1), ("_finer", 0.6), ("_coarser", 1.9)):
        add("LEAKY_RELU", "leaky" + name, k.scale * by, z, "LeakyReluOptions", version=2, alpha=0.2)
        add("RELU", "relu" + name, k.scale * by, z, version=2)
    add("LEAKY_RELU", "leaky_steep", k.scale, z, "LeakyReluOptions", version=2, alpha=1.7)
    if not k.words:
        for op in ("RELU6", "RELU_N1_TO_1", "RELU_0_TO_1"):
            add(op, op.lower() if op != "RELU_N1_TO_1" else "relu1", k.scale, z, version=1 if op != "RELU6" else 2)
        add("HARD_SWISH", "hard_swish", k.scale / 2, z, version=1)
        add("HARD_SWISH", "hard_swish_fine", 0.004, z, version=1, scale=0.005)
        add("HARD_SWISH", "hard_swish_coarse", 0.3, z, version=1, scale=0.4)
        add("TANH", "tanh", 1 / 128, middle)
        add("LOGISTIC", "logistic", 1 / 256, k.least)
    add("GELU", "gelu", k.scale * 0.7, z, "GeluOptions", version=2, approximate=False)
    add("GELU", "gelu_tanh", k.scale * 0.7, z, "GeluOptions", version=2, approximate=True)
    if dtype != "uint8":
        add("ABS", "abs", k.scale, z, version=2)
        add("ABS", "abs_coarser", k.scale * 1.4, z, version=2)
        add("EXP", "exp", k.scale * 50 if not k.words else k.scale * 0.01, k.least if not k.words else 0, version=2, scale=0.03 if not k.words else 0.0001)
        add("LOG", "log", 0.05 if not k.words else 0.0002, 0, version=2, zero=k.least if not k.words else 0, least=k.least + 1 if not k.words else 1)
        add("RSQRT", "rsqrt", 0.02 if not k.words else 0.003, k.least if not k.words else 0, version=2, zero=k.least if not k.words else 0,
            least=k.least + 1 if not k.words else 1)
        add("SQRT", "sqrt", 0.02 if not k.words else 0.0001, k.least if not k.words else 0, version=2, zero=k.least if not k.words else 0,
            least=k.least if not k.words else 0)
    if dtype == "int8":
        add("ELU", "elu", k.scale, z, version=1)
        add("NEG", "neg", k.scale, 0, version=1, zero=0, least=-127)
    return m, *feeds


@model
def words_functions_8(r):
    return functions(r, "int8")


@model
def words_functions_u8(r):
    return functions(r, "uint8")


@model
def words_functions_16(r):
    return functions(r, "int16")


def pairs(r, dtype):
    """Of two operands, of which one may be broadcast."""
    k, shape = Bits(dtype), (4, 8, 24)
    m, feeds = Model(), []

    def pair(op, name, out, zero_out, options=None, by=0.6, row=False, zero_y=None, output=dtype, version=k.version, scale=k.scale, **fields):
        zy = k.zero if zero_y is None else zero_y
        shape_y = shape[-1:] if row else shape
        x, y = m.input(name + "_x", shape, dtype, scale=scale, zero=k.zero), m.input(name + "_y", shape_y, dtype, scale=scale * by, zero=zy)
        to = m.output(name, shape, output, **(dict(scale=out, zero=zero_out) if output == dtype else {}))
        m.op(op, [x, y], to, options, version=version, **fields)
        feeds.extend((steps(r, shape, dtype), steps(r, shape_y, dtype)))
    z, s = k.zero, k.scale
    two = 0 if k.words else z + 9
    for op in ("ADD", "SUB"):
        o = op.capitalize() + "Options"
        pair(op, op.lower(), s * 1.7, z, o, zero_y=two, version=k.version)
        pair(op, op.lower() + "_alike", s, z, o, 1)
        pair(op, op.lower() + "_row", s * 0.3, two, o, 2.3, row=True, fusedActivationFunction=1)
        pair(op, op.lower() + "_relu6", 6 / 255 if not k.words else 6 / 32767, z, o, 0.1, fusedActivationFunction=3)
        pair(op, op.lower() + "_half", s * 2, z, o, 1)
    product = s * s * (60 if not k.words else 20000)
    pair("MUL", "mul", product, z, "MulOptions", zero_y=two)
    pair("MUL", "mul_row", product / 3, two, "MulOptions", row=True, fusedActivationFunction=1)
    pair("MUL", "mul_relu1", product, z, "MulOptions", fusedActivationFunction=2)
    for op in ("MAXIMUM", "MINIMUM"):
        pair(op, op.lower(), s, z, "MaximumMinimumOptions", 1, version=max(k.version, 2) if not k.words else 4)
    for op in ("LESS", "GREATER", "LESS_EQUAL", "GREATER_EQUAL", "EQUAL", "NOT_EQUAL"):
        for name, by, scale in (("", 0.6, s), ("_alike", 1, s), ("_coarse", 1, s / 50)):
            if k.words and by != 1 and "EQUAL" not in (op, op[4:]):  # LiteRT 2.3 does not read their scales
                continue
            pair(op, op.lower() + name, 0, 0, None, by, output="bool", version=2, scale=scale)
    if dtype == "int8":
        pair("SQUARED_DIFFERENCE", "squared", s * s * 40, z, "SquaredDifferenceOptions", version=2)
        pair("SQUARED_DIFFERENCE", "squared_row", s * s * 90, two, "SquaredDifferenceOptions", 1.8, row=True, version=2)
    if not k.words:  # not in LiteRT 2.3
        pair("PRELU", "prelu", s, z, None, 0.3, version=1)
        pair("PRELU", "prelu_row", s * 1.6, two, None, 0.2, row=True, version=1)
    return m, *feeds


@model
def words_pairs_8(r):
    return pairs(r, "int8")


@model
def words_pairs_u8(r):
    return pairs(r, "uint8")


@model
def words_pairs_16(r):
    return pairs(r, "int16")


def quotients(r, dtype):
    """Of all divisors but 0, which LiteRT refuses; of dividends so large that its kernel does not shift by more than 31 bits."""
    k, m, feeds = Bits(dtype), Model(), []
    i, rows = np.iinfo(dtype), 12
    shape = (rows, 255)

    def quotient(name, out, zeros=(-7, 2, -28), least=1, of=0.07, by=0.042, row=False, **fields):
        zx, zy, z = ((0, 0, 0) if k.words else (v + 128 * (dtype == "uint8") for v in zeros))
        x = m.input(name + "_x", shape, dtype, scale=of, zero=zx)
        y = m.input(name + "_y", shape[1:] if row else shape, dtype, scale=by, zero=zy)
        m.op("DIV", [x, y], m.output(name, shape, dtype, scale=out, zero=z), "DivOptions", version=2, **fields)
        far = np.arange(i.min, i.max + 1)
        far = far[np.abs(far - zx) >= least]
        q = np.delete(np.arange(i.min, i.max + 1), zy - i.min)
        feeds.extend((r.choice(far, shape).astype(dtype), r.choice(q, shape[1:] if row else shape).astype(dtype)))

    def by_one(name, out, divisor, of=0.07, by=0.042, zero_x=0, zero_y=0):
        x = m.input(name + "_x", shape, dtype, scale=of, zero=zero_x)
        y = m.const(np.array([divisor], dtype), scale=by, zero=zero_y)
        m.op("DIV", [x, y], m.output(name, shape, dtype, scale=out, zero=zero_x), "DivOptions", version=2)
        feeds.append(r.integers(i.min, i.max + 1, shape).astype(dtype))
    if k.words:
        quotient("near", 0.0003, of=0.007)
        quotient("row", 0.00005, row=True)
        quotient("relu6", 6 / 32767, fusedActivationFunction=3)
        quotient("powers", 0.125, of=0.5, by=0.25, least=1025)
        by_one("one", 0.0003, -321)
        return m, *feeds
    quotient("near", 0.02)
    quotient("row", 0.3, row=True, least=9)
    quotient("fine", 8, (-128, 127, 127), by=0.0042, least=17)
    quotient("coarse", 0.00004, (107, -128, 3), of=0.01, by=1.9, fusedActivationFunction=1)
    quotient("relu6", 6 / 255, (-121, 0, -128), of=0.5, by=0.25, fusedActivationFunction=3)
    quotient("powers", 0.125, (-64, -64, 0), of=0.5, by=0.25, least=5)
    by_one("one", 0.02, 77, zero_x=100, zero_y=3)
    return m, *feeds


@model
def words_quotients_8(r):
    return quotients(r, "int8")


@model
def words_quotients_u8(r):
    return quotients(r, "uint8")


@model
def words_quotients_16(r):
    return quotients(r, "int16")


@model
def words_products_reduced(r):
    """Products along axes, which are brought to the scale of the result one by one."""
    m, feeds = Model(), []
    for dtype in ("int8", "int16"):
        k, shape = Bits(dtype), (3, 4, 5, 2)
        x = m.input(dtype + "_x", shape, dtype, scale=0.014 if not k.words else 0.00005, zero=k.zero)
        for at, keep in (([1], False), ([2], True), ([1, 2], False), ([0, 3], True), ([0, 1, 2, 3], False), ([3], False)):
            to = [1 if i in at else d for i, d in enumerate(shape) if keep or i not in at]
            for name, scale in (("", 0.006), ("_coarse", 0.07)):
                scale = scale if not k.words else scale / 30
                m.op("REDUCE_PROD", [x, m.const(np.int32(at))], m.output(f"{dtype}_{''.join(map(str, at))}{name}", to, dtype, scale=scale, zero=k.zero), "ReducerOptions",
                     version=2, keepDims=keep)
        feeds.append(steps(r, shape, dtype))
        y = m.input(dtype + "_y", (3, 1, 4), dtype, scale=0.02, zero=k.zero)
        m.op("REDUCE_PROD", [y, m.const(np.int32([1]))], m.output(dtype + "_one", [3, 4], dtype, scale=0.03, zero=k.zero), "ReducerOptions", version=2)
        feeds.append(steps(r, (3, 1, 4), dtype))
    return m, *feeds


def quantize(r):
    """From each type to each, finer and coarser."""
    m, feeds = Model(), []
    for of in ("int8", "uint8", "int16", "int32"):
        for to in ("int8", "uint8", "int16", "int32"):
            if (of, to) == ("int16", "uint8") or "int32" in (of, to) and not (of == "int16" and to == "int32") and not (of == "int32" and to in ("int8", "int16")):
                continue
            a, b = (None if t == "int32" else Bits(t) for t in (of, to))
            q = all_steps(r, of) if a else r.integers(-40000, 40000, (4, 64)).astype(np.int32)
            for name, by in (("same", 1), ("finer", 0.37), ("coarser", 2.9)):
                sx, zx = (a.scale, a.zero) if a else (0.001, 0)
                sy = sx * (2**8 if a and a.words and b and not b.words else 2**-8 if b and b.words and a and not a.words else 1) * by
                key = f"{of}_{to}_{name}"
                x = m.input(key + "_x", q.shape, of, scale=sx, zero=zx)
                m.op("QUANTIZE", [x], m.output(key, q.shape, to, scale=sy, zero=b.zero if b else 0), version=4 if "int32" in (of, to) else 3)
                feeds.append(q)
    return m, *feeds


@model
def words_quantize(r):
    return quantize(r)


def reductions(r, dtype):
    """Along axes, and windows."""
    k, shape = Bits(dtype), (2, 5, 6, 7)
    m = Model()
    x = m.input("x", shape, dtype, scale=k.scale, zero=k.zero)
    axes = [([1, 2], False), ([3], True), ([0, 1, 2, 3], False), ([2], False)]

    def op(name, ins, to, options=None, by=1, zero=k.zero, key=None, version=k.version, output=dtype, **fields):
        how = dict(scale=k.scale * by, zero=zero) if output == dtype else {}
        m.op(name, ins, m.output(key or name, to, output, **how), options, version=version, **fields)
    for at, keep in axes:
        to = [1 if i in at else d for i, d in enumerate(shape) if keep or i not in at]
        a, end = m.const(np.int32(at)), "_" + "".join(map(str, at))
        op("MEAN", [x, a], to, "ReducerOptions", 1, key="MEAN" + end, keepDims=keep)
        op("MEAN", [x, a], to, "ReducerOptions", 0.4, key="MEAN_finer" + end, zero=k.zero if k.words else k.zero + 3, keepDims=keep)
        if dtype == "uint8":  # as which the reference kernel reads the others, too
            op("SUM", [x, a], to, "ReducerOptions", 7, key="SUM" + end, keepDims=keep)
        for name in ("REDUCE_MAX", "REDUCE_MIN"):
            op(name, [x, a], to, "ReducerOptions", key=name + end, keepDims=keep, version=3 if k.words else 2)
    for name, padding, stride, size, act in (("", 0, 2, (2, 3), 0), ("_valid", 1, 1, (3, 3), 1), ("_same", 0, 1, (5, 5), 3), ("_all", 1, 1, (5, 6), 0)):
        high, wide = (-(-d // stride) if padding == 0 else (d - n) // stride + 1 for d, n in zip(shape[1:3], size))
        for pool in ("AVERAGE", "MAX"):
            op(pool + "_POOL_2D", [x], [2, high, wide, 7], "Pool2DOptions", key=pool + name, padding=padding, strideH=stride, strideW=stride,
               filterHeight=size[0], filterWidth=size[1], fusedActivationFunction=act)
    if not k.words:
        for name in ("ARG_MAX", "ARG_MIN"):
            op(name, [x, m.const(np.int32(3))], shape[:3], name.title().replace("_", "") + "Options", output="int32", outputType=2, version=2)
    return m, steps(r, shape, dtype)


@model
def words_reductions_8(r):
    return reductions(r, "int8")


@model
def words_reductions_u8(r):
    return reductions(r, "uint8")


@model
def words_reductions_16(r):
    return reductions(r, "int16")


def rows(r, dtype):
    """Softmax and norms along the last dimension."""
    k = Bits(dtype)
    m, feeds = Model(), []
    q = steps(r, (6, 40), dtype)
    q[0] = q[0, 0]
    for name, scale, beta in (("even", 0.004, 1.0), ("near", 0.06, 0.5), ("apart", 0.3, 1.0)):
        x = m.input("softmax_" + name + "_x", q.shape, dtype, scale=scale, zero=k.zero)
        m.op("SOFTMAX", [x], m.output("softmax_" + name, q.shape, dtype, scale=1 / 256, zero=k.least), "SoftmaxOptions", beta=beta, version=k.version)
        x = m.input("log_" + name + "_x", q.shape, dtype, scale=scale, zero=k.zero)
        if dtype == "int8":
            m.op("SOFTMAX", [x], m.output("words_" + name, q.shape, "int16", scale=2.0**-16, zero=-2**15), "SoftmaxOptions", beta=beta, version=k.version)
        m.op("LOG_SOFTMAX", [x], m.output("log_" + name, q.shape, dtype, scale=16 / 256, zero=np.iinfo(dtype).max), "LogSoftmaxOptions", version=2)
        feeds += [q, q]
    for name, shape in (("l2", (6, 40)), ("l2_image", (2, 3, 4, 10))):
        x = m.input(name + "_x", shape, dtype, scale=k.scale, zero=k.zero)
        m.op("L2_NORMALIZATION", [x], m.output(name, shape, dtype, scale=1 / 128, zero=k.least + 128), "L2NormOptions", version=2)
        feeds.append(q.reshape(shape))
    return m, *feeds


def log_rows(r, dtype):
    """Of scales so small that sums have many bits, and so large that little is left but the largest."""
    k = Bits(dtype)
    m, feeds = Model(), []
    for name, scale, shape in (("least", 0.0001, (4, 700)), ("small", 0.011, (9, 33)), ("even", 0.07, (40, 20)), ("large", 0.41, (40, 9)), ("largest", 3.7, (40, 3)),
                               ("image", 0.05, (2, 3, 4, 10))):
        x = m.input(name + "_x", shape, dtype, scale=scale, zero=k.zero)
        m.op("LOG_SOFTMAX", [x], m.output(name, shape, dtype, scale=16 / 256, zero=np.iinfo(dtype).max), "LogSoftmaxOptions", version=2)
        feeds.append(steps(r, shape, dtype))
    return m, *feeds


@model
def words_log_8(r):
    return log_rows(r, "int8")


@model
def words_log_u8(r):
    return log_rows(r, "uint8")


@model
def words_rows_8(r):
    return rows(r, "int8")


@model
def words_rows_u8(r):
    return rows(r, "uint8")


def resized(r, dtype):
    k, shape = Bits(dtype), (2, 3, 4, 5)
    m = Model()
    x = m.input("x", shape, dtype, scale=k.scale, zero=k.zero)
    for name, size, half, corners in (("half", (6, 8), True, False), ("plain", (7, 5), False, False), ("corners", (5, 9), False, True), ("less", (2, 3), True, False),
                                      ("odd", (13, 11), True, False), ("odd_corners", (8, 7), False, True), ("one", (1, 1), False, True),
                                      ("floats", (2, 41), True, False), ("floats_corners", (2, 75), False, True)):
        for op in ("BILINEAR", "NEAREST_NEIGHBOR"):
            m.op("RESIZE_" + op, [x, m.const(np.int32(size))], m.output(op + "_" + name, [2, *size, 5], dtype, scale=k.scale, zero=k.zero),
                 "Resize" + op.title().replace("_", "") + "Options", halfPixelCenters=half, alignCorners=corners, version=3)
    return m, steps(r, shape, dtype)


@model
def words_resize_8(r):
    return resized(r, "int8")


@model
def words_resize_u8(r):
    return resized(r, "uint8")


@model
def words_resize_16(r):
    return resized(r, "int16")


def movers(r, dtype):
    """What only moves cells."""
    k, shape = Bits(dtype), (4, 4, 6, 8)
    m = Model()
    x, y = (m.input(n, shape, dtype, scale=k.scale, zero=k.zero) for n in "xy")

    def i32(v):
        return m.const(np.int32(v))

    def op(name, ins, to, options=None, version=2, key=None, **fields):
        outs = to if isinstance(to[0], (list, tuple)) else [to]
        outs = [m.output(f"{key or name}_{i}", t, dtype, scale=k.scale, zero=k.zero) for i, t in enumerate(outs)]
        m.op(name, ins, outs, options, version=version, **fields)
    pads = i32([[0, 0], [1, 1], [0, 2], [0, 0]])
    op("PAD", [x, pads], [4, 6, 8, 8])
    op("PADV2", [x, pads, m.const(np.array(k.zero + 3 if not k.words else 77, dtype).reshape(1), scale=k.scale, zero=k.zero)], [4, 6, 8, 8])
    op("MIRROR_PAD", [x, pads], [4, 6, 8, 8], "MirrorPadOptions", mode=0)
    op("CONCATENATION", [x, y], [4, 4, 12, 8], "ConcatenationOptions", axis=2)
    op("PACK", [x, y], [2, *shape], "PackOptions", axis=0, valuesCount=2)
    op("UNPACK", [x], [[4, 4, 6]] * 8, "UnpackOptions", axis=3, num=8)
    op("SPLIT", [i32(3), x], [[4, 4, 6, 4]] * 2, "SplitOptions", numSplits=2)
    op("SPLIT_V", [x, i32([2, 4]), i32(2)], [[4, 4, 2, 8], [4, 4, 4, 8]], "SplitVOptions", numSplits=2)
    op("SLICE", [x, i32([0, 1, 0, 2]), i32([2, 2, 3, 3])], [2, 2, 3, 3], version=4)
    op("STRIDED_SLICE", [x, i32([0, 0, 1, 0]), i32([4, 3, 4, 8]), i32([1, 2, 1, 1])], [4, 2, 3, 8], "StridedSliceOptions", version=4)
    op("TRANSPOSE", [x, i32([0, 3, 1, 2])], [4, 8, 4, 6], version=4)
    op("RESHAPE", [x, i32([16, 48])], [16, 48], "ReshapeOptions", version=1)
    op("TILE", [x, i32([1, 2, 1, 1])], [4, 8, 6, 8], version=3)
    op("REVERSE_V2", [x, i32([2])], list(shape), version=3)
    op("GATHER", [x, i32([2, 0])], [4, 4, 2, 8], "GatherOptions", axis=2, version=4)
    op("GATHER_ND", [x, i32([[1, 0], [2, 3]])], [2, 6, 8], "GatherNdOptions", version=4)
    op("BROADCAST_TO", [x, i32([2, 4, 4, 6, 8])], [2, 4, 4, 6, 8], "BroadcastToOptions", version=3)
    op("SELECT_V2", [m.const(r.integers(0, 2, shape).astype(bool)), x, y], list(shape), "SelectV2Options", version=1)
    op("DYNAMIC_UPDATE_SLICE", [x, m.const(steps(r, (4, 2, 6, 8), dtype), scale=k.scale, zero=k.zero), i32([0, 1, 0, 0])], list(shape), version=3)
    some = m.const(steps(r, (3, 3), dtype), scale=k.scale, zero=k.zero)
    op("MATRIX_DIAG", [some], [3, 3, 3], "MatrixDiagOptions", version=1)
    if not k.words:
        op("SCATTER_ND", [i32([[4], [3], [4]]), some, i32([8, 3])], [8, 3], "ScatterNdOptions", version=1)
        op("SPACE_TO_DEPTH", [x], [4, 2, 3, 32], "SpaceToDepthOptions", blockSize=2)
        op("DEPTH_TO_SPACE", [x], [4, 8, 12, 2], "DepthToSpaceOptions", blockSize=2)
        op("SPACE_TO_BATCH_ND", [x, i32([2, 2]), i32([[0, 0], [0, 0]])], [16, 2, 3, 8], version=3)
        op("BATCH_TO_SPACE_ND", [x, i32([2, 2]), i32([[0, 0], [0, 0]])], [1, 8, 12, 8], version=3)
        m.op("TOPK_V2", [x, i32(3)], [m.output("TOPK", [4, 4, 6, 3], dtype, scale=k.scale, zero=k.zero), m.output("TOPK_at", [4, 4, 6, 3], "int32")],
             "TopKV2Options", version=2)
    return m, steps(r, shape, dtype), steps(r, shape, dtype)


@model
def words_movers_8(r):
    return movers(r, "int8")


@model
def words_movers_u8(r):
    return movers(r, "uint8")


@model
def words_movers_16(r):
    return movers(r, "int16")
