"""Graphs of TensorFlow 1 with the results that TensorFlow itself gives: NAME.pb, NAME.in.npz, NAME.out.npz."""
import os
import zlib

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
os.environ["TF_ENABLE_ONEDNN_OPTS"] = "0"
import numpy as np
import tensorflow as tf

HERE = os.path.dirname(os.path.abspath(__file__))
MODELS = {}
raw = tf.raw_ops


def model(f):
    """A function of a Model; each has a random stream of its own, so that a new one changes no other."""
    MODELS[f.__name__] = f
    return f


class Model:
    def __init__(self, name):
        self.name = name
        self.random = np.random.default_rng(zlib.crc32(name.encode()))
        self.feeds, self.outs = {}, []
        self.instead = {}  # names to values of other inputs than those that are fed
        self.graph = tf.Graph()

    def f32(self, *shape, lo=-1, hi=1):
        return self.random.uniform(lo, hi, shape).astype(np.float32)

    def ints(self, lo, hi, *shape, dtype=np.int32):
        return self.random.integers(lo, hi, shape).astype(dtype)

    def input(self, name, value, shape=None):
        value = np.asarray(value)
        x = tf.compat.v1.placeholder(value.dtype, shape or value.shape, name=name)
        self.feeds[x] = value
        return x

    def out(self, name, *tensors):
        for i, t in enumerate(tensors):
            self.outs.append(tf.identity(t, name=name if len(tensors) == 1 else f"{name}_{i}"))

    def record(self, folder, text=False):
        with tf.compat.v1.Session(graph=self.graph) as s:
            results = s.run(self.outs, self.feeds)
        path = os.path.join(folder, self.name)
        tf.io.write_graph(self.graph.as_graph_def(), folder, self.name + (".pbtxt" if text else ".pb"), as_text=text)
        np.savez(path + ".in.npz", **(self.instead or {x.name: v for x, v in self.feeds.items()}))
        np.savez(path + ".out.npz", **{x.name: np.asarray(v) for x, v in zip(self.outs, results)})
