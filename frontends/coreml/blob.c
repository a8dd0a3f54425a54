/* Constants of programs: in the model file, or in a file of weights beside it.
 *
 *     header   64 bytes: how many there are (u32), version 2 (u32)
 *     at 64 n  64 bytes: 0xDEADBEEF (u32), element type (u32), bytes (u64), where they lie (u64)
 *
 * Elements of less than 8 bits follow each other without gaps, the low bits of a byte first; here
 * each becomes a byte. */
#include "frontends/coreml/coreml.h"

#include <string.h>

#define SENTINEL 0xDEADBEEFu
enum { HEADER = 64, VERSION = 2, VIEW = 64 << 10 };

/* The type's number in the file of weights, and in the model. */
static const struct {
    uint32_t blob;
    int32_t  type;
    uint8_t  bits;  /* of an element, where they are less than 8 */
    bool     below; /* it may be negative, then */
} types[] = {
    {1, 10, 0, false},  {2, 11, 0, false},  {3, 31, 0, false},  {4, 21, 0, false},
    {5, 13, 0, false},  {6, 22, 0, false},  {7, 32, 0, false},  {8, 25, 4, true},
    {9, 37, 1, false},  {10, 36, 2, false}, {11, 35, 4, false}, {12, 39, 3, false},
    {13, 38, 6, false}, {14, 23, 0, false}, {15, 33, 0, false},
};

static uint64_t number_at(Bytes file, uint64_t at, uint32_t bytes)
{
    uint64_t v = 0;

    for (uint32_t i = 0; i < bytes; i++)
        v |= (uint64_t)file.at[at + i] << (8 * i);
    return v;
}

static bool read_blob(CmlImport *im, const CmlLiteral *v, const char *name, Loc loc, Bytes *out)
{
    Ctx     *c = im->c;
    Bytes    file;
    uint64_t at = (uint64_t)v->blob->offset, from, bytes;

    if (!cml_open_weights(c, im->path, v->blob->file ? v->blob->file : "", loc, &im->blobs,
                          im->files, &file))
        return false;
    if (file.n < HEADER || number_at(file, 4, 4) != VERSION)
        return error_at(c, E_PARSE_MODEL, loc, "'%s' is no file of weights of version %d",
                        v->blob->file, VERSION);
    if (at > file.n || file.n - at < HEADER || number_at(file, at, 4) != SENTINEL)
        return error_at(c, E_PARSE_MODEL, loc, "'%s': there are no weights at byte %llu of '%s'",
                        name, (unsigned long long)at, v->blob->file);
    bytes = number_at(file, at + 8, 8);
    from = number_at(file, at + 16, 8);
    if (from > file.n || bytes > file.n - from)
        return error_at(c, E_PARSE_MODEL, loc, "'%s': its weights lead out of '%s'", name,
                        v->blob->file);
    for (uint32_t i = 0; i < COUNT(types); i++)
        if (types[i].blob == number_at(file, at + 4, 4) && types[i].type == v->type->tensor->type) {
            *out = (Bytes){file.at + from, bytes};
            return true;
        }
    return error_at(c, E_IMPORT, loc, "'%s': its weights in '%s' are of another type than %s", name,
                    v->blob->file, cml_dtype_name(v->type->tensor->type));
}

/* Whole numbers as cells of the type. */
static Bytes narrowed(Arena *a, const PbInts *v, DType t)
{
    uint32_t size = t.bits / 8;
    uint8_t *out = arena_alloc(a, (size_t)v->n * size + 1);

    for (uint32_t i = 0; i < v->n; i++)
        for (uint32_t k = 0; k < size; k++)
            out[(size_t)i * size + k] =
                t.code == DT_BOOLEAN ? v->at[i] != 0 : (uint8_t)((uint64_t)v->at[i] >> (8 * k));
    return (Bytes){out, (size_t)v->n * size};
}

static bool read_immediate(CmlImport *im, const CmlTensorValue *v, DType t, Bytes *out)
{
    const CmlInts *ints = v->ints ? v->ints : v->longs ? v->longs : v->bools;

    if (v->floats && dtype_eq(t, DT_F32))
        *out = v->floats->v.data;
    else if (v->doubles && dtype_eq(t, DT_F64))
        *out = v->doubles->v.data;
    else if (ints && !dtype_is_float(t))
        *out = narrowed(im->c->arena, &ints->v, t);
    else if (v->bytes)
        *out = v->bytes->v;
    else
        return false;
    return true;
}

static Bytes spread(Arena *a, Bytes packed, int64_t n, int64_t type)
{
    for (uint32_t i = 0; i < COUNT(types); i++) {
        uint8_t bits = types[i].bits;
        Bytes   v;

        if (types[i].type != type || !bits || packed.n != ((size_t)n * bits + 7) / 8)
            continue;
        v = cml_unpacked(a, packed, n, bits, false);
        for (int64_t k = 0; k < n && types[i].below; k++)
            if (v.at[k] >> (bits - 1))
                ((uint8_t *)v.at)[k] |= (uint8_t)(0xff << bits);
        return v;
    }
    return packed;
}

const char *cml_literal_text(const CmlLiteral *v)
{
    const CmlTensorValue *t = v && v->immediate ? v->immediate->tensor : NULL;

    return t && t->texts && t->texts->v.n == 1 ? t->texts->v.at[0] : NULL;
}

/* Numbers of the type's dimensions; false with an error. */
static bool read_dims(Ctx *c, Loc loc, const CmlTensorType *t, const char *name, int64_t *dims,
                      int64_t *cells)
{
    *cells = 1;
    if (t->dims.n > MAX_RANK)
        return error_at(c, E_UNSUPPORTED, loc, "'%s' has %u dimensions, more than %d", name,
                        t->dims.n, MAX_RANK);
    for (uint32_t i = 0; i < t->dims.n; i++) {
        const CmlDim *d = t->dims.at[i];

        dims[i] = d->constant ? d->constant->size : -1;
        if (dims[i] < 0 || !checked_mul(*cells, dims[i], cells) || *cells > MAX_ELEMS)
            return error_at(c, E_IMPORT, loc, "'%s' is too large, or its size is not known", name);
    }
    return true;
}

const Expr *cml_literal(CmlImport *im, const CmlLiteral *v, const char *name, Loc loc)
{
    Ctx                 *c = im->c;
    const CmlTensorType *t = v && v->type ? v->type->tensor : NULL;
    int64_t              dims[MAX_RANK + 1], cells;
    DType                type;
    Bytes                data = {0};

    if (!t || !cml_dtype(t->type, &type))
        return error_at(c, E_UNSUPPORTED, loc, "constant '%s' is of %s", name,
                        t ? cml_dtype_name(t->type) : "no tensor's type");
    if (!read_dims(c, loc, t, name, dims, &cells))
        return NULL;
    if (v->blob ? !read_blob(im, v, name, loc, &data)
                : !v->immediate || !v->immediate->tensor ||
                      !read_immediate(im, v->immediate->tensor, type, &data))
        return v->blob ? NULL
                       : error_at(c, E_IMPORT, loc, "constant '%s' has no values of %s", name,
                                  cml_dtype_name(t->type));
    if (data.n != (size_t)cells * dtype_bytes(type))
        data = spread(c->arena, data, cells, t->type);
    if (data.n != (size_t)cells * dtype_bytes(type))
        return error_at(c, E_IMPORT, loc, "constant '%s' has %zu bytes for %lld cells of %s", name,
                        data.n, (long long)cells, cml_dtype_name(t->type));
    if (!data.n || (data.n < VIEW && (uintptr_t)data.at % dtype_bytes(type))) {
        void *copy = arena_alloc(c->arena, data.n + 1);

        if (data.n)
            memcpy(copy, data.at, data.n);
        data.at = copy;
    }
    return expr_const(
        c, const_new(c, intern(c->strings, name), type_tensor_i64(c, type, t->dims.n, dims), data),
        loc);
}
