/* What Vulkan lets a device be inexact about, as functions of the module made of whole numbers:
 * quotients of f32, which it may give 2.5 units in the last place away, and remainders of floats,
 * which need not even be less than the divisor.  Nothing here depends on how a device treats
 * subnormal numbers, NaN and products followed by sums.
 *
 *     %7 = OpFunctionCall %f32 %divide %5 %6 */
#include "backends/vulkan/vulkan.h"

/* A function of two floats while it is written; `w` is the integer of their width. */
typedef struct {
    Gen      g;
    DType    t, w;
    uint32_t function, a, b; /* operands as bits */
} Fn;

static uint32_t num(Fn *f, int64_t v)
{
    return spv_int(f->g.s, f->w, v);
}

/* Operands are members of a list, so that they are written in its order. */
static uint32_t emit(Fn *f, SpvOp o, DType t, uint32_t n, const uint32_t *operands)
{
    return emit_op(&f->g, o, spv_type(f->g.s, t), n, operands);
}

#define op(f, o, a, b) emit(f, o, (f)->w, 2, (uint32_t[]){a, b})
#define opc(f, o, a, v) op(f, o, a, num(f, v))
#define is(f, o, a, b) emit(f, o, DT_BOOL, 2, (uint32_t[]){a, b})
#define any(f, a, b) is(f, OpLogicalOr, a, b)
#define pick(f, cond, a, b) emit(f, OpSelect, (f)->w, 3, (uint32_t[]){cond, a, b})
#define extreme(f, fn, a, v) \
    emit(f, OpExtInst, (f)->w, 4, (uint32_t[]){spv_glsl((f)->g.s), fn, a, num(f, v)})

static uint32_t cast(Fn *f, SpvOp o, DType to, uint32_t v)
{
    return OP1(&f->g, o, spv_type(f->g.s, to), v);
}

/* A float's operation that is not combined with another. */
static uint32_t real(Fn *f, SpvOp o, uint32_t a, uint32_t b)
{
    uint32_t v = emit(f, o, DT_F32, 2, (uint32_t[]){a, b});

    PUT(f->g.s, &f->g.s->notes, OpDecorate, v, SpvNoContraction);
    return v;
}

static void begin(Fn *f, const Gen *of, DType t)
{
    Spirv   *s = of->s;
    uint32_t type = spv_type(s, t), a = spv_id(s), b = spv_id(s);

    f->g = (Gen){.s = s, .c = of->c, .f = of->f};
    f->t = t;
    f->w = t.bits == 64 ? DT_U64 : DT_U32;
    f->function = spv_id(s);
    PUT(s, &f->g.code, OpFunction, type, f->function, 0, spv_procedure_of(s, type));
    PUT(s, &f->g.code, OpFunctionParameter, type, a);
    PUT(s, &f->g.code, OpFunctionParameter, type, b);
    emit_label(&f->g, spv_id(s));
    f->a = cast(f, OpBitcast, f->w, a);
    f->b = cast(f, OpBitcast, f->w, b);
}

/* Returns the float with these bits. */
static uint32_t end(Fn *f, uint32_t bits)
{
    PUT(f->g.s, &f->g.code, OpReturnValue, cast(f, OpBitcast, f->t, bits));
    PUT(f->g.s, &f->g.code, OpFunctionEnd);
    for (uint32_t i = 0; i < f->g.code.n; i++)
        vec_push(f->g.c->arena, &f->g.s->functions, f->g.code.at[i]);
    return f->function;
}

/* ---- quotients of f32 ------------------------------------------------------------------------------ */

enum { BITS = 23, ONE = 1 << BITS, INF = 0x7f800000, QNAN = 0x7fc00000, MOST = 0x7fffffff };

/* |v| = mantissa * 2^(exponent - 150), the mantissa of 24 bits.  Of a subnormal number they are
 * those of its bits as a whole number. */
static void parts(Fn *f, uint32_t magnitude, uint32_t *mantissa, uint32_t *exponent)
{
    uint32_t small = is(f, OpULessThan, magnitude, num(f, ONE));
    uint32_t whole = cast(f, OpBitcast, f->w, cast(f, OpConvertUToF, DT_F32, magnitude));
    uint32_t v = pick(f, small, whole, magnitude);

    *mantissa = opc(f, OpBitwiseOr, opc(f, OpBitwiseAnd, v, ONE - 1), ONE);
    *exponent =
        op(f, OpISub, opc(f, OpShiftRightLogical, v, BITS), pick(f, small, num(f, 149), num(f, 0)));
}

/* In [1, 2) */
static uint32_t scaled(Fn *f, uint32_t mantissa)
{
    return cast(f, OpBitcast, DT_F32, opc(f, OpIAdd, mantissa, (127 - 1) << BITS));
}

/* floor(2^26 a / b) of mantissas; its last bit is 1 where the quotient is more.  The device's
 * quotient is up to 20 of these units away, so 32 bits hold what it leaves. */
static uint32_t quotient_of(Fn *f, uint32_t a, uint32_t b)
{
    enum { UNITS = 26, AWAY = 5 /* 2^5 is more than 20 */ };
    uint32_t one = scaled(f, a), q = real(f, OpFDiv, one, scaled(f, b)), rest, more;

    q = real(f, OpFMul, q, spv_real(f->g.s, DT_F32, 1 << UNITS));
    q = cast(f, OpConvertFToU, f->w, q);
    rest = op(f, OpISub, opc(f, OpShiftLeftLogical, a, UNITS), op(f, OpIMul, q, b));
    rest = op(f, OpIAdd, rest, opc(f, OpShiftLeftLogical, b, AWAY));
    more = op(f, OpUDiv, rest, b);
    rest = op(f, OpISub, rest, op(f, OpIMul, more, b));
    q = opc(f, OpISub, op(f, OpIAdd, q, more), 1 << AWAY);
    return op(f, OpBitwiseOr, q, pick(f, is(f, OpIEqual, rest, num(f, 0)), num(f, 0), num(f, 1)));
}

/* q / 2^shift to nearest, ties to even. */
static uint32_t rounded(Fn *f, uint32_t q, uint32_t shift)
{
    uint32_t half =
        op(f, OpShiftLeftLogical, num(f, 1), opc(f, OpISub, shift, 1)); /* and 1 less, or odd */
    uint32_t odd = opc(f, OpBitwiseAnd, op(f, OpShiftRightLogical, q, shift), 1);

    q = op(f, OpIAdd, opc(f, OpISub, op(f, OpIAdd, q, half), 1), odd);
    return op(f, OpShiftRightLogical, q, shift);
}

static uint32_t divide(const Gen *g)
{
    Fn       f;
    uint32_t ma, mb, ea, eb, q, over, e, low, v, a, b, sign, none, nan, zero, inf;

    begin(&f, g, DT_F32);
    sign = opc(&f, OpBitwiseAnd, op(&f, OpBitwiseXor, f.a, f.b), INT64_C(0x80000000));
    a = opc(&f, OpBitwiseAnd, f.a, MOST);
    b = opc(&f, OpBitwiseAnd, f.b, MOST);
    parts(&f, a, &ma, &ea);
    parts(&f, b, &mb, &eb);
    q = quotient_of(&f, ma, mb);
    over = opc(&f, OpShiftRightLogical, q, 26); /* 1 if it is 1 or more, of 27 bits, else 26 */
    e = op(&f, OpIAdd, opc(&f, OpIAdd, op(&f, OpISub, ea, eb), 126), over);
    low =
        extreme(&f, GlslSMax, op(&f, OpISub, num(&f, 1), e), 0); /* a subnormal result is shorter */
    v = rounded(&f, q, extreme(&f, GlslSMin, op(&f, OpIAdd, opc(&f, OpIAdd, over, 2), low), 30));
    e = opc(&f, OpISub, op(&f, OpIAdd, e, low), 1);
    v = op(&f, OpIAdd, opc(&f, OpShiftLeftLogical, e, BITS), v);

    none = num(&f, 0);
    inf = num(&f, INF);
    v = pick(&f, is(&f, OpULessThan, inf, v), inf, v);
    zero = any(&f, is(&f, OpIEqual, a, none), is(&f, OpIEqual, b, inf));
    over = any(&f, is(&f, OpIEqual, b, none), is(&f, OpIEqual, a, inf));
    nan = any(&f, is(&f, OpULessThan, inf, a), is(&f, OpULessThan, inf, b));
    nan = any(&f, nan, is(&f, OpLogicalAnd, zero, over));
    v = pick(&f, over, inf, pick(&f, zero, none, v));
    return end(&f, pick(&f, nan, num(&f, QNAN), op(&f, OpBitwiseOr, v, sign)));
}

/* ---- remainders ------------------------------------------------------------------------------------ */

/* (r * 2^n) mod b, some bits at a time. */
static uint32_t shifted_mod(Fn *f, uint32_t r, uint32_t n, uint32_t b)
{
    Spirv   *s = f->g.s;
    uint32_t type = spv_type(s, f->w), header = spv_id(s), test = spv_id(s), body = spv_id(s);
    uint32_t again = spv_id(s), done = spv_id(s), next = spv_id(s), left = spv_id(s);
    uint32_t before = f->g.block, first = op(f, OpUMod, r, b), some, v, k;

    emit_branch(&f->g, header);
    emit_label(&f->g, header);
    v = emit_op(&f->g, OpPhi, type, 4, (uint32_t[]){first, before, next, again});
    k = emit_op(&f->g, OpPhi, type, 4, (uint32_t[]){n, before, left, again});
    PUT(s, &f->g.code, OpLoopMerge, done, again, 0);
    emit_branch(&f->g, test);
    emit_label(&f->g, test);
    uint32_t goes_on = is(f, OpSLessThan, num(f, 0), k);
    PUT(s, &f->g.code, OpBranchConditional, goes_on, body, done);
    emit_label(&f->g, body);
    emit_branch(&f->g, again);
    emit_label(&f->g, again);
    some = extreme(f, GlslSMin, k, f->w.bits == 64 ? 11 : 8); /* r has 53 bits, or 24 */
    some = op(f, OpShiftLeftLogical, v, some);
    PUT(s, &f->g.code, OpUMod, type, next, some, b);
    PUT(s, &f->g.code, OpISub, type, left, k, num(f, f->w.bits == 64 ? 11 : 8));
    emit_branch(&f->g, header);
    emit_label(&f->g, done);
    return v;
}

/* |v| = mantissa * 2^(exponent - that of 1 - bits), the exponent at least 1. */
static void whole_parts(Fn *f, uint32_t v, uint32_t *mantissa, uint32_t *exponent)
{
    uint32_t bits = f->w.bits == 64 ? 52 : 23;
    uint32_t e = opc(f, OpShiftRightLogical, v, bits);
    uint32_t small = is(f, OpIEqual, e, num(f, 0));
    uint32_t m = opc(f, OpBitwiseAnd, v, (INT64_C(1) << bits) - 1);

    *mantissa = pick(f, small, m, opc(f, OpBitwiseOr, m, INT64_C(1) << bits));
    *exponent = pick(f, small, num(f, 1), e);
}

static uint32_t remainder_of(const Gen *g, DType t)
{
    bool     wide = t.bits == 64;
    int64_t  bits = wide ? 52 : 23, infinity = wide ? INT64_C(0x7ff) << 52 : INF;
    int64_t  down = bits + (wide ? 1023 : 127); /* exponent of a whole number's last bit */
    Fn       f;
    uint32_t a, b, ma, mb, ea, eb, r, v, e, nan, none, inf, sign;

    begin(&f, g, t);
    a = opc(&f, OpBitwiseAnd, f.a, wide ? INT64_MAX : MOST);
    b = opc(&f, OpBitwiseAnd, f.b, wide ? INT64_MAX : MOST);
    sign = op(&f, OpBitwiseXor, f.a, a);
    none = num(&f, 0);
    inf = num(&f, infinity);
    whole_parts(&f, a, &ma, &ea);
    whole_parts(&f, b, &mb, &eb);
    mb = pick(&f, is(&f, OpIEqual, mb, none), num(&f, 1), mb);
    r = shifted_mod(&f, ma, op(&f, OpISub, ea, eb), mb);

    /* r * 2^(eb - down): its bits as those of a whole number, or as they are */
    v = cast(&f, OpBitcast, f.w, cast(&f, OpConvertUToF, t, r));
    e = opc(&f, OpISub, eb, down);
    v = pick(&f,
             is(&f, OpSLessThan, none, op(&f, OpIAdd, opc(&f, OpShiftRightLogical, v, bits), e)),
             op(&f, OpIAdd, v, opc(&f, OpShiftLeftLogical, e, bits)),
             op(&f, OpShiftLeftLogical, r,
                opc(&f, OpBitwiseAnd, opc(&f, OpISub, eb, 1), wide ? 63 : 31)));
    v = pick(&f, is(&f, OpIEqual, r, none), none, v);
    v = pick(&f, is(&f, OpULessThan, a, b), a, v);
    nan = any(&f, is(&f, OpULessThanEqual, inf, a), is(&f, OpULessThan, inf, b));
    nan = any(&f, nan, is(&f, OpIEqual, b, none));
    return end(&f, pick(&f, nan, num(&f, infinity | INT64_C(1) << (bits - 1)),
                        op(&f, OpBitwiseOr, v, sign)));
}

/* ---- calls ----------------------------------------------------------------------------------------- */

static uint32_t call(Gen *g, DType t, uint32_t function, uint32_t a, uint32_t b)
{
    return OP3(g, OpFunctionCall, spv_type(g->s, t), function, a, b);
}

uint32_t exact_divide(Gen *g, uint32_t a, uint32_t b)
{
    if (!g->s->divide)
        g->s->divide = divide(g);
    return call(g, DT_F32, g->s->divide, a, b);
}

uint32_t exact_remainder(Gen *g, DType t, uint32_t a, uint32_t b)
{
    uint32_t *of = &g->s->remainder[t.bits == 64];

    if (!*of)
        *of = remainder_of(g, t);
    return call(g, t, *of, a, b);
}
