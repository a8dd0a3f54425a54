/* Attention by a state, nn.linear_attention: a scan over steps, a matrix for each head.
 *
 *     split %found.j by 64 -> %found.o, %found.i; reorder ..; cache_write found reg at %found.o
 *
 * What is found for the key and what is read for the queries are products of a row with the state:
 * vectors of columns are summed in registers while the state streams by, once for each tile.  Heads
 * are divided among threads. */
#include "schedules/cpu/cpu.h"

#include <math.h>

typedef struct {
    int64_t columns, keys, lanes;
    int64_t vectors; /* of a tile */
} ColumnPlan;

/* A tile is bound by its loads, or by the latency of its sums. */
static void decide_columns(Sched *s, void *plan)
{
    ColumnPlan *p = plan;
    Candidates  k = candidates(s);
    Machine     m = machine_of(s->target);
    int64_t     all = ceil_div(p->columns, p->lanes);

    for (int64_t n = 1; n <= limit_recurrent_sums(&m) && n <= all && n + 2 <= m.regs; n++)
        candidate(&k, n, 0,
                  (double)(ceil_div(all, n) * p->keys) *
                      fmax((double)n / fma_rate(&m, p->lanes), m.latency));
    p->vectors = pick_factor(s, "vectors", &k);
}

/* sum[j] = sum[d] .. of a definition: tiles of columns, whose sums are in registers. */
static void tile_product(Sched *s, const char *name, const ColumnPlan *p)
{
    const Stmt *b = sched_block(s, name);

    if (!b || b->u.block.opaque || p->columns < p->lanes)
        return;
    if (!try_step(s, "split %%%s.j by %lld tail=peel -> %%%s.o, %%%s.i", name,
                  (long long)(p->vectors * p->lanes), name, name))
        return;
    if (!try_step(s, "split %%%s.i by %lld -> %%%s.v, %%%s.l", name, (long long)p->lanes, name,
                  name) ||
        !try_step(s, "reorder %%%s.o, %%%s.d, %%%s.v, %%%s.l", name, name, name, name))
        return;
    try_step(s, "cache_write %s reg at %%%s.o", name, name);
    try_step(s, "vectorize %%%s.l", name);
    try_step(s, "unroll %%%s.v", name);
}

void sched_linear_attention(Sched *s)
{
    const Stmt *state = sched_block(s, "state");
    ColumnPlan  p;

    if (!state || state->u.block.opaque || state->u.block.nspatial != 5) {
        s->refusal = "'state' is no state of keys by values";
        return;
    }
    const BlockData *b = &state->u.block;
    const char      *head = b->iter[1]->name;

    p = (ColumnPlan){
        .columns = atom_usual(b->iter[4]), .keys = atom_usual(b->iter[3]), .lanes = cpu_lanes(s)};
    if (has_block(s, "change"))
        try_step(s, "compute_inline change");
    sched_decide(s, decide_columns, &p);
    tile_product(s, "found", &p);
    tile_product(s, "y", &p);
    vector_marks(s, "state.init");
    vector_marks(s, "state");
    vector_marks(s, "last");
    if (loop_extent(s, head) > 1 && !is_tiny_kernel(s))
        try_step(s, "parallel %%%s", head);
}
