/* nn.depth_to_space: channels become cells of a larger image, NCHW or NCHW<b>c.
 *
 *     %1 = nn.depth_to_space(%0, block_size=[2, 2], channels=20, size=[55, 55]);
 *
 *     %out[n, o, y, x] = %d[n, (y%2*2 + x%2)*C + o, y//2, x//2]      mode "DCR"
 *     %out[n, o, y, x] = %d[n, o*4 + y%2*2 + x%2, y//2, x//2]        mode "CRD"
 *
 * DCR has the C channels of one place of the block together, so blocked channels stay what they
 * are and whole vectors move.  Of each C the first `channels` are taken, of the rows and columns
 * the first `size`; so C can be filled up to whole blocks. */
#include "ops/common.h"

#include <string.h>

typedef struct {
    int64_t s[2], block, cells; /* cells of a block */
    bool    crd;
} Space;

static bool space_of(Ctx *c, Loc loc, const DepthToSpaceAttrs *a, const Type *data, Space *p)
{
    *p = (Space){.crd = !strcmp(a->mode, "CRD")};
    if (!rel_ints(c, loc, "block_size", a->block_size, 2, 1) ||
        !rel_layout(c, loc, a->layout, "NCHW", &p->block) ||
        !rel_rank(c, loc, data, p->block ? 5 : 4, "data"))
        return false;
    if (!p->crd && strcmp(a->mode, "DCR"))
        return error_at(c, E_TYPE, loc, "'mode' is \"%s\", not \"DCR\" or \"CRD\"", a->mode);
    if (p->crd && p->block)
        return error_at(c, E_TYPE, loc, "mode \"CRD\" of blocked channels");
    p->s[0] = a->block_size.at[0];
    p->s[1] = a->block_size.at[1];
    if (!checked_mul(p->s[0], p->s[1], &p->cells))
        return error_at(c, E_TYPE, loc, "'block_size' is too large");
    return true;
}

/* Channels, or their blocks, that the result has. */
static bool channels_of(Ctx *c, Loc loc, const DepthToSpaceAttrs *a, const Type *data,
                        const Space *p, const Idx **out)
{
    int64_t n, all, lanes = p->block ? p->block : 1;

    if (!rel_dim(c, loc, data, 1, &n))
        return false;
    if (n % p->cells)
        return error_at(c, E_TYPE, loc, "dimension 1 of %s does not hold blocks of %lld x %lld",
                        type_text(c, data), (long long)p->s[0], (long long)p->s[1]);
    if (!checked_mul(n / p->cells, lanes, &all) || a->channels < 0 || a->channels > all)
        return error_at(c, E_TYPE, loc, "'channels' is %lld, of %lld", (long long)a->channels,
                        (long long)(n / p->cells));
    n = a->channels ? (a->channels + lanes - 1) / lanes : n / p->cells;
    *out = idx_const(c->arith, n);
    return true;
}

const Type *rel_depth_to_space(Ctx *c, Loc loc, const void *attrs, const Type *const *in,
                               uint32_t nin)
{
    const DepthToSpaceAttrs *a = attrs;
    const Idx               *dims[5];
    Space                    p;

    if (!rel_tensors(c, loc, in, nin) || !space_of(c, loc, a, in[0], &p) ||
        (a->size.n && !rel_ints(c, loc, "size", a->size, 2, 1)))
        return NULL;
    for (uint32_t i = 0; i < in[0]->n; i++)
        dims[i] = in[0]->dims[i];
    if (!channels_of(c, loc, a, in[0], &p, &dims[1]))
        return NULL;
    for (uint32_t i = 0; i < 2; i++) {
        dims[i + 2] = idx_mulc(c->arith, dims[i + 2], p.s[i]);
        if (!a->size.n)
            continue;
        if (dims[i + 2]->lo < a->size.at[i])
            return error_at(c, E_TYPE, loc, "'size' is more than there are in dimension %u of %s",
                            i + 2, type_text(c, in[0]));
        dims[i + 2] = idx_const(c->arith, a->size.at[i]);
    }
    return rel_tensor(c, loc, in[0]->dtype, in[0]->n, dims);
}

bool te_depth_to_space(Ctx *c, const OpCall *call, const Tensor *const *in, const Tensor **out)
{
    static const char *const names[] = {"n", "c", "y", "x", "j"};
    const DepthToSpaceAttrs *attrs = call->attrs;
    const Type              *t = call->out[0];
    Arith                   *A = c->arith;
    Axes                     a = te_axes(c, t->n, t->dims, names);
    const Idx               *at[5] = {a.at[0], NULL, NULL, NULL, a.at[4]}, *place;
    Space                    p;

    if (!space_of(c, call->loc, attrs, call->in[0], &p))
        return false;
    int64_t channels = dim_of(call->in[0], 1) / p.cells;

    at[2] = idx_divc(A, a.at[2], p.s[0]);
    at[3] = idx_divc(A, a.at[3], p.s[1]);
    place =
        idx_add(A, idx_mulc(A, idx_modc(A, a.at[2], p.s[0]), p.s[1]), idx_modc(A, a.at[3], p.s[1]));
    at[1] = p.crd ? idx_add(A, idx_mulc(A, a.at[1], p.cells), place)
                  : idx_add(A, idx_mulc(A, place, channels), a.at[1]);
    const Prim *v = te_at(c, in[0], at);

    if (attrs->channels && p.block && attrs->channels % p.block) { /* surplus lanes hold zero */
        const Idx  *o = idx_add(A, idx_mulc(A, a.at[1], p.block), a.at[4]);
        const Prim *real = te_between(c, idx_const(A, 0), o, idx_const(A, attrs->channels));

        v = prim_select(c, real, v, prim_num(c, v->dtype, 0));
    }
    return te_out(c, call, &a, v, out);
}

/* Each place's channels are whole blocks. */
const Expr *block_depth_to_space(Ctx *c, const Expr *e, const Expr *const *args, uint32_t block)
{
    DepthToSpaceAttrs *b = DUP_ARRAY(c->arena, ATTRS(DepthToSpaceAttrs, e), 1);
    Space              p;
    int64_t            n;

    if (args[0]->type->n != 5 || !space_of(c, e->loc, b, call_arg(e, 0)->type, &p) || p.crd ||
        !type_dim(call_arg(e, 0)->type, 1, &n) || n / p.cells % block)
        return NULL;
    b->layout = intern_printf(c->strings, "NCHW%uc", block);
    return expr_call(c, call_op(e), 1, args, b, e->loc);
}
