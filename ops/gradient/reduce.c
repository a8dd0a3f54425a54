/* Adjoints of reductions, and of what divides by them: a gradient of fewer cells goes back to all
 * cells that made it. */
#include "ops/gradient/gradient.h"

#include <string.h>

/* Axes of a reduction as a set. */
static uint32_t axes_reduced(Ints axis, bool exclude, uint32_t ndim)
{
    uint32_t set = axes_of(axis, ndim);

    return exclude && axis.n ? ~set & ((1u << ndim) - 1) : set;
}

static uint32_t axes_of_call(const Adjoint *a)
{
    const ReduceAttrs *attrs = ATTRS(ReduceAttrs, a->call);

    return axes_reduced(attrs->axis, attrs->exclude, a->x[0]->type->n);
}

/* A result, or its gradient, with dimensions of 1 for those that were reduced. */
static const Expr *kept(const Adjoint *a, const Expr *y, uint32_t axes)
{
    const Type *t = a->x[0]->type;
    const Idx  *dims[TE_MAX_AXES];

    for (uint32_t i = 0; i < t->n; i++)
        dims[i] = axes >> i & 1 ? idx_const(a->c->arith, 1) : t->dims[i];
    return grad_reshape(a, y, t->n, dims);
}

void adjoint_sum(const Adjoint *a)
{
    a->dx[0] = kept(a, a->dy[0], axes_of_call(a));
}

void adjoint_mean(const Adjoint *a)
{
    uint32_t axes = axes_of_call(a);

    a->dx[0] = kept(a, grad_div(a, a->dy[0], grad_count(a, a->x[0], axes)), axes);
}

const Expr *grad_of_extremum(const Adjoint *a, const Expr *x, uint32_t axes)
{
    const Expr *is = grad2(a, "equal", x, kept(a, a->call, axes), NULL);
    const Expr *share, *dy = kept(a, a->dy[0], axes);

    if (!is)
        return NULL;
    is = grad_cast(a, is, x->type->dtype);
    share = grad_div(a, dy, grad_reduce(a, "sum", is, axes));
    return grad_mul(a, share, is);
}

void adjoint_extremum(const Adjoint *a)
{
    a->dx[0] = grad_of_extremum(a, a->x[0], axes_of_call(a));
}

/* Each cell's share is the product of the others: of those before it times those behind it, so that
 * one may be 0.  For that the axes that are reduced come last, as one. */
void adjoint_prod(const Adjoint *a)
{
    uint32_t    axes = axes_of_call(a), rank = a->x[0]->type->n, n = 0;
    int64_t     last[TE_MAX_AXES], back[TE_MAX_AXES];
    const Idx  *dims[TE_MAX_AXES + 1];
    ScanAttrs  *others = NEW_ATTRS(a->c, ScanAttrs);
    const Expr *x, *before, *behind;

    for (uint32_t k = 0; k < 2; k++)
        for (uint32_t i = 0; i < rank; i++)
            if ((axes >> i & 1) == k)
                last[n++] = i;
    n = 0;
    for (uint32_t i = 0; i < rank; i++) {
        back[last[i]] = i;
        if (!(axes >> i & 1))
            dims[n++] = a->x[0]->type->dims[i];
    }
    dims[n] = idx_const(a->c->arith, 1);
    const Expr *dy = grad_reshape(a, a->dy[0], n + 1, dims);
    for (uint32_t i = 0; i < rank; i++)
        if (axes >> i & 1)
            dims[n] = idx_mul(a->c->arith, dims[n], a->x[0]->type->dims[i]);
    const Expr *turned = grad_transpose(a, a->x[0], rank, last);

    if (!(x = grad_reshape(a, turned, n + 1, dims)))
        return;
    others->axis = n;
    others->exclusive = true;
    before = grad1(a, "cumprod", x, others);
    behind = grad_reverse(a, grad1(a, "cumprod", grad_reverse(a, x, n), others), n);
    x = grad_like(a, grad_mul(a, dy, grad_mul(a, before, behind)), turned);
    a->dx[0] = grad_transpose(a, x, rank, back);
}

/* sum (x - mean)^2 / n, where the mean is an operand, too. */
void adjoint_variance(const Adjoint *a)
{
    const VarianceAttrs *attrs = ATTRS(VarianceAttrs, a->call);
    uint32_t             axes = axes_reduced(attrs->axis, attrs->exclude, a->x[0]->type->n);
    const Expr          *n = grad_count(a, a->x[0], axes);
    const Expr          *from_mean = grad_times(a, grad_sub(a, a->x[0], a->x[1]), 2);

    if (attrs->unbiased)
        n = grad_plus(a, n, -1);
    a->dx[0] = grad_mul(a, kept(a, grad_div(a, a->dy[0], n), axes), from_mean);
    a->dx[1] = grad_neg(a, a->dx[0]);
}

/* ---- softmax, normalization ------------------------------------------------------------------------------ */

void adjoint_softmax(const Adjoint *a)
{
    uint32_t    axis = axis_of(ATTRS(SoftmaxAttrs, a->call)->axis, a->x[0]->type->n);
    const Expr *part = grad_mul(a, a->dy[0], a->call);

    part = grad_sub(a, a->dy[0], grad_reduce(a, "sum", part, 1u << axis));
    a->dx[0] = grad_mul(a, part, a->call);
}

void adjoint_log_softmax(const Adjoint *a)
{
    uint32_t    axis = axis_of(ATTRS(SoftmaxAttrs, a->call)->axis, a->x[0]->type->n);
    const Expr *sum = grad_reduce(a, "sum", a->dy[0], 1u << axis);

    a->dx[0] = grad_sub(a, a->dy[0], grad_mul(a, grad1(a, "exp", a->call, NULL), sum));
}

void adjoint_layer_norm(const Adjoint *a)
{
    const LayerNormAttrs *attrs = ATTRS(LayerNormAttrs, a->call);
    const Expr           *x = a->x[0], *dy = a->dy[0], *d, *rate, *at, *g;
    uint32_t              n = x->type->n, axis = axis_of(attrs->axis, n);
    uint32_t              axes = ((1u << n) - 1) & ~((1u << axis) - 1);

    d = grad_sub(a, x, grad_reduce(a, "mean", x, axes));
    rate = grad_reduce(a, "mean", grad_mul(a, d, d), axes);
    rate = grad1(a, "rsqrt", grad_plus(a, rate, attrs->epsilon), NULL);
    at = grad_mul(a, d, rate); /* normalized */
    g = attrs->scale ? grad_mul(a, dy, a->x[1]) : dy;
    a->dx[0] = grad_sub(a, g, grad_reduce(a, "mean", g, axes));
    g = grad_mul(a, at, grad_reduce(a, "mean", grad_mul(a, g, at), axes));
    a->dx[0] = grad_mul(a, rate, grad_sub(a, a->dx[0], g));
    a->dx[1] = attrs->scale ? grad_mul(a, dy, at) : NULL;
    a->dx[2] = attrs->center ? dy : NULL;
}

/* ---- along an axis ---------------------------------------------------------------------------------------- */

/* What a cell adds to is all that comes after it. */
void adjoint_cumsum(const Adjoint *a)
{
    const ScanAttrs *attrs = ATTRS(ScanAttrs, a->call);
    uint32_t         axis = axis_of(attrs->axis, a->x[0]->type->n);
    const Expr      *back = grad1(a, "cumsum", grad_reverse(a, a->dy[0], axis), attrs);

    a->dx[0] = grad_reverse(a, back, axis);
}

void adjoint_topk(const Adjoint *a)
{
    TopKAttrs  *both = arena_dup(a->c->arena, a->call->u.attrs, sizeof *both);
    uint32_t    axis = axis_of(both->axis, a->x[0]->type->n);
    const Expr *top;

    if (!strcmp(both->ret_type, "indices"))
        return;
    both->ret_type = intern(a->c->strings, "both");
    if ((top = grad1(a, "topk", a->x[0], both)))
        a->dx[0] = grad_scatter(a, a->x[0], expr_proj(a->c, top, 1, a->loc), a->dy[0], axis);
}

void adjoint_sort(const Adjoint *a)
{
    const SortAttrs *attrs = ATTRS(SortAttrs, a->call);

    a->dx[0] = grad_scatter(a, a->x[0], grad1(a, "argsort", a->x[0], attrs), a->dy[0],
                            axis_of(attrs->axis, a->x[0]->type->n));
}
