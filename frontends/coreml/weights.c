/* WeightParams: the numbers of a layer, as 32 or 16 bits each, or as 1 to 8 bits that stand for
 *
 *     scale * q + bias     linear quantization, for all or for each output channel
 *     table[q]             a look-up table
 *
 * Numbers of less than 8 bits follow each other without gaps, the high bits of a byte first. */
#include "frontends/coreml/coreml.h"

#include <string.h>

Bytes cml_unpacked(Arena *a, Bytes packed, int64_t n, uint32_t bits, bool high)
{
    uint8_t *out = arena_alloc(a, (size_t)n + 1);
    uint64_t at = 0;

    for (int64_t i = 0; i < n; i++)
        for (uint32_t k = 0; k < bits; k++, at++) {
            uint32_t bit = high ? 7 - (uint32_t)(at % 8) : (uint32_t)(at % 8);
            uint32_t is = packed.at[at / 8] >> bit & 1;

            out[i] |= (uint8_t)(is << (high ? bits - 1 - k : k));
        }
    return (Bytes){out, (size_t)n};
}

const char *cml_name(const CmlNode *n, const char *role)
{
    return intern_printf(n->b.c->strings, "%s.%s", n->b.loc.name, role);
}

static const Expr *constant(const CmlNode *n, const char *role, DType t, uint32_t rank,
                            const int64_t *dims, Bytes data)
{
    return expr_const(
        n->b.c, const_new(n->b.c, cml_name(n, role), type_tensor_i64(n->b.c, t, rank, dims), data),
        n->b.loc);
}

/* One number for all, or one for each channel, as it broadcasts with the weight. */
static const Expr *along(CmlNode *n, const char *role, Bytes v, uint32_t rank, const int64_t *dims,
                         uint32_t channels)
{
    int64_t cells = (int64_t)(v.n / sizeof(float));

    if (cells == 1)
        return constant(n, role, DT_F32, 0, NULL, v);
    if (channels >= rank || cells != dims[channels])
        return cml_error(n, E_IMPORT, "its %s are quantized by %lld numbers", role,
                         (long long)cells);
    return build_along(&n->b, constant(n, role, DT_F32, 1, &cells, v), rank, channels);
}

static const Expr *linear(CmlNode *n, const char *role, const CmlMessage *how, const Expr *q,
                          uint32_t rank, const int64_t *dims, uint32_t channels)
{
    const Build *b = &n->b;
    Bytes        scale = cml_read_floats(how, "scale"), bias = cml_read_floats(how, "bias");
    const Expr  *w = build_cast(b, q, DT_F32), *by;

    if (scale.n) {
        if (!(by = along(n, role, scale, rank, dims, channels)))
            return NULL;
        w = build_mul(b, w, by);
    }
    if (bias.n) {
        if (!(by = along(n, role, bias, rank, dims, channels)))
            return NULL;
        w = build_add(b, w, by);
    }
    return w;
}

static const Expr *looked_up(CmlNode *n, const char *role, const CmlMessage *how, Bytes q,
                             uint32_t rank, const int64_t *dims)
{
    Bytes  table = cml_read_floats(how, "float_value");
    size_t most = table.n / sizeof(float);
    float *out = NEW_ARRAY(n->b.c->arena, float, q.n + 1);

    for (size_t i = 0; i < q.n; i++) {
        if (q.at[i] >= most)
            return cml_error(n, E_IMPORT, "its %s have number %u of a table of %zu", role, q.at[i],
                             most);
        memcpy(&out[i], table.at + q.at[i] * sizeof(float), sizeof(float));
    }
    return constant(n, role, DT_F32, rank, dims, (Bytes){(void *)out, q.n * sizeof(float)});
}

static const Expr *quantized(CmlNode *n, const CmlMessage *m, const char *role, int64_t cells,
                             uint32_t rank, const int64_t *dims, uint32_t channels)
{
    Bytes      raw = cml_read_bytes(m, "raw_value"), i8 = cml_read_bytes(m, "int8_raw_value");
    CmlMessage how, kind;
    int64_t    bits;

    if (!cml_read_message(m, "quantization", 0, &how))
        return cml_error(n, E_IMPORT, "its %s are quantized, but how is not said", role);
    bits = i8.n ? 8 : cml_read_int(&how, "number_of_bits");
    if (bits < 1 || bits > 8 || (i8.n && i8.n != (size_t)cells) ||
        (!i8.n && raw.n != ((size_t)cells * (size_t)bits + 7) / 8))
        return cml_error(n, E_IMPORT, "its %s are %zu bytes for %lld numbers of %lld bits", role,
                         i8.n ? i8.n : raw.n, (long long)cells, (long long)bits);
    if (bits < 8)
        raw = cml_unpacked(n->b.c->arena, raw, cells, (uint32_t)bits, true);
    if (cml_read_message(&how, "lookup_table_quantization", 0, &kind) && !i8.n)
        return looked_up(n, role, &kind, raw, rank, dims);
    if (!cml_read_message(&how, "linear_quantization", 0, &kind))
        return cml_error(n, E_UNSUPPORTED, "its %s are quantized in a way that is not known", role);
    return linear(n, role, &kind,
                  constant(n, role, i8.n ? DT_I8 : DT_U8, rank, dims, i8.n ? i8 : raw), rank, dims,
                  channels);
}

const Expr *cml_weight_of(CmlNode *n, const CmlMessage *m, const char *role, uint32_t rank,
                          const int64_t *dims, uint32_t channels)
{
    Bytes   f32 = cml_read_floats(m, "float_value"), f16 = cml_read_bytes(m, "float16_value");
    int64_t cells = 1;

    for (uint32_t i = 0; i < rank; i++)
        if (dims[i] < 0 || !checked_mul(cells, dims[i], &cells) || cells > MAX_ELEMS)
            return cml_error(n, E_IMPORT, "its %s are too many, or there are none", role);
    if (!f32.n && !f16.n)
        return quantized(n, m, role, cells, rank, dims, channels);
    if (f32.n ? f32.n != (size_t)cells * 4 : f16.n != (size_t)cells * 2)
        return cml_error(n, E_IMPORT, "its %s are %zu numbers, not %lld", role,
                         f32.n ? f32.n / 4 : f16.n / 2, (long long)cells);
    return f32.n ? constant(n, role, DT_F32, rank, dims, f32)
                 : build_cast(&n->b, constant(n, role, DT_F16, rank, dims, f16), DT_F32);
}

const Expr *cml_weight(CmlNode *n, const char *field, uint32_t rank, const int64_t *dims,
                       uint32_t channels)
{
    CmlMessage m;

    if (!cml_read_message(&n->layer->message, field, 0, &m))
        return cml_error(n, E_IMPORT, "its %s are missing", field);
    return cml_weight_of(n, &m, field, rank, dims, channels);
}

int64_t cml_weight_cells(const CmlMessage *m)
{
    CmlMessage how;
    Bytes      raw = cml_read_bytes(m, "raw_value");
    int64_t    bits;

    if (cml_read_floats(m, "float_value").n)
        return (int64_t)cml_read_floats(m, "float_value").n / 4;
    if (cml_read_bytes(m, "float16_value").n)
        return (int64_t)cml_read_bytes(m, "float16_value").n / 2;
    bits = cml_read_message(m, "quantization", 0, &how) ? cml_read_int(&how, "number_of_bits") : 0;
    return bits < 1 ? 0 : (int64_t)(raw.n * 8 / (uint64_t)bits);
}
