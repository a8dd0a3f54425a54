/* archive.c: archives through libarchive, so that every machine makes the same bytes.
 *
 * Members are sorted by path, with each folder before its content; owner, group and names are 0 and
 * empty, modes 0644 or 0755, one time for all.  No access times, links or attributes.  Compressors
 * run at a fixed level in one thread; gzip carries no time or name.  In a zip no time is set at
 * all, which libarchive writes as 1980-01-01 in every time zone.
 *
 * Reading takes hostile archives: content is bounded, paths must stay inside.
 */
#include "formats/formats.h"
#include "packaging/packaging.h"

#include <archive.h>
#include <archive_entry.h>
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { MAX_PATH = 100, MAX_MEMBERS = 1 << 20 }; /* a kernel cache may have some 700000 */

static const struct {
    const char *suffix;
    PackFormat  format;
} suffixes[] = {
    {".tar", PACK_TAR},      {".tar.gz", PACK_TGZ}, {".tgz", PACK_TGZ},
    {".tar.zst", PACK_TZST}, {".tar.xz", PACK_TXZ}, {".zip", PACK_ZIP},
};

PackFormat pack_format(const char *path)
{
    for (size_t i = 0; i < COUNT(suffixes); i++)
        if (str_ends(path, suffixes[i].suffix))
            return suffixes[i].format;
    return PACK_NONE;
}

const char *pack_stem(Arena *a, const char *path)
{
    const char *slash = strrchr(path, '/'), *file = slash ? slash + 1 : path, *dot;

    for (size_t i = 0; i < COUNT(suffixes); i++)
        if (str_ends(file, suffixes[i].suffix) && strlen(file) > strlen(suffixes[i].suffix))
            return arena_printf(a, "%.*s", (int)(strlen(file) - strlen(suffixes[i].suffix)), file);
    dot = strrchr(file, '.');
    return dot && dot > file ? arena_printf(a, "%.*s", (int)(dot - file), file) : file;
}

/* Relative, no empty or dot parts, short enough for the oldest tar. */
static bool good_path(const char *path)
{
    size_t n = strlen(path);

    if (n == 0 || n > MAX_PATH || path[0] == '/' || path[n - 1] == '/')
        return false;
    for (const char *part = path; part; part = strchr(part, '/') ? strchr(part, '/') + 1 : NULL) {
        size_t len = strcspn(part, "/");

        if (len == 0 || (len == 1 && part[0] == '.') || (len == 2 && memcmp(part, "..", 2) == 0))
            return false;
    }
    for (const char *p = path; *p; p++) /* the same bytes in every locale and on every system */
        if (*p < 32 || *p > 126 || *p == '\\')
            return false;
    return true;
}

/* ---- writing ------------------------------------------------------------------------------ */

static int by_path(const void *a, const void *b)
{
    return strcmp((*(const Member *const *)a)->path, (*(const Member *const *)b)->path);
}

/* An archive as pieces: what libarchive hands on as it is, large content of a .tar, is a part of
 * the member's; all else is a copy. */
typedef struct {
    Arena *arena;
    Bytes  member; /* that is being written */
    StrBuf copied;
    VEC(Bytes) pieces; /* `at` NULL: so much of what was copied */
} Pieces;

enum { PIECE = 1 << 16 }; /* bytes from which on it is not copied */

static la_ssize_t to_pieces(struct archive *ar, void *user, const void *data, size_t n)
{
    Pieces        *p = user;
    const uint8_t *at = data;
    bool           own = p->member.n && at >= p->member.at && at < p->member.at + p->member.n;

    (void)ar;
    if (n >= PIECE && own && n <= (size_t)(p->member.at + p->member.n - at)) {
        vec_push(p->arena, &p->pieces, ((Bytes){at, n}));
        return (la_ssize_t)n;
    }
    WRITTEN_BY_LIBRARY(data, n);
    str_addn(&p->copied, data, n);
    if (p->pieces.n && !p->pieces.at[p->pieces.n - 1].at)
        p->pieces.at[p->pieces.n - 1].n += n;
    else
        vec_push(p->arena, &p->pieces, ((Bytes){NULL, n}));
    return (la_ssize_t)n;
}

static BytesList all_pieces(Pieces *p)
{
    size_t at = 0;

    for (uint32_t i = 0; i < p->pieces.n; i++)
        if (!p->pieces.at[i].at) {
            p->pieces.at[i].at = (const uint8_t *)p->copied.at + at;
            at += p->pieces.at[i].n;
        }
    return (BytesList){p->pieces.n, p->pieces.at};
}

static int set_format(struct archive *ar, PackFormat format)
{
    int rc = format == PACK_ZIP ? archive_write_set_format_zip(ar)
                                : archive_write_set_format_pax_restricted(ar);

    switch (format) {
    case PACK_TGZ:
        rc |= archive_write_add_filter_gzip(ar);
        rc |= archive_write_set_options(ar, "gzip:compression-level=9,gzip:!timestamp");
        break;
    case PACK_TZST:
        rc |= archive_write_add_filter_zstd(ar);
        rc |= archive_write_set_options(ar, "zstd:compression-level=19");
        break;
    case PACK_TXZ:
        rc |= archive_write_add_filter_xz(ar);
        rc |= archive_write_set_options(ar, "xz:compression-level=6,xz:threads=1");
        break;
    case PACK_ZIP:
        rc |= archive_write_set_options(ar, "zip:compression=deflate,zip:compression-level=9");
        break;
    case PACK_TAR:
    case PACK_NONE: break;
    }
    /* no padding to the blocks of a tape */
    rc |= archive_write_set_bytes_per_block(ar, 0);
    return rc;
}

typedef struct {
    Diags          *d;
    Arena          *arena;
    struct archive *ar;
    PackFormat      format;
    int64_t         epoch;
    Pieces         *out;
} Pack;

/* libarchive takes no more than INT_MAX bytes at once. */
static bool write_content(struct archive *ar, Bytes content)
{
    enum { MOST = 1 << 30 };

    while (content.n) {
        size_t n = content.n < MOST ? content.n : MOST;

        if (archive_write_data(ar, content.at, n) != (la_ssize_t)n)
            return false;
        content.at += n;
        content.n -= n;
    }
    return true;
}

static bool write_entry(Pack *p, const char *path, const Member *m)
{
    struct archive_entry *e = archive_entry_new();
    int                   rc;

    if (!e)
        return diag_error(p->d, E_PACK, NO_LOC, "no memory for the archive");
    archive_entry_set_pathname(e, path);
    archive_entry_set_filetype(e, m ? AE_IFREG : AE_IFDIR);
    archive_entry_set_perm(e, !m || m->executable ? 0755 : 0644);
    archive_entry_set_size(e, m ? (la_int64_t)m->data.n : 0);
    if (p->format != PACK_ZIP)
        archive_entry_set_mtime(e, p->epoch, 0);
    rc = archive_write_header(p->ar, e);
    archive_entry_free(e);
    p->out->member = m ? m->data : (Bytes){0};
    if (rc == ARCHIVE_OK && m && !write_content(p->ar, m->data))
        rc = ARCHIVE_FATAL;
    if (rc != ARCHIVE_OK)
        return diag_error(p->d, E_PACK, NO_LOC, "cannot pack '%s': %s", path,
                          archive_error_string(p->ar));
    return true;
}

/* The folders of `path` that the path before it did not have. */
static bool write_folders(Pack *p, const char *previous, const char *path)
{
    for (const char *s = strchr(path, '/'); s; s = strchr(s + 1, '/')) {
        size_t n = (size_t)(s - path) + 1;

        if (strncmp(previous, path, n) != 0 &&
            !write_entry(p, arena_printf(p->arena, "%.*s", (int)n, path), NULL))
            return false;
    }
    return true;
}

static bool write_members(Pack *p, const Member *const *sorted, uint32_t n)
{
    const char *previous = "";

    for (uint32_t i = 0; i < n; i++) {
        if (!good_path(sorted[i]->path))
            return diag_error(p->d, E_PACK, NO_LOC,
                              "'%s' cannot be the path of an archive member (relative, at most %d "
                              "bytes)",
                              sorted[i]->path, MAX_PATH);
        if (strcmp(previous, sorted[i]->path) == 0)
            return diag_error(p->d, E_PACK, NO_LOC, "two members have the path '%s'", previous);
        if (!write_folders(p, previous, sorted[i]->path) ||
            !write_entry(p, sorted[i]->path, sorted[i]))
            return false;
        previous = sorted[i]->path;
    }
    return true;
}

bool pack_archive(Diags *d, Arena *a, PackFormat format, int64_t epoch, const Member *members,
                  uint32_t n, BytesList *out)
{
    Pieces         pieces = {.arena = a, .copied = strbuf(a)};
    const Member **sorted = NEW_ARRAY(a, const Member *, n ? n : 1);
    Pack           p = {d, a, NULL, format, epoch, &pieces};
    bool           ok;

    if (n > MAX_MEMBERS) /* which nothing could read again */
        return diag_error(d, E_PACK, NO_LOC, "more than %d members", MAX_MEMBERS);
    if (!(p.ar = archive_write_new()))
        return diag_error(d, E_PACK, NO_LOC, "no memory for the archive");
    for (uint32_t i = 0; i < n; i++)
        sorted[i] = &members[i];
    qsort(sorted, n, sizeof *sorted, by_path);
    if (set_format(p.ar, format) != ARCHIVE_OK ||
        archive_write_open(p.ar, &pieces, NULL, to_pieces, NULL) != ARCHIVE_OK) {
        diag_error(d, E_PACK, NO_LOC, "libarchive refuses the format: %s",
                   archive_error_string(p.ar) ? archive_error_string(p.ar) : "not built in");
        archive_write_free(p.ar);
        return false;
    }
    ok = write_members(&p, sorted, n);
    if (ok && archive_write_close(p.ar) != ARCHIVE_OK)
        ok = diag_error(d, E_PACK, NO_LOC, "cannot pack: %s", archive_error_string(p.ar));
    archive_write_free(p.ar);
    *out = all_pieces(&pieces);
    return ok;
}

/* ---- reading ------------------------------------------------------------------------------ */

typedef VEC(Member) Members;

bool pack_looks(Bytes f)
{
    static const struct {
        const char *magic;
        size_t      at, n;
    } rows[] = {{"\x1f\x8b", 0, 2},
                {"\x28\xb5\x2f\xfd", 0, 4},
                {"\xfd"
                 "7zXZ",
                 0, 6},
                {"PK\3\4", 0, 4},
                {"PK\5\6", 0, 4},
                {"ustar", 257, 5}};

    for (size_t i = 0; i < COUNT(rows); i++)
        if (f.n >= rows[i].at + rows[i].n &&
            memcmp(f.at + rows[i].at, rows[i].magic, rows[i].n) == 0)
            return true;
    return false;
}

bool pack_means(const char *path, Bytes file)
{
    return pack_looks(file) || pack_format(path) != PACK_NONE;
}

/* Names that some file systems cannot tell apart: errors before anything is written. */
static int by_folded_path(const void *a, const void *b)
{
    return strcasecmp(((const Member *)a)->path, ((const Member *)b)->path);
}

/* Also a file that is the folder of another: `a` and `a/b`. */
static bool check_names(Diags *d, Arena *a, Loc loc, const Members *list)
{
    Member *sorted = list->n ? DUP_ARRAY(a, list->at, list->n) : NULL;

    if (list->n)
        qsort(sorted, list->n, sizeof *sorted, by_folded_path);
    for (uint32_t i = 1; i < list->n; i++) {
        const char *one = sorted[i - 1].path, *two = sorted[i].path;

        if (strcmp(one, two) == 0)
            return diag_error(d, E_PACK, loc, "two members have the path '%s'", one);
        if (strcasecmp(one, two) == 0)
            return diag_error(d, E_PACK, loc, "the members '%s' and '%s' differ only in case", one,
                              two);
    }
    for (uint32_t i = 0; i < list->n; i++) {
        char *folder = arena_printf(a, "%s", list->at[i].path), *slash;

        while ((slash = strrchr(folder, '/')) != NULL) {
            Member key = {.path = folder};

            *slash = 0;
            if (bsearch(&key, sorted, list->n, sizeof *sorted, by_folded_path))
                return diag_error(d, E_PACK, loc, "member '%s' is a file and a folder", folder);
        }
    }
    return true;
}

static bool read_members(Diags *d, Arena *a, Loc loc, Unpack *u, Members *out)
{
    struct archive       *ar = u->archive;
    struct archive_entry *e;
    int                   rc;

    while ((rc = archive_read_next_header(ar, &e)) == ARCHIVE_OK) {
        const char *path = archive_entry_pathname(e);
        Member      m = {0};

        if (archive_entry_filetype(e) == AE_IFDIR)
            continue;
        if (archive_entry_filetype(e) != AE_IFREG || archive_entry_hardlink(e))
            return diag_error(d, E_PACK, loc, "member '%s' is not a regular file",
                              path ? path : "?");
        if (!path || !good_path(path))
            return diag_error(d, E_PACK, loc, "member '%s' has a path that is not allowed",
                              path ? path : "?");
        if (out->n >= MAX_MEMBERS)
            return diag_error(d, E_PACK, loc, "more than %d members", MAX_MEMBERS);
        switch (unpack_entry(u, a, e, &m.data)) {
        case UNPACK_DONE: break;
        case UNPACK_BROKEN: return diag_error(d, E_PACK, loc, "member '%s' is broken", path);
        case UNPACK_LARGE:
            return diag_error(d, E_PACK, loc,
                              "the content is larger than allowed, from member '%s' on", path);
        }
        m.path = arena_printf(a, "%s", path);
        m.executable = (archive_entry_perm(e) & 0100) != 0;
        m.mode = archive_entry_perm(e);
        m.time = archive_entry_mtime(e);
        m.owner = (uint32_t)archive_entry_uid(e);
        m.group = (uint32_t)archive_entry_gid(e);
        vec_push(a, out, m);
    }
    if (rc != ARCHIVE_EOF)
        return diag_error(d, E_PACK, loc, "not a readable archive: %s", archive_error_string(ar));
    return true;
}

/* manifest.json, at the top or in the one top folder; ours says `"schema": "tvmcc-archive/1"`. */
bool pack_is_known(Diags *d, Arena *a, const char *file, const Member *members, uint32_t n)
{
    static const char key[] = "\"schema\": \"tvmcc-archive/";

    for (uint32_t i = 0; i < n; i++) {
        const char *slash = strchr(members[i].path, '/'), *at;
        char       *end;
        long        version;

        if (strcmp(slash ? slash + 1 : members[i].path, "manifest.json") != 0)
            continue;
        at = strstr(arena_printf(a, "%.*s",
                                 (int)(members[i].data.n < INT_MAX ? members[i].data.n : 0),
                                 (const char *)members[i].data.at),
                    key);
        version = at ? strtol(at + strlen(key), &end, 10) : ARCHIVE_VERSION;
        if (version != ARCHIVE_VERSION)
            return diag_error(d, E_PACK, (Loc){.file = file},
                              "the archive's format has version %ld; this tvmcc knows version %d",
                              version, ARCHIVE_VERSION);
    }
    return true;
}

bool pack_read(Diags *d, Arena *a, const char *file, Bytes archive, uint64_t limit,
               Member **members, uint32_t *n)
{
    Loc             loc = {.file = file};
    Members         list = {0};
    struct archive *ar = archive_read_new();
    Unpack          u = {ar, archive, limit, .any_ratio = limit != PACK_LIMIT};
    bool            ok = false;

    if (!ar)
        return diag_error(d, E_PACK, loc, "no memory for the archive");
    archive_read_support_filter_gzip(ar);
    archive_read_support_filter_zstd(ar);
    archive_read_support_filter_xz(ar);
    archive_read_support_format_tar(ar);
    archive_read_support_format_zip(ar);
    if (!archive.n)
        diag_error(d, E_PACK, loc, "not an archive: the file is empty");
    else if (archive_read_open_memory(ar, archive.at, archive.n) == ARCHIVE_OK)
        ok = read_members(d, a, loc, &u, &list);
    else
        diag_error(d, E_PACK, loc, "not an archive: %s", archive_error_string(ar));
    archive_read_free(ar);
    ok = ok && check_names(d, a, loc, &list);
    *members = list.at;
    *n = list.n;
    return ok && pack_is_known(d, a, file, list.at, list.n);
}

const Member *pack_find(const Member *members, uint32_t n, const char *path)
{
    for (uint32_t i = 0; i < n; i++)
        if (strcmp(members[i].path, path) == 0)
            return &members[i];
    return NULL;
}
