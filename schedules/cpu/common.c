/* What the CPU rules share: sizes of the nest, the register tile, fused neighbours. */
#include "schedules/cpu/cpu.h"

#include <string.h>

int64_t cpu_lanes(const Sched *s)
{
    return s->target->vector_bytes / 4 > 0 ? s->target->vector_bytes / 4 : 1;
}

double cpu_fma_rate(const Target *t, int64_t lanes)
{
    double rate = (double)t->fma_bytes / (double)(lanes * 4);

    return rate > 2 ? 2 : rate > 0 ? rate : 1;
}

bool is_block(const Sched *s, int64_t n)
{
    return n >= 4 && n <= cpu_lanes(s) && (n & (n - 1)) == 0;
}

int64_t inner_lanes(const Sched *s, int64_t n)
{
    return is_block(s, n) ? n : cpu_lanes(s);
}

int64_t iter_extent(const Sched *s, const char *block, const char *iter)
{
    const Stmt *b = sched_block(s, block);

    if (!b)
        return 0;
    uint32_t n = b->u.block.nspatial + b->u.block.nreduce + b->u.block.nseq;
    for (uint32_t i = 0; i < n; i++) {
        const Atom *a = b->u.block.iter[i];
        if (!strcmp(a->name, iter))
            return a->hi - a->lo + 1;
    }
    return 0;
}

int64_t loop_extent(const Sched *s, const char *loop)
{
    int64_t n = 0;

    return sched_loop_extent(s, loop, &n) ? n : 0;
}

bool has_block(const Sched *s, const char *block)
{
    return sched_block(s, block) != NULL;
}

int64_t ceil_div(int64_t a, int64_t b)
{
    return a / b + (a % b > 0);
}

/* Cycles a reduction step of a p x nv tile takes (two FMAs, two loads a cycle, latency 4), per
 * multiply-add of a vector.  Where two start in a cycle, sums for less than one and a half
 * latencies do not always have the next one ready for both: a quarter of a cycle (4x2 4.27,
 * 3x3 4.80, 5x2 5.24, 6x2 6.00 on a Zen 4 with vectors of 32 bytes, 5x2 of 64 bytes, one a
 * cycle, 10.0). */
static double tile_cost(const Target *t, int64_t lanes, int64_t p, int64_t nv)
{
    double fma = (double)(p * nv) / 2, load = (double)(p + nv) / 2, latency = 4;

    /* Numbers that are used once are loaded early by LLVM, which then spills sums: half a load more
     * for each (14x1 11.3 cycles). */
    if (nv == 1 && t->vector_regs <= 16)
        load += (double)p / 4;
    double worst = fma > load ? fma : load;
    double wait = fma < 1.5 * latency && cpu_fma_rate(t, lanes) > 1 ? 0.25 : 0;

    return ((worst > latency ? worst : latency) + wait) / (double)(p * nv);
}

int64_t tile_pixels_most(const Target *t, int64_t lanes, int64_t nv)
{
    int64_t regs = t->vector_regs ? t->vector_regs : 16;
    bool    narrow = lanes * 4 < t->vector_bytes;

    /* Narrower vectors come twice as fast; instructions that name the upper half of 32 registers
     * are longer, too long for that (7x2 took 1.16 times as long as 6x2 for the same work, Zen 4).
     */
    if (narrow && regs > 16)
        regs = 16;
    /* A number that several vectors of weights want is spread once, into a register. */
    return (regs - nv - (t->fma_mem_splat && !narrow && nv == 1 ? 0 : 1)) / nv;
}

double tile_step_cycles(const Target *t, int64_t lanes, int64_t pixels, int64_t nv)
{
    int64_t most = tile_pixels_most(t, lanes, nv), tiles, q, r;

    if (most < 1 || pixels < 1)
        return 0;
    tiles = ceil_div(pixels, most), q = pixels / tiles, r = pixels % tiles;
    return (double)r * tile_cost(t, lanes, q + 1, nv) * (double)((q + 1) * nv) +
           (double)(tiles - r) * tile_cost(t, lanes, q, nv) * (double)(q * nv);
}

/* Two pixels of a tile ask for each line (codegen_prim.c): 6x2 with AVX2 then loads ten times in
 * six cycles and was 7 % faster (128 rows by 768 and 3072 columns), 4x3, which needs a line every
 * four, 5 % slower (8 rows, Zen 4). */
bool line_feeds(const Target *t, int64_t lanes, int64_t pixels)
{
    enum { LINE = 64, LEAST = 6 };

    return (double)(pixels * LINE) >= LEAST * cpu_fma_rate(t, lanes) * (double)(lanes * 4);
}

RegTile cpu_tile(const Target *t, int64_t lanes, int64_t vectors, int64_t pixels, int64_t parts)
{
    RegTile best = {1, 1};
    double  cost = 1e30;

    for (int64_t nv = 1; nv <= 6 && nv <= vectors; nv++) {
        if (vectors % nv)
            continue;
        int64_t most = tile_pixels_most(t, lanes, nv);
        if (most < 1)
            break;
        /* The weights are read once a tile. */
        double c =
            tile_step_cycles(t, lanes, pixels, nv) + 0.02 * (double)(ceil_div(pixels, most) * nv);
        c /= (double)(pixels * nv);
        if (parts && thread_balance(parts * (vectors / nv)) < 0.9)
            c /= (1 + thread_balance(parts * (vectors / nv))) / 2;
        if (c < cost - 1e-9)
            cost = c, best = (RegTile){most, nv};
    }
    return best;
}

ConvSizes conv_sizes(const Sched *s)
{
    int64_t   block = iter_extent(s, "conv", "j");
    ConvSizes z = {is_block(s, block) ? block : cpu_lanes(s),
                   iter_extent(s, "conv", "n"),
                   iter_extent(s, "conv", "o"),
                   iter_extent(s, "conv", "y"),
                   iter_extent(s, "conv", "x"),
                   iter_extent(s, "conv", "c"),
                   iter_extent(s, "conv", "kh"),
                   iter_extent(s, "conv", "kw"),
                   iter_extent(s, "conv", "i")};

    return z;
}

int64_t joined_rows(int64_t y, int64_t x)
{
    int64_t rows = 1;

    while (rows * x < 28 && rows < y && y % (rows * 2) == 0)
        rows *= 2;
    if (x <= 7)
        rows = y;
    return rows * x > 128 ? 1 : rows;
}

int64_t block_work(const Sched *s, const char *block)
{
    const Stmt *b = sched_block(s, block);
    int64_t     work = b != NULL;

    for (uint32_t i = 0; b && i < b->u.block.nspatial + b->u.block.nreduce; i++)
        work *= b->u.block.iter[i]->hi - b->u.block.iter[i]->lo + 1;
    return work;
}

double thread_balance(int64_t n)
{
    double two = (double)n / (double)(2 * ceil_div(n, 2)),
           four = (double)n / (double)(4 * ceil_div(n, 4));

    return 0.8 * two + 0.2 * four;
}

double rows_shared(int64_t blocks)
{
    return blocks % 2 ? 1 / (double)blocks : 0;
}

void tile_pixels(Sched *s, const char *conv, RegTile t, bool line)
{
    if (line) {
        step(s, "fuse %%r, %%%s.x -> %%px", conv);
        step(s, "split %%px by %lld tail=even -> %%t, %%p", (long long)t.pixels);
        step(s, "unroll %%t");
    } else {
        step(s, "split %%%s.x by %lld tail=even -> %%t, %%p", conv, (long long)t.pixels);
    }
}

int64_t depthwise_pixels(const Sched *s, int64_t lanes)
{
    return s->target->vector_regs > 16 && lanes == cpu_lanes(s) ? 14 : 8;
}

int64_t row_blocks(int64_t y)
{
    return y % 4 == 0 ? 4 : y % 2 == 0 ? 2 : 1;
}

const char *inline_epilogue(Sched *s, const char *anchor)
{
    const char *names[64];
    uint32_t    n = sched_blocks(s, names, COUNT(names)), at = n;

    for (uint32_t i = 0; i < n; i++)
        if (!strcmp(names[i], anchor))
            at = i;
    if (at + 1 >= n)
        return NULL;
    for (uint32_t i = at + 1; i + 1 < n; i++)
        try_step(s, "compute_inline %s", names[i]);
    return names[n - 1];
}

void inline_prologue(Sched *s, const char *anchor)
{
    const char *names[64];
    uint32_t    n = sched_blocks(s, names, COUNT(names));

    for (uint32_t i = 0; i < n && strcmp(names[i], anchor); i++)
        if (strcmp(names[i], "pad") && strcmp(names[i], "panel"))
            try_step(s, "compute_inline %s", names[i]);
}

const char *prepare_anchor(Sched *s, const char *anchor, bool halo)
{
    inline_prologue(s, anchor);
    if (halo)
        try_step(s, "elide_pad pad");
    try_step(s, "fold_init bias -> %s", anchor);
    if (s->target->has_fma)
        try_step(s, "contract %s", anchor); /* integers have none */
    return inline_epilogue(s, anchor);
}

/* A second thread saves half of the time.  It costs a barrier before and one behind, and lines that
 * change their owner, which is another. */
static bool too_short(const Sched *s, double ns)
{
    return ns < 3.0 * s->target->sync_ns;
}

bool is_tiny(const Sched *s, int64_t work)
{
    return too_short(s, (double)work / cpu_macs_ns(s->target));
}

typedef struct {
    double ns; /* of a cell */
    double scalar;
} CellTime;

/* Functions of libm are polynomials of a dozen multiply-adds, a division and some steps more, which
 * wait for each other: 4 cells a nanosecond with AVX2, as measured.  Loads come from L2. */
static void cell_prim(void *user, const Prim *p)
{
    CellTime *t = user;

    switch (p->kind) {
    case PRIM_LOAD: t->ns += dtype_bytes(p->dtype) / (double)CPU_STREAM_NS; break;
    case PRIM_MATH: t->ns += 12 * t->scalar; break;
    case PRIM_DIV: t->ns += 4 * t->scalar; break;
    default: t->ns += 0.25 * t->scalar; break;
    }
}

bool is_tiny_kernel(const Sched *s)
{
    const char *names[64];
    uint32_t    n = sched_blocks(s, names, COUNT(names));
    double      ns = 0;

    for (uint32_t i = 0; i < n; i++) {
        const Stmt *b = sched_block(s, names[i]);
        CellTime    t = {0, 1 / cpu_macs_ns(s->target)};

        stmt_visit(b, &(TirVisit){.user = &t, .prim = cell_prim});
        ns += (double)block_work(s, names[i]) * t.ns;
    }
    return too_short(s, ns);
}
