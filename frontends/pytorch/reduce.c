/* Reductions, order, softmax. */
#include "frontends/pytorch/pytorch.h"

#include <math.h>
#include <string.h>

/* The axes of "dim", all of them if it is left out or empty. */
static bool axes_of(PtNode *n, const Expr *x, int64_t *axes, uint32_t *count)
{
    Ints v;

    if (!pt_has(n, "dim") || !pt_ints(n, "dim", &v) || v.n == 0) {
        *count = expr_rank(x);
        for (uint32_t i = 0; i < *count; i++)
            axes[i] = i;
        return diag_errors(n->b.c->diags) == n->errors;
    }
    *count = v.n;
    return pt_axes(n, v, expr_rank(x), axes);
}

static const Expr *reduced(PtNode *n, const char *op, const Expr *x)
{
    int64_t  axes[MAX_RANK];
    uint32_t count;

    if (!x || !axes_of(n, x, axes, &count))
        return NULL;
    if (expr_rank(x) == 0)
        return x;
    return build_reduce_image(&n->b, op, x, count, axes, pt_bool(n, "keepdim", false));
}

/* Sums and products of integers are of 64 bits. */
bool aten_reduce_sum(PtNode *n)
{
    const Expr *x = pt_tensor(n, "self");
    DType       t;

    return x &&
           pt_type(n, "dtype", pt_dtype_kind(expr_dtype(x)) == 2 ? expr_dtype(x) : DT_I64, &t) &&
           pt_done(n, reduced(n, n->relay, build_cast(&n->b, x, t)));
}

bool aten_mean(PtNode *n)
{
    const Expr *x = pt_tensor(n, "self");
    DType       t;

    return x && pt_type(n, "dtype", expr_dtype(x), &t) &&
           pt_done(n, reduced(n, "mean", build_cast(&n->b, x, t)));
}

bool aten_reduce(PtNode *n)
{
    return pt_done(n, reduced(n, n->relay, pt_tensor(n, "self")));
}

bool aten_reduce_bool(PtNode *n)
{
    const Expr *x = pt_tensor(n, "self");

    if (x && !dtype_is_bool(expr_dtype(x)))
        x = build_by(&n->b, "not_equal", x, 0);
    return pt_done(n, reduced(n, n->relay, x));
}

static const Expr *arg_of(PtNode *n, const char *op, const Expr *x, uint32_t axis, bool keepdim)
{
    ArgReduceAttrs *a = ATTRS(&n->b, ArgReduceAttrs);

    a->axis = axis;
    a->keepdims = keepdim;
    a->dtype = DT_I64;
    return build1(&n->b, op, x, a);
}

bool aten_arg(PtNode *n)
{
    const Build *b = &n->b;
    const Expr  *x = pt_tensor(n, "self");
    bool         keep = pt_bool(n, "keepdim", false);
    uint32_t     axis;

    if (!x)
        return false;
    if (!pt_has(n, "dim")) {
        if (keep)
            return pt_error(n, E_UNSUPPORTED, "keepdim without dim");
        x = build_reshape_to(b, x, 1, (const Idx *[]){type_cells(b->c, x->type)});
        return x && pt_done(n, arg_of(n, n->relay, x, 0, false));
    }
    return pt_axis(n, pt_int(n, "dim", 0), expr_rank(x), &axis) &&
           pt_done(n, arg_of(n, n->relay, x, axis, keep));
}

/* max.dim, min.dim: (values, indices) */
bool aten_max_dim(PtNode *n)
{
    const Expr *x = pt_tensor(n, "self");
    bool        keep = pt_bool(n, "keepdim", false), max = !strcmp(n->relay, "max");
    uint32_t    axis;
    int64_t     at;

    if (!x || !pt_axis(n, pt_int(n, "dim", 0), expr_rank(x), &axis))
        return false;
    at = axis;
    return pt_done_at(n, 0, build_reduce(&n->b, n->relay, x, 1, &at, keep)) &&
           pt_done_at(n, 1, arg_of(n, max ? "argmax" : "argmin", x, axis, keep));
}

/* ---- variance and norms ----------------------------------------------------------------------------- */

/* The mean of squares of what is around the mean, times n / (n - correction). */
static bool variance(PtNode *n, const Expr **var, const Expr **mean)
{
    const Build *b = &n->b;
    const Expr  *x = pt_tensor(n, "self"), *d;
    double       correction = pt_bool(n, "unbiased", true) ? 1 : 0, cells = 1;
    int64_t      axes[MAX_RANK];
    uint32_t     count;
    bool         keep = pt_bool(n, "keepdim", false);

    if (pt_has(n, "correction"))
        correction = pt_float(n, "correction", 1);
    if (!x || !axes_of(n, x, axes, &count))
        return false;
    if (expr_rank(x) == 0)
        return pt_error(n, E_UNSUPPORTED, "the variance of a scalar");
    if (correction != 0)
        for (uint32_t i = 0; i < count; i++)
            cells *= (double)build_dim(b, x, (uint32_t)axes[i]);
    d = build_sub(b, x, build_reduce(b, "mean", x, count, axes, true));
    *var = build_reduce(b, "mean", d ? build_mul(b, d, d) : NULL, count, axes, keep);
    if (correction != 0)
        *var =
            build_by(b, "multiply", *var, cells > correction ? cells / (cells - correction) : NAN);
    *mean = build_reduce(b, "mean", x, count, axes, keep);
    return *var && *mean;
}

bool aten_var(PtNode *n)
{
    const Expr *var, *mean;

    return variance(n, &var, &mean) && pt_done(n, var);
}

bool aten_std(PtNode *n)
{
    const Expr *var, *mean;

    return variance(n, &var, &mean) && pt_done(n, build1(&n->b, "sqrt", var, NULL));
}

bool aten_var_mean(PtNode *n)
{
    const Expr *var, *mean;

    if (!variance(n, &var, &mean))
        return false;
    if (strstr(n->p->target, "std_mean"))
        var = build1(&n->b, "sqrt", var, NULL);
    return pt_done_at(n, 0, var) && pt_done_at(n, 1, mean);
}

static const Expr *norm_of(PtNode *n, const Expr *x, double p)
{
    const Build *b = &n->b;
    const Expr  *a;

    if (!x)
        return NULL;
    if (p == 2)
        return build1(b, "sqrt", reduced(n, "sum", build_mul(b, x, x)), NULL);
    a = build1(b, "abs", x, NULL);
    if (isinf(p))
        return reduced(n, p > 0 ? "max" : "min", a);
    if (p == 1)
        return reduced(n, "sum", a);
    if (p == 0)
        return reduced(n, "sum", build_cast(b, build_by(b, "not_equal", x, 0), expr_dtype(x)));
    return build_by(b, "power", reduced(n, "sum", build_by(b, "power", a, p)), 1 / p);
}

bool aten_norm(PtNode *n)
{
    const Expr *x = pt_tensor(n, "self");
    double      p = pt_float(n, pt_has(n, "ord") ? "ord" : "p", 2);
    DType       t;

    return x && pt_type(n, "dtype", expr_dtype(x), &t) &&
           pt_done(n, norm_of(n, build_cast(&n->b, x, t), p));
}

/* mse_loss, l1_loss; reduction 0: none, 1: the mean, 2: the sum */
bool aten_distance(PtNode *n)
{
    const Build *b = &n->b;
    const Expr  *x = pt_tensor(n, "self"), *y = x ? pt_tensor(n, "target") : NULL;
    int64_t      how = pt_int(n, "reduction", 1), axes[MAX_RANK];

    if (!y || how < 0 || how > 2)
        return y && pt_error(n, E_IMPORT, "reduction %lld", (long long)how);
    x = build_sub(b, x, y);
    x = strstr(n->p->target, "mse") ? x ? build_mul(b, x, x) : NULL : build1(b, "abs", x, NULL);
    for (uint32_t i = 0; x && i < expr_rank(x); i++)
        axes[i] = i;
    if (x && how && expr_rank(x))
        x = build_reduce(b, how == 1 ? "mean" : "sum", x, expr_rank(x), axes, false);
    return pt_done(n, x);
}

/* x . y / (|x| |y|), where no norm counts less than eps */
bool aten_cosine_similarity(PtNode *n)
{
    const Build *b = &n->b;
    const Expr  *x = pt_tensor(n, "x1"), *y = x ? pt_tensor(n, "x2") : NULL, *in[2] = {x, y}, *dot;
    double       eps = pt_float(n, "eps", 1e-8);
    uint32_t     axis;
    int64_t      at;

    if (!y || !pt_axis(n, pt_int(n, "dim", 1), expr_rank(x), &axis) || expr_rank(x) != expr_rank(y))
        return y && pt_error(n, E_UNSUPPORTED, "operands of different ranks");
    at = axis;
    dot = build_reduce(b, "sum", build_mul(b, x, y), 1, &at, false);
    for (uint32_t i = 0; i < 2; i++) {
        in[i] = build_reduce(b, "sum", build_mul(b, in[i], in[i]), 1, &at, false);
        in[i] = build1(b, "sqrt", in[i], NULL);
        in[i] = build2(b, "maximum", in[i], build_scalar(b, x, eps), NULL);
    }
    return pt_done(n, build_div(b, dot, build_mul(b, in[0], in[1])));
}

bool aten_logsumexp(PtNode *n)
{
    const Build *b = &n->b;
    const Expr  *x = pt_tensor(n, "self"), *max, *s;
    int64_t      axes[MAX_RANK];
    uint32_t     count;

    if (!x || !axes_of(n, x, axes, &count))
        return false;
    max = build_reduce(b, "max", x, count, axes, true);
    if (!max || !(s = reduced(n, "sum", build1(b, "exp", build_sub(b, x, max), NULL))))
        return false;
    return pt_done(n, build_add(b, build1(b, "log", s, NULL),
                                build_reshape_to(b, max, expr_rank(s), expr_forms(s).at)));
}

/* ---- softmax ------------------------------------------------------------------------------------------ */

const Expr *pt_softmax(PtNode *n, const char *op, const Expr *x, int64_t axis)
{
    SoftmaxAttrs *a = ATTRS(&n->b, SoftmaxAttrs);
    uint32_t      at;

    if (!x || !pt_axis(n, axis, expr_rank(x), &at))
        return NULL;
    a->axis = at;
    return build1(&n->b, op, x, a);
}

bool aten_softmax(PtNode *n)
{
    const Expr *x = pt_tensor(n, "self");
    DType       t;

    if (!x)
        return false;
    (void)pt_bool(n, "half_to_float", false); /* of GPUs; the dtype of the result says it */
    if (!pt_type(n, "dtype", pt_dtype_kind(expr_dtype(x)) == 2 ? expr_dtype(x) : DT_F32, &t))
        return false;
    if (expr_rank(x) == 0)
        return pt_error(n, E_UNSUPPORTED, "softmax of a scalar");
    return pt_done(n, pt_softmax(n, n->relay, build_cast(&n->b, x, t), pt_int(n, "dim", -1)));
}

/* ---- order ---------------------------------------------------------------------------------------------- */

bool aten_scan(PtNode *n)
{
    ScanAttrs  *a = ATTRS(&n->b, ScanAttrs);
    const Expr *x = pt_tensor(n, "self");
    uint32_t    axis;
    DType       t;

    if (!x || !pt_axis(n, pt_int(n, "dim", 0), expr_rank(x), &axis) ||
        !pt_type(n, "dtype", pt_dtype_kind(expr_dtype(x)) == 2 ? expr_dtype(x) : DT_I64, &t))
        return false;
    x = build_cast(&n->b, x, t);
    a->axis = axis;
    return pt_done(n, x && expr_rank(x) == 0 ? x : build1(&n->b, n->relay, x, a));
}

static const Expr *sorted(PtNode *n, const char *op, const Expr *x, uint32_t axis, bool down)
{
    SortAttrs *a = ATTRS(&n->b, SortAttrs);

    a->axis = axis;
    a->is_ascend = !down;
    a->dtype = DT_I64;
    (void)pt_bool(n, "stable", true);
    return build1(&n->b, op, x, a);
}

/* Of so many that a form says: the first of all in order. */
static bool first_of_all(PtNode *n, const Expr *x, uint32_t axis, const Idx *k)
{
    const Idx *zero = idx_const(n->b.c->arith, 0);
    bool       down = pt_bool(n, "largest", true);

    return pt_done_at(n, 0,
                      build_slice_to(&n->b, sorted(n, "sort", x, axis, down), axis, zero, k)) &&
           pt_done_at(n, 1,
                      build_slice_to(&n->b, sorted(n, "argsort", x, axis, down), axis, zero, k));
}

bool aten_topk(PtNode *n)
{
    TopKAttrs  *a = ATTRS(&n->b, TopKAttrs);
    const Expr *x = pt_tensor(n, "self"), *r;
    const Idx  *k = x ? pt_form(n, "k", idx_const(n->b.c->arith, 1)) : NULL;
    uint32_t    axis;

    (void)pt_bool(n, "sorted", true); /* it is, in any case */
    if (!k || !pt_axis(n, pt_int(n, "dim", -1), expr_rank(x), &axis))
        return false;
    if (!idx_is_const(k, &a->k))
        return first_of_all(n, x, axis, k);
    a->axis = axis;
    a->is_ascend = !pt_bool(n, "largest", true);
    a->dtype = DT_I64;
    r = build1(&n->b, "topk", x, a);
    return pt_done_at(n, 0, build_proj(&n->b, r, 0)) && pt_done_at(n, 1, build_proj(&n->b, r, 1));
}

bool aten_sort(PtNode *n)
{
    const Expr *x = pt_tensor(n, "self");
    uint32_t    axis;

    return x && pt_axis(n, pt_int(n, "dim", -1), expr_rank(x), &axis) &&
           pt_done_at(n, 0, sorted(n, "sort", x, axis, pt_bool(n, "descending", false))) &&
           pt_done_at(n, 1, sorted(n, "argsort", x, axis, pt_bool(n, "descending", false)));
}

bool aten_argsort(PtNode *n)
{
    const Expr *x = pt_tensor(n, "self");
    uint32_t    axis;

    return x && pt_axis(n, pt_int(n, "dim", -1), expr_rank(x), &axis) &&
           pt_done(n, sorted(n, "argsort", x, axis, pt_bool(n, "descending", false)));
}
