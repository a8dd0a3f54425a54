/* TANH and SOFTMAX of 16 bits, in integers.
 *
 * LiteRT's reference kernels interpolate in tables here, and are up to 70 steps away from the exact
 * values.  A quantized model was tuned to what these give, so the tables and the order in which
 * results are rounded are the same:
 *
 *   look up v       %0 = right_shift(v, 7);  %1 = take(const @t, %0);  %2 = bitwise_and(v, 127)
 *                   %1 + ((take(const @t, %0 + 1) - %1) * %2 + 64 >> 7)
 */
#include "frontends/tflite/tflite.h"

#include <math.h>

static const Expr *by(const Build *b, const char *op, const Expr *x, double v)
{
    return build_by(b, op, x, v);
}

static const Expr *table(const Build *b, const int32_t *cells, int64_t n)
{
    return build_const(b, DT_I32, 1, &n, cells);
}

/* Cell `at` of the table and what is `part` of 2^bits on the way from there to the next one, times
 * 2^bits. */
static const Expr *between(const Build *b, const int32_t *cells, int64_t n, const Expr *at,
                           const Expr *part, int bits)
{
    const Expr *first = build_take(b, table(b, cells, n), at, 0);
    const Expr *next = build_take(b, table(b, cells + 1, n - 1), at, 0);

    return build_add(b, by(b, "left_shift", first, bits),
                     build_mul(b, build_sub(b, next, first), part));
}

/* ---- tanh ------------------------------------------------------------------------------------------ */

enum { SIGMOIDS = 256 };

/* sigmoid(i / 24) in 2^-16 */
static void sigmoids(int32_t *cells)
{
    for (int i = 0; i < SIGMOIDS; i++) {
        double v = nearbyint(65536 / (1 + exp(-i / 24.0)));

        cells[i] = v < 65535 ? (int32_t)v : 65535;
    }
}

/* x in 2^-12 / 3: times an integer, and shifted. */
static const Expr *tanh_argument(const Build *b, const Expr *x, double scale)
{
    int    exponent, shift = 0;
    double fraction = frexp(scale, &exponent), times = scale * 4096 * 3;

    if (fraction == 0.5 && (exponent == -11 || exponent == -10))
        return by(b, "multiply", x, times);
    for (; times <= 32767 / 2.0 && shift <= 30; shift++)
        times *= 2;
    x = by(b, "multiply", x, floor(times));
    return shift ? by(b, "right_shift", by(b, "add", x, ldexp(1, shift - 1)), shift) : x;
}

/* 2 * sigmoid(2 * x) - 1 by the table for |x|. */
bool tflite_tanh(TfliteNode *n)
{
    const Build *b = &n->b;
    int32_t      cells[SIGMOIDS];
    const Expr  *x, *at, *y;
    double       scale;

    if (!n->raw)
        return tflite_unary(n);
    scale = tflite_scale(tflite_in(n, 0), 0);
    if (!(scale > 0 && scale < 1))
        return tflite_error(n, E_UNSUPPORTED, "a scale of %g", scale);
    sigmoids(cells);
    x = tanh_argument(b, build_cast(b, n->in[0], DT_I32), scale);
    at = build1(b, "abs", x, NULL);
    y = between(b, cells, SIGMOIDS, build_clip(b, by(b, "right_shift", at, 8), 0, SIGMOIDS - 2),
                by(b, "bitwise_and", at, 255), 8);
    at = build2(b, "less", at, build_scalar(b, at, (SIGMOIDS - 1) << 8), NULL);
    y = build_where(b, at, y, build_scalar(b, y, 0xffff << 8));
    y = by(b, "subtract", y, 1 << 23);
    x = build2(b, "less", x, build_scalar(b, x, 0), NULL);
    y = build_where(b, x, by(b, "add", build1(b, "negative", y, NULL), 127), by(b, "add", y, 128));
    return tflite_done(n, build_cast(b, by(b, "right_shift", y, 8), DT_I16));
}

/* ---- softmax --------------------------------------------------------------------------------------- */

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
    y = between(b, cells, STEPS + 1, by(b, "right_shift", v, 7), by(b, "bitwise_and", v, 127), 7);
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

/* How many bits a sum of exponentials has. */
static const Expr *count_bits(const Build *b, const Expr *sum, int64_t axis)
{
    int32_t     powers[MOST_BITS - LEAST_BITS];
    int64_t     n = COUNT(powers);
    const Expr *least;

    for (int i = 0; i < n; i++)
        powers[i] = (int32_t)(UINT32_C(1) << (LEAST_BITS + i));
    least = sum ? build_along(b, table(b, powers, n), expr_rank(sum), (uint32_t)axis) : NULL;
    least = build2(b, "greater_equal", sum, least, NULL);
    return by(b, "add",
              build_reduce(b, "sum", build_cast(b, least, DT_I32), 1, (int64_t[]){axis}, true),
              LEAST_BITS);
}

/* Exponentials of the distances to the largest cell, times the reciprocal of their sum. */
bool tflite_softmax_words(TfliteNode *n, int64_t axis, double beta)
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
    bits = count_bits(b, sum, axis);
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
