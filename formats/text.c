/* Arrays of strings.
 *
 * Here and in compiled models a tensor of strings is one of bytes: each string has the same room,
 * in a last dimension of its own, and zero bytes behind it.
 *
 *     ["cat", "mouse"]    u8[2,5]    c a t 0 0
 *                                    m o u s e
 */
#include "formats/formats.h"

#include <string.h>

#define MAX_TEXT ((uint64_t)1 << 28)

bool text_cells(Diags *d, Arena *a, Loc loc, size_t n, const Bytes *strings, int64_t *room,
                Bytes *out)
{
    size_t   most = 1;
    uint64_t all;
    uint8_t *at;

    for (size_t i = 0; i < n; i++) {
        most = strings[i].n > most ? strings[i].n : most;
        if (strings[i].n && memchr(strings[i].at, 0, strings[i].n))
            return diag_error(d, E_UNSUPPORTED, loc, "string %zu has a zero byte in it", i);
    }
    if (!checked_mul((uint64_t)n, (uint64_t)most, &all) || all > MAX_TEXT)
        return diag_error(d, E_UNSUPPORTED, loc,
                          "%zu strings with room for %zu bytes each are too large", n, most);
    at = arena_array(a, (size_t)all + 1, 1);
    for (size_t i = 0; i < n; i++)
        if (strings[i].n)
            memcpy(at + i * most, strings[i].at, strings[i].n);
    *room = (int64_t)most;
    *out = (Bytes){at, (size_t)all};
    return true;
}

bool array_of_text(Diags *d, Arena *a, Loc loc, size_t n, const Bytes *strings, uint32_t ndim,
                   const int64_t *dims, Array *out)
{
    int64_t *all = NEW_ARRAY(a, int64_t, ndim + 1);

    if (ndim >= ARRAY_MAX_DIMS)
        return diag_error(d, E_UNSUPPORTED, loc, "an array of %u dimensions", ndim);
    if (ndim)
        memcpy(all, dims, ndim * sizeof *all);
    out->code = TVMCC_UINT;
    out->bits = 8;
    out->text = true;
    out->ndim = ndim + 1;
    out->dims = all;
    out->file = loc.file;
    return text_cells(d, a, loc, n, strings, &all[ndim], &out->data);
}

static size_t room_of(const Array *v)
{
    return (size_t)v->dims[v->ndim - 1];
}

size_t array_strings(const Array *v)
{
    size_t n = 1;

    for (uint32_t i = 0; i + 1 < v->ndim; i++)
        n *= (size_t)v->dims[i];
    return n;
}

Bytes array_string(const Array *v, size_t i)
{
    size_t         room = room_of(v);
    const uint8_t *at = v->data.at + i * room, *end = room ? memchr(at, 0, room) : NULL;

    return (Bytes){at, end ? (size_t)(end - at) : room};
}

Array array_text_tight(Arena *a, const Array *v)
{
    size_t   n = array_strings(v), most = 1;
    Array    t = *v;
    int64_t *dims = DUP_ARRAY(a, v->dims, v->ndim);
    uint8_t *to;

    for (size_t i = 0; i < n; i++)
        most = array_string(v, i).n > most ? array_string(v, i).n : most;
    to = arena_array(a, n * most + 1, 1);
    for (size_t i = 0; i < n; i++)
        memcpy(to + i * most, array_string(v, i).at, array_string(v, i).n);
    dims[v->ndim - 1] = (int64_t)most;
    t.dims = dims;
    t.data = (Bytes){to, n * most};
    return t;
}

/* ---- UTF-8 ---- */

uint32_t utf8_next(const uint8_t **p, const uint8_t *end)
{
    static const uint32_t least[] = {0, 0x80, 0x800, 0x10000};
    const uint8_t        *at = *p;
    uint32_t              more, v = *at;

    *p = at + 1;
    if (v < 0x80)
        return v;
    more = v >= 0xf0 ? 3 : v >= 0xe0 ? 2 : 1;
    if (v < 0xc2 || v > 0xf4 || (size_t)(end - at) <= more)
        return UINT32_MAX;
    v &= 0x3fu >> more;
    for (uint32_t i = 1; i <= more; i++) {
        if ((at[i] & 0xc0) != 0x80)
            return UINT32_MAX;
        v = v << 6 | (at[i] & 0x3f);
    }
    if (v < least[more] || v > 0x10ffff || (v >= 0xd800 && v < 0xe000))
        return UINT32_MAX;
    *p = at + 1 + more;
    return v;
}

void utf8_add(StrBuf *s, uint32_t v)
{
    uint32_t more = v < 0x80 ? 0 : v < 0x800 ? 1 : v < 0x10000 ? 2 : 3;
    uint32_t lead = more ? 0xff00u >> (more + 1) & 0xff : 0;

    str_addc(s, (char)(lead | v >> (6 * more)));
    while (more--)
        str_addc(s, (char)(0x80 | (v >> (6 * more) & 0x3f)));
}
