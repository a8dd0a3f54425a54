/* Zip containers: .npz, .keras, .pt, .mlpackage.
 *
 * Reading goes through libarchive, which knows zip64, data descriptors and deflate; what it unpacks
 * is bounded by the caller's limit.  Writing is our own, as the header times that libarchive writes
 * depend on the time zone: entries are stored, in the caller's order, dated 1980-01-01, with data
 * aligned to 64 bytes by an extra field, so that a reader may map them. */
#include "formats/formats.h"

#include <archive.h>
#include <archive_entry.h>
#include <string.h>
#include <zlib.h>

static bool read_entry(Diags *d, Arena *a, Loc loc, Unpack *u, struct archive_entry *e,
                       const char *name, ZipEntry *out)
{
    out->name = name;
    switch (unpack_entry(u, a, e, &out->data)) {
    case UNPACK_DONE: return true;
    case UNPACK_BROKEN:
        return diag_error(d, E_PARSE_MODEL, loc, "entry '%s' of the zip: %s", name,
                          archive_error_string(u->archive) ? archive_error_string(u->archive)
                                                           : "broken data");
    case UNPACK_LARGE: break;
    }
    diag_error(d, E_PARSE_MODEL, loc, "entry '%s' of the zip is too large", name);
    if (!u->any_ratio && u->limit > UNPACK_FREE)
        diag_hint(d, "store it uncompressed: more than %d times the file is not unpacked",
                  UNPACK_RATIO);
    return false;
}

static bool read_all(Diags *d, Arena *a, Loc loc, struct archive *z, Bytes file, uint64_t limit,
                     uint32_t *n, ZipEntry **out)
{
    /* libarchive takes no zip without entries: nothing but the end of the directory. */
    static const uint8_t  none[20] = {'P', 'K', 5, 6};
    struct archive_entry *e;
    VEC(ZipEntry) v = {0};
    Unpack u = {.archive = z, .file = file, .limit = limit};
    int    rc;

    *n = 0;
    *out = NULL;
    if (file.n >= 22 && !memcmp(file.at, none, sizeof none))
        return true;
    if (archive_read_support_format_zip_seekable(z) != ARCHIVE_OK ||
        archive_read_open_memory(z, file.at, file.n) != ARCHIVE_OK)
        return diag_error(d, E_PARSE_MODEL, loc, "not a zip file");
    while ((rc = archive_read_next_header(z, &e)) == ARCHIVE_OK || rc == ARCHIVE_WARN) {
        const char *name = archive_entry_pathname_utf8(e);
        ZipEntry    entry;

        if (!name)
            name = archive_entry_pathname(e);
        if (!name)
            return diag_error(d, E_PARSE_MODEL, loc, "an entry of the zip has no readable name");
        if (archive_entry_filetype(e) == AE_IFDIR)
            continue;
        name = arena_dup(a, name, strlen(name) + 1);
        if (!read_entry(d, a, loc, &u, e, name, &entry))
            return false;
        vec_push(a, &v, entry);
    }
    if (rc != ARCHIVE_EOF)
        return diag_error(d, E_PARSE_MODEL, loc, "not a zip file: %s",
                          archive_error_string(z) ? archive_error_string(z) : "broken");
    *n = v.n;
    *out = v.at;
    return true;
}

bool zip_read(Diags *d, Arena *a, Loc loc, Bytes file, uint64_t limit, uint32_t *n, ZipEntry **out)
{
    struct archive *z = archive_read_new();
    bool            ok = z && read_all(d, a, loc, z, file, limit, n, out);

    if (z)
        archive_read_free(z);
    return ok;
}

/* ---- writing ---------------------------------------------------------------------------------- */

static void put(StrBuf *s, uint64_t v, int bytes)
{
    for (int i = 0; i < bytes; i++)
        str_addc(s, (char)(v >> (8 * i)));
}

static uint32_t crc_of(Bytes b)
{
    uLong  c = crc32(0, NULL, 0);
    size_t at = 0;

    while (at < b.n) {
        size_t n = b.n - at < (1u << 30) ? b.n - at : 1u << 30;

        c = crc32(c, b.at + at, (uInt)n);
        at += n;
    }
    return (uint32_t)c;
}

/* The fields that local header and directory share, from "version needed" to the extra's length. */
static void put_common(StrBuf *s, const ZipEntry *e, uint32_t crc, size_t extra)
{
    bool   big = e->data.n >= 0xffffffffu;
    size_t size = big ? 0xffffffffu : e->data.n;

    put(s, big ? 45 : 20, 2);
    put(s, 0x0800, 2); /* names are UTF-8 */
    put(s, 0, 2);      /* stored */
    put(s, 0, 2);
    put(s, 0x21, 2); /* 1980-01-01 */
    put(s, crc, 4);
    put(s, size, 4);
    put(s, size, 4);
    put(s, strlen(e->name), 2);
    put(s, extra, 2);
}

Bytes zip_write(Arena *a, uint32_t n, const ZipEntry *entries)
{
    StrBuf    s = strbuf(a);
    uint64_t *at = NEW_ARRAY(a, uint64_t, n + 1);
    uint32_t *crc = NEW_ARRAY(a, uint32_t, n + 1);
    uint64_t  dir, end;

    for (uint32_t i = 0; i < n; i++) {
        const ZipEntry *e = &entries[i];
        bool            big = e->data.n >= 0xffffffffu;
        size_t          head = s.n + 30 + strlen(e->name) + (big ? 20 : 0) + 4;
        size_t          pad = (64 - head % 64) % 64;

        at[i] = s.n;
        crc[i] = crc_of(e->data);
        put(&s, 0x04034b50, 4);
        put_common(&s, e, crc[i], (big ? 20 : 0) + 4 + pad);
        str_add(&s, e->name);
        if (big) {
            put(&s, 1, 2);
            put(&s, 16, 2);
            put(&s, e->data.n, 8);
            put(&s, e->data.n, 8);
        }
        put(&s, 0xd935, 2); /* the tag that others use for alignment */
        put(&s, pad, 2);
        for (size_t k = 0; k < pad; k++)
            str_addc(&s, 0);
        str_addn(&s, (const char *)e->data.at, e->data.n);
    }
    dir = s.n;
    for (uint32_t i = 0; i < n; i++) {
        const ZipEntry *e = &entries[i];
        bool            big = e->data.n >= 0xffffffffu, far = at[i] >= 0xffffffffu;
        size_t          extra = big || far ? 4 + (big ? 16u : 0u) + (far ? 8u : 0u) : 0;

        put(&s, 0x02014b50, 4);
        put(&s, 45, 2);
        put_common(&s, e, crc[i], extra);
        put(&s, 0, 8);
        put(&s, 0, 2);
        put(&s, far ? 0xffffffffu : at[i], 4);
        str_add(&s, e->name);
        if (extra) {
            put(&s, 1, 2);
            put(&s, extra - 4, 2);
            if (big) {
                put(&s, e->data.n, 8);
                put(&s, e->data.n, 8);
            }
            if (far)
                put(&s, at[i], 8);
        }
    }
    end = s.n;
    if (n >= 0xffff || dir >= 0xffffffffu) {
        put(&s, 0x06064b50, 4);
        put(&s, 44, 8);
        put(&s, 45, 2);
        put(&s, 45, 2);
        put(&s, 0, 8);
        put(&s, n, 8);
        put(&s, n, 8);
        put(&s, end - dir, 8);
        put(&s, dir, 8);
        put(&s, 0x07064b50, 4);
        put(&s, 0, 4);
        put(&s, end, 8);
        put(&s, 1, 4);
    }
    put(&s, 0x06054b50, 4);
    put(&s, 0, 4);
    put(&s, n >= 0xffff ? 0xffff : n, 2);
    put(&s, n >= 0xffff ? 0xffff : n, 2);
    put(&s, end - dir >= 0xffffffffu ? 0xffffffffu : end - dir, 4);
    put(&s, dir >= 0xffffffffu ? 0xffffffffu : dir, 4);
    put(&s, 0, 2);
    return (Bytes){(const uint8_t *)s.at, s.n};
}
