/* lower_math: exponential, circular and hyperbolic functions of f32 as polynomials.
 *
 *   exp(%x: f32x8)  ->  n = round(x * log2 e);  r = x - n*ln2 (in two parts);  p(r) * 2^n
 *
 * One definition serves scalars, vectors and every backend, so the interpreter and compiled code
 * agree bit for bit on one target.  Multiply-adds are fused where the target has them.  Bounds on
 * the error against the exact value, over the whole range, measured with fused and with rounded
 * products (tests/unit/test_math.c, MATH_STEP=11): exp 1.05 ULP   log 0.85 ULP   tanh 1.51 ULP
 * sigmoid 2.44 ULP   erf 1.4 ULP   sin, cos 1.6 ULP   tan 4.2 ULP   asin 2.5 ULP   acos 1.2 ULP
 * atan 1.5 ULP   sinh 1.7 ULP   cosh 1.5 ULP   asinh 2.2 ULP   acosh 2.5 ULP   atanh 2.6 ULP
 * Special values follow C's Annex F: exp(-inf) = 0, log(0) = -inf, log(<0) = NaN, tanh(+-inf) =
 * +-1; NaN in, NaN out; underflow is gradual. Method: Cody and Waite, Software Manual for the
 * Elementary Functions (1980); the coefficients are our own minimax fits.  f16 and bf16 compute in
 * f32; f64 is left to libm, as are sin, cos and tan on targets without vectors of f64, which reduce
 * arguments of any size without a branch (after Payne and Hanek, 1983, in floats).
 *
 * For a target without libm (`-fno-libm`, and GPUs through LLVM) floor, ceil, trunc and round are
 * expanded too where the target has no instruction for them, through an integer and exact, and sqrt
 * by Newton's method, 1 ULP; pow and fmod of f32 in f64, 0.51 ULP and exact.  Cost: one walk. */
#include "passes/passes.h"

#include <math.h>

#define MAGIC 12582912.0 /* 1.5 * 2^23: adding it rounds to an integer in the low bits */
#define LOG2E 1.44269504088896341
#define LN2_HI 0.693145751953125 /* times n exact */
#define LN2_LO 1.42860682030941723e-06

typedef struct {
    Ctx  *c;
    DType f, i; /* f32 and i32 with the lanes at hand */
    bool  fma;
} M;

static const Prim *num(M *m, double v)
{
    return prim_num(m->c, m->f, v);
}
static const Prim *inum(M *m, int64_t v)
{
    return prim_num(m->c, m->i, (double)v);
}

static const Prim *fma_of(M *m, const Prim *a, const Prim *b, const Prim *d)
{
    return m->fma ? prim_fma(m->c, a, b, d) : prim_add(m->c, prim_mul(m->c, a, b), d);
}

/* Horner's scheme; k[0] is the constant term. */
static const Prim *poly(M *m, const Prim *x, const double *k, uint32_t n)
{
    const Prim *p = num(m, k[n - 1]);

    for (uint32_t i = n - 1; i-- > 0;)
        p = fma_of(m, p, x, num(m, k[i]));
    return p;
}

static const Prim *below(M *m, const Prim *a, double b, const Prim *yes, const Prim *no)
{
    return prim_select(m->c, prim_lt(m->c, a, num(m, b)), yes, no);
}

static const Prim *abs_of(M *m, const Prim *x)
{
    return prim_math(m->c, MATH_ABS, x, NULL);
}

/* x - n*step in two parts, where t = x/step rounded, n and `bias` in its low bits. */
static const Prim *reduced(M *m, const Prim *x, const Prim *t, int bias, double hi, double lo)
{
    const Prim *n = prim_sub(m->c, t, num(m, MAGIC + bias));

    return fma_of(m, n, num(m, -lo), fma_of(m, n, num(m, -hi), x));
}

/* x = n*ln2 + r: n + bias in the low 9 bits of t, and exp(r) - 1. */
static const Prim *exp_reduced(M *m, const Prim *x, int bias, const Prim **t)
{
    static const double k[] = {0.49999994, 0.166665152, 0.041668456, 0.00836941879, 0.00138131424};

    *t = fma_of(m, x, num(m, LOG2E), num(m, MAGIC + bias));
    const Prim *r = reduced(m, x, *t, bias, LN2_HI, LN2_LO);
    return fma_of(m, prim_mul(m->c, r, r), poly(m, r, k, COUNT(k)), r);
}

/* The low 9 bits of t where a float has its exponent. */
static const Prim *as_exponent(M *m, const Prim *t)
{
    return prim_bin(m->c, PRIM_SHL, prim_bits(m->c, m->i, t), inum(m, 23));
}

/* exp(x) * 2^scale, scale 0 or -1. */
static const Prim *exp_times(M *m, const Prim *x, int scale)
{
    Ctx        *c = m->c;
    const Prim *t;
    const int   bias = 2 * 127 + scale;

    /* Outside, the result is 0 or infinity anyway; a NaN passes both tests.  With the least
     * exponent both factors are 0: masks of attention are full of such numbers, and a product that
     * underflows takes many processors a hundred cycles. */
    x = below(m, x, -bias / LOG2E, num(m, -bias / LOG2E), x);
    x = prim_select(c, prim_lt(c, num(m, 89.0 - scale), x), num(m, 89.0 - scale), x);
    const Prim *q = exp_reduced(m, x, bias, &t);
    /* 2^n in two factors, so that the ends of the range overflow and underflow as they should: half
     * of the exponent with both biases, and what is left of it. */
    const Prim *e = as_exponent(m, t);
    const Prim *e1 =
        prim_bin(c, PRIM_AND, prim_bin(c, PRIM_SHR, e, inum(m, 1)), inum(m, 0x7f800000));
    const Prim *s1 = prim_bits(c, m->f, e1), *s2 = prim_bits(c, m->f, prim_sub(c, e, e1));
    /* 1 comes last: what is added to it is small, so its rounding hardly counts. */
    return prim_mul(c, fma_of(m, q, s1, s1), s2);
}

static const Prim *exp_of(M *m, const Prim *x)
{
    return exp_times(m, x, 0);
}

/* exp(x) * 2^scale where |x| is known to be so small that all of it is in the normal range: one
 * factor, made by one operation. */
static const Prim *exp_scaled(M *m, const Prim *x, int scale)
{
    const Prim *t, *q = exp_reduced(m, x, 127 + scale, &t);
    const Prim *s = prim_bits(m->c, m->f, as_exponent(m, t));

    return fma_of(m, q, s, s);
}

static const Prim *log_of(M *m, const Prim *x)
{
    static const double k[] = {0.333333135,  -0.250000089, 0.200021192,  -0.166679963, 0.142195508,
                               -0.124055915, 0.118881747,  -0.116756409, 0.0674660131};
    Ctx                *c = m->c;
    const Prim         *tiny = prim_lt(c, x, num(m, 0x1p-126));
    const Prim         *y = prim_select(c, tiny, prim_mul(c, x, num(m, 0x1p23)), x);
    /* y = 2^e * (1 + f) with 1 + f in [sqrt(1/2), sqrt(2)). */
    const Prim *b = prim_bits(c, m->i, y);
    const Prim *e = prim_bin(c, PRIM_SHR, prim_sub(c, b, inum(m, 0x3f3504f3)), inum(m, 23));
    const Prim *f = prim_sub(
        c, prim_bits(c, m->f, prim_sub(c, b, prim_bin(c, PRIM_SHL, e, inum(m, 23)))), num(m, 1.0));
    e = prim_sub(c, e, prim_select(c, tiny, inum(m, 23), inum(m, 0)));
    const Prim *n = prim_cast(c, m->f, e), *z = prim_mul(c, f, f);
    const Prim *p = prim_mul(c, prim_mul(c, z, f), poly(m, f, k, COUNT(k)));
    p = fma_of(m, n, num(m, LN2_LO), p);
    p = fma_of(m, z, num(m, -0.5), p);
    const Prim *v = fma_of(m, n, num(m, LN2_HI), prim_add(c, f, p));
    /* +inf and NaN as they are, 0 to -inf, negatives to NaN. */
    v = prim_select(c, prim_lt(c, x, num(m, (double)INFINITY)), v, x);
    v = prim_select(c, prim_lt(c, x, num(m, 0.0)), num(m, (double)NAN), v);
    return prim_select(c, prim_eq(c, x, num(m, 0.0)), num(m, -(double)INFINITY), v);
}

/* exp(2h) = (a+h) / (a-h) where a = h / tanh(h), which is even and almost straight in h^2: half the
 * operations of a polynomial for exp, where a division follows in any case. */

static const Prim *tanh_of(M *m, const Prim *x)
{
    static const double k[] = {0.33333137, -0.02219037, 0.00196924};
    const int           bias = 127;
    Ctx                *c = m->c;
    const Prim         *b = abs_of(m, x), *magic = num(m, MAGIC + bias), *one = num(m, 1.0);

    b = prim_select(c, prim_lt(c, num(m, 10.0), b), num(m, 10.0), b);
    const Prim *small = prim_lt(c, b, num(m, 0.62));
    /* b = n*ln2/2 + h; below 0.62 n is 0.  Where products are not rounded the float next to ln2/2
     * will do: n is below 30, and the more exp(2b) is, the less its error counts. */
    const Prim *t = prim_select(c, small, magic, fma_of(m, b, num(m, 2.88539008177792681), magic));
    const Prim *n = prim_sub(c, t, magic);
    const Prim *h = m->fma ? prim_fma(c, n, num(m, -0.346573591), b)
                           : reduced(m, b, t, bias, LN2_HI / 2, LN2_LO / 2);
    const Prim *z = prim_mul(c, h, h), *p = poly(m, z, k, COUNT(k)), *a = fma_of(m, z, p, one);
    const Prim *rest = prim_sub(c, a, h);
    const Prim *d = fma_of(m, prim_bits(c, m->f, as_exponent(m, t)), prim_add(c, a, h), rest);
    /* h/a = h - h*(a-1)/a, or 1 - 2/(exp(2b) + 1), which is 1 from 10 on. */
    const Prim *q = prim_select(c, small, prim_mul(c, prim_mul(c, h, z), p), rest);
    q = prim_div(c, prim_add(c, q, q), d);
    const Prim *y = prim_sub(c, prim_select(c, small, h, one), q);
    const Prim *sign = prim_bin(c, PRIM_AND, prim_bits(c, m->i, x), inum(m, INT32_MIN));
    return prim_bits(c, m->f, prim_bin(c, PRIM_OR, prim_bits(c, m->i, y), sign));
}

static const Prim *sigmoid_of(M *m, const Prim *x)
{
    static const double k[] = {2.0, 0.16666618, -0.00276598}; /* 2a of 2h */
    Ctx                *c = m->c;
    const double        magic = MAGIC + 24;

    /* e/(1+e) with e = exp(x), both times 2^24, so that e is a normal number down to where the
     * quotient is 0; from 30 on it is 1.  A NaN passes both tests. */
    x = below(m, x, -104.0, num(m, -104.0), x);
    x = prim_select(c, prim_lt(c, num(m, 30.0), x), num(m, 30.0), x);
    const Prim *t = fma_of(m, x, num(m, LOG2E), num(m, magic));
    const Prim *r = reduced(m, x, t, 24, LN2_HI, LN2_LO);
    const Prim *a = poly(m, prim_mul(c, r, r), k, COUNT(k));
    /* Times 2^n by adding to the exponent. */
    const Prim *e =
        prim_bits(c, m->f, prim_add(c, prim_bits(c, m->i, prim_add(c, a, r)), as_exponent(m, t)));

    return prim_div(c, e, fma_of(m, prim_sub(c, a, r), num(m, 0x1p24), e));
}

static const Prim *erf_of(M *m, const Prim *x)
{
    static const double s[] = {0.128379166,   -0.37612626,     0.112835854,   -0.026853811,
                               0.00518832775, -0.000801019254, 7.85385782e-05};
    static const double l[] = {-0.000188470221, 1.12958038,    0.633216381,     0.108422123,
                               -0.0252103563,   0.00420529069, -0.000441473851, 2.16977169e-05};
    Ctx                *c = m->c;
    const Prim         *a = abs_of(m, x), *z = prim_mul(c, x, x);
    const Prim         *small = fma_of(m, x, poly(m, z, s, COUNT(s)), x);
    const Prim         *b = prim_select(c, prim_lt(c, num(m, 3.93), a), num(m, 3.93), a);
    const Prim         *large =
        prim_sub(c, num(m, 1.0), exp_scaled(m, prim_neg(c, poly(m, b, l, COUNT(l))), 0));
    return below(m, a, 1.0, small, prim_math(c, MATH_COPYSIGN, large, x));
}

/* ---- circular functions ----------------------------------------------------------------------- */

typedef struct {
    const Prim *r; /* what is left, within a quarter of pi */
    const Prim *k; /* quarter turns, modulo 4 at least */
} Turns;

/* x = k * pi/2 + r, exactly for any float: x times the bits of 1/(2 pi), in f64 and 28 at a time,
 * so that each product is exact and its whole turns can be dropped.  Once the quarters are known
 * they come off first, and what follows adds up without loss where r is small. */
static Turns turns_of(M *m, const Prim *x)
{
    static const double bits[] = {0x1.45f306cp-3,  0x1.c9c882ap-31,  0x1.4fe13a8p-61,
                                  0x1.f47d4dp-88,  0x1.bb81b6cp-115, 0x1.4acc9ep-145,
                                  0x1.0e4107cp-172};
    Ctx                *c = m->c;
    DType               d = dtype_lanes(DT_F64, m->f.lanes);
    const Prim         *wide = prim_cast(c, d, x), *part[COUNT(bits)], *sum[COUNT(bits)];
    uint32_t            n = COUNT(bits);

    for (uint32_t i = 0; i < n; i++) {
        part[i] = prim_mul(c, wide, prim_num(c, d, bits[i]));
        /* Of the last two no float makes a turn. */
        if (i + 2 < n)
            part[i] = prim_sub(c, part[i], prim_math(c, MATH_ROUND, part[i], NULL));
        sum[i] = part[i];
    }
    for (; n > 1; n = (n + 1) / 2) /* side by side: the order does not matter here */
        for (uint32_t i = 0; i < n / 2; i++)
            sum[i] = prim_add(c, sum[i], sum[n - 1 - i]);
    const Prim *k = prim_math(c, MATH_ROUND, prim_mul(c, sum[0], prim_num(c, d, 4)), NULL);
    const Prim *r = prim_mul(c, k, prim_num(c, d, -0.25));
    for (uint32_t i = 0; i < COUNT(bits); i++)
        r = prim_add(c, r, part[i]);
    r = prim_cast(c, m->f, prim_mul(c, r, prim_num(c, d, 6.283185307179586)));
    return (Turns){r, prim_cast(c, m->i, k)};
}

static const Prim *is_odd(M *m, const Prim *k)
{
    Ctx *c = m->c;

    return prim_eq(c, prim_bin(c, PRIM_AND, k, inum(m, 1)), inum(m, 1));
}

/* sin and cos of r. */
static void sin_cos(M *m, const Prim *r, const Prim **sin, const Prim **cos)
{
    static const double s[] = {-0.166666552, 0.00833215844, -0.00019514958};
    static const double k[] = {0.0416666456, -0.0013887313, 2.44327839e-05};
    Ctx                *c = m->c;
    const Prim         *z = prim_mul(c, r, r);

    *sin = fma_of(m, prim_mul(c, r, z), poly(m, z, s, COUNT(s)), r);
    *cos = fma_of(m, prim_mul(c, z, z), poly(m, z, k, COUNT(k)),
                  fma_of(m, z, num(m, -0.5), num(m, 1.0)));
}

/* sin(x + first * pi/2) */
static const Prim *sin_of(M *m, const Prim *x, int first)
{
    Ctx        *c = m->c;
    Turns       t = turns_of(m, x);
    const Prim *k = first ? prim_add(c, t.k, inum(m, first)) : t.k, *sin, *cos;

    sin_cos(m, t.r, &sin, &cos);
    const Prim *v = prim_select(c, is_odd(m, k), cos, sin);
    const Prim *sign = prim_bin(c, PRIM_SHL, prim_bin(c, PRIM_AND, k, inum(m, 2)), inum(m, 30));
    v = prim_bits(c, m->f, prim_bin(c, PRIM_XOR, prim_bits(c, m->i, v), sign));
    /* -0 is its own sine. */
    return first ? v : below(m, abs_of(m, x), 0x1p-13, x, v);
}

static const Prim *tan_of(M *m, const Prim *x)
{
    Ctx        *c = m->c;
    Turns       t = turns_of(m, x);
    const Prim *odd = is_odd(m, t.k), *sin, *cos;

    sin_cos(m, t.r, &sin, &cos);
    const Prim *v =
        prim_div(c, prim_select(c, odd, prim_neg(c, cos), sin), prim_select(c, odd, sin, cos));
    return below(m, abs_of(m, x), 0x1p-13, x, v);
}

static const Prim *atan_of(M *m, const Prim *x)
{
    static const double k[] = {-0.333332986,  0.199985489,   -0.142642409,
                               0.109521843,   -0.0840344653, 0.0579575226,
                               -0.0311777759, 0.0109145679,  -0.00179361331};
    Ctx                *c = m->c;
    const Prim         *a = abs_of(m, x), *big = prim_lt(c, num(m, 1.0), a);
    const Prim         *w = prim_select(c, big, prim_div(c, num(m, -1.0), a), a);
    const Prim         *z = prim_mul(c, w, w);
    const Prim         *p = prim_mul(c, prim_mul(c, w, z), poly(m, z, k, COUNT(k)));

    /* pi/2 in two parts. */
    p = prim_add(c, p, prim_select(c, big, num(m, -4.37113883e-08), num(m, 0.0)));
    p = prim_add(c, w, p);
    p = prim_add(c, prim_select(c, big, num(m, 1.57079637), num(m, 0.0)), p);
    return prim_math(c, MATH_COPYSIGN, p, x);
}

/* asin(x) of |x| up to 1/2 and, of what is above, of sqrt((1 - |x|) / 2), which is half of what is
 * left to pi/2. */
static const Prim *half_asin(M *m, const Prim *a, const Prim **large)
{
    static const double k[] = {0.166667521, 0.0749529749, 0.0454703756, 0.0241795182, 0.0421663001};
    Ctx                *c = m->c;

    *large = prim_lt(c, num(m, 0.5), a);
    const Prim *half = fma_of(m, a, num(m, -0.5), num(m, 0.5));
    const Prim *z = prim_select(c, *large, half, prim_mul(c, a, a));
    const Prim *s = prim_select(c, *large, prim_math(c, MATH_SQRT, half, NULL), a);
    return fma_of(m, prim_mul(c, s, z), poly(m, z, k, COUNT(k)), s);
}

static const Prim *asin_of(M *m, const Prim *x)
{
    Ctx        *c = m->c;
    const Prim *large, *p = half_asin(m, abs_of(m, x), &large);
    const Prim *q = fma_of(m, p, num(m, -2.0), num(m, -4.37113883e-08));

    q = prim_add(c, num(m, 1.57079637), q);
    return prim_math(c, MATH_COPYSIGN, prim_select(c, large, q, p), x);
}

static const Prim *acos_of(M *m, const Prim *x)
{
    Ctx        *c = m->c;
    const Prim *large, *p = half_asin(m, abs_of(m, x), &large), *twice = prim_add(c, p, p);
    const Prim *below0 = prim_lt(c, x, num(m, 0.0));
    const Prim *q = prim_sub(c, num(m, -8.74227766e-08), twice);

    q = prim_select(c, below0, prim_add(c, num(m, 3.14159274), q), twice);
    p = prim_math(c, MATH_COPYSIGN, p, x);
    p = prim_add(c, num(m, 1.57079637), prim_sub(c, num(m, -4.37113883e-08), p));
    return prim_select(c, large, q, p);
}

/* ---- hyperbolic functions --------------------------------------------------------------------- */

static const Prim *cosh_of(M *m, const Prim *x)
{
    const Prim *e = exp_times(m, abs_of(m, x), -1);

    return prim_add(m->c, e, prim_div(m->c, num(m, 0.25), e));
}

static const Prim *sinh_of(M *m, const Prim *x)
{
    static const double k[] = {0.166666672, 0.0083333496, 0.000198361595, 2.81695134e-06};
    Ctx                *c = m->c;
    const Prim         *a = abs_of(m, x), *z = prim_mul(c, x, x), *e = exp_times(m, a, -1);
    const Prim         *small = fma_of(m, prim_mul(c, x, z), poly(m, z, k, COUNT(k)), x);
    const Prim         *large = prim_sub(c, e, prim_div(c, num(m, 0.25), e));

    return below(m, a, 1.0, small, prim_math(c, MATH_COPYSIGN, large, x));
}

/* log(1 + u); where `big`, log(a) + ln 2 instead. */
static const Prim *log1p_of(M *m, const Prim *u, const Prim *big, const Prim *a)
{
    Ctx        *c = m->c;
    const Prim *w = prim_add(c, num(m, 1.0), u);
    /* What rounding of w lost. */
    const Prim *rest = prim_div(c, prim_sub(c, u, prim_sub(c, w, num(m, 1.0))), w);

    if (big) {
        w = prim_select(c, big, a, w);
        rest = prim_select(c, big, num(m, 0.693147181), rest);
    }
    return prim_add(c, log_of(m, w), rest);
}

static const Prim *asinh_of(M *m, const Prim *x)
{
    Ctx        *c = m->c;
    const Prim *a = abs_of(m, x), *z = prim_mul(c, x, x), *one = num(m, 1.0);
    const Prim *root = prim_math(c, MATH_SQRT, prim_add(c, one, z), NULL);
    const Prim *u = prim_add(c, a, prim_div(c, z, prim_add(c, one, root)));

    u = log1p_of(m, u, prim_lt(c, num(m, 0x1p14), a), a);
    return prim_math(c, MATH_COPYSIGN, u, x);
}

static const Prim *acosh_of(M *m, const Prim *x)
{
    Ctx        *c = m->c;
    const Prim *t = prim_sub(c, x, num(m, 1.0));
    const Prim *u = fma_of(m, t, t, prim_add(c, t, t));

    u = prim_add(c, t, prim_math(c, MATH_SQRT, u, NULL));
    u = log1p_of(m, u, prim_lt(c, num(m, 0x1p14), x), x);
    return below(m, x, 1.0, num(m, (double)NAN), u);
}

static const Prim *atanh_of(M *m, const Prim *x)
{
    Ctx        *c = m->c;
    const Prim *a = abs_of(m, x), *one = num(m, 1.0);
    const Prim *u = prim_div(c, prim_add(c, a, a), prim_sub(c, one, a));
    const Prim *v = prim_mul(c, num(m, 0.5), log1p_of(m, u, NULL, NULL));

    v = prim_select(c, prim_eq(c, a, one), num(m, (double)INFINITY), v);
    return prim_math(c, MATH_COPYSIGN, v, x);
}

/* Below 2^23 an i32 holds the whole part; from there on every f32 is whole. */
static const Prim *rounded_of(M *m, MathFn fn, const Prim *x)
{
    Ctx        *c = m->c;
    const Prim *a = abs_of(m, x), *t, *r;

    if (fn == MATH_ROUND)
        r = prim_sub(c, prim_add(c, a, num(m, 0x1p23)), num(m, 0x1p23));
    else {
        r = t = prim_cast(c, m->f, prim_cast(c, m->i, x));
        if (fn == MATH_FLOOR)
            r = prim_select(c, prim_lt(c, x, t), prim_sub(c, t, num(m, 1.0)), t);
        else if (fn == MATH_CEIL)
            r = prim_select(c, prim_lt(c, t, x), prim_add(c, t, num(m, 1.0)), t);
    }
    return below(m, a, 0x1p23, prim_math(c, MATH_COPYSIGN, r, x), x);
}

/* x * (1 / sqrt x); the first guess halves the exponent. */
static const Prim *sqrt_of(M *m, const Prim *x)
{
    Ctx        *c = m->c;
    const Prim *tiny = prim_lt(c, x, num(m, 0x1p-126));
    const Prim *v = prim_select(c, tiny, prim_mul(c, x, num(m, 0x1p24)), x);
    const Prim *half = prim_mul(c, v, num(m, 0.5)), *y, *s;

    y = prim_sub(c, inum(m, 0x5f3759df), prim_bin(c, PRIM_SHR, prim_bits(c, m->i, v), inum(m, 1)));
    y = prim_bits(c, m->f, y);
    for (int i = 0; i < 3; i++)
        y = prim_mul(c, y, prim_sub(c, num(m, 1.5), prim_mul(c, half, prim_mul(c, y, y))));
    s = prim_mul(c, v, y);
    s = prim_add(c, s, prim_mul(c, prim_mul(c, num(m, 0.5), y), prim_sub(c, v, prim_mul(c, s, s))));
    s = prim_mul(c, s, prim_select(c, tiny, num(m, 0x1p-12), num(m, 1.0)));
    /* 0 and +inf as they are, NaN for NaN and below 0. */
    s = prim_select(c, prim_lt(c, x, num(m, (double)INFINITY)), s, x);
    s = below(m, x, 0.0, num(m, (double)NAN), s);
    return prim_select(c, prim_eq(c, x, num(m, 0.0)), x, s);
}

/* ---- in f64 ---------------------------------------------------------------------------------------- */

/* log2 of a >= 0: its exponent, and the series of artanh for what is left, 0.7 to 1.4. */
static const Prim *wide_log2(M *m, const Prim *a)
{
    static const double k[] = {1,        1.0 / 3,  1.0 / 5,  1.0 / 7, 1.0 / 9,
                               1.0 / 11, 1.0 / 13, 1.0 / 15, 1.0 / 17};
    Ctx                *c = m->c;
    const Prim         *bits = prim_bits(c, m->i, a), *one = num(m, 1);
    const Prim *e = prim_sub(c, prim_bin(c, PRIM_SHR, bits, inum(m, 52)), inum(m, 1023)), *f, *s;

    f = prim_sub(c, bits, prim_bin(c, PRIM_SHL, e, inum(m, 52)));
    f = prim_bits(c, m->f, f);
    const Prim *large = prim_lt(c, num(m, 1.41421356237309505), f);
    f = prim_select(c, large, prim_mul(c, f, num(m, 0.5)), f);
    e = prim_add(c, e, prim_select(c, large, inum(m, 1), inum(m, 0)));
    s = prim_div(c, prim_sub(c, f, one), prim_add(c, f, one));
    f = prim_mul(c, s, poly(m, prim_mul(c, s, s), k, COUNT(k)));
    f = fma_of(m, f, num(m, 2 * LOG2E), prim_cast(c, m->f, e));
    f = prim_select(c, prim_lt(c, a, num(m, (double)INFINITY)), f, a);
    return prim_select(c, prim_eq(c, a, num(m, 0)), num(m, (double)-INFINITY), f);
}

/* 2^p, beyond the range of f32 any number beyond it. */
static const Prim *wide_exp2(M *m, const Prim *p)
{
    enum { TERMS = 12, BEYOND = 200 };
    double      k[TERMS] = {1};
    Ctx        *c = m->c;
    const Prim *n, *e;

    for (int i = 1; i < TERMS; i++)
        k[i] = k[i - 1] / LOG2E / i;
    p = below(m, p, -BEYOND, num(m, -BEYOND), p);
    p = prim_select(c, prim_lt(c, num(m, BEYOND), p), num(m, BEYOND), p);
    n = prim_math(c, MATH_ROUND, p, NULL);
    e = prim_add(c, prim_cast(c, m->i, n), inum(m, 1023));
    e = prim_bits(c, m->f, prim_bin(c, PRIM_SHL, e, inum(m, 52)));
    return prim_mul(c, poly(m, prim_sub(c, p, n), k, COUNT(k)), e);
}

/* x^y with the special values of C's Annex F; x and y are f64 that hold f32. */
static const Prim *wide_pow(M *m, const Prim *x, const Prim *y)
{
    Ctx        *c = m->c;
    const Prim *a = abs_of(m, x), *zero = num(m, 0), *one = num(m, 1), *half, *v;
    const Prim *log = wide_log2(m, a), *inf = num(m, (double)INFINITY);
    const Prim *whole = prim_eq(c, prim_math(c, MATH_TRUNC, y, NULL), y);

    half = prim_mul(c, y, num(m, 0.5));
    const Prim *even = prim_eq(c, prim_math(c, MATH_TRUNC, half, NULL), half);
    v = prim_select(c, prim_eq(c, log, zero), zero, prim_mul(c, y, log)); /* (-1)^inf = 1 */
    v = wide_exp2(m, v);
    /* of a base below 0 only whole powers are numbers; its sign stays with odd ones */
    const Prim *signed_v = prim_select(c, even, v, prim_math(c, MATH_COPYSIGN, v, x));
    const Prim *none = prim_select(c, prim_lt(c, a, inf), num(m, (double)NAN), v);
    v = prim_select(c, whole, signed_v, prim_select(c, prim_lt(c, x, zero), none, v));
    v = prim_select(c, prim_eq(c, y, y), v, y);
    v = prim_select(c, prim_eq(c, y, zero), one, v);
    return prim_select(c, prim_eq(c, x, one), one, v);
}

/* The rest of x / y with x's sign, by parts of the quotient of 28 bits, each exact. */
static const Prim *wide_fmod(M *m, const Prim *x, const Prim *y)
{
    enum { PART = 28, MOST = 9 * PART }; /* quotients of f32 are below 2^277 */
    Ctx        *c = m->c;
    const Prim *r = abs_of(m, x), *b = abs_of(m, y), *inf = num(m, (double)INFINITY), *whole = r;

    for (int k = MOST; k >= 0; k -= PART) {
        const Prim *s = prim_mul(c, b, num(m, ldexp(1, k)));
        const Prim *q = prim_math(c, MATH_TRUNC, prim_div(c, r, s), NULL);

        r = prim_fma(c, prim_neg(c, q), s, r);
        r = below(m, r, 0, prim_add(c, r, s), r); /* the quotient was rounded up */
    }
    r = prim_select(c, prim_eq(c, b, inf),
                    prim_select(c, prim_lt(c, whole, inf), whole, num(m, NAN)), r);
    return prim_math(c, MATH_COPYSIGN, r, x);
}

static const Prim *wide_of(const M *narrow, const Prim *p)
{
    M m = {narrow->c, dtype_lanes(DT_F64, p->dtype.lanes), dtype_lanes(DT_I64, p->dtype.lanes),
           narrow->fma};
    const Prim *x = prim_cast(m.c, m.f, p->kids[0]), *y = prim_cast(m.c, m.f, p->kids[1]);

    return prim_cast(m.c, p->dtype,
                     p->u.math == MATH_POW ? wide_pow(&m, x, y) : wide_fmod(&m, x, y));
}

/* What the target would leave to libm, though it has none. */
static bool without_libm(const Target *t, MathFn fn)
{
    if (!t || !t->no_libm)
        return false;
    return (fn == MATH_SQRT && !t->has_sqrt) ||
           ((fn == MATH_FLOOR || fn == MATH_CEIL || fn == MATH_TRUNC || fn == MATH_ROUND) &&
            !t->has_round);
}

/* Functions that LLVM or libm serves as well on targets where vectors do not. */
static bool is_expanded(const Target *t, MathFn fn)
{
    bool ours = t && !t->has_math;

    switch (fn) {
    case MATH_EXP:
    case MATH_LOG:
    case MATH_TANH:
    case MATH_ERF:
    case MATH_SIGMOID: return true;
    case MATH_SIN:
    case MATH_COS:
    case MATH_TAN: /* f64 in vectors */
        return ours && t->has_round && t->pointer_bits == 64 &&
               (t->vector_bytes >= 16 || t->no_libm);
    case MATH_POW:
    case MATH_FMOD: /* f64 and multiply-adds, which round once */
        return t && t->no_libm && t->has_round && t->has_fma && t->pointer_bits == 64;
    case MATH_ASIN:
    case MATH_ACOS:
    case MATH_ATAN:
    case MATH_SINH:
    case MATH_COSH:
    case MATH_ASINH:
    case MATH_ACOSH:
    case MATH_ATANH: return ours;
    default: return without_libm(t, fn);
    }
}

static const Prim *math_prim(Ctx *c, void *user, const Prim *p)
{
    const Target *t = user;
    M             m = {c, dtype_lanes(DT_F32, p->dtype.lanes), dtype_lanes(DT_I32, p->dtype.lanes),
                       t && t->has_fma};

    if (p->kind != PRIM_MATH || !dtype_is_float(p->dtype) || !is_expanded(t, p->u.math))
        return p;
    if ((p->u.math == MATH_POW || p->u.math == MATH_FMOD) && p->dtype.bits < 64)
        return wide_of(&m, p);
    if (p->dtype.bits == 64) {
        /* libm knows no sigmoid. */
        if (p->u.math != MATH_SIGMOID)
            return p;
        const Prim *e = prim_math(c, MATH_EXP, prim_neg(c, p->kids[0]), NULL),
                   *one = prim_num(c, p->dtype, 1);
        return prim_div(c, one, prim_add(c, one, e));
    }
    const Prim *x = p->dtype.bits == 32 ? p->kids[0] : prim_cast(c, m.f, p->kids[0]), *y = NULL;
    switch (p->u.math) {
    case MATH_EXP: y = exp_of(&m, x); break;
    case MATH_LOG: y = log_of(&m, x); break;
    case MATH_TANH: y = tanh_of(&m, x); break;
    case MATH_ERF: y = erf_of(&m, x); break;
    case MATH_SQRT: y = sqrt_of(&m, x); break;
    case MATH_FLOOR:
    case MATH_CEIL:
    case MATH_TRUNC:
    case MATH_ROUND: y = rounded_of(&m, p->u.math, x); break;
    case MATH_SIGMOID: y = sigmoid_of(&m, x); break;
    case MATH_SIN: y = sin_of(&m, x, 0); break;
    case MATH_COS: y = sin_of(&m, x, 1); break;
    case MATH_TAN: y = tan_of(&m, x); break;
    case MATH_ASIN: y = asin_of(&m, x); break;
    case MATH_ACOS: y = acos_of(&m, x); break;
    case MATH_ATAN: y = atan_of(&m, x); break;
    case MATH_SINH: y = sinh_of(&m, x); break;
    case MATH_COSH: y = cosh_of(&m, x); break;
    case MATH_ASINH: y = asinh_of(&m, x); break;
    case MATH_ACOSH: y = acosh_of(&m, x); break;
    case MATH_ATANH: y = atanh_of(&m, x); break;
    default: return p;
    }
    return p->dtype.bits == 32 ? y : prim_cast(c, p->dtype, y);
}

static const Func *math_func(Ctx *c, void *user, const Func *f)
{
    TirMap m = {(void *)(uintptr_t)f->target, NULL, math_prim, NULL, NULL};

    (void)user;
    return func_with_body(c, f, stmt_map(c, f->body, &m));
}

const TirModule *lower_math(Ctx *c, const TirModule *m)
{
    return tirmod_map(c, m, math_func, NULL);
}
