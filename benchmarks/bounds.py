#!/usr/bin/env python3
"""How far the hot loops of kernels are from what the multiply-adds alone would take, on a CPU that need not be here.

    bounds.py MODEL -- -mcpu=znver4                                               all kernels with products
    bounds.py MODEL --than OLD -- -mtriple=aarch64-linux-gnu -mcpu=cortex-a72     those that another tvmcc compiles otherwise
    bounds.py --seed S --count N [--cpus CPU..] [--worst N] -- -mtriple=..        those of operators drawn at random (sweep_cases.py), CPU by CPU

Of the tiles that a kernel calls, or of itself, the innermost loop with most multiply-adds counts. llvm-mca says how many cycles a round
of it takes with all operands in L1, and how many its multiply-adds alone, side by side; the kernel's multiply-adds, each a lane, say how
often it runs. `code` is what a kernel and its tiles are, in bytes: what exceeds the first cache for instructions waits for them, which
llvm-mca does not know. What caches move is not in it either (`profile --predict`).
"""
import argparse
import concurrent.futures
import os
import re
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
LEAST_MADDS = 20000  # of a kernel drawn: of fewer, what is around the loops is most
LANES = {"zmm": 16, "ymm": 8, "xmm": 4, ".4s": 4, ".2s": 2}
PRODUCT = re.compile(r"^\s+(vfn?m(add|sub)\d*ps|fml[as])\b")
# Of these llvm-mca (LLVM 19) lets results be written in the order of instructions, so that a load waits until the multiply-adds before it
# are done, though nothing needs them; the cores do not.
IN_ORDER = {"cortex-a34", "cortex-a35", "cortex-a53"}
LOOKS = 40  # rounds that are followed
JUMP = re.compile(r"^\s+(?:j[a-z]+|b\.[a-z]+|cbn?z\s+\w+,|tbn?z\s+\w+,\s*#\d+,)\s*(\.L\w+)")


def run(*args, text=None):
    r = subprocess.run(args, input=text, capture_output=True, text=True)
    if r.returncode:
        sys.exit(f"{args[0]}: {(r.stderr.strip() or '?').splitlines()[0]}")
    return r.stdout


def functions(asm):
    """Lines of each function by its name, without the model's prefix."""
    out, name = {}, None
    for line in asm.splitlines():
        if m := re.match(r"(?:\w+?__)?([a-z]\w*\.[0-9a-f]{8}[\w.]*):", line):
            name = m[1]
            out[name] = []
        elif line.startswith(".Lfunc_end"):
            name = None
        elif name:
            out[name].append(line)
    return out


def loops(lines):
    """Loops of one block."""
    label, body = None, []
    for line in lines:
        if m := re.match(r"(\.L\w+):", line):
            label, body = m[1], []
        elif (m := JUMP.match(line)) and m[1] == label:
            yield body + [line]
        elif not line.strip().startswith((".", "#", "//")):
            body.append(line)


class Machine:
    def __init__(self, mca, options):
        cpu = next(o.split("=")[1] for o in options if o.startswith("-mcpu="))
        triple = next((o.split("=")[1] for o in options if o.startswith("-mtriple=")), "x86_64-linux-gnu")
        self.in_order = cpu in IN_ORDER
        self.call = [mca, "-mtriple=" + triple, "-mcpu=" + cpu, "-iterations=200", "-resource-pressure=0"]

    def cycles(self, lines):
        """... of a round."""
        out = run(*self.call, text="\n".join(lines) + "\n")
        if self.in_order:
            return in_order_cycles(out)
        return int(re.search(r"Total Cycles:\s+(\d+)", out)[1]) / 200


def registers(text):
    return [("r" if r[0] in "xw" else "v") + r[1:] for r in re.findall(r"\b([xwvqds]\d+)\b", text)]


def in_order_cycles(mca):
    """A round on a core that takes instructions in order, several in a cycle, each when its operands and a unit are there: what they take
    is from llvm-mca's table of instructions. One unit computes vectors, one loads and stores."""
    width = int(re.search(r"Dispatch Width:\s+(\d+)", mca)[1])
    rows = []
    for uops, latency, every, flags, text in re.findall(r"^ (\d+)\s+(\d+)\s+([\d.]+)((?:\s+[*U])*)\s+([a-z].*)$", mca, re.M):
        name, _, rest = text.partition("\t")
        memory, regs = "*" in flags, registers(rest)
        base = registers(rest[rest.find("["):]) if "[" in rest else []
        writes = [] if name.startswith(("st", "b", "cb", "tb", "cmp", "prfm")) else regs[:2 if name == "ldp" else 1]
        reads = regs[len(writes):] + (writes if name.startswith(("fmla", "fmls", "mla", "mov.s", "ins")) else [])
        moves = base[:1] if "]," in rest or rest.endswith("!") else []
        sets, asks = name in ("cmp", "subs", "adds", "ands", "tst"), name.startswith(("b.", "csel", "cset"))
        unit = "memory" if memory else "vector" if any(r[0] == "v" for r in regs) else "integer"
        rows.append((int(uops), int(latency), float(every), unit, reads + ["flags"] * asks, writes + ["flags"] * sets, moves))
    at, slots, ready, free, begun = 0.0, 0, {}, {}, []
    for _ in range(LOOKS):
        begun.append(at)
        for uops, latency, every, unit, reads, writes, moves in rows:
            begin = max([at, free.get(unit, 0)] + [ready.get(r, 0) for r in reads])
            begin = float(-(-begin // 1))
            slots = slots if begin == at else 0
            if slots and slots + uops > width:
                begin, slots = begin + 1, 0
            at, slots = begin, slots + uops
            free[unit] = max(free.get(unit, 0), begin) + every
            ready.update({r: begin + latency for r in writes})
            ready.update({r: begin + 1 for r in moves})
    return (begun[-1] - begun[LOOKS // 2]) / (LOOKS - 1 - LOOKS // 2)


def apart(lines):
    """Multiply-adds whose operands wait for nothing but their own sums."""
    return [line for line in lines if PRODUCT.match(line)]


class Model:
    def __init__(self, tool, model, options, work):
        path = os.path.join(work, "a.s")
        run(tool, model, *options, "-S", "-o", path)
        with open(path, encoding="utf-8") as f:
            self.all = functions(f.read())
        plan = run(tool, model, *options, "--emit=plan", "-o", "-")
        self.madds = {m[1]: int(m[2]) for m in re.finditer(r"^kernel @(\S+) \d+ calls, (\d+) multiply-adds", plan, re.M)}
        self.calls = {m[1]: int(m[2]) for m in re.finditer(r"^kernel @(\S+) (\d+) calls", plan, re.M)}

    def parts(self, kernel):
        called = re.findall(r"(?:callq|bl)\s+(?:\w+?__)?([a-z]\w*\.[0-9a-f]{8}[\w.]*)", "\n".join(self.all.get(kernel, [])))
        return [kernel] + sorted(set(called) & set(self.all))

    def hot(self, kernel):
        """The loop, and how many multiply-adds it has: of a tile, since what stands around tiles may have longer ones (transforms)."""
        own, *tiles = self.parts(kernel)
        for parts in (tiles, [own]):
            found = [(len(apart(body)), body) for part in parts for body in loops(self.all.get(part, []))]
            best = max(found, key=lambda f: f[0], default=(0, []))
            if best[0]:
                return best
        return 0, []

    def row(self, machine, kernel):
        """Cycles of the kernel by its loop, by its multiply-adds alone; instructions of the loop, of all of the kernel."""
        n, body = self.hot(kernel)
        if not n or not self.madds.get(kernel):
            return None
        text = next(line for line in body if PRODUCT.match(line))
        rounds = self.madds[kernel] / (n * next(v for k, v in LANES.items() if k in text))
        size = sum(1 for part in self.parts(kernel) for line in self.all[part] if re.match(r"\s+[a-z]", line))
        return machine.cycles(body) * rounds, machine.cycles(apart(body)) * rounds, n, size


def drawn(a, options):
    """Of each CPU a line: the mean share and how many are below; then the worst."""
    import sweep_cases
    cases = [c for k in range(0, 2 * a.count, 2) if not (c := sweep_cases.draw(a.seed, k)).loose]

    def shares(case, cpu):
        of = [*options, "-mcpu=" + cpu]
        with tempfile.TemporaryDirectory() as work:
            path = os.path.join(work, "case.onnx")
            with open(path, "wb") as f:
                f.write(case.model)
            model, machine = Model(a.tvmcc, path, of, work), Machine(a.mca, of)
            rows = [(k, r) for k in model.madds if (r := model.row(machine, k)) and model.madds[k] >= LEAST_MADDS]
        return [(r[1] / r[0], cpu, case.k, k.split(".")[0], case.text) for k, r in rows]

    print("| CPU | kernels | mean % | 5 % | below 80 % | below 50 % |\n|---|---:|---:|---:|---:|---:|")
    worst = []
    with concurrent.futures.ThreadPoolExecutor(a.jobs) as pool:
        for cpu in a.cpus:
            found = sorted(row for rows in pool.map(lambda case, cpu=cpu: shares(case, cpu), cases) for row in rows)
            v = [row[0] for row in found]
            print(f"| {cpu} | {len(v)} | {100 * sum(v) / len(v):.0f} | {100 * v[len(v) // 20]:.0f} | {sum(x < 0.8 for x in v)} | "
                  f"{sum(x < 0.5 for x in v)} |", flush=True)
            worst += found[:a.worst]
    for share, cpu, k, kernel, text in worst:
        print(f"{share:.2f} {cpu}, case {k}: {kernel}: {text}")


def main():
    args = sys.argv[1:]
    options = args[args.index("--") + 1:] if "--" in args else []
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("model", nargs="?")
    p.add_argument("--seed", type=int)
    p.add_argument("--count", type=int, default=100, help="of operators, each alone")
    p.add_argument("--cpus", nargs="+", default=["cortex-a53", "cortex-a72", "neoverse-n1", "apple-m1"])
    p.add_argument("--worst", type=int, default=10, help="how many are listed of a CPU")
    p.add_argument("--jobs", type=int, default=os.cpu_count())
    p.add_argument("--tvmcc", default=os.path.join(HERE, "../build/release/bin/tvmcc"))
    p.add_argument("--than", help="another tvmcc")
    p.add_argument("--mca", default="llvm-mca-19")
    a = p.parse_args(args[:args.index("--")] if "--" in args else args)
    if a.seed is not None:
        return drawn(a, options)
    if not any(o.startswith("-mcpu=") for o in options):
        sys.exit("bounds.py: the CPU is missing: .. -- -mcpu=NAME")
    machine = Machine(a.mca, options)
    with tempfile.TemporaryDirectory() as work:
        new = Model(a.tvmcc, a.model, options, work)
        old = Model(a.than, a.model, options, work) if a.than else None
    if not old:
        print("| kernel | calls | kcycles | multiply-adds alone | share | instructions |\n|---|---:|---:|---:|---:|---:|")
        for kernel in new.madds:
            if r := new.row(machine, kernel):
                print(f"| {kernel} | {new.calls[kernel]} | {r[0] / 1e3:.1f} | {r[1] / 1e3:.1f} | {r[1] / r[0]:.2f} | {r[3]} |")
        return
    print("| kernel | old, kcycles | new | new / old | products a round | instructions |\n|---|---:|---:|---:|---:|---:|")
    gone = [k for k in old.madds if k not in new.madds]
    for was, now in zip(gone, [k for k in new.madds if k not in old.madds]):
        r, s = old.row(machine, was), new.row(machine, now)
        if r and s:
            print(f"| {was} -> {now.split('.')[-1]} | {r[0] / 1e3:.1f} | {s[0] / 1e3:.1f} | {s[0] / r[0]:.2f} "
                  f"| {r[2]}, {s[2]} | {r[3]}, {s[3]} |", flush=True)


main()
