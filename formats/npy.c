/* NumPy's arrays: .npy, and .npz (a zip of .npy entries).
 *
 * A .npy file is "\x93NUMPY", a version, a length, and a Python dictionary as text:
 *     {'descr': '<f4', 'fortran_order': False, 'shape': (1, 3, 224, 224), }
 * which is read here by a small scanner that accepts exactly that form, in any order of keys.
 * Strings, 'U5' of code points and 'S12' of bytes, become UTF-8 (text.c); structured arrays and
 * those of Python's objects are refused.  Types that NumPy itself does not have are 'V1' and 'V2',
 * as ml_dtypes writes them; elements of 4 and 2 bits take a byte each. */
#include "formats/formats.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

typedef struct {
    const char *at, *end;
    bool        bad;
} Scan;

static void skip_space(Scan *s)
{
    while (s->at < s->end && (*s->at == ' ' || *s->at == '\t' || *s->at == '\n'))
        s->at++;
}

static bool accept(Scan *s, char ch)
{
    skip_space(s);
    if (s->at < s->end && *s->at == ch) {
        s->at++;
        return true;
    }
    return false;
}

static void expect(Scan *s, char ch)
{
    if (!accept(s, ch))
        s->bad = true;
}

/* A quoted text without escapes. */
static Bytes scan_text(Scan *s)
{
    const char *from;
    char        quote;

    skip_space(s);
    if (s->at == s->end || (*s->at != '\'' && *s->at != '"')) {
        s->bad = true;
        return (Bytes){0};
    }
    quote = *s->at++;
    from = s->at;
    while (s->at < s->end && *s->at != quote && *s->at != '\\')
        s->at++;
    if (s->at == s->end || *s->at != quote) {
        s->bad = true;
        return (Bytes){0};
    }
    return (Bytes){(const uint8_t *)from, (size_t)(s->at++ - from)};
}

static bool scan_bool(Scan *s)
{
    skip_space(s);
    if (s->end - s->at >= 4 && !memcmp(s->at, "True", 4)) {
        s->at += 4;
        return true;
    }
    if (s->end - s->at >= 5 && !memcmp(s->at, "False", 5))
        s->at += 5;
    else
        s->bad = true;
    return false;
}

static int64_t scan_int(Scan *s)
{
    int64_t v = 0;

    skip_space(s);
    if (s->at == s->end || !isdigit((unsigned char)*s->at))
        s->bad = true;
    while (s->at < s->end && isdigit((unsigned char)*s->at))
        if (!checked_mul(v, 10, &v) || !checked_add(v, *s->at++ - '0', &v)) {
            s->bad = true;
            return 0;
        }
    return v;
}

static bool text_is(Bytes b, const char *text)
{
    return b.n == strlen(text) && (b.n == 0 || !memcmp(b.at, text, b.n));
}

static void scan_shape(Scan *s, int64_t dims[ARRAY_MAX_DIMS], uint32_t *ndim)
{
    *ndim = 0;
    expect(s, '(');
    while (!s->bad && !accept(s, ')')) {
        if (*ndim == ARRAY_MAX_DIMS) {
            s->bad = true;
            return;
        }
        dims[(*ndim)++] = scan_int(s);
        if (!accept(s, ',')) {
            expect(s, ')');
            return;
        }
    }
}

/* The type of an array of strings, as the header has it. */
typedef struct {
    char    kind; /* U, S; 0: numbers */
    int64_t cells;
} Text;

/* "<U5" */
static bool parse_text(Bytes b, bool *big, Text *t)
{
    Scan s;

    if (b.n < 3 || !strchr("<>|=", (char)b.at[0]) || (b.at[1] != 'U' && b.at[1] != 'S'))
        return false;
    s = (Scan){(const char *)b.at + 2, (const char *)b.at + b.n, false};
    *big = b.at[0] == '>';
    *t = (Text){(char)b.at[1], scan_int(&s)};
    return !s.bad && s.at == s.end && t->cells <= INT32_MAX;
}

/* "<f4": byte order, kind, size. */
static bool parse_descr(Bytes b, bool *big, Array *v)
{
    uint32_t size;

    if (b.n != 3 || !strchr("<>|=", (char)b.at[0]) || b.at[2] < '1' || b.at[2] > '8')
        return false;
    *big = b.at[0] == '>';
    size = (uint32_t)(b.at[2] - '0');
    v->bits = (uint8_t)(size * 8);
    switch ((char)b.at[1]) {
    case 'f': v->code = TVMCC_FLOAT; return size == 2 || size == 4 || size == 8;
    case 'b': v->code = TVMCC_BOOL; return size == 1;
    case 'V': v->code = ARRAY_OPAQUE; return size == 1 || size == 2;
    case 'i': v->code = TVMCC_INT; break;
    case 'u': v->code = TVMCC_UINT; break;
    default: return false;
    }
    return size == 1 || size == 2 || size == 4 || size == 8;
}

static char kind_of(uint8_t code)
{
    switch (code) {
    case TVMCC_FLOAT: return 'f';
    case TVMCC_BOOL: return 'b';
    case TVMCC_INT: return 'i';
    case TVMCC_UINT: return 'u';
    }
    return 'V';
}

/* The same cells, of so many bytes, in row-major order and little-endian. */
static Bytes reorder(Arena *a, const Array *v, size_t size, bool fortran, bool big)
{
    size_t   n = v->data.n / size;
    uint8_t *out = arena_alloc(a, v->data.n ? v->data.n : 1);
    int64_t  idx[ARRAY_MAX_DIMS] = {0};

    for (size_t i = 0; i < n; i++) {
        size_t from = i;

        if (fortran) {
            from = 0;
            for (uint32_t k = v->ndim; k-- > 0;)
                from = from * (size_t)v->dims[k] + (size_t)idx[k];
            for (uint32_t k = v->ndim; k-- > 0;) {
                if (++idx[k] < v->dims[k])
                    break;
                idx[k] = 0;
            }
        }
        for (uint32_t b = 0; b < size; b++)
            out[i * size + b] = v->data.at[from * size + (big ? size - 1 - b : b)];
    }
    return (Bytes){out, v->data.n};
}

/* The dictionary; false if it is not of the known form. */
static bool read_header(Scan *s, Array *v, int64_t dims[ARRAY_MAX_DIMS], bool *fortran, bool *big,
                        Text *text)
{
    bool  has_descr = false, has_order = false, has_shape = false;
    Bytes descr;

    expect(s, '{');
    while (!s->bad && !accept(s, '}')) {
        Bytes key = scan_text(s);

        expect(s, ':');
        if (text_is(key, "descr"))
            descr = scan_text(s),
            has_descr = parse_text(descr, big, text) || parse_descr(descr, big, v);
        else if (text_is(key, "fortran_order"))
            *fortran = scan_bool(s), has_order = true;
        else if (text_is(key, "shape"))
            scan_shape(s, dims, &v->ndim), has_shape = true;
        else
            return false;
        if (!accept(s, ',')) {
            expect(s, '}');
            break;
        }
    }
    return !s->bad && has_descr && has_order && has_shape;
}

static uint32_t code_point(const uint8_t *p, bool big)
{
    return big ? (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3]
               : (uint32_t)p[3] << 24 | (uint32_t)p[2] << 16 | (uint32_t)p[1] << 8 | p[0];
}

/* Cells of code points or bytes, with zeros behind each string, as UTF-8. */
static bool read_text(Diags *d, Arena *a, Loc loc, Text t, bool big, uint64_t n, Array *v)
{
    Bytes *strings = NEW_ARRAY(a, Bytes, (size_t)n + 1);
    size_t unit = t.kind == 'U' ? 4 : 1, room = (size_t)t.cells * unit;

    for (size_t i = 0; i < n; i++) {
        const uint8_t *at = v->data.at + i * room;
        size_t         cells = (size_t)t.cells;
        StrBuf         s = strbuf(a);

        while (cells && !memcmp(at + (cells - 1) * unit, "\0\0\0\0", unit))
            cells--;
        strings[i] = (Bytes){at, cells};
        if (unit == 1)
            continue;
        for (size_t k = 0; k < cells; k++) {
            uint32_t point = code_point(at + k * 4, big);

            if (point > 0x10ffff)
                return diag_error(d, E_PARSE_MODEL, loc, "string %zu has a code point %u", i,
                                  point);
            utf8_add(&s, point);
        }
        strings[i] = (Bytes){(const uint8_t *)s.at, s.n};
    }
    return array_of_text(d, a, loc, (size_t)n, strings, v->ndim, v->dims, v);
}

bool npy_read(Diags *d, Arena *a, Loc loc, Bytes file, Array *out)
{
    Reader   r = reader(file);
    Bytes    magic = read_bytes(&r, 6), head;
    uint8_t  major = read_u8(&r);
    int64_t  dims[ARRAY_MAX_DIMS];
    bool     fortran = false, big = false;
    uint64_t n = 1, bytes, size;
    Text     text = {0};
    Scan     s;

    *out = (Array){0};
    read_u8(&r);
    head = read_bytes(&r, major == 1 ? read_u16(&r) : read_u32(&r));
    if (r.bad || memcmp(magic.at, "\x93NUMPY", 6) || major < 1 || major > 3)
        return diag_error(d, E_PARSE_MODEL, loc, "not a NumPy array");
    s = (Scan){(const char *)head.at, (const char *)head.at + head.n, false};
    if (!read_header(&s, out, dims, &fortran, &big, &text)) {
        diag_error(d, E_PARSE_MODEL, loc,
                   "the header of the NumPy array is broken, or of a kind not supported");
        if (head.n && memmem(head.at, head.n, "'|O'", 4))
            diag_hint(d, "it holds Python's objects: numpy.asarray(x, dtype=str) makes strings");
        return false;
    }
    out->dims = arena_dup(a, dims, (out->ndim ? out->ndim : 1) * sizeof *dims);
    for (uint32_t i = 0; i < out->ndim; i++)
        if (!checked_mul(n, (uint64_t)dims[i], &n))
            return diag_error(d, E_PARSE_MODEL, loc, "the shape of the NumPy array is too large");
    size = text.kind ? (uint64_t)text.cells * (text.kind == 'U' ? 4 : 1) : out->bits / 8u;
    if (!checked_mul(n, size, &bytes) || bytes > reader_left(&r) || n > reader_left(&r) + 1024)
        return diag_error(d, E_PARSE_MODEL, loc, "the data of the NumPy array end early");
    out->data = read_bytes(&r, bytes);
    out->file = loc.file;
    if (size && ((fortran && out->ndim > 1) || (big && size > 1 && !text.kind)))
        out->data = reorder(a, out, size, fortran, big && !text.kind);
    return !text.kind || read_text(d, a, loc, text, big, n, out);
}

/* Strings as code points, as NumPy has them; those that are not UTF-8 as bytes. */
static Bytes text_data(Arena *a, const Array *v, const char **descr)
{
    size_t   n = array_strings(v), most = 1;
    uint8_t *to = NULL;
    Array    tight;

    for (uint32_t write = 0; write < 2; write++) {
        if (write)
            to = arena_array(a, n * most + 1, 4);
        for (size_t i = 0; i < n; i++) {
            Bytes          b = array_string(v, i);
            const uint8_t *at = b.at;
            size_t         k = 0;

            for (; at < b.at + b.n; k++) {
                uint32_t point = utf8_next(&at, b.at + b.n);

                if (point == UINT32_MAX) {
                    tight = array_text_tight(a, v);
                    *descr = arena_printf(a, "|S%lld", (long long)tight.dims[v->ndim - 1]);
                    return tight.data;
                }
                for (uint32_t j = 0; write && j < 4; j++)
                    to[(i * most + k) * 4 + j] = (uint8_t)(point >> (8 * j));
            }
            most = k > most ? k : most;
        }
    }
    *descr = arena_printf(a, "<U%zu", most);
    return (Bytes){to, n * most * 4};
}

Bytes npy_write(Arena *a, const Array *v)
{
    StrBuf      s = strbuf(a), h = strbuf(a);
    const char *descr = arena_printf(a, "%c%c%u", v->bits <= 8 ? '|' : '<',
                                     v->bits < 8 ? 'V' : kind_of(v->code), (v->bits + 7) / 8);
    Bytes       data = v->text ? text_data(a, v, &descr) : array_unpacked(a, v);
    uint32_t    ndim = v->ndim - v->text;
    size_t      pad;

    str_printf(&h, "{'descr': '%s', 'fortran_order': False, 'shape': (", descr);
    for (uint32_t i = 0; i < ndim; i++)
        str_printf(&h, "%s%lld%s", i ? " " : "", (long long)v->dims[i],
                   i + 1 < ndim || ndim == 1 ? "," : "");
    str_add(&h, "), }");
    pad = (64 - (10 + h.n + 1) % 64) % 64;
    while (pad--)
        str_addc(&h, ' ');
    str_addc(&h, '\n');
    str_addn(&s, "\x93NUMPY\1\0", 8);
    str_addc(&s, (char)(h.n & 0xff));
    str_addc(&s, (char)(h.n >> 8));
    str_addn(&s, h.at, h.n);
    str_addn(&s, (const char *)data.at, data.n);
    return (Bytes){(const uint8_t *)s.at, s.n};
}

bool npz_read(Diags *d, Arena *a, Loc loc, Bytes file, uint32_t *n, Array **out)
{
    ZipEntry *entries;
    uint32_t  count;

    if (!zip_read(d, a, loc, file, (uint64_t)1 << 34, &count, &entries))
        return false;
    *out = NEW_ARRAY(a, Array, count);
    for (uint32_t i = 0; i < count; i++) {
        size_t len = strlen(entries[i].name);
        Loc    at = loc;

        at.name = entries[i].name;
        if (!str_ends(entries[i].name, ".npy"))
            return diag_error(d, E_PARSE_MODEL, loc, "entry '%s' of the .npz is no .npy file",
                              entries[i].name);
        if (!npy_read(d, a, at, entries[i].data, &(*out)[i]))
            return false;
        (*out)[i].name = arena_printf(a, "%.*s", (int)(len - 4), entries[i].name);
    }
    *n = count;
    return true;
}

Bytes npz_write(Arena *a, uint32_t n, const Array *arrays)
{
    ZipEntry *e = NEW_ARRAY(a, ZipEntry, n + 1);

    for (uint32_t i = 0; i < n; i++)
        e[i] = (ZipEntry){arena_printf(a, "%s.npy", arrays[i].name), npy_write(a, &arrays[i])};
    return zip_write(a, n, e);
}
