#include "pool.h"

#include <stdlib.h>
#include <tvmcc/runtime.h>

POOL_DEFINE_ARENA(arena);

int main(void)
{
    static float x[POOL_IN_IMAGE_ELEMS], y[POOL_OUT_DIGIT_ELEMS];
    pool_inputs  in = {x};
    pool_outputs out = {y};
    size_t       bytes = tvmrt_pool_bytes(1);
    void        *memory = aligned_alloc(64, (bytes + 63) / 64 * 64);
    tvmrt_pool  *pool = tvmrt_pool_new(memory, bytes, 1);
    tvmcc_params params = {
        .struct_bytes = sizeof params, .arena = arena, .arena_bytes = sizeof arena};
    int status;

    if (!pool)
        return 1;
    tvmrt_pool_use(pool, &params);
    status = pool_run_ex(&in, &out, &params);
    tvmrt_pool_free(pool);
    free(memory);
    return status != 0;
}
