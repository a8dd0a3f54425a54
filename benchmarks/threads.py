#!/usr/bin/env python3
"""Is any model slower on two threads than on one?  A ladder of small networks, and models that are given.

    threads.py TVMCC [--kernels] [--gap US,..] [--blocks N] [KIND|MODEL.onnx[,OPTION..]...]

(needs numpy, onnx and a C compiler.)  Compiles each with -mcpu=native, runs it on one thread and on the two of a pool in
turns, 3 ms each (benchmarks/threads.c), and prints medians in microseconds and the median of the ratios; nine of ten
blocks were below the last number.  With a gap each run comes after a sleep, as in a program that has something else to do: then
the pool's threads sleep too.  No row should say LOSES, also while others use the machine; a figure of one run on
such a machine means little, so rows that lose are measured again, twice as long, up to three times.

--kernels: chains of eight equal kernels instead, in nanoseconds a kernel, to see from what size on a kernel is worth
dividing (docs/design/schedules.md, "Small work")."""
import argparse
import os
import subprocess
import sys
import tempfile

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

LAYERS = 8
RNG = np.random.default_rng(0)
HERE = os.path.dirname(os.path.abspath(__file__))


def save(path, nodes, inits, shape, outputs):
    def value(name, dims):
        return helper.make_tensor_value_info(name, TensorProto.FLOAT, dims)
    graph = helper.make_graph(nodes, "chain", [value("x", shape)], [value(o, None) for o in outputs], inits)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    onnx.save(onnx.shape_inference.infer_shapes(model), path)


def chain(path, shape, layer, all_outputs=False, layers=LAYERS):
    nodes, inits, x = [], [], "x"
    for i in range(layers):
        layer(i, x, nodes, inits)
        x = f"y{i}"
    save(path, nodes, inits, shape, [f"y{i}" for i in range(layers)] if all_outputs else [x])


def weight(inits, name, *dims):
    w = RNG.standard_normal(dims) / np.sqrt(np.prod(dims[1:]))
    inits.append(numpy_helper.from_array(w.astype(np.float32), name))
    return name


def conv(path, c, s, k, groups, layers=LAYERS):
    def layer(i, x, nodes, inits):
        w = weight(inits, f"w{i}", c, c // groups, k, k)
        nodes.append(helper.make_node("Conv", [x, w], [f"c{i}"], pads=[k // 2] * 4, group=groups))
        nodes.append(helper.make_node("Relu", [f"c{i}"], [f"y{i}"]))
    chain(path, [1, c, s, s], layer, layers=layers)


def dense(path, n, k, layers=LAYERS):
    def layer(i, x, nodes, inits):
        nodes.append(helper.make_node("Gemm", [x, weight(inits, f"w{i}", k, k)], [f"c{i}"]))
        nodes.append(helper.make_node("Relu", [f"c{i}"], [f"y{i}"]))
    chain(path, [n, k], layer, layers=layers)


def unary(path, op, n, k, layers=LAYERS, **attrs):
    def layer(i, x, nodes, _):
        nodes.append(helper.make_node(op, [x], [f"y{i}"], **attrs))
    chain(path, [n, k], layer, all_outputs=op != "Softmax", layers=layers)


def pool(path, c, s, layers=2):
    def layer(i, x, nodes, _):
        nodes.append(helper.make_node("MaxPool", [x], [f"y{i}"], kernel_shape=[3, 3], strides=[2, 2]))
    chain(path, [1, c, s, s], layer, layers=layers)


def lstm(path, steps, h):
    def layer(i, x, nodes, inits):
        w, r = weight(inits, f"w{i}", 1, 4 * h, h), weight(inits, f"r{i}", 1, 4 * h, h)
        nodes.append(helper.make_node("LSTM", [x, w, r], [f"s{i}"], hidden_size=h))
        inits.append(numpy_helper.from_array(np.array([1], np.int64), f"a{i}"))
        nodes.append(helper.make_node("Squeeze", [f"s{i}", f"a{i}"], [f"y{i}"]))
    chain(path, [steps, 1, h], layer, layers=1)


def attention(path, rows, heads, k):
    """Self-attention of one layer: three products, scores, softmax, values, a product."""
    nodes, inits, d = [], [], heads * k
    inits.append(numpy_helper.from_array(np.array([rows, heads, k], np.int64), "split"))
    inits.append(numpy_helper.from_array(np.array([rows, d], np.int64), "join"))
    for name, perm in (("q", [1, 0, 2]), ("k", [1, 2, 0]), ("v", [1, 0, 2])):
        nodes.append(helper.make_node("MatMul", ["x", weight(inits, f"w{name}", d, d)], [f"{name}0"]))
        nodes.append(helper.make_node("Reshape", [f"{name}0", "split"], [f"{name}1"]))
        nodes.append(helper.make_node("Transpose", [f"{name}1"], [name], perm=perm))
    nodes += [helper.make_node("MatMul", ["q", "k"], ["s"]), helper.make_node("Softmax", ["s"], ["p"], axis=-1),
              helper.make_node("MatMul", ["p", "v"], ["o"]), helper.make_node("Transpose", ["o"], ["t"], perm=[1, 0, 2]),
              helper.make_node("Reshape", ["t", "join"], ["j"]),
              helper.make_node("MatMul", ["j", weight(inits, "wo", d, d)], ["y"])]
    save(path, nodes, inits, [rows, d], ["y"])


# From a thousand to three million multiply-adds.
LADDER = {
    "dense": [(f"{n}x{k} {m} layers", lambda p, n=n, k=k, m=m: dense(p, n, k, m))
              for n, k, m in ((1, 32, 1), (1, 64, 3), (1, 128, 3), (1, 256, 4), (1, 512, 4), (8, 128, 4), (32, 160, 3))],
    "conv": [(f"{c}x{s}x{s} {m} layers", lambda p, c=c, s=s, m=m: conv(p, c, s, 3, 1, m))
             for c, s, m in ((8, 4, 1), (8, 8, 2), (16, 8, 3), (16, 14, 3), (32, 14, 2), (32, 14, 4))],
    "depthwise": [(f"{c}x{s}x{s} {m} layers", lambda p, c=c, s=s, m=m: conv(p, c, s, 3, c, m))
                  for c, s, m in ((16, 8, 2), (32, 14, 4), (64, 28, 4))],
    "lstm": [(f"{t} steps of {h}", lambda p, t=t, h=h: lstm(p, t, h))
             for t, h in ((1, 64), (4, 32), (16, 64), (2, 128), (4, 256), (16, 128))],
    "attention": [(f"{n} rows, {h} heads of {k}", lambda p, n=n, h=h, k=k: attention(p, n, h, k))
                  for n, h, k in ((4, 2, 16), (16, 4, 16), (32, 4, 32), (64, 4, 32))],
    "elementwise": [(f"{op} {n}x128", lambda p, op=op, n=n: unary(p, op, n, 128, 4))
                    for op, n in (("Neg", 8), ("Sigmoid", 16), ("Sigmoid", 64), ("Neg", 512))],
    "pooling": [(f"{c}x{s}x{s}", lambda p, c=c, s=s: pool(p, c, s)) for c, s in ((8, 16), (32, 32), (64, 64))],
}

KERNELS = {
    "1x1": [(f"{c}x{s}x{s}", lambda p, c=c, s=s: conv(p, c, s, 1, 1))
            for c, s in ((16, 7), (16, 14), (32, 7), (32, 10), (32, 14), (64, 7), (64, 14), (128, 7))],
    "3x3": [(f"{c}x{s}x{s}", lambda p, c=c, s=s: conv(p, c, s, 3, 1))
            for c, s in ((16, 4), (16, 7), (16, 10), (16, 14), (32, 7), (64, 4))],
    "depthwise": [(f"{c}x{s}x{s}", lambda p, c=c, s=s: conv(p, c, s, 3, c))
                  for c, s in ((16, 14), (16, 28), (16, 40), (64, 7), (64, 14), (128, 7))],
    "dense": [(f"{n}x{k}", lambda p, n=n, k=k: dense(p, n, k))
              for n, k in ((1, 64), (1, 128), (1, 192), (1, 256), (1, 384), (16, 64), (32, 64), (64, 64))],
    "softmax": [(f"{n}x{k}", lambda p, n=n, k=k: unary(p, "Softmax", n, k, axis=-1))
                for n, k in ((4, 64), (8, 64), (16, 64), (32, 64), (64, 64), (64, 256))],
    "elementwise": [(f"{op} {n}x128", lambda p, op=op, n=n: unary(p, op, n, 128))
                    for op in ("Neg", "Sigmoid") for n in (8, 32, 64, 128, 256, 512)],
}


def measure(folder, library, blocks, gap):
    """one, two, ratio, worst; again and longer if it seems to lose."""
    for _ in range(4):
        said = subprocess.run([f"{folder}/threads", library, "net", str(blocks), str(gap)], check=True,
                              capture_output=True, text=True).stdout
        found = [float(word) for word in said.split()]
        if found[2] <= 1.03:
            break
        blocks *= 2
    return found


def main():
    args = argparse.ArgumentParser(usage=__doc__)
    args.add_argument("tvmcc")
    args.add_argument("what", nargs="*")
    args.add_argument("--kernels", action="store_true")
    args.add_argument("--gap", default="0,1000")
    args.add_argument("--blocks", type=int, default=40)
    args = args.parse_args()
    table = KERNELS if args.kernels else LADDER
    root, lost, rows = os.path.dirname(HERE), 0, []
    for word in args.what or table:
        if word in table:
            rows += [(word, name, make, []) for name, make in table[word]]
        elif os.path.isfile(word.split(",")[0]):
            path, *options = word.split(",")
            rows.append(("model", os.path.basename(os.path.dirname(os.path.abspath(path))), path, options))
        else:
            sys.exit(f"no kind and no file: {word}")
    with tempfile.TemporaryDirectory() as folder:
        runtime = [f"{root}/runtime/{f}.c" for f in ("load", "tensor", "thread")]
        subprocess.run(["cc", "-O2", f"-I{root}/include", f"{HERE}/threads.c", *runtime, "-o", f"{folder}/threads",
                        "-lpthread", "-ldl"], check=True)
        unit = "ns a kernel" if args.kernels else "us"
        print(f"{'':12s} {'':24s} {'gap':>6s} {'one':>9s} {'two':>9s} {unit}  ratio  9 of 10")
        for kind, name, make, options in rows:
            model = make if kind == "model" else f"{folder}/net.onnx"
            if kind != "model":
                make(model)
            subprocess.run([args.tvmcc, model, "-mcpu=native", "--entry=net", "--emit=so", "-o", f"{folder}/libnet.so",
                            *options], check=True, stderr=subprocess.DEVNULL)
            for gap in (0,) if args.kernels else [int(g) for g in args.gap.split(",")]:
                one, two, ratio, worst = measure(folder, f"{folder}/libnet.so", args.blocks, gap)
                scale = 1000 / LAYERS if args.kernels else 1
                loses = ratio > 1.03
                lost += loses
                print(f"{kind:12s} {name:24s} {gap:6d} {one * scale:9.1f} {two * scale:9.1f}     {ratio:6.3f} {worst:6.3f} "
                      f"{'LOSES' if loses else ''}", flush=True)
    print(f"{lost} of {len(rows)} models lose")


if __name__ == "__main__":
    main()
