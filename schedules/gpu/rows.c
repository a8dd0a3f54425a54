/* Softmax, norms and reductions on a GPU: a block of threads for a row.
 *
 *     compute_at max %out.i;  compute_at sum %out.i;  bind out.i blockIdx.x
 *     max, sum                            by the threads of the block (reduce.c)
 *     split out.j by 256 -> jo, jt;  bind jt threadIdx.x
 *
 * Where rows end with a whole access, a thread has the cells of one in each round of all stages:
 *
 *     split sum.k by 4 -> q, v;  split q by 192 -> sum.o, sum.t
 *     reorder sum.t, sum.o, v;  unroll v
 *
 * All stages of a row are one launch, which reads the row from caches after the first stage.  The
 * order of a sum depends on the schedule alone, so every run gives the same bits.  Rows that are
 * short, or so many that every thread has one, are a thread's each, summed in the formula's order.
 * Rows whose numbers lie apart, and few long ones, have launches of their own for each reduction
 * (reduce.c).  A product with a single row is such a reduction, too (product.c). */
#include "ir/tir/intrin.h"
#include "schedules/gpu/gpu.h"

#include <math.h>
#include <string.h>

/* Rounds of the last stage that are written out; parts of a row. */
enum { MOST_ROUNDS = 4, MOST_PARTS = 1024 };

static double cycles_by(const Machine *m, DeviceRows size, int64_t threads, int64_t warp)
{
    if (warp && threads % warp)
        return NAN;
    size.warp = warp;
    return device_rows_cycles(m, &size, threads);
}

/* By the better way to combine what so many threads have. */
static double cycles_of(const Machine *m, const DeviceRows *size, int64_t threads)
{
    return fmin(cycles_by(m, *size, threads, 0), cycles_by(m, *size, threads, size->warp));
}

/* Threads of a row, where one launch has all stages. */
static Candidates thread_candidates(Sched *s, const Machine *m, const DeviceRows *size)
{
    const int64_t runs = size->cells / size->lanes, most = limit_gpu_tile_threads(m);
    Candidates    k = candidates(s);

    candidate(&k, 1, 0, cycles_by(m, *size, 1, 0));
    for (int64_t n = limit_gpu_least_threads(m); n <= most && n <= runs; n *= 2) {
        const int64_t more = n + n / 2; /* .. where they are a whole part of the row */
        candidate(&k, n, 0, cycles_of(m, size, n));
        if (n > limit_gpu_least_threads(m) && more <= most && runs % more == 0)
            candidate(&k, more, 0, cycles_of(m, size, more));
    }
    return k;
}

/* Parts of a row, as far as each thread has a number.  One reduction of whole rows by a block each
 * is what one launch has, too, and a thread a row, what other forms have. */
static Candidates part_candidates(Sched *s, const Machine *m, const RowsPlan *p, DeviceReduction by)
{
    const int64_t runs = p->size.cells / p->size.lanes / by.threads;
    const bool    same = by.threads == 1 || (p->together && p->size.sums == 1 && by.beside == 1);
    Candidates    k = candidates(s);

    by.parts = same ? 2 : 1;
    for (; by.parts <= MOST_PARTS && by.parts <= runs; by.parts *= 2)
        candidate(&k, by.parts, 0, device_apart_cycles(m, &p->size, &by));
    return k;
}

/* Rows of a block by threads of each, where reductions have launches of their own; of equal ones
 * those that move least, of many rows. */
static Candidates block_candidates(Sched *s, const Machine *m, const RowsPlan *p)
{
    const DeviceRows *size = &p->size;
    const int64_t     runs = size->cells / size->lanes;
    Candidates        k = candidates(s);
    DeviceReduction   by = {1, 1, 1};

    while (p->divides && by.beside < size->beside && 2 * by.beside <= limit_gpu_threads(m))
        by.beside *= 2;
    for (; by.beside; by.beside /= 2)
        for (by.threads = 1; by.threads <= runs; by.threads *= 2) {
            if (by.beside * by.threads < limit_gpu_least_threads(m) ||
                !device_reduction_fits(m, &by))
                continue;
            Candidates parts = part_candidates(s, m, p, by);
            if (parts.of.n)
                candidate(&k, by.beside, by.threads, least_estimate(&parts));
        }
    return k;
}

/* How the threads of a row combine what they have. */
static void decide_warp(Sched *s, const Machine *m, RowsPlan *p)
{
    Candidates by = candidates(s);

    p->warp = 0;
    if (p->threads < 2 || !p->size.warp || p->threads % p->size.warp)
        return;
    candidate(&by, 0, 0, cycles_by(m, p->size, p->threads, 0));
    candidate(&by, p->size.warp, 0, cycles_by(m, p->size, p->threads, p->size.warp));
    p->warp = pick_factor(s, "warp", &by);
}

static void decide_rows(Sched *s, void *plan)
{
    static const char *const forms[] = {"together", "apart", "cells"};
    RowsPlan                *p = plan;
    Machine                  m = machine_of(s->target);
    Candidates               launches = candidates(s), threads = candidates(s), blocks = threads;
    const DeviceReduction    cells = {limit_gpu_threads(&m), 1, 1};

    if (p->together) {
        threads = thread_candidates(s, &m, &p->size);
        candidate(&launches, ROWS_TOGETHER, 0, least_estimate(&threads));
    }
    if (!isnan(p->cells))
        candidate(&launches, ROWS_CELLS, 0, p->cells);
    else if (!p->together) /* else that is a thread a row */
        candidate(&launches, ROWS_CELLS, 0, device_apart_cycles(&m, &p->size, &cells));
    if (p->apart)
        blocks = block_candidates(s, &m, p);
    if (blocks.of.n)
        candidate(&launches, ROWS_APART, 0, least_estimate(&blocks));
    p->form = pick_order(s, "launch", &launches, forms);
    if (p->form == ROWS_APART) {
        const Candidate *c = pick_tile(s, "block", &blocks);
        p->by = (DeviceReduction){c->v[0], c->v[1], 1};
        Candidates parts = part_candidates(s, &m, p, p->by);
        p->by.parts = pick_factor(s, "parts", &parts);
    } else if (p->form == ROWS_TOGETHER) {
        p->threads = pick_factor(s, "threads", &threads);
        decide_warp(s, &m, p);
    }
}

static const BlockData *block_of(const Sched *s, const char *name)
{
    return &sched_block(s, name)->u.block;
}

/* A reader's loads of a stage: by how many of its leading iterators they choose the row. */
typedef struct {
    const Buffer    *of;
    const BlockData *reader;
    uint32_t         rows;
} RowReads;

static void see_rows(void *user, const Prim *p)
{
    RowReads   *r = user;
    const Atom *at;

    if (p->kind != PRIM_LOAD || p->u.load.buffer != r->of)
        return;
    for (uint32_t d = 0; d < r->rows; d++) {
        const Atom *v = r->reader->iter[d];
        if (v->hi > v->lo && (!idx_is_atom(p->u.load.index[d], &at) || at != v))
            r->rows = d;
    }
}

/* Leading iterators of stage i that are those of the last one, and of all who read it. */
static uint32_t common_rows(const Sched *s, const char *const *names, uint32_t n, uint32_t i)
{
    const Stmt      *stage = sched_block(s, names[i]);
    const BlockData *x = &stage->u.block, *y = block_of(s, names[n - 1]);
    RowReads         r = {.of = stage->kids[stage->nkids - 1]->u.store.buffer};

    while (r.rows < x->nspatial && r.rows < y->nspatial &&
           x->iter[r.rows]->hi == y->iter[r.rows]->hi &&
           x->iter[r.rows]->below == y->iter[r.rows]->below)
        r.rows++;
    for (uint32_t k = i + 1; k < n; k++) {
        const Stmt *reader = sched_block(s, names[k]);
        r.reader = &reader->u.block;
        r.rows = r.rows < r.reader->nspatial ? r.rows : r.reader->nspatial;
        stmt_visit(reader, &(TirVisit){.user = &r, .prim = see_rows});
    }
    return r.rows;
}

static int64_t cells_of(const BlockData *b)
{
    int64_t cells = 1;

    for (uint32_t i = 0; i < b->nspatial; i++)
        if (!checked_mul(cells, atom_usual(b->iter[i]), &cells))
            return INT64_MAX;
    return cells;
}

typedef struct {
    const Buffer *of;
    bool          found;
} Reads;

static void find_read(void *user, const Prim *p)
{
    Reads *r = user;

    r->found = r->found || (p->kind == PRIM_LOAD && p->u.load.buffer == r->of);
}

/* A number a row, or a few, that each cell of a row reads: one formula instead of one a cell. */
static bool worth_keeping(const Sched *s, const char *const *names, uint32_t n, uint32_t which)
{
    const Stmt *b = sched_block(s, names[which]);
    int64_t     cells = cells_of(&b->u.block);
    Reads       r = {b->kids[b->nkids - 1]->u.store.buffer, false};

    for (uint32_t i = which + 1; i < n && cells > 1; i++) {
        const Stmt *reader = sched_block(s, names[i]);
        if (cells_of(&reader->u.block) > cells || reader->u.block.nreduce)
            stmt_visit(reader, &(TirVisit){.user = &r, .prim = find_read});
    }
    return r.found;
}

typedef enum {
    OTHER,  /* of another form, */
    STAGES, /* reductions and what is made of their results, */
    ROWS    /* .. a number a row each, but for the last, of the row's cells */
} Form;

/* How many leading iterators of the last block all stages share; the stages that are no reductions
 * are inlined, unless they have a value a row. */
static Form find_stages(Sched *s, const char **names, uint32_t *n, uint32_t *rows)
{
    const char *last;
    bool        found = false, alike = true;

    *n = sched_blocks(s, names, MAX_BLOCKS);
    for (uint32_t i = 0; i + 1 < *n; i++) {
        const BlockData *b = block_of(s, names[i]), *l = block_of(s, names[*n - 1]);
        if (b->opaque || b->nseq)
            return OTHER;
        bool few = cells_of(b) < cells_of(l) && worth_keeping(s, names, *n, i);
        if (!b->nreduce && !few)
            try_step(s, "compute_inline %s", names[i]);
    }
    *n = sched_blocks(s, names, MAX_BLOCKS);
    last = names[*n - 1];
    *rows = block_of(s, last)->nspatial;
    for (uint32_t i = 0; i < *n; i++) {
        const BlockData *b = block_of(s, names[i]);
        uint32_t         k = common_rows(s, names, *n, i);
        if (b->opaque || b->nseq)
            return OTHER;
        for (uint32_t d = k; names[i] != last && d < b->nspatial; d++)
            alike = alike && b->iter[d]->hi == b->iter[d]->lo; /* a number a row */
        *rows = k < *rows ? k : *rows;
        found = found || b->nreduce;
    }
    return !found ? OTHER : alike ? ROWS : STAGES;
}

/* What is computed of a cell: of numbers that differ along a row, not once for all of it. */
typedef struct {
    const Atom *along;
    Map        *seen, *differs;
    DeviceRows *of;
} Work;

static bool is_call(const Prim *p)
{
    return p->kind == PRIM_MATH ||
           (p->kind == PRIM_DIV && dtype_is_float(p->dtype) && p->kids[1]->kind != PRIM_FLOAT);
}

static void see_work(void *user, const Prim *p)
{
    Work *w = user;
    bool  differs = false;

    if (map_get(w->seen, p->id))
        return;
    map_put(w->seen, p->id, w);
    for (uint32_t i = 0; i < p->u.load.n && p->kind == PRIM_LOAD; i++)
        differs = differs || idx_uses(p->u.load.index[i], w->along);
    for (uint32_t i = 0; i < p->nkids; i++)
        differs = differs || map_get(w->differs, p->kids[i]->id);
    if (!differs)
        return;
    map_put(w->differs, p->id, w);
    w->of->work += p->kind != PRIM_LOAD;
    w->of->calls += is_call(p);
}

/* ... *alike: all reductions have as many rows and cells, which lie so; *divides: of each. */
static DeviceRows size_of(Sched *s, const char *const *names, uint32_t n, uint32_t rows,
                          bool *alike, bool *divides)
{
    DeviceRows z = {.cells = 1, .bytes = 1};

    *alike = *divides = true;
    for (uint32_t i = 0; i < n; i++) {
        const BlockData *b = block_of(s, names[i]);
        Loops            k = iter_loops(s, names[i], b->nspatial, b->nspatial + b->nreduce);
        if (!b->nreduce && i + 1 < n)
            continue;
        const Stmt *block = sched_block(s, names[i]), *store = block->kids[block->nkids - 1];
        uint32_t    inner = b->nspatial + b->nreduce;
        if (!b->nreduce && iter_loops(s, names[i], rows, b->nspatial).cells < 2)
            continue; /* one number a row */
        z.stages++;
        if (inner && store->kind == STMT_STORE) {
            Work w = {b->iter[inner - 1], map_new(s->c->scratch), map_new(s->c->scratch), &z};
            prim_visit(store->u.store.value, &(TirVisit){.user = &w, .prim = see_work});
        }
        if (!b->nreduce) {
            z.stored = dtype_bytes(store->u.store.buffer->dtype);
            continue;
        }
        Loops   own = iter_loops(s, names[i], 0, b->nspatial);
        RowsLie lie = rows_lie(s, names[i]);
        int64_t count = own.n ? own.cells : 1, cells = k.n ? k.cells : 1;
        *alike = *alike && (!z.rows || (count == z.rows && cells == z.cells && lie.step == z.step &&
                                        lie.beside == z.beside));
        *divides = *divides && lie.divides;
        if (!z.rows || cells > z.cells) {
            z.cells = cells;
            z.open.cells = k.open;
        }
        z.sums++;
        z.rows = count;
        z.open.rows = own.open;
        z.single = !own.n;
        z.step = lie.step;
        z.beside = lie.beside;
        z.along = z.along || lie.along;
        z.bytes = lie.bytes > z.bytes ? lie.bytes : z.bytes;
    }
    return z;
}

/* Cells side by side that a thread takes at once; 1: where rows do not end with such a run, or have
 * too few of them for threads. */
static int64_t lanes_of(const Sched *s, const char *const *names, uint32_t n, const DeviceRows *z)
{
    Machine m = machine_of(s->target);
    int64_t lanes = device_lanes(&m, z->bytes);

    for (uint32_t i = 0; i < n; i++) {
        const BlockData *b = block_of(s, names[i]);
        uint32_t         last = b->nspatial + b->nreduce;
        if (!b->nreduce && i + 1 < n)
            continue;
        while (last && b->iter[last - 1]->hi == b->iter[last - 1]->lo)
            last--;
        if (!last || b->iter[last - 1]->below || (b->iter[last - 1]->hi + 1) % lanes != 0)
            return 1;
        if (b->nreduce && last <= b->nspatial)
            return 1;
    }
    return z->along && z->cells / lanes >= limit_gpu_least_threads(&m) ? lanes : 1;
}

/* The instruction by which the threads of a warp combine what the block does; NULL: there is none.
 */
static const char *combination(const Sched *s, const char *block)
{
    const Stmt *b = sched_block(s, block), *store = b->kids[b->nkids - 1];
    const Prim *v = store->u.store.value;
    const DType t = store->u.store.buffer->dtype;
    const char *by = v->kind == PRIM_ADD      ? "sum"
                     : v->kind == PRIM_MAX    ? "max"
                     : v->kind == PRIM_MIN    ? "min"
                     : v->kind == PRIM_SELECT ? "maxnum" /* comb_apply */
                                              : NULL;

    if (!by || s->target->warp < 2)
        return NULL;
    const char   *text = intern_printf(s->c->strings, "warp%u_%s", s->target->warp, by);
    const Intrin *row = intrin_find(s->c, text, 1, &t);
    return row && s->target->intrin_ops[row->id] ? text : NULL;
}

/* Threads of a warp, if they combine all sums by instructions; 0: they do not. */
static int64_t combining(const Sched *s, const char *const *names, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        if (block_of(s, names[i])->nreduce && !combination(s, names[i]))
            return 0;
    return s->target->warp;
}

/* The loop counts words, whose four bytes are %kd. */
static void count_words(Sched *s, Loops *k)
{
    step(s, "split %%%s by %d -> %%kc, %%kd", k->at[0], WORD);
    k->at[0] = "kc";
}

/* A row's reduction, whose result is that tensor, by the threads of its block. */
static void divide_sum(Sched *s, const char *block, const char *tensor, const RowsPlan *p)
{
    const BlockData *b = block_of(s, block);
    Loops            k = iter_loops(s, block, b->nspatial, b->nspatial + b->nreduce);
    const char      *instruction = combination(s, block);

    loops_fuse(s, &k, arena_printf(s->c->scratch, "%s.r", block));
    if (k.n && p->words)
        count_words(s, &k);
    if (k.n)
        reduce_by_threads(s, &(ThreadSum){.block = block,
                                          .tensor = tensor,
                                          .loop = k.at[0],
                                          .threads = p->threads,
                                          .lanes = p->words ? 1 : p->size.lanes,
                                          .words = p->words,
                                          .warp = p->warp,
                                          .instruction = p->warp ? instruction : NULL});
}

/* The cells of the last block, whose loops are one, by threads: each has some side by side, and
 * all loads of what it has stand before the first division or store. */
static void divide_cells(Sched *s, const char *loop, const RowsPlan *p)
{
    const int64_t lanes = p->size.lanes, each = p->threads * lanes;

    if (lanes > 1) {
        step(s, "split %%%s by %lld -> %%jq, %%jv", loop, (long long)lanes);
        loop = "jq";
    }
    step(s, "split %%%s by %lld tail=if -> %%jo, %%jt", loop, (long long)p->threads);
    step(s, lanes > 1 ? "reorder %%jt, %%jo, %%jv" : "reorder %%jt, %%jo");
    bind_threads(s, "jt", p->threads, p->warp);
    if (lanes > 1)
        step(s, "unroll %%jv");
    if (lanes > 1 && !p->size.open.cells && p->size.cells % each == 0 &&
        p->size.cells / each <= MOST_ROUNDS)
        step(s, "unroll %%jo");
}

static void row_a_block(Sched *s, const char *const *names, uint32_t n, Loops *rows,
                        const RowsPlan *p)
{
    const char *last = names[n - 1];
    bool        sums = block_of(s, last)->nreduce > 0;
    Loops       cells = {0}, left = iter_loops(s, last, 0, block_of(s, last)->nspatial);

    if (!strcmp(rows->at[0], "all")) /* what only_row has made of the first loop */
        loops_add(s, &cells, "cells");
    for (uint32_t i = cells.n ? 0 : rows->n; i < left.n; i++)
        loops_add(s, &cells, left.at[i]);
    if (!sums && cells.n) {
        loops_fuse(s, &cells, arena_printf(s->c->scratch, "%s.j", last));
        divide_cells(s, cells.at[0], p);
    }
    bind_blocks(s, rows, "row");
    for (uint32_t i = 0; i < n; i++) {
        /* All threads have the result before they store it; an instruction's is a thread's. */
        const bool  apart = (sums && i + 1 == n) || p->threads == p->warp;
        const char *reg = arena_printf(s->c->scratch, "%s.reg", names[i]);
        if (!block_of(s, names[i])->nreduce)
            continue;
        if (apart)
            step(s, "cache_write %s reg at %%%s", names[i], rows->at[0]);
        divide_sum(s, names[i], apart ? reg : names[i], p);
    }
}

static void row_a_thread(Sched *s, const char *const *names, uint32_t n, Loops *rows,
                         const char *words)
{
    Machine m = machine_of(s->target);
    int64_t most = limit_gpu_threads(&m), threads = rows->cells < most ? rows->cells : most;

    loops_fuse(s, rows, "row");
    step(s, "split %%%s by %lld tail=if -> %%rb, %%rt", rows->at[0], (long long)threads);
    step(s, "bind %%rb blockIdx.x");
    step(s, "bind %%rt threadIdx.x");
    for (uint32_t i = 0; i < n; i++)
        if (block_of(s, names[i])->nreduce) {
            Loops k = iter_loops(s, names[i], block_of(s, names[i])->nspatial,
                                 block_of(s, names[i])->nspatial + block_of(s, names[i])->nreduce);
            try_step(s, "cache_write %s reg at %%rt", names[i]);
            if (words) {
                count_words(s, &k);
                step(s, "tensorize %%kd with @%s", words);
            } else {
                write_short_sum(s, names[i]);
            }
        }
}

/* A single row gets a loop of its own, around the cells of the last block; false: it has none, or
 * is too short to be divided. */
static bool has_only_row(const Sched *s, const char *last, const DeviceRows *size)
{
    Machine          m = machine_of(s->target);
    const BlockData *l = block_of(s, last);

    return l->nspatial && !l->nreduce && size->cells >= limit_gpu_least_threads(&m);
}

static void all_together(Sched *s, const char *const *names, uint32_t n, Loops *rows,
                         const RowsPlan *p)
{
    const char *last = names[n - 1];

    if (!rows->n) {
        step(s, "split %%%s.%s into 1 -> %%all, %%cells", last, block_of(s, last)->iter[0]->name);
        loops_add(s, rows, "all");
    }
    for (uint32_t i = n - 1; i-- > 0;)
        step(s, "compute_at %s %%%s", names[i], rows->at[rows->n - 1]);
    if (s->refusal)
        return;
    if (p->threads > 1)
        row_a_block(s, names, n, rows, p);
    else
        row_a_thread(s, names, n, rows, p->words);
}

/* What is made of a reduction's results, a number a row, if that is the next stage; or NULL. */
static const char *follower_of(const Sched *s, const char *const *names, uint32_t n, uint32_t i)
{
    const BlockData *b = block_of(s, names[i]), *next;

    if (i + 1 == n || !b->nreduce)
        return NULL;
    next = block_of(s, names[i + 1]);
    return !next->nreduce && cells_of(next) == cells_of(b) ? names[i + 1] : NULL;
}

/* Each reduction by launches of its own, and each of the stages between them that does not follow
 * one in its last launch. */
static void each_apart(Sched *s, const char *const *names, uint32_t n, const RowsPlan *p)
{
    const char *last = names[n - 1];
    CellTile    cells = {1, 1, NULL}, one = cells;
    bool        taken = false;

    if (!block_of(s, last)->nreduce && (n == 1 || !follower_of(s, names, n, n - 2)))
        cells = decide_thread_cells(s, last);
    for (uint32_t i = 0; i < n && !s->refusal; i++) {
        if (block_of(s, names[i])->nreduce)
            taken = reduce_apart(s, names[i], follower_of(s, names, n, i), p);
        else if (taken)
            taken = false;
        else
            bind_own_cells(s, names[i], names[i] == last ? &cells : &one);
    }
}

void sched_gpu_row_of(Sched *s, const char *words, double cells)
{
    const char *names[MAX_BLOCKS];
    uint32_t    n, rows;
    bool        alike;
    RowsPlan    p = {.words = words, .cells = cells};
    Form        form = find_stages(s, names, &n, &rows);

    if (form == OTHER) {
        sched_gpu(s);
        return;
    }
    const char *last = names[n - 1];
    Loops       outer = iter_loops(s, last, 0, rows);
    p.size = size_of(s, names, n, rows, &alike, &p.divides);
    p.size.lanes = words ? 1 : lanes_of(s, names, n, &p.size);
    p.together = form == ROWS && (outer.n || (!rows && has_only_row(s, last, &p.size)));
    p.apart = alike && !(words && p.together);
    if (p.together && words) {
        p.size.cells /= WORD;
        p.size.bytes *= WORD;
    }
    p.size.warp = combining(s, names, n);
    sched_decide(s, decide_rows, &p);
    switch (p.form) {
    case ROWS_TOGETHER: all_together(s, names, n, &outer, &p); break;
    case ROWS_APART: each_apart(s, names, n, &p); break;
    case ROWS_CELLS: sched_gpu(s); break;
    }
}

void sched_gpu_rows(Sched *s)
{
    sched_gpu_row_of(s, NULL, NAN);
}
