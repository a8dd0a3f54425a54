"""Differences that are not mended, each with its reason: onnxruntime's fault, or what the standard (ONNX's
Operators.md, opset of the node) leaves open."""
import numpy as np
from graph import is_float

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
    return ins[0].dtype != np.float32


@known("ReduceLogSum", "ReduceLogSumExp")
def integer_logs(node, ins, text):
    """onnxruntime rounds each exponential to an integer, and converts NaN to one; ours rounds the result."""
    return not is_float(ins[0].dtype)


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
    """onnxruntime's exponential overflows in f16; the result does not."""
    return ins[0].dtype == np.float16 and "instead of np.float16(inf)" in text


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


@known("CumSum", "LpPool", "AveragePool", "MaxPool")
def wrong_of_empty(node, ins, text):
    """An axis outside of the tensor, or a window larger than it, is refused; onnxruntime does not look where
    nothing is computed."""
    return ins[0].size == 0 and ("is outside a tensor" in text or "does not fit into dimension" in text)


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


@known("Clip")
def halves_before_11(node, ins, text):
    """Before opset 11 a bound that is not given is f32's largest, which no f16 reaches; ours is f16's."""
    return ins[0].dtype == np.float16 and len(ins) == 1 and "6.55e+04) instead of np.float16(" in text
