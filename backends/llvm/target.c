/* Target strings: what LLVM calls a machine, and what rules may ask of it.
 *
 *     llvm -mtriple=aarch64-linux-gnu -mcpu=cortex-a72 -mattr=+dotprod      as TVM writes it
 *     aarch64-linux-gnu -mcpu=cortex-a72+dotprod                           as compilers do
 *     llvm -mcpu=native                                                     this machine
 *
 * LLVM only warns about a CPU or feature it does not know, so cpu.def and feature.def decide what
 * is accepted, and what a CPU with these features can do (the CAP_ bits).  Without -mcpu the
 * triple's baseline is meant, never the machine of the compile.  The canonical text spells all of
 * it out: equal texts generate equal code. */
#include "backends/llvm/target.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- triples ------------------------------------------------------------------------------------- */

Arch arch_of(const char *triple)
{
    static const struct {
        const char *prefix;
        Arch        arch;
    } rows[] = {{"x86_64", ARCH_X86},       {"amd64", ARCH_X86},     {"i386", ARCH_X86},
                {"i486", ARCH_X86},         {"i586", ARCH_X86},      {"i686", ARCH_X86},
                {"aarch64-", ARCH_AARCH64}, {"arm64", ARCH_AARCH64}, {"armeb", ARCH_NONE},
                {"arm", ARCH_ARM},          {"thumbeb", ARCH_NONE},  {"thumb", ARCH_ARM},
                {"riscv32", ARCH_RISCV},    {"riscv64", ARCH_RISCV}, {"wasm32", ARCH_WASM}};

    for (size_t i = 0; i < COUNT(rows); i++)
        if (str_starts(triple, rows[i].prefix))
            return rows[i].arch;
    return ARCH_NONE;
}

static uint32_t pointer_bits_of(const char *triple)
{
    return str_starts(triple, "x86_64") || str_starts(triple, "amd64") ||
                   str_starts(triple, "aarch64") || str_starts(triple, "arm64") ||
                   str_starts(triple, "riscv64")
               ? 64
               : 32;
}

static const char *dup_message(Ctx *c, char *m)
{
    const char *s = intern(c->strings, m);

    LLVMDisposeMessage(m);
    return s;
}

static const char *const os_names[] = {"linux",   "windows", "darwin",  "macos",   "macosx",
                                       "ios",     "tvos",    "watchos", "freebsd", "netbsd",
                                       "openbsd", "none",    "unknown", "wasi",    "emscripten",
                                       "fuchsia", "hurd",    "nto"};

/* Of the parts behind the architecture, in whatever order they were given, one is a system. */
static bool names_system(Words *w, const char *given)
{
    const char *word = NULL, *near = NULL;

    for (const char *p = strchr(given, '-'); p; p = strchr(p, '-')) {
        size_t      n = strcspn(++p, "-0123456789.");
        const char *part = arena_printf(w->c->scratch, "%.*s", (int)n, p);

        for (size_t i = 0; i < COUNT(os_names); i++)
            if (!strcmp(os_names[i], part))
                return true;
        if (!near) {
            word = part;
            near = str_closest(part, os_names, COUNT(os_names));
        }
    }
    if (!word)
        return true;
    bad_word(w, "unknown operating system", word);
    if (near)
        diag_hint(w->c->diags, "did you mean '%s'?", near);
    return false;
}

/* Brings the triple into LLVM's order of parts; false if one is unknown. */
static bool check_triple(Words *w)
{
    static const char *const archs[] = {"x86_64",    "i686",    "aarch64", "arm64",
                                        "arm",       "armv7a",  "armv8a",  "wasm32",
                                        "thumbv7em", "riscv64", "riscv32"};
    const char *arch = arena_printf(w->c->scratch, "%.*s", (int)strcspn(w->triple, "-"), w->triple);

    if (arch_of(arena_printf(w->c->scratch, "%s-", arch)) == ARCH_NONE) {
        bad_word(w, "no code generator for architecture", arch);
        did_you_mean(w->c, arch, archs, COUNT(archs));
        return false;
    }
    if (!names_system(w, w->triple))
        return false;
    w->triple = dup_message(w->c, LLVMNormalizeTargetTriple(w->triple));
    return true;
}

static const char *replace_tail(Ctx *c, const char *s, const char *from, const char *to)
{
    size_t n = strlen(s) - strlen(from);

    return intern_printf(c->strings, "%.*s%s", (int)n, s, to);
}

/* hard and soft name ABIs, which a triple's environment carries. */
static bool apply_float_abi(Words *w, Arch arch)
{
    static const char *const envs[] = {"gnueabi", "musleabi", "eabi"};
    const char              *abi = w->float_abi;
    bool                     hard = abi && !strcmp(abi, "hard");

    if (!abi)
        return true;
    if (!hard && strcmp(abi, "soft") && strcmp(abi, "softfp"))
        return bad_word(w, "unknown -mfloat-abi", abi);
    if (arch != ARCH_ARM)
        return hard || bad_word(w, "only arm has -mfloat-abi", abi);
    for (size_t i = 0; i < COUNT(envs); i++) {
        const char *hf = arena_printf(w->c->scratch, "%shf", envs[i]);

        if (hard && str_ends(w->triple, envs[i]))
            w->triple = replace_tail(w->c, w->triple, envs[i], hf);
        else if (!hard && str_ends(w->triple, hf))
            w->triple = replace_tail(w->c, w->triple, hf, envs[i]);
    }
    if (!strcmp(abi, "soft"))
        str_printf(&w->mattr, ",+soft-float");
    return true;
}

/* GPUs are none that a string's triple may name. */
Arch target_arch(const Target *t)
{
    return str_starts(t->triple, "nvptx64-")  ? ARCH_NVPTX
           : str_starts(t->triple, "amdgcn-") ? ARCH_AMDGPU
                                              : arch_of(t->triple);
}

/* ---- limits -------------------------------------------------------------------------------------------- */

static void set_limits(Target *t, Arch arch)
{
    uint32_t caps = target_caps(t);

    t->pointer_bits = pointer_bits_of(t->triple);
    t->vector_bytes = caps & CAP_VEC ? 16 : 4;
    if (caps & CAP_AVX || caps & CAP_VEC32)
        t->vector_bytes = 32;
    if (caps & CAP_AVX512 || caps & CAP_VEC64)
        t->vector_bytes = 64;
    switch (arch) {
    case ARCH_X86: t->vector_regs = caps & CAP_AVX512 ? 32 : t->pointer_bits == 32 ? 8 : 16; break;
    case ARCH_AARCH64:
    case ARCH_RISCV: t->vector_regs = 32; break;
    case ARCH_ARM:
    case ARCH_WASM:
    case ARCH_NVPTX:
    case ARCH_AMDGPU:
    case ARCH_NONE: t->vector_regs = 16; break;
    }
    t->has_fma = (caps & CAP_FMA) != 0;
    t->has_round = caps & CAP_ROUND || arch == ARCH_RISCV;
    t->has_sqrt = (caps & CAP_FP) != 0;
    t->fma_mem_splat = (caps & CAP_AVX512) != 0;
    t->has_stream = arch == ARCH_X86 && caps & CAP_VEC;
    t->dots = arch == ARCH_AARCH64 || arch == ARCH_ARM ? DOTS_SIGNED : DOTS_UNSIGNED;
    set_intrin_ops(t, arch, caps);
    t->max_threads = 1;
}

/* Systems without a version are built as distributions do: ARMv7-A with hard floats, ARMv5TE with
 * soft ones.  A hard-float ABI needs the registers it passes values in; where the version does not
 * bring them, the smallest unit that has them is meant. */
static void arm_baseline(Words *w, const char *vendor)
{
    static const struct {
        const char *prefix, *fpu;
    } rows[] = {{"thumbv7em", "vfp4d16sp"},
                {"thumbv8m.main", "fp-armv8d16sp"},
                {"thumbv8.1m.main", "fp-armv8d16sp"},
                {"armv6", "vfp2"}};
    bool  hard = str_ends(w->triple, "hf");
    char *given = arena_dup(w->c->scratch, w->mattr.at ? w->mattr.at : "", w->mattr.n + 1);

    if (str_starts(w->triple, "arm-"))
        w->triple = intern_printf(w->c->strings, "%s%s", hard ? "armv7a" : "armv5te", vendor);
    for (size_t i = 0; hard && i < COUNT(rows); i++)
        if (str_starts(w->triple, rows[i].prefix)) {
            w->mattr = strbuf(w->c->scratch);
            str_printf(&w->mattr, ",+%s%s", rows[i].fpu, given);
        }
}

/* The CPU that a triple means when none is named. */
static const char *baseline_cpu(Words *w, Arch arch)
{
    const char *vendor = strchr(w->triple, '-');

    switch (arch) {
    case ARCH_X86: return "x86-64";
    case ARCH_AARCH64:
        return vendor && (str_starts(vendor, "-apple-macos") || str_starts(vendor, "-apple-darwin"))
                   ? "apple-m1"
                   : "generic";
    case ARCH_RISCV:
        if (!w->march)
            str_printf(&w->mattr,
                       pointer_bits_of(w->triple) == 64 ? ",+m,+a,+f,+d,+c" : ",+m,+a,+c");
        return "generic";
    case ARCH_ARM:
        if (!w->march)
            arm_baseline(w, vendor);
        return "generic";
    case ARCH_WASM:
    case ARCH_NVPTX:
    case ARCH_AMDGPU:
    case ARCH_NONE: break;
    }
    return "generic";
}

static const Target *make_target(Words *w)
{
    Target      t = {.backend = &backend_llvm,
                     .fast_math = w->fast_math,
                     .winograd = w->winograd,
                     .small = w->small,
                     .no_libm = w->no_libm,
                     .no_threads = w->no_threads};
    const Cpu  *cpu;
    const char *plus;
    Arch        arch;
    bool        native;
    CpuNeeds    needs;
    StrBuf      text;

    if (!w->triple)
        w->triple = dup_message(w->c, LLVMGetDefaultTargetTriple());
    if (!check_triple(w))
        return NULL;
    arch = arch_of(w->triple);
    if (!apply_march(w, arch))
        return NULL;
    if (w->mcpu && (plus = strchr(w->mcpu, '+'))) { /* cortex-a72+crc+crypto */
        for (const char *p = plus; *p;) {
            size_t n = strcspn(p + 1, "+");

            str_printf(&w->mattr, ",+%.*s", (int)n, p + 1);
            p += n + 1;
        }
        w->mcpu = intern_n(w->c->strings, w->mcpu, (size_t)(plus - w->mcpu));
    }
    native = w->mcpu && !strcmp(w->mcpu, "native");
    if (native && !native_cpu(w, arch))
        return NULL;
    if (!apply_float_abi(w, arch))
        return NULL;
    if (!w->mcpu)
        w->mcpu = baseline_cpu(w, arch);
    if (!(cpu = cpu_find(arch, w->mcpu)))
        return bad_cpu(w, arch, w->mcpu);
    if (!(t.features = clean_features(w, arch, w->mattr.at ? w->mattr.at : "")))
        return NULL;
    t.triple = w->triple;
    t.mcpu = intern(w->c->strings, *cpu->llvm ? cpu->llvm : cpu->name);
    t.abi = w->mabi ? w->mabi : "";
    t.arch = arch_name(arch);
    t.cpu = cpu->name;
    set_limits(&t, arch);
    if (native)
        native_caches(&t);
    text = strbuf(w->c->scratch);
    str_printf(&text, "llvm -mtriple=%s -mcpu=%s", t.triple, t.mcpu);
    if (*t.features)
        str_printf(&text, " -mattr=%s", t.features);
    if (*t.abi)
        str_printf(&text, " -mabi=%s", t.abi);
    if (t.fast_math)
        str_add(&text, " -fast-math=1");
    if (!t.winograd)
        str_add(&text, " -winograd=0");
    if (t.small)
        str_add(&text, " -small=1");
    if (t.no_libm)
        str_add(&text, " -libm=0");
    if (t.no_threads)
        str_add(&text, " -threads=0");
    needs = target_needs(&t);
    t.asks_cpu = !needs_nothing(&needs) && !w->no_cpu_check;
    memcpy(t.cpu_needs, needs.word, sizeof t.cpu_needs);
    if (!needs_nothing(&needs) && w->no_cpu_check)
        str_add(&text, " -cpu-check=0");
    t.text = intern(w->c->strings, text.at);
    return arena_dup(w->c->arena, &t, sizeof t);
}

/* ---- words ------------------------------------------------------------------------------------------------ */

static const char *const option_names[] = {
    "-mtriple",    "-target",   "-mcpu",    "-mattr",    "-march",       "-mabi",
    "-mfloat-abi", "-keys",     "-device",  "-model",    "-num-cores",   "-opt-level",
    "-fast-math",  "-winograd", "-small",   "-libs",     "-link-params", "-system-lib",
    "-runtime",    "-libm",     "-threads", "-cpu-check"};

static bool yes(const char *v)
{
    return strcmp(v, "0") && strcmp(v, "false");
}

static bool known_abi(const char *v)
{
    static const char *const abis[] = {"lp64",  "lp64f",   "lp64d",    "ilp32", "ilp32f", "ilp32d",
                                       "aapcs", "aapcs16", "apcs-gnu", "sysv",  "ilp32e"};

    for (size_t i = 0; i < COUNT(abis); i++)
        if (!strcmp(abis[i], v))
            return true;
    return false;
}

/* One word that begins with '-'. */
static bool option(Words *w, const char *word)
{
    size_t      n = strcspn(word, "=");
    const char *name = arena_printf(w->c->scratch, "%.*s", (int)n, word);
    const char *v = intern(w->c->strings, word[n] ? word + n + 1 : "");
    size_t      k;

    if (str_starts(name, "--"))
        name++;
    for (k = 0; k < COUNT(option_names) && strcmp(option_names[k], name); k++) {
    }
    if (k == COUNT(option_names)) {
        bad_word(w, "unknown option", name);
        did_you_mean(w->c, name, option_names, COUNT(option_names));
        return false;
    }
    if (!*v && strcmp(name, "-fast-math") && strcmp(name, "-system-lib"))
        return bad_word(w, "no value for option", name);
    if (!strcmp(name, "-mtriple") || !strcmp(name, "-target"))
        w->triple = v;
    else if (!strcmp(name, "-mcpu"))
        w->mcpu = v;
    else if (!strcmp(name, "-march"))
        w->march = v;
    else if (!strcmp(name, "-mattr"))
        str_printf(&w->mattr, ",%s", v);
    else if (!strcmp(name, "-mabi")) {
        if (!known_abi(v))
            return bad_word(w, "unknown -mabi", v);
        w->mabi = v;
    } else if (!strcmp(name, "-mfloat-abi"))
        w->float_abi = v;
    else if (!strcmp(name, "-fast-math"))
        w->fast_math = yes(v);
    else if (!strcmp(name, "-winograd"))
        w->winograd = yes(v);
    else if (!strcmp(name, "-small"))
        w->small = yes(v);
    else if (!strcmp(name, "-libm"))
        w->no_libm = !yes(v);
    else if (!strcmp(name, "-threads"))
        w->no_threads = !yes(v);
    else if (!strcmp(name, "-cpu-check"))
        w->no_cpu_check = !yes(v);
    /* the others say nothing about code: TVM uses them to pick operator implementations */
    return true;
}

static const char *const first_words[] = {
#define BACKEND(name, about) #name,
#define DEVICE(name, about, product, text, suffix, what) #name,
#define SIBLING(name, about, product) #name,
#define SOURCE(name, about, product, text, suffix, what) #name,
#include "backends/backends.def"
    "cpu", "x86_64-linux-gnu", "aarch64-linux-gnu", "wasm32"};

/* The words of JSON like {"kind": "llvm", "mcpu": "haswell", "mattr": ["+fma", "+avx2"]}, one
 * level. */
static bool json_words(Words *w, const char *p, StrBuf *out)
{
    const char *key = NULL;
    bool        list = false, first = true;

    for (p++; *p && *p != '}'; p++) {
        const char *end, *v;

        if (*p == '[')
            list = first = true;
        else if (*p == ']')
            list = false, key = NULL;
        else if (*p == '"' || (*p >= '0' && *p <= '9') || (*p >= 'a' && *p <= 'z')) {
            bool quoted = *p == '"';

            p += quoted;
            end = quoted ? strchr(p, '"') : p + strcspn(p, ",}] \t\n");
            if (!end || memchr(p, '\\', (size_t)(end - p)))
                break;
            v = arena_printf(w->c->scratch, "%.*s", (int)(end - p), p);
            p = quoted ? end : end - 1;
            if (!key) {
                key = v;
                continue;
            }
            if (!strcmp(key, "kind") || !strcmp(key, "tag"))
                str_printf(out, "%s ", v);
            else if (list && !first)
                str_printf(out, ",%s", v);
            else
                str_printf(out, " -%s=%s", key, v);
            first = false;
            if (!list)
                key = NULL;
        } else if (!strchr(" \t\n:,", *p))
            break;
    }
    if (*p == '}') {
        str_add(out, p + 1); /* options that follow */
        return true;
    }
    bad_word(w, "this JSON does not parse at", *p ? p : "its end");
    return false;
}

const Target *llvm_parse_target(Ctx *c, const char *text)
{
    Words w = {.c = c, .text = text, .winograd = true};
    bool  first = true;

    w.mattr = strbuf(c->scratch);
    while (*text == ' ')
        text++;
    if (*text == '{') {
        StrBuf plain = strbuf(c->scratch);

        if (!json_words(&w, text, &plain))
            return NULL;
        text = plain.at ? plain.at : "";
    }
    for (const char *p = text; *p;) {
        size_t      n = strcspn(p, " \t\n");
        const char *word = arena_printf(c->scratch, "%.*s", (int)n, p);

        p += n;
        if (!n) {
            p++;
            continue;
        }
        if (*word == '-') {
            if (!option(&w, word))
                return NULL;
        } else if (first && (!strcmp(word, "llvm") || !strcmp(word, "cpu"))) {
            /* said by the backend already */
        } else if (first && (strchr(word, '-') || !strcmp(word, "wasm32")) &&
                   !cpu_find(ARCH_X86, word) && !cpu_find(ARCH_AARCH64, word) &&
                   !cpu_find(ARCH_ARM, word)) {
            w.triple = word;
        } else {
            bad_word(&w, first ? "unknown target" : "unexpected word", word);
            if (cpu_find(ARCH_X86, word) || cpu_find(ARCH_AARCH64, word) ||
                cpu_find(ARCH_ARM, word))
                diag_hint(c->diags, "did you mean '-mcpu=%s'?", word);
            else
                did_you_mean(c, word, first_words, COUNT(first_words));
            return NULL;
        }
        first = false;
    }
    return make_target(&w);
}
