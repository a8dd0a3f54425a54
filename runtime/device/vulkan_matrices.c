/* vulkan_matrices.c: does a Vulkan device have the cooperative matrices that kernels ask for?
 * (VK_KHR_cooperative_matrix, VK_EXT_subgroup_size_control.)
 */
#include "vulkan.h"

#include <string.h>

enum { SIDE = 16, MOST_MATRICES = 256, MOST_SUBGROUPS = 1024 / SUBGROUP /* of a block */ };

const char *const tvmrt_vk_matrix_extensions[MATRIX_EXTENSIONS] = {"VK_KHR_cooperative_matrix",
                                                                   "VK_EXT_subgroup_size_control"};

/* All threads of a block are in subgroups of 32, if a pipeline asks for that. */
static bool has_features(Vulkan *vk)
{
    VkMatrixFeatures     matrices = {.type = VK_MATRIX_FEATURES};
    VkSubgroupFeatures   subgroups = {.type = VK_SUBGROUP_FEATURES, .next = &matrices};
    VkFeatures           features = {.type = VK_FEATURES, .next = &subgroups};
    VkSubgroupProperties sizes = {.type = VK_SUBGROUP_PROPERTIES};
    VkProperties2        properties = {.type = VK_PROPERTIES, .next = &sizes};

    vk->vkGetPhysicalDeviceFeatures2(vk->physical, &features);
    vk->vkGetPhysicalDeviceProperties2(vk->physical, &properties);
    return matrices.matrices && subgroups.control && subgroups.full && sizes.least <= SUBGROUP &&
           sizes.most >= SUBGROUP && sizes.groups >= MOST_SUBGROUPS &&
           (sizes.stages & VK_STAGE_COMPUTE) && vk->features12.has[VK_MEMORY_MODEL] &&
           vk->features12.has[VK_SHADER_FLOAT16];
}

static bool is_known(const VkMatrix *m)
{
    return m->m == SIDE && m->n == SIDE && m->k == SIDE && m->a == VK_IS_F16 && m->b == VK_IS_F16 &&
           m->c == VK_IS_F32 && m->result == VK_IS_F32 && m->scope == VK_OF_SUBGROUP;
}

bool tvmrt_vk_find_matrices(Vulkan *vk)
{
    VkMatrix        all[MOST_MATRICES];
    uint32_t        n = MOST_MATRICES;
    VkFindMatrices *find;
    void           *call;

    if (!tvmrt_vk_has_extensions(vk, MATRIX_EXTENSIONS, tvmrt_vk_matrix_extensions) ||
        !has_features(vk) ||
        !(call = vk->vkGetInstanceProcAddr(vk->instance,
                                           "vkGetPhysicalDeviceCooperativeMatrixPropertiesKHR")))
        return false;
    memcpy(&find, &call, sizeof find);
    for (uint32_t i = 0; i < n; i++)
        all[i] = (VkMatrix){.type = VK_MATRIX};
    if (find(vk->physical, &n, all) < 0)
        return false;
    for (uint32_t i = 0; i < n; i++)
        if (is_known(&all[i]))
            return true;
    return false;
}
