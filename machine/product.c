/* Cycles of whole products on one core, for passes that choose among algorithms: multiply-adds or
 * other work in vectors, beside the weights on their way from memory. */
#include "machine/machine.h"

/* The weights are asked for ahead (`prefetch`). */
static double beside(double compute, Time weights)
{
    return time_cycles(time_beside(time_compute(compute), time_ahead(weights)));
}

/* Two vectors of products a cycle, and what a 3x3 convolution's tiles reach of that. */
double conv_cycles(const Machine *m, double macs, double weights, int64_t lanes)
{
    return beside(DIRECT_3X3 * macs / (double)lanes / 2,
                  memory_time(m, TRAFFIC_WINOGRAD, weights * 4));
}

double conv_words_cycles(const Machine *m, double macs, double weights, int64_t lanes)
{
    return beside(DIRECT_3X3 * macs / (double)lanes / 4, memory_time(m, TRAFFIC_WINOGRAD, weights));
}

double conv_dot4_cycles(const Machine *m, double macs, double weights, int64_t lanes, uint32_t ops)
{
    enum { VECTORS = 2 };
    int64_t most = tile_pixels_most(m, lanes, VECTORS), pixels = most < 1 ? 1 : most;
    double  step = dot_step_cycles(m, ops, pixels, pixels, VECTORS) / (double)(pixels * VECTORS);

    return beside(macs / 4 / (double)lanes * step, memory_time(m, TRAFFIC_WINOGRAD, weights));
}

double conv_bytes_cycles(const Machine *m, double macs, double weights, int64_t lanes)
{
    enum { INSTRUCTIONS = 3 }; /* a product is two on many x86, then a sum */

    return beside(macs / (double)lanes * INSTRUCTIONS / 2,
                  memory_time(m, TRAFFIC_WINOGRAD, weights));
}

double dense_cycles(const Machine *m, double macs, double weights, int64_t lanes)
{
    return beside(macs / (double)lanes / 2 * DENSE, level_time(m, LEVEL_MEMORY, weights * 4));
}

double panel_copy_cycles(const Machine *m, double cells)
{
    return 2 * cells * 4 / (m->l2_rate / 2);
}

double strassen_cycles(const Machine *m, double rows, double n, double k, int64_t lanes)
{
    double near = m->l2_rate / 2;
    double sums = rows * k * 4 * (1 + 7.0 / 4) / near + rows * n * 4 * (3 + 7.0 / 4) / near;

    return beside(rows * n * k / (double)lanes / 2 * DENSE * 7 / 8 + sums,
                  level_time(m, LEVEL_MEMORY, n * k * 7));
}
