/* Sparse tensors: positions [n, rank], values [n], a shape. */
#include "frontends/tensorflow/tensorflow.h"

#include <string.h>

/* Column i of positions, [n]. */
static const Expr *column(const Build *b, const Expr *at, int64_t i)
{
    const Expr *x = build_slice(b, at, 1, i, i + 1);

    return x ? build_reshape_to(b, x, 1, expr_forms(x).at) : NULL;
}

/* How far a step along each dimension is; false with an error. */
static bool strides_of(TfNode *n, Ints dims, int64_t *strides, int64_t *cells)
{
    *cells = 1;
    for (uint32_t i = dims.n; i-- > 0;) {
        strides[i] = *cells;
        if (dims.at[i] < 0 || !checked_mul(*cells, dims.at[i], cells))
            return tf_error(n, E_IMPORT, "dimension %u of the shape is %lld", i,
                            (long long)dims.at[i]);
    }
    return true;
}

/* The new shape, whose -1 is what is left. */
static bool new_shape(TfNode *n, Ints dims, int64_t cells, int64_t *out)
{
    int64_t  known = 1;
    uint32_t left = UINT32_MAX;

    for (uint32_t i = 0; i < dims.n; i++) {
        out[i] = dims.at[i];
        if (dims.at[i] == -1 && left == UINT32_MAX)
            left = i;
        else if (dims.at[i] < 1 || !checked_mul(known, dims.at[i], &known))
            return tf_error(n, E_IMPORT, "dimension %u of the shape is %lld", i,
                            (long long)dims.at[i]);
    }
    if (left != UINT32_MAX)
        out[left] = cells / known;
    return (left == UINT32_MAX ? known == cells : cells % known == 0) ||
           tf_error(n, E_IMPORT, "%lld cells do not fit the shape", (long long)cells);
}

/* Inputs: positions, their shape, another shape of as many cells. */
bool tf_sparse_reshape(TfNode *n)
{
    const Build *b = &n->b;
    int64_t      from[MAX_RANK], to[MAX_RANK], dims[MAX_RANK], cells, count;
    const Expr  *flat = NULL, *at[MAX_RANK];
    Ints         was, is;

    if (!tf_rank(n, 0, 2, 2) || !tf_ints(n, 1, &was) || !tf_ints(n, 2, &is))
        return false;
    if (was.n < 1 || was.n > MAX_RANK || is.n < 1 || is.n > MAX_RANK ||
        build_dim(b, n->in[0], 1) != was.n)
        return tf_error(n, E_IMPORT, "positions are %s, of %u dimensions",
                        type_text(b->c, n->in[0]->type), was.n);
    if (!strides_of(n, was, from, &cells) || !new_shape(n, is, cells, dims) ||
        !strides_of(n, (Ints){is.n, dims}, to, &cells))
        return false;
    for (uint32_t i = 0; i < was.n; i++) {
        const Expr *x = build_by(b, "multiply", column(b, n->in[0], i), (double)from[i]);

        flat = flat ? build_add(b, flat, x) : x;
    }
    for (uint32_t i = 0; i < is.n; i++) {
        at[i] = build_by(b, "floor_divide", flat, (double)to[i]);
        at[i] = build_expand_dims(b, build_by(b, "floor_mod", at[i], (double)dims[i]), 1, 1);
    }
    count = is.n;
    return tf_put(n, 1, build_const(b, DT_I64, 1, &count, dims)) &&
           tf_done(n, build_concat(b, is.n, at, 1));
}

/* Inputs: rows, which of them, the segment of each, perhaps how many segments: their sum, mean, or
 * sum by the root of how many there are. */
bool tf_sparse_segment(TfNode *n)
{
    const Build *b = &n->b;
    const char  *name = n->row->name;
    const Expr  *rows, *ids = n->in[2], *y, *count;
    int64_t      segments = 0;
    Ints         v;

    if (!tf_rank(n, 0, 1, MAX_RANK) || !tf_rank(n, 1, 1, 1) || !tf_rank(n, 2, 1, 1))
        return false;
    if (n->nin > 3) {
        if (!tf_number(n, 3, &segments))
            return false;
    } else if (!tf_ints(n, 2, &v)) {
        return false;
    } else {
        for (uint32_t i = 0; i < v.n; i++)
            segments = v.at[i] >= segments ? v.at[i] + 1 : segments;
    }
    if (!(rows = build_take(b, n->in[0], n->in[1], 0)))
        return false;
    y = build_segments(b, "add", rows, ids, segments);
    if (!y || str_starts(name, "SparseSegmentSum"))
        return tf_done(n, y);
    count = build_filled(b, build_scalar(b, rows, 0), 1, expr_forms(ids));
    count = build_segments(b, "add", count, ids, segments);
    count = build_by(b, "maximum", count, 1);
    if (str_starts(name, "SparseSegmentSqrtN"))
        count = build1(b, "sqrt", count, NULL);
    return tf_done(n, build_div(b, y, build_along(b, count, expr_rank(y), 0)));
}

/* Inputs: positions, values, their shape, a dense tensor. */
bool tf_sparse_dense_add(TfNode *n)
{
    ScatterNdAttrs *a = ATTRS(&n->b, ScatterNdAttrs);
    const Expr     *at = build_positions(&n->b, n->in[0]);

    a->mode = "add";
    return at && tf_done(n, build3(&n->b, "scatter_nd", n->in[3], at, n->in[1], a));
}

/* Inputs: positions, values, their shape [2], a dense matrix. */
bool tf_sparse_dense_matmul(TfNode *n)
{
    const Build    *b = &n->b;
    ScatterNdAttrs *a = ATTRS(b, ScatterNdAttrs);
    MatmulAttrs    *m = ATTRS(b, MatmulAttrs);
    const Expr     *at = build_positions(b, n->in[0]), *dense;
    Dims            dims;

    if (!at || !tf_forms(n, 2, &dims) || !build_check_shape(b, dims) || !tf_rank(n, 3, 2, 2))
        return false;
    if (dims.n != 2)
        return tf_error(n, E_IMPORT, "a matrix of %u dimensions", dims.n);
    a->mode = "add";
    m->transpose_a = tf_int(n, "adjoint_a");
    m->transpose_b = tf_int(n, "adjoint_b");
    dense = build3(b, "scatter_nd", build_filled(b, n->in[1], 0, dims), at, n->in[1], a);
    return tf_done(n, build2(b, "nn.matmul", dense, n->in[3], m));
}

/* ---- rows without a value --------------------------------------------------------------------------- */

static const Expr *running_sum(const Build *b, const Expr *x)
{
    ScanAttrs *a = ATTRS(b, ScanAttrs);

    a->exclusive = true;
    return build1(b, "cumsum", x, a);
}

/* Numbers 0 .. n-1 by the order of rows: those of one row in the order in which they come. */
static const Expr *ranks(const Build *b, const Expr *rows)
{
    SortAttrs            *sort = ATTRS(b, SortAttrs);
    ScatterElementsAttrs *put = ATTRS(b, ScatterElementsAttrs);
    const Expr           *order;

    sort->axis = 0;
    sort->dtype = DT_I64;
    order = build1(b, "argsort", rows, sort);
    return build3(b, "scatter_elements", build_filled(b, order, 0, expr_forms(rows)), order,
                  build_arange(b, expr_form(rows, 0), DT_I64), put);
}

/* x with those rows put in at positions [n]. */
static const Expr *put_rows(const Build *b, const Expr *x, const Expr *at, const Expr *rows)
{
    return build3(b, "scatter_nd", x, build_expand_dims(b, at, 0, 1), rows, NULL);
}

/* Inputs: positions, values, their shape, what stands in rows without a value: these get one in
 * their first column.  Outputs: positions, values, which rows had none, where each value is now. */
bool tf_sparse_fill_empty_rows(TfNode *n)
{
    ScatterElementsAttrs *add = ATTRS(&n->b, ScatterElementsAttrs);
    const Build          *b = &n->b;
    Arith                *A = b->c->arith;
    const Expr           *row, *count, *start, *place, *at, *values, *total, *first[MAX_RANK];
    const Idx            *rows, *room, *k, *zero = idx_const(A, 0), *dims[2];
    int64_t               rank;
    Dims                  shape;

    if (!tf_rank(n, 0, 2, 2) || !tf_rank(n, 1, 1, 1) || !tf_forms(n, 2, &shape) ||
        !tf_rank(n, 3, 0, 0))
        return false;
    rank = build_dim(b, n->in[0], 1);
    if (rank != shape.n || rank < 1 || rank > MAX_RANK || shape.at[0]->lo < 1)
        return tf_error(n, E_IMPORT, "positions are %s, of %u dimensions",
                        type_text(b->c, n->in[0]->type), shape.n);
    rows = shape.at[0];
    room = idx_add(A, expr_form(n->in[0], 0), rows);
    row = build_cast(b, column(b, n->in[0], 0), DT_I64);
    count = build_filled(b, row, 1, expr_forms(row));
    add->reduction = "add";
    count =
        build3(b, "scatter_elements", build_filled(b, row, 0, (Dims){1, &rows}), row, count, add);
    start = running_sum(b, build_by(b, "maximum", count, 1));
    place = build_sub(b, ranks(b, row), build_take(b, running_sum(b, count), row, 0));
    place = build_add(b, place, build_take(b, start, row, 0));
    if (!place)
        return false;
    for (int64_t i = 0; i < rank; i++)
        first[i] = build_expand_dims(
            b, i == 0 ? build_arange(b, rows, DT_I64) : build_zeros_of(b, DT_I64, 1, &rows), 1, 1);
    dims[0] = room, dims[1] = expr_form(n->in[0], 1);
    at = put_rows(b, build_zeros_of(b, DT_I64, 2, dims), start,
                  build_concat(b, (uint32_t)rank, first, 1));
    at = put_rows(b, at, place, build_cast(b, n->in[0], DT_I64));
    values = put_rows(b, build_broadcast_to(b, n->in[3], 1, &room), place, n->in[1]);
    total = build_reduce(b, "sum", build_by(b, "maximum", count, 1), 1, (int64_t[]){0}, true);
    if (!at || !values || !total || !(k = tf_bound_dim(n, 0, total, room)))
        return false;
    return tf_put(n, 3, place) &&
           tf_put(n, 2, build2(b, "equal", count, build_scalar(b, count, 0), NULL)) &&
           tf_put(n, 1, build_slice_to(b, values, 0, zero, k)) &&
           tf_done(n, build_slice_to(b, at, 0, zero, k));
}
