/* The same network as two objects in one program, for this CPU and for an OpenCL device: equal
 * outputs, and what open, run and close promise when something is missing. */
#include "digits_cl.h"
#include "digits_cpu.h"
#include "tvmcc/runtime.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static int failures;

#define CHECK(condition)                                                   \
    do {                                                                   \
        if (!(condition)) {                                                \
            printf("%s:%d: failed: %s\n", __FILE__, __LINE__, #condition); \
            failures++;                                                    \
        }                                                                  \
    } while (0)

static float image[DIGITS_CL_IN_IMAGE_ELEMS], device_out[DIGITS_CL_OUT_DIGIT_ELEMS];
static float cpu_out[DIGITS_CPU_OUT_DIGIT_ELEMS];
static void *state[DIGITS_CL_STATE_BYTES / sizeof(void *) + 1];
static int   events[2], stop_at = -1;
DIGITS_CPU_DEFINE_ARENA(arena);

static int32_t note(void *user, uint32_t event, uint32_t step, uint32_t part)
{
    (void)user;
    (void)part;
    events[event]++;
    return event == TVMCC_EVENT_BEGIN && (int)step == stop_at;
}

static void compare(const tvmcc_params *params, unsigned seed)
{
    digits_cl_inputs   in = {image};
    digits_cl_outputs  out = {device_out};
    digits_cpu_inputs  cpu_in = {image};
    digits_cpu_outputs cpu = {cpu_out};

    for (int i = 0; i < DIGITS_CL_IN_IMAGE_ELEMS; i++)
        image[i] = (float)((seed = seed * 1103515245u + 12345u) >> 16 & 255) / 255;
    CHECK(digits_cl_run_ex(&in, &out, params) == TVMCC_OK);
    CHECK(digits_cpu_run(&cpu_in, &cpu, arena) == TVMCC_OK);
    for (int i = 0; i < DIGITS_CL_OUT_DIGIT_ELEMS; i++)
        CHECK(fabsf(device_out[i] - cpu_out[i]) < 1e-5f);
}

int main(void)
{
    static void *room[1024];
    const char  *why = NULL;
    tvmcc_params params = {
        .struct_bytes = sizeof params, .state = state, .state_bytes = DIGITS_CL_STATE_BYTES};
    const tvmcc_device *device =
        tvmrt_device_bytes(TVMCC_DEVICE_OPENCL) <= sizeof room
            ? tvmrt_device_open(TVMCC_DEVICE_OPENCL, room, sizeof room, &why)
            : NULL;
    digits_cl_inputs  in = {image};
    digits_cl_outputs out = {device_out};

    CHECK(digits_cl_info()->device == TVMCC_DEVICE_OPENCL);
    CHECK(digits_cl_info()->state_bytes == DIGITS_CL_STATE_BYTES);
    CHECK(digits_cl_info()->arena_shared == 0);
    CHECK(digits_cl_info()->npools == 1 && digits_cl_info()->pools[0].kind == TVMCC_POOL_DEVICE);
    CHECK(digits_cl_open(state, &params) == TVMCC_E_DEVICE);       /* none given */
    CHECK(digits_cl_run_ex(&in, &out, &params) == TVMCC_E_DEVICE); /* not open */
    digits_cl_close(state, &params);
    if (!device) {
        printf("SKIP (no OpenCL device): %s\n", why);
        return failures ? 1 : 77;
    }
    const tvmcc_device *devices[] = {NULL, tvmrt_cpu_device(), device};
    params.devices = devices;
    params.device_count = 2;
    CHECK(digits_cl_open(state, &params) == TVMCC_E_DEVICE); /* none of its kind */
    params.device_count = 3;
    params.state_bytes--;
    CHECK(digits_cl_open(state, &params) == TVMCC_E_MISMATCH);
    params.state_bytes++;
    CHECK(digits_cl_open(NULL, &params) == TVMCC_E_NULL);
    CHECK(digits_cl_open(state, &params) == TVMCC_OK);
    for (unsigned i = 0; i < 3; i++)
        compare(&params, i);

    params.instrument = note;
    CHECK(digits_cl_run_ex(&in, &out, &params) == TVMCC_OK);
    CHECK(events[0] > 3 && events[0] == events[1]);
    stop_at = 2;
    CHECK(digits_cl_run_ex(&in, &out, &params) == TVMCC_E_CANCELLED);
    params.instrument = NULL;
    compare(&params, 9);
    params.state = NULL;
    CHECK(digits_cl_run_ex(&in, &out, &params) == TVMCC_E_NULL);
    digits_cl_close(state, &params);
    digits_cl_close(state, &params); /* closing again does nothing */
    tvmrt_device_close(device);
    return failures != 0;
}
