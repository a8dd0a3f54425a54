#!/usr/bin/env python3
"""Writes int8 versions of the models of models.py, for compare.py; and what they lose in accuracy.

    quantize.py MODELS [NAME...]              resnet50 and mobilenet_v2 unless named
    quantize.py --accuracy MODELS WORK [NAME...]

NAME_int8.onnx is the QDQ form that ONNX Runtime's tools write, as people would do it: static ranges
from a few inputs, activations u8, weights i8 with a scale for each channel.  NAME_int8.npz has the
inputs of NAME.npz and what ONNX Runtime gives for them without optimisations; macs.json gets the new
name, so that `compare.py --models resnet50_int8 resnet50` measures it.  Weights and inputs are random
but well scaled (models.py), so accuracy means: how near the float model's outputs are.

--accuracy runs tvmcc, ONNX Runtime and OpenVINO on the int8 model, each on the same random inputs, and
compares with the float model: largest and mean error relative to the largest output, and how often
the largest output is the same one.  WORK is that of compare.py, which has made tvmcc's products.
"""
import json
import os
import sys

import numpy as np

INPUTS = 16
ENGINES = ["tvmcc", "ort", "openvino"]


def arrays(folder, name, prefix):
    values = np.load(os.path.join(folder, name + ".npz"))
    return {k[len(prefix):]: values[k] for k in values if k.startswith(prefix)}


def random_feeds(folder, name, n, seed):
    """Inputs like the model's own: normal where they are floats, the same numbers in another order else."""
    rng, own = np.random.default_rng(seed), arrays(folder, name, "in.")
    for _ in range(n):
        yield {k: rng.standard_normal(v.shape).astype(v.dtype) if v.dtype.kind == "f"
               else rng.permutation(v.ravel()).reshape(v.shape) for k, v in own.items()}


def quantize(folder, name):
    import onnxruntime as ort
    from onnxruntime.quantization import CalibrationDataReader, QuantFormat, QuantType, quantize_static
    from onnxruntime.quantization.shape_inference import quant_pre_process

    class Reader(CalibrationDataReader):
        feeds = random_feeds(folder, name, 4, 7)

        def get_next(self):
            return next(self.feeds, None)

    path = os.path.join(folder, name)
    quant_pre_process(path + ".onnx", path + ".pre.onnx", skip_symbolic_shape=True)
    quantize_static(path + ".pre.onnx", path + "_int8.onnx", Reader(), quant_format=QuantFormat.QDQ, per_channel=True,
                    activation_type=QuantType.QUInt8, weight_type=QuantType.QInt8)
    os.remove(path + ".pre.onnx")
    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    feeds, outs = arrays(folder, name, "in."), list(arrays(folder, name, "out."))
    got = ort.InferenceSession(path + "_int8.onnx", options, providers=["CPUExecutionProvider"]).run(outs, feeds)
    np.savez(path + "_int8.npz", **{"in." + k: v for k, v in feeds.items()}, **{"out." + k: v for k, v in zip(outs, got)})
    known = os.path.join(folder, "macs.json")
    stats = json.load(open(known))
    stats[name + "_int8"] = {**stats[name], "float": name}
    json.dump(stats, open(known, "w"), indent=1)
    print(f"{name}_int8: {os.path.getsize(path + '_int8.onnx') / 1e6:.1f} MB", flush=True)


def accuracy(folder, work, name):
    import engines
    path, outs = os.path.join(folder, name), list(arrays(folder, name, "out."))
    sums = {e: np.zeros(3) for e in ENGINES}
    for feeds in random_feeds(folder, name, INPUTS, 99):
        want = np.asarray(engines.load_ort(path + ".onnx", feeds, outs[:1], 1)()[0])
        for e in ENGINES:
            product = os.path.join(work, name + "_int8.so") if e == "tvmcc" else path + "_int8.onnx"
            got = np.asarray(getattr(engines, "load_" + e)(product, feeds, outs[:1], 1)()[0])
            error = np.abs(got - want) / np.abs(want).max()
            sums[e] += error.max(), error.mean(), got.argmax() == want.argmax()
    for e in ENGINES:
        largest, mean, same = sums[e] / INPUTS
        print(f"| {name}_int8 | {e} | {largest:.4f} | {mean:.4f} | {same:.0%} |", flush=True)


def main():
    if sys.argv[1] == "--accuracy":
        folder, work, names = sys.argv[2], sys.argv[3], sys.argv[4:]
        os.environ.setdefault("TVMCC_RUNTIME", os.path.join(work, "libtvmrt.so"))
        print("| model | engine | largest error | mean error | same largest output |\n|---|---|---:|---:|---:|")
    else:
        folder, names = sys.argv[1], sys.argv[2:]
    for name in names or ["resnet50", "mobilenet_v2"]:
        accuracy(folder, work, name) if sys.argv[1] == "--accuracy" else quantize(folder, name)


if __name__ == "__main__":
    main()
