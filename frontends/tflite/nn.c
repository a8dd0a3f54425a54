/* Convolutions, matrix products, and what normalizes. */
#include "frontends/tflite/tflite.h"

#include <math.h>
#include <string.h>

/* ---- windows -------------------------------------------------------------------------------------- */

/* padding, stride_h and stride_w of the options for an image in NCHW. */
bool tflite_window(const TfliteNode *n, const Expr *x, const int64_t *kernel,
                   const int64_t *dilation, TfliteWindow *w)
{
    int64_t padding = tflite_int(n, "padding");

    *w = (TfliteWindow){.kernel = {kernel[0], kernel[1]},
                        .dilation = {dilation[0], dilation[1]},
                        .stride = {tflite_int(n, "stride_h"), tflite_int(n, "stride_w")}};
    for (uint32_t i = 0; i < 2; i++) {
        if (w->kernel[i] < 1 || w->stride[i] < 1 || w->dilation[i] < 1 ||
            w->kernel[i] > INT32_MAX || w->stride[i] > INT32_MAX || w->dilation[i] > INT32_MAX)
            return tflite_error(n, E_IMPORT, "kernel, strides and dilations have to be above 0");
        if (padding == 0 && !build_same(&n->b, expr_form(x, 2 + i), w->kernel[i], w->stride[i],
                                        w->dilation[i], &w->begin[i], &w->end[i]))
            return false;
    }
    return padding == 0 || padding == 1 ||
           tflite_error(n, E_UNSUPPORTED, "padding %lld", (long long)padding);
}

Ints tflite_pads(const Build *b, const TfliteWindow *w)
{
    return ints_of(b->c, 4, (int)w->begin[0], (int)w->begin[1], (int)w->end[0], (int)w->end[1]);
}

/* ---- products and their bias ---------------------------------------------------------------------- */

/* Weights of four dimensions in another order, in floats unless they stay as they are; `channels`
 * is the axis of their scales. */
static const Expr *weight(TfliteNode *n, uint32_t i, const int64_t *axes, bool stay,
                          int64_t *channels)
{
    const TfliteTensor *t = tflite_in(n, i);
    const Expr         *w = build_transpose(&n->b, n->in[i], 4, axes);

    for (uint32_t k = 0; t->quant && k < 4; k++)
        if (axes[k] == t->quant->axis)
            *channels = k;
    if (w && n->in[i]->kind == EXPR_CONST)
        w = tflite_folded(n, i, w);
    return tflite_is_quantized(t) && !stay ? tflite_dequantize(&n->b, t, w, *channels) : w;
}

/* The bias of a quantized product has the product's scale, whatever the file says. */
static const Expr *bias_of(TfliteNode *n, uint32_t x, uint32_t w, uint32_t i, int64_t units)
{
    const Build        *b = &n->b;
    const TfliteTensor *tx = tflite_in(n, x), *tw = tflite_in(n, w);
    const Expr         *bias = n->in[i];
    int64_t             scales = tflite_scales(tw), cells = build_elems(b, bias);
    float              *scale;
    DequantizeAttrs    *a = ATTRS(b, DequantizeAttrs);

    if (cells != units)
        return tflite_error(n, E_IMPORT, "the bias is %s, the result has %lld channels",
                            type_text(b->c, bias->type), (long long)units);
    bias = build_reshape(b, bias, 1, &units);
    if (!dtype_is_int(expr_dtype(bias)))
        return build_cast(b, bias, DT_F32);
    if (!tflite_is_quantized(tx) || scales < 1)
        return tflite_error(n, E_IMPORT, "a bias of integers, and data that are not quantized");
    scale = NEW_ARRAY(b->c->arena, float, (size_t)scales);
    for (int64_t k = 0; k < scales; k++)
        scale[k] = (float)tflite_scale(tx, 0) * (float)tflite_scale(tw, k);
    if (expr_dtype(bias).bits > 32) /* of 16-bit data: 40 bits at most */
        return build_mul(b, build_cast(b, bias, DT_F32),
                         build_const(b, DT_F32, scales > 1, &scales, scale));
    a->axis = scales > 1 ? 0 : -1;
    return build3(b, "qnn.dequantize", bias, build_const(b, DT_F32, scales > 1, &scales, scale),
                  expr_scalar(b->c, DT_I32, 0), a);
}

static const Expr *with_bias(TfliteNode *n, const Expr *y, uint32_t x, uint32_t w, uint32_t i,
                             int64_t axis)
{
    BiasAddAttrs *a = ATTRS(&n->b, BiasAddAttrs);

    if (!y || !tflite_has(n, i))
        return y;
    a->axis = axis;
    return build2(&n->b, "nn.bias_add", y, bias_of(n, x, w, i, build_dim(&n->b, y, (uint32_t)axis)),
                  a);
}

static const Expr *conv2d(TfliteNode *n, const Expr *x, const Expr *w, const TfliteWindow *win,
                          int64_t groups)
{
    const Build *b = &n->b;
    Conv2dAttrs *a = ATTRS(b, Conv2dAttrs);

    if (!x || !w)
        return NULL;
    a->strides = ints_dup(b->c, win->stride, 2);
    a->dilation = ints_dup(b->c, win->dilation, 2);
    a->padding = tflite_pads(b, win);
    a->groups = groups;
    a->channels = build_dim(b, w, 0);
    a->kernel_size = ints_dup(b->c, win->kernel, 2);
    return build2(b, "nn.conv2d", x, w, a);
}

/* .. of images that are rounded by their ranges if the weights are of 8 bits: around 0 where these
 * have one scale, else from end to end, zeros around them standing for 0. */
static const Expr *product(TfliteNode *n, const Expr *x, const Expr *w, const TfliteWindow *win,
                           int64_t groups)
{
    static const int64_t axes[] = {1, 2, 3};
    const Build         *b = &n->b;
    bool                 ends;
    TfliteWindow         inside = *win;
    TfliteRows           rows;

    if (!x || !w || !tflite_is_quantized(tflite_in(n, 1)) || dtype_is_float(expr_dtype(w)))
        return conv2d(n, x, w, win, groups);
    ends = tflite_scales(tflite_in(n, 1)) == build_dim(b, w, 0);
    if (ends) {
        x = build_pad(
            b, x, (int64_t[]){0, 0, 0, 0, win->begin[0], win->end[0], win->begin[1], win->end[1]},
            0, NULL);
        inside.begin[0] = inside.begin[1] = inside.end[0] = inside.end[1] = 0;
    }
    if (!tflite_by_range(b, x, COUNT(axes), axes, ends, &rows))
        return NULL;
    w = build_cast(b, w, DT_I32);
    return tflite_hybrid_sums(b, conv2d(n, rows.q, w, &inside, groups), &rows, w,
                              tflite_unit_scales(n, 1, IMAGE_RANK));
}

/* Data NHWC and weights OHWI; fewer channels of the weights than of the data mean groups. */
bool tflite_conv(TfliteNode *n)
{
    const Build *b = &n->b;
    int64_t      kernel[2], in, of, channels = 0;
    int64_t dilation[2] = {tflite_int(n, "dilation_h_factor"), tflite_int(n, "dilation_w_factor")};
    const Expr  *x = tflite_image(n, 0), *w;
    TfliteWindow win;

    if (!x || !tflite_rank(n, 1, 4, 4) ||
        !(w = weight(n, 1, (int64_t[]){0, 3, 1, 2}, tflite_is_hybrid(n, 0, 1, 0), &channels)))
        return false;
    kernel[0] = build_dim(b, w, 2);
    kernel[1] = build_dim(b, w, 3);
    in = build_dim(b, x, 1);
    of = build_dim(b, w, 1);
    if (of < 1 || in < 1 || in % of || build_dim(b, w, 0) % (in / of))
        return tflite_error(n, E_IMPORT,
                            "the weight is for %lld input channels, the data have %lld",
                            (long long)of, (long long)in);
    return tflite_window(n, x, kernel, dilation, &win) &&
           tflite_image_done(n, with_bias(n, product(n, x, w, &win, in / of), 0, 1, 2, 1));
}

/* Weights [1, H, W, C * multiplier]. */
bool tflite_depthwise_conv(TfliteNode *n)
{
    const Build *b = &n->b;
    int64_t      kernel[2], in, out, channels = 0;
    int64_t dilation[2] = {tflite_int(n, "dilation_h_factor"), tflite_int(n, "dilation_w_factor")};
    const Expr  *x = tflite_image(n, 0), *w;
    TfliteWindow win;

    if (!x || !tflite_rank(n, 1, 4, 4) ||
        !(w = weight(n, 1, (int64_t[]){3, 0, 1, 2}, tflite_is_hybrid(n, 0, 1, 3), &channels)))
        return false;
    kernel[0] = build_dim(b, w, 2);
    kernel[1] = build_dim(b, w, 3);
    in = build_dim(b, x, 1);
    out = build_dim(b, w, 0);
    if (build_dim(b, w, 1) != 1 || in < 1 || out % in)
        return tflite_error(n, E_IMPORT, "the weight is %s, the data have %lld channels",
                            type_text(b->c, w->type), (long long)in);
    return tflite_window(n, x, kernel, dilation, &win) &&
           tflite_image_done(n, with_bias(n, product(n, x, w, &win, in), 0, 1, 2, 1));
}

/* .. of images that are rounded from end to end if the weights are of 8 bits. */
static const Expr *transposed_product(TfliteNode *n, const Expr *x, const Expr *w,
                                      const Conv2dTransposeAttrs *a)
{
    static const int64_t axes[] = {1, 2, 3};
    const Build         *b = &n->b;
    TfliteRows           rows;

    if (!w || !tflite_is_quantized(tflite_in(n, 1)) || dtype_is_float(expr_dtype(w)))
        return build2(b, "nn.conv2d_transpose", x, w, a);
    if (!tflite_by_range(b, x, COUNT(axes), axes, true, &rows))
        return NULL;
    x = build2(b, "nn.conv2d_transpose", build_sub(b, rows.q, rows.zero), build_cast(b, w, DT_I32),
               a);
    rows.zero = NULL;
    return tflite_hybrid_sums(b, x, &rows, w, tflite_unit_scales(n, 1, IMAGE_RANK));
}

/* Weights [O, H, W, I] in the order of nn.conv2d_transpose, for the images x. */
static const Expr *transposed_weight(TfliteNode *n, uint32_t data, const Expr *x)
{
    const Build *b = &n->b;
    int64_t      channels = 0;
    const Expr  *w;

    if (!x || !tflite_rank(n, 1, 4, 4) ||
        !(w = weight(n, 1, (int64_t[]){3, 0, 1, 2}, tflite_is_hybrid(n, data, 1, 0), &channels)))
        return NULL;
    if (build_dim(b, w, 0) == build_dim(b, x, 1))
        return w;
    tflite_error(n, E_IMPORT, "the weight is for %lld input channels, the data have %lld",
                 (long long)build_dim(b, w, 0), (long long)build_dim(b, x, 1));
    return NULL;
}

/* Input 1 are the weights; bias: the number of that input. */
static const Expr *transposed_conv(TfliteNode *n, uint32_t data, uint32_t bias, const Expr *x,
                                   const Expr *w, const TfliteWindow *win, const int64_t *extra)
{
    const Build          *b = &n->b;
    Conv2dTransposeAttrs *a = ATTRS(b, Conv2dTransposeAttrs);

    a->strides = ints_dup(b->c, win->stride, 2);
    a->padding = tflite_pads(b, win);
    a->output_padding = ints_dup(b->c, extra, 2);
    a->channels = build_dim(b, w, 1);
    a->kernel_size = ints_dup(b->c, win->kernel, 2);
    return with_bias(n, transposed_product(n, x, w, a), data, 1, bias, 1);
}

/* Input 0 is the shape of the result, 1 the weights [O, H, W, I], 2 the data. */
bool tflite_transpose_conv(TfliteNode *n)
{
    const Build *b = &n->b;
    int64_t      kernel[2], extra[2], ones[2] = {1, 1};
    const Expr  *x, *w;
    TfliteWindow win;
    Ints         shape;

    if (!tflite_ints(n, 0, &shape) || !(x = tflite_image(n, 2)) ||
        !(w = transposed_weight(n, 2, x)))
        return false;
    if (shape.n != 4)
        return tflite_error(n, E_IMPORT, "the result has %u dimensions", shape.n);
    kernel[0] = build_dim(b, w, 2);
    kernel[1] = build_dim(b, w, 3);
    if (!tflite_window(n, x, kernel, ones, &win))
        return false;
    for (uint32_t i = 0; i < 2; i++) {
        int64_t full = (build_dim(b, x, 2 + i) - 1) * win.stride[i] + kernel[i];
        int64_t total = full - shape.at[1 + i];

        if (shape.at[1 + i] < 1)
            return tflite_error(n, E_IMPORT, "the result has %lld rows or columns",
                                (long long)shape.at[1 + i]);
        extra[i] = total < 0 ? -total : 0;
        total = total < 0 ? 0 : total;
        win.begin[i] = total / 2;
        win.end[i] = total - total / 2;
    }
    return tflite_image_done(n, transposed_conv(n, 2, 3, x, w, &win, extra));
}

/* MediaPipe's operator: data, weights [O, H, W, I], bias.  Its options are three words of 32 bits,
 * the padding (1: same, 2: none), the stride of columns, that of rows. */
bool tflite_transpose_conv_bias(TfliteNode *n)
{
    const Build *b = &n->b;
    const Expr  *x = tflite_image(n, 0), *w = transposed_weight(n, 0, x);
    TfliteWindow win = {.dilation = {1, 1}};
    Reader       r = reader(n->p->custom);
    int32_t      words[3];

    if (!w)
        return false;
    for (uint32_t i = 0; i < COUNT(words); i++)
        words[i] = (int32_t)read_u32(&r);
    if (r.bad)
        return tflite_error(n, E_IMPORT, "its options have %zu bytes", n->p->custom.n);
    if (words[0] != 1 && words[0] != 2)
        return tflite_error(n, E_UNSUPPORTED, "padding %d", (int)words[0]);
    for (uint32_t i = 0; i < 2; i++) {
        int64_t stride = words[2 - i], kernel = build_dim(b, w, 2 + i), total;

        if (stride < 1)
            return tflite_error(n, E_IMPORT, "a stride of %lld", (long long)stride);
        total = words[0] == 2 ? 0 : kernel - (build_dim(b, x, 2 + i) - 1) % stride - 1;
        total = total < 0 ? 0 : total;
        win.stride[i] = stride;
        win.kernel[i] = kernel;
        win.begin[i] = total / 2;
        win.end[i] = total - total / 2;
    }
    return tflite_done(n, transposed_conv(n, 0, 2, x, w, &win, (int64_t[]){0, 0}));
}

/* Rows of k cells times weights [units, k]; what the rows are of is flattened unless keep_num_dims.
 */
bool tflite_fully_connected(TfliteNode *n)
{
    const Build        *b = &n->b;
    const TfliteTensor *t = tflite_in(n, 1);
    const Idx          *dims[MAX_RANK], *rows;
    const Expr         *x = tflite_value(n, 0), *w = n->in[1], *y;
    uint32_t            rank;
    int64_t             k;

    if (!x || !tflite_rank(n, 1, 2, 2))
        return false;
    if (tflite_int(n, "weights_format"))
        return tflite_error(n, E_UNSUPPORTED, "weights_format %lld",
                            (long long)tflite_int(n, "weights_format"));
    rank = expr_rank(x);
    k = build_dim(b, w, 1);
    rows = k > 0 ? idx_div_exact(b->c->arith, type_cells(b->c, x->type), idx_const(b->c->arith, k))
                 : NULL;
    if (!rows)
        return tflite_error(n, E_IMPORT, "the data are %s, the weight %s", type_text(b->c, x->type),
                            type_text(b->c, w->type));
    for (uint32_t i = 0; i < rank; i++)
        dims[i] = expr_form(x, i);
    y = build_reshape_to(b, x, 2, (const Idx *[]){rows, idx_const(b->c->arith, k)});
    if (tflite_is_hybrid(n, 0, 1, 0))
        y = tflite_hybrid_dense(b, y, w, tflite_unit_scales(n, 1, 2),
                                tflite_int(n, "asymmetric_quantize_inputs"));
    else if (tflite_is_quantized(t) && !(w = tflite_dequantize(b, t, w, t->quant->axis)))
        return false;
    else
        y = build2(b, "nn.dense", y, w, NULL);
    y = with_bias(n, y, 0, 1, 2, 1);
    if (y && tflite_int(n, "keep_num_dims") && rank > 0) {
        dims[rank - 1] = expr_form(y, 1);
        y = build_reshape_to(b, y, rank, dims);
    }
    return tflite_done(n, tflite_activate(n, y));
}

static const Expr *matmul(TfliteNode *n, const Expr *x, const Expr *y, bool adj_x, bool adj_y)
{
    const Build      *b = &n->b;
    BatchMatmulAttrs *a = ATTRS(b, BatchMatmulAttrs);
    MatmulAttrs      *m = ATTRS(b, MatmulAttrs);

    if (!x || !y)
        return NULL;
    a->transpose_a = m->transpose_a = adj_x;
    a->transpose_b = m->transpose_b = adj_y;
    if (expr_rank(x) == 2 && expr_rank(y) == 2)
        return build2(b, "nn.matmul", x, y, m);
    if (expr_rank(x) == 2)
        x = build_expand_dims(b, x, 0, 1);
    if (expr_rank(y) == 2)
        y = build_expand_dims(b, y, 0, 1);
    return build2(b, "nn.batch_matmul", x, y, a);
}

/* Rows of x are rounded by their ranges.  A unit is a column of w, or a row if adj_y says so. */
static const Expr *hybrid_matmul(TfliteNode *n, bool adj_x, bool adj_y)
{
    const Build *b = &n->b;
    const Expr  *x = n->in[0], *w = build_cast(b, n->in[1], DT_I32), *y, *sums;
    uint32_t     rank = expr_rank(x);
    int64_t      last = rank - 1, axes[MAX_RANK], along;
    TfliteRows   rows;

    for (uint32_t i = 0; i < rank; i++)
        axes[i] = i + 2 < rank ? i : 2 * rank - 3 - i;
    if (adj_x)
        x = build_transpose(b, x, rank, axes);
    if (!x || !w ||
        !tflite_by_range(b, x, 1, &last, tflite_int(n, "asymmetric_quantize_inputs"), &rows))
        return NULL;
    y = matmul(n, rows.q, w, false, adj_y);
    if (rows.zero) {
        along = expr_rank(w) - (adj_y ? 1 : 2);
        sums = build_reduce(b, "sum", w, 1, &along, false);
        sums = sums ? build_expand_dims(b, sums, expr_rank(w) - 2, 1) : NULL;
        y = build_sub(b, y, build_mul(b, rows.zero, sums));
    }
    return build_mul(b, build_cast(b, y, DT_F32),
                     build_mul(b, rows.scale, tflite_unit_scales(n, 1, 2)));
}

/* Of two operands of 8 bits a result of 32 is the sums, whatever the zero points are. */
static bool is_of_sums(const TfliteNode *n)
{
    DType t;

    return tflite_dtype(tflite_out(n, 0)->type, &t) && dtype_eq(t, DT_I32) &&
           dtype_eq(expr_dtype(n->in[0]), DT_I8) && dtype_eq(expr_dtype(n->in[1]), DT_I8);
}

bool tflite_batch_matmul(TfliteNode *n)
{
    bool     adj_x = tflite_int(n, "adj_x"), adj_y = tflite_int(n, "adj_y");
    uint32_t rank;

    if (!tflite_rank(n, 0, 2, MAX_RANK) || !tflite_rank(n, 1, 2, MAX_RANK))
        return false;
    rank = expr_rank(n->in[1]);
    if (tflite_is_hybrid(n, 0, 1, rank - (adj_y ? 2 : 1)))
        return tflite_done(n, hybrid_matmul(n, adj_x, adj_y));
    if (is_of_sums(n))
        return tflite_done(n, matmul(n, build_cast(&n->b, n->in[0], DT_I32),
                                     build_cast(&n->b, n->in[1], DT_I32), adj_x, adj_y));
    return tflite_done(n, matmul(n, tflite_value(n, 0), tflite_value(n, 1), adj_x, adj_y));
}

/* ---- softmax and norms ---------------------------------------------------------------------------- */

/* Is the first result in 2^-bits, up to nearly 1 from the least number or from -1 on? */
static bool in_parts(const TfliteNode *n, int bits)
{
    const TfliteTensor *t = tflite_out(n, 0);
    DType               d;

    return tflite_dtype(t->type, &d) && fabs(tflite_scale(t, 0) * ldexp(1, bits) - 1) < 1e-3 &&
           (double)tflite_zero(t, 0) == dtype_min(d) + (bits < d.bits ? ldexp(1, bits) : 0);
}

/* Is it so as softmax of 8 bits has it, or of 16? */
static bool in_softmax_parts(const TfliteNode *n)
{
    DType x = expr_dtype(n->in[0]), y;

    if (!tflite_dtype(tflite_out(n, 0)->type, &y) || y.bits > 16)
        return false;
    return x.bits == 8 ? in_parts(n, y.bits) : x.bits == 16 && y.bits == 16 && in_parts(n, 15);
}

/* Is the first result of 8 bits, in 2^-4 and up to 0? */
static bool in_sixteenths(const TfliteNode *n)
{
    const TfliteTensor *t = tflite_out(n, 0);
    DType               d;

    return tflite_dtype(t->type, &d) && d.bits == 8 && fabs(tflite_scale(t, 0) * 16 - 1) < 1e-3 &&
           (double)tflite_zero(t, 0) == dtype_max(d);
}

bool tflite_softmax(TfliteNode *n)
{
    const Build  *b = &n->b;
    SoftmaxAttrs *a = ATTRS(b, SoftmaxAttrs);
    const Expr   *x = n->in[0];
    double        beta = n->row->options ? tflite_float(n, "beta") : 1;
    uint32_t      axis;

    if (!tflite_rank(n, 0, 1, MAX_RANK) || !tflite_axis(n, -1, expr_rank(x), &axis))
        return false;
    a->axis = axis;
    if (n->raw && !n->row->options && in_sixteenths(n))
        return tflite_log_softmax_steps(n, axis);
    if (n->raw && n->row->options && in_softmax_parts(n))
        return tflite_softmax_steps(n, axis, beta != 0 ? beta : 1);
    x = tflite_value(n, 0);
    if (beta != 1 && beta != 0) /* 0 is what files without options have */
        x = build_by(b, "multiply", x, beta);
    return tflite_done(n, build1(b, n->row->relay, x, a));
}

/* x / sqrt(max(sum of x^2, least)) along the channels. */
bool tflite_l2_norm(TfliteNode *n)
{
    const Build *b = &n->b;
    const Expr  *x = n->in[0], *sum;
    uint32_t     axis;

    if (!tflite_rank(n, 0, 1, MAX_RANK) || !tflite_axis(n, -1, expr_rank(x), &axis))
        return false;
    if (n->raw && in_parts(n, 7) && tflite_int(n, "fused_activation_function") == 0)
        return tflite_l2_norm_steps(n, axis);
    x = tflite_value(n, 0);
    sum = build_reduce(b, "sum", build_mul(b, x, x), 1, (int64_t[]){axis}, true);
    sum = sum ? build2(b, "maximum", sum, build_scalar(b, sum, 1e-12), NULL) : NULL;
    return tflite_done(n, tflite_activate(n, build_div(b, x, build1(b, "sqrt", sum, NULL))));
}

bool tflite_lrn(TfliteNode *n)
{
    int64_t radius = tflite_int(n, "radius");

    return tflite_done(n,
                       build_lrn(&n->b, tflite_image(n, 0), radius, radius, tflite_float(n, "bias"),
                                 tflite_float(n, "alpha"), tflite_float(n, "beta")));
}
