#!/usr/bin/env python3
"""Products with dimensions that a run decides, against those made for one size and against ONNX Runtime.

    dynamic.py WORK [WORD...] [--tvmcc FILE] [--mcpu CPU] [--threads N] [--turns N] [--sizes N..] [--profile] [--only-check]

WORDs choose the rows whose name contains one of them.  Each model has dimensions with names.  tvmcc compiles it once
with bounds (`--dim N=1..8`) and once for each size that is measured (`--dim N=4`); ONNX Runtime takes it as it is.  Results
are compared, and all three run in turns; a figure is the least of all turns, of one thread in processor time.  `to static` is the dynamic product's time by that of the
product of the size, `to ORT` ONNX Runtime's time by the dynamic product's: above 1 it is faster.  --profile prints the kernels of both
products beside each other, the longest first.
"""
import argparse
import ctypes
import os
import re
import subprocess
import sys
import time

import numpy as np
import onnx
from onnx import TensorProto as TP, helper

import engines
import models

HERE = os.path.dirname(os.path.abspath(__file__))
RNG = np.random.default_rng(7)


# ---- models: (model, inputs for a size) ------------------------------------------------------------

def renamed(m, dims):
    """The model with names for dimensions of its inputs: {input: [size or name..]}."""
    for v in m.graph.input:
        for d, size in zip(v.type.tensor_type.shape.dim, dims[v.name]):
            if isinstance(size, str):
                d.dim_param = size
    for v in m.graph.output:
        v.type.tensor_type.ClearField("shape")
    del m.graph.value_info[:]
    return onnx.shape_inference.infer_shapes(m)


def pictures(net):
    m = renamed(net().model(), {"input": ["N", 3, 224, 224]})
    return m, lambda n: {"input": RNG.standard_normal((n, 3, 224, 224), np.float32)}


def squares(net):
    m = renamed(net().model(), {"input": [1, 3, "S", "S"]})
    return m, lambda s: {"input": RNG.standard_normal((1, 3, s, s), np.float32)}


def bert():
    m = renamed(models.bert_base(length="T").model(), dict.fromkeys(("input_ids", "token_type_ids", "attention_mask"), [1, "T"]))
    return m, lambda t: {"input_ids": RNG.integers(0, 30522, (1, t)), "token_type_ids": np.zeros((1, t), np.int64),
                         "attention_mask": (np.arange(t)[None] < max(1, t - 5)).astype(np.int64)}


def gpt(layers=12, d=768, heads=12, vocab=50257, context=1024):
    """One token of GPT-2, whose keys and values so far (past) go in and come out one longer."""
    g, w = models.G("gpt_step"), lambda *s: g.init(g.randn(*s, std=0.02))

    def norm(x):
        xc = g.op("Sub", x, g.op("ReduceMean", x, axes=[-1]))
        var = g.op("ReduceMean", g.op("Mul", xc, xc), axes=[-1])
        y = g.op("Div", xc, g.op("Sqrt", g.op("Add", var, g.const(1e-5))))
        return g.op("Add", g.op("Mul", y, w(d)), w(d))

    def linear(x, cin, cout):
        return g.op("Add", g.op("MatMul", x, w(cin, cout)), w(cout))

    def gelu(x):
        cube = g.op("Mul", g.op("Mul", x, x), x)
        t = g.op("Tanh", g.op("Mul", g.op("Add", x, g.op("Mul", cube, g.const(0.044715))), g.const((2 / np.pi) ** 0.5)))
        return g.op("Mul", g.op("Mul", x, g.const(0.5)), g.op("Add", t, g.const(1.0)))

    words, ids = w(vocab, d), g.input("ids", np.zeros((1, 1), np.int64))
    shape, past = (1, heads, 2, d // heads), []
    for i in range(layers):
        past.append([g.input(f"past_{kind}_{i}", np.zeros(shape, np.float32)) for kind in ("key", "value")])
    length = g.op("Gather", g.op("Shape", past[0][0]), g.const(2, dtype=np.int64))
    place = g.op("Unsqueeze", length, g.ints(0))
    x = g.op("Add", g.op("Gather", words, ids), g.op("Gather", w(context, d), place))
    for i in range(layers):
        parts = g.op("Split", linear(norm(x), d, 3 * d), outs=3, axis=2)
        q, k, v = (g.op("Transpose", g.op("Reshape", p, g.ints(1, 1, heads, d // heads)), perm=[0, 2, 1, 3]) for p in parts)
        k, v = (g.op("Concat", p, new, axis=2) for p, new in zip(past[i], (k, v)))
        g.output(k, f"present_key_{i}")
        g.output(v, f"present_value_{i}")
        s = g.op("Div", g.op("MatMul", q, g.op("Transpose", k, perm=[0, 1, 3, 2])), g.const((d / heads) ** 0.5))
        s = g.op("MatMul", g.op("Softmax", s, axis=-1), v)
        x = g.op("Add", x, linear(g.op("Reshape", g.op("Transpose", s, perm=[0, 2, 1, 3]), g.ints(1, 1, d)), d, d))
        x = g.op("Add", x, linear(gelu(linear(norm(x), d, 4 * d)), 4 * d, d))
    g.output(g.op("MatMul", norm(x), g.op("Transpose", words, perm=[1, 0])), "logits")
    dims = {v.name: [1, heads, "P", d // heads] for v in g.ins}
    dims["ids"] = [1, 1]
    m = renamed(g.model(), dims)

    def feeds(p):
        made = {v.name: RNG.standard_normal((1, heads, p, d // heads), np.float32) for v in g.ins}
        return made | {"ids": np.array([[11]], np.int64)}
    return m, feeds


# name, model, dimension with bounds, sizes
ROWS = [("resnet50", lambda: pictures(models.resnet50), "N=1..8", (1, 2, 4, 8)),
        ("mobilenet_v2", lambda: pictures(models.mobilenet_v2), "N=1..8", (1, 2, 4, 8)),
        ("squeezenet11", lambda: pictures(models.squeezenet11), "N=1..8", (1, 2, 4, 8)),
        ("resnet50_squares", lambda: squares(models.resnet50), "S=32..640", (160, 224, 320)),
        ("mobilenet_v2_squares", lambda: squares(models.mobilenet_v2), "S=32..640", (160, 224, 320)),
        ("squeezenet11_squares", lambda: squares(models.squeezenet11), "S=32..640", (160, 224, 320)),
        ("bert_base", bert, "T=1..128", (16, 64, 128)),
        ("gpt_step", gpt, "P=1..1023", (1, 128, 1023))]


# ---- products --------------------------------------------------------------------------------------

class Value(ctypes.Structure):  # tvmcc_value
    _fields_ = [("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16), ("ndim", ctypes.c_uint32),
                ("dims", ctypes.POINTER(ctypes.c_int64)), ("data", ctypes.c_void_p), ("bytes", ctypes.c_size_t)]


class Product:
    """A product opened once; calls for any sizes."""

    def __init__(self, path, threads):
        self.rt, self.model = ctypes.CDLL(os.environ["TVMCC_RUNTIME"]), engines.Model()
        for name in ("tvmrt_arena_bytes", "tvmrt_pool_bytes"):
            getattr(self.rt, name).restype = ctypes.c_size_t
        self.rt.tvmrt_pool_new.restype = ctypes.c_void_p
        if self.rt.tvmrt_model_open(ctypes.byref(self.model), path.encode(), None):
            raise RuntimeError(self.model.error.decode())
        self.info = self.model.info.contents
        self.arena = engines.aligned(self.rt.tvmrt_arena_bytes(self.model.info, threads))
        self.params = engines.Params(ctypes.sizeof(engines.Params), threads, self.arena.ctypes.data, self.arena.nbytes,
                                     self.model.weights, self.model.weights_bytes)
        if threads > 1:
            size = self.rt.tvmrt_pool_bytes(threads)
            self.pool = engines.aligned(size)
            made = self.rt.tvmrt_pool_new(ctypes.c_void_p(self.pool.ctypes.data), ctypes.c_size_t(size), threads)
            self.rt.tvmrt_pool_use(ctypes.c_void_p(made), ctypes.byref(self.params))

    def call(self, feeds, want):
        """A function that runs with these inputs; `want` has arrays of the outputs' shapes."""
        keep = []

        def place(t, array):
            memory = engines.aligned(array.nbytes + 64)[:array.nbytes].view(array.dtype).reshape(array.shape)
            memory[...] = array
            keep.append(memory)
            if not t.flags & 1:
                return memory, memory.ctypes.data
            dims = (ctypes.c_int64 * t.ndim)(*array.shape)
            v = Value(t.code, t.bits, t.lanes, t.ndim, dims, memory.ctypes.data, memory.nbytes)
            keep.extend((dims, v))
            return memory, ctypes.addressof(v)

        n, m = self.info.counts[0], self.info.counts[1]
        ins = [place(self.info.inputs[i], feeds[self.info.inputs[i].name.decode()])[1] for i in range(n)]
        outs = [place(self.info.outputs[i], np.zeros_like(want[self.info.outputs[i].name.decode()])) for i in range(m)]
        args = (ctypes.c_void_p * n)(*ins), (ctypes.c_void_p * m)(*[at for _, at in outs]), ctypes.byref(self.params)
        results = {self.info.outputs[i].name.decode(): outs[i][0] for i in range(m)}

        def run():
            if code := self.info.run(*args):
                raise RuntimeError(f"status {code}, {len(keep)} objects kept")
            return results
        return run


def compiled(a, source, dim):
    folder, name = os.path.split(source)
    path = os.path.join(folder, dim, name.removesuffix(".onnx") + ".so")
    os.makedirs(os.path.dirname(path), exist_ok=True)
    if not os.path.exists(path) or os.path.getmtime(path) < max(os.path.getmtime(a.tvmcc), os.path.getmtime(source)):
        start = time.perf_counter()
        subprocess.check_call([a.tvmcc, source, "-mcpu=" + a.mcpu, "-fno-cache", "--dim", dim, "-o", path])
        print(f"{os.path.relpath(path, folder)}: {time.perf_counter() - start:.1f} s, {code_bytes(path) / 1e3:.0f} kB of code", file=sys.stderr)
    return path


def code_bytes(path):
    line = subprocess.run(["size", "-A", path], capture_output=True, text=True).stdout
    return sum(int(m[1]) for m in re.finditer(r"^\.text\S*\s+(\d+)", line, re.M))


def kernels(a, source, dim, feeds):
    """[(per cent, ms, name)] of a run."""
    npz = source.removesuffix(".onnx") + ".in.npz"
    np.savez(npz, **feeds)
    r = subprocess.run([a.tvmcc, "profile", source, "-mcpu=" + a.mcpu, "--dim", dim, "--inputs", npz], capture_output=True, text=True)
    return r.stdout.splitlines() if not r.returncode else r.stderr.splitlines()


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("work")
    p.add_argument("words", nargs="*")
    p.add_argument("--tvmcc", default=os.path.join(HERE, "../build/release/bin/tvmcc"))
    p.add_argument("--mcpu", default="native")
    p.add_argument("--threads", type=int, default=1)
    p.add_argument("--turns", type=int, default=9)
    p.add_argument("--sizes", type=int, nargs="+", help="others than those of the row")
    p.add_argument("--profile", action="store_true")
    p.add_argument("--only-check", action="store_true", help="compile and compare results, measure nothing")
    a = p.parse_intermixed_args()
    os.makedirs(a.work, exist_ok=True)
    engines.build_runtime(a.work)
    import onnxruntime as ort
    options, wrong, logs = ort.SessionOptions(), 0, []
    options.intra_op_num_threads = a.threads
    clock = time.thread_time if a.threads == 1 else time.perf_counter
    print("| model | size | static, ms | dynamic, ms | ORT, ms | to static | to ORT | error |")
    for name, make, dim, sizes in ROWS:
        if a.words and not any(w in name for w in a.words):
            continue
        source = os.path.join(a.work, name + ".onnx")
        m, feeds_of = make()
        if not os.path.exists(source):
            onnx.save(m, source)
        session = ort.InferenceSession(source, options, providers=["CPUExecutionProvider"])
        names = [o.name for o in session.get_outputs()]
        dynamic = Product(compiled(a, source, dim), a.threads)
        for size in a.sizes or sizes:
            fixed = dim.split("=")[0] + f"={size}"
            feeds = feeds_of(size)
            want = dict(zip(names, session.run(names, feeds)))
            static = Product(compiled(a, source, fixed), a.threads)
            runs = [static.call(feeds, want), dynamic.call(feeds, want), lambda: session.run(names, feeds)]
            error = max(float(abs(np.float64(want[k]) - v).max() / max(1e-30, abs(want[k]).max())) if v.size else 0.0
                        for run in runs[:2] for k, v in run().items())
            wrong += not error < 1e-4
            if a.only_check:
                print(f"| {name} | {fixed} | {error:.0e} |", flush=True)
                continue
            best = [1e9] * 3
            for turn in range(a.turns):
                for i, run in enumerate(runs):
                    end = time.perf_counter() + 0.1
                    while True:
                        start = clock()
                        run()
                        best[i] = min(best[i], clock() - start)
                        if time.perf_counter() > end:
                            break
            logs.append(np.log(best[1] / best[0]))
            print(f"| {name} | {fixed} | " + " | ".join(f"{t * 1e3:.2f}" for t in best) +
                  f" | {best[1] / best[0]:.2f} | {best[2] / best[1]:.2f} | {error:.0e} |", flush=True)
            if a.profile:
                for which in (fixed, dim):
                    print("\n".join(kernels(a, source, which, feeds)), flush=True)
    if logs:
        print(f"dynamic to static: {np.exp(np.mean(logs)):.3f} in the geometric mean, {np.exp(max(logs)):.2f} at most")
    return wrong != 0


if __name__ == "__main__":
    sys.exit(main())
