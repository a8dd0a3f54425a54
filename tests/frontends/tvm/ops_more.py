"""Modules of operators beside a network's usual ones: random numbers, sparse matrices, boxes, sizes that are operands,
blocks, parts.  numpy says in a few lines each what they compute; make_ops.py writes them."""
import numpy as np

MASK = (1 << 64) - 1


# ---- Threefry 4x64, 20 rounds -----------------------------------------------------------------------------------------
def threefry(key, counter, i):
    turns = [(14, 16), (52, 57), (23, 40), (5, 37), (25, 33), (46, 12), (58, 22), (32, 32)]
    ks = list(key) + [0x1BD11BDAA9FC1A22 ^ key[0] ^ key[1] ^ key[2] ^ key[3]]
    x = [(c + i) & MASK for c in counter]
    for r in range(20):
        if r % 4 == 0:
            x = [(x[j] + ks[(r // 4 + j) % 5] + (r // 4 if j == 3 else 0)) & MASK for j in range(4)]
        for j in (0, 1):
            a, b = x[2 * j], x[2 * j + 1]
            a, t = (a + b) & MASK, turns[r % 8][j]
            x[2 * j:2 * j + 2] = [a, a ^ ((b << t | b >> (64 - t)) & MASK)]
        x = [x[0], x[3], x[2], x[1]]
    return x


def generate(key, count):
    key, out = list(key), []
    for i in range(count // 4):
        out += threefry(key[:4], key[4:8], i)
    key[7] += count // 4 * 4
    if count % 4:
        out += threefry(key[:4], key[4:8], 0)
        key[7] += 4
    return key, np.array(out[:count], "u8")


def split(key):
    bit = key[8] << 64 | key[9]
    right = list(key)
    right[4], right[5] = key[4] | key[8], key[5] | key[9]
    move = [bit >> 65, (bit >> 1) & MASK]
    return list(key[:8]) + move, right[:8] + move


def unit(words):
    return ((words & np.uint64(0xffffffff)) >> np.uint64(9)).astype("f4") / np.float32(1 << 23)


def random(f32, module, metadata, write):
    key = [7, 0, 0, 0, 0, 0, 0, 0, 1 << 63, 0]
    probs, low = f32(2, 5), np.float32(-2)
    body = """  %0 = random.threefry_split(meta[relay.Constant][0]);
  %1 = %0.0;
  %2 = %0.1;
  %3 = random.threefry_generate(%1, out_shape=[2, 3]);
  %4 = random.uniform(%3.0, %low, 3f, out_shape=[3, 4], out_dtype="float32");
  %5 = random.normal(%2, 1f, 0.5f, out_shape=[5], out_dtype="float32");
  %6 = random.multinomial(%5.0, %probs, num_samples=6);
  %7 = random.uniform(%6.0, 0f64, 1f64, out_shape=[3], out_dtype="float64");
  (%3.1, %4.1, %5.1, %6.1, %4.0, %7.1)
"""
    left, right = split(key)
    left, bits = generate(left, 6)
    left, u = generate(left, 12)
    right, z = generate(right, 10)
    u, z = unit(u).reshape(3, 4), unit(z)
    normal = np.sqrt(-2 * np.log(1 - z[:5])) * np.sin(np.float32(2 * np.pi) * z[5:])
    right, m = generate(right, 12)
    p = np.maximum(probs, 0)
    p = np.cumsum(p / p.sum(-1, keepdims=True), -1)[:, :, None] - unit(m).reshape(2, 1, 6)
    _, wide = generate(right, 3)
    write("random", module({"low": low, "probs": probs}, body, metadata([np.array(key, "u8")])), {"low": low, "probs": probs},
          [bits.reshape(2, 3), u * np.float32(5) - 2, normal * np.float32(0.5) + 1,
           np.where(p > 0, p, 1).argmin(1).astype("i8"), np.array(left, "u8"),
           (wide >> np.uint64(12)).astype("f8") / (1 << 52)])


# ---- sparse matrices --------------------------------------------------------------------------------------------------
def csr(m):
    at = [np.nonzero(r)[0] for r in m]
    return (m[m != 0], np.concatenate(at).astype("i4"), np.cumsum([0] + [len(a) for a in at]).astype("i4"))


def sparse(f32, module, metadata, write):
    w, s, x, image = f32(4, 6), f32(4, 4), f32(3, 6), f32(1, 2, 3, 6)
    w[abs(w) < 0.7], s[abs(s) < 0.7] = 0, 0
    blocks, at = [], []
    for r in range(2):
        for c in range(3):
            part = w[2 * r:2 * r + 2, 2 * c:2 * c + 2]
            if part.any():
                blocks.append(part)
                at.append((r, c))
    bsr = (np.stack(blocks), np.array([c for _, c in at], "i4"),
           np.array([sum(r < k for r, _ in at) for k in range(3)], "i4"))
    positions = np.array([[0, 1, 2], [1, 0, 3]], "i8")
    constants = [*csr(w), *bsr, *csr(s), np.array([2, 3, 4], "i8"), np.array([-1, 6], "i8")]
    names = ", ".join(f"meta[relay.Constant][{i}]" for i in range(3))
    more = ", ".join(f"meta[relay.Constant][{i}]" for i in range(3, 6))
    square = ", ".join(f"meta[relay.Constant][{i}]" for i in range(6, 9))
    body = f"""  %0 = nn.sparse_dense(%x, {names}, sparse_lhs=False);
  %1 = nn.sparse_dense(%x, {more}, sparse_lhs=False);
  %2 = nn.sparse_dense(%x, {names}, sparse_lhs=True);
  %3 = nn.sparse_transpose({square});
  %4 = nn.sparse_add(%d, {square});
  %5 = nn.sparse_conv2d(%image, {names}, layout="NHWC", kernel_size=[1, 1]);
  %6 = sparse_reshape(%p, meta[relay.Constant][9], meta[relay.Constant][10]);
  (%0, %1, %2, %3, %4, %5, %6)
"""
    d = f32(4, 4)
    feeds = {"x": x, "d": d, "image": image, "p": positions}
    flat = np.ravel_multi_index(positions.T, (2, 3, 4))
    write("sparse", module(feeds, body, metadata(constants)), feeds,
          [x @ w.T, x @ w.T, w @ x.T, *csr(s.T), d + s, image @ w.T, np.stack(np.unravel_index(flat, (4, 6)), 1),
           np.array([4, 6], "i8")])


# ---- sizes that are operands, blocks ----------------------------------------------------------------------------------
def dynamic(f32, module, metadata, write):
    x, image, n = f32(2, 3, 4), f32(1, 2, 3, 3), np.array([0, 2, 1], "i4")
    k = {"shape": np.array([-1, 4], "i8"), "wide": np.array([2, 2, 3, 4], "i8"), "reps": np.array([1, 2, 1], "i8"),
         "axis": np.array([0], "i8"), "from": np.array([0, 1, 0], "i8"), "to": np.array([2, 3, 4], "i8"),
         "by": np.array([1, 1, 2], "i8"), "pads": np.array([[0, 0], [1, 0], [0, 2]], "i8"),
         "dims": np.array([2, 2], "i8"), "size": np.array([6, 6], "i8"), "roi": np.zeros(0, "f4")}
    at = {name: f"meta[relay.Constant][{i}]" for i, name in enumerate(k)}
    body = f"""  %0 = dyn.reshape(%x, {at["shape"]});
  %1 = dyn.broadcast_to(%x, {at["wide"]});
  %2 = dyn.tile(%x, {at["reps"]});
  %3 = expand_dims(%x, axis=0);
  %4 = dyn.squeeze(%3, {at["axis"]});
  %5 = dyn.strided_slice(%x, {at["from"]}, {at["to"]}, {at["by"]}, slice_mode="end");
  %6 = dyn.nn.pad(%x, {at["pads"]}, 2f, pad_mode="constant");
  %7 = dyn.ones({at["dims"]}, dtype="int32");
  %8 = dyn.full(3f, {at["dims"]}, dtype="float32");
  %9 = dyn.one_hot(%n, 1f, 0f, 4i64, axis=-1, dtype="float32");
  %10 = dyn.topk(%x, 2i64, axis=-1, ret_type="both", is_ascend=False, dtype="int32");
  %11 = dyn.image.resize2d(%image, {at["size"]}, {at["roi"]}, layout="NCHW", method="nearest_neighbor", coordinate_transformation_mode="asymmetric", rounding_method="floor");
  %12 = dyn.nn.upsampling(%image, 2f, 2f, layout="NCHW", method="nearest_neighbor");
  %13 = shape_of(%0, dtype="int64");
  %14 = multiply(%13, meta[relay.Constant][{len(k)}]);
  %15 = dyn.reshape(%1, %14);
  %16 = dyn.expand_dims(%x, 1i64, num_newaxis=1);
  %17 = dyn.zeros({at["dims"]}, dtype="float32");
  %18 = vm.shape_of(%x, dtype="int64");
  (%0, %1, %2, %4, %5, %6, %7, %8, %9, %10, %11, %12, %15, %16, %17, %18)
"""
    order = np.argsort(-x, -1, kind="stable")[..., :2]
    feeds = {"x": x, "image": image, "n": n}
    big = image.repeat(2, 2).repeat(2, 3)
    write("dynamic", module(feeds, body, metadata([*k.values(), np.array([2, 1], "i8")])), feeds,
          [x.reshape(6, 4), np.broadcast_to(x, (2, 2, 3, 4)), np.tile(x, (1, 2, 1)), x, x[:, 1:, ::2],
           np.pad(x, [(0, 0), (1, 0), (0, 2)], constant_values=2), np.ones((2, 2), "i4"), np.full((2, 2), 3, "f4"),
           np.eye(4, dtype="f4")[n], np.take_along_axis(x, order, -1), order.astype("i4"), big, big,
           np.broadcast_to(x, (2, 2, 3, 4)).reshape(12, 4), x[:, None], np.zeros((2, 2), "f4"), np.array([2, 3, 4], "i8")])


def blocked(f32, module, metadata, write, conv):
    x, w, d, m, y = f32(1, 8, 5, 5), f32(8, 8, 3, 3), f32(8, 1, 3, 3), f32(16, 6), f32(2, 6)
    data = x.reshape(1, 2, 4, 5, 5).transpose(0, 1, 3, 4, 2)
    weight = w.reshape(2, 4, 2, 4, 3, 3).transpose(0, 2, 4, 5, 3, 1)
    depth = d.reshape(2, 4, 1, 1, 3, 3).transpose(0, 2, 4, 5, 3, 1)
    pack = m.reshape(2, 8, 6).transpose(0, 2, 1)
    body = """  %0 = nn.contrib_conv2d_NCHWc(%data, meta[relay.Constant][0], padding=[1, 1, 1, 1], channels=8, kernel_size=[3, 3], data_layout="NCHW4c", kernel_layout="OIHW4i4o", out_layout="NCHW4c");
  %1 = nn.contrib_depthwise_conv2d_NCHWc(%0, meta[relay.Constant][1], padding=[1, 1, 1, 1], groups=8, channels=8, kernel_size=[3, 3], data_layout="NCHW4c", kernel_layout="OIHW1i4o", out_layout="NCHW8c");
  %2 = nn.max_pool2d(%0, pool_size=[2, 2], strides=[1, 1], padding=[0, 0, 0, 0], layout="NCHW4c");
  %3 = nn.global_avg_pool2d(%0, layout="NCHW4c");
  %4 = nn.contrib_dense_pack(%y, meta[relay.Constant][2], units=16, weight_layout="NC8n");
  (%0, %1, %2, %3, %4)
"""
    def blocks(a, k):
        n, c, h, wide = a.shape
        return a.reshape(n, c // k, k, h, wide).transpose(0, 1, 3, 4, 2)
    a = conv(x, w, pad=1)
    pooled = np.maximum.reduce([a[:, :, i:i + 4, k:k + 4] for i in (0, 1) for k in (0, 1)])
    feeds = {"data": data, "y": y}
    write("blocked", module(feeds, body, metadata([np.ascontiguousarray(v) for v in (weight, depth, pack)])),
          {k: np.ascontiguousarray(v) for k, v in feeds.items()},
          [blocks(a, 4), blocks(conv(a, d, pad=1, groups=8), 8), blocks(pooled, 4), blocks(a.mean((2, 3), keepdims=True), 4),
           y @ m.T])


# ---- boxes ------------------------------------------------------------------------------------------------------------
def overlap(a, b):
    w, h = (max(0, min(a[i + 2], b[i + 2]) - max(a[i], b[i])) for i in (0, 1))
    u = (a[2] - a[0]) * (a[3] - a[1]) + (b[2] - b[0]) * (b[3] - b[1]) - w * h
    return w * h / u if u > 0 else 0


def kept(rows, limit, one_class, most=-1):
    """Rows of class, score and corners: positions of those that stay, best first."""
    out = []
    for i in sorted(range(len(rows)), key=lambda i: -rows[i][1]):
        near = [k for k in out if (one_class or rows[k][0] == rows[i][0]) and overlap(rows[k][2:], rows[i][2:]) >= limit]
        if not near and rows[i][1] > 0 and (most < 0 or len(out) < most):
            out.append(i)
    return out


def boxes(f32, module, metadata, write, rng):
    B, C = 8, 3
    def corners(n):
        at, size = rng.random((n, 2)) * 0.6, rng.random((n, 2)) * 0.3 + 0.1
        return np.concatenate([at, at + size], 1).astype("f4")
    raw = np.concatenate([rng.integers(-1, 2, (2, B, 1)), rng.random((2, B, 1)) - 0.2,
                          np.stack([corners(B), corners(B)])], 2).astype("f4")
    raw[:, 3, 2:] = raw[:, 4, 2:] + np.float32(0.01)
    scores = rng.random((1, C, B)).astype("f4")
    probs, loc, anchors = rng.random((2, C, B)).astype("f4") / 2, f32(2, 4 * B), corners(B)[None]
    image, regions = f32(2, 3, 6, 6), np.array([[0, 0, 0, 7, 7], [1, 2, 4, 11, 9]], "f4")
    shares, which = np.array([[0.1, 0.2, 0.9, 0.8], [-0.2, 0, 0.5, 1.1]], "f4"), np.array([1, 0], "i4")
    body = """  %0 = vision.get_valid_counts(%raw, 0.1f, id_index=0, score_index=1);
  %1 = vision.non_max_suppression(%0.1, %0.0, %0.2, -1, 0.4f, coord_start=2, score_index=1, id_index=0, return_indices=True);
  %2 = vision.non_max_suppression(%0.1, %0.0, %0.2, 3, 0.4f, force_suppress=True, coord_start=2, score_index=1, id_index=0, return_indices=False, invalid_to_bottom=True);
  %3 = vision.non_max_suppression(%0.1, %0.0, %0.2, -1, 0.4f, coord_start=2, score_index=1, id_index=0, return_indices=False);
  %4 = strided_slice(%raw, begin=[0, 0, 2], end=[1, 8, 6]);
  %5 = vision.all_class_non_max_suppression(%4, %scores, 3i64, 0.4f, 0.2f, output_format="onnx");
  %6 = vision.multibox_prior(%image, sizes=[0.3f, 0.5f], ratios=[2f, 0.5f], clip=True);
  %7 = vision.multibox_transform_loc(%probs, %loc, %anchors, threshold=0.3f);
  %8 = vision.roi_pool(%image, %regions, pooled_size=[2, 3], spatial_scale=0.5f);
  %9 = vision.yolo_reorg(%grid, stride=2);
  %10 = image.crop_and_resize(%image, %shares, %which, crop_size=[3, 4], layout="NCHW", method="bilinear", extrapolation_value=-1f);
  %11 = nn.correlation(%image, %image, kernel_size=1, max_displacement=1, stride1=1, stride2=1, padding=[1, 1, 1, 1], is_multiply=True, layout="NCHW");
  (%0, %1, %2, %3, %5, %6, %7, %8, %9, %10, %11)
"""
    grid = f32(1, 4, 4, 4)
    feeds = {"raw": raw, "scores": scores, "image": image, "probs": probs, "loc": loc, "anchors": anchors, "regions": regions,
             "grid": grid, "shares": shares, "which": which}
    # get_valid_counts, non_max_suppression
    valid = [[k for k in range(B) if r[k, 1] > np.float32(0.1) and r[k, 0] >= 0] for r in raw]
    count, first, numbers = np.array([len(v) for v in valid], "i4"), np.full_like(raw, -1), np.full((2, B), -1, "i4")
    at, many, best, sorted_rows = np.full((2, B), -1, "i4"), np.zeros((2, 1), "i4"), np.full_like(raw, -1), np.full_like(raw, -1)
    for i, v in enumerate(valid):
        first[i, :len(v)], numbers[i, :len(v)] = raw[i, v], v
        stay = kept(raw[i, v], 0.4, False)
        at[i, :len(stay)], many[i] = np.array(v, "i4")[stay], len(stay)
        for j, k in enumerate(sorted(range(len(v)), key=lambda k: -raw[i, v][k, 1])):
            if k in stay:
                sorted_rows[i, j] = raw[i, v[k]]
        stay = kept(raw[i, v], 0.4, True, 3)
        best[i, :len(stay)] = raw[i, v][stay]
    # all classes
    rows = []
    for c in range(C):
        cells = [[0, s if s > 0.2 else -1, *raw[0, k, 2:]] for k, s in enumerate(scores[0, c])]
        rows += [[0, c, k] for k in kept(cells, 0.4, True, 3)]
    every = np.zeros((C * B, 3), "i8")
    every[:len(rows)] = rows
    # anchors
    prior = []
    for y in range(6):
        for x in range(6):
            for s, r in ((0.3, 1), (0.5, 1), (0.3, 0.5)):
                w, h = s * np.sqrt(r) / 2, s / np.sqrt(r) / 2
                cx, cy = (x + 0.5) / 6, (y + 0.5) / 6
                prior.append([cx - w, cy - h, cx + w, cy + h])
    found, some = np.full((2, B, 6), -1, "f4"), np.zeros(2, "i4")
    for i in range(2):
        for k in range(B):
            p, c = probs[i, 1:, k].max(), probs[i, 1:, k].argmax()
            if p < np.float32(0.3):
                continue
            a, t = anchors[0, k], loc[i, 4 * k:4 * k + 4] * np.array([0.1, 0.1, 0.2, 0.2], "f4")
            size, middle = a[2:] - a[:2], (a[2:] + a[:2]) / 2
            middle, half = t[:2] * size + middle, np.exp(t[2:]) * size / 2
            found[i, some[i]] = [c, p, *np.clip(np.concatenate([middle - half, middle + half]), 0, 1)]
            some[i] += 1
    # regions
    pool = np.zeros((2, 3, 2, 3), "f4")
    for r, (n, x0, y0, x1, y1) in enumerate(regions):
        x0, y0, x1, y1 = (int(np.floor(v * 0.5 + 0.5)) for v in (x0, y0, x1, y1))
        h, w = max(y1 - y0 + 1, 1) / 2, max(x1 - x0 + 1, 1) / 3
        for i in range(2):
            for j in range(3):
                ys = slice(min(6, y0 + int(np.floor(i * h))), min(6, y0 + int(np.ceil((i + 1) * h))))
                xs = slice(min(6, x0 + int(np.floor(j * w))), min(6, x0 + int(np.ceil((j + 1) * w))))
                part = image[int(n)][:, ys, xs]
                pool[r, :, i, j] = part.max((1, 2)) if part.size else 0
    wide = grid.reshape(1, 8, 8)
    reorg = np.stack([wide[0, i::2, j::2] for i in (0, 1) for j in (0, 1)]).reshape(1, 16, 2, 2)
    crops = np.full((2, 3, 3, 4), -1, "f4")
    for r in range(2):
        for i in range(3):
            for j in range(4):
                y, x = (shares[r, k] * 5 + (shares[r, 2 + k] - shares[r, k]) * 5 * q / d for k, q, d in ((0, i, 2), (1, j, 3)))
                if 0 <= y <= 5 and 0 <= x <= 5:
                    p, a, b = image[which[r]], int(y), int(x)
                    up, left, dy, dx = min(a + 1, 5), min(b + 1, 5), y - a, x - b
                    crops[r, :, i, j] = ((p[:, a, b] * (1 - dx) + p[:, a, left] * dx) * (1 - dy)
                                         + (p[:, up, b] * (1 - dx) + p[:, up, left] * dx) * dy)
    pad = np.pad(image, ((0, 0), (0, 0), (2, 2), (2, 2)))
    alike = np.stack([(image * pad[:, :, 2 + i:8 + i, 2 + j:8 + j]).mean(1) for i in (-1, 0, 1) for j in (-1, 0, 1)], 1)
    write("boxes", module(feeds, body), feeds,
          [count, first, numbers, at, many, best, sorted_rows, every, np.array([len(rows)], "i8"),
           np.clip(np.array(prior, "f4"), 0, 1)[None], found, some, pool, reorg, crops, alike])


# ---- parts, sums, losses, signals -------------------------------------------------------------------------------------
def parts(f32, module, metadata, write):
    x, v, i, j = f32(4, 5, 3), f32(2, 5, 2), np.array([[0], [3]], "i4"), np.array([1, 4], "i4")
    row, buffer, data = np.sort(f32(2, 6), -1), f32(2, 5, 3), f32(2, 2, 3)
    q, wave, p = f32(3, 8), f32(2, 20), np.abs(f32(3, 4)) + 0.1
    target, weights, window = np.array([1, -100, 3], "i4"), np.abs(f32(4)), np.hanning(8).astype("f4")
    k = [np.array([3, 0, 0], "i8"), np.array([-5, 5, 3], "i8"), np.array([-2, 1, 2], "i8"), np.array([5, 1], "i8")]
    image, w = f32(1, 2, 5, 6), f32(2, 2, 3)
    whole = np.array([[-70000, 5, 12345], [3, -8, 99]], "i4")
    per = [np.array([1 << 30, 1518500250, 1 << 30], "i4"), np.array([1, 0, 0], "i4"), np.array([0, 2, 3], "i4")]
    body = """  %0 = (%x, %i, %j);
  %1 = adv_index(%0);
  %2 = strided_set(%x, %v, meta[relay.Constant][0], meta[relay.Constant][1], meta[relay.Constant][2]);
  %3 = searchsorted(%row, %value, right=False, dtype="int32");
  %4 = searchsorted(%row, %value, right=True, dtype="int64");
  %5 = collapse_sum_like(%x, %like);
  %6 = collapse_sum_to(%x, meta[relay.Constant][3]);
  %7 = nn.fifo_buffer(%data, %buffer, axis=1);
  %8 = contrib_reverse_reshape(%x, newshape=[-1, 0]);
  %9 = nn.cross_entropy(%p, %p);
  %10 = nn.cross_entropy_with_logits(%p, %p);
  %11 = nn.nll_loss(%p, %target, %weights, reduction="mean", ignore_index=-100);
  %12 = dft(%q, %q, inverse=False);
  %13 = dft(%12.0, %12.1, inverse=True);
  %14 = stft(%wave, %window, n_fft=8, hop_length=4, win_length=8, normalized=True, onesided=True);
  %15 = image.dilation2d(%image, %w, strides=[2, 1], padding=[1, 0, 0, 1], dilations=[1, 2], data_layout="NCHW", kernel_layout="IHW");
  %16 = fixed_point_multiply_per_axis(%whole, meta[relay.Constant][4], meta[relay.Constant][5], meta[relay.Constant][6], is_lshift_required=True, is_rshift_required=True, axes=[1]);
  %17 = qnn.simulated_quantize(%q, 1, 0.1f, 3f, axis=-1);
  %18 = qnn.simulated_dequantize(%17, 1, 0.1f, 3f, axis=-1);
  %19 = relay.op.annotation.simulated_quantize(%q, 0.25f, -4f, 3f, kind=1);
  (%1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19)
"""
    value, like = f32(2, 3), f32(5, 1)
    feeds = {"x": x, "v": v, "i": i, "j": j, "row": row, "value": value, "like": like, "data": data, "buffer": buffer, "p": p,
             "target": target, "weights": weights, "q": q, "wave": wave, "window": window, "image": image, "w": w,
             "whole": whole}
    put = x.copy()
    put[3:0:-2, :, 0:3:2] = v
    def found(side):
        return np.stack([np.searchsorted(a, b, side) for a, b in zip(row, value)])
    sums = x.sum((0, 2), keepdims=True)[0]
    nll = -(p[0, 1] * weights[1] + p[2, 3] * weights[3]) / (weights[1] + weights[3])
    spectrum = np.fft.fft(q + 1j * q)
    frames = np.stack([wave[:, 4 * t:4 * t + 8] * window for t in range(4)], 1) / np.sqrt(8)
    frames = np.fft.rfft(frames).transpose(0, 2, 1)
    pad = np.pad(image, ((0, 0), (0, 0), (1, 0), (0, 1)))
    wide = np.max([pad[:, :, a:a + 5:2, 2 * b:2 * b + 3] + w[None, :, a, b, None, None] for a in (0, 1) for b in range(3)], 0)
    m, left, right = (a.astype("i8") for a in per)
    fixed = (whole * m * 2 ** left + (np.int64(1) << (30 + right))) >> (31 + right)
    def away(a):
        return np.trunc(a + np.copysign(0.5, a))
    on = np.clip(away(q / np.float32(0.1)) + 3, -128, 127)
    write("parts", module(feeds, body, metadata(k + per)), feeds,
          [x[i, j], put, found("left").astype("i4"), found("right").astype("i8"), sums, sums,
           np.concatenate([buffer, data], 1)[:, 2:], x.reshape(20, 3), np.float32(-(p * np.log(p)).sum() / 3),
           np.float32(-(p * p).sum() / 3), np.float32(nll), spectrum.real.astype("f4"), spectrum.imag.astype("f4"), q, q,
           np.stack([frames.real, frames.imag], -1).astype("f4"), wide.astype("f4"), fixed.astype("i4"), on,
           (on - 3) * np.float32(0.1), away(np.clip(q / np.float32(0.25), -4, 3)) * np.float32(0.25)])


def write_all(f32, module, metadata, write, conv, rng):
    random(f32, module, metadata, write)
    sparse(f32, module, metadata, write)
    dynamic(f32, module, metadata, write)
    blocked(f32, module, metadata, write, conv)
    boxes(f32, module, metadata, write, rng)
    parts(f32, module, metadata, write)
