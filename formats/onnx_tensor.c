/* ONNX's TensorProto: constants of a model, and values of tensors in .pb files.
 *
 * Elements come as raw_data or in one of the typed fields; either way, elements of less than 8 bits
 * lie in a byte together, the first in the low bits.  In a file of its own a tensor has no data
 * elsewhere. */
#include "formats/formats.h"

#include <string.h>

#define FIELD(number, kind, member) {number, kind, offsetof(OnnxTensor, member), 0, NULL}

static const PbField entry_fields[] = {
    {1, PB_TEXT, offsetof(OnnxEntry, key), 0, NULL},
    {2, PB_TEXT, offsetof(OnnxEntry, value), 0, NULL},
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
    {9, PB_BYTES, offsetof(OnnxTensor, raw_data), offsetof(OnnxTensor, has_raw), NULL},
    FIELD(10, PB_DOUBLES, double_data),
    FIELD(11, PB_INTS, uint64_data),
    {13, PB_MSGS, offsetof(OnnxTensor, external_data), 0, &onnx_entry},
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

bool tensor_pb_read(Diags *d, Arena *a, Loc loc, Bytes file, Array *out)
{
    OnnxTensor t = {0};
    uint64_t   n = 1;

    if (!pb_read(d, a, loc, &onnx_tensor, file, &t))
        return false;
    if (!onnx_dtype_code(t.data_type, &out->code, &out->bits))
        return diag_error(d, E_UNSUPPORTED, loc, "a tensor of element type %s (%lld)",
                          onnx_dtype_text(t.data_type), (long long)t.data_type);
    if (t.data_location)
        return diag_error(d, E_UNSUPPORTED, loc, "the data of the tensor are in another file");
    if (t.dims.n > ARRAY_MAX_DIMS)
        return diag_error(d, E_UNSUPPORTED, loc, "the tensor has %u dimensions, more than %d",
                          t.dims.n, ARRAY_MAX_DIMS);
    for (uint32_t i = 0; i < t.dims.n; i++)
        if (t.dims.at[i] < 0 || !checked_mul(n, (uint64_t)t.dims.at[i], &n))
            return diag_error(d, E_PARSE_MODEL, loc,
                              "the tensor is too large or has a dimension below 0");
    if (!checked_mul(n, (uint64_t)out->bits, &n) || n > UINT64_MAX - 7)
        return diag_error(d, E_PARSE_MODEL, loc, "the tensor is too large");
    out->name = t.name ? t.name : "";
    out->ndim = t.dims.n;
    out->dims = DUP_ARRAY(a, t.dims.at, t.dims.n);
    out->data = onnx_tensor_data(a, &t);
    out->file = loc.file;
    return out->data.n == (n + 7) / 8 ||
           diag_error(d, E_PARSE_MODEL, loc,
                      "the tensor has %zu bytes of data, but its shape needs %llu", out->data.n,
                      (unsigned long long)(n + 7) / 8);
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

Bytes tensor_pb_write(Arena *a, const Array *v)
{
    StrBuf s = strbuf(a);

    for (uint32_t i = 0; i < v->ndim; i++) {
        add_tag(&s, 1, PB_WIRE_VARINT);
        add_varint(&s, (uint64_t)v->dims[i]);
    }
    add_tag(&s, 2, PB_WIRE_VARINT);
    add_varint(&s, (uint64_t)onnx_dtype_number(v->code, v->bits));
    add_tag(&s, 8, PB_WIRE_LEN);
    add_varint(&s, strlen(v->name));
    str_add(&s, v->name);
    add_tag(&s, 9, PB_WIRE_LEN);
    add_varint(&s, v->data.n);
    str_addn(&s, (const char *)v->data.at, v->data.n);
    return (Bytes){(const uint8_t *)s.at, s.n};
}
