#!/usr/bin/env python3
"""Small networks, from a thousand to three million multiply-adds: tvmcc against the engines and plain C.

    tiny.py [WORD..] [--tvmcc FILE] [--than FILE] [--work DIR] [--seconds S] [--processor-time] [--engines E..] [--cc CC]

Each network (tiny_nets.py) is an ONNX model and plain C of the same loops, which CC (clang-19) compiles with -O3
-march=native -fno-math-errno.  Ours and the C are called by the same C loop (tiny.c), the engines from Python, whose
own microseconds they then have.  All take turns, with one thread and with two; a figure is the least of all batches.
`code` is by how much a static program's text grows that calls the model: of ours with its checks of arguments and of the
CPU, of the C with what it takes from libm.  Weights and tables do not count.
Results are compared with ONNX Runtime's first.
"""
import argparse
import ctypes
import math
import os
import re
import shlex
import statistics
import subprocess
import sys

import numpy as np

import engines
import sweep
import tiny_nets

HERE = os.path.dirname(os.path.abspath(__file__))


CALLER = "int %s(const void *, void *, const void *);\nint main(void) { return %s(0, 0, 0); }\n"
NOTHING = "int %s(const void *in, void *out, const void *params) { return 0; }\n"


def program_bytes(a, objects, symbol):
    """Bytes of code by which a static program grows that calls the function: what it takes from libm is in it."""
    def text(*more):
        subprocess.check_call([a.cc, "-O2", "-w", "-static", "-Wl,--gc-sections", f"{base}.c", *more, "-o", base, "-lm"])
        said = subprocess.run(["size", "-A", base], capture_output=True, text=True, check=True).stdout
        return sum(int(m[1]) for m in re.finditer(r"^\.text\S*\s+(\d+)", said, re.M))

    base = objects[0] + ".program"
    for path, source in ((f"{base}.c", CALLER % (symbol, symbol)), (f"{base}.nothing.c", NOTHING % symbol)):
        with open(path, "w", encoding="utf-8") as out:
            out.write(source)
    return text(*objects) - text(f"{base}.nothing.c")


class Timer:
    def __init__(self, a):
        path = os.path.join(a.work, "libtiny.so")
        subprocess.check_call(["cc", "-shared", "-fPIC", "-O2", os.path.join(HERE, "tiny.c"), "-o", path])
        self.time, self.a = ctypes.CDLL(path).tiny_time, a
        self.time.restype = ctypes.c_double
        self.time.argtypes = [ctypes.c_void_p] * 4 + [ctypes.c_double, ctypes.c_int32]

    def compiled(self, at, ins, outs, params):
        return self.time(at, ins, outs, params, self.a.seconds, self.a.processor)


class Plain:
    """The C text."""

    def __init__(self, a, net, source, feeds):
        with open(source + ".c", "w", encoding="utf-8") as out:
            out.write(net.text())
        call = [a.cc, "-O3", "-march=native", "-fno-math-errno", "-c", "-fPIC", source + ".c", "-o", source + ".c.o"]
        subprocess.check_call(call)
        subprocess.check_call([a.cc, "-shared", source + ".c.o", "-o", source + ".c.so", "-lm"])
        self.size, self.keep = program_bytes(a, [source + ".c.o"], "run"), ctypes.CDLL(source + ".c.so")
        self.weights = engines.aligned(4 * max(1, net.at)).view(np.float32)
        self.weights[:net.at] = np.concatenate(net.values)
        self.x, self.y = np.ascontiguousarray(feeds["x"]), np.empty(net.shape, np.float32)
        self.args = ((ctypes.c_void_p * 1)(self.x.ctypes.data), (ctypes.c_void_p * 1)(self.y.ctypes.data))

    def run(self):
        self.keep.run(*self.args, ctypes.c_void_p(self.weights.ctypes.data))
        return [self.y]

    def us(self, timer):
        return timer.compiled(ctypes.cast(self.keep.run, ctypes.c_void_p), *self.args, self.weights.ctypes.data)


class Ours:
    def __init__(self, a, name, source, feeds, outs, threads):
        folder, model = f"{source}.{name}", os.path.basename(source).removesuffix(".onnx")
        os.makedirs(folder, exist_ok=True)
        at = os.path.join(folder, model)
        for kind in ("so", "o"):
            subprocess.check_call([*a.tools[name], source, "-mcpu=native", "-fno-cache", f"--emit={kind}", "-o", f"{at}.{kind}"])
        self.size = program_bytes(a, [at + ".o"], model + "_run_ex")
        self.run = engines.load_tvmcc(at + ".so", feeds, outs, threads)
        parts = dict(zip(self.run.__code__.co_freevars, (c.cell_contents for c in self.run.__closure__)))
        self.call, self.args = parts["call"], parts["args"]

    def us(self, timer):
        return timer.compiled(ctypes.cast(self.call, ctypes.c_void_p), self.args[0], self.args[1], ctypes.cast(self.args[2], ctypes.c_void_p))


class Peer:
    """An engine, in a process of its own: some end it."""

    def __init__(self, a, engine, job, threads):
        self.size, self.worker = None, sweep.Worker(argparse.Namespace(threads=threads, work=a.work), engine)
        got = self.worker.tell({"load": {**job, "threads": threads}}, 60)
        self.fault = got.get("failed")
        if not self.fault and got["error"] > sweep.TOLERANCE:
            self.fault = f"its result is wrong: {got['error']:.1e}"

    def us(self, timer):
        clock = "process_time" if timer.a.processor else "perf_counter"
        return self.worker.tell({"run": timer.a.seconds, "clock": clock}, 60).get("us", math.inf)


def measure(a, timer, net, source):
    """Microseconds by (who, threads), and code sizes."""
    feeds, outs = {"x": net.rng.standard_normal(net.input, np.float32)}, [net.x]
    job = {"source": source, "outs": outs}
    np.savez(source + ".npz", **feeds)
    if os.path.exists(source + ".want.npz"):
        os.remove(source + ".want.npz")
    who, peers = {}, {(e, t): Peer(a, e, job, t) for t in (1, 2) for e in a.engines}  # the first of them says what is right
    with np.load(source + ".want.npz") as f:
        want = [f[k] for k in f]
    for threads in (1, 2):
        for name in a.tools:
            who[name, threads] = Ours(a, name, source, feeds, outs, threads)
    who["C", 1] = Plain(a, net, source, feeds)
    for name, one in list(who.items()):
        if (error := sweep.difference(one.run(), want)) > sweep.TOLERANCE:
            raise SystemExit(f"tiny.py: the result of {name[0]} is wrong: {error:.1e}")
    for name, one in peers.items():
        if one.fault:
            print(f"{name[0]}, {name[1]}: {one.fault}", file=sys.stderr)
        else:
            who[name] = one
    us = {name: math.inf for name in who}
    for _ in range(a.turns):
        for name, one in who.items():
            us[name] = min(us[name], one.us(timer))
    for one in peers.values():
        one.worker.close()
    return us, {name[0]: one.size for name, one in who.items()}


def line(a, name, net, us, size):
    def cell(key):
        return f"{us[key]:.2f}" if key in us else "-"
    peers = [us[e, 1] for e in a.engines if (e, 1) in us]
    own = us["tvmcc", 1]
    ratios = {"C": own / us["C", 1], "peer": min(peers) / own if peers else math.nan, "two": us["tvmcc", 2] / own,
              "size": size["tvmcc"] / size["C"]}
    than, than_size = (f" {cell(('than', 1))} |", f" {size['than']} |") if a.than else ("", "")
    print(f"| {name} | {net.macs / 1000:.1f} | {own:.2f} | {cell(('tvmcc', 2))} |{than} {cell(('C', 1))} | {ratios['C']:.2f} | "
          + " | ".join(f"{cell((e, 1))}, {cell((e, 2))}" for e in a.engines) +
          f" | {ratios['peer']:.1f} | {size['tvmcc']} |{than_size} {size['C']} | {ratios['size']:.2f} |", flush=True)
    return ratios


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("words", nargs="*", help="of names: only these")
    p.add_argument("--tvmcc", default=os.path.join(HERE, "../build/release/bin/tvmcc"))
    p.add_argument("--than", help="another tvmcc, or other options: 'tvmcc -Os'")
    p.add_argument("--work", default=os.path.join(HERE, "../build/bench/tiny"))
    p.add_argument("--engines", nargs="*", default=sweep.PEERS)
    p.add_argument("--cc", default="clang-19")
    p.add_argument("--turns", type=int, default=7)
    p.add_argument("--seconds", type=float, default=0.02, help="of a turn")
    p.add_argument("--processor-time", dest="processor", action="store_true", help="what the process took: one thread alone counts")
    a = p.parse_args()
    a.work = os.path.abspath(a.work)
    a.tools = {"tvmcc": shlex.split(a.tvmcc), **({"than": shlex.split(a.than)} if a.than else {})}
    os.makedirs(a.work, exist_ok=True)
    engines.build_runtime(a.work)
    timer, all_ratios = Timer(a), []
    print("| network | 1000 multiply-adds | us | two threads |" + (" than |" if a.than else "") + " C | ours / C | "
          + " | ".join(f"{e}: one, two threads" for e in a.engines) + " | best / ours | code |" + (" than |" if a.than else "") + " C's | ours / C's |")
    print("|---|" + "---:|" * (9 + len(a.engines) + 2 * bool(a.than)))
    for i, (name, make) in enumerate(tiny_nets.NETS.items()):
        if a.words and not any(w in name for w in a.words):
            continue
        net, source = make(), os.path.join(a.work, f"tiny{i}.onnx")
        with open(source, "wb") as out:
            out.write(net.model())
        all_ratios.append(line(a, name, net, *measure(a, timer, net, source)))
    mean = {k: statistics.geometric_mean([r[k] for r in all_ratios if r[k] > 0]) for k in all_ratios[0]}
    worst = {k: max(r[k] for r in all_ratios) for k in all_ratios[0]}
    print(f"\nours by C's time: mean {mean['C']:.2f}, worst {worst['C']:.2f}; two threads by one: worst {worst['two']:.2f}; "
          f"code by C's: mean {mean['size']:.2f}, worst {worst['size']:.2f}; best engine by ours: mean {mean['peer']:.1f}")


if __name__ == "__main__":
    main()
