/* Which GPUs a target is for: `cuda -arch=sm_80 -arch=sm_90`.
 *
 * Code of sm_80 runs on GPUs of that generation from there on (sm_86, sm_89), not on others; the
 * PTX of the highest that is named is for what comes later.  `-arch=compute_80` is PTX alone. TVM's
 * words are understood: -mcpu= is -arch=. */
#include "backends/cuda/cuda.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_ARCHS = 16 };

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

static bool is_ptx(const char *arch)
{
    return *arch == 'c';
}

/* The later one first; letters stand for what only that very GPU has; PTX last. */
static bool comes_before(const char *a, const char *b)
{
    const char *ra = "", *rb = "";
    uint32_t    na = number_of(a, &ra), nb = number_of(b, &rb);

    if (is_ptx(a) != is_ptx(b))
        return is_ptx(b);
    return na != nb ? na > nb : strcmp(ra, rb) > 0;
}

const char *cuda_arch(Ctx *c, const Target *t, uint32_t i)
{
    const char *at = t->mcpu;

    for (; i && *at; i--) {
        at += strcspn(at, " ");
        at += *at == ' ';
    }
    return *at ? intern_n(c->strings, at, strcspn(at, " ")) : NULL;
}

static bool add_arch(Ctx *c, Target *t, const char *word, const char *arch)
{
    StrBuf      all = strbuf(c->arena);
    const char *rest = "", *other;
    bool        added = false;
    uint32_t    i = 0;

    if (!number_of(arch, &rest) || (*rest && (strlen(rest) > 1 || !strchr("af", *rest)))) {
        error_at(c, E_TARGET, NO_LOC, "'%s=%s' is no architecture of a GPU", word, arch);
        diag_hint(c->diags, "sm_80 makes code for an A100, sm_90 for an H100; compute_80 is PTX");
        return false;
    }
    for (; (other = cuda_arch(c, t, i)); i++) {
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

bool cuda_word(Ctx *c, Target *t, const char *name, const char *value)
{
    return add_arch(c, t, name, value);
}

/* All of them run what is compiled for the lowest. */
static uint32_t least_arch(Ctx *c, const Target *t)
{
    const char *arch, *rest;
    uint32_t    least = UINT32_MAX;

    for (uint32_t i = 0; (arch = cuda_arch(c, t, i)); i++)
        if (number_of(arch, &rest) < least)
            least = number_of(arch, &rest);
    return least;
}

void cuda_canonical(Ctx *c, Target *t, StrBuf *text)
{
    const char *arch, *best = NULL;
    bool        ptx = false;

    if (!*t->mcpu)
        add_arch(c, t, "-arch", "sm_80");
    for (uint32_t i = 0; (arch = cuda_arch(c, t, i)); i++) {
        str_printf(text, " -arch=%s", arch);
        ptx = ptx || is_ptx(arch);
        best = best ? best : arch;
    }
    if (least_arch(c, t) >= 80)
        for (uint32_t i = 0; i < INTRIN_COUNT; i++)
            t->intrin_ops[i] = cuda_instruction((IntrinId)i) ? 1 : 0;
    if (!ptx) { /* implied, so not written */
        const char *rest;
        t->mcpu = intern_printf(c->strings, "%s compute_%u", t->mcpu, number_of(best, &rest));
    }
}
