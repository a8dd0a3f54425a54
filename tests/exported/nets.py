"""Networks that are exported: small, with random weights, of the layers that their large sisters have.

A function gives a Case: the network, its inputs and the bounds of their dimensions.  An extent that is a word is a
dimension that a run decides.
"""
import dataclasses

import torch
import torch.nn.functional as F
import torchvision
from torch import nn
from torchvision.models import detection

MODELS = {}
BATCH = {"batch": (1, 4)}
SEQUENCE = {"batch": (1, 4), "sequence": (1, 32)}
PICTURE = {"height": (32, 160), "width": (32, 160)}


def uniform(shape):
    return torch.rand(shape)


def normal(shape):
    return torch.randn(shape)


def words(count):
    return lambda shape: torch.randint(0, count, shape)


def coin(shape):
    return torch.rand(shape) < 0.6


def lengths(shape):
    """A mask of sequences of different lengths, one of them whole."""
    length = torch.randint(1, shape[1] + 1, (shape[0],))
    length[0] = shape[1]
    return torch.arange(shape[1])[None, :] < length[:, None]


@dataclasses.dataclass
class Input:
    name: str
    extents: list  # numbers, and words that are dimensions
    make: object = normal


@dataclasses.dataclass
class Case:
    net: nn.Module
    inputs: list
    dims: dict  # bounds of dimensions
    outputs: list
    tolerance: float = 1e-4  # of the largest value
    exporters: tuple = ("dynamo", "script")
    options: tuple = ()  # of tvmcc
    detections: bool = False  # boxes, of which each has a score
    varying: bool = False  # forward(first, *others)
    bounds: dict = dataclasses.field(default_factory=dict)  # of an exporter: of what values decide
    suits: object = None  # sizes that are compared
    example: dict = None  # sizes of the export


def model(make):
    MODELS[make.__name__] = make
    return make


# ---- pictures ---------------------------------------------------------------------------------------------------


@model
def resnet():
    return Case(torchvision.models.resnet18(num_classes=10), [Input("picture", ["batch", 3, "height", "width"])],
                BATCH | PICTURE, ["scores"])


class UNet(nn.Module):
    def __init__(self):
        super().__init__()

        def double(a, b):
            return nn.Sequential(nn.Conv2d(a, b, 3, padding=1), nn.BatchNorm2d(b), nn.ReLU(),
                                 nn.Conv2d(b, b, 3, padding=1), nn.GroupNorm(4, b), nn.SiLU())

        self.down1, self.down2, self.bottom = double(3, 8), double(8, 16), double(16, 32)
        self.up2, self.join2, self.join1, self.out = (nn.ConvTranspose2d(32, 16, 2, 2), double(32, 16), double(24, 8),
                                                      nn.Conv2d(8, 2, 1))

    def forward(self, x):
        a = self.down1(x)
        b = self.down2(F.max_pool2d(a, 2))
        y = self.up2(self.bottom(F.max_pool2d(b, 2)))
        y = F.pad(y, [0, b.shape[3] - y.shape[3], 0, b.shape[2] - y.shape[2]])
        y = self.join2(torch.cat([b, y], 1))
        y = F.interpolate(y, size=a.shape[2:], mode="bilinear", align_corners=False)
        return self.out(self.join1(torch.cat([a, y], 1)))


@model
def unet():
    return Case(UNet(), [Input("picture", ["batch", 3, "height", "width"])], BATCH | PICTURE, ["mask"])


@model
def vit():
    """Of one picture size, as torchvision has it."""
    return Case(torchvision.models.VisionTransformer(32, 8, 2, 4, 32, 64, num_classes=5),
                [Input("picture", ["batch", 3, 32, 32])], BATCH, ["scores"])


class Attention(nn.Module):
    """nn.MultiheadAttention counts its steps when torch.onnx traces it: its length is then a number."""

    def __init__(self, width, heads):
        super().__init__()
        self.heads, self.qkv, self.out = heads, nn.Linear(width, 3 * width), nn.Linear(width, width)

    def forward(self, x, mask=None, past=None):
        batch, steps, width = x.shape
        q, k, v = (t.view(batch, steps, self.heads, width // self.heads).transpose(1, 2)
                   for t in self.qkv(x).split(width, 2))
        if past is not None:
            k, v = torch.cat([past[0], k], 2), torch.cat([past[1], v], 2)
        y = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
        return self.out(y.transpose(1, 2).reshape(batch, steps, width)), k, v


class Block(nn.Module):
    def __init__(self, width=32, heads=4):
        super().__init__()
        self.norm1, self.norm2, self.attention = nn.LayerNorm(width), nn.LayerNorm(width), Attention(width, heads)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(approximate="tanh"), nn.Linear(4 * width, width))

    def forward(self, x, mask=None, past=None):
        y, k, v = self.attention(self.norm1(x), mask, past)
        x = x + y
        return x + self.mlp(self.norm2(x)), k, v


class Patches(nn.Module):
    """A vision transformer for pictures of any size: its positions are interpolated."""

    def __init__(self, width=32):
        super().__init__()
        self.patch, self.out = nn.Conv2d(3, width, 8, 8), nn.Linear(width, 5)
        self.cls = nn.Parameter(torch.randn(1, 1, width))
        self.position = nn.Parameter(torch.randn(1, width, 4, 4))
        self.blocks = nn.ModuleList(Block() for _ in range(2))

    def forward(self, x):
        y = self.patch(x)
        y = y + F.interpolate(self.position, size=y.shape[2:], mode="bicubic", align_corners=False)
        y = torch.cat([self.cls.expand(y.shape[0], -1, -1), y.flatten(2).transpose(1, 2)], 1)
        for block in self.blocks:
            y = block(y)[0]
        return self.out(y[:, 0])


@model
def vit_sizes():
    return Case(Patches(), [Input("picture", ["batch", 3, "height", "width"])], BATCH | PICTURE, ["scores"])


# ---- sequences --------------------------------------------------------------------------------------------------


class Recurrent(nn.Module):
    def __init__(self, kind):
        super().__init__()
        self.layers, self.out = kind(12, 20, 2, batch_first=True, bidirectional=True), nn.Linear(40, 5)

    def forward(self, x):
        y, state = self.layers(x)
        return self.out(y), state[0] if isinstance(state, tuple) else state


@model
def lstm():
    return Case(Recurrent(nn.LSTM), [Input("x", ["batch", "sequence", 12])], SEQUENCE, ["y", "state"])


@model
def gru():
    return Case(Recurrent(nn.GRU), [Input("x", ["batch", "sequence", 12])], SEQUENCE, ["y", "state"])


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.out = nn.Embedding(100, 32), nn.Linear(32, 8)
        self.blocks = nn.ModuleList(Block() for _ in range(2))

    def forward(self, ids, mask):
        x = self.embed(ids)
        for block in self.blocks:
            x = block(x, mask[:, None, None, :])[0]
        return self.out(x * mask[:, :, None])


@model
def encoder():
    return Case(Encoder(), [Input("ids", ["batch", "sequence"], words(100)),
                            Input("mask", ["batch", "sequence"], lengths)], SEQUENCE, ["y"])


class Gpt(nn.Module):
    """The keys and values of each layer are inputs, and outputs with those of the new tokens behind them."""

    layers, heads, width, words = 2, 4, 32, 64

    def __init__(self):
        super().__init__()
        self.embed, self.position = nn.Embedding(self.words, self.width), nn.Embedding(128, self.width)
        self.blocks = nn.ModuleList(Block(self.width, self.heads) for _ in range(self.layers))
        self.norm = nn.LayerNorm(self.width)

    def forward(self, ids, *past):
        before, steps = past[0].shape[2], ids.shape[1]
        position = torch.arange(before, before + steps)
        mask = torch.arange(before + steps)[None, :] <= position[:, None]
        x, caches = self.embed(ids) + self.position(position), []
        for i, block in enumerate(self.blocks):
            x, k, v = block(x, mask, past[2 * i:2 * i + 2])
            caches += [k, v]
        return self.norm(x) @ self.embed.weight.T, *caches


@model
def gpt():
    names = [f"{kind}.{i}" for i in range(Gpt.layers) for kind in ("key", "value")]
    cache = ["batch", Gpt.heads, "past", Gpt.width // Gpt.heads]
    return Case(Gpt(), [Input("ids", ["batch", "sequence"], words(Gpt.words))] +
                [Input("past_" + name, cache) for name in names], SEQUENCE | {"past": (0, 96)},
                ["logits"] + ["present_" + name for name in names], varying=True)


# ---- counts that values decide ----------------------------------------------------------------------------------


class Select(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(8, 8)

    def forward(self, x, mask):
        chosen = self.linear(x)[mask]
        back = torch.zeros_like(x).masked_scatter(mask[..., None], F.relu(chosen))
        return chosen, back, torch.nonzero(mask)


@model
def select():
    return Case(Select(), [Input("x", ["batch", "sequence", 8]), Input("mask", ["batch", "sequence"], coin)], SEQUENCE,
                ["chosen", "back", "places"])


class Detector(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(3, 16, 3, 2, 1), nn.ReLU(), nn.Conv2d(16, 32, 3, 2, 1), nn.ReLU(),
                                  nn.Conv2d(32, 32, 3, 2, 1), nn.ReLU())
        self.scores, self.boxes = nn.Conv2d(32, 4, 1), nn.Conv2d(32, 4, 1)

    def forward(self, x):
        y = self.body(x)
        score = self.scores(y)[0].flatten(1).T.mul(10).sigmoid()
        box = self.boxes(y)[0].flatten(1).T
        rows, columns = torch.meshgrid(torch.arange(y.shape[2]), torch.arange(y.shape[3]), indexing="ij")
        center = torch.stack([columns, rows], -1).reshape(-1, 2) * 8.0 + 4 + box[:, :2]
        half = F.softplus(box[:, 2:]) * 8
        box = torch.cat([center - half, center + half], 1)
        score, label = score.max(1)
        sure = score > 0.5
        box, score, label = box[sure], score[sure], label[sure]
        kept = torchvision.ops.nms(box + label[:, None] * 4096.0, score, 0.5)  # classes apart
        return box[kept], score[kept], label[kept]


@model
def detector():
    return Case(Detector(), [Input("picture", [1, 3, "height", "width"])], PICTURE, ["boxes", "scores", "labels"],
                detections=True)


def vivid(net, gain):
    """With the weights that torchvision begins with all scores are alike, and which boxes are kept is chance."""
    for layer in net.modules():
        if isinstance(layer, (nn.Conv2d, nn.ConvTranspose2d, nn.Linear)):
            nn.init.kaiming_normal_(layer.weight)
            layer.weight.data *= gain
    return net


class Detections(nn.Module):
    """torchvision's detectors take a list of pictures and give a dictionary for each."""

    def __init__(self, net):
        super().__init__()
        self.net = net

    def forward(self, picture):
        return tuple(self.net([picture])[0].values())


@model
def ssdlite():
    net = detection.ssdlite320_mobilenet_v3_large(weights=None, weights_backbone=None, num_classes=5)
    return Case(Detections(vivid(net, 0.9)), [Input("picture", [3, "height", "width"], uniform)], PICTURE,
                ["boxes", "scores", "labels"], detections=True)


def pyramid():
    """A small backbone of three levels, and its anchors."""
    stages, width = [], 3
    for strides in ([8, 16], [24], [32]):
        layers = []
        for out in strides:
            layers += [nn.Conv2d(width, out, 3, 2, 1), nn.ReLU()]
            width = out
        stages.append(nn.Sequential(*layers))
    backbone = detection.backbone_utils.BackboneWithFPN(nn.Sequential(*stages), {"0": "0", "1": "1", "2": "2"},
                                                        [16, 24, 32], 16)
    return backbone, detection.anchor_utils.AnchorGenerator(((16,), (32,), (64,), (128,)), ((0.5, 1.0, 2.0),) * 4)


def scales_exactly(sizes):
    """Pictures are scaled to 96 pixels, or 160 at most: in f32 by what is exported, in double by Python.  Where the
    factor has more digits, rounding takes a pixel from one of them alone, and makes another picture."""
    return (64 * min(96 / min(sizes.values()), 160 / max(sizes.values()))).is_integer()


def rcnn(kind, outputs, script=None, **heads):
    """Of torchvision's own code, with a small backbone, few proposals and small heads.  torch.export does not follow
    it: proposals are counted with len(), pictures padded to the example's size, masks pasted in a Python loop."""
    script = {f"/net/transform/Resize_output_0.{k}": (1, 160) for k in (2, 3)} | (script or {})
    backbone, anchors = pyramid()
    net = kind(backbone, min_size=96, max_size=160, rpn_anchor_generator=anchors, rpn_pre_nms_top_n_test=100,
               rpn_post_nms_top_n_test=40, box_detections_per_img=12,
               box_head=detection.faster_rcnn.TwoMLPHead(16 * 49, 32),
               box_predictor=detection.faster_rcnn.FastRCNNPredictor(32, 5), **heads)
    return Case(Detections(vivid(net, 0.8)), [Input("picture", [3, "height", "width"], uniform)], PICTURE,
                ["boxes", "labels", "scores"] + outputs, detections=True, suits=scales_exactly,
                exporters=("script",), bounds={"script": script}, example={"height": 100, "width": 130})


@model
def faster_rcnn():
    return rcnn(detection.FasterRCNN, [])


@model
def mask_rcnn():
    # A mask is pasted with a border around it: 30 cells for 28.
    return rcnn(detection.MaskRCNN, ["masks"], {f"mask.3.{k}": (1, 176) for k in (2, 3)},
                mask_head=detection.mask_rcnn.MaskRCNNHeads(16, (16, 16), 1),
                mask_predictor=detection.mask_rcnn.MaskRCNNPredictor(16, 16, 5))


@model
def keypoint_rcnn():
    return rcnn(detection.KeypointRCNN, ["keypoints", "keypoint_scores"],
                keypoint_head=detection.keypoint_rcnn.KeypointRCNNHeads(16, (16, 16)),
                keypoint_predictor=detection.keypoint_rcnn.KeypointRCNNPredictor(16, 3))
