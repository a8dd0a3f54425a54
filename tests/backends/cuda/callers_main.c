/* callers_main.c cuda|rocm: a context and a stream of the caller, on the mock: what the runtime
 * asks for takes its turn among what the caller does, and both are the caller's still when the
 * device is closed. */
#include "tvmcc/runtime.h"

#include <dlfcn.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

typedef void    *Handle;
typedef uint64_t Pointer;

/* The caller's own calls, by the names of CUDA and of HIP. */
#define CALLS(CALL)                                                                         \
    CALL(init, "cuInit", "hipInit", (unsigned))                                             \
    CALL(retain, "cuDevicePrimaryCtxRetain", "hipDevicePrimaryCtxRetain", (Handle *, int))  \
    CALL(release, "cuDevicePrimaryCtxRelease_v2", "hipDevicePrimaryCtxRelease", (int))      \
    CALL(push, "cuCtxPushCurrent_v2", "hipCtxPushCurrent", (Handle))                        \
    CALL(pop, "cuCtxPopCurrent_v2", "hipCtxPopCurrent", (Handle *))                         \
    CALL(stream_create, "cuStreamCreate", "hipStreamCreateWithFlags", (Handle *, unsigned)) \
    CALL(stream_destroy, "cuStreamDestroy_v2", "hipStreamDestroy", (Handle))                \
    CALL(stream_wait, "cuStreamSynchronize", "hipStreamSynchronize", (Handle))              \
    CALL(copy, "cuMemcpyDtoDAsync_v2", "hipMemcpyDtoDAsync", (Pointer, Pointer, size_t, Handle))

static struct {
#define FIELD(id, cuda, hip, args) int(*id) args;
    CALLS(FIELD)
} my;

static int      failures;
static uint32_t kind;

#define CHECK(condition)                                                   \
    do {                                                                   \
        if (!(condition)) {                                                \
            printf("%s:%d: failed: %s\n", __FILE__, __LINE__, #condition); \
            failures++;                                                    \
        }                                                                  \
    } while (0)

static int find_calls(bool hip)
{
    void *library = dlopen(hip ? "libamdhip64.so" : "libcuda.so.1", RTLD_NOW | RTLD_LOCAL), *call;

    if (!library)
        return 0;
#define FIND(id, cuda, hip_name, args)                   \
    if (!(call = dlsym(library, hip ? hip_name : cuda))) \
        return 0;                                        \
    memcpy(&my.id, &call, sizeof call);
    CALLS(FIND)
    return 1;
}

/* Opened on what is the caller's: 4 numbers go in, the caller moves them, and they come out. */
static void shares(Handle context, Handle stream, Handle callers)
{
    static void         *room[1024];
    tvmrt_device_options o = {.struct_bytes = sizeof o,
                              .number = TVMRT_FIRST_DEVICE,
                              .context = context,
                              .stream = stream};
    const char          *why = NULL;
    const tvmcc_device  *d = tvmrt_device_open_with(kind, &o, room, sizeof room, &why);
    uint8_t              in[4] = {1, 2, 3, 4}, out[4] = {0};
    void                *memory = NULL;
    Handle               was;
    Pointer              at;
    int32_t              rc;

    CHECK(d && !why);
    if (!d)
        return;
    CHECK(d->alloc(d->self, 8, &memory) == TVMCC_OK);
    CHECK(d->upload(d->self, memory, 0, in, 4) == TVMCC_OK);
    in[0] = 9; /* it has been read */
    at = (Pointer)(uintptr_t)memory;
    if (stream) {
        CHECK(my.push(callers) == 0);
        CHECK(my.copy(at + 4, at, 4, stream) == 0);
        CHECK(my.pop(&was) == 0);
    } else {
        CHECK(d->copy(d->self, memory, 4, memory, 0, 4) == TVMCC_OK);
    }
    CHECK(d->download_later(d->self, out, memory, 4, 4) == TVMCC_OK);
    CHECK(!out[0]);
    while ((rc = d->poll(d->self)) > 0)
        ;
    CHECK(rc == TVMCC_OK && out[0] == 1 && out[3] == 4);
    for (uint8_t i = 0; i < 100; i++) { /* more than wait at a time: the last one stays */
        CHECK(d->upload(d->self, memory, 0, &i, 1) == TVMCC_OK);
        CHECK(d->download_later(d->self, out, memory, 0, 1) == TVMCC_OK);
    }
    CHECK(d->wait(d->self) == TVMCC_OK && out[0] == 99);
    d->free(d->self, memory);
    tvmrt_device_close(d);
}

static void refuses(Handle context, Handle stream)
{
    static void         *room[1024];
    tvmrt_device_options o = {.struct_bytes = sizeof o,
                              .number = TVMRT_FIRST_DEVICE,
                              .context = context,
                              .stream = stream,
                              .timing = 1};
    const char          *why = NULL;

    CHECK(!tvmrt_device_open_with(kind, &o, room, sizeof room, &why));
    CHECK(why && !strcmp(why, "launches on the caller's stream are not timed"));
    o.timing = 0;
    o.name = "mock";
    CHECK(!tvmrt_device_open_with(kind, &o, room, sizeof room, &why));
    CHECK(why && !strncmp(why, "the caller's context says which device it is", 44));
}

int main(int argc, char **argv)
{
    bool   hip = argc > 1 && !strcmp(argv[1], "rocm");
    Handle context = NULL, stream = NULL, was;

    kind = hip ? TVMCC_DEVICE_ROCM : TVMCC_DEVICE_CUDA;
    if (!find_calls(hip) || my.init(0)) {
        printf("SKIP (no driver)\n");
        return 77;
    }
    CHECK(my.retain(&context, 0) == 0 && my.push(context) == 0);
    CHECK(my.stream_create(&stream, 1) == 0 && my.pop(&was) == 0);
    for (int i = 0; i < 2; i++) {
        shares(context, stream, context);
        shares(NULL, stream, context); /* of the device's primary context */
        shares(context, NULL, context);
    }
    refuses(context, stream);
    CHECK(my.push(context) == 0 && my.stream_wait(stream) == 0); /* they are ours still */
    CHECK(my.stream_destroy(stream) == 0 && my.pop(&was) == 0);
    CHECK(my.release(0) == 0); /* the mock ends the process if something is left */
    return failures != 0;
}
