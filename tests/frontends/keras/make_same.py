#!/usr/bin/env python3
"""Writes same/: networks as .keras, .h5, .saved (a SavedModel), .pb, .tflite and .onnx, with inputs and results (frontends.keras.same).

    make_same.py FOLDER [NAME..]      needs Keras 3 with TensorFlow, and tf2onnx
"""

import os
import sys

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import keras
import numpy as np
import tensorflow as tf
import tf2onnx
from tensorflow.python.framework.convert_to_constants import convert_variables_to_constants_v2

L = keras.layers
folder, wanted = sys.argv[1], sys.argv[2:]


def plain():
    x = keras.Input((12, 12, 3), name="picture")
    y = L.Conv2D(8, 3, padding="same", activation="relu")(x)
    y = L.MaxPooling2D()(y)
    y = L.Conv2D(16, 3, activation="relu")(y)
    y = L.Flatten()(y)
    return keras.Model(x, L.Dense(5, activation="softmax", name="digit")(y))


def residual():
    x = keras.Input((12, 12, 8), name="picture")
    y = L.Conv2D(8, 3, padding="same", activation="relu")(x)
    y = L.Conv2D(8, 3, padding="same")(y)
    y = L.ReLU()(L.Add()([x, y]))
    y = L.DepthwiseConv2D(3, activation="relu")(y)
    y = L.Conv2D(16, 1)(y)
    y = L.GlobalAveragePooling2D()(y)
    return keras.Model(x, L.Dense(4, name="class")(y))


def rows():
    x = keras.Input((10,), name="cells")
    y = L.Dense(16, activation="relu")(x)
    return keras.Model(x, L.Dense(3, activation="sigmoid", name="odds")(y))


def block():
    x = keras.Input((64, 16), name="words")
    y = L.LayerNormalization(epsilon=1e-5)(L.Add()([x, L.MultiHeadAttention(2, 8)(x, x)]))
    z = L.Dense(16)(L.Dense(32, activation="relu")(y))
    return keras.Model(x, L.LayerNormalization(epsilon=1e-5, name="block")(L.Add()([y, z])))


def steps():
    x = keras.Input((6, 4), name="steps")
    y = L.LSTM(8, return_sequences=True)(x)
    y = L.GRU(8, return_sequences=True)(y)
    y = L.GRU(8, reset_after=False, return_sequences=True)(y)
    return keras.Model(x, L.Dense(3, name="last")(L.SimpleRNN(8)(y)))


def words():
    x = keras.Input((7,), dtype="int32", name="words")
    y = L.Bidirectional(L.LSTM(4, return_sequences=True))(L.Embedding(9, 6)(x))
    y = L.GRU(4, return_sequences=True, go_backwards=True)(y)
    y = L.Bidirectional(L.LSTM(4))(y)
    return keras.Model(x, L.Dense(3, activation="softmax", name="kind")(y))


def squeezed():
    x = keras.Input((11, 11, 3), name="picture")
    y = L.Conv2D(8, 3, 2, activation="hard_swish")(L.ZeroPadding2D(1)(x))
    z = L.Conv2D(4, 1, activation="relu")(L.GlobalAveragePooling2D(keepdims=True)(y))
    y = L.Multiply()([y, L.Conv2D(8, 1, activation="hard_sigmoid")(z)])
    y = L.Conv2DTranspose(4, 2, 2)(L.BatchNormalization()(L.DepthwiseConv2D(3, padding="same", use_bias=False)(y)))
    return keras.Model(x, L.Conv2D(1, 1, activation="sigmoid", name="mask")(y))


for name, make in (("plain", plain), ("residual", residual), ("rows", rows), ("block", block), ("steps", steps), ("words", words),
                   ("squeezed", squeezed)):
    if wanted and name not in wanted:
        continue
    keras.backend.clear_session()
    keras.utils.set_random_seed(3)
    m = make()
    for w in m.weights:
        w.assign(np.random.uniform(0.1 if "variance" in w.name else -0.5, 0.5, w.shape))
    stem = folder + "/" + name
    shape = (1,) + m.inputs[0].shape[1:]
    x = np.random.uniform(-1, 1, shape).astype("float32")
    if m.inputs[0].dtype == "int32":
        x = np.arange(-4, -4 + x.size, dtype="int32").reshape(shape)  # rows from the end, too
    m.save(stem + ".keras")
    m.save(stem + ".h5")
    f = tf.function(lambda t: m(t, training=False))
    spec = [tf.TensorSpec(shape, x.dtype, name=m.inputs[0].name)]
    frozen = convert_variables_to_constants_v2(f.get_concrete_function(*spec))
    tf.io.write_graph(frozen.graph.as_graph_def(), folder, name + ".pb", as_text=False)
    m.export(stem + ".saved", verbose=False, input_signature=spec)
    c = tf.lite.TFLiteConverter.from_concrete_functions([frozen])
    with open(stem + ".tflite", "wb") as out:
        out.write(c.convert())
    tf2onnx.convert.from_function(f, input_signature=spec, opset=15, output_path=stem + ".onnx")
    np.savez(stem + ".in.npz", **{m.inputs[0].name: x})
    np.savez(stem + ".out.npz", **{m.output_names[0]: np.array(m(x, training=False))})
