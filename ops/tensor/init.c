/* Tensors from nothing: full, zeros, ones, arange; shape_of, and dimensions as numbers: dim_values.
 *
 *     %0 = arange(stop=8.0, dtype=i64);        %1 = full(%s, shape=[2, 3], dtype=f32);
 *     %2 = dim_values(dims=[N, 2*N+1]); */
#include "ops/common.h"

#include <math.h>

static const Type *rel_shape(Ctx *c, Loc loc, const InitAttrs *a)
{
    if (!rel_dims(c, loc, "shape", a->shape, a->shape.n, 0))
        return NULL;
    return rel_tensor(c, loc, a->dtype, a->shape.n, a->shape.at);
}

const Type *rel_zeros(Ctx *c, Loc loc, const void *attrs, const Type *const *in, uint32_t nin)
{
    (void)in;
    (void)nin;
    return rel_shape(c, loc, attrs);
}

/* The result has the operand's type. */
const Type *rel_full(Ctx *c, Loc loc, const void *attrs, const Type *const *in, uint32_t nin)
{
    const InitAttrs *a = attrs;
    int64_t          n;

    if (!rel_tensors(c, loc, in, nin))
        return NULL;
    if (!type_elems(in[0], &n) || n != 1 || in[0]->n > 1)
        return error_at(c, E_TYPE, loc, "the value must be a scalar, not %s", type_text(c, in[0]));
    if (!dtype_eq(in[0]->dtype, a->dtype))
        return error_at(c, E_TYPE, loc, "a value of type %s for a tensor of %s",
                        dtype_text(c, in[0]->dtype), dtype_text(c, a->dtype));
    return rel_shape(c, loc, a);
}

const Type *rel_arange(Ctx *c, Loc loc, const void *attrs, const Type *const *in, uint32_t nin)
{
    const ArangeAttrs *a = attrs;
    double             n = ceil((a->stop - a->start) / a->step);
    int64_t            dim;

    (void)in;
    (void)nin;
    if (a->cells.n)
        return rel_dims(c, loc, "cells", a->cells, 1, 0)
                   ? rel_tensor(c, loc, a->dtype, 1, a->cells.at)
                   : NULL;
    if (!(n < 2147483648.0) || a->step == 0 || dtype_is_bool(a->dtype))
        return error_at(c, E_TYPE, loc, "a range from %g to %g by %g", a->start, a->stop, a->step);
    dim = n > 0 ? (int64_t)n : 0;
    return rel_tensor_i64(c, loc, a->dtype, 1, &dim);
}

const Type *rel_dim_values(Ctx *c, Loc loc, const void *attrs, const Type *const *in, uint32_t nin)
{
    const DimValuesAttrs *a = attrs;
    int64_t               n = a->dims.n;

    (void)in;
    (void)nin;
    if (!dtype_is_int(a->dtype))
        return error_at(c, E_TYPE, loc, "dimensions of type %s", dtype_text(c, a->dtype));
    return rel_tensor_i64(c, loc, a->dtype, 1, &n);
}

const Type *rel_shape_of(Ctx *c, Loc loc, const void *attrs, const Type *const *in, uint32_t nin)
{
    const ShapeOfAttrs *a = attrs;
    int64_t             n;

    if (!rel_tensors(c, loc, in, nin))
        return NULL;
    if (!dtype_is_int(a->dtype))
        return error_at(c, E_TYPE, loc, "a shape of type %s", dtype_text(c, a->dtype));
    n = in[0]->n;
    return rel_tensor_i64(c, loc, a->dtype, 1, &n);
}

/* ---- compute ------------------------------------------------------------------------------------- */

bool te_full(Ctx *c, const OpCall *call, const Tensor *const *in, const Tensor **out)
{
    Axes       a = te_axes_of(c, call->out[0]);
    const Idx *zero = idx_const(c->arith, 0);

    return te_out(c, call, &a, te_at(c, in[0], &zero), out);
}

static bool number(Ctx *c, const OpCall *call, double v, const Tensor **out)
{
    Axes a = te_axes_of(c, call->out[0]);

    return te_out(c, call, &a, prim_num(c, call->out[0]->dtype, v), out);
}

bool te_zeros(Ctx *c, const OpCall *call, const Tensor *const *in, const Tensor **out)
{
    (void)in;
    return number(c, call, 0, out);
}

bool te_ones(Ctx *c, const OpCall *call, const Tensor *const *in, const Tensor **out)
{
    (void)in;
    return number(c, call, 1, out);
}

/* start + i * step */
bool te_arange(Ctx *c, const OpCall *call, const Tensor *const *in, const Tensor **out)
{
    const ArangeAttrs *attrs = call->attrs;
    DType              t = call->out[0]->dtype;
    Axes               a = te_axes_of(c, call->out[0]);
    const Prim        *x = te_number(c, t, a.at[0]);

    (void)in;
    x = prim_mul(c, x, prim_num(c, t, attrs->step));
    return te_out(c, call, &a, prim_add(c, x, prim_num(c, t, attrs->start)), out);
}

/* One of these numbers a cell. */
static bool listed(Ctx *c, const OpCall *call, uint32_t n, const Idx *const *dims,
                   const Tensor **out)
{
    DType       dtype = call->out[0]->dtype;
    Axes        a = te_axes_of(c, call->out[0]);
    const Prim *x = prim_int(c, dtype, 0);

    for (uint32_t i = n; i-- > 0;) {
        const Prim *dim = prim_index(c, dtype, dims[i]);
        Pred        here = pred_and(c->arith, c->arena, PRED_TRUE,
                                    idx_sub(c->arith, idx_const(c->arith, i), a.at[0]));

        x = i + 1 == n ? dim : prim_select(c, pred_prim(c, here), dim, x);
    }
    return te_out(c, call, &a, x, out);
}

bool te_shape_of(Ctx *c, const OpCall *call, const Tensor *const *in, const Tensor **out)
{
    (void)in;
    return listed(c, call, call->in[0]->n, call->in[0]->dims, out);
}

bool te_dim_values(Ctx *c, const OpCall *call, const Tensor *const *in, const Tensor **out)
{
    const DimValuesAttrs *attrs = call->attrs;

    (void)in;
    return listed(c, call, attrs->dims.n, attrs->dims.at, out);
}
