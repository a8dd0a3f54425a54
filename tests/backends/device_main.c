/* The same network as two objects in one program, for this CPU and for a device, DEVICE_KIND: equal
 * outputs, and what open, run and close promise when something is missing. */
#include "digits_cpu.h"
#include "digits_device.h"
#include "tvmcc/runtime.h"

#include <math.h>
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

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

/* Of two devices of its kind it takes none, of others no notice. */
static void takes_one_of_a_kind(tvmcc_params params, const tvmcc_device *d)
{
    static void        *own[DIGITS_DEVICE_STATE_BYTES / sizeof(void *) + 1];
    tvmcc_device        other = *d;
    const tvmcc_device *devices[] = {&other, d, NULL};

    params.state = own;
    params.devices = devices;
    params.device_count = 3;
    CHECK(digits_device_open(own, &params) == TVMCC_E_MISMATCH);
    CHECK(!own[TVMCC_STATE_DEVICE]);
    digits_device_close(own, &params); /* nothing is open */
    other.kind++;
    CHECK(digits_device_open(own, &params) == TVMCC_OK && own[TVMCC_STATE_DEVICE] == (void *)d);
    digits_device_close(own, &params);
}

/* A run that does not wait: its outputs are there when the device says so. */
static void runs_without_waiting(tvmcc_params params, const tvmcc_device *d)
{
    digits_device_inputs  in = {image};
    digits_device_outputs out = {device_out};
    float                 was[DIGITS_DEVICE_OUT_DIGIT_ELEMS];
    int32_t               rc;

    CHECK(digits_device_run_ex(&in, &out, &params) == TVMCC_OK);
    memcpy(was, device_out, sizeof was);
    params.flags = TVMCC_RUN_ASYNC;
    for (int i = 0; i < 3; i++) {
        memset(device_out, 0, sizeof device_out);
        CHECK(digits_device_run_ex(&in, &out, &params) == TVMCC_OK);
        if (i == 0) {
            while ((rc = d->poll(d->self)) > 0)
                ;
            CHECK(rc == TVMCC_OK);
        } else {
            CHECK(i == 1 || digits_device_run_ex(&in, &out, &params) == TVMCC_OK);
            CHECK(d->wait(d->self) == TVMCC_OK);
        }
        CHECK(!memcmp(was, device_out, sizeof was));
    }
    /* a caller of an older header has no flags */
    params.struct_bytes = offsetof(tvmcc_params, places);
    params.places = (const tvmcc_place *)1;
    memset(device_out, 0, sizeof device_out);
    CHECK(digits_device_run_ex(&in, &out, &params) == TVMCC_OK);
    CHECK(!memcmp(was, device_out, sizeof was));
    params.struct_bytes--;
    CHECK(digits_device_run_ex(&in, &out, &params) == TVMCC_E_MISMATCH);
}

/* More of them than there is room for, each of another image: the last one's outputs stay. */
static void runs_on_and_on(tvmcc_params params, const tvmcc_device *d)
{
    enum { RUNS = 70 };
    digits_device_inputs  in = {image};
    digits_device_outputs out = {device_out};
    float                 first[DIGITS_DEVICE_OUT_DIGIT_ELEMS], last[sizeof first / sizeof *first];

    CHECK(digits_device_run_ex(&in, &out, &params) == TVMCC_OK);
    memcpy(first, device_out, sizeof first);
    params.flags = TVMCC_RUN_ASYNC;
    for (int i = 1; i <= RUNS; i++) {
        for (int k = 0; k < DIGITS_DEVICE_IN_IMAGE_ELEMS; k++)
            image[k] = (float)(i * k % 31) / 31;
        CHECK(digits_device_run_ex(&in, &out, &params) == TVMCC_OK);
    }
    CHECK(d->wait(d->self) == TVMCC_OK);
    memcpy(last, device_out, sizeof last);
    params.flags = 0;
    CHECK(digits_device_run_ex(&in, &out, &params) == TVMCC_OK);
    CHECK(!memcmp(device_out, last, sizeof last) && memcmp(first, last, sizeof last));
}

/* Inputs and outputs in the device's memory, each behind something else. */
static void runs_on_its_memory(tvmcc_params params, const tvmcc_device *d)
{
    enum { IN_AT = 128, OUT_AT = 64, IN_BYTES = sizeof image, OUT_BYTES = sizeof device_out };
    const tvmcc_model_info *info = digits_device_info();
    digits_device_inputs    in = {image};
    digits_device_outputs   out = {device_out};
    float                   was[DIGITS_DEVICE_OUT_DIGIT_ELEMS], now[DIGITS_DEVICE_OUT_DIGIT_ELEMS];
    void                   *a = NULL, *b = NULL;
    tvmcc_place             places[2] = {{DEVICE_KIND, 0, IN_AT}, {DEVICE_KIND, 0, OUT_AT}};
    tvmrt_tensor            from, to;

    CHECK(digits_device_run_ex(&in, &out, &params) == TVMCC_OK);
    memcpy(was, device_out, sizeof was);
    CHECK(d->alloc(d->self, IN_AT + IN_BYTES, &a) == TVMCC_OK);
    CHECK(d->alloc(d->self, OUT_AT + OUT_BYTES, &b) == TVMCC_OK);
    CHECK(d->upload(d->self, a, IN_AT, image, IN_BYTES) == TVMCC_OK);
    in.image = a;
    out.digit = b;
    params.places = places;
    CHECK(digits_device_run_ex(&in, &out, &params) == TVMCC_OK);
    CHECK(d->download(d->self, now, b, OUT_AT, OUT_BYTES) == TVMCC_OK);
    CHECK(!memcmp(was, now, sizeof was));
    places[1].kind = TVMCC_DEVICE_CPU; /* one here, one there */
    out.digit = now;
    memset(now, 0, sizeof now);
    CHECK(digits_device_run_ex(&in, &out, &params) == TVMCC_OK);
    CHECK(!memcmp(was, now, sizeof was));
    places[1].kind = TVMCC_DEVICE_CPU + 100;
    CHECK(digits_device_run_ex(&in, &out, &params) == TVMCC_E_DEVICE);

    from = tvmrt_tensor_of(&info->inputs[0], a);
    to = tvmrt_tensor_of(&info->outputs[0], b);
    from.device.type = to.device.type = DEVICE_KIND;
    from.byte_offset = IN_AT;
    to.byte_offset = OUT_AT;
    params.places = NULL;
    CHECK(d->upload(d->self, b, OUT_AT, image, OUT_BYTES) == TVMCC_OK);
    CHECK(tvmrt_run(info, &from, 1, &to, 1, &params) == TVMCC_OK);
    CHECK(d->download(d->self, now, b, OUT_AT, OUT_BYTES) == TVMCC_OK);
    CHECK(!memcmp(was, now, sizeof was));
    to.device.type = TVMCC_DEVICE_CPU + 100;
    CHECK(tvmrt_run(info, &from, 1, &to, 1, &params) == TVMCC_E_DEVICE);
    d->free(d->self, a);
    d->free(d->self, b);
}

/* Equal weights lie on a device once, for as long as a model has them. */
static void shares_weights(tvmcc_params params, const tvmcc_device *d)
{
    static void  *second[DIGITS_DEVICE_STATE_BYTES / sizeof(void *) + 1];
    const uint8_t hash[32] = {1}, other[32] = {2}, none[32] = {0};
    void         *a, *b, *c, *e, *f;

    CHECK(d->weights_load(d->self, hash, "weights", 8, &a) == TVMCC_OK);
    CHECK(d->weights_load(d->self, hash, "weights", 8, &b) == TVMCC_OK && a == b);
    CHECK(d->weights_load(d->self, other, "Weights", 8, &c) == TVMCC_OK && a != c);
    CHECK(d->weights_load(d->self, none, "weights", 8, &e) == TVMCC_OK && a != e);
    CHECK(d->weights_load(d->self, none, "weights", 8, &f) == TVMCC_OK && e != f);
    d->weights_free(d->self, a);
    char text[8];
    CHECK(d->download(d->self, text, b, 0, 8) == TVMCC_OK && !strcmp(text, "weights"));
    d->weights_free(d->self, b);
    d->weights_free(d->self, c);
    d->weights_free(d->self, e);
    d->weights_free(d->self, f);

    params.state = second;
    CHECK(digits_device_open(second, &params) == TVMCC_OK);
    compare(&params, 5);
    params.state = state;
    compare(&params, 6);
    digits_device_close(second, &params);
    compare(&params, 7);
}

/* By its name, or what memory it has. */
static void opens_by_properties(void)
{
    static void         *room[1024];
    tvmrt_device_info    all[8];
    tvmrt_device_options o = {.struct_bytes = sizeof o, .number = TVMRT_FIRST_DEVICE};
    const char          *why = NULL;
    uint32_t             n = tvmrt_devices(DEVICE_KIND, 8, all, &why);
    const tvmcc_device  *d;

    CHECK(n > 0 && !why && all[0].kind == DEVICE_KIND && *all[0].name);
    CHECK(tvmrt_devices(0, 0, NULL, NULL) >= n);
    o.name = all[0].name + strlen(all[0].name) / 2;
    o.least_memory = all[0].memory_bytes ? 1 << 20 : 0;
    d = tvmrt_device_open_with(DEVICE_KIND, &o, room, sizeof room, &why);
    CHECK(d && !why);
    tvmrt_device_close(d);
    o.least_memory = SIZE_MAX;
    CHECK(!tvmrt_device_open_with(DEVICE_KIND, &o, room, sizeof room, &why) && why);
    o.least_memory = 0;
    o.name = "no such device";
    CHECK(!tvmrt_device_open_with(DEVICE_KIND, &o, room, sizeof room, &why) && why);
    o.struct_bytes = offsetof(tvmrt_device_options, name); /* of an older header */
    d = tvmrt_device_open_with(DEVICE_KIND, &o, room, sizeof room, &why);
    CHECK(d != NULL);
    tvmrt_device_close(d);
}

/* A thread with a device and a state of its own. */
static void *runs_in_a_thread(void *result)
{
    _Alignas(16) char     room[8192];
    void                 *own[DIGITS_DEVICE_STATE_BYTES / sizeof(void *) + 1];
    float                 x[DIGITS_DEVICE_IN_IMAGE_ELEMS], y[DIGITS_DEVICE_OUT_DIGIT_ELEMS];
    digits_device_inputs  in = {x};
    digits_device_outputs out = {y};
    const tvmcc_device   *d = tvmrt_device_open(DEVICE_KIND, room, sizeof room, NULL);
    tvmcc_params          params = {.struct_bytes = sizeof params,
                                    .state = own,
                                    .state_bytes = DIGITS_DEVICE_STATE_BYTES,
                                    .devices = &d,
                                    .device_count = 1};

    memcpy(x, image, sizeof x);
    if (!d || digits_device_open(own, &params) != TVMCC_OK)
        return result;
    for (int i = 0; i < 3; i++)
        if (digits_device_run_ex(&in, &out, &params) == TVMCC_OK && i == 2)
            memcpy(result, y, sizeof y);
    digits_device_close(own, &params);
    tvmrt_device_close(d);
    return NULL;
}

/* A device that is closed has ended what it was asked for. */
static void ends_what_it_began(tvmcc_params params)
{
    static void          *room[1024], *own[DIGITS_DEVICE_STATE_BYTES / sizeof(void *) + 1];
    digits_device_inputs  in = {image};
    digits_device_outputs out = {device_out};
    float                 was[DIGITS_DEVICE_OUT_DIGIT_ELEMS];
    const tvmcc_device   *d = tvmrt_device_open(DEVICE_KIND, room, sizeof room, NULL);

    CHECK(digits_device_run_ex(&in, &out, &params) == TVMCC_OK);
    memcpy(was, device_out, sizeof was);
    memset(device_out, 0, sizeof device_out);
    params.state = own;
    params.devices = &d;
    params.device_count = 1;
    params.flags = TVMCC_RUN_ASYNC;
    CHECK(d && digits_device_open(own, &params) == TVMCC_OK);
    for (int i = 0; i < 20; i++)
        CHECK(digits_device_run_ex(&in, &out, &params) == TVMCC_OK);
    digits_device_close(own, &params);
    tvmrt_device_close(d);
    CHECK(!memcmp(was, device_out, sizeof was));
}

static double now_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static int32_t no_wait(void *self)
{
    (void)self;
    return TVMCC_OK;
}

/* Each launch of a run takes some time, all together less than the run. */
static uint32_t adds_up(const tvmcc_device *d, const tvmcc_params *params)
{
    digits_device_inputs  in = {image};
    digits_device_outputs out = {device_out};
    double                ns[64], sum = 0, from;
    uint32_t              n;

    CHECK(tvmrt_time_launches(d, 1) == TVMCC_OK);
    CHECK(tvmrt_timed_launches(d) == 0);
    from = now_ns();
    CHECK(digits_device_run_ex(&in, &out, params) == TVMCC_OK);
    n = tvmrt_timed_launches(d);
    CHECK(n <= 64 && tvmrt_launch_times(d, n, ns) == TVMCC_OK);
    from = now_ns() - from;
    for (uint32_t i = 0; i < n && i < 64; i++) {
        CHECK(ns[i] > 0);
        sum += ns[i];
    }
    CHECK(sum < from);
    CHECK(tvmrt_launch_times(d, n + 1, ns) == TVMCC_E_SHAPE);
    return n;
}

/* A device that says what launches take: one by one, whether each is waited for or not, but not
 * those of recordings. */
static void times_launches(tvmcc_params params)
{
    static void          *room[1024], *own[DIGITS_DEVICE_STATE_BYTES / sizeof(void *) + 1];
    tvmrt_device_options  o = {.struct_bytes = sizeof o, .number = TVMRT_FIRST_DEVICE, .timing = 1};
    digits_device_inputs  in = {image};
    digits_device_outputs out = {device_out};
    const char           *why = NULL;
    const tvmcc_device   *d = tvmrt_device_open_with(DEVICE_KIND, &o, room, sizeof room, &why), *at;
    tvmcc_device          plain;
    float                 was[DIGITS_DEVICE_OUT_DIGIT_ELEMS];
    uint32_t              n;

    CHECK(d && !why);
    if (!d)
        return;
    CHECK(digits_device_run_ex(&in, &out, &params) == TVMCC_OK);
    memcpy(was, device_out, sizeof was);
    plain = *d;
    plain.record_begin = NULL;
    at = &plain;
    params.state = own;
    params.devices = &at;
    params.device_count = 1;
    CHECK(digits_device_open(own, &params) == TVMCC_OK);
    n = adds_up(d, &params);
    CHECK(n > 4);
    params.instrument = note; /* each is waited for */
    CHECK(adds_up(d, &params) == n);
    memset(device_out, 0, sizeof device_out);
    plain.wait = no_wait; /* none is */
    CHECK(adds_up(d, &params) == n);
    CHECK(!memcmp(was, device_out, sizeof was));
    plain.wait = d->wait;
    params.instrument = NULL;
    for (int i = 0; i < 100; i++) /* of many, the first */
        CHECK(digits_device_run_ex(&in, &out, &params) == TVMCC_OK);
    CHECK(tvmrt_timed_launches(d) == 101 * n);
    double few[2] = {-1, -1};
    CHECK(tvmrt_launch_times(d, 1, few) == TVMCC_OK && few[0] > 0 && few[1] < 0);
    CHECK(tvmrt_time_launches(d, 0) == TVMCC_OK);
    CHECK(digits_device_run_ex(&in, &out, &params) == TVMCC_OK);
    CHECK(tvmrt_timed_launches(d) == 0);
    digits_device_close(own, &params);
    at = d;
    CHECK(digits_device_open(own, &params) == TVMCC_OK);
    CHECK(adds_up(d, &params) == (d->record_begin ? 0 : n));
    CHECK(!memcmp(was, device_out, sizeof was));
    digits_device_close(own, &params);
    tvmrt_device_close(d);
}

static void times_nothing(const tvmcc_device *d)
{
    double ns;

    CHECK(tvmrt_timed_launches(d) == 0 && tvmrt_timed_launches(NULL) == 0);
    CHECK(tvmrt_time_launches(d, 1) == TVMCC_E_MISMATCH);
    CHECK(tvmrt_launch_times(d, 0, &ns) == TVMCC_E_MISMATCH);
    CHECK(tvmrt_time_launches(tvmrt_cpu_device(), 1) == TVMCC_E_MISMATCH);
    CHECK(tvmrt_time_launches(NULL, 1) == TVMCC_E_NULL);
}

static void runs_in_two_threads(const tvmcc_params *params)
{
    static float          result[2][DIGITS_DEVICE_OUT_DIGIT_ELEMS];
    digits_device_inputs  in = {image};
    digits_device_outputs out = {device_out};
    pthread_t             threads[2];
    void                 *failed;

    CHECK(digits_device_run_ex(&in, &out, params) == TVMCC_OK);
    for (int i = 0; i < 2; i++)
        CHECK(!pthread_create(&threads[i], NULL, runs_in_a_thread, result[i]));
    for (int i = 0; i < 2; i++) {
        CHECK(!pthread_join(threads[i], &failed) && !failed);
        CHECK(!memcmp(result[i], device_out, sizeof device_out));
    }
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

    takes_one_of_a_kind(params, device);
    runs_without_waiting(params, device);
    runs_on_and_on(params, device);
    runs_on_its_memory(params, device);
    shares_weights(params, device);
    opens_by_properties();
    runs_in_two_threads(&params);
    ends_what_it_began(params);
    times_nothing(device);
    times_launches(params);
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
