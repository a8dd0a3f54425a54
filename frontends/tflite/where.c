/* Where a condition holds: how many positions there are, a run decides (docs/design/shapes.md). */
#include "frontends/tflite/tflite.h"

#include <string.h>

/* The dimension that holds this number, `total` of shape [1], within 0 to `most` cells. */
static const Idx *bound_dim(TfliteNode *n, const Expr *total, int64_t most)
{
    const Build   *b = &n->b;
    const char    *name = intern_printf(b->c->strings, "%s.0", tflite_out(n, 0)->name);
    BindDimsAttrs *a = ATTRS(b, BindDimsAttrs);
    const Expr    *bind;
    const Idx     *k;
    int64_t        lo = 0, hi = most;

    if (n->scope->depth)
        return tflite_error(n, E_UNSUPPORTED, "in a graph of a branch or loop");
    if (shapes_given(&n->im->shapes, name, &lo, &hi) && (lo < 0 || hi > most))
        return tflite_error(n, E_DIM, "dimension '%s' is at most %lld", name, (long long)most);
    k = lo < hi ? dim_var(b->c, name, lo, hi) : idx_const(b->c->arith, lo);
    a->dims = dims_dup(b->c, &k, 1);
    if (!(bind = build1(b, "bind_dims", total, a)))
        return NULL;
    vec_push(b->c->arena, &n->im->binds, bind);
    return k;
}

/* Numbers of the cells of flags [cells] that are set, in order: [k], i64. */
static const Expr *positions(TfliteNode *n, const Expr *flags)
{
    const Build          *b = &n->b;
    Arith                *A = b->c->arith;
    const Idx            *cells = expr_form(flags, 0), *room = idx_addc(A, cells, 1), *k;
    ScatterElementsAttrs *first = ATTRS(b, ScatterElementsAttrs);
    const Expr           *ones = build_cast(b, flags, DT_I64), *sum, *total, *to, *all;

    sum = build1(b, "cumsum", ones, NULL);
    total = build_reduce(b, "sum", ones, 1, (int64_t[]){0}, true);
    if (!sum || !total || !(k = bound_dim(n, total, cells->hi)))
        return NULL;
    /* Those that are not set go behind the end. */
    to = build_where(b, flags, build_by(b, "subtract", sum, 1),
                     build_by(b, "add", build_scalar(b, sum, 0), (double)cells->hi));
    all = build3(b, "scatter_elements", build_zeros_of(b, DT_I64, 1, &room), to,
                 build_arange(b, cells, DT_I64), first);
    return build_slice_to(b, all, 0, idx_const(A, 0), k);
}

/* The positions, [k, rank]. */
bool tflite_where(TfliteNode *n)
{
    const Build *b = &n->b;
    const Expr  *x = n->in[0], *at, *column[MAX_RANK];
    uint32_t     rank = expr_rank(x);
    int64_t      cells = build_elems(b, x), stride = cells;

    if (!tflite_rank(n, 0, 1, MAX_RANK))
        return false;
    if (cells < 1)
        return tflite_done(n, build_zeros(b, DT_I64, 2, (int64_t[]){0, rank}));
    if (!dtype_is_bool(expr_dtype(x)))
        x = build2(b, "not_equal", x, build_scalar(b, x, 0), NULL);
    if (!x || !(x = build_reshape(b, x, 1, &cells)) || !(at = positions(n, x)))
        return false;
    for (uint32_t i = 0; i < rank; i++) {
        int64_t size = build_dim(b, n->in[0], i);

        stride /= size;
        column[i] = build_by(b, "floor_divide", at, (double)stride);
        column[i] = build_expand_dims(b, build_by(b, "floor_mod", column[i], (double)size), 1, 1);
    }
    return tflite_done(n, build_concat(b, rank, column, 1));
}
