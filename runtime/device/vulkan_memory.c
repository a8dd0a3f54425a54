/* vulkan_memory.c: memory of a Vulkan device, buffers of commands, and copies.
 *
 * What is asked for is put into command buffers, which are submitted together when a result is
 * waited for; each command waits for those before it.  Between the host's memory and the device's
 * lies memory that both see.
 */
#include "vulkan.h"

#include <stdlib.h>
#include <string.h>

/* ---- memory -------------------------------------------------------------------------------------- */

void tvmrt_vk_memory_free(Vulkan *vk, Memory *m)
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
    int32_t rc = tvmrt_vk_check(vk, vk->vkCreateBuffer(vk->device, &buffer, NULL, &m->buffer),
                                "vkCreateBuffer");

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
        return tvmrt_vk_refuse(vk, "no memory that host and device share");
    rc = tvmrt_vk_check(vk, vk->vkAllocateMemory(vk->device, &info, NULL, &m->memory),
                        "vkAllocateMemory");
    if (rc) {
        m->memory = 0;
        return rc;
    }
    rc = tvmrt_vk_check(vk, vk->vkBindBufferMemory(vk->device, m->buffer, m->memory, 0),
                        "vkBindBufferMemory");
    if (!rc && host)
        rc = tvmrt_vk_check(vk, vk->vkMapMemory(vk->device, m->memory, 0, bytes, 0, &m->host),
                            "vkMapMemory");
    address.buffer = m->buffer;
    if (!rc)
        m->address = vk->vkGetBufferDeviceAddress(vk->device, &address);
    return rc;
}

int32_t tvmrt_vk_memory_new(Vulkan *vk, size_t bytes, bool host, Memory **out)
{
    Memory *m = calloc(1, sizeof *m);
    int32_t rc = m ? provide(vk, m, bytes, host) : tvmrt_vk_refuse(vk, "out of host memory");

    if (rc) {
        tvmrt_vk_memory_free(vk, m);
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

int32_t tvmrt_vk_end_commands(Vulkan *vk)
{
    VkHandle open = vk->open;

    vk->open = NULL;
    if (!open)
        return TVMCC_OK;
    order(vk, open, true);
    return tvmrt_vk_check(vk, vk->vkEndCommandBuffer(open), "vkEndCommandBuffer");
}

static int32_t submit(Vulkan *vk)
{
    int32_t      rc = tvmrt_vk_end_commands(vk);
    VkSubmission all = {.type = VK_SUBMIT, .ncommands = vk->npending, .commands = vk->pending};

    if (rc || !vk->npending || vk->submitted)
        return rc;
    rc = tvmrt_vk_check(vk, vk->vkQueueSubmit(vk->queue, 1, &all, vk->fence), "vkQueueSubmit");
    vk->submitted = !rc;
    return rc;
}

/* What was asked for is done, or never will be. */
static void start_anew(Vulkan *vk)
{
    vk->submitted = false;
    vk->npending = vk->nused = vk->nlater = 0;
    vk->staged = 0;
}

int32_t tvmrt_vk_finish(Vulkan *vk)
{
    int32_t rc = submit(vk);

    if (vk->submitted) {
        rc = tvmrt_vk_check(vk, vk->vkWaitForFences(vk->device, 1, &vk->fence, 1, UINT64_MAX),
                            "vkWaitForFences");
        vk->vkResetFences(vk->device, 1, &vk->fence);
    }
    for (uint32_t i = 0; i < vk->nlater && !rc; i++)
        memcpy(vk->later[i].host, (const char *)vk->staging->host + vk->later[i].at,
               vk->later[i].bytes);
    start_anew(vk);
    return rc;
}

int32_t tvmrt_vk_ready(Vulkan *vk)
{
    return vk->submitted ? tvmrt_vk_finish(vk) : TVMCC_OK;
}

int32_t tvmrt_vk_poll(void *self)
{
    Vulkan *vk = self;
    int32_t rc = submit(vk);

    if (!rc && vk->submitted && vk->vkGetFenceStatus(vk->device, vk->fence) == VK_PENDING)
        return 1;
    if (!rc)
        return tvmrt_vk_finish(vk);
    start_anew(vk);
    return rc;
}

int32_t tvmrt_vk_commands(Vulkan *vk, VkHandle *out)
{
    VkBeginInfo begin = {.type = VK_BEGIN};
    int32_t     rc = TVMCC_OK;

    if (!vk->recording && (rc = tvmrt_vk_ready(vk)))
        return rc;
    *out = vk->recording ? vk->recording->commands : vk->open;
    if (!*out) {
        VkHandle next = vk->commands[vk->nused];

        rc = tvmrt_vk_check(vk, vk->vkBeginCommandBuffer(next, &begin), "vkBeginCommandBuffer");
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
    int32_t  rc = tvmrt_vk_commands(vk, &at);

    if (!rc)
        vk->vkCmdCopyBuffer(at, from->buffer, to->buffer, 1, &part);
    return rc;
}

int32_t tvmrt_vk_new_commands(Vulkan *vk, uint32_t n, VkHandle *out)
{
    VkCommandsInfo info = {.type = VK_COMMANDS, .pool = vk->pool, .count = n};

    return tvmrt_vk_check(vk, vk->vkAllocateCommandBuffers(vk->device, &info, out),
                          "vkAllocateCommandBuffers");
}

/* ---- functions of the table ---------------------------------------------------------------------- */

int32_t tvmrt_vk_alloc(void *self, size_t bytes, void **memory)
{
    Memory *m;
    int32_t rc = tvmrt_vk_memory_new(self, bytes, false, &m);

    *memory = m;
    return rc;
}

void tvmrt_vk_free(void *self, void *memory)
{
    Vulkan *vk = self;

    tvmrt_vk_finish(vk); /* what was asked for may use it */
    tvmrt_vk_memory_free(vk, memory);
}

int32_t tvmrt_vk_upload(void *self, void *memory, size_t offset, const void *host, size_t bytes)
{
    Vulkan *vk = self;
    int32_t rc = tvmrt_vk_ready(vk);

    for (size_t done = 0, n; done < bytes && !rc; done += n) {
        if (vk->staged == STAGING_BYTES && (rc = tvmrt_vk_finish(vk)))
            break;
        n = STAGING_BYTES - vk->staged;
        n = bytes - done < n ? bytes - done : n;
        memcpy((char *)vk->staging->host + vk->staged, (const char *)host + done, n);
        rc = copy(vk, memory, offset + done, vk->staging, vk->staged, n);
        vk->staged += (n + 63) / 64 * 64; /* STAGING_BYTES is a multiple */
    }
    return rc;
}

/* Parts for which there is no more room arrive before the others. */
int32_t tvmrt_vk_download_later(void *self, void *host, void *memory, size_t offset, size_t bytes)
{
    Vulkan *vk = self;
    int32_t rc = tvmrt_vk_ready(vk);

    for (size_t done = 0, n; done < bytes && !rc; done += n) {
        if ((vk->staged == STAGING_BYTES || vk->nlater == MAX_LATER) && (rc = tvmrt_vk_finish(vk)))
            break;
        n = STAGING_BYTES - vk->staged;
        n = bytes - done < n ? bytes - done : n;
        rc = copy(vk, vk->staging, vk->staged, memory, offset + done, n);
        if (rc)
            break;
        vk->later[vk->nlater++] = (Later){(char *)host + done, vk->staged, n};
        vk->staged += (n + 63) / 64 * 64; /* STAGING_BYTES is a multiple */
    }
    return rc;
}

int32_t tvmrt_vk_download(void *self, void *host, void *memory, size_t offset, size_t bytes)
{
    int32_t rc = tvmrt_vk_download_later(self, host, memory, offset, bytes);

    return rc ? rc : tvmrt_vk_finish(self);
}

int32_t tvmrt_vk_copy(void *self, void *to, size_t to_offset, void *from, size_t from_offset,
                      size_t bytes)
{
    return copy(self, to, to_offset, from, from_offset, bytes);
}
