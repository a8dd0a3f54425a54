/* Activations that are one expression.                     %1 = nn.leaky_relu(%0, alpha=0.1);
 *
 * ReLU is select(0 > x, 0, x), not a maximum: one instruction, and NaN stays NaN. */
#include "ops/common.h"

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
    const BiasAddAttrs *attrs = call->attrs;
    Axes                a = te_axes_of(c, call->out[0]);
    const Prim         *x = te_in(c, in[0], &a);

    return te_out(c, call, &a,
                  leaky(c, x, te_of_channel(c, in[1], &a, CHANNEL_AXIS(attrs), x->dtype)), out);
}
