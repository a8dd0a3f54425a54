/* Quantized operators.  QDQ form maps one to one; the QLinear operators are written as dequantize,
 * the float operator, quantize, which the passes may turn into integer arithmetic. */
#include "frontends/onnx/onnx.h"

#include <string.h>

/* A scale or zero point: [] and [1] are one number, [C] one for each channel. */
static const Expr *param(Node *n, const Expr *p)
{
    if (!expr_has_shape(p) || expr_rank(p) > 1)
        return node_error(n, E_UNSUPPORTED, "scales or zero points of %u dimensions",
                          expr_has_shape(p) ? expr_rank(p) : 0);
    return expr_single(p) ? build_reshape(&n->b, p, 0, NULL) : p;
}

static const Expr *zero_or(Node *n, const Expr *zero, DType t)
{
    return zero ? param(n, zero) : build_zeros(&n->b, t, 0, NULL);
}

/* A channel axis only where there are channels. */
static bool axis_of(Node *n, const Expr *x, const Expr *scale, int64_t *axis)
{
    uint32_t at;

    if (expr_rank(scale) == 0) {
        *axis = -1;
        return true;
    }
    if (!node_axis(n, *axis, expr_rank(x), &at))
        return false;
    if (build_dim(&n->b, x, at) != build_dim(&n->b, scale, 0))
        return node_error(n, E_IMPORT, "%lld scales for %lld channels",
                          (long long)build_dim(&n->b, scale, 0),
                          (long long)build_dim(&n->b, x, at));
    *axis = at;
    return true;
}

const Expr *onnx_quantize(Node *n, const Expr *x, const Expr *scale, const Expr *zero, int64_t axis,
                          DType t)
{
    QuantizeAttrs *a = ATTRS(&n->b, QuantizeAttrs);

    if (!x || !(scale = param(n, scale)) || !axis_of(n, x, scale, &axis))
        return NULL;
    a->out_dtype = t;
    a->axis = axis;
    x = build_cast(&n->b, x, DT_F32);
    return build3(&n->b, "qnn.quantize", x, build_cast(&n->b, scale, DT_F32), zero_or(n, zero, t),
                  a);
}

const Expr *onnx_dequantize(Node *n, const Expr *x, const Expr *scale, const Expr *zero,
                            int64_t axis)
{
    DequantizeAttrs *a = ATTRS(&n->b, DequantizeAttrs);
    DType            out;

    if (!x || !scale)
        return NULL;
    out = expr_dtype(scale);
    if (!(scale = param(n, scale)) || !axis_of(n, x, scale, &axis))
        return NULL;
    a->axis = axis;
    x = build3(&n->b, "qnn.dequantize", x, build_cast(&n->b, scale, DT_F32),
               zero_or(n, zero, expr_dtype(x)), a);
    return build_cast(&n->b, x, out);
}

static const Expr *input(Node *n, uint32_t i)
{
    return node_has(n, i) ? n->in[i] : NULL;
}

static bool need(Node *n, uint32_t from, uint32_t to)
{
    for (uint32_t i = from; i < to; i++)
        if (!node_need_rank(n, i, 0, MAX_RANK))
            return false;
    return true;
}

/* A scale or zero point of each block of cells along the axis, for each cell of x. */
static const Expr *of_cells(Node *n, const Expr *p, uint32_t axis, int64_t size)
{
    const Build *b = &n->b;
    const Expr  *x = n->in[0];
    RepeatAttrs *a = ATTRS(b, RepeatAttrs);

    for (uint32_t i = 0; i < expr_rank(x); i++) {
        int64_t cells = build_dim(b, x, i);

        if (expr_rank(p) != expr_rank(x) || size < 1 ||
            build_dim(b, p, i) != (i == axis ? (cells + size - 1) / size : cells))
            return node_error(n, E_IMPORT, "scales or zero points of %s for blocks of %lld of %s",
                              type_text(b->c, p->type), (long long)size, type_text(b->c, x->type));
    }
    a->repeats = size;
    a->axis = axis;
    return build_slice(b, build1(b, "repeat", p, a), axis, 0, build_dim(b, x, axis));
}

/* x / scale + zero as t, where scale and zero have x's shape or one that goes with it.  Integers
 * are rounded before the zero point, which 8-bit floats do not have, and cut to the type's range.
 */
static const Expr *quantize_numbers(Node *n, const Expr *x, const Expr *scale, const Expr *zero,
                                    DType t)
{
    const Build *b = &n->b;
    CastAttrs   *a = ATTRS(b, CastAttrs);
    ClipAttrs   *range = ATTRS(b, ClipAttrs);

    a->dtype = t;
    a->saturate = node_int(n, "saturate", 1);
    x = build2(b, "divide", build_cast(b, x, DT_F32), build_cast(b, scale, DT_F32), NULL);
    if (dtype_is_int(t)) {
        x = build1(b, "round", x, NULL);
        if (zero)
            x = build2(b, "add", x, build_cast(b, zero, DT_F32), NULL);
        range->a_min = dtype_min(t);
        range->a_max = dtype_max(t);
        x = build1(b, "clip", x, range);
    }
    return build1(b, "cast", x, a);
}

static const Expr *quantize_blocks(Node *n, int64_t size, DType t)
{
    const Expr *scale, *zero = NULL;
    uint32_t    axis;

    if (!node_axis(n, node_int(n, "axis", 1), expr_rank(n->in[0]), &axis) ||
        !(scale = of_cells(n, n->in[1], axis, size)) ||
        (node_has(n, 2) && !(zero = of_cells(n, n->in[2], axis, size))))
        return NULL;
    if (!dtype_stored(t) && (!dtype_is_int(t) || t.bits > 16))
        return node_error(n, E_UNSUPPORTED, "blocks quantized to %s", dtype_text(n->b.c, t));
    return quantize_numbers(n, n->in[0], scale, zero, t);
}

/* Scales or zero points for x along its axis: of shape [C], or a number. */
static const Expr *along(Node *n, const Expr *p, const Expr *x, int64_t axis)
{
    int64_t dims[MAX_RANK];

    if (!p || axis < 0)
        return p;
    for (uint32_t i = 0; i < expr_rank(x); i++)
        dims[i] = i == axis ? build_dim(&n->b, x, i) : 1;
    return build_reshape(&n->b, p, expr_rank(x), dims);
}

/* To types that only memory has. */
static const Expr *quantize_stored(Node *n, DType t)
{
    const Expr *x = n->in[0], *scale = param(n, n->in[1]), *zero = input(n, 2);
    int64_t     axis = node_int(n, "axis", 1);

    if (!scale || (zero && !(zero = param(n, zero))) || !axis_of(n, x, scale, &axis))
        return NULL;
    return quantize_numbers(n, x, along(n, scale, x, axis), along(n, zero, x, axis), t);
}

bool convert_quantize(Node *n)
{
    DType t = DT_U8;

    if (!need(n, 0, 2))
        return false;
    node_ignore(n, "saturate"); /* of 8-bit floats alone */
    if (node_int(n, "output_dtype", 0) && !onnx_dtype(node_int(n, "output_dtype", 0), &t))
        return node_error(n, E_UNSUPPORTED, "output_dtype %s",
                          onnx_dtype_text(node_int(n, "output_dtype", 0)));
    if (node_has(n, 2))
        t = expr_dtype(n->in[2]);
    if (node_int(n, "block_size", 0))
        return node_done(n, quantize_blocks(n, node_int(n, "block_size", 0), t));
    if (dtype_stored(t))
        return node_done(n, quantize_stored(n, t));
    return node_done(n,
                     onnx_quantize(n, n->in[0], n->in[1], input(n, 2), node_int(n, "axis", 1), t));
}

/* A scale and zero point for each block of cells along the axis: (x - zero) * scale, in floats. */
static const Expr *dequantize_blocks(Node *n, int64_t size)
{
    const Build *b = &n->b;
    const Expr  *x = n->in[0], *scale = n->in[1], *zero = input(n, 2);
    int64_t      dims[MAX_RANK + 1];
    uint32_t     axis, rank = expr_rank(x);
    DType        t = expr_dtype(scale);

    if (!node_axis(n, node_int(n, "axis", 1), rank, &axis))
        return NULL;
    if (size < 1 || build_dim(b, x, axis) % size || expr_rank(scale) != rank || rank == MAX_RANK)
        return node_error(n, E_UNSUPPORTED, "blocks of %lld in %s", (long long)size,
                          type_text(b->c, x->type));
    for (uint32_t i = 0; i < rank; i++) {
        if (build_dim(b, scale, i) != (i == axis ? build_dim(b, x, i) / size : build_dim(b, x, i)))
            return node_error(n, E_IMPORT, "scales of %s for blocks of %lld",
                              type_text(b->c, scale->type), (long long)size);
        dims[i + (i > axis)] = build_dim(b, scale, i);
    }
    dims[axis + 1] = size;
    x = build_cast(b, build_reshape(b, x, rank + 1, dims), t);
    if (zero)
        x = build2(b, "subtract", x, build_cast(b, build_expand_dims(b, zero, axis + 1, 1), t),
                   NULL);
    x = build2(b, "multiply", x, build_expand_dims(b, scale, axis + 1, 1), NULL);
    return build_reshape(b, x, rank, build_dims(b, n->in[0]).at);
}

/* Integers of 4 and 2 bits as bytes, which the passes know; 8-bit floats have no zero point. */
static const Expr *dequantize_stored(Node *n)
{
    const Build *b = &n->b;
    const Expr  *x = n->in[0], *scale = n->in[1], *zero = input(n, 2);
    int64_t      axis = node_int(n, "axis", 1);
    DType        t = dtype_cell(expr_dtype(x));

    if (dtype_is_int(expr_dtype(x)))
        return onnx_dequantize(n, build_cast(b, x, t), scale, build_cast(b, zero, t), axis);
    if (!(scale = param(n, scale)) || !axis_of(n, x, scale, &axis))
        return NULL;
    x = build2(b, "multiply", build_cast(b, x, DT_F32),
               build_cast(b, along(n, scale, x, axis), DT_F32), NULL);
    return build_cast(b, x, expr_dtype(scale));
}

bool convert_dequantize(Node *n)
{
    int64_t block = node_int(n, "block_size", 0), to = node_int(n, "output_dtype", 0);
    DType   t;

    if (!need(n, 0, 2))
        return false;
    if (to && (!onnx_dtype(to, &t) || !dtype_eq(t, expr_dtype(n->in[1]))))
        return node_error(n, E_UNSUPPORTED, "output_dtype %s, other than that of the scales",
                          onnx_dtype_text(to));
    if (block)
        return node_done(n, dequantize_blocks(n, block));
    if (dtype_stored(expr_dtype(n->in[0])))
        return node_done(n, dequantize_stored(n));
    return node_done(n,
                     onnx_dequantize(n, n->in[0], n->in[1], input(n, 2), node_int(n, "axis", 1)));
}

/* scale = (max(x, 0) - min(x, 0)) / 255, zero = round(-min / scale); the scale of zeros is 1, where
 * the standard would divide 0 by 0. */
/* x in bytes, its scale and its zero point, by the range of its values. */
static bool quantize_by_range(Node *n, const Expr *x, const Expr *out[3])
{
    const Build *b = &n->b;
    ClipAttrs   *a = ATTRS(b, ClipAttrs);
    const Expr  *lo, *hi, *range, *scale, *zero;
    int64_t      axes[MAX_RANK];

    for (uint32_t i = 0; i < expr_rank(x); i++)
        axes[i] = i;
    lo = build2(b, "minimum", build_reduce(b, "min", x, expr_rank(x), axes, false),
                build_scalar(b, x, 0), NULL);
    hi = build2(b, "maximum", build_reduce(b, "max", x, expr_rank(x), axes, false),
                build_scalar(b, x, 0), NULL);
    range = build2(b, "subtract", hi, lo, NULL);
    if (!range)
        return false;
    range = build_where(b, build2(b, "equal", range, build_scalar(b, x, 0), NULL),
                        build_scalar(b, x, 255), range);
    scale = build2(b, "divide", range, build_scalar(b, x, 255), NULL);
    a->a_min = 0;
    a->a_max = 255;
    zero = build2(b, "divide", build1(b, "negative", lo, NULL), scale, NULL);
    zero = build_cast(b, build1(b, "round", build1(b, "clip", zero, a), NULL), DT_U8);
    out[0] = scale && zero ? onnx_quantize(n, x, scale, zero, 0, DT_U8) : NULL;
    out[1] = scale;
    out[2] = zero;
    return out[0] != NULL;
}

bool convert_dynamic_quantize(Node *n)
{
    return need(n, 0, 1) && quantize_by_range(n, n->in[0], n->out);
}

/* x, its scale and zero point from input i on. */
static const Expr *dequantized(Node *n, uint32_t i, int64_t axis)
{
    return need(n, i, i + 2) ? onnx_dequantize(n, n->in[i], n->in[i + 1], input(n, i + 2), axis)
                             : NULL;
}

/* The result, with scale and zero point from input i on. */
static bool quantized(Node *n, const Expr *y, uint32_t i)
{
    DType t = DT_U8;

    if (!y || !need(n, i, i + 1))
        return false;
    t = node_has(n, i + 1) ? expr_dtype(n->in[i + 1]) : expr_dtype(n->in[0]);
    return node_done(n, onnx_quantize(n, y, n->in[i], input(n, i + 1), 1, t));
}

bool convert_qlinear_conv(Node *n)
{
    const Build *b = &n->b;
    const Expr  *x, *w, *bias = NULL, *scale;

    if (!need(n, 0, 8) || !node_need_rank(n, 0, 3, 4) || !node_need_rank(n, 3, 3, 4))
        return false;
    x = dequantized(n, 0, 1);
    w = dequantized(n, 3, 0);
    if (!x || !w)
        return false;
    if (node_has(n, 8)) {
        if (!node_need_rank(n, 8, 1, 1) || !(scale = param(n, n->in[1])) || !param(n, n->in[4]))
            return false;
        scale = build2(b, "multiply", scale, param(n, n->in[4]), NULL);
        bias = build2(b, "multiply", build_cast(b, n->in[8], DT_F32), scale, NULL);
        if (!bias)
            return false;
    }
    return quantized(n, onnx_conv(n, x, w, bias), 6);
}

bool convert_qlinear_matmul(Node *n)
{
    const Expr *x, *y;

    if (!need(n, 0, 8) || !node_need_rank(n, 0, 1, MAX_RANK) || !node_need_rank(n, 3, 1, MAX_RANK))
        return false;
    x = dequantized(n, 0, (int64_t)expr_rank(n->in[0]) - (expr_rank(n->in[0]) > 1 ? 2 : 1));
    y = dequantized(n, 3, -1);
    return x && y && quantized(n, onnx_matmul(n, x, y), 6);
}

/* x - zero (NULL: none), in i32; the zero point of an axis is a vector. */
static const Expr *less(Node *n, const Expr *x, const Expr *zero, int64_t axis)
{
    const Build *b = &n->b;

    x = build_cast(b, x, DT_I32);
    if (!zero)
        return x;
    if (!(zero = param(n, zero)))
        return NULL;
    zero = build_cast(b, build_along(b, zero, expr_rank(x), (uint32_t)axis), DT_I32);
    return build2(b, "subtract", x, zero, NULL);
}

static const Expr *centred(Node *n, uint32_t i, uint32_t zero, int64_t axis)
{
    return less(n, n->in[i], node_has(n, zero) ? n->in[zero] : NULL, axis);
}

bool convert_conv_integer(Node *n)
{
    const Expr *x, *w;

    if (!node_need_rank(n, 0, 3, 4) || !node_need_rank(n, 1, 3, 4))
        return false;
    x = centred(n, 0, 2, 1);
    w = centred(n, 1, 3, 0);
    return x && w && node_done(n, onnx_conv(n, x, w, NULL));
}

bool convert_matmul_integer(Node *n)
{
    const Expr *x, *y;
    uint32_t    r;

    if (!node_need_rank(n, 0, 1, MAX_RANK) || !node_need_rank(n, 1, 1, MAX_RANK))
        return false;
    r = expr_rank(n->in[0]);
    x = centred(n, 0, 2, r > 1 ? r - 2 : 0);
    y = centred(n, 1, 3, expr_rank(n->in[1]) - 1);
    return x && y && node_done(n, onnx_matmul(n, x, y));
}

/* A product of integers in floats: y, scaled along its columns by input i, plus input `bias`. */
static bool scaled(Node *n, const Expr *y, const Expr *x_scale, uint32_t i, uint32_t bias)
{
    const Build *b = &n->b;
    const Expr  *s;

    if (!y || !node_need_rank(n, i, 0, 1) || !(s = param(n, n->in[i])))
        return false;
    s = build2(b, "multiply", x_scale, s, NULL);
    y = build2(b, "multiply", build_cast(b, y, DT_F32), s, NULL);
    return node_done(n, y && node_has(n, bias) ? build2(b, "add", y, n->in[bias], NULL) : y);
}

/* A, quantized by its range, times B. */
bool convert_dynamic_quantize_matmul(Node *n)
{
    const Expr *a[3], *x, *y;

    if (!node_need_rank(n, 0, 1, MAX_RANK) || !node_need_rank(n, 1, 2, MAX_RANK) ||
        !quantize_by_range(n, n->in[0], a))
        return false;
    x = less(n, a[0], a[2], 0);
    y = centred(n, 1, 3, expr_rank(n->in[1]) - 1);
    return x && y && scaled(n, onnx_matmul(n, x, y), a[1], 2, 4);
}

/* A and B with their scales, then their zero points. */
bool convert_matmul_integer_to_float(Node *n)
{
    const Expr *x, *y;

    if (!node_need_rank(n, 0, 1, MAX_RANK) || !node_need_rank(n, 1, 2, MAX_RANK) ||
        !node_need_rank(n, 2, 0, 1))
        return false;
    if (build_elems(&n->b, n->in[2]) != 1)
        return node_error(n, E_UNSUPPORTED, "a scale for each row");
    x = centred(n, 0, 4, 0);
    y = centred(n, 1, 5, expr_rank(n->in[1]) - 1);
    return x && y && scaled(n, onnx_matmul(n, x, y), param(n, n->in[2]), 3, 6);
}

/* ---- what ONNX Runtime's tools add ------------------------------------------------------------------- */

bool convert_qlinear_binary(Node *n)
{
    const Expr *x = dequantized(n, 0, 0), *y = x ? dequantized(n, 3, 0) : NULL;

    return y && quantized(n, build2(&n->b, n->relay, x, y, NULL), 6);
}

static bool qlinear_unary(Node *n)
{
    const Build *b = &n->b;
    const Expr  *x;
    const void  *attrs = NULL;

    if (!(x = dequantized(n, 0, 0)))
        return false;
    if (!strcmp(n->relay, "nn.avg_pool2d")) {
        if (!node_need_rank(n, 0, 3, 4))
            return false;
        return quantized(n, onnx_pool(n, n->relay, x, onnx_pooling(n)), 3);
    }
    if (!strcmp(n->relay, "nn.leaky_relu")) {
        LeakyReluAttrs *a = ATTRS(b, LeakyReluAttrs);

        a->alpha = node_float(n, "alpha", 0.01f);
        attrs = a;
    } else if (!strcmp(n->relay, "nn.softmax")) {
        SoftmaxAttrs *a = ATTRS(b, SoftmaxAttrs);

        a->axis = node_int(n, "axis", -1);
        attrs = a;
        if (node_int(n, "opset", 13) < 13) { /* of all dimensions from the axis on */
            uint32_t axis;

            if (!node_axis(n, a->axis, expr_rank(x), &axis))
                return false;
            a->axis = 1;
            x = build1(b, n->relay, build_matrix(b, x, axis), a);
            return quantized(
                n, build_reshape_to(b, x, expr_rank(n->in[0]), expr_forms(n->in[0]).at), 3);
        }
    } else if (!strcmp(n->relay, "nn.global_avg_pool2d") && !node_need_rank(n, 0, 4, 4)) {
        return false;
    }
    return quantized(n, build1(b, n->relay, x, attrs), 3);
}

bool convert_qlinear_unary(Node *n)
{
    return node_int(n, "channels_last", 0)
               ? onnx_channels_last(n, 1, (const uint32_t[]){0}, qlinear_unary)
               : qlinear_unary(n);
}

bool convert_qlinear_reduce_mean(Node *n)
{
    const Expr *x;
    int64_t     axes[MAX_RANK];
    Ints        given;
    uint32_t    rank;

    if (!(x = dequantized(n, 0, 0)))
        return false;
    rank = expr_rank(x);
    for (uint32_t i = 0; i < rank; i++)
        axes[i] = i;
    if (node_ints(n, "axes", &given) && given.n) {
        if (!node_axes(n, given, rank, axes))
            return false;
        rank = given.n;
    }
    return quantized(n, build_reduce(&n->b, "mean", x, rank, axes, node_int(n, "keepdims", 1) != 0),
                     3);
}

/* Of X and Y, each with scale and zero point. */
bool convert_qlinear_where(Node *n)
{
    const Expr *x, *y;
    DType       t;

    if (!need(n, 0, 9) || !(x = dequantized(n, 1, 0)) || !(y = dequantized(n, 4, 0)))
        return false;
    t = expr_dtype(n->in[1]);
    return node_done(
        n, onnx_quantize(n, build_where(&n->b, n->in[0], x, y), n->in[7], n->in[8], 1, t));
}

bool convert_qlinear_concat(Node *n)
{
    const Expr **xs = NEW_ARRAY(n->b.c->arena, const Expr *, n->nin + 1);
    uint32_t     k = 0, axis;

    for (uint32_t i = 2; i + 1 < n->nin; i += 3)
        if (!(xs[k++] = dequantized(n, i, 0)))
            return false;
    if (k == 0)
        return node_error(n, E_IMPORT, "nothing to concatenate");
    if (!need(n, 0, 2) || !node_axis(n, node_int(n, "axis", 0), expr_rank(xs[0]), &axis))
        return false;
    return node_done(n, onnx_quantize(n, build_concat(&n->b, k, xs, axis), n->in[0], n->in[1], 1,
                                      expr_dtype(n->in[1])));
}

bool convert_qgemm(Node *n)
{
    const Build *b = &n->b;
    bool         ty = node_int(n, "transB", 0);
    const Expr  *x, *w, *y, *scale;
    MatmulAttrs *a = ATTRS(b, MatmulAttrs);

    if (!need(n, 0, 6) || !node_need_rank(n, 0, 2, 2) || !node_need_rank(n, 3, 2, 2))
        return false;
    x = dequantized(n, 0, 0);
    w = dequantized(n, 3, ty ? 0 : 1);
    a->transpose_a = node_int(n, "transA", 0);
    a->transpose_b = ty;
    y = build2(b, "nn.matmul", x, w, a);
    if (y && node_has(n, 6)) {
        scale = build2(b, "multiply", param(n, n->in[1]), param(n, n->in[4]), NULL);
        y = build2(b, "add", y, build2(b, "multiply", build_cast(b, n->in[6], DT_F32), scale, NULL),
                   NULL);
    }
    if (y && node_float(n, "alpha", 1) != 1)
        y = build_by(b, "multiply", y, node_float(n, "alpha", 1));
    return node_has(n, 7) ? quantized(n, y, 7) : node_done(n, y);
}

/* The product of input 0 and its weights in floats, then attention by it. */
bool convert_qattention(Node *n)
{
    const Expr *x, *w;

    node_ignore(n, "past_present_share_buffer");
    if (!node_need_rank(n, 0, 3, 3) || !node_need_rank(n, 1, 2, 2) || !node_need_rank(n, 3, 0, 1))
        return false;
    if (build_elems(&n->b, n->in[3]) != 1)
        return node_error(n, E_UNSUPPORTED, "a scale for each row");
    x = centred(n, 0, 6, 0);
    w = centred(n, 1, 7, 1);
    if (!x || !w || !scaled(n, onnx_matmul(n, x, w), param(n, n->in[3]), 4, 2))
        return false;
    return onnx_attention_of(
        n, n->out[0],
        &(OnnxAttentionInputs){
            .mask = 5, .past = 8, .bias = UINT32_MAX, .past_length = UINT32_MAX});
}

/* Tables, gamma and beta in bytes, with scales from input 8 and zero points from input 13 on. */
bool convert_qembed_layer_norm(Node *n)
{
    for (uint32_t i = 2; i < 7; i++) {
        const Expr *zero;

        if (!node_has(n, i))
            continue;
        if (!need(n, i, i + 1) || !need(n, i + 6, i + 7))
            return false;
        zero = node_has(n, i + 11) ? n->in[i + 11] : NULL;
        if (!(n->in[i] = onnx_dequantize(n, n->in[i], n->in[i + 6], zero, 0)))
            return false;
    }
    if (node_has(n, 8))
        n->in[8] = NULL; /* where EmbedLayerNormalization has its positions */
    return convert_embed_layer_norm(n);
}

/* Weights [D, I, 4*H] in bytes, with a scale for each direction or each of its columns: as LSTM has
 * them. */
static const Expr *gates(Node *n, uint32_t i, uint32_t scale)
{
    const Build *b = &n->b;
    const Expr  *w, *p[2] = {0};
    const Idx   *one = idx_const(b->c->arith, 1);

    if (!node_need_rank(n, i, 3, 3))
        return NULL;
    for (uint32_t k = 0; k < 2; k++) {
        if (!node_need_rank(n, scale + k, 1, 2))
            return NULL;
        p[k] = n->in[scale + k];
        p[k] = build_reshape_to(b, build_cast(b, p[k], DT_F32), 3,
                                (const Idx *[]){expr_form(p[k], 0), one,
                                                expr_rank(p[k]) == 2 ? expr_form(p[k], 1) : one});
    }
    w = build2(b, "subtract", build_cast(b, n->in[i], DT_F32), p[1], NULL);
    return build_transpose(b, build2(b, "multiply", w, p[0], NULL), 3, (int64_t[]){0, 2, 1});
}

/* Input and state are not rounded to bytes in each step: that is a shortcut of processors, not
 * what the model was made for. */
bool convert_dynamic_quantize_lstm(Node *n)
{
    const Expr *w = gates(n, 1, 8), *r = w ? gates(n, 2, 10) : NULL;

    if (!r)
        return false;
    n->in[1] = w;
    n->in[2] = r;
    return convert_lstm(n);
}
