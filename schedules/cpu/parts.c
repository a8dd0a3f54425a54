/* What is put together along a row.
 *
 *   %out[i, j] = select(j < 861, %x[i, j], %y[i, j - 861])
 *
 * A vector with cells of both would load each under a mask.  So the row's loop is cut where its
 * conditions change, and each part becomes vectors for itself.  Cells of j may be a few numbers
 * side by side, in dimensions of their own: with them a part is one line.
 *
 *   %out[i, j] = select(j < 1, %x[i, j], %y[i, j - 1])
 *
 * Parts of a few cells each go by turns: a vector of several rows is a run of cells of each
 * operand, and shuffles (backends/llvm/codegen_near.c). */
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

typedef struct {
    Sched      *s;
    const Atom *of, *inner; /* a dimension, and one behind it */
    int64_t     step;       /* cells of `inner` in a step of `of` */
    bool        on;
} Together;

static void see_load(void *user, const Prim *p)
{
    Together *l = user;

    if (p->kind != PRIM_LOAD)
        return;
    const Idx *at = flat_index(l->s, &p->u.load);
    l->on &= idx_coef(at, l->of) == l->step * idx_coef(at, l->inner) && idx_coef(at, l->of) > 0;
}

/* Dimensions behind the one that is cut, whose cells lie together in all that is loaded; 0: none.
 */
static uint32_t dims_behind(Sched *s, const Stmt *b, int64_t *cells)
{
    const BlockData *d = &b->u.block;
    uint32_t         n = 0;
    Together         l = {.s = s, .on = true};

    for (*cells = 1; n + 1 < d->nspatial; n++) {
        const Atom *a = d->iter[d->nspatial - 1 - n];
        Cuts        c = {.of = a, .cells = atom_usual(a)};

        stmt_visit(b, &(TirVisit){.user = &c, .prim = see_select});
        if (c.n || a->below || a->lo || *cells * c.cells >= cpu_lanes(s))
            break;
        *cells *= c.cells;
    }
    l.of = d->iter[d->nspatial - 1 - n];
    l.step = *cells;
    for (uint32_t i = n; i-- > 0 && l.on;) {
        l.inner = d->iter[d->nspatial - 1 - i];
        if (atom_usual(l.inner) == 1)
            continue;
        stmt_visit(b, &(TirVisit){.user = &l, .prim = see_load});
        l.step /= atom_usual(l.inner);
    }
    return l.on ? n : 0;
}

/* The loop of a part with the dimensions behind it, by name. */
static const char *part_loop(Sched *s, const char *block, uint32_t part, uint32_t behind)
{
    const BlockData *d = &sched_block(s, block)->u.block;
    uint32_t         at = d->nspatial - 1 - behind;
    StrBuf           loops = strbuf(s->c->arena);

    if (!behind)
        return intern_printf(s->c->strings, "%s.%s#%u", block, d->iter[at]->name, part);
    for (uint32_t i = at; i < d->nspatial; i++)
        str_printf(&loops, "%s%%%s.%s#%u", i > at ? ", " : "", block, d->iter[i]->name, part);
    try_step(s, "fuse %s -> %%%s.part%u", loops.at, block, part);
    return intern_printf(s->c->strings, "%s.part%u", block, part);
}

/* From the last one on. */
bool part_vectors(Sched *s, const char *block)
{
    const Stmt *b = sched_block(s, block);
    Machine     m = machine_of(s->target);
    int64_t     together;
    uint32_t    behind = dims_behind(s, b, &together);
    const Atom *inner = b->u.block.iter[b->u.block.nspatial - 1 - behind];
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
        int64_t     cells = (end - (i ? c.at[i - 1] : 0)) * together;
        const char *part = part_loop(s, block, i, behind);

        if (cells == lanes || (cells < lanes && cells >= limit_least_rest(&m)))
            try_step(s, "vectorize %%%s", part);
        else if (cells > lanes &&
                 try_step(s, "split %%%s by %lld tail=peel -> %%%s.vo%u, %%%s.vi%u", part,
                          (long long)lanes, block, i, block, i))
            try_step(s, "vectorize %%%s.vi%u%s", block, i,
                     cells % lanes >= limit_least_rest(&m) ? "" : "#0");
    }
    return true;
}

/* ---- parts by turns ------------------------------------------------------------------------------- */

enum { MAX_PARTS = 4 }; /* runs that codegen_near.c puts together */

typedef struct {
    const Idx *load[MAX_PARTS], *store;
    uint32_t   n;
} Parts;

/* Is the block nothing but a choice among loads by conditions on its last iterator? */
static bool see_parts(Sched *s, const Stmt *b, Cuts *c, Parts *p)
{
    const StoreData *d = &b->kids[0]->u.store;
    LoadData         to = {.buffer = d->buffer, .n = d->n, .index = d->index};
    const Prim      *v = d->value;

    p->store = flat_index(s, &to);
    for (p->n = 0; p->n < MAX_PARTS; v = v->kids[2]) {
        const Prim *cell = v->kind == PRIM_SELECT ? v->kids[1] : v;

        if (cell->kind != PRIM_LOAD || cell->u.load.mask)
            return false;
        p->load[p->n++] = flat_index(s, &cell->u.load);
        if (v->kind != PRIM_SELECT)
            break;
        prim_visit(v->kids[0], &(TirVisit){.user = c, .prim = see_condition});
    }
    return v->kind == PRIM_LOAD && c->n + 1 == p->n;
}

/* Does the dimension go on where so many rows end, in the result and in all parts? */
static bool rows_go_on(const Parts *p, const Atom *a, int64_t rows, int64_t cells, int64_t each)
{
    if (!a->below && !a->lo && atom_usual(a) == 1)
        return true;
    bool on = !a->below && !a->lo && idx_coef(p->store, a) == rows * cells;

    for (uint32_t i = 0; i < p->n; i++)
        on = on && idx_coef(p->load[i], a) == rows * each;
    return on;
}

bool turned_parts(Sched *s, const char *block, uint32_t *dims)
{
    const Stmt      *b = sched_block(s, block);
    const BlockData *d = &b->u.block;
    Machine          m = machine_of(s->target);
    int64_t          lanes, wide, rows = 1, line;
    uint32_t         n = 1;
    Sched            before = *s;
    Parts            p;

    if (d->opaque || d->nreduce || d->nseq || d->nspatial < 2 || b->nkids != 1 ||
        b->kids[0]->kind != STMT_STORE || cpu_lanes(s) < LEAST_LANES)
        return false;
    wide = lanes = s->target->vector_bytes / dtype_bytes(b->kids[0]->u.store.buffer->dtype);
    const Atom *inner = d->iter[d->nspatial - 1];
    Cuts        c = {.of = inner, .cells = atom_usual(inner)};
    if (inner->below || inner->lo || !see_parts(s, b, &c, &p) || p.n < 2 || c.cells % p.n)
        return false;
    int64_t each = c.cells / p.n;
    for (uint32_t i = 0; i < c.n; i++)
        if (c.at[i] != each * (i + 1))
            return false;
    for (uint32_t i = 0; i < p.n; i++)
        if (each > 1 && idx_coef(p.load[i], inner) != 1)
            return false;
    for (; n < d->nspatial; n++) {
        const Atom *a = d->iter[d->nspatial - 1 - n];

        if (!rows_go_on(&p, a, rows, c.cells, each))
            break;
        rows *= atom_usual(a);
    }
    while (wide % c.cells && wide < limit_wide_lanes(&m))
        wide += lanes;
    int64_t run = wide / p.n; /* cells of each part in a vector */
    if (wide % c.cells || run < 2 || run > lanes || (run & (run - 1)) || rows * c.cells < wide ||
        strcmp(line_loop(s, block, n, &line), "line"))
        return false;
    if (line == wide ? !try_step(s, "vectorize %%%s.line", block)
                     : !try_step(s, "split %%%s.line by %lld tail=peel -> %%%s.vo, %%%s.vi", block,
                                 (long long)wide, block, block) ||
                           !try_step(s, "vectorize %%%s.vi#0", block)) {
        *s = before;
        return false;
    }
    *dims = n;
    return true;
}
