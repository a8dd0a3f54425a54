/* Tensors in the file: their bytes, or the first cells in a field of their type, of which the last
 * one stands for all that follow. */
#include "frontends/tensorflow/tensorflow.h"

#include <string.h>

#define MOST_BYTES ((int64_t)1 << 28) /* of cells that are written out */

static bool size_of(Ctx *c, Loc loc, const TfTensor *t, int64_t *dims, int64_t *cells)
{
    uint32_t rank = t->shape ? t->shape->dim.n : 0;

    *cells = 1;
    if (rank > MAX_RANK)
        return error_at(c, E_UNSUPPORTED, loc, "a constant of %u dimensions", rank);
    for (uint32_t i = 0; i < rank; i++) {
        dims[i] = ((const TfDim *)t->shape->dim.at[i])->size;
        if (dims[i] < 0 || !checked_mul(*cells, dims[i], cells) || *cells > MAX_ELEMS)
            return error_at(c, E_IMPORT, loc, "dimension %u of a constant is %lld", i,
                            (long long)dims[i]);
    }
    return true;
}

/* The field of its type: bytes as they are, or numbers. */
typedef struct {
    Bytes         bytes;
    const PbInts *ints;
    uint32_t      n;
} Cells;

static Cells cells_of(const TfTensor *t)
{
    const PbInts *v = &t->int_val;

    switch (t->dtype % TF_REF) {
    case TF_FLOAT: return (Cells){t->float_val.data, NULL, (uint32_t)(t->float_val.data.n / 4)};
    case TF_DOUBLE: return (Cells){t->double_val.data, NULL, (uint32_t)(t->double_val.data.n / 8)};
    case TF_HALF:
    case TF_BFLOAT16: v = &t->half_val; break;
    case TF_INT64: v = &t->int64_val; break;
    case TF_BOOL: v = &t->bool_val; break;
    case TF_UINT32: v = &t->uint32_val; break;
    case TF_UINT64: v = &t->uint64_val; break;
    default: break;
    }
    return (Cells){{0}, v, v->n};
}

static void put_cell(const Cells *v, uint32_t i, DType d, uint8_t *to)
{
    size_t bytes = dtype_bytes(d);

    if (!v->ints) {
        memcpy(to, v->bytes.at + (size_t)i * bytes, bytes);
        return;
    }
    uint64_t bits = (uint64_t)v->ints->at[i];
    if (dtype_is_bool(d))
        bits = bits != 0;
    for (size_t k = 0; k < bytes; k++)
        to[k] = (uint8_t)(bits >> (8 * k));
}

/* All of a constant from a few numbers. */
static const Expr *spread(TfImport *im, const TfTensor *t, DType d, const char *name, uint32_t rank,
                          const int64_t *dims, int64_t n, Loc loc)
{
    Ctx     *c = im->c;
    Build    b = {c, loc, "Const"};
    Cells    v = cells_of(t);
    bool     one = v.n <= 1 && n > 4096; /* the same cell again and again */
    int64_t  bytes = (one ? 1 : n) * (int64_t)dtype_bytes(d);
    uint8_t *at;

    if (v.n > n)
        return error_at(c, E_IMPORT, loc, "a constant of %lld cells has %u of them", (long long)n,
                        v.n);
    if (bytes > MOST_BYTES)
        return error_at(c, E_UNSUPPORTED, loc,
                        "a constant of %lld bytes, of which %u cells are there", (long long)bytes,
                        v.n);
    if (v.n == n && !v.ints && n > 0)
        return expr_const(c, const_new(c, name, type_tensor_i64(c, d, rank, dims), v.bytes), loc);
    at = arena_alloc(c->arena, (size_t)bytes + 1);
    for (int64_t i = 0; v.n && i < (one ? 1 : n); i++)
        put_cell(&v, i < v.n ? (uint32_t)i : v.n - 1, d, at + (size_t)i * dtype_bytes(d));
    if (one)
        return build_broadcast(&b, build_const(&b, d, 0, NULL, at), rank, dims);
    return expr_const(
        c, const_new(c, name, type_tensor_i64(c, d, rank, dims), (Bytes){at, (size_t)bytes}), loc);
}

const Expr *tf_constant(TfImport *im, const TfTensor *t, const char *name, Loc loc)
{
    Ctx     *c = im->c;
    uint32_t rank = t->shape ? t->shape->dim.n : 0;
    int64_t  dims[MAX_RANK], n;
    DType    d;

    if (!tf_dtype(t->dtype, &d))
        return error_at(c, E_UNSUPPORTED, loc, "Const '%s': it is of %s", name,
                        tf_dtype_name(c, t->dtype));
    if (!size_of(c, loc, t, dims, &n))
        return NULL;
    if (t->content.n == 0)
        return spread(im, t, d, name, rank, dims, n, loc);
    if (t->content.n != (size_t)n * dtype_bytes(d))
        return error_at(c, E_IMPORT, loc,
                        "Const '%s' has %zu bytes of data, but its shape needs %lld", name,
                        t->content.n, (long long)n * dtype_bytes(d));
    for (size_t i = 0; dtype_is_bool(d) && i < t->content.n; i++)
        if (t->content.at[i] > 1)
            return error_at(c, E_IMPORT, loc, "Const '%s': a bool is %u", name, t->content.at[i]);
    return expr_const(c, const_new(c, name, type_tensor_i64(c, d, rank, dims), t->content), loc);
}
