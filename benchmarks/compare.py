#!/usr/bin/env python3
"""tvmcc against other engines on the models of models.py: batch 1, float32, side by side in one run.

    compare.py MODELS WORK [--tvmcc FILE] [--engines ..] [--models ..] [--threads 1 2] [--rounds 5]

benchmarks/run calls this with everything installed.  For a model and a number of threads each engine
gets a process; then they take turns in chunks of 0.4 s, one at a time, so that a change of the
machine's clock or load hits all.  A chunk's figure is the median of its runs, an engine's the median of
its chunks.  Outputs are compared with unoptimised ONNX Runtime's.  Written are Markdown to standard
output and WORK/results.json, and a picture, WORK/results.svg: how much faster than the best of the
others tvmcc is.
"""
import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import time

from engines import ARTIFACTS, ENGINES

HERE = os.path.dirname(os.path.abspath(__file__))
CHUNK = 0.4
TRIES = 8
TICK = os.sysconf("SC_CLK_TCK")


def last_json(text):
    return json.loads(text.strip().splitlines()[-1])


# ---- ahead of time -----------------------------------------------------------------------------------

def timed(command):
    """CPU seconds and peak RSS of a command, from the system's own account of it."""
    child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    text = child.stdout.read()
    _, code, used = os.wait4(child.pid, 0)
    child.returncode = code
    return code, text, used.ru_utime + used.ru_stime, used.ru_maxrss * 1024


def build(a, engine, model):
    """Makes what the engine loads; gives {"path", "cpu_s", "rss", "bytes"} or {"failed"}."""
    source = os.path.join(a.models_dir, model + ".onnx")
    if engine == "tvmcc":
        path = os.path.join(a.work, model + ".so")
        code, text, cpu, rss = timed([a.tvmcc, source, f"-mcpu={a.mcpu}", "-fno-cache", "-o", path])
        return {"failed": text} if code else {"path": path, "cpu_s": cpu, "rss": rss, "bytes": os.path.getsize(path)}
    if engine not in ARTIFACTS:
        return {"path": source}
    path = os.path.join(a.work, model + ARTIFACTS[engine])
    stamp = path + ".json"
    if os.path.exists(stamp):
        return json.load(open(stamp))
    try:
        r = subprocess.run([sys.executable, HERE + "/engines.py", "build", engine, source, path], capture_output=True,
                           text=True, timeout=a.timeout)
        made = {"path": path, **last_json(r.stdout)} if r.returncode == 0 else {"failed": (r.stderr or r.stdout)[-500:]}
    except subprocess.TimeoutExpired:
        made = {"failed": f"not ready after {a.timeout} s"}
    json.dump(made, open(stamp, "w"))
    return made


# ---- taking turns ------------------------------------------------------------------------------------

def machine_busy():
    """CPU seconds that anybody used since the start, the host's share (steal) included."""
    fields = [int(x) for x in open("/proc/stat").readline().split()[1:9]]
    return (sum(fields) - fields[3] - fields[4]) / TICK  # all but idle and iowait


def process_busy(pid):
    fields = open(f"/proc/{pid}/stat").read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICK


class Peer:
    """An engine of engines.py in a process of its own."""

    def __init__(self, a, engine, model, path, threads):
        self.log = open(os.path.join(a.work, f"{model}.{engine}.log"), "w")
        self.child = subprocess.Popen([sys.executable, HERE + "/engines.py", "work", engine,
                                       os.path.join(a.models_dir, model + ".onnx"), path, str(threads)], text=True,
                                      stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.log)
        self.info = json.loads(self.child.stdout.readline() or "{}")

    def chunk(self):
        self.child.stdin.write(f"run {CHUNK}\n")
        self.child.stdin.flush()
        got = json.loads(self.child.stdout.readline())
        self.info["rss"] = got["rss"]
        return statistics.median(got["ms"])

    def busy(self):
        return process_busy(self.child.pid)

    def close(self):
        self.child.stdin.close()
        self.child.wait()


class Ours:
    """`tvmcc bench`, a process for each chunk."""

    def __init__(self, a, engine, model, path, threads):
        stem = os.path.join(a.models_dir, model)
        start = time.perf_counter()
        r = subprocess.run([a.tvmcc, "run", path, "--inputs", stem + ".in.npz", "--expect", stem + ".out.npz",
                            "--rtol", "1", "--json", "--threads", str(threads)], capture_output=True, text=True)
        first = time.perf_counter() - start
        self.info = {"failed": r.stderr[-300:]} if r.returncode else {
            "error": max(o["max_error"] / (o["max_expected"] or 1) for o in last_json(r.stdout)["compared"]), "first_s": first}
        self.command = [a.tvmcc, "bench", path, "--threads", str(threads), "--json", "--repeat"]
        self.repeat = 1

    def chunk(self):
        r = subprocess.run(self.command + [str(self.repeat)], capture_output=True, text=True, check=True)
        got = last_json(r.stdout)
        self.repeat = max(1, min(2000, int(CHUNK * 1e3 / got["ms"]["median"])))
        self.info.update(rss=got["peak_rss_kib"] * 1024, code=got["code_bytes"], arena=got["arena_bytes"])
        return got["ms"]["median"]

    def busy(self):
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        return used.ru_utime + used.ru_stime

    def close(self):
        pass


def clean_chunk(worker):
    """A chunk that nobody disturbed, or the last of several: its figure, and whether it is clean."""
    for _ in range(TRIES):
        start, machine, own = time.perf_counter(), machine_busy(), worker.busy()
        figure = worker.chunk()
        others = machine_busy() - machine - (worker.busy() - own)
        if others <= 0.06 * (time.perf_counter() - start) + 1 / TICK:
            return figure, True
    return figure, False


def measure(a, model, built, threads):
    turn, ms, clean = {}, {}, {}
    for engine, made in built.items():
        if "path" not in made:
            continue
        worker = (Ours if engine == "tvmcc" else Peer)(a, engine, model, made["path"], threads)
        if "error" in worker.info:
            turn[engine], ms[engine], clean[engine] = worker, [], 0
        else:
            print(f"{model}: {engine} cannot run it: {worker.info}", file=sys.stderr)
    for i in range(a.rounds + 1):  # the first warms up
        for engine, worker in turn.items():
            if not i:
                worker.chunk()
                continue
            figure, quiet = clean_chunk(worker)
            ms[engine].append(figure)
            clean[engine] += quiet
    for worker in turn.values():
        worker.close()
    return {e: {"ms": statistics.median(ms[e]), "min": min(ms[e]), "clean": clean[e], **turn[e].info} for e in turn}


# ---- what comes out ----------------------------------------------------------------------------------

def best_peer(row):
    peers = {e: v["ms"] for e, v in row.items() if e != "tvmcc"}
    return min(peers, key=peers.get) if peers and "tvmcc" in row else None


def ratio(row):
    best = best_peer(row)
    return row[best]["ms"] / row["tvmcc"]["ms"] if best else None


def number(x):
    return f"{x:.3f}" if x < 1 else f"{x:.2f}" if x < 100 else f"{x:.0f}"


def latency(a, v):
    return number(v["ms"]) + ("" if v["clean"] * 2 >= a.rounds else "*")


def table(title, engines, rows, cell):
    print(f"\n### {title}\n\n| model | {' | '.join(engines)} |\n|---|{'---:|' * len(engines)}")
    for name, row in rows.items():
        print(f"| {name} | {' | '.join(cell(name, row, e) for e in engines)} |")


def report(a, result):
    macs = json.load(open(os.path.join(a.models_dir, "macs.json")))
    engines = ["tvmcc"] + a.engines
    for t in a.threads:
        rows = {m: result[m][str(t)] for m in result if str(t) in result[m]}
        peak = result["peak"][str(t)] if "peak" in result else None
        rows = {m: r for m, r in rows.items() if m != "peak"}
        threads = f"{t} thread{'s' if t > 1 else ''}"
        table(f"Latency, ms, {threads}", ["ratio", "best peer"] + engines, rows,
              lambda m, r, e: (number(ratio(r)) if ratio(r) else "-") if e == "ratio" else best_peer(r) or "-"
              if e == "best peer" else latency(a, r[e]) if e in r else "-")
        ratios = [ratio(r) for r in rows.values() if ratio(r)]
        if ratios:
            print(f"\nGeometric mean of the ratios to the best peer, {threads}: "
                  f"{statistics.geometric_mean(ratios):.2f}; least {min(ratios):.2f}")
        if peak:
            table(f"Share of the FMA peak ({peak:.0f} GFLOP/s), %, {threads}; products of the direct algorithm", engines,
                  rows, lambda m, r, e: f"{macs[m]['macs'] * 2e-4 / r[e]['ms'] / peak:.0f}" if e in r else "-")
    mib = 1 << 20
    rows = {m: r[str(a.threads[0])] for m, r in result.items() if m != "peak"}
    table("Peak RSS while running, MiB", engines, rows, lambda m, r, e: f"{r[e]['rss'] / mib:.0f}" if e in r else "-")
    table("Largest error, relative to the largest value", engines, rows,
          lambda m, r, e: f"{r[e]['error']:.0e}" if e in r else "-")
    made = {m: r["built"] for m, r in result.items() if m != "peak"}
    aot = [e for e in engines if e == "tvmcc" or e in ARTIFACTS]
    table("Ahead of time: CPU seconds", aot, made, lambda m, r, e: f"{r[e]['cpu_s']:.1f}" if "cpu_s" in r.get(e, {}) else "-")
    table("Ahead of time: size, MiB", aot, made, lambda m, r, e: f"{r[e]['bytes'] / mib:.1f}" if "bytes" in r.get(e, {}) else "-")


def picture(a, result, path):
    """Bars of the ratio to the best peer, a row for each model and thread count."""
    bars = [(m, t, ratio(result[m][str(t)])) for m in result if m != "peak" for t in a.threads
            if str(t) in result[m] and ratio(result[m][str(t)])]
    scale, left, step = 180, 170, 20
    width, height = left + int(scale * max([r for _, _, r in bars] + [1.3])) + 60, 50 + step * len(bars)
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" font-family="sans-serif" '
           f'font-size="12"><rect width="100%" height="100%" fill="white"/>',
           '<text x="8" y="18" font-size="14">tvmcc: times as fast as the best of the others</text>']
    for i, (m, t, r) in enumerate(bars):
        y = 32 + i * step
        color = "#2a7f62" if r >= 1 else "#b5523b"
        out.append(f'<text x="{left - 6}" y="{y + 12}" text-anchor="end">{m}, {t} thread{"s" if t > 1 else ""}</text>'
                   f'<rect x="{left}" y="{y}" width="{scale * r:.1f}" height="15" fill="{color}"/>'
                   f'<text x="{left + scale * r + 4:.1f}" y="{y + 12}">{r:.2f}</text>')
    out.append(f'<line x1="{left + scale}" y1="26" x2="{left + scale}" y2="{height - 8}" stroke="#333" '
               f'stroke-dasharray="3 3"/></svg>')
    open(path, "w").write("\n".join(out) + "\n")


def measure_peak(a):
    """GFLOP/s of multiply-adds in registers, by tvmcc profile."""
    peak = {}
    model = os.path.join(a.models_dir, "mlp.onnx")
    for t in a.threads:
        r = subprocess.run([a.tvmcc, "profile", model, "--json", "--threads", str(t)], capture_output=True, text=True)
        if r.returncode == 0:
            peak[str(t)] = last_json(r.stdout)["peak_gflops"]
    return peak


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("models_dir", metavar="MODELS")
    p.add_argument("work", metavar="WORK")
    p.add_argument("--tvmcc", default=os.path.join(HERE, "../build/release/bin/tvmcc"))
    p.add_argument("--mcpu", default="native")
    p.add_argument("--engines", nargs="*", default=ENGINES, choices=ENGINES)
    p.add_argument("--models", nargs="*", help="all unless given")
    p.add_argument("--threads", nargs="+", type=int, default=[1, 2])
    p.add_argument("--rounds", type=int, default=5)
    p.add_argument("--timeout", type=float, default=600, help="seconds for making an artifact")
    a = p.parse_args()
    os.makedirs(a.work, exist_ok=True)
    macs = json.load(open(os.path.join(a.models_dir, "macs.json")))
    split_values(a.models_dir, macs)
    result = {}
    peak = measure_peak(a)
    if len(peak) == len(a.threads):
        result["peak"] = peak
    for model in a.models or sorted(macs, key=lambda m: macs[m]["macs"]):
        built = {e: build(a, e, model) for e in ["tvmcc"] + a.engines}
        for e, made in built.items():
            if "failed" in made:
                print(f"{model}: {e} cannot build it: {made['failed'].strip().splitlines()[-1:]}", file=sys.stderr)
        result[model] = {"built": built}
        for t in a.threads:
            row = result[model][str(t)] = measure(a, model, built, t)
            print(f"{model}, {t}: " + ", ".join(f"{e} {number(v['ms'])}" for e, v in row.items()), file=sys.stderr, flush=True)
        json.dump(result, open(os.path.join(a.work, "results.json"), "w"), indent=1)
    report(a, result)
    picture(a, result, os.path.join(a.work, "results.svg"))


def split_values(folder, names):
    """NAME.npz as two files, for tvmcc run: inputs and expected outputs under their own names."""
    import numpy as np
    for name in names:
        stem = os.path.join(folder, name)
        if not os.path.exists(stem + ".out.npz"):
            values = np.load(stem + ".npz")
            np.savez(stem + ".in.npz", **{k[3:]: values[k] for k in values if k.startswith("in.")})
            np.savez(stem + ".out.npz", **{k[4:]: values[k] for k in values if k.startswith("out.")})


if __name__ == "__main__":
    main()
