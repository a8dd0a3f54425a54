#!/usr/bin/env python3
"""How quantized operators compute: a table of those in the step_* and words_* models, each compiled alone.

    integers.py TVMCC [NAME ..]        those models alone

For each operator: how many values in floats its formulas have, and how far results are from those of LiteRT's reference
kernels: cells that differ, and by how many steps at most.
"""
import glob
import importlib
import os
import re
import subprocess
import sys
import tempfile

import numpy as np

from cases import MODELS, rng_of
from make_model import HERE

FLOAT = re.compile(r"^\s+%(?!k[.\d]*:)\S.*: f(16|32|64) = ")


def tvmcc(program, *args):
    return subprocess.run([program, *args], capture_output=True, text=True, check=False)


def alone(m, i):
    """The model with its operator i only, which reads the model's inputs and constants; None: it reads others' results."""
    op = m.graph.operators[i]
    given = set(m.graph.inputs) | {k for k, t in enumerate(m.graph.tensors) if t.buffer or t.isVariable}
    if any(k >= 0 and k not in given for k in op.inputs):
        return None
    m.graph.operators, m.model_t.operatorCodes, op.opcodeIndex = [op], [m.model_t.operatorCodes[op.opcodeIndex]], 0
    m.graph.inputs = [k for k in m.graph.inputs if k in set(op.inputs)]
    m.graph.outputs = list(op.outputs)
    return m


def distance(a, b):
    if a.shape != b.shape or a.dtype != b.dtype:
        return f"{b.dtype}{list(b.shape)} for {a.dtype}{list(a.shape)}"
    if a.dtype.kind == "f":
        return f"{np.abs(a - b).max():.3g}"
    d = np.abs(a.astype(np.int64) - b.astype(np.int64))
    return "exact" if not d.any() else f"{(d > 0).sum()}/{d.size} by {d.max()}"


def row(program, folder, name, i):
    m, *feeds = MODELS[name](rng_of(name))
    tensor = m.graph.tensors
    feeds = dict(zip(m.graph.inputs, feeds))
    code = next(k for k, n in m.codes.items() if n == m.graph.operators[i].opcodeIndex)[0]
    out = tensor[m.graph.operators[i].outputs[0]].name
    if not alone(m, i):
        return f"{name:24} {code:28} {out:20} -"
    try:
        want = m.run([feeds[k] for k in m.graph.inputs])
    except Exception as e:  # pylint: disable=broad-except
        return f"{name:24} {code:28} {out:20} no result: {str(e).splitlines()[0][:90]}"
    path = os.path.join(folder, "m.tflite")
    m.save(path)
    np.savez(os.path.join(folder, "in.npz"), **{tensor[k].name: feeds[k] for k in m.graph.inputs})
    te = tvmcc(program, path, "-mcpu=haswell", "-Wno-dim-default", "--emit=te", "-o", "-")
    ran = tvmcc(program, "run", path, "-mcpu=haswell", "--inputs", os.path.join(folder, "in.npz"), "--outputs", os.path.join(folder, "out.npz"))
    if te.returncode or ran.returncode:
        return f"{name:24} {code:28} {out:20} {(te.stderr or ran.stderr).splitlines()[0]}"
    floats = sum(bool(FLOAT.match(s)) for s in te.stdout.splitlines())
    got = np.load(os.path.join(folder, "out.npz"))
    return f"{name:24} {code:28} {out:20} floats {floats:2}  {'; '.join(distance(v, got[k]) for k, v in want.items())}"


def main():
    for path in sorted(glob.glob(os.path.join(HERE, "ops_*.py"))):
        importlib.import_module(os.path.basename(path)[:-3])
    names = sys.argv[2:] or [n for n in MODELS if n.startswith(("step_", "words_"))]
    with tempfile.TemporaryDirectory() as folder:
        for name in names:
            for i in range(len(MODELS[name](rng_of(name))[0].graph.operators)):
                print(row(sys.argv[1], folder, name, i), flush=True)


if __name__ == "__main__":
    main()
