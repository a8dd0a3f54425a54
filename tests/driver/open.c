/* Calls the model of open.relay, whose dimension has no upper bound, in an arena of just the bytes
 * that it asks for, and compares with plain loops. */
#include "net.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { K = 16, BEHIND = 256 };

static int failures;

static void expect(int ok, const char *what, int64_t n)
{
    if (ok)
        return;
    printf("T = %lld: %s\n", (long long)n, what);
    failures++;
}

static double error_of(int64_t n, const float *x, const float *y, const float *sums)
{
    double *p = malloc((size_t)n * sizeof *p), *all = calloc((size_t)n, sizeof *all), most = 0;

    for (int64_t i = 0; i < n; i++) {
        double row = 0, total = 0;
        for (int k = 0; k < K; k++)
            row += x[i * K + k] / 8.0;
        for (int64_t j = 0; j < n; j++) {
            double s = 0;
            for (int k = 0; k < K; k++)
                s += row * x[j * K + k];
            total += p[j] = exp(s);
        }
        for (int k = 0; k < K; k++) {
            double sum = 0;
            for (int64_t j = 0; j < n; j++)
                sum += p[j] / total * x[j * K + k];
            most = fmax(most, fabs(sum - y[i * K + k]));
        }
        for (int64_t j = 0; j < n; j++)
            all[j] += p[j] / total;
    }
    for (int64_t j = 0; j < n; j++)
        most = fmax(most, fabs(all[j] - sums[j]));
    free(p);
    free(all);
    return most;
}

static void sizes_refused(void)
{
    static const int64_t wrong[] = {-1, 0, 1, INT32_MAX, (int64_t)1 << 40, INT64_MAX, INT64_MIN};
    static TVMCC_ALIGNED(64) unsigned char arena[256];

    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        int64_t     dims[2] = {wrong[i], K}, dy[2], ds[1];
        float       cells[4] = {0};
        tvmcc_value x = {TVMCC_FLOAT, 32, 1, 2, dims, cells, 0};
        tvmcc_value y = {0, 0, 0, 2, dy, cells, sizeof cells},
                    s = {0, 0, 0, 1, ds, cells, sizeof cells};

        expect(net_arena_bytes(dims, 1) == TVMCC_E_SHAPE, "an arena for what cannot be", wrong[i]);
        expect(net_run(&(net_inputs){&x}, &(net_outputs){&y, &s}, arena) == TVMCC_E_SHAPE,
               "a size that cannot be is taken", wrong[i]);
    }
    expect(net_arena_bytes(NULL, 1) == TVMCC_E_NULL, "no dims", 0);
    expect(net_arena_bytes(&(int64_t){2}, 1 << 20) == TVMCC_E_MISMATCH, "so many threads", 0);
}

static void run(int64_t n, uint32_t threads)
{
    int64_t        bytes = net_arena_bytes(&n, threads), dims[2] = {n, K}, dy[2], ds[1];
    size_t         cells = (size_t)n * K;
    float         *x = malloc(cells * 4), *y = malloc(cells * 4), *s = malloc((size_t)n * 4);
    unsigned char *arena = aligned_alloc(64, (size_t)bytes + BEHIND);
    tvmcc_value    vx = {TVMCC_FLOAT, 32, 1, 2, dims, x, 0}, vy = {0, 0, 0, 2, dy, y, cells * 4},
                vs = {0, 0, 0, 1, ds, s, (size_t)n * 4};
    net_inputs   in = {&vx};
    net_outputs  out = {&vy, &vs};
    tvmcc_params params = {.struct_bytes = sizeof params,
                           .threads = threads,
                           .arena = arena,
                           .arena_bytes = (size_t)bytes};

    expect(bytes > 0 && bytes % 64 == 0, "no size of an arena", n);
    for (size_t i = 0; i < cells; i++)
        x[i] = (float)(i % 13) / 8 - 0.75f;
    memset(arena, 0xa5, (size_t)bytes + BEHIND);
    expect(net_run_ex(&in, &out, &params) == 0, "the run ends with a code", n);
    expect(error_of(n, x, y, s) < 1e-4, "other values", n);
    expect(dy[0] == n && dy[1] == K && ds[0] == n, "other shapes", n);
    for (size_t i = (size_t)bytes; i < (size_t)bytes + BEHIND; i++)
        expect(arena[i] == 0xa5, "stores behind the arena", n);
    params.arena_bytes--;
    expect(net_run_ex(&in, &out, &params) == TVMCC_E_MISMATCH, "an arena that is too small", n);
    params.arena_bytes++;
    vy.bytes = cells * 4 - 1;
    expect(net_run_ex(&in, &out, &params) == TVMCC_E_CAPACITY && vy.bytes == cells * 4,
           "too little room", n);
    memset(y, 0, cells * 4);
    expect(threads > 1 || (net_run(&in, &out, arena) == 0 && error_of(n, x, y, s) < 1e-4),
           "net_run", n);
    free(x), free(y), free(s), free(arena);
}

int main(void)
{
    static const int64_t   some[] = {2, 3, 16, 17, 63, 200, 1030};
    const tvmcc_size_info *sizes = net_sizes();
    const tvmcc_dim_info  *dim = sizes->dims;

    for (size_t i = 0; i < sizeof some / sizeof *some; i++)
        for (uint32_t threads = 1; threads <= 3; threads += 2)
            run(some[i], threads);
    sizes_refused();
    expect(sizes->struct_bytes == sizeof *sizes && sizes->ndims == NET_DIMS &&
               sizes->arena_bytes(&(int64_t){5}, 1) == net_arena_bytes(&(int64_t){5}, 0),
           "sizes", 0);
    expect(!strcmp(dim->name, "T") && dim->least == 2 && dim->most == 0 && dim->input == 0 &&
               dim->axis == 0 && dim->times == 1 && dim->plus == 0 && NET_DIM_T == 0,
           "dimension", 0);
    expect(net_info()->inputs[0].bytes == 0 && net_info()->arena_shared == 0, "info", 0);
    return failures != 0;
}
