/* Cells that are chosen by where they are, and distances of rows. */
#include "frontends/pytorch/pytorch.h"

#include <math.h>
#include <string.h>

const Expr *pt_flat(const Build *b, const Expr *x)
{
    const Idx *cells = x ? type_cells(b->c, x->type) : NULL;

    return x ? build_reshape_to(b, x, 1, &cells) : NULL;
}

/* Cells by their numbers, as if all lay in one row; below 0 from the end. */
bool aten_take(PtNode *n)
{
    TakeAttrs  *a = ATTRS(&n->b, TakeAttrs);
    const Expr *x = pt_tensor(n, "self"), *at = x ? pt_tensor(n, "index") : NULL;

    a->axis = 0;
    a->mode = "wrap";
    return at && pt_done(n, build2(&n->b, "take", pt_flat(&n->b, x), at, a));
}

/* Cells of what lies in a row, by strides of their own. */
bool aten_as_strided(PtNode *n)
{
    const Build *b = &n->b;
    const Expr  *x = pt_tensor(n, "self");
    int64_t      offset = pt_int(n, "storage_offset", 0), cells = 1, *at, most;
    Ints         size, stride;

    if (!x || !pt_ints(n, "size", &size) || !pt_ints(n, "stride", &stride))
        return x && pt_error(n, E_IMPORT, "it has no size, or no strides");
    for (uint32_t i = 0; i < size.n; i++)
        if (size.at[i] < 0 || !checked_mul(cells, size.at[i], &cells) || cells > 1 << 24)
            return pt_error(n, E_UNSUPPORTED, "%lld cells or more", (long long)cells);
    if (size.n != stride.n || size.n > MAX_RANK)
        return pt_error(n, E_IMPORT, "%u sizes and %u strides", size.n, stride.n);
    at = NEW_ARRAY(b->c->arena, int64_t, (size_t)cells + 1);
    most = build_elems(b, x);
    for (int64_t i = 0; i < cells; i++) {
        int64_t rest = i;

        at[i] = offset;
        for (uint32_t k = size.n; k-- > 0; rest /= size.at[k])
            if (stride.at[k] < 0 || stride.at[k] > most)
                return pt_error(n, E_IMPORT, "a stride of %lld", (long long)stride.at[k]);
            else
                at[i] += rest % size.at[k] * stride.at[k];
        if (at[i] < 0 || at[i] >= most)
            return pt_error(n, E_IMPORT, "cell %lld of %s", (long long)at[i],
                            type_text(b->c, x->type));
    }
    x = build_take(b, pt_flat(b, x), build_i64s(b, (uint32_t)cells, at), 0);
    return pt_done(n, build_reshape(b, x, size.n, size.at));
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
    at = mask ? build_cast(b, pt_flat(b, mask), DT_I64) : NULL;
    at = build_by(b, "subtract", build1(b, "cumsum", at, scan), 1);
    source = build_take(b, pt_flat(b, source), at, 0);
    return pt_done(n, build_where(b, mask, build_reshape_to(b, source, dims.n, dims.at), x));
}

/* The p-norms of rows x - y. */
static const Expr *distance(const Build *b, const Expr *x, const Expr *y, double p)
{
    const Expr *d = build1(b, "abs", build_sub(b, x, y), NULL);
    int64_t     last;

    if (!d)
        return NULL;
    last = expr_rank(d) - 1;
    if (isinf(p))
        return build_reduce(b, "max", d, 1, &last, false);
    if (p != 1)
        d = p == 2 ? build_mul(b, d, d) : build_by(b, "power", d, p);
    d = build_reduce(b, "sum", d, 1, &last, false);
    return p == 1 ? d : p == 2 ? build1(b, "sqrt", d, NULL) : build_by(b, "power", d, 1 / p);
}

/* All distances of the rows of x1 to those of x2: the p-norm of their differences. */
bool aten_cdist(PtNode *n)
{
    const Build *b = &n->b;
    const Expr  *x = pt_tensor(n, "x1"), *y = x ? pt_tensor(n, "x2") : NULL;
    double       p = pt_float(n, "p", 2);
    uint32_t     rank;

    (void)pt_int(n, "compute_mode", 0);
    if (!y)
        return false;
    rank = expr_rank(x);
    if (rank < 2 || expr_rank(y) < 2 || !(p > 0))
        return pt_error(n, E_UNSUPPORTED, "distances of %s and %s by p = %g",
                        type_text(b->c, x->type), type_text(b->c, y->type), p);
    return pt_done(n, distance(b, build_expand_dims(b, x, rank - 1, 1),
                               build_expand_dims(b, y, expr_rank(y) - 2, 1), p));
}

/* .. of each two rows of one tensor */
bool aten_pdist(PtNode *n)
{
    const Build *b = &n->b;
    const Expr  *x = pt_tensor(n, "self");
    double       p = pt_float(n, "p", 2);
    int64_t      rows, count, k = 0, *first, *second;

    if (!x)
        return false;
    if (expr_rank(x) != 2 || !(p > 0) || (rows = build_dim(b, x, 0)) < 2 || rows > 4096)
        return pt_error(n, E_UNSUPPORTED, "distances of %s by p = %g", type_text(b->c, x->type), p);
    count = rows * (rows - 1) / 2;
    first = NEW_ARRAY(b->c->arena, int64_t, (size_t)count);
    second = NEW_ARRAY(b->c->arena, int64_t, (size_t)count);
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = i + 1; j < rows; j++, k++)
            first[k] = i, second[k] = j;
    return pt_done(n, distance(b, build_take(b, x, build_i64s(b, (uint32_t)count, first), 0),
                               build_take(b, x, build_i64s(b, (uint32_t)count, second), 0), p));
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
        return pt_for_training(n);
    return pt_done_at(n, 0, x) && pt_done_at(n, 1,
                                             build_broadcast_to(&n->b, expr_scalar(n->b.c, t, 1),
                                                                expr_rank(x), expr_forms(x).at));
}
