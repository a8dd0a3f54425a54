/* Cycles of whole products on one core, for passes that choose among algorithms: multiply-adds or
 * other work in vectors, beside the weights on their way from memory.  And those of a step of a
 * matrix product over all of its rows, by which a rule chooses its tile. */
#include "ir/tir/tir.h"
#include "machine/machine.h"

#include <math.h>

/* The weights are asked for ahead (`prefetch`). */
static double larger(double a, double b)
{
    return a > b ? a : b;
}

static double beside(const Machine *m, double compute, Time weights)
{
    return time_cycles(m, time_beside(time_compute(compute), time_ahead(weights)));
}

/* As many vectors of products a cycle as there are units for, and what a 3x3 convolution's tiles
 * reach of that. */
double conv_cycles(const Machine *m, double macs, double weights, int64_t lanes)
{
    return beside(m, DIRECT_3X3 * macs / (double)lanes / fma_rate(m, lanes),
                  fetched_time(m, weights * 4));
}

double conv_words_cycles(const Machine *m, double macs, double weights, int64_t lanes)
{
    return beside(m, DIRECT_3X3 * macs / (double)lanes / 2 / fma_rate(m, lanes),
                  fetched_time(m, weights));
}

double conv_dot4_cycles(const Machine *m, double macs, double weights, int64_t lanes, uint32_t ops)
{
    enum { VECTORS = 2 };
    int64_t most = tile_pixels_most(m, lanes, VECTORS), pixels = most < 1 ? 1 : most;
    double  step = dot_step_cycles(m, ops, pixels, pixels, VECTORS) / (double)(pixels * VECTORS);

    return beside(m, macs / 4 / (double)lanes * step, fetched_time(m, weights));
}

double conv_bytes_cycles(const Machine *m, double macs, double weights, int64_t lanes)
{
    enum { INSTRUCTIONS = 3 }; /* a product is two on many x86, then a sum */

    return beside(m, macs / (double)lanes * INSTRUCTIONS / fma_rate(m, lanes),
                  fetched_time(m, weights));
}

double depthwise_dot4_cycles(double macs, int64_t lanes)
{
    return macs / 4 / (double)lanes;
}

/* 9 taps of 8 results took 9.2 cycles, 11 of integers of 32 bits (AVX2, Zen 4). */
double depthwise_floats_cycles(double macs, int64_t lanes)
{
    const double TAP = 1.02;

    return macs / (double)lanes * TAP;
}

/* Instructions that start, sums of vectors of 64 bytes, then storing 32 bytes or loading these.
 * Measured of 2x2 and 4x4 with AVX2: Cascade Lake 1.0 and 2.3 cycles, Zen 5 0.7 and 1.4, of several
 * groups 1.6 and 2.4; with AVX-512, of several groups, Cascade Lake 2.4 and 5, Zen 5 0.9 and 1.1 to
 * 2.7.  By whole kernels of 4x4, Zen 4: AVX2 1.8, AVX-512 of several groups 4.5.  llvm-mca (LLVM
 * 19) of 4x4 with AVX2, the mean of both ways: Haswell 2.1, Skylake 1.75, Zen 3 and 4 1.3; of 2x2
 * Haswell 1.9, whose additions they are, Zen 4 0.9. */
double winograd_group_cell_cycles(const Machine *m, int64_t lanes, int64_t tile, bool within)
{
    const double BEGUN_2X2 = 2.6, BEGUN_4X4 = 8.4, WITHIN = 9.5, MOVE = 0.35, ADDITIONS = 1.9;
    double       sums = tile == 2 ? BEGUN_2X2 : BEGUN_4X4, wide = (double)(lanes * 4) / 32;
    double       begun = (sums + (within ? WITHIN : 0)) / m->issue;

    if (lanes * 4 >= 64)
        begun = fmax(begun, sums / m->wide_units);
    return fmax(begun + MOVE * wide, ADDITIONS / m->adds);
}

double winograd_way(int64_t cells)
{
    const double NONE = 0.1, USUAL = 0.5, WIDE = 0.75;

    return cells == 1 ? NONE : cells > 6 ? WIDE : USUAL;
}

double dense_cycles(const Machine *m, double macs, double weights, int64_t lanes)
{
    return beside(m, macs / (double)lanes / fma_rate(m, lanes) * DENSE,
                  level_time(m, LEVEL_MEMORY, weights * 4));
}

double fetched_cycles(const Machine *m, double compute, double weights)
{
    return beside(m, compute, fetched_time(m, weights * 4));
}

double panel_copy_cycles(const Machine *m, double cells)
{
    return 2 * cells * 4 / (m->l2_rate / 2);
}

/* ---- rows ------------------------------------------------------------------------------------- */

/* Cycles of a step of a tile or piece.  Weights from L2 are counted among what sums load, but take
 * as long as L2 delivers them. */
static double piece_step_cycles(const Machine *m, int64_t rows, int64_t nv)
{
    Time weights = level_time(m, LEVEL_L2, (double)(nv * m->vector_bytes));

    return fmax(panel_step_cycles(m, rows, rows, nv), time_traffic(weights));
}

/* What the first one of so many rows waits for weights from afar. */
static double waiting_cycles(const Machine *m, Rows all, int64_t rows, int64_t nv)
{
    double sums = panel_step_cycles(m, rows, rows, nv);
    Time   weights = fetched_time(m, (double)(nv * m->vector_bytes));

    return all.far * (time_cycles(m, time_beside(time_compute(sums), weights)) - sums);
}

/* Cycles of a step over n rows that a run decides: tiles, and one piece of what is left. */
static double decided_cycles(const Machine *m, Rows all, int64_t n, int64_t p, int64_t nv)
{
    double cycles = waiting_cycles(m, all, n < p ? n : p, nv);

    cycles += (double)(n / p) * piece_step_cycles(m, p, nv);
    return n % p ? cycles + piece_step_cycles(m, n % p, nv) : cycles;
}

/* Symbolic ones, where there is a piece for each size: the geometric mean of some numbers, each of
 * which counts as much as any other.  Where what is left goes in pieces of powers of two (split),
 * their numbers are mostly such ones, too, or the largest: all of these together. */
double rows_step_cycles(const Machine *m, Rows rows, int64_t p, int64_t nv)
{
    double  whole, cycles = 0, all = 0;
    int64_t unit = rows.unit > 1 ? rows.unit : 1;

    if (!rows.symbolic)
        return panel_step_cycles(m, rows.n, p, nv) +
               waiting_cycles(m, rows, ceil_div(rows.n, ceil_div(rows.n, p)), nv);
    for (int64_t n = unit; rows.each && n <= rows.n; n += ceil_div(1 + n / 16, unit) * unit, all++)
        cycles += log(decided_cycles(m, rows, n, p, nv));
    if (rows.each)
        return exp(cycles / all);
    whole = piece_step_cycles(m, p, nv);
    for (int64_t n = 1; n; n = 2 * n <= rows.n ? 2 * n : n < rows.n ? rows.n : 0) {
        cycles += (double)(n / p) * whole;
        for (int64_t piece = 1; piece <= n % p; piece *= 2)
            if (n % p & piece)
                cycles += piece_step_cycles(m, piece, nv);
        all += (double)n;
    }
    return cycles / all * (double)rows.n;
}

/* ---- chunks of a panel ------------------------------------------------------------------------ */

int64_t panels_tall(const Panels *panels)
{
    return ceil_div(panels->rows, ceil_div(panels->rows, panels->tile.pixels));
}

/* What a tile of a chunk reads, but for what comes to its sums. */
static double chunk_bytes(const Panels *panels, int64_t chunk)
{
    return (double)(chunk * (panels->tile.nv * panels->lanes + panels_tall(panels)) * 4);
}

/* The share of a chunk's weights that has left L1 when the next tile wants them: a set that one
 * line more passes through than it has keeps none of them. */
static double gone(const Machine *m, double between)
{
    double way = (double)m->l1 / (double)limit_set_lines(m), over = (between - (double)m->l1) / way;

    return over < 0 ? 0 : over > 1 ? 1 : over;
}

/* Each chunk but the last stores sums, which the next one loads, and asks anew for weights that
 * come from afar.  That a chunk stays in L1 beside a tile's numbers brings nothing: 3136x384 by 384
 * and 2048x512 by 512 take 0.90 and 0.93 of the time in one chunk, 128x768 by 512 and 768, 196x1536
 * by 384 0.99 to 1.00 (6x2 with AVX2, four steps written out, Zen 3).
 *
 * SUM, CROWDED: 64x512 by 512x2048, 14x2 with AVX-512, by 64 to 512 steps (Zen 4).  START: chunks
 * of 256 and 384 of 768 steps take 0.85 and 0.89 of the time where L3 has the weights, as long or
 * 1.05 in BERT, whose come from memory (Zen 3). */
double panels_cycles(const Machine *m, const Panels *panels, int64_t chunk)
{
    const double SUM = 4, CROWDED = 18, START = 12000;
    RegTile      t = panels->tile;
    int64_t      tiles = ceil_div(panels->rows, t.pixels), tall = panels_tall(panels);
    bool         crowded = panels->stride % limit_set_bytes(m) == 0;
    double       width = (double)(t.nv * panels->lanes * 4), again = (double)panels->k * width;
    double       products = (double)panels->k * panel_step_cycles(m, panels->rows, t.pixels, t.nv);
    double       sums = m->call + m->loop_end + (double)(tall * t.nv) * (crowded ? CROWDED : SUM);
    Time         far = {0};

    again *= (double)(tiles - 1);
    if ((double)chunk * width > (double)room_panel(m))
        far = level_time(m, LEVEL_L3, again);
    products = time_cycles(m, time_beside(time_compute(products), far));
    sums = (double)tiles * sums + panels->far * START;
    return (double)panels->times * (products + (double)(panels->k / chunk - 1) * sums);
}

/* More blocks of rows read less from beyond L2, and begin more panels.  To one block, two, four,
 * eight and sixteen of 3136x384 by 96 take 1.08, 1.13, 1.13 and 1.08 of the time, whose rows come
 * from L3, but those of sixteen (Zen 3): 6,000 to 100,000 cycles a panel of each further block.
 * BEGIN is less: L3 gives more there than elsewhere.  Four take 0.81 to 0.95 of eight on a Cascade
 * Lake. */
double panels_begin_cycles(const Machine *m, double bytes, int64_t panels)
{
    const double BEGIN = 4000;
    double       share[LEVELS];

    cache_shares(m, bytes, share);
    return BEGIN * (double)panels * (share[LEVEL_L3] + share[LEVEL_MEMORY]);
}

/* Every tile asks, so that the first one need not wait; the others, too, where L1 has not kept what
 * it brought.  Zen 3, 6x2 with AVX2: 3136 rows, 33 tiles of them or more by weights in L2, take
 * 0.77 to 0.98 of the time without, 128 rows, 22 tiles, by weights from memory 1 to 1.08. */
bool panels_ask_ahead(const Machine *m, const Panels *panels, int64_t chunk)
{
    const double ASK = 0.5;
    int64_t      tiles = ceil_div(panels->rows, panels->tile.pixels);

    return (!m->l2_in_time && gone(m, chunk_bytes(panels, chunk)) > 0) ||
           panels->far * CACHE_LINE / m->memory_rate > (double)tiles * ASK;
}

/* Of narrower vectors more may start at a time.  A panel of 8 columns beside one of 16 took 0.93 of
 * the time of one of 24 with AVX-512; with AVX2, where it is as long as any, 1.57 for 13 columns,
 * 1.25 for 27 (Zen 4). */
double part_vector(const Machine *m, int64_t lanes, int64_t part)
{
    int64_t wide = 4;

    while (wide < part)
        wide *= 2;
    return part && wide < lanes ? fma_rate(m, lanes) / fma_rate(m, wide) : 1;
}

/* Each sum waits for itself; in the end one by one is added to the first. */
double row_panel_cycles(const Machine *m, int64_t lanes, int64_t nv, int64_t steps, int64_t sums)
{
    double n = (double)(nv * sums), loads = ((double)sums + n) / m->loads;
    double round = larger(larger(n / fma_rate(m, lanes), loads), m->latency);

    return round * (double)(steps / sums) + (double)(sums - 1) * m->latency;
}

/* ---- whole products --------------------------------------------------------------------------- */

/* The tile of a product of so many rows that takes the fewest cycles a vector of columns. */
static RegTile product_tile(const Machine *m, double rows)
{
    RegTile best = {1, 1};
    double  least = 0;

    for (int64_t nv = 1; nv <= limit_tile_most_vectors(m); nv++) {
        int64_t most = (tile_regs(m, m->vector_bytes / 4, nv) - nv - 1) / nv;
        double  c = most > 0 ? panel_step_cycles(m, (int64_t)rows, most, nv) / (double)nv : 0;

        if (c > 0 && (least == 0 || c < least)) {
            least = c;
            best = (RegTile){most, nv};
        }
    }
    return best;
}

double product_row_cycles(const Machine *m, int64_t rows, double n, double k)
{
    int64_t vectors = (int64_t)ceil(n * 4 / m->vector_bytes);
    double  least = 0;

    for (int64_t nv = 1; nv <= limit_tile_most_vectors(m) && nv <= vectors && rows > 0; nv++) {
        int64_t most = (tile_regs(m, m->vector_bytes / 4, nv) - nv - 1) / nv;
        double  c = most > 0 ? panel_step_cycles(m, rows, most, nv) / (double)nv : 0;

        if (c > 0 && (least == 0 || c < least))
            least = c;
    }
    return rows > 0 ? least * (double)vectors * k / (double)rows : 0;
}

/* What of a cache of `bytes` pieces can lie in that are `stride` bytes apart: those of one set are
 * a multiple of `limit_set_bytes` apart, or of as much of a larger cache. */
static double reached(const Machine *m, int64_t bytes, int64_t stride, double piece)
{
    int64_t set = limit_set_bytes(m) > bytes / limit_set_lines(m) ? limit_set_bytes(m)
                                                                  : bytes / limit_set_lines(m);
    int64_t places = set / gcd_i64(set, stride);

    return (double)bytes * fmin((double)places * piece / (double)set, 1);
}

double pieces_cycles(const Machine *m, double rows, double n, double k, double all)
{
    RegTile t = product_tile(m, rows);
    int64_t stride = (int64_t)n * 4;
    double  piece = (double)t.nv * m->vector_bytes, tiles = ceil(rows / (double)t.pixels);
    double  lines = k * (piece + (stride % CACHE_LINE ? CACHE_LINE : 0)); /* of a panel */
    double  panels = n * 4 / piece;

    /* A copy would read them once, too; pieces next to each other; a panel that stays in L1. */
    if (tiles <= 1 || panels <= 2 || lines <= reached(m, m->l1, stride, piece))
        return 0;

    Level near = lines <= reached(m, m->l2, stride, piece) ? LEVEL_L2 : LEVEL_L3;
    Time  first = moved_time(m, m->apart * panels * lines, 0, all * 4);
    Time  again = level_time(m, near, m->apart * (tiles - 1) * panels * lines);

    return time_cycles(m, first) + time_cycles(m, again);
}

double pieces_copy_cycles(const Machine *m, double n, double k, double all)
{
    double bytes = n * k * 4;

    return time_cycles(m, moved_time(m, bytes, 0, all * 4)) +
           time_cycles(m, moved_time(m, 0, bytes, 2 * bytes));
}

double strassen_cycles(const Machine *m, double rows, double n, double k, int64_t lanes)
{
    double near = m->l2_rate / 2;
    double sums = rows * k * 4 * (1 + 7.0 / 4) / near + rows * n * 4 * (3 + 7.0 / 4) / near;

    return beside(m, rows * n * k / (double)lanes / fma_rate(m, lanes) * DENSE * 7 / 8 + sums,
                  level_time(m, LEVEL_MEMORY, n * k * 7));
}
