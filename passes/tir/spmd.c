/* spmd: loops marked `parallel` become ranges of (tid, nt).
 *
 *   func @k(%x, %y) { for %i<64 parallel { .. } }
 *     -> func @k(%x, %y, %tid, %nt) { for %i in 64*%tid//%nt .. 64*(%tid+1)//%nt { .. } }
 *
 * A kernel is a list of phases, its outermost statements.  Every thread runs a phase with a
 * parallel loop, on its share; a phase without one runs in thread 0.  Where a phase reads or
 * overwrites what another thread wrote in the one before, a barrier lies between: the kernel then
 * takes a scalar %phase and the host calls it once a phase (`phase` ranges over 0..n-1), so that
 * kernels need no barrier of their own.  Neighbours without such a conflict share a phase, such as
 * a loop over whole vectors and what is left behind it, whose cells are others, and all that thread
 * 0 does alone one after the other.  A loop of one
 * round around several statements is one around each of them.  Buffers allocated around several
 * phases are shared by all threads (scope arena), those inside one are private. A parallel loop
 * inside a serial one is divided where each cell that is written belongs to one thread throughout.
 * Where threads have to meet inside (a recurrent network), every round of the serial loop is a
 * phase, or several:
 *
 *   for %t<9 { for %i<64 parallel { .. } }
 *     -> if 1 <= %phase && %phase < 10 { for %t in %phase-1 .. %phase { for %i in .. { .. } } }
 *
 * Odd rounds walk a thread's share backwards, so that they begin with what is still in the cache.
 * What cannot be divided runs in thread 0. A
 * kernel without a parallel loop keeps its parameters; the host calls it on thread 0. No reduction
 * is ever split by nt.  For a target without threads (`-fthreads=none`) every loop stays serial.
 * Cost: one walk. */
#include "passes/passes.h"
#include "passes/tir/util.h"

#include <limits.h>

enum { MAX_ROUNDS = 100000 }; /* of a loop whose rounds are phases */

/* A marked loop of one round is thread 0's. */
static bool is_divided(const Stmt *s)
{
    int64_t n;

    return s->kind == STMT_FOR && s->u.loop.parallel &&
           !(idx_is_const(s->u.loop.extent, &n) && n < 2);
}

static bool has_parallel(const Stmt *s)
{
    if (is_divided(s))
        return true;
    for (uint32_t i = 0; i < s->nkids; i++)
        if (has_parallel(s->kids[i]))
            return true;
    return false;
}

typedef VEC(const Buffer *) BufferList;

typedef struct {
    Ctx        *c;
    const Idx  *tid, *nt;
    const Atom *round;  /* of the serial loop whose rounds are phases; NULL outside */
    BufferList *around; /* buffers allocated around all phases */
} Spmd;

static const Stmt *drop_parallel(Ctx *c, void *user, const Stmt *was, const Stmt *now)
{
    (void)user;
    (void)was;
    if (now->kind != STMT_FOR || !now->u.loop.parallel)
        return now;
    LoopData loop = now->u.loop;
    loop.parallel = false;
    return stmt_for(c, loop, now->kids[0], now->loc);
}

static const Stmt *serial(Ctx *c, const Stmt *s)
{
    TirMap m = {NULL, drop_parallel, NULL, NULL, NULL};

    return stmt_map(c, s, &m);
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
    const Buffer     *b, *as; /* whose storage it is; as which it is indexed */
    uint32_t          n;
    const Idx *const *index;
    const Idx *const *line; /* [n] position in the dimensions from this one on, as one */
    const LoopData   *par;
    bool              store;
    bool              alone; /* of a statement that thread 0 runs alone */
} Access;

typedef VEC(Access) Touch;

typedef struct {
    Ctx            *c;
    Touch           all;
    const LoopData *par;
    Map            *own; /* buffers that every iteration of a parallel loop has for itself */
} Accesses;

static const Idx *const *lines_of(Ctx *c, const Buffer *b, uint32_t n, const Idx *const *index)
{
    const Idx **line = NEW_ARRAY(c->arena, const Idx *, n + 1);
    int64_t     cells = 1, extent;

    for (uint32_t d = n; d-- > 0;) {
        line[d] = index[d];
        if (d + 1 < n && cells > 0)
            line[d] = idx_add(c->arith, idx_mulc(c->arith, index[d], cells), line[d + 1]);
        if (n != b->ndim || !idx_is_const(b->extent[d], &extent) ||
            !checked_mul(cells, extent, &cells))
            cells = 0; /* not known */
    }
    return line;
}

static void note_access(Accesses *x, const Buffer *b, uint32_t n, const Idx *const *index,
                        bool store)
{
    if (!map_get(x->own, root(b)->id))
        vec_push(
            x->c->arena, &x->all,
            ((Access){root(b), b, n, index, lines_of(x->c, b, n, index), x->par, store, false}));
}

static bool access_enter(void *user, const Stmt *s)
{
    Accesses *x = user;

    if (is_divided(s) && !x->par)
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

static bool ranges_apart(const Idx *a, const Idx *b)
{
    return a->hi < b->lo || b->hi < a->lo;
}

/* Whatever the loops do, both touch other cells: those of some dimension lie apart, or of a line of
 * the innermost ones. */
static bool cells_apart(const Access *a, const Access *b)
{
    if (a->as != b->as || a->n != b->n)
        return false;
    for (uint32_t d = 0; d < a->n; d++)
        if (ranges_apart(a->index[d], b->index[d]) || ranges_apart(a->line[d], b->line[d]))
            return true;
    return false;
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
            if (o->b != w->b || (!w->par && !o->par) || cells_apart(w, o))
                continue;
            if (!w->par || !o->par || o->n != w->n)
                return false;
            cells = cells && same_cells(w, o);
            for (uint32_t d = 0; d < w->n && d < CHAR_BIT * sizeof dims; d++)
                if ((dims >> d & 1) && !same_share(c, w, o, d))
                    dims &= ~((uint64_t)1 << d);
            if (!cells && !dims)
                return false;
        }
    }
    return true;
}

/* The loop, and from its end to its start in odd rounds. */
static const Stmt *to_and_fro(Spmd *x, LoopData loop, const Stmt *body, Loc loc)
{
    Ctx        *c = x->c;
    Arith      *A = c->arith;
    const Stmt *forward = stmt_for(c, loop, body, loc);

    if (!x->round)
        return forward;
    const Atom *back = atom_var(A, loop.var->name, 0, loop.var->hi - loop.var->lo);
    LoopData    outer = loop, once = loop;
    const Idx  *last = idx_addc(A, idx_add(A, loop.lo, loop.extent), -1);
    outer.var = back;
    outer.lo = idx_const(A, 0);
    once.lo = idx_sub(A, last, idx_atom(A, back));
    once.extent = idx_const(A, 1);
    const Prim *even = prim_eq(c, prim_index(c, DT_I64, idx_modc(A, idx_atom(A, x->round), 2)),
                               prim_int(c, DT_I64, 0));
    return stmt_if(c, even, forward, stmt_for(c, outer, stmt_for(c, once, body, loc), loc));
}

/* Statements of thread 0 alone: 0 <= -tid. */
static const Stmt *by_one(Spmd *x, const Stmt *s)
{
    Ctx *c = x->c;
    Pred zero = pred_and(c->arith, c->arena, PRED_TRUE, idx_mulc(c->arith, x->tid, -1));

    return stmt_if(c, pred_prim(c, zero), serial(c, s), NULL);
}

/* The phase with its parallel loops cut to this thread's share, and what stands beside them done by
 * thread 0; NULL if threads would meet inside (a barrier would be needed there). */
static const Stmt *share(Spmd *x, const Stmt *s)
{
    Ctx   *c = x->c;
    Arith *A = c->arith;

    if (is_divided(s)) {
        LoopData   loop = s->u.loop;
        const Idx *e = loop.extent;
        const Idx *from = idx_div(A, idx_mul(A, e, x->tid), x->nt);
        const Idx *to = idx_div(A, idx_mul(A, e, idx_addc(A, x->tid, 1)), x->nt);
        /* A share has no constant extent: nothing to unroll, and lanes need one. */
        loop.parallel = loop.vector = loop.unroll = false;
        loop.lo = idx_add(A, s->u.loop.lo, from);
        loop.extent = idx_sub(A, to, from);
        return to_and_fro(x, loop, serial(c, s->kids[0]), s->loc);
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
            if (!(kids[i] =
                      has_parallel(s->kids[i]) ? share(x, s->kids[i]) : by_one(x, s->kids[i])))
                return NULL;
        return stmt_with_kids(c, s, kids);
    }
    return NULL;
}

static Touch touched(Ctx *c, const Stmt *s)
{
    Accesses x = {.c = c, .own = map_new(c->arena)};

    stmt_visit(s, &(TirVisit){&x, access_enter, access_leave, access_prim, NULL});
    return x.all;
}

static void touch_add(Ctx *c, Touch *to, const Touch *from)
{
    for (uint32_t i = 0; i < from->n; i++)
        vec_push(c->arena, to, from->at[i]);
}

/* Greatest common divisor of all coefficients but v's, and of g. */
static int64_t step_of(const Idx *x, const Atom *v, int64_t g)
{
    for (uint32_t i = 0; i < x->nterms; i++)
        g = x->t[i].atom == v ? g : gcd_i64(g, x->t[i].coef);
    return g;
}

/* In one round, whatever other variables are, which may differ: never equal, such as t%2 and
 * (t+1)%2. */
static bool never_equal(const Idx *a, const Idx *b, const Atom *round)
{
    bool    same = round && idx_coef(a, round) == idx_coef(b, round);
    int64_t g = step_of(b, same ? round : NULL, step_of(a, same ? round : NULL, 0)), by;

    return checked_sub(a->c0, b->c0, &by) && (g ? by % g != 0 : by != 0);
}

static bool apart_in_round(const Access *a, const Access *b, const Atom *round)
{
    for (uint32_t d = 0; a->as == b->as && a->n == b->n && d < a->n; d++)
        if (never_equal(a->index[d], b->index[d], round))
            return true;
    return false;
}

/* One stores what the other touches, in the same round of a serial loop if there is one; thread 0
 * alone need not wait for itself. */
static bool conflict(const Spmd *x, const Touch *a, const Touch *b)
{
    for (uint32_t i = 0; i < a->n; i++)
        for (uint32_t j = 0; j < b->n; j++) {
            const Access *p = &a->at[i], *q = &b->at[j];

            if (p->b == q->b && (p->store || q->store) && !(p->alone && q->alone) &&
                !cells_apart(p, q) && !apart_in_round(p, q, x->round))
                return true;
        }
    return false;
}

/* ---- loops that were cut up -------------------------------------------------------------------------
 * Where the taps of a convolution change from row to row, each row is a loop of its own, which has
 * nothing to divide.  Those that follow one another without a conflict are one loop:
 *
 *   for %a<1 parallel { A }  for %b<3 parallel { B }  for %d<1 parallel { D }
 *     -> for %a<5 parallel { if %a < 1 { A } else { if %a < 4 { B(%a-1) } else { D } } } */

static bool marked_rounds(const Stmt *s, int64_t *n)
{
    int64_t lo;

    return s->kind == STMT_FOR && s->u.loop.parallel && idx_is_const(s->u.loop.extent, n) &&
           *n > 0 && idx_is_const(s->u.loop.lo, &lo);
}

/* How many of the statements are such loops, and how many of these have one round. */
static uint32_t cut_copies(const Spmd *x, uint32_t n, const Stmt *const *at, uint32_t *single)
{
    Touch    all = {0};
    int64_t  rounds;
    uint32_t i;

    *single = 0;
    for (i = 0; i < n && marked_rounds(at[i], &rounds); i++) {
        Touch t = touched(x->c, at[i]);

        if (conflict(x, &all, &t))
            break;
        touch_add(x->c, &all, &t);
        *single += rounds == 1;
    }
    return i;
}

/* The body in round `at` of the whole, the first of which is round `from`. */
static const Stmt *in_round(Ctx *c, const Stmt *s, const Idx *at, int64_t from)
{
    const LoopData *loop = &s->u.loop;
    IdxSubst       *sub = subst_new(c->arith, c->scratch);

    if (loop->extent->c0 > 1)
        subst_bind(sub, loop->var, idx_add(c->arith, loop->lo, idx_addc(c->arith, at, -from)));
    else
        subst_bind(sub, loop->var, loop->lo);
    return stmt_subst(c, s->kids[0], sub);
}

static const Stmt *one_loop(Ctx *c, uint32_t n, const Stmt *const *copies)
{
    Arith      *A = c->arith;
    LoopData    loop = copies[0]->u.loop;
    const Stmt *body = NULL;
    int64_t     all = 0, rounds = 0;

    for (uint32_t i = 0; i < n; i++)
        all += copies[i]->u.loop.extent->c0;
    loop.var = atom_var(A, loop.var->name, 0, all - 1);
    loop.lo = idx_const(A, 0);
    loop.extent = idx_const(A, all);

    const Idx *at = idx_atom(A, loop.var);

    for (uint32_t i = n; i-- > 0; all -= rounds) {
        rounds = copies[i]->u.loop.extent->c0;

        const Stmt *s = in_round(c, copies[i], at, all - rounds);
        Pred before = pred_and(A, c->arena, PRED_TRUE, idx_addc(A, idx_mulc(A, at, -1), all - 1));

        body = body ? stmt_if(c, pred_prim(c, before), s, body) : s;
    }
    return stmt_for(c, loop, body, copies[0]->loc);
}

static const Stmt *join_copies(Ctx *c, void *user, const Stmt *was, const Stmt *now)
{
    VEC(const Stmt *) out = {0};
    uint32_t n, single;

    (void)was;
    for (uint32_t i = 0; now->kind == STMT_SEQ && i < now->nkids; i += n) {
        n = cut_copies(user, now->nkids - i, now->kids + i, &single);
        if (single < 2)
            n = 1;
        vec_push(c->arena, &out, n > 1 ? one_loop(c, n, now->kids + i) : now->kids[i]);
    }
    return out.n < now->nkids && now->kind == STMT_SEQ ? stmt_seq(c, out.n, out.at) : now;
}

/* What threads do between two barriers: of the kernel, or of one round of a serial loop. */
typedef struct {
    const Stmt     *s;
    Touch           touch;
    const LoopData *rounds; /* NULL: one phase; else `turn` of the `turns` in each round */
    uint32_t        turn, turns;
} Piece;

typedef VEC(Piece) PieceList;

/* The statements of a sequence, each with its share of parallel loops, joined where threads need
 * not meet between them.  Was anything divided? */
static bool pieces_of(Spmd *x, const Stmt *s, PieceList *out);

/* What s allocates, around all phases instead. */
static const Stmt *peel_allocs(Spmd *x, const Stmt *s)
{
    for (; s->kind == STMT_ALLOC; s = s->kids[0])
        vec_push(x->c->arena, x->around, s->u.buffer);
    return s;
}

static bool undo_allocs(Spmd *x, uint32_t n)
{
    x->around->n = n;
    return false;
}

/* Statements inside of loops of one round, each in loops of its own; false if they are not so. */
static bool units_of(Spmd *x, const Stmt *s, PieceList *out)
{
    Ctx      *c = x->c;
    PieceList in = {0};
    uint32_t  around = x->around->n;
    int64_t   n;
    VEC(const Stmt *) loops = {0};

    for (s = peel_allocs(x, s); s->kind == STMT_FOR && idx_is_const(s->u.loop.extent, &n) && n == 1;
         s = peel_allocs(x, s->kids[0]))
        vec_push(c->arena, &loops, s);
    for (uint32_t i = around; i < x->around->n; i++)
        if (x->around->at[i]->scope == SCOPE_REG)
            return undo_allocs(x, around);
    if (x->round || s->kind != STMT_SEQ || !pieces_of(x, s, &in))
        return undo_allocs(x, around);
    for (uint32_t i = 0; i < in.n; i++) {
        Piece p = in.at[i];

        for (uint32_t k = loops.n; k-- > 0;)
            p.s = stmt_with_kids(c, loops.at[k], &p.s);
        vec_push(c->arena, out, p);
    }
    return true;
}

/* A serial loop in whose rounds threads meet: its statements as pieces; false if that cannot be. */
static bool rounds_of(Spmd *x, const Stmt *s, PieceList *out)
{
    Ctx      *c = x->c;
    PieceList in = {0};
    Spmd      inner = *x;
    uint32_t  around = x->around->n;
    int64_t   n;

    s = peel_allocs(x, s);
    if (x->round || s->kind != STMT_FOR || !idx_is_const(s->u.loop.extent, &n) || n < 2 ||
        n > MAX_ROUNDS)
        return undo_allocs(x, around);
    const Stmt *body = peel_allocs(x, s->kids[0]);
    for (uint32_t i = around; i < x->around->n; i++)
        if (x->around->at[i]->scope == SCOPE_REG) /* registers do not last from phase to phase */
            return undo_allocs(x, around);
    inner.round = s->u.loop.var;
    if (!pieces_of(&inner, body, &in))
        return undo_allocs(x, around);
    for (uint32_t i = 0; i < in.n; i++) {
        Piece p = in.at[i];

        p.rounds = &s->u.loop;
        p.turn = i;
        p.turns = in.n;
        p.touch = touched(c, s);
        vec_push(c->arena, out, p);
    }
    return true;
}

static bool pieces_of(Spmd *x, const Stmt *s, PieceList *out)
{
    Ctx               *c = x->c;
    uint32_t           n = s->kind == STMT_SEQ ? s->nkids : 1;
    const Stmt *const *part = s->kind == STMT_SEQ ? s->kids : &s;
    bool               divided = false, fresh = true; /* fresh: a new phase begins */

    for (uint32_t i = 0; i < n; i++) {
        Piece p = {.touch = touched(c, part[i])};

        if (has_parallel(part[i]) && !(p.s = share(x, part[i])) &&
            (units_of(x, part[i], out) || rounds_of(x, part[i], out))) {
            divided = fresh = true;
            continue;
        }
        divided = divided || p.s;
        if (!p.s) {
            p.s = by_one(x, part[i]);
            for (uint32_t k = 0; k < p.touch.n; k++)
                p.touch.at[k].alone = true;
        }
        if (fresh || conflict(x, &out->at[out->n - 1].touch, &p.touch)) {
            vec_push(c->arena, out, p);
        } else {
            Piece      *last = &out->at[out->n - 1];
            const Stmt *both[2] = {last->s, p.s};

            last->s = stmt_seq(c, 2, both);
            touch_add(c, &last->touch, &p.touch);
        }
        fresh = false;
    }
    return divided;
}

/* from <= phase < to */
static const Prim *in_phases(Ctx *c, const Idx *phase, int64_t from, int64_t to)
{
    if (to == from + 1)
        return prim_eq(c, prim_index(c, DT_I64, phase), prim_int(c, DT_I64, from));
    Pred p = pred_and(c->arith, c->arena, PRED_TRUE, idx_addc(c->arith, phase, -from));

    return pred_prim(
        c, pred_and(c->arith, c->arena, p, idx_sub(c->arith, idx_const(c->arith, to - 1), phase)));
}

static int64_t rounds(const Piece *p)
{
    int64_t n = 1;

    if (p->rounds)
        idx_is_const(p->rounds->extent, &n);
    return n;
}

/* The pieces, each in its phases. */
static const Stmt *by_phase(Ctx *c, const PieceList *all, const Idx *phase)
{
    Arith *A = c->arith;
    VEC(const Stmt *) out = {0};
    int64_t from = 0;

    for (uint32_t i = 0; i < all->n;) {
        const Piece *p = &all->at[i];
        int64_t      to = from + (p->rounds ? p->turns * rounds(p) : 1);

        for (uint32_t turns = p->rounds ? p->turns : 1, k = 0; k < turns; k++, i++, p++) {
            const Stmt *s = p->s;

            if (p->rounds) {
                const Idx *at = idx_addc(A, phase, -from);
                LoopData   once = *p->rounds;

                once.lo = idx_add(A, once.lo, idx_divc(A, at, turns));
                once.extent = idx_const(A, 1);
                s = stmt_for(c, once, s, NO_LOC);
                if (turns > 1)
                    s = stmt_if(c,
                                prim_eq(c, prim_index(c, DT_I64, idx_modc(A, at, turns)),
                                        prim_int(c, DT_I64, k)),
                                s, NULL);
            }
            vec_push(c->arena, &out, stmt_if(c, in_phases(c, phase, from, to), s, NULL));
        }
        from = to;
    }
    return stmt_seq(c, out.n, out.at);
}

/* What is allocated around all phases is shared between the threads: it lies in the arena. */
static const Stmt *share_allocs(Ctx *c, const Stmt *s, uint32_t n, const Buffer *const *alloc,
                                bool phases)
{
    for (uint32_t i = n; i-- > 0;) {
        const Buffer *b = alloc[i];
        Buffer        shared = *b;

        if (phases && b->scope != SCOPE_REG && b->scope != SCOPE_ARENA) {
            shared.scope = SCOPE_ARENA;
            b = buffer_copy(c, alloc[i], shared);
            s = buffer_replace(c, s, alloc[i], b);
        }
        s = stmt_alloc(c, b, s);
    }
    return s;
}

static const Func *spmd_func(Ctx *c, void *user, const Func *f)
{
    BufferList  allocs = {0};
    const Stmt *s = f->body;
    PieceList   all = {0};
    int64_t     nphases = 0;

    (void)user;
    if (f->kind != FUNC_KERNEL || (f->target && f->target->no_threads))
        return func_with_body(c, f, serial(c, s));
    const Atom *tid = atom_var(c->arith, TIR_TID, 0, 1023),
               *nt = atom_var(c->arith, TIR_NT, 1, 1024);
    Spmd x = {c, idx_atom(c->arith, tid), idx_atom(c->arith, nt), NULL, &allocs};

    s = stmt_map(c, s, &(TirMap){&x, join_copies, NULL, NULL, NULL});
    if (!has_parallel(s))
        return func_with_body(c, f, serial(c, s));
    s = peel_allocs(&x, s);
    if (!pieces_of(&x, s, &all))
        return func_with_body(c, f, serial(c, f->body));
    for (uint32_t i = 0; i < all.n; i++)
        nphases += rounds(&all.at[i]);
    uint32_t nparams = f->nparams + 2 + (nphases > 1);
    Param   *params = NEW_ARRAY(c->arena, Param, nparams);
    for (uint32_t i = 0; i < f->nparams; i++)
        params[i] = f->params[i];
    params[f->nparams] = (Param){NULL, tid, false};
    params[f->nparams + 1] = (Param){NULL, nt, false};
    bool several = s->kind == STMT_SEQ && s->nkids > 1;
    s = all.at[0].s;
    if (nphases > 1) {
        const Atom *which = atom_var(c->arith, TIR_PHASE, 0, nphases - 1);

        params[f->nparams + 2] = (Param){NULL, which, false};
        s = by_phase(c, &all, idx_atom(c->arith, which));
    }
    Func g = *f;
    g.nparams = nparams;
    g.params = params;
    g.body = share_allocs(c, serial(c, s), allocs.n, allocs.at, several || nphases > 1);
    return func_new(c, g);
}

const TirModule *spmd(Ctx *c, const TirModule *m)
{
    return tirmod_map(c, m, spmd_func, NULL);
}
