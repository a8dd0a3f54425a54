/* nn.bias_add: one number added to each channel.           %2 = nn.bias_add(%0, %1, axis=1);
 *
 * With layout NCHW8c the channel of a cell is 8 times dimension 1 plus dimension 4; lanes past the
 * last number get 0, so that they stay zero.  nn.prelu has its operands in the same way. */
#include "ops/common.h"

const Type *rel_channels(Ctx *c, Loc loc, const void *attrs, const Type *const *in, uint32_t nin)
{
    const BiasAddAttrs *a = attrs;
    uint32_t            axis;
    int64_t             block;

    if (!rel_tensors(c, loc, in, nin) || !rel_same_dtype(c, loc, in[0], in[1]) ||
        !rel_number(c, loc, in[0]) || !rel_rank(c, loc, in[1], 1, "bias or slope"))
        return NULL;
    if (*a->layout && !rel_layout(c, loc, a->layout, "NCHW", &block))
        return NULL;
    if (*a->layout && block) {
        int64_t blocks, n;

        if (!rel_rank(c, loc, in[0], 5, "data") || !rel_dim(c, loc, in[0], 1, &blocks) ||
            !rel_dim(c, loc, in[1], 0, &n))
            return NULL;
        if (blocks != (n + block - 1) / block)
            return error_at(c, E_TYPE, loc, "%lld blocks of channels and %lld numbers",
                            (long long)blocks, (long long)n);
        return in[0];
    }
    if (!rel_axis(c, loc, a->axis, in[0]->n, &axis) ||
        !rel_dims_equal(c, loc, in[0]->dims[axis], in[1]->dims[0], "channels and numbers"))
        return NULL;
    return in[0];
}

const Prim *te_of_channel(Ctx *c, const OpCall *call, const Tensor *numbers, const Axes *a)
{
    const BiasAddAttrs *attrs = call->attrs;
    const Idx          *ch;
    const Prim         *v;
    int64_t             block = 0, n;

    if (!*attrs->layout || !layout_block(attrs->layout, "NCHW", &block) || !block)
        return te_at(c, numbers, &a->at[axis_of(attrs->axis, a->n)]);
    ch = idx_add(c->arith, idx_mulc(c->arith, a->at[1], block), a->at[4]);
    v = te_at(c, numbers, &ch);
    n = dim_of(call->in[1], 0);
    if (n % block == 0)
        return v;
    return prim_select(c, te_between(c, idx_const(c->arith, 0), ch, idx_const(c->arith, n)), v,
                       prim_num(c, v->dtype, 0));
}

bool te_bias_add(Ctx *c, const OpCall *call, const Tensor *const *in, const Tensor **out)
{
    Axes        a = te_axes_of(c, call->out[0]);
    const Prim *x = te_in(c, in[0], &a);

    x = prim_add(c, x, te_of_channel(c, call, in[1], &a));
    out[0] = te_compute(c, "bias", call->out[0]->dtype, a, x);
    return true;
}
