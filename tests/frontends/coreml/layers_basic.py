"""Networks of the layers that the first versions have, and of weights in all their forms."""
import coremltools as ct
import numpy as np
import torch
import torch.nn.functional as F
from coremltools.models import datatypes
from coremltools.models.neural_network import NeuralNetworkBuilder

from record import Network, case, numpy, save_network


def t(x):
    return torch.tensor(np.asarray(x, np.float32))


def floats(rng, *shape):
    return rng.standard_normal(shape).astype(np.float32)


@case
def picture(rng):
    """A classifier of colour pictures in BGR with a scale and biases, labels that are numbers."""
    b = NeuralNetworkBuilder([("image", datatypes.Array(3, 8, 8))], [("scores", datatypes.Array(4))], mode="classifier")
    w, d = floats(rng, 6, 3, 3, 3), floats(rng, 4, 6)
    bias = floats(rng, 6)
    b.add_convolution("conv", 3, 6, 3, 3, 2, 2, "same", 1, w.transpose(2, 3, 1, 0), bias, True, input_name="image", output_name="c")
    b.add_activation("relu", "RELU", "c", "r")
    b.add_pooling("pool", 4, 4, 1, 1, "AVERAGE", "VALID", "r", "p", is_global=True)
    b.add_inner_product("dense", d, None, 6, 4, False, "p", "d")
    b.add_softmax("softmax", "d", "scores")
    b.set_class_labels([3, 5, 7, 11], "label", "scores")
    b.set_pre_processing_parameters(image_input_names=["image"], is_bgr=True, red_bias=-0.4, green_bias=-0.5, blue_bias=-0.6, image_scale=1 / 127.0)
    image = rng.integers(0, 256, (3, 8, 8)).astype(np.float32)
    x = t(image)[None] / 127 + t([-0.6, -0.5, -0.4])[:, None, None]
    x = F.relu(F.conv2d(F.pad(x, (0, 1, 0, 1)), t(w), t(bias), stride=2)).mean((2, 3))
    y = F.softmax(x @ t(d).T, 1)[0]
    save_network("picture", b.spec, {"image": image}, {"scores": y, "label": np.array([[3, 5, 7, 11][int(y.argmax())]])})


@case
def grey(rng):
    """A grey picture less its mean, in a regressor."""
    b = NeuralNetworkBuilder([("image", datatypes.Array(1, 4, 4))], [("y", datatypes.Array(2))], mode="regressor")
    w, mean = floats(rng, 2, 16), floats(rng, 16)
    b.add_flatten("flat", 0, "image", "f")
    b.add_inner_product("dense", w, None, 16, 2, False, "f", "y")
    b.set_pre_processing_parameters(image_input_names=["image"])
    del b.nn_spec.preprocessing[:]
    p = b.nn_spec.preprocessing.add()
    p.featureName = "image"
    p.meanImage.meanImage.extend(float(v) for v in mean)
    image = rng.integers(0, 256, (4, 4)).astype(np.float32)
    save_network("grey", b.spec, {"image": image}, {"y": t(w) @ (t(image).flatten() - t(mean))})


@case
def five(rng):
    """Layers of five dimensions."""
    x, y = floats(rng, 6, 4, 4), floats(rng, 6, 4, 4)
    n = Network("five", {"x": x, "y": y, "v": floats(rng, 6)}, five=True)
    b, X, Y, v = n.b, t(x)[None], t(y)[None], t(n.inputs["v"])
    w = floats(rng, 6, 6, 1, 1)
    b.add_convolution("conv", 6, 6, 1, 1, 1, 1, "valid", 1, w.transpose(2, 3, 1, 0), None, False, input_name="x", output_name=n.out("conv", F.conv2d(X, t(w))[0]))
    for mode in ("ADD", "MULTIPLY", "AVE", "MAX", "MIN"):
        ref = {"ADD": X + Y, "MULTIPLY": X * Y, "AVE": (X + Y) / 2, "MAX": torch.maximum(X, Y), "MIN": torch.minimum(X, Y)}[mode]
        b.add_elementwise(mode, ["x", "y"], n.out(mode.lower(), ref[0]), mode)
    b.add_elementwise("plus", ["x"], n.out("plus", (X + 1.5)[0]), "ADD", 1.5)
    b.add_elementwise("both", ["x", "v"], n.out("both", (X * v[:, None, None])[0]), "MULTIPLY")
    b.add_elementwise("concat", ["x", "y"], n.out("concat", torch.cat([X, Y], 1)[0]), "CONCAT")
    b.add_elementwise("dot", ["v", "v"], n.out("dot", (v @ v)[None]), "DOT")
    b.add_elementwise("cos", ["v", "v"], n.out("cos", t([1])), "COS")
    b.add_flatten("flat", 0, "x", n.out("flat", X.flatten()))
    b.add_flatten("flat_last", 1, "x", n.out("flat_last", X.permute(0, 2, 3, 1).flatten()))
    b.add_reshape("reshape", "x", n.out("reshape", X.reshape(4, 6, 4)), (4, 6, 4), 0)
    b.add_reshape("reshape_last", "x", n.out("reshape_last", X.permute(0, 2, 3, 1).reshape(3, 8, 4).permute(2, 0, 1)), (4, 3, 8), 1)
    b.add_permute("permute", [0, 3, 1, 2], "x", n.out("permute", X[0].permute(2, 0, 1)))
    b.add_split("split", "x", [n.out("split0", x[:2]), n.out("split1", x[2:4]), n.out("split2", x[4:])])
    b.add_slice("slice", "x", n.out("slice", x[1:6:2]), "channel", 1, 6, 2)
    b.add_slice("slice_end", "x", n.out("slice_end", x[:, :, 1:-1]), "width", 1, -1, 1)
    b.add_softmax("softmax", "x", n.out("softmax", F.softmax(X, 1)[0]))
    b.add_softmax("softmax_v", "v", n.out("softmax_v", F.softmax(v, 0)))
    for mode, ref in (("sum", X.sum((1, 2, 3))), ("avg", X.mean((1, 2, 3))), ("L1", X.abs().sum((1, 2, 3))), ("L2", X.norm()), ("sumsquare", (X * X).sum()),
                      ("max", X.max()), ("min", X.min()), ("prod", X.prod())):
        b.add_reduce("reduce_" + mode, "x", n.out("reduce_" + mode, ref.reshape(1)), "CHW", mode)
    b.add_reduce("reduce_hw", "x", n.out("reduce_hw", X.mean((2, 3))[0]), "HW", "avg")
    b.add_reduce("argmax", "x", n.out("argmax", X.argmax(1)[0].float()[None]), "C", "argmax")
    b.add_padding("pad", 1, 0, 2, 1, 0.5, "x", n.out("pad", F.pad(X, (1, 0, 2, 1), value=0.5)[0]))
    b.add_padding("pad_reflect", 1, 2, 2, 1, input_name="x", output_name=n.out("pad_reflect", F.pad(X, (1, 2, 2, 1), mode="reflect")[0]), padding_type="reflection")
    b.add_padding("pad_edge", 1, 2, 2, 1, input_name="x", output_name=n.out("pad_edge", F.pad(X, (1, 2, 2, 1), mode="replicate")[0]), padding_type="replication")
    b.add_crop("crop", 1, 0, 1, 1, [1, 1], ["x"], n.out("crop", X[0, :, 1:3, 1:]))
    b.add_upsample("up", 2, 3, "x", n.out("up", X.repeat_interleave(2, 2).repeat_interleave(3, 3)[0]), "NN")
    b.add_upsample("up_align", 2, 2, "x", n.out("up_align", F.interpolate(X, scale_factor=2, mode="bilinear", align_corners=True)[0]), "BILINEAR", "ALIGN_CORNERS_TRUE")
    b.add_upsample("up_half", 2, 2, "x", n.out("up_half", F.interpolate(X, scale_factor=2, mode="bilinear", align_corners=False)[0]), "BILINEAR", "ALIGN_CORNERS_FALSE")
    b.add_reorganize_data("s2d", "x", n.out("s2d", numpy(X[0]).reshape(6, 2, 2, 2, 2).transpose(2, 4, 0, 1, 3).reshape(24, 2, 2)), "SPACE_TO_DEPTH", 2)
    b.add_reorganize_data("d2s", "s2d", n.out("d2s", x), "DEPTH_TO_SPACE", 2)
    b.add_reorganize_data("shuffle", "s2d", n.out("shuffle", F.pixel_shuffle(t(n.results["s2d"])[None], 2)[0]), "PIXEL_SHUFFLE", 2)
    b.add_lrn("lrn", "x", n.out("lrn", F.local_response_norm(X, 3, 0.3, 0.6, 1.5)[0]), 0.3, 0.6, 3, 1.5)
    b.add_l2_normalize("l2", "x", n.out("l2", (X / torch.sqrt((X * X).sum() + 1e-3))[0]), 1e-3)
    b.add_mvn("mvn", "x", n.out("mvn", F.instance_norm(X, eps=1e-3)[0]), False, True, 1e-3)
    b.add_mvn("mvn_all", "x", n.out("mvn_all", F.layer_norm(X, (6, 4, 4), eps=1e-3)[0]), True, True, 1e-3)
    b.add_mvn("mvn_mean", "x", n.out("mvn_mean", (X - X.mean((2, 3), keepdim=True))[0]), False, False, 1e-3)
    g, h, m, s = floats(rng, 6), floats(rng, 6), floats(rng, 6), np.abs(floats(rng, 6))
    b.add_batchnorm("bn", 6, g, h, m, s, "x", n.out("bn", F.batch_norm(X, t(m), t(s), t(g), t(h), eps=1e-3)[0]), epsilon=1e-3)
    b.add_batchnorm("in", 6, g, h, None, None, "x", n.out("in", F.instance_norm(X, weight=t(g), bias=t(h), eps=1e-3)[0]), True, True, 1e-3)
    b.add_scale("scale", g.reshape(6, 1, 1), h.reshape(6, 1, 1), True, "x", n.out("scale", (X * t(g)[:, None, None] + t(h)[:, None, None])[0]), shape_scale=[6], shape_bias=[6])
    b.add_scale("scale_one", np.array([2.5]), None, False, "x", n.out("scale_one", (X * 2.5)[0]), shape_scale=[1])
    b.add_bias("bias", y, "x", n.out("bias", (X + Y)[0]), shape_bias=[6, 4, 4])
    b.add_load_constant("const", n.out("const", y), y, [6, 4, 4])
    b.add_sequence_repeat("repeat", 3, "v", "repeated")
    b.add_reduce("repeat_sum", "repeated", n.out("repeat_sum", v.sum().expand(3).reshape(3, 1, 1, 1, 1)), "C", "sum")
    n.save()


@case
def unary(rng):
    x = np.abs(floats(rng, 2, 3, 3)) + 0.1
    n = Network("unary", {"x": x}, five=True)
    X = t(x) * 1.5 + 0.25
    for mode, ref in (("sqrt", X.sqrt()), ("rsqrt", 1 / (X + 1e-2).sqrt()), ("inverse", 1 / (X + 1e-2)), ("power", X ** 2.5), ("exp", X.exp()), ("log", X.log()),
                      ("abs", X.abs()), ("threshold", torch.clamp(X, min=2.5))):
        n.b.add_unary(mode, "x", n.out(mode, ref), mode, alpha=2.5, shift=0.25, scale=1.5, epsilon=1e-2)
    n.save()


@case
def activations(rng):
    x = floats(rng, 3, 4, 5) * 2
    n = Network("activations", {"x": x}, five=True)
    X, a, c = t(x), floats(rng, 3), floats(rng, 3)
    C = lambda v: t(v)[:, None, None]
    for kind, params, ref in (
            ("RELU", None, F.relu(X)), ("LEAKYRELU", [0.3], F.leaky_relu(X, 0.3)), ("TANH", None, X.tanh()), ("SIGMOID", None, X.sigmoid()),
            ("SCALED_TANH", [1.7, 0.6], 1.7 * torch.tanh(0.6 * X)), ("LINEAR", [2.0, -1.0], 2 * X - 1), ("SIGMOID_HARD", [0.3, 0.4], torch.clamp(0.3 * X + 0.4, 0, 1)),
            ("ELU", 0.8, F.elu(X, 0.8)), ("THRESHOLDEDRELU", 0.7, torch.where(X >= 0.7, X, 0.0)), ("SOFTSIGN", None, F.softsign(X)), ("SOFTPLUS", None, F.softplus(X)),
            ("PRELU", a, F.prelu(X[None], t(a))[0]), ("PARAMETRICSOFTPLUS", [a, c], C(a) * torch.log(1 + torch.exp(C(c) * X)))):
        n.b.add_activation(kind, kind, "x", n.out(kind.lower(), ref), params)
    n.save()


@case
def convolutions(rng):
    x = floats(rng, 4, 9, 8)
    n = Network("convolutions", {"x": x}, five=True)
    b, X = n.b, t(x)[None]
    w, g, bias = floats(rng, 6, 4, 3, 2), floats(rng, 8, 2, 3, 3), floats(rng, 8)
    hwio = lambda v: v.transpose(2, 3, 1, 0)
    b.add_convolution("pads", 4, 6, 3, 2, 2, 1, "valid", 1, hwio(w), None, False, input_name="x", output_name=n.out("pads", F.conv2d(F.pad(X, (1, 0, 2, 1)), t(w), stride=(2, 1))[0]),
                      padding_top=2, padding_bottom=1, padding_left=1, padding_right=0)
    b.add_convolution("groups", 2, 8, 3, 3, 1, 1, "same", 2, hwio(g), bias, True, input_name="x",
                      output_name=n.out("groups", F.conv2d(F.pad(X, (2, 2, 2, 2)), t(g), t(bias), dilation=2, groups=2)[0]), dilation_factors=[2, 2])
    b.add_convolution("top", 2, 8, 3, 3, 2, 2, "same", 2, hwio(g), bias, True, input_name="x", same_padding_asymmetry_mode="TOP_LEFT_HEAVY",
                      output_name=n.out("top", F.conv2d(F.pad(X, (1, 0, 1, 1)), t(g), t(bias), stride=2, groups=2)[0]))
    d = floats(rng, 4, 3, 3, 3)  # in, out / groups
    iohw = lambda v: v.transpose(2, 3, 0, 1)
    b.add_convolution("up", 4, 6, 3, 3, 2, 2, "valid", 2, iohw(d), None, False, True, input_name="x", output_name=n.out("up", F.conv_transpose2d(X, t(d), stride=2, groups=2)[0]))
    b.add_convolution("up_same", 4, 6, 3, 3, 2, 2, "same", 2, iohw(d), None, False, True, input_name="x",
                      output_name=n.out("up_same", F.conv_transpose2d(X, t(d), stride=2, groups=2)[0][:, :18, :16]))
    b.add_convolution("up_shape", 4, 6, 3, 3, 2, 2, "valid", 2, iohw(d), None, False, True, (18, 17), input_name="x",
                      output_name=n.out("up_shape", F.conv_transpose2d(X, t(d), stride=2, groups=2)[0][:, :18, :17]))
    for kind, f in (("MAX", F.max_pool2d), ("AVERAGE", F.avg_pool2d)):
        k = kind.lower()
        b.add_pooling(k, 3, 2, 2, 2, kind, "VALID", "x", n.out(k, f(X, (3, 2), 2)[0]))
    b.add_pooling("l2", 3, 2, 2, 2, "L2", "VALID", "x", n.out("l2", (F.avg_pool2d(X * X, (3, 2), 2) * 6).sqrt()[0]))
    b.add_pooling("avg_pad", 3, 3, 2, 2, "AVERAGE", "VALID", "x", n.out("avg_pad", F.avg_pool2d(X, 3, 2, 1)[0]), exclude_pad_area=False,
                  padding_top=1, padding_bottom=1, padding_left=1, padding_right=1)
    b.add_pooling("avg_exclude", 3, 3, 2, 2, "AVERAGE", "VALID", "x", n.out("avg_exclude", F.avg_pool2d(X, 3, 2, 1, count_include_pad=False)[0]), exclude_pad_area=True,
                  padding_top=1, padding_bottom=1, padding_left=1, padding_right=1)
    b.add_pooling("last", 3, 3, 2, 2, "MAX", "INCLUDE_LAST_PIXEL", "x", n.out("last", F.max_pool2d(X, 3, 2, 1, ceil_mode=True)[0]), padding_top=1, padding_bottom=1, padding_left=1, padding_right=1)
    b.add_pooling("last_0", 2, 2, 2, 2, "MAX", "INCLUDE_LAST_PIXEL", "x", n.out("last_0", F.max_pool2d(X, 2, 2, ceil_mode=True)[0]))
    b.add_pooling("global", 3, 3, 1, 1, "MAX", "VALID", "x", n.out("global", X.amax((2, 3))[0]), is_global=True)
    b.add_resize_bilinear("resize", "x", n.out("resize", F.interpolate(X, (5, 11), mode="bilinear", align_corners=True)[0]), 5, 11, "STRICT_ALIGN_ENDPOINTS_MODE")
    b.add_resize_bilinear("resize_up", "x", n.out("resize_up", grid_resize(x, 18, 12, lambda i, X_, N: i * X_ / N)), 18, 12, "UPSAMPLE_MODE")
    b.add_resize_bilinear("resize_roi", "x", n.out("resize_roi", grid_resize(x, 5, 3, lambda i, X_, N: (i + 0.5) * max(1, X_ - 1) / N)), 5, 3, "ROI_ALIGN_MODE")
    b.add_resize_bilinear("resize_one", "x", n.out("resize_one", grid_resize(x, 1, 3, lambda i, X_, N: i * (X_ - 1) / (N - 1) if N > 1 else (X_ - 1) / 2)), 1, 3, "ALIGN_ENDPOINTS_MODE")
    n.save()


def grid_resize(x, h, w, place):
    """Bilinear, where cell i of N lies at `place` among X."""
    def matrix(X, N):
        m = np.zeros((N, X), np.float32)
        for i in range(N):
            at = min(max(place(i, X, N), 0), X - 1)
            lo = int(at)
            m[i, lo] += 1 - (at - lo)
            if lo + 1 < X:
                m[i, lo + 1] += at - lo
        return m
    return np.einsum("hy,cyx,wx->chw", matrix(x.shape[1], h), x, matrix(x.shape[2], w))


@case
def weights(rng):
    """One dense layer with its weights in each form that there is."""
    x = floats(rng, 8)
    n = Network("weights", {"x": x}, five=True)
    w, bias = floats(rng, 4, 8), floats(rng, 4)

    def half(v):
        return np.asarray(v, np.float16).astype(np.float32)

    n.b.add_inner_product("f32", w, bias, 8, 4, True, "x", n.out("f32", w @ x + bias))
    n.b.add_inner_product("f16", w, bias, 8, 4, True, "x", n.out("f16", half(w) @ x + half(bias)))
    p = n.b.nn_spec.layers[-1].innerProduct
    for field, v in ((p.weights, w), (p.bias, bias)):
        del field.floatValue[:]
        field.float16Value = np.asarray(v, np.float16).tobytes()
    for bits in (8, 4, 3, 1):
        q = rng.integers(0, 2 ** bits, 32)
        packed = np.packbits([(int(v) >> i) & 1 for v in q for i in reversed(range(bits))]).tobytes()
        q = q.reshape(4, 8)
        scale, off = np.abs(floats(rng, 4)), floats(rng, 4)
        table = floats(rng, 2 ** bits)
        for kind in ("linear", "one", "lut"):
            ref = scale[:, None] * q + off[:, None] if kind == "linear" else scale[0] * q + off[0] if kind == "one" else table[q]
            name = f"{kind}{bits}"
            n.b.add_inner_product(name, w, None, 8, 4, False, "x", n.out(name, ref.astype(np.float32) @ x))
            p = n.b.nn_spec.layers[-1].innerProduct.weights
            del p.floatValue[:]
            p.rawValue = packed
            p.quantization.numberOfBits = bits
            if kind == "lut":
                p.quantization.lookupTableQuantization.floatValue.extend(float(v) for v in table)
            else:
                p.quantization.linearQuantization.scale.extend(float(v) for v in (scale if kind == "linear" else scale[:1]))
                p.quantization.linearQuantization.bias.extend(float(v) for v in (off if kind == "linear" else off[:1]))
    q = rng.integers(-128, 128, 32).astype(np.int8)
    n.b.add_inner_product("i8", w, None, 8, 4, False, "x", n.out("i8", (0.05 * q.reshape(4, 8).astype(np.float32)) @ x), int_8_dynamic_quantize=False)
    p = n.b.nn_spec.layers[-1].innerProduct
    del p.weights.floatValue[:]
    p.int8DynamicQuantize = True
    p.weights.int8RawValue = q.tobytes()
    p.weights.quantization.numberOfBits = 8
    p.weights.quantization.linearQuantization.scale.append(0.05)
    n.save()


@case
def recurrent(rng):
    """Sequences of 5 vectors, two at once."""
    T, N, I, H = 5, 2, 3, 4
    x, h0, c0 = floats(rng, T, N, I, 1, 1), floats(rng, 1, N, H, 1, 1), floats(rng, 1, N, H, 1, 1)
    n = Network("recurrent", {"x": x, "h0": h0, "c0": c0}, five=True)
    for f, size in zip(n.b.spec.description.input, (I, H, H)):
        del f.type.multiArrayType.shape[:]
        f.type.multiArrayType.shape.append(size)
    X, h, c = t(x).reshape(T, N, I), t(h0).reshape(1, N, H), t(c0).reshape(1, N, H)
    v5 = lambda y: y.reshape(-1, N, y.shape[-1], 1, 1)

    def module(kind, **options):
        m = kind(I, H, **options)
        for p in m.parameters():
            p.data = t(floats(rng, *p.shape) * 0.5)
        return m

    m = module(torch.nn.RNN)
    y, hn = m(X, h)
    n.b.add_simple_rnn("rnn", numpy(m.weight_hh_l0), numpy(m.weight_ih_l0), numpy(m.bias_ih_l0 + m.bias_hh_l0), H, I, "TANH",
                       ["x", "h0"], [n.out("rnn", v5(y)), n.out("rnn_h", v5(hn))], True)
    z = t(np.zeros((1, N, H)))
    y, hn = m(X.flip(0), z)
    n.b.add_simple_rnn("rnn_last", numpy(m.weight_hh_l0), numpy(m.weight_ih_l0), numpy(m.bias_ih_l0 + m.bias_hh_l0), H, I, "TANH",
                       ["x"], [n.out("rnn_last", v5(hn))], False, True)
    # The reset gate acts before the product.
    Wz, Wr, Wo = (floats(rng, H, I) for _ in range(3))
    Rz, Rr, Ro = (floats(rng, H, H) for _ in range(3))
    bz, br, bo = (floats(rng, H) for _ in range(3))
    s, ys = h[0], []
    for i in range(T):
        zt = torch.sigmoid(X[i] @ t(Wz).T + s @ t(Rz).T + t(bz))
        rt = torch.sigmoid(X[i] @ t(Wr).T + s @ t(Rr).T + t(br))
        ot = torch.tanh(X[i] @ t(Wo).T + (s * rt) @ t(Ro).T + t(bo))
        s = (1 - zt) * ot + zt * s
        ys.append(s)
    n.b.add_gru("gru", [Rz, Rr, Ro], [Wz, Wr, Wo], [bz, br, bo], H, I, ["x", "h0"], [n.out("gru", v5(torch.stack(ys))), n.out("gru_h", v5(s))],
                "TANH", "SIGMOID", True)

    def parts(w):  # i f g o of torch as i f o z
        i, f, g, o = np.split(numpy(w), 4)
        return [i, f, o, g]

    m = module(torch.nn.LSTM)
    y, (hn, cn) = m(X, (h, c))
    n.b.add_unilstm("lstm", parts(m.weight_hh_l0), parts(m.weight_ih_l0), parts(m.bias_ih_l0 + m.bias_hh_l0), H, I, ["x", "h0", "c0"],
                    [n.out("lstm", v5(y)), n.out("lstm_h", v5(hn)), n.out("lstm_c", v5(cn))], output_all=True)
    m.bias_ih_l0.data[H:2 * H] += 1
    y, (hn, cn) = m(X, (h, c))
    m.bias_ih_l0.data[H:2 * H] -= 1
    n.b.add_unilstm("forget", parts(m.weight_hh_l0), parts(m.weight_ih_l0), parts(m.bias_ih_l0 + m.bias_hh_l0), H, I, ["x", "h0", "c0"],
                    [n.out("forget", v5(hn))], forget_bias=True)
    m = module(torch.nn.LSTM, bidirectional=True)
    two = lambda a: torch.cat([a, 0.5 * a])
    y, (hn, cn) = m(X, (two(h), two(c)))
    n.b.add_elementwise("h1", ["h0"], "h1", "MULTIPLY", 0.5)
    n.b.add_elementwise("c1", ["c0"], "c1", "MULTIPLY", 0.5)
    n.b.add_bidirlstm("bilstm", parts(m.weight_hh_l0), parts(m.weight_ih_l0), parts(m.bias_ih_l0 + m.bias_hh_l0), parts(m.weight_hh_l0_reverse),
                      parts(m.weight_ih_l0_reverse), parts(m.bias_ih_l0_reverse + m.bias_hh_l0_reverse), H, I, ["x", "h0", "c0", "h1", "c1"],
                      [n.out("bilstm", v5(y)), n.out("bilstm_h", v5(hn[:1])), n.out("bilstm_c", v5(cn[:1])), n.out("bilstm_h1", v5(hn[1:])), n.out("bilstm_c1", v5(cn[1:]))],
                      output_all=True)
    n.save()


@case
def embedding(rng):
    x = np.array([[[[[2.0]]], [[[0.0]]], [[[4.0]]]]], np.float32).reshape(1, 3, 1, 1, 1)
    n = Network("embedding", {"x": x}, five=True)
    f = n.b.spec.description.input[0].type.multiArrayType
    del f.shape[:]
    f.shape.append(1)
    w, bias = floats(rng, 4, 5), floats(rng, 4)
    n.b.add_embedding("e", w, bias, 5, 4, True, "x", n.out("e", (w[:, [2, 0, 4]].T + bias).reshape(1, 3, 4, 1, 1)))
    n.save()


@case
def pipeline(rng):
    """Two networks, one after the other."""
    w, v, x = floats(rng, 5, 4), floats(rng, 3, 5), floats(rng, 4)
    first = NeuralNetworkBuilder([("x", datatypes.Array(4))], [("middle", datatypes.Array(5))])
    first.add_inner_product("a", w, None, 4, 5, False, "x", "middle")
    second = NeuralNetworkBuilder([("middle", datatypes.Array(5))], [("y", datatypes.Array(3))])
    second.add_activation("r", "RELU", "middle", "r")
    second.add_inner_product("b", v, None, 5, 3, False, "r", "y")
    p = ct.models.pipeline.Pipeline([("x", datatypes.Array(4))], [("y", datatypes.Array(3))])
    for b in (first, second):
        p.add_model(b.spec)
    save_network("pipeline", p.spec, {"x": x}, {"y": v @ np.maximum(w @ x, 0)})
