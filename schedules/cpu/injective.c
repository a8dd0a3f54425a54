/* Elementwise and injective kernels: one nest over the result, inner loop as vectors, outer loop
 * divided among the threads. */
#include "ir/tir/lookup.h"
#include "schedules/cpu/cpu.h"

#include <math.h>
#include <string.h>

typedef struct {
    const Buffer *of;
    double        n;
} Loads;

static void count_load(void *user, const Prim *p)
{
    Loads *l = user;

    l->n += p->kind == PRIM_LOAD && p->u.load.buffer == l->of;
}

typedef struct {
    const Atom *of;
    bool        found;
} Use;

static void find_use(void *user, const Idx *x)
{
    Use *u = user;

    u->found |= idx_uses(x, u->of);
}

/* Interpolated rows (ops/image/resize2d.c) that the rest of the kernel reads so often that they are
 * better kept than computed each time.  What is the same in a whole row is computed once for it
 * anyway. */
static bool keeps_rows(const Sched *s, const char *last)
{
    const Stmt *rows = sched_block(s, "rows");
    Machine     m = machine_of(s->target);

    if (!rows || rows->u.block.opaque || rows->u.block.nreduce || rows->u.block.nspatial < 4)
        return false;
    const Stmt *store = rows->kids[rows->nkids - 1];
    Use         x = {.of = rows->u.block.iter[rows->u.block.nspatial - 1]};
    Loads       reads = {.of = store->u.store.buffer};

    prim_visit(store->u.store.value, &(TirVisit){.user = &x, .idx = find_use});
    if (!x.found)
        return false;
    CellWork w = cell_work(rows), copy = {.bytes = 2 * dtype_bytes(reads.of->dtype)};

    stmt_visit(s->f->body, &(TirVisit){.user = &reads, .prim = count_load});
    double once = (double)block_work(s, "rows") * (cell_ns(&m, &w) + cell_ns(&m, &copy));
    return once < (double)block_work(s, last) * reads.n * cell_ns(&m, &w);
}

/* The last block of the nest and its iterators' loops; everything before it inlined, but for
 * `*rows`, if they are kept. */
static const char *last_block(Sched *s, bool *rows)
{
    const char *names[64];
    uint32_t    n = sched_blocks(s, names, COUNT(names));

    if (!n)
        return NULL;
    *rows = keeps_rows(s, names[n - 1]);
    for (uint32_t i = 0; i + 1 < n; i++)
        if (!*rows || strcmp(names[i], "rows"))
            try_step(s, "compute_inline %s", names[i]);
    return names[n - 1];
}

/* Lanes for a row of so many cells.  Bytes from tables of 256 fill a vector: the table is in
 * registers for all of them (backends/llvm/codegen_lookup.c). */
static int64_t row_lanes(const Sched *s, const char *block, int64_t cells)
{
    const Stmt *b = sched_block(s, block), *store = b->kids[b->nkids - 1];
    Lookup      l;

    if (b->nkids == 1 && store->kind == STMT_STORE && prim_lookup(store->u.store.value, &l) &&
        cells >= s->target->vector_bytes && cpu_lanes(s) > 1)
        return s->target->vector_bytes;
    return inner_lanes(s, cells);
}

/* A function that becomes a formula of two dozen operations (passes/tir/lower_math.c). */
static void see_function(void *user, const Prim *p)
{
    Use *u = user;

    u->found |= p->kind == PRIM_MATH && dtype_is_float(p->dtype) && p->dtype.bits <= 32 &&
                (p->u.math == MATH_EXP || p->u.math == MATH_LOG || p->u.math == MATH_TANH ||
                 p->u.math == MATH_ERF || p->u.math == MATH_SIGMOID);
}

static bool has_function(const Stmt *block)
{
    Use u = {0};

    stmt_visit(block, &(TirVisit){.user = &u, .prim = see_function});
    return u.found;
}

/* The loop of a row, of so many cells, as vectors.  Two cells of functions take as long each as a
 * vector. */
static void row_vectors(Sched *s, const char *block, const char *inner, int64_t cells)
{
    Machine m = machine_of(s->target);
    int64_t lanes = row_lanes(s, block, cells);
    int64_t least = has_function(sched_block(s, block)) ? 2 : limit_least_rest(&m);

    loop_vectors(s, intern_printf(s->c->strings, "%s.%s", block, inner), cells, lanes, least,
                 intern_printf(s->c->strings, "%s.v", block));
}

static void see_choice(void *user, const Prim *p)
{
    Use *u = user;

    for (uint32_t i = 0; p->kind == PRIM_CASE && i < p->u.index->nterms; i++)
        u->found |= p->u.index->t[i].atom->kind == ATOM_LOAD && idx_uses(p->u.index, u->of);
}

/* Does memory say for each cell of a row which arm it takes (ops/tensor/concatenate.c)?  Then cells
 * of a row are no vectors. */
static bool cells_choose(const Stmt *block)
{
    const BlockData *d = &block->u.block;
    Use              u = {.of = d->iter[d->nspatial - 1]};

    stmt_visit(block, &(TirVisit){.user = &u, .prim = see_choice});
    return u.found;
}

void vector_marks(Sched *s, const char *block)
{
    const Stmt *b = sched_block(s, block);

    if (!b || b->u.block.opaque || !b->u.block.nspatial || b->u.block.nreduce || cpu_lanes(s) < 2)
        return;
    const char *inner = b->u.block.iter[b->u.block.nspatial - 1]->name;
    if (!cells_choose(b))
        row_vectors(s, block, inner, iter_extent(s, block, inner));
}

/* ---- lines ------------------------------------------------------------------------------------ */

typedef struct {
    Sched      *s;
    const Atom *inner, *outer; /* the line's first dimension with more than a cell; its next one */
    int64_t     cells;         /* of the line without it */
    bool        one;           /* everything goes on along it */
} Line;

/* Does a position go on from one row to the next as within a row, or does it not change at all? */
static bool goes_on(const Line *l, const Idx *x)
{
    Arith  *A = l->s->c->arith;
    int64_t step = idx_coef(x, l->inner);

    if (idx_coef(x, l->outer) != step * l->cells)
        return false;
    x = idx_sub(A, x, idx_mulc(A, idx_atom(A, l->inner), step));
    x = idx_sub(A, x, idx_mulc(A, idx_atom(A, l->outer), step * l->cells));
    return !idx_uses(x, l->inner) && !idx_uses(x, l->outer);
}

static void see_access(void *user, const Prim *p)
{
    Line *l = user;

    if (p->kind == PRIM_LOAD)
        l->one &= goes_on(l, flat_index(l->s, &p->u.load));
    else if (p->kind == PRIM_INDEX || p->kind == PRIM_CASE)
        l->one &= !idx_uses(p->u.index, l->inner) && !idx_uses(p->u.index, l->outer);
    else if (p->kind == PRIM_INTRIN || p->kind == PRIM_ADDR)
        l->one = false;
}

/* The dimension behind it goes on in everything that the block, stores alone, touches. */
static bool line_goes_on(Line *l, const Stmt *block)
{
    l->one = true;
    for (uint32_t i = 0; i < block->nkids && l->one; i++) {
        const StoreData *d = &block->kids[i]->u.store;
        LoadData         to = {.buffer = d->buffer, .n = d->n, .index = d->index};

        l->one = goes_on(l, flat_index(l->s, &to));
    }
    if (l->one)
        stmt_visit(block, &(TirVisit){.user = l, .prim = see_access});
    return l->one;
}

/* Are its cells along the line's first dimension stored side by side, with no border between? */
static bool stores_line(const Line *l, const Stmt *block)
{
    for (uint32_t i = 0; i < block->nkids; i++) {
        const StoreData *d = &block->kids[i]->u.store;
        LoadData         to = {.buffer = d->buffer, .n = d->n, .index = d->index};

        if (idx_coef(flat_index(l->s, &to), l->inner) != 1)
            return false;
    }
    return true;
}

static bool only_stores(const Stmt *block)
{
    for (uint32_t i = 0; i < block->nkids; i++)
        if (block->kids[i]->kind != STMT_STORE)
            return false;
    return block->nkids > 0;
}

static int64_t cells_of(const Atom *iter)
{
    return iter->hi - iter->lo + 1;
}

uint32_t line_dims(Sched *s, const char *block)
{
    const Stmt      *b = sched_block(s, block);
    const BlockData *d = &b->u.block;
    uint32_t         n = 0;
    Line             l = {.s = s, .cells = 1};
    int64_t          last = cells_of(d->iter[d->nspatial - 1]);

    /* Blocks of channels are divided among threads as convolutions are. */
    if (d->nseq || last % cpu_lanes(s) == 0 || (d->nspatial == 5 && is_block(s, last)) ||
        !only_stores(b))
        return 1;
    for (; n < d->nspatial; n++) {
        l.outer = d->iter[d->nspatial - n - 1];
        if (l.outer->below || l.outer->lo)
            break;
        if (cells_of(l.outer) > 1 && l.inner && !line_goes_on(&l, b))
            break;
        if (cells_of(l.outer) > 1 && !l.inner)
            l.inner = l.outer;
        l.cells *= cells_of(l.outer);
    }
    return l.inner && (l.cells > cells_of(l.inner) || (last == 1 && stores_line(&l, b))) ? n : 1;
}

int64_t line_cells(const Sched *s, const char *block, uint32_t dims)
{
    const BlockData *d = &sched_block(s, block)->u.block;
    int64_t          n = 1;

    for (uint32_t i = d->nspatial - dims; i < d->nspatial; i++)
        n *= cells_of(d->iter[i]);
    return n;
}

const char *line_loop(Sched *s, const char *block, uint32_t dims, int64_t *cells)
{
    const BlockData *d = &sched_block(s, block)->u.block;
    StrBuf           loops = strbuf(s->c->arena);

    for (uint32_t i = d->nspatial - dims; i < d->nspatial; i++)
        str_printf(&loops, "%s%%%s.%s", i > d->nspatial - dims ? ", " : "", block,
                   d->iter[i]->name);
    bool line = dims > 1 && try_step(s, "fuse %s -> %%%s.line", loops.at, block);
    *cells = line_cells(s, block, line ? dims : 1);
    return line ? "line" : d->iter[d->nspatial - 1]->name;
}

/* So many innermost loops as one, and that as vectors; false if they stay as they are. */
static bool line_marks(Sched *s, const char *block, uint32_t dims)
{
    int64_t     cells;
    const char *loop = line_loop(s, block, dims, &cells);

    if (strcmp(loop, "line"))
        return false;
    row_vectors(s, block, loop, cells);
    return true;
}

/* ---- short rows ---------------------------------------------------------------------------------- */

static void see_turn(void *user, const Prim *p)
{
    Line *l = user;

    if (p->kind == PRIM_LOAD && !idx_uses(flat_index(l->s, &p->u.load), l->outer))
        return;
    see_access(l, p);
}

int64_t wide_lanes(Sched *s, const char *block)
{
    const Stmt      *b = sched_block(s, block);
    const BlockData *d = &b->u.block;
    int64_t          lanes = cpu_lanes(s), wide = lanes;
    Machine          m = machine_of(s->target);

    if (d->nspatial < 2 || d->nreduce || d->nseq || d->opaque || lanes < LEAST_LANES ||
        !only_stores(b))
        return 0;
    Line l = {.s = s, .inner = d->iter[d->nspatial - 1], .outer = d->iter[d->nspatial - 2]};
    l.cells = cells_of(l.inner);
    const char *rows = intern_printf(s->c->strings, "%s.%s", block, l.outer->name);
    if (l.outer->below || l.outer->lo || l.inner->below || l.cells < 2 || l.cells >= lanes ||
        loop_extent(s, rows) != cells_of(l.outer))
        return 0;
    while (wide % l.cells && wide < limit_wide_lanes(&m))
        wide += lanes;
    if (wide % l.cells || wide > l.cells * cells_of(l.outer))
        return 0;
    l.one = true;
    for (uint32_t i = 0; i < b->nkids; i++) {
        const StoreData *to = &b->kids[i]->u.store;
        LoadData         at = {.buffer = to->buffer, .n = to->n, .index = to->index};

        l.one &= goes_on(&l, flat_index(s, &at));
    }
    if (l.one)
        stmt_visit(b, &(TirVisit){.user = &l, .prim = see_turn});
    return l.one ? wide : 0;
}

/* These rows as vectors of several. */
static bool short_rows(Sched *s, const char *block)
{
    int64_t wide = wide_lanes(s, block), cells;
    Machine m = machine_of(s->target);

    if (!wide || strcmp(line_loop(s, block, 2, &cells), "line"))
        return false;
    if (cells == wide)
        return try_step(s, "vectorize %%%s.line", block);
    return try_step(s, "split %%%s.line by %lld tail=peel -> %%%s.vo, %%%s.vi", block,
                    (long long)wide, block, block) &&
           try_step(s,
                    cells % wide >= limit_least_rest(&m) ? "vectorize %%%s.vi"
                                                         : "vectorize %%%s.vi#0",
                    block);
}

void line_vectors(Sched *s, const char *block, uint32_t dims)
{
    if (dims > 1 ? !line_marks(s, block, dims) : !short_rows(s, block))
        vector_marks(s, block);
}

/* ---- positions that are quotients ------------------------------------------------------------------ */

typedef struct {
    const Atom *row;
    int64_t     lanes;
    bool        odd;
} Quotients;

static void see_quotient(void *user, const Idx *x)
{
    Quotients *q = user;

    for (uint32_t i = 0; i < x->nterms; i++) {
        const Atom *a = x->t[i].atom;

        if (a->kind == ATOM_DIV && idx_uses(a->a, q->row))
            q->odd |= idx_coef(a->a, q->row) * q->lanes % a->k != 0;
    }
}

/* Where neighbours of a row lie at quotients that differ from vector to vector, as in resizing by
 * 91/3, each lane would be divided for itself.  Written out, positions are numbers, and a vector is
 * a load or two and a shuffle, and what it weighs a constant. */
static bool write_positions(Sched *s, const char *block)
{
    const Stmt      *b = sched_block(s, block);
    const BlockData *d = &b->u.block;
    Machine          m = machine_of(s->target);
    Quotients        q = {.row = d->iter[d->nspatial - 1], .lanes = cpu_lanes(s)};
    const char      *vo = intern_printf(s->c->strings, "%s.vo", block);

    stmt_visit(b, &(TirVisit){.user = &q, .idx = see_quotient});
    return q.odd && loop_extent(s, vo) > 0 && loop_extent(s, vo) <= limit_quotient_vectors(&m) &&
           try_step(s, "unroll %%%s", vo);
}

/* A transpose reads a cell a row; the row's next cells are those of another dimension.  That one
 * goes inside the loop over vectors, so that the few lines one vector touches serve the next,
 * before rows at equal distances push them out of their set of L1. */
static bool transpose_order(Sched *s, const char *block)
{
    const Stmt *b = sched_block(s, block);
    const Prim *v = b && b->kind == STMT_BLOCK ? b->kids[b->nkids - 1]->u.store.value : NULL;
    const Atom *a;
    Machine     m = machine_of(s->target);

    if (!v || v->kind != PRIM_LOAD || b->u.block.nspatial < 3 || !v->u.load.n ||
        !idx_is_atom(v->u.load.index[v->u.load.n - 1], &a))
        return false;
    const BlockData *d = &b->u.block;
    const Atom      *inner = d->iter[d->nspatial - 1], *beside = d->iter[d->nspatial - 2];
    int64_t          outer = 1, lanes = cpu_lanes(s);
    for (uint32_t i = 0; i + 2 < d->nspatial; i++)
        outer = iter_extent(s, block, d->iter[i]->name) > outer
                    ? iter_extent(s, block, d->iter[i]->name)
                    : outer;
    /* The threads take a loop outside of both. */
    return a == beside && outer >= limit_least_parts(&m) && inner->hi + 1 > lanes &&
           (inner->hi + 1) % lanes == 0 &&
           try_step(s, "reorder %%%s.vo, %%%s.%s", block, block, beside->name);
}

/* An image in blocks of channels is divided by rows before channels, as convolutions do. */
static bool parallel_rows(Sched *s, const char *block)
{
    const BlockData *d = &sched_block(s, block)->u.block;

    if (d->nspatial != 5 || d->nreduce || !is_block(s, iter_extent(s, block, d->iter[4]->name)))
        return false;
    const char *c = d->iter[1]->name, *y = d->iter[2]->name;
    int64_t     rows = iter_extent(s, block, y), parts = row_blocks(s, rows);

    return parts > 1 &&
           try_step(s, "split %%%s.%s by %lld -> %%%s.yb, %%%s.yr", block, y,
                    (long long)(rows / parts), block, block) &&
           try_step(s, "reorder %%%s.yb, %%%s.%s", block, block, c) &&
           try_step(s, "fuse %%%s.yb, %%%s.%s -> %%%s.u", block, block, c, block) &&
           try_step(s, "parallel %%%s.u", block);
}

/* The loop over vectors of a block, as `vector_marks` left it, if there is one; `name` of it with
 * so many of them written out. */
static const char *vectors_loop(Sched *s, const char *block, int64_t vectors)
{
    const Stmt *b = sched_block(s, block);

    if (cells_choose(b))
        return b->u.block.iter[b->u.block.nspatial - 1]->name;
    if (vectors > 1 && try_step(s, "split %%%s.vo by %lld -> %%%s.vs, %%%s.vu", block,
                                (long long)vectors, block, block)) {
        step(s, "unroll %%%s.vu", block);
        return "vs";
    }
    return "vo";
}

/* Threads divide all of the block's loops but the innermost; false if they cannot. */
static bool divide_rows(Sched *s, const char *block)
{
    const BlockData *d = &sched_block(s, block)->u.block;
    const char      *loops[TE_MAX_AXES];
    uint32_t         n = 0;

    for (uint32_t i = 0; i + 1 < d->nspatial && n < COUNT(loops); i++)
        loops[n++] = intern_printf(s->c->strings, "%s.%s", block, d->iter[i]->name);
    return divide_loops(s, intern_printf(s->c->strings, "%s.u", block), loops, n);
}

/* Can threads divide the rows? */
static bool has_rows(Sched *s, const char *block)
{
    const BlockData *d = &sched_block(s, block)->u.block;
    Machine          m = machine_of(s->target);

    for (uint32_t i = 0; i + 1 < d->nspatial; i++)
        if (iter_extent(s, block, d->iter[i]->name) >= limit_least_parts(&m))
            return true;
    return false;
}

static void rows_marks(Sched *s, const char *block, int64_t vectors, bool alone)
{
    const BlockData *d = &sched_block(s, block)->u.block;
    Machine          m = machine_of(s->target);
    uint32_t         dims = d->nreduce ? 1 : line_dims(s, block);
    bool             turns = dims == 1 && turned_parts(s, block, &dims);
    bool parts = dims == 1 && !turns && (alone || has_rows(s, block)) && part_vectors(s, block);
    const char *outer = "vo";

    if (dims == 1 && !parts && short_rows(s, block)) {
        dims = 2;
    } else if (!turns && (dims == 1 || !line_marks(s, block, dims))) {
        dims = 1;
        if (!parts)
            vector_marks(s, block);
    }
    if (parts || (dims == 1 && write_positions(s, block)))
        outer = NULL;
    else if (dims > 1 || !transpose_order(s, block))
        outer = vectors_loop(s, block, vectors);
    if (alone || parallel_rows(s, block))
        return;
    for (uint32_t i = 0; i < d->nspatial + 1 - dims; i++) {
        const char *name = d->iter[i]->name;
        if (iter_extent(s, block, name) >= limit_least_parts(&m) &&
            (i + dims < d->nspatial || d->nreduce)) {
            if (!try_step(s, "parallel %%%s.%s", block, name))
                try_step(s, "parallel %%%s.vo", block);
            return;
        }
    }
    if (outer)
        try_step(s, "parallel %%%s.%s", block, outer);
}

/* ---- what is decided ------------------------------------------------------------------------------ */

static const char *const positions_words[] = {"each.time", "kept"};
static const char *const cells_words[] = {"as.they.lie", "turned", "by.turns"};

typedef struct {
    const char *block;
    double      cells;       /* of the result */
    bool        can[3];      /* by Cells */
    double      estimate[3]; /* cycles */
    int64_t     trips;       /* whole vectors of the innermost loop; 0: there is none */
    int64_t     operations;  /* of a vector */
    bool        functions;   /* among these, which wait for each other */
    Cells       how;
    int64_t     vectors; /* written out */

    PositionsPlan positions;
    bool          keeps; /* those */
} CellsPlan;

/* May so many vectors of the loop be written out?  What is left over becomes code of its own, which
 * only functions are worth. */
static bool may_write(const Machine *m, const CellsPlan *p, int64_t n)
{
    bool    waits = p->functions && n <= limit_woven_vectors(m);
    int64_t most = waits ? limit_woven_operations(m) : limit_round_operations(m);

    return n <= limit_round_vectors(m) && n * p->operations <= most &&
           (p->trips % n == 0 || (waits && n <= p->trips));
}

static void decide_cells(Sched *s, void *plan)
{
    CellsPlan *p = plan;
    Machine    m = machine_of(s->target);
    Candidates how = candidates(s), vectors = candidates(s);

    for (Cells i = CELLS_AS_THEY_LIE; i <= CELLS_BY_TURNS; i++)
        if (p->can[i])
            candidate(&how, i, 0, p->estimate[i]);
    if (p->positions.rows) {
        Candidates keep = candidates(s);
        candidate(&keep, 0, 0, p->positions.each_time);
        candidate(&keep, 1, 0, p->positions.kept);
        p->keeps = pick_order(s, "positions", &keep, positions_words);
    }
    p->how = (Cells)pick_order(s, "cells", &how, cells_words);
    p->vectors = 1;
    if (p->how != CELLS_AS_THEY_LIE || p->trips < 1)
        return;
    double rounds = p->cells / (double)cpu_lanes(s);
    for (int64_t n = 1; n <= limit_round_vectors(&m); n *= 2)
        if (n == 1 || may_write(&m, p, n))
            candidate(&vectors, n, 0,
                      rounds * formula_cycles(&m, p->operations, n) +
                          rounds_cycles(rounds / (double)n) +
                          first_run_cycles(p->trips % n ? (n - 1) * p->operations : 0));
    p->vectors = pick_factor(s, "vectors", &vectors);
}

/* Whole vectors of the loop that `vector_marks` makes, whose rest is a round of its own. */
static int64_t vector_trips(Sched *s, const char *block)
{
    int64_t n = line_cells(s, block, line_dims(s, block));
    int64_t lanes = n > 0 && !cells_choose(sched_block(s, block)) ? row_lanes(s, block, n) : 1;

    return lanes > 1 && n > lanes ? n / lanes : 0;
}

static CellsPlan cells_plan(Sched *s, const char *block)
{
    const Stmt      *b = sched_block(s, block);
    const BlockData *d = &b->u.block;
    Machine          m = machine_of(s->target);
    CellWork         w = cell_work(b);
    int64_t          lanes = cpu_lanes(s);
    CellsPlan        p = {.block = block,
                          .cells = (double)block_work(s, block),
                          .can = {[CELLS_AS_THEY_LIE] = true},
                          .trips = d->nreduce ? 0 : vector_trips(s, block)};

    p.operations = cell_operations(&w);
    p.functions = has_function(b);
    p.positions = positions_plan(s, block);
    if (d->nreduce || lanes < LEAST_LANES)
        return p;
    Sched before = *s; /* steps are only tried */
    for (Cells i = CELLS_TURNED; i <= CELLS_BY_TURNS; i++) {
        p.can[i] = cells_marks(s, block, i, false);
        *s = before;
    }
    p.estimate[CELLS_AS_THEY_LIE] =
        p.can[CELLS_TURNED] || p.can[CELLS_BY_TURNS] ? gather_cycles(&m, p.cells) : NAN;
    p.estimate[CELLS_TURNED] = turn_cycles(&m, lanes, p.cells);
    p.estimate[CELLS_BY_TURNS] = weave_cycles(&m, lanes, p.cells, LEAST_LANES);
    return p;
}

static bool has_cells(const Sched *s, const char *block)
{
    const Stmt *b = sched_block(s, block);

    return b && !b->u.block.opaque && b->u.block.nspatial;
}

void spatial_marks(Sched *s, const char *block)
{
    bool alone = is_tiny_kernel(s);

    if (has_cells(s, block) && !turn_marks(s, block, !alone))
        rows_marks(s, block, 1, alone);
}

typedef struct {
    uint32_t   dim;
    const Idx *index;
    int64_t    extent;
} PadRead;

static void pad_read(void *user, const Prim *p)
{
    PadRead *r = user;

    if (p->kind != PRIM_LOAD || p->u.load.n <= r->dim)
        return;
    r->index = p->u.load.index[r->dim];
    if (!idx_is_const(p->u.load.buffer->extent[r->dim], &r->extent))
        r->extent = 0;
}

/* Where the cells that are copied begin in the last dimension of `pad`, and how many they are. */
static bool pad_interior(const Sched *s, int64_t *lo, int64_t *n)
{
    const Stmt *b = sched_block(s, "pad");
    PadRead     r = {.dim = b->u.block.nspatial - 1};

    stmt_visit(b, &(TirVisit){.user = &r, .prim = pad_read});
    if (!r.index || !r.extent)
        return false;
    *lo = -r.index->c0;
    *n = r.extent;
    return *lo >= 0;
}

/* A copy without a border, widened: some pixels of a block of channels at a time. */
static void widen_marks(Sched *s, const char *x)
{
    Machine m = machine_of(s->target);
    int64_t n = x ? divisor_upto(iter_extent(s, "pad", x), limit_widened_pixels(&m)) : 1;

    if (n > 1 && try_step(s, "split %%pad.%s by %lld -> %%pad.xo, %%pad.xi", x, (long long)n))
        try_step(s, "unroll %%pad.xi");
}

/* The pixels' iterator of such a copy. */
static const char *pixels_of_widened(const Stmt *b)
{
    const Prim *v = b->nkids ? b->kids[b->nkids - 1]->u.store.value : NULL;

    if (!v || v->kind != PRIM_CAST || v->kids[0]->kind != PRIM_LOAD || b->u.block.nspatial < 2)
        return NULL;
    return b->u.block.iter[b->u.block.nspatial - 2]->name;
}

/* Rows, of which threads then compute those that they have copied; else what there is. */
static void divide_copy(Sched *s)
{
    const BlockData *d = &sched_block(s, "pad")->u.block;
    Machine          m = machine_of(s->target);
    const char      *y = intern_printf(s->c->strings, "pad.%s", d->iter[d->nspatial - 2]->name);

    if (even_parts(&m, iter_extent(s, "pad", d->iter[d->nspatial - 2]->name)))
        try_step(s, "parallel %%%s", y);
    else
        divide_rows(s, "pad");
}

void pad_marks(Sched *s, const char *at)
{
    int64_t     lo = 0, n = 0, lanes = cpu_lanes(s);
    const Stmt *b = sched_block(s, "pad");
    const char *x = b->u.block.iter[b->u.block.nspatial - 1]->name;
    Machine     m = machine_of(s->target);
    const char *middle = "", *pixels = pixels_of_widened(b);

    if (at && !try_step(s, "compute_at pad %s", at))
        at = NULL;
    if (iter_extent(s, "pad", x) == lanes || !pad_interior(s, &lo, &n) || n < lanes) {
        if (!at)
            spatial_marks(s, "pad");
        else
            vector_marks(s, "pad");
        widen_marks(s, pixels);
        return;
    }
    if (lo + n < iter_extent(s, "pad", x) &&
        try_step(s, "partition %%pad.%s at %lld", x, (long long)(lo + n)))
        middle = "#0";
    if (lo > 0 && try_step(s, "partition %%pad.%s%s at %lld", x, middle, (long long)lo))
        middle = "#1";
    if (try_step(s, "split %%pad.%s%s by %lld tail=peel -> %%pad.vo, %%pad.vi", x, middle,
                 (long long)lanes))
        try_step(s,
                 n % lanes >= limit_least_rest(&m) ? "vectorize %%pad.vi" : "vectorize %%pad.vi#0");
    if (!at && !is_tiny_kernel(s))
        divide_copy(s);
}

/* Rows of a channel at a time, where there are enough of these for all threads; else all of them
 * first. */
static void rows_stage(Sched *s, const char *block, bool alone)
{
    const BlockData *d = &sched_block(s, block)->u.block;
    Machine          m = machine_of(s->target);
    const char      *n = d->iter[0]->name, *channel = d->iter[1]->name;
    bool             parts = iter_extent(s, block, n) >= limit_least_parts(&m) ||
                 iter_extent(s, block, channel) >= limit_least_parts(&m);

    if ((alone || parts) && try_step(s, "compute_at rows %%%s.%s", block, channel)) {
        vector_marks(s, "rows");
        write_positions(s, "rows");
    } else {
        spatial_marks(s, "rows");
    }
}

/* What stays beside the last one are results, too, as of a split. */
static void other_results(Sched *s, const char *last)
{
    const char *names[64];
    uint32_t    n = sched_blocks(s, names, COUNT(names));

    for (uint32_t i = 0; i < n; i++)
        if (strcmp(names[i], last) && strcmp(names[i], "rows"))
            spatial_marks(s, names[i]);
}

void sched_injective(Sched *s)
{
    bool        rows = false;
    const char *block = last_block(s, &rows);

    if (!block || !has_cells(s, block))
        return;
    bool      alone = is_tiny_kernel(s);
    CellsPlan p = cells_plan(s, block);

    sched_decide(s, decide_cells, &p);
    if (rows)
        rows_stage(s, block, alone);
    other_results(s, block);
    if (p.how != CELLS_AS_THEY_LIE && cells_marks(s, block, p.how, !alone))
        return;
    if (p.keeps)
        keep_positions(s, &p.positions);
    surplus_marks(s, block);
    rows_marks(s, block, p.vectors, alone);
}
