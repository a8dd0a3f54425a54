/* Reductions, and what orders. */
#include "frontends/tflite/tflite.h"

#include <string.h>

bool tflite_reduce(TfliteNode *n)
{
    const Build *b = &n->b;
    int64_t      axes[MAX_RANK];
    uint32_t     count;
    const Expr  *x = n->in[0];
    bool         keep = tflite_int(n, "keep_dims"), moved = n->moved;
    Ints         v;

    if (!tflite_ints(n, 1, &v) ||
        !build_axes(b, v, expr_rank(x), moved ? IMAGE_RANK : 0, &count, axes))
        return false;
    if (count == 0)
        return tflite_done(n, x);
    if (!strcmp(n->row->relay, "mean") && !dtype_is_float(expr_dtype(x)))
        return tflite_error(n, E_UNSUPPORTED, "the mean of %s", dtype_text(b->c, expr_dtype(x)));
    n->moved = moved && keep;
    return tflite_done(n, moved ? build_reduce_moved(b, n->row->relay, x, count, axes, keep)
                                : build_reduce(b, n->row->relay, x, count, axes, keep));
}

bool tflite_arg_reduce(TfliteNode *n)
{
    ArgReduceAttrs *a = ATTRS(&n->b, ArgReduceAttrs);
    uint32_t        axis;
    int64_t         v;

    if (!tflite_number(n, 1, &v) || !tflite_axis(n, v, expr_rank(n->in[0]), &axis))
        return false;
    a->axis = axis;
    if (!tflite_dtype(tflite_out(n, 0)->type, &a->dtype))
        return tflite_error(n, E_UNSUPPORTED, "positions as %s",
                            tflite_dtype_name(tflite_out(n, 0)->type));
    return tflite_done(n, build1(&n->b, n->row->relay, n->in[0], a));
}

bool tflite_cumsum(TfliteNode *n)
{
    const Expr *x = n->in[0];
    uint32_t    axis;
    int64_t     v;

    return tflite_number(n, 1, &v) && tflite_axis(n, v, expr_rank(x), &axis) &&
           tflite_done(n, build_scan(&n->b, "cumsum", x, axis, tflite_int(n, "exclusive"),
                                     tflite_int(n, "reverse")));
}

bool tflite_topk(TfliteNode *n)
{
    const Build *b = &n->b;
    TopKAttrs   *a = ATTRS(b, TopKAttrs);
    const Expr  *both;
    uint32_t     axis;

    if (!tflite_number(n, 1, &a->k) || !tflite_axis(n, -1, expr_rank(n->in[0]), &axis))
        return false;
    if (a->k < 1 || a->k > build_dim(b, n->in[0], axis))
        return tflite_error(n, E_IMPORT, "the best %lld of %lld", (long long)a->k,
                            (long long)build_dim(b, n->in[0], axis));
    a->axis = axis;
    if (n->nout > 1 && !tflite_dtype(tflite_out(n, 1)->type, &a->dtype))
        return tflite_error(n, E_UNSUPPORTED, "positions as %s",
                            tflite_dtype_name(tflite_out(n, 1)->type));
    both = build1(b, "topk", n->in[0], a);
    n->out[0] = build_proj(b, both, 0);
    if (n->nout > 1)
        n->out[1] = build_proj(b, both, 1);
    return n->out[0] != NULL;
}
