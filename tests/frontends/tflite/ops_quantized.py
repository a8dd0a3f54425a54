"""Quantized values, and weights of another form than floats."""
import numpy as np

from cases import f32, model
from make_model import Model, S

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


def quantized_transpose_convs(r, dtype, zero, scale, out, versions):
    m = Model()
    x = m.input("x", [1, 5, 4, 6], dtype, scale=scale, zero=zero)
    for name, size, stride, padding in [("same", [10, 8], 2, 0), ("valid", [11, 9], 2, 1), ("bias", [5, 4], 1, 0)]:
        shape, each = [1, *size, 4], dtype != "uint8"
        by = r.uniform(0.01, 0.03, 4 if each else 1).astype(np.float32)
        w = steps(r, (4, 3, 3, 6), "int8" if each else dtype)
        ins = [m.const(np.int32(shape)), m.const(np.maximum(w, -127) if each else w, scale=by, zero=0 if each else 120), x]
        if name == "bias":
            ins.append(m.const(r.integers(-900, 900, 4).astype(np.int64 if dtype == "int16" else np.int32), scale=np.float32(scale) * by))
        m.op("TRANSPOSE_CONV", ins, m.output(name, shape, dtype, scale=out, zero=zero), "TransposeConvOptions", padding=padding, strideH=stride,
             strideW=stride, version=versions[name == "bias"])
    return m, steps(r, (1, 5, 4, 6), dtype)


@model
def step_transpose_conv(r):
    return quantized_transpose_convs(r, "int8", -7, 0.05, 0.2, (2, 3))


@model
def step_transpose_conv_u8(r):
    return quantized_transpose_convs(r, "uint8", 121, 0.05, 0.2, (1, 3))


@model
def step_transpose_conv_16(r):
    return quantized_transpose_convs(r, "int16", 0, 0.0002, 0.001, (2, 3))


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
    m.op("BATCH_MATMUL", [x, y], m.output("sums", [3, 4], "int32", scale=0.05 * 0.03), "BatchMatMulOptions", version=2)
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
    """TANH and SOFTMAX by tables: along all that TANH can be given, of scales of 2^-12 and others; softmax behind a convolution."""
    m = Model()
    q, rows = (np.arange(-32768, 32768, 64) + r.integers(0, 64, 1024)).astype(np.int16).reshape(4, -1), steps(r, (6, 40), "int16")
    for name, scale in [("half", 2**-11), ("power", 2**-12), ("small", 0.00007), ("large", 0.003)]:
        x = m.input(name, q.shape, "int16", scale=scale)
        m.op("TANH", [x], m.output("tanh_" + name, q.shape, "int16", scale=1 / 32768), version=3)
    for name, scale, beta in [("even", 0.00002, 1.0), ("near", 0.0005, 0.5), ("apart", 0.02, 1.0)]:
        x = m.input(name, rows.shape, "int16", scale=scale)
        m.op("SOFTMAX", [x], m.output("softmax_" + name, rows.shape, "int16", scale=1 / 32768), "SoftmaxOptions", beta=beta, version=3)
    x = m.input("x", [1, 4, 3, 6], "int16", scale=0.0002)
    w = m.const(r.integers(-127, 128, (5, 3, 3, 6)).astype(np.int8), scale=np.full(5, 0.001, np.float32), axis=0)
    y = m.tensor("conv", [1, 4, 3, 5], "int16", scale=0.00006)
    b = m.const(r.integers(-900, 900, 5).astype(np.int64), scale=np.full(5, 0.0000002, np.float32))
    m.op("CONV_2D", [x, w, b], y, "Conv2DOptions", version=4, padding=0, strideH=1, strideW=1, fusedActivationFunction=0)
    m.op("SOFTMAX", [y], m.output("softmax_channels", [1, 4, 3, 5], "int16", scale=1 / 32768), "SoftmaxOptions", beta=1.0, version=3)
    return m, q, q, q, q, rows, rows, rows, steps(r, (1, 4, 3, 6), "int16")


@model
def words_cells(r):
    """Sums, products and LOGISTIC of 16 bits, to the last bit: scales of all sizes, powers of two as models of old have them."""
    m = Model()
    q, row = (np.arange(-32768, 32768, 64) + r.integers(0, 64, 1024)).astype(np.int16).reshape(4, -1), steps(r, (256,), "int16")
    some, feeds = steps(r, (4, 256), "int16"), []

    def pair(op, name, sx, sy, out, options, shape=q.shape, **fields):
        x, y = m.input(name + "_x", q.shape, "int16", scale=sx), m.input(name + "_y", shape, "int16", scale=sy)
        feeds.extend([q, some if shape == q.shape else row])
        m.op(op, [x, y], m.output(name, q.shape, "int16", scale=out), options, **fields)
    for op, v in [("ADD", 4), ("SUB", 5)]:
        for name, sx, sy, out, how in [("wide", 0.001, 0.0003, 0.0009, {}), ("narrow", 0.0001, 0.0002, 0.00005, dict(fusedActivationFunction=1)),
                                       ("powers", 2.0**-12, 2.0**-15, 2.0**-12, {}), ("same", 2.0**-13, 2.0**-13, 2.0**-13, {}),
                                       ("others", 2.0**-12, 2.0**-15, 2.0**-12, dict(potScaleInt16=False, fusedActivationFunction=3))]:
            pair(op, f"{op}_{name}", sx, sy, out, op.title() + "Options", version=v, **dict(dict(potScaleInt16=True), **how))
        pair(op, op + "_row", 0.0007, 0.0004, 0.0008, op.title() + "Options", (256,), version=v)
    for name, out, how in [("small", 0.00001, {}), ("large", 0.003, {}), ("relu6", 0.0005, dict(fusedActivationFunction=3))]:
        pair("MUL", "MUL_" + name, 0.001, 0.0003, out, "MulOptions", version=4, **how)
    for name, scale in [("half", 2**-11), ("power", 2**-12), ("other", 2**-13), ("small", 0.00007), ("large", 0.003)]:
        x = m.input(name, q.shape, "int16", scale=scale)
        feeds.append(q)
        m.op("LOGISTIC", [x], m.output("logistic_" + name, q.shape, "int16", scale=1 / 32768), version=3)
    return m, *feeds


def dense_16(m, r, x, rows, k, units, name, bias=True, act=0):
    """Of weights up to 127, some all 127 and all -127, whose sums do not fit 32 bits if k is large."""
    scale = np.float32(0.01)
    w = r.integers(-127, 128, (units, k)).astype(np.int8)
    w[0], w[1] = 127, -127
    b = m.const(r.integers(-2**20, 2**20, units).astype(np.int64), scale=np.float32(0.0002) * scale) if bias else -1
    y = m.output(name, [rows, units], "int16", scale=0.0002 * 0.01 * k**0.5 * 80, zero=0)
    m.op("FULLY_CONNECTED", [x, m.const(w, scale=scale), b], y, "FullyConnectedOptions", version=7, fusedActivationFunction=act)


@model
def step_dense_16(r):
    """Sums in 32 and in 64 bits."""
    m = Model()
    narrow, wide = m.input("narrow", [3, 40], "int16", scale=0.0002), m.input("wide", [3, 1600], "int16", scale=0.0002)
    dense_16(m, r, narrow, 3, 40, 5, "dense")
    dense_16(m, r, narrow, 3, 40, 6, "relu", False, 1)
    dense_16(m, r, wide, 3, 1600, 5, "sum")
    x = steps(r, (3, 1600), "int16")
    x[0], x[1] = 32767, -32768
    return m, steps(r, (3, 40), "int16"), x


@model
def step_convs_16(r):
    """Windows of 1, of many channels, of strides; in a row."""
    m = Model()
    x = m.input("x", [1, 7, 6, 64], "int16", scale=0.0002)

    def conv(op, x, cin, cout, shape, kernel, name, out_scale, act=0, make=m.output, **how):
        k = (cout, *kernel, cin) if op == "CONV_2D" else (1, *kernel, cout)
        scale = r.uniform(0.01, 0.03, cout).astype(np.float32)
        w = m.const(r.integers(-127, 128, k).astype(np.int8), scale=scale, axis=0 if op == "CONV_2D" else 3)
        b = m.const(r.integers(-2**18, 2**18, cout).astype(np.int64), scale=np.float32(m.graph.tensors[x].quantization.scale[0]) * scale)
        y = make(name, shape, "int16", scale=out_scale, zero=0)
        more = dict(depthMultiplier=1) if op != "CONV_2D" else {}
        m.op(op, [x, w, b], y, "Conv2DOptions" if op == "CONV_2D" else "DepthwiseConv2DOptions", version=4 if op == "CONV_2D" else 5,
             fusedActivationFunction=act, **dict(dict(padding=0, strideH=1, strideW=1), **how), **more)
        return y
    y = conv("CONV_2D", x, 64, 16, [1, 7, 6, 16], (3, 3), "wide", 0.004, 1, m.tensor)
    y = conv("DEPTHWISE_CONV_2D", y, 16, 16, [1, 4, 3, 16], (3, 3), "depth", 0.008, 3, m.tensor, strideH=2, strideW=2)
    conv("CONV_2D", y, 16, 24, [1, 4, 3, 24], (1, 1), "point", 0.01)
    conv("CONV_2D", x, 64, 8, [1, 3, 2, 8], (3, 3), "dilated", 0.004, padding=1, dilationHFactor=2, dilationWFactor=2)
    conv("CONV_2D", x, 64, 8, [1, 4, 3, 8], (1, 1), "strided", 0.002, strideH=2, strideW=2)
    return m, steps(r, (1, 7, 6, 64), "int16")


@model
def step_convs_wide_16(r):
    """Sums that 32 bits do not hold: of slices of the channels, of which the last is smaller."""
    m = Model()
    q = steps(r, (1, 5, 4, 150), "int16")
    x = m.input("x", q.shape, "int16", scale=0.0002)

    def conv(cin, kernel, top, name, image):
        w = r.integers(-top, top + 1, (3, *kernel, cin)).astype(np.int8)
        w[0], w[1] = top, -top
        b = m.const(r.integers(-2**30, 2**30, 3).astype(np.int64), scale=np.float32(0.0002) * np.float32(0.01))
        m.op("CONV_2D", [image, m.const(w, scale=np.full(3, 0.01, np.float32), axis=0), b],
             m.output(name, [1, 5, 4, 3], "int16", scale=0.0002 * 0.01 * (w[0].size)**0.5 * 80), "Conv2DOptions", version=4, padding=0, strideH=1,
             strideW=1, fusedActivationFunction=0)
    conv(150, (3, 3), 127, "wide", x)
    conv(150, (5, 5), 60, "wider", x)
    q[0, :, :, :100] = 32767
    return m, q


@model
def step_layers_16(r):
    """Pools, means, borders and the like."""
    m = Model()
    shape, scale = [2, 3, 4, 5], 0.001
    x, y = m.input("x", shape, "int16", scale=scale), m.input("y", shape, "int16", scale=scale)

    def op(name, ins, to, options=None, by=scale, version=3, key=None, **fields):
        m.op(name, ins, m.output(key or name, to, "int16", scale=by), options, version=version, **fields)
    op("AVERAGE_POOL_2D", [x], [2, 2, 2, 5], "Pool2DOptions", padding=0, strideH=2, strideW=2, filterHeight=2, filterWidth=3)
    op("MAX_POOL_2D", [x], [2, 2, 2, 5], "Pool2DOptions", padding=1, strideH=1, strideW=2, filterHeight=2, filterWidth=2, fusedActivationFunction=1)
    op("MEAN", [x, m.const(np.int32([1, 2]))], [2, 5], "ReducerOptions", scale / 2)
    op("MEAN", [x, m.const(np.int32([3]))], [2, 3, 4], "ReducerOptions", key="MEAN_rows")
    op("REDUCE_MAX", [x, m.const(np.int32([3]))], [2, 3, 4], "ReducerOptions")
    op("REDUCE_MIN", [x, m.const(np.int32([2]))], [2, 3, 5], "ReducerOptions")
    op("RELU", [x], shape)
    op("RELU6", [x], shape)
    op("ABS", [x], shape)
    op("PAD", [x, m.const(np.int32([[0, 0], [1, 1], [0, 2], [0, 0]]))], [2, 5, 6, 5])
    op("MAXIMUM", [x, y], shape)
    op("MINIMUM", [x, y], shape)
    op("TRANSPOSE", [x, m.const(np.int32([0, 3, 1, 2]))], [2, 5, 3, 4], version=4)
    op("STRIDED_SLICE", [x, *(m.const(np.int32(v)) for v in ([0, 0, 1, 0], [2, 3, 4, 5], [1, 2, 1, 1]))], [2, 2, 3, 5], "StridedSliceOptions",
       version=4)
    op("SLICE", [x, m.const(np.int32([0, 1, 0, 2])), m.const(np.int32([2, 2, 3, 3]))], [2, 2, 3, 3], version=4)
    op("GATHER", [x, m.const(np.int32([2, 0]))], [2, 3, 2, 5], "GatherOptions", axis=2, version=4)
    op("PACK", [x, y], [2, *shape], "PackOptions", axis=0, valuesCount=2)
    op("RESIZE_BILINEAR", [x, m.const(np.int32([6, 8]))], [2, 6, 8, 5], "ResizeBilinearOptions", halfPixelCenters=True)
    op("RESIZE_NEAREST_NEIGHBOR", [x, m.const(np.int32([6, 8]))], [2, 6, 8, 5], "ResizeNearestNeighborOptions", halfPixelCenters=True)
    op("BATCH_MATMUL", [x, m.const(steps(r, (2, 3, 5, 6), "int16"), scale=0.0005)], [2, 3, 4, 6], "BatchMatMulOptions", scale * 16, version=3)
    return m, steps(r, shape, "int16"), steps(r, shape, "int16")


def attention(r, dtype, scale, zeros, scores, version):
    """Queries by keys, and what the scores' softmax takes of values: products of two activations, turned in all ways."""
    m = Model()
    (zq, zk), shape = zeros, [2, 3, 7, 6]
    one = 1 / 32768 if dtype == "int16" else 1 / 256
    lo = 0 if dtype == "int16" else np.iinfo(dtype).min
    q = m.input("q", shape, dtype, scale=scale, zero=zq)
    k, v = m.input("k", shape, dtype, scale=scale / 2, zero=zk), m.input("v", [2, 3, 6, 7], dtype, scale=scale * 2, zero=zk)
    row = m.input("row", [6, 5], dtype, scale=scale, zero=zk)

    def product(a, b, name, shape, by, zero, **turned):
        m.op("BATCH_MATMUL", [a, b], m.output(name, shape, dtype, scale=by, zero=zero), "BatchMatMulOptions", version=version, **turned)
    p = m.input("p", [2, 3, 7, 7], dtype, scale=one, zero=lo)
    product(q, k, "scores", [2, 3, 7, 7], scores, zq, adjY=True)
    product(p, v, "mixed", [2, 3, 7, 6], scale * 2, zk, adjY=True)
    product(q, v, "plain", [2, 3, 7, 7], scores, zk)
    product(k, q, "turned", [2, 3, 6, 6], scores, zk, adjX=True)
    product(q, row, "row", [2, 3, 7, 5], scores * 2, 0 if dtype == "int16" else 5)
    return m, *(steps(r, t, dtype) for t in (shape, shape, [2, 3, 6, 7], [6, 5])), np.abs(steps(r, [2, 3, 7, 7], dtype) // 4)


@model
def step_attention(r):
    return attention(r, "int8", 0.03, (-5, 9), 0.1, 2)


@model
def step_attention_16(r):
    return attention(r, "int16", 0.0002, (0, 0), 0.001, 3)


@model
def run_half_weights(r):
    m = Model()
    x = m.input("x", [1, 4, 4, 3])
    w = m.tensor("w", [5, 3, 3, 3])
    m.op("DEQUANTIZE", [m.const(f32(r, 5, 3, 3, 3).astype(np.float16))], w, "DequantizeOptions", version=3)
    m.op("CONV_2D", [x, w, m.const(f32(r, 5))], m.output("y", [1, 4, 4, 5]), "Conv2DOptions", padding=0, strideH=1, strideW=1)
    return m, f32(r, 1, 4, 4, 3)


# ---- weights of another form ----

@model
def run_dynamic_range(r):
    """Weights of 8 bits and data in floats, which are rounded row by row."""
    m = Model()
    x = m.input("x", [5, 40])
    w = m.const(r.integers(-127, 128, (6, 40)).astype(np.int8), scale=0.01)
    each = m.const(r.integers(-127, 128, (6, 40)).astype(np.int8), scale=r.uniform(0.001, 0.02, 6))
    b = m.const(f32(r, 6))
    for name, ins, fields in (("symmetric", [x, w, b], {}), ("asymmetric", [x, w, -1], dict(asymmetricQuantizeInputs=True)), ("channels", [x, each, b], {}),
                              ("relu", [x, each, b], dict(asymmetricQuantizeInputs=True, fusedActivationFunction=1))):
        m.op("FULLY_CONNECTED", ins, m.output(name, [5, 6]), "FullyConnectedOptions", version=9, **fields)
    q = f32(r, 5, 40)
    q[1] += 1.5
    q[2] -= 4
    q[3] = 0
    q[4] = np.abs(q[4])
    return m, q


@model
def run_dynamic_range_images(r):
    """The same of convolutions, which round image by image."""
    m = Model()
    x, y = m.input("x", [2, 7, 6, 4]), m.input("y", [2, 7, 6, 4])

    def op(name, of, kernel, to, each, kind="CONV_2D", **fields):
        channels = to[3]
        scale = r.uniform(0.001, 0.02, channels) if each else 0.01
        w = m.const(r.integers(-127, 128, kernel).astype(np.int8), scale=scale, axis=0 if kind == "CONV_2D" else 3)
        options = "Conv2DOptions" if kind == "CONV_2D" else "DepthwiseConv2DOptions"
        m.op(kind, [of, w, m.const(f32(r, channels))], m.output(name, to, "float32"), options, version=5 if kind == "CONV_2D" else 6, **fields)
    one = dict(strideH=1, strideW=1)
    op("tensor", x, (5, 3, 3, 4), [2, 7, 6, 5], False, padding=0, fusedActivationFunction=1, **one)
    op("tensor_valid", y, (5, 3, 2, 4), [2, 5, 5, 5], False, padding=1, **one)
    op("channels", x, (5, 3, 3, 4), [2, 7, 6, 5], True, padding=0, **one)
    op("channels_apart", y, (5, 3, 3, 4), [2, 4, 3, 5], True, padding=0, strideH=2, strideW=2, fusedActivationFunction=3)
    op("channels_valid", y, (6, 2, 3, 4), [2, 6, 4, 6], True, padding=1, **one)
    op("groups", x, (6, 3, 3, 2), [2, 7, 6, 6], True, padding=0, **one)
    op("depthwise", x, (1, 3, 3, 8), [2, 7, 6, 8], True, "DEPTHWISE_CONV_2D", padding=0, depthMultiplier=2, **one)
    op("depthwise_far", y, (1, 3, 3, 4), [2, 7, 6, 4], True, "DEPTHWISE_CONV_2D", padding=0, depthMultiplier=1, dilationHFactor=2, dilationWFactor=2, **one)
    q = f32(r, 2, 7, 6, 4)
    q[1] += 2
    return m, q, np.abs(f32(r, 2, 7, 6, 4, hi=3))


@model
def run_dynamic_range_products(r):
    """Products of matrices, whose rows are rounded, and transposed convolutions, of which images are."""
    m = Model()
    x, y, z = m.input("x", [3, 5, 12]), m.input("y", [5, 12]), m.input("z", [2, 5, 4, 6])

    def product(name, of, shape, to, each, **fields):
        units = 1 if fields.get("adjY") else 2
        scale, axis = (r.uniform(0.001, 0.02, shape[units - 3]), len(shape) + units - 3) if each else (0.01, 0)
        w = m.const(r.integers(-127, 128, shape).astype(np.int8), scale=scale, axis=axis)
        m.op("BATCH_MATMUL", [of, w], m.output(name, to), "BatchMatMulOptions", version=4, **fields)
    product("alone", x, (12, 7), [3, 5, 7], False)
    product("columns", x, (12, 7), [3, 5, 7], True, asymmetricQuantizeInputs=True)
    product("batches", x, (3, 12, 7), [3, 5, 7], False, asymmetricQuantizeInputs=True)
    product("one", y, (3, 7, 12), [3, 5, 7], False, adjY=True)
    product("transposed", x, (7, 12), [3, 5, 7], True, adjY=True, asymmetricQuantizeInputs=True)
    product("rows", y, (5, 7), [12, 7], False, adjX=True)
    product("both", x, (7, 5), [3, 12, 7], False, adjX=True, adjY=True, asymmetricQuantizeInputs=True)

    def transposed(name, size, stride, padding, each, bias, act=0):
        shape = [2, *size, 4]
        w = m.const(r.integers(-127, 128, (4, 3, 3, 6)).astype(np.int8), scale=r.uniform(0.001, 0.02, 4) if each else 0.01)
        ins = [m.const(np.int32(shape)), w, z] + ([m.const(f32(r, 4))] if bias else [])
        m.op("TRANSPOSE_CONV", ins, m.output(name, shape), "TransposeConvOptions", padding=padding, strideH=stride, strideW=stride, version=4 if act else 3,
             fusedActivationFunction=act)
    transposed("up", (10, 8), 2, 0, True, True)
    transposed("valid", (11, 9), 2, 1, False, False)
    transposed("relu", (5, 4), 1, 0, True, True, 1)
    q, p = f32(r, 3, 5, 12), f32(r, 2, 5, 4, 6)
    q[1] += 1.5
    q[2, 1:3] -= 4
    p[1] += 2
    return m, q, f32(r, 5, 12, lo=-3), p


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


# ---- corners of products ----

def product_corners(r, dtype):
    """Convolutions and matrix products of all activations, of zero points at the ends, with results that leave their range."""
    m, wide, bytes_ = Model(), dtype == "int16", dtype == "uint8"
    i, reach = np.iinfo(dtype), 18000 if wide else 74
    feeds, of_weights = [], "uint8" if bytes_ else "int8"

    def zero(at):
        return 0 if wide else (i.min, i.max, i.min + 11, (i.min + i.max + 1) // 2)[at % 4]

    def product(op, name, shape, w, to, cells, k, act, bias=True, axis=0, options=None, version=3, **fields):
        """cells: that a result sums up; the result's range is a part of theirs, or larger."""
        units, each = w[axis], not bytes_ and k % 3 != 2 and op != "FULLY_CONNECTED"
        sx = 0.02 if not wide else 0.0001
        sw = r.uniform(0.002, 0.04, units if each else 1).astype(np.float32)
        sums = sx * sw.mean() * reach * 74 * cells**0.5
        x = m.input(name + "_x", shape, dtype, scale=sx, zero=zero(k))
        weights = m.const(np.maximum(steps(r, w, of_weights), 0 if bytes_ else -127), scale=sw, zero=zero(k + 1) if bytes_ else 0, axis=axis)
        b = [m.const((r.uniform(-1, 1, units) * sums / (sx * sw.mean())).astype(np.int64 if wide else np.int32), scale=np.float32(sx) * sw)] if bias else []
        y = m.output(name, to, dtype, scale=sums / (32768 if wide else 128) * (0.2, 0.6, 1.7)[k % 3], zero=zero(k + 2))
        ins = [m.const(np.int32(to)), weights, x] if op == "TRANSPOSE_CONV" else [x, weights]
        m.op(op, ins + b, y, options, version=version, fusedActivationFunction=act, **fields)
        feeds.append(steps(r, shape, dtype))
    for k in range(6):
        act, stride = (0, 1, 3, 2, 0, 1)[k], 1 + k % 2
        side = 7 if stride == 1 else 4
        product("CONV_2D", f"conv{k}", [1, 7, 7, 5], (6, 3, 3, 5), [1, side, side, 6], 45, k, act, options="Conv2DOptions", version=4 if wide else 3, padding=0,
                strideH=stride, strideW=stride)
        product("DEPTHWISE_CONV_2D", f"depthwise{k}", [2, 7, 6, 4], (1, 3, 2, 8), [2, 5, 5, 8], 6, k + 1, act, axis=3, options="DepthwiseConv2DOptions", version=5 if wide else 3,
                padding=1, strideH=1, strideW=1, depthMultiplier=2)
        product("FULLY_CONNECTED", f"dense{k}", [3, 50], (9, 50), [3, 9], 50, k + 2, act, options="FullyConnectedOptions", version=7 if wide else 4 - 3 * bytes_)
        product("TRANSPOSE_CONV", f"transposed{k}", [1, 4, 3, 5], (6, 3, 3, 5), [1, 8, 6, 6], 11, k, act, bias=k % 2 == 0, options="TransposeConvOptions",
                version=4 if act else 3, padding=0, strideH=2, strideW=2)
    return m, *feeds


@model
def step_products_8(r):
    return product_corners(r, "int8")


@model
def step_products_u8(r):
    return product_corners(r, "uint8")


@model
def step_products_16(r):
    return product_corners(r, "int16")
