/* What a kernel takes, as its loops say.
 *
 * Computing: a run of statements between loops takes as long as the busiest of what they keep busy,
 * units for vectors, loads or stores; a loop that adds up waits at least for one sum.
 *
 * Reading: accesses to a buffer that differ by a constant are one group, which covers so many
 * bytes. A loop around it covers more, by as many as its variable moves the group.  What a loop's
 * body covers in all either stays in a cache from one round to the next, then the loop brings what
 * it covers once; or it does not, then each round brings its own.
 *
 *     for %t < 8 { for %k < 64 { .. %x[%t*64 + %k] * %w[%k*16 : 16] .. } }
 *         %x covers 256 bytes in the loop over k, 2048 in all; %w 4096 in both: with the rest in
 * L1, 6144 bytes come from beyond
 *
 * What a kernel covers first comes from where it was left: program.c. */
#include "machine/kernel.h"

#include <stdlib.h>
#include <string.h>

enum { NEAR, FAR, CACHES }; /* L1, L2 */

/* Cycles of a number of a function that stays a call, of a division or a root and of each number of
 * one (16 take 10 cycles on Zen 4 and Cascade Lake); shares of a cache that are there for what is
 * read again. */
#define MATH_CALL 20.0
#define DIVISION 4.0
#define DIVISION_LANE 0.625
#define CACHE_SHARE 0.75

typedef struct {
    const Buffer *buffer;
    const Idx    *at;     /* without its constant */
    double        lo, hi; /* cells, from `at` */
    double        bytes;
    bool          stored;
} Group;

typedef VEC(Group) Groups;

/* One execution of a statement. */
typedef struct {
    double cycles;
    double once;         /* ... of what is the same in every round of the loop around */
    double into[CACHES]; /* bytes that come into the cache */
    Groups groups;
} Cost;

typedef struct {
    Ctx             *c;
    Arena           *a;
    const Machine   *m;
    const TirModule *module;
    double           room[CACHES];
    Map             *tiles; /* Cost by Func */
    const Atom      *var;   /* that moves, at `value`; others stay where they begin */
    int64_t          value;
} Walk;

static double larger(double a, double b)
{
    return a > b ? a : b;
}

static double smaller(double a, double b)
{
    return a < b ? a : b;
}

/* ---- what is covered ------------------------------------------------------------------------------ */

static void add_group(Walk *w, Groups *to, Group g)
{
    double cell = (double)dtype_bytes(g.buffer->dtype);

    for (uint32_t i = 0; i < to->n; i++) {
        Group *have = &to->at[i];

        if (have->buffer != g.buffer || have->at != g.at)
            continue;
        have->lo = smaller(have->lo, g.lo);
        have->hi = larger(have->hi, g.hi);
        have->bytes = smaller(have->bytes + g.bytes, (have->hi - have->lo + 1) * cell);
        have->stored |= g.stored;
        return;
    }
    vec_push(w->a, to, g);
}

static double group_bytes(const Walk *w, const Group *g)
{
    int64_t cells, origin;

    return buffer_size(w->c, g->buffer, &cells, &origin)
               ? smaller(g->bytes, (double)(cells * dtype_bytes(g->buffer->dtype)))
               : g->bytes;
}

/* What is stored goes back as well. */
static double covered(const Walk *w, const Groups *groups)
{
    double sum = 0;

    for (uint32_t i = 0; i < groups->n; i++)
        sum += (groups->at[i].stored ? 2 : 1) * group_bytes(w, &groups->at[i]);
    return sum;
}

static int64_t value_of(void *user, const Atom *a)
{
    const Walk *w = user;

    return a == w->var ? w->value : a->lo;
}

static int64_t eval(Walk *w, const Idx *x, const Atom *var, int64_t value)
{
    w->var = var;
    w->value = value;
    return idx_eval(x, &(IdxEnv){.var = value_of, .user = w});
}

static int by_value(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

    return x < y ? -1 : x > y;
}

/* Places at which n rounds of a loop find a group, and how far these lie apart in all. */
static double places(Walk *w, const Idx *at, const LoopData *loop, int64_t lo, int64_t n,
                     double *range)
{
    enum { LOOKED_AT = 256 };
    int64_t value[LOOKED_AT], k = n < LOOKED_AT ? n : LOOKED_AT, different = 1;

    *range = 0;
    if (!idx_uses(at, loop->var) || n < 2)
        return 1;
    for (int64_t i = 0; i < k; i++)
        value[i] = eval(w, at, loop->var, lo + i);
    qsort(value, (size_t)k, sizeof *value, by_value);
    for (int64_t i = 1; i < k; i++)
        different += value[i] != value[i - 1];
    double more = (double)n / (double)k;
    *range = (double)(value[k - 1] - value[0]) * ((double)(n - 1) / (double)(k - 1));
    return (double)different * more;
}

/* ---- statements between loops ------------------------------------------------------------------------ */

/* The loop around them. */
typedef struct {
    Arena      *a;
    const Atom *var;
    bool        calls; /* others, which may store anything */
    VEC(const Buffer *) stored;
} Loop;

typedef struct {
    Walk       *w;
    Map        *seen; /* equal prims are one, and computed once */
    const Loop *loop; /* around; NULL: none */
    double      units, loads, stores, others, divisions;
    double      once;
    bool        sums;
    Groups      groups;
} Run;

static bool in_memory(const Buffer *b)
{
    return b->scope != SCOPE_REG;
}

static void touch(Run *r, const Buffer *b, uint32_t n, const Idx *const *index, uint32_t lanes,
                  bool stored)
{
    const Idx *at = n ? index[n - 1] : idx_const(r->w->c->arith, 0);
    Group      g = {.buffer = b,
                    .at = idx_addc(r->w->c->arith, at, -at->c0),
                    .lo = (double)at->c0,
                    .hi = (double)at->c0 + lanes - 1,
                    .bytes = (double)(lanes * dtype_bytes(b->dtype)),
                    .stored = stored};

    add_group(r->w, &r->groups, g);
}

/* Vectors as wide as the units take a slot of a unit; wider ones as many more. */
static double slots(const Run *r, DType t)
{
    return t.lanes < 2
               ? 0.5
               : 1 / fma_rate(r->w->m, t.lanes * t.bits / 32 > 0 ? t.lanes * t.bits / 32 : 1);
}

static double division(DType t)
{
    return larger(DIVISION, DIVISION_LANE * t.lanes);
}

static bool index_moves(const Run *r, const Idx *x)
{
    return idx_uses(x, r->loop->var);
}

/* Is it the same in all rounds of the loop around?  Kids are seen first. */
static bool is_fixed(const Run *r, const Prim *p)
{
    if (!r->loop || r->loop->calls)
        return false;
    if (p->kind == PRIM_LOAD) {
        for (uint32_t i = 0; i < r->loop->stored.n; i++)
            if (r->loop->stored.at[i] == p->u.load.buffer)
                return false;
        for (uint32_t i = 0; i < p->u.load.n; i++)
            if (index_moves(r, p->u.load.index[i]))
                return false;
    }
    if ((p->kind == PRIM_INDEX || p->kind == PRIM_RAMP || p->kind == PRIM_CASE) &&
        index_moves(r, p->u.index))
        return false;
    for (uint32_t i = 0; i < p->nkids; i++)
        if (map_get(r->seen, PTR_KEY(p->kids[i])) != r->loop)
            return false;
    return true;
}

static void add_cycles(Run *r, double *to, double cycles, bool fixed)
{
    *(fixed ? &r->once : to) += cycles;
}

static void add_math(Run *r, const Prim *p, bool fixed)
{
    switch (p->u.math) {
    case MATH_ABS:
    case MATH_FLOOR:
    case MATH_CEIL:
    case MATH_TRUNC:
    case MATH_ROUND:
    case MATH_COPYSIGN: r->units += slots(r, p->dtype); return;
    case MATH_SQRT: add_cycles(r, &r->divisions, division(p->dtype), fixed); return;
    case MATH_EXP:
    case MATH_LOG:
    case MATH_TANH:
    case MATH_ERF:
    case MATH_SIGMOID:
    case MATH_POW:
    case MATH_FMOD:
    case MATH_SIN:
    case MATH_COS:
    case MATH_TAN:
    case MATH_ASIN:
    case MATH_ACOS:
    case MATH_ATAN:
    case MATH_ATAN2:
    case MATH_SINH:
    case MATH_COSH:
    case MATH_ASINH:
    case MATH_ACOSH:
    case MATH_ATANH: add_cycles(r, &r->others, MATH_CALL * p->dtype.lanes, fixed); return;
    case MATH_COUNT: break;
    }
}

static void add_prim(void *user, const Prim *p)
{
    Run *r = user;

    if (map_get(r->seen, PTR_KEY(p)))
        return;
    bool fixed = is_fixed(r, p);
    map_put(r->seen, PTR_KEY(p), fixed ? (void *)r->loop : r);
    switch (p->kind) {
    case PRIM_LOAD:
        if (in_memory(p->u.load.buffer)) {
            r->loads++;
            touch(r, p->u.load.buffer, p->u.load.n, p->u.load.index, p->dtype.lanes, false);
        }
        return;
    case PRIM_INT:
    case PRIM_FLOAT:
    case PRIM_INDEX:
    case PRIM_RAMP:
    case PRIM_SPLAT:
    case PRIM_ADDR:
    case PRIM_SYMBOL:
    case PRIM_SIZEOF: return;
    case PRIM_FMA:
    case PRIM_INTRIN:
        r->sums = true;
        r->units += slots(r, p->dtype);
        return;
    case PRIM_DIV: add_cycles(r, &r->divisions, division(p->dtype), fixed); return;
    case PRIM_MATH: add_math(r, p, fixed); return;
    case PRIM_VEC: r->others += p->nkids; return;
    case PRIM_ADD:
    case PRIM_SUB:
    case PRIM_MUL:
    case PRIM_REM:
    case PRIM_MIN:
    case PRIM_MAX:
    case PRIM_MINNUM:
    case PRIM_MAXNUM:
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
    case PRIM_SHUFFLE:
    case PRIM_CASE: r->units += slots(r, p->dtype); return;
    }
}

static void add_store(Run *r, const Stmt *s)
{
    const StoreData *x = &s->u.store;

    prim_visit(x->value, &(TirVisit){.user = r, .prim = add_prim});
    if (in_memory(x->buffer)) {
        r->stores++;
        touch(r, x->buffer, x->n, x->index, x->value->dtype.lanes, true);
    }
}

static Cost run_cost(Walk *w, const Run *r)
{
    double busy = larger(r->units, larger(r->loads / w->m->loads, r->stores));
    Cost   cost = {
          .cycles = larger(busy, r->divisions) + r->others, .once = r->once, .groups = r->groups};

    for (int i = 0; i < CACHES; i++)
        cost.into[i] = covered(w, &r->groups);
    return cost;
}

/* ---- nests ------------------------------------------------------------------------------------------- */

static Cost stmt_cost(Walk *w, const Stmt *s);

/* One after the other. */
static void follow(Walk *w, Cost *first, const Cost *then)
{
    double parts[CACHES];

    first->cycles += then->cycles;
    first->once += then->once;
    for (int i = 0; i < CACHES; i++)
        parts[i] = first->into[i] + then->into[i];
    for (uint32_t i = 0; i < then->groups.n; i++)
        add_group(w, &first->groups, then->groups.at[i]);
    double all = covered(w, &first->groups);
    for (int i = 0; i < CACHES; i++)
        first->into[i] = all <= w->room[i] ? all : parts[i];
}

static Run run_new(Walk *w, const Loop *around)
{
    return (Run){.w = w, .seen = map_new(w->a), .loop = around};
}

static Cost seq_cost(Walk *w, const Stmt *s, const Loop *around, bool *sums)
{
    Cost cost = {0};
    Run  run = run_new(w, around);

    for (uint32_t i = 0; i <= s->nkids; i++) {
        const Stmt *kid = i < s->nkids ? s->kids[i] : NULL;

        if (kid && kid->kind == STMT_STORE) {
            add_store(&run, kid);
            continue;
        }
        Cost part = run_cost(w, &run);
        *sums |= run.sums;
        follow(w, &cost, &part);
        run = run_new(w, around);
        if (kid) {
            part = stmt_cost(w, kid);
            follow(w, &cost, &part);
        }
    }
    return cost;
}

static bool see_stored(void *user, const Stmt *s)
{
    Loop *l = user;

    l->calls |= s->kind == STMT_CALL;
    if (s->kind == STMT_STORE)
        vec_push(l->a, &l->stored, s->u.store.buffer);
    return true;
}

static Cost loop_cost(Walk *w, const Stmt *s)
{
    const LoopData *loop = &s->u.loop;
    int64_t         n = eval(w, loop->extent, NULL, 0), lo = eval(w, loop->lo, NULL, 0);
    bool            sums = false;
    const Stmt     *in = s->kids[0];
    Loop            around = {.a = w->a, .var = loop->var};
    stmt_visit(in, &(TirVisit){.user = &around, .enter = see_stored});
    Cost body = in->kind == STMT_SEQ || in->kind == STMT_STORE
                    ? seq_cost(w, in->kind == STMT_SEQ ? in : s, &around, &sums)
                    : stmt_cost(w, in);
    Cost cost = {0};

    if (n < 1)
        return cost;
    if (sums)
        body.cycles = larger(body.cycles, w->m->latency);
    cost.cycles = (double)n * larger(body.cycles, 1) + body.once + w->m->loop_end;
    double once = covered(w, &body.groups);
    for (uint32_t i = 0; i < body.groups.n; i++) {
        Group  g = body.groups.at[i];
        double range, k = places(w, g.at, loop, lo, n, &range);

        g.lo += eval(w, g.at, loop->var, lo) - eval(w, g.at, NULL, 0);
        g.hi = g.lo + (body.groups.at[i].hi - body.groups.at[i].lo) + range;
        g.bytes = smaller(g.bytes * k, (g.hi - g.lo + 1) * (double)dtype_bytes(g.buffer->dtype));
        add_group(w, &cost.groups, g);
    }
    double all = covered(w, &cost.groups);
    for (int i = 0; i < CACHES; i++)
        cost.into[i] = once <= w->room[i] ? all : (double)n * body.into[i];
    return cost;
}

/* A tile's accesses to its parameters are the caller's to what it gives. */
static Cost call_cost(Walk *w, const Stmt *s)
{
    const StmtCall *call = &s->u.call;
    const Func     *f = tirmod_find(w->module, call->callee);
    Cost           *tile, cost = {0};

    if (!f)
        return cost;
    if (!(tile = map_get(w->tiles, PTR_KEY(f)))) {
        tile = NEW(w->a, Cost);
        *tile = stmt_cost(w, f->body);
        map_put(w->tiles, PTR_KEY(f), tile);
    }
    cost = *tile;
    cost.cycles += w->m->call;
    cost.groups = (Groups){0};
    for (uint32_t i = 0; i < tile->groups.n; i++) {
        Group g = tile->groups.at[i];

        for (uint32_t k = 0; k < f->nparams && k < call->nargs; k++)
            if (f->params[k].buffer == g.buffer && call->args[k].buffer) {
                const Idx *at = idx_divc(w->c->arith, call->args[k].offset,
                                         (int64_t)dtype_bytes(g.buffer->dtype));
                g.buffer = call->args[k].buffer;
                g.at = idx_addc(w->c->arith, at, -at->c0);
                g.lo += (double)at->c0, g.hi += (double)at->c0;
                break;
            }
        add_group(w, &cost.groups, g);
    }
    return cost;
}

static Cost stmt_cost(Walk *w, const Stmt *s)
{
    Cost cost = {0}, part;
    Run  run = run_new(w, NULL);
    bool sums = false;

    switch (s->kind) {
    case STMT_SEQ: return seq_cost(w, s, NULL, &sums);
    case STMT_FOR: return loop_cost(w, s);
    case STMT_CALL: return call_cost(w, s);
    case STMT_STORE: add_store(&run, s); return run_cost(w, &run);
    case STMT_IF: /* of phases, both arms run once */
    case STMT_WHILE:
    case STMT_ALLOC:
    case STMT_BLOCK:
    case STMT_REGION:
    case STMT_VIEW:
    case STMT_SWITCH:
        for (uint32_t i = 0; i < s->nkids; i++) {
            part = stmt_cost(w, s->kids[i]);
            follow(w, &cost, &part);
        }
        return cost;
    case STMT_PREFETCH:
    case STMT_BARRIER:
    case STMT_AWAIT:
    case STMT_LAUNCH:
    case STMT_COPY:
    case STMT_INVOKE:
    case STMT_RETURN:
    case STMT_FAIL: break;
    }
    return cost;
}

/* ---- the whole --------------------------------------------------------------------------------------- */

KernelWork kernel_work(Ctx *c, const Machine *at, const TirModule *m, const Func *f)
{
    Walk       w = {.c = c,
                    .a = c->arena,
                    .m = at,
                    .module = m,
                    .room = {CACHE_SHARE * (double)at->l1, CACHE_SHARE * (double)at->l2},
                    .tiles = map_new(c->arena)};
    Cost       cost = stmt_cost(&w, f->body);
    double     first = 0;
    KernelWork k = {.cycles = cost.cycles + at->start_cycles,
                    .read = NEW_ARRAY(c->arena, double, f->nparams + 1),
                    .stored = NEW_ARRAY(c->arena, double, f->nparams + 1)};

    for (uint32_t i = 0; i < cost.groups.n; i++) {
        const Group *g = &cost.groups.at[i];
        uint32_t     p = 0;

        while (p < f->nparams && f->params[p].buffer != g->buffer)
            p++;
        double *bytes = g->stored ? &k.stored[p] : &k.read[p];
        *bytes += group_bytes(&w, g);
        first += covered(&w, &(Groups){.n = 1, .at = &cost.groups.at[i]});
    }
    k.near = cost.into[NEAR];
    k.again = larger(cost.into[FAR] - first, 0);
    return k;
}
