/* What is made from shapes and numbers. */
#include "frontends/tflite/tflite.h"

#include <math.h>

static bool int_out(const TfliteNode *n, DType *t)
{
    return (tflite_dtype(tflite_out(n, 0)->type, t) && dtype_is_int(*t)) ||
           tflite_error(n, E_IMPORT, "a shape as %s", tflite_dtype_name(tflite_out(n, 0)->type));
}

bool tflite_shape(TfliteNode *n)
{
    const Expr *x = n->in[0];
    DType       t;

    return int_out(n, &t) &&
           tflite_done(n,
                       build_values(&n->b, type_tensor_i64(n->b.c, t, 1, (int64_t[]){expr_rank(x)}),
                                    expr_forms(x)));
}

bool tflite_rank_of(TfliteNode *n)
{
    return tflite_done(n, expr_scalar(n->b.c, DT_I32, expr_rank(n->in[0])));
}

/* The shape that two shapes broadcast to. */
bool tflite_broadcast_args(TfliteNode *n)
{
    Dims  x, y, v;
    DType t;

    return int_out(n, &t) && tflite_forms(n, 0, &x) && tflite_forms(n, 1, &y) &&
           build_broadcast_dims(&n->b, x, y, &v) &&
           tflite_done(n, build_values(&n->b, type_tensor_i64(n->b.c, t, 1, (int64_t[]){v.n}), v));
}

bool tflite_fill(TfliteNode *n)
{
    Dims v;

    return tflite_forms(n, 0, &v) && build_check_shape(&n->b, v) && tflite_rank(n, 1, 0, 0) &&
           tflite_done(n, build_broadcast_to(&n->b, n->in[1], v.n, v.at));
}

bool tflite_zeros_like(TfliteNode *n)
{
    Dims d = expr_forms(n->in[0]);

    return tflite_done(n, build_broadcast_to(&n->b, build_scalar(&n->b, n->in[0], 0), d.n, d.at));
}

#define MOST_CELLS ((double)(1 << 28))

/* From input 0 up to input 1 in steps of input 2. */
bool tflite_range(TfliteNode *n)
{
    const Build *b = &n->b;
    double       v[3], cells;
    DType        t = expr_dtype(n->in[0]);
    int64_t      count;
    uint8_t     *at;

    for (uint32_t i = 0; i < 3; i++)
        if (!expr_const_f(n->in[i], &v[i]) || !expr_single(n->in[i]) || !isfinite(v[i]))
            return tflite_error(n, E_UNSUPPORTED, "input %u has to be known when it is compiled",
                                i);
    if (v[2] == 0)
        return tflite_error(n, E_IMPORT, "a step of 0");
    cells = ceil((v[1] - v[0]) / v[2]);
    if (!(cells >= 1))
        cells = 0;
    if (cells > MOST_CELLS)
        return tflite_error(n, E_IMPORT, "%g cells", cells);
    count = (int64_t)cells;
    at = arena_array(b->c->arena, (size_t)count + 1, dtype_bytes(t));
    for (int64_t i = 0; i < count; i++) {
        uint8_t *cell = at + (size_t)i * dtype_bytes(t);

        if (dtype_is_float(t))
            dtype_put_f(t, cell, v[0] + (double)i * v[2]);
        else
            dtype_put_i(t, cell, (int64_t)(v[0] + (double)i * v[2]));
    }
    return tflite_done(n, build_const(b, t, 1, &count, at));
}
