/* Reductions on a GPU, by the threads of a block and by several blocks.
 *
 * By threads, each of which has every 256th number of a row:
 *
 *     split sum.k by 256 -> sum.o, sum.t;  reorder sum.t, sum.o
 *     rfactor sum.t                       a partial sum for each thread, in shared memory
 *     cache_write sum.rf reg at sum.t;  bind sum.t threadIdx.x
 *     split sum.sum.t by 16 -> ..;  rfactor ..   .. 16 sums of 16 of them, then the sum of those
 *
 * Where the threads of a warp have an instruction for it (ir/tir/lanes.c), they combine their
 * partial sums by that, without shared memory, and all threads those of the warps:
 *
 *     split sum.rf.t by 32 -> w, l;  bind w threadIdx.y;  bind l threadIdx.x
 *     split sum.sum.rf.t by 32 -> w, l;  rfactor w;  bind w threadIdx.y
 *     tensorize l with @warp32_sum
 *
 * Where the numbers of neighbouring rows lie side by side, not those of a row (sums of columns), a
 * block has several rows, and neighbouring threads have neighbouring ones:
 *
 *     split rows by 32 -> b, x;  bind b blockIdx.x
 *     split sum.k by 8 -> o, t;  reorder t, x, o;  rfactor t at b
 *     bind t threadIdx.y;  bind x threadIdx.x
 *
 * Where there are too few rows to keep all cores busy, blocks have parts of a row, and a launch of
 * its own puts them together, in order:
 *
 *     split sum.k by 8*16 -> o, pt;  split pt by 8 -> p, t;  rfactor p;  fuse b, p -> blk
 *     bind blk blockIdx.x
 */
#include "schedules/gpu/gpu.h"

#include <string.h>

/* Loops of a block's iterators from..to. */
Loops iter_loops(const Sched *s, const char *block, uint32_t from, uint32_t to)
{
    const BlockData *b = &sched_block(s, block)->u.block;
    Loops            l = {0};

    for (uint32_t i = from; i < to; i++)
        loops_add(s, &l, arena_printf(s->c->scratch, "%s.%s", block, b->iter[i]->name));
    return l;
}

/* ---- by the threads of a block -------------------------------------------------------------------- */

/* A level of partial results. */
typedef struct {
    const char *of, *tensor;   /* their block, their tensor */
    int64_t     lanes;         /* numbers side by side of a thread */
    int64_t     threads, warp; /* of a row, of a line of them (0: all) */
    const char *at, *beside;   /* loops over blocks and over rows side by side in there, or NULL */
    uint32_t    copy;          /* the first of the latter that no level has taken */
} Partials;

/* `<of>.o` rounds of each of `<of>.t` threads, which have `<of>.v` numbers in each. */
static void split_threads(Sched *s, const char *of, const char *loop, int64_t threads,
                          int64_t lanes)
{
    if (lanes > 1) {
        step(s, "split %%%s by %lld -> %%%s.q, %%%s.v", loop, (long long)lanes, of, of);
        loop = arena_printf(s->c->scratch, "%s.q", of);
    }
    step(s, "split %%%s by %lld tail=if -> %%%s.o, %%%s.t", loop, (long long)threads, of, of);
}

void bind_threads(Sched *s, const char *loop, int64_t threads, int64_t warp)
{
    if (!warp || threads == warp) {
        step(s, "bind %%%s threadIdx.x", loop);
        return;
    }
    step(s, "split %%%s by %lld -> %%%s.w, %%%s.l", loop, (long long)warp, loop, loop);
    step(s, "bind %%%s.w threadIdx.y", loop);
    step(s, "bind %%%s.l threadIdx.x", loop);
}

/* A partial result for each thread, in memory that the block's threads share; false: refused. */
static bool share_partials(Sched *s, const Partials *l)
{
    const char *of = l->of;
    const char *x = l->beside ? arena_printf(s->c->scratch, ", %%%s#%u", l->beside, l->copy) : "";
    const char *v = l->lanes > 1 ? arena_printf(s->c->scratch, ", %%%s.v", of) : "";
    const char *at = l->at ? arena_printf(s->c->scratch, " at %%%s", l->at) : "";

    step(s, "reorder %%%s.t%s, %%%s.o%s", of, x, of, v);
    if (!try_step(s, "rfactor %%%s.t%s", of, at))
        return false;
    step(s, "set_scope %%%s shared", l->tensor);
    if (l->beside) {
        bool begun = sched_block(s, arena_printf(s->c->scratch, "%s.init", of));
        step(s, "cache_write %s reg at %%%s#%u", of, l->beside, l->copy + begun);
        step(s, "bind %%%s.t threadIdx.y", of);
        step(s, "bind %%%s#%u threadIdx.x", l->beside, l->copy);
    } else {
        step(s, "cache_write %s reg at %%%s.t", of, of);
        bind_threads(s, arena_printf(s->c->scratch, "%s.t", of), l->threads, l->warp);
    }
    if (l->lanes > 1)
        step(s, "unroll %%%s.v", of);
    return true;
}

/* `sum.rf`, `sum.rf2` ..: as rfactor calls partial results. */
static const char *part_name(const Sched *s, const char *of, uint32_t k)
{
    return k ? intern_printf(s->c->strings, "%s.rf%u", of, k + 1)
             : intern_printf(s->c->strings, "%s.rf", of);
}

/* The first that there is not yet. */
static uint32_t parts_of(const Sched *s, const char *block)
{
    uint32_t k = 0;

    while (sched_block(s, part_name(s, block, k)))
        k++;
    return k;
}

/* The partial results of the loop's rounds, which are threads, by the instruction of their warps.
 */
static uint32_t combine_warps(Sched *s, const Partials *l, const char *loop, const ThreadSum *t)
{
    if (t->threads == t->warp) {
        step(s, "tensorize %%%s with @%s", loop, t->instruction);
        return 1;
    }
    step(s, "split %%%s by %lld -> %%%s.w, %%%s.l", loop, (long long)t->warp, l->of, l->of);
    if (!try_step(s, "rfactor %%%s.w", l->of))
        return 1;
    step(s, "set_scope %%%s shared", l->tensor);
    step(s, "cache_write %s reg at %%%s.w", l->of, l->of);
    step(s, "bind %%%s.w threadIdx.y", l->of);
    step(s, "tensorize %%%s.l with @%s", l->of, t->instruction);
    return 2;
}

uint32_t reduce_by_threads(Sched *s, const ThreadSum *t)
{
    Machine  m = machine_of(s->target);
    uint32_t first = parts_of(s, t->block), own = strcmp(t->block, t->tensor) ? 0 : first;
    int64_t  some = 1;
    Partials l = {.of = part_name(s, t->block, first),
                  .tensor = part_name(s, t->tensor, own),
                  .lanes = t->lanes,
                  .threads = t->threads,
                  .warp = t->warp,
                  .at = t->at,
                  .beside = t->beside};

    while (some * some < t->threads)
        some *= 2;
    if (t->loop)
        split_threads(s, l.of, t->loop, t->threads, t->lanes);
    if (!share_partials(s, &l))
        return 0;
    if (t->words)
        step(s, "tensorize %%kd with @%s", t->words);
    if (t->beside && t->threads <= limit_gpu_added(&m))
        return 1;
    const char *loop = arena_printf(s->c->scratch, "%s.%s.t", t->block, l.of);
    l = (Partials){.of = part_name(s, t->block, first + 1),
                   .tensor = part_name(s, t->tensor, own + 1),
                   .lanes = 1,
                   .at = t->at,
                   .beside = t->beside,
                   .copy = 1};
    if (t->instruction)
        return combine_warps(s, &l, loop, t);
    split_threads(s, l.of, loop, some, 1);
    return share_partials(s, &l) ? 2 : 1;
}

/* ---- by several blocks ----------------------------------------------------------------------------- */

typedef struct {
    int64_t         most; /* cells of the largest tensor so far, */
    const LoadData *load; /* and its load */
} Largest;

static void see_largest(void *user, const Prim *p)
{
    Largest *l = user;
    int64_t  cells = 1;

    if (p->kind != PRIM_LOAD || !p->u.load.n)
        return;
    for (uint32_t d = 0; d < p->u.load.n; d++)
        if (!checked_mul(cells, idx_usual(p->u.load.buffer->extent[d]), &cells))
            cells = INT64_MAX;
    if (cells <= l->most)
        return;
    l->most = cells;
    l->load = &p->u.load;
}

static bool has_rounds(const Atom *v)
{
    return v->hi > v->lo;
}

/* Rows side by side can be divided: their iterator is the last one, and what a run decides at most
 * the first. */
static bool divides(const BlockData *b, uint32_t unit)
{
    bool first = true;

    for (uint32_t i = 0; i < b->nspatial; i++) {
        if (!has_rounds(b->iter[i]))
            continue;
        if ((b->iter[i]->below && !first) || i > unit)
            return false;
        first = false;
    }
    return true;
}

RowsLie rows_lie(Sched *s, const char *block)
{
    const Stmt      *stmt = sched_block(s, block);
    const BlockData *b = &stmt->u.block;
    const uint32_t   all = b->nspatial + b->nreduce;
    uint32_t         unit = b->nspatial;
    Largest          l = {0};
    RowsLie          r = {.beside = 1, .step = 1};

    stmt_visit(stmt, &(TirVisit){.user = &l, .prim = see_largest});
    if (!l.load)
        return r;
    const Idx *at = flat_index(s, l.load);
    r.bytes = dtype_bytes(l.load->buffer->dtype);
    r.along = idx_uses(l.load->index[l.load->n - 1], b->iter[all - 1]);
    for (uint32_t i = b->nspatial; i < all; i++)
        if (has_rounds(b->iter[i]))
            r.step = flat_step(at, b->iter[i], INT64_MAX);
    if (r.step <= 1) {
        r.step = 1;
        return r;
    }
    for (uint32_t i = 0; i < b->nspatial; i++)
        if (has_rounds(b->iter[i]) && flat_step(at, b->iter[i], INT64_MAX) == 1)
            unit = i;
    if (unit == b->nspatial)
        return r;
    r.divides = divides(b, unit);
    for (uint32_t i = unit + 1; i-- > 0;) {
        if (!has_rounds(b->iter[i]))
            continue;
        if (flat_step(at, b->iter[i], INT64_MAX) != r.beside)
            break;
        r.beside *= atom_usual(b->iter[i]);
    }
    return r;
}

/* One launch of a reduction. */
typedef struct {
    const char     *block;
    const char     *rows, *part; /* loops over rows, over parts of them; NULL: there is none */
    const char     *sum;         /* .. over what is reduced; NULL: that is divided already */
    DeviceReduction by;
    int64_t         lanes;
    const char     *follow; /* a number a row that is made of the result; NULL: none */
} Launch;

/* The loop over blocks: of so many rows side by side, whose loop is *beside, and of parts. */
static const char *bind_rows(Sched *s, const Launch *l, const char **beside)
{
    const char *blocks = l->rows, *own = intern_printf(s->c->strings, "%s.blk", l->block);

    *beside = NULL;
    if (l->by.beside > 1) {
        blocks = intern_printf(s->c->strings, "%s.b", l->block);
        *beside = intern_printf(s->c->strings, "%s.x", l->block);
        step(s, "split %%%s by %lld tail=if -> %%%s, %%%s", l->rows, (long long)l->by.beside,
             blocks, *beside);
        if (l->part)
            step(s, "reorder %%%s, %%%s, %%%s", blocks, l->part, *beside);
    }
    if (!blocks) {
        blocks = l->part;
    } else if (l->part) {
        step(s, "fuse %%%s, %%%s -> %%%s", blocks, l->part, own);
        blocks = own;
    }
    step(s, "bind %%%s blockIdx.x", blocks);
    return blocks;
}

/* True: what follows is in it. */
static bool arrange_launch(Sched *s, const Launch *l)
{
    const Machine m = machine_of(s->target);
    const char   *block = l->block, *beside, *at = bind_rows(s, l, &beside);
    ThreadSum     t = {.block = block,
                       .tensor = block,
                       .loop = l->sum,
                       .threads = l->by.threads,
                       .lanes = l->lanes};
    const char   *rounds =
        intern_printf(s->c->strings, "%s.o", part_name(s, block, parts_of(s, block)));

    if (beside) {
        t.at = at;
        t.beside = beside;
        uint32_t levels = t.threads > 1 ? reduce_by_threads(s, &t) : 0;
        at = intern_printf(s->c->strings, "%s#%u", beside, levels);
        step(s, "bind %%%s threadIdx.x", at);
        step(s, "cache_write %s reg at %%%s", block, at);
    } else { /* all threads have the result before they store it */
        step(s, "cache_write %s reg at %%%s", block, at);
        t.tensor = arena_printf(s->c->scratch, "%s.reg", block);
        if (t.threads > 1)
            reduce_by_threads(s, &t);
    }
    if (t.threads > 1 || !l->sum)
        try_step(s, "unroll_hint %%%s by %lld", rounds, (long long)limit_gpu_written(&m));
    else
        write_short_sum(s, block);
    return l->follow && try_step(s, "reverse_compute_at %s %%%s", l->follow, at);
}

/* By so many blocks for each row, or rows side by side, and a launch that puts parts together;
 * where the result has no dimension, by a block, and one thread that stores what it has. */
static bool arrange_parts(Sched *s, Launch l, const DeviceRows *size)
{
    Machine     m = machine_of(s->target);
    const char *part = part_name(s, l.block, parts_of(s, l.block)), *own = part_name(s, part, 0);
    const char *p = intern_printf(s->c->strings, "%s.p", part);
    Launch      join = l;
    bool        taken = false;

    if (l.lanes > 1) {
        step(s, "split %%%s by %lld -> %%%s.q, %%%s.v", l.sum, (long long)l.lanes, own, own);
        l.sum = intern_printf(s->c->strings, "%s.q", own);
    }
    step(s, "split %%%s by %lld tail=if -> %%%s.o, %%%s.s", l.sum,
         (long long)(l.by.threads * l.by.parts), own, part);
    step(s, "split %%%s.s by %lld -> %%%s, %%%s.t", part, (long long)l.by.threads, p, own);
    step(s, "reorder %%%s, %%%s.t, %%%s.o%s", p, own, own,
         l.lanes > 1 ? arena_printf(s->c->scratch, ", %%%s.v", own) : "");
    step(s, "rfactor %%%s", p);
    join.sum = intern_printf(s->c->strings, "%s.%s", l.block, p);
    join.by = device_partial_reduction(&m, size, l.by.parts);
    join.lanes = 1;
    if (l.rows) {
        join.rows = intern_printf(s->c->strings, "%s#2", l.rows);
        l.rows = intern_printf(s->c->strings, "%s#1", l.rows);
        taken = arrange_launch(s, &join);
    } else if (l.by.parts > 1) {
        arrange_parts(s, join, size);
    }
    l.block = part;
    l.part = intern_printf(s->c->strings, "%s#1", p);
    l.sum = l.follow = NULL;
    arrange_launch(s, &l);
    return taken;
}

bool reduce_apart(Sched *s, const char *block, const char *follow, const RowsPlan *p)
{
    const BlockData *b = &sched_block(s, block)->u.block;
    Loops            rows = iter_loops(s, block, 0, b->nspatial),
          k = iter_loops(s, block, b->nspatial, b->nspatial + b->nreduce);

    loops_fuse(s, &rows, arena_printf(s->c->scratch, "%s.rows", block));
    loops_fuse(s, &k, arena_printf(s->c->scratch, "%s.r", block));
    Launch l = {.block = block,
                .rows = rows.n ? rows.at[0] : NULL,
                .sum = k.at[0],
                .by = p->by,
                .lanes = p->size.lanes,
                .follow = follow};
    return l.rows && l.by.parts == 1 ? arrange_launch(s, &l) : arrange_parts(s, l, &p->size);
}
