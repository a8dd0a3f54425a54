"""Differences that are not mended, each with its reason: onnxruntime's fault, or what the standard (ONNX's
Operators.md, opset of the node) leaves open."""
import platform
import re
from fractions import Fraction

import numpy as np
from onnx import helper
from graph import is_float

# x86 without VNNI.
SATURATES = platform.machine() == "x86_64" and "vnni" not in open("/proc/cpuinfo").read()

# (operators, which cases, reason).  A case gets the node, the values of its inputs, and what was said.
KNOWN = []


def known(*ops):
    def add(f):
        KNOWN.append((ops, f, " ".join(f.__doc__.split())))
        return f
    return add


def reason(node, g, kind, text):
    """Why this node may differ; None: it may not."""
    ins = [g.value(i) if i in g.tensors else None for i in node.ins]
    with np.errstate(all="ignore"):
        return next((why for ops, f, why in KNOWN if node.op in ops and f(node, ins, text)), None)


def has_nan(x):
    return x is not None and is_float(x.dtype) and bool(np.isnan(x).any())


def attr(node, name, default):
    return node.attrs.get(name, default)


def among(text, cells):
    """Are the cells that differ, as far as the text says which, of these?"""
    m = re.search(r": (\d+) of \d+: .* at (\d+)$", text)
    return m is not None and int(m[1]) <= cells.sum() and bool(np.ravel(cells)[int(m[2])])


def reduced_axes(node, ins):
    """The axes of a reduction."""
    axes = attr(node, "axes", None) if len(ins) < 2 or ins[1] is None else ins[1].tolist()
    if not axes:
        return () if attr(node, "noop_with_empty_axes", 0) else tuple(range(ins[0].ndim))
    return tuple(a % ins[0].ndim for a in axes)


def to_integer(x, dtype):
    """x without its fraction; NaN where no such integer has that."""
    info, t = np.iinfo(dtype), np.trunc(np.asarray(x, np.float64))
    return np.where((t >= float(info.min)) & (t < float(info.max)), t, np.nan)


@known("ReduceMax", "ReduceMin")
def extremum_of_no_bool(node, ins, text):
    """The largest of no cells is the least of the type, as the standard has it; onnxruntime refuses that of bool."""
    return ins[0].dtype == bool and ins[0].size == 0 and text.startswith("accepted")


@known("MaxPool", "GlobalMaxPool", "ReduceMax", "ReduceMin", "ReduceLogSumExp", "ArgMax", "ArgMin", "Hardmax")
def nan_extreme(node, ins, text):
    """The largest of numbers and a NaN is left open.  Ours is NaN, as numpy's, by which the reference is
    written; onnxruntime's hangs on where the NaN stands, on the type and on the vectors of the machine."""
    return has_nan(ins[0])


@known("TopK")
def nan_order(node, ins, text):
    """The order of NaN is left open.  Ours is numpy's, NaN is the largest."""
    return has_nan(ins[0])


@known("Sign")
def nan_sign(node, ins, text):
    """The sign of NaN is left open.  Ours is NaN, as numpy's; onnxruntime says 0."""
    return has_nan(ins[0]) and "nan" in text


@known("LogSoftmax")
def infinite_rows(node, ins, text):
    """A row with an infinity, or whose exponentials vanish, has no softmax; of f64 onnxruntime gives x - inf
    for its finite numbers, of f32 NaN, as we for both."""
    return ins[0].dtype == np.float64 and not np.isfinite(ins[0]).all()


@known("NonZero")
def nonzero_scalar(node, ins, text):
    """Of a scalar the result is [0, n], says the standard, unlike numpy; onnxruntime gives [1, n]."""
    return ins[0].ndim == 0 and ("shape (0," in text or "is Tensor[(0, " in text)


@known("Split")
def split_empty(node, ins, text):
    """More outputs than pieces of the rounded up size leave nothing for the last, which the standard lets be
    smaller than the others; onnxruntime refuses that."""
    return "num_outputs" in node.attrs and "Invalid value in 'split'" in text


@known("Squeeze")
def squeeze_nothing(node, ins, text):
    """Axes that are given and empty remove nothing, as the standard's shape inference has it; onnxruntime
    takes them for not given."""
    return len(ins) > 1 and ins[1].size == 0 and "shape" in text


@known("HannWindow", "HammingWindow", "BlackmanWindow")
def window_of_one(node, ins, text):
    """A symmetric window of one cell divides 0 by 0; ours is the value at 0."""
    return attr(node, "periodic", 1) == 0 and ins[0] == 1


@known("AffineGrid")
def grid_of_one(node, ins, text):
    """The corners of an axis of one cell are left open: ours is its middle, as PyTorch's; onnxruntime's is 1."""
    return attr(node, "align_corners", 0) == 1 and 1 in ins[1][2:]


@known("Col2Im")
def columns_of_volumes(node, ins, text):
    """Of one axis, or three and more, with dilations onnxruntime takes other cells than the standard's reference; ours are the latter's."""
    return len(ins[1]) != 2 and max(attr(node, "dilations", [1])) > 1


@known("MeanVarianceNormalization")
def no_variance(node, ins, text):
    """The standard's function adds 1e-9, so that cells that are all equal give 0; onnxruntime does not."""
    return "instead of np.float32(nan)" in text or "instead of np.float32(inf)" in text or "instead of np.float32(-inf)" in text


@known("Dropout")
def old_mask(node, ins, text):
    """Before opset 12 the mask of inference is not filled."""
    return "output t" in text and len(node.outs) > 1


@known("ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceL1", "ReduceL2", "ReduceSumSquare",
       "ReduceLogSum", "ReduceLogSumExp", "Squeeze", "MeanVarianceNormalization")
def axes_twice(node, ins, text):
    """An axis that is given twice is refused, as numpy does; onnxruntime takes it for one."""
    return "is given twice" in text or "axes are given for a tensor of" in text


@known("ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceL1", "ReduceL2", "ReduceSumSquare",
       "ReduceLogSum", "ReduceLogSumExp", "ArgMax", "ArgMin")
def reduced_nothing(node, ins, text):
    """Of an empty tensor onnxruntime keeps axes that are reduced, where they are negative."""
    return ins[0].size == 0 and "shape" in text


@known("Shrink")
def shrink_f32(node, ins, text):
    """onnxruntime's numbers are f32 in between, whatever the type: f64 loses digits, integers above 2^24
    too, and of unsigned ones it converts a negative number, which is undefined."""
    def shrink(x, t):
        lambd, bias = t(np.float32(attr(node, "lambd", 0.5))), t(np.float32(attr(node, "bias", 0)))
        return np.where(x < -lambd, x + bias, np.where(x > lambd, x - bias, t(0))).astype(np.float64)
    exact, short = shrink(ins[0].astype(np.float64), np.float64), shrink(ins[0].astype(np.float32), np.float32)
    if not is_float(ins[0].dtype):
        exact, short = to_integer(exact, ins[0].dtype), to_integer(short, ins[0].dtype)
    return ins[0].dtype not in (np.float32, np.float16) and among(text, exact != short)


@known("ReduceLogSum")
def integer_log(node, ins, text):
    """The logarithm of a sum that is not above 0, or that its integers do not hold, is none of theirs."""
    if is_float(ins[0].dtype):
        return False
    total = np.sum(ins[0].astype(object), axis=reduced_axes(node, ins), keepdims=True)
    return among(text, np.array((total <= 0) | (total > np.iinfo(ins[0].dtype).max), bool))


@known("ReduceLogSum")
def log_of_little(node, ins, text):
    """Where terms cancel, the sum has the error of its terms, which is a large part of a logarithm near 0."""
    if not is_float(ins[0].dtype):
        return False
    x, axes, unit = ins[0].astype(np.float64), reduced_axes(node, ins), float(np.finfo(ins[0].dtype).eps)
    total, terms = (np.sum(t, axis=axes, keepdims=True) for t in (x, np.abs(x)))
    log = np.abs(np.log(total))
    return among(text, 4 * unit * terms / np.abs(total) > max(1e-5, 8 * unit) * log[np.isfinite(log)].max(initial=0))


@known("ReduceLogSumExp")
def integer_exponentials(node, ins, text):
    """onnxruntime rounds each exponential to an integer, so that only the largest numbers count; ours rounds
    the result.  The logarithm of nothing is -inf, which no integer is."""
    if is_float(ins[0].dtype):
        return False
    if ins[0].size == 0:
        return " instead of np." in text
    x, axes = ins[0].astype(np.float64), reduced_axes(node, ins)
    top = x.max(axis=axes, keepdims=True)
    exact = to_integer(top + np.log(np.sum(np.exp(x - top), axis=axes, keepdims=True)), ins[0].dtype)
    few = to_integer(top + np.trunc(np.log(np.sum(x == top, axis=axes, keepdims=True))), ins[0].dtype)
    if axes == ():  # nothing is reduced: each number's exponential and the logarithm of that
        few = to_integer(np.log(np.trunc(np.exp(x))), ins[0].dtype)
    return among(text, exact != few)


@known("QLinearSoftmax")
def softmax_of_one(node, ins, text):
    """A certain 1 is 256 steps of 1/256: ours is 255, the largest there is, onnxruntime's overflows to 0."""
    return "255) instead of np.uint8(0)" in text or "127) instead of np.int8(-128)" in text


@known("ArgMax", "ArgMin")
def extremum_of_none(node, ins, text):
    """Nothing has no largest element: refused, as numpy does; onnxruntime gives 0."""
    return ins[0].size == 0 and "the extremum of an empty dimension" in text


@known("Slice")
def backwards_to_the_end(node, ins, text):
    """A slice backwards from a cell to one after it is empty, as numpy's; onnxruntime takes the largest
    integer as an end for the beginning."""
    return len(ins) > 4 and any(e in (2 ** 31 - 1, 2 ** 63 - 1) and s < 0 for e, s in zip(ins[2], ins[4]))


@known("ReduceMean", "GlobalAveragePool", "AveragePool")
def mean_of_none(node, ins, text):
    """The mean of nothing is left open.  Ours is NaN, as numpy's; onnxruntime's is 0."""
    return ins[0].size == 0


@known("MaxPool", "AveragePool", "LpPool")
def same_and_dilated(node, ins, text):
    """With SAME_* a size is the input's by the stride, rounded up, whatever the dilation; onnxruntime takes
    away what a dilated window adds."""
    return "SAME" in str(attr(node, "auto_pad", "")) and max(attr(node, "dilations", [1])) > 1


@known("ConvTranspose")
def same_and_stride(node, ins, text):
    """With SAME_* a size is the input's times the stride, also where windows are smaller than that;
    onnxruntime pads nothing then and gives less."""
    return "SAME" in str(attr(node, "auto_pad", "")) and "shape" in text


@known("GlobalMaxPool", "MaxPool")
def lowest(node, ins, text):
    """The largest of infinities below 0 is one; onnxruntime starts from the lowest finite number."""
    return "(-inf) instead of np.float" in text


@known("Softplus")
def halves(node, ins, text):
    """onnxruntime's exponential overflows in f16 and f64; the result does not."""
    return ins[0].dtype != np.float32 and re.search(r"instead of np\.float\d\d\(inf\)", text) is not None


@known("Range")
def added_up(node, ins, text):
    """start + i * delta, says the standard; onnxruntime adds delta up, with its rounding each time."""
    return is_float(ins[0].dtype) and "instead" in text


@known("Resize")
def negative_axes_of_policy(node, ins, text):
    """onnxruntime applies keep_aspect_ratio_policy to other axes than the negative ones that are named."""
    return "keep_aspect_ratio_policy" in node.attrs and min(attr(node, "axes", [0])) < 0


@known("MaxPool", "AveragePool", "LpPool")
def same_and_cropped(node, ins, text):
    """With SAME_* and windows smaller than the stride the padding is below 0.  Ours is none; onnxruntime crops."""
    return "SAME" in str(attr(node, "auto_pad", "")) and any(
        k < s for k, s in zip(node.attrs["kernel_shape"], attr(node, "strides", [1] * 9)))


@known("Pad")
def nothing_to_copy(node, ins, text):
    """Of an empty tensor, or one of which all is cut off, nothing is copied where nothing is added to its empty
    axes; onnxruntime refuses that: periodic padding of empty tensors, all but constants of what is cut off."""
    if not text.startswith("accepted") or attr(node, "mode", "constant") == "constant":
        return False
    pads, dims = np.array(node.attrs["pads"] if len(ins) < 2 else ins[1]).reshape(2, -1), ins[0].shape
    axes = range(len(dims)) if len(ins) < 4 or ins[3] is None else ins[3]
    left = {int(a) % len(dims): dims[a] + min(lo, 0) + min(hi, 0) for a, lo, hi in zip(axes, *pads)}
    added = {int(a) % len(dims): max(lo, hi) for a, lo, hi in zip(axes, *pads)}
    if any(left[a] < 1 and added[a] > 0 for a in left):
        return False
    return "Unexpected mode of 3" in text and ins[0].size == 0 or "zero effective input extent" in text and 0 in left.values()


@known("CumSum", "Softmax", "LogSoftmax", "Hardmax")
def wrong_of_empty(node, ins, text):
    """An axis outside of the tensor is refused; onnxruntime does not look where nothing is computed."""
    return ins[0].size == 0 and "is outside a tensor" in text


@known("LpPool", "AveragePool", "MaxPool")
def window_too_large(node, ins, text):
    """A window larger than the padded input is refused; onnxruntime's result is empty."""
    return "does not fit into dimension" in text or "a window of" in text


@known("ArgMax", "ArgMin")
def scalars(node, ins, text):
    """A scalar has no axis: refused, as from opset 11 on by onnxruntime, too."""
    return ins[0].ndim == 0 and "has 0 dimensions" in text


@known("Mod")
def whole_fmod(node, ins, text):
    """Integers that no f64 holds: onnxruntime takes the remainder of f64."""
    return ins[0].dtype in (np.int64, np.uint64) and attr(node, "fmod", 0) == 1


@known("MatMul")
def product_of_nothing(node, ins, text):
    """Matrices of no rows times a vector are vectors of no numbers, as numpy's; onnxruntime refuses them."""
    return "cannot broadcast" in text and any(x.size == 0 for x in ins)


@known("ReduceProd")
def large_products(node, ins, text):
    """A product that its integers do not hold is left open: ours is taken modulo 2^n, as numpy's."""
    x = ins[0]
    return not is_float(x.dtype) and int(np.prod(np.abs(x.astype(object))[x != 0])) > np.iinfo(x.dtype).max


@known("ReduceProd")
def products_in_order(node, ins, text):
    """Where factors multiplied in one order overflow and in another vanish, the result is left open."""
    x = ins[0]
    if not is_float(x.dtype) or not x.size:
        return False
    size, f = np.log2(np.abs(x[np.isfinite(x) & (x != 0)].astype(np.float64))), np.finfo(x.dtype)
    return size[size > 0].sum() > f.maxexp - 1 and (size[size < 0].sum() < f.minexp or not x.all())


@known("Resize")
def cropped_ties(node, ins, text):
    """A place in the middle of two cells but for the rounding of f32, in which onnxruntime computes it; ours is f64."""
    if attr(node, "coordinate_transformation_mode", "") != "tf_crop_and_resize" or attr(node, "mode", "nearest") != "nearest":
        return False
    axes, n = [a % ins[0].ndim for a in attr(node, "axes", range(ins[0].ndim))], len(ins[1]) // 2
    for k, a in enumerate(axes):
        size = ins[0].shape[a]
        out = int(ins[3][k]) if len(ins) > 3 and ins[3] is not None and ins[3].size else int(np.floor(size * ins[2][k]))
        first, last = float(ins[1][k]), float(ins[1][n + k])
        if out > 1:
            at = first * (size - 1) + np.arange(out) * (last - first) * (size - 1) / (out - 1)
            if (np.abs(at - np.floor(at) - 0.5) < 1e-5).any():
                return True
    return False


@known("Clip")
def clipped_halves(node, ins, text):
    """A bound that is not given is the type's largest number.  onnxruntime clips halves in f32, whose largest
    no f16 reaches, so that infinities stay."""
    given = [k in node.attrs or (len(ins) > i and ins[i] is not None) for i, k in ((1, "min"), (2, "max"))]
    return ins[0].dtype == np.float16 and not all(given) and "6.55e+04) instead of np.float16(" in text and "inf)" in text


@known("Cast", "CastLike")
def beyond_the_type(node, ins, text):
    """A float that its integers do not hold has no value there.  Ours is the nearest that they hold, and 0 of
    NaN; onnxruntime's is what its processor's instruction gives."""
    to = ins[1].dtype if len(ins) > 1 else helper.tensor_dtype_to_np_dtype(node.attrs["to"])
    return is_float(ins[0].dtype) and np.issubdtype(to, np.integer) and among(text, np.isnan(to_integer(ins[0], to)))


@known("QuantizeLinear")
def quantized_nan(node, ins, text):
    """NaN is no step of any scale."""
    return among(text, np.isnan(ins[0]))


@known("Clip")
def bound_of_nan(node, ins, text):
    """A bound that is NaN gives NaN, as numpy's; onnxruntime takes it for none where it is an input, and
    refuses it as an attribute."""
    if any(np.isnan(node.attrs.get(k, 0)) for k in ("min", "max")):
        return "Clip_6Base" in text
    return any(map(has_nan, ins[1:])) and "(nan) instead" in text


@known("Resize", "Upsample")
def nearest_of_scales(node, ins, text):
    """A stated scale is a float that stands for a fraction, 0.6 for 3/5.  Ours takes cells where that says;
    onnxruntime divides floats, so that rounding decides where the fraction says a whole number or a half."""
    if attr(node, "mode", "nearest") != "nearest":
        return False
    at = 2 if len(ins) > 2 else 1
    scales = attr(node, "scales", ins[at] if len(ins) > at else None)
    if scales is None or not len(scales):
        return False
    half = attr(node, "coordinate_transformation_mode", "half_pixel" if len(ins) > 2 else "asymmetric").find("half_pixel") >= 0
    how = attr(node, "nearest_mode", "round_prefer_floor" if len(ins) > 2 else "floor")
    for scale in np.asarray(scales, np.float32):
        near = Fraction(float(scale)).limit_denominator(1000)
        for y in range(100):
            exact = (y + Fraction(1, 2)) / near - Fraction(1, 2) if half else y / near
            short = (np.float32(y) + np.float32(0.5)) / scale - np.float32(0.5) if half else np.float32(y) / scale
            tie = 2 * exact if how.startswith("round") else exact
            if tie.denominator == 1 and Fraction(float(short)) != exact and (half or scale not in (1, 2)):
                return True
    return False


@known("LSTM", "GRU", "RNN", "Loop", "Scan")
def rounds_cancel(node, ins, text):
    """Where the terms of a round cancel, the error of what is left is that of the terms, over all rounds; the exact
    value may be nearer to ours."""
    m = re.search(r": 1 of \d+: np.float32\((\S+)\) instead of np.float32\((\S+)\) at ", text)
    if m is None:
        return False
    terms = [np.abs(x).max(initial=1) for x in ins if x is not None and is_float(x.dtype)]
    return abs(float(m[1]) - float(m[2])) <= 2 * np.finfo(np.float32).eps * max(terms)


@known("QGemm", "QLinearConv", "QLinearMatMul", "MatMulInteger", "ConvInteger")
def ends_at_16_bits(node, ins, text):
    """x86 without VNNI adds two products of u8 and i8 in 16 bits, and onnxruntime lets them end at 32767."""
    factors = [x for x in (ins[0], ins[3 if node.op.startswith("Q") else 1]) if x is not None]
    most = 2 * np.prod([int(np.abs(x.astype(np.int64)).max(initial=0)) for x in factors])
    return SATURATES and {x.dtype.name for x in factors} == {"uint8", "int8"} and most > 32767 and ": " in text
