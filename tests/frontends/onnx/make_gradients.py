#!/usr/bin/env python3
"""Writes the models of gradients/: make_gradients.py (needs onnx, numpy, torch).

gradients/NAME.onnx      a small network with Gradient, where bad_ stands before it one that is refused
gradients/NAME.K.in.npz  the K-th inputs; NAME.K.out.npz what torch.autograd makes of them
gradients/cases.txt      NAME, how many inputs, the options for the model
"""
import os

import numpy as np
import torch
import torch.nn.functional as tf
from make import F, I, h, init, model, node, value

HERE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "gradients")
rng = np.random.default_rng(17)
lines = []


def f(*s):
    return rng.standard_normal(s).astype(np.float32)


def ints(*v):
    return np.array(v, np.int64)


def gradient(ins, outs, y, xs, zs=""):
    attrs = dict(xs=xs.split(), y=y) | ({"zs": zs.split()} if zs else {})
    n = node("Gradient", ins, outs, domain="ai.onnx.preview.training", **attrs)
    n.output[:] = ["" if o == "_" else o for o in n.output]
    return n


def write(name, nodes, ins, outs, inits):
    m = model(nodes, ins, [value(o, F, None) for o in outs], [init(k, v) for k, v in inits.items()],
              opset=20, domains=["ai.onnx.preview.training"])
    with open(os.path.join(HERE, name + ".onnx"), "wb") as out:
        out.write(m.SerializeToString())


def case(name, options, feeds, nodes, ins, outs, reference, **inits):
    """`reference` gets the inputs and constants as tensors, which may be differentiated by, and gives the outputs."""
    write(name, nodes, ins, outs, inits)
    for k, feed in enumerate(feeds):
        given = {n: torch.tensor(v, requires_grad=v.dtype == np.float32) for n, v in (inits | feed).items()}
        got = [r.detach().numpy() for r in reference(**given)]
        np.savez_compressed(os.path.join(HERE, f"{name}.{k}.in.npz"), **feed)
        np.savez_compressed(os.path.join(HERE, f"{name}.{k}.out.npz"), **dict(zip(outs, got, strict=True)))
    lines.append(f"{name} {len(feeds)} {options}".strip())


def perceptron():
    """A step of training: weights are constants of the model, the loss that of classes; for any batch."""
    def reference(x, t, w, b, v, rate, **_):
        z = torch.tanh(x @ w.T + b) @ v
        loss = tf.cross_entropy(z, t)
        g = torch.autograd.grad(loss, [w, b, v])
        return [loss, w - rate * g[0], *g[1:]]

    case("perceptron", "--dim N=1..8", [dict(x=f(n, 6), t=rng.integers(0, 4, n)) for n in (1, 8, 5)],
         [node("Gemm", "x w b", "a", transB=1), node("Tanh", "a", "h"), node("MatMul", "h v", "z"),
          node("LogSoftmax", "z", "lz", axis=1), node("Unsqueeze", "t one", "tt"), node("GatherElements", "lz tt", "of", axis=1),
          node("ReduceMean", "of", "mean", keepdims=0), node("Neg", "mean", "loss"), gradient("w b v x t", "dw db dv", "loss", "w b v", "x t"),
          node("Mul", "dw rate", "step"), node("Sub", "w step", "next")],
         [value("x", F, ["N", 6]), value("t", I, ["N"])], ["loss", "next", "db", "dv"], reference,
         w=f(5, 6), b=f(5), v=f(5, 4), rate=np.float32(0.1), one=ints(1))


def pictures():
    """Convolutions with strides and groups, normalization, both poolings."""
    def reference(x, w, s, d, m, q, k, g):
        a = tf.relu(tf.batch_norm(tf.conv2d(x, w, stride=2, padding=1), m.detach(), q.detach(), s, d))
        p = tf.max_pool2d(a, 3, stride=2, padding=1)
        c = tf.avg_pool2d(tf.conv2d(p, k, padding=1, groups=2), 2, stride=1)
        y = (c.mean((2, 3)) @ g).pow(2)
        return torch.autograd.grad(y.sum(), [x, w, s, d, k, g])

    case("pictures", "", [dict(x=f(2, 3, 13, 12))],
         [node("Conv", "x w", "c1", strides=[2, 2], pads=[1, 1, 1, 1]), node("BatchNormalization", "c1 s d m q", "n1"),
          node("Relu", "n1", "a"), node("MaxPool", "a", "p", kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1]),
          node("Conv", "p k", "c2", group=2, pads=[1, 1, 1, 1]), node("AveragePool", "c2", "c", kernel_shape=[2, 2]),
          node("GlobalAveragePool", "c", "e"), node("Flatten", "e", "fl"), node("MatMul", "fl g", "l"), node("Mul", "l l", "y"),
          gradient("x w s d k g", "dx dw ds dd dk dg", "y", "x w s d k g")],
         [value("x", F, [2, 3, 13, 12])], ["dx", "dw", "ds", "dd", "dk", "dg"], reference,
         w=f(4, 3, 3, 3), s=f(4), d=f(4), m=f(4), q=np.abs(f(4)) + 1, k=f(6, 2, 3, 3), g=f(6, 3))


def encoder():
    """Rows of a table, attention by their order, normalization, GELU."""
    def reference(i, table, q, k, v, o, gamma, beta, **_):
        x = table[i]
        n = tf.layer_norm(x, (8,), gamma, beta, 1e-5)
        heads = lambda w: (n @ w).reshape(*n.shape[:2], 2, 4).transpose(1, 2)
        s = heads(q) @ heads(k).transpose(2, 3) / 2
        r = (torch.softmax(s, -1) @ heads(v)).transpose(1, 2).reshape(n.shape)
        y = x + tf.gelu(r @ o)
        cut = torch.cat([y[:, :1], y[:, -1:]], 1)
        return torch.autograd.grad((cut * cut).mean(), [table, q, k, v, o, gamma, beta])

    nodes = [node("Gather", "table i", "x", axis=0), node("LayerNormalization", "x gamma beta", "n", epsilon=1e-5)]
    for w in "qkv":
        nodes += [node("MatMul", f"n {w}", w + "0"), node("Reshape", f"{w}0 split", w + "1"),
                  node("Transpose", w + "1", w + "2", perm=[0, 2, 3, 1] if w == "k" else [0, 2, 1, 3])]
    nodes += [node("MatMul", "q2 k2", "s0"), node("Div", "s0 two", "s"), node("Softmax", "s", "p"), node("MatMul", "p v2", "r0"),
              node("Transpose", "r0", "r1", perm=[0, 2, 1, 3]), node("Reshape", "r1 join", "r"), node("MatMul", "r o", "z"),
              node("Gelu", "z", "ge"), node("Add", "x ge", "y"), node("Slice", "y zero one axis", "first"),
              node("Slice", "y minus far axis", "last"), node("Concat", "first last", "cut", axis=1),
              node("Mul", "cut cut", "sq"), node("ReduceMean", "sq", "loss", keepdims=0),
              gradient("table q k v o gamma beta", "dt dq dk dv do dg db", "loss", "table q k v o gamma beta")]
    case("encoder", "--dim T=1..9", [dict(i=rng.integers(0, 11, (2, t))) for t in (1, 9, 4)], nodes,
         [value("i", I, [2, "T"])], ["dt", "dq", "dk", "dv", "do", "dg", "db"], reference,
         table=f(11, 8), gamma=f(8), beta=f(8), split=ints(0, 0, 2, 4), join=ints(0, 0, 8), two=np.float32(2), zero=ints(0),
         one=ints(1), axis=ints(1), minus=ints(-1), far=ints(2**40), **{w: f(8, 8) for w in "qkvo"})


def second():
    """Derivatives of derivatives, as the operator's page has them; one that is not asked for."""
    def reference(x, w, l):
        o = (torch.sin(x @ w) * l).sum()
        gx, gw = torch.autograd.grad(o, [x, w], create_graph=True)
        return [gw, *torch.autograd.grad(gw.sum(), [x, w])]

    case("second", "", [dict(x=f(3, 4), w=f(4, 2), l=f(3, 2))],
         [node("MatMul", "x w", "y"), node("Sin", "y", "sy"), node("Mul", "sy l", "o"), gradient("x w l", "_ gw", "o", "x w", "l"),
          gradient("x w l", "hx hw", "gw", "x w", "l")],
         [value("x", F, [3, 4]), value("w", F, [4, 2]), value("l", F, [3, 2])], ["gw", "hx", "hw"], reference)


def inside():
    """By a tensor inside the graph, at its value and at another one, of another size; by what has no part in it."""
    def reference(x, z, other):
        hidden = lambda a: torch.exp(a * 0.5)
        y = lambda h: torch.sigmoid(h) * z + h
        at = hidden(x)
        a, b = torch.autograd.grad(y(at).sum(), [at, z])
        c, = torch.autograd.grad(y(other).sum(), [other])
        return [a, b, c, torch.zeros(2)]

    case("inside", "", [dict(x=f(2, 3), z=f(3), other=f(4, 3))],
         [node("Mul", "x half", "m"), node("Exp", "m", "h"), node("Sigmoid", "h", "s"), node("Mul", "s z", "sz"), node("Add", "sz h", "y"),
          gradient("h z part", "dh dz none", "y", "h z part"), gradient("other z", "dother", "y", "h", "z")],
         [value("x", F, [2, 3]), value("z", F, [3]), value("other", F, [4, 3])], ["dh", "dz", "dother", "none"],
         lambda x, z, other, **_: reference(x, z, other), half=np.float32(0.5), part=f(2))


def branch():
    """In a branch of an If, of a graph around it."""
    def reference(x, go):
        return [torch.autograd.grad((x * x * x).sum(), [x])[0] if go else x * 2]

    then = h.make_graph([node("Mul", "x x", "x2"), node("Mul", "x2 x", "x3"), gradient("x", "dx", "x3", "x")], "then", [],
                        [value("dx", F, [3])])
    other = h.make_graph([node("Add", "x x", "twice")], "else", [], [value("twice", F, [3])])
    case("branch", "", [dict(x=f(3), go=np.array(b)) for b in (True, False)],
         [node("If", "go", "y", then_branch=then, else_branch=other)], [value("x", F, [3]), value("go", 9, [])], ["y"], reference)


def refused():
    x = [value("x", F, [3])]
    exp = node("Exp", "x", "y")

    def bad(name, *nodes, outs=("dx",), **inits):
        write("bad_" + name, list(nodes), x, list(outs), inits)

    bad("name", exp, gradient("x", "dx", "z", "x"))
    bad("other", exp, gradient("x", "dx", "y", "xx"))
    bad("twice", exp, gradient("x x", "dx", "y", "x", "x"))
    bad("inputs", exp, gradient("x x", "dx", "y", "x"))
    bad("outputs", exp, gradient("x", "dx dz", "y", "x"))
    bad("ints", node("Cast", "x", "i", to=I), node("Cast", "i", "y", to=F), gradient("i", "dx", "y", "i"))
    bad("bools", node("IsNaN", "x", "y"), gradient("x", "dx", "y", "x"))
    bad("sizes", node("NonZero", "x", "i"), node("Gather", "x i", "y"), gradient("x", "dx", "y", "x"))


if __name__ == "__main__":
    os.makedirs(HERE, exist_ok=True)
    for make in (perceptron, pictures, encoder, second, inside, branch, refused):
        make()
    with open(os.path.join(HERE, "cases.txt"), "w") as out:
        out.write("\n".join(lines) + "\n")
