#!/usr/bin/env python3
"""Writes models/: control flow, functions, variables and SavedModels, with TensorFlow's results (needs the packages
tensorflow and keras).

    make_functions.py [NAME ..]        those alone

frozen_*: of one function, its control flow as functions; lowered_*: the same as Switch, Merge, Enter ..; v1_*: as TensorFlow 1
writes it; saved_*: folders.
"""
import os
import shutil
import sys

from record import HERE, MODELS, Model, model, np, raw, tf

FOLDER = os.path.join(HERE, "models")
v1 = tf.compat.v1


def freeze(name, f, *values):
    """The same function twice."""
    from tensorflow.python.framework.convert_to_constants import convert_variables_to_constants_v2
    args = [tf.TensorSpec(v.shape, v.dtype, name=f"x{i}") for i, v in enumerate(values)]
    for kind, lower in ("frozen", False), ("lowered", True):
        g = convert_variables_to_constants_v2(tf.function(f).get_concrete_function(*args), lower_control_flow=lower)
        results = g(*map(tf.constant, values))
        results = results if isinstance(results, (list, tuple)) else [results]
        path = os.path.join(FOLDER, f"{kind}_{name}")
        tf.io.write_graph(g.graph.as_graph_def(), FOLDER, f"{kind}_{name}.pb", as_text=False)
        np.savez(path + ".in.npz", **{x.name: v for x, v in zip(g.inputs, values)})
        np.savez(path + ".out.npz", **{x.name: r.numpy() for x, r in zip(g.outputs, results)})


def functions(f):
    MODELS[f.__name__] = lambda m: f(m, lambda g, *values: freeze(f.__name__, g, *values))
    f.eager = MODELS[f.__name__].eager = True
    return f


def saved(f):
    """A function of a Model that saves a folder and gives inputs and outputs."""
    def write(m):
        path = os.path.join(FOLDER, "saved_" + f.__name__)
        shutil.rmtree(path, ignore_errors=True)
        feeds, results = f(m, path)
        for extra in "assets", "fingerprint.pb", "keras_metadata.pb":
            extra = os.path.join(path, extra)
            if os.path.isdir(extra):
                os.rmdir(extra)
            elif os.path.exists(extra):
                os.remove(extra)
        np.savez(path + ".in.npz", **feeds)
        np.savez(path + ".out.npz", **{k: np.asarray(v) for k, v in results.items()})
    write.eager = True
    MODELS["saved_" + f.__name__] = write
    return f


# ---- functions ----------------------------------------------------------------------------------------

@functions
def branch(m, put):
    def f(x, go):
        y = tf.cond(go, lambda: tf.nn.relu(x) + 1, lambda: tf.exp(-x))
        a, b = tf.cond(tf.reduce_sum(x) > 0, lambda: (x * 2, y), lambda: (y, x - 1))
        return a * b
    put(f, m.f32(2, 3), np.bool_(True))


@functions
def nested(m, put):
    def f(x, i):
        def inner(v):
            return tf.cond(v > 0.5, lambda: v * 3, lambda: v - 1)
        return tf.switch_case(i, [lambda: inner(x[0]), lambda: tf.cond(x[0] > 0, lambda: inner(x[1]), lambda: x[1]),
                                  lambda: x[1] * 5])
    put(f, m.f32(2), np.int32(1))


@functions
def loop(m, put):
    w = tf.constant(m.f32(4, 4))
    def f(x, n):
        i, y = tf.while_loop(lambda i, y: tf.logical_and(i < n, tf.reduce_sum(tf.abs(y)) < 100.0),
                             lambda i, y: (i + 1, tf.tanh(tf.matmul(y, w)) * 1.5), [0, x])
        return y, i
    put(f, m.f32(2, 4), np.int32(5))


@functions
def loops(m, put):
    """A loop within a loop, and a branch within that."""
    def f(x):
        def row(i, total):
            def cell(j, t):
                t = tf.cond(x[i, j] > 0, lambda: t + x[i, j], lambda: t * 0.9)
                return j + 1, t
            return i + 1, tf.while_loop(lambda j, t: j < 4, cell, [0, total])[1]
        return tf.while_loop(lambda i, t: i < 3, row, [0, tf.constant(0.0)])[1]
    put(f, m.f32(3, 4))


@functions
def mapped(m, put):
    """Lists of tensors."""
    def f(x):
        y = tf.map_fn(lambda v: tf.nn.softmax(v * 2), x)
        z = tf.scan(lambda a, v: a * 0.5 + v, x, initializer=tf.zeros(3))
        return y + z
    put(f, m.f32(5, 3))


@functions
def array(m, put):
    def f(x):
        ta = tf.TensorArray(tf.float32, size=4)
        for i in range(4):
            ta = ta.write(3 - i, x[i] * i)
        ta = tf.while_loop(lambda i, t: i < 4, lambda i, t: (i + 1, t.write(i, t.read(i) + 1)), [0, ta])[1]
        split = tf.TensorArray(tf.float32, size=2).unstack(x[:2])
        return ta.stack() + ta.read(2), split.gather([1, 0]), tf.cast(ta.size(), tf.float32)
    put(f, m.f32(4, 3))


# ---- TensorFlow 1 -----------------------------------------------------------------------------------------

def old(f):
    def build(m):
        v1.disable_control_flow_v2()
        try:
            f(m)
        finally:
            v1.enable_control_flow_v2()
    MODELS["v1_" + f.__name__] = build
    return f


@old
def branches(m):
    x, go = m.input("x", m.f32(3, 4)), m.input("go", np.bool_(True))
    other = m.input("other", np.bool_(False))
    a, b = v1.cond(go, lambda: (x * 2, tf.reduce_sum(x)), lambda: (x - 1, tf.reduce_max(x)))
    y = v1.cond(go, lambda: v1.cond(other, lambda: a + 1, lambda: a * b), lambda: tf.constant(2.0, shape=[3, 4]))
    m.out("a", a)
    m.out("y", y)
    m.out("constant", v1.cond(other, lambda: tf.constant([1.0, 2.0]), lambda: tf.constant([3.0, 4.0])))
    m.out("known", v1.cond(tf.constant(True), lambda: x + 3, lambda: x))


@old
def while_loop(m):
    x, n = m.input("x", m.f32(2, 3)), m.input("n", np.int32(4))
    w = tf.constant(m.f32(3, 3))
    i, y = v1.while_loop(lambda i, y: i < n, lambda i, y: (i + 1, tf.tanh(tf.matmul(y, w) + x)), [tf.constant(0), x])
    m.out("i", i)
    m.out("y", y)
    m.out("nested", v1.while_loop(
        lambda i, t: i < 3,
        lambda i, t: (i + 1, v1.while_loop(lambda j, s: j < i + 1, lambda j, s: (j + 1, s * 0.5 + x), [tf.constant(0), t])[1]),
        [tf.constant(0), x])[1])
    m.out("in_branch", v1.cond(n > 2, lambda: v1.while_loop(lambda k, v: k < n, lambda k, v: (k + 1, v + x), [tf.constant(0), x])[1],
                               lambda: x))
    m.out("branch_in", v1.while_loop(lambda k, v: k < n, lambda k, v: (k + 1, v1.cond(k > 1, lambda: v * 2, lambda: v - 1)),
                                     [tf.constant(0), x])[1])


@old
def arrays(m):
    x = m.input("x", m.f32(4, 3))
    a = tf.TensorArray(tf.float32, 4, clear_after_read=False).unstack(x)
    b = tf.TensorArray(tf.float32, 4, clear_after_read=False)
    _, b, last = v1.while_loop(lambda i, b, s: i < 4,
                               lambda i, b, s: (i + 1, b.write(i, a.read(i) * 2 + s), s * 0.5 + a.read(i)),
                               [tf.constant(0), b, tf.zeros(3)])
    m.out("stack", b.stack())
    m.out("last", last)
    m.out("gather", b.gather([2, 0]))
    m.out("size", tf.identity(b.size()))
    m.out("read", b.read(1))
    m.out("concat", tf.TensorArray(tf.float32, 2).split(x, [2, 2]).concat())
    m.out("scatter", tf.TensorArray(tf.float32, 4).scatter([3, 1, 0, 2], x).stack())
    m.out("dynamic_rnn", v1.map_fn(lambda v: tf.reduce_sum(v) * v, x))


# ---- SavedModels ------------------------------------------------------------------------------------------

@saved
def variables(m, path):
    class Net(tf.Module):
        def __init__(self):
            super().__init__()
            self.w = tf.Variable(m.f32(3, 4), name="w")
            self.table = tf.Variable(m.f32(6, 3), name="table")
            self.steps = tf.Variable(3, name="steps")

        @tf.function
        def layer(self, x):
            return tf.nn.relu(tf.matmul(x, self.w))

        @tf.function(input_signature=[tf.TensorSpec([None, 3], tf.float32, name="x"), tf.TensorSpec([2], tf.int32, name="rows")])
        def __call__(self, x, rows):
            return {"y": self.layer(x + tf.cast(self.steps, tf.float32)), "rows": self.table.gather_nd(rows[:, None]),
                    "looked": tf.gather(self.table, rows)}
    net = Net()
    x, rows = m.f32(1, 3), np.int32([4, 1])
    tf.saved_model.save(net, path, signatures=net.__call__)
    return {"x": x, "rows": rows}, net(x, rows)


@saved
def signatures(m, path):
    """Of two; the results of the second lie in the folder."""
    class Net(tf.Module):
        def __init__(self):
            super().__init__()
            self.w = tf.Variable(m.f32(3, 4), name="w")

        @tf.function(input_signature=[tf.TensorSpec([2, 3], tf.float32, name="x")])
        def encode(self, x):
            return {"z": tf.nn.relu(tf.matmul(x, self.w))}

        @tf.function(input_signature=[tf.TensorSpec([2, 4], tf.float32, name="z")])
        def decode(self, z):
            return {"x": tf.matmul(z, self.w, transpose_b=True)}
    net = Net()
    x, z = m.f32(2, 3), m.f32(2, 4)
    tf.saved_model.save(net, path, signatures={"serving_default": net.encode, "decode": net.decode})
    np.savez(os.path.join(path, "decode_in.npz"), z=z)
    np.savez(os.path.join(path, "decode_out.npz"), x=net.decode(z)["x"].numpy())
    return {"x": x}, net.encode(x)


def saved_v1(m, path, resource):
    with tf.Graph().as_default(), v1.Session() as s:
        x = v1.placeholder(tf.float32, [None, 3], name="image")
        v = [v1.get_variable(n, initializer=m.f32(*shape), use_resource=resource)
             for n, shape in (("layer/w", (3, 4)), ("layer/b", (4,)), ("unused", (2,)))]
        y = tf.nn.softmax(tf.nn.bias_add(tf.matmul(x, v[0]), v[1]))
        s.run(v1.global_variables_initializer())
        v1.saved_model.simple_save(s, path, {"picture": x}, {"classes": y})
        value = m.f32(1, 3)
        return {"picture": value}, {"classes": s.run(y, {x: value})}


@saved
def v1_references(m, path):
    return saved_v1(m, path, False)


@saved
def v1_resources(m, path):
    return saved_v1(m, path, True)


def keras_model(layers, *shape):
    import keras
    keras.utils.set_random_seed(7)
    x = keras.Input(shape, batch_size=1, name="x")
    y = x
    for layer in layers(keras.layers):
        y = layer(y)
    return keras.Model(x, y)


def export(net, path, value):
    net.export(path, verbose=False)
    y = net(value)
    return {"x": value}, {"output_0": y}


def table(default):
    return tf.lookup.StaticHashTable(tf.lookup.KeyValueTensorInitializer(np.int64([1, 2, 5]), np.float32([10, 20, 50])), default)


@saved
def table_v2(m, path):
    class Net(tf.Module):
        def __init__(self):
            super().__init__()
            self.table = table(-1.0)

        @tf.function(input_signature=[tf.TensorSpec([2, 3], tf.int64, name="x")])
        def look(self, x):
            return {"y": self.table.lookup(x), "size": self.table.size()}
    net = Net()
    tf.saved_model.save(net, path, signatures=net.look)
    x = np.int64([[1, 2, 3], [5, -6, 1]])
    return {"x": x}, net.look(tf.constant(x))


@saved
def table_v1(m, path):
    x = np.int64([[1, 2, 3], [5, -6, 1]])
    with tf.Graph().as_default(), v1.Session() as s:
        p = v1.placeholder(tf.int64, [2, 3], name="x")
        y = table(7.0).lookup(p)
        s.run(v1.tables_initializer())
        v1.saved_model.simple_save(s, path, {"x": p}, {"y": y}, legacy_init_op=v1.tables_initializer())
        return {"x": x}, {"y": s.run(y, {p: x})}


@saved
def keras_images(m, path):
    net = keras_model(lambda L: [L.Conv2D(4, 3, padding="same"), L.BatchNormalization(), L.ReLU(max_value=6.0), L.MaxPooling2D(),
                                 L.SeparableConv2D(6, 3, activation="swish"), L.UpSampling2D(interpolation="bilinear"),
                                 L.Conv2DTranspose(3, 3, strides=2, padding="same"), L.PReLU(shared_axes=[1, 2]), L.GroupNormalization(3),
                                 L.ZeroPadding2D(1), L.Cropping2D(1), L.GlobalAveragePooling2D(), L.LayerNormalization(),
                                 L.Dense(5, activation="gelu"), L.Dropout(0.5), L.Softmax()], 8, 8, 3)
    return export(net, path, m.f32(1, 8, 8, 3))


@saved
def keras_recurrent(m, path):
    net = keras_model(lambda L: [L.Bidirectional(L.LSTM(4, return_sequences=True)), L.GRU(3, return_sequences=True),
                                 L.Conv1D(4, 2, padding="causal"), L.SimpleRNN(5)], 6, 3)
    return export(net, path, m.f32(1, 6, 3))


@saved
def keras_attention(m, path):
    import keras
    keras.utils.set_random_seed(7)
    L = keras.layers
    t = keras.Input((7,), batch_size=1, dtype="int32", name="x")
    y = L.Embedding(11, 8)(t)
    y = L.Add()([y, L.MultiHeadAttention(2, 4)(y, y, use_causal_mask=True)])
    y = L.LayerNormalization()(y)
    y = L.EinsumDense("abc,cd->abd", output_shape=(None, 6), bias_axes="d", activation="relu")(y)
    net = keras.Model(t, L.GlobalMaxPooling1D()(y))
    return export(net, path, m.ints(0, 11, 1, 7))


def main():
    names = sys.argv[1:] or list(MODELS)
    for name in names:
        m = Model(name)
        if getattr(MODELS[name], "eager", False):
            MODELS[name](m)
            continue
        with m.graph.as_default():
            MODELS[name](m)
        m.record(FOLDER)


main()
