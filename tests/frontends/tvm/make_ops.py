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


def conv(x, w, stride=1, pad=0, groups=1):
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
    return out.astype("f4")


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
    one("operators", "  %0 = nn.correlation(%x, %x);\n  %1 = foo(%0);\n  foo(%1)\n")
    one("attribute", "  nn.softmax(%x, axes=1)\n")
    one("fixed", "  argmax(%x, axis=[1], exclude=True)\n")
    one("missing", "  cast(%x)\n")
    one("operands", "  add(%x)\n")
    one("types", "  add(%x, 1i64)\n")
    one("name", "  add(%x, %y)\n")
    one("part", "  %x.1\n")
    one("match", "  match (%x) { Nil => 1f }\n")
    one("adt", "  %x\n", "type List[A] {\n  Cons(A, List[A]),\n  Nil,\n}\n")
    one("loop", "  let %f = fn (%i: int32) -> int32 {\n    %f(%i)\n  };\n  %f(1)\n")
    one("no_metadata", "  add(%x, meta[relay.Constant][0])\n")
    one("constant", "  add(%x, meta[relay.Constant][2])\n", metadata([f32(2, 3)]))
    one("metadata", "  add(%x, meta[relay.Constant][0])\n", metadata([f32(2, 3)]).replace('"Array"', '"Map"'))
    one("let", "  let %y: float32 = %x;\n  %y\n")
    one("end", "  add(%x, ")
    put("untyped.relay", '#[version = "0.0.5"]\ndef @main(%x) {\n  %x\n}\n')
    put("unknown.relay", '#[version = "0.0.5"]\ndef @main(%x: Tensor[(?, 3), float32]) {\n  nn.relu(%x)\n}\n')
    put("version.relay", '#[version = "0.0.4"]\ndef @main() {\n  1f\n}\n')
    put("graph.json", json.dumps({"nodes": [{"op": "tvm_op", "name": "f", "attrs": {"func_name": "fused_add"}}],
                                  "arg_nodes": [], "heads": [], "node_row_ptr": []}))
    put("saved.json", json.dumps({"root": 1, "nodes": [{"type_key": ""}], "attrs": {"tvm_version": "0.14.0"}}))
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
    broken(text, v)


if __name__ == "__main__":
    main()
