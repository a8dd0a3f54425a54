/* nn.conv2d.             %2 = nn.conv2d(%0, %1, padding=[1, 1, 1, 1], data_layout="NCHW8c");
 *
 * Data are NCHW or NCHW<b>c, weights always OIHW (I per group); packing weights is a schedule step.
 *
 *     %pad[n, c, y, x, i] = select(the cell lies inside, %d[n, c, y-1, x-1, i], pad_value)
 *     %conv[n, o, y, x, j] = sum[c, kh, kw, i] %pad[n, c, y*s+kh, x*s+kw, i] * %w[o*8+j, c*8+i, kh,
 * kw]
 *
 * Plain layouts have no i and j; a grouped convolution with one input channel a group (depthwise)
 * has no c and i, one whose groups lie within a block no c: lane j reads lanes j/g*g + i, those of
 * its group.  Channels that do not divide the block leave surplus lanes: their weights read as
 * zero, so what they add is zero and what they give is zero.  Most are not read at all: the sum may
 * take parts of a block, i < 4 say, so that c * 4 + i is a channel; not for instructions that take
 * whole blocks (algorithm `blocks`). */
#include "ops/common.h"

#include <string.h>

static const char *const algorithms[] = {"direct", "dot4", "words", "floats", "blocks"};

static const char *layout_out(const Conv2dAttrs *a)
{
    return *a->out_layout ? a->out_layout : a->data_layout;
}

static bool conv_attrs(Ctx *c, Loc loc, const Conv2dAttrs *a, Conv2d *v)
{
    if (!rel_ints(c, loc, "strides", a->strides, 2, 1) ||
        !rel_ints(c, loc, "dilation", a->dilation, 2, 1) ||
        !rel_ints(c, loc, "padding", a->padding, 4, 0) ||
        !rel_ints(c, loc, "kernel_size", a->kernel_size, 2, 0) ||
        !rel_layout(c, loc, a->data_layout, "NCHW", &v->in_block) ||
        !rel_layout(c, loc, layout_out(a), "NCHW", &v->out_block))
        return false;
    if (strcmp(a->kernel_layout, "OIHW"))
        return error_at(c, E_TYPE, loc, "kernel layout '%s' is not OIHW", a->kernel_layout);
    for (int i = 0; i < 2; i++) {
        v->stride[i] = a->strides.at[i];
        v->dilation[i] = a->dilation.at[i];
        v->pad_lo[i] = a->padding.at[i];
        v->pad_hi[i] = a->padding.at[i + 2];
    }
    v->algorithm = CONV_DIRECT;
    while (v->algorithm < COUNT(algorithms) && strcmp(a->algorithm, algorithms[v->algorithm]))
        v->algorithm++;
    if (v->algorithm == COUNT(algorithms))
        return error_at(c, E_TYPE, loc,
                        "algorithm '%s' is not direct, dot4, words, floats or blocks",
                        a->algorithm);
    v->groups = a->groups;
    v->pad_value = a->pad_value;
    return true;
}

bool conv2d_groups_within(int64_t group_in, int64_t group_out, int64_t block)
{
    return group_in > 1 && group_in < block && block % group_in == 0 && group_out % group_in == 0 &&
           (block % group_out == 0 || group_out % block == 0);
}

/* Channels against groups and blocks, the kernel against the attributes. */
static bool conv_sizes(Ctx *c, Loc loc, const Conv2dAttrs *a, const Type *data, const Type *weight,
                       Conv2d *v)
{
    int64_t w[4], blocks;

    if (!conv_attrs(c, loc, a, v) || !rel_rank(c, loc, weight, 4, "weight") ||
        !rel_rank(c, loc, data, v->in_block ? 5 : 4, "data"))
        return false;
    for (uint32_t i = 0; i < 4; i++)
        if (!rel_dim(c, loc, weight, i, &w[i]))
            return false;
    v->out_c = w[0];
    v->group_in = w[1];
    if (v->groups < 1 || v->out_c < 1 || v->group_in < 1 || w[2] < 1 || w[3] < 1)
        return error_at(c, E_TYPE, loc, "a convolution of %lld groups with weight %s",
                        (long long)v->groups, type_text(c, weight));
    if (v->out_c % v->groups)
        return error_at(c, E_TYPE, loc, "%lld groups do not divide %lld output channels",
                        (long long)v->groups, (long long)v->out_c);
    if (a->channels && a->channels != v->out_c)
        return error_at(c, E_TYPE, loc, "channels is %lld, the weight has %lld",
                        (long long)a->channels, (long long)v->out_c);
    for (int i = 0; i < 2; i++) {
        v->k[i] = w[i + 2];
        if (a->kernel_size.at[i] && a->kernel_size.at[i] != w[i + 2])
            return error_at(c, E_TYPE, loc, "kernel_size is %lld, the weight has %lld",
                            (long long)a->kernel_size.at[i], (long long)w[i + 2]);
    }
    v->group_out = v->out_c / v->groups;
    v->in_c = v->group_in * v->groups;
    v->depthwise = v->groups > 1 && v->group_in == 1;
    if (v->algorithm != CONV_DIRECT && v->algorithm != CONV_BLOCKS &&
        (!dtype_is_int(data->dtype) || data->dtype.bits > 8))
        return error_at(c, E_TYPE, loc, "algorithm '%s' takes 8-bit integers, not %s", a->algorithm,
                        type_text(c, data));
    if (v->algorithm == CONV_FLOATS && !conv2d_sums_are_whole(v, data->dtype, weight->dtype))
        return error_at(c, E_TYPE, loc, "sums of the weight %s are not exact in f32",
                        type_text(c, weight));
    if (!rel_dim(c, loc, data, 1, &blocks))
        return false;
    if (v->in_block ? blocks != (v->in_c + v->in_block - 1) / v->in_block : blocks != v->in_c)
        return error_at(c, E_TYPE, loc, "the weight takes %lld channels, the data are %s",
                        (long long)v->in_c, type_text(c, data));
    v->within = v->groups > 1 && v->in_block == v->out_block &&
                conv2d_groups_within(v->group_in, v->group_out, v->in_block);
    bool narrow = v->groups > 1 && !v->depthwise && !v->within;
    if (v->in_block && narrow && v->group_in % v->in_block)
        return error_at(c, E_TYPE, loc, "blocks of %lld do not divide the %lld channels of a group",
                        (long long)v->in_block, (long long)v->group_in);
    if (v->out_block && narrow && v->group_out % v->out_block)
        return error_at(c, E_TYPE, loc, "blocks of %lld do not divide the %lld channels of a group",
                        (long long)v->out_block, (long long)v->group_out);
    int64_t out_lanes =
        v->out_block ? (v->out_c + v->out_block - 1) / v->out_block * v->out_block : v->out_c;

    /* A surplus lane of the output reads the lane of the input that it belongs to. */
    if ((v->depthwise || v->within) && (out_lanes - 1) / v->group_out * v->group_in + v->group_in >
                                           blocks * (v->in_block ? v->in_block : 1))
        return error_at(c, E_TYPE, loc, "a convolution of %lld groups from %s to %s",
                        (long long)v->groups, a->data_layout, layout_out(a));
    return true;
}

static DType conv_dtype(Ctx *c, Loc loc, const Conv2dAttrs *a, const Type *data, bool *ok)
{
    DType t = data->dtype;

    if (dtype_is_int(t) && t.bits == 8)
        t = DT_I32;
    *ok = rel_dtype(c, loc, a->out_dtype, t, &t);
    return t;
}

const Type *rel_conv2d(Ctx *c, Loc loc, const void *attrs, const Type *const *in, uint32_t nin)
{
    const Conv2dAttrs *a = attrs;
    const Idx         *dims[5];
    Conv2d             v;
    bool               ok;

    if (!rel_tensors(c, loc, in, nin) || !rel_number(c, loc, in[0]) || !rel_number(c, loc, in[1]) ||
        !conv_sizes(c, loc, a, in[0], in[1], &v))
        return NULL;
    DType t = conv_dtype(c, loc, a, in[0], &ok);

    if (!ok || (!dtype_is_int(in[0]->dtype) && !rel_same_dtype(c, loc, in[0], in[1])))
        return NULL;
    if (v.algorithm == CONV_FLOATS && !dtype_eq(t, DT_I32))
        return error_at(c, E_TYPE, loc, "algorithm 'floats' gives i32, not %s", dtype_text(c, t));
    dims[0] = in[0]->dims[0];
    dims[1] =
        idx_const(c->arith, v.out_block ? (v.out_c + v.out_block - 1) / v.out_block : v.out_c);
    for (uint32_t i = 0; i < 2; i++) {
        int64_t    reach = (v.k[i] - 1) * v.dilation[i];
        const Idx *room = idx_addc(c->arith, in[0]->dims[i + 2], v.pad_lo[i] + v.pad_hi[i] - reach);

        if (room->lo < 1)
            return error_at(c, E_TYPE, loc, "a kernel of %lld does not fit into dimension %u of %s",
                            (long long)reach + 1, i + 2, type_text(c, in[0]));
        dims[i + 2] =
            idx_addc(c->arith, idx_divc(c->arith, idx_addc(c->arith, room, -1), v.stride[i]), 1);
    }
    dims[4] = idx_const(c->arith, v.out_block);
    return rel_tensor(c, loc, t, v.out_block ? 5 : 4, dims);
}

/* ---- compute
 * ------------------------------------------------------------------------------------- */

static const char *const data_axes[] = {"n", "c", "y", "x", "i"};
static const char *const conv_axes[] = {"n", "o", "y", "x", "j"};

/* The padded data, or the data themselves. */
static const Tensor *padded(Ctx *c, const Conv2d *v, const Tensor *d)
{
    const Idx *dims[5], *at[5];
    uint32_t   nd = d->buffer->ndim;
    Pred       inside = PRED_TRUE;

    if (!v->pad_lo[0] && !v->pad_lo[1] && !v->pad_hi[0] && !v->pad_hi[1] &&
        v->algorithm != CONV_WORDS)
        return d;
    for (uint32_t i = 0; i < nd; i++)
        dims[i] = i == 2 || i == 3 ? idx_addc(c->arith, d->buffer->extent[i],
                                              v->pad_lo[i - 2] + v->pad_hi[i - 2])
                                   : d->buffer->extent[i];
    Axes a = te_axes(c, nd, dims, data_axes);

    for (uint32_t i = 0; i < nd; i++) {
        at[i] = a.at[i];
        if (i != 2 && i != 3)
            continue;
        at[i] = idx_addc(c->arith, a.at[i], -v->pad_lo[i - 2]);
        if (v->pad_lo[i - 2])
            inside = pred_and(c->arith, c->arena, inside, at[i]);
        if (v->pad_hi[i - 2])
            inside =
                pred_and(c->arith, c->arena, inside,
                         idx_addc(c->arith, idx_sub(c->arith, d->buffer->extent[i], at[i]), -1));
    }
    DType       t = d->buffer->dtype;
    const Prim *x = te_at(c, d, at);

    if (inside.n)
        x = prim_select(c, pred_prim(c, inside), x, prim_num(c, t, (double)v->pad_value));
    t = v->algorithm == CONV_WORDS ? DT_I16 : t;
    return te_compute(c, "pad", t, a, prim_cast(c, t, x));
}

/* How many channels the sum takes at a time: a block, or a part of one where that leaves out
 * surplus lanes, which would be multiplied by weights of zero (24 channels are three parts of 8 of
 * two blocks of 16). */
static int64_t sum_part(const Conv2d *v)
{
    int64_t best = v->in_block, sum = (v->group_in + best - 1) / best * best;

    for (int64_t p = v->in_block / 2; p >= 4 && v->in_block % p == 0; p /= 2)
        if ((v->group_in + p - 1) / p * p < sum)
            best = p, sum = (v->group_in + p - 1) / p * p;
    return best;
}

/* Where a convolution reads, for given iterators. */
typedef struct {
    const Idx *data_c, *data_i;   /* block and lane of the input channel (plain: channel) */
    const Idx *out_ch, *weight_c; /* output channel; input channel within the group */
} Channels;

static Channels channels(Ctx *c, const Conv2d *v, const Axes *a, const Axes *r)
{
    Arith   *A = c->arith;
    Channels ch = {0};

    ch.out_ch = v->out_block ? idx_add(A, idx_mulc(A, a->at[1], v->out_block), a->at[4]) : a->at[1];
    const Idx *group = idx_divc(A, ch.out_ch, v->group_out);

    if (v->depthwise) {
        ch.weight_c = idx_const(A, 0);
        ch.data_c = group; /* the group's only channel */
        if (v->in_block) {
            ch.data_c = idx_divc(A, group, v->in_block);
            ch.data_i = idx_modc(A, group, v->in_block);
        }
        return ch;
    }
    if (v->within) {
        const Idx *ch_in = idx_add(A, idx_mulc(A, group, v->group_in), r->at[2]);

        ch.weight_c = r->at[2];
        ch.data_c = idx_divc(A, ch_in, v->in_block);
        ch.data_i = idx_modc(A, ch_in, v->in_block);
        return ch;
    }
    const Idx *rc = r->at[0];

    if (v->groups == 1)
        group = idx_const(A, 0);
    else if (v->out_block) /* a block of outputs lies within one group */
        group = idx_divc(A, a->at[1], v->group_out / v->out_block);
    if (v->in_block) {
        const Idx *lane = r->at[3];

        int64_t parts = v->in_block / v->part; /* of a block */

        ch.weight_c = idx_add(A, idx_mulc(A, rc, v->part), lane);
        ch.data_c =
            idx_add(A, idx_mulc(A, group, v->group_in / v->in_block), idx_divc(A, rc, parts));
        ch.data_i = idx_add(A, idx_mulc(A, idx_modc(A, rc, parts), v->part), lane);
    } else {
        ch.weight_c = rc;
        ch.data_c = idx_add(A, idx_mulc(A, group, v->group_in), rc);
    }
    return ch;
}

/* A first layer of bytes: its channels are too few for steps of four, but four columns of a row are
 * neighbours too, so the kernel is taken to be a multiple of four wide; of two, if two make a step.
 * Depthwise convolutions take four columns too: a vector's worth of neighbouring pixels in blocks
 * of channels, turned. */
bool conv2d_by_columns(const Conv2d *v)
{
    return (v->depthwise || !v->in_block) && v->k[1] >= 3 && v->dilation[1] == 1;
}

bool conv_tap_is_live(int64_t at, int64_t stride, int64_t size, int64_t out)
{
    int64_t first = at < 0 ? ceil_div(-at, stride) : 0;

    return first < out && at + first * stride < size;
}

/* They are below 2^22, so nothing is rounded, and `whole` finds them. */
bool conv2d_sums_are_whole(const Conv2d *v, DType data, DType weight)
{
    int64_t most = data.code == DT_UINT && weight.code == DT_UINT ? 255 * 255 : 255 * 128, sum;

    return dtype_is_int(data) && data.bits == 8 && dtype_is_int(weight) && weight.bits == 8 &&
           checked_mul(v->group_in * v->k[0], v->k[1] * most, &sum) && sum <= 1 << 22;
}

/* How the formula takes channels and columns of the kernel. */
static void take_parts(Conv2d *v)
{
    int64_t terms = v->algorithm == CONV_DOT4 ? 4 : v->algorithm == CONV_WORDS ? 2 : 1;

    v->columns = conv2d_by_columns(v) ? ceil_div(v->k[1], terms) * terms : v->k[1];
    v->part = v->within                     ? v->group_in
              : v->algorithm == CONV_BLOCKS ? v->in_block
              : v->in_block                 ? sum_part(v)
                                            : 0;
}

static Axes reduce_axes(Ctx *c, const Conv2d *v)
{
    static const char *const all[] = {"c", "kh", "kw", "i"};
    int64_t parts = v->in_block ? (v->group_in + v->part - 1) / v->part : v->group_in;
    int64_t extents[4] = {parts, v->k[0], v->columns, v->part};

    if (v->depthwise || v->within)
        return te_raxes(c, v->within ? 3 : 2, extents + 1, all + 1);
    return te_raxes(c, v->in_block ? 4 : 3, extents, all);
}

/* A weight, zero for lanes that are no channel. */
static const Prim *weight_at(Ctx *c, const Conv2d *v, const Tensor *w, const Channels *ch,
                             const Idx *kh, const Idx *kw)
{
    const Idx  *at[4] = {ch->out_ch, ch->weight_c, kh, kw};
    const Prim *x = te_at(c, w, at);
    Pred        real = PRED_TRUE;

    real = pred_and(c->arith, c->arena, real,
                    idx_sub(c->arith, idx_const(c->arith, v->out_c - 1), ch->out_ch));
    real = pred_and(c->arith, c->arena, real,
                    idx_sub(c->arith, idx_const(c->arith, v->group_in - 1), ch->weight_c));
    real =
        pred_and(c->arith, c->arena, real, idx_sub(c->arith, idx_const(c->arith, v->k[1] - 1), kw));
    return real.n ? prim_select(c, pred_prim(c, real), x, prim_num(c, x->dtype, 0)) : x;
}

bool conv2d_of(Ctx *c, const Expr *e, Conv2d *v)
{
    const Type *data = call_arg(e, 0)->type, *weight = call_arg(e, 1)->type;

    if (!data || !weight || !conv_sizes(c, e->loc, ATTRS(Conv2dAttrs, e), data, weight, v))
        return false;
    take_parts(v);
    return true;
}

int64_t conv2d_surplus_columns(Ctx *c, const Expr *e)
{
    Conv2d v;

    return conv2d_of(c, e, &v) ? v.columns - v.k[1] : 0;
}

/* The i32 that a whole f32 below 2^22 is: beside 1.5 * 2^23, its last bits.  A schedule lets the
 * sum begin there (`bias`). */
static const Tensor *whole(Ctx *c, const Tensor *sum, const Type *t)
{
    Axes        a = te_axes_of(c, t);
    const Prim *x = prim_add(c, te_in(c, sum, &a), prim_float(c, DT_F32, 12582912.0));

    sum = te_compute(c, "bias", DT_F32, a, x);
    a = te_axes_of(c, t);
    x = prim_bits(c, DT_I32, te_in(c, sum, &a));
    return te_compute(c, "whole", DT_I32, a, prim_sub(c, x, prim_int(c, DT_I32, 0x4b400000)));
}

bool te_conv2d(Ctx *c, const OpCall *call, const Tensor *const *in, const Tensor **out)
{
    const Type *t = call->out[0];
    Conv2d      v;

    if (!conv_sizes(c, call->loc, call->attrs, call->in[0], call->in[1], &v))
        return false;
    take_parts(&v);
    v.pad_hi[1] += v.columns - v.k[1];
    const Tensor *d = padded(c, &v, in[0]);
    Axes          a = te_axes(c, t->n, t->dims, conv_axes);
    Axes          r = reduce_axes(c, &v);
    Channels      ch = channels(c, &v, &a, &r);
    const Idx    *tap[2], *at[5] = {a.at[0], ch.data_c, NULL, NULL, ch.data_i};

    for (uint32_t i = 0; i < 2; i++) {
        tap[i] = r.at[v.depthwise || v.within ? i : i + 1];
        at[i + 2] = idx_add(c->arith, idx_mulc(c->arith, a.at[i + 2], v.stride[i]),
                            idx_mulc(c->arith, tap[i], v.dilation[i]));
    }
    DType       sum = v.algorithm == CONV_FLOATS ? DT_F32 : t->dtype;
    const Prim *x = prim_cast(c, sum, te_at(c, d, at));
    const Prim *w = prim_cast(c, sum, weight_at(c, &v, in[1], &ch, tap[0], tap[1]));

    out[0] = te_reduce(c, "conv", sum, a, COMB_SUM, r, prim_mul(c, x, w));
    if (v.algorithm == CONV_FLOATS)
        out[0] = whole(c, out[0], t);
    return true;
}

/* ---- blocked layout
 * ---------------------------------------------------------------------------------- */

/* The output becomes blocked; the data operand is read as it is: in blocks of that or another
 * width, or plain (three channels of an image).  Groups and depthwise convolutions keep the width.
 */
const Expr *block_conv2d(Ctx *c, const Expr *e, const Expr *const *args, uint32_t block)
{
    const Conv2dAttrs *a = ATTRS(Conv2dAttrs, e);
    const Type        *data = call_arg(e, 0)->type, *weight = call_arg(e, 1)->type;
    bool               blocked = args[0]->type->n == 5;
    int64_t            in = block;
    Conv2d             v;

    if (strcmp(a->data_layout, "NCHW") || strcmp(layout_out(a), "NCHW") ||
        !conv_sizes(c, e->loc, a, data, weight, &v))
        return NULL;
    if (blocked && !type_dim(args[0]->type, 4, &in))
        return NULL;
    bool whole = v.group_out % block == 0 && (!blocked || v.group_in % block == 0);

    if (blocked && conv2d_groups_within(v.group_in, v.group_out, block))
        whole = true;
    if (v.groups > 1 && (in != block || (!v.depthwise && !whole)))
        return NULL;
    Conv2dAttrs *b = DUP_ARRAY(c->arena, a, 1);

    b->data_layout =
        blocked ? intern_printf(c->strings, "NCHW%lldc", (long long)in) : a->data_layout;
    b->out_layout = blocked && in == block ? "" : intern_printf(c->strings, "NCHW%uc", block);
    return expr_call(c, call_op(e), 2, (const Expr *[]){args[0], call_arg(e, 1)}, b, e->loc);
}
