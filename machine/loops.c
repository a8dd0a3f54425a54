/* Cycles of loops without products: sums of rows and columns, windows, cells that are moved.
 *
 * What they add up waits for itself.  A core hides that behind whatever else it finds among the
 * next instructions: other sums of the same loop, or the next row's. */
#include "machine/machine.h"

#include <math.h>

/* Of one operation and what feeds it. */
#define FEEDING 1.5
/* Counting and jumping, beside what a round does. */
#define ROUND 0.5

static double larger(double a, double b)
{
    return a > b ? a : b;
}

/* A chain of that many cycles, of work of so many instructions that repeats: as many go on at a
 * time as are under way. */
static double hidden(const Machine *m, double chain, double instructions)
{
    return chain / larger((double)m->window / instructions, 1);
}

double hidden_cycles(const Machine *m, double chain, double operations)
{
    return hidden(m, chain, FEEDING * operations);
}

/* ---- sums ----------------------------------------------------------------------------------------- */

/* Vectors add up to one, that to four numbers, these to one: four more operations that wait.  64
 * rows of 512 numbers took 1.46, 1.0, 0.92, 1.0 with 1, 2, 4, 8 vectors of 64 bytes, of 128 all the
 * same (Cascade Lake). */
double row_sum_cycles(const Machine *m, double vectors, int64_t chains)
{
    enum { FOLDING = 4 };
    double tail = FOLDING * 2 + (double)chains, rounds = vectors / (double)chains, depth = FOLDING;

    for (int64_t n = chains; n > 1; n /= 2)
        depth++;
    return larger(vectors / m->loads,
                  hidden(m, (rounds + depth) * m->latency, FEEDING * vectors + tail)) +
           tail / 2;
}

/* A round adds to all of them.  256 rows of 256 numbers took 2.4, 1.4, 1.0 and 1.0 with 1, 2, 4 and
 * 8 vectors. */
double column_sum_cycles(const Machine *m, double vectors, double steps, int64_t chains)
{
    double n = (double)chains, sums = steps * n / m->loads;

    return vectors / n *
           (larger(sums, hidden(m, steps * m->latency, FEEDING * steps * n)) + ROUND * (steps + 1));
}

/* ---- plain rows ------------------------------------------------------------------------------------ */

/* A vector mostly crosses two lines, and cells that lie apart are shuffled together from several;
 * 14 lanes are loaded as 8, 4 and 2, and multiplied as 16: a cell of 1x1 from 120 to 40 takes 1.13
 * times as long on 28x28 as on 32x32.  Numbers are spread by a load each.  Loads hide behind
 * products, or products behind loads: 1x1 from 16 to 16 that L2 holds takes per multiply-add of 64
 * bytes 1.04 to 1.1 in tiles of 4x1, 8x1, 16x1, 4x2, 8x2 and 4x4; of 32 bytes 0.58 of 4x2, 0.59 of
 * 4x3, 0.63 of 12x1, 0.65 of 8x1, 0.78 of 4x1 (Zen 4).  To multiply-adds, groups of 1 to 10, 3x3
 * and 4x4 on a Zen 5: 1.7 for 5 outputs of a row, 1.2 of two rows, 1.1 for 10 of two, 1.4 for 3 of
 * seven; with a stride of 2 2.5, 2.0, and 7.3 for one of seven; of 3 and 4 4.3 for 5 of one. */
double planar_tile_cycles(const Machine *m, int64_t lanes, int64_t outputs, int64_t rows,
                          int64_t steps, int64_t stride)
{
    enum { LOOPS = 4 };
    double  each = stride == 1 ? 2.5 : stride == 2 ? 6 : 12, sums = (double)(outputs * rows);
    double  pieces = 0;
    int64_t width = 1;

    for (int64_t n = lanes; n > 0; n &= n - 1)
        pieces++;
    while (width < lanes)
        width *= 2;
    double loads = ((double)outputs + each * pieces * (double)rows) / m->loads;

    return (double)steps * larger(sums / fma_rate(m, width), loads) + sums * pieces +
           rounds_cycles(LOOPS);
}

/* Rows are copied into the middle of longer ones, vectors that cross lines, and a few cells at
 * their ends: 3x3 on 112x112, each channel for itself, took 6.5 cycles a vector of 64 bytes longer
 * with padding, 3.5 of 32 bytes, by 2 4.9 and 3.4, groups of 5 on 56x56 5.6 (Zen 4). */
double padded_copy_cycles(double bytes)
{
    return 0.1 * bytes;
}

/* ---- windows -------------------------------------------------------------------------------------- */

/* The larger of two numbers, and which of them if one is NaN: vmaxps, vcmpunordps, and vblendvps,
 * which is two.  The 2 cycles a cell of tiles below. */
#define MAXIMUM 4.0

/* What is not written out is a loop: its sums wait for themselves, since a core that guesses when
 * it ends finds little behind it.  3x3 on 28x28 took 6.5 cycles a cell as loops, 2.5 written out, 2
 * in tiles of 2 and 4 pixels (Cascade Lake). */
double window_cycles(const Machine *m, int64_t lanes, const Window *w, int64_t pixels,
                     Written written)
{
    double  cells = (double)(w->kh * w->kw), p = (double)pixels;
    double  op = w->maximum ? MAXIMUM : 1, units = p * cells * op / fma_rate(m, lanes);
    int64_t columns = pixels * w->kw, line = (pixels - 1) * w->stride + w->kw;
    double  loads = p * cells, chain = cells * m->latency;
    double  rounds = written == WRITTEN_ALL ? 1 : (double)(written ? w->kh : w->kh * w->kw);

    if (written)
        loads = (double)(w->kh * (line < columns ? line : columns));
    if (written == WRITTEN_ALL)
        chain = hidden(m, chain, p * cells * (op + 0.5));
    double over = p * (op + 1) - (double)m->regs; /* sums that do not stay in registers */
    units += over > 0 ? over * cells / 2 : 0;
    return larger(larger(units, loads / m->loads), chain) + rounds;
}

/* Beginning an image, and a row of the result; what all of it takes at best. */
#define BEGIN_IMAGE 10
#define BEGIN_ROW 2
#define AT_BEST 0.75

/* A vector of results whose cells lie `stride` apart is put together of as many.  Images of 3 to 95
 * cells a side, 2x2 by 2 to 5x5 by 2, took 1 to 1.7 of this, those of 3 and 5 up to 2 (Zen 5). */
double plain_windows_cycles(const Machine *m, int64_t lanes, const PlainWindows *p, bool rows_first)
{
    double in = ceil(p->in_x / (double)lanes), out = ceil(p->x / (double)lanes);
    double kh = (double)p->window.kh, kw = (double)p->window.kw;
    double near = (double)p->window.stride;
    double copy = p->copied / p->y * (1 + 2 * in);
    double row = rows_first ? in * (kh / m->loads + 1.5) + out * (kw * near + 1)
                            : out * (kh * kw * near + 1);

    return AT_BEST * p->images * (BEGIN_IMAGE + p->y * (BEGIN_ROW + copy + row));
}

/* ---- interpolation -------------------------------------------------------------------------------- */

/* Of one of the two or four cells of each dimension: beginning a row, and a vector of it; a vector
 * of a block.  Cells that make no vector are computed one by one.  Linear and cubic, from 4x4 to
 * 14x14 to two and three times the size, took 0.7 to 1.5 of this (Zen 5). */
#define INTERPOLATE_ROW 5
#define INTERPOLATE_VECTOR 1.3
#define INTERPOLATE_BLOCK 2.2
#define INTERPOLATE_CELL 8

double interpolate_rows_cycles(const Machine *m, int64_t lanes, double taps, double rows, double x)
{
    if (x < (double)limit_least_rest(m))
        return rows * x * INTERPOLATE_CELL;
    return rows * taps * (INTERPOLATE_ROW + INTERPOLATE_VECTOR * ceil(x / (double)lanes));
}

double interpolate_blocks_cycles(double taps, double vectors)
{
    return vectors * taps * INTERPOLATE_BLOCK;
}

/* ---- cells that are moved, or computed each for itself ------------------------------------------------ */

double rounds_cycles(double rounds)
{
    return ROUND * rounds;
}

/* A vector's formula: each operation, and what waits of those beyond which a core does not see.  As
 * many formulas as go by turns (backends/llvm/codegen_weave.c) wait together.  tanh took 19, 18 and
 * 17 cycles one by one, in twos and in fours, tanh of tanh 47, 44 and 38, of a sigmoid too 74, 68
 * and 54 (AVX-512, Zen 4). */
#define FORMULA 1.0
#define FORMULA_WAITS 0.9
#define FORMULA_AHEAD (1 / 48.0) /* of the window */

double formula_cycles(const Machine *m, int64_t operations, int64_t formulas)
{
    double n = (double)operations, seen = FORMULA_AHEAD * (double)(m->window * formulas);

    return FORMULA * n + FORMULA_WAITS * (n > seen ? n - seen : 0);
}

/* Code that is run for the first time is brought and decoded. */
double first_run_cycles(int64_t operations)
{
    return (double)operations;
}

/* The remainder by which an index of any value becomes a position: 102 of rows of 20 took 4.3
 * cycles a cell, with positions that were there 1.4 (Zen 4). */
#define POSITION 3.0

double position_cycles(double positions)
{
    return POSITION * positions;
}

/* A number is loaded, then put in its lane. */
double gather_cycles(const Machine *m, double cells)
{
    return cells * larger(1, 1 / m->loads);
}

/* Rows are loaded, turned in as many steps as halve a vector, and stored. */
double turn_cycles(const Machine *m, int64_t lanes, double cells)
{
    double steps = 1 / m->loads + 1; /* loads, stores */

    for (int64_t n = lanes; n > 1; n /= 2)
        steps++;
    return steps * cells / (double)lanes;
}

/* The address of a lane whose cells do not follow those of the one before: quotient and remainder.
 */
#define LANE 3.0

double lane_cycles(double lanes)
{
    return LANE * lanes;
}

/* A load and a store, and a shuffle for each row that is there by turns. */
double weave_cycles(const Machine *m, int64_t lanes, double cells, int64_t rows)
{
    return (1 / m->loads + 1 + (double)rows) * cells / (double)lanes;
}

/* ---- stages --------------------------------------------------------------------------------------- */

/* Cycles of a load across two stores of which none has left the store queue, on the average. */
#define ACROSS 2.0

/* The more stores lie between, the fewer loads wait: 3x3 on 13x13 with AVX2 takes 0.2 in one group
 * of 11 rows of two vectors, 5x5 by 2 0.5 (Zen 5).
 * Beside what else goes through L1 the more of it is gone the larger a group is: 5x5 on 64x64 takes
 * 1.15, 1.0 and 1.15 with groups of 2, 8 and 64 rows, 3x3 on 512x512 1.0, 1.03 and 1.2 of 1, 2 and
 * 64 (Cascade Lake). */
double handed_cycles(const Machine *m, double vectors, double group, double bytes)
{
    double apart = group / (double)limit_stores_apart(m);
    double wait = apart < 1 ? ACROSS * (1 - apart) : 0;
    double gone = bytes < (double)m->l1 ? bytes / (double)m->l1 : 1;
    double back = 2 * (double)m->vector_bytes / level_rate(m, LEVEL_L2);

    return vectors * (1 / m->loads + wait + gone * back);
}
