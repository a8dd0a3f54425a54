/* Recurrent cells on a GPU: a block of threads goes through the steps of a direction.
 *
 *     bind d blockIdx.x
 *     split cell.j by 256 tail=if -> r, t;  bind t threadIdx.x     a unit a thread, all of its
 * gates compute_at sum;  cache_write sum reg     for some rows of the batch at a time: a weight
 * that is loaded is used for all of them
 *
 * The state lies in memory that the block shares.  A step needs what all units have made of the one
 * before, and nothing makes blocks wait for each other: so one of them does it, and its threads
 * read all weights of the direction in each step.  A state that a block cannot share is one
 * thread's for each direction. */
#include "schedules/gpu/gpu.h"

#include <math.h>
#include <string.h>

typedef struct {
    int64_t threads, rows;     /* rows: of the batch that a thread has at a time */
    int64_t units, all, gates; /* gates: of the largest product */
    int64_t written;           /* rounds of a sum that are written out */
    int64_t sums, bytes;       /* of all products of a unit; of a weight */
} CellPlan;

static int64_t extent_of(const Sched *s, const char *block, const char *iter)
{
    const Stmt *b = sched_block(s, block);

    for (uint32_t i = 0; b && i < b->u.block.nspatial; i++)
        if (!strcmp(b->u.block.iter[i]->name, iter))
            return b->u.block.iter[i]->hi + 1;
    return 0;
}

static void decide_cells(Sched *s, void *plan)
{
    CellPlan  *p = plan;
    Machine    m = machine_of(s->target);
    Candidates threads = candidates(s), rows = candidates(s);
    int64_t    least = limit_gpu_least_threads(&m), most = least;

    p->written = limit_gpu_written(&m);
    while (most < p->units && 2 * most <= m.block_threads)
        most *= 2;
    for (int64_t n = most; n >= least; n /= 2) {
        DeviceState z = {p->units, p->all, p->sums, p->bytes};
        candidate(&threads, n, 0, device_state_cycles(&m, &z, n));
    }
    p->threads = pick_factor(s, "threads", &threads);
    for (int64_t n = 1; n <= p->all && n * p->gates <= limit_gpu_state_sums(&m); n++)
        if (p->all % n == 0)
            candidate(&rows, n, 0, (double)(p->all / n));
    p->rows = pick_factor(s, "rows", &rows);
}

/* Cells of a block without sums: one a thread. */
static void cell_a_thread(Sched *s, const char *b, int64_t threads)
{
    const BlockData *d = &sched_block(s, b)->u.block;
    Loops            l = {0};

    for (uint32_t i = 0; i < d->nspatial; i++)
        if (strcmp(d->iter[i]->name, "d") != 0)
            loops_add(s, &l, arena_printf(s->c->scratch, "%s.%s", b, d->iter[i]->name));
    loops_fuse(s, &l, arena_printf(s->c->scratch, "%s.f", b));
    if (!l.n)
        return;
    step(s, "split %%%s by %lld tail=if -> %%%s.r, %%%s.t", l.at[0], (long long)threads, b, b);
    step(s, "reorder %%%s.t, %%%s.r", b, b);
    step(s, "bind %%%s.t threadIdx.x", b);
}

/* The units of a definition by threads, each with what its product sums for them. */
static void units_a_thread(Sched *s, const RecurrentPart *part, const CellPlan *p)
{
    const char *h = part->host, *b = part->product;
    bool        gates = extent_of(s, h, "g") > 0, sums = extent_of(s, b, "g") > 0;

    step(s, "fold_init %s -> %s", part->gates, b);
    try_step(s, "contract %s", b);
    for (uint32_t i = 0; i < COUNT(part->follow) && part->follow[i]; i++)
        step(s, "reverse_compute_at %s %%%s.j", part->follow[i], h);
    step(s, gates ? "reorder %%%s.j, %%%s.n, %%%s.g" : "reorder %%%s.j, %%%s.n", h, h, h);
    step(s, "split %%%s.j by %lld tail=if -> %%%s.r, %%%s.t", h, (long long)p->threads, h, h);
    step(s, "split %%%s.n by %lld -> %%%s.nb, %%%s.nr", h, (long long)p->rows, h, h);
    step(s, "reorder %%%s.t, %%%s.r, %%%s.nb, %%%s.nr", h, h, h, h);
    step(s, "bind %%%s.t threadIdx.x", h);
    step(s, "compute_at %s %%%s.nb", b, h);
    step(s, sums ? "reorder %%%s.k, %%%s.g, %%%s.n" : "reorder %%%s.k, %%%s.n", b, b, b);
    step(s, "cache_write %s reg at %%%s.nb", b, h);
    step(s, "unroll %%%s.nr", h);
    if (gates)
        try_step(s, "unroll %%%s.g", h);
    step(s, sums ? "unroll %%%s.g, %%%s.n" : "unroll %%%s.n", b, b);
    step(s, "unroll_hint %%%s.k by %lld", b, (long long)p->written);
}

void sched_gpu_recurrent(Sched *s)
{
    static const char *const edges[] = {"state.init", "cell.init", "h", "c"};
    const RecurrentPart     *parts = recurrent_parts(s);
    CellPlan                 p = {0};
    int64_t                  held = 2; /* tensors of a step that threads share: two of the state */

    if (!sched_block(s, "state") || !extent_of(s, "state", "t")) {
        s->refusal = "'state' is not that of a recurrent cell";
        return;
    }
    p.units = extent_of(s, "state", "j");
    p.all = extent_of(s, "state", "n");
    p.bytes = dtype_bytes(sched_block(s, "state")->kids[0]->u.store.buffer->dtype);
    for (const RecurrentPart *part = parts; part->host; part++) {
        int64_t g = extent_of(s, part->product, "g"), kept = extent_of(s, part->host, "g");
        g = g > 0 ? g : 1;
        held += strcmp(part->host, "state") != 0 ? kept > 0 ? kept : 1 : 0;
        p.sums += g;
        p.gates = g > p.gates ? g : p.gates;
    }
    if (held * p.all * p.units * p.bytes > machine_of(s->target).shared_bytes) {
        sched_gpu(s);
        return;
    }
    sched_decide(s, decide_cells, &p);
    step(s, "bind %%d blockIdx.x");
    for (const RecurrentPart *part = parts; part->host; part++)
        units_a_thread(s, part, &p);
    for (uint32_t i = 0; i < COUNT(edges); i++)
        if (sched_block(s, edges[i]))
            cell_a_thread(s, edges[i], p.threads);
}
