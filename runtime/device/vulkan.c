/* vulkan.c: Vulkan as a device.
 *
 * A kernel gets the addresses of its buffers as push constants, or where they are too few the
 * address of a table of them (backends/vulkan/vulkan.h), so there are no descriptors.  What is
 * asked for is put into command buffers, which are submitted together when a result is waited for;
 * each command waits for those before it.  Between the host's memory and the device's lies memory
 * that both see.
 *
 * A recording is a command buffer that is submitted again and again.
 */
#include "device.h"
#include "vulkan_api.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    STAGING_BYTES = 1 << 22,
    MAX_DEVICES = 32,
    MAX_FAMILIES = 32,
    MAX_COMMANDS = 8, /* buffers of commands that are submitted together */
    PUSH_BYTES = 128,
    MOST_GROUPS = 65535, /* along an axis */
    MOST_PARAMS = 4096,
    SPIRV_MAGIC = 0x07230203,
    SPIRV_CAPABILITY = 17,
    SPIRV_HEAD = 5
};

/* Memory of the device, or of both. */
typedef struct Memory Memory;
struct Memory {
    VkObject buffer, memory;
    uint64_t address;
    void    *host;
    Memory  *next; /* of a recording */
};

typedef struct {
    VkHandle commands;
    Memory  *tables; /* of addresses, which its kernels read */
} Recording;

typedef struct {
    DeviceState  state;
    VkHandle     instance, physical, device, queue;
    uint32_t     family;
    VkProperties properties;
    VkMemories   memories;
    VkFeatures   features;
    VkFeatures11 features11;
    VkFeatures12 features12;
    VkObject     pool, fence, cache, layout;
    Memory      *staging;
    size_t       staged;                 /* bytes of it that copies may still use */
    VkHandle     commands[MAX_COMMANDS]; /* to be filled; nused of them are, the last may be open */
    uint32_t     nused;
    VkHandle     pending[MAX_COMMANDS]; /* what is submitted next */
    uint32_t     npending;
    VkHandle     open;      /* commands go here; NULL: to a fresh one */
    Recording   *recording; /* ... or here */
#define FIELD(result, name, args) result(*name) args;
    VK_CALLS(FIELD)
} Vulkan;

static int32_t check(Vulkan *vk, int32_t code, const char *what)
{
    return tvmrt_device_check(&vk->state, code, what);
}

static const char *vk_error_text(DeviceState *state, int32_t code)
{
    static const char *const text[] = {"out of host memory",
                                       "out of device memory",
                                       "initialization failed",
                                       "device lost",
                                       "memory map failed",
                                       "layer not present",
                                       "extension not present",
                                       "feature not present",
                                       "incompatible driver",
                                       "too many objects",
                                       "format not supported",
                                       "fragmented pool",
                                       "unknown"};

    (void)state;
    return code < 0 && code >= -(int32_t)(sizeof text / sizeof *text) ? text[-code - 1] : NULL;
}

static int32_t refuse(Vulkan *vk, const char *why)
{
    snprintf(vk->state.error, sizeof vk->state.error, "%s: %s", vk->properties.name, why);
    return TVMCC_E_DEVICE;
}

/* ---- memory -------------------------------------------------------------------------------------- */

static void release(Vulkan *vk, Memory *m)
{
    if (!m)
        return;
    if (m->buffer)
        vk->vkDestroyBuffer(vk->device, m->buffer, NULL);
    if (m->memory)
        vk->vkFreeMemory(vk->device, m->memory, NULL); /* and its mapping */
    free(m);
}

/* The first type of memory that has `flags`, of those that the bits of `types` allow. */
static uint32_t memory_type(const Vulkan *vk, uint32_t types, uint32_t flags)
{
    for (uint32_t i = 0; i < vk->memories.ntypes && i < 32; i++)
        if (types >> i & 1 && (vk->memories.types[i].flags & flags) == flags)
            return i;
    return UINT32_MAX;
}

static int32_t provide(Vulkan *vk, Memory *m, size_t bytes, bool host)
{
    VkBufferInfo buffer = {
        .type = VK_BUFFER, .bytes = bytes, .usage = VK_USE_COPY | VK_USE_STORAGE | VK_USE_ADDRESS};
    VkMemoryFlags  flags = {.type = VK_MEMORY_FLAGS, .flags = VK_MEMORY_ADDRESS};
    VkMemoryInfo   info = {.type = VK_MEMORY, .next = &flags};
    VkAddressInfo  address = {.type = VK_ADDRESS};
    VkRequirements needs = {0};
    int32_t        rc =
        check(vk, vk->vkCreateBuffer(vk->device, &buffer, NULL, &m->buffer), "vkCreateBuffer");

    if (rc) {
        m->buffer = 0;
        return rc;
    }
    vk->vkGetBufferMemoryRequirements(vk->device, m->buffer, &needs);
    info.bytes = needs.bytes;
    info.memory_type = memory_type(vk, needs.types, host ? VK_MEMORY_HOST : VK_MEMORY_DEVICE);
    if (info.memory_type == UINT32_MAX && !host)
        info.memory_type = memory_type(vk, needs.types, 0);
    if (info.memory_type == UINT32_MAX)
        return refuse(vk, "no memory that host and device share");
    rc = check(vk, vk->vkAllocateMemory(vk->device, &info, NULL, &m->memory), "vkAllocateMemory");
    if (rc) {
        m->memory = 0;
        return rc;
    }
    rc = check(vk, vk->vkBindBufferMemory(vk->device, m->buffer, m->memory, 0),
               "vkBindBufferMemory");
    if (!rc && host)
        rc =
            check(vk, vk->vkMapMemory(vk->device, m->memory, 0, bytes, 0, &m->host), "vkMapMemory");
    address.buffer = m->buffer;
    if (!rc)
        m->address = vk->vkGetBufferDeviceAddress(vk->device, &address);
    return rc;
}

static int32_t allocate(Vulkan *vk, size_t bytes, bool host, Memory **out)
{
    Memory *m = calloc(1, sizeof *m);
    int32_t rc = m ? provide(vk, m, bytes, host) : refuse(vk, "out of host memory");

    if (rc) {
        release(vk, m);
        m = NULL;
    }
    *out = m;
    return rc;
}

/* ---- commands ------------------------------------------------------------------------------------ */

/* What comes next waits for all that came before, other submissions too. */
static void order(Vulkan *vk, VkHandle commands, bool host)
{
    VkBarrier barrier = {.type = VK_BARRIER,
                         .before = VK_SHADER_WRITE | VK_COPY_WRITE,
                         .after = VK_SHADER_READ | VK_SHADER_WRITE | VK_COPY_READ | VK_COPY_WRITE};
    uint32_t  from = VK_AT_COMPUTE | VK_AT_COPY, to = from;

    if (host) {
        to = VK_AT_HOST;
        barrier.after = VK_HOST_READ;
    }
    vk->vkCmdPipelineBarrier(commands, from, to, 0, 1, &barrier, 0, NULL, 0, NULL);
}

static int32_t end_commands(Vulkan *vk)
{
    VkHandle open = vk->open;

    vk->open = NULL;
    if (!open)
        return TVMCC_OK;
    order(vk, open, true);
    return check(vk, vk->vkEndCommandBuffer(open), "vkEndCommandBuffer");
}

/* Submits what there is and waits: the staging memory is free again. */
static int32_t finish(Vulkan *vk)
{
    int32_t      rc = end_commands(vk);
    VkSubmission submit = {.type = VK_SUBMIT, .ncommands = vk->npending, .commands = vk->pending};

    if (!rc && vk->npending)
        rc = check(vk, vk->vkQueueSubmit(vk->queue, 1, &submit, vk->fence), "vkQueueSubmit");
    if (!rc && vk->npending) {
        rc = check(vk, vk->vkWaitForFences(vk->device, 1, &vk->fence, 1, UINT64_MAX),
                   "vkWaitForFences");
        vk->vkResetFences(vk->device, 1, &vk->fence);
    }
    vk->npending = vk->nused = 0;
    vk->staged = 0;
    return rc;
}

/* Where commands go: of the recording, or the open ones. */
static int32_t commands(Vulkan *vk, VkHandle *out)
{
    VkBeginInfo begin = {.type = VK_BEGIN};
    int32_t     rc = TVMCC_OK;

    *out = vk->recording ? vk->recording->commands : vk->open;
    if (!*out && vk->npending == MAX_COMMANDS)
        rc = finish(vk);
    if (!*out && !rc) {
        VkHandle next = vk->commands[vk->nused];

        rc = check(vk, vk->vkBeginCommandBuffer(next, &begin), "vkBeginCommandBuffer");
        if (!rc) {
            *out = vk->open = vk->pending[vk->npending++] = next;
            vk->nused++;
        }
    }
    if (!rc)
        order(vk, *out, false);
    return rc;
}

static int32_t copy(Vulkan *vk, const Memory *to, size_t to_offset, const Memory *from,
                    size_t from_offset, size_t bytes)
{
    VkCopy   part = {from_offset, to_offset, bytes};
    VkHandle at;
    int32_t  rc = commands(vk, &at);

    if (!rc)
        vk->vkCmdCopyBuffer(at, from->buffer, to->buffer, 1, &part);
    return rc;
}

/* ---- functions of the table ---------------------------------------------------------------------- */

static int32_t vk_alloc(void *self, size_t bytes, void **memory)
{
    Memory *m;
    int32_t rc = allocate(self, bytes, false, &m);

    *memory = m;
    return rc;
}

static void vk_free(void *self, void *memory)
{
    Vulkan *vk = self;

    finish(vk); /* what was asked for may use it */
    release(vk, memory);
}

static int32_t vk_upload(void *self, void *memory, size_t offset, const void *host, size_t bytes)
{
    Vulkan *vk = self;
    int32_t rc = TVMCC_OK;

    for (size_t done = 0, n; done < bytes && !rc; done += n) {
        if (vk->staged == STAGING_BYTES && (rc = finish(vk)))
            break;
        n = STAGING_BYTES - vk->staged;
        n = bytes - done < n ? bytes - done : n;
        memcpy((char *)vk->staging->host + vk->staged, (const char *)host + done, n);
        rc = copy(vk, memory, offset + done, vk->staging, vk->staged, n);
        vk->staged += (n + 63) / 64 * 64; /* STAGING_BYTES is a multiple */
    }
    return rc;
}

static int32_t vk_download(void *self, void *host, void *memory, size_t offset, size_t bytes)
{
    Vulkan *vk = self;
    int32_t rc = TVMCC_OK;

    for (size_t done = 0, n; done < bytes && !rc; done += n) {
        if (vk->staged == STAGING_BYTES && (rc = finish(vk)))
            break;
        size_t at = vk->staged;
        n = STAGING_BYTES - at;
        n = bytes - done < n ? bytes - done : n;
        rc = copy(vk, vk->staging, at, memory, offset + done, n);
        if (!rc)
            rc = finish(vk);
        if (!rc)
            memcpy((char *)host + done, (const char *)vk->staging->host + at, n);
    }
    return rc;
}

static int32_t vk_copy(void *self, void *to, size_t to_offset, void *from, size_t from_offset,
                       size_t bytes)
{
    return copy(self, to, to_offset, from, from_offset, bytes);
}

/* ---- programs ------------------------------------------------------------------------------------ */

/* What a module asks for and the device lacks; NULL: nothing. */
static const char *lacks(const Vulkan *vk, uint32_t capability)
{
    switch (capability) {
    case 1: /* Shader */
    case 5347: /* PhysicalStorageBufferAddresses, without which no device is opened */ return NULL;
    case 10: return vk->features.has[VK_SHADER_FLOAT64] ? NULL : "no f64 (shaderFloat64)";
    case 11: return vk->features.has[VK_SHADER_INT64] ? NULL : "no i64 (shaderInt64)";
    case 22: return vk->features.has[VK_SHADER_INT16] ? NULL : "no i16 (shaderInt16)";
    case 39: return vk->features12.has[VK_SHADER_INT8] ? NULL : "no i8 (shaderInt8)";
    case 4433:
        return vk->features11.has[VK_STORAGE_16BIT] ? NULL
                                                    : "no 16 bits (storageBuffer16BitAccess)";
    case 4448:
        return vk->features12.has[VK_STORAGE_8BIT] ? NULL : "no 8 bits (storageBuffer8BitAccess)";
    default: return "the code needs more than this runtime knows of";
    }
}

static int32_t vk_module_load(void *self, uint32_t form, const void *code, size_t bytes,
                              const char *options, void **module)
{
    Vulkan         *vk = self;
    const uint32_t *word = code;
    size_t          n = bytes / sizeof *word;
    VkModuleInfo    info = {.type = VK_MODULE, .bytes = bytes, .code = code};
    VkObject        made = 0;

    (void)options;
    if (form != TVMCC_CODE_BINARY || bytes % sizeof *word || (uintptr_t)code % sizeof *word ||
        n <= SPIRV_HEAD || *word != SPIRV_MAGIC)
        return refuse(vk, "the code is no SPIR-V");
    for (size_t i = SPIRV_HEAD; i + 1 < n && word[i] == (2u << 16 | SPIRV_CAPABILITY); i += 2) {
        const char *why = lacks(vk, word[i + 1]);

        if (why)
            return refuse(vk, why);
    }
    int32_t rc =
        check(vk, vk->vkCreateShaderModule(vk->device, &info, NULL, &made), "vkCreateShaderModule");
    VkObject *out = rc ? NULL : malloc(sizeof *out);
    if (out)
        *out = made;
    else if (!rc)
        vk->vkDestroyShaderModule(vk->device, made, NULL);
    *module = out;
    return rc || out ? rc : refuse(vk, "out of host memory");
}

static void vk_module_free(void *self, void *module)
{
    Vulkan *vk = self;

    vk->vkDestroyShaderModule(vk->device, *(VkObject *)module, NULL);
    free(module);
}

static int32_t vk_kernel(void *self, void *module, const char *name, void **kernel)
{
    Vulkan        *vk = self;
    VkPipelineInfo info = {.type = VK_PIPELINE,
                           .stage = {.type = VK_STAGE,
                                     .stage = VK_STAGE_COMPUTE,
                                     .module = *(VkObject *)module,
                                     .name = name},
                           .layout = vk->layout};
    VkObject      *out = malloc(sizeof *out);
    int32_t        rc =
        out ? check(vk, vk->vkCreateComputePipelines(vk->device, vk->cache, 1, &info, NULL, out),
                           name)
                   : refuse(vk, "out of host memory");

    if (rc) {
        free(out);
        out = NULL;
    }
    *kernel = out;
    return rc;
}

static void vk_kernel_free(void *self, void *kernel)
{
    Vulkan *vk = self;

    finish(vk);
    vk->vkDestroyPipeline(vk->device, *(VkObject *)kernel, NULL);
    free(kernel);
}

static int32_t vk_fits(DeviceState *state, const tvmcc_kernel_info *kernel)
{
    Vulkan        *vk = (Vulkan *)state;
    const uint32_t block[3] = {kernel->threads_x, kernel->threads_y, kernel->threads_z};
    uint64_t       threads = (uint64_t)block[0] * block[1] * block[2];
    bool           fits = threads <= vk->properties.limits.threads;

    for (int i = 0; i < 3; i++)
        fits = fits && block[i] <= vk->properties.limits.block[i];
    if (fits && kernel->shared_bytes <= vk->properties.limits.shared_bytes)
        return TVMCC_OK;
    snprintf(
        state->error, sizeof state->error,
        "%s: blocks of '%s' have %u x %u x %u threads and share %u bytes; the device has %u x %u "
        "x %u, %u in all, and %u bytes",
        vk->properties.name, kernel->name, block[0], block[1], block[2], kernel->shared_bytes,
        vk->properties.limits.block[0], vk->properties.limits.block[1],
        vk->properties.limits.block[2], vk->properties.limits.threads,
        vk->properties.limits.shared_bytes);
    return TVMCC_E_DEVICE;
}

/* The addresses of the arguments, each buffer's with the offset behind it. */
static int32_t addresses(Vulkan *vk, const tvmcc_arg *args, uint32_t nargs, uint64_t *to,
                         uint32_t *n)
{
    *n = 0;
    for (uint32_t i = 0; i < nargs; i += 2) {
        int64_t offset;

        if (i + 1 == nargs || *n == MOST_PARAMS || args[i].kind != TVMCC_ARG_BUFFER ||
            args[i + 1].kind != TVMCC_ARG_VALUE || args[i + 1].bytes != sizeof offset)
            return refuse(vk, "a launch has other arguments than buffers with offsets");
        memcpy(&offset, args[i + 1].p, sizeof offset);
        to[(*n)++] = ((const Memory *)args[i].p)->address + (uint64_t)offset;
    }
    return TVMCC_OK;
}

/* A table of addresses where the kernel finds it: until all is done, or with the recording. */
static int32_t put_table(Vulkan *vk, const uint64_t *table, size_t bytes, uint64_t *address)
{
    Memory *m;
    int32_t rc = TVMCC_OK;

    if (vk->recording) {
        if ((rc = allocate(vk, bytes, true, &m)))
            return rc;
        m->next = vk->recording->tables;
        vk->recording->tables = m;
        *address = m->address;
        memcpy(m->host, table, bytes);
        return rc;
    }
    if (STAGING_BYTES - vk->staged < bytes)
        rc = finish(vk);
    *address = vk->staging->address + vk->staged;
    memcpy((char *)vk->staging->host + vk->staged, table, bytes);
    vk->staged += (bytes + 63) / 64 * 64;
    return rc;
}

static int32_t vk_launch(void *self, void *kernel, const uint32_t grid[3], const uint32_t block[3],
                         const tvmcc_arg *args, uint32_t nargs)
{
    Vulkan  *vk = self;
    uint64_t table[MOST_PARAMS], address;
    uint32_t n, x = grid[0], z = grid[2];
    VkHandle at;
    int32_t  rc = addresses(vk, args, nargs, table, &n);

    (void)block; /* stands in the code */
    if (!rc && n * sizeof *table > PUSH_BYTES) {
        rc = put_table(vk, table, n * sizeof *table, &address);
        table[0] = address;
        n = 1;
    }
    if (rc || (rc = commands(vk, &at)))
        return rc;
    if (x > MOST_GROUPS) { /* rows along z, as the kernel counts them */
        z = (x + MOST_GROUPS - 1) / MOST_GROUPS;
        x = (x + z - 1) / z;
    }
    vk->vkCmdBindPipeline(at, VK_BIND_COMPUTE, *(VkObject *)kernel);
    if (n)
        vk->vkCmdPushConstants(at, vk->layout, VK_STAGE_COMPUTE, 0, n * sizeof *table, table);
    vk->vkCmdDispatch(at, x, grid[1], z);
    return TVMCC_OK;
}

static int32_t vk_wait(void *self)
{
    return finish(self);
}

/* ---- recordings ---------------------------------------------------------------------------------- */

static int32_t new_commands(Vulkan *vk, uint32_t n, VkHandle *out)
{
    VkCommandsInfo info = {.type = VK_COMMANDS, .pool = vk->pool, .count = n};

    return check(vk, vk->vkAllocateCommandBuffers(vk->device, &info, out),
                 "vkAllocateCommandBuffers");
}

static void vk_recording_free(void *self, void *recording)
{
    Vulkan    *vk = self;
    Recording *r = recording;

    finish(vk);
    if (r->commands)
        vk->vkFreeCommandBuffers(vk->device, vk->pool, 1, &r->commands);
    for (Memory *m = r->tables, *next; m; m = next) {
        next = m->next;
        release(vk, m);
    }
    free(r);
}

static int32_t vk_record_begin(void *self)
{
    Vulkan     *vk = self;
    VkBeginInfo begin = {.type = VK_BEGIN, .flags = VK_BEGIN_SIMULTANEOUS};
    Recording  *r = calloc(1, sizeof *r);
    int32_t     rc = r ? finish(vk) : refuse(vk, "out of host memory");

    if (!rc && (rc = new_commands(vk, 1, &r->commands)))
        r->commands = NULL;
    if (!rc)
        rc = check(vk, vk->vkBeginCommandBuffer(r->commands, &begin), "vkBeginCommandBuffer");
    if (!rc)
        vk->recording = r;
    else if (r)
        vk_recording_free(vk, r);
    return rc;
}

static int32_t vk_record_end(void *self, void **recording)
{
    Vulkan    *vk = self;
    Recording *r = vk->recording;
    int32_t    rc;

    *recording = NULL;
    if (!r)
        return refuse(vk, "nothing is recorded");
    vk->recording = NULL;
    rc = check(vk, vk->vkEndCommandBuffer(r->commands), "vkEndCommandBuffer");
    if (rc)
        vk_recording_free(vk, r);
    else
        *recording = r;
    return rc;
}

static int32_t vk_replay(void *self, void *recording)
{
    Vulkan *vk = self;
    int32_t rc = end_commands(vk);

    if (!rc && vk->npending == MAX_COMMANDS)
        rc = finish(vk);
    if (!rc)
        vk->pending[vk->npending++] = ((Recording *)recording)->commands;
    return rc;
}

/* ---- opening ------------------------------------------------------------------------------------- */

static bool new_instance(Vulkan *vk)
{
    VkApplication  application = {.type = VK_APPLICATION, .name = "tvmcc", .api = VK_1_2};
    VkInstanceInfo info = {.type = VK_INSTANCE, .application = &application};

    if (vk->vkCreateInstance(&info, NULL, &vk->instance))
        vk->instance = NULL;
    return vk->instance != NULL;
}

static uint32_t all_devices(Vulkan *vk, VkHandle *out)
{
    uint32_t n = MAX_DEVICES;
    int32_t  rc = vk->vkEnumeratePhysicalDevices(vk->instance, &n, out);

    return rc < 0 ? 0 : n; /* there may be more */
}

/* Has it what every kernel needs?  NULL, or why not; its family of queues and features are noted.
 */
static const char *look_at(Vulkan *vk, VkHandle physical)
{
    VkQueueFamily families[MAX_FAMILIES];
    uint32_t      n = MAX_FAMILIES;

    vk->physical = physical;
    vk->vkGetPhysicalDeviceProperties(physical, &vk->properties);
    if (vk->properties.api < VK_1_2)
        return "the Vulkan device is older than Vulkan 1.2";
    vk->features12 = (VkFeatures12){.type = VK_FEATURES_12};
    vk->features11 = (VkFeatures11){.type = VK_FEATURES_11, .next = &vk->features12};
    vk->features = (VkFeatures){.type = VK_FEATURES, .next = &vk->features11};
    vk->vkGetPhysicalDeviceFeatures2(physical, &vk->features);
    if (!vk->features12.has[VK_BUFFER_ADDRESS])
        return "the Vulkan device has no addresses of buffers (bufferDeviceAddress)";
    vk->vkGetPhysicalDeviceQueueFamilyProperties(physical, &n, families);
    for (vk->family = 0; vk->family < n; vk->family++)
        if (families[vk->family].flags & VK_QUEUE_COMPUTE)
            return NULL;
    return "the Vulkan device does not compute";
}

/* The device of that number; else a card, a chip's own GPU, a virtual one, a CPU. */
static const char *find_device(Vulkan *vk, uint32_t number)
{
    static const int32_t types[] = {VK_TYPE_DISCRETE, VK_TYPE_INTEGRATED, VK_TYPE_VIRTUAL, -1};
    VkHandle             all[MAX_DEVICES];
    uint32_t             n = all_devices(vk, all);
    const char          *why = vk->state.driver->no_device;

    if (number != TVMRT_FIRST_DEVICE)
        return number < n ? look_at(vk, all[number]) : "no Vulkan device of that number";
    for (size_t t = 0; t < sizeof types / sizeof *types; t++)
        for (uint32_t i = 0; i < n; i++) {
            vk->vkGetPhysicalDeviceProperties(all[i], &vk->properties);
            if ((types[t] < 0 || vk->properties.type == types[t]) && !(why = look_at(vk, all[i])))
                return NULL;
        }
    return why;
}

/* Of what the device has: what a module may ask for. */
static void choose_features(Vulkan *vk)
{
    VkFeatures   f = vk->features;
    VkFeatures11 f11 = vk->features11;
    VkFeatures12 f12 = vk->features12;

    memset(vk->features.has, 0, sizeof vk->features.has);
    memset(vk->features11.has, 0, sizeof vk->features11.has);
    memset(vk->features12.has, 0, sizeof vk->features12.has);
    for (int i = VK_SHADER_FLOAT64; i <= VK_SHADER_INT16; i++)
        vk->features.has[i] = f.has[i];
    vk->features11.has[VK_STORAGE_16BIT] = f11.has[VK_STORAGE_16BIT];
    vk->features12.has[VK_STORAGE_8BIT] = f12.has[VK_STORAGE_8BIT];
    vk->features12.has[VK_SHADER_INT8] = f12.has[VK_SHADER_INT8];
    vk->features12.has[VK_BUFFER_ADDRESS] = f12.has[VK_BUFFER_ADDRESS];
}

static bool new_device(Vulkan *vk)
{
    const float priority = 1;
    VkQueueInfo queue = {
        .type = VK_QUEUE, .family = vk->family, .count = 1, .priorities = &priority};
    VkDeviceInfo info = {.type = VK_DEVICE, .next = &vk->features, .nqueues = 1, .queues = &queue};

    choose_features(vk);
    if (vk->vkCreateDevice(vk->physical, &info, NULL, &vk->device))
        vk->device = NULL;
    if (!vk->device)
        return false;
    vk->vkGetPhysicalDeviceMemoryProperties(vk->physical, &vk->memories);
    vk->vkGetDeviceQueue(vk->device, vk->family, 0, &vk->queue);
    return true;
}

/* What all launches share; what is 0 then was not made. */
static bool new_objects(Vulkan *vk)
{
    VkPushRange  range = {VK_STAGE_COMPUTE, 0, PUSH_BYTES};
    VkLayoutInfo layout = {.type = VK_LAYOUT, .nranges = 1, .ranges = &range};
    VkPoolInfo   pool = {.type = VK_COMMAND_POOL, .flags = VK_POOL_RESET, .family = vk->family};
    VkCacheInfo  cache = {.type = VK_CACHE};
    VkFenceInfo  fence = {.type = VK_FENCE};

    if (vk->vkCreatePipelineLayout(vk->device, &layout, NULL, &vk->layout))
        vk->layout = 0;
    if (vk->vkCreatePipelineCache(vk->device, &cache, NULL, &vk->cache))
        vk->cache = 0;
    if (vk->vkCreateCommandPool(vk->device, &pool, NULL, &vk->pool))
        vk->pool = 0;
    if (vk->vkCreateFence(vk->device, &fence, NULL, &vk->fence))
        vk->fence = 0;
    return vk->layout && vk->pool && vk->fence && !new_commands(vk, MAX_COMMANDS, vk->commands) &&
           !allocate(vk, STAGING_BYTES, true, &vk->staging);
}

static const char *vk_open(DeviceState *state)
{
    Vulkan     *vk = (Vulkan *)state;
    const char *why;

    if (!new_instance(vk))
        return state->driver->no_device;
    if ((why = find_device(vk, state->options.number)))
        return why;
    if (!new_device(vk))
        return "the Vulkan device cannot be opened";
    return new_objects(vk) ? NULL : "the Vulkan device has no room for commands";
}

static void vk_close(DeviceState *state)
{
    Vulkan *vk = (Vulkan *)state;

    if (vk->device) {
        finish(vk);
        vk->vkDeviceWaitIdle(vk->device);
        if (vk->recording)
            vk_recording_free(vk, vk->recording);
        release(vk, vk->staging);
        if (vk->pool)
            vk->vkDestroyCommandPool(vk->device, vk->pool, NULL); /* and its commands */
        if (vk->fence)
            vk->vkDestroyFence(vk->device, vk->fence, NULL);
        if (vk->cache)
            vk->vkDestroyPipelineCache(vk->device, vk->cache, NULL);
        if (vk->layout)
            vk->vkDestroyPipelineLayout(vk->device, vk->layout, NULL);
        vk->vkDestroyDevice(vk->device, NULL);
    }
    if (vk->instance)
        vk->vkDestroyInstance(vk->instance, NULL);
    vk->device = vk->instance = NULL;
    vk->recording = NULL;
}

static uint32_t vk_names(DeviceState *state, uint32_t n, char (*names)[TVMRT_DEVICE_NAME])
{
    Vulkan  *vk = (Vulkan *)state;
    VkHandle all[MAX_DEVICES];
    uint32_t count;

    if (!new_instance(vk))
        return 0;
    count = all_devices(vk, all);
    for (uint32_t i = 0; i < count && i < n; i++) {
        vk->vkGetPhysicalDeviceProperties(all[i], &vk->properties);
        memset(names[i], 0, TVMRT_DEVICE_NAME);
        snprintf(names[i], TVMRT_DEVICE_NAME, "%.*s", TVMRT_DEVICE_NAME - 1, vk->properties.name);
    }
    vk_close(state);
    return count;
}

static const DeviceCall calls[] = {
#define ROW(result, name, args) {#name, offsetof(Vulkan, name)},
    VK_CALLS(ROW)};

const DeviceDriver tvmrt_vulkan_driver = {
    .title = "Vulkan",
    .library = "libvulkan.so.1",
    .no_library = "no libvulkan.so.1",
    .no_call = "libvulkan.so.1 lacks a function: it is older than Vulkan 1.2",
    .no_device = "no Vulkan device",
    .bytes = sizeof(Vulkan),
    .least = 4,
    .ncalls = sizeof calls / sizeof *calls,
    .calls = calls,
    .open = vk_open,
    .close = vk_close,
    .names = vk_names,
    .fits = vk_fits,
    .error_text = vk_error_text,
    .functions = {.alloc = vk_alloc,
                  .free = vk_free,
                  .upload = vk_upload,
                  .download = vk_download,
                  .copy = vk_copy,
                  .module_load = vk_module_load,
                  .module_free = vk_module_free,
                  .kernel = vk_kernel,
                  .kernel_free = vk_kernel_free,
                  .launch = vk_launch,
                  .wait = vk_wait,
                  .record_begin = vk_record_begin,
                  .record_end = vk_record_end,
                  .replay = vk_replay,
                  .recording_free = vk_recording_free},
};
