/* What is put together along a row.
 *
 *   %out[i, j] = select(j < 861, %x[i, j], %y[i, j - 861])
 *
 * A vector with cells of both would load each under a mask.  So the row's loop is cut where its
 * conditions change, and each part becomes vectors for itself. */
#include "schedules/cpu/cpu.h"

#include <string.h>

enum { MAX_CUTS = 9 };

typedef struct {
    const Atom *of; /* the row's iterator */
    int64_t     cells, at[MAX_CUTS];
    uint32_t    n; /* more than MAX_CUTS - 1: too many */
} Cuts;

static void add_cut(Cuts *c, int64_t at)
{
    uint32_t i = 0;

    if (at <= 0 || at >= c->cells)
        return;
    while (i < c->n && c->at[i] < at)
        i++;
    if (i < c->n && c->at[i] == at)
        return;
    if (c->n + 1 >= MAX_CUTS) {
        c->n = MAX_CUTS;
        return;
    }
    memmove(c->at + i + 1, c->at + i, (c->n - i) * sizeof *c->at);
    c->at[i] = at;
    c->n++;
}

/* A condition asks whether a position along the row is negative. */
static void see_condition(void *user, const Prim *p)
{
    Cuts      *c = user;
    const Idx *x = p->kind == PRIM_INDEX ? p->u.index : NULL;

    if (!x || c->n >= MAX_CUTS || x->nterms != 1 || x->t[0].atom != c->of)
        return;
    if (x->t[0].coef == 1)
        add_cut(c, -x->c0);
    else if (x->t[0].coef == -1)
        add_cut(c, x->c0 + 1);
}

static void see_select(void *user, const Prim *p)
{
    if (p->kind == PRIM_SELECT)
        prim_visit(p->kids[0], &(TirVisit){.user = user, .prim = see_condition});
}

/* From the last one on. */
bool part_vectors(Sched *s, const char *block)
{
    const Stmt *b = sched_block(s, block);
    const Atom *inner = b->u.block.iter[b->u.block.nspatial - 1];
    Machine     m = machine_of(s->target);
    Cuts        c = {.of = inner, .cells = iter_extent(s, block, inner->name)};
    int64_t     lanes = cpu_lanes(s), end = c.cells;
    Sched       before = *s;

    stmt_visit(b, &(TirVisit){.user = &c, .prim = see_select});
    if (!c.n || c.n >= MAX_CUTS || inner->below || inner->lo)
        return false;
    for (uint32_t i = c.n; i-- > 0;)
        if (!try_step(s, "partition %%%s.%s#0 at %lld", block, inner->name, (long long)c.at[i])) {
            *s = before;
            return false;
        }
    for (uint32_t i = c.n + 1; i-- > 0; end = i ? c.at[i - 1] : 0) {
        int64_t cells = end - (i ? c.at[i - 1] : 0);

        if (cells == lanes || (cells < lanes && cells >= limit_least_rest(&m)))
            try_step(s, "vectorize %%%s.%s#%u", block, inner->name, i);
        else if (cells > lanes &&
                 try_step(s, "split %%%s.%s#%u by %lld tail=peel -> %%%s.vo%u, %%%s.vi%u", block,
                          inner->name, i, (long long)lanes, block, i, block, i))
            try_step(s, "vectorize %%%s.vi%u%s", block, i,
                     cells % lanes >= limit_least_rest(&m) ? "" : "#0");
    }
    return true;
}
