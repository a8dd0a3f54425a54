/* NumPy's operators that differ from MXNet's own by more than the types of their results: what
 * reduces all dimensions gives a scalar, and axes may be None. */
#include "frontends/mxnet/mxnet.h"

#include <math.h>
#include <string.h>

static const Expr *as_float(const Build *b, const Expr *x)
{
    return dtype_is_float(expr_dtype(x)) ? x : build_cast(b, x, DT_F32);
}

/* ---- reductions ------------------------------------------------------------------------------------- */

static bool axes_of(const MxNode *n, uint32_t *count, int64_t *axes)
{
    uint32_t rank = expr_rank(n->in[0]);

    if (mx_has(n, "axis"))
        return build_axes(&n->b, mx_ints(n, "axis"), rank, 0, count, axes);
    for (*count = 0; *count < rank; ++*count)
        axes[*count] = *count;
    return true;
}

/* Along these axes, or as it is where there are none. */
static const Expr *reduced(const MxNode *n, const char *op, const Expr *x, uint32_t count,
                           const int64_t *axes, bool keep)
{
    return count ? build_reduce(&n->b, op, x, count, axes, keep) : x;
}

bool mx_np_reduce(MxNode *n)
{
    const Build *b = &n->b;
    const Expr  *x = n->in[0];
    const char  *op = n->row->relay;
    bool         truth = !strcmp(op, "all") || !strcmp(op, "any");
    DType        t = expr_dtype(x);
    int64_t      axes[MAX_RANK];
    uint32_t     count;

    if (!truth && mx_has(n, "initial"))
        return mx_error(n, E_UNSUPPORTED, "initial=%s", mx_text(n, "initial"));
    if (!strcmp(op, "mean"))
        t = dtype_is_float(t) ? t : DT_F32;
    if (!axes_of(n, &count, axes) ||
        (strcmp(op, "max") != 0 && strcmp(op, "min") != 0 && !truth && !mx_type(n, "dtype", &t)))
        return false;
    x = truth ? mx_truth(b, x) : build_cast(b, x, t);
    return mx_done(n, reduced(n, op, x, count, axes, mx_bool(n, "keepdims")));
}

/* Variance or its root, with `ddof` taken from the count of cells. */
bool mx_np_variance(MxNode *n)
{
    const Build *b = &n->b;
    const Expr  *x = as_float(b, n->in[0]), *mean;
    bool         root = !strcmp(n->row->relay, "sqrt");
    DType        t = expr_dtype(x);
    int64_t      axes[MAX_RANK], cells = 1, less = mx_int(n, "ddof");
    uint32_t     count;

    if (!axes_of(n, &count, axes) || !mx_type(n, "dtype", &t))
        return false;
    for (uint32_t i = 0; i < count; i++)
        cells *= build_dim(b, x, (uint32_t)axes[i]);
    if (cells <= less)
        return mx_error(n, E_IMPORT, "ddof=%lld of %lld cells", (long long)less, (long long)cells);
    x = build_cast(b, x, t);
    mean = reduced(n, "mean", x, count, axes, true);
    x = build_sub(b, x, mean);
    x = x ? reduced(n, "sum", build_mul(b, x, x), count, axes, mx_bool(n, "keepdims")) : NULL;
    x = build_by(b, "divide", x, (double)(cells - less));
    return mx_done(n, root ? build1(b, "sqrt", x, NULL) : x);
}

/* Without an axis, of all cells in a row. */
static const Expr *in_a_row(MxNode *n, uint32_t *axis)
{
    const Idx *cells = type_cells(n->b.c, n->in[0]->type);

    *axis = 0;
    if (!mx_has(n, "axis"))
        return build_reshape_to(&n->b, n->in[0], 1, &cells);
    return mx_axis(n, mx_int(n, "axis"), expr_rank(n->in[0]), axis) ? n->in[0] : NULL;
}

bool mx_np_arg_reduce(MxNode *n)
{
    const Build    *b = &n->b;
    ArgReduceAttrs *a = ATTRS(b, ArgReduceAttrs);
    uint32_t        axis, rank = expr_rank(n->in[0]);
    const Expr     *x = in_a_row(n, &axis), *y;
    const Idx      *ones[MAX_RANK];
    bool            keep = mx_bool(n, "keepdims");

    a->axis = axis;
    a->dtype = DT_I64;
    a->keepdims = keep && mx_has(n, "axis");
    y = x ? build1(b, n->row->relay, x, a) : NULL;
    for (uint32_t i = 0; i < rank; i++)
        ones[i] = idx_const(b->c->arith, 1);
    return mx_done(n, keep && !mx_has(n, "axis") ? build_reshape_to(b, y, rank, ones) : y);
}

bool mx_np_cumsum(MxNode *n)
{
    uint32_t    axis;
    const Expr *x = in_a_row(n, &axis);
    DType       t = expr_dtype(n->in[0]);

    return x && mx_type(n, "dtype", &t) &&
           mx_done(n, build_scan(&n->b, "cumsum", build_cast(&n->b, x, t), axis, false, false));
}

/* ---- products ----------------------------------------------------------------------------------------- */

static bool einsum(MxNode *n, const char *equation)
{
    BuildEinsum e = {.equation = equation, .n = n->nin, .x = n->in, .product = mx_product};

    return mx_done(n, build_einsum(&n->b, &e));
}

bool mx_np_einsum(MxNode *n)
{
    return einsum(n, mx_text(n, "subscripts"));
}

/* Letters for the dimensions of two operands and a result: those that they share are summed or go
 * in step. */
typedef struct {
    char at[3][2 * MAX_RANK + 1];
} Letters;

static bool by_letters(MxNode *n, const Letters *l)
{
    return einsum(n, arena_printf(n->b.c->arena, "%s,%s->%s", l->at[0], l->at[1], l->at[2]));
}

/* The last dimension of the first, the one before the last of the second; batches go in step
 * (matmul), or each with each (dot). */
bool mx_np_product(MxNode *n)
{
    Letters  l = {{{0}}};
    uint32_t x = expr_rank(n->in[0]), y = expr_rank(n->in[1]), at = 0;
    bool     step = !strcmp(n->row->name, "_npi_matmul");
    char     next = 'a';

    if (!x || !y || x + y > 20 || (step && x > 2 && y > 2 && x != y))
        return mx_error(n, E_UNSUPPORTED, "%s and %s", type_text(n->b.c, n->in[0]->type),
                        type_text(n->b.c, n->in[1]->type));
    for (uint32_t i = 0; i < x; i++)
        l.at[0][i] = i + 1 == x ? 'z' : next++;
    for (uint32_t i = 0; i + 1 < x; i++)
        l.at[2][at++] = l.at[0][i];
    for (uint32_t i = 0; i < y; i++) {
        bool summed = i + 2 == y || y == 1, batch = step && i + 2 < y;
        char letter = summed ? 'z' : batch && x > 2 ? l.at[0][i] : next++;

        l.at[1][i] = letter;
        if (summed || (batch && x > 2))
            continue;
        if (batch) { /* in front of the rows of x */
            memmove(&l.at[2][i + 1], &l.at[2][i], at - i);
            l.at[2][i] = letter;
            at++;
        } else {
            l.at[2][at++] = letter;
        }
    }
    return by_letters(n, &l);
}

/* ---- shapes --------------------------------------------------------------------------------------------- */

bool mx_np_moveaxis(MxNode *n)
{
    uint32_t rank = expr_rank(n->in[0]), from, to;
    Ints     source = mx_ints(n, "source"), target = mx_ints(n, "destination");
    int64_t  axes[MAX_RANK], rest = 0;
    bool     taken[MAX_RANK] = {false}, put[MAX_RANK] = {false};

    if (source.n != target.n)
        return mx_error(n, E_IMPORT, "%u axes to %u places", source.n, target.n);
    for (uint32_t i = 0; i < source.n; i++) {
        if (!mx_axis(n, source.at[i], rank, &from) || !mx_axis(n, target.at[i], rank, &to))
            return false;
        if (taken[from] || put[to])
            return mx_error(n, E_IMPORT, "an axis is there twice");
        axes[to] = from;
        taken[from] = put[to] = true;
    }
    for (uint32_t i = 0; i < rank; i++) {
        if (put[i])
            continue;
        while (taken[rest])
            rest++;
        axes[i] = rest++;
    }
    return mx_done(n, build_transpose(&n->b, n->in[0], rank, axes));
}

bool mx_np_tril(MxNode *n)
{
    TriluAttrs *a = ATTRS(&n->b, TriluAttrs);

    a->upper = false;
    a->k = mx_int(n, "k");
    return mx_rank(n, 0, 2, MAX_RANK) && mx_done(n, build1(&n->b, "trilu", n->in[0], a));
}

/* ---- cells ---------------------------------------------------------------------------------------------- */

bool mx_np_isfinite(MxNode *n)
{
    const Build *b = &n->b;

    return mx_done(n, build_by(b, "less", build1(b, "abs", as_float(b, n->in[0]), NULL), HUGE_VAL));
}

bool mx_np_logical_not(MxNode *n)
{
    return mx_done(n, build1(&n->b, "logical_not", mx_truth(&n->b, n->in[0]), NULL));
}

bool mx_np_around(MxNode *n)
{
    if (mx_int(n, "decimals"))
        return mx_error(n, E_UNSUPPORTED, "decimals=%s", mx_text(n, "decimals"));
    return mx_done(n, dtype_is_float(expr_dtype(n->in[0])) ? build1(&n->b, "round", n->in[0], NULL)
                                                           : n->in[0]);
}

bool mx_np_arctan2(MxNode *n)
{
    const Build *b = &n->b;

    return mx_done(n, build_atan2(b, as_float(b, n->in[0]), as_float(b, n->in[1])));
}
