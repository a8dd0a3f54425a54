#!/usr/bin/env python3
"""tvmcc against ONNX Runtime on models of one operator each, or of few: one thread, taking turns, in one process.

    operators.py WORK [WORD...] [--tvmcc FILE] [--mcpu CPU] [--than FILE] [--only-check]

WORDs choose the rows whose name contains one of them.  For each row the model is written, compiled, its results
compared with ONNX Runtime's, and both run in turns of some milliseconds; a figure is the median of the turns'
least times.  The ratio is ONNX Runtime's time by ours: above 1 tvmcc is faster.  --than names another tvmcc,
whose figure stands beside.  A single operator takes and gives plain NCHW: of operators that work in blocks of
channels inside, part of the time goes into `layout` kernels that a network does not have; the column says how
much (`tvmcc profile`).
"""
import argparse
import os
import re
import subprocess
import sys
import time

import numpy as np
import onnx
from onnx import TensorProto as TP, helper, numpy_helper

import engines

HERE = os.path.dirname(os.path.abspath(__file__))
RNG = np.random.default_rng(7)


def f(*shape):
    return RNG.standard_normal(shape, np.float32)


def row(name, kind, *ins, weights=(), outs=1, domain="", opset=18, **attrs):
    """Operator `kind` of the arrays `ins`, behind which constants `weights` follow (None: left out)."""
    names = [f"x{i}" for i in range(len(ins))]
    consts = [numpy_helper.from_array(np.asarray(w), f"w{i}") for i, w in enumerate(weights) if w is not None]
    args = names + ["" if w is None else f"w{i}" for i, w in enumerate(weights)]
    results = [f"y{i}" for i in range(outs)]
    infos = [helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(a.dtype), a.shape) for n, a in zip(names, ins)]
    node = helper.make_node(kind, args, results, name=kind, domain=domain, **attrs)
    graph = helper.make_graph([node], "one", infos, [helper.make_empty_tensor_value_info(r) for r in results], consts)
    imports = [helper.make_opsetid("", opset)] + ([helper.make_opsetid(domain, 1)] if domain else [])
    m = helper.make_model(graph, opset_imports=imports, ir_version=10)
    if not domain:
        m = onnx.shape_inference.infer_shapes(m)
    return name, m, dict(zip(names, ins)), results


def bottleneck(name, c, n, width, k=3, s=1):
    """1x1, k x k in groups of `width` channels, 1x1: as networks have them."""
    shape = (c, width, k, k)
    weights = {"w1": f(c, c, 1, 1) / c**0.5, "w2": f(*shape) / (width * k * k) ** 0.5, "w3": f(c, c, 1, 1) / c**0.5}
    nodes = [helper.make_node("Conv", ["x0", "w1"], ["a"]), helper.make_node("Relu", ["a"], ["b"]),
             helper.make_node("Conv", ["b", "w2"], ["c"], group=c // width, pads=[k // 2] * 4, strides=[s, s]),
             helper.make_node("Relu", ["c"], ["d"]), helper.make_node("Conv", ["d", "w3"], ["y0"])]
    x = f(1, c, n, n)
    graph = helper.make_graph(nodes, "one", [helper.make_tensor_value_info("x0", TP.FLOAT, x.shape)],
                              [helper.make_empty_tensor_value_info("y0")],
                              [numpy_helper.from_array(w.astype(np.float32), k) for k, w in weights.items()])
    m = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=10)
    return name, onnx.shape_inference.infer_shapes(m), {"x0": x}, ["y0"]


def rows():
    def pool(name, kind, c, n, k, s, p, **attrs):
        return row(name, kind, f(1, c, n, n), kernel_shape=[k, k], strides=[s, s], pads=[p] * 4, **attrs)

    def conv(name, cin, cout, n, k, s=1):
        return row(name, "Conv", f(1, cin, n, n), weights=(f(cout, cin, k, k) / 8, f(cout)), pads=[k // 2] * 4, strides=[s, s])

    def deconv(name, cin, cout, n, k, s, p=0, out=0):
        return row(name, "ConvTranspose", f(1, cin, n, n), weights=(f(cin, cout, k, k) / 8, f(cout)), strides=[s, s],
                   pads=[p] * 4, output_padding=[out] * 2)

    for cin, n in ((64, 128), (128, 64), (256, 32), (512, 16)):
        yield deconv(f"deconv_2x2s2_{cin}x{n}", cin, cin // 2, n, 2, 2)
    yield deconv("deconv_3x3s2_64x64", 64, 32, 64, 3, 2, 1, 1)
    yield deconv("deconv_3x3s2_128x32", 128, 64, 32, 3, 2, 1, 1)
    yield deconv("deconv_4x4s2_256x16", 256, 128, 16, 4, 2, 1)
    yield deconv("deconv_2x2s2_21x64", 21, 21, 64, 2, 2)
    yield deconv("deconv_16x16s8_21x32", 21, 21, 32, 16, 8, 4)
    for kind, word in (("MaxPool", "max"), ("AveragePool", "avg")):
        for c, n, k, s, p in ((64, 112, 3, 2, 1), (64, 112, 2, 2, 0), (192, 28, 3, 1, 1), (480, 14, 3, 2, 1), (832, 7, 3, 1, 1),
                              (256, 13, 5, 1, 2), (64, 56, 5, 1, 2), (3, 224, 2, 2, 0)):
            yield pool(f"{word}pool_{k}x{k}s{s}_{c}x{n}", kind, c, n, k, s, p)
    yield pool("avgpool_all_3x3s1_192x28", "AveragePool", 192, 28, 3, 1, 1, count_include_pad=1)
    for kind, word in (("GlobalMaxPool", "max"), ("GlobalAveragePool", "avg")):
        for c, n in ((512, 7), (2048, 7), (1280, 8), (512, 14), (64, 56)):
            yield row(f"global{word}_{c}x{n}", kind, f(1, c, n, n))
    yield row("to_nhwc_3x224", "Transpose", f(1, 3, 224, 224), perm=[0, 2, 3, 1])
    yield row("to_nchw_3x224", "Transpose", f(1, 224, 224, 3), perm=[0, 3, 1, 2])
    yield row("to_nchw_3x1080p", "Transpose", f(1, 1080, 1920, 3), perm=[0, 3, 1, 2])
    yield row("to_nchw_4x224", "Transpose", f(1, 224, 224, 4), perm=[0, 3, 1, 2])
    yield row("to_nchw_u8_3x224", "Transpose", RNG.integers(0, 255, (1, 224, 224, 3)).astype(np.uint8), perm=[0, 3, 1, 2])
    yield row("to_nhwc_u8_3x224", "Transpose", RNG.integers(0, 255, (1, 3, 224, 224)).astype(np.uint8), perm=[0, 2, 3, 1])
    yield row("to_nhwc_64x56", "Transpose", f(1, 64, 56, 56), perm=[0, 2, 3, 1])
    yield row("to_nchw_21x65", "Transpose", f(1, 65, 65, 21), perm=[0, 3, 1, 2])
    yield conv("conv_1x1_33to67_28", 33, 67, 28, 1)
    yield conv("conv_1x1_17to35_56", 17, 35, 56, 1)
    yield conv("conv_1x1_100to21_64", 100, 21, 64, 1)
    yield conv("conv_1x1_64to64_56", 64, 64, 56, 1)
    yield conv("conv_1x1_256to19_32", 256, 19, 32, 1)
    yield conv("conv_3x3_33to67_28", 33, 67, 28, 3)
    for c, n, width in ((128, 56, 2), (128, 56, 4), (256, 28, 8), (128, 56, 8), (512, 14, 16), (1024, 7, 32), (240, 28, 24)):
        yield bottleneck(f"groups_{width}_{c}x{n}", c, n, width)
    yield bottleneck("groups_4_128x56s2", 128, 56, 4, s=2)
    yield bottleneck("groups_4_128x28_5x5", 128, 28, 4, k=5)
    for word, kind in (("softmax", "Softmax"), ("logsoftmax", "LogSoftmax")):
        for n, k in ((4096, 10), (1024, 21), (1024, 80), (1024, 128), (2364, 197), (256, 1000)):
            yield row(f"{word}_{n}x{k}", kind, f(n, k), axis=-1)
    yield row("softmax_channels_21x65", "Softmax", f(1, 21, 65, 65), axis=1)
    yield row("rope_8x128x64", "RotaryEmbedding", f(1, 8, 128, 64), f(1, 128, 32), f(1, 128, 32), opset=23)
    yield row("rope_interleaved", "RotaryEmbedding", f(1, 8, 128, 64), f(1, 128, 32), f(1, 128, 32), opset=23, interleaved=1)
    yield row("cast_f32_i64", "Cast", f(512, 512) * 100, to=TP.INT64)
    yield row("cast_f32_i32", "Cast", f(512, 512) * 100, to=TP.INT32)
    yield row("cast_i64_f32", "Cast", (f(512, 512) * 100).astype(np.int64), to=TP.FLOAT)
    yield row("cast_f32_u8", "Cast", np.clip(abs(f(512, 512)) * 60, 0, 250), to=TP.UINT8)
    yield row("tile_2x3", "Tile", f(1, 64, 28, 28), weights=(np.array([1, 1, 2, 3]),))
    yield row("tile_batch", "Tile", f(1, 196, 768), weights=(np.array([4, 1, 1]),))
    yield row("tile_column", "Tile", f(64, 256, 1), weights=(np.array([1, 1, 64]),))
    yield row("expand_row", "Expand", f(1, 256, 1), weights=(np.array([64, 256, 64]),))
    for d in (40, 64, 80):
        yield row(f"attention_8x256x{d}", "Attention", f(1, 8, 256, d), f(1, 8, 256, d), f(1, 8, 256, d), opset=23)
    for kind in ("Tanh", "Erf", "Sigmoid", "Exp", "Log", "Sqrt", "Relu", "HardSwish"):
        x = f(512, 512)
        yield row(kind.lower() + "_512x512", kind, abs(x) if kind in ("Log", "Sqrt") else x)
    yield row("gelu_512x512", "Gelu", f(512, 512), opset=20)


def compiled(a, tvmcc, source, tag):
    folder, name = os.path.split(source)
    path = os.path.join(folder, tag, name.removesuffix(".onnx") + ".so")
    os.makedirs(os.path.dirname(path), exist_ok=True)
    if not os.path.exists(path) or os.path.getmtime(path) < max(os.path.getmtime(tvmcc), os.path.getmtime(source)):
        r = subprocess.run([tvmcc, source, "-mcpu=" + a.mcpu, "-fno-cache", "-o", path], stderr=subprocess.PIPE, text=True)
        if r.returncode:
            raise RuntimeError(r.stderr.strip().splitlines()[0])
    return path


def layout_share(a, source, feeds):
    """Percent of our time in kernels that only change a layout."""
    npz = source.removesuffix(".onnx") + ".in.npz"
    np.savez(npz, **feeds)
    r = subprocess.run([a.tvmcc, "profile", source, "-mcpu=" + a.mcpu, "--inputs=" + npz], capture_output=True, text=True)
    return sum(float(m[1]) for m in re.finditer(r"^ *([\d.]+)%? .*\blayout", r.stdout, re.M))


def turn(run, seconds):
    best, end = 1e9, time.perf_counter() + seconds
    while True:
        start = time.perf_counter()
        run()
        now = time.perf_counter()
        best = min(best, now - start)
        if now > end:
            return best


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("work")
    p.add_argument("words", nargs="*")
    p.add_argument("--tvmcc", default=os.path.join(HERE, "../build/release/bin/tvmcc"))
    p.add_argument("--than", help="another tvmcc")
    p.add_argument("--mcpu", default="native")
    p.add_argument("--turns", type=int, default=7)
    p.add_argument("--only-check", action="store_true", help="compile and compare results, measure nothing")
    p.add_argument("--share", action="store_true", help="the share of layout kernels")
    a = p.parse_intermixed_args()
    os.makedirs(a.work, exist_ok=True)
    engines.build_runtime(a.work)
    wrong = 0
    print("| operator | ORT, us | tvmcc, us | ratio |" + (" other tvmcc, us |" if a.than else "") +
          (" layout, % |" if a.share else "") + " error |")
    for name, model, feeds, outs in rows():
        if a.words and not any(w in name for w in a.words):
            continue
        source = os.path.join(a.work, name + ".onnx")
        data = model.SerializeToString()
        if not os.path.exists(source) or open(source, "rb").read() != data:
            open(source, "wb").write(data)
        try:
            runs = [engines.load_ort(source, feeds, outs, 1),
                    engines.load_tvmcc(compiled(a, a.tvmcc, source, a.mcpu), feeds, outs, 1)]
            if a.than:
                runs.append(engines.load_tvmcc(compiled(a, a.than, source, a.mcpu + ".than"), feeds, outs, 1))
        except Exception as e:
            print(f"| {name} | {e} |", flush=True)
            continue
        want, have = runs[0](), runs[1]()
        error = max(float(abs(np.float64(w) - h).max() / max(1e-30, abs(np.float64(w)).max())) for w, h in zip(want, have))
        error = 1e9 if any(np.isnan(h).any() for h in have if h.dtype.kind == "f") else error
        wrong += error > 1e-4
        if a.only_check:
            print(f"| {name} | {error:.0e} |", flush=True)
            continue
        times = [[turn(r, 0.012) for r in runs] for _ in range(a.turns)]
        ort, own, *other = (sorted(t)[len(t) // 2] * 1e6 for t in zip(*times))
        share = f" {layout_share(a, source, feeds):.0f} |" if a.share else ""
        print(f"| {name} | {ort:.1f} | {own:.1f} | {ort / own:.2f} |" + "".join(f" {o:.1f} |" for o in other) + share +
              f" {error:.0e} |", flush=True)
    return wrong != 0


if __name__ == "__main__":
    sys.exit(main())
