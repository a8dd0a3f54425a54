/* vulkan.c: Vulkan as a device: which one is taken, how it is opened and closed, and what its
 * errors mean.
 */
#include "vulkan.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_DEVICES = 32, MAX_FAMILIES = 32 };

static const char *const dot_extension = "VK_KHR_shader_integer_dot_product";

int32_t tvmrt_vk_check(Vulkan *vk, int32_t code, const char *what)
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

int32_t tvmrt_vk_refuse(Vulkan *vk, const char *why)
{
    snprintf(vk->state.error, sizeof vk->state.error, "%s: %s", vk->properties.name, why);
    return TVMCC_E_DEVICE;
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

/* Has it what every kernel needs?  NULL, or why not.  Notes its family of queues and features. */
static const char *look_at(Vulkan *vk, VkHandle physical)
{
    VkQueueFamily families[MAX_FAMILIES];
    VkProperties2 all;
    uint32_t      n = MAX_FAMILIES;

    vk->physical = physical;
    vk->vkGetPhysicalDeviceProperties(physical, &vk->properties);
    if (vk->properties.api < VK_1_2)
        return "the Vulkan device is older than Vulkan 1.2";
    vk->features12 = (VkFeatures12){.type = VK_FEATURES_12};
    vk->features11 = (VkFeatures11){.type = VK_FEATURES_11, .next = &vk->features12};
    vk->features = (VkFeatures){.type = VK_FEATURES, .next = &vk->features11};
    vk->vkGetPhysicalDeviceFeatures2(physical, &vk->features);
    vk->floats = (VkFloats){.type = VK_FLOAT_CONTROLS};
    all = (VkProperties2){.type = VK_PROPERTIES, .next = &vk->floats};
    vk->vkGetPhysicalDeviceProperties2(physical, &all);
    if (!vk->features12.has[VK_BUFFER_ADDRESS])
        return "the Vulkan device has no addresses of buffers (bufferDeviceAddress)";
    vk->vkGetPhysicalDeviceQueueFamilyProperties(physical, &n, families);
    for (vk->family = 0; vk->family < n; vk->family++)
        if (families[vk->family].flags & VK_QUEUE_COMPUTE) {
            vk->timestamp_bits = families[vk->family].timestamp_bits;
            return NULL;
        }
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

bool tvmrt_vk_has_extensions(Vulkan *vk, uint32_t wanted, const char *const *names)
{
    uint32_t     n = 0, found = 0;
    VkExtension *all;

    if (vk->vkEnumerateDeviceExtensionProperties(vk->physical, NULL, &n, NULL) ||
        !(all = calloc(n + 1, sizeof *all)))
        return false;
    if (vk->vkEnumerateDeviceExtensionProperties(vk->physical, NULL, &n, all) < 0)
        n = 0;
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t k = 0; k < wanted; k++)
            found += strcmp(all[i].name, names[k]) == 0;
    free(all);
    return found == wanted;
}

/* Products of bytes, four a step. */
static bool find_dots(Vulkan *vk)
{
    VkDotFeatures dots = {.type = VK_DOT_FEATURES};
    VkFeatures    features = {.type = VK_FEATURES, .next = &dots};

    if (!tvmrt_vk_has_extensions(vk, 1, &dot_extension))
        return false;
    vk->vkGetPhysicalDeviceFeatures2(vk->physical, &features);
    return dots.dots;
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
    vk->features12.has[VK_SHADER_FLOAT16] = vk->has_matrices;
    vk->features12.has[VK_MEMORY_MODEL] = vk->has_matrices;
}

static bool new_device(Vulkan *vk)
{
    const float priority = 1;
    VkQueueInfo queue = {
        .type = VK_QUEUE, .family = vk->family, .count = 1, .priorities = &priority};
    VkMatrixFeatures   matrices = {.type = VK_MATRIX_FEATURES, .matrices = 1};
    VkSubgroupFeatures subgroups = {
        .type = VK_SUBGROUP_FEATURES, .next = &matrices, .control = 1, .full = 1};
    VkDotFeatures dots = {.type = VK_DOT_FEATURES, .next = &vk->features, .dots = 1};
    const char   *extensions[MOST_EXTENSIONS];
    VkDeviceInfo  info = {.type = VK_DEVICE,
                          .next = &vk->features,
                          .nqueues = 1,
                          .queues = &queue,
                          .extensions = extensions};

    vk->has_matrices = tvmrt_vk_find_matrices(vk); /* of this device alone */
    vk->has_dots = find_dots(vk);
    choose_features(vk);
    if (vk->has_dots) {
        info.next = &dots;
        extensions[info.nextensions++] = dot_extension;
    }
    if (vk->has_matrices) {
        matrices.next = (void *)(uintptr_t)info.next;
        info.next = &subgroups;
        for (uint32_t i = 0; i < MATRIX_EXTENSIONS; i++)
            extensions[info.nextensions++] = tvmrt_vk_matrix_extensions[i];
    }
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
    return vk->layout && vk->pool && vk->fence &&
           !tvmrt_vk_new_commands(vk, MAX_COMMANDS, vk->commands) &&
           !tvmrt_vk_memory_new(vk, STAGING_BYTES, true, &vk->staging);
}

static const char *vk_open(DeviceState *state)
{
    Vulkan     *vk = (Vulkan *)state;
    const char *why;

    if (!new_instance(vk))
        return state->driver->no_device;
    if ((why = find_device(vk, state->options.number)) ||
        (state->options.timing && (why = tvmrt_vk_can_time(vk))))
        return why;
    if (!new_device(vk))
        return "the Vulkan device cannot be opened";
    return new_objects(vk) ? NULL : "the Vulkan device has no room for commands";
}

static void vk_close(DeviceState *state)
{
    Vulkan *vk = (Vulkan *)state;

    if (vk->device) {
        if (vk->submitted) /* else there is nothing to wait for, and RADV without a card crashes */
            vk->vkDeviceWaitIdle(vk->device);
        if (vk->recording)
            tvmrt_vk_recording_free(vk, vk->recording);
        tvmrt_vk_memory_free(vk, vk->staging);
        tvmrt_vk_free_times(vk);
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

static const char *maker_of(uint32_t vendor)
{
    static const struct {
        uint32_t    id;
        const char *name;
    } makers[] = {{0x1002, "AMD"},      {0x1010, "Imagination"}, {0x106b, "Apple"},
                  {0x10de, "NVIDIA"},   {0x13b5, "ARM"},         {0x14e4, "Broadcom"},
                  {0x5143, "Qualcomm"}, {0x8086, "Intel"},       {0x10005, "Mesa"}};

    for (size_t i = 0; i < sizeof makers / sizeof *makers; i++)
        if (makers[i].id == vendor)
            return makers[i].name;
    return "";
}

static void describe(Vulkan *vk, VkHandle physical, tvmrt_device_info *out)
{
    vk->vkGetPhysicalDeviceProperties(physical, &vk->properties);
    vk->vkGetPhysicalDeviceMemoryProperties(physical, &vk->memories);
    snprintf(out->name, sizeof out->name, "%.*s", (int)sizeof out->name - 1, vk->properties.name);
    snprintf(out->maker, sizeof out->maker, "%s", maker_of(vk->properties.vendor));
    out->type = vk->properties.type == VK_TYPE_DISCRETE || vk->properties.type == VK_TYPE_VIRTUAL
                    ? TVMRT_CARD
                : vk->properties.type == VK_TYPE_INTEGRATED ? TVMRT_CHIP
                                                            : TVMRT_NO_GPU;
    for (uint32_t i = 0; i < vk->memories.nheaps && i < 16; i++)
        if (vk->memories.heaps[i].flags & VK_MEMORY_DEVICE)
            out->memory_bytes += vk->memories.heaps[i].bytes;
}

static uint32_t vk_devices(DeviceState *state, uint32_t n, tvmrt_device_info *out)
{
    Vulkan  *vk = (Vulkan *)state;
    VkHandle all[MAX_DEVICES];
    uint32_t count;

    if (!new_instance(vk))
        return 0;
    count = all_devices(vk, all);
    for (uint32_t i = 0; i < count && i < n; i++)
        describe(vk, all[i], &out[i]);
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
    .devices = vk_devices,
    .launch_times = tvmrt_vk_launch_times,
    .limits = tvmrt_vk_limits,
    .error_text = vk_error_text,
    .functions = {.alloc = tvmrt_vk_alloc,
                  .free = tvmrt_vk_free,
                  .upload = tvmrt_vk_upload,
                  .download = tvmrt_vk_download,
                  .copy = tvmrt_vk_copy,
                  .module_load = tvmrt_vk_module_load,
                  .module_free = tvmrt_vk_module_free,
                  .kernel = tvmrt_vk_kernel,
                  .kernel_free = tvmrt_vk_kernel_free,
                  .launch = tvmrt_vk_launch,
                  .wait = tvmrt_vk_wait,
                  .download_later = tvmrt_vk_download_later,
                  .poll = tvmrt_vk_poll,
                  .record_begin = tvmrt_vk_record_begin,
                  .record_end = tvmrt_vk_record_end,
                  .replay = tvmrt_vk_replay,
                  .recording_free = tvmrt_vk_recording_free},
};
