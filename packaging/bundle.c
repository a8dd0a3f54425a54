/* bundle.c: the layout of a deployment archive.
 *
 *   net/manifest.json                 what it is: entry, version, triple, members with their hashes
 *   net/sbom.spdx.json                the model it was built from, with its hash
 *   net/SHA256SUMS                    `sha256sum -c SHA256SUMS` in the top folder checks all of it
 *   net/lib/<triple>/libnet.a .so     net/include/net.h, net/include/tvmcc/abi.h
 *   net/share/net/net.json            the metadata; net.weights and model.relay beside it
 *   net/lib/cmake/net/                find_package(net) gives the target net::net
 *   net/lib/pkgconfig/net.pc          the same for pkg-config
 *
 * All of it follows from the ModelDesc and the bytes given; nothing of the machine gets in.
 */
#include "packaging/packaging.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

extern const unsigned char abi_header_text[]; /* made by the build from include/tvmcc/abi.h */
extern const size_t        abi_header_text_bytes;

typedef VEC(Member) Members;

Bytes abi_header(void)
{
    return (Bytes){abi_header_text, abi_header_text_bytes};
}

static Bytes text_bytes(const StrBuf *s)
{
    return (Bytes){(const uint8_t *)s->at, s->n};
}

static void add(Arena *a, Members *m, const char *path, Bytes data)
{
    if (data.n)
        vec_push(a, m, ((Member){.path = path, .data = data}));
}

/* ---- files for build systems ------------------------------------------------------------------
 */

static Bytes cmake_config(Arena *a, const Bundle *b)
{
    const char *e = b->desc->entry, *triple = b->desc->triple;
    StrBuf      s = strbuf(a);

    str_printf(&s, "# find_package(%s) gives the library %s::%s.\n", e, e, e);
    str_add(&s, "get_filename_component(_root \"${CMAKE_CURRENT_LIST_DIR}/../../..\" ABSOLUTE)\n");
    str_printf(&s, "if(NOT TARGET %s::%s)\n", e, e);
    str_printf(&s, "    add_library(%s::%s %s IMPORTED)\n", e, e,
               b->library.n ? "STATIC" : "SHARED");
    str_printf(&s, "    set_target_properties(%s::%s PROPERTIES\n", e, e);
    str_printf(&s, "        IMPORTED_LOCATION \"${_root}/lib/%s/lib%s.%s\"\n", triple, e,
               b->library.n ? "a" : "so");
    if (!b->library.n)
        str_printf(&s, "        IMPORTED_SONAME \"lib%s.so\"\n", e);
    str_add(&s, "        INTERFACE_INCLUDE_DIRECTORIES \"${_root}/include\"\n"
                "        INTERFACE_LINK_LIBRARIES m)\n");
    str_printf(&s, "endif()\nset(%s_WEIGHTS \"${_root}/share/%s/%s.weights\")\nunset(_root)\n", e,
               e, e);
    return text_bytes(&s);
}

static Bytes pkg_config(Arena *a, const Bundle *b)
{
    const char *e = b->desc->entry;
    StrBuf      s = strbuf(a);

    str_add(&s, "prefix=${pcfiledir}/../..\n\n");
    str_printf(&s, "Name: %s\nDescription: a model compiled by tvmcc\nVersion: %s\n", e,
               b->version ? b->version : "0");
    str_printf(&s, "Cflags: -I${prefix}/include\nLibs: -L${prefix}/lib/%s -l%s -lm\n",
               b->desc->triple, e);
    return text_bytes(&s);
}

/* ---- what is inside ------------------------------------------------------------------ */

/* SPDX 2.3: the model is what the product was built from; its licence is not ours to state. */
static Bytes bill_of_materials(Arena *a, const Bundle *b)
{
    const ModelDesc *m = b->desc;
    time_t           epoch = (time_t)b->epoch;
    struct tm        utc = {0};
    char             model[65], build[65], created[32];
    StrBuf           s = strbuf(a);

    sha256_hex(m->model_sha, model);
    sha256_hex(m->build_id, build);
    gmtime_r(&epoch, &utc);
    strftime(created, sizeof created, "%Y-%m-%dT%H:%M:%SZ", &utc);
    str_printf(&s,
               "{\n  \"SPDXID\": \"SPDXRef-DOCUMENT\",\n  \"creationInfo\": {\"created\": \"%s\", "
               "\"creators\": [",
               created);
    json_string(&s, arena_printf(a, "Tool: %s", m->toolchain));
    str_printf(&s,
               "]},\n  \"dataLicense\": \"CC0-1.0\",\n  \"documentNamespace\": "
               "\"urn:tvmcc:%s\",\n  \"name\": \"%s\",\n",
               build, m->entry);
    str_add(&s, "  \"packages\": [{\"SPDXID\": \"SPDXRef-model\", \"checksums\": [{\"algorithm\": "
                "\"SHA256\", ");
    str_printf(&s, "\"checksumValue\": \"%s\"}], \"copyrightText\": \"NOASSERTION\", ", model);
    str_add(&s, "\"downloadLocation\": \"NOASSERTION\", \"filesAnalyzed\": false,\n"
                "    \"licenseConcluded\": \"NOASSERTION\", \"licenseDeclared\": \"NOASSERTION\", "
                "\"name\": ");
    json_string(&s, m->model ? m->model : m->entry);
    str_add(&s, "}],\n  \"relationships\": [{\"relatedSpdxElement\": \"SPDXRef-model\", "
                "\"relationshipType\": \"DESCRIBES\",\n    \"spdxElementId\": "
                "\"SPDXRef-DOCUMENT\"}],\n  \"spdxVersion\": \"SPDX-2.3\"\n}\n");
    return text_bytes(&s);
}

/* ---- lists -------------------------------------------------------------------------------- */

static int by_path(const void *a, const void *b)
{
    return strcmp(((const Member *)a)->path, ((const Member *)b)->path);
}

static void add_hash(StrBuf *s, Bytes data)
{
    char hex[65];

    sha256_hex(sha256(data), hex);
    str_add(s, hex);
}

static Bytes manifest(Arena *a, const Bundle *b, const Members *m)
{
    StrBuf s = strbuf(a);
    char   hex[65];

    sha256_hex(b->desc->build_id, hex);
    str_printf(&s, "{\n  \"build_id\": \"%s\",\n  \"entry\": ", hex);
    json_string(&s, b->desc->entry);
    str_add(&s, ",\n  \"files\": [");
    for (uint32_t i = 0; i < m->n; i++) {
        str_printf(&s, "%s\n    {\"bytes\": %" PRIu64 ", \"path\": ", i ? "," : "",
                   (uint64_t)m->at[i].data.n);
        json_string(&s, m->at[i].path);
        str_add(&s, ", \"sha256\": \"");
        add_hash(&s, m->at[i].data);
        str_add(&s, "\"}");
    }
    str_add(&s, "\n  ],\n  \"schema\": \"tvmcc-archive/1\",\n  \"targets\": ");
    json_string(&s, b->desc->targets);
    str_add(&s, ",\n  \"toolchain\": ");
    json_string(&s, b->desc->toolchain);
    str_add(&s, ",\n  \"triple\": ");
    json_string(&s, b->desc->triple);
    str_add(&s, ",\n  \"version\": ");
    json_string(&s, b->version ? b->version : "0");
    str_add(&s, "\n}\n");
    return text_bytes(&s);
}

static Bytes sums(Arena *a, const Members *m)
{
    StrBuf s = strbuf(a);

    for (uint32_t i = 0; i < m->n; i++) {
        add_hash(&s, m->at[i].data);
        str_printf(&s, "  %s\n", m->at[i].path);
    }
    return text_bytes(&s);
}

bool bundle_members(Diags *d, Arena *a, const Bundle *b, Member **members, uint32_t *n)
{
    const char *e = b->desc->entry, *triple = b->desc->triple, *top = b->top ? b->top : e;
    Members     m = {0};

    add(a, &m, arena_printf(a, "include/%s.h", e), b->header);
    add(a, &m, "include/tvmcc/abi.h", abi_header());
    add(a, &m, arena_printf(a, "lib/%s/lib%s.a", triple, e), b->library);
    add(a, &m, arena_printf(a, "lib/%s/lib%s.so", triple, e), b->shared);
    if (b->shared.n)
        m.at[m.n - 1].executable = true;
    if (b->library.n || b->shared.n) {
        add(a, &m, arena_printf(a, "lib/cmake/%s/%sConfig.cmake", e, e), cmake_config(a, b));
        add(a, &m, arena_printf(a, "lib/pkgconfig/%s.pc", e), pkg_config(a, b));
    }
    add(a, &m, "sbom.spdx.json", bill_of_materials(a, b));
    add(a, &m, arena_printf(a, "share/%s/%s.json", e, e), b->metadata);
    add(a, &m, arena_printf(a, "share/%s/%s.weights", e, e), b->weights);
    add(a, &m, arena_printf(a, "share/%s/%s.labels", e, e), b->labels);
    add(a, &m, arena_printf(a, "share/%s/model.relay", e), b->relay);
    for (uint32_t i = 0; i < b->nextra; i++)
        vec_push(a, &m, b->extra[i]);
    qsort(m.at, m.n, sizeof *m.at, by_path);
    for (uint32_t i = 1; i < m.n; i++)
        if (strcmp(m.at[i - 1].path, m.at[i].path) == 0)
            return diag_error(d, E_PACK, NO_LOC, "two members have the path '%s'", m.at[i].path);
    add(a, &m, "manifest.json", manifest(a, b, &m));
    qsort(m.at, m.n, sizeof *m.at, by_path);
    add(a, &m, "SHA256SUMS", sums(a, &m));
    for (uint32_t i = 0; i < m.n; i++)
        m.at[i].path = arena_printf(a, "%s/%s", top, m.at[i].path);
    *members = m.at;
    *n = m.n;
    return true;
}

/* ---- checking ----------------------------------------------------------------------------- */

/* The path of the next line of SHA256SUMS and its hash; NULL at the end or where it does not parse.
 */
static const char *next_sum(Arena *a, Bytes text, size_t *at, char hex[65])
{
    const char *line = (const char *)text.at + *at, *end;
    size_t      left = text.n - *at;

    if (left < 67 || !(end = memchr(line, '\n', left)) || end - line < 67 || line[64] != ' ')
        return NULL;
    memcpy(hex, line, 64);
    hex[64] = 0;
    *at += (size_t)(end - line) + 1;
    return arena_printf(a, "%.*s", (int)(end - line - 66), line + 66);
}

bool bundle_verify(Diags *d, Arena *a, const char *file, const Member *members, uint32_t n)
{
    Loc           loc = {.file = file};
    const Member *list = NULL;
    const char   *path, *top; /* "net/", or "" for the content of the folder */
    char          want[65], got[65];
    size_t        at = 0;
    uint32_t      count = 0, before = diag_errors(d);

    for (uint32_t i = 0; i < n && !list; i++)
        if (strcmp(members[i].path, "SHA256SUMS") == 0 ||
            (str_ends(members[i].path, "/SHA256SUMS") &&
             strchr(members[i].path, '/') == strrchr(members[i].path, '/')))
            list = &members[i];
    if (!list)
        return diag_error(d, E_PACK, loc, "the archive has no SHA256SUMS");
    top = arena_printf(a, "%.*s", (int)(strlen(list->path) - strlen("SHA256SUMS")), list->path);
    while ((path = next_sum(a, list->data, &at, want)) != NULL) {
        const Member *m = pack_find(members, n, arena_printf(a, "%s%s", top, path));

        count++;
        if (!m) {
            diag_error(d, E_PACK, loc, "member '%s' is missing", path);
            continue;
        }
        sha256_hex(sha256(m->data), got);
        if (strcmp(want, got) != 0)
            diag_error(d, E_PACK, loc, "member '%s' has other bytes than SHA256SUMS says", path);
    }
    if (at != list->data.n)
        diag_error(d, E_PACK, loc, "SHA256SUMS does not parse");
    else if (count + 1 < n)
        diag_error(d, E_PACK, loc, "the archive has members that SHA256SUMS does not list");
    return diag_errors(d) == before;
}

/* ---- the weights file --------------------------------------------------------------------- */

Bytes weights_file(Arena *a, Bytes data, Sha256 sha)
{
    enum { HEADER = 64 }; /* tvmcc_weights_header of abi.h */
    uint8_t *p = arena_alloc(a, HEADER + data.n);

    memcpy(p, "TVMCCWT1", 8);
    for (int i = 0; i < 8; i++)
        p[8 + i] = (uint8_t)((uint64_t)data.n >> 8 * i);
    memcpy(p + 32, sha.b, sizeof sha.b);
    if (data.n)
        memcpy(p + HEADER, data.at, data.n);
    return (Bytes){p, HEADER + data.n};
}
