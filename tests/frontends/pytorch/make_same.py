#!/usr/bin/env python3
"""Writes same/NAME.pt2, .pt, .onnx and .dynamo.onnx, a network each, as PyTorch saves it, the last by its newer exporter.

    python make_same.py     (torch 2.15, onnx)

NAME.in.npz has inputs and NAME.out.npz what PyTorch makes of them."""
import io
import os

import numpy
import onnx
import torch
from torch import nn

from make_ops import small as small_program
from make_script import small as small_module

torch.manual_seed(3)
NORMS = nn.BatchNorm1d, nn.BatchNorm2d, nn.GroupNorm, nn.InstanceNorm2d
FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "same")


def bare(model):
    """Without where its nodes come from."""
    for of in (model, model.graph, *model.graph.node, *model.graph.input, *model.graph.output, *model.graph.value_info):
        del of.metadata_props[:]
    return model


class Residual(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(channels, channels, 3, 1, 1, bias=False), nn.BatchNorm2d(channels), nn.ReLU(),
                                  nn.Conv2d(channels, channels, 3, 1, 1, bias=False), nn.BatchNorm2d(channels))

    def forward(self, x):
        return torch.relu(x + self.body(x))


class Block(nn.Module):
    """Of a transformer: each product is behind a reshape, or before one."""

    def __init__(self, width, heads):
        super().__init__()
        self.heads, self.qkv, self.out = heads, nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.norm, self.up, self.down = nn.LayerNorm(width), nn.Linear(width, 2 * width), nn.Linear(2 * width, width)

    def forward(self, x):
        n, t, d = x.shape
        q, k, v = self.qkv(x).view(n, t, 3, self.heads, d // self.heads).permute(2, 0, 3, 1, 4).unbind()
        y = torch.softmax(q @ k.transpose(2, 3), -1) @ v
        x = self.norm(x + self.out(y.transpose(1, 2).reshape(n, t, d)))
        return x + self.down(torch.relu(self.up(x)))


class Joined(nn.Module):
    """A network of images back at their size, with what norms compute of the images themselves."""

    def __init__(self):
        super().__init__()
        self.down = nn.Sequential(nn.Conv2d(3, 8, 3, 1, 1), nn.GroupNorm(2, 8), nn.SiLU())
        self.low = nn.Sequential(nn.Conv2d(8, 16, 3, 2, 1), nn.InstanceNorm2d(16, affine=True), nn.LeakyReLU(0.1))
        self.up, self.out = nn.ConvTranspose2d(16, 8, 3, 2, 1, 1), nn.Conv2d(16, 4, 1)

    def forward(self, input):
        x = self.down(input)
        return self.out(torch.cat([self.up(self.low(x)), x], 1))


class Words(nn.Module):
    def __init__(self):
        super().__init__()
        self.words, self.forwards = nn.Embedding(30, 8), nn.GRU(8, 12, batch_first=True)
        self.both, self.out = nn.LSTM(12, 6, batch_first=True, bidirectional=True), nn.Linear(24, 5)

    def forward(self, input):
        y = self.both(self.forwards(self.words(input))[0])[0]
        return torch.log_softmax(self.out(torch.cat([y.mean(1), y.amax(1)], 1)), 1)


def networks():
    yield "convolutions", nn.Sequential(nn.Conv2d(3, 8, 3, 2, 1), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2), Residual(8),
                                        nn.Conv2d(8, 8, 3, 1, 1, groups=8), nn.Hardswish(), nn.AdaptiveAvgPool2d(1), nn.Flatten(),
                                        nn.Linear(8, 5), nn.Softmax(1)), torch.randn(1, 3, 16, 16)
    yield "transformer", nn.Sequential(Block(16, 2), nn.Linear(16, 4)), torch.randn(1, 6, 16)
    yield "products", nn.Sequential(nn.Linear(12, 16), nn.GELU(), nn.LayerNorm(16), nn.Linear(16, 4), nn.Sigmoid()), torch.randn(2, 12)
    yield "joined", Joined(), torch.randn(1, 3, 16, 16)
    yield "lines", nn.Sequential(nn.Conv1d(2, 16, 8, 4, 2), nn.BatchNorm1d(16), nn.ReLU(), nn.MaxPool1d(2), nn.Conv1d(16, 16, 3, 1, 2, 2), nn.ELU(),
                                 nn.Flatten(), nn.Linear(16 * 16, 5)), torch.randn(1, 2, 128)
    yield "words", Words(), torch.randint(0, 30, (1, 7))


for NAME, NET, X in networks():
    NET.eval()
    for m in NET.modules():  # a bias of zeros goes in some of the forms
        for name in ("weight", "bias", "running_mean", "running_var"):
            if isinstance(m, NORMS) and getattr(m, name, None) is not None:
                nn.init.uniform_(getattr(m, name), 0.5, 1.5)
    path = os.path.join(FOLDER, NAME)
    with torch.no_grad():
        program, saved = io.BytesIO(), io.BytesIO()
        torch.export.save(torch.export.export(NET, (X,)), program)
        torch.jit.save(torch.jit.trace(NET, X), saved)
        for ending, dynamo in ((".onnx", False), (".dynamo.onnx", True)):
            torch.onnx.export(NET, (X,), path + ending, dynamo=dynamo, external_data=False, input_names=["input"],
                              output_names=["output_0"])
            onnx.save(bare(onnx.load(path + ending)), path + ending)
        numpy.savez_compressed(path + ".in.npz", input=X.numpy())
        numpy.savez_compressed(path + ".out.npz", output_0=NET(X).numpy())
    for ending, data in ((".pt2", small_program(program)), (".pt", small_module(saved))):
        with open(path + ending, "wb") as f:
            f.write(data)
