/* cuda.c: CUDA as a device, through the driver API.
 *
 * The few calls we need are declared here.  Memory and kernels live in the device's primary
 * context, which code that uses CUDA's runtime library shares; it is made current for each call and
 * whatever was current before comes back, since contexts belong to threads.  One stream: calls take
 * effect in the order they are made.  Small uploads go through pinned memory and do not wait.
 *
 * A recording is a graph captured from the stream.
 */
#include "device.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

/* Numbers and types of the driver API. */
typedef void    *Handle;
typedef uint64_t Pointer;
enum {
    CAPTURE_MODE_THREAD_LOCAL = 1,
    STREAM_NON_BLOCKING = 1,
    NOT_READY = 600,
    ATTRIBUTE_INTEGRATED = 18,
    JIT_ERROR_LOG_BUFFER = 5,
    JIT_ERROR_LOG_BUFFER_SIZE_BYTES = 6,
    MOST_ARGS = 512, /* 4 KiB */
    STAGING_BYTES = 1 << 20
};

/* CALL(name, parameters): every call returns an error code.  Those with _v2 are what the header's
 * names without it stand for. */
#define CALLS(CALL)                                                                           \
    CALL(cuInit, (uint32_t))                                                                  \
    CALL(cuDeviceGetCount, (int *))                                                           \
    CALL(cuDeviceGet, (int *, int))                                                           \
    CALL(cuDeviceGetName, (char *, int, int))                                                 \
    CALL(cuDeviceTotalMem_v2, (size_t *, int))                                                \
    CALL(cuDeviceGetAttribute, (int *, int, int))                                             \
    CALL(cuDevicePrimaryCtxRetain, (Handle *, int))                                           \
    CALL(cuDevicePrimaryCtxRelease_v2, (int))                                                 \
    CALL(cuCtxPushCurrent_v2, (Handle))                                                       \
    CALL(cuCtxPopCurrent_v2, (Handle *))                                                      \
    CALL(cuGetErrorString, (int, const char **))                                              \
    CALL(cuMemAlloc_v2, (Pointer *, size_t))                                                  \
    CALL(cuMemFree_v2, (Pointer))                                                             \
    CALL(cuMemAllocHost_v2, (void **, size_t))                                                \
    CALL(cuMemFreeHost, (void *))                                                             \
    CALL(cuMemcpyHtoDAsync_v2, (Pointer, const void *, size_t, Handle))                       \
    CALL(cuMemcpyDtoHAsync_v2, (void *, Pointer, size_t, Handle))                             \
    CALL(cuMemcpyDtoDAsync_v2, (Pointer, Pointer, size_t, Handle))                            \
    CALL(cuModuleLoadDataEx, (Handle *, const void *, uint32_t, int *, void **))              \
    CALL(cuModuleUnload, (Handle))                                                            \
    CALL(cuModuleGetFunction, (Handle *, Handle, const char *))                               \
    CALL(cuLaunchKernel, (Handle, uint32_t, uint32_t, uint32_t, uint32_t, uint32_t, uint32_t, \
                          uint32_t, Handle, void **, void **))                                \
    CALL(cuStreamCreate, (Handle *, uint32_t))                                                \
    CALL(cuStreamDestroy_v2, (Handle))                                                        \
    CALL(cuStreamSynchronize, (Handle))                                                       \
    CALL(cuStreamQuery, (Handle))                                                             \
    CALL(cuStreamBeginCapture_v2, (Handle, int))                                              \
    CALL(cuStreamEndCapture, (Handle, Handle *))                                              \
    CALL(cuGraphInstantiateWithFlags, (Handle *, Handle, unsigned long long))                 \
    CALL(cuGraphDestroy, (Handle))                                                            \
    CALL(cuGraphExecDestroy, (Handle))                                                        \
    CALL(cuGraphLaunch, (Handle, Handle))

typedef struct {
    DeviceState state;
    int         device;
    bool        retained, own_stream; /* to be given back */
    Handle      context, stream;
    char       *staging; /* pinned; NULL: none was to be had */
    size_t      staged;  /* bytes of it that copies may still read */
#define FIELD(name, args) int(*name) args;
    CALLS(FIELD)
} Cuda;

static int32_t check(Cuda *cu, int code, const char *what)
{
    return tvmrt_device_check(&cu->state, code, what);
}

static const char *cu_error_text(DeviceState *state, int32_t code)
{
    const char *text = NULL;

    return ((Cuda *)state)->cuGetErrorString(code, &text) == 0 ? text : NULL;
}

static int32_t enter(Cuda *cu)
{
    return check(cu, cu->cuCtxPushCurrent_v2(cu->context), "cuCtxPushCurrent");
}

static int32_t leave(Cuda *cu, int32_t rc)
{
    Handle was;

    cu->cuCtxPopCurrent_v2(&was);
    return rc;
}

static Pointer pointer(const void *memory, size_t offset)
{
    return (Pointer)(uintptr_t)memory + offset;
}

/* All that was asked for has happened: the staging memory is free again. */
static int32_t finish(Cuda *cu)
{
    int32_t rc = check(cu, cu->cuStreamSynchronize(cu->stream), "cuStreamSynchronize");

    cu->staged = 0;
    return rc;
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
    code = cu->cuStreamQuery(cu->stream);
    if (!code)
        cu->staged = 0;
    return leave(cu, code == NOT_READY ? 1 : check(cu, code, "cuStreamQuery"));
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
    rc = check(cu, cu->cuMemAlloc_v2(&at, bytes), "cuMemAlloc");
    *memory = rc ? NULL : (void *)(uintptr_t)at;
    return leave(cu, rc);
}

static void cu_free(void *self, void *memory)
{
    Cuda *cu = self;

    if (enter(cu))
        return;
    cu->cuMemFree_v2(pointer(memory, 0));
    leave(cu, 0);
}

/* The caller may change what `host` points to as soon as this returns. */
static int32_t cu_upload(void *self, void *memory, size_t offset, const void *host, size_t bytes)
{
    Cuda   *cu = self;
    int32_t rc = enter(cu);

    if (rc)
        return rc;
    bool staged = cu->staging && bytes <= STAGING_BYTES - cu->staged;
    if (staged) {
        host = memcpy(cu->staging + cu->staged, host, bytes);
        cu->staged += (bytes + 63) / 64 * 64;
        if (cu->staged > STAGING_BYTES)
            cu->staged = STAGING_BYTES;
    }
    rc = check(cu, cu->cuMemcpyHtoDAsync_v2(pointer(memory, offset), host, bytes, cu->stream),
               "cuMemcpyHtoDAsync");
    if (!rc && !staged)
        rc = finish(cu);
    return leave(cu, rc);
}

/* Into memory that is not pinned the copy happens before this returns. */
static int32_t cu_download_later(void *self, void *host, void *memory, size_t offset, size_t bytes)
{
    Cuda   *cu = self;
    int32_t rc = enter(cu);

    if (rc)
        return rc;
    return leave(
        cu, check(cu, cu->cuMemcpyDtoHAsync_v2(host, pointer(memory, offset), bytes, cu->stream),
                  "cuMemcpyDtoHAsync"));
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
    return leave(cu, check(cu,
                           cu->cuMemcpyDtoDAsync_v2(pointer(to, to_offset),
                                                    pointer(from, from_offset), bytes, cu->stream),
                           "cuMemcpyDtoDAsync"));
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
    rc = check(cu, cu->cuModuleLoadDataEx(module, code, 2, words, values), "cuModuleLoadDataEx");
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
    cu->cuModuleUnload(module);
    leave(cu, 0);
}

static int32_t cu_kernel(void *self, void *module, const char *name, void **kernel)
{
    Cuda   *cu = self;
    int32_t rc = enter(cu);

    if (rc)
        return rc;
    rc = check(cu, cu->cuModuleGetFunction(kernel, module, name), name);
    if (rc)
        *kernel = NULL;
    return leave(cu, rc);
}

static void cu_kernel_free(void *self, void *kernel)
{
    (void)self, (void)kernel; /* its module's */
}

static int32_t cu_launch(void *self, void *kernel, const uint32_t grid[3], const uint32_t block[3],
                         const tvmcc_arg *args, uint32_t nargs)
{
    Cuda    *cu = self;
    void    *values[MOST_ARGS];
    uint32_t n = 0, shared = 0;

    for (uint32_t i = 0; i < nargs; i++) {
        if (args[i].kind == TVMCC_ARG_LOCAL) {
            shared += args[i].bytes;
            continue;
        }
        if (n == MOST_ARGS)
            return check(cu, -1, "a launch of that many arguments");
        /* of a buffer the address is the value */
        values[n++] = args[i].kind == TVMCC_ARG_BUFFER ? (void *)(uintptr_t)&args[i].p
                                                       : (void *)(uintptr_t)args[i].p;
    }
    int32_t rc = enter(cu);
    if (rc)
        return rc;
    return leave(cu, check(cu,
                           cu->cuLaunchKernel(kernel, grid[0], grid[1], grid[2], block[0], block[1],
                                              block[2], shared, cu->stream, values, NULL),
                           "cuLaunchKernel"));
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
        rc = check(cu, cu->cuStreamBeginCapture_v2(cu->stream, CAPTURE_MODE_THREAD_LOCAL),
                   "cuStreamBeginCapture");
    return leave(cu, rc);
}

static int32_t cu_record_end(void *self, void **recording)
{
    Cuda   *cu = self;
    Handle  graph = NULL;
    int32_t rc = enter(cu);

    *recording = NULL;
    if (rc)
        return rc;
    rc = check(cu, cu->cuStreamEndCapture(cu->stream, &graph), "cuStreamEndCapture");
    if (!rc)
        rc = check(cu, cu->cuGraphInstantiateWithFlags(recording, graph, 0),
                   "cuGraphInstantiateWithFlags");
    if (graph)
        cu->cuGraphDestroy(graph);
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
    return leave(cu, check(cu, cu->cuGraphLaunch(recording, cu->stream), "cuGraphLaunch"));
}

static void cu_recording_free(void *self, void *recording)
{
    Cuda *cu = self;

    if (enter(cu))
        return;
    cu->cuGraphExecDestroy(recording);
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
    if (cu->cuDeviceGetCount(&n) || n < 1)
        return cu->state.driver->no_device;
    if (number < 0 || number >= n)
        return "no CUDA device of that number";
    if (cu->cuDeviceGet(&cu->device, number) ||
        cu->cuDevicePrimaryCtxRetain(&cu->context, cu->device))
        return "no CUDA context";
    cu->retained = true;
    return NULL;
}

static const char *cu_open(DeviceState *state)
{
    Cuda       *cu = (Cuda *)state;
    const char *reason =
        cu->cuInit(0) ? state->driver->no_device : find_context(cu, &state->options);

    if (reason)
        return reason;
    if (enter(cu))
        return "the CUDA context cannot be used";
    if (!(cu->stream = state->options.stream)) {
        if (cu->cuStreamCreate(&cu->stream, STREAM_NON_BLOCKING))
            cu->stream = NULL;
        cu->own_stream = cu->stream != NULL;
    }
    if (cu->stream && cu->cuMemAllocHost_v2((void **)&cu->staging, STAGING_BYTES))
        cu->staging = NULL;
    leave(cu, 0);
    return cu->stream ? NULL : "no CUDA stream";
}

static void cu_close(DeviceState *state)
{
    Cuda *cu = (Cuda *)state;

    if (cu->context && !enter(cu)) {
        if (cu->staged)
            finish(cu); /* copies may still read it */
        if (cu->own_stream)
            cu->cuStreamDestroy_v2(cu->stream);
        if (cu->staging)
            cu->cuMemFreeHost(cu->staging);
        leave(cu, 0);
    }
    if (cu->retained)
        cu->cuDevicePrimaryCtxRelease_v2(cu->device);
    cu->stream = cu->context = NULL;
    cu->staging = NULL;
    cu->retained = cu->own_stream = false;
}

static uint32_t cu_devices(DeviceState *state, uint32_t n, tvmrt_device_info *out)
{
    Cuda *cu = (Cuda *)state;
    int   count = 0, device, shares = 0;

    if (cu->cuInit(0) || cu->cuDeviceGetCount(&count) || count < 0)
        return 0;
    for (int i = 0; i < count && (uint32_t)i < n; i++) {
        size_t bytes = 0;

        if (cu->cuDeviceGet(&device, i))
            continue;
        cu->cuDeviceGetName(out[i].name, sizeof out[i].name - 1, device);
        snprintf(out[i].maker, sizeof out[i].maker, "NVIDIA");
        if (cu->cuDeviceTotalMem_v2(&bytes, device) == 0)
            out[i].memory_bytes = bytes;
        if (cu->cuDeviceGetAttribute(&shares, ATTRIBUTE_INTEGRATED, device) == 0 && shares)
            out[i].type = TVMRT_CHIP;
    }
    return (uint32_t)count;
}

static const DeviceCall calls[] = {
#define ROW(name, args) {#name, offsetof(Cuda, name)},
    CALLS(ROW)};

const DeviceDriver tvmrt_cuda_driver = {
    .title = "CUDA",
    .library = "libcuda.so.1",
    .no_library = "no libcuda.so.1, which comes with NVIDIA's driver",
    .no_call = "libcuda.so.1 lacks a function: NVIDIA's driver is older than CUDA 11.4",
    .no_device = "no CUDA device",
    .bytes = sizeof(Cuda),
    .least = 1,
    .shares = true,
    .ncalls = sizeof calls / sizeof *calls,
    .calls = calls,
    .open = cu_open,
    .close = cu_close,
    .devices = cu_devices,
    .error_text = cu_error_text,
    .functions = {.alloc = cu_alloc,
                  .free = cu_free,
                  .upload = cu_upload,
                  .download = cu_download,
                  .copy = cu_copy,
                  .module_load = cu_module_load,
                  .module_free = cu_module_free,
                  .kernel = cu_kernel,
                  .kernel_free = cu_kernel_free,
                  .launch = cu_launch,
                  .wait = cu_wait,
                  .download_later = cu_download_later,
                  .poll = cu_poll,
                  .record_begin = cu_record_begin,
                  .record_end = cu_record_end,
                  .replay = cu_replay,
                  .recording_free = cu_recording_free},
};
