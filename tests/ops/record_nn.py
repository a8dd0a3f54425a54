"""Cases of operators of networks: normalization, convolution, products, attention, recurrent and quantized layers (record.py)."""
import numpy as np

from recording import case, F, In, run_ort, V


def normalization():
    def bn(x, g, b, m, v):
        s = (slice(None),) + (None,) * (x.ndim - 2)
        y = (x.astype(np.float64) - m[s]) / np.sqrt(v[s].astype(np.float64) + 1e-5) * g[s] + b[s]
        return y.astype(np.float32), m, v
    case("nn.batch_norm", "nn.batch_norm(%0, %1, %2, %3, %4)",
         [F(2, 3, 4, 5), F(3), F(3), F(3), F(3, lo=0.5, hi=2)], bn, 1e-5)
    case("nn.batch_norm", "nn.batch_norm(%0, %1, %2, %3, %4)", [F(4, 6), F(6), F(6), F(6), F(6, lo=0.5, hi=2)], bn, 1e-5)
    case("nn.dropout", "nn.dropout(%0)", [F(2, 3)], lambda x: (x, np.ones_like(x)))

    def ln(x, g, b, axis=-1):
        ax = tuple(range(axis % x.ndim, x.ndim))
        x = x.astype(np.float64)
        m = x.mean(ax, keepdims=True)
        v = ((x - m) ** 2).mean(ax, keepdims=True)
        return ((x - m) / np.sqrt(v + 1e-5) * g + b).astype(np.float32)
    case("nn.layer_norm", "nn.layer_norm(%0, %1, %2)", [F(2, 3, 7), F(7), F(7)], ln, 1e-5)
    case("nn.layer_norm", "nn.layer_norm(%0, %1, %2, axis=1)", [F(2, 3, 4), F(3, 4), F(3, 4)], lambda x, g, b: ln(x, g, b, 1), 1e-5)
    case("nn.layer_norm", "nn.layer_norm(%0, %1, %2)", [F(37, 6), F(6), F(6)], ln, 1e-5)
    # data of 16 bits, as they are and as f32; a result of 16 bits, within the rounding of its largest numbers
    case("nn.layer_norm", 'nn.layer_norm(%0, %1, %2, out_dtype="f32")', [In("f16", 5, 40), F(40), F(40)], ln, 1e-5)
    half = lambda *a: ln(*a).astype(np.float16)
    case("nn.layer_norm", "nn.layer_norm(%0, %1, %2)", [In("f16", 5, 40), F(40), F(40)], half, 2e-3)
    case("nn.layer_norm", 'nn.layer_norm(%0, %1, %2, out_dtype="f16")', [F(3, 37), F(37), F(37)], half, 2e-3)

    def softmax(x, axis, log=False):
        x = x.astype(np.float64)
        x = x - x.max(axis, keepdims=True)
        s = np.exp(x).sum(axis, keepdims=True)
        return (x - np.log(s) if log else np.exp(x) / s).astype(np.float32)
    for axis, shape in ((-1, (3, 7)), (1, (2, 5, 3)), (0, (4,)), (-1, (1, 2, 3, 9)), (-1, (2, 19, 5)), (-1, (35, 1))):
        case("nn.softmax", f"nn.softmax(%0, axis={axis})", [F(*shape, lo=-9, hi=90)], lambda x: softmax(x, axis), 1e-5)
        case("nn.log_softmax", f"nn.log_softmax(%0, axis={axis})", [F(*shape, lo=-9, hi=90)], lambda x: softmax(x, axis, True), 1e-5)


def convolution():
    def conv(n, c, h, w, o, kh, kw, s=(1, 1), p=(0, 0, 0, 0), d=(1, 1), g=1):
        attrs = f"strides={list(s)}, padding={list(p)}, dilation={list(d)}, groups={g}, channels={o}, kernel_size=[{kh}, {kw}]"
        case("nn.conv2d", f"nn.conv2d(%0, %1, {attrs})", [F(n, c, h, w), F(o, c // g, kh, kw)],
             lambda x, k: run_ort("Conv", [x, k], strides=s, pads=p, dilations=d, group=g, kernel_shape=[kh, kw]), 1e-4)
    conv(1, 3, 5, 7, 4, 3, 3)
    conv(1, 8, 6, 6, 8, 3, 3, p=(1, 1, 1, 1))
    conv(2, 5, 7, 6, 7, 3, 2, s=(2, 1), p=(1, 0, 2, 1))
    conv(1, 16, 5, 5, 8, 1, 1)
    conv(1, 12, 5, 5, 20, 1, 1, s=(2, 2))
    conv(1, 4, 9, 9, 6, 3, 3, d=(2, 3), p=(2, 3, 2, 3))
    conv(1, 8, 6, 5, 8, 3, 3, p=(1, 1, 1, 1), g=8)
    conv(1, 5, 6, 5, 5, 3, 3, p=(1, 1, 1, 1), g=5)
    conv(1, 6, 6, 5, 12, 3, 3, s=(2, 2), p=(0, 0, 1, 1), g=6)
    conv(1, 16, 4, 4, 16, 3, 3, p=(1, 1, 1, 1), g=2)
    conv(1, 6, 4, 4, 9, 3, 3, g=3)
    conv(1, 1, 8, 8, 1, 5, 5, p=(4, 4, 4, 4))
    case("nn.conv2d", "nn.conv2d(%0, %1)", [In("i8", 1, 3, 4, 4, lo=-128, hi=128), In("i8", 2, 3, 3, 3, lo=-128, hi=128)],
         lambda x, k: run_ort("ConvInteger", [x, k]) if False else np.array(
             [[[[np.sum(x[0, :, i:i + 3, j:j + 3].astype(np.int32) * k[o].astype(np.int32)) for j in range(2)]
                for i in range(2)] for o in range(2)]], np.int32))
    for c, n, o, k, s, p, d, g in ((3, 9, 4, 3, 2, (1, 1), 1, 1), (4, 10, 4, 3, 1, (2, 0), 2, 4), (6, 5, 8, 1, 1, (0, 0), 1, 1)):
        case("nn.conv1d", f"nn.conv1d(%0, %1, strides=[{s}], padding={list(p)}, dilation=[{d}], groups={g})",
             [F(2, c, n), F(o, c // g, k)],
             lambda x, w: run_ort("Conv", [x, w], strides=[s], pads=p, dilations=[d], group=g), 1e-4)

    def deconv(c, h, w, o, kh, kw, s=(1, 1), p=(0, 0, 0, 0), d=(1, 1), g=1, extra=(0, 0)):
        attrs = f"strides={list(s)}, padding={list(p)}, dilation={list(d)}, groups={g}, output_padding={list(extra)}"
        case("nn.conv2d_transpose", f"nn.conv2d_transpose(%0, %1, {attrs})", [F(1, c, h, w), F(c, o // g, kh, kw)],
             lambda x, k: run_ort("ConvTranspose", [x, k], strides=s, pads=p, dilations=d, group=g, output_padding=extra), 1e-4)
    deconv(3, 4, 5, 4, 3, 3)
    deconv(4, 3, 4, 2, 4, 4, s=(2, 2), p=(1, 1, 1, 1))
    deconv(4, 3, 4, 6, 3, 2, s=(2, 3), p=(1, 0, 0, 1), g=2, extra=(1, 1))
    deconv(2, 4, 4, 3, 3, 3, d=(2, 2), p=(1, 2, 1, 2))


def winograd():
    def wino(n, c, h, w, o, m, p=(1, 1, 1, 1), block=0, groups=1, short=False, k=(3, 3)):
        shape = (n, c // block, h, w, block) if block else (n, c, h, w)
        attrs = f"tile_size={m}, padding={list(p)}" + (f', data_layout="NCHW{block}c"' if block else "")
        attrs += (f", groups={groups}" if groups > 1 else "") + (", short_tiles=true" if short else "")
        kernel = "" if k == (3, 3) else f", kernel_size={list(k)}"
        name = "nn.contrib_conv2d_winograd_without_weight_transform"

        def f(x, k):
            if block:
                x = x.transpose(0, 1, 4, 2, 3).reshape(n, c, h, w)
            y = run_ort("Conv", [x, k], pads=p, group=groups)
            return y.reshape(n, -1, block, *y.shape[2:]).transpose(0, 1, 3, 4, 2) if block else y
        case(name, f"{name}(%0, nn.contrib_conv2d_winograd_weight_transform(%1, tile_size={m}{kernel}), {attrs}{kernel})",
             [F(*shape), F(o, c // groups, *k)], f, 1e-4)
    for m in (2, 4):
        wino(1, 3, 8, 8, 4, m)
        wino(2, 2, 7, 5, 3, m, p=(0, 1, 2, 0))
        wino(1, 8, 6, 9, 16, m, block=8)
    wino(1, 2, 6, 6, 2, 4, p=(0, 0, 0, 0))
    for m in (2, 4):
        wino(1, 6, 5, 6, 6, m, groups=3)
        wino(1, 16, 5, 6, 16, m, block=8, groups=4)
        wino(1, 8, 5, 6, 32, m, block=8, groups=4)
        wino(1, 8, 5, 6, 64, m, block=8, groups=2)
        wino(1, 16, 5, 6, 16, m, block=8, groups=2)
        wino(1, 16, 3, 3, 32, m, block=4, groups=2)
    for m, h, w in ((2, 5, 3), (4, 5, 6), (4, 10, 9), (4, 7, 11), (4, 4, 7), (4, 2, 5)):
        wino(1, 8, h, w, 16, m, block=8, short=True)
    wino(1, 2, 6, 7, 3, 4, short=True)
    for k, p in (((5, 5), (2, 2, 2, 2)), ((4, 4), (1, 2, 1, 1)), ((2, 2), (0, 1, 1, 0)), ((3, 5), (1, 2, 1, 2)),
                 ((1, 3), (0, 1, 0, 1)), ((5, 1), (2, 0, 2, 0)), ((2, 4), (0, 0, 0, 0))):
        wino(1, 4, 6, 7, 16, 4, p=p, block=4, k=k)
        wino(1, 2, 7, 9, 3, 4, p=p, short=True, k=k)
    wino(1, 16, 5, 6, 16, 4, p=(2, 2, 2, 2), block=8, groups=4, k=(5, 5))
    for w in (8, 9, 10, 11, 12):  # outputs 6 to 12 of tiles of 5 and 3
        wino(1, 8, w, w, 8, 4, p=(0, 0, 1, 1), block=8, short=True, k=(2, 2))
        wino(1, 8, w, w, 8, 4, p=(1, 1, 1, 1), block=8, short=True, k=(4, 4))
    for k, p in (((5, 5), (2, 2, 2, 2)), ((7, 7), (3, 3, 3, 3)), ((4, 1), (1, 0, 2, 0)), ((6, 3), (2, 1, 3, 1)), ((2, 7), (0, 3, 1, 3))):
        wino(1, 4, 6, 9, 8, 6, p=p, block=4, k=k)
        wino(1, 4, 10, 9, 4, 6, p=p, block=4, short=True, k=k)
    for k in ((2, 2), (1, 2), (3, 2)):
        wino(1, 8, 6, 8, 8, 2, p=(0, 0, 0, 0), block=8, k=k)
        wino(1, 8, 6, 8, 8, 2, p=(0, 1, 0, 1), block=8, k=k, short=True)

    def weight(w, m):
        G = {2: [[1, 0, 0], [.5, .5, .5], [.5, -.5, .5], [0, 0, 1]],
             4: [[1 / 4, 0, 0], [-1 / 6, -1 / 6, -1 / 6], [-1 / 6, 1 / 6, -1 / 6],
                 [1 / 24, 1 / 12, 1 / 6], [1 / 24, -1 / 12, 1 / 6], [0, 0, 1]]}[m]
        return np.einsum("rk,oikl,ql->rqoi", np.array(G), w.astype(np.float64), np.array(G)).astype(np.float32)
    def points(w, m):
        """By the Lagrange polynomials of the points, of any kernel."""
        def g(k):
            if k == 1:
                return np.ones((1, 1))
            cells = 6 if m == 6 and k < 4 else m + 2
            p = np.array([0, 1, -1, 2, -2, .5, -.5][:cells - 1], float)
            scale = np.array([np.prod([x - z for z in p if z != x]) for x in p])
            if cells != 6:
                scale[0] = -scale[0]  # a sign that its data have
            scale[5:] *= 2.0 ** (cells - k)  # and what its outputs are multiplied by
            return np.vstack([p[:, None] ** np.arange(k) / scale[:, None], np.eye(k)[-1]])
        return np.einsum("rk,oikl,ql->rqoi", g(w.shape[2]), w.astype(np.float64), g(w.shape[3])).astype(np.float32)
    for m in (2, 4):
        name = "nn.contrib_conv2d_winograd_weight_transform"
        case(name, f"{name}(%0, tile_size={m})", [F(2, 3, 3, 3)], lambda w: weight(w, m), 1e-7)
    for m, k in ((2, (2, 3)), (2, (1, 2)), (4, (5, 5)), (4, (4, 2)), (4, (1, 3)), (4, (5, 1)), (6, (5, 5)), (6, (7, 3)), (6, (1, 4))):
        case(name, f"{name}(%0, tile_size={m}, kernel_size={list(k)})", [F(2, 3, *k)], lambda w: points(w, m), 1e-7)


def strassen():
    name = "nn.contrib_dense_strassen"

    def product(x, w):
        return np.matmul(x.astype(np.float64), w.T.astype(np.float64)).astype(np.float32)
    for x, w in (((5, 32), (64, 32)), ((2, 4, 32), (64, 32)), ((2, 3, 8), (6, 8)), ((2, 2), (2, 2))):
        case(name, f"{name}(%0, {name}_weight(%1))", [F(*x), F(*w)], product, 1e-5)

    def weight(w):
        (e, g), (f, h) = [np.split(half, 2, 1) for half in np.split(w, 2, 0)]
        return np.stack([e + h, e, f - h, g - e, h, e + f, g + h])
    case(f"{name}_weight", f"{name}_weight(%0)", [F(4, 6)], weight, 0)


def pooling():
    def pool(name, shape, k, s=(1, 1), p=(0, 0, 0, 0), d=(1, 1), ceil=0, inc=0):
        op = "MaxPool" if name == "max" else "AveragePool"
        kw = dict(kernel_shape=k, strides=s, pads=p, ceil_mode=ceil, dilations=d)
        if name == "avg":
            kw["count_include_pad"] = inc
        text = (f"nn.{name}_pool2d(%0, pool_size={list(k)}, strides={list(s)}, dilation={list(d)}, padding={list(p)}, "
                f"ceil_mode={'true' if ceil else 'false'}, count_include_pad={'true' if inc else 'false'})")
        case(f"nn.{name}_pool2d", text, [F(*shape)], lambda x: run_ort(op, [x], opset=19, **kw), 1e-6)
    for name in ("max", "avg"):
        pool(name, (1, 3, 6, 6), (2, 2), (2, 2))
        pool(name, (1, 5, 7, 7), (3, 3), (2, 2), (1, 1, 1, 1))
        pool(name, (1, 8, 7, 6), (3, 3), (2, 2), ceil=1)
        pool(name, (1, 2, 5, 5), (3, 2), (1, 2), (1, 0, 0, 1))
        pool(name, (1, 2, 9, 9), (2, 3), (2, 1), (0, 0, 0, 0), d=(2, 3))
    pool("avg", (1, 3, 6, 6), (3, 3), (1, 1), (1, 1, 1, 1), inc=1)
    pool("avg", (1, 3, 7, 7), (3, 3), (2, 2), (1, 1, 1, 1), ceil=1, inc=0)
    pool("max", (1, 3, 4, 4), (2, 2), (1, 1), (0, 0, 1, 1))
    case("nn.max_pool2d", "nn.max_pool2d(%0, pool_size=[2, 2], strides=[2, 2])", [In("i8", 1, 2, 4, 4, lo=-128, hi=128)],
         lambda x: x.reshape(1, 2, 2, 2, 2, 2).max((3, 5)))
    for shape in ((1, 8, 3, 5), (2, 5, 7, 7)):
        case("nn.global_avg_pool2d", "nn.global_avg_pool2d(%0)", [F(*shape)], lambda x: run_ort("GlobalAveragePool", [x]), 1e-5)
        case("nn.global_max_pool2d", "nn.global_max_pool2d(%0)", [F(*shape)], lambda x: x.max((2, 3), keepdims=True))


def products():
    mm = lambda a, b: np.matmul(a.astype(np.float64), b.astype(np.float64)).astype(np.float32)
    T = lambda a: np.swapaxes(a, -1, -2)
    case("nn.dense", "nn.dense(%0, %1)", [F(3, 5), F(4, 5)], lambda x, w: mm(x, w.T), 1e-5)
    case("nn.dense", "nn.dense(%0, %1)", [F(1, 17), F(33, 17)], lambda x, w: mm(x, w.T), 1e-5)
    case("nn.dense", "nn.dense(%0, %1, units=4)", [F(2, 3, 5), F(4, 5)], lambda x, w: mm(x, w.T), 1e-5)
    case("nn.dense", "nn.dense(%0, %1)", [In("u8", 2, 9, lo=0, hi=256), In("i8", 3, 9, lo=-128, hi=128)],
         lambda x, w: x.astype(np.int32) @ w.astype(np.int32).T)
    case("nn.matmul", "nn.matmul(%0, %1)", [F(3, 5), F(5, 4)], mm, 1e-5)
    case("nn.matmul", "nn.matmul(%0, %1, transpose_a=true, transpose_b=true)", [F(5, 3), F(4, 5)], lambda a, b: mm(a.T, b.T), 1e-5)
    # Rows of the second matrix lie along k: turned into panels, the last one partly; one row without that.
    case("nn.matmul", "nn.matmul(%0, %1, transpose_b=true)", [F(9, 19), F(37, 19)], lambda a, b: mm(a, b.T), 1e-5)
    case("nn.matmul", "nn.matmul(%0, %1, transpose_b=true)", [F(1, 75), F(9, 75)], lambda a, b: mm(a, b.T), 1e-5)
    case("nn.batch_matmul", "nn.batch_matmul(%0, %1)", [F(3, 4, 9), F(3, 18, 9)], lambda a, b: mm(a, T(b)), 1e-5)
    case("nn.batch_matmul", "nn.batch_matmul(%0, %1)", [F(2, 3, 5), F(2, 4, 5)], lambda a, b: mm(a, T(b)), 1e-5)
    case("nn.batch_matmul", "nn.batch_matmul(%0, %1, transpose_b=false)", [F(2, 1, 3, 5), F(4, 5, 6)], mm, 1e-5)
    case("nn.batch_matmul", "nn.batch_matmul(%0, %1, transpose_a=true, transpose_b=false)", [F(2, 5, 3), F(5, 6)],
         lambda a, b: mm(T(a), b), 1e-5)


def attention():
    T = lambda a: np.swapaxes(a, -1, -2)

    def ref(scale=1.0, fill=-np.inf, axes=(None,) * 4):
        def f(q, k, v, mask=None):
            q, k, v = (a if o is None else a.transpose(o) for a, o in zip((q, k, v), axes))
            s = q.astype(np.float64) @ T(k.astype(np.float64)) * scale
            if mask is not None:
                s = np.where(mask, s, fill) if mask.dtype == np.bool_ else s + mask.astype(np.float64)
            p = np.exp(s - s.max(-1, keepdims=True))
            y = p / p.sum(-1, keepdims=True) @ v.astype(np.float64)
            return (y if axes[3] is None else y.transpose(axes[3])).astype(np.float32)
        return f

    def one(q, k, v, mask=None, attrs="", **kw):
        ins = [q, k, v] + ([mask] if mask else [])
        operands = ", ".join(f"%{i}" for i in range(len(ins)))
        case("nn.attention", f"nn.attention({operands}{attrs})", ins, ref(**kw), 2e-6)

    one(F(3, 5), F(4, 5), F(4, 6))
    one(F(2, 9, 5), F(2, 17, 5), F(2, 17, 18), attrs=", scale=0.5", scale=0.5)
    one(F(1, 3, 20, 8), F(1, 1, 37, 8), F(1, 3, 37, 16), F(37, lo=-5, hi=0), ", scale=0.35", scale=0.35)
    one(F(1, 20, 2, 8), F(1, 33, 2, 8), F(1, 33, 2, 24), F(1, 1, 20, 33), ", scale=0.35, axes_q=[0, 2, 1, 3], axes_k=[0, 2, 1, 3], "
        "axes_v=[0, 2, 1, 3], axes_out=[0, 2, 1, 3]", scale=0.35, axes=((0, 2, 1, 3),) * 4)
    one(F(2, 11, 16), F(2, 16, 32), F(2, 32, 16), attrs=", axes_k=[0, 2, 1]", axes=(None, (0, 2, 1), None, None))
    # rows that are masked in part, one as a whole
    shut = [-np.inf if j % 3 == 0 or i == 2 else j / 8 for i in range(9) for j in range(16)]
    one(F(9, 4), F(16, 4), F(16, 16), In("f32", 9, 16, vals=shut))
    open_ = [int(j <= i + 7 and i != 1) for i in range(9) for j in range(16)]
    one(F(2, 9, 4), F(2, 16, 4), F(2, 16, 16), In("bool", 9, 16, vals=open_))
    one(F(2, 9, 4), F(2, 16, 4), F(2, 16, 16), In("bool", 9, 16, vals=open_), ", fill=-3.0", fill=-3.0)
    # keys by chunks: one that is left over, first chunks that are masked as a whole, more room than keys
    one(F(2, 21, 5), F(2, 37, 5), F(2, 37, 9), attrs=", scale=0.5, chunk=16", scale=0.5)
    late = [-np.inf if j < 17 + i % 3 or i == 2 else j / 8 for i in range(9) for j in range(40)]
    one(F(9, 4), F(40, 4), F(40, 6), In("f32", 9, 40, vals=late), ", chunk=8")
    one(F(1, 10, 2, 8), F(1, 24, 2, 8), F(1, 24, 2, 12), F(1, 1, 10, 24), ", scale=0.35, axes_q=[0, 2, 1, 3], axes_k=[0, 2, 1, 3], "
        "axes_v=[0, 2, 1, 3], axes_out=[0, 2, 1, 3], chunk=32", scale=0.35, axes=((0, 2, 1, 3),) * 4)
    one(F(2, 9, 4), F(2, 16, 4), F(2, 16, 16), In("bool", 9, 16, vals=open_), ", fill=-3.0, chunk=4", fill=-3.0)
    # operands of 16 bits, scores and sums of 32: all keys at once, and by chunks
    for chunk in ("", ", chunk=16"):
        H = [In("f16", 2, n, 3, 16) for n in (11, 37, 37)]
        one(*H, F(11, 37), f', scale=0.35, axes_q=[0, 2, 1, 3], axes_k=[0, 2, 1, 3], axes_v=[0, 2, 1, 3]{chunk}, out_dtype="f32"', scale=0.35,
            axes=((0, 2, 1, 3),) * 3 + (None,))


def lstm():
    def ref(direction):
        def f(x, w, r, b, h0, c0):
            return run_ort("LSTM", [x, w, r, b, None, h0, c0], nout=3, hidden_size=int(r.shape[2]), direction=direction)
        return f
    for direction, d, t, n, i, h in (("forward", 1, 3, 1, 4, 5), ("reverse", 1, 4, 2, 3, 8), ("bidirectional", 2, 3, 1, 5, 19)):
        case("nn.lstm", f'nn.lstm(%0, %1, %2, %3, %4, %5, direction="{direction}")',
             [F(t, n, i), F(d, 4 * h, i, lo=-0.5, hi=0.5), F(d, 4 * h, h, lo=-0.5, hi=0.5), F(d, 8 * h, lo=-0.5, hi=0.5),
              F(d, n, h), F(d, n, h)], ref(direction), 1e-5)

    def onnx(op, **attrs):
        return lambda x, w, r, b, h0: run_ort(op, [x, w, r, b, None, h0], nout=2, hidden_size=int(r.shape[2]), **attrs)
    for direction, d, t, n, i, h in (("forward", 1, 3, 1, 4, 5), ("reverse", 1, 4, 2, 3, 16), ("bidirectional", 2, 3, 3, 5, 19)):
        for linear in (0, 1):
            case("nn.gru", f'nn.gru(%0, %1, %2, %3, %4, direction="{direction}", linear_before_reset={"true" if linear else "false"})',
                 [F(t, n, i), F(d, 3 * h, i, lo=-0.5, hi=0.5), F(d, 3 * h, h, lo=-0.5, hi=0.5), F(d, 6 * h, lo=-0.5, hi=0.5),
                  F(d, n, h)], onnx("GRU", direction=direction, linear_before_reset=linear), 1e-5)
        for f in ("Tanh", "Relu"):
            case("nn.rnn", f'nn.rnn(%0, %1, %2, %3, %4, direction="{direction}", f="{f.lower()}")',
                 [F(t, n, i), F(d, h, i, lo=-0.5, hi=0.5), F(d, h, h, lo=-0.5, hi=0.5), F(d, 2 * h, lo=-0.5, hi=0.5),
                  F(d, n, h)], onnx("RNN", direction=direction, activations=[f] * d), 1e-5)

    sig = lambda v: 1 / (1 + np.exp(-v))

    def cell(kind, direction, gates, sums):  # xw [T, N, D*gates*H], r [D, H, sums, H]
        def f(xw, r, h0, more=None):
            (d, hid, _, _), steps = r.shape, xw.shape[0]
            xw = xw.astype(np.float64).reshape(steps, xw.shape[1], d, gates, hid).transpose(2, 0, 3, 1, 4)
            w, ys, hs, cs = r.astype(np.float64).transpose(0, 2, 1, 3), np.zeros((steps, d, h0.shape[1], hid)), [], []
            for k in range(d):
                h, c = h0[k].astype(np.float64), more[k].astype(np.float64) if kind == "lstm" else None
                back = direction == "reverse" or k == 1
                for t in reversed(range(steps)) if back else range(steps):
                    x, p = xw[k, t], [h @ w[k, g] for g in range(sums)]
                    if kind == "lstm":
                        i, o, f, g = (x[q] + p[q] for q in range(4))
                        c = sig(f) * c + sig(i) * np.tanh(g)
                        h = sig(o) * np.tanh(c)
                    elif kind == "rnn":
                        h = np.tanh(x[0] + p[0])
                    else:
                        z, q = sig(x[0] + p[0]), sig(x[1] + p[1])
                        n = q * (p[2] + more[k]) if kind == "gru_linear" else (q * h) @ more[k].astype(np.float64)
                        h = (1 - z) * np.tanh(x[2] + n) + z * h
                    ys[t, k] = h
                hs.append(h)
                cs.append(c)
            outs = (ys, np.stack(hs)) + ((np.stack(cs),) if kind == "lstm" else ())
            return tuple(v.astype(np.float32) for v in outs)
        return f
    for kind, gates, sums in (("lstm", 4, 4), ("gru", 3, 2), ("gru_linear", 3, 3), ("rnn", 1, 1)):
        for direction, d, n, h in (("forward", 1, 2, 4), ("reverse", 1, 1, 18), ("bidirectional", 2, 3, 16)):
            more = {"lstm": [F(d, n, h)], "gru": [F(d, h, h, lo=-0.5, hi=0.5)], "gru_linear": [F(d, h)], "rnn": []}
            operands = ", ".join(f"%{i}" for i in range(3 + len(more[kind])))
            rnn_f = ', f="tanh"' if kind == "rnn" else ""
            case("nn.recurrent", f'nn.recurrent({operands}, cell="{kind}", direction="{direction}"{rnn_f})',
                 [F(3, n, d * gates * h), F(d, h, sums, h, lo=-0.5, hi=0.5), F(d, n, h)] + more[kind],
                 cell(kind, direction, gates, sums), 1e-5)


def linear_attention(rule, q, k, v, state, *more):
    decay = more[0] if "gated" in rule else np.ones_like(k)
    beta = more[-1] if "delta" in rule else None
    y, state = np.zeros(q.shape[:4] + v.shape[3:]), state.astype(np.float64)
    for t in range(q.shape[1]):
        state = state * decay[:, t, :, :, None]
        add = v[:, t] if beta is None else beta[:, t, :, None] * (v[:, t] - np.einsum("nhdj,nhd->nhj", state, k[:, t]))
        state = state + k[:, t, :, :, None] * add[:, :, None]
        y[:, t] = np.einsum("nhgd,nhdj->nhgj", q[:, t], state)
    return y.astype(np.float32), state.astype(np.float32)


def attention_by_state():
    for rule, n in (("linear", 0), ("gated", 1), ("delta", 1), ("gated_delta", 2)):
        q, k, v, first = F(2, 3, 2, 2, 5), F(2, 3, 2, 5), F(2, 3, 2, 9), F(2, 2, 5, 9)
        decay, beta = F(2, 3, 2, 5, lo=0.5, hi=1), F(2, 3, 2, lo=0, hi=1)
        more = ([decay] if "gated" in rule else []) + ([beta] if "delta" in rule else [])
        args = ", ".join(f"%{i}" for i in range(4 + len(more)))
        case("nn.linear_attention", f'nn.linear_attention({args}, rule="{rule}")', [q, k, v, first] + more,
             lambda *a, rule=rule: linear_attention(rule, *a), 1e-5)
    more = [F(1, 4, 1, 1, lo=0.5, hi=1), F(1, 4, 1, lo=0, hi=1)]
    case("nn.linear_attention", 'nn.linear_attention(%0, %1, %2, %3, %4, %5, rule="gated_delta")',
         [F(1, 4, 1, 1, 16), F(1, 4, 1, 16), F(1, 4, 1, 16), F(1, 1, 16, 16)] + more,
         lambda *a: linear_attention("gated_delta", *a), 1e-5)


def quantized():
    Q = lambda *s: In("i8", *s, lo=-128, hi=128)
    s0, z0 = In("f32", vals=[0.0625]), In("i8", vals=[3])
    case("qnn.quantize", "qnn.quantize(%0, %1, %2)", [F(3, 9, lo=-20, hi=20), s0, z0],
         lambda x, s, z: run_ort("QuantizeLinear", [x, s, z]))
    case("qnn.quantize", "qnn.quantize(%0, %1, %2, out_dtype=u8)",
         [V("f32", 0.5, 1.5, 2.5, -0.5, 300, -300), In("f32", vals=[1]), In("u8", vals=[7])],
         lambda x, s, z: run_ort("QuantizeLinear", [x, s, z]))
    case("qnn.quantize", "qnn.quantize(%0, %1, %2, axis=1)", [F(2, 3, 4, lo=-20, hi=20), F(3, lo=0.05, hi=0.2), In("i8", 3, lo=-9, hi=9)],
         lambda x, s, z: run_ort("QuantizeLinear", [x, s, z], axis=1))
    case("qnn.dequantize", "qnn.dequantize(%0, %1, %2)", [Q(3, 5), s0, z0], lambda x, s, z: run_ort("DequantizeLinear", [x, s, z]))
    case("qnn.dequantize", "qnn.dequantize(%0, %1, %2, axis=0)", [Q(3, 5), F(3, lo=0.05, hi=0.2), In("i8", 3, lo=-9, hi=9)],
         lambda x, s, z: run_ort("DequantizeLinear", [x, s, z], axis=0))
    case("qnn.dequantize", "qnn.dequantize(%0, %1, %2, axis=0)", [In("i32", 3, lo=-9999, hi=9999), F(3, lo=0.05, hi=0.2), In("i32", 3, vals=[0, 0, 0])],
         lambda x, s, z: run_ort("DequantizeLinear", [x, s, z], axis=0))

    def requant(x, s, z, s2, z2):
        y = run_ort("DequantizeLinear", [x, s, z])
        return run_ort("QuantizeLinear", [y, s2, z2])
    case("qnn.requantize", "qnn.requantize(%0, %1, %2, %3, %4)", [Q(4, 9), s0, z0, In("f32", vals=[0.11]), In("i8", vals=[-5])], requant)

    # Bytes, four steps of the sum or more at a time; of both signs.
    def conv(a, b, n, c, h, w, o, kh, kw, s=(1, 1), p=(0, 0, 0, 0), g=1):
        attrs = f'strides={list(s)}, padding={list(p)}, groups={g}, channels={o}, kernel_size=[{kh}, {kw}], out_dtype="i32"'
        case("nn.conv2d", f"nn.conv2d(%0, %1, {attrs})", [B(a, n, c, h, w), B(b, o, c // g, kh, kw)],
             lambda x, k: run_ort("Conv", [x.astype(np.float32), k.astype(np.float32)], strides=s, pads=p, group=g,
                                  kernel_shape=[kh, kw]).astype(np.int32))
    B = lambda dtype, *s: In(dtype, *s, lo=-128 if dtype == "i8" else 0, hi=128 if dtype == "i8" else 256)
    conv("u8", "i8", 1, 8, 7, 9, 12, 3, 3, s=(2, 1), p=(1, 1, 1, 1))
    conv("i8", "i8", 2, 12, 6, 5, 9, 1, 1)
    conv("i8", "u8", 1, 8, 6, 6, 6, 3, 3, g=2)
    conv("u8", "u8", 1, 64, 5, 5, 24, 1, 1)
    for a, b, m, k, n in (("u8", "i8", 5, 20, 7), ("i8", "u8", 9, 36, 17), ("u8", "u8", 4, 8, 6), ("i8", "i8", 33, 64, 40),
                          ("u8", "i8", 1, 300, 33), ("i8", "u8", 1, 36, 3), ("u8", "u8", 1, 64, 5), ("i8", "i8", 1, 30, 6)):
        case("nn.dense", 'nn.dense(%0, %1, out_dtype="i32")', [B(a, m, k), B(b, n, k)],
             lambda x, w: x.astype(np.int32) @ w.astype(np.int32).T)
