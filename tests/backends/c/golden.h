/* Runs models and compares: what programs of write_goldens.c include.  C99 and its library, since
 * boards are to run it, and values of the types that tensors have, since not all are little-endian.
 */
#ifndef TVMCC_TESTS_GOLDEN_H
#define TVMCC_TESTS_GOLDEN_H

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

struct golden {
    const char *name;
    const tvmcc_model_info *(*info)(void);
    const void *const *inputs, *const *wanted;
    const int64_t *const *input_dims, *const *wanted_dims; /* of those with a dimension of -1 */
    const float *const *allowed;    /* of each number of each output; NULL, or NULL there: */
    double              atol, rtol; /* whole numbers know atol alone */
};

/* Memory that is aligned to 64 bytes; nobody frees it before the model's run ends. */
static void *golden_memory(void **held, size_t bytes)
{
    *held = malloc(bytes + 64);
    return *held ? (void *)((uintptr_t)((char *)*held + 63) & ~(uintptr_t)63) : NULL;
}

static double golden_half(uint16_t h, unsigned code)
{
    const int    bits = code == TVMCC_BFLOAT ? 7 : 10, most = code == TVMCC_BFLOAT ? 255 : 31;
    const int    exponent = h >> bits & most;
    const double part = (double)(h & ((1 << bits) - 1)) / (1 << bits), sign = h & 0x8000u ? -1 : 1;

    if (exponent == most)
        return part != 0 ? NAN : sign * INFINITY;
    return sign * ldexp(part + (exponent != 0), (exponent ? exponent : 1) - (most >> 1));
}

static double golden_real(const tvmcc_tensor_info *t, const void *data, size_t i)
{
    if (t->bits == 16)
        return golden_half(((const uint16_t *)data)[i], t->code);
    return t->bits == 32 ? (double)((const float *)data)[i] : ((const double *)data)[i];
}

static int64_t golden_whole(const tvmcc_tensor_info *t, const void *data, size_t i)
{
    const int is_signed = t->code == TVMCC_INT;

    switch (t->bits) {
    case 8: return is_signed ? ((const int8_t *)data)[i] : ((const uint8_t *)data)[i];
    case 16: return is_signed ? ((const int16_t *)data)[i] : ((const uint16_t *)data)[i];
    case 32:
        return is_signed ? (int64_t)((const int32_t *)data)[i]
                         : (int64_t)((const uint32_t *)data)[i];
    default: return ((const int64_t *)data)[i];
    }
}

static int golden_near(const struct golden *g, const tvmcc_tensor_info *t, uint32_t o,
                       const void *data, size_t i)
{
    const float *each = g->allowed ? g->allowed[o] : NULL;
    const double atol = each ? each[i] : g->atol, rtol = each ? 0 : g->rtol;

    if (t->code == TVMCC_FLOAT || t->code == TVMCC_BFLOAT) {
        const double got = golden_real(t, data, i), want = golden_real(t, g->wanted[o], i);

        if (got == want || (got != got && want != want) ||
            fabs(got - want) <= atol + rtol * fabs(want))
            return 1;
        printf("FAIL %s: output %s is %.9g, not %.9g", g->name, t->name, got, want);
    } else {
        const int64_t got = golden_whole(t, data, i), want = golden_whole(t, g->wanted[o], i);
        const int64_t low = got < want ? got : want, high = got < want ? want : got;

        if ((double)((uint64_t)high - (uint64_t)low) <= atol)
            return 1;
        printf("FAIL %s: output %s is %ld, not %ld", g->name, t->name, (long)got, (long)want);
    }
    printf(" at %lu\n", (unsigned long)i);
    return 0;
}

/* Whether an output of which the run decides the dimensions has those that are wanted. */
static int golden_shape(const struct golden *g, const tvmcc_tensor_info *t, const int64_t *want,
                        const tvmcc_value *got)
{
    for (uint32_t i = 0; i < t->ndim; i++)
        if (got->ndim != t->ndim || got->dims[i] != want[i]) {
            printf("FAIL %s: output %s has other dimensions\n", g->name, t->name);
            return 0;
        }
    return 1;
}

/* How many cells there are. */
static size_t golden_cells(const tvmcc_tensor_info *t, const int64_t *dims)
{
    size_t n = 1;

    for (uint32_t i = 0; i < t->ndim; i++)
        n *= (size_t)(dims ? dims : t->dims)[i];
    return n;
}

static tvmcc_value golden_value(const tvmcc_tensor_info *t, int64_t *dims, void *data, size_t bytes)
{
    tvmcc_value v = {0};

    v.code = t->code;
    v.bits = t->bits;
    v.ndim = t->ndim;
    v.dims = dims;
    v.data = data;
    v.bytes = bytes;
    return v;
}

static int golden_run(const struct golden *g)
{
    const tvmcc_model_info *info = g->info();
    const size_t            bytes = info->arena_shared + info->arena_private;
    void                  **inputs = malloc((info->ninputs + 1) * sizeof *inputs);
    void                  **outputs = malloc((info->noutputs + 1) * sizeof *outputs);
    void                  **held = calloc(info->noutputs + 1u, sizeof *held);
    tvmcc_value            *values = calloc(info->ninputs + info->noutputs + 1u, sizeof *values);
    tvmcc_value            *results = values + info->ninputs;
    tvmcc_params            params = {0};
    int32_t                 status;
    int                     ok = 1;

    for (uint32_t i = 0; i < info->ninputs; i++) {
        const tvmcc_tensor_info *t = &info->inputs[i];
        int64_t                 *dims = (int64_t *)(uintptr_t)g->input_dims[i];

        inputs[i] = (void *)(uintptr_t)g->inputs[i];
        if (!(t->flags & TVMCC_TENSOR_DYNAMIC))
            continue;
        values[i] = golden_value(t, dims, inputs[i], golden_cells(t, dims) * (t->bits / 8u));
        inputs[i] = &values[i];
    }
    for (uint32_t i = 0; i < info->noutputs; i++) { /* dynamic ones: dimensions, then room */
        const tvmcc_tensor_info *t = &info->outputs[i];
        const int                dynamic = (t->flags & TVMCC_TENSOR_DYNAMIC) != 0;
        const size_t             n = golden_cells(t, g->wanted_dims[i]);
        const size_t head = dynamic ? (t->ndim * sizeof(int64_t) + 63) & ~(size_t)63 : 0;
        const size_t room = n * (t->bits / 8u) > t->bytes ? n * (t->bits / 8u) : t->bytes;
        char        *memory = golden_memory(&held[i], head + room);

        outputs[i] = memory;
        if (!dynamic || !memory)
            continue;
        results[i] = golden_value(t, (void *)memory, memory + head, room);
        outputs[i] = &results[i];
    }
    params.struct_bytes = sizeof params;
    params.threads = 1;
    params.arena = golden_memory(&held[info->noutputs], bytes);
    params.arena_bytes = bytes;
    if (!params.arena) {
        printf("FAIL %s: no memory for %lu bytes of arena\n", g->name, (unsigned long)bytes);
        return 0;
    }
    if ((status = info->run(inputs, outputs, &params))) {
        printf("FAIL %s: %s\n", g->name, tvmcc_strerror(status));
        ok = 0;
    }
    for (uint32_t o = 0; ok && o < info->noutputs; o++) {
        const tvmcc_tensor_info *t = &info->outputs[o];

        const int64_t *dims = g->wanted_dims[o];

        ok = !dims || golden_shape(g, t, dims, &results[o]);
        for (size_t i = 0; ok && i < golden_cells(t, dims); i++)
            ok = golden_near(g, t, o, dims ? results[o].data : outputs[o], i);
    }
    for (uint32_t i = 0; i <= info->noutputs; i++)
        free(held[i]);
    free(held);
    free(values);
    free(outputs);
    free(inputs);
    return ok;
}

/* The number of models that compute something else. */
static int golden_run_all(const struct golden *all, unsigned n)
{
    unsigned right = 0;

    for (unsigned i = 0; i < n; i++)
        right += golden_run(&all[i]) != 0;
    printf("%u models, %u failures\n", n, n - right);
    return right < n;
}

#endif
