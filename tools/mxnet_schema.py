#!/usr/bin/env python3
"""Writes frontends/mxnet/schema.def: tools/mxnet_schema.py (needs the package mxnet 1.9, and numpy before 1.24).

Inputs, outputs and attributes of all operators of frontends/mxnet/ops.def, as MXNet registers them, and their
other names.  Run it when an operator was added.  What MXNet does not register, which inputs depend on attributes and what
outputs are called, stands below.  What the tool writes is looked at before a commit.
"""
import ctypes
import os
import re

import mxnet
from mxnet.base import _LIB, OpHandle, check_call, py_str

ROOM = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "frontends", "mxnet")
MARK = "/* ---- what tools/mxnet_schema.py writes "

BIASED = "weight bias?no_bias=0"
QUANTIZED = "output min_output max_output"
INPUTS = {
    "Convolution": "data " + BIASED,
    "Convolution_v1": "data " + BIASED,
    "Deconvolution": "data " + BIASED,
    "FullyConnected": "data " + BIASED,
    "_contrib_DeformableConvolution": "data offset " + BIASED,
    "_contrib_ModulatedDeformableConvolution": "data offset mask " + BIASED,
    "BatchNorm_v1": "data gamma beta moving_mean moving_var",
    "LeakyReLU": "data gamma?act_type=prelu",
    "RNN": "data parameters state state_cell?mode=lstm sequence_length?use_sequence_length=1",
    "softmax": "data length?use_length=1",
    "log_softmax": "data length?use_length=1",
    "softmin": "data length?use_length=1",
    "SequenceMask": "data sequence_length?use_sequence_length=1",
    "SequenceReverse": "data sequence_length?use_sequence_length=1",
    "SequenceLast": "data sequence_length?use_sequence_length=1",
    "_contrib_BilinearResize2D": "data like?mode=like",
    "Crop": "data[num_args]",
    "UpSampling": "data[num_args] weight?sample_type=bilinear",
    "amp_multicast": "data[num_outputs]",
    "add_n": "args[num_args]",
    "_cond": "data*",
    "_foreach": "data*",
    "_while_loop": "data*",
    "_contrib_quantized_concat": "data*",
    "_sg_mkldnn_conv": "data*",
    "_sg_mkldnn_fully_connected": "data*",
    "ring_buffer": "data buffer",
    "_contrib_quantized_ring_buffer": "data buffer min_data max_data",
}
# "#": numbered, "#attribute=value|..": numbered unless the attribute has one of these values.
OUTPUTS = {
    "BatchNorm": "output mean var", "BatchNorm_v1": "output mean var", "_contrib_SyncBatchNorm": "output mean var",
    "_contrib_BatchNormWithReLU": "output mean var",
    "LayerNorm": "output mean std", "InstanceNorm": "output mean var", "GroupNorm": "output mean std",
    "L2Normalization": "output norm", "LRN": "output tmp_norm", "Dropout": "output mask", "LeakyReLU": "output mask", "make_loss": "loss",
    "RNN": "output state_output statecell_output", "_contrib_Proposal": "output score",
    "_contrib_MultiProposal": "output score", "SliceChannel": "#", "_split_v2": "#", "topk": "#ret_typ=indices|mask", "sort": "#", "moments": "#",
    "amp_multicast": "#", "_contrib_quantize_v2": "#", "_contrib_requantize": "#", "_contrib_box_nms": "#",
    "_cond": "#num_outputs=1", "_foreach": "#num_outputs=1", "_while_loop": "#num_outputs=1",
    "_npi_var": "var mean", "_npi_std": "std mean", "_npi_matmul": "out",
    "_contrib_quantized_act": QUANTIZED, "_contrib_quantized_pooling": QUANTIZED, "_contrib_quantized_flatten": QUANTIZED,
    "_contrib_quantized_concat": QUANTIZED, "_contrib_quantized_batch_norm": QUANTIZED,
    "_contrib_quantized_ring_buffer": QUANTIZED, "_sg_mkldnn_conv": QUANTIZED, "_sg_mkldnn_fully_connected": QUANTIZED,
}
# Attributes of what MXNet does not register so.
FUSED = ("quantized:bool=0 with_sum:bool=0 min_calib_range:float?=None max_calib_range:float?=None "
         "enable_float_output:bool=0 channel_wise_quantize:bool?=None")
ATTRIBUTES = {
    "_sg_mkldnn_conv": FUSED + " with_bn:bool=0 with_act:bool=0 with_postsum_act:bool=0",
    "_sg_mkldnn_fully_connected": FUSED + " with_eltwise:bool=0",
    "ring_buffer": "axis:int=0",
    "_contrib_quantized_ring_buffer": "axis:int=0",
    "add_n": "num_args:int",
}
# Names of older and newer versions, beside those that 1.9 knows.
ALIASES = {
    "__add_scalar__": "_plus_scalar", "__sub_scalar__": "_minus_scalar", "__rsub_scalar__": "_rminus_scalar",
    "__mul_scalar__": "_mul_scalar", "__div_scalar__": "_div_scalar", "__rdiv_scalar__": "_rdiv_scalar",
    "__pow_scalar__": "_power_scalar", "__rpow_scalar__": "_rpower_scalar",
    "_npi_copy": "_np_copy", "contrib_fifo_buffer": "ring_buffer", "_contrib_quantized_fifo_buffer": "_contrib_quantized_ring_buffer",
    "_npi_transpose": "_np_transpose", "_npi_squeeze": "_np_squeeze",
}


def registered():
    names, count = ctypes.POINTER(ctypes.c_char_p)(), ctypes.c_uint()
    check_call(_LIB.MXListAllOpNames(ctypes.byref(count), ctypes.byref(names)))
    return sorted(py_str(names[i]) for i in range(count.value))


def info(name):
    """The name as it is written to files, operands and attributes with their types, and which attribute counts operands."""
    handle, real, text, kv, ret = OpHandle(), ctypes.c_char_p(), ctypes.c_char_p(), ctypes.c_char_p(), ctypes.c_char_p()
    n, args, types, texts = ctypes.c_uint(), *(ctypes.POINTER(ctypes.c_char_p)() for _ in range(3))
    check_call(_LIB.NNGetOpHandle(ctypes.c_char_p(name.encode()), ctypes.byref(handle)))
    check_call(_LIB.MXSymbolGetAtomicSymbolInfo(handle, *(ctypes.byref(x) for x in (real, text, n, args, types, texts, kv, ret))))
    return py_str(real.value), [(py_str(args[i]), py_str(types[i])) for i in range(n.value)], py_str(kv.value)


KINDS = {"int": "int", "long": "int", "int (non-negative)": "int", "long (non-negative)": "int", "int or None": "int?",
         "boolean": "bool", "boolean or None": "bool?", "float": "float", "double": "float", "float or None": "float?",
         "double or None": "float?", "real_t": "float", "string": "text", "Shape(tuple)": "shape", "Shape or None": "shape",
         "tuple of <long>": "shape", "tuple of <float>": "floats", "tuple of <double>": "floats", "tuple of <Shape(tuple)>": "shapes"}


def attribute(name, text):
    words = re.match(r"\{(.*?)\}", text)
    if words:
        kind = "word(" + "|".join(w.strip().strip("'") for w in words[1].split(",")) + ")"
    else:
        kind = KINDS[re.split(r", (?:optional|required)", text)[0].strip()]
    fallback = re.search(r"default=(.*)$", text)
    if not fallback:
        return f"{name}:{kind}" + ("" if "required" in text else "=1")  # smooth_l1's scalar
    return f"{name}:{kind}=" + fallback[1].strip("'[]")


def is_operand(text):
    return text.startswith(("NDArray", "Symbol"))


def main():
    with open(os.path.join(ROOM, "ops.def")) as f:
        names = re.findall(r"^MX\((\w+),", f.read(), re.M)
    known, rows = set(registered()), []
    for name in sorted(names):
        args, kv = info(name)[1:] if name in known else ([], "")
        many = f"[{kv}]" if kv else ""
        inputs = " ".join(a + (many if "[]" in t else "") for a, t in args if is_operand(t))
        attrs = " ".join(attribute(a, t) for a, t in args if not is_operand(t))
        if name not in known and name not in INPUTS:
            raise SystemExit(f"MXNet {mxnet.__version__} has no operator {name}")
        rows.append('SCHEMA(%s, "%s", "%s", "%s")\n' % (name, INPUTS.get(name, inputs), OUTPUTS.get(name, ""), ATTRIBUTES.get(name, attrs)))
    other = {n: real for n in known for real in [info(n)[0]] if real in names and n != real and n not in names}
    other.update(ALIASES)
    path = os.path.join(ROOM, "schema.def")
    head = open(path).read().split(MARK)[0] if os.path.exists(path) else ""
    with open(path, "w") as f:
        f.write(head + MARK + "-" * (105 - len(MARK)) + " */\n" + "".join(rows))
        f.write("\n" + "".join(f"ALIAS({a}, {other[a]})\n" for a in sorted(other)))
    print(f"{len(rows)} rows, {len(other)} other names; MXNet {mxnet.__version__}")


main()
