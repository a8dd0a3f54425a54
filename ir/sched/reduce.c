/* decompose_reduction and rfactor.
 *
 *     rfactor %part      sum over k = part*n + kk:
 *       sum.rf.init   %sum.rf[part, ..] = identity
 *       sum.rf        %sum.rf[part, ..] += ..             the original nest, %part now spatial
 *       sum           %sum[..] += %sum.rf[part, ..]       in order of part
 */
#include "ir/sched/impl.h"

/* ---- decompose_reduction ------------------------------------------------------------------------- */

/* The start of one copy of B as a nest of its spatial loops from `loop` inwards. */
static const Stmt *start_nest(Work *w, uint32_t loop, uint32_t site)
{
    Ctx        *c = w->c;
    const Stmt *s = stmt_at(w, site), *init = init_of(s);
    Sites       all = loops_around_site(w, w->nest.at[loop].parent, site), spatial = {0};
    AtomSet    *reduce = atomset_new(c->scratch);
    IdxSubst   *fresh = subst_new(c->arith, c->scratch);
    BlockData   b = s->u.block;
    const Idx **bind = NEW_ARRAY(c->arena, const Idx *, b.nspatial);

    for (uint32_t i = 0; i < all.n; i++) {
        if (loop_at(w, all.at[i])->kind == LOOP_SPATIAL)
            vec_push(c->scratch, &spatial, all.at[i]);
        else
            atomset_add(reduce, loop_at(w, all.at[i])->var);
    }
    FreshLoops l = loops_fresh(w, &spatial, fresh);
    for (uint32_t i = 0; i < b.nspatial; i++)
        bind[i] = idx_subst(fresh, b.bind[i]);
    b.name = intern_printf(c->strings, "%s.init", b.name);
    b.bind = bind;
    b.nreduce = b.nseq = 0;
    b.has_init = false;
    b.where = pred_subst(fresh, c->arena, where_without(w, b.where, reduce));
    return loops_wrap(c, l, stmt_block(c, b, 1, &init, s->loc));
}

/* All reduce iterators are at their start when all reduce loops from `loop` inwards are. */
static bool starts_here(Work *w, uint32_t loop, uint32_t site)
{
    const BlockData *b = block_at(w, site);
    Sites            all = loops_around_site(w, w->nest.at[loop].parent, site);
    IdxSubst        *lo = subst_new(w->c->arith, w->c->scratch);
    for (uint32_t i = 0; i < all.n; i++)
        if (loop_at(w, all.at[i])->kind == LOOP_REDUCE)
            subst_bind(lo, loop_at(w, all.at[i])->var,
                       idx_const(w->c->arith, loop_at(w, all.at[i])->var->lo));
    for (uint32_t i = b->nspatial; i < b->nspatial + b->nreduce; i++)
        if (idx_subst(lo, b->bind[i]) != idx_const(w->c->arith, b->iter[i]->lo))
            return false;
    for (uint32_t i = 0; i < b->where.n; i++)
        if (idx_never(idx_subst(lo, b->where.ge0[i])))
            return false;
    return true;
}

const Func *step_decompose_reduction(Work *w)
{
    const StepArg *ba = step_arg(w->st, 0), *la = step_arg(w->st, 1);
    Sites          blocks, loops;
    uint32_t       found = 0;

    if (!ba || !ba->name || !la || !la->name)
        return refuse(w, "write `decompose_reduction b %%l`");
    if (!blocks_named(w, ba->name, &blocks) || !loops_named(w, la->name, &loops))
        return NULL;
    for (uint32_t i = 0; i < loops.n; i++) {
        Stmts parts = {0};
        Sites outer = loops_around_site(w, NO_SITE, loops.at[i]);
        for (uint32_t k = 0; k < blocks.n; k++) {
            const Stmt      *s = stmt_at(w, blocks.at[k]);
            const BlockData *b = &s->u.block;
            if (!inside(w, blocks.at[k], loops.at[i]))
                continue;
            found++;
            if (!b->has_init)
                return refuse(w, "'%s' has no start of its own", b->name);
            if (!is_closed(w, blocks.at[k]))
                return refuse(w, "'%s' depends on the loops around it", b->name);
            for (uint32_t o = 0; o < outer.n; o++)
                if (loop_at(w, outer.at[o])->kind == LOOP_REDUCE &&
                    reduces_over(s, loop_at(w, outer.at[o])->var))
                    return refuse(w, "the reduce loop %%%s lies outside %%%s",
                                  loop_at(w, outer.at[o])->var->name, la->name);
            Sites held = blocks_in(w, loops.at[i]);
            for (uint32_t h = 0; h < held.n; h++)
                if (block_at(w, held.at[h])->name != b->name)
                    return refuse(w, "%%%s also holds '%s'", la->name,
                                  block_at(w, held.at[h])->name);
            if (starts_here(w, loops.at[i], blocks.at[k]))
                vec_push(w->c->scratch, &parts, start_nest(w, loops.at[i], blocks.at[k]));
            BlockData now = *b;
            now.has_init = false;
            edit(w, s, stmt_block(w->c, now, s->nkids - 1, s->kids + 1, s->loc));
        }
        if (!parts.n)
            continue;
        LoopData l = *loop_at(w, loops.at[i]);
        vec_push(w->c->scratch, &parts,
                 stmt_for(w->c, l, body_with_edits(w, loops.at[i]), stmt_at(w, loops.at[i])->loc));
        edit(w, stmt_at(w, loops.at[i]), stmt_seq(w->c, parts.n, parts.at));
    }
    if (found != blocks.n)
        return refuse(w, "%%%s does not enclose '%s'", la->name, ba->name);
    return finish(w);
}

/* ---- rfactor ------------------------------------------------------------------------------------- */

static bool is_load_of(const Prim *p, const Buffer *t)
{
    return p->kind == PRIM_LOAD && p->u.load.buffer == t;
}

/* t = select(t < e, e, t) */
static bool is_maxnum(const Prim *p, const Buffer *t)
{
    const Prim *lt = p->kids[0];
    return p->kind == PRIM_SELECT && lt->kind == PRIM_LT && is_load_of(lt->kids[0], t) &&
           lt->kids[1] == p->kids[1] && p->kids[2] == lt->kids[0] &&
           !prim_access(p->kids[1], t).loads;
}

/* The combiner of `t = t op e`, the load of t first; false if it is none of ours. */
static bool combiner_of(const Prim *p, const Buffer *t, Combiner *comb)
{
    static const struct {
        PrimKind kind;
        Combiner comb;
    } table[] = {{PRIM_ADD, COMB_SUM}, {PRIM_MUL, COMB_PROD}, {PRIM_MAX, COMB_MAX},
                 {PRIM_MIN, COMB_MIN}, {PRIM_OR, COMB_ANY},   {PRIM_AND, COMB_ALL}};
    if (p->kind == PRIM_FMA) {
        *comb = COMB_SUM;
        return p->kids[2]->kind == PRIM_LOAD && p->kids[2]->u.load.buffer == t &&
               !prim_access(p->kids[0], t).loads && !prim_access(p->kids[1], t).loads;
    }
    if (p->nkids == 3 && is_maxnum(p, t)) {
        *comb = COMB_MAXNUM;
        return true;
    }
    for (uint32_t i = 0; i < COUNT(table); i++) {
        if (p->kind != table[i].kind)
            continue;
        *comb = table[i].comb;
        if ((*comb == COMB_ANY || *comb == COMB_ALL) && !dtype_is_bool(p->dtype))
            return false;
        for (int k = 0; k < 2; k++)
            if (p->kids[k]->kind == PRIM_LOAD && p->kids[k]->u.load.buffer == t &&
                !prim_access(p->kids[1 - k], t).loads)
                return true;
    }
    return false;
}

static const Idx *const *prepend(Ctx *c, const Idx *first, uint32_t n, const Idx *const *rest)
{
    const Idx **at = NEW_ARRAY(c->arena, const Idx *, n + 1);
    at[0] = first;
    for (uint32_t i = 0; i < n; i++)
        at[i + 1] = rest[i];
    return at;
}

static const Idx *const *prepend_index(Ctx *c, void *user, uint32_t n, const Idx *const *index)
{
    return prepend(c, user, n, index);
}

/* The nest from `own` with L spatial; its block's place is taken by `block`. */
static const Stmt *with_spatial(Work *w, uint32_t own, uint32_t site, uint32_t L, const Stmt *block)
{
    for (uint32_t p = site; p != own;) {
        p = w->nest.at[p].parent;
        LoopData l = *loop_at(w, p);
        if (p == L)
            l.kind = LOOP_SPATIAL;
        block = stmt_for(w->c, l, block, stmt_at(w, p)->loc);
    }
    return block;
}

/* `base`.rf, or `base`.rf2 and so on where partial results are factored again. */
static const char *part_name(const Work *w, const char *base)
{
    for (uint32_t k = 1;; k++) {
        const char *name = k == 1 ? intern_printf(w->c->strings, "%s.rf", base)
                                  : intern_printf(w->c->strings, "%s.rf%u", base, k);
        bool        taken = false;

        for (uint32_t i = 0; i < w->nest.n && !taken; i++) {
            const Stmt *s = stmt_at(w, i);
            taken = (s->kind == STMT_ALLOC && s->u.buffer->name == name) ||
                    (s->kind == STMT_BLOCK && s->u.block.name == name);
        }
        if (!taken)
            return name;
    }
}

/* The partial tensor, which all copies of the block share. */
typedef struct {
    const Buffer *of, *rf;
    const char   *block; /* name of its block */
    int64_t       parts;
    bool          alone, local; /* of one copy; declared beside it */
} Partial;

static bool is_cut(const Work *w, const char *loop)
{
    for (uint32_t i = 0; i < w->s->cut.n; i++)
        if (w->s->cut.at[i] == loop)
            return true;
    return false;
}

/* One copy of the loop, at L; refused: NULL. */
static const Func *factor(Work *w, uint32_t L, Partial *shared)
{
    Ctx            *c = w->c;
    Arith          *A = c->arith;
    Combiner        comb;
    int64_t         parts;
    const LoopData *l = loop_at(w, L);
    Sites           in = blocks_in(w, L);
    if (l->kind != LOOP_REDUCE)
        return refuse(w, "it is not a reduce loop");
    if (!loop_extent_of(stmt_at(w, L), &parts) || !idx_is_const(l->lo, NULL) || l->lo->c0)
        return refuse(w, "its extent is not constant");
    if (in.n != 1)
        return refuse(w, "it holds %u blocks", in.n);
    uint32_t         site = in.at[0];
    const Stmt      *s = stmt_at(w, site), *store = store_of(s);
    const BlockData *b = &s->u.block;
    if (!store || b->nseq || !b->nreduce)
        return refuse(w, "'%s' is not one reduction", b->name);
    /* A block that may run more than once starts anew each time, as its parts will. */
    if ((b->redundant && !b->has_init) || !names_no_loops(w, site))
        return refuse(w, "'%s' depends on the loops around it", b->name);
    const Buffer *t = store->u.store.buffer;
    if (!combiner_of(store->u.store.value, t, &comb))
        return refuse(w, "how '%s' combines is not known", b->name);
    uint32_t own = own_nest(w, NO_SITE, site);
    if (!inside(w, L, own) && L != own)
        return refuse(w, "loops around '%s' hold other blocks", b->name);
    for (uint32_t p = w->nest.at[site].parent; p != w->nest.at[own].parent;
         p = w->nest.at[p].parent)
        if (stmt_at(w, p)->kind != STMT_FOR)
            return refuse(w, "loops around '%s' hold other blocks", b->name);
    Sites all = loops_around_site(w, w->nest.at[own].parent, site), spatial = {0}, reduce = {0};
    for (uint32_t i = 0; i < all.n; i++) {
        const LoopData *d = loop_at(w, all.at[i]);
        if (!loop_extent_of(stmt_at(w, all.at[i]), NULL))
            return refuse(w, "the extent of %%%s is not constant", d->var->name);
        if (loop_marks(d))
            return refuse(w, "%%%s is already marked", d->var->name);
        if (d->kind == LOOP_SPATIAL) {
            vec_push(c->scratch, &spatial, all.at[i]);
            continue;
        }
        if (all.at[i] != L)
            vec_push(c->scratch, &reduce, all.at[i]);
        if (!shared->alone && is_cut(w, d->var->name)) /* no copy has the whole sum */
            return refuse(w, "the reduce loop %%%s is cut in copies; split with tail=if",
                          d->var->name);
    }
    Sites outside = loops_around_site(w, NO_SITE, own);
    for (uint32_t i = 0; i < outside.n; i++)
        if (loop_at(w, outside.at[i])->kind == LOOP_REDUCE &&
            reduces_over(s, loop_at(w, outside.at[i])->var))
            return refuse(w, "loops around '%s' hold other blocks", b->name);

    /* The partial tensor: L's iterations first. */
    const Atom *part = atom_var(A, l->var->name, 0, parts - 1);
    if (!shared->rf)
        *shared =
            (Partial){.of = t,
                      .rf = buffer_new(c, part_name(w, t->name), t->dtype, SCOPE_ARENA, t->ndim + 1,
                                       prepend(c, idx_const(A, parts), t->ndim, t->extent)),
                      .block = part_name(w, b->name),
                      .parts = parts,
                      .alone = shared->alone};
    if (shared->of != t || shared->parts != parts)
        return refuse(w, "copies of %%%s are not alike", l->var->name);
    const char   *rfname = shared->block;
    const Buffer *rf = shared->rf;
    /* Its block: old reduce iterators are values of `part` and of one iterator for each other loop.
     */
    uint32_t     ns = b->nspatial + 1, nr = reduce.n;
    const Atom **iter = NEW_ARRAY(c->arena, const Atom *, ns + nr);
    const Idx  **bind = NEW_ARRAY(c->arena, const Idx *, ns + nr);
    IdxSubst    *loop_to_iter = subst_new(A, c->scratch), *old = subst_new(A, c->scratch);
    iter[0] = part;
    bind[0] = idx_atom(A, l->var);
    subst_bind(loop_to_iter, l->var, idx_atom(A, part));
    for (uint32_t i = 0; i < b->nspatial; i++) {
        iter[i + 1] = b->iter[i];
        bind[i + 1] = b->bind[i];
    }
    for (uint32_t i = 0; i < nr; i++) {
        const LoopData *d = loop_at(w, reduce.at[i]);
        iter[ns + i] = atom_var(A, d->var->name, 0, d->var->hi - d->var->lo);
        bind[ns + i] = idx_sub(A, idx_atom(A, d->var), d->lo);
        subst_bind(loop_to_iter, d->var, idx_add(A, idx_atom(A, iter[ns + i]), d->lo));
    }
    for (uint32_t i = b->nspatial; i < b->nspatial + b->nreduce; i++)
        subst_bind(old, b->iter[i], idx_subst(loop_to_iter, b->bind[i]));
    BlockData rb = *b;
    rb.name = rfname;
    rb.nspatial = ns;
    rb.nreduce = nr;
    rb.iter = iter;
    rb.bind = bind;
    rb.has_init = false;
    const Stmt *update = retarget(c, stmt_subst(c, store, old), t, rf, prepend_index,
                                  (void *)(uintptr_t)idx_atom(A, part));
    const Stmt *rf_nest = with_spatial(w, own, site, L, stmt_block(c, rb, 1, &update, s->loc));

    /* Its start, everywhere: a part may have nothing to add. */
    AtomSet *rvars = atomset_new(c->scratch);
    for (uint32_t i = 0; i < all.n; i++)
        if (loop_at(w, all.at[i])->kind == LOOP_REDUCE)
            atomset_add(rvars, loop_at(w, all.at[i])->var);
    IdxSubst   *fresh = subst_new(A, c->scratch);
    FreshLoops  fl = loops_fresh(w, &spatial, fresh);
    const Atom *pv = atom_var(A, l->var->name, 0, parts - 1);
    const Idx **ibind = NEW_ARRAY(c->arena, const Idx *, ns);
    BlockData   ib = *b;
    ibind[0] = idx_atom(A, pv);
    for (uint32_t i = 0; i < b->nspatial; i++)
        ibind[i + 1] = idx_subst(fresh, b->bind[i]);
    ib.name = intern_printf(c->strings, "%s.init", rfname);
    ib.nspatial = ns;
    ib.nreduce = 0;
    ib.iter = iter;
    ib.bind = ibind;
    ib.has_init = false;
    ib.where = pred_subst(fresh, c->arena, where_without(w, b->where, rvars));
    const Idx *const *cell = prepend(c, idx_atom(A, part), t->ndim, store->u.store.index);
    const Stmt       *zero = stmt_store(c, rf, cell, comb_identity(c, comb, t->dtype));
    const Stmt       *init_nest = loops_wrap(c, fl, stmt_block(c, ib, 1, &zero, s->loc));
    init_nest = loop_of(c, pv, LOOP_SPATIAL, init_nest, s->loc);

    /* The rest: B over the parts, in order, from its own start or what is there already. */
    IdxSubst   *fresh2 = subst_new(A, c->scratch);
    FreshLoops  fl2 = loops_fresh(w, &spatial, fresh2);
    const Atom *fv =
        atom_var(A, intern_printf(c->strings, "%s.%s", b->name, l->var->name), 0, parts - 1);
    const Atom **fiter = NEW_ARRAY(c->arena, const Atom *, ns);
    const Idx  **fbind = NEW_ARRAY(c->arena, const Idx *, ns);
    BlockData    fb = *b;
    for (uint32_t i = 0; i < b->nspatial; i++) {
        fiter[i] = b->iter[i];
        fbind[i] = idx_subst(fresh2, b->bind[i]);
    }
    fiter[b->nspatial] = part;
    fbind[b->nspatial] = idx_atom(A, fv);
    fb.nreduce = 1;
    fb.iter = fiter;
    fb.bind = fbind;
    fb.where = pred_subst(fresh2, c->arena, where_without(w, b->where, rvars));
    const Stmt *kids[2] = {b->has_init ? init_of(s) : NULL, NULL};
    kids[b->has_init] = stmt_store(
        c, t, store->u.store.index,
        comb_apply(c, comb, prim_load(c, t, store->u.store.index), prim_load(c, rf, cell)));
    const Stmt *last =
        loop_of(c, fv, LOOP_REDUCE, stmt_block(c, fb, 1 + b->has_init, kids, s->loc), s->loc);
    last = loops_wrap(c, fl2, last);
    const Stmt *three[3] = {init_nest, rf_nest, last};
    const Stmt *seq = stmt_seq(c, 3, three);
    /* Of one copy it is the loops' around it; of several, the function's. */
    shared->local = shared->alone && loops_around_site(w, NO_SITE, own).n > 0;
    edit(w, stmt_at(w, own), shared->local ? stmt_alloc(c, rf, seq) : seq);
    return w->f;
}

const Func *step_rfactor(Work *w)
{
    const StepArg *la = step_arg(w->st, 0);
    Sites          loops;
    Partial        p = {0};

    if (!la || !la->name)
        return refuse(w, "which loop?");
    if (!loops_named(w, la->name, &loops))
        return NULL;
    p.alone = loops.n == 1;
    for (uint32_t i = 0; i < loops.n; i++)
        if (!factor(w, loops.at[i], &p))
            return NULL;
    const Func *f = finish(w);
    return p.local ? f : func_with_body(w->c, f, stmt_alloc(w->c, p.rf, f->body));
}
