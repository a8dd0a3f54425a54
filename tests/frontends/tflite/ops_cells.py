"""Cell by cell."""
import numpy as np

from cases import f32, model
from make_model import Model

UNARY = ["ABS", "NEG", "SIGN", "FLOOR", "CEIL", "ROUND", "EXP", "SIN", "COS", "SQUARE", "RELU", "RELU_N1_TO_1", "RELU6",
         "RELU_0_TO_1", "TANH", "LOGISTIC", "ELU", "HARD_SWISH"]


@model
def run_unary(r):
    m = Model()
    x = m.input("x", [2, 3, 5])
    for op in UNARY:
        m.op(op, [x], m.output(op, [2, 3, 5]))
    m.op("LEAKY_RELU", [x], m.output("LEAKY_RELU", [2, 3, 5]), "LeakyReluOptions", alpha=0.3)
    m.op("GELU", [x], m.output("GELU", [2, 3, 5]), "GeluOptions")
    m.op("GELU", [x], m.output("GELU_TANH", [2, 3, 5]), "GeluOptions", approximate=True)
    m.op("PRELU", [x, m.const(f32(r, 1, 1, 5))], m.output("PRELU", [2, 3, 5]))
    return m, f32(r, 2, 3, 5, lo=-8, hi=8)


@model
def run_positive(r):
    m = Model()
    x = m.input("x", [2, 3, 5])
    for op in ["LOG", "SQRT", "RSQRT"]:
        m.op(op, [x], m.output(op, [2, 3, 5]))
    return m, f32(r, 2, 3, 5, lo=0.1, hi=8)


@model
def run_binary(r):
    m = Model()
    x, y = m.input("x", [2, 3, 5]), m.input("y", [3, 1])
    for op, options in [("ADD", "AddOptions"), ("MUL", "MulOptions"), ("SUB", "SubOptions"), ("DIV", "DivOptions")]:
        for act, name in [(0, ""), (1, "_relu"), (3, "_relu6"), (2, "_n1")]:
            m.op(op, [x, y], m.output(op + name, [2, 3, 5]), options, fusedActivationFunction=act)
    for op in ["MAXIMUM", "MINIMUM", "FLOOR_DIV", "FLOOR_MOD", "SQUARED_DIFFERENCE"]:
        m.op(op, [x, y], m.output(op, [2, 3, 5]), version=2 if op in ("FLOOR_DIV", "FLOOR_MOD") else 1)
    for op in ["LESS", "GREATER", "GREATER_EQUAL", "LESS_EQUAL", "EQUAL", "NOT_EQUAL"]:
        m.op(op, [x, y], m.output(op, [2, 3, 5], "bool"))
    return m, f32(r, 2, 3, 5, lo=-4, hi=4), f32(r, 3, 1, lo=1, hi=3)


@model
def run_same_shape(r):
    m = Model()
    x, y = m.input("x", [3, 5]), m.input("y", [3, 5])
    m.op("ATAN2", [x, y], m.output("ATAN2", [3, 5]))
    m.op("ADD_N", [x, y, x], m.output("ADD_N", [3, 5]))
    p = m.tensor("p", [3, 5])
    m.op("ABS", [x], p)
    m.op("POW", [p, y], m.output("POW", [3, 5]))
    c = m.tensor("c", [3, 5], "bool")
    m.op("LESS", [x, y], c)
    m.op("SELECT", [c, x, y], m.output("SELECT", [3, 5]))
    m.op("SELECT_V2", [c, x, m.const(np.float32([7]))], m.output("SELECT_V2", [3, 5]))
    rows = m.const(np.array([True, False, True]))
    m.op("SELECT", [rows, x, y], m.output("SELECT_rows", [3, 5]))
    d = m.tensor("d", [3, 5], "bool")
    m.op("LOGICAL_NOT", [c], d)
    m.op("LOGICAL_AND", [c, d], m.output("LOGICAL_AND", [3, 5], "bool"))
    m.op("LOGICAL_OR", [c, d], m.output("LOGICAL_OR", [3, 5], "bool"))
    return m, f32(r, 3, 5, lo=-3, hi=3), f32(r, 3, 5, lo=-3, hi=3)


@model
def run_integers(r):
    m = Model()
    x, y = m.input("x", [4, 6], "int32"), m.input("y", [4, 6], "int32")
    for op, options in [("ADD", "AddOptions"), ("MUL", "MulOptions"), ("SUB", "SubOptions"), ("DIV", "DivOptions")]:
        m.op(op, [x, y], m.output(op, [4, 6], "int32"), options)
    for op in ["MAXIMUM", "MINIMUM", "FLOOR_DIV", "FLOOR_MOD", "SQUARED_DIFFERENCE", "BITWISE_XOR"]:
        m.op(op, [x, y], m.output(op, [4, 6], "int32"))
    for t in ["float32", "int64", "int8", "bool"]:
        m.op("CAST", [x], m.output("CAST_" + t, [4, 6], t), "CastOptions")
    m.op("BITCAST", [x], m.output("BITCAST", [4, 6], "uint32"))
    return m, r.integers(-50, 50, (4, 6)).astype(np.int32), r.integers(1, 9, (4, 6)).astype(np.int32) * r.choice([-1, 1], (4, 6)).astype(np.int32)


@model
def run_fake_quant(r):
    m = Model()
    x = m.input("x", [40])
    m.op("FAKE_QUANT", [x], m.output("y", [40]), "FakeQuantOptions", min=-1.0, max=3.0, numBits=8)
    m.op("FAKE_QUANT", [x], m.output("z", [40]), "FakeQuantOptions", min=-0.7, max=2.9, numBits=4)
    return m, f32(r, 40, lo=-2, hi=4)
