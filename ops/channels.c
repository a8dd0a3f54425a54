/* Numbers of channels: biases, slopes, scales, zero points.
 *
 * In plain layouts they go along a dimension of the data.  With layout NCHW8c the channel of a cell
 * is 8 times dimension 1 plus dimension 4; lanes past the last number get 0. */
#include "ops/common.h"

bool rel_channels(Ctx *c, Loc loc, const Type *data, const Type *numbers, ChannelAxis l,
                  const char *what)
{
    int64_t  n, block = 0, blocks, lanes;
    uint32_t at;

    if (!rel_rank(c, loc, numbers, 1, what) ||
        (*l.layout && !rel_layout(c, loc, l.layout, "NCHW", &block)))
        return false;
    if (!block)
        return rel_axis(c, loc, l.axis, data->n, &at) &&
               rel_dims_equal(c, loc, data->dims[at], numbers->dims[0], "channels and numbers");
    if (!rel_rank(c, loc, data, 5, "data") || !rel_dim(c, loc, data, 1, &blocks) ||
        !rel_dim(c, loc, data, 4, &lanes) || !rel_dim(c, loc, numbers, 0, &n))
        return false;
    if (lanes != block)
        return error_at(c, E_TYPE, loc, "blocks of %lld channels and layout %s", (long long)lanes,
                        l.layout);
    return blocks == (n + block - 1) / block ||
           error_at(c, E_TYPE, loc, "%lld blocks of channels and %lld numbers", (long long)blocks,
                    (long long)n);
}

const Prim *te_of_channel(Ctx *c, const Tensor *numbers, const Axes *a, ChannelAxis l, DType t)
{
    const Idx  *at;
    const Prim *x;
    int64_t     block = 0, n;

    if (!*l.layout || !layout_block(l.layout, "NCHW", &block) || !block)
        return prim_cast(c, t, te_at(c, numbers, &a->at[axis_of(l.axis, a->n)]));
    at = idx_add(c->arith, idx_mulc(c->arith, a->at[1], block), a->at[4]);
    x = prim_cast(c, t, te_at(c, numbers, &at));
    if (idx_is_const(numbers->buffer->extent[0], &n) && n % block == 0)
        return x;
    return prim_select(c, te_between(c, idx_const(c->arith, 0), at, numbers->buffer->extent[0]), x,
                       prim_num(c, t, 0));
}
