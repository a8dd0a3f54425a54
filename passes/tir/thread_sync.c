/* thread_sync: barriers where threads of a block meet in shared memory.
 *
 *   for %k < 4 seq { %s[%t] = %x[%k*8+%t]   for %i < 8 reduce { .. %s[%i] } }
 *     -> for %k < 4 seq { barrier   %s[%t] = ..   barrier   for %i < 8 reduce { .. %s[%i] } }
 *
 * Walks a function of a device in the order in which it runs and keeps what has touched shared
 * memory since the last barrier.  A statement that reads what was stored, or stores what was read
 * or stored, gets a barrier before it, unless both are at the same index, which is a cell of the
 * thread's own (own_cells.c). What a round of a loop leaves behind meets the next round, so a loop
 * with both kinds of access is walked a second time with that.  A barrier is for all threads: none
 * stands under a condition that threads may answer differently, nor in a loop whose rounds they may
 * count differently; `cooperate` leaves no memory shared that would need one there, and where a
 * schedule's does, that is an error. Cost: a walk for each level of loops. */
#include "ir/tir/intrin.h"
#include "passes/passes.h"
#include "passes/tir/util.h"

#include <stdlib.h>

enum { MOST_CELLS = 16 }; /* of a buffer, that are known apart */

typedef struct {
    const Buffer     *buffer;
    const Idx *const *index;  /* NULL: any */
    const Idx        *cell;   /* its number; NULL: any, or not known */
    const LoopData   *rounds; /* of any of whose rounds; NULL: of no loop */
    bool              read, written;
    bool              together; /* by a warp, as a matrix whose parts no thread has */
} Touch;

typedef struct {
    VEC(Touch) at;
} Touches;

typedef struct {
    Ctx        *c;
    const Func *f;
    const Idx  *axis[AXIS_COUNT];
    AtomSet    *uneven;     /* variables that differ among the threads of a block */
    VEC(const Atom *) open; /* variables of loops around what is walked, the same for all threads */
    Threads threads;
    bool    failed;
} Sync;

/* ---- what a statement touches -------------------------------------------------------------------- */

/* Cells are counted as if rows had no gaps: that tells them apart as well. */
static const Idx *cell_number(Ctx *c, const Buffer *b, const Idx *const *index)
{
    const Idx *at = idx_const(c->arith, 0);
    int64_t    n;

    for (uint32_t d = 0; at && d < b->ndim; d++)
        at = idx_is_const(b->extent[d], &n) ? idx_add(c->arith, idx_mulc(c->arith, at, n), index[d])
                                            : NULL;
    return at;
}

static Touch touch_of(const Sync *x, const Buffer *b, const Idx *const *index, bool read,
                      bool together)
{
    const Idx **at = NEW_ARRAY(x->c->arena, const Idx *, b->ndim + 1);

    for (uint32_t d = 0; d < b->ndim; d++)
        at[d] = idx_subst(x->threads.numbers, index[d]);
    return (Touch){b, at, cell_number(x->c, b, at), NULL, read, !read, together};
}

static bool same_cell(const Touch *a, const Touch *b)
{
    for (uint32_t i = 0; a->index && b->index && i < a->buffer->ndim; i++)
        if (a->index[i] != b->index[i])
            return false;
    return a->index && b->index;
}

static int64_t common_factor(int64_t g, const Idx *x)
{
    for (uint32_t i = 0; i < x->nterms; i++)
        g = gcd_i64(g, x->t[i].coef);
    return g;
}

static bool is_open(const Sync *x, const Atom *a)
{
    for (uint32_t i = 0; i < x->open.n; i++)
        if (x->open.at[i] == a)
            return true;
    return false;
}

/* Nothing but variables of loops that all threads are in the same round of. */
static bool of_this_round(const Sync *x, const Idx *i)
{
    for (uint32_t k = 0; k < i->nterms; k++) {
        const Atom *a = i->t[k].atom;
        if (a->kind == ATOM_DIV ? !of_this_round(x, a->a) : !is_open(x, a))
            return false;
    }
    return true;
}

/* All threads choose that, and in the same round, for both. */
static bool chosen_alike(const Sync *x, const Idx *i, const Touch *a, const Touch *b)
{
    return of_this_round(x, i) && !(a->rounds && idx_uses(i, a->rounds->var)) &&
           !(b->rounds && idx_uses(i, b->rounds->var));
}

/* One of several buffers by turns, stages of a pipeline: the remainders by n of two numbers that
 * are not a multiple of n apart. */
static bool other_stages(const Sync *x, const Touch *a, const Touch *b, uint32_t dim)
{
    const Idx *i = a->index[dim], *k = b->index[dim];

    if (!chosen_alike(x, i, a, b) || !chosen_alike(x, k, a, b))
        return false;
    const Idx *d = idx_sub(x->c->arith, i, k);
    int64_t    n = common_factor(0, d);

    return (n ? d->c0 % n : d->c0) != 0;
}

/* No two threads meet there: ranges apart, of a dimension or of cells, or remainders by what all
 * steps are multiples of. */
static bool other_cells(const Sync *x, const Touch *a, const Touch *b)
{
    for (uint32_t d = 0; a->index && b->index && d < a->buffer->ndim; d++)
        if (other_stages(x, a, b, d))
            return true;
    for (uint32_t d = 0; a->index && b->index && d < a->buffer->ndim; d++)
        if (a->index[d]->hi < b->index[d]->lo || b->index[d]->hi < a->index[d]->lo)
            return true;
    if (!a->cell || !b->cell)
        return false;
    int64_t g = common_factor(common_factor(0, a->cell), b->cell);
    return a->cell->hi < b->cell->lo || b->cell->hi < a->cell->lo ||
           (g > 1 && (a->cell->c0 - b->cell->c0) % g);
}

static void touch(Ctx *c, Touches *t, Touch one)
{
    uint32_t n = 0;

    if (one.buffer->scope != SCOPE_SHARED)
        return;
    for (uint32_t i = 0; i < t->at.n; i++) {
        Touch *known = &t->at.at[i];
        if (known->buffer != one.buffer)
            continue;
        bool same = same_cell(known, &one) && known->rounds == one.rounds &&
                    known->together == one.together;
        if (same || !known->index || ++n == MOST_CELLS) {
            known->index = same ? one.index : NULL;
            known->cell = same ? one.cell : NULL;
            known->read |= one.read;
            known->written |= one.written;
            return;
        }
    }
    vec_push(c->arena, &t->at, one);
}

typedef struct {
    const Sync *sync;
    Touches    *into;
    bool        together; /* the statement at hand */
} Collect;

static bool collect_store(void *user, const Stmt *s)
{
    Collect *x = user;

    x->together = s->kind == STMT_STORE && is_matrix_store(&s->u.store);
    if (s->kind == STMT_STORE)
        touch(x->sync->c, x->into,
              touch_of(x->sync, s->u.store.buffer, s->u.store.index, false, x->together));
    return true;
}

static void collect_load(void *user, const Prim *p)
{
    Collect *x = user;

    if (p->kind == PRIM_LOAD)
        touch(x->sync->c, x->into,
              touch_of(x->sync, p->u.load.buffer, p->u.load.index, true, x->together));
}

static Touches touched(const Sync *sync, const Stmt *s)
{
    Touches  t = {0};
    Collect  x = {sync, &t, false};
    TirVisit v = {&x, collect_store, NULL, collect_load, NULL};

    stmt_visit(s, &v);
    return t;
}

typedef VEC(const LoopData *) LoopDatas;

static bool loops_have(const LoopDatas *l, const Atom *var)
{
    for (uint32_t i = 0; i < l->n; i++)
        if (l->at[i]->var == var)
            return true;
    return false;
}

/* Loops around, whose variables are divided together with those of the loops: (%r*8+%t)//18. */
static void add_divided(const Sync *x, LoopDatas *loops, const Idx *i, bool inside)
{
    Arith *A = x->c->arith;

    for (uint32_t k = 0; k < i->nterms; k++) {
        const Atom *a = i->t[k].atom;
        bool        with = inside;

        for (uint32_t n = 0; a->kind == ATOM_DIV && !with && n < loops->n; n++)
            with = idx_uses(a->a, loops->at[n]->var);
        if (a->kind == ATOM_DIV && with) {
            add_divided(x, loops, a->a, true);
        } else if (a->kind == ATOM_VAR && inside && !loops_have(loops, a)) {
            LoopData l = {
                .var = a, .lo = idx_const(A, a->lo), .extent = idx_const(A, a->hi - a->lo + 1)};
            vec_push(x->c->scratch, loops, DUP_ARRAY(x->c->scratch, &l, 1));
        }
    }
}

/* Each thread of a block, and each round of t->rounds, comes to another cell. */
static bool cell_a_thread(const Sync *x, const Touch *t)
{
    LoopDatas loops = {0};
    uint32_t  axes = 0;
    int64_t   e = 0;

    for (uint32_t i = 0; i < COUNT(x->threads.loop); i++) {
        const LoopData *l = &x->threads.loop[i];
        bool            used = false;
        for (uint32_t d = 0; d < t->buffer->ndim; d++)
            used = used || (l->var && idx_uses(t->index[d], l->var));
        if (!used)
            continue;
        axes |= 1u << l->bind;
        vec_push(x->c->scratch, &loops, l);
    }
    if (t->rounds)
        vec_push(x->c->scratch, &loops, t->rounds);
    for (int a = AXIS_THREAD_X; a <= AXIS_THREAD_Z; a++)
        if (x->axis[a] && !(axes & 1u << a) && !(idx_is_const(x->axis[a], &e) && e == 1))
            return false;
    for (uint32_t d = 0; d < t->buffer->ndim; d++) /* other loops: each thread in its own round */
        for (uint32_t i = 0; i < t->index[d]->nterms; i++) {
            const Atom *a = t->index[d]->t[i].atom;
            bool        known = false;
            for (uint32_t k = 0; k < loops.n; k++)
                known = known || loops.at[k]->var == a ||
                        (a->kind == ATOM_DIV && idx_uses(a->a, loops.at[k]->var));
            if (!known &&
                (a->kind == ATOM_DIV ? idx_uses_any(a->a, x->uneven) : atomset_has(x->uneven, a)))
                return false;
        }
    if (own_cells(x->c, t->buffer->ndim, t->index, t->cell, loops.n, loops.at))
        return true;
    uint32_t n = loops.n;
    for (uint32_t d = 0; d < t->buffer->ndim; d++)
        add_divided(x, &loops, t->index[d], false);
    return loops.n > n && own_cells(x->c, t->buffer->ndim, t->index, t->cell, loops.n, loops.at);
}

static bool meets(const Sync *x, const Touches *before, const Touches *now)
{
    for (uint32_t i = 0; i < before->at.n; i++)
        for (uint32_t k = 0; k < now->at.n; k++) {
            const Touch *a = &before->at.at[i], *b = &now->at.at[k];
            if (!(a->written || b->written) || !shared_overlap(x->c, a->buffer, b->buffer))
                continue;
            if (a->buffer != b->buffer ||
                (!other_cells(x, a, b) && !(same_cell(a, b) && a->together == b->together &&
                                            cell_a_thread(x, a->rounds ? a : b))))
                return true;
        }
    return false;
}

static void join(Ctx *c, Touches *to, const Touches *more)
{
    for (uint32_t i = 0; i < more->at.n; i++)
        touch(c, to, more->at.at[i]);
}

static Touches copy_of(Ctx *c, const Touches *t)
{
    Touches to = {0};

    join(c, &to, t);
    return to;
}

/* In the next round of the loop, what its variable chose is another cell. */
static void move_on(Touches *t, const LoopData *l)
{
    for (uint32_t i = 0; i < t->at.n; i++) {
        Touch *k = &t->at.at[i];
        bool   moves = false;
        for (uint32_t d = 0; k->index && d < k->buffer->ndim; d++)
            moves = moves || idx_uses(k->index[d], l->var);
        if (moves && k->rounds && k->rounds->var != l->var)
            k->index = NULL, k->cell = NULL;
        if (moves)
            k->rounds = l;
    }
}

/* A barrier belongs inside of s, whatever is around it. */
static bool waits_within(Sync *x, const Stmt *s)
{
    Touches before = {0}, now;
    bool    waits = false;

    for (uint32_t i = 0; i < s->nkids && !waits; i++) {
        now = touched(x, s->kids[i]);
        waits = waits_within(x, s->kids[i]) || (s->kind == STMT_SEQ && meets(x, &before, &now));
        join(x->c, &before, &now);
    }
    if (s->kind == STMT_FOR && (s->u.loop.vector || loop_copies(x->c, &s->u.loop)))
        return false;                                       /* its rounds are of one word */
    if (s->kind == STMT_FOR && !s->u.loop.bind && !waits) { /* a round and the next */
        now = copy_of(x->c, &before);
        move_on(&before, &s->u.loop);
        waits = meets(x, &before, &now);
    }
    return waits;
}

/* ---- who takes part ------------------------------------------------------------------------------ */

typedef struct {
    const AtomSet *uneven;
    bool           found;
} Uneven;

static void find_uneven(void *user, const Idx *x)
{
    Uneven *u = user;

    u->found = u->found || idx_uses_any(x, u->uneven);
}

/* What memory holds may differ by thread. */
static void find_load(void *user, const Prim *p)
{
    Uneven *u = user;

    u->found = u->found || p->kind == PRIM_LOAD;
}

/* The index and the value, of which either may be missing, are the same for all threads. */
static bool same_for_all(const Sync *x, const Idx *i, const Prim *p)
{
    Uneven   u = {x->uneven, false};
    TirVisit v = {&u, NULL, NULL, find_load, find_uneven};

    if (i)
        idx_visit(i, &v);
    if (p)
        prim_visit(p, &v);
    return !u.found;
}

/* All threads of a block take the rounds, or the arm, together. */
static bool is_even(const Sync *x, const Stmt *s)
{
    const LoopData *l = &s->u.loop;

    if (s->kind == STMT_FOR && l->bind)
        return l->bind < AXIS_THREAD_X || l->extent == x->axis[l->bind];
    if (s->kind == STMT_FOR)
        return same_for_all(x, l->extent, NULL);
    if (s->kind == STMT_IF)
        return same_for_all(x, NULL, s->u.cond);
    return s->kind == STMT_SEQ || s->kind == STMT_ALLOC;
}

/* ---- the walk -------------------------------------------------------------------------------------- */

static const Stmt *walk(Sync *x, const Stmt *s, Touches *before);

/* All of s between two barriers. */
static const Stmt *whole(Sync *x, const Stmt *s, const Touches *now, Touches *before)
{
    const Stmt *both[2] = {stmt_barrier(x->c), s};
    bool        wait = meets(x, before, now);

    if (wait)
        *before = (Touches){0};
    join(x->c, before, now);
    return wait ? stmt_seq(x->c, 2, both) : s;
}

static const Stmt *loop(Sync *x, const Stmt *s, Touches *before)
{
    Touches after = copy_of(x->c, before);
    int64_t rounds = s->u.loop.bind ? 1 : 0; /* 0: not known */
    bool    even = !s->u.loop.bind && !atomset_has(x->uneven, s->u.loop.var);

    if (even)
        vec_push(x->c->arena, &x->open, s->u.loop.var);
    const Stmt *body = walk(x, s->kids[0], &after);

    if (!s->u.loop.bind && !(idx_is_const(s->u.loop.extent, &rounds) && rounds < 2)) {
        /* what a round leaves meets the next */
        move_on(&after, &s->u.loop);
        join(x->c, &after, before);
        body = walk(x, s->kids[0], &after);
        move_on(&after, &s->u.loop);
    }
    x->open.n -= even;
    if (rounds > 0) /* barriers in it were come to */
        *before = (Touches){0};
    join(x->c, before, &after);
    return stmt_with_kids(x->c, s, &body);
}

static const Stmt *kids(Sync *x, const Stmt *s, Touches *before)
{
    const Stmt **to = NEW_ARRAY(x->c->arena, const Stmt *, s->nkids + 1);
    Touches      first = copy_of(x->c, before);

    for (uint32_t i = 0; i < s->nkids; i++) {
        Touches arm = copy_of(x->c, &first);
        to[i] = walk(x, s->kids[i], s->kind == STMT_IF ? &arm : before);
        if (s->kind == STMT_IF)
            join(x->c, before, &arm);
    }
    return stmt_with_kids(x->c, s, to);
}

static const Stmt *walk(Sync *x, const Stmt *s, Touches *before)
{
    Touches now = touched(x, s);
    bool    around =
        s->kind == STMT_SEQ || s->kind == STMT_ALLOC || (s->kind == STMT_FOR && s->u.loop.bind);

    if (s->kind == STMT_FOR &&
        (s->u.loop.bind >= AXIS_THREAD_X || !same_for_all(x, s->u.loop.lo, NULL)))
        atomset_add(x->uneven, s->u.loop.var);
    if (!now.at.n)
        return s;
    if (!waits_within(x, s) && !(is_even(x, s) && around))
        return whole(x, s, &now, before);
    if (is_even(x, s))
        return s->kind == STMT_FOR ? loop(x, s, before) : kids(x, s, before);
    if (!x->failed)
        error_at(x->c, E_SCHEDULE, s->loc,
                 "@%s: shared memory is stored and read where the threads of a block part",
                 x->f->name);
    x->failed = true;
    return s;
}

static const Func *sync_func(Ctx *c, void *user, const Func *f)
{
    Sync    x = {.c = c, .f = f, .uneven = atomset_new(c->arena)};
    Touches none = {0};

    (void)user;
    if (f->kind != FUNC_DEVICE)
        return f;
    func_axes(c, f, x.axis);
    x.threads = threads_of(c, f);
    for (uint32_t i = 0; i < COUNT(x.threads.loop); i++)
        if (x.threads.loop[i].var)
            atomset_add(x.uneven, x.threads.loop[i].var);
    const Stmt *body = walk(&x, f->body, &none);
    return x.failed ? NULL : body == f->body ? f : func_with_body(c, f, body);
}

const TirModule *thread_sync(Ctx *c, const TirModule *m)
{
    return tirmod_map(c, m, sync_func, NULL);
}
