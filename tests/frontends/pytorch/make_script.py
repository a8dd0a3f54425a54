#!/usr/bin/env python3
"""Writes script/NAME.pt, modules of TorchScript, and results of PyTorch beside them.

    python make_script.py [NAME..]     (torch 2.15, torchvision, numpy)

NAME.in.npz and NAME.out.npz have the arguments of forward() and what it returns.  Archives are kept
small: what nobody reads (positions in the source) is left out, code is deflated."""
import io
import os
import sys
import zipfile
from typing import Dict, List, NamedTuple, Optional, Tuple

import numpy
import torch
import torch.nn.functional as F
import torchvision
from torch import Tensor, nn

FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "script")
MADE = {}


def small(archive):
    """The archive without what nobody reads."""
    out = io.BytesIO()
    with zipfile.ZipFile(archive) as old, zipfile.ZipFile(out, "w") as new:
        for name in old.namelist():
            if name.endswith(".debug_pkl") or "/.data/" in name:
                continue
            info = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))
            if name.endswith((".py", ".pkl")):
                info.compress_type = zipfile.ZIP_DEFLATED
            new.writestr(info, old.read(name))
    return out.getvalue()


def flat(value, name=""):
    """What forward() returns, by the names that results have."""
    if value is None:
        return {}
    if isinstance(value, dict):
        pairs = value.items()
    elif hasattr(value, "_fields"):
        pairs = zip(value._fields, value)
    elif isinstance(value, (tuple, list)):
        pairs = ((str(i) if name else f"output_{i}", x) for i, x in enumerate(value))
    else:
        return {name or "output_0": numpy.asarray(value.detach() if torch.is_tensor(value) else value)}
    out = {}
    for key, x in pairs:
        out |= flat(x, f"{name}.{key}" if name else str(key))
    return out


def record(name, module, inputs, traced=False, states=()):
    """Save, and what the saved module gives, with what it keeps as `states` say it."""
    module.eval()
    torch.manual_seed(1)
    args = tuple(inputs.values())
    with torch.no_grad():
        script = torch.jit.trace(module, args) if traced else torch.jit.script(module)
        saved = io.BytesIO()
        torch.jit.save(script, saved)
        saved.seek(0)
        loaded, states = torch.jit.load(saved), dict(states)
        for key, x in states.items():
            dict(loaded.named_buffers())[key].copy_(x)
        want = flat(loaded(*[x.clone() if torch.is_tensor(x) else x for x in args]))
        want |= {key + "_out": x.numpy() for key, x in loaded.named_buffers() if key in states}
    saved.seek(0)
    path = os.path.join(FOLDER, name)
    with open(path + ".pt", "wb") as f:
        f.write(small(saved))
    arrays = {}
    for key, x in (inputs | states).items():
        arrays |= flat(x, key)
    numpy.savez_compressed(path + ".in.npz", **arrays)
    numpy.savez_compressed(path + ".out.npz", **want)


def model(make):
    """A model: make() gives the module, its inputs, and whether it is traced."""
    MADE[make.__name__] = make
    return make


class Block(nn.Module):
    def __init__(self, channels, out, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(channels, out, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(out)
        self.conv2 = nn.Conv2d(out, out, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(out)
        self.relu = nn.ReLU(inplace=True)
        self.down: Optional[nn.Module] = None
        if stride > 1:
            self.down = nn.Sequential(nn.Conv2d(channels, out, 1, stride, bias=False), nn.BatchNorm2d(out))

    def forward(self, x):
        skip = x
        y = self.relu(self.bn1(self.conv1(x)))
        y = self.bn2(self.conv2(y))
        if self.down is not None:
            skip = self.down(x)
        y += skip
        return self.relu(y)


class ResNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, 8, 3, 2, 1), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(3, 2, 1))
        self.layers = nn.Sequential(Block(8, 8, 1), Block(8, 16, 2))
        self.pool = nn.AdaptiveAvgPool2d((1, 1))
        self.fc = nn.Linear(16, 10)

    def forward(self, x):
        return self.fc(torch.flatten(self.pool(self.layers(self.stem(x))), 1))


@model
def resnet_traced():
    return ResNet(), {"x": torch.randn(1, 3, 32, 32)}, True


@model
def resnet_scripted():
    return ResNet(), {"x": torch.randn(1, 3, 32, 32)}, False


class Sizes(nn.Module):
    """Sizes that tracing leaves in the code."""

    def forward(self, x):
        n, c, h, w = x.size()
        y = x.view(n, c // 2, 2, h * w).transpose(1, 2).contiguous().view(n, -1, h, w)
        y = F.interpolate(y, scale_factor=2.0, mode="bilinear", align_corners=False)
        z = x.reshape(x.shape[0], -1)[:, : x.shape[2] // 2 + 1]
        return y, z, x.new_zeros(h, w) + torch.arange(w), torch.zeros(n, 2).type_as(x)


@model
def sizes_traced():
    return Sizes(), {"x": torch.randn(2, 4, 5, 6)}, True


@model
def sizes_scripted():
    return Sizes(), {"x": torch.randn(2, 4, 5, 6)}, False


class InPlace(nn.Module):
    def forward(self, x, y):
        z = x.clone()
        z[:, 1:3] += 2.0
        z[0] = y
        z.mul_(0.5)
        w = torch.zeros_like(x)
        w[:, 0] = x[:, 1]
        return z, w.clamp_(min=0.1)


@model
def in_place_traced():
    return InPlace(), {"x": torch.randn(3, 4), "y": torch.randn(4)}, True


@model
def in_place_scripted():
    return InPlace(), {"x": torch.randn(3, 4), "y": torch.randn(4)}, False


class Pair(NamedTuple):
    low: Tensor
    high: Tensor


class Control(nn.Module):
    """Flags, lists, dictionaries, tuples, loops whose rounds are known, texts, exceptions."""

    def __init__(self):
        super().__init__()
        self.blocks = nn.ModuleList([nn.Linear(4, 4) for _ in range(3)])
        self.named = nn.ModuleDict({"a": nn.Linear(4, 2), "b": nn.Linear(4, 3)})
        self.mode = "sum"
        self.scales = [1, 2, 4]
        self.limit: Optional[float] = None

    def pair(self, x: Tensor) -> Pair:
        return Pair(x.min(), x.max())

    def forward(self, x: Tensor, k: int = 3) -> Tuple[Dict[str, Tensor], List[Tensor], Pair]:
        if x.dim() != 2:
            raise ValueError(f"{x.dim()} dimensions, not 2")
        kept: List[Tensor] = []
        for i, block in enumerate(self.blocks):
            x = torch.relu(block(x)) + float(i)
            kept.append(x)
        out: Dict[str, Tensor] = {}
        for name, m in self.named.items():
            out[name] = m(x)
        total = 0
        for s in self.scales:
            if s == 2:
                continue
            total += s
        while total > k:
            x = x * 2
            total -= 2
        if self.limit is not None:
            x = x.clamp(max=self.limit)
        if self.mode == "sum":
            out["total"] = x.sum(1)
        else:
            out["total"] = x.mean(1)
        first, *rest = (kept[0], kept[-1], torch.cat(kept[1:], 0))
        return out, [first, kept.pop(), torch.stack([t.mean() for t in kept])], self.pair(x)


@model
def control():
    return Control(), {"x": torch.randn(2, 4)}, False


class Parts(nn.Module):
    """Parts of lists in steps of both directions, from beyond their ends."""

    def forward(self, x: Tensor) -> List[Tensor]:
        rows = [x[0], x[1], x[2], x[3], x[4]]
        return [torch.stack(rows[::-1]), torch.stack(rows[3:0:-2]), torch.stack(rows[-2::-1]), torch.stack(rows[9:-9:-3]), torch.stack(rows[-9:9:2]),
                torch.stack(rows[:-3:-1]), torch.tensor([len(rows[1:3:-1]), len(rows[4:4:-1]), len(rows[::9223372036854775807])])]


@model
def parts_of_lists():
    return Parts(), {"x": torch.randn(5, 2)}, False


class Branches(nn.Module):
    """Branches that values of the run decide."""

    def __init__(self):
        super().__init__()
        self.up = nn.Linear(4, 4)
        self.down = nn.Linear(4, 4)

    def forward(self, x: Tensor, n: int, flag: bool, f: float):
        if bool(x.sum() > 0):
            y = self.up(x)
            k = 2
        else:
            y = self.down(x) * 0.5
            k = 3
        if n > 100:
            raise RuntimeError("too many")
        z = x
        if flag:
            if n > 2:
                z = x + n
            else:
                z = x - f
        m = n * 2 + 1 if n % 2 == 0 else -n
        return y * k, z, m, (x + m) / f, torch.where(x > 0, x, x * n)


@model
def branches():
    return Branches(), {"x": torch.randn(2, 4), "n": 4, "flag": True, "f": 2.5}, False


@model
def branches_other():
    return Branches(), {"x": torch.full((2, 4), -1.0), "n": 1, "flag": True, "f": 2.5}, False


class Cell(nn.Module):
    def __init__(self, kind):
        super().__init__()
        self.cell = kind(5, 6)
        self.kind = "lstm" if kind is nn.LSTMCell else "other"

    def forward(self, x: Tensor) -> Tensor:
        out = torch.jit.annotate(List[Tensor], [])
        h = torch.zeros(x.size(1), 6)
        for t in range(x.size(0)):
            h = self.cell(x[t], h)
            out.append(h)
        return torch.stack(out, 0)


class LstmCell(nn.Module):
    def __init__(self):
        super().__init__()
        self.cell = nn.LSTMCell(5, 6)

    def forward(self, x: Tensor) -> Tuple[Tensor, Tuple[Tensor, Tensor]]:
        state = (torch.zeros(x.size(1), 6), torch.zeros(x.size(1), 6))
        out = torch.jit.annotate(List[Tensor], [])
        for step in x.unbind(0):
            state = self.cell(step, state)
            out += [state[0]]
        return torch.stack(out), state


@model
def cell_lstm():
    return LstmCell(), {"x": torch.randn(4, 2, 5)}, False


@model
def cell_gru():
    return Cell(nn.GRUCell), {"x": torch.randn(4, 2, 5)}, False


@model
def cell_rnn():
    return Cell(nn.RNNCell), {"x": torch.randn(4, 2, 5)}, False


class Recurrent(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(12, 5)
        self.lstm = nn.LSTM(5, 6, 2, bidirectional=True, batch_first=True)
        self.gru = nn.GRU(12, 4)

    def forward(self, tokens):
        x, (h, c) = self.lstm(self.embed(tokens))
        y, _ = self.gru(x)
        return y, h, c


@model
def recurrent_traced():
    return Recurrent(), {"tokens": torch.randint(0, 12, (2, 5))}, True


@model
def recurrent_scripted():
    return Recurrent(), {"tokens": torch.randint(0, 12, (2, 5))}, False


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.mha = nn.MultiheadAttention(8, 2, batch_first=True)
        self.norm = nn.LayerNorm(8)
        self.ff = nn.Sequential(nn.Linear(8, 16), nn.GELU(), nn.Dropout(0.1), nn.Linear(16, 8))

    def forward(self, x):
        y, w = self.mha(x, x, x)
        x = self.norm(x + y)
        return x + self.ff(x), w


@model
def attention_traced():
    return Attention(), {"x": torch.randn(2, 5, 8)}, True


@model
def attention_scripted():
    return Attention(), {"x": torch.randn(2, 5, 8)}, False


class Layers(nn.Module):
    """Layers as they are scripted, whose functions have many branches."""

    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(
            nn.ConvTranspose2d(3, 4, 3, 2, 1, 1), nn.InstanceNorm2d(4), nn.LeakyReLU(0.1), nn.ReflectionPad2d(1),
            nn.Conv2d(4, 4, 3, padding="same", padding_mode="zeros"), nn.GroupNorm(2, 4), nn.SiLU(),
            nn.Upsample(scale_factor=2.0, mode="nearest"), nn.AvgPool2d(2), nn.Hardswish(),
            nn.Conv2d(4, 4, 3, padding=1, padding_mode="circular"), nn.ELU(), nn.PixelShuffle(2), nn.Softmax(dim=1),
            nn.ZeroPad2d(1), nn.AdaptiveMaxPool2d(3), nn.Flatten(), nn.LogSoftmax(1))

    def forward(self, x):
        return self.net(x)


@model
def layers_scripted():
    return Layers(), {"x": torch.randn(1, 3, 6, 6)}, False


@model
def layers_traced():
    return Layers(), {"x": torch.randn(1, 3, 6, 6)}, True


class Overloads(nn.Module):
    """Operators whose overloads the places and kinds of arguments tell apart."""

    def forward(self, x, i):
        a, b = torch.max(x, 1)
        c, d = x.sort(1, True)
        v, m = torch.var_mean(x, 1)
        return {"max": a, "argmax": b, "most": torch.max(x), "between": torch.max(x, x.neg()), "sorted": c, "order": d,
                "var": v, "mean": m, "var1": x.var(), "std": x.std(1, True), "biased": x.var(1, False), "sum": x.sum(),
                "sum1": x.sum((0, 1), keepdim=True), "range": torch.arange(3), "range2": torch.arange(1, 7, 2),
                "to": x.to(torch.int64), "like": i.to(x), "double": x.double().float(), "scatter": x.scatter(1, i, 2.0),
                "scattered": x.scatter(1, i, x), "gather": x.gather(1, i), "index": x[:, [0, 2]], "mask": x.masked_fill(x > 0, 1.0),
                "pow": x.pow(2), "rpow": 2 ** x, "norm": x.norm(), "norm1": x.norm(1, 1), "any": (x > 1).any(), "all": (x > -9).all(1),
                "div": torch.div(x, 2, rounding_mode="floor"), "rsub": 1 - x, "clamp": x.clamp(-1, 1), "top": x.topk(2, 1)[0],
                "flip": x.flip(1), "where": torch.where(x > 0, x, -1.0), "full": torch.full((2,), 3.0), "cat": torch.cat([x, x], -1),
                "constant": x + torch.tensor([1.0, 2.0, 3.0, 4.0]), "chunk": x.chunk(2, 1)[1], "split": x.split([1, 3], 1)[1]}


@model
def overloads_traced():
    return Strict(Overloads()), {"x": torch.randn(3, 4), "i": torch.tensor([[0, 1], [2, 3], [1, 0]])}, True


class Strict(nn.Module):
    """Dictionaries as results are not traced: their values in the order of their keys."""

    def __init__(self, of):
        super().__init__()
        self.of = of

    def forward(self, x, i):
        return tuple(self.of(x, i).values())


@model
def overloads_scripted():
    return Overloads(), {"x": torch.randn(3, 4), "i": torch.tensor([[0, 1], [2, 3], [1, 0]])}, False


class State(nn.Module):
    """Attributes that change: a run begins with what was saved."""

    def __init__(self):
        super().__init__()
        self.count = 0
        self.register_buffer("kept", torch.ones(4))
        self.last = torch.zeros(0)

    def forward(self, x: Tensor) -> Tensor:
        if self.last.numel() == 0:
            self.last = torch.ones_like(x)
        self.last = self.last + x
        self.count += 1
        return self.last * self.count + self.kept


@model
def state():
    return State(), {"x": torch.randn(4)}, False


class Kept(nn.Module):
    """A buffer that is set, and one of a part that is changed in place, by a view."""

    def __init__(self):
        super().__init__()
        self.cache = Rows()
        self.register_buffer("sum", torch.ones(3))

    def forward(self, x: Tensor) -> Tensor:
        rows = self.cache(x)
        self.sum = self.sum * 0.5 + rows.sum(0)
        return rows * self.sum


class Rows(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("rows", torch.zeros(4, 3))

    def forward(self, x: Tensor) -> Tensor:
        self.rows[1:3] = x
        self.rows[0].add_(1)
        return self.rows * 2


@model
def kept_scripted():
    return Kept(), {"x": torch.randn(2, 3)}, False, {"cache.rows": torch.randn(4, 3), "sum": torch.randn(3)}


@model
def kept_traced():
    """Of what is set, a trace knows nothing."""
    return Kept(), {"x": torch.randn(2, 3)}, True, {"cache.rows": torch.randn(4, 3)}


class Inputs(nn.Module):
    def forward(self, x: Tuple[Tensor, Tensor], scale: Optional[Tensor], k: int = 2) -> Tensor:
        y = x[0] + x[1]
        if scale is not None:
            y = y * scale
        return y * k


@model
def inputs():
    return Inputs(), {"x": (torch.randn(3), torch.randn(3)), "scale": torch.randn(3)}, False


class Rounds(nn.Module):
    """Loops that values of the run end: what they read from outside, and a loop within a loop."""

    def __init__(self):
        super().__init__()
        self.line = nn.Linear(3, 3)

    def forward(self, x: Tensor, n: Tensor) -> Tuple[Tensor, int, Tensor, Tensor]:
        scale = x.abs().mean()
        y, k = x, 0
        while float(y.abs().max()) < 30:
            y = self.line(y) * 2 + scale * x
            k += 1
        z = torch.zeros_like(x)
        for i in range(int(n)):
            z = z + y * i
            if float(z.sum()) > 100:
                z = z / 2
        w = x
        for _ in range(int(n)):
            while float(w.sum()) < 5:
                w = w + scale
            w = w * 0.5
        return y, k, z, w


@model
def rounds():
    return Rounds(), {"x": torch.randn(2, 3), "n": torch.tensor(4)}, False


class Spectrum(nn.Module):
    """Short-time transforms, there and back, and complex numbers on the way."""

    def __init__(self):
        super().__init__()
        self.register_buffer("window", torch.hann_window(16))
        self.register_buffer("short", torch.hann_window(12))
        self.register_buffer("turn", torch.polar(torch.ones(9, 1), torch.linspace(0, 3, 9)[:, None]))

    def forward(self, x: Tensor) -> Dict[str, Tensor]:
        s = torch.stft(x, 16, 4, window=self.window, return_complex=True)
        t = torch.stft(x[0], 16, 8, 12, window=self.short, center=False, normalized=True, onesided=False, return_complex=True)
        u = s * self.turn + s / 2 - 1
        f = torch.fft.rfft(x, dim=0, norm="ortho")
        return {"power": s.abs() ** 2, "phase": torch.cos(s[:, 1:8].angle()), "real": t.real, "imag": t.imag, "pairs": torch.view_as_real(u.transpose(1, 2)[:, 1:]),
                "again": torch.istft(s, 16, 4, window=self.window), "cut": torch.istft(s, 16, 4, window=self.window, length=40), "f": torch.view_as_real(f.conj().resolve_conj()),
                "back": torch.fft.irfft(torch.fft.rfft(x), n=50), "whole": torch.fft.ifft2(torch.fft.fft2(x)).real, "product": torch.view_as_real(f * torch.complex(x[:2], x[1:3])),
                "sizes": torch.zeros(s.size(1), s.dim()), "quotient": torch.view_as_real(f / (torch.conj_physical(f) + 3))}


@model
def spectrum():
    return Spectrum(), {"x": torch.randn(3, 50)}, False


class Detections(nn.Module):
    """What is done with boxes behind a detector: how many there are, the run decides."""

    def forward(self, images: List[Tensor], scores: Tensor) -> List[Dict[str, Tensor]]:
        out: List[Dict[str, Tensor]] = []
        for x in images:
            assert isinstance(x, Tensor)
            keep = scores > 0.3
            boxes, best = x[keep], scores[keep]
            best, order = best.topk(min(6, best.size(0)))
            boxes = boxes[order]
            if boxes.numel() == 0:
                at = torch.empty([0], dtype=torch.int64)
            else:
                at = torch.where(boxes[:, 2] > boxes[:, 0])[0]
            at = at[torchvision.ops.batched_nms(boxes[at], best[at], at % 2, 0.4)]
            out.append({"boxes": boxes[at], "scores": best[at]})
        return out


class Heads(nn.Module):
    """The second half of a detector: boxes that a run counts, decoded where there are any; dictionaries of losses."""

    def forward(self, codes: Tensor, boxes: List[Tensor], scores: Tensor) -> Tuple[Dict[str, Tensor], Tensor, Tensor]:
        at = torch.where(scores > 0.5)[0]
        kept = [b[at] for b in boxes]
        rows = torch.cat([codes[at] for b in boxes])
        count = 0
        for b in kept:
            count += b.size(0)
        if count > 0:
            rows = rows.reshape(count, -1)
        out = (rows * 2.0).reshape(rows.size(0), 6)
        if count > 0:
            out = out.reshape(count, -1, 2)
        losses: Dict[str, Tensor] = {"a": scores}
        losses.update({"b": scores + 1.0, "a": scores * 3.0})
        return losses, out, torch.cat(kept)


@model
def heads():
    return Heads(), {"codes": torch.randn(7, 6), "boxes": [torch.rand(7, 4), torch.rand(7, 4)], "scores": torch.rand(7)}, False


class Instances(nn.Module):
    """What torchvision does with each box: its mask pasted into the picture, its map's highest places."""

    def forward(self, masks: Tensor, maps: Tensor, boxes: Tensor, scores: Tensor) -> Dict[str, Tensor]:
        at = torch.where(scores > 0.4)[0]
        places, best = torchvision.models.detection.roi_heads.heatmaps_to_keypoints(maps[at], boxes[at])
        return {"masks": torchvision.models.detection.roi_heads.paste_masks_in_image(masks[at], boxes[at], (9, 11)),
                "places": places, "best": best}


@model
def instances():
    corner = torch.rand(5, 2) * 6
    boxes = torch.cat([corner, corner + 0.5 + torch.rand(5, 2) * torch.tensor([6.0, 4.0])], 1)
    return Instances(), {"masks": torch.rand(5, 1, 4, 4), "maps": torch.randn(5, 3, 6, 6), "boxes": boxes,
                         "scores": torch.tensor([0.9, 0.1, 0.6, 0.3, 0.8])}, False


@model
def detections():
    corner = torch.rand(9, 2)
    boxes = torch.cat([corner, corner + torch.rand(9, 2)], 1)
    return Detections(), {"images": [boxes, boxes.flip(0)], "scores": torch.rand(9)}, False


def quantized(net, x):
    """As eager mode quantizes it: observed, with a scale for each channel of the weights."""
    import torch.ao.quantization as quantization
    torch.backends.quantized.engine = "fbgemm"
    net = nn.Sequential(quantization.QuantStub(), net, quantization.DeQuantStub()).eval()
    net.qconfig = quantization.get_default_qconfig("fbgemm")
    quantization.prepare(net, inplace=True)
    net(x)
    return quantization.convert(net, inplace=True)


class Quantizable(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b, self.up = nn.Conv2d(3, 6, 3, 2, 1), nn.Conv2d(6, 6, 3, 1, 1, groups=6), nn.ConvTranspose2d(6, 6, 2, 2)
        self.up.qconfig = torch.ao.quantization.default_qconfig
        self.sum, self.join, self.line = nn.quantized.FloatFunctional(), nn.quantized.FloatFunctional(), nn.Linear(12, 5)
        self.swish, self.leaky = nn.Hardswish(), nn.LeakyReLU(0.1)

    def forward(self, x: Tensor) -> Tensor:
        x = self.swish(self.a(x))
        y = self.sum.add_relu(x, self.leaky(self.b(x)))
        y = self.join.cat([y, F.max_pool2d(self.up(y), 2)], 1)
        y = F.adaptive_avg_pool2d(torch.relu(y), 1).flatten(1)
        return torch.sigmoid(self.line(y))


for NAME, TRACED in (("quantized_traced", True), ("quantized_scripted", False)):
    MADE[NAME] = lambda traced=TRACED: (quantized(Quantizable(), torch.randn(4, 3, 8, 8)), {"input": torch.randn(2, 3, 8, 8)}, traced)


class Dynamic(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(8, 6), nn.Linear(6, 4)

    def forward(self, x: Tensor) -> Tensor:
        return self.b(torch.relu(self.a(x)))


@model
def quantized_dynamic():
    torch.backends.quantized.engine = "fbgemm"
    return torch.ao.quantization.quantize_dynamic(Dynamic(), {nn.Linear}), {"x": torch.randn(3, 8)}, True


class Integers(nn.Module):
    """Functions of quantized tensors, which need no layers."""

    def __init__(self):
        super().__init__()
        self.register_buffer("scales", torch.tensor([0.02, 0.03, 0.01]))
        self.register_buffer("zeros", torch.tensor([0, 3, -5]))

    def forward(self, x: Tensor) -> Dict[str, Tensor]:
        q = torch.quantize_per_tensor(x, 0.03, 100, torch.quint8)
        c = torch.quantize_per_channel(x, self.scales, self.zeros, 1, torch.qint8)
        z = torch.ops.quantized
        return {"ints": q.int_repr(), "channels": c.dequantize(), "cells": c.int_repr(), "zero": torch.tensor(q.q_zero_point()),
                "mul": z.mul(q, q, 0.05, 30).dequantize(), "plus": z.add_scalar(q, 0.31).dequantize(), "times": z.mul_scalar(q, -0.5).dequantize(),
                "relu6": z.relu6(q).dequantize(), "pool": F.max_pool2d(q, 2).dequantize(), "view": q.transpose(2, 3)[:, 1:].contiguous().view(1, -1).dequantize(),
                "clamp": torch.clamp(q, -0.5, 0.5).dequantize(), "tanh": torch.tanh(q).int_repr(), "sigmoid": torch.sigmoid(q).int_repr(),
                "mean": q.mean([2, 3]).dequantize(), "resize": F.interpolate(q, scale_factor=2.0).dequantize()}


@model
def quantized_functions():
    return Integers(), {"x": torch.randn(1, 3, 4, 4)}, False


if __name__ == "__main__":
    for NAME in sys.argv[1:] or MADE:
        torch.manual_seed(0)
        record(NAME, *MADE[NAME]())
