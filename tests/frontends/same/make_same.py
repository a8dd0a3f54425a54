#!/usr/bin/env python3
"""Writes networks/: networks as ONNX, and in formats that other formats' make_same.py do not write (same.sh).

    make_same.py        needs coremltools, onnx and numpy

Each is .onnx, .mlmodel, .mlpackage, -symbol.json of MXNet, .predict_net.pb of Caffe2, .relay and .nodes.json of TVM, and .nhwc.relay
with channels last."""
import json
import os
import shutil
import struct
import sys

import coremltools as ct
import numpy as np
import onnx
from coremltools.converters.mil import Builder as mb
from coremltools.models import datatypes
from coremltools.models.neural_network import NeuralNetworkBuilder
from onnx import TensorProto, helper

HERE = os.path.dirname(os.path.abspath(__file__))
for beside in ("caffe2", "tvm"):
    sys.path.insert(0, os.path.join(HERE, "..", beside))
import make_ops as tvm  # noqa: E402  of tvm
import net as caffe2  # noqa: E402

rng = np.random.default_rng(11)


def f32(*shape):
    return rng.uniform(-0.5, 0.5, shape).astype("f4")


# A network is a list of layers (kind, inputs, settings, weights), each of which is named by its place; "x" is the input.
class Net:
    def __init__(self, name, shape):
        self.name, self.shape, self.layers = name, shape, []

    def add(self, kind, inputs, weights=(), **settings):
        self.layers.append((kind, inputs, [np.asarray(w) for w in weights], settings))
        return f"v{len(self.layers) - 1}"

    def conv(self, x, i, o, k, pad, groups=1):
        return self.add("conv", [x], [f32(o, i // groups, k, k), f32(o)], k=k, pad=pad, groups=groups, o=o)

    def dense(self, x, i, o):
        return self.add("dense", [x], [f32(o, i), f32(o)], o=o, i=i)


def plain():
    n = Net("plain", (1, 3, 12, 12))
    v = n.add("relu", [n.conv("x", 3, 8, 3, 1)])
    v = n.add("pool", [v], k=2)
    v = n.add("relu", [n.conv(v, 8, 16, 3, 0)])
    n.add("softmax", [n.dense(n.add("flatten", [v], cells=256), 256, 5)])
    return n


def residual():
    n = Net("residual", (1, 8, 12, 12))
    v = n.conv(n.add("relu", [n.conv("x", 8, 8, 3, 1)]), 8, 8, 3, 1)
    v = n.add("relu", [n.add("add", ["x", v])])
    v = n.add("relu", [n.conv(v, 8, 8, 3, 0, groups=8)])
    v = n.add("mean", [n.conv(v, 8, 16, 1, 0)])
    n.dense(n.add("flatten", [v], cells=16), 16, 4)
    return n


def names(layer, weights):
    return [f"v{layer}_{r}" for r in ("weight", "bias")[:len(weights)]]


def as_onnx(n, path):
    nodes, values = [], []
    for at, (kind, inputs, weights, s) in enumerate(n.layers):
        w = names(at, weights)
        values += [onnx.numpy_helper.from_array(v, k) for k, v in zip(w, weights)]
        op, attrs = {"conv": lambda: ("Conv", {"kernel_shape": [s["k"]] * 2, "pads": [s["pad"]] * 4, "group": s["groups"]}),
                     "pool": lambda: ("MaxPool", {"kernel_shape": [s["k"]] * 2, "strides": [s["k"]] * 2}),
                     "relu": lambda: ("Relu", {}), "add": lambda: ("Add", {}), "mean": lambda: ("GlobalAveragePool", {}),
                     "flatten": lambda: ("Flatten", {}), "dense": lambda: ("Gemm", {"transB": 1}),
                     "softmax": lambda: ("Softmax", {"axis": -1})}[kind]()
        nodes.append(helper.make_node(op, inputs + w, [f"v{at}"], f"v{at}", **attrs))
    out = f"v{len(n.layers) - 1}"
    g = helper.make_graph(nodes, n.name, [helper.make_tensor_value_info("x", TensorProto.FLOAT, n.shape)],
                          [helper.make_tensor_value_info(out, TensorProto.FLOAT, None)], values)
    onnx.save(helper.make_model(g, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path + ".onnx")


def as_mxnet(n, path):
    nodes, at_of, values = [], {}, {}

    def node(op, name, inputs=(), **attrs):
        at_of[name] = len(nodes)
        nodes.append({"op": op, "name": name, "inputs": [[at_of[i], 0, 0] for i in inputs],
                      **({"attrs": {k: str(v) for k, v in attrs.items()}} if attrs else {})})
    node("null", "x", __shape__=n.shape)
    for at, (kind, inputs, weights, s) in enumerate(n.layers):
        w = names(at, weights)
        for k, v in zip(w, weights):
            node("null", k)
            values["arg:" + k] = v
        op, attrs = {"conv": lambda: ("Convolution", {"kernel": (s["k"],) * 2, "num_filter": s["o"], "num_group": s["groups"],
                                                      "pad": (s["pad"],) * 2}),
                     "pool": lambda: ("Pooling", {"kernel": (s["k"],) * 2, "stride": (s["k"],) * 2, "pool_type": "max"}),
                     "relu": lambda: ("Activation", {"act_type": "relu"}), "add": lambda: ("elemwise_add", {}),
                     "mean": lambda: ("Pooling", {"global_pool": True, "kernel": (1, 1), "pool_type": "avg"}),
                     "flatten": lambda: ("Flatten", {}), "dense": lambda: ("FullyConnected", {"num_hidden": s["o"]}),
                     "softmax": lambda: ("softmax", {"axis": -1})}[kind]()
        node(op, f"v{at}", inputs + w, **attrs)
    with open(path + "-symbol.json", "w", encoding="utf-8") as f:
        json.dump({"nodes": nodes, "arg_nodes": [i for i, k in enumerate(nodes) if k["op"] == "null"],
                   "node_row_ptr": list(range(len(nodes) + 1)), "heads": [[len(nodes) - 1, 0, 0]],
                   "attrs": {"mxnet_version": ["int", 10700]}}, f, indent=1)
    with open(path + "-0000.params", "wb") as f:
        f.write(struct.pack("<QQQ", 0x112, 0, len(values)))
        for v in values.values():
            f.write(struct.pack("<IiI", 0xF993FAC9, 0, v.ndim) + struct.pack(f"<{v.ndim}q", *v.shape) + struct.pack("<iii", 1, 0, 0) +
                    v.tobytes())
        f.write(struct.pack("<Q", len(values)) + b"".join(struct.pack("<Q", len(k)) + k.encode() for k in values))


def as_caffe2(n, path):
    ops, init = [], [caffe2.place("x", n.shape)]
    for at, (kind, inputs, weights, s) in enumerate(n.layers):
        w = names(at, weights)
        init += [caffe2.given(k, v) for k, v in zip(w, weights)]
        op, args = {"conv": lambda: ("Conv", {"kernel": s["k"], "pad": s["pad"], "group": s["groups"], "stride": 1}),
                    "pool": lambda: ("MaxPool", {"kernel": s["k"], "stride": s["k"]}), "relu": lambda: ("Relu", {}),
                    "add": lambda: ("Add", {}), "mean": lambda: ("AveragePool", {"global_pooling": 1}),
                    "flatten": lambda: ("Flatten", {}), "dense": lambda: ("FC", {}), "softmax": lambda: ("Softmax", {})}[kind]()
        ops.append(caffe2.op(op, inputs + w, [f"v{at}"], **args))
    for part, data in (("init", caffe2.net(n.name, init)), ("predict", caffe2.net(n.name, ops, ["x"], [f"v{len(n.layers) - 1}"]))):
        with open(f"{path}.{part}_net.pb", "wb") as f:
            f.write(data)


def as_network(n, path):
    out = f"v{len(n.layers) - 1}"
    b = NeuralNetworkBuilder([("x", datatypes.Array(*n.shape))], [(out, None)], disable_rank5_shape_mapping=True)
    for at, (kind, inputs, weights, s) in enumerate(n.layers):
        name = f"v{at}"
        if kind == "conv":
            b.add_convolution(name, weights[0].shape[1], s["o"], s["k"], s["k"], 1, 1, "valid", s["groups"], weights[0].transpose(2, 3, 1, 0),
                              weights[1], True, input_name=inputs[0], output_name=name, padding_top=s["pad"], padding_bottom=s["pad"],
                              padding_left=s["pad"], padding_right=s["pad"])
        elif kind in ("pool", "mean"):
            k = s.get("k", 1)
            b.add_pooling(name, k, k, k, k, "MAX" if kind == "pool" else "AVERAGE", "VALID", inputs[0], name, is_global=kind == "mean")
        elif kind == "relu":
            b.add_activation(name, "RELU", inputs[0], name)
        elif kind == "add":
            b.add_elementwise(name, inputs, name, "ADD")
        elif kind == "flatten":
            b.add_flatten_to_2d(name, inputs[0], name, axis=1)
        elif kind == "dense":
            b.add_inner_product(name, weights[0], weights[1], s["i"], s["o"], True, inputs[0], name)
        else:
            b.add_softmax_nd(name, inputs[0], name, axis=-1)
    with open(path + ".mlmodel", "wb") as f:
        f.write(b.spec.SerializeToString(deterministic=True))


def as_program(n, path):
    @mb.program(input_specs=[mb.TensorSpec(n.shape)], opset_version=ct.target.iOS16)
    def program(x):
        v = {"x": x}
        for at, (kind, inputs, weights, s) in enumerate(n.layers):
            a, more = v[inputs[0]], {"name": f"v{at}"}
            if kind == "conv":
                more.update(pad_type="custom", pad=[s["pad"]] * 4, groups=s["groups"])
                y = mb.conv(x=a, weight=weights[0], bias=weights[1], **more)
            elif kind == "pool":
                y = mb.max_pool(x=a, kernel_sizes=[s["k"]] * 2, strides=[s["k"]] * 2, pad_type="valid", **more)
            elif kind == "mean":
                y = mb.reduce_mean(x=a, axes=[2, 3], keep_dims=True, **more)
            elif kind == "add":
                y = mb.add(x=a, y=v[inputs[1]], **more)
            elif kind == "flatten":
                y = mb.reshape(x=a, shape=[1, s["cells"]], **more)
            elif kind == "dense":
                y = mb.linear(x=a, weight=weights[0], bias=weights[1], **more)
            else:
                y = mb.softmax(x=a, axis=-1, **more) if kind == "softmax" else mb.relu(x=a, **more)
            v[f"v{at}"] = y
        return y
    m = ct.convert(program, convert_to="mlprogram", compute_precision=ct.precision.FLOAT32, skip_model_load=True,
                   minimum_deployment_target=ct.target.iOS16, pass_pipeline=ct.PassPipeline.EMPTY)
    shutil.rmtree(path + ".mlpackage", ignore_errors=True)
    m.save(path + ".mlpackage")
    spec = m.get_spec()
    del spec.description.metadata.userDefined["com.github.apple.coremltools.conversion_date"]
    with open(path + ".mlpackage/Data/com.apple.CoreML/model.mlmodel", "wb") as f:
        f.write(spec.SerializeToString(deterministic=True))
    manifest = path + ".mlpackage/Manifest.json"
    with open(manifest, encoding="utf-8") as f:
        was = json.load(f)["itemInfoEntries"].values()
    items = {f"00000000-0000-4000-8000-00000000000{i}": v for i, v in enumerate(sorted(was, key=lambda v: v["path"]))}
    root = next(k for k, v in items.items() if v["path"].endswith(".mlmodel"))
    with open(manifest, "w", encoding="utf-8") as f:
        json.dump({"fileFormatVersion": "1.0.0", "itemInfoEntries": items, "rootModelIdentifier": root}, f, indent=4)


def as_relay(n, path, last):
    """Channels first with values in a file; last: channels last, as an importer of TensorFlow writes it."""
    x, body, values = np.zeros(n.shape, "f4"), [], {}
    data = ', data_layout="NHWC", kernel_layout="HWIO"' if last else ""
    pool = ', layout="NHWC"' if last else ""
    if last:
        x = x.transpose(0, 2, 3, 1)
        body.append("  %x0 = %x;")
    for at, (kind, inputs, weights, s) in enumerate(n.layers):
        w, a, v = names(at, weights), "%" + inputs[0], f"%v{at}"
        values.update(zip(w, weights))
        if kind == "conv":
            form = data
            if last:
                values[w[0]] = np.ascontiguousarray(weights[0].transpose(2, 3, 1, 0))
                if s["groups"] > 1:
                    values[w[0]] = np.ascontiguousarray(weights[0].transpose(2, 3, 0, 1))
                    form = data.replace("HWIO", "HWOI")
            body.append(f"  {v}c = nn.conv2d({a}, %{w[0]}, padding=[{', '.join([str(s['pad'])] * 4)}], groups={s['groups']}, channels={s['o']}, "
                        f"kernel_size=[{s['k']}, {s['k']}]{form});")
            body.append(f"  {v} = nn.bias_add({v}c, %{w[1]}, axis={3 if last else 1});")
        elif kind == "pool":
            body.append(f"  {v} = nn.max_pool2d({a}, pool_size=[{s['k']}, {s['k']}], strides=[{s['k']}, {s['k']}], padding=[0, 0, 0, 0]{pool});")
        elif kind == "dense":
            body += [f"  {v}d = nn.dense({a}, %{w[0]}, units={s['o']});", f"  {v} = nn.bias_add({v}d, %{w[1]}, axis=-1);"]
        elif kind == "flatten" and last and n.layers[at - 1][0] != "mean": # the weights behind it are for channels first
            body += [f"  {v}t = transpose({a}, axes=[0, 3, 1, 2]);", f"  {v} = nn.batch_flatten({v}t);"]
        else:
            call = {"relu": f"nn.relu({a})", "flatten": f"nn.batch_flatten({a})", "softmax": f"nn.softmax({a})",
                    "add": f"add({a}, %{inputs[-1]})", "mean": f"nn.global_avg_pool2d({a}{pool})"}[kind]
            body.append(f"  {v} = {call};")
    body.append(f"  %v{len(n.layers) - 1}")
    with open(path + ".relay", "w", encoding="utf-8") as f:
        f.write(tvm.module({"x": x, **values}, "\n".join(body) + "\n"))
    with open(path + ".params", "wb") as f:
        f.write(tvm.params(values))


def as_nodes(n, path):
    s = tvm.Saved()
    v = {"x": s.var("x", s.type(n.shape))}
    for at, (kind, inputs, weights, t) in enumerate(n.layers):
        w, a = [s.constant(k) for k in weights], [v[i] for i in inputs]
        if kind == "conv":
            y = s.call("nn.conv2d", [a[0], w[0]], "Conv2DAttrs", channels=s.number(t["o"]), data_layout="NCHW", dilation=s.numbers(1, 1),
                       groups=t["groups"], kernel_layout="OIHW", kernel_size=s.numbers(t["k"], t["k"]), out_dtype="", out_layout="",
                       padding=s.numbers(*[t["pad"]] * 4), strides=s.numbers(1, 1))
            y = s.call("nn.bias_add", [y, w[1]], "BiasAddAttrs", axis=1)
        elif kind == "pool":
            y = s.call("nn.max_pool2d", a, "MaxPool2DAttrs", ceil_mode=0, dilation=s.numbers(1, 1), layout="NCHW", out_layout="",
                       padding=s.numbers(0, 0, 0, 0), pool_size=s.numbers(t["k"], t["k"]), strides=s.numbers(t["k"], t["k"]))
        elif kind == "dense":
            y = s.call("nn.bias_add", [s.call("nn.dense", [a[0], w[0]], "DenseAttrs", out_dtype="", units=s.number(t["o"])), w[1]],
                       "BiasAddAttrs", axis=-1)
        elif kind == "mean":
            y = s.call("nn.global_avg_pool2d", a, "GlobalPool2DAttrs", layout="NCHW", out_layout="")
        elif kind == "softmax":
            y = s.call("nn.softmax", a, "SoftmaxAttrs", axis=-1)
        else:
            y = s.call({"relu": "nn.relu", "add": "add", "flatten": "nn.batch_flatten"}[kind], a)
        v[f"v{at}"] = y
    with open(path + ".nodes.json", "w", encoding="utf-8") as f:
        json.dump({"root": s.module({"main": s.function([v["x"]], y)}), "nodes": s.nodes, "b64ndarrays": s.arrays,
                   "attrs": {"tvm_version": "0.14.0"}}, f, indent=0)


def main():
    for n in (plain(), residual()):
        path = os.path.join(HERE, "networks", n.name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        for write in (as_onnx, as_mxnet, as_caffe2, as_network, as_program, as_nodes):
            write(n, path)
        as_relay(n, path, False)
        as_relay(n, path + ".nhwc", True)


main()
