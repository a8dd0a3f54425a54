/* ar.c: static libraries: written in the GNU format, read in the GNU and BSD formats.
 *
 * A symbol index, a table of long names, then the members, each behind a 60-byte text header. Time,
 * owner and group are 0 and the order is the caller's, so equal members give equal bytes; the ar
 * of a machine may put other things there.
 */
#include "objects/objects.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { HEADER = 60, SHORT_NAME = 15 };

typedef VEC(const char *) Names;
typedef VEC(uint32_t) Owners;

/* Names of global definitions, and the member each is in. */
static bool collect(Diags *d, Arena *a, const Member *members, uint32_t n, Names *names,
                    Owners *owners)
{
    for (uint32_t i = 0; i < n; i++) {
        Object f;

        if (!object_read(d, a, members[i].path, members[i].data, &f))
            return false;
        for (uint32_t k = 1; k < f.nsymbols; k++)
            if (f.symbols[k].bind != SYMBOL_LOCAL && f.symbols[k].section != 0) {
                vec_push(a, names, f.symbols[k].name);
                vec_push(a, owners, i);
            }
    }
    return true;
}

static void add_header(StrBuf *s, const char *name, uint64_t bytes, bool member)
{
    char text[HEADER + 1];

    if (member)
        snprintf(text, sizeof text, "%-16s%-12d%-6d%-6d%-8s%-10" PRIu64 "`\n", name, 0, 0, 0, "644",
                 bytes);
    else /* tables carry no owner or mode */
        snprintf(text, sizeof text, "%-16s%-12s%-6s%-6s%-8s%-10" PRIu64 "`\n", name,
                 name[1] ? "" : "0", name[1] ? "" : "0", name[1] ? "" : "0", name[1] ? "" : "0",
                 bytes);
    str_addn(s, text, HEADER);
}

static void add_u32(StrBuf *s, uint64_t value)
{
    for (int shift = 24; shift >= 0; shift -= 8)
        str_addc(s, (char)(value >> shift));
}

static const char *file_name(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash ? slash + 1 : path;
}

static uint64_t even(uint64_t n)
{
    return n + (n & 1);
}

/* Everything before the members; the offsets of these are in `offsets`. */
static void add_tables(StrBuf *s, const Names *names, const Owners *owners, const uint64_t *offsets,
                       uint64_t index, const StrBuf *longs)
{
    str_addn(s, "!<arch>\n", 8);
    add_header(s, "/", even(index), false);
    add_u32(s, names->n);
    for (uint32_t i = 0; i < names->n; i++)
        add_u32(s, offsets[owners->at[i]]);
    for (uint32_t i = 0; i < names->n; i++)
        str_addn(s, names->at[i], strlen(names->at[i]) + 1);
    if (index & 1)
        str_addc(s, 0);
    if (longs->n) {
        add_header(s, "//", longs->n, false);
        str_addn(s, longs->at, longs->n);
    }
}

/* Header and data of all members at `p`. */
static void put_members(Arena *a, uint8_t *p, const Member *members, uint32_t n)
{
    uint64_t name_at = 0;

    for (uint32_t i = 0; i < n; i++) {
        const char *name = file_name(members[i].path);
        bool        is_long = strlen(name) > SHORT_NAME;
        StrBuf      s = strbuf(a);

        add_header(&s,
                   is_long ? arena_printf(a, "/%" PRIu64, name_at) : arena_printf(a, "%s/", name),
                   members[i].data.n, true);
        name_at += is_long ? strlen(name) + 2 : 0;
        memcpy(p, s.at, HEADER);
        if (members[i].data.n)
            memcpy(p + HEADER, members[i].data.at, members[i].data.n);
        p += HEADER + members[i].data.n;
        if (members[i].data.n & 1)
            *p++ = '\n';
    }
}

bool ar_library(Diags *d, Arena *a, const Member *members, uint32_t n, Bytes *out)
{
    Names     names = {0};
    Owners    owners = {0};
    StrBuf    tables = strbuf(a), longs = strbuf(a);
    uint64_t *offsets = NEW_ARRAY(a, uint64_t, n ? n : 1), index = 4, at;
    uint8_t  *p;

    if (!collect(d, a, members, n, &names, &owners))
        return false;
    for (uint32_t i = 0; i < names.n; i++)
        index += 4 + strlen(names.at[i]) + 1;
    for (uint32_t i = 0; i < n; i++)
        if (strlen(file_name(members[i].path)) > SHORT_NAME)
            str_printf(&longs, "%s/\n", file_name(members[i].path));
    if (longs.n & 1)
        str_addc(&longs, '\n');
    at = 8 + HEADER + even(index) + (longs.n ? HEADER + longs.n : 0);
    for (uint32_t i = 0; i < n; i++) {
        offsets[i] = at;
        at += HEADER + even(members[i].data.n);
    }
    if (at > UINT32_MAX)
        return diag_error(d, E_PACK, NO_LOC, "a static library cannot hold more than 4 GiB");
    add_tables(&tables, &names, &owners, offsets, index, &longs);
    p = arena_alloc(a, at); /* at once: libraries with weights are large */
    memcpy(p, tables.at, tables.n);
    put_members(a, p + tables.n, members, n);
    *out = (Bytes){p, at};
    return true;
}

/* ---- reading ------------------------------------------------------------------------------ */

bool ar_is_library(Bytes file)
{
    return file.n >= 8 && memcmp(file.at, "!<arch>\n", 8) == 0;
}

/* A decimal number of a header field; false if it is none. */
static bool field_number(const uint8_t *at, size_t width, uint64_t *out)
{
    size_t i = 0;

    for (*out = 0; i < width && at[i] >= '0' && at[i] <= '9'; i++)
        *out = *out * 10 + (uint64_t)(at[i] - '0');
    return i > 0 && (i == width || at[i] == ' ');
}

/* The name of the member at `header`; BSD names stand before the data, which shrinks. */
static const char *member_name(Arena *a, const uint8_t *header, Bytes longs, Bytes *data)
{
    uint64_t n;
    size_t   len = 16;

    if (memcmp(header, "#1/", 3) == 0) {
        const char *name;

        if (!field_number(header + 3, 13, &n) || n > data->n)
            return NULL;
        name = arena_printf(a, "%.*s", (int)(n < 4096 ? n : 4096), (const char *)data->at);
        data->at += n;
        data->n -= n;
        return name;
    }
    if (header[0] == '/' && field_number(header + 1, 15, &n)) {
        const uint8_t *end;

        if (n >= longs.n || !(end = memchr(longs.at + n, '\n', longs.n - n)))
            return NULL;
        if (end > longs.at + n && end[-1] == '/')
            end--;
        return arena_printf(a, "%.*s", (int)(end - longs.at - n), (const char *)longs.at + n);
    }
    while (len && header[len - 1] == ' ')
        len--;
    if (len > 1 && header[len - 1] == '/' && header[0] != '/')
        len--;
    return arena_printf(a, "%.*s", (int)len, (const char *)header);
}

static bool is_table(const char *name)
{
    return strcmp(name, "/") == 0 || strcmp(name, "//") == 0 || strcmp(name, "/SYM64/") == 0 ||
           str_starts(name, "__.SYMDEF");
}

bool ar_members(Diags *d, Arena *a, const char *file, Bytes library, Member **members, uint32_t *n)
{
    VEC(Member) list = {0};
    Bytes    longs = {0};
    uint64_t at = 8;
    bool     ok = ar_is_library(library);

    while (ok && at < library.n) {
        const uint8_t *h = library.at + at;
        const char    *name;
        uint64_t       size;
        Bytes          data;

        ok = library.n - at >= HEADER && h[58] == '`' && h[59] == '\n' &&
             field_number(h + 48, 10, &size) && size <= library.n - at - HEADER;
        if (!ok)
            break;
        data = (Bytes){h + HEADER, size};
        at += HEADER + even(size);
        name = member_name(a, h, longs, &data);
        ok = name != NULL;
        if (ok && strcmp(name, "//") == 0)
            longs = data;
        else if (ok && !is_table(name))
            vec_push(a, &list, ((Member){.path = name, .data = data}));
    }
    *members = list.at;
    *n = list.n;
    return ok || diag_error(d, E_PACK, (Loc){.file = file}, "not a valid static library");
}
