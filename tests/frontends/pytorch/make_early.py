#!/usr/bin/env python3
"""Writes script/early_VERSION.pt and script/early_loop_VERSION.pt as torch 1.0 to 1.3 saves them, and their results.

    python make_early.py      (torch 1.0 to 1.3, numpy 1; run with 1.0.1, 1.2.0 and 1.3.1)"""
import os
import tempfile
import zipfile

import numpy
import torch
import torch.nn.functional as F
from torch import nn

FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "script")
VERSION = "_".join(torch.__version__.split(".")[:2])


class Net(nn.Module):
    def __init__(self):
        super(Net, self).__init__()
        self.a, self.n, self.r, self.l = nn.Conv2d(3, 4, 3, 1, 1), nn.BatchNorm2d(4), nn.LSTM(4, 3, batch_first=True), nn.Linear(3, 2)

    def forward(self, x):
        y = F.max_pool2d(F.relu(self.n(self.a(x))), 2)
        return self.l(self.r(y.mean(3).transpose(1, 2))[0])


class Part(torch.jit.ScriptModule):
    def __init__(self):
        super(Part, self).__init__()
        self.w = nn.Parameter(torch.randn(5, 5))

    @torch.jit.script_method
    def forward(self, x):
        return torch.tanh(torch.mm(x, self.w))


class Loop(torch.jit.ScriptModule):
    __constants__ = ["rounds"]

    def __init__(self):
        super(Loop, self).__init__()
        self.part, self.rounds = Part(), 3
        self.register_buffer("scale", torch.randn(5, 2).t())

    @torch.jit.script_method
    def forward(self, x):
        y = x
        for i in range(self.rounds):
            y = self.part(y) * self.scale
        if bool(y.sum() > 0.0):
            y = y * 2.0
        else:
            y = y - 1.0
        return y


def record(name, input, module, x):
    stem = os.path.join(FOLDER, name + "_" + VERSION)
    with tempfile.TemporaryDirectory() as folder, torch.no_grad():
        module.save(os.path.join(folder, "net"))
        numpy.savez_compressed(stem + ".in.npz", **{input: x.numpy()})
        numpy.savez_compressed(stem + ".out.npz", output_0=module(x).numpy())
        with zipfile.ZipFile(os.path.join(folder, "net")) as old, zipfile.ZipFile(stem + ".pt", "w") as new:
            for entry in old.namelist():
                info = zipfile.ZipInfo(entry, (1980, 1, 1, 0, 0, 0))
                info.compress_type = zipfile.ZIP_DEFLATED if entry.endswith((".py", ".pkl", ".json")) else zipfile.ZIP_STORED
                if "debug" not in entry:
                    new.writestr(info, old.read(entry))


torch.manual_seed(0)
PICTURE = torch.randn(1, 3, 6, 5)
record("early", "input_1" if VERSION == "1_0" else "input", torch.jit.trace(Net().eval(), PICTURE), PICTURE)
record("early_loop", "x", Loop(), torch.randn(2, 5))
