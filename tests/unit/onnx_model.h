/* Writes ONNX models, for tests of their reader: messages are put together from fields.
 *
 *     Model m = onnx_model_new(arena, 17);
 *     onnx_input(&m, "x", 1, 2, (int64_t[]){2, 3});
 *     onnx_node(&m, "Relu", "x", "y", NULL);
 *     onnx_output(&m, "y");
 *     Bytes file = onnx_model_bytes(&m);
 */
#ifndef TVMCC_TESTS_ONNX_MODEL_H
#define TVMCC_TESTS_ONNX_MODEL_H

#include "base/base.h"

#include <string.h>

typedef struct {
    Arena  *arena;
    StrBuf  graph;
    int64_t opset, ir_version;
} Model;

static inline void put_varint(StrBuf *s, uint64_t v)
{
    for (; v > 127; v >>= 7)
        str_addc(s, (char)((v & 127) | 128));
    str_addc(s, (char)v);
}

static inline void put_int(StrBuf *s, uint32_t field, int64_t v)
{
    put_varint(s, field << 3);
    put_varint(s, (uint64_t)v);
}

static inline void put_bytes(StrBuf *s, uint32_t field, const void *at, size_t n)
{
    put_varint(s, field << 3 | 2);
    put_varint(s, n);
    str_addn(s, at, n);
}

static inline void put_text(StrBuf *s, uint32_t field, const char *text)
{
    put_bytes(s, field, text, strlen(text));
}

static inline void put_message(StrBuf *s, uint32_t field, const StrBuf *m)
{
    put_bytes(s, field, m->at ? m->at : "", m->n);
}

static inline Model onnx_model_new(Arena *a, int64_t opset)
{
    return (Model){a, strbuf(a), opset, 8};
}

/* A tensor of these cells: `type` is that of onnx.proto, `rank` 0 a scalar. */
static inline void onnx_init(Model *m, const char *name, int type, uint32_t rank,
                             const int64_t *dims, const void *cells, size_t bytes)
{
    StrBuf t = strbuf(m->arena);

    for (uint32_t i = 0; i < rank; i++)
        put_int(&t, 1, dims[i]);
    put_int(&t, 2, type);
    put_text(&t, 8, name);
    put_bytes(&t, 9, cells, bytes);
    put_message(&m->graph, 5, &t);
}

/* `rank` UINT32_MAX: its type is not said. */
static inline void onnx_value(Model *m, uint32_t field, const char *name, int type, uint32_t rank,
                              const int64_t *dims)
{
    StrBuf value = strbuf(m->arena), shape = strbuf(m->arena), tensor = strbuf(m->arena),
           both = strbuf(m->arena);

    put_text(&value, 1, name);
    if (rank != UINT32_MAX) {
        for (uint32_t i = 0; i < rank; i++) {
            StrBuf dim = strbuf(m->arena);

            put_int(&dim, 1, dims[i]);
            put_message(&shape, 1, &dim);
        }
        put_int(&tensor, 1, type);
        put_message(&tensor, 2, &shape);
        put_message(&both, 1, &tensor);
        put_message(&value, 2, &both);
    }
    put_message(&m->graph, field, &value);
}

static inline void onnx_input(Model *m, const char *name, int type, uint32_t rank,
                              const int64_t *dims)
{
    onnx_value(m, 11, name, type, rank, dims);
}

static inline void onnx_output(Model *m, const char *name)
{
    onnx_value(m, 12, name, 0, UINT32_MAX, NULL);
}

static inline StrBuf onnx_attr_int(Arena *a, const char *name, int64_t v)
{
    StrBuf s = strbuf(a);

    put_text(&s, 1, name);
    put_int(&s, 3, v);
    put_int(&s, 20, 2);
    return s;
}

/* Names between spaces; "_" is one that is left out. */
static inline void put_names(StrBuf *s, Arena *a, uint32_t field, const char *names)
{
    while (*names) {
        size_t n = strcspn(names, " ");

        put_text(s, field, n == 1 && *names == '_' ? "" : arena_printf(a, "%.*s", (int)n, names));
        names += n + (names[n] == ' ');
    }
}

/* `attr` may be NULL. */
static inline void onnx_node(Model *m, const char *op, const char *ins, const char *outs,
                             const StrBuf *attr)
{
    StrBuf node = strbuf(m->arena);

    put_names(&node, m->arena, 1, ins);
    put_names(&node, m->arena, 2, outs);
    put_text(&node, 4, op);
    if (attr)
        put_message(&node, 5, attr);
    put_message(&m->graph, 1, &node);
}

static inline Bytes onnx_model_bytes(const Model *m)
{
    StrBuf whole = strbuf(m->arena), opset = strbuf(m->arena);

    put_int(&opset, 2, m->opset);
    put_int(&whole, 1, m->ir_version);
    put_message(&whole, 7, &m->graph);
    put_message(&whole, 8, &opset);
    return (Bytes){(const uint8_t *)whole.at, whole.n};
}

#endif
