/* Reductions, and what orders or counts. */
#include "frontends/tensorflow/tensorflow.h"

#include <string.h>

static const Expr *reduced(TfNode *n, const char *op, const Expr *x)
{
    int64_t  axes[MAX_RANK];
    uint32_t count;
    bool     keep = tf_int(n, "keep_dims"), moved = n->moved;
    Ints     v;

    if (!x || !tf_ints(n, 1, &v) ||
        !build_axes(&n->b, v, expr_rank(x), moved ? IMAGE_RANK : 0, &count, axes))
        return NULL;
    if (count == 0)
        return x;
    n->moved = moved && keep;
    return moved ? build_reduce_moved(&n->b, op, x, count, axes, keep)
                 : build_reduce(&n->b, op, x, count, axes, keep);
}

/* The mean of integers is the sum, divided towards zero. */
bool tf_reduce(TfNode *n)
{
    const Build *b = &n->b;
    const Expr  *x = n->in[0], *y;
    int64_t      all, left;

    if (strcmp(n->row->relay, "mean") != 0 || dtype_is_float(expr_dtype(x)))
        return tf_done(n, reduced(n, n->row->relay, x));
    all = build_elems(b, x);
    if (!(y = reduced(n, "sum", x)) || (left = build_elems(b, y)) < 1)
        return y && tf_error(n, E_UNSUPPORTED, "the mean of no cells");
    return tf_done(n, build_by(b, "divide", y, (double)(all / left)));
}

bool tf_euclidean_norm(TfNode *n)
{
    const Expr *y = reduced(n, "sum", build_mul(&n->b, n->in[0], n->in[0]));

    return tf_done(n, y ? build1(&n->b, "sqrt", y, NULL) : NULL);
}

bool tf_arg_reduce(TfNode *n)
{
    ArgReduceAttrs *a = ATTRS(&n->b, ArgReduceAttrs);
    uint32_t        axis;
    int64_t         v;

    if (!tf_number(n, 1, &v) || !tf_axis(n, v, expr_rank(n->in[0]), &axis) ||
        !tf_type(n, "output_type", &a->dtype))
        return false;
    a->axis = axis;
    return tf_done(n, build1(&n->b, n->row->relay, n->in[0], a));
}

bool tf_cumulative(TfNode *n)
{
    const Expr *x = n->in[0];
    uint32_t    axis;
    int64_t     v;

    return tf_number(n, 1, &v) && tf_axis(n, v, expr_rank(x), &axis) &&
           tf_done(n, build_scan(&n->b, n->row->relay, x, axis, tf_int(n, "exclusive"),
                                 tf_int(n, "reverse")));
}

/* How many is an input, or an attribute of the first version. */
bool tf_topk(TfNode *n)
{
    const Build *b = &n->b;
    TopKAttrs   *a = ATTRS(b, TopKAttrs);
    const Expr  *both;
    uint32_t     axis;
    bool         first = n->nin == 1;
    DType        t = DT_I32;

    if (first)
        a->k = tf_int(n, "k");
    else if (!tf_number(n, 1, &a->k) || !tf_type(n, "index_type", &t))
        return false;
    if (!tf_axis(n, -1, expr_rank(n->in[0]), &axis))
        return false;
    if (a->k < 1 || a->k > build_dim(b, n->in[0], axis))
        return tf_error(n, E_IMPORT, "the best %lld of %lld", (long long)a->k,
                        (long long)build_dim(b, n->in[0], axis));
    a->axis = axis;
    a->dtype = t;
    both = build1(b, "topk", n->in[0], a);
    return tf_put(n, 0, build_proj(b, both, 0)) && tf_put(n, 1, build_proj(b, both, 1));
}

/* Inputs: scores [N, C], classes [N], k: are fewer than k classes better than this one? */
bool tf_in_topk(TfNode *n)
{
    const Build *b = &n->b;
    TakeAttrs   *a = ATTRS(b, TakeAttrs);
    const Expr  *x = n->in[0], *own, *better, *fine;
    int64_t      k, across = 1;

    if (!tf_rank(n, 0, 2, 2) || !tf_rank(n, 1, 1, 1) || !tf_number(n, 2, &k))
        return false;
    a->axis = 1;
    a->batch_dims = 1;
    own = build2(b, "take", x, build_expand_dims(b, n->in[1], 1, 1), a);
    better = build_cast(b, build2(b, "greater", x, own, NULL), DT_I32);
    better = build_reduce(b, "sum", better, 1, &across, false);
    own = own ? build_reshape_to(b, own, 1, expr_forms(n->in[1]).at) : NULL;
    fine = own ? build1(b, "logical_not",
                        build2(b, "logical_or", build1(b, "isnan", own, NULL),
                               build1(b, "isinf", own, NULL), NULL),
                        NULL)
               : NULL;
    better = better ? build_less(b, better, build_scalar(b, better, (double)k)) : NULL;
    return tf_done(n, build2(b, "logical_and", better, fine, NULL));
}

/* How often each number below `size` occurs, or what its weights sum up to; of rows, if there are
 * two dimensions.  Inputs: numbers, size, weights, which may be empty. */
bool tf_bincount(TfNode *n)
{
    const Build    *b = &n->b;
    ScatterNdAttrs *a = ATTRS(b, ScatterNdAttrs);
    const Expr     *x = n->in[0], *w = n->in[2], *at, *y;
    bool            dense = !strcmp(n->row->name, "DenseBincount"), weighs = !expr_empty(w);
    bool            binary = dense && tf_int(n, "binary_output");
    const Idx      *room[2];
    uint32_t        rank = expr_rank(x);
    int64_t         size;
    DType           t;

    if (!tf_number(n, 1, &size) || !tf_type(n, "T", &t))
        return false;
    if (size < 0 || size > INT32_MAX || rank > 2)
        return tf_error(n, E_UNSUPPORTED, "%lld numbers, %u dimensions", (long long)size, rank);
    if (!dense || rank == 0) {
        const Idx *all = type_cells(b->c, x->type);

        x = build_reshape_to(b, x, 1, &all);
        w = weighs ? build_reshape_to(b, w, 1, &all) : w;
        rank = 1;
    }
    if (!weighs || binary)
        w = build_filled(b, expr_scalar(b->c, t, 0), 1, expr_forms(x));
    /* One row more for numbers that are too large. */
    at = build_by(b, "minimum", x, (double)size);
    room[rank - 1] = idx_const(b->c->arith, size + 1);
    at = build_expand_dims(b, at, 0, 1);
    if (rank == 2) {
        const Expr *row = build_cast(b, build_arange(b, expr_form(x, 0), DT_I64), expr_dtype(x));

        room[0] = expr_form(x, 0);
        row = build_broadcast_to(b, build_expand_dims(b, row, 1, 1), 2, expr_forms(x).at);
        at = build_concat(b, 2, (const Expr *[]){build_expand_dims(b, row, 0, 1), at}, 0);
    }
    a->mode = binary ? "update" : "add";
    y = build3(b, "scatter_nd", build_filled(b, w, 0, (Dims){rank, room}), at, w, a);
    return tf_done(n, y ? build_slice(b, y, rank - 1, 0, size) : NULL);
}
