/* Operators along rows of 8 or 16 bits, in the integers of LiteRT's reference kernels: SOFTMAX,
 * LOG_SOFTMAX and L2_NORMALIZATION.
 *
 *   softmax of 16 bits: exponentials and the reciprocal of their sum lie between cells of tables
 *   (tflite_between), which are up to 70 steps away from the exact values.  A quantized model was
 *   tuned to what these give, so the tables and the order in which results are rounded are the
 * same. */
#include "frontends/tflite/tflite.h"

#include <math.h>

static const Expr *by(const Build *b, const char *op, const Expr *x, double v)
{
    return build_by(b, op, x, v);
}

/* ---- softmax of 16 bits --------------------------------------------------------------------------------------- */

#define LEAST_SCALE 0x1p-30 /* below it there is nothing left of a distance */

enum { STEPS = 512, LEAST_BITS = 15, MOST_BITS = 31, MOST_CELLS = 65535 };

static double exponential(double x)
{
    return exp(x);
}

static double reciprocal(double x)
{
    return 1 / (1 + x);
}

/* The function at STEPS + 1 places in 2^-15, moved by half of what a line between two misses in
 * the middle. */
static void function_cells(double (*f)(double), double from, double to, int32_t *cells)
{
    double step = (to - from) / STEPS;

    for (int i = 0; i <= STEPS; i++) {
        double x = from + i * step, y = round(f(x) * 32768);

        if (i < STEPS) {
            double line = round((f(from + (i + 1) * step) * 32768 + y) / 2);

            y -= round((line - round(f(x + step / 2) * 32768)) / 2);
        }
        cells[i] = (int32_t)(y < 32767 ? y : 32767);
    }
}

/* v: from 0 to 65535 of the way that the table spans */
static const Expr *looked_up(const Build *b, double (*f)(double), double from, double to,
                             const Expr *v)
{
    int32_t     cells[STEPS + 1];
    const Expr *y;

    function_cells(f, from, to, cells);
    y = tflite_between(b, cells, STEPS + 1, by(b, "right_shift", v, 7),
                       by(b, "bitwise_and", v, 127), 7);
    return by(b, "right_shift", by(b, "add", y, 64), 7);
}

/* x * times in i64, rounded half up after 31 bits and again at the end. */
static const Expr *scaled(const Build *b, const Expr *x, double times)
{
    int    exponent;
    double q = floor(ldexp(frexp(times, &exponent), 31) + 0.5);

    x = by(b, "multiply", build_cast(b, x, DT_I64), exponent > 0 ? ldexp(q, exponent) : q);
    x = by(b, "right_shift", by(b, "add", x, (1 << 30) - 1), 31);
    if (exponent < 0)
        x = by(b, "right_shift", by(b, "add", x, ldexp(1, -exponent - 1)), -exponent);
    return x;
}

/* How many bits a sum has, at least that many. */
static const Expr *count_bits(const Build *b, const Expr *sum, int64_t axis, int least)
{
    int32_t  powers[MOST_BITS];
    uint32_t n = 0;

    for (int i = least; i < MOST_BITS; i++)
        powers[n++] = (int32_t)(UINT32_C(1) << i);
    return by(b, "add", tflite_count(b, "greater_equal", sum, axis, n, powers), least);
}

/* Exponentials of the distances to the largest cell, times the reciprocal of their sum. */
static bool softmax_words(TfliteNode *n, int64_t axis, double beta)
{
    const Build *b = &n->b;
    double       times = beta * tflite_scale(tflite_in(n, 0), 0) * 65535 / 10;
    const Expr  *x = build_cast(b, n->in[0], DT_I32), *bits, *sum, *y, *half;

    if (!(times > LEAST_SCALE && times < 32768) || build_dim(b, x, axis) > MOST_CELLS)
        return tflite_error(n, E_UNSUPPORTED, "%lld numbers of 16 bits, of scale %g",
                            (long long)build_dim(b, x, axis), tflite_scale(tflite_in(n, 0), 0));
    x = build_sub(b, build_reduce(b, "max", x, 1, &axis, true), x);
    x = scaled(b, x, times);
    x = x ? by(b, "minimum", x, 65535) : NULL;
    x = by(b, "add", build1(b, "negative", build_cast(b, x, DT_I32), NULL), 65535);
    x = looked_up(b, exponential, -10, 0, x);
    sum = build_reduce(b, "sum", x, 1, &axis, true);
    bits = count_bits(b, sum, axis, LEAST_BITS);
    /* The highest bit becomes bit 30, which stands for 1. */
    y = build2(b, "left_shift", sum, by(b, "add", build1(b, "negative", bits, NULL), MOST_BITS),
               NULL);
    y = by(b, "right_shift", by(b, "add", by(b, "right_shift", y, 13), 1), 1);
    y = looked_up(b, reciprocal, 0, 1, build_clip(b, by(b, "subtract", y, 1 << 16), 0, 65535));
    bits = by(b, "subtract", bits, 1);
    half = build2(b, "left_shift", build_scalar(b, bits, 1), by(b, "subtract", bits, 1), NULL);
    y = build2(b, "right_shift", build_add(b, build_mul(b, x, y), half), bits, NULL);
    return tflite_done(n, build_cast(b, build_clip(b, y, 0, 32767), DT_I16));
}

/* ---- softmax of 8 bits ----------------------------------------------------------------------------- */

enum { BYTES = 256, WHOLE = 5, SUM_WHOLE = 12, LEAST_SUM = 20, MOST_SUMMED = 4095 };

static const Expr *folded(const Build *b, const Expr *x)
{
    const Expr *k = x ? build_fold(b, x) : NULL;

    return k ? k : x;
}

/* -0, -1 .. -255 steps in 2^(WHOLE - 31), 0 for what is further away than 31, and which are not. */
static bool distances(const TfliteNode *n, double beta, const Expr **x, const Expr **near)
{
    const Build *b = &n->b;
    double       unit = ldexp(1, 31 - WHOLE), least;
    double       v = fmin(beta * tflite_scale(tflite_in(n, 0), 0) * unit, dtype_max(DT_I32));
    int64_t      cells = BYTES;
    int32_t      steps[BYTES], there[BYTES];
    TfliteFixed  f;

    if (!(v > 1) || !tflite_fixed(n, v, &f))
        return tflite_error(n, E_UNSUPPORTED, "a scale of %g", tflite_scale(tflite_in(n, 0), 0));
    least = floor(((1 << WHOLE) - 1) * ldexp(unit, -f.shift));
    for (int i = 0; i < BYTES; i++) {
        there[i] = i <= least;
        steps[i] = there[i] ? -i : 0;
    }
    *x = tflite_times(b, build_const(b, DT_I32, 1, &cells, steps), TFLITE_ANY, 1, &f, 1);
    *near = build_const(b, DT_I32, 1, &cells, there);
    return *x && *near;
}

/* exp of them in 2^-31, 0 where nothing is left of it. */
static const Expr *exponentials(const TfliteNode *n, double beta)
{
    const Expr *x, *near;

    if (!distances(n, beta, &x, &near))
        return NULL;
    return folded(&n->b, build_mul(&n->b, tflite_fixed_exp(&n->b, x, WHOLE), near));
}

/* How far each cell is below the largest. */
static const Expr *below_largest(const Build *b, const Expr *x, int64_t axis)
{
    x = build_cast(b, x, DT_I32);
    return build_cast(b, build_sub(b, build_reduce(b, "max", x, 1, &axis, true), x), DT_U8);
}

/* Of exponentials, in 2^(SUM_WHOLE - 31) */
static const Expr *sum_of(const Build *b, const Expr *x, int64_t axis)
{
    int64_t     cells = build_dim(b, x, (uint32_t)axis);
    const Expr *sum = tflite_rounded(b, x, SUM_WHOLE);

    if (cells <= MOST_SUMMED)
        return build_reduce(b, "sum", sum, 1, &axis, true);
    sum = build_reduce(b, "sum", build_cast(b, sum, DT_I64), 1, &axis, true);
    return build_cast(b, sum ? by(b, "minimum", sum, dtype_max(DT_I32)) : NULL, DT_I32);
}

/* Exponentials of the distances to the largest cell, times the reciprocal of their sum; the result
 * may have 16 bits. */
static bool softmax_bytes(TfliteNode *n, int64_t axis, double beta)
{
    const Build *b = &n->b;
    const Expr  *x = below_largest(b, n->in[0], axis), *sum, *bits, *y;
    DType        t = expr_dtype(n->in[0]);

    tflite_dtype(tflite_out(n, 0)->type, &t);
    if (!(x = build_take(b, exponentials(n, beta), x, 0)))
        return false;
    sum = sum_of(b, x, axis);
    /* The highest bit of the sum stands for 1. */
    bits = count_bits(b, sum, axis, LEAST_SUM);
    y = build2(b, "left_shift", build_scalar(b, bits, 1), by(b, "subtract", bits, 1), NULL);
    y = build2(b, "left_shift", build_sub(b, sum, y),
               by(b, "add", build1(b, "negative", bits, NULL), 32), NULL);
    y = tflite_fixed_product(b, tflite_fixed_reciprocal(b, y), x);
    bits = by(b, "minimum", by(b, "add", bits, SUM_WHOLE - 1 - t.bits), 31);
    y = by(b, "add", tflite_rounded_by(b, y, bits), dtype_min(t));
    return tflite_done(n, tflite_saturated(b, y, t));
}

bool tflite_softmax_steps(TfliteNode *n, int64_t axis, double beta)
{
    return expr_dtype(n->in[0]).bits == 8 ? softmax_bytes(n, axis, beta)
                                          : softmax_words(n, axis, beta);
}

/* ---- logarithms ------------------------------------------------------------------------------------ */

static double unit_of(double v)
{
    return round(ldexp(v, 31));
}

static const Expr *product(const Build *b, const Expr *x, const Expr *y)
{
    return tflite_fixed_product(b, x, y);
}

static const Expr *product_by(const Build *b, const Expr *x, double v)
{
    return x ? product(b, x, build_scalar(b, x, unit_of(v))) : NULL;
}

/* The logarithm in 2^(WHOLE - 31) of a sum.  With its highest bit, or that of its product with
 * sqrt(1/2), in place 30 it is r 2^e, r being near sqrt(sqrt(1/2)); a quotient of polynomials of
 * r's distance from there is log(r), but for e log(2). */
static const Expr *logarithm(const Build *b, const Expr *sum, int64_t axis)
{
    enum { ONE = 31 - WHOLE - 1, QUARTER = 1 << (ONE - 2), MIDDLE = 31 };
    double      root = sqrt(sqrt(0.5));
    const Expr *bits = count_bits(b, sum, axis, LEAST_SUM), *down = product_by(b, sum, sqrt(0.5)),
               *down_bits = count_bits(b, down, axis, LEAST_SUM - 1), *r, *r2, *e, *e2, *p, *q,
               *square, *over, *under;

    r = build2(b, "left_shift", sum, by(b, "add", build1(b, "negative", bits, NULL), MIDDLE), NULL);
    r = by(b, "left_shift", build_cast(b, product_by(b, r, sqrt(0.5)), DT_I64), 1);
    r2 = build2(b, "left_shift", build_cast(b, sum, DT_I64),
                build_cast(b, by(b, "add", build1(b, "negative", down_bits, NULL), MIDDLE), DT_I64),
                NULL);
    r = r2 ? build2(b, "minimum", r, r2, NULL) : NULL;
    r = build_cast(b, r ? by(b, "minimum", r, dtype_max(DT_I32)) : NULL, DT_I32);
    /* Bits above the point: the sum has 19 below. */
    e = by(b, "left_shift", by(b, "subtract", bits, 31 - SUM_WHOLE + 1), ONE);
    e2 = by(b, "left_shift", by(b, "subtract", down_bits, 31 - SUM_WHOLE), ONE);
    e = by(b, "add", e, QUARTER);
    e2 = by(b, "subtract", e2, QUARTER);
    e = e2 ? build2(b, "maximum", e, e2, NULL) : NULL;

    p = by(b, "right_shift", by(b, "add", build_cast(b, r, DT_I64), unit_of(root) + 1), 1);
    p = build_cast(b, p, DT_I32);
    q = by(b, "left_shift", by(b, "subtract", r, unit_of(root)), 1);
    square = product(b, q, q);
    over = build_add(b, product(b, q, r), product_by(b, product(b, q, square), 11 / (240 * root)));
    under = build_add(b, by(b, "add", q, unit_of(2 * root - 1 / root)),
                      product_by(b, square, 1 / (20 * root)));
    under = build_add(b, product(b, p, under), product_by(b, q, 1 / (4 * root)));
    over = product(b, tflite_rounded(b, over, WHOLE + 1), tflite_fixed_reciprocal(b, under));
    e = build_add(b, product_by(b, e, log(2)), over);
    return by(b, "left_shift", e, 1);
}

/* The distance to the largest cell less the logarithm of the sum, in 2^-4. */
bool tflite_log_softmax_steps(TfliteNode *n, int64_t axis)
{
    enum { FEW = 4 };
    const Build *b = &n->b;
    const Expr  *at = below_largest(b, n->in[0], axis), *x, *near, *sum;
    DType        t = expr_dtype(n->in[0]);

    if (!distances(n, 1, &x, &near))
        return false;
    /* What is further away is as the least that there is. */
    x = build_where(b, build_cast(b, near, DT_BOOL), x, build_scalar(b, x, -(1 << 30)));
    x = folded(b, x ? by(b, "maximum", x, -(1 << 30)) : NULL);
    sum = sum_of(b, build_take(b, exponentials(n, 1), at, 0), axis);
    x = build_sub(b, build_take(b, x, at, 0), logarithm(b, sum, axis));
    x = by(b, "add", tflite_rounded(b, x, 31 - WHOLE - FEW), dtype_max(t));
    return tflite_done(n, tflite_saturated(b, x, t));
}

/* ---- norms ----------------------------------------------------------------------------------------- */

/* x by the root of the sum of squares, in 2^-7. */
bool tflite_l2_norm_steps(TfliteNode *n, int64_t axis)
{
    enum { BITS = 7 };
    const Build *b = &n->b;
    DType        t = expr_dtype(n->in[0]);
    const Expr  *x =
        by(b, "subtract", build_cast(b, n->in[0], DT_I32), (double)tflite_zero(tflite_in(n, 0), 0));
    TfliteRoot root;

    if (!tflite_inverse_root(b, build_reduce(b, "sum", build_mul(b, x, x), 1, &axis, true), axis,
                             &root))
        return false;
    if (t.code == DT_INT) { /* i8: as much of the factor as can be comes before the product */
        const Expr *right = by(b, "subtract", root.right, BITS), *left;

        left = right ? by(b, "maximum", build1(b, "negative", right, NULL), 0) : NULL;
        x = build2(b, "left_shift", x, left, NULL);
        root.right = right ? by(b, "maximum", right, 0) : NULL;
    } else {
        x = by(b, "left_shift", x, BITS);
    }
    x = tflite_times_root(b, x, &root);
    x = by(b, "add", x, (double)tflite_zero(tflite_out(n, 0), 0));
    return tflite_done(n, tflite_saturated(b, x, t));
}
