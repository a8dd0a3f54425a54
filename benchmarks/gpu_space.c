/* gpu_space.c: what each launch of a product takes by its device's own clock.
 *
 *     gpu_space LIBRARY..
 *
 * For each library, compiled with --entry=net and -fweights=file, a line: its path, then the median
 * nanoseconds of each launch of a run, in their order.  Weights and inputs are numbers drawn at
 * random, small as floats of 32 and of 16 bits; whole numbers among the inputs are 0.  gpu_space.py
 * calls it. */
#include "tvmcc/runtime.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WARM = 3, RUNS = 15, DRAWN = 1000003 /* numbers, which then come again */ };

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return x < y ? -1 : x > y;
}

/* Halves between 2^-7 and 2^-4 of either sign. */
static void fill(void *to, size_t bytes)
{
    static uint64_t seed = 1;
    uint16_t       *at = to;

    for (size_t i = 0; i < bytes / 2 && i < DRAWN; i++) {
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        at[i] = (uint16_t)(0x2000 + (seed >> 40 & 0x8bff));
    }
    for (size_t i = DRAWN; i < bytes / 2; i++)
        at[i] = at[i - DRAWN];
}

static void *memory(size_t bytes)
{
    void *at = aligned_alloc(64, (bytes + 127) / 64 * 64);

    if (!at) {
        fprintf(stderr, "no memory\n");
        exit(1);
    }
    memset(at, 0, bytes);
    return at;
}

static int failed(const tvmcc_device *d, const char *path, int32_t rc)
{
    printf("%s: status %d, %s\n", path, (int)rc, d->last_error(d->self));
    return 1;
}

static int measure(const tvmcc_device *d, const char *path)
{
    const tvmcc_model_info *(*info)(void);
    void        *library = dlopen(path, RTLD_NOW | RTLD_LOCAL), *call;
    tvmcc_device plain = *d;
    int32_t      rc;

    if (!library || !(call = dlsym(library, "net_info"))) {
        printf("%s: %s\n", path, dlerror());
        return 1;
    }
    memcpy(&info, &call, sizeof info);
    const tvmcc_model_info *m = info();
    const tvmcc_device     *with = &plain;
    size_t                  bytes = m->nweights ? m->weights[0].bytes : 0;
    void **in = calloc(m->ninputs + 1, sizeof *in), **out = calloc(m->noutputs + 1, sizeof *out);
    tvmcc_params params = {.struct_bytes = sizeof params,
                           .state = memory(m->state_bytes),
                           .state_bytes = m->state_bytes,
                           .weights = memory(bytes),
                           .weights_bytes = bytes,
                           .devices = &with,
                           .device_count = 1};

    plain.record_begin = NULL; /* what a recording holds is not timed */
    fill((void *)(uintptr_t)params.weights, bytes);
    for (uint32_t i = 0; i < m->ninputs; i++) {
        in[i] = memory(m->inputs[i].bytes);
        if (m->inputs[i].code == 2)
            fill(in[i], m->inputs[i].bytes);
    }
    for (uint32_t i = 0; i < m->noutputs; i++)
        out[i] = memory(m->outputs[i].bytes);
    if ((rc = m->open(params.state, &params)))
        return failed(d, path, rc);
    for (int i = 0; i < WARM; i++)
        if ((rc = m->run(in, out, &params)))
            return failed(d, path, rc);
    if ((rc = tvmrt_time_launches(d, 1)))
        return failed(d, path, rc);
    for (int i = 0; i < RUNS; i++)
        if ((rc = m->run(in, out, &params)))
            return failed(d, path, rc);
    uint32_t n = tvmrt_timed_launches(d), each = n / RUNS;
    double  *ns = calloc(n + 1, sizeof *ns), one[RUNS];

    if ((rc = tvmrt_launch_times(d, n, ns)))
        return failed(d, path, rc);
    printf("%s", path);
    for (uint32_t k = 0; k < each; k++) {
        for (uint32_t i = 0; i < RUNS; i++)
            one[i] = ns[i * each + k];
        qsort(one, RUNS, sizeof *one, by_value);
        printf(" %.0f", one[RUNS / 2]);
    }
    printf("\n");
    fflush(stdout);
    m->close(params.state, &params);
    for (uint32_t i = 0; i < m->ninputs; i++)
        free(in[i]);
    for (uint32_t i = 0; i < m->noutputs; i++)
        free(out[i]);
    free(in), free(out), free(ns), free(params.state), free((void *)(uintptr_t)params.weights);
    dlclose(library);
    return 0;
}

int main(int argc, char **argv)
{
    static uint64_t      room[4096];
    tvmrt_device_options o = {.struct_bytes = sizeof o, .number = TVMRT_FIRST_DEVICE, .timing = 1};
    const char          *why = NULL;
    const tvmcc_device  *d = tvmrt_device_open_with(KIND, &o, room, sizeof room, &why);
    int                  bad = 0;

    if (!d) {
        fprintf(stderr, "no device: %s\n", why);
        return 2;
    }
    for (int i = 1; i < argc; i++)
        bad |= measure(d, argv[i]);
    tvmrt_device_close(d);
    return bad;
}
