/* Cycles of whole products on one core, for passes that choose among algorithms: multiply-adds or
 * other work in vectors, beside the weights on their way from memory. */
#include "machine/machine.h"

/* Two vectors of products a cycle, and what a 3x3 convolution's tiles reach of that. */
double conv_cycles(const Machine *m, double macs, double weights, int64_t lanes)
{
    return overlap(DIRECT_3X3 * macs / (double)lanes / 2,
                   weights * 4 / memory_rate(m, TRAFFIC_WINOGRAD));
}

double conv_words_cycles(const Machine *m, double macs, double weights, int64_t lanes)
{
    return overlap(DIRECT_3X3 * macs / (double)lanes / 4,
                   weights / memory_rate(m, TRAFFIC_WINOGRAD));
}

double conv_dot4_cycles(const Machine *m, double macs, double weights, int64_t lanes, uint32_t ops)
{
    enum { VECTORS = 2 };
    int64_t most = tile_pixels_most(m, lanes, VECTORS), pixels = most < 1 ? 1 : most;
    double  step = dot_step_cycles(m, ops, pixels, pixels, VECTORS) / (double)(pixels * VECTORS);

    return overlap(macs / 4 / (double)lanes * step, weights / memory_rate(m, TRAFFIC_WINOGRAD));
}

double conv_bytes_cycles(const Machine *m, double macs, double weights, int64_t lanes)
{
    enum { INSTRUCTIONS = 3 }; /* a product is two on many x86, then a sum */

    return overlap(macs / (double)lanes * INSTRUCTIONS / 2,
                   weights / memory_rate(m, TRAFFIC_WINOGRAD));
}

double dense_cycles(const Machine *m, double macs, double weights, int64_t lanes)
{
    return overlap(macs / (double)lanes / 2 * DENSE, weights * 4 / m->memory_rate);
}

double panel_copy_cycles(const Machine *m, double cells)
{
    return 2 * cells * 4 / (m->l2_rate / 2);
}

double strassen_cycles(const Machine *m, double rows, double n, double k, int64_t lanes)
{
    double near = m->l2_rate / 2;
    double sums = rows * k * 4 * (1 + 7.0 / 4) / near + rows * n * 4 * (3 + 7.0 / 4) / near;

    return overlap(rows * n * k / (double)lanes / 2 * DENSE * 7 / 8 + sums,
                   n * k * 7 / m->memory_rate);
}
