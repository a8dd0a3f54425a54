/* metal.c: Metal as a device.
 *
 * Metal's interface is Objective-C, whose runtime is called from C: objc_msgSend as a function of
 * the types that the method has.  Launches and copies go into one command buffer, which is
 * committed when something waits; what one encoder is told takes effect in that order.  Where
 * launches are timed, each has a command buffer of its own, which says when it ran.  Memory is
 * shared with the CPU, so an upload is a memcpy once nothing runs.  Objects that `new..` or
 * `Create..` gives are ours until they are released; what other methods give belongs to the pool
 * around the call.
 */
#include "device.h"

#include <dlfcn.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Names and numbers of Metal and Foundation. */
typedef void  *Object, *Selector;
typedef size_t Word; /* NSUInteger */
typedef struct {
    Word width, height, depth;
} Size;
enum {
    ENCODING_UTF8 = 4,
    STORAGE_SHARED = 0,
    MATH_SAFE = 0,
    FUNCTIONS_PRECISE = 1,
    STATUS_ERROR = 5,
    COPY_ALIGN = 4,  /* of what an encoder copies */
    MAX_VALUES = 512 /* setBytes takes 4 KiB */
};

/* CALL(result, name, parameters) */
#define CALLS(CALL)                                                            \
    CALL(Object, MTLCreateSystemDefaultDevice, (void))                         \
    CALL(Object, objc_getClass, (const char *))                                \
    CALL(Selector, sel_registerName, (const char *))                           \
    CALL(Object, dispatch_data_create, (const void *, size_t, Object, void *)) \
    CALL(void *, objc_autoreleasePoolPush, (void))                             \
    CALL(void, objc_autoreleasePoolPop, (void *))                              \
    CALL(void, objc_msgSend, (void))

typedef struct {
    DeviceState state;
    Object      device, queue;
    Object      commands, encoder; /* being filled; NULL: none */
    bool        copying;           /* what the encoder does, else it launches */
    Object     *timed;             /* command buffers of state.launches, committed */
    uint32_t    waited, room;      /* that were waited for */
#define FIELD(result, name, args) result(*name) args;
    CALLS(FIELD)
} Metal;

/* ---- messages ---------------------------------------------------------------------------------- */

/* SEND(result, types of the arguments)(object, name(m, "method"), arguments) */
#define SEND(result, ...) ((result(*)(Object, Selector, __VA_ARGS__))m->objc_msgSend)
#define ASK(result) ((result(*)(Object, Selector))m->objc_msgSend)

static Selector name(Metal *m, const char *method)
{
    return m->sel_registerName(method);
}

static Object ask(Metal *m, Object o, const char *method)
{
    return ASK(Object)(o, name(m, method));
}

static void tell(Metal *m, Object o, const char *method)
{
    ASK(void)(o, name(m, method));
}

static void release(Metal *m, Object *o)
{
    if (*o)
        tell(m, *o, "release");
    *o = NULL;
}

static const char *text_of(Metal *m, Object string)
{
    const char *text = string ? ASK(const char *)(string, name(m, "UTF8String")) : NULL;

    return text ? text : "no reason given";
}

/* What failed, in Metal's words; `error` may be nil. */
static int32_t fail(Metal *m, const char *what, Object error)
{
    void *pool = m->objc_autoreleasePoolPush();

    snprintf(m->state.error, sizeof m->state.error, "%s failed: %s", what,
             text_of(m, error ? ask(m, error, "localizedDescription") : NULL));
    m->objc_autoreleasePoolPop(pool);
    return TVMCC_E_DEVICE;
}

static int32_t refuse(Metal *m, const char *why)
{
    snprintf(m->state.error, sizeof m->state.error, "%s", why);
    return TVMCC_E_MISMATCH;
}

/* ---- the command buffer ------------------------------------------------------------------------ */

static void end_encoder(Metal *m)
{
    if (m->encoder)
        tell(m, m->encoder, "endEncoding");
    release(m, &m->encoder);
}

/* An encoder that copies, or launches. */
static int32_t begin(Metal *m, bool copying)
{
    void *pool = m->objc_autoreleasePoolPush();

    if (m->copying != copying)
        end_encoder(m);
    if (!m->commands)
        m->commands = ask(m, ask(m, m->queue, "commandBuffer"), "retain");
    if (!m->encoder)
        m->encoder =
            ask(m, ask(m, m->commands, copying ? "blitCommandEncoder" : "computeCommandEncoder"),
                "retain");
    m->copying = copying;
    m->objc_autoreleasePoolPop(pool);
    return m->encoder ? TVMCC_OK : fail(m, "a command buffer", NULL);
}

static int32_t wait_for(Metal *m, Object commands)
{
    tell(m, commands, "waitUntilCompleted");
    return ASK(Word)(commands, name(m, "status")) == STATUS_ERROR
               ? fail(m, "a run on the device", ask(m, commands, "error"))
               : TVMCC_OK;
}

static int32_t metal_wait(void *self)
{
    Metal  *m = self;
    int32_t rc = TVMCC_OK;
    void   *pool = m->objc_autoreleasePoolPush();

    end_encoder(m);
    while (m->waited < m->state.launches) {
        int32_t failed = wait_for(m, m->timed[m->waited++]);
        rc = rc ? rc : failed;
    }
    if (m->commands) {
        tell(m, m->commands, "commit");
        int32_t failed = wait_for(m, m->commands);
        rc = rc ? rc : failed;
    }
    release(m, &m->commands);
    m->objc_autoreleasePoolPop(pool);
    return rc;
}

/* ---- times of launches ------------------------------------------------------------------------- */

/* A command buffer of its own, behind what there is. */
static int32_t begin_timed(Metal *m)
{
    void   *timed = m->timed;
    int32_t rc = m->commands ? metal_wait(m) : TVMCC_OK;

    if (!rc)
        rc = tvmrt_device_grow(&m->state, &timed, m->state.launches, &m->room, sizeof *m->timed);
    m->timed = timed;
    return rc;
}

static void end_timed(Metal *m)
{
    end_encoder(m);
    tell(m, m->commands, "commit");
    m->timed[m->state.launches++] = m->commands;
    m->commands = NULL;
}

static int32_t metal_launch_times(DeviceState *state, uint32_t n, double *ns)
{
    Metal *m = (Metal *)state;

    for (uint32_t i = 0; i < n; i++)
        ns[i] = 1e9 * (ASK(double)(m->timed[i], name(m, "GPUEndTime")) -
                       ASK(double)(m->timed[i], name(m, "GPUStartTime")));
    return TVMCC_OK;
}

static void metal_forget_times(DeviceState *state)
{
    Metal *m = (Metal *)state;

    for (uint32_t i = 0; i < state->launches; i++)
        release(m, &m->timed[i]);
    state->launches = m->waited = 0;
}

/* NULL, or why not. */
static const char *can_time(Metal *m)
{
    void  *pool = m->objc_autoreleasePoolPush();
    Object commands = ask(m, m->queue, "commandBuffer");
    bool   can = commands && SEND(signed char, Selector)(commands, name(m, "respondsToSelector:"),
                                                       name(m, "GPUStartTime"));

    m->objc_autoreleasePoolPop(pool);
    return can ? NULL : "launches cannot be timed: this system's Metal is too old";
}

/* ---- memory ------------------------------------------------------------------------------------ */

static int32_t metal_alloc(void *self, size_t bytes, void **memory)
{
    Metal *m = self;

    *memory = SEND(Object, Word, Word)(m->device, name(m, "newBufferWithLength:options:"), bytes,
                                       STORAGE_SHARED);
    if (*memory)
        return TVMCC_OK;
    snprintf(m->state.error, sizeof m->state.error, "no memory for %zu bytes on the device", bytes);
    return TVMCC_E_DEVICE;
}

static void metal_free(void *self, void *memory)
{
    release(self, &memory);
}

static char *cells(Metal *m, void *memory)
{
    return ASK(char *)(memory, name(m, "contents"));
}

static int32_t metal_upload(void *self, void *memory, size_t offset, const void *host, size_t bytes)
{
    int32_t rc = metal_wait(self);

    if (!rc)
        memcpy(cells(self, memory) + offset, host, bytes);
    return rc;
}

static int32_t metal_download(void *self, void *host, void *memory, size_t offset, size_t bytes)
{
    int32_t rc = metal_wait(self);

    if (!rc)
        memcpy(host, cells(self, memory) + offset, bytes);
    return rc;
}

static int32_t metal_copy(void *self, void *to, size_t to_offset, void *from, size_t from_offset,
                          size_t bytes)
{
    Metal  *m = self;
    int32_t rc;

    if ((to_offset | from_offset | bytes) % COPY_ALIGN) {
        rc = metal_wait(m);
        if (!rc)
            memmove(cells(m, to) + to_offset, cells(m, from) + from_offset, bytes);
        return rc;
    }
    rc = begin(m, true);
    if (!rc)
        SEND(void, Object, Word, Object, Word, Word)
    (m->encoder, name(m, "copyFromBuffer:sourceOffset:toBuffer:destinationOffset:size:"), from,
     from_offset, to, to_offset, bytes);
    return rc;
}

/* ---- programs ---------------------------------------------------------------------------------- */

/* Arithmetic as it is written and precise functions; the older of two ways, which is both, where
 * the newer is not there. */
static Object compile_options(Metal *m)
{
    Object   o = ask(m, m->objc_getClass("MTLCompileOptions"), "new");
    Selector mode = name(m, "setMathMode:");

    if (SEND(signed char, Selector)(o, name(m, "respondsToSelector:"), mode)) {
        SEND(void, long)(o, mode, MATH_SAFE);
        SEND(void, long)(o, name(m, "setMathFloatingPointFunctions:"), FUNCTIONS_PRECISE);
    } else {
        SEND(void, signed char)(o, name(m, "setFastMathEnabled:"), 0);
    }
    return o;
}

static Object string_of(Metal *m, const void *text, size_t bytes)
{
    return SEND(Object, const void *, Word, Word)(ask(m, m->objc_getClass("NSString"), "alloc"),
                                                  name(m, "initWithBytes:length:encoding:"), text,
                                                  bytes, ENCODING_UTF8);
}

/* Of text, by the compiler of this system. */
static Object compile(Metal *m, const void *code, size_t bytes, Object *error)
{
    Object text = string_of(m, code, bytes), how = compile_options(m);
    Object library = SEND(Object, Object, Object, Object *)(
        m->device, name(m, "newLibraryWithSource:options:error:"), text, how, error);

    release(m, &text);
    release(m, &how);
    return library;
}

/* Of a metallib, which is copied. */
static Object load(Metal *m, const void *code, size_t bytes, Object *error)
{
    Object data = m->dispatch_data_create(code, bytes, NULL, NULL);
    Object library = data ? SEND(Object, Object, Object *)(
                                m->device, name(m, "newLibraryWithData:error:"), data, error)
                          : NULL;

    release(m, &data);
    return library;
}

static int32_t metal_module_load(void *self, uint32_t form, const void *code, size_t bytes,
                                 const char *options, void **module)
{
    Metal  *m = self;
    Object  error = NULL;
    int32_t rc = TVMCC_OK;
    void   *pool = m->objc_autoreleasePoolPush();

    (void)options;
    *module =
        form == TVMCC_CODE_SOURCE ? compile(m, code, bytes, &error) : load(m, code, bytes, &error);
    if (!*module) /* with warnings, there is an error beside it */
        rc = fail(m, form == TVMCC_CODE_SOURCE ? "the compiler" : "a metallib", error);
    m->objc_autoreleasePoolPop(pool);
    return rc;
}

static void metal_release(void *self, void *object)
{
    release(self, &object);
}

static int32_t metal_kernel(void *self, void *module, const char *symbol, void **kernel)
{
    Metal  *m = self;
    Object  error = NULL;
    void   *pool = m->objc_autoreleasePoolPush();
    Object  text = string_of(m, symbol, strlen(symbol));
    Object  function = SEND(Object, Object)(module, name(m, "newFunctionWithName:"), text);
    int32_t rc = TVMCC_OK;

    *kernel = function ? SEND(Object, Object, Object *)(
                             m->device, name(m, "newComputePipelineStateWithFunction:error:"),
                             function, &error)
                       : NULL;
    if (!*kernel)
        rc = fail(m, symbol, error);
    release(m, &text);
    release(m, &function);
    m->objc_autoreleasePoolPop(pool);
    return rc;
}

/* Buffers by their number, then all values as one array. */
static int32_t give(Metal *m, const tvmcc_arg *args, uint32_t nargs)
{
    int64_t  values[MAX_VALUES];
    uint32_t nbuffers = 0, n = 0;

    for (uint32_t i = 0; i < nargs; i++) {
        const tvmcc_arg *a = &args[i];

        if (a->kind == TVMCC_ARG_BUFFER) {
            SEND(void, const void *, Word, Word)(m->encoder, name(m, "setBuffer:offset:atIndex:"),
                                                 a->p, 0, nbuffers++);
            continue;
        }
        if (a->kind != TVMCC_ARG_VALUE || a->bytes != sizeof *values || n == MAX_VALUES)
            return refuse(m, "a launch has more than buffers and 512 values of 64 bits");
        memcpy(&values[n++], a->p, sizeof *values);
    }
    SEND(void, const void *, Word, Word)
    (m->encoder, name(m, "setBytes:length:atIndex:"), values, n * sizeof *values, nbuffers);
    return TVMCC_OK;
}

static int32_t metal_launch(void *self, void *kernel, const uint32_t grid[3],
                            const uint32_t block[3], const tvmcc_arg *args, uint32_t nargs)
{
    Metal  *m = self;
    Size    blocks = {grid[0], grid[1], grid[2]}, threads = {block[0], block[1], block[2]};
    int32_t rc = m->state.timing ? begin_timed(m) : TVMCC_OK;

    if (rc || (rc = begin(m, false)) != TVMCC_OK)
        return rc;
    SEND(void, Object)(m->encoder, name(m, "setComputePipelineState:"), kernel);
    if ((rc = give(m, args, nargs)) != TVMCC_OK)
        return rc;
    SEND(void, Size, Size)
    (m->encoder, name(m, "dispatchThreadgroups:threadsPerThreadgroup:"), blocks, threads);
    if (m->state.timing)
        end_timed(m);
    return TVMCC_OK;
}

/* ---- opening ----------------------------------------------------------------------------------- */

/* An NSArray that is ours; nil where the system has only its default device to offer. */
static Object all_devices(Metal *m)
{
    void *call = dlsym(m->state.library, "MTLCopyAllDevices");
    Object (*copy)(void);

    if (!call)
        return NULL;
    memcpy(&copy, &call, sizeof copy);
    return copy();
}

static const char *metal_open(DeviceState *state)
{
    Metal   *m = (Metal *)state;
    uint32_t number = state->options.number;
    Object   all = number == TVMRT_FIRST_DEVICE ? NULL : all_devices(m);

    if (number == TVMRT_FIRST_DEVICE || (!all && number == 0)) {
        m->device = m->MTLCreateSystemDefaultDevice();
    } else if (all && number < ASK(Word)(all, name(m, "count"))) {
        m->device = ask(m, SEND(Object, Word)(all, name(m, "objectAtIndex:"), number), "retain");
    }
    release(m, &all);
    if (!m->device)
        return number == TVMRT_FIRST_DEVICE ? state->driver->no_device
                                            : "no Metal device of that number";
    m->queue = ask(m, m->device, "newCommandQueue");
    if (!m->queue)
        return "no Metal command queue";
    return state->options.timing ? can_time(m) : NULL;
}

static void metal_close(DeviceState *state)
{
    Metal *m = (Metal *)state;

    metal_forget_times(state);
    free(m->timed);
    m->timed = NULL;
    m->room = 0;
    release(m, &m->queue);
    release(m, &m->device);
}

static void describe(Metal *m, Object device, tvmrt_device_info *out)
{
    snprintf(out->name, sizeof out->name, "%s", text_of(m, ask(m, device, "name")));
    snprintf(out->maker, sizeof out->maker, "Apple");
    out->memory_bytes = ASK(uint64_t)(device, name(m, "recommendedMaxWorkingSetSize"));
    out->type = ASK(signed char)(device, name(m, "hasUnifiedMemory")) ? TVMRT_CHIP : TVMRT_CARD;
}

static void metal_limits(DeviceState *state, DeviceLimits *out)
{
    Metal *m = (Metal *)state;
    void  *pool = m->objc_autoreleasePoolPush();

    snprintf(out->name, sizeof out->name, "%s", text_of(m, ask(m, m->device, "name")));
    out->shared_bytes = ASK(Word)(m->device, name(m, "maxThreadgroupMemoryLength"));
    m->objc_autoreleasePoolPop(pool);
}

/* Along each axis there may be as many as in all. */
static void metal_narrow(DeviceState *state, void *kernel, DeviceLimits *limits)
{
    Metal *m = (Metal *)state;

    limits->threads = ASK(Word)(kernel, name(m, "maxTotalThreadsPerThreadgroup"));
    limits->block[0] = limits->block[1] = limits->block[2] = limits->threads;
}

static uint32_t metal_devices(DeviceState *state, uint32_t n, tvmrt_device_info *out)
{
    Metal   *m = (Metal *)state;
    void    *pool = m->objc_autoreleasePoolPush();
    Object   all = all_devices(m), only = all ? NULL : m->MTLCreateSystemDefaultDevice();
    uint32_t found = all ? (uint32_t)ASK(Word)(all, name(m, "count")) : only != NULL;

    for (uint32_t i = 0; i < found && i < n; i++)
        describe(m, only ? only : SEND(Object, Word)(all, name(m, "objectAtIndex:"), i), &out[i]);
    release(m, &only);
    release(m, &all);
    m->objc_autoreleasePoolPop(pool);
    return found;
}

static const DeviceCall calls[] = {
#define ROW(result, name, args) {#name, offsetof(Metal, name)},
    CALLS(ROW)};

/* Another system may have an implementation of the same interface. */
#if defined(__APPLE__)
#define LIBRARY "/System/Library/Frameworks/Metal.framework/Metal"
#else
#define LIBRARY "libMetal.so"
#endif

const DeviceDriver tvmrt_metal_driver = {
    .title = "Metal",
    .library = LIBRARY,
    .no_library = "no " LIBRARY,
    .no_call = LIBRARY " lacks a function",
    .no_device = "no Metal device",
    .bytes = sizeof(Metal),
    .least = 16,
    .ncalls = sizeof calls / sizeof *calls,
    .calls = calls,
    .open = metal_open,
    .close = metal_close,
    .devices = metal_devices,
    .launch_times = metal_launch_times,
    .forget_times = metal_forget_times,
    .limits = metal_limits,
    .narrow = metal_narrow,
    .functions = {.alloc = metal_alloc,
                  .free = metal_free,
                  .upload = metal_upload,
                  .download = metal_download,
                  .copy = metal_copy,
                  .module_load = metal_module_load,
                  .module_free = metal_release,
                  .kernel = metal_kernel,
                  .kernel_free = metal_release,
                  .launch = metal_launch,
                  .wait = metal_wait},
};
