#!/usr/bin/env python3
"""tvmcc against ONNX Runtime, OpenVINO and MNN on operators and shapes drawn at random (sweep_cases.py).

    sweep.py --seed S --count N [--threads T] [--mcpu CPU] [--work DIR] [--than FILE] [--kinds WORD..] [--resume]
    sweep.py --seed S --replay K..      cases of a seed again, with the profile and the schedule of each
    sweep.py --work DIR --report        the tables of what DIR has

All engines get the same ONNX file, each in one process of its own that stays for many cases, and take turns of
some milliseconds; with more than one thread who is not measured is stopped (SIGSTOP).  A figure is the least time of
all turns: the machine's other users only ever add.  On a machine that others use all the time --processor-time counts
what the process took, with one thread; a figure is then the median of the turns' medians, as the kernel may well take
off too much for what a virtual machine's host kept to itself.  Cases are compiled some at a time before they are measured,
so that compiling does not disturb.  Results are compared with ONNX Runtime's (or with those of the first engine that
runs the case); an engine that gives something else, or nothing, does not count, and says why in the results;
where tvmcc does, the case counts as ratio 0.  The ratio is the time of the best of the others by ours.

Written are WORK/results.json, worst first, the tables on standard output, and WORK/results.svg: the ratios by
class.  --than names another tvmcc, which takes turns with the others, to tell before from after.  For
-mcpu=haswell the engines are kept from AVX-512 by avx2.py, which answers their `cpuid`; then
another ONNX Runtime says what is right, as products of bytes saturate in engines with AVX2.
"""
import argparse
import concurrent.futures
import gc
import json
import math
import os
import re
import select
import signal
import statistics
import subprocess
import sys
import time

import numpy as np

import avx2
import engines

HERE = os.path.dirname(os.path.abspath(__file__))
PEERS = ["ort", "openvino", "mnn"]
WANT = "want"  # the process of ONNX Runtime, as it is, whose results are right where the engines are kept from AVX-512
TOLERANCE, LOOSE = 1e-3, 0.06  # of the largest value; quantized: some steps, which engines round otherwise
AT_A_TIME = 16  # cases that are compiled before they are measured
RENEW = 64  # cases after which an engine gets a new process


# ---- an engine's process ------------------------------------------------------------------------------------

class Loaded:
    run = None


def prepare(engine, job):
    """The artifact that the engine loads."""
    if engine == "mnn":
        path = job["source"] + ".mnn"
        engines.build_mnn(job["source"], path)
        if not os.path.exists(path):
            raise RuntimeError("no model")
        return path
    return job.get(engine, job["source"])


def difference(have, want):
    """Largest error, relative to the largest value."""
    worst = 0.0
    for h, w in zip(have, want):
        h, w = np.asarray(h).astype(np.float64).ravel(), w.astype(np.float64).ravel()
        if h.size != w.size or not np.array_equal(np.isfinite(h), np.isfinite(w)):
            return math.inf
        fine = np.isfinite(w)
        if fine.any():
            worst = max(worst, float(abs(h - w)[fine].max() / max(1e-30, abs(w[fine]).max())))
    return worst


def load(engine, job):
    feeds = dict(np.load(job["source"] + ".npz"))
    loader = getattr(engines, "load_" + ("tvmcc" if engine == "than" else engine))
    Loaded.run = loader(prepare(engine, job), feeds, job["outs"], job["threads"])
    have = Loaded.run()
    if len(have) != len(job["outs"]):
        raise RuntimeError("not all outputs")
    path = job["source"] + ".want.npz"
    if not os.path.exists(path):
        np.savez(path, *[np.asarray(h) for h in have])
        return {"error": 0.0}
    with np.load(path) as want:
        return {"error": difference(have, [want[k] for k in want])}


def turn(run, seconds, clock):
    """Microseconds of a turn: the least of its runs, of processor time the median."""
    took, end = [], time.perf_counter() + seconds
    while not took or time.perf_counter() < end:
        start = clock()
        run()
        took.append((clock() - start) * 1e6)
    return statistics.median(took) if clock == time.process_time else min(took)


def serve(engine):
    """Obeys lines of JSON: {"load": job}, {"run": seconds, "clock": ..}, {"drop": 1}."""
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # engines chatter
    for line in sys.stdin:
        order = json.loads(line)
        try:
            if "load" in order:
                answer = load(engine, order["load"])
            elif "run" in order:
                answer = {"us": turn(Loaded.run, order["run"], getattr(time, order["clock"]))}
            else:
                Loaded.run, answer = None, {}
                gc.collect()
        except Exception as e:  # whatever an engine throws, the case is to go on with the others
            answer = {"failed": f"{type(e).__name__}: {e}"[:300]}
        print(json.dumps(answer), file=out, flush=True)


class Worker:
    def __init__(self, a, engine, hidden=None):
        self.a, self.engine, self.child, self.hidden = a, engine, None, hidden or {}

    def start(self):
        env = {**os.environ, **self.hidden}
        # In the work's folder: MNN's converter leaves a file where it runs.
        self.child = subprocess.Popen([sys.executable, os.path.abspath(__file__), "--serve", self.engine], cwd=self.a.work, env=env,
                                      stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)

    def tell(self, order, timeout):
        if not self.child:
            self.start()
        if self.a.threads > 1:
            self.child.send_signal(signal.SIGCONT)
        try:
            self.child.stdin.write(json.dumps(order) + "\n")
            self.child.stdin.flush()
            ready = select.select([self.child.stdout], [], [], timeout)[0]
            line = self.child.stdout.readline() if ready else ""
        except BrokenPipeError:
            ready, line = True, ""
        if not line:
            self.close()
            return {"failed": "its process ended" if ready else f"nothing after {timeout} s"}
        if self.a.threads > 1:
            self.child.send_signal(signal.SIGSTOP)
        return json.loads(line)

    def close(self):
        if self.child:
            self.child.kill()
            self.child.wait()
            self.child = None


# ---- a case ------------------------------------------------------------------------------------------------

def compile_case(a, case):
    """Writes and compiles it; the job for the engines."""
    import sweep_cases
    case = sweep_cases.draw(a.seed, case)
    source = os.path.join(a.work, f"case{case.k}.onnx")
    with open(source, "wb") as out:
        out.write(case.model)
    np.savez(source + ".npz", **case.feeds)
    if os.path.exists(source + ".want.npz"):
        os.remove(source + ".want.npz")  # of a run that was ended, or replayed
    row = {"case": case.k, "class": case.kind, "text": case.text, "neighbours": case.neighbours, "us": {}, "median": {}, "error": {}, "failed": {}}
    job = {"source": source, "outs": case.outs, "threads": a.threads}
    for name, tool in a.tools.items():
        start = time.perf_counter()
        try:
            job[name] = compiled(a, tool, source, name)
        except RuntimeError as e:
            row["failed"][name] = str(e)
        row.setdefault("compile_s", round(time.perf_counter() - start, 3))
    return case, row, job


def compiled(a, tool, source, tag):
    path = os.path.join(a.work, tag, os.path.basename(source).removesuffix(".onnx") + ".so")
    os.makedirs(os.path.dirname(path), exist_ok=True)
    r = subprocess.run([tool, source, "-mcpu=" + a.mcpu, "-fno-cache", "-o", path], stderr=subprocess.PIPE, text=True)
    if r.returncode:
        raise RuntimeError((r.stderr.strip() or "status " + str(r.returncode)).splitlines()[0])
    return path


def measure(a, workers, case, row, job):
    """Adds microseconds of each engine to the row."""
    running, times = [], {}
    if WANT in workers:
        workers[WANT].tell({"load": job}, 120)
        workers[WANT].tell({"drop": 1}, 60)
    for engine in ["ort", *a.tools, *[p for p in PEERS if p != "ort"]]:
        if engine in row["failed"] or engine not in workers:
            continue
        got = workers[engine].tell({"load": job}, 120)
        if "failed" not in got and got["error"] > (LOOSE if case.loose else TOLERANCE):
            got = {"failed": f"its result is wrong: {got['error']:.1e}"}
        if "failed" in got:
            row["failed"][engine] = got["failed"]
        else:
            row["error"][engine] = got["error"]
            running.append(engine)
    for i in range(a.turns + 1):  # the first warms up
        for engine in list(running):
            got = workers[engine].tell({"run": 0.002 if i == 0 else a.turn_s, "clock": a.clock}, 120)
            if "failed" in got:
                row["failed"][engine] = got["failed"]
                running.remove(engine)
            elif i:
                times.setdefault(engine, []).append(got["us"])
    for engine in running:
        workers[engine].tell({"drop": 1}, 60)
        best, usual = min(times[engine]), statistics.median(times[engine])
        row["us"][engine] = round(usual if a.clock == "process_time" else best, 2)
        row["median"][engine] = round(usual, 2)
    peers, own = {e: v for e, v in row["us"].items() if e in PEERS}, row["us"].get("tvmcc")
    if peers:
        row["best"] = min(peers, key=peers.get)
        row["ratio"] = round(peers[row["best"]] / own, 4) if own else 0.0
    if own and "than" in row["us"]:
        row["than"] = round(row["us"]["than"] / own, 4)


def remove(a, job):
    for path in (job["source"], *[job["source"] + s for s in (".npz", ".want.npz", ".mnn")], *[job[t] for t in a.tools if t in job]):
        if os.path.exists(path):
            os.remove(path)


def wanted(a, k):
    import sweep_cases  # not in the engines' processes
    return not a.kinds or any(w in sweep_cases.draw(a.seed, k).kind for w in a.kinds)


def sweep(a, rows):
    ready = {r["case"] for r in rows}
    left = [k for k in (a.replay or range(a.first, a.first + a.count)) if k not in ready and wanted(a, k)]
    workers = {**{e: Worker(a, e) for e in a.tools}, **{e: Worker(a, e, a.hidden) for e in a.engines}}
    if a.hidden:
        workers[WANT] = Worker(a, "ort")
    with concurrent.futures.ThreadPoolExecutor(a.jobs) as pool:
        for i in range(0, len(left), AT_A_TIME):
            for case, row, job in list(pool.map(lambda k: compile_case(a, k), left[i:i + AT_A_TIME])):
                measure(a, workers, case, row, job)
                rows.append(row)
                print(line(row), file=sys.stderr, flush=True)
                if a.replay:
                    show(a, job)
                else:
                    remove(a, job)
                if len(rows) % RENEW == 0:
                    for worker in workers.values():
                        worker.close()
            if not a.replay:
                save(a, rows)
    for worker in workers.values():
        worker.close()


def show(a, job):
    """Profile and schedule."""
    inputs = job["source"].removesuffix(".onnx") + ".in.npz"
    os.replace(job["source"] + ".npz", inputs)
    for command in (["profile", job["source"], "-mcpu=" + a.mcpu, "--inputs=" + inputs, f"--threads={a.threads}"],
                    [job["source"], "-mcpu=" + a.mcpu, "--emit=sched", "-o", "-"]):
        print("$ tvmcc " + " ".join(command), flush=True)
        subprocess.run([a.tvmcc, *command], check=False)


# ---- what comes out ----------------------------------------------------------------------------------------

def line(row):
    us = ", ".join(f"{e} {v:.1f}" for e, v in row["us"].items())
    bad = "".join(f"; {e}: {v}" for e, v in row["failed"].items() if e == "tvmcc" or "wrong" in v)
    return (f"{row['case']:5} {row.get('ratio', math.nan):5.2f} " + (f"({row['than']:.2f}) " if "than" in row else "") +
            f"{row['class']}{' *' if row['neighbours'] else ''}: {row['text']}: {us}{bad}")


def save(a, rows):
    rows.sort(key=lambda r: (r.get("ratio", math.inf), r["case"]))
    path = os.path.join(a.work, "results.json")
    with open(path + ".new", "w", encoding="utf-8") as out:
        head = {"seed": a.seed, "threads": a.threads, "mcpu": a.mcpu, "engines": a.engines, "clock": a.clock}
        json.dump({**head, "cases": rows}, out, indent=1)
    os.replace(path + ".new", path)


def percentile(values, p):
    return float(np.percentile(values, p)) if values else math.nan


def mean(values):
    return statistics.geometric_mean([max(v, 0.01) for v in values]) if values else math.nan


def figures(rows, by=lambda r: r.get("ratio")):
    v = [by(r) for r in rows if by(r) is not None]
    return (f"{len(v)} | {mean(v):.2f} | {percentile(v, 5):.2f} | {percentile(v, 50):.2f} | {min(v, default=math.nan):.2f} | "
            f"{sum(x < 0.95 for x in v)} | {sum(x < 0.8 for x in v)}")


def by_class(rows):
    groups = {}
    for r in rows:
        groups.setdefault(r["class"], []).append(r)
    return dict(sorted(groups.items()))


def report(a, rows):
    head = "cases | mean | 5 % | 50 % | least | < 0.95 | < 0.8 |"
    print(f"| class | {head}\n|---|" + "---:|" * 7)
    for kind, some in by_class(rows).items():
        print(f"| {kind} | {figures(some)} |")
    for name, some in (("alone", [r for r in rows if not r["neighbours"]]), ("with neighbours", [r for r in rows if r["neighbours"]]),
                       ("all", rows)):
        print(f"| **{name}** | {figures(some)} |")
    for engine in a.engines:
        against = lambda r, e=engine: r["us"][e] / r["us"]["tvmcc"] if {e, "tvmcc"} <= r["us"].keys() else None
        print(f"| against {engine} | {figures(rows, against)} |")
    if any("than" in r for r in rows):
        print(f"| the other tvmcc's time | {figures(rows, lambda r: r.get('than'))} |")
    print("\nworst first, microseconds; * among neighbours\n")
    for r in sorted(rows, key=lambda r: r.get("ratio", math.inf))[:a.worst]:
        print(line(r))


def picture(a, rows):
    """A row for each class, a dot for each case; logarithmic."""
    groups, left, step, scale, low, high = by_class(rows), 150, 22, 170, 0.4, 8
    at = lambda r: left + scale * math.log(min(max(r, low), high) / low)
    width, height = at(high) + 30, 66 + step * len(groups)
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height}" font-family="sans-serif" font-size="12">'
           '<rect width="100%" height="100%" fill="white"/>',
           f'<text x="8" y="18" font-size="14">tvmcc: times as fast as the best of the others, {len(rows)} cases, '
           f'{a.threads} thread{"s" if a.threads > 1 else ""}, {a.mcpu}</text>']
    for r in (0.5, 0.8, 1, 1.25, 2, 4):
        dash = "" if r == 1 else ' stroke-dasharray="2 4"'
        out.append(f'<line x1="{at(r):.1f}" y1="44" x2="{at(r):.1f}" y2="{height - 10}" stroke="#999"{dash}/>'
                   f'<text x="{at(r):.1f}" y="40" text-anchor="middle" fill="#555">{r}</text>')
    for i, (kind, some) in enumerate(groups.items()):
        y, v = 60 + i * step, [r["ratio"] for r in some if "ratio" in r]
        out.append(f'<text x="{left - 8}" y="{y + 4}" text-anchor="end">{kind}</text>')
        out += [f'<circle cx="{at(r):.1f}" cy="{y}" r="3.5" fill="{"#2a7f62" if r >= 0.95 else "#b5523b"}" fill-opacity="0.55"/>' for r in v]
        if v:
            out.append(f'<line x1="{at(mean(v)):.1f}" y1="{y - 8}" x2="{at(mean(v)):.1f}" y2="{y + 8}" stroke="#111" stroke-width="2"/>')
    with open(os.path.join(a.work, "results.svg"), "w", encoding="utf-8") as f:
        f.write("\n".join(out) + "\n</svg>\n")


def arguments():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--count", type=int, default=100)
    p.add_argument("--first", type=int, default=0, help="the first case's number")
    p.add_argument("--threads", type=int, default=1)
    p.add_argument("--mcpu", default="native")
    p.add_argument("--work", default=os.path.join(HERE, "../build/bench/sweep"))
    p.add_argument("--tvmcc", default=os.path.join(HERE, "../build/release/bin/tvmcc"))
    p.add_argument("--than", help="another tvmcc")
    p.add_argument("--engines", nargs="*", default=PEERS, choices=PEERS)
    p.add_argument("--kinds", nargs="+", help="words of classes: only these of the cases")
    p.add_argument("--turns", type=int, default=7)
    p.add_argument("--turn-s", type=float, default=0.008)
    p.add_argument("--processor-time", dest="clock", action="store_const", const="process_time", default="perf_counter",
                   help="on a machine that others use: what the process took, with one thread")
    p.add_argument("--jobs", type=int, default=os.cpu_count(), help="compilers at a time")
    p.add_argument("--worst", type=int, default=30, help="how many cases the report lists")
    p.add_argument("--resume", action="store_true", help="keep what results.json has, measure the rest")
    p.add_argument("--report", action="store_true", help="measure nothing")
    p.add_argument("--replay", type=int, nargs="+", metavar="K", help="these cases, with profile and schedule")
    p.add_argument("--serve", help=argparse.SUPPRESS)
    return p.parse_args()


def without_avx512(a):
    """What hides AVX-512 from an engine; nothing where code is for processors that have it."""
    if not re.search("haswell|broadwell|znver[123]|x86-64-v3", a.mcpu):
        return {}
    folder = avx2.site(a.work, a.engines)
    return {"LD_PRELOAD": avx2.library(a.work), "ONEDNN_MAX_CPU_ISA": "AVX2", **({"PYTHONPATH": folder} if folder else {})}


def main():
    a = arguments()
    if a.serve:
        serve(a.serve)
        return
    a.work = os.path.abspath(a.work)
    os.makedirs(a.work, exist_ok=True)
    path, rows = os.path.join(a.work, "results.json"), []
    if (a.resume or a.report) and os.path.exists(path):
        old = json.load(open(path, encoding="utf-8"))
        rows, a.seed, a.threads, a.mcpu, a.engines = (old[k] for k in ("cases", "seed", "threads", "mcpu", "engines"))
    if not a.report:
        a.tools = {"tvmcc": a.tvmcc, **({"than": a.than} if a.than else {})}
        engines.build_runtime(a.work)
        a.hidden = without_avx512(a)
        sweep(a, rows)
    if not a.replay:
        report(a, rows)
        picture(a, rows)


if __name__ == "__main__":
    main()
