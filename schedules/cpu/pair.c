/* A depthwise convolution and the 1x1 convolution behind it, some rows at a time.
 *
 *   for group of rows {                               divided among the threads
 *     %out: rows of the depthwise convolution, all channels     private
 *     for block of outputs, for tile of pixels { %conv.1 += %out * %w2 } }
 *
 * %out is as many rows as L1 holds beside a panel of weights, or one that L2 holds: what the 1x1
 * convolution reads was written a moment ago.  The weights %w2 are read once a group, from L2. */
#include "schedules/cpu/cpu.h"

#include <math.h>
#include <string.h>

/* A value that is there for the most part when two kernels pass it on leaves each of them its own
 * best tiles. */
int64_t cpu_pair_rows(const Target *t, const PairWork *w)
{
    Machine m = machine_of(t);
    int64_t row = w->c * w->x * 4, weights = w->c * w->o * w->lanes * 4, rows = 1;

    if (row + weights > room_weights(&m) || row * w->y <= room_value(&m))
        return 0;
    while (rows * w->x < limit_line_pixels(&m) && w->y % (2 * rows) == 0)
        rows *= 2;
    while (2 * rows * row <= room_rows(&m) && w->y % (2 * rows) == 0)
        rows *= 2;
    return rows;
}

static const char *axis(const Sched *s, const char *block, uint32_t i)
{
    return sched_block(s, block)->u.block.iter[i]->name;
}

/* Blocks between both convolutions become one; its name.  A bias starts the sum instead, unless
 * there is nothing else that could hold the rows. */
static const char *inline_between(Sched *s)
{
    const char *names[64], *last = NULL;
    uint32_t    n = sched_blocks(s, names, COUNT(names)), i = 0;

    while (i < n && strcmp(names[i], "conv"))
        i++;
    for (i++; i < n && strcmp(names[i], "conv.1"); i++) {
        if (last && (strcmp(last, "bias") || !try_step(s, "fold_init bias -> conv")))
            step(s, "compute_inline %s", last);
        last = names[i];
    }
    return last;
}

/* The rows of the depthwise convolution that a group needs, as register tiles. */
static void first_rows(Sched *s, const char *between, int64_t lanes, int64_t pixels)
{
    int64_t kernel = iter_extent(s, "conv", "kh") * iter_extent(s, "conv", "kw");
    Machine m = machine_of(s->target);

    try_step(s, "transform_layout %%w (o, c, h, v) -> (o//%lld, c, h, v, o%%%lld)",
             (long long)lanes, (long long)lanes);
    step(s, "compute_at %s %%g", between);
    step(s, "set_scope %%%s private", between);
    step(s, "split %%%s.%s by %lld tail=even -> %%dt, %%dp", between, axis(s, between, 3),
         (long long)pixels);
    step(s, "compute_at conv %%dt");
    step(s, "set_scope %%conv reg");
    step(s, "reorder %%conv.kh, %%conv.kw, %%conv.x, %%conv.j");
    step(s, "vectorize %%conv.j");
    step(s, "vectorize %%%s.%s", between, axis(s, between, 4));
    step(s, "unroll %%conv.x, %%conv.kw");
    step(s, "unroll %%dp");
    if (kernel * pixels <= limit_code_taps(&m))
        step(s, "unroll %%conv.kh");
    step(s, "outline %%dt -> @dw");
}

/* What is decided, and from what. */
typedef struct {
    PairWork work;
    int64_t  in, first;  /* lanes of a block of input channels; of the depthwise convolution */
    int64_t  rows, most; /* of a group; by rule of thumb */
    RegTile  tile;
    bool     line;   /* rows are one line, written out */
    int64_t  pixels; /* of a tile of the depthwise convolution */
} PairPlan;

static void decide_pair(Sched *s, void *plan)
{
    PairPlan       *p = plan;
    const PairWork *w = &p->work;
    Machine         m = machine_of(s->target);
    Candidates      rows = candidates(s), tiles = candidates(s);
    double          madds = (double)(w->y * w->x * w->o) * (double)w->c;

    for (int64_t r = 1; r <= w->y && (r == 1 || r * w->c * w->x * 4 <= room_weights(&m)); r++)
        if (w->y % r == 0)
            candidate(&rows, r, 0, NAN);
    usual(&rows, p->most, 0);
    p->rows = pick_factor(s, "rows", &rows);
    p->tile = tile_best(&m, w->lanes, w->o, p->rows * w->x, 0);
    p->line = p->rows > 1 && w->x < limit_line_pixels(&m) &&
              p->rows * w->x * p->tile.nv * p->in <= limit_code_madds(&m);
    tile_candidates(&tiles, &m,
                    &(TileWork){.lanes = w->lanes,
                                .vectors = w->o,
                                .line = (p->line ? p->rows : 1) * w->x,
                                .madds = madds});
    p->tile = pick_reg_tile(s, "tile", &tiles);
    p->pixels = pick_depthwise_pixels(s, w->x);
}

void conv2d_pair(Sched *s)
{
    int64_t     lanes = iter_extent(s, "conv.1", "j"), in = iter_extent(s, "conv.1", "i");
    PairWork    w = {iter_extent(s, "conv.1", "c") * in, iter_extent(s, "conv.1", "o"),
                     iter_extent(s, "conv.1", "y"), iter_extent(s, "conv.1", "x"), lanes};
    int64_t     rows = cpu_pair_rows(s->target, &w);
    const char *out, *between;

    if (iter_extent(s, "conv", "c") || iter_extent(s, "conv.1", "kh") != 1 ||
        iter_extent(s, "conv.1", "kw") != 1 || iter_extent(s, "conv.1", "n") != 1 || !in ||
        !is_block(s, lanes) || !is_block(s, iter_extent(s, "conv", "j")) || has_block(s, "pad.1") ||
        !rows) {
        s->refusal = "two convolutions, but no depthwise one with a 1x1 one behind it";
        return;
    }
    PairPlan p = {.work = w, .in = in, .first = iter_extent(s, "conv", "j"), .most = rows};
    sched_decide(s, decide_pair, &p);
    RegTile t = p.tile;
    inline_prologue(s, "conv");
    try_step(s, "elide_pad pad");
    between = inline_between(s);
    try_step(s, "fold_init bias.1 -> conv.1");
    if (s->target->has_fma) {
        step(s, "contract conv");
        step(s, "contract conv.1");
    }
    if (!between) {
        s->refusal = "there is nothing between the convolutions";
        return;
    }
    out = inline_epilogue(s, "conv.1");
    step(s, "transform_layout %%w2 (o, c, h, v) -> (o//%lld, c//%lld, h, v, c%%%lld, o%%%lld)",
         (long long)(t.nv * lanes), (long long)in, (long long)in, (long long)(t.nv * lanes));
    step(s, "split %%conv.1.o by %lld -> %%oc, %%ov", (long long)t.nv);
    step(s, "split %%conv.1.y by %lld -> %%g, %%r", (long long)p.rows);
    step(s, "reorder %%conv.1.n, %%g, %%oc, %%r, %%conv.1.x, %%conv.1.c, %%conv.1.kh, "
            "%%conv.1.kw, %%conv.1.i, %%ov, %%conv.1.j");
    TileNest tile = {.block = "conv.1",
                     .line = "conv.1.x",
                     .joined = p.line ? "r" : NULL,
                     .tiles = "t",
                     .pixel = "p",
                     .pixels = t.pixels,
                     .sums = "%conv.1.c, %conv.1.kh, %conv.1.kw, %conv.1.i",
                     .vectors = "%ov, %conv.1.j",
                     .lane = "conv.1.j",
                     .unroll = "%p, %ov",
                     .out = out};
    tile_sums(s, &tile);
    first_rows(s, between, p.first, p.pixels);
    tile_marks(s, &tile);
    step(s, "unroll %%conv.1.i");
    if (!is_tiny(s, w.c * w.o * lanes * w.y * w.x))
        step(s, "parallel %%g");
    step(s, "outline %%t -> @tile");
}
