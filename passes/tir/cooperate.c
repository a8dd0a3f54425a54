/* cooperate: memory of a block of threads (scope `shared`), filled by all of them.
 *
 *   for %t<16 bind(threadIdx.x) { for %ko<4 { alloc %s: f32[64] @shared {
 *     for %i<64 { %s[%i] = %x[%ko*64+%i] }  for %ki<64 { .. %s[%ki] } } } }
 *     -> alloc %s: f32[64] @shared { for %t<16 bind(threadIdx.x) { for %ko<4 {
 *          for %i<4 { %s[%i*16+%t] = %x[..] }  for %ki<64 { .. %s[%ki] } } } }
 *
 * As it stands, every thread fills a copy of its own; where all copies are equal one does, of which
 * each thread fills a share.  `thread_sync` places the barriers.
 *
 * Where a condition lies around the allocation, a barrier could leave threads waiting; where
 * threads fill in different values or go on storing, the copies differ: such buffers become each
 * thread's own (scope `local`), which is what the text says.  Used by `launches`. Cost: one walk.
 */
#include "machine/machine.h"
#include "passes/tir/util.h"

typedef struct {
    Ctx       *c;
    const Idx *tid; /* number of the thread in its block */
    int64_t    threads;
    bool       in_thread;
    AtomSet   *axes; /* variables of the threads */
    VEC(const Buffer *) shared;
} Coop;

static const Stmt *to_local(Ctx *c, void *user, const Stmt *was, const Stmt *now)
{
    (void)user;
    (void)was;
    if (now->kind != STMT_ALLOC || now->u.buffer->scope != SCOPE_SHARED)
        return now;
    Buffer        own = *now->u.buffer;
    const Buffer *b;
    own.scope = SCOPE_LOCAL;
    b = buffer_copy(c, now->u.buffer, own);
    return stmt_alloc(c, b, buffer_replace(c, now->kids[0], now->u.buffer, b));
}

/* What is allocated inside of a statement. */
typedef VEC(const Buffer *) Inner;

static bool is_inner(const Inner *in, const Buffer *b)
{
    for (uint32_t i = 0; i < in->n; i++)
        if (in->at[i] == b)
            return true;
    return false;
}

/* s does nothing but store to shared memory, and to what it allocates. */
static bool fills(Ctx *c, const Stmt *s, Inner *in)
{
    if (s->kind == STMT_STORE)
        return s->u.store.buffer->scope == SCOPE_SHARED || is_inner(in, s->u.store.buffer);
    if (s->kind == STMT_ALLOC && s->u.buffer->scope != SCOPE_SHARED)
        vec_push(c->scratch, in, s->u.buffer);
    else if (s->kind != STMT_FOR && s->kind != STMT_SEQ && s->kind != STMT_IF)
        return false;
    for (uint32_t i = 0; i < s->nkids; i++)
        if (!fills(c, s->kids[i], in))
            return false;
    return s->nkids > 0;
}

typedef struct {
    const AtomSet *axes;
    const Inner   *in;
    bool           found;
} Uses;

static void use(void *user, const Idx *i)
{
    Uses *u = user;

    u->found = u->found || idx_uses_any(i, u->axes);
}

/* What a thread keeps for itself is another value in each. */
static void use_own(void *user, const Prim *p)
{
    Uses *u = user;
    Scope s = p->kind == PRIM_LOAD ? p->u.load.buffer->scope : SCOPE_ARENA;

    u->found = u->found ||
               ((s == SCOPE_LOCAL || s == SCOPE_REG || s == SCOPE_STACK || s == SCOPE_PRIVATE) &&
                !is_inner(u->in, p->u.load.buffer));
}

/* Threads would fill it with different values. */
static bool differs(const Coop *x, const Stmt *s, const Inner *in)
{
    Uses     u = {x->axes, in, false};
    TirVisit v = {&u, NULL, NULL, use_own, use};

    stmt_visit(s, &v);
    return u.found;
}

typedef struct {
    const Stmt *allocs, *inside; /* a chain of allocations and what it holds */
    bool        found;
} Stores;

static bool find_store(void *user, const Stmt *s)
{
    Stores *x = user;

    for (const Stmt *a = x->allocs; s->kind == STMT_STORE && a != x->inside; a = a->kids[0])
        x->found = x->found || s->u.store.buffer == a->u.buffer;
    return !x->found;
}

/* s stores to what was allocated: each thread what it has computed. */
static bool stores(const Stmt *s, const Stmt *allocs, const Stmt *inside)
{
    Stores x = {allocs, inside, false};

    stmt_visit(s, &(TirVisit){&x, find_store, NULL, NULL, NULL});
    return x.found;
}

static bool has_cell(const Buffer *b, uint32_t n, const Idx *const *index)
{
    for (uint32_t d = 0; d < n; d++) {
        int64_t cells;
        if (!idx_is_const(b->extent[d], &cells) || index[d]->lo < 0 || index[d]->hi >= cells)
            return false;
    }
    return true;
}

/* What is filled under a condition of a value that is loaded, is 0 where that does not hold: a
 * choice needs no branch, and leaves nothing unset. */
static const Stmt *to_choice(Ctx *c, void *user, const Stmt *was, const Stmt *now)
{
    const StoreData *d = now->kids && now->nkids == 1 ? &now->kids[0]->u.store : NULL;

    (void)user;
    (void)was;
    if (now->kind != STMT_IF || !d || now->kids[0]->kind != STMT_STORE ||
        d->buffer->scope != SCOPE_SHARED || d->value->kind == PRIM_INTRIN || d->mask || d->member ||
        d->value->dtype.lanes != 1 || !has_cell(d->buffer, d->n, d->index))
        return now;
    const Prim *cond = now->u.cond, *value = d->value, *zero = prim_num(c, value->dtype, 0);
    if (value->kind == PRIM_SELECT && value->kids[2] == zero) { /* a border, too */
        cond = prim_and(c, cond, value->kids[0]);
        value = value->kids[1];
    }
    return stmt_store(c, d->buffer, d->index, prim_select(c, cond, value, zero));
}

/* This thread's share of a nest that fills. */
static const Stmt *fill_share(Coop *x, const Stmt *s)
{
    Ctx       *c = x->c;
    Arith     *A = c->arith;
    Machine    m = machine_of(c->target);
    const Idx *cells;
    int64_t    total;
    TirMap     choose = {NULL, to_choice, NULL, NULL, NULL};
    s = stmt_map(c, s, &choose);
    const Stmt *in = spatial_chain(c, s, &cells);

    if (in == s || !idx_is_const(cells, &total))
        return s; /* all threads store the same */
    int64_t     rounds = (total + x->threads - 1) / x->threads;
    const Atom *r = atom_var(A, "r", 0, rounds - 1);
    const Idx  *at = idx_add(A, idx_mulc(A, idx_atom(A, r), x->threads), x->tid);
    LoopData    l = {.var = r, .lo = idx_const(A, 0), .extent = idx_const(A, rounds)};
    if (rounds > 1) /* what does not change from one filling to the next is then computed once */
        l.rounds = (uint32_t)(rounds <= limit_gpu_filling(&m) ? rounds : limit_gpu_written(&m));

    return stmt_for(c, l, chain_at(c, s, in, cells, at, rounds * x->threads != total), NO_LOC);
}

static const Stmt *walk(Coop *x, const Stmt *s)
{
    Ctx   *c = x->c;
    TirMap own = {NULL, to_local, NULL, NULL, NULL};
    Coop   outer = *x;

    if (s->kind == STMT_IF)
        return stmt_map(c, s, &own);
    if (s->kind == STMT_FOR && s->u.loop.bind >= AXIS_THREAD_X) {
        int64_t n = 1;
        if (!idx_is_const(s->u.loop.extent, &n))
            return stmt_map(c, s, &own);
        x->tid =
            idx_add(c->arith, idx_mulc(c->arith, x->tid, n), idx_atom(c->arith, s->u.loop.var));
        x->threads *= n;
        x->in_thread = true;
        atomset_add(x->axes, s->u.loop.var);
    }
    if (s->kind == STMT_ALLOC && s->u.buffer->scope == SCOPE_SHARED && !x->in_thread) {
        vec_push(c->arena, &x->shared, s->u.buffer); /* nobody has a copy */
        return walk(x, s->kids[0]);
    }
    if (s->kind == STMT_ALLOC && s->u.buffer->scope == SCOPE_SHARED) {
        VEC(const Stmt *) all = {0};
        uint32_t           n, i = 0;
        const Stmt *const *kid, *whole = s;
        for (; s->kind == STMT_ALLOC && s->u.buffer->scope == SCOPE_SHARED; s = s->kids[0])
            ;
        Inner in = {0};
        n = s->kind == STMT_SEQ ? s->nkids : 1;
        kid = s->kind == STMT_SEQ ? s->kids : &s;
        for (; i < n && fills(c, kid[i], &in); i++)
            if (differs(x, kid[i], &in))
                return stmt_map(c, whole, &own);
        uint32_t nfills = i;
        for (; i < n; i++)
            if (stores(kid[i], whole, s))
                return stmt_map(c, whole, &own);
        for (const Stmt *a = whole; a != s; a = a->kids[0])
            vec_push(c->arena, &x->shared, a->u.buffer);
        for (i = 0; i < nfills; i++)
            vec_push(c->arena, &all, fill_share(x, kid[i]));
        for (; i < n; i++)
            vec_push(c->arena, &all, walk(x, kid[i]));
        return stmt_seq(c, all.n, all.at);
    }
    const Stmt **kids = NEW_ARRAY(c->arena, const Stmt *, s->nkids + 1);
    for (uint32_t i = 0; i < s->nkids; i++)
        kids[i] = walk(x, s->kids[i]);
    x->tid = outer.tid;
    x->threads = outer.threads;
    x->in_thread = outer.in_thread;
    return s->nkids ? stmt_with_kids(c, s, kids) : s;
}

const Stmt *cooperate(Ctx *c, const Stmt *s)
{
    Coop x = {.c = c, .tid = idx_const(c->arith, 0), .threads = 1, .axes = atomset_new(c->arena)};

    s = walk(&x, s);
    for (uint32_t i = x.shared.n; i-- > 0;)
        s = stmt_alloc(c, x.shared.at[i], s);
    return s;
}
