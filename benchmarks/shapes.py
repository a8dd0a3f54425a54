#!/usr/bin/env python3
"""What the CPU rules choose against the best that a search of their own choices finds, kernel by kernel.

    shapes.py WORK [WORD...] [--tvmcc FILE] [--mcpu CPU] [--than FILE] [--no-search]

WORDs choose the shapes whose name contains one of them.  Each shape is a model of one kernel, or of a grouped
convolution between two others as networks have them; what stands around it, and layouts at the model's ends, does
not count.  `tvmcc opt --space` says what a rule chooses among.  Each candidate of each decision is compiled by a
tuning log that names it, the others as the estimates then have them; then products of those that were the best of
their decision.  All run in turns in one process, on one thread, with one place for all data, in pages of 2 MiB where
there are any; a figure is processor time.  The best ones run again in longer turns, beside the default and a copy
of it, whose ratio says what a difference means.

--than names another tvmcc, whose default stands beside; --no-search: only these two.
"""
import argparse
import ctypes
import hashlib
import itertools
import mmap
import os
import re
import statistics
import subprocess
import sys

import numpy as np
import onnx
from onnx import TensorProto as TP, helper, numpy_helper

import engines
import operators
from operators import f

HERE = os.path.dirname(os.path.abspath(__file__))
WIDE, MANY, FINAL = 24, 48, 5  # candidates of a decision; products of them; in the last turns


def conv(name, cin, cout, n, k=1, stride=1, pad=0, groups=1):
    """A convolution with a bias and a relu."""
    x, w = f(1, cin, n, n), f(cout, cin // groups, k, k) / (cin // groups * k * k) ** 0.5
    nodes = [helper.make_node("Conv", ["x0", "w", "b"], ["c"], strides=[stride] * 2, pads=[pad] * 4, group=groups),
             helper.make_node("Relu", ["c"], ["y0"])]
    return one(name, nodes, {"x0": x}, {"w": w, "b": f(cout)}), 0


def residual(name, cin, cout, n):
    """1x1 with something added to its sums, both of which a convolution has made, and one that reads them."""
    sizes = {"w1": (cin, cin), "w2": (cout, cin), "w3": (cout, cin), "w4": (cout, cout)}
    nodes = [helper.make_node("Conv", ["x0", "w1"], ["a"]), helper.make_node("Conv", ["x0", "w2"], ["b"]),
             helper.make_node("Conv", ["a", "w3"], ["c"]), helper.make_node("Add", ["c", "b"], ["d"]),
             helper.make_node("Conv", ["d", "w4"], ["y0"])]
    return one(name, nodes, {"x0": f(1, cin, n, n)}, {k: f(*v, 1, 1) / v[1] ** 0.5 for k, v in sizes.items()}), "_add"


def dense(name, m, k, n):
    return one(name, [helper.make_node("Gemm", ["x0", "w", "b"], ["y0"])], {"x0": f(m, k)}, {"w": f(k, n) / k**0.5, "b": f(n)}), 0


def one(name, nodes, feeds, weights):
    infos = [helper.make_tensor_value_info(k, TP.FLOAT, v.shape) for k, v in feeds.items()]
    consts = [numpy_helper.from_array(w.astype(np.float32), k) for k, w in weights.items()]
    graph = helper.make_graph(nodes, "one", infos, [helper.make_empty_tensor_value_info("y0")], consts)
    m = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=10)
    return name, onnx.shape_inference.infer_shapes(m), feeds, ["y0"]


def groups(width, c, n, k=3, s=1):
    return operators.bottleneck(f"groups_{width}_{c}x{n}" + (f"_s{s}" if s > 1 else "") + (f"_{k}x{k}" if k > 3 else ""),
                                c, n, width, k, s), 1


def shapes():
    yield conv("first_4x4s4_3to96", 3, 96, 224, k=4, stride=4)
    yield residual("conv_1x1_16to16_112_add", 16, 16, 112)
    yield groups(4, 128, 56)
    yield groups(8, 256, 28)
    yield groups(32, 1024, 7)
    yield dense("dense_3136x384to96", 3136, 384, 96)
    yield residual("conv_1x1_64to256_56_add", 64, 256, 56)
    yield conv("depthwise_72x56", 72, 72, 56, k=3, pad=1, groups=72)
    yield conv("depthwise_24x112s2", 24, 24, 112, k=3, stride=2, pad=1, groups=24)
    yield conv("conv_1x1_72to40_28", 72, 40, 28)
    yield residual("conv_1x1_120to40_28_add", 120, 40, 28)
    for width, c, n in ((4, 256, 28), (4, 512, 14), (4, 1024, 7), (8, 128, 56), (8, 512, 14), (8, 1024, 7)):
        yield groups(width, c, n)
    yield groups(4, 128, 56, s=2)
    yield groups(8, 256, 28, s=2)
    yield groups(8, 256, 28, k=5)


# ---- compiling -----------------------------------------------------------------------------------------

def tvmcc(tool, *args):
    r = subprocess.run([tool, *args], capture_output=True, text=True)
    if r.returncode:
        raise RuntimeError((r.stderr.strip() or "?").splitlines()[0])
    return r.stdout


class Shape:
    """A model, which of its kernels count (but for so many at either end, or those with a word in their names), and
    what it is compiled with."""

    def __init__(self, a, source, counts):
        self.a, self.source, self.counts, self.made = a, source, counts, 0

    def steps(self, tool, options=()):
        """Calls of kernels in order (one for each phase of a kernel); the numbers of those that count."""
        plan = tvmcc(tool, self.source, "-mcpu=" + self.a.mcpu, *options, "--emit=plan", "-o", "-")
        names = re.findall(r"^ *call @(\S+?)\(", plan, re.M)
        if isinstance(self.counts, str):
            return names, [i for i, name in enumerate(names) if self.counts in name]
        at = list(range(len(names)))
        while at and names[at[0]].startswith("layout_transform"):
            at.pop(0)
        while at and names[at[-1]].startswith("layout_transform"):
            at.pop()
        return names, at[self.counts:len(at) - self.counts]

    def product(self, tool, options=(), record=None):
        """A library, and the numbers of its steps that count."""
        folder, name = os.path.split(self.source)
        path = os.path.join(folder, str(self.made), name.removesuffix("onnx") + "so")  # its name is the functions' prefix
        os.makedirs(os.path.dirname(path), exist_ok=True)
        self.made += 1
        log = path + ".log"
        if record:
            with open(log, "w", encoding="utf-8") as out:
                out.write(record + "\n")
            options = [*options, "--tuning=" + log, "-Werror=tuning-refused"]
        tvmcc(tool, self.source, "-mcpu=" + self.a.mcpu, "-fno-cache", "-fweights=file", *options, "-o", path)
        return path, self.steps(tool, options)[1]

    def space(self, kernel, options=()):
        """The record of a kernel, up to its decisions, and of each decision the default and the others."""
        log = tvmcc(self.a.tvmcc, self.source, "-mcpu=" + self.a.mcpu, *options, "--emit=log", "-o", "-")
        m = re.search(rf"^# {re.escape(kernel)}, .* by ([^:\n]*).*\n1 \|([^|]*)\|([^|]*)\|", log, re.M)
        te = self.source + ".te"
        tvmcc(self.a.tvmcc, self.source, "-mcpu=" + self.a.mcpu, *options, "--emit=te", "-o", te)
        text = tvmcc(self.a.tvmcc, "opt", "--space", "--target=" + m[3].strip(), "--kernel=" + kernel, te)
        found = {}
        for name, values in re.findall(r"^    (\S+) = (.*)$", text, re.M):
            words = [v.split()[0] for v in values.split(", ") if v]
            others = [w for w in words if not w.endswith("*")]
            keep = others[:: -(-len(others) // WIDE)] if others else []
            found[name] = ([w[:-1] for w in words if w.endswith("*")], keep)
        return f"2 |{m[2]}|{m[3]}| - | {m[1]}: ", found


# ---- measuring -----------------------------------------------------------------------------------------

class Watch(ctypes.Structure):  # of watch.c
    _fields_ = [("begin", ctypes.c_double), ("took", ctypes.c_double * 256), ("least", ctypes.c_double * 256)]


def build_watch(work):
    path = os.path.join(work, "libwatch.so")
    subprocess.check_call(["cc", "-shared", "-fPIC", "-O2", "-I" + os.path.join(HERE, "../include"),
                           os.path.join(HERE, "watch.c"), "-o", path])
    return ctypes.CDLL(path)


HUGE = 2 << 20


def pages(n):
    """Memory in large pages, where there are any."""
    m = mmap.mmap(-1, (n // HUGE + 2) * HUGE)
    m.madvise(mmap.MADV_HUGEPAGE)
    bytes_ = np.frombuffer(m, np.uint8)
    bytes_ = bytes_[-bytes_.ctypes.data % HUGE:]
    bytes_[:] = 0
    return bytes_


def weights_of(path):
    """What lies beside a library of -fweights=file, and what it is known by."""
    file = path.removesuffix("so") + "weights"
    weights = np.fromfile(file, np.uint8) if os.path.exists(file) else np.empty(0, np.uint8)
    return weights, hashlib.sha256(weights).digest()


class Place:
    """Where the weights of all products lie, each in its turn."""

    def __init__(self, n):
        self.at, self.has = pages(n), None

    def put(self, product):
        if self.has != product.key:
            self.at[:len(product.weights)] = product.weights
            self.has = product.key
            product.run()


class Product:
    """A library that runs, and the numbers of its steps that count."""

    def __init__(self, runs, path, at):
        self.watch, self.at = Watch(), at
        self.weights, self.key = weights_of(path)
        callback = ctypes.cast(runs.watch.watch, ctypes.c_void_p)
        run = engines.load_tvmcc(path, runs.feeds, runs.outs, 1, arena=runs.arena, instrument=(callback, self.watch),
                                 weights=runs.place.at, ports=runs.ports)

        def watched():
            run()
            runs.watch.watch_end_of_run(ctypes.byref(self.watch))
        self.run = watched


class Runs:
    """Products that take turns, with all their data at one place: where these lie moves a kernel by up to a fifth."""

    def __init__(self, watch, feeds, outs):
        self.watch, self.feeds, self.outs = watch, feeds, outs
        self.arena, self.ports, self.place = pages(1 << 26), pages(1 << 25), Place(1 << 26)

    def turns(self, products, rounds, seconds):
        """Microseconds of each, of the steps that count together: the least of the first, and medians of the turns'
        ratios, since a core may run quicker for a moment."""
        took = [[] for _ in products]
        for i in range(rounds):
            for p, times in list(zip(products, took))[::1 if i % 2 else -1]:
                self.place.put(p)
                ctypes.memset(ctypes.byref(p.watch), 0, ctypes.sizeof(p.watch))
                operators.turn(p.run, seconds)
                times.append(sum(p.watch.least[k] for k in p.at) * 1e6)
        return [min(took[0]) * statistics.median(x / y for x, y in zip(times, took[0])) for times in took]


# ---- the search ----------------------------------------------------------------------------------------

def text_of(decisions):
    return ", ".join(f"{k}={v}" for k, v in decisions.items())


def points(first, found, best):
    """Products of the two best candidates of each decision (None: what the estimates say)."""
    choices = []
    for name in found:
        ranked = sorted((us, text) for text, us in best.items() if text.startswith(name + "="))
        choices.append([None] + [t for us, t in ranked[:2] if us < 1.04 * first])
    chosen = [[c for c in combination if c] for combination in itertools.product(*choices)]
    many = sorted((sum(best[t] for t in c) / len(c), c) for c in chosen if len(c) > 1)
    return [", ".join(c) for _, c in many[:MANY]]


def search(shape, runs, options):
    """(text, microseconds, product) of the points, sorted; the default's text is empty."""
    names, at = shape.steps(shape.a.tvmcc, options)
    kernel = [names[i] for i in at if not names[i].startswith("layout_transform")][-1]  # it may have one on either side
    prefix, found = shape.space(kernel, options)
    products, refused = {"": Product(runs, *shape.product(shape.a.tvmcc, options))}, 0

    def add(texts):
        nonlocal refused
        for text in texts:
            try:
                products.setdefault(text, Product(runs, *shape.product(shape.a.tvmcc, options, prefix + text)))
            except RuntimeError:
                refused += 1

    add(f"{name}={value}" for name, (_, others) in found.items() for value in others)
    us = dict(zip(products, runs.turns(list(products.values()), 6, 0.004)))
    more = [t for t in points(us[""], found, us) if t not in products]
    add(more)
    us = dict(zip(products, runs.turns(list(products.values()), 6, 0.004)))
    return sorted((t, text, products[text]) for text, t in us.items()), len(products), refused


def measure(a, watch, case, counts):
    name, model, feeds, outs = case
    source = os.path.join(a.work, a.mcpu, name + ".onnx")
    os.makedirs(os.path.dirname(source), exist_ok=True)
    with open(source, "wb") as out:
        out.write(model.SerializeToString())
    shape, runs = Shape(a, source, counts), Runs(watch, feeds, outs)
    last = [(text, Product(runs, *shape.product(a.tvmcc))) for text in ("default", "copy")]
    if a.than:
        last.append(("than", Product(runs, *shape.product(a.than))))
    tried = refused = 0
    for options in ([], ["-fno-winograd"]) if not a.no_search else []:
        if options and not any("winograd" in k for k in shape.steps(a.tvmcc)[0]):
            continue
        best, n, r = search(shape, runs, options)
        tried, refused = tried + n, refused + r
        last += [(" ".join([*options, text]), product) for _, text, product in best[:FINAL]]
    us = runs.turns([p for _, p in last], a.turns, 0.01)
    own, than = us[0], us[2] if a.than else 0
    cells = [f"{own:.1f}", f"{us[1] / us[0]:.3f}"]
    if a.than:
        cells += [f"{than:.1f}", f"{own / than:.2f}"]
    if not a.no_search:
        first = 2 + bool(a.than)
        least = min(range(first, len(last)), key=lambda i: us[i])
        best, text = min((own, ""), (us[least], last[least][0]))
        cells += [f"{best:.1f}", f"{own / best:.3f}", text or "the default", str(tried)]
    print(f"| {name} | " + " | ".join(cells) + " |", flush=True)
    for (text, _), t in sorted(zip(last, us), key=lambda row: row[1]) if a.list else []:
        print(f"    {t:9.1f} {text}")


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("work")
    p.add_argument("words", nargs="*")
    p.add_argument("--tvmcc", default=os.path.join(HERE, "../build/release/bin/tvmcc"))
    p.add_argument("--than", help="another tvmcc")
    p.add_argument("--mcpu", default="native")
    p.add_argument("--turns", type=int, default=30)
    p.add_argument("--no-search", action="store_true")
    p.add_argument("--list", action="store_true", help="all that ran in the last turns")
    a = p.parse_intermixed_args()
    os.makedirs(a.work, exist_ok=True)
    engines.build_runtime(a.work)
    watch = build_watch(a.work)
    head = ["shape", "us", "copy"] + (["than, us", "ratio"] if a.than else [])
    head += ["best, us", "default / best", "best found", "tried"] if not a.no_search else []
    print("| " + " | ".join(head) + " |\n|---|" + "---:|" * (len(head) - 1))
    for case, counts in shapes():
        if not a.words or any(w in case[0] for w in a.words):
            try:
                measure(a, watch, case, counts)
            except RuntimeError as e:
                print(f"| {case[0]} | {e} |", flush=True)


if __name__ == "__main__":
    sys.exit(main())
