/* Reductions, and what orders. */
#include "frontends/onnx/onnx.h"

#include <math.h>
#include <string.h>

/* Which axes: an attribute, or an input of newer opsets; none given means all, or nothing at all
 * with noop_with_empty_axes. */
typedef struct {
    uint32_t    n;
    int64_t     at[MAX_RANK];
    bool        keepdims, noop;
    const Expr *run; /* axes that the run says, or NULL */
} Reduced;

static bool read_axes(Node *n, Reduced *a)
{
    Ints v = {0};
    bool bad;

    *a = (Reduced){.keepdims = node_int(n, "keepdims", 1) != 0,
                   .noop = node_int(n, "noop_with_empty_axes", 0) != 0};
    if (!node_need_rank(n, 0, 0, MAX_RANK))
        return false;
    if (!node_known(n, 1)) {
        if (!(a->run = node_cells(n, 1)))
            return false;
        if (build_elems(&n->b, a->run) > 0) {
            a->noop = false;
            return true;
        }
        a->run = NULL; /* none, whatever it is */
    } else if (!node_axes_arg(n, 1, &v, &bad) && bad) {
        return false;
    }
    if (v.n == 0) {
        a->n = expr_rank(n->in[0]);
        for (uint32_t i = 0; i < a->n; i++)
            a->at[i] = i;
        a->noop |= a->n == 0;
        return true;
    }
    a->noop = false;
    a->n = v.n;
    return node_axes(n, v, expr_rank(n->in[0]), a->at);
}

/* A reduction over nothing is the operation's neutral value. */
double reduced_none(const char *op, DType t)
{
    if (!strcmp(op, "max"))
        return dtype_is_float(t) ? -INFINITY : dtype_min(t);
    if (!strcmp(op, "min"))
        return dtype_is_float(t) ? INFINITY : dtype_max(t);
    return !strcmp(op, "prod") || !strcmp(op, "all") ? 1 : 0;
}

/* Nothing is left to compute. */
static const Expr *empty(const Build *b, const char *op, const Expr *like)
{
    double k;

    if (!like)
        return NULL;
    k = !strcmp(op, "mean") ? NAN : reduced_none(op, expr_dtype(like));
    return build_broadcast_to(b, expr_scalar(b->c, expr_dtype(like), k), expr_rank(like),
                              expr_forms(like).at);
}

static const Expr *reduce(Node *n, const Reduced *a, const char *op, const Expr *x)
{
    if (a->run)
        return reduce_at_run(n, a->run, a->keepdims, op, x);
    if (a->noop || !x || !expr_empty(x))
        return a->noop || !x ? x : build_reduce_image(&n->b, op, x, a->n, a->at, a->keepdims);
    return empty(&n->b, op, build_reduce(&n->b, op, x, a->n, a->at, a->keepdims));
}

bool convert_reduce(Node *n)
{
    Reduced a;

    if (!read_axes(n, &a))
        return false;
    if (dtype_is_bool(expr_dtype(n->in[0])))
        return node_done(n, reduce(n, &a, !strcmp(n->relay, "max") ? "any" : "all", n->in[0]));
    return node_done(n, reduce(n, &a, n->relay, n->in[0]));
}

bool convert_reduce_l1(Node *n)
{
    Reduced a;

    return read_axes(n, &a) &&
           node_done(n, reduce(n, &a, "sum", build1(&n->b, "abs", n->in[0], NULL)));
}

bool convert_reduce_sum_square(Node *n)
{
    Reduced a;

    return read_axes(n, &a) &&
           node_done(n, reduce(n, &a, "sum", build2(&n->b, "multiply", n->in[0], n->in[0], NULL)));
}

/* What a root or logarithm is taken of: integers as f64, which holds most of them. */
static const Expr *floats(const Build *b, const Expr *x)
{
    return x && !dtype_is_float(expr_dtype(x)) ? build_cast(b, x, DT_F64) : x;
}

static bool reduced_by(Node *n, const char *op, const Expr *sum)
{
    const Expr *y = build1(&n->b, op, floats(&n->b, sum), NULL);

    return y && node_done(n, build_cast(&n->b, y, expr_dtype(n->in[0])));
}

bool convert_reduce_l2(Node *n)
{
    return convert_reduce_sum_square(n) && reduced_by(n, "sqrt", n->out[0]);
}

bool convert_reduce_log_sum(Node *n)
{
    Reduced a;

    return read_axes(n, &a) && reduced_by(n, "log", reduce(n, &a, "sum", n->in[0]));
}

/* The same with all cells of every dimension, until the run says which are left. */
static bool log_sum_exp_at_run(Node *n, const Reduced *a)
{
    const Build *b = &n->b;
    const Expr  *x = never_empty(b, "max", floats(b, n->in[0])), *e;
    const Expr  *m = reduce_along(n, a->run, "max", x);

    if (!m)
        return false;
    m = build_where(b, build1(b, "isinf", m, NULL), build_scalar(b, m, 0), m);
    e = reduce_along(n, a->run, "sum", build1(b, "exp", build2(b, "subtract", x, m, NULL), NULL));
    e = build2(b, "add", build1(b, "log", e, NULL), m, NULL);
    e = reduced_cells(n, a->run, a->keepdims, n->in[0], e);
    return e && node_done(n, build_cast(b, e, expr_dtype(n->in[0])));
}

/* log(sum(exp(x - m))) + m with the largest m, which does not overflow; with 0 where that is
 * infinite, as inf - inf is none.  Integers are rounded once, at the end. */
bool convert_reduce_log_sum_exp(Node *n)
{
    const Build *b = &n->b;
    Reduced      a, kept;
    const Expr  *x, *m, *e;

    if (!read_axes(n, &a))
        return false;
    if (a.run)
        return log_sum_exp_at_run(n, &a);
    kept = a;
    kept.keepdims = true;
    x = floats(b, n->in[0]);
    m = reduce(n, &kept, "max", x);
    if (m)
        m = build_where(b, build1(b, "isinf", m, NULL), build_scalar(b, m, 0), m);
    e = reduce(n, &a, "sum", build1(b, "exp", build2(b, "subtract", x, m, NULL), NULL));
    if (!e)
        return false;
    m = a.noop ? m : build_reshape_to(b, m, expr_rank(e), expr_forms(e).at);
    return node_done(n, build_cast(b, build2(b, "add", build1(b, "log", e, NULL), m, NULL),
                                   expr_dtype(n->in[0])));
}

bool convert_arg_reduce(Node *n)
{
    ArgReduceAttrs *a = ATTRS(&n->b, ArgReduceAttrs);
    uint32_t        axis, rank = 0;
    const Idx      *dims[MAX_RANK], *one = idx_const(n->b.c->arith, 1);
    bool            none = false;

    if (!node_need_rank(n, 0, 1, MAX_RANK) ||
        !node_axis(n, node_int(n, "axis", 0), expr_rank(n->in[0]), &axis))
        return false;
    a->axis = axis;
    a->keepdims = node_int(n, "keepdims", 1);
    a->select_last_index = node_int(n, "select_last_index", 0);
    a->dtype = DT_I64;
    for (uint32_t i = 0; i < expr_rank(n->in[0]); i++) {
        if (i != axis || a->keepdims)
            dims[rank++] = i == axis ? one : expr_form(n->in[0], i);
        none |= i != axis && expr_form(n->in[0], i)->hi == 0;
    }
    if (none) /* no row, so that none is too short */
        return node_done(n, build_zeros_of(&n->b, DT_I64, rank, dims));
    return node_done(n, build1(&n->b, n->relay, n->in[0], a));
}

/* Running sums or products along an axis. */
static const Expr *running(Node *n, uint32_t axis)
{
    return build_scan(&n->b, n->relay, n->in[0], axis, node_int(n, "exclusive", 0),
                      node_int(n, "reverse", 0));
}

/* An axis that only the run knows chooses among the results of all. */
bool convert_cumsum(Node *n)
{
    const Build *b = &n->b;
    const Expr  *y, *at;
    uint32_t     axis, rank;
    Ints         v;

    if (!node_need_rank(n, 0, 1, MAX_RANK) || !node_need_rank(n, 1, 0, 1))
        return false;
    if (!expr_single(n->in[1]))
        return node_error(n, E_IMPORT, "the axis should be one number");
    rank = expr_rank(n->in[0]);
    if (build_fold(b, n->in[1]))
        return node_const_ints(n, 1, &v) && node_axis(n, v.at[0], rank, &axis) &&
               node_done(n, running(n, axis));
    at = build_cast(b, build_reshape(b, n->in[1], 0, NULL), DT_I64);
    at = build_by(b, "floor_mod", at, rank);
    y = running(n, 0);
    for (uint32_t i = 1; i < rank; i++)
        y = build_where(b, build_by(b, "equal", at, i), running(n, i), y);
    return node_done(n, y);
}

/* Rows as long as they may be, by a cell that comes behind all others, as often as it takes. */
static const Expr *longest_rows(const Build *b, const Expr *x, uint32_t axis, bool ascending)
{
    const Idx  *dims[MAX_RANK], *n = expr_form(x, axis), *most = idx_const(b->c->arith, n->hi);
    DType       t = expr_dtype(x);
    const Expr *both[2] = {x, NULL}, *at;
    double      last = dtype_is_float(t) ? (ascending ? NAN : -INFINITY)
                       : ascending       ? dtype_max(t)
                                         : dtype_min(t);

    if (n == most)
        return x;
    for (uint32_t i = 0; i < expr_rank(x); i++)
        dims[i] = i == axis ? idx_const(b->c->arith, 1) : expr_form(x, i);
    both[1] = build_broadcast_to(b, expr_scalar(b->c, t, last), expr_rank(x), dims);
    at = build2(b, "minimum", build_arange(b, most, DT_I64), cell_form(b, n), NULL);
    return build_take(b, build_concat(b, 2, both, axis), at, axis);
}

/* The first k of rows without a limit. */
static bool first_of_order(Node *n, const TopKAttrs *a, const Idx *k)
{
    const Build *b = &n->b;
    SortAttrs   *by = ATTRS(b, SortAttrs);
    GatherAttrs *along = ATTRS(b, GatherAttrs);
    const Expr  *order;

    by->axis = along->axis = a->axis;
    by->is_ascend = a->is_ascend;
    by->dtype = DT_I64;
    along->mode = "clip";
    order = build1(b, "argsort", n->in[0], by);
    order =
        order ? build_slice_to(b, order, (uint32_t)a->axis, idx_const(b->c->arith, 0), k) : NULL;
    n->out[0] = order ? build2(b, "gather", n->in[0], order, along) : NULL;
    n->out[1] = order;
    return n->out[0] != NULL;
}

/* All in order, and the first k of them. */
static bool topk_at_run(Node *n, TopKAttrs *a)
{
    const Build *b = &n->b;
    uint32_t     axis = (uint32_t)a->axis;
    const Expr  *k = node_cells(n, 1), *over, *both;
    const Idx   *extent = expr_form(n->in[0], axis), *at[2];

    over = k ? build2(b, "maximum", build2(b, "subtract", k, cell_form(b, extent), NULL),
                      cell_number(b, 0), NULL)
             : NULL;
    RunDim d[2] = {{k, 0, extent, axis, 1}, {over, 0, idx_const(b->c->arith, 0), axis, 1}};
    if (!onnx_bind(n, 0, idx_is_const(extent, NULL) ? 1 : 2, d, at))
        return false;
    if (idx_is_open(extent))
        return first_of_order(n, a, at[0]);
    a->k = extent->hi;
    both = build1(b, n->relay, longest_rows(b, n->in[0], axis, a->is_ascend), a);
    for (uint32_t i = 0; i < n->nout && i < 2; i++)
        n->out[i] =
            build_slice_to(b, build_proj(b, both, i), axis, idx_const(b->c->arith, 0), at[0]);
    return n->out[0] != NULL;
}

bool convert_topk(Node *n)
{
    const Build *b = &n->b;
    TopKAttrs   *a = ATTRS(b, TopKAttrs);
    const Expr  *both;
    uint32_t     axis;
    Ints         k;

    if (!node_need_rank(n, 0, 1, MAX_RANK) ||
        !node_axis(n, node_int(n, "axis", -1), expr_rank(n->in[0]), &axis))
        return false;
    node_ignore(n, "sorted"); /* in order is one of any order */
    a->k = node_int(n, "k", -1);
    a->axis = axis;
    a->is_ascend = !node_int(n, "largest", 1);
    a->dtype = DT_I64;
    if (n->opset >= 10 && !node_constant(n, 1))
        return topk_at_run(n, a);
    if (n->opset >= 10) {
        if (!node_const_ints(n, 1, &k))
            return false;
        a->k = k.n == 1 ? k.at[0] : -1;
        if (a->k > expr_form(n->in[0], axis)->lo && a->k <= expr_form(n->in[0], axis)->hi)
            return topk_at_run(n, a);
    }
    if (a->k < 0 || a->k > expr_form(n->in[0], axis)->lo)
        return node_error(n, E_IMPORT, "k is not in 0 .. %s",
                          dim_text(b->c, expr_form(n->in[0], axis)));
    both = build1(b, n->relay, n->in[0], a);
    n->out[0] = build_proj(b, both, 0);
    n->out[1] = build_proj(b, both, 1);
    return both != NULL;
}
