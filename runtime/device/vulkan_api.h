/* The part of Vulkan 1.2 that vulkan*.c call, by the specification, so that nothing of Vulkan is
 * needed to build.  Functions have its names, numbers and structs shorter ones of our own, which
 * tests/unit/test_vulkan.c compares with those of its header where that is installed. */
#ifndef TVMRT_VULKAN_API_H
#define TVMRT_VULKAN_API_H

#include <stddef.h>
#include <stdint.h>

typedef void    *VkHandle; /* instance, device, queue, commands */
typedef uint64_t VkObject; /* all others */

enum {
    VK_1_2 = 1 << 22 | 2 << 12,
    /* VkStructureType */
    VK_APPLICATION = 0,
    VK_INSTANCE = 1,
    VK_QUEUE = 2,
    VK_DEVICE = 3,
    VK_SUBMIT = 4,
    VK_QUERY_POOL = 11,
    VK_MEMORY = 5,
    VK_FENCE = 8,
    VK_BUFFER = 12,
    VK_MODULE = 16,
    VK_CACHE = 17,
    VK_STAGE = 18,
    VK_PIPELINE = 29,
    VK_LAYOUT = 30,
    VK_COMMAND_POOL = 39,
    VK_COMMANDS = 40,
    VK_BEGIN = 42,
    VK_BARRIER = 46,
    VK_FEATURES_11 = 49,
    VK_FEATURES_12 = 51,
    VK_FEATURES = 1000059000,
    VK_PROPERTIES = 1000059001,
    VK_FLOAT_CONTROLS = 1000197000,
    VK_SUBGROUP_PROPERTIES = 1000225000, /* VK_EXT_subgroup_size_control */
    VK_SUBGROUP_SIZE = 1000225001,
    VK_SUBGROUP_FEATURES = 1000225002,
    VK_DOT_FEATURES = 1000280000,    /* VK_KHR_shader_integer_dot_product */
    VK_MATRIX_FEATURES = 1000506000, /* VK_KHR_cooperative_matrix */
    VK_MATRIX = 1000506001,
    VK_MEMORY_FLAGS = 1000060000,
    VK_ADDRESS = 1000244001,
    /* places of features in their structs */
    VK_SHADER_FLOAT64 = 39,
    VK_SHADER_INT64 = 40,
    VK_SHADER_INT16 = 41,
    VK_STORAGE_16BIT = 0,
    VK_STORAGE_8BIT = 2,
    VK_SHADER_FLOAT16 = 7,
    VK_SHADER_INT8 = 8,
    VK_BUFFER_ADDRESS = 38,
    VK_MEMORY_MODEL = 41,
    VK_NAN_PRESERVE = 0, /* of f16, f32, f64 */
    VK_DENORM_PRESERVE = 3,
    VK_ROUND_EVEN = 9,
    VK_INDEPENDENCE_32 = 0, /* f16 and f64 are alike */
    VK_INDEPENDENCE_ALL = 1,
    VK_INDEPENDENCE_NONE = 2,
    /* bits */
    VK_QUEUE_COMPUTE = 2,
    VK_MEMORY_DEVICE = 1,
    VK_MEMORY_HOST = 2 | 4, /* visible and coherent */
    VK_MEMORY_ADDRESS = 2,
    VK_USE_COPY = 1 | 2,
    VK_USE_STORAGE = 32,
    VK_USE_ADDRESS = 0x20000,
    VK_POOL_RESET = 2,
    VK_BEGIN_SIMULTANEOUS = 4,
    VK_STAGE_COMPUTE = 32, /* of a shader */
    VK_STAGE_FULL = 2,     /* subgroups */
    VK_IS_F16 = 0,         /* types of matrices; whose they are */
    VK_IS_F32 = 1,
    VK_OF_SUBGROUP = 3,
    VK_BIND_COMPUTE = 1,
    VK_AT_COMPUTE = 0x800, /* of a barrier */
    VK_AT_COPY = 0x1000,
    VK_AT_BOTTOM = 0x2000,
    VK_AT_HOST = 0x4000,
    VK_SHADER_READ = 0x20,
    VK_SHADER_WRITE = 0x40,
    VK_COPY_READ = 0x800,
    VK_COPY_WRITE = 0x1000,
    VK_HOST_READ = 0x2000,
    VK_TIMESTAMP = 2, /* what a pool of queries asks for */
    VK_RESULT_64 = 1,
    VK_PENDING = 1, /* VkResult: not ready */
    VK_TYPE_INTEGRATED = 1,
    VK_TYPE_DISCRETE = 2,
    VK_TYPE_VIRTUAL = 3
};

typedef struct {
    int32_t     type;
    const void *next;
    const char *name;
    uint32_t    version;
    const char *engine;
    uint32_t    engine_version, api;
} VkApplication;

typedef struct {
    int32_t              type;
    const void          *next;
    uint32_t             flags;
    const VkApplication *application;
    uint32_t             nlayers;
    const char *const   *layers;
    uint32_t             nextensions;
    const char *const   *extensions;
} VkInstanceInfo;

typedef struct {
    uint32_t api, driver, vendor, device;
    int32_t  type;
    char     name[256];
    uint8_t  uuid[16];
    struct {
        uint32_t images[11];
        uint64_t pages[2];
        uint32_t graphics[38];
        uint32_t shared_bytes, groups[3], threads, block[3];
        uint8_t  others[176];
        float    timestamp_ns; /* of a tick */
        uint8_t  last[76];     /* ends behind VkPhysicalDeviceLimits */
    } limits;
    uint8_t others[64];
} VkProperties;

typedef struct {
    int32_t      type;
    void        *next;
    VkProperties properties;
} VkProperties2;

typedef struct {
    int32_t  type;
    void    *next;
    int32_t  denorm_independence, rounding_independence;
    uint32_t has[15];
} VkFloats;

typedef struct {
    uint32_t flags, count, timestamp_bits, granularity[3];
} VkQueueFamily;

typedef struct {
    uint32_t ntypes;
    struct {
        uint32_t flags, heap;
    } types[32];
    uint32_t nheaps;
    struct {
        uint64_t bytes;
        uint32_t flags;
    } heaps[16];
} VkMemories;

typedef struct {
    int32_t  type;
    void    *next;
    uint32_t has[55];
} VkFeatures;

typedef struct {
    int32_t  type;
    void    *next;
    uint32_t has[12];
} VkFeatures11;

typedef struct {
    int32_t  type;
    void    *next;
    uint32_t has[47];
} VkFeatures12;

typedef struct {
    char     name[256];
    uint32_t version;
} VkExtension;

typedef struct {
    int32_t  type;
    void    *next;
    uint32_t control, full;
} VkSubgroupFeatures;

typedef struct {
    int32_t  type;
    void    *next;
    uint32_t least, most, groups, stages;
} VkSubgroupProperties;

typedef struct {
    int32_t  type;
    void    *next;
    uint32_t size;
} VkSubgroupSize;

typedef struct {
    int32_t  type;
    void    *next;
    uint32_t dots;
} VkDotFeatures;

typedef struct {
    int32_t  type;
    void    *next;
    uint32_t matrices, robust;
} VkMatrixFeatures;

typedef struct {
    int32_t  type;
    void    *next;
    uint32_t m, n, k;
    int32_t  a, b, c, result; /* types */
    uint32_t saturates;
    int32_t  scope;
} VkMatrix;

typedef int32_t VkFindMatrices(VkHandle physical, uint32_t *n, VkMatrix *out);

typedef struct {
    int32_t      type;
    const void  *next;
    uint32_t     flags, family, count;
    const float *priorities;
} VkQueueInfo;

typedef struct {
    int32_t            type;
    const void        *next;
    uint32_t           flags, nqueues;
    const VkQueueInfo *queues;
    uint32_t           nlayers;
    const char *const *layers;
    uint32_t           nextensions;
    const char *const *extensions;
    const void        *features;
} VkDeviceInfo;

typedef struct {
    int32_t         type;
    const void     *next;
    uint32_t        flags;
    uint64_t        bytes;
    uint32_t        usage;
    int32_t         sharing;
    uint32_t        nfamilies;
    const uint32_t *families;
} VkBufferInfo;

typedef struct {
    uint64_t bytes, align;
    uint32_t types;
} VkRequirements;

typedef struct {
    int32_t     type;
    const void *next;
    uint32_t    flags, devices;
} VkMemoryFlags;

typedef struct {
    int32_t     type;
    const void *next;
    uint64_t    bytes;
    uint32_t    memory_type;
} VkMemoryInfo;

typedef struct {
    int32_t     type;
    const void *next;
    VkObject    buffer;
} VkAddressInfo;

typedef struct {
    int32_t     type;
    const void *next;
    uint32_t    flags;
    size_t      bytes;
    const void *code;
} VkModuleInfo;

typedef struct {
    int32_t     type;
    const void *next;
    uint32_t    flags;
    size_t      bytes;
    const void *data;
} VkCacheInfo;

typedef struct {
    int32_t     type;
    const void *next;
    uint32_t    flags;
    int32_t     query;
    uint32_t    count, statistics;
} VkQueryInfo;

typedef struct {
    uint32_t stages, offset, bytes;
} VkPushRange;

typedef struct {
    int32_t            type;
    const void        *next;
    uint32_t           flags, nsets;
    const VkObject    *sets;
    uint32_t           nranges;
    const VkPushRange *ranges;
} VkLayoutInfo;

typedef struct {
    int32_t     type;
    const void *next;
    uint32_t    flags;
    struct {
        int32_t     type;
        const void *next;
        uint32_t    flags, stage;
        VkObject    module;
        const char *name;
        const void *constants;
    } stage;
    VkObject layout, base;
    int32_t  base_index;
} VkPipelineInfo;

typedef struct {
    int32_t     type;
    const void *next;
    uint32_t    flags, family;
} VkPoolInfo;

typedef struct {
    int32_t     type;
    const void *next;
    VkObject    pool;
    int32_t     level;
    uint32_t    count;
} VkCommandsInfo;

typedef struct {
    int32_t     type;
    const void *next;
    uint32_t    flags;
    const void *inherited;
} VkBeginInfo;

typedef struct {
    int32_t     type;
    const void *next;
    uint32_t    flags;
} VkFenceInfo;

typedef struct {
    int32_t     type;
    const void *next;
    uint32_t    before, after;
} VkBarrier;

typedef struct {
    uint64_t from, to, bytes;
} VkCopy;

typedef struct {
    int32_t         type;
    const void     *next;
    uint32_t        nwaits;
    const VkObject *waits;
    const uint32_t *stages;
    uint32_t        ncommands;
    const VkHandle *commands;
    uint32_t        nsignals;
    const VkObject *signals;
} VkSubmission;

/* CALL(result, name, parameters); where the specification has an allocator, NULL is passed. */
#define VK_CALLS(CALL)                                                                            \
    CALL(int32_t, vkEnumerateInstanceVersion, (uint32_t *))                                       \
    CALL(int32_t, vkCreateInstance, (const VkInstanceInfo *, const void *, VkHandle *))           \
    CALL(void, vkDestroyInstance, (VkHandle, const void *))                                       \
    CALL(int32_t, vkEnumeratePhysicalDevices, (VkHandle, uint32_t *, VkHandle *))                 \
    CALL(void *, vkGetInstanceProcAddr, (VkHandle, const char *))                                 \
    CALL(int32_t, vkEnumerateDeviceExtensionProperties,                                           \
         (VkHandle, const char *, uint32_t *, VkExtension *))                                     \
    CALL(void, vkGetPhysicalDeviceProperties, (VkHandle, VkProperties *))                         \
    CALL(void, vkGetPhysicalDeviceProperties2, (VkHandle, VkProperties2 *))                       \
    CALL(void, vkGetPhysicalDeviceQueueFamilyProperties, (VkHandle, uint32_t *, VkQueueFamily *)) \
    CALL(void, vkGetPhysicalDeviceMemoryProperties, (VkHandle, VkMemories *))                     \
    CALL(void, vkGetPhysicalDeviceFeatures2, (VkHandle, VkFeatures *))                            \
    CALL(int32_t, vkCreateDevice, (VkHandle, const VkDeviceInfo *, const void *, VkHandle *))     \
    CALL(void, vkDestroyDevice, (VkHandle, const void *))                                         \
    CALL(void, vkGetDeviceQueue, (VkHandle, uint32_t, uint32_t, VkHandle *))                      \
    CALL(int32_t, vkDeviceWaitIdle, (VkHandle))                                                   \
    CALL(int32_t, vkCreateBuffer, (VkHandle, const VkBufferInfo *, const void *, VkObject *))     \
    CALL(void, vkDestroyBuffer, (VkHandle, VkObject, const void *))                               \
    CALL(void, vkGetBufferMemoryRequirements, (VkHandle, VkObject, VkRequirements *))             \
    CALL(uint64_t, vkGetBufferDeviceAddress, (VkHandle, const VkAddressInfo *))                   \
    CALL(int32_t, vkAllocateMemory, (VkHandle, const VkMemoryInfo *, const void *, VkObject *))   \
    CALL(void, vkFreeMemory, (VkHandle, VkObject, const void *))                                  \
    CALL(int32_t, vkBindBufferMemory, (VkHandle, VkObject, VkObject, uint64_t))                   \
    CALL(int32_t, vkMapMemory, (VkHandle, VkObject, uint64_t, uint64_t, uint32_t, void **))       \
    CALL(int32_t, vkCreateShaderModule,                                                           \
         (VkHandle, const VkModuleInfo *, const void *, VkObject *))                              \
    CALL(void, vkDestroyShaderModule, (VkHandle, VkObject, const void *))                         \
    CALL(int32_t, vkCreatePipelineCache,                                                          \
         (VkHandle, const VkCacheInfo *, const void *, VkObject *))                               \
    CALL(void, vkDestroyPipelineCache, (VkHandle, VkObject, const void *))                        \
    CALL(int32_t, vkCreatePipelineLayout,                                                         \
         (VkHandle, const VkLayoutInfo *, const void *, VkObject *))                              \
    CALL(void, vkDestroyPipelineLayout, (VkHandle, VkObject, const void *))                       \
    CALL(int32_t, vkCreateComputePipelines,                                                       \
         (VkHandle, VkObject, uint32_t, const VkPipelineInfo *, const void *, VkObject *))        \
    CALL(void, vkDestroyPipeline, (VkHandle, VkObject, const void *))                             \
    CALL(int32_t, vkCreateCommandPool, (VkHandle, const VkPoolInfo *, const void *, VkObject *))  \
    CALL(void, vkDestroyCommandPool, (VkHandle, VkObject, const void *))                          \
    CALL(int32_t, vkAllocateCommandBuffers, (VkHandle, const VkCommandsInfo *, VkHandle *))       \
    CALL(void, vkFreeCommandBuffers, (VkHandle, VkObject, uint32_t, const VkHandle *))            \
    CALL(int32_t, vkBeginCommandBuffer, (VkHandle, const VkBeginInfo *))                          \
    CALL(int32_t, vkEndCommandBuffer, (VkHandle))                                                 \
    CALL(void, vkCmdBindPipeline, (VkHandle, int32_t, VkObject))                                  \
    CALL(void, vkCmdPushConstants,                                                                \
         (VkHandle, VkObject, uint32_t, uint32_t, uint32_t, const void *))                        \
    CALL(void, vkCmdDispatch, (VkHandle, uint32_t, uint32_t, uint32_t))                           \
    CALL(void, vkCmdCopyBuffer, (VkHandle, VkObject, VkObject, uint32_t, const VkCopy *))         \
    CALL(void, vkCmdPipelineBarrier,                                                              \
         (VkHandle, uint32_t, uint32_t, uint32_t, uint32_t, const VkBarrier *, uint32_t,          \
          const void *, uint32_t, const void *))                                                  \
    CALL(int32_t, vkCreateQueryPool, (VkHandle, const VkQueryInfo *, const void *, VkObject *))   \
    CALL(void, vkDestroyQueryPool, (VkHandle, VkObject, const void *))                            \
    CALL(void, vkCmdResetQueryPool, (VkHandle, VkObject, uint32_t, uint32_t))                     \
    CALL(void, vkCmdWriteTimestamp, (VkHandle, uint32_t, VkObject, uint32_t))                     \
    CALL(int32_t, vkGetQueryPoolResults,                                                          \
         (VkHandle, VkObject, uint32_t, uint32_t, size_t, void *, uint64_t, uint32_t))            \
    CALL(int32_t, vkCreateFence, (VkHandle, const VkFenceInfo *, const void *, VkObject *))       \
    CALL(void, vkDestroyFence, (VkHandle, VkObject, const void *))                                \
    CALL(int32_t, vkResetFences, (VkHandle, uint32_t, const VkObject *))                          \
    CALL(int32_t, vkWaitForFences, (VkHandle, uint32_t, const VkObject *, uint32_t, uint64_t))    \
    CALL(int32_t, vkGetFenceStatus, (VkHandle, VkObject))                                         \
    CALL(int32_t, vkQueueSubmit, (VkHandle, uint32_t, const VkSubmission *, VkObject))

#endif
