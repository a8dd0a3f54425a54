/* Values that a net gives. */
#include "frontends/caffe2/caffe2.h"

#include <string.h>

bool c2_shape(C2Node *n, Ints *shape, int64_t *cells)
{
    *shape = c2_ints(n, "shape");
    *cells = 1;
    if (shape->n > MAX_RANK)
        return c2_error(n, E_UNSUPPORTED, "%u dimensions", shape->n);
    for (uint32_t i = 0; i < shape->n; i++)
        if (shape->at[i] < 0 || !checked_mul(*cells, shape->at[i], cells) || *cells > MAX_ELEMS)
            return c2_error(n, E_IMPORT, "dimension %u is %lld", i, (long long)shape->at[i]);
    return true;
}

/* The cells as the file has them; floats are views of it where they lie together. */
bool c2_given(C2Node *n)
{
    const Build *b = &n->b;
    const char  *kind = n->row->name;
    const C2Arg *a = c2_arg_of(n->op, "values");
    DType        t = !strcmp(kind, "GivenTensorFill")         ? DT_F32
                     : !strcmp(kind, "GivenTensorDoubleFill") ? DT_F64
                     : !strcmp(kind, "GivenTensorIntFill")    ? DT_I32
                     : !strcmp(kind, "GivenTensorBoolFill")   ? DT_BOOL
                                                              : DT_I64;
    bool         floats = dtype_is_float(t);
    int64_t      cells, have;
    uint8_t     *at;
    Ints         shape;

    if (!c2_shape(n, &shape, &cells))
        return false;
    have = !a ? 0 : floats ? (int64_t)(a->floats.data.n / sizeof(float)) : a->ints.n;
    if (have != cells)
        return c2_error(n, E_IMPORT, "%lld values for %lld cells", (long long)have,
                        (long long)cells);
    if (dtype_eq(t, DT_F32) && cells)
        return c2_done(
            n, expr_const(b->c,
                          const_new(b->c, b->loc.name, type_tensor_i64(b->c, t, shape.n, shape.at),
                                    a->floats.data),
                          b->loc));
    at = arena_array(b->c->arena, (size_t)cells + 1, dtype_bytes(t));
    for (int64_t i = 0; i < cells; i++) {
        uint8_t *cell = at + (size_t)i * dtype_bytes(t);
        float    f;

        if (floats) {
            memcpy(&f, a->floats.data.at + (size_t)i * sizeof f, sizeof f);
            dtype_put_f(t, cell, (double)f);
        } else {
            dtype_put_i(t, cell, a->ints.at[i]);
        }
    }
    return c2_done(n, build_const(b, t, shape.n, shape.at, at));
}

/* One number; of the operand's shape, if there is one. */
bool c2_constant(C2Node *n)
{
    const Build *b = &n->b;
    const C2Arg *a = c2_arg_of(n->op, "value");
    int64_t      kind = c2_int(n, "dtype", a && a->has_i && !a->has_f ? 2 : 1), cells;
    DType        t = kind == 1 ? DT_F32 : kind == 2 ? DT_I32 : kind == 10 ? DT_I64 : DT_BOOL;
    const Expr  *v;
    Ints         shape;

    if (kind != 1 && kind != 2 && kind != 5 && kind != 10)
        return c2_error(n, E_UNSUPPORTED, "dtype=%lld", (long long)kind);
    if (c2_int(n, "input_as_shape", 0) || c2_ints(n, "extra_shape").n)
        return c2_error(n, E_UNSUPPORTED, "a shape that is an operand");
    if (!c2_shape(n, &shape, &cells))
        return false;
    v = expr_scalar(b->c, t, c2_float(n, "value", 0));
    if (n->nin)
        return c2_done(n, build_broadcast_to(b, v, expr_rank(n->in[0]), expr_forms(n->in[0]).at));
    return c2_done(n, build_broadcast(b, v, shape.n, shape.at));
}
