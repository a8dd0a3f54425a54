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
        dims[i] = axes >> i & 1 ? idx_const(a->b->c->arith, 1) : t->dims[i];
    return build_reshape_to(a->b, y, t->n, dims);
}

void adjoint_sum(const Adjoint *a)
{
    a->dx[0] = kept(a, a->dy[0], axes_of_call(a));
}

void adjoint_mean(const Adjoint *a)
{
    uint32_t axes = axes_of_call(a);

    a->dx[0] = kept(a, build_div(a->b, a->dy[0], grad_count(a->b, a->x[0], axes)), axes);
}

const Expr *grad_of_extremum(const Adjoint *a, const Expr *x, uint32_t axes)
{
    const Expr *is = build2(a->b, "equal", x, kept(a, a->call, axes), NULL);
    const Expr *share, *dy = kept(a, a->dy[0], axes);

    if (!is)
        return NULL;
    is = build_cast(a->b, is, x->type->dtype);
    share = build_div(a->b, dy, grad_reduce(a->b, "sum", is, axes));
    return build_mul(a->b, share, is);
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
    ScanAttrs  *others = NEW_ATTRS(a->b->c, ScanAttrs);
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
    dims[n] = idx_const(a->b->c->arith, 1);
    const Expr *dy = build_reshape_to(a->b, a->dy[0], n + 1, dims);
    for (uint32_t i = 0; i < rank; i++)
        if (axes >> i & 1)
            dims[n] = idx_mul(a->b->c->arith, dims[n], a->x[0]->type->dims[i]);
    const Expr *turned = build_transpose(a->b, a->x[0], rank, last);

    if (!(x = build_reshape_to(a->b, turned, n + 1, dims)))
        return;
    others->axis = n;
    others->exclusive = true;
    before = build1(a->b, "cumprod", x, others);
    behind = grad_reverse(a->b, build1(a->b, "cumprod", grad_reverse(a->b, x, n), others), n);
    x = grad_like(a->b, build_mul(a->b, dy, build_mul(a->b, before, behind)), turned);
    a->dx[0] = build_transpose(a->b, x, rank, back);
}

/* sum (x - mean)^2 / n, where the mean is an operand, too. */
void adjoint_variance(const Adjoint *a)
{
    const VarianceAttrs *attrs = ATTRS(VarianceAttrs, a->call);
    uint32_t             axes = axes_reduced(attrs->axis, attrs->exclude, a->x[0]->type->n);
    const Expr          *n = grad_count(a->b, a->x[0], axes);
    const Expr *from_mean = build_by(a->b, "multiply", build_sub(a->b, a->x[0], a->x[1]), 2);

    if (attrs->unbiased)
        n = build_by(a->b, "add", n, -1);
    a->dx[0] = build_mul(a->b, kept(a, build_div(a->b, a->dy[0], n), axes), from_mean);
    a->dx[1] = build1(a->b, "negative", a->dx[0], NULL);
}

/* ---- softmax, normalization ------------------------------------------------------------------------------ */

void adjoint_softmax(const Adjoint *a)
{
    uint32_t    axis = axis_of(ATTRS(SoftmaxAttrs, a->call)->axis, a->x[0]->type->n);
    const Expr *part = build_mul(a->b, a->dy[0], a->call);

    part = build_sub(a->b, a->dy[0], grad_reduce(a->b, "sum", part, 1u << axis));
    a->dx[0] = build_mul(a->b, part, a->call);
}

void adjoint_log_softmax(const Adjoint *a)
{
    uint32_t    axis = axis_of(ATTRS(SoftmaxAttrs, a->call)->axis, a->x[0]->type->n);
    const Expr *sum = grad_reduce(a->b, "sum", a->dy[0], 1u << axis);

    a->dx[0] = build_sub(a->b, a->dy[0], build_mul(a->b, build1(a->b, "exp", a->call, NULL), sum));
}

void adjoint_layer_norm(const Adjoint *a)
{
    const LayerNormAttrs *attrs = ATTRS(LayerNormAttrs, a->call);
    const Expr           *x = a->x[0], *dy = a->dy[0], *d, *rate, *at, *g;
    uint32_t              n = x->type->n, axis = axis_of(attrs->axis, n);
    uint32_t              axes = ((1u << n) - 1) & ~((1u << axis) - 1);

    d = build_sub(a->b, x, grad_reduce(a->b, "mean", x, axes));
    rate = grad_reduce(a->b, "mean", build_mul(a->b, d, d), axes);
    rate = build1(a->b, "rsqrt", build_by(a->b, "add", rate, attrs->epsilon), NULL);
    at = build_mul(a->b, d, rate); /* normalized */
    g = attrs->scale ? build_mul(a->b, dy, a->x[1]) : dy;
    a->dx[0] = build_sub(a->b, g, grad_reduce(a->b, "mean", g, axes));
    g = build_mul(a->b, at, grad_reduce(a->b, "mean", build_mul(a->b, g, at), axes));
    a->dx[0] = build_mul(a->b, rate, build_sub(a->b, a->dx[0], g));
    a->dx[1] = attrs->scale ? build_mul(a->b, dy, at) : NULL;
    a->dx[2] = attrs->center ? dy : NULL;
}

/* ---- along an axis ---------------------------------------------------------------------------------------- */

/* What a cell adds to is all that comes after it. */
void adjoint_cumsum(const Adjoint *a)
{
    const ScanAttrs *attrs = ATTRS(ScanAttrs, a->call);
    uint32_t         axis = axis_of(attrs->axis, a->x[0]->type->n);
    const Expr      *back = build1(a->b, "cumsum", grad_reverse(a->b, a->dy[0], axis), attrs);

    a->dx[0] = grad_reverse(a->b, back, axis);
}

void adjoint_topk(const Adjoint *a)
{
    TopKAttrs  *both = arena_dup(a->b->c->arena, a->call->u.attrs, sizeof *both);
    uint32_t    axis = axis_of(both->axis, a->x[0]->type->n);
    const Expr *top;

    if (!strcmp(both->ret_type, "indices"))
        return;
    both->ret_type = intern(a->b->c->strings, "both");
    if ((top = build1(a->b, "topk", a->x[0], both)))
        a->dx[0] =
            grad_scatter(a->b, a->x[0], expr_proj(a->b->c, top, 1, a->b->loc), a->dy[0], axis);
}

void adjoint_sort(const Adjoint *a)
{
    const SortAttrs *attrs = ATTRS(SortAttrs, a->call);

    a->dx[0] = grad_scatter(a->b, a->x[0], build1(a->b, "argsort", a->x[0], attrs), a->dy[0],
                            axis_of(attrs->axis, a->x[0]->type->n));
}
