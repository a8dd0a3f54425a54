#!/usr/bin/env python3
"""Models that no schedule rule was looked at with: written after the rules, measured as they are.

    unseen.py OUTDIR [NAME..]      as models.py does; then compare.py OUTDIR WORK

shufflenet_v2, unet and vit_b16 are of the first day; regnet_x, ghostnet and poolformer were written from their papers
(Radosavovic et al., 2020; Han et al., 2020; Yu et al., 2022) later; convnext, mnasnet and res2net (Liu et al., 2022; Tan et al.,
2019; Gao et al., 2019) after those.
"""
import sys

import models
from models import G, np


def shufflenet_v2():  # 1.0x
    g = G("shufflenet_v2")

    def shuffle(x, size):
        c = g.c[x]
        y = g.op("Reshape", x, g.ints(1, 2, c // 2, size, size))
        return g.op("Reshape", g.op("Transpose", y, perm=[0, 2, 1, 3, 4]), g.ints(1, c, size, size), c=c)

    def branch(x, c, s):
        y = g.cbr(x, c, 1)
        return g.cbr(g.cbr(y, c, 3, s, g=c, act=None), c, 1)

    x = g.pool("MaxPool", g.cbr(g.image(224), 24, 3, 2), 3, 2, 1)
    size = 56
    for c, n in ((116, 4), (232, 8), (464, 4)):
        size //= 2
        left = g.cbr(g.cbr(x, g.c[x], 3, 2, g=g.c[x], act=None), c // 2, 1)
        x = shuffle(g.concat([left, branch(x, c // 2, 2)]), size)
        for _ in range(n - 1):
            a, b = g.op("Split", x, outs=2, axis=1, c=c // 2)
            g.c[b], g.m2[b] = c // 2, g.m2[a]
            x = shuffle(g.concat([a, branch(b, c // 2, 1)]), size)
    g.head(g.cbr(x, 1024, 1))
    return g


def unet(size=256, base=32):
    g = G("unet")
    double = lambda x, c: g.cbr(g.cbr(x, c, 3), c, 3)
    x, skips = double(g.image(size), base), []
    for i in range(1, 5):
        skips.append(x)
        x = double(g.pool("MaxPool", x, 2, 2), base << i)
    for i in range(3, -1, -1):
        c = base << i
        w = g.init(g.randn(g.c[x], c, 2, 2, std=(g.c[x] * g.m2[x]) ** -0.5))
        x = g.op("ConvTranspose", x, w, g.init(g.randn(c, std=0.1)), c=c, m2=1.0, kernel_shape=[2, 2], strides=[2, 2])
        x = double(g.concat([skips.pop(), x]), c)
    g.output(g.op("Sigmoid", g.conv(x, 1, 1, bias=True)))
    return g


def vit_b16(layers=12, d=768, heads=12, patches=196):
    g = G("vit_b16", 17)
    w = lambda *s: g.init(g.randn(*s, std=0.02))
    n = patches + 1

    def norm(x):
        return g.op("LayerNormalization", x, g.init(g.rng.uniform(0.8, 1.2, d).astype(np.float32)), w(d), axis=-1)

    def linear(x, cin, cout):
        return g.op("Add", g.op("MatMul", x, w(cin, cout)), w(cout))

    def split(x, perm):
        return g.op("Transpose", g.op("Reshape", x, g.ints(1, n, heads, d // heads)), perm=perm)

    def gelu(x):
        e = g.op("Erf", g.op("Div", x, g.const(2.0 ** 0.5)))
        return g.op("Mul", g.op("Mul", x, g.op("Add", e, g.const(1.0))), g.const(0.5))

    x = g.op("Reshape", g.conv(g.image(224), d, 16, 16, p=0, bias=True), g.ints(1, d, patches))
    x = g.op("Concat", w(1, 1, d), g.op("Transpose", x, perm=[0, 2, 1]), axis=1)
    x = g.op("Add", x, w(1, n, d))
    for _ in range(layers):
        y = norm(x)
        q, k, v = (linear(y, d, d) for _ in range(3))
        s = g.op("MatMul", split(q, [0, 2, 1, 3]), split(k, [0, 2, 3, 1]))
        s = g.op("Softmax", g.op("Mul", s, g.const((d / heads) ** -0.5)), axis=-1)
        s = g.op("Transpose", g.op("MatMul", s, split(v, [0, 2, 1, 3])), perm=[0, 2, 1, 3])
        x = g.op("Add", x, linear(g.op("Reshape", s, g.ints(1, n, d)), d, d))
        x = g.op("Add", x, linear(gelu(linear(norm(x), d, 4 * d)), 4 * d, d))
    first = g.op("Gather", norm(x), g.const(0, dtype=np.int64), axis=1)
    g.output(g.op("Gemm", first, w(1000, d), w(1000), transB=1))
    return g


def regnet_x():  # 400MF: groups of 16 channels
    g = G("regnet_x")
    x = g.cbr(g.image(224), 32, 3, 2)
    for c, n in ((32, 1), (64, 2), (160, 7), (400, 12)):
        for i in range(n):
            s = 2 if i == 0 else 1
            y = g.cbr(g.cbr(g.cbr(x, c, 1), c, 3, s, g=c // 16), c, 1, act=None)
            x = g.relu(g.add(y, x if i else g.cbr(x, c, 1, s, act=None)))
    g.head(x)
    return g


def ghostnet():  # 1.0x
    g = G("ghostnet")

    def ghost(x, c, act="relu"):
        first = g.cbr(x, c // 2, 1, act=act)
        return g.concat([first, g.cbr(first, c // 2, 3, g=c // 2, act=act)])

    def gate(x):
        c = g.c[x]
        q = g.relu(g.conv(g.op("GlobalAveragePool", x, m2=0.1), -(-c // 32) * 8, 1, bias=True))
        q = g.op("HardSigmoid", g.conv(q, c, 1, bias=True), alpha=1 / 6, beta=0.5)
        return g.op("Mul", x, q, m2=0.13)

    x = g.cbr(g.image(224), 16, 3, 2)
    for k, t, c, se, s in ((3, 16, 16, 0, 1), (3, 48, 24, 0, 2), (3, 72, 24, 0, 1), (5, 72, 40, 1, 2), (5, 120, 40, 1, 1),
                           (3, 240, 80, 0, 2), (3, 200, 80, 0, 1), (3, 184, 80, 0, 1), (3, 184, 80, 0, 1), (3, 480, 112, 1, 1),
                           (3, 672, 112, 1, 1), (5, 672, 160, 1, 2), (5, 960, 160, 0, 1), (5, 960, 160, 1, 1),
                           (5, 960, 160, 0, 1), (5, 960, 160, 1, 1)):
        cin, y = g.c[x], ghost(x, t)
        if s > 1:
            y = g.cbr(y, t, k, s, g=t, act=None)
        y = ghost(gate(y) if se else y, c, None)
        if s > 1 or cin != c:
            x = g.cbr(g.cbr(x, cin, k, s, g=cin, act=None), c, 1, act=None)
        x = g.add(y, x)
    x = g.op("GlobalAveragePool", g.cbr(x, 960, 1), m2=0.2)
    x = g.op("Flatten", g.relu(g.conv(x, 1280, 1, bias=True)), axis=1)
    g.output(g.fc(x, 1280, 1000))
    return g


def poolformer():  # S12
    g = G("poolformer")

    def affine(x, low, high):
        scale = g.rng.uniform(low, high, (g.c[x], 1, 1)).astype(np.float32)
        return g.op("Mul", x, g.init(scale), m2=g.m2[x] * high * high)

    def norm(x, size):  # one group
        c = g.c[x]
        y = g.op("Reshape", x, g.ints(1, 1, c * size * size))
        y = g.op("InstanceNormalization", y, g.init(np.ones(1, np.float32)), g.init(np.zeros(1, np.float32)), m2=1.0)
        y = affine(g.op("Reshape", y, g.ints(1, c, size, size), c=c), 0.8, 1.2)
        return g.op("Add", y, g.init(g.randn(c, 1, 1, std=0.1)))

    def gelu(x):
        e = g.op("Erf", g.op("Div", x, g.const(2.0 ** 0.5)))
        return g.op("Mul", g.op("Mul", x, g.op("Add", e, g.const(1.0))), g.const(0.5), m2=0.42)

    x, size = g.conv(g.image(224), 64, 7, 4, p=2, bias=True), 56
    for c, n in ((64, 2), (128, 2), (320, 6), (512, 2)):
        if c > 64:
            x, size = g.conv(x, c, 3, 2, bias=True), (size + 1) // 2
        for _ in range(n):
            y = norm(x, size)
            y = g.op("Sub", g.pool("AveragePool", y, 3, 1, 1, count_include_pad=0), y, m2=1.0)
            x = g.add(x, affine(y, 0.4, 0.6))
            y = g.conv(gelu(g.conv(norm(x, size), 4 * c, 1, bias=True)), c, 1, bias=True)
            x = g.add(x, affine(y, 0.4, 0.6))
    g.head(norm(x, size))
    return g


def convnext():  # T
    g = G("convnext", 17)
    w = lambda *s: g.init(g.randn(*s, std=0.02))

    def norm(x, c, **k):  # of the channels, which lie last
        return g.op("LayerNormalization", x, g.init(g.rng.uniform(0.8, 1.2, c).astype(np.float32)), w(c), axis=-1, **k)

    def last(x):
        return g.op("Transpose", x, perm=[0, 2, 3, 1])

    def first(x, c):
        return g.op("Transpose", x, perm=[0, 3, 1, 2], c=c, m2=1.0)

    def linear(x, cin, cout):
        return g.op("Add", g.op("MatMul", x, g.init(g.randn(cin, cout, std=cin ** -0.5))), w(cout))

    def gelu(x):
        e = g.op("Erf", g.op("Div", x, g.const(2.0 ** 0.5)))
        return g.op("Mul", g.op("Mul", x, g.op("Add", e, g.const(1.0))), g.const(0.5))

    x = g.conv(g.image(224), 96, 4, 4, p=0, bias=True)
    x = first(norm(last(x), 96), 96)
    for c, n in ((96, 3), (192, 3), (384, 9), (768, 3)):
        if c > 96:
            x = g.conv(first(norm(last(x), c // 2), c // 2), c, 2, 2, p=0, bias=True)
        for _ in range(n):
            y = norm(last(g.conv(x, c, 7, g=c, bias=True)), c)
            y = linear(gelu(linear(y, c, 4 * c)), 4 * c, c)
            y = g.op("Mul", y, g.init(g.rng.uniform(0.3, 0.5, c).astype(np.float32)))
            x = g.add(x, first(y, c))
    x = g.op("Flatten", g.op("GlobalAveragePool", x, m2=0.2), axis=1)
    g.output(g.fc(norm(x, 768, m2=1.0), 768, 1000))
    return g


def mnasnet():  # A1
    g = G("mnasnet")

    def gate(x, c):
        q = g.relu(g.conv(g.op("GlobalAveragePool", x, m2=0.1), c // 4, 1, bias=True))
        return g.op("Mul", x, g.op("Sigmoid", g.conv(q, g.c[x], 1, bias=True)), m2=0.13)

    x = g.cbr(g.image(224), 32, 3, 2)
    x = g.cbr(g.cbr(x, 32, 3, g=32), 16, 1, act=None)
    for k, t, c, n, s, se in ((3, 6, 24, 2, 2, 0), (5, 3, 40, 3, 2, 1), (3, 6, 80, 4, 2, 0), (3, 6, 112, 2, 1, 1),
                              (5, 6, 160, 3, 2, 1), (3, 6, 320, 1, 1, 0)):
        for i in range(n):
            cin = g.c[x]
            y = g.cbr(x, cin * t, 1)
            y = g.cbr(y, cin * t, k, s if i == 0 else 1, g=cin * t)
            y = g.cbr(gate(y, cin) if se else y, c, 1, act=None)
            x = g.add(y, x) if i else y
    g.head(g.cbr(x, 1280, 1))
    return g


def res2net():  # 50, 26w x 4s
    g = G("res2net")

    def parts(x, w):
        out = g.op("Split", x, outs=4, axis=1, c=w)
        for p in out[1:]:
            g.c[p], g.m2[p] = w, g.m2[out[0]]
        return out

    x = g.pool("MaxPool", g.cbr(g.image(224), 64, 7, 2), 3, 2, 1)
    for c, w, n, s in ((256, 26, 3, 1), (512, 52, 4, 2), (1024, 104, 6, 2), (2048, 208, 3, 2)):
        for i in range(n):
            stride = s if i == 0 else 1
            xs, done = parts(g.cbr(x, 4 * w, 1), w), []
            for p in xs[:3]:
                done.append(g.cbr(p if i == 0 or not done else g.add(p, done[-1]), w, 3, stride))
            done.append(g.pool("AveragePool", xs[3], 3, stride, 1) if i == 0 else xs[3])
            y = g.cbr(g.concat(done), c, 1, act=None)
            x = g.relu(g.add(y, x if i else g.cbr(x, c, 1, stride, act=None)))
    g.head(x)
    return g


models.MODELS = [shufflenet_v2, unet, vit_b16, regnet_x, ghostnet, poolformer, convnext, mnasnet, res2net]

if __name__ == "__main__":
    models.main()
