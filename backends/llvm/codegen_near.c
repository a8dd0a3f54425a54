/* A vector of scalars that lie near each other in memory: a few contiguous loads and shuffles,
 * instead of a load for each.
 *
 *     [x[0], x[2], x[4], x[6]]     ->  shuffle(load x[0..3], load x[3..6]; 0 2 5 7)
 *     [x[0], x[0], x[1], x[1]]     ->  shuffle(load x[0..1]; 0 0 1 1)
 *     [x[0], x[90], x[1], x[91]]   ->  shuffle(load x[0..1], load x[90..91]; 0 2 1 3)
 *     [x[0], y[0], x[1], y[1]]     ->  shuffle(load x[0..1], load y[0..1]; 0 2 1 3)
 *
 * The first is a stride: windows between the first and the last cell, each as wide as the vector
 * or, where the cells are fewer, the largest power of two of them.  The others are runs of
 * neighbours, each one load, of one buffer or of several; with several runs a vector may be wider
 * than the machine's and is put together in pieces of a run's length.  Nothing outside the cells
 * that are asked for is read: the last window ends at the last cell. */
#include "backends/llvm/llvm.h"

enum { MAX_NEAR = 64, MAX_WINDOWS = 4, MAX_RUNS = 4 };

/* Cells of the k-th buffer begin at k * APART, so that no run goes from one into the next. */
#define APART ((int64_t)1 << 24)

typedef struct {
    const LoadData *load[MAX_RUNS];               /* the first of each buffer */
    uint32_t        loads, lanes, windows, width; /* of a window */
    int64_t         least[MAX_RUNS], span;        /* of a buffer, behind its first load; of all */
    int64_t         at[MAX_NEAR];                 /* cells behind the least */
} Near;

/* Which of the buffers l reads at a known distance from the first load of it, a new one if there is
 * room; -1: none. */
static int near_buffer(Gen *g, Near *n, const LoadData *l, int64_t *at)
{
    for (uint32_t k = 0; k < n->loads; k++)
        if (l->buffer == n->load[k]->buffer)
            return idx_is_const(idx_sub(g->c->arith, l->index[0], n->load[k]->index[0]), at) &&
                           *at > -APART / 2 && *at < APART / 2
                       ? (int)k
                       : -1;
    if (n->loads == MAX_RUNS)
        return -1;
    n->load[n->loads] = l;
    *at = 0;
    return (int)n->loads++;
}

/* The cells of p as distances; false unless its kids are plain loads at known distances. */
static bool near_loads(Gen *g, const Prim *p, Near *n)
{
    int     of[MAX_NEAR];
    int64_t most = 0;

    if (g->mask || p->nkids < 4 || p->nkids > MAX_NEAR || dtype_is_bool(p->dtype))
        return false;
    *n = (Near){.lanes = p->nkids};
    for (uint32_t i = 0; i < p->nkids; i++) {
        const Prim     *k = p->kids[i];
        const LoadData *l = &k->u.load;

        if (k->kind != PRIM_LOAD || k->dtype.lanes > 1 || l->mask || l->n != 1 ||
            l->buffer->scope == SCOPE_REG || (of[i] = near_buffer(g, n, l, &n->at[i])) < 0)
            return false;
        if (n->at[i] < n->least[of[i]])
            n->least[of[i]] = n->at[i];
    }
    for (uint32_t i = 0; i < n->lanes; i++) {
        n->at[i] += of[i] * APART - n->least[of[i]];
        most = n->at[i] > most ? n->at[i] : most;
    }
    n->span = most + 1;
    return true;
}

static LLVMValueRef load_cells(Gen *g, const Near *n, int64_t from, DType t)
{
    int64_t    k = from / APART;
    const Idx *at = idx_addc(g->c->arith, n->load[k]->index[0], n->least[k] + from % APART);
    LoadData   l = {.buffer = n->load[k]->buffer, .n = 1, .index = &at};

    return gen_load(g, &l, t);
}

static LLVMValueRef shuffled(Gen *g, LLVMValueRef a, LLVMValueRef b, LLVMValueRef *pick, uint32_t n)
{
    return LLVMBuildShuffleVector(g->b, a, b ? b : LLVMGetPoison(LLVMTypeOf(a)),
                                  LLVMConstVector(pick, n), "");
}

/* ---- windows ----------------------------------------------------------------------------------- */

static int64_t window_start(const Near *n, uint32_t w)
{
    return w + 1 < n->windows ? (int64_t)w * n->width : n->span - n->width;
}

/* Lanes of the result from windows w and w+1; those from elsewhere are left open. */
static LLVMValueRef from_pair(Gen *g, const Near *n, const LLVMValueRef *load, uint32_t w)
{
    LLVMValueRef pick[MAX_NEAR];
    bool         two = w + 1 < n->windows;

    for (uint32_t i = 0; i < n->lanes; i++) {
        uint32_t from = (uint32_t)(n->at[i] / n->width);
        if (from == w || (two && from == w + 1))
            pick[i] = gen_i32(g, (uint32_t)(n->at[i] - window_start(n, from)) +
                                     (from == w ? 0 : n->width));
        else
            pick[i] = LLVMGetPoison(g->i32);
    }
    return shuffled(g, load[w], two ? load[w + 1] : NULL, pick, n->lanes);
}

static LLVMValueRef from_windows(Gen *g, const Near *n, DType t)
{
    LLVMValueRef load[MAX_WINDOWS], pick[MAX_NEAR], low;

    for (uint32_t w = 0; w < n->windows; w++)
        load[w] = load_cells(g, n, window_start(n, w), dtype_lanes(t, (uint16_t)n->width));
    low = from_pair(g, n, load, 0);
    if (n->windows <= 2)
        return low;
    for (uint32_t i = 0; i < n->lanes; i++)
        pick[i] = gen_i32(g, i + (n->at[i] / n->width >= 2 ? n->lanes : 0));
    return shuffled(g, low, from_pair(g, n, load, 2), pick, n->lanes);
}

/* As wide as the vector, or narrower ones where its cells are fewer; no windows: these are one. */
static void choose_windows(Near *n)
{
    n->width = n->lanes;
    if (n->span < n->lanes)
        for (n->width = 1; n->width * 2 <= n->span; n->width *= 2)
            ;
    n->windows = n->width > 1 && n->span <= (int64_t)MAX_WINDOWS * n->width
                     ? (uint32_t)((n->span + n->width - 1) / n->width)
                     : 0;
}

/* ---- runs -------------------------------------------------------------------------------------- */

typedef struct {
    uint32_t n, of[MAX_NEAR]; /* the run of a lane */
    int64_t  start[MAX_RUNS], cells;
} Runs;

/* The first cell at `from` or behind; false: there is none. */
static bool next_cell(const Near *n, int64_t from, int64_t *cell)
{
    bool any = false;

    for (uint32_t i = 0; i < n->lanes; i++)
        if (n->at[i] >= from && (!any || n->at[i] < *cell))
            any = true, *cell = n->at[i];
    return any;
}

/* Runs of one length, a power of two, all of whose cells are asked for. */
static bool find_runs(const Near *n, uint32_t most, Runs *r)
{
    int64_t at = 0, last = 0;

    *r = (Runs){0};
    for (int64_t from = 0; next_cell(n, from, &at); from = last + 1) {
        if (r->n == MAX_RUNS)
            return false;
        r->start[r->n++] = last = at;
        while (next_cell(n, last + 1, &at) && at == last + 1)
            last = at;
        int64_t cells = last - r->start[r->n - 1] + 1;
        if ((r->cells && r->cells != cells) || cells < 2 || cells > most || (cells & (cells - 1)))
            return false;
        r->cells = cells;
    }
    for (uint32_t i = 0; i < n->lanes; i++)
        while (n->at[i] >= r->start[r->of[i]] + r->cells)
            r->of[i]++;
    return true;
}

/* Lanes from `first` on, `count` of them, of the vectors of all runs. */
static LLVMValueRef piece(Gen *g, const Near *n, const Runs *r, const LLVMValueRef *run,
                          uint32_t first, uint32_t count)
{
    LLVMValueRef pick[MAX_NEAR], part[MAX_RUNS / 2] = {0};

    for (uint32_t k = 0; k < r->n; k += 2) {
        for (uint32_t i = 0; i < count; i++) {
            uint32_t of = r->of[first + i];
            int64_t  in = n->at[first + i] - r->start[of];
            pick[i] = of / 2 != k / 2 ? LLVMGetPoison(g->i32)
                                      : gen_i32(g, (uint32_t)(in + (of % 2 ? r->cells : 0)));
        }
        part[k / 2] = shuffled(g, run[k], k + 1 < r->n ? run[k + 1] : NULL, pick, count);
    }
    if (r->n <= 2)
        return part[0];
    for (uint32_t i = 0; i < count; i++)
        pick[i] = gen_i32(g, i + (r->of[first + i] >= 2 ? count : 0));
    return shuffled(g, part[0], part[1], pick, count);
}

/* b behind a; b has no more lanes. */
static LLVMValueRef behind(Gen *g, LLVMValueRef a, LLVMValueRef b)
{
    uint32_t     na = LLVMGetVectorSize(LLVMTypeOf(a)), nb = LLVMGetVectorSize(LLVMTypeOf(b));
    LLVMValueRef pick[MAX_NEAR];

    if (nb < na) {
        for (uint32_t i = 0; i < na; i++)
            pick[i] = i < nb ? gen_i32(g, i) : LLVMGetPoison(g->i32);
        b = shuffled(g, b, NULL, pick, na);
    }
    for (uint32_t i = 0; i < na + nb; i++)
        pick[i] = gen_i32(g, i);
    return shuffled(g, a, b, pick, na + nb);
}

static LLVMValueRef from_runs(Gen *g, const Near *n, const Runs *r, uint32_t most, DType t)
{
    LLVMValueRef run[MAX_RUNS], all = NULL;
    uint32_t     count = n->lanes <= most ? n->lanes : (uint32_t)r->cells;

    for (uint32_t k = 0; k < r->n; k++)
        run[k] = load_cells(g, n, r->start[k], dtype_lanes(t, (uint16_t)r->cells));
    for (uint32_t i = 0; i < n->lanes; i += count) {
        LLVMValueRef v = piece(g, n, r, run, i, count);
        all = all ? behind(g, all, v) : v;
    }
    return all;
}

LLVMValueRef gen_near(Gen *g, const Prim *p)
{
    uint32_t most = g->t->vector_bytes / dtype_bytes(dtype_lanes(p->dtype, 1));
    Near     n;
    Runs     r;

    if (!near_loads(g, p, &n))
        return NULL;
    choose_windows(&n);
    if (n.span >= n.lanes && n.windows && n.lanes <= most)
        return from_windows(g, &n, p->dtype);
    if (find_runs(&n, most, &r) && (n.lanes <= most || n.lanes % r.cells == 0))
        return from_runs(g, &n, &r, most, p->dtype);
    return n.windows && n.lanes <= most ? from_windows(g, &n, p->dtype) : NULL;
}
