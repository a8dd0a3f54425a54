/* Any bytes as a manifest: what is read has builds, target strings and JSON; what is formatted
 * reads as the same manifest, and formatting that changes nothing. */
#include "manifest/manifest.h"

#include <string.h>

static const char *json_of(Diags *d, Arena *a, Bytes text)
{
    const Manifest *m = manifest_parse(d, a, "fuzz.yaml", text, NULL);
    ManFiles        files = {0};
    StrBuf          s = strbuf(a);

    if (!m)
        return NULL;
    manifest_json(m, &files, "", &s);
    for (uint32_t i = 0; i < m->bundles.n; i++)
        manifest_bundle_pairs(m, a, &m->bundles.at[i]);
    return s.at;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    Arena      *a = arena_new(NULL);
    Diags      *d = diags_new(a);
    StrBuf      once = strbuf(a), twice = strbuf(a), messages = strbuf(a);
    const char *was = json_of(d, a, (Bytes){data, size});

    diag_print(d, DIAG_TEXT, &messages);
    if (manifest_format(d, a, "fuzz.yaml", (Bytes){data, size}, &once)) {
        Bytes       text = {(const uint8_t *)once.at, once.n};
        const char *now = json_of(d, a, text);

        if (was && (!now || strcmp(was, now) != 0))
            BUG("formatting changed a manifest:\n%s\n%s\n%s", once.at, was, now ? now : "");
        if (!manifest_format(d, a, "again.yaml", text, &twice) || strcmp(once.at, twice.at) != 0)
            BUG("formatting twice differs:\n%s----\n%s", once.at, twice.at ? twice.at : "");
    }
    arena_free(a);
    return 0;
}
