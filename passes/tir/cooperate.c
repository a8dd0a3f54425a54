/* cooperate: memory of a block of threads (scope `shared`), filled by all of them.
 *
 *   for %t<16 bind(threadIdx.x) { for %ko<4 { alloc %s: f32[64] @shared {
 *     for %i<64 { %s[%i] = %x[%ko*64+%i] }  for %ki<64 { .. %s[%ki] } } } }
 *     -> alloc %s: f32[64] @shared { for %t<16 bind(threadIdx.x) { for %ko<4 {
 *          for %i<4 { %s[%i*16+%t] = %x[..] }  for %ki<64 { .. %s[%ki] } } } }
 *
 * As it stands, every thread fills a copy of its own; where all copies are equal one does, of which
 * each thread fills a share.  Its rounds are one loop, whose threads lie side by side, or loops of
 * the nest, where each round would find its cell anew: 128 threads in rows of 96 cells,
 *
 *     %s[(%r*128+%t)//96,(%r*128+%t)%96]  ->  %s[%r*4+%t//32,%r.1*32+%t%32]
 *
 * (24 numbers of ResNet-50's convolutions took 255 registers and spilled, 137 so.)  `thread_sync`
 * places the barriers.
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

    u->found = u->found || ((s == SCOPE_LOCAL || s == SCOPE_FRAG || s == SCOPE_REG ||
                             s == SCOPE_STACK || s == SCOPE_PRIVATE) &&
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

/* The places of a share, as loops of the nest have them. */
enum { MAX_CHAIN = 16 };

typedef struct {
    uint32_t    n;
    const Stmt *loop[MAX_CHAIN];    /* of the chain, outermost first */
    int64_t     threads[MAX_CHAIN]; /* that its rounds lie side by side for, .. */
    int64_t     rounds[MAX_CHAIN];  /* .. so often */
} Share;

/* Where a cell lies depends on the round and on the thread in a way that keeps both together: no
 * compiler sees that the rounds' places differ by constants. */
typedef struct {
    const Atom *round;
    bool        found;
} Mixed;

static void find_mixed(void *user, const Idx *i)
{
    Mixed *m = user;

    for (uint32_t k = 0; k < i->nterms && !m->found; k++) {
        const Atom *a = i->t[k].atom;
        bool        with = false, without = false;
        if (a->kind != ATOM_DIV)
            continue;
        for (uint32_t n = 0; n < a->a->nterms; n++) {
            const Atom *of = a->a->t[n].atom;
            bool round = of == m->round || (of->kind == ATOM_DIV && idx_uses(of->a, m->round));
            with = with || round;
            without = without || !round;
        }
        m->found = with && without;
        find_mixed(m, a->a);
    }
}

static bool is_mixed(const Stmt *s, const Atom *round)
{
    Mixed m = {round, false};

    stmt_visit(s, &(TirVisit){.user = &m, .idx = find_mixed});
    return m.found;
}

/* Each loop's rounds are divided among as many of the threads as they can be, the innermost first;
 * false where threads are left over, or those side by side have less than a sector of memory. */
static bool divide(const Coop *x, const Machine *m, const Stmt *s, const Stmt *in, Share *y)
{
    int64_t left = x->threads, beside = 1, bytes = 0;
    bool    whole = true;

    for (; s != in && y->n < MAX_CHAIN; s = s->kids[0])
        y->loop[y->n++] = s;
    if (s != in)
        return false;
    for (const Stmt *to = in; to; to = to->nkids == 1 ? to->kids[0] : NULL)
        bytes = to->kind == STMT_STORE ? dtype_bytes(to->u.store.buffer->dtype) : bytes;
    for (uint32_t i = y->n; i-- > 0;) {
        int64_t rounds = 1;
        if (!idx_is_const(y->loop[i]->u.loop.extent, &rounds))
            return false;
        y->threads[i] = gcd_i64(rounds, left);
        y->rounds[i] = rounds / y->threads[i];
        left /= y->threads[i];
        beside *= whole ? y->threads[i] : 1;
        whole = whole && y->rounds[i] == 1;
    }
    return left == 1 && beside * bytes >= limit_gpu_sector(m);
}

/* The share as loops of its own: what a round adds to a place is then a constant. */
static const Stmt *share_by_loops(const Coop *x, const Share *y, const Stmt *in)
{
    Arith      *A = x->c->arith;
    IdxSubst   *sub = subst_new(A, x->c->arena);
    const Atom *round[MAX_CHAIN];
    int64_t     before = 1;

    for (uint32_t i = y->n; i-- > 0; before *= y->threads[i]) {
        const Idx *own = idx_modc(A, idx_divc(A, x->tid, before), y->threads[i]);
        round[i] = atom_var(A, "r", 0, y->rounds[i] - 1);
        const Idx *at = own;
        if (y->rounds[i] > 1)
            at = idx_add(A, own, idx_mulc(A, idx_atom(A, round[i]), y->threads[i]));
        subst_bind(sub, y->loop[i]->u.loop.var, idx_add(A, y->loop[i]->u.loop.lo, at));
    }
    const Stmt *s = stmt_subst(x->c, in, sub);
    for (uint32_t i = y->n; i-- > 0;) {
        LoopData l = {.var = round[i],
                      .lo = idx_const(A, 0),
                      .extent = idx_const(A, y->rounds[i]),
                      .rounds = (uint32_t)y->rounds[i]};
        if (y->rounds[i] > 1)
            s = stmt_for(x->c, l, s, NO_LOC);
    }
    return s;
}

/* This thread's share of a nest that fills: its rounds as one loop, or, where places would be
 * mixed, as loops of the nest. */
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

    const Stmt *one = chain_at(c, s, in, cells, at, rounds * x->threads != total);
    Share       y = {0};
    if (rounds > 1 && rounds <= limit_gpu_filling(&m) && is_mixed(one, r) &&
        divide(x, &m, s, in, &y))
        return share_by_loops(x, &y, in);
    return stmt_for(c, l, one, NO_LOC);
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
