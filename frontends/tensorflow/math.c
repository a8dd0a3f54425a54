/* Arithmetic, cell by cell, activations, choices and types. */
#include "frontends/tensorflow/tensorflow.h"

#include <math.h>
#include <string.h>

/* ---- one operand ------------------------------------------------------------------------------------ */

bool tf_unary(TfNode *n)
{
    return tf_done(n, build1(&n->b, n->row->relay, n->in[0], NULL));
}

bool tf_is_finite(TfNode *n)
{
    const Build *b = &n->b;
    const Expr  *bad = build2(b, "logical_or", build1(b, "isnan", n->in[0], NULL),
                              build1(b, "isinf", n->in[0], NULL), NULL);

    return tf_done(n, build1(b, "logical_not", bad, NULL));
}

bool tf_square(TfNode *n)
{
    return tf_done(n, build_mul(&n->b, n->in[0], n->in[0]));
}

bool tf_reciprocal(TfNode *n)
{
    return tf_done(n, build_div(&n->b, build_scalar(&n->b, n->in[0], 1), n->in[0]));
}

bool tf_expm1(TfNode *n)
{
    return tf_done(n, build_expm1(&n->b, n->in[0]));
}

bool tf_log1p(TfNode *n)
{
    return tf_done(n, build_log1p(&n->b, n->in[0]));
}

bool tf_erfc(TfNode *n)
{
    const Expr *x = n->in[0];

    return tf_done(n, build_sub(&n->b, build_scalar(&n->b, x, 1), build1(&n->b, "erf", x, NULL)));
}

bool tf_relu6(TfNode *n)
{
    return tf_done(n, build_clip(&n->b, n->in[0], 0, 6));
}

bool tf_leaky_relu(TfNode *n)
{
    LeakyReluAttrs *a = ATTRS(&n->b, LeakyReluAttrs);

    a->alpha = tf_float(n, "alpha");
    return tf_done(n, build1(&n->b, "nn.leaky_relu", n->in[0], a));
}

bool tf_elu(TfNode *n)
{
    return tf_done(n, build_elu(&n->b, n->in[0], 1, 1));
}

bool tf_selu(TfNode *n)
{
    return tf_done(n, build_selu(&n->b, n->in[0], 1.6732632423543772, 1.0507009873554805));
}

bool tf_softplus(TfNode *n)
{
    return tf_done(n, build_softplus(&n->b, n->in[0]));
}

bool tf_softsign(TfNode *n)
{
    return tf_done(n, build_softsign(&n->b, n->in[0]));
}

/* ---- two operands ----------------------------------------------------------------------------------- */

/* Integers are divided towards zero, but by FloorDiv. */
bool tf_binary(TfNode *n)
{
    return tf_done(n, build2(&n->b, n->row->relay, n->in[0], n->in[1], NULL));
}

bool tf_squared_difference(TfNode *n)
{
    const Expr *d = build_sub(&n->b, n->in[0], n->in[1]);

    return tf_done(n, build_mul(&n->b, d, d));
}

bool tf_atan2(TfNode *n)
{
    return tf_done(n, build_atan2(&n->b, n->in[0], n->in[1]));
}

/* 0 where one of them is 0: the divisor of DivNoNan, the factor of MulNoNan, else x. */
bool tf_no_nan(TfNode *n)
{
    const Build *b = &n->b;
    const char  *op = n->row->name;
    const Expr  *x = n->in[0], *y = n->in[1], *zero = build_scalar(b, x, 0), *none, *v;
    bool         second = !strcmp(op, "DivNoNan") || !strcmp(op, "MulNoNan");

    none = build2(b, "equal", second ? y : x, zero, NULL);
    if (!strcmp(op, "MulNoNan"))
        v = build_mul(b, x, y);
    else if (!strcmp(op, "Xlogy"))
        v = build_mul(b, x, build1(b, "log", y, NULL));
    else if (!strcmp(op, "Xlog1py"))
        v = build_mul(b, x, build_log1p(b, y));
    else
        v = build_div(b, x, y);
    return tf_done(n, build_where(b, none, zero, v));
}

bool tf_add_n(TfNode *n)
{
    const Expr *y;

    if (n->nin == 0)
        return tf_error(n, E_IMPORT, "no inputs");
    y = n->in[0];
    for (uint32_t i = 1; i < n->nin; i++)
        y = build_add(&n->b, y, n->in[i]);
    return tf_done(n, y);
}

/* ---- choices, types --------------------------------------------------------------------------------- */

bool tf_clip_by_value(TfNode *n)
{
    const Build *b = &n->b;
    double       lo, hi;

    if (expr_const_f(n->in[1], &lo) && expr_const_f(n->in[2], &hi) && expr_single(n->in[1]) &&
        expr_single(n->in[2]))
        return tf_done(n, build_clip(b, n->in[0], lo, hi));
    return tf_done(
        n, build2(b, "maximum", build2(b, "minimum", n->in[0], n->in[2], NULL), n->in[1], NULL));
}

/* A condition of one dimension picks whole rows. */
bool tf_select(TfNode *n)
{
    const Build *b = &n->b;
    const Expr  *cond = n->in[0], *x = n->in[1];

    if (expr_rank(cond) == 1 && expr_rank(x) > 1)
        cond = build_along(b, cond, expr_rank(x), 0);
    return tf_done(n, build_where(b, cond, x, n->in[2]));
}

bool tf_select_v2(TfNode *n)
{
    return tf_done(n, build_where(&n->b, n->in[0], n->in[1], n->in[2]));
}

bool tf_cast(TfNode *n)
{
    DType t;

    return tf_type(n, "DstT", &t) && tf_done(n, build_cast(&n->b, n->in[0], t));
}

bool tf_bitcast(TfNode *n)
{
    BitcastAttrs *a = ATTRS(&n->b, BitcastAttrs);

    if (!tf_type(n, "type", &a->dtype))
        return false;
    if (a->dtype.bits != expr_dtype(n->in[0]).bits)
        return tf_error(n, E_UNSUPPORTED, "a type of another size");
    return tf_done(n, build1(&n->b, "bitcast", n->in[0], a));
}

bool tf_fake_quant_args(TfNode *n)
{
    return tf_done(n, build_fake_quant(&n->b, n->in[0], tf_float(n, "min"), tf_float(n, "max"),
                                       tf_int(n, "num_bits"), tf_int(n, "narrow_range")));
}

bool tf_fake_quant_vars(TfNode *n)
{
    double lo, hi;

    if (!expr_const_f(n->in[1], &lo) || !expr_const_f(n->in[2], &hi))
        return tf_error(n, E_UNSUPPORTED, "its range has to be known when it is compiled");
    return tf_done(n, build_fake_quant(&n->b, n->in[0], lo, hi, tf_int(n, "num_bits"),
                                       tf_int(n, "narrow_range")));
}
