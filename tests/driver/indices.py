#!/usr/bin/env python3
"""Indices that lie outside: indices.py TVMCC MODELS FOLDER

Gather and Scatter of ONNX with every kind of index that is outside its dimension, known only at run time: each
counts modulo the extent, as docs/abi.md says.  `run` puts tensors between pages that cannot be touched, and looks
at what lies beside them afterwards, so a read or write elsewhere ends it.
"""
import os
import struct
import subprocess
import sys
import zipfile

tvmcc, models, folder = sys.argv[1:]
EXTENT, WIDTH, COUNT = 5, 3, 18


def npy(kind, shape, values):
    head = "{'descr': '%s', 'fortran_order': False, 'shape': %s, }" % ({"f": "<f4", "i": "<i4", "q": "<i8"}[kind],
                                                                       tuple(shape))
    head += " " * (-(len(head) + 11) % 64) + "\n"
    return b"\x93NUMPY\1\0" + struct.pack("<H", len(head)) + head.encode() + struct.pack(f"<{len(values)}{kind}", *values)


def floats(npz, name):
    data = zipfile.ZipFile(npz).read(name + ".npy")
    data = data[10 + struct.unpack_from("<H", data, 8)[0]:]
    return list(struct.unpack(f"<{len(data) // 4}f", data))


def indices(bits):
    lo, hi = -(1 << (bits - 1)), (1 << (bits - 1)) - 1
    out = [lo, lo + 1, lo // 2 - 1, lo // 2, -(1 << 20), -EXTENT - 2, -EXTENT - 1, -EXTENT, -1, 0, EXTENT - 1, EXTENT,
           EXTENT + 1, 1 << 20, hi // 2, hi // 2 + 1, hi - 1, hi]
    assert len(out) == COUNT
    return out


def run(op, bits, level):
    at = indices(bits)
    x = [float(i + 1) for i in range(EXTENT * WIDTH)]
    u = [float(i + 100) for i in range(COUNT * WIDTH)]
    each = op.endswith("elements")
    flat = [i for i in at for _ in range(WIDTH)] if each else at
    shape = [COUNT, WIDTH] if each else [COUNT, 1] if op.endswith("nd") else [COUNT]
    row = lambda k: x[k % EXTENT * WIDTH:k % EXTENT * WIDTH + WIDTH]
    scatter = op.startswith("scatter")
    if scatter:
        want = list(x)
        for n, k in enumerate(at):
            for j in range(WIDTH):
                want[k % EXTENT * WIDTH + j] += u[n * WIDTH + j]
    else:
        want = [v for k in at for v in row(k)]
    inputs, outputs = os.path.join(folder, "in.npz"), os.path.join(folder, "out.npz")
    with zipfile.ZipFile(inputs, "w") as z:
        z.writestr("x.npy", npy("f", [EXTENT, WIDTH], x))
        z.writestr("i.npy", npy("i" if bits == 32 else "q", shape, flat))
        if scatter:
            z.writestr("u.npy", npy("f", [COUNT, WIDTH], u))
    done = subprocess.run([tvmcc, "run", os.path.join(models, f"index_{op}_i{bits}.onnx"), level, "--inputs", inputs,
                           "-o", outputs], capture_output=True, text=True, timeout=60)
    if done.returncode:
        return f"status {done.returncode}: {done.stderr.strip()}"
    got = floats(outputs, "y")
    return "" if got == want else f"{got}, not {want}"


os.makedirs(folder, exist_ok=True)
failures = 0
for op in "gather", "gather_elements", "gather_nd", "scatter_elements", "scatter_nd":
    for bits in 32, 64:
        for level in "-O0", "-O3":
            why = run(op, bits, level)
            if why:
                print(f"FAILED: {op} of {bits} bits, {level}: {why}")
                failures += 1
sys.exit(failures > 0)
