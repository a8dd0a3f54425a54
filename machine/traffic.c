/* Bytes a cycle between the core and where data lie. */
#include "machine/machine.h"

static const struct {
    double l2_share, l2, l3_share, l3, memory;
} rates[TRAFFIC_COUNT] = {
#define TRAFFIC(id, l2_share, l2, l3_share, l3, memory) {l2_share, l2, l3_share, l3, memory},
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

Level traffic_level(const Machine *m, Traffic kind, double bytes, double others)
{
    if (bytes + others <= (double)m->l2 * rates[kind].l2_share)
        return LEVEL_L2;
    return bytes <= (double)m->l3 * rates[kind].l3_share ? LEVEL_L3 : LEVEL_MEMORY;
}

double traffic_rate(const Machine *m, Traffic kind, double bytes, double others)
{
    Level  level = traffic_level(m, kind, bytes, others);
    double share = level == LEVEL_L2   ? rates[kind].l2
                   : level == LEVEL_L3 ? rates[kind].l3
                                       : rates[kind].memory;

    return level_rate(m, level) * share;
}
