#!/usr/bin/env python3
"""Writes broken/: models that are refused, and models of which the text is looked at (goldens.txt)."""
import os

import numpy as np

from make_model import HERE, Model, S

OUT = os.path.join(HERE, "broken")


def small():
    m = Model()
    x = m.input("x", [1, 4])
    return m, x, m.output("y", [1, 4])


def save(name, m):
    m.save(os.path.join(OUT, name + ".tflite"))


def main():
    m, x, y = small()
    m.op("RELU", [x], y)
    save("ok_relu", m)
    with open(os.path.join(OUT, "ok_relu.tflite"), "rb") as f:
        data = f.read()
    with open(os.path.join(OUT, "bad_truncated.tflite"), "wb") as f:
        f.write(data[:200])
    with open(os.path.join(OUT, "ok_without_name.tflite"), "wb") as f:
        f.write(data[:4] + b"\0\0\0\0" + data[8:])

    m, x, y = small()
    t = [m.tensor(f"t{i}", [1, 4]) for i in range(5)]
    m.op("SKIP_GRAM", [x], t[0])
    m.op("FlexErf", [t[0]], t[1])
    m.op("SKIP_GRAM", [t[1]], t[2])
    m.op("MyOwn", [t[2]], t[3])
    m.op("STABLEHLO_RESHAPE", [t[3]], t[4])
    m.op("RELU", [t[4]], y, version=99)
    save("bad_operators", m)

    m, x, y = small()
    m.op("RELU", [x, x], y)
    save("bad_surplus", m)

    m, x, y = small()
    m.op("ADD", [x], y, "AddOptions")
    save("bad_missing", m)

    m, x, y = small()
    m.op("ADD", [x, x], y, "LeakyReluOptions", alpha=0.5)
    save("bad_options", m)

    m = Model()
    x = m.input("x", [1, 4], "int16", scale=1e-30)
    m.op("SOFTMAX", [x], m.output("y", [1, 4], "int16", scale=1 / 32768), "SoftmaxOptions", beta=1.0, version=3)
    save("bad_softmax_scale", m)

    m, x, y = small()
    m.op("RELU", [7], y)
    save("bad_index", m)

    m, x, y = small()
    m.op("RELU", [y], m.tensor("z", [1, 4]))
    m.op("RELU", [x], y)
    save("bad_order", m)

    m, x, y = small()
    save("bad_output", m)

    m, x, y = small()
    m.op("RESHAPE", [x, m.const(np.int32([3, 2]))], y)
    save("bad_reshape", m)

    m, x, y = small()
    m.op("ADD", [x, m.tensor("w", [1, 4], data=np.float32([1, 2]))], y)
    save("bad_data", m)

    m, x, y = small()
    m.op("ADD", [x, m.const(np.float32([[1, 2, 3, 4], [5, 6, 7, 8]]))], y)
    save("bad_declared", m)

    m = Model()
    x = m.input("x", [1, 4], "int8", scale=[0.1, 0.2, 0.3], axis=1)
    m.op("DEQUANTIZE", [x], m.output("y", [1, 4]))
    save("bad_scales", m)

    m = Model()
    x = m.input("x", [1, 4], "int8", scale=float("nan"))
    m.op("DEQUANTIZE", [x], m.output("y", [1, 4]))
    save("bad_scale", m)

    m = Model()
    x = m.input("x", [1, 5, 5, 2])
    y = m.tensor("y", [1, 5, 5, 3])
    m.op("CONV_2D", [x, m.const(np.ones((3, 3, 3, 3), np.float32))], y, "Conv2DOptions", strideW=1, strideH=1)
    m.graph.outputs.append(y)
    save("bad_channels", m)

    m = Model()
    x = m.input("x", [1, 4, 4, 2], signature=[-1, 4, 4, 2])
    a, b, c = (m.tensor(n, [1, 4, 4, 2], signature=[-1, 4, 4, 2]) for n in "abc")
    w = m.const(np.ones((2, 1, 1, 2), np.float32), "w")
    m.op("CONV_2D", [x, w], a, "Conv2DOptions", strideW=1, strideH=1, fusedActivationFunction=1)
    m.op("ADD", [a, m.const(np.float32([1, 2]), "k")], b, "AddOptions")
    m.op("CONV_2D", [b, w], c, "Conv2DOptions", strideW=1, strideH=1)
    s, n, p = m.tensor("s", [4], "int32"), m.tensor("n", [], "int32"), m.tensor("p", [2], "int32")
    m.op("SHAPE", [c], s, "ShapeOptions", outType=2)
    m.op("STRIDED_SLICE", [s, m.const(np.int32([0])), m.const(np.int32([1])), m.const(np.int32([1]))], n, "StridedSliceOptions", shrinkAxisMask=1)
    m.op("PACK", [n, m.const(np.int32(32))], p, "PackOptions", valuesCount=2)
    m.op("RESHAPE", [c, p], m.output("y", [1, 32], signature=[-1, 32]))
    save("ok_images", m)

    m = Model()
    x = m.input("x", [1, 4], "int8", scale=0.5, zero=3)
    w = m.const(np.int8([[1, 2, 3, 4], [5, 6, 7, 8]]), "w", scale=0.25)
    b = m.const(np.int32([9, 10]), "b", scale=0.125)
    m.op("FULLY_CONNECTED", [x, w, b], m.output("y", [1, 2], "int8", scale=2.0, zero=-1), "FullyConnectedOptions", version=4)
    save("ok_quantized", m)

    m, x, y = small()
    m.op("RELU", [x], y)
    m.model_t.version = 4
    save("bad_version", m)
    m.model_t.version = 2
    save("bad_old_version", m)

    m, x, y = small()
    m.op("ADD", [x, m.const(np.float32([1, 2, 3, 4]))], y, "AddOptions")
    m.outside = True
    data = m.bytes()
    with open(os.path.join(OUT, "bad_outside.tflite"), "wb") as f:
        f.write(data[:-8])


os.makedirs(OUT, exist_ok=True)
main()
