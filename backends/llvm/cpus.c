/* CPUs and their features: the rows of cpu.def and feature.def, -march, and this machine. */
#include "backends/llvm/target.h"

#include <string.h>

static const Cpu cpus[] = {
#define CPU(arch, name, llvm, caps) {ARCH_##arch, name, llvm, caps},
#include "backends/llvm/cpu.def"
#undef CPU
};

typedef struct {
    Arch        arch;
    const char *name;
    uint32_t    on, off;
} Feature;

static const Feature features[] = {
#define FEATURE(arch, name, on, off) {ARCH_##arch, name, on, off},
#include "backends/llvm/feature.def"
#undef FEATURE
};

static const char *const arch_names[] = {"x86",  "aarch64", "arm",    "riscv",
                                         "wasm", "nvptx",   "amdgpu", "unknown"};

const char *arch_name(Arch arch)
{
    return arch_names[arch];
}

/* ---- tables ------------------------------------------------------------------------------------ */

const Cpu *cpu_find(Arch arch, const char *name)
{
    for (size_t i = 0; i < COUNT(cpus); i++)
        if (cpus[i].arch == arch && !strcmp(cpus[i].name, name))
            return &cpus[i];
    for (size_t i = 0; i < COUNT(cpus); i++)
        if (cpus[i].arch == arch && !strcmp(cpus[i].llvm, name))
            return &cpus[i];
    return NULL;
}

static const Feature *feature_find(Arch arch, const char *name, size_t n)
{
    for (size_t i = 0; i < COUNT(features); i++)
        if (features[i].arch == arch && strlen(features[i].name) == n &&
            !memcmp(features[i].name, name, n))
            return &features[i];
    return NULL;
}

void *bad_word(const Words *w, const char *what, const char *word)
{
    return error_at(w->c, E_TARGET, NO_LOC, "target '%s': %s '%s'", w->text, what, word);
}

void did_you_mean(Ctx *c, const char *word, const char *const *list, size_t n)
{
    const char *near = str_closest(word, list, n);

    if (near)
        diag_hint(c->diags, "did you mean '%s'?", near);
}

void *bad_cpu(const Words *w, Arch arch, const char *word)
{
    const char *names[COUNT(cpus)];
    size_t      n = 0;

    error_at(w->c, E_TARGET, NO_LOC, "target '%s': unknown CPU '%s' for %s", w->text, word,
             arch_name(arch));
    for (size_t i = 0; i < COUNT(cpus); i++)
        if (cpus[i].arch == arch)
            names[n++] = cpus[i].name;
    did_you_mean(w->c, word, names, n);
    return NULL;
}

static void *bad_feature(const Words *w, Arch arch, const char *word)
{
    const char *names[COUNT(features)];
    size_t      n = 0;

    error_at(w->c, E_TARGET, NO_LOC, "target '%s': unknown feature '%s' for %s", w->text, word,
             arch_name(arch));
    for (size_t i = 0; i < COUNT(features); i++)
        if (features[i].arch == arch)
            names[n++] = features[i].name;
    did_you_mean(w->c, word, names, n);
    return NULL;
}

/* ---- architecture strings ---------------------------------------------------------------------- */

static bool riscv_march(Words *w)
{
    const char *p = w->march;

    if (!str_starts(p, "rv64") && !str_starts(p, "rv32"))
        return bad_word(w, "unknown -march", p);
    for (p += 4; *p && *p != '_'; p++) {
        if (*p == 'g')
            str_add(&w->mattr, ",+m,+a,+f,+d,+zicsr,+zifencei");
        else if (*p == 'z')
            break;
        else if (*p != 'i')
            str_printf(&w->mattr, ",+%c", *p);
    }
    while (*p) {
        size_t n;

        if (*p == '_')
            p++;
        n = strcspn(p, "_");
        if (n)
            str_printf(&w->mattr, ",+%.*s", (int)n, p);
        p += n;
    }
    return true;
}

/* armv8.2-a+dotprod+fp16 */
static bool arm_march(Words *w, Arch arch)
{
    const char *p = w->march;
    size_t      n = strcspn(p, "+"), k = 0;
    char        version[32];

    if (!str_starts(p, "armv") || n >= sizeof version)
        return bad_word(w, "unknown -march", p);
    for (size_t i = 0; i < n; i++)
        if (p[i] != '-')
            version[k++] = p[i];
    version[k] = 0;
    if (arch == ARCH_AARCH64)
        str_printf(&w->mattr, ",+%s", version + 3);
    else
        w->triple = intern_printf(w->c->strings, "%s%s", version, strchr(w->triple, '-'));
    for (p += n; *p; p += n) {
        p++;
        n = strcspn(p, "+");
        if (n)
            str_printf(&w->mattr, ",+%.*s", (int)n, p);
    }
    return true;
}

bool apply_march(Words *w, Arch arch)
{
    if (!w->march)
        return true;
    switch (arch) {
    case ARCH_X86:
        if (!w->mcpu)
            w->mcpu = w->march;
        return true;
    case ARCH_RISCV: return riscv_march(w);
    case ARCH_ARM:
    case ARCH_AARCH64: return arm_march(w, arch);
    case ARCH_WASM:
    case ARCH_NVPTX:
    case ARCH_AMDGPU:
    case ARCH_NONE: break;
    }
    return bad_word(w, "this architecture has no -march", w->march);
}

/* ---- features --------------------------------------------------------------------------------------- */

/* Checks "+a,-b", sorts out repetitions (the last wins, in order of first appearance). */
const char *clean_features(Words *w, Arch arch, const char *text)
{
    VEC(const char *) names = {0};
    VEC(char) signs = {0};
    StrBuf out = strbuf(w->c->scratch);

    for (const char *p = text; *p;) {
        size_t         n = strcspn(p, ",");
        char           sign = '+';
        const Feature *f;
        uint32_t       i;

        if (n && (*p == '+' || *p == '-')) {
            sign = *p++;
            n--;
        }
        if (n) {
            if (!(f = feature_find(arch, p, n)))
                return bad_feature(w, arch, arena_printf(w->c->scratch, "%.*s", (int)n, p));
            for (i = 0; i < names.n && names.at[i] != f->name; i++) {
            }
            if (i < names.n)
                signs.at[i] = sign;
            else {
                vec_push(w->c->scratch, &names, f->name);
                vec_push(w->c->scratch, &signs, sign);
            }
        }
        p += n;
        if (*p == ',')
            p++;
    }
    for (uint32_t i = 0; i < names.n; i++)
        str_printf(&out, "%s%c%s", i ? "," : "", signs.at[i], names.at[i]);
    return intern(w->c->strings, out.at ? out.at : "");
}

static uint32_t caps_with(Arch arch, uint32_t caps, const char *text)
{
    enum { PARTS = CAP_BW | CAP_DQ | CAP_VL };
    for (const char *p = text; *p;) {
        size_t         n = strcspn(p, ",");
        const Feature *f = n ? feature_find(arch, p + 1, n - 1) : NULL;

        if (f)
            caps = *p == '-' ? caps & ~f->off : caps | f->on;
        p += n;
        if (*p == ',')
            p++;
    }
    if (arch == ARCH_X86)
        caps = (caps & PARTS) == PARTS ? caps | CAP_AVX512 : caps & ~(CAP_AVX512 | CAP_F16D);
    return caps;
}

/* What the version in an arm triple brings along, as LLVM sees it. */
static uint32_t triple_caps(Arch arch, const char *triple)
{
    if (arch == ARCH_ARM && (strstr(triple, "v7a") || strstr(triple, "v7-")))
        return CAP_FP | CAP_F64 | CAP_VEC;
    if (arch == ARCH_ARM && strstr(triple, "v8"))
        return CAP_FP | CAP_F64 | CAP_VEC | CAP_FMA | CAP_F16C | CAP_F16D | CAP_ROUND;
    return 0;
}

uint32_t target_caps(const Target *t)
{
    Arch       arch = target_arch(t);
    const Cpu *cpu = cpu_find(arch, t->mcpu);

    if (arch == ARCH_NVPTX || arch == ARCH_AMDGPU)
        return gpu_caps(arch, t->mcpu);
    return caps_with(arch, (cpu ? cpu->caps : 0) | triple_caps(arch, t->triple), t->features);
}

/* ---- this machine ------------------------------------------------------------------------------------ */

/* A feature whose absence on this machine is worth saying, since its CPU's name promises it
 * (virtual machines hide some): what capabilities hang on, and what LLVM makes instructions of. */
static bool worth_denying(const Feature *f, const Cpu *cpu)
{
    return f->off & cpu->caps ||
           (f->arch == ARCH_X86 && cpu_has(*cpu->llvm ? cpu->llvm : cpu->name, f->name));
}

bool native_cpu(Words *w, Arch arch)
{
    char      *host = LLVMGetDefaultTargetTriple(), *name, *list;
    bool       same = arch_of(host) == arch;
    const Cpu *cpu;
    StrBuf     own = strbuf(w->c->scratch);

    LLVMDisposeMessage(host);
    if (!same)
        return bad_word(w, "the machine of the compile is not of architecture", arch_name(arch));
    name = LLVMGetHostCPUName();
    list = LLVMGetHostCPUFeatures();
    cpu = cpu_find(arch, name);
    for (const char *p = list; *p;) {
        size_t         n = strcspn(p, ",");
        const Feature *f = n ? feature_find(arch, p + 1, n - 1) : NULL;

        /* an unknown CPU is the baseline with what the machine reports */
        if (f && (cpu ? *p == '-' && worth_denying(f, cpu) : *p == '+'))
            str_printf(&own, ",%c%s", *p, f->name);
        p += n;
        if (*p == ',')
            p++;
    }
    w->mcpu = cpu ? cpu->name : NULL;
    if (own.n) {
        char *given = arena_dup(w->c->scratch, w->mattr.at ? w->mattr.at : "", w->mattr.n + 1);

        w->mattr = strbuf(w->c->scratch);
        str_printf(&w->mattr, "%s,%s", own.at, given);
    }
    LLVMDisposeMessage(name);
    LLVMDisposeMessage(list);
    return true;
}

/* ---- list ------------------------------------------------------------------------------------------------- */

void llvm_list_targets(StrBuf *out)
{
    for (size_t i = 0; i < COUNT(cpus); i++) {
        const Cpu *p = &cpus[i];
        int        bytes = p->caps & (CAP_AVX512 | CAP_VEC64) ? 64
                           : p->caps & (CAP_AVX | CAP_VEC32)  ? 32
                           : p->caps & CAP_VEC                ? 16
                                                              : 0;

        str_printf(out, "%-8s -mcpu=%-16s", arch_name(p->arch), p->name);
        if (bytes)
            str_printf(out, " %d-byte vectors", bytes);
        if (p->caps & CAP_FMA)
            str_add(out, bytes ? ", fma" : " fma");
        str_add(out, "\n");
    }
}
