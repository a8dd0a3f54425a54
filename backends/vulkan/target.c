/* What kernels may have that not every device does, by TVM's words: cooperative matrices
 * (`vulkan -supports_cooperative_matrix=1`), products of bytes (`-supports_integer_dot_product=1`).
 *
 * Devices without them refuse such a product, so a plain one may stand behind it. */
#include "backends/vulkan/vulkan.h"

#include <string.h>

enum { WORD_MATRICES, WORD_DOTS };

const char *const vulkan_words[] = {[WORD_MATRICES] = "-supports_cooperative_matrix",
                                    [WORD_DOTS] = "-supports_integer_dot_product",
                                    NULL};

bool vulkan_word(Ctx *c, Target *t, const char *name, const char *value)
{
    if (strcmp(value, "0") && strcmp(value, "1"))
        return error_at(c, E_TARGET, NO_LOC, "'%s=%s': it is 0 or 1", name, value);
    if (!strcmp(name, vulkan_words[WORD_MATRICES]))
        t->intrin_ops[INTRIN_COOPERATIVE_F16] = *value == '1';
    for (int i = INTRIN_DOT4_UU; i <= INTRIN_DOT4_II && !strcmp(name, vulkan_words[WORD_DOTS]); i++)
        t->intrin_ops[i] = *value == '1';
    return true;
}

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
    const bool matrices = t->intrin_ops[INTRIN_COOPERATIVE_F16];

    if (matrices && !take_subgroups(c, t, text))
        return false;
    if (matrices)
        str_printf(text, " %s=1", vulkan_words[WORD_MATRICES]);
    if (t->intrin_ops[INTRIN_DOT4_UU])
        str_printf(text, " %s=1", vulkan_words[WORD_DOTS]);
    return true;
}
