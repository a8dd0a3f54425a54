#!/usr/bin/env python3
"""Latency of tvmcc against ONNX Runtime, side by side in one run.

    compare.py TVMCC MODEL.onnx... [--threads 1 2] [--rounds 5] [--repeat 20] [--mcpu native]

Needs numpy and onnxruntime.  Each model is compiled once to a shared library; then both engines take
turns, a fresh process each, so that a change of the machine's clock or load hits both.  Printed is a
Markdown table: the median over the rounds of each process's median latency in ms, the ratio (above 1:
tvmcc is faster), compile seconds, bytes of code and peak RSS.  Outputs are compared too.
"""
import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time

ORT = r"""
import json, resource, sys, time
import numpy as np, onnxruntime as ort
path, threads, repeat = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
o = ort.SessionOptions()
o.intra_op_num_threads, o.inter_op_num_threads = threads, 1
s = ort.InferenceSession(path, o, providers=["CPUExecutionProvider"])
kinds = {"tensor(float)": np.float32, "tensor(int64)": np.int64, "tensor(int32)": np.int32, "tensor(bool)": np.bool_}
rng = np.random.default_rng(1)
feed = {i.name: (rng.uniform(-1, 1, i.shape) if "float" in i.type else np.zeros(i.shape)).astype(kinds[i.type])
        for i in s.get_inputs()}
t = time.perf_counter()
n = 0
while n < 2 or time.perf_counter() - t < 0.05: s.run(None, feed); n += 1
ms = []
for _ in range(repeat):
    t = time.perf_counter(); s.run(None, feed); ms.append((time.perf_counter() - t) * 1e3)
print(json.dumps({"median": float(np.median(ms)), "rss": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss}))
"""


def last_json(cmd):
    r = subprocess.run(cmd, capture_output=True, text=True)
    if r.returncode:
        sys.exit(f"{' '.join(cmd)}\n{r.stderr}")
    return json.loads(r.stdout.strip().splitlines()[-1])


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("tvmcc")
    p.add_argument("models", nargs="+")
    p.add_argument("--threads", nargs="+", type=int, default=[1, 2])
    p.add_argument("--rounds", type=int, default=5)
    p.add_argument("--repeat", type=int, default=20)
    p.add_argument("--mcpu", default="native")
    a = p.parse_args()
    print("| model | threads | tvmcc ms | ONNX Runtime ms | ratio | tvmcc RSS MiB | ORT RSS MiB | compile s | object KiB of code |")
    print("|---|---:|---:|---:|---:|---:|---:|---:|---:|", flush=True)
    ratios = {}
    with tempfile.TemporaryDirectory() as work:
        for model in a.models:
            name = os.path.basename(model).removesuffix(".onnx")
            so = os.path.join(work, name + ".so")
            start = time.perf_counter()
            subprocess.run([a.tvmcc, model, f"-mcpu={a.mcpu}", "-o", so], check=True)
            seconds = time.perf_counter() - start
            text = subprocess.run(["size", so], capture_output=True, text=True).stdout.split("\n")[1].split()[0]
            weights = 0
            for threads in a.threads:
                ours, theirs, rss = [], [], [0, 0]
                for _ in range(a.rounds):
                    r = last_json([a.tvmcc, "bench", so, "--threads", str(threads), "--repeat", str(a.repeat), "--json"])
                    ours.append(r["ms"]["median"])
                    rss[0], weights = max(rss[0], r["peak_rss_kib"]), r["weights_bytes"]
                    r = last_json([sys.executable, "-c", ORT, model, str(threads), str(a.repeat)])
                    theirs.append(r["median"])
                    rss[1] = max(rss[1], r["rss"])
                t, o = statistics.median(ours), statistics.median(theirs)
                ratios.setdefault(threads, []).append(o / t)
                print(f"| {name} | {threads} | {t:.3f} | {o:.3f} | {o / t:.2f} | {rss[0] / 1024:.0f} | {rss[1] / 1024:.0f} | "
                      f"{seconds:.1f} | {(int(text) - weights) / 1024:.0f} |", flush=True)
    for threads, r in ratios.items():
        print(f"\nGeometric mean of the ratios, {threads} threads: {statistics.geometric_mean(r):.2f}")


if __name__ == "__main__":
    main()
