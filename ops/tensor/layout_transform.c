/* layout_transform: dimensions in another order, blocked or not.
 *
 *     %1 = layout_transform(%0, src_layout="NCHW", dst_layout="NCHW8c");
 *
 * A layout has one capital letter for each dimension, and a small one with its extent for a block
 * of it.  20 channels in blocks of 8 are 24 cells, the last 4 zero; on the way back `channels` says
 * how many there really were. */
#include "ops/common.h"

#include <ctype.h>

typedef struct {
    uint32_t n;
    char     letter[TE_MAX_AXES]; /* capital or small */
    int64_t  block[TE_MAX_AXES];  /* extent of a small one, else 0 */
} Layout;

static bool parse_layout(Ctx *c, Loc loc, const char *text, Layout *l)
{
    const char *s = text;

    *l = (Layout){0};
    while (*s) {
        int64_t n = 0;

        for (; isdigit((unsigned char)*s) && n < 4096; s++)
            n = n * 10 + (*s - '0');
        bool small = islower((unsigned char)*s), big = isupper((unsigned char)*s);

        if (l->n == TE_MAX_AXES || (small ? n < 1 : !big || n))
            return error_at(c, E_TYPE, loc, "'%s' is no layout", text);
        for (uint32_t i = 0; i < l->n; i++)
            if (l->letter[i] == *s)
                return error_at(c, E_TYPE, loc, "layout '%s' names '%c' twice", text, *s);
        l->letter[l->n] = *s++;
        l->block[l->n++] = n;
    }
    for (uint32_t i = 0; i < l->n; i++) {
        bool found = false;

        for (uint32_t k = 0; k < i; k++) /* a block comes after its dimension */
            found |= l->letter[k] == toupper((unsigned char)l->letter[i]);
        if (l->block[i] && !found)
            return error_at(c, E_TYPE, loc, "'%s' has a block of no dimension", text);
    }
    return true;
}

/* Position of a letter, n if it is not there. */
static uint32_t place(const Layout *l, char letter)
{
    uint32_t i = 0;

    while (i < l->n && l->letter[i] != letter)
        i++;
    return i;
}

static int64_t block_of(const Layout *l, char big)
{
    uint32_t i = place(l, (char)tolower((unsigned char)big));

    return i < l->n ? l->block[i] : 1;
}

/* Extent of a whole dimension, before it was blocked. */
static const Idx *whole_extent(Ctx *c, const LayoutTransformAttrs *a, const Layout *src,
                               const Type *t, char big)
{
    const Idx *n = idx_mulc(c->arith, t->dims[place(src, big)], block_of(src, big));

    return big == 'C' && a->channels ? idx_const(c->arith, a->channels) : n;
}

const Type *rel_layout_transform(Ctx *c, Loc loc, const void *attrs, const Type *const *in,
                                 uint32_t nin)
{
    const LayoutTransformAttrs *a = attrs;
    const Idx                  *dims[TE_MAX_AXES];
    Layout                      src, dst;

    if (!rel_tensors(c, loc, in, nin) || !parse_layout(c, loc, a->src_layout, &src) ||
        !parse_layout(c, loc, a->dst_layout, &dst) || !rel_rank(c, loc, in[0], src.n, "data"))
        return NULL;
    for (int both = 0; both < 2; both++) {
        const Layout *x = both ? &dst : &src, *y = both ? &src : &dst;

        for (uint32_t i = 0; i < x->n; i++)
            if (!x->block[i] && place(y, x->letter[i]) == y->n)
                return error_at(c, E_TYPE, loc, "layouts '%s' and '%s' have different dimensions",
                                a->src_layout, a->dst_layout);
    }
    for (uint32_t i = 0; i < src.n; i++) /* blocks are as long as they say */
        if (src.block[i] &&
            !rel_dims_equal(c, loc, in[0]->dims[i], idx_const(c->arith, src.block[i]), "a block"))
            return NULL;
    int64_t lanes, ch = block_of(&src, 'C');

    if (a->channels &&
        (place(&src, 'C') == src.n || !rel_dim(c, loc, in[0], place(&src, 'C'), &lanes) ||
         a->channels <= (lanes - 1) * ch || a->channels > lanes * ch))
        return error_at(c, E_TYPE, loc, "%lld channels in %s", (long long)a->channels,
                        type_text(c, in[0]));
    for (uint32_t i = 0; i < dst.n; i++) {
        if (dst.block[i]) {
            dims[i] = idx_const(c->arith, dst.block[i]);
            continue;
        }
        int64_t b = block_of(&dst, dst.letter[i]);

        dims[i] = idx_divc(
            c->arith, idx_addc(c->arith, whole_extent(c, a, &src, in[0], dst.letter[i]), b - 1), b);
    }
    return rel_tensor(c, loc, in[0]->dtype, dst.n, dims);
}

bool te_layout_transform(Ctx *c, const OpCall *call, const Tensor *const *in, const Tensor **out)
{
    const LayoutTransformAttrs *attrs = call->attrs;
    Arith                      *A = c->arith;
    Axes                        a = te_axes_of(c, call->out[0]);
    const Idx                  *at[TE_MAX_AXES];
    Pred                        real = PRED_TRUE;
    Layout                      src, dst;

    if (!parse_layout(c, call->loc, attrs->src_layout, &src) ||
        !parse_layout(c, call->loc, attrs->dst_layout, &dst))
        return false;
    for (uint32_t i = 0; i < dst.n; i++) {
        char big = dst.letter[i];

        if (dst.block[i])
            continue;
        int64_t    from = block_of(&src, big), to = block_of(&dst, big);
        const Idx *x = idx_mulc(A, a.at[i], to); /* the cell's coordinate in the whole dimension */

        if (to > 1 || place(&dst, (char)tolower((unsigned char)big)) < dst.n)
            x = idx_add(A, x, a.at[place(&dst, (char)tolower((unsigned char)big))]);
        real = pred_and(
            A, c->arena, real,
            idx_addc(A, idx_sub(A, whole_extent(c, attrs, &src, call->in[0], big), x), -1));
        uint32_t lane = place(&src, (char)tolower((unsigned char)big));

        at[place(&src, big)] = lane < src.n ? idx_divc(A, x, from) : x;
        if (lane < src.n)
            at[lane] = from > 1 ? idx_modc(A, x, from) : idx_const(A, 0);
    }
    const Prim *x = te_at(c, in[0], at);

    if (real.n)
        x = prim_select(c, pred_prim(c, real), x, prim_num(c, x->dtype, 0));
    return te_out(c, call, &a, x, out);
}
