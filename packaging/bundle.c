/* bundle.c: the layout of a deployment archive.
 *
 *   net/manifest.json                 what it is: models, targets, members with their hashes
 *   net/sbom.spdx.json                what it was built from, with hashes
 *   net/SHA256SUMS                    `sha256sum -c SHA256SUMS` in the top folder checks all of it
 *   net/lib/<triple>/libnet.a .so     net/src/net.c in their place where the target gives C
 *                                     net/include/net.h, net/include/tvmcc/abi.h
 *   net/share/net/net.json            the metadata; net.weights and model.relay beside it
 *   net/lib/cmake/net/                find_package(net) gives the target net::net
 *   net/lib/pkgconfig/net.pc          the same for pkg-config
 *   net/reports/, net/licenses/       sizes and memory; licence texts
 *
 * With several triples, headers and weights lie in folders of the triple's name, as each build has
 * its own.  All of it follows from the parts given; nothing of the machine gets in.
 */
#include "packaging/packaging.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

extern const unsigned char abi_header_text[]; /* made by the build from include/tvmcc/abi.h */
extern const size_t        abi_header_text_bytes;
extern const unsigned char tvmcc_license[]; /* from LICENSE */
extern const size_t        tvmcc_license_bytes;

typedef VEC(Member) Members;

const char *const content_names[CONTENT_COUNT] = {
    "lib",     "header", "weights",   "metadata", "tuning",
    "reports", "cmake",  "pkgconfig", "sbom",     "licenses",
};

Bytes abi_header(void)
{
    return (Bytes){abi_header_text, abi_header_text_bytes};
}

Bytes license_text(void)
{
    return (Bytes){tvmcc_license, tvmcc_license_bytes};
}

static void add(Arena *a, Members *m, const char *path, Bytes data)
{
    if (data.n)
        vec_push(a, m, ((Member){.path = path, .data = data}));
}

bool bundle_wants(const Bundle *b, Content c)
{
    return !b->contents || b->contents >> c & 1;
}

static int by_path(const void *a, const void *b)
{
    return strcmp(((const Member *)a)->path, ((const Member *)b)->path);
}

static void sort(Members *m)
{
    if (m->n)
        qsort(m->at, m->n, sizeof *m->at, by_path);
}

static Bytes sums(Arena *a, const Members *m)
{
    StrBuf s = strbuf(a);
    char   hex[65];

    for (uint32_t i = 0; i < m->n; i++) {
        sha256_hex(sha256(m->at[i].data), hex);
        str_printf(&s, "%s  %s\n", hex, m->at[i].path);
    }
    return (Bytes){(const uint8_t *)s.at, s.n};
}

/* ---- what belongs to one product ---------------------------------------------------------------- */

static void add_part(Arena *a, Members *m, const Bundle *b, const BundlePart *p)
{
    const char *e = p->desc->entry, *triple = p->desc->triple;
    bool        several = bundle_several_triples(b);
    const char *own = several ? arena_printf(a, "%s/", triple) : "";

    if (bundle_wants(b, CONTENT_HEADER))
        add(a, m, arena_printf(a, "include/%s%s.h", own, e), p->header);
    if (bundle_wants(b, CONTENT_LIB)) {
        add(a, m, arena_printf(a, "lib/%s/lib%s.a", triple, e), p->library);
        add(a, m, arena_printf(a, "lib/%s/lib%s.so", triple, e), p->shared);
        if (p->shared.n)
            m->at[m->n - 1].executable = true;
        add(a, m, arena_printf(a, "src/%s.c", e), p->source);
    }
    if (bundle_wants(b, CONTENT_PKGCONFIG) && (p->library.n || p->shared.n || p->source.n))
        add(a, m,
            several ? arena_printf(a, "lib/%s/pkgconfig/%s.pc", triple, e)
                    : arena_printf(a, "lib/pkgconfig/%s.pc", e),
            bundle_pkg_config(a, b, p));
    if (bundle_wants(b, CONTENT_METADATA)) {
        add(a, m, arena_printf(a, "share/%s/%s%s.json", e, own, e), p->metadata);
        add(a, m, arena_printf(a, "share/%s/%smodel.relay", e, own), p->relay);
        add(a, m, arena_printf(a, "share/%s/%s%s.labels", e, own, e), p->labels);
    }
    if (bundle_wants(b, CONTENT_WEIGHTS))
        add(a, m, arena_printf(a, "share/%s/%s%s.weights", e, own, e), p->weights);
}

/* Two builds of one model for one triple would lie at the same paths. */
static bool check_parts(Diags *d, const Bundle *b)
{
    for (uint32_t i = 0; i < b->nparts; i++)
        for (uint32_t k = 0; k < i; k++) {
            const ModelDesc *x = b->parts[i].desc, *y = b->parts[k].desc;

            if (strcmp(x->entry, y->entry) == 0 && strcmp(x->triple, y->triple) == 0) {
                diag_error(d, E_PACK, NO_LOC, "two products of '%s' are for '%s'", x->entry,
                           x->triple);
                diag_hint(d, "pack them into archives of their own, or give one another entry");
                return false;
            }
        }
    return b->nparts > 0 || diag_error(d, E_PACK, NO_LOC, "there is no product to pack");
}

static void add_common(Arena *a, Members *m, const Bundle *b)
{
    const char *name = b->name ? b->name : b->parts[0].desc->entry;
    bool        several = bundle_several_triples(b), alone = true;

    for (uint32_t i = 0; i < b->nparts; i++)
        alone = alone && strcmp(b->parts[i].desc->entry, name) != 0;
    if (bundle_wants(b, CONTENT_HEADER))
        add(a, m, "include/tvmcc/abi.h", abi_header());
    if (bundle_wants(b, CONTENT_CMAKE) && bundle_wants(b, CONTENT_LIB)) {
        add(a, m, arena_printf(a, "lib/cmake/%s/%sConfig.cmake", name, name), bundle_cmake(a, b));
        add(a, m, arena_printf(a, "lib/cmake/%s/%sConfigVersion.cmake", name, name),
            bundle_cmake_version(a, b));
    }
    if (bundle_wants(b, CONTENT_PKGCONFIG) && bundle_wants(b, CONTENT_LIB) && alone && !several)
        add(a, m, arena_printf(a, "lib/pkgconfig/%s.pc", name), bundle_pkg_config(a, b, NULL));
    if (bundle_wants(b, CONTENT_REPORTS)) {
        add(a, m, "reports/coverage.json", bundle_coverage_report(a, b));
        add(a, m, "reports/memory.json", bundle_memory_report(a, b));
        add(a, m, "reports/size.json", bundle_size_report(a, b));
    }
    if (bundle_wants(b, CONTENT_SBOM))
        add(a, m, "sbom.spdx.json", bundle_sbom(a, b));
    if (bundle_wants(b, CONTENT_LICENSES))
        add(a, m, "licenses/tvmcc.txt", license_text());
}

bool bundle_members(Diags *d, Arena *a, const Bundle *b, Member **members, uint32_t *n)
{
    const char *top;
    Members     m = {0};

    if (!check_parts(d, b))
        return false;
    top = b->top ? b->top : b->name ? b->name : b->parts[0].desc->entry;
    for (uint32_t i = 0; i < b->nparts; i++)
        add_part(a, &m, b, &b->parts[i]);
    add_common(a, &m, b);
    for (uint32_t i = 0; i < b->nextra; i++)
        vec_push(a, &m, b->extra[i]);
    sort(&m);
    for (uint32_t i = 1; i < m.n; i++)
        if (strcmp(m.at[i - 1].path, m.at[i].path) == 0)
            return diag_error(d, E_PACK, NO_LOC, "two members have the path '%s'", m.at[i].path);
    add(a, &m, "manifest.json", bundle_manifest(a, b, m.at, m.n));
    sort(&m);
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

static const Member *find_sums(const Member *members, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        if (strcmp(members[i].path, "SHA256SUMS") == 0 ||
            (str_ends(members[i].path, "/SHA256SUMS") &&
             strchr(members[i].path, '/') == strrchr(members[i].path, '/')))
            return &members[i];
    return NULL;
}

bool bundle_has_sums(const Member *members, uint32_t n)
{
    return find_sums(members, n) != NULL;
}

/* `others`: there may be files that the list does not name. */
static bool verify(Diags *d, Arena *a, const char *file, const Member *members, uint32_t n,
                   bool others)
{
    Loc           loc = {.file = file};
    const Member *list;
    const char   *path, *top; /* "net/", or "" for the content of the folder */
    char          want[65], got[65];
    size_t        at = 0;
    uint32_t      count = 0, before = diag_errors(d);

    if (!(list = find_sums(members, n)))
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
    else if (!others && count + 1 < n)
        diag_error(d, E_PACK, loc, "the archive has members that SHA256SUMS does not list");
    return diag_errors(d) == before;
}

bool bundle_verify(Diags *d, Arena *a, const char *file, const Member *members, uint32_t n)
{
    return verify(d, a, file, members, n, false);
}

bool bundle_intact(Diags *d, Arena *a, const char *file, const Member *members, uint32_t n,
                   bool folder)
{
    return !bundle_has_sums(members, n) || verify(d, a, file, members, n, folder);
}

bool bundle_read(Diags *d, Arena *a, const char *path, Bytes content, Member **members, uint32_t *n)
{
    struct stat st;
    bool        folder = !content.n && stat(path, &st) == 0 && S_ISDIR(st.st_mode);
    bool        ok = folder ? folder_read(d, a, path, members, n)
                            : pack_read(d, a, path, content, PACK_LIMIT, members, n);

    return ok && bundle_intact(d, a, path, *members, *n, folder);
}

/* ---- the weights file --------------------------------------------------------------------- */

BytesList weights_pieces(Arena *a, Bytes data, Sha256 sha)
{
    enum { HEADER = 64 }; /* tvmcc_weights_header of abi.h */
    uint8_t *p = arena_alloc(a, HEADER);
    Bytes   *at = NEW_ARRAY(a, Bytes, 2);

    memcpy(p, "TVMCCWT1", 8);
    for (int i = 0; i < 8; i++)
        p[8 + i] = (uint8_t)((uint64_t)data.n >> 8 * i);
    memcpy(p + 32, sha.b, sizeof sha.b);
    at[0] = (Bytes){p, HEADER};
    at[1] = data;
    return (BytesList){2, at};
}

Bytes weights_file(Arena *a, Bytes data, Sha256 sha)
{
    return pieces_join(a, weights_pieces(a, data, sha));
}
