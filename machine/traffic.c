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

/* Found by whole networks; between half and all of L2 it matters little (KEPT of program.c). */
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
