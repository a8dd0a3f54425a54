/* spmd: loops marked `parallel` become ranges of (tid, nt).
 *
 *   func @k(%x, %y) { for %i<64 parallel { .. } }
 *     -> func @k(%x, %y, %tid, %nt) { for %i in 64*%tid//%nt .. 64*(%tid+1)//%nt { .. } }
 *
 * A kernel is a list of phases, its outermost statements.  Every thread runs a phase with a
 * parallel loop, on its share; a phase without one runs in thread 0.  Where a phase reads or
 * overwrites what another thread wrote in the one before, a barrier lies between: the kernel then
 * takes a scalar %phase and the host calls it once a phase (`phase` ranges over 0..n-1), so that
 * kernels need no barrier of their own.  Neighbours without such a conflict share a phase.  Buffers
 * allocated around several phases are shared by all threads (scope arena), those inside one are
 * private. A parallel loop inside a serial one is divided where each cell that is written belongs
 * to one thread throughout; where threads would have to meet inside, the phase runs in thread 0. A
 * kernel without a parallel loop keeps its parameters; the host calls it on thread 0. No reduction
 * is ever split by nt.  For a target without threads (`-fthreads=none`) every loop stays serial.
 * Cost: one walk. */
#include "passes/passes.h"
#include "passes/tir/util.h"

static bool has_parallel(const Stmt *s)
{
    if (s->kind == STMT_FOR && (s->u.loop.marks & MARK_PARALLEL))
        return true;
    for (uint32_t i = 0; i < s->nkids; i++)
        if (has_parallel(s->kids[i]))
            return true;
    return false;
}

typedef struct {
    Ctx       *c;
    const Idx *tid, *nt;
} Spmd;

static const Stmt *drop_parallel(Ctx *c, void *user, const Stmt *was, const Stmt *now)
{
    (void)user;
    (void)was;
    if (now->kind != STMT_FOR || !(now->u.loop.marks & MARK_PARALLEL))
        return now;
    LoopData loop = now->u.loop;
    loop.marks &= ~(uint32_t)MARK_PARALLEL;
    return stmt_for(c, loop, now->kids[0], now->loc);
}

static const Stmt *serial(Ctx *c, const Stmt *s)
{
    TirMap m = {NULL, drop_parallel, NULL, NULL, NULL};

    return has_parallel(s) ? stmt_map(c, s, &m) : s;
}

/* The buffer whose storage b uses. */
static const Buffer *root(const Buffer *b)
{
    while (b->alias)
        b = b->alias;
    return b;
}

/* Accesses of a statement, each with the parallel loop around it. */
typedef struct {
    const Buffer     *b;
    uint32_t          n;
    const Idx *const *index;
    const LoopData   *par;
    bool              store;
} Access;

typedef struct {
    Ctx *c;
    VEC(Access) all;
    const LoopData *par;
    Map            *own; /* buffers that every iteration of a parallel loop has for itself */
} Accesses;

static void note_access(Accesses *x, const Buffer *b, uint32_t n, const Idx *const *index,
                        bool store)
{
    if (!map_get(x->own, root(b)->id))
        vec_push(x->c->arena, &x->all, ((Access){root(b), n, index, x->par, store}));
}

static bool access_enter(void *user, const Stmt *s)
{
    Accesses *x = user;

    if (s->kind == STMT_FOR && (s->u.loop.marks & MARK_PARALLEL) && !x->par)
        x->par = &s->u.loop;
    if (s->kind == STMT_ALLOC && x->par)
        map_put(x->own, s->u.buffer->id, x);
    if (s->kind == STMT_STORE)
        note_access(x, s->u.store.buffer, s->u.store.n, s->u.store.index, true);
    return true;
}

static void access_leave(void *user, const Stmt *s)
{
    Accesses *x = user;

    if (s->kind == STMT_FOR && x->par == &s->u.loop)
        x->par = NULL;
}

static void access_prim(void *user, const Prim *p)
{
    if (p->kind == PRIM_LOAD)
        note_access(user, p->u.load.buffer, p->u.load.n, p->u.load.index, false);
}

/* Dimension d of both accesses is k*v + rest with rest in one window of k cells, v the variable of
 * loops that are divided alike: then a cell belongs to one thread. */
static bool same_share(Ctx *c, const Access *a, const Access *b, uint32_t d)
{
    const Idx *ia = a->index[d], *ib = b->index[d], *va = idx_atom(c->arith, a->par->var);
    const Idx *vb = idx_atom(c->arith, b->par->var), *ra = NULL, *rb = NULL;
    int64_t    k = 0;

    if (a->par->lo != b->par->lo || a->par->extent != b->par->extent)
        return false;
    for (uint32_t i = 0; i < ia->nterms; i++)
        if (ia->t[i].atom == a->par->var)
            k = ia->t[i].coef;
    if (k <= 0)
        return false;
    ra = idx_sub(c->arith, ia, idx_mulc(c->arith, va, k));
    rb = idx_sub(c->arith, ib, idx_mulc(c->arith, vb, k));
    if (idx_uses(ra, a->par->var) || idx_uses(rb, b->par->var))
        return false;
    int64_t lo = ra->lo < rb->lo ? ra->lo : rb->lo, hi = ra->hi > rb->hi ? ra->hi : rb->hi;
    return lo > INT64_MIN / 4 && hi < INT64_MAX / 4 && hi - lo < k;
}

/* ... or both depend on the same loop through the very same indices. */
static bool same_cells(const Access *a, const Access *b)
{
    bool any = false;

    for (uint32_t d = 0; d < a->n && a->par == b->par; d++) {
        bool ua = idx_uses(a->index[d], a->par->var), ub = idx_uses(b->index[d], a->par->var);
        if ((ua || ub) && a->index[d] != b->index[d])
            return false;
        any = any || ua;
    }
    return any;
}

/* No thread needs what another wrote in s: every cell of a buffer that s writes is touched by one
 * thread only, whatever the serial loops do. */
static bool threads_apart(Ctx *c, const Stmt *s)
{
    Accesses x = {.c = c, .own = map_new(c->arena)};
    TirVisit v = {&x, access_enter, access_leave, access_prim, NULL};

    stmt_visit(s, &v);
    for (uint32_t i = 0; i < x.all.n; i++) {
        const Access *w = &x.all.at[i];
        if (!w->store)
            continue;
        bool     cells = true;
        uint64_t dims = w->n < 64 ? ((uint64_t)1 << w->n) - 1 : 0;
        for (uint32_t j = 0; j < x.all.n; j++) {
            const Access *o = &x.all.at[j];
            if (o->b != w->b)
                continue;
            if (!w->par || !o->par || o->n != w->n)
                return false;
            cells = cells && same_cells(w, o);
            for (uint32_t d = 0; d < w->n && d < 64; d++)
                if ((dims >> d & 1) && !same_share(c, w, o, d))
                    dims &= ~((uint64_t)1 << d);
            if (!cells && !dims)
                return false;
        }
    }
    return true;
}

/* The phase with its parallel loops cut to this thread's share; NULL if serial statements stand
 * beside a parallel loop, or if threads would meet inside (a barrier would be needed there). */
static const Stmt *share(Spmd *x, const Stmt *s)
{
    Ctx   *c = x->c;
    Arith *A = c->arith;

    if (s->kind == STMT_FOR && (s->u.loop.marks & MARK_PARALLEL)) {
        LoopData   loop = s->u.loop;
        const Idx *e = loop.extent;
        const Idx *from = idx_div(A, idx_mul(A, e, x->tid), x->nt);
        const Idx *to = idx_div(A, idx_mul(A, e, idx_addc(A, x->tid, 1)), x->nt);
        /* A share has no constant extent: nothing to unroll, and lanes need one. */
        loop.marks &= ~(uint32_t)(MARK_PARALLEL | MARK_VECTOR | MARK_UNROLL);
        loop.lo = idx_add(A, s->u.loop.lo, from);
        loop.extent = idx_sub(A, to, from);
        return stmt_for(c, loop, serial(c, s->kids[0]), s->loc);
    }
    if (s->kind == STMT_FOR || s->kind == STMT_ALLOC || (s->kind == STMT_IF && s->nkids == 1)) {
        int64_t n;
        if (s->kind == STMT_FOR && !(idx_is_const(s->u.loop.extent, &n) && n <= 1) &&
            !threads_apart(c, s))
            return NULL;
        const Stmt *kid = share(x, s->kids[0]);
        return kid ? stmt_with_kids(c, s, &kid) : NULL;
    }
    if (s->kind == STMT_SEQ && s->nkids) {
        const Stmt **kids = NEW_ARRAY(c->arena, const Stmt *, s->nkids);
        if (!threads_apart(c, s))
            return NULL;
        for (uint32_t i = 0; i < s->nkids; i++)
            if (!has_parallel(s->kids[i]) || !(kids[i] = share(x, s->kids[i])))
                return NULL;
        return stmt_with_kids(c, s, kids);
    }
    return NULL;
}

typedef struct {
    Ctx *c;
    Map *read, *written; /* buffer ids */
} Touch;

static bool touch_stmt(void *user, const Stmt *s)
{
    Touch *t = user;

    if (s->kind == STMT_STORE)
        map_put(t->written, root(s->u.store.buffer)->id, (void *)1);
    return true;
}

static void touch_prim(void *user, const Prim *p)
{
    Touch *t = user;

    if (p->kind == PRIM_LOAD)
        map_put(t->read, root(p->u.load.buffer)->id, (void *)1);
}

static Touch touched(Ctx *c, const Stmt *s)
{
    Touch    t = {c, map_new(c->arena), map_new(c->arena)};
    TirVisit v = {&t, touch_stmt, NULL, touch_prim, NULL};

    stmt_visit(s, &v);
    return t;
}

static bool conflict(const Touch *a, const Touch *b, uint32_t nbuffers)
{
    for (uint32_t i = 0; i < nbuffers; i++) {
        bool aw = map_get(a->written, i) != NULL, bw = map_get(b->written, i) != NULL;
        if ((aw && (bw || map_get(b->read, i))) || (bw && map_get(a->read, i)))
            return true;
    }
    return false;
}

static const Func *spmd_func(Ctx *c, void *user, const Func *f)
{
    VEC(const Buffer *) allocs = {0};
    const Stmt *s = f->body;

    (void)user;
    if (f->kind != FUNC_KERNEL || !has_parallel(s) || (f->target && f->target->no_threads))
        return func_with_body(c, f, serial(c, s));
    while (s->kind == STMT_ALLOC) {
        vec_push(c->arena, &allocs, s->u.buffer);
        s = s->kids[0];
    }
    uint32_t           n = s->kind == STMT_SEQ ? s->nkids : 1;
    const Stmt *const *part = s->kind == STMT_SEQ ? s->kids : &s;
    const Atom  *tid = atom_var(c->arith, "tid", 0, 1023), *nt = atom_var(c->arith, "nt", 1, 1024);
    Spmd         x = {c, idx_atom(c->arith, tid), idx_atom(c->arith, nt)};
    const Stmt **done = NEW_ARRAY(c->arena, const Stmt *, n + 1);
    uint32_t    *phase = NEW_ARRAY(c->arena, uint32_t, n + 1), nphases = 1, first = 0;
    Touch       *touch = NEW_ARRAY(c->arena, Touch, n + 1);
    bool         any = false;

    for (uint32_t i = 0; i < n; i++) {
        done[i] = has_parallel(part[i]) ? share(&x, part[i]) : NULL;
        any = any || done[i];
        if (!done[i]) /* thread 0 alone: 0 <= -tid */
            done[i] = stmt_if(c,
                              pred_prim(c, pred_and(c->arith, c->arena, PRED_TRUE,
                                                    idx_mulc(c->arith, x.tid, -1))),
                              serial(c, part[i]), NULL);
        touch[i] = touched(c, part[i]);
        for (uint32_t j = first; j < i; j++)
            if (conflict(&touch[j], &touch[i], c->next_buffer)) {
                nphases++;
                first = i;
                break;
            }
        phase[i] = nphases - 1;
    }
    if (!any)
        return func_with_body(c, f, serial(c, f->body));
    uint32_t nparams = f->nparams + 2 + (nphases > 1);
    Param   *params = NEW_ARRAY(c->arena, Param, nparams);
    for (uint32_t i = 0; i < f->nparams; i++)
        params[i] = f->params[i];
    params[f->nparams] = (Param){NULL, tid, false};
    params[f->nparams + 1] = (Param){NULL, nt, false};
    if (nphases > 1) {
        const Atom *which = atom_var(c->arith, "phase", 0, nphases - 1);
        params[f->nparams + 2] = (Param){NULL, which, false};
        VEC(const Stmt *) all = {0};
        for (uint32_t i = 0; i < n;) {
            uint32_t e = i;
            while (e < n && phase[e] == phase[i])
                e++;
            const Prim *is = prim_eq(c, prim_index(c, DT_I64, idx_atom(c->arith, which)),
                                     prim_int(c, DT_I64, phase[i]));
            vec_push(c->arena, &all, stmt_if(c, is, stmt_seq(c, e - i, done + i), NULL));
            i = e;
        }
        s = stmt_seq(c, all.n, all.at);
    } else {
        s = stmt_seq(c, n, done);
    }
    for (uint32_t i = allocs.n; i-- > 0;) {
        /* Around all phases: shared between the threads, so it lies in the arena. */
        Buffer shared = *allocs.at[i];
        if (n > 1 && shared.scope != SCOPE_REG)
            shared.scope = SCOPE_ARENA;
        const Buffer *b = shared.scope == allocs.at[i]->scope
                              ? allocs.at[i]
                              : buffer_copy(c, allocs.at[i], shared);
        s = stmt_alloc(c, b, b == allocs.at[i] ? s : buffer_replace(c, s, allocs.at[i], b));
    }
    Func g = *f;
    g.nparams = nparams;
    g.params = params;
    g.body = s;
    return func_new(c, g);
}

const TirModule *spmd(Ctx *c, const TirModule *m)
{
    return tirmod_map(c, m, spmd_func, NULL);
}
