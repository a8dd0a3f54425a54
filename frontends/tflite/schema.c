/* The tables of a .tflite file, as far as they are used, and whether they refer to each other
 * rightly. */
#include "frontends/tflite/tflite.h"

#include <string.h>

/* Fields of the struct T. */
#define INT(slot, kind, member) INT_OR(slot, kind, member, 0)
#define INT_OR(slot, kind, member, fallback) \
    {slot, FB_##kind, offsetof(T, member), fallback, FB_I32, NULL}
#define PLAIN(slot, kind, member) {slot, FB_##kind, offsetof(T, member), 0, FB_I32, NULL}
#define VECTOR(slot, cell, member) {slot, FB_VECTOR, offsetof(T, member), 0, FB_##cell, NULL}
#define SUB(slot, member, type) {slot, FB_TABLE, offsetof(T, member), 0, FB_I32, &type}
#define SUBS(slot, member, type) {slot, FB_TABLES, offsetof(T, member), 0, FB_I32, &type}
#define FIELDS(type, name, list) static const FbType type = {name, sizeof(T), COUNT(list), list}

#define T TfliteQuant
static const FbField quant_fields[] = {
    VECTOR(2, F32, scale),
    VECTOR(3, I64, zero_point),
    INT(4, U8, details),
    INT(6, I32, axis),
};
FIELDS(quant_type, "QuantizationParameters", quant_fields);
#undef T

#define T TfliteSparseDim
static const FbField sparse_dim_fields[] = {
    INT(0, I8, format),      INT(1, I32, dense_size),  INT(2, U8, segments_type),
    PLAIN(3, ANY, segments), INT(4, U8, indices_type), PLAIN(5, ANY, indices),
};
FIELDS(sparse_dim_type, "DimensionMetadata", sparse_dim_fields);
#undef T

#define T TfliteSparsity
static const FbField sparsity_fields[] = {
    VECTOR(0, I32, order),
    VECTOR(1, I32, blocks),
    SUBS(2, dims, sparse_dim_type),
};
FIELDS(sparsity_type, "SparsityParameters", sparsity_fields);
#undef T

#define T TfliteTensor
static const FbField tensor_fields[] = {
    VECTOR(0, I32, shape),
    INT(1, I8, type),
    INT(2, U32, buffer),
    PLAIN(3, TEXT, name),
    SUB(4, quant, quant_type),
    INT(5, BOOL, is_variable),
    SUB(6, sparsity, sparsity_type),
    VECTOR(7, I32, signature),
    INT(8, BOOL, has_rank),
    INT(10, U32, external),
};
FIELDS(tensor_type, "Tensor", tensor_fields);
#undef T

#define T TfliteOperator
static const FbField operator_fields[] = {
    INT(0, U32, opcode),        VECTOR(1, I32, in),         VECTOR(2, I32, out),
    INT(3, U8, options_type),   PLAIN(4, ANY, options),     PLAIN(5, BYTES, custom),
    VECTOR(8, I32, between),    INT(9, U64, custom_offset), INT(10, U64, custom_size),
    INT(11, U8, options2_type), PLAIN(12, ANY, options2),
};
FIELDS(operator_type, "Operator", operator_fields);
#undef T

#define T TfliteGraph
static const FbField graph_fields[] = {
    SUBS(0, tensors, tensor_type),     VECTOR(1, I32, in),   VECTOR(2, I32, out),
    SUBS(3, operators, operator_type), PLAIN(4, TEXT, name),
};
FIELDS(graph_type, "SubGraph", graph_fields);
#undef T

#define T TfliteOpcode
static const FbField opcode_fields[] = {
    INT(0, I8, deprecated),
    PLAIN(1, TEXT, custom),
    INT_OR(2, I32, version, 1),
    INT(3, I32, code),
};
FIELDS(opcode_type, "OperatorCode", opcode_fields);
#undef T

#define T TfliteName
static const FbField name_fields[] = {PLAIN(0, TEXT, name), INT(1, U32, tensor)};
FIELDS(name_type, "TensorMap", name_fields);
#undef T

#define T TfliteSignature
static const FbField signature_fields[] = {
    SUBS(0, in, name_type),
    SUBS(1, out, name_type),
    PLAIN(2, TEXT, key),
    INT(4, U32, graph),
};
FIELDS(signature_type, "SignatureDef", signature_fields);
#undef T

#define T TfliteBuffer
static const FbField buffer_fields[] = {
    PLAIN(0, BYTES, data),
    INT(1, U64, offset),
    INT(2, U64, size),
};
FIELDS(buffer_type, "Buffer", buffer_fields);
#undef T

#define T TfliteModel
static const FbField model_fields[] = {
    INT(0, U32, version),          SUBS(1, opcodes, opcode_type),       SUBS(2, graphs, graph_type),
    SUBS(4, buffers, buffer_type), SUBS(7, signatures, signature_type),
};
FIELDS(model_type, "Model", model_fields);
#undef T

/* ---- element types ------------------------------------------------------------------------------ */

/* In the order of their numbers.  Integers of 4 bits are unpacked to bytes when they are read. */
static const struct {
    const char *name;
    bool        ours;
    DType       t;
} dtypes[] = {
    {"f32", true, DT_F32},   {"f16", true, DT_F16},      {"i32", true, DT_I32},
    {"u8", true, DT_U8},     {"i64", true, DT_I64},      {"string", false, DT_U8},
    {"bool", true, DT_BOOL}, {"i16", true, DT_I16},      {"complex64", false, DT_U8},
    {"i8", true, DT_I8},     {"f64", true, DT_F64},      {"complex128", false, DT_U8},
    {"u64", true, DT_U64},   {"resource", false, DT_U8}, {"variant", false, DT_U8},
    {"u32", true, DT_U32},   {"u16", true, DT_U16},      {"i4", true, DT_I8},
    {"bf16", true, DT_BF16},
};

bool tflite_dtype(int64_t type, DType *out)
{
    if (type < 0 || type >= (int64_t)COUNT(dtypes) || !dtypes[type].ours)
        return false;
    *out = dtypes[type].t;
    return true;
}

const char *tflite_dtype_name(int64_t type)
{
    return type >= 0 && type < (int64_t)COUNT(dtypes) ? dtypes[type].name : "?";
}

/* ---- references ----------------------------------------------------------------------------------- */

typedef struct {
    Ctx         *c;
    Loc          loc;
    TfliteModel *m;
    uint64_t     listed; /* tensors, by operators */
} Check;

/* Numbers of tensors, or -1 if they may be left out. */
static bool check_list(Check *k, const TfliteGraph *g, FbVector v, int64_t least, const char *what)
{
    for (uint32_t i = 0; i < v.n; i++) {
        int64_t at = fb_int_at(v, FB_I32, i);

        if (at < least || at >= (int64_t)g->tensors.n)
            return error_at(k->c, E_PARSE_MODEL, k->loc, "%s is tensor %lld of %u", what,
                            (long long)at, g->tensors.n);
    }
    /* Many operators with one long list would take far more time than the file has bytes. */
    k->listed += v.n;
    return k->listed <= k->m->file.n ||
           error_at(k->c, E_PARSE_MODEL, k->loc, "operators share lists of tensors");
}

static bool check_tensor(Check *k, TfliteTensor *t, uint32_t i)
{
    const char *name = t->name && *t->name ? t->name : arena_printf(k->c->arena, "tensor_%u", i);

    t->name = intern(k->c->strings, name);
    if (t->shape.n > MAX_RANK)
        return error_at(k->c, E_UNSUPPORTED, k->loc, "tensor '%s' has %u dimensions", t->name,
                        t->shape.n);
    if (t->buffer >= (int64_t)k->m->buffers.n && t->buffer != 0)
        return error_at(k->c, E_PARSE_MODEL, k->loc, "tensor '%s' is in buffer %lld of %u", t->name,
                        (long long)t->buffer, k->m->buffers.n);
    if (t->external)
        return error_at(k->c, E_UNSUPPORTED, k->loc, "tensor '%s' is in another file", t->name);
    if (t->quant && t->quant->details)
        return error_at(k->c, E_UNSUPPORTED, k->loc,
                        "tensor '%s' is quantized in another way than by scale and zero point",
                        t->name);
    for (uint32_t d = 0; d < t->shape.n; d++)
        if (fb_int_at(t->shape, FB_I32, d) < -1)
            return error_at(k->c, E_PARSE_MODEL, k->loc, "dimension %u of tensor '%s' is %lld", d,
                            t->name, (long long)fb_int_at(t->shape, FB_I32, d));
    return true;
}

/* Data may follow the FlatBuffer, which ends at 2 GB. */
static bool find_data(Check *k, int64_t offset, int64_t size, const char *what, Bytes *data)
{
    if (offset >= 0 && offset <= 1)
        return true;
    if (offset < 0 || offset > (int64_t)k->m->file.n || size < 0 ||
        size > (int64_t)k->m->file.n - offset)
        return error_at(k->c, E_PARSE_MODEL, k->loc, "%s outside the file", what);
    *data = (Bytes){k->m->file.at + offset, (size_t)size};
    return true;
}

static bool find_buffers(Check *k)
{
    for (uint32_t i = 0; i < k->m->buffers.n; i++) {
        TfliteBuffer *b = k->m->buffers.at[i];

        if (!find_data(k, b->offset, b->size, "a buffer lies", &b->data))
            return false;
    }
    return true;
}

/* Versions 0 to 2 had other tables, of which the fields here are no part. */
static bool check_version(Check *k, Bytes file)
{
    FbTable root;
    int64_t version;

    if (!fb_root(file, &root) || !fb_int(&root, 0, FB_U32, 0, &version) ||
        version >= TFLITE_VERSION)
        return true;
    error_at(k->c, E_UNSUPPORTED, k->loc,
             "the model is of version %lld of the format, from before its first release",
             (long long)version);
    diag_hint(k->c->diags, "convert it again: what is read, also by LiteRT, is version %d",
              TFLITE_VERSION);
    return false;
}

#define MOST_PORTS 4096

static bool check_graph(Check *k, const TfliteGraph *g)
{
    if (g->in.n > MOST_PORTS || g->out.n > MOST_PORTS)
        return error_at(k->c, E_UNSUPPORTED, k->loc, "a graph of more than %d inputs or outputs",
                        MOST_PORTS);
    for (uint32_t i = 0; i < g->tensors.n; i++)
        if (!check_tensor(k, g->tensors.at[i], i))
            return false;
    if (!check_list(k, g, g->in, 0, "an input") || !check_list(k, g, g->out, 0, "an output"))
        return false;
    for (uint32_t i = 0; i < g->operators.n; i++) {
        TfliteOperator *p = g->operators.at[i];

        if (!find_data(k, p->custom_offset, p->custom_size, "options of an operator lie",
                       &p->custom))
            return false;
        if (p->opcode >= (int64_t)k->m->opcodes.n)
            return error_at(k->c, E_PARSE_MODEL, k->loc, "operator %u has code %lld of %u", i,
                            (long long)p->opcode, k->m->opcodes.n);
        if (!check_list(k, g, p->in, -1, "an operator's input") ||
            !check_list(k, g, p->between, 0, "what an operator has between") ||
            !check_list(k, g, p->out, 0, "an operator's output"))
            return false;
    }
    return true;
}

const TfliteOpcode *tflite_opcode(const TfliteModel *m, const TfliteOperator *p)
{
    return m->opcodes.at[p->opcode];
}

/* ---- signatures ----------------------------------------------------------------------------------- */

static bool is_signature(const TfliteModel *m, const TfliteSignature *s)
{
    return s->key && *s->key && s->graph < (int64_t)m->graphs.n;
}

const char *const *tflite_signatures(Ctx *c, const TfliteModel *m, uint32_t *n)
{
    const char **names = NEW_ARRAY(c->arena, const char *, m->signatures.n + 1);

    *n = 0;
    for (uint32_t i = 0; i < m->signatures.n; i++) {
        const TfliteSignature *s = m->signatures.at[i];

        if (is_signature(m, s))
            names[(*n)++] = intern(c->strings, s->key);
    }
    return names;
}

/* The one of the first graph, if there is one and no more. */
static const TfliteSignature *first_signature(const TfliteModel *m)
{
    const TfliteSignature *found = NULL;

    for (uint32_t i = 0; i < m->signatures.n; i++) {
        const TfliteSignature *s = m->signatures.at[i];

        if (s->graph != 0)
            continue;
        if (found)
            return NULL;
        found = s;
    }
    return found;
}

static bool choose_main(Check *k, const char *asked)
{
    TfliteModel       *m = k->m;
    const char *const *names;
    uint32_t           n;

    m->main = m->graphs.at[0];
    m->signature = first_signature(m);
    if (!asked)
        return true;
    for (uint32_t i = 0; i < m->signatures.n; i++) {
        const TfliteSignature *s = m->signatures.at[i];

        if (!is_signature(m, s) || strcmp(s->key, asked) != 0)
            continue;
        m->signature = s;
        m->main = m->graphs.at[s->graph];
        return true;
    }
    names = tflite_signatures(k->c, m, &n);
    return no_signature(k->c, k->loc, asked, n, names) != NULL;
}

bool tflite_read(Ctx *c, Loc loc, Bytes file, const char *signature, TfliteModel *out)
{
    Check k = {c, loc, out, 0};

    *out = (TfliteModel){0};
    if (!check_version(&k, file) || !fb_read(c->diags, c->arena, loc, &model_type, file, out))
        return false;
    out->file = file;
    if (out->graphs.n == 0)
        return error_at(c, E_PARSE_MODEL, loc, "the file holds no graph");
    if (!find_buffers(&k))
        return false;
    for (uint32_t i = 0; i < out->graphs.n; i++)
        if (!check_graph(&k, out->graphs.at[i]))
            return false;
    return choose_main(&k, signature);
}

const char *tflite_port_name(Ctx *c, const TfliteModel *m, int64_t tensor, bool output)
{
    const TfliteSignature *s = m->signature;
    const FbTables        *list = s ? (output ? &s->out : &s->in) : NULL;

    for (uint32_t i = 0; list && i < list->n; i++) {
        const TfliteName *name = list->at[i];

        if (name->tensor == tensor && name->name && *name->name)
            return intern(c->strings, name->name);
    }
    return tflite_tensor(m->main, tensor)->name;
}
