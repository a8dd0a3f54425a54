/* Numbers of fixed point, in the integers that LiteRT's reference kernels compute with, so that
 * results are theirs to the last bit.
 *
 * A real factor is times * 2^(shift - 31), times being from 2^30 to 2^31.  A product with it is
 * rounded twice, half up and then half away from zero:
 *
 *     %0 = x * times + 2^30 >> 31        round(%0 / 2^-shift)
 *
 * Sigmoid and tanh of layers with states and the exponentials of softmax follow gemmlowp's: of a
 * number below 1 in 2^-15 or 2^-31, exp is a polynomial between -1/4 and 0 and a product of
 * constants for each bit above that, and the quotient 1 / (1 + x) three steps by Newton's method.
 */
#include "frontends/tflite/tflite.h"

#include <math.h>

static const Expr *by(const Build *b, const char *op, const Expr *x, double v)
{
    return build_by(b, op, x, v);
}

/* ---- factors -------------------------------------------------------------------------------------- */

bool tflite_fixed(const TfliteNode *n, double v, TfliteFixed *out)
{
    double q;

    if (!(v >= 0) || v >= 0x1p31)
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

const Expr *tflite_rounded_by(const Build *b, const Expr *x, const Expr *bits)
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
    return x && bits > 0 ? tflite_rounded_by(b, x, build_scalar(b, x, bits)) : x;
}

/* x * times >> 31 in i32, of times in i64. */
static const Expr *high_product(const Build *b, const Expr *x, const Expr *times)
{
    x = build_mul(b, build_cast(b, x, DT_I64), times);
    return build_cast(b, by(b, "right_shift", by(b, "add", x, 1 << 30), 31), DT_I32);
}

/* x / 2^bits, x being at most 2^30 from 0 and all bits from 1 to 31: x + half - (x < 0) >> bits. */
static const Expr *rounded_small(const Build *b, const Expr *x, int64_t cells, const int32_t *bits)
{
    int32_t    *half = NEW_ARRAY(b->c->arena, int32_t, (size_t)cells);
    const Expr *y = by(b, "right_shift", x, 31);

    for (int64_t i = 0; i < cells; i++)
        half[i] = 1 << (bits[i] - 1);
    y = build_add(b, y, build_const(b, DT_I32, cells > 1, &cells, half));
    return build2(b, "right_shift", build_add(b, x, y),
                  build_const(b, DT_I32, cells > 1, &cells, bits), NULL);
}

const Expr *tflite_times(const Build *b, const Expr *x, int64_t most, uint32_t n,
                         const TfliteFixed *f, int64_t each)
{
    int64_t     cells = n * each, *times = NEW_ARRAY(b->c->arena, int64_t, (size_t)cells);
    int32_t    *bits = NEW_ARRAY(b->c->arena, int32_t, (size_t)cells);
    bool        shifted = false, all = true;
    const Expr *y;

    for (int64_t i = 0; i < cells; i++) {
        const TfliteFixed *at = &f[i / each];

        times[i] = at->times * (INT64_C(1) << (at->shift > 0 ? at->shift : 0));
        bits[i] = at->shift < 0 ? -at->shift : 0;
        shifted |= bits[i] > 0;
        all &= bits[i] > 0;
    }
    y = high_product(b, x, build_const(b, DT_I64, cells > 1, &cells, times));
    if (all && most <= 1 << 30)
        return rounded_small(b, y, cells, bits);
    return shifted ? tflite_rounded_by(b, y, build_const(b, DT_I32, cells > 1, &cells, bits)) : y;
}

/* x times + 2^(30 - bits) >> 31 - bits in i32, of the halves of times. */
const Expr *tflite_times_byte(const Build *b, const Expr *x, int bits, const TfliteFixed *f)
{
    int         down = 31 - bits;
    int32_t     shift = -f->shift;
    const Expr *high = by(b, "multiply", x, (double)(f->times >> 16 << (16 - down)));
    const Expr *low = by(b, "multiply", x, (double)(f->times & 0xffff));

    low = by(b, "right_shift", by(b, "add", low, 1 << (down - 1)), down);
    high = build_add(b, high, low);
    return shift > 0 ? rounded_small(b, high, 1, &shift) : high;
}

const Expr *tflite_saturated(const Build *b, const Expr *x, DType t)
{
    return build_cast(b, build_clip(b, x, dtype_min(t), dtype_max(t)), t);
}

/* ---- products below 1 ----------------------------------------------------------------------------- */

/* Numbers of 16 bits in i32, or of 32: the greatest is nearly 1 in 2^-unit. */
enum { WORD = 15, LONG = 31 };

static double greatest(int unit)
{
    return ldexp(1, unit) - 1;
}

/* A product of numbers in 2^-unit and another unit, in the latter. */
static const Expr *product(const Build *b, int unit, const Expr *x, const Expr *y)
{
    if (unit == LONG)
        return high_product(b, x, build_cast(b, y, DT_I64));
    return by(b, "right_shift", by(b, "add", build_mul(b, x, y), 1 << (WORD - 1)), WORD);
}

static const Expr *product_by(const Build *b, int unit, const Expr *x, double v)
{
    return x ? product(b, unit, x, build_scalar(b, x, v)) : NULL;
}

/* x * 2^bits within 16 bits, or 32 */
static const Expr *grown(const Build *b, int unit, const Expr *x, int bits)
{
    x = by(b, "left_shift", build_cast(b, x, unit == LONG ? DT_I64 : DT_I32), bits);
    return build_cast(b, build_clip(b, x, -greatest(unit) - 1, greatest(unit)), DT_I32);
}

static const Expr *is_zero(const Build *b, const Expr *x)
{
    return x ? build2(b, "equal", x, build_scalar(b, x, 0), NULL) : NULL;
}

/* A real number in 2^-of for numbers in 2^-unit, rounded to 32 bits first. */
static double fixed_of(double v, int of, int unit)
{
    int rest = LONG - unit;

    return floor(ldexp(round(ldexp(v, of + rest)), -rest) + 0.5);
}

/* ---- functions ------------------------------------------------------------------------------------ */

/* exp of x in 2^-unit from -1/4 to 0: that of -1/8 times a polynomial around it. */
static const Expr *exp_near_zero(const Build *b, int unit, const Expr *x)
{
    double      middle = fixed_of(exp(-1.0 / 8), unit, unit);
    const Expr *x2, *x3, *x4, *y;

    x = by(b, "add", x, ldexp(1, unit - 3));
    x2 = product(b, unit, x, x);
    x3 = product(b, unit, x2, x);
    x4 = tflite_rounded(b, product(b, unit, x2, x2), 2);
    y = product_by(b, unit, build_add(b, x4, x3), fixed_of(1.0 / 3, unit, unit));
    y = tflite_rounded(b, build_add(b, y, x2), 1);
    y = by(b, "add", product_by(b, unit, build_add(b, x, y), middle), middle);
    return unit == LONG ? y : build_clip(b, y, -greatest(unit) - 1, greatest(unit));
}

/* exp of x in 2^(whole - unit), which is 0 or below, in 2^-unit. */
static const Expr *exp_below_zero(const Build *b, int unit, const Expr *x, int whole)
{
    int         one = unit - whole, quarter = 1 << (one - 2);
    const Expr *part = by(b, "subtract", by(b, "bitwise_and", x, quarter - 1), quarter);
    const Expr *rest = build_sub(b, part, x),
               *y = exp_near_zero(b, unit, by(b, "left_shift", part, whole));

    for (int e = -2; e < whole && e <= 4; e++) {
        const Expr *off = is_zero(b, by(b, "bitwise_and", rest, 1 << (one + e)));
        double      by_bit = fixed_of(exp(-ldexp(1, e)), unit, unit);

        y = build_where(b, off, y, product_by(b, unit, y, by_bit));
    }
    if (whole > 5 && x) /* below -32 */
        y = build_where(b, build2(b, "less", x, build_scalar(b, x, -32 * (1 << one)), NULL),
                        build_scalar(b, x, 0), y);
    return y ? build_where(b, is_zero(b, x), build_scalar(b, y, greatest(unit)), y) : NULL;
}

/* 1 / (half of 1 + x), x from 0 to 1 in 2^-unit, in 2^-(unit - 2). */
static const Expr *twice_reciprocal(const Build *b, int unit, const Expr *x)
{
    const Expr *half, *y;

    half = by(b, "add", build_cast(b, x, unit == LONG ? DT_I64 : DT_I32), greatest(unit) + 1);
    half = build_cast(b, by(b, "right_shift", half, 1), DT_I32);
    y = by(b, "add", product_by(b, unit, half, fixed_of(-32.0 / 17, unit - 2, unit)),
           fixed_of(48.0 / 17, unit - 2, unit));
    for (int i = 0; i < 3; i++) {
        const Expr *miss = product(b, unit, half, y);

        miss = by(b, "add", build1(b, "negative", miss, NULL), 1 << (unit - 2));
        y = build_add(b, y, grown(b, unit, product(b, unit, y, miss), 2));
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
    y = grown(b, WORD, twice_reciprocal(b, WORD, exp_below_zero(b, WORD, y, whole)), 1);
    y = build_where(b, up, y, by(b, "add", build1(b, "negative", y, NULL), greatest(WORD)));
    return y ? build_where(b, is_zero(b, x), build_scalar(b, y, 1 << (WORD - 1)), y) : NULL;
}

const Expr *tflite_fixed_tanh(const Build *b, const Expr *x, int whole)
{
    const Expr *y, *down;

    if (!x)
        return NULL;
    down = build2(b, "less", x, build_scalar(b, x, 0), NULL);
    y = build1(b, "negative", build1(b, "abs", x, NULL), NULL);
    y = twice_reciprocal(b, WORD, exp_below_zero(b, WORD, y, whole + 1)); /* of 2 x */
    y = grown(b, WORD, by(b, "subtract", y, 1 << (WORD - 2)), 2);
    y = build_where(b, down, build1(b, "negative", y, NULL), y);
    return y ? build_where(b, is_zero(b, x), build_scalar(b, y, 0), y) : NULL;
}

const Expr *tflite_fixed_exp(const Build *b, const Expr *x, int whole)
{
    return exp_below_zero(b, LONG, x, whole);
}

const Expr *tflite_fixed_reciprocal(const Build *b, const Expr *x)
{
    return grown(b, LONG, twice_reciprocal(b, LONG, x), 1);
}

const Expr *tflite_fixed_product(const Build *b, const Expr *x, const Expr *y)
{
    return product(b, LONG, x, y);
}

/* ---- roots ---------------------------------------------------------------------------------------- */

const Expr *tflite_count(const Build *b, const char *op, const Expr *x, int64_t axis, uint32_t n,
                         const int32_t *limits)
{
    int64_t     count = n;
    const Expr *each = build_const(b, DT_I32, 1, &count, limits);

    if (!x)
        return NULL;
    each = build2(b, op, x, build_along(b, each, expr_rank(x), (uint32_t)axis), NULL);
    return build_reduce(b, "sum", build_cast(b, each, DT_I32), 1, &axis, true);
}

/* By five steps of Newton's method, in 2^-28, of x brought to between 2^27 and 2^29. */
bool tflite_inverse_root(const Build *b, const Expr *x, int64_t axis, TfliteRoot *out)
{
    enum { PAIRS = 14, TOP = 27, ONE = 28 };
    int32_t     limits[PAIRS], large = 1 << (TOP + 2);
    const Expr *quarters, *pairs, *half, *y, *few, *right, *left;

    for (int i = 0; i < PAIRS; i++)
        limits[i] = 1 << (TOP - 2 * i);
    few = x ? build2(b, "less_equal", x, build_scalar(b, x, 1), NULL) : NULL;
    quarters = tflite_count(b, "greater_equal", x, axis, 1, &large);
    pairs = tflite_count(b, "less", x, axis, PAIRS, limits);
    x = build2(b, "right_shift", x, by(b, "multiply", quarters, 2), NULL);
    x = build2(b, "left_shift", x, by(b, "multiply", pairs, 2), NULL);
    half = tflite_rounded(b, by(b, "right_shift", x, 1), 1);
    y = half ? build_scalar(b, half, 1 << ONE) : NULL;
    for (int i = 0; i < 5; i++) {
        const Expr *cube = product(b, LONG, product(b, LONG, y, y), y);

        cube = product(b, LONG, half, grown(b, LONG, cube, 6));
        y = grown(b, LONG, build_sub(b, product_by(b, LONG, y, 3 << (ONE - 1)), cube), 3);
    }
    y = product_by(b, LONG, y, fixed_of(M_SQRT1_2, LONG, LONG));
    right = by(b, "add", build_sub(b, quarters, pairs), 11);
    left = right ? build2(b, "maximum", build1(b, "negative", right, NULL),
                          build_scalar(b, right, 0), NULL)
                 : NULL;
    y = build2(b, "left_shift", y, left, NULL);
    right = right ? build2(b, "maximum", right, build_scalar(b, right, 0), NULL) : NULL;
    if (!y || !right)
        return false;
    y = build_where(b, few, build_scalar(b, y, greatest(LONG)), y);
    right = build_where(b, few, build_scalar(b, right, 0), right);
    *out = (TfliteRoot){build_cast(b, y, DT_I64), right};
    return out->times && right;
}

const Expr *tflite_times_root(const Build *b, const Expr *x, const TfliteRoot *root)
{
    return tflite_rounded_by(b, high_product(b, x, root->times), root->right);
}

/* ---- tables --------------------------------------------------------------------------------------- */

const Expr *tflite_between(const Build *b, const int32_t *cells, int64_t n, const Expr *at,
                           const Expr *part, int bits)
{
    int64_t     rest = n - 1;
    const Expr *first = build_take(b, build_const(b, DT_I32, 1, &n, cells), at, 0);
    const Expr *next = build_take(b, build_const(b, DT_I32, 1, &rest, cells + 1), at, 0);

    return build_add(b, by(b, "left_shift", first, bits),
                     build_mul(b, build_sub(b, next, first), part));
}
