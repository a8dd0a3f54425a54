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
    int64_t  axes[MAX_RANK];
    uint32_t count;

    return build_axes(&n->b, tf_int_list(n, "squeeze_dims"), expr_rank(n->in[0]), 0, &count,
                      axes) &&
           tf_done(n, build_squeeze(&n->b, n->in[0], count, axes));
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
    Ints v;

    return tf_ints(n, 1, &v) && tf_done(n, build_permuted(&n->b, n->in[0], v));
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

/* `ok`: the parts have been made. */
static bool put_parts(TfNode *n, bool ok, const Expr *const *part)
{
    for (uint32_t i = 0; i < n->nout && ok; i++)
        ok = tf_put(n, i, part[i]);
    return ok;
}

static bool split(TfNode *n, const Expr *x, int64_t along, const Ints *sizes)
{
    const Expr **part = NEW_ARRAY(n->b.c->arena, const Expr *, n->nout + 1);
    uint32_t     axis;

    return tf_axis(n, along, expr_rank(x), &axis) &&
           put_parts(n, build_split(&n->b, x, axis, sizes, n->nout, part), part);
}

bool tf_unpack(TfNode *n)
{
    const Expr **part = NEW_ARRAY(n->b.c->arena, const Expr *, n->nout + 1);
    uint32_t     axis;

    return tf_axis(n, tf_int(n, "axis"), expr_rank(n->in[0]), &axis) &&
           put_parts(n, build_unstack(&n->b, n->in[0], axis, n->nout, part), part);
}

/* Input 0 is the axis. */
bool tf_split(TfNode *n)
{
    int64_t axis;

    return tf_number(n, 0, &axis) && split(n, n->in[1], axis, NULL);
}

/* Inputs: data, sizes, of which one may be -1, axis. */
bool tf_split_v(TfNode *n)
{
    int64_t axis;
    Ints    sizes;

    return tf_ints(n, 1, &sizes) && tf_number(n, 2, &axis) && split(n, n->in[0], axis, &sizes);
}
