/* matrices_main <matrices.metal>: matrices of SIMD-groups in the library in place of Metal's,
 * through the driver: a product is right, and faults of kernels show, as an error of the run or in
 * what it computes. */
#include "tvmcc/runtime.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROOM = 8192, CELLS = 256, MOST_TEXT = 1 << 16 };

static int                 failures;
static const tvmcc_device *device;
static void               *module;

#define CHECK(condition)                                                   \
    do {                                                                   \
        if (!(condition)) {                                                \
            printf("%s:%d: failed: %s\n", __FILE__, __LINE__, #condition); \
            failures++;                                                    \
        }                                                                  \
    } while (0)

/* Runs a block of a kernel of `n` buffers, each of `bytes[i]` bytes at `data[i]`, the last of which
 * comes back. */
static int32_t run(const char *name, const uint32_t *block, uint32_t n, void *const *data,
                   const size_t *bytes)
{
    void          *kernel = NULL, *self = device->self, *memory[3] = {0};
    const uint32_t grid[3] = {1, 1, 1};
    const int64_t  value = 0;
    tvmcc_arg      args[4] = {0};
    int32_t        rc = device->kernel(self, module, name, &kernel);

    CHECK(rc == TVMCC_OK);
    for (uint32_t i = 0; i < n; i++) {
        CHECK(device->alloc(self, bytes[i], &memory[i]) == TVMCC_OK);
        CHECK(device->upload(self, memory[i], 0, data[i], bytes[i]) == TVMCC_OK);
        args[i] = (tvmcc_arg){TVMCC_ARG_BUFFER, 0, memory[i]};
    }
    args[n] = (tvmcc_arg){TVMCC_ARG_VALUE, sizeof value, &value};
    if (!rc)
        rc = device->launch(self, kernel, grid, block, args, n + 1);
    if (!rc)
        rc = device->download(self, data[n - 1], memory[n - 1], 0, bytes[n - 1]);
    for (uint32_t i = 0; i < n; i++)
        device->free(self, memory[i]);
    device->kernel_free(self, kernel);
    return rc;
}

/* Of a whole number up to 2^11. */
static uint16_t half_of(int v)
{
    int exponent = 0, size = abs(v);

    if (!v)
        return 0;
    while (size >> (exponent + 1))
        exponent++;
    return (uint16_t)((v < 0) << 15 | (exponent + 15) << 10 | ((size << 10 >> exponent) & 1023));
}

static uint16_t bfloat_of(float v)
{
    uint32_t bits;

    memcpy(&bits, &v, sizeof bits);
    return (uint16_t)(bits >> 16);
}

static void test_product(void)
{
    enum { N = 16 };
    static int      a[N][N], b[N][N];
    static uint16_t ha[N][N], hb[N][N];
    static float    c[N][N], expected[N][N];

    for (int i = 0; i < N; i++)
        for (int j = 0; j < N; j++) {
            a[i][j] = (i * 37 + j * 101) % 211 - 100;
            b[i][j] = (i * 53 + j * 29) % 167 - 80;
            c[i][j] = (float)(i - j);
            ha[i][j] = half_of(a[i][j]);
            hb[i][j] = half_of(b[i][j]);
        }
    for (int i = 0; i < N; i++)
        for (int j = 0; j < N; j++) {
            expected[i][j] = c[i][j];
            for (int k = 0; k < N; k++)
                expected[i][j] += (float)(a[i][k] * b[j][k]); /* exact: whole numbers */
            expected[i][j] = expected[i][j] > 0 ? expected[i][j] : 0;
        }
    CHECK(run("product", (const uint32_t[]){4, 8, 4}, 3, (void *const[]){ha, hb, c},
              (const size_t[]){sizeof ha, sizeof hb, sizeof c}) == TVMCC_OK);
    CHECK(!memcmp(c, expected, sizeof c));
    /* a SIMD-group that is not whole */
    CHECK(run("product", (const uint32_t[]){4, 4, 1}, 3, (void *const[]){ha, hb, c},
              (const size_t[]){sizeof ha, sizeof hb, sizeof c}) == TVMCC_E_DEVICE);
}

static void test_doubled(void)
{
    uint16_t a[64], c[128];

    for (int i = 0; i < 64; i++)
        a[i] = bfloat_of((float)i);
    memset(c, 0, sizeof c);
    CHECK(run("doubled", (const uint32_t[]){32, 1, 1}, 2, (void *const[]){a, c},
              (const size_t[]){sizeof a, sizeof c}) == TVMCC_OK);
    for (int i = 0; i < 64; i++)
        CHECK(c[i] == bfloat_of((float)(2 * i + 1)) && c[64 + i % 8 * 8 + i / 8] == c[i]);
}

static float a[96], c[128];

static int32_t run_floats(const char *name, uint32_t threads)
{
    for (int i = 0; i < 96; i++)
        a[i] = (float)i;
    memset(c, 0, sizeof c);
    return run(name, (const uint32_t[]){threads, 1, 1}, 2, (void *const[]){a, c},
               (const size_t[]){sizeof a, sizeof c});
}

static void test_faults(void)
{
    static const char *const names[] = {"absent",  "apart",      "branches", "addresses",
                                        "strides", "directions", "barrier"};

    CHECK(run_floats("second", 64) == TVMCC_OK && !memcmp(a, c, 64 * sizeof *c) && c[65] == 63);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        CHECK(run_floats(names[i], 32) == TVMCC_E_DEVICE);
        CHECK(strstr(device->last_error(device->self), "a run on the device failed"));
    }
    CHECK(run_floats("early", 32) == TVMCC_OK && memcmp(a, c, 64 * sizeof *c) != 0);
    CHECK(run_floats("late", 32) == TVMCC_OK && c[0] != 63);
    CHECK(run_floats("empty", 32) == TVMCC_OK && isnan(c[0]) && isnan(c[63]));
}

/* Text with matrices that there are not. */
static void test_types(void)
{
    static const char *const bodies[] = {
        "simdgroup_matrix<int, 8, 8> x;",
        "simdgroup_matrix<half, 16, 8> x;",
        "simdgroup_half8x8 x; simdgroup_load(x, (device const ushort *)a);",
        "simdgroup_half8x8 x; simdgroup_float8x8 z; simdgroup_multiply_accumulate(z, x, z, z);",
        "simdgroup_half8x8 x; simdgroup_bfloat8x8 z; simdgroup_multiply_accumulate(z, x, x, z);",
    };
    static const char format[] =
        "#include <metal_stdlib>\nusing namespace metal;\n"
        "kernel void k(device half *a [[buffer(0)]], constant long *values [[buffer(1)]], "
        "uint3 at_group, uint3 at_thread) { %s }\n";

    for (size_t i = 0; i <= sizeof bodies / sizeof *bodies; i++) {
        const bool right = i == sizeof bodies / sizeof *bodies;
        char       text[1024];
        void      *loaded = NULL;

        snprintf(text, sizeof text, format,
                 right ? "simdgroup_half8x8 x; simdgroup_load(x, a);" : bodies[i]);
        int32_t rc =
            device->module_load(device->self, TVMCC_CODE_SOURCE, text, strlen(text), "", &loaded);
        CHECK((rc == TVMCC_OK) == right);
        device->module_free(device->self, loaded);
    }
}

int main(int argc, char **argv)
{
    static char room[ROOM], text[MOST_TEXT];
    const char *why = "";
    FILE       *f = argc == 2 ? fopen(argv[1], "r") : NULL;

    if (!f || !(device = tvmrt_device_open(TVMCC_DEVICE_METAL, room, sizeof room, &why)))
        return printf("no file, or no device: %s\n", why), 1;
    size_t n = fread(text, 1, sizeof text, f);
    fclose(f);
    if (device->module_load(device->self, TVMCC_CODE_SOURCE, text, n, "", &module))
        return printf("%s\n", device->last_error(device->self)), 1;
    test_product();
    test_doubled();
    test_faults();
    test_types();
    device->module_free(device->self, module);
    tvmrt_device_close(device);
    return failures > 0;
}
