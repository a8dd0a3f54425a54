/* Convolutions of images, matrix products, and what normalizes. */
#include "frontends/tensorflow/tensorflow.h"
#include "frontends/tensorflow/window.h"

#include <string.h>

/* ---- convolutions ----------------------------------------------------------------------------------- */

static const Expr *weight(TfNode *n, uint32_t i, const int64_t *axes)
{
    return tf_folded(n, i, build_transpose(&n->b, n->in[i], 4, axes));
}

static Ints pads_of(const Build *b, const TfWindow *w)
{
    return ints_of(b->c, 4, (int)w->begin[0], (int)w->begin[1], (int)w->end[0], (int)w->end[1]);
}

static const Expr *conv2d(TfNode *n, const Expr *x, const Expr *w, const TfWindow *win,
                          int64_t groups)
{
    const Build *b = &n->b;
    Conv2dAttrs *a = ATTRS(b, Conv2dAttrs);

    a->strides = ints_dup(b->c, win->stride, 2);
    a->dilation = ints_dup(b->c, win->dilation, 2);
    a->padding = pads_of(b, win);
    a->groups = groups;
    a->channels = build_dim(b, w, 0);
    a->kernel_size = ints_dup(b->c, win->kernel, 2);
    return build2(b, "nn.conv2d", x, w, a);
}

/* Weights [H, W, I, O]; fewer channels of the weights than of the data mean groups. */
bool tf_conv2d(TfNode *n)
{
    const Build *b = &n->b;
    const Expr  *x = tf_image(n, 0), *w;
    int64_t      in, of;
    TfWindow     win;

    if (!x || !tf_rank(n, 1, 4, 4) || !(w = weight(n, 1, (int64_t[]){3, 2, 0, 1})))
        return false;
    win = (TfWindow){.kernel = {build_dim(b, w, 2), build_dim(b, w, 3)}};
    in = build_dim(b, x, 1);
    of = build_dim(b, w, 1);
    if (of < 1 || in < 1 || in % of || build_dim(b, w, 0) % (in / of))
        return tf_error(n, E_IMPORT, "the weight is for %lld input channels, the data have %lld",
                        (long long)of, (long long)in);
    return tf_window(n, x, &win) && tf_image_done(n, conv2d(n, x, w, &win, in / of));
}

/* Weights [H, W, C, multiplier]. */
bool tf_depthwise_conv2d(TfNode *n)
{
    const Build *b = &n->b;
    const Expr  *x = tf_image(n, 0), *w;
    int64_t      C, M;
    TfWindow     win;

    if (!x || !tf_rank(n, 1, 4, 4))
        return false;
    C = build_dim(b, n->in[1], 2), M = build_dim(b, n->in[1], 3);
    win = (TfWindow){.kernel = {build_dim(b, n->in[1], 0), build_dim(b, n->in[1], 1)}};
    if (C < 1 || C != build_dim(b, x, 1))
        return tf_error(n, E_IMPORT, "the weight is %s, the data have %lld channels",
                        type_text(b->c, n->in[1]->type), (long long)build_dim(b, x, 1));
    w = build_transpose(b, n->in[1], 4, (int64_t[]){2, 3, 0, 1});
    w = build_reshape(b, w, 4, (int64_t[]){C * M, 1, win.kernel[0], win.kernel[1]});
    return (w = tf_folded(n, 1, w)) && tf_window(n, x, &win) &&
           tf_image_done(n, conv2d(n, x, w, &win, C));
}

/* Where the result of a transposed convolution has `size` cells: what is cut off, and what is more.
 */
bool tf_transposed(TfNode *n, uint32_t ndim, const int64_t *cells, const int64_t *size,
                   const char *padding, TfWindow *w, int64_t *extra)
{
    for (uint32_t i = 0; i < ndim; i++) {
        int64_t span = (w->kernel[i] - 1) * w->dilation[i] + 1, total, most = INT32_MAX;

        if (size[i] < 1 || size[i] > most || cells[i] > most)
            return tf_error(n, E_IMPORT, "dimension %u of the result is %lld", i,
                            (long long)size[i]);
        total = (cells[i] - 1) * w->stride[i] + span - size[i];
        extra[i] = 0;
        if (!strcmp(padding, "EXPLICIT")) {
            extra[i] = w->begin[i] + w->end[i] - total;
        } else {
            extra[i] = total < 0 ? -total : 0;
            total = total < 0 ? 0 : total;
            w->begin[i] = total / 2;
            w->end[i] = total - total / 2;
        }
        if (extra[i] < 0 || extra[i] >= w->stride[i] + span)
            return tf_error(n, E_IMPORT, "%lld cells do not become %lld along dimension %u",
                            (long long)cells[i], (long long)size[i], i);
    }
    return true;
}

/* Inputs: the shape of the result, weights [H, W, O, I], data. */
bool tf_conv2d_backprop_input(TfNode *n)
{
    const Build          *b = &n->b;
    Conv2dTransposeAttrs *a = ATTRS(b, Conv2dTransposeAttrs);
    bool                  ok, first = tf_channels_first(n, &ok);
    const Expr           *x = tf_image(n, 2), *w;
    int64_t               extra[2], size[2], cells[2];
    TfWindow              win;
    Dims                  shape;

    if (!x || !ok || !tf_forms(n, 0, &shape) || !tf_rank(n, 1, 4, 4) ||
        !(w = weight(n, 1, (int64_t[]){3, 2, 0, 1})))
        return false;
    if ((shape.n != 4 && shape.n != 2) || build_dim(b, w, 0) != build_dim(b, x, 1))
        return tf_error(n, E_IMPORT, "the weight is for %lld input channels, the data have %lld",
                        (long long)build_dim(b, w, 0), (long long)build_dim(b, x, 1));
    win = (TfWindow){.kernel = {build_dim(b, w, 2), build_dim(b, w, 3)}};
    for (uint32_t i = 0; i < 2; i++) {
        cells[i] = build_dim(b, x, 2 + i);
        if (!idx_is_const(shape.at[shape.n == 2 ? i : (first ? 2 : 1) + i], &size[i]))
            return tf_error(n, E_UNSUPPORTED, "the size of its result is no number");
    }
    if (!tf_window_sizes(n, &win) ||
        !tf_transposed(n, 2, cells, size, tf_text(n, "padding"), &win, extra))
        return false;
    a->strides = ints_dup(b->c, win.stride, 2);
    a->dilation = ints_dup(b->c, win.dilation, 2);
    a->padding = pads_of(b, &win);
    a->output_padding = ints_dup(b->c, extra, 2);
    a->channels = build_dim(b, w, 1);
    a->kernel_size = ints_dup(b->c, win.kernel, 2);
    return tf_image_done(n, build2(b, "nn.conv2d_transpose", x, w, a));
}

/* max over the window of x + w, of each channel; weights [H, W, C]. */
bool tf_dilation2d(TfNode *n)
{
    const Build *b = &n->b;
    const Expr  *x = n->in[0], *y = NULL;
    int64_t      pads[8] = {0}, out[2];
    Ints         strides = tf_int_list(n, "strides"), rates = tf_int_list(n, "rates");
    const char  *padding = tf_text(n, "padding");
    TfWindow     w;

    if (!tf_rank(n, 0, 4, 4) || !tf_rank(n, 1, 3, 3))
        return false;
    if (strides.n != 4 || rates.n != 4)
        return tf_error(n, E_IMPORT, "strides of %u and rates of %u dimensions", strides.n,
                        rates.n);
    for (uint32_t i = 0; i < 2; i++) {
        int64_t span, cells = build_dim(b, x, 1 + i);

        w.kernel[i] = build_dim(b, n->in[1], i);
        w.stride[i] = strides.at[1 + i];
        w.dilation[i] = rates.at[1 + i];
        if (w.kernel[i] < 1 || w.stride[i] < 1 || w.dilation[i] < 1 || w.kernel[i] > 64 ||
            w.stride[i] > INT32_MAX || w.dilation[i] > INT32_MAX)
            return tf_error(n, E_UNSUPPORTED, "a window of %lld", (long long)w.kernel[i]);
        if (!strcmp(padding, "SAME") &&
            !build_same(b, expr_form(x, 1 + i), w.kernel[i], w.stride[i], w.dilation[i],
                        &pads[2 + 2 * i], &pads[3 + 2 * i]))
            return false;
        span = (w.kernel[i] - 1) * w.dilation[i] + 1;
        cells += pads[2 + 2 * i] + pads[3 + 2 * i];
        if (cells < span)
            return tf_error(n, E_IMPORT, "a window of %lld over %lld cells", (long long)span,
                            (long long)cells);
        out[i] = (cells - span) / w.stride[i] + 1;
    }
    x = build_pad(b, x, pads, -3.40282346638528860e38, "constant");
    for (int64_t i = 0; x && i < w.kernel[0] * w.kernel[1]; i++) {
        int64_t            at[2] = {i / w.kernel[1], i % w.kernel[1]};
        StridedSliceAttrs *a = ATTRS(b, StridedSliceAttrs);
        int64_t            begin[2], end[2];
        const Expr        *part, *add;

        for (uint32_t k = 0; k < 2; k++) {
            begin[k] = at[k] * w.dilation[k];
            end[k] = begin[k] + (out[k] - 1) * w.stride[k] + 1;
        }
        a->begin = dims_of_i64(b->c, begin, 2);
        a->end = dims_of_i64(b->c, end, 2);
        a->strides = ints_dup(b->c, w.stride, 2);
        a->axes = ints_of(b->c, 2, 1, 2);
        part = build1(b, "strided_slice", x, a);
        add = build_slice(b, build_slice(b, n->in[1], 0, at[0], at[0] + 1), 1, at[1], at[1] + 1);
        part = build_add(b, part, build_reshape(b, add, 1, (int64_t[]){build_dim(b, x, 3)}));
        y = y ? build2(b, "maximum", y, part, NULL) : part;
    }
    return tf_done(n, y);
}

/* ---- bias, products --------------------------------------------------------------------------------- */

static bool bias_add(TfNode *n, int64_t channel)
{
    BiasAddAttrs *a = ATTRS(&n->b, BiasAddAttrs);
    uint32_t      axis;

    if (!tf_rank(n, 0, 2, MAX_RANK) || !tf_axis(n, channel, expr_rank(n->in[0]), &axis))
        return false;
    a->axis = axis;
    return tf_done(n, build2(&n->b, "nn.bias_add", n->in[0], n->in[1], a));
}

bool tf_bias_add(TfNode *n)
{
    bool ok, first = tf_channels_first(n, &ok);

    return ok && bias_add(n, first ? 1 : -1);
}

bool tf_bias_add_v1(TfNode *n)
{
    return bias_add(n, -1);
}

bool tf_matmul(TfNode *n)
{
    const Build *b = &n->b;
    MatmulAttrs *a = ATTRS(b, MatmulAttrs);

    if (!tf_rank(n, 0, 2, 2) || !tf_rank(n, 1, 2, 2))
        return false;
    a->transpose_a = tf_int(n, "transpose_a");
    a->transpose_b = tf_int(n, "transpose_b");
    if (!a->transpose_a && a->transpose_b)
        return tf_done(n, build2(b, "nn.dense", n->in[0], n->in[1], NULL));
    return tf_done(n, build2(b, "nn.matmul", n->in[0], n->in[1], a));
}

bool tf_batch_matmul(TfNode *n)
{
    const Build      *b = &n->b;
    BatchMatmulAttrs *a = ATTRS(b, BatchMatmulAttrs);
    MatmulAttrs      *m = ATTRS(b, MatmulAttrs);

    if (!tf_rank(n, 0, 2, MAX_RANK) || !tf_rank(n, 1, 2, MAX_RANK))
        return false;
    a->transpose_a = m->transpose_a = tf_int(n, "adj_x");
    a->transpose_b = m->transpose_b = tf_int(n, "adj_y");
    if (expr_rank(n->in[0]) == 2 && expr_rank(n->in[1]) == 2)
        return tf_done(n, build2(b, "nn.matmul", n->in[0], n->in[1], m));
    for (uint32_t i = 0; i < 2; i++)
        if (expr_rank(n->in[i]) == 2)
            n->in[i] = build_expand_dims(b, n->in[i], 0, 1);
    return tf_done(n, build2(b, "nn.batch_matmul", n->in[0], n->in[1], a));
}

static const Expr *product(const Build *b, void *user, const Expr *x, const Expr *y)
{
    BatchMatmulAttrs *a = ATTRS(b, BatchMatmulAttrs);

    (void)user;
    a->transpose_b = false;
    return expr_rank(x) == 2 ? build2(b, "nn.matmul", x, y, NULL)
                             : build2(b, "nn.batch_matmul", x, y, a);
}

bool tf_einsum(TfNode *n)
{
    BuildEinsum s = {tf_text(n, "equation"), n->nin, n->in, product, NULL};

    return tf_done(n, build_einsum(&n->b, &s));
}

/* ---- softmax and norms ------------------------------------------------------------------------------ */

bool tf_softmax(TfNode *n)
{
    SoftmaxAttrs *a = ATTRS(&n->b, SoftmaxAttrs);
    uint32_t      axis;

    if (!tf_rank(n, 0, 1, MAX_RANK) || !tf_axis(n, -1, expr_rank(n->in[0]), &axis))
        return false;
    a->axis = axis;
    return tf_done(n, build1(&n->b, n->row->relay, n->in[0], a));
}

bool tf_lrn(TfNode *n)
{
    int64_t     radius = tf_int(n, "depth_radius");
    const Expr *y;

    if (!tf_rank(n, 0, IMAGE_RANK, IMAGE_RANK))
        return false;
    y = build_lrn(&n->b, build_channels_first(&n->b, n->in[0]), radius, radius, tf_float(n, "bias"),
                  tf_float(n, "alpha"), tf_float(n, "beta"));
    return tf_done(n, y ? build_channels_last(&n->b, y) : NULL);
}

bool tf_l2_loss(TfNode *n)
{
    const Build *b = &n->b;
    const Expr  *y = build_reduce(b, "sum", build_mul(b, n->in[0], n->in[0]), 0, NULL, false);

    return tf_done(n, build_by(b, "multiply", y, 0.5));
}

/* By the mean and the variance of the data themselves, which are results, too. */
static bool batch_norm_training(TfNode *n, const Expr *x, BatchNormAttrs *a)
{
    const Build *b = &n->b;
    int64_t      axes[] = {0, 2, 3}, cells = build_elems(b, x), C = build_dim(b, x, 1);
    DType        t = expr_dtype(x);
    const Expr  *mean, *var, *args[5];

    if (cells < 1 || C < 1)
        return tf_error(n, E_IMPORT, "no cells to take the mean of");
    x = build_cast(b, x, DT_F32);
    mean = build_reduce(b, "mean", x, 3, axes, false);
    var = build_sub(b, x, build_along(b, mean, IMAGE_RANK, 1));
    var = build_reduce(b, "mean", build_mul(b, var, var), 3, axes, false);
    args[0] = x, args[1] = n->in[1], args[2] = n->in[2], args[3] = mean, args[4] = var;
    cells /= C;
    if (!tf_put(n, 1, mean) ||
        !tf_put(n, 2,
                build_by(b, "multiply", var, cells > 1 ? (double)cells / (double)(cells - 1) : 1)))
        return false;
    x = build_proj(b, build_call(b, n->row->relay, 5, args, a), 0);
    return tf_image_done(n, x ? build_cast(b, x, t) : NULL);
}

/* Inputs: data, scale, offset, mean, variance.  What else it gives is for its gradient. */
bool tf_fused_batch_norm(TfNode *n)
{
    const Build    *b = &n->b;
    BatchNormAttrs *a = ATTRS(b, BatchNormAttrs);
    const Expr     *x = tf_image(n, 0), *args[5];

    if (!x)
        return false;
    a->epsilon = tf_float(n, "epsilon");
    for (uint32_t i = 1; i < 5; i++)
        if (!tf_rank(n, i, 1, 1))
            return false;
    for (uint32_t i = 1; i + 2 < n->nout; i++)
        tf_put(n, 2 + i, i < 3 ? n->in[2 + i] : build_scalar(b, n->in[1], 0));
    if (tf_int(n, "is_training"))
        return batch_norm_training(n, x, a);
    args[0] = x;
    for (uint32_t i = 1; i < 5; i++)
        args[i] = build_cast(b, n->in[i], expr_dtype(x));
    return tf_put(n, 1, n->in[3]) && tf_put(n, 2, n->in[4]) &&
           tf_image_done(n, build_proj(b, build_call(b, n->row->relay, 5, args, a), 0));
}

/* Inputs: data, mean, variance, offset, scale. */
bool tf_global_normalization(TfNode *n)
{
    const Build    *b = &n->b;
    BatchNormAttrs *a = ATTRS(b, BatchNormAttrs);
    const Expr     *x, *args[5];

    if (!tf_rank(n, 0, IMAGE_RANK, IMAGE_RANK))
        return false;
    x = build_channels_first(b, n->in[0]);
    a->epsilon = tf_float(n, "variance_epsilon");
    args[0] = x, args[1] = n->in[4], args[2] = n->in[3], args[3] = n->in[1], args[4] = n->in[2];
    if (!tf_int(n, "scale_after_normalization"))
        args[1] = build_broadcast_to(b, build_scalar(b, x, 1), 1, expr_forms(n->in[4]).at);
    x = build_proj(b, build_call(b, "nn.batch_norm", 5, args, a), 0);
    return tf_done(n, x ? build_channels_last(b, x) : NULL);
}
