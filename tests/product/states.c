/* States that lie in the same memory as the inputs of the next run: three steps, one and two
 * threads, against values of ONNX Runtime.  `states.f32`: x h a b, then h_next a_next b_next y. */
#include "states.h"

#include "tvmcc/runtime.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { N = 32 };

static int steps(const float *golden, uint32_t threads)
{
    static TVMCC_ALIGNED(64) float         x[N], h[N], a[N], b[N], y[N];
    static TVMCC_ALIGNED(64) unsigned char arena[STATES_ARENA_BYTES(2) + 64], pool[1 << 16];
    states_inputs                          in = {x, h, a, b};
    states_outputs                         out = {h, a, b, y};
    tvmcc_params                           params = {.struct_bytes = sizeof params,
                                                     .threads = threads,
                                                     .arena = arena,
                                                     .arena_bytes = STATES_ARENA_BYTES(threads)};
    tvmrt_pool                            *p = tvmrt_pool_new(pool, sizeof pool, threads);
    int32_t                                rc = 0;

    if (!p)
        return 1;
    tvmrt_pool_use(p, &params);
    memcpy(x, golden, sizeof x);
    memcpy(h, golden + N, sizeof h);
    memcpy(a, golden + 2 * N, sizeof a);
    memcpy(b, golden + 3 * N, sizeof b);
    for (int i = 0; i < 3 && !rc; i++)
        rc = states_run_ex(&in, &out, &params);
    tvmrt_pool_free(p);
    const float *got[] = {h, a, b, y};
    for (int k = 0; k < 4 && !rc; k++)
        for (int i = 0; i < N; i++)
            if (!(fabsf(got[k][i] - golden[(4 + k) * N + i]) < 1e-5f)) {
                printf("result %d, element %d: %g, not %g\n", k, i, (double)got[k][i],
                       (double)golden[(4 + k) * N + i]);
                return 1;
            }
    return rc;
}

int main(int argc, char **argv)
{
    const tvmcc_model_info *info = states_info();
    float                   golden[8 * N];
    FILE                   *f = argc == 2 ? fopen(argv[1], "rb") : NULL;

    if (!f || fread(golden, sizeof golden, 1, f) != 1)
        return 2;
    fclose(f);
    for (int i = 0; i < 3; i++)
        if (info->outputs[i].state_input != (size_t)i + 2) /* 1 + index of h, a, b */
            return 3;
    if (info->outputs[3].state_input || STATES_OUT_H_NEXT_STATE_INPUT != STATES_IN_H_INDEX)
        return 4;
    return steps(golden, 1) || steps(golden, 2);
}
