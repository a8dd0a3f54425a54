/* Prims: what the makers fold, and that folding never changes bits: a random expression over
 * constants, folded, has the bits that the interpreter gives for the same expression over loads. */
#include "check.h"
#include "ir/scalar.h"

#include <math.h>
#include <stdlib.h>

static Arena *arena;
static Ctx   *c;

static void begin(void)
{
    arena = arena_new(NULL);
    c = ctx_new(arena, diags_new(arena), (OpTable){0});
}

static void end(void)
{
    ctx_free(c);
    arena_free(arena);
}

static const Prim *f32(double v)
{
    return prim_float(c, DT_F32, v);
}

static void test_fold(void)
{
    begin();
    const Idx    *n8 = idx_const(c->arith, 8);
    const Buffer *b = buffer_new(c, "b", DT_F32, SCOPE_ARENA, 1, &n8);
    const Buffer *k = buffer_new(c, "k", DT_I32, SCOPE_ARENA, 1, &n8);
    const Idx    *at = idx_const(c->arith, 3);
    const Prim   *x = prim_load(c, b, &at), *i = prim_load(c, k, &at);
    const Prim   *zero = f32(0), *one = f32(1), *nzero = f32(-0.0);

    CHECK(prim_load(c, b, &at) == x);
    CHECK(prim_add(c, x, one) == prim_add(c, x, one));
    CHECK(zero != nzero && f32(0.1) == f32(0.1f));
    CHECK(prim_mul(c, x, one) == x && prim_div(c, x, one) == x && prim_sub(c, x, zero) == x);
    CHECK(prim_add(c, x, zero)->kind == PRIM_ADD && prim_add(c, x, nzero) == x);
    CHECK(prim_mul(c, x, zero)->kind == PRIM_MUL && prim_sub(c, x, x)->kind == PRIM_SUB);
    CHECK(prim_eq(c, x, x)->kind == PRIM_EQ); /* NaN */
    CHECK(prim_neg(c, prim_neg(c, x)) == x);
    CHECK(prim_add(c, f32(1), f32(0x1p-24)) == f32(1));
    CHECK(prim_not(c, prim_lt(c, x, one))->kind == PRIM_NOT); /* unordered */
    CHECK(prim_not(c, prim_eq(c, x, one))->kind == PRIM_NE);

    const Prim *i0 = prim_int(c, DT_I32, 0), *i1 = prim_int(c, DT_I32, 1);
    CHECK(prim_add(c, i, i0) == i && prim_mul(c, i, i0) == i0 && prim_sub(c, i, i) == i0);
    CHECK(prim_not(c, prim_lt(c, i, i1)) == prim_le(c, i1, i));
    CHECK(prim_int(c, DT_I8, 200)->u.i == -56 && prim_int(c, DT_U8, -1)->u.i == 255);

    const Prim *cond = prim_lt(c, x, one);
    CHECK(prim_select(c, cond, x, x) == x);
    CHECK(prim_select(c, prim_not(c, cond), x, one) == prim_select(c, cond, one, x));
    CHECK(prim_select(c, cond, prim_int(c, DT_BOOL, 1), prim_int(c, DT_BOOL, 0)) == cond);
    CHECK(prim_and(c, cond, prim_int(c, DT_BOOL, 1)) == cond);
    CHECK(prim_cast(c, DT_F32, x) == x && prim_cast(c, DT_I32, f32(NAN))->u.i == 0);
    CHECK(prim_cast(c, DT_I8, f32(1e9))->u.i == 127 && prim_cast(c, DT_U8, f32(-3))->u.i == 0);
    CHECK(prim_bits(c, DT_I32, one)->u.i == 0x3f800000);
    CHECK(prim_math(c, MATH_SQRT, f32(2), NULL) == f32(sqrtf(2)));
    CHECK(prim_math(c, MATH_EXP, f32(2), NULL)->kind == PRIM_MATH); /* the target decides */

    /* vectors: splats move outwards, lanes in a row are one load */
    const Prim *s8 = prim_splat(c, x, 8),
               *v = prim_loadv(c, b, &(const Idx *){idx_const(c->arith, 0)}, 8, NULL);
    CHECK(prim_add(c, s8, prim_num(c, dtype_lanes(DT_F32, 8), 2)) ==
          prim_splat(c, prim_add(c, x, f32(2)), 8));
    CHECK(prim_mul(c, x, v) == prim_mul(c, s8, v));
    const Prim *lane[8];
    for (int n = 0; n < 8; n++)
        lane[n] = prim_load(c, b, &(const Idx *){idx_const(c->arith, n)});
    CHECK(prim_vec(c, 8, lane) == v);
    lane[3] = lane[2];
    CHECK(prim_vec(c, 8, lane)->kind == PRIM_VEC);
    CHECK(prim_case(c, idx_const(c->arith, 2), 8, lane) == lane[2]);

    const uint16_t all[] = {0, 1, 2, 3, 4, 5, 6, 7}, odd[] = {1, 3, 5, 7}, three[] = {3};
    CHECK(prim_shuffle(c, v, 8, all) == v && prim_shuffle(c, v, 4, odd)->kind == PRIM_SHUFFLE);
    CHECK(prim_shuffle(c, v, 1, three) == x && prim_shuffle(c, v, 4, all + 2)->kind == PRIM_LOAD);
    CHECK(prim_shuffle(c, s8, 4, odd) == prim_splat(c, x, 4));
    CHECK(prim_shuffle(c, prim_vec(c, 8, lane), 1, three) == lane[3]);
    end();
}

/* Conditions of indices: one form, decided by ranges, the inverse of predicates. */
static void test_conditions(void)
{
    begin();
    Arith      *A = c->arith;
    const Idx  *i = idx_atom(A, atom_var(A, "i", 0, 9)), *j = idx_atom(A, atom_var(A, "j", 0, 9));
    const Prim *pi = prim_index(c, DT_I64, i), *pj = prim_index(c, DT_I32, j);
    Pred        p;

    CHECK(prim_lt(c, pi, prim_int(c, DT_I64, 10))->u.i == 1);
    CHECK(prim_le(c, prim_int(c, DT_I64, 10), pi)->u.i == 0);
    CHECK(prim_lt(c, pi, prim_int(c, DT_I64, 5)) == prim_le(c, pi, prim_int(c, DT_I64, 4)));
    CHECK(prim_not(c, prim_lt(c, pi, prim_int(c, DT_I64, 5))) ==
          prim_le(c, prim_int(c, DT_I64, 5), pi));
    CHECK(prim_eq(c, pi, prim_int(c, DT_I64, 0)) == prim_le(c, pi, prim_int(c, DT_I64, 0)));
    CHECK(prim_lt(c, pj, prim_cast(c, DT_I32, pi)) == prim_lt(c, prim_cast(c, DT_I64, pj), pi));
    CHECK(prim_add(c, pi, prim_int(c, DT_I64, 3)) == prim_index(c, DT_I64, idx_addc(A, i, 3)));
    CHECK(prim_bin(c, PRIM_REM, pi, prim_int(c, DT_I64, 4)) ==
          prim_index(c, DT_I64, idx_modc(A, i, 4)));

    const Prim *both =
        prim_and(c, prim_lt(c, pi, prim_int(c, DT_I64, 5)), prim_le(c, prim_int(c, DT_I64, 2), pi));
    CHECK(prim_pred(c, both, &p) && p.n == 2);
    CHECK(pred_prim(c, p) == both);
    CHECK(prim_pred(c, prim_eq(c, pi, prim_cast(c, DT_I64, pj)), &p) && p.n == 2);
    CHECK(!prim_pred(c,
                     prim_or(c, prim_lt(c, pi, prim_int(c, DT_I64, 5)),
                             prim_eq(c, pi, prim_cast(c, DT_I64, pj))),
                     &p));
    end();
}

/* ---- random expressions ----------------------------------------------------------------------- */

static const DType types[] = {
    {DT_BOOLEAN, 8, 1}, {DT_INT, 8, 1},    {DT_INT, 16, 1},  {DT_INT, 32, 1},  {DT_INT, 64, 1},
    {DT_UINT, 8, 1},    {DT_UINT, 16, 1},  {DT_UINT, 32, 1}, {DT_UINT, 64, 1}, {DT_FLOAT, 16, 1},
    {DT_BFLOAT, 16, 1}, {DT_FLOAT, 32, 1}, {DT_FLOAT, 64, 1}};
enum { NTYPES = sizeof types / sizeof *types, CELLS = 16 };

static uint64_t state;

static uint32_t rnd(uint32_t n)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(state >> 33) % n;
}

/* Numbers that find mistakes. */
static Scalar random_scalar(DType t)
{
    static const double  floats[] = {0.0,   -0.0,         1,     -1,    0.5,   3,        1e30,
                                     -1e30, 1e-40,        65504, 65520, 1e5,   INFINITY, -INFINITY,
                                     NAN,   2147483648.0, -129,  300.7, 0x1p63};
    static const int64_t ints[] = {0,         1,         -1,        2,         7,      127,
                                   128,       255,       -128,      32767,     -32768, 65535,
                                   INT32_MAX, INT32_MIN, INT64_MAX, INT64_MIN, 33,     64};
    if (dtype_is_float(t)) {
        double v = rnd(2) ? floats[rnd(COUNT(floats))] : ((double)rnd(20001) - 10000) / 777;
        return (Scalar){.f = scalar_round(t, v)};
    }
    return (Scalar){.i = scalar_wrap(t, rnd(2) ? ints[rnd(COUNT(ints))] : (int64_t)rnd(100) - 50)};
}

typedef struct {
    const Buffer *buffer[NTYPES];
    uint64_t      mem[NTYPES][CELLS];
    uint32_t      n[NTYPES];
} Leaves;

typedef struct {
    const Prim *folded, *loaded; /* the same over constants and over loads */
} Pair;

static Pair leaf(Leaves *l, uint32_t t)
{
    Scalar     v = random_scalar(types[t]);
    uint32_t   at = l->n[t] < CELLS ? l->n[t]++ : CELLS;
    const Idx *x;
    Pair       p;

    p.folded = dtype_is_float(types[t]) ? prim_float(c, types[t], v.f) : prim_int(c, types[t], v.i);
    p.loaded = p.folded;
    if (at == CELLS)
        return p;
    x = idx_const(c->arith, at);
    scalar_put(types[t], (uint8_t *)l->mem[t] + at * dtype_bytes(types[t]), v);
    p.loaded = prim_load(c, l->buffer[t], &x);
    return p;
}

static uint32_t type_of(DType t)
{
    uint32_t i = 0;

    while (!dtype_eq(types[i], t))
        i++;
    return i;
}

static Pair random_pair(Leaves *l, uint32_t t, int depth)
{
    static const PrimKind arith[] = {PRIM_ADD, PRIM_SUB, PRIM_MUL,    PRIM_DIV,    PRIM_REM,
                                     PRIM_MIN, PRIM_MAX, PRIM_MINNUM, PRIM_MAXNUM, PRIM_AND,
                                     PRIM_OR,  PRIM_XOR, PRIM_SHL,    PRIM_SHR};
    static const PrimKind compares[] = {PRIM_EQ, PRIM_NE, PRIM_LT, PRIM_LE};
    static const MathFn   exact[] = {MATH_SQRT, MATH_ABS,   MATH_FLOOR,
                                     MATH_CEIL, MATH_TRUNC, MATH_ROUND};
    bool                  isf = dtype_is_float(types[t]), isb = dtype_is_bool(types[t]);
    Pair                  a, b, d;
    uint32_t              u;

    if (depth == 0)
        return leaf(l, t);
    switch (rnd(9)) {
    case 0: /* a comparison, where a bool is wanted */
        if (!isb)
            break;
        u = rnd(NTYPES);
        a = random_pair(l, u, depth - 1), b = random_pair(l, u, depth - 1);
        PrimKind cmp = compares[rnd(4)];
        return (Pair){prim_bin(c, cmp, a.folded, b.folded), prim_bin(c, cmp, a.loaded, b.loaded)};
    case 1:
        d = random_pair(l, 0, depth - 1);
        a = random_pair(l, t, depth - 1), b = random_pair(l, t, depth - 1);
        return (Pair){prim_select(c, d.folded, a.folded, b.folded),
                      prim_select(c, d.loaded, a.loaded, b.loaded)};
    case 2:
        a = random_pair(l, rnd(NTYPES), depth - 1);
        return (Pair){prim_cast(c, types[t], a.folded), prim_cast(c, types[t], a.loaded)};
    case 3: /* bits of the other kind of the same size */
        u = types[t].bits == 16   ? type_of(DT_I16)
            : types[t].bits == 32 ? type_of(DT_F32)
            : types[t].bits == 64 ? type_of(DT_U64)
                                  : type_of(DT_U8);
        if (isb || isf)
            break; /* float results would lose signalling NaNs on the way through a double */
        a = random_pair(l, u, depth - 1);
        return (Pair){prim_bits(c, types[t], a.folded), prim_bits(c, types[t], a.loaded)};
    case 4:
        a = random_pair(l, t, depth - 1), b = random_pair(l, t, depth - 1),
        d = random_pair(l, t, depth - 1);
        return (Pair){prim_fma(c, a.folded, b.folded, d.folded),
                      prim_fma(c, a.loaded, b.loaded, d.loaded)};
    case 5:
        if (!isf)
            break;
        MathFn fn = exact[rnd(COUNT(exact))];
        a = random_pair(l, t, depth - 1);
        return (Pair){prim_math(c, fn, a.folded, NULL), prim_math(c, fn, a.loaded, NULL)};
    case 6:
        a = random_pair(l, t, depth - 1);
        if (isf)
            return (Pair){prim_neg(c, a.folded), prim_neg(c, a.loaded)};
        return (Pair){prim_not(c, a.folded), prim_not(c, a.loaded)};
    default: break;
    }
    PrimKind k = arith[rnd(isf ? 9 : COUNT(arith))];
    a = random_pair(l, t, depth - 1), b = random_pair(l, t, depth - 1);
    return (Pair){prim_bin(c, k, a.folded, b.folded), prim_bin(c, k, a.loaded, b.loaded)};
}

static void test_random(void)
{
    int folded = 0, tried = 0;

    begin();
    state = 12345;
    const Idx *cells = idx_const(c->arith, CELLS), *one = idx_const(c->arith, 1);
    const Idx *zero = idx_const(c->arith, 0);
    for (int round = 0; round < 3000; round++) {
        Leaves   l = {0};
        uint32_t t = rnd(NTYPES);
        Param    params[NTYPES + 1];
        void    *memory[NTYPES + 1];
        uint64_t out = 0;
        for (uint32_t i = 0; i < NTYPES; i++) {
            l.buffer[i] = buffer_new(c, "x", types[i], SCOPE_ARENA, 1, &cells);
            params[i] = (Param){l.buffer[i], NULL, false};
            memory[i] = l.mem[i];
        }
        const Buffer *y = buffer_new(c, "y", types[t], SCOPE_ARENA, 1, &one);
        params[NTYPES] = (Param){y, NULL, true};
        memory[NTYPES] = &out;
        Pair p = random_pair(&l, t, 1 + (int)rnd(4));
        tried++;
        if (p.folded->kind != PRIM_INT && p.folded->kind != PRIM_FLOAT)
            continue;
        folded++;
        const Func *f = func_new(c, (Func){.name = "f",
                                           .kind = FUNC_KERNEL,
                                           .nparams = NTYPES + 1,
                                           .params = params,
                                           .body = stmt_store(c, y, &zero, p.loaded)});
        CHECK(tir_eval(c, NULL, f, NTYPES + 1, memory, 0, NULL));
        Scalar got = scalar_get(types[t], &out);
        Scalar want = {0};
        if (dtype_is_float(types[t]))
            want.f = p.folded->u.f;
        else
            want.i = p.folded->u.i;
        bool both_nan = dtype_is_float(types[t]) && isnan(got.f) && isnan(want.f);
        CHECK(both_nan || scalar_same(types[t], got, want));

        /* the expression over loads also survives its text */
        StrBuf s1 = strbuf(arena), s2 = strbuf(arena);
        func_print(c, f, &s1);
        const TirModule *m = tir_parse(c, "r.tir", (Bytes){(const uint8_t *)s1.at, s1.n});
        CHECK(m != NULL);
        if (m) {
            tir_print(c, m, &s2);
            CHECK_STR(s2.at, s1.at);
        }
    }
    CHECK(folded > tried * 9 / 10);
    end();
}

int main(void)
{
    RUN(test_fold);
    RUN(test_conditions);
    RUN(test_random);
    return check_result();
}
