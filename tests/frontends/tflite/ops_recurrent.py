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


# ---- all that an LSTM may have ----

def lstm_inputs(m, r, x, n, i, h, o=None, cifg=False, peephole=False, norm=False, bias=True, weights=None, names="hc"):
    """The 24 inputs; o: cells of a projection."""
    weights = weights or (lambda *shape: m.const(f32(r, *shape)))
    out, first = o or h, 1 if cifg else 0
    gates = range(first, 4)
    ins = [x] + [-1] * 23
    for g in gates:
        ins[1 + g], ins[5 + g], ins[12 + g] = weights(h, i), weights(h, out), m.const(f32(r, h))
    for k in range(first, 3) if peephole else []:
        ins[9 + k] = m.const(f32(r, h))
    if o:
        ins[16], ins[17] = weights(o, h), m.const(f32(r, o)) if bias else -1
    ins[18], ins[19] = m.tensor(names[0], [n, out], variable=True), m.tensor(names[1], [n, h], variable=True)
    for g in gates if norm else []:
        ins[20 + g] = m.const(f32(r, h, lo=0.5, hi=1.5))
    return ins


@model
def run_lstm_full(r):
    m = Model()
    n, t, i, h = 2, 4, 3, 5
    x = m.input("x", [n, t, i])
    for name, how in [("cifg", dict(cifg=True)), ("peephole", dict(peephole=True)), ("projection", dict(o=4)), ("norm", dict(norm=True)),
                      ("all", dict(o=4, cifg=True, peephole=True, norm=True)), ("rest", dict(o=6, peephole=True, norm=True, bias=False))]:
        out = how.get("o", h)
        clip = dict(cellClip=0.5, projClip=0.3) if name == "all" else {}
        m.op("UNIDIRECTIONAL_SEQUENCE_LSTM", lstm_inputs(m, r, x, n, i, h, names=[name + "_h", name + "_c"], **how),
             m.output(name, [n, t, out]), "UnidirectionalSequenceLSTMOptions", fusedActivationFunction=4, **clip)
    m.op("UNIDIRECTIONAL_SEQUENCE_LSTM", lstm_inputs(m, r, x, n, i, h, names=["relu_h", "relu_c"]), m.output("relu", [n, t, h]),
         "UnidirectionalSequenceLSTMOptions", fusedActivationFunction=1)
    return m, f32(r, n, t, i)


def variables(m):
    """Tensors that operators keep from run to run."""
    return [i for i, t in enumerate(m.graph.tensors) if t.isVariable]


@model
def run_lstm_kept(r):
    """Layers of sequences that go on where the last run ended."""
    m = Model()
    n, t, i, h = 2, 4, 3, 5
    x = m.input("x", [n, t, i])
    for name, how in [("plain", {}), ("loop", dict(o=4, peephole=True))]:
        m.op("UNIDIRECTIONAL_SEQUENCE_LSTM", lstm_inputs(m, r, x, n, i, h, names=[name + "_h", name + "_c"], **how),
             m.output(name, [n, t, how.get("o", h)]), "UnidirectionalSequenceLSTMOptions", fusedActivationFunction=4)
    y = m.input("y", [n, t, i], "int8", scale=1 / 127, zero=2)
    integer_lstm(m, r, y, (n, t, i, h), "integer")
    m.op("UNIDIRECTIONAL_SEQUENCE_RNN", [x, m.const(f32(r, h, i)), m.const(f32(r, h, h)), m.const(f32(r, h)), m.tensor("rnn_h", [n, h], variable=True)],
         m.output("rnn", [n, t, h]), "SequenceRNNOptions", fusedActivationFunction=4)
    m.kept = variables(m)
    return m, f32(r, n, t, i), r.integers(-128, 128, (n, t, i)).astype(np.int8)


@model
def run_lstm_step(r):
    """One step: the kernels FULL and BASIC."""
    m = Model()
    n, i, h = 2, 3, 5
    x, s, c = m.input("x", [n, i]), m.input("s", [n, h]), m.input("c", [n, h])
    m.op("LSTM", lstm_inputs(m, r, x, n, i, h, names=["h1", "c1"]), m.output("plain", [n, h]), "LSTMOptions", fusedActivationFunction=4)
    m.op("LSTM", lstm_inputs(m, r, x, n, i, h, o=4, peephole=True, names=["h2", "c2"]), m.output("full", [n, 4]), "LSTMOptions",
         fusedActivationFunction=4)
    m.op("LSTM", [x, s, m.const(f32(r, 4 * h, i + h)), m.const(f32(r, 4 * h)), c],
         [m.output("basic", [n, h]), m.output("state", [n, h]), m.tensor("scratch", [n, i + h]), m.tensor("gates", [n, 4 * h])], "LSTMOptions",
         version=2, fusedActivationFunction=4, kernelType=1)
    m.kept = variables(m)
    return m, f32(r, n, i), f32(r, n, h), f32(r, n, h)


@model
def run_lstm_beside(r):
    """Two directions with data beside them, with and without weights of their own; outputs apart."""
    m = Model()
    n, t, i, h, a = 2, 4, 3, 5, 2
    x, y, z = m.input("x", [t, n, i]), m.input("y", [t, n, a]), m.input("z", [t, n, i])
    for name, other, width in [("weights", y, a), ("instead", z, 0)]:
        ins = [x]
        for _ in range(2):
            ins += [m.const(f32(r, h, i)) for _ in range(4)] + [m.const(f32(r, h, h)) for _ in range(4)]
            ins += [m.const(f32(r, h)) for _ in range(3)] + [m.const(f32(r, h)) for _ in range(4)] + [-1, -1]
        ins += [m.tensor(f"{name}{k}", [n, h], variable=True) for k in range(4)] + [other]
        ins += [m.const(f32(r, h, width)) for _ in range(8)] if width else [-1] * 8
        m.op("BIDIRECTIONAL_SEQUENCE_LSTM", ins, [m.output(name + "_fw", [t, n, h]), m.output(name + "_bw", [t, n, h])],
             "BidirectionalSequenceLSTMOptions", fusedActivationFunction=4, mergeOutputs=False, timeMajor=True)
    return m, f32(r, t, n, i), f32(r, t, n, a), f32(r, t, n, i)


@model
def run_rnn_both(r):
    m = Model()
    n, t, i, h, a = 2, 4, 3, 5, 2
    x, y = m.input("x", [n, t, i]), m.input("y", [n, t, a])
    for name, other, act in [("alone", -1, 4), ("beside", y, 1), ("relu6", -1, 3)]:
        ins = [x]
        for k in range(2):
            ins += [m.const(f32(r, h, i)), m.const(f32(r, h, h)), m.const(f32(r, h)), m.tensor(f"{name}{k}", [n, h], variable=True)]
        ins += [other] + ([m.const(f32(r, h, a)) for _ in range(2)] if other == y else [-1, -1])
        m.op("BIDIRECTIONAL_SEQUENCE_RNN", ins, m.output(name, [n, t, 2 * h]), "BidirectionalSequenceRNNOptions", fusedActivationFunction=act,
             mergeOutputs=True)
    m.op("UNIDIRECTIONAL_SEQUENCE_RNN", [x, m.const(f32(r, h, i)), m.const(f32(r, h, h)), m.const(f32(r, h)),
                                         m.tensor("h", [n, h], variable=True)], m.output("none", [n, t, h]), "SequenceRNNOptions")
    return m, f32(r, n, t, i), f32(r, n, t, a)


@model
def run_rnn_step(r):
    m = Model()
    n, i, h = 2, 3, 5
    x = m.input("x", [n, i])
    for name, act in (("tanh", 4), ("relu6", 3)):
        m.op("RNN", [x, m.const(f32(r, h, i)), m.const(f32(r, h, h)), m.const(f32(r, h)), m.tensor(name + "_h", [n, h], variable=True)],
             m.output(name, [n, h]), "RNNOptions", fusedActivationFunction=act)
    m.kept = variables(m)
    return m, f32(r, n, i)


@model
def run_svdf(r):
    m = Model()
    n, i, units, rank, memory = 2, 3, 4, 2, 5
    x = m.input("x", [n, i])
    for name, bias in [("plain", False), ("bias", True)]:
        m.op("SVDF", [x, m.const(f32(r, units * rank, i)), m.const(f32(r, units * rank, memory)), m.const(f32(r, units)) if bias else -1,
                      m.tensor(name + "_s", [n, units * rank * memory], variable=True)], m.output(name, [n, units]), "SVDFOptions", rank=rank,
             fusedActivationFunction=1 if bias else 0)
    m.kept = variables(m)
    return m, f32(r, n, i)


@model
def run_svdf_hybrid(r):
    """Weights of 8 bits and data in floats, which are rounded row by row."""
    m = Model()
    n, i, units, rank, memory = 2, 9, 4, 2, 5
    x = m.input("x", [n, i])
    for name, fields in (("symmetric", {}), ("ends", dict(asymmetricQuantizeInputs=True))):
        m.op("SVDF", [x, int8(m, name + "_w", r, (units * rank, i)), int8(m, name + "_t", r, (units * rank, memory)), m.const(f32(r, units)),
                      m.tensor(name + "_s", [n, units * rank * memory], variable=True)], m.output(name, [n, units]), "SVDFOptions", version=2, rank=rank,
             fusedActivationFunction=1, **fields)
    m.kept = variables(m)
    return m, f32(r, n, i)


@model
def words_svdf(r):
    """Data and weights of 8 bits, states and weights over time of 16."""
    m = Model()
    n, i = 2, 12
    x = m.input("x", [n, i], "int8", scale=1 / 127, zero=-3)
    for name, units, rank, memory, bias in [("plain", 6, 1, 4, True), ("rank", 4, 2, 5, False), ("memory", 3, 3, 10, True), ("step", 5, 1, 1, True)]:
        F, s = units * rank, 2.0**-11
        ins = [x, m.const(r.integers(-127, 128, (F, i)).astype(np.int8), scale=0.9 / 127),
               m.const(r.integers(-32767, 32768, (F, memory)).astype(np.int16), scale=0.8 / 32767),
               m.const(r.integers(-90000, 90000, units).astype(np.int32), scale=s * 0.8 / 32767) if bias else -1,
               m.tensor(name + "_s", [n, F * memory], "int16", scale=s, variable=True)]
        m.op("SVDF", ins, m.output(name, [n, units], "int8", scale=0.03, zero=5 if bias else -128), "SVDFOptions", rank=rank, version=3,
             fusedActivationFunction=1)
    m.kept = variables(m)
    return m, r.integers(-128, 128, (n, i)).astype(np.int8)


def int8(m, name, r, shape, limit=1.0, dtype="int8"):
    top = np.iinfo(dtype).max
    return m.const(r.integers(-top, top + 1, shape).astype(dtype), name, scale=limit / top)


@model
def step_lstm(r):
    """8 bits; the cell in 16."""
    m = Model()
    n, t, i, h = 2, 4, 6, 8
    sx, sh = 1 / 127, 1 / 128
    x = m.input("x", [n, t, i], "int8", scale=sx, zero=2)
    w = [int8(m, f"w{g}", r, (h, i)) for g in range(4)]
    u = [int8(m, f"u{g}", r, (h, h)) for g in range(4)]
    b = [m.const(r.integers(-9000, 9000, h).astype(np.int32), f"b{g}", scale=sx / 127) for g in range(4)]
    ins = [x, *w, *u, -1, -1, -1, *b, -1, -1, m.tensor("h", [n, h], "int8", scale=sh, zero=0, variable=True),
           m.tensor("c", [n, h], "int16", scale=2.0**-11, variable=True), -1, -1, -1, -1]
    y = m.output("y", [n, t, h], "int8", scale=sh, zero=0)
    m.op("UNIDIRECTIONAL_SEQUENCE_LSTM", ins, y, "UnidirectionalSequenceLSTMOptions", fusedActivationFunction=4)
    m.graph.operators[-1].intermediates = [m.tensor(f"i{k}", [], "int16", scale=2.0**-12) for k in range(4)] + [
        m.tensor("i4", [], "int8", scale=sh)]
    return m, r.integers(-128, 128, (n, t, i)).astype(np.int8)


def integer_lstm(m, r, x, shape, name, o=None, cifg=False, peephole=False, norm=False, bias=True, hidden=-11, step=False, **options):
    """A layer of 8 bits, its cell in 16, of data (N, T, I) in 1/127 around 2 and H cells; step: (N, I)."""
    n, t, i, h = shape
    out, first, sx, sh, cell = o or h, 1 if cifg else 0, 1 / 127, 1 / 120, 2.0**-11
    gates = range(first, 4)
    ins = [x] + [-1] * 23
    for g in gates:
        ins[1 + g], ins[5 + g] = int8(m, f"{name}_w{g}", r, (h, i), 0.8), int8(m, f"{name}_u{g}", r, (h, out), 0.7)
        scale = 0.0005 if norm else sx * 0.8 / 127
        ins[12 + g] = m.const(r.integers(-9000, 9000, h).astype(np.int32), f"{name}_b{g}", scale=scale / 1024 if norm else scale)
        if norm:
            ins[20 + g] = m.const(r.integers(800, 2500, h).astype(np.int16), f"{name}_n{g}", scale=scale)
    for k in range(first, 3) if peephole else []:
        ins[9 + k] = int8(m, f"{name}_p{k}", r, (h,), 0.9, "int16")
    if o:
        ins[16] = int8(m, name + "_p", r, (o, h), 0.5)
        ins[17] = m.const(r.integers(-900, 900, o).astype(np.int32), name + "_pb", scale=0.5 / 127 / 125) if bias else -1
    ins[18] = m.tensor(name + "_h", [n, out], "int8", scale=sh, zero=-7, variable=True)
    ins[19] = m.tensor(name + "_c", [n, h], "int16", scale=cell, variable=True)
    shape = [n, out] if step else [t, n, out] if options.get("timeMajor") else [n, t, out]
    op, table = ("LSTM", "LSTMOptions") if step else ("UNIDIRECTIONAL_SEQUENCE_LSTM", "UnidirectionalSequenceLSTMOptions")
    m.op(op, ins, m.output(name, shape, "int8", scale=sh, zero=-7), table, fusedActivationFunction=4, **options)
    m.graph.operators[-1].intermediates = [m.tensor(f"{name}_i{k}", [], "int16", scale=2.0**-12 * (1.3 + k / 7 if norm else 1)) for k in range(4)] + [
        m.tensor(name + "_i4", [], "int8", scale=1 / 125 if o else sh, zero=hidden if o else -7)]


@model
def words_lstm(r):
    """All that a layer in integers may have."""
    m = Model()
    n, t, i, h = 2, 6, 10, 16
    x, y = m.input("x", [n, t, i], "int8", scale=1 / 127, zero=2), m.input("y", [t, n, i], "int8", scale=1 / 127, zero=2)
    for name, how in [("plain", {}), ("cifg", dict(cifg=True)), ("peephole", dict(peephole=True)), ("projection", dict(o=7)),
                      ("unbiased", dict(o=12, bias=False)), ("clipped", dict(o=7, cifg=True, cellClip=0.4, projClip=0.3)), ("all", dict(o=16, peephole=True))]:
        integer_lstm(m, r, x, (n, t, i, h), name, **how)
    integer_lstm(m, r, y, (n, t, i, h), "steps", timeMajor=True)
    return m, *(r.integers(-128, 128, s).astype(np.int8) for s in ((n, t, i), (t, n, i)))


@model
def words_lstm_norm(r):
    """Gates that are normalized, of batches and cells of all sizes."""
    m = Model()
    n, t, i, h = 2, 6, 10, 16
    x = m.input("x", [n, t, i], "int8", scale=1 / 127, zero=2)
    for name, how in [("norm", {}), ("all", dict(o=16, cifg=True, peephole=True))]:
        integer_lstm(m, r, x, (n, t, i, h), name, norm=True, **how)
    integer_lstm(m, r, x, (n, t, i, 37), "odd", norm=True, o=5)
    integer_lstm(m, r, x, (n, t, i, 1), "one", norm=True)
    return m, r.integers(-128, 128, (n, t, i)).astype(np.int8)


@model
def words_lstm_kept(r):
    """Many cells, and what is in them then; what is projected leaves its range."""
    m = Model()
    n, t, i, h = 6, 9, 30, 48
    x = m.input("x", [n, t, i], "int8", scale=1 / 127, zero=2)
    for name, how in (("peephole", dict(peephole=True)), ("projection", dict(o=20, hidden=-60)), ("norm", dict(norm=True))):
        integer_lstm(m, r, x, (n, t, i, h), name, **how)
    integer_lstm(m, r, m.input("y", [n, i], "int8", scale=1 / 127, zero=2), (n, t, i, 20), "step", step=True, o=9)
    m.kept = variables(m)
    return m, r.integers(-128, 128, (n, t, i)).astype(np.int8), r.integers(-128, 128, (n, i)).astype(np.int8)


@model
def step_lstm_bytes(r):
    """One step of 8 bits throughout, all tensors between of scales and zero points of their own; its functions are those of floats."""
    m = Model()
    n, i = 3, 10
    x = m.input("x", [n, i], "int8", scale=1 / 127, zero=2)
    for name, h, o, fields in (("plain", 16, 7, {}), ("clipped", 40, 12, dict(cellClip=0.4, projClip=0.5))):
        ins = [x] + [-1] * 23
        for g in range(1, 4):
            ins[1 + g], ins[5 + g] = int8(m, f"{name}_w{g}", r, (h, i), 0.8), int8(m, f"{name}_u{g}", r, (h, o), 0.7)
            ins[12 + g] = m.const(r.integers(-900000, 900000, h).astype(np.int32), f"{name}_b{g}", scale=0.0005 / 1024)
            ins[20 + g] = m.const(r.integers(800, 2500, h).astype(np.int16), f"{name}_n{g}", scale=0.0005)
        ins[16] = int8(m, name + "_p", r, (o, h), 0.5)
        ins[17] = m.const(r.integers(-90000, 90000, o).astype(np.int32), name + "_pb", scale=0.5 / 127 * 2.0**-15)
        ins[18] = m.tensor(name + "_h", [n, o], "int8", scale=1 / 120, zero=-7, variable=True)
        ins[19] = m.tensor(name + "_c", [n, h], "int16", scale=2.0**-15, variable=True)
        m.op("LSTM", ins, m.output(name, [n, o], "int8", scale=1 / 120, zero=-7), "LSTMOptions", version=4, fusedActivationFunction=4, **fields)
        zeros = 0, 3, -5, 0, 4, -2, 0, 1, 6, 0, -9, 2
        m.graph.operators[-1].intermediates = [m.tensor(f"{name}_i{k}", [], "int8" if k % 3 else "int16", scale=(0.0006, 0.03 + k / 900, 0.02)[k % 3], zero=zeros[k])
                                               for k in range(12)]
    m.kept = variables(m)
    return m, r.integers(-128, 128, (n, i)).astype(np.int8)


@model
def words_lstm_basic(r):
    """The kernel BASIC, of u8 with a cell of 16 bits; its states are inputs, and tensors that it keeps."""
    m = Model()
    n, i = 3, 10
    x = m.input("x", [n, i], "uint8", scale=1 / 128, zero=128)
    feeds = [r.integers(0, 256, (n, i)).astype(np.uint8)]
    for name, h, zero, kept in (("plain", 12, 113, False), ("kept", 17, 128, True)):
        s, c = (dict(scale=1 / 128, zero=128), dict(scale=2.0**-11))
        if kept:
            h0, c0 = m.tensor(name + "_h", [n, h], "uint8", variable=True, **s), m.tensor(name + "_c", [n, h], "int16", variable=True, **c)
        else:
            h0, c0 = m.input(name + "_h", [n, h], "uint8", **s), m.input(name + "_c", [n, h], "int16", **c)
            feeds += [r.integers(0, 256, (n, h)).astype(np.uint8), r.integers(-32768, 32768, (n, h)).astype(np.int16)]
        w = m.const(r.integers(0, 256, (4 * h, i + h)).astype(np.uint8), scale=0.011, zero=zero)
        b = m.const(r.integers(-9000, 9000, 4 * h).astype(np.int32), scale=0.011 / 128)
        m.op("LSTM", [x, h0, w, b, c0], [m.output(name, [n, h], "uint8", **s), m.output(name + "_cell", [n, h], "int16", **c),
                                         m.output(name + "_both", [n, i + h], "uint8", **s), m.output(name + "_gates", [n, 4 * h], "int16", scale=2.0**-12)],
             "LSTMOptions", version=2, fusedActivationFunction=4, kernelType=1)
    m.kept = variables(m)
    return m, *feeds


@model
def run_lstm_hybrid(r):
    """Weights of 8 bits and data in floats, which are rounded row by row, the state, too."""
    m = Model()
    n, t, i, h = 2, 4, 7, 10
    x = m.input("x", [n, t, i])

    def weights(*shape):
        return m.const(r.integers(-127, 128, shape).astype(np.int8), scale=r.uniform(0.003, 0.01))
    for name, how, fields in (("plain", {}, {}), ("ends", {}, dict(asymmetricQuantizeInputs=True)), ("projection", dict(o=6), {}), ("cifg", dict(cifg=True, norm=True), {})):
        ins = lstm_inputs(m, r, x, n, i, h, weights=weights, names=(name + "_h", name + "_c"), **how)
        m.op("UNIDIRECTIONAL_SEQUENCE_LSTM", ins, m.output(name, [n, t, how.get("o", h)]), "UnidirectionalSequenceLSTMOptions", fusedActivationFunction=4, **fields)
    for name, fields in (("rnn", {}), ("rnn_ends", dict(asymmetricQuantizeInputs=True))):
        m.op("UNIDIRECTIONAL_SEQUENCE_RNN", [x, weights(h, i), weights(h, h), m.const(f32(r, h)), m.tensor(name + "_h", [n, h], variable=True)],
             m.output(name, [n, t, h]), "SequenceRNNOptions", fusedActivationFunction=4, **fields)
    return m, f32(r, n, t, i)


@model
def run_state(r):
    """A state that has values in the file, which the interpreter refuses; here it begins with them."""
    m = Model()
    n, i, h = 2, 3, 5
    q, w, u, b, s = f32(r, n, i), f32(r, h, i), f32(r, h, h), f32(r, h), f32(r, n, h)
    m.op("RNN", [m.input("x", [n, i]), m.const(w), m.const(u), m.const(b), m.tensor("s", [n, h], data=s, variable=True)],
         m.output("y", [n, h]), "RNNOptions", fusedActivationFunction=4)
    y = np.tanh(q @ w.T + s @ u.T + b)
    m.results, m.kept = {"y": y, "s_out": y}, variables(m)
    return m, q, s
