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

/* From input 0 up to input 1 in steps of input 2. */
bool tflite_range(TfliteNode *n)
{
    double v[3];

    for (uint32_t i = 0; i < 3; i++) {
        if (!expr_single(n->in[i]))
            return tflite_error(n, E_IMPORT, "input %u is no scalar", i);
        if (!expr_const_f(n->in[i], &v[i]) || !isfinite(v[i]))
            return tflite_done(n, build_range_forms(&n->b, n->in[0], n->in[1], n->in[2]));
    }
    return tflite_done(n, build_range(&n->b, expr_dtype(n->in[0]), v[0], v[1], v[2]));
}
