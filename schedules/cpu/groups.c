/* Convolution in groups of at most a vector of outputs, on blocked layouts.
 *
 *   %conv[n,o,y,x,j] = sum[kh,kw,i] %pad[n,o,y*s+kh,x*s+kw,j//4*4+i] * %w[o*16+j,i,kh,kw]
 *
 * No two vectors of outputs read the same channels, so what is loaded of the input can serve the
 * columns of the kernel alone: these are innermost, pixel after pixel, and a tile is one vector
 * wide.  Where groups are narrower than the vector, it holds whole ones.  Channel i of each group,
 * spread over its lanes, is one permutation of a vector of the input, and one multiply-add by a
 * vector of weights serves them all. */
#include "schedules/cpu/cpu.h"

#include <math.h>

static const char *const loops[] = {"pixels", "columns"};

typedef struct {
    ConvSizes z;
    GroupRow  row;
    int64_t   joined;       /* rows that are one line */
    int64_t   pixels, rows; /* of a tile; of a block */
    bool      columns;      /* are innermost */
} GroupsPlan;

/* Pixel p, at column k of the kernel, reads a number that no pixel before it has read. */
static bool is_new(const GroupRow *r, int64_t p, int64_t k)
{
    for (int64_t before = 1; before <= p; before++) {
        int64_t d = before * r->stride + k * r->dilation;

        if (d % r->dilation == 0 && d / r->dilation < r->kw)
            return false;
    }
    return true;
}

/* Numbers that n pixels of a line read in a row of the kernel, each once. */
static int64_t numbers(const GroupRow *r, int64_t n)
{
    int64_t all = 0;

    for (int64_t p = 0; p < n; p++)
        for (int64_t k = 0; k < r->kw; k++)
            all += is_new(r, p, k);
    return all;
}

/* Pixels of a tile: beside their sums, weights of a row of the kernel, and as many numbers as it
 * looks at, stay in registers; or one of each. */
static int64_t most_pixels(const Machine *m, const GroupRow *r, bool columns)
{
    int64_t reach = ((r->kw - 1) * r->dilation) / r->stride + 1;

    return columns ? m->regs - r->kw - reach : m->regs - 2;
}

static double tile_cycles(const Machine *m, const GroupRow *r, int64_t n, bool columns)
{
    return row_step_cycles(m, r->lanes, n, r->kw, columns ? numbers(r, n) : n * r->kw, r->permuted);
}

/* Cycles of a step of the reduction, all columns of the kernel, over a line in tiles of at most so
 * many pixels. */
static double line_cycles(const Machine *m, const GroupRow *r, int64_t line, int64_t most,
                          bool columns)
{
    int64_t tiles = ceil_div(line, most), q = line / tiles, more = line % tiles;

    return (double)more * tile_cycles(m, r, q + 1, columns) +
           (double)(tiles - more) * tile_cycles(m, r, q, columns);
}

double group_row_cycles(const Machine *m, const GroupRow *r, int64_t line)
{
    double best = INFINITY;

    for (int columns = 0; columns < 2; columns++) {
        int64_t most = most_pixels(m, r, columns);
        double  c = most > 0 ? line_cycles(m, r, line, most, columns) : best;

        best = c < best ? c : best;
    }
    return best;
}

/* Rows are joined until their sums hide each other's latency. */
static int64_t joined_lines(const Machine *m, const ConvSizes *z)
{
    int64_t rows = 1;

    while (rows * z->x < limit_line_sums(m) && z->y % (2 * rows) == 0)
        rows *= 2;
    return rows;
}

static void decide_groups(Sched *s, void *plan)
{
    GroupsPlan      *p = plan;
    const ConvSizes *z = &p->z;
    Machine          m = machine_of(s->target);
    Candidates       pixels = candidates(s), rows = candidates(s), inner = candidates(s);
    int64_t          line, steps = (z->c ? z->c : 1) * z->i * z->kh;

    p->joined = joined_lines(&m, z);
    double lines = (double)(z->n * z->o * (z->y / p->joined)) * (double)steps;
    line = p->joined * z->x;
    for (int columns = 1; columns >= 0; columns--) {
        int64_t n = most_pixels(&m, &p->row, columns);

        if (n > 0 && (z->kw > 1 || !columns))
            candidate(&inner, columns, 0, lines * line_cycles(&m, &p->row, line, n, columns));
    }
    p->columns = pick_order(s, "inner", &inner, loops);
    int64_t most = most_pixels(&m, &p->row, p->columns);
    for (int64_t n = most; n > 0; n = lower_tile(line, n))
        if ((n >= limit_tile_least_sums(&m) || n == most) &&
            (n * z->kw * z->i <= LONG_CODE || n == 1))
            candidate(&pixels, n, 0, lines * line_cycles(&m, &p->row, line, n, p->columns));
    if (!pixels.of.n)
        candidate(&pixels, 1, 0, NAN);
    p->pixels = pick_factor(s, "pixels", &pixels);
    divisors(&rows, z->y / p->joined);
    usual(&rows, z->y / p->joined / row_blocks(z->y / p->joined), 0);
    p->rows = pick_factor(s, "rows", &rows);
}

void conv2d_groups(Sched *s)
{
    const char *out = prepare_anchor(s, "conv", true);
    GroupsPlan  p = {.z = conv_sizes(s), .row = group_row(s)};
    ConvSizes   z = p.z;
    long long   lanes = z.lanes, i = z.i;

    sched_decide(s, decide_groups, &p);
    if (p.row.permuted)
        step(s, "transform_layout %%w (o, c, h, v) -> (o//%lld, c, h, v, o%%%lld)", lanes, lanes);
    else
        step(s, "transform_layout %%w (o, c, h, v) -> (o//%lld, c//%lld, c%%%lld, h, v, o%%%lld)",
             lanes, i, i, lanes);
    step(s, "split %%conv.y by %lld -> %%gg, %%r", (long long)p.joined);
    step(s, "split %%gg by %lld -> %%yb, %%g", (long long)p.rows);
    TileNest tile = {
        .block = "conv",
        .line = "conv.x",
        .joined = p.joined > 1 ? "r" : NULL,
        .tiles = "t",
        .pixel = "p",
        .pixels = p.pixels,
        .sums = !p.columns
                    ? (z.c ? "%conv.c, %conv.i, %conv.kh, %conv.kw" : "%conv.i, %conv.kh, %conv.kw")
                : z.c ? "%conv.c, %conv.i, %conv.kh"
                      : "%conv.i, %conv.kh",
        .vectors = p.columns ? "%conv.kw, %conv.j" : "%conv.j",
        .lane = "conv.j",
        .unroll = p.columns || z.kw * p.pixels * z.i <= LONG_CODE ? "%conv.i, %p, %conv.kw"
                                                                  : "%conv.i, %p",
        .out = out};
    step(s, "reorder %%conv.n, %%yb, %%conv.o, %%g, %%r, %%conv.x, %s, %s", tile.sums,
         tile.vectors);
    tile_sums(s, &tile);
    tile_marks(s, &tile);
    if (!is_tiny(s, z.n * z.o * z.lanes * z.y * z.x * conv_steps(&z))) {
        step(s, "fuse %%yb, %%conv.o -> %%u");
        step(s, "parallel %%u");
    }
    step(s, "outline %%t -> @tile");
    if (!s->refusal && has_block(s, "pad"))
        pad_marks(s, NULL);
}
