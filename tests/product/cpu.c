/* Prints what the three ways to run a model give on the CPU at hand, and checks the note in the
 * arena:
 *
 *     cpu          codes of digits_run, digits_run_ex, info()->run; then ok
 *     cpu time     how long a call of digits_run_ex takes, and one of info()->run, in nanoseconds
 */
#include "digits.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

DIGITS_DEFINE_ARENA(arena);
static float image[256], digit[10], again[10];

static double now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

/* The best of many. */
static double time_of(tvmcc_run_fn run, const digits_inputs *in, const digits_outputs *out,
                      const tvmcc_params *p)
{
    double best = 1e30;

    for (int i = 0; i < 2000; i++) {
        double start = now(), took;

        run((void *const *)in, (void *const *)out, p);
        took = now() - start;
        best = took < best ? took : best;
    }
    return best;
}

static int32_t run_ex(void *const *in, void *const *out, const tvmcc_params *p)
{
    return digits_run_ex((const digits_inputs *)in, (const digits_outputs *)out, p);
}

int main(int argc, char **argv)
{
    const tvmcc_model_info *info = digits_info();
    digits_inputs           in = {image};
    digits_outputs          out = {digit}, out2 = {again};
    tvmcc_params            p = {.struct_bytes = sizeof p, .threads = 1};
    int32_t                 code[3];

    for (int i = 0; i < 256; i++)
        image[i] = (float)(i % 7) / 7;
    p.arena = arena;
    p.arena_bytes = sizeof arena;
    memset(arena, 0xff, sizeof arena);
    code[0] = digits_run(&in, &out, arena);
    code[1] = digits_run_ex(&in, &out, &p);
    code[2] = info->run((void *const *)&in, (void *const *)&out, &p);
    printf("%d %d %d", code[0], code[1], code[2]);
    if (argc > 1 && !strcmp(argv[1], "time"))
        printf(" %.0f %.0f", time_of(run_ex, &in, &out, &p), time_of(info->run, &in, &out, &p));

    /* Whatever else lies where the note is asks again, and changes nothing. */
    for (int i = 0; i < 64; i++) {
        arena[i % 16] ^= (unsigned char)(1 << i % 8);
        if (digits_run_ex(&in, &out2, &p) != code[1] || (!code[1] && memcmp(digit, again, 40)))
            return 1;
    }
    if (code[0] == TVMCC_OK) { /* wrong arguments are what they were */
        if (digits_run_ex(&in, &out, NULL) != TVMCC_E_NULL || digits_run_ex(NULL, &out, &p) != -1)
            return 2;
        p.arena = arena + 1;
        if (digits_run_ex(&in, &out, &p) != TVMCC_E_ALIGN)
            return 3;
        p.arena = NULL;
        if (digits_run_ex(&in, &out, &p) != TVMCC_E_NULL)
            return 4;
        p.arena = arena;
        p.arena_bytes = 8;
        if (digits_run_ex(&in, &out, &p) != TVMCC_E_MISMATCH)
            return 5;
        p.struct_bytes = 8;
        if (digits_run_ex(&in, &out, &p) != TVMCC_E_MISMATCH)
            return 6;
    }
    printf(" ok\n");
    return 0;
}
