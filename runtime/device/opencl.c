/* opencl.c: OpenCL as a device.
 *
 * The few calls we need are declared here.  One context and one in-order queue: calls take effect
 * in the order they are made.  Programs come as source or as the binary of this device.
 */
#include "device.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

/* Numbers and types of the OpenCL 1.2 ABI. */
typedef void *Handle;
enum {
    CL_DEVICE_TYPE_GPU = 4,
    CL_MEM_READ_WRITE = 1,
    CL_PROGRAM_BUILD_LOG = 0x1183,
    CL_DEVICE_TYPE = 0x1000,
    CL_DEVICE_SINGLE_FP_CONFIG = 0x101b,
    CL_DEVICE_MEMORY = 0x101f,
    CL_DEVICE_NAME = 0x102b,
    CL_DEVICE_VENDOR = 0x102c,
    CL_DEVICE_VERSION = 0x102f,
    CL_DEVICE_SHARES = 0x1035, /* its memory with the host */
    CL_FP_EXACT_DIVIDE_SQRT = 1 << 7,
    CL_CONTEXT_DEVICES = 0x1081,
    CL_QUEUE_CONTEXT = 0x1090,
    CL_QUEUE_DEVICE = 0x1091,
    CL_QUEUE_PROPERTIES = 0x1093,
    CL_QUEUE_OUT_OF_ORDER = 1,
    CL_QUEUE_PROFILING = 2,
    CL_EVENT_STATUS = 0x11d3,
    CL_PROFILING_START = 0x1282,
    CL_PROFILING_END = 0x1283,
    MAX_PLATFORMS = 16,
    MAX_DEVICES = 16,
    MAX_OPTIONS = 256,
    CL_COMPILER_NOT_AVAILABLE = -3,
    CL_MEM_OBJECT_ALLOCATION_FAILURE = -4,
    CL_OUT_OF_RESOURCES = -5,
    CL_BUILD_FAILURE = -11,
    CL_INVALID_BINARY = -42,
    MIN_BUFFER = 16 /* a buffer of 0 bytes is an error */
};
#define CL_DEVICE_TYPE_ALL 0xffffffffu

/* CALL(name, parameters): every call returns an error code. */
#define CALLS(CALL)                                                                                \
    CALL(clGetPlatformIDs, (uint32_t, Handle *, uint32_t *))                                       \
    CALL(clGetDeviceIDs, (Handle, uint64_t, uint32_t, Handle *, uint32_t *))                       \
    CALL(clGetDeviceInfo, (Handle, uint32_t, size_t, void *, size_t *))                            \
    CALL(clGetContextInfo, (Handle, uint32_t, size_t, void *, size_t *))                           \
    CALL(clGetCommandQueueInfo, (Handle, uint32_t, size_t, void *, size_t *))                      \
    CALL(clRetainContext, (Handle))                                                                \
    CALL(clRetainCommandQueue, (Handle))                                                           \
    CALL(clReleaseContext, (Handle))                                                               \
    CALL(clReleaseCommandQueue, (Handle))                                                          \
    CALL(clReleaseMemObject, (Handle))                                                             \
    CALL(clReleaseProgram, (Handle))                                                               \
    CALL(clReleaseKernel, (Handle))                                                                \
    CALL(clEnqueueWriteBuffer, (Handle, Handle, uint32_t, size_t, size_t, const void *, uint32_t,  \
                                const Handle *, Handle *))                                         \
    CALL(clEnqueueReadBuffer,                                                                      \
         (Handle, Handle, uint32_t, size_t, size_t, void *, uint32_t, const Handle *, Handle *))   \
    CALL(clEnqueueCopyBuffer,                                                                      \
         (Handle, Handle, Handle, size_t, size_t, size_t, uint32_t, const Handle *, Handle *))     \
    CALL(clBuildProgram, (Handle, uint32_t, const Handle *, const char *, void (*)(void), void *)) \
    CALL(clGetProgramBuildInfo, (Handle, Handle, uint32_t, size_t, void *, size_t *))              \
    CALL(clSetKernelArg, (Handle, uint32_t, size_t, const void *))                                 \
    CALL(clEnqueueNDRangeKernel, (Handle, Handle, uint32_t, const size_t *, const size_t *,        \
                                  const size_t *, uint32_t, const Handle *, Handle *))             \
    CALL(clFinish, (Handle))                                                                       \
    CALL(clFlush, (Handle))                                                                        \
    CALL(clEnqueueMarkerWithWaitList, (Handle, uint32_t, const Handle *, Handle *))                \
    CALL(clGetEventInfo, (Handle, uint32_t, size_t, void *, size_t *))                             \
    CALL(clGetEventProfilingInfo, (Handle, uint32_t, size_t, void *, size_t *))                    \
    CALL(clReleaseEvent, (Handle))

/* MAKE(name, parameters): these return a handle, the error code goes through the last argument. */
#define MAKES(MAKE)                                                                               \
    MAKE(clCreateContext,                                                                         \
         (const void *, uint32_t, const Handle *, void (*)(void), void *, int32_t *))             \
    MAKE(clCreateCommandQueue, (Handle, Handle, uint64_t, int32_t *))                             \
    MAKE(clCreateBuffer, (Handle, uint64_t, size_t, void *, int32_t *))                           \
    MAKE(clCreateProgramWithSource, (Handle, uint32_t, const char **, const size_t *, int32_t *)) \
    MAKE(clCreateProgramWithBinary, (Handle, uint32_t, const Handle *, const size_t *,            \
                                     const uint8_t **, int32_t *, int32_t *))                     \
    MAKE(clCreateKernel, (Handle, const char *, int32_t *))

typedef struct {
    DeviceState state;
    Handle      device, context, queue;
    Handle      mark;  /* event behind all that was asked for; NULL: there is none */
    Handle     *timed; /* events of state.launches */
    uint32_t    room;
#define FIELD_CALL(name, args) int32_t(*name) args;
#define FIELD_MAKE(name, args) Handle(*name) args;
    CALLS(FIELD_CALL)
    MAKES(FIELD_MAKE)
} OpenCl;

/* What a product can meet with on a device that it is not for. */
static const char *cl_error_text(DeviceState *state, int32_t code)
{
    (void)state;
    switch (code) {
    case CL_MEM_OBJECT_ALLOCATION_FAILURE: return "out of the device's memory";
    case CL_OUT_OF_RESOURCES: return "out of the device's resources";
    case CL_COMPILER_NOT_AVAILABLE: return "the device takes binaries alone";
    case CL_BUILD_FAILURE: return "the program does not build";
    case CL_INVALID_BINARY: return "the binary is for another device";
    default: return NULL;
    }
}

static int32_t check(OpenCl *cl, int32_t code, const char *what)
{
    return tvmrt_device_check(&cl->state, code, what);
}

/* Before something new is asked for. */
static void forget_mark(OpenCl *cl)
{
    if (cl->mark)
        cl->clReleaseEvent(cl->mark);
    cl->mark = NULL;
}

static int32_t cl_alloc(void *self, size_t bytes, void **memory)
{
    OpenCl *cl = self;
    int32_t code = 0;

    *memory = cl->clCreateBuffer(cl->context, CL_MEM_READ_WRITE, bytes, NULL, &code);
    return check(cl, code, "clCreateBuffer");
}

static void cl_free(void *self, void *memory)
{
    OpenCl *cl = self;

    cl->clReleaseMemObject(memory);
}

static int32_t cl_upload(void *self, void *memory, size_t offset, const void *host, size_t bytes)
{
    OpenCl *cl = self;

    forget_mark(cl);
    return check(cl,
                 cl->clEnqueueWriteBuffer(cl->queue, memory, 1, offset, bytes, host, 0, NULL, NULL),
                 "clEnqueueWriteBuffer");
}

static int32_t read_buffer(OpenCl *cl, void *host, void *memory, size_t offset, size_t bytes,
                           bool at_once)
{
    forget_mark(cl);
    return check(
        cl, cl->clEnqueueReadBuffer(cl->queue, memory, at_once, offset, bytes, host, 0, NULL, NULL),
        "clEnqueueReadBuffer");
}

static int32_t cl_download(void *self, void *host, void *memory, size_t offset, size_t bytes)
{
    return read_buffer(self, host, memory, offset, bytes, true);
}

static int32_t cl_download_later(void *self, void *host, void *memory, size_t offset, size_t bytes)
{
    return read_buffer(self, host, memory, offset, bytes, false);
}

static int32_t cl_copy(void *self, void *to, size_t to_offset, void *from, size_t from_offset,
                       size_t bytes)
{
    OpenCl *cl = self;

    forget_mark(cl);
    return check(
        cl,
        cl->clEnqueueCopyBuffer(cl->queue, from, to, from_offset, to_offset, bytes, 0, NULL, NULL),
        "clEnqueueCopyBuffer");
}

static void note_build_log(OpenCl *cl, Handle program)
{
    size_t n = strlen(cl->state.error), got = 0;

    cl->state.error[n++] = ':';
    cl->state.error[n++] = '\n';
    cl->state.error[n] = 0;
    /* a log longer than the room is an error of the call: it then stays empty */
    if (cl->clGetProgramBuildInfo(program, cl->device, CL_PROGRAM_BUILD_LOG,
                                  sizeof cl->state.error - n - 1, cl->state.error + n, &got) != 0)
        cl->state.error[n] = 0;
    cl->state.error[sizeof cl->state.error - 1] = 0;
}

static bool has_text(const char *text, size_t bytes, const char *what)
{
    size_t n = strlen(what);

    for (size_t i = 0; i + n <= bytes; i++)
        if (!memcmp(text + i, what, n))
            return true;
    return false;
}

/* A product names the least version of the language that it needs.  What only OpenCL C 3.0 may have
 * (products of bytes) its text asks for by macros, which are there if that version is named. */
static const char *name_version(OpenCl *cl, const char *source, size_t bytes, const char *options)
{
    static const char least[] = "-cl-std=CL1.2", later[] = "-cl-std=CL3.0";
    char              version[256] = "";

    if (strcmp(options, least) != 0 || !has_text(source, bytes, "__opencl_c_"))
        return options;
    cl->clGetDeviceInfo(cl->device, CL_DEVICE_VERSION, sizeof version, version, NULL);
    return strncmp(version, "OpenCL 3.", 9) ? options : later;
}

/* Quotients and roots of f32 may be wrong by 2.5 and 3 units in the last place where a program does
 * not ask for exact ones, which not every device has. */
static const char *ask_for_exact(OpenCl *cl, const char *options, char room[MAX_OPTIONS])
{
    static const char exact[] = " -cl-fp32-correctly-rounded-divide-sqrt";
    uint64_t          config = 0;

    cl->clGetDeviceInfo(cl->device, CL_DEVICE_SINGLE_FP_CONFIG, sizeof config, &config, NULL);
    if (!(config & CL_FP_EXACT_DIVIDE_SQRT) || strlen(options) + sizeof exact > MAX_OPTIONS)
        return options;
    strcpy(room, options);
    return strcat(room, exact);
}

static int32_t cl_module_load(void *self, uint32_t form, const void *code, size_t bytes,
                              const char *options, void **module)
{
    OpenCl        *cl = self;
    const char    *source = code;
    const uint8_t *binary = code;
    Handle         program;
    int32_t        rc = 0, status = 0;
    char           room[MAX_OPTIONS];

    if (form == TVMCC_CODE_SOURCE) {
        program = cl->clCreateProgramWithSource(cl->context, 1, &source, &bytes, &rc);
        options = ask_for_exact(cl, name_version(cl, source, bytes, options), room);
    } else {
        program = cl->clCreateProgramWithBinary(cl->context, 1, &cl->device, &bytes, &binary,
                                                &status, &rc);
    }
    if (rc || status) {
        if (!rc)
            cl->clReleaseProgram(program);
        return check(cl, rc ? rc : status,
                     form == TVMCC_CODE_SOURCE ? "clCreateProgramWithSource"
                                               : "clCreateProgramWithBinary");
    }
    rc = check(cl, cl->clBuildProgram(program, 1, &cl->device, options, NULL, NULL),
               "clBuildProgram");
    if (rc) {
        note_build_log(cl, program);
        cl->clReleaseProgram(program);
        return rc;
    }
    *module = program;
    return TVMCC_OK;
}

static void cl_module_free(void *self, void *module)
{
    OpenCl *cl = self;

    cl->clReleaseProgram(module);
}

static int32_t cl_kernel(void *self, void *module, const char *name, void **kernel)
{
    OpenCl *cl = self;
    int32_t code = 0;

    *kernel = cl->clCreateKernel(module, name, &code);
    return check(cl, code, name);
}

static void cl_kernel_free(void *self, void *kernel)
{
    OpenCl *cl = self;

    cl->clReleaseKernel(kernel);
}

/* ---- times of launches: each one's event tells when it began and ended --------------------- */

static int32_t new_timed(OpenCl *cl, Handle **event)
{
    void   *all = cl->timed;
    int32_t rc =
        tvmrt_device_grow(&cl->state, &all, cl->state.launches, &cl->room, sizeof *cl->timed);

    cl->timed = all;
    if (!rc)
        *event = &cl->timed[cl->state.launches];
    return rc;
}

static int32_t cl_launch_times(DeviceState *state, uint32_t n, double *ns)
{
    OpenCl *cl = (OpenCl *)state;

    for (uint32_t i = 0; i < n; i++) {
        uint64_t from = 0, to = 0;
        int32_t  code =
            cl->clGetEventProfilingInfo(cl->timed[i], CL_PROFILING_START, sizeof from, &from, NULL);
        if (!code)
            code =
                cl->clGetEventProfilingInfo(cl->timed[i], CL_PROFILING_END, sizeof to, &to, NULL);
        if (code)
            return check(cl, code, "clGetEventProfilingInfo");
        ns[i] = (double)(to - from);
    }
    return TVMCC_OK;
}

static void cl_forget_times(DeviceState *state)
{
    OpenCl *cl = (OpenCl *)state;

    for (uint32_t i = 0; i < state->launches; i++)
        cl->clReleaseEvent(cl->timed[i]);
    state->launches = 0;
}

/* ---- launches ------------------------------------------------------------------------------ */

static int32_t cl_launch(void *self, void *kernel, const uint32_t grid[3], const uint32_t block[3],
                         const tvmcc_arg *args, uint32_t nargs)
{
    OpenCl *cl = self;
    size_t  global[3], local[3];

    forget_mark(cl);
    for (uint32_t i = 0; i < nargs; i++) {
        const tvmcc_arg *a = &args[i];
        int32_t          code;

        if (a->kind == TVMCC_ARG_BUFFER)
            code = cl->clSetKernelArg(kernel, i, sizeof a->p, &a->p);
        else
            code =
                cl->clSetKernelArg(kernel, i, a->bytes, a->kind == TVMCC_ARG_LOCAL ? NULL : a->p);
        if (code)
            return check(cl, code, "clSetKernelArg");
    }
    for (int i = 0; i < 3; i++) {
        local[i] = block[i];
        global[i] = (size_t)grid[i] * block[i];
    }
    Handle *event = NULL;
    int32_t rc = cl->state.timing ? new_timed(cl, &event) : TVMCC_OK;

    if (!rc)
        rc = check(
            cl,
            cl->clEnqueueNDRangeKernel(cl->queue, kernel, 3, NULL, global, local, 0, NULL, event),
            "clEnqueueNDRangeKernel");
    cl->state.launches += event && !rc;
    return rc;
}

static int32_t cl_wait(void *self)
{
    OpenCl *cl = self;

    forget_mark(cl);
    return check(cl, cl->clFinish(cl->queue), "clFinish");
}

static int32_t new_mark(OpenCl *cl)
{
    int32_t rc = check(cl, cl->clEnqueueMarkerWithWaitList(cl->queue, 0, NULL, &cl->mark),
                       "clEnqueueMarkerWithWaitList");

    if (rc)
        cl->mark = NULL;
    return rc ? rc : check(cl, cl->clFlush(cl->queue), "clFlush");
}

static int32_t cl_poll(void *self)
{
    OpenCl *cl = self;
    int32_t status = 0, rc = cl->mark ? TVMCC_OK : new_mark(cl);

    if (!rc)
        rc = check(cl, cl->clGetEventInfo(cl->mark, CL_EVENT_STATUS, sizeof status, &status, NULL),
                   "clGetEventInfo");
    if (!rc && status > 0)
        return 1; /* queued, submitted or running */
    forget_mark(cl);
    return rc ? rc : check(cl, status, "a command");
}

/* ---- opening ------------------------------------------------------------------------------ */

/* A GPU of any platform, else any device. */
static int find_first(OpenCl *cl, uint32_t n, const Handle *platforms)
{
    static const uint32_t types[] = {CL_DEVICE_TYPE_GPU, CL_DEVICE_TYPE_ALL};
    uint32_t              found = 0;

    for (size_t t = 0; t < sizeof types / sizeof *types; t++)
        for (uint32_t i = 0; i < n; i++)
            if (cl->clGetDeviceIDs(platforms[i], types[t], 1, &cl->device, &found) == 0 && found)
                return 1;
    return 0;
}

/* Device `number` of all platforms, as cl_names counts them. */
static int find_device(OpenCl *cl, uint32_t number)
{
    Handle   platforms[MAX_PLATFORMS], devices[MAX_DEVICES];
    uint32_t n = 0, found = 0;

    if (cl->clGetPlatformIDs(MAX_PLATFORMS, platforms, &n) != 0)
        return 0;
    n = n < MAX_PLATFORMS ? n : MAX_PLATFORMS;
    if (number == TVMRT_FIRST_DEVICE)
        return find_first(cl, n, platforms);
    for (uint32_t i = 0; i < n; i++) {
        if (cl->clGetDeviceIDs(platforms[i], CL_DEVICE_TYPE_ALL, MAX_DEVICES, devices, &found) != 0)
            continue;
        found = found < MAX_DEVICES ? found : MAX_DEVICES;
        if (number < found) {
            cl->device = devices[number];
            return 1;
        }
        number -= found;
    }
    return 0;
}

/* The caller's queue, or one of the caller's context. */
static const char *use_callers(OpenCl *cl, const tvmrt_device_options *o)
{
    Handle   context = o->context, devices[MAX_DEVICES];
    uint64_t properties = 0;
    size_t   bytes = 0;

    if (o->stream) {
        if (cl->clGetCommandQueueInfo(o->stream, CL_QUEUE_PROPERTIES, sizeof properties,
                                      &properties, NULL) ||
            cl->clGetCommandQueueInfo(o->stream, CL_QUEUE_DEVICE, sizeof cl->device, &cl->device,
                                      NULL) ||
            cl->clGetCommandQueueInfo(o->stream, CL_QUEUE_CONTEXT, sizeof context, &context, NULL))
            return "the OpenCL queue cannot be used";
        if (properties & CL_QUEUE_OUT_OF_ORDER)
            return "the OpenCL queue is out of order";
        if (o->timing && !(properties & CL_QUEUE_PROFILING))
            return "launches cannot be timed: the OpenCL queue was made without profiling";
        if (o->context && o->context != context)
            return "the OpenCL queue is of another context";
    } else if (cl->clGetContextInfo(context, CL_CONTEXT_DEVICES, sizeof devices, devices, &bytes) ||
               !bytes) {
        return "the OpenCL context cannot be used";
    } else {
        cl->device = devices[0];
    }
    if (cl->clRetainContext(context))
        return "the OpenCL context cannot be used";
    cl->context = context;
    if (o->stream && cl->clRetainCommandQueue(o->stream))
        return "the OpenCL queue cannot be used";
    cl->queue = o->stream;
    return NULL;
}

static const char *own_context(OpenCl *cl, uint32_t number)
{
    int32_t code = 0;

    if (!find_device(cl, number))
        return number == TVMRT_FIRST_DEVICE ? cl->state.driver->no_device
                                            : "no OpenCL device of that number";
    cl->context = cl->clCreateContext(NULL, 1, &cl->device, NULL, NULL, &code);
    return code ? "no OpenCL context" : NULL;
}

static const char *cl_open(DeviceState *state)
{
    OpenCl                     *cl = (OpenCl *)state;
    const tvmrt_device_options *o = &state->options;
    const char *why = o->context || o->stream ? use_callers(cl, o) : own_context(cl, o->number);
    int32_t     code = 0;

    if (why || cl->queue)
        return why;
    cl->queue = cl->clCreateCommandQueue(cl->context, cl->device,
                                         o->timing ? CL_QUEUE_PROFILING : 0, &code);
    return code ? "no OpenCL queue" : NULL;
}

static void cl_close(DeviceState *state)
{
    OpenCl *cl = (OpenCl *)state;

    forget_mark(cl);
    cl_forget_times(state);
    free(cl->timed);
    cl->timed = NULL;
    cl->room = 0;
    if (cl->queue)
        cl->clReleaseCommandQueue(cl->queue);
    if (cl->context)
        cl->clReleaseContext(cl->context);
    cl->queue = cl->context = NULL;
}

static void describe(OpenCl *cl, Handle device, tvmrt_device_info *out)
{
    uint64_t type = 0;
    uint32_t shares = 0;

    cl->clGetDeviceInfo(device, CL_DEVICE_NAME, sizeof out->name - 1, out->name, NULL);
    cl->clGetDeviceInfo(device, CL_DEVICE_VENDOR, sizeof out->maker - 1, out->maker, NULL);
    cl->clGetDeviceInfo(device, CL_DEVICE_MEMORY, sizeof out->memory_bytes, &out->memory_bytes,
                        NULL);
    cl->clGetDeviceInfo(device, CL_DEVICE_TYPE, sizeof type, &type, NULL);
    cl->clGetDeviceInfo(device, CL_DEVICE_SHARES, sizeof shares, &shares, NULL);
    out->type = !(type & CL_DEVICE_TYPE_GPU) ? TVMRT_NO_GPU : shares ? TVMRT_CHIP : TVMRT_CARD;
}

/* The devices of all platforms. */
static uint32_t cl_devices(DeviceState *state, uint32_t n, tvmrt_device_info *out)
{
    OpenCl  *cl = (OpenCl *)state;
    Handle   platforms[MAX_PLATFORMS], devices[MAX_DEVICES];
    uint32_t nplatforms = 0, total = 0;

    if (cl->clGetPlatformIDs(MAX_PLATFORMS, platforms, &nplatforms) != 0)
        return 0;
    for (uint32_t p = 0; p < nplatforms && p < MAX_PLATFORMS; p++) {
        uint32_t found = 0;

        if (cl->clGetDeviceIDs(platforms[p], CL_DEVICE_TYPE_ALL, MAX_DEVICES, devices, &found) != 0)
            continue;
        for (uint32_t i = 0; i < found && i < MAX_DEVICES; i++, total++)
            if (total < n)
                describe(cl, devices[i], &out[total]);
    }
    return total;
}

static const DeviceCall calls[] = {
#define ROW(name, args) {#name, offsetof(OpenCl, name)},
    CALLS(ROW) MAKES(ROW)};

const DeviceDriver tvmrt_opencl_driver = {
    .title = "OpenCL",
    .library = "libOpenCL.so.1",
    .no_library = "no libOpenCL.so.1",
    .no_call = "libOpenCL.so.1 lacks a function",
    .no_device = "no OpenCL device",
    .bytes = sizeof(OpenCl),
    .least = MIN_BUFFER,
    .ncalls = sizeof calls / sizeof *calls,
    .calls = calls,
    .open = cl_open,
    .close = cl_close,
    .devices = cl_devices,
    .launch_times = cl_launch_times,
    .forget_times = cl_forget_times,
    .error_text = cl_error_text,
    .shares = true,
    .functions = {.alloc = cl_alloc,
                  .free = cl_free,
                  .upload = cl_upload,
                  .download = cl_download,
                  .copy = cl_copy,
                  .module_load = cl_module_load,
                  .module_free = cl_module_free,
                  .kernel = cl_kernel,
                  .kernel_free = cl_kernel_free,
                  .launch = cl_launch,
                  .wait = cl_wait,
                  .download_later = cl_download_later,
                  .poll = cl_poll},
};
