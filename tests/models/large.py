#!/usr/bin/env python3
"""A model of 2.7 GB as an object, a library, an archive, and run, against numpy: large.py TVMCC [FOLDER]. Needs onnx and numpy.

Weights in a file of their own, or in an archive of these, may be mapped, but are never memory of the process: it may have less than
they are.

One file holds all of its weights, one tensor more than 2 GiB of them; most of that is a hole, so that the file takes little room on
a disk, but products have it as zeros: 8 GiB have to be free in FOLDER (build/large), which is removed again.
"""
import os
import resource
import shutil
import subprocess
import sys

import numpy as np
import onnx
from onnx import TensorProto as T, helper as h

ROWS, WIDTH, COLUMNS = 81920, 8192, 16
FREE = 8 << 30
DATA = 3 << 29  # bytes that a process may have which maps the weights
USED = [0, 1, 777, 70000, ROWS - 1]  # rows of the table that are not zero


def external(name, shape, offset):
    t = T(name=name, data_type=T.FLOAT, dims=shape, data_location=T.EXTERNAL)
    for key, value in (("location", "weights.bin"), ("offset", offset), ("length", 4 * int(np.prod(shape)))):
        t.external_data.add(key=key, value=str(value))
    return t


def make(folder):
    """net.onnx: rows of a table, times a matrix, plus a bias; in.npz and out.npz."""
    rng = np.random.default_rng(1)
    table, matrix = 4 * ROWS * WIDTH, 4 * WIDTH * COLUMNS
    path = os.path.join(folder, "weights.bin")
    with open(path, "wb") as f:
        f.truncate(table)
        f.seek(table)
        f.write(rng.standard_normal((WIDTH + 1) * COLUMNS, dtype=np.float32).tobytes())
    rows = np.memmap(path, np.float32, "r+", shape=(ROWS, WIDTH))
    for i in USED:
        rows[i] = rng.standard_normal(WIDTH, dtype=np.float32)
    rows.flush()
    rest = np.fromfile(path, np.float32, offset=table)
    ids = np.array(USED[1:], np.int64)
    y = rows[ids].astype(np.float64) @ rest[:-COLUMNS].reshape(WIDTH, COLUMNS) + rest[-COLUMNS:]
    np.savez(os.path.join(folder, "in.npz"), ids=ids)
    np.savez(os.path.join(folder, "out.npz"), y=y.astype(np.float32))
    nodes = [h.make_node("Gather", ["table", "ids"], ["e"]), h.make_node("MatMul", ["e", "m"], ["t"]),
             h.make_node("Add", ["t", "b"], ["y"])]
    graph = h.make_graph(nodes, "large", [h.make_tensor_value_info("ids", T.INT64, ids.shape)],
                         [h.make_tensor_value_info("y", T.FLOAT, y.shape)],
                         [external("table", [ROWS, WIDTH], 0), external("m", [WIDTH, COLUMNS], table),
                          external("b", [COLUMNS], table + matrix)])
    onnx.save(h.make_model(graph, opset_imports=[h.make_opsetid("", 17)], ir_version=8), os.path.join(folder, "net.onnx"))


def call(folder, *args, data=resource.RLIM_INFINITY):
    """With so many bytes of memory that is no mapped file at most."""
    child = subprocess.Popen(args, cwd=folder, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_DATA, (data, data)))
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    print(f"{' '.join(args[1:])}: {usage.ru_utime + usage.ru_stime:.1f} s, {usage.ru_maxrss / 1024:.0f} MiB", flush=True)
    if child.returncode:
        sys.exit(f"FAILED: status {child.returncode}")
    return usage.ru_maxrss / 1024  # MiB, of mapped files, too


def main():
    tvmcc = os.path.abspath(sys.argv[1])
    folder = os.path.abspath(sys.argv[2] if len(sys.argv) > 2 else "build/large")
    options, values = ["-mcpu=native", "-fno-cache"], ["--inputs", "in.npz", "--expect", "out.npz"]
    os.makedirs(folder, exist_ok=True)
    if shutil.disk_usage(folder).free < FREE:
        sys.exit(f"FAILED: less than {FREE >> 30} GiB are free at {folder}")
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    try:
        make(folder)
        peak = call(folder, tvmcc, "-c", "net.onnx", *options, "-fweights=file", "-o", "net.o")
        if peak > 512:
            sys.exit("FAILED: the weights were in memory as a whole")
        os.remove(os.path.join(folder, "net.weights"))
        for data, product, *more in ((resource.RLIM_INFINITY, "net.so"), (DATA, "net.tar", "-fweights=file")):
            call(folder, tvmcc, "net.onnx", *options, *more, "-o", product, data=data)
            call(folder, tvmcc, "run", product, *values, data=data)
            os.remove(os.path.join(folder, product))
        call(folder, tvmcc, "run", "net.onnx", *options, *values)
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
