#!/usr/bin/env python3
"""Writes models/bad_*.pt2, archives with a fault each, out of models/run_conv_single.pt2.

    python3 make_broken.py      (the standard library alone)

goldens.txt has what is said about them."""
import json
import os
import zipfile

FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "models")


def entries():
    with zipfile.ZipFile(os.path.join(FOLDER, "run_conv_single.pt2")) as z:
        return {n: z.read(n) for n in z.namelist()}


def write(name, files, method=zipfile.ZIP_DEFLATED):
    with zipfile.ZipFile(os.path.join(FOLDER, f"bad_{name}.pt2"), "w") as z:
        for n, data in files.items():
            info = zipfile.ZipInfo(n, (1980, 1, 1, 0, 0, 0))
            info.compress_type = method if n.endswith(".json") else zipfile.ZIP_STORED
            z.writestr(info, data)


def edited(name, change, which="models/"):
    """The program, or another entry with JSON, as `change` leaves it."""
    files = entries()
    path = next(n for n in files if which in n and n.endswith(".json"))
    tree = json.loads(files[path])
    change(tree)
    files[path] = json.dumps(tree, separators=(",", ":"))
    write(name, files)


def nodes(tree):
    return tree["graph_module"]["graph"]["nodes"]


def operators(tree):
    for node, target in zip(nodes(tree), ["torch.ops.aten.fold.default", "torch.ops.mylib.pool.default"]):
        node["target"] = target


def argument(tree):
    nodes(tree)[0]["inputs"].append({"name": "strides", "arg": {"as_int": 1}, "kind": 1})


def changed(tree):
    tree["graph_module"]["signature"]["output_specs"].insert(
        0, {"buffer_mutation": {"arg": {"name": "conv2d"}, "buffer_name": "cache"}})


def in_place(tree):
    nodes(tree).insert(0, {"target": "torch.ops.aten.relu_.default", "name": "relu_", "metadata": {},
                           "inputs": [{"name": "self", "arg": {"as_tensor": {"name": "p_a_bias"}}, "kind": 1}],
                           "outputs": [{"as_tensor": {"name": "relu_"}}]})


def order(tree):
    nodes(tree)[0]["inputs"][0]["arg"] = {"as_tensor": {"name": "max_pool2d"}}


def unbounded(tree):
    size = {"as_expr": {"expr_str": "Symbol('s77', positive=True, integer=True)", "hint": {"as_int": 6}}}
    tree["graph_module"]["graph"]["tensor_values"]["x"]["sizes"][1] = size
    tree["range_constraints"] = {"s77": {"min_val": 3, "max_val": None}}


def first(config):
    return next(iter(config["config"].values()))


edited("operators", operators)
edited("argument", argument)
edited("changed", changed)
edited("in_place", in_place)
edited("order", order)
edited("unbounded", unbounded)
edited("version", lambda t: t["schema_version"].update(major=9))
edited("graph", lambda t: t["graph_module"]["graph"].update(nodes=3))
edited("dtype", lambda t: t["graph_module"]["graph"]["tensor_values"]["x"].update(dtype=10))
edited("type", lambda t: t["graph_module"]["graph"]["tensor_values"]["conv2d"].update(dtype=8))
edited("path", lambda t: first(t).update(path_name="../weight_0"), "weights_config")
edited("sizes", lambda t: first(t)["tensor_meta"].update(sizes=[{"as_int": 1 << 40}], strides=[{"as_int": 1}]), "weights_config")
edited("strides", lambda t: first(t)["tensor_meta"].update(sizes=[{"as_int": 1 << 30}], strides=[{"as_int": 0}]), "weights_config")
edited("pickle", lambda t: first(t).update(use_pickle=True), "weights_config")
files = entries()
write("method", files, zipfile.ZIP_LZMA)
write("empty", {n: d for n, d in files.items() if "weight_0" not in n})
with open(os.path.join(FOLDER, "bad_truncated.pt2"), "wb") as f:
    f.write(open(os.path.join(FOLDER, "run_conv_single.pt2"), "rb").read()[:-40])
