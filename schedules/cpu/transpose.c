/* Kernels that turn memory: what lies together in the operand does not in the result.
 *
 *   %out[c, y, x] = %x[c//16, y, x, c%16]       blocked channels to plain ones; the way back;
 *   %out[i, j] = %x[j, i]                       a matrix
 *
 * A vector of the result would be gathered, lane by lane.  So the nest is tiled by as many cells of
 * the result's innermost dimension as a vector has lanes, and as many of the one that is innermost
 * in the operand; a tile is written out, and code generation loads its rows as vectors and turns it
 * in registers (backends/llvm/codegen_transpose.c).  What else the kernel reads must be turned in
 * the same way, lie as the result does, or be one number for a row. */
#include "schedules/cpu/cpu.h"

#include <string.h>

enum { LEAST = 4, MAX_LOADS = 8 }; /* cells on a side worth turning */

typedef struct {
    Sched           *s;
    const char      *block;
    const BlockData *b;
    uint32_t         inner; /* the result's innermost iterator with more than a cell */
    uint32_t         loads;
    const LoadData  *of[MAX_LOADS], *load; /* all; the one that is turned first */
    uint32_t         unit;                 /* iterator that walks neighbours of that operand, */
    int64_t          run; /* so many at a time: a vector's lanes, or narrower blocks */
} Turn;

static void see_load(void *user, const Prim *p)
{
    Turn *t = user;

    if (p->kind != PRIM_LOAD || t->loads > MAX_LOADS)
        return;
    for (uint32_t i = 0; i < t->loads; i++)
        if (t->of[i]->buffer == p->u.load.buffer &&
            !memcmp(t->of[i]->index, p->u.load.index, p->u.load.n * sizeof(Idx *)))
            return;
    if (t->loads < MAX_LOADS)
        t->of[t->loads] = &p->u.load;
    t->loads++;
}

/* Do neighbours along v lie apart, at whatever distances (cells of several images by turns)? */
static bool lies_apart(Sched *s, const Idx *x, const Atom *v, int64_t cells)
{
    const Idx *at[2];
    int64_t    step = flat_step(x, v, cells), d;

    if (step)
        return step >= LEAST;
    for (int64_t i = 0; i < LEAST; i++) {
        IdxSubst *sub = subst_new(s->c->arith, s->c->scratch);

        subst_bind(sub, v, idx_const(s->c->arith, i));
        at[i % 2] = idx_subst(sub, x);
        if (i && (!idx_is_const(idx_sub(s->c->arith, at[i % 2], at[1 - i % 2]), &d) ||
                  (d < LEAST && d > -LEAST)))
            return false;
    }
    return true;
}

static int64_t extent(const Turn *t, uint32_t i)
{
    return atom_usual(t->b->iter[i]);
}

/* Do cells of the load lie apart along the result's row, and side by side along another iterator?
 */
static bool turns(Turn *t, const LoadData *load)
{
    const Idx *at = flat_index(t->s, load);

    if (!lies_apart(t->s, at, t->b->iter[t->inner], cpu_lanes(t->s)))
        return false;
    for (t->run = cpu_lanes(t->s); t->run >= LEAST; t->run /= 2)
        for (t->unit = 0; t->unit < t->inner; t->unit++)
            if (flat_step(at, t->b->iter[t->unit], t->run) == 1)
                return extent(t, t->unit) >= LEAST;
    return false;
}

/* Is the load one of the tile, turned as the first one, or a vector, or a number? */
static bool goes_along(const Turn *t, const LoadData *load)
{
    const Idx  *at = flat_index(t->s, load);
    const Atom *lane = t->b->iter[t->inner];

    return !idx_uses(at, lane) || flat_step(at, lane, cpu_lanes(t->s)) == 1 ||
           (lies_apart(t->s, at, lane, cpu_lanes(t->s)) &&
            flat_step(at, t->b->iter[t->unit], t->run) == 1);
}

static bool find_loads(Turn *t)
{
    const Stmt *b = sched_block(t->s, t->block);

    if (!b || b->u.block.opaque || b->u.block.nspatial < 2 || b->u.block.nreduce ||
        cpu_lanes(t->s) < LEAST)
        return false;
    t->b = &b->u.block;
    t->inner = t->b->nspatial - 1;
    while (t->inner && extent(t, t->inner) == 1)
        t->inner--;
    stmt_visit(b, &(TirVisit){.user = t, .prim = see_load});
    return t->loads && t->loads <= MAX_LOADS;
}

static const char *loop(const Turn *t, uint32_t i)
{
    return intern_printf(t->s->c->strings, "%s.%s", t->block, t->b->iter[i]->name);
}

/* Blocks of surplus channels are cut off: only there a lane may hold no cell of the operand. */
static void cut_surplus(const Turn *t)
{
    int64_t n;

    for (uint32_t d = 0; d < t->load->n; d++) {
        const Idx *x = t->load->index[d];
        if (!idx_is_const(t->load->buffer->extent[d], &n))
            continue;
        for (uint32_t i = 0; i < x->nterms; i++)
            for (uint32_t k = 0; k < t->inner; k++) {
                int64_t lanes = x->t[i].coef; /* of a block of channels */

                if (x->t[i].atom == t->b->iter[k] && lanes >= LEAST && n % lanes && n >= lanes)
                    try_step(t->s, "partition %%%s at %lld", loop(t, k), (long long)(n / lanes));
            }
    }
}

void surplus_marks(Sched *s, const char *block)
{
    Turn t = {.s = s, .block = block};

    if (!find_loads(&t) || t.loads != 1)
        return;
    t.load = t.of[0];
    cut_surplus(&t);
}

static const StoreData *store_of(const Turn *t)
{
    const Stmt *b = sched_block(t->s, t->block);

    return b->nkids == 1 && b->kids[0]->kind == STMT_STORE ? &b->kids[0]->u.store : NULL;
}

/* Do rows along iterator i lie one behind the other in what the load reads, or stay the same? */
static bool is_line(const Turn *t, const LoadData *load, uint32_t i)
{
    const Idx *at = flat_index(t->s, load);
    int64_t    step = flat_step(at, t->b->iter[i], 1);

    if (!step)
        return !idx_uses(at, t->b->iter[i]) && !idx_uses(at, t->b->iter[i - 1]);
    return flat_step(at, t->b->iter[i - 1], 1) == step * extent(t, i);
}

/* Rows of an image that lie one behind the other on all sides are one line. */
static bool joins_before(const Turn *t, uint32_t i)
{
    const StoreData *d = store_of(t);

    if (!d || i == 0)
        return false;
    LoadData out = {.buffer = d->buffer, .n = d->n, .index = d->index};
    bool     joins = is_line(t, &out, i);

    for (uint32_t k = 0; k < t->loads; k++)
        joins = joins && is_line(t, t->of[k], i);
    return joins;
}

/* Rows of fewer cells are turned as one line with those before, of half a vector at least. */
static bool is_wide(const Turn *t)
{
    int64_t cells = extent(t, t->inner), lanes = cpu_lanes(t->s);

    if (cells >= LEAST || t->unit + 1 >= t->inner)
        return cells >= LEAST;
    cells *= extent(t, t->inner - 1);
    return cells >= LEAST && cells * 2 >= lanes && joins_before(t, t->inner);
}

static bool is_turned(Turn *t)
{
    if (!find_loads(t))
        return false;
    for (uint32_t i = 0; i < t->loads && !t->load; i++)
        if (t->of[i]->buffer->dtype.bits == 32 && turns(t, t->of[i]))
            t->load = t->of[i];
    for (uint32_t i = 0; i < t->loads && t->load; i++)
        if (!goes_along(t, t->of[i]))
            return false;
    return t->load && is_wide(t);
}

/* Cells of a row that fill no vectors, while the result goes on where it ends: tiles of all its
 * rows as one line are full, but each lane has an address of its own. */
static bool joins_result(const Turn *t, int64_t cells)
{
    const StoreData *d = store_of(t);
    Machine          m = machine_of(t->s->target);
    int64_t          lanes = cpu_lanes(t->s), rounds = ceil_div(cells, lanes) * lanes;
    double           n = (double)(extent(t, t->inner - 1) * cells), loads = (double)t->loads;

    if (!d || t->unit + 1 >= t->inner || t->inner + 1 != t->b->nspatial || n < (double)lanes)
        return false;
    LoadData out = {.buffer = d->buffer, .n = d->n, .index = d->index};
    return is_line(t, &out, t->inner) &&
           loads * (turn_cycles(&m, lanes, n) + lane_cycles(n / (double)lanes)) <
               loads * turn_cycles(&m, lanes, n * (double)rounds / (double)cells);
}

/* The loops between row and lane go outside of the row's tile. */
static bool row_inside(const Turn *t, const char *lane, bool split)
{
    StrBuf order = strbuf(t->s->c->arena);
    bool   any = false;

    for (uint32_t i = t->unit + 1; i < t->inner; i++)
        if (loop_extent(t->s, loop(t, i)) > 0)
            str_printf(&order, "%%%s, ", loop(t, i)), any = true;
    if (split)
        return step(t->s, "reorder %s%%%s, %%%s.ri", any ? order.at : "", lane, t->block);
    return !any || step(t->s, "reorder %s%%%s.ri, %%%s", order.at, t->block, lane);
}

/* Do threads take whole rows of the result?  Where these are short and enough, and lie one behind
 * the other (those of panels do not). */
static bool takes_rows(const Turn *t)
{
    const StoreData *d = store_of(t);
    Machine          m = machine_of(t->s->target);
    int64_t          row = 1, blocks = ceil_div(extent(t, t->unit), t->run);

    for (uint32_t i = t->unit + 1; i < t->b->nspatial; i++)
        row *= extent(t, i);
    if (!d || blocks < m.cores || thread_balance(blocks) < limit_balance_panels(&m) ||
        row > limit_whole_row(&m))
        return false;
    LoadData out = {.buffer = d->buffer, .n = d->n, .index = d->index};
    return flat_step(flat_index(t->s, &out), t->b->iter[t->unit], 1) >= row;
}

/* Threads divide what is outside of the tiles where it is even parts, else the tiles in `shared`.
 */
static void divide_tiles(const Turn *t, const char *shared)
{
    const char *loops[TE_MAX_AXES];
    int64_t     parts = 1;
    Machine     m = machine_of(t->s->target);

    for (uint32_t i = 0; i < t->unit; i++) {
        loops[i] = loop(t, i);
        parts *= extent(t, i);
    }
    if (!even_parts(&m, parts) ||
        !divide_loops(t->s, intern_printf(t->s->c->strings, "%s.u", t->block), loops, t->unit))
        try_step(t->s, "parallel %%%s", shared);
}

/* The loop of the result's row, with those of one round behind it; NULL if refused. */
static const char *lane_loop(const Turn *t)
{
    StrBuf      loops = strbuf(t->s->c->arena);
    const char *lane = loop(t, t->inner);

    if (t->inner + 1 == t->b->nspatial)
        return lane;
    str_printf(&loops, "%%%s", lane);
    for (uint32_t i = t->inner + 1; i < t->b->nspatial; i++)
        str_printf(&loops, ", %%%s", loop(t, i));
    lane = intern_printf(t->s->c->strings, "%s.row", t->block);
    return step(t->s, "fuse %s -> %%%s", loops.at, lane) ? lane : NULL;
}

static bool tile(const Turn *t, bool parallel)
{
    Sched      *s = t->s;
    bool        joined = false;
    uint32_t    inner = t->inner;
    const char *lane = lane_loop(t), *row = loop(t, t->unit), *shared;
    long long   lanes = cpu_lanes(s);
    int64_t     cells = extent(t, inner);

    if (!lane)
        return false;
    cut_surplus(t);
    if (t->unit + 1 < inner && (joins_before(t, inner) || joins_result(t, cells)) &&
        step(s, "fuse %%%s, %%%s -> %%%s.line", loop(t, inner - 1), lane, t->block)) {
        lane = intern_printf(s->c->strings, "%s.line", t->block);
        cells *= extent(t, inner - 1);
    } else if (t->unit && joins_before(t, t->unit) &&
               step(s, "fuse %%%s, %%%s -> %%%s.line", loop(t, t->unit - 1), row, t->block)) {
        row = intern_printf(s->c->strings, "%s.line", t->block);
        joined = true;
    }
    step(s, "split %%%s by %lld tail=peel -> %%%s.ro, %%%s.ri", row, (long long)t->run, t->block,
         t->block);
    shared = intern_printf(s->c->strings, "%s.ro", t->block);
    if (!row_inside(t, lane, cells > lanes))
        return false;
    if (cells > lanes) {
        step(s, "split %%%s by %lld tail=peel -> %%%s.vo, %%%s.vi", lane, lanes, t->block,
             t->block);
        step(s, "reorder %%%s.ri, %%%s.vi", t->block, t->block);
        lane = intern_printf(s->c->strings, "%s.vi", t->block);
        if (!takes_rows(t))
            shared = intern_printf(s->c->strings, "%s.vo", t->block);
    }
    step(s, "vectorize %%%s", lane);
    step(s, "unroll %%%s.ri", t->block);
    if (parallel && joined)
        try_step(s, "parallel %%%s", shared);
    else if (parallel)
        divide_tiles(t, shared);
    return !s->refusal;
}

/* ---- few rows by turns -------------------------------------------------------------------------
 *
 *   %out[y, x, c] = %x[c, y, x]                 a picture's 3 channels; cells of several images
 *   %out[y, x] = %x[y//2, x//2]                 each cell twice
 *
 * Some vectors of the result hold the cells of as many runs of the operand, each of a vector's
 * lanes, by turns: as wide a vector loop, which code generation makes of one load a run and
 * shuffles (backends/llvm/codegen_near.c). */

enum { MOST_RUNS = 4 };

/* Cells of so many innermost dimensions. */
static int64_t line_extent(const Turn *t, uint32_t dims)
{
    int64_t n = 1;

    for (uint32_t i = t->b->nspatial - dims; i < t->b->nspatial; i++)
        n *= extent(t, i);
    return n;
}

/* The load's cell for cell i of a line of so many dimensions. */
static const Idx *cell_at(const Turn *t, const Idx *at, int64_t i, uint32_t dims)
{
    IdxSubst *sub = subst_new(t->s->c->arith, t->s->c->scratch);
    uint32_t  k = t->b->nspatial;

    for (; dims > 1; dims--) {
        int64_t n = extent(t, --k);

        subst_bind(sub, t->b->iter[k], idx_const(t->s->c->arith, i % n));
        i /= n;
    }
    subst_bind(sub, t->b->iter[k - 1], idx_const(t->s->c->arith, i));
    return idx_subst(sub, at);
}

/* Are cells 0 to runs*lanes runs of `lanes` neighbours each? */
static bool are_runs(const Turn *t, const Idx *at, int64_t runs, int64_t lanes, uint32_t dims)
{
    const Idx *first = cell_at(t, at, 0, dims);
    int64_t    start[MOST_RUNS], seen[MOST_RUNS] = {0}, n = 0, d;

    for (int64_t i = 0; i < runs * lanes; i++) {
        int64_t k = 0;

        if (!idx_is_const(idx_sub(t->s->c->arith, cell_at(t, at, i, dims), first), &d))
            return false;
        while (k < n && d != start[k] + seen[k])
            k++;
        if (k == runs || (k < n && seen[k] == lanes))
            return false;
        if (k == n)
            start[n++] = d;
        seen[k]++;
    }
    return n == runs;
}

/* How many innermost dimensions are a line of so many runs: one, or all that it takes where the
 * last one has few cells. */
static uint32_t runs_dims(const Turn *t, const Idx *at, int64_t runs, int64_t lanes)
{
    uint32_t n = t->b->nspatial, dims = 1;

    if (extent(t, n - 1) <= MOST_RUNS)
        for (dims = 2; dims < n && line_extent(t, dims) < runs * lanes;)
            dims++;
    return runs * lanes <= line_extent(t, dims) && are_runs(t, at, runs, lanes, dims) ? dims : 0;
}

static bool by_turns(Turn *t, bool parallel)
{
    Sched   *s = t->s;
    Machine  m = machine_of(s->target);
    int64_t  lanes = cpu_lanes(s), runs = 2;
    uint32_t dims = 0;

    if (!find_loads(t) || t->loads != 1)
        return false;
    t->load = t->of[0];
    uint32_t   inner = t->b->nspatial - 1;
    const Idx *at = flat_index(s, t->load);

    while (runs <= MOST_RUNS && !(dims = runs_dims(t, at, runs, lanes)))
        runs++;
    if (!dims)
        return false;
    const char *line = loop(t, inner);
    uint32_t    outer = inner + 1 - dims;

    cut_surplus(t);
    /* Rows that lie one behind the other on both sides are one line too. */
    if (dims > 1) {
        StrBuf loops = strbuf(s->c->arena);

        for (uint32_t i = outer; i <= inner; i++)
            str_printf(&loops, "%s%%%s", i > outer ? ", " : "", loop(t, i));
        line = intern_printf(s->c->strings, "%s.line", t->block);
        if (!step(s, "fuse %s -> %%%s", loops.at, line))
            return false;
    }
    if (dims > 1 && outer && joins_before(t, outer) &&
        step(s, "fuse %%%s, %%%s -> %%%ss", loop(t, outer - 1), line, line)) {
        line = intern_printf(s->c->strings, "%ss", line);
        outer--;
    }
    int64_t cells = loop_extent(s, line);
    step(s, "split %%%s by %lld tail=peel -> %%%s.vo, %%%s.vi", line, (long long)(runs * lanes),
         t->block, t->block);
    try_step(s, "vectorize %%%s.vi#0", t->block);
    /* What whole rounds leave over: vectors, whose cells lie as near each other. */
    loop_vectors(s, intern_printf(s->c->strings, "%s.vi#1", t->block), cells % (runs * lanes),
                 lanes, limit_least_rest(&m), intern_printf(s->c->strings, "%s.r", t->block));
    if (parallel && (!outer || extent(t, 0) < LEAST))
        try_step(s, "parallel %%%s.%s", t->block, outer > 1 ? t->b->iter[1]->name : "vo");
    else if (parallel)
        try_step(s, "parallel %%%s", loop(t, 0));
    return !s->refusal;
}

bool cells_marks(Sched *s, const char *block, Cells how, bool parallel)
{
    Turn  t = {.s = s, .block = block};
    Sched before = *s;

    if (how == CELLS_TURNED ? is_turned(&t) && tile(&t, parallel) : by_turns(&t, parallel))
        return true;
    *s = before;
    return false;
}

bool turn_marks(Sched *s, const char *block, bool parallel)
{
    return cells_marks(s, block, CELLS_TURNED, parallel) ||
           cells_marks(s, block, CELLS_BY_TURNS, parallel);
}
