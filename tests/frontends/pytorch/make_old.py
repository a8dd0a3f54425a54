#!/usr/bin/env python3
"""Writes script/old.pt and script/quantized_old.pt as torch 1.13 saves them, and its results beside them.

    python make_old.py     (torch 1.13, numpy 1)"""
import io
import os
import zipfile

import numpy
import torch
import torch.ao.quantization as quantization
import torch.nn.functional as F
from torch import nn

FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "script")


class Old(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.n, self.r, self.l = nn.Conv2d(3, 4, 3, 1, 1), nn.BatchNorm2d(4), nn.LSTM(4, 3, batch_first=True), nn.Linear(3, 2)

    def forward(self, x):
        y = F.interpolate(F.relu(self.n(self.a(x))), scale_factor=2.0, mode="bilinear", align_corners=False)
        flags = y > 0
        flags &= y < 2
        return self.l(self.r((y * flags).mean(3).transpose(1, 2))[0])


def record(name, module, x):
    saved = io.BytesIO()
    with torch.no_grad():
        torch.jit.save(module, saved)
        numpy.savez_compressed(os.path.join(FOLDER, name + ".in.npz"), input=x.numpy())
        numpy.savez_compressed(os.path.join(FOLDER, name + ".out.npz"), output_0=module(x).numpy())
    with zipfile.ZipFile(saved) as old, zipfile.ZipFile(os.path.join(FOLDER, name + ".pt"), "w") as new:
        for entry in old.namelist():
            info = zipfile.ZipInfo(entry, (1980, 1, 1, 0, 0, 0))
            info.compress_type = zipfile.ZIP_DEFLATED if entry.endswith((".py", ".pkl")) else zipfile.ZIP_STORED
            if not entry.endswith(".debug_pkl"):
                new.writestr(info, old.read(entry))


torch.manual_seed(0)
INPUT = torch.randn(1, 3, 6, 5)
record("old", torch.jit.script(nn.Sequential(Old()).eval()), INPUT)
torch.backends.quantized.engine = "fbgemm"
NET = nn.Sequential(quantization.QuantStub(), nn.Conv2d(3, 4, 3, 2), nn.ReLU(), nn.Flatten(), nn.Linear(16, 3), quantization.DeQuantStub()).eval()
NET.qconfig = quantization.get_default_qconfig("fbgemm")
quantization.fuse_modules(NET, ["1", "2"], inplace=True)
quantization.prepare(NET, inplace=True)
NET(INPUT)
record("quantized_old", torch.jit.trace(quantization.convert(NET), INPUT), INPUT)
