/* HDF5: types and shapes of cells, and the cells as others want them: in little-endian order, text
 * as strings. */
#include "formats/hdf5.h"

#include <string.h>

enum {
    INTEGERS,
    FLOATS,
    TIMES,
    TEXTS,
    BITS,
    OPAQUE,
    COMPOUND,
    REFERENCES,
    ENUMS,
    VARIABLE,
    ARRAYS
};

/* Of floats only the IEEE ones and bfloat16, which differ in the bits of the exponent. */
static void float_type(Reader *r, H5Type *t)
{
    uint32_t precision, exponent, mantissa;

    read_u16(r);
    precision = read_u16(r);
    read_u8(r);
    exponent = read_u8(r);
    read_u8(r);
    mantissa = read_u8(r);
    t->kind = H5_OTHER;
    if (r->bad || precision != 8 * t->size || exponent + mantissa + 1 != precision)
        return;
    if ((exponent == 5 && t->size == 2) || (exponent == 8 && t->size == 4) ||
        (exponent == 11 && t->size == 8))
        t->kind = H5_FLOAT;
    else if (exponent == 8 && t->size == 2)
        t->kind = H5_BFLOAT;
}

static void integer_type(Reader *r, uint32_t bits, H5Type *t)
{
    uint32_t first = read_u16(r), precision = read_u16(r);

    t->kind = bits & 8 ? H5_INT : H5_UINT;
    if (r->bad || first || precision != 8 * t->size || t->size > 8 || (t->size & (t->size - 1)))
        t->kind = H5_OTHER;
}

static bool type_of(H5File *f, Bytes message, H5Type *t, uint32_t depth)
{
    Reader   r = reader(message);
    uint32_t first = read_u8(&r), bits = (uint32_t)h5_number(&r, 3), class = first & 15;
    H5Type   base;

    *t = (H5Type){.kind = H5_OTHER, .size = read_u32(&r)};
    if (r.bad || t->size == 0 || t->size > 1u << 30 || first >> 4 == 0 || depth > 4)
        return h5_bad(f, "its type is broken");
    t->big = (bits & 1) && (class == INTEGERS || class == FLOATS);
    switch (class) {
    case INTEGERS: integer_type(&r, bits, t); break;
    case FLOATS: float_type(&r, t); break;
    case OPAQUE: t->kind = H5_OPAQUE; break;
    case TEXTS:
        t->kind = H5_TEXT;
        t->pad = (bits & 15) == 2 ? ' ' : 0;
        break;
    case ENUMS: /* h5py's bools */
        if (!type_of(f, read_bytes(&r, reader_left(&r)), &base, depth + 1))
            return false;
        if ((bits & 0xffff) == 2 && base.size == 1 && t->size == 1 && base.kind != H5_OTHER)
            t->kind = H5_BOOL;
        break;
    case VARIABLE:
        t->heap = (bits & 15) == 1;
        if (t->heap)
            t->kind = H5_TEXT;
        if (t->heap && t->size != 8 + f->offset)
            return h5_bad(f, "its type is broken");
        break;
    default: break;
    }
    return true;
}

bool h5_type(H5File *f, Bytes message, H5Type *out)
{
    return type_of(f, message, out, 0);
}

/* ---- shapes --------------------------------------------------------------------------------------- */

bool h5_space(H5File *f, Bytes message, H5Space *out)
{
    Reader   r = reader(message);
    uint32_t version = read_u8(&r), flags, kind = 1;

    *out = (H5Space){.ndim = read_u8(&r), .cells = 1};
    flags = read_u8(&r);
    if (version < 1 || version > 2)
        return h5_bad(f, "its shape is of version %u", version);
    if (version == 1)
        read_bytes(&r, 5);
    else
        kind = read_u8(&r);
    if (out->ndim > ARRAY_MAX_DIMS)
        return h5_bad(f, "it has %u dimensions", out->ndim);
    for (uint32_t i = 0; i < out->ndim; i++)
        out->dims[i] = out->most[i] = h5_length(f, &r);
    for (uint32_t i = 0; (flags & 1) && i < out->ndim; i++) {
        out->most[i] = h5_length(f, &r);
        if (f->length < 8 && out->most[i] == ((uint64_t)1 << (8 * f->length)) - 1)
            out->most[i] = UINT64_MAX;
    }
    if (r.bad)
        return h5_bad(f, "its shape ends too early");
    if (kind == 2)
        out->cells = 0; /* null */
    for (uint32_t i = 0; i < out->ndim; i++)
        if (out->dims[i] > INT64_MAX || !checked_mul(out->cells, out->dims[i], &out->cells) ||
            out->cells > INT64_MAX)
            return h5_bad(f, "it has too many cells");
    return true;
}

bool h5_space_bytes(H5File *f, const H5Space *s, const H5Type *t, uint64_t *out)
{
    return checked_mul(s->cells, (uint64_t)t->size, out) || h5_bad(f, "it has too many cells");
}

/* ---- cells ---------------------------------------------------------------------------------------- */

static const char *one_text(H5File *f, const H5Type *t, Bytes cell)
{
    Reader   r = reader(cell);
    Bytes    text = cell;
    size_t   n;
    uint8_t *at;

    if (t->heap) {
        uint32_t length = read_u32(&r);
        uint64_t heap = h5_address(f, &r);

        text = (Bytes){0};
        if (length && (!h5_global(f, heap, read_u32(&r), &text) || text.n < length)) {
            h5_bad(f, "a string leads out of its heap");
            return NULL;
        }
        text.n = length;
    }
    n = text.n;
    if (n && memchr(text.at, 0, n))
        n = (size_t)((const uint8_t *)memchr(text.at, 0, n) - text.at);
    while (n && t->pad == ' ' && text.at[n - 1] == ' ')
        n--;
    if (!(at = h5_make(f, n + 1)))
        return NULL;
    if (n)
        memcpy(at, text.at, n);
    at[n] = 0;
    return (const char *)at;
}

static bool read_texts(H5File *f, const H5Type *t, Bytes raw, H5Value *v)
{
    const char **texts;

    if (v->cells > f->bytes / sizeof *texts)
        return h5_bad(f, "it has too many strings");
    f->bytes -= v->cells * sizeof *texts;
    texts = NEW_ARRAY(f->arena, const char *, v->cells + 1);
    for (uint64_t i = 0; i < v->cells; i++)
        if (!(texts[i] = one_text(f, t, (Bytes){raw.at + i * t->size, t->size})))
            return false;
    v->texts = texts;
    return true;
}

static bool swapped(H5File *f, const H5Type *t, Bytes raw, Bytes *out)
{
    uint8_t *at = h5_make(f, raw.n);

    for (size_t i = 0; at && i < raw.n; i++)
        at[i] = raw.at[i - i % t->size + (t->size - 1 - i % t->size)];
    *out = (Bytes){at, raw.n};
    return at != NULL;
}

bool h5_value(H5File *f, const H5Type *t, const H5Space *s, Bytes raw, H5Value *out)
{
    int64_t *dims = NEW_ARRAY(f->arena, int64_t, s->ndim + 1);
    uint64_t bytes;

    if (!h5_space_bytes(f, s, t, &bytes))
        return false;
    if (raw.n < bytes)
        return h5_bad(f, "%zu bytes for cells of %llu", raw.n, (unsigned long long)bytes);
    for (uint32_t i = 0; i < s->ndim; i++)
        dims[i] = (int64_t)s->dims[i];
    *out = (H5Value){.kind = t->kind,
                     .bits = 8 * t->size,
                     .ndim = s->ndim,
                     .dims = dims,
                     .cells = s->cells,
                     .data = {raw.at, bytes}};
    if (t->kind == H5_TEXT)
        return read_texts(f, t, raw, out);
    return !t->big || t->size == 1 || swapped(f, t, out->data, &out->data);
}
