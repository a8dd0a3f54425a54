/* unguard: a block without the conditions that only spare it work.
 *
 *     block gemm [..] where %mb*64+%m < 100 { %gemm.reg[%m] = fma(%x.shared[%k,%m], .., ..) }
 *     block out [..] where %mb*64+%m < 100 { %out[..] = %gemm.reg[%m] }
 *
 * Where tiles hang over the edge of a tensor, `gemm` may compute what lies outside: all that it
 * loads is there, and whoever reads %gemm.reg has the same condition for the cell that it reads, or
 * writes nothing but that cell.  A condition in the innermost loop would cost more than the work.
 * Conditions on a reduction stay: they choose what is summed.
 *
 * So may a block copy what lies outside to memory of its threads where each round of the loops in a
 * block of threads has a cell of its own, which nothing else stores: nobody read it before. */
#include "ir/sched/impl.h"

/* Everything that the block loads lies inside of its buffer, whatever the conditions say. */
typedef struct {
    IdxSubst     *iters;
    const Buffer *outside;
} Loads;

static void in_bounds(void *user, const Prim *p)
{
    Loads        *l = user;
    const Buffer *b = p->u.load.buffer;
    int64_t       n;

    if (p->kind != PRIM_LOAD)
        return;
    for (uint32_t d = 0; d < p->u.load.n; d++) {
        const Idx *at = idx_subst(l->iters, p->u.load.index[d]);
        int64_t    before = b->halo ? b->halo->lo[d] : 0, after = b->halo ? b->halo->hi[d] : 0;
        if (!idx_is_const(b->extent[d], &n) || at->lo < -before || at->hi >= n + after)
            l->outside = b;
    }
}

static bool has_fact(Pred p, const Idx *ge0)
{
    for (uint32_t i = 0; i < p.n; i++)
        if (p.ge0[i] == ge0)
            return true;
    return false;
}

/* The condition of the block at `site`, said of the cell that the reader loads, is one of the
 * reader's. */
static bool reader_has(Work *w, uint32_t site, uint32_t reader, const Buffer *t, const Idx *ge0)
{
    const Stmt *s = stmt_at(w, site), *store = store_of(s);
    Access      a = access_of(stmt_at(w, reader), t);
    IdxSubst   *wrote = subst_new(w->c->arith, w->c->scratch), *read, *same;

    read = subst_new(w->c->arith, w->c->scratch);
    same = subst_new(w->c->arith, w->c->scratch);
    bind_iters(s, wrote);
    bind_iters(stmt_at(w, reader), read);
    for (uint32_t d = 0; d < t->ndim; d++) {
        const Idx  *to = idx_subst(wrote, store->u.store.index[d]);
        const Atom *v;
        if (idx_is_atom(to, &v) && v->kind == ATOM_VAR)
            subst_bind(same, v, idx_subst(read, a.load[d]));
        else if (!idx_is_const(to, NULL))
            return false;
    }
    return a.same_load && !a.in_index && has_fact(block_at(w, reader)->where, idx_subst(same, ge0));
}

/* The block stores one cell, reads no other of that tensor, and that is a thread's own. */
static bool keeps_cell(const Stmt *s, const Buffer *t)
{
    const Stmt *store = store_of(s);
    Access      a = access_of(s, t);

    return store && store->u.store.buffer == t && !s->u.block.has_init && !a.in_index &&
           (!a.loads || (a.same_load && same_index(t->ndim, a.load, store->u.store.index)));
}

static bool may_drop(Work *w, uint32_t site, const Buffer *t, const Idx *ge0)
{
    Sites all = blocks_in(w, NO_SITE);

    for (uint32_t i = 0; i < all.n; i++) {
        const Stmt *s = stmt_at(w, all.at[i]);
        if (!access_of(s, t).loads || keeps_cell(s, t))
            continue;
        if (!reader_has(w, site, all.at[i], t, ge0))
            return refuse(w, "'%s' reads %%%s without that condition", s->u.block.name, t->name) !=
                   NULL;
    }
    return true;
}

/* The loop chooses a dimension, or the quotient and the remainder by a number two of them. */
static bool chooses_cell(Work *w, const StoreData *store, IdxSubst *bound, const Atom *v)
{
    Arith     *A = w->c->arith;
    const Idx *it = idx_atom(A, v), *at;
    int64_t    n;

    for (uint32_t d = 0; d < store->n; d++) {
        at = idx_subst(bound, store->index[d]);
        if (at == it)
            return true;
        if (!idx_is_const(store->buffer->extent[d], &n) || at != idx_modc(A, it, n))
            continue;
        for (uint32_t k = 0; k < store->n; k++)
            if (idx_subst(bound, store->index[k]) == idx_divc(A, it, n))
                return true;
    }
    return false;
}

/* Loops within blocks of threads each choose a dimension. */
static bool own_cell_each_round(Work *w, uint32_t site, const StoreData *store)
{
    Sites     loops = loops_around_site(w, NO_SITE, site);
    IdxSubst *bound = subst_new(w->c->arith, w->c->scratch);
    int64_t   n;

    bind_iters(stmt_at(w, site), bound);
    for (uint32_t d = 0; d < store->n; d++) {
        const Idx *at = idx_subst(bound, store->index[d]);
        if (!idx_is_const(store->buffer->extent[d], &n) || at->lo < 0 || at->hi >= n)
            return false;
    }
    for (uint32_t i = 0; i < loops.n; i++) {
        const LoopData *l = loop_at(w, loops.at[i]);
        bool            block = l->bind && l->bind < AXIS_THREAD_X;
        if (!block && l->var->lo != l->var->hi && !chooses_cell(w, store, bound, l->var))
            return false;
    }
    return true;
}

static bool is_only_writer(Work *w, uint32_t site, const Buffer *t)
{
    Sites all = blocks_in(w, NO_SITE);

    for (uint32_t i = 0; i < all.n; i++)
        if (all.at[i] != site && access_of(stmt_at(w, all.at[i]), t).stores)
            return false;
    return true;
}

/* What the condition spares are cells that nobody reads. */
static bool is_copy_out(Work *w, uint32_t site, const Buffer *t)
{
    const Stmt *store = store_of(stmt_at(w, site));

    return t->scope == SCOPE_SHARED && is_only_writer(w, site, t) &&
           own_cell_each_round(w, site, &store->u.store);
}

static bool uses_reduction(Work *w, uint32_t site, const Idx *ge0)
{
    Sites loops = loops_around_site(w, NO_SITE, site);

    for (uint32_t i = 0; i < loops.n; i++)
        if (loop_at(w, loops.at[i])->kind != LOOP_SPATIAL &&
            idx_uses(ge0, loop_at(w, loops.at[i])->var))
            return true;
    return false;
}

/* The block with iterators of all the values that they now have. */
static const Stmt *wider_block(Ctx *c, const Stmt *s, BlockData b)
{
    uint32_t     n = b.nspatial + b.nreduce + b.nseq;
    const Atom **iter = DUP_ARRAY(c->arena, b.iter, n);
    IdxSubst    *now = subst_new(c->arith, c->scratch);
    const Stmt **kids = NEW_ARRAY(c->arena, const Stmt *, s->nkids);

    for (uint32_t i = 0; i < b.nspatial; i++) {
        int64_t lo = b.bind[i]->lo, hi = b.bind[i]->hi;
        if (lo >= iter[i]->lo && hi <= iter[i]->hi)
            continue;
        iter[i] = atom_var(c->arith, iter[i]->name, lo < iter[i]->lo ? lo : iter[i]->lo,
                           hi > iter[i]->hi ? hi : iter[i]->hi);
        subst_bind(now, b.iter[i], idx_atom(c->arith, iter[i]));
    }
    for (uint32_t i = 0; i < s->nkids; i++)
        kids[i] = stmt_subst(c, s->kids[i], now);
    b.iter = iter;
    return stmt_block(c, b, s->nkids, kids, s->loc);
}

static const Func *unguard_block(Work *w, uint32_t site, bool *dropped)
{
    const Stmt *s = stmt_at(w, site), *store = store_of(s);
    BlockData   b = s->u.block;
    Loads       l = {subst_new(w->c->arith, w->c->scratch), NULL};
    Pred        left = PRED_TRUE;

    if (!store || !keeps_cell(s, store->u.store.buffer) || is_param(w, store->u.store.buffer))
        return refuse(w, "'%s' does not keep one cell to itself", b.name);
    const Buffer *t = store->u.store.buffer;
    const bool    copy = is_copy_out(w, site, t);
    if (t->scope != SCOPE_REG && t->scope != SCOPE_LOCAL && t->scope != SCOPE_FRAG && !copy)
        return refuse(w, "others see %%%s", t->name);
    for (uint32_t i = 0; i < b.where.n; i++) {
        if (uses_reduction(w, site, b.where.ge0[i])) {
            left = pred_and(w->c->arith, w->c->arena, left, b.where.ge0[i]);
            continue;
        }
        if (!copy && !may_drop(w, site, t, b.where.ge0[i]))
            return NULL;
        *dropped = true;
    }
    bind_iters(s, l.iters);
    prim_visit(store->u.store.value, &(TirVisit){&l, NULL, NULL, in_bounds, NULL});
    if (l.outside)
        return refuse(w, "%%%s would be read outside", l.outside->name);
    b.where = left;
    edit(w, s, wider_block(w->c, s, b));
    return w->f;
}

const Func *step_unguard(Work *w)
{
    const StepArg *ba = step_arg(w->st, 0);
    Sites          blocks;
    bool           dropped = false;

    if (!ba || !ba->name)
        return refuse(w, "which block?");
    if (!blocks_named(w, ba->name, &blocks))
        return NULL;
    for (uint32_t i = 0; i < blocks.n; i++)
        if (!unguard_block(w, blocks.at[i], &dropped))
            return NULL;
    return dropped ? finish(w) : refuse(w, "'%s' has no condition to drop", ba->name);
}
