"""Convolutions, products, pools, resizing, recurrent layers, signals, losses, attention."""
import numpy as np
from graph import ALL, EXACT, FLOATS, INTS, NUMBERS, SUM, Unfit, is_float, near, ulp
from onnx import helper as h

F = np.float32


def window(g, dims, deconv=False):
    """Attributes of a window over `dims`, and its kernel."""
    k = [g.between(1, min(4, max(d, 1))) for d in dims]
    attrs = {"kernel_shape": k} if g.chance(80) else {}
    if g.chance(60):
        attrs["strides"] = [g.between(1, 3) for _ in dims]
    if g.chance(30):
        attrs["dilations"] = [g.between(1, 2) for _ in dims]
    how = g.upto(4)
    if how == 0:
        attrs["auto_pad"] = g.pick("SAME_UPPER", "SAME_LOWER", "VALID")
        if deconv:
            attrs.pop("dilations", None)
    elif how < 4:
        attrs["pads"] = [g.upto(k[i % len(dims)] - 1) for i in range(2 * len(dims))]
    return k, attrs


def spatial(g, most=3):
    n = g.pick(1, 2, 2, 2, most)
    return tuple(g.between(1, 9 if n < 3 else 5) for _ in range(n))


def conv(op, domain=""):
    def f(g):
        dims = spatial(g)
        k, attrs = window(g, dims, op == "ConvTranspose")
        groups = g.pick(1, 1, 2, 3)
        c, o = groups * g.pick(1, 2, 3, 4), groups * g.pick(1, 2, 5, 8)
        t = g.pick(F, F, F, np.float64, np.float16)
        if domain or op == "ConvInteger":
            t = F
        x = g.new(t, (g.pick(1, 1, 2, 3, 0),) + (c,) + dims, "mild")
        w = (c, o // groups) if op == "ConvTranspose" else (o, c // groups)
        ins = [x, g.weight(t, w + tuple(k))] + ([g.weight(t, (o,))] if g.chance(50) else [])
        if groups > 1 or g.chance(20):
            attrs["group"] = groups
        if op == "ConvTranspose":
            s = attrs.get("strides", [1] * len(dims))
            if g.chance(30):
                attrs["output_padding"] = [g.upto(max(v - 1, 0)) for v in s]
            if g.chance(15) and "pads" not in attrs:
                attrs.pop("auto_pad", None)
                attrs["output_shape"] = [(d - 1) * s[i] + k[i] - g.upto(1) for i, d in enumerate(dims)]
        if domain:
            attrs["activation"] = g.pick("Relu", "Sigmoid", "Tanh", "LeakyRelu", "Clip", "HardSigmoid")
            params = {"LeakyRelu": [0.1], "Clip": [-0.5, 1.0], "HardSigmoid": [0.3, 0.4]}
            if attrs["activation"] in params:
                attrs["activation_params"] = params[attrs["activation"]]
        return g.emit(op, ins, SUM if not domain else near(1e-4), domain=domain, **attrs)
    return f


def gemm(op):
    def f(g):
        ta, tb = g.upto(1), g.upto(1)
        m, k, n = g.dim() % 20, g.dim() % 20 or min(g.upto(20), 1), g.dim() % 20
        t = g.pick(F, F, np.float64, np.float16) if op == "Gemm" else F
        if op == "Gemm" and g.opset >= 9 and g.chance(10):
            t = g.pick(np.int32, np.int64)
        a, b = g.new(t, (k, m) if ta else (m, k), "mild"), g.weight(t, (n, k) if tb else (k, n))
        ins = [a, b]
        if g.chance(70) or g.opset < 11:
            ins.append(g.weight(t, g.pick((n,), (m, n), (1, n), (m, 1), (1,), ()) if g.opset >= 7 else (m, n)))
        attrs = {}
        for key, v in (("transA", ta), ("transB", tb)):
            if v or g.chance(30):
                attrs[key] = v
        for key in ("alpha", "beta"):
            if g.chance(40):
                attrs[key] = float(g.pick(1.0, 0.5, 2.0, 0.0) if is_float(t) else g.pick(1.0, 2.0))
        if op == "FusedGemm":
            return g.emit(op, ins, near(1e-4), domain="com.microsoft", activation=g.pick("Relu", "Sigmoid", "Tanh"), **attrs)
        return g.emit(op, ins, SUM, **attrs)
    return f


def matmul(g):
    t = g.pick(F, F, np.float64, np.float16)
    if g.opset >= 9 and g.chance(10):
        t = g.pick(np.int32, np.int64, np.uint32)
    m, k, n = g.dim() % 20, g.dim() % 20 or min(g.upto(14), 1), g.dim() % 20
    lead = g.shape(0, 2)[:2]
    lead = tuple(min(d, 3) for d in lead)
    a, b = lead + (m, k), g.cut(lead) + (k, n)
    how = g.upto(7)
    if how == 0:
        a = (k,)
    elif how == 1:
        b = (k,)
    elif how == 2:
        a, b = b[:-2] + (m, k), a[:-2] + (k, n)
    elif how == 3:
        a, b = (k,), (k,)
    return g.emit("MatMul", [g.new(t, a, g.pick("mild", "mild", "infinite")), g.weight(t, b)], SUM)


def fused_matmul(g):
    ta, tb = g.upto(1), g.upto(1)
    m, k, n = g.between(1, 9), g.between(1, 9), g.between(1, 9)
    lead = g.pick((), (2,), (2, 3))
    a, b = lead + ((k, m) if ta else (m, k)), lead + ((n, k) if tb else (k, n))
    return g.emit("FusedMatMul", [g.new(F, a, "mild"), g.weight(F, b)], SUM, domain="com.microsoft", transA=ta, transB=tb,
                  alpha=float(g.pick(1.0, 0.5)))


EINSUMS = ("ij,jk->ik", "ij,jk", "bij,bjk->bik", "ij->ji", "ii->i", "ij->", "i,j->ij", "ij,ij->", "bhid,bhjd->bhij", "ij,kj->ik",
           "...ij,jk->...ik", "abc->ca", "ij,j->i", "i,i->", "bij,bij->bi", "ij->j", "ij,jk,kl->il", "...i->...", "abc,acd->abd")


def einsum(g):
    eq = g.pick(*EINSUMS)
    size = {c: g.between(1, 6) for c in "abcdhijkl"}
    ins = []
    for term in eq.split("->")[0].split(","):
        dims = []
        if "..." in term:
            dims += [2]
            term = term.replace("...", "")
        ins.append(g.new(g.pick(F, F, np.float64) if not ins else g.dtype(ins[0]), tuple(dims + [size[c] for c in term]), "mild"))
    return g.emit("Einsum", ins, SUM, equation=eq.replace(",", g.pick(",", ", ")))


def pool(op):
    def f(g):
        dims = spatial(g)
        k, attrs = window(g, dims)
        attrs["kernel_shape"] = k
        if op == "LpPool":
            if g.chance(60):
                attrs["p"] = g.pick(1, 2, 3)
        if g.opset < (10 if op == "MaxPool" else 19 if op == "AveragePool" else 18):
            attrs.pop("dilations", None)
        if g.opset >= (10 if op != "LpPool" else 18) and g.chance(30):
            attrs["ceil_mode"] = g.upto(1)
        if op == "AveragePool" and g.opset >= 7 and g.chance(40):
            attrs["count_include_pad"] = g.upto(1)
        t = g.pick(F, F, F, np.float64, np.float16)
        if op == "MaxPool" and g.opset >= 12 and g.chance(30):
            t = g.pick(np.int8, np.uint8)
        outs = 1
        if op == "MaxPool" and g.opset >= 8 and g.chance(25):
            outs = 2
            if g.chance(30):
                attrs["storage_order"] = g.upto(1)
        kind = "any" if op == "MaxPool" else g.pick("mild", "mild", "infinite")
        x = g.new(t, (g.pick(1, 2, 0), g.pick(1, 3, 8)) + dims, kind)
        return g.emit(op, [x], EXACT if op == "MaxPool" else SUM, outs=outs, **attrs)
    return f


def global_pool(op):
    def f(g):
        x = g.new(g.pick(F, F, np.float64, np.float16), (g.pick(1, 2), g.pick(1, 3, 8)) + spatial(g),
                  "any" if op == "GlobalMaxPool" else "mild")
        attrs = {"p": g.pick(1, 2, 3)} if op == "GlobalLpPool" and g.chance(60) else {}
        return g.emit(op, [x], EXACT if op == "GlobalMaxPool" else SUM, **attrs)
    return f


# ---- resizing

def upsample(op):
    def f(g):
        dims = g.pick((3, 4), (1, 7), (5, 5), (2, 3))
        x = g.new(F, (g.pick(1, 2), g.pick(1, 3)) + dims, "mild")
        scales = [1.0, 1.0] + [float(g.pick(1, 2, 3, 1.5, 2.5)) for _ in dims]
        attrs = {"mode": g.pick("nearest", "linear")} if g.chance(80) else {}
        tol = near(1e-5) if attrs.get("mode") == "linear" else EXACT
        if g.opset >= 9:
            return g.emit(op, [x, g.const(scales, F)], tol, **attrs)
        return g.emit(op, [x], tol, scales=scales, **attrs)
    return f


def resize(g):
    rank = g.pick(1, 2, 3, 4, 4, 4)
    spread = g.pick(2, 2, 1, rank)
    s = [g.pick(1, 2, 3) for _ in range(rank)]
    move = [i for i in range(rank) if i >= rank - spread]
    for i in move:
        s[i] = g.between(1, 24)
    mode = g.pick("nearest", "nearest", "nearest", "linear", "cubic")
    t = F if mode != "nearest" else g.pick(F, F, np.float64, np.uint8, np.int8, np.int32, np.float16)
    attrs = {"mode": mode, "coordinate_transformation_mode": g.pick(
        "half_pixel", "pytorch_half_pixel", "align_corners", "asymmetric", "half_pixel_symmetric" if g.opset >= 19 else "half_pixel",
        "tf_half_pixel_for_nn" if g.opset < 13 and mode == "nearest" else "asymmetric",
        "tf_crop_and_resize")}
    if mode == "nearest" and g.chance(80):
        attrs["nearest_mode"] = g.pick("round_prefer_floor", "round_prefer_ceil", "floor", "ceil")
    if mode == "cubic" and g.chance(30):
        attrs["cubic_coeff_a"] = -0.5
    if mode == "cubic" and g.chance(20):
        attrs["exclude_outside"] = 1
    if g.opset >= 18 and mode != "nearest" and g.chance(15):
        attrs["antialias"] = 1
    x = g.new(t, s, "mild") if t != F or mode != "nearest" else g.hold(np.arange(np.prod(s), dtype=F).reshape(s), False)
    axes = None
    if g.opset >= 18 and g.chance(40):
        axes = move
        attrs["axes"] = [a - rank if g.chance(30) else a for a in axes]
    roi = ""
    if attrs["coordinate_transformation_mode"] == "tf_crop_and_resize":
        n = rank if axes is None else len(axes)
        v = [0.0] * n + [1.0] * n
        for i in range(n):
            if axes is not None or i in move:
                v[i], v[n + i] = g.pick(0.0, 0.25, -0.1), g.pick(1.0, 0.5, 1.2)
        roi = g.const(v, F)
        if g.chance(50):
            attrs["extrapolation_value"] = 7.5
    elif g.opset < 13:
        roi = g.const([], F)
    if g.chance(50):
        scale = [float(g.pick(0.5, 2, 1.5, 0.6, 3, 0.3, 2.25, 1 / 3, 0.75)) if i in move else 1.0 for i in range(rank)]
        if axes is not None:
            scale = [scale[i] for i in axes]
        ins = [x, roi, g.const(scale, F)]
    else:
        size = [g.between(1, 45) if i in move else s[i] for i in range(rank)]
        if np.prod(size) > 20000:
            raise Unfit
        if axes is not None:
            size = [size[i] for i in axes]
        if g.opset >= 18 and g.chance(30):
            attrs["keep_aspect_ratio_policy"] = g.pick("stretch", "not_larger", "not_smaller")
        ins = [x, roi, g.const([], F) if g.opset < 13 else "", g.ints(*size)]
    return g.emit("Resize", ins, EXACT if mode == "nearest" else near(2e-5), **attrs)


def grid_sample(g):
    n, c = g.pick(1, 2), g.pick(1, 3)
    d = 3 if g.opset >= 20 and g.chance(30) else 2
    modes = ("linear", "nearest", "cubic") if g.opset >= 20 else ("bilinear", "nearest", "bicubic")
    x = g.new(F, (n, c) + tuple(g.between(1, 6) for _ in range(d)), "mild")
    grid = g.hold(g.rng.uniform(-1.4, 1.4, (n,) + tuple(g.between(1, 5) for _ in range(d)) + (d,)).astype(F), g.chance(30))
    attrs = {"mode": g.pick(*modes[:2 if d == 3 else 3])} if g.chance(80) else {}
    if g.chance(70):
        attrs["padding_mode"] = g.pick("zeros", "border", "reflection")
    if g.chance(50):
        attrs["align_corners"] = g.upto(1)
    return g.emit("GridSample", [x, grid], near(1e-4), **attrs)


def affine_grid(g):
    d = g.pick(2, 2, 3)
    n = g.pick(1, 2)
    size = g.ints(n, 3, *[g.between(1, 5) for _ in range(d)])
    attrs = {"align_corners": g.upto(1)} if g.chance(60) else {}
    return g.emit("AffineGrid", [g.new(g.pick(F, np.float64), (n, d, d + 1), "mild"), size], near(1e-5), **attrs)


# ---- recurrent

def recurrent(op, gates):
    def f(g):
        t, b, i, hd = g.between(1, 5), g.pick(1, 2, 3), g.pick(1, 3, 8), g.pick(1, 2, 5, 8, 13)
        way = g.pick("forward", "reverse", "bidirectional")
        d = 2 if way == "bidirectional" else 1
        layout = int(g.opset >= 14 and g.chance(25))
        x = g.new(F, (b, t, i) if layout else (t, b, i), "mild")
        ins = [x, g.weight(F, (d, gates * hd, i)), g.weight(F, (d, gates * hd, hd)),
               g.weight(F, (d, 2 * gates * hd)) if g.chance(60) else "",
               g.hold(g.rng.integers(1, t + 1, b).astype(np.int32), g.chance(50)) if g.chance(25) else ""]
        state = (b, d, hd) if layout else (d, b, hd)
        ins.append(g.new(F, state, "mild") if g.chance(50) else "")
        if op == "LSTM":
            ins.append(g.new(F, state, "mild") if g.chance(50) else "")
            ins.append(g.weight(F, (d, 3 * hd)) if g.chance(25) else "")
        while not ins[-1]:
            ins.pop()
        attrs = {"hidden_size": hd}
        if way != "forward" or g.chance(30):
            attrs["direction"] = way
        if layout:
            attrs["layout"] = 1
        if op == "GRU" and g.chance(50):
            attrs["linear_before_reset"] = g.upto(1)
        if op == "LSTM" and g.chance(10):
            attrs["input_forget"] = 1
        if g.chance(15):
            attrs["clip"] = 0.8
        if g.chance(25):
            one = {"LSTM": ["Sigmoid", "Tanh", g.pick("Tanh", "Relu")], "GRU": ["Sigmoid", g.pick("Tanh", "Relu")],
                   "RNN": [g.pick("Tanh", "Relu", "Sigmoid", "Softsign")]}[op]
            attrs["activations"] = one * d
        return g.emit(op, ins, near(1e-4), outs=[1] * g.between(1, 3 if op == "LSTM" else 2),
                      oracle=batch_second(g, op, attrs) if layout else None, **attrs)
    return f


def batch_second(g, op, attrs):
    """Layout 1 by way of layout 0."""
    def f(ins, outs):
        turned = {i: i + "_t" for k, i in enumerate(ins) if i and k in (0, 5, 6)}
        nodes = [h.make_node("Transpose", [i], [t], perm=[1, 0, 2]) for i, t in turned.items()]
        nodes.append(h.make_node(op, [turned.get(i, i) for i in ins], [o + "_t" for o in outs], **{**attrs, "layout": 0}))
        return nodes + [h.make_node("Transpose", [o + "_t"], [o], perm=[2, 0, 1, 3] if k == 0 else [1, 0, 2])
                        for k, o in enumerate(outs)], g.opset
    return f


# ---- signals, losses

def window_fn(op):
    def f(g):
        attrs = {"periodic": g.upto(1)} if g.chance(60) else {}
        if g.chance(40):
            attrs["output_datatype"] = g.pick(1, 11)
        return g.emit(op, [g.const(g.between(1, 20), g.pick(np.int64, np.int32))], ulp(16, 2e-7), **attrs)
    return f


def dft(g):
    s = (g.pick(1, 2), g.between(1, 12), g.pick(1, 2))
    if g.chance(40):
        s = s[:2] + (g.between(1, 5),) + s[2:]
    x = g.new(g.pick(F, np.float64), s, "mild")
    attrs, ins = {}, [x]
    axis = g.between(1, len(s) - 2)
    if g.chance(40):
        ins.append(g.const(g.between(1, 12), np.int64))
    if g.opset >= 20:
        if g.chance(60):
            ins += [""] * (2 - len(ins)) + [g.const(axis, np.int64)]
    elif g.chance(60):
        attrs["axis"] = axis
    if g.chance(30):
        attrs["inverse"] = 1
    elif g.chance(40) and s[-1] == 1:
        attrs["onesided"] = 1
    return g.emit("DFT", ins, near(1e-4), **attrs)


def stft(g):
    n, w, step = g.between(16, 40), g.pick(4, 8, 10), g.pick(1, 3, 4)
    x = g.new(F, (g.pick(1, 2), n) + ((1,) if g.chance(50) else ()), "mild")
    if g.chance(60):
        ins = [x, g.const(step, np.int64), g.weight(F, (w,))] + ([g.const(w, np.int64)] if g.chance(50) else [])
    else:
        ins = [x, g.const(step, np.int64), "", g.const(w, np.int64)]
    return g.emit("STFT", ins, near(1e-4), **({"onesided": g.upto(1)} if g.chance(60) else {}))


def mel_weights(g):
    bins, n, rate = g.between(1, 8), g.pick(8, 16, 64, 257), g.pick(8000, 16000)
    lower = float(g.pick(0.0, 20.0, 300.0))
    t = g.pick(np.int64, np.int32)
    ins = [g.const(bins, t), g.const(n, t), g.const(rate, t), g.const(lower, F), g.const(float(g.pick(rate / 2, 3000.0)), F)]
    return g.emit("MelWeightMatrix", ins, near(1e-5), **({"output_datatype": g.pick(1, 11)} if g.chance(40) else {}))


def loss(op):
    def f(g):
        c, n = g.between(1, 6), g.between(1, 4)
        rest = tuple(g.between(1, 3) for _ in range(g.pick(0, 0, 1, 2)))
        x = g.new(F, (n, c) + rest, "mild")
        v = g.rng.integers(0, c, (n,) + rest)
        attrs = {"reduction": g.pick("none", "sum", "mean")} if g.chance(70) else {}
        if g.chance(40):
            attrs["ignore_index"] = g.pick(0, -1, 99)
            v = np.where(g.rng.random(v.shape) < 0.2, attrs["ignore_index"], v)
            if (v == attrs["ignore_index"]).all():
                raise Unfit
        ins = [x, g.hold(v.astype(g.pick(np.int64, np.int32)), g.chance(20))]
        if g.chance(40):
            ins.append(g.weight(F, (c,), "positive"))
        # a likelihood has any sign here, so that a sum of them may cancel; a softmax's logarithms have one
        return g.emit(op, ins, SUM if op.startswith("Neg") else near(1e-5), outs=g.pick(1, 2) if op.startswith("Soft") else 1, **attrs)
    return f


def attention(g):
    b, heads, kv, d, tq, tk = g.pick(1, 2), g.pick(1, 2, 4), 0, g.pick(4, 8), g.between(1, 6), g.between(1, 6)
    kv = g.pick(heads, 1)
    flat = g.chance(50)
    shape = lambda n, t: (b, t, n * d) if flat else (b, n, t, d)
    ins = [g.new(F, shape(heads, tq), "mild"), g.new(F, shape(kv, tk), "mild"), g.new(F, shape(kv, tk), "mild")]
    if g.chance(40):
        ins.append(g.new(g.pick(F, np.bool_), (tq, tk), "mild"))
        if g.dtype(ins[-1]) == np.bool_ and not g.value(ins[-1]).any(-1).all():
            raise Unfit
    attrs = {"q_num_heads": heads, "kv_num_heads": kv} if flat else {}
    if g.chance(30):
        attrs["is_causal"] = 1
    if g.chance(30):
        attrs["scale"] = 0.5
    if g.chance(20):
        attrs["softcap"] = 2.0
    return g.emit("Attention", ins, near(1e-4), **attrs)


def rotary(g):
    b, n, t, d = g.pick(1, 2), g.pick(1, 3), g.between(1, 5), g.pick(4, 8)
    part = g.pick(d, d, d // 2)
    x = g.new(F, (b, n, t, d), "mild")
    attrs = {"interleaved": g.upto(1)} if g.chance(60) else {}
    if part != d:
        attrs["rotary_embedding_dim"] = part
    if g.chance(50):
        return g.emit("RotaryEmbedding", [x, g.weight(F, (b, t, part // 2)), g.weight(F, (b, t, part // 2))], near(1e-5), **attrs)
    ids = g.hold(g.rng.integers(0, 9, (b, t)), g.chance(50))
    return g.emit("RotaryEmbedding", [x, g.weight(F, (9, part // 2)), g.weight(F, (9, part // 2)), ids], near(1e-5), **attrs)


OPS = {"Conv": conv("Conv"), "ConvTranspose": conv("ConvTranspose"), "com.microsoft.FusedConv": conv("FusedConv", "com.microsoft"),
       "Gemm": gemm("Gemm"), "com.microsoft.FusedGemm": gemm("FusedGemm"), "MatMul": matmul,
       "com.microsoft.FusedMatMul": fused_matmul, "Einsum": einsum,
       **{o: pool(o) for o in ("MaxPool", "AveragePool", "LpPool")},
       **{o: global_pool(o) for o in ("GlobalMaxPool", "GlobalAveragePool", "GlobalLpPool")},
       "Upsample": upsample("Upsample"), "Resize": lambda g: resize(g) if g.opset > 10 else upsample("Resize")(g),
       "GridSample": grid_sample, "AffineGrid": affine_grid,
       "LSTM": recurrent("LSTM", 4), "GRU": recurrent("GRU", 3), "RNN": recurrent("RNN", 1),
       **{o: window_fn(o) for o in ("HannWindow", "HammingWindow", "BlackmanWindow")}, "DFT": dft, "STFT": stft,
       "MelWeightMatrix": mel_weights,
       **{o: loss(o) for o in ("NegativeLogLikelihoodLoss", "SoftmaxCrossEntropyLoss")},
       "Attention": attention, "RotaryEmbedding": rotary}
