/* Rows and cells that are found by positions: segments, sequences, diagonals; ranges. */
#include "frontends/calls.h"

#include <math.h>
#include <string.h>

/* Positions [.., M] as Relay has them, [M, ..]. */
const Expr *build_positions(const Build *b, const Expr *x)
{
    int64_t  axes[MAX_RANK];
    uint32_t rank = expr_rank(x);

    if (rank == 0)
        return build_error(b, E_IMPORT, "positions without a dimension");
    axes[0] = rank - 1;
    for (uint32_t i = 1; i < rank; i++)
        axes[i] = i - 1;
    return build_transpose(b, x, rank, axes);
}

const Expr *build_gathered(const Build *b, const Expr *x, const Expr *at, uint32_t axis,
                           int64_t batch)
{
    TakeAttrs *a = ATTRS(b, TakeAttrs);

    a->axis = axis;
    a->batch_dims = batch;
    a->mode = at && at->kind == EXPR_CONST ? "clip" : "wrap";
    return build2(b, "take", x, at, a);
}

const Expr *build_filled(const Build *b, const Expr *like, double v, Dims dims)
{
    return build_broadcast_to(b, build_scalar(b, like, v), dims.n, dims.at);
}

/* One cell for all, or one for each position; at: a number, a list of them, or of lists. */
const Expr *build_sparse_to_dense(const Build *b, const Expr *at, Dims dims, const Expr *cells,
                                  const Expr *rest)
{
    const Idx  *count, *one = idx_const(b->c->arith, 1);
    const Expr *data;

    if (!build_check_shape(b, dims))
        return NULL;
    if (dims.n < 1)
        return build_error(b, E_UNSUPPORTED, "a shape of %u dimensions", dims.n);
    if (expr_rank(at) == 0)
        at = build_reshape(b, at, 1, (int64_t[]){1});
    count = expr_form(at, 0);
    if (expr_rank(at) == 1)
        at = build_reshape_to(b, at, 2, (const Idx *[]){count, one});
    data = build_broadcast_to(b, rest, dims.n, dims.at);
    cells = build_broadcast_to(b, cells, 1, &count);
    at = at ? build_positions(b, at) : NULL;
    return build3(b, "scatter_nd", data, at, cells, NULL);
}

/* Rows of data go into the segments that their ids name; of segments without any the neutral value.
 */
const Expr *build_segments(const Build *b, const char *how, const Expr *x, const Expr *ids,
                           int64_t segments)
{
    ScatterNdAttrs *a = ATTRS(b, ScatterNdAttrs);
    const Idx      *dims[MAX_RANK + 1];
    uint32_t        rank = expr_rank(x), over = expr_rank(ids), k = 0;
    DType           t = expr_dtype(x);
    double          v = 0;

    if (over > rank || segments < 1 || segments > INT32_MAX)
        return build_error(b, E_IMPORT, "%lld segments, ids of %u dimensions", (long long)segments,
                           over);
    dims[k++] = idx_const(b->c->arith, segments);
    for (uint32_t i = over; i < rank; i++)
        dims[k++] = expr_form(x, i);
    if (!strcmp(how, "mul"))
        v = 1;
    else if (!strcmp(how, "max"))
        v = dtype_is_float(t) ? -(t.bits == 64 ? 1.7976931348623157e308 : 3.40282346638528860e38)
                              : dtype_min(t);
    else if (!strcmp(how, "min"))
        v = dtype_is_float(t) ? (t.bits == 64 ? 1.7976931348623157e308 : 3.40282346638528860e38)
                              : dtype_max(t);
    a->mode = how;
    return build3(b, "scatter_nd", build_filled(b, x, v, (Dims){k, dims}),
                  build_expand_dims(b, ids, 0, 1), x, a);
}

/* The first cells of each row, as many as its length, come in the opposite order: all of them,
 * where that is how long rows are. */
const Expr *build_reverse_rows(const Build *b, const Expr *x, const Expr *lengths, uint32_t along,
                               uint32_t batch)
{
    GatherAttrs *a = ATTRS(b, GatherAttrs);
    const Expr  *i, *count, *known;
    const Idx   *dims[MAX_RANK], *one = idx_const(b->c->arith, 1);
    uint32_t     rank = expr_rank(x);
    int64_t      all;
    double       length;

    if (along == batch || expr_form(lengths, 0) != expr_form(x, batch))
        return build_error(b, E_IMPORT, "lengths are %s", type_text(b->c, lengths->type));
    known = build_fold(b, lengths);
    if (known && expr_const_f(known, &length) && idx_is_const(expr_form(x, along), &all) &&
        length == (double)all) {
        ReverseAttrs *r = ATTRS(b, ReverseAttrs);

        r->axis = along;
        return build1(b, "reverse", x, r);
    }
    i = build_along(b, build_arange(b, expr_form(x, along), DT_I64), rank, along);
    for (uint32_t k = 0; k < rank; k++)
        dims[k] = k == batch ? expr_form(x, batch) : one;
    count = build_reshape_to(b, build_cast(b, lengths, DT_I64), rank, dims);
    i = build_where(b, build_less(b, i, count), build_by(b, "subtract", build_sub(b, count, i), 1),
                    i);
    a->axis = along;
    return build2(b, "gather", x, build_broadcast_to(b, i, rank, expr_forms(x).at), a);
}

/* Which cells of [.., rows, columns] are on the diagonal. */
static const Expr *diagonal(const Build *b, const Idx *rows, const Idx *columns)
{
    const Expr *i = build_arange(b, rows, DT_I64), *j = build_arange(b, columns, DT_I64);

    return build2(b, "equal", build_expand_dims(b, i, 1, 1), j, NULL);
}

const Expr *build_matrix_diag(const Build *b, const Expr *x)
{
    uint32_t   rank = expr_rank(x);
    const Idx *k;

    if (rank < 1 || rank >= MAX_RANK)
        return build_error(b, E_IMPORT, "diagonals of %u dimensions", rank);
    k = expr_form(x, rank - 1);
    return build_where(b, diagonal(b, k, k), build_expand_dims(b, x, rank, 1),
                       build_scalar(b, x, 0));
}

const Expr *build_matrix_set_diag(const Build *b, const Expr *x, const Expr *d)
{
    uint32_t   rank = expr_rank(x);
    const Idx *rows, *columns;

    if (rank < 2 || expr_rank(d) != rank - 1)
        return build_error(b, E_IMPORT, "diagonals of %u dimensions in %u", expr_rank(d), rank);
    rows = expr_form(x, rank - 2);
    columns = expr_form(x, rank - 1);
    if (expr_form(d, rank - 2) != (rows->hi < columns->hi ? rows : columns))
        return build_error(b, E_IMPORT, "a diagonal of %s cells in %s",
                           dim_text(b->c, expr_form(d, rank - 2)), type_text(b->c, x->type));
    d = build_expand_dims(b, d, rows->hi < columns->hi ? rank - 1 : rank - 2, 1);
    return build_where(b, diagonal(b, rows, columns), d, x);
}

const Expr *build_scan(const Build *b, const char *op, const Expr *x, int64_t axis, bool exclusive,
                       bool back)
{
    ScanAttrs *a = ATTRS(b, ScanAttrs);

    a->axis = axis;
    a->exclusive = exclusive;
    x = build1(b, op, build_reverse(b, x, back, &axis), a);
    return build_reverse(b, x, back, &axis);
}

#define MOST_CELLS ((double)(1 << 28))

const Expr *build_range(const Build *b, DType t, double first, double end, double step)
{
    double   cells;
    int64_t  count;
    uint8_t *at;

    if (step == 0)
        return build_error(b, E_IMPORT, "a step of 0");
    cells = ceil((end - first) / step);
    if (!(cells >= 1))
        cells = 0;
    if (cells > MOST_CELLS)
        return build_error(b, E_IMPORT, "%g cells", cells);
    count = (int64_t)cells;
    at = arena_array(b->c->arena, (size_t)count + 1, dtype_bytes(t));
    for (int64_t i = 0; i < count; i++) {
        uint8_t *cell = at + (size_t)i * dtype_bytes(t);

        if (dtype_is_float(t))
            dtype_put_f(t, cell, first + (double)i * step);
        else
            dtype_put_i(t, cell, (int64_t)(first + (double)i * step));
    }
    return build_const(b, t, 1, &count, at);
}

const Idx *build_range_cells(Arith *A, const Idx *first, const Idx *end, int64_t step)
{
    const Idx *far = step > 0 ? idx_sub(A, end, first) : idx_sub(A, first, end);
    int64_t    by = step > 0 ? step : -step;

    return idx_max(A, idx_divc(A, idx_addc(A, far, by - 1), by), idx_const(A, 0));
}

/* A range from 0 by 1 of so many cells, scaled and shifted. */
const Expr *build_range_forms(const Build *b, const Expr *first, const Expr *end, const Expr *step)
{
    const Expr  *in[] = {first, end, step}, *x;
    ArangeAttrs *a = ATTRS(b, ArangeAttrs);
    const Idx   *at[3], *cells;
    int64_t      by;
    Dims         v;

    for (uint32_t i = 0; i < 3; i++) {
        if (!build_forms(b, in[i], &v) || v.n != 1)
            return build_error(b, E_UNSUPPORTED,
                               "its ends have to be known when it is compiled, or to be whole "
                               "numbers that are computed from dimensions");
        at[i] = v.at[0];
    }
    if (!idx_is_const(at[2], &by) || by == 0)
        return build_error(b, E_UNSUPPORTED, "delta is %s, not a number", dim_text(b->c, at[2]));
    cells = build_range_cells(b->c->arith, at[0], at[1], by);
    if ((double)idx_usual(cells) > MOST_CELLS)
        return build_error(b, E_DIM, "the range has %s numbers", dim_text(b->c, cells));
    a->cells = dims_dup(b->c, &cells, 1);
    a->dtype = expr_dtype(first);
    a->step = (double)by;
    x = build_call(b, "arange", 0, NULL, a);
    return build2(b, "add", x, build_reshape(b, first, 0, NULL), NULL);
}

const Expr *build_unravel_index(const Build *b, const Expr *x, Ints dims)
{
    const Expr *at[MAX_RANK];
    int64_t     stride = 1;

    if (expr_rank(x) >= MAX_RANK || dims.n < 1 || dims.n > MAX_RANK)
        return build_error(b, E_IMPORT, "numbers of %u dimensions, a shape of %u", expr_rank(x),
                           dims.n);
    for (uint32_t i = dims.n; i-- > 0;) {
        if (dims.at[i] < 1 || !checked_mul(stride, dims.at[i], &stride) || stride > INT32_MAX)
            return build_error(b, E_IMPORT, "dimension %u is %lld", i, (long long)dims.at[i]);
        at[i] = build_by(b, "floor_divide", x, (double)(stride / dims.at[i]));
        at[i] = build_by(b, "floor_mod", at[i], (double)dims.at[i]);
        at[i] = build_expand_dims(b, at[i], 0, 1);
    }
    return build_concat(b, dims.n, at, 0);
}
