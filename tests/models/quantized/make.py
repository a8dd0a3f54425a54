#!/usr/bin/env python3
"""Writes the quantized models of these tests: make.py (needs onnx, numpy, onnxruntime).

NAME.onnx with NAME.in.npz (random) and NAME.out.npz (ONNX Runtime's results).  All outputs are
8-bit integers or sums of products in 32 bits, so that quantized.sh can ask for equal steps.  Scales are
no round numbers: with 0.05 and 0.06, every sixth number would be a tie.  All is committed; tests
need no Python.
"""
import os

import numpy as np
import onnx
import onnxruntime as ort
from onnx import TensorProto as T, helper as h, numpy_helper as nh

HERE = os.path.dirname(os.path.abspath(__file__))
TYPES = {np.dtype(np.float32): T.FLOAT, np.dtype(np.uint8): T.UINT8, np.dtype(np.int8): T.INT8,
         np.dtype(np.int32): T.INT32, np.dtype(np.int64): T.INT64}
rng = np.random.default_rng(11)
MS = "com.microsoft"


class Net:
    """A graph under construction; values are names, arrays become initializers."""

    def __init__(self, act=np.uint8):
        self.nodes, self.inits, self.inputs, self.feeds, self.outputs = [], [], [], {}, []
        self.act, self.count = act, 0

    def name(self, value):
        if isinstance(value, str):
            return value
        self.count += 1
        self.inits.append(nh.from_array(np.asarray(value), f"k{self.count}"))
        return f"k{self.count}"

    def op(self, kind, *ins, n=1, **attrs):
        self.count += 1
        outs = [f"v{self.count}_{i}" for i in range(n)]
        self.nodes.append(h.make_node(kind, [self.name(i) for i in ins], outs, name=f"n{self.count}", **attrs))
        return outs[0] if n == 1 else outs

    def input(self, array):
        name = f"x{len(self.inputs)}"
        self.inputs.append(h.make_tensor_value_info(name, TYPES[array.dtype], array.shape))
        self.feeds[name] = array
        return name

    def output(self, value, dtype, rank):
        self.nodes.append(h.make_node("Identity", [value], [f"y{len(self.outputs)}"]))
        self.outputs.append(h.make_tensor_value_info(f"y{len(self.outputs)}", TYPES[np.dtype(dtype)],
                                                     [f"d{len(self.outputs)}_{i}" for i in range(rank)]))

    # quantized values
    def q(self, x, scale, zero, t=None):
        return self.op("QuantizeLinear", x, np.float32(scale), (t or self.act)(zero))

    def dq(self, x, scale, zero, t=None):
        return self.op("DequantizeLinear", x, np.float32(scale), (t or self.act)(zero))

    def qdq(self, x, scale, zero):
        return self.dq(self.q(x, scale, zero), scale, zero)

    def weight(self, shape, axis=None, t=np.int8, zero=0, lo=-127, hi=127):
        """A dequantized constant, of one scale or one for each cell of the axis."""
        n = 1 if axis is None else shape[axis]
        w = rng.integers(lo, hi + 1, shape).astype(t)
        scale = rng.uniform(0.004, 0.02, n).astype(np.float32)
        z = np.full(n, zero, t)
        if axis is None:
            return self.op("DequantizeLinear", w, scale[0], z[0]), scale
        return self.op("DequantizeLinear", w, scale, z, axis=axis), scale

    def bias(self, sx, sw, n, axis=0):
        s = (np.float32(sx) * sw).astype(np.float32)
        b = rng.integers(-3000, 3000, n).astype(np.int32)
        if len(s) == 1:
            return self.op("DequantizeLinear", b, s[0], np.int32(0))
        return self.op("DequantizeLinear", b, s, np.zeros(n, np.int32), axis=0)

    def conv(self, x, sx, shape, axis=0, weight=None, **attrs):
        w, sw = self.weight(shape, axis, **(weight or {}))
        return self.op("Conv", x, w, self.bias(sx, sw, shape[0]), **attrs)

    def save(self, name, domains=()):
        graph = h.make_graph(self.nodes, "g", self.inputs, self.outputs, self.inits)
        m = h.make_model(graph, ir_version=8,
                         opset_imports=[h.make_opsetid("", 17)] + [h.make_opsetid(d, 1) for d in domains])
        path = os.path.join(HERE, name)
        onnx.save(m, path + ".onnx")
        s = ort.InferenceSession(path + ".onnx", providers=["CPUExecutionProvider"])
        outs = s.run(None, self.feeds)
        np.savez(path + ".in.npz", **self.feeds)
        np.savez(path + ".out.npz", **{o.name: v for o, v in zip(s.get_outputs(), outs)})
        for o in outs:
            assert o.dtype.kind != "f" and len(np.unique(o)) > 5, (name, o.dtype, np.unique(o))


def image(c=4, height=9, width=10):
    return rng.uniform(-2, 2, (1, c, height, width)).astype(np.float32)


def convolutions():
    n = Net()  # u8 data, i8 weights per channel, asymmetric padding, strides; relu and clip
    x = n.qdq(n.input(image(3)), 0.016, 125)
    a = n.op("Relu", n.conv(x, 0.016, (20, 3, 3, 3), pads=[1, 0, 2, 1], strides=[2, 1]))
    a = n.qdq(a, 0.02, 0)
    b = n.op("Clip", n.conv(a, 0.02, (16, 20, 1, 1)), np.float32(0), np.float32(6))
    b = n.qdq(b, 0.0235, 0)
    n.output(n.q(n.conv(b, 0.0235, (8, 16, 3, 3), axis=None, pads=[1, 1, 1, 1], dilations=[2, 1]), 0.06, 117),
             np.uint8, 4)
    n.save("conv_u8")

    n = Net(np.int8)  # i8 data, u8 weights with a zero point; depthwise, grouped
    x = n.qdq(n.input(image(16)), 0.016, -3)
    a = n.op("Relu", n.conv(x, 0.016, (16, 1, 3, 3), pads=[1, 1, 1, 1], group=16))
    a = n.qdq(a, 0.02, -20)
    b = n.conv(a, 0.02, (32, 4, 3, 3), axis=None, pads=[1, 1, 0, 0], group=4,
               weight=dict(t=np.uint8, zero=128, lo=0, hi=255))
    b = n.qdq(b, 0.1, 5)
    n.output(n.q(n.conv(b, 0.1, (16, 32, 1, 1)), 0.5, 0), np.int8, 4)
    n.save("conv_i8")

    n = Net()  # weights with a zero point that i8 cannot take: floats; per tensor; no bias
    x = n.qdq(n.input(image(8)), 0.016, 125)
    w, _ = n.weight((8, 8, 3, 3), t=np.uint8, zero=3, lo=0, hi=255)
    n.output(n.q(n.op("Conv", x, w), 0.3, 100), np.uint8, 4)
    w, _ = n.weight((8, 8, 1, 1), t=np.uint8, zero=120, lo=10, hi=240)
    n.output(n.q(n.op("Conv", x, w), 0.1, 100), np.uint8, 4)
    n.save("conv_zero")

    n = Net()  # batch normalization left behind the convolution
    x = n.qdq(n.input(image(8)), 0.016, 125)
    w, _ = n.weight((16, 8, 3, 3), 0)
    u = lambda lo, hi: rng.uniform(lo, hi, 16).astype(np.float32)
    a = n.op("BatchNormalization", n.op("Conv", x, w), u(0.5, 2) * rng.choice([-1, 1], 16).astype(np.float32),
             u(-1, 1), u(-1, 1), u(0.5, 2))
    n.output(n.q(n.op("Relu", a), 0.1, 0), np.uint8, 4)
    n.save("conv_norm")


def between():
    n = Net()  # residuals, products, other scales, values with several readers
    x = n.qdq(n.input(image(16)), 0.016, 125)
    a = n.qdq(n.conv(x, 0.016, (16, 16, 3, 3), pads=[1, 1, 1, 1]), 0.0513, 120)
    b = n.qdq(n.op("Relu", n.op("Add", a, x)), 0.03, 0)
    c = n.qdq(n.conv(b, 0.03, (16, 16, 1, 1)), 0.0617, 130)
    d = n.qdq(n.op("Mul", c, n.qdq(n.op("Sigmoid", c), 0.004, 0)), 0.0513, 20)
    e = n.qdq(n.op("Add", n.op("Add", d, b), x), 0.0617, 110)
    f = n.qdq(n.op("HardSwish", n.conv(e, 0.0617, (8, 16, 1, 1))), 0.0617, 6)
    n.output(n.q(n.op("Sub", f, np.float32(0.5)), 0.0513, 128), np.uint8, 4)
    n.save("residual")

    n = Net()  # what only moves or picks cells
    x = n.qdq(n.input(image(16, 8)), 0.016, 125)
    a = n.qdq(n.conv(x, 0.016, (16, 16, 3, 3), pads=[1, 1, 1, 1]), 0.0513, 120)
    p = n.qdq(n.op("MaxPool", a, kernel_shape=[3, 3], pads=[1, 1, 1, 1], strides=[2, 2]), 0.0513, 120)
    u = n.qdq(n.op("Resize", p, "", np.array([1, 1, 2, 2], np.float32), mode="nearest", nearest_mode="floor",
                   coordinate_transformation_mode="asymmetric"), 0.0513, 120)
    l, r = n.op("Split", u, np.array([6, 10], np.int64), n=2, axis=1)
    cat = n.qdq(n.op("Concat", n.qdq(r, 0.0513, 120), n.qdq(l, 0.0617, 100), a, axis=1), 0.0617, 110)
    s = n.qdq(n.op("Slice", cat, np.array([1], np.int64), np.array([9], np.int64), np.array([2], np.int64)), 0.0617, 110)
    pad = n.qdq(n.op("Pad", s, np.array([0, 0, 1, 1, 0, 0, 0, 2], np.int64)), 0.0617, 110)
    n.output(n.q(n.conv(pad, 0.0617, (8, 32, 3, 3)), 0.5, 110), np.uint8, 4)
    t = n.op("Transpose", n.op("Reshape", pad, np.array([1, 8, 4, -1], np.int64)), perm=[0, 3, 1, 2])
    n.output(n.q(n.op("Clip", t, np.float32(-3), np.float32(4)), 0.0617, 110), np.uint8, 4)
    n.save("moves")

    n = Net(np.int8)  # averages
    x = n.qdq(n.input(image(20, 8)), 0.016, 7)
    a = n.qdq(n.conv(x, 0.016, (20, 20, 1, 1)), 0.0513, -8)
    n.output(n.q(n.op("AveragePool", a, kernel_shape=[3, 3], pads=[1, 1, 1, 1]), 0.03, 4), np.int8, 4)
    n.output(n.q(n.op("AveragePool", a, kernel_shape=[2, 3], pads=[1, 1, 0, 0], count_include_pad=1), 0.03, 4),
             np.int8, 4)
    g = n.qdq(n.op("GlobalAveragePool", a), 0.02, 3)
    n.output(n.q(n.op("ReduceMean", a, axes=[2, 3], keepdims=0), 0.02, 3), np.int8, 2)
    w, sw = n.weight((10, 20), 0)
    n.output(n.q(n.op("Gemm", n.op("Flatten", g), w, n.bias(0.02, sw, 10), transB=1), 0.03, 0), np.int8, 2)
    n.save("averages")


def products():
    n = Net()  # matrices: Gemm, MatMul over batches, weights of either order, activations with each other
    x = n.qdq(n.input(rng.uniform(-2, 2, (2, 5, 48)).astype(np.float32)), 0.016, 125)
    w, _ = n.weight((48, 40), 1)
    a = n.qdq(n.op("Add", n.op("MatMul", x, w), rng.uniform(-1, 1, 40).astype(np.float32)), 0.1, 120)
    w, _ = n.weight((40, 24))
    b = n.qdq(n.op("Relu", n.op("MatMul", a, w)), 0.2, 0)
    c = n.qdq(n.op("MatMul", b, n.op("Transpose", b, perm=[0, 2, 1])), 30, 3)
    n.output(n.q(n.op("Softmax", n.op("Mul", c, np.float32(0.001)), axis=-1), 0.004, 0), np.uint8, 3)
    n.output(n.q(b, 0.3, 9), np.uint8, 3)
    n.save("matmul")

    n = Net()  # integers as such
    x = n.input(rng.integers(0, 256, (3, 20)).astype(np.uint8))
    w = rng.integers(-128, 128, (20, 17)).astype(np.int8)
    n.output(n.op("MatMulInteger", x, w, np.uint8(7), np.int8(0)), np.int32, 2)
    n.output(n.op("MatMulInteger", n.input(rng.integers(-128, 128, (3, 20)).astype(np.int8)), w), np.int32, 2)
    y = n.input(rng.integers(0, 256, (1, 4, 6, 7)).astype(np.uint8))
    v = rng.integers(0, 256, (18, 4, 3, 3)).astype(np.uint8)
    n.output(n.op("ConvInteger", y, v, np.uint8(131), np.uint8(128), pads=[1, 1, 1, 0]), np.int32, 4)
    q, s, z = n.op("DynamicQuantizeLinear", n.input(rng.uniform(-1, 3, (4, 20)).astype(np.float32)), n=3)
    n.output(n.op("MatMulInteger", q, w, z), np.int32, 2)
    n.save("integer")


def qlinear():
    n = Net()
    u8, i8, f32 = np.uint8, np.int8, np.float32
    x = n.input(rng.integers(0, 256, (1, 8, 7, 6)).astype(np.uint8))
    xq = [f32(0.02), u8(120)]
    w = rng.integers(-127, 128, (16, 8, 3, 3)).astype(i8)
    sw = rng.uniform(0.004, 0.02, 16).astype(f32)
    a = n.op("QLinearConv", x, *xq, w, sw, np.zeros(16, i8), f32(0.1037), u8(100),
             rng.integers(-2000, 2000, 16).astype(np.int32), pads=[1, 1, 1, 1])
    b = n.op("QLinearConv", x, *xq, w[:, :, :1, :1].copy(), sw, np.zeros(16, i8), f32(0.0513), u8(130))
    s = n.op("QLinearAdd", a, f32(0.1037), u8(100), b, f32(0.0513), u8(130), f32(0.0911), u8(110), domain=MS)
    m = n.op("QLinearMul", s, f32(0.0911), u8(110), b, f32(0.0513), u8(130), f32(0.2063), u8(90), domain=MS)
    c = n.op("QLinearConcat", f32(0.1531), u8(100), s, f32(0.0911), u8(110), m, f32(0.2063), u8(90), domain=MS, axis=1)
    n.output(c, u8, 4)
    n.output(n.op("QLinearLeakyRelu", c, f32(0.1531), u8(100), f32(0.1037), u8(30), domain=MS, alpha=0.1), u8, 4)
    g = n.op("QLinearGlobalAveragePool", c, f32(0.1531), u8(100), f32(0.0513), u8(120), domain=MS)
    f = n.op("Reshape", g, np.array([1, 32], np.int64))
    d = rng.integers(-127, 128, (32, 12)).astype(i8)
    n.output(n.op("QLinearMatMul", f, f32(0.0513), u8(120), d, f32(0.01), i8(0), f32(0.2063), u8(128)), u8, 2)
    n.output(n.op("QGemm", f, f32(0.0513), u8(120), d, f32(0.01), i8(0), rng.integers(-900, 900, 12).astype(np.int32),
                  f32(0.2063), u8(128), domain=MS), u8, 2)
    n.save("qlinear", [MS])


def gemm():
    """Whole tiles and what is left of rows and columns; data and weights at the ends of their range."""
    own, n = np.random.default_rng(5), Net()
    x = n.input(own.choice(np.array([0, 1, 254, 255], np.uint8), (37, 132)))
    one = n.input(own.integers(0, 256, (1, 132)).astype(np.uint8))
    signed = n.input(own.choice(np.array([-128, -127, 3, 127], np.int8), (2, 5, 132)))
    for columns in (70, 16, 129):
        w = own.choice(np.array([-128, -127, 126, 127], np.int8), (132, columns))
        n.output(n.op("MatMulInteger", x, w, np.uint8(131)), np.int32, 2)
        n.output(n.op("MatMulInteger", one, w), np.int32, 2)
        n.output(n.op("MatMulInteger", signed, w, np.int8(-5)), np.int32, 3)
    few = own.integers(-127, 128, (4, 32, 1, 1)).astype(np.int8)  # fewer channels than lanes
    n.output(n.op("ConvInteger", n.input(own.integers(0, 256, (1, 32, 5, 5)).astype(np.uint8)), few, np.uint8(9)), np.int32, 4)
    n.save("integer_gemm")


def extremes():
    """Convolutions of numbers at the ends of their range, in enough channels for every algorithm: 3x3 (Winograd's
    without VNNI), 1x1, strides, depthwise, first layers."""
    own, n = np.random.default_rng(6), Net()
    ends = np.array([0, 0, 1, 255, 255, 255], np.uint8)
    x = n.input(own.choice(ends, (1, 48, 12, 14)))
    signed = n.input(own.choice(np.array([-128, -128, -127, 127], np.int8), (1, 32, 9, 10)))
    image = n.input(own.choice(ends, (1, 3, 13, 16)))

    def conv(of, out, cin, k, zero, **attrs):
        w = own.choice(np.array([-128, -127, 127, 127], np.int8), (out, cin, k, k))
        w[0], w[1] = 127, -128  # sums as large as they get
        return n.output(n.op("ConvInteger", of, w, zero, **attrs), np.int32, 4)
    conv(x, 32, 48, 3, np.uint8(255), pads=[1, 1, 1, 1])
    conv(x, 64, 48, 3, np.uint8(3), pads=[0, 1, 2, 1])
    conv(x, 48, 48, 3, np.uint8(0), pads=[1, 1, 1, 1], strides=[2, 2])
    conv(x, 96, 48, 1, np.uint8(128))
    conv(signed, 32, 32, 3, np.int8(-128), pads=[1, 1, 1, 1])
    conv(signed, 64, 32, 1, np.int8(5))
    conv(image, 32, 3, 3, np.uint8(131), pads=[1, 1, 1, 1], strides=[2, 2])
    conv(image, 16, 3, 7, np.uint8(0), pads=[3, 3, 3, 3])
    for k in (3, 5):
        for stride in (1, 2):
            conv(x, 48, 1, k, np.uint8(200), pads=[k // 2] * 4, strides=[stride] * 2, group=48)
    conv(x, 48, 1, 3, np.uint8(255), pads=[2, 2, 2, 2], dilations=[2, 2], group=48)
    conv(signed, 32, 1, 3, np.int8(-128), pads=[1, 0, 1, 1], group=32)
    n.save("integer_extremes")


def dynamic():
    """Zero points that only the run knows, as quantize_dynamic makes them: borders of convolutions stand for 0;
    weights of bytes with a zero point, so that less it they are no bytes."""
    own, n = np.random.default_rng(7), Net()

    def quantized(shape, lo, hi):
        return n.op("DynamicQuantizeLinear", n.input(own.uniform(lo, hi, shape).astype(np.float32)), n=3)

    def conv(of, zero, shape, at, **attrs):
        w = own.integers(0, 256, shape).astype(np.uint8)
        n.output(n.op("ConvInteger", of, w, zero, np.uint8(at), **attrs), np.int32, len(shape))
    q, _, z = quantized((2, 24, 9, 11), -1, 3)
    conv(q, z, (32, 24, 3, 3), 121, pads=[1, 1, 1, 1])
    conv(q, z, (16, 24, 3, 3), 128, pads=[0, 2, 1, 0], strides=[2, 1])
    conv(q, z, (20, 24, 1, 1), 90)
    conv(q, z, (24, 1, 5, 5), 128, pads=[2, 2, 2, 2], group=24)
    conv(q, z, (8, 6, 3, 3), 3, pads=[1, 1, 1, 1], group=4, dilations=[1, 2])
    line, _, z = quantized((1, 10, 33), -3, 0.5)
    conv(line, z, (12, 10, 5), 130, pads=[2, 2])
    rows, _, z = quantized((5, 60), -1, 2)
    for at, units in ((121, 40), (255, 33), (0, 2)):
        w = own.integers(0, 256, (60, units)).astype(np.uint8)
        n.output(n.op("MatMulInteger", rows, w, z, np.uint8(at)), np.int32, 2)
    zeros = own.integers(0, 256, 37).astype(np.uint8)
    n.output(n.op("MatMulInteger", rows, own.integers(0, 256, (60, 37)).astype(np.uint8), z, zeros), np.int32, 2)
    whole = n.input(own.integers(0, 256, (3, 2, 60)).astype(np.uint8))
    n.output(n.op("MatMulInteger", whole, own.integers(0, 256, (60, 37)).astype(np.uint8), np.uint8(17), zeros), np.int32, 3)
    n.save("integer_dynamic")


if __name__ == "__main__":
    convolutions()
    between()
    products()
    qlinear()
    gemm()
    extremes()
    dynamic()
    for name in sorted(os.listdir(HERE)):
        print(os.path.getsize(os.path.join(HERE, name)), name)
