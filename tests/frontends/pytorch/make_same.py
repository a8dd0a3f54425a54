#!/usr/bin/env python3
"""Writes same/NAME.pt2, .pt and .onnx, a network each, as PyTorch saves it in three ways.

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


def networks():
    yield "convolutions", nn.Sequential(nn.Conv2d(3, 8, 3, 2, 1), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2), Residual(8),
                                        nn.Conv2d(8, 8, 3, 1, 1, groups=8), nn.Hardswish(), nn.AdaptiveAvgPool2d(1), nn.Flatten(),
                                        nn.Linear(8, 5), nn.Softmax(1)), torch.randn(1, 3, 16, 16)
    yield "products", nn.Sequential(nn.Linear(12, 16), nn.GELU(), nn.LayerNorm(16), nn.Linear(16, 4), nn.Sigmoid()), torch.randn(2, 12)


for NAME, NET, X in networks():
    NET.eval()
    path = os.path.join(FOLDER, NAME)
    with torch.no_grad():
        program, saved = io.BytesIO(), io.BytesIO()
        torch.export.save(torch.export.export(NET, (X,)), program)
        torch.jit.save(torch.jit.trace(NET, X), saved)
        torch.onnx.export(NET, (X,), path + ".onnx", dynamo=False, input_names=["input"], output_names=["output_0"])
        onnx.save(bare(onnx.load(path + ".onnx")), path + ".onnx")
        numpy.savez_compressed(path + ".in.npz", input=X.numpy())
        numpy.savez_compressed(path + ".out.npz", output_0=NET(X).numpy())
    for ending, data in ((".pt2", small_program(program)), (".pt", small_module(saved))):
        with open(path + ending, "wb") as f:
            f.write(data)
