/* Elementwise operators on blocked layouts.
 *
 * A blocked operand has shape (N, C/b, H, W, b); operands that broadcast along the channel, or are
 * scalars, are used as they are; a per-channel operand [C, 1, 1] is blocked here (a constant, as a
 * rule, so that folding does it once).
 *
 * Ragged channels leave surplus lanes.  Those of floats must stay zero: operators with f(0) = 0
 * (block_zero_*) keep them so, others are refused unless the block divides C.  Those of integers
 * and bools may hold anything, since sums multiply them by zero; what makes floats of them clears
 * them (block_cleared). */
#include "ops/common.h"

/* The channels of a plain NCHW type divide the block. */
static bool whole_blocks(const Type *t, uint32_t block)
{
    int64_t n;

    return t->n == 4 && type_dim(t, 1, &n) && n % block == 0;
}

/* Surplus lanes of the result, if there are any, may hold anything. */
static bool any_lanes(const Expr *e, uint32_t block)
{
    return !dtype_is_float(e->type->dtype) || whole_blocks(e->type, block);
}

static const Expr *same_call(Ctx *c, const Expr *e, const Expr *const *args)
{
    return expr_call(c, call_op(e), call_nargs(e), args, e->u.attrs, e->loc);
}

const Expr *block_zero_unary(Ctx *c, const Expr *e, const Expr *const *args, uint32_t block)
{
    (void)block;
    return args[0]->type->n == 5 ? same_call(c, e, args) : NULL;
}

const Expr *block_unary(Ctx *c, const Expr *e, const Expr *const *args, uint32_t block)
{
    return args[0]->type->n == 5 && any_lanes(e, block) ? same_call(c, e, args) : NULL;
}

const Expr *block_cleared(Ctx *c, const Expr *e, const Expr *x, uint32_t block)
{
    BroadcastToAttrs     *to = NEW_ATTRS(c, BroadcastToAttrs);
    LayoutTransformAttrs *a = NEW_ATTRS(c, LayoutTransformAttrs);
    const Idx            *one = idx_const(c->arith, 1), **dims;
    const Expr           *mask;

    if (any_lanes(e, block) || dtype_is_float(call_arg(e, 0)->type->dtype))
        return x;
    dims = NEW_ARRAY(c->arena, const Idx *, 4);
    for (uint32_t i = 0; i < 4; i++)
        dims[i] = i == 1 ? e->type->dims[1] : one;
    to->shape = (Dims){4, dims};
    a->src_layout = "NCHW";
    a->dst_layout = intern_printf(c->strings, "NCHW%uc", block);
    mask = call1(c, "broadcast_to", expr_scalar(c, e->type->dtype, 1), to, e->loc);
    mask = call1(c, "layout_transform", mask, a, e->loc);
    return call2(c, "multiply", x, mask, NULL, e->loc);
}

const Expr *block_cast(Ctx *c, const Expr *e, const Expr *const *args, uint32_t block)
{
    return args[0]->type->n == 5 ? block_cleared(c, e, same_call(c, e, args), block) : NULL;
}

const Expr *block_clip(Ctx *c, const Expr *e, const Expr *const *args, uint32_t block)
{
    const ClipAttrs *a = ATTRS(ClipAttrs, e);

    if (a->a_min <= 0 && a->a_max >= 0)
        return block_zero_unary(c, e, args, block);
    return block_unary(c, e, args, block);
}

/* A plain operand beside a blocked one: as it is, blocked, or NULL.  `zero` tells whether surplus
 * lanes may meet a number that is not zero. */
static const Expr *beside(Ctx *c, const Expr *x, const Type *plain, uint32_t block, bool zero)
{
    Arith      *A = c->arith;
    const Type *t = x->type;
    const Idx  *one = idx_const(A, 1), *n[4] = {one, one, one, one};
    int64_t     channels;
    bool        single;

    if (t->n > 4 || !type_dim(plain, 1, &channels))
        return NULL;
    for (uint32_t i = 0; i < t->n; i++)
        n[4 - t->n + i] = t->dims[i];
    single = n[0] == one && n[2] == one && n[3] == one;
    if (n[1] == one) { /* broadcasts along the channel */
        const Idx *dims[5] = {n[0], one, n[2], n[3], one};

        if (zero && channels % block)
            return NULL;
        return single && t->n == 0 ? x : call_reshape_to(c, x, 5, dims, x->loc);
    }
    if (n[1] != plain->dims[1])
        return NULL;
    LayoutTransformAttrs *a = NEW_ATTRS(c, LayoutTransformAttrs);

    a->src_layout = "NCHW";
    a->dst_layout = intern_printf(c->strings, "NCHW%uc", block);
    if (t->n < 4)
        x = call_reshape_to(c, x, 4, n, x->loc);
    if (single && channels % block == 0)
        return call_reshape(c, x, 5, (int64_t[]){1, channels / block, 1, 1, block}, x->loc);
    return call1(c, "layout_transform", x, a, x->loc);
}

/* `keeps`: f(0, 0, ..) = 0; an operand that broadcasts along the channel is then the danger. */
static const Expr *broadcast(Ctx *c, const Expr *e, const Expr *const *args, uint32_t block,
                             bool keeps)
{
    enum { MOST = 3 };
    const Expr *now[MOST];
    uint32_t    n = call_nargs(e);
    bool        any = false;
    bool zero = !call_is(e, "multiply") && dtype_is_float(e->type->dtype); /* not 0 * finite */

    if (e->type->n != 4 || (!keeps && !any_lanes(e, block)))
        return NULL;
    for (uint32_t i = 0; i < n; i++)
        any |= args[i]->type->n == 5;
    if (!any || n > MOST)
        return NULL;
    for (uint32_t i = 0; i < n; i++) {
        now[i] = args[i]->type->n == 5 ? args[i] : beside(c, args[i], e->type, block, zero);
        if (!now[i])
            return NULL;
    }
    /* A blocked operand of one channel has its number in lane 0 only. */
    for (uint32_t i = 0; i < n; i++) {
        const Type *t = call_arg(e, i)->type;
        int64_t     own, all;

        if (now[i] == args[i] && t->n == 4 && type_dim(t, 1, &own) && type_dim(e->type, 1, &all) &&
            own != all)
            return NULL;
    }
    return same_call(c, e, now);
}

const Expr *block_zero_broadcast(Ctx *c, const Expr *e, const Expr *const *args, uint32_t block)
{
    return broadcast(c, e, args, block, true);
}

const Expr *block_broadcast(Ctx *c, const Expr *e, const Expr *const *args, uint32_t block)
{
    return broadcast(c, e, args, block, false);
}

/* Integers by zeros would trap. */
const Expr *block_quotient(Ctx *c, const Expr *e, const Expr *const *args, uint32_t block)
{
    return whole_blocks(e->type, block) ? broadcast(c, e, args, block, false) : NULL;
}

/* Rows or columns of an image, by a vector of them.  Or cells of one row of numbers, by blocked
 * positions; surplus lanes would be some of them. */
const Expr *block_take(Ctx *c, const Expr *e, const Expr *const *args, uint32_t block)
{
    TakeAttrs *a = DUP_ARRAY(c->arena, ATTRS(TakeAttrs, e), 1);

    if (args[0]->type->n == 1 && args[1]->type->n == 5 && any_lanes(e, block))
        return same_call(c, e, args);
    if (args[0]->type->n != 5 || args[1]->type->n != 1 || a->batch_dims)
        return NULL;
    a->axis = axis_of(a->axis, 4);
    return a->axis >= 2 ? expr_call(c, call_op(e), 2, args, a, e->loc) : NULL;
}

/* One number beside each channel. */
const Expr *block_channels(Ctx *c, const Expr *e, const Expr *const *args, uint32_t block)
{
    const BiasAddAttrs *a = ATTRS(BiasAddAttrs, e);
    BiasAddAttrs       *b = DUP_ARRAY(c->arena, a, 1);

    if (args[0]->type->n != 5 || call_arg(e, 0)->type->n != 4 || axis_of(a->axis, 4) != 1)
        return NULL;
    b->layout = intern_printf(c->strings, "NCHW%uc", block);
    return expr_call(c, call_op(e), 2, (const Expr *[]){args[0], call_arg(e, 1)}, b, e->loc);
}
