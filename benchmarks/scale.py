#!/usr/bin/env python3
"""How long large graphs take: import and compile time against the number of nodes, from 100 to 20,000.

    scale.py WORK [--tvmcc FILE] [--mcpu native] [--rounds 2] [--nodes 100 300 ..] [--kinds chain mix kernels]
    scale.py --write chain 1000 FILE

Models are written on the spot, of three kinds.  *chain*: products of 32 x 32 with a residual over each second one;
equal layers share their kernels.  *mix*: convolutions, elementwise operators, reshapes, transposes, slices and sums of
two branches, with constants as nodes among them.  *kernels*: products whose sizes differ, with elementwise operators behind them: 2,000
kernels at 20,000 nodes.  Import is `tvmcc inspect`, which reads the model and infers all types;
compile is `tvmcc -c -fno-cache` at -O0 and -O3.  The figure is processor time,
the least of some rounds, with the peak of memory.
A point whose time for a node is more than 1.5 times that of the point before it is marked.  Markdown goes to standard
output, the picture to WORK/scale.svg, the figures to WORK/scale.json.
"""
import argparse
import json
import math
import os
import subprocess
import sys

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

HERE = os.path.dirname(os.path.abspath(__file__))
STEEP = 1.5
WIDTH = 32


class Graph:
    """Nodes in order; `node` gives the name of the only output."""

    def __init__(self):
        self.nodes, self.weights = [], []
        self.rng = np.random.default_rng(1)

    def node(self, op, *inputs, **attrs):
        name = f"t{len(self.nodes)}"
        self.nodes.append(helper.make_node(op, inputs, [name], name=f"{op}_{len(self.nodes)}", **attrs))
        return name

    def weight(self, *shape):
        name = f"w{len(self.weights)}"
        value = self.rng.standard_normal(shape).astype(np.float32) / math.sqrt(max(1, math.prod(shape[1:])))
        self.weights.append(numpy_helper.from_array(value, name))
        return name

    def constant(self, value):
        return self.node("Constant", value=numpy_helper.from_array(np.asarray(value)))

    def model(self, shape, last):
        info = helper.make_tensor_value_info
        graph = helper.make_graph(self.nodes, "scale", [info("x", TensorProto.FLOAT, shape)],
                                  [info(last, TensorProto.FLOAT, None)], self.weights)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)


def chain(count):
    g, x, i = Graph(), "x", 0
    shared = [g.weight(WIDTH, WIDTH) for _ in range(16)]
    while len(g.nodes) < count:
        y = g.node("MatMul", g.node("Relu", g.node("MatMul", x, shared[i % 16])), shared[(i + 1) % 16])
        x = g.node("Tanh", g.node("Add", x, y))
        i += 2
    return g.model([4, WIDTH], x)


def mix(count):
    g, x, i = Graph(), "x", 0
    convs = [g.weight(8, 8, 3, 3) for _ in range(8)]
    biases = [g.weight(8) for _ in range(8)]
    while len(g.nodes) < count:
        y = g.node("Conv", x, convs[i % 8], biases[i % 8], pads=[1, 1, 1, 1])
        y = g.node("Mul", y, g.node("Sigmoid", y))
        if i % 4 == 1:
            y = g.node("Reshape", y, g.constant(np.array([1, 8, 64], np.int64)))
            y = g.node("Transpose", y, perm=[0, 2, 1])
            y = g.node("Add", y, g.constant(np.float32(i)))
            y = g.node("Reshape", g.node("Transpose", y, perm=[0, 2, 1]), g.constant(np.array([1, 8, 8, 8], np.int64)))
        if i % 4 == 3:
            halves = [g.node("Slice", y, *(g.constant(np.array([v], np.int64)) for v in (at, at + 4, 1))) for at in (0, 4)]
            y = g.node("Concat", halves[1], halves[0], axis=1)
        x = g.node("Add", x, y)
        i += 1
    return g.model([1, 8, 8, 8], x)


def kernels(count):
    """Ten nodes a round; two rounds in a row have the same two products, no others have them."""
    g, x, i = Graph(), "x", 0
    while len(g.nodes) < count:
        if i % 2 == 0:
            there, back = g.weight(16, 8 + i // 2), g.weight(8 + i // 2, 16)
        y = g.node("MatMul", g.node("Relu", g.node("MatMul", x, there)), back)
        for op in ("Tanh", "Abs", "Neg", "Sigmoid", "Relu", "Exp"):
            y = g.node(op, y)
        x = g.node("Sub", x, y)
        i += 1
    return g.model([4, 16], x)


KINDS = {
    "chain": (chain, "products with residuals, equal kernels"),
    "mix": (mix, "convolutions, elementwise, views, constants"),
    "kernels": (kernels, "a tenth of the nodes is a kernel of its own"),
}
STEPS = {
    "import": lambda a, model: [a.tvmcc, "inspect", model],
    "-O0": lambda a, model: [a.tvmcc, "-c", "-O0", model, f"-mcpu={a.mcpu}", "-fno-cache", "-o", model + ".o"],
    "-O3": lambda a, model: [a.tvmcc, "-c", "-O3", model, f"-mcpu={a.mcpu}", "-fno-cache", "-o", model + ".o"],
}


def spend(command):
    """Seconds of processor time, and the peak of memory in MiB."""
    child = os.posix_spawn(command[0], command, os.environ,
                           file_actions=[(os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0)])
    _, status, usage = os.wait4(child, 0)
    if status:
        sys.exit(f"status {os.waitstatus_to_exitcode(status)}: {' '.join(command)}")
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


def point(a, kind, count):
    model = os.path.join(a.work, f"{kind}{count}.onnx")
    onnx.save(KINDS[kind][0](count), model)
    got = {"MB": os.path.getsize(model) / 1e6}
    for step in a.steps:
        spent = [spend(STEPS[step](a, model)) for _ in range(a.rounds)]
        got[step] = {"s": min(s for s, _ in spent), "MiB": min(m for _, m in spent)}
        print(f"{kind} {count} {step}: {got[step]['s']:.2f} s, {got[step]['MiB']:.0f} MiB", file=sys.stderr)
    os.remove(model)
    return got


def table(a, kind, points):
    heads = [f"{s}, s | ms a node | MiB" for s in a.steps]
    print(f"\n### {kind.capitalize()}: {KINDS[kind][1]}\n\n| nodes | model, MB | {' | '.join(heads)} |")
    print("|---:|---:|" + "---:|" * (3 * len(a.steps)))
    before = {}
    for count, got in points.items():
        cells = []
        for step in a.steps:
            ms = 1e3 * got[step]["s"] / count
            steep = step in before and ms > STEEP * before[step]
            cells += [f"{got[step]['s']:.2f}", f"{ms:.3f}{' steep' if steep else ''}", f"{got[step]['MiB']:.0f}"]
            before[step] = ms
        print(f"| {count} | {got['MB']:.1f} | {' | '.join(cells)} |")


def chart(a, x0, kind, points):
    """Seconds over nodes, both logarithmic; a line of slope 1 is linear."""
    width, height, counts = 250, 220, list(points)
    low, high = -2.0, math.ceil(math.log10(max(points[n][s]["s"] for n in counts for s in a.steps)))
    x = lambda n: x0 + 10 + (width - 20) * math.log(n / counts[0]) / math.log(max(2, counts[-1] / counts[0]))
    y = lambda s: 40 + height * (high - max(low, math.log10(s))) / (high - low)
    out = [f'<text x="{x0}" y="18" font-size="13">{kind}</text><text x="{x0}" y="32">seconds</text>',
           f'<rect x="{x0}" y="40" width="{width}" height="{height}" fill="none" stroke="#aaa"/>']
    for power in range(int(low), int(high) + 1):
        out.append(f'<text x="{x0 + 2}" y="{min(y(10.0 ** power) + 10, 38 + height):.1f}" fill="#888">{10.0 ** power:g}</text>'
                   f'<line x1="{x0}" x2="{x0 + width}" y1="{y(10.0 ** power):.1f}" y2="{y(10.0 ** power):.1f}" stroke="#ddd"/>')
    first = points[counts[0]][a.steps[-1]]["s"]
    linear = " ".join(f"{x(n):.1f},{y(first * n / counts[0]):.1f}" for n in counts if first * n / counts[0] <= 10.0 ** high)
    out.append(f'<polyline points="{linear}" fill="none" stroke="#888" stroke-dasharray="3 3"/>')
    for step, color in zip(a.steps, ("#2a7f62", "#3566a8", "#b5523b")):
        line = " ".join(f"{x(n):.1f},{y(points[n][step]['s']):.1f}" for n in counts)
        out.append(f'<polyline points="{line}" fill="none" stroke="{color}" stroke-width="2"/>')
        out.append(f'<text x="{x(counts[-1]) - 40:.1f}" y="{y(points[counts[-1]][step]["s"]) - 5:.1f}" fill="{color}">{step}</text>')
    out += [f'<text x="{x(n):.1f}" y="{height + 54}" text-anchor="middle">{n}</text>' for n in counts]
    out.append(f'<text x="{x0 + width / 2}" y="{height + 68}" text-anchor="middle">nodes; dashes: linear</text>')
    return "\n".join(out)


def picture(a, parts, path):
    body = "\n".join(chart(a, 15 + 275 * i, *part) for i, part in enumerate(parts.items()))
    with open(path, "w") as f:
        f.write(f'<svg xmlns="http://www.w3.org/2000/svg" width="{15 + 275 * len(parts)}" height="300" '
                f'font-family="sans-serif" font-size="11"><rect width="100%" height="100%" fill="white"/>\n{body}\n</svg>\n')


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("work", nargs="?", metavar="WORK")
    p.add_argument("--tvmcc", default=os.path.join(HERE, "../build/release/bin/tvmcc"))
    p.add_argument("--mcpu", default="native")
    p.add_argument("--rounds", type=int, default=2)
    p.add_argument("--nodes", type=int, nargs="*", default=[100, 300, 1000, 3000, 10000, 20000])
    p.add_argument("--kinds", nargs="*", default=list(KINDS), choices=KINDS)
    p.add_argument("--steps", nargs="*", default=list(STEPS), choices=STEPS)
    p.add_argument("--write", nargs=3, metavar=("KIND", "NODES", "FILE"), help="only write this model")
    a = p.parse_args()
    if a.write:
        return onnx.save(KINDS[a.write[0]][0](int(a.write[1])), a.write[2])
    os.makedirs(a.work, exist_ok=True)
    parts = {}
    for kind in a.kinds:
        parts[kind] = {count: point(a, kind, count) for count in a.nodes}
        table(a, kind, parts[kind])
        sys.stdout.flush()
        picture(a, parts, os.path.join(a.work, "scale.svg"))
        with open(os.path.join(a.work, "scale.json"), "w") as f:
            json.dump(parts, f, indent=1)


if __name__ == "__main__":
    main()
