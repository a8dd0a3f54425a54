/* Operators of 16 bits in the integers of LiteRT's reference kernels: sums, products, TANH,
 * LOGISTIC and SOFTMAX.
 *
 * For functions these kernels interpolate in tables, and are up to 70 steps away from the exact
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

/* ---- sums, products -------------------------------------------------------------------------------- */

/* What a real number is in the first result, as it is rounded for the bounds of an activation. */
static double step_of(const TfliteNode *n, float v)
{
    const TfliteTensor *t = tflite_out(n, 0);

    return (double)(tflite_zero(t, 0) + (int64_t)roundf(v / (float)tflite_scale(t, 0)));
}

/* y within the bounds of the fused activation. */
static bool activated(TfliteNode *n, const Expr *y)
{
    static const struct {
        float lo, hi;
    } bounds[] = {{-HUGE_VALF, HUGE_VALF}, {0, HUGE_VALF}, {-1, 1}, {0, 6}};
    int64_t how = tflite_int(n, "fused_activation_function");
    double  lo = dtype_min(DT_I16), hi = dtype_max(DT_I16);

    if (how < 0 || how >= (int64_t)COUNT(bounds))
        return tflite_error(n, E_UNSUPPORTED, "fused activation function %lld", (long long)how);
    if (isfinite(bounds[how].lo))
        lo = fmin(fmax(lo, step_of(n, bounds[how].lo)), hi);
    if (isfinite(bounds[how].hi))
        hi = fmax(fmin(hi, step_of(n, bounds[how].hi)), lo);
    return tflite_done(n, build_cast(&n->b, build_clip(&n->b, y, lo, hi), DT_I16));
}

static const Expr *centred(const Build *b, const TfliteTensor *t, const Expr *x)
{
    return by(b, "subtract", build_cast(b, x, DT_I32), (double)tflite_zero(t, 0));
}

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

    if (!tflite_int(n, "pot_scale_int16") || !power_of(tflite_out(n, 0), &to))
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

/* Both operands in 2^-15 of twice the larger scale, and their sum in that of the result. */
bool tflite_sum_words(TfliteNode *n)
{
    const Build *b = &n->b;
    double       scale[2], larger, out;
    TfliteFixed  f[3];
    const Expr  *x[2];

    if (sum_by_powers(n))
        return activated(n, n->out[0]);
    for (uint32_t i = 0; i < 2; i++)
        scale[i] = tflite_scale(tflite_in(n, i), 0);
    larger = 2 * fmax(scale[0], scale[1]);
    out = 32768 * tflite_scale(tflite_out(n, 0), 0);
    if (!(larger > 0 && out > 0) || larger >= out * 32768)
        return tflite_error(n, E_UNSUPPORTED, "scales %g and %g for a result of %g", scale[0],
                            scale[1], out / 32768);
    if (!tflite_fixed(n, scale[0] / larger, &f[0]) || !tflite_fixed(n, scale[1] / larger, &f[1]) ||
        !tflite_fixed(n, larger / out, &f[2]))
        return false;
    for (uint32_t i = 0; i < 2; i++) {
        x[i] = by(b, "multiply", centred(b, tflite_in(n, i), n->in[i]), 32768);
        x[i] = tflite_times(b, x[i], 1, &f[i], 1);
    }
    x[0] = tflite_times(b, build2(b, n->row->relay, x[0], x[1], NULL), 1, &f[2], 1);
    return activated(n, by(b, "add", x[0], (double)tflite_zero(tflite_out(n, 0), 0)));
}

bool tflite_product_words(TfliteNode *n)
{
    const Build *b = &n->b;
    float        scale = (float)tflite_scale(tflite_in(n, 0), 0);
    TfliteFixed  f;
    const Expr  *y;

    scale *= (float)tflite_scale(tflite_in(n, 1), 0);
    scale /= (float)tflite_scale(tflite_out(n, 0), 0);
    if (!tflite_fixed(n, (double)scale, &f))
        return false;
    y = build_mul(b, centred(b, tflite_in(n, 0), n->in[0]), centred(b, tflite_in(n, 1), n->in[1]));
    y = tflite_times(b, y, 1, &f, 1);
    return activated(n, by(b, "add", y, (double)tflite_zero(tflite_out(n, 0), 0)));
}

/* ---- tanh, sigmoid --------------------------------------------------------------------------------- */

enum { SIGMOIDS = 256 };

static double sigmoid(double x)
{
    return 65536 / (1 + exp(-x));
}

/* sigmoid(i / 24) in 2^-16, moved by half of what a line between two misses in the middle; the last
 * is as large as may be. */
static void sigmoids(int32_t *cells)
{
    for (int i = 0; i < SIGMOIDS - 1; i++) {
        double x = i / 24.0, next = x + 1 / 24.0;
        double miss = sigmoid((x + next) / 2) - (sigmoid(x) + sigmoid(next)) / 2;

        cells[i] = (int32_t)nearbyint(sigmoid(x) + miss / 2);
    }
    cells[SIGMOIDS - 1] = 65535;
}

/* x in 2^-12 / 3: times an integer, and shifted.  Two powers of two from `power` on are exact. */
static const Expr *in_thirds(const Build *b, const Expr *x, double scale, int power)
{
    int    exponent, shift = 0;
    double fraction = frexp(scale, &exponent), times = scale * 4096 * 3;

    if (fraction == 0.5 && (exponent == power || exponent == power + 1))
        return by(b, "multiply", x, times);
    for (; times <= 32767 / 2.0 && shift <= 30; shift++)
        times *= 2;
    x = by(b, "multiply", x, floor(times));
    return shift ? by(b, "right_shift", by(b, "add", x, ldexp(1, shift - 1)), shift) : x;
}

/* Of |x| * 2^bits: the table's sigmoid in 2^-(16 + bits), `most` from its last cell on. */
static const Expr *sigmoid_of(const Build *b, const Expr *at, int bits, double most)
{
    int32_t     cells[SIGMOIDS];
    const Expr *y, *inside;

    sigmoids(cells);
    y = between(b, cells, SIGMOIDS, build_clip(b, by(b, "right_shift", at, bits), 0, SIGMOIDS - 2),
                by(b, "bitwise_and", at, (1 << bits) - 1), bits);
    inside = at ? build2(b, "less", at, build_scalar(b, at, (SIGMOIDS - 1) << bits), NULL) : NULL;
    return build_where(b, inside, y, y ? build_scalar(b, y, most) : NULL);
}

/* Rounded after that many bits: y for x from 0 on, else what is left of `one`. */
static bool mirrored(TfliteNode *n, const Expr *x, const Expr *y, double one, int bits)
{
    const Build *b = &n->b;
    const Expr  *below = x ? build2(b, "less", x, build_scalar(b, x, 0), NULL) : NULL;
    double       half = ldexp(1, bits - 1);

    y = build_where(b, below, by(b, "add", build1(b, "negative", y, NULL), one + half - 1),
                    by(b, "add", y, half));
    return tflite_done(n, build_cast(b, by(b, "right_shift", y, bits), DT_I16));
}

/* The input of a function, in thirds; NULL with an error: of its scale. */
static const Expr *function_input(TfliteNode *n)
{
    double scale = tflite_scale(tflite_in(n, 0), 0);

    if (!(scale > 0 && scale < 1)) {
        tflite_error(n, E_UNSUPPORTED, "a scale of %g", scale);
        return NULL;
    }
    return in_thirds(&n->b, build_cast(&n->b, n->in[0], DT_I32), scale, -11);
}

/* 2 * sigmoid(2 * x) - 1 by the table for |x|. */
bool tflite_tanh(TfliteNode *n)
{
    const Build *b = &n->b;
    const Expr  *x, *y;

    if (!n->raw)
        return tflite_unary(n);
    if (!(x = function_input(n)))
        return false;
    y = sigmoid_of(b, build1(b, "abs", x, NULL), 8, 0xffff << 8);
    return mirrored(n, x, by(b, "subtract", y, 1 << 23), 0, 8);
}

bool tflite_logistic(TfliteNode *n)
{
    const Build *b = &n->b;
    const Expr  *x;

    if (!n->raw)
        return tflite_unary(n);
    if (!(x = function_input(n)))
        return false;
    return mirrored(n, x, sigmoid_of(b, build1(b, "abs", x, NULL), 9, 0x7fff << 10), 1 << 25, 10);
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
