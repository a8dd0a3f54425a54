/* decompose_reduction and rfactor.
 *
 *     rfactor %part      sum over k = part*n + kk:
 *       sum.rf.init   %sum.rf[part, ..] = identity
 *       sum.rf        %sum.rf[part, ..] += ..             the original nest, %part now spatial
 *       sum           %sum[..] += %sum.rf[part, ..]       in order of part
 *
 *     rfactor %part at %b     all three in %b, where %sum.rf has a dimension for %part and one for
 *                             each spatial loop of %sum in there, whatever cells those choose */
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
                    reduces_over(w, s, loop_at(w, outer.at[o])->var))
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

static const Idx *const *given_index(Ctx *c, void *user, uint32_t n, const Idx *const *index)
{
    (void)c, (void)n, (void)index;
    return user;
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
    uint32_t      at;           /* the loop that the partial sums live in; NO_SITE: none */
    bool          alone, local; /* of one copy; declared beside it */
} Partial;

static bool is_cut(const Work *w, const char *loop)
{
    for (uint32_t i = 0; i < w->s->cut.n; i++)
        if (w->s->cut.at[i] == loop)
            return true;
    return false;
}

/* One copy of the loop that is factored, and of the reduction in it. */
typedef struct {
    Work            *w;
    uint32_t         L, site, own; /* the loop, its block, the nest that is the block's own */
    const Stmt      *s, *store;
    const BlockData *b;
    const LoopData  *l;
    const Buffer    *t; /* the sum */
    Combiner         comb;
    int64_t          parts;
    Sites            all, spatial, reduce; /* loops of its own; `reduce` without L */
    Partial         *to;
    const Atom      *part; /* iterator of the partial tensor's first dimension */
    uint32_t         nrounds;
    const Atom     **round; /* with `at`, an iterator for each of `spatial`: its other dimensions */
    const Idx *const *cell; /* of the partial tensor, over iterators */
} Factor;

/* The loop holds one reduction of a known kind. */
static bool find_reduction(Factor *x)
{
    Work *w = x->w;
    Sites in = blocks_in(w, x->L);

    if (x->l->kind != LOOP_REDUCE)
        return refuse(w, "it is not a reduce loop") != NULL;
    if (!loop_extent_of(stmt_at(w, x->L), &x->parts) || !idx_is_const(x->l->lo, NULL) ||
        x->l->lo->c0)
        return refuse(w, "its extent is not constant") != NULL;
    if (in.n != 1)
        return refuse(w, "it holds %u blocks", in.n) != NULL;
    x->site = in.at[0];
    x->s = stmt_at(w, x->site);
    x->store = store_of(x->s);
    x->b = &x->s->u.block;
    if (!x->store || x->b->nseq || !x->b->nreduce)
        return refuse(w, "'%s' is not one reduction", x->b->name) != NULL;
    /* A block that may run more than once starts anew each time, as its parts will. */
    if ((x->b->redundant && !x->b->has_init) || !names_no_loops(w, x->site))
        return refuse(w, "'%s' depends on the loops around it", x->b->name) != NULL;
    x->t = x->store->u.store.buffer;
    if (!combiner_of(x->store->u.store.value, x->t, &x->comb))
        return refuse(w, "how '%s' combines is not known", x->b->name) != NULL;
    return true;
}

/* The loops of its own are plain, and hold the whole sum. */
static bool find_loops(Factor *x)
{
    Work *w = x->w;
    Ctx  *c = w->c;

    x->own = own_nest(w, x->to->at, x->site);
    if (!inside(w, x->L, x->own) && x->L != x->own)
        return refuse(w, "loops around '%s' hold other blocks", x->b->name) != NULL;
    for (uint32_t p = w->nest.at[x->site].parent; p != w->nest.at[x->own].parent;
         p = w->nest.at[p].parent)
        if (stmt_at(w, p)->kind != STMT_FOR)
            return refuse(w, "loops around '%s' hold other blocks", x->b->name) != NULL;
    x->all = loops_around_site(w, w->nest.at[x->own].parent, x->site);
    for (uint32_t i = 0; i < x->all.n; i++) {
        const LoopData *d = loop_at(w, x->all.at[i]);
        if (!idx_is_const(d->lo, NULL))
            return refuse(w, "the first round of %%%s is not constant", d->var->name) != NULL;
        if (loop_marks(d))
            return refuse(w, "%%%s is already marked", d->var->name) != NULL;
        if (d->kind == LOOP_SPATIAL) {
            vec_push(c->scratch, &x->spatial, x->all.at[i]);
            continue;
        }
        if (x->all.at[i] != x->L)
            vec_push(c->scratch, &x->reduce, x->all.at[i]);
        if (!x->to->alone && is_cut(w, d->var->name)) /* no copy has the whole sum */
            return refuse(w, "the reduce loop %%%s is cut in copies; split with tail=if",
                          d->var->name) != NULL;
    }
    Sites outside = loops_around_site(w, NO_SITE, x->own);
    for (uint32_t i = 0; i < outside.n; i++)
        if (loop_at(w, outside.at[i])->kind == LOOP_REDUCE &&
            reduces_over(w, x->s, loop_at(w, outside.at[i])->var))
            return refuse(w, "loops around '%s' hold other blocks", x->b->name) != NULL;
    return true;
}

/* The cell of the partial tensor: L's iteration first, then that of the sum, or the rounds of the
 * loops inside `at`. */
static bool find_cell(Factor *x)
{
    Arith      *A = x->w->c->arith;
    const Idx **at = NEW_ARRAY(x->w->c->arena, const Idx *, x->spatial.n + 1);
    int64_t     n;

    x->part = atom_var(A, x->l->var->name, 0, x->parts - 1);
    if (x->to->at == NO_SITE) {
        x->cell = prepend(x->w->c, idx_atom(A, x->part), x->t->ndim, x->store->u.store.index);
        return true;
    }
    x->nrounds = x->spatial.n;
    x->round = NEW_ARRAY(x->w->c->arena, const Atom *, x->nrounds + 1);
    for (uint32_t i = 0; i < x->nrounds; i++) {
        const Atom *v = loop_at(x->w, x->spatial.at[i])->var;
        if (!loop_extent_of(stmt_at(x->w, x->spatial.at[i]), &n))
            return refuse(x->w, "the extent of %%%s is not constant", v->name) != NULL;
        x->round[i] = atom_var(A, intern_printf(x->w->c->strings, "r%u", i), 0, n - 1);
        at[i] = idx_atom(A, x->round[i]);
    }
    x->cell = prepend(x->w->c, idx_atom(A, x->part), x->nrounds, at);
    return true;
}

/* The tensor of partial results; copies of the loop share it. */
static bool find_partial(Factor *x)
{
    Work             *w = x->w;
    Ctx              *c = w->c;
    Partial          *to = x->to;
    bool              by_rounds = to->at != NO_SITE;
    uint32_t          n = by_rounds ? x->nrounds : x->t->ndim;
    const Idx *const *extent = x->t->extent;
    const Idx       **rounds = NEW_ARRAY(c->arena, const Idx *, n + 1);

    for (uint32_t i = 0; i < x->nrounds; i++)
        rounds[i] = idx_const(c->arith, x->round[i]->hi + 1);
    if (by_rounds)
        extent = rounds;
    if (!to->rf) {
        to->of = x->t;
        to->rf = buffer_new(c, part_name(w, x->t->name), x->t->dtype, SCOPE_ARENA, n + 1,
                            prepend(c, idx_const(c->arith, x->parts), n, extent));
        to->block = part_name(w, x->b->name);
        to->parts = x->parts;
    }
    return (to->of == x->t && to->parts == x->parts) ||
           refuse(w, "copies of %%%s are not alike", x->l->var->name) != NULL;
}

/* The start of a part is its block's where conditions spare it no step, else a block of its own: a
 * part may have nothing to add. */
static bool starts_inside(const Factor *x)
{
    if (x->to->at == NO_SITE)
        return false;
    for (uint32_t i = 0; i < x->all.n; i++) {
        const LoopData *d = loop_at(x->w, x->all.at[i]);
        for (uint32_t k = 0; k < x->b->where.n && d->kind == LOOP_REDUCE; k++)
            if (idx_uses(x->b->where.ge0[k], d->var))
                return false;
    }
    return true;
}

static const Stmt *start_of(const Factor *x)
{
    Ctx *c = x->w->c;

    return stmt_store(c, x->to->rf, x->cell, comb_identity(c, x->comb, x->t->dtype));
}

/* The partial sums.  The block's old reduce iterators are values of `part` and of one iterator for
 * each other loop. */
static const Stmt *partial_nest(const Factor *x)
{
    Ctx             *c = x->w->c;
    Arith           *A = c->arith;
    const BlockData *b = x->b;
    uint32_t         ns = b->nspatial + 1 + x->nrounds, nr = x->reduce.n;
    const Atom     **iter = NEW_ARRAY(c->arena, const Atom *, ns + nr);
    const Idx      **bind = NEW_ARRAY(c->arena, const Idx *, ns + nr);
    IdxSubst        *loop_to_iter = subst_new(A, c->scratch), *old = subst_new(A, c->scratch);

    iter[0] = x->part;
    bind[0] = idx_atom(A, x->l->var);
    subst_bind(loop_to_iter, x->l->var, idx_atom(A, x->part));
    for (uint32_t i = 0; i < b->nspatial; i++) {
        iter[i + 1] = b->iter[i];
        bind[i + 1] = b->bind[i];
    }
    for (uint32_t i = 0; i < x->nrounds; i++) {
        const LoopData *d = loop_at(x->w, x->spatial.at[i]);
        iter[b->nspatial + 1 + i] = x->round[i];
        bind[b->nspatial + 1 + i] = idx_sub(A, idx_atom(A, d->var), d->lo);
    }
    for (uint32_t i = 0; i < nr; i++) {
        const LoopData *d = loop_at(x->w, x->reduce.at[i]);
        iter[ns + i] = atom_upto(A, d->var->name, d->extent);
        bind[ns + i] = idx_sub(A, idx_atom(A, d->var), d->lo);
        subst_bind(loop_to_iter, d->var, idx_add(A, idx_atom(A, iter[ns + i]), d->lo));
    }
    for (uint32_t i = b->nspatial; i < b->nspatial + b->nreduce; i++)
        subst_bind(old, b->iter[i], idx_subst(loop_to_iter, b->bind[i]));
    BlockData rb = *b;
    rb.name = x->to->block;
    rb.nspatial = ns;
    rb.nreduce = nr;
    rb.iter = iter;
    rb.bind = bind;
    rb.has_init = starts_inside(x);
    const Stmt *kids[2] = {rb.has_init ? start_of(x) : NULL, NULL};
    kids[rb.has_init] = retarget(c, stmt_subst(c, x->store, old), x->t, x->to->rf, given_index,
                                 (void *)(uintptr_t)x->cell);
    return with_spatial(x->w, x->own, x->site, x->L,
                        stmt_block(c, rb, 1 + rb.has_init, kids, x->s->loc));
}

/* The spatial iterators of the block, and one more: bound to fresh copies of the spatial loops, and
 * to `var`. */
typedef struct {
    FreshLoops loops;
    BlockData  block;
} Around;

static Around around(const Factor *x, bool part_first, const Atom *var)
{
    Ctx             *c = x->w->c;
    const BlockData *b = x->b;
    IdxSubst        *fresh = subst_new(c->arith, c->scratch);
    AtomSet         *rvars = atomset_new(c->scratch);
    uint32_t         n = b->nspatial + x->nrounds, own = part_first ? 0 : n;
    const Atom     **iter = NEW_ARRAY(c->arena, const Atom *, n + 1);
    const Idx      **bind = NEW_ARRAY(c->arena, const Idx *, n + 1);
    Around           a = {loops_fresh(x->w, &x->spatial, fresh), *b};

    for (uint32_t i = 0; i < x->all.n; i++)
        if (loop_at(x->w, x->all.at[i])->kind == LOOP_REDUCE)
            atomset_add(rvars, loop_at(x->w, x->all.at[i])->var);
    for (uint32_t i = 0; i < b->nspatial; i++) {
        iter[i + part_first] = b->iter[i];
        bind[i + part_first] = idx_subst(fresh, b->bind[i]);
    }
    for (uint32_t i = 0; i < x->nrounds; i++) {
        const LoopData *d = loop_at(x->w, x->spatial.at[i]);
        iter[b->nspatial + part_first + i] = x->round[i];
        bind[b->nspatial + part_first + i] =
            idx_subst(fresh, idx_sub(c->arith, idx_atom(c->arith, d->var), d->lo));
    }
    iter[own] = x->part;
    bind[own] = idx_atom(c->arith, var);
    a.block.iter = iter;
    a.block.bind = bind;
    a.block.nspatial = n + part_first;
    a.block.nreduce = !part_first;
    a.block.where = pred_subst(fresh, c->arena, where_without(x->w, b->where, rvars));
    return a;
}

/* Its start, everywhere. */
static const Stmt *partial_start(const Factor *x)
{
    Ctx        *c = x->w->c;
    const Atom *var = atom_var(c->arith, x->l->var->name, 0, x->parts - 1);
    Around      a = around(x, true, var);
    const Stmt *zero = start_of(x);

    a.block.name = intern_printf(c->strings, "%s.init", x->to->block);
    a.block.has_init = false;
    return loop_of(c, var, LOOP_SPATIAL,
                   loops_wrap(c, a.loops, stmt_block(c, a.block, 1, &zero, x->s->loc)), x->s->loc);
}

/* The rest: the block over the parts, in order, from its own start or what is there already. */
static const Stmt *sum_of_parts(const Factor *x)
{
    Ctx              *c = x->w->c;
    const Idx *const *at = x->store->u.store.index;
    const char       *name = intern_printf(c->strings, "%s.%s", x->b->name, x->l->var->name);
    const Atom       *var = atom_var(c->arith, name, 0, x->parts - 1);
    Around            a = around(x, false, var);
    const Stmt       *kids[2] = {x->b->has_init ? init_of(x->s) : NULL, NULL};

    kids[x->b->has_init] = stmt_store(
        c, x->t, at,
        comb_apply(c, x->comb, prim_load(c, x->t, at), prim_load(c, x->to->rf, x->cell)));
    return loops_wrap(c, a.loops,
                      loop_of(c, var, LOOP_REDUCE,
                              stmt_block(c, a.block, 1 + x->b->has_init, kids, x->s->loc),
                              x->s->loc));
}

/* One copy of the loop, at L; false: refused. */
static bool factor(Work *w, uint32_t L, Partial *to)
{
    Factor x = {.w = w, .L = L, .l = loop_at(w, L), .to = to};

    if (!find_reduction(&x) || !find_loops(&x) || !find_cell(&x) || !find_partial(&x))
        return false;
    const Stmt *parts[3];
    uint32_t    n = 0;
    if (!starts_inside(&x))
        parts[n++] = partial_start(&x);
    parts[n++] = partial_nest(&x);
    parts[n++] = sum_of_parts(&x);
    const Stmt *seq = stmt_seq(w->c, n, parts);
    /* Of one copy it is the loops' around it; of several, the function's. */
    to->local = to->alone && loops_around_site(w, NO_SITE, x.own).n > 0;
    edit(w, stmt_at(w, x.own), to->local ? stmt_alloc(w->c, to->rf, seq) : seq);
    return true;
}

const Func *step_rfactor(Work *w)
{
    const StepArg *la = step_arg(w->st, 0), *at = step_option(w->st, "at");
    Sites          loops, outer;
    Partial        p = {.at = NO_SITE};

    if (!la || !la->name)
        return refuse(w, "which loop?");
    if (!loops_named(w, la->name, &loops))
        return NULL;
    if (at && at->name) {
        if (!loops_named(w, at->name, &outer))
            return NULL;
        if (loops.n > 1 || outer.n > 1 || !inside(w, loops.at[0], outer.at[0]))
            return refuse(w, "%%%s is not one loop in %%%s", la->name, at->name);
        p.at = outer.at[0];
    }
    p.alone = loops.n == 1;
    for (uint32_t i = 0; i < loops.n; i++)
        if (!factor(w, loops.at[i], &p))
            return NULL;
    const Func *f = finish(w);
    return p.local ? f : func_with_body(w->c, f, stmt_alloc(w->c, p.rf, f->body));
}
