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

void tile_sums(Sched *s, const TileNest *n)
{
    const char *line = n->line;

    if (n->joined) {
        step(s, "fuse %%%s, %%%s -> %%px", n->joined, line);
        line = "px";
    }
    step(s, "split %%%s by %lld tail=even -> %%%s, %%%s", line, (long long)n->pixels, n->tiles,
         n->pixel);
    if (n->joined)
        step(s, "unroll %%%s", n->tiles); /* each has offsets of its own */
    if (n->four)
        step(s, "reorder %s, %%%s, %s, %%%s", n->sums, n->pixel, n->vectors, n->four);
    else
        step(s, "reorder %s, %%%s, %s", n->sums, n->pixel, n->vectors);
    step(s, "cache_write %s reg at %%%s", n->block, n->tiles);
    if (n->out)
        step(s, "reverse_compute_at %s %%%s", n->out, n->tiles);
    if (n->out && n->chunks)
        try_step(s, "inplace %%%s -> %%%s", n->block, n->out);
}

void tile_marks(Sched *s, const TileNest *n)
{
    step(s, "vectorize %%%s", n->lane);
    step(s, "unroll %s", n->unroll);
    if (n->four)
        step(s, "tensorize %%%s with @dot4", n->four);
}
