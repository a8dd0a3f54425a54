/* Running sums.  Along rows what was summed so far stays in a register, and several rows that do
 * not wait for each other go on side by side:
 *
 *     split i0 by 4 -> rows, row; distribute row; unroll row; set_scope total reg
 *
 * Along another axis the row of the result before is added to, as vectors. */
#include "schedules/cpu/cpu.h"

#include <math.h>

typedef struct {
    int64_t rows, cells; /* of a row */
    int64_t together;
} ScanPlan;

/* A cell takes as long as one addition, or the stores of all rows. */
static void decide_scan(Sched *s, void *plan)
{
    ScanPlan  *p = plan;
    Candidates k = candidates(s);
    Machine    m = machine_of(s->target);

    for (int64_t n = 1; n == 1 || (n <= limit_scan_most_rows(&m) && n <= p->rows); n *= 2)
        candidate(&k, n, 0, (double)(ceil_div(p->rows, n) * p->cells) * fmax((double)n, m.latency));
    p->together = pick_factor(s, "rows", &k);
}

void sched_scan(Sched *s)
{
    const Stmt *out = sched_block(s, "out"), *total = sched_block(s, "total");
    bool        alone = is_tiny_kernel(s);

    if (!out || out->u.block.opaque || (!total && !has_block(s, "out.init"))) {
        s->refusal = "'out' is no running sum";
        return;
    }
    const BlockData *b = &out->u.block;
    const char      *first = b->nspatial > 1 ? b->iter[0]->name : NULL;
    if (!total) {
        vector_marks(s, "out.init");
        vector_marks(s, "out");
        if (first && loop_extent(s, first) > 1 && !alone)
            try_step(s, "parallel %%%s", first);
        return;
    }
    if (!first)
        return;
    const Atom *row = b->iter[b->nspatial - 2], *cell = b->iter[b->nspatial - 1];
    ScanPlan    p = {.rows = atom_usual(row), .cells = atom_usual(cell)};
    sched_decide(s, decide_scan, &p);
    if (p.together > 1 && try_step(s, "split %%%s by %lld tail=peel -> %%rows, %%row", row->name,
                                   (long long)p.together)) {
        if (try_step(s, "distribute %%row"))
            try_step(s, "unroll %%row");
        first = b->nspatial > 2 ? first : "rows";
    }
    if (cell->lo == 0 && !cell->below && iter_extent(s, "total", cell->name) > 0)
        try_step(s, "set_scope %%total reg");
    if (loop_extent(s, first) > 1 && !alone)
        try_step(s, "parallel %%%s", first);
}
