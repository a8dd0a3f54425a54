"""What makes, moves and gathers."""
import numpy as np
from graph import ALL, EXACT, FLOATS, INTS, NUMBERS, SUM, Unfit, is_float, near, ulp
from onnx import helper as h, numpy_helper as nh


def axes_arg(g, ins, attrs, axes, since):
    """Axes as an input from opset `since`, as an attribute before."""
    if g.opset >= since:
        ins.append(g.ints(*axes))
    else:
        attrs["axes"] = list(axes)


def constant(g):
    v = g.values(g.pick(*ALL), g.shape())
    how = g.upto(2) if g.opset >= 12 else 0
    if how == 1:
        return g.emit("Constant", [], value_float=1.5) if g.chance(50) else g.emit("Constant", [], value_floats=[1.0, 2.5])
    if how == 2:
        return g.emit("Constant", [], value_int=-7) if g.chance(50) else g.emit("Constant", [], value_ints=[3, -1, 0])
    return g.emit("Constant", [], value=nh.from_array(v))


def constant_of_shape(g):
    s = g.ints(*g.shape())
    attrs = {"value": nh.from_array(g.values(g.pick(*ALL), (1,)))} if g.chance(70) else {}
    return g.emit("ConstantOfShape", [s], **attrs)


def shape(g):
    x = g.take(ALL)
    attrs = {}
    if g.opset >= 15:
        for a in ("start", "end"):
            if g.chance(40):
                attrs[a] = g.between(-6, 6)
    return g.emit("Shape", [x], **attrs)


def size(g):
    return g.emit("Size", [g.take(ALL)])


def range_(g):
    t = g.pick(np.float32, np.float64, np.int16, np.int32, np.int64)
    step = g.pick(1, 2, 3, -1, -2, 0.5, 0.1, -0.25) if is_float(t) else g.pick(1, 2, 3, -1, -3)
    return g.emit("Range", [g.const(g.between(-9, 9), t), g.const(g.between(-9, 9), t), g.const(step, t)], ulp(4, 2e-6))


def eye_like(g):
    attrs = {"k": g.between(-4, 4)} if g.chance(60) else {}
    if g.chance(50):
        attrs["dtype"] = int(h.np_dtype_to_tensor_dtype(np.dtype(g.pick(np.float32, np.float64, np.int32, np.int64, np.uint64))))
    return g.emit("EyeLike", [g.take(NUMBERS, 2, 2)], **attrs)


def reshape(g):
    x = g.take(ALL)
    n = int(np.prod(g.dims(x), dtype=np.int64))
    out, rest = [], n
    for d in (2, 3, 4, 5, 7, 8):
        if rest and rest % d == 0 and g.chance(50):
            out.append(d)
            rest //= d
    out.append(rest)
    if g.chance(30):
        out.append(1)
    out = [int(d) for d in g.rng.permutation(out)]
    if n == 1 and g.chance(40):
        out = []
    attrs = {}
    if out and 0 not in out and g.chance(40):
        out[g.upto(len(out) - 1)] = -1
    if g.opset >= 14 and 0 in out and g.chance(80):
        attrs["allowzero"] = 1
    elif out and len(out) <= len(g.dims(x)) and 0 not in out and g.chance(30):
        for i, d in enumerate(out):
            if d == g.dims(x)[i]:
                out[i] = 0
    if g.opset < 5 and out:
        return g.emit("Reshape", [x], shape=out)
    if g.opset < 5:
        raise Unfit
    return g.emit("Reshape", [x, g.ints(*out)], **attrs)


def flatten(g):
    x = g.take(ALL if g.opset >= 9 else FLOATS)
    r = len(g.dims(x))
    attrs = {"axis": g.between(-r if g.opset >= 11 else 0, r)} if g.chance(80) else {}
    return g.emit("Flatten", [x], **attrs)


def squeeze(g):
    x = g.take(ALL, 0, 3)
    s = list(g.dims(x))
    for _ in range(g.upto(2)):
        s.insert(g.upto(len(s)), 1)
    x = g.hold(g.value(x).reshape(s), g.chance(20))
    ones = [i for i, d in enumerate(s) if d == 1]
    at = [i - len(s) if g.chance(30) and g.opset >= 11 else i for i in ones if g.chance(60)]
    if g.chance(2):
        at += [0, 0]
    ins, attrs = [x], {}
    if at or (g.opset >= 13 and g.chance(30)):
        axes_arg(g, ins, attrs, at, 13)
    return g.emit("Squeeze", ins, **attrs)


def unsqueeze(g):
    x = g.take(ALL, 0, 3)
    n = g.between(1, 3)
    r = len(g.dims(x)) + n
    at = [int(i) for i in g.rng.permutation(r)[:n]]
    at = [i - r if g.chance(30) and g.opset >= 11 else i for i in at]
    if g.chance(2):
        at[0] = at[-1] if n > 1 else r
    ins, attrs = [x], {}
    axes_arg(g, ins, attrs, at, 13)
    return g.emit("Unsqueeze", ins, **attrs)


def transpose(g):
    x = g.take(ALL, 0, 5)
    attrs = {"perm": [int(i) for i in g.rng.permutation(len(g.dims(x)))]} if g.chance(80) and g.dims(x) else {}
    return g.emit("Transpose", [x], **attrs)


def concat(g):
    x = g.take(ALL, 1, 4)
    s = list(g.dims(x))
    axis = g.axis(len(s))
    ins = [x]
    for _ in range(g.upto(3)):
        t = list(s)
        if -len(s) <= axis < len(s):
            t[axis] = g.pick(0, 1, 2, 5, t[axis])
        ins.append(g.new(g.dtype(x), t))
    if g.chance(30):
        ins.reverse()
    return g.emit("Concat", ins, axis=axis if g.opset >= 11 else axis % len(s))


def split(g):
    x = g.take(ALL, 1, 4)
    s = g.dims(x)
    axis = g.between(-len(s), len(s) - 1) if g.opset >= 11 else g.upto(len(s) - 1)
    n = s[axis]
    outs = g.between(1, 4)
    ins, attrs = [x], {"axis": axis} if axis or g.chance(50) else {}
    if g.chance(60):
        cuts = sorted(g.upto(n) for _ in range(outs - 1))
        parts = [b - a for a, b in zip([0] + cuts, cuts + [n])]
        if g.opset >= 13:
            ins.append(g.ints(*parts))
        else:
            attrs["split"] = parts
    elif g.opset >= 18:
        attrs["num_outputs"] = outs
    elif n % outs:
        raise Unfit
    return g.emit("Split", ins, outs=[1] * outs, **attrs)


def slice_(g):
    x = g.take(ALL, 1, 4)
    s = g.dims(x)
    r = len(s)
    k = g.between(1, r)
    axes = [int(i) for i in g.rng.permutation(r)[:k]]
    starts, ends, steps = [], [], []
    big = [2 ** 31 - 1, 2 ** 63 - 1, -2 ** 63, -2 ** 31, 1000, -1000]
    for a in axes:
        step = g.pick(1, 1, 1, 2, 3, -1, -2) if g.opset >= 10 else 1
        lo, hi = g.between(-s[a] - 1, s[a] + 1), g.between(-s[a] - 1, s[a] + 1)
        if g.chance(20):
            hi = g.pick(*(big if g.opset >= 10 else big[:2]))
        if g.chance(10) and g.opset >= 10:
            lo = g.pick(*big)
        starts.append(lo), ends.append(hi), steps.append(step)
    axes = [a - r if g.chance(30) and g.opset >= 10 else a for a in axes]
    implied = axes == list(range(k)) and g.chance(50)
    if g.opset < 10:
        attrs = {"starts": starts, "ends": ends}
        if not implied:
            attrs["axes"] = axes
        return g.emit("Slice", [x], **attrs)
    t = g.pick(np.int64, np.int64, np.int32)
    cut = lambda v: np.clip(np.array(v, object), np.iinfo(t).min, np.iinfo(t).max).astype(t)
    ins = [x, g.const(cut(starts)), g.const(cut(ends))]
    if not implied or g.chance(50):
        ins.append(g.const(cut(axes)))
    elif set(steps) != {1}:
        ins.append("")
    if set(steps) != {1} or (g.chance(30) and len(ins) == 4):
        ins.append(g.const(cut(steps)))
    return g.emit("Slice", ins)


def expand(g):
    x = g.take(ALL, 0, 3)
    s = [d if d != 1 or g.chance(40) else g.pick(0, 1, 2, 5, 16) for d in g.dims(x)]
    s = [1 if g.chance(20) else d for d in s]
    if g.chance(20):
        s = s[g.upto(len(s)):]
    elif g.chance(40):
        s = [g.pick(0, 1, 2, 3)] + s
    return g.emit("Expand", [x, g.ints(*s)])


def tile(g):
    x = g.take(ALL, 0, 4)
    n = [g.pick(0, 1, 1, 2, 3) if g.chance(90) else 4 for _ in g.dims(x)]
    if np.prod(n, dtype=np.int64) * g.value(x).size > 20000:
        raise Unfit
    return g.emit("Tile", [x, g.ints(*n)])


def trilu(g):
    ins = [g.take(ALL, 2, 4)]
    if g.chance(60):
        ins.append(g.const(g.between(-20, 20) if g.chance(30) else g.between(-3, 3), np.int64))
    attrs = {"upper": g.upto(1)} if g.chance(60) else {}
    return g.emit("Trilu", ins, **attrs)


def pad(g):
    x = g.take(ALL if g.opset >= 13 else NUMBERS if g.opset >= 11 else FLOATS, 1, 4)
    s = g.dims(x)
    mode = g.pick("constant", "constant", "reflect", "edge", "wrap" if g.opset >= 19 else "edge")
    lo = -2 if mode == "constant" or g.chance(30) else 0
    axes = [i for i in range(len(s)) if g.chance(70)] if g.opset >= 18 and g.chance(50) else None
    at = range(len(s)) if axes is None else axes
    pads = []
    for end in range(2):
        for i in at:
            most = 4 if mode == "constant" or g.chance(2) else max(s[i] - 1, 0)
            if mode == "wrap" and s[i] and g.chance(20):
                most = 3 * s[i]
            pads.append(g.between(max(lo, -(s[i] // 2)), min(most, 4)) if g.chance(70) else 0)
    attrs = {"mode": mode} if mode != "constant" or g.chance(30) else {}
    v = g.values(g.dtype(x), ())
    if g.opset < 11:
        if g.opset < 2:
            raise Unfit
        if mode == "constant" and g.chance(50):
            attrs["value"] = float(v)
        return g.emit("Pad", [x], pads=pads, **attrs)
    ins = [x, g.ints(*pads)]
    if mode == "constant" and g.chance(50):
        ins.append(g.hold(v, g.chance(70)))
    if axes is not None:
        ins += [""] * (3 - len(ins)) + [g.const([a - len(s) if g.chance(30) else a for a in axes], g.pick(np.int64, np.int32))]
    return g.emit("Pad", ins, **attrs)


def center_crop_pad(g):
    x = g.take(NUMBERS, 1, 4)
    r = len(g.dims(x))
    axes = g.axes(r) if g.chance(60) else None
    n = r if axes is None else len(axes)
    attrs = {} if axes is None else {"axes": axes}
    if axes == []:
        raise Unfit
    return g.emit("CenterCropPad", [x, g.ints(*[g.between(0, 9) for _ in range(n)])], **attrs)


def depth_to_space(g):
    b = g.pick(1, 2, 3)
    x = g.new(g.pick(*FLOATS), (g.pick(0, 1, 2), b * b * g.pick(1, 2, 3), g.dim() % 9, g.dim() % 9))
    attrs = {"mode": g.pick("DCR", "CRD")} if g.opset >= 11 and g.chance(70) else {}
    return g.emit("DepthToSpace", [x], blocksize=b, **attrs)


def space_to_depth(g):
    b = g.pick(1, 2, 3)
    x = g.new(g.pick(*FLOATS), (g.pick(0, 1, 2), g.pick(1, 2, 3), b * g.upto(4), b * g.upto(4)))
    return g.emit("SpaceToDepth", [x], blocksize=b)


# ---- by index

def indices(g, shape, n, wild=True):
    """In -n .. n-1."""
    t = g.pick(np.int64, np.int64, np.int32)
    if n == 0 and np.prod(shape, dtype=np.int64):
        raise Unfit
    lo = -n if g.chance(50) and g.opset >= 11 and wild else 0
    return g.hold(g.rng.integers(lo, max(n, 1), shape).astype(t), g.chance(40))


def gather(g):
    x = g.take(ALL, 1, 4)
    axis = g.between(-len(g.dims(x)), len(g.dims(x)) - 1)
    attrs = {"axis": axis} if axis or g.chance(40) else {}
    return g.emit("Gather", [x, indices(g, g.shape(0, 2), g.dims(x)[axis])], **attrs)


def gather_elements(g):
    x = g.take(ALL, 1, 4)
    s = list(g.dims(x))
    axis = g.between(-len(s), len(s) - 1)
    i = [min(d, g.pick(1, 2, d)) for d in s]
    i[axis] = g.upto(5)
    return g.emit("GatherElements", [x, indices(g, i, s[axis])], **({"axis": axis} if axis or g.chance(40) else {}))


def nd_indices(g, s, batch, k):
    """[batch dims, some, k] of positions."""
    lead = s[:batch] + g.shape(0, 2)[:2]
    cols = []
    for i in range(k):
        n = s[batch + i]
        if n == 0:
            raise Unfit
        cols.append(g.rng.integers(-n if g.chance(40) else 0, n, lead))
    return np.stack(cols, -1).astype(np.int64) if k else np.zeros(lead + (0,), np.int64)


def gather_nd(g):
    x = g.take(ALL, 1, 4)
    s = g.dims(x)
    batch = g.upto(min(2, len(s) - 1)) if g.opset >= 12 and g.chance(50) else 0
    i = nd_indices(g, s, batch, g.between(1, len(s) - batch))
    if i.ndim < batch + 1:
        raise Unfit
    return g.emit("GatherND", [x, g.hold(i, g.chance(40))], **({"batch_dims": batch} if batch else {}))


def scatter_elements(op):
    def f(g):
        x = g.take(NUMBERS, 1, 4)
        s = list(g.dims(x))
        axis = g.between(-len(s), len(s) - 1)
        i = [g.upto(d) for d in s]
        n = s[axis]
        attrs = {"axis": axis} if axis or g.chance(40) else {}
        kind = "none"
        if op == "ScatterElements" and g.opset >= 16 and g.chance(60):
            kind = attrs["reduction"] = g.pick("add", "mul", "none") if g.opset < 18 else g.pick("add", "mul", "max", "min")
        if kind == "none":  # which of two writes comes last is undefined
            i[axis] = min(i[axis], n)
            at = np.argsort(g.rng.random(i[:axis % len(s)] + [n] + i[axis % len(s) + 1:]), axis=axis)
            at = np.take(at, np.arange(i[axis]), axis=axis)
            if g.opset >= 11 and g.chance(40):
                at = np.where(g.rng.random(at.shape) < 0.5, at, at - n)
        else:
            if n == 0:
                raise Unfit
            at = g.rng.integers(-n, n, i)
            x = g.new(g.dtype(x), s, "mild")
        at = g.hold(at.astype(g.pick(np.int64, np.int32)), g.chance(40))
        return g.emit(op, [x, at, g.new(g.dtype(x), i, "any" if kind == "none" else "mild")],
                      EXACT if kind in ("none", "max", "min") else near(1e-5 if g.dtype(x) != np.float16 else 1e-2), **attrs)
    return f


def scatter_nd(g):
    x = g.take(NUMBERS, 1, 4)
    s = g.dims(x)
    k = g.between(1, len(s))
    attrs, kind = {}, "none"
    if g.opset >= 16 and g.chance(60):
        kind = attrs["reduction"] = g.pick("add", "mul") if g.opset < 18 else g.pick("add", "mul", "max", "min")
    i = nd_indices(g, s, 0, k)
    if kind == "none":
        flat = i.reshape(-1, k) % np.array(s[:k])
        if len({tuple(r) for r in flat}) != len(flat):
            raise Unfit
    else:
        x = g.new(g.dtype(x), s, "mild")
    u = g.new(g.dtype(x), i.shape[:-1] + s[k:], "any" if kind == "none" else "mild")
    return g.emit("ScatterND", [x, g.hold(i, g.chance(40)), u],
                  EXACT if kind in ("none", "max", "min") else near(1e-5 if g.dtype(x) != np.float16 else 1e-2), **attrs)


def one_hot(g):
    depth = g.between(1, 9)
    t = g.pick(np.int64, np.int64, np.int32, np.float32)
    i = g.hold(g.rng.integers(-depth - 2, depth + 2, g.shape(1, 3)).astype(t), g.chance(20))
    v = g.new(g.pick(np.float32, np.int64, np.int32), (2,))
    attrs = {"axis": g.axis(len(g.dims(i)) + 1)} if g.chance(60) else {}
    d = g.const(depth, g.pick(np.int64, np.int64, np.float32, np.int32))
    if g.chance(30):
        d = g.const([depth], g.dtype(d))
    return g.emit("OneHot", [i, d, v], **attrs)


def compress(g):
    x = g.take(ALL, 1, 3)
    attrs = {"axis": g.axis(len(g.dims(x)))} if g.chance(60) else {}
    n = g.value(x).size
    if attrs:
        a = attrs["axis"]
        n = g.dims(x)[a] if -len(g.dims(x)) <= a < len(g.dims(x)) else 1
    return g.emit("Compress", [x, g.const(g.rng.integers(0, 2, g.upto(n)).astype(bool))], **attrs)


def nonzero(g):
    return g.emit("NonZero", [g.hold(g.value(g.take(ALL, 0, 3)), True)])


def reverse_sequence(g):
    x = g.take(ALL, 2, 4)
    time = g.upto(1)
    n, batch = g.dims(x)[time], g.dims(x)[1 - time]
    if n == 0:
        raise Unfit
    lens = g.hold(g.rng.integers(1, n + 1, batch).astype(np.int64), g.chance(60))
    attrs = {"time_axis": time, "batch_axis": 1 - time} if time or g.chance(50) else {}
    return g.emit("ReverseSequence", [x, lens], **attrs)


OPS = {"Constant": constant, "ConstantOfShape": constant_of_shape, "Shape": shape, "Size": size, "Range": range_,
       "EyeLike": eye_like, "Reshape": reshape, "Flatten": flatten, "Squeeze": squeeze, "Unsqueeze": unsqueeze,
       "Transpose": transpose, "Concat": concat, "Split": split, "Slice": slice_, "Expand": expand, "Tile": tile,
       "Trilu": trilu, "Pad": pad, "CenterCropPad": center_crop_pad, "DepthToSpace": depth_to_space,
       "SpaceToDepth": space_to_depth, "Gather": gather, "GatherElements": gather_elements, "GatherND": gather_nd,
       "Scatter": scatter_elements("Scatter"), "ScatterElements": scatter_elements("ScatterElements"),
       "ScatterND": scatter_nd, "OneHot": one_hot, "Compress": compress, "NonZero": nonzero,
       "ReverseSequence": reverse_sequence}
