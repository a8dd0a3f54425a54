"""Layers."""
import numpy as np
import tensorflow as tf
from record import model, raw


@model
def convolutions(m):
    x = m.input("x", m.f32(2, 9, 8, 6))
    w = m.f32(3, 3, 6, 8)
    for padding in "SAME", "VALID":
        for s in 1, 2:
            m.out(f"Conv2D_{padding}_{s}", raw.Conv2D(input=x, filter=w, strides=[1, s, s, 1], padding=padding))
    m.out("Conv2D_dilated", raw.Conv2D(input=x, filter=w, strides=[1] * 4, padding="SAME", dilations=[1, 2, 2, 1]))
    m.out("Conv2D_explicit", raw.Conv2D(input=x, filter=w, strides=[1, 2, 1, 1], padding="EXPLICIT",
                                        explicit_paddings=[0, 0, 1, 2, 0, 1, 0, 0]))
    m.out("Conv2D_groups", raw.Conv2D(input=x, filter=m.f32(3, 2, 3, 4), strides=[1] * 4, padding="SAME"))
    m.out("DepthwiseConv2dNative", raw.DepthwiseConv2dNative(input=x, filter=m.f32(3, 3, 6, 2), strides=[1, 2, 2, 1],
                                                             padding="SAME"))
    m.out("DepthwiseConv2dNative_1", raw.DepthwiseConv2dNative(input=x, filter=m.f32(3, 3, 6, 1), strides=[1] * 4,
                                                               padding="VALID"))
    y = m.input("y", m.f32(2, 5, 4, 3))
    for padding, h, w in ("SAME", 9, 8), ("SAME", 10, 7), ("VALID", 11, 9), ("VALID", 12, 10):
        m.out(f"Conv2DBackpropInput_{padding}_{h}", raw.Conv2DBackpropInput(
            input_sizes=np.int32([2, h, w, 5]), filter=m.f32(3, 3, 5, 3), out_backprop=y, strides=[1, 2, 2, 1],
            padding=padding))
    m.out("Dilation2D", raw.Dilation2D(input=x, filter=m.f32(3, 2, 6), strides=[1, 2, 1, 1], rates=[1, 1, 2, 1],
                                       padding="SAME"))


@model
def dilations(m):
    """As tf.nn.convolution writes them: every n-th cell an image of the batch, a convolution, and back."""
    def dilated(conv, v, w, rate, before, behind, crops=None):
        v = raw.SpaceToBatchND(input=v, block_shape=rate, paddings=list(zip(before, behind)))
        return raw.BatchToSpaceND(input=conv(v, w), block_shape=rate, crops=crops or [[0, 0]] * len(rate))

    def conv(v, w):
        return raw.Conv2D(input=v, filter=w, strides=[1] * 4, padding="VALID")

    def line(v, w):
        return tf.squeeze(conv(tf.expand_dims(v, 1), tf.expand_dims(w, 0)), 1)

    def deep(v, w):
        return raw.DepthwiseConv2dNative(input=v, filter=w, strides=[1] * 4, padding="VALID")

    x = m.input("x", m.f32(2, 9, 8, 6))
    m.out("same", raw.BiasAdd(value=dilated(conv, x, m.f32(3, 3, 6, 8), [2, 3], [2, 3], [3, 4], [[0, 1], [0, 1]]), bias=m.f32(8)))
    m.out("valid", dilated(conv, x, m.f32(2, 2, 6, 4), [3, 2], [0, 0], [0, 0]))
    m.out("deep", dilated(deep, x, m.f32(3, 2, 6, 1), [2, 2], [1, 2], [2, 2], [[1, 0], [0, 2]]))
    m.out("rows", dilated(conv, x, m.f32(3, 3, 6, 4), [3], [0], [0]))
    y = m.input("y", m.f32(1, 20, 5))
    z = dilated(line, y, m.f32(3, 5, 16), [4], [8], [0])
    m.out("causal", dilated(line, tf.nn.relu(z), m.f32(2, 16, 3), [4], [4], [0]))
    m.out("line", dilated(line, y, m.f32(3, 5, 2), [8], [8], [12], [[0, 4]]))
    m.out("wide_crops", dilated(line, y, m.f32(2, 5, 2), [5], [0], [0], [[2, 1]]))


@model
def between_convs(m):
    """What goes on between convolutions of images stays in their layout."""
    x = m.input("x", m.f32(1, 8, 8, 4))
    conv = lambda v, i, o: raw.Conv2D(input=v, filter=m.f32(3, 3, i, o), strides=[1] * 4, padding="SAME")
    a = raw.Relu(features=raw.BiasAdd(value=conv(x, 4, 8), bias=m.f32(8)))
    y, *_ = raw.FusedBatchNormV3(x=a, scale=m.f32(8), offset=m.f32(8), mean=m.f32(8), variance=m.f32(8, lo=0.1),
                                 is_training=False, epsilon=1e-3)
    y = raw.AddV2(x=raw.Mul(x=y, y=m.f32(8)), y=m.f32(1, 8, 8, 1))
    y = raw.ConcatV2(values=[y, a], axis=-1)
    y = raw.Pad(input=y, paddings=np.int32([[0, 0], [1, 1], [0, 1], [0, 0]]))
    parts = raw.Split(axis=3, value=y, num_split=2)
    y = raw.MaxPool(input=raw.Maximum(x=parts[0], y=parts[1]), ksize=[1, 2, 2, 1], strides=[1, 2, 2, 1], padding="VALID")
    y = conv(raw.Sigmoid(x=y), 8, 4)
    m.out("image", y)
    m.out("mean", raw.Mean(input=y, axis=[1, 2]))


@model
def pools(m):
    x = m.input("x", m.f32(2, 7, 8, 3))
    for padding in "SAME", "VALID":
        for op in "AvgPool", "MaxPool":
            m.out(f"{op}_{padding}", getattr(raw, op)(**{"value" if op == "AvgPool" else "input": x}, ksize=[1, 3, 2, 1],
                                                      strides=[1, 2, 2, 1], padding=padding))
    m.out("MaxPoolV2", raw.MaxPoolV2(input=x, ksize=np.int32([1, 2, 2, 1]), strides=np.int32([1, 2, 2, 1]), padding="SAME"))
    v = m.input("v", m.f32(1, 5, 6, 7, 2))
    for padding in "SAME", "VALID":
        m.out(f"AvgPool3D_{padding}", raw.AvgPool3D(input=v, ksize=[1, 2, 2, 3, 1], strides=[1, 2, 1, 2, 1], padding=padding))
        m.out(f"MaxPool3D_{padding}", raw.MaxPool3D(input=v, ksize=[1, 2, 2, 3, 1], strides=[1, 2, 1, 2, 1], padding=padding))
        m.out(f"Conv3D_{padding}", raw.Conv3D(input=v, filter=m.f32(2, 3, 3, 2, 4), strides=[1, 1, 2, 1, 1], padding=padding))
    m.out("Conv3DBackpropInputV2", raw.Conv3DBackpropInputV2(
        input_sizes=np.int32([1, 10, 12, 14, 3]), filter=m.f32(3, 3, 3, 3, 2), out_backprop=v, strides=[1, 2, 2, 2, 1],
        padding="SAME"))


@model
def norms(m):
    x = m.input("x", m.f32(2, 4, 5, 6))
    stats = dict(scale=m.f32(6), offset=m.f32(6), mean=m.f32(6), variance=m.f32(6, lo=0.2, hi=2))
    for op in "FusedBatchNorm", "FusedBatchNormV2", "FusedBatchNormV3":
        m.out(op, getattr(raw, op)(x=x, **stats, is_training=False, epsilon=0.01)[0])
    for i, y in enumerate(raw.FusedBatchNormV3(x=x, scale=stats["scale"], offset=stats["offset"], mean=[], variance=[],
                                               is_training=True)[:3]):
        m.out(f"FusedBatchNormV3_training_{i}", y)
    m.out("BiasAdd", raw.BiasAdd(value=x, bias=m.f32(6)))
    m.out("BiasAddV1", raw.BiasAddV1(value=x, bias=m.f32(6)))
    m.out("Softmax", raw.Softmax(logits=raw.Reshape(tensor=x, shape=[8, 30])))
    m.out("LogSoftmax", raw.LogSoftmax(logits=raw.Reshape(tensor=x, shape=[40, 6])))
    m.out("LRN", raw.LRN(input=x, depth_radius=2, bias=1.5, alpha=0.3, beta=0.6))
    m.out("L2Loss", raw.L2Loss(t=x))


@model
def products(m):
    a, b = m.input("a", m.f32(3, 4)), m.input("b", m.f32(4, 5))
    at, bt = m.input("at", m.f32(4, 3)), m.input("bt", m.f32(5, 4))
    m.out("MatMul", raw.MatMul(a=a, b=b))
    m.out("MatMul_weight", raw.MatMul(a=a, b=m.f32(4, 6)))
    m.out("MatMul_a", raw.MatMul(a=at, b=b, transpose_a=True))
    m.out("MatMul_b", raw.MatMul(a=a, b=bt, transpose_b=True))
    m.out("MatMul_ab", raw.MatMul(a=at, b=bt, transpose_a=True, transpose_b=True))
    x, y = m.input("p", m.f32(2, 3, 4, 5)), m.input("q", m.f32(2, 3, 5, 6))
    m.out("BatchMatMul", raw.BatchMatMul(x=x, y=y))
    m.out("BatchMatMulV2", raw.BatchMatMulV2(x=x, y=m.f32(5, 6)))
    m.out("BatchMatMulV3", raw.BatchMatMulV3(x=x, y=m.f32(1, 3, 7, 5), adj_y=True, Tout=np.float32))
    for i, (eq, *ops) in enumerate([("abcd,abde->abce", x, y), ("abcd,de->abce", x, m.f32(5, 6)), ("abcd->abdc", x),
                                    ("ij,jk->ik", a, b), ("ij->i", a), ("abcd,cde->abe", x, m.f32(4, 5, 3))]):
        m.out(f"Einsum_{i}", raw.Einsum(inputs=ops, equation=eq))


@model
def cells(m):
    x, h, c = m.input("x", m.f32(2, 3)), m.input("h", m.f32(2, 4)), m.input("c", m.f32(2, 4))
    for peep in False, True:
        r = raw.LSTMBlockCell(x=x, cs_prev=c, h_prev=h, w=m.f32(7, 16), wci=m.f32(4), wcf=m.f32(4), wco=m.f32(4),
                              b=m.f32(16), use_peephole=peep, cell_clip=0.8 if peep else -1)
        m.out(f"LSTMBlockCell_{int(peep)}", *r)
    m.out("GRUBlockCell", *raw.GRUBlockCell(x=x, h_prev=h, w_ru=m.f32(7, 8), w_c=m.f32(7, 4), b_ru=m.f32(8), b_c=m.f32(4)))
