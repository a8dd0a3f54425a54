#!/usr/bin/env python3
"""Writes models/run_*.pt2 and the results of PyTorch beside them, in.NAME and out.NAME.

    python make_ops.py [FAMILY..]     (torch 2.15, numpy)

A model is a family of operators, whose results are called after them.  Archives are kept small: what
nobody reads (sample inputs, stack traces) is left out, the JSON is deflated, weights are stored."""
import io
import json
import os
import sys
import zipfile

import numpy
import torch
import torch.nn.functional as F
from torch import nn

FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "models")


def small(archive):
    """The archive without what nobody reads."""
    out = io.BytesIO()
    with zipfile.ZipFile(archive) as old, zipfile.ZipFile(out, "w") as new:
        for name in old.namelist():
            data = old.read(name)
            info = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))
            if "sample_inputs" in name or "/.data/" in name:
                continue
            if name.endswith(".json"):
                tree = json.loads(data)
                for node in tree.get("graph_module", {}).get("graph", {}).get("nodes", []):
                    node["metadata"] = {}
                if "torch_version" in tree:
                    tree["torch_version"] = "2.15"
                data = json.dumps(tree, separators=(",", ":")).encode()
                info.compress_type = zipfile.ZIP_DEFLATED
            new.writestr(info, data)
    return out.getvalue()


def results(module, inputs):
    """What eager gives, by name."""
    with torch.no_grad():
        want = module(*[x.clone() if torch.is_tensor(x) else x for x in inputs])
    if torch.is_tensor(want):
        want = (want,)
    if not isinstance(want, dict):
        want = {f"output_{i}": x for i, x in enumerate(want)}
    return {n: numpy.asarray(x.detach() if torch.is_tensor(x) else x) for n, x in want.items()}


def record(name, module, inputs, core=False, more=(), grad=False, **options):
    """Export, save, and results.  `more` inputs of other sizes: into sizes/, a file for each."""
    module.eval()
    names = [k for k in module.forward.__code__.co_varnames[1:1 + len(inputs)]]
    with torch.set_grad_enabled(grad):
        program = torch.export.export(module, tuple(inputs), **options)
        if core:
            program = program.run_decompositions()
    path = os.path.join(FOLDER, f"run_{name}")
    if more:
        path = os.path.join(os.path.dirname(FOLDER), "sizes", name)
    saved = io.BytesIO()
    torch.export.save(program, saved)
    with open(path + ".pt2", "wb") as f:
        f.write(small(saved))
    for k, given in enumerate(more):
        numpy.savez_compressed(f"{path}.{k}.in.npz", **{n: x.numpy() for n, x in zip(names, given)})
        numpy.savez_compressed(f"{path}.{k}.out.npz", **results(module, given))
    if not more:
        arrays = {f"in.{n}": x.numpy() for n, x in zip(names, inputs)}
        arrays |= {f"out.{n}": x for n, x in results(module, inputs).items()}
        numpy.savez_compressed(path + ".npz", **arrays)


class Of(nn.Module):
    """A function of up to three tensors to a dictionary, with the modules that it uses."""

    def __init__(self, function, **modules):
        super().__init__()
        self.function = function
        for name, m in modules.items():
            if isinstance(m, nn.Module):
                setattr(self, name, m)
            else:
                self.register_buffer(name, m)


class Of1(Of):
    def forward(self, x):
        return self.function(self, x)


class Of2(Of):
    def forward(self, x, y):
        return self.function(self, x, y)


class Of3(Of):
    def forward(self, x, y, z):
        return self.function(self, x, y, z)


def random(*shape):
    return torch.randn(*shape)


def each(names):
    """The functions of these names, one result each."""
    return lambda s, x: {n: getattr(torch, n, None)(x) if hasattr(torch, n) else getattr(F, n)(x) for n in names}


FAMILIES = {}


def family(f):
    FAMILIES[f.__name__] = f
    return f


@family
def unary():
    record("unary", Of1(each("abs neg sign floor ceil round trunc relu exp sigmoid tanh sin cos tan atan sinh asinh "
                             "erf erfc expm1 square exp2 reciprocal isnan isinf isfinite".split())), [random(3, 5) * 2])
    record("positive", Of1(each("log sqrt rsqrt log1p log2 log10".split())), [torch.rand(3, 5) * 3 + 1e-3])
    record("unit", Of1(each("asin acos atanh".split())), [torch.rand(3, 5) * 1.8 - 0.9])
    record("unary_core", Of1(each("silu gelu softplus logsigmoid".split())), [random(3, 5) * 2], core=True)


@family
def activations():
    record("activations", Of1(lambda s, x: {
        "relu6": F.relu6(x * 4), "hardtanh": F.hardtanh(x, -0.5, 0.7), "leaky": F.leaky_relu(x, 0.2),
        "elu": F.elu(x, 1.3), "selu": F.selu(x), "celu": F.celu(x, 0.7), "gelu": F.gelu(x),
        "gelu_tanh": F.gelu(x, approximate="tanh"), "silu": F.silu(x), "mish": F.mish(x),
        "hardsigmoid": F.hardsigmoid(x), "hardswish": F.hardswish(x), "softplus": F.softplus(x, 2, 3),
        "logsigmoid": F.logsigmoid(x), "softsign": F.softsign(x), "tanhshrink": F.tanhshrink(x),
        "softshrink": F.softshrink(x, 0.3), "hardshrink": F.hardshrink(x, 0.3), "threshold": F.threshold(x, 0.1, 7.0),
        "glu": F.glu(x, 1), "prelu": s.prelu(x), "prelu1": s.prelu1(x)},
        prelu=nn.PReLU(4, init=0.3), prelu1=nn.PReLU(init=0.2)), [random(3, 4) * 2])


@family
def binary():
    record("binary", Of2(lambda s, x, y: {
        "add": torch.add(x, y, alpha=2), "sub": x - y, "mul": x * y, "div": x / y, "rsub": 2 - x, "adds": x + 1,
        "floordiv": torch.div(x, y, rounding_mode="floor"), "truncdiv": torch.div(x, y, rounding_mode="trunc"),
        "floor_divide": x // y, "remainder": x % y, "fmod": torch.fmod(x, y), "maximum": torch.maximum(x, y),
        "minimum": torch.min(x, y), "pow2": x ** 2, "pow3": x ** 3, "pows": 2 ** x, "powt": x.abs() ** y,
        "root": x.abs() ** 0.5, "eq": x == x, "ne": x != y, "lt": x < y, "le": x <= 0.2, "gt": x > y, "ge": x >= 0,
        "where": torch.where(x > 0, x, y), "wheres": torch.where(x > 0, x, 0.5), "fill": x.masked_fill(y > 0, -3),
        "clamp": x.clamp(-0.5, 0.5), "clampmin": x.clamp(min=0.1), "clampmax": x.clamp_max(0.1),
        "clampt": torch.clamp(x, min=y), "addcmul": torch.addcmul(x, x, y, value=0.5),
        "addcdiv": torch.addcdiv(x, x, y, value=0.5), "lerp": torch.lerp(x, y, 0.3),
        "logaddexp": torch.logaddexp(x, y), "atan2": torch.atan2(x, y)}), [random(3, 5), random(5)])
    record("logic", Of2(lambda s, x, y: {
        "and": torch.logical_and(x, y), "or": torch.logical_or(x, y), "xor": torch.logical_xor(x, y),
        "not": torch.logical_not(x), "bits": x & 6, "bor": x | y, "bxor": x ^ y, "bnot": ~x,
        "band": (x > 2) & (y > 2), "bools": (x > 2) + (y > 2), "left": x << 2, "right": x >> 1,
        "any": (x > 2).any(), "all": (x > 2).all(1)}),
        [torch.randint(0, 9, (3, 5)), torch.randint(0, 9, (3, 5))])


@family
def promotion():
    """Scalars and tensors without dimensions widen only what is of a lower kind."""
    record("promotion", Of3(lambda s, x, y, z: {
        "int_float": x + 1.5, "int_int": x + 1, "bool_int": (x > 0) * 3, "small_int": y + 1000, "div": x / 2,
        "half": y.to(torch.float16) * 2.5, "double_dim0": z.double().sum() * z, "mean": z.mean() * x,
        "mixed": y + x, "unsigned": y.to(torch.uint8) + y, "sum": y.sum(), "sqrt": x.sqrt(), "intdiv": x // 2,
        "neg": (-x) // 2, "rem": (-x) % 3, "to": z.to(torch.int32), "bool": x.bool(), "fl": torch.full((2,), 3)}),
        [torch.randint(0, 9, (3,)), torch.randint(0, 9, (3,), dtype=torch.int8), random(3)])


@family
def reductions():
    record("reductions", Of1(lambda s, x: {
        "sum": x.sum(), "sum1": x.sum(1), "sumk": x.sum((0, 2), keepdim=True), "mean": x.mean(), "mean2": x.mean(-1),
        "amax": x.amax((1, 2)), "amin": x.amin(0), "max": x.max(), "maxv": x.max(1)[0], "maxi": x.max(1)[1],
        "mini": x.min(2, keepdim=True)[1], "argmax": x.argmax(), "argmin": x.argmin(1), "prod": x.prod(2),
        "var": x.var(1), "var0": x.var(unbiased=False), "std": x.std((0, 1), correction=2), "vm": torch.var_mean(x, 2)[0],
        "norm": torch.linalg.vector_norm(x, dim=1), "norm1": torch.norm(x, 1, dim=2), "normi": torch.linalg.vector_norm(x, float("inf"), dim=0),
        "normalize": F.normalize(x, dim=1), "lse": x.logsumexp(1), "softmax": x.softmax(1), "logsoftmax": x.log_softmax(-1),
        "cumsum": x.cumsum(1), "cumprod": x.cumprod(2), "topk": x.topk(2)[0], "topki": x.topk(2, 1, largest=False)[1],
        "sort": x.sort(1)[0], "argsort": x.argsort(2, descending=True), "cos": F.cosine_similarity(x, x + 1)}),
        [random(2, 3, 4)])


@family
def differences():
    record("diff", Of2(lambda s, x, y: {
        "last": x.diff(), "rows": x.diff(dim=0), "twice": x.diff(n=2, dim=1), "none": x.diff(n=0), "gone": x.diff(n=5, dim=0),
        "beside": x.diff(dim=1, prepend=y, append=x), "bool": (x > 0).diff(prepend=y > 0), "ints": (x * 9).to(torch.int64).diff()}),
        [random(3, 4), random(3, 1)])


@family
def convolutions():
    mods = dict(a=nn.Conv2d(4, 6, 3, 2, 1), b=nn.Conv2d(4, 4, 3, padding="same", groups=4, bias=False),
                c=nn.Conv2d(4, 6, 3, dilation=2, groups=2), d=nn.ConvTranspose2d(4, 6, 3, 2, 1, output_padding=1),
                e=nn.ConvTranspose2d(4, 4, 2, 2, groups=2, bias=False))
    record("conv2d", Of1(lambda s, x: {k: getattr(s, k)(x) for k in mods}, **mods), [random(2, 4, 9, 8)])
    record("conv2d_core", Of1(lambda s, x: {k: getattr(s, k)(x) for k in "abcde"},
                              a=nn.Conv2d(4, 6, 3, 2, 1), b=nn.Conv2d(4, 4, 3, padding=1, groups=4, bias=False),
                              c=nn.ConvTranspose2d(4, 6, 3, 2, 1, output_padding=1), d=nn.BatchNorm2d(4),
                              e=nn.GroupNorm(2, 4)), [random(2, 4, 9, 8)], core=True)
    mods1 = dict(a=nn.Conv1d(4, 6, 3, 2, 1), b=nn.Conv1d(4, 4, 4, padding="same"), c=nn.ConvTranspose1d(4, 6, 3, 2, 1))
    record("conv1d", Of1(lambda s, x: {k: getattr(s, k)(x) for k in mods1}, **mods1), [random(2, 4, 11)])
    record("conv_single", Of1(lambda s, x: {"a": s.a(x), "p": F.max_pool2d(x, 2)}, a=nn.Conv2d(4, 3, 3)), [random(4, 6, 6)])


@family
def pooling():
    record("pool", Of1(lambda s, x: {
        "max": F.max_pool2d(x, 3, 2, 1), "ceil": F.max_pool2d(x, 3, 2, ceil_mode=True), "dil": F.max_pool2d(x, 2, dilation=2),
        "avg": F.avg_pool2d(x, 3, 2, 1), "avgn": F.avg_pool2d(x, 3, 2, 1, count_include_pad=False),
        "avgc": F.avg_pool2d(x, 3, 2, 1, ceil_mode=True), "avgd": F.avg_pool2d(x, 2, divisor_override=3),
        "avgcn": F.avg_pool2d(x, 3, 2, 1, ceil_mode=True, count_include_pad=False),
        "one": F.adaptive_avg_pool2d(x, 1), "even": F.adaptive_avg_pool2d(x, (5, 2)), "odd": F.adaptive_avg_pool2d(x, (3, 5)),
        "amax": F.adaptive_max_pool2d(x, 1), "amaxe": F.adaptive_max_pool2d(x, (2, 2)),
        "near": F.interpolate(x, scale_factor=2), "nears": F.interpolate(x, size=(7, 13)),
        "lin": F.interpolate(x, scale_factor=2, mode="bilinear"), "lins": F.interpolate(x, size=(7, 13), mode="bilinear"),
        "linc": F.interpolate(x, size=(19, 5), mode="bilinear", align_corners=True),
        "cubic": F.interpolate(x, scale_factor=2, mode="bicubic")}), [random(2, 3, 10, 8)])
    record("pool1d", Of1(lambda s, x: {"max": F.max_pool1d(x, 3, 2, 1), "avg": F.avg_pool1d(x, 3, 2, 1),
                                       "one": F.adaptive_avg_pool1d(x, 1), "odd": F.adaptive_avg_pool1d(x, 4),
                                       "amax": F.adaptive_max_pool1d(x, 1)}), [random(2, 3, 11)])


@family
def volumes():
    mods = dict(a=nn.Conv3d(2, 4, 3, 2, 1), b=nn.Conv3d(2, 2, (1, 3, 2), padding="same", groups=2, bias=False), n=nn.BatchNorm3d(2),
                c=nn.Conv3d(2, 4, 2, dilation=2), d=nn.ConvTranspose3d(2, 4, 3, 2, 1, output_padding=1))
    for core in (False, True):
        record("conv3d" + "_core" * core, Of1(lambda s, x: {k: getattr(s, k)(x) for k in mods}, **mods), [random(2, 2, 5, 6, 7)], core=core)
        record("pool3d" + "_core" * core, Of1(lambda s, x: {
            "max": F.max_pool3d(x, 3, 2, 1), "ceil": F.max_pool3d(x, 3, 2, ceil_mode=True), "avg": F.avg_pool3d(x, 3, 2, 1),
            "avgn": F.avg_pool3d(x, 3, 2, 1, count_include_pad=False), "one": F.adaptive_avg_pool3d(x, 1),
            "even": F.adaptive_avg_pool3d(x, (2, 3, 2)), "odd": F.adaptive_avg_pool3d(x, (3, 4, 5)),
            "amax": F.adaptive_max_pool3d(x, (2, 2, 2))}), [random(2, 3, 4, 6, 8)], core=core)
    record("resize3d", Of1(lambda s, x: {
        "near": F.interpolate(x, scale_factor=2), "nears": F.interpolate(x, size=(7, 5, 3)),
        "lin": F.interpolate(x, scale_factor=(2, 1.5, 2), mode="trilinear"), "lins": F.interpolate(x, size=(3, 7, 5), mode="trilinear"),
        "linc": F.interpolate(x, size=(9, 5, 2), mode="trilinear", align_corners=True)}), [random(2, 3, 4, 6, 3)])
    record("resize1d", Of1(lambda s, x: {
        "near": F.interpolate(x, scale_factor=2), "lin": F.interpolate(x, scale_factor=1.5, mode="linear"),
        "linc": F.interpolate(x, size=9, mode="linear", align_corners=True)}), [random(2, 3, 4)])


@family
def norms():
    def trained(m):
        for name in "running_mean weight bias".split():
            if getattr(m, name, None) is not None:
                getattr(m, name).data = torch.randn_like(getattr(m, name))
        if getattr(m, "running_var", None) is not None:
            m.running_var = torch.rand_like(m.running_var) + 0.5
        return m
    mods = dict(bn=trained(nn.BatchNorm2d(4)), bnn=trained(nn.BatchNorm2d(4, affine=False)), ln=trained(nn.LayerNorm([5, 6])),
                lnb=nn.LayerNorm(6, elementwise_affine=False), gn=trained(nn.GroupNorm(2, 4)), rms=trained(nn.RMSNorm(6)),
                inorm=nn.InstanceNorm2d(4, affine=True), drop=nn.Dropout(0.5))
    record("norms", Of1(lambda s, x: {k: getattr(s, k)(x) for k in mods}, **mods), [random(2, 4, 5, 6)])
    core = {k: m for k, m in mods.items() if k in ("bn", "ln", "rms", "inorm", "drop")}
    record("norms_core", Of1(lambda s, x: {k: getattr(s, k)(x) for k in core}, **core), [random(2, 4, 5, 6)], core=True)


@family
def products():
    record("products", Of3(lambda s, x, y, z: {
        "lin": s.lin(x), "lin2": s.lin(z), "lin1": s.lin(z[0]), "matmul": x @ y, "rows": x @ y[0], "mm": z @ y[0], "mv": z @ y[0, :, 0],
        "bmm": torch.bmm(x, y), "vm": z[0] @ y, "dot": z[0] @ z[1], "addmm": torch.addmm(z @ y[0], z, y[0], beta=0.5, alpha=2),
        "baddbmm": torch.baddbmm(x @ y, x, y, beta=0.5), "bil": F.linear(x, s.lin.weight)},
        lin=nn.Linear(4, 3)), [random(2, 3, 4), random(2, 4, 5), random(6, 4)])


@family
def sums():
    record("einsum", Of3(lambda s, x, y, z: {
        "batch": torch.einsum("bij,bjk->bik", x, y), "one": torch.einsum("bij,kj->bik", x, z), "outer": torch.einsum("i,j->ij", x[0, 0], z[0]),
        "sum": torch.einsum("bij->i", x), "turn": torch.einsum("bij->jbi", x), "three": torch.einsum("bij,bjk,lj->bkl", x, y, z),
        "dot": torch.einsum("ij,ij->", z, z), "inner": torch.einsum("bij,bjk->kb", x, y), "times": torch.einsum("bij,bij->bij", x, x)}),
        [random(2, 3, 4), random(2, 4, 5), random(6, 4)])
    record("grids", Of2(lambda s, x, y: {
        "x": torch.meshgrid(x, y, indexing="ij")[0], "y": torch.meshgrid(x, y, indexing="xy")[1], "T": (x.unsqueeze(1) * y).T,
        "bx": torch.broadcast_tensors(x.unsqueeze(1), y)[0], "mse": F.mse_loss(x[:3], y), "l1": F.l1_loss(x[:3], y, reduction="sum")}),
        [random(4), random(3)])


ATEN = torch.ops.aten


@family
def backward():
    record("backward_conv", Of3(lambda s, x, y, z: dict(
        zip(("x", "w", "b"), ATEN.convolution_backward(z, x, y, [4], [2, 1], [1, 1], [1, 1], False, [0, 0], 1, [True, True, True]))) | {
            "one": ATEN.convolution_backward(z, x, y, None, [2, 1], [1, 1], [1, 1], False, [0, 0], 1, [False, True, False])[1]}),
        [random(2, 3, 7, 6), random(4, 3, 3, 3), random(2, 4, 4, 6)])
    record("backward_pool", Of2(lambda s, x, y: {
        "avg": ATEN.avg_pool2d_backward(y, x, [2, 2], [2, 2], [0, 0], False, True, None),
        "counted": ATEN.avg_pool2d_backward(y, x, [3, 3], [2, 2], [1, 1], False, False, None),
        "adaptive": ATEN._adaptive_avg_pool2d_backward(y, x), "odd": ATEN._adaptive_avg_pool2d_backward(y[:, :, :3], x),
        "max": ATEN.max_pool2d_with_indices_backward(y, x, [2, 2], [2, 2], [0, 0], [1, 1], False, s.at)},
        at=F.max_pool2d(random(2, 3, 8, 8), 2, return_indices=True)[1]), [random(2, 3, 8, 8), random(2, 3, 4, 4)])
    rows = torch.tensor([[2, 0, 1], [1, 2, 2]])
    record("backward_norm", Of2(lambda s, x, y: {
        f"layer{i}": v for i, v in enumerate(ATEN.native_layer_norm_backward(y, x, [4, 6], *ATEN.native_layer_norm(x, [4, 6], s.w, s.w, 1e-5)[1:],
                                                                             s.w, s.w, [True, True, True]))} | {
        f"group{i}": v for i, v in enumerate(ATEN.native_group_norm_backward(y, x, s.mean, s.rstd, s.g, 2, 4, 6, 2, [True, True, True]))} | {
        "table": ATEN.embedding_dense_backward(y[:, :3], s.at, 5, 1, False)},
        w=random(4, 6), g=random(4), mean=random(2, 2), rstd=torch.rand(2, 2), at=rows), [random(2, 4, 6), random(2, 4, 6)])


@family
def bags():
    at, offsets, more = torch.tensor([2, 0, 1, 1, 2, 4]), torch.tensor([0, 2, 2, 5]), torch.tensor([0, 2, 6])
    record("bags", Of1(lambda s, x: {
        "sum": F.embedding_bag(s.at, x, s.offsets, mode="sum"), "mean": F.embedding_bag(s.at, x, s.offsets),
        "max": F.embedding_bag(s.at, x, s.offsets, mode="max"), "weighted": F.embedding_bag(s.at, x, s.offsets, mode="sum", per_sample_weights=x[:, 0]),
        "last": F.embedding_bag(s.at, x, s.more, include_last_offset=True), "but": F.embedding_bag(s.at, x, s.offsets, padding_idx=1),
        "core": ATEN._embedding_bag(x, s.at, s.offsets)[0]}, at=at, offsets=offsets, more=more), [random(6, 3)])


@family
def randomly():
    """What is known of random numbers."""
    record("randomly", Of1(lambda s, x: {
        "rand": (torch.rand(64) < 1) & (torch.rand(64) >= 0), "randn": torch.randn(2, 3) * 0 + x, "like": torch.rand_like(x) * 0, "nlike": torch.randn_like(x) * 0,
        "perm": torch.randperm(9).sort()[0], "int": torch.randint(3, 4, (2, 2)), "once": torch.multinomial(s.odds, 1),
        "again": torch.multinomial(s.odds, 5, replacement=True), "each": torch.multinomial(s.some, 3).sort(-1)[0], "sure": torch.bernoulli(x * 0 + 1),
        "at": torch.normal(x, x * 0), "one": (torch.normal(torch.zeros(4096)).std() - 1).abs() < 0.1, "about": torch.normal(3.0, x * 0), "later": torch.empty(64).exponential_(2.0) >= 0, "between": F.rrelu(x),
        "wait": (torch.empty(4096).exponential_(2.0).mean() - 0.5).abs() < 0.05,
        "mean": torch.rand(4096).mean() > 0.4, "dev": (torch.randn(4096).std() - 1).abs() < 0.1},
        odds=torch.eye(3)[[1, 2]], some=torch.tensor([[0, 1.0, 2, 3], [1, 0, 1, 9]])), [random(2, 3)])
    record("sizes_of", Of1(lambda s, x: {
        "grown": ATEN.resize(x, [7])[:6], "cut": ATEN.resize(x, [2, 2])}), [random(2, 3)])


@family
def complexes():
    """Rotations as the first Llama had them, and transforms as core ATen has them."""
    def rotated(s, x):
        y = torch.view_as_complex(x.reshape(2, 3, 4, 2)) * s.turn
        return {"y": torch.view_as_real(y).flatten(2), "sum": torch.view_as_real(y[:, :1] + y), "abs": y.abs()}
    record("rotated", Of1(rotated, turn=torch.polar(torch.ones(3, 4), torch.arange(12.0).view(3, 4))), [random(2, 3, 8)])
    record("fourier", Of1(lambda s, x: {
        "r2c": torch.view_as_real(torch.fft.rfft2(x)), "all": torch.view_as_real(torch.fft.fftn(x, dim=(0, 2))), "c2r": torch.fft.irfftn(torch.fft.rfftn(x), s=x.shape),
        "ortho": torch.fft.ifft(torch.fft.fft(x, norm="ortho"), norm="ortho").real, "cut": torch.view_as_real(torch.fft.rfft(x, n=4))}), [random(2, 3, 6)], core=True)


@family
def decomposed():
    """What is quantized, as exporters write it."""
    import torch.ao.quantization.fx._decomposed  # noqa: F401
    q = torch.ops.quantized_decomposed

    def net(s, x):
        y = q.dequantize_per_tensor(q.quantize_per_tensor(x, 0.02, -7, -128, 127, torch.int8), 0.02, -7, -128, 127, torch.int8)
        w = q.dequantize_per_channel(s.w, s.scales, s.zeros, 0, -127, 127, torch.int8)
        z = F.conv2d(y, w, s.b)
        scale, zero = q.choose_qparams.tensor(z, 0, 255, 1e-5, torch.uint8)
        t = q.quantize_per_tensor.tensor(z, scale, zero, 0, 255, torch.uint8)
        return {"y": q.dequantize_per_tensor(q.quantize_per_tensor(z, 0.05, 3, 0, 127, torch.uint8), 0.05, 3, 0, 127, torch.uint8), "scale": scale, "zero": zero,
                "t": q.dequantize_per_tensor.tensor(t, scale, zero, 0, 255, torch.uint8)}
    record("decomposed", Of1(net, w=torch.randint(-127, 128, (4, 3, 3, 3), dtype=torch.int8), scales=torch.rand(4) * 0.01 + 0.001, zeros=torch.zeros(4, dtype=torch.int64), b=random(4)),
           [random(1, 3, 6, 6)])


class Kept(nn.Module):
    """Buffers that a run changes, one of them by a view: inputs, and results as they are then."""

    def __init__(self):
        super().__init__()
        self.register_buffer("cache", torch.randn(3, 4))
        self.register_buffer("runs", torch.tensor(2))

    def forward(self, x):
        y = x + self.cache
        self.cache[1:].mul_(0.5)
        self.cache.add_(y)
        self.runs.add_(1)
        return y * self.runs


@family
def states():
    for core in (False, True):
        net, x = Kept(), random(3, 4)
        before = {f"in.{n}": b.clone().numpy() for n, b in net.named_buffers()}
        record("states" + "_core" * core, net, [x], core=core)
        path = os.path.join(FOLDER, "run_states" + "_core" * core + ".npz")
        after = {f"out.{n}_out": b.numpy() for n, b in net.named_buffers()}
        with numpy.load(path) as had:
            arrays = dict(had)
        numpy.savez_compressed(path, **arrays, **before, **after)


class Quiet(nn.Module):
    def forward(self, x):
        with torch.no_grad():
            y = x * 2
            z = y.sin()
        return y + x, z


@family
def regions():
    record("no_grad", Quiet(), [random(2, 3)], grad=True)


@family
def shapes():
    record("shapes", Of1(lambda s, x: {
        "view": x.view(6, 4), "viewm": x.view(-1, 2), "reshape": x.transpose(0, 1).reshape(3, 8), "flatten": x.flatten(1),
        "unflatten": x.unflatten(2, (2, -1)), "squeeze": x[:1].squeeze(0), "squeezea": x[:1].squeeze(), "unsqueeze": x.unsqueeze(-1),
        "permute": x.permute(2, 0, 1), "transpose": x.transpose(0, -1), "t": x[0].t(), "mT": x.mT, "movedim": x.movedim(0, 2),
        "expand": x[:, :1].expand(2, 5, -1), "repeat": x.repeat(2, 1, 1), "repeat4": x.repeat(2, 1, 1, 2), "tile": x.tile(2),
        "inter": x.repeat_interleave(2, 1), "slice": x[:, 1:, ::2], "neg": x[:, -2:], "select": x[1], "selectn": x[..., -1],
        "split": x.split(2, 1)[1], "splits": x.split([1, 2], 1)[1], "chunk": x.chunk(2, 1)[0], "unbind": x.unbind(1)[2],
        "cat": torch.cat([x, x + 1], 1), "stack": torch.stack([x, x + 1], -1), "flip": x.flip(0, 2), "roll": x.roll((1, -2), (0, 2)),
        "pad": F.pad(x, (1, 2, 0, 1), value=3.0), "padn": F.pad(x, (-1, 1)), "reflect": F.pad(x, (1, 1), mode="reflect"),
        "edge": F.pad(x, (1, 2), mode="replicate"), "drop": F.dropout(x + 1, 0.2, False, inplace=True), "tril": x.tril(), "triu": x.triu(1), "narrow": x.narrow(2, 1, 2),
        "mixed": torch.cat([x, torch.ones(2, 1, 4, dtype=torch.int64)], 1)}),
        [random(2, 3, 4)])
    record("shuffle", Of1(lambda s, x: {"shuffle": F.pixel_shuffle(x, 2), "un": F.pixel_unshuffle(x, 2),
                                        "ch": F.channel_shuffle(x, 2)}), [random(1, 8, 4, 6)])


@family
def indices():
    record("indices", Of2(lambda s, x, y: {
        "emb": s.emb(y), "select": x.index_select(1, y[0]), "gather": x.gather(1, y.unsqueeze(-1).expand(-1, -1, 4)),
        "index": x[:, y[0]], "index2": x[y[1] % 2, y[0]], "index3": x[:, y[0], y[1]], "ellipsis": x[y[0] % 2, :, y[1]],
        "scatter": x.scatter(1, y.unsqueeze(-1), 9.0), "scatter_add": x.scatter_add(1, y.unsqueeze(-1), x),
        "scatter_src": x.scatter(1, y.unsqueeze(-1), x * 2), "put": torch.index_put(x, (y[0] % 2, y[1]), torch.zeros(4)),
        "putacc": torch.index_put(x, (y[0] % 2, y[1]), torch.ones(3, 4), accumulate=True),
        "copy": x.index_copy(1, y[0], x[:, :3] * 3), "onehot": F.one_hot(y, 4), "neg": x[:, y[0] - 3]},
        emb=nn.Embedding(7, 3, padding_idx=0)), [random(2, 3, 4), torch.tensor([[2, 0, 1], [1, 2, 0]])])


@family
def makers():
    record("makers", Of1(lambda s, x: {
        "full": torch.full((2, 3), 2.5) + x[0, 0], "zeros": torch.zeros(2) + x[0, :2], "ones": torch.ones_like(x), "like": torch.full_like(x, 3),
        "new": x.new_zeros(2, 2), "arange": torch.arange(5), "arange2": torch.arange(1, 9, 2), "arangef": torch.arange(0, 1, 0.25),
        "down": torch.arange(5, 0, -2), "eye": torch.eye(3), "eyem": torch.eye(2, 3), "lin": torch.linspace(0, 1, 5),
        "tensor": torch.tensor([1.0, 2.0]) * x[0, 0], "scalar": torch.tensor(3.0) * x, "mask": torch.tril(torch.ones(3, 3)).bool()}),
        [random(2, 3)])


@family
def attention():
    record("attention", Of3(lambda s, x, y, z: {
        "plain": F.scaled_dot_product_attention(x, y, y), "causal": F.scaled_dot_product_attention(x, y, y, is_causal=True),
        "mask": F.scaled_dot_product_attention(x, y, y, attn_mask=z), "bools": F.scaled_dot_product_attention(x, y, y, attn_mask=z > 0),
        "scale": F.scaled_dot_product_attention(x, y, y, scale=0.3),
        "gqa": F.scaled_dot_product_attention(x, y[:, :1], y[:, :1], enable_gqa=True)}),
        [random(2, 2, 3, 4), random(2, 2, 5, 4), random(3, 5)])
    record("mha", Of1(lambda s, x: {"mha": s.mha(x, x, x, need_weights=False)[0], "layer": s.layer(x)},
                      mha=nn.MultiheadAttention(8, 2, batch_first=True),
                      layer=nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)), [random(2, 5, 8)])
    record("mha_core", Of1(lambda s, x: {"mha": s.mha(x, x, x)[0], "w": s.mha(x, x, x)[1]},
                           mha=nn.MultiheadAttention(8, 2, batch_first=True)), [random(2, 5, 8)], core=True)


@family
def recurrent():
    mods = dict(lstm=nn.LSTM(4, 5, 2, batch_first=True, bidirectional=True), gru=nn.GRU(4, 5, 2, bidirectional=True),
                rnn=nn.RNN(4, 5), relu=nn.RNN(4, 5, nonlinearity="relu", bias=False))
    record("recurrent", Of1(lambda s, x: {"lstm": s.lstm(x)[0], "h": s.lstm(x)[1][0], "c": s.lstm(x)[1][1], "gru": s.gru(x)[0],
                                          "gruh": s.gru(x)[1], "rnn": s.rnn(x)[0], "relu": s.relu(x)[0]}, **mods), [random(3, 2, 4)])


@family
def recurrent_variants():
    kinds = dict(lstm=nn.LSTM, gru=nn.GRU, rnn=nn.RNN)
    mods = {k: m(4, 3, 2, bias=False, batch_first=True, bidirectional=True) for k, m in kinds.items()}
    record("recurrent_all", Of1(lambda s, x: {k + str(i): y for k in kinds for i, y in enumerate(getattr(s, k)(x)[:1])}, **mods), [random(2, 5, 4)])
    one, two = nn.LSTM(4, 6, proj_size=2), nn.LSTM(4, 6, 2, proj_size=3, bidirectional=True)

    def projected(s, x, h, c):
        y, (last, cell) = s.two(x, (h, c))
        return {"one": s.one(x)[0], "two": y, "last": last, "cell": cell}
    record("recurrent_projected", Of3(projected, one=one, two=two), [random(5, 3, 4), random(4, 3, 3), random(4, 3, 6)])


def changed(s, x):
    """Views of what is changed in place, and changes of views."""
    a = x.clone()
    row = a[1]
    a[:, 1:3] = 5.0
    a[0].add_(1)
    a.t()[3].mul_(2)
    b = x * 1
    v = b.view(-1)
    v[2:4].copy_(x[0, :2])
    b += 1
    c = torch.relu_(x * 2)
    d = x + 0
    d[d > 0.5] = 0.0
    e = x.clone()
    e.permute(1, 0)[1] = 3.0
    return {"a": a, "row": row, "b": b, "v": v, "c": c, "d": d, "e": e, "x": x}


@family
def in_place():
    record("in_place", Of1(changed), [random(3, 4)])


class Block(nn.Module):
    def __init__(self, i, o, stride):
        super().__init__()
        self.a, self.an = nn.Conv2d(i, o, 3, stride, 1, bias=False), nn.BatchNorm2d(o)
        self.b, self.bn = nn.Conv2d(o, o, 3, 1, 1, bias=False), nn.BatchNorm2d(o)
        self.down = nn.Sequential(nn.Conv2d(i, o, 1, stride, bias=False), nn.BatchNorm2d(o)) if stride > 1 else None
        self.relu = nn.ReLU(inplace=True)

    def forward(self, x):
        y = self.bn(self.b(self.relu(self.an(self.a(x)))))
        y += x if self.down is None else self.down(x)
        return self.relu(y)


@family
def networks():
    net = nn.Sequential(nn.Conv2d(3, 4, 7, 2, 3, bias=False), nn.BatchNorm2d(4), nn.ReLU(True), nn.MaxPool2d(3, 2, 1),
                        Block(4, 4, 1), Block(4, 8, 2), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8, 5))
    batch = torch.export.Dim("batch", min=1, max=16)
    for core in (False, True):
        record("resnet" + "_core" * core, Of1(lambda s, x: s.net(x), net=net), [random(3, 3, 16, 16)], core,
               [[random(n, 3, 16, 16)] for n in (1, 5)], dynamic_shapes={"x": {0: batch}})
    T = torch.export.Dim("T", min=3, max=32)
    record("sizes", Of2(lambda s, x, y: {
        "a": x.reshape(-1, 2), "b": torch.cat([x, y], 0), "d": torch.arange(x.shape[0]) + 1,
        "e": y.view(2, -1, 4), "f": torch.zeros(x.shape[0] + 1, 2), "g": x / x.shape[0], "h": x.t() @ x}),
        [random(6, 4), random(12, 4)], more=[[random(n, 4), random(2 * n, 4)] for n in (3, 10)], dynamic_shapes={"x": {0: T}, "y": {0: 2 * T}})


@family
def chosen():
    record("chosen", Of2(lambda s, x, y: {
        "diagonal": x.diagonal(0, 1, 2), "above": x.diagonal(1, 0, 2), "below": torch.diagonal_copy(x, -1, 1, 2),
        "scattered": x.masked_scatter(y > 0, y), "distance": torch.cdist(x, y), "largest": torch.cdist(x, y, float("inf")),
        "third": torch.cdist(x, y, 3.0), "around": F.pad(x, (1, 2, 2, 0), mode="circular"),
        "mirrored": F.pad(x[None], (1, 1, 2, 0, 0, 1), mode="reflect"), "kept": torch.ops.aten.native_dropout(x, 0.5, False)[0],
        "cell": s.cell(x[0], (y[0, :, :3], y[1, :, :3]))[1], "swapped": x.swapaxes(0, 2), "like": x.to(y > 0)},
        cell=nn.LSTMCell(5, 3)), [random(3, 4, 5), random(3, 4, 5)])


@family
def found():
    x = (torch.rand(4, 5) * 6).floor()
    record("found", Of1(lambda s, x: {"at": torch.nonzero(x), "some": torch.masked_select(x, x > 2.5), "take": torch.take(x, s.at)},
                        at=torch.tensor([[3, 17], [0, -1]])), [x])
    record("unique", Of1(lambda s, x: dict(zip("vic", torch.unique(x, return_inverse=True, return_counts=True)))), [x])
    limits = torch.tensor([0.5, 1.0, 2.0, 4.0])
    record("ranks", Of1(lambda s, x: {
        "b": torch.bucketize(x, s.l), "br": torch.bucketize(x, s.l, right=True, out_int32=True), "s": torch.searchsorted(s.rows, x),
        "sr": torch.searchsorted(s.rows, x, side="right"), "one": torch.searchsorted(s.l, 2.0)},
        l=limits, rows=torch.randn(4, 7).sort(1)[0]), [x])
    for core in (False, True):
        record("losses" + "_core" * core, Of1(lambda s, x: {
            "c": F.cross_entropy(x, s.t), "cw": F.cross_entropy(x, s.t, weight=s.w, ignore_index=2), "n": F.nll_loss(x, s.t, reduction="none"),
            "sum": F.nll_loss(x, s.t, reduction="sum"), "i": F.cross_entropy(x[:, :, None, None], s.t[:, None, None])},
            t=torch.tensor([1, 2, 0, 4]), w=torch.rand(5)), [random(4, 5)], core=core)


@family
def sampled():
    grid = torch.rand(2, 3, 4, 2) * 2.4 - 1.2
    record("grids", Of2(lambda s, x, y: {f"{m}{p}{a}": F.grid_sample(x, y, m, p, a) for m, p, a in (
        ("bilinear", "zeros", False), ("bilinear", "border", True), ("nearest", "reflection", False), ("bicubic", "zeros", True))}),
        [random(2, 3, 5, 6), grid])
    record("windows", Of1(lambda s, x: {
        "u": F.unfold(x, (2, 3), 1, 1, 2), "f": F.fold(F.unfold(x, 3, 1, 1), (6, 7), 3, 1, 1), "s": torch.as_strided(x, (3, 2), (2, 7), 5)}),
        [random(2, 3, 6, 7)])
    record("windows_core", Of1(lambda s, x: {"u": F.unfold(x, (2, 3)), "f": F.fold(F.unfold(x, 3), (6, 7), 3)}), [random(2, 3, 6, 7)], core=True)
    record("pdist", Of1(lambda s, x: {"two": F.pdist(x), "one": F.pdist(x, 1.0)}), [random(5, 3)])


@family
def boxes():
    import torchvision.ops as ops
    corner = torch.rand(12, 2) * 6
    at = torch.cat([corner, corner + torch.rand(12, 2) * 3 + 1], 1)
    record("boxes", Of3(lambda s, x, y, z: {
        "nms": ops.nms(y, z, 0.4), "roi": ops.roi_align(x, [y[:3], y[3:5]], (3, 2), 0.5, 2, True), "roi0": ops.roi_align(x, [y[:1], y[2:3]], 2)}),
        [random(2, 3, 8, 9), at, torch.rand(12)])
    conv = ops.DeformConv2d(4, 6, 3, 2, 1, groups=2)
    record("deform", Of3(lambda s, x, y, z: {"m": s.conv(x, y, z), "n": s.conv(x, y)}, conv=conv),
           [random(2, 4, 7, 6), random(2, 36, 4, 3), torch.rand(2, 18, 4, 3)])


@family
def parts():
    linear = nn.utils.weight_norm(nn.Linear(5, 4))
    record("parts", Of1(lambda s, x: {
        **{f"a{i}": y for i, y in enumerate(torch.tensor_split(x, 3, 1))}, **{f"b{i}": y for i, y in enumerate(torch.tensor_split(x, (1, 3)))},
        "w": s.linear(x), "g": torch.nn.functional.affine_grid(x[:2, :3][None], [1, 1, 2, 3])[0]}, linear=linear), [random(4, 5)])


@family
def control():
    from functorch.experimental.control_flow import map as mapped
    from torch._higher_order_ops.scan import scan
    from torch._higher_order_ops.while_loop import while_loop
    record("cond", Of1(lambda s, x: torch.cond(x.sum() > 0, lambda x: (x.sin() + 1, s.w * x), lambda x: (x * 2, x), (x,)), w=random(3)), [random(3)])
    record("while", Of2(lambda s, x, y: while_loop(lambda i, x: (i < 9) & (x.abs().max() < 30), lambda i, x: (i + 1, s.line(x) * 2 + y),
                                                    (torch.tensor(0), x)), line=nn.Linear(3, 3)), [random(2, 3), random(3)])
    record("scan", Of2(lambda s, x, y: scan(lambda c, r: (c + r * y, (c * r).sin()), torch.zeros(3), x)), [random(4, 3), random(3)])
    record("map", Of2(lambda s, x, y: {"z": mapped(lambda r, y: r.sin() + y, x, y)}), [random(4, 3), random(3)])


if __name__ == "__main__":
    os.makedirs(FOLDER, exist_ok=True)
    os.makedirs(os.path.join(os.path.dirname(FOLDER), "sizes"), exist_ok=True)
    for name, f in FAMILIES.items():
        torch.manual_seed(sum(name.encode()))
        if len(sys.argv) < 2 or name in sys.argv[1:]:
            try:
                f()
            except Exception as e:  # the others are written all the same
                print(f"{name}: {type(e).__name__}: {str(e)[:600]}", file=sys.stderr)
