/* Direct convolution on blocked layouts, as in docs/design/schedules.md.
 *
 *   %conv[n,o,y,x,j] = sum[c,kh,kw,i] %pad[n,c,y*s+kh,x*s+kw,i] * %w[o*8+j, c*8+i, kh, kw]
 *
 * Nest: pixel block, output block, reduction chunk, pixel group, register tile.  A tile of P pixels
 * by NV output vectors keeps P*NV accumulators in registers over one chunk of the reduction, whose
 * packed weights stay in L1 across the groups.  Pixels are cut into tiles of q and q+1, so nothing
 * is left over; where rows are short, a group of rows is walked as one line and each tile is
 * written out with its own offsets. */
#include "schedules/cpu/cpu.h"

#include <math.h>

/* What is decided, and from what. */
typedef struct {
    ConvSizes z;
    TileEnd   end;
    GroupRow  row;
    bool      alone;              /* one thread */
    int64_t   rows, chunk, block; /* rows of a group; input blocks of a chunk; groups of a block */
    RegTile   tile;
    uint32_t  order;
    bool      ahead, channels, columns; /* weights asked for ahead; loops that are written out */
} ConvPlan;

enum { FEW_CELLS = 4 }; /* of a kernel and a chunk, written out beside the channels */

const char *const conv_orders[] = {"rows.first", "outputs.first"};

static int64_t weights_of(const ConvSizes *z)
{
    return conv_steps(z) * z->o * z->lanes * 4;
}

/* Weights that do not stay in L2 and are used by few pixels: waiting for them would show. */
static bool streams_weights(const Sched *s, const ConvSizes *z, RegTile t)
{
    Machine m = machine_of(s->target);

    return z->y * z->x < limit_streamed_pixels(&m) && z->i && weights_of(z) > room_weights(&m) &&
           tile_feeds_lines(&m, z->lanes, t.pixels);
}

/* Input blocks of a chunk: its packed weights for one output block are those of `room_chunk`, but
 * of no fewer than `limit_chunk_steps`. */
int64_t conv_chunk(const Sched *s, const ConvSizes *z, int64_t nv)
{
    int64_t i = z->i ? z->i : 1, step = z->kh * z->kw * i, bytes = step * nv * z->lanes * 4;
    Machine m = machine_of(s->target);
    int64_t most = room_chunk(&m), least = limit_chunk_steps(&m);
    int64_t kb = divisor_upto(z->c, bytes && most / bytes > 0 ? most / bytes : 1);

    return kb < z->c && kb * step < least ? divisor_from(z->c, ceil_div(least, step)) : kb;
}

/* Cycles that a multiply-add of a vector takes in the best tiles for a line of that many pixels. */
static double pixel_cycles(Sched *s, const ConvSizes *z, int64_t pixels)
{
    Machine m = machine_of(s->target);
    int64_t nv = tile_best(&m, z->lanes, z->group, pixels, 0).nv;

    return tile_step_cycles(&m, z->lanes, pixels, nv) / (double)(pixels * nv);
}

/* Multiply-adds that are written out of a step of the reduction over a group of rows. */
static int64_t written(const ConvPlan *p)
{
    int64_t line = p->rows > 1 ? p->rows * p->z.x : p->tile.pixels;

    return line * p->tile.nv * (p->channels && p->z.i ? p->z.i : 1);
}

/* Lines of a first layer. */
static PlainWork plain_work(const ConvPlan *p)
{
    const ConvSizes *z = &p->z;

    return (PlainWork){.row = p->row,
                       .line = p->rows * z->x,
                       .rows = z->c * z->kh,
                       .joined = p->rows > 1,
                       .move = p->end.move};
}

/* The tile of a group of rows.  Where all pixels are one group, threads have nothing to divide but
 * output blocks.  Joined rows are written out, which has a limit: wide tiles only because they
 * divide well would go beyond it. */
static RegTile conv_tile(Sched *s, const ConvPlan *p)
{
    const ConvSizes *z = &p->z;
    Machine          m = machine_of(s->target);
    int64_t          line = p->rows * z->x, groups = z->o / z->group;
    int64_t          parts = !p->alone && p->rows == z->y ? groups : 0;
    int64_t          wide = parts ? tile_best(&m, z->lanes, z->group, line, parts).nv : 0;
    Candidates       k = candidates(s);

    if (p->rows > 1 && line * wide * (z->i ? z->i : 1) > limit_code_madds(&m))
        parts = 0;
    PlainWork plain = plain_work(p);
    TileWork  w = {.lanes = z->lanes,
                   .vectors = z->group,
                   .line = line,
                   .parts = parts,
                   .madds = conv_madds(z),
                   .end = &p->end,
                   .plain = z->i ? NULL : &plain};
    tile_candidates(&k, &m, &w);
    return pick_reg_tile(s, "tile", &k);
}

/* Rows a group: short rows are joined until there are enough pixels for full tiles, unless a row
 * alone fills them as well, or an odd number of groups would be left of an even one of rows: two
 * threads would both read all of the image, which costs more than tiles that are less full. */
static int64_t group_rows(Sched *s, const ConvSizes *z, bool one)
{
    Machine m = machine_of(s->target);
    int64_t rows = joined_rows(&m, z->y, z->x), half;
    double  alone = pixel_cycles(s, z, z->x), joined = pixel_cycles(s, z, rows * z->x);

    if (z->x > limit_line_columns(&m) &&
        (alone < limit_joined_gain(&m) * joined || (z->y % 2 == 0 && z->y / rows % 2)))
        rows = 1;
    /* Threads have nothing but rows to divide. */
    while (!one && z->o == 1 && rows == z->y && rows > 1 && (half = divisor_upto(rows, rows / 2)) &&
           pixel_cycles(s, z, half * z->x) < limit_joined_gain(&m) * joined)
        rows = half;
    return rows;
}

static int64_t pick_rows(Sched *s, const ConvSizes *z, bool one)
{
    Candidates k = candidates(s);
    int64_t    best = group_rows(s, z, one);

    for (int64_t r = 1; r <= z->y && (r == 1 || r * z->x <= MOST_LINE); r++)
        if (z->y % r == 0)
            candidate(&k, r, 0, conv_madds(z) * pixel_cycles(s, z, r * z->x));
    usual(&k, best, 0);
    return pick_factor(s, "rows", &k);
}

/* Cycles of pixel blocks of gb groups.  Each panel of outputs reads its block of the image again,
 * each block all weights, from where what passes between leaves them.  Blocks of channels that come
 * from L2 are hidden (1x1 from 64 to 256 on 56x56 took as long in blocks of 7, 14 and 28 rows);
 * rows of a first layer, which are read a few bytes here and there, are not (4x4 by 4 on 224x224
 * took 4 to 5 us longer for each time that it read 600 KB of L2; Cascade Lake, AVX-512). */
static double block_cycles(const Machine *m, const ConvPlan *p, int64_t gb)
{
    const ConvSizes *z = &p->z;
    const GroupRow  *r = &p->row;
    int64_t          blocks = z->y / p->rows / gb, panels = z->o / p->tile.nv;
    int64_t          rows = (gb * p->rows - 1) * r->stride + (z->kh - 1) * r->dilation + 1;
    double           weights = (double)weights_of(z), panel = weights / (double)panels;
    double           image = (double)(conv_channels(z) * rows) * (double)(z->x * r->stride * 4);
    double           sums = (double)(gb * p->rows * z->x * z->lanes * 4 * p->tile.nv);
    Time             compute = time_compute(conv_madds(z) / fma_rate(m, z->lanes));
    Time             pixels = moved_time(m, image, 0, image + panel + 2 * sums);
    Time   outputs = moved_time(m, weights, 0, weights + image + 2 * sums * (double)panels);
    double meet =
        p->alone ? 0 : division_cycles(m, weights, image * (double)blocks, blocks, panels);

    pixels = time_times((double)(z->n * blocks * (panels - 1)), pixels);
    outputs = time_times((double)(z->n * (blocks - 1)), outputs);
    if (!z->i)
        return time_cycles(m, time_beside(compute, outputs)) + time_traffic(pixels) + meet;
    return time_cycles(m, time_beside(compute, time_beside(time_take_far(&pixels), outputs))) +
           meet;
}

/* The block that is best on one thread and on several: where these are uneven parts, some wait.
 * 0: the one that is best on one. */
static int64_t even_block(const Machine *m, const ConvPlan *p, const Candidates *k)
{
    int64_t groups = p->z.y / p->rows, panels = p->z.o / p->tile.nv, best = 0;
    int64_t alone = 0;
    double  least = INFINITY, least_alone = INFINITY;

    for (uint32_t i = 0; i < k->of.n; i++) {
        int64_t gb = k->of.at[i].v[0];
        double  waste = 1 - thread_balance(p->z.n * (groups / gb) * panels);
        double  one = k->of.at[i].cycles, cycles = one * (1 + limit_uneven_cost(m) * waste);

        if (one < least_alone)
            least_alone = one, alone = gb;
        if (cycles < least)
            least = cycles, best = gb;
    }
    return best == alone ? 0 : best;
}

/* Groups of a pixel block, whose input is at most half of L2, or no more than the weights, which
 * each block reads again. */
static int64_t pick_block(Sched *s, const ConvPlan *p)
{
    const ConvSizes *z = &p->z;
    Machine          m = machine_of(s->target);
    int64_t          groups = z->y / p->rows, most = groups, room = room_image(&m);
    int64_t          bytes = conv_channels(z) * p->rows * z->x * 4;
    Candidates       k = candidates(s);

    if (room < weights_of(z))
        room = weights_of(z);
    while (most > 1 && most * bytes > room)
        most = divisor_upto(groups, most - 1);
    for (int64_t gb = most; gb >= 1; gb = gb > 1 ? divisor_upto(groups, gb - 1) : 0)
        candidate(&k, gb, 0, block_cycles(&m, p, gb));
    int64_t even = p->alone ? 0 : even_block(&m, p, &k);
    if (even)
        usual(&k, even, 0);
    return pick_factor(s, "block", &k);
}

static int64_t pick_chunk(Sched *s, const ConvPlan *p)
{
    Candidates k = candidates(s);

    divisors(&k, p->z.c);
    usual(&k, conv_chunk(s, &p->z, p->tile.nv), 0);
    return pick_factor(s, "chunk", &k);
}

static void decide_conv(Sched *s, void *plan)
{
    ConvPlan        *p = plan;
    const ConvSizes *z = &p->z;
    Machine          m = machine_of(s->target);
    Candidates       order = candidates(s);

    p->channels = z->i > 0;
    p->rows = pick_rows(s, z, p->alone);
    p->tile = conv_tile(s, p);
    p->chunk = pick_chunk(s, p);
    p->block = pick_block(s, p);
    candidate(&order, ROWS_FIRST, 0, NAN);
    if (z->y > p->rows * p->block && z->o > p->tile.nv)
        candidate(&order, OUTPUTS_FIRST, 0, NAN);
    p->order = pick_order(s, "order", &order, conv_orders);
    p->ahead = pick_bool(s, "ahead", streams_weights(s, z, p->tile));
    if (z->i)
        p->channels = pick_bool(s, "unroll.channels", written(p) <= limit_written_madds(&m));
    PlainWork plain = plain_work(p);
    p->columns = z->i ? p->chunk * z->kh * z->kw <= FEW_CELLS &&
                            written(p) * z->kw <= limit_written_madds(&m)
                      : plain_written(&m, &plain, p->tile);
    bool fits = z->kw > 1 && written(p) * z->kw <= limit_code_madds(&m);
    p->columns &= fits || z->i;
    if (p->columns || fits)
        p->columns = pick_bool(s, "unroll.columns", p->columns);
}

double conv_whole_cycles(const Machine *m, const ConvWork *w)
{
    int64_t rows = joined_rows(m, w->y, w->x), pixels = rows * w->x;

    if (w->spread || (!w->plain && w->group == 1 && w->o > 1)) {
        GroupRow r = {w->lanes, w->kw, w->stride, w->dilation, w->spread};

        return group_row_cycles(m, &r, w->x) * (double)(w->n * w->o * w->y) *
               (double)(w->sum / w->kw);
    }
    RegTile tile = tile_best(m, w->lanes, w->group, pixels, 0);
    double  step = conv_step_cycles(m, w->lanes, pixels, tile.nv, ceil_div(pixels, tile.pixels));

    return step * (double)(w->n * (w->y / rows) * (w->o / tile.nv)) * (double)w->sum;
}

double cpu_conv_cycles(const Target *t, const ConvWork *w)
{
    Machine m = machine_of(t);
    double  whole = conv_whole_cycles(&m, w), strips = w->spread ? whole : conv_cut_cycles(&m, w);

    return fmin(strips, whole);
}

void conv_pack(Sched *s, const ConvSizes *z, int64_t nv)
{
    long long o = (long long)(nv * z->lanes), i = (long long)z->i;

    if (i)
        step(s, "transform_layout %%w (o, c, h, v) -> (o//%lld, c//%lld, h, v, c%%%lld, o%%%lld)",
             o, i, i, o);
    else
        step(s, "transform_layout %%w (o, c, h, v) -> (o//%lld, c, h, v, o%%%lld)", o, o);
}

/* Threads divide an image's blocks and outputs, of several images where that is more even. */
static void divide_tiles(Sched *s, const ConvPlan *p, int64_t yb, int64_t oc)
{
    bool        rows = p->order == ROWS_FIRST;
    const char *outer[] = {"conv.n", rows ? "yb" : "oc", rows ? "oc" : "yb"};
    Machine     m = machine_of(s->target);

    if (p->z.n > 1 && !even_parts(&m, yb * oc)) {
        divide_loops(s, "u", outer, COUNT(outer));
    } else if (yb > 1 && oc > 1) {
        step(s, "fuse %%%s, %%%s -> %%u", outer[1], outer[2]);
        step(s, "parallel %%u");
    } else if (yb * oc > 1) {
        step(s, "parallel %s", yb > 1 ? "%yb" : "%oc");
    }
}

void sched_conv2d(Sched *s)
{
    ConvSizes   z = conv_lines(s);
    bool        blocked = z.i > 0;
    const char *out, *x = intern_printf(s->c->strings, "conv.%s", z.line);

    if (z.n < 1 || z.o < 1 || z.y < 1 || z.x < 1 || z.kh < 1 || z.kw < 1) {
        s->refusal = "'conv' has not the iterators of a convolution";
        return;
    }
    if (has_block(s, "conv.1")) {
        conv2d_pair(s);
        return;
    }
    if (!is_block(s, iter_extent(s, "conv", "j"))) {
        conv2d_planar(s);
        return;
    }
    if (!(z.i && z.group == 1 && z.o > 1) && (z.c || !z.i) && conv2d_open(s, &z))
        return;
    if (!z.c && !z.i) {
        conv2d_depthwise(s);
        return;
    }
    if (z.c && conv2d_dot(s))
        return;
    if (!z.c || (blocked && z.group == 1 && z.o > 1)) {
        conv2d_groups(s);
        return;
    }
    if (conv2d_cut(s, &z))
        return;
    out = prepare_anchor(s, "conv", true);

    Machine  m = machine_of(s->target);
    ConvPlan p = {.z = z,
                  .end = tile_end(s, &z, out),
                  .row = group_row(s, &z),
                  .alone = is_tiny(s, z.n * z.y * z.x * weights_of(&z) / 4)};
    sched_decide(s, decide_conv, &p);
    RegTile t = p.tile;
    int64_t oc = z.o / t.nv, yb = z.y / p.rows / p.block;

    conv_pack(s, &z, t.nv);
    if (p.ahead)
        step(s, "prefetch %%w by %lld", (long long)limit_page_bytes(&m));
    step(s, "split %%conv.o by %lld -> %%oc, %%ov", (long long)t.nv);
    step(s, "split %%conv.%s by %lld -> %%gg, %%r", z.row, (long long)p.rows);
    step(s, "split %%gg by %lld -> %%yb, %%g", (long long)p.block);
    step(s, "split %%conv.c by %lld -> %%kc, %%cb", (long long)p.chunk);
    TileNest    tile = {.block = "conv",
                        .line = x,
                        .joined = p.rows > 1 ? "r" : NULL,
                        .tiles = "t",
                        .pixel = "p",
                        .pixels = t.pixels,
                        .sums =
                         blocked ? "%cb, %conv.kh, %conv.kw, %conv.i" : "%cb, %conv.kh, %conv.kw",
                        .vectors = "%ov, %conv.j",
                        .lane = "conv.j",
                        .unroll = "%p, %ov",
                        .out = out,
                        .chunks = p.chunk < z.c};
    const char *outer = p.order == OUTPUTS_FIRST ? "%oc, %yb" : "%yb, %oc";
    step(s, "reorder %%conv.n, %s, %%kc, %%g, %%r, %%%s, %s, %s", outer, x, tile.sums,
         tile.vectors);
    tile_sums(s, &tile);
    tile_marks(s, &tile);
    if (blocked && p.channels)
        step(s, "unroll %%conv.i");
    if (p.columns)
        step(s, "unroll %%conv.%s", z.kernel_line);
    if (!p.alone)
        divide_tiles(s, &p, yb, oc);
    step(s, "outline %%t -> @tile");
    /* A padded copy is left where the input has no border of its own: a graph's input. */
    if (!s->refusal && has_block(s, "pad"))
        pad_marks(s, blocked             ? NULL
                     : z.group < z.o     ? "%oc"
                     : oc > 1 && yb == 1 ? NULL
                     : oc > 1            ? "%yb"
                                         : "%g");
}
