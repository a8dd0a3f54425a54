"""Graphs of operators that go cell by cell, shape, reduce and gather."""
import numpy as np
from record import C, I, S, model, mx

UNARY = ["abs", "negative", "sign", "floor", "ceil", "trunc", "fix", "exp", "sin", "cos", "tan", "arctan", "sinh", "cosh", "tanh",
         "arcsinh", "erf", "sigmoid", "relu", "round", "rint", "square", "cbrt", "expm1", "degrees", "radians",
         "softsign", "hard_sigmoid", "smooth_l1", "logical_not", "BlockGrad", "identity", "make_loss", "MakeLoss"]
POSITIVE = ["log", "sqrt", "rsqrt", "log1p", "log2", "log10", "reciprocal", "rcbrt", "arccosh"]
WITHIN = ["arcsin", "arccos", "arctanh"]


@model
def unary(m):
    halves = np.array([[-2.5, -1.5, -0.5, 0.5, 1.5, 2.5, 0, 3]], np.float32)
    x = m.x("x", np.concatenate([m.f32(3, 8, lo=-2, hi=2), halves]))
    p, u = m.x("p", m.f32(3, 4, lo=1.1, hi=4)), m.x("u", m.f32(3, 4, lo=-0.9, hi=0.9))
    for n in UNARY:
        m.out(getattr(S, n)(x, name=n))
    for n in POSITIVE:
        m.out(getattr(S, n)(p, name=n))
    for n in WITHIN:
        m.out(getattr(S, n)(u, name=n))
    m.out(S.clip(x, a_min=-0.5, a_max=1, name="clip"), S.smooth_l1(x, scalar=2, name="smooth2"))
    m.out(S.hard_sigmoid(x, alpha=0.5, beta=0.1, name="hard"), C.gradientmultiplier(x, scalar=2, name="gradient"))


@model
def binary(m):
    x, y = m.x("x", m.f32(2, 3, 4, lo=-3, hi=3)), m.x("y", m.f32(2, 3, 4, lo=-2, hi=2))
    r = m.x("r", m.ints(-2, 3, 1, 3, 1))
    whole = m.x("w", m.ints(-2, 3, 2, 3, 4))
    p = m.x("p", m.f32(2, 3, 4, lo=0.2, hi=2))
    for n in ["elemwise_add", "elemwise_sub", "elemwise_mul", "elemwise_div"]:
        m.out(getattr(S, n)(x, y, name=n))
    for n in ["_mod", "_maximum", "_minimum", "_hypot", "_equal", "_not_equal", "_greater", "_greater_equal", "_lesser",
              "_lesser_equal", "_logical_and", "_logical_or", "_logical_xor", "_grad_add"]:
        m.out(getattr(I, n)(whole, y if n in ("_mod", "_maximum") else whole * 2, name="c" + n))
    m.out(I._power(p, x, name="c_power"))
    for n in ["add", "sub", "mul", "maximum", "minimum", "hypot", "mod", "equal", "not_equal", "greater", "greater_equal",
              "lesser", "lesser_equal", "logical_and", "logical_or", "logical_xor"]:
        m.out(getattr(S, "broadcast_" + n)(whole, r, name="b_" + n))
    m.out(S.broadcast_div(r, p, name="b_div"), S.broadcast_power(p, r, name="b_power"))
    m.out(S.add_n(x, y, x, name="add_n"), S.where(whole, x, y, name="where"), S.where(m.x("rows", np.array([0, 1], np.float32)), x, y, name="where_rows"))


@model
def scalars(m):
    x, p = m.x("x", m.ints(-3, 4, 3, 5)), m.x("p", m.f32(2, 3, lo=0.3, hi=2))
    for n in ["_plus", "_minus", "_rminus", "_mul", "_div", "_maximum", "_minimum", "_mod", "_equal", "_not_equal", "_greater",
              "_greater_equal", "_lesser", "_lesser_equal", "_logical_and", "_logical_or", "_logical_xor"]:
        m.out(getattr(I, n + "_scalar")(x, scalar=2, name="s" + n))
    for n in ["_rdiv", "_power", "_rpower", "_rmod"]:
        m.out(getattr(I, n + "_scalar")(p, scalar=1.5, name="s" + n))
    m.out(I._mod_scalar(x, scalar=0, name="mod0"), I._mod_scalar(x, scalar=-3, name="mod3"))


@model
def types(m):
    x, h = m.x("x", m.f32(2, 3, lo=-3, hi=3)), m.x("h", m.f32(2, 3).astype(np.float16))
    m.out(S.Cast(x, dtype="int32", name="whole"), S.Cast(x, dtype="float16", name="half"), S.Cast(x, dtype="bool", name="truth"))
    m.out(S.amp_cast(x, dtype="float16", name="amp"), S.amp_multicast(x, h, num_outputs=2, name="wide"))
    m.out(S.amp_multicast(x, h, num_outputs=2, cast_narrow=True, name="narrow"))


@model
def reshape(m):
    x = m.x("x", m.f32(2, 3, 4, 5))
    for i, (shape, reverse) in enumerate([((6, -1), 0), ((0, -1), 0), ((0, 0, -1), 0), ((-2,), 0), ((0, -3, 0), 0), ((0, 0, -3), 0),
                                          ((-4, 1, 2, -2), 0), ((-4, -1, 2, 0, 0, 0), 0), ((0, 0, -4, 2, -1, 0), 0), ((-3, -3), 0),
                                          ((-1, 0), 1), ((-1, 5), 1), ((3, 2, 0, 0), 0), ((-3, 0, 0), 1)]):
        m.out(S.Reshape(x, shape=shape, reverse=reverse, name=f"r{i}"))
    m.out(S.Flatten(x, name="flatten"), S.expand_dims(x, axis=-1, name="more"), S.expand_dims(x, axis=1, name="one"))
    m.out(S.transpose(x, name="turned"), S.transpose(x, axes=(0, 2, 3, 1), name="last"), S.SwapAxis(x, dim1=1, dim2=3, name="swap"))
    m.out(S.reshape_like(x, m.x("like", m.f32(4, 30)), name="like_all"))
    m.out(S.reshape_like(x, m.x("part", m.f32(7, 12, 2)), lhs_begin=1, lhs_end=3, rhs_begin=1, rhs_end=2, name="like_part"))
    t = m.x("thin", m.f32(1, 3, 1, 2))
    m.out(S.squeeze(t, name="squeeze"), S.squeeze(t, axis=0, name="squeeze0"), S.squeeze(t, axis=(0, 2), name="squeeze02"))
    m.out(S.broadcast_to(t, shape=(2, 0, 4, 0), name="to"), S.broadcast_axis(t, axis=(0, 2), size=(3, 2), name="axis"))
    m.out(S.broadcast_like(t, m.x("big", m.f32(4, 3, 5, 2)), name="to_like"))
    m.out(S.broadcast_like(t, m.x("other", m.f32(6, 7)), lhs_axes=(0, 2), rhs_axes=(1, 0), name="to_axes"))
    m.out(S.depth_to_space(m.x("deep", m.f32(2, 8, 2, 3)), block_size=2, name="d2s"), S.space_to_depth(m.x("wide", m.f32(2, 3, 4, 6)), block_size=2, name="s2d"))
    m.out(S.tile(x, reps=(2, 1, 2), name="tile"), S.tile(x, reps=(2, 1, 1, 1, 2), name="tile5"), S.repeat(x, repeats=2, axis=1, name="repeat"))
    m.out(S.repeat(t, repeats=3, name="repeat_all"), S.reverse(x, axis=(1, 3), name="reverse"))
    for mode in ["constant", "edge", "reflect"]:
        m.out(S.Pad(x, mode=mode, pad_width=(0, 0, 0, 0, 1, 2, 2, 1), constant_value=0.5 if mode == "constant" else 0, name=mode))


@model
def slices(m):
    x = m.x("x", m.f32(4, 6, 5))
    m.out(S.slice(x, begin=(1, 2), end=(3, 6), name="plain"), S.slice(x, begin=(None, -3), end=(-1, None), name="some"))
    m.out(S.slice(x, begin=(None, 5, 0), end=(None, 0, 4), step=(None, -2, 2), name="back"), S.slice(x, begin=(None,), end=(None,), step=(-1,), name="turned"))
    m.out(S.slice_axis(x, axis=1, begin=2, end=None, name="axis"), S.slice_axis(x, axis=-1, begin=-3, end=-1, name="axis_end"))
    y = m.x("y", m.f32(2, 3, 5))
    m.out(S.slice_like(x, y, name="like"), S.slice_like(x, y, axes=(1,), name="like1"))
    m.out(S.SliceChannel(x, num_outputs=3, name="split"), S.SliceChannel(x, num_outputs=4, axis=0, squeeze_axis=True, name="unstack"))
    m.out(I._split_v2(x, indices=(0, 2, 3), axis=1, name="at"), I._split_v2(x, indices=(), sections=2, axis=0, name="equal"))
    m.out(S.Concat(x, x * 2, dim=1, name="concat"), S.Concat(x, x, x, dim=-1, name="last"), S.stack(x, x, axis=1, name="stack"), S.stack(x, x, axis=-1, name="stack_end"))
    i, j = m.x("i", m.f32(1, 2, 7, 8)), m.x("j", m.f32(1, 3, 4, 5))
    m.out(S.Crop(i, h_w=(3, 4), offset=(1, 2), num_args=1, name="crop"), S.Crop(i, j, num_args=2, center_crop=True, name="centre"))


@model
def reduce(m):
    x = m.x("x", m.f32(3, 4, 5))
    for n in ["sum", "mean", "max", "min", "prod"]:
        f = getattr(S, n)
        m.out(f(x, name=n), f(x, axis=1, name=n + "1"), f(x, axis=(0, 2), keepdims=True, name=n + "02"), f(x, axis=-1, exclude=True, name=n + "_other"))
    m.out(S.nansum(x, axis=1, name="nansum"), S.nanprod(x, axis=(1,), name="nanprod"))
    m.out(S.norm(x, name="norm"), S.norm(x, ord=1, axis=1, name="norm1"), S.norm(x, axis=(0, 1), keepdims=True, name="norm2"))
    m.out(S.moments(x, axes=(0, 2), name="moments"), S.moments(x, axes=(1,), keepdims=True, name="kept"))
    for n in ["argmax", "argmin"]:
        f = getattr(S, n)
        m.out(f(x, axis=1, name=n), f(x, axis=-1, keepdims=True, name=n + "_kept"), f(x, name=n + "_all"))
    m.out(S.argmax_channel(m.x("rows", m.f32(3, 6)), name="channel"))
    m.out(S.topk(x, k=2, name="topk"), S.topk(x, k=3, axis=1, ret_typ="value", name="value"), S.topk(x, k=2, axis=0, ret_typ="both", is_ascend=True, dtype="int32", name="both"))
    m.out(S.topk(x, axis=None, k=4, name="topk_all"))
    m.out(S.sort(x, name="sort"), S.sort(x, axis=0, is_ascend=False, name="sort_down"), S.argsort(x, axis=1, name="argsort"), S.argsort(x, axis=None, is_ascend=False, name="argsort_all"))


@model
def gather(m):
    x = m.x("x", m.f32(4, 5, 3))
    at = m.x("at", m.ints(-2, 7, 2, 3))
    m.out(S.take(x, at, name="take"), S.take(x, at, axis=1, mode="wrap", name="wrap"), S.take(x, m.x("one", m.ints(0, 3, 2)), axis=-1, name="last"))
    m.out(S.Embedding(m.x("words", m.ints(0, 7, 2, 4)), m.w("table", m.f32(7, 3)), input_dim=7, output_dim=3, name="embedding"))
    m.out(S.gather_nd(x, m.x("nd", m.ints(0, 4, 2, 6)), name="gather_nd"))
    m.out(S.scatter_nd(m.x("cells", m.f32(3)), m.x("places", np.array([[0, 1, 3], [2, 0, 1]], np.float32)), shape=(4, 3), name="scatter_nd"))
    rows = m.x("rows", m.f32(4, 5))
    index = m.x("index", m.ints(0, 5, 4))
    m.out(S.pick(rows, index, name="pick"), S.pick(rows, index, axis=1, keepdims=True, name="kept"), S.pick(rows, m.x("beyond", m.ints(-3, 9, 4)), mode="wrap", name="pick_wrap"))
    m.out(S.batch_take(rows, m.x("which", m.ints(0, 5, 4, dtype=np.int32)), name="batch_take"))
    m.out(S.one_hot(index, depth=6, name="one_hot"), S.one_hot(index, depth=3, on_value=2, off_value=-1, dtype="int32", name="marks"))
    m.out(S.unravel_index(m.x("flat", m.ints(0, 60, 5, dtype=np.int64)), shape=(3, 4, 5), name="unravel"))


@model
def sequences(m):
    x, size = m.x("x", m.f32(4, 3, 2)), m.x("size", np.array([1, 4, 2], np.float32))
    rows = m.x("rows", np.array([1, 3, 2, 3], np.float32))
    m.out(S.SequenceMask(x, size, use_sequence_length=True, value=-1, name="mask"), S.SequenceMask(x, name="all"))
    m.out(S.SequenceMask(x, rows, use_sequence_length=True, axis=1, name="mask1"))
    m.out(S.SequenceReverse(x, size, use_sequence_length=True, name="reverse"), S.SequenceReverse(x, name="reverse_all"))
    m.out(S.SequenceLast(x, size, use_sequence_length=True, name="last"), S.SequenceLast(x, name="last_all"), S.SequenceLast(x, rows, use_sequence_length=True, axis=1, name="last1"))


@model
def make(m):
    x = m.x("x", m.f32(2, 3, 4))
    m.out(S.zeros((2, 3), name="zeros"), S.ones((3,), dtype="int32", name="ones"), S.full((2, 2), 1.5, name="full"))
    m.out(S.zeros_like(x, name="zeros_like"), S.ones_like(x, name="ones_like"))
    m.out(S.arange(5, name="arange"), S.arange(1, 7, 1.5, name="steps"), S.arange(0, 3, repeat=2, dtype="int32", name="twice"))
    m.out(C.arange_like(x, name="like"), C.arange_like(x, axis=1, start=2, step=0.5, name="like1"), C.arange_like(x, repeat=2, name="like2"))
    m.out(S.shape_array(x, name="shape"), S.size_array(x, name="size"))
    m.out(x + S.zeros((0, 3, 4), name="unknown"))
