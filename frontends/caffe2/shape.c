/* Shapes, parts, sums, rows. */
#include "frontends/caffe2/caffe2.h"

#include <string.h>

/* ---- shapes ----------------------------------------------------------------------------------------- */

/* 0 as it is, -1 what is left; the second result is the shape that was. */
bool c2_reshape(C2Node *n)
{
    const Build *b = &n->b;
    Ints         v = c2_ints(n, "shape");
    Dims         had = expr_forms(n->in[0]);
    const Idx   *dims[MAX_RANK];

    if (n->nin > 1 && !expr_ints(b->c, n->in[1], &v))
        return c2_error(n, E_UNSUPPORTED, "its shape has to be known when it is compiled");
    if (v.n > MAX_RANK)
        return c2_error(n, E_UNSUPPORTED, "%u dimensions", v.n);
    for (uint32_t i = 0; i < v.n; i++) {
        if (v.at[i] == 0 && i >= had.n)
            return c2_error(n, E_IMPORT, "dimension %u as it is, of %u", i, had.n);
        dims[i] = v.at[i] == 0 ? had.at[i] : idx_const(b->c->arith, v.at[i]);
    }
    if (n->nout > 1)
        c2_put(n, 1, build_values(b, type_tensor_i64(b->c, DT_I64, 1, (int64_t[]){had.n}), had));
    return c2_done(n, build_reshape_left(b, n->in[0], dims_dup(b->c, dims, v.n)));
}

bool c2_flatten(C2Node *n)
{
    uint32_t axis;

    return c2_axis(n, c2_int(n, "axis", 1), expr_rank(n->in[0]) + 1, &axis) &&
           c2_done(n, build_matrix(&n->b, n->in[0], axis));
}

bool c2_flatten_to_vec(C2Node *n)
{
    const Idx *cells = type_cells(n->b.c, n->in[0]->type);

    return c2_done(n, build_reshape_to(&n->b, n->in[0], 1, &cells));
}

/* At positions of the result. */
bool c2_expand_dims(C2Node *n)
{
    Ints        v = c2_ints(n, "dims");
    const Expr *x = n->in[0];

    for (uint32_t i = 0; i < v.n && x; i++) {
        if (v.at[i] < 0 || v.at[i] > expr_rank(x) || expr_rank(x) >= MAX_RANK ||
            (i && v.at[i] <= v.at[i - 1]))
            return c2_error(n, E_IMPORT, "a dimension at %lld", (long long)v.at[i]);
        x = build_expand_dims(&n->b, x, v.at[i], 1);
    }
    return c2_done(n, x);
}

bool c2_squeeze(C2Node *n)
{
    int64_t  axes[MAX_RANK];
    uint32_t count;

    return build_axes(&n->b, c2_ints(n, "dims"), expr_rank(n->in[0]), 0, &count, axes) &&
           c2_done(n, count ? build_squeeze(&n->b, n->in[0], count, axes) : n->in[0]);
}

bool c2_transpose(C2Node *n)
{
    Ints     v = c2_ints(n, "axes");
    uint32_t rank = expr_rank(n->in[0]);
    int64_t  axes[MAX_RANK];

    if (v.n)
        return c2_done(n, build_permuted(&n->b, n->in[0], v));
    for (uint32_t i = 0; i < rank; i++)
        axes[i] = rank - 1 - i;
    return c2_done(n, build_transpose(&n->b, n->in[0], rank, axes));
}

bool c2_channels(C2Node *n)
{
    bool last = !strcmp(n->row->name, "NCHW2NHWC");

    return c2_rank(n, 0, 3, 5) && c2_done(n, last ? build_channels_last(&n->b, n->in[0])
                                                  : build_channels_first(&n->b, n->in[0]));
}

/* ---- parts ------------------------------------------------------------------------------------------ */

/* The axis that is given, or that of the channels. */
static bool channel_axis(C2Node *n, uint32_t rank, uint32_t *axis)
{
    bool ok, last = c2_channels_last(n, &ok);

    return ok && c2_axis(n, c2_int(n, "axis", last ? rank - 1 : 1), rank, axis);
}

/* The second result is how much each operand had. */
bool c2_concat(C2Node *n)
{
    const Build *b = &n->b;
    bool         fresh = c2_int(n, "add_axis", 0);
    const Idx  **sizes = NEW_ARRAY(b->c->arena, const Idx *, n->nin + 1);
    int64_t      count = n->nin;
    uint32_t     axis;

    if (!channel_axis(n, expr_rank(n->in[0]) + fresh, &axis))
        return false;
    for (uint32_t i = 0; i < n->nin; i++) {
        if (fresh)
            n->in[i] = build_expand_dims(b, n->in[i], axis, 1);
        if (!n->in[i] || expr_rank(n->in[i]) <= axis)
            return c2_error(n, E_IMPORT, "operand %u has no dimension %u", i, axis);
        sizes[i] = expr_form(n->in[i], axis);
    }
    if (n->nout > 1)
        c2_put(n, 1,
               build_values(b, type_tensor_i64(b->c, DT_I32, 1, &count), (Dims){n->nin, sizes}));
    return c2_done(n, build_concat(b, n->nin, n->in, axis));
}

bool c2_split(C2Node *n)
{
    Ints     v = c2_ints(n, "split");
    uint32_t axis;

    if (!c2_rank(n, 0, 1, MAX_RANK) || !channel_axis(n, expr_rank(n->in[0]), &axis))
        return false;
    if (v.n && v.n != n->nout)
        return c2_error(n, E_IMPORT, "%u sizes for %u results", v.n, n->nout);
    return build_split(&n->b, n->in[0], axis, v.n ? &v : NULL, n->nout, n->out);
}

/* Ends below 0 are counted from one behind the last: -1 is all. */
bool c2_slice(C2Node *n)
{
    Ints        from = c2_ints(n, "starts"), to = c2_ints(n, "ends");
    const Expr *x = n->in[0];

    if (from.n != to.n || from.n > expr_rank(x))
        return c2_error(n, E_IMPORT, "%u starts and %u ends of %u dimensions", from.n, to.n,
                        expr_rank(x));
    for (uint32_t i = 0; i < from.n && x; i++) {
        int64_t cells, begin = from.at[i], end = to.at[i];

        if (begin == 0 && end == -1)
            continue;
        cells = build_dim(&n->b, x, i);
        begin += begin < 0 ? cells + 1 : 0;
        end += end < 0 ? cells + 1 : 0;
        if (begin < 0 || begin > end || end > cells)
            return c2_error(n, E_IMPORT, "cells %lld to %lld of %lld", (long long)begin,
                            (long long)end, (long long)cells);
        x = build_slice(&n->b, x, i, begin, end);
    }
    return c2_done(n, x);
}

bool c2_tile(C2Node *n)
{
    const Build *b = &n->b;
    TileAttrs   *a = ATTRS(b, TileAttrs);
    int64_t      reps[MAX_RANK], tiles = c2_int(n, "tiles", 1);
    uint32_t     axis, rank = expr_rank(n->in[0]);

    if (!c2_axis(n, c2_int(n, "axis", 0), rank, &axis))
        return false;
    if (tiles < 1 || tiles > INT32_MAX)
        return c2_error(n, E_IMPORT, "tiles=%lld", (long long)tiles);
    for (uint32_t i = 0; i < rank; i++)
        reps[i] = i == axis ? tiles : 1;
    a->reps = dims_of_i64(b->c, reps, rank);
    return c2_done(n, build1(b, "tile", n->in[0], a));
}

/* Rows by their numbers. */
bool c2_batch_permutation(C2Node *n)
{
    return c2_rank(n, 0, 1, MAX_RANK) && c2_rank(n, 1, 1, 1) &&
           c2_done(n, build_take(&n->b, n->in[0], n->in[1], 0));
}

/* Sizes of all dimensions, or of those that are named, i64. */
bool c2_shape_of(C2Node *n)
{
    const Build *b = &n->b;
    Ints         v = c2_ints(n, "axes");
    Dims         all = expr_forms(n->in[0]);
    const Idx   *dims[MAX_RANK];
    uint32_t     axis;

    if (v.n > MAX_RANK)
        return c2_error(n, E_IMPORT, "%u axes", v.n);
    for (uint32_t i = 0; i < v.n; i++) {
        if (!c2_axis(n, v.at[i], all.n, &axis))
            return false;
        dims[i] = all.at[axis];
    }
    if (v.n)
        all = dims_dup(b->c, dims, v.n);
    return c2_done(n, build_values(b, type_tensor_i64(b->c, DT_I64, 1, (int64_t[]){all.n}), all));
}

bool c2_gather(C2Node *n)
{
    uint32_t axis;

    return c2_rank(n, 0, 1, MAX_RANK) &&
           c2_axis(n, c2_int(n, "axis", 0), expr_rank(n->in[0]), &axis) &&
           c2_done(n, build_take(&n->b, n->in[0], n->in[1], axis));
}

/* ---- reductions ------------------------------------------------------------------------------------- */

bool c2_reduce(C2Node *n)
{
    int64_t  axes[MAX_RANK];
    uint32_t count, rank = expr_rank(n->in[0]);

    if (!build_axes(&n->b, c2_ints(n, "axes"), rank, 0, &count, axes))
        return false;
    for (uint32_t i = 0; !c2_has(n, "axes") && i < rank; i++)
        axes[count++] = i;
    return c2_done(n, build_reduce_image(&n->b, n->row->relay, n->in[0], count, axes,
                                         c2_int(n, "keepdims", 1)));
}

bool c2_arg_reduce(C2Node *n)
{
    ArgReduceAttrs *a = ATTRS(&n->b, ArgReduceAttrs);
    uint32_t        axis;

    if (!c2_rank(n, 0, 1, MAX_RANK) ||
        !c2_axis(n, c2_int(n, "axis", -1), expr_rank(n->in[0]), &axis))
        return false;
    a->axis = axis;
    a->keepdims = c2_int(n, "keepdims", 1);
    a->dtype = DT_I64;
    return c2_done(n, build1(&n->b, n->row->relay, n->in[0], a));
}
