/* outline: the bodies of marked loops become functions of their own, kind(tile).
 *
 *   for %t<6 outline { body }  ->  for %t<6 { call @tile.7c31(%d+.., %w+.., .., %first, %last) }
 *
 * What does not change inside the body becomes a parameter: for each buffer and each outer part of
 * an offset (the terms over variables from outside; constants are left inside, unless that would be
 * no cell of the buffer) one pointer, for each condition over outer variables one flag, for each
 * outer variable that is mixed into other index atoms one scalar.  Equal bodies share one function
 * (canonical hash).  A buffer that is written and reached through several pointers has them marked
 * as aliases of each other.
 *
 * Why: inlined in its nest, a register tile loses up to 40 % to LLVM's loop strength reduction.
 * Cost: one walk a tile. */
#include "passes/passes.h"

#include <string.h>

typedef struct {
    const Buffer *from;  /* buffer outside */
    const Idx    *outer; /* outer part of the offset, no constant */
    int64_t       base;  /* ... but this one, so that it is a cell of the buffer */
    const Buffer *to;    /* parameter inside */
    bool          written;
} Pointer;

typedef struct {
    const Prim *cond;  /* over outer variables */
    const Idx  *value; /* ... as 0/1 outside: an index */
    const Atom *flag;
} Flag;

typedef struct {
    Ctx     *c;
    AtomSet *inner;   /* variables of loops inside the body */
    Map     *local;   /* buffers allocated inside, by id */
    Map     *renamed; /* prims of the body, by id: each once, however often it is used */
    VEC(Pointer) pointers;
    VEC(Flag) flags;
    VEC(const Atom *) scalars, scalar_params;
} Outline;

static bool see_inside(void *user, const Stmt *s)
{
    Outline *x = user;

    if (s->kind == STMT_FOR)
        atomset_add(x->inner, s->u.loop.var);
    if (s->kind == STMT_ALLOC)
        map_put(x->local, s->u.buffer->id, (void *)1);
    return true;
}

/* Forms without variables of the body and without memory: what is read must be read where it was.
 */
static bool idx_outer(const Outline *x, const Idx *at)
{
    for (uint32_t i = 0; i < at->nterms; i++) {
        const Atom *a = at->t[i].atom;

        if (a->kind == ATOM_LOAD || (a->kind == ATOM_VAR && atomset_has(x->inner, a)) ||
            (a->a && !idx_outer(x, a->a)) || (a->b && !idx_outer(x, a->b)))
            return false;
    }
    return true;
}

static bool atom_outer(const Outline *x, const Atom *a)
{
    return idx_outer(x, idx_atom(x->c->arith, a));
}

static void split_offset(Outline *x, const Idx *at, const Idx **outer, const Idx **inner)
{
    Arith *A = x->c->arith;

    *outer = idx_const(A, 0);
    *inner = idx_const(A, at->c0);
    for (uint32_t i = 0; i < at->nterms; i++) {
        const Idx  *t = idx_mulc(A, idx_atom(A, at->t[i].atom), at->t[i].coef);
        const Idx **to = atom_outer(x, at->t[i].atom) ? outer : inner;
        *to = idx_add(A, *to, t);
    }
}

/* Bytes that b's cell `at` is on a multiple of. */
static uint32_t alignment(const Buffer *b, const Idx *at)
{
    uint64_t all = b->align | (uint64_t)at->c0 * dtype_bytes(b->dtype);

    for (uint32_t i = 0; i < at->nterms; i++)
        all |= (uint64_t)at->t[i].coef * dtype_bytes(b->dtype);
    return (uint32_t)(all & -all);
}

/* Is there a cell of b at the sum without its constant, and at the constant?  One may be outside
 * but for the other, such as 3000 - 600 * phase. */
static bool are_cells(const Buffer *b, const Idx *outer, int64_t at)
{
    int64_t n, before = b->halo ? b->halo->lo[0] : 0, behind = b->halo ? b->halo->hi[0] : 0;

    return !idx_is_const(b->extent[0], &n) ||
           (outer->lo >= -before && at >= -before && at < n + behind);
}

/* The pointer to b's cell `outer`, from which on *rest is counted. */
static Pointer *pointer(Outline *x, const Buffer *b, const Idx *outer, const Idx **rest)
{
    Arith   *A = x->c->arith;
    Pointer *p = NULL;

    for (uint32_t i = 0; i < x->pointers.n && !p; i++)
        if (x->pointers.at[i].from == b && x->pointers.at[i].outer == outer)
            p = &x->pointers.at[i];
    if (!p) {
        Buffer  n = *b;
        int64_t base = are_cells(b, outer, (*rest)->c0) ? 0 : (*rest)->c0;

        n.data = NULL;
        /* that of its cells is all a tile needs */
        n.align = b->stream ? alignment(b, idx_addc(A, outer, base)) : 0;
        vec_push(x->c->arena, &x->pointers,
                 ((Pointer){b, outer, base, buffer_copy(x->c, b, n), false}));
        p = &x->pointers.at[x->pointers.n - 1];
    }
    *rest = idx_addc(A, *rest, -p->base);
    return p;
}

static const Atom *scalar(Outline *x, const Atom *outer)
{
    for (uint32_t i = 0; i < x->scalars.n; i++)
        if (x->scalars.at[i] == outer)
            return x->scalar_params.at[i];
    const Atom *a = atom_var(x->c->arith, outer->name, outer->lo, outer->hi);
    vec_push(x->c->arena, &x->scalars, outer);
    vec_push(x->c->arena, &x->scalar_params, a);
    return a;
}

/* Outer variables left in an index become scalar parameters. */
static void bind_outer(Outline *x, IdxSubst *sub, const Idx *at)
{
    for (uint32_t i = 0; i < at->nterms; i++) {
        const Atom *a = at->t[i].atom;
        if (a->kind == ATOM_VAR && !atomset_has(x->inner, a))
            subst_bind(sub, a, idx_atom(x->c->arith, scalar(x, a)));
        if (a->a)
            bind_outer(x, sub, a->a);
        if (a->b)
            bind_outer(x, sub, a->b);
    }
}

static const Prim *rename_prim(Outline *x, const Prim *p);

static const void *inside_load(void *user, const void *load)
{
    return rename_prim(user, load);
}

static const Idx *inside(Outline *x, const Idx *at)
{
    IdxSubst *sub = subst_new(x->c->arith, x->c->arena);

    bind_outer(x, sub, at);
    subst_on_load(sub, inside_load, x);
    return idx_subst(sub, at);
}

/* A condition over outer variables only: 1 yes, 0 it has no variables or inner ones. */
static bool cond_outer(const Outline *x, const Prim *p)
{
    if (p->dtype.lanes > 1 || p->kind == PRIM_LOAD || p->kind == PRIM_RAMP)
        return false;
    if ((p->kind == PRIM_INDEX || p->kind == PRIM_CASE) && !idx_outer(x, p->u.index))
        return false;
    for (uint32_t i = 0; i < p->nkids; i++)
        if (!cond_outer(x, p->kids[i]))
            return false;
    return true;
}

/* A condition on indices as an index that is 0 or 1: e >= 0 is clamp(e + 1, 0, 1).  NULL: it has
 * another form. */
static const Idx *cond_idx(Ctx *c, const Prim *p)
{
    Arith     *A = c->arith;
    const Idx *a, *b, *zero = idx_const(A, 0), *one = idx_const(A, 1);
    Pred       conj;

    if (prim_pred(c, p, &conj)) {
        a = one;
        for (uint32_t i = 0; i < conj.n; i++)
            a = idx_min(A, a, idx_max(A, zero, idx_addc(A, conj.ge0[i], 1)));
        return a;
    }
    if (p->kind == PRIM_NOT)
        return (a = cond_idx(c, p->kids[0])) ? idx_sub(A, one, a) : NULL;
    if (p->kind != PRIM_AND && p->kind != PRIM_OR)
        return NULL;
    if (!(a = cond_idx(c, p->kids[0])) || !(b = cond_idx(c, p->kids[1])))
        return NULL;
    return p->kind == PRIM_AND ? idx_min(A, a, b) : idx_max(A, a, b);
}

static const Prim *rename_load(Outline *x, const Prim *p)
{
    const LoadData *l = &p->u.load;
    const Prim     *mask = l->mask ? rename_prim(x, l->mask) : NULL;
    const Idx      *outer, *rest;

    if (map_get(x->local, l->buffer->id)) {
        const Idx *at = l->n ? inside(x, l->index[0]) : NULL;
        return prim_loadv(x->c, l->buffer, l->n ? &at : NULL, p->dtype.lanes, mask);
    }
    split_offset(x, l->index[0], &outer, &rest);
    rest = inside(x, rest);
    const Buffer *to = pointer(x, l->buffer, outer, &rest)->to;
    return prim_loadv(x->c, to, &rest, p->dtype.lanes, mask);
}

static const Prim *rename_cond(Outline *x, const Prim *p)
{
    const Idx *value;

    if (p->kind == PRIM_INT || !cond_outer(x, p) || !(value = cond_idx(x->c, p)))
        return NULL;
    for (uint32_t i = 0; i < x->flags.n; i++)
        if (x->flags.at[i].cond == p)
            return prim_cast(x->c, DT_BOOL,
                             prim_index(x->c, DT_I64, idx_atom(x->c->arith, x->flags.at[i].flag)));
    const Atom *flag = atom_var(x->c->arith, "flag", 0, 1);
    vec_push(x->c->arena, &x->flags, ((Flag){p, value, flag}));
    return prim_cast(x->c, DT_BOOL, prim_index(x->c, DT_I64, idx_atom(x->c->arith, flag)));
}

static const Prim *rename_new(Outline *x, const Prim *p)
{
    if (p->kind == PRIM_LOAD)
        return rename_load(x, p);
    if (dtype_is_bool(p->dtype)) {
        const Prim *flag = rename_cond(x, p);
        if (flag)
            return flag;
    }
    if (p->kind == PRIM_INDEX)
        return prim_index(x->c, p->dtype, inside(x, p->u.index));
    if (p->kind == PRIM_RAMP)
        return prim_ramp(x->c, p->dtype, inside(x, p->u.index), p->dtype.lanes);
    const Prim **kids = NEW_ARRAY(x->c->arena, const Prim *, p->nkids + 1);
    for (uint32_t i = 0; i < p->nkids; i++)
        kids[i] = rename_prim(x, p->kids[i]);
    if (p->kind == PRIM_CASE)
        return prim_case(x->c, inside(x, p->u.index), p->nkids, kids);
    return prim_with_kids(x->c, p, kids);
}

static const Prim *rename_prim(Outline *x, const Prim *p)
{
    const Prim *now = map_get(x->renamed, p->id);

    if (!now) {
        now = rename_new(x, p);
        map_put(x->renamed, p->id, (void *)(uintptr_t)now);
    }
    return now;
}

static const Stmt *rename_stmt(Outline *x, const Stmt *s)
{
    Ctx         *c = x->c;
    const Stmt **kids = NEW_ARRAY(c->arena, const Stmt *, s->nkids + 1);

    for (uint32_t i = 0; i < s->nkids; i++)
        kids[i] = rename_stmt(x, s->kids[i]);
    switch (s->kind) {
    case STMT_STORE: {
        const StoreData *d = &s->u.store;
        const Prim      *value = rename_prim(x, d->value),
                   *mask = d->mask ? rename_prim(x, d->mask) : NULL;
        const Idx *outer, *rest = NULL;
        if (map_get(x->local, d->buffer->id)) {
            if (d->n)
                rest = inside(x, d->index[0]);
            return stmt_storev(c, d->buffer, d->n ? &rest : NULL, value, mask);
        }
        split_offset(x, d->index[0], &outer, &rest);
        rest = inside(x, rest);
        Pointer *p = pointer(x, d->buffer, outer, &rest);
        p->written = true;
        return stmt_storev(c, p->to, &rest, value, mask);
    }
    case STMT_IF:
        return stmt_if(c, rename_prim(x, s->u.cond), kids[0], s->nkids > 1 ? kids[1] : NULL);
    case STMT_FOR: {
        LoopData loop = s->u.loop;
        loop.lo = inside(x, loop.lo);
        loop.extent = inside(x, loop.extent);
        return stmt_for(c, loop, kids[0], s->loc);
    }
    case STMT_SEQ:
    case STMT_ALLOC: return stmt_with_kids(c, s, kids);
    case STMT_PREFETCH:
    case STMT_WHILE:
    case STMT_BLOCK:
    case STMT_CALL:
    case STMT_BARRIER:
    case STMT_AWAIT:
    case STMT_REGION:
    case STMT_LAUNCH:
    case STMT_COPY:
    case STMT_VIEW:
    case STMT_INVOKE:
    case STMT_SWITCH:
    case STMT_RETURN:
    case STMT_FAIL: break;
    }
    BUG("outline: a tile holds a statement of kind %d", (int)s->kind);
}

typedef struct {
    Ctx *c;
    VEC(const Func *) funcs;
    Map        *by_hash; /* first 8 bytes of the canonical hash -> const Func * */
    const Func *kernel;
} Tiles;

/* Only plain statements and buffers that are one-dimensional can move. */
static bool can_outline(const Stmt *s)
{
    if (s->kind == STMT_CALL || s->kind == STMT_WHILE || s->kind > STMT_STORE)
        return false;
    for (uint32_t i = 0; i < s->nkids; i++)
        if (!can_outline(s->kids[i]))
            return false;
    return true;
}

typedef struct {
    const Map *local;
    bool       found;
} OuterVar;

static void outer_var_prim(void *user, const Prim *p)
{
    OuterVar *o = user;
    if (p->kind == PRIM_LOAD && p->u.load.n == 0 && !map_get(o->local, p->u.load.buffer->id))
        o->found = true;
}

static bool uses_outer_var(void *user, const Stmt *s)
{
    OuterVar *o = user;
    if (s->kind == STMT_STORE && s->u.store.n == 0 && !map_get(o->local, s->u.store.buffer->id))
        o->found = true;
    return true;
}

/* Buffers written through several pointers: the pointers alias the first. */
static void mark_aliases(Outline *x)
{
    for (uint32_t i = 0; i < x->pointers.n; i++) {
        Pointer *first = NULL;
        bool     written = false;
        uint32_t n = 0;
        for (uint32_t j = 0; j < x->pointers.n; j++)
            if (x->pointers.at[j].from == x->pointers.at[i].from) {
                if (!first)
                    first = &x->pointers.at[j];
                written = written || x->pointers.at[j].written;
                n++;
            }
        if (n > 1 && written && first != &x->pointers.at[i])
            ((Buffer *)(uintptr_t)x->pointers.at[i].to)->alias = first->to;
    }
}

static const Stmt *outline_body(Tiles *t, const Stmt *loop)
{
    Ctx        *c = t->c;
    const Stmt *body = loop->kids[0];
    Outline     x = {.c = c,
                     .inner = atomset_new(c->arena),
                     .local = map_new(c->arena),
                     .renamed = map_new(c->arena)};
    TirVisit    v = {&x, see_inside, NULL, NULL, NULL};

    if (!can_outline(body))
        return body;
    stmt_visit(body, &v);
    OuterVar o = {x.local, false};
    TirVisit ov = {&o, uses_outer_var, NULL, outer_var_prim, NULL};
    stmt_visit(body, &ov);
    if (o.found)
        return body;
    const Stmt *inner = rename_stmt(&x, body);
    mark_aliases(&x);
    uint32_t n = x.pointers.n + x.flags.n + x.scalars.n, k = 0;
    Param   *params = NEW_ARRAY(c->arena, Param, n + 1);
    Arg     *args = NEW_ARRAY(c->arena, Arg, n + 1);
    for (uint32_t i = 0; i < x.pointers.n; i++, k++) {
        const Pointer *p = &x.pointers.at[i];
        params[k] = (Param){p->to, NULL, p->written};
        args[k] = (Arg){
            p->from,
            idx_mulc(c->arith, idx_addc(c->arith, p->outer, p->base), dtype_bytes(p->from->dtype)),
            NULL};
    }
    for (uint32_t i = 0; i < x.flags.n; i++, k++) {
        params[k] = (Param){NULL, x.flags.at[i].flag, false};
        args[k] = (Arg){NULL, NULL, x.flags.at[i].value};
    }
    for (uint32_t i = 0; i < x.scalars.n; i++, k++) {
        params[k] = (Param){NULL, x.scalar_params.at[i], false};
        args[k] = (Arg){NULL, NULL, idx_atom(c->arith, x.scalars.at[i])};
    }
    Func     f = {.name = "tile",
                  .kind = FUNC_TILE,
                  .target = t->kernel->target,
                  .nparams = n,
                  .params = params,
                  .body = inner,
                  .loc = loop->loc};
    Sha256   h = func_hash(c, func_new(c, f));
    uint64_t key;
    memcpy(&key, h.b, sizeof key);
    const Func *g = map_get(t->by_hash, key);
    if (!g) {
        char hex[65];
        sha256_hex(h, hex);
        f.name = intern_printf(c->strings, "%s.%.8s", loop->u.loop.outline, hex);
        g = func_new(c, f);
        map_put(t->by_hash, key, (void *)(uintptr_t)g);
        vec_push(c->arena, &t->funcs, g);
    }
    return stmt_call(c, g->name, n, args, false, loop->loc);
}

static const Stmt *outline_stmt(Tiles *t, const Stmt *s)
{
    Ctx *c = t->c;

    if (s->kind == STMT_FOR && s->u.loop.outline) {
        LoopData loop = s->u.loop;
        loop.outline = NULL;
        const Stmt *body = outline_body(t, s);
        int64_t     extent;
        if (!idx_is_const(loop.extent, &extent) || extent != 1)
            return stmt_for(c, loop, body, s->loc);
        IdxSubst *sub = subst_new(c->arith, c->arena);
        subst_bind(sub, loop.var, loop.lo);
        return stmt_subst(c, body, sub);
    }
    const Stmt **kids = NEW_ARRAY(c->arena, const Stmt *, s->nkids + 1);
    for (uint32_t i = 0; i < s->nkids; i++)
        kids[i] = outline_stmt(t, s->kids[i]);
    return stmt_with_kids(c, s, kids);
}

const TirModule *outline(Ctx *c, const TirModule *m)
{
    Tiles t = {.c = c, .by_hash = map_new(c->arena)};

    for (uint32_t i = 0; i < m->nfuncs; i++) {
        t.kernel = m->funcs[i];
        const Stmt *body = outline_stmt(&t, t.kernel->body);
        const Func *kernel = body == t.kernel->body ? t.kernel : func_with_body(c, t.kernel, body);
        vec_push(c->arena, &t.funcs, kernel);
    }
    return tirmod_new(c, t.funcs.n, t.funcs.at);
}
