/* One product on one thread and on two, in turns, so that both meet the same machine.
 *
 *     threads LIBRARY NAME BLOCKS GAP      GAP: microseconds of sleep before each run, 0: none
 *
 * prints a line: medians of both in microseconds, the median of the blocks' ratios, and what nine
 * of ten ratios are below.  A block is 3 ms of runs, or 10 with sleep between; the first three of a
 * block are not counted. */
#define _GNU_SOURCE
#include "tvmcc/runtime.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { MOST = 64, MOST_RUNS = 1000 };

static double now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec * 1e-3;
}

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return x < y ? -1 : x > y;
}

static void *memory(size_t bytes)
{
    void *p = aligned_alloc(64, (bytes + 127) / 64 * 64);

    if (!p)
        exit(1);
    return memset(p, 0, bytes);
}

static double block(const tvmcc_model_info *m, void *const *in, void *const *out,
                    const tvmcc_params *p, int n, long gap)
{
    static double took[MOST_RUNS];

    for (int i = -3; i < n; i++) {
        double start;

        if (gap)
            nanosleep(&(struct timespec){.tv_nsec = gap * 1000}, NULL);
        start = now();
        if (m->run(in, out, p))
            exit(2);
        if (i >= 0)
            took[i] = now() - start;
    }
    qsort(took, (size_t)n, sizeof *took, by_size);
    return took[n / 2];
}

int main(int argc, char **argv)
{
    tvmrt_model             model;
    const tvmcc_model_info *m;
    void                   *in[MOST], *out[MOST];
    tvmcc_params            p[2] = {{.struct_bytes = sizeof *p, .threads = 1}};
    double                 *median[2], *ratio, once;
    int                     blocks = argc > 3 ? atoi(argv[3]) : 0, n;
    long                    gap = argc > 4 ? atol(argv[4]) : 0;

    if (blocks < 1 || gap < 0 || gap >= 1000000 || tvmrt_model_open(&model, argv[1], argv[2])) {
        fprintf(stderr, "usage: threads LIBRARY NAME BLOCKS GAP\n");
        return 1;
    }
    m = model.info;
    if (m->ninputs > MOST || m->noutputs > MOST)
        return 1;
    for (uint32_t i = 0; i < m->ninputs; i++)
        in[i] = memory(m->inputs[i].bytes);
    for (uint32_t i = 0; i < m->noutputs; i++)
        out[i] = memory(m->outputs[i].bytes);
    p[0].arena_bytes = tvmrt_arena_bytes(m, 2);
    p[0].arena = memory(p[0].arena_bytes);
    p[0].weights = model.weights;
    p[0].weights_bytes = model.weights_bytes;
    p[1] = p[0];
    tvmrt_pool_use(tvmrt_pool_new(memory(tvmrt_pool_bytes(2)), tvmrt_pool_bytes(2), 2), &p[1]);
    for (int t = 0; t < 2; t++)
        median[t] = memory((size_t)blocks * sizeof(double));
    ratio = memory((size_t)blocks * sizeof(double));

    block(m, in, out, &p[1], 20, 0);
    once = block(m, in, out, &p[0], 20, 0);
    n = gap ? 10 : once * 5 > 3000 ? 5 : (int)(3000 / once);
    n = n > MOST_RUNS ? MOST_RUNS : n;
    for (int b = 0; b < blocks; b++) {
        for (int t = 0; t < 2; t++)
            median[t][b] = block(m, in, out, &p[t], n, gap);
        ratio[b] = median[1][b] / median[0][b];
    }
    for (int t = 0; t < 2; t++)
        qsort(median[t], (size_t)blocks, sizeof(double), by_size);
    qsort(ratio, (size_t)blocks, sizeof(double), by_size);
    printf("%.2f %.2f %.3f %.3f\n", median[0][blocks / 2], median[1][blocks / 2], ratio[blocks / 2],
           ratio[blocks * 9 / 10]);
    return 0;
}
