"""Small networks for tiny.py, each as an ONNX model and as plain C of the same loops.

A layer is a method of Net: it adds nodes to the model and a loop nest to the C text, which read the same weights.
The loops are what one writes by hand for a vectorizing compiler: the innermost one walks neighbours of the result and
of the weights, sums lie in the result, sizes are constants, no pointer may alias another, nothing is called but libm.
"""
import numpy as np
from onnx import TensorProto, helper, numpy_helper

ACTIVATIONS = {"relu": ("Relu", "v > 0 ? v : 0"), "tanh": ("Tanh", "tanhf(v)"), "sigmoid": ("Sigmoid", "1 / (1 + expf(-v))"), None: (None, "v")}
GATES = {"LSTM": 4, "GRU": 3}


class Net:
    def __init__(self, seed, *shape):
        self.rng = np.random.default_rng(seed)
        self.nodes, self.consts, self.values = [], [], []
        self.c, self.arrays, self.at, self.macs = [], [], 0, 0
        self.input, self.shape, self.x, self.p = list(shape), list(shape), "x", "in"

    # -- both sides

    def weight(self, *shape, fan=1, order=None):
        """A constant of the model, and where it lies for the C text, its dimensions in another order if need be."""
        w = (self.rng.standard_normal(shape) / np.sqrt(fan)).astype(np.float32)
        name, at = f"w{len(self.consts)}", self.at
        self.consts.append(numpy_helper.from_array(w, name))
        self.values.append(np.ascontiguousarray(w if order is None else w.transpose(order)).ravel())
        self.at += w.size
        return name, f"(w + {at})"

    def shape_of(self, *dims):
        name = f"w{len(self.consts)}"
        self.consts.append(numpy_helper.from_array(np.array(dims, np.int64), name))
        return name

    def node(self, kind, *args, **attrs):
        self.x = f"t{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, args, [self.x], **attrs))
        return self.x

    def room(self, cells):
        """An array of the C text."""
        self.arrays.append(f"static float r{len(self.arrays)}[{cells}] __attribute__((aligned(64)));\n")
        return f"r{len(self.arrays) - 1}"

    def loop(self, text, **names):
        for k, v in names.items():
            text = text.replace("$" + k, str(v))
        self.c.append("    {" + text + "\n    }\n")

    def activation(self, act):
        if act:
            self.node(ACTIVATIONS[act][0], self.x)
            self.loop("for (int i = 0; i < $n; i++) { float v = $p[i]; $p[i] = $e; }", n=np.prod(self.shape), p=self.p,
                      e=ACTIVATIONS[act][1])
        return self

    # -- layers

    def dense(self, n, act=None):
        k, y = self.shape[-1], self.room(n)
        (w, wp), (b, bp) = self.weight(k, n, fan=k), self.weight(n)
        self.node("Gemm", self.x, w, b)
        self.loop("""
        for (int j = 0; j < $n; j++) $y[j] = $b[j];
        for (int k = 0; k < $k; k++)
            for (int j = 0; j < $n; j++) $y[j] += $x[k] * $w[k * $n + j];""", n=n, k=k, x=self.p, y=y, w=wp, b=bp)
        self.shape, self.p, self.macs = [1, n], y, self.macs + k * n
        return self.activation(act)

    def conv(self, o, kh, kw, s=1, act="relu", depthwise=False):
        _, c, h, v = self.shape
        ph, pw, oh, ow = kh // 2, kw // 2, (h - 1) // s + 1, (v - 1) // s + 1
        g = c if depthwise else 1
        (w, wp), (b, bp) = self.weight(o, c // g, kh, kw, fan=c // g * kh * kw), self.weight(o)
        pad, y = self.room(c * (h + kh) * (v + kw)), self.room(o * oh * ow)
        self.node("Conv", self.x, w, b, pads=[ph, pw, kh - 1 - ph, kw - 1 - pw], strides=[s, s], group=g)
        self.loop("""
        for (int i = 0; i < $c * $H * $V; i++) $pad[i] = 0;
        for (int c = 0; c < $c; c++)
            for (int y = 0; y < $h; y++)
                for (int x = 0; x < $v; x++) $pad[(c * $H + y + $ph) * $V + x + $pw] = $x[(c * $h + y) * $v + x];
        for (int o = 0; o < $o; o++)
            for (int y = 0; y < $a; y++) {
                float row[$b];
                for (int x = 0; x < $b; x++) row[x] = $bias[o];
                for (int c = 0; c < $d; c++)
                    for (int kh = 0; kh < $kh; kh++)
                        for (int kw = 0; kw < $kw; kw++)
                            for (int x = 0; x < $b; x++)
                                row[x] += $w[((o * $d + c) * $kh + kh) * $kw + kw]
                                    * $pad[(($from) * $H + y * $s + kh) * $V + x * $s + kw];
                for (int x = 0; x < $b; x++) $y[(o * $a + y) * $b + x] = row[x];
            }""", bias=bp, pad=pad, ph=ph, pw=pw, kh=kh, kw=kw, H=h + kh, V=v + kw, **{"from": "o" if depthwise else "c"},
                  o=o, d=c // g, c=c, h=h, v=v, a=oh, b=ow, s=s, x=self.p, y=y, w=wp)
        self.shape, self.p, self.macs = [1, o, oh, ow], y, self.macs + o * oh * ow * (c // g) * kh * kw
        return self.activation(act)

    def pool(self):
        """2x2, the largest."""
        _, c, h, v = self.shape
        y = self.room(c * (h // 2) * (v // 2))
        self.node("MaxPool", self.x, kernel_shape=[2, 2], strides=[2, 2])
        self.loop("""
        for (int c = 0; c < $c; c++)
            for (int y = 0; y < $h / 2; y++)
                for (int x = 0; x < $v / 2; x++) {
                    const float *p = $x + (c * $h + 2 * y) * $v + 2 * x;
                    float m = p[0] > p[1] ? p[0] : p[1], n = p[$v] > p[$v + 1] ? p[$v] : p[$v + 1];
                    $y[(c * ($h / 2) + y) * ($v / 2) + x] = m > n ? m : n;
                }""", c=c, h=h, v=v, x=self.p, y=y)
        self.shape, self.p = [1, c, h // 2, v // 2], y
        return self

    def mean(self):
        """Of rows and columns."""
        _, c, h, v = self.shape
        y = self.room(c)
        self.node("GlobalAveragePool", self.x)
        self.loop("""
        for (int c = 0; c < $c; c++) {
            float sum = 0;
            for (int i = 0; i < $n; i++) sum += $x[c * $n + i];
            $y[c] = sum / $n;
        }""", c=c, n=h * v, x=self.p, y=y)
        self.shape, self.p = [1, c, 1, 1], y
        return self.flat()

    def flat(self):
        n = int(np.prod(self.shape))
        self.node("Reshape", self.x, self.shape_of(1, n))
        self.shape = [1, n]
        return self

    def softmax(self):
        n = self.shape[-1]
        self.node("Softmax", self.x, axis=-1)
        self.loop("""
        float most = $p[0], sum = 0;
        for (int i = 1; i < $n; i++) most = $p[i] > most ? $p[i] : most;
        for (int i = 0; i < $n; i++) $p[i] = expf($p[i] - most);
        for (int i = 0; i < $n; i++) sum += $p[i];
        for (int i = 0; i < $n; i++) $p[i] /= sum;""", n=n, p=self.p)
        return self

    def recurrent(self, kind, h):
        """[steps, 1, n] to [steps, 1, h]; the gates' order is ONNX's."""
        steps, _, n = self.shape
        g, y = GATES[kind], self.room(steps * h)
        (w, wp), (r, rp) = self.weight(1, g * h, n, fan=n, order=(0, 2, 1)), self.weight(1, g * h, h, fan=h, order=(0, 2, 1))
        b, bp = self.weight(1, 2 * g * h, fan=9)
        a, s, state = self.room(g * h), self.room(g * h), self.room(2 * h)
        self.node(kind, self.x, w, r, b, hidden_size=h, **({"linear_before_reset": 1} if kind == "GRU" else {}))
        self.node("Reshape", self.x, self.shape_of(steps, 1, h))
        cell = {"LSTM": """
            for (int j = 0; j < $h; j++) {
                float i = 1 / (1 + expf(-($a[j] + $s[j]))), o = 1 / (1 + expf(-($a[$h + j] + $s[$h + j])));
                float f = 1 / (1 + expf(-($a[2 * $h + j] + $s[2 * $h + j]))), c = tanhf($a[3 * $h + j] + $s[3 * $h + j]);
                $t[$h + j] = f * $t[$h + j] + i * c;
                $t[j] = o * tanhf($t[$h + j]);
            }""", "GRU": """
            for (int j = 0; j < $h; j++) {
                float z = 1 / (1 + expf(-($a[j] + $s[j]))), r = 1 / (1 + expf(-($a[$h + j] + $s[$h + j])));
                float c = tanhf($a[2 * $h + j] + r * $s[2 * $h + j]);
                $t[j] = (1 - z) * c + z * $t[j];
            }"""}[kind]
        self.loop("""
        for (int j = 0; j < 2 * $h; j++) $t[j] = 0;
        for (int step = 0; step < $T; step++) {
            for (int j = 0; j < $G; j++) $a[j] = $b[j], $s[j] = $b[$G + j];
            for (int k = 0; k < $n; k++)
                for (int j = 0; j < $G; j++) $a[j] += $x[step * $n + k] * $w[k * $G + j];
            for (int k = 0; k < $h; k++)
                for (int j = 0; j < $G; j++) $s[j] += $t[k] * $r[k * $G + j];""" + cell + """
            for (int j = 0; j < $h; j++) $y[step * $h + j] = $t[j];
        }""", T=steps, G=g * h, h=h, n=n, a=a, s=s, t=state, x=self.p, y=y, w=wp, r=rp, b=bp)
        self.shape, self.p, self.macs = [steps, 1, h], y, self.macs + steps * g * h * (n + h)
        return self

    def last(self):
        """The last step of [steps, 1, n], as a row."""
        steps, _, n = self.shape
        self.node("Gather", self.x, self.shape_of(steps - 1), axis=0)
        self.node("Reshape", self.x, self.shape_of(1, n))
        self.shape, self.p = [1, n], f"({self.p} + {(steps - 1) * n})"
        return self

    # -- what comes out

    def model(self):
        def value(name, shape):
            return helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)
        graph = helper.make_graph(self.nodes, "tiny", [value("x", self.input)], [value(self.x, self.shape)], self.consts)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=10).SerializeToString()

    def text(self):
        return ("#include <math.h>\n#include <stdint.h>\n\n" + "".join(self.arrays) +
                "\nint32_t run(float *const *ins, float *const *outs, const float *restrict w)\n{\n"
                "    const float *restrict in = ins[0];\n    float *restrict out = outs[0];\n\n" + "".join(self.c) +
                f"    for (int i = 0; i < {np.prod(self.shape)}; i++) out[i] = {self.p}[i];\n    return 0;\n}}\n")


def mlp(seed, *sizes):
    net = Net(seed, 1, sizes[0])
    for n in sizes[1:-1]:
        net.dense(n, "relu")
    return net.dense(sizes[-1])


def keyword(seed, c, blocks):
    """Depthwise and 1x1 convolutions on 49 frames of 10 features (Zhang et al., 2017)."""
    net = Net(seed, 1, 1, 49, 10).conv(c, 10, 4, 2)
    for _ in range(blocks):
        net.conv(c, 3, 3, depthwise=True).conv(c, 1, 1)
    return net.mean().dense(12).softmax()


NETS = {
    "mlp 32-16-8": lambda: mlp(1, 32, 16, 8).softmax(),
    "mlp 64-64-10": lambda: mlp(2, 64, 64, 10).softmax(),
    "mlp 13-50-50-1": lambda: mlp(3, 13, 50, 50, 1),
    "mlp 784-64-10": lambda: mlp(4, 784, 64, 10).softmax(),
    "mlp 784-256-128-10": lambda: mlp(5, 784, 256, 128, 10).softmax(),
    "policy 376-256-256-17, tanh": lambda: Net(6, 1, 376).dense(256, "tanh").dense(256, "tanh").dense(17, "tanh"),
    "autoencoder 640-128-8-128-640": lambda: mlp(7, 640, 128, 128, 128, 128, 8, 128, 128, 128, 128, 640),
    "digits 8x8": lambda: Net(8, 1, 1, 8, 8).conv(8, 3, 3).pool().conv(16, 3, 3).pool().flat().dense(10).softmax(),
    "digits 28x28": lambda: Net(9, 1, 1, 28, 28).conv(8, 5, 5).pool().conv(16, 5, 5).pool().flat().dense(10).softmax(),
    "cnn 3x32x32": lambda: Net(10, 1, 3, 32, 32).conv(16, 3, 3).pool().conv(32, 3, 3).pool().conv(32, 3, 3).mean().dense(10).softmax(),
    "sensor 6x1x128": lambda: Net(11, 1, 6, 1, 128).conv(16, 1, 5, 2).conv(24, 1, 5, 2).conv(32, 1, 3, 2).mean().dense(6).softmax(),
    "keywords, 24 channels": lambda: keyword(12, 24, 2),
    "keywords, 64 channels": lambda: keyword(13, 64, 4),
    "lstm 40 to 32, 1 step": lambda: Net(14, 1, 1, 40).recurrent("LSTM", 32).last().dense(1, "sigmoid"),
    "voice 129 to 128, 1 step": lambda: Net(15, 1, 129, 1, 4).conv(64, 1, 3, 2).conv(64, 1, 3, 2).flat().dense(128, "relu").dense(1, "sigmoid"),
    "lstm 64 to 128, 4 steps": lambda: Net(16, 4, 1, 64).recurrent("LSTM", 128).last().dense(1, "sigmoid"),
    "gru 16 to 16, 10 steps": lambda: Net(17, 10, 1, 16).recurrent("GRU", 16).last().dense(4),
    "gru 42 to 96, 10 steps": lambda: Net(18, 10, 1, 42).recurrent("GRU", 96).last().dense(22, "sigmoid"),
}
