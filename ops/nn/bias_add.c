/* nn.bias_add: one number added to each channel.           %2 = nn.bias_add(%0, %1, axis=1);
 *
 * With layout NCHW8c the channel of a cell is 8 times dimension 1 plus dimension 4; lanes past the
 * last bias get nothing added, so that they stay zero. */
#include "ops/common.h"

const Type *rel_bias_add(Ctx *c, Loc loc, const void *attrs, const Type *const *in, uint32_t nin)
{
    const BiasAddAttrs *a = attrs;
    uint32_t            axis;
    int64_t             block;

    if (!rel_tensors(c, loc, in, nin) || !rel_same_dtype(c, loc, in[0], in[1]) ||
        !rel_number(c, loc, in[0]) || !rel_rank(c, loc, in[1], 1, "bias"))
        return NULL;
    if (*a->layout && !rel_layout(c, loc, a->layout, "NCHW", &block))
        return NULL;
    if (*a->layout && block) {
        int64_t blocks, n;

        if (!rel_rank(c, loc, in[0], 5, "data") || !rel_dim(c, loc, in[0], 1, &blocks) ||
            !rel_dim(c, loc, in[1], 0, &n))
            return NULL;
        if (blocks != (n + block - 1) / block)
            return error_at(c, E_TYPE, loc, "%lld blocks of channels and %lld biases",
                            (long long)blocks, (long long)n);
        return in[0];
    }
    if (!rel_axis(c, loc, a->axis, in[0]->n, &axis) ||
        !rel_dims_equal(c, loc, in[0]->dims[axis], in[1]->dims[0], "channels and biases"))
        return NULL;
    return in[0];
}

bool te_bias_add(Ctx *c, const OpCall *call, const Tensor *const *in, const Tensor **out)
{
    const BiasAddAttrs *attrs = call->attrs;
    Axes                a = te_axes_of(c, call->out[0]);
    const Prim         *x = te_in(c, in[0], &a), *bias;
    int64_t             block = 0;

    if (*attrs->layout && layout_block(attrs->layout, "NCHW", &block) && block) {
        const Idx *ch = idx_add(c->arith, idx_mulc(c->arith, a.at[1], block), a.at[4]);
        int64_t    n = dim_of(call->in[1], 0);

        bias = te_at(c, in[1], &ch);
        if (n % block)
            bias = prim_select(c, te_between(c, idx_const(c->arith, 0), ch, idx_const(c->arith, n)),
                               bias, prim_num(c, bias->dtype, 0));
    } else {
        bias = te_at(c, in[1], &a.at[axis_of(attrs->axis, a.n)]);
    }
    out[0] = te_compute(c, "bias", call->out[0]->dtype, a, prim_add(c, x, bias));
    return true;
}
