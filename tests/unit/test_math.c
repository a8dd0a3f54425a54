/* The polynomials of passes/tir/lower_math.c against libm in double precision: largest error in ULP
 * of a float over a dense sample of all bit patterns, with and without fused multiply-add, and the
 * special values.  Compiled, in vectors of 8.  The bounds are those stated in lower_math.c.
 *
 * MATH_STEP=1 tests every float. */
#include "backends/backend.h"
#include "passes/passes.h"
#include "tests/unit/check.h"

#include <math.h>
#include <stdlib.h>

enum { LANES = 8, BATCH = 4096 };

static Arena *arena;
static Ctx   *c;

typedef struct {
    MathFn      fn;
    const char *name;
    double (*exact)(double);
    double bound; /* ULP */
} Row;

static double sigmoid(double x)
{
    return 1 / (1 + exp(-x));
}

static const Row rows[] = {
    {MATH_EXP, "exp", exp, 1.05},
    {MATH_LOG, "log", log, 0.85},
    {MATH_TANH, "tanh", tanh, 1.51},
    {MATH_ERF, "erf", erf, 1.4},
    {MATH_SIGMOID, "sigmoid", sigmoid, 2.44},
    {MATH_SIN, "sin", sin, 1.6},
    {MATH_COS, "cos", cos, 1.6},
    {MATH_TAN, "tan", tan, 4.2},
    {MATH_ASIN, "asin", asin, 2.5},
    {MATH_ACOS, "acos", acos, 1.2},
    {MATH_ATAN, "atan", atan, 1.5},
    {MATH_SINH, "sinh", sinh, 1.7},
    {MATH_COSH, "cosh", cosh, 1.5},
    {MATH_ASINH, "asinh", asinh, 2.2},
    {MATH_ACOSH, "acosh", acosh, 2.5},
    {MATH_ATANH, "atanh", atanh, 2.6},
};

/* What is expanded for targets without libm and without the instructions. */
static const Row without_libm[] = {
    {MATH_SQRT, "sqrt", sqrt, 1.0},      {MATH_FLOOR, "floor", floor, 0},
    {MATH_CEIL, "ceil", ceil, 0},        {MATH_TRUNC, "trunc", trunc, 0},
    {MATH_ROUND, "round", nearbyint, 0},
};

/* func f(%x, %y, %z) { for %i<512 { %y[i*8] = fn(load f32x8 %x[i*8], load f32x8 %z[i*8]) } } */
static Jit *compile(MathFn fn, const Target *t, void (**code)(void *const *, const int64_t *))
{
    const bool    two = fn == MATH_POW || fn == MATH_FMOD;
    const Idx    *n = idx_const(c->arith, BATCH);
    const Buffer *x = buffer_new(c, "x", DT_F32, SCOPE_ARENA, 1, &n);
    const Buffer *y = buffer_new(c, "y", DT_F32, SCOPE_ARENA, 1, &n);
    const Atom   *v = atom_var(c->arith, "i", 0, BATCH / LANES - 1);
    const Idx    *at = idx_mulc(c->arith, idx_atom(c->arith, v), LANES);
    const Buffer *z = buffer_new(c, "z", DT_F32, SCOPE_ARENA, 1, &n);
    const Prim   *value = prim_math(c, fn, prim_loadv(c, x, &at, LANES, NULL),
                                  two ? prim_loadv(c, z, &at, LANES, NULL) : NULL);
    LoopData      l = {.var = v,
                       .lo = idx_const(c->arith, 0),
                       .extent = idx_const(c->arith, BATCH / LANES),
                       .kind = LOOP_SPATIAL};
    const Stmt   *s = stmt_for(c, l, stmt_storev(c, y, &at, value, NULL), NO_LOC);
    Param        *p = NEW_ARRAY(arena, Param, 3);

    p[0] = (Param){.buffer = x};
    p[1] = (Param){.buffer = y, .written = true};
    p[2] = (Param){.buffer = z};
    const Func *f = func_new(
        c,
        (Func){
            .name = "f", .kind = FUNC_KERNEL, .target = t, .nparams = 3, .params = p, .body = s});
    const TirModule *m = lower_math(c, tirmod_new(c, 1, &f));
    Jit             *j = backend_llvm.jit(c, m, t);

    CHECK(j != NULL);
    if (j)
        *(void **)code = backend_llvm.jit_symbol(j, "f");
    return j;
}

static int ulp_exponent(double x)
{
    int e = x == 0 ? -126 : ilogb(x);

    return (e < -126 ? -126 : e) - 23;
}

/* |got - want| in units of the last place of the float nearest to want. */
static double ulps(double want, float got)
{
    if (isnan(want) || isnan(got))
        return isnan(want) && isnan(got) ? 0 : INFINITY;
    if ((float)want == got) /* both infinite, or rounded correctly */
        return isinf(got) ? 0 : fabs(want - (double)got) / ldexp(1, ulp_exponent(want));
    /* Just below the largest float, infinity is within the bound. */
    if (isinf(got))
        return fabs(want) > 0x1.fffffep127 ? 0 : INFINITY;
    return fabs(want - (double)got) / ldexp(1, ulp_exponent(want));
}

static float bits_float(uint32_t u)
{
    float f;

    memcpy(&f, &u, sizeof f);
    return f;
}

static void test_row(const Row *r, const Target *t, const char *what)
{
    static float x[BATCH] __attribute__((aligned(64))), y[BATCH] __attribute__((aligned(64)));
    void (*code)(void *const *, const int64_t *) = NULL;
    const char *env = getenv("MATH_STEP");
    uint64_t    step = env ? strtoull(env, NULL, 10) : 997;
    double      worst = 0;
    float       where = 0;
    Jit        *j = compile(r->fn, t, &code);

    for (uint64_t u = 0; j && u < (1ull << 32);) {
        uint32_t n = 0;
        for (; n < BATCH; n++, u += step)
            x[n] = bits_float((uint32_t)(u < (1ull << 32) ? u : 0));
        code((void *[]){x, y, x}, NULL);
        for (uint32_t i = 0; i < n; i++) {
            double e = ulps(r->exact((double)x[i]), y[i]);
            if (e > worst)
                worst = e, where = x[i];
        }
    }
    if (worst > r->bound || getenv("MATH_SHOW"))
        printf("%s %s: %.3f ULP at %a (%.9g)\n", r->name, what, worst, where, where);
    CHECK(worst <= r->bound);
    if (j)
        backend_llvm.jit_free(j);
}

/* The last but one lies nearest to a multiple of pi/2. */
static const float edges[] = {
    INFINITY, -INFINITY, NAN,     0.0f,    -0.0f,      0x1p-149f,      -0x1p-149f,     0x1p-126f,
    88.7228f, 88.7229f,  -103.9f, -104.1f, 1.0f,       -1.0f,          3.4e38f,        -3.4e38f,
    89.4f,    -89.4f,    0.5f,    -0.5f,   1.5707964f, 0x1.f37c8ap95f, 0x1.fffffep127f};

/* Of two numbers: all pairs of edges and of small numbers, any pairs, and of such as are near each
 * other. */
static void test_two(MathFn fn, const char *name, double (*exact)(double, double), double bound,
                     const Target *t)
{
    enum { BATCHES = 64, SMALL = 24 };
    static float x[BATCH] __attribute__((aligned(64))), y[BATCH] __attribute__((aligned(64))),
        z[BATCH] __attribute__((aligned(64)));
    void (*code)(void *const *, const int64_t *) = NULL;
    Jit     *j = compile(fn, t, &code);
    uint32_t seed = 1, bits[2];
    double   worst = 0;

    for (uint32_t b = 0; j && b < BATCHES; b++) {
        for (uint32_t i = 0; i < BATCH; i++) {
            for (int k = 0; k < 2; k++) {
                seed = seed * 1664525u + 1013904223u;
                bits[k] = (k ? 0 : bits[0] * 65536u) ^ seed ^ seed >> 15;
            }
            x[i] = bits_float(bits[0]);
            z[i] = bits_float(b % 2 ? bits[1] : (bits[1] & 0x83ffffff) | 0x3c000000);
            if (b % 4 == 0) /* powers that f32 holds */
                x[i] = bits_float((bits[0] & 0x83ffffff) | 0x3c000000);
            if (b == 0 && i < COUNT(edges) * COUNT(edges))
                x[i] = edges[i / COUNT(edges)], z[i] = edges[i % COUNT(edges)];
            if (b == 1 && i < SMALL * SMALL)
                x[i] = (float)(i / SMALL) - 12, z[i] = (float)(i % SMALL) - 12;
        }
        code((void *[]){x, y, z}, NULL);
        for (uint32_t i = 0; i < BATCH; i++) {
            double want = exact((double)x[i], (double)z[i]), e = ulps(want, y[i]);

            if ((e > bound || (want == 0 && !signbit(want) != !signbit(y[i]))) && worst <= bound)
                printf("%s(%a, %a) is %a, not %a\n", name, x[i], z[i], y[i], want);
            if (want == 0 && !signbit(want) != !signbit(y[i]))
                e = INFINITY;
            worst = e > worst ? e : worst;
        }
    }
    CHECK(j && worst <= bound);
    if (getenv("MATH_SHOW"))
        printf("%s: %.3f ULP\n", name, worst);
    if (j)
        backend_llvm.jit_free(j);
}

static void test_special(const Row *r, const Target *t)
{
    static float x[BATCH] __attribute__((aligned(64))), y[BATCH] __attribute__((aligned(64)));
    void (*code)(void *const *, const int64_t *) = NULL;
    Jit *j = compile(r->fn, t, &code);

    memcpy(x, edges, sizeof edges);
    if (!j)
        return;
    code((void *[]){x, y, x}, NULL);
    for (uint32_t i = 0; i < COUNT(edges); i++) {
        float want = (float)r->exact((double)x[i]);
        bool  same = isnan(want) ? isnan(y[i])
                     : isinf(want) || want == 0 || fabsf(want) == 1
                         ? want == y[i] && signbit(want) == signbit(y[i])
                         : ulps(r->exact((double)x[i]), y[i]) <= r->bound;
        if (!same)
            printf("%s(%a) is %a, not %a\n", r->name, x[i], y[i], want);
        CHECK(same);
    }
    backend_llvm.jit_free(j);
}

int main(void)
{
    arena = arena_new(NULL);
    c = ctx_new(arena, diags_new(arena), (OpTable){0});
    const Target *fused = backend_llvm.parse_target(c, "llvm -mcpu=native");
    CHECK(fused != NULL);
    if (!fused)
        return check_result();
    Target plain = *fused; /* the same machine, products rounded */
    plain.has_fma = false;
    for (uint32_t i = 0; i < COUNT(rows); i++) {
        test_row(&rows[i], fused, fused->has_fma ? "fused" : "plain");
        test_row(&rows[i], &plain, "plain");
        test_special(&rows[i], fused);
        test_special(&rows[i], &plain);
    }
    plain.no_libm = true;
    if (fused->has_fma) { /* as on GPUs */
        plain.has_fma = true;
        test_two(MATH_POW, "pow", pow, 0.51, &plain);
        test_two(MATH_FMOD, "fmod", fmod, 0, &plain);
        plain.has_fma = false;
    }
    plain.has_round = plain.has_sqrt = false;
    for (uint32_t i = 0; i < COUNT(without_libm); i++) {
        test_row(&without_libm[i], &plain, "without libm");
        test_special(&without_libm[i], &plain);
    }
    ctx_free(c);
    arena_free(arena);
    return check_result();
}
