"""The operators and shapes that sweep.py draws; docs/benchmarks/operators.md says the same in words.

draw(seed, k) gives case k of a seed as a Case, the same for any number of cases.  Cases 2 j and 2 j + 1 are one
operator and shape: alone, and with usual neighbours before and behind.  A family is a function of FAMILIES that
takes a Net, draws from it and returns its class and a line that tells the shape; what it has drawn is
thrown away and drawn again where it would be too large or too small (Redraw).
"""
import dataclasses

import numpy as np
import onnx
from onnx import TensorProto as TP, helper, numpy_helper

MOST_MACS = 6e8  # multiply-adds of a case
MOST_CELLS = 1 << 22  # of a tensor
LEAST_WORK = 20000  # cells that come and go, and an eighth of the multiply-adds: below, a call's cost is all that shows


class Redraw(Exception):
    """Too large, too small, or nothing at all is left of it."""


@dataclasses.dataclass
class Case:
    k: int
    kind: str
    text: str
    neighbours: bool
    model: bytes
    feeds: dict
    outs: list
    loose: bool  # quantized: engines round differently


class Net:
    """A model being made, and the stream of random numbers."""

    def __init__(self, rng, neighbours):
        self.rng, self.neighbours = rng, neighbours
        self.values = np.random.default_rng(int(rng.integers(1 << 30)))
        self.nodes, self.consts, self.feeds, self.shapes, self.outs = [], [], {}, {}, []
        self.loose, self.macs = False, 0
        self.usual = np.random.default_rng(int(rng.integers(1 << 30)))  # which neighbours, so that both cases of a pair go on alike

    # -- numbers

    def chance(self, p):
        return self.rng.random() < p

    def pick(self, *choices):
        return choices[self.rng.integers(len(choices))]

    def log(self, low, high):
        """A whole number, uniform in its logarithm."""
        return min(high, int(np.exp(self.rng.uniform(np.log(low), np.log(high + 1)))))

    def channels(self, low=1, high=2048):
        """Half of them what networks usually have."""
        c = self.log(low, high)
        return c if self.chance(0.5) else max(low, min(high, -(-c // 8) * 8 if c < 64 else -(-c // 32) * 32))

    def sides(self, n, high=512):
        first = self.log(1, high)
        return [first] * n if self.chance(0.6) else [self.log(1, high) for _ in range(n)]

    # -- values

    def name(self, shape):
        name = f"t{len(self.shapes)}"
        if np.prod(shape, dtype=float) > MOST_CELLS:
            raise Redraw
        self.shapes[name] = list(shape)
        return name

    def input(self, *shape, positive=False):
        name = self.name(shape)
        value = self.values.standard_normal(shape, np.float32)
        self.feeds[name] = abs(value) + np.float32(0.1) if positive else value
        return name

    def const(self, value):
        name = f"c{len(self.consts)}"
        self.consts.append(numpy_helper.from_array(np.asarray(value), name))
        return name

    def weight(self, *shape, fan=1):
        if np.prod(shape, dtype=float) > MOST_CELLS:
            raise Redraw
        return self.const(self.values.standard_normal(shape, np.float32) / np.float32(fan**0.5))

    def op(self, kind, *args, shape=None, **attrs):
        """`shape` is the first argument's unless given."""
        name = self.name(self.shapes[args[0]] if shape is None else shape)
        self.nodes.append(helper.make_node(kind, args, [name], **attrs))
        return name

    def cost(self, *factors):
        self.macs += np.prod(factors, dtype=float)
        if self.macs > MOST_MACS:
            raise Redraw

    # -- neighbours

    def neighbour(self, usual):
        return usual[self.usual.integers(len(usual))] if self.neighbours else None

    def before(self, shape, *usual, positive=False):
        """A value of that shape: an input, or made by one of the usual neighbours of it."""
        how = self.neighbour(usual)
        if how == "conv" and len(shape) > 2:
            c = min(shape[1], 32)
            self.cost(*shape, c)
            x = self.input(shape[0], c, *shape[2:])
            y = self.op("Conv", x, self.weight(shape[1], c, *[1] * (len(shape) - 2), fan=c), self.weight(shape[1]), shape=shape)
            return self.op("Relu", y)
        if how == "norm":
            d = shape[-1]
            return self.op("LayerNormalization", self.input(*shape), self.weight(d), self.weight(d), axis=-1)
        if how == "add":
            return self.op("Add", self.input(*shape), self.input(*shape))
        if how == "relu":
            return self.op("Relu", self.input(*shape))
        if how == "scale":
            return self.op("Mul", self.input(*shape), self.const(np.float32(0.125)))
        return self.input(*shape, positive=positive)

    def activation(self, x, how):
        if how == "silu":
            return self.op("Mul", x, self.op("Sigmoid", x))
        if how == "clip":
            return self.op("Clip", x, self.const(np.float32(0)), self.const(np.float32(6)))
        if how == "gelu":
            e = self.op("Add", self.op("Erf", self.op("Mul", x, self.const(np.float32(0.5**0.5)))), self.const(np.float32(1)))
            return self.op("Mul", self.op("Mul", x, e), self.const(np.float32(0.5)))
        return self.op({"relu": "Relu", "sigmoid": "Sigmoid", "tanh": "Tanh", "hardswish": "HardSwish", "leaky": "LeakyRelu"}[how], x)

    def behind(self, y, *usual):
        """The output: y, or what a usual neighbour makes of it."""
        shape, how = self.shapes[y], self.neighbour(usual)
        if how == "conv" and len(shape) > 2:
            o = min(shape[1], 32)
            self.cost(*shape, o)
            y = self.op("Conv", y, self.weight(o, shape[1], *[1] * (len(shape) - 2), fan=shape[1]), self.weight(o),
                        shape=[shape[0], o, *shape[2:]])
        elif how == "dense":
            n = min(shape[-1], 64)
            self.cost(*shape, n)
            y = self.op("MatMul", y, self.weight(shape[-1], n, fan=shape[-1]), shape=[*shape[:-1], n])
        elif how == "add":
            y = self.op("Add", y, self.input(*shape))
        elif how == "bias":
            y = self.op("Add", y, self.weight(shape[-1]))
        elif how == "bias_gelu":
            y = self.activation(self.op("Add", y, self.weight(shape[-1])), "gelu")
        elif how == "pool" and len(shape) == 4 and min(shape[2:]) >= 2:
            y = self.op("MaxPool", y, kernel_shape=[2, 2], strides=[2, 2], shape=[*shape[:2], shape[2] // 2, shape[3] // 2])
        elif how in ("relu", "silu", "clip", "gelu", "sigmoid", "tanh", "hardswish", "leaky"):
            y = self.activation(y, how)
        self.outs.append(y)

    def work(self):
        """Of the operator alone."""
        ends = set(self.feeds) | set(self.outs)
        return self.macs / 8 + sum(np.prod(self.shapes.get(n, [0])) for n in ends)

    def done(self):
        infos = [helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(a.dtype), a.shape) for n, a in self.feeds.items()]
        graph = helper.make_graph(self.nodes, "case", infos, [helper.make_empty_tensor_value_info(o) for o in self.outs], self.consts)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=10)
        return onnx.shape_inference.infer_shapes(model, strict_mode=True).SerializeToString()


# ---- convolutions ----------------------------------------------------------------------------------------

BEHIND_CONV = ("relu", "relu", "silu", "hardswish", "clip", "leaky", "add", "conv", "pool")


def times(values):
    return "x".join(map(str, values))


def conv(g, kind, cin, cout, spatial, kernel, stride, dilation, groups=1, batch=1):
    dims = len(spatial)
    reach = [d * (k - 1) + 1 for k, d in zip(kernel, dilation)]
    pads = [r // 2 for r in reach] if g.chance(0.85) else [0] * dims
    out = [(n + 2 * p - r) // s + 1 for n, p, r, s in zip(spatial, pads, reach, stride)]
    if min(out) < 1:
        raise Redraw
    g.cost(batch, cout, *out, cin // groups, *kernel)
    x = g.before([batch, cin, *spatial], "conv", "conv", "relu")
    y = g.op("Conv", x, g.weight(cout, cin // groups, *kernel, fan=cin // groups * np.prod(kernel)), g.weight(cout),
             shape=[batch, cout, *out], group=groups, strides=stride, dilations=dilation, pads=pads * 2, kernel_shape=kernel)
    g.behind(y, *BEHIND_CONV)
    rest = (f", stride {times(stride)}" if max(stride) > 1 else "") + (f", rate {times(dilation)}" if max(dilation) > 1 else "")
    rest += (f", groups {groups}" if groups > 1 else "") + (f", batch {batch}" if batch > 1 else "") + ("" if max(pads) else ", valid")
    return kind, f"{cin} to {cout}, {times(kernel)} on {times(spatial)}{rest}"


def kernel_of(g, dims, square=0.75):
    k = g.pick(2, 3, 3, 3, 3, 5, 7, 9, 11)
    return [k] * dims if g.chance(square) else [g.log(1, 11) for _ in range(dims)]


def stride_of(g, dims):
    s = g.pick(1, 1, 1, 1, 2, 2, 3, 4)
    return [s] * dims if s == 1 or g.chance(0.8) else [s] + [1] * (dims - 1)


def conv_1x1(g):
    s = 2 if g.chance(0.1) else 1
    return conv(g, "conv 1x1", g.channels(), g.channels(), g.sides(2), [1, 1], [s, s], [1, 1], batch=g.pick(1, 1, 1, 1, 2, 4))


def conv_2d(g):
    return conv(g, "conv 2-D", g.channels(), g.channels(), g.sides(2), kernel_of(g, 2), stride_of(g, 2), [1, 1],
                batch=g.pick(1, 1, 1, 1, 2, 4))


def conv_dilated(g):
    d = g.log(2, 36)
    return conv(g, "conv dilated", g.channels(), g.channels(), g.sides(2, 128), [3, 3], [1, 1], [d, d])


def conv_groups(g):
    width, groups = g.log(2, 64), g.log(2, 64)
    o = width * (1 if g.chance(0.8) else 2)
    return conv(g, "conv grouped", width * groups, o * groups, g.sides(2, 256), kernel_of(g, 2, 0.9), stride_of(g, 2), [1, 1], groups)


def conv_depthwise(g):
    c, k = g.channels(2), g.pick(3, 3, 3, 5, 5, 7, 9, 11)
    return conv(g, "conv depthwise", c, c * (1 if g.chance(0.85) else 2), g.sides(2), [k, k], stride_of(g, 2),
                [1, 1] if g.chance(0.85) else [2, 2], groups=c)


def conv_1d(g):
    c, n = g.channels(), g.log(1, 8192)
    if g.chance(0.2):
        return conv(g, "conv 1-D", c, c, [n], kernel_of(g, 1), stride_of(g, 1), [1], groups=c)
    return conv(g, "conv 1-D", c, g.channels(), [n], [g.log(1, 11)], stride_of(g, 1), [1 if g.chance(0.8) else g.log(2, 16)])


def conv_3d(g):
    c = g.channels(1, 512)
    return conv(g, "conv 3-D", c, g.channels(1, 512), g.sides(3, 64), kernel_of(g, 3), stride_of(g, 3), [1, 1, 1])


def conv_transposed(g):
    k, s = g.pick((2, 2), (3, 2), (4, 2), (4, 4), (3, 1), (5, 2), (8, 4), (16, 8))
    p = (k - s) // 2
    cin, cout, spatial = g.channels(1, 1024), g.channels(1, 1024), g.sides(2, 128)
    out = [(n - 1) * s + k - 2 * p for n in spatial]
    g.cost(cin, cout, *spatial, k, k)
    x = g.before([1, cin, *spatial], "conv", "relu")
    y = g.op("ConvTranspose", x, g.weight(cin, cout, k, k, fan=cin * k * k / (s * s)), g.weight(cout), strides=[s, s], pads=[p] * 4,
             kernel_shape=[k, k], shape=[1, cout, *out])
    g.behind(y, *BEHIND_CONV)
    return "conv transposed", f"{cin} to {cout}, {k}x{k} on {times(spatial)}, stride {s}"


# ---- products --------------------------------------------------------------------------------------------

def dense(g):
    m, k, n = 1 if g.chance(0.2) else g.log(1, 4096), g.channels(1, 4096), g.channels(1, 4096)
    g.cost(m, k, n)
    y = g.op("MatMul", g.before([m, k], "norm", "relu"), g.weight(k, n, fan=k), shape=[m, n])
    g.behind(y, "bias", "bias_gelu", "bias", "relu", "add")
    return "dense, a row" if m == 1 else "dense", f"{m} x {k} by {k} x {n}"


def batched(g):
    b, m, k, n = g.log(1, 64), g.log(1, 1024), g.log(1, 1024), g.log(1, 1024)
    g.cost(b, m, k, n)
    x = g.before([b, m, k], "scale", "relu")
    if g.chance(0.4):
        w = g.op("Transpose", g.input(b, n, k), perm=[0, 2, 1], shape=[b, k, n])
        how = ", the second transposed"
    else:
        w, how = g.input(b, k, n), ""
    g.behind(g.op("MatMul", x, w, shape=[b, m, n]), "add", "relu", "dense")
    return "product of values", f"{b} x {m} x {k} by {k} x {n}{how}"


def attention(g):
    h, d, s = g.pick(1, 2, 4, 6, 8, 12, 16), g.pick(16, 24, 32, 40, 64, 64, 64, 80, 96, 128), g.log(1, 1024)
    t = s if g.chance(0.7) else g.log(1, 2048)
    mask = g.pick("no", "no", "row", "causal")
    g.cost(2, h, s, t, d)

    def heads(n):
        if not g.neighbours:
            return g.input(1, h, n, d)
        g.cost(n, h, d, h, d)
        y = g.op("Add", g.op("MatMul", g.input(1, n, h * d), g.weight(h * d, h * d, fan=h * d)), g.weight(h * d))
        y = g.op("Reshape", y, g.const(np.array([1, n, h, d])), shape=[1, n, h, d])
        return g.op("Transpose", y, perm=[0, 2, 1, 3], shape=[1, h, n, d])

    q, k, v = heads(s), heads(t), heads(t)
    k = g.op("Transpose", k, perm=[0, 1, 3, 2], shape=[1, h, d, t])
    y = g.op("Mul", g.op("MatMul", q, k, shape=[1, h, s, t]), g.const(np.float32(d**-0.5)))
    if mask == "row":
        y = g.op("Add", y, g.input(1, 1, 1, t))
    elif mask == "causal":
        y = g.op("Add", y, g.const(np.triu(np.full((s, t), -1e4, np.float32), t - s + 1)))
    y = g.op("MatMul", g.op("Softmax", y, axis=-1), v, shape=[1, h, s, d])
    if g.neighbours:
        y = g.op("Transpose", y, perm=[0, 2, 1, 3], shape=[1, s, h, d])
        y = g.op("Reshape", y, g.const(np.array([1, s, h * d])), shape=[1, s, h * d])
        y = g.op("MatMul", y, g.weight(h * d, h * d, fan=h * d))
    g.outs.append(y)
    return "attention", f"{h} heads of {d}, {s} by {t}, {mask} mask"


def recurrent(g):
    kind, t, b = g.pick("LSTM", "GRU", "RNN"), g.log(1, 128), g.pick(1, 1, 1, 2, 8)
    i, h, both = g.channels(1, 512), g.channels(1, 512), g.chance(0.3)
    gates, n = {"LSTM": 4, "GRU": 3, "RNN": 1}[kind], 2 if both else 1
    g.cost(n, t, b, gates, h, i + h)
    x = g.before([t, b, i], "norm", "relu")
    attrs = {"linear_before_reset": 1} if kind == "GRU" else {}
    y = g.op(kind, x, g.weight(n, gates * h, i, fan=i), g.weight(n, gates * h, h, fan=h), g.weight(n, 2 * gates * h, fan=9),
             hidden_size=h, direction="bidirectional" if both else "forward", shape=[t, n, b, h], **attrs)
    if g.neighbours:
        y = g.op("Transpose", y, perm=[0, 2, 1, 3], shape=[t, b, n, h])
        y = g.op("Reshape", y, g.const(np.array([t, b, n * h])), shape=[t, b, n * h])
    g.behind(y, "dense")
    return "recurrent", f"{kind}{' both ways' if both else ''}, {i} to {h}, {t} steps, batch {b}"


# ---- pools, norms, sums ----------------------------------------------------------------------------------

def pool(g):
    kind, k, s, c, spatial = g.pick("MaxPool", "AveragePool"), g.pick(2, 3, 3, 5), g.pick(1, 2, 2, 3), g.channels(), g.sides(2)
    p = k // 2 if g.chance(0.6) else 0
    out = [(n + 2 * p - k) // s + 1 for n in spatial]
    if min(out) < 1:
        raise Redraw
    attrs = {"count_include_pad": int(g.chance(0.3))} if kind == "AveragePool" else {}
    y = g.op(kind, g.before([1, c, *spatial], "conv", "relu"), kernel_shape=[k, k], strides=[s, s], pads=[p] * 4,
             shape=[1, c, *out], **attrs)
    g.behind(y, "conv", "relu")
    return "pool", f"{kind} {k}x{k}, stride {s}, pad {p}, {c} on {times(spatial)}"


def pool_global(g):
    kind, c, spatial = g.pick("GlobalAveragePool", "GlobalAveragePool", "GlobalMaxPool"), g.channels(), g.sides(2)
    y = g.op(kind, g.before([1, c, *spatial], "conv", "relu"), shape=[1, c, 1, 1])
    g.behind(y, "conv", "sigmoid")
    return "pool, global", f"{kind}, {c} on {times(spatial)}"


def norm(g):
    kind = g.pick("layer", "layer", "rms", "instance", "group", "batch")
    if kind in ("layer", "rms"):
        m, d = g.log(1, 4096), g.channels(2, 4096)
        x = g.before([m, d], "add")
        if kind == "layer":
            y = g.op("LayerNormalization", x, g.weight(d), g.weight(d), axis=-1)
        else:
            square = g.op("ReduceMean", g.op("Mul", x, x), g.const(np.array([-1])), keepdims=1, shape=[m, 1])
            root = g.op("Sqrt", g.op("Add", square, g.const(np.float32(1e-5))))
            y = g.op("Mul", g.op("Div", x, root), g.weight(d))
        g.behind(y, "dense")
        return "norm", f"{kind}, {m} x {d}"
    width, groups, spatial = g.log(1, 64), g.log(1, 32), g.sides(2)
    c = width * groups
    x = g.before([1, c, *spatial], "conv", "add")
    if kind == "batch":
        y = g.op("BatchNormalization", x, g.weight(c), g.weight(c), g.weight(c), g.const(np.ones(c, np.float32)))
    elif kind == "instance":
        y = g.op("InstanceNormalization", x, g.weight(c), g.weight(c))
    else:
        y = g.op("Reshape", x, g.const(np.array([1, groups, -1])), shape=[1, groups, width * spatial[0] * spatial[1]])
        y = g.op("InstanceNormalization", y, g.weight(groups), g.weight(groups))
        y = g.op("Reshape", y, g.const(np.array([1, c, *spatial])), shape=[1, c, *spatial])
    g.behind(y, "relu", "silu", "conv")
    return "norm", f"{kind}, {c} on {times(spatial)}" + (f", {groups} groups" if kind == "group" else "")


def any_shape(g, low=1, high=4, cells=1 << 20):
    """Of random rank."""
    n, shape = int(g.rng.integers(low, high + 1)), []
    for _ in range(n):
        shape.append(g.log(1, max(1, min(2048, int(cells / np.prod(shape, dtype=float))))))
    g.rng.shuffle(shape)
    return [int(n) for n in shape]


def softmax(g):
    shape = any_shape(g, 2)
    axis, kind = -1 if g.chance(0.6) else int(g.rng.integers(len(shape))), g.pick("Softmax", "Softmax", "Softmax", "LogSoftmax")
    g.behind(g.op(kind, g.before(shape, "scale", "add"), axis=axis), "dense")
    return "softmax", f"{kind} of {times(shape)} along {axis}"


def reduction(g):
    shape, kind = any_shape(g, 2), g.pick("Sum", "Mean", "Mean", "Max", "Min", "L2", "ArgMax")
    axes = sorted(int(a) for a in g.rng.permutation(len(shape))[: 1 + int(g.rng.integers(2))])
    x = g.before(shape, "relu", "add")
    axes = axes[:1] if kind == "ArgMax" else axes
    out = [1 if i in axes else n for i, n in enumerate(shape)]
    if kind == "ArgMax":
        g.outs.append(g.op(kind, x, axis=axes[0], keepdims=1, shape=out))
    else:
        g.behind(g.op("Reduce" + kind, x, g.const(np.array(axes)), keepdims=1, shape=out), "add", "sigmoid")
    return "reduction", f"{kind} of {times(shape)} along {axes}"


# ---- movements -------------------------------------------------------------------------------------------

def resize(g):
    c, spatial, mode = g.channels(1, 512), g.sides(2, 256), g.pick("nearest", "linear", "linear", "cubic")
    scale = g.pick(2, 2, 2, 4, 0.5, 0)
    out = [max(1, int(n * scale)) for n in spatial] if scale else [g.log(1, 512) for _ in spatial]
    how = g.pick("half_pixel", "align_corners", "asymmetric") if mode != "nearest" else "asymmetric"
    attrs = {"nearest_mode": "floor"} if mode == "nearest" else {}
    y = g.op("Resize", g.before([1, c, *spatial], "conv", "relu"), "", "", g.const(np.array([1, c, *out])), mode=mode,
             coordinate_transformation_mode=how, shape=[1, c, *out], **attrs)
    g.behind(y, "conv", "add")
    return "resize", f"{mode}, {how}, {c} on {times(spatial)} to {times(out)}"


def transpose(g):
    shape = any_shape(g, 2, 5)
    perm = [int(i) for i in g.rng.permutation(len(shape))]
    y = g.op("Transpose", g.before(shape, "relu", "add"), perm=perm, shape=[shape[i] for i in perm])
    g.behind(y, "relu", "dense")
    return "transpose", f"{times(shape)} by {perm}"


def concat(g):
    shape, n = any_shape(g, 2, 4, 1 << 19), g.pick(2, 2, 3, 4)
    axis, parts, total = int(g.rng.integers(len(shape))), [], 0
    for _ in range(n):
        part = [g.log(1, 2 * m) if i == axis else m for i, m in enumerate(shape)]
        total += part[axis]
        parts.append(g.before(part, "relu", "add"))
    y = g.op("Concat", *parts, axis=axis, shape=[total if i == axis else m for i, m in enumerate(shape)])
    g.behind(y, "relu", "dense")
    return "concat", f"{n} parts of {times(shape)} along {axis}, {total} in all"


def cut(g):
    """Split and slice."""
    shape = any_shape(g, 2)
    if max(shape) == 1:
        raise Redraw
    axis = g.pick(*[i for i, n in enumerate(shape) if n > 1])
    x = g.before(shape, "relu", "add")
    if g.chance(0.5):
        first = g.log(1, shape[axis] - 1)
        names = [g.name([m if i != axis else s for i, m in enumerate(shape)]) for s in (first, shape[axis] - first)]
        g.nodes.append(helper.make_node("Split", [x, g.const(np.array([first, shape[axis] - first]))], names, axis=axis))
        g.behind(names[0], "relu", "sigmoid")
        g.behind(names[1], "relu", "sigmoid")
        return "split, slice", f"split of {times(shape)} along {axis} after {first}"
    start, step = int(g.rng.integers(shape[axis])), g.pick(1, 1, 2)
    out = [m if i != axis else len(range(start, m, step)) for i, m in enumerate(shape)]
    y = g.op("Slice", x, *[g.const(np.array([v])) for v in (start, shape[axis], axis, step)], shape=out)
    g.behind(y, "relu", "add")
    return "split, slice", f"slice of {times(shape)} along {axis} from {start} by {step}"


def gather(g):
    shape = any_shape(g, 1, 3)
    axis, n = 0 if g.chance(0.6) else int(g.rng.integers(len(shape))), g.log(1, 512)
    index = f"i{len(g.feeds)}"
    g.feeds[index] = g.values.integers(0, shape[axis], n).astype(np.int64)
    table = g.weight(*shape) if g.chance(0.5) else g.input(*shape)
    out = [n if i == axis else m for i, m in enumerate(shape)]
    g.behind(g.op("Gather", table, index, axis=axis, shape=out), "add", "relu")
    return "gather", f"{n} of {times(shape)} along {axis}"


def repeat(g):
    """Pad, tile, expand."""
    shape, kind = any_shape(g, 2, 4, 1 << 17), g.pick("Pad", "Tile", "Expand")
    if kind == "Pad":
        widths = [g.log(1, 8) - 1 for _ in shape] + [g.log(1, 8) - 1 for _ in shape]
        out = [n + a + b for n, a, b in zip(shape, widths, widths[len(shape):])]
        more = g.const(np.array(widths))
    else:
        many = [g.pick(1, 1, 2, 3, 8) for _ in shape]
        shape = [1 if kind == "Expand" and m > 1 else n for m, n in zip(many, shape)]
        many = [g.log(2, 64) if kind == "Expand" and m > 1 else m for m in many]
        out = [n * m for m, n in zip(many, shape)]
        more = g.const(np.array(out if kind == "Expand" else many))
    g.behind(g.op(kind, g.before(shape, "relu", "add"), more, shape=out), "relu", "add")
    return "pad, tile, expand", f"{kind} of {times(shape)} to {times(out)}"


# ---- elementwise -----------------------------------------------------------------------------------------

def elementwise(g):
    shape, words = any_shape(g, 1, 4), []
    y = g.before(shape, "relu", "norm")
    for _ in range(g.pick(1, 2, 3, 4, 6)):
        how = g.pick("Add", "Mul", "Sub", "Max", "Relu", "Sigmoid", "Tanh", "Abs", "Neg")
        if how in ("Add", "Mul", "Sub", "Max"):
            other = [n if g.chance(0.6) else 1 for n in shape]
            other = other[int(g.rng.integers(len(other))):] if g.chance(0.3) else other
            y = g.op(how, y, g.input(*other) if g.chance(0.6) else g.weight(*other))
            how += " " + times(other)
        else:
            y = g.op(how, y)
        words.append(how)
    g.behind(y, "dense", "add")
    return "elementwise", f"{times(shape)}: {', '.join(words)}"


def activation(g):
    shape = any_shape(g, 1, 4)
    kind = g.pick("Relu", "Sigmoid", "Tanh", "Erf", "Exp", "Log", "Sqrt", "HardSwish", "LeakyRelu", "Elu", "Softplus", "Mish",
                  "Reciprocal", "Sin", "Floor", "silu", "gelu", "clip")
    x = g.before(shape, "none", positive=kind in ("Log", "Sqrt", "Reciprocal"))
    if g.neighbours and kind not in ("Log", "Sqrt", "Reciprocal"):
        x = g.op("Add", x, g.weight(shape[-1]))
    y = g.activation(x, kind) if kind.islower() else g.op(kind, x)
    g.behind(y, "dense", "add")
    return "activation", f"{kind} of {times(shape)}"


def cast(g):
    shape, to = any_shape(g, 1, 4), g.pick("INT32", "INT64", "UINT8", "BOOL", "FLOAT16")
    x = g.before(shape, "relu", positive=to == "UINT8")  # engines differ beyond what the type holds
    y = g.op("Cast", x, to=getattr(TP, to))
    g.outs.append(g.op("Cast", y, to=TP.FLOAT) if g.neighbours else y)
    return "cast", f"{times(shape)} to {to}"


# ---- quantized -------------------------------------------------------------------------------------------

def quantized(g):
    """As ONNX Runtime's quantizer writes them: u8 data, i8 weights by channel; a third products of dynamic range."""
    g.loose, how = True, g.pick("conv", "conv", "1x1", "depthwise", "dense", "dense", "dynamic")
    zero, step = g.const(np.uint8(128)), g.const(np.float32(8 / 255))

    def qdq(x):
        return g.op("DequantizeLinear", g.op("QuantizeLinear", x, step, zero), step, zero)

    def weights(axis, *shape, fan):
        w = g.values.integers(-127, 128, shape).astype(np.int8)
        if w.size > MOST_CELLS:
            raise Redraw
        c, name = shape[axis], g.name(shape)
        scale = g.const((g.values.uniform(0.5, 1.5, c) / (73 * fan**0.5)).astype(np.float32))
        g.nodes.append(helper.make_node("DequantizeLinear", [g.const(w), scale, g.const(np.zeros(c, np.int8))], [name], axis=axis))
        return name

    if how in ("dense", "dynamic"):
        m, k, n = g.log(1, 1024), g.channels(4, 4096), g.channels(4, 4096)
        g.cost(m, k, n, 0.5)
        x = g.before([m, k], "norm", "relu")
        if how == "dense":
            y = qdq(g.op("Add", g.op("MatMul", qdq(x), weights(1, k, n, fan=k), shape=[m, n]), g.weight(n)))
        else:
            w, parts = g.values.integers(-127, 128, (k, n)).astype(np.int8), [g.name(s) for s in ([m, k], [], [])]
            if w.size > MOST_CELLS:
                raise Redraw
            g.nodes.append(helper.make_node("DynamicQuantizeLinear", [x], parts))
            y = g.op("MatMulInteger", parts[0], g.const(w), parts[2], shape=[m, n])
            scale = g.op("Mul", parts[1], g.const(np.float32(1 / (73 * k**0.5))))
            y = g.op("Add", g.op("Mul", g.op("Cast", y, to=TP.FLOAT), scale), g.weight(n))
        g.behind(y, "relu", "gelu", "add")
        return "quantized", f"{how}, {m} x {k} by {k} x {n}"
    c, o, spatial = g.channels(1, 1024), g.channels(1, 1024), g.sides(2, 256)
    k, s = (1, 1) if how == "1x1" else (g.pick(3, 3, 5), g.pick(1, 1, 2))
    groups, o = (c, c) if how == "depthwise" else (1, o)
    out = [(n - 1) // s + 1 for n in spatial]
    g.cost(o, *out, c // groups, k, k, 0.5)
    x = qdq(g.before([1, c, *spatial], "conv", "relu"))
    y = g.op("Conv", x, weights(0, o, c // groups, k, k, fan=c // groups * k * k), g.weight(o), group=groups, strides=[s, s],
             pads=[k // 2] * 4, kernel_shape=[k, k], shape=[1, o, *out])
    y = qdq(g.activation(y, "relu") if g.neighbours else y)
    g.outs.append(y)
    return "quantized", f"conv, {c} to {o}, {k}x{k} on {times(spatial)}, stride {s}, groups {groups}"


FAMILIES = {conv_1x1: 6, conv_2d: 10, conv_dilated: 4, conv_groups: 5, conv_depthwise: 5, conv_1d: 6, conv_3d: 3,
            conv_transposed: 4, dense: 9, batched: 4, attention: 5, recurrent: 4, pool: 4, pool_global: 2, norm: 5, softmax: 4,
            reduction: 4, resize: 4, transpose: 4, concat: 3, cut: 3, gather: 2, repeat: 3, elementwise: 5, activation: 4,
            cast: 1, quantized: 8}


def draw(seed, k):
    rng, neighbours = np.random.default_rng([seed, k // 2]), k % 2 == 1
    chances = np.array(list(FAMILIES.values())) / sum(FAMILIES.values())
    family = list(FAMILIES)[rng.choice(len(FAMILIES), p=chances)]
    while True:
        again = int(rng.integers(1 << 40))
        try:  # both cases of a pair are drawn by both, so that they have one shape
            nets = [Net(np.random.default_rng(again), among) for among in (False, True)]
            kind, text = [family(net) for net in nets][0]
            if nets[0].work() < LEAST_WORK:
                continue
            g = nets[neighbours]
            return Case(k, kind, text, neighbours, g.done(), g.feeds, g.outs, g.loose)
        except Redraw:
            pass
