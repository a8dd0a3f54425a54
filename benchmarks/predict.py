#!/usr/bin/env python3
"""How far the model of a machine is off, kernel by kernel.

    tvmcc machine --measure -o here.machine
    benchmarks/predict.py here.machine models/resnet50.onnx ... [--tvmcc=tvmcc] [--rounds=3] [--repeat=60] [--kernels]
                          [--least=least.json]

Rounds of `tvmcc profile --predict` on one thread; of each kernel the least time of all rounds counts, since others may work on
the machine; with --least also of earlier calls, at quieter hours, which the file keeps.  Prints a table of the models and one of
the classes of kernels, with --kernels also a row for each kernel: its least time, the prediction, and microseconds of computing and
of traffic from L2, L3 and memory that it is made of.
"""
import argparse
import json
import os
import re
import subprocess

PARTS = ["compute_us", "l2_us", "l3_us", "memory_us"]
STARTS = {"contrib_dense_strassen": "dense, Strassen", "dense": "dense", "batch_matmul": "dense", "matmul": "dense",
          "attention": "attention", "max_pool2d": "pooling", "avg_pool2d": "pooling", "global": "global pooling",
          "layout_transform": "layout", "softmax": "rows", "mean": "rows", "layer_norm": "rows", "sum": "rows"}


def tvmcc(a, *args):
    return subprocess.run([a.tvmcc, *args, f"--machine={a.machine}"], check=True, capture_output=True, text=True).stdout


def kind_of(kernel, text):
    """The class of a kernel, by its name and its formula."""
    conv = re.search(r"%conv\[[^\]]*\][^=]*= *sum\[([^\]]*)\]", text)
    if "winograd" in kernel:
        return "Winograd"
    if conv:
        over = dict(re.findall(r"(\w+)<(\d+)", conv.group(1)))
        window = f'{over.get("kh", 1)}x{over.get("kw", 1)}'
        if not {"c", "i"} & set(over):
            return "depthwise"
        if int(over.get("c", 1)) * int(over.get("i", 1)) <= 4:
            return "first layer"
        return "1x1" if window == "1x1" else "direct"
    for start, kind in STARTS.items():
        if kernel.startswith(start):
            return kind
    return "elementwise"


def formulas(a, model):
    """Text of each kernel's formula."""
    out, name = {}, None
    for line in tvmcc(a, model, "-mcpu=native", "--emit=te", "-o", "-").splitlines():
        if m := re.match(r"te @(\S+?)\s?\(", line):
            name = m.group(1)
            out[name] = ""
        elif name:
            out[name] += line + "\n"
    return out


def measure(a, model, least):
    """The kernels of a model, each with the least time of all rounds, and of those before."""
    best = {}
    for _ in range(a.rounds):
        out = tvmcc(a, "profile", model, "--threads=1", "--predict", f"--repeat={a.repeat}", "--json")
        for k in json.loads(out)["kernels"]:
            had = best.setdefault(k["name"], k)
            had["min_us"] = min(had["min_us"], k["min_us"])
    text = formulas(a, model)
    for k in best.values():
        k["min_us"] = least[k["name"]] = min(k["min_us"], least.get(k["name"], k["min_us"]))
        k["kind"] = kind_of(k["name"], text.get(k["name"], ""))
        k["ratio"] = k["predicted_us"] / k["min_us"] if k["min_us"] > 0 else 0
    return [k for k in best.values() if k["ratio"] > 0]


def middle(values):
    return sorted(values)[len(values) // 2]


def row(name, kernels, all_us):
    us, ratios = sum(k["min_us"] for k in kernels), [k["ratio"] for k in kernels]
    print(f'| {name} | {len(kernels)} | {100 * us / all_us:.1f} % | {100 * middle([abs(r - 1) for r in ratios]):.0f} % '
          f'| {min(ratios):.2f} | {middle(ratios):.2f} | {max(ratios):.2f} '
          f'| {sum(k["predicted_us"] for k in kernels) / us:.2f} |')


def table(what, groups):
    all_us = sum(k["min_us"] for g in groups.values() for k in g)
    print(f"\n| {what} | kernels | share of time | half within | least ratio | median | largest | all together |\n"
          "|---|---:|---:|---:|---:|---:|---:|---:|")
    for name, kernels in sorted(groups.items(), key=lambda g: -sum(k["min_us"] for k in g[1])):
        row(name, kernels, all_us)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("machine")
    p.add_argument("models", nargs="+")
    p.add_argument("--tvmcc", default="tvmcc")
    p.add_argument("--rounds", type=int, default=3)
    p.add_argument("--repeat", type=int, default=60)
    p.add_argument("--kernels", action="store_true")
    p.add_argument("--least")
    a = p.parse_args()
    models, kinds, least = {}, {}, {}
    if a.least and os.path.exists(a.least):
        with open(a.least) as f:
            least = json.load(f)
    for model in a.models:
        name = os.path.basename(model).rsplit(".", 1)[0]
        models[name] = measure(a, model, least)
        for k in models[name]:
            kinds.setdefault(k["kind"], []).append(k)
        if a.kernels:
            print(f"\n{name}\n{'least us':>10} {'predicted':>10} {'ratio':>6} {'compute':>10} {'L2':>9} {'L3':>9} {'memory':>9}")
            for k in sorted(models[name], key=lambda k: -k["min_us"]):
                parts = f"{k[PARTS[0]]:10.1f} " + " ".join(f"{k[x]:9.1f}" for x in PARTS[1:])
                print(f"{k['min_us']:10.1f} {k['predicted_us']:10.1f} {k['ratio']:6.2f} {parts}  {k['kind']}: {k['name']}")
    if a.least:
        with open(a.least, "w") as f:
            json.dump(least, f, indent=1)
    table("model", models)
    table("class", kinds)


main()
