/* Which loops the threads divide.
 *
 * Of nested loops the outermost one, where its rounds are parts even enough for all of them;
 *
 *     for %i < 64 { for %k < 10 {             parallel %i
 *     for %i < 3 { for %k < 10 {              fuse %i, %k -> %u; parallel %u
 *
 * else as many of them, as one loop, as that takes.  A thread then has some rounds of the outer one
 * and a part of the next. */
#include "schedules/cpu/cpu.h"

#include <string.h>

/* The loops from `first` on, so many of them. */
typedef struct {
    uint32_t first, n;
} Range;

/* Outer loops of one round are left out.  The fewest loops that are even parts; if none are, one
 * whose rounds a run decides, else those that are best. */
static Range best_range(const Sched *s, const char *const *loops, uint32_t n)
{
    Machine m = machine_of(s->target);
    int64_t rounds = 1;
    double  best = 0;
    Range   r = {0};

    for (uint32_t i = 0, first = 0; i < n; i++) {
        int64_t own = loop_extent(s, loops[i]);

        if (!own)
            return (Range){i, 1};
        rounds *= own;
        if (rounds < 2) {
            first = i + 1;
            continue;
        }
        if (thread_balance(rounds) > best)
            best = thread_balance(rounds), r = (Range){first, i + 1 - first};
        if (even_parts(&m, rounds))
            break;
    }
    return r;
}

bool divide_loops(Sched *s, const char *name, const char *const *loops, uint32_t n)
{
    Range  r = best_range(s, loops, n);
    StrBuf list = strbuf(s->c->arena);

    for (uint32_t i = 0; i < r.n; i++)
        str_printf(&list, "%s%%%s", i ? ", " : "", loops[r.first + i]);
    if (r.n > 1 && try_step(s, "fuse %s -> %%%s", list.at, name))
        return try_step(s, "parallel %%%s", name);
    const char *best = NULL;
    for (uint32_t i = 0; i < r.n; i++)
        if (!best || thread_balance(loop_extent(s, loops[r.first + i])) >
                         thread_balance(loop_extent(s, best)))
            best = loops[r.first + i];
    return best && try_step(s, "parallel %%%s", best);
}

int64_t block_rows(const Sched *s, int64_t y)
{
    Machine m = machine_of(s->target);

    return even_parts(&m, y) ? y : y / row_blocks(s, y);
}

/* A channel's rows follow one another in memory: where each thread has some rows of all channels,
 * one that is alone walks whole images. */
bool divide_image(Sched *s, const char *channels, const char *rows)
{
    Machine m = machine_of(s->target);
    int64_t blocks = loop_extent(s, "yb"), parts = blocks * loop_extent(s, channels);

    if (blocks == 1 && even_parts(&m, loop_extent(s, rows)) && try_step(s, "parallel %%%s", rows))
        return true;
    try_step(s, "fuse %%yb, %%%s -> %%u", channels);
    if (thread_balance(parts) < limit_balance_rows(&m))
        try_step(s, "fuse %%u, %%%s -> %%u", rows);
    return try_step(s, "parallel %%u");
}
