#!/usr/bin/env python3
"""One network in all the forms that a framework saves it in: tvmcc's products side by side, and the framework itself.

    forms.py keras WORK [NETWORK..] [--tvmcc FILE] [--mcpu CPU] [--turns N] [--seconds S] [--keep] [--check]
    forms.py torch WORK [NETWORK..] ..

keras: .keras, .h5, a SavedModel, a frozen graph, .tflite and .onnx, beside LiteRT (with XNNPACK) and TensorFlow (the frozen graph in
its graph executor).  torch: TorchScript, a program of torch.export, and .onnx by both exporters, beside PyTorch, eager and by torch.compile.

All run in turns in one process, one thread each; a figure is the median of the turns' least times in ms of processor time.
`to ONNX` is the slowest form's time by that of the ONNX form, `Relay` says whether all forms have the same Relay after the graph passes,
up to names, the bits of weights that an exporter computed and the seventh digit of numbers, and `to X` is X's time by that of the ONNX form: above 1 tvmcc is faster.
What every product gives is compared with the framework's result first.
--keep: the forms that WORK has are not written again.  --check: nothing is measured, and what differs is shown.

Needs numpy and onnx; keras: tensorflow, keras, tf2onnx, ai-edge-litert; torch: torch, onnxscript.
"""
import argparse
import difflib
import os
import re
import statistics
import subprocess
import sys
import time

import numpy as np

import engines
import forms_keras

HERE = os.path.dirname(os.path.abspath(__file__))


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

    class Residual(nn.Module):
        def __init__(self, a, b, stride):
            super().__init__()
            self.body = nn.Sequential(nn.Conv2d(a, b, 3, stride, 1, bias=False), nn.BatchNorm2d(b), nn.ReLU(inplace=True),
                                      nn.Conv2d(b, b, 3, 1, 1, bias=False), nn.BatchNorm2d(b))
            self.skip = nn.Identity() if a == b else nn.Sequential(nn.Conv2d(a, b, 1, stride, bias=False), nn.BatchNorm2d(b))

        def forward(self, x):
            return torch.relu(self.body(x) + self.skip(x))

    def residual():
        return nn.Sequential(nn.Conv2d(3, 32, 7, 2, 3, bias=False), nn.BatchNorm2d(32), nn.ReLU(inplace=True), nn.MaxPool2d(3, 2, 1),
                             Residual(32, 32, 1), Residual(32, 64, 2), Residual(64, 128, 2), nn.AdaptiveAvgPool2d(1), nn.Flatten(),
                             nn.Linear(128, 100)), (1, 3, 112, 112)

    class Double(nn.Sequential):
        def __init__(self, a, b):
            super().__init__(nn.Conv2d(a, b, 3, padding=1), nn.BatchNorm2d(b), nn.LeakyReLU(0.1),
                             nn.Conv2d(b, b, 3, padding=1), nn.GroupNorm(4, b), nn.SiLU())

    class UNet(nn.Module):
        def __init__(self):
            super().__init__()
            self.down = nn.ModuleList([Double(3, 16), Double(16, 32), Double(32, 64)])
            self.up = nn.ModuleList([nn.ConvTranspose2d(64, 32, 2, 2), nn.ConvTranspose2d(32, 16, 3, 2, 1, 1)])
            self.join, self.out = nn.ModuleList([Double(64, 32), Double(32, 16)]), nn.Conv2d(16, 5, 1)

        def forward(self, input):
            a = self.down[0](input)
            b = self.down[1](nn.functional.max_pool2d(a, 2))
            x = self.down[2](nn.functional.avg_pool2d(b, 2))
            x = self.join[0](torch.cat([self.up[0](x), b], 1))
            x = self.join[1](torch.cat([self.up[1](x), a], 1))
            return torch.softmax(self.out(x), 1)

    def unet():
        return UNet(), (1, 3, 64, 64)

    class Text(nn.Module):
        def __init__(self):
            super().__init__()
            self.words = nn.Embedding(500, 48)
            self.forwards, self.both = nn.GRU(48, 64, batch_first=True), nn.LSTM(64, 32, batch_first=True, bidirectional=True)
            self.out = nn.Linear(128, 12)

        def forward(self, input):
            y = self.both(self.forwards(self.words(input))[0])[0]
            return torch.log_softmax(self.out(torch.cat([y.mean(1), y.amax(1)], 1)), 1)

    def text():
        return Text(), (1, 40)

    class Gated(nn.Module):
        def __init__(self, a, b, dilation):
            super().__init__()
            self.conv, self.skip = nn.Conv1d(a, 2 * b, 3, padding=dilation, dilation=dilation), nn.Conv1d(a, b, 1)

        def forward(self, x):
            return nn.functional.glu(self.conv(x), 1) + self.skip(x)

    def audio():
        return nn.Sequential(nn.Conv1d(1, 32, 16, 8, 4), nn.BatchNorm1d(32), nn.PReLU(32), nn.MaxPool1d(2), Gated(32, 32, 1), Gated(32, 48, 2),
                             Gated(48, 48, 4), nn.InstanceNorm1d(48), nn.AdaptiveAvgPool1d(1), nn.Flatten(), nn.Linear(48, 35)), (1, 1, 8000)

    torch.manual_seed(3)
    return {"cnn": cnn, "mobile": mobile, "transformer": transformer, "lstm": lstm, "residual": residual, "unet": unet, "text": text, "audio": audio}


def torch_network(make):
    import torch
    torch.manual_seed(3)
    net, shape = make()
    for m in net.modules():  # normalization does something
        if isinstance(m, (torch.nn.BatchNorm1d, torch.nn.BatchNorm2d, torch.nn.GroupNorm)):
            for name in ("weight", "bias", "running_mean", "running_var"):
                if getattr(m, name, None) is not None:
                    torch.nn.init.uniform_(getattr(m, name), 0.5, 1.5)
    words = any(isinstance(m, torch.nn.Embedding) for m in net.modules())
    return net.eval(), torch.randint(0, 500, shape) if words else torch.randn(shape)


def write_torch(make, stem):
    import torch
    net, x = torch_network(make)
    with torch.no_grad():
        torch.jit.save(torch.jit.trace(net, x), stem + ".pt")
        torch.export.save(torch.export.export(net, (x,)), stem + ".pt2")
        for suffix, dynamo in ((".onnx", False), (".dynamo.onnx", True)):
            torch.onnx.export(net, (x,), stem + suffix, dynamo=dynamo, verbose=False)
        np.savez(stem + ".in.npz", x=x.numpy())
        np.savez(stem + ".out.npz", net(x).numpy())


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

class Feeds:
    """Inputs by the first word of their names; the only one, whatever its name."""

    def __init__(self, x):
        self.x = x

    def __getitem__(self, name):
        return self.x[name.split(":")[0].removeprefix("serving_default_")] if len(self.x) > 1 else next(iter(self.x.values()))


def command(args, source, x):
    """TorchScript does not say the shapes of its inputs."""
    shape = []
    if source.endswith(".pt"):
        shape = [f"--shape=input:[{','.join(map(str, x['x'].shape))}]" + (":i64" if x["x"].dtype == np.int64 else "")]
    return [args.tvmcc, source, *shape, "-mcpu=" + args.mcpu]


NAME = r'"[^"]*"|[\w./-]+'


def relay(args, source, x):
    """After the graph passes, each name by its place; a constant is its type.  Main's inputs and results are in any order."""
    text = subprocess.run(command(args, source, x) + ["--print-after=fuse_ops", "--emit=sched", "-o", "-"], check=True, capture_output=True)
    text = text.stderr.decode()
    lines, names = [], {}

    def place(m):
        return names.setdefault(m[0], m[0][0] + str(sum(k[0] == m[0][0] for k in names)))
    types = dict(re.findall(rf"^const @({NAME}): (.*) = ", text, re.M))
    text = text[text.index("\nfn @"):]
    for line in re.sub(r" loc\(.*?\);|; //.*", ";", text).split("\n"):
        if line.startswith("fn @"):  # names of values are those of one function
            names = {k: v for k, v in names.items() if k[0] == "@"}
        if line.startswith("fn @main"):
            line = "fn @main"
        if re.match("hint:|[^ ]*: (warning|note): ", line):
            continue
        line = re.sub(rf"const @({NAME})", lambda m: "const " + types[m[1]], line)
        line = re.sub(r"\b\d+\.\d+(e-?\d+)?\b", lambda m: f"{float(m[0]):.6g}", line)
        lines.append(re.sub(rf"[%@](?:{NAME})", place, line))
    return lines


def load_product(args, source, form, x):
    folder, name = os.path.split(source)
    out = os.path.join(folder, "made-" + form, name.split(".")[0] + ".so")
    os.makedirs(os.path.dirname(out), exist_ok=True)
    subprocess.run(command(args, source, x) + ["-o", out], check=True)
    return engines.load_tvmcc(out, Feeds(x), None, 1)


def least(run, seconds):
    best, end = 1e9, time.perf_counter() + seconds
    while time.perf_counter() < end:
        start = time.process_time()  # frameworks may leave the work to a thread of their own
        run()
        best = min(best, time.process_time() - start)
    return 1e3 * best


FAMILIES = {
    "keras": (forms_keras.begin, forms_keras.networks, forms_keras.write, {"keras": ".keras", "h5": ".h5", "saved": ".saved", "pb": ".pb",
                                                                           "tflite": ".tflite", "onnx": ".onnx"},
              {"LiteRT": lambda stem, make, x: forms_keras.load_litert(stem, x),
               "TensorFlow": lambda stem, make, x: forms_keras.load_tensorflow(stem, x)}),
    "torch": (begin_torch, torch_networks, write_torch, {"onnx": ".onnx", "dynamo": ".dynamo.onnx", "pt": ".pt", "pt2": ".pt2"},
              {"PyTorch": lambda stem, make, x: load_eager(stem, make), "torch.compile": lambda stem, make, x: load_compiled(stem, make)}),
}


def agree(what, got, want):
    """The results in any order: those of one network differ in their size."""
    by_size = {v.size: v for v in map(np.asarray, got)}
    for v in want:
        np.testing.assert_allclose(by_size[v.size].reshape(v.shape), v, rtol=1e-3, atol=1e-4, err_msg=what)


def check(args, name, stem, forms):
    """What differs from the first form."""
    x, y = dict(np.load(stem + ".in.npz")), list(np.load(stem + ".out.npz").values())
    first = None
    for form, end in forms.items():
        try:
            agree("", load_product(args, stem + end, form, x)(), y)
            text = relay(args, stem + end, x)
        except (AssertionError, subprocess.CalledProcessError) as e:
            print(f"{name} {form}: {e}", flush=True)
            continue
        first = first or text
        print(name, form + ":", "same" if text == first else "other", flush=True)
        if text != first:
            print("\n".join(difflib.unified_diff(first, text, next(iter(forms)), form, lineterm="", n=2)))


def measure(args, name, stem, make, forms, peers):
    x, y = dict(np.load(stem + ".in.npz")), list(np.load(stem + ".out.npz").values())
    runs = {form: load_product(args, stem + end, form, x) for form, end in forms.items()}
    runs |= {peer: load(stem, make, x) for peer, load in peers.items()}
    for key, run in runs.items():
        agree(f"{name} {key}", run(), y)
    first = relay(args, stem + forms["onnx"], x)
    other = [form for form, end in forms.items() if relay(args, stem + end, x) != first]
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
    p.add_argument("--check", action="store_true")
    args = p.parse_args()
    begin, networks, write, forms, peers = FAMILIES[args.family]
    begin()
    work = os.path.join(args.work, args.family)
    os.makedirs(work, exist_ok=True)
    engines.build_runtime(work)
    all_networks = networks()
    for name in args.networks:
        if name not in all_networks:
            sys.exit(f"no network '{name}', there are {' '.join(all_networks)}")
    columns = ["network", "to ONNX", "Relay", *(f"to {p}" for p in peers), *(f"{f}, ms" for f in (*forms, *peers))]
    if not args.check:
        print("| " + " | ".join(columns) + " |\n|---|" + "---:|" * (len(columns) - 1))
    for name in args.networks or all_networks:
        stem = os.path.join(work, name)
        if not args.keep or not os.path.exists(stem + ".out.npz"):
            write(all_networks[name], stem)
        if args.check:
            check(args, name, stem, forms)
        else:
            measure(args, name, stem, all_networks[name], forms, peers)


if __name__ == "__main__":
    main()
