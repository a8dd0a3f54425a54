/* A function mapped over a batch.
 *
 *     %y = map_batch(@pictures, %x);      // %x: (8, 3, 64, 64); @pictures takes (2, 3, 64, 64)
 *     %y = map_batch(@picture, %x);       // %x: (N, 3, 64, 64); @picture takes (1, 3, 64, 64)
 *
 * Operands are cut along their first dimension into as many parts as the function's parameters
 * leave; the function is applied to the first parts, the second ones and so on, and its results are
 * put together along their first dimension.  The pass batch_loop makes these calls; a backend turns
 * one into a loop around the function's kernels. */
#include "ops/common.h"

/* A tensor type whose first dimension is `times` as long; NULL: it has none that is a number. */
static const Type *longer(Ctx *c, const Type *t, const Idx *times)
{
    int64_t n;

    if (t->kind != TYPE_TENSOR || !type_dim(t, 0, &n))
        return NULL;
    return type_with_first(c, t, idx_mulc(c->arith, times, n));
}

const Type *rel_map_batch(Ctx *c, Loc loc, const void *attrs, const Type *const *in, uint32_t nin)
{
    const Type *f = in[0], *first, **parts;
    const Idx  *rounds;

    (void)attrs;
    if (f->kind != TYPE_FUNC || f->n != nin - 1 || !f->n)
        return error_at(
            c, E_TYPE, loc,
            "map_batch takes a function and an operand for each of its parameters, not %s",
            type_text(c, f));
    first = f->parts[0];
    if (!(rounds = type_rounds(c, in[1], first)))
        return error_at(c, E_TYPE, loc, "%s is no multiple of the parameter %s",
                        type_text(c, in[1]), type_text(c, first));
    for (uint32_t i = 0; i < f->n; i++)
        if (longer(c, f->parts[i], rounds) != in[i + 1])
            return error_at(c, E_TYPE, loc, "operand %u is %s, no %s times the parameter %s", i,
                            type_text(c, in[i + 1]), dim_text(c, rounds),
                            type_text(c, f->parts[i]));
    if (f->ret->kind != TYPE_TUPLE) {
        const Type *t = longer(c, f->ret, rounds);
        return t ? t
                 : error_at(c, E_TYPE, loc, "the function's result %s has no first dimension",
                            type_text(c, f->ret));
    }
    parts = NEW_ARRAY(c->arena, const Type *, f->ret->n + 1);
    for (uint32_t i = 0; i < f->ret->n; i++)
        if (!(parts[i] = longer(c, f->ret->parts[i], rounds)))
            return error_at(c, E_TYPE, loc, "the function's result %s has no first dimension",
                            type_text(c, f->ret->parts[i]));
    return type_tuple(c, f->ret->n, parts);
}
