/* The interpreter of SPIR-V (spirv_run.h) on cooperative matrices: a module of the test's own
 * (matrix_module.h) against plain loops, and with faults, each of which it has to find. */
#include "tests/backends/vulkan/matrix_module.h"
#include "tests/backends/vulkan/spirv_run.h"
#include "tests/unit/check.h"

#include "ir/core.h"

#include <stdlib.h>

/* ---- numbers, and what they give ----------------------------------------------------------------- */

typedef struct {
    _Alignas(16) uint8_t a[SUBGROUPS][TILE_BYTES];
    _Alignas(16) uint8_t b[TILES][TILE_BYTES];
    uint32_t out[SUBGROUPS][SIDE][TILES * SIDE];
} Numbers;

static void fill_tiles(uint8_t *at, size_t n, bool bytes, uint32_t *seed)
{
    for (size_t i = 0; i < n; i += bytes ? 1 : 2) {
        *seed = *seed * 1664525u + 1013904223u;
        if (bytes)
            at[i] = (uint8_t)(*seed >> 24);
        else
            dtype_put_f(DT_F16, at + i, (double)(int32_t)*seed / (UINT32_C(1) << 31));
    }
}

static void fill(Numbers *x, bool bytes)
{
    uint32_t seed = 5;

    fill_tiles((uint8_t *)x->a, sizeof x->a, bytes, &seed);
    fill_tiles((uint8_t *)x->b, sizeof x->b, bytes, &seed);
    memset(x->out, 0xff, sizeof x->out);
}

/* Number `in` of line `line`, of a matrix whose lines take so many bytes. */
static double number_at(const Variant *v, const uint8_t *tile, uint32_t line, uint32_t in,
                        uint32_t bytes, bool has_sign)
{
    const uint8_t *at = tile + line * bytes + in * (v->bytes ? 1 : 2);

    if (!v->bytes)
        return dtype_get_f(DT_F16, at);
    return (double)dtype_get_i(has_sign ? DT_I8 : DT_U8, at);
}

static uint32_t expected(const Variant *v, const Numbers *x, uint32_t s, uint32_t i, uint32_t j)
{
    const uint32_t steps = v->bytes ? 32 : 16, side = v->bytes ? SIDE : 2 * SIDE, t = j / SIDE;
    const double   start = module_start(v->bytes, t);
    double         sum = 0;
    uint32_t       bits = 0;
    uint16_t       half;

    for (uint32_t n = 0; n < steps; n++) {
        const bool a = v->signs & 1, b = v->signs & 2;
        sum += (v->layout[0] ? number_at(v, x->a[s], n, i, side, a)
                             : number_at(v, x->a[s], i, n, 32, a)) *
               (v->layout[1] ? number_at(v, x->b[t], j % SIDE, n, 32, b)
                             : number_at(v, x->b[t], n, j % SIDE, side, b));
    }
    if (v->bytes)
        return 2 * (uint32_t)(int64_t)(sum + start);
    dtype_put_f(DT_F16, &half, 2 * (float)(sum + start));
    dtype_put_f(DT_F32, &bits, dtype_get_f(DT_F16, &half));
    return bits;
}

/* ---- tests --------------------------------------------------------------------------------------- */

/* False: *error says why. */
static bool run(const Variant *v, Numbers *x, char **error)
{
    static uint32_t words[MODULE_WORDS_MOST];
    const uint32_t  n = module_build(v, words);
    uint64_t        push[] = {(uintptr_t)x->a, (uintptr_t)x->b, (uintptr_t)x->out};
    SpirvMemory     memory[] = {
        {x->a, sizeof x->a}, {x->b, sizeof x->b - (v->fault == SHORT)}, {x->out, sizeof x->out}};
    SpirvLaunch launch = {.entry = "main",
                          .groups = {1, 1, 1},
                          .push = push,
                          .push_bytes = sizeof push,
                          .memory = memory,
                          .nmemory = COUNT(memory)};

    fill(x, v->bytes);
    return spirv_run(words, n, &launch, error);
}

static void check_product(const Variant *v)
{
    static Numbers x;
    char          *error;
    uint32_t       wrong = 0;

    if (!run(v, &x, &error)) {
        CHECK_STR(error, "no error");
        free(error);
        return;
    }
    for (uint32_t s = 0; s < SUBGROUPS; s++)
        for (uint32_t i = 0; i < SIDE; i++)
            for (uint32_t j = 0; j < TILES * SIDE; j++)
                wrong += x.out[s][i][j] != expected(v, &x, s, i, j);
    if (wrong)
        printf("%s, layouts %u and %u, signs %u:\n", v->bytes ? "bytes" : "f16", v->layout[0],
               v->layout[1], v->signs);
    CHECK_INT(wrong, 0);
}

static void test_products(void)
{
    for (uint32_t i = 0; i < 4; i++)
        check_product(&(Variant){.layout = {i & 1, i >> 1}});
    for (uint32_t i = 0; i < 16; i++)
        check_product(&(Variant){.bytes = true, .layout = {i & 1, i >> 1 & 1}, .signs = i >> 2});
}

/* What the error has to say. */
static const char *const says[FAULTS] = {
    [STAYS_AWAY] = "OpCooperativeMatrixLoadKHR, thread 0 of workgroup (0, 0, 0): thread 5 of its "
                   "subgroup does not come: it is at word",
    [LEAVES] = "thread 5 of its subgroup has left",
    [OTHER_STRIDE] =
        "thread 3 of workgroup (0, 0, 0): another stride than thread 0 has: 24, not 16",
    [OTHER_POINTER] =
        "thread 31 of workgroup (0, 0, 0): another pointer than thread 0 has, 16 bytes",
    [OFF_BORDER] = "of a matrix is no multiple of 16 bytes",
    [ODD_STRIDE] = "a stride of 34 bytes is no multiple of 16",
    [NO_STRIDE] = "a matrix in memory without a stride",
    [NO_ALIGNED] = "does not say how it is aligned",
    [OTHER_USES] = "matrices of uses 1, 0 and 2",
    [OTHER_MODEL] = "cooperative matrices without the memory model Vulkan",
    [PRIVATE] = "OpCooperativeMatrixStoreKHR, thread 0 of workgroup (0, 0, 0): an access to memory "
                "of the workgroup that is not NonPrivatePointer",
    [WEAK_BARRIER] = "a barrier that does not order memory of the workgroup: 0x108",
    [DIVERGENT] = "a barrier that thread 39 does not come to: it has left",
    [HALF_STORED] = "of a variable of the workgroup, where nothing has been stored",
    [SHORT] = "reads 2 bytes at 1022 of memory 1 of the launch, which has 1023",
    [NARROW] = "a subgroup of 16 threads",
    [ENDLESS] = "does not end",
    [UNKNOWN] = "instruction 63, which the interpreter does not know",
    [UNENDED] = "words"};

static void test_faults(void)
{
    static Numbers x;

    for (Fault f = NO_FAULT + 1; f < FAULTS; f++) {
        char *error = NULL;
        bool  runs = run(&(Variant){.layout = {0, 1}, .fault = f}, &x, &error);

        if (runs || !strstr(error, says[f]))
            CHECK_STR(runs ? "no error" : error, says[f]);
        check_count++;
        free(error);
    }
}

int main(void)
{
    RUN(test_products);
    RUN(test_faults);
    return check_result();
}
