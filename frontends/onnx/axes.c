/* Axes that values of the run say: of reductions, running sums and triangles.
 *
 * Along each dimension both is computed, what holds if it is one of the axes and what if not, and a
 * flag chooses; a reduced dimension keeps its cells, which are all the same then, and has one even
 * if it was empty.  At the end the first of them are taken, as many as the run says. */
#include "frontends/onnx/onnx.h"

#include <string.h>

static const Expr *equals(const Build *b, const Expr *x, int64_t v)
{
    return build2(b, "equal", x, cell_number(b, v), NULL);
}

const Expr *axis_matches(const Build *b, const Expr *axes, uint32_t d, uint32_t rank)
{
    return build2(b, "logical_or", equals(b, axes, d), equals(b, axes, (int64_t)d - rank), NULL);
}

const Expr *axis_flag(const Build *b, const Expr *axes, uint32_t d, uint32_t rank)
{
    return build_reduce(b, "any", axis_matches(b, axes, d, rank), 1, (int64_t[]){0}, true);
}

static const Expr *numbers(const Build *b, uint32_t rank, uint32_t d, const Idx *n)
{
    const Idx *dims[MAX_RANK];

    for (uint32_t i = 0; i < rank; i++)
        dims[i] = i == d ? n : idx_const(b->c->arith, 1);
    return build_reshape_to(b, build_arange(b, n, DT_I64), rank, dims);
}

/* The dimensions of `like` that are not reduced in their order: result dimension k is the one that
 * has k before it.  Cells of the result are found by the distances of those in x. */
static const Expr *without(Node *n, const Expr *like, const Expr *x, const Expr *const *is,
                           uint32_t left)
{
    const Build *b = &n->b;
    uint32_t     rank = expr_rank(x);
    const Idx   *total = type_cells(b->c, x->type), *dims[MAX_RANK],
              *step = idx_const(b->c->arith, 1);
    const Expr *size[MAX_RANK], *apart[MAX_RANK], *before = cell_number(b, 0), *at = NULL;
    const Expr *zero = cell_number(b, 0), *one = cell_number(b, 1);
    RunDim      d[MAX_RANK];
    const Idx  *most = idx_const(b->c->arith, 0);

    for (uint32_t k = 0; k < left; k++)
        size[k] = apart[k] = zero;
    for (uint32_t i = 0; i < rank; i++)
        most = idx_max(b->c->arith, most, expr_form(like, i));
    for (uint32_t i = rank; i-- > 0;) { /* from the last, so that distances are known */
        const Expr *n_i = cell_form(b, expr_form(like, i)), *far = cell_form(b, step);

        for (uint32_t k = 0; k < left; k++) {
            const Expr *here = build2(b, "logical_and", build1(b, "logical_not", is[i], NULL),
                                      equals(b, before, left - 1 - k), NULL);

            size[k] = build_where(b, here, n_i, size[k]);
            apart[k] = build_where(b, here, far, apart[k]);
        }
        before = build2(b, "add", before, build_where(b, is[i], zero, one), NULL);
        step = idx_mul(b->c->arith, step, expr_form(x, i));
    }
    for (uint32_t k = 0; k < left; k++)
        d[k] = (RunDim){size[k], 0, most, k, 1};
    if (!onnx_bind(n, 0, left, d, dims))
        return NULL;
    x = build_reshape_to(b, x, 1, &total);
    if (left == 0)
        return build_reshape_to(b, build_slice(b, x, 0, 0, 1), 0, NULL);
    for (uint32_t k = 0; k < left; k++) {
        const Expr *by = build2(b, "multiply", numbers(b, left, k, dims[k]), apart[k], NULL);

        at = at ? build2(b, "add", at, by, NULL) : by;
    }
    return build_take(b, x, at, 0);
}

/* Of each reduced dimension the first cell, of the others as many as `like` has. */
static const Expr *with_ones(Node *n, const Expr *like, const Expr *x, const Expr *const *is)
{
    const Build *b = &n->b;
    uint32_t     rank = expr_rank(x);
    const Idx   *dims[MAX_RANK];
    RunDim       d[MAX_RANK];

    for (uint32_t i = 0; i < rank; i++) {
        const Idx  *extent = expr_form(like, i);
        const Expr *all = cell_form(b, extent);

        d[i] = (RunDim){build_where(b, is[i], cell_number(b, 1), all), extent->lo < 1 ? 0 : 1,
                        idx_max(b->c->arith, extent, idx_const(b->c->arith, 1)), i, 1};
    }
    if (!onnx_bind(n, 0, rank, d, dims))
        return NULL;
    for (uint32_t i = 0; i < rank; i++)
        x = build_slice_to(b, x, i, idx_const(b->c->arith, 0), dims[i]);
    return x;
}

const Expr *with_a_cell(const Build *b, const Expr *x, uint32_t d, double v)
{
    const Idx  *dims[MAX_RANK];
    const Expr *both[2] = {x, NULL};

    if (!x || expr_form(x, d)->lo > 0)
        return x;
    for (uint32_t k = 0; k < expr_rank(x); k++)
        dims[k] = k == d ? idx_const(b->c->arith, 1) : expr_form(x, k);
    both[1] = build_broadcast_to(b, expr_scalar(b->c, expr_dtype(x), v), expr_rank(x), dims);
    return expr_form(x, d)->hi == 0 ? both[1] : build_concat(b, 2, both, d);
}

const Expr *never_empty(const Build *b, const char *op, const Expr *x)
{
    for (uint32_t i = 0; x && i < expr_rank(x); i++)
        x = with_a_cell(b, x, i, reduced_none(op, expr_dtype(x)));
    return x;
}

static const Expr *along(Node *n, const Expr *axes, const char *op, const Expr *x)
{
    const Build *b = &n->b;

    for (uint32_t i = 0; x && i < expr_rank(x); i++) {
        int64_t axis = i;

        x = build_where(b, axis_flag(b, axes, i, expr_rank(x)),
                        build_reduce(b, op, x, 1, &axis, true), x);
    }
    return x;
}

/* How many cells of x come to one, as one cell. */
static const Expr *reduced_count(Node *n, const Expr *axes, const Expr *x)
{
    const Build *b = &n->b;
    const Expr  *count = cell_number(b, 1);

    for (uint32_t i = 0; i < expr_rank(x); i++) {
        const Expr *cells = build2(b, "multiply", count, cell_form(b, expr_form(x, i)), NULL);

        count = build_where(b, axis_flag(b, axes, i, expr_rank(x)), cells, count);
    }
    return build_reshape(b, build_cast(b, count, expr_dtype(x)), 0, NULL);
}

const Expr *reduce_along(Node *n, const Expr *axes, const char *op, const Expr *x)
{
    const Build *b = &n->b;
    const Expr  *all = x ? never_empty(b, op, x) : NULL;

    /* The mean of means is that of all, but for integers, which would be rounded in between. */
    if (strcmp(op, "mean") != 0 || (all == x && x && dtype_is_float(expr_dtype(x))))
        return along(n, axes, op, all);
    return build2(b, "divide", along(n, axes, "sum", all), reduced_count(n, axes, x), NULL);
}

const Expr *reduced_cells(Node *n, const Expr *axes, bool keepdims, const Expr *like, const Expr *x)
{
    const Expr *is[MAX_RANK];
    uint32_t    rank = x ? expr_rank(x) : 0;
    int64_t     k;

    if (!x)
        return NULL;
    type_dim(axes->type, 0, &k);
    if (k > rank)
        return node_error(n, E_IMPORT, "%lld axes for %u dimensions", (long long)k, rank);
    for (uint32_t i = 0; i < rank; i++)
        is[i] = axis_flag(&n->b, axes, i, rank);
    return keepdims ? with_ones(n, like, x, is) : without(n, like, x, is, rank - (uint32_t)k);
}

const Expr *reduce_at_run(Node *n, const Expr *axes, bool keepdims, const char *op, const Expr *x)
{
    return reduced_cells(n, axes, keepdims, x, reduce_along(n, axes, op, x));
}

/* ---- no sizes --------------------------------------------------------------------------------- */

bool trilu_at_run(Node *n, bool upper)
{
    const Build *b = &n->b;
    const Expr  *x = n->in[0], *k = node_cells(n, 1), *row, *column, *beyond;
    uint32_t     rank = expr_rank(x);

    if (!k || !expr_single(k))
        return k && node_error(n, E_IMPORT, "k is not one number");
    row = numbers(b, 2, 0, expr_form(x, rank - 2));
    column = numbers(b, 2, 1, expr_form(x, rank - 1));
    beyond = build2(b, "subtract", column, row, NULL);
    beyond =
        upper ? build2(b, "less_equal", k, beyond, NULL) : build2(b, "less_equal", beyond, k, NULL);
    return node_done(n, build_where(b, beyond, x, build_scalar(b, x, 0)));
}

/* ---- Squeeze, Unsqueeze ----------------------------------------------------------------------- */

bool squeeze_at_run(Node *n)
{
    const Expr *axes = node_cells(n, 1);

    return axes && node_done(n, reduced_cells(n, axes, false, n->in[0], n->in[0]));
}

/* A dimension of the result is 1, or that of the operand which has as many before it. */
bool unsqueeze_at_run(Node *n)
{
    const Build *b = &n->b;
    const Expr  *x = n->in[0], *axes = node_cells(n, 1), *before = cell_number(b, 0);
    const Expr  *zero = before, *one = cell_number(b, 1);
    uint32_t     rank, had = expr_rank(x);
    const Idx   *dims[MAX_RANK];
    RunDim       d[MAX_RANK];
    const Idx   *most = idx_const(b->c->arith, 1);
    int64_t      k;

    if (!axes)
        return false;
    type_dim(axes->type, 0, &k);
    if (k > MAX_RANK - (int64_t)had)
        return node_error(n, E_UNSUPPORTED, "a tensor of more than %d dimensions", MAX_RANK);
    rank = had + (uint32_t)k;
    for (uint32_t j = 0; j < had; j++)
        most = idx_max(b->c->arith, most, expr_form(x, j));
    for (uint32_t i = 0; i < rank; i++) {
        const Expr *is = axis_flag(b, axes, i, rank), *size = one;

        for (uint32_t j = 0; j < had; j++)
            size = build_where(b, equals(b, before, j), cell_form(b, expr_form(x, j)), size);
        d[i] = (RunDim){build_where(b, is, one, size), 0, most, i, 1};
        before = build2(b, "add", before, build_where(b, is, zero, one), NULL);
    }
    return onnx_bind(n, 0, rank, d, dims) && node_done(n, in_shape_at_run(n, x, rank, dims));
}
