"""Networks of the layers that came with any number of dimensions."""
import numpy as np
import torch
import torch.nn.functional as F

from record import Network, case


def t(x):
    return torch.tensor(np.asarray(x, np.float32))


def floats(rng, *shape):
    return rng.standard_normal(shape).astype(np.float32)


@case
def nd_cells(rng):
    x, y = floats(rng, 2, 3, 4) * 0.9, floats(rng, 3, 1)
    n = Network("nd_cells", {"x": x, "y": y})
    b, X, Y = n.b, t(x), t(y)
    for kind in ("ceil", "floor", "sign", "round", "exp2", "sin", "cos", "tan", "atan", "sinh", "cosh", "tanh", "asinh", "erf"):
        getattr(b, "add_" + kind)(kind, "x", n.out(kind, getattr(torch, kind)(X)))
    b.add_clip("clip", "x", n.out("clip", torch.clamp(X, -0.3, 0.4)), -0.3, 0.4)
    b.add_gelu("gelu", "x", n.out("gelu", F.gelu(X, approximate="tanh")), "TANH_APPROXIMATION")
    b.add_clamped_relu("clamped", "x", n.out("clamped", torch.clamp(torch.where(X >= 0, X, 0.2 * X), max=0.5)), 0.2, 0.5)
    for kind, f in (("add", torch.add), ("subtract", torch.sub), ("multiply", torch.mul), ("divide", torch.div), ("max", torch.maximum), ("min", torch.minimum),
                    ("mod", torch.remainder), ("floor_div", torch.floor_divide)):
        getattr(b, f"add_{kind}_broadcastable")(kind, ["x", "y"], n.out(kind, f(X, Y)))
    for kind, f in (("equal", torch.eq), ("not_equal", torch.ne)):
        getattr(b, "add_" + kind)(kind, ["x", "y"], n.out(kind, f(X, Y).float()))
    b.add_less_than("lt", ["x"], n.out("lt", (X < 0.1).float()), alpha=0.1)
    b.add_less_than("le", ["x", "y"], n.out("le", (X <= Y).float()), use_less_than_equal=True)
    b.add_greater_than("gt", ["x", "y"], n.out("gt", (X > Y).float()))
    b.add_greater_than("ge", ["x"], n.out("ge", (X >= 0.1).float()), use_greater_than_equal=True, alpha=0.1)
    b.add_logical("and", ["lt", "gt"], n.out("and", ((X < 0.1) & (X > Y)).float()), "AND")
    b.add_logical("not", ["lt"], n.out("not", (X >= 0.1).float()), "NOT")
    b.add_where_broadcastable("where", ["lt", "x", "y"], n.out("where", torch.where(X < 0.1, X, Y)))
    n.save()


@case
def nd_shapes(rng):
    x, y = floats(rng, 2, 6, 4), floats(rng, 2, 6, 4)
    n = Network("nd_shapes", {"x": x, "y": y})
    b, X, Y = n.b, t(x), t(y)
    b.add_transpose("transpose", [2, 0, 1], "x", n.out("transpose", X.permute(2, 0, 1)))
    b.add_reshape_static("static", "x", n.out("static", X.reshape(4, 12)), [4, -1])
    b.add_reshape_like("like", ["static", "y"], n.out("like", X))
    b.add_rank_preserving_reshape("keep", "x", n.out("keep", X.reshape(2, 3, 8)), [0, 3, -1])
    b.add_expand_dims("expand", "x", n.out("expand", X[None, :, None]), [0, 2])
    b.add_squeeze("squeeze", "expand", n.out("squeeze", X), [0, 2])
    b.add_flatten_to_2d("two", "x", n.out("two", X.reshape(12, 4)), 2)
    b.add_stack("stack", ["x", "y"], n.out("stack", torch.stack([X, Y], 1)), 1)
    b.add_concat_nd("concat", ["x", "y"], n.out("concat", torch.cat([X, Y], -1)), -1)
    b.add_concat_nd("turns", ["x", "y"], n.out("turns", torch.stack([X, Y], 2).reshape(2, 12, 4)), 1, True)
    b.add_split_nd("split", "x", [n.out("a", X[:, :2]), n.out("b", X[:, 2:4]), n.out("c", X[:, 4:])], 1, 3)
    b.add_split_nd("sizes", "x", [n.out("d", X[:, :1]), n.out("e", X[:, 1:])], 1, 2, [1, 5])
    b.add_tile("tile", "x", n.out("tile", X.repeat(1, 2, 3)), [1, 2, 3])
    b.add_slice_static("slice", "x", n.out("slice", X[0, 1:-1:2, :3]), [0, 1, 0], [1, -1, 3], [1, 2, 1], [False] * 3, [False] * 3, [True, False, False])
    b.add_sliding_windows("windows", "x", n.out("windows", X.unfold(1, 4, 2).permute(0, 1, 3, 2)), 1, 4, 2)
    b.add_constant_pad("pad", ["x"], n.out("pad", F.pad(X, (1, 0, 2, 3), value=0.5)), 0.5, pad_amounts=[0, 0, 2, 3, 1, 0])
    b.add_constant_pad("to_size", ["x"], n.out("to_size", F.pad(X, (3, 0, 0, 2))), 0.0, True, [0, 0, 0, 8, 7, 0])
    b.add_reverse("reverse", "x", n.out("reverse", X.flip(1)), [False, True, False])
    b.add_broadcast_to_static("broadcast", "y", n.out("broadcast", Y.expand(3, 2, 6, 4)), [3, 2, 6, 4])
    b.add_broadcast_to_like("broadcast_like", ["y", "broadcast"], n.out("broadcast_like", Y.expand(3, 2, 6, 4)))
    b.add_get_shape("shape", "x", n.out("shape", t(X.shape)))
    b.add_reshape_dynamic("dynamic", ["two", "shape"], n.out("dynamic", X))
    b.add_fill_static("fill", n.out("fill", torch.full((2, 3), 1.5)), [2, 3], 1.5)
    b.add_fill_like("fill_like", "x", n.out("fill_like", torch.full_like(X, 2)), 2.0)
    b.add_fill_dynamic("fill_dynamic", "shape", n.out("fill_dynamic", torch.full_like(X, 3)), 3.0)
    b.add_range_static("range", n.out("range", torch.arange(1, 4, 0.5)), None, 4, 1, 0.5)
    b.add_load_constant_nd("const", n.out("const", y), y, [2, 6, 4])
    b.add_copy("copy", "x", n.out("copy", X))
    b.add_matrix_band_part("band", "x", n.out("band", X.triu(-1).tril(2)), 1, 2)
    b.add_lower_triangular("lower", "x", n.out("lower", X.tril(1)), 1)
    b.add_upper_triangular("upper", "x", n.out("upper", X.triu(1)), 1)
    n.save()


@case
def nd_reductions(rng):
    x = floats(rng, 2, 3, 4)
    n = Network("nd_reductions", {"x": x})
    b, X = n.b, t(x)
    b.add_reduce_sum("sum", "x", n.out("sum", X.sum((0, 2))), [0, 2], False)
    b.add_reduce_mean("mean", "x", n.out("mean", X.mean(1, keepdim=True)), [1], True)
    b.add_reduce_max("max", "x", n.out("max", X.amax(-1)), [-1], False)
    b.add_reduce_min("min", "x", n.out("min", X.amin(1)), [1], False)
    b.add_reduce_prod("prod", "x", n.out("prod", X.prod(1)), [1], False)
    b.add_reduce_l1("l1", "x", n.out("l1", X.abs().sum(1)), [1], False)
    b.add_reduce_l2("l2", "x", n.out("l2", X.norm(dim=1)), [1], False)
    b.add_reduce_sumsquare("squares", "x", n.out("squares", (X * X).sum(1)), [1], False)
    b.add_reduce_logsumexp("lse", "x", n.out("lse", X.logsumexp(1)), [1], False)
    b.add_argmax("argmax", "x", n.out("argmax", X.argmax(1).float()), 1, False)
    b.add_argmin("argmin", "x", n.out("argmin", X.argmin(2, keepdim=True).float()), 2, True)
    v, i = X.topk(2, 2)
    b.add_topk("topk", ["x"], [n.out("values", v), n.out("places", i.float())], 2, 2)
    b.add_argsort("argsort", "x", n.out("argsort", X.argsort(2).float()), 2, False)
    b.add_cumsum("cumsum", ["x"], n.out("cumsum", X.cumsum(1)), 1)
    b.add_softmax_nd("softmax", "x", n.out("softmax", F.softmax(X, 1)), 1)
    g, h = floats(rng, 3, 4), floats(rng, 3, 4)
    b.add_layer_normalization("norm", "x", n.out("norm", F.layer_norm(X, (3, 4), t(g), t(h), 1e-3)), [3, 4], g, h, 1e-3)
    n.save()


@case
def nd_products(rng):
    x, y, w, bias = floats(rng, 2, 3, 4), floats(rng, 2, 4, 5), floats(rng, 4, 5), floats(rng, 5)
    at, img, vol = np.array([[2.0, 0.0], [1.0, 3.0]], np.float32), floats(rng, 2, 3, 6, 5), floats(rng, 1, 2, 4, 5, 3)
    n = Network("nd_products", {"x": x, "y": y, "at": at, "img": img, "vol": vol})
    b, X, Y, I, V = n.b, t(x), t(y), t(img), t(vol)
    b.add_batched_mat_mul("product", ["x", "y"], n.out("product", X @ Y))
    b.add_batched_mat_mul("weights", ["x"], n.out("weights", X @ t(w) + t(bias)), weight_matrix_rows=4, weight_matrix_columns=5, W=w, bias=bias)
    b.add_inner_product("dense", w.T.copy(), bias, 4, 5, True, "x", n.out("dense", X @ t(w) + t(bias)))
    e, f = floats(rng, 6, 4), floats(rng, 6)
    b.add_expand_dims("words", "at", "words", [2])
    b.add_embedding_nd("embedding", "words", n.out("embedding", t(e).T[at.astype(int)] + t(f)), 4, 6, e, f)
    b.add_gather("gather", ["y", "at"], n.out("gather", Y[:, at.astype(int)]), 1)
    b.add_one_hot("one_hot", ["at"], n.out("one_hot", F.one_hot(t(at).long(), 4).float()), 4)
    c = floats(rng, 4, 3, 3, 3)
    b.add_convolution("conv", 3, 4, 3, 3, 1, 1, "valid", 1, c.transpose(2, 3, 1, 0), None, False, input_name="img", output_name=n.out("conv", F.conv2d(I, t(c))))
    b.add_pooling("pool", 2, 2, 2, 2, "AVERAGE", "VALID", "img", n.out("pool", F.avg_pool2d(I, 2)))
    b.add_upsample("up", 2, 2, "img", n.out("up", F.interpolate(I, scale_factor=2)), "NN")
    b.add_pooling3d("max3", "vol", n.out("max3", F.max_pool3d(V, (2, 2, 1), (2, 2, 1))), "MAX", 2, 2, 1, 2, 2, 1)
    b.add_global_pooling3d("mean3", "vol", n.out("mean3", V.mean((2, 3, 4), keepdim=True)), "AVERAGE")
    n.save()
