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

static int64_t weights_of(const ConvSizes *z)
{
    return z->c * (z->i ? z->i : 1) * z->kh * z->kw * z->o * z->lanes * 4;
}

/* Weights that do not stay in L2 and are used by few pixels: waiting for them would show. */
static bool streams_weights(const Sched *s, const ConvSizes *z, RegTile t)
{
    Machine m = machine_of(s->target);

    return z->y * z->x < 256 && z->i && weights_of(z) > m.l2 / 2 &&
           tile_feeds_lines(&m, z->lanes, t.pixels);
}

/* Input blocks of a chunk: its packed weights for one output block within an eighth of L2, or 20
 * KiB, but no fewer than 96 steps.  L2 delivers a vector of weights each time that a tile has used
 * one (11 bytes a cycle for 6x2 with AVX2, 5 to 9 for 14x2 with AVX-512); each further chunk would
 * load and store all sums once more. */
static int64_t chunk_blocks(const Sched *s, const ConvSizes *z, int64_t nv)
{
    int64_t i = z->i ? z->i : 1, step = z->kh * z->kw * i, bytes = step * nv * z->lanes * 4;
    int64_t l2 = machine_of(s->target).l2, most = l2 / 8 > 20480 ? l2 / 8 : 20480;
    int64_t kb = divisor_upto(z->c, bytes && most / bytes > 0 ? most / bytes : 1);

    return kb < z->c && kb * step < 96 ? divisor_from(z->c, ceil_div(96, step)) : kb;
}

/* Cycles that a multiply-add of a vector takes in the best tiles for a line of that many pixels. */
static double pixel_cycles(Sched *s, const ConvSizes *z, int64_t pixels)
{
    Machine m = machine_of(s->target);
    int64_t nv = tile_best(&m, z->lanes, z->o, pixels, 0).nv;

    return tile_step_cycles(&m, z->lanes, pixels, nv) / (double)(pixels * nv);
}

/* The tile of a group of rows.  Where all pixels are one group, threads have nothing to divide but
 * output blocks.  Joined rows are written out, which has a limit: wide tiles only because they
 * divide well would go beyond it. */
static RegTile conv_tile(const Sched *s, const ConvSizes *z, int64_t rows, bool alone)
{
    Machine m = machine_of(s->target);
    int64_t parts = !alone && rows == z->y ? 1 : 0;
    RegTile t = tile_best(&m, z->lanes, z->o, rows * z->x, parts);
    bool    long_code = rows > 1 && rows * z->x * t.nv * (z->i ? z->i : 1) > 3000;

    return long_code ? tile_best(&m, z->lanes, z->o, rows * z->x, 0) : t;
}

/* Rows a group: short rows are joined until there are enough pixels for full tiles, unless a row
 * alone fills them as well, or an odd number of groups would be left of an even one of rows: two
 * threads would both read all of the image, which costs more than tiles that are less full. */
static int64_t group_rows(Sched *s, const ConvSizes *z)
{
    int64_t rows = joined_rows(z->y, z->x);

    if (z->x > 7 && (pixel_cycles(s, z, z->x) < 1.02 * pixel_cycles(s, z, rows * z->x) ||
                     (z->y % 2 == 0 && z->y / rows % 2)))
        rows = 1;
    return rows;
}

/* Groups of a pixel block: its input within half of L2, and what is cheapest for the threads. */
static int64_t block_groups(const Sched *s, const ConvSizes *z, int64_t groups, int64_t rows,
                            int64_t oc)
{
    Machine m = machine_of(s->target);
    int64_t i = z->i ? z->i : 1, l2 = m.l2;
    int64_t bytes = z->c * i * rows * z->x * 4, weights = weights_of(z), most = groups, best;
    double  cost = 1e30;

    while (most > 1 && most * bytes > l2 / 2)
        most = divisor_upto(groups, most - 1);
    best = most;
    for (int64_t gb = most; gb >= 1; gb = gb > 1 ? divisor_upto(groups, gb - 1) : 0) {
        double c = division_bytes(&m, (double)weights, (double)(bytes * groups), groups / gb, oc);
        if (c < cost)
            cost = c, best = gb;
    }
    return best;
}

double cpu_conv_cycles(const Target *t, const ConvWork *w)
{
    Machine m = machine_of(t);
    int64_t rows = joined_rows(w->y, w->x), pixels = rows * w->x;
    RegTile tile = tile_best(&m, w->lanes, w->o, pixels, 0);
    double  step = conv_step_cycles(&m, w->lanes, pixels, tile.nv, ceil_div(pixels, tile.pixels));

    return step * (double)(w->n * (w->y / rows) * (w->o / tile.nv)) * (double)w->sum;
}

void sched_conv2d(Sched *s)
{
    ConvSizes   z = conv_sizes(s);
    bool        blocked = z.i > 0;
    const char *out;

    if (has_block(s, "conv.1")) {
        conv2d_pair(s);
        return;
    }
    if (!is_block(s, iter_extent(s, "conv", "j"))) {
        conv2d_planar(s);
        return;
    }
    if (!z.c) {
        conv2d_depthwise(s);
        return;
    }
    if (conv2d_dot(s))
        return;
    out = prepare_anchor(s, "conv", true);

    int64_t rows = group_rows(s, &z);
    int64_t groups = z.y / rows;
    bool    alone = is_tiny(s, z.n * z.y * z.x * weights_of(&z) / 4);
    RegTile t = conv_tile(s, &z, rows, alone);
    int64_t kb = chunk_blocks(s, &z, t.nv), oc = z.o / t.nv;
    int64_t gb = block_groups(s, &z, groups, rows, oc), yb = groups / gb;

    if (blocked)
        step(s, "transform_layout %%w (o, c, h, v) -> (o//%lld, c//%lld, h, v, c%%%lld, o%%%lld)",
             (long long)(t.nv * z.lanes), (long long)z.i, (long long)z.i,
             (long long)(t.nv * z.lanes));
    else
        step(s, "transform_layout %%w (o, c, h, v) -> (o//%lld, c, h, v, o%%%lld)",
             (long long)(t.nv * z.lanes), (long long)(t.nv * z.lanes));
    if (streams_weights(s, &z, t))
        step(s, "prefetch %%w by 4096");
    step(s, "split %%conv.o by %lld -> %%oc, %%ov", (long long)t.nv);
    step(s, "split %%conv.y by %lld -> %%gg, %%r", (long long)rows);
    step(s, "split %%gg by %lld -> %%yb, %%g", (long long)gb);
    step(s, "split %%conv.c by %lld -> %%kc, %%cb", (long long)kb);
    if (blocked)
        step(s, "reorder %%conv.n, %%yb, %%oc, %%kc, %%g, %%r, %%conv.x, %%cb, %%conv.kh, "
                "%%conv.kw, %%conv.i, %%ov, %%conv.j");
    else
        step(s, "reorder %%conv.n, %%yb, %%oc, %%kc, %%g, %%r, %%conv.x, %%cb, %%conv.kh, "
                "%%conv.kw, %%ov, %%conv.j");
    TileNest tile = {.block = "conv",
                     .line = "conv.x",
                     .joined = rows > 1 ? "r" : NULL,
                     .tiles = "t",
                     .pixel = "p",
                     .pixels = t.pixels,
                     .sums =
                         blocked ? "%cb, %conv.kh, %conv.kw, %conv.i" : "%cb, %conv.kh, %conv.kw",
                     .vectors = "%ov, %conv.j",
                     .lane = "conv.j",
                     .unroll = "%p, %ov",
                     .out = out,
                     .chunks = kb < z.c};
    tile_sums(s, &tile);
    tile_marks(s, &tile);
    if (blocked)
        step(s, "unroll %%conv.i");
    if (blocked && kb * z.kh * z.kw <= 4)
        step(s, "unroll %%conv.kw");
    if (!alone && yb > 1 && oc > 1) {
        step(s, "fuse %%yb, %%oc -> %%u");
        step(s, "parallel %%u");
    } else if (!alone && yb * oc > 1) {
        step(s, "parallel %s", yb > 1 ? "%yb" : "%oc");
    }
    step(s, "outline %%t -> @tile");
    /* A padded copy is left where the input has no border of its own: a graph's input. */
    if (!s->refusal && has_block(s, "pad"))
        pad_marks(s, blocked ? NULL : oc > 1 ? "%yb" : "%g");
}
