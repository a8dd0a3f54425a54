/* Cells by their positions. */
#include "frontends/tflite/tflite.h"

#include <math.h>
#include <string.h>

bool tflite_gather(TfliteNode *n)
{
    TakeAttrs *a = ATTRS(&n->b, TakeAttrs);
    uint32_t   axis, rank = expr_rank(n->in[0]);
    int64_t    batch = tflite_int(n, "batch_dims");

    if (!tflite_axis(n, tflite_int(n, "axis"), rank, &axis))
        return false;
    if (batch < 0)
        batch += expr_rank(n->in[1]);
    if (batch < 0 || batch > axis || batch > expr_rank(n->in[1]))
        return tflite_error(n, E_IMPORT, "batch_dims is %lld",
                            (long long)tflite_int(n, "batch_dims"));
    a->axis = axis;
    a->batch_dims = batch;
    return tflite_done(n, build2(&n->b, "take", n->in[0], n->in[1], a));
}

bool tflite_embedding_lookup(TfliteNode *n)
{
    return tflite_done(n, build_take(&n->b, n->in[1], n->in[0], 0));
}

/* Positions [.., M] as Relay has them, [M, ..]. */
static const Expr *positions(TfliteNode *n, const Expr *x)
{
    int64_t  axes[MAX_RANK];
    uint32_t rank = expr_rank(x);

    if (rank == 0)
        return tflite_error(n, E_IMPORT, "positions without a dimension");
    axes[0] = rank - 1;
    for (uint32_t i = 1; i < rank; i++)
        axes[i] = i - 1;
    return build_transpose(&n->b, x, rank, axes);
}

bool tflite_gather_nd(TfliteNode *n)
{
    const Expr *at = positions(n, n->in[1]);

    return at && tflite_done(n, build2(&n->b, "gather_nd", n->in[0], at, NULL));
}

static const Expr *filled(const Build *b, const Expr *like, double v, Dims dims)
{
    return build_broadcast_to(b, build_scalar(b, like, v), dims.n, dims.at);
}

/* Inputs: positions, cells, shape; cells that meet are added. */
bool tflite_scatter_nd(TfliteNode *n)
{
    const Build    *b = &n->b;
    ScatterNdAttrs *a = ATTRS(b, ScatterNdAttrs);
    const Expr     *at = positions(n, n->in[0]);
    Dims            dims;

    if (!at || !tflite_forms(n, 2, &dims) || !build_check_shape(b, dims))
        return false;
    a->mode = "add";
    return tflite_done(n, build3(b, "scatter_nd", filled(b, n->in[1], 0, dims), at, n->in[1], a));
}

/* Inputs: positions, shape, cells (or one for all), what the others are. */
bool tflite_sparse_to_dense(TfliteNode *n)
{
    const Build *b = &n->b;
    const Expr  *at = n->in[0], *cells = n->in[2], *data;
    const Idx   *count, *one = idx_const(b->c->arith, 1);
    Dims         dims;

    if (!tflite_rank(n, 0, 0, 2) || !tflite_rank(n, 2, 0, 1) || !tflite_rank(n, 3, 0, 0) ||
        !tflite_forms(n, 1, &dims) || !build_check_shape(b, dims))
        return false;
    if (dims.n < 1)
        return tflite_error(n, E_UNSUPPORTED, "a shape of %u dimensions", dims.n);
    if (expr_rank(at) == 0)
        at = build_reshape(b, at, 1, (int64_t[]){1});
    count = expr_form(at, 0);
    if (expr_rank(at) == 1)
        at = build_reshape_to(b, at, 2, (const Idx *[]){count, one});
    data = build_broadcast_to(b, n->in[3], dims.n, dims.at);
    cells = build_broadcast_to(b, cells, 1, &count);
    at = at ? positions(n, at) : NULL;
    return tflite_done(n, build3(b, "scatter_nd", data, at, cells, NULL));
}

/* Rows of data go into the segments that their ids name; of segments without any the neutral value.
 */
bool tflite_unsorted_segment(TfliteNode *n)
{
    const Build    *b = &n->b;
    ScatterNdAttrs *a = ATTRS(b, ScatterNdAttrs);
    const Expr     *x = n->in[0], *ids = n->in[1];
    const Idx      *dims[MAX_RANK + 1];
    uint32_t        rank = expr_rank(x), over = expr_rank(ids), k = 0;
    DType           t = expr_dtype(x);
    const char     *how = n->row->relay;
    double          v = 0;
    int64_t         segments;

    if (!tflite_number(n, 2, &segments))
        return false;
    if (over > rank || segments < 1 || segments > INT32_MAX)
        return tflite_error(n, E_IMPORT, "%lld segments, ids of %u dimensions", (long long)segments,
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
    return tflite_done(n, build3(b, "scatter_nd", filled(b, x, v, (Dims){k, dims}),
                                 build_expand_dims(b, ids, 0, 1), x, a));
}

/* Ids that are known, so that it is known how many segments there are. */
bool tflite_segment_sum(TfliteNode *n)
{
    const Build    *b = &n->b;
    ScatterNdAttrs *a = ATTRS(b, ScatterNdAttrs);
    const Expr     *x = n->in[0];
    const Idx      *dims[MAX_RANK + 1];
    int64_t         last = -1;
    Ints            ids;

    if (!tflite_ints(n, 1, &ids) || !tflite_rank(n, 0, 1, MAX_RANK) || !tflite_rank(n, 1, 1, 1))
        return false;
    for (uint32_t i = 0; i < ids.n; i++) {
        if (ids.at[i] < last || ids.at[i] > INT32_MAX)
            return tflite_error(n, E_IMPORT, "segment %lld follows %lld", (long long)ids.at[i],
                                (long long)last);
        last = ids.at[i];
    }
    dims[0] = idx_const(b->c->arith, last + 1);
    for (uint32_t i = 1; i < expr_rank(x); i++)
        dims[i] = expr_form(x, i);
    a->mode = "add";
    return tflite_done(n, build3(b, "scatter_nd", filled(b, x, 0, (Dims){expr_rank(x), dims}),
                                 build_expand_dims(b, n->in[1], 0, 1), x, a));
}

/* Inputs: positions, depth, the value there, the value elsewhere. */
bool tflite_one_hot(TfliteNode *n)
{
    OneHotAttrs *a = ATTRS(&n->b, OneHotAttrs);
    uint32_t     axis;

    if (!tflite_number(n, 1, &a->depth) || !tflite_rank(n, 2, 0, 1) || !tflite_rank(n, 3, 0, 1) ||
        !tflite_axis(n, tflite_int(n, "axis"), expr_rank(n->in[0]) + 1, &axis))
        return false;
    if (a->depth < 1 || a->depth > INT32_MAX || !expr_single(n->in[2]) || !expr_single(n->in[3]))
        return tflite_error(n, E_IMPORT, "a depth of %lld", (long long)a->depth);
    a->axis = axis;
    a->dtype = expr_dtype(n->in[2]);
    return tflite_done(n,
                       build3(&n->b, "one_hot", n->in[0], build_reshape(&n->b, n->in[2], 0, NULL),
                              build_reshape(&n->b, n->in[3], 0, NULL), a));
}

/* The first cells of each row, as many as input 1 says, come in the opposite order. */
bool tflite_reverse_sequence(TfliteNode *n)
{
    const Build *b = &n->b;
    GatherAttrs *a = ATTRS(b, GatherAttrs);
    const Expr  *x = n->in[0], *i, *count;
    const Idx   *dims[MAX_RANK], *one = idx_const(b->c->arith, 1);
    uint32_t     rank = expr_rank(x), along, batch;

    if (!tflite_axis(n, tflite_int(n, "seq_dim"), rank, &along) ||
        !tflite_axis(n, tflite_int(n, "batch_dim"), rank, &batch) || !tflite_rank(n, 1, 1, 1))
        return false;
    if (along == batch || expr_form(n->in[1], 0) != expr_form(x, batch))
        return tflite_error(n, E_IMPORT, "lengths are %s", type_text(b->c, n->in[1]->type));
    i = build_along(b, build_arange(b, expr_form(x, along), DT_I64), rank, along);
    for (uint32_t k = 0; k < rank; k++)
        dims[k] = k == batch ? expr_form(x, batch) : one;
    count = build_reshape_to(b, build_cast(b, n->in[1], DT_I64), rank, dims);
    i = build_where(b, build_less(b, i, count), build_by(b, "subtract", build_sub(b, count, i), 1),
                    i);
    a->axis = along;
    return tflite_done(n,
                       build2(b, "gather", x, build_broadcast_to(b, i, rank, expr_forms(x).at), a));
}

/* Which cells of [.., rows, columns] are on the diagonal. */
static const Expr *diagonal(const Build *b, const Idx *rows, const Idx *columns)
{
    const Expr *i = build_arange(b, rows, DT_I64), *j = build_arange(b, columns, DT_I64);

    return build2(b, "equal", build_expand_dims(b, i, 1, 1), j, NULL);
}

bool tflite_matrix_diag(TfliteNode *n)
{
    const Build *b = &n->b;
    const Expr  *x = n->in[0];
    uint32_t     rank = expr_rank(x);
    const Idx   *k;

    if (!tflite_rank(n, 0, 1, MAX_RANK - 1))
        return false;
    k = expr_form(x, rank - 1);
    return tflite_done(n, build_where(b, diagonal(b, k, k), build_expand_dims(b, x, rank, 1),
                                      build_scalar(b, x, 0)));
}

bool tflite_matrix_set_diag(TfliteNode *n)
{
    const Build *b = &n->b;
    const Expr  *x = n->in[0], *d = n->in[1];
    uint32_t     rank = expr_rank(x);
    const Idx   *rows, *columns;

    if (!tflite_rank(n, 0, 2, MAX_RANK) || !tflite_rank(n, 1, rank - 1, rank - 1))
        return false;
    rows = expr_form(x, rank - 2);
    columns = expr_form(x, rank - 1);
    if (expr_form(d, rank - 2) != (rows->hi < columns->hi ? rows : columns))
        return tflite_error(n, E_IMPORT, "a diagonal of %s cells in %s",
                            dim_text(b->c, expr_form(d, rank - 2)), type_text(b->c, x->type));
    d = build_expand_dims(b, d, rows->hi < columns->hi ? rank - 1 : rank - 2, 1);
    return tflite_done(n, build_where(b, diagonal(b, rows, columns), d, x));
}

/* How many boundaries are not above x. */
bool tflite_bucketize(TfliteNode *n)
{
    const Build *b = &n->b;
    const Expr  *x = n->in[0], *y;
    int64_t      count, axis = expr_rank(x);
    const float *at = tflite_float_list(n, "boundaries", &count);

    if (!tflite_rank(n, 0, 0, MAX_RANK - 1))
        return false;
    y = build_const(b, DT_F32, 1, &count, at);
    x = build_expand_dims(b, build_cast(b, x, DT_F32), axis, 1);
    y = build_cast(b, build2(b, "greater_equal", x, y, NULL), DT_I32);
    return tflite_done(n, build_reduce(b, "sum", y, 1, &axis, false));
}
