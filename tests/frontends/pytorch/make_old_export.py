#!/usr/bin/env python3
"""Writes sizes/old_export_VERSION.pt2 as a torch before 2.8 saves it, and its results for two sizes beside it.

    python make_old_export.py      (torch 2.1 to 2.7, numpy 1; recorded with 2.2.2, 2.4.1, 2.5.1 and 2.6.0)

The program of 2.1 calls inputs arg0_1 and so on, and has what it does not say as null."""
import io
import json
import os
import zipfile

import numpy
import torch
import torch.nn.functional as F
from torch import nn

FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "sizes")


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.n, self.l = nn.Conv2d(3, 4, 3, 1, 1), nn.BatchNorm2d(4), nn.Linear(4, 2)
        self.w = nn.Parameter(torch.randn(2, 3).t())
        self.register_buffer("state", torch.randn(3))
        self.table = torch.arange(4, dtype=torch.float32)

    def forward(self, x, y):
        z = F.max_pool2d(F.relu(self.n(self.a(x))), 2).mean(3).transpose(1, 2) + self.table
        self.state.add_(y.sum(0))
        return {"a": self.l(z).reshape(x.shape[0] * 3, 2), "b": (y @ self.w, (y + self.state).half()[:, 1:])}


def cleaned(tree):
    """Without what nobody reads."""
    if isinstance(tree, dict):
        return {k: {} if k == "metadata" else "2" if k == "torch_version" else cleaned(v) for k, v in tree.items()}
    return [cleaned(x) for x in tree] if isinstance(tree, list) else tree


def small(archive):
    out = io.BytesIO()
    with zipfile.ZipFile(archive) as old, zipfile.ZipFile(out, "w") as new:
        for name in old.namelist():
            data, info = old.read(name), zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))
            if "example_inputs" in name or "/.data/" in name:
                continue
            if data[:1] == b"{":
                data = json.dumps(cleaned(json.loads(data)), separators=(",", ":")).encode()
                info.compress_type = zipfile.ZIP_DEFLATED
            elif data[:2] == b"PK":
                data = small(io.BytesIO(data))
            new.writestr(info, data)
    return out.getvalue()


def main():
    version = "_".join(torch.__version__.split(".")[:2])
    torch.manual_seed(0)
    net, x, y = Net().eval(), torch.randn(5, 3, 6, 5), torch.randn(4, 3)
    if version == "2_1":
        dims = {"constraints": [torch.export.dynamic_dim(x, 0) >= 2, torch.export.dynamic_dim(x, 0) <= 12]}
    else:
        dims = {"dynamic_shapes": {"x": {0: torch.export.Dim("batch", min=2, max=12)}, "y": None}}
    saved, state = io.BytesIO(), net.state.clone()
    program = torch.export.export(net, (x, y), **dims)
    torch.export.save(program, saved)
    stem = os.path.join(FOLDER, f"old_export_{version}")
    with open(stem + ".pt2", "wb") as f:
        f.write(small(saved))
    name = next(iter(program.graph_signature.buffers_to_mutate.values()), "state")  # 2.7 changes it in place
    for size, pictures in enumerate((x, torch.randn(8, 3, 6, 5))):
        net.state.copy_(state)
        with torch.no_grad():
            got = net(pictures, y)
        inputs = {name: state, **dict(zip(program.graph_signature.user_inputs, (pictures, y)))}
        results = {name + "_out": net.state, "a": got["a"], "b.0": got["b"][0], "b.1": got["b"][1]}
        for kind, values in (("in", inputs), ("out", results)):
            numpy.savez_compressed(f"{stem}.{size}.{kind}.npz", **{k: v.detach().numpy() for k, v in values.items()})


main()
