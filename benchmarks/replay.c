/* replay.c: a model's runs that replay what `open` recorded beside runs that launch kernel by
 * kernel, in turns.
 *
 * gpu_run compiles it with -DKIND=TVMCC_DEVICE_x and the header of a model that is called `net`. */
#include "tvmcc/runtime.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { ROUNDS = 21, RUNS = 50 };

static double now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec * 1e-3;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return x < y ? -1 : x > y;
}

static void *tensors(uint32_t n, const tvmcc_tensor_info *t)
{
    void **all = calloc(n, sizeof *all);

    for (uint32_t i = 0; i < n; i++)
        all[i] = calloc(1, (t[i].bytes + 127) / 64 * 64);
    return all;
}

int main(void)
{
    static void        *room[1024], *state[2][NET_STATE_BYTES / sizeof(void *) + 1];
    static double       us[2][ROUNDS];
    const char         *why = NULL;
    const tvmcc_device *d = tvmrt_device_open(KIND, room, sizeof room, &why);

    if (!d) {
        printf("no device: %s\n", why);
        return 1;
    }
    const tvmcc_model_info *m = net_info();
    void                  **in = tensors(m->ninputs, m->inputs);
    void                  **out = tensors(m->noutputs, m->outputs);
    tvmcc_device            plain = *d;
    const tvmcc_device     *with[2] = {d, &plain};
    tvmcc_params            params[2];

    plain.record_begin = NULL;
    for (int k = 0; k < 2; k++) {
        params[k] = (tvmcc_params){.struct_bytes = sizeof *params,
                                   .state = state[k],
                                   .state_bytes = NET_STATE_BYTES,
                                   .devices = &with[k],
                                   .device_count = 1};
        int32_t rc = net_open(state[k], &params[k]);
        if (rc) {
            printf("open: status %d, %s\n", (int)rc, d->last_error(d->self));
            return 1;
        }
    }
    for (int round = 0; round < ROUNDS; round++)
        for (int k = 0; k < 2; k++) {
            double from = now();
            for (int i = 0; i < RUNS; i++)
                if (m->run(in, out, &params[k])) {
                    printf("run: %s\n", d->last_error(d->self));
                    return 1;
                }
            us[k][round] = (now() - from) / RUNS;
        }
    for (int k = 0; k < 2; k++) {
        qsort(us[k], ROUNDS, sizeof **us, by_value);
        net_close(state[k], &params[k]);
    }
    tvmrt_device_close(d);
    printf("%.1f us a run replayed%s, %.1f us launch by launch\n", us[0][ROUNDS / 2],
           d->record_begin ? "" : " (this driver records nothing)", us[1][ROUNDS / 2]);
    return 0;
}
