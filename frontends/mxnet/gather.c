/* Cells by positions, which may be floats. */
#include "frontends/mxnet/mxnet.h"

#include <string.h>

static const Expr *positions(MxNode *n, uint32_t i)
{
    return dtype_is_int(expr_dtype(n->in[i])) ? n->in[i] : build_cast(&n->b, n->in[i], DT_I64);
}

bool mx_take(MxNode *n)
{
    TakeAttrs *a = ATTRS(&n->b, TakeAttrs);
    uint32_t   axis;

    if (!mx_rank(n, 0, 1, MAX_RANK) || !mx_axis(n, mx_int(n, "axis"), expr_rank(n->in[0]), &axis))
        return false;
    a->axis = axis;
    a->mode = mx_is(n, "mode", "wrap") ? "wrap" : "clip";
    return mx_done(n, build2(&n->b, "take", n->in[0], positions(n, 1), a));
}

bool mx_embedding(MxNode *n)
{
    TakeAttrs *a = ATTRS(&n->b, TakeAttrs);

    if (!mx_rank(n, 1, 2, 2))
        return false;
    if (build_dim(&n->b, n->in[1], 0) != mx_int(n, "input_dim") ||
        build_dim(&n->b, n->in[1], 1) != mx_int(n, "output_dim"))
        return mx_error(n, E_IMPORT, "weights %s for %s rows of %s",
                        type_text(n->b.c, n->in[1]->type), mx_text(n, "input_dim"),
                        mx_text(n, "output_dim"));
    return mx_done(n, build2(&n->b, "take", n->in[1], positions(n, 0), a));
}

/* Positions [M, ..], as Relay has them. */
bool mx_gather_nd(MxNode *n)
{
    return mx_rank(n, 1, 1, MAX_RANK) &&
           mx_done(n, build2(&n->b, "gather_nd", n->in[0], positions(n, 1), NULL));
}

bool mx_scatter_nd(MxNode *n)
{
    const Build *b = &n->b;
    Ints         v = mx_ints(n, "shape");
    Dims         d = dims_of_i64(b->c, v.at, v.n);

    if (!mx_rank(n, 1, 1, MAX_RANK) || !build_check_shape(b, d))
        return false;
    return mx_done(n, build3(b, "scatter_nd", build_zeros_of(b, expr_dtype(n->in[0]), d.n, d.at),
                             positions(n, 1), n->in[0], NULL));
}

/* One cell along an axis for each of the others. */
bool mx_pick(MxNode *n)
{
    const Build *b = &n->b;
    GatherAttrs *a = ATTRS(b, GatherAttrs);
    bool         batch = !strcmp(n->row->name, "batch_take"), keep;
    const Expr  *x = n->in[0], *at = positions(n, 1), *y;
    const Idx   *cells = type_cells(b->c, x->type);
    uint32_t     axis = 0;
    int64_t      gone;

    if (!mx_rank(n, 0, 1, MAX_RANK) || !at)
        return false;
    keep = !batch && mx_bool(n, "keepdims");
    if (!batch && mx_is_none(mx_text(n, "axis")))
        x = build_reshape_to(b, x, 1, &cells);
    else if (!mx_axis(n, batch ? 1 : mx_int(n, "axis"), expr_rank(x), &axis))
        return false;
    if (expr_rank(at) + 1 == expr_rank(x))
        at = build_expand_dims(b, at, axis, 1);
    if (!x || !at || expr_rank(at) != expr_rank(x))
        return x && at ? mx_error(n, E_IMPORT, "positions %s in data %s", type_text(b->c, at->type),
                                  type_text(b->c, x->type))
                       : false;
    a->axis = axis;
    a->mode = !batch && mx_is(n, "mode", "wrap") ? "wrap" : "clip";
    y = build2(b, "gather", x, at, a);
    gone = axis;
    if (!keep && expr_rank(x) > 1)
        y = build_squeeze(b, y, 1, &gone);
    return mx_done(n, y);
}

bool mx_one_hot(MxNode *n)
{
    const Build *b = &n->b;
    OneHotAttrs *a = ATTRS(b, OneHotAttrs);
    DType        t = DT_F32;

    if (!mx_type(n, "dtype", &t))
        return false;
    a->depth = mx_int(n, "depth");
    if (a->depth < 1 || a->depth > INT32_MAX)
        return mx_error(n, E_IMPORT, "'depth' is %s", mx_text(n, "depth"));
    a->dtype = t;
    return mx_done(n, build3(b, "one_hot", positions(n, 0),
                             expr_scalar(b->c, t, mx_float(n, "on_value")),
                             expr_scalar(b->c, t, mx_float(n, "off_value")), a));
}

/* Numbers of cells as positions, [rank, ..]. */
bool mx_unravel_index(MxNode *n)
{
    return mx_done(n, build_unravel_index(&n->b, n->in[0], mx_ints(n, "shape")));
}

/* ---- sequences -------------------------------------------------------------------------------------- */

/* The axis of time, 0 or 1; the other one is the batch. */
static bool time_axis(const MxNode *n, uint32_t *axis)
{
    int64_t v = mx_int(n, "axis");

    *axis = (uint32_t)v;
    return mx_rank(n, 0, 2, MAX_RANK) &&
           (v == 0 || v == 1 ||
            mx_error(n, E_IMPORT, "axis %lld is neither 0 nor 1", (long long)v));
}

static bool check_lengths(const MxNode *n, uint32_t axis)
{
    return mx_rank(n, 1, 1, 1) &&
           (expr_form(n->in[1], 0) == expr_form(n->in[0], 1 - axis) ||
            mx_error(n, E_IMPORT, "lengths are %s", type_text(n->b.c, n->in[1]->type)));
}

bool mx_sequence_mask(MxNode *n)
{
    const Build *b = &n->b;
    const Expr  *x = n->in[0], *at, *size;
    uint32_t     axis, rank = expr_rank(x);

    if (!time_axis(n, &axis))
        return false;
    if (n->nin < 2)
        return mx_done(n, x);
    if (!check_lengths(n, axis))
        return false;
    at = build_along(b, build_arange(b, expr_form(x, axis), DT_I64), rank, axis);
    size = build_along(b, positions(n, 1), rank, 1 - axis);
    size = size ? build_cast(b, size, DT_I64) : NULL;
    return mx_done(
        n, build_where(b, build_less(b, at, size), x, build_scalar(b, x, mx_float(n, "value"))));
}

bool mx_sequence_reverse(MxNode *n)
{
    uint32_t axis;
    int64_t  first;

    if (!time_axis(n, &axis))
        return false;
    first = axis;
    if (n->nin < 2)
        return mx_done(n, build_reverse(&n->b, n->in[0], 1, &first));
    return check_lengths(n, axis) &&
           mx_done(n, build_reverse_rows(&n->b, n->in[0], positions(n, 1), axis, 1 - axis));
}

bool mx_sequence_last(MxNode *n)
{
    const Build *b = &n->b;
    GatherAttrs *a = ATTRS(b, GatherAttrs);
    const Expr  *x = n->in[0], *at;
    const Idx   *dims[MAX_RANK];
    uint32_t     axis, rank = expr_rank(x);
    int64_t      gone;

    if (!time_axis(n, &axis))
        return false;
    gone = axis;
    if (n->nin < 2) {
        const Idx *cells = expr_form(x, axis);

        x = build_slice_to(b, x, axis, idx_addc(b->c->arith, cells, -1), cells);
        return mx_done(n, build_squeeze(b, x, 1, &gone));
    }
    if (!check_lengths(n, axis))
        return false;
    at = build_along(b, build_by(b, "add", positions(n, 1), -1), rank, 1 - axis);
    for (uint32_t i = 0; i < rank; i++)
        dims[i] = i == axis ? idx_const(b->c->arith, 1) : expr_form(x, i);
    a->axis = axis;
    at = at ? build_broadcast_to(b, at, rank, dims) : NULL;
    return mx_done(n, build_squeeze(b, build2(b, "gather", x, at, a), 1, &gone));
}
