/* diff.c: where two products differ first, said as exactly as their format allows.
 *
 * Nesting is followed from outside to inside: archive, library, object, section, symbol.  What
 * cannot be read as its format says is compared as bytes.  The text is one line:
 *
 *     net/lib/libnet.a: net.o: section '.text', 'net_run' + 0x12: 0x48, 0x49
 */
#include "packaging/packaging.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_NESTED = 256 << 20 };
enum { DEPTH = 4, LINE = 60 };

typedef struct {
    Diags  *quiet;
    Arena  *a;
    StrBuf *out;
    size_t  left; /* bytes that archives in archives may still unpack to */
} Diff;

static bool diff_any(Diff *d, Bytes x, Bytes y, int depth);

static bool same(Bytes x, Bytes y)
{
    return x.n == y.n && (x.n == 0 || memcmp(x.at, y.at, x.n) == 0);
}

static size_t first_difference(Bytes x, Bytes y)
{
    size_t n = x.n < y.n ? x.n : y.n, i = 0;

    while (i < n && x.at[i] == y.at[i])
        i++;
    return i;
}

/* "0x48, 0x49", or which one ends there. */
static void add_values(Diff *d, Bytes x, Bytes y, size_t at)
{
    if (at < x.n && at < y.n)
        str_printf(d->out, ": 0x%02x, 0x%02x", x.at[at], y.at[at]);
    else
        str_printf(d->out, ": the %s one ends there", at >= x.n ? "first" : "second");
}

/* ---- text ------------------------------------------------------------------------------------------ */

static bool is_text(Bytes b)
{
    size_t n = b.n < 4096 ? b.n : 4096;

    for (size_t i = 0; i < n; i++)
        if ((b.at[i] < 32 && b.at[i] != '\n' && b.at[i] != '\t' && b.at[i] != '\r') ||
            b.at[i] == 127)
            return false;
    return b.n > 0;
}

static void add_line(Diff *d, Bytes b, size_t at)
{
    const uint8_t *end = at < b.n ? memchr(b.at + at, '\n', b.n - at) : NULL;
    size_t         n = at >= b.n ? 0 : end ? (size_t)(end - b.at) - at : b.n - at;

    str_add_json(d->out, arena_printf(d->a, "%.*s%s", (int)(n < LINE ? n : LINE),
                                      n ? (const char *)b.at + at : "", n > LINE ? ".." : ""));
}

static void diff_text(Diff *d, Bytes x, Bytes y)
{
    size_t   at = first_difference(x, y), start = at;
    uint64_t line = 1;

    for (size_t i = 0; i < at; i++)
        line += x.at[i] == '\n';
    while (start && x.at[start - 1] != '\n')
        start--;
    str_printf(d->out, "line %" PRIu64 ": ", line);
    add_line(d, x, start);
    str_add(d->out, ", ");
    add_line(d, y, start);
}

static void diff_raw(Diff *d, Bytes x, Bytes y)
{
    size_t at = first_difference(x, y);

    if (is_text(x) && is_text(y)) {
        diff_text(d, x, y);
        return;
    }
    str_printf(d->out, "offset 0x%zx", at);
    add_values(d, x, y, at);
}

/* ---- objects --------------------------------------------------------------------------------------- */

/* The symbol that covers an offset of a section, or the last one before it. */
static const ObjectSymbol *symbol_at(const Object *f, uint32_t section, uint64_t offset)
{
    const ObjectSymbol *best = NULL;
    uint64_t            base = f->sections[section].address;

    for (uint32_t i = 1; i < f->nsymbols; i++) {
        const ObjectSymbol *s = &f->symbols[i];

        if (s->section == section && *s->name && !s->place && s->value >= base &&
            s->value - base <= offset && (!best || s->value > best->value))
            best = s;
    }
    return best;
}

static bool same_section(const ObjectSection *x, const ObjectSection *y)
{
    return strcmp(x->name, y->name) == 0 && x->type == y->type && x->flags == y->flags &&
           x->align == y->align;
}

static bool same_symbol(const ObjectSymbol *x, const ObjectSymbol *y)
{
    return strcmp(x->name, y->name) == 0 && x->value == y->value && x->size == y->size &&
           x->section == y->section && x->bind == y->bind && x->type == y->type &&
           x->hidden == y->hidden;
}

static void diff_section(Diff *d, const Object *fx, const Object *fy, uint32_t i)
{
    Bytes               x = fx->sections[i].data, y = fy->sections[i].data;
    size_t              at = first_difference(x, y);
    const ObjectSymbol *s = symbol_at(fx, i, at);

    str_printf(d->out, "section '%s', ", fx->sections[i].name);
    if (s) {
        uint64_t base = fx->sections[i].address;

        str_printf(d->out, "'%s' + 0x%" PRIx64, s->name, at - (s->value - base));
    } else {
        str_printf(d->out, "offset 0x%zx", at);
    }
    add_values(d, x, y, at);
}

/* Names of sections and symbols come last: where they differ, something else usually does too. */
static void diff_objects(Diff *d, const Object *x, const Object *y, Bytes bx, Bytes by)
{
    uint32_t n = x->nsections < y->nsections ? x->nsections : y->nsections;

    for (uint32_t i = 1; i < n; i++) {
        const ObjectSection *sx = &x->sections[i], *sy = &y->sections[i];

        if (!same_section(sx, sy)) {
            str_printf(d->out, "section %u is '%s' and '%s'", i, sx->name, sy->name);
            if (strcmp(sx->name, sy->name) == 0)
                str_add(d->out, ", of another type, with other flags or aligned otherwise");
            return;
        }
    }
    if (x->nsections != y->nsections) {
        str_printf(d->out, "%u sections and %u", x->nsections, y->nsections);
        return;
    }
    for (int tables = 0; tables < 2; tables++)
        for (uint32_t i = 1; i < n; i++) {
            bool is_table = !(x->sections[i].flags & SECTION_ALLOC);

            if (is_table == (tables == 1) && !same(x->sections[i].data, y->sections[i].data) &&
                (tables == 0 || (x->sections[i].kind != SECTION_SYMBOLS &&
                                 x->sections[i].kind != SECTION_STRINGS))) {
                diff_section(d, x, y, i);
                return;
            }
        }
    for (uint32_t i = 1; i < x->nsymbols && i < y->nsymbols; i++)
        if (!same_symbol(&x->symbols[i], &y->symbols[i])) {
            str_printf(d->out, "symbol %u is '%s' and '%s'", i, x->symbols[i].name,
                       y->symbols[i].name);
            return;
        }
    if (x->nsymbols != y->nsymbols)
        str_printf(d->out, "%u symbols and %u", x->nsymbols, y->nsymbols);
    else
        diff_raw(d, bx, by);
}

/* ---- members --------------------------------------------------------------------------------------- */

/* Hashes of other members: these differ first, but say nothing. */
static bool is_list(const char *path)
{
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;

    return strcmp(name, "SHA256SUMS") == 0 || strcmp(name, "manifest.json") == 0;
}

static bool diff_lists(Diff *d, const Member *x, uint32_t nx, const Member *y, uint32_t ny,
                       int depth)
{
    for (uint32_t i = 0; i < nx; i++)
        if (!pack_find(y, ny, x[i].path)) {
            str_printf(d->out, "only the first has '%s'", x[i].path);
            return false;
        }
    for (uint32_t i = 0; i < ny; i++)
        if (!pack_find(x, nx, y[i].path)) {
            str_printf(d->out, "only the second has '%s'", y[i].path);
            return false;
        }
    for (int lists = 0; lists < 2; lists++)
        for (uint32_t i = 0; i < nx; i++) {
            const Member *other = pack_find(y, ny, x[i].path);

            if (is_list(x[i].path) == (lists == 1) && !same(x[i].data, other->data)) {
                str_printf(d->out, "%s: ", x[i].path);
                return diff_any(d, x[i].data, other->data, depth + 1);
            }
        }
    for (uint32_t i = 0; i < nx; i++) {
        const Member *other = pack_find(y, ny, x[i].path);
        const struct {
            const char *what;
            int64_t     x, y;
        } rows[] = {{"mode", x[i].mode, other->mode},
                    {"time", x[i].time, other->time},
                    {"owner", x[i].owner, other->owner},
                    {"group", x[i].group, other->group}};

        for (size_t k = 0; k < COUNT(rows); k++)
            if (rows[k].x != rows[k].y) {
                str_printf(d->out,
                           k ? "%s: the %s is %" PRId64 " and %" PRId64
                             : "%s: the %s is %03" PRIo64 " and %03" PRIo64,
                           x[i].path, rows[k].what, rows[k].x, rows[k].y);
                return false;
            }
    }
    for (uint32_t i = 0; i < nx; i++)
        if (strcmp(x[i].path, y[i].path) != 0) {
            str_printf(d->out, "the order: member %u is '%s' and '%s'", i, x[i].path, y[i].path);
            return false;
        }
    return true;
}

/* Libraries may hold several members of one name: those are told apart by their place. */
static bool library_members(Diff *d, Bytes b, Member **m, uint32_t *n)
{
    if (!ar_members(d->quiet, d->a, "", b, m, n))
        return false;
    for (uint32_t i = 0; i < *n; i++)
        for (uint32_t k = 0; k < i; k++)
            if (strcmp((*m)[k].path, (*m)[i].path) == 0) {
                (*m)[i].path = arena_printf(d->a, "%s (member %u)", (*m)[i].path, i);
                break;
            }
    return true;
}

/* Archives in archives share what may be unpacked: else their ratios would multiply. */
static bool read_archive(Diff *d, Bytes b, int depth, Member **m, uint32_t *n)
{
    bool ok = pack_read(d->quiet, d->a, "", b, depth ? d->left : PACK_LIMIT, m, n);

    for (uint32_t i = 0; depth && i < *n; i++)
        d->left -= (*m)[i].data.n;
    if (depth && !ok)
        d->left = 0;
    return ok;
}

static bool diff_any(Diff *d, Bytes x, Bytes y, int depth)
{
    Member  *mx, *my;
    uint32_t nx, ny;
    Object   fx, fy;

    if (same(x, y))
        return true;
    if (depth < DEPTH && pack_looks(x) && pack_looks(y) && read_archive(d, x, depth, &mx, &nx) &&
        read_archive(d, y, depth, &my, &ny)) {
        if (!diff_lists(d, mx, nx, my, ny, depth))
            return false;
        str_add(d->out, "all members are equal, but not the file around them: ");
    } else if (depth < DEPTH && ar_is_library(x) && ar_is_library(y) &&
               library_members(d, x, &mx, &nx) && library_members(d, y, &my, &ny)) {
        if (!diff_lists(d, mx, nx, my, ny, depth))
            return false;
        str_add(d->out, "all members are equal, but not the library around them: ");
    } else if (object_read(d->quiet, d->a, "", x, &fx) && object_read(d->quiet, d->a, "", y, &fy)) {
        diff_objects(d, &fx, &fy, x, y);
        return false;
    }
    diff_raw(d, x, y);
    return false;
}

bool diff_bytes(Arena *a, Bytes x, Bytes y, StrBuf *out)
{
    Diff diff = {diags_new(a), a, out, MAX_NESTED};

    return diff_any(&diff, x, y, 0);
}

static int by_path(const void *a, const void *b)
{
    return strcmp(((const Member *)a)->path, ((const Member *)b)->path);
}

Member *members_plain(Arena *a, const Member *m, uint32_t n)
{
    Member *copy = n ? DUP_ARRAY(a, m, n) : NULL;
    size_t  top = n ? strcspn(m[0].path, "/") : 0;

    for (uint32_t i = 0; i < n && top; i++)
        if (strncmp(m[i].path, m[0].path, top + 1) != 0 || m[0].path[top] != '/')
            top = 0;
    for (uint32_t i = 0; i < n; i++) {
        copy[i].path += top ? top + 1 : 0;
        copy[i].mode = copy[i].executable ? 0755 : 0644;
        copy[i].time = 0;
        copy[i].owner = copy[i].group = 0;
    }
    if (n)
        qsort(copy, n, sizeof *copy, by_path);
    return copy;
}

bool diff_members(Arena *a, const Member *x, uint32_t nx, const Member *y, uint32_t ny, StrBuf *out)
{
    Diff diff = {diags_new(a), a, out, MAX_NESTED};

    return diff_lists(&diff, members_plain(a, x, nx), nx, members_plain(a, y, ny), ny, 0);
}
