/* Functions of one operand of 8 or 16 bits, in the integers of LiteRT's reference kernels.
 *
 * A function of 8 bits is a table of 256 cells, whatever its arithmetic is.  Of 16 bits what is
 * arithmetic of integers stays such; others are lines between 513 cells of a table:
 *
 *   i8    take(const @t, %x, mode="wrap")                 t: of 0 .. 127, -128 .. -1
 *   i16   %0 = right_shift(%x, 7) + 256;  %1 = take(const @t, %0)
 *         %1 + ((take(const @t, %0 + 1) - %1) * bitwise_and(%x, 127) + 64 >> 7) */
#include "frontends/tflite/tflite.h"

#include <math.h>

enum { BYTES = 256, LINES = 512 };

static const Expr *by(const Build *b, const char *op, const Expr *x, double v)
{
    return build_by(b, op, x, v);
}

static float in_scale(const TfliteNode *n)
{
    return (float)tflite_scale(tflite_in(n, 0), 0);
}

static float out_scale(const TfliteNode *n)
{
    return (float)tflite_scale(tflite_out(n, 0), 0);
}

static double in_zero(const TfliteNode *n)
{
    return (double)tflite_zero(tflite_in(n, 0), 0);
}

static double out_zero(const TfliteNode *n)
{
    return (double)tflite_zero(tflite_out(n, 0), 0);
}

/* ---- tables --------------------------------------------------------------------------------------- */

/* Cell x of a table in the order of bytes without a sign. */
static bool looked_up(TfliteNode *n, const Expr *cells)
{
    TakeAttrs *a = ATTRS(&n->b, TakeAttrs);

    a->mode = "wrap";
    return tflite_done(n, build2(&n->b, "take", cells, n->in[0], a));
}

/* The value of byte i of a table. */
static int value_of(int i, DType t)
{
    return t.code == DT_INT && i > 127 ? i - BYTES : i;
}

/* Steps of the result from those of the operand, both less their zero points, in i32. */
typedef const Expr *Steps(const TfliteNode *n, const Expr *x);

static const Expr *steps_of(TfliteNode *n, Steps *fn, const Expr *x, double lo, double hi)
{
    const Build *b = &n->b;
    const Expr  *y = fn(n, by(b, "subtract", build_cast(b, x, DT_I32), in_zero(n)));
    DType        t = DT_I32;

    tflite_dtype(tflite_out(n, 0)->type, &t);
    return build_cast(b, build_clip(b, by(b, "add", y, out_zero(n)), lo, hi), t);
}

/* .. between lo and hi */
static bool of_steps(TfliteNode *n, Steps *fn, double lo, double hi)
{
    const Build *b = &n->b;
    DType        t = expr_dtype(n->in[0]);
    int64_t      cells = BYTES;
    int32_t      x[BYTES];
    const Expr  *y, *folded;

    if (t.bits > 8)
        return tflite_done(n, steps_of(n, fn, n->in[0], lo, hi));
    for (int i = 0; i < BYTES; i++)
        x[i] = value_of(i, t);
    y = steps_of(n, fn, build_const(b, DT_I32, 1, &cells, x), lo, hi);
    folded = y ? build_fold(b, y) : NULL;
    return looked_up(n, folded ? folded : y);
}

/* A real function; infinite where the result is to be the least or largest that there is. */
typedef float Real(float x);

static const Expr *byte_cells(const TfliteNode *n, Real *f)
{
    DType   t = expr_dtype(n->in[0]);
    int64_t cells = BYTES;
    uint8_t data[BYTES];

    for (int i = 0; i < BYTES; i++) {
        float x = in_scale(n) * (float)(value_of(i, t) - in_zero(n));
        float y = roundf(f(x) * (1 / out_scale(n))) + (float)out_zero(n);

        y = fmaxf((float)dtype_min(t), fminf(y, (float)dtype_max(t))); /* of NaN the largest */
        data[i] = (uint8_t)(int)y;
    }
    return build_const(&n->b, t, 1, &cells, data);
}

/* In steps of the result. */
static float real_word(const TfliteNode *n, Real *f, float x)
{
    float y = f(x), range = out_scale(n) * 32767 - out_scale(n) * -32768;

    if (!isfinite(y))
        y = (y < 0 ? (float)-32768 : (float)32767) * out_scale(n);
    return y * (65536 / range);
}

/* At LINES + 1 places, moved by half of what a line between two misses in the middle. */
static void word_cells(const TfliteNode *n, Real *f, int32_t *cells)
{
    float first = in_scale(n) * -32768, last = in_scale(n) * 32767, step = (last - first) / LINES;

    for (int i = 0; i <= LINES; i++) {
        float x = i < LINES ? first + (float)i * step : last, y = roundf(real_word(n, f, x));

        if (i < LINES) {
            float next = real_word(n, f, first + (float)(i + 1) * step);
            float middle = roundf(real_word(n, f, first + (float)i * step + step / 2));

            y -= roundf((roundf((next + y) / 2) - middle) / 2);
        }
        cells[i] = (int32_t)fmaxf(-32768, fminf(y, 32767));
    }
}

static bool of_real(TfliteNode *n, Real *f)
{
    const Build *b = &n->b;
    const Expr  *x, *y;
    int32_t      cells[LINES + 1];

    if (expr_dtype(n->in[0]).bits == 8)
        return looked_up(n, byte_cells(n, f));
    word_cells(n, f, cells);
    x = build_cast(b, n->in[0], DT_I32);
    y = tflite_between(b, cells, LINES + 1, by(b, "add", by(b, "right_shift", x, 7), LINES / 2),
                       by(b, "bitwise_and", x, 127), 7);
    y = by(b, "right_shift", by(b, "add", y, 64), 7);
    return tflite_done(n, build_cast(b, y, DT_I16));
}

/* ---- real functions ------------------------------------------------------------------------------- */

static float real_sigmoid(float x)
{
    return 1 / (1 + expf(-x));
}

static float real_elu(float x)
{
    return x < 0 ? expm1f(x) : x;
}

static float real_gelu(float x)
{
    return 0.5F * x * erfcf(x * (float)-M_SQRT1_2);
}

static float real_gelu_tanh(float x)
{
    return 0.5F * x * (1 + tanhf((float)0.7978845608028654 * (x + 0.044715F * x * x * x)));
}

static float real_log(float x)
{
    return x > 0 ? logf(x) : -INFINITY;
}

static float real_rsqrt(float x)
{
    return x > 0 ? 1 / sqrtf(x) : INFINITY;
}

/* ---- arithmetic ----------------------------------------------------------------------------------- */

/* x: a byte or word less a zero point. */
static const Expr *times(const TfliteNode *n, const Expr *x, double v)
{
    TfliteFixed f;

    return tflite_fixed(n, v, &f) ? tflite_times(&n->b, x, 1 << 16, 1, &f, 1) : NULL;
}

static const Expr *rescaled(const TfliteNode *n, const Expr *x)
{
    return times(n, x, (double)(in_scale(n) / out_scale(n)));
}

static const Expr *quantized(const TfliteNode *n, const Expr *x)
{
    return times(n, x, (double)in_scale(n) / (double)out_scale(n));
}

/* In floats, too, and cut off there. */
static const Expr *root(const TfliteNode *n, const Expr *x)
{
    const Build *b = &n->b;

    x = by(b, "multiply", build_cast(b, x, DT_F32), (double)in_scale(n));
    x = by(b, "divide", build1(b, "sqrt", x, NULL), (double)out_scale(n));
    return build_cast(b, x, DT_I32);
}

static const Expr *negated(const TfliteNode *n, const Expr *x)
{
    return build1(&n->b, "negative", x, NULL);
}

static const Expr *magnitude(const TfliteNode *n, const Expr *x)
{
    x = build1(&n->b, "abs", x, NULL);
    return in_scale(n) == out_scale(n) ? x : rescaled(n, x);
}

static const Expr *leaky(const TfliteNode *n, const Expr *x)
{
    const Build *b = &n->b;
    float        alpha = in_scale(n) * (float)tflite_float(n, "alpha") / out_scale(n);
    const Expr  *below = times(n, x, fabs((double)alpha)), *y = rescaled(n, x);

    if (alpha < 0)
        below = build1(b, "negative", below, NULL);
    return y ? build_where(b, build_less(b, x, build_scalar(b, x, 0)), below, y) : NULL;
}

/* A factor of 16 bits and its exponent. */
static bool short_factor(const TfliteNode *n, float v, double *times, int *exponent)
{
    TfliteFixed f;

    if (!tflite_fixed(n, (double)v, &f))
        return false;
    *times = f.times >= 0x7fff8000 ? 32767 : (double)((f.times + 32768) >> 16);
    *exponent = f.shift;
    return true;
}

static const Expr *word_product(const Build *b, const Expr *x, double v)
{
    return by(b, "right_shift", by(b, "add", by(b, "multiply", x, v), 1 << 14), 15);
}

static const Expr *words(const Build *b, const Expr *x)
{
    return build_clip(b, x, -32768, 32767);
}

/* x times what lies from 0 to 1 where x does from -3 to 3, in numbers of 16 bits. */
static const Expr *hard_swish(const TfliteNode *n, const Expr *x)
{
    const Build *b = &n->b;
    float        fine = in_scale(n) / 128;
    double       times, gate_times;
    int          exponent, up;
    const Expr  *gate;

    if (!short_factor(n, fine / out_scale(n), &times, &exponent) ||
        !short_factor(n, fine / (3.0F / 32768), &gate_times, &up))
        return NULL;
    if (exponent > 0)
        return tflite_error(n, E_UNSUPPORTED, "a result in steps of %g from those of %g",
                            (double)out_scale(n), (double)in_scale(n));
    x = by(b, "left_shift", x, 7);
    gate = up > 0 ? words(b, by(b, "left_shift", x, up < 16 ? up - 1 : 15)) : x;
    gate = word_product(b, gate, gate_times);
    gate = up > 0 ? words(b, by(b, "left_shift", gate, 1)) : tflite_rounded(b, gate, -up);
    gate = by(b, "right_shift", by(b, "add", gate, 1 << 15), 1);
    x = by(b, "divide", build_mul(b, gate, word_product(b, x, times)), 1 << 15);
    return tflite_rounded(b, x, -exponent);
}

/* 1 / sqrt(x) in 2^-20 first. */
static const Expr *rsqrt(const TfliteNode *n, const Expr *x)
{
    enum { FINE = 20 };
    const Build *b = &n->b;
    TfliteFixed  f;
    TfliteRoot   root;
    int64_t      cells = build_elems(b, x);
    const Expr  *y, *none;

    if (!tflite_fixed(n, 1 / (double)(sqrtf(in_scale(n)) * out_scale(n)), &f) ||
        !tflite_inverse_root(b, build_reshape(b, x, 2, (int64_t[]){cells, 1}), 1, &root))
        return NULL;
    y = tflite_times_root(b, build_scalar(b, x, 1 << FINE), &root);
    f.shift -= FINE;
    y = tflite_times(b, build_reshape(b, y, 1, &cells), TFLITE_ANY, 1, &f, 1);
    none = build2(b, "equal", x, build_scalar(b, x, 0), NULL);
    return y ? build_where(b, none, build_scalar(b, y, 255), y) : NULL;
}

/* ---- operators ------------------------------------------------------------------------------------ */

/* What a real number is in the first result, as it is rounded for the bounds of an activation. */
static double step_of(const TfliteNode *n, float v)
{
    return out_zero(n) + (double)roundf(v / out_scale(n));
}

void tflite_bounds(const TfliteNode *n, float from, float to, double *lo, double *hi)
{
    DType t = DT_I8;

    tflite_dtype(tflite_out(n, 0)->type, &t);
    *lo = dtype_min(t);
    *hi = dtype_max(t);
    if (isfinite(from))
        *lo = fmin(fmax(*lo, step_of(n, from)), *hi);
    if (isfinite(to))
        *hi = fmax(fmin(*hi, step_of(n, to)), *lo);
}

/* A function of integers, or a real one that these do not have, in floats, too. */
static bool function(TfliteNode *n, Steps *steps, Real *real)
{
    DType t = expr_dtype(n->in[0]);

    if (!n->raw)
        return tflite_unary(n);
    if (steps && (t.bits == 8 || !real))
        return of_steps(n, steps, dtype_min(t), dtype_max(t));
    return of_real(n, real);
}

static bool bounded(TfliteNode *n, float from, float to)
{
    double lo, hi;

    if (!n->raw)
        return tflite_done(n, isfinite(to) ? build_clip(&n->b, n->in[0], (double)from, (double)to)
                                           : build1(&n->b, "nn.relu", n->in[0], NULL));
    tflite_bounds(n, from, to, &lo, &hi);
    if (tflite_same_quantization(tflite_in(n, 0), tflite_out(n, 0)))
        return tflite_done(n, build_clip(&n->b, n->in[0], lo, hi));
    return of_steps(n, rescaled, lo, hi);
}

bool tflite_relu(TfliteNode *n)
{
    return bounded(n, 0, INFINITY);
}

bool tflite_relu_n1_to_1(TfliteNode *n)
{
    return bounded(n, -1, 1);
}

bool tflite_relu_0_to_1(TfliteNode *n)
{
    return bounded(n, 0, 1);
}

bool tflite_relu6(TfliteNode *n)
{
    return bounded(n, 0, 6);
}

bool tflite_leaky_relu(TfliteNode *n)
{
    LeakyReluAttrs *a = ATTRS(&n->b, LeakyReluAttrs);

    if (n->raw)
        return function(n, leaky, NULL);
    a->alpha = tflite_float(n, "alpha");
    return tflite_done(n, build1(&n->b, "nn.leaky_relu", n->in[0], a));
}

bool tflite_abs(TfliteNode *n)
{
    return function(n, magnitude, NULL);
}

bool tflite_neg(TfliteNode *n)
{
    return function(n, negated, NULL);
}

bool tflite_exp(TfliteNode *n)
{
    return function(n, NULL, expf);
}

bool tflite_log(TfliteNode *n)
{
    return function(n, NULL, real_log);
}

bool tflite_sqrt(TfliteNode *n)
{
    return function(n, root, NULL);
}

bool tflite_rsqrt(TfliteNode *n)
{
    return function(n, rsqrt, real_rsqrt);
}

bool tflite_elu(TfliteNode *n)
{
    return n->raw ? of_real(n, real_elu) : tflite_done(n, build_elu(&n->b, n->in[0], 1, 1));
}

bool tflite_hard_swish(TfliteNode *n)
{
    return n->raw ? function(n, hard_swish, NULL)
                  : tflite_done(n, build_hard_swish(&n->b, n->in[0]));
}

bool tflite_gelu(TfliteNode *n)
{
    bool by_tanh = tflite_int(n, "approximate");

    return n->raw ? of_real(n, by_tanh ? real_gelu_tanh : real_gelu)
                  : tflite_done(n, build_gelu(&n->b, n->in[0], by_tanh));
}

/* What follows the operator quantizes floats. */
bool tflite_quantized(TfliteNode *n)
{
    DType t = DT_I32;

    if (!n->raw)
        return tflite_done(n, build_cast(&n->b, n->in[0], DT_F32));
    tflite_dtype(tflite_out(n, 0)->type, &t);
    return tflite_same_quantization(tflite_in(n, 0), tflite_out(n, 0))
               ? tflite_done(n, n->in[0])
               : of_steps(n, quantized, dtype_min(t), dtype_max(t));
}

/* ---- tanh and sigmoid of 16 bits ------------------------------------------------------------------ */

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
    y = tflite_between(b, cells, SIGMOIDS,
                       build_clip(b, by(b, "right_shift", at, bits), 0, SIGMOIDS - 2),
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

    if (!n->raw || expr_dtype(n->in[0]).bits == 8)
        return function(n, NULL, tanhf);
    if (!(x = function_input(n)))
        return false;
    y = sigmoid_of(b, build1(b, "abs", x, NULL), 8, 0xffff << 8);
    return mirrored(n, x, by(b, "subtract", y, 1 << 23), 0, 8);
}

bool tflite_logistic(TfliteNode *n)
{
    const Build *b = &n->b;
    const Expr  *x;

    if (!n->raw || expr_dtype(n->in[0]).bits == 8)
        return function(n, NULL, real_sigmoid);
    if (!(x = function_input(n)))
        return false;
    return mirrored(n, x, sigmoid_of(b, build1(b, "abs", x, NULL), 9, 0x7fff << 10), 1 << 25, 10);
}
