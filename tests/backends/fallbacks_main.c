/* One product for OpenCL, Vulkan and this CPU: `open` takes the first target whose device it is
 * given; what each computes. */
#include "digits_any.h"
#include "digits_cpu.h"
#include "tvmcc/runtime.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { KINDS = 2, TARGETS = 3 };

static const uint32_t kinds[KINDS] = {TVMCC_DEVICE_OPENCL, TVMCC_DEVICE_VULKAN};
static int            failures;

#define CHECK(condition)                                                   \
    do {                                                                   \
        if (!(condition)) {                                                \
            printf("%s:%d: failed: %s\n", __FILE__, __LINE__, #condition); \
            failures++;                                                    \
        }                                                                  \
    } while (0)

static float image[DIGITS_ANY_IN_IMAGE_ELEMS], expected[DIGITS_ANY_OUT_DIGIT_ELEMS];
static float out[DIGITS_ANY_OUT_DIGIT_ELEMS];
static void *state[DIGITS_ANY_STATE_BYTES / sizeof(void *) + 1];
DIGITS_CPU_DEFINE_ARENA(cpu_arena);
static TVMCC_ALIGNED(DIGITS_ANY_ARENA_ALIGN) unsigned char arena[DIGITS_ANY_ARENA_BYTES(1)];

static const tvmcc_device *noted; /* whose weights_load this is */
static size_t              loaded;

static int32_t note_weights(void *self, const uint8_t sha256[32], const void *host, size_t bytes,
                            void **memory)
{
    loaded = bytes;
    return noted->weights_load(self, sha256, host, bytes, memory);
}

/* The first target's device gets none of the weights that later ones store otherwise. */
static void loads_its_weights(tvmcc_params params, const tvmcc_device *d)
{
    const tvmcc_model_info *info = digits_any_info();
    tvmcc_device            noting = *d;
    const tvmcc_device     *given = &noting;

    noted = d;
    noting.weights_load = note_weights;
    params.devices = &given;
    params.device_count = 1;
    CHECK(digits_any_open(state, &params) == TVMCC_OK);
    CHECK(loaded > 0 && (d->kind != kinds[0] || loaded < info->weights[0].bytes));
    digits_any_close(state, &params);
}

/* tvmrt_run takes tensors in the memory of the device that was taken, and of no other. */
static void runs_on_its_memory(const tvmcc_params *params, const tvmcc_device *d)
{
    const tvmcc_model_info *info = digits_any_info();
    tvmrt_tensor            from = tvmrt_tensor_of(&info->inputs[0], image);
    tvmrt_tensor            to = tvmrt_tensor_of(&info->outputs[0], out);
    void                   *memory = NULL;

    CHECK(d->alloc(d->self, sizeof image, &memory) == TVMCC_OK);
    CHECK(d->upload(d->self, memory, 0, image, sizeof image) == TVMCC_OK);
    from.data = memory;
    from.device.type = (int32_t)d->kind;
    memset(out, 0, sizeof out);
    CHECK(tvmrt_run(info, &from, 1, &to, 1, params) == TVMCC_OK);
    for (int k = 0; k < DIGITS_ANY_OUT_DIGIT_ELEMS; k++)
        CHECK(fabsf(out[k] - expected[k]) < 1e-5f);
    from.device.type = TVMCC_DEVICE_METAL;
    CHECK(tvmrt_run(info, &from, 1, &to, 1, params) == TVMCC_E_DEVICE);
    d->free(d->self, memory);
}

/* Where the CPU was taken, none is on a device. */
static void runs_on_no_memory(tvmcc_params params)
{
    const tvmcc_model_info *info = digits_any_info();
    tvmcc_place             places[2] = {{.kind = TVMCC_DEVICE_CPU}, {.kind = kinds[0]}};
    digits_any_inputs       in = {image};
    digits_any_outputs      result = {out};
    tvmrt_tensor            from = tvmrt_tensor_of(&info->inputs[0], image);
    tvmrt_tensor            to = tvmrt_tensor_of(&info->outputs[0], out);

    params.places = places;
    CHECK(digits_any_run_ex(&in, &result, &params) == TVMCC_E_DEVICE);
    places[1].kind = TVMCC_DEVICE_CPU;
    CHECK(digits_any_run_ex(&in, &result, &params) == TVMCC_OK);
    CHECK(tvmrt_run(info, &from, 1, &to, 1, &params) == TVMCC_OK);
    to.device.type = (int32_t)kinds[0]; /* the first target's */
    CHECK(tvmrt_run(info, &from, 1, &to, 1, &params) == TVMCC_E_DEVICE);
}

/* With these devices it runs as `target`. */
static void takes(uint32_t target, const tvmcc_device *const *devices, size_t n)
{
    const tvmcc_model_info *info = digits_any_info();
    digits_any_inputs       in = {image};
    digits_any_outputs      result = {out};
    tvmcc_params            params = {.struct_bytes = sizeof params,
                                      .threads = 1,
                                      .arena = arena,
                                      .arena_bytes = sizeof arena,
                                      .state = state,
                                      .state_bytes = sizeof state,
                                      .devices = devices,
                                      .device_count = n};

    CHECK(digits_any_open(state, &params) == TVMCC_OK);
    CHECK(state[TVMCC_STATE_TARGET] == (const void *)info->each_target[target]);
    for (int i = 0; i < 2; i++) {
        memset(out, 0, sizeof out);
        CHECK(digits_any_run_ex(&in, &result, &params) == TVMCC_OK);
        for (int k = 0; k < DIGITS_ANY_OUT_DIGIT_ELEMS; k++)
            CHECK(fabsf(out[k] - expected[k]) < 1e-5f);
    }
    if (state[TVMCC_STATE_DEVICE])
        runs_on_its_memory(&params, state[TVMCC_STATE_DEVICE]);
    else
        runs_on_no_memory(params);
    digits_any_close(state, &params);
    CHECK(digits_any_run_ex(&in, &result, &params) == TVMCC_E_DEVICE);
    digits_any_close(state, &params);
    if (n == 1 && devices[0]->struct_bytes == sizeof(tvmcc_device))
        loads_its_weights(params, devices[0]);
    params.weights = image + 1; /* the caller's mistake: no target is tried */
    params.weights_bytes = SIZE_MAX;
    CHECK(digits_any_open(state, &params) == TVMCC_E_ALIGN);
    params.weights = NULL;
    params.state_bytes = sizeof(void *);
    CHECK(digits_any_open(state, &params) == TVMCC_E_MISMATCH);
}

int main(void)
{
    static void            *room[KINDS][1024];
    const tvmcc_model_info *info = digits_any_info();
    const tvmcc_device     *devices[KINDS], *given[KINDS];
    digits_cpu_inputs       in = {image};
    digits_cpu_outputs      cpu = {expected};
    const char             *why;

    for (int i = 0; i < DIGITS_ANY_IN_IMAGE_ELEMS; i++)
        image[i] = (float)(i * 37 % 255) / 255;
    CHECK(digits_cpu_run(&in, &cpu, cpu_arena) == TVMCC_OK);
    CHECK(info->ntargets == TARGETS && info->device == TVMCC_DEVICE_OPENCL);
    CHECK(info->each_target[1]->device == TVMCC_DEVICE_VULKAN);
    CHECK(info->each_target[2]->device == TVMCC_DEVICE_CPU && !info->each_target[2]->open);
    takes(2, NULL, 0);
    for (uint32_t i = 0; i < KINDS; i++) {
        devices[i] = tvmrt_device_open(kinds[i], room[i], sizeof room[i], &why);
        if (devices[i])
            takes(i, &devices[i], 1);
        else
            printf("SKIP (%s)\n", why);
    }
    if (devices[0] && devices[1]) {
        given[0] = devices[1]; /* the order is the product's */
        given[1] = devices[0];
        takes(0, given, 2);
        tvmcc_device old = *devices[0]; /* one that cannot be used */
        old.struct_bytes = sizeof(void *);
        given[1] = &old;
        takes(1, given, 2);
        takes(2, &given[1], 1);
    }
    for (uint32_t i = 0; i < KINDS; i++)
        tvmrt_device_close(devices[i]);
    return failures != 0;
}
