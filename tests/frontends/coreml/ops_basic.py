"""Programs of arithmetic, products and what moves cells."""
import numpy as np
import torch
import torch.nn.functional as F

from record import case, operators


def floats(rng, *shape):
    return rng.standard_normal(shape).astype(np.float32)


def same(name, ref=None, **settings):
    """A row of one operator of x."""
    return name, lambda mb, v: getattr(mb, name)(x=v["x"], **settings), lambda v: (ref or getattr(torch, name))(v["x"])


def row(out, make, ref):
    return out, lambda mb, v: make(mb, **v), lambda v: ref(**v)


@case
def cells(rng):
    x, y = floats(rng, 2, 3) * 0.9, floats(rng, 3)
    rows = [same(n) for n in ("abs", "asin", "acos", "atan", "atanh", "ceil", "cos", "cosh", "erf", "exp", "exp2", "floor", "round", "sign", "sin", "sinh", "square", "tan", "tanh",
                              "sigmoid", "relu")]
    for i, (n, make, ref) in enumerate(rows):
        if n in ("asin", "acos", "atanh"):
            rows[i] = (n, lambda mb, v, n=n: getattr(mb, n)(x=mb.clip(x=v["x"], alpha=-0.9, beta=0.9)), lambda v, n=n: getattr(torch, n)(torch.clamp(v["x"], -0.9, 0.9)))
    rows += [same("relu6", F.relu6), same("silu", F.silu), same("softplus", F.softplus), same("softsign", F.softsign),
             same("clip", lambda x: torch.clamp(x, -0.5, 0.25), alpha=-0.5, beta=0.25), same("threshold", lambda x: torch.clamp(x, min=0.1), alpha=0.1),
             same("leaky_relu", lambda x: F.leaky_relu(x, 0.2), alpha=0.2), same("elu", lambda x: F.elu(x, 0.7), alpha=0.7),
             same("linear_activation", lambda x: 2 * x - 1, alpha=2.0, beta=-1.0), same("scaled_tanh", lambda x: 1.5 * torch.tanh(0.5 * x), alpha=1.5, beta=0.5),
             same("sigmoid_hard", lambda x: torch.clamp(0.3 * x + 0.4, 0, 1), alpha=0.3, beta=0.4), same("thresholded_relu", lambda x: torch.where(x >= 0.3, x, 0.0), alpha=0.3),
             same("clamped_relu", lambda x: torch.clamp(torch.where(x >= 0, x, 0.2 * x), max=0.5), alpha=0.2, beta=0.5),
             row("gelu", lambda mb, x, **_: mb.gelu(x=x), lambda x, **_: F.gelu(x)),
             row("gelu_tanh", lambda mb, x, **_: mb.gelu(x=x, mode="TANH_APPROXIMATION"), lambda x, **_: F.gelu(x, approximate="tanh")),
             row("gelu_sigmoid", lambda mb, x, **_: mb.gelu(x=x, mode="SIGMOID_APPROXIMATION"), lambda x, **_: x * torch.sigmoid(1.702 * x)),
             row("log", lambda mb, x, **_: mb.log(x=mb.square(x=x), epsilon=1e-3), lambda x, **_: torch.log(x * x + 1e-3)),
             row("rsqrt", lambda mb, x, **_: mb.rsqrt(x=mb.square(x=x), epsilon=1e-3), lambda x, **_: torch.rsqrt(x * x + 1e-3)),
             row("sqrt", lambda mb, x, **_: mb.sqrt(x=mb.square(x=x)), lambda x, **_: x.abs()),
             row("inverse", lambda mb, x, **_: mb.inverse(x=mb.square(x=x), epsilon=1e-2), lambda x, **_: 1 / (x * x + 1e-2)),
             same("softmax", lambda x: F.softmax(x, -1), axis=-1)]
    for n, f in (("add", torch.add), ("sub", torch.sub), ("mul", torch.mul), ("real_div", torch.div), ("maximum", torch.maximum), ("minimum", torch.minimum),
                 ("mod", torch.remainder), ("floor_div", torch.floor_divide)):
        rows.append(row(n, lambda mb, x, y, n=n: getattr(mb, n)(x=x, y=y), lambda x, y, f=f: f(x, y)))
    rows.append(row("pow", lambda mb, x, y: mb.pow(x=mb.abs(x=x), y=y), lambda x, y: x.abs() ** y))
    for n, f in (("equal", torch.eq), ("not_equal", torch.ne), ("less", torch.lt), ("less_equal", torch.le), ("greater", torch.gt), ("greater_equal", torch.ge)):
        rows.append(row(n, lambda mb, x, y, n=n: getattr(mb, n)(x=x, y=y), lambda x, y, f=f: f(x, y)))
    for n, f in (("logical_and", torch.logical_and), ("logical_or", torch.logical_or), ("logical_xor", torch.logical_xor)):
        rows.append(row(n, lambda mb, x, y, n=n: getattr(mb, n)(x=mb.greater(x=x, y=0.0), y=mb.greater(x=x, y=y)), lambda x, y, f=f: f(x > 0, x > y)))
    rows.append(row("logical_not", lambda mb, x, y: mb.logical_not(x=mb.greater(x=x, y=y)), lambda x, y: ~(x > y)))
    rows.append(row("select", lambda mb, x, y: mb.select(cond=mb.greater(x=x, y=0.0), a=x, b=mb.mul(x=x, y=y)), lambda x, y: torch.where(x > 0, x, x * y)))
    rows.append(row("cast", lambda mb, x, y: mb.cast(x=x, dtype="int32"), lambda x, y: x.int()))
    operators("cells", {"x": x, "y": y}, rows)


@case
def whole(rng):
    """Operators of whole numbers."""
    x, y = rng.integers(-9, 9, (2, 4)).astype(np.int32), rng.integers(1, 5, (4,)).astype(np.int32)
    operators("whole", {"x": x, "y": y}, [
        row("floor_div", lambda mb, x, y: mb.floor_div(x=x, y=y), lambda x, y: torch.floor_divide(x, y)),
        row("mod", lambda mb, x, y: mb.mod(x=x, y=y), lambda x, y: torch.remainder(x, y)),
        row("add", lambda mb, x, y: mb.add(x=x, y=y), lambda x, y: x + y),
        row("max", lambda mb, x, y: mb.reduce_max(x=x, axes=[1]), lambda x, y: x.amax(1)),
        row("float", lambda mb, x, y: mb.cast(x=x, dtype="fp32"), lambda x, y: x.float())])


@case
def channels(rng):
    """What has numbers for each channel, and norms."""
    x = floats(rng, 2, 4, 3, 5)
    g, h, m, s = (floats(rng, 4) for _ in range(4))
    s = np.abs(s) + 0.1
    t = torch.tensor
    C = lambda v: t(v)[:, None, None]
    lw, lb = floats(rng, 3, 5), floats(rng, 3, 5)
    operators("channels", {"x": x}, [
        row("prelu", lambda mb, x: mb.prelu(x=x, alpha=g), lambda x: F.prelu(x, t(g))),
        row("softplus", lambda mb, x: mb.softplus_parametric(x=x, alpha=g, beta=h), lambda x: C(g) * torch.log(1 + torch.exp(C(h) * x))),
        row("batch_norm", lambda mb, x: mb.batch_norm(x=x, mean=m, variance=s, gamma=g, beta=h, epsilon=1e-3), lambda x: F.batch_norm(x, t(m), t(s), t(g), t(h), eps=1e-3)),
        row("batch_norm_plain", lambda mb, x: mb.batch_norm(x=x, mean=m, variance=s), lambda x: F.batch_norm(x, t(m), t(s))),
        row("instance_norm", lambda mb, x: mb.instance_norm(x=x, gamma=g, beta=h, epsilon=1e-3), lambda x: F.instance_norm(x, weight=t(g), bias=t(h), eps=1e-3)),
        row("layer_norm", lambda mb, x: mb.layer_norm(x=x, axes=[2, 3], gamma=lw, beta=lb, epsilon=1e-3), lambda x: F.layer_norm(x, (3, 5), t(lw), t(lb), 1e-3)),
        row("layer_norm_channels", lambda mb, x: mb.layer_norm(x=x, axes=[1], gamma=g, beta=h, epsilon=1e-3),
            lambda x: F.layer_norm(x.permute(0, 2, 3, 1), (4,), t(g), t(h), 1e-3).permute(0, 3, 1, 2)),
        row("layer_norm_plain", lambda mb, x: mb.layer_norm(x=x, axes=[-1]), lambda x: F.layer_norm(x, (5,))),
        row("l2_norm", lambda mb, x: mb.l2_norm(x=x, epsilon=1e-3), lambda x: x / torch.sqrt((x * x).sum((1, 2, 3), keepdim=True) + 1e-3)),
        row("lrn", lambda mb, x: mb.local_response_norm(x=x, size=3, alpha=0.3, beta=0.6, k=1.5), lambda x: F.local_response_norm(x, 3, 0.3, 0.6, 1.5)),
        row("softmax", lambda mb, x: mb.softmax(x=x, axis=1), lambda x: F.softmax(x, 1))])


@case
def convolved(rng):
    t = torch.tensor
    x, l, d = floats(rng, 1, 4, 7, 6), floats(rng, 2, 4, 9), floats(rng, 1, 2, 4, 5, 4)
    w, g, bias = floats(rng, 3, 4, 3, 2), floats(rng, 8, 2, 3, 3), floats(rng, 8)
    w1, w3, u, u1 = floats(rng, 3, 4, 3), floats(rng, 3, 2, 2, 3, 2), floats(rng, 4, 3, 3, 3), floats(rng, 4, 2, 3)
    operators("convolved", {"x": x, "l": l, "d": d}, [
        row("conv", lambda mb, x, **_: mb.conv(x=x, weight=w, strides=[2, 1], pad_type="custom", pad=[2, 1, 1, 0]), lambda x, **_: F.conv2d(F.pad(x, (1, 0, 2, 1)), t(w), stride=(2, 1))),
        row("groups", lambda mb, x, **_: mb.conv(x=x, weight=g, bias=bias, pad_type="same", groups=2, dilations=[2, 1]),
            lambda x, **_: F.conv2d(x, t(g), t(bias), padding=(2, 1), dilation=(2, 1), groups=2)),
        row("same_lower", lambda mb, x, **_: mb.conv(x=x, weight=w, pad_type="same_lower"), lambda x, **_: F.conv2d(F.pad(x, (1, 0, 1, 1)), t(w))),
        row("conv1", lambda mb, l, **_: mb.conv(x=l, weight=w1, strides=[2], pad_type="valid"), lambda l, **_: F.conv1d(l, t(w1), stride=2)),
        row("conv3", lambda mb, d, **_: mb.conv(x=d, weight=w3, pad_type="custom", pad=[0, 1, 1, 1, 0, 0]), lambda d, **_: F.conv3d(F.pad(d, (0, 0, 1, 1, 0, 1)), t(w3))),
        row("up", lambda mb, x, **_: mb.conv_transpose(x=x, weight=u, strides=[2, 2], pad_type="custom", pad=[1, 1, 1, 0]),
            lambda x, **_: F.conv_transpose2d(x, t(u), stride=2)[:, :, 1:-1, 1:]),
        row("up_same", lambda mb, x, **_: mb.conv_transpose(x=x, weight=u, strides=[2, 2], pad_type="same"), lambda x, **_: F.conv_transpose2d(x, t(u), stride=2)[:, :, :14, :12]),
        row("up_1", lambda mb, l, **_: mb.conv_transpose(x=l, weight=u1, strides=[2], pad_type="valid"), lambda l, **_: F.conv_transpose1d(l, t(u1), stride=2)),
        row("up_shape", lambda mb, x, **_: mb.conv_transpose(x=x, weight=u, strides=[2, 2], pad_type="custom", pad=[1, 1, 1, 1], output_shape=[1, 3, 14, 12]),
            lambda x, **_: F.conv_transpose2d(x, t(u), stride=2, padding=1, output_padding=1)),
        row("max", lambda mb, x, **_: mb.max_pool(x=x, kernel_sizes=[3, 2], strides=[2, 2], pad_type="valid"), lambda x, **_: F.max_pool2d(x, (3, 2), 2)),
        row("max_ceil", lambda mb, x, **_: mb.max_pool(x=x, kernel_sizes=[2, 2], strides=[2, 2], pad_type="custom", pad=[0, 0, 0, 0], ceil_mode=True),
            lambda x, **_: F.max_pool2d(x, 2, 2, ceil_mode=True)),
        row("avg", lambda mb, x, **_: mb.avg_pool(x=x, kernel_sizes=[3, 3], strides=[2, 2], pad_type="custom", pad=[1, 1, 1, 1]), lambda x, **_: F.avg_pool2d(x, 3, 2, 1)),
        row("avg_exclude", lambda mb, x, **_: mb.avg_pool(x=x, kernel_sizes=[3, 3], strides=[2, 2], pad_type="custom", pad=[1, 1, 1, 1], exclude_padding_from_average=True),
            lambda x, **_: F.avg_pool2d(x, 3, 2, 1, count_include_pad=False)),
        row("avg_1", lambda mb, l, **_: mb.avg_pool(x=l, kernel_sizes=[3], strides=[2], pad_type="valid"), lambda l, **_: F.avg_pool1d(l, 3, 2)),
        row("max_3", lambda mb, d, **_: mb.max_pool(x=d, kernel_sizes=[2, 2, 2], strides=[2, 2, 1], pad_type="valid"), lambda d, **_: F.max_pool3d(d, 2, (2, 2, 1))),
        row("l2", lambda mb, x, **_: mb.l2_pool(x=x, kernel_sizes=[3, 2], strides=[2, 2], pad_type="valid"), lambda x, **_: (F.avg_pool2d(x * x, (3, 2), 2) * 6).sqrt())])


@case
def products(rng):
    t = torch.tensor
    x, y, a, b = floats(rng, 2, 3, 4), floats(rng, 2, 4, 5), floats(rng, 3, 4), floats(rng, 2, 3, 5)
    q, k = floats(rng, 1, 2, 3, 4), floats(rng, 1, 2, 5, 4)
    w, bias, m = floats(rng, 5, 4), floats(rng, 5), rng.integers(0, 2, (3, 5)).astype(np.float32)
    m[:, 0] = 1
    operators("products", {"x": x, "y": y, "a": a, "b": b, "q": q, "k": k, "e": floats(rng, 1, 4, 3, 5)}, [
        row("linear", lambda mb, x, **_: mb.linear(x=x, weight=w, bias=bias), lambda x, **_: F.linear(x, t(w), t(bias))),
        row("linear_2", lambda mb, a, **_: mb.linear(x=a, weight=w), lambda a, **_: F.linear(a, t(w))),
        row("batches", lambda mb, x, y, **_: mb.matmul(x=x, y=y), lambda x, y, **_: x @ y),
        row("turned", lambda mb, x, b, **_: mb.matmul(x=x, y=b, transpose_x=True), lambda x, b, **_: x.mT @ b),
        row("turned_y", lambda mb, x, a, **_: mb.matmul(x=x, y=a, transpose_y=True), lambda x, a, **_: x @ a.mT),
        row("matrix", lambda mb, x, **_: mb.matmul(x=x, y=np.ascontiguousarray(w.T)), lambda x, **_: x @ t(w).T),
        row("einsum", lambda mb, q, e, **_: mb.einsum(values=(q, e), equation="nchw,nwhu->nchu"), lambda q, e, **_: torch.einsum("nchw,nwhu->nchu", q, e)),
        row("attention", lambda mb, q, k, **_: mb.scaled_dot_product_attention(query=q, key=k, value=k), lambda q, k, **_: F.scaled_dot_product_attention(q, k, k)),
        row("masked", lambda mb, q, k, **_: mb.scaled_dot_product_attention(query=q, key=k, value=k, attn_mask=m > 0), lambda q, k, **_: F.scaled_dot_product_attention(q, k, k, t(m > 0))),
        row("biased", lambda mb, q, k, **_: mb.scaled_dot_product_attention(query=q, key=k, value=k, attn_mask=m), lambda q, k, **_: F.scaled_dot_product_attention(q, k, k, t(m)))])


@case
def reductions(rng):
    x = floats(rng, 2, 3, 4)
    rows = []
    for n, f in (("max", torch.amax), ("min", torch.amin), ("sum", torch.sum), ("mean", torch.mean), ("log_sum_exp", torch.logsumexp)):
        rows.append(row(n, lambda mb, x, n=n: getattr(mb, "reduce_" + n)(x=x, axes=[0, -1]), lambda x, f=f: f(x, (0, 2))))
        rows.append(row(n + "_keep", lambda mb, x, n=n: getattr(mb, "reduce_" + n)(x=x, axes=[1], keep_dims=True), lambda x, f=f: f(x, (1,), keepdim=True)))
    rows += [row("all", lambda mb, x: mb.reduce_sum(x=x), lambda x: x.sum()), row("prod", lambda mb, x: mb.reduce_prod(x=x, axes=[1]), lambda x: x.prod(1)),
             row("l1", lambda mb, x: mb.reduce_l1_norm(x=x, axes=[1]), lambda x: x.abs().sum(1)), row("l2", lambda mb, x: mb.reduce_l2_norm(x=x, axes=[1]), lambda x: x.norm(dim=1)),
             row("squares", lambda mb, x: mb.reduce_sum_square(x=x, axes=[1]), lambda x: (x * x).sum(1)),
             row("log_sum", lambda mb, x: mb.reduce_log_sum(x=mb.abs(x=x), axes=[1]), lambda x: x.abs().sum(1).log()),
             row("argmax", lambda mb, x: mb.reduce_argmax(x=x, axis=1), lambda x: x.argmax(1)), row("argmin", lambda mb, x: mb.reduce_argmin(x=x, axis=-1, keep_dims=True), lambda x: x.argmin(-1, keepdim=True)),
             row("topk", lambda mb, x: mb.topk(x=x, k=2, axis=-1), lambda x: x.topk(2)), row("bottom", lambda mb, x: mb.topk(x=x, k=1, axis=1, ascending=True), lambda x: x.topk(1, 1, largest=False)),
             row("argsort", lambda mb, x: mb.argsort(x=x, axis=2, ascending=True), lambda x: x.argsort(2)), row("argsort_down", lambda mb, x: mb.argsort(x=x, axis=1), lambda x: x.argsort(1, descending=True)),
             row("cumsum", lambda mb, x: mb.cumsum(x=x, axis=2), lambda x: x.cumsum(2)),
             row("cumsum_back", lambda mb, x: mb.cumsum(x=x, axis=1, exclusive=True, reverse=True), lambda x: x.flip(1).cumsum(1).flip(1) - x)]
    operators("reductions", {"x": x}, rows)


@case
def shapes(rng):
    x, y, i = floats(rng, 2, 8, 2, 4), floats(rng, 2, 8, 2, 4), rng.integers(0, 9, (2, 3)).astype(np.int32)
    s2d = lambda x: x.reshape(2, 8, 1, 2, 2, 2).permute(0, 3, 5, 1, 2, 4).reshape(2, 32, 1, 2)
    operators("shapes", {"x": x, "y": y, "i": i}, [
        row("reshape", lambda mb, x, **_: mb.reshape(x=x, shape=[4, -1]), lambda x, **_: x.reshape(4, -1)),
        row("reshape_0", lambda mb, x, **_: mb.reshape(x=x, shape=[0, -1, 4]), lambda x, **_: x.reshape(8, -1, 4)),
        row("reshape_like", lambda mb, x, i, **_: mb.reshape_like(x=x, ref_tensors=(i, x), begins=[0, 1], ends=[1, 4], end_masks=[False, False]), lambda x, **_: x),
        row("squeeze", lambda mb, x, **_: mb.squeeze(x=mb.reshape(x=x, shape=[1, 2, 1, 64]), axes=[0]), lambda x, **_: x.reshape(2, 1, 64)),
        row("squeeze_all", lambda mb, x, **_: mb.squeeze(x=mb.reshape(x=x, shape=[1, 2, 1, 64])), lambda x, **_: x.reshape(2, 64)),
        row("expand", lambda mb, i, **_: mb.expand_dims(x=i, axes=[0, -1]), lambda i, **_: i[None, ..., None]),
        row("flatten", lambda mb, x, **_: mb.flatten2d(x=x, axis=2), lambda x, **_: x.reshape(16, 8)),
        row("transpose", lambda mb, x, **_: mb.transpose(x=x, perm=[0, -1, 1, 2]), lambda x, **_: x.permute(0, 3, 1, 2)),
        row("d2s", lambda mb, x, **_: mb.depth_to_space(x=x, block_size=2), lambda x, **_: x.reshape(2, 2, 2, 2, 2, 4).permute(0, 3, 4, 1, 5, 2).reshape(2, 2, 4, 8)),
        row("s2d", lambda mb, x, **_: mb.space_to_depth(x=x, block_size=2), lambda x, **_: s2d(x)),
        row("shuffle", lambda mb, x, **_: mb.pixel_shuffle(x=x, upscale_factor=2), lambda x, **_: F.pixel_shuffle(x, 2)),
        row("unshuffle", lambda mb, x, **_: mb.pixel_unshuffle(x=x, downscale_factor=np.uint32(2)), lambda x, **_: F.pixel_unshuffle(x, 2)),
        row("s2b", lambda mb, x, **_: mb.space_to_batch(x=x, block_shape=[2, 2], paddings=[[0, 0], [2, 0]]),
            lambda x, **_: F.pad(x, (2, 0)).reshape(2, 8, 1, 2, 3, 2).permute(3, 5, 0, 1, 2, 4).reshape(8, 8, 1, 3)),
        row("b2s", lambda mb, x, **_: mb.batch_to_space(x=mb.space_to_batch(x=x, block_shape=[2, 2], paddings=[[0, 0], [2, 0]]), block_shape=[2, 2], crops=[[0, 0], [2, 0]]), lambda x, **_: x),
        row("concat", lambda mb, x, y, **_: mb.concat(values=(x, y), axis=1), lambda x, y, **_: torch.cat([x, y], 1)),
        row("turns", lambda mb, x, y, **_: mb.concat(values=(x, y), axis=1, interleave=True), lambda x, y, **_: torch.stack([x, y], 2).reshape(2, 16, 2, 4)),
        row("stack", lambda mb, x, y, **_: mb.stack(values=(x, y), axis=-1), lambda x, y, **_: torch.stack([x, y], -1)),
        row("split", lambda mb, x, **_: mb.split(x=x, num_splits=2, axis=1), lambda x, **_: x.split(4, 1)),
        row("split_sizes", lambda mb, x, **_: mb.split(x=x, split_sizes=[1, 3, 4], axis=1), lambda x, **_: x.split([1, 3, 4], 1)),
        row("tile", lambda mb, i, **_: mb.tile(x=i, reps=[2, 3]), lambda i, **_: i.repeat(2, 3)),
        row("index", lambda mb, x, **_: mb.slice_by_index(x=x, begin=[0, -1, 0, 1], end=[1, 2, 0, -1], stride=[1, -2, 1, 1], end_mask=[False, False, True, False], squeeze_mask=[True, False, False, False]),
            lambda x, **_: x[0].flip(0)[0:5:2, :, 1:-1]),
        row("size", lambda mb, x, **_: mb.slice_by_size(x=x, begin=[0, 1, 0, 2], size=[2, -1, 1, 2]), lambda x, **_: x[:, 1:, :1, 2:]),
        row("crop", lambda mb, x, **_: mb.crop(x=x, crop_height=[1, 0], crop_width=[1, 1]), lambda x, **_: x[:, :, 1:, 1:-1]),
        row("windows", lambda mb, x, **_: mb.sliding_windows(x=x, axis=1, size=4, stride=2), lambda x, **_: x.unfold(1, 4, 2).permute(0, 1, 4, 2, 3)),
        row("pad", lambda mb, x, **_: mb.pad(x=x, pad=[1, 2, 0, 3], constant_val=0.5), lambda x, **_: F.pad(x, (0, 3, 1, 2), value=0.5)),
        row("reflect", lambda mb, x, **_: mb.pad(x=x, pad=[1, 1, 2, 3], mode="reflect"), lambda x, **_: F.pad(x, (2, 3, 1, 1), mode="reflect")),
        row("edge", lambda mb, x, **_: mb.pad(x=x, pad=[1, 1, 2, 3], mode="replicate"), lambda x, **_: F.pad(x, (2, 3, 1, 1), mode="replicate")),
        row("reverse", lambda mb, x, **_: mb.reverse(x=x, axes=[1, 3]), lambda x, **_: x.flip(1, 3)),
        row("reverse_sequence", lambda mb, i, **_: mb.reverse_sequence(x=i, lengths=[2, 3], seq_axis=1, batch_axis=0),
            lambda i, **_: torch.stack([torch.cat([i[0, :2].flip(0), i[0, 2:]]), i[1].flip(0)])),
        row("shape", lambda mb, x, **_: mb.shape(x=x), lambda x, **_: torch.tensor(x.shape)),
        row("fill", lambda mb, x, **_: mb.fill(shape=[2, 3], value=1.5), lambda x, **_: torch.full((2, 3), 1.5)),
        row("fill_like", lambda mb, x, **_: mb.fill_like(ref_tensor=x, value=2.0), lambda x, **_: torch.full_like(x, 2)),
        row("range", lambda mb, x, **_: mb.range_1d(start=1.0, end=4.0, step=0.5), lambda x, **_: torch.arange(1, 4, 0.5)),
        row("band", lambda mb, x, **_: mb.band_part(x=x, lower=0, upper=1), lambda x, **_: x.triu(0).tril(1))])


@case
def gathers(rng):
    x, i = floats(rng, 4, 3, 5), np.array([[2, -1], [0, 3]], np.int32)
    u, j = floats(rng, 2, 2, 3, 5), np.array([[0, 2, 1]], np.int32).repeat(4, 0)
    t = torch.tensor
    nd = np.array([[0, 1], [3, -1]], np.int32)
    v = floats(rng, 2, 5)
    def put(x, at, u, how):
        y = x.clone()
        for k, p in enumerate(at):
            p = tuple(int(q) for q in np.atleast_1d(p))
            y[p] = {"update": u[k], "add": y[p] + u[k], "sub": y[p] - u[k], "mul": y[p] * u[k], "max": torch.maximum(y[p], u[k])}[how]
        return y
    flat = i.flatten()
    rows = [
        row("gather", lambda mb, x, i, **_: mb.gather(x=x, indices=i, axis=0), lambda x, i, **_: x[i % 4]),
        row("last", lambda mb, x, **_: mb.gather(x=x, indices=np.array([4, 0], np.int32), axis=-1), lambda x, **_: x[..., [4, 0]]),
        row("batched", lambda mb, x, j, **_: mb.gather(x=x, indices=j, axis=1, batch_dims=1), lambda x, j, **_: torch.stack([x[k][j[k].long()] for k in range(4)])),
        row("along", lambda mb, x, **_: mb.gather_along_axis(x=x, indices=np.zeros((4, 2, 5), np.int32) - 2, axis=1), lambda x, **_: x[:, [1, 1]]),
        row("nd", lambda mb, x, **_: mb.gather_nd(x=x, indices=nd), lambda x, **_: x[[0, 3], [1, 2]]),
        row("one_hot", lambda mb, i, **_: mb.one_hot(indices=mb.abs(x=i), one_hot_vector_size=4, axis=-1, on_value=2.0, off_value=-1.0),
            lambda i, **_: 3.0 * F.one_hot(i.abs().long(), 4) - 1),
        row("scatter_axis", lambda mb, x, **_: mb.scatter_along_axis(data=x, indices=np.array([[[0, 1, 2, 0, 1]]] * 4, np.int32), updates=np.ones((4, 1, 5), np.float32), axis=1, mode="add"),
            lambda x, **_: x.scatter_add(1, t([[[0, 1, 2, 0, 1]]] * 4), torch.ones(4, 1, 5)))]
    for how in ("update", "add", "sub", "mul", "max"):
        rows.append(row("scatter_" + how, lambda mb, x, i, u, how=how, **_: mb.scatter(data=x, indices=np.array([2, 0], np.int32), updates=mb.reshape(x=mb.slice_by_size(x=u, begin=[0, 0, 0, 0], size=[1, 2, 3, 5]), shape=[2, 3, 5]), axis=0, mode=how),
                        lambda x, u, how=how, **_: put(x, [2, 0], u[0], how)))
        rows.append(row("scatter_nd_" + how, lambda mb, x, how=how, **_: mb.scatter_nd(data=x, indices=nd, updates=v, mode=how), lambda x, how=how, **_: put(x, nd, t(v), how)))
    rows.append(row("scatter_1", lambda mb, x, **_: mb.scatter(data=x, indices=np.array([1, 0], np.int32), updates=np.ones((4, 2, 5), np.float32), axis=1, mode="add"),
                    lambda x, **_: x + t([1.0, 1.0, 0.0])[:, None]))
    operators("gathers", {"x": x, "i": i, "u": u, "j": j}, rows)


@case
def resized(rng):
    x = floats(rng, 1, 2, 4, 5)
    I = F.interpolate
    operators("resized", {"x": x}, [
        row("nearest", lambda mb, x: mb.resize_nearest_neighbor(x=x, target_size_height=7, target_size_width=10), lambda x: I(x, (7, 10))),
        row("up_nearest", lambda mb, x: mb.upsample_nearest_neighbor(x=x, scale_factor_height=2, scale_factor_width=3), lambda x: I(x, scale_factor=(2, 3))),
        row("up_align", lambda mb, x: mb.upsample_bilinear(x=x, scale_factor_height=2, scale_factor_width=2), lambda x: I(x, scale_factor=2, mode="bilinear", align_corners=True)),
        row("up_half", lambda mb, x: mb.upsample_bilinear(x=x, scale_factor_height=2, scale_factor_width=2, align_corners=False), lambda x: I(x, scale_factor=2, mode="bilinear", align_corners=False)),
        row("align", lambda mb, x: mb.resize_bilinear(x=x, target_size_height=7, target_size_width=3, sampling_mode="ALIGN_CORNERS"), lambda x: I(x, (7, 3), mode="bilinear", align_corners=True)),
        row("half", lambda mb, x: mb.resize_bilinear(x=x, target_size_height=7, target_size_width=3, sampling_mode="UNALIGN_CORNERS"), lambda x: I(x, (7, 3), mode="bilinear", align_corners=False)),
        row("resize", lambda mb, x: mb.resize(x=x, shape=[8, 10], resized_dims=np.uint32(2), interpolation_mode="LINEAR", sampling_mode="UNALIGN_CORNERS"), lambda x: I(x, (8, 10), mode="bilinear"))])


@case
def rounds(rng):
    """Recurrent operators."""
    T, N, I, H = 4, 2, 3, 5
    x, h, c = floats(rng, T, N, I), floats(rng, N, H), floats(rng, N, H)
    h2 = floats(rng, N, 2 * H)

    def module(kind, **options):
        m = kind(I, H, **options)
        for p in m.parameters():
            p.data = torch.tensor(floats(rng, *p.shape) * 0.5)
        return m

    def lstm_weights(m, suffix=""):
        get = lambda n: getattr(m, n + "_l0" + suffix).detach().numpy()
        order = lambda w: np.concatenate([np.split(w, 4)[k] for k in (0, 1, 3, 2)])  # i f g o as i f o z
        return order(get("weight_ih")), order(get("weight_hh")), order(get("bias_ih") + get("bias_hh"))

    lstm, both, gru, rnn = module(torch.nn.LSTM), module(torch.nn.LSTM, bidirectional=True), module(torch.nn.GRU), module(torch.nn.RNN)
    w, r, b = lstm_weights(lstm)
    w1, r1, b1 = lstm_weights(both)
    w2, r2, b2 = lstm_weights(both, "_reverse")
    g = [p.detach().numpy() for p in gru.parameters()]
    order = lambda v: np.concatenate([np.split(v, 3)[k] for k in (0, 2, 1)])  # r z n as r o z
    split = lambda v: torch.stack(v.split(H, 1))

    def two(x, h2, **_):
        y, (hn, cn) = both(x, (split(h2), split(h2)))
        return y, torch.cat(list(hn), 1), torch.cat(list(cn), 1)

    def one(x, h, c):
        y, (hn, cn) = lstm(x, (h[None], c[None]))
        return y, hn[0], cn[0]

    operators("rounds", {"x": x, "h": h, "c": c, "h2": h2}, [
        row("lstm", lambda mb, x, h, c, **_: mb.lstm(x=x, initial_h=h, initial_c=c, weight_ih=w, weight_hh=r, bias=b, output_sequence=True), lambda x, h, c, **_: one(x, h, c)),
        row("back", lambda mb, x, h, c, **_: mb.lstm(x=x, initial_h=h, initial_c=c, weight_ih=w, weight_hh=r, bias=b, direction="reverse"),
            lambda x, h, c, **_: (lambda v: (v[1][None], v[1], v[2]))(one(x.flip(0), h, c))),
        row("both", lambda mb, x, h2, **_: mb.lstm(x=x, initial_h=h2, initial_c=h2, weight_ih=w1, weight_hh=r1, bias=b1, weight_ih_back=w2, weight_hh_back=r2, bias_back=b2,
                                                   direction="bidirectional", output_sequence=True), two),
        row("gru", lambda mb, x, h, **_: mb.gru(x=x, initial_h=h, weight_ih=order(g[0]), weight_hh=order(g[1]), input_bias=order(g[2]), bias=order(g[3]), reset_after=True, output_sequence=True),
            lambda x, h, **_: (lambda v: (v[0], v[1][0]))(gru(x, h[None]))),
        row("rnn", lambda mb, x, h, **_: mb.rnn(x=x, initial_h=h, weight_ih=rnn.weight_ih_l0.detach().numpy(), weight_hh=rnn.weight_hh_l0.detach().numpy(),
                                                bias=(rnn.bias_ih_l0 + rnn.bias_hh_l0).detach().numpy(), output_sequence=True), lambda x, h, **_: (lambda v: (v[0], v[1][0]))(rnn(x, h[None])))])
