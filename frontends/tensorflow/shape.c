/* The same cells in another shape or order. */
#include "frontends/tensorflow/tensorflow.h"

#include <string.h>

bool tf_reshape(TfNode *n)
{
    Dims v;

    return tf_forms(n, 1, &v) && tf_done(n, build_reshape_left(&n->b, n->in[0], v));
}

bool tf_squeeze(TfNode *n)
{
    Ints        v = tf_int_list(n, "squeeze_dims");
    const Expr *x = n->in[0];
    const Idx  *dims[MAX_RANK], *one = idx_const(n->b.c->arith, 1);
    bool        out[MAX_RANK] = {false};
    uint32_t    rank = expr_rank(x), k = 0, axis;

    for (uint32_t i = 0; i < v.n; i++) {
        if (!tf_axis(n, v.at[i], rank, &axis))
            return false;
        if (expr_form(x, axis) != one)
            return tf_error(n, E_IMPORT, "dimension %u is %s, not 1", axis,
                            dim_text(n->b.c, expr_form(x, axis)));
        out[axis] = true;
    }
    for (uint32_t i = 0; i < rank; i++)
        if (v.n ? !out[i] : expr_form(x, i) != one)
            dims[k++] = expr_form(x, i);
    return tf_done(n, build_reshape_to(&n->b, x, k, dims));
}

bool tf_expand_dims(TfNode *n)
{
    const Expr *x = n->in[0];
    const Idx  *dims[MAX_RANK + 1];
    uint32_t    rank = expr_rank(x) + 1, axis;
    int64_t     v;

    if (!tf_number(n, 1, &v) || !tf_axis(n, v, rank, &axis))
        return false;
    if (rank > MAX_RANK)
        return tf_error(n, E_UNSUPPORTED, "a tensor of %u dimensions", rank);
    for (uint32_t i = 0; i < rank; i++)
        dims[i] = i == axis ? idx_const(n->b.c->arith, 1) : expr_form(x, i - (i > axis));
    return tf_done(n, build_reshape_to(&n->b, x, rank, dims));
}

bool tf_transpose(TfNode *n)
{
    int64_t  axes[MAX_RANK];
    uint32_t rank = expr_rank(n->in[0]), at;
    bool     seen[MAX_RANK] = {false};
    Ints     v;

    if (!tf_ints(n, 1, &v))
        return false;
    if (v.n != rank)
        return tf_error(n, E_IMPORT, "a permutation of %u numbers for %u dimensions", v.n, rank);
    for (uint32_t i = 0; i < rank; i++) {
        if (!tf_axis(n, v.at[i], rank, &at))
            return false;
        if (seen[at])
            return tf_error(n, E_IMPORT, "dimension %u is there twice", at);
        seen[at] = true;
        axes[i] = at;
    }
    return tf_done(n, build_transpose(&n->b, n->in[0], rank, axes));
}

/* ---- blocks of pixels ------------------------------------------------------------------------------- */

bool tf_depth_to_space(TfNode *n)
{
    return tf_image_done(n, build_depth_to_space(&n->b, tf_image(n, 0), tf_int(n, "block_size")));
}

bool tf_space_to_depth(TfNode *n)
{
    return tf_image_done(n, build_space_to_depth(&n->b, tf_image(n, 0), tf_int(n, "block_size")));
}

bool tf_space_to_batch(TfNode *n)
{
    Ints size, around;

    return tf_ints(n, 1, &size) && tf_ints(n, 2, &around) &&
           tf_done(n, build_space_to_batch(&n->b, n->in[0], size, around));
}

bool tf_batch_to_space(TfNode *n)
{
    Ints size, around;

    return tf_ints(n, 1, &size) && tf_ints(n, 2, &around) &&
           tf_done(n, build_batch_to_space(&n->b, n->in[0], size, around));
}

/* ---- put together, cut ------------------------------------------------------------------------------ */

static bool concat(TfNode *n, uint32_t at, uint32_t first)
{
    uint32_t axis, count = n->nin - 1;
    int64_t  v;

    if (count < 1)
        return tf_error(n, E_IMPORT, "no inputs");
    return tf_number(n, at, &v) && tf_axis(n, v, expr_rank(n->in[first]), &axis) &&
           tf_done(n, count == 1 ? n->in[first] : build_concat(&n->b, count, n->in + first, axis));
}

/* The axis is the first input. */
bool tf_concat(TfNode *n)
{
    return concat(n, 0, 1);
}

bool tf_concat_v2(TfNode *n)
{
    return concat(n, n->nin - 1, 0);
}

bool tf_pack(TfNode *n)
{
    uint32_t axis;

    if (n->nin < 1)
        return tf_error(n, E_IMPORT, "no inputs");
    if (!tf_axis(n, tf_int(n, "axis"), expr_rank(n->in[0]) + 1, &axis))
        return false;
    /* One at a time as parts of a concatenation, whose sizes are then followed. */
    for (uint32_t i = 0; i < n->nin; i++)
        if (!(n->in[i] = build_expand_dims(&n->b, n->in[i], axis, 1)))
            return false;
    return tf_done(n, n->nin == 1 ? n->in[0] : build_concat(&n->b, n->nin, n->in, axis));
}

/* Parts of x along an axis, each of its size. */
static bool parts(TfNode *n, const Expr *x, uint32_t axis, const int64_t *size, bool drop)
{
    int64_t at = 0;

    for (uint32_t i = 0; i < n->nout; i++) {
        const Expr   *y = build_slice(&n->b, x, axis, at, at + size[i]);
        SqueezeAttrs *a = ATTRS(&n->b, SqueezeAttrs);

        a->axis = ints_of(n->b.c, 1, (int)axis);
        if (!y || !tf_put(n, i, drop ? build1(&n->b, "squeeze", y, a) : y))
            return false;
        at += size[i];
    }
    return true;
}

static bool equal_parts(TfNode *n, const Expr *x, uint32_t axis, bool drop)
{
    int64_t *size = NEW_ARRAY(n->b.c->arena, int64_t, n->nout + 1), cells;

    cells = build_dim(&n->b, x, axis);
    if (n->nout == 0 || (drop ? cells != n->nout : cells % n->nout != 0))
        return tf_error(n, E_IMPORT, "%lld cells into %u equal parts", (long long)cells, n->nout);
    for (uint32_t i = 0; i < n->nout; i++)
        size[i] = cells / n->nout;
    return n->nout == 1 && !drop ? tf_done(n, x) : parts(n, x, axis, size, drop);
}

bool tf_unpack(TfNode *n)
{
    uint32_t axis;

    return tf_axis(n, tf_int(n, "axis"), expr_rank(n->in[0]), &axis) &&
           equal_parts(n, n->in[0], axis, true);
}

/* Input 0 is the axis. */
bool tf_split(TfNode *n)
{
    uint32_t axis;
    int64_t  v;

    return tf_number(n, 0, &v) && tf_axis(n, v, expr_rank(n->in[1]), &axis) &&
           equal_parts(n, n->in[1], axis, false);
}

/* Inputs: data, sizes, of which one may be -1, axis. */
bool tf_split_v(TfNode *n)
{
    uint32_t axis, left = UINT32_MAX;
    int64_t *size = NEW_ARRAY(n->b.c->arena, int64_t, n->nout + 1), v, cells;
    Ints     sizes;

    if (!tf_ints(n, 1, &sizes) || !tf_number(n, 2, &v) ||
        !tf_axis(n, v, expr_rank(n->in[0]), &axis))
        return false;
    cells = build_dim(&n->b, n->in[0], axis);
    if (sizes.n != n->nout)
        return tf_error(n, E_IMPORT, "%u outputs for %u sizes", n->nout, sizes.n);
    for (uint32_t i = 0; i < n->nout; i++) {
        if (sizes.at[i] == -1 && left == UINT32_MAX) {
            left = i;
            continue;
        }
        if (sizes.at[i] < 0 || sizes.at[i] > cells)
            return tf_error(n, E_IMPORT, "a part of %lld cells", (long long)sizes.at[i]);
        size[i] = sizes.at[i];
        cells -= size[i];
    }
    if (left < n->nout)
        size[left] = cells;
    else if (cells)
        return tf_error(n, E_IMPORT, "its parts leave %lld cells", (long long)cells);
    return parts(n, n->in[0], axis, size, false);
}
