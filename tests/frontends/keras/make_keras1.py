#!/usr/bin/env python3
"""Writes models/keras1_*.h5 in the layout of Keras 1.2, which no Python of today runs, and theano_*.h5 of Keras 2 with the
kernels of Theano (frontends.keras.run).

    make_keras1.py FOLDER        with tf_keras and h5py

The files are written by hand: settings by their names of then, weights as layers had them then.  The results are tf_keras's: each
layer is built of its settings of now and takes the weights by way of tf_keras's own conversion of files of Keras 1.
"""

import json
import os
import sys

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import h5py
import numpy as np
import tf_keras
from tf_keras.src.saving.legacy.hdf5_format import preprocess_weights_for_loading

L = tf_keras.layers
FOLDER = sys.argv[1]
random = np.random.RandomState(5)


def some(*shape, least=-0.6):
    return random.uniform(least, least + 1.2, shape).astype("float32")


class Model:
    """A Functional model of Keras 1, and the same of tf_keras."""

    def __init__(self, **inputs):
        self.layers, self.weights, self.outputs = [], {}, {}
        self.tensors = {}
        for name, (shape, dtype) in inputs.items():
            config = {"batch_input_shape": [None, *shape], "input_dtype": dtype, "name": name, "sparse": False}
            self.layers.append({"class_name": "InputLayer", "config": config, "inbound_nodes": [], "name": name})
            self.tensors[name] = tf_keras.Input(shape, name=name, dtype=dtype)
        self.inputs = list(inputs)

    def add(self, old, name, of, now, arrays=(), output=True, theano=False, **config):
        """A layer of class `old` on the results `of`; `now`: of tf_keras, or a function of tensors."""
        of = [of] if isinstance(of, str) else of
        config = {"name": name, "trainable": True, **config}
        node = [[[f, 0, 0] for f in of]]
        self.layers.append({"class_name": old, "config": config, "inbound_nodes": node, "name": name})
        given = [self.tensors[f] for f in of]
        y = now(given if len(given) > 1 else given[0])
        self.weights[name] = list(arrays)
        if arrays:
            if theano:
                now.data_format = "channels_first"
            taken = preprocess_weights_for_loading(now, list(arrays), "1", "tensorflow")
            if theano:
                now.data_format = "channels_last"
            now.set_weights(taken)
        self.tensors[name] = y
        if output:
            self.outputs[name] = y

    def save(self, name, x, sequential=False):
        ends = [[o, 0, 0] for o in self.outputs]
        config = {
            "name": "model_1",
            "layers": self.layers,
            "input_layers": [[i, 0, 0] for i in self.inputs],
            "output_layers": ends,
        }
        if sequential:
            first, *rest = self.layers
            rest[0]["config"]["batch_input_shape"] = first["config"]["batch_input_shape"]
            config = [{"class_name": l["class_name"], "config": l["config"]} for l in rest]
        stem = "%s/keras1_%s_h5" % (FOLDER, name)
        with h5py.File(stem + ".h5", "w") as f:
            f.attrs["keras_version"] = b"1.2.2"
            text = json.dumps({"class_name": "Sequential" if sequential else "Model", "config": config})
            f.attrs["model_config"] = text.encode()
            g = f.create_group("model_weights")
            g.attrs["layer_names"] = [l["config"]["name"].encode() for l in self.layers]
            for layer, weights in self.weights.items():
                at = g.create_group(layer)
                names = ["%s_%d:0" % (layer, i) for i in range(len(weights))]
                at.attrs["weight_names"] = [n.encode() for n in names]
                for n, w in zip(names, weights):
                    at.create_dataset(n, data=w)
        model = tf_keras.Model([self.tensors[i] for i in self.inputs], list(self.outputs.values()))
        y = model([x[i] for i in self.inputs] if len(x) > 1 else list(x.values())[0], training=False)
        y = y if isinstance(y, (list, tuple)) else [y]
        given = {self.layers[1]["config"]["name"] + "_input": v for v in x.values()} if sequential else x
        np.savez(stem + ".in.npz", **given)
        np.savez(stem + ".out.npz", **{k: np.array(v) for k, v in zip(self.outputs, y)})
        print(name, len(y))


REGULAR = dict(W_regularizer=None, b_regularizer=None, activity_regularizer=None, W_constraint=None, b_constraint=None)


def convolutions():
    m = Model(a=((9, 4), "float32"), b=((7, 8, 3), "float32"), c=((4, 5, 4, 2), "float32"))
    line = dict(init="glorot_uniform", activation="relu", bias=True, **REGULAR)
    m.add("Convolution1D", "conv1", "a", L.Conv1D(5, 3, strides=2, padding="same", activation="relu"),
          [some(3, 1, 4, 5), some(5)], nb_filter=5, filter_length=3, border_mode="same", subsample_length=2, **line)  # fmt: skip
    m.add("Convolution1D", "first_conv1", "a", L.Conv1D(5, 3, activation="relu"),
          [some(5, 4, 3, 1), some(5)], nb_filter=5, filter_length=3, border_mode="valid", subsample_length=1, **line)  # fmt: skip
    m.add("AtrousConvolution1D", "far1", "a", L.Conv1D(5, 3, dilation_rate=2, activation="relu"),
          [some(3, 1, 4, 5), some(5)], nb_filter=5, filter_length=3, border_mode="valid", subsample_length=1, atrous_rate=2,
          **line)  # fmt: skip
    image = dict(init="he_normal", activation="tanh", bias=True, dim_ordering="tf", **REGULAR)
    m.add("Convolution2D", "conv2", "b", L.Conv2D(6, (3, 2), strides=(2, 1), padding="same", activation="tanh"),
          [some(3, 2, 3, 6), some(6)], nb_filter=6, nb_row=3, nb_col=2, border_mode="same", subsample=[2, 1], **image)  # fmt: skip
    m.add("Convolution2D", "plain2", "b", L.Conv2D(4, 3, activation="tanh", use_bias=False),
          [some(3, 3, 3, 4)], nb_filter=4, nb_row=3, nb_col=3, border_mode="valid", subsample=[1, 1],
          **{**image, "bias": False})  # fmt: skip
    m.add("AtrousConvolution2D", "far2", "b", L.Conv2D(4, 3, dilation_rate=2, activation="tanh"),
          [some(3, 3, 3, 4), some(4)], nb_filter=4, nb_row=3, nb_col=3, border_mode="valid", subsample=[1, 1],
          atrous_rate=[2, 2], **image)  # fmt: skip
    # The layer says which of the sizes comes out that a convolution takes to that of its input.
    for name, mode, size, extra in (("trans", "valid", (15, 17), None), ("trans_more", "valid", (16, 18), 1),
                                    ("trans_same", "same", (13, 15), 0), ("trans_all", "same", (14, 16), None)):  # fmt: skip
        m.add("Deconvolution2D", name, "b",
              L.Conv2DTranspose(4, 3, strides=2, padding=mode, activation="tanh", output_padding=extra),
              [some(3, 3, 3, 4), some(4)], nb_filter=4, nb_row=3, nb_col=3, border_mode=mode, subsample=[2, 2],
              output_shape=[None, *size, 4], **image)  # fmt: skip
    m.add("SeparableConvolution2D", "sep2", "b", L.SeparableConv2D(5, 3, depth_multiplier=2, activation="tanh"),
          [some(3, 3, 3, 2), some(1, 1, 6, 5), some(5)], nb_filter=5, nb_row=3, nb_col=3, depth_multiplier=2,
          border_mode="valid", subsample=[1, 1], depthwise_regularizer=None, pointwise_regularizer=None,
          depthwise_constraint=None, pointwise_constraint=None, b_regularizer=None, activity_regularizer=None,
          b_constraint=None, init="glorot_uniform", activation="tanh", bias=True, dim_ordering="tf")  # fmt: skip
    m.add("Convolution3D", "conv3", "c", L.Conv3D(3, (2, 3, 2), activation="tanh"),
          [some(2, 3, 2, 2, 3), some(3)], nb_filter=3, kernel_dim1=2, kernel_dim2=3, kernel_dim3=2, border_mode="valid",
          subsample=[1, 1, 1], **image)  # fmt: skip
    pool = dict(pool_size=[2, 2], strides=[2, 2], dim_ordering="tf")
    m.add("MaxPooling1D", "max1", "a", L.MaxPooling1D(2, 2), stride=2, pool_length=2, border_mode="valid")
    m.add("AveragePooling1D", "mean1", "a", L.AveragePooling1D(3, 2, "same"), stride=2, pool_length=3, border_mode="same")
    m.add("MaxPooling2D", "max2", "b", L.MaxPooling2D(2, 2, "same"), border_mode="same", **pool)
    m.add("AveragePooling2D", "mean2", "b", L.AveragePooling2D(2, 2), border_mode="valid", **pool)
    m.add("GlobalAveragePooling2D", "all2", "b", L.GlobalAveragePooling2D(), dim_ordering="tf")
    m.add("GlobalMaxPooling1D", "all1", "a", L.GlobalMaxPooling1D())
    m.add("UpSampling1D", "up1", "a", L.UpSampling1D(3), length=3)
    m.add("UpSampling2D", "up2", "b", L.UpSampling2D((2, 3)), size=[2, 3], dim_ordering="tf")
    m.add("ZeroPadding1D", "zeros1", "a", L.ZeroPadding1D(2), padding=2)
    m.add("ZeroPadding2D", "zeros2", "b", L.ZeroPadding2D((1, 2)), padding=[1, 2], dim_ordering="tf")
    m.add("Cropping2D", "cropped", "b", L.Cropping2D(((1, 0), (2, 1))), cropping=[[1, 0], [2, 1]], dim_ordering="tf")
    norm = dict(mode=0, epsilon=0.001, momentum=0.99, gamma_regularizer=None, beta_regularizer=None)
    m.add("BatchNormalization", "norm", "b", L.BatchNormalization(), [some(3), some(3), some(3), some(3, least=0.5)],
          axis=-1, **norm)  # fmt: skip
    m.save("convolutions", {"a": some(2, 9, 4), "b": some(2, 7, 8, 3), "c": some(2, 4, 5, 4, 2)})


def gates(n, i, h):
    return [w for _ in range(n) for w in (some(i, h), some(h, h), some(h))]


def recurrent():
    m = Model(s=((5, 6), "float32"), i=((6,), "int32"), v=((4, 5, 6, 2), "float32"))
    rnn = dict(output_dim=4, init="glorot_uniform", inner_init="orthogonal", activation="tanh", return_sequences=True,
               go_backwards=False, stateful=False, unroll=False, consume_less="cpu", W_regularizer=None, U_regularizer=None,
               b_regularizer=None, dropout_W=0.2, dropout_U=0.1, input_dim=6, input_length=None)  # fmt: skip
    long = dict(rnn, forget_bias_init="one", inner_activation="hard_sigmoid")
    now = dict(return_sequences=True, recurrent_activation="hard_sigmoid")
    m.add("LSTM", "lstm", "s", L.LSTM(4, **now), gates(4, 6, 4), **long)
    m.add("LSTM", "lstm_last", "s", L.LSTM(4, recurrent_activation="sigmoid", go_backwards=True), gates(4, 6, 4),
          **dict(long, inner_activation="sigmoid", return_sequences=False, go_backwards=True, consume_less="mem"))  # fmt: skip
    m.add("LSTM", "lstm_one", "s", L.LSTM(4, **now), [some(6, 16), some(4, 16), some(16)], **dict(long, consume_less="gpu"))
    short = dict(rnn, inner_activation="hard_sigmoid")
    m.add("GRU", "gru", "s", L.GRU(4, reset_after=False, **now), gates(3, 6, 4), **short)
    m.add("GRU", "gru_sigmoid", "s", L.GRU(4, reset_after=False, return_sequences=True), gates(3, 6, 4),
          **dict(short, inner_activation="sigmoid"))  # fmt: skip
    m.add("GRU", "gru_one", "s", L.GRU(4, reset_after=False, **now), [some(6, 12), some(4, 12), some(12)],
          **dict(short, consume_less="gpu"))  # fmt: skip
    m.add("SimpleRNN", "rnn", "s", L.SimpleRNN(4, return_sequences=True), gates(1, 6, 4), **rnn)
    inner = {"class_name": "LSTM", "config": dict(long, name="lstm_inside", trainable=True)}
    m.add("Bidirectional", "both", "s", L.Bidirectional(L.LSTM(4, **now)), gates(8, 6, 4), layer=inner, merge_mode="concat")
    dense = dict(output_dim=3, init="glorot_uniform", activation="linear", bias=True, input_dim=None, **REGULAR)
    m.add("TimeDistributed", "each", "s", L.TimeDistributed(L.Dense(3)), [some(6, 3), some(3)],
          layer={"class_name": "Dense", "config": dict(dense, name="dense_inside", trainable=True)})  # fmt: skip
    m.add("TimeDistributedDense", "each_dense", "s", L.Dense(3), [some(6, 3), some(3)], **dict(dense, input_length=None))
    table = dict(input_dim=9, output_dim=6, init="uniform", input_length=6, W_regularizer=None, activity_regularizer=None,
                 W_constraint=None, dropout=0.0)  # fmt: skip
    m.add("Embedding", "rows", "i", L.Embedding(9, 6), [some(9, 6)], mask_zero=False, **table)
    m.add("Embedding", "masked", "i", L.Embedding(9, 6, mask_zero=True), [some(9, 6)], output=False, mask_zero=True, **table)
    m.add("LSTM", "lstm_masked", "masked", L.LSTM(4, **now), gates(4, 6, 4), **long)
    kernels = [w for _ in range(4) for w in (some(3, 3, 2, 3), some(3, 3, 3, 3), some(3))]
    image = {k: v for k, v in long.items() if k not in ("output_dim", "consume_less", "unroll", "input_dim", "input_length")}
    m.add("ConvLSTM2D", "conv_lstm", "v", L.ConvLSTM2D(3, 3, padding="same", **now), kernels, nb_filter=3, nb_row=3, nb_col=3,
          border_mode="same", subsample=[1, 1], dim_ordering="tf", **image)  # fmt: skip
    ids = random.randint(1, 9, (2, 6)).astype("int32")
    ids[0, 4:] = 0
    m.save("recurrent", {"s": some(2, 5, 6), "i": ids, "v": some(2, 4, 5, 6, 2)})


def merged():
    m = Model(x=((6,), "float32"), y=((5,), "float32"), s=((3, 4), "float32"))
    dense = dict(init="uniform", bias=True, **REGULAR)
    m.add("Dense", "left", "x", L.Dense(4, activation="hard_sigmoid"), [some(6, 4), some(4)], output_dim=4, input_dim=6,
          activation="hard_sigmoid", **dense)  # fmt: skip
    m.add("Dense", "right", "y", L.Dense(4, activation="softplus"), [some(5, 4), some(4)], output_dim=4, input_dim=5,
          activation="softplus", **dense)  # fmt: skip
    merge = dict(mode_type="raw", output_shape=None, output_shape_type="raw", output_mask=None, output_mask_type="raw",
                 arguments={})  # fmt: skip
    for mode, now in (("sum", L.Add()), ("mul", L.Multiply()), ("ave", L.Average()), ("max", L.Maximum()),
                      ("concat", L.Concatenate()), ("dot", L.Dot(-1))):  # fmt: skip
        m.add("Merge", mode, ["left", "right"], now, mode=mode, concat_axis=-1, dot_axes=-1, **merge)
    m.add("Merge", "dot_rows", ["s", "s"], L.Dot((1, 1)), mode="dot", concat_axis=-1, dot_axes=[1, 1], **merge)
    m.add("Dropout", "dropped", "concat", L.Dropout(0.5), p=0.5)
    m.add("GaussianNoise", "noisy", "concat", L.GaussianNoise(0.1), sigma=0.1)
    m.add("LeakyReLU", "leaky", "x", L.LeakyReLU(0.2), alpha=0.2)
    m.add("ELU", "elu", "x", L.ELU(0.7), alpha=0.7)
    m.add("PReLU", "prelu", "s", L.PReLU(), [some(3, 4)], init="zero")
    m.add("ThresholdedReLU", "threshold", "x", L.ThresholdedReLU(0.1), theta=0.1)
    m.add("RepeatVector", "repeated", "x", L.RepeatVector(3), n=3)
    m.add("Permute", "permuted", "s", L.Permute((2, 1)), dims=[2, 1])
    m.add("Reshape", "reshaped", "s", L.Reshape((2, 6)), target_shape=[2, 6])
    m.add("Flatten", "flat", "s", L.Flatten())
    m.add("Masking", "mask", "s", L.Masking(0.0), mask_value=0.0)
    m.save("merged", {"x": some(2, 6), "y": some(2, 5), "s": some(2, 3, 4)})


def theano_order():
    """Images with channels first, weights [O, I, H, W]; tf_keras computes it with channels last."""
    m = Model(image=((3, 8, 7), "float32"))

    image = dict(init="he_normal", activation="linear", bias=True, dim_ordering="th", **REGULAR)
    conv = L.Conv2D(4, (3, 2), padding="same")
    before = m.tensors["image"]
    m.tensors["image"] = L.Permute((2, 3, 1))(before)
    m.add("Convolution2D", "conv", "image", conv, [some(4, 3, 3, 2), some(4)], output=False, theano=True, nb_filter=4,
          nb_row=3, nb_col=2, border_mode="same", subsample=[1, 1], **image)  # fmt: skip
    m.add("BatchNormalization", "norm", "conv", L.BatchNormalization(), [some(4), some(4), some(4), some(4, least=0.5)],
          output=False, axis=1, mode=0, epsilon=0.001, momentum=0.99, gamma_regularizer=None, beta_regularizer=None)  # fmt: skip
    m.add("Activation", "relu", "norm", L.Activation("relu"), output=False, activation="relu")
    m.add("MaxPooling2D", "pool", "relu", L.MaxPooling2D(2), output=False, pool_size=[2, 2], strides=[2, 2],
          border_mode="valid", dim_ordering="th")  # fmt: skip
    m.add("Deconvolution2D", "trans", "pool", L.Conv2DTranspose(2, 3, strides=2), [some(2, 4, 3, 3), some(2)], output=False,
          theano=True, nb_filter=2, nb_row=3, nb_col=3, border_mode="valid", subsample=[2, 2],
          output_shape=[None, 2, 9, 7], **image)  # fmt: skip
    m.tensors["trans"] = L.Permute((3, 1, 2))(m.tensors["trans"])
    m.add("Flatten", "flat", "trans", L.Flatten(), output=False)
    m.add("Dropout", "drop", "flat", L.Dropout(0.5), output=False, p=0.5)
    m.add("Dense", "end", "drop", L.Dense(5, activation="softmax"), [some(126, 5), some(5)], output_dim=5, input_dim=126,
          init="uniform", activation="softmax", bias=True, **REGULAR)  # fmt: skip
    m.tensors["image"] = before
    m.save("theano_order", {"image": some(2, 3, 8, 7)}, sequential=True)


def theano_kernels():
    """Keras 2 with Theano, whose convolutions go backwards over their kernels."""
    x = tf_keras.Input((7, 8, 3), name="image")
    a = tf_keras.Input((9, 4), name="line")
    y = L.Conv2DTranspose(2, 3, name="trans")(L.Conv2D(4, (3, 2), name="conv2")(x))
    model = tf_keras.Model([x, a], [L.DepthwiseConv2D(2, name="deep")(y), L.Conv1D(3, 3, name="conv1")(a)])
    for w in model.weights:
        w.assign(some(*w.shape))
    stem = FOLDER + "/theano_kernels_h5"
    given = {"image": some(2, 7, 8, 3), "line": some(2, 9, 4)}
    model.save(stem + ".h5")
    with h5py.File(stem + ".h5", "r+") as f:
        for name in ("trans", "conv1", "conv2"):
            at = f["model_weights"][name]
            kernel = at[[n for n in at.attrs["weight_names"] if "kernel" in n][0]]
            spatial = (0,) if name == "conv1" else (0, 1)
            kernel[...] = np.flip(kernel[...], spatial)
        f.attrs["backend"] = f["model_weights"].attrs["backend"] = b"theano"
    np.savez(stem + ".in.npz", **given)
    np.savez(stem + ".out.npz", **dict(zip(("deep", "conv1"), [np.array(v) for v in model(list(given.values()))])))


convolutions()
recurrent()
merged()
theano_order()
theano_kernels()
