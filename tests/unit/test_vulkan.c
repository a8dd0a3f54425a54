/* What runtime/device/vulkan_api.h declares of Vulkan, against the specification's own header:
 * sizes of structs, places and sizes of their members, numbers.  Skipped where there is no such
 * header. */
#include "tests/unit/check.h"

#if __has_include(<vulkan/vulkan_core.h>)
#include "runtime/device/vulkan_api.h"

#include <vulkan/vulkan_core.h>

#define SIZE(ours, theirs) CHECK_INT(sizeof(ours), sizeof(theirs))
#define MEMBER(ours, member, theirs, their_member)                     \
    CHECK_INT(offsetof(ours, member), offsetof(theirs, their_member)); \
    CHECK_INT(sizeof(((ours *)0)->member), sizeof(((theirs *)0)->their_member))

static void test_structs(void)
{
    SIZE(VkApplication, VkApplicationInfo);
    MEMBER(VkApplication, type, VkApplicationInfo, sType);
    MEMBER(VkApplication, next, VkApplicationInfo, pNext);
    MEMBER(VkApplication, name, VkApplicationInfo, pApplicationName);
    MEMBER(VkApplication, version, VkApplicationInfo, applicationVersion);
    MEMBER(VkApplication, engine, VkApplicationInfo, pEngineName);
    MEMBER(VkApplication, engine_version, VkApplicationInfo, engineVersion);
    MEMBER(VkApplication, api, VkApplicationInfo, apiVersion);
    SIZE(VkInstanceInfo, VkInstanceCreateInfo);
    MEMBER(VkInstanceInfo, type, VkInstanceCreateInfo, sType);
    MEMBER(VkInstanceInfo, next, VkInstanceCreateInfo, pNext);
    MEMBER(VkInstanceInfo, flags, VkInstanceCreateInfo, flags);
    MEMBER(VkInstanceInfo, application, VkInstanceCreateInfo, pApplicationInfo);
    MEMBER(VkInstanceInfo, nlayers, VkInstanceCreateInfo, enabledLayerCount);
    MEMBER(VkInstanceInfo, layers, VkInstanceCreateInfo, ppEnabledLayerNames);
    MEMBER(VkInstanceInfo, nextensions, VkInstanceCreateInfo, enabledExtensionCount);
    MEMBER(VkInstanceInfo, extensions, VkInstanceCreateInfo, ppEnabledExtensionNames);
    CHECK(sizeof(VkProperties) >= sizeof(VkPhysicalDeviceProperties));
    MEMBER(VkProperties, api, VkPhysicalDeviceProperties, apiVersion);
    MEMBER(VkProperties, driver, VkPhysicalDeviceProperties, driverVersion);
    MEMBER(VkProperties, vendor, VkPhysicalDeviceProperties, vendorID);
    MEMBER(VkProperties, device, VkPhysicalDeviceProperties, deviceID);
    MEMBER(VkProperties, type, VkPhysicalDeviceProperties, deviceType);
    MEMBER(VkProperties, name, VkPhysicalDeviceProperties, deviceName);
    MEMBER(VkProperties, uuid, VkPhysicalDeviceProperties, pipelineCacheUUID);
    MEMBER(VkProperties, limits.shared_bytes, VkPhysicalDeviceProperties,
           limits.maxComputeSharedMemorySize);
    MEMBER(VkProperties, limits.groups, VkPhysicalDeviceProperties,
           limits.maxComputeWorkGroupCount);
    MEMBER(VkProperties, limits.threads, VkPhysicalDeviceProperties,
           limits.maxComputeWorkGroupInvocations);
    MEMBER(VkProperties, limits.block, VkPhysicalDeviceProperties, limits.maxComputeWorkGroupSize);
    MEMBER(VkProperties, limits.timestamp_ns, VkPhysicalDeviceProperties, limits.timestampPeriod);
    MEMBER(VkProperties2, type, VkPhysicalDeviceProperties2, sType);
    MEMBER(VkProperties2, next, VkPhysicalDeviceProperties2, pNext);
    CHECK_INT(offsetof(VkProperties2, properties),
              offsetof(VkPhysicalDeviceProperties2, properties));
    SIZE(VkExtension, VkExtensionProperties);
    MEMBER(VkExtension, name, VkExtensionProperties, extensionName);
    SIZE(VkSubgroupFeatures, VkPhysicalDeviceSubgroupSizeControlFeatures);
    MEMBER(VkSubgroupFeatures, control, VkPhysicalDeviceSubgroupSizeControlFeatures,
           subgroupSizeControl);
    MEMBER(VkSubgroupFeatures, full, VkPhysicalDeviceSubgroupSizeControlFeatures,
           computeFullSubgroups);
    SIZE(VkSubgroupProperties, VkPhysicalDeviceSubgroupSizeControlProperties);
    MEMBER(VkSubgroupProperties, least, VkPhysicalDeviceSubgroupSizeControlProperties,
           minSubgroupSize);
    MEMBER(VkSubgroupProperties, most, VkPhysicalDeviceSubgroupSizeControlProperties,
           maxSubgroupSize);
    MEMBER(VkSubgroupProperties, groups, VkPhysicalDeviceSubgroupSizeControlProperties,
           maxComputeWorkgroupSubgroups);
    MEMBER(VkSubgroupProperties, stages, VkPhysicalDeviceSubgroupSizeControlProperties,
           requiredSubgroupSizeStages);
    SIZE(VkSubgroupSize, VkPipelineShaderStageRequiredSubgroupSizeCreateInfo);
    MEMBER(VkSubgroupSize, size, VkPipelineShaderStageRequiredSubgroupSizeCreateInfo,
           requiredSubgroupSize);
    SIZE(VkDotFeatures, VkPhysicalDeviceShaderIntegerDotProductFeaturesKHR);
    MEMBER(VkDotFeatures, dots, VkPhysicalDeviceShaderIntegerDotProductFeaturesKHR,
           shaderIntegerDotProduct);
#ifdef VK_KHR_cooperative_matrix
    SIZE(VkMatrixFeatures, VkPhysicalDeviceCooperativeMatrixFeaturesKHR);
    MEMBER(VkMatrixFeatures, matrices, VkPhysicalDeviceCooperativeMatrixFeaturesKHR,
           cooperativeMatrix);
    SIZE(VkMatrix, VkCooperativeMatrixPropertiesKHR);
    MEMBER(VkMatrix, m, VkCooperativeMatrixPropertiesKHR, MSize);
    MEMBER(VkMatrix, a, VkCooperativeMatrixPropertiesKHR, AType);
    MEMBER(VkMatrix, result, VkCooperativeMatrixPropertiesKHR, ResultType);
    MEMBER(VkMatrix, scope, VkCooperativeMatrixPropertiesKHR, scope);
#endif
    SIZE(VkFloats, VkPhysicalDeviceFloatControlsProperties);
    MEMBER(VkFloats, type, VkPhysicalDeviceFloatControlsProperties, sType);
    MEMBER(VkFloats, next, VkPhysicalDeviceFloatControlsProperties, pNext);
    MEMBER(VkFloats, denorm_independence, VkPhysicalDeviceFloatControlsProperties,
           denormBehaviorIndependence);
    MEMBER(VkFloats, rounding_independence, VkPhysicalDeviceFloatControlsProperties,
           roundingModeIndependence);
    MEMBER(VkFloats, has[VK_NAN_PRESERVE + 1], VkPhysicalDeviceFloatControlsProperties,
           shaderSignedZeroInfNanPreserveFloat32);
    MEMBER(VkFloats, has[VK_DENORM_PRESERVE + 1], VkPhysicalDeviceFloatControlsProperties,
           shaderDenormPreserveFloat32);
    MEMBER(VkFloats, has[VK_ROUND_EVEN + 1], VkPhysicalDeviceFloatControlsProperties,
           shaderRoundingModeRTEFloat32);
    SIZE(VkQueueFamily, VkQueueFamilyProperties);
    MEMBER(VkQueueFamily, flags, VkQueueFamilyProperties, queueFlags);
    MEMBER(VkQueueFamily, count, VkQueueFamilyProperties, queueCount);
    MEMBER(VkQueueFamily, timestamp_bits, VkQueueFamilyProperties, timestampValidBits);
    MEMBER(VkQueueFamily, granularity, VkQueueFamilyProperties, minImageTransferGranularity);
    SIZE(VkMemories, VkPhysicalDeviceMemoryProperties);
    MEMBER(VkMemories, ntypes, VkPhysicalDeviceMemoryProperties, memoryTypeCount);
    MEMBER(VkMemories, types, VkPhysicalDeviceMemoryProperties, memoryTypes);
    MEMBER(VkMemories, types[1].flags, VkPhysicalDeviceMemoryProperties,
           memoryTypes[1].propertyFlags);
    MEMBER(VkMemories, types[1].heap, VkPhysicalDeviceMemoryProperties, memoryTypes[1].heapIndex);
    MEMBER(VkMemories, nheaps, VkPhysicalDeviceMemoryProperties, memoryHeapCount);
    MEMBER(VkMemories, heaps, VkPhysicalDeviceMemoryProperties, memoryHeaps);
    MEMBER(VkMemories, heaps[1].bytes, VkPhysicalDeviceMemoryProperties, memoryHeaps[1].size);
    MEMBER(VkMemories, heaps[1].flags, VkPhysicalDeviceMemoryProperties, memoryHeaps[1].flags);
    SIZE(VkFeatures, VkPhysicalDeviceFeatures2);
    MEMBER(VkFeatures, type, VkPhysicalDeviceFeatures2, sType);
    MEMBER(VkFeatures, next, VkPhysicalDeviceFeatures2, pNext);
    MEMBER(VkFeatures, has, VkPhysicalDeviceFeatures2, features);
    MEMBER(VkFeatures, has[VK_SHADER_FLOAT64], VkPhysicalDeviceFeatures2, features.shaderFloat64);
    MEMBER(VkFeatures, has[VK_SHADER_INT64], VkPhysicalDeviceFeatures2, features.shaderInt64);
    MEMBER(VkFeatures, has[VK_SHADER_INT16], VkPhysicalDeviceFeatures2, features.shaderInt16);
    SIZE(VkFeatures11, VkPhysicalDeviceVulkan11Features);
    MEMBER(VkFeatures11, type, VkPhysicalDeviceVulkan11Features, sType);
    MEMBER(VkFeatures11, next, VkPhysicalDeviceVulkan11Features, pNext);
    MEMBER(VkFeatures11, has[VK_STORAGE_16BIT], VkPhysicalDeviceVulkan11Features,
           storageBuffer16BitAccess);
    SIZE(VkFeatures12, VkPhysicalDeviceVulkan12Features);
    MEMBER(VkFeatures12, type, VkPhysicalDeviceVulkan12Features, sType);
    MEMBER(VkFeatures12, next, VkPhysicalDeviceVulkan12Features, pNext);
    MEMBER(VkFeatures12, has[VK_STORAGE_8BIT], VkPhysicalDeviceVulkan12Features,
           storageBuffer8BitAccess);
    MEMBER(VkFeatures12, has[VK_SHADER_INT8], VkPhysicalDeviceVulkan12Features, shaderInt8);
    MEMBER(VkFeatures12, has[VK_SHADER_FLOAT16], VkPhysicalDeviceVulkan12Features, shaderFloat16);
    MEMBER(VkFeatures12, has[VK_MEMORY_MODEL], VkPhysicalDeviceVulkan12Features, vulkanMemoryModel);
    MEMBER(VkFeatures12, has[VK_BUFFER_ADDRESS], VkPhysicalDeviceVulkan12Features,
           bufferDeviceAddress);
    SIZE(VkQueueInfo, VkDeviceQueueCreateInfo);
    MEMBER(VkQueueInfo, type, VkDeviceQueueCreateInfo, sType);
    MEMBER(VkQueueInfo, next, VkDeviceQueueCreateInfo, pNext);
    MEMBER(VkQueueInfo, flags, VkDeviceQueueCreateInfo, flags);
    MEMBER(VkQueueInfo, family, VkDeviceQueueCreateInfo, queueFamilyIndex);
    MEMBER(VkQueueInfo, count, VkDeviceQueueCreateInfo, queueCount);
    MEMBER(VkQueueInfo, priorities, VkDeviceQueueCreateInfo, pQueuePriorities);
    SIZE(VkDeviceInfo, VkDeviceCreateInfo);
    MEMBER(VkDeviceInfo, type, VkDeviceCreateInfo, sType);
    MEMBER(VkDeviceInfo, next, VkDeviceCreateInfo, pNext);
    MEMBER(VkDeviceInfo, flags, VkDeviceCreateInfo, flags);
    MEMBER(VkDeviceInfo, nqueues, VkDeviceCreateInfo, queueCreateInfoCount);
    MEMBER(VkDeviceInfo, queues, VkDeviceCreateInfo, pQueueCreateInfos);
    MEMBER(VkDeviceInfo, nlayers, VkDeviceCreateInfo, enabledLayerCount);
    MEMBER(VkDeviceInfo, layers, VkDeviceCreateInfo, ppEnabledLayerNames);
    MEMBER(VkDeviceInfo, nextensions, VkDeviceCreateInfo, enabledExtensionCount);
    MEMBER(VkDeviceInfo, extensions, VkDeviceCreateInfo, ppEnabledExtensionNames);
    MEMBER(VkDeviceInfo, features, VkDeviceCreateInfo, pEnabledFeatures);
    SIZE(VkBufferInfo, VkBufferCreateInfo);
    MEMBER(VkBufferInfo, type, VkBufferCreateInfo, sType);
    MEMBER(VkBufferInfo, next, VkBufferCreateInfo, pNext);
    MEMBER(VkBufferInfo, flags, VkBufferCreateInfo, flags);
    MEMBER(VkBufferInfo, bytes, VkBufferCreateInfo, size);
    MEMBER(VkBufferInfo, usage, VkBufferCreateInfo, usage);
    MEMBER(VkBufferInfo, sharing, VkBufferCreateInfo, sharingMode);
    MEMBER(VkBufferInfo, nfamilies, VkBufferCreateInfo, queueFamilyIndexCount);
    MEMBER(VkBufferInfo, families, VkBufferCreateInfo, pQueueFamilyIndices);
    SIZE(VkRequirements, VkMemoryRequirements);
    MEMBER(VkRequirements, bytes, VkMemoryRequirements, size);
    MEMBER(VkRequirements, align, VkMemoryRequirements, alignment);
    MEMBER(VkRequirements, types, VkMemoryRequirements, memoryTypeBits);
    SIZE(VkMemoryFlags, VkMemoryAllocateFlagsInfo);
    MEMBER(VkMemoryFlags, type, VkMemoryAllocateFlagsInfo, sType);
    MEMBER(VkMemoryFlags, next, VkMemoryAllocateFlagsInfo, pNext);
    MEMBER(VkMemoryFlags, flags, VkMemoryAllocateFlagsInfo, flags);
    MEMBER(VkMemoryFlags, devices, VkMemoryAllocateFlagsInfo, deviceMask);
    SIZE(VkMemoryInfo, VkMemoryAllocateInfo);
    MEMBER(VkMemoryInfo, type, VkMemoryAllocateInfo, sType);
    MEMBER(VkMemoryInfo, next, VkMemoryAllocateInfo, pNext);
    MEMBER(VkMemoryInfo, bytes, VkMemoryAllocateInfo, allocationSize);
    MEMBER(VkMemoryInfo, memory_type, VkMemoryAllocateInfo, memoryTypeIndex);
    SIZE(VkAddressInfo, VkBufferDeviceAddressInfo);
    MEMBER(VkAddressInfo, type, VkBufferDeviceAddressInfo, sType);
    MEMBER(VkAddressInfo, next, VkBufferDeviceAddressInfo, pNext);
    MEMBER(VkAddressInfo, buffer, VkBufferDeviceAddressInfo, buffer);
    SIZE(VkModuleInfo, VkShaderModuleCreateInfo);
    MEMBER(VkModuleInfo, type, VkShaderModuleCreateInfo, sType);
    MEMBER(VkModuleInfo, next, VkShaderModuleCreateInfo, pNext);
    MEMBER(VkModuleInfo, flags, VkShaderModuleCreateInfo, flags);
    MEMBER(VkModuleInfo, bytes, VkShaderModuleCreateInfo, codeSize);
    MEMBER(VkModuleInfo, code, VkShaderModuleCreateInfo, pCode);
    SIZE(VkCacheInfo, VkPipelineCacheCreateInfo);
    MEMBER(VkCacheInfo, type, VkPipelineCacheCreateInfo, sType);
    MEMBER(VkCacheInfo, next, VkPipelineCacheCreateInfo, pNext);
    MEMBER(VkCacheInfo, flags, VkPipelineCacheCreateInfo, flags);
    MEMBER(VkCacheInfo, bytes, VkPipelineCacheCreateInfo, initialDataSize);
    MEMBER(VkCacheInfo, data, VkPipelineCacheCreateInfo, pInitialData);
    SIZE(VkQueryInfo, VkQueryPoolCreateInfo);
    MEMBER(VkQueryInfo, type, VkQueryPoolCreateInfo, sType);
    MEMBER(VkQueryInfo, next, VkQueryPoolCreateInfo, pNext);
    MEMBER(VkQueryInfo, flags, VkQueryPoolCreateInfo, flags);
    MEMBER(VkQueryInfo, query, VkQueryPoolCreateInfo, queryType);
    MEMBER(VkQueryInfo, count, VkQueryPoolCreateInfo, queryCount);
    MEMBER(VkQueryInfo, statistics, VkQueryPoolCreateInfo, pipelineStatistics);
    SIZE(VkPushRange, VkPushConstantRange);
    MEMBER(VkPushRange, stages, VkPushConstantRange, stageFlags);
    MEMBER(VkPushRange, offset, VkPushConstantRange, offset);
    MEMBER(VkPushRange, bytes, VkPushConstantRange, size);
    SIZE(VkLayoutInfo, VkPipelineLayoutCreateInfo);
    MEMBER(VkLayoutInfo, type, VkPipelineLayoutCreateInfo, sType);
    MEMBER(VkLayoutInfo, next, VkPipelineLayoutCreateInfo, pNext);
    MEMBER(VkLayoutInfo, flags, VkPipelineLayoutCreateInfo, flags);
    MEMBER(VkLayoutInfo, nsets, VkPipelineLayoutCreateInfo, setLayoutCount);
    MEMBER(VkLayoutInfo, sets, VkPipelineLayoutCreateInfo, pSetLayouts);
    MEMBER(VkLayoutInfo, nranges, VkPipelineLayoutCreateInfo, pushConstantRangeCount);
    MEMBER(VkLayoutInfo, ranges, VkPipelineLayoutCreateInfo, pPushConstantRanges);
    SIZE(VkPipelineInfo, VkComputePipelineCreateInfo);
    MEMBER(VkPipelineInfo, type, VkComputePipelineCreateInfo, sType);
    MEMBER(VkPipelineInfo, next, VkComputePipelineCreateInfo, pNext);
    MEMBER(VkPipelineInfo, flags, VkComputePipelineCreateInfo, flags);
    MEMBER(VkPipelineInfo, stage.type, VkComputePipelineCreateInfo, stage.sType);
    MEMBER(VkPipelineInfo, stage.next, VkComputePipelineCreateInfo, stage.pNext);
    MEMBER(VkPipelineInfo, stage.flags, VkComputePipelineCreateInfo, stage.flags);
    MEMBER(VkPipelineInfo, stage.stage, VkComputePipelineCreateInfo, stage.stage);
    MEMBER(VkPipelineInfo, stage.module, VkComputePipelineCreateInfo, stage.module);
    MEMBER(VkPipelineInfo, stage.name, VkComputePipelineCreateInfo, stage.pName);
    MEMBER(VkPipelineInfo, stage.constants, VkComputePipelineCreateInfo, stage.pSpecializationInfo);
    MEMBER(VkPipelineInfo, layout, VkComputePipelineCreateInfo, layout);
    MEMBER(VkPipelineInfo, base, VkComputePipelineCreateInfo, basePipelineHandle);
    MEMBER(VkPipelineInfo, base_index, VkComputePipelineCreateInfo, basePipelineIndex);
    SIZE(VkPoolInfo, VkCommandPoolCreateInfo);
    MEMBER(VkPoolInfo, type, VkCommandPoolCreateInfo, sType);
    MEMBER(VkPoolInfo, next, VkCommandPoolCreateInfo, pNext);
    MEMBER(VkPoolInfo, flags, VkCommandPoolCreateInfo, flags);
    MEMBER(VkPoolInfo, family, VkCommandPoolCreateInfo, queueFamilyIndex);
    SIZE(VkCommandsInfo, VkCommandBufferAllocateInfo);
    MEMBER(VkCommandsInfo, type, VkCommandBufferAllocateInfo, sType);
    MEMBER(VkCommandsInfo, next, VkCommandBufferAllocateInfo, pNext);
    MEMBER(VkCommandsInfo, pool, VkCommandBufferAllocateInfo, commandPool);
    MEMBER(VkCommandsInfo, level, VkCommandBufferAllocateInfo, level);
    MEMBER(VkCommandsInfo, count, VkCommandBufferAllocateInfo, commandBufferCount);
    SIZE(VkBeginInfo, VkCommandBufferBeginInfo);
    MEMBER(VkBeginInfo, type, VkCommandBufferBeginInfo, sType);
    MEMBER(VkBeginInfo, next, VkCommandBufferBeginInfo, pNext);
    MEMBER(VkBeginInfo, flags, VkCommandBufferBeginInfo, flags);
    MEMBER(VkBeginInfo, inherited, VkCommandBufferBeginInfo, pInheritanceInfo);
    SIZE(VkFenceInfo, VkFenceCreateInfo);
    MEMBER(VkFenceInfo, type, VkFenceCreateInfo, sType);
    MEMBER(VkFenceInfo, next, VkFenceCreateInfo, pNext);
    MEMBER(VkFenceInfo, flags, VkFenceCreateInfo, flags);
    SIZE(VkBarrier, VkMemoryBarrier);
    MEMBER(VkBarrier, type, VkMemoryBarrier, sType);
    MEMBER(VkBarrier, next, VkMemoryBarrier, pNext);
    MEMBER(VkBarrier, before, VkMemoryBarrier, srcAccessMask);
    MEMBER(VkBarrier, after, VkMemoryBarrier, dstAccessMask);
    SIZE(VkCopy, VkBufferCopy);
    MEMBER(VkCopy, from, VkBufferCopy, srcOffset);
    MEMBER(VkCopy, to, VkBufferCopy, dstOffset);
    MEMBER(VkCopy, bytes, VkBufferCopy, size);
    SIZE(VkSubmission, VkSubmitInfo);
    MEMBER(VkSubmission, type, VkSubmitInfo, sType);
    MEMBER(VkSubmission, next, VkSubmitInfo, pNext);
    MEMBER(VkSubmission, nwaits, VkSubmitInfo, waitSemaphoreCount);
    MEMBER(VkSubmission, waits, VkSubmitInfo, pWaitSemaphores);
    MEMBER(VkSubmission, stages, VkSubmitInfo, pWaitDstStageMask);
    MEMBER(VkSubmission, ncommands, VkSubmitInfo, commandBufferCount);
    MEMBER(VkSubmission, commands, VkSubmitInfo, pCommandBuffers);
    MEMBER(VkSubmission, nsignals, VkSubmitInfo, signalSemaphoreCount);
    MEMBER(VkSubmission, signals, VkSubmitInfo, pSignalSemaphores);
}

static void test_numbers(void)
{
    CHECK_INT(VK_APPLICATION, VK_STRUCTURE_TYPE_APPLICATION_INFO);
    CHECK_INT(VK_INSTANCE, VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO);
    CHECK_INT(VK_QUEUE, VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO);
    CHECK_INT(VK_DEVICE, VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO);
    CHECK_INT(VK_SUBMIT, VK_STRUCTURE_TYPE_SUBMIT_INFO);
    CHECK_INT(VK_QUERY_POOL, VK_STRUCTURE_TYPE_QUERY_POOL_CREATE_INFO);
    CHECK_INT(VK_MEMORY, VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO);
    CHECK_INT(VK_FENCE, VK_STRUCTURE_TYPE_FENCE_CREATE_INFO);
    CHECK_INT(VK_BUFFER, VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO);
    CHECK_INT(VK_MODULE, VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO);
    CHECK_INT(VK_CACHE, VK_STRUCTURE_TYPE_PIPELINE_CACHE_CREATE_INFO);
    CHECK_INT(VK_STAGE, VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO);
    CHECK_INT(VK_PIPELINE, VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO);
    CHECK_INT(VK_LAYOUT, VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO);
    CHECK_INT(VK_COMMAND_POOL, VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO);
    CHECK_INT(VK_COMMANDS, VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO);
    CHECK_INT(VK_BEGIN, VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO);
    CHECK_INT(VK_BARRIER, VK_STRUCTURE_TYPE_MEMORY_BARRIER);
    CHECK_INT(VK_FEATURES_11, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_1_FEATURES);
    CHECK_INT(VK_FEATURES_12, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES);
    CHECK_INT(VK_FEATURES, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2);
    CHECK_INT(VK_PROPERTIES, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2);
    CHECK_INT(VK_FLOAT_CONTROLS, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FLOAT_CONTROLS_PROPERTIES);
    CHECK_INT(VK_SUBGROUP_PROPERTIES,
              VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_SIZE_CONTROL_PROPERTIES);
    CHECK_INT(VK_SUBGROUP_SIZE,
              VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_REQUIRED_SUBGROUP_SIZE_CREATE_INFO);
    CHECK_INT(VK_SUBGROUP_FEATURES,
              VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_SIZE_CONTROL_FEATURES);
    CHECK_INT(VK_STAGE_FULL, VK_PIPELINE_SHADER_STAGE_CREATE_REQUIRE_FULL_SUBGROUPS_BIT);
#ifdef VK_KHR_cooperative_matrix
    CHECK_INT(VK_MATRIX_FEATURES,
              VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_COOPERATIVE_MATRIX_FEATURES_KHR);
    CHECK_INT(VK_MATRIX, VK_STRUCTURE_TYPE_COOPERATIVE_MATRIX_PROPERTIES_KHR);
    CHECK_INT(VK_IS_F16, VK_COMPONENT_TYPE_FLOAT16_KHR);
    CHECK_INT(VK_IS_F32, VK_COMPONENT_TYPE_FLOAT32_KHR);
    CHECK_INT(VK_OF_SUBGROUP, VK_SCOPE_SUBGROUP_KHR);
#endif
    CHECK_INT(VK_DOT_FEATURES,
              VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_INTEGER_DOT_PRODUCT_FEATURES_KHR);
    CHECK_INT(VK_INDEPENDENCE_32, VK_SHADER_FLOAT_CONTROLS_INDEPENDENCE_32_BIT_ONLY);
    CHECK_INT(VK_INDEPENDENCE_ALL, VK_SHADER_FLOAT_CONTROLS_INDEPENDENCE_ALL);
    CHECK_INT(VK_INDEPENDENCE_NONE, VK_SHADER_FLOAT_CONTROLS_INDEPENDENCE_NONE);
    CHECK_INT(VK_MEMORY_FLAGS, VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_FLAGS_INFO);
    CHECK_INT(VK_ADDRESS, VK_STRUCTURE_TYPE_BUFFER_DEVICE_ADDRESS_INFO);
    CHECK_INT(VK_1_2, VK_API_VERSION_1_2);
    CHECK_INT(VK_QUEUE_COMPUTE, VK_QUEUE_COMPUTE_BIT);
    CHECK_INT(VK_MEMORY_DEVICE, VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT);
    CHECK_INT(VK_MEMORY_HOST,
              VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT);
    CHECK_INT(VK_MEMORY_ADDRESS, VK_MEMORY_ALLOCATE_DEVICE_ADDRESS_BIT);
    CHECK_INT(VK_USE_COPY, VK_BUFFER_USAGE_TRANSFER_SRC_BIT | VK_BUFFER_USAGE_TRANSFER_DST_BIT);
    CHECK_INT(VK_USE_STORAGE, VK_BUFFER_USAGE_STORAGE_BUFFER_BIT);
    CHECK_INT(VK_USE_ADDRESS, VK_BUFFER_USAGE_SHADER_DEVICE_ADDRESS_BIT);
    CHECK_INT(VK_POOL_RESET, VK_COMMAND_POOL_CREATE_RESET_COMMAND_BUFFER_BIT);
    CHECK_INT(VK_BEGIN_SIMULTANEOUS, VK_COMMAND_BUFFER_USAGE_SIMULTANEOUS_USE_BIT);
    CHECK_INT(VK_STAGE_COMPUTE, VK_SHADER_STAGE_COMPUTE_BIT);
    CHECK_INT(VK_BIND_COMPUTE, VK_PIPELINE_BIND_POINT_COMPUTE);
    CHECK_INT(VK_AT_COMPUTE, VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT);
    CHECK_INT(VK_AT_COPY, VK_PIPELINE_STAGE_TRANSFER_BIT);
    CHECK_INT(VK_AT_BOTTOM, VK_PIPELINE_STAGE_BOTTOM_OF_PIPE_BIT);
    CHECK_INT(VK_TIMESTAMP, VK_QUERY_TYPE_TIMESTAMP);
    CHECK_INT(VK_RESULT_64, VK_QUERY_RESULT_64_BIT);
    CHECK_INT(VK_AT_HOST, VK_PIPELINE_STAGE_HOST_BIT);
    CHECK_INT(VK_SHADER_READ, VK_ACCESS_SHADER_READ_BIT);
    CHECK_INT(VK_SHADER_WRITE, VK_ACCESS_SHADER_WRITE_BIT);
    CHECK_INT(VK_COPY_READ, VK_ACCESS_TRANSFER_READ_BIT);
    CHECK_INT(VK_COPY_WRITE, VK_ACCESS_TRANSFER_WRITE_BIT);
    CHECK_INT(VK_HOST_READ, VK_ACCESS_HOST_READ_BIT);
    CHECK_INT(VK_TYPE_INTEGRATED, VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU);
    CHECK_INT(VK_TYPE_DISCRETE, VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU);
    CHECK_INT(VK_TYPE_VIRTUAL, VK_PHYSICAL_DEVICE_TYPE_VIRTUAL_GPU);
}

int main(void)
{
    RUN(test_structs);
    RUN(test_numbers);
    return check_result();
}

#else

int main(void)
{
    printf("SKIP (no <vulkan/vulkan_core.h>)\n");
    return 77;
}

#endif
