/* skip_zeros, guard_zeros: rounds of a reduction that only add zeros.
 *
 *     for %y < 5 { for %k < 3 reduce { block s [y=%y; k=%k] {
 *       %s[y] = %s[y] + select(0 <= y + k*6 - 6, %x[..], 0) * %w[k] } } }
 *     -> for %k < 2 reduce { block s [y=%y; k=%k] { %s[y] = %s[y] + %x[.., k*6 + y] * %w[k + 1] } }
 *
 * A factor that is zero unless a condition holds makes a round add nothing where it fails for all
 * that the loops of this copy of the block come to.  Those rounds go where they are the first or
 * the last ones, and conditions that always hold go as well, so `partition` comes before: it cuts
 * the loops where the conditions change.  Iterators then count from what is left.  Of a factor that
 * another block computes first, the condition is looked for there: rounds go, the copy stays.
 *
 * The other factor is taken to be finite; a sum of nothing but zeros keeps one of them.
 *
 * guard_zeros cuts nothing: the condition becomes the block's own, so that loops that are written
 * out leave out each round by itself.
 *
 *     block s [y=%y; k=%k] where 0 <= y + k*6 - 6 { %s[y] = %s[y] + %x[..] * %w[k] } */
#include "ir/sched/impl.h"

/* A copy of the block: its iterators over what its loops come to. */
typedef struct {
    const BlockData *b;
    uint32_t         n;
    int64_t         *lo, *hi;
    bool             fewer;  /* rounds go, or conditions */
    Pred             facts;  /* which all hold where a round adds something */
    Pred             copied; /* ... which another block asks */
} Rounds;

static bool is_zero(const Prim *p)
{
    return (p->kind == PRIM_FLOAT && p->u.f == 0) || (p->kind == PRIM_INT && p->u.i == 0);
}

static void add_facts(Work *w, Pred *facts, const Prim *p)
{
    Pred holds;

    if (p->kind == PRIM_SELECT && is_zero(p->kids[2]) && prim_pred(w->c, p->kids[0], &holds))
        *facts = pred_and_pred(w->c->arith, w->c->arena, *facts, holds);
}

static void add_factor(Work *w, Rounds *r, const Prim *p)
{
    const Prim *copied = p->kind == PRIM_LOAD ? loaded_value(w, p) : NULL;

    if (p->kind == PRIM_MUL) {
        add_factor(w, r, p->kids[0]);
        add_factor(w, r, p->kids[1]);
    }
    add_facts(w, &r->facts, p);
    if (copied)
        add_facts(w, &r->copied, copied);
}

/* The sum's terms are products, or else it has no facts. */
static void find_facts(Work *w, Rounds *r, const Stmt *store)
{
    const Buffer *t = store->u.store.buffer;
    const Prim   *v = store->u.store.value;

    r->facts = r->copied = PRED_TRUE;
    if (v->kind == PRIM_FMA && v->kids[2]->kind == PRIM_LOAD && v->kids[2]->u.load.buffer == t) {
        add_factor(w, r, v->kids[0]);
        add_factor(w, r, v->kids[1]);
    }
    for (uint32_t i = 0; i < 2 && v->kind == PRIM_ADD; i++)
        if (v->kids[i]->kind == PRIM_LOAD && v->kids[i]->u.load.buffer == t)
            add_factor(w, r, v->kids[1 - i]);
}

static bool some_never(Pred p, IdxSubst *sub)
{
    for (uint32_t k = 0; k < p.n; k++)
        if (idx_never(idx_subst(sub, p.ge0[k])))
            return true;
    return false;
}

/* With the i-th iterator at `value`, some fact holds for nothing that the others come to. */
static bool adds_nothing(Work *w, const Rounds *r, uint32_t i, int64_t value)
{
    Arith    *A = w->c->arith;
    IdxSubst *sub = subst_new(A, w->c->scratch);

    for (uint32_t k = 0; k < r->n; k++) {
        const Atom *v = atom_var(A, r->b->iter[k]->name, 0, r->hi[k] - r->lo[k]);
        subst_bind(sub, r->b->iter[k],
                   k == i ? idx_const(A, value) : idx_addc(A, idx_atom(A, v), r->lo[k]));
    }
    return some_never(r->facts, sub) || some_never(r->copied, sub);
}

static bool pred_uses(Pred p, const Atom *iter)
{
    for (uint32_t i = 0; i < p.n; i++)
        if (idx_uses(p.ge0[i], iter))
            return true;
    return false;
}

/* The i-th iterator without its first and last rounds that add nothing. */
static void narrow(Work *w, Rounds *r, uint32_t i)
{
    int64_t lo = r->lo[i], hi = r->hi[i];

    while (lo < hi && adds_nothing(w, r, i, lo))
        lo++;
    while (lo < hi && adds_nothing(w, r, i, hi))
        hi--;
    r->fewer |= lo > r->lo[i] || hi < r->hi[i];
    r->lo[i] = lo;
    r->hi[i] = hi;
}

/* The block over the rounds that are left; `sub` says what loop variables become. */
static const Stmt *narrow_block(Work *w, const Stmt *s, Rounds *r, IdxSubst *sub)
{
    Ctx         *c = w->c;
    Arith       *A = c->arith;
    BlockData    b = s->u.block;
    IdxSubst    *now = subst_new(A, c->scratch);
    const Atom **iter = NEW_ARRAY(c->arena, const Atom *, r->n);
    const Idx  **bind = NEW_ARRAY(c->arena, const Idx *, r->n);
    const Stmt **kids = NEW_ARRAY(c->arena, const Stmt *, s->nkids);

    for (uint32_t i = 0; i < r->n; i++) {
        iter[i] = atom_var(A, b.iter[i]->name, 0, r->hi[i] - r->lo[i]);
        bind[i] = idx_addc(A, idx_subst(sub, b.bind[i]), -r->lo[i]);
        subst_bind(now, b.iter[i], idx_addc(A, idx_atom(A, iter[i]), r->lo[i]));
    }
    for (uint32_t i = 0; i < s->nkids; i++)
        kids[i] = stmt_subst(c, s->kids[i], now);
    for (uint32_t i = 0; i < r->facts.n; i++)
        r->fewer |= idx_subst(now, r->facts.ge0[i])->lo >= 0;
    b.iter = iter;
    b.bind = bind;
    b.where = pred_subst(sub, c->arena, b.where);
    return stmt_block(c, b, s->nkids, kids, s->loc);
}

static const Func *skip_copy(Work *w, uint32_t site, bool *fewer)
{
    Ctx         *c = w->c;
    Arith       *A = c->arith;
    const Stmt  *s = stmt_at(w, site), *store = store_of(s);
    Rounds       r = {.b = &s->u.block};
    IdxSubst    *sub = subst_new(A, c->scratch);
    const Atom **loop, **now;

    r.n = r.b->nspatial + r.b->nreduce + r.b->nseq;
    r.lo = NEW_ARRAY(c->scratch, int64_t, r.n + 1);
    r.hi = NEW_ARRAY(c->scratch, int64_t, r.n + 1);
    loop = NEW_ARRAY(c->scratch, const Atom *, r.n + 1);
    now = NEW_ARRAY(c->scratch, const Atom *, r.n + 1);
    if (!store || !r.b->nreduce)
        return refuse(w, "'%s' is no sum", r.b->name);
    find_facts(w, &r, store);
    for (uint32_t i = 0; i < r.n; i++)
        r.lo[i] = r.b->bind[i]->lo, r.hi[i] = r.b->bind[i]->hi;
    for (uint32_t i = r.b->nspatial; i < r.b->nspatial + r.b->nreduce; i++) {
        int64_t from = r.lo[i], to = r.hi[i];

        if (!pred_uses(r.facts, r.b->iter[i]) && !pred_uses(r.copied, r.b->iter[i]))
            continue;
        narrow(w, &r, i);
        if (r.lo[i] == from && r.hi[i] == to)
            continue;
        if (!(loop[i] = loop_of_iter(r.b, A, i)))
            return refuse(w, "'%s' has no loop of its own", r.b->iter[i]->name);
        now[i] = fresh_var(c, loop[i]->name, r.hi[i] - r.lo[i] + 1);
        subst_bind(sub, loop[i], idx_addc(A, idx_atom(A, now[i]), r.lo[i] - r.b->bind[i]->c0));
    }
    const Stmt *tree = narrow_block(w, s, &r, sub);
    *fewer |= r.fewer;
    return loops_shrink(w, site, tree, r.n, loop, now) ? w->f : NULL;
}

const Func *step_skip_zeros(Work *w)
{
    const StepArg *ba = step_arg(w->st, 0);
    Sites          blocks;
    bool           fewer = false;

    if (!ba || !ba->name)
        return refuse(w, "which block?");
    if (!blocks_named(w, ba->name, &blocks))
        return NULL;
    for (uint32_t i = 0; i < blocks.n; i++)
        if (!skip_copy(w, blocks.at[i], &fewer))
            return NULL;
    return fewer ? finish(w) : refuse(w, "all rounds of '%s' may add something", ba->name);
}

typedef struct {
    Ctx *c;
    Pred facts;
} Known;

static const Prim *known_arm(Ctx *c, void *user, const Prim *p)
{
    const Known *k = user;
    Pred         holds;

    (void)c;
    if (p->kind != PRIM_SELECT || !prim_pred(k->c, p->kids[0], &holds))
        return p;
    for (uint32_t i = 0; i < holds.n; i++) {
        bool is = false;

        for (uint32_t n = 0; n < k->facts.n; n++)
            is |= k->facts.ge0[n] == holds.ge0[i];
        if (!is)
            return p;
    }
    return p->kids[1];
}

/* The block with the conditions of its factors as its own. */
static const Stmt *guarded_block(Work *w, const Stmt *s, const Rounds *r)
{
    Ctx         *c = w->c;
    BlockData    b = s->u.block;
    IdxSubst    *iters = subst_new(c->arith, c->scratch);
    const Stmt **kids = NEW_ARRAY(c->arena, const Stmt *, s->nkids + 1);

    bind_iters(s, iters);
    b.where = pred_and_pred(c->arith, c->arena, b.where, pred_subst(iters, c->arena, r->facts));
    for (uint32_t i = 0; i < s->nkids; i++) {
        const StoreData *t = &s->kids[i]->u.store;
        const Prim      *value =
            prim_map(c, t->value, &(TirMap){.user = &(Known){c, r->facts}, .prim = known_arm});

        kids[i] = stmt_store(c, t->buffer, t->index, value);
    }
    return stmt_block(c, b, s->nkids, kids, s->loc);
}

const Func *step_guard_zeros(Work *w)
{
    const StepArg *ba = step_arg(w->st, 0);
    Sites          blocks;
    bool           fewer = false;

    if (!ba || !ba->name)
        return refuse(w, "which block?");
    if (!blocks_named(w, ba->name, &blocks))
        return NULL;
    for (uint32_t i = 0; i < blocks.n; i++) {
        const Stmt *s = stmt_at(w, blocks.at[i]), *store = store_of(s);
        Rounds      r = {.b = &s->u.block};

        if (!store || !r.b->nreduce)
            return refuse(w, "'%s' is no sum", r.b->name);
        if (r.b->has_init)
            return refuse(w, "'%s' starts its sum itself; cache_write or decompose_reduction first",
                          r.b->name);
        find_facts(w, &r, store);
        if (!r.facts.n) /* of this copy */
            continue;
        fewer = true;
        edit(w, s, guarded_block(w, s, &r));
    }
    return fewer ? finish(w) : refuse(w, "all rounds of '%s' may add something", ba->name);
}
