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

double traffic_rate(const Machine *m, Traffic kind, double bytes, double others)
{
    if (bytes + others <= (double)m->l2 * rates[kind].l2_share)
        return m->l2_rate * rates[kind].l2;
    return bytes <= (double)m->l3 * rates[kind].l3_share ? m->l3_rate * rates[kind].l3
                                                         : memory_rate(m, kind);
}

double overlap(double a, double b)
{
    return a > b ? a + 0.3 * b : b + 0.3 * a;
}
