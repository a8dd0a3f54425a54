/* skip_unread: cells of a tensor that nobody reads.
 *
 *     for %v.t < 4 { for %v.r < 6 { block v [t=%v.t, r=%v.r] { %v[t,r] = .. } } }
 *     .. { block y [t=3] { %y[t] = select(t < 3, %v[t,4] + %v[t,5], %v[t,0]) } }
 *     -> the copy of %v.t that is 3 has one round of %v.r
 *
 * Who reads is looked at copy by copy, its iterators over what its loops come to, which decides
 * conditions; so `partition` comes before, of the readers' loops and of the block's.  In each copy
 * of the block the first and last rounds of a loop go if nobody reads what they compute, and the
 * copy if that is all of them. */
#include "ir/sched/impl.h"

#include <string.h>

/* Cells that one load reads, a range of each dimension. */
typedef struct {
    int64_t *lo, *hi;
} Box;

typedef struct {
    Ctx          *c;
    const Buffer *t;
    VEC(Box) of;
} Reads;

static void add_read(void *user, const Prim *p)
{
    Reads *r = user;
    Box    b;

    if (p->kind != PRIM_LOAD || p->u.load.buffer != r->t)
        return;
    b.lo = NEW_ARRAY(r->c->scratch, int64_t, r->t->ndim + 1);
    b.hi = NEW_ARRAY(r->c->scratch, int64_t, r->t->ndim + 1);
    for (uint32_t d = 0; d < r->t->ndim; d++) {
        b.lo[d] = p->u.load.index[d]->lo;
        b.hi[d] = p->u.load.index[d]->hi;
    }
    vec_push(r->c->scratch, &r->of, b);
}

/* What an iterator comes to in this copy of its block. */
static int64_t least(const BlockData *b, uint32_t i)
{
    return b->bind[i]->lo > b->iter[i]->lo ? b->bind[i]->lo : b->iter[i]->lo;
}

static int64_t most(const BlockData *b, uint32_t i)
{
    return b->bind[i]->hi < b->iter[i]->hi ? b->bind[i]->hi : b->iter[i]->hi;
}

/* What a block reads of the tensor where its loops take it. */
static bool add_reader(Work *w, const Stmt *s, Reads *r)
{
    Arith           *A = w->c->arith;
    const BlockData *b = &s->u.block;
    IdxSubst        *here = subst_new(A, w->c->scratch);
    const Stmt      *store = store_of(s), *init = init_of(s);
    Access           a = access_of(s, r->t);

    if (!a.loads)
        return true;
    if (!store || a.in_index || (init && init->kind != STMT_STORE))
        return refuse(w, "'%s' reads %%%s in a way that is not looked at", b->name, r->t->name) !=
               NULL;
    for (uint32_t i = 0; i < b->nspatial + b->nreduce + b->nseq; i++) {
        if (least(b, i) > most(b, i))
            return true;
        subst_bind(here, b->iter[i],
                   idx_atom(A, atom_var(A, b->iter[i]->name, least(b, i), most(b, i))));
    }
    for (uint32_t i = 0; i < s->nkids; i++)
        prim_visit(prim_subst(w->c, s->kids[i]->u.store.value, here),
                   &(TirVisit){.user = r, .prim = add_read});
    return true;
}

/* A copy of the block, the rounds of it that are left. */
typedef struct {
    int64_t *lo, *hi; /* of iterator i, which is dimension i */
} Left;

static bool is_read(const Reads *r, const Left *l, uint32_t i, int64_t value)
{
    for (uint32_t k = 0; k < r->of.n; k++) {
        bool meets = true;

        for (uint32_t d = 0; d < r->t->ndim; d++) {
            int64_t lo = d == i ? value : l->lo[d], hi = d == i ? value : l->hi[d];
            meets &= r->of.at[k].lo[d] <= hi && lo <= r->of.at[k].hi[d];
        }
        if (meets)
            return true;
    }
    return false;
}

/* Each iterator is a dimension of what is stored. */
static bool stores_by_iters(const Stmt *s, const Buffer *t)
{
    const Stmt      *store = store_of(s);
    const BlockData *b = &s->u.block;
    const Atom      *v;

    if (!store || store->u.store.buffer != t || b->nspatial != t->ndim || b->nseq)
        return false;
    for (uint32_t d = 0; d < t->ndim; d++)
        if (b->iter[d]->lo != b->iter[d]->hi &&
            (!idx_is_atom(store->u.store.index[d], &v) || v != b->iter[d]))
            return false;
    return true;
}

static const Func *skip_copy(Work *w, uint32_t site, const Reads *r, bool *fewer)
{
    Ctx         *c = w->c;
    Arith       *A = c->arith;
    const Stmt  *s = stmt_at(w, site);
    BlockData    b = s->u.block;
    uint32_t     n = b.nspatial;
    Left         l = {NEW_ARRAY(c->scratch, int64_t, n + 1), NEW_ARRAY(c->scratch, int64_t, n + 1)};
    const Atom **loop = NEW_ARRAY(c->scratch, const Atom *, n + 1);
    const Atom **now = NEW_ARRAY(c->scratch, const Atom *, n + 1);
    IdxSubst    *sub = subst_new(A, c->scratch);
    const Idx  **bind = DUP_ARRAY(c->arena, b.bind, n + b.nreduce);

    for (uint32_t i = 0; i < n; i++)
        l.lo[i] = least(&b, i), l.hi[i] = most(&b, i);
    for (uint32_t i = 0; i < n; i++) {
        const Atom *v = loop_of_iter(&b, A, i);

        if (!v || v->below || l.lo[i] != b.bind[i]->lo || l.hi[i] != b.bind[i]->hi)
            continue;
        while (l.lo[i] <= l.hi[i] && !is_read(r, &l, i, l.lo[i]))
            l.lo[i]++;
        if (l.lo[i] > l.hi[i]) {
            *fewer = true;
            edit(w, s, stmt_seq(c, 0, NULL));
            return w->f;
        }
        while (!is_read(r, &l, i, l.hi[i]))
            l.hi[i]--;
        if (l.lo[i] == b.bind[i]->lo && l.hi[i] == b.bind[i]->hi)
            continue;
        loop[i] = v;
        now[i] = fresh_var(c, v->name, l.hi[i] - l.lo[i] + 1);
        subst_bind(sub, v, idx_addc(A, idx_atom(A, now[i]), l.lo[i] - b.bind[i]->c0));
        *fewer = true;
    }
    for (uint32_t i = 0; i < n + b.nreduce; i++)
        bind[i] = idx_subst(sub, b.bind[i]);
    b.bind = bind;
    b.where = pred_subst(sub, c->arena, b.where);
    const Stmt *block = stmt_block(c, b, s->nkids, s->kids, s->loc);
    return loops_shrink(w, site, block, n, loop, now) ? w->f : NULL;
}

const Func *step_skip_unread(Work *w)
{
    const StepArg *ba = step_arg(w->st, 0);
    Reads          r = {.c = w->c};
    Sites          blocks, all = blocks_in(w, NO_SITE);
    bool           fewer = false;

    if (!ba || !ba->name)
        return refuse(w, "which block?");
    if (!blocks_named(w, ba->name, &blocks))
        return NULL;
    const char *name = block_at(w, blocks.at[0])->name;
    const Stmt *store = store_of(stmt_at(w, blocks.at[0]));
    if (!store || is_param(w, r.t = store->u.store.buffer))
        return refuse(w, "'%s' does not compute one tensor of this kernel alone", name);
    for (uint32_t i = 0; i < all.n; i++) {
        const Stmt *s = stmt_at(w, all.at[i]);
        bool        own = !strcmp(s->u.block.name, name);

        if (own && !stores_by_iters(s, r.t))
            return refuse(w, "'%s' does not store cells by its iterators", name);
        if (!own && access_of(s, r.t).stores)
            return refuse(w, "'%s' stores to %%%s, too", s->u.block.name, r.t->name);
        if (!own && !add_reader(w, s, &r))
            return NULL;
    }
    for (uint32_t i = 0; i < blocks.n; i++)
        if (!skip_copy(w, blocks.at[i], &r, &fewer))
            return NULL;
    return fewer ? finish(w) : refuse(w, "all cells of '%s' may be read", name);
}
