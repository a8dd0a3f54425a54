"""Random networks, run by onnxruntime and by us: random_models.py TVMCC [--count N] [--seed S].

Operators with all their corners are what ../graphs/random_graphs.py is for.

A network is a dozen layers, drawn at random with their attributes (random_net.py): convolutions (grouped, dilated,
transposed, with paddings of all kinds), pooling, resizing, attention, recurrent layers, quantized ones,
moves, reductions; of small and odd sizes, some of one pixel, some in batches, one in ten large
enough for what caches and threads decide.  Each is compiled at -O3 for this machine and for a CPU
without AVX-512, and run with one and two threads, which must give the same bits; other CPUs and levels
take turns.
With --target for a device instead, of which the mock libraries do (scripts/test-long, cuda): in f32, and with
products of 16 bits.
The error of an output must be at most 1e-3 of its largest value, of quantized networks two steps
of the coarsest scale; of 16 bits 2e-2 in the mean, where they hold every number between the layers.

A network that differs is left in --keep (default: a folder that the last line names), with its inputs
and outputs:    tvmcc run 17.onnx --inputs 17.in.npz --expect 17.out.npz
"""
import argparse
import concurrent.futures
import os
import subprocess
import sys
import tempfile

import numpy as np
import onnx
import onnxruntime as ort
from random_net import Net

ort.set_default_logger_severity(4)


def peer(model, feeds):
    """What onnxruntime computes, as the graph says: its own rewrites do not round alike."""
    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads = 1
    return ort.InferenceSession(model.SerializeToString(), options).run(
        None, {k: v for k, v in feeds.items() if k in {i.name for i in model.graph.input}})


def fits_halves(model, feeds):
    """Does f16 hold every number between the layers?"""
    every = onnx.ModelProto()
    every.CopyFrom(model)
    del every.graph.output[:]
    every.graph.output.extend(onnx.ValueInfoProto(name=o) for n in model.graph.node for o in n.output if o)
    return all(np.abs(v[np.isfinite(v)]).max(initial=0) <= float(np.finfo(np.float16).max)
               for v in peer(every, feeds) if isinstance(v, np.ndarray) and v.dtype.kind == "f")


def difference(net, ours, theirs, halves=False):
    """What is wrong with one output, or None."""
    if ours.shape != theirs.shape:
        return f"shape {ours.shape} instead of {theirs.shape}"
    if (np.isnan(ours) != np.isnan(theirs)).any() or (np.isinf(ours) != np.isinf(theirs)).any():
        return "NaN or infinity at other places"
    sound = np.isfinite(theirs)
    if not sound.any():
        return None
    a, b = ours[sound].astype(np.float64), theirs[sound].astype(np.float64)
    error, most = np.abs(a - b), np.abs(b).max()
    if net.step:  # what rounds the other way is a step apart, and few do
        if error.mean() > 0.3 * net.step + 1e-3 * most:
            return f"mean error {error.mean():.3g} of {most:.3g}"
        return None
    if halves:  # may overflow to infinity's neighbours, and rounds in every layer
        return f"mean error {error.mean():.3g} of {most:.3g}" if error.mean() > 2e-2 * max(most, 1e-2) else None
    if error.max() > 1e-3 * max(most, 1e-3):
        return f"error {error.max():.3g} of {most:.3g}"
    return None


def ways_of_cpus(seed):
    """Target, level, threads."""
    ways = [("-mcpu=native", "-O3", 1), ("-mcpu=native", "-O3", 2), ("-mcpu=x86-64-v3", "-O3", 2)]
    ways.append((("-mcpu=x86-64-v2", "-O3", 1), ("-mcpu=native", "-O0", 1), ("-mcpu=native", "-O2", 2),
                 ("-mcpu=haswell", "-O3", 2), ("-mcpu=native", "-Os", 1), ("-mcpu=x86-64", "-O3", 1),
                 ("-mcpu=sandybridge", "-O3", 2), ("-mcpu=native", "-O1", 2))[seed % 8])
    return [([cpu, level, "--threads", str(threads)], False) for cpu, level, threads in ways]


def try_one(seed, args, folder):
    """None, or what is wrong with the network of this seed."""
    net = Net(seed)
    model, outs = net.model()
    base = os.path.join(folder, str(seed))
    try:
        want = peer(model, net.feeds)
    except Exception as e:  # our generator's fault, or theirs
        return ("peer", str(e)[:300])
    onnx.save(model, base + ".onnx")
    np.savez(base + ".in.npz", **net.feeds)
    np.savez(base + ".out.npz", **dict(zip(outs, want)))
    devices = [(["--target=" + t, "-O3", *words], bool(words)) for t in args.target for words in ([], ["--mixed-precision"])]
    wrong, first = None, None
    for words, halves in devices or ways_of_cpus(seed):
        if halves and not fits_halves(model, net.feeds):
            continue
        what, got = " ".join(words), f"{base}.got.npz"
        cmd = [args.tvmcc, "run", base + ".onnx", *words, "--inputs", base + ".in.npz", "--output", got, "-Wno-schedule-refused"]
        try:
            r = subprocess.run(cmd, capture_output=True, text=True, timeout=args.timeout, errors="replace")
        except subprocess.TimeoutExpired:
            wrong = f"{what}: more than {args.timeout} s"
            break
        if r.returncode == 3:
            return ("peer", r.stderr.strip()[:200])
        if r.returncode:
            wrong = f"{what}: status {r.returncode}: {r.stderr.strip()[-400:]}"
            break
        result = np.load(got)
        for i, o in enumerate(outs):
            ours = result[o] if o in result else result[result.files[i]]
            d = difference(net, ours, want[i], halves)
            if d:
                wrong = f"{what}: output {o}: {d}"
        if "-O3" in words and "-mcpu=native" in words:
            bits = [result[k].tobytes() for k in sorted(result.files)]
            if first is None:
                first = bits
            elif bits != first:
                wrong = f"{what}: other bits than with one"
        os.unlink(got)
        if wrong:
            break
    if wrong:
        return ("wrong", wrong)
    for end in (".onnx", ".in.npz", ".out.npz"):
        os.unlink(base + end)
    return None


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("tvmcc")
    p.add_argument("--count", type=int, default=200)
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--jobs", type=int, default=2)
    p.add_argument("--timeout", type=int, default=120)
    p.add_argument("--target", action="append", default=[])
    p.add_argument("--keep")
    args = p.parse_args()
    folder = args.keep or tempfile.mkdtemp(prefix="random_models.")
    os.makedirs(folder, exist_ok=True)
    wrong = skipped = 0
    with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        seeds = range(args.seed, args.seed + args.count)
        for seed, result in zip(seeds, pool.map(lambda s: try_one(s, args, folder), seeds)):
            if result and result[0] == "peer":
                skipped += 1
                print(f"seed {seed}: not judged: {result[1]}", flush=True)
            elif result:
                wrong += 1
                print(f"FAIL seed {seed}: {result[1]}", flush=True)
    print(f"{args.count - wrong - skipped} networks agree, {wrong} differ, {skipped} not judged; {folder}")
    sys.exit(wrong > 0)


if __name__ == "__main__":
    main()
