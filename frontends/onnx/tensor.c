/* TensorProto: a constant of the model.
 *
 * Cells come as raw_data (a view of the file), as one of the typed fields, or from a file beside
 * the model (external.c).  Whatever it is, the number of cells must fit the shape. */
#include "frontends/onnx/onnx.h"

#include <string.h>

static const char *label(const OnnxTensor *t)
{
    return t->name && *t->name ? t->name : "(unnamed)";
}

enum { VIEW = 64 << 10 };

const Expr *onnx_constant(Import *im, const OnnxTensor *t, Loc loc)
{
    Ctx    *c = im->c;
    int64_t n = 1, bytes;
    DType   type;
    Bytes   data;

    if (t->data_type == ONNX_STRING)
        return onnx_string_constant(im, t, loc);
    if (!onnx_dtype(t->data_type, &type))
        return error_at(c, t->data_type <= 0 || t->data_type > 26 ? E_IMPORT : E_UNSUPPORTED, loc,
                        "tensor '%s' has element type %s (%lld), which is not supported", label(t),
                        onnx_dtype_text(t->data_type), (long long)t->data_type);
    if (t->dims.n > MAX_RANK)
        return error_at(c, E_UNSUPPORTED, loc, "tensor '%s' has %u dimensions, more than %d",
                        label(t), t->dims.n, MAX_RANK);
    for (uint32_t i = 0; i < t->dims.n; i++)
        if (t->dims.at[i] < 0 || !checked_mul(n, t->dims.at[i], &n) || n > MAX_ELEMS)
            return error_at(c, E_IMPORT, loc, "tensor '%s' is too large or has a dimension below 0",
                            label(t));
    bytes = n * dtype_bytes(type);
    if (t->data_location == 1) {
        if (!onnx_external(im, t, label(t), loc, ((uint64_t)n * type.bits + 7) / 8, &data))
            return NULL;
    } else {
        data = onnx_tensor_data(c->arena, t);
    }
    if (type.bits < 8 && data.n == ((size_t)n * type.bits + 7) / 8) {
        Array packed = {.bits = type.bits, .ndim = 1, .dims = &n, .data = data};

        data = array_unpacked(c->arena, &packed);
    }
    if (data.n != (size_t)bytes)
        return error_at(c, E_IMPORT, loc,
                        "tensor '%s' has %zu bytes of data, but its shape needs %lld", label(t),
                        data.n, (long long)bytes);
    if (dtype_is_bool(type))
        for (size_t i = 0; i < data.n; i++)
            if (data.at[i] > 1)
                return error_at(c, E_IMPORT, loc, "tensor '%s': a bool is %u", label(t),
                                data.at[i]);
    if (data.n == 0)
        data.at = arena_alloc(c->arena, 1); /* no cells are somewhere, too */
    if (data.n < VIEW && (uintptr_t)data.at % dtype_bytes(type)) {
        /* Aligned as C likes it.  Weights stay views of the file, whatever their address: compiled
         * code and dtype_get take any.  (Each initializer is converted once.) */
        void *copy = arena_alloc(c->arena, data.n);

        memcpy(copy, data.at, data.n);
        data.at = copy;
    }
    return expr_const(c,
                      const_new(c, t->name && *t->name ? intern(c->strings, t->name) : NULL,
                                type_tensor_i64(c, type, t->dims.n, t->dims.at), data),
                      loc);
}
