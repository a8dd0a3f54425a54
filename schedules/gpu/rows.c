/* Softmax, norms and reductions on a GPU: a block of threads for a row.
 *
 *     compute_at max %out.i;  compute_at sum %out.i;  bind out.i blockIdx.x
 *     split sum.k by 256 -> sum.o, sum.t;  reorder sum.t, sum.o
 *     rfactor sum.t                       a partial sum for each thread, in shared memory
 *     cache_write sum.rf reg at sum.t;  bind sum.t threadIdx.x
 *     split sum.sum.t by 16 -> ..;  rfactor ..   .. 16 sums of 16 of them, then the sum of those
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
 * A sum of everything is summed in parts, a launch each.  A product with a single row is such a
 * reduction, too (product.c). */
#include "schedules/gpu/gpu.h"

#include <math.h>
#include <string.h>

enum { MOST_ROUNDS = 4 }; /* of the last stage that are written out */

typedef struct {
    DeviceRows  size;    /* .. with the cells that a thread has side by side */
    int64_t     threads; /* of a row; 1: a thread has a row; 0: several cells */
    double      cells;   /* what several cells take (cells.c); NAN: there is no such way */
    const char *words;   /* the sum of four products of bytes, or NULL */
} RowsPlan;

static void decide_rows(Sched *s, void *plan)
{
    RowsPlan  *p = plan;
    Machine    m = machine_of(s->target);
    Candidates k = candidates(s);

    const int64_t runs = p->size.cells / p->size.lanes, most = limit_gpu_tile_threads(&m);

    if (!isnan(p->cells))
        candidate(&k, 0, 0, p->cells);
    candidate(&k, 1, 0, device_rows_cycles(&m, &p->size, 1));
    for (int64_t n = limit_gpu_least_threads(&m); n <= most && n <= runs; n *= 2) {
        const int64_t more = n + n / 2; /* .. where they are a whole part of the row */
        candidate(&k, n, 0, device_rows_cycles(&m, &p->size, n));
        if (n > limit_gpu_least_threads(&m) && more <= most && runs % more == 0)
            candidate(&k, more, 0, device_rows_cycles(&m, &p->size, more));
    }
    p->threads = pick_factor(s, "threads", &k);
}

static const BlockData *block_of(const Sched *s, const char *name)
{
    return &sched_block(s, name)->u.block;
}

/* Loops of the block's iterators from..to. */
static Loops iter_loops(const Sched *s, const char *block, uint32_t from, uint32_t to)
{
    Loops l = {0};

    for (uint32_t i = from; i < to; i++)
        loops_add(s, &l,
                  arena_printf(s->c->scratch, "%s.%s", block, block_of(s, block)->iter[i]->name));
    return l;
}

/* Leading iterators of the same extent. */
static uint32_t common_rows(const Sched *s, const char *a, const char *b)
{
    const BlockData *x = block_of(s, a), *y = block_of(s, b);
    uint32_t         k = 0;

    while (k < x->nspatial && k < y->nspatial && x->iter[k]->hi == y->iter[k]->hi &&
           x->iter[k]->below == y->iter[k]->below)
        k++;
    return k;
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

/* How many leading iterators of the last block all stages share; the stages that are no reductions
 * are inlined, unless they have a value a row.  False: they are of another form. */
static bool find_stages(Sched *s, const char **names, uint32_t *n, uint32_t *rows)
{
    const char *last;

    *n = sched_blocks(s, names, MAX_BLOCKS);
    for (uint32_t i = 0; i + 1 < *n; i++) {
        const BlockData *b = block_of(s, names[i]), *l = block_of(s, names[*n - 1]);
        if (b->opaque || b->nseq)
            return false;
        bool few = cells_of(b) < cells_of(l) && worth_keeping(s, names, *n, i);
        if (!b->nreduce && !few)
            try_step(s, "compute_inline %s", names[i]);
    }
    *n = sched_blocks(s, names, MAX_BLOCKS);
    last = names[*n - 1];
    *rows = block_of(s, last)->nspatial;
    for (uint32_t i = 0; i < *n; i++) {
        const BlockData *b = block_of(s, names[i]);
        uint32_t         k = common_rows(s, names[i], last);
        if (b->opaque || b->nseq)
            return false;
        for (uint32_t d = k; names[i] != last && d < b->nspatial; d++)
            if (b->iter[d]->hi > b->iter[d]->lo)
                return false; /* not a number a row */
        *rows = k < *rows ? k : *rows;
    }
    return *n > 1 || block_of(s, last)->nreduce;
}

typedef struct {
    const Atom *along;
    int64_t     most;  /* cells of the largest tensor so far, */
    int64_t     bytes; /* of each, */
    bool        found; /* and whether they lie along that */
} Along;

static void find_along(void *user, const Prim *p)
{
    Along  *a = user;
    int64_t cells = 1;

    if (p->kind != PRIM_LOAD || !p->u.load.n)
        return;
    for (uint32_t d = 0; d < p->u.load.n; d++)
        if (!checked_mul(cells, idx_usual(p->u.load.buffer->extent[d]), &cells))
            cells = INT64_MAX;
    if (cells <= a->most)
        return;
    a->most = cells;
    a->bytes = dtype_bytes(p->u.load.buffer->dtype);
    a->found = idx_uses(p->u.load.index[p->u.load.n - 1], a->along);
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

static DeviceRows size_of(const Sched *s, const char *const *names, uint32_t n, uint32_t rows)
{
    DeviceRows z = {.rows = 1, .cells = 1, .bytes = 1};
    Loops      outer = iter_loops(s, names[n - 1], 0, rows);

    z.rows = outer.n ? outer.cells : 1;
    z.open.rows = outer.open;
    for (uint32_t i = 0; i < n; i++) {
        const BlockData *b = block_of(s, names[i]);
        Loops            k = iter_loops(s, names[i], b->nspatial, b->nspatial + b->nreduce);
        Along            a = {0};
        if (!b->nreduce && i + 1 < n)
            continue;
        z.stages++;
        const Stmt *block = sched_block(s, names[i]), *store = block->kids[block->nkids - 1];
        uint32_t    inner = b->nspatial + b->nreduce;
        if (!b->nreduce && iter_loops(s, names[i], rows, b->nspatial).cells < 2)
            continue; /* one number a row */
        if (inner && store->kind == STMT_STORE) {
            Work w = {b->iter[inner - 1], map_new(s->c->scratch), map_new(s->c->scratch), &z};
            prim_visit(store->u.store.value, &(TirVisit){.user = &w, .prim = see_work});
        }
        if (!b->nreduce) {
            z.stored = dtype_bytes(store->u.store.buffer->dtype);
            continue;
        }
        if (k.n && k.cells > z.cells) {
            z.cells = k.cells;
            z.open.cells = k.open;
        }
        a.along = b->iter[b->nspatial + b->nreduce - 1];
        stmt_visit(sched_block(s, names[i]), &(TirVisit){.user = &a, .prim = find_along});
        z.along = z.along || a.found;
        z.bytes = a.bytes > z.bytes ? a.bytes : z.bytes;
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

/* One more level of partial sums of a loop, in a tensor, by so many threads of a block; a thread
 * has so many cells side by side. */
static bool parts(Sched *s, const char *of, const char *tensor, const char *loop, int64_t threads,
                  int64_t lanes)
{
    if (lanes > 1) {
        step(s, "split %%%s by %lld -> %%%s.q, %%%s.v", loop, (long long)lanes, of, of);
        loop = arena_printf(s->c->scratch, "%s.q", of);
    }
    step(s, "split %%%s by %lld tail=if -> %%%s.o, %%%s.t", loop, (long long)threads, of, of);
    step(s, lanes > 1 ? "reorder %%%s.t, %%%s.o, %%%s.v" : "reorder %%%s.t, %%%s.o", of, of, of);
    if (!try_step(s, "rfactor %%%s.t", of))
        return false;
    step(s, "set_scope %%%s shared", tensor);
    step(s, "cache_write %s reg at %%%s.t", of, of);
    step(s, "bind %%%s.t threadIdx.x", of);
    if (lanes > 1)
        step(s, "unroll %%%s.v", of);
    return true;
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
    int64_t          some = 1;
    const char      *first = intern_printf(s->c->strings, "%s.rf", block),
               *second = intern_printf(s->c->strings, "%s.rf2", block);

    while (some * some < p->threads)
        some *= 2;
    loops_fuse(s, &k, arena_printf(s->c->scratch, "%s.r", block));
    if (k.n && p->words)
        count_words(s, &k);
    if (!k.n || !parts(s, first, arena_printf(s->c->scratch, "%s.rf", tensor), k.at[0], p->threads,
                       p->words ? 1 : p->size.lanes))
        return;
    if (p->words)
        step(s, "tensorize %%kd with @%s", p->words);
    parts(s, second, arena_printf(s->c->scratch, "%s.rf2", tensor),
          arena_printf(s->c->scratch, "%s.%s.t", block, first), some, 1);
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
    step(s, "bind %%jt threadIdx.x");
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
    if (sums) /* all threads have the result before they store it */
        step(s, "cache_write %s reg at %%%s", last, rows->at[0]);
    for (uint32_t i = 0; i < n; i++) {
        const char *reg = arena_printf(s->c->scratch, "%s.reg", names[i]);
        if (block_of(s, names[i])->nreduce)
            divide_sum(s, names[i], sums && i + 1 == n ? reg : names[i], p);
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

/* One number of all cells: partial sums by threads of all cores, sums of those by the threads of a
 * block, then the sum of these: a launch each. */
static void sum_of_all(Sched *s, const char *block)
{
    Machine          m = machine_of(s->target);
    const BlockData *b = block_of(s, block);
    Loops            k = iter_loops(s, block, b->nspatial, b->nspatial + b->nreduce);
    int64_t          some = limit_gpu_threads(&m), most = some * m.units;
    int64_t          threads = k.cells / limit_gpu_written(&m);
    const char      *rf = intern_printf(s->c->strings, "%s.rf", block);

    threads = threads > most ? most : threads;
    loops_fuse(s, &k, arena_printf(s->c->scratch, "%s.r", block));
    for (int level = 1; threads > 1 && k.n; level++, threads = threads > some ? some : 1) {
        step(s, "split %%%s by %lld tail=if -> %%%s.o, %%%s.p", k.at[0], (long long)threads, rf,
             rf);
        step(s, "reorder %%%s.p, %%%s.o", rf, rf);
        if (!try_step(s, "rfactor %%%s.p", rf))
            return;
        step(s, "split %%%s.p by %lld tail=if -> %%%s.b, %%%s.t", rf,
             (long long)(threads < some ? threads : some), rf, rf);
        step(s, "bind %%%s.b blockIdx.x", rf);
        step(s, "bind %%%s.t threadIdx.x", rf);
        step(s, "cache_write %s reg at %%%s.t", rf, rf);
        k.at[0] = intern_printf(s->c->strings, "%s.%s.p", block, rf);
        rf = intern_printf(s->c->strings, "%s.rf%d", block, level + 1);
    }
}

/* A single row gets a loop of its own, around the cells of the last block; false: it has none, or
 * the row is so long that one block of threads would be busy with it alone. */
static bool only_row(Sched *s, const char *last, const DeviceRows *size, Loops *outer)
{
    Machine          m = machine_of(s->target);
    const BlockData *l = block_of(s, last);

    if (!l->nspatial || l->nreduce || size->cells < limit_gpu_least_threads(&m) ||
        size->cells > m.units * limit_gpu_threads(&m) * limit_gpu_written(&m))
        return false;
    step(s, "split %%%s.%s into 1 -> %%all, %%cells", last, l->iter[0]->name);
    loops_add(s, outer, "all");
    return outer->n > 0;
}

void sched_gpu_row_of(Sched *s, const char *words, double cells)
{
    const char *names[MAX_BLOCKS];
    uint32_t    n, rows;
    RowsPlan    p = {.words = words, .cells = cells};

    if (!find_stages(s, names, &n, &rows)) {
        sched_gpu(s);
        return;
    }
    const char *last = names[n - 1];
    Loops       outer = iter_loops(s, last, 0, rows);
    if (rows && !outer.n) {
        sched_gpu(s);
        return;
    }
    p.size = size_of(s, names, n, rows);
    p.size.lanes = words ? 1 : lanes_of(s, names, n, &p.size);
    if (words) {
        p.size.cells /= WORD;
        p.size.bytes *= WORD;
    }
    if (!rows && !only_row(s, last, &p.size, &outer)) {
        for (uint32_t i = 0; i < n; i++)
            if (block_of(s, names[i])->nreduce && !block_of(s, names[i])->nspatial)
                sum_of_all(s, names[i]);
        return;
    }
    sched_decide(s, decide_rows, &p);
    if (!p.threads) {
        sched_gpu(s);
        return;
    }
    for (uint32_t i = n - 1; i-- > 0;)
        step(s, "compute_at %s %%%s", names[i], outer.at[outer.n - 1]);
    if (s->refusal)
        return;
    if (p.threads > 1)
        row_a_block(s, names, n, &outer, &p);
    else
        row_a_thread(s, names, n, &outer, words);
}

void sched_gpu_rows(Sched *s)
{
    sched_gpu_row_of(s, NULL, NAN);
}
