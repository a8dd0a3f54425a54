#!/usr/bin/env python3
"""From what size on are two threads faster than one?  Chains of equal small kernels.

    threads.py TVMCC [KIND...]     (needs numpy and onnx; the machine to itself)

Writes models of eight equal layers (1x1, 3x3 and depthwise convolutions, dense layers of one row, softmax, elementwise
functions whose results are all outputs, so that they are not fused), times them with `tvmcc bench` on one thread and on
two in turns, and prints nanoseconds a kernel.  No row should say LOSES: kernels that are too short for two threads are
not divided (docs/design/schedules.md, "Small work")."""
import json
import subprocess
import sys
import tempfile

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

LAYERS, ROUNDS = 8, 3
RNG = np.random.default_rng(0)


def save(path, nodes, inits, shape, outputs):
    def value(name):
        return helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)
    graph = helper.make_graph(nodes, "chain", [value("x")], [value(o) for o in outputs], inits)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8), path)


def chain(path, shape, layer, all_outputs=False):
    nodes, inits, x = [], [], "x"
    for i in range(LAYERS):
        layer(i, x, nodes, inits)
        x = f"y{i}"
    save(path, nodes, inits, shape, [f"y{i}" for i in range(LAYERS)] if all_outputs else [x])


def weight(inits, name, *dims):
    w = RNG.standard_normal(dims) / np.sqrt(np.prod(dims[1:]))
    inits.append(numpy_helper.from_array(w.astype(np.float32), name))
    return name


def conv(path, c, s, k, groups):
    def layer(i, x, nodes, inits):
        w = weight(inits, f"w{i}", c, c // groups, k, k)
        nodes.append(helper.make_node("Conv", [x, w], [f"c{i}"], pads=[k // 2] * 4, group=groups))
        nodes.append(helper.make_node("Relu", [f"c{i}"], [f"y{i}"]))
    chain(path, [1, c, s, s], layer)


def dense(path, n, k):
    def layer(i, x, nodes, inits):
        nodes.append(helper.make_node("Gemm", [x, weight(inits, f"w{i}", k, k)], [f"c{i}"]))
        nodes.append(helper.make_node("Relu", [f"c{i}"], [f"y{i}"]))
    chain(path, [n, k], layer)


def unary(path, op, n, k, **attrs):
    def layer(i, x, nodes, _):
        nodes.append(helper.make_node(op, [x], [f"y{i}"], **attrs))
    chain(path, [n, k], layer, all_outputs=op != "Softmax")


CASES = {
    "1x1": [("%dx%dx%d" % (c, s, s), lambda p, c=c, s=s: conv(p, c, s, 1, 1))
            for c, s in ((16, 7), (16, 14), (32, 7), (32, 10), (32, 14), (64, 7), (64, 14), (128, 7))],
    "3x3": [("%dx%dx%d" % (c, s, s), lambda p, c=c, s=s: conv(p, c, s, 3, 1))
            for c, s in ((16, 4), (16, 7), (16, 10), (16, 14), (32, 7), (64, 4))],
    "depthwise": [("%dx%dx%d" % (c, s, s), lambda p, c=c, s=s: conv(p, c, s, 3, c))
                  for c, s in ((16, 14), (16, 28), (16, 40), (64, 7), (64, 14), (128, 7))],
    "dense": [("%dx%d" % (n, k), lambda p, n=n, k=k: dense(p, n, k))
              for n, k in ((1, 64), (1, 128), (1, 192), (1, 256), (1, 384), (16, 64), (32, 64), (64, 64))],
    "softmax": [("%dx%d" % (n, k), lambda p, n=n, k=k: unary(p, "Softmax", n, k, axis=-1))
                for n, k in ((4, 64), (8, 64), (16, 64), (32, 64), (64, 64), (64, 256))],
    "elementwise": [("%s %dx128" % (op, n), lambda p, op=op, n=n: unary(p, op, n, 128))
                    for op in ("Neg", "Sigmoid") for n in (8, 32, 64, 128, 256, 512)],
}


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    tvmcc, kinds = sys.argv[1], sys.argv[2:] or list(CASES)
    with tempfile.TemporaryDirectory() as folder:
        for kind in kinds:
            for name, make in CASES[kind]:
                model, best = f"{folder}/chain.onnx", {1: 1e30, 2: 1e30}
                make(model)
                for _ in range(ROUNDS):
                    for threads in best:
                        said = subprocess.run([tvmcc, "bench", model, "-mcpu=native", "--threads", str(threads),
                                               "--json"], check=True, capture_output=True, text=True).stdout
                        best[threads] = min(best[threads], json.loads(said)["ms"]["median"])
                one, two = (best[t] * 1e6 / LAYERS for t in (1, 2))
                print(f"{kind:12s} {name:16s} {one:9.0f} {two:9.0f} ns  {'LOSES' if two > 1.03 * one else ''}")


if __name__ == "__main__":
    main()
