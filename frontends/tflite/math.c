/* Arithmetic, cell by cell. */
#include "frontends/tflite/tflite.h"

#include <math.h>
#include <string.h>

/* ---- one operand ---------------------------------------------------------------------------------- */

bool tflite_unary(TfliteNode *n)
{
    return tflite_done(n, build1(&n->b, n->row->relay, n->in[0], NULL));
}

bool tflite_square(TfliteNode *n)
{
    return tflite_done(n, build_mul(&n->b, n->in[0], n->in[0]));
}

/* ---- two operands --------------------------------------------------------------------------------- */

/* Integers are divided towards zero. */
bool tflite_binary(TfliteNode *n)
{
    return tflite_done(n, build2(&n->b, n->row->relay, n->in[0], n->in[1], NULL));
}

bool tflite_atan2(TfliteNode *n)
{
    return tflite_done(n, build_atan2(&n->b, n->in[0], n->in[1]));
}

bool tflite_add_n(TfliteNode *n)
{
    const Expr *y = n->in[0];

    for (uint32_t i = 1; i < n->nin; i++)
        y = build_add(&n->b, y, n->in[i]);
    return tflite_done(n, y);
}

/* ---- choices, types ------------------------------------------------------------------------------- */

/* SELECT's condition of one dimension picks whole rows. */
bool tflite_select(TfliteNode *n)
{
    const Build *b = &n->b;
    const Expr  *cond = n->in[0], *x = n->in[1];

    if (expr_rank(cond) == 1 && expr_rank(x) > 1)
        cond = build_along(b, cond, expr_rank(x), 0);
    return tflite_done(n, build_where(b, cond, x, n->in[2]));
}

bool tflite_select_v2(TfliteNode *n)
{
    return tflite_done(n, build_where(&n->b, n->in[0], n->in[1], n->in[2]));
}

/* Of a complex number, the real part. */
bool tflite_cast(TfliteNode *n)
{
    const Expr *x = n->in[0];
    DType       t;

    if (!tflite_dtype(tflite_out(n, 0)->type, &t))
        return tflite_error(n, E_UNSUPPORTED, "a cast to %s",
                            tflite_dtype_name(tflite_out(n, 0)->type));
    if (tflite_is_complex(x) && !(x = build_proj(&n->b, x, 0)))
        return false;
    return tflite_done(n, build_cast(&n->b, x, t));
}

bool tflite_bitcast(TfliteNode *n)
{
    BitcastAttrs *a = ATTRS(&n->b, BitcastAttrs);

    if (!tflite_dtype(tflite_out(n, 0)->type, &a->dtype))
        return tflite_error(n, E_UNSUPPORTED, "a cast to %s",
                            tflite_dtype_name(tflite_out(n, 0)->type));
    if (a->dtype.bits != expr_dtype(n->in[0]).bits)
        return tflite_error(n, E_UNSUPPORTED, "a type of another size");
    return tflite_done(n, build1(&n->b, "bitcast", n->in[0], a));
}

/* Values of 16-bit floats, or quantized ones: these are floats by now. */
bool tflite_dequantized(TfliteNode *n)
{
    return tflite_done(n, build_cast(&n->b, n->in[0], DT_F32));
}

/* Sparse constants are filled up when they are read. */
bool tflite_same_value(TfliteNode *n)
{
    return tflite_done(n, n->in[0]);
}

bool tflite_fake_quant(TfliteNode *n)
{
    return tflite_done(n, build_fake_quant(&n->b, n->in[0], tflite_float(n, "min"),
                                           tflite_float(n, "max"), tflite_int(n, "num_bits"),
                                           tflite_int(n, "narrow_range")));
}
