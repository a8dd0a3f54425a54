/* nn.batch_norm and nn.dropout as they are when a model runs, not learns.
 *
 *     %5 = nn.batch_norm(%x, %gamma, %beta, %mean, %var, epsilon=1e-05);      // (out, mean, var)
 *
 * becomes one multiply and one add for each channel; constant folding computes the factors:
 *
 *     %a = gamma / sqrt(var + epsilon);   out = x * %a + (beta - mean * %a) */
#include "ops/common.h"

const Type *rel_batch_norm(Ctx *c, Loc loc, const void *attrs, const Type *const *in, uint32_t nin)
{
    const BatchNormAttrs *a = attrs;
    const Type           *fields[3];
    uint32_t              axis;

    if (!rel_tensors(c, loc, in, nin) || !rel_axis(c, loc, a->axis, in[0]->n, &axis))
        return NULL;
    for (uint32_t i = 1; i < nin; i++)
        if (!rel_rank(c, loc, in[i], 1, "scale, shift, mean and variance") ||
            !rel_same_dtype(c, loc, in[0], in[i]) ||
            !rel_dims_equal(c, loc, in[0]->dims[axis], in[i]->dims[0], "channels and parameters"))
            return NULL;
    if (!dtype_is_float(in[0]->dtype))
        return error_at(c, E_TYPE, loc, "batch normalization of %s", dtype_text(c, in[0]->dtype));
    fields[0] = in[0];
    fields[1] = in[3];
    fields[2] = in[4];
    return type_tuple(c, 3, fields);
}

/* A vector along `axis`, with dimensions of 1 behind it. */
static const Expr *along(Ctx *c, const Expr *v, uint32_t axis, uint32_t ndim, Loc loc)
{
    ExpandDimsAttrs *a = NEW_ATTRS(c, ExpandDimsAttrs);

    if (axis + 1 == ndim)
        return v;
    a->axis = 1;
    a->num_newaxis = ndim - 1 - axis;
    return call1(c, "expand_dims", v, a, loc);
}

const Expr *expand_batch_norm(Ctx *c, const Expr *e)
{
    const BatchNormAttrs *a = ATTRS(BatchNormAttrs, e);
    const Expr           *x = call_arg(e, 0), *mean = call_arg(e, 3), *var = call_arg(e, 4);
    uint32_t              ndim = x->type->n, axis = axis_of(a->axis, ndim);
    const Expr           *eps = expr_scalar(c, x->type->dtype, a->epsilon);
    const Expr *factor = call1(c, "sqrt", call2(c, "add", var, eps, NULL, e->loc), NULL, e->loc);
    const Expr *one = expr_scalar(c, x->type->dtype, 1), *zero = expr_scalar(c, x->type->dtype, 0);

    factor = call2(c, "divide", a->scale ? call_arg(e, 1) : one, factor, NULL, e->loc);
    const Expr *shift = call2(c, "subtract", a->center ? call_arg(e, 2) : zero,
                              call2(c, "multiply", mean, factor, NULL, e->loc), NULL, e->loc);
    const Expr *y = call2(c, "multiply", x, along(c, factor, axis, ndim, e->loc), NULL, e->loc);

    y = call2(c, "add", y, along(c, shift, axis, ndim, e->loc), NULL, e->loc);
    return y ? expr_tuple(c, 3, (const Expr *[]){y, mean, var}, e->loc) : NULL;
}

/* ---- nn.dropout: the identity, with a mask of ones
 * ------------------------------------------------- */

const Type *rel_dropout(Ctx *c, Loc loc, const void *attrs, const Type *const *in, uint32_t nin)
{
    (void)attrs;
    return rel_tensors(c, loc, in, nin) ? type_tuple(c, 2, (const Type *[]){in[0], in[0]}) : NULL;
}

const Expr *expand_dropout(Ctx *c, const Expr *e)
{
    const Expr *x = call_arg(e, 0);
    const Expr *one = expr_scalar(c, x->type->dtype, 1);
    InitAttrs  *a = NEW_ATTRS(c, InitAttrs);

    a->shape = dims_dup(c, x->type->dims, x->type->n);
    a->dtype = x->type->dtype;
    const Expr *mask = call1(c, "full", one, a, e->loc);

    return mask ? expr_tuple(c, 2, (const Expr *[]){x, mask}, e->loc) : NULL;
}
