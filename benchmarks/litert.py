#!/usr/bin/env python3
"""Models of TensorFlow Lite against LiteRT, and against the same networks in ONNX.

    litert.py WORK [FILE.tflite..] [--models NAME..] [--tvmcc FILE] [--mcpu CPU] [--threads N] [--turns N]

Measured are the files, and networks of models.py in both forms: as models.py writes them, and as converters write .tflite files: NHWC,
normalization in the weights, activations in the operators before them.  LiteRT runs as its Python interface begins it, with XNNPACK.
All run in turns, a figure is the least of all turns in ms, of one thread in processor time.  `to LiteRT`: its time by tvmcc's, above 1 tvmcc is faster; `to ONNX`: tvmcc's
time of the .tflite file by that of the .onnx file.

Needs ai-edge-litert, flatbuffers, onnx and numpy.
"""
import argparse
import os
import subprocess
import sys
import time

import numpy as np
from onnx import helper, numpy_helper

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "../tests/frontends/tflite"))

import engines  # pylint: disable=wrong-import-position
import models  # pylint: disable=wrong-import-position
from ai_edge_litert.interpreter import Interpreter  # pylint: disable=wrong-import-position
from make_model import Model  # pylint: disable=wrong-import-position

ACTIVATIONS = {"": 0, "Relu": 1, "Clip": 3}  # Clip: of models.py, to 6


class Converter:
    """Of ONNX models that hold what images are classified by."""

    def __init__(self, m):
        self.graph, self.m = m.graph, Model()
        self.shape = {v.name: [d.dim_value for d in v.type.tensor_type.shape.dim] for v in (*m.graph.input, *m.graph.value_info)}
        self.value = {t.name: numpy_helper.to_array(t) for t in m.graph.initializer}
        self.readers = {}
        for n in m.graph.node:
            for x in n.input:
                self.readers.setdefault(x, []).append(n)
        self.done, self.at = set(), {}

    def dims(self, name):
        s = self.shape[name]
        return [s[0], s[2], s[3], s[1]] if len(s) == 4 else s

    def following(self, name, kind):
        """The node of that kind that alone reads it."""
        n = self.readers.get(name, [])
        return n[0] if len(n) == 1 and n[0].op_type == kind else None

    def finish(self, n, out):
        """What comes of n and of the activation behind it: where it goes, and the activation."""
        for kind in ("Relu", "Clip"):
            act = self.following(out, kind)
            if act:
                self.done.add(act.name)
                self.at[act.output[0]] = to = self.m.tensor(act.output[0], self.dims(act.output[0]))
                return to, ACTIVATIONS[kind]
        self.at[out] = to = self.m.tensor(out, self.dims(out))
        return to, 0

    def padded(self, x, shape, pads, value=None):
        if not any(pads):
            return x
        width = np.int32([[0, 0], [pads[0], pads[2]], [pads[1], pads[3]], [0, 0]])
        shape = [s + w.sum() for s, w in zip(shape, width)]
        y = self.m.tensor(f"pad{len(self.m.graph.tensors)}", shape)
        if value is None:
            self.m.op("PAD", [x, self.m.const(width)], y, "PadOptions")
        else:
            self.m.op("PADV2", [x, self.m.const(width), self.m.const(np.float32(value))], y, "PadV2Options")
        return y

    def conv(self, n, a):
        w, out = self.value[n.input[1]], n.output[0]
        bias = self.value[n.input[2]] if len(n.input) > 2 else np.zeros(len(w), np.float32)
        norm = self.following(out, "BatchNormalization")
        if norm:
            scale, shift, mean, var = (self.value[x] for x in norm.input[1:])
            scale = scale / np.sqrt(var + {x.name: x.f for x in norm.attribute}["epsilon"])
            w, bias, out = w * scale[:, None, None, None], (bias - mean) * scale + shift, norm.output[0]
            self.done.add(norm.name)
        x, shape, (s, _), pads, k = self.at[n.input[0]], self.dims(n.input[0]), a["strides"], a["pads"], w.shape[2]
        same = s == 1 and all(p == k // 2 for p in pads)  # with larger strides the format has other cells padded
        if not same:
            x = self.padded(x, shape, pads)
        to, act = self.finish(n, out)
        how = dict(padding=0 if same else 1, strideW=s, strideH=s, fusedActivationFunction=act)
        depthwise = a["group"] > 1
        w = w.transpose(1, 2, 3, 0) if depthwise else w.transpose(0, 2, 3, 1)
        ins = [x, self.m.const(w.astype(np.float32)), self.m.const(bias.astype(np.float32))]
        if depthwise:
            self.m.op("DEPTHWISE_CONV_2D", ins, to, "DepthwiseConv2DOptions", depthMultiplier=1, **how)
        else:
            self.m.op("CONV_2D", ins, to, "Conv2DOptions", **how)

    def node(self, n):
        a = {x.name: helper.get_attribute_value(x) for x in n.attribute}
        out = n.output[0]
        if n.op_type == "Conv":
            self.conv(n, a)
        elif n.op_type == "Add":
            to, act = self.finish(n, out)
            self.m.op("ADD", [self.at[x] for x in n.input], to, "AddOptions", fusedActivationFunction=act)
        elif n.op_type == "MaxPool":
            x = self.padded(self.at[n.input[0]], self.dims(n.input[0]), a["pads"], np.finfo(np.float32).min)
            (k, _), (s, _), (to, act) = a["kernel_shape"], a["strides"], self.finish(n, out)
            self.m.op("MAX_POOL_2D", [x], to, "Pool2DOptions", padding=1, strideW=s, strideH=s, filterWidth=k, filterHeight=k,
                      fusedActivationFunction=act)
        elif n.op_type == "GlobalAveragePool":
            flat = self.following(out, "Flatten")
            self.done.add(flat.name)
            self.at[flat.output[0]] = to = self.m.tensor(out, self.dims(flat.output[0]))
            self.m.op("MEAN", [self.at[n.input[0]], self.m.const(np.int32([1, 2]))], to, "ReducerOptions")
        elif n.op_type == "Gemm":
            to, act = self.finish(n, out)
            self.m.op("FULLY_CONNECTED", [self.at[n.input[0]]] + [self.m.const(self.value[x]) for x in n.input[1:]], to,
                      "FullyConnectedOptions", fusedActivationFunction=act)
        elif n.op_type == "Identity":
            self.m.graph.outputs.append(self.at[n.input[0]])
        else:
            raise ValueError(n.op_type)

    def run(self):
        for v in self.graph.input:
            self.at[v.name] = self.m.input(v.name, self.dims(v.name))
        for n in self.graph.node:
            if n.name not in self.done:
                self.node(n)
        return self.m


def load_litert(path, threads):
    it = Interpreter(path, num_threads=threads)
    it.allocate_tensors()
    for i in it.get_input_details():
        it.set_tensor(i["index"], np.ones(i["shape"], i["dtype"]))
    return it.invoke


class Ones:
    """For inputs of any name."""

    def __getitem__(self, name):
        return 1


def load_tvmcc(args, source):
    folder, name = os.path.split(source)
    stem, form = os.path.splitext(name)
    path = os.path.join(args.work, os.path.basename(folder) + form, stem + ".so")
    os.makedirs(os.path.dirname(path), exist_ok=True)
    subprocess.run([args.tvmcc, source, "-mcpu=" + args.mcpu, "-o", path], check=True)
    return engines.load_tvmcc(path, Ones(), None, args.threads)


def least(args, run, seconds=0.5):
    clock = time.thread_time if args.threads == 1 else time.perf_counter
    best, end = 1e9, time.perf_counter() + seconds
    while time.perf_counter() < end:
        start = clock()
        run()
        best = min(best, clock() - start)
    return 1e3 * best


def measure(args, name, tflite, onnx_path):
    runs = {"litert": load_litert(tflite, args.threads), "tvmcc": load_tvmcc(args, tflite)}
    if onnx_path:
        runs["onnx"] = load_tvmcc(args, onnx_path)
    t = dict.fromkeys(runs, 1e9)
    for _ in range(args.turns):
        for key, run in runs.items():
            t[key] = min(t[key], least(args, run))
    print(f"| {name} | {t['tvmcc'] / t['onnx']:.2f} |" if onnx_path else f"| {name} | - |",
          f"{t['litert'] / t['tvmcc']:.2f} | {t['tvmcc']:.3g} | {t['litert']:.3g} |", flush=True)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("work")
    p.add_argument("files", nargs="*")
    p.add_argument("--models", nargs="*", default=["mobilenet_v1", "resnet50"])
    p.add_argument("--tvmcc", default=os.path.join(HERE, "../build/release/bin/tvmcc"))
    p.add_argument("--mcpu", default="native")
    p.add_argument("--threads", type=int, default=1)
    p.add_argument("--turns", type=int, default=5)
    args = p.parse_args()
    os.makedirs(args.work, exist_ok=True)
    engines.build_runtime(args.work)
    print("| model | to ONNX | to LiteRT | tvmcc | LiteRT |\n|---|---:|---:|---:|---:|")
    for path in args.files:
        measure(args, os.path.basename(os.path.dirname(path)) or path, path, None)
    for name in args.models:
        base = os.path.join(args.work, name)
        g = getattr(models, name)()
        m = g.model()
        with open(base + ".onnx", "wb") as f:
            f.write(m.SerializeToString())
        Converter(m).run().save(base + ".tflite")
        measure(args, name, base + ".tflite", base + ".onnx")


if __name__ == "__main__":
    main()
