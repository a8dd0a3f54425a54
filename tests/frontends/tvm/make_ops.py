#!/usr/bin/env python3
"""Writes models/ and broken/: modules as TVM's text, values as TVM saves them, results by numpy.

    make_ops.py        (needs numpy)

TVM with Relay is in no package of today's Python: the files are written here after TVM's own text printer and
serialization, and numpy says in a few lines each what a module computes."""
import base64
import io
import json
import os
import struct
import tarfile

import numpy as np

import ops_more
import programs

HERE = os.path.dirname(os.path.abspath(__file__))
CODES = {"i": 0, "u": 1, "f": 2}
rng = np.random.default_rng(7)


def text_type(a):
    return f"Tensor[({', '.join(map(str, a.shape))}{',' if a.ndim == 1 else ''}), {a.dtype}]".replace(",)", ")")


def array(a):
    out = struct.pack("<QQiiiBBH", 0xDD5E40F096B4A13F, 0, 1, 0, a.ndim, CODES[a.dtype.kind], a.dtype.itemsize * 8, 1)
    return out + struct.pack(f"<{a.ndim}q", *a.shape) + struct.pack("<q", a.nbytes) + a.tobytes()


def params(values):
    out = struct.pack("<QQQ", 0xF7E58D4F05049CB7, 0, len(values))
    out += b"".join(struct.pack("<Q", len(n)) + n.encode() for n in values)
    return out + struct.pack("<Q", len(values)) + b"".join(map(array, values.values()))


def metadata(constants):
    nodes = [{"type_key": ""}, {"type_key": "Map", "keys": ["relay.Constant"], "data": [2]},
             {"type_key": "Array", "data": list(range(3, 3 + len(constants)))}]
    nodes += [{"type_key": "relay.Constant", "attrs": {"_checked_type_": "0", "data": str(i), "span": "0"}}
              for i in range(len(constants))]
    arrays = [base64.b64encode(array(a)).decode() for a in constants]
    return "\n#[metadata]\n" + json.dumps({"root": 1, "nodes": nodes, "b64ndarrays": arrays,
                                           "attrs": {"tvm_version": "0.14.0"}}, indent=1) + "\n"


def module(inputs, body, more=""):
    heads = ", ".join(f"%{n}: {text_type(a)} /* ty={text_type(a)} */" for n, a in inputs.items())
    return f'#[version = "0.0.5"]\ndef @main({heads}) {{\n{body}}}\n{more}'


def write(name, text, feeds, results, values=None, folder="models"):
    at = os.path.join(HERE, folder, name)
    with open(at + ".relay", "w") as f:
        f.write(text)
    if values:
        with open(at + ".params", "wb") as f:
            f.write(params(values))
    if results is not None:
        np.savez(at + ".in.npz", **feeds)
        np.savez(at + ".out.npz", **{f"output{i}": r for i, r in enumerate(results)})


def f32(*shape):
    return rng.standard_normal(shape).astype("f4")


def conv(x, w, stride=1, pad=0, groups=1, exact=False):
    """x in NCHW, w in OIHW."""
    x = np.pad(x, ((0, 0), (0, 0), (pad, pad), (pad, pad)))
    n, c, h, wide = x.shape
    o, i, kh, kw = w.shape
    out = np.zeros((n, o, (h - kh) // stride + 1, (wide - kw) // stride + 1), "f8")
    for k in range(o):
        first = k // (o // groups) * i
        for y in range(out.shape[2]):
            for z in range(out.shape[3]):
                part = x[:, first:first + i, y * stride:y * stride + kh, z * stride:z * stride + kw]
                out[:, k, y, z] = (part * w[k]).sum((1, 2, 3))
    return out if exact else out.astype("f4")


def windows(x, k, stride, fn):
    h, w = (x.shape[2] - k) // stride + 1, (x.shape[3] - k) // stride + 1
    return np.stack([np.stack([fn(x[:, :, y * stride:y * stride + k, z * stride:z * stride + k], (2, 3))
                               for z in range(w)], -1) for y in range(h)], -2)


def network():
    """Convolutions in NCHW with values in a file, batch normalization, pooling, a dense layer."""
    x = f32(1, 3, 8, 8)
    v = {"w1": f32(4, 3, 3, 3), "gamma": f32(4), "beta": f32(4), "mean": f32(4), "var": abs(f32(4)) + 1,
         "w2": f32(4, 1, 3, 3), "b2": f32(4), "w3": f32(5, 36), "b3": f32(5)}
    body = """  %0 = nn.conv2d(%x, %w1, padding=[1, 1, 1, 1], channels=4, kernel_size=[3, 3]) /* ty=.. */;
  %1 = nn.batch_norm(%0, %gamma, %beta, %mean, %var, epsilon=0.001f);
  %2 = %1.0 /* ty=.. */;
  %3 = nn.relu(%2);
  %4 = nn.conv2d(%3, %w2, strides=[2, 2], padding=[1, 1, 1, 1], groups=4, channels=4, kernel_size=[3, 3]);
  %5 = nn.bias_add(%4, %b2);
  %6 = nn.max_pool2d(%5, pool_size=[2, 2], strides=[1, 1], padding=[0, 0, 0, 0]);
  %7 = nn.batch_flatten(%6);
  %8 = nn.dense(%7, %w3, units=5);
  %9 = add(%8, %b3);
  nn.softmax(%9)
"""
    def c(a):
        return a[:, None, None]
    y = conv(x, v["w1"], pad=1)
    y = np.maximum((y - c(v["mean"])) / np.sqrt(c(v["var"]) + 0.001) * c(v["gamma"]) + c(v["beta"]), 0)
    y = conv(y, v["w2"], 2, 1, 4) + c(v["b2"])
    y = windows(y, 2, 1, np.max).reshape(1, -1) @ v["w3"].T + v["b3"]
    y = np.exp(y - y.max(-1, keepdims=True))
    write("network", module({"x": x, **v}, body), {"x": x}, [(y / y.sum(-1, keepdims=True)).astype("f4")], v)
    return module({"x": x, **v}, body), v, x


def images():
    """Channels last, weights in HWIO and HWOI, as constants of the metadata."""
    x, w, d = f32(1, 6, 6, 3), f32(3, 3, 3, 4), f32(3, 3, 4, 1)
    body = """  %0 = nn.conv2d(%x, meta[relay.Constant][0] /* ty=.. */, padding=[1, 1, 1, 1], channels=4, kernel_size=[3, 3], data_layout="NHWC", kernel_layout="HWIO");
  %1 = nn.conv2d(%0, meta[relay.Constant][1], padding=[1, 1, 1, 1], groups=4, channels=4, kernel_size=[3, 3], data_layout="NHWC", kernel_layout="HWOI");
  %2 = nn.avg_pool2d(%1, pool_size=[2, 2], strides=[2, 2], padding=[0, 0, 0, 0], layout="NHWC");
  %3 = nn.global_avg_pool2d(%2, layout="NHWC");
  %4 = nn.pad(%x, 2f, pad_width=[[0, 0], [1, 0], [0, 2], [0, 0]]);
  (%2, %3, %4)
"""
    y = conv(conv(x.transpose(0, 3, 1, 2), w.transpose(3, 2, 0, 1), pad=1), d.transpose(2, 3, 0, 1), pad=1, groups=4)
    y = windows(y, 2, 2, np.mean).transpose(0, 2, 3, 1)
    pad = np.pad(x, ((0, 0), (1, 0), (0, 2), (0, 0)), constant_values=2)
    write("images", module({"x": x}, body, metadata([w, d])), {"x": x}, [y, y.mean((1, 2), keepdims=True), pad])


def functions():
    """Functions of the module, local ones, let, if, tuples within tuples."""
    x, c = f32(2, 3), np.array(True)
    body = """  let %f = fn (%a: Tensor[(2, 3), float32], Primitive=1, hash="12ab") -> Tensor[(2, 3), float32] {
    %0 = multiply(%a, 2f);
    subtract(%0, -1.5e-01f)
  };
  let %y: Tensor[(2, 3), float32] = %f(%x);
  %1 = (%y, (%x, %c));
  %2 = %1.1;
  %3 = %2.0;
  %4 = if (%c) {
    %5 = @g(%3);
    %5
  } else {
    abs(%3)
  };
  (%f(%4), (%1.0, 7i64))
"""
    more = "\ndef @g(%a: Tensor[(2, 3), float32]) -> Tensor[(2, 3), float32] {\n  negative(%a)\n}\n"
    def fn(a):
        return a * np.float32(2) + np.float32(0.15)
    text = module({"x": x, "c": np.zeros((), "f4")}, body, more).replace("%c: Tensor[(), float32] /* ty=Tensor[(), float32] */",
                                                                      "%c: bool")
    write("functions", text, {"x": x, "c": c}, [fn(-x), fn(x), np.array(7, "i8")])


def shapes():
    """Shapes and parts: what TVM's numbers in newshape mean, slices by ends and by sizes."""
    x, at = f32(2, 3, 4), np.array([2, 0], "i4")
    body = """  %0 = reshape(%x, newshape=[0, -1]);
  %1 = reshape(%x, newshape=[-3, -2]);
  %2 = reshape(%x, newshape=[2, -4, 3, 1, -1]);
  %3 = strided_slice(%x, begin=[0, 2], end=[2, 0], strides=[1, -1], axes=[0, 1]);
  %4 = strided_slice(%x, begin=[1, 0, 1], end=[-1, 2, 2], strides=[1], slice_mode="size", axes=None);
  %5 = take(%x, %at, axis=1);
  %6 = take(%x, %at, axis=None, mode="wrap");
  %7 = transpose(%x, axes=[2, 0, 1]);
  %8 = split(%x, indices_or_sections=[1], axis=2);
  %9 = (%8.1, %x);
  %10 = concatenate(%9, axis=-1);
  %11 = squeeze(expand_dims(%x, axis=0, num_newaxis=2), axis=[0]);
  %12 = cast(%x, dtype="int32");
  %13 = argmax(%x, axis=[1]);
  %14 = mean(%x, axis=[0, 2], keepdims=True);
  %15 = tile(%at, reps=[2]);
  (%0, %1, %2, %3, %4, %5, %6, %7, %10, %11, %12, %13, %14, %15)
"""
    out = [x.reshape(2, 12), x.reshape(6, 4), x.reshape(2, 3, 1, 4), x[:, 2:0:-1], x[1:, :2, 1:3], x[:, at],
           x.reshape(-1)[at], x.transpose(2, 0, 1), np.concatenate([x[:, :, 1:], x], -1), x[None],
           x.astype("i4"), x.argmax(1).astype("i4"), x.mean((0, 2), keepdims=True), np.tile(at, 2)]
    write("shapes", module({"x": x, "at": at}, body), {"x": x, "at": at}, out)


def fixed(x, by, nearest=False):
    """x * by in fixed point: 31 bits of by, halves up or away from zero; by: numbers that broadcast."""
    m, e = np.frexp(np.asarray(by, "f8"))
    m = np.round(m * 2**31).astype("i8")
    m, e = np.where(m == 2**31, m // 2, m), np.where(m == 2**31, e + 1, e).astype("i8")
    y = (x.astype("i8") << np.maximum(e, 0)) * m
    right = 31 - np.minimum(e, 0)
    half = np.int64(1) << (right - 1)
    return (y + np.where((y < 0) & nearest, half - 1, half)) >> right


def requantize(x, scale, zero, to, to_zero, kind, nearest=False):
    if np.ndim(scale) or scale != to:
        y = fixed(x.astype("i8") - zero, np.asarray(scale, "f4").astype("f8") / np.float64(np.float32(to)), nearest)
    else:
        y = x.astype("i8") - zero
    y = y + to_zero
    return y if kind == "i4" else np.clip(y, np.iinfo(kind).min, np.iinfo(kind).max).astype(kind)


def quantize(x, scale, zero, kind):
    y = x / np.float32(scale)
    y = np.trunc(y) + np.trunc(2 * (y - np.trunc(y))) + zero
    return np.clip(y, np.iinfo(kind).min, np.iinfo(kind).max).astype(kind)


def quantized():
    """qnn: a network in bytes as TVM's importers of quantized models write it, then operators of cells."""
    x = (rng.integers(-20, 20, (1, 3, 6, 6)) / 4).astype("f4")
    w, d, f = (rng.integers(-128, 128, s).astype("i1") for s in ((4, 3, 3, 3), (3, 3, 4, 1), (5, 36)))
    bias, per = rng.integers(-500, 500, 4).astype("i4"), np.array([0.01, 0.002, 0.03, 0.005], "f4")
    f_per = np.array([0.004, 0.006, 0.005, 0.001, 0.002], "f4")
    # Requantized sums beyond a byte, ties, and a quotient above 1.
    t = np.array([-7, -6, -5, -3, -2, -1, 0, 1, 2, 3, 5, 6, 7, 300, -300, 2**31 - 1, -2**31], "i4")
    body = """  %0 = qnn.quantize(%x, 0.25f, 3, out_dtype="uint8");
  %1 = qnn.conv2d(%0, meta[relay.Constant][0], 3, 0, 0.25f, meta[relay.Constant][3], padding=[1, 1, 1, 1], channels=4, kernel_size=[3, 3], out_dtype="int32");
  %2 = nn.bias_add(%1, meta[relay.Constant][2]);
  %3 = qnn.requantize(%2, meta[relay.Constant][3], 0, 0.5f, 7, axis=1, out_dtype="uint8");
  %4 = clip(%3, a_min=7f, a_max=200f);
  %5 = layout_transform(%4, src_layout="NCHW", dst_layout="NHWC");
  %6 = qnn.conv2d(%5, meta[relay.Constant][1], 7, 5, 0.5f, 0.02f, strides=[2, 2], padding=[1, 1, 1, 1], groups=4, channels=4, kernel_size=[3, 3], data_layout="NHWC", kernel_layout="HWOI", out_dtype="int32");
  %7 = qnn.requantize(%6, 0.01f, 0, 0.125f, -4, rounding="TONEAREST", out_dtype="int8");
  %8 = nn.batch_flatten(%7);
  %9 = qnn.dense(%8, meta[relay.Constant][4], -4, 0, 0.125f, meta[relay.Constant][5], units=5, out_dtype="int32");
  %10 = qnn.requantize(%9, meta[relay.Constant][5], 0, 0.75f, 0, axis=1, out_dtype="int8");
  %11 = qnn.dequantize(%10, 0.75f, 0);
  %12 = qnn.requantize(%t, 0.5f, 0, 1f, 0, out_dtype="int8");
  %13 = qnn.requantize(%t, 0.5f, 0, 1f, 0, rounding="TONEAREST", out_dtype="int32");
  %14 = qnn.requantize(clip(%t, a_min=-1000f, a_max=1000f), 5f, 1, 1f, 2, out_dtype="uint8");
  %15 = qnn.requantize(%t, 0.5f, 0, 1f, 0, compute_dtype="float32", out_dtype="int8");
  (%4, %7, %10, %11, %12, %13, %14, %15)
"""
    def iconv(a, k, **how):
        return np.round(conv(a.astype("f8"), k.astype("f8"), **how, exact=True)).astype("i8")
    q0 = quantize(x, 0.25, 3, "u1")
    s1 = iconv(q0.astype("i8") - 3, w, pad=1) + bias[:, None, None]
    q3 = np.clip(requantize(s1, per[:, None, None], 0, 0.5, 7, "u1"), 7, 200)
    s6 = iconv(q3.astype("i8") - 7, d.transpose(2, 3, 0, 1).astype("i8") - 5, stride=2, pad=1, groups=4)
    q7 = requantize(s6.transpose(0, 2, 3, 1), 0.01, 0, 0.125, -4, "i1", True)
    s9 = (q7.reshape(1, -1).astype("i8") + 4) @ f.T.astype("i8")
    q10 = requantize(s9, f_per, 0, 0.75, 0, "i1")
    h = np.clip(np.floor(t.astype("f4") * np.float32(0.5) + np.float32(0.5)), -128, 127).astype("i1")
    write("quantized", module({"x": x, "t": t}, body, metadata([w, d, bias, per, f, f_per])), {"x": x, "t": t},
          [q3, q7, q10, q10.astype("f4") * np.float32(0.75), requantize(t, 0.5, 0, 1, 0, "i1"),
           requantize(t, 0.5, 0, 1, 0, "i4", True).astype("i4"), requantize(t.clip(-1000, 1000), 5, 1, 1, 2, "u1"), h])


def quantized_cells():
    """qnn: sums and products, what is computed in floats, products of matrices."""
    x, y = (rng.integers(0, 256, (2, 4, 3)).astype("u1") for _ in range(2))
    s = rng.integers(-128, 128, (2, 4, 3)).astype("i1")
    body = """  %0 = qnn.add(%x, %y, 0.5f, 10, 0.3f, 20, 0.6f, 5);
  %1 = qnn.subtract(%x, %y, 0.5f, 10, 0.3f, 20, 0.5f, 10);
  %2 = qnn.mul(%x, %y, 0.5f, 10, 0.3f, 20, 20f, 5);
  %3 = qnn.add(%x, meta[relay.Constant][0], 0.5f, 10, 0.5f, 10, 0.5f, 10);
  %4 = (%x, %y);
  %5 = (0.5f, 0.3f);
  %6 = (10, 20);
  %7 = qnn.concatenate(%4, %5, %6, 0.5f, 10, axis=1);
  %8 = qnn.sigmoid(%s, 0.05f, 3, 0.00390625f, -128);
  %9 = qnn.tanh(%s, 0.02f, -3, 0.0078125f, 0);
  %10 = qnn.leaky_relu(%s, 0.5f, 4, 0.25f, -3, alpha=0.1f);
  %11 = qnn.batch_matmul(%x, %s, 10, -2, 0.5f, 0.1f, out_dtype="int32");
  %12 = qnn.softmax(%s, 0.05f, 3, 0.0078125f, -100, axis=-1);
  %13 = qnn.avg_pool2d(expand_dims(%s, axis=0), 0.5f, 0, 0.5f, 0, pool_size=[2, 2], strides=[1, 1], padding=[0, 0, 0, 0]);
  %14 = fixed_point_multiply(cast(%s, dtype="int32"), multiplier=1288490189, shift=3);
  (%0, %1, %2, %3, %7, %8, %9, %10, %11, %12, %13, %14)
"""
    k = rng.integers(0, 256, 3).astype("u1")
    def byte(v, kind="u1"):
        return np.clip(v, np.iinfo(kind).min, np.iinfo(kind).max).astype(kind)
    def to(a, scale, zero, out, out_zero):
        return requantize(a, scale, zero, out, out_zero, "i4")
    xi, yi, si = (a.astype("i8") for a in (x, y, s))
    out = [byte(to(x, .5, 10, .6, 5) + to(y, .3, 20, .6, 5) - 5),
           byte(xi - to(y, .3, 20, .5, 10) + 10),
           requantize((xi - 10) * (yi - 20), np.float32(.5) * np.float32(.3), 0, 20, 5, "u1"),
           byte(xi + k - 10),
           np.concatenate([x, byte(to(y, .3, 20, .5, 10))], 1),
           quantize((1 / (1 + np.exp(-(si - 3) * np.float32(.05)))).astype("f4"), 1 / 256, -128, "i1"),
           quantize(np.tanh((si + 3) * np.float32(.02)).astype("f4"), 1 / 128, 0, "i1")]
    r = to(s, .5, 4, .25, -3)
    out.append(byte(np.where(si < 4, fixed(r, .1) + fixed(np.array(-3), .9), r), "i1"))
    out.append(((xi - 10) @ (si + 2).transpose(0, 2, 1)).astype("i4"))
    # Powers of two by shifts, as TVM's qnn.softmax has them.
    z = si - 3
    z = z - z.max(-1, keepdims=True)
    p = z + (z >> 1) - (z >> 4)
    q = np.clip(-p // 20, 0, 20)
    e = ((p + q * 20 >> 1) + 20) << (q.max(-1, keepdims=True) - q)
    e = (2**30 // e.sum(-1, keepdims=True)) * e >> 23
    out.append(requantize(e, 1 / 128, 0, 1 / 128, -100, "i1"))
    four = si[None]
    sums = four[:, :, :-1, :-1] + four[:, :, 1:, :-1] + four[:, :, :-1, 1:] + four[:, :, 1:, 1:]
    out.append(np.trunc(sums / 4).astype("i1"))
    out.append(fixed(s, 1288490189 / 2**31 * 8).astype("i4"))
    write("quantized_cells", module({"x": x, "y": y, "s": s}, body, metadata([k])), {"x": x, "y": y, "s": s}, out)


def transposed():
    """Transposed convolutions, dilated cells, images of other sizes, windows that fit a size."""
    x, w, line, lw = f32(1, 4, 3, 3), f32(4, 2, 3, 3), f32(1, 2, 5), f32(2, 3, 4)
    body = """  %0 = nn.conv2d_transpose(%x, meta[relay.Constant][0], channels=2, kernel_size=[3, 3], strides=[2, 2], padding=[1, 1, 1, 1], output_padding=[1, 1]);
  %1 = nn.conv1d_transpose(%line, meta[relay.Constant][1], channels=3, kernel_size=[4], strides=[2], padding=[1, 1]);
  %2 = nn.dilate(%x, strides=[1, 1, 2, 3], dilation_value=7f);
  %3 = nn.upsampling(%x, scale_h=2f, scale_w=3f);
  %4 = nn.adaptive_avg_pool2d(%x, output_size=[2, 2]);
  %5 = nn.adaptive_max_pool2d(%x, output_size=[1, 1]);
  %6 = image.resize1d(%line, size=[10], method="linear", coordinate_transformation_mode="asymmetric", rounding_method="");
  %7 = nn.instance_norm(%x, %g, %b, epsilon=0.001f);
  %8 = nn.group_norm(%x, %g, %b, num_groups=2, axis=1, epsilon=0.001f);
  %9 = nn.l2_normalize(%x, eps=1e-10f, axis=[1]);
  %10 = nn.space_to_batch_nd(%x, block_shape=[2, 3], paddings=[[0, 0], [1, 2]]);
  %11 = nn.batch_to_space_nd(%10, block_shape=[2, 3], crops=[[0, 0], [1, 2]]);
  %12 = image.affine_grid(%m, target_shape=[3, 3]);
  %13 = image.grid_sample(%x, %12, method="bilinear", layout="NCHW", padding_mode="zeros", align_corners=True);
  (%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %13)
"""
    def scattered(a, k, stride, before, after):
        out = np.zeros((a.shape[0], k.shape[1], *((n - 1) * s + z for n, s, z in zip(a.shape[2:], stride, k.shape[2:]))), "f8")
        for at in np.ndindex(*a.shape[2:]):
            where = tuple(slice(i * s, i * s + z) for i, s, z in zip(at, stride, k.shape[2:]))
            out[(..., *where)] += np.tensordot(a[(..., *at)], k, (1, 0))
        out = np.pad(out, [(0, 0)] * 2 + [(0, max(e, 0)) for e in after])
        return out[(..., *(slice(b, n + min(e, 0)) for b, e, n in zip(before, after, out.shape[2:])))].astype("f4")
    g, b = f32(4), f32(4)
    apart = np.full((1, 4, 5, 7), 7, "f4")
    apart[:, :, ::2, ::3] = x
    half = np.stack([x[:, :, :2, :2].mean((2, 3)), x[:, :, :2, 1:].mean((2, 3)), x[:, :, 1:, :2].mean((2, 3)),
                     x[:, :, 1:, 1:].mean((2, 3))], -1).reshape(1, 4, 2, 2)
    at = np.minimum(np.arange(10) / 2, 4)
    low = np.floor(at).astype(int)
    high = np.minimum(low + 1, 4)
    lines = (line[..., low] * (1 - (at - low)) + line[..., high] * (at - low)).astype("f4")
    def norm(a, axes):
        return (a - a.mean(axes, keepdims=True)) / np.sqrt(a.var(axes, keepdims=True) + 0.001)
    def c(a):
        return a[:, None, None]
    m = np.array([[[0.5, 0, 0.5], [0, 1, 0]]], "f4")
    # Half as wide, from the middle on: every other place lies between two cells.
    sampled = np.stack([x[..., 1], (x[..., 1] + x[..., 2]) / 2, x[..., 2]], -1)
    # Blocks are of the dimensions behind the batch: channels and rows.
    p = np.pad(x, ((0, 0), (0, 0), (1, 2), (0, 0)))
    batches = p.reshape(1, 2, 2, 2, 3, 3).transpose(2, 4, 0, 1, 3, 5).reshape(6, 2, 2, 3)
    out = [scattered(x, w, (2, 2), (1, 1), (0, 0)), scattered(line, lw, (2,), (1,), (-1,)), apart,
           x.repeat(2, 2).repeat(3, 3), half, x.max((2, 3), keepdims=True), lines,
           norm(x, (2, 3)) * c(g) + c(b), norm(x.reshape(1, 2, 2, 3, 3), (2, 3, 4)).reshape(x.shape) * c(g) + c(b),
           x / np.sqrt((x * x).sum(1, keepdims=True)), batches, x, sampled]
    feeds = {"x": x, "line": line, "g": g, "b": b, "m": m}
    write("transposed", module(feeds, body, metadata([w, lw])), feeds, [a.astype("f4") for a in out])


def more_shapes():
    """Operators that take their shape from elsewhere, sums along an axis, sequences."""
    x, n, p = f32(2, 3, 4), np.array([1, 2], "i4"), np.array([2, 0, 1], "i4")
    r = np.array([-2.5, -1.5, -0.5, 0.5, 1.5, 2.5, 0.49999997], "f4")
    like = f32(1, 2, 12)
    body = """  %0 = round(%r);
  %1 = reshape_like(%x, %like, lhs_begin=1, rhs_begin=2);
  %2 = slice_like(%like, meta[relay.Constant][0], axes=[2]);
  %3 = shape_of(%x, dtype="int64");
  %4 = arange(0f, 5f, 1.5f, start=meta[relay.Constant][0], stop=meta[relay.Constant][0], step=meta[relay.Constant][0], dtype="float32");
  %5 = (%n, %p);
  %6 = meshgrid(%5, indexing="ij");
  %7 = invert_permutation(%p);
  %8 = cumsum(%x, axis=2, exclusive=True);
  %9 = cumprod(%x);
  %10 = reverse_sequence(%x, %n, seq_axis=2, batch_axis=0);
  %11 = sequence_mask(%x, %n, mask_value=-1f, axis=1);
  %12 = sliding_window(%x, axis=1, window_shape=[2, 3], strides=[1, 1]);
  %13 = full_like(%x, 2f);
  %14 = (%x, %x);
  %15 = einsum(%14, equation="ijk,ilk->ijl");
  %16 = trunc_divide(%r, 2f);
  %17 = unravel_index(%p, meta[relay.Constant][1]);
  %18 = annotation.stop_fusion(%7);
  %19 = layout_transform(%like, src_layout="NCW", dst_layout="NCW4w");
  %20 = layout_transform(%19, src_layout="NCW4w", dst_layout="WN2cC");
  (%0, %1, %2, %3, %4, %6, %18, %8, %9, %10, %11, %12, %13, %15, %16, %17, %19, %20)
"""
    back = x.copy()
    for i in range(2):
        back[i, :, :n[i]] = x[i, :, :n[i]][:, ::-1]
    mask = np.where((np.arange(3)[:, None] < n[:, None, None]), x, np.float32(-1))
    view = np.lib.stride_tricks.sliding_window_view(x, (2, 3), (1, 2))
    out = [np.array([-3, -2, -1, 1, 2, 3, 0], "f4"), x.reshape(2, 12), like[:, :, :5], np.array([2, 3, 4], "i8"),
           np.arange(0, 5, 1.5, dtype="f4"), *np.meshgrid(n, p, indexing="ij"), np.argsort(p).astype("i4"),
           np.cumsum(np.pad(x, ((0, 0), (0, 0), (1, 0))), 2)[..., :-1], np.cumprod(x.reshape(-1)), back, mask, view,
           np.full_like(x, 2), np.einsum("ijk,ilk->ijl", x, x), np.trunc(r / 2), np.stack(np.unravel_index(p, (2, 3))).astype("i4"),
           like.reshape(1, 2, 3, 4), like.reshape(1, 1, 2, 12).transpose(3, 0, 2, 1)]
    feeds = {"x": x, "n": n, "p": p, "r": r, "like": like}
    write("more_shapes", module(feeds, body, metadata([f32(1, 1, 5), np.array([2, 3], "i4")])), feeds, out)


class Saved:
    """The nodes of a module as tvm.ir.save_json writes them."""
    def __init__(self):
        self.nodes, self.arrays = [{"type_key": ""}], []

    def node(self, kind, attrs=None, **more):
        self.nodes.append({"type_key": kind, **({"attrs": {k: str(v) for k, v in attrs.items()}} if attrs else {}), **more})
        return len(self.nodes) - 1

    def text(self, v):
        return self.node("runtime.String", repr_str=v)

    def number(self, v, kind="int32"):
        return self.node("IntImm", {"dtype": kind, "span": 0, "value": v})

    def array(self, at):
        return self.node("Array", data=list(at))

    def numbers(self, *v):
        return self.array([self.number(i) for i in v])

    def type(self, shape, dtype="float32"):
        return self.node("relay.TensorType", {"dtype": dtype, "shape": self.numbers(*shape), "span": 0})

    def var(self, name, type):
        return self.node("relay.Var", {"_checked_type_": type, "span": 0, "type_annotation": type, "virtual_device_": 0,
                                       "vid": self.node("relay.Id", {"name_hint": self.text(name)})})

    def constant(self, a):
        self.arrays.append(base64.b64encode(array(a)).decode())
        return self.node("relay.Constant", {"_checked_type_": 0, "data": len(self.arrays) - 1, "span": 0})

    def call(self, op, args, kind=None, **attrs):
        op = self.node("Op", repr_str=op) if isinstance(op, str) else op
        return self.node("relay.Call", {"_checked_type_": 0, "args": self.array(args),
                                        "attrs": self.node("relay.attrs." + kind, attrs) if kind else 0, "op": op, "span": 0,
                                        "type_args": 0})

    def tuple(self, fields):
        return self.node("relay.Tuple", {"_checked_type_": 0, "fields": self.array(fields), "span": 0})

    def part(self, x, i):
        return self.node("relay.TupleGetItem", {"_checked_type_": 0, "index": i, "span": 0, "tuple_value": x})

    def function(self, params, body, ret=0, attrs=0):
        return self.node("relay.Function", {"_checked_type_": 0, "attrs": attrs, "body": body, "params": self.array(params),
                                            "ret_type": ret, "span": 0, "type_params": self.array([])})

    def module(self, functions, types=()):
        names = {n: self.node("GlobalVar", {"_checked_type_": 0, "name_hint": self.text(n), "span": 0}) for n in functions}
        data = [i for n, f in functions.items() for i in (names[n], f)]
        return self.node("IRModule", {"attrs": 0, "functions": self.node("Map", data=data),
                                      "type_definitions": self.node("Map", data=list(types))})

    def write(self, root, name, folder="models"):
        with open(os.path.join(HERE, folder, name + ".json"), "w") as f:
            json.dump({"root": root, "nodes": self.nodes, "b64ndarrays": self.arrays, "attrs": {"tvm_version": "0.14.0"}}, f,
                      indent=0)


def saved(v, x):
    """The network as nodes, its values as constants; then let, branches, functions and attributes that are numbers of nodes."""
    s = Saved()
    k = {n: s.constant(a) for n, a in v.items()}
    data = s.var("x", s.type(x.shape))
    def conv_attrs(stride, groups):
        return {"auto_scheduler_rewritten_layout": s.text(""), "channels": s.number(4), "data_layout": s.text("NCHW"),
                "dilation": s.numbers(1, 1), "groups": groups, "kernel_layout": "OIHW", "kernel_size": s.numbers(3, 3),
                "meta_schedule_original_shape": 0, "out_dtype": "", "out_layout": "", "padding": s.numbers(1, 1, 1, 1),
                "strides": s.numbers(stride, stride)}
    y = s.call("nn.conv2d", [data, k["w1"]], "Conv2DAttrs", **conv_attrs(1, 1))
    y = s.call("nn.batch_norm", [y] + [k[n] for n in ("gamma", "beta", "mean", "var")], "BatchNormAttrs", axis=1, center=1,
               epsilon=0.001, scale=1)
    y = s.call("nn.relu", [s.part(y, 0)])
    y = s.call("nn.conv2d", [y, k["w2"]], "Conv2DAttrs", **conv_attrs(2, 4))
    y = s.call("nn.bias_add", [y, k["b2"]], "BiasAddAttrs", axis=1)
    y = s.call("nn.max_pool2d", [y], "MaxPool2DAttrs", ceil_mode=0, dilation=s.numbers(1, 1), layout=s.text("NCHW"),
               out_layout="", padding=s.numbers(0, 0, 0, 0), pool_size=s.numbers(2, 2), strides=s.numbers(1, 1))
    y = s.call("nn.batch_flatten", [y])
    y = s.call("nn.dense", [y, k["w3"]], "DenseAttrs", auto_scheduler_rewritten_layout=s.text(""),
               meta_schedule_original_shape=0, out_dtype="", units=s.number(5))
    y = s.call("nn.softmax", [s.call("add", [y, k["b3"]])], "SoftmaxAttrs", axis=-1)
    s.write(s.module({"main": s.function([data], y)}), "saved")

    s, x = Saved(), f32(2, 3)
    t = s.type((2, 3))
    a, c, p, q = s.var("x", t), s.var("c", s.type((), "bool")), s.var("p", t), s.var("q", t)
    g = s.node("GlobalVar", {"_checked_type_": s.node("relay.FuncType", {"arg_types": s.array([t]), "ret_type": t}),
                             "name_hint": "g", "span": 0})
    twice = s.call("multiply", [a, s.constant(np.array(2, "f4"))])
    then = s.call(g, [twice])
    other = s.call("reshape", [s.call("transpose", [twice], "TransposeAttrs", axes=s.numbers(1, 0))], "ReshapeAttrs",
                   allowzero=0, newshape=s.numbers(2, -1))
    branch = s.node("relay.If", {"cond": c, "false_branch": other, "true_branch": then})
    local = s.function([q], s.call("add", [q, a]), t)
    let = s.node("relay.Let", {"body": s.call("subtract", [p, twice]), "value": s.call(local, [branch]), "var": p})
    sums = s.call("sum", [let], "ReduceAttrs", axis=s.numbers(1), exclude=0, keepdims=1)
    both = s.call("concatenate", [s.tuple([let, sums])], "ConcatenateAttrs", axis=1)
    taken = s.call("take", [let, s.constant(np.array([1, 1, 0], "i4"))], "TakeAttrs", axis=s.number(1), batch_dims=s.number(0),
                   mode="clip")
    kept = s.node("Map", keys=["output_tensor_names"], data=[s.array([s.text("one"), s.text("two")])])
    names = s.node("DictAttrs", {"__dict__": kept})
    main_function = s.function([a, c], s.tuple([both, taken]), 0, names)
    z = s.var("z", t)
    s.write(s.module({"main": main_function, "g": s.function([z], s.call("negative", [z]), t)}), "saved_functions")
    r = -2 * x + x - 2 * x
    at = os.path.join(HERE, "models", "saved_functions")
    np.savez(at + ".in.npz", x=x, c=np.array(True))
    np.savez(at + ".out.npz", one=np.concatenate([r, r.sum(1, keepdims=True)], 1), two=r[:, [1, 1, 0]])


def names():
    """Parameters that are called as others are, or as a node's number."""
    s, x = Saved(), [f32(3) for _ in range(3)]
    t = s.type((3,))
    a, b, c = s.var("15", t), s.var("15", t), s.var("18", t)
    y = s.call("subtract", [s.call("multiply", [a, b]), c])
    again = s.node("relay.Var", dict(s.nodes[c]["attrs"], _checked_type_=0))  # another node of the same variable
    s.write(s.module({"main": s.function([a, b, c], s.call("divide", [y, again]))}), "saved_names")
    at = os.path.join(HERE, "models", "saved_names")
    np.savez(at + ".in.npz", **{"15": x[0], "151": x[1], "18": x[2]})
    np.savez(at + ".out.npz", output0=(x[0] * x[1] - x[2]) / x[2])


def archive(folder, name, members):
    with tarfile.open(os.path.join(HERE, folder, name), "w", format=tarfile.USTAR_FORMAT) as t:
        for member, data in members.items():
            info = tarfile.TarInfo("./" + member)
            info.size = len(data)
            t.addfile(info, io.BytesIO(data))


def broken(text, v):
    def put(name, data):
        with open(os.path.join(HERE, "broken", name), "wb") as f:
            f.write(data if isinstance(data, bytes) else data.encode())
    x = f32(2, 3)
    def one(name, body, more=""):
        put(name + ".relay", module({"x": x}, body, more))
    one("operators", "  %0 = nn.bitserial_dense(%x, %x);\n  %1 = foo(%0);\n  foo(%1)\n")
    one("attribute", "  nn.softmax(%x, axes=1)\n")
    one("kinds", '  nn.l2_normalize(%x, eps="small", axis=[1])\n')
    one("fixed", "  argmax(%x, axis=[1], exclude=True)\n")
    one("missing", "  cast(%x)\n")
    one("operands", "  add(%x)\n")
    one("types", "  add(%x, 1i64)\n")
    one("name", "  add(%x, %y)\n")
    one("part", "  %x.1\n")
    programs.broken(one)
    one("loop", "  let %f = fn (%i: int32) -> int32 {\n    %f(%i)\n  };\n  %f(1)\n")
    one("no_metadata", "  add(%x, meta[relay.Constant][0])\n")
    one("constant", "  add(%x, meta[relay.Constant][2])\n", metadata([f32(2, 3)]))
    one("metadata", "  add(%x, meta[relay.Constant][0])\n", metadata([f32(2, 3)]).replace('"Array"', '"Map"'))
    one("let", "  let %y: float32 = %x;\n  %y\n")
    one("end", "  add(%x, ")
    far = 1 << 40
    put("volume.relay", module({"x": f32(1, 2, 3, 4, 5)}, f"  image.resize3d(%x, size=[2, {far}, {far}])\n"))
    put("no_cells.relay", module({"x": f32(1, 2, 0, 4)}, "  nn.adaptive_avg_pool2d(%x, output_size=[])\n"))
    put("fixed_point.relay", module({"x": np.ones(3, "i4")}, "  fixed_point_multiply(%x, multiplier=1, shift=-2147483648)\n"))
    put("layouts.relay", module({"x": f32(1, 2, 5, 1)}, '  layout_transform(%x, src_layout="NCHW", dst_layout="NCW")\n'))
    put("windows.relay", module({"x": np.broadcast_to(f32(), (1 << 20,))}, "  sliding_window(%x, axis=0, window_shape=[524288], strides=[1])\n"))
    put("run_sizes.relay", module({"x": np.ones((2, 3), "f4"), "to": np.array([3, 2], "i8")}, "  dyn.reshape(%x, %to)\n"))
    put("run_key.relay", module({"key": np.zeros(10, "u8")}, "  random.threefry_split(%key)\n"))
    put("rows.relay", module({"x": np.ones((2, 3), "f4")}, """  nn.sparse_dense(%x, meta[relay.Constant][0], meta[relay.Constant][1], meta[relay.Constant][2])
""", metadata([np.ones((2,), "f4"), np.array([0, 7], "i4"), np.array([0, 1, 2], "i4")])))
    put("beginnings.relay", module({"x": np.ones((2, 3), "f4")}, """  nn.sparse_dense(%x, meta[relay.Constant][0], meta[relay.Constant][1], meta[relay.Constant][2])
""", metadata([np.ones((2,), "f4"), np.array([0, 1], "i4"), np.array([0, 2, 1], "i4")])))
    put("set.relay", module({"x": np.ones((4,), "f4"), "v": np.ones((3,), "f4")}, """  strided_set(%x, %v, meta[relay.Constant][0], meta[relay.Constant][1], meta[relay.Constant][2])
""", metadata([np.array([0], "i8"), np.array([4], "i8"), np.array([2], "i8")])))
    put("moved.relay", module({"x": np.ones((1, 1, 4, 4), "f4")}, "  nn.correlation(%x, %x, kernel_size=2, max_displacement=1)\n"))
    put("twice.relay", '#[version = "0.0.5"]\ndef @main(%x: Tensor[(2), float32], %x: Tensor[(2), float32]) {\n  nn.relu(%x)\n}\n')
    put("untyped.relay", '#[version = "0.0.5"]\ndef @main(%x) {\n  %x\n}\n')
    put("unknown.relay", '#[version = "0.0.5"]\ndef @main(%x: Tensor[(?, 3), float32]) {\n  nn.relu(%x)\n}\n')
    put("version.relay", '#[version = "0.0.4"]\ndef @main() {\n  1f\n}\n')
    put("graph.json", json.dumps({"nodes": [{"op": "tvm_op", "name": "f", "attrs": {"func_name": "fused_add"}}],
                                  "arg_nodes": [], "heads": [], "node_row_ptr": []}))
    def nodes(name, make):
        s = Saved()
        s.write(make(s), name, "broken")
    put("saved.json", json.dumps({"root": 1, "nodes": [{"type_key": ""}], "attrs": {"tvm_version": "0.14.0"}}))
    nodes("untyped_node", lambda s: s.function([s.var("x", 0)], s.constant(x)))
    nodes("match_node", lambda s: s.function([], s.node("relay.Match", {"data": s.constant(x), "clauses": s.array([s.number(1)])})))
    nodes("operator_node", lambda s: s.function([], s.call("unique", [s.constant(x)])))
    nodes("cycle", lambda s: s.function([], s.call("nn.relu", [len(s.nodes) + 2])))
    nodes("type_node", lambda s: s.module({"main": s.number(3)}))
    def without_data(s):
        k = s.constant(x)
        s.nodes[k]["attrs"]["data"] = "-1"
        return s.function([], k)
    nodes("data_node", without_data)
    def doubled(s):
        t = s.type(())
        for _ in range(40):
            t = s.node("relay.TupleType", {"fields": s.array([t, t]), "span": 0})
        v = s.var("x", t)
        return s.function([v], v)
    nodes("doubled_node", doubled)
    put("other.relay", text)
    put("other.params", params({"w9": v["w1"]}))
    put("shape.relay", text)
    put("shape.params", params({"w1": v["w2"]}))
    put("short.relay", text)
    put("short.params", params(v)[:-4])
    archive("broken", "passes.tar", {"metadata.json": b"{}", "src/relay.txt": text.encode(),
                                     "parameters/default.params": params({"p0": v["w1"]})})
    archive("broken", "none.tar", {"metadata.json": b"{}", "src/other": b"x"})


def main():
    text, v, x = network()
    archive("models", "archive.tar", {"metadata.json": b"{}", "src/relay.txt": text.encode(),
                                      "parameters/default.params": params(v)})
    images()
    functions()
    shapes()
    quantized()
    quantized_cells()
    transposed()
    more_shapes()
    saved(v, x)
    broken(text, v)
    names()
    ops_more.write_all(f32, module, metadata, write, conv, rng)
    programs.write_all(f32, module, write)
    programs.saved(Saved(), f32, os.path.join(HERE, "models", "saved_programs"))


if __name__ == "__main__":
    main()
