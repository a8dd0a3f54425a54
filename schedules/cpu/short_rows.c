/* Reductions of rows shorter than a vector that lie one behind the other: the lanes of a vector are
 * as many rows.
 *
 *   %max[y, x] = max[k<12] %x[y, x, k]
 *
 *   for line // 16 { %max.reg[: 16]; for k < 12, written out { %max.reg = max(.., %x[rows, k]) } }
 *
 * Column k of so many rows is one of a tile that is transposed in registers
 * (backends/llvm/codegen_transpose.c).  One stage, or two of which the second has a cell for each
 * row, go along all rows as one line.  With more (softmax), a block of rows of the last dimension
 * goes through all stages; those that have a cell for each cell of a row take several rows at a
 * time, which end with a vector, or each for itself. */
#include "schedules/cpu/cpu.h"

#include <string.h>

static int64_t cells_of(const Atom *iter)
{
    return iter->hi - iter->lo + 1;
}

/* Cells of a block's iterators from i up to j; 0: a run decides. */
static int64_t cells_between(const BlockData *d, uint32_t i, uint32_t j)
{
    int64_t n = 1;

    for (; i < j; i++)
        n = d->iter[i]->below ? 0 : n * cells_of(d->iter[i]);
    return n;
}

/* The only one of these iterators of more than a cell; j: there are several, or none. */
static uint32_t wide_iter(const BlockData *d, uint32_t i, uint32_t j)
{
    uint32_t found = j;

    for (uint32_t k = i; k < j; k++)
        if (cells_of(d->iter[k]) > 1) {
            if (found < j)
                return j;
            found = k;
        }
    return found;
}

typedef struct {
    bool math, narrow; /* something like an exponential; what is no 32 bits wide */
} Work;

static void see_prim(void *user, const Prim *p)
{
    Work *w = user;

    w->math |= p->kind == PRIM_MATH;
    w->narrow |= p->kind == PRIM_LOAD && p->u.load.buffer->dtype.bits != 32;
}

/* What the cells of a row take, or reading them. */
static Work work_of(Sched *s, const char *name, uint32_t rows)
{
    const Stmt *b = sched_block(s, name);
    Work        w = {0};

    stmt_visit(b, &(TirVisit){.user = &w, .prim = see_prim});
    w.math &= b->u.block.nreduce || cells_between(&b->u.block, rows, b->u.block.nspatial) > 1;
    return w;
}

static bool fits_block(Sched *s, const char *name, uint32_t rows, int64_t cells)
{
    const Stmt      *b = sched_block(s, name);
    const BlockData *d = &b->u.block;
    const Stmt      *store = b->kids[b->nkids - 1];
    int64_t          own = cells_between(d, rows, d->nspatial);

    if (d->opaque || d->nseq || b->nkids != 1u + d->has_init || store->kind != STMT_STORE ||
        store->u.store.buffer->dtype.bits != 32)
        return false;
    if (d->nreduce)
        return own == 1 && cells_between(d, d->nspatial, d->nspatial + d->nreduce) == cells &&
               (cells == 1 || sums_rows(s, name));
    return own == 1 || (own == cells && wide_iter(d, rows, d->nspatial) < d->nspatial);
}

/* The last of the rows' dimensions that has more than a cell; `rows`: there is none. */
static uint32_t row_dim(const BlockData *d, uint32_t rows)
{
    uint32_t r = rows;

    while (r > 0 && cells_of(d->iter[r - 1]) == 1)
        r--;
    return r ? r - 1 : rows;
}

static bool is_one_line(const Sched *s, const char *const *names, uint32_t n, uint32_t rows)
{
    const BlockData *l = &sched_block(s, names[n - 1])->u.block;

    return n == 1 || (n == 2 && sched_block(s, names[0])->u.block.nreduce && !l->nreduce &&
                      cells_between(l, rows, l->nspatial) == 1);
}

static bool fits(Sched *s, const char *const *names, uint32_t n, uint32_t rows)
{
    const BlockData *l = &sched_block(s, names[n - 1])->u.block;
    Machine          m = machine_of(s->target);
    int64_t          lanes = cpu_lanes(s), cells = 0, most = limit_beside_plain_cells(&m);

    for (uint32_t i = 0; i < n && !cells; i++) {
        const BlockData *d = &sched_block(s, names[i])->u.block;
        if (d->nreduce)
            cells = cells_between(d, d->nspatial, d->nspatial + d->nreduce);
    }
    if (lanes < LEAST_LANES || !rows || rows > l->nspatial || cells < 1 ||
        cells > limit_beside_cells(&m))
        return false;
    for (uint32_t i = 0; i < n; i++) {
        Work w = work_of(s, names[i], rows);
        if (w.narrow || !fits_block(s, names[i], rows, cells))
            return false;
        if (w.math)
            most = limit_beside_cells(&m);
    }
    if (is_one_line(s, names, n, rows))
        return cells > 1 && cells_between(l, 0, rows) >= lanes;
    uint32_t r = row_dim(l, rows);
    return cells <= most && r < rows && cells_between(l, r, r + 1) >= lanes;
}

/* The reduction's loops outside of the rows', which are the lanes of sums in registers. */
static void sum_beside(Sched *s, const char *block, const char *at, const char *line)
{
    const BlockData *d = &sched_block(s, block)->u.block;
    StrBuf           sums = strbuf(s->c->arena);

    for (uint32_t i = d->nspatial; i < d->nspatial + d->nreduce; i++)
        str_printf(&sums, "%%%s.%s, ", block, d->iter[i]->name);
    step(s, "reorder %s%%%s", sums.at, line);
    step(s, "cache_write %s reg at %%%s", block, at);
    try_step(s, "vectorize %%%s", line);
    for (uint32_t i = d->nspatial; i < d->nspatial + d->nreduce; i++)
        try_step(s, "unroll %%%s.%s", block, d->iter[i]->name);
}

/* All rows as one line. */
static void line_of_rows(Sched *s, const char *const *names, uint32_t n)
{
    const char      *block = names[0];
    const BlockData *d = &sched_block(s, block)->u.block;
    StrBuf           loops = strbuf(s->c->arena);
    const char      *lo = intern_printf(s->c->strings, "%s.lo", block),
               *li = intern_printf(s->c->strings, "%s.li", block);
    int64_t     work = block_work(s, block);
    const char *line = intern_printf(s->c->strings, "%s.%s", block, d->iter[0]->name);

    for (uint32_t i = 0; i < d->nspatial; i++)
        str_printf(&loops, "%s%%%s.%s", i ? ", " : "", block, d->iter[i]->name);
    if (d->nspatial > 1) {
        line = intern_printf(s->c->strings, "%s.line", block);
        step(s, "fuse %s -> %%%s", loops.at, line);
    }
    step(s, "split %%%s by %lld tail=peel -> %%%s, %%%s", line, (long long)cpu_lanes(s), lo, li);
    sum_beside(s, block, lo, li);
    if (n > 1)
        step(s, "reverse_compute_at %s %%%s", names[1], lo);
    if (!is_tiny(s, work))
        try_step(s, "parallel %%%s", lo);
}

/* A stage that has the cells of a row, in a block of so many rows. */
static void cells_of_rows(Sched *s, const char *block, const char *row, const char *own,
                          int64_t cells)
{
    Machine m = machine_of(s->target);
    int64_t lanes = cpu_lanes(s), wide = lanes;

    if (lanes * cells <= limit_wide_lanes(&m))
        wide = lanes * cells;
    while (wide % cells && wide < limit_wide_lanes(&m))
        wide += lanes;
    if (wide % cells) {
        if (cells >= limit_least_rest(&m))
            try_step(s, "vectorize %%%s", own);
        return;
    }
    if (!try_step(s, "fuse %%%s, %%%s -> %%%s.line", row, own, block))
        return;
    if (wide == lanes * cells)
        try_step(s, "vectorize %%%s.line", block);
    else if (try_step(s, "split %%%s.line by %lld tail=peel -> %%%s.vo, %%%s.vi", block,
                      (long long)wide, block, block))
        try_step(s, "vectorize %%%s.vi", block);
}

/* A block of rows through all stages. */
static void rows_by_stages(Sched *s, const char *const *names, uint32_t n, uint32_t rows)
{
    const char      *last = names[n - 1];
    const BlockData *l = &sched_block(s, last)->u.block;
    Machine          m = machine_of(s->target);
    uint32_t         r = row_dim(l, rows), outer = 0;
    const char      *ro = intern_printf(s->c->strings, "%s.ro", last);
    bool             alone = is_tiny_kernel(s);

    step(s, "split %%%s.%s by %lld tail=peel -> %%%s, %%%s.ri", last, l->iter[r]->name,
         (long long)cpu_lanes(s), ro, last);
    while (outer < r && iter_extent(s, last, l->iter[outer]->name) < limit_least_parts(&m))
        outer++;
    bool blocks = !alone && outer == r && try_step(s, "parallel %%%s", ro);
    for (uint32_t i = n - 1; i-- > 0;)
        step(s, "compute_at %s %%%s", names[i], ro);
    for (uint32_t i = 0; i < n; i++) {
        const BlockData *d = &sched_block(s, names[i])->u.block;
        uint32_t         own = wide_iter(d, rows, d->nspatial);
        const char      *row =
            intern_printf(s->c->strings, "%s.%s", names[i], i + 1 < n ? d->iter[r]->name : "ri");

        if (!blocks && i + 1 < n)
            try_step(s, "set_scope %s stack", names[i]);
        if (d->nreduce)
            sum_beside(s, names[i], ro, row);
        else if (own == d->nspatial)
            try_step(s, "vectorize %%%s", row);
        else
            cells_of_rows(s, names[i], row,
                          intern_printf(s->c->strings, "%s.%s", names[i], d->iter[own]->name),
                          cells_between(d, rows, d->nspatial));
    }
    if (!alone && !blocks && outer < r)
        try_step(s, "parallel %%%s.%s", last, l->iter[outer]->name);
}

bool short_rows_marks(Sched *s, const char *const *names, uint32_t n, uint32_t rows)
{
    Sched before = *s;

    if (is_one_line(s, names, n, rows))
        line_of_rows(s, names, n);
    else
        rows_by_stages(s, names, n, rows);
    if (!s->refusal)
        return true;
    *s = before;
    return false;
}

bool has_short_rows(Sched *s, const char *const *names, uint32_t n, uint32_t rows)
{
    Sched before = *s; /* steps are only tried */
    bool  can = fits(s, names, n, rows) && short_rows_marks(s, names, n, rows);

    *s = before;
    return can;
}
