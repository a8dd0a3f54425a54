/* Numbers of fixed point, in the integers that LiteRT's reference kernels compute with, so that
 * results are theirs to the last bit.
 *
 * A real factor is times * 2^(shift - 31), times being from 2^30 to 2^31.  A product with it is
 * rounded twice, half up and then half away from zero:
 *
 *     %0 = x * times + 2^30 >> 31        round(%0 / 2^-shift)
 *
 * The sigmoid and tanh of layers with states follow gemmlowp's: of a number below 1 in 2^-15, exp
 * is a polynomial between -1/4 and 0 and a product of constants for each bit above that, and the
 * quotient 1 / (1 + x) three steps by Newton's method. */
#include "frontends/tflite/tflite.h"

#include <math.h>

enum { ONE = 32767, UNIT = 15 }; /* nearly 1 in 2^-UNIT */

static const Expr *by(const Build *b, const char *op, const Expr *x, double v)
{
    return build_by(b, op, x, v);
}

/* ---- factors -------------------------------------------------------------------------------------- */

bool tflite_fixed(const TfliteNode *n, double v, TfliteFixed *out)
{
    double q;

    if (!(v >= 0) || v >= 0x1p30)
        return tflite_error(n, E_UNSUPPORTED, "a scale of %g", v);
    q = round(ldexp(frexp(v, &out->shift), 31));
    out->times = (int64_t)q;
    if (out->times == INT64_C(1) << 31) {
        out->times /= 2;
        out->shift++;
    }
    if (out->shift < -31)
        *out = (TfliteFixed){0, 0};
    return true;
}

/* x / 2^bits, bits being numbers from 0 to 31 of x's shape or of its last dimension. */
static const Expr *rounded_by(const Build *b, const Expr *x, const Expr *bits)
{
    const Expr *mask, *rest, *half, *up;

    mask = bits
               ? by(b, "subtract", build2(b, "left_shift", build_scalar(b, bits, 1), bits, NULL), 1)
               : NULL;
    rest = build2(b, "bitwise_and", x, mask, NULL);
    half = build_sub(b, by(b, "right_shift", mask, 1), by(b, "right_shift", x, 31));
    up = build_cast(b, build2(b, "greater", rest, half, NULL), DT_I32);
    return build_add(b, build2(b, "right_shift", x, bits, NULL), up);
}

const Expr *tflite_rounded(const Build *b, const Expr *x, int bits)
{
    return x && bits > 0 ? rounded_by(b, x, build_scalar(b, x, bits)) : x;
}

/* x * times >> 31 in i32, of times in i64. */
static const Expr *high_product(const Build *b, const Expr *x, const Expr *times)
{
    x = build_mul(b, build_cast(b, x, DT_I64), times);
    return build_cast(b, by(b, "right_shift", by(b, "add", x, 1 << 30), 31), DT_I32);
}

const Expr *tflite_times(const Build *b, const Expr *x, uint32_t n, const TfliteFixed *f,
                         int64_t each)
{
    int64_t     cells = n * each, *times = NEW_ARRAY(b->c->arena, int64_t, (size_t)cells);
    int32_t    *bits = NEW_ARRAY(b->c->arena, int32_t, (size_t)cells);
    bool        shifted = false;
    const Expr *y;

    for (int64_t i = 0; i < cells; i++) {
        const TfliteFixed *at = &f[i / each];

        times[i] = at->times * (INT64_C(1) << (at->shift > 0 ? at->shift : 0));
        bits[i] = at->shift < 0 ? -at->shift : 0;
        shifted |= bits[i] > 0;
    }
    y = high_product(b, x, build_const(b, DT_I64, cells > 1, &cells, times));
    return shifted ? rounded_by(b, y, build_const(b, DT_I32, cells > 1, &cells, bits)) : y;
}

const Expr *tflite_saturated(const Build *b, const Expr *x, DType t)
{
    return build_cast(b, build_clip(b, x, dtype_min(t), dtype_max(t)), t);
}

/* ---- products below 1 ----------------------------------------------------------------------------- */

/* A product of 16 bits of numbers in 2^-15 and another unit, in the latter. */
static const Expr *product(const Build *b, const Expr *x, const Expr *y)
{
    return by(b, "right_shift", by(b, "add", build_mul(b, x, y), 1 << (UNIT - 1)), UNIT);
}

static const Expr *product_by(const Build *b, const Expr *x, double v)
{
    return x ? product(b, x, build_scalar(b, x, v)) : NULL;
}

/* x * 2^bits within 16 bits */
static const Expr *grown(const Build *b, const Expr *x, int bits)
{
    return build_clip(b, by(b, "left_shift", x, bits), -ONE - 1, ONE);
}

static const Expr *is_zero(const Build *b, const Expr *x)
{
    return x ? build2(b, "equal", x, build_scalar(b, x, 0), NULL) : NULL;
}

/* A real number in 2^-unit, rounded to 32 bits first. */
static double fixed_of(double v, int unit)
{
    return floor(ldexp(round(ldexp(v, unit + 16)), -16) + 0.5);
}

/* ---- functions ------------------------------------------------------------------------------------ */

/* exp of x in 2^-15 from -1/4 to 0: that of -1/8 times a polynomial around it. */
static const Expr *exp_near_zero(const Build *b, const Expr *x)
{
    double      middle = fixed_of(exp(-1.0 / 8), UNIT);
    const Expr *x2, *x3, *x4, *y;

    x = by(b, "add", x, 1 << (UNIT - 3));
    x2 = product(b, x, x);
    x3 = product(b, x2, x);
    x4 = tflite_rounded(b, product(b, x2, x2), 2);
    y = product_by(b, build_add(b, x4, x3), fixed_of(1.0 / 3, UNIT));
    y = tflite_rounded(b, build_add(b, y, x2), 1);
    y = by(b, "add", product_by(b, build_add(b, x, y), middle), middle);
    return build_clip(b, y, -ONE - 1, ONE);
}

/* exp of x in 2^(whole - 15), which is 0 or below, in 2^-15. */
static const Expr *exp_below_zero(const Build *b, const Expr *x, int whole)
{
    int         unit = UNIT - whole, quarter = 1 << (unit - 2);
    const Expr *part = by(b, "subtract", by(b, "bitwise_and", x, quarter - 1), quarter);
    const Expr *rest = build_sub(b, part, x),
               *y = exp_near_zero(b, by(b, "left_shift", part, whole));

    for (int e = -2; e < whole && e <= 4; e++) {
        const Expr *off = is_zero(b, by(b, "bitwise_and", rest, 1 << (unit + e)));

        y = build_where(b, off, y, product_by(b, y, fixed_of(exp(-ldexp(1, e)), UNIT)));
    }
    if (whole > 5 && x) /* below -32 */
        y = build_where(b, build2(b, "less", x, build_scalar(b, x, -32 * (1 << unit)), NULL),
                        build_scalar(b, x, 0), y);
    return y ? build_where(b, is_zero(b, x), build_scalar(b, y, ONE), y) : NULL;
}

/* 1 / (half of 1 + x), x from 0 to 1 in 2^-15, in 2^-13. */
static const Expr *twice_reciprocal(const Build *b, const Expr *x)
{
    const Expr *half = by(b, "right_shift", by(b, "add", x, ONE + 1), 1), *y;

    y = by(b, "add", product_by(b, half, fixed_of(-32.0 / 17, UNIT - 2)),
           fixed_of(48.0 / 17, UNIT - 2));
    for (int i = 0; i < 3; i++) {
        const Expr *miss = product(b, half, y);

        miss = by(b, "add", build1(b, "negative", miss, NULL), 1 << (UNIT - 2));
        y = build_add(b, y, grown(b, product(b, y, miss), 2));
    }
    return y;
}

const Expr *tflite_fixed_sigmoid(const Build *b, const Expr *x, int whole)
{
    const Expr *y, *up;

    if (!x)
        return NULL;
    up = build2(b, "greater", x, build_scalar(b, x, 0), NULL);
    y = build1(b, "negative", build1(b, "abs", x, NULL), NULL);
    y = grown(b, twice_reciprocal(b, exp_below_zero(b, y, whole)), 1);
    y = build_where(b, up, y, by(b, "add", build1(b, "negative", y, NULL), ONE));
    return y ? build_where(b, is_zero(b, x), build_scalar(b, y, (ONE + 1) / 2), y) : NULL;
}

const Expr *tflite_fixed_tanh(const Build *b, const Expr *x, int whole)
{
    const Expr *y, *down;

    if (!x)
        return NULL;
    down = build2(b, "less", x, build_scalar(b, x, 0), NULL);
    y = build1(b, "negative", build1(b, "abs", x, NULL), NULL);
    y = twice_reciprocal(b, exp_below_zero(b, y, whole + 1)); /* of 2 x */
    y = grown(b, by(b, "subtract", y, 1 << (UNIT - 2)), 2);
    y = build_where(b, down, build1(b, "negative", y, NULL), y);
    return y ? build_where(b, is_zero(b, x), build_scalar(b, y, 0), y) : NULL;
}
