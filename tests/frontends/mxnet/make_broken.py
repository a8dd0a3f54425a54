#!/usr/bin/env python3
"""Writes broken/*-symbol.json and their values for goldens.txt: small graphs, each with one fault.

    make_broken.py FOLDER
"""
import json
import os
import struct
import sys

FOLDER = sys.argv[1]


def array(shape, magic=0xF993FAC9, storage=0, kind=0, cells=None):
    n = 1
    for d in shape:
        n *= d
    return (struct.pack("<IiI", magic, storage, len(shape)) + struct.pack(f"<{len(shape)}q", *shape) + struct.pack("<iii", 1, 0, kind) +
            struct.pack(f"<{n}f", *(cells or [0.5] * n)))


def values(arrays, magic=0x112, names=None):
    names = list(arrays) if names is None else names
    return (struct.pack("<QQQ", magic, 0, len(arrays)) + b"".join(arrays.values()) + struct.pack("<Q", len(names)) +
            b"".join(struct.pack("<Q", len(n)) + n.encode() for n in names))


WEIGHTS = {"arg:fc_weight": array([2, 3]), "arg:fc_bias": array([2])}


def var(name, **attrs):
    return {"op": "null", "name": name, "attrs": attrs, "inputs": []}


def op(kind, name, inputs, **attrs):
    return {"op": kind, "name": name, "attrs": attrs, "inputs": [[i, 0, 0] for i in inputs]}


def write(name, nodes, heads=None, weights=None, text=None):
    graph = {"nodes": nodes, "arg_nodes": [], "heads": heads or [[len(nodes) - 1, 0, 0]], "attrs": {"mxnet_version": ["int", 10901]}}
    with open(os.path.join(FOLDER, name + "-symbol.json"), "w") as f:
        f.write(text or json.dumps(graph, indent=1))
    if weights is not None:
        with open(os.path.join(FOLDER, name + "-0000.params"), "wb") as f:
            f.write(weights)


X = var("x", __shape__="(2, 3)")
FC = [X, var("fc_weight"), var("fc_bias"), op("FullyConnected", "fc", [0, 1, 2], num_hidden="2")]


def main():
    os.makedirs(FOLDER, exist_ok=True)
    good = values(WEIGHTS)
    write("good", FC, weights=good)
    write("text", [], text='{"nodes": [{"op": "null", "name": "x", "inputs": []},]}')
    write("no_heads", [], text='{"nodes": [], "arg_nodes": [], "heads": []}')
    write("edge", [X, op("relu", "y", [1])])
    write("node", [X, {"op": "relu", "inputs": [[0, 0, 0]]}])
    write("attribute_kind", [X, {"op": "relu", "name": "y", "attrs": {"a": 1}, "inputs": [[0, 0, 0]]}])
    write("operators", [X, op("Custom", "a", [0]), op("_contrib_fft", "b", [1]), op("Custom", "c", [2]), op("Custom", "d", [3])])
    write("attributes", [X, op("clip", "a", [0], a_min="0", a_mx="1"), op("sum", "b", [1], axes="1"), op("Activation", "c", [1], act_type="rleu"),
                         op("expand_dims", "d", [3], axis="one"), op("mean", "e", [4], axis="(1, x)")])
    write("operands", [X, op("dot", "a", [0]), op("relu", "b", [1, 0]), op("Concat", "c", [0, 2], num_args="3")])
    write("no_values", FC)
    write("missing_value", FC, weights=values({"arg:fc_weight": array([2, 3])}))
    write("wrong_shape", FC, weights=values({"arg:fc_weight": array([2, 4]), "arg:fc_bias": array([2])}))
    write("open_shapes", [var("x"), var("y"), var("w"), op("Convolution", "c", [0, 2], kernel="(3, 3)", num_filter="4", no_bias="True"),
                          op("broadcast_add", "d", [3, 1])], weights=values({"w": array([4, 3, 3, 3])}))
    write("twice", [X, X, op("dot", "a", [0, 1])])
    write("axis", [X, op("softmax", "a", [0], axis="2")])
    write("reshape", [X, op("Reshape", "a", [0], shape="(0, 0, 0)")])
    write("always", [X, op("Dropout", "a", [0], mode="always")])
    write("empty_heads", [X, op("topk", "a", [0], ret_typ="value")], heads=[[1, 1, 0]])
    write("magic", FC, weights=values(WEIGHTS, magic=0x113))
    write("cut", FC, weights=good[:-30])
    write("names", FC, weights=values(WEIGHTS, names=["arg:fc_weight"]))
    write("sparse", FC, weights=values({"arg:fc_weight": array([2, 3], storage=1), "arg:fc_bias": array([2])}))
    write("kind", FC, weights=values({"arg:fc_weight": array([2, 3], kind=77), "arg:fc_bias": array([2])}))
    write("huge", FC, weights=values({"arg:fc_weight": array([], magic=0xF993FAC9)[:8] + struct.pack("<Iqq", 2, 1 << 39, 1 << 39) + bytes(64)}))


main()
