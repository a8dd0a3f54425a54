/* The same cells in another shape or order. */
#include "frontends/tflite/tflite.h"

#include <string.h>

/* Dimensions that the model declares for an output, if they are numbers. */
static bool declared(const TfliteNode *n, uint32_t i, Dims *out)
{
    const TfliteTensor *t = tflite_out(n, i);
    int64_t             dims[MAX_RANK];

    for (uint32_t k = 0; k < t->shape.n; k++) {
        dims[k] = fb_int_at(t->shape, FB_I32, k);
        if (dims[k] < 0 || (k < t->signature.n && fb_int_at(t->signature, FB_I32, k) < 0))
            return false;
    }
    *out = dims_of_i64(n->b.c, dims, t->shape.n);
    return t->shape.n > 0 && !n->im->shapes.reshaped;
}

/* The shape is an input, or an option of the first files. */
bool tflite_reshape(TfliteNode *n)
{
    Ints v = tflite_int_list(n, "new_shape");
    Dims dims = dims_of_i64(n->b.c, v.at, v.n);

    if (tflite_has(n, 1) &&
        !(dtype_is_int(expr_dtype(n->in[1])) && build_forms(&n->b, n->in[1], &dims)) &&
        !declared(n, 0, &dims))
        return tflite_forms(n, 1, &dims);
    /* {0} once stood for a scalar. */
    if (!tflite_has(n, 1) && v.n == 1 && v.at[0] == 0)
        dims.n = 0;
    return tflite_done(n, build_reshape_left(&n->b, n->in[0], dims));
}

bool tflite_squeeze(TfliteNode *n)
{
    int64_t  axes[MAX_RANK];
    uint32_t count;

    return build_axes(&n->b, tflite_int_list(n, "squeeze_dims"), expr_rank(n->in[0]), 0, &count,
                      axes) &&
           tflite_done(n, build_squeeze(&n->b, n->in[0], count, axes));
}

bool tflite_expand_dims(TfliteNode *n)
{
    const Expr *x = n->in[0];
    const Idx  *dims[MAX_RANK + 1];
    uint32_t    rank = expr_rank(x) + 1, axis;
    int64_t     v;

    if (!tflite_number(n, 1, &v) || !tflite_axis(n, v, rank, &axis))
        return false;
    if (rank > MAX_RANK)
        return tflite_error(n, E_UNSUPPORTED, "a tensor of %u dimensions", rank);
    for (uint32_t i = 0; i < rank; i++)
        dims[i] = i == axis ? idx_const(n->b.c->arith, 1) : expr_form(x, i - (i > axis));
    return tflite_done(n, build_reshape_to(&n->b, x, rank, dims));
}

bool tflite_transpose(TfliteNode *n)
{
    Ints v;

    return tflite_ints(n, 1, &v) && tflite_done(n, build_permuted(&n->b, n->in[0], v));
}

/* ---- blocks of pixels ----------------------------------------------------------------------------- */

bool tflite_depth_to_space(TfliteNode *n)
{
    return tflite_done(
        n, build_depth_to_space(&n->b, tflite_image(n, 0), tflite_int(n, "block_size")));
}

bool tflite_space_to_depth(TfliteNode *n)
{
    return tflite_done(
        n, build_space_to_depth(&n->b, tflite_image(n, 0), tflite_int(n, "block_size")));
}

bool tflite_space_to_batch(TfliteNode *n)
{
    Ints size, around;

    return tflite_ints(n, 1, &size) && tflite_ints(n, 2, &around) &&
           tflite_done(n, build_space_to_batch(&n->b, n->in[0], size, around));
}

bool tflite_batch_to_space(TfliteNode *n)
{
    Ints size, around;

    return tflite_ints(n, 1, &size) && tflite_ints(n, 2, &around) &&
           tflite_done(n, build_batch_to_space(&n->b, n->in[0], size, around));
}

/* ---- put together ----------------------------------------------------------------------------------- */

bool tflite_concat(TfliteNode *n)
{
    const Expr *y;
    uint32_t    axis;

    if (!tflite_axis(n, tflite_int(n, "axis"), expr_rank(n->in[0]), &axis))
        return false;
    y = build_concat(&n->b, n->nin, n->in, axis);
    if (tflite_int(n, "fused_activation_function") && y && dtype_is_int(expr_dtype(y)) &&
        tflite_is_quantized(tflite_out(n, 0))) {
        const TfliteTensor *t = tflite_out(n, 0);

        y = tflite_dequantize(&n->b, t, y, -1);
    }
    return tflite_done(n, tflite_activate(n, y));
}

bool tflite_pack(TfliteNode *n)
{
    uint32_t axis;

    if (!tflite_axis(n, tflite_int(n, "axis"), expr_rank(n->in[0]) + 1, &axis))
        return false;
    /* One at a time as parts of a concatenation, whose sizes are then followed. */
    for (uint32_t i = 0; i < n->nin; i++)
        if (!(n->in[i] = build_expand_dims(&n->b, n->in[i], axis, 1)))
            return false;
    return tflite_done(n, build_concat(&n->b, n->nin, n->in, axis));
}

bool tflite_unpack(TfliteNode *n)
{
    uint32_t axis;

    return tflite_axis(n, tflite_int(n, "axis"), expr_rank(n->in[0]), &axis) &&
           build_unstack(&n->b, n->in[0], axis, n->nout, n->out);
}

/* Input 0 is the axis. */
bool tflite_split(TfliteNode *n)
{
    uint32_t axis;
    int64_t  v;

    return tflite_number(n, 0, &v) && tflite_axis(n, v, expr_rank(n->in[1]), &axis) &&
           build_split(&n->b, n->in[1], axis, NULL, n->nout, n->out);
}

/* Inputs: data, sizes, of which one may be -1, axis. */
bool tflite_split_v(TfliteNode *n)
{
    uint32_t axis;
    int64_t  v;
    Ints     sizes;

    return tflite_ints(n, 1, &sizes) && tflite_number(n, 2, &v) &&
           tflite_axis(n, v, expr_rank(n->in[0]), &axis) &&
           build_split(&n->b, n->in[0], axis, &sizes, n->nout, n->out);
}
