/* Activations that are one expression.                     %1 = nn.leaky_relu(%0, alpha=0.1);
 *
 * ReLU is select(0 > x, 0, x), not a maximum: one instruction, and NaN stays NaN. */
#include "ops/common.h"

const Type *rel_prelu(Ctx *c, Loc loc, const void *attrs, const Type *const *in, uint32_t nin)
{
    const PReluAttrs *a = attrs;
    uint32_t          axis;

    if (!rel_tensors(c, loc, in, nin) || !rel_same_dtype(c, loc, in[0], in[1]) ||
        !rel_number(c, loc, in[0]) || !rel_rank(c, loc, in[1], 1, "slope") ||
        !rel_axis(c, loc, a->axis, in[0]->n, &axis) ||
        !rel_dims_equal(c, loc, in[0]->dims[axis], in[1]->dims[0], "channels and slopes"))
        return NULL;
    return in[0];
}

bool te_relu(Ctx *c, const OpCall *call, const Tensor *const *in, const Tensor **out)
{
    Axes        a = te_axes_of(c, call->out[0]);
    const Prim *x = te_in(c, in[0], &a);

    return te_out(c, call, &a, te_at_least(c, x, prim_num(c, x->dtype, 0)), out);
}

static const Prim *leaky(Ctx *c, const Prim *x, const Prim *slope)
{
    return prim_select(c, prim_lt(c, x, prim_num(c, x->dtype, 0)), prim_mul(c, x, slope), x);
}

bool te_leaky_relu(Ctx *c, const OpCall *call, const Tensor *const *in, const Tensor **out)
{
    const LeakyReluAttrs *attrs = call->attrs;
    Axes                  a = te_axes_of(c, call->out[0]);
    const Prim           *x = te_in(c, in[0], &a);

    return te_out(c, call, &a, leaky(c, x, prim_num(c, x->dtype, attrs->alpha)), out);
}

bool te_prelu(Ctx *c, const OpCall *call, const Tensor *const *in, const Tensor **out)
{
    const PReluAttrs *attrs = call->attrs;
    Axes              a = te_axes_of(c, call->out[0]);
    const Idx        *channel = a.at[axis_of(attrs->axis, a.n)];

    return te_out(c, call, &a, leaky(c, te_in(c, in[0], &a), te_at(c, in[1], &channel)), out);
}
