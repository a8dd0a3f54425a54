#!/usr/bin/env python3
"""One network in all the forms that a framework saves it in: tvmcc's products side by side, and the framework itself.

    forms.py keras WORK [NETWORK..] [--tvmcc FILE] [--mcpu CPU] [--turns N] [--seconds S] [--keep]
    forms.py torch WORK [NETWORK..] ..

keras: .keras, .h5, a SavedModel, a frozen graph, .tflite and .onnx, beside LiteRT (with XNNPACK) and TensorFlow (the frozen graph in
its graph executor).  torch: TorchScript, a program of torch.export, and .onnx by both exporters, beside PyTorch, eager and by torch.compile.

All run in turns in one process, one thread each; a figure is the median of the turns' least times in ms of processor time.
`to ONNX` is the slowest form's time by that of the ONNX form, `kernels` says whether all forms have the same kernels, equally
often, and `to X` is X's time by that of the ONNX form: above 1 tvmcc is faster.  What every product gives is compared with the framework's result first.
--keep: the forms that WORK has are not written again.

Needs numpy and onnx; keras: tensorflow, keras, tf2onnx, ai-edge-litert; torch: torch, onnxscript.
"""
import argparse
import os
import shutil
import statistics
import subprocess
import sys
import time

import numpy as np

import engines
from operators import build_runtime

HERE = os.path.dirname(os.path.abspath(__file__))


# ---- Keras -----------------------------------------------------------------------------------------------

def keras_networks():
    import keras
    L = keras.layers

    def cnn():
        x = keras.Input((32, 32, 3), 1, name="x")
        y = x
        for width in (32, 64, 128):
            y = L.Conv2D(width, 3, padding="same", activation="relu")(y)
            y = L.BatchNormalization()(y)
            y = L.MaxPooling2D()(y)
        y = L.Dense(128, activation="relu")(L.Flatten()(y))
        return keras.Model(x, L.Dense(10, activation="softmax")(y))

    def mobile():
        x = keras.Input((112, 112, 3), 1, name="x")
        y = L.ReLU(6.0)(L.BatchNormalization()(L.Conv2D(16, 3, 2, padding="same", use_bias=False)(x)))
        for width, stride in ((24, 2), (24, 1), (40, 2), (40, 1), (80, 2), (80, 1), (112, 1)):
            skip, many = y, 4 * y.shape[-1]
            y = L.ReLU(6.0)(L.BatchNormalization()(L.Conv2D(many, 1, use_bias=False)(y)))
            y = L.ReLU(6.0)(L.BatchNormalization()(L.DepthwiseConv2D(3, stride, padding="same", use_bias=False)(y)))
            y = L.BatchNormalization()(L.Conv2D(width, 1, use_bias=False)(y))
            y = L.Add()([skip, y]) if skip.shape == y.shape else y
        y = L.GlobalAveragePooling2D()(L.ReLU(6.0)(L.Conv2D(256, 1)(y)))
        return keras.Model(x, L.Dense(100, activation="softmax")(y))

    def transformer():
        x = keras.Input((64, 128), 1, name="x")
        y = x
        for _ in range(2):
            y = L.LayerNormalization(epsilon=1e-5)(L.Add()([y, L.MultiHeadAttention(4, 32)(y, y)]))
            y = L.LayerNormalization(epsilon=1e-5)(L.Add()([y, L.Dense(128)(L.Dense(512, activation="relu")(y))]))
        return keras.Model(x, y)

    def lstm():
        x = keras.Input((50, 64), 1, name="x")
        y = L.LSTM(128, return_sequences=True)(x)
        return keras.Model(x, L.Dense(10)(L.LSTM(128)(y)))

    return {"cnn": cnn, "mobile": mobile, "transformer": transformer, "lstm": lstm}


def write_keras(make, stem):
    """The forms, an input, and the result."""
    import keras
    import tensorflow as tf
    import tf2onnx
    from tensorflow.python.framework.convert_to_constants import convert_variables_to_constants_v2
    keras.backend.clear_session()
    keras.utils.set_random_seed(3)
    net = make()
    rng = np.random.default_rng(5)
    for w in net.weights:  # normalization and biases do something
        if len(w.shape) == 1 or w.name == "bias":
            w.assign(rng.uniform(0.5, 1.5, w.shape))
    x = rng.uniform(-1, 1, [1] + list(net.inputs[0].shape)[1:]).astype(np.float32)
    spec = [tf.TensorSpec(x.shape, tf.float32, name="x")]
    f = tf.function(lambda x: net(x, training=False))
    frozen = convert_variables_to_constants_v2(f.get_concrete_function(*spec))
    net.save(stem + ".keras")
    net.save(stem + ".h5")
    shutil.rmtree(stem + ".saved", ignore_errors=True)
    net.export(stem + ".saved", verbose=False)
    tf.io.write_graph(frozen.graph.as_graph_def(), *os.path.split(stem + ".pb"), as_text=False)
    with open(stem + ".tflite", "wb") as out:
        out.write(tf.lite.TFLiteConverter.from_concrete_functions([f.get_concrete_function(*spec)]).convert())
    tf2onnx.convert.from_function(f, input_signature=spec, opset=17, output_path=stem + ".onnx")
    np.savez(stem + ".npz", x=x, y=np.array(net(x, training=False)))


def load_litert(stem, x):
    from ai_edge_litert.interpreter import Interpreter
    it = Interpreter(stem + ".tflite", num_threads=1)
    it.allocate_tensors()
    it.set_tensor(it.get_input_details()[0]["index"], x)

    def run():
        it.invoke()
        return [it.get_tensor(it.get_output_details()[0]["index"])]
    return run


def load_tensorflow(stem, x):
    import tensorflow as tf
    g = tf.compat.v1.GraphDef()
    with open(stem + ".pb", "rb") as f:
        g.ParseFromString(f.read())
    out = [n.name + ":0" for n in g.node if n.op == "Identity"][-1:]
    f = tf.compat.v1.wrap_function(lambda: tf.graph_util.import_graph_def(g, name=""), []).prune("x:0", out)
    x = tf.constant(x)
    return lambda: [f(x)[0]]


def begin_keras():
    os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
    import tensorflow as tf
    tf.config.threading.set_intra_op_parallelism_threads(1)
    tf.config.threading.set_inter_op_parallelism_threads(1)


# ---- PyTorch ---------------------------------------------------------------------------------------------

def torch_networks():
    import torch
    from torch import nn

    def cnn():
        layers = []
        for a, b in ((3, 32), (32, 64), (64, 128)):
            layers += [nn.Conv2d(a, b, 3, padding=1), nn.BatchNorm2d(b), nn.ReLU(), nn.MaxPool2d(2)]
        return nn.Sequential(*layers, nn.Flatten(), nn.Linear(2048, 128), nn.ReLU(), nn.Linear(128, 10), nn.Softmax(1)), (1, 3, 32, 32)

    class Inverted(nn.Module):
        def __init__(self, a, b, stride):
            super().__init__()
            self.add = a == b and stride == 1
            self.body = nn.Sequential(nn.Conv2d(a, 4 * a, 1, bias=False), nn.BatchNorm2d(4 * a), nn.ReLU6(),
                                      nn.Conv2d(4 * a, 4 * a, 3, stride, 1, groups=4 * a, bias=False), nn.BatchNorm2d(4 * a), nn.ReLU6(),
                                      nn.Conv2d(4 * a, b, 1, bias=False), nn.BatchNorm2d(b))

        def forward(self, x):
            return x + self.body(x) if self.add else self.body(x)

    def mobile():
        layers, a = [nn.Conv2d(3, 16, 3, 2, 1, bias=False), nn.BatchNorm2d(16), nn.ReLU6()], 16
        for b, stride in ((24, 2), (24, 1), (40, 2), (40, 1), (80, 2), (80, 1), (112, 1)):
            layers.append(Inverted(a, b, stride))
            a = b
        return nn.Sequential(*layers, nn.Conv2d(a, 256, 1), nn.ReLU6(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(256, 100),
                             nn.Softmax(1)), (1, 3, 112, 112)

    class Block(nn.Module):
        def __init__(self, d, heads):
            super().__init__()
            self.heads, self.qkv, self.out = heads, nn.Linear(d, 3 * d), nn.Linear(d, d)
            self.norm1, self.norm2, self.up, self.down = nn.LayerNorm(d), nn.LayerNorm(d), nn.Linear(d, 4 * d), nn.Linear(4 * d, d)

        def forward(self, x):
            n, t, d = x.shape
            q, k, v = self.qkv(x).view(n, t, 3, self.heads, d // self.heads).permute(2, 0, 3, 1, 4)
            y = nn.functional.scaled_dot_product_attention(q, k, v)
            x = self.norm1(x + self.out(y.transpose(1, 2).reshape(n, t, d)))
            return self.norm2(x + self.down(nn.functional.gelu(self.up(x))))

    def transformer():
        return nn.Sequential(Block(128, 4), Block(128, 4)), (1, 64, 128)

    class Recurrent(nn.Module):
        def __init__(self):
            super().__init__()
            self.lstm, self.out = nn.LSTM(64, 128, 2, batch_first=True), nn.Linear(128, 10)

        def forward(self, input):  # as nn.Sequential calls its own
            return self.out(self.lstm(input)[0][:, -1])

    def lstm():
        return Recurrent(), (1, 50, 64)

    torch.manual_seed(3)
    return {"cnn": cnn, "mobile": mobile, "transformer": transformer, "lstm": lstm}


def torch_network(make):
    import torch
    torch.manual_seed(3)
    net, shape = make()
    for m in net.modules():  # normalization does something
        if isinstance(m, torch.nn.BatchNorm2d):
            for t in (m.weight, m.bias, m.running_mean, m.running_var):
                torch.nn.init.uniform_(t, 0.5, 1.5)
    return net.eval(), torch.randn(shape)


def write_torch(make, stem):
    import torch
    net, x = torch_network(make)
    with torch.no_grad():
        torch.jit.save(torch.jit.trace(net, x), stem + ".pt")
        torch.export.save(torch.export.export(net, (x,)), stem + ".pt2")
        for suffix, dynamo in ((".onnx", False), (".dynamo.onnx", True)):
            torch.onnx.export(net, (x,), stem + suffix, dynamo=dynamo, verbose=False)
        np.savez(stem + ".npz", x=x.numpy(), y=net(x).numpy())


def load_eager(stem, make):
    import torch
    net, x = torch_network(make)

    def run():
        with torch.inference_mode():
            return [net(x).numpy()]
    return run


def load_compiled(stem, make):
    import torch
    net, x = torch_network(make)
    compiled = torch.compile(net)

    def run():
        with torch.inference_mode():
            return [compiled(x).numpy()]
    return run


def begin_torch():
    import torch
    torch.set_num_threads(1)


# ---- measuring -------------------------------------------------------------------------------------------

class Same:
    """The input, whatever its name."""

    def __init__(self, x):
        self.x = x

    def __getitem__(self, name):
        return self.x


def command(args, source, x):
    """TorchScript does not say the shapes of its inputs."""
    shape = [f"--shape=input:[{','.join(map(str, x.shape))}]"] if source.endswith(".pt") else []
    return [args.tvmcc, source, *shape, "-mcpu=" + args.mcpu]


def kernels(args, source, x):
    text = subprocess.run(command(args, source, x) + ["--emit=sched", "-o", "-"], check=True, capture_output=True).stdout
    return sorted(line for line in text.decode().split("\n") if line.startswith("@"))


def load_product(args, source, form, x):
    folder, name = os.path.split(source)
    out = os.path.join(folder, "made-" + form, name.split(".")[0] + ".so")
    os.makedirs(os.path.dirname(out), exist_ok=True)
    subprocess.run(command(args, source, x) + ["-o", out], check=True)
    return engines.load_tvmcc(out, Same(x), None, 1)


def least(run, seconds):
    best, end = 1e9, time.perf_counter() + seconds
    while time.perf_counter() < end:
        start = time.process_time()  # frameworks may leave the work to a thread of their own
        run()
        best = min(best, time.process_time() - start)
    return 1e3 * best


FAMILIES = {
    "keras": (begin_keras, keras_networks, write_keras, {"onnx": ".onnx", "keras": ".keras", "h5": ".h5", "saved": ".saved", "pb": ".pb",
                                                         "tflite": ".tflite"},
              {"LiteRT": lambda stem, make, x: load_litert(stem, x), "TensorFlow": lambda stem, make, x: load_tensorflow(stem, x)}),
    "torch": (begin_torch, torch_networks, write_torch, {"onnx": ".onnx", "dynamo": ".dynamo.onnx", "pt": ".pt", "pt2": ".pt2"},
              {"PyTorch": lambda stem, make, x: load_eager(stem, make), "torch.compile": lambda stem, make, x: load_compiled(stem, make)}),
}


def measure(args, name, stem, make, forms, peers):
    given = np.load(stem + ".npz")
    x, y = given["x"], given["y"]
    runs = {form: load_product(args, stem + end, form, x) for form, end in forms.items()}
    runs |= {peer: load(stem, make, x) for peer, load in peers.items()}
    for key, run in runs.items():
        np.testing.assert_allclose(np.asarray(run()[0]).reshape(y.shape), y, rtol=1e-3, atol=1e-4, err_msg=f"{name} {key}")
    first = kernels(args, stem + forms["onnx"], x)
    other = [form for form, end in forms.items() if kernels(args, stem + end, x) != first]
    times = {key: [] for key in runs}
    for _ in range(args.turns):
        for key, run in runs.items():
            times[key].append(least(run, args.seconds))
    t = {key: statistics.median(v) for key, v in times.items()}
    base = t["onnx"]
    print(f"| {name} | {max(t[f] for f in forms) / base:.3f} | {'other: ' + ' '.join(other) if other else 'same'} |",
          " | ".join(f"{t[p] / base:.2f}" for p in peers), "|", " | ".join(f"{v:.4g}" for v in t.values()), "|", flush=True)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("family", choices=FAMILIES)
    p.add_argument("work")
    p.add_argument("networks", nargs="*")
    p.add_argument("--tvmcc", default=os.path.join(HERE, "../build/release/bin/tvmcc"))
    p.add_argument("--mcpu", default="native")
    p.add_argument("--turns", type=int, default=9)
    p.add_argument("--seconds", type=float, default=0.3)
    p.add_argument("--keep", action="store_true")
    args = p.parse_args()
    begin, networks, write, forms, peers = FAMILIES[args.family]
    begin()
    work = os.path.join(args.work, args.family)
    os.makedirs(work, exist_ok=True)
    build_runtime(work)
    all_networks = networks()
    for name in args.networks:
        if name not in all_networks:
            sys.exit(f"no network '{name}', there are {' '.join(all_networks)}")
    columns = ["network", "to ONNX", "kernels", *(f"to {p}" for p in peers), *(f"{f}, ms" for f in (*forms, *peers))]
    print("| " + " | ".join(columns) + " |\n|---|" + "---:|" * (len(columns) - 1))
    for name in args.networks or all_networks:
        stem = os.path.join(work, name)
        if not args.keep or not os.path.exists(stem + ".npz"):
            write(all_networks[name], stem)
        measure(args, name, stem, all_networks[name], forms, peers)


if __name__ == "__main__":
    main()
