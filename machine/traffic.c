/* Bytes a cycle between the core and where data lie. */
#include "machine/machine.h"

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
