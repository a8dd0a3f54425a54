/* Rows of tables, by their numbers and by keys. */
#include "frontends/tflite/tflite.h"

#include <string.h>

/* [cells] as [cells, 1, ..] of `rank` dimensions. */
static const Expr *of_rows(const Build *b, const Expr *x, uint32_t rank)
{
    return build_along(b, x, rank, 0);
}

/* Inputs: keys that are looked up, those of the rows, rows.  Without a key a row is zeros; the
 * second output says which there are. */
bool tflite_hashtable_lookup(TfliteNode *n)
{
    const Build    *b = &n->b;
    ArgReduceAttrs *first = ATTRS(b, ArgReduceAttrs);
    const Expr     *keys = n->in[0], *same, *hits, *rows;
    int64_t         across = 1;

    if (!tflite_rank(n, 0, 1, 1) || !tflite_rank(n, 1, 1, 1) || !tflite_rank(n, 2, 1, MAX_RANK))
        return false;
    if (expr_form(n->in[1], 0) != expr_form(n->in[2], 0) || expr_empty(n->in[1]))
        return tflite_error(n, E_IMPORT, "keys are %s, rows %s", type_text(b->c, n->in[1]->type),
                            type_text(b->c, n->in[2]->type));
    same = build2(b, "equal", build_along(b, keys, 2, 0), build_along(b, n->in[1], 2, 1), NULL);
    hits = build_reduce(b, "any", same, 1, &across, false);
    first->axis = 1;
    first->dtype = DT_I64;
    rows = build_take(b, n->in[2],
                      build1(b, "argmax", same ? build_cast(b, same, DT_I32) : NULL, first), 0);
    n->out[1] = hits ? build_cast(b, hits, DT_U8) : NULL;
    return n->out[1] && rows &&
           tflite_done(n, build_where(b, of_rows(b, hits, expr_rank(rows)), rows,
                                      build_scalar(b, rows, 0)));
}

/* Inputs: numbers of rows [k], the place of each in a sparse tensor [k, r], its shape [r], their
 * weights [k], rows.  Those that differ in the last number of their place alone are combined. */
bool tflite_embedding_lookup_sparse(TfliteNode *n)
{
    enum { SUM, MEAN, SQRTN };
    const Build    *b = &n->b;
    ScatterNdAttrs *add = ATTRS(b, ScatterNdAttrs);
    int64_t         how = tflite_int(n, "combiner"), k, r, axes[2] = {1, 0};
    const Idx      *dims[MAX_RANK];
    const Expr     *at, *rows, *weights = n->in[3], *sum, *total;
    uint32_t        rank;
    Ints            shape;

    if (!tflite_rank(n, 0, 1, 1) || !tflite_rank(n, 1, 2, 2) || !tflite_rank(n, 3, 1, 1) ||
        !tflite_rank(n, 4, 1, MAX_RANK) || !tflite_ints(n, 2, &shape))
        return false;
    k = build_dim(b, n->in[0], 0);
    r = build_dim(b, n->in[1], 1);
    rank = expr_rank(n->in[4]);
    if (r != shape.n || r < 1 || r - 1 + rank > MAX_RANK || build_dim(b, n->in[1], 0) != k ||
        build_dim(b, weights, 0) != k)
        return tflite_error(n, E_IMPORT, "places are %s, weights %s, of %lld rows",
                            type_text(b->c, n->in[1]->type), type_text(b->c, weights->type),
                            (long long)k);
    if (how < SUM || how > SQRTN)
        return tflite_error(n, E_UNSUPPORTED, "combiner %lld", (long long)how);
    for (uint32_t i = 0; i + 1 < shape.n; i++) {
        if (shape.at[i] < 0)
            return tflite_error(n, E_IMPORT, "dimension %u is %lld", i, (long long)shape.at[i]);
        dims[i] = idx_const(b->c->arith, shape.at[i]);
    }
    for (uint32_t i = 1; i < rank; i++)
        dims[r - 2 + i] = expr_form(n->in[4], i);
    at = r == 1 ? n->in[1] : build_transpose(b, build_slice(b, n->in[1], 1, 0, r - 1), 2, axes);
    rows = build_take(b, n->in[4], n->in[0], 0);
    rows = rows ? build_mul(b, rows, of_rows(b, weights, rank)) : NULL;
    if (!at || !rows)
        return false;
    add->mode = "add";
    if (r == 1) { /* all are combined */
        sum = build_reduce(b, "sum", rows, 1, (int64_t[]){0}, false);
    } else {
        sum = build3(b, "scatter_nd",
                     build_zeros_of(b, expr_dtype(rows), (uint32_t)r - 2 + rank, dims), at, rows,
                     add);
    }
    if (how == SUM)
        return tflite_done(n, sum);
    if (how == SQRTN)
        weights = build_mul(b, weights, weights);
    total = r == 1 ? build_reduce(b, "sum", weights, 1, (int64_t[]){0}, false)
                   : build3(b, "scatter_nd",
                            build_zeros_of(b, expr_dtype(weights), (uint32_t)r - 1, dims), at,
                            weights, add);
    if (how == SQRTN)
        total = build1(b, "sqrt", total, NULL);
    if (!sum || !total)
        return false;
    total = build_where(b, build2(b, "equal", total, build_scalar(b, total, 0), NULL),
                        build_scalar(b, total, 1), total); /* nothing stays zeros */
    for (uint32_t i = (uint32_t)r - 1; i < (uint32_t)r - 2 + rank; i++)
        dims[i] = idx_const(b->c->arith, 1);
    return tflite_done(n,
                       build_div(b, sum, build_reshape_to(b, total, (uint32_t)r - 2 + rank, dims)));
}
