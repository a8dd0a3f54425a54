/* Arithmetic of one scalar element (ir/scalar.h).  Every operation is one C operation in a function
 * of its own, so the compiler of this file can neither contract nor keep excess precision. */
#include "ir/scalar.h"

#include <math.h>
#include <string.h>

int64_t scalar_wrap(DType t, int64_t v)
{
    uint64_t u = (uint64_t)v, sign;

    if (dtype_is_bool(t))
        return v != 0;
    if (t.bits >= 64)
        return v;
    u &= (1ull << t.bits) - 1;
    sign = 1ull << (t.bits - 1);
    return t.code == DT_INT ? (int64_t)((u ^ sign) - sign) : (int64_t)u;
}

double scalar_round(DType t, double v)
{
    uint64_t cell = 0;

    if (t.bits == 64)
        return v;
    if (t.code == DT_FLOAT && t.bits == 32)
        return (double)(float)v;
    dtype_put_f(t, &cell, v);
    return dtype_get_f(t, &cell);
}

Scalar scalar_get(DType t, const void *p)
{
    t.lanes = 1;
    if (dtype_is_float(t))
        return (Scalar){.f = dtype_get_f(t, p)};
    return (Scalar){.i = scalar_wrap(t, dtype_get_i(t, p))};
}

void scalar_put(DType t, void *p, Scalar v)
{
    t.lanes = 1;
    if (dtype_is_float(t))
        dtype_put_f(t, p, v.f);
    else
        dtype_put_i(t, p, v.i);
}

bool scalar_same(DType t, Scalar a, Scalar b)
{
    if (dtype_is_float(t))
        return memcmp(&a.f, &b.f, sizeof a.f) == 0;
    return a.i == b.i;
}

/* ---- integers ------------------------------------------------------------------------------- */

static bool is_unsigned(DType t)
{
    return t.code != DT_INT;
}

static int64_t int_div(DType t, int64_t a, int64_t b)
{
    if (b == 0)
        return 0;
    if (is_unsigned(t))
        return (int64_t)((uint64_t)a / (uint64_t)b);
    if (b == -1)
        return (int64_t)(0 - (uint64_t)a); /* INT64_MIN / -1 traps in C */
    return a / b;
}

static int64_t int_rem(DType t, int64_t a, int64_t b)
{
    if (b == 0 || (b == -1 && !is_unsigned(t)))
        return 0;
    if (is_unsigned(t))
        return (int64_t)((uint64_t)a % (uint64_t)b);
    return a % b;
}

static bool int_less(DType t, int64_t a, int64_t b)
{
    return is_unsigned(t) ? (uint64_t)a < (uint64_t)b : a < b;
}

static int64_t int_bin(PrimKind k, DType t, int64_t a, int64_t b)
{
    uint64_t x = (uint64_t)a, y = (uint64_t)b;
    unsigned shift = (unsigned)(y & (t.bits - 1u));

    switch (k) {
    case PRIM_ADD: return (int64_t)(x + y);
    case PRIM_SUB: return (int64_t)(x - y);
    case PRIM_MUL: return (int64_t)(x * y);
    case PRIM_DIV: return int_div(t, a, b);
    case PRIM_REM: return int_rem(t, a, b);
    case PRIM_MIN:
    case PRIM_MINNUM: return int_less(t, b, a) ? b : a;
    case PRIM_MAX:
    case PRIM_MAXNUM: return int_less(t, a, b) ? b : a;
    case PRIM_AND: return a & b;
    case PRIM_OR: return a | b;
    case PRIM_XOR: return a ^ b;
    case PRIM_SHL: return (int64_t)(x << shift);
    case PRIM_SHR:
        if (is_unsigned(t) || a >= 0)
            return (int64_t)(x >> shift);
        return (int64_t)~(~x >> shift); /* arithmetic, without relying on C's choice */
    case PRIM_EQ: return a == b;
    case PRIM_NE: return a != b;
    case PRIM_LT: return int_less(t, a, b);
    case PRIM_LE: return !int_less(t, b, a);
    default: BUG("scalar: kind %d is not a binary operation of integers", (int)k);
    }
}

/* ---- floats ------------------------------------------------------------------------------------ */

static float arith_f32(PrimKind k, float a, float b)
{
    switch (k) {
    case PRIM_ADD: return a + b;
    case PRIM_SUB: return a - b;
    case PRIM_MUL: return a * b;
    case PRIM_DIV: return a / b;
    case PRIM_REM: return fmodf(a, b);
    default: BUG("scalar: kind %d is not arithmetic of floats", (int)k);
    }
}

static double arith_f64(PrimKind k, double a, double b)
{
    switch (k) {
    case PRIM_ADD: return a + b;
    case PRIM_SUB: return a - b;
    case PRIM_MUL: return a * b;
    case PRIM_DIV: return a / b;
    case PRIM_REM: return fmod(a, b);
    default: BUG("scalar: kind %d is not arithmetic of floats", (int)k);
    }
}

static double float_min(double a, double b)
{
    if (isnan(a))
        return a;
    if (isnan(b))
        return b;
    if (a == b)
        return signbit(a) ? a : b;
    return a < b ? a : b;
}

static double float_max(double a, double b)
{
    if (isnan(a))
        return a;
    if (isnan(b))
        return b;
    if (a == b)
        return signbit(a) ? b : a;
    return a > b ? a : b;
}

Scalar scalar_bin(PrimKind k, DType t, Scalar a, Scalar b)
{
    bool compares = k == PRIM_EQ || k == PRIM_NE || k == PRIM_LT || k == PRIM_LE;

    if (!dtype_is_float(t)) {
        int64_t v = int_bin(k, t, a.i, b.i);
        return (Scalar){.i = compares ? v : scalar_wrap(t, v)};
    }
    switch (k) {
    case PRIM_MIN: return (Scalar){.f = float_min(a.f, b.f)};
    case PRIM_MAX: return (Scalar){.f = float_max(a.f, b.f)};
    case PRIM_MINNUM: return b.f < a.f || isnan(a.f) ? b : a;
    case PRIM_MAXNUM: return b.f > a.f || isnan(a.f) ? b : a;
    case PRIM_EQ: return (Scalar){.i = a.f == b.f};
    case PRIM_NE: return (Scalar){.i = a.f != b.f};
    case PRIM_LT: return (Scalar){.i = a.f < b.f};
    case PRIM_LE: return (Scalar){.i = a.f <= b.f};
    default: break;
    }
    if (t.bits == 64)
        return (Scalar){.f = arith_f64(k, a.f, b.f)};
    return (Scalar){.f = scalar_round(t, (double)arith_f32(k, (float)a.f, (float)b.f))};
}

Scalar scalar_not(DType t, Scalar a)
{
    return (Scalar){.i = dtype_is_bool(t) ? !a.i : scalar_wrap(t, ~a.i)};
}

Scalar scalar_fma(DType t, Scalar a, Scalar b, Scalar d)
{
    if (!dtype_is_float(t))
        return scalar_bin(PRIM_ADD, t, scalar_bin(PRIM_MUL, t, a, b), d);
    if (t.bits == 64)
        return (Scalar){.f = fma(a.f, b.f, d.f)};
    return (Scalar){.f = scalar_round(t, (double)fmaf((float)a.f, (float)b.f, (float)d.f))};
}

/* ---- conversions --------------------------------------------------------------------------------- */

static int64_t float_to_int(DType to, double v)
{
    double  limit;
    int64_t most = to.bits >= 64 ? INT64_MAX : (int64_t)((1ull << (to.bits - 1)) - 1);

    if (isnan(v))
        return 0;
    if (to.code == DT_INT) {
        limit = ldexp(1.0, to.bits - 1);
        if (v >= limit)
            return most;
        if (v <= -limit)
            return -most - 1;
        return (int64_t)v;
    }
    limit = ldexp(1.0, to.bits);
    if (v <= 0)
        return 0;
    if (v >= limit)
        return to.bits >= 64 ? -1 : (int64_t)((1ull << to.bits) - 1);
    return (int64_t)(uint64_t)v;
}

static double int_to_float(DType to, DType from, int64_t v)
{
    bool wide = is_unsigned(from) && v < 0; /* u64 above INT64_MAX */

    if (to.bits == 64)
        return wide ? (double)(uint64_t)v : (double)v;
    return scalar_round(to, (double)(wide ? (float)(uint64_t)v : (float)v));
}

Scalar scalar_cast(DType to, DType from, Scalar a)
{
    if (dtype_is_float(from)) {
        if (dtype_is_float(to))
            return (Scalar){.f = scalar_round(to, a.f)};
        if (dtype_is_bool(to))
            return (Scalar){.i = a.f != 0};
        return (Scalar){.i = float_to_int(to, a.f)};
    }
    if (dtype_is_float(to))
        return (Scalar){.f = int_to_float(to, from, a.i)};
    return (Scalar){.i = scalar_wrap(to, a.i)};
}

Scalar scalar_bits(DType to, DType from, Scalar a)
{
    uint64_t cell = 0;

    scalar_put(from, &cell, a);
    return scalar_get(to, &cell);
}

/* ---- functions -------------------------------------------------------------------------------------- */

bool math_is_exact(MathFn fn)
{
    return fn == MATH_SQRT || fn == MATH_ABS || fn == MATH_FLOOR || fn == MATH_CEIL ||
           fn == MATH_TRUNC || fn == MATH_ROUND || fn == MATH_COPYSIGN;
}

static float math_f32(MathFn fn, float a, float b)
{
    switch (fn) {
    case MATH_EXP: return expf(a);
    case MATH_LOG: return logf(a);
    case MATH_TANH: return tanhf(a);
    case MATH_ERF: return erff(a);
    case MATH_SIGMOID: return 1.0f / (1.0f + expf(-a));
    case MATH_SQRT: return sqrtf(a);
    case MATH_ABS: return fabsf(a);
    case MATH_FLOOR: return floorf(a);
    case MATH_CEIL: return ceilf(a);
    case MATH_TRUNC: return truncf(a);
    case MATH_ROUND: return nearbyintf(a);
    case MATH_COPYSIGN: return copysignf(a, b);
    case MATH_POW: return powf(a, b);
    case MATH_FMOD: return fmodf(a, b);
    case MATH_SIN: return sinf(a);
    case MATH_COS: return cosf(a);
    case MATH_TAN: return tanf(a);
    case MATH_ASIN: return asinf(a);
    case MATH_ACOS: return acosf(a);
    case MATH_ATAN: return atanf(a);
    case MATH_ATAN2: return atan2f(a, b);
    case MATH_SINH: return sinhf(a);
    case MATH_COSH: return coshf(a);
    case MATH_ASINH: return asinhf(a);
    case MATH_ACOSH: return acoshf(a);
    case MATH_ATANH: return atanhf(a);
    case MATH_COUNT: break;
    }
    BUG("scalar: no function %d", (int)fn);
}

static double math_f64(MathFn fn, double a, double b)
{
    switch (fn) {
    case MATH_EXP: return exp(a);
    case MATH_LOG: return log(a);
    case MATH_TANH: return tanh(a);
    case MATH_ERF: return erf(a);
    case MATH_SIGMOID: return 1.0 / (1.0 + exp(-a));
    case MATH_SQRT: return sqrt(a);
    case MATH_ABS: return fabs(a);
    case MATH_FLOOR: return floor(a);
    case MATH_CEIL: return ceil(a);
    case MATH_TRUNC: return trunc(a);
    case MATH_ROUND: return nearbyint(a);
    case MATH_COPYSIGN: return copysign(a, b);
    case MATH_POW: return pow(a, b);
    case MATH_FMOD: return fmod(a, b);
    case MATH_SIN: return sin(a);
    case MATH_COS: return cos(a);
    case MATH_TAN: return tan(a);
    case MATH_ASIN: return asin(a);
    case MATH_ACOS: return acos(a);
    case MATH_ATAN: return atan(a);
    case MATH_ATAN2: return atan2(a, b);
    case MATH_SINH: return sinh(a);
    case MATH_COSH: return cosh(a);
    case MATH_ASINH: return asinh(a);
    case MATH_ACOSH: return acosh(a);
    case MATH_ATANH: return atanh(a);
    case MATH_COUNT: break;
    }
    BUG("scalar: no function %d", (int)fn);
}

Scalar scalar_math(MathFn fn, DType t, Scalar a, Scalar b)
{
    if (!dtype_is_float(t)) {
        if (fn != MATH_ABS)
            BUG("scalar: function %d of an integer", (int)fn);
        return a.i < 0 && !is_unsigned(t) ? scalar_bin(PRIM_SUB, t, (Scalar){.i = 0}, a) : a;
    }
    if (t.bits == 64)
        return (Scalar){.f = math_f64(fn, a.f, b.f)};
    return (Scalar){.f = scalar_round(t, (double)math_f32(fn, (float)a.f, (float)b.f))};
}
