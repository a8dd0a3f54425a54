/* What several TIR passes share. */
#include "passes/tir/util.h"

typedef struct {
    const Buffer *from, *to;
} Swap;

static const Buffer *swap_buffer(Ctx *c, void *user, const Buffer *b)
{
    const Swap *x = user;

    (void)c;
    return b == x->from ? x->to : b;
}

const Stmt *buffer_replace(Ctx *c, const Stmt *s, const Buffer *from, const Buffer *to)
{
    Swap   x = {from, to};
    TirMap m = {&x, NULL, NULL, NULL, swap_buffer};

    return stmt_map(c, s, &m);
}

const Stmt *spatial_chain(const Stmt *s, int64_t *total)
{
    *total = 1;
    for (int64_t lo, n; s->kind == STMT_FOR && s->u.loop.kind == LOOP_SPATIAL && !s->u.loop.bind &&
                        !s->u.loop.intrin && idx_is_const(s->u.loop.lo, &lo) &&
                        idx_is_const(s->u.loop.extent, &n) && n > 0 && *total <= INT32_MAX / n;
         s = s->kids[0])
        *total *= n;
    return s;
}

const Stmt *chain_at(Ctx *c, const Stmt *s, const Stmt *in, int64_t total, const Idx *at,
                     bool guard)
{
    Arith    *A = c->arith;
    IdxSubst *sub = subst_new(A, c->arena);
    int64_t   step = total;

    for (const Stmt *first = s; s != in; s = s->kids[0]) {
        int64_t n = 1;
        idx_is_const(s->u.loop.extent, &n);
        step /= n;
        const Idx *round = idx_divc(A, at, step);
        if (s != first) /* of the first there are no more */
            round = idx_modc(A, round, n);
        subst_bind(sub, s->u.loop.var, idx_add(A, s->u.loop.lo, round));
    }
    in = stmt_subst(c, in, sub);
    if (!guard)
        return in;
    Pred inside = pred_and(A, c->arena, PRED_TRUE, idx_sub(A, idx_const(A, total - 1), at));
    return stmt_if(c, pred_prim(c, inside), in, NULL);
}
