/* Pooling: windows on blocked channels, or on plain rows.
 *
 * The window's loops run outside the vector, whose accumulators stay in registers. */
#include "schedules/cpu/cpu.h"

#include <string.h>

enum { LONG_COLUMN = 8 }; /* cells of a window's column that are written out */

/* ---- plain rows ---------------------------------------------------------------------------------- */

/* What is decided, and from what. */
typedef struct {
    int64_t  y, x, channels, lanes;
    int64_t  pad, again; /* cells of the padded copy; of its rows that two groups read, */
    int64_t  maxima;     /* cells of a row's maxima */
    int64_t  stored;     /* cells that are stored for a row of the result before it reads them */
    int64_t  group;      /* rows of the result that are made together, */
    int64_t  chains;     /* vectors of maxima, */
    SumSizes sums;       /* which are these */
} RowsPlan;

/* What comes before the rows of a group, padded rows and maxima of rows, is stored a while before
 * it is read across two stores, which a load cannot take from the store queue; but it is to stay in
 * L1, and what two groups read is made twice. */
static void decide_pool_rows(Sched *s, void *plan)
{
    RowsPlan  *p = plan;
    Machine    m = machine_of(s->target);
    Candidates k = candidates(s);
    int64_t    vectors = ceil_div(p->stored > 0 ? p->stored : 1, p->lanes);

    for (int64_t g = p->y; g > 0; g = g > 1 ? divisor_upto(p->y, g - 1) : 0) {
        int64_t groups = p->y / g, cells = p->pad + p->again * (groups - 1);
        double  bytes = 4 * (double)(cells + p->maxima * p->y) / (double)groups;
        double  all = (double)(cells + p->maxima * p->y) / (double)p->lanes;

        double apart = (double)(g * vectors);

        /* Rows of one masked vector wait differently: 0.4 to 2.8 of the time, 5x5 on 13x13 and 3x3
         * on 9x9, all of them together (AVX-512, Zen 5). */
        if (vectors == 1 && m.fma_mem_splat && apart < (double)limit_stores_apart(&m))
            apart = 0;
        candidate(&k, g, 0, (double)p->channels * handed_cycles(&m, all, apart, bytes));
    }
    p->group = pick_factor(s, "rows", &k);
    p->chains = p->maxima ? pick_sums(s, &p->sums, 1) : 1;
}

/* Windows of a plain row: outputs side by side as vectors.  The padded copy stays, a group of rows
 * at a time, so that no cell is asked where it lies; so do the maxima of rows (ops/nn/pool2d.c). */
static void pool_rows(Sched *s, int64_t lanes)
{
    int64_t     n = iter_extent(s, "pool", "x"), channels = iter_extent(s, "pool", "c");
    int64_t     y = iter_extent(s, "pool", "y");
    bool        tiny = is_tiny(s, block_work(s, "pool"));
    const char *out = inline_epilogue(s, "pool"), *at = "%pool.c";
    RowsPlan    p = {.y = y,
                     .x = n,
                     .channels = channels,
                     .lanes = lanes,
                     .pad = iter_extent(s, "pad", "y") * iter_extent(s, "pad", "x"),
                     .maxima = iter_extent(s, "rows", "x")};

    if (p.pad) { /* of a stride of one row, where the window does not say it */
        int64_t rows = iter_extent(s, "pad", "y"), stride = y > 1 ? rows / y : rows;
        p.again = (rows - stride * y) * iter_extent(s, "pad", "x");
    }
    p.stored = p.maxima ? p.maxima : p.pad ? iter_extent(s, "pad", "x") : n;
    if (p.maxima)
        p.sums = sum_sizes(s, "rows", false);
    if (loop_extent(s, "pool.y") < 1)
        p.y = 1; /* of the run: nothing to cut */
    sched_decide(s, decide_pool_rows, &p);
    if (p.group < p.y &&
        try_step(s, "split %%pool.y by %lld -> %%yb, %%pool.yr", (long long)p.group))
        at = "%yb";
    if (has_block(s, "rows"))
        try_step(s, "compute_at rows %s", at);
    if (has_block(s, "pad"))
        pad_marks(s, at);
    if (has_block(s, "rows")) {
        vector_accumulate(s, "rows", p.chains, 1);
        if (iter_extent(s, "rows", "kh") <= LONG_COLUMN)
            try_step(s, "unroll %%rows.kh");
    }
    if (!tiny)
        try_step(s, "parallel %%pool.%s", channels > 1 ? "c" : "n");
    if (n < lanes)
        lanes = n; /* short rows: as many lanes as there are columns */
    if (lanes < 2 ||
        !try_step(s, "split %%pool.x by %lld tail=peel -> %%xo, %%xi", (long long)lanes))
        return;
    bool rows = !iter_extent(s, "pool", "kh");
    try_step(s, "reorder %s%%pool.kw, %%xi", rows ? "" : "%pool.kh, ");
    try_step(s, "cache_write pool reg at %%xo");
    if (out)
        try_step(s, "reverse_compute_at %s %%xo", out);
    try_step(s, "vectorize %%xi");
    try_step(s, "unroll %s%%pool.kw", rows ? "" : "%pool.kh, ");
}

/* ---- blocks of channels -------------------------------------------------------------------------- */

static const char *const written_words[] = {"nothing", "columns", "window"};

typedef struct {
    int64_t x, lanes;
    bool    open; /* a run decides x */
    Window  window;
    double  vectors; /* of the result */
    int64_t pixels;
    Written written;
} PoolPlan;

static void decide_pool(Sched *s, void *plan)
{
    PoolPlan  *p = plan;
    Machine    m = machine_of(s->target);
    Window    *w = &p->window;
    int64_t    cells[] = {0, w->kw, w->kh * w->kw}; /* written out, by Written */
    int64_t    most_pixels = limit_window_pixels(&m);
    Candidates pixels = candidates(s), written = candidates(s);

    for (int64_t n = p->x < most_pixels ? p->x : most_pixels; n > 0;
         n = p->open ? n - 1 : lower_tile(p->x, n)) {
        Written most = WRITTEN_ALL;

        while (most && n * cells[most] > limit_code_taps(&m))
            most--;
        candidate(&pixels, n, 0, p->vectors / (double)n * window_cycles(&m, p->lanes, w, n, most));
    }
    p->pixels = pick_factor(s, "pixels", &pixels);
    for (Written i = WRITTEN_NONE; i <= WRITTEN_ALL; i++)
        if (p->pixels * cells[i] <= limit_code_taps(&m))
            candidate(&written, i, 0,
                      p->vectors / (double)p->pixels *
                          window_cycles(&m, p->lanes, w, p->pixels, i));
    p->written = (Written)pick_order(s, "unroll", &written, written_words);
}

/* The step of the window along a row, and what it makes of its cells. */
typedef struct {
    const Atom *x;
    Window      window;
} Reads;

static void see_window(void *user, const Prim *p)
{
    Reads *r = user;

    r->window.maximum |= p->kind == PRIM_MAX && dtype_is_float(p->dtype);
    if (p->kind == PRIM_LOAD && p->u.load.n > 3 && idx_uses(p->u.load.index[3], r->x))
        r->window.stride = idx_coef(p->u.load.index[3], r->x);
}

static Window window_of(const Sched *s)
{
    const Stmt *b = sched_block(s, "pool");
    Reads r = {.window = {iter_extent(s, "pool", "kh"), iter_extent(s, "pool", "kw"), 1, false}};

    r.x = b->u.block.iter[b->u.block.nspatial - 2];
    stmt_visit(b, &(TirVisit){.user = &r, .prim = see_window});
    return r.window;
}

typedef struct {
    const Sched *s;
    const char  *name; /* of the parameter that windows read, if it lies beyond L2 */
} Image;

static void see_image(void *user, const Prim *p)
{
    Image        *i = user;
    const Buffer *b = p->kind == PRIM_LOAD && p->u.load.n == 5 ? p->u.load.buffer : NULL;
    Machine       m = machine_of(i->s->target);
    int64_t       cells, origin;

    if (b && buffer_size(i->s->c, b, &cells, &origin) &&
        cells * dtype_bytes(b->dtype) > room_value(&m))
        i->name = b->name;
}

/* A tile reads a few cells of each of some rows: too many short pieces for hardware to foresee, so
 * what the next row of the result reads is asked for meanwhile (5x5 of 13 MB takes 0.4 of the time;
 * Zen 5). */
static void ask_for_rows(Sched *s)
{
    Image i = {.s = s};

    stmt_visit(sched_block(s, "pool"), &(TirVisit){.user = &i, .prim = see_image});
    if (i.name)
        try_step(s, "prefetch_next %%%s at %%t over %%pool.y", i.name);
}

/* Windows of vectors: tiles of a row, whose cells are loaded once where they are written out. */
static void pool_tiles(Sched *s, const char *out)
{
    int64_t  j = iter_extent(s, "pool", "j");
    PoolPlan p = {.x = iter_extent(s, "pool", "x"),
                  .lanes = j,
                  .open = is_symbolic(s, "pool", "x"),
                  .window = window_of(s)};

    p.vectors = (double)block_work(s, "pool") / (double)(j * p.window.kh * p.window.kw);
    sched_decide(s, decide_pool, &p);
    TileNest tile = {.block = "pool",
                     .line = "pool.x",
                     .tiles = "t",
                     .pixel = "p",
                     .pixels = p.pixels,
                     .each = p.open,
                     .sums = "%pool.kh, %pool.kw",
                     .vectors = "%pool.j",
                     .lane = "pool.j",
                     .unroll = "%p",
                     .out = out};
    tile_sums(s, &tile);
    tile_marks(s, &tile);
    if (p.written)
        step(s, p.written == WRITTEN_ALL ? "unroll %%pool.kh, %%pool.kw" : "unroll %%pool.kw");
    ask_for_rows(s);
}

void sched_pool(Sched *s)
{
    const char *out;
    Machine     m = machine_of(s->target);
    bool        tiles = false;

    inline_prologue(s, "pool");
    if (!sched_block(s, "pool")) {
        sched_injective(s);
        return;
    }
    if (!iter_extent(s, "pool", "j") && cpu_lanes(s) > 1) {
        pool_rows(s, cpu_lanes(s));
        return;
    }
    if (!try_step(s, "elide_pad pad"))
        try_step(s, "compute_inline pad");
    out = inline_epilogue(s, "pool");
    const Stmt *b = sched_block(s, "pool");
    const char *last =
        b->u.block.nspatial > 1 ? b->u.block.iter[b->u.block.nspatial - 2]->name : NULL;
    int64_t     work = block_work(s, "pool");
    const char *first = NULL, *second = NULL;
    for (uint32_t i = 0; i < b->u.block.nspatial && !first; i++)
        if (iter_extent(s, "pool", b->u.block.iter[i]->name) > 1) {
            first = b->u.block.iter[i]->name;
            second = i + 3 < b->u.block.nspatial ? b->u.block.iter[i + 1]->name : NULL;
        }
    if (is_block(s, iter_extent(s, "pool", "j")) && iter_extent(s, "pool", "kw") &&
        !is_symbolic(s, "pool", "kh") && !is_symbolic(s, "pool", "kw") &&
        (loop_extent(s, "pool.x") > 0 || is_symbolic(s, "pool", "x"))) {
        pool_tiles(s, out);
        tiles = true;
    } else {
        vector_accumulate(s, "pool", best_sums(s, "pool", false), 1);
        if (out && last)
            try_step(s, "reverse_compute_at %s %%pool.%s", out, last);
    }
    if (first && !is_tiny(s, work)) {
        if (second && thread_balance(iter_extent(s, "pool", first)) < limit_balance_rows(&m) &&
            try_step(s, "fuse %%pool.%s, %%pool.%s -> %%u", first, second))
            try_step(s, "parallel %%u");
        else if (tiles && !strcmp(first, "x"))
            try_step(s, "parallel %%t");
        else
            try_step(s, "parallel %%pool.%s", first);
    }
}
