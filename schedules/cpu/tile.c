/* The nest of a register tile, which all rules of products share.
 *
 *   for %t, tiles of a line {                  pixels of a row, rows of a matrix
 *     for the reduction of a tile {
 *       for %p, pixels of a tile { for vectors, lanes { sums in registers += .. * .. } } }
 *     what follows, where the sums are stored }
 *
 * A rule puts the loops outside of it in order, then describes the tile: its sums first
 * (`tile_sums`), and once nothing is cut any more what is written out (`tile_marks`). */
#include "schedules/cpu/cpu.h"

#include <math.h>

void sums_in_registers(Sched *s, const char *block, const char *at)
{
    Machine m = machine_of(s->target);
    int64_t ahead = tile_loads_ahead(&m, cpu_lanes(s));

    step(s, "cache_write %s reg at %%%s", block, at);
    if (ahead)
        step(s, "load_ahead %%%s.reg by %lld", block, (long long)ahead);
}

/* The reduction of a tile with its last loop cut in two. */
static const char *cut_round(Sched *s, const TileNest *n)
{
    if (n->steps <= 1)
        return n->sums;
    step(s, "split %%%s by %lld -> %%%s, %%%s.s", n->round, (long long)n->steps, n->round,
         n->round);
    return intern_printf(s->c->strings, "%s, %%%s.s", n->sums, n->round);
}

void tile_sums(Sched *s, const TileNest *n)
{
    const char *line = n->line, *sums = cut_round(s, n);

    if (n->joined) {
        step(s, "fuse %%%s, %%%s -> %%px", n->joined, line);
        line = "px";
    }
    step(s, "split %%%s by %lld tail=%s -> %%%s, %%%s", line, (long long)n->pixels,
         n->each ? "each" : "even", n->tiles, n->pixel);
    if (n->joined)
        step(s, "unroll %%%s", n->tiles); /* each has offsets of its own */
    if (n->four)
        step(s, "reorder %s, %%%s, %s, %%%s", sums, n->pixel, n->vectors, n->four);
    else
        step(s, "reorder %s, %%%s, %s", sums, n->pixel, n->vectors);
    sums_in_registers(s, n->block, n->tiles);
    if (n->out)
        step(s, "reverse_compute_at %s %%%s", n->out, n->tiles);
    if (n->out && n->chunks)
        try_step(s, "inplace %%%s -> %%%s", n->block, n->out);
}

void tile_marks(Sched *s, const TileNest *n)
{
    step(s, "vectorize %%%s", n->lane);
    if (n->steps > 1)
        step(s, "unroll %s, %%%s.s", n->unroll, n->round);
    else
        step(s, "unroll %s", n->unroll);
    if (n->four)
        step(s, "tensorize %%%s with @%s", n->four, n->instruction);
}

/* ---- candidates ---------------------------------------------------------------------------------- */

int64_t lower_tile(int64_t line, int64_t pixels)
{
    int64_t below = (pixels < line ? pixels : line) - 1;

    return below > 0 ? ceil_div(line, ceil_div(line, below)) : 0;
}

/* Cycles that a tile waits at its end, per multiply-add of a vector.  Where weights for two vectors
 * do not stay in L1, lower tiles would read them from L2 more often, which costs as much: 14x14
 * with 256 channels took 1.0 to 1.1 of the time in tiles of half the height. */
static double end_cycles(const Machine *m, int64_t lanes, int64_t line, RegTile t,
                         const TileEnd *end)
{
    double sums = (double)(line * t.nv) / (double)ceil_div(line, t.pixels);
    double compute = sums * end->steps / fma_rate(m, lanes);

    if (end->steps * (double)(lanes * 4) * 2 >= (double)room_two_vectors(m))
        return 0;
    return tile_end_cycles(m, compute, sums, end->move) / (sums * end->steps);
}

/* ... of plain rows, with the columns of the kernel as they are best. */
static double plain_cycles(const Machine *m, const PlainWork *w, RegTile t)
{
    int64_t madds = w->line * t.nv * w->rows * w->row.kw;

    return plain_line_cycles(m, w, t, plain_written(m, w, t)) / (double)madds;
}

static double madd_cycles(const Machine *m, const TileWork *w, RegTile t)
{
    if (w->plain)
        return plain_cycles(m, w->plain, t);
    return tile_madd_cycles(m, w->lanes, w->vectors, w->line, w->parts, t) +
           (w->end ? end_cycles(m, w->lanes, w->line, t, w->end) : 0);
}

void tile_candidates(Candidates *k, const Machine *m, const TileWork *w)
{
    for (int64_t nv = 1; nv <= limit_tile_most_vectors(m) && nv <= w->vectors; nv++) {
        int64_t most = tile_pixels_most(m, w->lanes, nv);

        for (int64_t p = most; p > 0 && w->vectors % nv == 0; p = lower_tile(w->line, p))
            if (p == most || p * nv >= limit_tile_least_sums(m))
                candidate(k, p, nv, w->madds * madd_cycles(m, w, (RegTile){p, nv}));
    }
    if (!k->of.n)
        candidate(k, 1, 1, NAN);
}

RegTile pick_reg_tile(Sched *s, const char *name, const Candidates *k)
{
    const Candidate *t = pick_tile(s, name, k);

    return (RegTile){t->v[0], t->v[1]};
}

void divisors(Candidates *k, int64_t n)
{
    for (int64_t d = 1; d <= n; d = d < n ? divisor_from(n, d + 1) : n + 1)
        candidate(k, d, 0, NAN);
}
