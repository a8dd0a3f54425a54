/* FlatBuffers: tables by field tables, as protobuf.c has it for its messages.
 *
 *     table    i32: how far before it its vtable lies; then its fields
 *     vtable   u16: its bytes, u16: those of the table, then u16 a slot:
 *              where the field is, 0: absent
 *     vector   u32: how many cells, then these; strings are vectors of bytes
 *
 * What a field or cell refers to lies as many bytes behind it as its u32 says.
 *
 * Nothing says where a part ends or that it is referred to once, so each position is checked
 * against the file, nesting is limited to FB_MAX_DEPTH, and a file holds no more tables than bytes.
 * Bytes and vectors of numbers stay views of the mapped file. */
#include "formats/formats.h"

#include <string.h>

typedef struct {
    Diags *d;
    Arena *a;
    Loc    loc;
    Bytes  file;
    size_t tables, text; /* so far; bytes of text */
} Fb;

#define FB_SHARED 16 /* texts may be referred to so often, by their mean */

static uint64_t little(const uint8_t *at, uint32_t bytes)
{
    uint64_t v = 0;

    for (uint32_t i = bytes; i-- > 0;)
        v = v << 8 | at[i];
    return v;
}

static bool inside(Bytes file, size_t at, uint64_t bytes)
{
    return at <= file.n && bytes <= file.n - at;
}

/* The sizes of what lies in a table or vector, by kind; 0: it is none of fixed size. */
static uint32_t cell_bytes(FbKind kind)
{
    switch (kind) {
    case FB_BOOL:
    case FB_I8:
    case FB_U8: return 1;
    case FB_I16:
    case FB_U16: return 2;
    case FB_I32:
    case FB_U32:
    case FB_F32: return 4;
    case FB_I64:
    case FB_U64: return 8;
    default: return 0;
    }
}

static int64_t cell_int(FbKind kind, const uint8_t *at)
{
    uint64_t v = little(at, cell_bytes(kind));

    switch (kind) {
    case FB_BOOL: return v != 0;
    case FB_I8: return (int8_t)v;
    case FB_I16: return (int16_t)v;
    case FB_I32: return (int32_t)v;
    default: return (int64_t)v;
    }
}

static double cell_float(const uint8_t *at)
{
    uint32_t bits = (uint32_t)little(at, 4);
    float    f;

    memcpy(&f, &bits, sizeof f);
    return f;
}

int64_t fb_int_at(FbVector v, FbKind kind, uint32_t i)
{
    return cell_int(kind, v.at + (size_t)i * cell_bytes(kind));
}

double fb_float_at(FbVector v, uint32_t i)
{
    return cell_float(v.at + (size_t)i * 4);
}

/* ---- one table --------------------------------------------------------------------------------- */

/* What the u32 at `at` refers to. */
static bool follow(Bytes file, size_t at, size_t *to)
{
    uint64_t by;

    if (!inside(file, at, 4))
        return false;
    by = little(file.at + at, 4);
    *to = at + by;
    return by != 0 && inside(file, *to, 4);
}

static bool table_at(Bytes file, size_t at, FbTable *out)
{
    int64_t  vtable;
    uint32_t bytes;

    if (!inside(file, at, 4) || at > UINT32_MAX)
        return false;
    vtable = (int64_t)at - (int32_t)little(file.at + at, 4);
    if (vtable < 0 || !inside(file, (size_t)vtable, 4))
        return false;
    bytes = (uint32_t)little(file.at + vtable, 2);
    *out = (FbTable){file, at, (size_t)vtable, bytes < 4 ? 0 : (bytes - 4) / 2,
                     (uint32_t)little(file.at + vtable + 2, 2)};
    return bytes >= 4 && inside(file, (size_t)vtable, bytes) && inside(file, at, out->bytes);
}

/* Where a field of so many bytes lies; *at 0: it is absent. */
static bool field_at(const FbTable *t, uint32_t slot, uint32_t bytes, size_t *at)
{
    uint32_t offset =
        slot < t->slots ? (uint32_t)little(t->file.at + t->vtable + 4 + 2 * (size_t)slot, 2) : 0;

    *at = offset ? t->at + offset : 0;
    return !offset || (offset >= 4 && offset + bytes <= t->bytes);
}

bool fb_root(Bytes file, FbTable *out)
{
    size_t at;

    return follow(file, 0, &at) && table_at(file, at, out);
}

bool fb_has(const FbTable *t, uint32_t slot)
{
    size_t at;

    return field_at(t, slot, 0, &at) && at;
}

bool fb_int(const FbTable *t, uint32_t slot, FbKind kind, int64_t fallback, int64_t *out)
{
    size_t at;

    *out = fallback;
    if (!field_at(t, slot, cell_bytes(kind), &at))
        return false;
    if (at)
        *out = cell_int(kind, t->file.at + at);
    return true;
}

bool fb_float(const FbTable *t, uint32_t slot, double fallback, double *out)
{
    size_t at;

    *out = fallback;
    if (!field_at(t, slot, 4, &at))
        return false;
    if (at)
        *out = cell_float(t->file.at + at);
    return true;
}

static bool vector_of(const FbTable *t, uint32_t slot, uint32_t cell, FbVector *out)
{
    size_t   at, to;
    uint64_t n;

    *out = (FbVector){0};
    if (!field_at(t, slot, 4, &at))
        return false;
    if (!at)
        return true;
    if (!follow(t->file, at, &to))
        return false;
    n = little(t->file.at + to, 4);
    *out = (FbVector){(uint32_t)n, t->file.at + to + 4};
    return inside(t->file, to + 4, n * cell);
}

bool fb_vector(const FbTable *t, uint32_t slot, FbKind kind, FbVector *out)
{
    return vector_of(t, slot, cell_bytes(kind), out);
}

bool fb_table(const FbTable *t, uint32_t slot, FbTable *out)
{
    size_t at, to;

    *out = (FbTable){0};
    if (!field_at(t, slot, 4, &at))
        return false;
    return !at || (follow(t->file, at, &to) && table_at(t->file, to, out));
}

/* ---- tables by field tables ------------------------------------------------------------------ */

static bool wrong(Fb *f, const FbType *type, const FbField *field, size_t at)
{
    return diag_error(f->d, E_PARSE_MODEL, f->loc, "byte %zu: field %u of %s leads out of the file",
                      at, field->slot, type->name);
}

static bool read_table(Fb *f, const FbType *type, const FbTable *t, void *out, uint32_t depth);

static bool new_table(Fb *f, const FbType *type, const FbTable *t, uint32_t depth, void **out)
{
    *out = arena_alloc(f->a, type->size);
    if (++f->tables > f->file.n)
        return diag_error(f->d, E_PARSE_MODEL, f->loc,
                          "byte %zu: the file refers to the same tables too often", t->at);
    if (depth == FB_MAX_DEPTH)
        return diag_error(f->d, E_PARSE_MODEL, f->loc,
                          "byte %zu: tables are nested more than %d deep", t->at, FB_MAX_DEPTH);
    return read_table(f, type, t, *out, depth + 1);
}

static bool read_tables(Fb *f, const FbType *type, const FbField *field, const FbTable *t,
                        FbTables *out, uint32_t depth)
{
    FbVector v;

    if (!vector_of(t, field->slot, 4, &v))
        return wrong(f, type, field, t->at);
    out->n = v.n;
    out->at = NEW_ARRAY(f->a, void *, v.n + 1);
    for (uint32_t i = 0; i < v.n; i++) {
        size_t  at = (size_t)(v.at - f->file.at) + (size_t)i * 4, to;
        FbTable sub;

        if (!follow(f->file, at, &to) || !table_at(f->file, to, &sub))
            return wrong(f, type, field, at);
        if (!new_table(f, field->sub, &sub, depth, &out->at[i]))
            return false;
    }
    return true;
}

static bool read_field(Fb *f, const FbType *type, const FbField *field, const FbTable *t, char *to,
                       uint32_t depth)
{
    FbVector v;
    FbTable  sub;

    switch (field->kind) {
    case FB_F32: {
        double d;

        if (!fb_float(t, field->slot, 0, &d))
            break;
        *(float *)to = (float)d;
        return true;
    }
    case FB_TEXT:
        if (!vector_of(t, field->slot, 1, &v))
            break;
        if (!v.at)
            return true;
        if ((f->text += v.n) / FB_SHARED > f->file.n)
            return diag_error(f->d, E_PARSE_MODEL, f->loc,
                              "byte %zu: the file refers to the same texts too often", t->at);
        *(const char **)to = memcpy(arena_alloc(f->a, (size_t)v.n + 1), v.at, v.n);
        return true;
    case FB_BYTES:
        if (!vector_of(t, field->slot, 1, &v))
            break;
        *(Bytes *)to = (Bytes){v.at, v.n};
        return true;
    case FB_VECTOR:
        if (!vector_of(t, field->slot, cell_bytes(field->cell), &v))
            break;
        *(FbVector *)to = v;
        return true;
    case FB_ANY:
        if (!fb_table(t, field->slot, (FbTable *)to))
            break;
        return true;
    case FB_TABLE:
        if (!fb_table(t, field->slot, &sub))
            break;
        return !sub.file.at || new_table(f, field->sub, &sub, depth, (void **)to);
    case FB_TABLES: return read_tables(f, type, field, t, (FbTables *)to, depth);
    case FB_BOOL:
    case FB_I8:
    case FB_U8:
    case FB_I16:
    case FB_U16:
    case FB_I32:
    case FB_U32:
    case FB_I64:
    case FB_U64:
        if (!fb_int(t, field->slot, field->kind, field->fallback, (int64_t *)to))
            break;
        return true;
    }
    return wrong(f, type, field, t->at);
}

static bool read_table(Fb *f, const FbType *type, const FbTable *t, void *out, uint32_t depth)
{
    for (uint32_t i = 0; i < type->nfields; i++)
        if (!read_field(f, type, &type->fields[i], t, (char *)out + type->fields[i].offset, depth))
            return false;
    return true;
}

bool fb_read(Diags *d, Arena *a, Loc loc, const FbType *type, Bytes file, void *out)
{
    Fb      f = {.d = d, .a = a, .loc = loc, .file = file};
    FbTable root;

    if (!fb_root(file, &root))
        return diag_error(d, E_PARSE_MODEL, loc, "the file ends early or is no FlatBuffer");
    return read_table(&f, type, &root, out, 0);
}
