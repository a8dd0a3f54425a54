/* Compiled model with two threads of the runtime's pool, on an empty picture. */
#include "digits.h"
#include "tvmcc/runtime.h"

#include <stdio.h>
#include <stdlib.h>

enum { THREADS = 2 };

static _Alignas(DIGITS_ARENA_ALIGN) unsigned char arena[DIGITS_ARENA_BYTES(THREADS)];

int main(void)
{
    static float   image[DIGITS_IN_IMAGE_ELEMS];
    float          digit[DIGITS_OUT_DIGIT_ELEMS];
    digits_inputs  in = {image};
    digits_outputs out = {digit};
    tvmcc_params   params = {
          .struct_bytes = sizeof params, .arena = arena, .arena_bytes = sizeof arena};
    size_t      bytes = (tvmrt_pool_bytes(THREADS) + 63) / 64 * 64;
    void       *memory = aligned_alloc(64, bytes);
    tvmrt_pool *pool = memory ? tvmrt_pool_new(memory, bytes, THREADS) : NULL;
    int32_t     rc;

    if (!pool) {
        fputs("no threads\n", stderr);
        return 1;
    }
    tvmrt_pool_use(pool, &params);
    rc = digits_run_ex(&in, &out, &params);
    tvmrt_pool_free(pool);
    free(memory);
    if (rc) {
        fprintf(stderr, "digits_run_ex: %d\n", (int)rc);
        return 1;
    }
    for (int i = 0; i < DIGITS_OUT_DIGIT_ELEMS; i++)
        printf("%d %.3f\n", i, digit[i]);
    return 0;
}
