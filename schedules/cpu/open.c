/* Convolution on blocked layouts of images whose size a run decides: rows, or columns (where
 * depthwise ones are cut as ever).
 *
 *   for rows %y { for output blocks %oc {        or the other way round
 *     for %t, tiles of the row, and pieces for the pixels that may be left {
 *       the whole reduction in registers } } }
 *
 * There is a piece for each number of pixels; of depthwise ones for each power of two.
 *
 * What the rule for numbers gains by cutting sizes (groups of short rows, blocks of rows, chunks of
 * the reduction) would be loops that end in pieces, around all of this. */
#include "schedules/cpu/cpu.h"

#include <math.h>

typedef struct {
    ConvSizes z;
    int64_t   unit;      /* rows have multiples of so many pixels; 0: a number that is known */
    bool      depthwise; /* o are blocks of channels, each by itself */
    RegTile   tile;
    uint32_t  order;
} OpenPlan;

/* Cycles of tiles of n pixels by nv vectors over all rows.  A tile reads its weights after the one
 * before in its row, which has read the same and its own pixels. */
static double tiles_cycles(const Machine *m, const ConvSizes *z, Rows rows, int64_t n, int64_t nv)
{
    double steps = (double)conv_steps(z), weights = steps * (double)(nv * z->lanes * 4);
    double lines = (double)(z->y * (z->o / nv)), tiles = (double)z->x / (double)n;
    Time   t = moved_time(m, lines * tiles * weights, 0, weights + steps * (double)(n * 4));

    t.compute = conv_madds(z) / (double)(z->x * nv) * rows_step_cycles(m, rows, n, nv);
    return time_cycles(m, t);
}

static void decide_open(Sched *s, void *plan)
{
    OpenPlan        *p = plan;
    const ConvSizes *z = &p->z;
    Machine          m = machine_of(s->target);
    Candidates       tiles = candidates(s), order = candidates(s);
    int64_t          vectors = p->depthwise ? 1 : z->group;
    Rows             rows = {
                    .n = z->x, .symbolic = p->unit > 0, .each = p->unit > 0 && !p->depthwise, .unit = p->unit};

    for (int64_t nv = 1; nv <= limit_tile_most_vectors(&m) && nv <= vectors; nv++)
        for (int64_t most = tile_pixels_most(&m, z->lanes, nv), n = most;
             n > 0 && vectors % nv == 0; n = p->unit ? n - 1 : lower_tile(z->x, n))
            if (n == most || n * nv >= limit_tile_least_sums(&m))
                candidate(&tiles, n, nv, tiles_cycles(&m, z, rows, n, nv));
    p->tile = pick_reg_tile(s, "tile", &tiles);
    if (p->depthwise)
        return;
    /* Each row reads all weights again, each block of outputs all of the image. */
    double weights = (double)(conv_steps(z) * z->o * z->lanes * 4);
    double image = (double)(z->c * (z->i ? z->i : 1) * z->y * z->x * 4);
    double panels = (double)(z->o / p->tile.nv), all = weights + image;
    Time   rows_first = moved_time(&m, weights, 0, weights),
         outputs_first = moved_time(&m, image, 0, all);
    candidate(&order, ROWS_FIRST, 0, time_cycles(&m, time_times((double)z->y, rows_first)));
    if (z->o > p->tile.nv)
        candidate(&order, OUTPUTS_FIRST, 0, time_cycles(&m, time_times(panels, outputs_first)));
    p->order = pick_order(s, "order", &order, conv_orders);
}

bool conv2d_open(Sched *s, const ConvSizes *z)
{
    bool        open_x = is_symbolic(s, "conv", "x"), open_y = is_symbolic(s, "conv", "y");
    bool        blocked = z->i > 0;
    OpenPlan    p = {.z = *z, .depthwise = !z->c && !z->i};
    const char *out, *outer;

    if (!open_y && (!open_x || p.depthwise))
        return false;
    p.unit = open_x ? iter_unit(s, "conv", "x") : 0;
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
        step(s, "reorder %%conv.n, %s, %%conv.x, %%conv.c, %%conv.kh, %%conv.kw%s, %%ov, %%conv.j",
             rows ? "%conv.y, %oc" : "%oc, %conv.y", blocked ? ", %conv.i" : "");
        outer = rows ? "conv.y" : "oc";
    }
    TileNest tile = {.block = "conv",
                     .line = "conv.x",
                     .tiles = "t",
                     .pixel = "p",
                     .pixels = p.tile.pixels,
                     .each = open_x && !p.depthwise,
                     .sums = p.depthwise ? "%conv.kh, %conv.kw"
                             : blocked   ? "%conv.c, %conv.kh, %conv.kw, %conv.i"
                                         : "%conv.c, %conv.kh, %conv.kw",
                     .vectors = p.depthwise ? "%conv.j" : "%ov, %conv.j",
                     .lane = "conv.j",
                     .unroll = p.depthwise ? "%p, %conv.kw" : "%p, %ov",
                     .out = out};
    tile_sums(s, &tile);
    tile_marks(s, &tile);
    if (!is_tiny(s, (int64_t)conv_madds(z) * z->lanes))
        step(s, "parallel %%%s", outer);
    step(s, "outline %%t -> @open");
    if (!s->refusal && has_block(s, "pad"))
        pad_marks(s, p.depthwise || p.order == ROWS_FIRST
                         ? intern_printf(s->c->strings, "%%%s", outer)
                         : NULL);
    return true;
}
