/* transpose: dimensions in another order.                  %1 = transpose(%0, axes=[0, 2, 1]); */
#include "ops/common.h"

/* Where each dimension of the result comes from. */
static uint32_t source(Ints axes, uint32_t ndim, uint32_t i)
{
    return axes.n ? axis_of(axes.at[i], ndim) : ndim - 1 - i;
}

const Type *rel_transpose(Ctx *c, Loc loc, const void *attrs, const Type *const *in, uint32_t nin)
{
    const TransposeAttrs *a = attrs;
    const Idx            *dims[TE_MAX_AXES];
    uint32_t              set;

    if (!rel_tensors(c, loc, in, nin) || !rel_axes(c, loc, a->axes, in[0]->n, &set))
        return NULL;
    if (a->axes.n && a->axes.n != in[0]->n)
        return error_at(c, E_TYPE, loc, "'axes' names %u dimensions of %s", a->axes.n,
                        type_text(c, in[0]));
    for (uint32_t i = 0; i < in[0]->n; i++)
        dims[i] = in[0]->dims[source(a->axes, in[0]->n, i)];
    return rel_tensor(c, loc, in[0]->dtype, in[0]->n, dims);
}

bool te_transpose(Ctx *c, const OpCall *call, const Tensor *const *in, const Tensor **out)
{
    const TransposeAttrs *attrs = call->attrs;
    Axes                  a = te_axes_of(c, call->out[0]);
    const Idx            *at[TE_MAX_AXES];

    for (uint32_t i = 0; i < a.n; i++)
        at[source(attrs->axes, a.n, i)] = a.at[i];
    return te_out(c, call, &a, te_at(c, in[0], at), out);
}
