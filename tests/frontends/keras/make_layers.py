#!/usr/bin/env python3
"""Writes models/*.keras and *.h5 with their inputs and results, by Keras itself (frontends.keras.run).

    make_layers.py FOLDER [NAME..]             Keras 3: .keras, and .h5 of those in BOTH
    make_layers.py --tf-keras FOLDER [NAME..]  tf_keras (Keras 2): .h5, and .keras of those in BOTH

A model has one output for each layer that is tried, which the layer's name says.  Weights and inputs are
random by a fixed seed.
"""

import os
import sys
import zipfile

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import numpy as np

OLD = sys.argv[1] == "--tf-keras"
if OLD:
    del sys.argv[1]
    import tf_keras as keras
else:
    import keras
L = keras.layers
BOTH = {"nested", "dense", "shared"}
FAMILIES = {}


def family(f):
    FAMILIES[f.__name__] = f
    return f


def new(f):
    """Only Keras 3 has it."""
    return f if OLD else family(f)


def old(f):
    return family(f) if OLD else f


def inputs(**shapes):
    return {k: keras.Input(s, name=k) for k, s in shapes.items()}


@family
def dense():
    i = inputs(x=(6,), y=(4, 5), z=(3, 4, 5))
    x, y, z = i.values()
    return i, [
        L.Dense(3, name="plain")(x),
        L.Dense(3, activation="relu", use_bias=False, name="relu")(x),
        L.Dense(4, activation="softmax", name="rows")(y),
        L.Dense(2, name="image")(z),
        L.Dense(2, name="of_conv")(L.Conv2D(4, 2)(z)),
    ]


@family
def einsum():
    i = inputs(x=(4, 6), z=(3, 4, 6))
    x, z = i.values()
    return i, [
        L.EinsumDense("ab,bc->ac", output_shape=3, name="plain")(L.Flatten(name="flat")(x)),
        L.EinsumDense("abc,cd->abd", output_shape=(None, 5), bias_axes="d", name="rows")(x),
        L.EinsumDense("...c,cde->...de", output_shape=(4, 2, 3), bias_axes="de", activation="relu", name="heads")(x),
        L.EinsumDense("abcd,cde->abe", output_shape=(3, 5), name="joined")(z),
    ]


ACTIVATIONS = ["linear", "relu", "elu", "selu", "softplus", "softsign", "tanh", "sigmoid", "hard_sigmoid", "swish", "mish",
               "gelu", "exponential", "softmax"]  # fmt: skip
NEW_ACTIVATIONS = ["relu6", "leaky_relu", "celu", "hard_silu", "hard_tanh", "log_sigmoid", "sparse_sigmoid", "sparse_plus",
                   "squareplus", "tanh_shrink", "hard_shrink", "soft_shrink", "log_softmax"]  # fmt: skip


@family
def activations():
    i = inputs(x=(3, 4, 5))
    x = i["x"]
    image = L.Conv2D(4, 2, padding="same", name="conv")(x)
    out = [L.Activation(a, name="act_" + a)(x) for a in ACTIVATIONS + ([] if OLD else NEW_ACTIVATIONS)]
    slope = {"alpha" if OLD else "negative_slope": 0.1}
    out += [
        L.ReLU(name="relu")(x),
        L.ReLU(max_value=1.5, name="relu_max")(x),
        L.ReLU(max_value=1.5, negative_slope=0.2, threshold=0.1, name="relu_all")(x),
        L.LeakyReLU(**slope, name="leaky")(x),
        L.ELU(0.7, name="elu")(x),
        L.PReLU(name="prelu")(x),
        L.PReLU(shared_axes=[1, 2], name="prelu_shared")(image),
        L.PReLU(name="prelu_image")(image),
        L.Softmax(name="softmax")(x),
        L.Softmax(axis=1, name="softmax_rows")(image),
        L.Softmax(axis=[1, 3], name="softmax_two")(x),
        L.Activation("softmax", name="image_softmax")(image),
    ]
    if OLD:
        out.append(L.ThresholdedReLU(0.3, name="thresholded")(x))
    return i, out


def same_and_valid(n, x, make):
    return [make(padding=p, strides=s, name="%s_%s_%d" % (n, p, s))(x) for p in ("same", "valid") for s in (1, 2)]


@family
def convolutions():
    i = inputs(a=(9, 4), b=(7, 8, 4), c=(5, 6, 7, 2))
    a, b, c = i.values()
    out = same_and_valid("conv1", a, lambda **k: L.Conv1D(6, 3, activation="relu", **k))
    out += same_and_valid("conv2", b, lambda **k: L.Conv2D(6, (3, 2), activation="relu", **k))
    out += same_and_valid("conv3", c, lambda **k: L.Conv3D(3, (2, 3, 2), **k))
    out += same_and_valid("deep2", b, lambda **k: L.DepthwiseConv2D(3, depth_multiplier=2, **k))
    out += same_and_valid("sep1", a, lambda **k: L.SeparableConv1D(5, 3, depth_multiplier=2, **k))
    out += same_and_valid("sep2", b, lambda **k: L.SeparableConv2D(5, 3, activation="tanh", **k))
    out += same_and_valid("trans2", b, lambda **k: L.Conv2DTranspose(5, 3, **k))
    out += [
        L.Conv1D(6, 3, dilation_rate=2, padding="causal", use_bias=False, name="causal")(a),
        L.Conv2D(6, 3, dilation_rate=2, groups=2, name="groups")(b),
        L.Conv2D(6, 2, activation="softmax", name="conv_softmax")(b),
    ]
    if not OLD:
        out += same_and_valid("deep1", a, lambda **k: L.DepthwiseConv1D(3, **k))
        out += same_and_valid("trans1", a, lambda **k: L.Conv1DTranspose(5, 3, **k))
        out += same_and_valid("trans3", c, lambda **k: L.Conv3DTranspose(2, 2, **k))
        out += [
            L.Conv2DTranspose(3, 4, strides=2, output_padding=1, padding="same", name="trans_more")(b),
            L.Conv2DTranspose(3, 2, strides=3, name="trans_far")(b),
        ]
    return i, out


@family
def pools():
    i = inputs(a=(9, 4), b=(7, 8, 4), c=(5, 6, 7, 2))
    out = []
    for n, (x, d) in enumerate(zip(i.values(), ("1D", "2D", "3D"))):
        for kind in ("Max", "Average"):
            make = getattr(L, kind + "Pooling" + d)
            out += same_and_valid("%s%d" % (kind, n + 1), x, lambda **k: make(pool_size=3, **k))
            out.append(make(2, name="%s%d_plain" % (kind, n + 1))(x))
            whole = getattr(L, "Global" + kind + "Pooling" + d)
            out.append(whole(name="global_%s%d" % (kind, n + 1))(x))
            out.append(whole(keepdims=True, name="global_%s%d_kept" % (kind, n + 1))(x))
    return i, out


@new
def adaptive():
    i = inputs(a=(9, 4), b=(7, 8, 4), c=(4, 6, 8, 2))
    a, b, c = i.values()
    return i, [
        L.AdaptiveMaxPooling1D(4, name="max1")(a),
        L.AdaptiveAveragePooling1D(3, name="mean1")(a),
        L.AdaptiveMaxPooling2D((3, 4), name="max2")(b),
        L.AdaptiveAveragePooling2D(5, name="mean2")(b),
        L.AdaptiveMaxPooling3D(2, name="max3")(c),
        L.AdaptiveAveragePooling3D((2, 3, 4), name="mean3")(c),
    ]


@family
def norms():
    i = inputs(x=(5, 6, 4), y=(7, 6))
    x, y = i.values()
    image = L.Conv2D(4, 2, name="conv")(x)
    out = [
        L.BatchNormalization(name="batch")(x),
        L.BatchNormalization(scale=False, center=False, epsilon=0.1, name="batch_plain")(y),
        L.BatchNormalization(name="batch_image")(image),
        L.BatchNormalization(axis=1, name="batch_rows")(x),
        L.LayerNormalization(name="layer")(x),
        L.LayerNormalization(name="layer_image")(image),
        L.LayerNormalization(axis=[1, 2], epsilon=0.01, name="layer_axes")(y),
        L.LayerNormalization(axis=1, center=False, name="layer_first")(y),
        L.UnitNormalization(name="unit")(y),
        L.GroupNormalization(2, name="group")(x),
        L.GroupNormalization(-1, name="instance")(image),
    ]
    mean, var = [0.5, -1, 2, 0, 1, 3], [1, 4, 0.25, 2, 1, 9]
    out.append(L.Normalization(mean=mean, variance=var, name="given")(y))
    if not OLD:
        out += [L.RMSNormalization(name="rms")(y), L.Normalization(mean=mean, variance=var, invert=True, name="back")(y)]
        adapted = L.Normalization(name="adapted")
        adapted.adapt(np.random.RandomState(0).rand(20, 7, 6))
        out.append(adapted(y))
    return i, out


@family
def merges():
    i = inputs(x=(3, 4, 5), y=(3, 4, 5), v=(5,), p=(3, 4), q=(2, 4))
    x, y, v, p, q = i.values()
    a, b = L.Conv2D(3, 2, name="conv_a")(x), L.Conv2D(3, 2, name="conv_b")(y)
    out = [getattr(L, k)(name=k)([x, y]) for k in ("Add", "Subtract", "Multiply", "Average", "Maximum", "Minimum")]
    out += [
        L.Add(name="images")([a, b, a]),
        L.Multiply(name="wide")([x, v]),
        L.Concatenate(name="concat")([x, y]),
        L.Concatenate(axis=1, name="concat_rows")([a, b]),
        L.Concatenate(name="concat_images")([a, b]),
        L.Dot(axes=(2, 2), name="dot")([p, q]),
        L.Dot(axes=-1, normalize=True, name="dot_unit")([v, v]),
        L.Dot(axes=(1, 1), name="dot_far")([L.Permute((2, 1), name="turned")(p), L.Permute((2, 1), name="turned_q")(q)]),
    ]
    return i, out


@family
def shapes():
    i = inputs(a=(6, 4), b=(4, 5, 3), c=(4, 3, 5, 2), v=(6,))
    a, b, c, v = i.values()
    conv = L.Conv2D(3, 2, name="conv")(b)
    return i, [
        L.Flatten(name="flat")(b),
        L.Flatten(name="flat_conv")(conv),
        L.Reshape((3, -1), name="reshaped")(b),
        L.Reshape((12, 3), name="reshaped_conv")(conv),
        L.Permute((3, 1, 2), name="first")(conv),
        L.Permute((2, 1), name="swapped")(a),
        L.RepeatVector(3, name="repeated")(v),
        L.ZeroPadding1D(2, name="pad1")(a),
        L.ZeroPadding1D((1, 2), name="pad1_two")(a),
        L.ZeroPadding2D(1, name="pad2")(b),
        L.ZeroPadding2D(((1, 2), (0, 3)), name="pad2_four")(conv),
        L.ZeroPadding3D((1, 0, 2), name="pad3")(c),
        L.Cropping1D((1, 2), name="crop1")(a),
        L.Cropping2D(((1, 0), (2, 1)), name="crop2")(b),
        L.Cropping2D(1, name="crop_conv")(conv),
        L.Cropping3D(1, name="crop3")(c),
        L.UpSampling1D(2, name="up1")(a),
        L.UpSampling2D((2, 3), name="up2")(b),
        L.UpSampling2D(2, interpolation="bilinear", name="up_linear")(conv),
        L.UpSampling3D((1, 2, 3), name="up3")(c),
    ]


@family
def training_only():
    i = inputs(x=(4, 6))
    x = i["x"]
    out = [
        L.Dropout(0.5, name="dropout")(x),
        L.GaussianDropout(0.5, name="gaussian_dropout")(x),
        L.GaussianNoise(0.5, name="noise")(x),
        L.AlphaDropout(0.5, name="alpha")(x),
        L.SpatialDropout1D(0.5, name="spatial")(x),
        L.ActivityRegularization(0.5, name="regular")(x),
        L.Identity(name="identity")(x) if not OLD else L.Activation("linear", name="identity")(x),
    ]
    return i, out


def sequences(a, make, n, **more):
    return [
        make(3, name=n + "_last", **more)(a),
        make(3, return_sequences=True, name=n + "_all", **more)(a),
        make(3, return_sequences=True, go_backwards=True, name=n + "_back", **more)(a),
        make(3, use_bias=False, go_backwards=True, name=n + "_last_back", **more)(a),
    ]


@family
def recurrent():
    i = inputs(a=(5, 4), h=(3,), c=(3,))
    a, h, c = i.values()
    out = sequences(a, L.LSTM, "lstm") + sequences(a, L.GRU, "gru") + sequences(a, L.SimpleRNN, "rnn")
    out += sequences(a, L.LSTM, "hard", recurrent_activation="hard_sigmoid", activation="softsign")
    out += sequences(a, L.GRU, "before", reset_after=False)
    out += sequences(a, L.GRU, "before_hard", reset_after=False, recurrent_activation="hard_sigmoid")
    out += sequences(a, L.SimpleRNN, "elu", activation="elu")
    y, sh, sc = L.LSTM(3, return_state=True, return_sequences=True, name="states")(a, initial_state=[h, c])
    out += [y, L.Add(name="states_sum")([sh, sc]), L.GRU(3, name="gru_from")(a, initial_state=h)]
    out += [
        L.Bidirectional(L.LSTM(3, return_sequences=True), name="both")(a),
        L.Bidirectional(L.GRU(3), merge_mode="sum", name="both_sum")(a),
        L.Bidirectional(L.SimpleRNN(3, return_sequences=True), merge_mode="ave", name="both_ave")(a),
        L.Bidirectional(L.LSTM(3), backward_layer=L.LSTM(3, go_backwards=True, use_bias=False), merge_mode="mul",
                        name="both_other")(a),
        L.RNN([L.LSTMCell(3), L.GRUCell(2), L.SimpleRNNCell(4)], return_sequences=True, name="stack")(a),
        L.RNN(L.LSTMCell(3), name="cell")(a),
    ]  # fmt: skip
    return i, out


@family
def masked():
    i = {"t": keras.Input((6,), name="t", dtype="int32"), "x": keras.Input((5, 4), name="x")}
    t, x = i.values()
    e = L.Embedding(9, 4, mask_zero=True, name="table")(t)
    m = L.Masking(0.0, name="masked")(x)
    other = L.Embedding(9, 4, name="plain_table")(t)
    out = [
        e,
        m,
        L.LSTM(3, name="lstm")(e),
        L.GRU(3, return_sequences=True, name="gru")(L.Dropout(0.1, name="drop")(e)),
        L.SimpleRNN(3, return_sequences=True, go_backwards=True, name="rnn_back")(m),
        L.Bidirectional(L.LSTM(3, return_sequences=True), name="both")(e),
        L.GlobalAveragePooling1D(name="mean")(e),
        L.GlobalAveragePooling1D(name="mean_masked")(m),
        L.LSTM(2, name="of_sum")(L.Add(name="sum")([e, other])),
        L.LSTM(2, name="of_joined")(L.Concatenate(name="joined")([e, other])),
        L.LSTM(2, name="of_dense")(L.Dense(3, name="dense")(e)),
        L.MultiHeadAttention(2, 3, name="heads")(e, e),
        L.Attention(name="attention")([e, e]),
    ]
    if not OLD:
        out.append(L.LSTM(2, name="of_rows")(L.Concatenate(axis=1, name="rows")([e, other])))
    return i, out


@family
def convolved_lstm():
    i = inputs(a=(4, 6, 2), b=(3, 5, 6, 2))
    a, b = i.values()
    out = [
        L.ConvLSTM1D(3, 2, name="one")(a),
        L.ConvLSTM2D(3, 3, padding="same", return_sequences=True, name="two")(b),
        L.ConvLSTM2D(2, (2, 3), strides=2, use_bias=False, go_backwards=True, name="two_far")(b),
    ]
    return i, out


@old
def local():
    i = inputs(x=(7, 6, 3), y=(9, 4), z=(3, 7, 6))
    x, y, z = i.values()
    return i, [
        L.LocallyConnected2D(4, (3, 2), (2, 1), activation="relu", name="two")(x),
        L.LocallyConnected2D(2, 3, implementation=2, name="two_all")(x),
        L.LocallyConnected2D(4, (3, 2), data_format="channels_first", use_bias=False, name="two_first")(z),
        L.LocallyConnected1D(5, 3, 2, name="one")(y),
        L.LocallyConnected1D(2, 2, implementation=2, use_bias=False, name="one_all")(y),
    ]


@new
def augmentation():
    i = inputs(x=(8, 8, 3))
    x = i["x"]
    return i, [getattr(L, n)(**a, name=n.lower())(x) for n, a in (
        ("RandomHue", dict(factor=0.3)), ("RandomGrayscale", {}), ("RandomColorJitter", {}), ("RandAugment", {}), ("AugMix", {}),
        ("RandomPerspective", {}), ("RandomSharpness", dict(factor=0.3)), ("RandomInvert", {}), ("RandomGaussianBlur", {}))]


@new
def cropped():
    i = inputs(x=(8, 8, 3))
    return i, [L.RandomCrop(8, 8, name="same")(i["x"]), L.RandomCrop(5, 6, name="whole")(i["x"])]


@new
def contrast():
    i = inputs(x=(6, 5, 3))
    x = i["x"]
    return i, [L.AutoContrast(name="bytes")(x), L.AutoContrast(value_range=(-1, 1), name="small")(x),
               L.AutoContrast(name="flat")(L.MaxPooling2D((6, 5), name="one")(x)), L.RandomPosterization(3, name="posterized")(x),
               L.Solarization(name="solarized")(x)]


@new
def spectrum():
    """Needs scipy for the windows that the kernels begin with."""
    i = inputs(x=(40, 2), y=(2, 40))
    x, y = i.values()
    out = [L.STFTSpectrogram(mode=mode, frame_length=8, frame_step=3, fft_length=10, name=mode)(x)
           for mode in ("log", "magnitude", "psd", "real", "imag", "angle", "stft")]
    return i, out + [L.STFTSpectrogram(frame_length=8, padding="same", expand_dims=True, name="apart")(x),
                     L.STFTSpectrogram(frame_length=8, data_format="channels_first", name="first")(y),
                     L.STFTSpectrogram(frame_length=8, data_format="channels_first", expand_dims=True, name="first_apart")(y)]


@family
def attention():
    i = inputs(q=(5, 6), v=(4, 6), k=(4, 6))
    q, v, k = i.values()
    y, s = L.MultiHeadAttention(2, 3, value_dim=4, output_shape=7, name="scores")(q, v, key=k, return_attention_scores=True)
    out = [
        L.MultiHeadAttention(2, 3, name="heads")(q, v),
        L.MultiHeadAttention(3, 2, use_bias=False, name="causal")(q, q, use_causal_mask=True),
        y,
        L.Flatten(name="flat_scores")(s),
        L.Attention(name="dot")([q, v]),
        L.Attention(use_scale=True, name="scaled")([q, v, k]),
        L.Attention(score_mode="concat", use_scale=True, name="concat")([q, v]),
        L.AdditiveAttention(name="additive")([q, v, k]),
        L.AdditiveAttention(use_scale=False, name="additive_plain")([q, v]),
    ]
    if not OLD:
        out.append(L.GroupQueryAttention(3, 4, 2, name="grouped")(q, v))
    return i, out


@family
def nested():
    i = inputs(x=(6, 6, 3), z=(6, 6, 3))
    x, z = i.values()
    inner = keras.Sequential([keras.Input((6, 6, 3)), L.Conv2D(4, 3, name="c"), L.BatchNormalization(), L.ReLU()], name="inner")
    n = keras.Input((4, 4, 4))
    fixed = L.Dense(4, name="fixed", trainable=False)
    deep = keras.Model(n, [L.Dense(5)(fixed(L.BatchNormalization()(n))), L.GlobalMaxPooling2D()(n)], name="deep")
    a, b = inner(x), inner(z)
    (d, e), (f, g) = deep(a), deep(b)
    return i, [L.Add(name="sum")([d, f]), L.Concatenate(name="joined")([e, g]), keras.Sequential([deep.layers[-1]], name="last")(b)]


@family
def shared():
    i = inputs(x=(4,), z=(4,))
    x, z = i.values()
    d = L.Dense(4, activation="tanh", name="again")
    y = d(d(d(x)))
    return i, [L.Subtract(name="difference")([y, d(z)]), L.Dense(2, activation=None, name="end")(y)]


@family
def distributed():
    i = inputs(x=(3, 6, 6, 2), y=(4, 5))
    x, y = i.values()
    c = L.TimeDistributed(L.Conv2D(3, 3, activation="relu"), name="conv")(x)
    c = L.TimeDistributed(L.MaxPooling2D(), name="pool")(c)
    c = L.TimeDistributed(L.Flatten(), name="flat")(c)
    return i, [L.LSTM(3, name="lstm")(c), L.TimeDistributed(L.Dense(2), name="dense")(y)]


@family
def pictures():
    i = {"x": keras.Input((9, 8, 3), name="x"), "n": keras.Input((3,), name="n", dtype="int32")}
    x, n = i.values()
    out = [
        L.Rescaling(1 / 127.5, offset=-1, name="scaled")(x),
        L.Resizing(5, 12, name="linear")(x),
        L.Resizing(5, 12, interpolation="nearest", name="nearest")(x),
        L.CenterCrop(5, 4, name="center")(x),
        L.RandomFlip(name="flip")(x),
        L.RandomRotation(0.1, name="rotation")(x),
        L.CategoryEncoding(9, output_mode="multi_hot", name="multi")(n),
        L.CategoryEncoding(9, output_mode="count", name="count")(n),
        L.Discretization([-0.5, 0.1, 0.7], name="bins")(x),
    ]
    return i, out


@family
def channels_first():
    i = inputs(x=(3, 6, 6))
    f = {"data_format": "channels_first"}
    x = i["x"]
    if OLD:  # TensorFlow has no kernels for the rest on CPUs
        return i, [L.ZeroPadding2D(1, **f, name="pad")(x), L.Flatten(**f, name="flat")(x), L.UpSampling2D(2, **f, name="up")(x)]
    return i, [
        L.ZeroPadding2D(1, **f, name="pad")(x),
        L.Cropping2D(1, **f, name="crop")(x),
        L.Flatten(**f, name="flat")(x),
        L.UpSampling2D(2, **f, name="up")(x),
        L.GlobalAveragePooling2D(**f, name="mean")(x),
    ]


@new
def operations():
    from keras import ops

    i = inputs(x=(4, 6), z=(4, 6), im=(5, 5, 3))
    x, z, im = i.values()
    conv = L.Conv2D(3, 2, name="conv")(im)
    named = {
        "add": x + z,
        "scaled": 2.0 * x - 1,
        "divided": 1 / (x + 3),
        "powered": x**2,
        "mod": x % 0.7,
        "negative": -x,
        "mean": ops.mean(x, axis=-1, keepdims=True),
        "total": ops.sum(conv, axis=(1, 2)),
        "var": ops.var(x, axis=1),
        "std": ops.std(x, axis=-1),
        "largest": ops.max(x, axis=2),
        "where": ops.where(x > z, x, 0.5),
        "clipped": ops.clip(x, 0.1, 0.6),
        "concat": ops.concatenate([x, z], axis=1),
        "stacked": ops.stack([x, z], axis=2),
        "part": x[:, 1:3, ::2],
        "row": x[:, -1],
        "ellipsis": x[..., 1:],
        "fresh": x[:, None, 2],
        "second": ops.split(x, 3, axis=-1)[1],
        "cut": ops.split(x, [1, 4], axis=2)[1],
        "matmul": ops.matmul(x, ops.transpose(z, (0, 2, 1))),
        "reshaped": ops.reshape(x, (-1, 3, 8)),
        "expanded": ops.squeeze(ops.expand_dims(x, 1), 1),
        "swapped": ops.swapaxes(x, 1, 2),
        "softmax": ops.softmax(x),
        "relu": ops.relu(conv),
        "gelu": ops.gelu(x),
        "silu": ops.silu(x),
        "leaky": ops.leaky_relu(x, 0.3),
        "sqrt": ops.sqrt(ops.abs(x)),
        "log": ops.log1p(ops.exp(x)),
        "constant": x + ops.convert_to_tensor(np.arange(24).reshape(4, 6).astype("f4")),
        "flipped": ops.flip(x, axis=1),
        "repeated": ops.repeat(x, 2, axis=1),
        "tiled": ops.tile(x, (1, 2, 1)),
        "argmax": ops.argmax(x, axis=-1),
        "summed": ops.cumsum(x, axis=1),
        "image_sum": conv + conv * 2.0,
        "cast": ops.cast(x > 0, "float32"),
        "hot": ops.one_hot(ops.argmax(x, axis=-1), 6),
    }
    return i, named


@new
def more_operations():
    from keras import ops

    i = inputs(x=(4, 6), z=(4, 6), k=(4,))
    x, z, k = i.values()
    largest, where = ops.top_k(x, 2)
    named = {
        "moved": ops.moveaxis(x, (1, 2), (2, 0)), "unstacked": ops.unstack(x, axis=1)[2], "sorted": ops.sort(x, axis=1),
        "order": ops.argsort(x), "rolled": ops.roll(x, 2, axis=2), "along": ops.take_along_axis(x, ops.argsort(z, axis=1), axis=1),
        "largest": largest, "where": where, "lower": ops.tril(x, -1), "upper": ops.triu(x, 1), "padded": ops.pad(x, ((0, 0), (1, 2), (0, 1)), constant_values=0.5),
        "mirrored": ops.pad(x, ((0, 0), (1, 2), (0, 1)), mode="reflect"), "einsum": ops.einsum("bij,bkj->bik", x, z),
        "exps": ops.logsumexp(x, axis=-1), "kept": ops.logsumexp(x, axis=1, keepdims=True), "expm1": ops.expm1(x), "log2": ops.log2(ops.abs(x)),
        "log10": ops.log10(ops.abs(x)), "angle": ops.arctan2(x, z), "finite": ops.cast(ops.isfinite(x), "float32"), "asinh": ops.arcsinh(x),
        "amax": ops.amax(x, axis=1), "outer": ops.outer(k, k),
        "bits": ops.cast(ops.bitwise_and(ops.cast(k * 9, "int32"), ops.cast(k * 5, "int32")), "float32"),
    }
    return i, named


@new
def reductions():
    """Of values whose channels lie first."""
    from keras import ops

    i = inputs(im=(6, 5, 3), line=(7, 3), volume=(4, 5, 6, 2))
    conv = L.Conv2D(4, 2)(i["im"])
    line, volume = L.Conv1D(5, 2)(i["line"]), L.Conv3D(3, 2)(i["volume"])
    return i, {
        "plane": ops.mean(conv, axis=(1, 2)),
        "plane_kept": ops.mean(conv, axis=(2, 1), keepdims=True) * conv,
        "rows": ops.sum(conv, axis=1),
        "columns": ops.max(conv, axis=-2),
        "channels": ops.min(conv, axis=-1),
        "channels_kept": ops.mean(conv, axis=-1, keepdims=True) + conv,
        "picture": ops.max(conv, axis=(1, 2, 3)),
        "steps": ops.mean(line, axis=1),
        "row_of_line": ops.max(line, axis=2),
        "depth": ops.sum(volume, axis=1),
        "cells": ops.mean(volume, axis=(1, 2, 3)),
        "slices": ops.max(volume, axis=(2, 4)),
    }


@old
def functions():
    import tensorflow as tf

    i = inputs(x=(4, 6), z=(4, 6))
    x, z = i.values()
    return i, [
        x + z,
        x * 2.0,
        tf.reduce_mean(x, axis=-1, keepdims=True),
        tf.concat([x, z], axis=-1),
        x[:, 1:3],
        tf.nn.relu(x),
        tf.transpose(x, perm=[0, 2, 1]),
        tf.expand_dims(x, axis=1),
        tf.math.subtract(z, x),
        tf.reduce_sum(x, axis=1),
    ]


@new
def mel():
    i = inputs(x=(60,))
    x = i["x"]
    return i, [L.MelSpectrogram(fft_length=16, sequence_stride=5, num_mel_bins=6, sampling_rate=8000, max_freq=3500, name="decibels")(x),
               L.MelSpectrogram(fft_length=16, sequence_length=11, sequence_stride=7, num_mel_bins=4, sampling_rate=8000, window="hamming",
                                power_to_db=False, mag_exp=1.5, name="power")(x),
               L.MelSpectrogram(fft_length=16, sequence_stride=8, num_mel_bins=4, sampling_rate=4000, min_freq=60, top_db=12, ref_power=3.0,
                                min_power=0.01, name="near")(x)]


@new
def lookup():
    t = keras.Input((6,), name="t", dtype="int32")
    words = [3, 1, 7, 5]
    return {"t": t}, [
        L.IntegerLookup(vocabulary=words, name="plain")(t),
        L.IntegerLookup(vocabulary=words, num_oov_indices=3, mask_token=0, name="several")(t),
        L.IntegerLookup(vocabulary=[0, -1, 3, 1], mask_token=0, name="listed")(t),
        L.IntegerLookup(vocabulary=words, output_mode="multi_hot", name="multi_hot")(t),
        L.IntegerLookup(vocabulary=words, output_mode="count", max_tokens=9, pad_to_max_tokens=True, mask_token=0, name="count")(t),
        L.IntegerLookup(vocabulary=words, invert=True, mask_token=0, name="back")(t),
    ]


@new
def reversible():
    t = keras.Input((6,), name="t", dtype="int32")
    tied, apart = L.ReversibleEmbedding(9, 4), L.ReversibleEmbedding(9, 4, tie_weights=False, logit_soft_cap=0.5)
    return {"t": t}, [L.Identity(name="looked")(tied(t)), tied(tied(t), reverse=True), apart(apart(t), reverse=True)]


@new
def pipeline():
    i = inputs(x=(6, 5, 3))
    x = i["x"]
    return i, [L.Pipeline([L.Rescaling(2.0, 0.5), L.RandomFlip(), L.Resizing(4, 4), L.Dense(3)], name="steps")(x),
               L.MaxNumBoundingBoxes(3, name="boxes")(x)]


@family
def sequential():
    m = keras.Sequential(
        [keras.Input((8, 8, 3), name="picture"), L.Conv2D(4, 3, activation="relu"), L.MaxPooling2D(), L.Flatten(), L.Dense(5, name="end")]
    )
    return m


@old
def sequential_old():
    m = keras.Sequential([L.Dense(4, input_shape=(6,), activation="tanh", name="one"), L.Dense(5, name="two")])
    return m


@new
def half():
    keras.config.set_dtype_policy("mixed_float16")
    i = inputs(x=(6, 6, 3))
    y = L.Dense(3, dtype="float32", name="end")(L.GlobalAveragePooling2D()(L.Conv2D(4, 3, activation="relu")(i["x"])))
    keras.config.set_dtype_policy("float32")
    return i, [y]


@new
def brain():
    keras.config.set_dtype_policy("bfloat16")
    i = inputs(x=(6,))
    y = L.Dense(3, name="end")(i["x"])
    keras.config.set_dtype_policy("float32")
    return i, [L.Activation("linear", dtype="float32", name="wide")(y)]


def values(model, seed):
    """Random weights, those of variances above 0, and inputs."""
    r = np.random.RandomState(seed)
    for w in model.weights:
        name = getattr(w, "path", w.name)
        v = r.uniform(-0.6, 0.6, w.shape)
        if "variance" in name or "moving_var" in name:
            v = r.uniform(0.5, 1.5, w.shape)
        if "adapted" not in name:
            w.assign(v.astype(np.float32) if w.shape else v)
    out = {}
    for t in model.inputs:
        name = t.name.split(":")[0]
        shape = (2,) + tuple(t.shape[1:])
        if "int" in str(t.dtype):
            out[name] = r.randint(0, 9, shape).astype("int32")
            out[name][:, -2:] = 0
        else:
            out[name] = r.uniform(-1, 1, shape).astype("float32")
            if name == "x" and len(shape) == 3:
                out[name][0, -2:] = 0
    return out


def pack(path):
    """The same archive with deflated entries, which is smaller and as good to Keras."""
    with zipfile.ZipFile(path) as z:
        entries = [(n, z.read(n)) for n in z.namelist()]
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as z:
        for name, data in entries:
            z.writestr(zipfile.ZipInfo(name), data, zipfile.ZIP_DEFLATED)


def save(model, folder, name, endings):
    x = values(model, 7)
    y = model(list(x.values()) if len(x) > 1 else list(x.values())[0], training=False)
    names = getattr(model, "output_names", [model.layers[-1].name])
    named = y if isinstance(y, dict) else dict(zip(names, y if isinstance(y, (list, tuple)) else [y]))
    for ending in endings:
        stem = "%s/%s_%s_%s" % (folder, "old" if OLD else "new", name, ending)
        model.save(stem + "." + ending)
        if ending == "keras":
            pack(stem + ".keras")
        np.savez(stem + ".in.npz", **x)
        np.savez(stem + ".out.npz", **{k: np.array(v) for k, v in named.items()})


folder, wanted = sys.argv[1], sys.argv[2:]
for name, make in FAMILIES.items():
    if wanted and name not in wanted:
        continue
    keras.backend.clear_session()
    made = make()
    model = made if isinstance(made, keras.Model) else keras.Model(list(made[0].values()), made[1])
    first, second = ("h5", "keras") if OLD else ("keras", "h5")
    save(model, folder, name, [first, second] if name in BOTH else [first])
    print(name, len(model.outputs))
