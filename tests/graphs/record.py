#!/usr/bin/env python3
"""Writes recorded.zip, which replay.py needs no package for: record.py [SEEDS].

Each line of the file SEEDS (default: recorded.txt) is the seed of a graph and what it is kept for.  What the
archive has already stays as it is, since another generator makes another graph of a seed.  The archive
holds N.onnx, its inputs N.in.npz, onnxruntime's outputs N.out.npz and, as `allow.NAME`, how far each number
may be off where that is not 0.
"""
import io
import os
import sys
import zipfile

import numpy as np
from random_graphs import allowed, build

HERE = os.path.dirname(os.path.abspath(__file__))


def npz(arrays):
    """Without the time that numpy.savez writes."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as z:
        for name, value in arrays.items():
            b = io.BytesIO()
            np.lib.format.write_array(b, np.asanyarray(value), allow_pickle=False)
            z.writestr(zipfile.ZipInfo(name + ".npy"), b.getvalue())
    return out.getvalue()


def recorded(seed):
    """The files of a graph."""
    g = build(int(seed))
    outs = [o for n in g.nodes for o in n.outs if o in g.tensors]
    model = g.model(g.nodes, outs)
    results = {o: g.value(o) for o in outs}
    for o in outs:
        allow = allowed(g.tensors[o])
        if allow.any():
            results["allow." + o] = allow.astype(np.float32)
    return {seed + ".onnx": model.SerializeToString(deterministic=True), seed + ".in.npz": npz(g.feeds(model)),
            seed + ".out.npz": npz(results)}


def main():
    seeds = sys.argv[1] if len(sys.argv) > 1 else os.path.join(HERE, "recorded.txt")
    archive = os.path.join(HERE, "recorded.zip")
    old = {}
    if os.path.exists(archive):
        with zipfile.ZipFile(archive) as z:
            old = {n: z.read(n) for n in z.namelist()}
    with open(seeds) as f, zipfile.ZipFile(archive, "w") as z:
        for line in f:
            if line.startswith("#") or not line.strip():
                continue
            seed = line.split()[0]
            mine = {n: data for n, data in old.items() if n.split(".")[0] == seed} or recorded(seed)
            for name, data in mine.items():
                z.writestr(zipfile.ZipInfo(name), data, zipfile.ZIP_DEFLATED, 9)


if __name__ == "__main__":
    main()
