#!/usr/bin/env python3
"""How far the model of a machine is off, kernel by kernel.

    tvmcc machine --measure -o here.machine
    benchmarks/predict.py here.machine models/resnet50.onnx ... [--tvmcc=tvmcc] [--rounds=10] [--repeat=30]

Rounds of `tvmcc profile --predict` on one thread; of each kernel the least time of all rounds counts, since others may work on
the machine.  Prints a row for each kernel, and by how much half of the predictions are off at most, by kernel and by time.
"""
import argparse
import json
import subprocess


def rounds(a, model):
    """The kernels of a model, each with the least time of all rounds."""
    best = {}
    for _ in range(a.rounds):
        out = subprocess.run([a.tvmcc, "profile", model, "--threads=1", "--predict", f"--machine={a.machine}",
                              f"--repeat={a.repeat}", "--json"], check=True, capture_output=True, text=True).stdout
        for k in json.loads(out)["kernels"]:
            had = best.setdefault(k["name"], k)
            had["min_us"] = min(had["min_us"], k["min_us"])
    return [k for k in best.values() if k["min_us"] > 0]


def middle(pairs):
    """The value below which half of the weights lie."""
    half = sum(w for _, w in pairs) / 2
    for value, weight in sorted(pairs):
        half -= weight
        if half <= 0:
            return value
    return 0


def main():
    p = argparse.ArgumentParser()
    p.add_argument("machine")
    p.add_argument("models", nargs="+")
    p.add_argument("--tvmcc", default="tvmcc")
    p.add_argument("--rounds", type=int, default=10)
    p.add_argument("--repeat", type=int, default=30)
    a = p.parse_args()
    for model in a.models:
        kernels = sorted(rounds(a, model), key=lambda k: -k["min_us"])
        print(f"{model}\n{'least us':>10} {'predicted':>10} {'ratio':>6}  kernel")
        for k in kernels:
            print(f"{k['min_us']:10.1f} {k['predicted_us']:10.1f} {k['predicted_us'] / k['min_us']:6.2f}  {k['name']}")
        off = [(abs(k["predicted_us"] / k["min_us"] - 1), k["min_us"]) for k in kernels]
        print(f"half of {len(off)} kernels within {100 * middle([(e, 1) for e, _ in off]):.1f} %, "
              f"of the time within {100 * middle(off):.1f} %; "
              f"in all {sum(k['predicted_us'] for k in kernels) / sum(k['min_us'] for k in kernels):.2f}\n")


main()
