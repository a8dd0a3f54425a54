/* ONNX's TensorProto: constants of a model, and values in .pb files, where SequenceProto and
 * OptionalProto hold several or none.
 *
 * Elements come as raw_data or in one of the typed fields; either way, elements of less than 8 bits
 * lie in a byte together, the first in the low bits.  In a file of its own a tensor has no data
 * elsewhere. */
#include "formats/formats.h"

#include <string.h>

#define FIELD(number, kind, member) \
    {number, kind, offsetof(OnnxTensor, member), 0, NULL, NULL, NULL}

static const PbField entry_fields[] = {
    {1, PB_TEXT, offsetof(OnnxEntry, key), 0, NULL, NULL, NULL},
    {2, PB_TEXT, offsetof(OnnxEntry, value), 0, NULL, NULL, NULL},
};
static const PbMessage onnx_entry = {"OnnxEntry", sizeof(OnnxEntry), COUNT(entry_fields),
                                     entry_fields};

static const PbField tensor_fields[] = {
    FIELD(1, PB_INTS, dims),
    FIELD(2, PB_INT, data_type),
    FIELD(4, PB_FLOATS, float_data),
    FIELD(5, PB_INTS, int32_data),
    FIELD(6, PB_BLOBS, string_data),
    FIELD(7, PB_INTS, int64_data),
    FIELD(8, PB_TEXT, name),
    {9, PB_BYTES, offsetof(OnnxTensor, raw_data), offsetof(OnnxTensor, has_raw), NULL, NULL, NULL},
    FIELD(10, PB_DOUBLES, double_data),
    FIELD(11, PB_INTS, uint64_data),
    {13, PB_MSGS, offsetof(OnnxTensor, external_data), 0, &onnx_entry, NULL, NULL},
    FIELD(14, PB_INT, data_location),
};
const PbMessage onnx_tensor = {"OnnxTensor", sizeof(OnnxTensor), COUNT(tensor_fields),
                               tensor_fields};

/* ---- element types ---- */

static const struct {
    const char *text;
    int64_t     number;
    uint8_t     code, bits;
} types[] = {
#define ONNX_DTYPE(id, number, code, bits) {#id, number, code, bits},
#include "formats/onnx_dtype.def"
#undef ONNX_DTYPE
};

bool onnx_dtype_code(int64_t number, uint8_t *code, uint8_t *bits)
{
    for (uint32_t i = 0; i < COUNT(types); i++)
        if (types[i].number == number && types[i].bits) {
            *code = types[i].code;
            *bits = types[i].bits;
            return true;
        }
    return false;
}

int64_t onnx_dtype_number(uint8_t code, uint8_t bits)
{
    for (uint32_t i = 0; i < COUNT(types); i++)
        if (types[i].code == code && types[i].bits == bits)
            return types[i].number;
    return 0;
}

const char *onnx_dtype_text(int64_t number)
{
    for (uint32_t i = 0; i < COUNT(types); i++)
        if (types[i].number == number)
            return types[i].text;
    return number ? "unknown" : "UNDEFINED";
}

/* ---- elements ---- */

/* Numbers of the varint fields as elements of `size` bytes. */
static Bytes narrow(Arena *a, const PbInts *v, uint32_t size)
{
    uint8_t *out = arena_array(a, (size_t)v->n + 1, size);

    for (uint32_t i = 0; i < v->n; i++)
        for (uint32_t k = 0; k < size; k++)
            out[(size_t)i * size + k] = (uint8_t)((uint64_t)v->at[i] >> (8 * k));
    return (Bytes){out, (size_t)v->n * size};
}

Bytes onnx_tensor_data(Arena *a, const OnnxTensor *t)
{
    uint8_t code = 0, bits = 0;

    if (t->has_raw)
        return t->raw_data;
    onnx_dtype_code(t->data_type, &code, &bits);
    switch (t->data_type) {
    case ONNX_COMPLEX64:
    case ONNX_FLOAT: return t->float_data.data;
    case ONNX_COMPLEX128:
    case ONNX_DOUBLE: return t->double_data.data;
    case ONNX_INT64: return narrow(a, &t->int64_data, 8);
    case ONNX_UINT32:
    case ONNX_UINT64: return narrow(a, &t->uint64_data, bits / 8);
    default: return narrow(a, &t->int32_data, (bits + 7u) / 8);
    }
}

/* ---- files ---- */

static bool array_of(Diags *d, Arena *a, Loc loc, const OnnxTensor *t, Array *out)
{
    uint64_t n = 1;

    *out = (Array){0};
    if (t->data_type != ONNX_STRING && !onnx_dtype_code(t->data_type, &out->code, &out->bits))
        return diag_error(d, E_UNSUPPORTED, loc, "a tensor of element type %s (%lld)",
                          onnx_dtype_text(t->data_type), (long long)t->data_type);
    if (t->data_location)
        return diag_error(d, E_UNSUPPORTED, loc, "the data of the tensor are in another file");
    if (t->dims.n > ARRAY_MAX_DIMS)
        return diag_error(d, E_UNSUPPORTED, loc, "the tensor has %u dimensions, more than %d",
                          t->dims.n, ARRAY_MAX_DIMS);
    for (uint32_t i = 0; i < t->dims.n; i++)
        if (t->dims.at[i] < 0 || !checked_mul(n, (uint64_t)t->dims.at[i], &n))
            return diag_error(d, E_PARSE_MODEL, loc,
                              "the tensor is too large or has a dimension below 0");
    out->name = t->name ? t->name : "";
    if (t->data_type == ONNX_STRING && t->string_data.n != n)
        return diag_error(d, E_PARSE_MODEL, loc,
                          "the tensor has %u strings, but its shape needs %llu", t->string_data.n,
                          (unsigned long long)n);
    if (t->data_type == ONNX_STRING)
        return array_of_text(d, a, loc, n, t->string_data.at, t->dims.n, t->dims.at, out);
    if (!checked_mul(n, (uint64_t)out->bits, &n) || n > UINT64_MAX - 7)
        return diag_error(d, E_PARSE_MODEL, loc, "the tensor is too large");
    out->ndim = t->dims.n;
    out->dims = DUP_ARRAY(a, t->dims.at, t->dims.n);
    out->data = onnx_tensor_data(a, t);
    out->file = loc.file;
    return out->data.n == (n + 7) / 8 ||
           diag_error(d, E_PARSE_MODEL, loc,
                      "the tensor has %zu bytes of data, but its shape needs %llu", out->data.n,
                      (unsigned long long)(n + 7) / 8);
}

bool tensor_pb_read(Diags *d, Arena *a, Loc loc, Bytes file, Array *out)
{
    OnnxTensor t = {0};

    return pb_read(d, a, loc, &onnx_tensor, file, &t) && array_of(d, a, loc, &t, out);
}

static void add_tag(StrBuf *s, uint32_t number, PbWire wire)
{
    str_addc(s, (char)(number << 3 | wire));
}

static void add_varint(StrBuf *s, uint64_t v)
{
    for (; v > 127; v >>= 7)
        str_addc(s, (char)(v | 128));
    str_addc(s, (char)v);
}

static void add_bytes(StrBuf *s, uint32_t number, Bytes b)
{
    add_tag(s, number, PB_WIRE_LEN);
    add_varint(s, b.n);
    str_addn(s, (const char *)b.at, b.n);
}

static void add_text(StrBuf *s, uint32_t number, const char *text)
{
    add_bytes(s, number, (Bytes){(const uint8_t *)text, strlen(text)});
}

Bytes tensor_pb_write(Arena *a, const Array *v)
{
    StrBuf s = strbuf(a);

    for (uint32_t i = 0; i + v->text < v->ndim; i++) {
        add_tag(&s, 1, PB_WIRE_VARINT);
        add_varint(&s, (uint64_t)v->dims[i]);
    }
    add_tag(&s, 2, PB_WIRE_VARINT);
    add_varint(&s, (uint64_t)(v->text ? ONNX_STRING : onnx_dtype_number(v->code, v->bits)));
    for (size_t i = 0; v->text && i < array_strings(v); i++)
        add_bytes(&s, 6, array_string(v, i));
    add_text(&s, 8, v->name);
    if (!v->text)
        add_bytes(&s, 9, v->data);
    return (Bytes){(const uint8_t *)s.at, s.n};
}

/* ---- sequences and optional values ---- */

enum { HOLDS_NOTHING, HOLDS_TENSOR, HOLDS_SEQUENCE = 3 }; /* elem_type */

typedef struct {
    const char *name;
    int64_t     holds;
    PbMsgs      tensors;
} OnnxSequence;
typedef struct {
    const char   *name;
    int64_t       holds;
    OnnxTensor   *tensor;
    OnnxSequence *sequence;
} OnnxOptional;

static const PbField sequence_fields[] = {
    {1, PB_TEXT, offsetof(OnnxSequence, name), 0, NULL, NULL, NULL},
    {2, PB_INT, offsetof(OnnxSequence, holds), 0, NULL, NULL, NULL},
    {3, PB_MSGS, offsetof(OnnxSequence, tensors), 0, &onnx_tensor, NULL, NULL},
};
static const PbMessage onnx_sequence = {"OnnxSequence", sizeof(OnnxSequence),
                                        COUNT(sequence_fields), sequence_fields};

static const PbField optional_fields[] = {
    {1, PB_TEXT, offsetof(OnnxOptional, name), 0, NULL, NULL, NULL},
    {2, PB_INT, offsetof(OnnxOptional, holds), 0, NULL, NULL, NULL},
    {3, PB_MSG, offsetof(OnnxOptional, tensor), 0, &onnx_tensor, NULL, NULL},
    {5, PB_MSG, offsetof(OnnxOptional, sequence), 0, &onnx_sequence, NULL, NULL},
};
static const PbMessage onnx_optional = {"OnnxOptional", sizeof(OnnxOptional),
                                        COUNT(optional_fields), optional_fields};

static bool sequence_of(Diags *d, Arena *a, Loc loc, const OnnxSequence *s, FileValue *out)
{
    if (s->holds != HOLDS_TENSOR && s->holds != HOLDS_NOTHING)
        return diag_error(d, E_UNSUPPORTED, loc, "a sequence of other things than tensors");
    out->n = s->tensors.n;
    out->at = NEW_ARRAY(a, Array, out->n + 1);
    for (uint32_t i = 0; i < out->n; i++)
        if (!array_of(d, a, loc, s->tensors.at[i], &out->at[i]))
            return false;
    return true;
}

static bool optional_of(Diags *d, Arena *a, Loc loc, const OnnxOptional *o, FileValue *out)
{
    out->given = o->holds != HOLDS_NOTHING;
    if (!out->given)
        return true;
    if (o->holds != (out->sequence ? HOLDS_SEQUENCE : HOLDS_TENSOR))
        return diag_error(d, E_UNSUPPORTED, loc, "an optional value that is no %s",
                          out->sequence ? "sequence" : "tensor");
    if (out->sequence)
        return o->sequence ? sequence_of(d, a, loc, o->sequence, out) : true;
    if (!o->tensor)
        return diag_error(d, E_PARSE_MODEL, loc, "the tensor of the optional value is missing");
    out->n = 1;
    return array_of(d, a, loc, o->tensor, out->at);
}

bool value_pb_read(Diags *d, Arena *a, Loc loc, Bytes file, FileValue *out)
{
    OnnxSequence s = {0};
    OnnxOptional o = {0};

    out->n = 0;
    out->at = NEW_ARRAY(a, Array, 1);
    out->given = true;
    if (out->optional) {
        if (!pb_read(d, a, loc, &onnx_optional, file, &o) || !optional_of(d, a, loc, &o, out))
            return false;
        out->name = o.name ? o.name : "";
    } else if (out->sequence) {
        if (!pb_read(d, a, loc, &onnx_sequence, file, &s) || !sequence_of(d, a, loc, &s, out))
            return false;
        out->name = s.name ? s.name : "";
    } else {
        out->n = 1;
        if (!tensor_pb_read(d, a, loc, file, out->at))
            return false;
        out->name = out->at->name;
    }
    return true;
}

static void begin_value(StrBuf *s, const char *name, uint64_t holds)
{
    add_text(s, 1, name);
    add_tag(s, 2, PB_WIRE_VARINT);
    add_varint(s, holds);
}

Bytes value_pb_write(Arena *a, const FileValue *v)
{
    StrBuf s = strbuf(a);
    Bytes  tensor = v->n ? tensor_pb_write(a, v->at) : (Bytes){0};

    if (!v->optional && !v->sequence)
        return tensor;
    if (v->optional) {
        FileValue inner = *v;

        inner.optional = false;
        begin_value(&s, v->name,
                    !v->given     ? HOLDS_NOTHING
                    : v->sequence ? HOLDS_SEQUENCE
                                  : HOLDS_TENSOR);
        if (v->given)
            add_bytes(&s, v->sequence ? 5 : 3, value_pb_write(a, &inner));
    } else {
        begin_value(&s, v->name, HOLDS_TENSOR);
        for (uint32_t i = 0; i < v->n; i++)
            add_bytes(&s, 3, tensor_pb_write(a, &v->at[i]));
    }
    return (Bytes){(const uint8_t *)s.at, s.n};
}
