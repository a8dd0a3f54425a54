/* What takes its shape from another tensor or from constants, sums along an axis, sequences. */
#include "frontends/tvm/tvm.h"

#include <math.h>
#include <string.h>

enum { MAX_PLACES = 1 << 25 }; /* of windows along one dimension */

/* ---- the same tensor -------------------------------------------------------------------------------- */

/* Marks for TVM's passes, which say nothing about values. */
const Expr *tv_same(TvNode *n)
{
    return n->in[0];
}

/* ---- shapes of other tensors -------------------------------------------------------------------------- */

const Expr *tv_broadcast_like(TvNode *n)
{
    return build_broadcast_to(&n->b, n->in[0], expr_rank(n->in[1]), expr_forms(n->in[1]).at);
}

const Expr *tv_full_like(TvNode *n)
{
    const Expr *v = build_cast(&n->b, n->in[1], expr_dtype(n->in[0]));

    return build_broadcast_to(&n->b, v, expr_rank(n->in[0]), expr_forms(n->in[0]).at);
}

/* Dimensions lhs_begin.. of the first become rhs_begin.. of the second. */
const Expr *tv_reshape_like(TvNode *n)
{
    const Build *b = &n->b;
    int64_t      rank[2] = {expr_rank(n->in[0]), expr_rank(n->in[1])};
    int64_t      from[2] = {tv_int(n, "lhs_begin", 0), tv_int(n, "rhs_begin", 0)};
    int64_t      to[2] = {tv_int(n, "lhs_end", rank[0]), tv_int(n, "rhs_end", rank[1])};
    const Idx   *dims[2 * MAX_RANK];
    uint32_t     count = 0;

    for (uint32_t i = 0; i < 2; i++) {
        from[i] += from[i] < 0 ? rank[i] : 0;
        to[i] += to[i] < 0 ? rank[i] : 0;
        if (from[i] < 0 || to[i] < from[i] || to[i] > rank[i])
            return tv_error(n, E_IMPORT, "dimensions %lld to %lld of %lld", (long long)from[i],
                            (long long)to[i], (long long)rank[i]);
    }
    for (int64_t i = 0; i < from[0]; i++)
        dims[count++] = expr_form(n->in[0], (uint32_t)i);
    for (int64_t i = from[1]; i < to[1]; i++)
        dims[count++] = expr_form(n->in[1], (uint32_t)i);
    for (int64_t i = to[0]; i < rank[0]; i++)
        dims[count++] = expr_form(n->in[0], (uint32_t)i);
    return count <= MAX_RANK ? build_reshape_to(b, n->in[0], count, dims)
                             : tv_error(n, E_UNSUPPORTED, "a result of %u dimensions", count);
}

/* The first cells along the axes, or along all. */
const Expr *tv_slice_like(TvNode *n)
{
    const Build *b = &n->b;
    const Expr  *x = n->in[0], *like = n->in[1];
    uint32_t     rank = expr_rank(x), count = 0;
    int64_t      at[MAX_RANK];
    Ints         axes;

    if (!tv_ints(n, "axes", &axes) || (axes.n && !build_axes(b, axes, rank, 0, &count, at)))
        return NULL;
    for (; !axes.n && count < rank && count < expr_rank(like); count++)
        at[count] = count;
    for (uint32_t i = 0; x && i < count; i++) {
        if (at[i] >= expr_rank(like) ||
            build_dim(b, like, (uint32_t)at[i]) > build_dim(b, x, (uint32_t)at[i]))
            return tv_error(n, E_IMPORT, "%s is no part of %s", type_text(b->c, like->type),
                            type_text(b->c, n->in[0]->type));
        x = build_slice(b, x, at[i], 0, build_dim(b, like, (uint32_t)at[i]));
    }
    return x;
}

const Expr *tv_shape_of(TvNode *n)
{
    DType       t = DT_I32;
    Dims        d = expr_forms(n->in[0]);
    const Idx  *cells = type_cells(n->b.c, n->in[0]->type);
    bool        size = !strcmp(n->row->name, "ndarray_size");
    const Type *type;

    if (!tv_type(n, "dtype", &t))
        return NULL;
    type = type_tensor_i64(n->b.c, t, !size, (int64_t[]){d.n});
    return build_values(&n->b, type, size ? (Dims){1, &cells} : d);
}

/* ---- made from constants ------------------------------------------------------------------------------ */

const Expr *tv_arange(TvNode *n)
{
    double v[3];
    DType  t = DT_F32;

    for (uint32_t i = 0; i < 3; i++)
        if (!expr_const_f(n->in[i], &v[i]))
            return tv_error(n, E_UNSUPPORTED, "operand %u is no constant number", i);
    if (!tv_type(n, "dtype", &t))
        return NULL;
    if (!(fabs(v[2]) > 0) || !(fabs((v[1] - v[0]) / v[2]) <= (double)MAX_ELEMS))
        return tv_error(n, E_IMPORT, "from %g to %g by %g", v[0], v[1], v[2]);
    return build_range(&n->b, t, v[0], v[1], v[2]);
}

/* Each vector along a dimension of its own, and constant along the others; "xy": the first two
 * change places. */
const Expr *tv_meshgrid(TvNode *n)
{
    const Build *b = &n->b;
    uint32_t     count = n->in[0]->type->n;
    bool         swap = count > 1 && !strcmp(tv_text(n, "indexing", "ij"), "xy");
    const Idx   *dims[MAX_RANK];
    const Expr **out = NEW_ARRAY(b->c->arena, const Expr *, count);

    if (count > MAX_RANK)
        return tv_error(n, E_UNSUPPORTED, "%u vectors", count);
    for (uint32_t i = 0; i < count; i++) {
        if (!(out[i] = build_proj(b, n->in[0], i)))
            return NULL;
        if (expr_rank(out[i]) > 1)
            return tv_error(n, E_IMPORT, "operand %u is no vector", i);
        dims[swap && i < 2 ? 1 - i : i] = type_cells(b->c, out[i]->type);
    }
    for (uint32_t i = 0; i < count; i++) {
        const Idx *own[MAX_RANK];
        uint32_t   at = swap && i < 2 ? 1 - i : i;

        for (uint32_t k = 0; k < count; k++)
            own[k] = k == at ? dims[k] : idx_const(b->c->arith, 1);
        out[i] = build_broadcast_to(b, build_reshape_to(b, out[i], count, own), count, dims);
        if (!out[i])
            return NULL;
    }
    return expr_tuple(b->c, count, out, b->loc);
}

/* Where each position comes to lie. */
const Expr *tv_invert_permutation(TvNode *n)
{
    const Build *b = &n->b;
    const Expr  *x = n->in[0], *cells;

    if (expr_rank(x) != 1)
        return tv_error(n, E_IMPORT, "data %s", type_text(b->c, x->type));
    cells = build_arange(b, expr_form(x, 0), expr_dtype(x));
    return build3(b, "scatter_nd", cells, build_expand_dims(b, build_cast(b, x, DT_I64), 0, 1),
                  cells, NULL);
}

const Expr *tv_unravel_index(TvNode *n)
{
    Ints        dims;
    const Expr *y;

    if (!expr_ints(n->b.c, n->in[1], &dims))
        return tv_error(n, E_UNSUPPORTED, "the shape is no constant");
    y = build_unravel_index(&n->b, build_cast(&n->b, n->in[0], DT_I64), dims);
    return y ? build_cast(&n->b, y, expr_dtype(n->in[0])) : NULL;
}

/* positions, cells, what the others are */
const Expr *tv_sparse_to_dense(TvNode *n)
{
    const Build *b = &n->b;
    Ints         v;

    if (!tv_ints(n, "output_shape", &v))
        return NULL;
    return build_sparse_to_dense(b, build_cast(b, n->in[0], DT_I64), tv_dims(n, v), n->in[1],
                                 n->in[2]);
}

/* ---- along an axis ------------------------------------------------------------------------------------ */

/* Without an axis, over all cells in a row. */
const Expr *tv_scan(TvNode *n)
{
    const Build *b = &n->b;
    const Expr  *x = n->in[0];
    DType        t = expr_dtype(x);
    bool         exclusive = tv_bool(n, "exclusive", false);

    if (!tv_type(n, "dtype", &t))
        return NULL;
    if (!tv_attr(n, "axis")) {
        const Idx *cells = type_cells(b->c, x->type);

        x = build_reshape_to(b, x, 1, &cells);
    }
    return build_scan(b, n->row->relay, build_cast(b, x, t), tv_int(n, "axis", 0), exclusive,
                      false);
}

/* data, lengths */
const Expr *tv_reverse_sequence(TvNode *n)
{
    uint32_t along, batch, rank = expr_rank(n->in[0]);

    return build_axis(&n->b, tv_int(n, "seq_axis", 1), rank, 0, &along) &&
                   build_axis(&n->b, tv_int(n, "batch_axis", 0), rank, 0, &batch)
               ? build_reverse_rows(&n->b, n->in[0], n->in[1], along, batch)
               : NULL;
}

/* [length, batch, ..], or [batch, length, ..] for axis 1: cells behind the length become a value.
 */
const Expr *tv_sequence_mask(TvNode *n)
{
    const Build *b = &n->b;
    const Expr  *x = n->in[0], *at, *inside;
    int64_t      axis = tv_int(n, "axis", 0), dims[MAX_RANK];

    if ((axis != 0 && axis != 1) || expr_rank(x) < 2 || expr_rank(n->in[1]) != 1)
        return tv_error(n, E_IMPORT, "data %s along axis %lld", type_text(b->c, x->type),
                        (long long)axis);
    for (uint32_t i = 0; i < expr_rank(x); i++)
        dims[i] = 1;
    dims[axis] = build_dim(b, x, (uint32_t)axis);
    at =
        build_reshape(b, build_arange(b, expr_form(x, (uint32_t)axis), DT_I64), expr_rank(x), dims);
    inside = build_less(
        b, at, build_along(b, build_cast(b, n->in[1], DT_I64), expr_rank(x), (uint32_t)(1 - axis)));
    return build_where(b, inside, x, build_scalar(b, x, tv_float(n, "mask_value", 0)));
}

/* Windows of the dimensions from the axis on: where they begin, then what they hold. */
const Expr *tv_sliding_window(TvNode *n)
{
    const Build *b = &n->b;
    const Expr  *x = n->in[0];
    uint32_t     rank = expr_rank(x), axis;
    Ints         shape, strides;

    if (!tv_ints(n, "window_shape", &shape) || !tv_ints(n, "strides", &strides) ||
        !build_axis(b, tv_int(n, "axis", 0), rank, 0, &axis))
        return NULL;
    if (shape.n != rank - axis || strides.n != shape.n || rank + shape.n > MAX_RANK)
        return tv_error(n, E_IMPORT, "windows of %u dimensions, %u strides", shape.n, strides.n);
    for (uint32_t i = 0; x && i < shape.n; i++) {
        int64_t  cells = build_dim(b, x, axis + i), size = shape.at[i], step = strides.at[i], count;
        int64_t *at;

        if (size < 1 || step < 1 || size > cells || size > MAX_PLACES / cells)
            return tv_error(n, E_IMPORT, "windows of %lld over %lld cells, %lld apart",
                            (long long)size, (long long)cells, (long long)step);
        count = (cells - size) / step + 1;
        at = arena_array(b->c->arena, (size_t)(count * size), sizeof *at);
        for (int64_t k = 0; k < count * size; k++)
            at[k] = k / size * step + k % size;
        x = build_take(b, x, build_const(b, DT_I64, 2, (int64_t[]){count, size}, at), axis + i);
        /* The cells of a window go behind all that is there. */
        if (x) {
            int64_t  order[MAX_RANK];
            uint32_t r = expr_rank(x);

            for (uint32_t k = 0; k < r; k++)
                order[k] = k < axis + i + 1 ? k : k + 1 < r ? k + 1 : axis + i + 1;
            x = build_transpose(b, x, r, order);
        }
    }
    return x;
}

/* The diagonal itself: bands of several are not read. */
const Expr *tv_matrix_set_diag(TvNode *n)
{
    if (tv_int(n, "k1", 0) || tv_int(n, "k2", 0))
        return tv_error(n, E_UNSUPPORTED, "diagonals %lld to %lld", (long long)tv_int(n, "k1", 0),
                        (long long)tv_int(n, "k2", 0));
    return build_matrix_set_diag(&n->b, n->in[0], n->in[1]);
}

/* ---- einsum --------------------------------------------------------------------------------------------- */

const Expr *tv_product(const Build *b, void *user, const Expr *x, const Expr *y)
{
    BatchMatmulAttrs *a = ATTRS(b, BatchMatmulAttrs);

    (void)user;
    a->transpose_b = false;
    return expr_rank(x) == 2 ? build2(b, "nn.matmul", x, y, NULL)
                             : build2(b, "nn.batch_matmul", x, y, a);
}

const Expr *tv_einsum(TvNode *n)
{
    const Build *b = &n->b;
    uint32_t     count = n->in[0]->type->n;
    const Expr **x = NEW_ARRAY(b->c->arena, const Expr *, count);
    BuildEinsum  e = {
         .equation = tv_text(n, "equation", ""), .n = count, .x = x, .product = tv_product};

    for (uint32_t i = 0; i < count; i++)
        if (!(x[i] = build_proj(b, n->in[0], i)))
            return NULL;
    return build_einsum(b, &e);
}
