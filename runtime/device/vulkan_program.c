/* vulkan_program.c: programs of a Vulkan device, launches and recordings.
 *
 * A kernel gets the addresses of its buffers as push constants, or where they are too few the
 * address of a table of them (backends/vulkan/vulkan.h), so there are no descriptors.  A recording
 * is a command buffer that is submitted again and again.
 */
#include "vulkan.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    MOST_GROUPS = 65535, /* along an axis */
    MOST_PARAMS = 4096,
    SPIRV_MAGIC = 0x07230203,
    SPIRV_CAPABILITY = 17,
    SPIRV_HEAD = 5,
    SPIRV_MATRICES = 6022 /* CooperativeMatrixKHR */
};

typedef struct {
    VkObject object;
    bool     matrices; /* kernels have some */
} Module;

/* ---- programs ------------------------------------------------------------------------------------ */

/* What a module asks for and the device lacks; NULL: nothing. */
static const char *lacks(const Vulkan *vk, uint32_t capability)
{
    switch (capability) {
    case 1:    /* Shader */
    case 5347: /* PhysicalStorageBufferAddresses, without which no device is opened */
    case 4464: /* DenormPreserve, SignedZeroInfNanPreserve, RoundingModeRTE: vulkan_modes.c */
    case 4466:
    case 4467: return NULL;
    case 10: return vk->features.has[VK_SHADER_FLOAT64] ? NULL : "no f64 (shaderFloat64)";
    case 11: return vk->features.has[VK_SHADER_INT64] ? NULL : "no i64 (shaderInt64)";
    case 22: return vk->features.has[VK_SHADER_INT16] ? NULL : "no i16 (shaderInt16)";
    case 39: return vk->features12.has[VK_SHADER_INT8] ? NULL : "no i8 (shaderInt8)";
    case 4433:
        return vk->features11.has[VK_STORAGE_16BIT] ? NULL
                                                    : "no 16 bits (storageBuffer16BitAccess)";
    case 4448:
        return vk->features12.has[VK_STORAGE_8BIT] ? NULL : "no 8 bits (storageBuffer8BitAccess)";
    case 6018: /* DotProductInput4x8BitPacked, DotProduct */
    case 6019:
        return vk->has_dots ? NULL : "no products of bytes (VK_KHR_shader_integer_dot_product)";
    case 9:    /* Float16 */
    case 5345: /* VulkanMemoryModel */
    case SPIRV_MATRICES:
        return vk->has_matrices ? NULL
                                : "no matrices of 16x16 f16 of subgroups of 32 threads "
                                  "(VK_KHR_cooperative_matrix)";
    default: return "the code needs more than this runtime knows of";
    }
}

int32_t tvmrt_vk_module_load(void *self, uint32_t form, const void *code, size_t bytes,
                             const char *options, void **module)
{
    Vulkan         *vk = self;
    const uint32_t *word = code;
    size_t          n = bytes / sizeof *word;
    VkModuleInfo    info = {.type = VK_MODULE};
    VkObject        made = 0;
    bool            matrices = false;

    (void)options;
    if (form != TVMCC_CODE_BINARY || bytes % sizeof *word || (uintptr_t)code % sizeof *word ||
        n <= SPIRV_HEAD || *word != SPIRV_MAGIC)
        return tvmrt_vk_refuse(vk, "the code is no SPIR-V");
    for (size_t i = SPIRV_HEAD; i + 1 < n && word[i] == (2u << 16 | SPIRV_CAPABILITY); i += 2) {
        const char *why = lacks(vk, word[i + 1]);

        if (why)
            return tvmrt_vk_refuse(vk, why);
        matrices = matrices || word[i + 1] == SPIRV_MATRICES;
    }
    uint32_t *kept = malloc(bytes);
    if (!kept)
        return tvmrt_vk_refuse(vk, "out of host memory");
    info.code = kept;
    info.bytes = tvmrt_vk_keep_modes(&vk->floats, word, n, kept) * sizeof *word;
    int32_t rc = info.bytes
                     ? tvmrt_vk_check(vk, vk->vkCreateShaderModule(vk->device, &info, NULL, &made),
                                      "vkCreateShaderModule")
                     : tvmrt_vk_refuse(vk, "the code is no SPIR-V");
    free(kept);
    Module *out = rc ? NULL : malloc(sizeof *out);
    if (out)
        *out = (Module){made, matrices};
    else if (!rc)
        vk->vkDestroyShaderModule(vk->device, made, NULL);
    *module = out;
    return rc || out ? rc : tvmrt_vk_refuse(vk, "out of host memory");
}

void tvmrt_vk_module_free(void *self, void *module)
{
    Vulkan *vk = self;

    vk->vkDestroyShaderModule(vk->device, ((Module *)module)->object, NULL);
    free(module);
}

int32_t tvmrt_vk_kernel(void *self, void *module, const char *name, void **kernel)
{
    Vulkan        *vk = self;
    const Module  *of = module;
    VkSubgroupSize size = {.type = VK_SUBGROUP_SIZE, .size = SUBGROUP};
    VkPipelineInfo info = {.type = VK_PIPELINE,
                           .stage = {.type = VK_STAGE,
                                     .next = of->matrices ? &size : NULL,
                                     .flags = of->matrices ? VK_STAGE_FULL : 0,
                                     .stage = VK_STAGE_COMPUTE,
                                     .module = of->object,
                                     .name = name},
                           .layout = vk->layout};
    VkObject      *out = malloc(sizeof *out);
    int32_t        rc =
        out ? tvmrt_vk_check(
                  vk, vk->vkCreateComputePipelines(vk->device, vk->cache, 1, &info, NULL, out),
                  name)
                   : tvmrt_vk_refuse(vk, "out of host memory");

    if (rc) {
        free(out);
        out = NULL;
    }
    *kernel = out;
    return rc;
}

void tvmrt_vk_kernel_free(void *self, void *kernel)
{
    Vulkan *vk = self;

    tvmrt_vk_finish(vk);
    vk->vkDestroyPipeline(vk->device, *(VkObject *)kernel, NULL);
    free(kernel);
}

void tvmrt_vk_limits(DeviceState *state, DeviceLimits *out)
{
    const VkProperties *has = &((Vulkan *)state)->properties;

    snprintf(out->name, sizeof out->name, "%s", has->name);
    out->threads = has->limits.threads;
    out->shared_bytes = has->limits.shared_bytes;
    for (int i = 0; i < 3; i++)
        out->block[i] = has->limits.block[i];
}

/* The arguments, 8 bytes each: addresses of buffers, each with the offset behind it, and sizes. */
static int32_t arguments(Vulkan *vk, const tvmcc_arg *args, uint32_t nargs, uint64_t *to,
                         uint32_t *n)
{
    *n = 0;
    for (uint32_t i = 0; i < nargs; i++) {
        uint64_t base = 0, value;

        if (*n == MOST_PARAMS)
            return tvmrt_vk_refuse(vk, "a launch has more than 4096 arguments");
        if (args[i].kind == TVMCC_ARG_BUFFER)
            base = ((const Memory *)args[i++].p)->address;
        if (i == nargs || args[i].kind != TVMCC_ARG_VALUE || args[i].bytes != sizeof value)
            return tvmrt_vk_refuse(
                vk, "a launch has other arguments than sizes, and buffers with offsets");
        memcpy(&value, args[i].p, sizeof value);
        to[(*n)++] = base + value;
    }
    return TVMCC_OK;
}

/* A table of addresses where the kernel finds it: until all is done, or with the recording. */
static int32_t put_table(Vulkan *vk, const uint64_t *table, size_t bytes, uint64_t *address)
{
    Memory *m;
    int32_t rc = TVMCC_OK;

    if (vk->recording) {
        if ((rc = tvmrt_vk_memory_new(vk, bytes, true, &m)))
            return rc;
        m->next = vk->recording->tables;
        vk->recording->tables = m;
        *address = m->address;
        memcpy(m->host, table, bytes);
        return rc;
    }
    if ((rc = tvmrt_vk_ready(vk)))
        return rc;
    if (STAGING_BYTES - vk->staged < bytes)
        rc = tvmrt_vk_finish(vk);
    *address = vk->staging->address + vk->staged;
    memcpy((char *)vk->staging->host + vk->staged, table, bytes);
    vk->staged += (bytes + 63) / 64 * 64;
    return rc;
}

int32_t tvmrt_vk_launch(void *self, void *kernel, const uint32_t grid[3], const uint32_t block[3],
                        const tvmcc_arg *args, uint32_t nargs)
{
    Vulkan  *vk = self;
    uint64_t table[MOST_PARAMS], address = 0;
    uint32_t n, x = grid[0], z = grid[2];
    VkHandle at;
    bool     timed = vk->state.timing && !vk->recording;
    int32_t  rc = arguments(vk, args, nargs, table, &n);

    (void)block; /* stands in the code */
    if (!rc && n * sizeof *table > PUSH_BYTES) {
        rc = put_table(vk, table, n * sizeof *table, &address);
        table[0] = address;
        n = 1;
    }
    if (rc || (rc = tvmrt_vk_commands(vk, &at)) || (timed && (rc = tvmrt_vk_begin_timed(vk, at))))
        return rc;
    if (x > MOST_GROUPS) { /* rows along z, as the kernel counts them */
        z = (x + MOST_GROUPS - 1) / MOST_GROUPS;
        x = (x + z - 1) / z;
    }
    vk->vkCmdBindPipeline(at, VK_BIND_COMPUTE, *(VkObject *)kernel);
    if (n)
        vk->vkCmdPushConstants(at, vk->layout, VK_STAGE_COMPUTE, 0, n * sizeof *table, table);
    vk->vkCmdDispatch(at, x, grid[1], z);
    if (timed)
        tvmrt_vk_end_timed(vk, at);
    return TVMCC_OK;
}

int32_t tvmrt_vk_wait(void *self)
{
    return tvmrt_vk_finish(self);
}

/* ---- recordings ---------------------------------------------------------------------------------- */

void tvmrt_vk_recording_free(void *self, void *recording)
{
    Vulkan    *vk = self;
    Recording *r = recording;

    tvmrt_vk_finish(vk);
    if (r->commands)
        vk->vkFreeCommandBuffers(vk->device, vk->pool, 1, &r->commands);
    for (Memory *m = r->tables, *next; m; m = next) {
        next = m->next;
        tvmrt_vk_memory_free(vk, m);
    }
    free(r);
}

int32_t tvmrt_vk_record_begin(void *self)
{
    Vulkan     *vk = self;
    VkBeginInfo begin = {.type = VK_BEGIN, .flags = VK_BEGIN_SIMULTANEOUS};
    Recording  *r = calloc(1, sizeof *r);
    int32_t     rc = r ? tvmrt_vk_finish(vk) : tvmrt_vk_refuse(vk, "out of host memory");

    if (!rc && (rc = tvmrt_vk_new_commands(vk, 1, &r->commands)))
        r->commands = NULL;
    if (!rc)
        rc = tvmrt_vk_check(vk, vk->vkBeginCommandBuffer(r->commands, &begin),
                            "vkBeginCommandBuffer");
    if (!rc)
        vk->recording = r;
    else if (r)
        tvmrt_vk_recording_free(vk, r);
    return rc;
}

int32_t tvmrt_vk_record_end(void *self, void **recording)
{
    Vulkan    *vk = self;
    Recording *r = vk->recording;
    int32_t    rc;

    *recording = NULL;
    if (!r)
        return tvmrt_vk_refuse(vk, "nothing is recorded");
    vk->recording = NULL;
    rc = tvmrt_vk_check(vk, vk->vkEndCommandBuffer(r->commands), "vkEndCommandBuffer");
    if (rc)
        tvmrt_vk_recording_free(vk, r);
    else
        *recording = r;
    return rc;
}

int32_t tvmrt_vk_replay(void *self, void *recording)
{
    Vulkan *vk = self;
    int32_t rc = tvmrt_vk_ready(vk);

    if (!rc)
        rc = tvmrt_vk_end_commands(vk);
    if (!rc && vk->npending + 1 >= MAX_COMMANDS)
        rc = tvmrt_vk_finish(vk);
    if (!rc)
        vk->pending[vk->npending++] = ((Recording *)recording)->commands;
    return rc;
}
