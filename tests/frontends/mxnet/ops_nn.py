"""Graphs of layers."""
import numpy as np
from record import C, I, S, model, mx


@model
def convolutions(m):
    x, line, volume = m.x("x", m.f32(2, 4, 9, 8)), m.x("line", m.f32(2, 3, 11)), m.x("volume", m.f32(1, 2, 5, 6, 7))
    m.out(m.layer(S.Convolution, x, dict(weight=(6, 4, 3, 3), bias=(6,)), "plain", kernel=(3, 3), num_filter=6))
    m.out(m.layer(S.Convolution, x, dict(weight=(6, 4, 3, 2)), "strided", kernel=(3, 2), stride=(2, 1), pad=(1, 0), dilate=(1, 2), num_filter=6, no_bias=True))
    m.out(m.layer(S.Convolution, x, dict(weight=(8, 2, 3, 3), bias=(8,)), "groups", kernel=(3, 3), num_group=2, num_filter=8))
    m.out(m.layer(S.Convolution, x, dict(weight=(4, 1, 3, 3)), "depthwise", kernel=(3, 3), pad=(1, 1), num_group=4, num_filter=4, no_bias=True))
    m.out(m.layer(S.Convolution, line, dict(weight=(5, 3, 4), bias=(5,)), "line1", kernel=(4,), stride=(2,), pad=(1,), num_filter=5))
    m.out(m.layer(S.Convolution, volume, dict(weight=(3, 2, 2, 3, 3), bias=(3,)), "volume1", kernel=(2, 3, 3), stride=(1, 2, 1), pad=(1, 0, 1), num_filter=3))
    m.out(m.layer(S.Deconvolution, x, dict(weight=(4, 3, 3, 3)), "up", kernel=(3, 3), stride=(2, 2), pad=(1, 1), adj=(1, 0), num_filter=3))
    m.out(m.layer(S.Deconvolution, x, dict(weight=(4, 2, 2, 2), bias=(4,)), "up_groups", kernel=(2, 2), stride=(2, 2), num_group=2, num_filter=4, no_bias=False))
    m.out(m.layer(S.Deconvolution, x, dict(weight=(4, 3, 4, 4)), "target", kernel=(4, 4), stride=(2, 2), target_shape=(17, 16), num_filter=3))
    m.out(m.layer(S.Deconvolution, line, dict(weight=(3, 2, 3)), "up_line", kernel=(3,), stride=(2,), pad=(1,), num_filter=2))


@model
def dense(m):
    x, t = m.x("x", m.f32(3, 4, 5)), m.x("t", m.f32(3, 6))
    m.out(m.layer(S.FullyConnected, x, dict(weight=(7, 20), bias=(7,)), "flat", num_hidden=7))
    m.out(m.layer(S.FullyConnected, x, dict(weight=(7, 5)), "rows", num_hidden=7, no_bias=True, flatten=False))
    m.out(m.layer(S.FullyConnected, t, dict(weight=(2, 6), bias=(2,)), "plain", num_hidden=2))
    y, z = m.x("y", m.f32(6, 4)), m.x("z", m.f32(5, 2, 3))
    m.out(S.dot(t, y, name="dot"), S.dot(y, t, transpose_a=True, transpose_b=True, name="turned"), S.dot(x, z, name="many"))
    m.out(S.dot(t, m.x("t2", m.f32(5, 6)), transpose_b=True, name="weights"), S.dot(m.x("v", m.f32(6)), y, name="vector"))
    m.out(S.dot(m.x("v1", m.f32(6)), m.x("v2", m.f32(6)), name="number"))
    b, c = m.x("b", m.f32(3, 5, 2)), m.x("c", m.f32(3, 2, 4))
    m.out(S.batch_dot(x, b, name="batch"), S.batch_dot(c, x, name="batch2"))
    m.out(S.batch_dot(b, m.x("d", m.f32(3, 5, 4)), transpose_a=True, name="batch_a"), S.batch_dot(x, m.x("e", m.f32(3, 6, 5)), transpose_b=True, name="batch_b"))
    m.out(S.linalg.gemm2(t, y, alpha=0.5, name="gemm"), S.linalg.gemm2(x, b, name="gemm_batch"))


@model
def activations(m):
    x, i = m.x("x", m.f32(2, 3, 4, lo=-3, hi=3)), m.x("i", m.f32(2, 3, 4, 2))
    for t in ["relu", "sigmoid", "tanh", "softrelu", "softsign"]:
        m.out(S.Activation(x, act_type=t, name=t))
    for t in ["leaky", "elu", "selu", "gelu"]:
        m.out(S.LeakyReLU(x, act_type=t, slope=0.3, name="leaky_" + t))
    m.out(S.LeakyReLU(x, act_type="rrelu", name="rrelu")[0])
    m.out(S.LeakyReLU(i, m.w("slopes", m.f32(3)), act_type="prelu", name="prelu"), S.LeakyReLU(x, m.w("slope", m.f32(1)), act_type="prelu", name="prelu1"))
    m.out(S.softmax(x, name="softmax"), S.softmax(x, axis=1, temperature=2, name="soft1"), S.log_softmax(x, axis=1, name="log"), S.softmin(x, name="softmin"))
    m.out(S.softmax(x, m.x("length", m.ints(1, 5, 2, 3, dtype=np.int32)), use_length=True, name="some"))
    m.out(S.SoftmaxActivation(i, mode="channel", name="channel"), S.SoftmaxActivation(x, name="instance"))
    m.out(S.SoftmaxOutput(m.x("rows", m.f32(3, 5)), name="out"), S.SoftmaxOutput(i, multi_output=True, name="multi"), S.SoftmaxOutput(x, preserve_shape=True, name="kept"), S.SoftmaxOutput(x, name="flat"))
    m.out(S.LinearRegressionOutput(x, name="linear"), S.LogisticRegressionOutput(x, name="logistic"), S.MAERegressionOutput(x, name="mae"))
    m.out(S.Dropout(x, p=0.5, name="dropout"))


@model
def norms(m):
    x, v = m.x("x", m.f32(2, 6, 4, 5)), m.x("v", m.f32(3, 7))
    bn = dict(gamma=(6,), beta=(6,), moving_mean=(6,), moving_var=(6,))
    m.out(m.layer(S.BatchNorm, x, bn, "bn"), m.layer(S.BatchNorm, x, bn, "free", fix_gamma=False, eps=1e-2))
    m.out(m.layer(S.BatchNorm, x, dict(gamma=(5,), beta=(5,), moving_mean=(5,), moving_var=(5,)), "last", axis=-1, fix_gamma=False))
    m.out(m.layer(S.BatchNorm, v, dict(gamma=(7,), beta=(7,), moving_mean=(7,), moving_var=(7,)), "rows", fix_gamma=False, use_global_stats=True))
    m.out(m.layer(C.SyncBatchNorm, x, bn, "sync", fix_gamma=False, key="k"))
    m.out(m.layer(S.LayerNorm, x, dict(gamma=(5,), beta=(5,)), "ln"), m.layer(S.LayerNorm, x, dict(gamma=(6,), beta=(6,)), "ln1", axis=1))
    m.out(m.layer(S.LayerNorm, x, dict(gamma=(5,), beta=(5,)), "ln_all", output_mean_var=True))
    m.out(m.layer(S.InstanceNorm, x, dict(gamma=(6,), beta=(6,)), "instance"), m.layer(S.GroupNorm, x, dict(gamma=(3,), beta=(3,)), "group", num_groups=3))
    for mode in ["instance", "channel", "spatial"]:
        m.out(S.L2Normalization(x, mode=mode, name="l2_" + mode))
    m.out(S.LRN(x, nsize=3, name="lrn"), S.LRN(x, nsize=5, alpha=0.1, beta=0.5, knorm=1, name="lrn5"))


@model
def pooling(m):
    x, line, volume = m.x("x", m.f32(2, 3, 9, 8)), m.x("line", m.f32(2, 3, 11)), m.x("volume", m.f32(1, 2, 5, 6, 7))
    for t in ["max", "avg", "sum", "lp"]:
        more = dict(p_value=2) if t == "lp" else {}
        m.out(S.Pooling(x, kernel=(3, 2), stride=(2, 2), pad=(1, 1), pool_type=t, name=t, **more))
        m.out(S.Pooling(x, kernel=(3, 3), stride=(2, 3), pool_type=t, pooling_convention="full", name=t + "_full", **more))
        m.out(S.Pooling(x, kernel=(2, 2), pool_type=t, global_pool=True, name=t + "_all", **more) if t != "lp" else S.Pooling(x, kernel=(2, 2), pool_type=t, name="lp1", **more))
    m.out(S.Pooling(x, kernel=(3, 3), stride=(2, 2), pad=(1, 1), pool_type="avg", count_include_pad=False, name="without"))
    m.out(S.Pooling(line, kernel=(3,), stride=(2,), pad=(1,), pool_type="max", name="line_max"), S.Pooling(line, kernel=(2,), stride=(2,), pool_type="avg", pooling_convention="full", name="line_avg"))
    m.out(S.Pooling(volume, kernel=(2, 2, 2), stride=(2, 2, 2), pool_type="max", name="volume_max"), S.Pooling(volume, kernel=(3, 2, 2), stride=(1, 2, 2), pad=(1, 0, 1), pool_type="avg", name="volume_avg"))
    m.out(S.Pooling(volume, kernel=(1, 1, 1), global_pool=True, pool_type="avg", name="volume_all"), S.Pooling_v1(x, kernel=(2, 2), stride=(2, 2), pool_type="avg", name="old"))
    for size in [(), (2, 4), (3, 4), (5, 3), 3]:
        m.out(C.AdaptiveAvgPooling2D(x, output_size=size))


@model
def sizes(m):
    x, y = m.x("x", m.f32(2, 3, 4, 5)), m.x("y", m.f32(2, 2, 8, 10))
    m.out(S.UpSampling(x, scale=2, sample_type="nearest", num_args=1, name="nearest"), S.UpSampling(x, y, scale=4, sample_type="nearest", num_args=2, name="two"))
    m.out(S.UpSampling(x, x, scale=2, sample_type="nearest", num_args=2, multi_input_mode="sum", name="added"))
    for s in (2, 3):
        k = 2 * s - s % 2
        m.out(S.UpSampling(x, m.w(f"bilinear{s}_weight", m.f32(3, 1, k, k)), scale=s, sample_type="bilinear", num_filter=3, num_args=1, name=f"bilinear{s}"))
    m.out(C.BilinearResize2D(x, height=7, width=9, name="corners"), C.BilinearResize2D(x, height=3, width=4, align_corners=False, name="half"))
    m.out(C.BilinearResize2D(x, scale_height=1.5, scale_width=2, mode="size", name="scaled"), C.BilinearResize2D(x, scale_height=2.0, scale_width=2.0, mode="odd_scale", name="odd"))
    m.out(C.BilinearResize2D(x, y, mode="like", name="like"))
    for mode in ["to_even_down", "to_even_up", "to_odd_down", "to_odd_up"]:
        m.out(C.BilinearResize2D(x, mode=mode, name=mode))


@model
def recurrent(m):
    x = m.x("x", m.f32(4, 2, 3))
    for mode, gates in [("lstm", 4), ("gru", 3), ("rnn_tanh", 1), ("rnn_relu", 1)]:
        for layers, two in [(1, 1), (2, 2)]:
            H, name = 5, f"{mode}{layers}"
            cells = sum(two * gates * H * ((two * H if i else 3) + H + 2) for i in range(layers))
            args = dict(parameters=m.w(name + "_parameters", m.f32(cells)), state=m.x(name + "_state", m.f32(layers * two, 2, H)))
            if mode == "lstm":
                args["state_cell"] = m.x(name + "_cell", m.f32(layers * two, 2, H))
            m.out(S.RNN(x, state_size=H, num_layers=layers, bidirectional=two == 2, mode=mode, state_outputs=layers == 2, name=name, **args))
    parts = [S.Reshape(m.w(f"part{i}", m.f32(*s)), shape=(-1,)) for i, s in enumerate([(15, 3), (15, 5), (15,), (15,)])]
    m.out(S.RNN(x, I._rnn_param_concat(*parts, dim=0), S.zeros((1, 0, 5)), state_size=5, num_layers=1, mode="gru", name="joined"))


@model
def attention(m):
    x, q, kv = m.x("x", m.f32(5, 2, 24)), m.x("q", m.f32(4, 2, 8)), m.x("kv", m.f32(5, 2, 16))
    m.out(C.div_sqrt_dim(x, name="div"))
    s = C.interleaved_matmul_selfatt_qk(x, heads=2, name="self")
    m.out(s, C.interleaved_matmul_selfatt_valatt(x, S.softmax(s), heads=2, name="selfv"))
    s = C.interleaved_matmul_encdec_qk(q, kv, heads=2, name="other")
    m.out(s, C.interleaved_matmul_encdec_valatt(kv, S.softmax(s), heads=2, name="otherv"))


@model
def foreach(m):
    x, s, w = m.x("x", m.f32(4, 2, 3)), m.x("s", m.f32(2, 3)), m.x("w", m.f32(2, 3))
    k = m.w("k", m.f32(2, 3))

    def body(data, states):
        h = S.tanh(data * w + states[0] + k)
        return [h * 2, data - h], [h, states[1] + 1]

    outs, states = C.foreach(body, x, [s, s * 0])
    m.out(*outs, *states)
    out, _ = C.foreach(lambda d, st: (C.foreach(lambda e, t: (e + t, e + t), d, st)[0], st + 1), m.x("deep", m.f32(3, 4, 2)), m.x("t", m.f32(2)))
    m.out(out)


@model
def loops(m):
    i, s = m.x("i", np.zeros(1, np.float32)), m.x("s", m.f32(1))
    x = m.x("x", m.f32(1))
    outs, states = C.while_loop(lambda i, s: i < 4, lambda i, s: ([i + s * x], [i + 1, s + i]), (i, s), max_iterations=4)
    m.out(outs[0], *states)
    a, b = m.x("a", m.f32(1)), m.x("b", m.f32(1))
    m.out(C.cond(a * b < 5, lambda: (a + 5) * (b + 5), lambda: (a - 5) * (b - 5)))
    m.out(*C.cond(a > 5, lambda: [a + b, b], lambda: [a - b, a]))


@model
def regions(m):
    x = m.x("x", m.f32(2, 3, 8, 10))
    rois = m.x("rois", np.array([[0, 0, 0, 7, 7], [1, 2, 3, 15, 12], [0, 5, 5, 6, 6], [1, 0, 0, 19, 15]], np.float32))
    m.out(S.ROIPooling(x, rois, pooled_size=(3, 2), spatial_scale=0.5, name="pool"), S.ROIPooling(x, rois, pooled_size=(2, 2), spatial_scale=0.4, name="pool4"))
    m.out(C.ROIAlign(x, rois, pooled_size=(2, 3), spatial_scale=0.5, sample_ratio=2, name="align"), C.ROIAlign(x, rois, pooled_size=(2, 2), spatial_scale=0.5, name="any"))
    y = m.x("y", m.f32(2, 3, 8, 10))
    m.out(S.Correlation(x, y, max_displacement=2, pad_size=2, name="c1"), S.Correlation(x, y, kernel_size=3, max_displacement=2, stride1=2, stride2=2, pad_size=3, is_multiply=False, name="c3"))


@model
def sampling(m):
    x = m.x("x", m.f32(2, 3, 6, 7))
    theta, grid, flow = m.x("theta", m.f32(2, 6)), m.x("grid", m.f32(2, 2, 4, 5, lo=-1.3, hi=1.3)), m.x("flow", m.f32(2, 2, 4, 5))
    m.out(S.GridGenerator(theta, transform_type="affine", target_shape=(3, 4), name="affine"), S.GridGenerator(flow, transform_type="warp", name="warp"))
    m.out(S.BilinearSampler(x, grid, name="sampler"), S.SpatialTransformer(x, theta, target_shape=(4, 3), transform_type="affine", sampler_type="bilinear", name="transformer"))
    m.out(m.layer(C.DeformableConvolution, x, dict(offset=(2, 18, 6, 7), weight=(4, 3, 3, 3), bias=(4,)), "deformed", kernel=(3, 3), pad=(1, 1), num_filter=4))
    m.out(m.layer(C.ModulatedDeformableConvolution, x, dict(offset=(2, 18, 3, 4), mask=(2, 9, 3, 4), weight=(4, 3, 3, 3), bias=(4,)), "modulated", kernel=(3, 3), stride=(2, 2), pad=(1, 1), num_filter=4))


@model
def boxes(m):
    x = m.x("x", m.f32(1, 2, 3, 4))
    prior = C.MultiBoxPrior(x, sizes=(0.4, 0.2), ratios=(1, 2, 0.5), name="prior")
    m.out(prior, C.MultiBoxPrior(x, sizes=(0.7,), ratios=(2, 1), clip=True, steps=(0.3, 0.2), offsets=(0.4, 0.6), name="clipped"))
    A = 3 * 4 * 4
    probs = m.x("probs", np.exp(m.f32(2, 4, A, hi=2)) / 8)
    loc = m.x("loc", m.f32(2, A * 4))
    m.out(C.MultiBoxDetection(probs, loc, prior, threshold=0.3, nms_threshold=0.4, name="detection"))
    m.out(C.MultiBoxDetection(probs, loc, prior, threshold=0.3, nms_threshold=0.3, force_suppress=True, name="forced"))
    m.out(C.MultiBoxDetection(probs, loc, prior, threshold=0.3, nms_threshold=0.4, nms_topk=9, name="top"))
    m.out(C.MultiBoxDetection(probs, loc, prior, threshold=0.4, nms_threshold=-1, clip=False, name="all"))
    corners = np.sort(m.f32(2, 12, 2, 2, lo=0, hi=1), axis=2).reshape(2, 12, 4)
    rows = m.x("rows", np.concatenate([m.ints(0, 3, 2, 12, 1), m.f32(2, 12, 1, lo=0, hi=1), corners], axis=2))
    m.out(C.box_nms(rows, overlap_thresh=0.1, valid_thresh=0.2, coord_start=2, score_index=1, id_index=0, name="nms"))
    m.out(C.box_nms(rows, overlap_thresh=0.1, valid_thresh=0.2, topk=5, coord_start=2, score_index=1, id_index=0, force_suppress=True, out_format="center", name="nms_forced"))
    m.out(C.box_nms(rows, overlap_thresh=0.2, coord_start=2, score_index=1, id_index=0, background_id=1, in_format="center", name="nms_center"))
    m.out(C.box_decode(m.x("deltas", m.f32(2, 5, 4)), m.x("anchors", m.f32(1, 5, 4, lo=0, hi=1)), std0=0.1, std1=0.1, std2=0.2, std3=0.2, name="decode"))
    m.out(C.box_decode(m.x("deltas2", m.f32(2, 5, 4)), m.x("anchors2", m.f32(1, 5, 4, lo=0, hi=1)), clip=0.3, format="corner", name="decode_corner"))
    m.out(C.box_iou(m.x("b1", corners[0]), m.x("b2", corners[1]), name="iou"))


@model
def proposals(m):
    A, H, W = 6, 5, 7
    p = m.x("p", m.f32(1, 2 * A, H, W, lo=0, hi=1))
    d = m.x("d", m.f32(1, 4 * A, H, W, lo=-0.3, hi=0.3))
    info = m.x("info", np.array([[80, 112, 1]], np.float32))
    how = dict(scales=(1, 2), ratios=(0.5, 1, 2), feature_stride=16, rpn_pre_nms_top_n=60, threshold=0.5, rpn_min_size=8)
    m.out(C.Proposal(p, d, info, rpn_post_nms_top_n=10, output_score=True, name="proposal", **how))
    m.out(C.Proposal(p, d, info, rpn_post_nms_top_n=40, name="many", **how))
    m.out(C.Proposal(p, d, info, rpn_post_nms_top_n=10, iou_loss=True, name="iou", **how))


@model
def quantized(m):
    x = m.x("x", m.f32(2, 3, 6, 5))
    q = C.quantize_v2(x, min_calib_range=-0.8, max_calib_range=0.7, out_type="int8", name="q")
    u = C.quantize_v2(m.x("u", m.f32(2, 4, lo=0, hi=1)), min_calib_range=0.0, max_calib_range=0.9, out_type="uint8", name="u8")
    free = C.quantize_v2(x, out_type="int8", name="free")
    m.out(q, C.dequantize(*q, name="back"), C.dequantize(*u, name="back_u"), C.dequantize(*free, name="back_free"))
    f = C.quantized_flatten(*q, name="flat")
    m.out(C.dequantize(*f, name="back_flat"))
    w = C.quantize_v2(m.x("wide", m.f32(2, 2, 6, 5, lo=-2, hi=2)), min_calib_range=-1.9, max_calib_range=1.5, out_type="int8", name="w8")
    m.out(C.quantized_concat(q[0], w[0], q[1], q[2], w[1], w[2], num_args=2, dim=1, name="concat"))
    m.out(C.quantized_act(*q, act_type="relu", name="act")[0], C.quantized_pooling(*q, kernel=(2, 2), stride=(2, 2), name="pool")[0])
