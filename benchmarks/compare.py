#!/usr/bin/env python3
"""tvmcc against other engines on the models of models.py: batch 1, float32, side by side in one run.

    compare.py MODELS WORK [--tvmcc FILE] [--engines ..] [--models ..] [--threads 1 2] [--rounds 5]
               [--resume] [--build-only | --report] [--slow-s 20]

benchmarks/run calls this with everything installed.  For a model and a number of threads each engine
gets a process; then they take turns in chunks of 0.4 s, one at a time, so that a change of the
machine's clock or load hits all.  Who is not measured is stopped (SIGSTOP): threads that spin for more
work would take the others' cores.  A chunk's figure is the median of its runs, an engine's the median of
its chunks.  A chunk during which others used the machine is repeated, up to eight times; "*" marks
figures most of whose chunks were not quiet even so.  So is a chunk of several threads at whose start or end
the cores had no cache in common (handover.c): a virtual machine's cores are moved about by the host, which
makes any engine up to twice as slow.  An engine that has had --slow-s seconds takes no
more turns; if already its first run takes that long, that is its figure.  Outputs are compared with
unoptimised ONNX Runtime's; an engine that cannot build or run a model, or gives something else, has "-"
there, and the reason is in results.json.

Written are Markdown to standard output and WORK/results.json, and a picture, WORK/results.svg: how much
faster than the best of the others tvmcc is.  results.json is complete after each model and number of
threads: with --resume a run goes on where another ended, or adds models to it.  Artifacts are kept in
WORK, and made again when the file is gone (tvmcc's: or when tvmcc changed).
"""
import argparse
import json
import math
import os
import select
import signal
import statistics
import subprocess
import sys
import time

from engines import ARTIFACTS, ENGINES, build_runtime

HERE = os.path.dirname(os.path.abspath(__file__))
CHUNK = 0.4
TRIES = 8
TICK = os.sysconf("SC_CLK_TCK")
WRONG = 0.01  # relative error: this is not the model's output
WRONG_INT8 = 0.1  # steps that engines round differently, layer after layer


def last_json(text):
    return json.loads(text.strip().splitlines()[-1])


# ---- ahead of time -----------------------------------------------------------------------------------

def timed(command, timeout):
    """Exit status, output, CPU and wall seconds and peak RSS of a command, by the system's account of it."""
    start = time.perf_counter()
    child = subprocess.Popen(["timeout", str(math.ceil(timeout)), *command], stdout=subprocess.PIPE,
                             stderr=subprocess.STDOUT, text=True)
    text = child.stdout.read()
    _, code, used = os.wait4(child.pid, 0)
    child.returncode = code
    return code, text, {"cpu_s": used.ru_utime + used.ru_stime, "wall_s": time.perf_counter() - start,
                        "rss": used.ru_maxrss * 1024}


def command_of(a, engine, source, path):
    """What makes the artifact, and what it depends on beside the model."""
    if engine == "tvmcc":
        return [a.tvmcc, source, f"-mcpu={a.mcpu}", "-fno-cache", "-o", path], os.stat(a.tvmcc).st_mtime_ns
    return [sys.executable, HERE + "/engines.py", "build", engine, source, path], None


def build(a, engine, model):
    """Makes what the engine loads; gives {"path", "cpu_s", "wall_s", "rss", "bytes"} or {"failed"}."""
    source = os.path.join(a.models_dir, model + ".onnx")
    if engine not in ARTIFACTS:
        return {"path": source, "bytes": os.path.getsize(source)}
    path = os.path.join(a.work, model + ARTIFACTS[engine])
    stamp, (command, by) = path + ".json", command_of(a, engine, source, path)
    if os.path.exists(stamp):
        made = json.load(open(stamp))
        if made.get("by") == by and ("failed" in made or os.path.exists(path)):
            return made
    code, text, used = timed(command, a.timeout)
    if code == 124 << 8:
        made = {"failed": f"not ready after {a.timeout} s"}
    elif code:
        made = {"failed": text[-500:]}
    else:
        made = {"path": path, **used, "bytes": os.path.getsize(path), **(last_json(text) if engine != "tvmcc" else {})}
    made["by"] = by
    json.dump(made, open(stamp, "w"))
    return made


def handover_tool(a):
    path = os.path.join(a.work, "handover")
    subprocess.check_call(["cc", "-O2", "-pthread", os.path.join(HERE, "handover.c"), "-o", path])
    return path


# ---- taking turns ------------------------------------------------------------------------------------

def machine_busy():
    """CPU seconds that anybody used since the start, the host's share (steal) included."""
    fields = [int(x) for x in open("/proc/stat").readline().split()[1:9]]
    return (sum(fields) - fields[3] - fields[4]) / TICK  # all but idle and iowait


def process_busy(pid):
    fields = open(f"/proc/{pid}/stat").read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICK


class Cores:
    """Whether the cores have a cache in common just now; known only from the fastest handover seen so far."""

    def __init__(self, tool):
        self.tool, self.best = tool, 0

    def together(self, threads):
        if threads == 1:
            return True
        speed = float(subprocess.run([self.tool], capture_output=True, text=True, check=True).stdout)
        self.best = max(self.best, speed)
        return speed >= self.best / 2


class Worker:
    """An engine of engines.py in a process of its own, stopped while it is not its turn."""

    def __init__(self, a, engine, model, path, threads):
        self.limit, self.spent, self.ms, self.clean = a.slow_s, 0, [], 0
        self.cores, self.threads = a.cores, threads
        self.log = open(os.path.join(a.work, f"{model}.{engine}.log"), "w")
        self.child = subprocess.Popen([sys.executable, HERE + "/engines.py", "work", engine,
                                       os.path.join(a.models_dir, model + ".onnx"), path, str(threads)],
                                      stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.log)
        self.info = self.answer(a.timeout)
        if self.info.get("error", 0) > (WRONG_INT8 if model.endswith("_int8") else WRONG):
            self.info = {"failed": f"its outputs are wrong: {self.info['error']:.1e}"}
        if "error" in self.info:
            self.spent = self.info["first_s"]
        self.child.send_signal(signal.SIGSTOP)

    def answer(self, timeout):
        if not select.select([self.child.stdout], [], [], timeout)[0]:
            return {"failed": f"nothing after {timeout} s"}
        line = self.child.stdout.readline()
        if line:
            return json.loads(line)
        self.log.flush()
        said = open(self.log.name, errors="replace").read().strip().splitlines()
        return {"failed": said[-1][-300:] if said else "it ended"}

    def wants(self):
        return "error" in self.info and self.spent < self.limit

    def chunk(self):
        """Median of a chunk's runs, and whether nobody disturbed it."""
        together = self.cores.together(self.threads)
        start, machine, own = time.perf_counter(), machine_busy(), process_busy(self.child.pid)
        self.child.send_signal(signal.SIGCONT)
        self.child.stdin.write(f"run {CHUNK}\n".encode())
        self.child.stdin.flush()
        got = self.answer(10 * self.limit)
        self.child.send_signal(signal.SIGSTOP)
        others = machine_busy() - machine - (process_busy(self.child.pid) - own)
        took = time.perf_counter() - start
        if "failed" in got:
            self.info = got
            return None, True
        self.info.update(rss=got["rss"], rss_now=got["rss_now"])
        self.spent += took
        quiet = others <= 0.06 * took + 1 / TICK
        return statistics.median(got["ms"]), quiet and together and self.cores.together(self.threads)

    def turn(self, counts):
        """A chunk, repeated while somebody else uses the machine."""
        for _ in range(TRIES):
            figure, quiet = self.chunk()
            if quiet or not counts or not self.wants():
                break
        if figure and (counts or self.info["first_s"] > CHUNK):  # a slow one needs no warming up
            self.ms.append(figure)
            self.clean += quiet

    def result(self):
        if not self.ms:  # as slow as that: its first run
            self.ms = [self.info["first_s"] * 1e3]
        return {"ms": statistics.median(self.ms), "min": min(self.ms), "chunks": len(self.ms), "clean": self.clean, **self.info}

    def close(self):
        self.child.kill()
        self.child.wait()


def measure(a, model, built, threads):
    """({engine: figures}, {engine: why not})."""
    workers, failed = {}, {}
    for engine, made in built.items():
        if "path" in made:
            workers[engine] = Worker(a, engine, model, made["path"], threads)
        else:
            failed[engine] = made["failed"]
    for i in range(a.rounds + 1):  # the first warms up
        for worker in workers.values():
            if worker.wants():
                worker.turn(i > 0)
    for engine, worker in workers.items():
        worker.close()
        if "error" not in worker.info:
            failed[engine] = worker.info["failed"]
            print(f"{model}: {engine} cannot run it: {failed[engine]}", file=sys.stderr)
    return {e: w.result() for e, w in workers.items() if e not in failed}, failed


# ---- what comes out ----------------------------------------------------------------------------------

def best_peer(row):
    peers = {e: v["ms"] for e, v in row.items() if e != "tvmcc"}
    return min(peers, key=peers.get) if peers and "tvmcc" in row else None


def ratio(row):
    best = best_peer(row)
    return row[best]["ms"] / row["tvmcc"]["ms"] if best else None


def number(x):
    return f"{x:.3f}" if x < 1 else f"{x:.2f}" if x < 100 else f"{x:.0f}"


def latency(v):
    return number(v["ms"]) + ("" if v["clean"] * 2 >= v["chunks"] else "*")


def table(title, engines, rows, cell):
    print(f"\n### {title}\n\n| model | {' | '.join(engines)} |\n|---|{'---:|' * len(engines)}")
    for name, row in rows.items():
        print(f"| {name} | {' | '.join(cell(name, row, e) for e in engines)} |")


def share(cell):
    """`cell` where the engine has a figure, else "-"."""
    return lambda m, r, e: cell(r[e]) if e in r and cell(r[e]) is not None else "-"


def mib(key):
    return share(lambda v: number(v[key] / (1 << 20)) if key in v else None)


def seconds(key):
    return share(lambda v: number(v[key]) if key in v else None)


def report_threads(a, result, models, engines, t):
    rows, threads = {m: result[m][str(t)] for m in models}, f"{t} thread{'s' if t > 1 else ''}"
    macs, peak = json.load(open(os.path.join(a.models_dir, "macs.json"))), result.get("peak", {}).get(str(t))
    table(f"Latency, ms, {threads}", ["ratio", "best peer"] + engines, rows,
          lambda m, r, e: (number(ratio(r)) if ratio(r) else "-") if e == "ratio" else best_peer(r) or "-"
          if e == "best peer" else latency(r[e]) if e in r else "-")
    ratios = [ratio(r) for r in rows.values() if ratio(r)]
    if ratios:
        print(f"\nGeometric mean of the ratios to the best peer, {threads}: "
              f"{statistics.geometric_mean(ratios):.3f}; least {min(ratios):.3f}")
    if peak:
        table(f"Share of the FMA peak ({peak:.0f} GFLOP/s), %, {threads}; products of the direct algorithm", engines,
              rows, lambda m, r, e: f"{macs[m]['macs'] * 2e-4 / r[e]['ms'] / peak:.0f}" if e in r else "-")


def report_int8(result, engines, t):
    """How much faster the models of quantize.py are than the same engine's float32."""
    pairs = {m: (result[m][str(t)], result[m.removesuffix("_int8")][str(t)]) for m in result if m.endswith("_int8")
             and str(t) in result[m] and str(t) in result.get(m.removesuffix("_int8"), {})}
    if pairs:
        table(f"Times as fast as the same engine's float32, {t} thread{'s' if t > 1 else ''}", engines, pairs,
              lambda m, r, e: number(r[1][e]["ms"] / r[0][e]["ms"]) if e in r[0] and e in r[1] else "-")


def report(a, result):
    engines = ["tvmcc"] + a.engines
    for t in a.threads:
        models = [m for m in result if m != "peak" and str(t) in result[m]]
        if models:
            report_threads(a, result, models, engines, t)
        report_int8(result, engines, t)
    rows = {m: r[str(t)] for m, r in result.items() for t in reversed(a.threads) if m != "peak" and str(t) in r}
    table("Peak RSS, loading included, MiB", engines + ["tvmcc / ort"], rows, lambda m, r, e: mib("rss")(m, r, e)
          if e in engines else f"{r['tvmcc']['rss'] / r['ort']['rss']:.2f}" if "ort" in r and "tvmcc" in r else "-")
    table("RSS after the last run, MiB", engines, rows, mib("rss_now"))
    table("Loading, s", engines, rows, seconds("load_s"))
    table("First run, s", engines, rows, seconds("first_s"))
    table("Libraries that the engine brought into the process, MiB", engines, rows, mib("runtime_bytes"))
    table("Largest error, relative to the largest value", engines, rows, share(lambda v: f"{v['error']:.0e}"))
    made = {m: r["built"] for m, r in result.items() if m != "peak"}
    aot = [e for e in engines if e in ARTIFACTS]
    table("Artifact, MiB", engines, made, mib("bytes"))
    table("Ahead of time: CPU s", aot, made, seconds("cpu_s"))
    table("Ahead of time: s", aot, made, seconds("wall_s"))
    table("Ahead of time: peak RSS, MiB", aot, made, mib("rss"))


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


def arguments():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("models_dir", metavar="MODELS")
    p.add_argument("work", metavar="WORK")
    p.add_argument("--tvmcc", default=os.path.join(HERE, "../build/release/bin/tvmcc"))
    p.add_argument("--mcpu", default="native")
    p.add_argument("--engines", nargs="*", default=ENGINES, choices=ENGINES)
    p.add_argument("--models", nargs="*", help="all unless given")
    p.add_argument("--threads", nargs="+", type=int, default=[1, 2])
    p.add_argument("--rounds", type=int, default=5)
    p.add_argument("--slow-s", type=float, default=20, help="seconds that an engine may have for a row of a table")
    p.add_argument("--timeout", type=float, default=600, help="seconds for making an artifact, and for loading it")
    p.add_argument("--resume", action="store_true", help="keep what WORK/results.json has, measure the rest")
    p.add_argument("--build-only", action="store_true", help="make the artifacts, measure nothing")
    p.add_argument("--report", action="store_true", help="print what WORK/results.json has, measure nothing")
    return p.parse_args()


def tvm_cpu(a):
    """The processor's name as LLVM knows it: TVM does not know `native`."""
    r = subprocess.run([a.tvmcc, "-###", "x.onnx", f"-mcpu={a.mcpu}", "-c"], capture_output=True, text=True)
    named = [w.removeprefix("-mcpu=") for w in r.stderr.split() if w.startswith("-mcpu=")]
    os.environ.setdefault("TVM_CPU", named[-1] if named else "x86-64-v3")


def measured(a, result, model, threads):
    """All engines that were asked for are in that row, or cannot be."""
    old = result.get(model, {})
    return a.resume and str(threads) in old and all(
        e in old[str(threads)] or e in old.get("failed", {}).get(str(threads), {}) for e in ["tvmcc"] + a.engines)


def measure_model(a, result, model):
    threads = [t for t in a.threads if not measured(a, result, model, t)]
    if not threads:
        return
    built = {e: build(a, e, model) for e in ["tvmcc"] + a.engines}
    for e, made in built.items():
        if "failed" in made:
            print(f"{model}: {e} cannot build it: {made['failed'].strip().splitlines()[-1:]}", file=sys.stderr)
    if a.build_only:
        return
    entry = result.setdefault(model, {"failed": {}})
    entry["built"] = built
    for t in threads:
        row, entry["failed"][str(t)] = measure(a, model, built, t)
        entry[str(t)] = row
        print(f"{model}, {t}: " + ", ".join(f"{e} {number(v['ms'])}" for e, v in row.items()), file=sys.stderr, flush=True)
        save(a, result)


def save(a, result):
    path = os.path.join(a.work, "results.json")
    json.dump(result, open(path + ".new", "w"), indent=1)
    os.replace(path + ".new", path)


def main():
    a = arguments()
    os.makedirs(a.work, exist_ok=True)
    macs = json.load(open(os.path.join(a.models_dir, "macs.json")))
    split_values(a.models_dir, macs)
    old = os.path.join(a.work, "results.json")
    result = json.load(open(old)) if (a.resume or a.report) and os.path.exists(old) else {}
    if not a.report:
        build_runtime(a.work)
        a.cores = Cores(handover_tool(a))
        tvm_cpu(a)
        if not a.build_only and len(result.get("peak", {})) < len(a.threads):
            result["peak"] = measure_peak(a)
        for model in a.models or sorted(macs, key=lambda m: macs[m]["macs"]):
            measure_model(a, result, model)
    if not a.build_only:
        order = sorted((m for m in result if m in macs), key=lambda m: macs[m]["macs"])
        result = {"peak": result.get("peak", {}), **{m: result[m] for m in order}}
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
