/* Reductions, and what orders. */
#include "frontends/tflite/tflite.h"

#include <string.h>

static const Expr *reduced(const TfliteNode *n, const char *op, const Expr *x, uint32_t count,
                           const int64_t *axes, bool keep)
{
    return n->moved ? build_reduce_moved(&n->b, op, x, count, axes, keep)
                    : build_reduce(&n->b, op, x, count, axes, keep);
}

/* How many cells are summed; false: it is not known, or i32 may not hold the sum. */
static bool summed_cells(const Expr *x, uint32_t count, const int64_t *axes, int64_t *cells)
{
    int64_t dim;

    *cells = 1;
    for (uint32_t i = 0; i < count; i++)
        if (!type_dim(x->type, (uint32_t)axes[i], &dim) || !checked_mul(*cells, dim, cells))
            return false;
    return count > 0 && *cells > 0 && *cells <= INT32_MAX >> expr_dtype(x).bits;
}

/* The sum of quantized values, or their mean, in the integers of LiteRT's reference kernels: the
 * factor is divided by as much of the number of cells as keeps its bits. */
static const Expr *sum_steps(TfliteNode *n, uint32_t count, const int64_t *axes, bool keep,
                             int64_t cells)
{
    const Build        *b = &n->b;
    const TfliteTensor *in = tflite_in(n, 0), *out = tflite_out(n, 0);
    TfliteFixed         f;
    DType               t = expr_dtype(n->in[0]);
    const Expr         *y;

    if (!tflite_fixed(n, tflite_scale(in, 0) / tflite_scale(out, 0), &f))
        return NULL;
    if (!strcmp(n->row->name, "MEAN")) {
        int bits = 0;

        while (bits < 31 + f.shift && cells >> bits > 1)
            bits++;
        f.times = f.times * (INT64_C(1) << bits) / cells;
        f.shift -= bits;
    }
    y = reduced(n, "sum", build_cast(b, n->in[0], DT_I32), count, axes, keep);
    y = build_by(b, "subtract", y, (double)(tflite_zero(in, 0) * cells));
    y = build_by(b, "add", tflite_times(b, y, cells << t.bits, 1, &f, 1),
                 (double)tflite_zero(out, 0));
    return tflite_saturated(b, y, t);
}

bool tflite_reduce(TfliteNode *n)
{
    const Build *b = &n->b;
    int64_t      axes[MAX_RANK];
    uint32_t     count;
    const Expr  *x = n->in[0], *y;
    bool         keep = tflite_int(n, "keep_dims"), moved = n->moved, sums;
    Ints         v;
    int64_t      cells;

    if (!tflite_ints(n, 1, &v) ||
        !build_axes(b, v, expr_rank(x), moved ? IMAGE_RANK : 0, &count, axes))
        return false;
    sums = !strcmp(n->row->name, "MEAN") || !strcmp(n->row->name, "SUM");
    if (n->raw && sums && summed_cells(x, count, axes, &cells)) {
        y = sum_steps(n, count, axes, keep, cells);
        n->moved = moved && keep;
        return tflite_done(n, y);
    }
    if (sums && !(x = tflite_value(n, 0)))
        return false;
    if (count == 0)
        return tflite_done(n, x);
    if (!strcmp(n->row->relay, "mean") && !dtype_is_float(expr_dtype(x)))
        return tflite_error(n, E_UNSUPPORTED, "the mean of %s", dtype_text(b->c, expr_dtype(x)));
    y = reduced(n, n->row->relay, x, count, axes, keep);
    n->moved = moved && keep;
    return tflite_done(n, y);
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
