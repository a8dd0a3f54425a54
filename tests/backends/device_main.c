/* The same network as two objects in one program, for this CPU and for a device, DEVICE_KIND: equal
 * outputs, and what open, run and close promise when something is missing. */
#include "digits_cpu.h"
#include "digits_device.h"
#include "tvmcc/runtime.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int failures;

#define CHECK(condition)                                                   \
    do {                                                                   \
        if (!(condition)) {                                                \
            printf("%s:%d: failed: %s\n", __FILE__, __LINE__, #condition); \
            failures++;                                                    \
        }                                                                  \
    } while (0)

static float image[DIGITS_DEVICE_IN_IMAGE_ELEMS], device_out[DIGITS_DEVICE_OUT_DIGIT_ELEMS];
static float cpu_out[DIGITS_CPU_OUT_DIGIT_ELEMS];
static void *state[DIGITS_DEVICE_STATE_BYTES / sizeof(void *) + 1];
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
    digits_device_inputs  in = {image};
    digits_device_outputs out = {device_out};
    digits_cpu_inputs     cpu_in = {image};
    digits_cpu_outputs    cpu = {cpu_out};

    for (int i = 0; i < DIGITS_DEVICE_IN_IMAGE_ELEMS; i++)
        image[i] = (float)((seed = seed * 1103515245u + 12345u) >> 16 & 255) / 255;
    CHECK(digits_device_run_ex(&in, &out, params) == TVMCC_OK);
    CHECK(digits_cpu_run(&cpu_in, &cpu, arena) == TVMCC_OK);
    for (int i = 0; i < DIGITS_DEVICE_OUT_DIGIT_ELEMS; i++)
        CHECK(fabsf(device_out[i] - cpu_out[i]) < 1e-5f);
}

/* Uploads and copies take effect in their order, however many are waiting, and recordings, here one
 * without a launch, between them. */
static void keeps_order(const tvmcc_device *d)
{
    enum { PARTS = 12, BYTES = 4096, REPLAYS = 4 };
    static uint8_t from[PARTS][BYTES], to[PARTS + 1][BYTES];
    void          *memory = NULL, *recording = NULL, *self = d->self;

    CHECK(d->alloc(self, sizeof to, &memory) == TVMCC_OK);
    if (d->record_begin) {
        CHECK(d->record_begin(self) == TVMCC_OK);
        CHECK(d->record_end(self, &recording) == TVMCC_OK);
    }
    for (int i = 0; i < PARTS; i++) {
        memset(from[i], i + 1, BYTES);
        CHECK(d->upload(self, memory, (size_t)i * BYTES, from[i], BYTES) == TVMCC_OK);
        if (recording && i < REPLAYS)
            CHECK(d->replay(self, recording) == TVMCC_OK);
    }
    CHECK(d->copy(self, memory, PARTS * BYTES, memory, 0, BYTES) == TVMCC_OK);
    CHECK(d->download(self, to, memory, 0, sizeof to) == TVMCC_OK);
    CHECK(!memcmp(to, from, sizeof from) && !memcmp(to[PARTS], from[0], BYTES));
    if (recording)
        d->recording_free(self, recording);
    d->free(self, memory);
}

int main(void)
{
    static void *room[1024];
    const char  *why = NULL;
    tvmcc_params params = {
        .struct_bytes = sizeof params, .state = state, .state_bytes = DIGITS_DEVICE_STATE_BYTES};
    const tvmcc_device   *device = tvmrt_device_bytes(DEVICE_KIND) <= sizeof room
                                       ? tvmrt_device_open(DEVICE_KIND, room, sizeof room, &why)
                                       : NULL;
    digits_device_inputs  in = {image};
    digits_device_outputs out = {device_out};

    CHECK(digits_device_info()->device == DEVICE_KIND);
    CHECK(digits_device_info()->state_bytes == DIGITS_DEVICE_STATE_BYTES);
    CHECK(digits_device_info()->arena_shared == 0);
    CHECK(digits_device_info()->npools == 1 &&
          digits_device_info()->pools[0].kind == TVMCC_POOL_DEVICE);
    CHECK(digits_device_open(state, &params) == TVMCC_E_DEVICE);       /* none given */
    CHECK(digits_device_run_ex(&in, &out, &params) == TVMCC_E_DEVICE); /* not open */
    digits_device_close(state, &params);
    if (!device) {
        printf("SKIP (no such device): %s\n", why);
        return failures ? 1 : 77;
    }
    keeps_order(device);
    const tvmcc_device *devices[] = {NULL, tvmrt_cpu_device(), device};
    params.devices = devices;
    params.device_count = 2;
    CHECK(digits_device_open(state, &params) == TVMCC_E_DEVICE); /* none of its kind */
    params.device_count = 3;
    params.state_bytes--;
    CHECK(digits_device_open(state, &params) == TVMCC_E_MISMATCH);
    params.state_bytes++;
    CHECK(digits_device_open(NULL, &params) == TVMCC_E_NULL);
    tvmcc_device old = *device;
    old.struct_bytes = offsetof(tvmcc_device, program_load);
    devices[2] = &old;
    CHECK(digits_device_open(state, &params) == TVMCC_E_MISMATCH);
    devices[2] = device;
    tvmcc_device plain = *device; /* that records nothing */
    plain.record_begin = NULL;
    for (int recorded = 0; recorded < 2; recorded++) {
        devices[2] = recorded ? device : &plain;
        CHECK(digits_device_open(state, &params) == TVMCC_OK);
        for (unsigned i = 0; i < 3; i++)
            compare(&params, i);
        if (!recorded)
            digits_device_close(state, &params);
    }

    params.instrument = note;
    CHECK(digits_device_run_ex(&in, &out, &params) == TVMCC_OK);
    CHECK(events[0] > 3 && events[0] == events[1]);
    stop_at = 2;
    CHECK(digits_device_run_ex(&in, &out, &params) == TVMCC_E_CANCELLED);
    params.instrument = NULL;
    compare(&params, 9);
    params.state = NULL;
    CHECK(digits_device_run_ex(&in, &out, &params) == TVMCC_E_NULL);
    digits_device_close(state, &params);
    digits_device_close(state, &params); /* closing again does nothing */
    tvmrt_device_close(device);
    return failures != 0;
}
