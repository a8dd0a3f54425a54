#!/usr/bin/env python3
"""Writes more of models/run_*.onnx: make_contrib.py (needs onnx, numpy, onnxruntime).

Operators of com.microsoft, as exporters and ONNX Runtime's own optimizer write them.
"""
import zlib

import numpy as np

import make_ops
from make import node
from make_ops import case, ints


def ms(name, op, ins, feeds, outs="y", inits=None, **a):
    case(name, [node(op, ins, outs, domain="com.microsoft", **a)], feeds, outs, domains=["com.microsoft"], **(inits or {}))


def rotary():
    f = make_ops.f
    tables = {"c": f(9, 4), "s": f(9, 4)}
    ms("ms_rotary", "RotaryEmbedding", "x p c s", {"x": f(2, 3, 16), "p": ints([0, 4, 2], [8, 1, 1])}, inits=tables)
    ms("ms_rotary_first", "RotaryEmbedding", "x p c s", {"x": f(2, 2, 3, 8), "p": ints(5)}, inits=tables, interleaved=1)
    ms("ms_rotary_part", "RotaryEmbedding", "x p c s", {"x": f(1, 3, 24), "p": ints([3, 0, 7])}, inits=tables, num_heads=2,
       rotary_embedding_dim=8)


def products():
    f, rng = make_ops.f, make_ops.rng
    byte = lambda *s: rng.integers(0, 256, s).astype(np.uint8)
    w = {"w": byte(8, 5), "s": abs(f(1)), "z": byte(1)}
    columns = {"w": byte(8, 5).view(np.int8), "s": abs(f(5)), "z": byte(5).view(np.int8), "b": f(5)}
    ms("ms_dynamic_matmul", "DynamicQuantizeMatMul", "x w s z", {"x": f(2, 3, 8)}, inits=w)
    ms("ms_dynamic_matmul_columns", "DynamicQuantizeMatMul", "x w s z b", {"x": f(3, 8)}, inits=columns)
    ms("ms_dynamic_matmul_plain", "DynamicQuantizeMatMul", "x w s", {"x": f(3, 8)}, inits={"w": w["w"], "s": w["s"]})
    ms("ms_integer_to_float", "MatMulIntegerToFloat", "x w t s u z b", {"x": byte(3, 8)},
       inits=columns | {"t": abs(f(1)), "u": byte(1)})


if __name__ == "__main__":
    for family in (rotary, products):
        make_ops.rng = np.random.default_rng(zlib.crc32(family.__name__.encode()))
        family()
