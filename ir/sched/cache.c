/* cache_write: accumulators in a nearer scope; and where tensors lie.
 *
 *     cache_write conv reg at %t
 *
 * The accumulator is indexed by the block's own spatial loops inside %t, not by a box of the
 * tensor:
 *
 *     alloc %conv.reg[p, ov, j]
 *       conv.load   reg = init where no chunk came before, else what the last chunk left
 *       conv        reg = reg + ..
 *       conv.save   tensor = reg
 *
 *     cache_write conv.save shared at %blk
 *
 * A pointwise block may share its loops inside %blk with others: its tensor's part is complete at
 * the end of %blk's body, and is saved there. */
#include "ir/sched/impl.h"
#include "ir/text/print_tir.h"
#include "ir/tir/intrin.h"

#include <string.h>

bool scope_named(Work *w, const char *name, Scope *out)
{
    for (Scope i = 0; name && i < SCOPES; i++)
        if (!strcmp(name, scope_text(i)) && i != SCOPE_CONST) {
            *out = i;
            return true;
        }
    return refuse(w, "scopes are arena, private, stack, reg, shared, local and frag") != NULL;
}

/* ---- cache_write -------------------------------------------------------------------------------- */

typedef struct {
    uint32_t      site, own; /* of the block; of its nest inside L */
    Sites         spatial;   /* its loops in there */
    AtomSet      *reduce;    /* variables of all reduce loops around the block */
    ReduceRank    rank;
    const Buffer *t, *reg;
    const Prim   *start; /* of the sum, where a block of its own gave it; NULL: the block does */
} Cache;

/* The register's index: the given variables of the loops of more than one iteration. */
static const Idx **reg_index(Work *w, const Cache *k, const Atom *const *var)
{
    const Idx **at = NEW_ARRAY(w->c->arena, const Idx *, k->spatial.n + 1);
    uint32_t    n = 0;
    for (uint32_t i = 0; i < k->spatial.n; i++) {
        const LoopData *l = loop_at(w, k->spatial.at[i]);
        if (l->var->lo != l->var->hi)
            at[n++] = idx_sub(w->c->arith, idx_atom(w->c->arith, var ? var[i] : l->var), l->lo);
    }
    return at;
}

static bool make_reg(Work *w, Cache *k, const char *name, Scope scope)
{
    const Idx **extent = NEW_ARRAY(w->c->scratch, const Idx *, k->spatial.n + 1);
    uint32_t    n = 0;
    for (uint32_t i = 0; i < k->spatial.n; i++) {
        const LoopData *l = loop_at(w, k->spatial.at[i]);
        if (!loop_extent_of(stmt_at(w, k->spatial.at[i]), NULL))
            return refuse(w, "the extent of %%%s is not constant", l->var->name) != NULL;
        if (l->var->lo != l->var->hi)
            extent[n++] = l->extent;
    }
    k->reg = buffer_new(w->c, name, k->t->dtype, scope, n, extent);
    return true;
}

/* A copy of the spatial loops around `store`, as block `<B>.<suffix>`. */
static const Stmt *copy_nest(Work *w, const Cache *k, const char *suffix, bool save)
{
    Ctx        *c = w->c;
    Arith      *A = c->arith;
    const Stmt *s = stmt_at(w, k->site), *store = store_of(s), *init = init_of(s);
    BlockData   b = s->u.block;
    IdxSubst   *fresh = subst_new(A, c->scratch);
    FreshLoops  l = loops_fresh(w, &k->spatial, fresh);
    const Idx **bind = NEW_ARRAY(c->arena, const Idx *, b.nspatial);

    for (uint32_t i = 0; i < b.nspatial; i++)
        bind[i] = idx_subst(fresh, b.bind[i]);
    b.name = intern_printf(c->strings, "%s.%s", b.name, suffix);
    b.bind = bind;
    b.nreduce = b.nseq = 0;
    b.has_init = false;
    b.where = pred_subst(fresh, c->arena, where_without(w, b.where, k->reduce));
    const Idx **reg = reg_index(w, k, l.var), **cell = NEW_ARRAY(c->arena, const Idx *, k->t->ndim);
    for (uint32_t d = 0; d < k->t->ndim; d++) /* it may speak of loops */
        cell[d] = idx_subst(fresh, store->u.store.index[d]);
    if (save) {
        store = stmt_store(c, k->t, cell, prim_load(c, k->reg, reg));
    } else {
        const Prim *start = init       ? prim_subst(c, init->u.store.value, fresh)
                            : k->start ? k->start
                                       : prim_load(c, k->t, cell);
        if (init && k->rank.last) {
            const Prim *first =
                prim_eq(c, prim_index(c, DT_I64, k->rank.rank), prim_int(c, DT_I64, 0));
            start = prim_select(c, first, start, prim_load(c, k->t, cell));
        }
        store = stmt_store(c, k->reg, reg, start);
    }
    return loops_wrap(c, l, stmt_block(c, b, 1, &store, s->loc));
}

/* With all inner reduce loops at their start every reduce iterator is at its own in the first
 * chunk, and the last chunk ends at their ends: this copy of the block does the whole reduction. */
static bool whole_reduction(Work *w, const Cache *k)
{
    Arith           *A = w->c->arith;
    const BlockData *b = block_at(w, k->site);
    Sites            loops = loops_around_site(w, NO_SITE, k->site);
    IdxSubst        *lo = subst_new(A, w->c->scratch), *hi = subst_new(A, w->c->scratch);
    for (uint32_t i = 0; i < loops.n; i++) {
        const LoopData *l = loop_at(w, loops.at[i]);
        if (l->kind != LOOP_REDUCE)
            continue;
        subst_bind(lo, l->var, idx_const(A, l->var->lo));
        subst_bind(hi, l->var, idx_const(A, l->var->hi));
    }
    for (uint32_t i = b->nspatial; i < b->nspatial + b->nreduce; i++)
        if (idx_subst(lo, b->bind[i]) != idx_const(A, b->iter[i]->lo) ||
            idx_subst(hi, b->bind[i])->lo < b->iter[i]->hi)
            return false;
    return true;
}

/* The sum's loops come to all cells. */
static bool visits_all(Work *w, const Cache *k)
{
    const BlockData *b = block_at(w, k->site);
    Pred             where = where_without(w, b->where, k->reduce);

    for (uint32_t i = 0; i < where.n; i++)
        if (!is_range(w->c->arith, b, where.ge0[i]))
            return false;
    return true;
}

/* The number with which the block `<b>.init` (rfactor's) starts all cells, if nothing comes to them
 * between: the register starts with it, and that block goes. */
static const Prim *take_start(Work *w, const Cache *k)
{
    const BlockData *b = block_at(w, k->site);
    const char      *name = intern_printf(w->c->strings, "%s.init", b->name);
    Sites            all = blocks_in(w, NO_SITE);
    uint32_t         first = NO_SITE, copies = 0;

    for (uint32_t i = 0; i < all.n; i++) {
        const char *is = block_at(w, all.at[i])->name;
        Access      a = access_of(stmt_at(w, all.at[i]), k->t);
        copies += is == b->name || is == name;
        if (is == name)
            first = all.at[i];
        else if (all.at[i] < k->site && (a.loads || a.stores))
            return NULL;
    }
    const Stmt *store = first == NO_SITE ? NULL : store_of(stmt_at(w, first));
    if (copies != 2 || first > k->site || k->rank.last || !store || store->u.store.buffer != k->t ||
        (store->u.store.value->kind != PRIM_FLOAT && store->u.store.value->kind != PRIM_INT) ||
        !visits_all(w, k))
        return NULL;
    edit(w, stmt_at(w, first), stmt_seq(w->c, 0, NULL));
    return store->u.store.value;
}

static const Prim *reg_load(Ctx *c, void *user, const Prim *p)
{
    void **u = user;
    return p->kind == PRIM_LOAD && p->u.load.buffer == u[0] ? prim_load(c, u[1], u[2]) : p;
}

/* The loops between hold other blocks: none of them touches the block's tensor, and each round
 * writes cells of its own. */
static bool saves_last(Work *w, uint32_t loop, uint32_t site, const Buffer *t)
{
    const char *name = block_at(w, site)->name, *outer = loop_at(w, loop)->var->name;
    Sites       all = blocks_in(w, loop), loops = loops_around_site(w, loop, site);

    for (uint32_t i = 0; i < all.n; i++) {
        Access a = access_of(stmt_at(w, all.at[i]), t);
        if (all.at[i] != site && (a.loads || a.stores || a.in_index))
            return refuse(w, "'%s' in %%%s touches %%%s, too", block_at(w, all.at[i])->name, outer,
                          t->name) != NULL;
    }
    for (uint32_t i = 0; i < loops.n; i++)
        if (loop_at(w, loops.at[i])->kind != LOOP_SPATIAL)
            return refuse(w, "%%%s, between %%%s and '%s', is not spatial",
                          loop_at(w, loops.at[i])->var->name, outer, name) != NULL;
    return true;
}

static const Func *cache_copy(Work *w, uint32_t loop, uint32_t site, Scope scope)
{
    Ctx        *c = w->c;
    const Stmt *s = stmt_at(w, site), *store = store_of(s);
    BlockData   b = s->u.block;
    Cache       k = {.site = site, .reduce = atomset_new(c->scratch)};

    if (!store)
        return refuse(w, "'%s' writes more than one cell", b.name);
    if (b.nseq)
        return refuse(w, "'%s' is sequential", b.name);
    k.t = store->u.store.buffer;
    k.own = own_nest(w, loop, site);
    bool last = loops_around_site(w, loop, k.own).n;
    if (last && !is_pointwise(s))
        return refuse(w, "loops between %%%s and '%s' hold other blocks",
                      loop_at(w, loop)->var->name, b.name);
    if (last && !saves_last(w, loop, site, k.t))
        return NULL;
    Sites inner = loops_around_site(w, last ? loop : w->nest.at[k.own].parent, site);
    Sites every = loops_around_site(w, NO_SITE, site);
    for (uint32_t i = 0; i < inner.n; i++)
        if (loop_at(w, inner.at[i])->kind == LOOP_SPATIAL)
            vec_push(c->scratch, &k.spatial, inner.at[i]);
    for (uint32_t i = 0; i < every.n; i++)
        if (b.nreduce && loop_at(w, every.at[i])->kind == LOOP_REDUCE &&
            reduces_over(w, s, loop_at(w, every.at[i])->var))
            atomset_add(k.reduce, loop_at(w, every.at[i])->var);
    if (!reduce_rank(w, k.own, s, PRED_TRUE, &k.rank))
        return NULL;
    if (k.rank.last) {
        AtomSet *outer = atomset_new(c->scratch);
        for (uint32_t i = 0; i < every.n; i++)
            if (!inside(w, every.at[i], k.own) && every.at[i] != k.own &&
                loop_at(w, every.at[i])->kind == LOOP_REDUCE)
                atomset_add(outer, loop_at(w, every.at[i])->var);
        for (uint32_t i = 0; i < b.where.n; i++)
            if (idx_uses_any(b.where.ge0[i], outer))
                return refuse(w, "a reduce loop outside is guarded");
        if (b.redundant)
            return refuse(w, "'%s' may run more than once", b.name);
    }
    if (b.nreduce && !whole_reduction(w, &k))
        return refuse(w, "this copy of '%s' does a part of the reduction", b.name);
    Access a = access_of(s, k.t);
    if (a.in_index || !a.same_load ||
        (a.loads && !same_index(k.t->ndim, a.load, store->u.store.index)))
        return refuse(w, "'%s' reads other cells of %%%s", b.name, k.t->name);
    if (!make_reg(w, &k, intern_printf(c->strings, "%s.%s", b.name, scope_text(scope)), scope))
        return NULL;

    if (b.nreduce && !b.has_init)
        k.start = take_start(w, &k);
    const Stmt *parts[3];
    uint32_t    n = 0;
    if (b.nreduce)
        parts[n++] = copy_nest(w, &k, "load", false);
    const Idx **reg = reg_index(w, &k, NULL);
    void *user[3] = {(void *)(uintptr_t)k.t, (void *)(uintptr_t)k.reg, (void *)(uintptr_t)reg};
    const Prim *value = store->u.store.value;
    if (b.nreduce) /* a pointwise block reads what was there before it */
        value = prim_map(c, value, &(TirMap){.user = user, .prim = reg_load});
    b.has_init = false;
    store = stmt_store(c, k.reg, reg, value);
    const Stmt *now = stmt_block(c, b, 1, &store, s->loc);
    if (last) {
        const Stmt *at = stmt_at(w, loop);
        edit(w, s, now);
        parts[0] = body_with_edits(w, loop);
        parts[1] = copy_nest(w, &k, "save", true);
        edit(w, at, stmt_for(c, at->u.loop, stmt_alloc(c, k.reg, stmt_seq(c, 2, parts)), at->loc));
        return w->f;
    }
    for (uint32_t p = site; p != k.own;) { /* the loops between, as they are */
        p = w->nest.at[p].parent;
        now = stmt_with_kids(c, stmt_at(w, p), &now);
    }
    parts[n++] = now;
    parts[n++] = copy_nest(w, &k, "save", true);
    edit(w, stmt_at(w, k.own), stmt_alloc(c, k.reg, stmt_seq(c, n, parts)));
    return w->f;
}

const Func *each_block_at(Work *w, AtLoop *one, const char *usage)
{
    const StepArg *ba = step_arg(w->st, 0), *sa = step_arg(w->st, 1),
                  *at = step_option(w->st, "at");
    Sites    blocks, loops;
    Scope    scope;
    uint32_t found = 0;

    if (!ba || !ba->name || !sa || !at || !at->name)
        return refuse(w, "write `%s`", usage);
    if (!scope_named(w, sa->name, &scope) || !blocks_named(w, ba->name, &blocks) ||
        !loops_named(w, at->name, &loops))
        return NULL;
    for (uint32_t i = 0; i < loops.n; i++) {
        uint32_t in = 0, site = 0;
        for (uint32_t k = 0; k < blocks.n; k++)
            if (inside(w, blocks.at[k], loops.at[i])) {
                site = blocks.at[k];
                in++;
            }
        found += in;
        if (in > 1)
            return refuse(w, "%%%s holds %u copies of '%s'", at->name, in, ba->name);
        if (loop_at(w, loops.at[i])->vector)
            return refuse(w, "%%%s is a vector loop", at->name);
        if (in && !one(w, loops.at[i], site, scope))
            return NULL;
    }
    if (found != blocks.n)
        return refuse(w, "%%%s does not enclose '%s'", at->name, ba->name);
    return finish(w);
}

const Func *step_cache_write(Work *w)
{
    return each_block_at(w, cache_copy, "cache_write b reg at %l");
}

/* ---- scopes --------------------------------------------------------------------------------------- */

/* Whether all accesses to a tensor have one index in a dimension. */
typedef struct {
    const Buffer *t;
    uint32_t      d;
    IdxSubst     *bound; /* the block's iterators are what its loops say */
    const Idx    *at;
    bool          other;
} OneCell;

static void see_cell(OneCell *o, const Idx *const *index)
{
    const Idx *x = idx_subst(o->bound, index[o->d]);

    o->other = o->other || (o->at && o->at != x);
    o->at = x;
}

static bool see_store(void *user, const Stmt *s)
{
    OneCell *o = user;

    if (s->kind == STMT_STORE && s->u.store.buffer == o->t)
        see_cell(o, s->u.store.index);
    return true;
}

static void see_load(void *user, const Prim *p)
{
    OneCell *o = user;

    if (p->kind == PRIM_LOAD && p->u.load.buffer == o->t)
        see_cell(o, p->u.load.index);
}

/* Loads inside indices, too. */
static void see_index(void *user, const Idx *x)
{
    for (uint32_t i = 0; i < x->nterms; i++)
        if (x->t[i].atom->kind == ATOM_LOAD)
            prim_visit(x->t[i].atom->load,
                       &(TirVisit){.user = user, .prim = see_load, .idx = see_index});
}

/* All blocks have that dimension's index in common: one cell is left of it (pass compact). */
static bool has_one_cell(Work *w, const Buffer *t, uint32_t d)
{
    Sites   all = blocks_in(w, NO_SITE);
    OneCell o = {.t = t, .d = d};

    for (uint32_t i = 0; i < all.n && !o.other; i++) {
        const Stmt *s = stmt_at(w, all.at[i]);

        o.bound = subst_new(w->c->arith, w->c->scratch);
        bind_iters(s, o.bound);
        stmt_visit(s,
                   &(TirVisit){.user = &o, .enter = see_store, .prim = see_load, .idx = see_index});
    }
    return o.at && !o.other;
}

const Func *step_set_scope(Work *w)
{
    const StepArg *ta = step_arg(w->st, 0), *sa = step_arg(w->st, 1);
    Scope          scope;

    if (!ta || !ta->name || !sa)
        return refuse(w, "write `set_scope %%t private`");
    const Buffer *t = buffer_named(w, ta->name);
    if (!t || !scope_named(w, sa->name, &scope))
        return NULL;
    if (is_param(w, t))
        return refuse(w, "%%%s is a parameter", t->name);
    /* Scratch has room for the largest size; what the stack holds mostly shrinks to a number. */
    for (uint32_t d = 0;
         d < t->ndim && scope != SCOPE_PRIVATE && scope != SCOPE_STACK && scope != SCOPE_REG; d++)
        if (!idx_is_const(t->extent[d], NULL) && !(scope == SCOPE_SHARED && has_one_cell(w, t, d)))
            return refuse(w, "the size of %%%s is not constant", t->name);
    /* A buffer of one thread must not carry values from one iteration of a parallel loop to
     * another, or out of it: all its blocks lie in the same one. */
    Sites    all = blocks_in(w, NO_SITE);
    uint32_t home = NO_SITE;
    bool     any = false, mixed = false;
    for (uint32_t i = 0; i < all.n; i++) {
        Access   a = access_of(stmt_at(w, all.at[i]), t);
        uint32_t par = NO_SITE;
        if ((!a.loads && !a.stores) || is_halo_of(block_at(w, all.at[i]), t))
            continue;
        for (uint32_t p = all.at[i]; p != NO_SITE; p = w->nest.at[p].parent)
            if (stmt_at(w, p)->kind == STMT_FOR && loop_at(w, p)->parallel)
                par = p;
        mixed |= any && par != home;
        home = par;
        any = true;
    }
    if (scope != SCOPE_ARENA && scope != SCOPE_SHARED && mixed)
        return refuse(w, "%%%s carries values between threads", t->name);
    return with_scope(w, w->f, t, scope);
}

/* A row, plane, .. may be longer than its cells, so that several which are in use together do not
 * lie in the same few sets of a cache.  Sizes may still change (compute_at), so this is a wish that
 * buffer_strides fulfils.  As in Halide and TVM (storage_align). */
const Func *step_storage_align(Work *w)
{
    const StepArg *ta = step_arg(w->st, 0), *dim = step_option(w->st, "dim"),
                  *by = step_option(w->st, "by"), *off = step_option(w->st, "offset");

    if (!ta || !ta->name || !dim || !by || !off || by->num < 1 || by->num > MAX_PITCH ||
        off->num < 0 || off->num >= by->num)
        return refuse(w, "write `storage_align %%t dim=1 by 32 offset=16`, elements up to %d",
                      MAX_PITCH);
    const Buffer *t = buffer_named(w, ta->name);
    if (!t)
        return NULL;
    if (is_param(w, t))
        return refuse(w, "%%%s is a parameter", t->name);
    if (dim->num < 0 || dim->num >= t->ndim)
        return refuse(w, "%%%s has %u dimensions", t->name, t->ndim);
    Buffer now = *t;
    now.pitch =
        arena_dup(w->c->arena, &(Pitch){(uint32_t)dim->num, by->num, off->num}, sizeof(Pitch));
    return with_buffer(w, w->f, t, buffer_copy(w->c, t, now));
}

/* As the unit that multiplies for four warps reads it (ir/tir/group.c). */
const Func *step_exchange(Work *w)
{
    const StepArg *ta = step_arg(w->st, 0);

    if (!ta || !ta->name)
        return refuse(w, "write `exchange %%t`");
    const Buffer *t = buffer_named(w, ta->name);
    if (!t)
        return NULL;
    if (t->scope != SCOPE_SHARED)
        return refuse(w, "%%%s is not shared", t->name);
    if (t->pitch || t->swizzle)
        return refuse(w, "rows of %%%s are longer than their cells, or change places", t->name);
    Buffer now = *t;
    now.exchanged = true;
    now.align = GROUP_BORDER;
    return with_buffer(w, w->f, t, buffer_copy(w->c, t, now));
}

/* What a thread loads at a time, 16 bytes, stays together; which of a row's places it has depends
 * on the row (buffer_swizzled).  That rows are this long nothing depends on but the banks. */
const Func *step_swizzle(Work *w)
{
    const StepArg *ta = step_arg(w->st, 0), *by = step_option(w->st, "by");

    if (!ta || !ta->name || !by || by->num < 1 || by->num > MAX_SWIZZLE ||
        (by->num & (by->num - 1)))
        return refuse(w, "write `swizzle %%t by 32`, a power of two up to %d", MAX_SWIZZLE);
    const Buffer *t = buffer_named(w, ta->name);
    if (!t)
        return NULL;
    if (t->scope != SCOPE_SHARED)
        return refuse(w, "%%%s is not shared", t->name);
    if (t->pitch)
        return refuse(w, "rows of %%%s are longer than their cells", t->name);
    if (by->num * dtype_bytes(t->dtype) < 32)
        return refuse(w, "a row of %lld cells of %%%s has one place", (long long)by->num, t->name);
    Buffer now = *t;
    now.swizzle = (uint32_t)by->num;
    return with_buffer(w, w->f, t, buffer_copy(w->c, t, now));
}
