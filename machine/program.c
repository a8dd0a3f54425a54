/* What the kernels of a program take, one after the other.
 *
 * What a kernel touches first comes from wherever it was left: from L2 if little was touched since,
 * from L3, from memory.  Each call of the host program is a moment.  Memory is cut into pieces,
 * each with the last moment that touched it; a piece lies behind what later moments touched, each
 * byte counted once.  The program is run twice, since its end is what lies before its beginning.
 *
 *     @f(.., %arena + (0))                 256 KiB are stored
 *     @g(%arena + (0), %weights, ..)       .. and found behind the rest of what @f touched */
#include "machine/kernel.h"

typedef struct {
    const Buffer *memory;
    int64_t       lo, hi; /* bytes */
    uint32_t      moment;
} Piece;

typedef struct {
    Ctx             *c;
    const Machine   *m;
    const TirModule *module;
    VEC(Piece) pieces;
    VEC(double) touched; /* bytes, by moment */
    VEC(Time) times;
    Map *works; /* KernelWork, by Func */
    bool last;  /* this time counts */
} Run;

static const KernelWork *work_of(Run *r, const Func *f)
{
    KernelWork *k = map_get(r->works, PTR_KEY(f));

    if (!k) {
        k = NEW(r->c->arena, KernelWork);
        *k = kernel_work(r->c, r->m, r->module, f);
        map_put(r->works, PTR_KEY(f), k);
    }
    return k;
}

/* ---- where it was left --------------------------------------------------------------------------- */

/* Bytes that were touched after that moment. */
static double touched_since(const Run *r, uint32_t moment)
{
    double sum = 0;

    for (uint32_t i = 0; i < r->pieces.n; i++)
        if (r->pieces.at[i].moment > moment)
            sum += (double)(r->pieces.at[i].hi - r->pieces.at[i].lo);
    return sum;
}

/* What of a piece is in the caches while a kernel that touches `now` bytes walks through it, in the
 * order in which an earlier one did that touched `then`. */
static void add_shares(const Run *r, double bytes, double since, double then, double now,
                       double *level)
{
    enum { STEPS = 8 };

    for (int i = 0; i < STEPS; i++) {
        double at = (i + 0.5) / STEPS, behind = since + (1 - at) * then + at * now, share[LEVELS];

        cache_shares(r->m, behind, share);
        for (int l = 0; l < LEVELS; l++)
            level[l] += bytes / STEPS * share[l];
    }
}

/* Shares of the bytes from lo to hi by the level that they are in; what nobody touched yet is in
 * memory. */
static void find(const Run *r, const Buffer *memory, int64_t lo, int64_t hi, double now,
                 double *level)
{
    double all = (double)(hi - lo), left = all;

    for (int i = 0; i < LEVELS; i++)
        level[i] = 0;
    for (uint32_t i = 0; i < r->pieces.n; i++) {
        const Piece *p = &r->pieces.at[i];
        int64_t      from = p->lo > lo ? p->lo : lo, to = p->hi < hi ? p->hi : hi;

        if (p->memory != memory || from >= to)
            continue;
        add_shares(r, (double)(to - from) / all, touched_since(r, p->moment),
                   r->touched.at[p->moment], now, level);
        left -= (double)(to - from);
    }
    level[LEVEL_MEMORY] += left / all;
}

/* From now on these bytes were touched at this moment. */
static void touch(Run *r, const Buffer *memory, int64_t lo, int64_t hi, uint32_t moment)
{
    Arena *a = r->c->arena;

    for (uint32_t i = 0; i < r->pieces.n;) {
        Piece p = r->pieces.at[i];

        if (p.memory != memory || p.hi <= lo || p.lo >= hi) {
            i++;
            continue;
        }
        r->pieces.at[i] = r->pieces.at[--r->pieces.n];
        if (p.lo < lo)
            vec_push(a, &r->pieces, ((Piece){memory, p.lo, lo, p.moment}));
        if (p.hi > hi)
            vec_push(a, &r->pieces, ((Piece){memory, hi, p.hi, p.moment}));
    }
    vec_push(a, &r->pieces, ((Piece){memory, lo, hi, moment}));
}

/* ---- calls --------------------------------------------------------------------------------------- */

static int64_t first_value(void *user, const Atom *a)
{
    (void)user;
    return a->lo;
}

/* The bytes of an operand. */
static bool operand(Run *r, const Param *p, const Arg *arg, int64_t *lo, int64_t *hi)
{
    int64_t cells, origin, cell;

    if (!p->buffer || !arg->buffer || !buffer_size(r->c, p->buffer, &cells, &origin) || cells < 1)
        return false;
    cell = (int64_t)dtype_bytes(p->buffer->dtype);
    *lo = idx_eval(arg->offset, &(IdxEnv){.var = first_value}) - origin * cell;
    *hi = *lo + cells * cell;
    return true;
}

static Time level_bytes(const Machine *m, Level level, double read, double stored)
{
    Time t = {0};

    t.traffic[level] = read / level_rate(m, level) + stored / level_store_rate(m, level);
    return t;
}

/* What was not touched for so long counts as never touched, or long programs would take their
 * length squared. */
static void forget(Run *r)
{
    enum { LONG_AGO = 4096 };

    for (uint32_t i = r->pieces.n; i-- > 0;)
        if (r->touched.n > LONG_AGO && r->pieces.at[i].moment < r->touched.n - LONG_AGO)
            r->pieces.at[i] = r->pieces.at[--r->pieces.n];
}

static void run_call(Run *r, const Stmt *s)
{
    const StmtCall *call = &s->u.call;
    const Func     *f = tirmod_find(r->module, call->callee);
    Time            t = {0};
    uint32_t        moment = r->touched.n, phase_at;
    double          now = 0;
    int64_t         lo, hi, phase = 0;

    if (!f || (func_scalar(f, TIR_PHASE, &phase_at) &&
               (!idx_is_const(call->args[phase_at].scalar, &phase) || phase > 0))) {
        if (r->last)
            vec_push(r->c->arena, &r->times, t);
        return;
    }
    const KernelWork *k = work_of(r, f);
    for (uint32_t i = 0; i <= f->nparams; i++)
        now += k->read[i] + k->stored[i];
    t = time_compute(k->cycles);
    t.traffic[LEVEL_L2] = k->near / r->m->l2_rate;
    t = time_beside(t, level_bytes(r->m, LEVEL_L3, k->again, 0));
    for (uint32_t i = 0; i < f->nparams && i < call->nargs; i++) {
        double level[LEVELS];

        if (!operand(r, &f->params[i], &call->args[i], &lo, &hi))
            continue;
        find(r, call->args[i].buffer, lo, hi, now, level);
        for (int l = LEVEL_L3; l < LEVELS; l++)
            t = time_beside(t,
                            level_bytes(r->m, l, k->read[i] * level[l], k->stored[i] * level[l]));
    }
    vec_push(r->c->arena, &r->touched, now);
    for (uint32_t i = 0; i < f->nparams && i < call->nargs; i++)
        if (operand(r, &f->params[i], &call->args[i], &lo, &hi))
            touch(r, call->args[i].buffer, lo, hi, moment);
    forget(r);
    if (r->last)
        vec_push(r->c->arena, &r->times, t);
}

/* Of a loop the last round counts. */
static void run_stmt(Run *r, const Stmt *s)
{
    bool last = r->last;

    if (s->kind == STMT_CALL) {
        run_call(r, s);
        return;
    }
    for (int round = s->kind == STMT_FOR ? 0 : 1; round < 2; round++) {
        r->last = last && round == 1;
        for (uint32_t i = 0; i < s->nkids; i++)
            run_stmt(r, s->kids[i]);
    }
}

const Time *program_times(Ctx *c, const Machine *at, const TirModule *m, const Func *host,
                          uint32_t *n)
{
    Run r = {.c = c, .m = at, .module = m, .works = map_new(c->arena)};

    run_stmt(&r, host->body);
    r.last = true;
    run_stmt(&r, host->body);
    *n = r.times.n;
    return r.times.at;
}
