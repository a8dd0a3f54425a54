#!/usr/bin/env python3
"""Writes core.txt: the operators that PyTorch tags as its core set, an overload a line.

    python make_core.py     (torch 2.15)"""
import os

import torch

rows = set()
for name in torch._C._dispatch_get_all_op_names():
    space, _, rest = name.partition("::")
    op, _, overload = rest.partition(".")
    if space != "aten" or not hasattr(torch.ops.aten, op):
        continue
    packet = getattr(torch.ops.aten, op)
    overload = overload or "default"
    if overload in packet.overloads() and torch.Tag.core in getattr(packet, overload).tags:
        rows.add(f"{op} {overload}")
with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "core.txt"), "w") as f:
    f.write("\n".join(sorted(rows)) + "\n")
