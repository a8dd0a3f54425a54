/* Cells that are chosen by where they are, and distances of rows. */
#include "frontends/pytorch/pytorch.h"

#include <math.h>
#include <string.h>

static const Expr *flat(const Build *b, const Expr *x)
{
    const Idx *cells = x ? type_cells(b->c, x->type) : NULL;

    return x ? build_reshape_to(b, x, 1, &cells) : NULL;
}

/* Cells [.., i, i + offset] of two dimensions, which become the last one. */
bool aten_diagonal(PtNode *n)
{
    const Build *b = &n->b;
    const Expr  *x = pt_tensor(n, "self");
    int64_t      offset = pt_int(n, "offset", 0), axes[MAX_RANK], rows, columns, cells, *at;
    const Idx   *dims[MAX_RANK];
    uint32_t     first, second, rank, d = 0;

    if (!x || !pt_axis(n, pt_int(n, "dim1", 0), expr_rank(x), &first) ||
        !pt_axis(n, pt_int(n, "dim2", 1), expr_rank(x), &second))
        return false;
    rank = expr_rank(x);
    if (rank < 2 || first == second)
        return pt_error(n, E_IMPORT, "a diagonal of %s", type_text(b->c, x->type));
    for (uint32_t i = 0; i < rank; i++)
        if (i != first && i != second) {
            dims[d] = expr_form(x, i);
            axes[d++] = i;
        }
    axes[rank - 2] = first;
    axes[rank - 1] = second;
    rows = build_dim(b, x, first);
    columns = build_dim(b, x, second);
    if (offset > columns || offset < -rows)
        return pt_error(n, E_IMPORT, "diagonal %lld of %s", (long long)offset,
                        type_text(b->c, x->type));
    cells = offset < 0 ? rows + offset : rows;
    cells =
        cells < columns - (offset > 0 ? offset : 0) ? cells : columns - (offset > 0 ? offset : 0);
    at = NEW_ARRAY(b->c->arena, int64_t, (size_t)cells + 1);
    for (int64_t i = 0; i < cells; i++)
        at[i] = (i - (offset < 0 ? offset : 0)) * columns + i + (offset > 0 ? offset : 0);
    dims[d] = idx_mul(b->c->arith, expr_form(x, first), expr_form(x, second));
    x = build_reshape_to(b, build_transpose(b, x, rank, axes), d + 1, dims);
    return pt_done(n, build_take(b, x, build_i64s(b, (uint32_t)cells, at), d));
}

/* Where the mask is set, the next cell of the source. */
bool aten_masked_scatter(PtNode *n)
{
    const Build *b = &n->b;
    const Expr  *x = pt_tensor(n, "self"), *mask = x ? pt_tensor(n, "mask") : NULL;
    const Expr  *source = mask ? pt_tensor(n, "source") : NULL, *at;
    ScanAttrs   *scan = ATTRS(b, ScanAttrs);
    Dims         dims;

    if (!source)
        return false;
    if (!dtype_is_bool(expr_dtype(mask)) || !dtype_eq(expr_dtype(source), expr_dtype(x)) ||
        expr_empty(source))
        return pt_error(n, E_IMPORT, "cells of %s where %s says so", type_text(b->c, source->type),
                        type_text(b->c, mask->type));
    dims = expr_forms(x);
    mask = build_broadcast_to(b, mask, dims.n, dims.at);
    at = mask ? build_cast(b, flat(b, mask), DT_I64) : NULL;
    at = build_by(b, "subtract", build1(b, "cumsum", at, scan), 1);
    source = build_take(b, flat(b, source), at, 0);
    return pt_done(n, build_where(b, mask, build_reshape_to(b, source, dims.n, dims.at), x));
}

/* All distances of the rows of x1 to those of x2: the p-norm of their differences. */
bool aten_cdist(PtNode *n)
{
    const Build *b = &n->b;
    const Expr  *x = pt_tensor(n, "x1"), *y = x ? pt_tensor(n, "x2") : NULL, *d;
    double       p = pt_float(n, "p", 2);
    uint32_t     rank;

    (void)pt_int(n, "compute_mode", 0);
    if (!y)
        return false;
    rank = expr_rank(x);
    if (rank < 2 || expr_rank(y) < 2 || !(p > 0))
        return pt_error(n, E_UNSUPPORTED, "distances of %s and %s by p = %g",
                        type_text(b->c, x->type), type_text(b->c, y->type), p);
    d = build_sub(b, build_expand_dims(b, x, rank - 1, 1),
                  build_expand_dims(b, y, expr_rank(y) - 2, 1));
    d = build1(b, "abs", d, NULL);
    if (!d)
        return false;
    rank = expr_rank(d);
    if (isinf(p))
        return pt_done(n, build_reduce(b, "max", d, 1, (int64_t[]){rank - 1}, false));
    if (p != 1)
        d = p == 2 ? build_mul(b, d, d) : build_by(b, "power", d, p);
    d = build_reduce(b, "sum", d, 1, (int64_t[]){rank - 1}, false);
    return pt_done(n, p == 1   ? d
                      : p == 2 ? build1(b, "sqrt", d, NULL)
                               : build_by(b, "power", d, 1 / p));
}

/* Without training nothing is dropped; the mask says that all is kept. */
bool aten_native_dropout(PtNode *n)
{
    const Expr *x = pt_tensor(n, "input");
    DType       t = DT_BOOL;

    (void)pt_float(n, "p", 0);
    if (!x)
        return false;
    if (pt_bool(n, "train", false) && pt_float(n, "p", 0) != 0)
        return pt_error(n, E_UNSUPPORTED, "it is for training");
    return pt_done_at(n, 0, x) && pt_done_at(n, 1,
                                             build_broadcast_to(&n->b, expr_scalar(n->b.c, t, 1),
                                                                expr_rank(x), expr_forms(x).at));
}
