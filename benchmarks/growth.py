#!/usr/bin/env python3
"""How cost grows: latency against batch, picture size and depth, compile time against depth.

    growth.py WORK [--tvmcc FILE] [--mcpu native] [--threads 1] [--seconds 0.4] [--only batch size depth compile]

Models are residual networks written on the spot: a stem, blocks of two 3x3 convolutions of 64 channels, a
head.  What grows is one number; the cost of a unit (a picture, a pixel, a block) should stay or fall.
tvmcc and ONNX Runtime take turns, three times each; the figure is the least of the medians, since what
disturbs a run makes it longer.  A unit that costs more than 1.25 times what it cost one step before is
marked: a cliff.  Compile time is that of `tvmcc -c -fno-cache`, for equal blocks, which share their
kernels, and for blocks of different widths, which do not.  Markdown goes to standard output, the picture
to WORK/growth.svg, the figures to WORK/growth.json.
"""
import argparse
import json
import math
import os
import statistics
import subprocess
import time

import onnx

from models import G

HERE = os.path.dirname(os.path.abspath(__file__))
CLIFF = 1.25


def residual(batch=1, size=112, blocks=4, widths=(64,)):
    """`widths` repeat over the blocks; a block that changes the width has a 1x1 convolution beside it."""
    g = G("growth")
    x = g.cbr(g.input("input", g.randn(batch, 3, size, size)), 64, 3, 2)
    for i in range(blocks):
        width = widths[i % len(widths)]
        y = g.cbr(g.cbr(x, width, 3), width, 3, act=None)
        x = g.relu(g.add(y, x if g.c[x] == width else g.cbr(x, width, 1, act=None)))
    g.head(x)
    return g


# What grows: title, unit, values, the model of a value, how many units it has.
LATENCY = {
    "batch": ("batch", "picture", (1, 2, 4, 8, 16, 32), lambda v: residual(batch=v, size=64), lambda v: v),
    "size": ("picture size", "1000 pixels", (64, 96, 128, 192, 256, 384, 512), lambda v: residual(size=v, blocks=3),
             lambda v: v * v / 1000),
    "depth": ("blocks", "block", (2, 4, 8, 16, 32, 64), lambda v: residual(size=64, blocks=v), lambda v: v),
}
COMPILE = {
    "equal blocks": ("blocks", "block", (4, 16, 64, 128), lambda v: residual(size=64, blocks=v), lambda v: v),
    # As wide on average, however many: a block's weights grow with the square of its width.
    "different blocks": ("blocks", "block", (4, 8, 16, 32),
                         lambda v: residual(size=64, blocks=v, widths=[64 + 8 * i for i in range(32)][16 // v::32 // v]),
                         lambda v: v),
}


def last_json(text):
    return json.loads(text.strip().splitlines()[-1])


def bench_ours(a, path):
    command = [a.tvmcc, "bench", path, "--json", "--threads", str(a.threads), "--repeat"]
    once = last_json(subprocess.run(command + ["1"], capture_output=True, text=True, check=True).stdout)["ms"]["median"]
    repeat = max(3, int(a.seconds * 1e3 / once))
    return last_json(subprocess.run(command + [str(repeat)], capture_output=True, text=True, check=True).stdout)["ms"]["median"]


def ort_session(a, path):
    import onnxruntime as ort
    o = ort.SessionOptions()
    o.intra_op_num_threads = a.threads
    o.add_session_config_entry("session.force_spinning_stop", "1")  # it shares the cores with the other
    return ort.InferenceSession(path, o, providers=["CPUExecutionProvider"])


def bench_ort(a, session, feeds):
    ms, end = [], time.perf_counter() + a.seconds
    while len(ms) < 3 or time.perf_counter() < end:
        start = time.perf_counter()
        session.run(None, feeds)
        ms.append((time.perf_counter() - start) * 1e3)
    return statistics.median(ms)


def compiled(a, model, path):
    start = time.perf_counter()
    subprocess.run([a.tvmcc, model, f"-mcpu={a.mcpu}", "-fno-cache", "-o", path], check=True, capture_output=True)
    return time.perf_counter() - start


def latency_point(a, make, value):
    stem = os.path.join(a.work, "growth")
    g = make(value)
    onnx.save(g.model(), stem + ".onnx")
    compiled(a, stem + ".onnx", stem + ".so")
    session = ort_session(a, stem + ".onnx")
    ours, ort = [], []
    for _ in range(3):
        ours.append(bench_ours(a, stem + ".so"))
        ort.append(bench_ort(a, session, g.feeds))
    return {"tvmcc": min(ours), "ort": min(ort)}


def compile_point(a, make, value):
    stem = os.path.join(a.work, "growth")
    onnx.save(make(value).model(), stem + ".onnx")
    return {"tvmcc": min(compiled(a, stem + ".onnx", stem + ".o") for _ in range(2)) * 1e3}


def table(title, row, points):
    axis, unit, values, _, units = row
    engines = list(next(iter(points.values())))
    heads = [f"{e}, ms" for e in engines] + [f"{e}, ms a {unit}" for e in engines] + ["cliff"]
    print(f"\n### {title}\n\n| {axis} | {' | '.join(heads)} |\n|---:|{'---:|' * len(heads)}")
    before = None
    for v in values:
        cost = {e: points[v][e] / units(v) for e in engines}
        steep = before and cost["tvmcc"] > CLIFF * before
        cells = [f"{points[v][e]:.2f}" for e in engines] + [f"{cost[e]:.3g}" for e in engines] + ["yes" if steep else ""]
        print(f"| {v} | {' | '.join(cells)} |")
        before = cost["tvmcc"]


def chart(x0, title, row, points):
    """Cost of a unit over a logarithmic axis, as a group of an SVG file."""
    axis, unit, values, _, units = row
    width, height, engines = 250, 150, list(next(iter(points.values())))
    cost = {e: [points[v][e] / units(v) for v in values] for e in engines}
    top = 1.15 * max(max(c) for c in cost.values())
    x = lambda v: x0 + 10 + (width - 20) * math.log(v / values[0]) / math.log(values[-1] / values[0])
    y = lambda c: 40 + height * (1 - c / top)
    out = [f'<text x="{x0}" y="18" font-size="13">{title}</text><text x="{x0}" y="32">ms a {unit}, up to {top:.3g}</text>',
           f'<rect x="{x0}" y="40" width="{width}" height="{height}" fill="none" stroke="#aaa"/>']
    for e, color in zip(engines, ("#2a7f62", "#b5523b")):
        line = " ".join(f"{x(v):.1f},{y(c):.1f}" for v, c in zip(values, cost[e]))
        out.append(f'<polyline points="{line}" fill="none" stroke="{color}" stroke-width="2"/>')
        out.append(f'<text x="{x(values[-1]) - 40:.1f}" y="{y(cost[e][-1]) - 5:.1f}" fill="{color}">{e}</text>')
    out += [f'<text x="{x(v):.1f}" y="{height + 54}" text-anchor="middle">{v}</text>' for v in values]
    out.append(f'<text x="{x0 + width / 2}" y="{height + 68}" text-anchor="middle">{axis}</text>')
    return "\n".join(out)


def picture(parts, path):
    body = "\n".join(chart(15 + 275 * i, *part) for i, part in enumerate(parts))
    open(path, "w").write(f'<svg xmlns="http://www.w3.org/2000/svg" width="{15 + 275 * len(parts)}" height="230" '
                          f'font-family="sans-serif" font-size="11"><rect width="100%" height="100%" fill="white"/>\n'
                          f'{body}\n</svg>\n')


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("work", metavar="WORK")
    p.add_argument("--tvmcc", default=os.path.join(HERE, "../build/release/bin/tvmcc"))
    p.add_argument("--mcpu", default="native")
    p.add_argument("--threads", type=int, default=1)
    p.add_argument("--seconds", type=float, default=0.4)
    p.add_argument("--only", nargs="*", default=[*LATENCY, "compile"], choices=[*LATENCY, "compile"])
    a = p.parse_args()
    os.makedirs(a.work, exist_ok=True)
    jobs = [(f"Latency against {LATENCY[k][0]}, {a.threads} thread{'s' if a.threads > 1 else ''}", LATENCY[k], latency_point)
            for k in LATENCY if k in a.only]
    jobs += [(f"Compile time, {k}", COMPILE[k], compile_point) for k in COMPILE if "compile" in a.only]
    parts = []
    for title, row, point in jobs:
        parts.append((title, row, {v: point(a, row[3], v) for v in row[2]}))
        table(*parts[-1])
    picture(parts, os.path.join(a.work, "growth.svg"))
    json.dump({title: points for title, _, points in parts}, open(os.path.join(a.work, "growth.json"), "w"), indent=1)


if __name__ == "__main__":
    main()
