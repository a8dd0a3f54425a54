/* Which GPUs a target is for: `cuda -arch=sm_80 -arch=sm_90`.
 *
 * Code of sm_80 runs on GPUs of that generation from there on (sm_86, sm_89), not on others; the
 * PTX of the highest that is named is for what comes later.  `-arch=compute_80` is PTX alone. TVM's
 * words are understood: -mcpu= is -arch=. `native` is the GPU of this machine. */
#include "backends/cuda/cuda.h"
#include "ir/tir/intrin.h"

#include <stdlib.h>
#include <string.h>

const char *const cuda_words[] = {"-arch", "-mcpu", NULL};

bool cuda_word(Ctx *c, Target *t, const char *name, const char *value)
{
    const char *rest = "";

    if (!strcmp(value, "native") && !(value = device_native_nvidia(c)))
        return false;
    if (!nvidia_number(value, &rest) || (*rest && (strlen(rest) > 1 || !strchr("af", *rest)))) {
        error_at(c, E_TARGET, NO_LOC, "'%s=%s' is no architecture of a GPU", name, value);
        diag_hint(c->diags, "sm_80 makes code for an A100, sm_90 for an H100; compute_80 is PTX");
        return false;
    }
    return device_add_arch(c, t, value, nvidia_comes_before);
}

bool cuda_canonical(Ctx *c, Target *t, StrBuf *text)
{
    const char *arch, *best = NULL;
    bool        ptx = false;

    if (!*t->mcpu)
        device_add_arch(c, t, "sm_80", nvidia_comes_before);
    for (uint32_t i = 0; (arch = device_arch(c, t, i)); i++) {
        str_printf(text, " -arch=%s", arch);
        ptx = ptx || nvidia_is_ptx(arch);
        best = best ? best : arch;
    }
    uint32_t least = nvidia_least(c, t);
    t->shared_overlaid = true;
    const bool groups = nvidia_groups(c, t);
    t->gpu = intern_printf(c->strings, groups ? "sm_%ua" : "sm_%u", least);
    for (uint32_t i = 0; i < INTRIN_COUNT; i++)
        t->intrin_ops[i] = cuda_instruction((IntrinId)i) && least >= cuda_first((IntrinId)i) &&
                           (groups || !intrin_of(c, (IntrinId)i)->group);
    if (!ptx) { /* implied, so not written */
        const char *rest;
        t->mcpu = intern_printf(c->strings, groups ? "%s compute_%ua" : "%s compute_%u", t->mcpu,
                                nvidia_number(best, &rest));
    }
    return true;
}
