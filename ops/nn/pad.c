/* nn.pad.                      %1 = nn.pad(%0, pad_width=[0, 0, 1, 1], pad_mode="reflect");
 *
 * Modes: a constant; the edge cell repeated; reflect, the inside mirrored at the edge cell (which
 * is not repeated).  Negative widths cut off, and what is cut off does not come back. */
#include "ops/common.h"

#include <string.h>

typedef enum { PAD_CONSTANT, PAD_EDGE, PAD_REFLECT } PadMode;

static bool pad_mode(Ctx *c, Loc loc, const char *text, PadMode *m)
{
    static const char *const names[] = {"constant", "edge", "reflect"};

    for (uint32_t i = 0; i < COUNT(names); i++)
        if (!strcmp(text, names[i])) {
            *m = (PadMode)i;
            return true;
        }
    return error_at(c, E_TYPE, loc, "there is no padding mode '%s'", text);
}

const Type *rel_pad(Ctx *c, Loc loc, const void *attrs, const Type *const *in, uint32_t nin)
{
    const PadAttrs *a = attrs;
    const Idx      *dims[TE_MAX_AXES];
    PadMode         mode;

    if (!rel_tensors(c, loc, in, nin) || !pad_mode(c, loc, a->pad_mode, &mode) ||
        !rel_ints(c, loc, "pad_width", a->pad_width, 2 * in[0]->n, -INT32_MAX))
        return NULL;
    for (uint32_t i = 0; i < in[0]->n; i++) {
        int64_t lo = a->pad_width.at[2 * i], hi = a->pad_width.at[2 * i + 1];
        int64_t most = lo > hi ? lo : hi,
                least = in[0]->dims[i]->lo + (lo < 0 ? lo : 0) + (hi < 0 ? hi : 0);

        if (most > 0 && mode != PAD_CONSTANT && least < 1)
            return error_at(c, E_TYPE, loc, "nothing is left of dimension %u of %s to pad it with",
                            i, type_text(c, in[0]));
        if (mode == PAD_REFLECT && most >= least && most > 0)
            return error_at(c, E_TYPE, loc,
                            "%lld cells mirrored in the %lld that are left of dimension %u of %s",
                            (long long)most, (long long)least, i, type_text(c, in[0]));
        dims[i] = idx_addc(c->arith, in[0]->dims[i], lo + hi);
    }
    return rel_tensor(c, loc, in[0]->dtype, in[0]->n, dims);
}

bool te_pad(Ctx *c, const OpCall *call, const Tensor *const *in, const Tensor **out)
{
    const PadAttrs *attrs = call->attrs;
    Arith          *A = c->arith;
    Axes            a = te_axes_of(c, call->out[0]);
    const Idx      *at[TE_MAX_AXES], *zero = idx_const(A, 0);
    Pred            inside = PRED_TRUE;
    PadMode         mode;

    if (!pad_mode(c, call->loc, attrs->pad_mode, &mode))
        return false;
    for (uint32_t i = 0; i < a.n; i++) {
        int64_t    lo = attrs->pad_width.at[2 * i], hi = attrs->pad_width.at[2 * i + 1];
        const Idx *last = idx_addc(A, call->in[0]->dims[i], -1);

        at[i] = idx_addc(A, a.at[i], -lo);
        if (mode == PAD_CONSTANT) {
            if (lo > 0)
                inside = pred_and(A, c->arena, inside, at[i]);
            if (hi > 0)
                inside = pred_and(A, c->arena, inside, idx_sub(A, last, at[i]));
        } else if (mode == PAD_EDGE) {
            at[i] = idx_max(A, zero, idx_min(A, at[i], last));
        } else {
            if (lo > 0) /* |x| */
                at[i] = idx_max(A, at[i], idx_mulc(A, at[i], -1));
            if (hi > 0) /* last - |last - x| */
                at[i] = idx_min(A, at[i], idx_sub(A, idx_mulc(A, last, 2), at[i]));
        }
    }
    const Prim *x = te_at(c, in[0], at);

    if (inside.n)
        x = prim_select(c, pred_prim(c, inside), x, prim_num(c, x->dtype, attrs->pad_value));
    out[0] = te_compute(c, "pad", call->out[0]->dtype, a, x);
    return true;
}

/* In blocks of channels.  Behind the channels are the surplus lanes of the last block, which hold
 * zeros, and blocks more: 28 channels padded by 4 are the same bytes in blocks of 8.  Surplus lanes
 * of floats must stay zeros, those of integers may hold anything (ops/block.c). */
const Expr *block_pad(Ctx *c, const Expr *e, const Expr *const *args, uint32_t block)
{
    const PadAttrs *a = ATTRS(PadAttrs, e);
    PadAttrs       *b = DUP_ARRAY(c->arena, a, 1);
    const int64_t  *width = a->pad_width.at;
    int64_t         was, is, blocks[10] = {0};
    bool            constant = !strcmp(a->pad_mode, "constant"), any = false, whole, zeros;

    if (args[0]->type->n != 5 || e->type->n != 4 || !type_dim(call_arg(e, 0)->type, 1, &was) ||
        !type_dim(e->type, 1, &is))
        return NULL;
    whole = was % block == 0 && is % block == 0;
    zeros = dtype_is_float(e->type->dtype);
    if (constant && a->pad_value != 0 && !whole && zeros)
        return NULL;
    if (!zeros && !whole && (width[2] || width[3]))
        return NULL;
    if ((width[2] || width[3]) && (!constant || width[2] < 0 || width[3] < 0 || width[2] % block))
        return NULL;
    memcpy(blocks, width, 8 * sizeof *width);
    blocks[2] = width[2] / block;
    blocks[3] = (is + block - 1) / block - (was + block - 1) / block - blocks[2];
    for (uint32_t i = 0; i < COUNT(blocks); i++)
        any |= blocks[i] != 0;
    if (!any)
        return args[0];
    b->pad_width = ints_dup(c, blocks, COUNT(blocks));
    return expr_call(c, call_op(e), 1, args, b, e->loc);
}
