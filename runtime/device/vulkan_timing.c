/* vulkan_timing.c: what launches take on a Vulkan device.
 *
 * Two timestamps stand around each launch, and not one between two: what lies there are the
 * barrier, which is no kernel's, and other commands.  Both are written when all that stands before
 * has come to its end.
 */
#include "vulkan.h"

#include <stdlib.h>

enum { TIMED = 256 }; /* launches of a pool */

const char *tvmrt_vk_can_time(const Vulkan *vk)
{
    return vk->timestamp_bits && vk->properties.limits.timestamp_ns > 0
               ? NULL
               : "launches cannot be timed: the Vulkan device's queue has no timestamps";
}

static int32_t new_pool(Vulkan *vk)
{
    VkQueryInfo info = {.type = VK_QUERY_POOL, .query = VK_TIMESTAMP, .count = 2 * TIMED};
    void       *pools = vk->queries;
    int32_t     rc =
        tvmrt_device_grow(&vk->state, &pools, vk->nqueries, &vk->room, sizeof *vk->queries);

    vk->queries = pools;
    if (!rc)
        rc = tvmrt_vk_check(
            vk, vk->vkCreateQueryPool(vk->device, &info, NULL, &vk->queries[vk->nqueries]),
            "vkCreateQueryPool");
    vk->nqueries += !rc;
    return rc;
}

static void stamp(Vulkan *vk, VkHandle at, uint32_t end)
{
    uint32_t i = vk->state.launches;

    vk->vkCmdWriteTimestamp(at, VK_AT_BOTTOM, vk->queries[i / TIMED], i % TIMED * 2 + end);
}

int32_t tvmrt_vk_begin_timed(Vulkan *vk, VkHandle at)
{
    uint32_t i = vk->state.launches;
    int32_t  rc = i / TIMED == vk->nqueries ? new_pool(vk) : TVMCC_OK;

    if (rc)
        return rc;
    if (i % TIMED == 0)
        vk->vkCmdResetQueryPool(at, vk->queries[i / TIMED], 0, 2 * TIMED);
    stamp(vk, at, 0);
    return TVMCC_OK;
}

void tvmrt_vk_end_timed(Vulkan *vk, VkHandle at)
{
    stamp(vk, at, 1);
    vk->state.launches++;
}

int32_t tvmrt_vk_launch_times(DeviceState *state, uint32_t n, double *ns)
{
    Vulkan  *vk = (Vulkan *)state;
    uint64_t ticks[2 * TIMED];
    uint64_t mask = vk->timestamp_bits < 64 ? ((uint64_t)1 << vk->timestamp_bits) - 1 : UINT64_MAX;

    for (uint32_t i = 0; i < n; i += TIMED) {
        uint32_t here = n - i < TIMED ? n - i : TIMED;
        int32_t  code =
            vk->vkGetQueryPoolResults(vk->device, vk->queries[i / TIMED], 0, 2 * here,
                                      2 * here * sizeof *ticks, ticks, sizeof *ticks, VK_RESULT_64);
        if (code)
            return tvmrt_vk_check(vk, code, "vkGetQueryPoolResults");
        for (uint32_t k = 0; k < here; k++)
            ns[i + k] = (double)((ticks[2 * k + 1] - ticks[2 * k]) & mask) *
                        (double)vk->properties.limits.timestamp_ns;
    }
    return TVMCC_OK;
}

void tvmrt_vk_free_times(Vulkan *vk)
{
    for (uint32_t i = 0; i < vk->nqueries; i++)
        vk->vkDestroyQueryPool(vk->device, vk->queries[i], NULL);
    free(vk->queries);
    vk->queries = NULL;
    vk->nqueries = vk->room = 0;
}
