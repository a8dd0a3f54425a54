/* What a piece of work takes: computing, waiting for data, waiting for other threads.
 *
 * Computing and waiting for data go on at the same time, though not wholly (`overlap`), so a Time
 * keeps them apart until work that runs side by side has been added up; `time_cycles` then says how
 * long all of it takes: rules choose by it, and profile --predict promises it.  What comes one
 * after the other is a sum of such cycles. */
#include "machine/machine.h"

static double larger(double a, double b)
{
    return a > b ? a : b;
}

Time time_compute(double cycles)
{
    return (Time){.compute = cycles};
}

Time tile_time(const Machine *m, int64_t lanes, int64_t pixels, int64_t nv)
{
    return time_compute(fed_step_cycles(m, lanes, pixels, nv));
}

Time level_time(const Machine *m, Level level, double bytes)
{
    Time t = {0};

    t.traffic[level] = bytes / level_rate(m, level);
    return t;
}

Time moved_time(const Machine *m, double read, double stored, double between)
{
    double share[LEVELS];
    Time   t = {0};

    cache_shares(m, between, share);
    for (int i = 0; i < LEVELS; i++)
        t.traffic[i] = share[i] * (read / level_rate(m, i) + stored / level_store_rate(m, i));
    return t;
}

/* Those of a network that has few stay in a cache from one run to the next; from memory they come
 * at a rate of their own. */
static Time weights_from(const Machine *m, double bytes, double memory_rate)
{
    double share[LEVELS] = {[LEVEL_MEMORY] = 1};
    Time   t = {0};

    if (m->weights > 0)
        cache_shares(m, larger(m->weights, bytes), share);
    for (int i = 0; i < LEVELS; i++)
        t.traffic[i] = share[i] * bytes / (i == LEVEL_MEMORY ? memory_rate : level_rate(m, i));
    return t;
}

Time weights_time(const Machine *m, double bytes)
{
    return weights_from(m, bytes, m->memory_rate);
}

Time fetched_time(const Machine *m, double bytes)
{
    return time_ahead(weights_from(m, bytes, m->ahead_rate));
}

Time time_ahead(Time t)
{
    t.ahead = time_traffic(t);
    for (int i = 0; i < LEVELS; i++)
        t.traffic[i] = 0;
    return t;
}

Time time_take_far(Time *t)
{
    Time far = {0};

    for (int i = LEVEL_L2 + 1; i < LEVELS; i++)
        far.traffic[i] = t->traffic[i], t->traffic[i] = 0;
    return far;
}

Time time_times(double n, Time t)
{
    t.compute *= n;
    t.ahead *= n;
    t.sync *= n;
    for (int i = 0; i < LEVELS; i++)
        t.traffic[i] *= n;
    return t;
}

Time time_beside(Time a, Time b)
{
    a.compute += b.compute;
    a.ahead += b.ahead;
    a.sync += b.sync;
    for (int i = 0; i < LEVELS; i++)
        a.traffic[i] += b.traffic[i];
    return a;
}

double time_traffic(Time t)
{
    double sum = t.ahead;

    for (int i = 0; i < LEVELS; i++)
        sum += t.traffic[i];
    return sum;
}

double overlap(double a, double b, double shows)
{
    return a > b ? a + shows * b : b + shows * a;
}

/* Data that the code asks for early enough come as from L2, from wherever they are.  What lies
 * farther away takes at least as long as alone (docs/benchmarks/machine.md). */
double time_cycles(const Machine *m, Time t)
{
    double near = overlap(t.compute, t.traffic[LEVEL_L2] + t.ahead, m->l2_shows),
           l3 = t.traffic[LEVEL_L3], memory = t.traffic[LEVEL_MEMORY],
           far[] = {m->l3_shows * l3, m->memory_shows * memory};
    double beside = near + far[0] + far[1], least = 0.3 * near;

    beside = larger(beside, least + l3 + far[1]);
    return larger(beside, least + far[0] + memory) + t.sync;
}

/* What comes from the memory shows as a whole: 1x1 from 16 to 16 on 304x304 takes 2.1 cycles per
 * multiply-add in tiles of all outputs, 2.5 in tiles of half of them, 3.7 of a quarter, 0.1 to 0.15
 * for each byte that they read again.  A channel's rows follow one another, one at a time is a
 * stream that hardware foresees; several at a time are streams that end with their rows, and what
 * waits is 2.4 to 2.8 of that, from L3 2.2 (`apart`; 16, 32 and 96 channels on 112x112 to 320x320;
 * Zen 4). */
double rows_far_cycles(const Machine *m, Time t, bool broken)
{
    double far = m->l3_shows * t.traffic[LEVEL_L3] + t.traffic[LEVEL_MEMORY];

    return broken ? m->apart * far : far;
}

double divided(double cycles, int64_t parts)
{
    return cycles / thread_balance(parts);
}

double divided_panels(const Machine *m, double cycles, int64_t parts)
{
    return thread_balance(parts) < limit_balance_panels(m) ? divided(cycles, parts) : cycles;
}
