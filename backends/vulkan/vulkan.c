/* Vulkan as a backend: kernels are SPIR-V, which every device's driver compiles when the model is
 * opened. */
#include "backends/vulkan/vulkan.h"

#include "tvmcc/abi.h"

static const Target *parse_target(Ctx *c, const char *text)
{
    return device_parse_target(c, &backend_vulkan, text);
}

static void list_targets(StrBuf *out)
{
    str_add(out,
            "vulkan   any device with Vulkan 1.2; the CPU that drives it may follow a comma\n");
}

/* 16 KiB are what every device's block may share; registers as for OpenCL's devices. */
static const DeviceModel models[] = {{NULL, 16 * 1024, 64, 32}, {0}};

static const Device vulkan = {
    .kind = TVMCC_DEVICE_VULKAN,
    .title = "Vulkan",
    .packages = "mesa-vulkan-drivers, or the device's driver",
    .options = "",
    .threads = 256,
    .most_threads = 1024,
    .most_blocks = {INT32_MAX, GROUPS_MOST, GROUPS_MOST},
    .no_math = true,
    .models = models,
    .source = vulkan_source,
    .images = vulkan_images,
};

const Backend backend_vulkan = {
    .name = "vulkan",
    .device = &vulkan,
    .parse_target = parse_target,
    .list_targets = list_targets,
    .device_code = device_code,
    .jit_load = device_jit_load,
    .jit_symbol = device_jit_symbol,
    .jit_free = device_jit_free,
};
