/* Whether kernels compute with half (cl_khr_fp16), of which not every device has more than memory:
 * `opencl -supports_float16=1`.
 *
 * Devices without it refuse a product that has f16, so a plain one may stand behind it.
 * Target.features is the extension's name behind '+', or '-' where it was refused. */
#include "backends/opencl/opencl.h"

#include <string.h>

#define EXTENSION "cl_khr_fp16"

const char *const opencl_words[] = {"-supports_float16", NULL};

bool opencl_word(Ctx *c, Target *t, const char *name, const char *value)
{
    if (strcmp(value, "0") && strcmp(value, "1"))
        return error_at(c, E_TARGET, NO_LOC, "'%s=%s': it is 0 or 1", name, value);
    t->features = *value == '1' ? "+" EXTENSION : "-" EXTENSION;
    return true;
}

bool opencl_has_half(const Target *t)
{
    return *t->features == '+';
}

/* Models of which all devices have it: Intel's driver lists it for each of its GPUs, Arm's for Mali
 * from Midgard on.  Of older Adrenos it is not known. */
static bool is_implied(const char *model)
{
    return model && (!strcmp(model, "intel_graphics") || !strcmp(model, "mali"));
}

bool opencl_canonical(Ctx *c, Target *t, StrBuf *text)
{
    const bool implied = is_implied(t->gpu), has = *t->features ? opencl_has_half(t) : implied;

    (void)c;
    for (uint32_t i = 0; i < INTRIN_COUNT; i++)
        t->intrin_ops[i] = opencl_instruction((IntrinId)i) != NULL;
    t->features = has ? "+" EXTENSION : "-" EXTENSION;
    if (has != implied)
        str_printf(text, " %s=%d", opencl_words[0], has);
    return true;
}
