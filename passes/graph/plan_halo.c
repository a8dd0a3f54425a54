/* plan_halo: padding becomes a border of the producer's buffer.
 *
 *   %1 = nn.relu(%0);  nn.conv2d(%1, const @w, padding=[1, 1, 1, 1])
 *     -> %1: Tensor[(1, 8, 56, 56, 8), f32] halo(2:1+1, 3:1+1) = 0.0 = nn.relu(%0);  nn.conv2d(%1,
 * ..)
 *
 * A halo is extra cells around the interior that hold a stated value once the producer is done
 * (docs/ir/relay.md); a consumer whose padding lies within it reads the border instead of testing
 * each index.  A value gets the union of its consumers' paddings that ask for the same fill: zeros
 * for convolutions and average pools, minus infinity where only max pools read it.
 *
 * Only values of our own kernels can have one: no parameters, constants or results of the function,
 * no operand of a reshape (which needs packed bytes), no field of a tuple.  Runs on the graph
 * before fusion: a value that a convolution or pool reads is always the last of its kernel.  Cost:
 * one walk. */
#include "passes/graph/graph.h"

#include <math.h>
#include <string.h>

#define MAX_HALO 8 /* cells on a side; more is cheaper as a test */

/* What the consumers of one value ask for. */
typedef struct {
    bool     barred; /* some consumer cannot read a halo */
    bool     zeros, lows;
    uint32_t zero_lo[2], zero_hi[2]; /* of those that want zeros: height, width */
    uint32_t low_lo[2], low_hi[2];   /* ... minus infinity */
} Wish;

static Wish *wish_of(Ctx *c, Map *wishes, const Expr *e)
{
    Wish *w = map_get(wishes, PTR_KEY(e));

    if (!w) {
        w = NEW(c->scratch, Wish);
        map_put(wishes, PTR_KEY(e), w);
    }
    return w;
}

static void grow(uint32_t lo[2], uint32_t hi[2], Ints pad)
{
    for (uint32_t i = 0; i < 2; i++) {
        if (pad.at[i] > lo[i])
            lo[i] = (uint32_t)pad.at[i];
        if (pad.at[i + 2] > hi[i])
            hi[i] = (uint32_t)pad.at[i + 2];
    }
}

static bool some_padding(Ints pad)
{
    bool any = false;

    for (uint32_t i = 0; i < pad.n; i++) {
        if (pad.at[i] < 0 || pad.at[i] > MAX_HALO)
            return false;
        any |= pad.at[i] > 0;
    }
    return any && pad.n == 4;
}

/* Padding of a call's first operand, and its fill; false: none. */
static bool padding_of(Ctx *c, const Expr *e, Ints *pad, bool *zeros)
{
    const Type *t = e->type;

    if (!call_op(e) || !t || t->kind != TYPE_TENSOR || !dtype_is_float(t->dtype))
        return false;
    *zeros = true;
    if (call_is(e, "nn.conv2d")) {
        *pad = ATTRS_OF(Conv2dAttrs, e)->padding;
        return strncmp(ATTRS_OF(Conv2dAttrs, e)->data_layout, "NCHW", 4) == 0 && some_padding(*pad);
    }
    if (call_is(e, "nn.contrib_conv2d_winograd_without_weight_transform")) {
        const Conv2dWinogradAttrs *a = ATTRS_OF(Conv2dWinogradAttrs, e);
        int64_t                   *at = DUP_ARRAY(c->scratch, a->padding.at, 4), y;

        for (uint32_t i = 0; i < 2; i++) { /* whole tiles */
            if (!type_dim(t, i + 2, &y))
                return false;
            at[i + 2] += (y + a->tile_size - 1) / a->tile_size * a->tile_size - y;
        }
        *pad = (Ints){4, at};
        return some_padding(*pad);
    }
    if (call_is(e, "nn.max_pool2d") || call_is(e, "nn.avg_pool2d")) {
        const Pool2dAttrs *a = ATTRS_OF(Pool2dAttrs, e);

        *pad = a->padding;
        *zeros = call_is(e, "nn.avg_pool2d");
        return strncmp(a->layout, "NCHW", 4) == 0 && !a->ceil_mode && some_padding(*pad);
    }
    return false;
}

/* A value that a kernel of ours writes into a buffer of its own. */
static bool can_have_halo(const Expr *e)
{
    return call_op(e) && !is_view(e) && expr_is_tensor(e) && e->type->n >= 4 &&
           !call_is(e, "concatenate") && !call_is(e, "stack") && !e->type->halo;
}

static void wish(Ctx *c, Map *wishes, const Expr *user)
{
    Ints pad;
    bool zeros;

    for (uint32_t i = 0; i < user->nkids; i++) {
        Wish *w = wish_of(c, wishes, user->kids[i]);

        if (!call_op(user) || is_view(user))
            w->barred = true;
        if (i != 1 || !padding_of(c, user, &pad, &zeros))
            continue;
        if (zeros) {
            w->zeros = true;
            grow(w->zero_lo, w->zero_hi, pad);
        } else {
            w->lows = true;
            grow(w->low_lo, w->low_hi, pad);
        }
    }
}

static const Type *with_halo(Ctx *c, const Type *t, const Wish *w)
{
    uint32_t *lo = NEW_ARRAY(c->scratch, uint32_t, t->n),
             *hi = NEW_ARRAY(c->scratch, uint32_t, t->n);
    Halo h = {t->n, w->zeros ? 0 : -INFINITY, lo, hi};

    for (uint32_t i = 0; i < 2; i++) {
        lo[i + 2] = w->zeros ? w->zero_lo[i] : w->low_lo[i];
        hi[i + 2] = w->zeros ? w->zero_hi[i] : w->low_hi[i];
    }
    return type_with_halo(c, t, &h);
}

static const Expr *give(Ctx *c, void *user, const Expr *was, const Expr *now)
{
    Map        *wishes = user;
    const Wish *w = map_get(wishes, PTR_KEY(was));

    if (!w || w->barred || (!w->zeros && !w->lows) || !can_have_halo(was))
        return now;
    return expr_with_type(c, now, with_halo(c, now->type, w));
}

const Module *plan_halo(Ctx *c, const Module *m)
{
    Map *wishes = map_new(c->scratch);

    for (uint32_t i = 0; i < m->nfuncs; i++) {
        ExprList list = expr_post_order(c, m->funcs[i].func);

        for (uint32_t k = 0; k < list.n; k++)
            wish(c, wishes, list.at[k]);
    }
    return module_rewrite(c, m, give, wishes);
}
