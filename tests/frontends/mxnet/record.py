"""Graphs with the results that MXNet gives: NAME-symbol.json, NAME-0000.params, NAME.in.npz, NAME.out.npz."""
import os
import sys
import zlib

os.environ.setdefault("MXNET_MKLDNN_ENABLED", "0")
os.environ["MXNET_SUBGRAPH_BACKEND"] = "NONE"
import mxnet as mx
import numpy as np

S, C, I = mx.sym, mx.sym.contrib, mx.sym._internal
MODELS = {}


def model(f):
    """A function of a Model; each has a random stream of its own, so that a new one changes no other."""
    MODELS[f.__name__] = f
    return f


class Model:
    def __init__(self, name):
        self.name = name
        self.random = np.random.default_rng(zlib.crc32(name.encode()))
        self.inputs, self.weights, self.outs = {}, {}, []

    def f32(self, *shape, lo=-1, hi=1):
        return self.random.uniform(lo, hi, shape).astype(np.float32)

    def ints(self, lo, hi, *shape, dtype=np.float32):
        return self.random.integers(lo, hi, shape).astype(dtype)

    def x(self, name, value, weights=False):
        """A variable of that value: an input, or a weight."""
        value = np.asarray(value)
        (self.weights if weights else self.inputs)[name] = value
        return S.Variable(name, **({} if weights else {"shape": value.shape, "dtype": value.dtype}))

    def w(self, name, value):
        return self.x(name, value, True)

    def out(self, *symbols):
        self.outs += symbols

    def layer(self, op, x, shapes, name, **attrs):
        """A node whose other operands are random weights of these shapes, called as MXNet would."""
        named = {role: self.w(f"{name}_{role}", self.f32(*shape, lo=0.1 if role.endswith("var") else -1)) for role, shape in shapes.items()}
        return op(x, **named, name=name, **attrs)

    def record(self, folder):
        graph = mx.sym.Group(self.outs)
        values = {**self.inputs, **self.weights}
        arrays = {k: mx.nd.array(v, dtype=v.dtype) for k, v in values.items()}
        states = set(graph.list_auxiliary_states())
        shapes, types = {k: v.shape for k, v in values.items()}, {k: v.dtype for k, v in values.items()}
        if set(graph.list_arguments()) <= set(arrays):
            e = graph.bind(mx.cpu(), {k: a for k, a in arrays.items() if k not in states}, grad_req="null",
                           aux_states={k: arrays[k] for k in states})
        else:  # there are labels, too
            e = graph.simple_bind(mx.cpu(), grad_req="null", type_dict={k: t for k, t in types.items() if k not in states},
                                  **{k: s for k, s in shapes.items() if k not in states})
            for k, a in arrays.items():
                (e.aux_dict if k in states else e.arg_dict)[k][:] = a
        results = e.forward(is_train=False)
        path = os.path.join(folder, self.name)
        graph.save(path + "-symbol.json")
        mx.nd.save(path + "-0000.params", {("aux:" if k in states else "arg:") + k: arrays[k] for k in self.weights})
        np.savez(path + ".in.npz", **self.inputs)
        np.savez(path + ".out.npz", **{k: r.asnumpy() for k, r in zip(graph.list_outputs(), results)})


def main():
    folder, names = sys.argv[1], sys.argv[2:] or list(MODELS)
    os.makedirs(folder, exist_ok=True)
    for name in names:
        m = Model(name)
        MODELS[name](m)
        m.record(folder)
        print(name, len(m.outs))
