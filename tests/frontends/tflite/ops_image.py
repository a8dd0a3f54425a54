"""Images."""
import numpy as np

from cases import f32, model
from make_model import Model

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
def run_transpose_conv_bias(r):
    m = Model()
    m.delegated = True
    x = m.input("x", [1, 5, 4, 3])
    for name, size, kernel, strides, padding in [("twice", [9, 8], (2, 2), (2, 2), 1), ("same", [9, 10], (4, 5), (2, 3), 1),
                                                 ("valid", [11, 5], (3, 2), (2, 1), 2), ("apart", [13, 11], (1, 2), (3, 3), 2)]:
        m.op("Convolution2DTransposeBias", [x, m.const(f32(r, 2, *kernel, 3)), m.const(f32(r, 2))], m.output(name, [1, *size, 2]),
             custom=np.int32([padding, strides[1], strides[0]]).tobytes())
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
        for size in [(8, 10), (7, 3), (41, 3), (75, 3)]:  # the last two: positions that f32 rounds to another cell
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
def run_volume(r):
    m = Model()
    x = m.input("x", [2, 5, 6, 4, 3])
    for name, size, padding, stride, act in [("same", [5, 6, 4], 0, 1, 1), ("valid", [3, 4, 2], 1, 1, 0), ("stride", [3, 3, 2], 0, 2, 3)]:
        m.op("CONV_3D", [x, m.const(f32(r, 3, 3, 3, 3, 4)), m.const(f32(r, 4))], m.output(name, [2, *size, 4]), "Conv3DOptions", padding=padding,
             strideD=stride, strideH=stride, strideW=stride, fusedActivationFunction=act)
    for name, size, padding, stride in [("up", [10, 12, 8], 0, 2), ("up_valid", [7, 8, 6], 1, 1)]:
        shape = [2, *size, 2]
        m.op("CONV_3D_TRANSPOSE", [m.const(np.int32(shape)), m.const(f32(r, 3, 3, 3, 2, 3)), x, m.const(f32(r, 2))], m.output(name, shape),
             "Conv3DOptions", padding=padding, strideD=stride, strideH=stride, strideW=stride)
    return m, f32(r, 2, 5, 6, 4, 3)


@model
def run_padded_channels(r):
    """Residual blocks that grow by padding their channels, as detectors of faces do."""
    m = Model()
    x = m.input("x", [1, 16, 16, 8])
    y, shape = conv(m, r, "in", x, [1, 16, 16, 8], 24, (3, 3), act=1, to=m.tensor)
    for k, channels in enumerate([32, 40, 48]):
        z, to = conv(m, r, f"conv{k}", y, shape, channels, (3, 3), to=m.tensor)
        p = m.tensor(f"pad{k}", to)
        m.op("PAD", [y, m.const(np.int32([[0, 0], [0, 0], [0, 0], [0, channels - shape[3]]]))], p, "PadOptions")
        y, shape = m.tensor(f"add{k}", to), to
        m.op("ADD", [p, z], y, "AddOptions", fusedActivationFunction=1)
    m.op("MEAN", [y, m.const(np.int32([1, 2]))], m.output("mean", [1, 48]), "ReducerOptions")
    return m, f32(r, 1, 16, 16, 8)
