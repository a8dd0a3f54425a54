#!/usr/bin/env python3
"""Random graphs of few operators, run by onnxruntime and by us: random_graphs.py TVMCC [--count N] [--seed S].

What random_models.py is for networks, this is for operators: every one of frontends/onnx/ops.def that
onnxruntime has on CPUs, at every opset that changed it, with attributes, types and shapes drawn at random:
empty tensors, rank 0 and 1, sizes that are no multiple of a vector; ties, infinities, NaN, the two zeros,
subnormal and extreme numbers; axes that are negative, repeated or none; sizes, axes and counts that only the run knows.  What onnxruntime calls wrong must
be refused here too.  graph.py says how outputs are compared, known.py which differences are known, and why.

A graph that differs is cut to the node that is at fault, and left in --keep with its inputs and outputs:
    random_graphs.py TVMCC --seed 17 --count 1
    tvmcc run 17.onnx --inputs 17.in.npz --expect 17.out.npz
"""
import argparse
import collections
import multiprocessing
import multiprocessing.connection
import os
import re
import subprocess
import sys
import tempfile
import traceback

import numpy as np
import onnx
import onnxruntime

import known
import ops_element
import ops_flow
import ops_move
import ops_nn
import ops_quant
import ops_reduce
import ops_vision
from graph import EXACT, Graph, Made, Refused, Tensor, Unfit, is_float

OPS = {}
for family in (ops_element, ops_reduce, ops_move, ops_nn, ops_quant, ops_flow, ops_vision):
    OPS.update(family.OPS)
NAMES = sorted(OPS)
DECIDING = ("NonMaxSuppression", "NonZero", "Compress", "Unique")  # their values decide sizes
NEWEST = 24  # the newest opset that this onnxruntime takes

VERSIONS = collections.defaultdict(list)  # operator -> opsets that changed it
for schema in onnx.defs.get_all_schemas_with_history():
    if schema.domain == "" and schema.since_version <= NEWEST:
        VERSIONS[schema.name].append(schema.since_version)


def opset_for(g, name):
    """One of those that changed the operator, or a later one of the same form."""
    since = sorted(VERSIONS.get(name, [])) or [17]
    i = g.upto(len(since) - 1)
    last = since[i + 1] - 1 if i + 1 < len(since) else max(NEWEST, since[i])
    return g.pick(since[i], g.between(since[i], last))


def build(seed):
    """A graph, or why there is none."""
    name, why = NAMES[seed % len(NAMES)], "nothing fits"
    for attempt in range(12):
        g = Graph([seed, attempt])
        g.opset = opset_for(g, name)
        try:
            with np.errstate(all="ignore"):
                OPS[name](g)
                for _ in range(g.pick(0, 0, 0, 1, 2, 4, 11)):
                    grow(g)
            return g
        except Unfit:
            continue
        except Refused as e:
            if e.invalid:
                return g
            why = str(e)
    return why


def grow(g):
    """One more node; nothing if what is drawn cannot be."""
    name = g.pick(*NAMES)
    if VERSIONS.get(name) and min(VERSIONS[name]) > g.opset:
        return
    nodes, tensors = list(g.nodes), dict(g.tensors)
    try:
        OPS[name](g)
    except (Unfit, Refused):
        g.nodes, g.tensors, g.refused = nodes, tensors, None


# ---- comparison

def allowed(tensor):
    """How far from each number ours may be."""
    b, tol = np.atleast_1d(tensor.value).ravel(), tensor.tol
    if tol[0] == "step":
        return np.ones(b.shape)
    if tol[0] == "exact" or not is_float(b.dtype):
        return np.zeros(b.shape)
    f = np.finfo(b.dtype)
    unit, tiny = float(f.eps), float(f.tiny)
    with np.errstate(all="ignore"):
        size = np.where(np.isfinite(b), np.abs(b.astype(np.float64)), 0)
        if tol[0] == "ulp":
            n = max(tol[1] // 4, 1) if b.dtype == np.float16 else tol[1]
            return np.maximum(np.maximum(n * size * unit, tol[2] * max(1, unit / 1.2e-7)), tiny)
        if tol[0] == "near":
            return np.full(b.shape, max(tol[1], 8 * unit) * size.max(initial=0) + tiny)
        bound = np.atleast_1d(tensor.bound).ravel().astype(np.float64)
        bound = np.where(np.isfinite(bound), np.abs(bound), size.max(initial=0))
        return 64 * unit * np.maximum(bound, size) + tiny


def difference(ours, tensor):
    """What is wrong with an output, or None."""
    theirs = tensor.value
    if ours.dtype != theirs.dtype:
        return f"type {ours.dtype} instead of {theirs.dtype}"
    if ours.shape != theirs.shape:
        return f"shape {ours.shape} instead of {theirs.shape}"
    a, b = np.atleast_1d(ours).ravel(), np.atleast_1d(theirs).ravel()
    if is_float(b.dtype):
        with np.errstate(all="ignore"):
            error = np.abs(a.astype(np.float64) - b.astype(np.float64))
        bad = ~((a == b) | (np.isnan(a) & np.isnan(b)) | (np.isfinite(a) & np.isfinite(b) & (error <= allowed(tensor))))
    else:
        bad = np.abs(a.astype(object) - b.astype(object)).astype(float) > allowed(tensor)
    if not bad.any():
        return None
    i = int(np.argmax(bad))
    return f"{int(bad.sum())} of {b.size}: {a[i]!r} instead of {b[i]!r} at {i}"


# ---- our side

def compiled(args, base, model, g, flags):
    """Status and text, or outputs by name."""
    onnx.save(model, base + ".onnx")
    feeds = g.feeds(model)
    cmd = [args.tvmcc, "run", base + ".onnx", *flags, *g.flags(model), "--output", base + ".npz", "-Wno-schedule-refused"]
    if feeds:
        np.savez(base + ".in.npz", **feeds)
        cmd += ["--inputs", base + ".in.npz"]
    try:
        r = subprocess.run(cmd, capture_output=True, text=True, timeout=120, errors="replace")
    except subprocess.TimeoutExpired:
        return -1, "more than 120 s"
    if r.returncode:
        return r.returncode, (r.stderr.strip() + r.stdout.strip()) or "nothing said"
    with np.load(base + ".npz") as z:
        return 0, {k: z[k] for k in z.files}


def judge(args, base, g, nodes, flags):
    """(kind, text): agree, refused, wrong."""
    outs = [o for n in nodes for o in n.outs if o in g.tensors]
    if g.refused:
        outs = [o for n in nodes for o in n.outs if o]
    model = g.model(nodes, outs)
    status, result = compiled(args, base, model, g, flags)
    if g.refused:
        if status == 0:
            return "wrong", "accepted; onnxruntime: " + g.refused[:200]
        return ("agree", "") if status in (1, 2, 3, 4) else ("wrong", f"status {status}: {result[-300:]}")
    decided = any(n.op in DECIDING for n in nodes)
    if status == 3 or (status in (1, 2, 4) and (g.given or g.sizes or decided) and not re.search("status -|differs", result)):
        return "refused", result.split("\n")[0]
    if status:
        return "wrong", f"status {status}: {result[-400:]}"
    for i, o in enumerate(outs):
        ours = result.get(o)
        d = difference(ours, g.tensors[o]) if ours is not None else "missing"
        if d:
            return "wrong", f"output {o}: {d}"
    return "agree", ""


def flags_of(g):
    cpu = g.pick("native", "native", "x86-64", "haswell", "x86-64-v2")
    return [f"-O{g.upto(3)}", f"-mcpu={cpu}"]


def signature(n, g):
    """A node in a line."""
    say = lambda i: "-" if not i else f"{g.value(i).dtype}{list(g.dims(i))}{'c' if g.tensors[i].fixed else ''}" if i in g.tensors else "?"
    attrs = {k: v for k, v in n.attrs.items() if not isinstance(v, onnx.TensorProto)}
    run = [i for i in n.ins if i in g.given] + [f"{d}={k} in {g.bounds}" for k, d in g.sizes.items()]
    return f"{n.op}@{g.opset} {' '.join(say(i) for i in n.ins)} {attrs}" + (f" run: {' '.join(run)}" if run else "")


def try_one(args, seed):
    """(seed, kind, operator, text)"""
    g = build(seed)
    if isinstance(g, str):
        return seed, "lacking", NAMES[seed % len(NAMES)], g[:150]
    base = os.path.join(args.keep, str(seed))
    flags = flags_of(g)
    if not g.refused and g.chance(40):
        g.open()
    kind, text = judge(args, base, g, g.nodes, flags)
    if kind != "agree" and len(g.nodes) > 1 and not g.refused:
        for n in g.nodes:  # what an earlier node gave becomes an input
            one, said = judge(args, base, g, [n], flags)
            if one == "agree":
                continue
            why = known.reason(n, g, one, said)
            if one == kind or not why:
                return finish(args, base, g, [n], seed, one, said, flags, why)
        return finish(args, base, g, g.nodes, seed, kind, text, flags, None)
    why = known.reason(g.nodes[-1], g, kind, text) if kind != "agree" else None
    return finish(args, base, g, g.nodes, seed, kind, text, flags, why)


def finish(args, base, g, nodes, seed, kind, text, flags, why):
    text = re.sub(re.escape(base), str(seed), text)
    if kind == "wrong" and not why and not g.refused:
        judge(args, base, g, nodes, flags)  # leaves model and inputs
        np.savez(base + ".out.npz", **{o: g.value(o) for n in nodes for o in n.outs if o in g.tensors})
    elif not (kind == "wrong" and not why):
        for end in (".onnx", ".in.npz", ".npz", ".out.npz"):
            if os.path.exists(base + end):
                os.unlink(base + end)
    if kind == "wrong" and why:
        kind, text = "known", why
    return seed, kind, "+".join(n.op for n in nodes), f"{' '.join(flags)} | {' ; '.join(signature(n, g) for n in nodes)} | {text}"


def work(args, seeds, out):
    for s in seeds:
        try:
            out.send(try_one(args, s))
        except Exception:  # the generator's own fault
            out.send((s, "wrong", NAMES[s % len(NAMES)], traceback.format_exc(limit=-3)))


def results(args, seeds):
    """What try_one gives for all seeds.  Where onnxruntime crashes it takes a process with it: another
    goes on after that seed."""
    todo = {}  # connection -> what its process has yet to say

    def start(mine):
        if mine:
            ours, theirs = multiprocessing.Pipe(False)
            multiprocessing.Process(target=work, args=(args, mine, theirs), daemon=True).start()
            theirs.close()
            todo[ours] = mine
    for i in range(args.jobs):
        start(seeds[i::args.jobs])
    while todo:
        for conn in multiprocessing.connection.wait(list(todo)):
            mine = todo[conn]
            try:
                yield conn.recv()
                mine.pop(0)
            except EOFError:
                del todo[conn]
                if mine:
                    s = mine.pop(0)
                    yield s, "lacking", NAMES[s % len(NAMES)], "onnxruntime crashes"
                start(mine)


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("tvmcc")
    p.add_argument("--count", type=int, default=5000)
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--jobs", type=int, default=2)
    p.add_argument("--only", help="operators, with commas")
    p.add_argument("--keep")
    p.add_argument("-v", action="store_true", help="say also what was not judged, and why")
    args = p.parse_args()
    args.keep = args.keep or tempfile.mkdtemp(prefix="random_graphs.")
    os.makedirs(args.keep, exist_ok=True)
    seeds = range(args.seed, args.seed + args.count)
    if args.only:
        seeds = [s for s in seeds if NAMES[s % len(NAMES)] in args.only.split(",")]
    counts, skipped = collections.Counter(), collections.Counter()
    for seed, kind, op, text in results(args, list(seeds)):
        counts[kind] += 1
        if kind == "wrong":
            print(f"FAIL seed {seed}: {op}: {text}", flush=True)
        elif kind != "agree":
            skipped[kind, op, re.sub(r"^.*\| ", "", text)[:140]] += 1
    for (kind, op, text), n in sorted(skipped.items()):
        if args.v or kind == "known":
            print(f"{kind}: {n} x {op}: {text}")
    print(f"{counts['agree']} graphs agree, {counts['wrong']} differ, {counts['known']} differ for a known reason, "
          f"{counts['refused']} are of what we do not have, {counts['lacking']} of what onnxruntime lacks; {args.keep}")
    sys.exit(counts["wrong"] > 0)


if __name__ == "__main__":
    main()
