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

const Stmt *spatial_chain(Ctx *c, const Stmt *s, const Idx **total)
{
    const Idx *all = *total = idx_const(c->arith, 1);

    for (int64_t lo; s->kind == STMT_FOR && s->u.loop.kind == LOOP_SPATIAL && !s->u.loop.bind &&
                     !s->u.loop.intrin && !s->u.loop.vector && !s->u.loop.unroll &&
                     idx_is_const(s->u.loop.lo, &lo) && s->u.loop.extent->hi > 0 &&
                     all->hi <= INT32_MAX / s->u.loop.extent->hi;
         s = s->kids[0])
        *total = all = idx_mul(c->arith, all, s->u.loop.extent);
    return s;
}

/* Of nothing there is no part: 1 then, which nobody divides by. */
static const Idx *divisor(Ctx *c, const Idx *n)
{
    return idx_max(c->arith, n, idx_const(c->arith, 1));
}

const Stmt *chain_at(Ctx *c, const Stmt *s, const Stmt *in, const Idx *total, const Idx *at,
                     bool guard)
{
    Arith    *A = c->arith;
    IdxSubst *sub = subst_new(A, c->arena);

    for (const Stmt *first = s; s != in; s = s->kids[0]) {
        const Idx *step = idx_const(A, 1);
        for (const Stmt *below = s->kids[0]; below != in; below = below->kids[0])
            step = idx_mul(A, step, below->u.loop.extent);
        const Idx *round = idx_div(A, at, divisor(c, step));
        if (s != first) /* of the first there are no more */
            round = idx_mod(A, round, divisor(c, s->u.loop.extent));
        subst_bind(sub, s->u.loop.var, idx_add(A, s->u.loop.lo, round));
    }
    in = stmt_subst(c, in, sub);
    if (!guard)
        return in;
    Pred inside = pred_and(A, c->arena, PRED_TRUE, idx_addc(A, idx_sub(A, total, at), -1));
    return stmt_if(c, pred_prim(c, inside), in, NULL);
}

/* ---- threads of a block -------------------------------------------------------------------------- */

typedef struct {
    Ctx       *c;
    const Idx *axis[AXIS_COUNT];
    Threads    threads;
} Numbers;

/* Loops that are bound to one axis are one loop here. */
static bool note_number(void *user, const Stmt *s)
{
    Numbers        *x = user;
    const LoopData *l = &s->u.loop;
    int64_t         n;

    if (s->kind != STMT_FOR || l->bind < AXIS_THREAD_X || !idx_is_const(x->axis[l->bind], &n))
        return true;
    LoopData *all = &x->threads.loop[l->bind - AXIS_THREAD_X];
    if (!all->var)
        *all = (LoopData){.var = atom_var(x->c->arith, l->var->name, 0, n - 1),
                          .lo = idx_const(x->c->arith, 0),
                          .extent = x->axis[l->bind],
                          .bind = l->bind};
    subst_bind(x->threads.numbers, l->var,
               idx_add(x->c->arith, l->lo, idx_atom(x->c->arith, all->var)));
    return true;
}

Threads threads_of(Ctx *c, const Func *f)
{
    Numbers x = {.c = c, .threads.numbers = subst_new(c->arith, c->arena)};

    func_axes(c, f, x.axis);
    stmt_visit(f->body, &(TirVisit){&x, note_number, NULL, NULL, NULL});
    return x.threads;
}
