#!/usr/bin/env python3
"""What the choices of the schedule rules for GPUs cost on a card, beside what the model of the machine says of them.

    gpu_space.py make OUT --models MODEL[:OPTION..] .. [--variants 12] [--seed 1] [--target="cuda -arch=sm_90"] [--tvmcc=FILE]
    gpu_space.py time OUT [--runtime=libtvmcc_runtime.a]
    gpu_space.py report OUT [--worst 20]
    gpu_space.py estimates OUT [--ghz 1.98]

`make` needs no card: it compiles each model several times as a library, the first as the rules choose, in the others with a decision
of each kernel drawn at random among the candidates that `tvmcc opt --space` estimates at less than three times the best; OPTIONs are
words of the command line, such as `resnet50.onnx:--mixed-precision`.  `time` measures each launch of all libraries by the device's
own clock, in one process (gpu_space.c).  `report` tells of each kernel what was estimated and measured for the default, and the best
that was measured.  `estimates` tells how far estimates are off: of each model, and of each rule, what was measured by what was estimated
(a tenth of the launches is below the first figure, half below the second, nine tenths below the third), and whether their order is right.
"""
import argparse
import collections
import glob
import json
import math
import os
import random
import re
import statistics
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def run(args, *words):
    done = subprocess.run([args.tvmcc, *words], capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{' '.join(words)}\n{done.stderr}")
    return done.stdout


def spaces(text):
    """kernel -> (rule, {decision: [(candidate, cycles)]})"""
    found, at = {}, None
    for line in text.splitlines():
        if m := re.match(r"@(\S+): (\S+),", line):
            at = found[m[1]] = (m[2], {})
        elif at and (m := re.match(r"    (\S+) = (.*)", line)):
            at[1][m[1]] = [(p[0].rstrip("*"), float(p[1]), p[0].endswith("*"))
                           for p in (c.split() for c in m[2].split(", ")) if len(p) == 2]
    return found


def explained(text):
    """kernel -> ({decision: taken}, cycles)"""
    found, at = {}, None
    for line in text.splitlines():
        if m := re.match(r"@([^ :]+): ", line):
            at = found[m[1]] = [{}, None]
        elif at and (m := re.match(r"    (\S+) = ([^,;]+)(?:, (\d+) cycles)?", line)):
            at[0][m[1]] = m[2]
            at[1] = float(m[3]) if m[3] else at[1]
    return found


def make(args):
    rng = random.Random(args.seed)
    os.makedirs(args.out, exist_ok=True)
    known = []
    for number, what in enumerate(args.models):
        path, *options = what.split(":--")
        words = [path, "--target=" + args.target, "-w", *("--" + o for o in options)]
        stem = os.path.join(args.out, f"m{number}")
        te = stem + ".te"
        run(args, "compile", *words, "--emit=te", "-o", te)
        space = spaces(run(args, "opt", te, "--target=" + args.target, "--space"))
        log = run(args, "compile", *words, "--emit=log", "-o", "-").splitlines()
        records = {re.match(r"# (\S+),", a)[1]: b.split(" | ") for a, b in zip(log, log[1:]) if a.startswith("# ")}
        for v in range(args.variants):
            lines, changed = [], {}
            for kernel, (rule, decisions) in sorted(space.items()):
                choices = [(d, c) for d, cs in decisions.items() for c, cycles, default in cs
                           if not default and cycles < 3 * min(x[1] for x in cs)]
                record = records.get(re.sub(r"\.\d+$", "", kernel)) or records.get(kernel)
                if v and choices and record:
                    d = rng.choice(sorted({d for d, _ in choices}))
                    changed[kernel] = (d, rng.choice([c for e, c in choices if e == d]))
                    lines.append(" | ".join(["2", record[1], record[2], "-", "%s: %s=%s" % (rule, *changed[kernel])]))
            with open(stem + ".log", "w") as f:
                f.write("\n".join(lines) + "\n")
            name = f"{stem}.{v}"
            tuned = ["--tuning=" + stem + ".log"] * bool(lines)
            said = subprocess.run([args.tvmcc, "compile", *words, *tuned, "--explain", "--entry=net", "-fweights=file", "--emit=so",
                                   "-o", name + ".so"], capture_output=True, text=True)
            if said.returncode:
                print(what, v, said.stderr, flush=True)
                continue
            for other in glob.glob(name + ".*"):
                if not other.endswith(".so"):
                    os.remove(other)
            plan = run(args, "compile", *words, *tuned, "--emit=plan", "-o", "-")
            known.append({"library": os.path.basename(name) + ".so", "model": what, "launches": re.findall(r"launch @(\S+)", plan),
                          "changed": changed, "kernels": explained(said.stderr + said.stdout)})
            print(what, v, len(lines), "kernels changed", flush=True)
            with open(os.path.join(args.out, "known.json"), "w") as f:
                json.dump(known, f)


def time(args):
    program = os.path.join(args.out, "gpu_space")
    subprocess.run(["cc", "-O2", f"-DKIND=TVMCC_DEVICE_{args.target.split()[0].upper()}", "-I" + os.path.join(ROOT, "include"),
                    os.path.join(ROOT, "benchmarks/gpu_space.c"), args.runtime, "-lm", "-lpthread", "-ldl", "-o", program], check=True)
    libraries = [os.path.join(args.out, k["library"]) for k in json.load(open(os.path.join(args.out, "known.json")))]
    with open(os.path.join(args.out, "times.txt"), "w") as f:
        subprocess.run([os.path.abspath(program), *libraries], stdout=f)


def measured(args):
    """(model, place of the launch) -> [(cycles, ns, decisions, is default, kernel)]"""
    times = {}
    for line in open(os.path.join(args.out, "times.txt")):
        path, *ns = line.split()
        times[os.path.basename(path)] = [float(t) for t in ns if t.replace(".", "").isdigit()]
    rows = collections.defaultdict(list)
    for k in json.load(open(os.path.join(args.out, "known.json"))):
        ns = times.get(k["library"], [])
        if len(ns) != len(k["launches"]):
            print(k["library"], len(ns), "times,", len(k["launches"]), "launches")
            continue
        for i, (name, t) in enumerate(zip(k["launches"], ns)):
            taken, cycles = k["kernels"].get(name) or k["kernels"].get(re.sub(r"\.\d+$", "", name)) or ({}, None)
            rows[k["model"], i].append((cycles, t, taken, not k["changed"], name))
    return rows


def ranked(values):
    order = sorted(range(len(values)), key=lambda i: values[i])
    ranks = [0.0] * len(values)
    for r, i in enumerate(order):
        ranks[i] = r
    return ranks


def estimates(args):
    groups = collections.defaultdict(list)
    for (model, _), some in measured(args).items():
        for cycles, ns, _, _, name in some:
            if cycles:
                groups[model.replace(".onnx", "").split("/")[-1]].append((cycles / args.ghz, ns))
                groups["@" + name.split(".")[0]].append((cycles / args.ghz, ns))
    print("| of | launches | measured us | estimated us | a tenth | half | nine tenths | order |\n|---|" + "---:|" * 7)
    for name, pairs in sorted(groups.items()):
        if len(pairs) < 4:
            continue
        off = sorted(ns / estimated for estimated, ns in pairs)
        order = statistics.correlation(*map(ranked, zip(*pairs)))
        at = [off[int(len(off) * f)] for f in (.1, .5, .9)]
        print(f"| {name} | {len(pairs)} | {sum(p[1] for p in pairs) / 1e3:.1f} | {sum(p[0] for p in pairs) / 1e3:.1f} | " +
              " | ".join(f"{a:.2f}" for a in at) + f" | {order:.2f} |")


def report(args):
    rows = measured(args)
    for model in sorted({m for m, _ in rows}):
        default = sum(next((t for _, t, _, d, _ in r if d), 0) for (m, _), r in rows.items() if m == model)
        best = sum(min(t for _, t, _, _, _ in r) for (m, _), r in rows.items() if m == model)
        print(f"\n{model}: {default / 1e3:.1f} us as chosen, {best / 1e3:.1f} with the best of each launch")
        some = []
        for (m, i), r in rows.items():
            d = next((x for x in r if x[3]), None)
            if m != model or not d:
                continue
            b = min(r, key=lambda x: x[1])
            some.append((d[1] - b[1], i, d, b))
        for lost, i, d, b in sorted(some, key=lambda s: -s[0])[:args.worst]:
            print(f"  {i:3} {d[4]:44} {d[1] / 1e3:8.2f} us ({d[0] or 0:9.0f} cycles) {word(d)}\n"
                  f"      {'best':44} {b[1] / 1e3:8.2f} us ({b[0] or 0:9.0f} cycles) {word(b)}")


def word(row):
    return " ".join(f"{k}={v}" for k, v in row[2].items())


def main():
    p = argparse.ArgumentParser(usage="gpu_space.py make|time|report|estimates OUT [options]; its head says all")
    p.add_argument("what", choices=["make", "time", "report", "estimates"])
    p.add_argument("out")
    p.add_argument("--models", nargs="+", default=[])
    p.add_argument("--variants", type=int, default=12)
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--worst", type=int, default=20)
    p.add_argument("--ghz", type=float, default=1.98)
    p.add_argument("--target", default="cuda -arch=sm_90")
    p.add_argument("--tvmcc", default=os.path.join(ROOT, "build/release/bin/tvmcc"))
    p.add_argument("--runtime", default=os.path.join(ROOT, "build/release/lib/libtvmcc_runtime.a"))
    args = p.parse_args()
    {"make": make, "time": time, "report": report, "estimates": estimates}[args.what](args)


if __name__ == "__main__":
    main()
