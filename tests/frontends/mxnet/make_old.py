#!/usr/bin/env python3
"""Writes models/old_*: graphs and values as versions before 0.9 and 1.0 wrote them, with the results of MXNet, which reads them, too.

    make_old.py FOLDER
"""
import json
import os
import struct
import sys

import numpy as np
from record import mx

FOLDER = sys.argv[1]


def array(value, form):
    head = {0: struct.pack("<I", value.ndim), 1: struct.pack("<II", 0xF993FAC8, value.ndim)}[form]
    return head + struct.pack(f"<{value.ndim}{'Iq'[form]}", *value.shape) + struct.pack("<iii", 1, 0, 0) + value.astype("<f4").tobytes()


def main():
    random = np.random.default_rng(5)
    weights = {"arg:bn_gamma": random.uniform(1, 2, 3), "arg:bn_beta": random.uniform(-1, 1, 3), "aux:bn_moving_mean": random.uniform(-1, 1, 3),
               "aux:bn_moving_var": random.uniform(0.5, 1, 3), "arg:fc_weight": random.uniform(-1, 1, (4, 12)), "arg:fc_bias": random.uniform(-1, 1, 4)}
    x = random.uniform(-1, 1, (2, 3, 2, 2)).astype(np.float32)
    for form, (params, own) in enumerate([("param", "attr"), ("attr", "attr")]):
        def op(kind, name, inputs, **attrs):
            return {"op": kind, params: attrs, "name": name, "inputs": inputs, "backward_source_id": -1}
        nodes = [op("null", "data", []), op("null", "bn_gamma", []), op("null", "bn_beta", []),
                 op("BatchNorm", "bn", [[0, 0], [1, 0], [2, 0]], eps="0.01", fix_gamma="False", momentum="0.9", use_global_stats="True"),
                 op("null", "fc_weight", []), op("null", "fc_bias", []), op("FullyConnected", "fc", [[3, 0], [4, 0], [5, 0]], num_hidden="4"),
                 op("null", "softmax_label", []), op("SoftmaxOutput", "softmax", [[6, 0], [7, 0]], grad_scale="1"),
                 op("argmax", "best", [[8, 0]], axis="-1") if form == 0 else op("argmax", "best", [[8, 0]], axis="1")]
        nodes[4][own] = {**nodes[4].get(own, {}), "lr_mult": "2"} if form == 0 else {"__lr_mult__": "2"}
        if form == 1:
            nodes[3:4] = [op("null", "bn_moving_mean", []), op("null", "bn_moving_var", []), nodes[3]]
            nodes[5]["inputs"] += [[3, 0], [4, 0]]
            for n in nodes[6:]:
                n["inputs"] = [[i + 2 if i >= 3 else i, o] for i, o in n["inputs"]]
        graph = {"nodes": nodes, "arg_nodes": [i for i, n in enumerate(nodes) if n["op"] == "null"], "heads": [[len(nodes) - 2, 0], [len(nodes) - 1, 0]]}
        if form == 1:
            graph["attrs"] = {"mxnet_version": ["int", 905]}
        path = os.path.join(FOLDER, f"old_{form}")
        with open(path + "-symbol.json", "w") as f:
            json.dump(graph, f, indent=1)
        with open(path + "-0000.params", "wb") as f:
            f.write(struct.pack("<QQQ", 0x112, 0, len(weights)) + b"".join(array(v, form) for v in weights.values()) + struct.pack("<Q", len(weights)) +
                    b"".join(struct.pack("<Q", len(n)) + n.encode() for n in weights))
        symbol, values = mx.sym.load(path + "-symbol.json"), mx.nd.load(path + "-0000.params")
        e = symbol.simple_bind(mx.cpu(), grad_req="null", data=x.shape)
        for name, value in values.items():
            (e.aux_dict if name.startswith("aux") else e.arg_dict)[name[4:]][:] = value
        e.arg_dict["data"][:] = x
        np.savez(path + ".in.npz", data=x)
        np.savez(path + ".out.npz", **{k: v.asnumpy() for k, v in zip(symbol.list_outputs(), e.forward())})


main()
