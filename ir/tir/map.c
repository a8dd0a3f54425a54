/* Rewriting and visiting TIR: one walk over statements, prims and indices, so that a pass says only
 * what it changes.  Nests are shallow, so these recurse; prims share nodes, so a map remembers what
 * it made of each within one call. */
#include "ir/tir/tir.h"

#include <string.h>

/* ---- map --------------------------------------------------------------------------------------- */

typedef struct {
    Ctx          *c;
    const TirMap *m;
    Map          *prims; /* prim id -> mapped prim */
    Map          *idxs;  /* index id -> mapped index */
    IdxSubst     *loads; /* rewrites the loads inside indices */
} Mapper;

static const Prim *map_prim(Mapper *x, const Prim *p);

static const void *map_atom_load(void *user, const void *load)
{
    return map_prim(user, load);
}

static const Idx *map_idx(Mapper *x, const Idx *i)
{
    const Idx *out = map_get(x->idxs, i->id);

    if (out)
        return out;
    out = idx_subst(x->loads, i);
    if (x->m->idx)
        out = x->m->idx(x->c, x->m->user, out);
    map_put(x->idxs, i->id, (void *)(uintptr_t)out);
    return out;
}

static const Idx *const *map_indices(Mapper *x, uint32_t n, const Idx *const *at)
{
    const Idx **out = n ? NEW_ARRAY(x->c->scratch, const Idx *, n) : NULL;

    for (uint32_t i = 0; i < n; i++)
        out[i] = map_idx(x, at[i]);
    return out;
}

static const Buffer *map_buffer(Mapper *x, const Buffer *b)
{
    return b && x->m->buffer ? x->m->buffer(x->c, x->m->user, b) : b;
}

static const Prim *map_prim(Mapper *x, const Prim *p)
{
    Ctx        *c = x->c;
    const Prim *now = map_get(x->prims, p->id);

    if (now)
        return now;
    const Prim **kids = p->nkids ? NEW_ARRAY(c->scratch, const Prim *, p->nkids) : NULL;
    for (uint32_t i = 0; i < p->nkids; i++)
        kids[i] = map_prim(x, p->kids[i]);
    switch (p->kind) {
    case PRIM_LOAD:
        if (p->u.load.member) {
            now = prim_member(c, map_buffer(x, p->u.load.buffer),
                              map_indices(x, p->u.load.n, p->u.load.index), p->u.load.member);
            break;
        }
        now = prim_loadv(c, map_buffer(x, p->u.load.buffer),
                         map_indices(x, p->u.load.n, p->u.load.index), p->dtype.lanes,
                         p->u.load.mask ? map_prim(x, p->u.load.mask) : NULL);
        break;
    case PRIM_ADDR:
        now = prim_addr(c, map_buffer(x, p->u.load.buffer),
                        map_indices(x, p->u.load.n, p->u.load.index), p->u.load.member);
        break;
    case PRIM_INDEX: now = prim_index(c, p->dtype, map_idx(x, p->u.index)); break;
    case PRIM_RAMP: now = prim_ramp(c, p->dtype, map_idx(x, p->u.index), p->dtype.lanes); break;
    case PRIM_CASE: now = prim_case(c, map_idx(x, p->u.index), p->nkids, kids); break;
    case PRIM_INT:
    case PRIM_FLOAT:
    case PRIM_ADD:
    case PRIM_SUB:
    case PRIM_MUL:
    case PRIM_DIV:
    case PRIM_REM:
    case PRIM_MIN:
    case PRIM_MAX:
    case PRIM_MINNUM:
    case PRIM_MAXNUM:
    case PRIM_FMA:
    case PRIM_INTRIN:
    case PRIM_AND:
    case PRIM_OR:
    case PRIM_XOR:
    case PRIM_SHL:
    case PRIM_SHR:
    case PRIM_NOT:
    case PRIM_EQ:
    case PRIM_NE:
    case PRIM_LT:
    case PRIM_LE:
    case PRIM_SELECT:
    case PRIM_CAST:
    case PRIM_BITS:
    case PRIM_SYMBOL:
    case PRIM_SIZEOF:
    case PRIM_MATH:
    case PRIM_SPLAT:
    case PRIM_VEC:
    case PRIM_SHUFFLE: now = p->nkids ? prim_with_kids(c, p, kids) : p; break;
    }
    if (x->m->prim)
        now = x->m->prim(c, x->m->user, now);
    map_put(x->prims, p->id, (void *)(uintptr_t)now);
    return now;
}

static Arg map_arg(Mapper *x, Arg a)
{
    a.buffer = map_buffer(x, a.buffer);
    if (a.offset)
        a.offset = map_idx(x, a.offset);
    if (a.scalar)
        a.scalar = map_idx(x, a.scalar);
    return a;
}

static const Arg *map_args(Mapper *x, uint32_t n, const Arg *args)
{
    Arg *out = n ? NEW_ARRAY(x->c->scratch, Arg, n) : NULL;

    for (uint32_t i = 0; i < n; i++)
        out[i] = map_arg(x, args[i]);
    return out;
}

static Pred map_pred(Mapper *x, Pred p)
{
    Pred out = PRED_TRUE;

    for (uint32_t i = 0; i < p.n; i++)
        out = pred_and(x->c->arith, x->c->arena, out, map_idx(x, p.ge0[i]));
    return out;
}

static const Stmt *map_stmt(Mapper *x, const Stmt *s);

/* The statement itself with its data arms mapped; kids are mapped already. */
static const Stmt *map_arms(Mapper *x, const Stmt *s, const Stmt *const *kids)
{
    Ctx *c = x->c;

    switch (s->kind) {
    case STMT_FOR: {
        LoopData l = s->u.loop;
        l.lo = map_idx(x, l.lo);
        l.extent = map_idx(x, l.extent);
        if (l.lo == s->u.loop.lo && l.extent == s->u.loop.extent && kids[0] == s->kids[0])
            return s;
        return stmt_for(c, l, kids[0], s->loc);
    }
    case STMT_WHILE: {
        const Prim *cond = map_prim(x, s->u.cond);
        return cond == s->u.cond && kids[0] == s->kids[0] ? s : stmt_while(c, cond, kids[0]);
    }
    case STMT_IF: {
        const Prim *cond = map_prim(x, s->u.cond);
        if (cond == s->u.cond)
            return stmt_with_kids(c, s, kids);
        return stmt_if(c, cond, kids[0], s->nkids > 1 ? kids[1] : NULL);
    }
    case STMT_ALLOC: {
        const Buffer *b = map_buffer(x, s->u.buffer);
        return b == s->u.buffer ? stmt_with_kids(c, s, kids) : stmt_alloc(c, b, kids[0]);
    }
    case STMT_STORE: {
        const StoreData *d = &s->u.store;
        const Prim *value = map_prim(x, d->value), *mask = d->mask ? map_prim(x, d->mask) : NULL;
        const Idx *const *at = map_indices(x, d->n, d->index);
        const Buffer     *b = map_buffer(x, d->buffer);
        bool              same = value == d->value && mask == d->mask && b == d->buffer &&
                    (d->n == 0 || !memcmp(at, d->index, d->n * sizeof *at));
        return same        ? s
               : d->member ? stmt_put(c, b, at, d->member, value)
                           : stmt_storev(c, b, at, value, mask);
    }
    case STMT_PREFETCH: {
        const PrefetchData *d = &s->u.prefetch;
        const Buffer       *b = map_buffer(x, d->buffer);
        const Idx *const   *at = map_indices(x, d->n, d->index);
        if (b == d->buffer && (d->n == 0 || !memcmp(at, d->index, d->n * sizeof *at)))
            return s;
        return stmt_prefetch(c, b, at, d->lines);
    }
    case STMT_BLOCK: {
        BlockData b = s->u.block;
        uint32_t  n = b.nspatial + b.nreduce + b.nseq;
        b.bind = map_indices(x, n, b.bind);
        b.where = map_pred(x, b.where);
        bool same = (n == 0 || !memcmp(b.bind, s->u.block.bind, n * sizeof *b.bind)) &&
                    b.where.n == s->u.block.where.n &&
                    (b.where.n == 0 ||
                     !memcmp(b.where.ge0, s->u.block.where.ge0, b.where.n * sizeof *b.where.ge0));
        for (uint32_t i = 0; i < s->nkids; i++)
            same = same && kids[i] == s->kids[i];
        return same ? s : stmt_block(c, b, s->nkids, kids, s->loc);
    }
    case STMT_CALL:
        return stmt_call(c, s->u.call.callee, s->u.call.nargs,
                         map_args(x, s->u.call.nargs, s->u.call.args), s->u.call.on0, s->loc);
    case STMT_LAUNCH: {
        LaunchData l = s->u.launch;
        for (int i = 0; i < 3; i++) {
            if (l.grid[i])
                l.grid[i] = map_idx(x, l.grid[i]);
            if (l.block[i])
                l.block[i] = map_idx(x, l.block[i]);
        }
        l.args = map_args(x, l.nargs, l.args);
        return stmt_launch(c, l, s->loc);
    }
    case STMT_COPY: {
        CopyData d = s->u.copy;
        d.dst = map_arg(x, d.dst);
        d.src = map_arg(x, d.src);
        d.bytes = map_idx(x, d.bytes);
        return stmt_copy(c, d);
    }
    case STMT_VIEW: {
        const Buffer *b = map_buffer(x, s->u.view.buffer);
        const Prim   *at = map_prim(x, s->u.view.at);
        bool          same = b == s->u.view.buffer && at == s->u.view.at;
        return same ? stmt_with_kids(c, s, kids) : stmt_view(c, b, at, kids[0]);
    }
    case STMT_INVOKE: {
        InvokeData   d = s->u.invoke;
        const Prim **args = NEW_ARRAY(c->scratch, const Prim *, d.nargs + 1);
        d.fn = map_prim(x, d.fn);
        d.result = map_buffer(x, d.result);
        for (uint32_t i = 0; i < d.nargs; i++)
            args[i] = map_prim(x, d.args[i]);
        d.args = args;
        return stmt_invoke(c, d);
    }
    case STMT_SWITCH:
        return stmt_switch(c, map_prim(x, s->u.cases.value), s->nkids, s->u.cases.end, kids);
    case STMT_RETURN: return s->u.cond ? stmt_return(c, map_prim(x, s->u.cond)) : s;
    case STMT_SEQ:
    case STMT_REGION:
    case STMT_BARRIER:
    case STMT_AWAIT:
    case STMT_FAIL: return stmt_with_kids(c, s, kids);
    }
    return s;
}

static const Stmt *map_stmt(Mapper *x, const Stmt *s)
{
    const Stmt **kids = s->nkids ? NEW_ARRAY(x->c->scratch, const Stmt *, s->nkids) : NULL;

    for (uint32_t i = 0; i < s->nkids; i++)
        kids[i] = map_stmt(x, s->kids[i]);
    const Stmt *now = map_arms(x, s, kids);
    for (uint32_t i = 0; i < s->nkids; i++)
        if (now == kids[i]) /* nothing else was left of s: m->stmt has had it */
            return now;
    return x->m->stmt ? x->m->stmt(x->c, x->m->user, s, now) : now;
}

static Mapper mapper(Ctx *c, const TirMap *m)
{
    return (Mapper){c, m, map_new(c->scratch), map_new(c->scratch),
                    subst_new(c->arith, c->scratch)};
}

const Stmt *stmt_map(Ctx *c, const Stmt *s, const TirMap *m)
{
    Mapper x = mapper(c, m);

    subst_on_load(x.loads, map_atom_load, &x);
    return map_stmt(&x, s);
}

const Prim *prim_map(Ctx *c, const Prim *p, const TirMap *m)
{
    Mapper x = mapper(c, m);

    subst_on_load(x.loads, map_atom_load, &x);
    return map_prim(&x, p);
}

/* ---- substitution ---------------------------------------------------------------------------------- */

static const Idx *subst_idx(Ctx *c, void *user, const Idx *i)
{
    (void)c;
    return idx_subst(user, i);
}

const Stmt *stmt_subst(Ctx *c, const Stmt *s, IdxSubst *sub)
{
    TirMap m = {subst_beside_loads(sub), NULL, NULL, subst_idx, NULL};

    return stmt_map(c, s, &m); /* which maps the loads inside an index first */
}

const Prim *prim_subst(Ctx *c, const Prim *p, IdxSubst *sub)
{
    TirMap m = {subst_beside_loads(sub), NULL, NULL, subst_idx, NULL};

    return prim_map(c, p, &m);
}

const void *load_subst(void *ctx, IdxSubst *sub, const void *load)
{
    return prim_subst(ctx, load, sub);
}

/* ---- visit -------------------------------------------------------------------------------------------- */

/* Shared prims are visited once for each root: a short list, then a map of their own arena. */
enum { SEEN_FEW = 24 };
typedef struct {
    const TirVisit *v;
    Arena          *arena;
    Map            *more;
    uint32_t        n;
    const Prim     *few[SEEN_FEW];
} Seen;

static bool seen_before(Seen *s, const Prim *p)
{
    for (uint32_t i = 0; i < s->n; i++)
        if (s->few[i] == p)
            return true;
    if (s->n < SEEN_FEW) {
        s->few[s->n++] = p;
        return false;
    }
    if (!s->more) {
        s->arena = arena_new(NULL);
        s->more = map_new(s->arena);
    }
    if (map_get(s->more, p->id))
        return true;
    map_put(s->more, p->id, s);
    return false;
}

static void visit_prim(Seen *s, const Prim *p);

static void visit_index(Seen *s, const Idx *i)
{
    for (uint32_t t = 0; t < i->nterms; t++) {
        const Atom *a = i->t[t].atom;
        if (a->a)
            visit_index(s, a->a);
        if (a->b)
            visit_index(s, a->b);
        if (a->kind == ATOM_LOAD)
            visit_prim(s, a->load);
    }
    if (s->v->idx)
        s->v->idx(s->v->user, i);
}

static void visit_prim(Seen *s, const Prim *p)
{
    if (seen_before(s, p))
        return;
    for (uint32_t i = 0; i < p->nkids; i++)
        visit_prim(s, p->kids[i]);
    if (p->kind == PRIM_LOAD || p->kind == PRIM_ADDR) {
        for (uint32_t i = 0; i < p->u.load.n; i++)
            visit_index(s, p->u.load.index[i]);
        if (p->u.load.mask)
            visit_prim(s, p->u.load.mask);
    }
    if (p->kind == PRIM_INDEX || p->kind == PRIM_RAMP || p->kind == PRIM_CASE)
        visit_index(s, p->u.index);
    if (s->v->prim)
        s->v->prim(s->v->user, p);
}

void prim_visit(const Prim *p, const TirVisit *v)
{
    Seen s;

    s.v = v, s.n = 0, s.arena = NULL, s.more = NULL;
    visit_prim(&s, p);
    if (s.arena)
        arena_free(s.arena);
}

void idx_visit(const Idx *i, const TirVisit *v)
{
    Seen s;

    s.v = v, s.n = 0, s.arena = NULL, s.more = NULL;
    visit_index(&s, i);
    if (s.arena)
        arena_free(s.arena);
}

static void visit_arg(const TirVisit *v, const Arg *a)
{
    if (a->offset)
        idx_visit(a->offset, v);
    if (a->scalar)
        idx_visit(a->scalar, v);
}

static void visit_arms(const Stmt *s, const TirVisit *v)
{
    switch (s->kind) {
    case STMT_FOR:
        idx_visit(s->u.loop.lo, v);
        idx_visit(s->u.loop.extent, v);
        break;
    case STMT_WHILE:
    case STMT_IF: prim_visit(s->u.cond, v); break;
    case STMT_STORE:
        for (uint32_t i = 0; i < s->u.store.n; i++)
            idx_visit(s->u.store.index[i], v);
        prim_visit(s->u.store.value, v);
        if (s->u.store.mask)
            prim_visit(s->u.store.mask, v);
        break;
    case STMT_PREFETCH:
        for (uint32_t i = 0; i < s->u.prefetch.n; i++)
            idx_visit(s->u.prefetch.index[i], v);
        break;
    case STMT_BLOCK: {
        const BlockData *b = &s->u.block;
        for (uint32_t i = 0; i < b->nspatial + b->nreduce + b->nseq; i++)
            idx_visit(b->bind[i], v);
        for (uint32_t i = 0; i < b->where.n; i++)
            idx_visit(b->where.ge0[i], v);
        break;
    }
    case STMT_CALL:
        for (uint32_t i = 0; i < s->u.call.nargs; i++)
            visit_arg(v, &s->u.call.args[i]);
        break;
    case STMT_LAUNCH:
        for (int i = 0; i < 3; i++) {
            if (s->u.launch.grid[i])
                idx_visit(s->u.launch.grid[i], v);
            if (s->u.launch.block[i])
                idx_visit(s->u.launch.block[i], v);
        }
        for (uint32_t i = 0; i < s->u.launch.nargs; i++)
            visit_arg(v, &s->u.launch.args[i]);
        break;
    case STMT_COPY:
        visit_arg(v, &s->u.copy.dst);
        visit_arg(v, &s->u.copy.src);
        idx_visit(s->u.copy.bytes, v);
        break;
    case STMT_VIEW: prim_visit(s->u.view.at, v); break;
    case STMT_INVOKE:
        prim_visit(s->u.invoke.fn, v);
        for (uint32_t i = 0; i < s->u.invoke.nargs; i++)
            prim_visit(s->u.invoke.args[i], v);
        break;
    case STMT_SWITCH: prim_visit(s->u.cases.value, v); break;
    case STMT_RETURN:
        if (s->u.cond)
            prim_visit(s->u.cond, v);
        break;
    case STMT_SEQ:
    case STMT_ALLOC:
    case STMT_BARRIER:
    case STMT_AWAIT:
    case STMT_REGION:
    case STMT_FAIL: break;
    }
}

void stmt_visit(const Stmt *s, const TirVisit *v)
{
    if (v->enter && !v->enter(v->user, s))
        return;
    if (v->prim || v->idx)
        visit_arms(s, v);
    for (uint32_t i = 0; i < s->nkids; i++)
        stmt_visit(s->kids[i], v);
    if (v->leave)
        v->leave(v->user, s);
}
