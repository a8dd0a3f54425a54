/* Cells by their positions. */
#include "frontends/tflite/tflite.h"

#include <math.h>
#include <string.h>

bool tflite_gather(TfliteNode *n)
{
    uint32_t axis, rank = expr_rank(n->in[0]);
    int64_t  batch = tflite_int(n, "batch_dims");

    if (!tflite_axis(n, tflite_int(n, "axis"), rank, &axis))
        return false;
    if (batch < 0)
        batch += expr_rank(n->in[1]);
    if (batch < 0 || batch > axis || batch > expr_rank(n->in[1]))
        return tflite_error(n, E_IMPORT, "batch_dims is %lld",
                            (long long)tflite_int(n, "batch_dims"));
    return tflite_done(n, build_gathered(&n->b, n->in[0], n->in[1], axis, batch));
}

bool tflite_embedding_lookup(TfliteNode *n)
{
    return tflite_done(n, build_take(&n->b, n->in[1], n->in[0], 0));
}

bool tflite_gather_nd(TfliteNode *n)
{
    const Expr *at = build_positions(&n->b, n->in[1]);

    return at && tflite_done(n, build2(&n->b, "gather_nd", n->in[0], at, NULL));
}

/* Inputs: positions, cells, shape; cells that meet are added. */
bool tflite_scatter_nd(TfliteNode *n)
{
    const Build    *b = &n->b;
    ScatterNdAttrs *a = ATTRS(b, ScatterNdAttrs);
    const Expr     *at = build_positions(&n->b, n->in[0]);
    Dims            dims;

    if (!at || !tflite_forms(n, 2, &dims) || !build_check_shape(b, dims))
        return false;
    a->mode = "add";
    return tflite_done(
        n, build3(b, "scatter_nd", build_filled(b, n->in[1], 0, dims), at, n->in[1], a));
}

/* Inputs: positions, shape, cells (or one for all), what the others are. */
bool tflite_sparse_to_dense(TfliteNode *n)
{
    Dims dims;

    return tflite_rank(n, 0, 0, 2) && tflite_rank(n, 2, 0, 1) && tflite_rank(n, 3, 0, 0) &&
           tflite_forms(n, 1, &dims) &&
           tflite_done(n, build_sparse_to_dense(&n->b, n->in[0], dims, n->in[2], n->in[3]));
}

bool tflite_unsorted_segment(TfliteNode *n)
{
    int64_t segments;

    return tflite_number(n, 2, &segments) &&
           tflite_done(n, build_segments(&n->b, n->row->relay, n->in[0], n->in[1], segments));
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
    return tflite_done(n, build3(b, "scatter_nd", build_filled(b, x, 0, (Dims){expr_rank(x), dims}),
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

bool tflite_reverse_sequence(TfliteNode *n)
{
    uint32_t rank = expr_rank(n->in[0]), along, batch;

    return tflite_axis(n, tflite_int(n, "seq_dim"), rank, &along) &&
           tflite_axis(n, tflite_int(n, "batch_dim"), rank, &batch) && tflite_rank(n, 1, 1, 1) &&
           tflite_done(n, build_reverse_rows(&n->b, n->in[0], n->in[1], along, batch));
}

bool tflite_matrix_diag(TfliteNode *n)
{
    return tflite_done(n, build_matrix_diag(&n->b, n->in[0]));
}

bool tflite_matrix_set_diag(TfliteNode *n)
{
    return tflite_done(n, build_matrix_set_diag(&n->b, n->in[0], n->in[1]));
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
