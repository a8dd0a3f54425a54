#!/usr/bin/env python3
"""Writes models/: small models of every operator family, with the results of LiteRT's reference kernels.

    make_ops.py [NAME ..]        those alone

run_* compute in floats or whole numbers, step_* in quantized integers, which may be one step off.  A model may hold many operators
of one input.  Each has a random stream of its own, so that a new one changes no other.
"""
import sys
import zlib

import numpy as np

from make_model import Graph, Model, S

MODELS = {}


def model(f):
    MODELS[f.__name__] = f
    return f


def rng_of(name):
    return np.random.default_rng(zlib.crc32(name.encode()))


def f32(r, *shape, lo=-1, hi=1):
    return r.uniform(lo, hi, shape).astype(np.float32)


# ---- cell by cell ----

UNARY = ["ABS", "NEG", "SIGN", "FLOOR", "CEIL", "ROUND", "EXP", "SIN", "COS", "SQUARE", "RELU", "RELU_N1_TO_1", "RELU6",
         "RELU_0_TO_1", "TANH", "LOGISTIC", "ELU", "HARD_SWISH"]


@model
def run_unary(r):
    m = Model()
    x = m.input("x", [2, 3, 5])
    for op in UNARY:
        m.op(op, [x], m.output(op, [2, 3, 5]))
    m.op("LEAKY_RELU", [x], m.output("LEAKY_RELU", [2, 3, 5]), "LeakyReluOptions", alpha=0.3)
    m.op("GELU", [x], m.output("GELU", [2, 3, 5]), "GeluOptions")
    m.op("GELU", [x], m.output("GELU_TANH", [2, 3, 5]), "GeluOptions", approximate=True)
    m.op("PRELU", [x, m.const(f32(r, 1, 1, 5))], m.output("PRELU", [2, 3, 5]))
    return m, f32(r, 2, 3, 5, lo=-8, hi=8)


@model
def run_positive(r):
    m = Model()
    x = m.input("x", [2, 3, 5])
    for op in ["LOG", "SQRT", "RSQRT"]:
        m.op(op, [x], m.output(op, [2, 3, 5]))
    return m, f32(r, 2, 3, 5, lo=0.1, hi=8)


@model
def run_binary(r):
    m = Model()
    x, y = m.input("x", [2, 3, 5]), m.input("y", [3, 1])
    for op, options in [("ADD", "AddOptions"), ("MUL", "MulOptions"), ("SUB", "SubOptions"), ("DIV", "DivOptions")]:
        for act, name in [(0, ""), (1, "_relu"), (3, "_relu6"), (2, "_n1")]:
            m.op(op, [x, y], m.output(op + name, [2, 3, 5]), options, fusedActivationFunction=act)
    for op in ["MAXIMUM", "MINIMUM", "FLOOR_DIV", "FLOOR_MOD", "SQUARED_DIFFERENCE"]:
        m.op(op, [x, y], m.output(op, [2, 3, 5]), version=2 if op in ("FLOOR_DIV", "FLOOR_MOD") else 1)
    for op in ["LESS", "GREATER", "GREATER_EQUAL", "LESS_EQUAL", "EQUAL", "NOT_EQUAL"]:
        m.op(op, [x, y], m.output(op, [2, 3, 5], "bool"))
    return m, f32(r, 2, 3, 5, lo=-4, hi=4), f32(r, 3, 1, lo=1, hi=3)


@model
def run_same_shape(r):
    m = Model()
    x, y = m.input("x", [3, 5]), m.input("y", [3, 5])
    m.op("ATAN2", [x, y], m.output("ATAN2", [3, 5]))
    m.op("ADD_N", [x, y, x], m.output("ADD_N", [3, 5]))
    p = m.tensor("p", [3, 5])
    m.op("ABS", [x], p)
    m.op("POW", [p, y], m.output("POW", [3, 5]))
    c = m.tensor("c", [3, 5], "bool")
    m.op("LESS", [x, y], c)
    m.op("SELECT", [c, x, y], m.output("SELECT", [3, 5]))
    m.op("SELECT_V2", [c, x, m.const(np.float32([7]))], m.output("SELECT_V2", [3, 5]))
    rows = m.const(np.array([True, False, True]))
    m.op("SELECT", [rows, x, y], m.output("SELECT_rows", [3, 5]))
    d = m.tensor("d", [3, 5], "bool")
    m.op("LOGICAL_NOT", [c], d)
    m.op("LOGICAL_AND", [c, d], m.output("LOGICAL_AND", [3, 5], "bool"))
    m.op("LOGICAL_OR", [c, d], m.output("LOGICAL_OR", [3, 5], "bool"))
    return m, f32(r, 3, 5, lo=-3, hi=3), f32(r, 3, 5, lo=-3, hi=3)


@model
def run_integers(r):
    m = Model()
    x, y = m.input("x", [4, 6], "int32"), m.input("y", [4, 6], "int32")
    for op, options in [("ADD", "AddOptions"), ("MUL", "MulOptions"), ("SUB", "SubOptions"), ("DIV", "DivOptions")]:
        m.op(op, [x, y], m.output(op, [4, 6], "int32"), options)
    for op in ["MAXIMUM", "MINIMUM", "FLOOR_DIV", "FLOOR_MOD", "SQUARED_DIFFERENCE", "BITWISE_XOR"]:
        m.op(op, [x, y], m.output(op, [4, 6], "int32"))
    for t in ["float32", "int64", "int8", "bool"]:
        m.op("CAST", [x], m.output("CAST_" + t, [4, 6], t), "CastOptions")
    m.op("BITCAST", [x], m.output("BITCAST", [4, 6], "uint32"))
    return m, r.integers(-50, 50, (4, 6)).astype(np.int32), r.integers(1, 9, (4, 6)).astype(np.int32) * r.choice([-1, 1], (4, 6)).astype(np.int32)


@model
def run_fake_quant(r):
    m = Model()
    x = m.input("x", [40])
    m.op("FAKE_QUANT", [x], m.output("y", [40]), "FakeQuantOptions", min=-1.0, max=3.0, numBits=8)
    m.op("FAKE_QUANT", [x], m.output("z", [40]), "FakeQuantOptions", min=-0.7, max=2.9, numBits=4)
    return m, f32(r, 40, lo=-2, hi=4)


# ---- images ----

def conv(m, r, name, x, shape, out, kernel, groups=1, act=0, padding=0, stride=(1, 1), dilation=(1, 1), to=None):
    w = m.const(f32(r, out, kernel[0], kernel[1], shape[3] // groups))
    b = m.const(f32(r, out))
    size = []
    for i in range(2):
        k = (kernel[i] - 1) * dilation[i] + 1
        size.append(-(-shape[1 + i] // stride[i]) if padding == 0 else (shape[1 + i] - k) // stride[i] + 1)
    shape = [shape[0], *size, out]
    y = to(name, shape) if to else m.output(name, shape)
    m.op("CONV_2D", [x, w, b], y, "Conv2DOptions", padding=padding, strideH=stride[0], strideW=stride[1], fusedActivationFunction=act,
         dilationHFactor=dilation[0], dilationWFactor=dilation[1])
    return y, shape


@model
def run_conv(r):
    m = Model()
    shape = [2, 7, 9, 4]
    x = m.input("x", shape)
    conv(m, r, "same", x, shape, 6, (3, 3), act=1)
    conv(m, r, "valid", x, shape, 5, (3, 2), padding=1)
    conv(m, r, "stride", x, shape, 3, (3, 3), stride=(2, 3), act=3)
    conv(m, r, "even", x, shape, 3, (2, 4), stride=(2, 2))
    conv(m, r, "dilated", x, shape, 3, (3, 3), dilation=(2, 2))
    conv(m, r, "groups", x, shape, 6, (3, 3), groups=2, act=2)
    return m, f32(r, *shape)


@model
def run_depthwise(r):
    m = Model()
    x = m.input("x", [2, 7, 9, 4])
    for name, times, stride, dilation, size in [("one", 1, 1, 1, (7, 9)), ("two", 2, 2, 1, (4, 5)), ("dilated", 1, 1, 2, (7, 9))]:
        m.op("DEPTHWISE_CONV_2D", [x, m.const(f32(r, 1, 3, 3, 4 * times)), m.const(f32(r, 4 * times))],
             m.output(name, [2, *size, 4 * times]), "DepthwiseConv2DOptions", padding=0, strideH=stride, strideW=stride,
             depthMultiplier=times, dilationHFactor=dilation, dilationWFactor=dilation, fusedActivationFunction=1)
    return m, f32(r, 2, 7, 9, 4)


@model
def run_transpose_conv(r):
    m = Model()
    x = m.input("x", [1, 5, 4, 3])
    for name, size, kernel, stride, padding in [("same", [10, 8], 3, 2, 0), ("valid", [11, 9], 3, 2, 1), ("odd", [9, 7], 3, 2, 0),
                                                ("bias", [5, 4], 3, 1, 0)]:
        shape = [1, *size, 2]
        ins = [m.const(np.int32(shape)), m.const(f32(r, 2, kernel, kernel, 3)), x]
        if name == "bias":
            ins.append(m.const(f32(r, 2)))
        m.op("TRANSPOSE_CONV", ins, m.output(name, shape), "TransposeConvOptions", padding=padding, strideH=stride, strideW=stride,
             version=3 if name == "bias" else 1)
    return m, f32(r, 1, 5, 4, 3)


@model
def run_pool(r):
    m = Model()
    x = m.input("x", [2, 7, 9, 3])
    for op in ["AVERAGE_POOL_2D", "MAX_POOL_2D", "L2_POOL_2D"]:
        for name, size, padding, act in [("same", (4, 5), 0, 0), ("valid", (3, 4), 1, 3)]:
            m.op(op, [x], m.output(f"{op}_{name}", [2, *size, 3]), "Pool2DOptions", padding=padding, strideH=2, strideW=2, filterHeight=3,
                 filterWidth=3, fusedActivationFunction=act)
    return m, f32(r, 2, 7, 9, 3, lo=-2, hi=9)


@model
def run_image_norms(r):
    m = Model()
    x = m.input("x", [2, 3, 4, 6])
    m.op("L2_NORMALIZATION", [x], m.output("l2", [2, 3, 4, 6]), "L2NormOptions")
    m.op("SOFTMAX", [x], m.output("softmax", [2, 3, 4, 6]), "SoftmaxOptions", beta=1.5)
    m.op("LOG_SOFTMAX", [x], m.output("log_softmax", [2, 3, 4, 6]), "LogSoftmaxOptions")
    m.op("DEPTH_TO_SPACE", [m_conv(m, r, x, 8)], m.output("d2s", [2, 6, 8, 2]), "DepthToSpaceOptions", blockSize=2)
    m.op("SPACE_TO_DEPTH", [x2(m, x)], m.output("s2d", [2, 3, 2, 24]), "SpaceToDepthOptions", blockSize=2)
    return m, f32(r, 2, 3, 4, 6)


@model
def run_lrn(r):
    """The reference kernel leaves the last neighbour out, unlike TensorFlow."""
    m = Model()
    m.optimized = True
    x = m.input("x", [2, 3, 4, 6])
    m.op("LOCAL_RESPONSE_NORMALIZATION", [x], m.output("lrn", [2, 3, 4, 6]), "LocalResponseNormalizationOptions", radius=2, bias=1.0,
         alpha=0.5, beta=0.75)
    return m, f32(r, 2, 3, 4, 6)


def m_conv(m, r, x, out):
    return conv(m, r, f"conv{out}", x, [2, 3, 4, 6], out, (1, 1), to=m.tensor)[0]


def x2(m, x):
    y = m.tensor("rows", [2, 6, 4, 6])
    m.op("TILE", [x, m.const(np.int32([1, 2, 1, 1]))], y)
    return y


@model
def run_resize(r):
    m = Model()
    x = m.input("x", [1, 4, 5, 2])
    for op, options in [("RESIZE_BILINEAR", "ResizeBilinearOptions"), ("RESIZE_NEAREST_NEIGHBOR", "ResizeNearestNeighborOptions")]:
        for size in [(8, 10), (7, 3)]:
            for corners, half in [(False, False), (True, False), (False, True)]:
                m.op(op, [x, m.const(np.int32(size))], m.output(f"{op}_{size[0]}_{corners:d}{half:d}", [1, *size, 2]), options,
                     alignCorners=corners, halfPixelCenters=half, version=3)
    return m, f32(r, 1, 4, 5, 2)


@model
def run_between_convs(r):
    """What lies between two convolutions works on images as these have them."""
    m = Model()
    shape = [1, 6, 5, 4]
    x = m.input("x", shape)
    y, _ = conv(m, r, "a", x, shape, 4, (3, 3), act=1, to=m.tensor)
    z, _ = conv(m, r, "b", x, shape, 4, (1, 1), to=m.tensor)

    def step(op, ins, name, out, options=None, **fields):
        t = m.tensor(name, out)
        m.op(op, ins, t, options, **fields)
        return t

    s = step("ADD", [y, z], "sum", shape, "AddOptions")
    s = step("MUL", [s, m.const(f32(r, 4))], "scaled", shape, "MulOptions")
    s = step("MUL", [s, m.const(f32(r, 1, 1, 1, 4))], "scaled2", shape, "MulOptions")
    s = step("ADD", [s, m.const(f32(r, 5, 1))], "rows", shape, "AddOptions")
    s = step("PRELU", [s, m.const(f32(r, 1, 1, 4))], "prelu", shape)
    s = step("PAD", [s, m.const(np.int32([[0, 0], [1, 0], [0, 1], [0, 2]]))], "padded", [1, 7, 6, 6])
    s = step("CONCATENATION", [s, s], "joined", [1, 7, 6, 12], "ConcatenationOptions", axis=3)
    g = step("MEAN", [s, m.const(np.int32([1, 2]))], "gate", [1, 1, 1, 12], "ReducerOptions", keepDims=True)
    g = step("LOGISTIC", [g], "gate2", [1, 1, 1, 12])
    s = step("MUL", [s, g], "gated", [1, 7, 6, 12], "MulOptions")
    s = step("SOFTMAX", [s], "soft", [1, 7, 6, 12], "SoftmaxOptions", beta=1.0)
    s = step("RESIZE_BILINEAR", [s, m.const(np.int32([14, 12]))], "large", [1, 14, 12, 12], "ResizeBilinearOptions")
    s, shape = conv(m, r, "last", s, [1, 14, 12, 12], 3, (3, 3), stride=(2, 2), to=m.tensor)
    m.op("MEAN", [s, m.const(np.int32([1, 2]))], m.output("mean", [1, 3]), "ReducerOptions")
    m.op("SUM", [s, m.const(np.int32([2]))], m.output("columns", [1, 7, 3]), "ReducerOptions")
    m.op("REDUCE_MAX", [s, m.const(np.int32([-1]))], m.output("channels", [1, 7, 6]), "ReducerOptions")
    m.op("RESHAPE", [s, m.const(np.int32([1, -1]))], m.output("flat", [1, 126]), "ReshapeOptions")
    return m, f32(r, 1, 6, 5, 4)


# ---- matrices ----

@model
def run_dense(r):
    m = Model()
    x = m.input("x", [2, 3, 4])
    w = m.const(f32(r, 5, 4))
    m.op("FULLY_CONNECTED", [x, w, m.const(f32(r, 5))], m.output("flat", [6, 5]), "FullyConnectedOptions", fusedActivationFunction=1)
    m.op("FULLY_CONNECTED", [x, w], m.output("kept", [2, 3, 5]), "FullyConnectedOptions", keepNumDims=True, version=5)
    m.op("FULLY_CONNECTED", [x, m.const(f32(r, 7, 12)), -1], m.output("all", [2, 7]), "FullyConnectedOptions")
    y = m.const(f32(r, 2, 4, 5))
    m.op("BATCH_MATMUL", [x, y], m.output("product", [2, 3, 5]), "BatchMatMulOptions")
    m.op("BATCH_MATMUL", [x, m.const(f32(r, 2, 5, 4))], m.output("turned", [2, 3, 5]), "BatchMatMulOptions", adjY=True)
    m.op("BATCH_MATMUL", [m.const(f32(r, 4, 3)), m.const(f32(r, 4, 5))], m.output("two", [3, 5]), "BatchMatMulOptions", adjX=True)
    return m, f32(r, 2, 3, 4)


# ---- shapes ----

@model
def run_shapes(r):
    m = Model()
    x = m.input("x", [2, 3, 1, 4])
    m.op("RESHAPE", [x, m.const(np.int32([4, -1]))], m.output("reshape", [4, 6]), "ReshapeOptions", newShape=[4, -1])
    m.op("RESHAPE", [x], m.output("option", [24]), "ReshapeOptions", newShape=[24])
    m.op("SQUEEZE", [x], m.output("squeeze", [2, 3, 4]), "SqueezeOptions", squeezeDims=[-2])
    m.op("SQUEEZE", [x], m.output("squeeze_all", [2, 3, 4]), "SqueezeOptions")
    m.op("EXPAND_DIMS", [x, m.const(np.int32([-1]))], m.output("expand", [2, 3, 1, 4, 1]))
    m.op("TRANSPOSE", [x, m.const(np.int32([3, 0, 2, 1]))], m.output("transpose", [4, 2, 1, 3]))
    m.op("CONCATENATION", [x, x, m.const(f32(r, 2, 2, 1, 4))], m.output("concat", [2, 8, 1, 4]), "ConcatenationOptions", axis=1)
    m.op("PACK", [x, x], m.output("pack", [2, 3, 2, 1, 4]), "PackOptions", valuesCount=2, axis=2)
    m.op("UNPACK", [x], [m.output(f"unpack{i}", [2, 1, 4]) for i in range(3)], "UnpackOptions", num=3, axis=1)
    m.op("SPLIT", [m.const(np.int32(3)), x], [m.output(f"split{i}", [2, 3, 1, 2]) for i in range(2)], "SplitOptions", numSplits=2)
    m.op("SPLIT_V", [x, m.const(np.int32([1, -1])), m.const(np.int32(1))],
         [m.output("split_v0", [2, 1, 1, 4]), m.output("split_v1", [2, 2, 1, 4])], "SplitVOptions", numSplits=2)
    m.op("SLICE", [x, m.const(np.int32([0, 1, 0, 2])), m.const(np.int32([2, -1, 1, 1]))], m.output("slice", [2, 2, 1, 1]))
    m.op("TILE", [x, m.const(np.int32([1, 2, 3, 1]))], m.output("tile", [2, 6, 3, 4]))
    m.op("BROADCAST_TO", [x, m.const(np.int32([2, 3, 5, 4]))], m.output("broadcast", [2, 3, 5, 4]), version=2)
    m.op("REVERSE_V2", [x, m.const(np.int32([1]))], m.output("reverse", [2, 3, 1, 4]))
    m.op("SHAPE", [x], m.output("shape", [4], "int32"), "ShapeOptions", outType=2)
    m.op("RANK", [x], m.output("rank", [], "int32"))
    m.op("ZEROS_LIKE", [x], m.output("zeros", [2, 3, 1, 4]))
    m.op("FILL", [m.const(np.int32([2, 2])), m.const(np.float32(3.5))], m.output("fill", [2, 2]))
    return m, f32(r, 2, 3, 1, 4)


@model
def run_strided(r):
    m = Model()
    x = m.input("x", [4, 5, 6])

    def s(name, begin, end, step, shape, **masks):
        m.op("STRIDED_SLICE", [x] + [m.const(np.int32(v)) for v in (begin, end, step)], m.output(name, shape), "StridedSliceOptions", **masks)
    s("plain", [1, 0, 2], [3, 5, 6], [1, 2, 3], [2, 3, 2])
    s("back", [3, -1, 5], [0, 0, 0], [-1, -2, -5], [3, 2, 1])
    s("masks", [9, 1, 9], [0, 9, 4], [1, 2, 1], [4, 2, 4], beginMask=5, endMask=3)
    s("all_back", [0, 0, 0], [0, 0, 0], [-1, -1, -1], [4, 5, 6], beginMask=7, endMask=7)
    s("shrink", [1, 0, -1], [2, 5, 0], [1, 1, 1], [5], shrinkAxisMask=5)
    s("ellipsis", [0, 2], [0, 4], [1, 1], [4, 5, 2], ellipsisMask=1)
    s("fresh", [0, 0, 1], [0, 0, 3], [1, 1, 1], [1, 4, 2, 6], newAxisMask=1, beginMask=2, endMask=2)
    return m, f32(r, 4, 5, 6)


@model
def run_pads(r):
    m = Model()
    x = m.input("x", [3, 4])
    p = m.const(np.int32([[1, 2], [2, 1]]))
    m.op("PAD", [x, p], m.output("zeros", [6, 7]))
    m.op("PADV2", [x, p, m.const(np.float32(-2.5))], m.output("value", [6, 7]))
    m.op("MIRROR_PAD", [x, p], m.output("reflect", [6, 7]), "MirrorPadOptions", mode=0)
    m.op("MIRROR_PAD", [x, p], m.output("symmetric", [6, 7]), "MirrorPadOptions", mode=1)
    return m, f32(r, 3, 4)


@model
def run_batches(r):
    m = Model()
    x = m.input("x", [2, 4, 6, 3])
    y = m.tensor("y", [12, 3, 3, 3])
    m.op("SPACE_TO_BATCH_ND", [x, m.const(np.int32([2, 3])), m.const(np.int32([[1, 1], [2, 1]]))], y)
    z = m.output("z", [12, 3, 3, 3])
    m.op("ABS", [y], z)
    m.op("BATCH_TO_SPACE_ND", [z, m.const(np.int32([2, 3])), m.const(np.int32([[1, 1], [2, 1]]))], m.output("back", [2, 4, 6, 3]))
    return m, f32(r, 2, 4, 6, 3)


# ---- reductions, order ----

@model
def run_reduce(r):
    m = Model()
    x = m.input("x", [2, 3, 4])
    for op in ["MEAN", "SUM", "REDUCE_PROD", "REDUCE_MAX", "REDUCE_MIN"]:
        m.op(op, [x, m.const(np.int32([0, -1]))], m.output(op, [3]), "ReducerOptions")
        m.op(op, [x, m.const(np.int32([1]))], m.output(op + "_kept", [2, 1, 4]), "ReducerOptions", keepDims=True)
    c = m.tensor("c", [2, 3, 4], "bool")
    m.op("LESS", [x, m.const(np.float32(0.9))], c)
    m.op("REDUCE_ANY", [c, m.const(np.int32([2]))], m.output("any", [2, 3], "bool"), "ReducerOptions")
    m.op("REDUCE_ALL", [c, m.const(np.int32([2]))], m.output("all", [2, 3], "bool"), "ReducerOptions")
    m.op("ARG_MAX", [x, m.const(np.int32([-1]))], m.output("argmax", [2, 3], "int64"), "ArgMaxOptions", outputType=4)
    m.op("ARG_MIN", [x, m.const(np.int32([1]))], m.output("argmin", [2, 4], "int32"), "ArgMinOptions", outputType=2)
    m.op("CUMSUM", [x, m.const(np.int32(1))], m.output("cumsum", [2, 3, 4]), "CumsumOptions")
    m.op("CUMSUM", [x, m.const(np.int32(2))], m.output("cumsum_back", [2, 3, 4]), "CumsumOptions", exclusive=True, reverse=True)
    m.op("TOPK_V2", [x, m.const(np.int32(2))], [m.output("top", [2, 3, 2]), m.output("top_at", [2, 3, 2], "int32")], "TopKV2Options")
    return m, f32(r, 2, 3, 4)


# ---- positions ----

@model
def run_gather(r):
    m = Model()
    x, i = m.input("x", [3, 4, 5]), m.input("i", [2, 3], "int32")
    m.op("GATHER", [x, i], m.output("rows", [2, 3, 4, 5]), "GatherOptions", axis=0)
    m.op("GATHER", [x, i], m.output("columns", [3, 4, 2, 3]), "GatherOptions", axis=-1)
    m.op("GATHER", [m.const(f32(r, 2, 4, 5)), i], m.output("batches", [2, 3, 5]), "GatherOptions", axis=1, batchDims=1)
    m.op("GATHER_ND", [x, i], m.output("cells", [2]))
    m.op("EMBEDDING_LOOKUP", [m.const(np.int32([2, 0])), x], m.output("embedding", [2, 4, 5]))
    m.op("SCATTER_ND", [i, m.const(f32(r, 2)), m.const(np.int32([3, 3, 3]))], m.output("scatter", [3, 3, 3]))
    m.op("ONE_HOT", [i, m.const(np.int32(4)), m.const(np.float32(2)), m.const(np.float32(-1))], m.output("one_hot", [2, 3, 4]), "OneHotOptions",
         axis=-1)
    m.op("ONE_HOT", [i, m.const(np.int32(4)), m.const(np.float32(1)), m.const(np.float32(0))], m.output("one_hot1", [2, 4, 3]), "OneHotOptions",
         axis=1)
    return m, f32(r, 3, 4, 5), r.integers(0, 3, (2, 3)).astype(np.int32)


@model
def run_segments(r):
    m = Model()
    x, i = m.input("x", [4, 3]), m.input("i", [4], "int32")
    for op in ["SUM", "PROD", "MAX", "MIN"]:
        m.op("UNSORTED_SEGMENT_" + op, [x, i, m.const(np.int32(4))], m.output(op, [4, 3]))
    m.op("SEGMENT_SUM", [x, m.const(np.int32([0, 0, 1, 2]))], m.output("segments", [3, 3]))
    m.op("REVERSE_SEQUENCE", [x, m.const(np.int32([1, 3, 2]))], m.output("reverse", [4, 3]), "ReverseSequenceOptions", seqDim=0, batchDim=1)
    m.op("MATRIX_DIAG", [x], m.output("diag", [4, 3, 3]))
    m.op("MATRIX_SET_DIAG", [x, m.const(f32(r, 3))], m.output("set_diag", [4, 3]))
    m.op("BUCKETIZE", [x], m.output("buckets", [4, 3], "int32"), "BucketizeOptions", boundaries=[-0.5, 0.0, 0.25])
    m.op("SPARSE_TO_DENSE", [m.const(np.int32([[0, 1], [2, 2]])), m.const(np.int32([3, 4])), m.const(f32(r, 2)), m.const(np.float32(-1))],
         m.output("dense", [3, 4]), "SparseToDenseOptions")
    m.op("DYNAMIC_UPDATE_SLICE", [x, m.const(f32(r, 2, 2)), m.const(np.int32([1, 1]))], m.output("update", [4, 3]))
    return m, f32(r, 4, 3), np.int32([2, 0, 2, 1])


@model
def run_range(r):
    m = Model()
    x = m.input("x", [5])
    y = m.tensor("y", [5])
    m.op("RANGE", [m.const(np.float32(1)), m.const(np.float32(3.5)), m.const(np.float32(0.5))], y)
    m.op("ADD", [x, y], m.output("z", [5]), "AddOptions")
    return m, f32(r, 5)


# ---- quantized ----

def steps(r, shape, dtype):
    i = np.iinfo(dtype)
    return r.integers(i.min, i.max + 1, shape).astype(dtype)


def quantized_conv(m, r, x, sx, dtype, cin, cout, name, out_scale, out_zero, per_channel, op="CONV_2D", act=0):
    kernel = (cout, 3, 3, cin) if op == "CONV_2D" else (1, 3, 3, cout)
    axis = 0 if op == "CONV_2D" else 3
    n = cout if per_channel else 1
    scale = r.uniform(0.01, 0.03, n).astype(np.float32)
    wide = dtype == "int16"
    if dtype == "uint8":
        w = m.const(r.integers(0, 256, kernel).astype(np.uint8), scale=scale, zero=120)
    else:
        w = m.const(r.integers(-127, 128, kernel).astype(np.int8), scale=scale, zero=0, axis=axis)
    b = m.const(r.integers(-900, 900, cout).astype(np.int64 if wide else np.int32), scale=np.float32(sx) * scale, zero=0)
    y = m.output(name, [1, 6, 5, cout], dtype, scale=out_scale, zero=out_zero)
    options = dict(padding=0, strideH=1, strideW=1, fusedActivationFunction=act)
    if op == "CONV_2D":
        m.op(op, [x, w, b], y, "Conv2DOptions", version=4 if wide else 3, **options)
    else:
        m.op(op, [x, w, b], y, "DepthwiseConv2DOptions", version=5 if wide else 3, depthMultiplier=cout // cin, **options)


def quantized_convs(r, dtype, zero, out_zero, per_channel):
    m = Model()
    scale = 0.0002 if dtype == "int16" else 0.05
    out = 0.001 if dtype == "int16" else 0.2
    x = m.input("x", [1, 6, 5, 4], dtype, scale=scale, zero=zero)
    quantized_conv(m, r, x, scale, dtype, 4, 6, "conv", out, out_zero, per_channel)
    quantized_conv(m, r, x, scale, dtype, 4, 6, "relu6", out / 4, out_zero if dtype == "int16" else out_zero - 100 if dtype == "int8" else 10,
                   per_channel, act=3)
    quantized_conv(m, r, x, scale, dtype, 4, 8, "depthwise", out / 2, out_zero, per_channel, "DEPTHWISE_CONV_2D", act=1)
    return m, steps(r, (1, 6, 5, 4), dtype)


@model
def step_conv_channels(r):
    return quantized_convs(r, "int8", -3, 11, True)


@model
def step_conv_tensor(r):
    return quantized_convs(r, "int8", 5, -7, False)


@model
def step_conv_u8(r):
    return quantized_convs(r, "uint8", 128, 117, False)


@model
def step_conv_16(r):
    return quantized_convs(r, "int16", 0, 0, True)


@model
def step_dense(r):
    m = Model()
    x = m.input("x", [3, 8], "int8", scale=0.05, zero=4)
    w = m.const(r.integers(-127, 128, (5, 8)).astype(np.int8), scale=0.02)
    b = m.const(r.integers(-500, 500, 5).astype(np.int32), scale=0.001)
    m.op("FULLY_CONNECTED", [x, w, b], m.output("tensor", [3, 5], "int8", scale=0.1, zero=-9), "FullyConnectedOptions", version=4)
    s = np.float32([0.01, 0.02, 0.03, 0.015, 0.025])
    w = m.const(r.integers(-127, 128, (5, 8)).astype(np.int8), scale=s)
    b = m.const(r.integers(-500, 500, 5).astype(np.int32), scale=s * np.float32(0.05))
    m.op("FULLY_CONNECTED", [x, w, b], m.output("channels", [3, 5], "int8", scale=0.1, zero=-9), "FullyConnectedOptions", version=4,
         fusedActivationFunction=1)
    y = m.const(r.integers(-127, 128, (8, 4)).astype(np.int8), scale=0.03, zero=2)
    m.op("BATCH_MATMUL", [x, y], m.output("product", [3, 4], "int8", scale=0.2, zero=1), "BatchMatMulOptions", version=2)
    return m, steps(r, (3, 8), "int8")


def cells_quantized(r, dtype, zero):
    m = Model()
    scale = 0.001 if dtype == "int16" else 0.07
    z = 0 if dtype == "int16" else zero
    x, y = m.input("x", [2, 3, 4, 5], dtype, scale=scale, zero=z), m.input("y", [4, 5], dtype, scale=scale / 2, zero=z)
    shape = [2, 3, 4, 5]
    v = {"int8": 2, "int16": 3, "uint8": 1}[dtype]
    for op, options, by in [("ADD", "AddOptions", 1.6), ("SUB", "SubOptions", 1.6), ("MUL", "MulOptions", 90 if dtype == "int16" else 5)]:
        m.op(op, [x, y], m.output(op, shape, dtype, scale=scale * by if op != "MUL" or dtype != "int16" else scale * 16, zero=z), options, version=v)
        m.op(op, [x, y], m.output(op + "_relu", shape, dtype, scale=scale * by if op != "MUL" or dtype != "int16" else scale * 16, zero=z), options,
             version=v, fusedActivationFunction=1)
    lo = {"int8": -128, "int16": 0, "uint8": 0}[dtype]
    m.op("LOGISTIC", [x], m.output("LOGISTIC", shape, dtype, scale=1 / 32768 if dtype == "int16" else 1 / 256, zero=lo), version=v)
    if dtype != "int16":  # of 16 bits the reference is a table, itself steps away: step_functions_16
        m.op("TANH", [x], m.output("TANH", shape, dtype, scale=1 / 128, zero=lo + 128), version=v)
        m.op("SOFTMAX", [x], m.output("SOFTMAX", shape, dtype, scale=1 / 256, zero=lo), "SoftmaxOptions", beta=1.0, version=v)
    m.op("LEAKY_RELU", [x], m.output("LEAKY_RELU", shape, dtype, scale=scale, zero=z), "LeakyReluOptions", alpha=0.2, version=2)
    m.op("QUANTIZE", [x], m.output("QUANTIZE", shape, dtype, scale=scale * 1.3, zero=z if dtype == "int16" else z + 5),
         version=2 if dtype != "int16" else 4)
    m.op("DEQUANTIZE", [x], m.output("DEQUANTIZE", shape), version={"int8": 2, "int16": 3, "uint8": 1}[dtype])
    if dtype != "int16":
        for op in ["RELU", "RELU6", "HARD_SWISH"]:
            m.op(op, [x], m.output(op, shape, dtype, scale=scale, zero=z), version=1 if op == "HARD_SWISH" else 2)
        m.op("MEAN", [x, m.const(np.int32([1, 2]))], m.output("MEAN", [2, 5], dtype, scale=scale / 2, zero=z), "ReducerOptions", version=v)
        m.op("AVERAGE_POOL_2D", [x], m.output("AVERAGE", [2, 2, 2, 5], dtype, scale=scale, zero=z), "Pool2DOptions", padding=0, strideH=2, strideW=2,
             filterHeight=2, filterWidth=3, version=v)
        m.op("MAX_POOL_2D", [x], m.output("MAX_POOL", [2, 2, 2, 5], dtype, scale=scale, zero=z), "Pool2DOptions", padding=1, strideH=1, strideW=2,
             filterHeight=2, filterWidth=2, version=v, fusedActivationFunction=1)
        m.op("RESIZE_BILINEAR", [x, m.const(np.int32([6, 8]))], m.output("RESIZE", [2, 6, 8, 5], dtype, scale=scale, zero=z), "ResizeBilinearOptions",
             halfPixelCenters=True, version=3)
        m.op("PAD", [x, m.const(np.int32([[0, 0], [1, 1], [0, 2], [0, 0]]))], m.output("PAD", [2, 5, 6, 5], dtype, scale=scale, zero=z), version=v)
        m.op("L2_NORMALIZATION", [x], m.output("L2", shape, dtype, scale=1 / 128, zero=lo + 128), "L2NormOptions", version=v)
        m.op("LESS", [x, m.const(steps(r, (5,), dtype), scale=0.05, zero=z)], m.output("LESS", shape, "bool"), version=2 if dtype == "int8" else 1)
    m.op("CONCATENATION", [x, x], m.output("CONCATENATION", [2, 3, 8, 5], dtype, scale=scale, zero=z), "ConcatenationOptions", axis=2, version=v)
    m.op("RESHAPE", [x, m.const(np.int32([6, 20]))], m.output("RESHAPE", [6, 20], dtype, scale=scale, zero=z), "ReshapeOptions")
    return m, steps(r, (2, 3, 4, 5), dtype), steps(r, (4, 5), dtype)


@model
def step_cells(r):
    return cells_quantized(r, "int8", -6)


@model
def step_cells_u8(r):
    return cells_quantized(r, "uint8", 121)


@model
def step_cells_16(r):
    return cells_quantized(r, "int16", 0)


@model
def step_functions_16(r):
    """Results in exact arithmetic, rounded once."""
    m = Model()
    q = steps(r, (6, 5), "int16")
    x = m.input("x", [6, 5], "int16", scale=0.0002)
    for op, name in [("TANH", "tanh"), ("SOFTMAX", "softmax")]:
        m.op(op, [x], m.output(name, [6, 5], "int16", scale=1 / 32768), "SoftmaxOptions" if op == "SOFTMAX" else None, version=3,
             **({"beta": 1.0} if op == "SOFTMAX" else {}))
    v = q * float(np.float32(0.0002))
    e = np.exp(v - v.max(-1, keepdims=True))
    exact = {"tanh": np.tanh(v), "softmax": e / e.sum(-1, keepdims=True)}
    m.results = {k: np.clip(np.rint(y * 32768), -32768, 32767).astype(np.int16) for k, y in exact.items()}
    return m, q


@model
def run_half_weights(r):
    m = Model()
    x = m.input("x", [1, 4, 4, 3])
    w = m.tensor("w", [5, 3, 3, 3])
    m.op("DEQUANTIZE", [m.const(f32(r, 5, 3, 3, 3).astype(np.float16))], w, "DequantizeOptions", version=3)
    m.op("CONV_2D", [x, w, m.const(f32(r, 5))], m.output("y", [1, 4, 4, 5]), "Conv2DOptions", padding=0, strideH=1, strideW=1)
    return m, f32(r, 1, 4, 4, 3)


@model
def run_signature(r):
    """Names are those of the signature; the batch is open."""
    m = Model()
    x = m.input("serving_default_picture:0", [1, 6], signature=[-1, 6])
    y = m.output("StatefulPartitionedCall:0", [1, 4], signature=[-1, 4])
    m.op("FULLY_CONNECTED", [x, m.const(f32(r, 4, 6)), -1], y, "FullyConnectedOptions")
    m.signature({"picture": x}, {"digit": y})
    return m, f32(r, 1, 6)


@model
def run_where(r):
    m = Model()
    x = m.input("x", [3, 4])
    c = m.tensor("c", [3, 4], "bool")
    m.op("GREATER", [x, m.const(np.float32(0))], c)
    y = m.output("y", [0, 2], "int64", signature=[-1, 2])
    m.op("WHERE", [c], y)
    m.op("GATHER_ND", [x, y], m.output("z", [0], signature=[-1]))
    return m, f32(r, 3, 4)


# ---- weights of another form ----

@model
def run_dynamic_range(r):
    """Weights of 8 bits in floats; the reference rounds the data, too."""
    m = Model()
    x = m.input("x", [3, 8])
    w = r.integers(-127, 128, (5, 8)).astype(np.int8)
    q = f32(r, 3, 8)
    m.op("FULLY_CONNECTED", [x, m.const(w, scale=0.01), m.const(np.zeros(5, np.float32))], m.output("y", [3, 5]), "FullyConnectedOptions",
         version=3)
    m.results = {"y": (q.astype(np.float64) @ (w * float(np.float32(0.01))).T).astype(np.float32)}
    return m, q


def sparse(m, name, w, block=None):
    """w of two dimensions by rows of columns that are not 0, in blocks of `block` columns."""
    rows, columns = w.shape
    at, cells, segments = [], [], [0]
    size = block or 1
    for row in w:
        for j in range(0, columns, size):
            if row[j:j + size].any():
                at.append(j // size)
                cells.extend(row[j:j + size])
        segments.append(len(at))
    t = m.tensor(name, w.shape, data=np.float32(cells))

    def vector(v):
        k = S.Int32VectorT()
        k.values = v
        return k

    def level(dense=0, listed=None):
        d = S.DimensionMetadataT()
        d.format, d.denseSize = (1, 0) if listed else (0, dense)
        if listed:
            d.arraySegmentsType = d.arrayIndicesType = 1
            d.arraySegments, d.arrayIndices = vector(listed[0]), vector(listed[1])
        return d
    p = S.SparsityParametersT()
    p.traversalOrder = [0, 1, 2] if block else [0, 1]
    p.blockMap = [1] if block else []
    p.dimMetadata = [level(rows), level(listed=(segments, at))] + ([level(block)] if block else [])
    m.graph.tensors[t].sparsity = p
    return t


@model
def run_sparse(r):
    m = Model()
    x = m.input("x", [3, 8])
    q = f32(r, 3, 8)
    w = f32(r, 5, 8) * (r.random((5, 8)) < 0.3)
    v = f32(r, 5, 8) * np.repeat(r.random((5, 2)) < 0.6, 4, axis=1)
    d = m.tensor("d", [5, 8])
    m.op("DENSIFY", [sparse(m, "w", w)], d, "DensifyOptions")
    m.op("FULLY_CONNECTED", [x, d, -1], m.output("y", [3, 5]), "FullyConnectedOptions")
    m.op("FULLY_CONNECTED", [x, sparse(m, "v", v, 4), -1], m.output("z", [3, 5]), "FullyConnectedOptions", version=8)
    m.results = {"y": q @ w.astype(np.float32).T, "z": q @ v.astype(np.float32).T}
    return m, q


# ---- recurrent ----

@model
def run_lstm(r):
    m = Model()
    n, t, i, h = 2, 4, 3, 5
    x = m.input("x", [n, t, i])
    w = [m.const(f32(r, h, i)) for _ in range(4)]
    u = [m.const(f32(r, h, h)) for _ in range(4)]
    b = [m.const(f32(r, h)) for _ in range(4)]
    ins = [x, *w, *u, -1, -1, -1, *b, -1, -1, m.tensor("h", [n, h], variable=True), m.tensor("c", [n, h], variable=True), -1, -1, -1, -1]
    m.op("UNIDIRECTIONAL_SEQUENCE_LSTM", ins, m.output("y", [n, t, h]), "UnidirectionalSequenceLSTMOptions", fusedActivationFunction=4)
    return m, f32(r, n, t, i)


@model
def run_lstm_both(r):
    m = Model()
    n, t, i, h = 2, 4, 3, 5
    x = m.input("x", [t, n, i])
    ins = [x]
    for _ in range(2):
        ins += [m.const(f32(r, h, i)) for _ in range(4)] + [m.const(f32(r, h, h)) for _ in range(4)] + [-1, -1, -1]
        ins += [m.const(f32(r, h)) for _ in range(4)] + [-1, -1]
    ins += [m.tensor(f"s{k}", [n, h], variable=True) for k in range(4)] + [-1] * 9
    m.op("BIDIRECTIONAL_SEQUENCE_LSTM", ins, m.output("y", [t, n, 2 * h]), "BidirectionalSequenceLSTMOptions", fusedActivationFunction=4,
         mergeOutputs=True, timeMajor=True)
    return m, f32(r, t, n, i)


@model
def run_one_cell(r):
    """An image of one cell keeps its four dimensions."""
    m = Model()
    x = m.input("x", [1, 3, 3, 2])
    y, _ = conv(m, r, "a", x, [1, 3, 3, 2], 1, (3, 3), padding=1, to=m.tensor)
    z = m.tensor("z", [1, 1, 1, 1])
    m.op("LOGISTIC", [y], z)
    m.op("ADD", [z, m.const(np.float32([[[[2]]]]))], m.output("out", [1, 1, 1, 1]), "AddOptions")
    return m, f32(r, 1, 3, 3, 2)


@model
def run_rnn(r):
    m = Model()
    n, t, i, h = 2, 4, 3, 5
    x = m.input("x", [t, n, i])
    ins = [x, m.const(f32(r, h, i)), m.const(f32(r, h, h)), m.const(f32(r, h)), m.tensor("h", [n, h], variable=True)]
    m.op("UNIDIRECTIONAL_SEQUENCE_RNN", ins, m.output("y", [t, n, h]), "SequenceRNNOptions", fusedActivationFunction=1, timeMajor=True)
    return m, f32(r, t, n, i)


# ---- boxes ----

@model
def run_suppression(r):
    m = Model()
    boxes, scores = m.input("boxes", [20, 4]), m.input("scores", [20])
    same = [m.const(np.int32(6)), m.const(np.float32(0.3)), m.const(np.float32(0.2))]
    m.op("NON_MAX_SUPPRESSION_V4", [boxes, scores, *same], [m.output("at", [6], "int32"), m.output("count", [], "int32")])
    m.op("NON_MAX_SUPPRESSION_V5", [boxes, scores, *same, m.const(np.float32(0))],
         [m.output("at5", [6], "int32"), m.output("scores5", [6]), m.output("count5", [], "int32")])
    corner = f32(r, 20, 2, lo=0, hi=4)
    return m, np.concatenate([corner, corner + f32(r, 20, 2, lo=1, hi=2)], 1), f32(r, 20, lo=0, hi=1)


@model
def run_detection(r):
    from flatbuffers import flexbuffers
    m = Model()
    boxes, scores = m.input("boxes", [1, 12, 4]), m.input("scores", [1, 12, 4])
    anchors = np.concatenate([f32(r, 12, 2, lo=0, hi=1), f32(r, 12, 2, lo=0.2, hi=0.4)], 1)
    b = flexbuffers.Builder()
    with b.Map():
        for key, v in dict(max_detections=5, max_classes_per_detection=1, detections_per_class=100, num_classes=3).items():
            b.Int(key, v)
        b.Bool("use_regular_nms", False)
        for key, v in dict(nms_score_threshold=0.1, nms_iou_threshold=0.4, y_scale=10.0, x_scale=10.0, h_scale=5.0, w_scale=5.0).items():
            b.Float(key, v)
    m.op("TFLite_Detection_PostProcess", [boxes, scores, m.const(anchors)],
         [m.output("b", [1, 5, 4]), m.output("c", [1, 5]), m.output("s", [1, 5]), m.output("n", [1])], custom=bytes(b.Finish()))
    return m, f32(r, 1, 12, 4, lo=-2, hi=2), f32(r, 1, 12, 4, lo=0, hi=1)


# ---- control flow ----

@model
def run_if(r):
    m = Model()
    x, y = m.input("x", [3]), m.input("y", [3])
    total, go = m.tensor("total", []), m.tensor("go", [], "bool")
    m.op("SUM", [x, m.const(np.int32([0]))], total, "ReducerOptions")
    m.op("GREATER", [total, m.const(np.float32(0))], go)
    branches = []
    for op, options in [("ADD", "AddOptions"), ("MUL", "MulOptions")]:
        g = Graph(m, op)
        a, b = g.input("a", [3]), g.input("b", [3])
        g.op(op, [a, b], g.output("c", [3]), options)
        g.op("ABS", [a], g.output("d", [3]))
        branches.append(g.number)
    m.op("IF", [go, x, y], [m.output("c", [3]), m.output("d", [3])], "IfOptions", thenSubgraphIndex=branches[0], elseSubgraphIndex=branches[1])
    return m, f32(r, 3), f32(r, 3)


@model
def run_while(r):
    """Rounds until the state is large; one state stays as it is."""
    m = Model()
    x = m.input("x", [3])
    test, body = Graph(m, "test"), Graph(m, "body")
    s, i, k = test.input("s", [3]), test.input("i", [], "int32"), test.input("k", [1], "int32")
    large, few = test.tensor("large", [], "bool"), test.tensor("few", [], "bool")
    most = test.tensor("most", [])
    test.op("REDUCE_MAX", [s, test.const(np.int32([0]))], most, "ReducerOptions")
    test.op("LESS", [most, test.const(np.float32(50))], large)
    test.op("LESS", [i, test.const(np.int32(20))], few)
    test.op("LOGICAL_AND", [large, few], test.output("go", [], "bool"))
    s, i, k = body.input("s", [3]), body.input("i", [], "int32"), body.input("k", [1], "int32")
    flat, t = body.tensor("flat", [3]), body.tensor("t", [3])
    body.op("RESHAPE", [s, k], flat)
    body.op("ADD", [flat, flat], t, "AddOptions")
    body.op("ADD", [t, body.const(np.float32(1))], body.output("s1", [3]), "AddOptions")
    body.op("ADD", [i, body.const(np.int32(1))], body.output("i1", [], "int32"), "AddOptions")
    body.graph.outputs.append(k)
    m.op("WHILE", [x, m.const(np.int32(0)), m.const(np.int32([3]))],
         [m.output("y", [3]), m.output("rounds", [], "int32"), m.output("k", [1], "int32")], "WhileOptions", condSubgraphIndex=test.number,
         bodySubgraphIndex=body.number)
    return m, f32(r, 3, lo=0, hi=2)


@model
def run_variables(r):
    m = Model()
    x = m.input("x", [3])
    once = Graph(m, "once")
    h = once.tensor("h", [], "resource")
    once.op("VAR_HANDLE", [], h, "VarHandleOptions", sharedName="w", container="")
    once.op("ASSIGN_VARIABLE", [h, once.const(f32(r, 3))], [], "AssignVariableOptions")
    m.op("CALL_ONCE", [], [], "CallOnceOptions", initSubgraphIndex=once.number)
    h, w = m.tensor("h", [], "resource"), m.tensor("w", [3])
    m.op("VAR_HANDLE", [], h, "VarHandleOptions", sharedName="w", container="")
    m.op("READ_VARIABLE", [h], w, "ReadVariableOptions")
    m.op("MUL", [x, w], m.output("y", [3]), "MulOptions")
    return m, f32(r, 3)


def main():
    for name in sys.argv[1:] or MODELS:
        m, *feeds = MODELS[name](rng_of(name))
        try:
            m.record(name, *feeds)
        except Exception as e:  # pylint: disable=broad-except
            print(f"{name}: {e}")


main()
