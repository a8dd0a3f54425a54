/* Convolution on blocked layouts of images whose size a run decides: rows, or columns (where
 * depthwise ones are cut as ever).
 *
 *   for rows %y { for output blocks %oc {        or the other way round
 *     for %t, tiles of the row, and pieces for the pixels that may be left {
 *       the whole reduction in registers } } }
 *
 * There is a piece for each number of pixels; of depthwise ones for each power of two.  Pixels that
 * are sums of their own channels alone (1x1) are one line, in blocks that L2 holds:
 *
 *   for blocks %lb of the line { for output blocks %oc { for %t, tiles of the block, and pieces
 *
 * What the rule for numbers gains elsewhere by cutting sizes (groups of short rows, blocks of rows,
 * chunks of the reduction) would be loops that end in pieces, around all of this. */
#include "schedules/cpu/cpu.h"

#include <math.h>

typedef struct {
    ConvSizes z;
    int64_t   unit[2];   /* the image has multiples of so many rows, columns; 0: a known number */
    bool      pointwise; /* its pixels are one line */
    bool      depthwise; /* o are blocks of channels, each by itself */
    RegTile   tile;
    uint32_t  order;
    int64_t   block;    /* of a line: tiles */
    bool      channels; /* of a block: written out */
} OpenPlan;

/* An image, read in that way. */
typedef struct {
    int64_t  y, x;
    RegTile  tile;
    uint32_t order;
    int64_t  block;
} OpenImage;

/* How often tiles and pieces follow each other to the end of a row or of a block of the line. */
static int64_t line_walks(const OpenPlan *p, const OpenImage *at)
{
    int64_t panels = p->z.o / at->tile.nv;

    return p->pointwise ? ceil_div(at->y * at->x, at->block * at->tile.pixels) * panels
                        : at->y * panels;
}

/* Tiles are cut in pieces of each size. */
static bool in_pieces(const OpenPlan *p)
{
    return (p->unit[1] > 0 || p->pointwise) && !p->depthwise;
}

/* Cycles of the tiles, and to see which pieces there are.  A tile reads its weights after the one
 * before in its line, which has read the same and its own pixels. */
static double tiles_cycles(const Machine *m, const OpenPlan *p, const OpenImage *at)
{
    const ConvSizes *z = &p->z;
    RegTile          t = at->tile;
    int64_t          line = p->pointwise ? at->y * at->x : at->x;
    bool             open = p->pointwise || p->unit[1] > 0;
    Rows             rows = {.n = line,
                             .symbolic = open,
                             .each = in_pieces(p),
                             .unit = p->depthwise ? p->unit[1] : line};
    double           lines = (double)(at->y * at->x / line * (z->o / t.nv));
    double           steps = (double)conv_steps(z), weights = steps * (double)(t.nv * z->lanes * 4);
    double           again = lines * (double)line / (double)t.pixels * weights;
    double           between = weights + steps * (double)(t.pixels * 4);
    Time             time = moved_time(m, again, 0, between);

    time.compute = lines * (double)z->n * steps * rows_step_cycles(m, rows, t.pixels, t.nv);
    time.compute += (double)line_walks(p, at) * (double)t.pixels * m->loop_end;
    return time_cycles(m, time);
}

/* Parts that threads take. */
static int64_t open_parts(const OpenPlan *p, const OpenImage *at)
{
    if (p->pointwise)
        return line_walks(p, at);
    return at->order == ROWS_FIRST ? at->y : p->z.o / at->tile.nv;
}

/* ... and of what is read again: by each row or block of a line all weights, by each block of
 * outputs the image or the block, of which a tile has a few pixels of each block of channels, too
 * few to be foreseen. */
static double image_cycles(const Machine *m, const OpenPlan *p, const OpenImage *at)
{
    const ConvSizes *z = &p->z;
    double           weights = (double)(conv_steps(z) * z->o * z->lanes * 4);
    double           pixel = (double)(conv_channels(z) * 4);
    double           image = (double)(at->y * at->x) * pixel, cycles = tiles_cycles(m, p, at);
    double           panels = (double)(z->o / at->tile.nv);

    if (p->depthwise)
        return cycles;
    if (p->pointwise) {
        int64_t pixels = at->block * at->tile.pixels, blocks = ceil_div(at->y * at->x, pixels);
        double  block = fmin(image, (double)pixels * pixel);
        Time    outer = moved_time(m, (double)(blocks - 1) * weights, 0, weights + block);
        Time    inner = moved_time(m, (panels - 1) * image, 0, block + weights / panels);

        return cycles + time_cycles(m, outer) + m->apart * time_cycles(m, inner);
    }
    Time again = at->order == ROWS_FIRST
                     ? time_times((double)at->y, moved_time(m, weights, 0, weights))
                     : time_times(panels, moved_time(m, image, 0, weights + image));
    return cycles + time_cycles(m, again);
}

static int64_t side_of(int64_t usual, int64_t unit, int64_t side)
{
    return unit && side < usual ? round_up(side, unit) : usual;
}

/* Of an image of the usual size, were each pixel to take what it takes in the geometric mean of
 * squares up to that size, each of which counts as much as any other.  Too few parts of one half as
 * high and wide would leave threads waiting. */
static double open_cycles(const Machine *m, const OpenPlan *p, OpenImage at)
{
    const ConvSizes *z = &p->z;
    int64_t          most = p->unit[0] ? z->y : 0;
    int64_t          parts;
    double           cycles = 0, all = 0;

    at.y = z->y;
    at.x = z->x;
    if (p->depthwise)
        return image_cycles(m, p, &at);
    at.y = side_of(z->y, p->unit[0], z->y / 2);
    at.x = side_of(z->x, p->unit[1], z->x / 2);
    parts = open_parts(p, &at);
    if (p->unit[1] && z->x > most)
        most = z->x;
    for (int64_t side = 5; side == 5 || side <= most; side += 1 + side / 4, all++) {
        at.y = side_of(z->y, p->unit[0], side);
        at.x = side_of(z->x, p->unit[1], side);
        cycles += log(image_cycles(m, p, &at) / (double)(at.y * at.x));
    }
    return divided_panels(m, exp(cycles / all) * (double)(z->y * z->x), parts);
}

/* The most tiles of a block whose pixels L2 holds beside the weights. */
static int64_t most_block(const Machine *m, const OpenPlan *p, int64_t pixels)
{
    const ConvSizes *z = &p->z;
    int64_t          tile = conv_channels(z) * pixels * 4, block = 1;

    while (2 * block * tile <= room_image(m) && block * pixels < z->y * z->x)
        block *= 2;
    return block;
}

static Candidates open_tiles(Sched *s, const OpenPlan *p, uint32_t order)
{
    const ConvSizes *z = &p->z;
    Machine          m = machine_of(s->target);
    Candidates       tiles = candidates(s);
    int64_t          vectors = p->depthwise ? 1 : z->group;
    bool             any = p->unit[1] > 0 || p->pointwise;

    for (int64_t nv = 1; nv <= limit_tile_most_vectors(&m) && nv <= vectors; nv++)
        for (int64_t most = tile_pixels_most(&m, z->lanes, nv), n = most;
             n > 0 && vectors % nv == 0; n = any ? n - 1 : lower_tile(z->x, n))
            if (n == most || n * nv >= limit_tile_least_sums(&m)) {
                OpenImage at = {.tile = {n, nv}, .order = order, .block = most_block(&m, p, n)};

                candidate(&tiles, n, nv, open_cycles(&m, p, at));
            }
    return tiles;
}

static int64_t pick_line_block(Sched *s, const OpenPlan *p)
{
    Machine    m = machine_of(s->target);
    Candidates k = candidates(s);

    for (int64_t block = most_block(&m, p, p->tile.pixels); block > 0; block /= 2) {
        OpenImage at = {.tile = p->tile, .block = block};

        candidate(&k, block, 0, open_cycles(&m, p, at));
    }
    return pick_factor(s, "block", &k);
}

/* Multiply-adds of a tile and its pieces with all channels of a block. */
static int64_t written(const OpenPlan *p)
{
    int64_t n = p->tile.pixels;

    return (in_pieces(p) ? n * (n + 1) / 2 : n) * p->tile.nv * p->z.i;
}

static void decide_open(Sched *s, void *plan)
{
    OpenPlan  *p = plan;
    Machine    m = machine_of(s->target);
    bool       ordered = !p->depthwise && !p->pointwise;
    Candidates order = candidates(s), tiles[OUTPUTS_FIRST + 1];

    for (uint32_t o = ROWS_FIRST; o <= (ordered && p->z.o > 1 ? OUTPUTS_FIRST : ROWS_FIRST); o++) {
        tiles[o] = open_tiles(s, p, o);
        candidate(&order, o, 0, least_estimate(&tiles[o]));
    }
    p->order = ordered ? pick_order(s, "order", &order, conv_orders) : ROWS_FIRST;
    p->tile = pick_reg_tile(s, "tile", &tiles[p->order]);
    if (p->pointwise)
        p->block = pick_line_block(s, p);
    if (p->z.i)
        p->channels = pick_bool(s, "unroll.channels", written(p) <= limit_written_madds(&m));
}

bool conv2d_open(Sched *s, const ConvSizes *z)
{
    bool        open_x = is_symbolic(s, "conv", "x"), open_y = is_symbolic(s, "conv", "y");
    bool        blocked = z->i > 0;
    OpenPlan    p = {.z = *z, .depthwise = !z->c && !z->i};
    const char *out, *outer;

    if (!open_y && (!open_x || p.depthwise))
        return false;
    p.unit[0] = open_y ? iter_unit(s, "conv", "y") : 0;
    p.unit[1] = open_x ? iter_unit(s, "conv", "x") : 0;
    p.pointwise = !p.depthwise && conv_is_pointwise(s, z);
    out = prepare_anchor(s, "conv", true);
    sched_decide(s, decide_open, &p);
    if (p.depthwise) {
        try_step(s, "transform_layout %%w (o, c, h, v) -> (o//%lld, c, h, v, o%%%lld)",
                 (long long)z->lanes, (long long)z->lanes);
        step(s, "reorder %%conv.n, %%conv.o, %%conv.y, %%conv.x, %%conv.kh, %%conv.kw, %%conv.j");
        outer = "conv.o";
    } else {
        bool rows = p.order == ROWS_FIRST;

        conv_pack(s, z, p.tile.nv);
        step(s, "split %%conv.o by %lld -> %%oc, %%ov", (long long)p.tile.nv);
        step(s, "reorder %%conv.n, %s, %%conv.c, %%conv.kh, %%conv.kw%s, %%ov, %%conv.j",
             p.pointwise ? "%conv.y, %conv.x, %oc"
             : rows      ? "%conv.y, %oc, %conv.x"
                         : "%oc, %conv.y, %conv.x",
             blocked ? ", %conv.i" : "");
        outer = rows ? "conv.y" : "oc";
    }
    if (p.pointwise) {
        step(s, "fuse %%conv.y, %%conv.x extents=any -> %%line");
        step(s, "split %%line by %lld tail=short -> %%lb, %%l",
             (long long)(p.block * p.tile.pixels));
        step(s, "reorder %%oc, %%l");
        step(s, "fuse %%lb, %%oc -> %%u");
        outer = "u";
    }
    TileNest tile = {.block = "conv",
                     .line = p.pointwise ? "l" : "conv.x",
                     .tiles = "t",
                     .pixel = "p",
                     .pixels = p.tile.pixels,
                     .each = in_pieces(&p),
                     .sums = p.depthwise ? "%conv.kh, %conv.kw"
                             : blocked   ? "%conv.c, %conv.kh, %conv.kw, %conv.i"
                                         : "%conv.c, %conv.kh, %conv.kw",
                     .vectors = p.depthwise ? "%conv.j" : "%ov, %conv.j",
                     .lane = "conv.j",
                     .unroll = p.depthwise ? "%p, %conv.kw" : "%p, %ov",
                     .out = out};
    tile_sums(s, &tile);
    tile_marks(s, &tile);
    if (p.channels)
        step(s, "unroll %%conv.i");
    if (!is_tiny(s, (int64_t)conv_madds(z) * z->lanes))
        step(s, "parallel %%%s", outer);
    step(s, "outline %%t -> @open");
    if (!s->refusal && has_block(s, "pad"))
        pad_marks(s, p.depthwise || p.order == ROWS_FIRST
                         ? intern_printf(s->c->strings, "%%%s", outer)
                         : NULL);
    return true;
}
