/* nn.conv2d_transpose: each input cell spreads its kernel over the output.
 *
 *     %2 = nn.conv2d_transpose(%0, %1, strides=[2, 2], padding=[1, 1, 1, 1]);      // weights IOHW
 *
 * Stated from the output's side, so that no cell is written twice: output row y takes kernel row kh
 * from input row (y + top - kh*d) / s where that divides and lies inside.
 *
 *     %conv[n, o, y, x] = sum[c, kh, kw] select(it divides and lies inside,
 *                                               %d[n, c, (y+top-kh)/s, (x+left-kw)/s] * %w[c, o,
 * kh, kw], 0)
 *
 * Splitting y and x by the stride and unrolling makes the division constant and the false taps
 * vanish. */
#include "ops/common.h"

#include <string.h>

typedef struct {
    int64_t groups, group_in, group_out;
    int64_t k[2], stride[2], dilation[2], pad_lo[2], pad_hi[2], extra[2];
} Deconv;

static bool deconv_sizes(Ctx *c, Loc loc, const Conv2dTransposeAttrs *a, const Type *const *in,
                         Deconv *v)
{
    int64_t w[4], channels;

    if (!rel_ints(c, loc, "strides", a->strides, 2, 1) ||
        !rel_ints(c, loc, "dilation", a->dilation, 2, 1) ||
        !rel_ints(c, loc, "padding", a->padding, 4, 0) ||
        !rel_ints(c, loc, "output_padding", a->output_padding, 2, 0) ||
        !rel_ints(c, loc, "kernel_size", a->kernel_size, 2, 0) ||
        !rel_rank(c, loc, in[0], 4, "data") || !rel_rank(c, loc, in[1], 4, "weight") ||
        !rel_dim(c, loc, in[0], 1, &channels))
        return false;
    if (strcmp(a->data_layout, "NCHW") || strcmp(a->kernel_layout, "IOHW"))
        return error_at(c, E_TYPE, loc, "layouts '%s' and '%s' are not NCHW and IOHW",
                        a->data_layout, a->kernel_layout);
    for (uint32_t i = 0; i < 4; i++)
        if (!rel_dim(c, loc, in[1], i, &w[i]))
            return false;
    v->groups = a->groups;
    if (v->groups < 1 || w[0] != channels || channels % v->groups || w[1] < 1 || w[2] < 1 ||
        w[3] < 1)
        return error_at(c, E_TYPE, loc, "%lld groups of %s with weight %s", (long long)v->groups,
                        type_text(c, in[0]), type_text(c, in[1]));
    v->group_in = channels / v->groups;
    v->group_out = w[1];
    if (a->channels && a->channels != v->group_out * v->groups)
        return error_at(c, E_TYPE, loc, "channels is %lld, the weight has %lld",
                        (long long)a->channels, (long long)(v->group_out * v->groups));
    for (int i = 0; i < 2; i++) {
        v->k[i] = w[i + 2];
        if (a->kernel_size.at[i] && a->kernel_size.at[i] != v->k[i])
            return error_at(c, E_TYPE, loc, "kernel_size is %lld, the weight has %lld",
                            (long long)a->kernel_size.at[i], (long long)v->k[i]);
        v->stride[i] = a->strides.at[i];
        v->dilation[i] = a->dilation.at[i];
        v->pad_lo[i] = a->padding.at[i];
        v->pad_hi[i] = a->padding.at[i + 2];
        v->extra[i] = a->output_padding.at[i];
    }
    return true;
}

const Type *rel_conv2d_transpose(Ctx *c, Loc loc, const void *attrs, const Type *const *in,
                                 uint32_t nin)
{
    const Conv2dTransposeAttrs *a = attrs;
    const Idx                  *dims[4];
    Deconv                      v;
    DType                       t;

    if (!rel_tensors(c, loc, in, nin) || !rel_same_dtype(c, loc, in[0], in[1]) ||
        !rel_number(c, loc, in[0]) || !deconv_sizes(c, loc, a, in, &v) ||
        !rel_dtype(c, loc, a->out_dtype, in[0]->dtype, &t))
        return NULL;
    dims[0] = in[0]->dims[0];
    dims[1] = idx_const(c->arith, v.group_out * v.groups);
    for (uint32_t i = 0; i < 2; i++) {
        dims[i + 2] = idx_addc(
            c->arith, idx_mulc(c->arith, idx_addc(c->arith, in[0]->dims[i + 2], -1), v.stride[i]),
            (v.k[i] - 1) * v.dilation[i] + 1 - v.pad_lo[i] - v.pad_hi[i] + v.extra[i]);
        if (dims[i + 2]->lo < 1)
            return error_at(c, E_TYPE, loc, "the padding leaves nothing of dimension %u of %s",
                            i + 2, type_text(c, in[0]));
    }
    return rel_tensor(c, loc, t, 4, dims);
}

bool te_conv2d_transpose(Ctx *c, const OpCall *call, const Tensor *const *in, const Tensor **out)
{
    static const char *const axes[] = {"n", "o", "y", "x"}, *const raxes[] = {"c", "kh", "kw"};
    const Type *t = call->out[0];
    Arith      *A = c->arith;
    Deconv      v;

    if (!deconv_sizes(c, call->loc, call->attrs, call->in, &v))
        return false;
    int64_t    extents[3] = {v.group_in, v.k[0], v.k[1]};
    Axes       a = te_axes(c, 4, t->dims, axes), r = te_raxes(c, 3, extents, raxes);
    const Idx *group = idx_divc(A, a.at[1], v.group_out);
    const Idx *ch = idx_add(A, idx_mulc(A, group, v.group_in), r.at[0]);
    const Idx *at[4] = {a.at[0], ch, NULL, NULL};
    const Idx *wat[4] = {ch, idx_modc(A, a.at[1], v.group_out), r.at[1], r.at[2]};
    Pred       hit = PRED_TRUE;

    for (uint32_t i = 0; i < 2; i++) {
        const Idx *from = idx_sub(A, idx_addc(A, a.at[i + 2], v.pad_lo[i]),
                                  idx_mulc(A, r.at[i + 1], v.dilation[i]));
        const Idx *size = call->in[0]->dims[i + 2];

        at[i + 2] = idx_divc(A, from, v.stride[i]);
        hit = pred_and(A, c->arena, hit, idx_mulc(A, idx_modc(A, from, v.stride[i]), -1));
        hit = pred_and(A, c->arena, hit, at[i + 2]);
        hit = pred_and(A, c->arena, hit, idx_addc(A, idx_sub(A, size, at[i + 2]), -1));
    }
    const Prim *x = prim_mul(c, prim_cast(c, t->dtype, te_at(c, in[0], at)),
                             prim_cast(c, t->dtype, te_at(c, in[1], wat)));

    if (hit.n)
        x = prim_select(c, pred_prim(c, hit), x, prim_num(c, t->dtype, 0));
    out[0] = te_reduce(c, "conv", t->dtype, a, COMB_SUM, r, x);
    return true;
}
