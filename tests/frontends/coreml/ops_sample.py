"""Lists, images at computed places, random numbers."""
import coremltools as ct
import numpy as np
import torch
import torch.nn.functional as F
from coremltools.converters.mil import Builder as mb

from record import Network, case, program, save_program


def floats(rng, *shape):
    return rng.standard_normal(shape).astype(np.float32)


@case
def lists(rng):
    """In a loop, too, where the run says the position."""
    x, i = floats(rng, 2, 3), np.array([1, -1], np.int32)

    def body(x, i):
        ls = mb.make_list(init_length=4, dynamic_length=False, elem_shape=(2, 3), dtype="fp32")
        ls = mb.list_write(ls=ls, index=0, value=x)
        ls = mb.list_scatter(ls=ls, indices=i, value=mb.stack(values=[mb.mul(x=x, y=2.0), mb.mul(x=x, y=3.0)], axis=0))
        k, ls = mb.while_loop(_cond=lambda k, ls: mb.less(x=k, y=3),
                              _body=lambda k, ls: (mb.add(x=k, y=1), mb.list_write(
                                  ls=ls, index=k, value=mb.add(x=mb.list_read(ls=ls, index=k), y=mb.cast(x=k, dtype="fp32")))),
                              loop_vars=(0, ls))
        return (mb.list_gather(ls=ls, indices=[3, 0, 2], name="some"), mb.list_read(ls=ls, index=1, name="one"),
                mb.expand_dims(x=mb.cast(x=mb.list_length(ls=ls), dtype="fp32"), axes=[0], name="length"))
    all_ = np.stack([x, 2 * x, np.zeros_like(x), 3 * x])
    all_[:3] += np.arange(3)[:, None, None]
    save_program("lists", program(mb, [mb.TensorSpec(x.shape), mb.TensorSpec(i.shape, dtype=ct.converters.mil.mil.types.int32)], ["x", "i"], body,
                                  ct.target.iOS16), {"x": x, "i": i},
                 {"some": all_[[3, 0, 2]], "one": all_[1], "length": np.array([4], np.float32)}, target=ct.target.iOS16)


@case
def places(rng):
    x, at, m = floats(rng, 2, 3, 5, 4), floats(rng, 2, 3, 2, 2) * 0.7, floats(rng, 2, 6) * 0.5
    how = {"sampling_mode": "bilinear", "padding_value": 0.0}

    def body(x, at, m):
        cells = mb.mul(x=mb.add(x=at, y=1.0), y=np.array([1.5, 2], np.float32))
        return (mb.resample(x=x, coordinates=at, padding_mode="constant", coordinates_mode="normalized_minus_one_to_one",
                            align_corners=False, name="a", **how),
                mb.resample(x=x, coordinates=at, padding_mode="border", coordinates_mode="normalized_minus_one_to_one",
                            align_corners=True, name="b", **how),
                mb.resample(x=x, coordinates=cells, padding_mode="constant", coordinates_mode="unnormalized",
                            align_corners=True, name="c", **how),
                mb.resample(x=x, coordinates=at, padding_mode="constant", coordinates_mode="normalized_minus_one_to_one",
                            align_corners=False, name="f", sampling_mode="bilinear", padding_value=-1.5),
                mb.affine(x=x, transform_matrix=m, output_height=4, output_width=6, padding_mode="constant",
                          coordinates_mode="normalized_minus_one_to_one", align_corners=True, name="d", **how),
                mb.affine(x=x, transform_matrix=m, output_height=4, output_width=6, padding_mode="constant",
                          coordinates_mode="normalized_minus_one_to_one", align_corners=False, name="e", **how))
    tx, ta, tm = (torch.tensor(a) for a in (x, at, m))

    def moved(align):
        return F.grid_sample(tx, F.affine_grid(tm.reshape(2, 2, 3), (2, 3, 4, 6), align_corners=align), align_corners=align)
    save_program("places", program(mb, [mb.TensorSpec(a.shape) for a in (x, at, m)], ["x", "at", "m"], body, ct.target.iOS16),
                 {"x": x, "at": at, "m": m},
                 {"a": F.grid_sample(tx, ta, align_corners=False), "b": F.grid_sample(tx, ta, padding_mode="border", align_corners=True),
                  "c": F.grid_sample(tx, ta, align_corners=True), "d": moved(True), "e": moved(False),
                  "f": F.grid_sample(tx, ta, align_corners=False) - 1.5 * (1 - F.grid_sample(torch.ones_like(tx), ta, align_corners=False))}, target=ct.target.iOS16)


def philox(seed, count):
    """The first numbers in [0, 1) of Philox 4x32-10, whose key is the seed."""
    out = []
    for i in range((count + 3) // 4):
        x, key = [i, 0, 0, 0], [seed & 0xffffffff, seed >> 32]
        for _ in range(10):
            a, b = 0xD2511F53 * x[0], 0xCD9E8D57 * x[2]
            x = [(b >> 32) ^ x[1] ^ key[0], b & 0xffffffff, (a >> 32) ^ x[3] ^ key[1], a & 0xffffffff]
            key = [(key[0] + 0x9E3779B9) & 0xffffffff, (key[1] + 0xBB67AE85) & 0xffffffff]
        out += x
    return np.array([v & 0x7fffff for v in out], np.float32) / np.float32(1 << 23)


def normal(seed, count):
    u = philox(seed, count + 3).reshape(-1, 2)
    size, turn = np.sqrt(-2 * np.log(np.maximum(u[:, 0], 1e-7))), 2 * np.pi * u[:, 1]
    return np.stack([np.sin(turn) * size, np.cos(turn) * size], 1).reshape(-1)[:count].astype(np.float32)


@case
def random(rng):
    x = floats(rng, 2, 5)

    def body(x):
        return (mb.add(x=mb.random_uniform(shape=[2, 5], low=-1.0, high=3.0, seed=7), y=x, name="a"),
                mb.add(x=mb.random_normal(shape=[2, 5], mean=2.0, stddev=0.5, seed=8), y=x, name="b"),
                mb.add(x=mb.random_bernoulli(shape=[2, 5], prob=0.3, seed=9), y=x, name="c"),
                mb.random_categorical(x=x, mode="logits", size=6, seed=10, name="d"),
                mb.random_categorical(x=mb.softmax(x=x), mode="probs", size=6, seed=11, name="e"))
    p = np.cumsum(F.softmax(torch.tensor(x), -1).numpy(), -1)[:, None]

    def drawn(seed):
        return (p <= philox(seed, 12)[:12].reshape(2, 6, 1)).sum(-1)
    save_program("random", program(mb, [mb.TensorSpec(x.shape)], ["x"], body, ct.target.iOS16), {"x": x},
                 {"a": philox(7, 10)[:10].reshape(2, 5) * 4 - 1 + x, "b": normal(8, 10).reshape(2, 5) * 0.5 + 2 + x,
                  "c": (philox(9, 10)[:10].reshape(2, 5) < 0.3) + x, "d": drawn(10).astype(np.float32), "e": drawn(11).astype(np.float32)},
                 target=ct.target.iOS16)


@case
def nd_random(rng):
    """Layers; float32 is what all of them give."""
    x = floats(rng, 2, 5)
    n = Network("nd_random", {"x": x})
    b = n.b
    b.add_get_shape("shape", "x", n.out("shape", np.array([2, 5], np.float32)))
    for kind, way, more in (("like", {"input_name": "x"}, {}), ("static", {}, {"output_shape": (2, 5)}), ("dynamic", {"input_names": ["shape"]}, {})):
        feeds = list(way.values())
        for op, settings, want in (("normal", {"mean": 2.0, "stddev": 0.5, "seed": 8}, normal(8, 10) * 0.5 + 2),
                                   ("uniform", {"minval": -1.0, "maxval": 3.0, "seed": 7}, philox(7, 10)[:10] * 4 - 1),
                                   ("bernoulli", {"prob": 0.3, "seed": 9}, philox(9, 10)[:10] < 0.3)):
            out = n.out(f"{op}_{kind}", np.asarray(want, np.float32).reshape(2, 5))
            getattr(b, f"add_random_{op}_{kind}")(out, *feeds, output_name=out, **settings, **more)
    p = np.cumsum(F.softmax(torch.tensor(x) / 2, -1).numpy(), -1)[:, None]
    b.add_categorical_distribution("dice", "x", n.out("dice", (p <= philox(10, 12)[:12].reshape(2, 6, 1)).sum(-1).astype(np.float32)), 6, True, 1e-10, 2.0, 10)
    n.save()


def spread(mode, count, length):
    """How far the cells of a box of this length lie from where it begins."""
    i = np.arange(count)
    if mode in ("STRICT_ALIGN_CORNERS", "ALIGN_CORNERS"):
        return i * length / (count - 1) if count > 1 else np.full(1, length / 2 if mode == "ALIGN_CORNERS" else 0)
    at = {"DEFAULT": i * (length + 1) / count, "UNALIGN_CORNERS": (i + 0.5) * (length + 1) / count - 0.5,
          "OFFSET_CORNERS": (i + 0.5) * max(1, length) / count}[mode]
    return np.clip(at, 0, length)


def cropped(x, box, size, mode, fill=0):
    """One image [C, H, W] and corners, rows first."""
    out = np.zeros((x.shape[0], *size))
    rows, columns = (box[k] + spread(mode, size[k], box[2 + k] - box[k]) for k in (0, 1))
    for i, r in enumerate(rows):
        for j, c in enumerate(columns):
            if not (0 <= r <= x.shape[1] - 1 and 0 <= c <= x.shape[2] - 1):
                out[:, i, j] = fill
                continue
            a, b = int(r), int(c)
            u, v = r - a, c - b
            d, e = min(a + 1, x.shape[1] - 1), min(b + 1, x.shape[2] - 1)
            out[:, i, j] = (1 - u) * ((1 - v) * x[:, a, b] + v * x[:, a, e]) + u * ((1 - v) * x[:, d, b] + v * x[:, d, e])
    return out


BOXES = np.array([[1, 0.5, 4, 3], [0, 1, 2.5, 2], [2, 2, 5, 4.5]], np.float32)


def crops_of_regions(x, boxes, size, mode):
    return np.stack([np.stack([cropped(image, box, size, mode) for image in x]) for box in boxes])


@case
def crops(rng):
    """Programs of both kinds of operators; boxes in each order."""
    x, boxes = floats(rng, 2, 3, 6, 7), BOXES
    ends = boxes * np.float32(0.5)
    middles = np.stack([(ends[:, 1] + ends[:, 3]) / 2, (ends[:, 0] + ends[:, 2]) / 2, ends[:, 3] - ends[:, 1], ends[:, 2] - ends[:, 0]], 1)
    regions = np.concatenate([np.zeros((3, 1), np.float32), boxes[:, [1, 0, 3, 2]]], 1)
    one = floats(rng, 1, 3, 6, 7)  # of several, coremltools declares another shape than its own page says

    def old(x, one, boxes, regions, middles):
        how = {"normalized_coordinates": False, "spatial_scale": 1.0}
        return (mb.crop_resize(x=x, roi=boxes, target_height=3, target_width=4, box_coordinate_mode="CORNERS_HEIGHT_FIRST", sampling_mode="ALIGN_CORNERS", name="a", **how),
                mb.crop_resize(x=one, roi=regions, target_height=9, target_width=1, box_coordinate_mode="CORNERS_WIDTH_FIRST", sampling_mode="DEFAULT", name="b", **how),
                mb.crop_resize(x=x, roi=middles, target_height=2, target_width=5, box_coordinate_mode="CENTER_SIZE_WIDTH_FIRST", sampling_mode="OFFSET_CORNERS",
                               normalized_coordinates=False, spatial_scale=2.0, name="c"))
    specs = [mb.TensorSpec(x.shape), mb.TensorSpec(one.shape), mb.TensorSpec((3, 1, 4, 1, 1)), mb.TensorSpec((3, 1, 5, 1, 1)), mb.TensorSpec((3, 1, 4, 1, 1))]
    save_program("crops", program(mb, specs, ["x", "one", "boxes", "regions", "middles"], old, ct.target.iOS16),
                 {"x": x, "one": one, "boxes": boxes.reshape(3, 1, 4, 1, 1), "regions": regions.reshape(3, 1, 5, 1, 1), "middles": middles.reshape(3, 1, 4, 1, 1)},
                 {"a": crops_of_regions(x, boxes, (3, 4), "ALIGN_CORNERS"),
                  "b": crops_of_regions(one, boxes, (9, 1), "DEFAULT"),
                  "c": crops_of_regions(x, boxes, (2, 5), "OFFSET_CORNERS")}, target=ct.target.iOS16)


@case
def crops_17(rng):
    x, which = floats(rng, 2, 3, 6, 7), np.array([1, 0, 1], np.int32)
    far = BOXES + np.array([0, 0, 2, 3], np.float32)

    def new(x, boxes, far, which):
        how = {"spatial_scale": 1.0, "box_coordinate_mode": "CORNERS_HEIGHT_FIRST"}
        return (mb.crop_resize(x=x, boxes=boxes, box_indices=which, target_height=4, target_width=3, normalized_coordinates=True, sampling_mode="STRICT_ALIGN_CORNERS", name="a", **how),
                mb.crop_resize(x=x, boxes=far, box_indices=which, target_height=4, target_width=3, normalized_coordinates=False, sampling_mode="ALIGN_CORNERS",
                               pad_value=np.float32(-2), name="b", **how),
                mb.crop_resize(x=x, boxes=boxes, box_indices=which, target_height=1, target_width=1, normalized_coordinates=True, sampling_mode="UNALIGN_CORNERS", name="c", **how))
    shares = BOXES / np.array([5, 6, 5, 6], np.float32)
    specs = [mb.TensorSpec(x.shape), mb.TensorSpec((3, 4)), mb.TensorSpec((3, 4)), mb.TensorSpec((3,), dtype=ct.converters.mil.mil.types.int32)]
    save_program("crops_17", program(mb, specs, ["x", "boxes", "far", "which"], new, ct.target.iOS17),
                 {"x": x, "boxes": shares, "far": far, "which": which},
                 {"a": np.stack([cropped(x[i], box, (4, 3), "STRICT_ALIGN_CORNERS") for i, box in zip(which, BOXES)]),
                  "b": np.stack([cropped(x[i], box, (4, 3), "ALIGN_CORNERS", -2) for i, box in zip(which, far)]),
                  "c": np.stack([cropped(x[i], box, (1, 1), "UNALIGN_CORNERS") for i, box in zip(which, BOXES)])}, target=ct.target.iOS17)


@case
def nd_crops(rng):
    x = floats(rng, 1, 2, 3, 6, 7)
    boxes = BOXES.reshape(3, 1, 4, 1, 1)
    regions = np.concatenate([np.array([[1], [0], [1]], np.float32), BOXES[:, [1, 0, 3, 2]]], 1)
    n = Network("nd_crops", {"x": x, "boxes": boxes, "regions": regions.reshape(3, 1, 5, 1, 1)})
    n.b.add_crop_resize("a", ["x", "boxes"], n.out("a", crops_of_regions(x[0], BOXES, (3, 4), "OFFSET_CORNERS")), 3, 4,
                        mode="ROI_ALIGN_MODE", normalized_roi=False, box_indices_mode="CORNERS_HEIGHT_FIRST", spatial_scale=1.0)
    b = np.stack([cropped(x[0, i], box, (9, 1), "DEFAULT")[None] for i, box in zip((1, 0, 1), BOXES)])
    n.b.add_crop_resize("b", ["x", "regions"], n.out("b", b), 9, 1, mode="UPSAMPLE_MODE", normalized_roi=False,
                        box_indices_mode="CORNERS_WIDTH_FIRST", spatial_scale=1.0)
    n.save()


@case
def bytes_conv(rng):
    """conv_quantized: one scale, and one for each channel; nbits says no more than how many bits a byte has."""
    x, w = floats(rng, 1, 3, 6, 7), rng.integers(0, 255, (4, 3, 3, 2)).astype(np.uint8)
    scale, more = (rng.random(4) * 0.01).astype(np.float32), floats(rng, 4)

    def body(x):
        how = {"x": x, "weight": w, "quantization_type": "linear", "strides": [1, 1], "pad_type": "valid"}
        return (mb.conv_quantized(quant_scale=np.float32(0.01), quant_bias=np.float32(-1.25), name="a", **how),
                mb.conv_quantized(quant_scale=scale, quant_bias=more, name="b", **how))

    def conv(weights):
        out = np.zeros((1, 4, 4, 6))
        for i in range(3):
            for j in range(2):
                out += np.einsum("nchw,oc->nohw", x[:, :, i:i + 4, j:j + 6], weights[:, :, i, j])
        return out
    channel = (slice(None), None, None, None)
    save_program("bytes_conv", program(mb, [mb.TensorSpec(x.shape)], ["x"], body, ct.target.iOS16), {"x": x},
                 {"a": conv(w * np.float32(0.01) - np.float32(1.25)), "b": conv(w * scale[channel] + more[channel])}, target=ct.target.iOS16)
