/* Elementwise and injective kernels: one nest over the result, inner loop as vectors, outer loop
 * divided among the threads. */
#include "schedules/cpu/cpu.h"

/* The last block of the nest and its iterators' loops; everything before it inlined. */
static const char *last_block(Sched *s)
{
    const char *names[64];
    uint32_t    n = sched_blocks(s, names, COUNT(names));

    if (!n)
        return NULL;
    for (uint32_t i = 0; i + 1 < n; i++)
        try_step(s, "compute_inline %s", names[i]);
    return names[n - 1];
}

void spatial_marks(Sched *s, const char *block)
{
    const Stmt *b = sched_block(s, block);
    int64_t     lanes = cpu_lanes(s), work = 1;

    if (!b || b->u.block.opaque || !b->u.block.nspatial)
        return;
    const BlockData *d = &b->u.block;
    const char      *inner = d->iter[d->nspatial - 1]->name;
    for (uint32_t i = 0; i < d->nspatial + d->nreduce; i++)
        work *= d->iter[i]->hi - d->iter[i]->lo + 1;
    int64_t last = iter_extent(s, block, inner);
    if (d->nreduce == 0 && lanes > 1) {
        if (last == lanes)
            try_step(s, "vectorize %%%s.%s", block, inner);
        else if (last > lanes && try_step(s, "split %%%s.%s by %lld tail=peel -> %%v.o, %%v.i",
                                          block, inner, (long long)lanes))
            try_step(s, "vectorize %%v.i#0");
    }
    if (is_tiny(s, work * 8))
        return;
    for (uint32_t i = 0; i < d->nspatial; i++) {
        const char *name = d->iter[i]->name;
        if (iter_extent(s, block, name) >= 4 && (i + 1 < d->nspatial || d->nreduce)) {
            try_step(s, "parallel %%%s.%s", block, name);
            return;
        }
    }
    try_step(s, "parallel %%v.o");
}

void sched_injective(Sched *s)
{
    const char *block = last_block(s);

    if (block)
        spatial_marks(s, block);
}
