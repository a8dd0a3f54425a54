/* AMD's Vulkan compiler over our SPIR-V, without a card: registers, spills and scratch memory of
 * each kernel, as Mesa's RADV tells them.
 *
 *     tvmcc compile net.onnx --target=vulkan --emit=spvasm -o net.spvasm
 *     spirv-as --target-env vulkan1.3 net.spvasm -o net.spv
 *     cc benchmarks/gpu_radv.c -lvulkan -o gpu_radv
 *     VK_ICD_FILENAMES=/usr/share/vulkan/icd.d/radeon_icd.x86_64.json \
 *         RADV_FORCE_FAMILY=NAVI21 RADV_DEBUG=shaderstats,nocache ./gpu_radv net.spv
 *
 * Kernels with cooperative matrices want a driver that has them (Mesa 25,
 * RADV_FORCE_FAMILY=NAVI31).
 *
 * With RADV_FORCE_FAMILY the driver compiles for that GPU and runs nothing.  Kernels take all that
 * they need as push constants, so a pipeline of each entry point is all there is to make. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <vulkan/vulkan.h>

enum {
    MAX_WORDS = 1 << 24,
    ENTRY_POINT = 15,
    CAPABILITY = 17,
    MATRICES = 6022, /* a capability: cooperative ones, of subgroups of 32 threads */
    SUBGROUP = 32,
    PUSH_BYTES = 128,
    MATRIX_FEATURES = 1000506000 /* a type of struct that older headers have not */
};

static struct {
    VkStructureType type;
    void           *next;
    VkBool32        matrices, robust;
} matrix_features = {(VkStructureType)MATRIX_FEATURES, NULL, VK_TRUE, VK_FALSE};

static void check(VkResult rc, const char *what)
{
    if (rc == VK_SUCCESS)
        return;
    fprintf(stderr, "gpu_radv: %s: %d\n", what, (int)rc);
    exit(1);
}

/* All that the device has: kernels ask for some of it. */
static VkDevice open_device(VkPhysicalDevice gpu, int matrices)
{
    static const char *const                    extensions[] = {"VK_KHR_cooperative_matrix",
                                                                "VK_EXT_subgroup_size_control"};
    VkPhysicalDeviceSubgroupSizeControlFeatures subgroups = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_SIZE_CONTROL_FEATURES,
        .pNext = &matrix_features,
        .subgroupSizeControl = VK_TRUE,
        .computeFullSubgroups = VK_TRUE};
    VkPhysicalDeviceVulkan12Features v12 = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES};
    VkPhysicalDeviceVulkan11Features v11 = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_1_FEATURES, .pNext = &v12};
    VkPhysicalDeviceFeatures2 all = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2,
                                     .pNext = &v11};
    float                     priority = 1;
    VkDeviceQueueCreateInfo   queue = {.sType = VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO,
                                       .queueCount = 1,
                                       .pQueuePriorities = &priority};
    VkDeviceCreateInfo        info = {.sType = VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO,
                                      .pNext = &all,
                                      .queueCreateInfoCount = 1,
                                      .pQueueCreateInfos = &queue};
    VkDevice                  device;

    vkGetPhysicalDeviceFeatures2(gpu, &all);
    if (matrices) {
        v12.pNext = &subgroups;
        info.enabledExtensionCount = 2;
        info.ppEnabledExtensionNames = extensions;
    }
    check(vkCreateDevice(gpu, &info, NULL, &device), "vkCreateDevice");
    return device;
}

static int has_matrices(size_t n, const uint32_t *words)
{
    for (size_t at = 5; at + 1 < n && words[at] >> 16; at += words[at] >> 16)
        if (words[at] == (2u << 16 | CAPABILITY) && words[at + 1] == MATRICES)
            return 1;
    return 0;
}

int main(int argc, char **argv)
{
    static uint32_t words[MAX_WORDS];
    FILE           *f = argc == 2 ? fopen(argv[1], "rb") : NULL;
    size_t          n = f ? fread(words, 4, MAX_WORDS, f) : 0;
    uint32_t        one = 1;

    if (n < 5 || n == MAX_WORDS || words[0] != 0x07230203) {
        fprintf(stderr, "gpu_radv: one file of SPIR-V, please\n");
        return 1;
    }
    VkApplicationInfo    app = {.sType = VK_STRUCTURE_TYPE_APPLICATION_INFO,
                                .apiVersion = VK_API_VERSION_1_3};
    VkInstanceCreateInfo instance_info = {.sType = VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO,
                                          .pApplicationInfo = &app};
    VkInstance           instance;
    VkPhysicalDevice     gpu;
    check(vkCreateInstance(&instance_info, NULL, &instance), "vkCreateInstance");
    check(vkEnumeratePhysicalDevices(instance, &one, &gpu), "vkEnumeratePhysicalDevices");
    int                        matrices = has_matrices(n, words);
    VkDevice                   device = open_device(gpu, matrices);
    VkPushConstantRange        push = {VK_SHADER_STAGE_COMPUTE_BIT, 0, PUSH_BYTES};
    VkPipelineLayoutCreateInfo layout_info = {.sType =
                                                  VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO,
                                              .pushConstantRangeCount = 1,
                                              .pPushConstantRanges = &push};
    VkShaderModuleCreateInfo   module_info = {
          .sType = VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO, .codeSize = n * 4, .pCode = words};
    VkPipelineLayout layout;
    VkShaderModule   module;
    check(vkCreatePipelineLayout(device, &layout_info, NULL, &layout), "vkCreatePipelineLayout");
    check(vkCreateShaderModule(device, &module_info, NULL, &module), "vkCreateShaderModule");
    for (size_t at = 5; at + 3 < n && words[at] >> 16; at += words[at] >> 16) {
        if ((words[at] & 0xffff) != ENTRY_POINT)
            continue;
        VkPipelineShaderStageRequiredSubgroupSizeCreateInfo size = {
            .sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_REQUIRED_SUBGROUP_SIZE_CREATE_INFO,
            .requiredSubgroupSize = SUBGROUP};
        VkComputePipelineCreateInfo info = {
            .sType = VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO,
            .stage = {.sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO,
                      .pNext = matrices ? &size : NULL,
                      .flags =
                          matrices ? VK_PIPELINE_SHADER_STAGE_CREATE_REQUIRE_FULL_SUBGROUPS_BIT : 0,
                      .stage = VK_SHADER_STAGE_COMPUTE_BIT,
                      .module = module,
                      .pName = (const char *)&words[at + 3]},
            .layout = layout};
        VkPipeline pipeline;
        fprintf(stderr, "kernel %s\n", info.stage.pName);
        check(vkCreateComputePipelines(device, VK_NULL_HANDLE, 1, &info, NULL, &pipeline),
              "vkCreateComputePipelines");
    }
    fflush(NULL);
    _Exit(0); /* a driver that runs nothing has nothing to close */
}
