/* NVIDIA's GPUs by name: sm_80 for machine code, compute_80 for PTX. */
#include "backends/common/device.h"

#include <stdlib.h>
#include <string.h>

uint32_t nvidia_number(const char *arch, const char **rest)
{
    const char *digits = strchr(arch, '_');
    char       *end = NULL;

    if (!str_starts(arch, "sm_") && !str_starts(arch, "compute_"))
        return 0;
    unsigned long n = strtoul(digits + 1, &end, 10);
    *rest = end;
    return end > digits + 2 && n >= 10 && n < 1000 ? (uint32_t)n : 0;
}

bool nvidia_is_ptx(const char *arch)
{
    return *arch == 'c';
}

bool nvidia_comes_before(const char *a, const char *b)
{
    const char *ra = "", *rb = "";
    uint32_t    na = nvidia_number(a, &ra), nb = nvidia_number(b, &rb);

    if (nvidia_is_ptx(a) != nvidia_is_ptx(b))
        return nvidia_is_ptx(b);
    return na != nb ? na > nb : strcmp(ra, rb) > 0;
}

uint32_t nvidia_least(Ctx *c, const Target *t)
{
    const char *arch, *rest;
    uint32_t    least = UINT32_MAX;

    for (uint32_t i = 0; (arch = device_arch(c, t, i)); i++)
        if (nvidia_number(arch, &rest) < least)
            least = nvidia_number(arch, &rest);
    return least;
}

bool nvidia_groups(Ctx *c, const Target *t)
{
    enum { HOPPER = 90 };
    const char *arch, *rest;
    bool        all = *t->mcpu != 0;

    for (uint32_t i = 0; (arch = device_arch(c, t, i)); i++)
        all = nvidia_number(arch, &rest) == HOPPER && !strcmp(rest, "a") && all;
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
uint32_t nvidia_shared(Ctx *c, const Target *t, bool most)
{
    const char *arch, *rest;
    uint32_t    all = most_shared(*t->mcpu ? 103 : 80), least = 80;

    for (uint32_t i = 0; (arch = device_arch(c, t, i)); i++) {
        uint32_t number = nvidia_number(arch, &rest), has = most_shared(number);
        all = has < all ? has : all;
        least = number < least ? number : least;
    }
    if (nvidia_groups(c, t))
        return all; /* no other GPU runs it */
    return most ? all : least < 80 ? most_shared(60) : most_shared(86);
}
