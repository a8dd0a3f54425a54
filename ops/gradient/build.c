/* Steps that several adjoints take. */
#include "ops/gradient/gradient.h"

static const Expr *filled(const Build *b, const char *op, double v, const Type *t)
{
    InitAttrs *attrs;

    if (!t->n)
        return expr_scalar(b->c, t->dtype, v);
    attrs = NEW_ATTRS(b->c, InitAttrs);
    attrs->shape = dims_dup(b->c, t->dims, t->n);
    attrs->dtype = t->dtype;
    return build_call(b, op, 0, NULL, attrs);
}

const Expr *grad_zeros(const Build *b, const Type *t)
{
    return filled(b, "zeros", 0, t);
}

const Expr *grad_ones(const Build *b, const Type *t)
{
    return filled(b, "ones", 1, t);
}

const Expr *grad_like(const Build *b, const Expr *x, const Expr *like)
{
    return build_reshape_to(b, x, like->type->n, like->type->dims);
}

const Expr *grad_reduce(const Build *b, const char *op, const Expr *x, uint32_t axes)
{
    int64_t  at[TE_MAX_AXES];
    uint32_t n = 0;

    for (uint32_t i = 0; x && i < x->type->n; i++)
        if (axes >> i & 1)
            at[n++] = i;
    return n ? build_reduce(b, op, x, n, at, true) : x; /* [] would be all */
}

const Expr *grad_fit(const Build *b, const Expr *x, const Type *t)
{
    const Idx *dims[TE_MAX_AXES], *one = idx_const(b->c->arith, 1);
    uint32_t   axes = 0, more, n = 0;

    if (!x || expr_has_forms(x, t->n, t->dims))
        return x;
    more = x->type->n > t->n ? x->type->n - t->n : 0;
    for (uint32_t i = 0; i < x->type->n; i++) {
        uint32_t k = i - more + (t->n > x->type->n ? t->n - x->type->n : 0);
        bool     summed = i < more || (t->dims[k] == one && x->type->dims[i] != one);

        axes |= (uint32_t)summed << i;
        if (i >= more)
            dims[n++] = summed ? one : x->type->dims[i];
    }
    x = build_reshape_to(b, grad_reduce(b, "sum", x, axes), n, dims);
    return build_broadcast_to(b, x, t->n, t->dims);
}

const Expr *grad_count(const Build *b, const Expr *x, uint32_t axes)
{
    const Idx      *n = idx_const(b->c->arith, 1);
    DimValuesAttrs *attrs;
    int64_t         v;

    for (uint32_t i = 0; i < x->type->n; i++)
        if (axes >> i & 1)
            n = idx_mul(b->c->arith, n, x->type->dims[i]);
    if (idx_is_const(n, &v))
        return build_scalar(b, x, (double)v);
    attrs = NEW_ATTRS(b->c, DimValuesAttrs);
    attrs->dims = dims_dup(b->c, &n, 1);
    return build_reshape_to(
        b, build_cast(b, build_call(b, "dim_values", 0, NULL, attrs), x->type->dtype), 0, NULL);
}

const Expr *grad_reverse(const Build *b, const Expr *x, uint32_t axis)
{
    ReverseAttrs *attrs = NEW_ATTRS(b->c, ReverseAttrs);

    attrs->axis = axis;
    return build1(b, "reverse", x, attrs);
}

const Expr *grad_scatter(const Build *b, const Expr *like, const Expr *indices, const Expr *updates,
                         uint32_t axis)
{
    ScatterElementsAttrs *attrs = NEW_ATTRS(b->c, ScatterElementsAttrs);

    attrs->axis = axis;
    attrs->reduction = intern(b->c->strings, "add");
    return build3(b, "scatter_elements", grad_zeros(b, like->type), indices, updates, attrs);
}
