/* Vulkan as a backend: kernels are SPIR-V, which every device's driver compiles when the model is
 * opened. */
#include "backends/vulkan/vulkan.h"

#include "tvmcc/abi.h"

static const DeviceModel models[] = {
    /* 16 KiB are what every device's block may share, 64 registers what phones have */
    {NULL, 16 * 1024, 64, 32, HAS_F64},
#include "backends/common/models.def"
    {0}};

static const Device vulkan = {
    .kind = TVMCC_DEVICE_VULKAN,
    .title = "Vulkan",
    .packages = "mesa-vulkan-drivers, or the device's driver",
    .options = "",
    .threads = 256,
    .most_threads = 1024,
    .most_shared = 64 * 1024,
    .most_blocks = {INT32_MAX, GROUPS_MOST, GROUPS_MOST},
    .most_buffers = BUFFERS_MOST,
    .no_math = true,
    .no_f64_math = ~(F64_INSTRUCTIONS | MATH_BIT(MATH_FMOD)), /* of GLSL.std.450 */
    .models = models,
    .switches = HAS_DOTS | HAS_MATRICES | HAS_F64,
    .canonical = vulkan_canonical,
    .source = vulkan_source,
    .images = vulkan_images,
};

DEVICE_BACKEND(vulkan, "any device with Vulkan 1.2")
