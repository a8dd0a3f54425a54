/* Operators of two operands of 8 or 16 bits, in the integers of LiteRT's reference kernels.
 *
 * Operands are brought to a common scale, in more bits, before they are added or compared:
 *
 *   ADD     %0 = times((x - zx) << 20);  %1 = times((y - zy) << 20);  times(%0 + %1) + z
 *   MUL     times((x - zx) * (y - zy)) + z
 *   DIV     times((x - zx) * %0) / 2^.. + z           %0: 1 / (y - zy), with a bit above the point
 *   LESS    times((x - zx) << 8) < times((y - zy) << 8) */
#include "frontends/tflite/tflite.h"

#include <math.h>
#include <string.h>

static const Expr *by(const Build *b, const char *op, const Expr *x, double v)
{
    return build_by(b, op, x, v);
}

static float scale_of(const TfliteNode *n, uint32_t i)
{
    return (float)tflite_scale(tflite_in(n, i), 0);
}

static float out_scale(const TfliteNode *n)
{
    return (float)tflite_scale(tflite_out(n, 0), 0);
}

/* Input i less its zero point, in i32. */
static const Expr *centred(const TfliteNode *n, uint32_t i)
{
    return by(&n->b, "subtract", build_cast(&n->b, n->in[i], DT_I32),
              (double)tflite_zero(tflite_in(n, i), 0));
}

/* Sums, differences and products of operands of 8 and 16 bits stay within that. */
#define MOST (1 << 30)

static const Expr *times(const TfliteNode *n, const Expr *x, double v)
{
    TfliteFixed f;

    return tflite_fixed(n, v, &f) ? tflite_times(&n->b, x, MOST, 1, &f, 1) : NULL;
}

bool tflite_activated_steps(TfliteNode *n, const Expr *y)
{
    static const struct {
        float lo, hi;
    } bounds[] = {{-HUGE_VALF, HUGE_VALF}, {0, HUGE_VALF}, {-1, 1}, {0, 6}};
    int64_t how = tflite_int(n, "fused_activation_function");
    DType   t = DT_I32;
    double  lo, hi;

    if (how < 0 || how >= (int64_t)COUNT(bounds))
        return tflite_error(n, E_UNSUPPORTED, "fused activation function %lld", (long long)how);
    tflite_bounds(n, bounds[how].lo, bounds[how].hi, &lo, &hi);
    tflite_dtype(tflite_out(n, 0)->type, &t);
    return tflite_done(n, build_cast(&n->b, build_clip(&n->b, y, lo, hi), t));
}

/* y from the zero point of the result on. */
static const Expr *from_zero(const TfliteNode *n, const Expr *y)
{
    return by(&n->b, "add", y, (double)tflite_zero(tflite_out(n, 0), 0));
}

/* .. within the bounds of the fused activation, or those of its type. */
static bool activated(TfliteNode *n, const Expr *y)
{
    return tflite_activated_steps(n, from_zero(n, y));
}

static bool unbounded(TfliteNode *n, const Expr *y)
{
    DType t = DT_I32;

    tflite_dtype(tflite_out(n, 0)->type, &t);
    return tflite_done(n, tflite_saturated(&n->b, from_zero(n, y), t));
}

/* ---- sums ------------------------------------------------------------------------------------------ */

/* The exponent of a power of two. */
static bool power_of(const TfliteTensor *t, int *exponent)
{
    return frexp(tflite_scale(t, 0), exponent) == 0.5;
}

/* Models of old, all of whose scales are powers of two: one operand may be shifted. */
static bool sum_by_powers(TfliteNode *n)
{
    const Build *b = &n->b;
    const Expr  *x[2];
    int          shift[2], to;

    if (expr_dtype(n->in[0]).bits != 16 || !tflite_int(n, "pot_scale_int16") ||
        !power_of(tflite_out(n, 0), &to))
        return false;
    for (uint32_t i = 0; i < 2; i++)
        if (!power_of(tflite_in(n, i), &shift[i]) || shift[i] > to || to - shift[i] > 15)
            return false;
    if (shift[0] != to && shift[1] != to)
        return false;
    for (uint32_t i = 0; i < 2; i++)
        x[i] = tflite_rounded(b, build_cast(b, n->in[i], DT_I32), to - shift[i]);
    n->out[0] = build2(b, n->row->relay, x[0], x[1], NULL);
    return true;
}

/* What brings both operands to 2^-bits of twice the larger scale, and what stands for 1 there. */
static bool common_scale(TfliteNode *n, int bits, TfliteFixed *f, double *one)
{
    double scale[2] = {scale_of(n, 0), scale_of(n, 1)}, larger = 2 * fmax(scale[0], scale[1]);

    if (!(larger > 0 && out_scale(n) > 0) || larger >= ldexp(out_scale(n), 30))
        return tflite_error(n, E_UNSUPPORTED, "scales %g and %g for a result of %g", scale[0],
                            scale[1], (double)out_scale(n));
    *one = ldexp(larger, -bits);
    return tflite_fixed(n, scale[0] / larger, &f[0]) && tflite_fixed(n, scale[1] / larger, &f[1]);
}

static bool alike(const TfliteNode *n, int bits, const TfliteFixed *f, const Expr **x)
{
    for (uint32_t i = 0; i < 2; i++) {
        x[i] = centred(n, i);
        if (expr_dtype(n->in[i]).bits == 8 && bits >= 15)
            x[i] = tflite_times_byte(&n->b, x[i], bits, &f[i]);
        else
            x[i] = tflite_times(&n->b, by(&n->b, "left_shift", x[i], bits), MOST, 1, &f[i], 1);
    }
    return x[0] && x[1];
}

/* Of bytes: the same for all pairs of them by one product each; NULL: there are no such factors. */
static const Expr *sum_by_line(const TfliteNode *n, TfliteSum *s)
{
    const Build *b = &n->b;
    TfliteLine   line;
    const Expr  *x[2];

    s->minus = !strcmp(n->row->name, "SUB");
    s->least = (int)dtype_min(expr_dtype(n->in[0]));
    s->zero = (int)tflite_zero(tflite_out(n, 0), 0);
    for (uint32_t i = 0; i < 2; i++)
        s->from[i] = (int)tflite_zero(tflite_in(n, i), 0);
    if (!tflite_line(b->c, s, &line))
        return NULL;
    for (uint32_t i = 0; i < 2; i++)
        x[i] = by(b, "multiply", build_cast(b, n->in[i], DT_I32), line.times[i]);
    return by(b, "right_shift", by(b, "add", build_add(b, x[0], x[1]), line.add), line.bits);
}

static bool sum(TfliteNode *n)
{
    const Build *b = &n->b;
    bool         bytes = expr_dtype(n->in[0]).bits == 8;
    TfliteSum    s = {.bits = bytes ? 20 : 15};
    const Expr  *x[2], *y;
    double       one;

    if (sum_by_powers(n))
        return activated(n, n->out[0]);
    if (!common_scale(n, s.bits, s.of, &one) || !tflite_fixed(n, one / (double)out_scale(n), &s.to))
        return false;
    if (bytes && (y = sum_by_line(n, &s)))
        return tflite_activated_steps(n, y);
    if (!alike(n, s.bits, s.of, x))
        return false;
    y = build2(b, n->row->relay, x[0], x[1], NULL);
    return activated(n, y ? tflite_times(b, y, MOST, 1, &s.to, 1) : NULL);
}

static bool product(TfliteNode *n)
{
    float scale = scale_of(n, 0) * scale_of(n, 1) / out_scale(n);

    return activated(n, times(n, build_mul(&n->b, centred(n, 0), centred(n, 1)), (double)scale));
}

/* ---- quotients ------------------------------------------------------------------------------------- */

/* How many bits x has, which is from 0 to 2^24. */
static const Expr *count_bits(const Build *b, const Expr *x)
{
    BitcastAttrs *a = ATTRS(b, BitcastAttrs);

    a->dtype = DT_I32;
    x = build1(b, "bitcast", build_cast(b, x, DT_F32), a);
    x = by(b, "subtract", by(b, "right_shift", x, 23), 126);
    return x ? by(b, "maximum", x, 0) : NULL;
}

/* 1 / x of x from 1 on: its highest bit stands for 1. */
static const Expr *reciprocal(const Build *b, const Expr *x, const Expr *bits)
{
    const Expr *one =
        build2(b, "left_shift", build_scalar(b, bits, 1), by(b, "subtract", bits, 1), NULL);
    const Expr *left = by(b, "add", build1(b, "negative", bits, NULL), 32);

    return tflite_fixed_reciprocal(b, build2(b, "left_shift", build_sub(b, x, one), left, NULL));
}

/* x / y times a factor, both less their zero points: the dividend as far to the left as 32 bits
 * have room for, times the reciprocal, times the factor, and back.  A divisor of 0, which LiteRT
 * refuses, gives a bound, and what would go back by more than 31 bits, which its kernel does not
 * compute rightly, 0. */
static const Expr *quotient(const Build *b, const Expr *x, const Expr *y, const TfliteFixed *f)
{
    const Expr *down, *bits, *left, *right, *q, *zero;

    if (!x || !y)
        return NULL;
    down = build_less(b, y, build_scalar(b, y, 0));
    x = build_where(b, down, build1(b, "negative", x, NULL), x);
    y = build1(b, "abs", y, NULL);
    zero = y ? build2(b, "equal", y, build_scalar(b, y, 0), NULL) : NULL;
    y = y ? by(b, "maximum", y, 1) : NULL;
    bits = count_bits(b, y);
    left = count_bits(b, build2(b, "bitwise_xor", x, by(b, "right_shift", x, 31), NULL));
    left = by(b, "add", build1(b, "negative", left, NULL), 31);
    q = tflite_fixed_product(b, build2(b, "left_shift", x, left, NULL), reciprocal(b, y, bits));
    q = q ? tflite_fixed_product(b, q, build_scalar(b, q, (double)f->times)) : NULL;
    right = by(b, "subtract", build_add(b, left, bits), f->shift + 1);
    y = right ? tflite_rounded_by(b, q, build_clip(b, right, 0, 31)) : NULL;
    y = build_where(b, build_less(b, by(b, "subtract", right, 32), build_scalar(b, right, 0)), y,
                    build_scalar(b, right, 0));
    return build_where(b, zero, by(b, "left_shift", x, 14), y);
}

enum { BYTES = 256 };

/* All bytes less the zero point of input i, along an axis of two. */
static const Expr *all_bytes(const TfliteNode *n, uint32_t i, uint32_t axis)
{
    uint64_t zero = (uint64_t)tflite_zero(tflite_in(n, i), 0),
             least = (uint64_t)(int64_t)dtype_min(expr_dtype(n->in[i]));
    int64_t cells = BYTES;
    int32_t v[BYTES];

    for (uint64_t k = 0; k < BYTES; k++)
        v[k] = (int32_t)(least + k - zero);
    return build_along(&n->b, build_const(&n->b, DT_I32, 1, &cells, v), 2, axis);
}

static const Expr *from_least(const TfliteNode *n, uint32_t i)
{
    return by(&n->b, "subtract", build_cast(&n->b, n->in[i], DT_I32),
              dtype_min(expr_dtype(n->in[i])));
}

/* Of bytes there are so few that all quotients are known: by a divisor that is one number, or by
 * all. */
static bool quotient_of_bytes(TfliteNode *n, const TfliteFixed *f)
{
    const Build *b = &n->b;
    bool         one = n->in[1]->kind == EXPR_CONST && expr_single(n->in[1]);
    int64_t      cells = one ? BYTES : BYTES * BYTES;
    const Expr  *y =
                   one ? build_reshape(b, centred(n, 1), 2, (int64_t[]){1, 1}) : all_bytes(n, 1, 1),
               *at = from_least(n, 0), *all;

    if (!activated(n, quotient(b, all_bytes(n, 0, 0), y, f)))
        return false;
    all = build_fold(b, n->out[0]);
    all = build_reshape(b, all ? all : n->out[0], 1, &cells);
    if (one) /* of as many dimensions as both have */
        at = build_add(b, at, by(b, "multiply", from_least(n, 1), 0));
    else
        at = build_add(b, by(b, "multiply", at, BYTES), from_least(n, 1));
    return tflite_done(n, build_take(b, all, at, 0));
}

bool tflite_divide(TfliteNode *n)
{
    TfliteFixed f;

    if (n->raw) {
        float factor = scale_of(n, 0) / (scale_of(n, 1) * out_scale(n));

        if (!tflite_fixed(n, (double)factor, &f))
            return false;
        return expr_dtype(n->in[0]).bits == 8
                   ? quotient_of_bytes(n, &f)
                   : activated(n, quotient(&n->b, centred(n, 0), centred(n, 1), &f));
    }
    return tflite_done(n,
                       tflite_activate(n, build2(&n->b, n->row->relay, n->in[0], n->in[1], NULL)));
}

/* ---- sums, differences, products ------------------------------------------------------------------- */

/* With a fused activation. */
bool tflite_arithmetic(TfliteNode *n)
{
    if (n->raw)
        return !strcmp(n->row->name, "MUL") ? product(n) : sum(n);
    return tflite_done(n,
                       tflite_activate(n, build2(&n->b, n->row->relay, n->in[0], n->in[1], NULL)));
}

bool tflite_squared_difference(TfliteNode *n)
{
    enum { BITS = 7 };
    TfliteFixed f[2];
    const Expr *x[2], *d;
    double      one;

    if (!n->raw) {
        d = build_sub(&n->b, n->in[0], n->in[1]);
        return tflite_done(n, build_mul(&n->b, d, d));
    }
    if (!common_scale(n, BITS, f, &one) || !alike(n, BITS, f, x))
        return false;
    d = build_sub(&n->b, x[0], x[1]);
    return unbounded(n, times(n, build_mul(&n->b, d, d), one * one / (double)out_scale(n)));
}

/* ---- others ---------------------------------------------------------------------------------------- */

/* Both in units, as far as 8 bits more than they have tell them apart; where these tell all numbers
 * of one scale apart, and for the order of 16 bits, they are compared as they are. */
bool tflite_comparison(TfliteNode *n)
{
    enum { BITS = 8 };
    const Expr *x[2] = {n->in[0], n->in[1]};
    bool        order = strcmp(n->row->relay, "equal") && strcmp(n->row->relay, "not_equal"), as_is;

    as_is = !n->raw || (tflite_same_quantization(tflite_in(n, 0), tflite_in(n, 1)) &&
                        ((order && expr_dtype(x[0]).bits == 16) || scale_of(n, 0) >= 1.0F / 256));
    for (uint32_t i = 0; i < 2 && !as_is; i++)
        x[i] = times(n, by(&n->b, "left_shift", centred(n, i), BITS), (double)scale_of(n, i));
    return tflite_done(n, build2(&n->b, n->row->relay, x[0], x[1], NULL));
}

bool tflite_prelu(TfliteNode *n)
{
    const Build *b = &n->b;
    const Expr  *x = n->in[0], *alpha = n->in[1], *below;

    if (!n->raw)
        return tflite_done(n, build_if_negative(b, x, build_mul(b, x, alpha)));
    x = centred(n, 0);
    below = times(n, build_mul(b, x, centred(n, 1)),
                  (double)(scale_of(n, 0) * scale_of(n, 1) / out_scale(n)));
    if (!below)
        return false;
    return unbounded(n, build_where(b, build_less(b, x, build_scalar(b, x, 0)), below,
                                    times(n, x, (double)(scale_of(n, 0) / out_scale(n)))));
}
