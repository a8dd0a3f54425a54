/* cuda.c: CUDA as a device, through the driver API, and ROCm, through HIP, which has the same calls
 * by other names, down to those of ROCm 5.2.
 *
 * The few calls we need are declared here.  Memory and kernels live in the device's primary
 * context, which code that uses CUDA's runtime library shares; it is made current for each call and
 * whatever was current before comes back, since contexts belong to threads.  One stream: calls take
 * effect in the order they are made.  Small copies go through pinned memory and do not wait: what
 * comes out is handed on when the stream is found to be done.
 *
 * A recording is a graph captured from the stream.
 */
#include "device.h"

#include <sched.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* Numbers and types of the driver API. */
typedef void    *Handle;
typedef uint64_t Pointer;
enum {
    CAPTURE_MODE_THREAD_LOCAL = 1,
    STREAM_NON_BLOCKING = 1,
    NOT_READY = 600,
    CUDA_INTEGRATED = 18, /* attributes of a device */
    HIP_INTEGRATED = 16,
    JIT_ERROR_LOG_BUFFER = 5,
    JIT_ERROR_LOG_BUFFER_SIZE_BYTES = 6,
    MOST_ARGS = 512,  /* 4 KiB */
    GIVEN_SHARED = 8, /* attribute of a kernel: bytes that a launch may give each block, .. */
    DECLARED_SHARED = 48 << 10, /* .. beyond those that it may have declared */
    STAGING_BYTES = 1 << 20,
    MAX_LATER = 32,
    ROW = 256, /* launches that are timed together; a stream takes about 1000 before it waits */
    HELD_MS = 100
};

/* CALL(id, CUDA's name, HIP's name, parameters): every call returns an error code.  Those with _v2
 * are what the header's names without it stand for. */
#define CALLS(CALL)                                                                             \
    CALL(init, cuInit, hipInit, (uint32_t))                                                     \
    CALL(device_count, cuDeviceGetCount, hipGetDeviceCount, (int *))                            \
    CALL(device_get, cuDeviceGet, hipDeviceGet, (int *, int))                                   \
    CALL(device_name, cuDeviceGetName, hipDeviceGetName, (char *, int, int))                    \
    CALL(device_memory, cuDeviceTotalMem_v2, hipDeviceTotalMem, (size_t *, int))                \
    CALL(device_attribute, cuDeviceGetAttribute, hipDeviceGetAttribute, (int *, int, int))      \
    CALL(retain, cuDevicePrimaryCtxRetain, hipDevicePrimaryCtxRetain, (Handle *, int))          \
    CALL(release, cuDevicePrimaryCtxRelease_v2, hipDevicePrimaryCtxRelease, (int))              \
    CALL(push, cuCtxPushCurrent_v2, hipCtxPushCurrent, (Handle))                                \
    CALL(pop, cuCtxPopCurrent_v2, hipCtxPopCurrent, (Handle *))                                 \
    CALL(error_string, cuGetErrorString, hipGetErrorString, (int, const char **))               \
    CALL(alloc, cuMemAlloc_v2, hipMalloc, (Pointer *, size_t))                                  \
    CALL(free, cuMemFree_v2, hipFree, (Pointer))                                                \
    CALL(alloc_host, cuMemAllocHost_v2, hipMemAllocHost, (void **, size_t))                     \
    CALL(free_host, cuMemFreeHost, hipHostFree, (void *))                                       \
    CALL(copy_in, cuMemcpyHtoDAsync_v2, hipMemcpyHtoDAsync,                                     \
         (Pointer, const void *, size_t, Handle))                                               \
    CALL(copy_out, cuMemcpyDtoHAsync_v2, hipMemcpyDtoHAsync, (void *, Pointer, size_t, Handle)) \
    CALL(copy, cuMemcpyDtoDAsync_v2, hipMemcpyDtoDAsync, (Pointer, Pointer, size_t, Handle))    \
    CALL(load, cuModuleLoadDataEx, hipModuleLoadDataEx,                                         \
         (Handle *, const void *, uint32_t, int *, void **))                                    \
    CALL(unload, cuModuleUnload, hipModuleUnload, (Handle))                                     \
    CALL(function, cuModuleGetFunction, hipModuleGetFunction, (Handle *, Handle, const char *)) \
    CALL(get_attribute, cuFuncGetAttribute, hipFuncGetAttribute, (int *, int, Handle))          \
    CALL(set_attribute, cuFuncSetAttribute, hipFuncSetAttribute, (Handle, int, int))            \
    CALL(launch, cuLaunchKernel, hipModuleLaunchKernel,                                         \
         (Handle, uint32_t, uint32_t, uint32_t, uint32_t, uint32_t, uint32_t, uint32_t, Handle, \
          void **, void **))                                                                    \
    CALL(stream_create, cuStreamCreate, hipStreamCreateWithFlags, (Handle *, uint32_t))         \
    CALL(stream_destroy, cuStreamDestroy_v2, hipStreamDestroy, (Handle))                        \
    CALL(stream_wait, cuStreamSynchronize, hipStreamSynchronize, (Handle))                      \
    CALL(stream_query, cuStreamQuery, hipStreamQuery, (Handle))                                 \
    CALL(capture_begin, cuStreamBeginCapture_v2, hipStreamBeginCapture, (Handle, int))          \
    CALL(capture_end, cuStreamEndCapture, hipStreamEndCapture, (Handle, Handle *))              \
    CALL(instantiate, cuGraphInstantiateWithFlags, hipGraphInstantiateWithFlags,                \
         (Handle *, Handle, unsigned long long))                                                \
    CALL(graph_destroy, cuGraphDestroy, hipGraphDestroy, (Handle))                              \
    CALL(exec_destroy, cuGraphExecDestroy, hipGraphExecDestroy, (Handle))                       \
    CALL(graph_launch, cuGraphLaunch, hipGraphLaunch, (Handle, Handle))

/* ... and those without which launches are not timed. */
#define TIMING_CALLS(CALL)                                                                  \
    CALL(event_create, cuEventCreate, hipEventCreateWithFlags, (Handle *, uint32_t))        \
    CALL(event_destroy, cuEventDestroy_v2, hipEventDestroy, (Handle))                       \
    CALL(event_record, cuEventRecord, hipEventRecord, (Handle, Handle))                     \
    CALL(event_elapsed, cuEventElapsedTime, hipEventElapsedTime, (float *, Handle, Handle)) \
    CALL(host_call, cuLaunchHostFunc, hipLaunchHostFunc, (Handle, void (*)(void *), void *))

typedef struct {
    Handle event;
    bool   first; /* before a row of launches, not behind one */
} Mark;

/* A download that is in the staging memory when the stream is done. */
typedef struct {
    void       *host;
    const char *from;
    size_t      bytes;
} Later;

typedef struct {
    DeviceState state;
    int         device;
    bool        retained, own_stream; /* to be given back */
    bool        grants;               /* some kernel's launches give it memory (cu_grant) */
    Handle      context, stream;
    char       *staging; /* pinned; NULL: none was to be had */
    size_t      staged;  /* bytes of it that are in use */
    Later       later[MAX_LATER];
    uint32_t    nlater;
    /* times of launches */
    bool             capturing, held; /* held: a row is under way, for whose end the stream waits */
    Mark            *marks;
    uint32_t         nmarks, made, room, in_row;
    uint32_t         passed; /* rows that the stream has begun: of the driver's thread */
    _Atomic uint32_t ended;  /* rows that may begin */
#define FIELD(id, cuda, hip, args) int(*id) args;
    CALLS(FIELD) TIMING_CALLS(FIELD)
#undef FIELD
} Cuda;

/* Their places among the driver's calls. */
enum {
#define NUMBER(id, cuda, hip, args) CALL_##id,
    CALLS(NUMBER) TIMING_CALLS(NUMBER)
#undef NUMBER
};

/* TVMCC_OK, or what the call of that number failed with. */
static int32_t check(Cuda *cu, int code, int call)
{
    const char *name = cu->state.driver->calls[call].name;
    char        plain[64];

    if (!code)
        return TVMCC_OK;
    snprintf(plain, sizeof plain, "%.*s", (int)strcspn(name, "_"), name);
    return tvmrt_device_check(&cu->state, code, plain);
}
#define DO(cu, id, ...) check(cu, (cu)->id(__VA_ARGS__), CALL_##id)

static const char *cu_error_text(DeviceState *state, int32_t code)
{
    const char *text = NULL;

    return ((Cuda *)state)->error_string(code, &text) == 0 ? text : NULL;
}

/* HIP's call of that name returns the text. */
static const char *hip_error_text(DeviceState *state, int32_t code)
{
    const char *(*text)(int);

    memcpy(&text, &((Cuda *)state)->error_string, sizeof text);
    return text(code);
}

/* The row of launches, if there is one, may begin. */
static void end_row(Cuda *cu)
{
    if (cu->held)
        atomic_fetch_add(&cu->ended, 1);
    cu->held = false;
    cu->in_row = 0;
}

static int32_t enter(Cuda *cu)
{
    end_row(cu);
    return DO(cu, push, cu->context);
}

static int32_t leave(Cuda *cu, int32_t rc)
{
    Handle was;

    cu->pop(&was);
    return rc;
}

static Pointer pointer(const void *memory, size_t offset)
{
    return (Pointer)(uintptr_t)memory + offset;
}

/* All that was asked for has happened, or failed: the staging memory is free again. */
static int32_t arrive(Cuda *cu, int32_t rc)
{
    for (uint32_t i = 0; i < cu->nlater && !rc; i++)
        memcpy(cu->later[i].host, cu->later[i].from, cu->later[i].bytes);
    cu->nlater = 0;
    cu->staged = 0;
    return rc;
}

static int32_t finish(Cuda *cu)
{
    return arrive(cu, DO(cu, stream_wait, cu->stream));
}

static int32_t cu_wait(void *self)
{
    Cuda   *cu = self;
    int32_t rc = enter(cu);

    return rc ? rc : leave(cu, finish(cu));
}

static int32_t cu_poll(void *self)
{
    Cuda   *cu = self;
    int32_t rc = enter(cu), code;

    if (rc)
        return rc;
    code = cu->stream_query(cu->stream);
    return leave(cu, code == NOT_READY ? 1 : arrive(cu, check(cu, code, CALL_stream_query)));
}

/* ---- memory -------------------------------------------------------------------------------------- */

static int32_t cu_alloc(void *self, size_t bytes, void **memory)
{
    Cuda   *cu = self;
    Pointer at = 0;
    int32_t rc = enter(cu);

    *memory = NULL;
    if (rc)
        return rc;
    rc = DO(cu, alloc, &at, bytes);
    *memory = rc ? NULL : (void *)(uintptr_t)at;
    return leave(cu, rc);
}

static void cu_free(void *self, void *memory)
{
    Cuda *cu = self;

    if (enter(cu))
        return;
    cu->free(pointer(memory, 0));
    leave(cu, 0);
}

/* Part of the staging memory; NULL: there is no room. */
static char *stage(Cuda *cu, size_t bytes)
{
    char *at;

    if (!cu->staging || bytes > STAGING_BYTES - cu->staged)
        return NULL;
    at = cu->staging + cu->staged;
    cu->staged += (bytes + 63) / 64 * 64; /* STAGING_BYTES is a multiple */
    return at;
}

/* The caller may change what `host` points to as soon as this returns. */
static int32_t cu_upload(void *self, void *memory, size_t offset, const void *host, size_t bytes)
{
    Cuda   *cu = self;
    int32_t rc = enter(cu);

    if (rc)
        return rc;
    char *at = stage(cu, bytes);
    if (at)
        host = memcpy(at, host, bytes);
    rc = DO(cu, copy_in, pointer(memory, offset), host, bytes, cu->stream);
    if (!rc && !at)
        rc = finish(cu);
    return leave(cu, rc);
}

/* What comes before arrives first where there is no room left; where there is none at all, the copy
 * happens before this returns if the memory is not pinned. */
static int32_t cu_download_later(void *self, void *host, void *memory, size_t offset, size_t bytes)
{
    Cuda   *cu = self;
    int32_t rc = enter(cu);

    if (rc)
        return rc;
    char *at = cu->nlater < MAX_LATER ? stage(cu, bytes) : NULL;
    if (!at && cu->staged && !(rc = finish(cu)))
        at = stage(cu, bytes);
    if (!rc)
        rc = DO(cu, copy_out, at ? at : host, pointer(memory, offset), bytes, cu->stream);
    if (at && !rc)
        cu->later[cu->nlater++] = (Later){host, at, bytes};
    return leave(cu, rc);
}

static int32_t cu_download(void *self, void *host, void *memory, size_t offset, size_t bytes)
{
    int32_t rc = cu_download_later(self, host, memory, offset, bytes);

    return rc ? rc : cu_wait(self);
}

static int32_t cu_copy(void *self, void *to, size_t to_offset, void *from, size_t from_offset,
                       size_t bytes)
{
    Cuda   *cu = self;
    int32_t rc = enter(cu);

    if (rc)
        return rc;
    return leave(
        cu, DO(cu, copy, pointer(to, to_offset), pointer(from, from_offset), bytes, cu->stream));
}

/* ---- programs ------------------------------------------------------------------------------------ */

/* Machine code or PTX: the driver tells them apart. */
static int32_t cu_module_load(void *self, uint32_t form, const void *code, size_t bytes,
                              const char *options, void **module)
{
    Cuda   *cu = self;
    char    log[256] = "";
    int     words[] = {JIT_ERROR_LOG_BUFFER, JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
    void   *values[] = {log, (void *)(uintptr_t)(sizeof log - 1)};
    int32_t rc = enter(cu);

    (void)form, (void)bytes, (void)options;
    if (rc)
        return rc;
    rc = DO(cu, load, module, code, 2, words, values);
    if (rc && *log) {
        size_t n = strlen(cu->state.error);
        snprintf(cu->state.error + n, sizeof cu->state.error - n, ":\n%s", log);
    }
    if (rc)
        *module = NULL;
    return leave(cu, rc);
}

static void cu_module_free(void *self, void *module)
{
    Cuda *cu = self;

    if (enter(cu))
        return;
    cu->unload(module);
    leave(cu, 0);
}

static int32_t cu_kernel(void *self, void *module, const char *name, void **kernel)
{
    Cuda   *cu = self;
    int32_t rc = enter(cu);

    if (rc)
        return rc;
    rc = DO(cu, function, kernel, module, name);
    if (rc)
        *kernel = NULL;
    return leave(cu, rc);
}

static void cu_kernel_free(void *self, void *kernel)
{
    (void)self, (void)kernel; /* its module's */
}

/* A kernel that shares more than it may declare gets all of it from its launches. */
static int32_t cu_grant(DeviceState *state, const tvmcc_kernel_info *kernel, void *handle)
{
    Cuda *cu = (Cuda *)state;

    if (kernel->shared_bytes <= DECLARED_SHARED)
        return TVMCC_OK;
    int32_t rc = enter(cu);
    if (rc)
        return rc;
    cu->grants = true;
    return leave(cu, DO(cu, set_attribute, handle, GIVEN_SHARED, (int)kernel->shared_bytes));
}

/* ---- times of launches --------------------------------------------------------------------------- */

/* An event stands before a row of launches and one behind each of them: the end of a launch is the
 * beginning of the next.  Pairs would be as exact where the device has what comes next before it
 * can begin, and put twice as many events between kernels; where it has not, either includes what
 * the host takes for a launch, which is as much as small kernels take.  So the stream is held up by
 * a function of the host until a row is there as a whole. */

static uint64_t now_ms(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

/* On a thread of the driver's.  It does not wait for ever: loading a kernel or giving back memory,
 * by whoever else uses the context, may wait for all streams, and the next launch for that. */
static void hold(void *self)
{
    Cuda    *cu = self;
    uint32_t row = ++cu->passed;
    uint64_t from = now_ms();

    while ((int32_t)(atomic_load(&cu->ended) - row) < 0 && now_ms() - from < HELD_MS)
        sched_yield();
}

static int32_t mark(Cuda *cu, bool first)
{
    int32_t rc;

    if (cu->nmarks == cu->made) {
        void *marks = cu->marks;

        if ((rc = tvmrt_device_grow(&cu->state, &marks, cu->made, &cu->room, sizeof *cu->marks)))
            return rc;
        cu->marks = marks;
        if ((rc = DO(cu, event_create, &cu->marks[cu->made].event, 0)))
            return rc;
        cu->made++;
    }
    if ((rc = DO(cu, event_record, cu->marks[cu->nmarks].event, cu->stream)))
        return rc;
    cu->marks[cu->nmarks++].first = first;
    return TVMCC_OK;
}

static int32_t begin_timed(Cuda *cu)
{
    int32_t rc;

    if (cu->in_row == ROW)
        end_row(cu);
    if (cu->held)
        return TVMCC_OK;
    if ((rc = DO(cu, host_call, cu->stream, hold, cu)))
        return rc;
    cu->held = true;
    return mark(cu, true);
}

static int32_t end_timed(Cuda *cu)
{
    int32_t rc = mark(cu, false);

    if (rc)
        return rc;
    cu->in_row++;
    cu->state.launches++;
    return TVMCC_OK;
}

static int32_t cu_launch_times(DeviceState *state, uint32_t n, double *ns)
{
    Cuda    *cu = (Cuda *)state;
    uint32_t at = 0;
    int32_t  rc = enter(cu);

    if (rc)
        return rc;
    for (uint32_t i = 0; i < cu->nmarks && at < n && !rc; i++) {
        float ms = 0;

        if (cu->marks[i].first)
            continue;
        rc = DO(cu, event_elapsed, &ms, cu->marks[i - 1].event, cu->marks[i].event);
        ns[at++] = (double)ms * 1e6;
    }
    return leave(cu, rc);
}

static void cu_forget_times(DeviceState *state)
{
    ((Cuda *)state)->nmarks = 0;
}

/* NULL, or why launches cannot be timed. */
static const char *can_time(const Cuda *cu)
{
    if (cu->state.options.stream)
        return "launches on the caller's stream are not timed";
    return cu->event_create && cu->event_destroy && cu->event_record && cu->event_elapsed &&
                   cu->host_call
               ? NULL
               : "launches cannot be timed: the driver's library is too old";
}

/* ---- launches ------------------------------------------------------------------------------------ */

static int32_t cu_launch(void *self, void *kernel, const uint32_t grid[3], const uint32_t block[3],
                         const tvmcc_arg *args, uint32_t nargs)
{
    Cuda    *cu = self;
    void    *values[MOST_ARGS];
    uint32_t n = 0, shared = 0;
    int      given = 0;

    for (uint32_t i = 0; i < nargs; i++) {
        if (args[i].kind == TVMCC_ARG_LOCAL) {
            shared += args[i].bytes;
            continue;
        }
        if (n == MOST_ARGS)
            return tvmrt_device_check(&cu->state, -1, "a launch of that many arguments");
        /* of a buffer the address is the value */
        values[n++] = args[i].kind == TVMCC_ARG_BUFFER ? (void *)(uintptr_t)&args[i].p
                                                       : (void *)(uintptr_t)args[i].p;
    }
    bool    timed = cu->state.timing && !cu->capturing;
    int32_t rc = timed ? DO(cu, push, cu->context) : enter(cu); /* a row goes on */
    if (rc)
        return rc;
    if (cu->grants && (rc = DO(cu, get_attribute, &given, GIVEN_SHARED, kernel)))
        return leave(cu, rc);
    if (given > DECLARED_SHARED)
        shared += (uint32_t)given;
    if (timed && (rc = begin_timed(cu)))
        return leave(cu, rc);
    rc = DO(cu, launch, kernel, grid[0], grid[1], grid[2], block[0], block[1], block[2], shared,
            cu->stream, values, NULL);
    return leave(cu, timed && !rc ? end_timed(cu) : rc);
}

/* ---- recordings ---------------------------------------------------------------------------------- */

static int32_t cu_record_begin(void *self)
{
    Cuda   *cu = self;
    int32_t rc = enter(cu);

    if (rc)
        return rc;
    rc = finish(cu);
    if (!rc)
        rc = DO(cu, capture_begin, cu->stream, CAPTURE_MODE_THREAD_LOCAL);
    cu->capturing = !rc;
    return leave(cu, rc);
}

static int32_t cu_record_end(void *self, void **recording)
{
    Cuda   *cu = self;
    Handle  graph = NULL;
    int32_t rc = enter(cu);

    *recording = NULL;
    cu->capturing = false;
    if (rc)
        return rc;
    rc = DO(cu, capture_end, cu->stream, &graph);
    if (!rc)
        rc = DO(cu, instantiate, recording, graph, 0);
    if (graph)
        cu->graph_destroy(graph);
    if (rc)
        *recording = NULL;
    return leave(cu, rc);
}

static int32_t cu_replay(void *self, void *recording)
{
    Cuda   *cu = self;
    int32_t rc = enter(cu);

    if (rc)
        return rc;
    return leave(cu, DO(cu, graph_launch, recording, cu->stream));
}

static void cu_recording_free(void *self, void *recording)
{
    Cuda *cu = self;

    if (enter(cu))
        return;
    cu->exec_destroy(recording);
    leave(cu, 0);
}

/* ---- opening ------------------------------------------------------------------------------------- */

/* The caller's context, or that of the device. */
static const char *find_context(Cuda *cu, const tvmrt_device_options *o)
{
    int n = 0, number = o->number == TVMRT_FIRST_DEVICE ? 0 : (int)o->number;

    cu->context = o->context;
    if (cu->context)
        return NULL;
    if (cu->device_count(&n) || n < 1)
        return cu->state.driver->no_device;
    if (number < 0 || number >= n)
        return "no device of that number";
    if (cu->device_get(&cu->device, number) || cu->retain(&cu->context, cu->device))
        return "the device gives no context";
    cu->retained = true;
    return NULL;
}

static const char *cu_open(DeviceState *state)
{
    Cuda       *cu = (Cuda *)state;
    const char *reason = cu->init(0) ? state->driver->no_device : find_context(cu, &state->options);

    if (!reason && state->options.timing)
        reason = can_time(cu);
    if (reason)
        return reason;
    if (enter(cu))
        return "the context cannot be used";
    if (!(cu->stream = state->options.stream)) {
        if (cu->stream_create(&cu->stream, STREAM_NON_BLOCKING))
            cu->stream = NULL;
        cu->own_stream = cu->stream != NULL;
    }
    if (cu->stream && cu->alloc_host((void **)&cu->staging, STAGING_BYTES))
        cu->staging = NULL;
    leave(cu, 0);
    return cu->stream ? NULL : "the device gives no stream";
}

static void cu_close(DeviceState *state)
{
    Cuda *cu = (Cuda *)state;

    if (cu->context && !enter(cu)) {
        for (uint32_t i = 0; i < cu->made; i++)
            cu->event_destroy(cu->marks[i].event);
        if (cu->own_stream)
            cu->stream_destroy(cu->stream);
        if (cu->staging)
            cu->free_host(cu->staging);
        leave(cu, 0);
    }
    if (cu->retained)
        cu->release(cu->device);
    free(cu->marks);
    cu->marks = NULL;
    cu->made = cu->nmarks = 0;
    cu->stream = cu->context = NULL;
    cu->staging = NULL;
    cu->retained = cu->own_stream = false;
}

extern const DeviceDriver tvmrt_rocm_driver;

static uint32_t cu_devices(DeviceState *state, uint32_t n, tvmrt_device_info *out)
{
    Cuda *cu = (Cuda *)state;
    bool  hip = state->driver == &tvmrt_rocm_driver;
    int   count = 0, device, shares = 0;
    int   integrated = hip ? HIP_INTEGRATED : CUDA_INTEGRATED;

    if (cu->init(0) || cu->device_count(&count) || count < 0)
        return 0;
    for (int i = 0; i < count && (uint32_t)i < n; i++) {
        size_t bytes = 0;

        if (cu->device_get(&device, i))
            continue;
        cu->device_name(out[i].name, sizeof out[i].name - 1, device);
        snprintf(out[i].maker, sizeof out[i].maker, hip ? "AMD" : "NVIDIA");
        if (cu->device_memory(&bytes, device) == 0)
            out[i].memory_bytes = bytes;
        if (cu->device_attribute(&shares, integrated, device) == 0 && shares)
            out[i].type = TVMRT_CHIP;
    }
    return (uint32_t)count;
}

static const DeviceCall cuda_calls[] = {
#define CUDA_CALL(id, cuda, hip, args) {#cuda, offsetof(Cuda, id)},
    CALLS(CUDA_CALL) TIMING_CALLS(CUDA_CALL)
#undef CUDA_CALL
};

static const DeviceCall hip_calls[] = {
#define HIP_CALL(id, cuda, hip, args) {#hip, offsetof(Cuda, id)},
    CALLS(HIP_CALL) TIMING_CALLS(HIP_CALL)
#undef HIP_CALL
};

static const char *const hip_libraries[] = {"libamdhip64.so.7", "libamdhip64.so.6",
                                            "libamdhip64.so.5", NULL};

#define FUNCTIONS                         \
    {.alloc = cu_alloc,                   \
     .free = cu_free,                     \
     .upload = cu_upload,                 \
     .download = cu_download,             \
     .copy = cu_copy,                     \
     .module_load = cu_module_load,       \
     .module_free = cu_module_free,       \
     .kernel = cu_kernel,                 \
     .kernel_free = cu_kernel_free,       \
     .launch = cu_launch,                 \
     .wait = cu_wait,                     \
     .download_later = cu_download_later, \
     .poll = cu_poll,                     \
     .record_begin = cu_record_begin,     \
     .record_end = cu_record_end,         \
     .replay = cu_replay,                 \
     .recording_free = cu_recording_free}

const DeviceDriver tvmrt_cuda_driver = {
    .title = "CUDA",
    .library = "libcuda.so.1",
    .no_library = "no libcuda.so.1, which comes with NVIDIA's driver",
    .no_call = "libcuda.so.1 lacks a function: NVIDIA's driver is older than CUDA 11.4",
    .no_device = "no CUDA device",
    .bytes = sizeof(Cuda),
    .least = 1,
    .shares = true,
    .ncalls = CALL_event_create,
    .nmore = sizeof cuda_calls / sizeof *cuda_calls - CALL_event_create,
    .calls = cuda_calls,
    .open = cu_open,
    .close = cu_close,
    .devices = cu_devices,
    .launch_times = cu_launch_times,
    .forget_times = cu_forget_times,
    .error_text = cu_error_text,
    .grant = cu_grant,
    .functions = FUNCTIONS,
};

const DeviceDriver tvmrt_rocm_driver = {
    .title = "ROCm",
    .library = "libamdhip64.so",
    .others = hip_libraries,
    .no_library = "no libamdhip64.so, which comes with AMD's ROCm",
    .no_call = "libamdhip64.so lacks a function: it is older than ROCm 5.2",
    .no_device = "no ROCm device",
    .bytes = sizeof(Cuda),
    .least = 1,
    .shares = true,
    .ncalls = CALL_event_create,
    .nmore = sizeof hip_calls / sizeof *hip_calls - CALL_event_create,
    .calls = hip_calls,
    .open = cu_open,
    .close = cu_close,
    .devices = cu_devices,
    .launch_times = cu_launch_times,
    .forget_times = cu_forget_times,
    .error_text = hip_error_text,
    .functions = FUNCTIONS,
};
