/* Convolutions, matrix products, activations, softmax. */
#include "frontends/mxnet/mxnet.h"

#include <math.h>
#include <string.h>

/* ---- convolutions ----------------------------------------------------------------------------------- */

/* Weights with their channels last, as Relay has them. */
static const Expr *weight_first(const Build *b, const Expr *w, bool last)
{
    const Expr *k;

    if (!last)
        return w;
    w = build_channels_first(b, w);
    k = w ? build_fold(b, w) : NULL;
    return k ? k : w;
}

/* Kernel, strides, dilation and padding along `count` dimensions. */
static bool window_of(const MxNode *n, uint32_t count, BuildWindow *w)
{
    int64_t *const end = w->end;

    if (!mx_sizes(n, "kernel", count, 1, 1, w->kernel) ||
        !mx_sizes(n, "stride", count, 1, 1, w->stride) ||
        !mx_sizes(n, "dilate", count, 1, 1, w->dilation) ||
        !mx_sizes(n, "pad", count, 0, 0, w->begin))
        return false;
    memcpy(end, w->begin, sizeof w->end);
    return true;
}

/* How many dimensions the data have behind channels; 0 with an error. */
static uint32_t depth_of(const MxNode *n, const Expr *x, const Expr *w)
{
    uint32_t rank = x ? expr_rank(x) : 0;

    if (rank < 3 || rank > 5 || expr_rank(w) != rank) {
        mx_error(n, E_IMPORT, "data of %u dimensions, weights of %u", rank, expr_rank(w));
        return 0;
    }
    return rank - 2;
}

const Expr *mx_bias(const Build *b, const Expr *y, const Expr *bias, uint32_t axis)
{
    BiasAddAttrs *a = ATTRS(b, BiasAddAttrs);

    if (!y || !bias)
        return y;
    a->axis = axis;
    return build2(b, "nn.bias_add", y, bias, a);
}

/* Operands with their channels first, and the window; the weights are for num_filter results. */
static bool read_conv(MxNode *n, BuildConv *k, bool *last)
{
    const Build *b = &n->b;
    bool         ok;
    int64_t      of;

    *last = mx_channels_last(n, expr_rank(n->in[0]), &ok);
    if (!ok)
        return false;
    k->x = *last ? build_channels_first(b, n->in[0]) : n->in[0];
    k->w = weight_first(b, n->in[1], *last);
    k->bias = n->nin > 2 ? n->in[2] : NULL;
    k->groups = mx_int(n, "num_group");
    if (!k->w || !(k->dims = depth_of(n, k->x, k->w)) || !window_of(n, k->dims, &k->window))
        return false;
    of = build_dim(b, k->w, k->transposed);
    if (!checked_mul(of, k->transposed ? k->groups : 1, &of) || of != mx_int(n, "num_filter"))
        return mx_error(n, E_IMPORT, "weights %s in %lld groups for num_filter=%s",
                        type_text(b->c, k->w->type), (long long)k->groups,
                        mx_text(n, "num_filter"));
    return true;
}

bool mx_convolution(MxNode *n)
{
    BuildConv k = {.transposed = false};
    bool      last;

    return read_conv(n, &k, &last) && mx_image_done(n, last, build_conv(&n->b, &k));
}

/* What is cut off and what is more, for a result of the size that is asked for. */
static bool fit_target(const MxNode *n, const Expr *x, uint32_t dims, BuildWindow *k,
                       int64_t *extra)
{
    int64_t target[3];
    bool    any = false;

    if (!mx_sizes(n, "adj", dims, 0, 0, extra) || !mx_sizes(n, "target_shape", dims, 0, 0, target))
        return false;
    for (uint32_t i = 0; i < dims; i++)
        any |= target[i] != 0;
    for (uint32_t i = 0; i < dims && any; i++) {
        int64_t total = k->stride[i] * (build_dim(&n->b, x, 2 + i) - 1) +
                        (k->kernel[i] - 1) * k->dilation[i] + 1 - target[i];

        if (total < 0)
            return mx_error(n, E_IMPORT, "'target_shape' is %s, more than it comes to",
                            mx_text(n, "target_shape"));
        extra[i] = total % 2;
        k->begin[i] = k->end[i] = (total + 1) / 2;
    }
    return true;
}

bool mx_deconvolution(MxNode *n)
{
    BuildConv k = {.transposed = true};
    bool      last;

    return read_conv(n, &k, &last) && fit_target(n, k.x, k.dims, &k.window, k.extra) &&
           mx_image_done(n, last, build_conv(&n->b, &k));
}

/* ---- products --------------------------------------------------------------------------------------- */

const Expr *mx_dense(MxNode *n, const Expr *x, const Expr *w, const char *out_dtype)
{
    const Build *b = &n->b;
    DenseAttrs  *a = ATTRS(b, DenseAttrs);

    if (!x || expr_rank(w) != 2)
        return x ? mx_error(n, E_IMPORT, "weights of %u dimensions", expr_rank(w)) : NULL;
    a->out_dtype = out_dtype;
    return build2(b, "nn.dense", x, w, a);
}

bool mx_fully_connected(MxNode *n)
{
    const Build *b = &n->b;
    const Expr  *x = n->in[0], *y;

    if (!mx_rank(n, 0, 1, MAX_RANK))
        return false;
    if (mx_bool(n, "flatten") && expr_rank(x) != 2)
        x = build_matrix(b, x, 1);
    if (!(y = mx_dense(n, x, n->in[1], "")))
        return false;
    return mx_done(n, mx_bias(b, y, n->nin > 2 ? n->in[2] : NULL, expr_rank(y) - 1));
}

/* The last dimension of the first operand by the first one of the second. */
bool mx_dot(MxNode *n)
{
    const Build *b = &n->b;
    MatmulAttrs *a = ATTRS(b, MatmulAttrs);
    uint32_t     x = expr_rank(n->in[0]), y = expr_rank(n->in[1]), k = 0;
    const Expr  *lhs = n->in[0], *rhs = n->in[1], *out;
    const Idx   *dims[2 * MAX_RANK];

    if (!mx_rank(n, 0, 1, MAX_RANK) || !mx_rank(n, 1, 1, MAX_RANK))
        return false;
    a->transpose_a = mx_bool(n, "transpose_a") && x > 1;
    a->transpose_b = mx_bool(n, "transpose_b") && y > 1;
    if (x == 2 && y == 2)
        return mx_done(n,
                       build2(b, !a->transpose_a && a->transpose_b ? "nn.dense" : "nn.matmul", lhs,
                              rhs, !a->transpose_a && a->transpose_b ? NULL : (const void *)a));
    if (a->transpose_a || a->transpose_b || x + y - 2 > MAX_RANK)
        return mx_error(n, E_UNSUPPORTED, "%u and %u dimensions, transposed", x, y);
    for (uint32_t i = 0; i + 1 < x; i++)
        dims[k++] = expr_form(lhs, i);
    for (uint32_t i = 1; i < y; i++)
        dims[k++] = expr_form(rhs, i);
    lhs = x == 1 ? build_expand_dims(b, lhs, 0, 1) : build_matrix(b, lhs, x - 1);
    rhs = y == 1 ? build_expand_dims(b, rhs, 1, 1) : build_matrix(b, rhs, 1);
    out = build2(b, "nn.matmul", lhs, rhs, a);
    return mx_done(n, build_reshape_to(b, out, k, dims));
}

static const Expr *batch_product(MxNode *n)
{
    BatchMatmulAttrs *a = ATTRS(&n->b, BatchMatmulAttrs);

    if (!mx_rank(n, 0, 2, MAX_RANK) || !mx_rank(n, 1, 2, MAX_RANK))
        return NULL;
    a->transpose_a = mx_bool(n, "transpose_a");
    a->transpose_b = mx_bool(n, "transpose_b");
    for (uint32_t i = 0; i < 2; i++)
        if (expr_rank(n->in[0]) == 2 && expr_rank(n->in[1]) == 2)
            n->in[i] = build_expand_dims(&n->b, n->in[i], 0, 1);
    return build2(&n->b, "nn.batch_matmul", n->in[0], n->in[1], a);
}

bool mx_batch_dot(MxNode *n)
{
    return mx_rank(n, 0, 3, MAX_RANK) && mx_done(n, batch_product(n));
}

bool mx_gemm2(MxNode *n)
{
    const Build *b = &n->b;
    double       alpha = mx_float(n, "alpha");
    bool         flat = expr_rank(n->in[0]) == 2 && expr_rank(n->in[1]) == 2;
    MatmulAttrs *a = ATTRS(b, MatmulAttrs);
    const Expr  *y;

    if (mx_int(n, "axis") != -2)
        return mx_error(n, E_UNSUPPORTED, "axis=%s", mx_text(n, "axis"));
    a->transpose_a = mx_bool(n, "transpose_a");
    a->transpose_b = mx_bool(n, "transpose_b");
    y = flat ? build2(b, "nn.matmul", n->in[0], n->in[1], a) : batch_product(n);
    return mx_done(n, alpha == 1 ? y : build_by(b, "multiply", y, alpha));
}

/* ---- activations ------------------------------------------------------------------------------------ */

static const Expr *activated(MxNode *n, const char *type, const Expr *x)
{
    const Build *b = &n->b;

    if (!strcmp(type, "softrelu"))
        return build_softplus(b, x);
    if (!strcmp(type, "softsign"))
        return build_softsign(b, x);
    return build1(b, !strcmp(type, "relu") ? "nn.relu" : type, x, NULL); /* sigmoid, tanh */
}

bool mx_activation(MxNode *n)
{
    return mx_done(n, activated(n, mx_text(n, "act_type"), n->in[0]));
}

/* One slope for all, or one for each channel. */
static const Expr *prelu(MxNode *n)
{
    const Build  *b = &n->b;
    const Expr   *x = n->in[0], *slope = n->in[1];
    BiasAddAttrs *a = ATTRS(b, BiasAddAttrs);
    uint32_t      rank = expr_rank(x);

    if (expr_rank(slope) == 1 && rank > 1 && expr_form(slope, 0) == expr_form(x, 1)) {
        a->axis = 1;
        return build2(b, "nn.prelu", x, slope, a);
    }
    if (expr_rank(slope) == 1 && rank > 1)
        slope = build_along(b, slope, rank, 1);
    return build_if_negative(b, x, build_mul(b, x, slope));
}

bool mx_leaky_relu(MxNode *n)
{
    const Build    *b = &n->b;
    const Expr     *x = n->in[0];
    const char     *type = mx_text(n, "act_type");
    LeakyReluAttrs *a = ATTRS(b, LeakyReluAttrs);

    a->alpha = mx_float(n, "slope");
    if (!strcmp(type, "prelu"))
        return mx_done(n, prelu(n));
    if (!strcmp(type, "elu"))
        return mx_done(n, build_elu(b, x, a->alpha, 1));
    if (!strcmp(type, "selu"))
        return mx_done(n, build_selu(b, x, 1.6732632423543772848, 1.0507009873554804934));
    if (!strcmp(type, "gelu"))
        return mx_done(n, build_gelu(b, x, false));
    if (!strcmp(type, "rrelu")) /* the mean of the slopes that training takes */
        a->alpha = (mx_float(n, "lower_bound") + mx_float(n, "upper_bound")) / 2;
    return mx_done(n, build1(b, "nn.leaky_relu", x, a));
}

bool mx_dropout(MxNode *n)
{
    if (mx_is(n, "mode", "always") && mx_float(n, "p") > 0)
        return mx_error(n, E_UNSUPPORTED, "mode=always, which makes results random");
    return mx_done(n, n->in[0]);
}

/* ---- softmax ---------------------------------------------------------------------------------------- */

static const Expr *softmax_along(const Build *b, const char *op, const Expr *x, uint32_t axis)
{
    SoftmaxAttrs *a = ATTRS(b, SoftmaxAttrs);

    a->axis = axis;
    return build1(b, op, x, a);
}

/* Of the cells before a length for each row; the others are 0. */
static const Expr *softmax_before(MxNode *n, const Expr *x, uint32_t axis)
{
    const Build *b = &n->b;
    const Expr  *at =
        build_along(b, build_arange(b, expr_form(x, axis), DT_I64), expr_rank(x), axis);
    const Expr *size = build_expand_dims(b, build_cast(b, n->in[1], DT_I64), axis, 1);
    const Expr *in = build_less(b, at, size), *y;

    y = in ? build_where(b, in, x, build_scalar(b, x, -INFINITY)) : NULL;
    y = softmax_along(b, n->row->relay, y, axis);
    return y ? build_where(b, in, y, build_scalar(b, y, 0)) : NULL;
}

bool mx_softmax(MxNode *n)
{
    const Build *b = &n->b;
    const Expr  *x = n->in[0];
    DType        t = expr_dtype(x);
    uint32_t     axis;

    if (!mx_rank(n, 0, 1, MAX_RANK) || !mx_axis(n, mx_int(n, "axis"), expr_rank(x), &axis) ||
        !mx_type(n, "dtype", &t))
        return false;
    x = build_cast(b, x, t);
    if (!strcmp(n->row->name, "softmin"))
        x = build1(b, "negative", x, NULL);
    if (mx_has(n, "temperature") && mx_float(n, "temperature") != 1)
        x = build_by(b, "divide", x, mx_float(n, "temperature"));
    if (!x)
        return false;
    return mx_done(n, n->nin > 1 ? softmax_before(n, x, axis)
                                 : softmax_along(b, n->row->relay, x, axis));
}

/* Of all cells behind the batch. */
static const Expr *softmax_flat(MxNode *n)
{
    const Build *b = &n->b;
    const Expr  *x = n->in[0], *y;

    if (expr_rank(x) <= 2)
        return softmax_along(b, "nn.softmax", x, expr_rank(x) - 1);
    y = softmax_along(b, "nn.softmax", build_matrix(b, x, 1), 1);
    return build_reshape_to(b, y, expr_rank(x), expr_forms(x).at);
}

/* Of each channel's cells, or of the last dimension. */
bool mx_softmax_activation(MxNode *n)
{
    bool     channel = mx_is(n, "mode", "channel");
    uint32_t rank = expr_rank(n->in[0]);

    return mx_rank(n, 0, channel ? 2 : 1, MAX_RANK) &&
           mx_done(n, softmax_along(&n->b, "nn.softmax", n->in[0], channel ? 1 : rank - 1));
}

bool mx_softmax_output(MxNode *n)
{
    bool multi = mx_bool(n, "multi_output");

    if (!mx_rank(n, 0, multi ? 2 : 1, MAX_RANK))
        return false;
    if (multi || mx_bool(n, "preserve_shape"))
        return mx_done(
            n, softmax_along(&n->b, "nn.softmax", n->in[0], multi ? 1 : expr_rank(n->in[0]) - 1));
    return mx_done(n, softmax_flat(n));
}

bool mx_logistic_output(MxNode *n)
{
    return mx_done(n, build1(&n->b, "sigmoid", n->in[0], NULL));
}
