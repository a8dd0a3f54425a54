/* How many cells a thread has, where each is a formula of its own or a sum of its own.
 *
 *     %pool[c, y, x] = max[kh<3, kw<3] %pad[c, 2*y+kh, x]
 *
 * Cells one above the other read rows of the operand in common: four of them 9, where each alone
 * reads 3; channels of a result read the same cells of an image.  Cells side by side come and go at
 * once, four in an access, where they lie on a border (backends/common/wide.c).  So a thread has
 * `rows` cells of one loop times `cells` of all loops as one, and both divide what there is: no
 * cell is tested.  What that saves is counted: indices of all loads of a thread are made as they
 * will be, equal ones are one load, and those side by side one access. */
#include "schedules/gpu/gpu.h"

#include <math.h>

enum { MAX_LOADS = 16, MOST_CELLS = 16, MOST_TAPS = 32, MOST_INDICES = 1024 };

typedef struct {
    const LoadData *load;
    const Idx      *at;     /* where in memory, over the block's iterators */
    bool            alone;  /* under a condition of its own: never wide */
    bool            armed;  /* in an arm, which its place chooses: no neighbour's is the same */
    bool            chosen; /* by conditions that may be those of its neighbours, too */
    const Prim     *only;   /* it is made where that holds; NULL: or who knows */
    bool            either; /* .. and a number stands there where it does not, so cells that one
                             * condition is for come at once (backends/common/loads.c) */
} Read;

typedef struct {
    Sched           *s;
    Machine          m;
    const BlockData *b;
    uint32_t         last;         /* the iterator whose cells lie side by side */
    int64_t          total;        /* cells */
    int64_t          taps, rounds; /* numbers of a sum that are written out, so many times */
    uint32_t         work;         /* operations of a number */
    int64_t          written;      /* .. in all arms of its formula */
    uint32_t         nreads, nconds;
    Read             read[MAX_LOADS];
    const Prim      *cond[MAX_LOADS]; /* which all of a cell is chosen by */
    const Buffer    *result;
    const Idx       *store; /* where in it */
    int64_t          store_bytes;
    bool             many; /* more loads than there is room for */
} Kernel;

static int64_t extent_of(const Atom *v)
{
    return v->hi - v->lo + 1;
}

/* ---- what a cell is made of ----------------------------------------------------------------------- */

static void find_load(void *user, const Prim *p)
{
    bool *found = user;

    *found = *found || p->kind == PRIM_LOAD;
}

static bool loads(const Prim *p)
{
    bool found = false;

    prim_visit(p, &(TirVisit){.user = &found, .prim = find_load});
    return found;
}

/* What p is computed under; `alone`: if that is not for all of a cell. */
typedef struct {
    bool        alone, armed;
    const Prim *only;
    bool        either;
} Under;

static bool is_number(const Prim *p)
{
    return p->kind == PRIM_INT || p->kind == PRIM_FLOAT;
}

static void find_reads(Kernel *k, const Prim *p, Under under, Map *seen)
{
    const LoadData *l = &p->u.load;
    bool            chooses = p->kind == PRIM_SELECT, arms = p->kind == PRIM_CASE;

    if (map_get(seen, p->id))
        return;
    map_put(seen, p->id, k);
    if (p->kind == PRIM_LOAD && l->n && l->buffer != k->result) {
        k->many = k->many || k->nreads == MAX_LOADS;
        if (k->many)
            return;
        k->read[k->nreads++] = (Read){.load = l,
                                      .at = flat_index(k->s, l),
                                      .alone = under.alone,
                                      .armed = under.armed,
                                      .chosen = k->nconds > 0,
                                      .only = under.only,
                                      .either = under.either};
    } else if (p->kind != PRIM_INT && p->kind != PRIM_FLOAT) {
        k->work++;
    }
    for (uint32_t i = 0; i < p->nkids; i++) {
        bool  first = chooses && i == 1, asks = chooses && !i && !loads(p->kids[0]);
        Under kid = {under.alone || (chooses && i) || arms, under.armed || arms,
                     first ? p->kids[0] : under.only,
                     first && !under.alone && p->kids[1]->kind == PRIM_LOAD &&
                         is_number(p->kids[2])};
        if (!asks) /* conditions of neighbours have much in common */
            find_reads(k, p->kids[i], kid, seen);
    }
}

/* A concatenation: one condition after the other chooses whose cell it is. */
static void find_arms(Kernel *k, const Prim *p, Map *seen)
{
    while (p->kind == PRIM_SELECT && !loads(p->kids[0]) && k->nconds < MAX_LOADS) {
        k->cond[k->nconds++] = p->kids[0];
        k->work++;
        find_reads(k, p->kids[1], (Under){.alone = p->kids[1]->kind == PRIM_SELECT}, seen);
        p = p->kids[2];
    }
    find_reads(k, p, (Under){0}, seen);
}

static bool find_kernel(Sched *s, const char *block, Kernel *k)
{
    const Stmt      *b = sched_block(s, block), *store = b->kids[b->nkids - 1];
    const BlockData *d = &b->u.block;

    *k = (Kernel){.s = s, .m = machine_of(s->target), .b = d, .total = 1, .taps = 1, .rounds = 1};
    if (d->opaque || d->nseq || store->kind != STMT_STORE)
        return false;
    for (uint32_t i = 0; i < d->nspatial; i++)
        if (d->iter[i]->below || d->iter[i]->lo ||
            !checked_mul(k->total, extent_of(d->iter[i]), &k->total))
            return false;
    for (uint32_t i = d->nspatial + d->nreduce; i-- > d->nspatial;) {
        int64_t n = extent_of(d->iter[i]);
        if (d->iter[i]->below || d->iter[i]->lo)
            return false;
        if (k->rounds == 1 && n <= MOST_TAPS / k->taps)
            k->taps *= n;
        else if (!checked_mul(k->rounds, n, &k->rounds))
            return false;
    }
    for (k->last = d->nspatial; k->last && extent_of(d->iter[k->last - 1]) < 2;)
        k->last--;
    const StoreData *to = &store->u.store;
    k->result = to->buffer;
    k->store = flat_index(s, &(LoadData){.buffer = to->buffer, .n = to->n, .index = to->index});
    k->store_bytes = dtype_bytes(to->buffer->dtype);
    k->written = written_operations(s, block);
    find_arms(k, to->value, map_new(s->c->scratch));
    return !k->many && k->last-- > 0;
}

/* ---- what a thread of so many cells does ---------------------------------------------------------- */

/* Thread %o has cells cells*o .. of all loops as one, in which rows are counted by so many. */
typedef struct {
    const Kernel *k;
    uint32_t      along; /* the iterator of rows */
    int64_t       rows, cells;
    const Atom   *o;
    bool          together; /* neighbours are chosen by one condition */
    Map          *seen;     /* index -> there is a load of it */
    int64_t       accesses; /* instructions of them */
    double        lines;    /* bytes that they take of the first cache's */
} Walk;

static IdxSubst *cell_of(const Walk *w, int64_t row, int64_t cell, int64_t tap)
{
    const Kernel *k = w->k;
    Arith        *A = k->s->c->arith;
    IdxSubst     *to = subst_new(A, k->s->c->scratch);
    const Idx    *f = idx_addc(A, idx_mulc(A, idx_atom(A, w->o), w->cells), cell);

    for (uint32_t i = k->b->nspatial; i-- > 0;) {
        const Atom *v = k->b->iter[i];
        int64_t     n = i == w->along ? extent_of(v) / w->rows : extent_of(v);
        const Idx  *at = idx_modc(A, f, n);
        if (i == w->along)
            at = idx_addc(A, idx_mulc(A, at, w->rows), row);
        subst_bind(to, v, at);
        f = idx_divc(A, f, n);
    }
    for (uint32_t i = k->b->nspatial + k->b->nreduce; i-- > k->b->nspatial;) {
        const Atom *v = k->b->iter[i];
        subst_bind(to, v, idx_const(A, tap % extent_of(v)));
        tap /= extent_of(v);
    }
    return to;
}

static int64_t at_thread(void *user, const Atom *a)
{
    return a->kind == ATOM_LOAD ? a->lo : *(const int64_t *)user;
}

/* Bytes of lines that a thread's access takes: as far apart as those of neighbouring threads are,
 * its own at least. */
static double line_share(const Machine *m, const Idx *x, int64_t bytes, int64_t lanes)
{
    int64_t sector = limit_gpu_sector(m), one = 1, zero = 0, step;

    if (idx_reads_memory(x))
        return (double)sector;
    step = idx_eval(x, &(IdxEnv){.var = at_thread, .user = &one}) -
           idx_eval(x, &(IdxEnv){.var = at_thread, .user = &zero});
    step = step < 0 ? -step : step;
    if (step < lanes && step)
        step = lanes;
    return fmin((double)(step * bytes), fmax((double)sector, (double)(lanes * bytes)));
}

/* Parts of so many bytes that the first threads load or store cells of, beside those seen. */
static int64_t parts_of(const Idx *x, int64_t bytes, int64_t part, int64_t threads, Map *seen)
{
    int64_t n = 0;

    for (int64_t o = 0; o < threads; o++) {
        int64_t of = idx_eval(x, &(IdxEnv){.var = at_thread, .user = &o}) * bytes / part;
        n += !map_get(seen, (uint64_t)of);
        map_put(seen, (uint64_t)of, seen);
    }
    return n;
}

/* Bytes of lines that a thread's access takes where its neighbour's is apart: each line is found
 * for itself, but a warp may have few, as of cells that threads further on have. */
static double line_parts(const Walk *w, const Idx *x, int64_t bytes)
{
    const Kernel *k = w->k;
    int64_t       all = k->total / (w->rows * w->cells), line = limit_gpu_line(&k->m);
    int64_t       threads = all < k->m.warp ? all : k->m.warp;

    return (double)(line * parts_of(x, bytes, line, threads, map_new(k->s->c->scratch))) /
           (double)threads;
}

static void access(Walk *w, const Idx *x, int64_t bytes, int64_t lanes, bool asks)
{
    const Machine *m = &w->k->m;
    double         share = line_share(m, x, bytes, lanes);

    w->accesses += asks ? 1 + limit_gpu_asked(m) : 1;
    if (!w->k->b->nreduce && !idx_reads_memory(x) && lanes * bytes < limit_gpu_sector(m) &&
        share >= (double)limit_gpu_sector(m))
        share = line_parts(w, x, bytes);
    w->lines += share;
}

/* Cells at .. side by side that one access takes; 1: it takes one. */
static int64_t run_of(const Walk *w, const Idx *const *at, int64_t left, int64_t bytes)
{
    Arith  *A = w->k->s->c->arith;
    int64_t lanes = device_lanes(&w->k->m, bytes), rest;

    if (lanes > left || !idx_is_const(idx_modc(A, at[0], lanes), &rest) || rest)
        return 1;
    for (int64_t i = 1; i < lanes; i++)
        if (at[i] != idx_addc(A, at[0], i))
            return 1;
    return lanes;
}

/* May neighbouring cells' loads be one access? */
static bool may_join(const Walk *w, const Read *r)
{
    if (r->alone)
        return r->either && w->k->b->nreduce;
    return !r->chosen || w->together;
}

/* Loads of neighbouring cells, of one number of the sum; where each is made. */
static void walk_cells(Walk *w, const Read *r, const Idx *const *at, const Prim *const *only)
{
    int64_t bytes = dtype_bytes(r->load->buffer->dtype), n;

    for (int64_t i = 0; i < w->cells; i += n) {
        n = 1;
        if (!at[i])
            continue;
        n = may_join(w, r) ? run_of(w, at + i, w->cells - i, bytes) : 1;
        for (int64_t j = 1; j < n; j++)
            if (n > 1 && only[i + j] != only[i])
                n = 1;
        if (r->armed || !map_get(w->seen, PTR_KEY(at[i])))
            access(w, at[i], bytes, n, r->alone);
        for (int64_t j = 0; j < n; j++)
            map_put(w->seen, PTR_KEY(at[i + j]), w);
    }
}

static bool are_together(const Walk *w)
{
    Ctx *c = w->k->s->c;

    for (uint32_t n = 0; n < w->k->nconds; n++)
        for (int64_t row = 0; row < w->rows; row++) {
            const Prim *first = prim_subst(c, w->k->cond[n], cell_of(w, row, 0, 0));
            for (int64_t i = 1; i < w->cells; i++)
                if (prim_subst(c, w->k->cond[n], cell_of(w, row, i, 0)) != first)
                    return false;
        }
    return true;
}

static int64_t tensors_of(const Kernel *k)
{
    int64_t n = 0;

    for (uint32_t i = 0, j; i < k->nreads; i++) {
        for (j = 0; j < i && k->read[j].load->buffer != k->read[i].load->buffer;)
            j++;
        n += j == i;
    }
    return n;
}

/* Where a cell's load lies, and what it is made under; NULL: it makes none. */
static const Idx *load_at(const Walk *w, const Read *r, IdxSubst *cell, const Prim **only)
{
    *only = r->only ? prim_subst(w->k->s->c, r->only, cell) : NULL;
    return *only && (*only)->kind == PRIM_INT && !(*only)->u.i ? NULL : idx_subst(cell, r->at);
}

/* Bytes of sectors that a block's threads load of a tensor, for each of them: what they leave of a
 * sector the next block may load again. */
static double sectors_of(const Walk *w, const Read *r)
{
    const Kernel *k = w->k;
    Map          *seen = map_new(k->s->c->scratch);
    int64_t       sector = limit_gpu_sector(&k->m), bytes = dtype_bytes(r->load->buffer->dtype);
    int64_t       threads = k->total / (w->rows * w->cells), n = 0;
    const Prim   *only;

    if (k->b->nreduce || r->armed || idx_reads_memory(r->at))
        return 0;
    threads = threads < limit_gpu_threads(&k->m) ? threads : limit_gpu_threads(&k->m);
    for (int64_t row = 0; row < w->rows; row++)
        for (int64_t i = 0; i < w->cells; i++) {
            const Idx *at = load_at(w, r, cell_of(w, row, i, 0), &only);
            n += at ? parts_of(at, bytes, sector, threads, seen) : 0;
        }
    return (double)(n * sector) / (double)threads;
}

static DeviceThread thread_of(const Kernel *k, uint32_t along, int64_t rows, int64_t cells)
{
    Ctx        *c = k->s->c;
    Walk        w = {.k = k, .along = along, .rows = rows, .cells = cells};
    int64_t     all = rows * cells, n;
    double      moved = (double)(k->store_bytes * all), once = moved;
    const Idx  *at[MOST_CELLS];
    const Prim *only[MOST_CELLS];

    w.o = atom_var(c->arith, "o", 0, k->total / all - 1);
    w.together = are_together(&w);
    for (uint32_t r = 0; r < k->nreads; r++) {
        w.seen = map_new(c->scratch);
        for (int64_t row = 0; row < rows; row++)
            for (int64_t tap = 0; tap < k->taps; tap++) {
                for (int64_t i = 0; i < cells; i++)
                    at[i] = load_at(&w, &k->read[r], cell_of(&w, row, i, tap), &only[i]);
                walk_cells(&w, &k->read[r], at, only);
            }
    }
    w.accesses *= k->rounds;
    w.lines *= (double)k->rounds;
    for (int64_t row = 0; row < rows; row++) {
        for (int64_t i = 0; i < cells; i++)
            at[i] = idx_subst(cell_of(&w, row, i, 0), k->store);
        for (int64_t i = 0; i < cells; i += n) {
            n = run_of(&w, at + i, cells - i, k->store_bytes);
            access(&w, at[i], k->store_bytes, n, false);
        }
    }
    for (uint32_t r = 0; r < k->nreads; r++) {
        const Buffer *b = k->read[r].load->buffer;
        int64_t       held = 1;
        for (uint32_t d = 0; d < b->ndim; d++)
            if (!checked_mul(held, idx_usual(b->extent[d]), &held))
                held = INT64_MAX;
        held = fmin((double)held, (double)k->total * (double)(k->taps * k->rounds));
        double share =
            (double)held * (double)dtype_bytes(b->dtype) * (double)all / (double)k->total;
        moved += fmax(share, sectors_of(&w, &k->read[r]));
        once += share;
    }
    return (DeviceThread){.threads = k->total / all,
                          .tensors = tensors_of(k) + 1,
                          .issued = (double)(w.accesses + all * k->taps * k->rounds * k->work),
                          .lines = w.lines,
                          .moved = moved,
                          .once = once};
}

/* ---- the decision --------------------------------------------------------------------------------- */

typedef struct {
    const char *block;
    uint32_t    along;
    int64_t     rows, cells;
} CellsPlan;

static int64_t rows_of(const Kernel *k, uint32_t along)
{
    return along < k->last ? extent_of(k->b->iter[along]) : 1;
}

/* All tiles with rows along that; the least estimate. */
static double add_tiles(const Kernel *k, uint32_t along, Candidates *t)
{
    int64_t high = rows_of(k, along);
    double  least = INFINITY;

    for (int64_t cells = 1; cells <= device_lanes(&k->m, k->store_bytes); cells *= 2)
        for (int64_t rows = 1; rows <= limit_gpu_cells(&k->m) && rows <= high; rows++) {
            int64_t all = rows * cells;
            if (high % rows || k->total / rows % cells || all > MOST_CELLS ||
                (all > 1 && (all * k->taps * (k->nreads + 1) > MOST_INDICES ||
                             all * k->taps * k->written > limit_gpu_operations(&k->m))))
                continue;
            DeviceThread d = thread_of(k, along, rows, cells);
            double       cycles = device_thread_cycles(&k->m, &d);
            candidate(t, rows, cells, cycles);
            least = fmin(least, cycles);
        }
    return least;
}

/* Rows along the loop that saves most; of several the last.  The least estimate. */
static double best_tiles(const Kernel *k, uint32_t *of, Candidates *best)
{
    double least = add_tiles(k, k->last, best);

    *of = k->last;
    for (uint32_t along = 0; along < k->last; along++) {
        Candidates t = candidates(k->s);
        double     cycles = rows_of(k, along) > 1 ? add_tiles(k, along, &t) : INFINITY;
        if (cycles <= least) {
            least = cycles;
            *best = t;
            *of = along;
        }
    }
    return least;
}

static void decide_cells(Sched *s, void *plan)
{
    CellsPlan *p = plan;
    Candidates best = candidates(s);
    Kernel     k;

    if (!find_kernel(s, p->block, &k))
        return;
    best_tiles(&k, &p->along, &best);
    const Candidate *c = pick_tile(s, "cells", &best);
    p->rows = c->v[0];
    p->cells = c->v[1];
}

double thread_cells_cycles(Sched *s, const char *block)
{
    Candidates best = candidates(s);
    uint32_t   along;
    Kernel     k;

    return find_kernel(s, block, &k) ? best_tiles(&k, &along, &best) : NAN;
}

CellTile decide_thread_cells(Sched *s, const char *block)
{
    CellsPlan p = {block, 0, 1, 1};

    sched_decide(s, decide_cells, &p);
    CellTile t = {.rows = p.rows, .cells = p.cells};
    if (t.rows > 1)
        t.row_loop = intern_printf(s->c->strings, "%s.%s", block,
                                   sched_block(s, block)->u.block.iter[p.along]->name);
    return t;
}
