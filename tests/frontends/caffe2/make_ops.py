#!/usr/bin/env python3
"""Writes models/: small nets of all operators with results written out in numpy (frontends.caffe2.run).

    make_ops.py FOLDER [NAME..]
"""
import math
import os
import sys
import zlib

import numpy as np
from net import Net, given, net, op, place, steps

MODELS = {}


def model(f):
    MODELS[f.__name__] = f
    return f


class Model:
    def __init__(self, name):
        self.name = name
        self.random = np.random.default_rng(zlib.crc32(name.encode()))
        self.inputs, self.weights, self.ops, self.results = {}, {}, [], {}

    def f32(self, *shape, lo=-1, hi=1):
        return self.random.uniform(lo, hi, shape).astype(np.float32)

    def x(self, name, v):
        self.inputs[name] = v
        return v

    def w(self, name, v):
        self.weights[name] = v
        return v

    def op(self, kind, inputs, result, name=None, outputs=(), **args):
        """An operator and its first result."""
        name = name or kind.lower()
        self.ops.append(op(kind, inputs.split(), [name, *outputs], **args))
        self.results[name] = np.asarray(result)

    def write(self, folder):
        path = os.path.join(folder, self.name)
        init = [steps(k, *v) if isinstance(v, tuple) else given(k, v) for k, v in self.weights.items()] + [place(k, v.shape) for k, v in self.inputs.items()]
        with open(path + ".predict_net.pb", "wb") as f:
            f.write(net(self.name, self.ops, [*self.inputs, *self.weights], list(self.results)))
        with open(path + ".init_net.pb", "wb") as f:
            f.write(net(self.name + "_init", init))
        np.savez(path + ".in.npz", **self.inputs)
        np.savez(path + ".out.npz", **{k: v.astype(v.dtype if v.dtype.kind != "f" else np.float32) for k, v in self.results.items()})


def windows(x, k, s=(1, 1), p=(0, 0, 0, 0), d=(1, 1), fill=0.0, ceil=False):
    """[N, C, H', W', kh, kw]"""
    out = []
    for i in range(2):
        cells = x.shape[2 + i] + p[i] + p[2 + i] - (k[i] - 1) * d[i] - 1
        out.append((math.ceil if ceil else math.floor)(cells / s[i]) + 1)
    more = [(out[i] - 1) * s[i] + (k[i] - 1) * d[i] + 1 - x.shape[2 + i] - p[i] for i in range(2)]
    x = np.pad(x, ((0, 0), (0, 0), (p[0], max(more[0], p[2])), (p[1], max(more[1], p[3]))), constant_values=fill)
    return np.stack([np.stack([x[:, :, i * d[0]:i * d[0] + (out[0] - 1) * s[0] + 1:s[0], j * d[1]:j * d[1] + (out[1] - 1) * s[1] + 1:s[1]]
                               for j in range(k[1])], -1) for i in range(k[0])], -2)


def conv(x, w, b=None, g=1, **how):
    parts = [np.einsum("nchwij,ocij->nohw", windows(xi, w.shape[2:], **how), wi)
             for xi, wi in zip(np.split(x, g, 1), np.split(w, g, 0))]
    y = np.concatenate(parts, 1)
    return y if b is None else y + b[:, None, None]


def softmax(x, axis):
    e = np.exp(x - x.max(axis, keepdims=True))
    return e / e.sum(axis, keepdims=True)


def last(x):
    return np.moveaxis(x, 1, -1)


@model
def cells(m):
    x, p = m.x("x", m.f32(2, 3, 4, lo=-2, hi=2)), m.x("p", m.f32(2, 3, lo=0.2, hi=3))
    sigmoid = 1 / (1 + np.exp(-x.astype(np.float64)))
    for kind, y in dict(Relu=np.maximum(x, 0), Sigmoid=sigmoid, Tanh=np.tanh(x), Exp=np.exp(x), Abs=abs(x), Negative=-x, Floor=np.floor(x),
                        Ceil=np.ceil(x), Sin=np.sin(x), Cos=np.cos(x), Sqr=x * x, Softplus=np.log1p(np.exp(x)), Softsign=x / (1 + abs(x)),
                        Swish=x * sigmoid, Copy=x, StopGradient=x, Erf=np.vectorize(math.erf)(x)).items():
        m.op(kind, "x", y)
    for kind, y in dict(Log=np.log(p), Sqrt=np.sqrt(p), Rsqrt=p ** -0.5).items():
        m.op(kind, "p", y)
    m.op("Elu", "x", np.where(x < 0, 0.5 * (np.exp(x) - 1), x), alpha=0.5)
    m.op("Selu", "x", 1.0507009873554805 * np.where(x < 0, 1.6732632423543772 * (np.exp(x) - 1), x))
    m.op("LeakyRelu", "x", np.where(x < 0, 0.2 * x, x), alpha=0.2)
    m.op("HardSigmoid", "x", np.clip(0.3 * x + 0.4, 0, 1), alpha=0.3, beta=0.4)
    m.op("Gelu", "x", x * 0.5 * (1 + np.vectorize(math.erf)(x / math.sqrt(2))))
    m.op("Clip", "x", np.clip(x, -0.5, 1), min=-0.5, max=1.0)
    m.op("Cast", "x", x.astype(np.int32), to=2)
    m.op("Cast", "x", x.astype(np.int64), name="cast_text", to="int64")
    m.op("Dropout", "x", x, is_test=1, ratio=0.5)
    m.op("Scale", "x", x * 3, scale=3.0)
    m.op("PRelu", "x s", np.where(x < 0, x * m.w("s", m.f32(3))[:, None], x))
    m.op("PRelu", "x s1", np.where(x < 0, x * m.w("s1", m.f32(1)), x), name="prelu1")


@model
def binary(m):
    x, y = m.x("x", m.f32(2, 3, 4, 5, lo=0.5, hi=2)), m.x("y", m.f32(2, 3, 4, 5, lo=0.5, hi=2))
    c, r = m.x("c", m.f32(3, lo=0.5, hi=2)), m.x("r", m.f32(4, 5, lo=0.5, hi=2))
    for kind, f in dict(Add=np.add, Sub=np.subtract, Mul=np.multiply, Div=np.divide, Pow=np.power).items():
        m.op(kind, "x y", f(x, y))
        m.op(kind, "x r", f(x, r), name=kind.lower() + "_rows", broadcast=1)
        m.op(kind, "x c", f(x, c[:, None, None]), name=kind.lower() + "_channels", broadcast=1, axis=1)
    m.op("Add", "x r", x + r, name="add_new")
    m.op("Mul", "x c", x * c[:, None, None], name="mul_letter", broadcast=1, axis_str="C", order="NCHW")
    m.op("Pow", "x", x ** 1.5, name="pow_number", exponent=1.5)
    m.op("Sum", "x y x", x + y + x)
    m.op("Max", "x y", np.maximum(x, y))
    m.op("Min", "x y", np.minimum(x, y))
    m.op("Mean", "x y", (x + y) / 2)
    mean, dev = m.w("middle", m.f32(1, 3)), m.w("dev", m.f32(1, 3, lo=0.5, hi=1))
    m.op("NormalizePlanarYUV", "x middle dev", (x - mean[:, :, None, None]) / dev[:, :, None, None])


@model
def convolutions(m):
    x = m.x("x", m.f32(2, 4, 9, 8))
    w, b, g, d = m.w("w", m.f32(6, 4, 3, 3)), m.w("b", m.f32(6)), m.w("g", m.f32(6, 2, 3, 2)), m.w("d", m.f32(4, 1, 3, 3))
    m.op("Conv", "x w b", conv(x, w, b), kernel=3)
    m.op("Conv", "x w", conv(x, w, s=(2, 2), p=(1, 1, 1, 1)), name="strided", kernel=3, stride=2, pad=1, engine="CUDNN")
    m.op("Conv", "x g", conv(x, g, g=2, s=(2, 1), p=(1, 0, 2, 1), d=(1, 2)), name="uneven", kernels=(3, 2), strides=(2, 1), pads=(1, 0, 2, 1), dilations=(1, 2), group=2)
    m.op("Conv", "x g b", conv(x, g, b, g=2, p=(0, 1, 1, 0)), name="single", kernel_h=3, kernel_w=2, pad_t=0, pad_l=1, pad_b=1, pad_r=0, group=2)
    m.op("Conv", "x d", conv(x, d, g=4, p=(1, 1, 1, 1)), name="depthwise", kernel=3, pad=1, group=4, order="NCHW")
    i = m.x("image", m.f32(1, 6, 5, 3))
    v = m.w("v", m.f32(4, 3, 3, 3))
    m.op("Conv", "image v", last(conv(np.moveaxis(i, -1, 1), np.moveaxis(v, -1, 1), p=(1, 1, 1, 1))), name="nhwc", kernel=3, pad=1, order="NHWC")
    t = m.w("t", m.f32(4, 3, 3, 3))
    up = np.zeros((2, 3, 2 * 8 + 3 + 1, 2 * 7 + 3 + 1), np.float32)
    for a in range(9):
        for c in range(8):
            up[:, :, 2 * a:2 * a + 3, 2 * c:2 * c + 3] += np.einsum("ni,iohw->nohw", x[:, :, a, c], t)
    m.op("ConvTranspose", "x t", up[:, :, 1:-1, 1:-1], name="up", kernel=3, stride=2, pad=1, adj=1)
    m.op("ConvTranspose", "x t tb", up[:, :, :-1, :-1] + m.w("tb", m.f32(3))[:, None, None], name="up_bias", kernel=3, stride=2)


@model
def products(m):
    x, y = m.x("x", m.f32(3, 4, 5)), m.x("y", m.f32(3, 6))
    w, b, v, u = m.w("w", m.f32(7, 20)), m.w("b", m.f32(7)), m.w("v", m.f32(20, 7)), m.w("u", m.f32(7, 5))
    m.op("FC", "x w b", x.reshape(3, 20) @ w.T + b)
    m.op("FC", "x u b", x @ u.T + b, name="fc_axis", axis=2)
    m.op("FCTransposed", "x v b", x.reshape(3, 20) @ v + b)
    z = m.x("z", m.f32(6, 2))
    m.op("MatMul", "y z", y @ z)
    m.op("MatMul", "z y", z.T @ y.T, name="turned", trans_a=1, trans_b=1)
    k = m.x("k", m.f32(3, 5, 2))
    m.op("BatchMatMul", "x k", x @ k)
    m.op("BatchMatMul", "x k2", x @ m.x("k2", m.f32(3, 2, 5)).transpose(0, 2, 1), name="batch_b", trans_b=1)


@model
def pooling(m):
    x = m.x("x", m.f32(2, 3, 9, 8))
    w = windows(x, (3, 3), (2, 2), (1, 1, 1, 1), fill=-np.inf)
    m.op("MaxPool", "x", w.max((-1, -2)), kernel=3, stride=2, pad=1)
    w = windows(x, (3, 2), (2, 2), (1, 0, 1, 1), fill=np.nan)
    m.op("AveragePool", "x", np.nanmean(w, (-1, -2)), kernels=(3, 2), strides=(2, 2), pads=(1, 0, 1, 1))
    m.op("AveragePool", "x", np.nan_to_num(w).mean((-1, -2)), name="with_pad", kernels=(3, 2), strides=(2, 2), pads=(1, 0, 1, 1), count_include_pad=1)
    m.op("AveragePool", "x", x.mean((2, 3), keepdims=True), name="global", global_pooling=1)
    m.op("MaxPool", "x", x.max((2, 3), keepdims=True), name="global_max", global_pooling=1)
    m.op("MaxPool", "x", windows(x, (3, 3), (2, 2), fill=-np.inf, ceil=True).max((-1, -2)), name="caffe", kernel=3, stride=2, legacy_pad=3)
    m.op("MaxPool", "x", windows(x, (3, 3), (2, 2), (1, 0, 1, 1), fill=-np.inf).max((-1, -2)), name="same", kernel=3, stride=2, legacy_pad=2)
    i = last(x).copy()
    m.x("image", i)
    m.op("MaxPool", "image", last(windows(x, (2, 2), (2, 2)).max((-1, -2))), name="nhwc", kernel=2, stride=2, order="NHWC")


@model
def norms(m):
    x, t = m.x("x", m.f32(2, 6, 4, 5)), m.x("t", m.f32(2, 3, 4))
    m.op("Softmax", "t", softmax(t.reshape(2, 12), 1).reshape(t.shape))
    m.op("Softmax", "t", softmax(t, 2), name="rows", axis=2)
    m.op("LogSoftmax", "t", np.log(softmax(t, 2)), axis=-1)
    s, b, mean, var = (m.w(k, m.f32(6, lo=0.3, hi=1)) for k in ("s", "b", "mean", "var"))
    c = lambda v: v[:, None, None]  # noqa: E731
    m.op("SpatialBN", "x s b mean var", (x - c(mean)) / np.sqrt(c(var) + 1e-3) * c(s) + c(b), is_test=1, epsilon=1e-3, momentum=0.9, order="NCHW")
    mu = x.mean((2, 3), keepdims=True)
    m.op("InstanceNorm", "x s b", (x - mu) / np.sqrt(((x - mu) ** 2).mean((2, 3), keepdims=True) + 1e-5) * c(s) + c(b))
    p = np.pad(x * x, ((0, 0), (2, 2), (0, 0), (0, 0)))
    sums = sum(p[:, i:i + 6] for i in range(5))
    m.op("LRN", "x", x / (2 + 0.1 / 5 * sums) ** 0.75, size=5, alpha=0.1, beta=0.75, bias=2.0)


@model
def images(m):
    x = m.x("x", m.f32(2, 6, 4, 5))
    rows, columns = [int(i / 2) for i in range(8)], [int(i / 1.5) for i in range(7)]
    m.op("ResizeNearest", "x", x[:, :, rows][..., columns], height_scale=2.0, width_scale=1.5)
    at = [np.arange(2 * n) * (n - 1) / (2 * n - 1) for n in (4, 5)]
    y = np.apply_along_axis(lambda v: np.interp(at[0], np.arange(4), v), 2, x)
    m.op("UpsampleBilinear", "x", np.apply_along_axis(lambda v: np.interp(at[1], np.arange(5), v), 3, y), height_scale=2.0, width_scale=2.0)
    m.op("ChannelShuffle", "x", x.reshape(2, 3, 2, 4, 5).transpose(0, 2, 1, 3, 4).reshape(x.shape), group=3, kernel=1)
    for mode in ("constant", "reflect", "edge"):
        more = dict(constant_values=0.5) if mode == "constant" else {}
        m.op("PadImage", "x", np.pad(x, ((0, 0), (0, 0), (1, 2), (2, 0)), mode, **more), name="pad_" + mode, mode=mode, value=0.5, pad_t=1, pad_l=2, pad_b=2, pad_r=0)


def roi_align(x, boxes, size, scale, ratio, aligned):
    """Means of points that are sampled in each bin; 0 further than one cell outside."""
    N, C, H, W = x.shape
    out = np.zeros((len(boxes), C, *size))
    for r, box in enumerate(boxes):
        image = x[int(box[0]) if len(box) == 5 else 0].astype(np.float64)
        x0, y0, x1, y1 = box[-4:].astype(np.float64) * scale - (0.5 if aligned else 0)
        w, h = x1 - x0, y1 - y0
        if not aligned:
            w, h = max(w, 1), max(h, 1)
        rows, columns = (ratio if ratio > 0 else int(np.ceil(v / n)) for v, n in ((h, size[0]), (w, size[1])))
        for i in range(size[0]):
            for j in range(size[1]):
                total = np.zeros(C)
                for u in range(rows):
                    for v in range(columns):
                        at = [y0 + (i + (u + 0.5) / rows) * h / size[0], x0 + (j + (v + 0.5) / columns) * w / size[1]]
                        if not (-1 <= at[0] <= H and -1 <= at[1] <= W):
                            continue
                        at = [min(max(a, 0), n - 1) for a, n in zip(at, (H, W))]
                        lo = [int(a) for a in at]
                        hi = [min(a + 1, n - 1) for a, n in zip(lo, (H, W))]
                        p, q = at[0] - lo[0], at[1] - lo[1]
                        total += (1 - p) * ((1 - q) * image[:, lo[0], lo[1]] + q * image[:, lo[0], hi[1]])
                        total += p * ((1 - q) * image[:, hi[0], lo[1]] + q * image[:, hi[0], hi[1]])
                out[r, :, i, j] = total / (rows * columns)
    return out


@model
def regions(m):
    x = m.x("x", m.f32(2, 3, 7, 6))
    five = m.x("five", np.array([[1, 0.5, 1, 9, 8], [0, 2, 3, 5, 12.5], [1, -1, -2, 3, 4]], np.float32))
    four = m.x("four", np.array([[0, 0, 5, 6], [3, 2, 3.5, 2.25]], np.float32))
    m.op("RoIAlign", "x five", roi_align(x, five, (3, 2), 0.5, 2, False), name="a", spatial_scale=0.5, pooled_h=3, pooled_w=2, sampling_ratio=2)
    m.op("RoIAlign", "x four", roi_align(x, four, (2, 2), 1, 0, True), name="b", pooled_h=2, pooled_w=2, aligned=1)


def moved(boxes, x, spread, size, one, less):
    """Corners of boxes that x moves, within an image of that size."""
    side = boxes[:, 2:] - boxes[:, :2] + one
    middle = boxes[:, :2] + side / 2
    middle = x[:, :2] / spread[:2] * side + middle
    half = np.exp(np.minimum(x[:, 2:] / spread[2:], math.log(1000 / 16))) * side / 2
    out = np.concatenate([middle - half, middle + half - less], 1)
    return np.clip(out, 0, np.array([size[1], size[0]] * 2) - one)


def best_boxes(boxes, scores, overlap, one, most):
    """Numbers of the boxes that stay, by falling scores."""
    kept = []
    for i in np.argsort(-scores, kind="stable"):
        area = lambda v: max(v[2] - v[0] + one, 0) * max(v[3] - v[1] + one, 0)  # noqa: E731
        both = [area([*np.maximum(boxes[i, :2], boxes[k, :2]), *np.minimum(boxes[i, 2:], boxes[k, 2:])]) for k in kept]
        if all(v / (area(boxes[i]) + area(boxes[k]) - v) <= overlap for v, k in zip(both, kept)):
            kept.append(i)
    return kept[:most] if most > 0 else kept


def proposals(scores, x, info, anchors, stride, before, after, overlap, least, one):
    N, A, H, W = scores.shape
    shift = np.stack(np.meshgrid(np.arange(W), np.arange(H)), -1).reshape(-1, 1, 2) * stride
    every = (anchors + np.tile(shift, 2)).reshape(-1, 4).astype(np.float64)
    out, best = [], []
    for i in range(N):
        s, d = scores[i].transpose(1, 2, 0).reshape(-1), x[i].transpose(1, 2, 0).reshape(-1, 4).astype(np.float64)
        order = np.argsort(-s, kind="stable")[:before or None]
        boxes, s = moved(every[order], d[order], np.ones(4), info[i, :2].astype(int), one, one), s[order]
        side = boxes[:, 2:] - boxes[:, :2] + one
        fits = (side >= least * info[i, 2]).all(1) & (boxes[:, :2] + side / 2 < info[i, 1::-1]).all(1)
        boxes, s = boxes[fits], s[fits]
        kept = best_boxes(boxes, s, overlap, one, after)
        out.append(np.concatenate([np.full((len(kept), 1), i), boxes[kept]], 1))
        best.append(s[kept])
    return np.concatenate(out), np.concatenate(best)


def transformed(rois, x, info, spread, one, back):
    out = np.zeros(x.shape)
    for r, (roi, d) in enumerate(zip(rois.astype(np.float64), x.astype(np.float64))):
        h, w, scale = info[int(roi[0]) if len(roi) == 5 else 0].astype(np.float64)
        size = [int(h / scale + 0.5), int(w / scale + 0.5)]
        k = moved(np.tile(roi[-4:] / scale, (len(d) // 4, 1)), d.reshape(-1, 4), np.array(spread), size, one, one)
        out[r] = (k * (scale if back else 1)).reshape(-1)
    return out


@model
def proposed(m):
    scores, x = m.x("scores", m.f32(2, 3, 5, 6, lo=0)), m.x("x", m.f32(2, 12, 5, 6, lo=-0.6, hi=0.6))
    info = m.x("info", np.array([[70, 90, 1.5], [61, 95, 0.5]], np.float32))
    anchors = m.w("anchors", np.array([[-8, -8, 23, 23], [-20, -4, 35, 19], [0, -12, 15, 27]], np.float32))
    for name, one, after, before in ("first", 1, 6, 40), ("second", 0, 0, 0):
        rois, best = proposals(scores, x, info, anchors, 16, before, after, 0.4, 9, one)
        m.op("GenerateProposals", "scores x info anchors", rois, name=name, outputs=[name + "_best"], spatial_scale=1 / 16, pre_nms_topN=before,
             post_nms_topN=after, nms_thresh=0.4, min_size=9.0, legacy_plus_one=one)
        m.results[name + "_best"] = best
    # Regions are gone through from where they come, too, so that their number is the run's.
    rois = m.results["first"].astype(np.float32)
    taken = m.w("picked", m.f32(5, 8))
    m.op("MatMul", "first picked", rois @ taken, name="said")
    m.op("BBoxTransform", "first said info", transformed(rois, m.results["said"].astype(np.float32), info, (10, 10, 500, 500), 1, True), name="open",
         outputs=["open_splits"], weights=np.array([10, 10, 500, 500], np.float32))
    m.results["open_splits"] = np.bincount(rois[:, 0].astype(int), minlength=2).astype(np.float32)
    four, one = m.x("four", np.array([[3, 4, 30, 25], [10, 0, 60, 44], [5, 5, 6, 6]], np.float32)), m.x("one", np.array([[50, 70, 2]], np.float32))
    d = m.x("d", m.f32(3, 8))
    m.op("BBoxTransform", "four d one", transformed(four, d, one, (1, 1, 1, 1), 0, False), name="fixed", legacy_plus_one=0, apply_scale=0)


def limited(scores, boxes, splits, least, overlap, most, one, of=lambda j: j):
    """(score, box, class, row of its image) of each image and class, and how many there are."""
    out, sizes, start = [], np.zeros((len(splits), scores.shape[1]), np.int32), 0
    for b, rows in enumerate(splits):
        s, x = scores[start:start + rows], boxes[start:start + rows]
        kept = {j: [k for k in best_boxes(x[:, of(j)], s[:, j], overlap, one, 0) if s[k, j] > least] for j in range(1, s.shape[1])}
        if most:
            ranked = sorted(((-s[k, j], j, k) for j in kept for k in kept[j]))[:most]
            kept = {j: [k for _, i, k in ranked if i == j] for j in kept}
        for j, rows_of in kept.items():
            out += [(s[k, j], x[k, of(j)], j, k) for k in rows_of]
            sizes[b, j] = len(rows_of)
        start += rows
    return out, sizes


@model
def detected(m):
    random = m.random
    corner, side = random.uniform(0, 40, (17, 4, 2)), random.uniform(5, 40, (17, 4, 2))
    boxes = m.x("boxes", np.concatenate([corner, corner + side], -1).astype(np.float32).reshape(17, 16))
    scores = m.x("scores", m.f32(17, 4, lo=0))
    m.w("splits", np.array([9, 8], np.float32))
    same = m.x("same", np.ascontiguousarray(boxes[:, :4]))
    b, s = boxes.reshape(17, 4, 4), same.reshape(17, 1, 4)
    for name, given, x, splits, most, args in (
            ("one", "scores boxes", b, [17], 0, dict(nms=0.5, score_thresh=0.4)), ("few", "scores boxes", b, [17], 5, dict(nms=0.3, legacy_plus_one=0)),
            ("two", "scores boxes splits", b, [9, 8], 6, dict(nms=0.4, output_classes_include_bg_cls=0)),
            ("alike", "scores same", s, [17], 100, dict(nms=0.3, cls_agnostic_bbox_reg=1))):
        rows, sizes = limited(scores, x, splits, args.get("score_thresh", 0.05), args["nms"], most, args.get("legacy_plus_one", 1),
                              (lambda j: 0) if x is s else (lambda j: j))
        first = args.get("output_classes_include_bg_cls", 1)
        m.op("BoxWithNMSLimit", given, np.array([r[0] for r in rows]), name=name, outputs=[name + w for w in "bcnks"], detections_per_im=most, **args)
        m.results.update({name + "b": np.array([r[1] for r in rows]), name + "c": np.array([r[2] - 1 + first for r in rows], np.float32),
                          name + "n": sizes.sum(1).astype(np.float32), name + "k": np.array([r[3] for r in rows], np.int32), name + "s": sizes})


@model
def detector(m):
    """From maps to boxes: the numbers of rows in between are the run's."""
    maps = m.x("maps", m.f32(2, 4, 5, 6))
    info = m.x("info", np.array([[80, 90, 1.5], [75, 95, 0.5]], np.float32))
    anchors = m.w("anchors", np.array([[-8, -8, 23, 23], [-20, -4, 35, 19], [0, -12, 15, 27]], np.float32))
    ws, wd, b3, b12 = m.w("ws", m.f32(3, 4, 1, 1)), m.w("wd", m.f32(12, 4, 1, 1, lo=-0.3, hi=0.3)), m.w("b3", m.f32(3)), m.w("b12", m.f32(12, lo=-0.3, hi=0.3))
    m.op("Conv", "maps ws b3", conv(maps, ws, b3), name="s", kernel=1)
    m.op("Conv", "maps wd b12", conv(maps, wd, b12), name="d", kernel=1)
    rois, _ = proposals(m.results["s"], m.results["d"], info, anchors, 16, 50, 8, 0.5, 4, 1)
    m.op("GenerateProposals", "s d info anchors", rois, name="rois", outputs=["best"], spatial_scale=1 / 16, pre_nms_topN=50, post_nms_topN=8, nms_thresh=0.5, min_size=4.0)
    rois = rois.astype(np.float32)
    y = roi_align(maps, rois, (2, 2), 1 / 16, 2, False)
    m.op("RoIAlign", "maps rois", y, name="parts", spatial_scale=1 / 16, pooled_h=2, pooled_w=2, sampling_ratio=2)
    wc, bc, wb, bb = m.w("wc", m.f32(3, 16, lo=-2, hi=2)), m.w("bc", m.f32(3)), m.w("wb", m.f32(12, 16)), m.w("bb", m.f32(12))
    y = y.reshape(len(y), 16)
    scores, x = softmax(y @ wc.T + bc, 1), y @ wb.T + bb
    m.op("FC", "parts wc bc", y @ wc.T + bc, name="classes")
    m.op("Softmax", "classes", scores, name="scores")
    m.op("FC", "parts wb bb", x, name="x")
    boxes = transformed(rois, x, info, (10, 10, 5, 5), 1, False)
    splits = np.bincount(rois[:, 0].astype(int), minlength=2)
    m.op("BBoxTransform", "rois x info", boxes, name="boxes", outputs=["splits"], weights=np.array([10, 10, 5, 5], np.float32), apply_scale=0)
    rows, sizes = limited(scores, boxes.reshape(-1, 3, 4), splits, 0.05, 0.5, 10, 1)
    m.op("BoxWithNMSLimit", "scores boxes splits", np.array([r[0] for r in rows]), name="found", outputs=["places", "kinds", "many"], nms=0.5, detections_per_im=10)
    m.results.update(places=np.array([r[1] for r in rows]), kinds=np.array([r[2] for r in rows], np.float32), many=sizes.sum(1).astype(np.float32))


def to_bytes(v, scale, zero):
    return np.clip(np.rint(np.float32(v) / np.float32(scale)) + zero, 0, 255).astype(np.uint8)


@model
def int8(m):
    """Sums are of whole numbers; they become bytes by one factor, rounded once."""
    x = m.x("x", m.f32(2, 5, 6, 8))
    sx, zx, sw, zw = 1 / 128, 120, 1 / 64, 131
    q = to_bytes(x, sx, zx)
    m.op("Int8Quantize", "x", q, name="q", Y_scale=sx, Y_zero_point=zx)
    m.op("Int8Dequantize", "q", (q.astype(np.float32) - zx) * np.float32(sx), name="back")
    weights = lambda *shape: m.random.integers(0, 256, shape).astype(np.uint8)  # noqa: E731
    w, g, f = weights(7, 3, 3, 8), weights(8, 3, 3, 1), weights(4, 240)
    for name, v in dict(w=w, g=g, f=f).items():
        m.w(name, (v, sw, zw))
    bias = {k: m.random.integers(-9000, 9000, k).astype(np.int32) for k in (4, 7, 8)}
    for k, v in bias.items():
        m.w(f"b{k}", (v, sx * sw, 0))
    to = lambda sums, scale, sy, zy, lo=0: np.clip(np.rint(sums * (scale / sy)) + zy, lo, 255).astype(np.uint8)  # noqa: E731
    cells = np.moveaxis(q.astype(np.int64) - zx, -1, 1)
    sums = last(conv(cells, np.moveaxis(w.astype(np.int64) - zw, -1, 1), bias[7], p=(1, 1, 1, 1)))
    how = dict(order="NHWC", Y_scale=0.05, Y_zero_point=100)
    m.op("Int8Conv", "q w b7", to(sums, sx * sw, 0.05, 100), name="conv", kernel=3, pad=1, **how)
    m.op("Int8ConvRelu", "q w b7", to(sums, sx * sw, 0.05, 100, 100), name="conv_relu", kernel=3, pad=1, **how)
    sums = last(conv(cells, np.moveaxis(g.astype(np.int64) - zw, -1, 1), bias[8], g=8, s=(2, 2)))
    m.op("Int8ConvRelu", "q g b8", to(sums, sx * sw, 0.05, 0), name="depthwise", kernel=3, stride=2, group=8, order="NHWC", Y_scale=0.05)
    sums = (q.reshape(2, 240).astype(np.int64) - zx) @ (f.astype(np.int64) - zw).T + bias[4]
    fc = to(sums, sx * sw, 0.25, 128)
    m.op("Int8FC", "q f b4", fc, name="fc", Y_scale=0.25, Y_zero_point=128)
    e = softmax((fc - 128.0) * 0.25, 1)
    m.op("Int8Softmax", "fc", to(e, 1, 1 / 256, 0), name="softmax", Y_scale=1 / 256, Y_zero_point=0)
    v = windows(np.moveaxis(q, -1, 1).astype(np.float64), (3, 3), (1, 1), (1, 1, 1, 1), fill=np.nan)
    m.op("Int8AveragePool", "q", to(last(np.nanmean(v, (-1, -2))) - zx, sx, sx, zx), name="mean", kernel=3, pad=1, order="NHWC", Y_scale=sx, Y_zero_point=zx)
    m.op("Int8MaxPool", "q", last(np.nanmax(v, (-1, -2))).astype(np.uint8), name="most", kernel=3, pad=1, order="NHWC", Y_scale=sx, Y_zero_point=zx)
    m.op("Int8AveragePoolRelu", "q", to(q.mean((1, 2), keepdims=True) - zx, sx, sx / 2, 3, 3), name="global", global_pooling=1, order="NHWC", Y_scale=sx / 2, Y_zero_point=3)
    r = to_bytes(m.x("r", m.f32(2, 5, 6, 8)), 1 / 100, 90)
    m.op("Int8Quantize", "r", r, name="r8", Y_scale=1 / 100, Y_zero_point=90)
    sums = (q - float(zx)) * sx + (r - 90.0) / 100
    m.op("Int8Sum", "q r8", to(sums, 1, 0.0131719, 128), name="sum", Y_scale=0.0131719, Y_zero_point=128)
    m.op("Int8SumRelu", "q r8", to(sums, 1, 0.0131719, 128, 128), name="sum_relu", Y_scale=0.0131719, Y_zero_point=128)
    m.op("Int8AddRelu", "q r8", to(sums, 1, 0.0131719, 0), name="add", Y_scale=0.0131719, Y_zero_point=0)
    m.op("Int8Relu", "q", np.maximum(q, zx), name="relu", Y_scale=sx, Y_zero_point=zx)
    m.op("Int8LeakyRelu", "q", to(np.where(q < zx, 0.3, 1) * (q - float(zx)), sx, sx, zx), name="leaky", alpha=0.3, Y_scale=sx, Y_zero_point=zx)
    m.op("Int8Sigmoid", "q", to(1 / (1 + np.exp((zx - q.astype(float)) * sx)), 1, 1 / 256, 0), name="sigmoid", Y_scale=1 / 256, Y_zero_point=0)
    m.op("Int8ResizeNearest", "q", q.repeat(2, 1).repeat(3, 2), name="larger", height_scale=2.0, width_scale=3.0, Y_scale=sx, Y_zero_point=zx)
    same = dict(Y_scale=sx, Y_zero_point=zx)
    m.op("Int8Concat", "q q", np.concatenate([q, q], 3), name="both", outputs=["sizes"], order="NHWC", **same)
    m.op("Int8Flatten", "q", q.reshape(2, 240), name="flat", **same)
    m.op("Int8Reshape", "q", q.reshape(2, 8, 30), name="shaped", outputs=["old"], shape=(0, 8, -1), **same)
    m.op("Int8Transpose", "q", q.transpose(0, 3, 1, 2), name="turned", axes=(0, 3, 1, 2), **same)
    m.op("Int8Slice", "q", q[:, 1:3], name="part", starts=(0, 1, 0, 0), ends=(-1, 3, -1, -1), **same)
    m.op("Int8ChannelShuffle", "q", q.reshape(2, 5, 6, 2, 4).swapaxes(3, 4).reshape(q.shape), name="mixed", group=2, kernel=1, order="NHWC", **same)


@model
def shapes(m):
    x = m.x("x", m.f32(2, 3, 4, 5))
    m.op("Reshape", "x", x.reshape(2, -1, 10), outputs=["old"], shape=(0, -1, 10))
    m.op("Reshape", "x to", x.reshape(6, 20), name="by_value", outputs=["old2"])
    m.w("to", np.array([6, -1], np.int64))
    m.op("Flatten", "x", x.reshape(2, 60))
    m.op("Flatten", "x", x.reshape(6, 20), name="flatten2", axis=2)
    m.op("FlattenToVec", "x", x.reshape(-1))
    m.op("ExpandDims", "x", x.reshape(1, 2, 3, 1, 4, 5), dims=(0, 3))
    m.op("Squeeze", "thin", m.x("thin", m.f32(1, 3, 1, 2)).reshape(3, 2), dims=(0, 2))
    m.op("Transpose", "x", x.transpose())
    m.op("Transpose", "x", x.transpose(0, 2, 3, 1), name="axes", axes=(0, 2, 3, 1))
    m.op("NCHW2NHWC", "x", last(x))
    m.op("NHWC2NCHW", "x", np.moveaxis(x, -1, 1))
    y = m.x("y", m.f32(2, 2, 4, 5))
    m.op("Concat", "x y", np.concatenate([x, y], 1), outputs=["sizes"])
    m.op("Concat", "x x", np.concatenate([x, x], 3), name="last", outputs=["sizes1"], order="NHWC")
    m.op("Concat", "x x", np.stack([x, x], 2), name="stack", outputs=["sizes2"], axis=2, add_axis=1)
    m.results["sizes"] = np.array([3, 2], np.int32)
    m.op("Split", "x", x[:, :1], name="part0", outputs=["part1"], split=(1, 2))
    m.results["part1"] = x[:, 1:]
    m.op("Slice", "x", x[:, 1:, :2, 1:4], starts=(0, 1, 0, 1), ends=(-1, -1, 2, -2))
    m.op("Tile", "x", np.tile(x, (1, 2, 1, 1)), tiles=2, axis=1)
    m.op("Gather", "x rows", x[[1, 0, 1]])
    m.w("rows", np.array([1, 0, 1], np.int32))
    for kind, f in dict(Sum=np.sum, Mean=np.mean, Max=np.max, Min=np.min).items():
        m.op("Reduce" + kind, "x", f(x, (1, 3), keepdims=True), axes=(1, 3))
        m.op("Reduce" + kind, "x", f(x, (2, 3)), name="flat" + kind, axes=(2, 3), keepdims=0)
    m.op("ArgMax", "x", x.argmax(-1)[..., None])
    m.op("ArgMin", "x", x.argmin(1), axis=1, keepdims=0)
    m.op("ConstantFill", "x", np.full(x.shape, 2, np.float32), value=2.0)


@model
def channels_last(m):
    """Images stay as convolutions have them from the first to the last."""
    x = m.x("x", m.f32(1, 8, 8, 3))
    w, v = m.w("w", m.f32(8, 3, 3, 3)), m.w("v", m.f32(8, 3, 3, 8))
    a = np.maximum(conv(np.moveaxis(x, -1, 1), np.moveaxis(w, -1, 1), p=(1, 1, 1, 1)), 0)
    p = windows(a, (2, 2), (2, 2)).max((-1, -2))
    y = conv(p, np.moveaxis(v, -1, 1), p=(1, 1, 1, 1)) + p
    m.ops += [op("Conv", ["x", "w"], ["c"], kernel=3, pad=1, order="NHWC"), op("Relu", ["c"], ["a"], order="NHWC"),
              op("MaxPool", ["a"], ["p"], kernel=2, stride=2, order="NHWC"), op("Conv", ["p", "v"], ["d"], kernel=3, pad=1, order="NHWC")]
    m.op("Add", "d p", last(y), name="y")


def nested(*ops):
    return Net(net("branch", ops))


@model
def branches(m):
    """Of one condition that the run decides, and of one that is known."""
    x, flag = m.x("x", m.f32(3, 4)), m.x("flag", np.array([-1.0], np.float32))
    m.op("GT", "flag zero", flag > m.w("zero", np.zeros(1, np.float32)), name="positive")
    m.op("Scale", "x", x * 2, name="before", scale=2.0)
    yes = nested(op("Relu", ["x"], ["inner"]), op("Scale", ["inner"], ["chosen"], scale=3.0), op("Copy", ["x"], ["other"]))
    no = nested(op("Tanh", ["x"], ["chosen"]), op("Negative", ["chosen"], ["other"]))
    m.op("If", "positive x", np.tanh(x), name="chosen", outputs=["other"], then_net=yes, else_net=no)
    m.op("Copy", "other", -np.tanh(x), name="seen")
    m.op("Not", "positive", ~(flag > 0), name="negative")
    m.ops.append(op("Copy", ["x"], ["kept"]))
    m.op("If", "negative", np.maximum(x, 0), name="kept", then_net=nested(op("Relu", ["kept"], ["kept"])))
    m.ops.append(op("Copy", ["x"], ["left"]))
    m.op("If", "positive", x, name="left", then_net=nested(op("Relu", ["left"], ["left"])))
    deep = nested(op("If", ["negative"], ["deep"], then_net=nested(op("Sqr", ["x"], ["deep"])), else_net=nested(op("Abs", ["x"], ["deep"]))))
    m.op("If", "negative x", x * x, name="deep", then_net=deep, else_net=nested(op("Copy", ["x"], ["deep"])))
    m.op("IsEmpty", "x", np.array(False), name="empty")
    m.op("If", "empty x", x + x, name="full", then_net=nested(op("Copy", ["x"], ["full"])), else_net=nested(op("Add", ["x", "x"], ["full"])))
    for kind, f in dict(EQ=np.equal, NE=np.not_equal, LT=np.less, LE=np.less_equal, GE=np.greater_equal).items():
        m.op(kind, "x before", f(x, x * 2))
    m.op("And", "lt ge", (x < 2 * x) & (x >= 2 * x))
    m.op("Or", "lt eq", (x < 2 * x) | (x == 2 * x))
    m.op("Xor", "lt ne", (x < 2 * x) ^ (x != 2 * x))
    m.op("Shape", "x", np.array(x.shape, np.int64))
    m.op("Shape", "x", np.array(x.shape[1:], np.int64), name="columns", axes=(1,))


@model
def found_none(m):
    """Whether a threshold leaves boxes is what the run decides."""
    boxes, scores = m.x("boxes", m.f32(4, 8, lo=0, hi=20)), m.x("scores", m.f32(4, 2, lo=0, hi=0.1))
    outputs = ["boxes_nms", "classes_nms"]
    m.ops.append(op("BoxWithNMSLimit", ["scores", "boxes"], ["scores_nms", *outputs], score_thresh=0.5))
    m.op("IsEmpty", "scores_nms", np.array(True), name="none")
    m.op("If", "none", scores, name="best", then_net=nested(op("Copy", ["scores"], ["best"])), else_net=nested(op("Negative", ["scores"], ["best"])))


def keypoints_of(maps, boxes, softmax):
    R, K, S, _ = maps.shape
    out = np.zeros((R, 4, K))
    for r in range(R):
        size = np.maximum(boxes[r, 2:4] - boxes[r, :2], 1).astype(np.float64)
        for k in range(K):
            f = maps[r, k].astype(np.float64)
            y, x = divmod(int(f.argmax()), S)
            xs, ys = ([i - 1 if i > 0 else i + 1, i, i + 1 if i + 1 < S else i - 1] for i in (x, y))
            g = f[np.ix_(ys, xs)]
            b = -np.array([g[1, 2] - g[1, 0], g[2, 1] - g[0, 1]]) / 2
            c = (g[2, 2] - g[2, 0] - g[0, 2] + g[0, 0]) / 4
            A = np.array([[g[1, 0] - 2 * g[1, 1] + g[1, 2], c], [c, g[0, 1] - 2 * g[1, 1] + g[2, 1]]])
            d, score = np.zeros(2), g[1, 1]
            if abs(np.linalg.det(A)) >= 1e-4:
                d = np.linalg.solve(A, b)
                d *= 1.5 / max(1.5, abs(d).max())
                score = g[1, 1] - b @ d + d @ A @ d / 2
            out[r, :2, k] = boxes[r, :2] + (0.5 + np.array([x, y]) + d) * size / S
            out[r, 2:, k] = score, np.exp(f.max()) / np.exp(f).sum() if softmax else 0
    return out


@model
def keypoints(m):
    maps, boxes = m.x("maps", m.f32(3, 4, 5, 5, lo=-2, hi=2)), m.x("boxes", m.f32(3, 4, lo=0, hi=40) + np.array([0, 0, 40, 40], np.float32))
    maps[0, 0] = 0  # flat, and at an end
    maps[0, 1, 0, 0] = maps[0, 2, 4, 4] = maps[0, 3, 4, 2] = 5
    m.op("HeatmapMaxKeypoint", "maps boxes", keypoints_of(maps, boxes, True), name="shares", should_output_softmax=1)
    m.op("HeatmapMaxKeypoint", "maps boxes", keypoints_of(maps, boxes, False))


def level_of(rois, lo, hi, one, scale, canonical):
    side = np.sqrt((rois[:, 3] - rois[:, 1] + one) * (rois[:, 4] - rois[:, 2] + one))
    return np.clip(np.floor(canonical + np.log2(side / scale + 1e-6)), lo, hi)


def distributed(rois, lo, hi, one, scale, canonical):
    """Regions of each level, and where each region is among them."""
    level = level_of(rois, lo, hi, one, scale, canonical)
    order = np.concatenate([np.where(level == i)[0] for i in range(lo, hi + 1)])
    return [rois[level == i] for i in range(lo, hi + 1)], np.argsort(order).astype(np.int32)


@model
def levels(m):
    def regions(n, size):
        at, side = m.f32(n, 2, lo=0, hi=90), m.f32(n, 2, lo=4, hi=size)
        return np.concatenate([np.zeros((n, 1), np.float32), at, at + side], 1)

    rois = m.x("rois", np.concatenate([regions(4, 20), regions(5, 60), regions(3, 200)]))
    parts, restore = distributed(rois, 2, 4, 0, 56, 3)
    m.op("DistributeFpnProposals", "rois", parts[0], name="rois2", outputs=["rois3", "rois4", "restore"], roi_min_level=2, roi_max_level=4,
         roi_canonical_scale=56, roi_canonical_level=3, legacy_plus_one=0)
    m.results.update(rois3=parts[1], rois4=parts[2], restore=restore)
    m.op("Concat", "rois2 rois3 rois4", np.concatenate(parts), name="together", outputs=["sizes"], axis=0)
    m.op("BatchPermutation", "together restore", rois, name="restored")
    a, b = m.x("a", regions(4, 60)), m.x("b", regions(3, 200))
    sa, sb = m.x("sa", m.f32(4, 1)), m.x("sb", m.f32(3, 1))
    both = np.concatenate([a, b])[np.argsort(-np.concatenate([sa, sb])[:, 0], kind="stable")[:5]]
    m.op("CollectRpnProposals", "a b sa sb", both, name="collected", rpn_min_level=2, rpn_max_level=3, rpn_post_nms_topN=5)
    parts, restore = distributed(both, 2, 3, 1, 40, 3)
    m.op("CollectAndDistributeFpnRpnProposals", "a b sa sb", both, name="all", outputs=["all2", "all3", "all_restore"], rpn_min_level=2, rpn_max_level=3,
         rpn_post_nms_topN=5, roi_min_level=2, roi_max_level=3, roi_canonical_scale=40, roi_canonical_level=3)
    m.results.update(all2=parts[0], all3=parts[1], all_restore=restore)


@model
def pictures(m):
    """What networks that restyle pictures do first and last, and the norms of Detectron."""
    p = m.random.integers(0, 256, (1, 5, 6, 4)).astype(np.uint8)
    m.inputs["p"] = p
    mean = m.w("mean", m.f32(3, lo=90, hi=120))
    chw = p[..., :3].astype(np.float32).transpose(0, 3, 1, 2) - mean[:, None, None]
    m.op("PackedInt8BGRANHWCToNCHWCStylizerPreprocess", "p mean", chw, name="pixels", noise_std=0.0)
    back = np.clip(chw * 3 + mean[:, None, None], 0, 255).astype(np.uint8).transpose(0, 2, 3, 1)
    m.op("Scale", "pixels", chw * 3, name="brighter", scale=3.0)
    m.op("BRGNCHWCToPackedInt8BGRAStylizerDeprocess", "brighter mean", np.concatenate([back, np.full((1, 5, 6, 1), 255, np.uint8)], 3), name="packed")
    x, g, b = m.x("x", m.f32(2, 6, 4, 3)), m.w("g", m.f32(6)), m.w("b", m.f32(6))
    m.op("AffineChannel", "x g b", x * g[:, None, None] + b[:, None, None])
    y = x.reshape(2, 3, -1).astype(np.float64)
    y = ((y - y.mean(2, keepdims=True)) / np.sqrt(y.var(2, keepdims=True) + 1e-4)).reshape(x.shape)
    m.op("GroupNorm", "x g b", y * g[:, None, None] + b[:, None, None], group=3, epsilon=1e-4)
    m.op("UpsampleNearest", "x", x.repeat(2, 2).repeat(2, 3), scale=2)
    m.op("AliasWithName", "x", x, name="same", is_backward=0)


def main():
    folder, names = sys.argv[1], sys.argv[2:] or list(MODELS)
    os.makedirs(folder, exist_ok=True)
    for name in names:
        m = Model(name)
        MODELS[name](m)
        m.write(folder)
        print(name, len(m.results))


main()
