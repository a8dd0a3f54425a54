"""Recurrent layers."""
import numpy as np

from cases import f32, model
from make_model import Model

@model
def run_lstm(r):
    m = Model()
    n, t, i, h = 2, 4, 3, 5
    x = m.input("x", [n, t, i])
    w = [m.const(f32(r, h, i)) for _ in range(4)]
    u = [m.const(f32(r, h, h)) for _ in range(4)]
    b = [m.const(f32(r, h)) for _ in range(4)]
    ins = [x, *w, *u, -1, -1, -1, *b, -1, -1, m.tensor("h", [n, h], variable=True), m.tensor("c", [n, h], variable=True), -1, -1, -1, -1]
    m.op("UNIDIRECTIONAL_SEQUENCE_LSTM", ins, m.output("y", [n, t, h]), "UnidirectionalSequenceLSTMOptions", fusedActivationFunction=4)
    return m, f32(r, n, t, i)


@model
def run_lstm_both(r):
    m = Model()
    n, t, i, h = 2, 4, 3, 5
    x = m.input("x", [t, n, i])
    ins = [x]
    for _ in range(2):
        ins += [m.const(f32(r, h, i)) for _ in range(4)] + [m.const(f32(r, h, h)) for _ in range(4)] + [-1, -1, -1]
        ins += [m.const(f32(r, h)) for _ in range(4)] + [-1, -1]
    ins += [m.tensor(f"s{k}", [n, h], variable=True) for k in range(4)] + [-1] * 9
    m.op("BIDIRECTIONAL_SEQUENCE_LSTM", ins, m.output("y", [t, n, 2 * h]), "BidirectionalSequenceLSTMOptions", fusedActivationFunction=4,
         mergeOutputs=True, timeMajor=True)
    return m, f32(r, t, n, i)


@model
def run_rnn(r):
    m = Model()
    n, t, i, h = 2, 4, 3, 5
    x = m.input("x", [t, n, i])
    ins = [x, m.const(f32(r, h, i)), m.const(f32(r, h, h)), m.const(f32(r, h)), m.tensor("h", [n, h], variable=True)]
    m.op("UNIDIRECTIONAL_SEQUENCE_RNN", ins, m.output("y", [t, n, h]), "SequenceRNNOptions", fusedActivationFunction=1, timeMajor=True)
    return m, f32(r, t, n, i)
