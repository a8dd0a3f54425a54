#!/usr/bin/env python3
"""Writes the models of language/: make_language.py (needs onnx, numpy, onnxruntime).

Attention with keys that are kept from run to run, and a small language model of two layers, in the form that
exporters of language models write.  Files are as those of sizes/ (make_sizes.py).  What a buffer of keys has
behind its length is 0, which ONNX Runtime writes there.
"""
import os
import zlib

import numpy as np
import make
import onnxruntime as ort
from make import F, I, init, model, value
from onnx import TensorProto as T

HERE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "language")
MS = "com.microsoft"
lines = []
rng = None


def f(*s):
    return rng.standard_normal(s).astype(np.float32)


def node(op, ins, outs, **attrs):
    n = make.node(op, ins, outs, **attrs)
    n.output[:] = ["" if o == "_" else o for o in n.output]
    return n


def i32(*v):
    return np.array(v, np.int32)


def session(m):
    so = ort.SessionOptions()
    so.log_severity_level = 3
    so.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    return ort.InferenceSession(m, so, providers=["CPUExecutionProvider"])


def case(name, options, nodes, ins, outs, feeds, **inits):
    m = model(nodes, ins, [value(o, t, None) for o, t in outs], [init(k, v) for k, v in inits.items()],
              domains=[MS]).SerializeToString()
    with open(os.path.join(HERE, name + ".onnx"), "wb") as out:
        out.write(m)
    s = session(m)
    for k, feed in enumerate(feeds):
        np.savez_compressed(os.path.join(HERE, f"{name}.{k}.in.npz"), **feed)
        np.savez_compressed(os.path.join(HERE, f"{name}.{k}.out.npz"), **dict(zip([o for o, _ in outs], s.run(None, feed))))
    lines.append(f"{name} {len(feeds)} {options}".rstrip())


H, K, D = 4, 2, 16


def kept(n, room, lengths):
    """Keys [n, K, room, D] of these lengths, and zeros."""
    x = f(n, K, room, D)
    for row, length in zip(x, lengths):
        row[:, length:] = 0
    return x


def angles(rows, width):
    at = np.arange(rows)[:, None] * 10.0 ** -np.arange(0, 2, 4 / width)
    return {"cos": np.cos(at).astype(np.float32), "sin": np.sin(at).astype(np.float32)}


def feed(n, s, room, before, packed=False, **more):
    """A run: n rows of s words after `before`; keys in buffers of so many."""
    q = {"q": f(n, s, (H + 2 * K) * D)} if packed else {"q": f(n, s, H * D), "k": f(n, s, K * D), "v": f(n, s, K * D)}
    past = {"pk": kept(n, room, before), "pv": kept(n, room, before)} if room is not None else {}
    return q | past | {"len": i32(*(b + s - 1 for b in before)), "total": i32(max(before) + s)} | more


def group(name, options, feeds, extra="", types=(), packed=False, past=True, shown=False, kept_as=F, inits=None, **attrs):
    """GroupQueryAttention; `extra`: its inputs from cos_cache on."""
    ins = [value("q", F, ["N", "S", (H + 2 * K) * D if packed else H * D])]
    ins += [] if packed else [value(i, F, ["N", "S", K * D]) for i in "kv"]
    ins += [value(i, kept_as, ["N", K, "P", D]) for i in ("pk", "pv")] if past else []
    ins += [value("len", T.INT32, ["N"]), value("total", T.INT32, [1])]
    ins += [value(i, t, s) for i, t, s in types]
    operands = f"q {'_ _' if packed else 'k v'} {'pk pv' if past else '_ _'} len total {extra}"
    for x in feeds:  # a scalar in most models, of one cell in some
        x["total"] = x["total"].reshape(1)
    case(name, options, [node("GroupQueryAttention", operands, "y nk nv" + " qk" * shown, domain=MS, num_heads=H,
                         kv_num_heads=K, **attrs)], ins, [("y", F), ("nk", kept_as), ("nv", kept_as)] + [("qk", F)] * shown, feeds,
         **(inits or {}))


def groups():
    every = "--dim N=1..3 --dim S=1..8 --dim P=1..16"
    group("buffer", every, [feed(2, 1, 6, [2, 4]), feed(1, 3, 6, [2]), feed(3, 4, 16, [0, 0, 0])])
    group("appended", every, [feed(1, 3, 4, [4]), feed(1, 1, 1, [1])])
    group("first", "--dim N=1..3 --dim S=1..8", [feed(2, 4, None, [0, 0]), feed(1, 8, None, [0])], past=False)
    group("turned", every, [feed(2, 1, 6, [2, 4]), feed(1, 3, 6, [2])], "cos sin", inits=angles(32, D), do_rotary=1)
    group("turned_pairs", every, [feed(2, 1, 6, [2, 4]), feed(1, 3, 6, [2])], "cos sin", inits=angles(32, D), do_rotary=1,
          rotary_interleaved=1)
    at = lambda x, *p: x | {"at": np.array(p, np.int64).reshape(x["q"].shape[:2])}
    group("turned_places", every, [at(feed(2, 1, 6, [2, 4]), 2, 9), at(feed(1, 3, 6, [2]), 5, 6, 8)], "cos sin at",
          [("at", I, ["N", "S"])], inits=angles(32, D), do_rotary=1)
    group("window", every, [feed(2, 1, 8, [2, 6]), feed(1, 5, 8, [2]), feed(1, 6, 8, [0])], local_window_size=3, scale=0.4)
    group("capped", every, [feed(2, 1, 8, [2, 6]), feed(1, 5, 8, [2])], softcap=1.5)
    group("packed", every, [feed(2, 1, 6, [2, 4], True), feed(1, 3, 6, [2], True)], "cos sin", packed=True, inits=angles(32, D),
          do_rotary=1)
    group("smooth", every, [feed(2, 1, 6, [2, 4]), feed(1, 3, 6, [2])], smooth_softmax=1)
    group("sink", every, [feed(2, 1, 6, [2, 4]), feed(1, 3, 6, [2])], "_ _ _ _ sink", inits={"sink": f(H)})
    group("noncausal", every, [feed(2, 1, 6, [2, 4]), feed(1, 6, 8, [0])], causal=0)
    group("scores", every, [feed(1, 3, 6, [2])], shown=True, qk_output=1)
    group("weights", every, [feed(1, 3, 6, [2]), feed(2, 1, 6, [5, 5])], shown=True, qk_output=2)
    narrow = lambda x: x | {i: (10 * x[i]).astype(np.int8) for i in ("pk", "pv")}
    scales = lambda how: dict(k_quant_type=how, v_quant_type=how, kv_cache_bit_width=8, kept_as=T.INT8)
    group("narrow", every, [narrow(feed(1, 3, 6, [2])), narrow(feed(2, 1, 6, [3, 5]))], "_ _ _ _ _ ks vs", **scales("PER_TENSOR"),
          inits={"ks": np.array([0.05], np.float32), "vs": np.array([0.04], np.float32)})
    group("narrow_columns", every, [narrow(feed(1, 3, 6, [2]))], "_ _ _ _ _ ks vs", **scales("PER_CHANNEL"),
          inits={i: rng.uniform(0.03, 0.1, (1, K, 1, D)).astype(np.float32) for i in ("ks", "vs")})
    group("biased", "--dim N=1..3", [feed(2, 1, 6, [2, 5], bias=f(2, 1, 1, 6)), feed(1, 1, 6, [5], bias=f(1, 1, 1, 6))],
          "_ _ _ bias", [("bias", F, ["N", 1, 1, 6])])
    group("empty", "--dim N=1..3 --dim S=1..8 --dim P=0..16", [feed(1, 3, 0, [0]), feed(1, 2, 4, [4])], "cos sin", inits=angles(32, D),
          do_rotary=1)


def model_of_words():
    """Two layers with weights of 4 bits, made and called as the builder of ONNX Runtime GenAI makes them: the same
    file for the first words and for each word after them, lengths from the mask."""
    words, width, inner, block, layers = 32, 64, 96, 32, 2
    nodes, inits = [], {}

    def packed(name, rows, columns):
        """x times a matrix of 4-bit cells."""
        blocks = columns // block
        inits[name + ".q"] = rng.integers(0, 256, (rows, blocks, block // 2)).astype(np.uint8)
        inits[name + ".s"] = (0.02 * rng.uniform(0.5, 1, (rows, blocks))).astype(np.float32)
        inits[name + ".z"] = rng.integers(0, 256, (rows, (blocks + 1) // 2)).astype(np.uint8)

    def times(x, name, rows, columns, out):
        packed(name, rows, columns)
        nodes.append(node("MatMulNBits", f"{x} {name}.q {name}.s {name}.z", out, domain=MS, K=columns, N=rows, bits=4, block_size=block))

    packed("words", words, width)
    nodes.append(node("GatherBlockQuantized", "words.q2 input_ids words.s words.z", "x", domain=MS, block_size=block, bits=4,
                      quantize_axis=1, gather_axis=0))
    inits["words.q2"] = inits.pop("words.q").reshape(words, width // 2)
    inits |= angles(64, D) | {"one": np.array([1], np.int64), "at1": np.array(1)}
    nodes += [node("ReduceSum", "attention_mask one", "lengths", keepdims=0), node("Sub", "lengths one", "last"),
              node("Cast", "last", "seqlens_k", to=T.INT32), node("Shape", "attention_mask", "shape"),
              node("Gather", "shape at1", "total64", axis=0), node("Cast", "total64", "total", to=T.INT32)]
    sums = "x"
    for k in range(layers):
        p = f"model.layers.{k}."
        inits |= {p + "norm1": 1 + 0.1 * f(width), p + "norm2": 1 + 0.1 * f(width)}
        if k == 0:
            nodes.append(node("SimplifiedLayerNormalization", f"x {p}norm1", p + "n", axis=-1, epsilon=1e-5, stash_type=1))
        else:
            nodes.append(node("SkipSimplifiedLayerNormalization", f"{sums} {p[:-2]}{k - 1}.out {p}norm1", f"{p}n _ _ {p}sum", domain=MS,
                              epsilon=1e-5))
            sums = p + "sum"
        times(p + "n", p + "qkv", (H + 2 * K) * D, width, p + "qkv_out")
        nodes.append(node("GroupQueryAttention", f"{p}qkv_out _ _ past_key_values.{k}.key past_key_values.{k}.value seqlens_k total cos sin",
                          f"{p}a present.{k}.key present.{k}.value", domain=MS, num_heads=H, kv_num_heads=K, do_rotary=1,
                          local_window_size=-1))
        times(p + "a", p + "o", width, H * D, p + "o_out")
        nodes.append(node("SkipSimplifiedLayerNormalization", f"{sums} {p}o_out {p}norm2", f"{p}m _ _ {p}sum2", domain=MS, epsilon=1e-5))
        sums = p + "sum2"
        times(p + "m", p + "gate", inner, width, p + "g")
        times(p + "m", p + "up", inner, width, p + "u")
        nodes += [node("Sigmoid", p + "g", p + "gs"), node("Mul", f"{p}g {p}gs", p + "act"), node("Mul", f"{p}act {p}u", p + "gu")]
        times(p + "gu", p + "down", width, inner, p + "out")
    inits["norm"] = 1 + 0.1 * f(width)
    nodes.append(node("SkipSimplifiedLayerNormalization", f"{sums} model.layers.{layers - 1}.out norm", "hidden", domain=MS, epsilon=1e-5))
    times("hidden", "head", words, width, "logits")
    cache = ["batch_size", K, "past_sequence_length", D]
    ins = [value("input_ids", I, ["batch_size", "sequence_length"]), value("attention_mask", I, ["batch_size", "total_sequence_length"])]
    ins += [value(f"past_key_values.{k}.{i}", F, cache) for k in range(layers) for i in ("key", "value")]

    def run(n, s, room, before):
        mask = np.zeros((n, max(before) + s), np.int64)
        for row, b in zip(mask, before):
            row[:b + s] = 1
        return {"input_ids": rng.integers(0, words, (n, s)), "attention_mask": mask} | {
            f"past_key_values.{k}.{i}": kept(n, room, before) for k in range(layers) for i in ("key", "value")}

    outs = [("logits", F)] + [(f"present.{k}.{i}", F) for k in range(layers) for i in ("key", "value")]
    bounds = "--dim batch_size=1..2 --dim sequence_length=1..16 --dim total_sequence_length=1..32"
    case("words", bounds + " --dim past_sequence_length=1..32", nodes, ins, outs,
         [run(1, 7, 32, [0]), run(1, 1, 32, [7]), run(2, 1, 32, [7, 3]), run(1, 1, 8, [8])], **inits)


if __name__ == "__main__":
    for family in (groups, model_of_words):
        rng = np.random.default_rng(zlib.crc32(family.__name__.encode()))
        family()
    with open(os.path.join(HERE, "cases.txt"), "w") as out:
        out.write("\n".join(lines) + "\n")
