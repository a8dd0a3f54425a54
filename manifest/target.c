/* Hosts and targets of a manifest as target strings.
 *
 *     {triple: aarch64-linux-gnu, mcpu: cortex-a53} and {kind: llvm}
 *         llvm -mtriple=aarch64-linux-gnu -mcpu=cortex-a53
 *     ... {kind: opencl, device: mali}
 *         opencl -device=mali, llvm -mtriple=aarch64-linux-gnu -mcpu=cortex-a53
 *     ... {kind: cuda, arch: [sm_80, sm_90]}
 *         cuda -arch=sm_80 -arch=sm_90, llvm -mtriple=aarch64-linux-gnu -mcpu=cortex-a53
 *     ... {kind: c}                       loops are arranged for that machine
 *         c -mtriple=aarch64-linux-gnu -mcpu=cortex-a53
 *     {triple: any} and {kind: c}
 *         c
 */
#include "manifest/tree.h"

#include <string.h>

static const char *kind_of(const ManTarget *t)
{
    return t->text.given ? t->text.text : t->kind.given ? t->kind.text : "";
}

static bool is_kind(const ManTarget *t, const char *name)
{
    const char *kind = kind_of(t);

    return strcspn(kind, " ,") == strlen(name) && strncmp(kind, name, strlen(name)) == 0;
}

TargetClass target_class(const ManTarget *t)
{
#define BACKEND(name, about) \
    if (is_kind(t, #name))   \
        return TARGET_CPU;
#define SOURCE(name, about, product, text, suffix, what) \
    if (is_kind(t, #name))                               \
        return TARGET_SOURCE;
#include "backends/backends.def"
    return TARGET_DEVICE;
}

const char *target_word(Diags *d, const ManTarget *t)
{
    const char *kind = kind_of(t);

    return arena_printf(diag_arena(d), "%.*s", (int)strcspn(kind, " ,"), kind);
}

const char *manifest_source_suffix(const ManTarget *t)
{
#define SOURCE(name, about, product, text, suffix, what) \
    if (is_kind(t, #name))                               \
        return suffix;
#include "backends/backends.def"
    return NULL;
}

static void add_features(StrBuf *s, const ManTexts *host, const ManTexts *target)
{
    uint32_t n = 0;

    for (int k = 0; k < 2; k++) {
        const ManTexts *list = k == 0 ? host : target;

        for (uint32_t i = 0; list && i < list->n; i++)
            str_printf(s, "%s%s", n++ ? "," : " -mattr=", list->at[i].text);
    }
}

/* The words behind the kind: which machine. */
static void add_machine(StrBuf *s, const ManHost *h, const ManTarget *t)
{
    str_printf(s, " -mtriple=%s", h->triple.text);
    if (h->mcpu.given || (t && t->mcpu.given))
        str_printf(s, " -mcpu=%s", h->mcpu.given ? h->mcpu.text : t->mcpu.text);
    add_features(s, &h->mattr, t ? &t->mattr : NULL);
}

static const char *host_text(Arena *a, const ManHost *h, const ManTarget *t)
{
    StrBuf s = strbuf(a);

    str_add(&s, "llvm");
    add_machine(&s, h, t);
    if (h->float_abi.given)
        str_printf(&s, " -mfloat-abi=%s", h->float_abi.text);
    return s.at;
}

/* How floats are passed is for the compiler of the text. */
static const char *source_text(Arena *a, const ManHost *h, const ManTarget *t)
{
    const char *kind = kind_of(t);
    size_t      n = strcspn(kind, " ,");
    StrBuf      s = strbuf(a);

    str_addn(&s, kind, n);
    if (strcmp(h->triple.text, ANY_TRIPLE) != 0)
        add_machine(&s, h, t);
    str_add(&s, kind + n);
    return s.at;
}

const char *manifest_target_text(Arena *a, const ManHost *h, const ManTarget *t)
{
    TargetClass cls = target_class(t);
    StrBuf      s = strbuf(a);

    if (cls == TARGET_SOURCE)
        return source_text(a, h, t);
    if (t->text.given && strchr(t->text.text, ',') && cls != TARGET_CPU)
        return t->text.text; /* a device with a host of its own */
    if (t->text.given && cls == TARGET_CPU) {
        /* the host's words first: of two the last counts */
        str_printf(&s, "%s%s", host_text(a, h, NULL), t->text.text + strcspn(t->text.text, " ,"));
    } else if (t->text.given) {
        str_printf(&s, "%s, %s", t->text.text, host_text(a, h, NULL));
    } else if (cls == TARGET_CPU) {
        return host_text(a, h, t);
    } else {
        str_add(&s, t->kind.text);
        if (t->device.given)
            str_printf(&s, " -device=%s", t->device.text);
        if (t->max_threads_per_block.given)
            str_printf(&s, " -max_threads_per_block=%lld",
                       (long long)t->max_threads_per_block.value);
        for (uint32_t i = 0; i < t->arch.n; i++)
            str_printf(&s, " -arch=%s", t->arch.at[i].text);
        str_printf(&s, ", %s", host_text(a, h, NULL));
    }
    return s.at;
}
