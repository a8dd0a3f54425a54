/* refit.c: other weights in finished products.
 *
 * Code depends on the plan alone, and the plan on no value of the weights.  So a build of a new
 * checkpoint differs from the old product in known places: the weights themselves, which have the
 * same size; and three hashes, of the weights, the model and the build, which stand as 32 bytes in
 * the model's info and as hexadecimal text in the metadata.  These are replaced where they
 * stand, and the bytes are those that a whole build would give.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* memmem */
#endif
#include "packaging/packaging.h"

#include <string.h>

enum { HASHES = 3, BINARY = 32, HEX = 64 };

static bool same_sha(Sha256 x, Sha256 y)
{
    return memcmp(x.b, y.b, sizeof x.b) == 0;
}

bool refit_possible(Diags *d, const char *file, const ModelDesc *was, const ModelDesc *now)
{
    static const Sha256 none;
    Loc                 loc = {.file = file};
    uint32_t n = was->nkernel_names < now->nkernel_names ? was->nkernel_names : now->nkernel_names;

    if (same_sha(was->plan_sha, none))
        return diag_error(d, E_PACK, loc, "its metadata say too little about its code");
    if (same_sha(was->plan_sha, now->plan_sha) && was->weights_bytes == now->weights_bytes)
        return true;
    for (uint32_t i = 0; i < n; i++)
        if (strcmp(was->kernel_names[i], now->kernel_names[i]) != 0)
            return diag_error(d, E_REFIT, loc,
                              "the new model needs other code: kernel %u is '%s', not '%s'", i,
                              now->kernel_names[i], was->kernel_names[i]);
    if (was->nkernel_names != now->nkernel_names)
        return diag_error(d, E_REFIT, loc, "the new model needs other code: %u kernels, not %u",
                          now->nkernel_names, was->nkernel_names);
    diag_error(d, E_REFIT, loc, "the new model has the same kernels, but needs another plan");
    diag_hint(d, "give the options that the product was built with, such as -fno-pic or --dim");
    return false;
}

/* ---- hashes ---------------------------------------------------------------------------------------- */

static void replace_all(uint8_t *p, size_t n, const uint8_t *from, const uint8_t *to, size_t len)
{
    uint8_t *end = p + n, *at;

    while ((size_t)(end - p) >= len && (at = memmem(p, (size_t)(end - p), from, len)) != NULL) {
        memcpy(at, to, len);
        p = at + len;
    }
}

static void replace_hashes(uint8_t *p, size_t n, const Refit *r, bool text)
{
    static const Sha256 none;
    const Sha256        was[HASHES] = {r->was->weights_sha, r->was->model_sha, r->was->build_id};
    const Sha256        now[HASHES] = {r->now->weights_sha, r->now->model_sha, r->now->build_id};

    for (int i = 0; i < HASHES; i++) {
        char from[HEX + 1], to[HEX + 1];

        if (same_sha(was[i], none))
            continue;
        sha256_hex(was[i], from);
        sha256_hex(now[i], to);
        if (text)
            replace_all(p, n, (const uint8_t *)from, (const uint8_t *)to, HEX);
        else
            replace_all(p, n, was[i].b, now[i].b, BINARY);
    }
}

/* ---- weights --------------------------------------------------------------------------------------- */

/* The weights in one ELF file, which lies at `base` of the product. */
static bool replace_weights(Arena *a, Bytes elf, uint8_t *base, const Refit *r)
{
    const char *symbol = arena_printf(a, "%s_weights", r->was->entry);
    Object      f;

    if (!elf_read(diags_new(a), a, "", elf, &f))
        return false;
    for (uint32_t i = 1; i < f.nsymbols; i++) {
        const ObjectSymbol  *s = &f.symbols[i];
        const ObjectSection *section;
        uint64_t             at;

        if (strcmp(s->name, symbol) != 0 || s->section == 0 || s->section >= f.nsections)
            continue;
        section = &f.sections[s->section];
        at = s->value - section->address;
        if (s->value < section->address || at > section->data.n ||
            r->weights.n > section->data.n - at)
            return false;
        if (r->weights.n)
            memcpy(base + section->offset + at, r->weights.at, r->weights.n);
        return true;
    }
    return false;
}

static bool is_binary(Bytes b)
{
    return ar_is_library(b) || object_format(b) == OBJECT_ELF;
}

bool refit_file(Diags *d, Arena *a, const char *file, Bytes product, const Refit *r, Bytes *out)
{
    uint8_t *p;
    Member  *m;
    uint32_t n;
    bool     found = !weights_inside(r->was->weights_mode) || r->weights.n == 0;

    if (product.n >= 8 && memcmp(product.at, "TVMCCWT1", 8) == 0) {
        *out = weights_file(a, r->weights, r->now->weights_sha);
        return true;
    }
    p = product.n ? arena_dup(a, product.at, product.n) : arena_alloc(a, 1);
    *out = (Bytes){p, product.n};
    replace_hashes(p, product.n, r, !is_binary(product));
    if (!is_binary(product) || found)
        return true;
    if (ar_is_library(product)) {
        if (!ar_members(d, a, file, product, &m, &n))
            return false;
        for (uint32_t i = 0; i < n; i++)
            found = replace_weights(a, m[i].data, p + (m[i].data.at - product.at), r) || found;
    } else {
        found = replace_weights(a, product, p, r);
    }
    return found || diag_error(d, E_PACK, (Loc){.file = file}, "the weights of '%s' are not in it",
                               r->was->entry);
}
