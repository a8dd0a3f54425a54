/* Instructions of a Vulkan target: cooperative matrices and products of bytes, which not every
 * device has. */
#include "backends/vulkan/vulkan.h"

#include <string.h>

/* Threads of a warp as the model has them. */
static bool is_usual(const Target *t)
{
    const DeviceModel *m = t->backend->device->models;

    while (m[1].warp && m->name != t->gpu)
        m++;
    return t->warp == m->warp;
}

/* Subgroups of 32 threads, which devices with larger ones have as well. */
static bool take_subgroups(Ctx *c, Target *t, StrBuf *text)
{
    const uint32_t subgroup = warp_threads(warp_layout(LAYOUT_COOPERATIVE));

    if (t->warp != subgroup && !is_usual(t)) {
        error_at(c, E_TARGET, NO_LOC, "cooperative matrices are those of subgroups of %u threads",
                 subgroup);
        diag_hint(c->diags, "leave '-thread_warp_size=%u' out", t->warp);
        return false;
    }
    if (t->warp != subgroup)
        str_printf(text, " -thread_warp_size=%u", t->warp = subgroup);
    return true;
}

bool vulkan_canonical(Ctx *c, Target *t, StrBuf *text)
{
    t->intrin_ops[INTRIN_COOPERATIVE_F16] = (t->has & HAS_MATRICES) != 0;
    for (int i = INTRIN_DOT4_UU; i <= INTRIN_DOT4_II; i++)
        t->intrin_ops[i] = (t->has & HAS_DOTS) != 0;
    return !(t->has & HAS_MATRICES) || take_subgroups(c, t, text);
}
