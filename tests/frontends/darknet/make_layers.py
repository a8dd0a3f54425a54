#!/usr/bin/env python3
"""Writes layers/: small networks as .cfg and .weights with an input and the results, computed by what is written out here.

    make_layers.py            needs numpy

A network is a list of layers; each layer takes its weights from a stream of random numbers, in the order in which Darknet
stores them, and gives its result.  What the layers mean is Darknet's own C (both programs': `fork` is the later one)."""
import os
import struct
import zlib

import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))
F = np.float32


def sigmoid(x):
    return 1 / (1 + np.exp(-x.astype(np.float64)))


def softplus(x):
    return np.where(x > 20, x, np.log1p(np.exp(np.minimum(x, 20))))


def plse(x):
    return np.where(x < -4, .01 * (x + 4), np.where(x > 4, .01 * (x - 4) + 1, .125 * x + .5))


def stair(x):
    n = np.floor(x)
    return np.where(n % 2 == 0, np.floor(x / 2), (x - n) + np.floor(x / 2))


def over_channels(of):
    def run(x):
        y = of(x)
        return y / (y.sum(1, keepdims=True) + 0.0001)
    return run


ACTIVATIONS = {
    "linear": lambda x: x,
    "logistic": sigmoid,
    "loggy": lambda x: 2 * sigmoid(x) - 1,
    "relu": lambda x: np.maximum(x, 0),
    "relu6": lambda x: np.clip(x, 0, 6),
    "elu": lambda x: np.where(x >= 0, x, np.exp(np.minimum(x, 0)) - 1),
    "selu": lambda x: np.where(x >= 0, 1.0507 * x, 1.0507 * 1.6732 * (np.exp(np.minimum(x, 0)) - 1)),
    "gelu": lambda x: 0.5 * x * (1 + np.tanh(0.797885 * x + 0.035677 * x ** 3)),
    "relie": lambda x: np.where(x > 0, x, .01 * x),
    "ramp": lambda x: x * (x > 0) + .1 * x,
    "leaky": lambda x: np.where(x > 0, x, .1 * x),
    "tanh": np.tanh,
    "plse": plse,
    "stair": stair,
    "hardtan": lambda x: np.clip(x, -1, 1),
    "lhtan": lambda x: np.where(x < 0, .001 * x, np.where(x > 1, .001 * (x - 1) + 1, x)),
    "swish": lambda x: x * sigmoid(x),
    "mish": lambda x: x * np.tanh(softplus(x)),
    "hard_mish": lambda x: np.where(x > 0, x, np.where(x > -2, x * x / 2 + x, 0)),
    "normalize_channels": over_channels(lambda x: np.maximum(x, 0)),
    "normalize_channels_softmax": over_channels(np.exp),
    "normalize_channels_softmax_maxval": over_channels(lambda x: np.exp(x - x.max(1, keepdims=True))),
}


class Net:
    def __init__(self, name, shape, fork=True, version=(0, 2), batch=1):
        self.name, self.fork, self.version = name, fork, version
        self.rng = np.random.default_rng(zlib.crc32(name.encode()))
        self.x = self.rng.uniform(-1, 1, (batch,) + shape).astype(F)
        self.inputs = {"data": self.x}
        self.outputs = {}
        self.results = []
        self.floats = []
        self.cfg = ["[net]", "batch=8", "learning_rate=0.1"]
        self.cfg += [f"{k}={v}" for k, v in zip(("channels", "height", "width") if len(shape) == 3 else ("inputs",), shape)]

    def section(self, kind, **keys):
        self.cfg += ["", f"[{kind}]"] + [f"{k} = {v}" for k, v in keys.items()]

    def take(self, *shape, lo=-1, hi=1):
        w = self.rng.uniform(lo, hi, shape).astype(F)
        self.floats.append(w)
        return w

    def prev(self):
        return (self.results[-1] if self.results else self.x).astype(np.float64)

    def at(self, i):
        return self.results[i if i >= 0 else len(self.results) + i].astype(np.float64)

    def done(self, y):
        self.results.append(np.asarray(y, np.float64))

    def label(self, kind):
        return f"layer{len(self.results) - 1}_{kind}"

    def result(self, name, y):
        self.outputs[name] = np.asarray(y, F)

    def image(self, x):
        return x if x.ndim == 4 else x.reshape(x.shape + (1, 1))

    # ---- with weights

    def normalize(self, y, bias, scales):
        shape = (1, -1) + (1,) * (y.ndim - 2)
        if scales is None:
            return y + bias.reshape(shape)
        scale, mean, var = (v.astype(np.float64) for v in scales)
        root = np.sqrt(var + 1e-5) if self.fork else np.sqrt(var) + 1e-6
        return ((y - mean.reshape(shape)) / root.reshape(shape)) * scale.reshape(shape) + bias.reshape(shape)

    def scales(self, n):
        return self.take(n, lo=.5, hi=1.5), self.take(n), self.take(n, lo=.1, hi=2)

    def convolve(self, x, filters, size, stride=(1, 1), padding=0, dilation=1, groups=1, norm=False, activation="linear", flipped=False):
        n, c, h, w = x.shape
        bias = self.take(filters)
        scales = self.scales(filters) if norm else None
        if flipped:
            wt = self.take(c // groups * size * size, filters).T.reshape(filters, c // groups, size, size)
        else:
            wt = self.take(filters, c // groups, size, size)
        pad = padding * dilation
        x = np.pad(x, ((0, 0), (0, 0), (pad, pad), (pad, pad)))
        oh = (h + 2 * pad - dilation * (size - 1) - 1) // stride[0] + 1
        ow = (w + 2 * pad - dilation * (size - 1) - 1) // stride[1] + 1
        y = np.zeros((n, filters, oh, ow))
        per = filters // groups
        for g in range(groups):
            part = x[:, g * (c // groups):(g + 1) * (c // groups)]
            for i in range(size):
                for j in range(size):
                    at = part[:, :, i * dilation:i * dilation + (oh - 1) * stride[0] + 1:stride[0],
                              j * dilation:j * dilation + (ow - 1) * stride[1] + 1:stride[1]]
                    y[:, g * per:(g + 1) * per] += np.einsum("nchw,oc->nohw", at, wt[g * per:(g + 1) * per, :, i, j].astype(np.float64))
        return ACTIVATIONS[activation](self.normalize(y, bias, scales))

    def conv(self, filters, size=1, stride=1, stride_y=None, pad=0, padding=0, dilation=1, groups=1, norm=0, activation="linear", flipped=0, kind="convolutional"):
        keys = dict(filters=filters, size=size, stride=stride, groups=groups, dilation=dilation, activation=activation)
        if stride_y:
            keys.update(stride_y=stride_y)
        keys.update({"pad": 1} if pad else {"padding": padding})
        if norm:
            keys.update(batch_normalize=1)
        if flipped:
            keys.update(flipped=1)
        self.section(kind, **keys)
        self.done(self.convolve(self.image(self.prev()), filters, size, (stride_y or stride, stride), size // 2 if pad else padding, dilation if size > 1 else 1,
                                groups, norm, activation, flipped))

    def deconv(self, filters, size, stride, padding=0, norm=0, activation="linear"):
        self.section("deconvolutional", filters=filters, size=size, stride=stride, padding=padding, batch_normalize=norm, activation=activation)
        x = self.image(self.prev())
        n, c, h, w = x.shape
        bias = self.take(filters)
        scales = self.scales(filters) if norm else None
        wt = self.take(c, filters, size, size)
        y = np.zeros((n, filters, (h - 1) * stride + size, (w - 1) * stride + size))
        for i in range(h):
            for j in range(w):
                y[:, :, i * stride:i * stride + size, j * stride:j * stride + size] += np.einsum("nc,coij->noij", x[:, :, i, j], wt.astype(np.float64))
        y = y[:, :, padding:y.shape[2] - padding, padding:y.shape[3] - padding]
        self.done(ACTIVATIONS[activation](self.normalize(y, bias, scales)))

    def local(self, filters, size, stride, pad, activation="linear"):
        self.section("local", filters=filters, size=size, stride=stride, pad=pad, activation=activation)
        x = self.image(self.prev())
        n, c, h, w = x.shape
        oh, ow = ((v - (1 if pad else size)) // stride + 1 for v in (h, w))
        bias = self.take(filters, oh, ow)
        wt = self.take(oh * ow, filters, c, size, size)
        x = np.pad(x, ((0, 0), (0, 0), (pad, pad), (pad, pad)))
        y = np.zeros((n, filters, oh, ow))
        for i in range(oh):
            for j in range(ow):
                cut = x[:, :, i * stride:i * stride + size, j * stride:j * stride + size]
                y[:, :, i, j] = np.einsum("nchw,ochw->no", cut, wt[i * ow + j].astype(np.float64))
        self.done(ACTIVATIONS[activation](y + bias))

    def product(self, x, outputs, norm=0, activation="linear"):
        x = x.reshape(x.shape[0], -1)
        bias = self.take(outputs)
        wt = self.take(x.shape[1], outputs).T if self.version[1] > 1000 else self.take(outputs, x.shape[1])
        scales = self.scales(outputs) if norm else None
        return ACTIVATIONS[activation](self.normalize(x @ wt.T.astype(np.float64), bias, scales))

    def connected(self, outputs, norm=0, activation="linear"):
        self.section("connected", output=outputs, batch_normalize=norm, activation=activation)
        self.done(self.product(self.prev(), outputs, norm, activation))

    def batchnorm(self):
        self.section("batchnorm")
        x = self.image(self.prev())
        bias = self.take(x.shape[1]) if self.fork else np.zeros(x.shape[1])
        self.done(self.normalize(x, bias, self.scales(x.shape[1])))

    def implicit(self, filters):
        self.section("implicit", filters=filters)
        self.done(self.take(1, filters, 1, 1))

    # ---- without

    def lrn(self, size, alpha, beta, kappa):
        self.section("normalization", size=size, alpha=alpha, beta=beta, kappa=kappa)
        x = self.prev()
        c = x.shape[1]
        y = np.zeros_like(x)
        for k in range(c):
            part = x[:, max(0, k - (size - 1) // 2):min(c, k + size // 2 + 1)]
            y[:, k] = x[:, k] * (kappa + alpha * (part ** 2).sum(1)) ** -beta
        self.done(y)

    def l2norm(self):
        self.section("l2norm")
        x = self.prev()
        self.done(x / np.sqrt((x ** 2).sum(1, keepdims=True)))

    def activation(self, name):
        self.section("activation", activation=name)
        self.done(ACTIVATIONS[name](self.prev()))

    def logistic(self):
        self.section("logistic")
        self.done(sigmoid(self.prev()))

    def softmax(self, groups=1, temperature=1, spatial=0):
        self.section("softmax", groups=groups, temperature=temperature, spatial=spatial)
        x = self.prev()
        rows = x if spatial else x.reshape(x.shape[0], groups, -1)
        axis = 1 if spatial else 2
        e = np.exp((rows - rows.max(axis, keepdims=True)) / temperature)
        e /= e.sum(axis, keepdims=True)
        self.done(e if spatial else e.reshape(x.shape[0], -1))

    def same(self, kind, **keys):
        self.section(kind, **keys)
        self.done(self.prev())

    def windows(self, x, size, stride, padding, what):
        n, c, h, w = x.shape
        off = padding // 2
        oh, ow = (h + padding - size) // stride[0] + 1, (w + padding - size) // stride[1] + 1
        y = np.zeros((n, c, oh, ow))
        for i in range(oh):
            for j in range(ow):
                top, left = i * stride[0] - off, j * stride[1] - off
                y[:, :, i, j] = what(x[:, :, max(0, top):top + size, max(0, left):left + size], axis=(2, 3))
        return y

    def pool(self, kind, size, stride, padding=None, stride_x=None):
        keys = dict(size=size, stride=stride)
        if padding is not None:
            keys.update(padding=padding)
        if stride_x:
            keys.update(stride_x=stride_x)
        self.section(kind, **keys)
        self.done(self.windows(self.prev(), size, (stride, stride_x or stride), size - 1 if padding is None else padding, np.max if kind == "maxpool" else np.mean))

    def maxpool_depth(self, out):
        self.section("maxpool", maxpool_depth=1, out_channels=out)
        x = self.prev()
        self.done(np.stack([x[:, k::out].max(1) for k in range(out)], 1))

    def avgpool(self):
        self.section("avgpool")
        self.done(self.prev().mean((2, 3)))

    def upsample(self, stride, scale=1):
        self.section("upsample", stride=stride, scale=scale)
        x = self.prev()
        if stride > 0:
            y = x.repeat(stride, 2).repeat(stride, 3)
        else:
            y = self.windows(x, -stride, (-stride, -stride), 0, np.sum)
        self.done(y * scale)

    def reorg(self, stride, reverse, kind):
        """Cell by cell, on flat memory, as the programs do it."""
        self.section(kind, stride=stride, reverse=reverse)
        x = self.prev()
        n, c, h, w = x.shape
        s = stride
        to = (c // (s * s), h * s, w * s) if reverse else (c * s * s, h // s, w // s)
        oc, oh, ow = (c, h, w) if kind == "reorg" else to
        flat, y = x.reshape(n, -1), np.zeros((n, c * h * w))
        ic = oc // (s * s)
        for k in range(oc):
            for j in range(oh):
                for i in range(ow):
                    a = i + ow * (j + oh * k)
                    b = i * s + k // ic % s + ow * s * (j * s + k // ic // s + oh * s * (k % ic))
                    if reverse:
                        y[:, b] = flat[:, a]
                    else:
                        y[:, a] = flat[:, b]
        self.done(y.reshape((n,) + to))

    def crop(self, height, width, noadjust):
        self.section("crop", crop_height=height, crop_width=width, noadjust=noadjust)
        x = self.prev()
        top, left = (x.shape[2] - height) // 2, (x.shape[3] - width) // 2
        y = x[:, :, top:top + height, left:left + width]
        self.done(y if noadjust else y * 2 - 1)

    # ---- of other layers

    def route(self, layers, groups=1, group_id=0):
        self.section("route", layers=", ".join(map(str, layers)), groups=groups, group_id=group_id)
        xs = [self.at(i) for i in layers]
        self.done(np.concatenate([x[:, x.shape[1] // groups * group_id:x.shape[1] // groups * (group_id + 1)] for x in xs], 1))

    def shortcut(self, layers, activation="linear", weights="none", normalization="none"):
        self.section("shortcut", **{"from": ",".join(map(str, layers))}, activation=activation, weights_type=weights, weights_normalization=normalization)
        xs = [self.prev()] + [self.at(i) for i in layers]
        c = xs[0].shape[1]
        w = np.ones((len(xs), 1))
        if weights != "none":
            w = self.take(len(xs), c if weights == "per_channel" else 1).astype(np.float64)
            if normalization == "softmax":
                w = np.exp(w - w.max(0))
                w = w / (w.sum(0) + .0001)
            elif normalization == "relu":
                w = np.maximum(w, .001)
                w = w / (w.sum(0) + .0001)
        y = xs[0] * w[0].reshape(1, -1, 1, 1)
        for x, k in zip(xs[1:], w[1:]):
            fit = np.zeros_like(y)
            fit[:, :min(c, x.shape[1])] = x[:, :c]
            y = y + fit * k.reshape(1, -1, 1, 1)
        self.done(ACTIVATIONS[activation](y))

    def scale_channels(self, layer, wh=0, activation="linear"):
        self.section("scale_channels", **{"from": layer}, scale_wh=wh, activation=activation)
        self.done(ACTIVATIONS[activation](self.image(self.prev()) * self.at(layer)))

    def sam(self, layer, activation="linear"):
        self.section("sam", **{"from": layer}, activation=activation)
        self.done(ACTIVATIONS[activation](self.prev() * self.at(layer)))

    # ---- boxes

    def yolo(self, classes, anchors, mask=None, scale=1, new=0, kind="yolo", point=None):
        keys = dict(classes=classes, num=len(anchors), anchors=", ".join(f"{a},{b}" for a, b in anchors), ignore_thresh=.7, scale_x_y=scale)
        if mask:
            keys.update(mask=",".join(map(str, mask)))
        if new:
            keys.update(new_coords=1)
        if point:
            keys.update(yolo_point=point)
        self.section(kind, **keys)
        x = self.prev()
        mask = mask or range(len(anchors))
        n, _, h, w = x.shape
        box = 8 if kind == "Gaussian_yolo" else 4
        y = x.reshape(n, len(mask), box + 1 + classes, h, w).copy()
        rows = np.zeros((n, h * w * len(mask), 5 + classes))
        raw = [4, 6] if box == 8 else [2, 3]
        for f in range(y.shape[2]):
            if f not in raw and not new:
                y[:, :, f] = sigmoid(y[:, :, f])
            if f in ((0, 2) if box == 8 else (0, 1)):
                y[:, :, f] = y[:, :, f] * scale - .5 * (scale - 1)
        size = self.x.shape
        for i in range(h * w):
            for k, m in enumerate(mask):
                cell = y[:, k, :, i // w, i % w]
                bw, bh = cell[:, raw[0]], cell[:, raw[1]]
                bw, bh = ((bw ** 2 * 4, bh ** 2 * 4) if new else (np.exp(bw), np.exp(bh)))
                bw, bh = bw * anchors[m][0] / size[3], bh * anchors[m][1] / size[2]
                cx, cy = (i % w + cell[:, 0]) / w, (i // w + cell[:, 2 if box == 8 else 1]) / h
                side = {"left_top": .5, "right_bottom": -.5}.get(point, 0)
                cx, cy = cx + side * bw, cy + side * bh
                sure = cell[:, box]
                chance = cell[:, box + 1:] * sure[:, None]
                if box == 8:
                    chance = chance * (1 - (cell[:, 1] + cell[:, 3] + cell[:, 5] + cell[:, 7]) / 4)[:, None]
                rows[:, i * len(mask) + k] = np.concatenate([np.stack([cx, cy, bw, bh, sure], 1), chance], 1)
        self.done(y.reshape(x.shape))
        self.result(self.label(kind.lower()), self.results[-1])
        self.result(f"layer{len(self.results) - 1}_boxes", rows)

    def region(self, classes, anchors, softmax):
        self.section("region", classes=classes, num=len(anchors), coords=4, softmax=softmax, anchors=", ".join(f"{a},{b}" for a, b in anchors))
        x = self.prev()
        n, _, h, w = x.shape
        y = x.reshape(n, len(anchors), 5 + classes, h, w).copy()
        y[:, :, :2] = sigmoid(y[:, :, :2])
        y[:, :, 4] = sigmoid(y[:, :, 4])
        if softmax:
            e = np.exp(y[:, :, 5:] - y[:, :, 5:].max(2, keepdims=True))
            y[:, :, 5:] = e / e.sum(2, keepdims=True)
        else:
            y[:, :, 5:] = sigmoid(y[:, :, 5:])
        rows = np.zeros((n, h * w * len(anchors), 5 + classes))
        for i in range(h * w):
            for k, (aw, ah) in enumerate(anchors):
                cell = y[:, k, :, i // w, i % w]
                rows[:, i * len(anchors) + k] = np.concatenate([
                    np.stack([(i % w + cell[:, 0]) / w, (i // w + cell[:, 1]) / h, np.exp(cell[:, 2]) * aw / w, np.exp(cell[:, 3]) * ah / h, cell[:, 4]], 1),
                    cell[:, 5:] * cell[:, 4:5]], 1)
        self.done(y.reshape(x.shape))
        self.result(self.label("region"), self.results[-1])
        self.result(f"layer{len(self.results) - 1}_boxes", rows)

    def detection(self, classes, side, num, sqrt, softmax):
        self.section("detection", classes=classes, side=side, num=num, sqrt=sqrt, softmax=softmax, coords=4)
        x = self.prev().copy()
        n, cells = x.shape[0], side * side
        if softmax:
            p = x[:, :cells * classes].reshape(n, cells, classes)
            e = np.exp(p - p.max(2, keepdims=True))
            x[:, :cells * classes] = (e / e.sum(2, keepdims=True)).reshape(n, -1)
        rows = np.zeros((n, cells * num, 5 + classes))
        for i in range(cells):
            for k in range(num):
                sure = x[:, cells * classes + i * num + k]
                box = x[:, cells * (classes + num) + (i * num + k) * 4:][:, :4]
                bw, bh = (box[:, 2] ** 2, box[:, 3] ** 2) if sqrt else (box[:, 2], box[:, 3])
                rows[:, i * num + k] = np.concatenate([np.stack([(box[:, 0] + i % side) / side, (box[:, 1] + i // side) / side, bw, bh, sure], 1),
                                                       x[:, i * classes:(i + 1) * classes] * sure[:, None]], 1)
        self.done(x)
        self.result(self.label("detection"), x)
        self.result(f"layer{len(self.results) - 1}_boxes", rows)

    # ---- with a state

    def state(self, role, *shape):
        name = f"layer{len(self.results)}_{role}"
        self.inputs[name] = self.rng.uniform(-1, 1, (self.x.shape[0],) + shape).astype(F)
        return self.inputs[name].astype(np.float64)

    def keep(self, role, y):
        self.result(f"layer{len(self.results)}_{role}_out", y)

    def rnn(self, output, hidden, norm=0, activation="tanh", shortcut=0, logistic=0):
        self.section("rnn", output=output, hidden=hidden, batch_normalize=norm, activation=activation, shortcut=shortcut, logistic=logistic)
        s = self.state("state", hidden)
        a = self.product(self.prev(), hidden, norm, activation)
        b = self.product(s, hidden, norm, {0: activation, 1: "logistic", 2: "loggy"}[logistic])
        s = a + b + (s if shortcut else 0)
        self.keep("state", s)
        self.done(self.product(s, output, norm, activation))

    def gru(self, output, norm=0, tanh=0):
        self.section("gru", output=output, batch_normalize=norm, **({"tanh": 1} if tanh else {}))
        s, x = self.state("state", output), self.prev()
        xz, xr, xh = (self.product(x, output, norm) for _ in range(3))
        sz, sr = (self.product(s, output, norm) for _ in range(2))
        z, r = sigmoid(xz + sz), sigmoid(xr + sr)
        h = xh + self.product(r * s, output, norm)
        h = np.tanh(h) if tanh else sigmoid(h)
        y = z * s + (1 - z) * h
        self.keep("state", y)
        self.done(y)

    def lstm(self, output, norm=0):
        self.section("lstm", output=output, batch_normalize=norm)
        h, c, x = self.state("h", output), self.state("c", output), self.prev()
        wf, wi, wg, wo = (self.product(h, output, norm) for _ in range(4))
        uf, ui, ug, uo = (self.product(x, output, norm) for _ in range(4))
        c = sigmoid(wf + uf) * c + sigmoid(wi + ui) * np.tanh(wg + ug)
        h = sigmoid(wo + uo) * np.tanh(c)
        self.keep("h", h)
        self.keep("c", c)
        self.done(h)

    def crnn(self, output, hidden, norm=0, activation="leaky", shortcut=0, first=False):
        names = ("output_filters", "hidden_filters") if first else ("output", "hidden")
        self.section("crnn", **dict(zip(names, (output, hidden))), batch_normalize=norm, activation=activation, shortcut=shortcut, **({} if first else {"pad": 1, "size": 3}))
        x = self.prev()
        s = self.state("state", hidden, x.shape[2], x.shape[3])
        a = self.convolve(x, hidden, 3, padding=1, norm=norm, activation=activation)
        b = self.convolve(s, hidden, 3, padding=1, norm=norm, activation=activation)
        s = a + b + (s if shortcut else 0)
        self.keep("state", s)
        self.done(self.convolve(s, output, 3, padding=1, norm=norm, activation=activation))

    def conv_lstm(self, output, peephole=0, bottleneck=0, norm=0, activation="linear", shortcut=0, constrain=32, **more):
        """The weights of the cells' convolutions come first, though one of them sees the new cells."""
        self.section("conv_lstm", output=output, size=3, pad=1, peephole=peephole, bottleneck=bottleneck, batch_normalize=norm,
                     activation=activation, shortcut=shortcut, state_constrain=constrain, **more)
        x = self.prev()
        h, c = self.state("h", output, *x.shape[2:]), self.state("c", output, *x.shape[2:]) * 2
        self.inputs[f"layer{len(self.results)}_c"] = c.astype(F)

        def conv(v):
            return self.convolve(v, output, 3, padding=1, norm=norm, activation=activation)
        wait = None
        v = [0, 0]
        if peephole:
            v = [conv(c), conv(c)]
            at = len(self.floats)
            state = self.rng.bit_generator.state
            conv(c)  # takes the weights; what they see comes below
            held = self.floats[at:]

            def wait(new):
                kept, self.floats, now = self.floats, [], self.rng.bit_generator.state
                self.rng.bit_generator.state = state
                y = conv(new)
                assert all((a == b).all() for a, b in zip(self.floats, held))
                self.floats, self.rng.bit_generator.state = kept, now
                return y
        if bottleneck:
            x = np.tanh(conv(np.concatenate([h, x], 1)))
            w = [0] * 4
        else:
            w = [conv(h) for _ in range(4)]
        u = [conv(x) for _ in range(4)]
        sigmoid = ACTIVATIONS["logistic"]
        c = sigmoid(w[0] + u[0] + v[0]) * c + sigmoid(w[1] + u[1] + v[1]) * np.tanh(w[2] + u[2])
        o = sigmoid(w[3] + u[3] + (wait(c) if wait else 0))
        h = o * np.tanh(c)
        self.keep("h", h)
        self.keep("c", np.clip(c, -constrain, constrain) if constrain else c)
        y = h.copy()
        if bottleneck and shortcut:
            y[:, :output // 2] += x[:, :output // 2]
        self.done(y)

    # ---- the files

    def write(self, folder, last):
        """last: the label of the last layer's result; None: all results are there."""
        if last:
            self.result(self.label(last), self.results[-1])
        base = os.path.join(folder, self.name)
        with open(base + ".cfg", "w") as f:
            f.write("\n".join(self.cfg) + "\n")
        with open(base + ".weights", "wb") as f:
            f.write(struct.pack("<iii", *self.version, 5 if self.fork else 0))
            f.write(struct.pack("<Q" if self.version[0] * 10 + self.version[1] >= 2 else "<I", 12345))
            f.write(b"".join(w.astype("<f4").tobytes() for w in self.floats))
        np.savez(base + ".in.npz", **self.inputs)
        np.savez(base + ".out.npz", **self.outputs)


NETS = []


def net(f):
    NETS.append(f)
    return f


@net
def convolutions():
    n = Net("convolutions", (3, 13, 11))
    n.conv(8, 3, 2, pad=1, norm=1, activation="leaky")
    n.conv(8, 3, 1, pad=1, groups=8, activation="mish")
    n.conv(6, 1, 1, norm=1, activation="swish", dilation=2)
    n.conv(6, 3, 1, padding=1, dilation=2, groups=2, activation="relu", flipped=1)
    n.conv(5, 5, 1, stride_y=2, padding=2, kind="conv")
    return n, "conv"


@net
def first_program():
    n = Net("first_program", (3, 8, 8), fork=False, version=(0, 1))
    n.conv(4, 3, 1, pad=1, norm=1, activation="leaky")
    n.deconv(3, 4, 2, 1, norm=1, activation="leaky")
    n.crnn(3, 4, norm=1, first=True)
    n.batchnorm()
    return n, "batchnorm"


@net
def transposed():
    n = Net("transposed", (2, 4, 4), version=(0, 1001))
    n.conv(4, 3, 1, pad=1)
    n.connected(10, norm=1, activation="ramp")
    n.connected(6)
    n.softmax(groups=2, temperature=2)
    return n, "softmax"


@net
def activations():
    n = Net("activations", (4, 3, 3), batch=1)
    n.conv(4, 1)
    for name in ACTIVATIONS:
        n.route([0])
        if name in ("plse", "stair", "relu6", "lhtan"):
            n.shortcut([0, 0, 0, 0, 0])
        n.activation(name)
    n.route([i for i in range(len(n.results)) if n.results[i].shape[1] == 4])
    return n, "route"


@net
def places():
    n = Net("places", (2, 7, 6))
    n.local(3, 3, 2, 1, "leaky")
    n.local(4, 2, 1, 0)
    n.l2norm()
    n.lrn(4, .3, .75, 2)
    n.batchnorm()
    n.softmax(spatial=1)
    n.same("dropout", probability=.5)
    n.connected(9, activation="tanh")
    n.logistic()
    n.same("cost", type="sse")
    n.results.pop()
    return n, "logistic"


@net
def pools():
    n = Net("pools", (4, 14, 12))
    n.crop(13, 11, 0)
    n.pool("maxpool", 2, 2)
    n.pool("maxpool", 3, 1)
    n.pool("maxpool", 2, 1, stride_x=2)
    n.pool("local_avgpool", 3, 2, padding=1)
    n.upsample(4, 0.5)
    n.upsample(-2)
    n.maxpool_depth(3)
    n.avgpool()
    return n, "avgpool"


@net
def orders():
    n = Net("orders", (8, 4, 6))
    n.reorg(2, 0, "reorg")
    n.reorg(2, 1, "reorg")
    n.reorg(2, 0, "reorg3d")
    n.reorg(2, 1, "reorg3d")
    return n, "reorg3d"


@net
def joins():
    n = Net("joins", (4, 6, 6))
    n.conv(8, 3, 1, pad=1, activation="leaky")
    n.conv(6, 1, activation="leaky")
    n.shortcut([0], activation="relu")
    n.route([0, -2], groups=2, group_id=1)
    n.conv(8, 1)
    n.shortcut([0, -1], weights="per_channel", normalization="softmax")
    n.shortcut([0, 4], weights="per_feature", normalization="relu", activation="mish")
    n.avgpool()
    n.conv(8, 1, activation="logistic")
    n.scale_channels(-3)
    n.conv(1, 1, activation="logistic")
    n.scale_channels(-2, wh=1, activation="leaky")
    n.conv(8, 1, activation="logistic")
    n.sam(-2)
    n.implicit(8)
    n.route([-2])
    return n, "route"


@net
def boxes():
    n = Net("boxes", (3, 16, 12))
    n.conv(14, 3, 4, pad=1)
    n.yolo(2, [(4, 5), (6, 8), (10, 9)], [0, 2], 1.1)
    n.route([0])
    n.conv(24, 1)
    n.yolo(3, [(4, 5), (6, 8), (10, 9)])
    n.conv(7, 1, activation="logistic")
    n.yolo(2, [(4, 5), (6, 8)], [1], 2, new=1)
    return n, None


@net
def older_boxes():
    n = Net("older_boxes", (3, 8, 8))
    n.conv(16, 3, 2, pad=1)
    n.region(3, [(.7, 1.2), (2.1, .8)], 1)
    n.route([0])
    n.conv(14, 1)
    n.region(2, [(.7, 1.2), (2.1, .8)], 0)
    n.route([0])
    n.conv(22, 1)
    n.yolo(2, [(4, 5), (6, 8)], [0, 1], 1.05, kind="Gaussian_yolo", point="left_top")
    n.route([0])
    n.connected(3 * 3 * (4 + 2 * 5))
    n.detection(4, 3, 2, 1, 1)
    return n, None


@net
def states():
    n = Net("states", (10,))
    n.rnn(6, 5, norm=1, shortcut=1, logistic=2)
    n.gru(7)
    n.gru(4, tanh=1, norm=1)
    n.lstm(5)
    n.connected(4)
    n.softmax()
    return n, "softmax"


@net
def image_states():
    n = Net("image_states", (2, 5, 4))
    n.crnn(3, 4, shortcut=1)
    return n, "crnn"


@net
def image_cells():
    n = Net("image_cells", (3, 5, 4))
    n.conv_lstm(4, peephole=1, norm=1, constrain=1)
    n.conv_lstm(4, bottleneck=1, shortcut=1, activation="leaky", lstm_activation="tanh", peephole=1, constrain=0)
    n.conv_lstm(2)
    return n, "conv_lstm"


@net
def pixels():
    """What is left of layers that train, or keep pictures, in one step; classes of pixels."""
    n = Net("pixels", (3, 5, 4))
    x = n.prev()
    n.section("history", history_size=3)
    n.done(np.concatenate([x, np.zeros((x.shape[0], 6, 5, 4))], 1))
    n.conv(6, 3, pad=1)
    n.section("contrastive", classes=3, temperature=0.5)
    n.done(n.prev())
    n.section("iseg", classes=4, ids=2)
    y = n.prev().copy()
    y[:, :4] = ACTIVATIONS["logistic"](y[:, :4])
    n.done(y)
    return n, "iseg"


if __name__ == "__main__":
    out = os.path.join(HERE, "layers")
    os.makedirs(out, exist_ok=True)
    for make in NETS:
        it, last = make()
        it.write(out, last)
