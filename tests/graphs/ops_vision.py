"""Boxes, regions, columns of pictures, and what else works on images."""
import numpy as np
from graph import SUM, Unfit, near
from onnx import helper as h

F = np.float32


def det(g):
    n = g.between(1, 5)
    return g.emit("Det", [g.new(F, g.pick((), (2,), (3, 2), (1,)) + (n, n), "mild")], near(1e-4))


def max_unpool(g):
    """Of what MaxPool gave, so that indices are right."""
    dims = tuple(g.between(2, 9) for _ in range(g.pick(1, 2, 2, 3)))
    k = [g.between(1, min(3, d)) for d in dims]
    attrs = {"kernel_shape": k, "strides": [g.between(v, 3) for v in k]}
    x = g.new(F, (g.pick(1, 2), g.pick(1, 3)) + dims)
    if np.isnan(g.value(x)).any():
        raise Unfit
    if any((d - k[i]) % attrs["strides"][i] for i, d in enumerate(dims)):
        raise Unfit  # indices of cells that MaxUnpool's own shape has not
    out = g.name()
    return g.snippet("MaxUnpool", [h.make_node("MaxPool", [x], ["s0", "s1"], **attrs),
                                   h.make_node("MaxUnpool", ["s0", "s1"], [out], **attrs)], [x], [out])


def col2im(g):
    n = g.pick(1, 2, 2, 3)
    image = [g.between(2, 9) for _ in range(n)]
    block = [g.between(1, min(3, d)) for d in image]
    strides, dilations = [g.between(1, 2) for _ in range(n)], [g.pick(1, 1, 2) for _ in range(n)]
    pads = [g.upto(block[i % n] - 1) for i in range(2 * n)]
    steps = [(image[i] + pads[i] + pads[n + i] - dilations[i] * (block[i] - 1) - 1) // strides[i] + 1 for i in range(n)]
    if min(steps) < 1:
        raise Unfit
    attrs = {k: v for k, v in (("strides", strides), ("dilations", dilations), ("pads", pads)) if g.chance(60)}
    for k, plain in (("strides", [1] * n), ("dilations", [1] * n), ("pads", [0] * 2 * n)):
        v = attrs.get(k, plain)
        strides, dilations, pads = (v if k == "strides" else strides, v if k == "dilations" else dilations,
                                    v if k == "pads" else pads)
    steps = [(image[i] + pads[i] + pads[n + i] - dilations[i] * (block[i] - 1) - 1) // strides[i] + 1 for i in range(n)]
    if min(steps) < 1:
        raise Unfit
    x = g.new(F, (g.pick(1, 2), g.pick(1, 3) * int(np.prod(block)), int(np.prod(steps))), "mild")
    return g.emit("Col2Im", [x, g.ints(*image), g.ints(*block)], SUM, **attrs)


def boxes(g, n, center):
    """Of which many overlap; corners in any order."""
    at, size = g.rng.integers(0, 8, (n, 2)), g.rng.integers(0 if g.chance(10) else 1, 6, (n, 2))
    if center:
        return np.concatenate([at, size], 1).astype(F)
    b = np.concatenate([at, at + size], 1)
    if g.chance(30):
        b = np.where(g.rng.random((n, 1)) < 0.5, b[:, [2, 3, 0, 1]], b)
    return b.astype(F)


def nms(g):
    batch, classes, n = g.pick(1, 1, 2), g.pick(1, 2, 3), g.pick(1, 2, 5, 9, 20)
    center = g.upto(1)
    b = np.stack([boxes(g, n, center) for _ in range(batch)])
    scores = g.rng.permutation(batch * classes * n).reshape(batch, classes, n).astype(F) / (batch * classes * n)
    if g.chance(30):
        scores = np.round(scores * 4) / 4  # ties
    ins = [g.hold(b, g.chance(20)), g.hold(scores.astype(F), False)]
    more = [g.ints(g.pick(0, 1, 3, n, 100)), g.const([g.pick(0.0, 0.3, 0.5, 1.0)], F), g.const([g.pick(0.0, 0.2, 0.6, -1.0)], F)]
    if g.chance(20):
        more = [g.const(g.value(m).reshape(()), g.dtype(m)) for m in more]
    ins += more[:g.upto(3)]
    return g.emit("NonMaxSuppression", ins, **({"center_point_box": center} if center or g.chance(30) else {}))


def roi_align(g):
    n, c, hw = g.pick(1, 2), g.pick(1, 3), (g.between(1, 9), g.between(1, 9))
    x = g.new(F, (n, c) + hw, "mild")
    k = g.pick(1, 2, 5)
    at = g.rng.uniform(-2, 9, (k, 2))
    rois = np.concatenate([at, at + g.rng.uniform(0, 9, (k, 2))], 1).astype(F)
    attrs = {"output_height": g.between(1, 4), "output_width": g.between(1, 4)} if g.chance(80) else {}
    if g.chance(60):
        attrs["sampling_ratio"] = g.upto(3)
    if g.chance(60):
        attrs["spatial_scale"] = g.pick(1.0, 0.5, 0.25)
    if g.chance(50):
        attrs["mode"] = "avg"  # onnxruntime's max is not the standard's
    if g.opset >= 16 and g.chance(60):
        attrs["coordinate_transformation_mode"] = g.pick("half_pixel", "output_half_pixel")
    return g.emit("RoiAlign", [x, g.hold(rois, g.chance(20)), g.hold(g.rng.integers(0, n, k), g.chance(20))], near(1e-4), **attrs)


def deform_conv(g):
    kh, kw, groups, offsets = g.between(1, 3), g.between(1, 3), g.pick(1, 1, 2), g.pick(1, 1, 2)
    c, o = 2 * groups * g.pick(1, 2) * offsets, groups * g.pick(1, 3)
    hw = [g.between(3, 8), g.between(3, 8)]
    attrs = {"kernel_shape": [kh, kw], "group": groups, "offset_group": offsets}
    if g.chance(50):
        attrs["strides"] = [g.between(1, 2), g.between(1, 2)]
    if g.chance(50):
        attrs["pads"] = [g.upto(1) for _ in range(4)]
    if g.chance(30):
        attrs["dilations"] = [g.between(1, 2), g.between(1, 2)]
    p, s, d = attrs.get("pads", [0] * 4), attrs.get("strides", [1, 1]), attrs.get("dilations", [1, 1])
    out = [(hw[i] + p[i] + p[i + 2] - d[i] * (k - 1) - 1) // s[i] + 1 for i, k in enumerate((kh, kw))]
    if min(out) < 1:
        raise Unfit
    n = g.pick(1, 2)
    ins = [g.new(F, (n, c, *hw), "mild"), g.weight(F, (o, c // groups, kh, kw)),
           g.hold(g.rng.uniform(-2, 2, (n, offsets * kh * kw * 2, *out)).astype(F), False)]
    if g.chance(60):
        ins.append(g.weight(F, (o,)) if g.chance(60) else "")
        if g.chance(60):
            ins.append(g.new(F, (n, offsets * kh * kw, *out), "mild"))
    while not ins[-1]:
        ins.pop()
    return g.emit("DeformConv", ins, near(1e-4), **attrs)


OPS = {"Det": det, "MaxUnpool": max_unpool, "Col2Im": col2im, "NonMaxSuppression": nms, "RoiAlign": roi_align,
       "DeformConv": deform_conv}
