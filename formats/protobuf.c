/* Protocol buffers: a walker over the wire format, driven by field tables.
 *
 * A message is a row of fields (number, kind, offset of a C member).  Scalars and short texts are
 * copied into the struct, byte fields and packed floats stay views of the mapped file, so that a
 * model's weights are never copied.  Unknown fields are skipped.  Lengths are checked against what
 * is left of the enclosing message, nesting is limited to PB_MAX_DEPTH, and the number of messages
 * to PB_MAX_MESSAGES, as two bytes of input can ask for a whole struct. */
#include "formats/formats.h"

#include <string.h>

#define PB_MAX_MESSAGES (8u << 20)

typedef struct {
    Diags         *d;
    Arena         *a;
    Loc            loc;
    const uint8_t *start; /* of the outermost message, for offsets in messages */
    uint32_t       messages;
} Pb;

/* Skip a group (deprecated, but legal as an unknown field): up to its matching end. */
static bool skip_group(Reader *r, uint32_t number)
{
    uint32_t stack[PB_MAX_DEPTH], n = 0;

    stack[n++] = number;
    while (n && !r->bad) {
        uint64_t tag = read_varint(r);

        switch (tag & 7) {
        case PB_WIRE_VARINT: read_varint(r); break;
        case PB_WIRE_I64: read_u64(r); break;
        case PB_WIRE_LEN: read_bytes(r, read_varint(r)); break;
        case PB_WIRE_I32: read_u32(r); break;
        case PB_WIRE_SGROUP:
            if (n == PB_MAX_DEPTH)
                return false;
            stack[n++] = (uint32_t)(tag >> 3);
            break;
        case PB_WIRE_EGROUP:
            if (stack[--n] != tag >> 3)
                return false;
            break;
        default: return false;
        }
    }
    return !r->bad;
}

bool pb_next(Reader *r, PbItem *out)
{
    while (!r->bad && reader_left(r)) {
        uint64_t tag = read_varint(r), number = tag >> 3;

        *out = (PbItem){.number = (uint32_t)number, .wire = (PbWire)(tag & 7)};
        if (number == 0 || number > 0x1fffffff) {
            r->bad = true;
            return false;
        }
        switch (out->wire) {
        case PB_WIRE_VARINT: out->value = read_varint(r); return !r->bad;
        case PB_WIRE_I64: out->value = read_u64(r); return !r->bad;
        case PB_WIRE_I32: out->value = read_u32(r); return !r->bad;
        case PB_WIRE_LEN: out->bytes = read_bytes(r, read_varint(r)); return !r->bad;
        case PB_WIRE_SGROUP:
            if (!skip_group(r, out->number))
                r->bad = true;
            continue;
        case PB_WIRE_EGROUP: break;
        }
        r->bad = true;
    }
    return false;
}

static const PbField *find_field(const PbMessage *m, uint32_t number)
{
    for (uint32_t i = 0; i < m->nfields; i++)
        if (m->fields[i].number == number)
            return &m->fields[i];
    return NULL;
}

static float as_float(uint64_t bits)
{
    uint32_t b = (uint32_t)bits;
    float    f;

    memcpy(&f, &b, sizeof f);
    return f;
}

static double as_double(uint64_t bits)
{
    double f;

    memcpy(&f, &bits, sizeof f);
    return f;
}

/* Add cells to a packed field; the first piece stays a view. */
static void add_packed(Arena *a, PbPacked *p, Bytes more)
{
    uint8_t *both;

    if (p->data.n == 0) {
        p->data = more;
        return;
    }
    both = arena_alloc(a, p->data.n + more.n);
    memcpy(both, p->data.at, p->data.n);
    memcpy(both + p->data.n, more.at, more.n);
    p->data = (Bytes){both, p->data.n + more.n};
}

/* Unpacked repeated floats arrive one by one: gather a run of them in one go, so that hostile
 * input cannot make the copying above quadratic. */
static Bytes gather_run(Pb *pb, Reader *r, const PbItem *first, size_t size)
{
    VEC(uint8_t) v = {0};
    PbItem it = *first;

    for (;;) {
        Reader before;

        for (size_t i = 0; i < size; i++)
            vec_push(pb->a, &v, (uint8_t)(it.value >> (8 * i)));
        before = *r;
        if (!pb_next(r, &it) || it.number != first->number || it.wire != first->wire) {
            if (!r->bad)
                *r = before;
            return (Bytes){v.at, v.n};
        }
    }
}

static const char *wrong_wire(PbKind kind, PbWire wire)
{
    switch (kind) {
    case PB_INT: return wire == PB_WIRE_VARINT ? NULL : "a varint";
    case PB_FLOAT: return wire == PB_WIRE_I32 ? NULL : "32 bits";
    case PB_DOUBLE: return wire == PB_WIRE_I64 ? NULL : "64 bits";
    case PB_TEXT:
    case PB_BYTES:
    case PB_MSG:
    case PB_TEXTS:
    case PB_BLOBS:
    case PB_MSGS: return wire == PB_WIRE_LEN ? NULL : "a length";
    case PB_INTS: return wire == PB_WIRE_LEN || wire == PB_WIRE_VARINT ? NULL : "varints";
    case PB_FLOATS: return wire == PB_WIRE_LEN || wire == PB_WIRE_I32 ? NULL : "32 bits";
    case PB_DOUBLES: return wire == PB_WIRE_LEN || wire == PB_WIRE_I64 ? NULL : "64 bits";
    }
    return "a known kind";
}

static bool read_message(Pb *pb, const PbMessage *m, Bytes bytes, uint32_t depth, void *out);

static void *new_message(Pb *pb, const PbMessage *m)
{
    if (++pb->messages > PB_MAX_MESSAGES)
        return diag_error(pb->d, E_PARSE_MODEL, pb->loc, "the file holds more than %u messages",
                          PB_MAX_MESSAGES);
    return arena_alloc(pb->a, m->size);
}

static const char *copy_text(Pb *pb, Bytes b)
{
    char *s = arena_alloc(pb->a, b.n + 1);

    if (b.n)
        memcpy(s, b.at, b.n);
    return s;
}

/* Store one occurrence of field `f`. */
static bool read_field(Pb *pb, Reader *r, const PbField *f, const PbItem *it, uint32_t depth,
                       void *at)
{
    void *sub;

    switch (f->kind) {
    case PB_INT: *(int64_t *)at = (int64_t)it->value; return true;
    case PB_FLOAT: *(float *)at = as_float(it->value); return true;
    case PB_DOUBLE: *(double *)at = as_double(it->value); return true;
    case PB_TEXT: *(const char **)at = copy_text(pb, it->bytes); return true;
    case PB_BYTES: *(Bytes *)at = it->bytes; return true;
    case PB_TEXTS: vec_push(pb->a, (PbTexts *)at, copy_text(pb, it->bytes)); return true;
    case PB_BLOBS: vec_push(pb->a, (PbBlobs *)at, it->bytes); return true;
    case PB_INTS: {
        PbInts *v = at;

        if (it->wire == PB_WIRE_VARINT) {
            vec_push(pb->a, v, (int64_t)it->value);
        } else {
            Reader in = reader(it->bytes);

            while (reader_left(&in)) {
                int64_t x = (int64_t)read_varint(&in);

                if (in.bad)
                    return diag_error(pb->d, E_PARSE_MODEL, pb->loc,
                                      "byte %zu: packed numbers end early",
                                      (size_t)(it->bytes.at - pb->start));
                vec_push(pb->a, v, x);
            }
        }
        return true;
    }
    case PB_FLOATS:
    case PB_DOUBLES: {
        size_t size = f->kind == PB_FLOATS ? 4 : 8;

        if (it->wire == PB_WIRE_LEN && it->bytes.n % size)
            return diag_error(pb->d, E_PARSE_MODEL, pb->loc,
                              "byte %zu: %zu bytes do not hold whole numbers of %zu",
                              (size_t)(it->bytes.at - pb->start), it->bytes.n, size);
        if (it->wire == PB_WIRE_LEN)
            add_packed(pb->a, at, it->bytes);
        else
            add_packed(pb->a, at, gather_run(pb, r, it, size));
        return true;
    }
    case PB_MSG:
        if (!*(void **)at && !(*(void **)at = new_message(pb, f->sub)))
            return false;
        return read_message(pb, f->sub, it->bytes, depth + 1, *(void **)at);
    case PB_MSGS:
        if (!(sub = new_message(pb, f->sub)))
            return false;
        vec_push(pb->a, (PbMsgs *)at, sub);
        return read_message(pb, f->sub, it->bytes, depth + 1, sub);
    }
    return false;
}

static bool read_message(Pb *pb, const PbMessage *m, Bytes bytes, uint32_t depth, void *out)
{
    Reader r = reader(bytes);
    PbItem it;

    if (depth > PB_MAX_DEPTH)
        return diag_error(pb->d, E_PARSE_MODEL, pb->loc,
                          "byte %zu: messages are nested more than %d deep",
                          (size_t)(bytes.at - pb->start), PB_MAX_DEPTH);
    while (pb_next(&r, &it)) {
        const PbField *f = find_field(m, it.number);
        const char    *want;

        if (!f)
            continue;
        if ((want = wrong_wire(f->kind, it.wire)))
            return diag_error(pb->d, E_PARSE_MODEL, pb->loc,
                              "byte %zu: field %u of %s should be %s", (size_t)(r.at - pb->start),
                              it.number, m->name, want);
        if (f->has)
            *(bool *)((char *)out + f->has) = true;
        if (!read_field(pb, &r, f, &it, depth, (char *)out + f->offset))
            return false;
    }
    if (r.bad)
        return diag_error(pb->d, E_PARSE_MODEL, pb->loc,
                          "byte %zu: %s ends early or is not protobuf",
                          (size_t)(bytes.at - pb->start), m->name);
    return true;
}

bool pb_read(Diags *d, Arena *a, Loc loc, const PbMessage *m, Bytes bytes, void *out)
{
    Pb pb = {.d = d, .a = a, .loc = loc, .start = bytes.at};

    return read_message(&pb, m, bytes, 0, out);
}
