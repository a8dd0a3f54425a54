/* Making tensors: constants, shapes, ranges. */
#include "frontends/onnx/onnx.h"

#include <math.h>
#include <string.h>

bool convert_constant(Node *n)
{
    const Build    *b = &n->b;
    const OnnxAttr *a;
    int64_t         one;

    if ((a = node_attr(n, "value")) && a->t)
        return node_done(n, onnx_constant(n->im, a->t, b->loc));
    if ((a = node_attr(n, "value_float")))
        return node_done(n, build_const(b, DT_F32, 0, NULL, &a->f));
    if ((a = node_attr(n, "value_int")))
        return node_done(n, build_const(b, DT_I64, 0, NULL, &a->i));
    if ((a = node_attr(n, "value_floats"))) {
        one = (int64_t)(a->floats.data.n / 4);
        return node_done(n, build_const(b, DT_F32, 1, &one, a->floats.data.at));
    }
    if ((a = node_attr(n, "value_ints")))
        return node_done(n, build_i64s(b, a->ints.n, a->ints.at));
    if ((a = node_attr(n, "value_strings")))
        return node_done(n, onnx_strings_of(n, a->strings.n, a->strings.at));
    if ((a = node_attr(n, "value_string")))
        return node_done(n, onnx_string(n->im, build_take(b, onnx_strings_of(n, 1, &a->s),
                                                          cell_number(b, 0), 0)));
    return node_error(n, E_UNSUPPORTED, "a constant that is no dense tensor of numbers");
}

/* Above this many bytes a filled tensor is a call that fills it, not a constant. */
#define FILL_BYTES (1 << 18)

static const Expr *filled(const Build *b, const Expr *value, Dims shape)
{
    DType      t = expr_dtype(value);
    uint32_t   size = dtype_bytes(t);
    InitAttrs *a = ATTRS(b, InitAttrs);
    int64_t    elems;
    uint8_t   *cells;

    if (!type_elems(type_tensor(b->c, t, shape.n, shape.at), &elems) || elems * size > FILL_BYTES) {
        a->shape = shape;
        a->dtype = t;
        return build1(b, "full", value, a);
    }
    cells = arena_array(b->c->arena, (size_t)elems + 1, size);
    for (int64_t i = 0; i < elems; i++)
        memcpy(cells + i * size, value->u.constant->data.at, size);
    return expr_const(b->c,
                      const_new(b->c, NULL, type_tensor(b->c, t, shape.n, shape.at),
                                (Bytes){cells, (size_t)elems * size}),
                      b->loc);
}

bool convert_constant_of_shape(Node *n)
{
    const Build    *b = &n->b;
    const OnnxAttr *a = node_attr(n, "value");
    const Expr     *value;
    Dims            shape;

    if (!node_sizes(n, 0, 0, 0, &shape))
        return false;
    value = a && a->t ? onnx_constant(n->im, a->t, b->loc) : build_zeros(b, DT_F32, 0, NULL);
    if (!value)
        return false;
    if (!expr_single(value))
        return node_error(n, E_IMPORT, "value should be one number");
    value = build_const(b, expr_dtype(value), 0, NULL, value->u.constant->data.at);
    return node_done(n, filled(b, value, shape));
}

/* The cells start .. end of a shape; negative numbers count from the end. */
bool convert_shape(Node *n)
{
    int64_t rank, start = node_int(n, "start", 0), end, cells;

    if (!node_need_rank(n, 0, 0, MAX_RANK))
        return false;
    rank = expr_rank(n->in[0]);
    end = node_int(n, "end", rank);
    start = start < -rank ? 0 : start < 0 ? start + rank : start > rank ? rank : start;
    end = end < -rank ? 0 : end < 0 ? end + rank : end > rank ? rank : end;
    if (end < start)
        end = start;
    cells = end - start;
    return node_done(n, build_values(&n->b, type_tensor_i64(n->b.c, DT_I64, 1, &cells),
                                     (Dims){(uint32_t)cells, n->in[0]->type->dims + start}));
}

bool convert_size(Node *n)
{
    const Idx *cells;

    if (!node_need_rank(n, 0, 0, MAX_RANK))
        return false;
    cells = type_cells(n->b.c, n->in[0]->type);
    return node_done(
        n, build_values(&n->b, type_tensor_i64(n->b.c, DT_I64, 0, NULL), (Dims){1, &cells}));
}

#define RANGE_MAX (1 << 24)

bool convert_range(Node *n)
{
    const Build *b = &n->b;
    const Expr  *k[3];
    double       v[3], count;
    int64_t      iv[3] = {0}, cells;
    uint8_t     *at;
    DType        t;

    for (uint32_t i = 0; i < 3; i++) {
        if (!node_need_rank(n, i, 0, 1))
            return false;
        if (!expr_single(n->in[i]) || !dtype_eq(expr_dtype(n->in[i]), expr_dtype(n->in[0])))
            return node_error(n, E_IMPORT,
                              "start, limit and delta have to be of one type and cell");
    }
    for (uint32_t i = 0; i < 3; i++)
        if (!node_known(n, i))
            return range_at_run(n);
    for (uint32_t i = 0; i < 3; i++)
        if (map_get(n->im->sizes, PTR_KEY(n->in[i])))
            return node_done(n, build_range_forms(b, n->in[0], n->in[1], n->in[2]));
    for (uint32_t i = 0; i < 3; i++) {
        if (!node_const_float(n, i, &v[i]))
            return false;
        k[i] = build_fold(b, n->in[i]);
        iv[i] = dtype_get_i(expr_dtype(k[i]), k[i]->u.constant->data.at);
    }
    t = expr_dtype(n->in[0]);
    if (!dtype_eq(t, expr_dtype(n->in[1])) || !dtype_eq(t, expr_dtype(n->in[2])) || v[2] == 0)
        return node_error(n, E_IMPORT,
                          "start, limit and delta have to be of one type, delta not 0");
    count = ceil((v[1] - v[0]) / v[2]);
    if (!(count <= RANGE_MAX))
        return node_error(n, E_DIM, "the range has %g numbers", count);
    cells = count > 0 ? (int64_t)count : 0;
    at = arena_array(b->c->arena, (size_t)cells + 1, dtype_bytes(t));
    for (int64_t i = 0; i < cells; i++) {
        void *p = at + i * dtype_bytes(t);

        if (dtype_is_float(t))
            dtype_put_f(t, p, v[0] + (double)i * v[2]);
        else
            dtype_put_i(t, p, (int64_t)((uint64_t)iv[0] + (uint64_t)i * (uint64_t)iv[2]));
    }
    return node_done(n, build_const(b, t, 1, &cells, at));
}

/* Without a delta, which may be left out, in steps of 1. */
bool convert_range_by_one(Node *n)
{
    const Expr **in = NEW_ARRAY(n->b.c->arena, const Expr *, 3);

    for (uint32_t i = 0; i < n->nin && i < 3; i++)
        in[i] = n->in[i];
    if (!in[2])
        in[2] = build_scalar(&n->b, in[0], 1);
    n->in = in;
    n->nin = 3;
    return convert_range(n);
}

bool convert_eye_like(Node *n)
{
    const Build *b = &n->b;
    int64_t      k = node_int(n, "k", 0), rows, columns;
    uint8_t     *at;
    DType        t;
    Ints         d;

    if (!node_need_rank(n, 0, 2, 2))
        return false;
    d = build_dims(b, n->in[0]);
    rows = d.at[0];
    columns = d.at[1];
    t = expr_dtype(n->in[0]);
    if (node_attr(n, "dtype") && !onnx_dtype(node_int(n, "dtype", 0), &t))
        return node_error(n, E_UNSUPPORTED, "element type %s",
                          onnx_dtype_text(node_int(n, "dtype", 0)));
    if (build_elems(b, n->in[0]) > RANGE_MAX || k < -RANGE_MAX || k > RANGE_MAX)
        return node_error(n, E_UNSUPPORTED, "a matrix of %lld x %lld", (long long)rows,
                          (long long)columns);
    at = arena_array(b->c->arena, (size_t)(rows * columns) + 1, dtype_bytes(t));
    for (int64_t i = 0; i < rows; i++)
        if (i + k >= 0 && i + k < columns)
            dtype_put_f(t, at + (i * columns + i + k) * dtype_bytes(t), 1);
    return node_done(n, build_const(b, t, 2, d.at, at));
}
