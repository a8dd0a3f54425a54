/* Cells by their positions. */
#include "frontends/tensorflow/tensorflow.h"

#include <string.h>

static bool take(TfNode *n, const Expr *x, int64_t along, int64_t batch)
{
    uint32_t axis;

    if (!tf_axis(n, along, expr_rank(x), &axis))
        return false;
    if (batch < 0)
        batch += expr_rank(n->in[1]);
    if (batch < 0 || batch > axis || batch > expr_rank(n->in[1]))
        return tf_error(n, E_IMPORT, "batch_dims is %lld", (long long)batch);
    return tf_done(n, build_gathered(&n->b, x, n->in[1], axis, batch));
}

bool tf_gather(TfNode *n)
{
    return take(n, n->in[0], 0, 0);
}

bool tf_gather_v2(TfNode *n)
{
    int64_t axis;

    return tf_number(n, 2, &axis) && take(n, n->in[0], axis, tf_int(n, "batch_dims"));
}

bool tf_gather_nd(TfNode *n)
{
    const Expr *at = build_positions(&n->b, n->in[1]);

    return at && tf_done(n, build2(&n->b, "gather_nd", n->in[0], at, NULL));
}

/* Rows of a variable. */
bool tf_resource_gather(TfNode *n)
{
    if (n->given[0].kind != TF_VARIABLE_OF)
        return tf_error(n, E_IMPORT, "input 0 is no variable");
    if (!tf_is_tensor(n, &n->given[1], "input 1") ||
        !(n->in[0] = tf_variable(n, n->given[0].variable)))
        return false;
    if (!strcmp(n->row->name, "ResourceGatherNd"))
        return tf_gather_nd(n);
    return take(n, n->in[0], tf_int(n, "batch_dims"), tf_int(n, "batch_dims"));
}

/* Inputs: positions, cells, shape; cells that meet are added. */
bool tf_scatter_nd(TfNode *n)
{
    const Build    *b = &n->b;
    ScatterNdAttrs *a = ATTRS(b, ScatterNdAttrs);
    const Expr     *at = build_positions(b, n->in[0]);
    Dims            dims;

    if (!at || !tf_forms(n, 2, &dims) || !build_check_shape(b, dims))
        return false;
    a->mode = "add";
    return tf_done(n, build3(b, "scatter_nd", build_filled(b, n->in[1], 0, dims), at, n->in[1], a));
}

/* Inputs: data, positions, cells. */
bool tf_tensor_scatter(TfNode *n)
{
    ScatterNdAttrs *a = ATTRS(&n->b, ScatterNdAttrs);
    const Expr     *at = build_positions(&n->b, n->in[1]);

    a->mode = n->row->relay;
    return at && tf_done(n, build3(&n->b, "scatter_nd", n->in[0], at, n->in[2], a));
}

/* Inputs: positions, shape, cells (or one for all), what the others are. */
bool tf_sparse_to_dense(TfNode *n)
{
    Dims dims;

    return tf_rank(n, 0, 0, 2) && tf_rank(n, 2, 0, 1) && tf_rank(n, 3, 0, 0) &&
           tf_forms(n, 1, &dims) &&
           tf_done(n, build_sparse_to_dense(&n->b, n->in[0], dims, n->in[2], n->in[3]));
}

/* Inputs: positions, depth, the value there, the value elsewhere. */
bool tf_one_hot(TfNode *n)
{
    OneHotAttrs *a = ATTRS(&n->b, OneHotAttrs);
    uint32_t     axis;

    if (!tf_number(n, 1, &a->depth) || !tf_rank(n, 2, 0, 1) || !tf_rank(n, 3, 0, 1) ||
        !tf_axis(n, tf_int(n, "axis"), expr_rank(n->in[0]) + 1, &axis))
        return false;
    if (a->depth < 1 || a->depth > INT32_MAX || !expr_single(n->in[2]) || !expr_single(n->in[3]))
        return tf_error(n, E_IMPORT, "a depth of %lld", (long long)a->depth);
    a->axis = axis;
    a->dtype = expr_dtype(n->in[2]);
    return tf_done(n, build3(&n->b, "one_hot", n->in[0], build_reshape(&n->b, n->in[2], 0, NULL),
                             build_reshape(&n->b, n->in[3], 0, NULL), a));
}

/* ---- segments --------------------------------------------------------------------------------------- */

/* Ids that are known and in order, so that it is known how many segments there are; those without
 * a row are 0, of products 1. */
bool tf_segment(TfNode *n)
{
    const Build *b = &n->b;
    const Expr  *x = n->in[0], *y, *count;
    const char  *how = n->row->relay ? n->row->relay : "add";
    int64_t      last = -1, cells = 0;
    float       *counts;
    Ints         ids;

    if (!tf_ints(n, 1, &ids) || !tf_rank(n, 0, 1, MAX_RANK) || !tf_rank(n, 1, 1, 1))
        return false;
    for (uint32_t i = 0; i < ids.n; i++) {
        if (ids.at[i] < last || ids.at[i] < 0 || ids.at[i] > 1 << 24)
            return tf_error(n, E_IMPORT, "segment %lld follows %lld", (long long)ids.at[i],
                            (long long)last);
        last = ids.at[i];
    }
    cells = last + 1;
    if (cells == 0)
        return tf_error(n, E_UNSUPPORTED, "no segments");
    counts = NEW_ARRAY(b->c->arena, float, (size_t)cells);
    for (uint32_t i = 0; i < ids.n; i++)
        counts[ids.at[i]] += 1;
    if (!(y = build_segments(b, how, x, n->in[1], cells)))
        return false;
    count = build_along(b, build_const(b, DT_F32, 1, &cells, counts), expr_rank(x), 0);
    if (!n->row->relay)
        y = build_div(b, y, build_cast(b, build_by(b, "maximum", count, 1), expr_dtype(y)));
    if (strcmp(how, "max") == 0 || strcmp(how, "min") == 0)
        y = build_where(b, build2(b, "greater", count, build_scalar(b, count, 0), NULL), y,
                        build_scalar(b, y, 0));
    return tf_done(n, y);
}

bool tf_unsorted_segment(TfNode *n)
{
    int64_t segments;

    return tf_number(n, 2, &segments) &&
           tf_done(n, build_segments(&n->b, n->row->relay, n->in[0], n->in[1], segments));
}

bool tf_reverse_sequence(TfNode *n)
{
    uint32_t rank = expr_rank(n->in[0]), along, batch;

    return tf_axis(n, tf_int(n, "seq_dim"), rank, &along) &&
           tf_axis(n, tf_int(n, "batch_dim"), rank, &batch) && tf_rank(n, 1, 1, 1) &&
           tf_done(n, build_reverse_rows(&n->b, n->in[0], n->in[1], along, batch));
}

/* ---- diagonals -------------------------------------------------------------------------------------- */

bool tf_matrix_diag(TfNode *n)
{
    return tf_done(n, build_matrix_diag(&n->b, n->in[0]));
}

static bool main_diagonal(TfNode *n, uint32_t i)
{
    int64_t k;

    return tf_number(n, i, &k) &&
           (k == 0 || tf_error(n, E_UNSUPPORTED, "diagonal %lld", (long long)k));
}

/* Inputs: diagonals, which ones, rows, columns (-1: as many as there are cells), the rest. */
bool tf_matrix_diag_v3(TfNode *n)
{
    const Build *b = &n->b;
    int64_t      rows, columns;
    double       rest;
    const Expr  *y;

    if (!main_diagonal(n, 1) || !tf_number(n, 2, &rows) || !tf_number(n, 3, &columns))
        return false;
    if (!expr_const_f(n->in[4], &rest) || rest != 0 || !tf_rank(n, 0, 1, MAX_RANK - 1))
        return tf_error(n, E_UNSUPPORTED, "other cells than 0");
    y = build_matrix_diag(b, n->in[0]);
    if (y && ((rows >= 0 && rows != build_dim(b, y, expr_rank(y) - 2)) ||
              (columns >= 0 && columns != build_dim(b, y, expr_rank(y) - 1))))
        return tf_error(n, E_UNSUPPORTED, "%lld rows, %lld columns", (long long)rows,
                        (long long)columns);
    return tf_done(n, y);
}

bool tf_matrix_set_diag(TfNode *n)
{
    return tf_done(n, build_matrix_set_diag(&n->b, n->in[0], n->in[1]));
}

bool tf_matrix_set_diag_v3(TfNode *n)
{
    return main_diagonal(n, 2) && tf_matrix_set_diag(n);
}

/* Of matrices, so many diagonals below and above the main one; below 0: all. */
bool tf_matrix_band_part(TfNode *n)
{
    const Build *b = &n->b;
    const Expr  *x = n->in[0];
    int64_t      low, high;

    if (!tf_rank(n, 0, 2, MAX_RANK) || !tf_number(n, 1, &low) || !tf_number(n, 2, &high))
        return false;
    for (uint32_t i = 0; x && i < 2; i++) {
        TriluAttrs *a = ATTRS(b, TriluAttrs);

        a->upper = i == 0;
        a->k = i == 0 ? -low : high;
        if ((i == 0 ? low : high) >= 0)
            x = build1(b, "trilu", x, a);
    }
    return tf_done(n, x);
}

/* ---- what a run counts ------------------------------------------------------------------------------ */

/* The dimension that holds this number. */
static const Idx *bound_dim(void *user, const Expr *total, const Idx *most)
{
    TfNode *n = user;

    return tf_bound_dim(n, 0, total, most);
}

bool tf_where(TfNode *n)
{
    return tf_done(n, build_find(&n->b, &(BoundDim){bound_dim, n}, n->in[0]));
}

bool tf_unique(TfNode *n)
{
    const Build *b = &n->b;
    UniqueCells  u;
    DType        t;

    if (!tf_type(n, "out_idx", &t) || !build_unique(b, &(BoundDim){bound_dim, n}, n->in[0], &u))
        return false;
    if (n->nout > 2) { /* how often there is each */
        ScatterNdAttrs *a = ATTRS(b, ScatterNdAttrs);
        const Expr     *ones = build_filled(b, u.number, 1, expr_forms(u.number));

        a->mode = "add";
        ones = build3(b, "scatter_nd", build_filled(b, u.number, 0, expr_forms(u.values)),
                      build_expand_dims(b, u.number, 0, 1), ones, a);
        if (!tf_put(n, 2, ones ? build_cast(b, ones, t) : NULL))
            return false;
    }
    return tf_put(n, 1, build_cast(b, u.number, t)) && tf_done(n, u.values);
}
