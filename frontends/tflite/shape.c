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
    Ints        v = tflite_int_list(n, "squeeze_dims");
    const Expr *x = n->in[0];
    const Idx  *dims[MAX_RANK], *one = idx_const(n->b.c->arith, 1);
    bool        out[MAX_RANK] = {false};
    uint32_t    rank = expr_rank(x), k = 0, axis;

    for (uint32_t i = 0; i < v.n; i++) {
        if (!tflite_axis(n, v.at[i], rank, &axis))
            return false;
        if (expr_form(x, axis) != one)
            return tflite_error(n, E_IMPORT, "dimension %u is %s, not 1", axis,
                                dim_text(n->b.c, expr_form(x, axis)));
        out[axis] = true;
    }
    for (uint32_t i = 0; i < rank; i++)
        if (v.n ? !out[i] : expr_form(x, i) != one)
            dims[k++] = expr_form(x, i);
    return tflite_done(n, build_reshape_to(&n->b, x, k, dims));
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
    int64_t  axes[MAX_RANK];
    uint32_t rank = expr_rank(n->in[0]), at;
    bool     seen[MAX_RANK] = {false};
    Ints     v;

    if (!tflite_ints(n, 1, &v))
        return false;
    if (v.n != rank)
        return tflite_error(n, E_IMPORT, "a permutation of %u numbers for %u dimensions", v.n,
                            rank);
    for (uint32_t i = 0; i < rank; i++) {
        if (!tflite_axis(n, v.at[i], rank, &at))
            return false;
        if (seen[at])
            return tflite_error(n, E_IMPORT, "dimension %u is there twice", at);
        seen[at] = true;
        axes[i] = at;
    }
    return tflite_done(n, build_transpose(&n->b, n->in[0], rank, axes));
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

/* Parts of x along an axis, each of its size. */
static bool parts(TfliteNode *n, const Expr *x, uint32_t axis, const int64_t *size, bool drop)
{
    int64_t at = 0;

    for (uint32_t i = 0; i < n->nout; i++) {
        const Expr   *y = build_slice(&n->b, x, axis, at, at + size[i]);
        SqueezeAttrs *a = ATTRS(&n->b, SqueezeAttrs);

        a->axis = ints_of(n->b.c, 1, (int)axis);
        if (!y || !(n->out[i] = drop ? build1(&n->b, "squeeze", y, a) : y))
            return false;
        at += size[i];
    }
    return true;
}

bool tflite_unpack(TfliteNode *n)
{
    uint32_t axis;
    int64_t *size = NEW_ARRAY(n->b.c->arena, int64_t, n->nout + 1);

    if (!tflite_axis(n, tflite_int(n, "axis"), expr_rank(n->in[0]), &axis))
        return false;
    if (build_dim(&n->b, n->in[0], axis) != n->nout)
        return tflite_error(n, E_IMPORT, "%u outputs for %lld parts", n->nout,
                            (long long)build_dim(&n->b, n->in[0], axis));
    for (uint32_t i = 0; i < n->nout; i++)
        size[i] = 1;
    return parts(n, n->in[0], axis, size, true);
}

/* Input 0 is the axis. */
bool tflite_split(TfliteNode *n)
{
    uint32_t axis;
    int64_t *size = NEW_ARRAY(n->b.c->arena, int64_t, n->nout + 1), v, cells;

    if (!tflite_number(n, 0, &v) || !tflite_axis(n, v, expr_rank(n->in[1]), &axis))
        return false;
    cells = build_dim(&n->b, n->in[1], axis);
    if (n->nout == 0 || cells % n->nout)
        return tflite_error(n, E_IMPORT, "%lld cells into %u equal parts", (long long)cells,
                            n->nout);
    for (uint32_t i = 0; i < n->nout; i++)
        size[i] = cells / n->nout;
    return parts(n, n->in[1], axis, size, false);
}

/* Inputs: data, sizes, of which one may be -1, axis. */
bool tflite_split_v(TfliteNode *n)
{
    uint32_t axis, left = UINT32_MAX;
    int64_t *size = NEW_ARRAY(n->b.c->arena, int64_t, n->nout + 1), v, cells;
    Ints     sizes;

    if (!tflite_ints(n, 1, &sizes) || !tflite_number(n, 2, &v) ||
        !tflite_axis(n, v, expr_rank(n->in[0]), &axis))
        return false;
    cells = build_dim(&n->b, n->in[0], axis);
    if (sizes.n != n->nout)
        return tflite_error(n, E_IMPORT, "%u outputs for %u sizes", n->nout, sizes.n);
    for (uint32_t i = 0; i < n->nout; i++) {
        if (sizes.at[i] == -1 && left == UINT32_MAX) {
            left = i;
            continue;
        }
        if (sizes.at[i] < 0 || sizes.at[i] > cells)
            return tflite_error(n, E_IMPORT, "a part of %lld cells", (long long)sizes.at[i]);
        size[i] = sizes.at[i];
        cells -= size[i];
    }
    if (left < n->nout)
        size[left] = cells;
    else if (cells)
        return tflite_error(n, E_IMPORT, "its parts leave %lld cells", (long long)cells);
    return parts(n, n->in[0], axis, size, false);
}
