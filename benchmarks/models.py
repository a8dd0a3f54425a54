#!/usr/bin/env python3
"""Write deterministic ONNX benchmark models: real architectures, batch 1, float32, random weights.

    models.py OUTDIR [NAME...]      (needs numpy and onnx; onnxruntime for the reference outputs)

The graphs are unfused, as a framework's exporter writes them: Conv, BatchNormalization and Relu are
separate nodes, LayerNorm and Gelu are spelled out in small ops.  For each model there are
    NAME.onnx   the model, weights inside
    NAME.npz    "in.<input>" arrays (random) and "out.<output>" arrays (onnxruntime, all optimisations off)
and one macs.json: {NAME: {"macs": ..., "params": ..., "nodes": ..., "by_op": {...}}}.

Weights are scaled from a running estimate of each tensor's second moment, so that every convolution's output
has about unit variance: activations neither explode nor vanish, however deep the net.
"""
import json
import os
import sys
import zlib

import numpy as np
import onnx
from onnx import TensorProto as TP, helper, numpy_helper


class G:
    """A graph builder.  Tensors are names; c[name] is the channel count, m2[name] the estimated E[x^2]."""

    def __init__(self, name, opset=13):
        self.name, self.opset = name, opset
        self.rng = np.random.default_rng(zlib.crc32(name.encode()))
        self.nodes, self.inits, self.ins, self.outs, self.feeds = [], [], [], [], {}
        self.c, self.m2, self.n = {}, {}, 0

    def fresh(self, stem):
        self.n += 1
        return f"{stem}_{self.n}"

    def init(self, arr, stem="w"):
        name = self.fresh(stem)
        self.inits.append(numpy_helper.from_array(np.asarray(arr, order="C"), name))
        return name

    def const(self, *vals, dtype=np.float32):
        return self.init(np.array(vals[0] if len(vals) == 1 else vals, dtype), "const")

    def ints(self, *vals):
        return self.init(np.array(vals, np.int64), "const")

    def op(self, kind, *ins, outs=1, c=None, m2=None, **attrs):
        names = [self.fresh(kind.lower()) for _ in range(outs)]
        self.nodes.append(helper.make_node(kind, list(ins), names, name=self.fresh("n_" + kind), **attrs))
        src = next((i for i in ins if i in self.c), None)
        self.c[names[0]] = c or self.c.get(src)
        self.m2[names[0]] = m2 or self.m2.get(src, 1.0)
        return names[0] if outs == 1 else names

    def input(self, name, arr):
        elem = helper.np_dtype_to_tensor_dtype(arr.dtype)
        self.ins.append(helper.make_tensor_value_info(name, elem, arr.shape))
        self.feeds[name] = arr
        self.c[name], self.m2[name] = arr.shape[1], 1.0
        return name

    def image(self, size):
        return self.input("input", self.randn(1, 3, size, size))

    def output(self, x, name="output"):
        self.nodes.append(helper.make_node("Identity", [x], [name], name="n_" + name))
        self.outs.append(name)

    def randn(self, *shape, std=1.0):
        return self.rng.standard_normal(shape, np.float32) * np.float32(std)

    # layers
    def conv(self, x, cout, k, s=1, p=None, g=1, bias=False):
        kh, kw = (k, k) if isinstance(k, int) else k
        ph, pw = ((kh // 2, kw // 2) if p is None else (p, p) if isinstance(p, int) else p)
        cin = self.c[x] // g
        ins = [x, self.init(self.randn(cout, cin, kh, kw, std=(cin * kh * kw * self.m2[x]) ** -0.5))]
        if bias:
            ins.append(self.init(self.randn(cout, std=0.1), "b"))
        return self.op("Conv", *ins, c=cout, m2=1.0, kernel_shape=[kh, kw], strides=[s, s],
                       pads=[ph, pw, ph, pw], group=g, dilations=[1, 1])

    def bn(self, x, eps=1e-5):
        c, u = self.c[x], lambda: self.rng.uniform(0.8, 1.2, self.c[x]).astype(np.float32)
        ins = [u(), self.randn(c, std=0.1), self.randn(c, std=0.1), u() * np.float32(self.m2[x])]
        return self.op("BatchNormalization", x, *[self.init(a, "bn") for a in ins], m2=1.0, epsilon=eps)

    def relu(self, x, m2=0.5):
        return self.op("Relu", x, m2=m2 * self.m2[x])

    def relu6(self, x):
        return self.op("Clip", x, self.const(0.0), self.const(6.0), m2=0.5 * self.m2[x])

    def silu(self, x):
        return self.op("Mul", x, self.op("Sigmoid", x), m2=0.42)

    def cbr(self, x, *a, act="relu", **k):
        x = self.bn(self.conv(x, *a, **k))
        return getattr(self, act)(x) if act else x

    def add(self, x, y):
        return self.op("Add", x, y, m2=self.m2[x] + self.m2[y])

    def concat(self, xs):
        c = sum(self.c[x] for x in xs)
        return self.op("Concat", *xs, axis=1, c=c, m2=sum(self.c[x] * self.m2[x] for x in xs) / c)

    def pool(self, kind, x, k, s, p=0, **attrs):
        pads = [p] * 4 if isinstance(p, int) else p
        m2 = self.m2[x] * (1.6 if kind == "MaxPool" else 0.5)
        return self.op(kind, x, kernel_shape=[k, k], strides=[s, s], pads=pads, m2=m2, **attrs)

    def fc(self, x, cin, cout, act=None):
        w = self.init(self.randn(cout, cin, std=(cin * self.m2[x]) ** -0.5))
        x = self.op("Gemm", x, w, self.init(self.randn(cout, std=0.1), "b"), transB=1, c=cout, m2=1.0)
        return getattr(self, act)(x) if act else x

    def head(self, x, classes=1000):
        x = self.op("Flatten", self.op("GlobalAveragePool", x, m2=0.2), axis=1)
        self.output(self.fc(x, self.c[x], classes))

    def model(self):
        outs = [helper.make_tensor_value_info(o, TP.FLOAT, None) for o in self.outs]
        graph = helper.make_graph(self.nodes, self.name, self.ins, outs, self.inits)
        m = helper.make_model(graph, opset_imports=[helper.make_opsetid("", self.opset)], ir_version=8,
                              producer_name="make_models")
        m = onnx.shape_inference.infer_shapes(m, strict_mode=True, data_prop=True)
        onnx.checker.check_model(m)
        return m


def resnet50():  # post-activation; the stride is on the 3x3 ("v1.5", what torchvision exports)
    g = G("resnet50")
    x = g.pool("MaxPool", g.cbr(g.image(224), 64, 7, 2), 3, 2, 1)
    for width, blocks, stride in ((64, 3, 1), (128, 4, 2), (256, 6, 2), (512, 3, 2)):
        for i in range(blocks):
            s = stride if i == 0 else 1
            y = g.cbr(g.cbr(g.cbr(x, width, 1), width, 3, s), 4 * width, 1, act=None)
            x = g.relu(g.add(y, g.cbr(x, 4 * width, 1, s, act=None) if i == 0 else x), 0.5 if i == 0 else 0.8)
    g.head(x)
    return g


def mobilenet_v1():
    g = G("mobilenet_v1")
    x = g.cbr(g.image(224), 32, 3, 2, act="relu6")
    for c, s in [(64, 1), (128, 2), (128, 1), (256, 2), (256, 1), (512, 2)] + [(512, 1)] * 5 + [(1024, 2), (1024, 1)]:
        x = g.cbr(g.cbr(x, g.c[x], 3, s, g=g.c[x], act="relu6"), c, 1, act="relu6")
    g.head(x)
    return g


def mobilenet_v2():
    g = G("mobilenet_v2")
    x = g.cbr(g.image(224), 32, 3, 2, act="relu6")
    for t, c, n, s in ((1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2),
                       (6, 320, 1, 1)):
        for i in range(n):
            y = g.cbr(x, t * g.c[x], 1, act="relu6") if t > 1 else x
            y = g.cbr(y, g.c[y], 3, s if i == 0 else 1, g=g.c[y], act="relu6")
            y = g.cbr(y, c, 1, act=None)
            x = g.add(x, y) if i else y
    g.head(g.cbr(x, 1280, 1, act="relu6"))
    return g


def squeezenet11():
    g = G("squeezenet11")

    def fire(x, sq, ex):
        x = g.relu(g.conv(x, sq, 1, bias=True))
        return g.concat([g.relu(g.conv(x, ex, 1, bias=True)), g.relu(g.conv(x, ex, 3, bias=True))])

    x = g.relu(g.conv(g.image(224), 64, 3, 2, p=0, bias=True))
    for sq, ex, pool in ((16, 64, 1), (16, 64, 0), (32, 128, 1), (32, 128, 0), (48, 192, 1), (48, 192, 0),
                         (64, 256, 0), (64, 256, 0)):
        x = fire(g.pool("MaxPool", x, 3, 2, ceil_mode=1) if pool else x, sq, ex)
    x = g.relu(g.conv(x, 1000, 1, bias=True))
    g.output(g.op("Flatten", g.op("GlobalAveragePool", x), axis=1))
    return g


def densenet121():
    g = G("densenet121")
    x = g.pool("MaxPool", g.cbr(g.image(224), 64, 7, 2), 3, 2, 1)
    for stage, layers in enumerate((6, 12, 24, 16)):
        if stage:
            x = g.pool("AveragePool", g.conv(g.relu(g.bn(x)), g.c[x] // 2, 1), 2, 2)
        feats = [x]
        for _ in range(layers):
            y = g.concat(feats) if len(feats) > 1 else x
            y = g.conv(g.relu(g.bn(y)), 128, 1)
            feats.append(g.conv(g.relu(g.bn(y)), 32, 3))
        x = g.concat(feats)
    g.head(g.relu(g.bn(x)))
    return g


def inception_v3():
    g = G("inception_v3")
    avg = lambda x: g.pool("AveragePool", x, 3, 1, 1, count_include_pad=1)
    mx = lambda x: g.pool("MaxPool", x, 3, 2)

    def chain(x, *layers):  # each layer: (cout, kernel, stride, padding)
        for cout, k, *sp in layers:
            x = g.cbr(x, cout, k, *sp)
        return x

    x = mx(chain(g.image(299), (32, 3, 2, 0), (32, 3, 1, 0), (64, 3)))
    x = mx(chain(x, (80, 1), (192, 3, 1, 0)))
    for pool in (32, 64, 64):
        x = g.concat([chain(x, (64, 1)), chain(x, (48, 1), (64, 5)), chain(x, (64, 1), (96, 3), (96, 3)),
                      chain(avg(x), (pool, 1))])
    x = g.concat([chain(x, (384, 3, 2, 0)), chain(x, (64, 1), (96, 3), (96, 3, 2, 0)), mx(x)])
    h, v = (1, 7), (7, 1)
    for c in (128, 160, 160, 192):
        x = g.concat([chain(x, (192, 1)), chain(x, (c, 1), (c, h), (192, v)),
                      chain(x, (c, 1), (c, v), (c, h), (c, v), (192, h)), chain(avg(x), (192, 1))])
    x = g.concat([chain(x, (192, 1), (320, 3, 2, 0)), chain(x, (192, 1), (192, h), (192, v), (192, 3, 2, 0)), mx(x)])
    for _ in range(2):
        a, b = chain(x, (384, 1)), chain(x, (448, 1), (384, 3))
        x = g.concat([chain(x, (320, 1)), g.concat([chain(a, (384, (1, 3))), chain(a, (384, (3, 1)))]),
                      g.concat([chain(b, (384, (1, 3))), chain(b, (384, (3, 1)))]), chain(avg(x), (192, 1))])
    g.head(x)
    return g


def vgg16():
    g = G("vgg16")
    x = g.image(224)
    for c, n in ((64, 2), (128, 2), (256, 3), (512, 3), (512, 3)):
        for _ in range(n):
            x = g.relu(g.conv(x, c, 3, bias=True))
        x = g.pool("MaxPool", x, 2, 2)
    x = g.op("Flatten", x, axis=1)
    x = g.fc(g.fc(x, 512 * 49, 4096, "relu"), 4096, 4096, "relu")
    g.output(g.fc(x, 4096, 1000))
    return g


def efficientnet_b0():
    g = G("efficientnet_b0")
    x = g.cbr(g.image(224), 32, 3, 2, act="silu")
    for t, c, n, s, k in ((1, 16, 1, 1, 3), (6, 24, 2, 2, 3), (6, 40, 2, 2, 5), (6, 80, 3, 2, 3), (6, 112, 3, 1, 5),
                          (6, 192, 4, 2, 5), (6, 320, 1, 1, 3)):
        for i in range(n):
            cin = g.c[x]
            y = g.cbr(x, t * cin, 1, act="silu") if t > 1 else x
            y = g.cbr(y, g.c[y], k, s if i == 0 else 1, g=g.c[y], act="silu")
            q = g.silu(g.conv(g.op("GlobalAveragePool", y, m2=0.1), cin // 4, 1, bias=True))
            q = g.op("Sigmoid", g.conv(q, g.c[y], 1, bias=True))
            y = g.cbr(g.op("Mul", y, q, m2=0.13), c, 1, act=None)
            x = g.add(x, y) if i else y
    g.head(g.cbr(x, 1280, 1, act="silu"))
    return g


def yolov3_tiny():
    g = G("yolov3_tiny")
    g.leaky = lambda x: g.op("LeakyRelu", x, alpha=0.1, m2=0.505)
    cbl = lambda x, c, k: g.cbr(x, c, k, act="leaky")
    x = g.image(416)
    for c in (16, 32, 64, 128):
        x = g.pool("MaxPool", cbl(x, c, 3), 2, 2)
    route = cbl(x, 256, 3)
    x = cbl(g.pool("MaxPool", route, 2, 2), 512, 3)
    x = g.pool("MaxPool", x, 2, 1, [0, 0, 1, 1])
    neck = cbl(cbl(x, 1024, 3), 256, 1)
    g.output(g.conv(cbl(neck, 512, 3), 255, 1, bias=True), "head13")
    up = g.op("Resize", cbl(neck, 128, 1), "", g.const(1.0, 1.0, 2.0, 2.0), mode="nearest",
              coordinate_transformation_mode="asymmetric", nearest_mode="floor")
    g.output(g.conv(cbl(g.concat([up, route]), 256, 3), 255, 1, bias=True), "head26")
    return g


def bert_base(layers=12, d=768, heads=12, seq=128, vocab=30522, length=None):
    """With a `length`, the name of a dimension, for any sequence up to `seq`."""
    g, many = G("bert_base"), 0 if length else seq  # 0: as before
    w = lambda *s: g.init(g.randn(*s, std=0.02))

    def norm(x):
        xc = g.op("Sub", x, g.op("ReduceMean", x, axes=[-1]))
        var = g.op("ReduceMean", g.op("Pow", xc, g.const(2.0)), axes=[-1])
        y = g.op("Div", xc, g.op("Sqrt", g.op("Add", var, g.const(1e-12))))
        y = g.op("Mul", y, g.init(g.rng.uniform(0.8, 1.2, d).astype(np.float32)))
        return g.op("Add", y, w(d))

    def linear(x, cin, cout):
        return g.op("Add", w(cout), g.op("MatMul", x, w(cin, cout)))

    def gelu(x):
        e = g.op("Erf", g.op("Div", x, g.const(2.0 ** 0.5)))
        return g.op("Mul", g.op("Mul", x, g.op("Add", e, g.const(1.0))), g.const(0.5))

    def split(x, perm):
        return g.op("Transpose", g.op("Reshape", x, g.ints(-1, many, heads, d // heads)), perm=perm)

    ids = g.input("input_ids", g.rng.integers(0, vocab, (1, seq)))
    types = g.input("token_type_ids", np.repeat(np.array([[0, 1]], np.int64), seq // 2, axis=1))
    mask = g.input("attention_mask", (np.arange(seq)[None] < seq - 16).astype(np.int64))
    mask = g.op("Cast", g.op("Unsqueeze", mask, g.ints(1, 2)), to=TP.FLOAT)
    mask = g.op("Mul", g.op("Sub", g.const(1.0), mask), g.const(-10000.0))
    x = g.op("Add", g.op("Gather", w(vocab, d), ids), g.op("Gather", w(2, d), types))
    places = w(1, seq, d)
    if length:
        places = g.op("Slice", places, g.ints(0), g.op("Slice", g.op("Shape", ids), g.ints(1), g.ints(2)), g.ints(1))
    x = norm(g.op("Add", x, places))
    for _ in range(layers):
        q, k, v = (linear(x, d, d) for _ in range(3))
        s = g.op("MatMul", split(q, [0, 2, 1, 3]), split(k, [0, 2, 3, 1]))
        s = g.op("Add", g.op("Div", s, g.const((d / heads) ** 0.5)), mask)
        s = g.op("MatMul", g.op("Softmax", s, axis=-1), split(v, [0, 2, 1, 3]))
        s = g.op("Reshape", g.op("Transpose", s, perm=[0, 2, 1, 3]), g.ints(-1, many, d))
        x = norm(g.op("Add", linear(s, d, d), x))
        x = norm(g.op("Add", linear(gelu(linear(x, d, 4 * d)), 4 * d, d), x))
    g.output(x, "last_hidden_state")
    first = g.op("Gather", x, g.const(0, dtype=np.int64), axis=1)
    g.output(g.op("Tanh", g.op("Gemm", first, w(d, d), w(d), transB=1)), "pooler_output")
    return g


def lstm_tagger(seq=64, vocab=10000, emb=128, hidden=256, tags=32):  # two bidirectional layers
    g = G("lstm_tagger")
    ids = g.input("tokens", g.rng.integers(0, vocab, (seq, 1)))
    x, cin = g.op("Gather", g.init(g.randn(vocab, emb)), ids), emb
    for _ in range(2):
        u = lambda *s: g.init(g.rng.uniform(-1, 1, s).astype(np.float32) * np.float32(hidden ** -0.5))
        y, _, _ = g.op("LSTM", x, u(2, 4 * hidden, cin), u(2, 4 * hidden, hidden), u(2, 8 * hidden), outs=3,
                       hidden_size=hidden, direction="bidirectional")
        x = g.op("Reshape", g.op("Transpose", y, perm=[0, 2, 1, 3]), g.ints(seq, 1, 2 * hidden))
        cin = 2 * hidden
    x = g.op("Add", g.op("MatMul", x, g.init(g.randn(cin, tags, std=0.1))), g.init(g.randn(tags)))
    g.output(g.op("LogSoftmax", x, axis=-1))
    return g


def mlp():
    g = G("mlp")
    x = g.input("input", g.randn(1, 784))
    g.output(g.op("Softmax", g.fc(g.fc(g.fc(x, 784, 512, "relu"), 512, 512, "relu"), 512, 10), axis=-1))
    return g


MODELS = [resnet50, mobilenet_v1, mobilenet_v2, squeezenet11, densenet121, inception_v3, vgg16, efficientnet_b0,
          yolov3_tiny, bert_base, lstm_tagger, mlp]


def count(m):
    """Multiply-accumulates of Conv, MatMul, Gemm and recurrent layers, from the inferred shapes."""
    shape = {v.name: [d.dim_value for d in v.type.tensor_type.shape.dim]
             for v in (*m.graph.input, *m.graph.value_info, *m.graph.output)}
    shape.update({t.name: list(t.dims) for t in m.graph.initializer})
    by_op = {}
    for n in m.graph.node:
        a = {x.name: helper.get_attribute_value(x) for x in n.attribute}
        i, o, kind = [shape.get(x) for x in n.input], shape[n.output[0]], n.op_type
        if n.op_type == "Conv":
            macs = np.prod(o) * np.prod(i[1][1:])
            kind += "_depthwise" if a["group"] > 1 else "x".join(map(str, i[1][2:]))
        elif n.op_type == "MatMul":
            macs = np.prod(o) * i[0][-1]
        elif n.op_type == "Gemm":
            macs = np.prod(o) * i[1][1 if a.get("transB") else 0]
        elif n.op_type in ("LSTM", "GRU", "RNN"):
            macs = i[0][0] * i[0][1] * (np.prod(i[1]) + np.prod(i[2]))
        else:
            continue
        by_op[kind] = by_op.get(kind, 0) + int(macs)
    return {"macs": sum(by_op.values()), "params": sum(int(np.prod(t.dims)) for t in m.graph.initializer),
            "nodes": len(m.graph.node), "by_op": by_op}


def main():
    out, names = sys.argv[1], sys.argv[2:]
    os.makedirs(out, exist_ok=True)
    stats_path = os.path.join(out, "macs.json")
    stats = json.load(open(stats_path)) if os.path.exists(stats_path) else {}
    for f in MODELS:
        if names and f.__name__ not in names:
            continue
        g = f()
        m, path = g.model(), os.path.join(out, g.name)
        onnx.save(m, path + ".onnx")
        import onnxruntime as ort
        so = ort.SessionOptions()
        so.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
        res = ort.InferenceSession(path + ".onnx", so, providers=["CPUExecutionProvider"]).run(g.outs, g.feeds)
        np.savez(path + ".npz", **{"in." + k: v for k, v in g.feeds.items()},
                 **{"out." + k: v for k, v in zip(g.outs, res)})
        s = stats[g.name] = count(m)
        print(f"{g.name:16} {s['nodes']:5} nodes {s['params'] / 1e6:8.2f} M params {s['macs'] / 1e6:9.1f} M MACs  out " +
              " ".join(f"{v.shape} std {v.std():.3g} max {abs(v).max():.3g}" for v in res), flush=True)
        json.dump(stats, open(stats_path, "w"), indent=1)


if __name__ == "__main__":
    main()
