/* Reductions, and what orders. */
#include "frontends/tflite/tflite.h"

#include <math.h>
#include <string.h>

static const Expr *reduced(const TfliteNode *n, const char *op, const Expr *x, uint32_t count,
                           const int64_t *axes, bool keep)
{
    return n->moved ? build_reduce_moved(&n->b, op, x, count, axes, keep)
                    : build_reduce(&n->b, op, x, count, axes, keep);
}

/* How many cells are reduced to one; false: it is not known. */
static bool known_cells(const Expr *x, uint32_t count, const int64_t *axes, int64_t *cells)
{
    int64_t dim;

    *cells = 1;
    for (uint32_t i = 0; i < count; i++)
        if (!type_dim(x->type, (uint32_t)axes[i], &dim) || !checked_mul(*cells, dim, cells))
            return false;
    return count > 0 && *cells > 0;
}

/* .. or i32 may not hold the sum. */
static bool summed_cells(const Expr *x, uint32_t count, const int64_t *axes, int64_t *cells)
{
    return known_cells(x, count, axes, cells) && *cells <= INT32_MAX >> expr_dtype(x).bits;
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

/* ---- products of quantized values ----------------------------------------------------------------- */

typedef struct {
    int64_t times, shift;
} Step;

/* x * times / 2^shift in i32, of x in i64: as far to the scale of the result as one of K factors
 * brings it. */
static const Expr *stepped(const Build *b, const Step *k, const Expr *x)
{
    x = build_by(b, "multiply", x, (double)k->times);
    x = build_by(b, "add", x, ldexp(1, (int)k->shift - 1));
    return build_cast(b, build_by(b, "right_shift", x, (double)k->shift), DT_I32);
}

/* States: the product of rows so far, rows [K, ..] less their zero point. */
static bool product_round(const Build *b, void *user, const Expr *i, const Expr *const *in,
                          const Expr **next)
{
    const Step *k = user;
    const Expr *x = build_take(b, in[1], build_by(b, "add", i, 1), 0);

    next[0] = stepped(b, k, build_mul(b, build_cast(b, in[0], DT_I64), build_cast(b, x, DT_I64)));
    next[1] = in[1];
    return next[0] != NULL;
}

/* The axes that are reduced first, as one. */
static const Expr *rows_of(const Build *b, const Expr *x, uint32_t count, const int64_t *axes,
                           int64_t cells)
{
    uint32_t   rank = expr_rank(x), at = count, kept = 0;
    int64_t    order[MAX_RANK];
    const Idx *dims[MAX_RANK + 1] = {idx_const(b->c->arith, cells)};

    for (uint32_t i = 0; i < count; i++)
        order[i] = axes[i];
    for (uint32_t i = 0; i < rank; i++) {
        bool reduced_axis = false;

        for (uint32_t k = 0; k < count; k++)
            reduced_axis |= axes[k] == i;
        if (!reduced_axis) {
            order[at++] = i;
            dims[++kept] = expr_form(x, i);
        }
    }
    return build_reshape_to(b, build_transpose(b, x, rank, order), kept + 1, dims);
}

/* As LiteRT's reference kernel: the first cell times the next ones in their order, each product
 * times a factor, and so the last one. */
static const Expr *product_steps(TfliteNode *n, const Expr *x, uint32_t count, const int64_t *axes,
                                 bool keep, int64_t cells, const TfliteFixed *f)
{
    enum { BITS = 15, UNROLLED = 32 };
    const Build *b = &n->b;
    DType        t = expr_dtype(x);
    Step k = {f->times < 0x7fff0000 ? (f->times + (1 << 15)) >> 16 : 0x7fff, BITS - f->shift};
    const Expr *state[2], *last[2], *y;
    const Idx  *dims[MAX_RANK];
    uint32_t    rank = 0;

    for (uint32_t i = 0; i < expr_rank(x); i++) {
        bool at = false;

        for (uint32_t a = 0; a < count; a++)
            at |= axes[a] == i;
        if (!at || keep)
            dims[rank++] = at ? idx_const(b->c->arith, 1) : expr_form(x, i);
    }
    x = build_by(b, "subtract", build_cast(b, x, DT_I32), (double)tflite_zero(tflite_in(n, 0), 0));
    state[1] = rows_of(b, x, count, axes, cells);
    state[0] = build_take(b, state[1], expr_scalar(b->c, DT_I32, 0), 0);
    if (cells > UNROLLED &&
        !tflite_rounds(n, idx_const(b->c->arith, cells - 1), 2, state, product_round, &k, last))
        return NULL;
    for (int64_t i = 0; i < cells - 1 && cells <= UNROLLED; i++) {
        if (!product_round(b, &k, expr_scalar(b->c, DT_I32, (double)i), state, last))
            return NULL;
        state[0] = last[0];
    }
    if (cells == 1)
        last[0] = state[0];
    y = stepped(b, &k, build_cast(b, last[0], DT_I64));
    y = build_by(b, "add", y, (double)tflite_zero(tflite_out(n, 0), 0));
    return build_reshape_to(b, tflite_saturated(b, y, t), rank, dims);
}

/* The factor of each step; false: LiteRT has no such kernel, or it has too few bits. */
static bool product_factor(const TfliteNode *n, int64_t cells, TfliteFixed *f)
{
    double in = tflite_scale(tflite_in(n, 0), 0), out = tflite_scale(tflite_out(n, 0), 0),
           v = in / pow(out, 1.0 / (double)cells);

    return expr_dtype(n->in[0]).code == DT_INT && v < 128 && tflite_fixed(n, v, f);
}

/* In the order of the file, in which the kernel multiplies. */
static bool reduce_products(TfliteNode *n)
{
    const Build *b = &n->b;
    int64_t      axes[MAX_RANK], cells;
    uint32_t     count;
    const Expr  *x =
        n->moved && expr_rank(n->in[0]) == IMAGE_RANK ? build_channels_last(b, n->in[0]) : n->in[0];
    bool        keep = tflite_int(n, "keep_dims");
    Ints        v;
    TfliteFixed f;

    n->moved = false;
    if (!x || !tflite_ints(n, 1, &v) || !build_axes(b, v, expr_rank(x), 0, &count, axes))
        return false;
    if (known_cells(x, count, axes, &cells) && product_factor(n, cells, &f))
        return tflite_done(n, product_steps(n, x, count, axes, keep, cells, &f));
    n->in[0] = x;
    if (!(x = tflite_value(n, 0)))
        return false;
    return tflite_done(n, count ? reduced(n, "prod", x, count, axes, keep) : x);
}

/* ---- reductions ------------------------------------------------------------------------------------ */

bool tflite_reduce(TfliteNode *n)
{
    const Build *b = &n->b;
    int64_t      axes[MAX_RANK];
    uint32_t     count;
    const Expr  *x = n->in[0], *y;
    bool         keep = tflite_int(n, "keep_dims"), moved = n->moved, sums;
    Ints         v;
    int64_t      cells;

    if (n->raw && !strcmp(n->row->name, "REDUCE_PROD"))
        return reduce_products(n);
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
