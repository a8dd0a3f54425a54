#!/usr/bin/env python3
"""Writes models/fused: a network that MXNet's tools have quantized for oneDNN, with the result that MXNet gives.

    make_fused.py        needs mxnet 1.9 with oneDNN and numpy < 1.24"""
import logging
import os

import mxnet as mx
import numpy as np
from mxnet.contrib import quantization

S = mx.sym
AT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "models", "fused")
SHAPE = (1, 3, 8, 8)


def network():
    x = S.Variable("data", shape=SHAPE)
    c = S.Convolution(x, kernel=(3, 3), num_filter=8, pad=(1, 1), name="conv1", no_bias=True)
    c = S.Activation(S.BatchNorm(c, name="bn1", fix_gamma=False), act_type="relu", name="relu1")
    d = S.Convolution(c, kernel=(3, 3), num_filter=8, pad=(1, 1), name="conv2")
    d = S.Activation(S.elemwise_add(d, c, name="sum"), act_type="relu", name="relu2")
    d = S.Pooling(d, kernel=(2, 2), stride=(2, 2), pool_type="max", name="pool")
    return S.FullyConnected(S.Flatten(d, name="flat"), num_hidden=5, name="fc")


def main():
    rng, log = np.random.default_rng(0), logging.getLogger()
    net = network()
    shapes, _, states = net.infer_shape(data=SHAPE)
    args = {n: mx.nd.array(rng.uniform(-0.5, 0.5, s)) for n, s in zip(net.list_arguments(), shapes) if n != "data"}
    aux = {n: mx.nd.array(rng.uniform(0.5, 1, s)) for n, s in zip(net.list_auxiliary_states(), states)}
    fused = net.get_backend_symbol("MKLDNN_QUANTIZE")
    data = mx.io.NDArrayIter(mx.nd.array(rng.uniform(-1, 1, (8,) + SHAPE[1:])), batch_size=1)
    how = {"calib_mode": "naive", "quantized_dtype": "auto", "logger": log}
    q, _, _, seen = quantization.quantize_graph(sym=fused, arg_params=args, aux_params=aux, ctx=mx.cpu(), **how)
    m = mx.mod.Module(fused, data_names=["data"], label_names=None)
    m.bind([("data", SHAPE)], for_training=False)
    m.set_params(args, aux, allow_extra=True)
    m._exec_group.execs[0].set_monitor_callback(seen.collect, monitor_all=True)  # pylint: disable=protected-access
    for batch in data:
        m.forward(batch, is_train=False)
        mx.nd.waitall()
    q, qargs, qaux = quantization.calib_graph(qsym=q, arg_params=args, aux_params=aux, collector=seen, **how)
    q = q.get_backend_symbol("MKLDNN_QUANTIZE")
    q.save(AT + "-symbol.json")
    mx.nd.save(AT + "-0000.params", {**{"arg:" + k: v for k, v in qargs.items()}, **{"aux:" + k: v for k, v in qaux.items()}})
    x = rng.uniform(-1, 1, SHAPE).astype("f4")
    bound = {**{k: qargs[k] for k in q.list_arguments() if k in qargs}, "data": mx.nd.array(x)}
    y = q.bind(mx.cpu(), bound, aux_states={k: qaux[k] for k in q.list_auxiliary_states()}).forward()[0].asnumpy()
    np.savez(AT + ".in.npz", data=x)
    np.savez(AT + ".out.npz", **{q.list_outputs()[0]: y})


main()
