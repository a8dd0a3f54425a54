/* opencl.c: OpenCL as a device.
 *
 * One context and one in-order queue: calls take effect in the order they are made.
 */
#include "opencl.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

/* What a product can meet with on a device that it is not for. */
static const char *cl_error_text(DeviceState *state, int32_t code)
{
    (void)state;
    switch (code) {
    case CL_MEM_OBJECT_ALLOCATION_FAILURE: return "out of the device's memory";
    case CL_OUT_OF_RESOURCES: return "out of the device's resources";
    case CL_COMPILER_NOT_AVAILABLE: return "the device takes binaries alone";
    case CL_IMAGE_FORMAT_NOT_SUPPORTED: return "the device has no images of such texels";
    case CL_BUILD_FAILURE: return "the program does not build";
    case CL_INVALID_BINARY: return "the binary is for another device";
    default: return NULL;
    }
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

    tvmrt_opencl_forget_images(cl, memory);
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
    OpenCl       *cl = self;
    const Kernel *k = kernel;
    size_t        global[3], local[3];
    int32_t       rc = TVMCC_OK;

    forget_mark(cl);
    for (uint32_t i = 0; i < nargs && !rc; i++)
        rc = tvmrt_opencl_set_arg(cl, k, i, &args[i]);
    if (rc)
        return rc;
    for (int i = 0; i < 3; i++) {
        local[i] = block[i];
        global[i] = (size_t)grid[i] * block[i];
    }
    Handle *event = NULL;
    if (cl->state.timing)
        rc = new_timed(cl, &event);
    if (!rc)
        rc = check(cl,
                   cl->clEnqueueNDRangeKernel(cl->queue, k->kernel, 3, NULL, global, local, 0, NULL,
                                              event),
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
    tvmrt_opencl_forget_images(cl, NULL);
    free(cl->images);
    cl->timed = NULL;
    cl->images = NULL;
    cl->room = cl->image_room = 0;
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

static void cl_limits(DeviceState *state, DeviceLimits *out)
{
    OpenCl  *cl = (OpenCl *)state;
    size_t   threads, block[3];
    uint64_t shared;

    cl->clGetDeviceInfo(cl->device, CL_DEVICE_NAME, sizeof out->name - 1, out->name, NULL);
    if (!cl->clGetDeviceInfo(cl->device, CL_DEVICE_LOCAL_MEMORY, sizeof shared, &shared, NULL))
        out->shared_bytes = shared;
    if (!cl->clGetDeviceInfo(cl->device, CL_DEVICE_BLOCK_THREADS, sizeof threads, &threads, NULL))
        out->threads = threads;
    if (!cl->clGetDeviceInfo(cl->device, CL_DEVICE_BLOCK, sizeof block, block, NULL))
        for (int i = 0; i < 3; i++)
            out->block[i] = block[i];
}

static void cl_narrow(DeviceState *state, void *kernel, DeviceLimits *limits)
{
    OpenCl       *cl = (OpenCl *)state;
    const Kernel *k = kernel;
    size_t        threads;

    if (!cl->clGetKernelWorkGroupInfo(k->kernel, cl->device, CL_KERNEL_BLOCK_THREADS,
                                      sizeof threads, &threads, NULL) &&
        threads < limits->threads)
        limits->threads = threads;
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
    .limits = cl_limits,
    .narrow = cl_narrow,
    .weights = tvmrt_opencl_weights,
    .shares = true,
    .functions = {.alloc = cl_alloc,
                  .free = cl_free,
                  .upload = cl_upload,
                  .download = cl_download,
                  .copy = cl_copy,
                  .module_load = tvmrt_opencl_module_load,
                  .module_free = tvmrt_opencl_module_free,
                  .kernel = tvmrt_opencl_kernel,
                  .kernel_free = tvmrt_opencl_kernel_free,
                  .launch = cl_launch,
                  .wait = cl_wait,
                  .download_later = cl_download_later,
                  .poll = cl_poll},
};
