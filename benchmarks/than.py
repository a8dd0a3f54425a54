#!/usr/bin/env python3
"""Whole networks of two versions of tvmcc, by turns.

    than.py WORK MODEL.onnx... --than=OTHER_TVMCC [--mcpu=CPU] [--turns=20] [--steps]

Beside each model stands its .npz, as benchmarks/models.py writes them.  Both products and a copy of the first take turns
of 0.15 s in one process on one thread; the least processor time of each turn counts.  Least times and the median of the
turns' ratios are printed, of the copy, too: what differs as much says nothing.  Where weights lie in memory moves a
network by some per cent, so all products find theirs at one place, in pages of 2 MiB, where each is put before its turn.

--steps: also the least time of each kernel, but for those that differ by less than a thousandth of the network.
"""
import argparse
import ctypes
import difflib
import os
import re
import statistics
import subprocess
import sys
import time

import numpy as np

import engines
import shapes


class Product:
    def __init__(self, a, tool, model, tag):
        folder, name = os.path.join(a.work, a.mcpu, tag), os.path.basename(model)[:-len(".onnx")]
        os.makedirs(folder, exist_ok=True)
        self.path = os.path.join(folder, name + ".so")
        shapes.tvmcc(tool, model, "-mcpu=" + a.mcpu, "-fno-cache", "-fweights=file", "-o", self.path)
        plan = shapes.tvmcc(tool, model, "-mcpu=" + a.mcpu, "--emit=plan", "-o", "-")
        self.names = re.findall(r"^ *call @(\S+?)\(", plan, re.M)
        self.weights, self.key = shapes.weights_of(self.path)
        self.turns = []

    def load(self, feeds, outs, arena, place, watch):
        self.watch = shapes.Watch()
        callback = (ctypes.cast(watch.watch, ctypes.c_void_p), self.watch) if watch else None
        run = engines.load_tvmcc(self.path, feeds, outs, 1, arena=arena, instrument=callback, weights=place.at)

        def watched():
            run()
            if watch:
                watch.watch_end_of_run(ctypes.byref(self.watch))
        self.run = watched

    def turn(self, seconds):
        least, end = float("inf"), time.perf_counter() + seconds
        while time.perf_counter() < end:
            begin = time.process_time()
            self.run()
            least = min(least, time.process_time() - begin)
        self.turns.append(least)


def differing(now, than):
    """Kernels of both in order, those of equal names side by side, but for where they hardly differ."""
    plain = [[re.sub(r"\.[0-9a-f]{8}\b", "", n) for n in p.names] for p in (now, than)]
    whole, rows = sum(than.watch.least), []
    for kind, i, k, j, m in difflib.SequenceMatcher(None, *plain, autojunk=False).get_opcodes():
        parts = [(i + n, i + n + 1, j + n, j + n + 1) for n in range(k - i)] if kind == "equal" else [(i, k, j, m)]
        for i0, i1, j0, j1 in parts:
            a, b = sum(now.watch.least[i0:i1]), sum(than.watch.least[j0:j1])
            if abs(a - b) > whole / 1000:
                rows.append((a - b, a, b, " ".join(now.names[i0:i1]) or "-"))
    return sorted(rows, reverse=True)


def compare(a, model, watch):
    z = np.load(model[:-len(".onnx")] + ".npz")
    feeds = {k[len("in."):]: z[k] for k in z.files if k.startswith("in.")}
    outs = [k[len("out."):] for k in z.files if k.startswith("out.")]
    made = [Product(a, tool, model, tag) for tool, tag in ((a.tvmcc, "now"), (a.than, "than"), (a.tvmcc, "copy"))]
    place, arena = shapes.Place(max(len(p.weights) for p in made)), shapes.pages(a.arena << 20)
    for p in made:
        p.load(feeds, outs, arena, place, watch)
    for i in range(a.turns + 1):
        for p in made if i % 2 else made[::-1]:
            place.put(p)
            p.turn(0.15)
            p.turns = p.turns if i else []
    now, than, copy = made
    cells = [min(p.turns) / min(than.turns) for p in (now, copy)]
    cells += [statistics.median(x / y for x, y in zip(p.turns, than.turns)) for p in (now, copy)]
    print(f"| {os.path.basename(model)[:-5]} | {1e3 * min(than.turns):.3f} | {1e3 * min(now.turns):.3f} | "
          + " | ".join(f"{c:.3f}" for c in cells) + " |", flush=True)
    for _, x, y, name in differing(now, than) if watch else []:
        print(f"    {1e6 * x:9.1f} {1e6 * y:9.1f} {x / y if y else float('nan'):6.3f} {name}", flush=True)


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("work")
    p.add_argument("models", nargs="+")
    p.add_argument("--than", required=True)
    p.add_argument("--tvmcc", default=os.path.join(shapes.HERE, "../build/release/bin/tvmcc"))
    p.add_argument("--mcpu", default="native")
    p.add_argument("--turns", type=int, default=20)
    p.add_argument("--arena", type=int, default=256, help="MiB")
    p.add_argument("--steps", action="store_true")
    a = p.parse_args()
    os.makedirs(a.work, exist_ok=True)
    engines.build_runtime(a.work)
    watch = shapes.build_watch(a.work) if a.steps else None
    print("| model | than, ms | now, ms | now / than | copy | median | copy |\n|---|" + "---:|" * 6)
    for model in a.models:
        compare(a, model, watch)


if __name__ == "__main__":
    sys.exit(main())
