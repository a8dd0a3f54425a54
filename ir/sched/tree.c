/* Building blocks of the rewrites: fresh copies, guards, other buffers, who touches what. */
#include "ir/sched/impl.h"

#include <string.h>

/* ---- loops ------------------------------------------------------------------------------------ */

bool loop_extent_of(const Stmt *loop, int64_t *n)
{
    return idx_is_const(loop->u.loop.extent, n) && idx_is_const(loop->u.loop.lo, NULL);
}

const Atom *fresh_var(Ctx *c, const char *name, int64_t most)
{
    return atom_var(c->arith, name, 0, most > 0 ? most - 1 : 0);
}

const Stmt *loop_around(Ctx *c, const Atom *var, const Idx *extent, LoopKind kind, const Stmt *body,
                        Loc loc)
{
    LoopData l = {.var = var, .lo = idx_const(c->arith, 0), .extent = extent, .kind = kind};

    return stmt_for(c, l, body, loc);
}

const Stmt *loop_of(Ctx *c, const Atom *var, LoopKind kind, const Stmt *body, Loc loc)
{
    const Idx *end = var->below ? var->below : idx_const(c->arith, var->hi + 1);

    return loop_around(c, var, end, kind, body, loc);
}

static void fresh_vars(Ctx *c, const Stmt *s, Map *vars, IdxSubst *sub)
{
    if (s->kind == STMT_FOR) {
        const Atom *v = s->u.loop.var, *now = atom_like(c->arith, v->name, v);
        map_put(vars, PTR_KEY(v), (void *)(uintptr_t)now);
        subst_bind(sub, v, idx_atom(c->arith, now));
    }
    for (uint32_t i = 0; i < s->nkids && s->kind != STMT_BLOCK; i++)
        fresh_vars(c, s->kids[i], vars, sub);
}

static const Stmt *set_vars(Ctx *c, void *user, const Stmt *was, const Stmt *now)
{
    (void)was;
    if (now->kind != STMT_FOR)
        return now;
    const Atom *v = map_get(user, PTR_KEY(now->u.loop.var));
    if (!v)
        return now;
    LoopData l = now->u.loop;
    l.var = v;
    return stmt_for(c, l, now->kids[0], now->loc);
}

const Stmt *fresh_copy(Ctx *c, const Stmt *s, IdxSubst *sub)
{
    Map *vars = map_new(c->scratch);
    if (!sub)
        sub = subst_new(c->arith, c->scratch);
    fresh_vars(c, s, vars, sub);
    return stmt_map(c, stmt_subst(c, s, sub), &(TirMap){.user = vars, .stmt = set_vars});
}

FreshLoops loops_fresh(Work *w, const Sites *loops, IdxSubst *sub)
{
    Ctx       *c = w->c;
    FreshLoops l = {loops->n, NEW_ARRAY(c->scratch, const Stmt *, loops->n),
                    NEW_ARRAY(c->scratch, const Atom *, loops->n)};
    for (uint32_t i = 0; i < loops->n; i++) {
        const Atom *v = loop_at(w, loops->at[i])->var;
        l.was[i] = stmt_at(w, loops->at[i]);
        l.var[i] = atom_like(c->arith, v->name, v);
        subst_bind(sub, v, idx_atom(c->arith, l.var[i]));
    }
    return l;
}

const Stmt *loops_wrap(Ctx *c, FreshLoops l, const Stmt *body)
{
    for (uint32_t i = l.n; i-- > 0;) {
        LoopData d = l.was[i]->u.loop;
        d.var = l.var[i];
        body = stmt_for(c, d, body, l.was[i]->loc);
    }
    return body;
}

/* ---- blocks ----------------------------------------------------------------------------------- */

static const Stmt *guard_block(Ctx *c, void *user, const Stmt *was, const Stmt *now)
{
    (void)was;
    if (now->kind != STMT_BLOCK)
        return now;
    BlockData b = now->u.block;
    b.where = pred_and(c->arith, c->arena, b.where, user);
    return stmt_block(c, b, now->nkids, now->kids, now->loc);
}

const Stmt *blocks_guard(Ctx *c, const Stmt *s, const Idx *ge0)
{
    if (ge0->lo >= 0)
        return s;
    return stmt_map(c, s, &(TirMap){.user = (void *)(uintptr_t)ge0, .stmt = guard_block});
}

const Stmt *store_of(const Stmt *block)
{
    uint32_t first = block->u.block.has_init ? 1 : 0;
    if (block->u.block.opaque || block->nkids != first + 1)
        return NULL;
    return block->kids[first]->kind == STMT_STORE ? block->kids[first] : NULL;
}

void bind_iters(const Stmt *block, IdxSubst *sub)
{
    const BlockData *b = &block->u.block;
    for (uint32_t i = 0; i < b->nspatial + b->nreduce + b->nseq; i++)
        subst_bind(sub, b->iter[i], b->bind[i]);
}

bool is_pointwise(const Stmt *block)
{
    const BlockData *b = &block->u.block;
    return !b->opaque && !b->nreduce && !b->nseq && !b->has_init && store_of(block);
}

bool is_halo_of(const BlockData *block, const Buffer *b)
{
    size_t n = strlen(b->name);
    return !strncmp(block->name, b->name, n) && !strcmp(block->name + n, ".halo");
}

/* ---- buffers ---------------------------------------------------------------------------------- */

typedef struct {
    const Buffer *was, *now;
    IndexMap     *fn;
    void         *user;
} Retarget;

static const Idx *const *map_index(Ctx *c, const Retarget *r, uint32_t n, const Idx *const *index)
{
    return r->fn ? r->fn(c, r->user, n, index) : index;
}

static const Prim *retarget_load(Ctx *c, void *user, const Prim *p)
{
    Retarget *r = user;
    if (p->kind != PRIM_LOAD || p->u.load.buffer != r->was)
        return p;
    return prim_load(c, r->now, map_index(c, r, p->u.load.n, p->u.load.index));
}

static const Stmt *retarget_store(Ctx *c, void *user, const Stmt *was, const Stmt *now)
{
    Retarget *r = user;
    (void)was;
    if (now->kind != STMT_STORE || now->u.store.buffer != r->was)
        return now;
    return stmt_store(c, r->now, map_index(c, r, now->u.store.n, now->u.store.index),
                      now->u.store.value);
}

const Stmt *retarget(Ctx *c, const Stmt *s, const Buffer *was, const Buffer *now, IndexMap *fn,
                     void *user)
{
    Retarget r = {was, now, fn, user};
    return stmt_map(c, s, &(TirMap){.user = &r, .stmt = retarget_store, .prim = retarget_load});
}

/* ---- who touches what --------------------------------------------------------------------------- */

typedef struct {
    Access        a;
    const Buffer *b;
} Look;

bool same_index(uint32_t n, const Idx *const *a, const Idx *const *b)
{
    for (uint32_t i = 0; i < n; i++)
        if (a[i] != b[i])
            return false;
    return true;
}

static void look_prim(void *user, const Prim *p)
{
    Look *l = user;
    if (p->kind != PRIM_LOAD || p->u.load.buffer != l->b)
        return;
    if (!l->a.loads++)
        l->a.load = p->u.load.index;
    else
        l->a.same_load &= same_index(p->u.load.n, p->u.load.index, l->a.load);
}

static bool look_stmt(void *user, const Stmt *s)
{
    Look *l = user;
    if (s->kind == STMT_STORE && s->u.store.buffer == l->b && !l->a.stores++)
        l->a.store = s->u.store.index;
    return true;
}

/* Loads inside indices: the visit comes by each form inside a form. */
static void look_idx(void *user, const Idx *x)
{
    Look *l = user;
    for (uint32_t i = 0; i < x->nterms; i++)
        if (x->t[i].atom->kind == ATOM_LOAD)
            l->a.in_index |= prim_access(x->t[i].atom->load, l->b).loads > 0;
}

Access access_of(const Stmt *s, const Buffer *b)
{
    Look l = {.a = {.same_load = true}, .b = b};
    stmt_visit(s, &(TirVisit){.user = &l, .enter = look_stmt, .prim = look_prim, .idx = look_idx});
    return l.a;
}

Access prim_access(const Prim *p, const Buffer *b)
{
    Look l = {.a = {.same_load = true}, .b = b};
    prim_visit(p, &(TirVisit){.user = &l, .prim = look_prim, .idx = look_idx});
    return l.a;
}

typedef struct {
    Ctx    *c;
    Buffers out;
    bool    stores;
} Collect;

static void collect(Collect *k, const Buffer *b)
{
    for (uint32_t i = 0; i < k->out.n; i++)
        if (k->out.at[i] == b)
            return;
    vec_push(k->c->scratch, &k->out, b);
}

static void collect_prim(void *user, const Prim *p)
{
    if (p->kind == PRIM_LOAD)
        collect(user, p->u.load.buffer);
}

static bool collect_stmt(void *user, const Stmt *s)
{
    if (s->kind == STMT_STORE)
        collect(user, s->u.store.buffer);
    return true;
}

Buffers buffers_read(Ctx *c, const Stmt *s)
{
    Collect k = {.c = c};
    stmt_visit(s, &(TirVisit){.user = &k, .prim = collect_prim});
    return k.out;
}

Buffers buffers_written(Ctx *c, const Stmt *s)
{
    Collect k = {.c = c};
    stmt_visit(s, &(TirVisit){.user = &k, .enter = collect_stmt});
    return k.out;
}

bool is_param(const Work *w, const Buffer *b)
{
    for (uint32_t i = 0; i < w->s->f->nparams; i++)
        if (w->s->f->params[i].buffer == b)
            return true;
    return false;
}

const Stmt *alloc_of(const Work *w, const Buffer *b)
{
    for (uint32_t i = 0; i < w->nest.n; i++)
        if (stmt_at(w, i)->kind == STMT_ALLOC && stmt_at(w, i)->u.buffer == b)
            return stmt_at(w, i);
    return NULL;
}

/* ---- outer reduce loops ------------------------------------------------------------------------- */

bool reduces_over(const Work *w, const Stmt *block, const Atom *var)
{
    const BlockData *b = &block->u.block;
    for (uint32_t i = b->nspatial; i < b->nspatial + b->nreduce; i++)
        if (idx_uses(b->bind[i], var))
            return true;
    for (uint32_t i = 0; i < b->where.n; i++)
        if (idx_uses(b->where.ge0[i], var) && !is_range(w->c->arith, b, b->where.ge0[i]))
            return true;
    return false;
}

bool reduce_rank(Work *w, uint32_t site, const Stmt *block, Pred where, ReduceRank *out)
{
    Arith   *A = w->c->arith;
    Sites    loops = loops_around_site(w, NO_SITE, site);
    AtomSet *vars = atomset_new(w->c->scratch);
    int64_t  cells = 1;

    out->rank = idx_const(A, 0);
    for (uint32_t i = 0; i < loops.n; i++) {
        const LoopData *l = loop_at(w, loops.at[i]);
        int64_t         n;
        if (l->kind != LOOP_REDUCE || (block && !reduces_over(w, block, l->var)))
            continue;
        if (!loop_extent_of(stmt_at(w, loops.at[i]), &n) || !checked_mul(cells, n, &cells))
            return refuse(w, "the extent of %%%s is not constant", l->var->name) != NULL;
        if (l->parallel || l->vector || l->bind)
            return refuse(w, "the reduce loop %%%s outside is not serial", l->var->name) != NULL;
        for (uint32_t k = 0; k < w->s->cut.n; k++)
            if (w->s->cut.at[k] == l->var->name)
                return refuse(w, "the reduce loop %%%s outside is cut in copies", l->var->name) !=
                       NULL;
        atomset_add(vars, l->var);
        out->rank = idx_add(A, idx_mulc(A, out->rank, n), idx_sub(A, idx_atom(A, l->var), l->lo));
    }
    out->last = cells - 1;
    for (uint32_t i = 0; i < where.n; i++)
        if (idx_uses_any(where.ge0[i], vars) &&
            !pred_implies(A, (Pred){1, &where.ge0[i]}, idx_addc(A, out->rank, -out->last)))
            return refuse(w, "a reduce loop outside is guarded") != NULL;
    return true;
}

/* ---- closedness and first/last ------------------------------------------------------------------ */

bool names_no_loops(const Work *w, uint32_t site)
{
    Sites       loops = loops_around_site(w, NO_SITE, site);
    AtomSet    *vars = atomset_new(w->c->scratch);
    const Stmt *b = stmt_at(w, site);
    for (uint32_t i = 0; i < loops.n; i++)
        atomset_add(vars, loop_at(w, loops.at[i])->var);
    for (uint32_t i = 0; i < b->nkids; i++)
        if (stmt_uses_any(b->kids[i], vars))
            return false;
    return true;
}

bool is_closed(const Work *w, uint32_t site)
{
    const Stmt *b = stmt_at(w, site);
    if (!names_no_loops(w, site))
        return false;
    Buffers out = buffers_written(w->c, b), in = buffers_read(w->c, b);
    for (uint32_t i = 0; i < out.n; i++)
        vec_push(w->c->scratch, &in, out.at[i]);
    for (uint32_t i = 0; i < in.n; i++) { /* nor of what is allocated in them */
        const Stmt *alloc = alloc_of(w, in.at[i]);
        if (alloc && loops_around_site(w, NO_SITE, site_of(w, alloc)).n)
            return false;
    }
    return true;
}

/* x >= 0 says that several iterators, as the digits of one number, are in their ranges: where a
 * loop that counts their cells is cut in parts that overhang.  A run may decide how far the first
 * digit goes. */
static bool is_range_of_number(Arith *A, const BlockData *b, const Idx *x)
{
    enum { MOST_DIGITS = 8 };

    for (uint32_t set = 1; b->nspatial <= MOST_DIGITS && set < 1u << b->nspatial; set++) {
        const Idx *number = idx_const(A, 0), *most = number;
        int64_t    cells = 1;
        bool       fits = true, first = false;
        for (uint32_t i = b->nspatial; i-- > 0 && fits;)
            if (set >> i & 1) {
                const Idx *last = atom_most(A, b->iter[i]);
                number = idx_add(A, number, idx_mulc(A, b->bind[i], cells));
                most = idx_add(A, most, idx_mulc(A, last, cells));
                fits = !first && !b->iter[i]->lo;
                first = !idx_is_const(last, NULL);
                fits = fits && (first || checked_mul(cells, b->iter[i]->hi + 1, &cells));
            }
        if (fits && x == idx_sub(A, most, number))
            return true;
    }
    return false;
}

bool is_range(Arith *A, const BlockData *b, const Idx *x)
{
    for (uint32_t i = 0; i < b->nspatial; i++)
        if (x == idx_addc(A, b->bind[i], -b->iter[i]->lo) ||
            x == idx_sub(A, atom_most(A, b->iter[i]), b->bind[i]))
            return true;
    return is_range_of_number(A, b, x);
}

bool is_free(const Work *w, uint32_t site)
{
    const BlockData *b = block_at(w, site);
    AtomSet         *vars = atomset_new(w->c->scratch);
    uint32_t         own = own_nest(w, NO_SITE, site);
    Sites            outside = loops_around_site(w, NO_SITE, own);
    for (uint32_t i = 0; i < outside.n; i++)
        atomset_add(vars, loop_at(w, outside.at[i])->var);
    for (uint32_t i = 0; i < b->where.n; i++)
        if (idx_uses_any(b->where.ge0[i], vars) && !is_range(w->c->arith, b, b->where.ge0[i]))
            return false;
    return true;
}

typedef struct {
    const AtomSet *vars;
    bool           found;
} Uses;

static void uses_idx(void *user, const Idx *x)
{
    Uses *u = user;
    for (uint32_t i = 0; i < x->nterms; i++)
        u->found |= atomset_has(u->vars, x->t[i].atom);
}

bool stmt_uses_any(const Stmt *s, const AtomSet *vars)
{
    Uses u = {vars, false};
    stmt_visit(s, &(TirVisit){.user = &u, .idx = uses_idx});
    return u.found;
}

Pred where_without(Work *w, Pred p, const AtomSet *vars)
{
    const Idx **at = NEW_ARRAY(w->c->arena, const Idx *, p.n);
    uint32_t    n = 0;
    for (uint32_t i = 0; i < p.n; i++)
        if (!idx_uses_any(p.ge0[i], vars))
            at[n++] = p.ge0[i];
    return (Pred){n, at};
}

/* ---- other scopes ------------------------------------------------------------------------------- */

typedef struct {
    const Buffer *was, *now;
} Renamed;

static const Buffer *rename_buffer(Ctx *c, void *user, const Buffer *b)
{
    const Renamed *r = user;
    (void)c;
    return b == r->was ? r->now : b;
}

const Func *with_buffer(Work *w, const Func *f, const Buffer *was, const Buffer *now)
{
    Renamed r = {was, now};
    Func    g = *f;
    Param  *params = NEW_ARRAY(w->c->arena, Param, f->nparams);
    for (uint32_t i = 0; i < f->nparams; i++) {
        params[i] = f->params[i];
        if (params[i].buffer == was)
            params[i].buffer = now;
    }
    g.params = params;
    g.body = stmt_map(w->c, f->body, &(TirMap){.user = &r, .buffer = rename_buffer});
    return func_new(w->c, g);
}

const Func *with_scope(Work *w, const Func *f, const Buffer *b, Scope scope)
{
    Buffer changed = *b;
    changed.scope = scope;
    return with_buffer(w, f, b, buffer_copy(w->c, b, changed));
}

typedef struct {
    const Buffer *b;
    const Stmt   *first;
} First;

static const Stmt *put_first(Ctx *c, void *user, const Stmt *was, const Stmt *now)
{
    const First *f = user;
    (void)was;
    if (now->kind != STMT_ALLOC || now->u.buffer != f->b)
        return now;
    /* Allocs directly inside stay outside of the statement. */
    const Stmt *body = now->kids[0], *chain[64];
    uint32_t    n = 0;
    while (body->kind == STMT_ALLOC && n < COUNT(chain)) {
        chain[n++] = body;
        body = body->kids[0];
    }
    const Stmt *both[2] = {f->first, body};
    body = stmt_seq(c, 2, both);
    while (n-- > 0)
        body = stmt_alloc(c, chain[n]->u.buffer, body);
    return stmt_alloc(c, f->b, body);
}

const Func *fill_first(Work *w, const Func *f, const Buffer *b, const Stmt *s)
{
    First first = {b, s};
    return func_with_body(w->c, f,
                          stmt_map(w->c, f->body, &(TirMap){.user = &first, .stmt = put_first}));
}

/* ---- loops with fewer rounds ------------------------------------------------------------------ */

const Atom *loop_of_iter(const BlockData *b, Arith *A, uint32_t i)
{
    const Atom *v;

    return idx_is_atom(idx_addc(A, b->bind[i], -b->bind[i]->c0), &v) ? v : NULL;
}

bool loops_shrink(Work *w, uint32_t site, const Stmt *block, uint32_t n, const Atom *const *loop,
                  const Atom *const *now)
{
    const Stmt *was = stmt_at(w, site);
    uint32_t    left = 0;

    for (uint32_t i = 0; i < n; i++)
        left += loop[i] != NULL;
    for (uint32_t p = site; left;) {
        p = w->nest.at[p].parent;
        const Stmt *at = stmt_at(w, p);
        uint32_t    i = 0;
        if (at->kind != STMT_FOR)
            return refuse(w, "'%s' shares a loop with other blocks", block_at(w, site)->name) !=
                   NULL;
        while (i < n && loop[i] != at->u.loop.var)
            i++;
        if (i < n && loop_marks(&at->u.loop))
            return refuse(w, "%%%s is marked", loop[i]->name) != NULL;
        block = i < n ? loop_of(w->c, now[i], at->u.loop.kind, block, at->loc)
                      : stmt_with_kids(w->c, at, &block);
        left -= i < n;
        was = at;
    }
    edit(w, was, block);
    return true;
}
