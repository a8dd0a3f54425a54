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

/* 90 of "sm_90a"; 0: it is no architecture. */
static uint32_t number_of(const char *arch, const char **rest)
{
    const char *digits = strchr(arch, '_');
    char       *end = NULL;

    if (!str_starts(arch, "sm_") && !str_starts(arch, "compute_"))
        return 0;
    unsigned long n = strtoul(digits + 1, &end, 10);
    *rest = end;
    return end > digits + 2 && n >= 10 && n < 1000 ? (uint32_t)n : 0;
}

bool cuda_is_ptx(const char *arch)
{
    return *arch == 'c';
}

/* The later one first; letters stand for what only that very GPU has; PTX last. */
static bool comes_before(const char *a, const char *b)
{
    const char *ra = "", *rb = "";
    uint32_t    na = number_of(a, &ra), nb = number_of(b, &rb);

    if (cuda_is_ptx(a) != cuda_is_ptx(b))
        return cuda_is_ptx(b);
    return na != nb ? na > nb : strcmp(ra, rb) > 0;
}

bool cuda_word(Ctx *c, Target *t, const char *name, const char *value)
{
    const char *rest = "";

    if (!strcmp(value, "native") && !(value = device_native_nvidia(c)))
        return false;
    if (!number_of(value, &rest) || (*rest && (strlen(rest) > 1 || !strchr("af", *rest)))) {
        error_at(c, E_TARGET, NO_LOC, "'%s=%s' is no architecture of a GPU", name, value);
        diag_hint(c->diags, "sm_80 makes code for an A100, sm_90 for an H100; compute_80 is PTX");
        return false;
    }
    return device_add_arch(c, t, value, comes_before);
}

/* All of them run what is compiled for the lowest. */
static uint32_t least_arch(Ctx *c, const Target *t)
{
    const char *arch, *rest;
    uint32_t    least = UINT32_MAX;

    for (uint32_t i = 0; (arch = device_arch(c, t, i)); i++)
        if (number_of(arch, &rest) < least)
            least = number_of(arch, &rest);
    return least;
}

/* Instructions of four warps (wgmma) are of GPUs of that very generation: all code is for these. */
static bool has_groups(Ctx *c, const Target *t)
{
    enum { HOPPER = 90 };
    const char *arch, *rest;
    bool        all = *t->mcpu != 0;

    for (uint32_t i = 0; (arch = device_arch(c, t, i)); i++)
        all = number_of(arch, &rest) == HOPPER && !strcmp(rest, "a") && all;
    return all;
}

/* What a block may have if the launch asks for it (CUDA's programming guide, compute capabilities).
 */
static uint32_t most_shared(uint32_t number)
{
    enum { KB = 1024 };

    switch (number) {
    case 70:
    case 72: return 96 * KB;
    case 75: return 64 * KB;
    case 80:
    case 87: return 163 * KB;
    case 90:
    case 100:
    case 103: return 227 * KB;
    default: return number > 80 ? 99 * KB : 48 * KB;
    }
}

/* Code of sm_80 and PTX run on later GPUs as well, of which some have no more than 99 KB. */
uint32_t cuda_shared(Ctx *c, const Target *t, bool most)
{
    const char *arch, *rest;
    uint32_t    all = most_shared(*t->mcpu ? 103 : 80), least = 80;

    for (uint32_t i = 0; (arch = device_arch(c, t, i)); i++) {
        uint32_t number = number_of(arch, &rest), has = most_shared(number);
        all = has < all ? has : all;
        least = number < least ? number : least;
    }
    if (has_groups(c, t))
        return all; /* no other GPU runs it */
    return most ? all : least < 80 ? most_shared(60) : most_shared(86);
}

bool cuda_canonical(Ctx *c, Target *t, StrBuf *text)
{
    const char *arch, *best = NULL;
    bool        ptx = false;

    if (!*t->mcpu)
        device_add_arch(c, t, "sm_80", comes_before);
    for (uint32_t i = 0; (arch = device_arch(c, t, i)); i++) {
        str_printf(text, " -arch=%s", arch);
        ptx = ptx || cuda_is_ptx(arch);
        best = best ? best : arch;
    }
    uint32_t least = least_arch(c, t);
    t->shared_overlaid = true;
    const bool groups = has_groups(c, t);
    t->gpu = intern_printf(c->strings, groups ? "sm_%ua" : "sm_%u", least);
    for (uint32_t i = 0; i < INTRIN_COUNT; i++)
        t->intrin_ops[i] = cuda_instruction((IntrinId)i) && least >= cuda_first((IntrinId)i) &&
                           (groups || !intrin_of(c, (IntrinId)i)->group);
    if (!ptx) { /* implied, so not written */
        const char *rest;
        t->mcpu = intern_printf(c->strings, groups ? "%s compute_%ua" : "%s compute_%u", t->mcpu,
                                number_of(best, &rest));
    }
    return true;
}
