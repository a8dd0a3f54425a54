#!/usr/bin/env python3
"""Writes more of models/run_*.onnx: make_contrib.py (needs onnx, numpy, onnxruntime).

Operators of com.microsoft, as exporters and ONNX Runtime's own optimizer write them.
"""
import math
import zlib

import numpy as np
import onnx

import make
import make_ops
from make import node
from make_ops import case, ints


def ms(name, op, ins, feeds, outs="y", inits=None, by=make_ops.evaluate, **a):
    case(name, [node(op, ins, outs, domain="com.microsoft", **a)], feeds, outs, domains=["com.microsoft"], by=by, **(inits or {}))


def rotary():
    f = make_ops.f
    tables = {"c": f(9, 4), "s": f(9, 4)}
    ms("ms_rotary", "RotaryEmbedding", "x p c s", {"x": f(2, 3, 16), "p": ints([0, 4, 2], [8, 1, 1])}, inits=tables)
    ms("ms_rotary_first", "RotaryEmbedding", "x p c s", {"x": f(2, 2, 3, 8), "p": ints(5)}, inits=tables, interleaved=1)
    ms("ms_rotary_part", "RotaryEmbedding", "x p c s", {"x": f(1, 3, 24), "p": ints([3, 0, 7])}, inits=tables, num_heads=2,
       rotary_embedding_dim=8)


def products():
    f, rng = make_ops.f, make_ops.rng
    byte = lambda *s: rng.integers(0, 256, s).astype(np.uint8)
    w = {"w": byte(8, 5), "s": abs(f(1)), "z": byte(1)}
    columns = {"w": byte(8, 5).view(np.int8), "s": abs(f(5)), "z": byte(5).view(np.int8), "b": f(5)}
    ms("ms_dynamic_matmul", "DynamicQuantizeMatMul", "x w s z", {"x": f(2, 3, 8)}, inits=w)
    ms("ms_dynamic_matmul_columns", "DynamicQuantizeMatMul", "x w s z b", {"x": f(3, 8)}, inits=columns)
    ms("ms_dynamic_matmul_plain", "DynamicQuantizeMatMul", "x w s", {"x": f(3, 8)}, inits={"w": w["w"], "s": w["s"]})
    ms("ms_integer_to_float", "MatMulIntegerToFloat", "x w t s u z b", {"x": byte(3, 8)},
       inits=columns | {"t": abs(f(1)), "u": byte(1)})


def attention():
    f, rng = make_ops.f, make_ops.rng
    heads = dict(num_heads=2)
    mha = lambda name, ins, feeds, outs="y", **a: ms("ms_heads_" + name, "MultiHeadAttention", ins, feeds, outs, num_heads=2, **a)
    qkv = {"q": f(2, 3, 8), "k": f(2, 5, 8), "v": f(2, 5, 8)}
    mha("ends", "q k v _ m", qkv | {"m": np.array([3, 5], np.int32)})
    mha("sums", "q k v _ m", qkv | {"m": np.array([3, 5, 0, 3, 6, 0, 5, 10], np.int32)})

    def unpacked(m, outs, v):  # what ONNX Runtime has no kernel for
        x = v["x"] if "x" in v else v["kv"]
        parts = [x[:, :, :, i].reshape(*x.shape[:2], -1) for i in range(x.shape[3])]
        v = dict(zip("qkv", parts if "x" in v else [v["q"]] + parts))
        m = make.model([node("MultiHeadAttention", "q k v", "y", domain="com.microsoft", **heads)],
                       [make.value(i, make.F, None) for i in "qkv"], [make.value("y", make.F, None)], domains=["com.microsoft"])
        return make_ops.evaluate(m, outs, v)

    mha("packed", "x", {"x": f(2, 3, 2, 3, 4)}, by=unpacked)
    mha("packed_keys", "q kv", {"q": f(2, 3, 8), "kv": f(2, 5, 2, 2, 4)}, by=unpacked)
    mha("causal", "q k v b _ a", qkv | {"k": f(2, 3, 8), "v": f(2, 3, 8), "b": f(24), "a": f(1, 2, 3, 3)}, unidirectional=1)
    past = {"pk": f(2, 2, 4, 4), "pv": f(2, 2, 4, 4)}
    mha("past", "q k v _ _ _ pk pv", {i: f(2, 1, 8) for i in "qkv"} | past, "y nk nv")
    step = {i: f(2, 1, 8) for i in "qkv"}
    room = {k: np.concatenate([v, 0 * v], 2) for k, v in past.items()} | {"n": np.array([4], np.int32)}
    decode = lambda name, ins, feeds, **a: ms("ms_decoder" + name, "DecoderMaskedMultiHeadAttention", ins, step | feeds, "y nk nv", **heads,
                                              **a)
    decode("", "q k v _ _ pk pv", past, by=lambda m, outs, v: make_ops.evaluate(
        make.model([node("MultiHeadAttention", "q k v _ _ _ pk pv", "y nk nv", domain="com.microsoft", **heads)],
                   [make.value(i, make.F, None) for i in v], [make.value(o, make.F, None) for o in outs], domains=["com.microsoft"]), outs, v))
    decode("_room", "q k v _ _ pk pv n", room, past_present_share_buffer=1)
    decode("_bias", "q k v m _ pk pv n _ _ b", room | {"m": np.array([[1, 1, 0, 1, 1], [1, 1, 1, 1, 1]], np.int32), "b": f(24)},
           past_present_share_buffer=1)
    w = {"w": f(6, 24), "b": f(24)}
    ms("ms_attention_ends", "Attention", "x w b m", {"x": f(2, 3, 6), "m": np.array([2, 3, 1, 0], np.int32)}, inits=w, **heads)
    byte = lambda *s: rng.integers(100, 156, s).astype(np.uint8)
    qw = {"w": rng.integers(-128, 128, (6, 24)).astype(np.int8), "b": f(24), "s": np.float32(0.02), "t": np.float32(0.01),
          "z": np.uint8(128)}
    ms("ms_qattention", "QAttention", "x w b s t m z", {"x": byte(2, 3, 6), "m": np.array([2, 3], np.int32)}, inits=qw, **heads)
    ms("ms_qattention_past", "QAttention", "x w b s t _ z _ p", {"x": byte(2, 3, 6), "p": f(2, 2, 2, 2, 4)}, "y q",
       inits=qw | {"t": (0.01 * abs(f(24))).astype(np.float32)}, unidirectional=1, **heads)


def tables():
    f, rng = make_ops.f, make_ops.rng
    at = {"i": np.array([[0, 3], [-1, 2]], np.int64)}
    scales = {"s": abs(f(4, 2)), "z": rng.integers(0, 256, (4, 1)).astype(np.uint8)}
    table = lambda *s: rng.integers(0, 256, s).astype(np.uint8)
    ms("ms_blocks", "GatherBlockQuantized", "t i s z", at, inits=scales | {"t": table(4, 16)}, block_size=16, quantize_axis=1)
    ms("ms_blocks_bytes", "GatherBlockQuantized", "t i s", at, inits={"s": scales["s"], "t": table(4, 20)}, block_size=16, bits=8,
       quantize_axis=1)
    nibbles = onnx.helper.make_tensor("t", onnx.TensorProto.INT4, [4, 32], rng.integers(-8, 8, 128))
    for name, a in (("rows", dict(gather_axis=0, quantize_axis=1)), ("columns", dict(gather_axis=1, quantize_axis=1))):
        m = onnx.helper.make_node("GatherBlockQuantized", ["t", "i", "s"], ["y"], domain="com.microsoft", block_size=16, **a)
        constant = onnx.helper.make_node("Constant", [], ["t"], value=nibbles)
        case("ms_blocks_" + name, [constant, m], {"i": np.array([[0, 3], [2, 1]])}, opset=21, domains=["com.microsoft"], s=scales["s"])
    w = {"w": table(5, 2, 16), "s": abs(f(5, 2))}
    ms("ms_nbits_groups", "MatMulNBits", "x w s _ g", {"x": f(3, 64)}, inits=w | {"g": np.arange(64, dtype=np.int32)[::-1] // 32}, K=64, N=5,
       bits=4, block_size=32)
    q = {"w": table(9, 6), "p": table(4, 6), "g": table(6), "b": table(6)} | {"s" + i: np.float32(0.02) for i in "wpgb"} | {
        "z" + i: np.uint8(120) for i in "wpgb"}
    ms("ms_qembed", "QEmbedLayerNormalization", "i _ w p _ g b m sw sp _ sg sb zw zp _ zg zb",
       {"i": np.array([[1, 8, 3], [0, 2, 2]], np.int32), "m": np.array([[1, 1, 0], [1, 1, 1]], np.int32)}, "y n", inits=q)
    ms("ms_unique", "Unique", "x", {"x": np.array([2, 1, 1, 3, 4, 3], np.float32)}, "y i c")


def elements():
    f = make_ops.f
    by = lambda fn: dict(by=lambda m, outs, feeds: [np.asarray(fn(**feeds), np.float32)])
    sigmoid, axes = (lambda x: 1 / (1 + np.exp(-x))), dict(keepdims=True)
    erf = np.vectorize(math.erf)
    gelu = lambda x: 0.5 * x * (1 + erf(x / np.sqrt(2)))
    softmax = lambda x: np.exp(x) / np.exp(x).sum(-1, **axes)
    ms("ms_transpose_matmul", "TransposeMatMul", "a b", {"a": f(2, 4, 3), "b": f(2, 5, 4)}, transA=1, transB=1, alpha=0.5)
    ms("ms_matmul_batches", "FusedMatMul", "a b", {"a": f(3, 2, 4), "b": f(2, 4, 5)}, transBatchA=1)
    ms("ms_trilu", "Trilu", "x k", {"x": f(2, 3, 4)}, inits={"k": np.array(1)}, upper=0)
    ms("ms_range", "Range", "a b", {"x": f(1)}, inits={"a": np.float32(1), "b": np.float32(4)})
    ms("ms_pad", "Pad", "x p v", {"x": f(2, 3)}, inits={"p": ints([0, 1, 2, 0]), "v": np.float32(0.5)})
    ms("ms_gather_nd", "GatherND", "x i", {"x": f(2, 3, 4), "i": ints([[0, 1], [1, 2]])})
    ms("ms_cdist", "CDist", "a b", {"a": f(3, 4), "b": f(5, 4)}, metric="euclidean")
    ms("ms_cdist_squares", "CDist", "a b", {"a": f(3, 4), "b": f(5, 4)}, metric="sqeuclidean")
    ms("ms_gated_add", "GatedAdd", "x z g", {"x": f(2, 3), "z": f(2, 3), "g": f(2, 1)})
    ms("ms_grid", "GridSample", "x g", {"x": f(1, 2, 3, 4), "g": 0.5 * f(1, 2, 2, 2)})
    # Without a kernel for CPUs in ONNX Runtime: by their formulas.
    ms("ms_bias_split_gelu", "BiasSplitGelu", "x b", {"x": f(2, 3, 8), "b": f(8)},
       **by(lambda x, b: (x + b)[..., :4] * gelu((x + b)[..., 4:])))
    ms("ms_bias_add", "BiasAdd", "x b s", {"x": f(2, 3, 4), "b": f(4), "s": f(2, 3, 4)}, **by(lambda x, b, s: x + b + s))
    ms("ms_bias_softmax", "BiasSoftmax", "x b", {"x": f(2, 3, 4, 5), "b": f(2, 1, 1, 5)}, axis=3, is_inner_broadcast=0,
       **by(lambda x, b: softmax(x + b)))
    ms("ms_gemm_fast_gelu", "GemmFastGelu", "x w b", {"x": f(2, 3), "w": f(3, 4), "b": f(4)},
       **by(lambda x, w, b: (lambda y: 0.5 * y * (1 + np.tanh(np.sqrt(2 / np.pi) * (y + 0.044715 * y ** 3))))(x @ w + b)))

    def norm(x, g, b, silu=True):
        y = x.reshape(2, 12, 2, 3)
        y = (y - y.mean((1, 3), **axes)) / np.sqrt(y.var((1, 3), **axes) + 1e-5)
        y = y.reshape(x.shape) * g + b
        return y * sigmoid(y) if silu else y

    ms("ms_group_norm", "GroupNorm", "x g b", {"x": f(2, 3, 4, 6), "g": f(6), "b": f(6)}, groups=2, activation=1, **by(norm))
    ms("ms_skip_group_norm", "SkipGroupNorm", "x g b s t", {"x": f(2, 3, 4, 6), "g": f(6), "b": f(6), "s": f(2, 6), "t": f(6)}, "y z",
       groups=2, activation=0,
       by=lambda m, outs, v: (lambda z: [norm(z, v["g"], v["b"], False), z])(v["x"] + v["s"][:, None, None] + v["t"]))


def channels_last():
    f, rng = make_ops.f, make_ops.rng
    byte = lambda *s: rng.integers(0, 256, s).astype(np.uint8)
    one = {"s": np.float32(0.02), "z": np.uint8(120), "u": np.float32(0.05), "v": np.uint8(100)}
    w = {"w": rng.integers(-128, 128, (4, 3, 3, 3)).astype(np.int8), "t": abs(f(4)) / 100, "o": np.zeros(4, np.int8),
         "b": rng.integers(-999, 999, 4).astype(np.int32)}
    ms("ms_qlinear_conv", "QLinearConv", "x s z w t o u v b", {"x": byte(1, 5, 6, 3)}, inits=one | w, channels_last=1, pads=[1, 1, 1, 1],
       strides=[2, 1], kernel_shape=[3, 3])
    ms("ms_nhwc_max_pool", "NhwcMaxPool", "x", {"x": byte(1, 6, 6, 3)}, kernel_shape=[2, 2], strides=[2, 2])
    ms("ms_nhwc_average_pool", "QLinearAveragePool", "x s z u v", {"x": byte(1, 6, 6, 3)}, inits=one, kernel_shape=[3, 3], strides=[1, 2],
       pads=[1, 1, 1, 1], channels_last=1)
    ms("ms_nhwc_global_pool", "QLinearGlobalAveragePool", "x s z u v", {"x": byte(1, 6, 6, 3)}, inits=one, channels_last=1)
    ms("ms_qlinear_where", "QLinearWhere", "c x s z d u v t o", {"c": np.array([True, False, True]), "x": byte(2, 3), "d": byte(2, 3)},
       inits=one | {"t": np.float32(0.06), "o": np.uint8(110)})
    ms("ms_qlinear_softmax", "QLinearSoftmax", "x s z u v", {"x": byte(2, 3, 4)},
       inits=one | {"u": np.float32(1 / 256), "v": np.uint8(0)}, axis=1, opset=11)
    ms("ms_qgemm_alpha", "QGemm", "x s z w t o b u v", {"x": byte(2, 3)},
       inits=one | {"w": w["w"][:, :, 0, 0].T.copy(), "t": np.float32(0.01), "o": np.int8(0), "b": w["b"]}, alpha=0.5)
    x, k = f(1, 5, 6, 3), f(4, 3, 3, 3)
    front = lambda x: x.transpose(0, 3, 1, 2)

    def conv(m, outs, v):
        n = [node("Conv", "x k b", "y", pads=[1] * 4)]
        m = make.model(n, [make.value(i, make.F, None) for i in "xkb"], [make.value("y", make.F, None)])
        y = make_ops.evaluate(m, ["y"], {"x": front(v["x"]), "k": v["k"], "b": v["b"]})[0].transpose(0, 2, 3, 1)
        return [np.maximum(y + v["z"], 0) if "z" in v else y]

    ms("ms_nhwc_conv", "NhwcConv", "x k b", {"x": x, "k": k, "b": f(4)}, pads=[1] * 4, by=conv)
    ms("ms_nhwc_fused_conv", "NhwcFusedConv", "x k b z", {"x": x, "k": k, "b": f(4), "z": f(1, 5, 6, 4)}, pads=[1] * 4, activation="Relu",
       by=conv)


def recurrent():
    """Recorded from LSTM of the weights that the bytes stand for, which is what both are made for."""
    f, rng = make_ops.f, make_ops.rng
    D, I, H = 2, 3, 4
    v = {"w": rng.integers(-128, 128, (D, I, 4 * H)).astype(np.int8), "r": rng.integers(-128, 128, (D, H, 4 * H)).astype(np.int8), "b": f(D, 8 * H),
         "s": abs(f(D, 4 * H)) / 100, "t": abs(f(D)) / 100, "z": np.zeros((D, 4 * H), np.int8), "u": np.zeros(D, np.int8)}

    def lstm(m, outs, feeds):
        w = (v["w"] * v["s"][:, None]).transpose(0, 2, 1)
        r = (v["r"] * v["t"][:, None, None]).transpose(0, 2, 1)
        n = [node("LSTM", "x w r b", " ".join(outs), hidden_size=H, direction="bidirectional")]
        m = make.model(n, [make.value("x", make.F, None)], [make.value(o, make.F, None) for o in outs],
                       [make.init("w", w.astype(np.float32)), make.init("r", r.astype(np.float32)), make.init("b", v["b"])])
        return make_ops.evaluate(m, outs, feeds)

    ms("lstm_dynamic", "DynamicQuantizeLSTM", "x w r b _ _ _ _ s z t u", {"x": f(5, 2, I)}, "y h c", inits=v, hidden_size=H,
       direction="bidirectional", by=lstm)


def blocks():
    """Channels in blocks, of which neither weights nor --dim say how wide they are."""
    m = make.model([node("Conv", "x w", "y", domain="com.microsoft.nchwc")], [make.value("x", make.F, [1, 16, 2, 2])],
                   [make.value("y", make.F, None)], [make.init("w", np.zeros((16, 16, 1, 1), np.float32))], domains=["com.microsoft.nchwc"])
    make.save("dim_blocks", m)


if __name__ == "__main__":
    for family in (rotary, products, attention, tables, elements, channels_last, recurrent, blocks):
        make_ops.rng = np.random.default_rng(zlib.crc32(family.__name__.encode()))
        family()
