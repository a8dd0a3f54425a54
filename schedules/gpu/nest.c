/* Any kernel on a GPU: one cell a thread.
 *
 *   inline every elementwise block        padding and scalars too: a value is cheaper than a launch
 *   for each block that is left
 *     fuse its spatial loops -> f         split f by `threads` tail=if -> b, t
 *     bind b blockIdx.x                   bind t threadIdx.x
 *     cache_write block reg at t          the sum lives in a register, reduced in order
 *   reverse_compute_at last t             what follows the only reduction reads that register
 *
 * Each block that is left is a launch (passes/tir/launches.c); threads of one block read
 * neighbouring cells.  A step that does not fit is left out: the nest then runs as it is. */
#include "schedules/gpu/gpu.h"

#include <math.h>

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

const char *bind_cells(Sched *s, const char *name, const char *loop, int64_t most)
{
    const char *thread = intern_printf(s->c->strings, "%s.t", name);
    int64_t     cells = 0;

    if (!sched_loop_extent(s, loop, &cells) || cells < 2 ||
        !try_step(s, "split %%%s by %lld tail=if -> %%%s.b, %%%s", loop,
                  (long long)(cells < most ? cells : most), name, thread))
        return NULL;
    if (!try_step(s, "bind %%%s.b blockIdx.x", name) ||
        !try_step(s, "bind %%%s threadIdx.x", thread))
        return NULL;
    return thread;
}

/* The spatial loops of a block as one, by threads; the name of the loop over threads or NULL. */
static const char *bind_block(Sched *s, const char *name, int64_t most)
{
    const BlockData *d = block_data(s, name);
    StrBuf           loops = strbuf(s->c->arena);
    uint32_t         n = 0;
    const char      *outer = NULL;

    if (!d || d->opaque || d->nseq)
        return NULL;
    for (uint32_t i = 0; i < d->nspatial; i++) {
        int64_t     e = 0;
        const char *loop = intern_printf(s->c->strings, "%s.%s", name, d->iter[i]->name);
        if (!sched_loop_extent(s, loop, &e))
            continue; /* one cell: no loop */
        str_printf(&loops, n++ ? ", %%%s" : "%%%s", loop);
        outer = loop;
    }
    if (n > 1) {
        outer = intern_printf(s->c->strings, "%s.f", name);
        if (!try_step(s, "fuse %s -> %%%s", loops.at, outer))
            return NULL;
    }
    return outer ? bind_cells(s, name, outer, most) : NULL;
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
    for (uint32_t i = 0; i < n; i++) {
        if (names[i] == follow)
            continue;
        bool        sums = block_data(s, names[i])->nreduce;
        const char *thread = bind_block(s, names[i], threads);
        if (thread && sums) {
            try_step(s, "cache_write %s reg at %%%s", names[i], thread);
            write_short_sum(s, names[i]);
        }
        if (follow && (!thread || !try_step(s, "reverse_compute_at %s %%%s", follow, thread)))
            bind_block(s, follow, threads);
    }
}
