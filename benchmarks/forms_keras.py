"""Networks of Keras, the six forms in which they are saved, and the peers that run them (forms.py)."""
import os
import shutil

import numpy as np


def networks():
    import keras
    L = keras.layers

    def cnn():
        x = keras.Input((32, 32, 3), 1, name="x")
        y = x
        for width in (32, 64, 128):
            y = L.Conv2D(width, 3, padding="same", activation="relu")(y)
            y = L.BatchNormalization()(y)
            y = L.MaxPooling2D()(y)
        y = L.Dense(128, activation="relu")(L.Flatten()(y))
        return keras.Model(x, L.Dense(10, activation="softmax")(y))

    def residual():
        def norm(y, width, kernel, stride=1):
            return L.BatchNormalization()(L.Conv2D(width, kernel, stride, padding="same", use_bias=False)(y))
        x = keras.Input((56, 56, 3), 1, name="x")
        y = L.MaxPooling2D(3, 2, padding="same")(L.ReLU()(norm(L.ZeroPadding2D(3)(x), 32, 7, 2)))
        for width, stride in ((32, 1), (64, 2), (128, 2)):
            skip = y if stride == 1 else norm(y, width, 1, stride)
            y = L.Add()([skip, norm(L.ReLU()(norm(y, width, 3, stride)), width, 3)])
            y = L.ReLU()(y)
        return keras.Model(x, L.Dense(10, activation="softmax")(L.GlobalAveragePooling2D()(y)))

    def unet():
        def pair(y, width):
            for _ in range(2):
                y = L.Activation("relu")(L.BatchNormalization()(L.Conv2D(width, 3, padding="same")(y)))
            return y
        x = keras.Input((64, 64, 3), 1, name="x")
        a = pair(x, 16)
        b = pair(L.MaxPooling2D()(a), 32)
        y = pair(L.MaxPooling2D()(b), 64)
        y = pair(L.Concatenate()([L.Conv2DTranspose(32, 2, 2, padding="same")(y), b]), 32)
        y = pair(L.Concatenate()([L.Conv2DTranspose(16, 3, 2, padding="same")(y), a]), 16)
        return keras.Model(x, L.Conv2D(1, 1, activation="sigmoid")(y))

    def mobile():
        x = keras.Input((112, 112, 3), 1, name="x")
        y = L.ReLU(6.0)(L.BatchNormalization()(L.Conv2D(16, 3, 2, padding="same", use_bias=False)(x)))
        for width, stride in ((24, 2), (24, 1), (40, 2), (40, 1), (80, 2), (80, 1), (112, 1)):
            skip, many = y, 4 * y.shape[-1]
            y = L.ReLU(6.0)(L.BatchNormalization()(L.Conv2D(many, 1, use_bias=False)(y)))
            y = L.ReLU(6.0)(L.BatchNormalization()(L.DepthwiseConv2D(3, stride, padding="same", use_bias=False)(y)))
            y = L.BatchNormalization()(L.Conv2D(width, 1, use_bias=False)(y))
            y = L.Add()([skip, y]) if skip.shape == y.shape else y
        y = L.GlobalAveragePooling2D()(L.ReLU(6.0)(L.Conv2D(256, 1)(y)))
        return keras.Model(x, L.Dense(100, activation="softmax")(y))

    def squeezed():
        x = keras.Input((64, 64, 3), 1, name="x")
        y = L.Activation("hard_swish")(L.BatchNormalization()(L.Conv2D(16, 3, 2, padding="same", use_bias=False)(x)))
        for width, stride, kernel, act in ((24, 2, 3, "relu6"), (24, 1, 3, "relu6"), (40, 2, 5, "hard_swish"), (40, 1, 5, "hard_swish")):
            skip, many = y, 4 * y.shape[-1]
            y = L.Activation(act)(L.BatchNormalization()(L.Conv2D(many, 1, use_bias=False)(y)))
            y = L.DepthwiseConv2D(kernel, stride, padding="same", use_bias=False)(y)
            y = L.Activation(act)(L.BatchNormalization()(y))
            s = L.Conv2D(many // 4, 1, activation="relu")(L.GlobalAveragePooling2D(keepdims=True)(y))
            y = L.Multiply()([y, L.Conv2D(many, 1, activation="hard_sigmoid")(s)])
            y = L.BatchNormalization()(L.Conv2D(width, 1, use_bias=False)(y))
            y = L.Add()([skip, y]) if skip.shape == y.shape else y
        return keras.Model(x, L.Dense(10)(L.GlobalAveragePooling2D()(y)))

    def transformer():
        x = keras.Input((64, 128), 1, name="x")
        y = x
        for _ in range(2):
            y = L.LayerNormalization(epsilon=1e-5)(L.Add()([y, L.MultiHeadAttention(4, 32)(y, y)]))
            y = L.LayerNormalization(epsilon=1e-5)(L.Add()([y, L.Dense(128)(L.Dense(512, activation="relu")(y))]))
        return keras.Model(x, y)

    def lstm():
        x = keras.Input((50, 64), 1, name="x")
        y = L.LSTM(128, return_sequences=True)(x)
        return keras.Model(x, L.Dense(10)(L.LSTM(128)(y)))

    def tagger():
        x = keras.Input((40,), 1, dtype="int32", name="x")
        y = L.LSTM(64, return_sequences=True)(L.Embedding(100, 32)(x))
        return keras.Model(x, L.Dense(9, activation="softmax")(y))

    def text():
        x = keras.Input((40,), 1, dtype="int32", name="x")
        y = L.Bidirectional(L.LSTM(32, return_sequences=True))(L.Embedding(100, 32)(x))
        y = L.Bidirectional(L.LSTM(32))(y)
        return keras.Model(x, L.Dense(1, activation="sigmoid")(y))

    def gru():
        x = keras.Input((30, 24), 1, name="x")
        y = L.GRU(48, return_sequences=True)(x)
        y = L.GRU(48, return_sequences=True, go_backwards=True)(y)
        y = L.Bidirectional(L.GRU(32, reset_after=False), merge_mode="sum")(y)
        return keras.Model(x, L.Dense(4, activation="softmax")(y))

    def hard():
        x = keras.Input((20, 16), 1, name="x")
        y = L.LSTM(32, recurrent_activation="hard_sigmoid", return_sequences=True)(x)
        return keras.Model(x, L.Dense(4)(L.GRU(32, recurrent_activation="hard_sigmoid")(y)))

    def masked():
        x = keras.Input((20,), 1, dtype="int32", name="x")
        y = L.Bidirectional(L.LSTM(32, return_sequences=True))(L.Embedding(100, 16, mask_zero=True)(x))
        return keras.Model(x, L.Dense(4)(L.GRU(32)(y)))

    def states():
        a, b = keras.Input((20, 16), 1, name="a"), keras.Input((32,), 1, name="b")
        y, h, c = L.LSTM(32, return_state=True, return_sequences=True)(a, initial_state=[b, b])
        return keras.Model([a, b], [L.Dense(4)(y), L.Dense(5)(h), L.Dense(6)(c)])

    def audio():
        x = keras.Input((400, 8), 1, name="x")
        y = L.Conv1D(32, 5, 2, padding="same", activation="relu")(x)
        for rate in (1, 2, 4, 8):
            z = L.BatchNormalization()(L.Conv1D(32, 3, dilation_rate=rate, padding="causal", activation="relu")(y))
            y = L.Add()([y, L.Conv1D(32, 1)(z)])
        y = L.GlobalMaxPooling1D()(L.AveragePooling1D(4)(L.SeparableConv1D(48, 3, padding="same")(y)))
        return keras.Model(x, L.Dense(6, activation="softmax")(y))

    def frames():
        x = keras.Input((6, 16, 16, 2), 1, name="x")
        y = L.ConvLSTM2D(8, 3, padding="same", return_sequences=True)(x)
        y = L.ConvLSTM2D(8, 3, padding="same")(L.BatchNormalization()(y))
        return keras.Model(x, L.Conv2D(1, 3, padding="same", activation="sigmoid")(y))

    def several():
        a, b = keras.Input((24,), 1, name="a"), keras.Input((16,), 1, name="b")
        y = L.Concatenate()([L.BatchNormalization()(L.Dense(64, activation="relu")(a)), L.Dense(32, activation="elu")(b)])
        y = L.Dropout(0.5)(L.BatchNormalization()(L.Dense(64, activation="swish")(y)))
        return keras.Model([a, b], [L.Dense(4, activation="softmax")(y), L.Dense(3, activation="tanh")(L.LeakyReLU()(y))])

    return {f.__name__: f for f in (cnn, residual, unet, mobile, squeezed, transformer, lstm, tagger, text, gru, hard, masked, states, audio,
                                    frames, several)}


def given(rng, tensor):
    shape = [d or 1 for d in tensor.shape]
    if tensor.dtype == "int32":
        x = rng.integers(1, 100, shape)
        x[:, 2 * x.shape[1] // 3:] = 0  # what Embedding masks
        return x.astype(np.int32)
    return rng.uniform(-1, 1, shape).astype(np.float32)


def write(make, stem):
    """The forms, .in.npz by the inputs' names, .out.npz in the order of the outputs."""
    import keras
    import tensorflow as tf
    import tf2onnx
    from tensorflow.python.framework.convert_to_constants import convert_variables_to_constants_v2
    keras.backend.clear_session()
    keras.utils.set_random_seed(3)
    net = make()
    rng = np.random.default_rng(5)
    for w in net.weights:  # normalization and biases do something
        if len(w.shape) == 1 or w.name == "bias":
            w.assign(rng.uniform(0.5, 1.5, w.shape))
    x = {t.name: given(rng, t) for t in net.inputs}
    spec = [tf.TensorSpec(v.shape, v.dtype, name=k) for k, v in x.items()]
    f = tf.function(lambda *x: net(list(x), training=False))
    frozen = convert_variables_to_constants_v2(f.get_concrete_function(*spec))
    net.save(stem + ".keras")
    net.save(stem + ".h5")
    shutil.rmtree(stem + ".saved", ignore_errors=True)
    net.export(stem + ".saved", verbose=False)
    tf.io.write_graph(frozen.graph.as_graph_def(), *os.path.split(stem + ".pb"), as_text=False)
    with open(stem + ".tflite", "wb") as out:
        out.write(tf.lite.TFLiteConverter.from_concrete_functions([f.get_concrete_function(*spec)]).convert())
    tf2onnx.convert.from_function(f, input_signature=spec, opset=17, output_path=stem + ".onnx")
    y = net(list(x.values()), training=False)
    np.savez(stem + ".in.npz", **x)
    np.savez(stem + ".out.npz", *[np.array(v) for v in (y if isinstance(y, (list, tuple)) else [y])])


def load_litert(stem, x):
    from ai_edge_litert.interpreter import Interpreter
    it = Interpreter(stem + ".tflite", num_threads=1)
    it.allocate_tensors()
    for d in it.get_input_details():
        it.set_tensor(d["index"], x[d["name"].split(":")[0].removeprefix("serving_default_")])

    def run():
        it.invoke()
        return [it.get_tensor(d["index"]) for d in it.get_output_details()]
    return run


def load_tensorflow(stem, x):
    import tensorflow as tf
    g = tf.compat.v1.GraphDef()
    with open(stem + ".pb", "rb") as f:
        g.ParseFromString(f.read())
    many = len(np.load(stem + ".out.npz").files)
    out = [n.name + ":0" for n in g.node if n.op == "Identity"][-many:]
    f = tf.compat.v1.wrap_function(lambda: tf.graph_util.import_graph_def(g, name=""), []).prune([k + ":0" for k in x], out)
    x = [tf.constant(v) for v in x.values()]
    return lambda: f(*x)


def begin():
    os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
    import tensorflow as tf
    tf.config.threading.set_intra_op_parallelism_threads(1)
    tf.config.threading.set_inter_op_parallelism_threads(1)
