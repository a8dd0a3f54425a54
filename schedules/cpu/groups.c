/* Convolution in groups of at most a vector of outputs, on blocked layouts.
 *
 *   %conv[n,o,y,x,j] = sum[kh,kw,i] %pad[n,o,y*s+kh,x*s+kw,j//4*4+i] * %w[o*16+j,i,kh,kw]
 *
 * No two vectors of outputs read the same channels, so what is loaded of the input can serve the
 * columns of the kernel alone: these are innermost, pixel after pixel, and a tile is one vector
 * wide.  Where groups are narrower than the vector, it holds whole ones.  Channel i of each group,
 * spread over its lanes, is one permutation of a vector of the input, and one multiply-add by a
 * vector of weights serves them all.  Small images use a group's weights for a moment, then read
 * the next one's from afar: these are asked for a page ahead. */
#include "schedules/cpu/cpu.h"

#include <math.h>

static const char *const loops[] = {"pixels", "columns"};

typedef struct {
    ConvSizes z;
    GroupRow  row;
    int64_t   joined;       /* rows that are one line */
    int64_t   pixels, rows; /* of a tile; of a block */
    bool      columns;      /* are innermost */
    bool      ahead;        /* weights are asked for before */
} GroupsPlan;

/* Pixels of a tile: beside their sums, weights of a row of the kernel, and as many numbers as it
 * looks at, stay in registers; or one of each. */
static int64_t most_pixels(const Machine *m, const GroupRow *r, bool columns)
{
    int64_t reach = ((r->kw - 1) * r->dilation) / r->stride + 1;

    int64_t regs = tile_regs(m, r->lanes, 1);

    return columns ? regs - r->kw - reach : regs - 2;
}

static double tile_cycles(const Machine *m, const GroupRow *r, int64_t n, int64_t numbers)
{
    return row_step_cycles(m, r->lanes, n, r->kw, numbers, r->spread);
}

/* Cycles of a step of the reduction, all columns of the kernel, over lines of so many rows of x
 * pixels in tiles of at most `most`.  What two rows of a tile read they do not share. */
static double line_cycles(const Machine *m, const GroupRow *r, int64_t rows, int64_t x,
                          int64_t most, bool columns)
{
    int64_t line = rows * x, tiles = ceil_div(line, most), q = line / tiles, more = line % tiles;
    double  cycles = 0;

    if (rows == 1) {
        int64_t wide = columns ? row_numbers(r, q + 1) : (q + 1) * r->kw;
        int64_t slim = columns ? row_numbers(r, q) : q * r->kw;

        return (double)more * tile_cycles(m, r, q + 1, wide) +
               (double)(tiles - more) * tile_cycles(m, r, q, slim);
    }
    for (int64_t i = 0, at = 0; i < tiles; i++) {
        int64_t n = q + (i < more), end = at + n, all = columns ? 0 : n * r->kw;

        for (int64_t next; at < end && columns; at = next) {
            next = (at / x + 1) * x;
            next = next < end ? next : end;
            all += row_numbers(r, next - at);
        }
        at = end;
        cycles += tile_cycles(m, r, n, all);
    }
    return cycles;
}

/* ... with what is best inside of a tile. */
static double best_line_cycles(const Machine *m, const GroupRow *r, int64_t rows, int64_t x)
{
    double best = INFINITY;

    for (int columns = 0; columns < 2; columns++) {
        int64_t most = most_pixels(m, r, columns);
        double  c = most > 0 ? line_cycles(m, r, rows, x, most, columns) : best;

        best = c < best ? c : best;
    }
    return best;
}

double group_row_cycles(const Machine *m, const GroupRow *r, int64_t line)
{
    return best_line_cycles(m, r, 1, line);
}

/* Rows that may be one line: enough for sums that hide each other's latency, and more where that is
 * not many. */
static void joined_lines(Candidates *k, const Machine *m, const GroupsPlan *p, double steps)
{
    const ConvSizes *z = &p->z;
    int64_t          least = 1;

    while (least * z->x < limit_line_sums(m) && z->y % (2 * least) == 0)
        least *= 2;
    for (int64_t rows = least;
         rows == least || (rows * z->x <= limit_line_pixels(m) && z->y % rows == 0 &&
                           rows * z->x * z->kw * z->i <= limit_code_madds(m));
         rows *= 2) {
        double c = best_line_cycles(m, &p->row, rows, z->x);

        if (rows > least)
            c *= limit_joined_gain(m);
        candidate(k, rows, 0, c * (double)(z->n * z->o * (z->y / rows)) * steps);
    }
}

static void decide_groups(Sched *s, void *plan)
{
    GroupsPlan      *p = plan;
    const ConvSizes *z = &p->z;
    Machine          m = machine_of(s->target);
    Candidates       joined = candidates(s), pixels = candidates(s), rows = candidates(s),
               inner = candidates(s);
    double steps = (double)((z->c ? z->c : 1) * z->i * z->kh);

    joined_lines(&joined, &m, p, steps);
    p->joined = pick_factor(s, "joined", &joined);
    double lines = (double)(z->n * z->o * (z->y / p->joined)) * steps;
    for (int columns = 1; columns >= 0; columns--) {
        int64_t n = most_pixels(&m, &p->row, columns);

        if (n > 0 && (z->kw > 1 || !columns))
            candidate(&inner, columns, 0,
                      lines * line_cycles(&m, &p->row, p->joined, z->x, n, columns));
    }
    p->columns = pick_order(s, "inner", &inner, loops);
    int64_t most = most_pixels(&m, &p->row, p->columns);
    for (int64_t n = most, line = p->joined * z->x; n > 0; n = lower_tile(line, n))
        if ((n >= limit_tile_least_sums(&m) || n == most) &&
            (n * z->kw * z->i <= limit_code_madds(&m) || n == 1))
            candidate(&pixels, n, 0,
                      lines * line_cycles(&m, &p->row, p->joined, z->x, n, p->columns));
    if (!pixels.of.n)
        candidate(&pixels, 1, 0, NAN);
    p->pixels = pick_factor(s, "pixels", &pixels);
    divisors(&rows, z->y / p->joined);
    usual(&rows, block_rows(s, z->y / p->joined), 0);
    p->rows = pick_factor(s, "rows", &rows);
    p->ahead = pick_bool(s, "ahead",
                         z->y * z->x < limit_streamed_pixels(&m) &&
                             tile_feeds_lines(&m, z->lanes, p->pixels));
}

void conv2d_groups(Sched *s)
{
    const char *out = prepare_anchor(s, "conv", true);
    ConvSizes   z = conv_sizes(s);
    GroupsPlan  p = {.z = z, .row = group_row(s, &z)};
    Machine     m = machine_of(s->target);
    long long   lanes = z.lanes, i = z.i;
    bool        open = is_symbolic(s, "conv", "y"); /* a run decides: row by row */

    if (open)
        p.z.y = 1;
    sched_decide(s, decide_groups, &p);
    if (p.row.spread)
        step(s, "transform_layout %%w (o, c, h, v) -> (o//%lld, c, h, v, o%%%lld)", lanes, lanes);
    else
        step(s, "transform_layout %%w (o, c, h, v) -> (o//%lld, c//%lld, c%%%lld, h, v, o%%%lld)",
             lanes, i, i, lanes);
    if (p.ahead)
        step(s, "prefetch %%w by %lld", (long long)limit_page_bytes(&m));
    if (!open) {
        step(s, "split %%conv.y by %lld -> %%gg, %%r", (long long)p.joined);
        step(s, "split %%gg by %lld -> %%yb, %%g", (long long)p.rows);
    }
    TileNest tile = {.block = "conv",
                     .line = "conv.x",
                     .joined = p.joined > 1 ? "r" : NULL,
                     .tiles = "t",
                     .pixel = "p",
                     .pixels = p.pixels,
                     .sums = !p.columns ? (z.c ? "%conv.c, %conv.i, %conv.kh, %conv.kw"
                                               : "%conv.i, %conv.kh, %conv.kw")
                             : z.c      ? "%conv.c, %conv.i, %conv.kh"
                                        : "%conv.i, %conv.kh",
                     .vectors = p.columns ? "%conv.kw, %conv.j" : "%conv.j",
                     .lane = "conv.j",
                     .unroll = p.columns ? "%conv.i, %p, %conv.kw" : "%conv.i, %p",
                     .out = out};
    step(s, "reorder %%conv.n, %s, %%conv.x, %s, %s",
         open ? "%conv.o, %conv.y" : "%yb, %conv.o, %g, %r", tile.sums, tile.vectors);
    tile_sums(s, &tile);
    tile_marks(s, &tile);
    if (!is_tiny(s, z.n * z.o * z.lanes * z.y * z.x * conv_steps(&z))) {
        if (open)
            step(s, "parallel %%conv.o");
        else
            divide_image(s, "conv.o", "g");
    }
    step(s, "outline %%t -> @tile");
    if (!s->refusal && has_block(s, "pad"))
        pad_marks(s, NULL);
}
