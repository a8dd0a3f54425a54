"""Networks as people ship them, small and with random weights: encoders and decoders of speech, of pictures and text
together, detectors, and what torch exports of control flow, caches in buffers, halves and bytes.
"""
import dataclasses
import math

import torch
import torch.nn.functional as F
import torchvision
from torch import nn

from nets import BATCH, MODELS, PICTURE, SEQUENCE, Attention, Block, Case, Input, lengths, model, vivid, words

# ---- speech -----------------------------------------------------------------------------------------------------


class Cross(nn.Module):
    """Attention over what an encoder made, whose keys and values are kept."""

    def __init__(self, width, heads):
        super().__init__()
        self.heads, self.q, self.out = heads, nn.Linear(width, width), nn.Linear(width, width)

    def forward(self, x, k, v):
        batch, steps, width = x.shape
        q = self.q(x).view(batch, steps, self.heads, width // self.heads).transpose(1, 2)
        y = F.scaled_dot_product_attention(q, k, v)
        return self.out(y.transpose(1, 2).reshape(batch, steps, width))


def sinusoids(length, width):
    angle = torch.arange(length)[:, None] * torch.exp(-math.log(10000) / (width // 2 - 1) * torch.arange(width // 2))
    return torch.cat([angle.sin(), angle.cos()], 1)


class Hearing(nn.Module):
    """Encoder of a whisper-like network: the keys and values that its decoder looks at."""

    def __init__(self, width=32, heads=4, mels=16):
        super().__init__()
        self.heads, self.conv1, self.conv2 = heads, nn.Conv1d(mels, width, 3, 1, 1), nn.Conv1d(width, width, 3, 2, 1)
        self.register_buffer("position", sinusoids(128, width))
        self.blocks = nn.ModuleList(Block(width, heads) for _ in range(2))
        self.norm, self.kv = nn.LayerNorm(width), nn.Linear(width, 2 * width)

    def forward(self, mel):
        x = F.gelu(self.conv2(F.gelu(self.conv1(mel)))).transpose(1, 2)
        x = x + self.position[:x.shape[1]]
        for block in self.blocks:
            x = block(x)[0]
        k, v = (t.view(t.shape[0], t.shape[1], self.heads, -1).transpose(1, 2) for t in self.kv(self.norm(x)).chunk(2, 2))
        return k, v


@model
def whisper_encoder():
    return Case(Hearing(), [Input("mel", ["batch", 16, "frames"])], BATCH | {"frames": (2, 200)}, ["keys", "values"])


class Telling(nn.Module):
    """Its decoder, a step or a prompt: what it said so far is a cache that grows."""

    def __init__(self, width=32, heads=4, count=64):
        super().__init__()
        self.embed, self.position = nn.Embedding(count, width), nn.Embedding(128, width)
        self.attention, self.cross = Attention(width, heads), Cross(width, heads)
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(4))
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, ids, keys, values, past_key, past_value):
        before, steps = past_key.shape[2], ids.shape[1]
        at = torch.arange(before, before + steps)
        mask = torch.arange(before + steps)[None, :] <= at[:, None]
        x = self.embed(ids) + self.position(at)
        y, k, v = self.attention(self.norms[0](x), mask, (past_key, past_value))
        x = x + y
        x = x + self.cross(self.norms[1](x), keys, values)
        x = x + self.mlp(self.norms[2](x))
        return F.log_softmax(self.norms[3](x) @ self.embed.weight.T, 2), k, v


@model
def whisper_decoder():
    cache, seen = ["batch", 4, "past", 8], ["batch", 4, "frames", 8]
    return Case(Telling(), [Input("ids", ["batch", "sequence"], words(64)), Input("keys", seen), Input("values", seen),
                            Input("past_key", cache), Input("past_value", cache)],
                SEQUENCE | {"frames": (1, 100), "past": (0, 90)}, ["logits", "key", "value"])


class Conformer(nn.Module):
    """Half feed-forward, attention with relative positions and a mask, convolution, half feed-forward."""

    def __init__(self, width=32, heads=4):
        super().__init__()

        def forward_half():
            return nn.Sequential(nn.LayerNorm(width), nn.Linear(width, 2 * width), nn.SiLU(), nn.Linear(2 * width, width))

        self.first, self.last, self.heads = forward_half(), forward_half(), heads
        self.norm, self.qkv, self.out = nn.LayerNorm(width), nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.far = nn.Embedding(33, heads)
        self.before, self.after = nn.LayerNorm(width), nn.LayerNorm(width)
        self.wide, self.depth, self.narrow = (nn.Conv1d(width, 2 * width, 1), nn.Conv1d(width, width, 7, padding=3, groups=width),
                                              nn.Conv1d(width, width, 1))
        self.batch = nn.BatchNorm1d(width)

    def forward(self, x, mask):
        batch, steps, width = x.shape
        x = x + 0.5 * self.first(x)
        q, k, v = (t.view(batch, steps, self.heads, -1).transpose(1, 2) for t in self.qkv(self.norm(x)).chunk(3, 2))
        at = torch.arange(steps)
        bias = self.far((at[None, :] - at[:, None]).clamp(-16, 16) + 16).permute(2, 0, 1)
        s = (q @ k.transpose(2, 3)) / q.shape[3] ** 0.5 + bias
        y = s.masked_fill(~mask[:, None, None, :], float("-inf")).softmax(-1) @ v
        x = x + self.out(y.transpose(1, 2).reshape(batch, steps, width))
        y = self.before(x).transpose(1, 2).masked_fill(~mask[:, None, :], 0.0)
        x = x + self.narrow(F.silu(self.batch(self.depth(F.glu(self.wide(y), 1))))).transpose(1, 2)
        return self.after(x + 0.5 * self.last(x))


class Recognizer(nn.Module):
    def __init__(self, width=32):
        super().__init__()
        self.conv1, self.conv2 = nn.Conv2d(1, 8, 3, 2, 1), nn.Conv2d(8, 8, 3, 2, 1)
        self.project, self.out = nn.Linear(8 * 4, width), nn.Linear(width, 29)
        self.blocks = nn.ModuleList(Conformer(width) for _ in range(2))

    def forward(self, mel, mask):
        x = F.relu(self.conv2(F.relu(self.conv1(mel[:, None]))))
        x = self.project(x.transpose(1, 2).flatten(2))
        mask = mask[:, ::2][:, ::2]
        for block in self.blocks:
            x = block(x, mask)
        return F.log_softmax(self.out(x), 2), mask.sum(1)


@model
def conformer():
    return Case(Recognizer(), [Input("mel", ["batch", "frames", 16]), Input("mask", ["batch", "frames"], lengths)],
                BATCH | {"frames": (4, 120)}, ["logits", "lengths"])


# ---- pictures and text ------------------------------------------------------------------------------------------


class Clip(nn.Module):
    """Two towers: pictures and texts that end at their largest word, as vectors of length 1, each against each."""

    def __init__(self, width=32):
        super().__init__()
        self.patch, self.cls = nn.Conv2d(3, width, 8, 8, bias=False), nn.Parameter(torch.randn(width))
        self.places = nn.Parameter(torch.randn(17, width) * 0.1)
        self.embed, self.position = nn.Embedding(100, width), nn.Parameter(torch.randn(32, width) * 0.1)
        self.eyes, self.ears = (nn.ModuleList(Block(width) for _ in range(2)) for _ in range(2))
        self.see, self.hear = nn.Linear(width, 16, bias=False), nn.Linear(width, 16, bias=False)
        self.scale = nn.Parameter(torch.tensor(2.6))

    def forward(self, picture, ids):
        x = self.patch(picture).flatten(2).transpose(1, 2)
        x = torch.cat([self.cls.expand(x.shape[0], 1, -1), x], 1) + self.places
        for block in self.eyes:
            x = block(x)[0]
        x = F.normalize(self.see(x[:, 0]), dim=-1)
        steps = ids.shape[1]
        y = self.embed(ids) + self.position[:steps]
        mask = torch.full((steps, steps), float("-inf")).triu(1)
        for block in self.ears:
            y = block(y, mask)[0]
        y = F.normalize(self.hear(y[torch.arange(y.shape[0]), ids.argmax(-1)]), dim=-1)
        return self.scale.exp() * x @ y.T, x, y


@model
def clip():
    return Case(Clip(), [Input("picture", ["pictures", 3, 32, 32]), Input("ids", ["texts", "sequence"], words(100))],
                {"pictures": (1, 4), "texts": (1, 6), "sequence": (1, 32)}, ["scores", "seen", "heard"])


# ---- pictures of any size ---------------------------------------------------------------------------------------


class Detr(nn.Module):
    """A transformer over the cells of a picture, with queries for boxes."""

    def __init__(self, width=32, queries=6):
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(3, 16, 3, 2, 1), nn.ReLU(), nn.Conv2d(16, 32, 3, 2, 1), nn.BatchNorm2d(32),
                                  nn.ReLU(), nn.Conv2d(32, width, 3, 2, 1))
        self.row, self.column = nn.Parameter(torch.rand(50, width // 2)), nn.Parameter(torch.rand(50, width // 2))
        self.query = nn.Parameter(torch.rand(queries, width))
        self.encoder, self.decoder = Block(width), Block(width)
        self.norm, self.kv, self.cross = nn.LayerNorm(width), nn.Linear(width, 2 * width), Cross(width, 4)
        self.label, self.box = nn.Linear(width, 5), nn.Sequential(nn.Linear(width, width), nn.ReLU(), nn.Linear(width, 4))

    def forward(self, picture):
        x = self.body(picture)
        h, w = x.shape[-2:]
        at = torch.cat([self.column[:w].unsqueeze(0).repeat(h, 1, 1), self.row[:h].unsqueeze(1).repeat(1, w, 1)], -1)
        x = self.encoder(x.flatten(2).transpose(1, 2) + 0.1 * at.flatten(0, 1))[0]
        k, v = (t.view(t.shape[0], -1, 4, 8).transpose(1, 2) for t in self.kv(x).chunk(2, 2))
        y = self.decoder(self.query.expand(x.shape[0], -1, -1))[0]
        y = y + self.cross(self.norm(y), k, v)
        return self.label(y), self.box(y).sigmoid()


@model
def detr():
    return Case(Detr(), [Input("picture", ["batch", 3, "height", "width"])], BATCH | PICTURE, ["labels", "boxes"])


class Segments(nn.Module):
    """Pyramid pooling, and the mask in the size of the picture."""

    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(3, 16, 3, 2, 1), nn.ReLU(), nn.Conv2d(16, 32, 3, 2, 1), nn.ReLU(),
                                  nn.Conv2d(32, 32, 3, padding=2, dilation=2), nn.Hardswish())
        self.pools = nn.ModuleList(nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Conv2d(32, 8, 1), nn.ReLU()) for _ in range(2))
        self.out = nn.Conv2d(48, 4, 3, padding=1)

    def forward(self, picture):
        x = self.body(picture)
        size = x.shape[-2:]
        parts = [F.interpolate(p(x), size=size, mode="bilinear", align_corners=False) for p in self.pools]
        y = F.interpolate(self.out(torch.cat([x, *parts], 1)), size=picture.shape[-2:], mode="bilinear", align_corners=False)
        return y, y.argmax(1)


@model
def segments():
    return Case(Segments(), [Input("picture", ["batch", 3, "height", "width"])], BATCH | PICTURE, ["scores", "mask"])


class Yolo(nn.Module):
    """Boxes of two levels, and those of all pictures that are kept, by classes and pictures."""

    def __init__(self, classes=3):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, 16, 3, 2, 1), nn.SiLU(), nn.Conv2d(16, 32, 3, 2, 1), nn.SiLU(),
                                  nn.Conv2d(32, 32, 3, 2, 1), nn.SiLU())
        self.down, self.join = nn.Sequential(nn.Conv2d(32, 32, 3, 2, 1), nn.SiLU()), nn.Conv2d(64, 32, 1)
        self.heads = nn.ModuleList(nn.Conv2d(32, 16 + classes, 1) for _ in range(2))
        self.register_buffer("bins", torch.arange(4.0))

    def level(self, x, head, stride):
        y = head(x)
        h, w = y.shape[-2:]
        rows, columns = torch.meshgrid(torch.arange(h), torch.arange(w), indexing="ij")
        at = torch.stack([columns, rows], -1).reshape(1, -1, 2) + 0.5
        y = y.flatten(2).transpose(1, 2)
        sides = y[..., :16].reshape(y.shape[0], -1, 4, 4).softmax(-1) @ self.bins
        boxes = torch.cat([at - sides[..., :2], at + sides[..., 2:]], -1) * stride
        return boxes, y[..., 16:].mul(8).sigmoid()

    def forward(self, picture):
        a = self.stem(picture)
        b = self.down(a)
        a = self.join(torch.cat([a, F.interpolate(b, size=a.shape[-2:], mode="nearest")], 1))
        levels = [self.level(x, head, s) for x, head, s in zip((a, b), self.heads, (8, 16))]
        boxes, scores = (torch.cat(t, 1) for t in zip(*levels))
        score, label = scores.max(-1)
        of = torch.arange(boxes.shape[0])[:, None].expand_as(label)
        sure = score > 0.55
        boxes, score, label, of = boxes[sure], score[sure], label[sure], of[sure]
        apart = (of * 8 + label).to(boxes)[:, None] * 4096.0
        kept = torchvision.ops.nms(boxes + apart, score, 0.6)
        return boxes[kept], score[kept], label[kept], of[kept]


@model
def yolo():
    return Case(vivid(Yolo(), 0.9), [Input("picture", ["batch", 3, "height", "width"])], BATCH | PICTURE,
                ["boxes", "scores", "labels", "pictures"], detections=True)


@model
def swin():
    net = torchvision.models.swin_transformer.SwinTransformer([4, 4], 16, [2, 2], [2, 4], [4, 4], num_classes=5)
    return Case(net, [Input("picture", ["batch", 3, 64, 64])], BATCH, ["scores"])


@model
def convnext():
    block = torchvision.models.convnext.CNBlockConfig
    net = torchvision.models.ConvNeXt([block(16, 32, 2), block(32, None, 2)], num_classes=5)
    return Case(net, [Input("picture", ["batch", 3, "height", "width"])], BATCH | PICTURE, ["scores"])


# ---- control flow, which only the newer exporter has ------------------------------------------------------------


class Choice(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(8, 8), nn.Linear(8, 8)

    def forward(self, x):
        return torch.cond(x.sum() > 0, lambda x: self.a(x).relu(), lambda x: self.b(x).tanh() * 2, (x,))


@model
def choice():
    return Case(Choice(), [Input("x", ["batch", "sequence", 8])], SEQUENCE, ["y"], exporters=("dynamo",))


class Rounds(nn.Module):
    def __init__(self):
        super().__init__()
        self.step = nn.Linear(8, 8)

    def forward(self, x, count):
        def more(i, x):
            return i < count

        def round(i, x):
            return i + 1, x + torch.tanh(self.step(x))

        return torch._higher_order_ops.while_loop(more, round, (torch.zeros((), dtype=torch.int64), x))


@model
def rounds():
    return Case(Rounds(), [Input("x", ["batch", 8]), Input("count", [], lambda shape: torch.randint(0, 9, ()))], BATCH,
                ["rounds", "y"], exporters=("dynamo",))


class Scanned(nn.Module):
    def __init__(self):
        super().__init__()
        self.x, self.h = nn.Linear(6, 8), nn.Linear(8, 8)

    def forward(self, x, h):
        def step(h, x):
            h = torch.tanh(self.x(x) + self.h(h))
            return h, h * 2

        return torch._higher_order_ops.scan(step, h, x, dim=0)


@model
def scanned():
    return Case(Scanned(), [Input("x", ["sequence", "batch", 6]), Input("h", ["batch", 8])], SEQUENCE, ["last", "y"],
                exporters=("dynamo",))


# ---- caches in buffers, halves ----------------------------------------------------------------------------------


class Buffered(nn.Module):
    """A step of a decoder whose keys and values lie in buffers with room for more."""

    def __init__(self, width=32, heads=4):
        super().__init__()
        self.heads, self.qkv, self.out = heads, nn.Linear(width, 3 * width), nn.Linear(width, width)

    def forward(self, x, at, keys, values):
        batch, steps, width = x.shape
        q, k, v = (t.view(batch, steps, self.heads, -1).transpose(1, 2) for t in self.qkv(x).chunk(3, 2))
        keys, values = keys.index_copy(2, at, k), values.index_copy(2, at, v)
        mask = torch.arange(keys.shape[2])[None, :] <= at[:, None]
        y = F.scaled_dot_product_attention(q, keys, values, attn_mask=mask)
        return self.out(y.transpose(1, 2).reshape(batch, steps, width)), keys, values


@model
def buffered():
    """The caches are states."""
    cache = ["batch", 4, 40, 8]
    return Case(Buffered(), [Input("x", ["batch", "sequence", 32]), Input("at", ["sequence"], lambda shape: torch.arange(*shape) + 3),
                             Input("keys", cache), Input("values", cache)], SEQUENCE, ["y", "keys_now", "values_now"],
                exporters=("dynamo", "script"), options=("--state=keys_now=keys", "--state=values_now=values"))


class Narrow(nn.Module):
    """A network in 16 bits whose callers have floats."""

    def __init__(self, net, dtype):
        super().__init__()
        self.net, self.dtype = net.to(dtype), dtype

    def forward(self, first, *others):
        out = self.net(*(a.to(self.dtype) if a.is_floating_point() else a for a in (first, *others)))
        return tuple(t.float() for t in out) if isinstance(out, tuple) else out.float()


def narrow(case, dtype, tolerance):
    return dataclasses.replace(case, net=Narrow(case.net, dtype), tolerance=tolerance, varying=True)


@model
def gpt_bf16():
    return narrow(MODELS["gpt"](), torch.bfloat16, 4e-2)


@model
def gpt_f16():
    return narrow(MODELS["gpt"](), torch.float16, 5e-3)
