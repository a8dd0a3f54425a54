/* Calls of operators, for adjoints. */
#include "ops/gradient/gradient.h"

static const Expr *call(const Adjoint *a, const char *op, uint32_t n, const Expr *const *args,
                        const void *attrs)
{
    for (uint32_t i = 0; i < n; i++)
        if (!args[i])
            return NULL;
    return expr_call_name(a->c, op, n, args, attrs, a->loc);
}

const Expr *grad1(const Adjoint *a, const char *op, const Expr *x, const void *attrs)
{
    return call(a, op, 1, &x, attrs);
}

const Expr *grad2(const Adjoint *a, const char *op, const Expr *x, const Expr *y, const void *attrs)
{
    return call(a, op, 2, (const Expr *[]){x, y}, attrs);
}

const Expr *grad3(const Adjoint *a, const char *op, const Expr *x, const Expr *y, const Expr *z,
                  const void *attrs)
{
    return call(a, op, 3, (const Expr *[]){x, y, z}, attrs);
}

const Expr *grad_add(const Adjoint *a, const Expr *x, const Expr *y)
{
    return grad2(a, "add", x, y, NULL);
}

const Expr *grad_sub(const Adjoint *a, const Expr *x, const Expr *y)
{
    return grad2(a, "subtract", x, y, NULL);
}

const Expr *grad_mul(const Adjoint *a, const Expr *x, const Expr *y)
{
    return grad2(a, "multiply", x, y, NULL);
}

const Expr *grad_div(const Adjoint *a, const Expr *x, const Expr *y)
{
    return grad2(a, "divide", x, y, NULL);
}

const Expr *grad_neg(const Adjoint *a, const Expr *x)
{
    return grad1(a, "negative", x, NULL);
}

const Expr *grad_number(const Adjoint *a, const Expr *like, double v)
{
    return like ? expr_scalar(a->c, like->type->dtype, v) : NULL;
}

const Expr *grad_times(const Adjoint *a, const Expr *x, double v)
{
    return grad_mul(a, x, grad_number(a, x, v));
}

const Expr *grad_plus(const Adjoint *a, const Expr *x, double v)
{
    return grad_add(a, x, grad_number(a, x, v));
}

const Expr *grad_where(const Adjoint *a, const Expr *cond, const Expr *x, const Expr *y)
{
    return grad3(a, "where", cond, x, y, NULL);
}

const Expr *grad_compare(const Adjoint *a, const char *op, const Expr *x, double v)
{
    return grad2(a, op, x, grad_number(a, x, v), NULL);
}

const Expr *grad_cast(const Adjoint *a, const Expr *x, DType t)
{
    CastAttrs *attrs;

    if (!x || dtype_eq(x->type->dtype, t))
        return x;
    attrs = NEW_ATTRS(a->c, CastAttrs);
    attrs->dtype = t;
    return grad1(a, "cast", x, attrs);
}

/* ---- dimensions ------------------------------------------------------------------------------------- */

static const Expr *filled(const Adjoint *a, const char *op, double v, const Type *t)
{
    InitAttrs *attrs;

    if (!t->n)
        return expr_scalar(a->c, t->dtype, v);
    attrs = NEW_ATTRS(a->c, InitAttrs);
    attrs->shape = dims_dup(a->c, t->dims, t->n);
    attrs->dtype = t->dtype;
    return call(a, op, 0, NULL, attrs);
}

const Expr *grad_zeros(const Adjoint *a, const Type *t)
{
    return filled(a, "zeros", 0, t);
}

const Expr *grad_ones(const Adjoint *a, const Type *t)
{
    return filled(a, "ones", 1, t);
}

static bool dims_are(const Type *t, uint32_t n, const Idx *const *dims)
{
    bool same = t->n == n;

    for (uint32_t i = 0; i < n && same; i++)
        same = t->dims[i] == dims[i];
    return same;
}

const Expr *grad_reshape(const Adjoint *a, const Expr *x, uint32_t n, const Idx *const *dims)
{
    ReshapeAttrs *attrs;

    if (!x || dims_are(x->type, n, dims))
        return x;
    for (uint32_t i = 0; i < n; i++)
        if (dims[i]->hi == 0) /* in newshape it would say "as it was" */
            return grad_zeros(a, type_tensor(a->c, x->type->dtype, n, dims));
    attrs = NEW_ATTRS(a->c, ReshapeAttrs);
    attrs->newshape = dims_dup(a->c, dims, n);
    return grad1(a, "reshape", x, attrs);
}

const Expr *grad_like(const Adjoint *a, const Expr *x, const Expr *like)
{
    return grad_reshape(a, x, like->type->n, like->type->dims);
}

const Expr *grad_transpose(const Adjoint *a, const Expr *x, uint32_t n, const int64_t *axes)
{
    TransposeAttrs *attrs = NEW_ATTRS(a->c, TransposeAttrs);

    attrs->axes = ints_dup(a->c, axes, n);
    return grad1(a, "transpose", x, attrs);
}

const Expr *grad_reduce(const Adjoint *a, const char *op, const Expr *x, uint32_t axes)
{
    ReduceAttrs *attrs = NEW_ATTRS(a->c, ReduceAttrs);
    int64_t      at[TE_MAX_AXES];
    uint32_t     n = 0;

    for (uint32_t i = 0; x && i < x->type->n; i++)
        if (axes >> i & 1)
            at[n++] = i;
    if (!n) /* [] would be all */
        return x;
    attrs->axis = ints_dup(a->c, at, n);
    attrs->keepdims = true;
    return grad1(a, op, x, attrs);
}

const Expr *grad_fit(const Adjoint *a, const Expr *x, const Type *t)
{
    const Idx        *dims[TE_MAX_AXES], *one = idx_const(a->c->arith, 1);
    BroadcastToAttrs *attrs;
    uint32_t          axes = 0, more, n = 0;

    if (!x || dims_are(x->type, t->n, t->dims))
        return x;
    more = x->type->n > t->n ? x->type->n - t->n : 0;
    for (uint32_t i = 0; i < x->type->n; i++) {
        uint32_t k = i - more + (t->n > x->type->n ? t->n - x->type->n : 0);
        bool     summed = i < more || (t->dims[k] == one && x->type->dims[i] != one);

        axes |= (uint32_t)summed << i;
        if (i >= more)
            dims[n++] = summed ? one : x->type->dims[i];
    }
    x = grad_reshape(a, grad_reduce(a, "sum", x, axes), n, dims);
    if (!x || dims_are(x->type, t->n, t->dims))
        return x;
    attrs = NEW_ATTRS(a->c, BroadcastToAttrs);
    attrs->shape = dims_dup(a->c, t->dims, t->n);
    return grad1(a, "broadcast_to", x, attrs);
}

const Expr *grad_count(const Adjoint *a, const Expr *x, uint32_t axes)
{
    const Idx      *n = idx_const(a->c->arith, 1);
    DimValuesAttrs *attrs;
    int64_t         v;

    for (uint32_t i = 0; i < x->type->n; i++)
        if (axes >> i & 1)
            n = idx_mul(a->c->arith, n, x->type->dims[i]);
    if (idx_is_const(n, &v))
        return grad_number(a, x, (double)v);
    attrs = NEW_ATTRS(a->c, DimValuesAttrs);
    attrs->dims = dims_dup(a->c, &n, 1);
    return grad_reshape(a, grad_cast(a, call(a, "dim_values", 0, NULL, attrs), x->type->dtype), 0,
                        NULL);
}

/* ---- cells -------------------------------------------------------------------------------------------- */

const Expr *grad_slice(const Adjoint *a, const Expr *x, uint32_t axis, const Idx *begin,
                       const Idx *end)
{
    StridedSliceAttrs *attrs = NEW_ATTRS(a->c, StridedSliceAttrs);
    int64_t            at = axis;

    attrs->begin = dims_dup(a->c, &begin, 1);
    attrs->end = dims_dup(a->c, &end, 1);
    attrs->axes = ints_dup(a->c, &at, 1);
    return grad1(a, "strided_slice", x, attrs);
}

const Expr *grad_pad(const Adjoint *a, const Expr *x, const int64_t *widths)
{
    PadAttrs *attrs = NEW_ATTRS(a->c, PadAttrs);

    if (!x)
        return NULL;
    attrs->pad_width = ints_dup(a->c, widths, 2 * x->type->n);
    return ints_all(attrs->pad_width, 0) ? x : grad1(a, "nn.pad", x, attrs);
}

const Expr *grad_reverse(const Adjoint *a, const Expr *x, uint32_t axis)
{
    ReverseAttrs *attrs = NEW_ATTRS(a->c, ReverseAttrs);

    attrs->axis = axis;
    return grad1(a, "reverse", x, attrs);
}

const Expr *grad_scatter(const Adjoint *a, const Expr *like, const Expr *indices,
                         const Expr *updates, uint32_t axis)
{
    ScatterElementsAttrs *attrs = NEW_ATTRS(a->c, ScatterElementsAttrs);

    attrs->axis = axis;
    attrs->reduction = intern(a->c->strings, "add");
    return grad3(a, "scatter_elements", grad_zeros(a, like->type), indices, updates, attrs);
}
