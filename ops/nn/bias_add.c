/* nn.bias_add: one number added to each channel.           %2 = nn.bias_add(%0, %1, axis=1);
 *
 * nn.prelu (activation.c) has its operands in the same way. */
#include "ops/common.h"

const Type *rel_bias_add(Ctx *c, Loc loc, const void *attrs, const Type *const *in, uint32_t nin)
{
    const BiasAddAttrs *a = attrs;

    if (!rel_tensors(c, loc, in, nin) || !rel_same_dtype(c, loc, in[0], in[1]) ||
        !rel_number(c, loc, in[0]) ||
        !rel_channels(c, loc, in[0], in[1], CHANNEL_AXIS(a), "biases or slopes"))
        return NULL;
    return in[0];
}

bool te_bias_add(Ctx *c, const OpCall *call, const Tensor *const *in, const Tensor **out)
{
    const BiasAddAttrs *attrs = call->attrs;
    DType               t = call->out[0]->dtype;
    Axes                a = te_axes_of(c, call->out[0]);
    const Prim         *x = te_in(c, in[0], &a);

    x = prim_add(c, x, te_of_channel(c, in[1], &a, CHANNEL_AXIS(attrs), t));
    out[0] = te_compute(c, "bias", t, a, x);
    return true;
}
