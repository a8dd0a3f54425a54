/* Fields of a layer's message, one at a time, by the names of records.def.  A field that is absent
 * is 0, as the format has it. */
#include "frontends/coreml/coreml.h"

#include <string.h>

/* The value of a field: as wide as the widest that formats/protobuf.c stores. */
typedef struct {
    union {
        int64_t     i;
        float       f;
        double      d;
        const char *text;
        Bytes       bytes;
        PbInts      ints;
        PbPacked    packed;
        PbBlobs     blobs;
    } u;
    bool has; /* not at offset 0, which means none to formats/protobuf.c */
} Value;

static PbKind wire_kind(const CmlField *f)
{
    switch (f->kind) {
    case CML_INT:
    case CML_BOOL: return f->many ? PB_INTS : PB_INT;
    case CML_FLOAT: return f->many ? PB_FLOATS : PB_FLOAT;
    case CML_DOUBLE: return f->many ? PB_DOUBLES : PB_DOUBLE;
    case CML_TEXT: return PB_TEXT;
    case CML_BYTES: return PB_BYTES;
    case CML_RECORD: return PB_BLOBS;
    }
    BUG("records.def: kind %d", (int)f->kind);
}

/* survey.c has seen that the message parses. */
static Value read_value(const CmlMessage *m, const char *name, CmlField *f)
{
    Value     v = {0};
    PbField   field = {.offset = offsetof(Value, u), .has = offsetof(Value, has)};
    PbMessage message = {m->record->name, sizeof v, 1, &field};
    Diags    *none = diags_new(m->arena);

    if (!cml_field(m->record, name, f))
        BUG("%s has no field '%s'", m->record->name, name);
    if (m->read)
        *m->read |= (uint64_t)1 << f->place;
    field.number = f->number;
    field.kind = wire_kind(f);
    if (!pb_read(none, m->arena, NO_LOC, &message, m->bytes, &v))
        return (Value){0};
    return v;
}

bool cml_read_has(const CmlMessage *m, const char *name)
{
    CmlField f;

    return read_value(m, name, &f).has;
}

int64_t cml_read_int(const CmlMessage *m, const char *name)
{
    CmlField f;

    return read_value(m, name, &f).u.i;
}

double cml_read_float(const CmlMessage *m, const char *name)
{
    CmlField f;
    Value    v = read_value(m, name, &f);

    return f.kind == CML_DOUBLE ? v.u.d : (double)v.u.f;
}

const char *cml_read_text(const CmlMessage *m, const char *name)
{
    CmlField f;
    Value    v = read_value(m, name, &f);

    return v.has ? v.u.text : "";
}

Bytes cml_read_bytes(const CmlMessage *m, const char *name)
{
    CmlField f;

    return read_value(m, name, &f).u.bytes;
}

Ints cml_read_ints(const CmlMessage *m, const char *name)
{
    CmlField f;
    Value    v = read_value(m, name, &f);

    return (Ints){v.u.ints.n, v.u.ints.at};
}

Bytes cml_read_floats(const CmlMessage *m, const char *name)
{
    CmlField f;

    return read_value(m, name, &f).u.packed.data;
}

uint32_t cml_read_count(const CmlMessage *m, const char *name)
{
    CmlField f;
    Value    v = read_value(m, name, &f);

    return f.many ? v.u.blobs.n : v.u.blobs.n > 0;
}

/* Occurrences of a field that is there once are one message. */
static Bytes merged(Arena *a, const PbBlobs *v)
{
    size_t   n = 0, at = 0;
    uint8_t *all;

    if (v->n == 1)
        return v->at[0];
    for (uint32_t i = 0; i < v->n; i++)
        n += v->at[i].n;
    all = arena_alloc(a, n + 1);
    for (uint32_t i = 0; i < v->n; at += v->at[i++].n)
        if (v->at[i].n)
            memcpy(all + at, v->at[i].at, v->at[i].n);
    return (Bytes){all, n};
}

bool cml_read_message(const CmlMessage *m, const char *name, uint32_t i, CmlMessage *out)
{
    CmlField f;
    Value    v = read_value(m, name, &f);

    *out = (CmlMessage){.arena = m->arena, .record = f.record};
    if (v.u.blobs.n == 0 || (f.many && i >= v.u.blobs.n))
        return false;
    out->bytes = f.many ? v.u.blobs.at[i] : merged(m->arena, &v.u.blobs);
    return true;
}

bool cml_read_chosen(const CmlMessage *m, CmlField *field, CmlMessage *out)
{
    Reader r = reader(m->bytes);
    PbItem it;

    while (pb_next(&r, &it))
        if (cml_field_numbered(m->record, it.number, field) && field->kind == CML_RECORD) {
            const char *name = arena_printf(m->arena, "%.*s", (int)field->n, field->name);

            return cml_read_message(m, name, 0, out);
        }
    return false;
}
