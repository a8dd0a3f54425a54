"""The generator of random_models.py: Net(seed).model() is an ONNX model of layers drawn at random, its
`feeds` are inputs for it, `step` is the coarsest scale of what it quantizes (0: nothing)."""
import platform

import numpy as np
import onnx
from onnx import TensorProto as T, helper as h, numpy_helper as nh

OPSET = 17

# x86 without VNNI adds two products of u8 and i8 in 16 bits, and onnxruntime lets them end at 32767.
SATURATES = platform.machine() == "x86_64" and "vnni" not in open("/proc/cpuinfo").read()


class Net:
    def __init__(self, seed):
        self.rng = np.random.default_rng(seed)
        self.nodes, self.inits, self.inputs, self.feeds = [], [], [], {}
        self.shape = {}  # of the float tensors that layers may take
        self.names = 0
        self.step = 0.0  # the coarsest quantization

    # ---- chance
    def pick(self, *choices):
        return choices[self.rng.integers(len(choices))]

    def chance(self, percent):
        return self.rng.integers(100) < percent

    def upto(self, n):
        return int(self.rng.integers(n + 1))

    # ---- building
    def name(self):
        self.names += 1
        return f"t{self.names}"

    def const(self, value):
        n = self.name()
        self.inits.append(nh.from_array(np.ascontiguousarray(value), n))
        return n

    def signed(self, *shape):
        """Weights of 8 bits."""
        most = 64 if SATURATES else 127
        return self.const(self.rng.integers(-most, most + 1, shape).astype(np.int8))

    def floats(self, *shape, scale=1.0):
        return self.const((self.rng.standard_normal(shape) * scale).astype(np.float32))

    def ints(self, *values):
        return self.const(np.array(values, np.int64))

    def raw(self, op, ins, outs=1, **attrs):
        names = [self.name() for _ in range(outs)]
        self.nodes.append(h.make_node(op, ins, names, **attrs))
        return names[0] if outs == 1 else names

    def op(self, op, ins, shape, **attrs):
        n = self.raw(op, ins, **attrs)
        self.shape[n] = tuple(int(d) for d in shape)
        return n

    def input(self, *shape):
        n = self.name()
        self.inputs.append(h.make_tensor_value_info(n, T.FLOAT, shape))
        self.feeds[n] = self.rng.standard_normal(shape).astype(np.float32)
        self.shape[n] = shape
        return n

    def like(self, x):
        """Another tensor of x's shape, or of one that broadcasts to it."""
        s = self.shape[x]
        same = [n for n, t in self.shape.items() if t == s and n != x]
        if same and self.chance(60):
            return self.pick(*same)
        cut = [d if self.chance(50) else 1 for d in s]
        kind = self.upto(3)
        if kind == 0:
            cut = []
        elif kind == 1 and len(s) == 4:
            cut = [s[1], 1, 1]
        elif kind == 2:
            cut = list(s)
        return self.floats(*cut)

    # ---- layers of pictures
    def conv(self, x):
        n, c, hh, ww = self.shape[x]
        groups = self.pick(1, 1, 1, c, *[g for g in (2, 3, 4, 8) if c % g == 0])
        k = self.pick((1, 1), (3, 3), (3, 3), (3, 3), (5, 5), (1, 7), (7, 1), (2, 2), (4, 3), (7, 7))
        oc = groups * self.pick(1, 1, 2) if groups == c else groups * self.pick(1, 2, 4, 5, 8, 16)
        oc = min(oc, 160 // groups * groups or groups)
        stride = self.pick([1, 1], [1, 1], [1, 1], [2, 2], [2, 1], [3, 3])
        dil = self.pick([1, 1], [1, 1], [1, 1], [2, 2], [1, 3])
        how = self.upto(3)
        attrs = {}
        eff = [(k[i] - 1) * dil[i] + 1 for i in (0, 1)]
        if how == 0:
            attrs["auto_pad"] = self.pick("SAME_UPPER", "SAME_LOWER")
            if dil != [1, 1]:
                dil = [1, 1]
            out = [-(-hh // stride[0]), -(-ww // stride[1])]
        else:
            pads = ([eff[0] // 2, eff[1] // 2] * 2 if how < 3 else [self.upto(eff[i % 2] - 1) for i in range(4)])
            out = [(d + pads[i] + pads[i + 2] - eff[i]) // stride[i] + 1
                   for i, d in enumerate((hh, ww))]
            if min(out) < 1 or hh + pads[0] + pads[2] < eff[0] or ww + pads[1] + pads[3] < eff[1]:
                return None
            attrs["pads"] = pads
        w = self.floats(oc, c // groups, *k, scale=(c // groups * k[0] * k[1]) ** -0.5)
        ins = [x, w] + ([self.floats(oc)] if self.chance(70) else [])
        return self.op("Conv", ins, (n, oc, *out), group=groups, kernel_shape=k, strides=stride,
                       dilations=dil, **attrs)

    def deconv(self, x):
        n, c, hh, ww = self.shape[x]
        if hh * ww > 800:
            return None
        groups = self.pick(1, 1, c, *[g for g in (2, 4) if c % g == 0])
        oc = groups * self.pick(1, 2, 3, 8)
        k = self.pick([2, 2], [3, 3], [4, 4], [5, 5], [3, 2])
        stride = self.pick([1, 1], [2, 2], [2, 2], [3, 2])
        dil = self.pick([1, 1], [1, 1], [1, 1], [2, 2])
        pads = [self.upto(min(1, k[i % 2] - 1)) for i in range(4)]
        extra = [self.upto(stride[i] - 1) if self.chance(30) else 0 for i in (0, 1)]
        out = [(d - 1) * stride[i] + (k[i] - 1) * dil[i] + 1 - pads[i] - pads[i + 2] + extra[i]
               for i, d in enumerate((hh, ww))]
        if min(out) < 1:
            return None
        w = self.floats(c, oc // groups, *k, scale=(c // groups * k[0]) ** -0.5)
        ins = [x, w] + ([self.floats(oc)] if self.chance(50) else [])
        return self.op("ConvTranspose", ins, (n, oc, *out), group=groups, kernel_shape=k, strides=stride,
                       dilations=dil, pads=pads, output_padding=extra)

    def norm(self, x):
        s = self.shape[x]
        c = s[1]
        if self.chance(25) and min(s[2:]) > 1:
            return self.op("InstanceNormalization", [x, self.floats(c), self.floats(c)], s)
        if self.chance(10):
            return self.op("LRN", [x], s, size=self.pick(3, 5))
        var = self.const(self.rng.uniform(0.5, 2, c).astype(np.float32))
        return self.op("BatchNormalization",
                       [x, self.floats(c), self.floats(c), self.floats(c), var], s)

    def act(self, x):
        s = self.shape[x]
        kind = self.pick("Relu", "Relu", "Relu", "Sigmoid", "Tanh", "LeakyRelu", "Elu", "Selu", "HardSwish",
                         "HardSigmoid", "Softplus", "Clip", "PRelu", "gelu", "silu", "mish", "Softsign",
                         "Abs", "Neg", "Sqrt", "Floor", "Exp")
        if kind == "Clip":
            return self.op("Clip", [x, self.const(np.float32(-0.5)), self.const(np.float32(1.5))], s)
        if kind == "PRelu":
            return self.op("PRelu", [x, self.floats(*([s[1]] + [1] * (len(s) - 2)))], s) if len(s) > 1 else None
        if kind == "gelu":
            e = self.raw("Erf", [self.raw("Div", [x, self.const(np.float32(1.41421356))])])
            e = self.raw("Mul", [x, self.raw("Add", [e, self.const(np.float32(1))])])
            return self.op("Mul", [e, self.const(np.float32(0.5))], s)
        if kind == "silu":
            return self.op("Mul", [x, self.raw("Sigmoid", [x])], s)
        if kind == "mish":
            return self.op("Mul", [x, self.raw("Tanh", [self.raw("Softplus", [x])])], s)
        if kind == "Sqrt":
            return self.op("Sqrt", [self.raw("Abs", [x])], s)
        if kind == "Floor": # not of x itself, where rounding would decide
            return self.op("Add", [x, self.raw("Floor", [self.floats(*s)])], s)
        if kind == "Exp":
            return self.op("Exp", [self.raw("Tanh", [x])], s)
        return self.op(kind, [x], s)

    def combine(self, x):
        s = self.shape[x]
        op = self.pick("Add", "Add", "Add", "Mul", "Sub", "Max", "Min")
        ins = [x, self.like(x)]
        if self.chance(30):
            ins.reverse()
        return self.op(op, ins, s)

    def pool(self, x):
        n, c, hh, ww = self.shape[x]
        k = self.pick([2, 2], [3, 3], [3, 3], [1, 2], [5, 5])
        stride = self.pick([1, 1], [2, 2], [2, 2], [3, 1])
        pads = [self.upto(k[i % 2] // 2) for i in range(4)] if self.chance(60) else [0] * 4
        attrs = {"ceil_mode": 1} if self.chance(20) else {}
        op = self.pick("MaxPool", "AveragePool")
        if op == "AveragePool" and self.chance(40):
            attrs["count_include_pad"] = 1
        if attrs.get("ceil_mode") and op == "AveragePool":
            attrs.pop("ceil_mode")
        out = []
        for i, d in enumerate((hh, ww)):
            room = d + pads[i] + pads[i + 2] - k[i]
            if room < 0:
                return None
            o = (-(-room // stride[i]) if attrs.get("ceil_mode") else room // stride[i]) + 1
            if attrs.get("ceil_mode") and (o - 1) * stride[i] >= d + pads[i]:
                o -= 1
            out.append(o)
        return self.op(op, [x], (n, c, *out), kernel_shape=k, strides=stride, pads=pads, **attrs)

    def concat(self, x):
        s = self.shape[x]
        axis = self.pick(1, 1, 1, *range(len(s)))
        same = [n for n, t in self.shape.items()
                if len(t) == len(s) and all(t[i] == s[i] for i in range(len(s)) if i != axis)]
        ins = [x] + [self.pick(*same) for _ in range(1 + self.upto(1))]
        out = list(s)
        out[axis] = sum(self.shape[i][axis] for i in ins)
        if out[axis] > 400 and axis == 1:
            return None
        return self.op("Concat", ins, out, axis=axis)

    def resize(self, x):
        n, c, hh, ww = self.shape[x]
        if hh * ww > 1000:
            return None
        mode = self.pick("nearest", "linear")
        f = self.pick((2, 2), (2, 2), (3, 1), (1, 2))
        attrs = {"nearest_mode": self.pick("floor", "round_prefer_floor")} if mode == "nearest" else {}
        how = self.pick("asymmetric", "half_pixel", "align_corners")
        if mode == "nearest":
            how = "asymmetric"
        if how == "align_corners" and min(hh, ww) < 2:
            how = "asymmetric"
        scales = self.const(np.array([1, 1, *f], np.float32))
        return self.op("Resize", [x, "", scales], (n, c, hh * f[0], ww * f[1]), mode=mode,
                       coordinate_transformation_mode=how, **attrs)

    def squeeze_excite(self, x):
        n, c, hh, ww = self.shape[x]
        m = max(1, c // 4)
        p = self.raw("GlobalAveragePool", [x])
        a = self.raw("Relu", [self.raw("Conv", [p, self.floats(m, c, 1, 1, scale=c ** -0.5), self.floats(m)])])
        b = self.raw("Conv", [a, self.floats(c, m, 1, 1, scale=m ** -0.5)])
        return self.op("Mul", [x, self.raw(self.pick("Sigmoid", "HardSigmoid"), [b])], (n, c, hh, ww))

    def pad(self, x):
        s = self.shape[x]
        mode = self.pick("constant", "constant", "edge", "reflect")
        before = [0] * (len(s) - 2) + [self.upto(min(2, s[-2] - 1)), self.upto(min(2, s[-1] - 1))]
        after = [0] * (len(s) - 2) + [self.upto(min(2, s[-2] - 1)), self.upto(min(2, s[-1] - 1))]
        out = [d + a + b for d, a, b in zip(s, before, after)]
        ins = [x, self.ints(*before, *after)]
        if mode == "constant" and self.chance(50):
            ins.append(self.const(np.float32(self.pick(0.0, 1.5))))
        return self.op("Pad", ins, out, mode=mode)

    def cut(self, x):
        s = self.shape[x]
        axis = self.upto(len(s) - 1)
        if s[axis] < 2:
            return None
        step = self.pick(1, 1, 2)
        lo = self.upto(s[axis] // 2)
        hi = s[axis] - self.upto((s[axis] - lo - 1) // 2)
        out = list(s)
        out[axis] = -(-(hi - lo) // step)
        return self.op("Slice", [x, self.ints(lo), self.ints(hi), self.ints(axis), self.ints(step)], out)

    def parts(self, x):
        s = self.shape[x]
        axis = self.pick(1, len(s) - 1)
        if s[axis] % 2:
            return None
        a, b = self.raw("Split", [x], outs=2, axis=axis)
        out = list(s)
        out[axis] //= 2
        self.shape[a] = self.shape[b] = tuple(out)
        return self.op(self.pick("Add", "Mul"), [a, self.raw("Sigmoid", [b])], out)

    def moves(self, x):
        s = self.shape[x]
        n = len(s)
        if self.chance(30) and n == 4:  # channel shuffle
            g = self.pick(2, 3, 4)
            if s[1] % g:
                return None
            r = self.raw("Reshape", [x, self.ints(s[0], g, s[1] // g, *s[2:])])
            r = self.raw("Transpose", [r], perm=[0, 2, 1, 3, 4])
            return self.op("Reshape", [r, self.ints(*s)], s)
        if self.chance(30) and n == 4:
            b = 2
            if self.chance(50) and s[1] % 4 == 0:
                return self.op("DepthToSpace", [x], (s[0], s[1] // 4, s[2] * 2, s[3] * 2), blocksize=b,
                               mode=self.pick("DCR", "CRD"))
            if s[2] % 2 == 0 and s[3] % 2 == 0 and s[1] <= 64:
                return self.op("SpaceToDepth", [x], (s[0], s[1] * 4, s[2] // 2, s[3] // 2), blocksize=b)
            return None
        perm = [int(i) for i in self.rng.permutation(n)]
        if n == 4 and self.chance(60):
            perm = self.pick([0, 2, 3, 1], [0, 3, 1, 2], [0, 1, 3, 2])
        return self.op("Transpose", [x], [s[i] for i in perm], perm=perm)

    def reduce(self, x):
        s = self.shape[x]
        axes = sorted({self.upto(len(s) - 1) for _ in range(1 + self.upto(1))})
        op = self.pick("ReduceMean", "ReduceMax", "ReduceMin", "ReduceL2", "ReduceLogSumExp", "ReduceSumSquare")
        return self.op(self.pick("Add", "Sub"), [x, self.raw(op, [x], axes=axes, keepdims=1)], s)

    def softmax(self, x):
        s = self.shape[x]
        return self.op(self.pick("Softmax", "Softmax", "LogSoftmax"), [x], s, axis=self.upto(len(s) - 1))

    def gather(self, x):
        s = self.shape[x]
        axis = self.upto(len(s) - 1)
        idx = self.rng.integers(-s[axis], s[axis], 1 + self.upto(min(20, s[axis])))
        out = list(s)
        out[axis] = len(idx)
        return self.op("Gather", [x, self.const(idx.astype(np.int64))], out, axis=axis)

    def where(self, x):
        s = self.shape[x]
        mask = self.const(self.rng.integers(0, 2, s[1:]).astype(bool))
        return self.op("Where", [mask, x, self.const(np.float32(self.pick(0.0, -1.0)))], s)

    def topk(self, x):
        s = self.shape[x]
        if s[-1] < 2:
            return None
        k = 1 + self.upto(min(5, s[-1] - 1))
        v, _ = self.raw("TopK", [x, self.ints(k)], outs=2, axis=len(s) - 1)
        self.shape[v] = (*s[:-1], k)
        return v

    def cumsum(self, x):
        s = self.shape[x]
        axis = self.upto(len(s) - 1)
        y = self.op("CumSum", [x, self.const(np.int64(axis))], s, exclusive=self.upto(1), reverse=self.upto(1))
        return self.op("Mul", [y, self.const(np.float32(s[axis] ** -0.5))], s)

    def arithmetic(self, x):
        s = self.shape[x]
        kind = self.upto(4)
        if kind == 0:
            y = self.raw("Div", [x, self.raw("Add", [self.raw("Abs", [self.like(x)]), self.const(np.float32(0.5))])])
        elif kind == 1:
            y = self.raw("Pow", [self.raw("Abs", [x]), self.const(np.float32(self.pick(0.5, 2.0, 3.0, 1.3)))])
        elif kind == 2:
            y = self.raw("Cast", [self.raw("Greater", [x, self.floats(s[-1])])], to=T.FLOAT)
        elif kind == 3:
            y = self.raw("Where", [self.raw("Less", [self.floats(*s), self.const(np.float32(0))]), x, self.like(x)])
        else:
            y = self.raw("Sum", [x, self.like(x), self.like(x)])
        self.shape[y] = s
        return y

    def spread(self, x):
        s = list(self.shape[x])
        axis = self.upto(len(s) - 1)
        times = self.pick(2, 3)
        if s[axis] == 1 and self.chance(50):
            s[axis] = times
            return self.op("Expand", [x, self.ints(*s)], s)
        s[axis] *= times
        return self.op("Tile", [x, self.ints(*[times if i == axis else 1 for i in range(len(s))])], s)

    def pickers(self, x):
        s = self.shape[x]
        axis = self.upto(len(s) - 1)
        kind = self.upto(3)
        if kind == 0:
            idx = self.rng.integers(0, s[axis], s).astype(np.int64)
            return self.op("GatherElements", [x, self.const(idx)], s, axis=axis)
        if kind == 1:
            rows = self.rng.permutation(s[0])[:1 + self.upto(s[0] - 1)].astype(np.int64)
            return self.op("ScatterND", [x, self.const(rows[:, None]), self.floats(len(rows), *s[1:])], s)
        if kind == 2 and len(s) > 1:
            return self.op("Trilu", [x], s, upper=self.upto(1))
        at = self.raw("ArgMax", [x], axis=axis, keepdims=1)
        y = self.raw("GatherElements", [x, at], axis=axis)
        return self.op("Sub", [x, y], s)

    def einsum(self, x):
        s = self.shape[x]
        if len(s) == 3:
            m = self.pick(3, 16, 24)
            how, w, out = self.pick(
                ("btd,dm->btm", (s[2], m), (s[0], s[1], m)), ("btd,md->bmt", (m, s[2]), (s[0], m, s[1])),
                ("btd,btm->bdm", (s[0], s[1], m), (s[0], s[2], m)), ("btd,tdm->btm", (s[1], s[2], m), (*s[:2], m)))
        else:
            m = self.pick(2, 8)
            how, w, out = self.pick(
                ("bchw,bcwm->bchm", (s[0], s[1], s[3], m), (*s[:3], m)),
                ("bchw,cm->bmhw", (s[1], m), (s[0], m, *s[2:])),
                ("bchw,bdhw->bchd", (s[0], m, *s[2:]), (*s[:3], m)))
        summed = int(np.prod(w)) / m
        return self.op("Einsum", [x, self.floats(*w, scale=summed ** -0.5)], out, equation=how)

    def group_norm(self, x):
        s = self.shape[x]
        g = self.pick(1, 2, 4)
        if s[1] % g or s[1] // g * s[2] * s[3] < 4:
            return None
        y = self.raw("Reshape", [x, self.ints(s[0], g, -1)])
        y = self.raw("InstanceNormalization", [y, self.floats(g), self.floats(g)])
        y = self.raw("Mul", [self.raw("Reshape", [y, self.ints(*s)]), self.floats(s[1], 1, 1)])
        return self.op("Add", [y, self.floats(s[1], 1, 1)], s)

    def other_pool(self, x):
        n, c, hh, ww = self.shape[x]
        if self.chance(40):
            y = self.raw(self.pick("GlobalMaxPool", "GlobalAveragePool", "GlobalLpPool"), [x])
            return self.op("Sub", [x, y], (n, c, hh, ww))
        if min(hh, ww) < 3:
            return None
        return self.op("LpPool", [x], (n, c, hh - 2, (ww - 3) // 2 + 1), kernel_shape=[3, 3], strides=[1, 2],
                       p=self.pick(1, 2))

    # ---- quantized
    def quantized(self, x, scale=None, zero=None):
        """x through bytes and back; the names of the bytes, of scale and of zero point."""
        dtype = self.pick(np.int8, np.uint8)
        scale = self.const(np.float32(scale or self.pick(0.02, 0.03, 0.05)))
        zero = self.const(np.array(self.pick(0, 0, 3, -7) if dtype == np.int8 else self.pick(128, 128, 120, 0),
                                   dtype))
        q = self.raw("QuantizeLinear", [x, scale, zero])
        return self.raw("DequantizeLinear", [q, scale, zero])

    def quantized_weights(self, w, axis):
        if self.chance(60):
            s = np.maximum(np.abs(w).max(axis=tuple(i for i in range(w.ndim) if i != axis)), 1e-3) / 127
            full = s.reshape([-1 if i == axis else 1 for i in range(w.ndim)])
        else:
            s = full = np.float32(np.abs(w).max() / 127)
        q = np.clip(np.rint(w / full), -127, 127).astype(np.int8)
        zero = self.const(np.zeros(np.shape(s), np.int8))
        attrs = {"axis": axis} if np.ndim(s) else {}
        return self.raw("DequantizeLinear", [self.const(q), self.const(np.asarray(s, np.float32)), zero], **attrs)

    def qconv(self, x):
        n, c, hh, ww = self.shape[x]
        groups = self.pick(1, 1, c)
        k = self.pick(1, 3, 3, 5)
        stride, pad = self.pick(1, 1, 2), k // 2
        oc = groups if groups > 1 else self.pick(3, 8, 16, 24, 32, 50)
        w = (self.rng.standard_normal((oc, c // groups, k, k)) * (c // groups * k * k) ** -0.5).astype(np.float32)
        ins = [self.quantized(x), self.quantized_weights(w, 0)]
        if self.chance(50):
            ins.append(self.floats(oc, scale=0.3))
        out = [(d + 2 * pad - k) // stride + 1 for d in (hh, ww)]
        y = self.raw("Conv", ins, kernel_shape=[k, k], strides=[stride] * 2, pads=[pad] * 4, group=groups)
        if self.chance(60):
            y = self.raw("Relu", [y])
        self.step = max(self.step, 0.05)
        y = self.quantized(y, scale=0.04)
        self.shape[y] = (n, oc, *out)
        return y

    def qmatmul(self, x):
        s = self.shape[x]
        m = self.pick(1, 8, 17, 32, 64)
        w = (self.rng.standard_normal((s[-1], m)) * s[-1] ** -0.5).astype(np.float32)
        y = self.raw("MatMul", [self.quantized(x), self.quantized_weights(w, 1)])
        if self.chance(50):
            y = self.raw("Add", [y, self.floats(m, scale=0.3)])
        self.step = max(self.step, 0.05)
        y = self.quantized(y, scale=0.04)
        self.shape[y] = (*s[:-1], m)
        return y

    def qinteger(self, x):
        """Dynamic quantization: a product of bytes whose scale is computed."""
        s = self.shape[x]
        m = self.pick(1, 16, 40)
        q, scale, zero = self.raw("DynamicQuantizeLinear", [x], outs=3)
        y = self.raw("MatMulInteger", [q, self.signed(s[-1], m), zero, self.const(np.int8(0))])
        y = self.raw("Mul", [self.raw("Cast", [y], to=T.FLOAT), scale])
        self.step = max(self.step, 0.05)
        return self.op("Mul", [y, self.const(np.float32(s[-1] ** -0.5 / 74))], (*s[:-1], m))

    def qcinteger(self, x):
        """The same of a convolution, whose border stands for 0."""
        n, c, hh, ww = self.shape[x]
        groups = self.pick(1, 1, c)
        k, stride = self.pick(1, 3, 3, 5), self.pick(1, 1, 2)
        oc = groups if groups > 1 else self.pick(3, 16, 24, 33)
        q, scale, zero = self.raw("DynamicQuantizeLinear", [x], outs=3)
        w = self.const(self.rng.integers(0, 256, (oc, c // groups, k, k)).astype(np.uint8))
        y = self.raw("ConvInteger", [q, w, zero, self.const(np.uint8(self.pick(128, 121, 130)))], kernel_shape=[k, k],
                     pads=[k // 2] * 4, strides=[stride] * 2, group=groups)
        y = self.raw("Mul", [self.raw("Cast", [y], to=T.FLOAT), scale])
        self.step = max(self.step, 0.05)
        out = [(d + 2 * (k // 2) - k) // stride + 1 for d in (hh, ww)]
        return self.op("Mul", [y, self.const(np.float32((c // groups * k * k) ** -0.5 / 74))], (n, oc, *out))

    def qlinear(self, x):
        n, c, hh, ww = self.shape[x]
        k, oc = self.pick(1, 3), self.pick(4, 16, 33)
        dtype = self.pick(np.uint8, np.int8)
        xs, xz = self.const(np.float32(0.04)), self.const(np.array(self.pick(0, 5, 100), dtype))
        w = self.signed(oc, c, k, k)
        ws = self.const(np.full(oc, (c * k * k) ** -0.5 / 74, np.float32))
        ins = [self.raw("QuantizeLinear", [x, xs, xz]), xs, xz, w, ws,
               self.const(np.zeros(oc, np.int8)), xs, xz]
        if self.chance(50):
            ins.append(self.const(self.rng.integers(-3000, 3000, oc).astype(np.int32)))
        y = self.raw("QLinearConv", ins, kernel_shape=[k, k], pads=[k // 2] * 4)
        self.step = max(self.step, 0.05)
        return self.op("DequantizeLinear", [y, xs, xz], (n, oc, hh, ww))

    def qadd(self, x):
        s = self.shape[x]
        same = [n for n, t in self.shape.items() if t == s]
        self.step = max(self.step, 0.05)
        y = self.raw("Add", [self.quantized(x), self.quantized(self.pick(*same))])
        y = self.quantized(y, scale=0.05)
        self.shape[y] = s
        return y

    # ---- layers of sequences
    def dense(self, x):
        s = self.shape[x]
        m = self.pick(1, 7, 16, 32, 48, 64, 100)
        y = self.op("MatMul", [x, self.floats(s[-1], m, scale=s[-1] ** -0.5)], (*s[:-1], m))
        if self.chance(70):
            y = self.op("Add", [y, self.floats(m)], (*s[:-1], m))
        return y

    def layer_norm(self, x):
        s = self.shape[x]
        if s[-1] < 4:
            return None
        g, b = self.floats(s[-1]), self.floats(s[-1])
        if self.chance(50):
            return self.op("LayerNormalization", [x, g, b], s, axis=-1)
        d = self.raw("Sub", [x, self.raw("ReduceMean", [x], axes=[-1])])
        v = self.raw("ReduceMean", [self.raw("Mul", [d, d])], axes=[-1])
        v = self.raw("Sqrt", [self.raw("Add", [v, self.const(np.float32(1e-5))])])
        y = self.raw("Add", [self.raw("Mul", [self.raw("Div", [d, v]), g]), b])
        self.shape[y] = s
        return y

    def attention(self, x):
        b, t, d = self.shape[x]
        heads = self.pick(1, 2, 3, 4)
        size = self.pick(4, 8, 16, 13, 32, 64)
        keys = x
        others = [n for n, s in self.shape.items() if len(s) == 3 and s[0] == b and n != x]
        if others and self.chance(25):
            keys = self.pick(*others)
        tk, dk = self.shape[keys][1:]

        def proj(of, rows, cols):
            y = self.raw("MatMul", [of, self.floats(cols, heads * size, scale=cols ** -0.5)])
            if self.chance(60):
                y = self.raw("Add", [y, self.floats(heads * size)])
            y = self.raw("Reshape", [y, self.ints(b, rows, heads, size)])
            return y

        q = self.raw("Transpose", [proj(x, t, d)], perm=[0, 2, 1, 3])
        if self.chance(60):
            k = self.raw("Transpose", [proj(keys, tk, dk)], perm=[0, 2, 3, 1])
        else:
            k = self.raw("Transpose", [self.raw("Transpose", [proj(keys, tk, dk)], perm=[0, 2, 1, 3])],
                         perm=[0, 1, 3, 2])
        v = self.raw("Transpose", [proj(keys, tk, dk)], perm=[0, 2, 1, 3])
        scale = self.const(np.float32(size ** -0.5))
        how = self.upto(2)
        if how == 0:
            q = self.raw("Mul", [q, scale])
        a = self.raw("MatMul", [q, k])
        if how == 1:
            a = self.raw("Mul", [a, scale])
        elif how == 2:
            a = self.raw("Div", [a, self.const(np.float32(size ** 0.5))])
        mask = self.upto(4)
        if mask == 0:
            a = self.raw("Add", [a, self.const(np.triu(np.full((t, tk), -1e4, np.float32), 1))])
        elif mask == 1:
            a = self.raw("Add", [a, self.floats(self.pick(1, b), 1, 1, tk)])
        elif mask == 2:
            keep = self.rng.integers(0, 4, (t, tk)) > 0
            keep[:, 0] = True
            a = self.raw("Where", [self.const(keep), a, self.const(np.float32(self.pick(-1e9, -np.inf)))])
        p = self.raw("Softmax", [a], axis=-1)
        y = self.raw("Transpose", [self.raw("MatMul", [p, v])], perm=[0, 2, 1, 3])
        y = self.raw("Reshape", [y, self.ints(b, t, heads * size)])
        y = self.op("MatMul", [y, self.floats(heads * size, d, scale=(heads * size) ** -0.5)], (b, t, d))
        return self.op("Add", [y, x], (b, t, d)) if self.chance(70) else y

    def rotary(self, x):
        b, t, d = self.shape[x]
        if d % 2:
            return None
        angle = self.rng.standard_normal((t, d)).astype(np.float32)
        lo, hi = self.raw("Split", [x], outs=2, axis=-1)
        turned = self.raw("Concat", [self.raw("Neg", [hi]), lo], axis=-1)
        y = self.raw("Mul", [x, self.const(np.cos(angle))])
        return self.op("Add", [y, self.raw("Mul", [turned, self.const(np.sin(angle))])], (b, t, d))

    def recurrent(self, x):
        b, t, d = self.shape[x]
        if t > 40:
            return None
        op, gates = self.pick(("LSTM", 4), ("GRU", 3), ("RNN", 1))
        hidden = self.pick(1, 8, 13, 16, 32)
        way = self.pick("forward", "reverse", "bidirectional")
        dirs = 2 if way == "bidirectional" else 1
        seq = self.raw("Transpose", [x], perm=[1, 0, 2])
        ins = [seq, self.floats(dirs, gates * hidden, d, scale=d ** -0.5),
               self.floats(dirs, gates * hidden, hidden, scale=hidden ** -0.5)]
        if self.chance(60):
            ins.append(self.floats(dirs, 2 * gates * hidden, scale=0.3))
        attrs = {"linear_before_reset": self.upto(1)} if op == "GRU" else {}
        y = self.raw(op, ins, hidden_size=hidden, direction=way, **attrs)
        y = self.raw("Transpose", [y], perm=[2, 0, 1, 3])
        return self.op("Reshape", [y, self.ints(b, t, dirs * hidden)], (b, t, dirs * hidden))

    def batched(self, x):
        b, t, d = self.shape[x]
        y = self.raw("MatMul", [x, self.raw("Transpose", [x], perm=[0, 2, 1])])
        return self.op("Mul", [y, self.const(np.float32(d ** -0.5))], (b, t, t))

    def conv1d(self, x):
        b, c, t = self.shape[x]
        k, dil = self.pick(1, 3, 5), self.pick(1, 2)
        oc = self.pick(4, 8, 17, 32)
        w = self.floats(oc, c, k, scale=(c * k) ** -0.5)
        return self.op("Conv", [x, w, self.floats(oc)], (b, oc, t), kernel_shape=[k], dilations=[dil],
                       pads=[(k - 1) * dil, 0])

    def gemm(self, x):
        s = self.shape[x]
        n = int(np.prod(s[1:]))
        if n > 8000:
            return None
        m = self.pick(1, 10, 32, 77)
        f = self.raw("Flatten", [x])
        w = self.floats(m, n, scale=n ** -0.5) if self.chance(70) else None
        if w:
            return self.op("Gemm", [f, w, self.floats(m)], (s[0], m), transB=1)
        return self.op("Gemm", [f, self.floats(n, m, scale=n ** -0.5)], (s[0], m),
                       alpha=self.pick(1.0, 0.5))

    # ---- networks
    def grow(self, x, layers, wanted):
        tries = 0
        while wanted and tries < 200:
            tries += 1
            y = None
            if self.chance(85) or len(self.shape) < 2:
                at = x
            else:
                at = self.pick(*[n for n, s in self.shape.items() if len(s) == len(self.shape[x])])
            if int(np.prod(self.shape[at])) == 0:
                continue
            before = len(self.nodes)
            y = getattr(self, self.pick(*layers))(at)
            if y is None:
                del self.nodes[before:]
                continue
            if int(np.prod(self.shape[y])) > 3_000_000:
                del self.nodes[before:]
                del self.shape[y]
                continue
            x = y
            wanted -= 1
        return x

    def pictures(self):
        large = self.chance(10)
        n = self.pick(1, 1, 1, 2, 3, 4, 8, 13)
        c = self.pick(1, 3, 3, 8, 16, 17, 24, 32, 64) if not large else self.pick(32, 64)
        hh = self.pick(1, 2, 5, 7, 8, 13, 14, 16, 28, 31) if not large else self.pick(56, 64, 73)
        ww = hh if self.chance(70) else self.pick(1, 3, 8, 11, 20)
        if self.chance(12): # whose values leave the caches
            n, c, hh = self.pick(8, 16, 24, 32), self.pick(3, 16, 32), self.pick(17, 28, 40)
            ww = hh
        layers = (["conv"] * 8 + ["deconv"] * 2 + ["norm"] * 3 + ["act"] * 6 + ["combine"] * 4 + ["pool"] * 3 +
                  ["concat"] * 2 + ["resize", "squeeze_excite", "pad", "cut", "parts", "moves", "reduce",
                                    "softmax", "gather", "where", "topk", "cumsum", "arithmetic", "spread",
                                    "pickers", "einsum", "group_norm", "other_pool"])
        if self.chance(25):
            layers += ["qconv"] * 8 + ["qadd"] * 3 + ["qlinear"] * 2 + ["qcinteger"] * 2
            layers = [l for l in layers if l not in ("reduce", "cumsum", "norm")]
        if self.chance(40): # what real ones are of
            layers = [l for l in layers if l in ("conv", "norm", "act", "combine", "pool", "concat", "qconv",
                                                 "qadd", "squeeze_excite")]
        return self.finish(self.grow(self.input(n, c, hh, ww), layers, self.pick(1, 3, 6, 12)))

    def sequences(self):
        b, t = self.pick(1, 1, 2, 4), self.pick(1, 2, 7, 16, 33, 64, 100)
        d = self.pick(4, 8, 16, 32, 48, 64, 77)
        layers = (["dense"] * 4 + ["layer_norm"] * 3 + ["attention"] * 5 + ["act"] * 2 + ["combine"] * 3 +
                  ["concat", "cut", "reduce", "softmax", "gather", "recurrent", "batched", "conv1d", "moves",
                   "topk", "cumsum", "arithmetic", "spread", "pickers", "einsum", "rotary"])
        if self.chance(25):
            layers += ["qmatmul"] * 6 + ["qadd"] * 2 + ["qinteger"] * 2
            layers = [l for l in layers if l not in ("reduce", "cumsum", "layer_norm")]
        if self.chance(30):
            self.input(b, self.pick(1, 5, 20), d)
        return self.finish(self.grow(self.input(b, t, d), layers, self.pick(1, 2, 5, 8)))

    def finish(self, x):
        if len(self.shape[x]) == 4 and self.chance(30):
            x = self.op("GlobalAveragePool", [x], (*self.shape[x][:2], 1, 1))
        if self.chance(30):
            x = self.gemm(x) or x
        outs = [x]
        made = {o for n in self.nodes for o in n.output}
        used = {i for n in self.nodes for i in n.input}
        outs += sorted(n for n in self.shape if n in made and n not in used and n != x)[:3]
        if self.chance(15):
            more = [n for n in self.shape if n in made and n not in outs]
            outs += [self.pick(*more)] if more else []
        return outs

    def model(self):
        outs = self.pictures() if self.chance(65) else self.sequences()
        outputs = [h.make_tensor_value_info(o, T.FLOAT, self.shape[o]) for o in outs]
        g = h.make_graph(self.nodes, "g", self.inputs, outputs, self.inits)
        m = h.make_model(g, opset_imports=[h.make_opsetid("", OPSET)], ir_version=9)
        onnx.checker.check_model(m)
        return m, outs
