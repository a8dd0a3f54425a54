/* Bytes a cycle between the core and where data lie. */
#include "machine/machine.h"

static const struct {
    double l2, l3, memory;
} rates[TRAFFIC_COUNT] = {
#define TRAFFIC(id, l2, l3, memory) {l2, l3, memory},
#include "machine/traffic.def"
#undef TRAFFIC
};

double memory_rate(const Machine *m, Traffic kind)
{
    return m->memory_rate * rates[kind].memory;
}

double level_rate(const Machine *m, Level level)
{
    return level == LEVEL_L2 ? m->l2_rate : level == LEVEL_L3 ? m->l3_rate : m->memory_rate;
}

double level_store_rate(const Machine *m, Level level)
{
    return level == LEVEL_L2 ? m->l2_store : level == LEVEL_L3 ? m->l3_store : m->memory_store;
}

/* A cache of C bytes keeps all of what is touched again after (KEPT - 1) * C bytes, nothing of what
 * comes back after KEPT * C, between them a share: reading 5/8 of L2 again and again takes as long
 * as reading half of it, 7/8 1.5 times as long, and only twice L2 as long as L3.  What is stored
 * and read by turns, with a stream of half its size passing, is kept likewise (Cascade Lake). */
#define KEPT 1.68

static double kept(double cache, double between)
{
    double share = KEPT - between / cache;

    return share < 0 ? 0 : share > 1 ? 1 : share;
}

double cache_shares(const Machine *m, double between, double share[LEVELS])
{
    double l1 = kept((double)m->l1, between), l2 = kept((double)m->l2, between),
           l3 = kept((double)m->l3 * L3_SHARE, between);

    l2 = l2 > l1 ? l2 : l1;
    share[LEVEL_L2] = l2 - l1;
    share[LEVEL_L3] = (1 - l2) * l3;
    share[LEVEL_MEMORY] = (1 - l2) * (1 - l3);
    return l1;
}

/* Found by whole networks; between half and all of L2 it matters little. */
#define L2_SHARE 0.8

Level traffic_level(const Machine *m, double bytes, double others)
{
    if (bytes + others <= (double)m->l2 * L2_SHARE)
        return LEVEL_L2;
    return bytes <= (double)m->l3 * L3_SHARE ? LEVEL_L3 : LEVEL_MEMORY;
}

double traffic_rate(const Machine *m, Traffic kind, double bytes, double others)
{
    Level  level = traffic_level(m, bytes, others);
    double share = level == LEVEL_L2   ? rates[kind].l2
                   : level == LEVEL_L3 ? rates[kind].l3
                                       : rates[kind].memory;

    return level_rate(m, level) * share;
}
