/* Zip containers by their directory, for formats whose weights are entries: what is stored is a
 * view of the file, which libarchive would copy.
 *
 *     local header, name, extra, data | local header .. | directory | (zip64 end, locator) | end
 *
 * The end is looked for from behind, and the directory says where the entries are; of a local
 * header only the lengths of its name and extra count.  Nothing is trusted: each offset and size is
 * checked against the file before it is followed. */
#include "formats/formats.h"

#include <string.h>
#include <zlib.h>

enum { LOCAL = 0x04034b50, ENTRY = 0x02014b50, END = 0x06054b50, END64 = 0x06064b50 };
enum { LOCATOR64 = 0x07064b50, END_BYTES = 22, LOCATOR_BYTES = 20, END64_BYTES = 56 };
enum { ENTRY_BYTES = 46, LOCAL_BYTES = 30, STORED = 0, DEFLATED = 8 };

/* Little-endian; what lies behind the end of the file is 0. */
static uint64_t get(Bytes file, uint64_t at, uint32_t bytes)
{
    uint64_t v = 0;

    if (at > file.n || bytes > file.n - at)
        return 0;
    for (uint32_t i = 0; i < bytes; i++)
        v |= (uint64_t)file.at[at + i] << (8 * i);
    return v;
}

/* The end of the directory, behind which there is only its comment; UINT64_MAX: there is none. */
static uint64_t find_end(Bytes file)
{
    for (uint64_t back = END_BYTES; back <= file.n && back <= END_BYTES + 0xffff; back++)
        if (get(file, file.n - back, 4) == END &&
            get(file, file.n - back + 20, 2) == back - END_BYTES)
            return file.n - back;
    return UINT64_MAX;
}

bool zip_open(Bytes file, ZipDir *out)
{
    uint64_t end = find_end(file), size, far;

    *out = (ZipDir){.file = file};
    if (end == UINT64_MAX)
        return false;
    out->left = get(file, end + 10, 2);
    size = get(file, end + 12, 4);
    out->at = get(file, end + 16, 4);
    if (end >= LOCATOR_BYTES && get(file, end - LOCATOR_BYTES, 4) == LOCATOR64) {
        far = get(file, end - LOCATOR_BYTES + 8, 8);
        if (far > file.n || file.n - far < END64_BYTES || get(file, far, 4) != END64)
            return false;
        out->left = get(file, far + 32, 8);
        size = get(file, far + 40, 8);
        out->at = get(file, far + 48, 8);
    }
    if (out->at > file.n || size > file.n - out->at)
        return false;
    out->end = out->at + size;
    return true;
}

/* What does not fit into 32 bits stands in field 1 of the extra: size, packed size, place, each
 * only where it is needed. */
static bool large_sizes(Bytes file, uint64_t at, uint64_t n, uint64_t *v[3])
{
    uint64_t end = at + n;

    while (end - at >= 4) {
        uint64_t id = get(file, at, 2), len = get(file, at + 2, 2);

        at += 4;
        if (len > end - at)
            return false;
        for (uint32_t i = 0; id == 1 && i < 3; i++) {
            if (*v[i] != 0xffffffffu)
                continue;
            if (len < 8)
                return false;
            *v[i] = get(file, at, 8);
            at += 8;
            len -= 8;
        }
        at += len;
    }
    return true;
}

bool zip_next(ZipDir *d, ZipMember *out)
{
    uint64_t name, extra, comment, packed, place, left = d->end - d->at;

    if (d->left == 0 || d->bad)
        return false;
    d->bad = true; /* until it is known to be good */
    if (left < ENTRY_BYTES || get(d->file, d->at, 4) != ENTRY)
        return false;
    name = get(d->file, d->at + 28, 2);
    extra = get(d->file, d->at + 30, 2);
    comment = get(d->file, d->at + 32, 2);
    if (left - ENTRY_BYTES < name + extra + comment)
        return false;
    out->encrypted = get(d->file, d->at + 8, 2) & 1;
    out->method = (uint32_t)get(d->file, d->at + 10, 2);
    out->crc = (uint32_t)get(d->file, d->at + 16, 4);
    packed = get(d->file, d->at + 20, 4);
    out->size = get(d->file, d->at + 24, 4);
    place = get(d->file, d->at + 42, 4);
    out->name = (Bytes){d->file.at + d->at + ENTRY_BYTES, name};
    if (!large_sizes(d->file, d->at + ENTRY_BYTES + name, extra,
                     (uint64_t *[]){&out->size, &packed, &place}))
        return false;
    if (place > d->file.n || d->file.n - place < LOCAL_BYTES || get(d->file, place, 4) != LOCAL)
        return false;
    place += LOCAL_BYTES + get(d->file, place + 26, 2) + get(d->file, place + 28, 2);
    if (place > d->file.n || packed > d->file.n - place)
        return false;
    out->packed = (Bytes){d->file.at + place, packed};
    d->at += ENTRY_BYTES + name + extra + comment;
    d->left--;
    d->bad = false;
    return true;
}

static bool inflate_all(const ZipMember *m, uint8_t *at)
{
    z_stream z = {.next_in = (Bytef *)(uintptr_t)m->packed.at, .next_out = at};
    uint64_t in = m->packed.n, out = m->size;
    int      rc = Z_OK;

    if (inflateInit2(&z, -MAX_WBITS) != Z_OK)
        return false;
    while (rc == Z_OK && (z.avail_in || in || z.avail_out || out)) {
        if (!z.avail_in) {
            z.avail_in = (uInt)(in < 1u << 30 ? in : 1u << 30);
            in -= z.avail_in;
        }
        if (!z.avail_out) {
            z.avail_out = (uInt)(out < 1u << 30 ? out : 1u << 30);
            out -= z.avail_out;
        }
        rc = inflate(&z, Z_NO_FLUSH);
    }
    inflateEnd(&z);
    WRITTEN_BY_LIBRARY(at, (size_t)m->size);
    return rc == Z_STREAM_END && !z.avail_out && !out;
}

bool zip_data(Diags *d, Arena *a, Loc loc, const ZipMember *m, Bytes *out)
{
    int      n = m->name.n < 200 ? (int)m->name.n : 200;
    char    *name = (char *)m->name.at;
    uint8_t *at;

    if (m->encrypted)
        return diag_error(d, E_UNSUPPORTED, loc, "entry '%.*s' of the zip is encrypted", n, name);
    if (m->method == STORED && m->size == m->packed.n) {
        *out = m->packed;
        return true;
    }
    if (m->method != DEFLATED)
        return diag_error(d, E_PARSE_MODEL, loc,
                          "entry '%.*s' of the zip is packed in a way (%u) "
                          "that is not known",
                          n, name, m->method);
    if (m->size > UNPACK_FREE && m->size / UNPACK_RATIO > m->packed.n)
        return diag_error(d, E_PARSE_MODEL, loc, "entry '%.*s' of the zip is too large", n, name);
    at = arena_alloc(a, m->size ? m->size : 1);
    if (!inflate_all(m, at) || crc32_z(crc32_z(0, NULL, 0), at, m->size) != m->crc)
        return diag_error(d, E_PARSE_MODEL, loc, "entry '%.*s' of the zip: broken data", n, name);
    *out = (Bytes){at, m->size};
    return true;
}
