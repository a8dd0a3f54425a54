/* Positions that memory says (ops/tensor/take.c), kept for the rows that read by the same ones.
 *
 *     %out[y, x] = %t[y, read(%ids[x]) % 20]
 *
 * An index of any value becomes a position by a remainder, which is more work than to move a cell.
 * So a block of rows makes a table of them first (step cache_index). */
#include "schedules/cpu/cpu.h"

typedef struct {
    const Atom *const *iter;
    uint32_t           n;
    bool               any;
    bool              *used; /* [n] */
} Says;

static void see_load(void *user, const Prim *p)
{
    Says *u = user;

    for (uint32_t d = 0; p->kind == PRIM_LOAD && d < p->u.load.n; d++) {
        const Idx *x = p->u.load.index[d];

        if (!idx_reads_memory(x))
            continue;
        u->any = true;
        for (uint32_t i = 0; i < u->n; i++)
            u->used[i] |= idx_uses(x, u->iter[i]);
    }
}

/* Rounds of the block's loops from i up to j; 0: a run decides. */
static double rounds(const BlockData *d, uint32_t i, uint32_t j)
{
    double n = 1;

    for (; i < j; i++)
        n *= d->iter[i]->below ? 0 : (double)atom_usual(d->iter[i]);
    return n;
}

PositionsPlan positions_plan(Sched *s, const char *block)
{
    const BlockData *d = &sched_block(s, block)->u.block;
    Machine          m = machine_of(s->target);
    bool             used[TE_MAX_AXES] = {0};
    Says             u = {.iter = d->iter, .n = d->nspatial, .used = used};
    PositionsPlan    p = {.block = block};
    uint32_t         last = 0;
    double           kept = 1;

    if (d->opaque || d->nreduce || d->nseq || d->nspatial > TE_MAX_AXES)
        return p;
    stmt_visit(sched_block(s, block), &(TirVisit){.user = &u, .prim = see_load});
    for (uint32_t i = 0; i < u.n; i++)
        if (used[i])
            last = i;
    /* The longest dimension whose rows read by the same positions. */
    for (uint32_t i = 0; i < last; i++)
        if (!used[i] && rounds(d, i, i + 1) > rounds(d, p.dim, p.dim + 1) * (p.rows > 0))
            p.dim = i, p.rows = atom_usual(d->iter[i]) / limit_least_parts(&m);
    if (!u.any || p.rows < 2 || rounds(d, 0, d->nspatial) == 0)
        return (PositionsPlan){.block = block};
    p.rows = p.rows < limit_position_rows(&m) ? p.rows : limit_position_rows(&m);
    for (uint32_t i = p.dim + 1; i <= last; i++)
        if (used[i])
            kept *= rounds(d, i, i + 1), p.by[p.n++] = i;
    double times = rounds(d, 0, p.dim + 1) / (double)p.rows, cells = rounds(d, 0, last + 1);
    p.each_time = position_cycles(cells);
    p.kept = times * (position_cycles(kept) + gather_cycles(&m, kept)) + gather_cycles(&m, cells);
    return p;
}

void keep_positions(Sched *s, const PositionsPlan *p)
{
    const BlockData *d = &sched_block(s, p->block)->u.block;
    const char      *row = d->iter[p->dim]->name;
    StrBuf           by = strbuf(s->c->arena);

    for (uint32_t i = 0; i < p->n; i++)
        str_printf(&by, "%s%%%s.%s", i ? ", " : "", p->block, d->iter[p->by[i]]->name);
    if (try_step(s, "split %%%s.%s by %lld tail=peel -> %%%s.%s, %%%s.row", p->block, row,
                 (long long)p->rows, p->block, row, p->block))
        try_step(s, "cache_index %s private %s at %%%s.%s", p->block, by.at, p->block, row);
}
