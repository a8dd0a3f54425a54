/* For which GPUs a target's product has machine code: Target.mcpu is their names, the best first.
 *
 *     cuda -arch=sm_80 -arch=sm_90       "sm_90 sm_80 compute_90" */
#include "backends/common/device.h"

#include <string.h>

enum { MOST_ARCHS = 16 };

const char *device_arch(Ctx *c, const Target *t, uint32_t i)
{
    const char *at = t->mcpu;

    for (; i && *at; i--) {
        at += strcspn(at, " ");
        at += *at == ' ';
    }
    return *at ? intern_n(c->strings, at, strcspn(at, " ")) : NULL;
}

const char *device_least_arch(Ctx *c, const Target *t)
{
    const char *arch, *last = NULL;

    for (uint32_t i = 0; (arch = device_arch(c, t, i)); i++)
        last = arch;
    return last;
}

bool device_add_arch(Ctx *c, Target *t, const char *arch, ArchOrderFn *comes_before)
{
    StrBuf      all = strbuf(c->arena);
    const char *other;
    bool        added = false;
    uint32_t    i = 0;

    for (; (other = device_arch(c, t, i)); i++) {
        if (!strcmp(other, arch))
            return true;
        if (!added && comes_before(arch, other)) {
            str_printf(&all, "%s%s", all.n ? " " : "", arch);
            added = true;
        }
        str_printf(&all, "%s%s", all.n ? " " : "", other);
    }
    if (i == MOST_ARCHS)
        return error_at(c, E_TARGET, NO_LOC, "more than %d architectures", MOST_ARCHS);
    if (!added)
        str_printf(&all, "%s%s", all.n ? " " : "", arch);
    t->mcpu = intern(c->strings, all.at);
    return true;
}
