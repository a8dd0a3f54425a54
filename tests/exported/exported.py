#!/usr/bin/env python3
"""What PyTorch exports, by both exporters, compiled once and run at many sizes.

    exported.py TVMCC [--list] [--sizes 10] [--exporter dynamo script] [--keep FOLDER] [NAME ..]

A model of nets.py is exported with dimensions that are open, compiled with bounds for them, and run at random sizes
within the bounds, the least and the largest among them.  Results are those of the framework: floats within the case's
tolerance of the largest value (1e-4 unless it says otherwise), shapes and integers exactly.  Detections are as many,
with the same labels, boxes and masks; only their order may differ, where scores are nearly equal.
gpt goes on from a prompt for 64 steps, whose keys and values come from the step before.  Weights are random; nothing
is fetched.
"""
import argparse
import contextlib
import logging
import os
import random
import subprocess
import sys
import tempfile
import time
import warnings
from unittest import mock

import numpy as np
import torch
import torchvision

import nets
import shipped  # its networks join those of nets

STEPS = 64  # of decoding


class Difference(Exception):
    pass


def followed():
    """torch.export does not follow a choice by the number of boxes: suppression without it, of the framework, too."""
    return mock.patch.object(torchvision.ops.boxes, "batched_nms", lambda boxes, scores, label, overlap:
                             torchvision.ops.nms(boxes + label.to(boxes)[:, None] * 4096.0, scores, overlap))


def dynamo(case, args, path):
    shapes = [{k: e for k, e in enumerate(i.extents) if isinstance(e, str)} for i in case.inputs]
    if case.varying:
        shapes = [shapes[0], tuple(shapes[1:])]
    torch.onnx.export(case.net, args, path, dynamo=True, dynamic_shapes=tuple(shapes), verbose=False,
                      input_names=[i.name for i in case.inputs], output_names=case.outputs)


def script(case, args, path):
    axes = {i.name: {k: e for k, e in enumerate(i.extents) if isinstance(e, str)} for i in case.inputs}
    torch.onnx.export(case.net, args, path, dynamo=False, dynamic_axes=axes,
                      input_names=[i.name for i in case.inputs], output_names=case.outputs)


def values(case, sizes):
    return [i.make([sizes.get(e, e) for e in i.extents]) for i in case.inputs]


def eager(case, args):
    with torch.no_grad():
        out = case.net(*args)
    return [t.numpy() for t in (out if isinstance(out, tuple) else (out,))]


def tvmcc(a, *words):
    r = subprocess.run([a.tvmcc, *words], capture_output=True, text=True, errors="replace")
    if r.returncode:
        raise Difference(f"tvmcc {words[0]}: status {r.returncode}: {r.stderr.strip()[:600]}")


def compile_model(a, case, exporter, model, product):
    bounds = [f"--dim={name}={lo}..{hi}" for name, (lo, hi) in (case.dims | case.bounds.get(exporter, {})).items()]
    tvmcc(a, model, "-o", product, "-mcpu=native", "-Wno-schedule-refused", *bounds, *case.options)


def run(a, case, product, args):
    stem = os.path.splitext(product)[0]
    np.savez(stem + ".in.npz", **{i.name: v.numpy() for i, v in zip(case.inputs, args)})
    tvmcc(a, "run", product, "--threads", "2", "--inputs", stem + ".in.npz", "--outputs", stem + ".out.npz")
    with np.load(stem + ".out.npz") as found:
        return [found[name] for name in case.outputs]


def in_order(case, ours, theirs):
    """Detections of nearly equal scores may change places: ours in the framework's order."""
    at = case.outputs.index("scores")
    if ours[at].shape != theirs[at].shape:
        return ours
    left, order = list(range(len(ours[at]))), []
    for i in range(len(left)):
        order.append(min(left[:8], key=lambda k: np.abs(ours[0][k] - theirs[0][i]).max()))
        left.remove(order[-1])
    return [x[order] for x in ours]


def compare(case, ours, theirs):
    if case.detections:
        ours = in_order(case, ours, theirs)
    for name, x, y in zip(case.outputs, ours, theirs):
        if x.shape != y.shape or x.dtype != y.dtype:
            raise Difference(f"{name} is {x.dtype}{list(x.shape)}, not {y.dtype}{list(y.shape)}")
        if not x.size:
            continue
        if y.dtype.kind != "f":
            if (x != y).any():
                raise Difference(f"{name}: {(x != y).sum()} of {x.size} cells differ")
            continue
        off = np.abs(x - y).max()
        if not off <= case.tolerance * max(np.abs(y).max(), 1):
            raise Difference(f"{name} is off by {off:.3g}")


def sizes_of(case, count):
    """The least, the largest, and others between."""
    sizes = [{name: lo for name, (lo, _) in case.dims.items()}, {name: hi for name, (_, hi) in case.dims.items()}]
    while len(sizes) < count:
        between = {name: random.randint(lo, hi) for name, (lo, hi) in case.dims.items()}
        if not case.suits or case.suits(between):
            sizes.append(between)
    return sizes


def decode(a, case, product):
    """A prompt, then a token at a time, the likeliest."""
    args = values(case, {"batch": 2, "sequence": 7, "past": 0})
    theirs = args
    for step in range(STEPS + 1):
        ours, want = run(a, case, product, args), eager(case, theirs)
        try:
            compare(case, ours, want)
        except Difference as e:
            raise Difference(f"step {step}: {e}")
        token = torch.from_numpy(want[0][:, -1:].argmax(2))
        args = [token] + [torch.from_numpy(v) for v in ours[1:]]
        theirs = [token] + [torch.from_numpy(v) for v in want[1:]]


def check(a, name, exporter, folder):
    torch.manual_seed(0)
    random.seed(0)
    case = nets.MODELS[name]()
    case.net.eval()
    if exporter not in case.exporters:
        return "skip"
    model, product = (os.path.join(folder, f"{name}.{exporter}{end}") for end in (".onnx", ".so"))
    between = {n: min(hi, lo + 3 + 2 * i) if hi < 32 else (lo + hi) // 4 * 2 for i, (n, (lo, hi)) in enumerate(case.dims.items())}
    began = time.time()
    try:
        with contextlib.redirect_stdout(None):
            {"dynamo": dynamo, "script": script}[exporter](case, tuple(values(case, case.example or between)), model)
    except Exception as e:  # whatever torch raises
        raise Difference(f"not exported: {type(e).__name__}: {str(e).strip()[:200]}")
    exported = time.time()
    compile_model(a, case, exporter, model, product)
    compiled = time.time()
    for sizes in sizes_of(case, a.sizes):
        args = values(case, sizes)
        try:
            compare(case, run(a, case, product, args), eager(case, args))
        except Difference as e:
            raise Difference(f"at {sizes}: {e}")
    if name == "gpt":
        decode(a, case, product)
    return f"exported {exported - began:.1f} s, compiled {compiled - exported:.1f} s, run {time.time() - compiled:.1f} s"


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("tvmcc", metavar="TVMCC", type=os.path.abspath)
    p.add_argument("names", metavar="NAME", nargs="*")
    p.add_argument("--list", action="store_true")
    p.add_argument("--sizes", type=int, default=10)
    p.add_argument("--exporter", nargs="+", choices=["dynamo", "script"], default=["dynamo", "script"])
    p.add_argument("--keep", metavar="FOLDER", help="leave models and products there")
    a = p.parse_intermixed_args()
    warnings.filterwarnings("ignore")
    logging.disable(logging.WARNING)
    torch.set_num_threads(2)
    if a.list:
        print("\n".join(nets.MODELS))
        return 0
    failed = []
    with tempfile.TemporaryDirectory() as scratch:
        if a.keep:
            os.makedirs(a.keep, exist_ok=True)
        for name in a.names or nets.MODELS:
            for exporter in a.exporter:
                try:
                    with followed() if exporter == "dynamo" else contextlib.nullcontext():
                        result = check(a, name, exporter, a.keep or scratch)
                except Difference as e:
                    failed.append(f"{name} {exporter}")
                    result = f"FAILED {e}"
                print(f"{name} {exporter}: {result}", flush=True)
    print(f"{len(failed)} failed" + (": " + ", ".join(failed) if failed else ""))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
