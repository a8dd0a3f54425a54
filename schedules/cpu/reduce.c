/* Reductions: softmax, normalizations, sums.
 *
 * All stages of a row are computed inside the loop over rows of the last stage, so that a row stays
 * in L1; rows are divided among the threads.  A sum over outer dimensions runs its reduce loops
 * outside the vector of the innermost spatial loop. */
#include "schedules/cpu/cpu.h"

#include <string.h>

/* Leading iterators that two blocks share by extent, with nothing but unit extents after them in
 * the reduction. */
static uint32_t shared_rows(const Sched *s, const char *red, const char *last)
{
    const BlockData *r = &sched_block(s, red)->u.block, *l = &sched_block(s, last)->u.block;
    uint32_t         k = 0;

    while (k < r->nspatial && k < l->nspatial && r->iter[k]->hi == l->iter[k]->hi)
        k++;
    return k;
}

/* ---- how many sums go on at a time --------------------------------------------------------------- */

SumSizes sum_sizes(Sched *s, const char *block, bool along)
{
    const BlockData *d = &sched_block(s, block)->u.block;
    SumSizes         z = {.along = along, .times = 1, .steps = 1, .wide = 1};
    uint32_t         line = along || !d->nspatial ? 0 : line_dims(s, block);

    for (uint32_t i = 0; i < d->nspatial + d->nreduce; i++) {
        double n = (double)atom_usual(d->iter[i]);

        if (i >= d->nspatial)
            *(along ? &z.wide : &z.steps) *= n;
        else if (i + line >= d->nspatial)
            z.wide *= n;
        else
            z.times *= n;
    }
    return z;
}

/* Sums of n vectors at a time: there are as many cells, and more than are added one by one. */
static bool has_sums(const Machine *m, const SumSizes *z, int64_t lanes, int64_t n)
{
    return z->wide >= (double)(n * lanes) && (!z->along || z->wide > (double)limit_short_row(m));
}

static void sum_candidates(Candidates *k, const Sched *s, const SumSizes *all, uint32_t n)
{
    Machine m = machine_of(s->target);
    int64_t lanes = cpu_lanes(s);

    for (int64_t chains = 1; chains <= limit_most_sums(&m); chains *= 2) {
        double cycles = 0;
        bool   any = chains == 1;

        for (uint32_t i = 0; i < n; i++) {
            const SumSizes *z = &all[i];
            double          vectors = z->wide / (double)lanes;
            bool            fits = has_sums(&m, z, lanes, chains);

            any |= fits;
            cycles +=
                z->times * (z->along ? row_sum_cycles(&m, vectors, fits ? chains : 1)
                                     : column_sum_cycles(&m, vectors, z->steps, fits ? chains : 1));
        }
        if (any)
            candidate(k, chains, 0, cycles);
    }
}

int64_t pick_sums(Sched *s, const SumSizes *all, uint32_t n)
{
    Candidates k = candidates(s);

    sum_candidates(&k, s, all, n);
    return pick_factor(s, "sums", &k);
}

int64_t best_sums(Sched *s, const char *block, bool along)
{
    SumSizes   z = sum_sizes(s, block, along);
    Candidates k = {.arena = s->c->scratch};
    uint32_t   best = 0;

    sum_candidates(&k, s, &z, 1);
    for (uint32_t i = 1; i < k.of.n; i++)
        if (k.of.at[i].cycles < k.of.at[best].cycles)
            best = i;
    return k.of.at[best].v[0];
}

void vector_accumulate(Sched *s, const char *block, int64_t chains, uint32_t dims)
{
    const Stmt *b = sched_block(s, block);

    if (!b || !b->u.block.nspatial || cpu_lanes(s) < 2)
        return;
    const BlockData *d = &b->u.block;
    Machine          m = machine_of(s->target);
    int64_t          n;
    const char      *inner = line_loop(s, block, dims, &n);
    int64_t          lanes = inner_lanes(s, n);
    StrBuf           order = strbuf(s->c->arena);

    if (strcmp(inner, "line"))
        dims = 1;
    if (n < lanes)
        lanes = n;
    if (lanes < 2)
        return;
    int64_t width = n >= chains * lanes ? chains * lanes : lanes;
    if (n > lanes && !try_step(s, "split %%%s.%s by %lld tail=peel -> %%%s.vo, %%%s.vw", block,
                               inner, (long long)width, block, block))
        return;
    str_printf(&order, "reorder ");
    for (uint32_t i = 0; i < d->nreduce; i++)
        str_printf(&order, "%%%s.%s, ", block, d->iter[d->nspatial + i]->name);
    if (n > lanes)
        str_printf(&order, "%%%s.vw", block);
    else
        str_printf(&order, "%%%s.%s", block, inner);
    if (!try_step(s, "%s", order.at))
        return;
    if (n == lanes) {
        if (d->nspatial > dims)
            try_step(s, "cache_write %s reg at %%%s.%s", block, block,
                     d->iter[d->nspatial - dims - 1]->name);
        try_step(s, "vectorize %%%s.%s", block, inner);
        if (n < cpu_lanes(s) && d->nreduce == 1 &&
            iter_extent(s, block, d->iter[d->nspatial]->name) <= limit_few_columns_steps(&m))
            try_step(s, "unroll %%%s.%s", block, d->iter[d->nspatial]->name);
        return;
    }
    try_step(s, "cache_write %s reg at %%%s.vo", block, block);
    if (width == lanes) {
        try_step(s, "vectorize %%%s.vw", block);
        return;
    }
    if (!try_step(s, "split %%%s.vw by %lld tail=peel -> %%%s.vu, %%%s.vi", block, (long long)lanes,
                  block, block))
        return;
    try_step(s, "vectorize %%%s.vi", block);
    try_step(s, "unroll %%%s.vu", block);
}

typedef struct {
    const Buffer *t;
    uint32_t      readers;
    bool          here, math;
} Use;

static bool enter_block(void *user, const Stmt *s)
{
    Use *u = user;

    if (s->kind == STMT_BLOCK)
        u->here = false;
    return true;
}

static void use_prim(void *user, const Prim *p)
{
    Use *u = user;

    u->math |= p->kind == PRIM_MATH;
    if (p->kind == PRIM_LOAD && p->u.load.buffer == u->t && !u->here)
        u->here = true, u->readers++;
}

static double block_cells(const Stmt *b)
{
    double n = 1;

    for (uint32_t i = 0; i < b->u.block.nspatial; i++)
        n *= (double)atom_usual(b->u.block.iter[i]);
    return n;
}

/* An exponential or the like that several stages read: computed once, kept in L1.  A quotient or a
 * logarithm a row that a stage of more cells reads: one instead of one a cell.  Formulas of
 * rows that are shorter than a vector, where the sums would compute them in parts of one. */
static bool worth_keeping(Sched *s, const Stmt *b, const Stmt *last)
{
    const Prim *v = b->kids[b->nkids - 1]->u.store.value;
    Use         own = {0}, all = {.t = b->kids[b->nkids - 1]->u.store.buffer};

    stmt_visit(b, &(TirVisit){.user = &own, .prim = use_prim});
    stmt_visit(s->f->body, &(TirVisit){.user = &all, .enter = enter_block, .prim = use_prim});
    return (own.math && (all.readers > 1 || wide_lanes(s, b->u.block.name))) ||
           ((own.math || v->kind == PRIM_DIV) &&
            (b->u.block.nspatial < last->u.block.nspatial || block_cells(b) < block_cells(last)));
}

/* Dimensions of a stage's result that are its own, behind those that it shares, as one line. */
static uint32_t own_line(Sched *s, const char *block, uint32_t rows)
{
    uint32_t own = sched_block(s, block)->u.block.nspatial, line = own ? line_dims(s, block) : 1;

    own = own > rows ? own - rows : 1;
    return line < own ? line : own;
}

typedef struct {
    const Atom *along;
    bool        found;
} Innermost;

/* The last dimension of the operand that has more than a cell. */
static uint32_t innermost_dim(const Buffer *b)
{
    uint32_t i = b->ndim - 1;

    while (i > 0 && b->extent[i]->hi == 1)
        i--;
    return i;
}

static void innermost_prim(void *user, const Prim *p)
{
    Innermost *u = user;

    if (p->kind == PRIM_LOAD && p->u.load.n)
        u->found |= idx_uses(p->u.load.index[innermost_dim(p->u.load.buffer)], u->along);
}

bool sums_rows(const Sched *s, const char *block)
{
    const Stmt      *b = sched_block(s, block);
    const BlockData *d = &b->u.block;
    Innermost        u = {0};
    uint32_t         last = d->nspatial + d->nreduce;

    if (!d->nreduce || !d->nspatial)
        return false;
    while (--last > d->nspatial && d->iter[last]->hi == d->iter[last]->lo)
        ;
    u.along = d->iter[last];
    stmt_visit(b, &(TirVisit){.user = &u, .prim = innermost_prim});
    return u.found;
}

/* Few cells side by side that are not reduced, and long rows of them: each is a row, whose cells
 * are loaded with those of the others and shuffled apart. */
static bool sums_by_turns(Sched *s, const char *block)
{
    const BlockData *d = &sched_block(s, block)->u.block;
    int64_t          lanes = cpu_lanes(s);
    Machine          m = machine_of(s->target);

    if (!d->nreduce || !d->nspatial || lanes < LEAST_LANES)
        return false;
    int64_t n = line_cells(s, block, line_dims(s, block));
    return n > 1 && n <= limit_turned_rows(&m) && !sums_rows(s, block) &&
           iter_extent(s, block, d->iter[d->nspatial + d->nreduce - 1]->name) >= 2 * lanes;
}

/* A reduction whose innermost dimensions, of a vector at least, or a part of one that lies
 * together, are not reduced. */
static bool sums_columns(Sched *s, const char *block, uint32_t rows)
{
    const BlockData *d = &sched_block(s, block)->u.block;

    if (!d->nreduce || d->nspatial <= rows)
        return false;
    int64_t n = line_cells(s, block, own_line(s, block, rows));
    return n >= inner_lanes(s, n) || (n > 1 && !sums_rows(s, block));
}

/* One more level of partial sums: those of loop %block.loop become `width`, side by side. */
static bool partial_sums(Sched *s, const char *block, const char *loop, int64_t width, int level)
{
    if (!try_step(s, "split %%%s.%s by %lld tail=mask -> %%%s.o%d, %%%s.p%d", block, loop,
                  (long long)width, block, level, block, level) ||
        !try_step(s, "rfactor %%%s.p%d", block, level))
        return false;
    const char *which = level ? intern_printf(s->c->strings, "%d", level + 1) : "";
    return try_step(s, "set_scope %%%s.rf%s stack", block, which) ||
           try_step(s, "set_scope %%%s.reg.rf%s stack", block, which);
}

static bool has_math(const Stmt *block)
{
    Use own = {0};

    stmt_visit(block, &(TirVisit){.user = &own, .prim = use_prim});
    return own.math;
}

typedef struct {
    Sched      *s;
    const Atom *k, *next; /* a reduced dimension, and the next one of more than a cell, */
    bool        on;       /* which goes on where that ends */
} Joint;

static void joint_prim(void *user, const Prim *p)
{
    Joint *j = user;

    if (p->kind != PRIM_LOAD)
        return;
    const Idx *at = flat_index(j->s, &p->u.load);

    j->on &= idx_coef(at, j->k) == idx_coef(at, j->next) * atom_usual(j->next);
}

/* The first of the reduced dimensions that are one line to the last. */
static uint32_t reduced_line(Sched *s, const Stmt *block)
{
    const Atom *const *iter = block->u.block.iter + block->u.block.nspatial;
    uint32_t           i = block->u.block.nreduce - 1;
    Joint              j = {.s = s, .on = true};

    for (;; i--) {
        if (iter[i]->hi > iter[i]->lo)
            j.next = iter[i];
        if (i == 0)
            return 0;
        j.k = iter[i - 1];
        if (j.next && j.k->hi > j.k->lo)
            stmt_visit(block, &(TirVisit){.user = &j, .prim = joint_prim});
        if (!j.on)
            return i;
    }
}

/* A sum along the row: partial sums in vectors, then their sum.  A long row has several vectors of
 * them, which hide the latency; what is left of the last ones is masked.  They are added up as
 * vectors, then as four numbers. */
void vector_sum(Sched *s, const char *block, int64_t chains)
{
    const Stmt *b = sched_block(s, block);
    int64_t     lanes = cpu_lanes(s), n;
    Machine     m = machine_of(s->target);

    if (!b || b->u.block.nreduce < 1 || lanes < LEAST_LANES)
        return;
    uint32_t    first = b->u.block.nspatial, line = reduced_line(s, b);
    const char *k = b->u.block.iter[first + line]->name;
    n = iter_extent(s, block, k);
    for (uint32_t i = line + 1; i < b->u.block.nreduce; i++) {
        const char *next = b->u.block.iter[first + i]->name;
        int64_t     cells = iter_extent(s, block, next);
        if (!try_step(s, "fuse %%%s.%s, %%%s.%s -> %%%s.r%u", block, k, block, next, block, i))
            return;
        k = intern_printf(s->c->strings, "r%u", i);
        n *= cells;
    }
    /* So short a row is no vector of partial sums, or hardly one: its cells one by one, which lie
     * in a register; those of other rows run meanwhile. */
    if (n <= limit_short_row(&m) && (n < lanes || n % lanes) && !has_math(b)) {
        try_step(s, "unroll %%%s.%s", block, k);
        return;
    }
    int64_t width = n >= chains * lanes ? chains * lanes : lanes;
    while (width > n)
        width /= 2;
    if (width < LEAST_LANES || !partial_sums(s, block, k, width, 0))
        return;
    if (n % width)
        try_step(s, "partition %%%s.o0 at %lld", block, (long long)(n / width));
    /* A mask of several vectors LLVM takes apart number by number; of these all but one are wholly
     * on or off. */
    if (n % width && width > lanes &&
        try_step(s, "split %%%s.p0 by %lld -> %%%s.q0, %%%s.v0", block, (long long)lanes, block,
                 block) &&
        try_step(s, "vectorize %%%s.v0", block))
        try_step(s, "unroll %%%s.q0", block);
    else
        try_step(s, "vectorize %%%s.p0", block);
    if (n / width > 1 && n / width <= limit_row_rounds(&m))
        try_step(s, "unroll %%%s.o0", block);
    for (int level = 1; width > LEAST_LANES; level++) {
        int64_t     next = width > lanes ? lanes : LEAST_LANES;
        const char *parts = intern_printf(s->c->strings, "%s.p%d", block, level - 1);
        if (!partial_sums(s, block, parts, next, level))
            return;
        try_step(s, "vectorize %%%s.p%d", block, level);
        try_step(s, "unroll %%%s.o%d", block, level);
        width = next;
        if (width == LEAST_LANES)
            try_step(s, "unroll %%%s.%s.p%d", block, block, level);
    }
}

/* The only block sums along rows: one row at a time, rows divided among the threads. */
static void sum_of_rows(Sched *s, const char *block, int64_t chains)
{
    const BlockData *d = &sched_block(s, block)->u.block;
    const char      *first = d->iter[0]->name, *row = d->iter[d->nspatial - 1]->name;
    int64_t          work = block_work(s, block), rows = iter_extent(s, block, first);
    Machine          m = machine_of(s->target);

    for (uint32_t i = 1; i < d->nspatial && rows < limit_least_parts(&m); i++) {
        try_step(s, "fuse %%%s.%s, %%%s.%s -> %%%s.rows", block, first, block, d->iter[i]->name,
                 block);
        rows *= iter_extent(s, block, d->iter[i]->name);
        first = "rows";
        row = i + 1 < d->nspatial ? row : "rows";
    }
    if (try_step(s, "cache_write %s reg at %%%s.%s", block, block, row))
        vector_sum(s, block, chains);
    if (rows > 1 && !is_tiny(s, work))
        try_step(s, "parallel %%%s.%s", block, first);
}

/* The first dimension is reduced: no loop is shared, and stages follow one another, those that
 * reduce it with sums of columns side by side. */
static void column_stages(Sched *s, const char *const *names, uint32_t n, int64_t chains)
{
    bool alone = is_tiny_kernel(s);

    for (uint32_t i = 0; i < n; i++) {
        if (!sums_columns(s, names[i], 0)) {
            spatial_marks(s, names[i]);
            continue;
        }
        vector_accumulate(s, names[i], chains, own_line(s, names[i], 0));
        if (!alone)
            try_step(s, "parallel %%%s.vo", names[i]);
    }
}

/* The reductions of a kernel, and what is decided of them. */
typedef struct {
    SumSizes at[64];
    uint32_t n;
    bool     can_beside, beside; /* rows are lanes */
    int64_t  chains;
} SumsPlan;

static void decide_sums(Sched *s, void *plan)
{
    SumsPlan *p = plan;

    p->beside = p->can_beside && pick_bool(s, "beside", true);
    p->chains = p->n && !p->beside ? pick_sums(s, p->at, p->n) : 1;
}

/* Stages share so many loops over rows. */
static SumsPlan sums_of(Sched *s, const char *const *names, uint32_t n, uint32_t rows, bool beside)
{
    SumsPlan p = {.can_beside = beside};

    for (uint32_t i = 0; i < n; i++)
        if (sched_block(s, names[i])->u.block.nreduce && p.n < COUNT(p.at))
            p.at[p.n++] = sum_sizes(s, names[i],
                                    n == 1 ? sums_rows(s, names[i]) || sums_by_turns(s, names[i])
                                           : !sums_columns(s, names[i], rows));
    sched_decide(s, decide_sums, &p);
    return p;
}

/* ---- stages of columns ----------------------------------------------------------------------------- */

/* Stages that all have the result's dimensions and reduce outer ones: those shared outside of what
 * is computed together, and of the first one inside so many cells at a time, 0: all. */
typedef struct {
    uint32_t rows;
    int64_t  block;
} ColumnStages;

typedef struct {
    Sched      *s;
    const Atom *k, *iter;
    bool        inside; /* the cells of iter lie within a step of k */
} Within;

/* All dimensions of the data that iter moves along are inside of those that k moves along. */
static bool dims_within(const LoadData *l, const Atom *iter, const Atom *k)
{
    bool seen = false;

    for (uint32_t i = 0; i < l->n; i++) {
        seen |= idx_uses(l->index[i], iter);
        if (seen && idx_uses(l->index[i], k))
            return false;
    }
    return true;
}

static void within_prim(void *user, const Prim *p)
{
    Within *u = user;
    int64_t cells, origin;

    if (p->kind != PRIM_LOAD)
        return;
    if (!buffer_size(u->s->c, p->u.load.buffer, &cells, &origin)) { /* steps are no numbers */
        u->inside &= dims_within(&p->u.load, u->iter, u->k);
        return;
    }
    const Idx *at = flat_index(u->s, &p->u.load);
    u->inside &= !idx_uses(at, u->k) || idx_coef(at, u->iter) < idx_coef(at, u->k);
}

/* The cells of dimension i of the result lie within a step of all that block b reduces. */
static bool lies_within(Sched *s, const Stmt *b, uint32_t i)
{
    const BlockData *d = &b->u.block;
    Within           u = {.s = s, .iter = d->iter[i], .inside = true};

    for (uint32_t k = 0; k < d->nreduce; k++) {
        u.k = d->iter[d->nspatial + k];
        if (u.k->hi > u.k->lo)
            stmt_visit(b, &(TirVisit){.user = &u, .prim = within_prim});
    }
    return u.inside;
}

/* So many of a dimension, with the cells behind it, are whole vectors, or sums of several. */
static int64_t whole_sums(const Sched *s, const Machine *m, int64_t block, int64_t cells)
{
    int64_t lanes = cpu_lanes(s), most = limit_most_sums(m) * lanes;
    int64_t unit = block * cells > most ? most : lanes;

    while (unit % cells && cells % unit)
        unit += block * cells > most ? most : lanes;
    unit = unit > cells ? unit / cells : 1;
    return block > unit ? block / unit * unit : block;
}

/* Dimensions of the result that lie within a step of the reduction are columns.  As many of them
 * at a time as L2 holds, with all that a second reduction reads again. */
static ColumnStages columns_of(Sched *s, const char *const *names, uint32_t n)
{
    const BlockData *l = &sched_block(s, names[n - 1])->u.block;
    Machine          m = machine_of(s->target);
    int64_t          lanes = cpu_lanes(s), steps = 1, cells = 1;
    ColumnStages     none = {l->nspatial - 1, 0};
    uint32_t         r = l->nspatial, sums = 0, line = r;

    for (uint32_t i = 0; i < n; i++) {
        const BlockData *d = &sched_block(s, names[i])->u.block;
        if (!d->nreduce)
            continue;
        if (sums_rows(s, names[i]))
            return none;
        sums++;
        steps = 1;
        for (uint32_t k = 0; k < d->nreduce; k++)
            steps *= atom_usual(d->iter[d->nspatial + k]);
        uint32_t dims = line_dims(s, names[i]);
        line = dims < line ? dims : line;
    }
    if (sums < 2)
        steps = 1;
    for (; r > 0; r--) {
        int64_t next = atom_usual(l->iter[r - 1]);

        for (uint32_t i = 0; i < n && next > 1; i++)
            if (!lies_within(s, sched_block(s, names[i]), r - 1)) {
                while (r + 1 < l->nspatial && atom_usual(l->iter[r]) == 1)
                    r++;
                return (ColumnStages){r, 0};
            }
        if (cells * next * steps * 4 > room_columns(&m)) {
            int64_t block = room_columns(&m) / (cells * steps * 4);
            if (cells == 1 && block < lanes)
                return none;
            if (cells > 1 && (cells >= lanes || block * cells < lanes || line <= l->nspatial - r))
                return (ColumnStages){r, 0};
            int64_t part = (next + limit_least_parts(&m) - 1) / limit_least_parts(&m);
            if (part * cells >= lanes && part < block)
                block = part;
            return (ColumnStages){r - 1, whole_sums(s, &m, block, cells)};
        }
        cells *= next;
    }
    return (ColumnStages){0, 0};
}

/* Rows with stages of their own, none of whose loops has many rounds: parts may be uneven. */
static void divide_few_rows(Sched *s, const char *last, uint32_t rows)
{
    const BlockData *d = &sched_block(s, last)->u.block;
    const char      *loops[TE_MAX_AXES];
    Machine          m = machine_of(s->target);

    if (is_tiny_kernel(s))
        return;
    for (uint32_t i = 0; i < rows && i < COUNT(loops); i++) {
        loops[i] = intern_printf(s->c->strings, "%s.%s", last, d->iter[i]->name);
        if (iter_extent(s, last, d->iter[i]->name) >= limit_least_parts(&m))
            return;
    }
    divide_loops(s, intern_printf(s->c->strings, "%s.u", last), loops, rows);
}

/* Rounds of a row's stages of which there are few. */
static void write_rounds(Sched *s, const char *const *names, uint32_t n)
{
    Machine m = machine_of(s->target);

    for (uint32_t i = 0; i < n; i++) {
        const char *loop = intern_printf(s->c->strings, "%s.vo", names[i]);
        int64_t     rounds = loop_extent(s, loop);

        if (!sched_block(s, names[i])->u.block.nreduce && rounds > 1 &&
            rounds <= limit_row_rounds(&m))
            try_step(s, "unroll %%%s", loop);
    }
}

/* All stages of a block of columns, then those of the next one; threads divide the blocks. */
static void column_blocks(Sched *s, const char *const *names, uint32_t n, ColumnStages columns,
                          int64_t chains)
{
    const char      *last = names[n - 1];
    const BlockData *l = &sched_block(s, last)->u.block;
    const char      *dim = l->iter[columns.rows]->name;
    bool             alone = is_tiny_kernel(s);

    if (!try_step(s, "split %%%s.%s by %lld tail=peel -> %%%s.cb, %%%s.%s", last, dim,
                  (long long)columns.block, last, last, dim))
        return;
    if (!alone) /* first, so that each thread has sums of its own */
        try_step(s, "parallel %%%s.cb", last);
    for (uint32_t i = n - 1; i-- > 0;)
        try_step(s, "compute_at %s %%%s.cb", names[i], last);
    for (uint32_t i = 0; i < n; i++)
        if (sched_block(s, names[i])->u.block.nreduce)
            vector_accumulate(s, names[i], chains, own_line(s, names[i], columns.rows));
        else
            line_vectors(s, names[i], own_line(s, names[i], columns.rows));
}

void sched_rows(Sched *s)
{
    const char *names[64];
    uint32_t    n = sched_blocks(s, names, COUNT(names)), rows = COUNT(names);
    const char *last;

    if (!n)
        return;
    /* Elementwise stages that only one stage reads vanish. */
    for (uint32_t i = 0; i + 1 < n; i++) {
        const Stmt *b = sched_block(s, names[i]);
        if (b && !b->u.block.opaque && !b->u.block.nreduce &&
            !worth_keeping(s, b, sched_block(s, names[n - 1])))
            try_step(s, "compute_inline %s", names[i]);
    }
    n = sched_blocks(s, names, COUNT(names));
    last = names[n - 1];
    if (sched_block(s, last)->u.block.opaque)
        return;
    for (uint32_t i = 0; i + 1 < n; i++) {
        const Stmt *b = sched_block(s, names[i]);
        if (b->u.block.opaque)
            return;
        uint32_t k = shared_rows(s, names[i], last);
        if (k < rows)
            rows = k;
    }
    const BlockData *l = &sched_block(s, last)->u.block;
    ColumnStages     columns = {0};
    uint32_t         shared = n > 1 ? rows : l->nspatial;
    if (n > 1 && rows >= l->nspatial && l->nspatial) {
        columns = columns_of(s, names, n);
        rows = columns.rows;
    }
    SumsPlan p = sums_of(s, names, n, n == 1 ? 0 : rows, has_short_rows(s, names, n, shared));
    int64_t  chains = p.chains;
    if (p.beside && short_rows_marks(s, names, n, shared))
        return;
    if (n == 1 && (sums_rows(s, last) || sums_by_turns(s, last))) {
        sum_of_rows(s, last, chains);
        return;
    }
    if (!sched_block(s, last)->u.block.nspatial) { /* one number of all cells */
        for (uint32_t i = 0; i < n; i++)
            if (sched_block(s, names[i])->u.block.nreduce)
                vector_sum(s, names[i], chains);
        return;
    }
    if (n == 1) {
        if (sched_block(s, last)->u.block.nreduce)
            vector_accumulate(s, last, chains, own_line(s, last, 0));
        spatial_marks(s, last);
        return;
    }
    if (columns.block) {
        column_blocks(s, names, n, columns, chains);
        return;
    }
    if (rows && rows < COUNT(names)) {
        const char *row = l->iter[rows - 1]->name;
        for (uint32_t i = n - 1; i-- > 0;)
            try_step(s, "compute_at %s %%%s.%s", names[i], last, row);
        for (uint32_t i = 0; i + 1 < n; i++)
            if (sums_columns(s, names[i], rows))
                vector_accumulate(s, names[i], chains, own_line(s, names[i], rows));
            else if (sched_block(s, names[i])->u.block.nreduce)
                vector_sum(s, names[i], chains);
            else
                line_vectors(s, names[i], own_line(s, names[i], rows));
        divide_few_rows(s, last, rows);
        if (sums_columns(s, last, rows))
            vector_accumulate(s, last, chains, own_line(s, last, rows));
        spatial_marks(s, last);
        write_rounds(s, names, n);
        return;
    } else if (!rows) {
        column_stages(s, names, n, chains);
        return;
    }
    spatial_marks(s, last);
}
