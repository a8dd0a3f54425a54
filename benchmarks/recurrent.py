#!/usr/bin/env python3
"""Recurrent layers of several kinds and sizes: LSTM, GRU and RNN, one direction or two, a batch.

    recurrent.py OUTDIR   as models.py does; then compare.py OUTDIR WORK --engines ort openvino
"""
import models
from models import G, np


def stack(name, kind, hidden, inputs, steps, batch=1, both=False, layers=1, **attrs):
    def build():
        g = G(name)
        gates, d, cin = {"LSTM": 4, "GRU": 3, "RNN": 1}[kind], 2 if both else 1, inputs
        x = g.input("x", g.rng.standard_normal((steps, batch, inputs)).astype(np.float32))
        w = lambda *s: g.init(g.rng.uniform(-1, 1, s).astype(np.float32) * np.float32(hidden ** -0.5))
        for _ in range(layers):
            y = g.op(kind, x, w(d, gates * hidden, cin), w(d, gates * hidden, hidden), w(d, 2 * gates * hidden),
                     outs=2, hidden_size=hidden, direction="bidirectional" if both else "forward", **attrs)[0]
            x = g.op("Reshape", g.op("Transpose", y, perm=[0, 2, 1, 3]), g.ints(steps, batch, d * hidden))
            cin = d * hidden
        g.output(x)
        return g
    build.__name__ = name
    return build


models.MODELS = [
    stack("gru_both_256", "GRU", 256, 128, 64, both=True, layers=2, linear_before_reset=1),
    stack("gru_256", "GRU", 256, 128, 64),  # its reset needs the whole state: two meetings a step
    stack("gru_512", "GRU", 512, 256, 50, linear_before_reset=1),
    stack("rnn_256", "RNN", 256, 128, 64, layers=2),
    stack("lstm_both_64", "LSTM", 64, 64, 64, both=True, layers=2),
    stack("lstm_100", "LSTM", 100, 64, 100),
    stack("lstm_1024", "LSTM", 1024, 256, 25),
    stack("lstm_256_batch8", "LSTM", 256, 128, 32, batch=8),
]

if __name__ == "__main__":
    models.main()
