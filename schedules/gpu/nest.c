/* Any kernel on a GPU: a cell or several a thread.
 *
 *   inline every elementwise block        padding and scalars too: a value is cheaper than a launch
 *   for each block that is left
 *     fuse its spatial loops -> f         split f by `threads` tail=if -> b, t
 *     bind b blockIdx.x                   bind t threadIdx.x
 *     cache_write block reg at t          the sum lives in a register, reduced in order
 *   reverse_compute_at last t             what follows the only reduction reads that register
 *
 * Where a thread has several cells (cells.c), side by side or one above the other:
 *
 *     split y by 4 -> rows, row             fuse .., rows, x -> f;  split f by 4 -> runs, cell
 *     reorder runs, row, cell               runs are what threads have;  unroll row, cell
 *
 * Each block that is left is a launch (passes/tir/launches.c); threads of one block read
 * neighbouring cells.  Loops of which a run decides the rounds are not fused: blocks along y and z,
 * or, where there are too few other cells for threads, cut into blocks along x.  A step that does
 * not fit is left out: the nest then runs as it is. */
#include "schedules/gpu/gpu.h"

#include <math.h>
#include <string.h>

enum { LEAST_THREADS = 32, MOST_THREADS = 256 };

/* How many threads a block has, of those that the device allows: powers of two, or all. */
static void decide(Sched *s, void *plan)
{
    Machine    m = machine_of(s->target);
    int64_t   *threads = plan;
    Candidates k = candidates(s);

    for (int64_t n = LEAST_THREADS; n <= MOST_THREADS && n <= m.block_threads; n *= 2)
        candidate(&k, n, 0, NAN);
    usual(&k, limit_gpu_threads(&m), 0);
    *threads = pick_factor(s, "threads", &k);
}

static const BlockData *block_data(const Sched *s, const char *name)
{
    const Stmt *b = sched_block(s, name);

    return b ? &b->u.block : NULL;
}

/* %dense.b: a name that no loop over an axis of the block has. */
static const char *loop_name(Sched *s, const char *block, const char *part)
{
    const BlockData *d = block_data(s, block);
    const char      *name = intern_printf(s->c->strings, "%s.%s", block, part);
    int64_t          n;

    for (uint32_t i = 0; d && i < d->nspatial + d->nreduce; i++)
        if (!strcmp(d->iter[i]->name, part) &&
            (d->iter[i]->below || sched_loop_extent(s, name, &n)))
            return intern_printf(s->c->strings, "%s0", name);
    return name;
}

const char *bind_cells(Sched *s, const char *name, const char *loop, int64_t most)
{
    const char *block = loop_name(s, name, "b"), *thread = loop_name(s, name, "t");
    int64_t     cells = most; /* a run decides */

    sched_loop_extent(s, loop, &cells);
    if (cells < 2 || !try_step(s, "split %%%s by %lld tail=if -> %%%s, %%%s", loop,
                               (long long)(cells < most ? cells : most), block, thread))
        return NULL;
    if (!try_step(s, "bind %%%s blockIdx.x", block) ||
        !try_step(s, "bind %%%s threadIdx.x", thread))
        return NULL;
    return thread;
}

/* The spatial loops of a block: those with numbers of rounds, and those that a run decides. */
typedef struct {
    Loops       fixed;
    uint32_t    n;
    const char *open[MAX_LOOPS];
    int64_t     most[MAX_LOOPS];
} Spatial;

static Spatial spatial_loops(const Sched *s, const BlockData *d, const char *name)
{
    Spatial x = {0};

    for (uint32_t i = 0; i < d->nspatial && x.n < MAX_LOOPS; i++) {
        const char *loop = intern_printf(s->c->strings, "%s.%s", name, d->iter[i]->name);

        if (d->iter[i]->below) {
            x.most[x.n] = d->iter[i]->hi + 1;
            x.open[x.n++] = loop;
        } else {
            loops_add(s, &x.fixed, loop); /* one cell: no loop */
        }
    }
    return x;
}

/* What a run decides outside, in order. */
static void turn_out(Sched *s, const Spatial *x)
{
    const Loops *fixed = &x->fixed;
    StrBuf       loops = strbuf(s->c->arena);

    for (uint32_t i = 0; i < x->n; i++)
        str_printf(&loops, i ? ", %%%s" : "%%%s", x->open[i]);
    if (x->n && fixed->n)
        try_step(s, "reorder %s, %s", loops.at, loops_text(s, 1, &fixed));
}

/* Which loop that a run decides is cut into blocks of threads; x->n: none, the others are.  Only
 * along x there may be any number of blocks. */
static uint32_t along_x(const Sched *s, const Spatial *x)
{
    uint32_t last = x->n && (!x->fixed.n || x->fixed.cells < LEAST_THREADS) ? x->n - 1 : x->n;

    for (uint32_t i = 0; i < x->n; i++)
        if (x->most[i] > s->target->max_blocks[1] || x->most[i] > s->target->max_blocks[2])
            return i;
    return last;
}

/* The loops as one; what is left of it outside of the cells of a thread, or NULL. */
static const char *fuse_fixed(Sched *s, const char *name, Loops *fixed, const CellTile *t)
{
    const char *fused = intern_printf(s->c->strings, "%s.f", name), *rows = NULL;

    if (t->rows > 1) {
        const char *outer = intern_printf(s->c->strings, "%s.rows", name);
        Loops       order = {0};
        rows = intern_printf(s->c->strings, "%s.row", name);
        step(s, "split %%%s by %lld -> %%%s, %%%s", t->row_loop, (long long)t->rows, outer, rows);
        for (uint32_t i = 0; i < fixed->n; i++)
            loops_add(s, &order, strcmp(fixed->at[i], t->row_loop) ? fixed->at[i] : outer);
        *fixed = order;
        loops_add(s, &order, rows);
        const Loops *list = &order;
        step(s, "reorder %s", loops_text(s, 1, &list));
    }
    const Loops *list = fixed;
    if (fixed->n > 1) {
        if (!try_step(s, "fuse %s -> %%%s", loops_text(s, 1, &list), fused))
            return NULL;
    } else {
        fused = fixed->at[0];
    }
    if (t->cells > 1) {
        step(s, "split %%%s by %lld -> %%%s.runs, %%%s.cell", fused, (long long)t->cells, name,
             name);
        fused = intern_printf(s->c->strings, "%s.runs", name);
        if (rows)
            step(s, "reorder %%%s, %%%s, %%%s.cell", fused, rows, name);
    }
    return fused;
}

/* A long sum's numbers are for all cells of a thread, one after the other. */
static void sum_together(Sched *s, const char *name, const CellTile *t)
{
    const BlockData *b = block_data(s, name);
    StrBuf           loops = strbuf(s->c->arena);
    uint32_t         n = 0;

    for (uint32_t i = b->nspatial; i < b->nspatial + b->nreduce; i++)
        if (b->iter[i]->hi > b->iter[i]->lo)
            str_printf(&loops, n++ ? ", %%%s.%s" : "%%%s.%s", name, b->iter[i]->name);
    if (!n) /* a sum of one number */
        return;
    if (t->rows > 1)
        str_printf(&loops, ", %%%s.row", name);
    if (t->cells > 1)
        str_printf(&loops, ", %%%s.cell", name);
    step(s, "reorder %s", loops.at);
}

/* What a thread has of a block is written out. */
static void write_out(Sched *s, const char *name, const CellTile *t)
{
    if (t->rows > 1)
        step(s, "unroll %%%s.row", name);
    if (t->cells > 1)
        step(s, "unroll %%%s.cell", name);
}

/* The spatial loops of a block as one, by threads; the name of the loop over threads or NULL. */
static const char *bind_block(Sched *s, const char *name, int64_t most, const CellTile *tile)
{
    static const char *const axis[] = {"blockIdx.y", "blockIdx.z"};
    const BlockData         *d = block_data(s, name);
    const char              *outer;

    if (!d || d->opaque || d->nseq)
        return NULL;
    Spatial  x = spatial_loops(s, d, name);
    uint32_t along = along_x(s, &x), n = 0;
    if (!x.n && !x.fixed.n)
        return NULL;
    turn_out(s, &x);
    if (along < x.n) {
        outer = x.open[along];
    } else {
        outer = fuse_fixed(s, name, &x.fixed, tile);
        if (!outer)
            return NULL;
    }
    for (uint32_t i = 0; i < x.n && n < COUNT(axis); i++)
        if (i != along && x.most[i] <= s->target->max_blocks[1 + n])
            n += try_step(s, "bind %%%s %s", x.open[i], axis[n]);
    return bind_cells(s, name, outer, most);
}

void bind_own_cells(Sched *s, const char *name, const CellTile *tile)
{
    Machine m = machine_of(s->target);

    bind_block(s, name, limit_gpu_threads(&m), tile);
    write_out(s, name, tile);
}

void sched_gpu(Sched *s)
{
    const char *names[MAX_BLOCKS], *only = NULL;
    uint32_t    n = sched_blocks(s, names, COUNT(names)), reductions = 0;
    int64_t     threads;

    sched_decide(s, decide, &threads);
    for (uint32_t i = 0; i + 1 < n; i++)
        try_step(s, "compute_inline %s", names[i]);
    n = sched_blocks(s, names, COUNT(names));
    for (uint32_t i = 0; i < n; i++)
        if (block_data(s, names[i])->nreduce)
            reductions++, only = names[i];
    bool chain = n == 2 && reductions == 1 && only == names[0]; /* a reduction and what follows */
    const char *follow = chain ? names[1] : NULL;
    CellTile    tile = {1, 1, NULL}, one = tile;
    if (n == 1 || chain)
        tile = decide_thread_cells(s, names[0]);
    for (uint32_t i = 0; i < n; i++) {
        if (names[i] == follow)
            continue;
        bool        sums = block_data(s, names[i])->nreduce;
        const char *thread = bind_block(s, names[i], threads, &tile);
        bool        many = thread && sums && tile.rows * tile.cells > 1;
        if (many)
            sum_together(s, names[i], &tile);
        if (thread && sums) {
            try_step(s, "cache_write %s reg at %%%s", names[i], thread);
            if (many)
                write_inner_sum(s, names[i]);
            else
                write_short_sum(s, names[i]);
        }
        if (follow && (!thread || !try_step(s, "reverse_compute_at %s %%%s", follow, thread)))
            bind_block(s, follow, threads, &one);
        write_out(s, names[i], &tile);
    }
}
