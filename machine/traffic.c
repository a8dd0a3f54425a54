/* Bytes a cycle between the core and where data lie. */
#include "machine/machine.h"

static const struct {
    double l2_share, l2, l3_share, l3, memory;
} rates[TRAFFIC_COUNT] = {
#define TRAFFIC(id, l2_share, l2_rate, l3_share, l3_rate, memory_rate) \
    {l2_share, l2_rate, l3_share, l3_rate, memory_rate},
#include "machine/traffic.def"
#undef TRAFFIC
};

double traffic_rate(const Machine *m, Traffic kind, double bytes, double others)
{
    if (bytes + others <= (double)m->l2 * rates[kind].l2_share)
        return rates[kind].l2;
    return bytes <= (double)m->l3 * rates[kind].l3_share ? rates[kind].l3 : rates[kind].memory;
}

double memory_rate(Traffic kind)
{
    return rates[kind].memory;
}

double overlap(double a, double b)
{
    return a > b ? a + 0.3 * b : b + 0.3 * a;
}
