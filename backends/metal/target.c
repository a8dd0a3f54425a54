/* Whether products hold text or metallibs: `metal -metallib=13.0`.
 *
 * A metallib runs on the system that it names and on later ones.  Which system, the host's triple
 * says: macOS, or iOS. */
#include "backends/metal/metal.h"

#include <string.h>

const char *const metal_words[] = {"-metallib", NULL};

static const MetalSdk sdks[] = {{"iphoneos", "-mios-version-min=", "-ios"},
                                {"macosx", "-mmacosx-version-min=", ""}};

const MetalSdk *metal_sdk(const char *arch, const char **version)
{
    const MetalSdk *sdk = sdks;

    while (!str_starts(arch, sdk->name))
        sdk++;
    *version = arch + strlen(sdk->name);
    return sdk;
}

/* One to three numbers, the first not 0: "13", "13.0", "10.15.4". */
static bool is_version(const char *text)
{
    int numbers = 0;

    if (*text == '0')
        return false;
    for (;; text++) {
        size_t digits = strspn(text, "0123456789");

        if (!digits || digits > 3 || ++numbers > 3)
            return false;
        text += digits;
        if (*text != '.')
            return !*text;
    }
}

bool metal_word(Ctx *c, Target *t, const char *name, const char *value)
{
    if (is_version(value)) {
        t->mcpu = value;
        return true;
    }
    error_at(c, E_TARGET, NO_LOC, "'%s=%s' is no version of macOS or iOS", name, value);
    diag_hint(c->diags, "'-metallib=13.0' is for that version and later ones");
    return false;
}

/* GPUs with names are of the families that have matrices of SIMD-groups (Apple7 and later), so what
 * is made for one uses them. */
static void set_matrices(Target *t)
{
    if (t->gpu)
        t->intrin_ops[INTRIN_SIMDGROUP_F16] = 1;
}

/* Of the word, which stands in Target.mcpu so far, and the host. */
bool metal_canonical(Ctx *c, Target *t, StrBuf *text)
{
    static const char *const others[] = {"-simulator", "-macabi", "-tvos", "-watchos"};
    const char              *triple = t->host->triple;
    const MetalSdk          *sdk = sdks;

    set_matrices(t);
    if (!*t->mcpu)
        return true;
    for (size_t i = 0; i < COUNT(others); i++)
        if (strstr(triple, others[i])) {
            error_at(c, E_TARGET, NO_LOC, "metallibs are made for macOS and iOS, not for '%s'",
                     triple);
            diag_hint(c->diags, "without '-metallib=' the device compiles the text");
            return false;
        }
    while (!strstr(triple, sdk->system))
        sdk++;
    str_printf(text, " -metallib=%s", t->mcpu);
    t->mcpu = intern_printf(c->strings, "%s%s", sdk->name, t->mcpu);
    return true;
}
