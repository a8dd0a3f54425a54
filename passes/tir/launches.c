/* launches: a function of a device becomes the kernels that carry it out, one a launch.
 *
 *   func @f kind(device) (%x, %y) { alloc %t { for %i<100 { %t[%i] = .. }  for %j<9 { .. } } }
 *     -> func @f.0 kind(device) (%x, %y, %t) {
 *          for %b<2 bind(blockIdx.x) { for %t<64 bind(threadIdx.x) { if %b*64+%t < 100 { .. } } } }
 *        func @f.1 kind(device) (%x, %y, %t) { .. }
 *
 * Nothing but the end of a launch makes all threads wait for each other, so every outermost
 * statement is a launch of its own, in order, and what is allocated around them lies in the arena,
 * which is device memory.  All parts keep the whole parameter list.  A nest that no schedule bound
 * gets its outer spatial loops fused and divided among threads; where that cannot be (a reduction,
 * a sort), one thread does it, and its neighbours of that kind in the same launch.  Allocations
 * inside a thread's share become its own (scope `local`), with room for the largest size that a run
 * may decide; one too large for that moves to the arena, where each thread of loops that a schedule
 * bound has a part, and keeps other nests to one thread.  A launch beyond the target's limits is an
 * error.
 * Runs after fill_halo, whose loops are launches like others.  Cost: one walk a function. */
#include "ir/tir/intrin.h"
#include "passes/passes.h"
#include "passes/tir/util.h"

enum { THREADS = 64, LOCAL_LIMIT = 4096 };

typedef VEC(const Stmt *) StmtList;

typedef struct {
    Ctx    *c;
    int64_t threads; /* most of a block */
    VEC(Param) shared;
    StmtList parts;
} Parts;

static int64_t alloc_bytes(Ctx *c, const Buffer *b)
{
    int64_t elems = 1, origin = 0;

    return buffer_size_most(c, b, &elems, &origin) ? elems * dtype_bytes(b->dtype) : INT64_MAX;
}

static bool has_large(Ctx *c, const Stmt *s)
{
    if (s->kind == STMT_ALLOC && alloc_bytes(c, s->u.buffer) > LOCAL_LIMIT)
        return true;
    for (uint32_t i = 0; i < s->nkids; i++)
        if (has_large(c, s->kids[i]))
            return true;
    return false;
}

static bool is_bound(const Stmt *s)
{
    if (s->kind == STMT_FOR && s->u.loop.bind)
        return true;
    for (uint32_t i = 0; i < s->nkids; i++)
        if (is_bound(s->kids[i]))
            return true;
    return false;
}

static const Stmt *share_alloc(Parts *x, const Stmt *s)
{
    Buffer to = *s->u.buffer;
    to.scope = SCOPE_ARENA;
    const Buffer *from = s->u.buffer, *b = buffer_copy(x->c, from, to);
    vec_push(x->c->arena, &x->shared, ((Param){b, NULL, true}));
    return buffer_replace(x->c, s->kids[0], from, b);
}

/* Some thread stores to the buffer what others may read. */
static bool stored_by_threads(const Stmt *s, const Buffer *b, bool in_thread)
{
    if (s->kind == STMT_STORE && s->u.store.buffer == b)
        return in_thread;
    in_thread = in_thread || (s->kind == STMT_FOR && s->u.loop.bind >= AXIS_THREAD_X);
    for (uint32_t i = 0; i < s->nkids; i++)
        if (stored_by_threads(s->kids[i], b, in_thread))
            return true;
    return false;
}

/* What a block allocates outside of its threads is shared if they store to it one by one; what all
 * of them compute alike each has for itself. */
static const Stmt *share_in_block(Ctx *c, const Stmt *s)
{
    const Stmt **kids;

    if (!s->nkids || (s->kind == STMT_FOR && s->u.loop.bind >= AXIS_THREAD_X))
        return s;
    if (s->kind == STMT_ALLOC && s->u.buffer->scope != SCOPE_SHARED &&
        s->u.buffer->scope != SCOPE_REG && stored_by_threads(s->kids[0], s->u.buffer, false)) {
        Buffer shared = *s->u.buffer;
        shared.scope = SCOPE_SHARED;
        const Buffer *b = buffer_copy(c, s->u.buffer, shared);
        s = stmt_alloc(c, b, buffer_replace(c, s->kids[0], s->u.buffer, b));
    }
    kids = NEW_ARRAY(c->arena, const Stmt *, s->nkids);
    for (uint32_t i = 0; i < s->nkids; i++)
        kids[i] = share_in_block(c, s->kids[i]);
    return stmt_with_kids(c, s, kids);
}

/* ---- memory of threads that is too large for them ------------------------------------------------ */

enum { MAX_BOUND = 6 };

typedef struct {
    uint32_t        n;
    const LoopData *loop[MAX_BOUND]; /* bound ones, outermost first */
} Around;

/* A buffer of which each thread has a part, by its number. */
typedef struct {
    const Buffer *was, *now;
    const Idx    *thread;
} PerThread;

static const Idx *const *with_thread(Ctx *c, const PerThread *x, const Idx *const *index)
{
    const Idx **at = NEW_ARRAY(c->arena, const Idx *, x->now->ndim);

    at[0] = x->thread;
    for (uint32_t i = 1; i < x->now->ndim; i++)
        at[i] = index[i - 1];
    return at;
}

static const Prim *load_part(Ctx *c, void *user, const Prim *p)
{
    const PerThread *x = user;

    if (p->kind != PRIM_LOAD || p->u.load.buffer != x->was)
        return p;
    return prim_load(c, x->now, with_thread(c, x, p->u.load.index));
}

static const Stmt *store_part(Ctx *c, void *user, UNUSED const Stmt *was, const Stmt *now)
{
    const PerThread *x = user;

    if (now->kind != STMT_STORE || now->u.store.buffer != x->was)
        return now;
    return stmt_store(c, x->now, with_thread(c, x, now->u.store.index), now->u.store.value);
}

static const Stmt *part_in_arena(Parts *x, const Stmt *s, const Around *a)
{
    Ctx        *c = x->c;
    Arith      *A = c->arith;
    const Idx  *threads = idx_const(A, 1), *at = idx_const(A, 0);
    Buffer      to = *s->u.buffer;
    const Idx **extent = NEW_ARRAY(c->arena, const Idx *, to.ndim + 1);

    for (uint32_t i = 0; i < a->n; i++) {
        const LoopData *l = a->loop[i];
        threads = idx_mul(A, threads, l->extent);
        at = idx_add(A, idx_mul(A, at, l->extent), idx_sub(A, idx_atom(A, l->var), l->lo));
    }
    extent[0] = threads;
    for (uint32_t i = 0; i < to.ndim; i++)
        extent[i + 1] = to.extent[i];
    to.scope = SCOPE_ARENA;
    to.ndim++;
    to.extent = extent;
    PerThread part = {s->u.buffer, buffer_copy(c, s->u.buffer, to), at};
    TirMap    m = {.user = &part, .stmt = store_part, .prim = load_part};
    vec_push(c->arena, &x->shared, ((Param){part.now, NULL, true}));
    return stmt_map(c, s->kids[0], &m);
}

/* What a thread allocates, moved to the arena where it is too large. */
static const Stmt *move_large(Parts *x, const Stmt *s, Around a)
{
    const Stmt **kids = NEW_ARRAY(x->c->arena, const Stmt *, s->nkids + 1);
    bool         in_thread = a.n && a.loop[a.n - 1]->bind >= AXIS_THREAD_X;

    if (s->kind == STMT_FOR && s->u.loop.bind && a.n < MAX_BOUND)
        a.loop[a.n++] = &s->u.loop;
    for (uint32_t i = 0; i < s->nkids; i++)
        kids[i] = move_large(x, s->kids[i], a);
    s = stmt_with_kids(x->c, s, kids);
    if (s->kind == STMT_ALLOC && in_thread && alloc_bytes(x->c, s->u.buffer) > LOCAL_LIMIT &&
        s->u.buffer->scope != SCOPE_SHARED && s->u.buffer->scope != SCOPE_REG && !s->u.buffer->halo)
        return part_in_arena(x, s, &a);
    return s;
}

/* One or two words of shared memory, or as much as an access moves: stored at once.  So is what a
 * thread has of a matrix. */
static bool fills_access(const Stmt *s)
{
    enum { WORD = 4, ACCESS = 16 };
    const Stmt      *in = s->kids[0];
    const StoreData *d;
    int64_t          n, bytes;

    while (in->kind == STMT_IF && in->nkids == 1)
        in = in->kids[0];
    d = &in->u.store;
    if (in->kind == STMT_STORE && is_matrix_store(d))
        return true;
    if (in->kind != STMT_STORE || d->buffer->scope != SCOPE_SHARED ||
        !idx_is_const(s->u.loop.extent, &n))
        return false;
    bytes = n * dtype_bytes(d->buffer->dtype);
    return bytes == WORD || bytes == 2 * WORD || bytes == ACCESS;
}

/* Inside a thread: allocations are its own, and marks of CPUs mean nothing, but for words. */
static const Stmt *inner(Ctx *c, void *user, const Stmt *was, const Stmt *now)
{
    (void)was;
    if (now->kind == STMT_FOR) {
        LoopData l = now->u.loop;
        if (!l.parallel && !l.vector && !l.outline)
            return now;
        l.parallel = false;
        l.vector = l.vector && fills_access(now);
        l.outline = NULL;
        return stmt_for(c, l, now->kids[0], now->loc);
    }
    if (now->kind != STMT_ALLOC)
        return now;
    Scope scope = now->u.buffer->scope;
    if (alloc_bytes(c, now->u.buffer) > LOCAL_LIMIT && scope != SCOPE_SHARED)
        return share_alloc(user, now);
    if (scope != SCOPE_ARENA && scope != SCOPE_PRIVATE && scope != SCOPE_STACK)
        return now;
    Buffer      to = *now->u.buffer;
    const Idx **most = NEW_ARRAY(c->arena, const Idx *, to.ndim + 1);
    for (uint32_t i = 0; i < to.ndim; i++)
        most[i] = idx_const(c->arith, to.extent[i]->hi);
    to.extent = most;
    to.scope = SCOPE_LOCAL;
    const Buffer *b = buffer_copy(c, now->u.buffer, to);
    return stmt_alloc(c, b, buffer_replace(c, now->kids[0], now->u.buffer, b));
}

static const Stmt *bound_loop(Ctx *c, const Atom *var, const Idx *n, BindAxis axis,
                              const Stmt *body)
{
    LoopData l = {.var = var, .lo = idx_const(c->arith, 0), .extent = n, .bind = axis};

    return stmt_for(c, l, body, NO_LOC);
}

/* The chain of outer spatial loops as one, cut into blocks of threads; s itself if there is none.
 * How many blocks there are a run decides where it decides how many rounds. */
static const Stmt *bind_outer(Ctx *c, const Stmt *s, int64_t most)
{
    Arith      *A = c->arith;
    const Idx  *total;
    const Stmt *in = spatial_chain(c, s, &total);

    if (in == s)
        return s;
    int64_t     threads = total->hi < most ? total->hi : most;
    const Idx  *blocks = idx_divc(A, idx_addc(A, total, threads - 1), threads);
    const Atom *b = atom_upto(A, "b", blocks), *t = atom_var(A, "t", 0, threads - 1);
    const Idx  *at = idx_add(A, idx_mulc(A, idx_atom(A, b), threads), idx_atom(A, t));
    const Stmt *body = chain_at(c, s, in, total, at, idx_mulc(A, blocks, threads) != total);
    return bound_loop(c, b, blocks, AXIS_BLOCK_X,
                      bound_loop(c, t, idx_const(A, threads), AXIS_THREAD_X, body));
}

/* ---- what a launch may be ------------------------------------------------------------------------ */

/* Rules keep the limits of a target; steps written by hand, or those of a log, may not. */
static bool within_limits(Ctx *c, const Func *f)
{
    const Target *t = f->target;
    const Idx    *axis[AXIS_COUNT];
    int64_t       threads = 1, shared, n;
    uint32_t      buffers = 0, args;

    if (!t || !t->host)
        return true;
    shared = shared_needed(c, f, NULL);
    for (uint32_t i = 0; i < f->nparams; i++)
        buffers += f->params[i].buffer != NULL;
    args = f->nparams + buffers; /* their offsets */
    if (t->max_args && args > t->max_args)
        return error_at(c, E_SCHEDULE, f->body->loc, "@%s: %u arguments, the target has %u",
                        f->name, args, t->max_args);
    if (t->max_buffers && buffers > t->max_buffers)
        return error_at(c, E_SCHEDULE, f->body->loc, "@%s: %u tensors, the target has %u", f->name,
                        buffers, t->max_buffers);
    func_axes(c, f, axis);
    for (int i = 0; i < 3; i++) {
        n = axis[AXIS_BLOCK_X + i] ? axis[AXIS_BLOCK_X + i]->hi : 1;
        if (n > t->max_blocks[i]) {
            error_at(c, E_SCHEDULE, f->body->loc, "@%s: %lld blocks along %c, the target has %u",
                     f->name, (long long)n, "xyz"[i], t -> max_blocks[i]);
            if (i > 0)
                diag_hint(c->diags, "fuse the loop with the one that is bound to blockIdx.x");
            return false;
        }
        if (axis[AXIS_THREAD_X + i] && !checked_mul(threads, axis[AXIS_THREAD_X + i]->hi, &threads))
            threads = INT64_MAX;
    }
    if (threads > t->max_threads)
        return error_at(c, E_SCHEDULE, f->body->loc,
                        "@%s: a block of %lld threads, the target has %u", f->name,
                        (long long)threads, t->max_threads);
    if (shared > t->shared_bytes)
        return error_at(c, E_SCHEDULE, f->body->loc,
                        "@%s: a block shares %lld bytes, the target has %u", f->name,
                        (long long)shared, t->shared_bytes);
    return true;
}

static void split(Parts *x, const Stmt *s)
{
    if (s->kind == STMT_ALLOC) {
        split(x, share_alloc(x, s));
        return;
    }
    if (s->kind == STMT_SEQ) {
        for (uint32_t i = 0; i < s->nkids; i++)
            split(x, s->kids[i]);
        return;
    }
    TirMap m = {x, inner, NULL, NULL, NULL};
    if (!is_bound(s) && !has_large(x->c, s))
        s = bind_outer(x->c, s, x->threads);
    s = move_large(x, share_in_block(x->c, s), (Around){0});
    s = cooperate(x->c, stmt_map(x->c, s, &m));
    if (x->parts.n && !is_bound(s) &&
        !is_bound(x->parts.at[x->parts.n - 1])) { /* one thread does both */
        const Stmt *both[2] = {x->parts.at[x->parts.n - 1], s};
        x->parts.at[x->parts.n - 1] = stmt_seq(x->c, 2, both);
        return;
    }
    vec_push(x->c->arena, &x->parts, s);
}

const TirModule *launches(Ctx *c, const TirModule *m)
{
    VEC(const Func *) all = {0};
    bool changed = false;

    for (uint32_t i = 0; i < m->nfuncs; i++) {
        const Func *f = m->funcs[i];
        if (f->kind != FUNC_DEVICE) {
            vec_push(c->arena, &all, f);
            continue;
        }
        Parts x = {.c = c, .threads = THREADS};
        if (f->target && f->target->host && f->target->max_threads < THREADS)
            x.threads = f->target->max_threads;
        split(&x, f->body);
        if (!x.parts.n)
            vec_push(c->arena, &x.parts, f->body); /* nothing to do, but still a kernel */
        Func   g = *f;
        Param *p = NEW_ARRAY(c->arena, Param, f->nparams + x.shared.n + 1);
        for (uint32_t k = 0; k < f->nparams; k++)
            p[k] = f->params[k];
        for (uint32_t k = 0; k < x.shared.n; k++)
            p[f->nparams + k] = x.shared.at[k];
        g.params = p;
        g.nparams = f->nparams + x.shared.n;
        for (uint32_t k = 0; k < x.parts.n; k++) {
            g.name = intern_printf(c->strings, "%s.%u", f->name, k);
            g.body = x.parts.at[k];
            if (!within_limits(c, &g))
                return NULL;
            vec_push(c->arena, &all, func_new(c, g));
        }
        changed = true;
    }
    return changed ? tirmod_new(c, all.n, all.at) : m;
}
