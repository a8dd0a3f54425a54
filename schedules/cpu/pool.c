/* Pooling: windows on blocked channels, or on plain rows.
 *
 * The window's loops run outside the vector, whose accumulators stay in registers. */
#include "schedules/cpu/cpu.h"

enum { LONG_COLUMN = 8 }; /* cells of a window's column that are written out */

/* Rows of the result that are made together: what comes before them in the kernel, padded rows and
 * maxima of rows, is stored a while before it is read across two stores, which a load cannot take
 * from the store queue.  All rows, where what they need stays in L1. */
static int64_t row_group(const Sched *s, int64_t y, int64_t x, int64_t lanes)
{
    Machine m = machine_of(s->target);
    int64_t cells = 0, vectors = ceil_div(x > 0 ? x : 1, lanes);

    if (has_block(s, "pad"))
        cells += iter_extent(s, "pad", "y") * iter_extent(s, "pad", "x");
    if (has_block(s, "rows"))
        cells += y * iter_extent(s, "rows", "x");
    if (cells * 4 <= room_rows(&m))
        return y;
    return divisor_from(y, ceil_div(limit_stores_apart(&m), vectors));
}

/* Windows of a plain row: outputs side by side as vectors.  The padded copy stays, a group of rows
 * at a time, so that no cell is asked where it lies; so do the maxima of rows (ops/nn/pool2d.c). */
static void pool_rows(Sched *s, int64_t lanes)
{
    int64_t     n = iter_extent(s, "pool", "x"), channels = iter_extent(s, "pool", "c");
    int64_t     y = iter_extent(s, "pool", "y"), group = row_group(s, y, n, lanes);
    bool        tiny = is_tiny(s, block_work(s, "pool"));
    const char *out = inline_epilogue(s, "pool"), *at = "%pool.c";

    if (group < y && try_step(s, "split %%pool.y by %lld -> %%yb, %%pool.yr", (long long)group))
        at = "%yb";
    if (has_block(s, "rows"))
        try_step(s, "compute_at rows %s", at);
    if (has_block(s, "pad"))
        pad_marks(s, at);
    if (has_block(s, "rows")) {
        vector_accumulate(s, "rows");
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

void sched_pool(Sched *s)
{
    const char *out;
    Machine     m = machine_of(s->target);

    inline_prologue(s, "pool");
    if (!sched_block(s, "pool")) {
        sched_injective(s);
        return;
    }
    if (!iter_extent(s, "pool", "j") && cpu_lanes(s) > 1) {
        pool_rows(s, cpu_lanes(s));
        return;
    }
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
    vector_accumulate(s, "pool");
    if (out && last)
        try_step(s, "reverse_compute_at %s %%pool.%s", out, last);
    if (first && !is_tiny(s, work)) {
        if (second && thread_balance(iter_extent(s, "pool", first)) < limit_balance_rows(&m) &&
            try_step(s, "fuse %%pool.%s, %%pool.%s -> %%u", first, second))
            try_step(s, "parallel %%u");
        else
            try_step(s, "parallel %%pool.%s", first);
    }
}
