/* Cycles of register tiles.
 *
 * A tile of p numbers by nv vectors keeps p*nv sums in registers.  A step of its reduction loads nv
 * vectors and p numbers, and makes p*nv multiply-adds, two a cycle where a vector is as wide as a
 * unit.  Each sum waits for itself, so a step takes no less than that latency.  The forms below
 * agree on that and differ in what else was measured for them. */
#include "ir/tir/tir.h"
#include "machine/machine.h"

static double larger(double a, double b)
{
    return a > b ? a : b;
}

/* ---- convolutions ------------------------------------------------------------------------------- */

/* Where two multiply-adds start in a cycle, sums for less than one and a half latencies do not
 * always have the next one ready for both (`sum_wait`: 4x2 4.27, 3x3 4.80, 5x2 5.24, 6x2 6.00 on a
 * Zen 4 with vectors of 32 bytes, 5x2 of 64 bytes, one a cycle, 10.0). */
static double waits(const Machine *m, int64_t lanes, double fma)
{
    return fma < 1.5 * m->latency && fma_rate(m, lanes) > 1 ? m->sum_wait : 0;
}

/* Narrower vectors come twice as fast, but instructions that name the upper half of 32 registers
 * are longer. */
static double long_instructions(const Machine *m, int64_t lanes, int64_t p, int64_t nv)
{
    enum { SHORT_REGS = 16 };

    return lanes * 4 < m->vector_bytes && (p + 1) * nv + 1 > SHORT_REGS
               ? (double)(p * nv + p + nv) / m->long_issue
               : 0;
}

/* Cycles of a step of a p x nv tile, per multiply-add of a vector.  Numbers that are spread first,
 * and take longer than the multiply-adds, are not all loaded as early as they could (14x1 7.71 on a
 * Zen 4, where 15 loads are 7.5). */
static double tile_cost(const Machine *m, int64_t lanes, int64_t p, int64_t nv)
{
    double late = m->fma_mem_splat ? 1 : 1.05;
    double fma = (double)(p * nv) / 2, load = late * (double)(p + nv) / m->loads;
    double step = larger(larger(fma, load), m->latency) + waits(m, lanes, fma);
    return larger(step, long_instructions(m, lanes, p, nv)) / (double)(p * nv);
}

int64_t tile_loads_ahead(const Machine *m, int64_t lanes)
{
    return (int64_t)((double)m->load_wait * fma_rate(m, lanes));
}

int64_t tile_regs(const Machine *m, int64_t lanes, int64_t nv)
{
    int64_t ahead = tile_loads_ahead(m, lanes);

    return ahead ? m->regs - ceil_div(ahead, nv) - nv : m->regs;
}

int64_t tile_pixels_most(const Machine *m, int64_t lanes, int64_t nv)
{
    bool    narrow = lanes * 4 < m->vector_bytes;
    int64_t regs = tile_regs(m, lanes, nv) - nv;

    /* A number that several vectors of weights want is spread once, into a register. */
    if (!(m->fma_mem_splat && !narrow && nv == 1))
        regs--;
    /* LLVM loads two neighbouring vectors at a time: with 16 registers 14x1 spilled (78 % of the
     * peak; 12x1 and 11x1 88 %, Zen 5). */
    if (nv == 1 && m->regs <= 16)
        regs--;
    return regs / nv;
}

/* ... of at most `most` pixels each. */
static double tiles_cycles(const Machine *m, int64_t lanes, int64_t pixels, int64_t most,
                           int64_t nv)
{
    int64_t tiles = ceil_div(pixels, most), q, r;

    if (tiles < 1)
        return 0;
    q = pixels / tiles, r = pixels % tiles;
    return (double)r * tile_cost(m, lanes, q + 1, nv) * (double)((q + 1) * nv) +
           (double)(tiles - r) * tile_cost(m, lanes, q, nv) * (double)(q * nv);
}

double tile_step_cycles(const Machine *m, int64_t lanes, int64_t pixels, int64_t nv)
{
    int64_t most = tile_pixels_most(m, lanes, nv);

    return most < 1 || pixels < 1 ? 0 : tiles_cycles(m, lanes, pixels, most, nv);
}

/* The weights are read once a tile. */
double tile_madd_cycles(const Machine *m, int64_t lanes, int64_t vectors, int64_t pixels,
                        int64_t parts, RegTile t)
{
    double balance = parts ? thread_balance(parts * (vectors / t.nv)) : 1;
    double c = tiles_cycles(m, lanes, pixels, t.pixels, t.nv) +
               0.02 * (double)(ceil_div(pixels, t.pixels) * t.nv);

    c /= (double)(pixels * t.nv);
    return balance < 0.9 ? c / ((1 + balance) / 2) : c;
}

RegTile tile_best(const Machine *m, int64_t lanes, int64_t vectors, int64_t pixels, int64_t parts)
{
    RegTile best = {1, 1};
    double  cost = 1e30;

    for (int64_t nv = 1; nv <= 6 && nv <= vectors; nv++) {
        if (vectors % nv)
            continue;
        int64_t most = tile_pixels_most(m, lanes, nv);
        if (most < 1)
            break;
        double c = tile_madd_cycles(m, lanes, vectors, pixels, parts, (RegTile){most, nv});
        if (c < cost - 1e-9)
            cost = c, best = (RegTile){most, nv};
    }
    return best;
}

/* Two pixels of a tile ask for each line (codegen_prim.c): 6x2 with AVX2 then loads ten times in
 * six cycles and was 7 % faster (128 rows by 768 and 3072 columns), 4x3, which needs a line every
 * four, 5 % slower (8 rows, Zen 4). */
bool tile_feeds_lines(const Machine *m, int64_t lanes, int64_t pixels)
{
    enum { LEAST = 6 };

    return (double)(pixels * CACHE_LINE) >= LEAST * fma_rate(m, lanes) * (double)(lanes * 4);
}

bool row_asks_ahead(const Machine *m, double data, int64_t lanes, int64_t outputs)
{
    return data > (double)m->l2 && tile_feeds_lines(m, lanes, outputs * lanes * 4 / CACHE_LINE);
}

/* Two pixels of a tile ask for each line of weights that comes later (codegen_prim.c), which is a
 * load, and while a line comes in, L1 serves none.  25x1 takes 16.5 cycles where units take 12.5,
 * 12x2 no more than those (Winograd's products, 128 and 256 channels, Cascade Lake).
 * tile_step_cycles chooses for two multiply-adds a cycle; this counts those there are. */
enum { ASKS = 2 };

double asked_cycles(const Machine *m, double bytes)
{
    return ASKS * bytes / CACHE_LINE / m->loads;
}

double fed_step_cycles(const Machine *m, int64_t lanes, int64_t pixels, int64_t nv)
{
    int64_t most = tile_pixels_most(m, lanes, nv), tiles = most < 1 ? 0 : ceil_div(pixels, most);
    double  p = (double)pixels, units = p * (double)nv / fma_rate(m, lanes);
    double  weights = (double)(tiles * nv), lines = weights * (double)(lanes * 4) / CACHE_LINE;
    double  loads = (p + weights + ASKS * lines) / m->loads + lines + p * 4 / CACHE_LINE;

    return larger(larger(tile_step_cycles(m, lanes, pixels, nv), units), loads);
}

/* A step of one of `tiles` equal tiles, where its sums wait for nothing. */
static double equal_tile_cycles(const Machine *m, int64_t lanes, int64_t pixels, int64_t nv,
                                int64_t tiles)
{
    double rate = fma_rate(m, lanes), p = (double)pixels / (double)tiles;

    return larger(p * (double)nv / rate, p / m->loads + (double)nv / rate);
}

/* As fed_step_cycles. */
double conv_step_cycles(const Machine *m, int64_t lanes, int64_t pixels, int64_t nv, int64_t tiles)
{
    double fma = (double)(pixels * nv) / (double)tiles / fma_rate(m, lanes);
    double step = equal_tile_cycles(m, lanes, pixels, nv, tiles);

    return (larger(step, m->latency) + waits(m, lanes, fma)) * (double)tiles;
}

/* Cycles of so many bytes of weights from L2, which delivers them at two thirds of what
 * it can, to recurrent networks, too: 40 to 663 channels, 9x9 on 4x4, took 1.2 times as long in 16
 * strips of a pixel each, with a third of the products (Zen 5). */
double weights_cycles(const Machine *m, double bytes)
{
    return bytes / (m->l2_rate * 2 / 3);
}

double strip_step_cycles(const Machine *m, int64_t lanes, int64_t pixels, int64_t nv, int64_t tiles)
{
    double read = weights_cycles(m, (double)(tiles * nv * lanes * 4));

    return larger(conv_step_cycles(m, lanes, pixels, nv, tiles), read);
}

/* A sum waits for that of the cell before. */
double written_cycles(const Machine *m, int64_t lanes, const WrittenLine *w, int64_t nv)
{
    double vectors = (double)(w->taps * nv * w->tiles), rate = fma_rate(m, lanes);
    double read = weights_cycles(m, vectors * (double)(lanes * 4));
    double units = larger(w->madds * (double)nv / rate, w->madds / m->loads + vectors / rate);

    return larger(larger(units, read), (double)(w->tiles * w->chain) * m->latency);
}

/* Sums wait for themselves, not for those of the next cell: 8 tiles by 8 channels take 36.3 cycles,
 * as long as their loads, and 4 tiles half of that (AVX2, Zen 5). */
double short_sums_cycles(const Machine *m, int64_t lanes, int64_t pixels, int64_t nv, int64_t tiles,
                         double steps)
{
    double madds = (double)(pixels * nv) / (double)tiles, fma = madds / fma_rate(m, lanes);
    double sums = steps * equal_tile_cycles(m, lanes, pixels, nv, tiles);
    double chain = hidden_cycles(m, steps * m->latency, steps * madds);

    if (sums < 1.5 * chain)
        sums += steps * waits(m, lanes, fma);
    return larger(sums, chain) * (double)tiles;
}

/* As long as multiply-adds, loads, or instructions take: a round of 6x2 with AVX2 is 23
 * instructions in 6 cycles, so there is no time to catch up in when a loop of a few rounds ends;
 * with AVX-512 there is.  What does not fit into registers is stored and loaded once a row. Loads
 * show a little, as in a matrix product.  Measured and estimated (3x3, to 4x2 written out, AVX2,
 * Cascade Lake): loops of 6x2 1.09, 1.10, 5x2 1.16, 1.17, 4x2 1.24, 1.28; written out
 * 2x4 1.04, 1.01, 5x2 1.21, 1.09, 6x2 1.55, 1.34. */
double plain_row_cycles(const Machine *m, const PlainRow *r, RegTile t)
{
    const double COUNTING = 3, LOAD = 0.1;
    double       sums = (double)(t.pixels * t.nv), columns = (double)r->columns;
    double       fma = sums / fma_rate(m, r->lanes);
    double       loads = (double)r->numbers + columns * (double)t.nv;
    double       sum = hidden_cycles(m, m->latency, (double)r->rows * columns * sums);
    double       rounds = r->written ? 1 : columns;
    double       folded = r->held ? 0 : (double)r->numbers;
    double       start = (columns * sums + loads - folded + COUNTING * rounds) / m->issue;
    double cycles = columns * (larger(fma, sum) + (sum < m->latency ? 0 : waits(m, r->lanes, fma)));
    int64_t registers = t.pixels * t.nv + t.nv + r->held, all = tile_regs(m, r->lanes, t.nv);

    if (registers > all)
        cycles += m->spill * (double)(registers - all);
    double busy = larger(start, loads / m->loads) + (r->written ? 0 : m->short_end);

    return larger(cycles, busy) + LOAD * loads / m->loads;
}

/* A sum waits for itself once a weight.  A number is loaded and spread once; to permute lanes takes
 * a unit that does nothing else, but for vectors of 64 bytes there may be two units in all.
 * Beyond a quarter of 16 bytes LLVM takes two steps (groups of 8 with AVX-512: 1.27 times as long).
 */
double row_step_cycles(const Machine *m, int64_t lanes, int64_t sums, int64_t weights,
                       int64_t numbers, int64_t spread)
{
    enum { QUARTER = 16 };
    double rate = fma_rate(m, lanes), units = (double)(sums * weights);
    double load = (double)(numbers + weights) / m->loads;
    double permutes = !spread ? 0 : spread * 4 > QUARTER ? 2 * (double)numbers : (double)numbers;
    double all = lanes * 4 < 64 ? 0 : (units + permutes) / m->wide_units;
    double busy = larger(larger(units / rate, permutes), all);

    return larger(larger(busy, load), (double)weights * m->latency) + 0.5 +
           0.025 * (double)(numbers + weights);
}

/* Weights count as in a product.  Of a whole block of 7x7 tiles of groups of 32 channels 6x2 takes
 * 0.85 to 0.87 of the time of 2x4, whose estimate is as long to a thousandth (AVX2, Zen 3). */
double loads_price(RegTile t)
{
    return 1 + 0.01 * (double)(t.pixels + 4 * t.nv) / (double)(t.pixels * t.nv);
}

/* A core that does not look ahead waits for the first loads of each round. */
double round_cycles(const Machine *m, double rounds)
{
    return rounds * ((double)m->load_wait + m->loop_round);
}

/* A tile's sums are stored all at once, and what is read beside them comes at once.  A core goes on
 * with the next tile meanwhile, as far as it looks ahead.  1x1 from 64 to 256 channels at 56x56
 * with a residual takes 1 in tiles of 14x2, 0.92 of 10x2, 0.87 of 7x2, 0.8 of 4x2; 16 to 16
 * channels at 112x112 1.03 to 1.29 of 28x1, 1 of 13x1, without one 1 of 28x1, 1.07 of 13x1: to call
 * a tile and to leave its loop takes a moment, too (Cascade Lake).  On a Zen 5 1, 0.96, 0.94, 1.05,
 * and 0.93 of 3x4; 1 of 28x1, 0.92 of 16x1, 0.9 of 13x1, 0.85 of 8x1. */
double tile_end_cycles(const Machine *m, double compute, double sums, double move)
{
    double busy = sums * (m->sum_store + move);
    double hidden = compute < m->tile_ahead ? compute : m->tile_ahead;

    return m->call + m->loop_end + (busy > hidden ? busy - hidden : 0);
}

/* ---- matrix products ------------------------------------------------------------------------------ */

/* Loads cost a little even where multiply-adds hide them, and vectors of weights, which come from
 * L2, more than the numbers of x. */
static double product_step_cycles(const Machine *m, int64_t p, int64_t nv)
{
    double fma = (double)(p * nv) / 2, load = (double)(p + nv) / m->loads;

    return larger(larger(fma, load), m->latency) + 0.025 * (double)(p + 4 * nv);
}

/* Each panel reads all of x once more, from L2 or beyond. */
double panel_step_cycles(const Machine *m, int64_t rows, int64_t most, int64_t nv)
{
    if (rows < 1)
        return 0;
    int64_t tiles = ceil_div(rows, most), q = rows / tiles, r = rows % tiles;

    return (double)r * product_step_cycles(m, q + 1, nv) +
           (double)(tiles - r) * product_step_cycles(m, q, nv) + 0.02 * (double)rows;
}

/* ---- small integers ------------------------------------------------------------------------------- */

double dot_step_cycles(const Machine *m, uint32_t ops, int64_t pixels, int64_t most, int64_t nv)
{
    double tiles = (double)ceil_div(pixels, most), p = (double)pixels / tiles;
    double dots = p * (double)nv * (double)ops / (ops == 2 ? 3 : 2); /* adds have more units */
    double load = (p + (double)nv) * (ops > 2 ? 3 : 1) / m->loads;
    double c = ops > 2 ? dots + load : larger(dots, load) + (ops == 2 ? 0.1 * load : 0);

    return tiles * (larger(c, m->latency) + 0.02 * (double)nv);
}

/* ---- recurrent networks ---------------------------------------------------------------------------- */

/* Weights come from L2, beside the products. */
double state_step_cycles(const Machine *m, int64_t vectors, int64_t rows, int64_t bytes)
{
    double fma = (double)(vectors * rows * bytes) / (double)m->fma_bytes,
           loads = (double)(vectors + rows) / m->loads,
           l2 = weights_cycles(m, (double)(vectors * bytes));

    return larger(overlap(larger(fma, loads), l2, m->l2_shows), m->latency);
}
