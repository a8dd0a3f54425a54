/* Arithmetic, functions and conversions, as ir/tir/tir.h defines them.
 *
 * Numbers of 8 and 16 bits are 32 bits wide, with the sign or with zeros above, and are cut to
 * their width behind what may leave it; f16 and bf16 are their bits, and are computed with as f32
 * (common/halves.c).  Whatever a driver may do to sums and products of floats it is told not to
 * (NoContraction); GLSL's functions are taken where they are exact. */
#include "backends/vulkan/vulkan.h"

#include <math.h>

static uint32_t boolean(Gen *g)
{
    return spv_type(g->s, DT_BOOL);
}

static uint32_t choose(Gen *g, DType t, uint32_t cond, uint32_t a, uint32_t b)
{
    return OP3(g, OpSelect, spv_type(g->s, t), cond, a, b);
}

static uint32_t glsl(Gen *g, SpvGlsl fn, DType t, uint32_t n, const uint32_t *args)
{
    uint32_t words[6] = {spv_glsl(g->s), (uint32_t)fn};

    for (uint32_t i = 0; i < n; i++)
        words[2 + i] = args[i];
    return emit_op(g, OpExtInst, spv_type(g->s, t), 2 + n, words);
}

/* The integer type of a float's bits. */
static DType bits_type(DType t)
{
    return t.bits == 64 ? DT_I64 : DT_I32;
}

static uint32_t both(Gen *g, uint32_t a, uint32_t b)
{
    return OP2(g, OpLogicalAnd, boolean(g), a, b);
}

static uint32_t either(Gen *g, uint32_t a, uint32_t b)
{
    return OP2(g, OpLogicalOr, boolean(g), a, b);
}

/* ---- whole numbers ------------------------------------------------------------------------------- */

/* Cut to the bits of t, which may be fewer than those that hold it. */
static uint32_t cut(Gen *g, uint32_t v, DType t)
{
    uint32_t u32 = spv_type(g->s, DT_U32);

    if (t.bits >= 32)
        return v;
    if (t.code == DT_INT)
        return OP3(g, OpBitFieldSExtract, u32, v, spv_int(g->s, DT_U32, 0),
                   spv_int(g->s, DT_U32, t.bits));
    return OP2(g, OpBitwiseAnd, u32, v, spv_int(g->s, DT_U32, (INT64_C(1) << t.bits) - 1));
}

/* The instruction of an operation on two operands; 0: there is none. */
typedef struct {
    uint16_t on_signed, on_unsigned, on_bool, on_float;
} Instruction;

static const Instruction instructions[] = {
    [PRIM_ADD] = {OpIAdd, OpIAdd, 0, OpFAdd},
    [PRIM_SUB] = {OpISub, OpISub, 0, OpFSub},
    [PRIM_MUL] = {OpIMul, OpIMul, OpLogicalAnd, OpFMul},
    [PRIM_DIV] = {OpSDiv, OpUDiv, 0, OpFDiv},
    [PRIM_REM] = {OpSDiv, OpUMod, 0, 0},
    [PRIM_AND] = {OpBitwiseAnd, OpBitwiseAnd, OpLogicalAnd, 0},
    [PRIM_OR] = {OpBitwiseOr, OpBitwiseOr, OpLogicalOr, 0},
    [PRIM_XOR] = {OpBitwiseXor, OpBitwiseXor, OpLogicalNotEqual, 0},
    [PRIM_SHL] = {OpShiftLeftLogical, OpShiftLeftLogical, 0, 0},
    [PRIM_SHR] = {OpShiftRightArithmetic, OpShiftRightLogical, 0, 0},
    [PRIM_MIN] = {0, 0, OpLogicalAnd, 0},
    [PRIM_MINNUM] = {0, 0, OpLogicalAnd, 0},
    [PRIM_MAX] = {0, 0, OpLogicalOr, 0},
    [PRIM_MAXNUM] = {0, 0, OpLogicalOr, 0},
    [PRIM_EQ] = {OpIEqual, OpIEqual, OpLogicalEqual, OpFOrdEqual},
    [PRIM_NE] = {OpINotEqual, OpINotEqual, OpLogicalNotEqual, OpFUnordNotEqual},
    [PRIM_LT] = {OpSLessThan, OpULessThan, 0, OpFOrdLessThan},
    [PRIM_LE] = {OpSLessThanEqual, OpULessThanEqual, 0, OpFOrdLessThanEqual}};

/* The row's instruction for p's operands. */
static SpvOp instruction_of(const Prim *p)
{
    DType t = p->kids[0]->dtype;

    if (p->kind >= COUNT(instructions))
        return 0;
    const Instruction *row = &instructions[p->kind];
    return (SpvOp)(dtype_is_bool(t)    ? row->on_bool
                   : dtype_is_float(t) ? row->on_float
                   : t.code == DT_INT  ? row->on_signed
                                       : row->on_unsigned);
}

/* a / b or what it leaves.  Vulkan leaves open what remainders of negative numbers are (OpSRem,
 * OpSMod), so that of signed numbers is a - a/b*b. */
static uint32_t quotient(Gen *g, const Prim *p, SpvOp op, uint32_t a, uint32_t b)
{
    uint32_t type = spv_type(g->s, p->dtype), q = OP2(g, op, type, a, b);

    if (p->kind != PRIM_REM || p->dtype.code != DT_INT)
        return q;
    return OP2(g, OpISub, type, a, OP2(g, OpIMul, type, q, b));
}

/* x/0 = 0, and the least number divided by -1 is itself. */
static uint32_t divide(Gen *g, const Prim *p, SpvOp op, uint32_t a, uint32_t b)
{
    DType    t = p->dtype;
    bool     sign = t.code == DT_INT, rest = p->kind == PRIM_REM;
    uint32_t type = spv_type(g->s, t), zero = spv_int(g->s, t, 0), one = spv_int(g->s, t, 1), q;
    int64_t  by = p->kids[1]->kind == PRIM_INT ? p->kids[1]->u.i : 0;

    if (by && (by != -1 || !sign))
        return quotient(g, p, op, a, b);
    uint32_t none = OP2(g, OpIEqual, boolean(g), b, zero);
    uint32_t minus = sign ? OP2(g, OpIEqual, boolean(g), b, spv_int(g->s, t, -1)) : 0;
    q = quotient(g, p, op, a, choose(g, t, sign ? either(g, none, minus) : none, one, b));
    if (sign)
        q = choose(g, t, minus, rest ? zero : cut(g, OP2(g, OpISub, type, zero, a), t), q);
    return choose(g, t, none, zero, q);
}

static uint32_t least(Gen *g, const Prim *p, uint32_t a, uint32_t b)
{
    SpvOp    op = p->dtype.code == DT_INT ? OpSLessThan : OpULessThan;
    bool     max = p->kind == PRIM_MAX || p->kind == PRIM_MAXNUM;
    uint32_t less = max ? OP2(g, op, boolean(g), b, a) : OP2(g, op, boolean(g), a, b);

    return choose(g, p->dtype, less, a, b);
}

static bool is_extreme(const Prim *p)
{
    return p->kind == PRIM_MIN || p->kind == PRIM_MAX || p->kind == PRIM_MINNUM ||
           p->kind == PRIM_MAXNUM;
}

static uint32_t whole(Gen *g, const Prim *p, uint32_t a, uint32_t b)
{
    DType    t = p->kids[0]->dtype;
    uint32_t type = spv_type(g->s, p->dtype);
    SpvOp    op = instruction_of(p);

    if (p->kind == PRIM_NOT)
        return cut(g, OP1(g, OpNot, type, a), t);
    if (is_extreme(p))
        return least(g, p, a, b);
    if (!op)
        return emit_fail(g, "such an operation of integers");
    if (p->kind == PRIM_DIV || p->kind == PRIM_REM)
        return divide(g, p, op, a, b);
    if (p->kind == PRIM_SHL || p->kind == PRIM_SHR)
        b = p->kids[1]->kind == PRIM_INT
                ? spv_int(g->s, t, p->kids[1]->u.i & (t.bits - 1))
                : OP2(g, OpBitwiseAnd, type, b, spv_int(g->s, t, t.bits - 1));
    uint32_t v = OP2(g, op, type, a, b);
    return dtype_is_bool(p->dtype) ? v : cut(g, v, t);
}

static uint32_t logical(Gen *g, const Prim *p, uint32_t a, uint32_t b)
{
    SpvOp op = instruction_of(p);

    if (p->kind == PRIM_NOT)
        return OP1(g, OpLogicalNot, boolean(g), a);
    if (p->kind == PRIM_LT)
        return both(g, OP1(g, OpLogicalNot, boolean(g), a), b);
    if (p->kind == PRIM_LE)
        return either(g, OP1(g, OpLogicalNot, boolean(g), a), b);
    return op ? OP2(g, op, boolean(g), a, b) : emit_fail(g, "such an operation of conditions");
}

/* ---- floats -------------------------------------------------------------------------------------- */

static uint32_t exact(Gen *g, SpvOp op, DType t, uint32_t a, uint32_t b)
{
    uint32_t v = OP2(g, op, spv_type(g->s, t), a, b);

    PUT(g->s, &g->s->notes, OpDecorate, v, SpvNoContraction);
    return v;
}

static bool is_number(const Prim *p)
{
    return p->kind == PRIM_FLOAT && p->u.f != 0 && !isnan(p->u.f);
}

/* NaN wins, -0 < +0: a if it is the one, or NaN; equal numbers other than 0 are the same. */
static uint32_t extreme(Gen *g, const Prim *p, uint32_t a, uint32_t b)
{
    bool     max = p->kind == PRIM_MAX;
    DType    t = p->dtype, i = bits_type(t);
    uint32_t take =
        max ? OP2(g, OpFOrdLessThan, boolean(g), b, a) : OP2(g, OpFOrdLessThan, boolean(g), a, b);

    if (p->kids[0]->kind != PRIM_FLOAT || isnan(p->kids[0]->u.f))
        take = either(g, take, OP1(g, OpIsNan, boolean(g), a));
    if (!is_number(p->kids[0]) && !is_number(p->kids[1])) {
        uint32_t bits = OP1(g, OpBitcast, spv_type(g->s, i), a), zero = spv_int(g->s, i, 0);
        uint32_t sign = max ? OP2(g, OpSLessThanEqual, boolean(g), zero, bits)
                            : OP2(g, OpSLessThan, boolean(g), bits, zero);

        take = either(g, take, both(g, OP2(g, OpFOrdEqual, boolean(g), a, b), sign));
    }
    return choose(g, t, take, a, b);
}

/* b < a or a is NaN ? b : a */
static uint32_t extreme_number(Gen *g, const Prim *p, uint32_t a, uint32_t b)
{
    bool     max = p->kind == PRIM_MAXNUM;
    uint32_t take =
        max ? OP2(g, OpFOrdLessThan, boolean(g), a, b) : OP2(g, OpFOrdLessThan, boolean(g), b, a);

    return choose(g, p->dtype, either(g, take, OP1(g, OpIsNan, boolean(g), a)), b, a);
}

/* 1 / v, where that is exact; else 0. */
static double inverse(const Prim *v)
{
    int e;

    if (v->kind != PRIM_FLOAT || fabs(frexp(v->u.f, &e)) != 0.5 || e < -124 || e > 126)
        return 0;
    return 1 / v->u.f;
}

static uint32_t quotient_of_f32(Gen *g, const Prim *p, const uint32_t *v)
{
    double by = inverse(p->kids[1]);

    return by != 0 ? exact(g, OpFMul, DT_F32, v[0], spv_real(g->s, DT_F32, by))
                   : exact_divide(g, v[0], v[1]);
}

static uint32_t real(Gen *g, const Prim *p, const uint32_t *v)
{
    SpvOp op = instruction_of(p);

    if (p->kind == PRIM_DIV && p->dtype.bits == 32)
        return quotient_of_f32(g, p, v);
    if (p->kind == PRIM_REM)
        return exact_remainder(g, p->dtype, v[0], v[1]);
    if (p->kind == PRIM_FMA)
        return glsl(g, GlslFma, p->dtype, 3, v);
    if (p->kind == PRIM_MIN || p->kind == PRIM_MAX)
        return extreme(g, p, v[0], v[1]);
    if (is_extreme(p))
        return extreme_number(g, p, v[0], v[1]);
    if (p->kind == PRIM_NE && v[0] == v[1])
        return OP1(g, OpIsNan, boolean(g), v[0]);
    if (!op)
        return emit_fail(g, "such an operation of floats");
    return dtype_is_bool(p->dtype) ? OP2(g, op, boolean(g), v[0], v[1])
                                   : exact(g, op, p->dtype, v[0], v[1]);
}

/* ---- functions ----------------------------------------------------------------------------------- */

static uint32_t copy_sign(Gen *g, DType t, uint32_t a, uint32_t b)
{
    DType    i = bits_type(t);
    uint32_t type = spv_type(g->s, i),
             sign = spv_int(g->s, i, i.bits == 64 ? INT64_MIN : INT32_MIN);
    uint32_t rest = spv_int(g->s, i, i.bits == 64 ? INT64_MAX : INT32_MAX);

    a = OP2(g, OpBitwiseAnd, type, OP1(g, OpBitcast, type, a), rest);
    b = OP2(g, OpBitwiseAnd, type, OP1(g, OpBitcast, type, b), sign);
    return OP1(g, OpBitcast, spv_type(g->s, t), OP2(g, OpBitwiseOr, type, a, b));
}

static const char *const math_names[] = {
#define MATH(id, text, n) text,
#include "ir/tir/math.def"
#undef MATH
};

static uint32_t function(Gen *g, const Prim *p, const uint32_t *v)
{
    static const uint8_t same[MATH_COUNT] = {
        [MATH_SQRT] = GlslSqrt,   [MATH_ABS] = GlslFAbs,    [MATH_FLOOR] = GlslFloor,
        [MATH_CEIL] = GlslCeil,   [MATH_TRUNC] = GlslTrunc, [MATH_ROUND] = GlslRoundEven,
        [MATH_SIN] = GlslSin,     [MATH_COS] = GlslCos,     [MATH_TAN] = GlslTan,
        [MATH_ATAN2] = GlslAtan2, [MATH_POW] = GlslPow};
    MathFn fn = p->u.math;
    DType  t = p->dtype;

    if (!dtype_is_float(t) && fn == MATH_ABS) {
        uint32_t type = spv_type(g->s, t), zero = spv_int(g->s, t, 0);
        uint32_t less = OP2(g, OpSLessThan, boolean(g), v[0], zero);
        return choose(g, t, less, cut(g, OP2(g, OpISub, type, zero, v[0]), t), v[0]);
    }
    if (fn == MATH_COPYSIGN)
        return copy_sign(g, t, v[0], v[1]);
    if (fn == MATH_FMOD)
        return exact_remainder(g, t, v[0], v[1]);
    if (!same[fn] || prim_lacking(g->c, g->f->target, p))
        return emit_fail(
            g, arena_printf(g->c->arena, "function %s of %s", math_names[fn], dtype_text(g->c, t)));
    return glsl(g, same[fn], t, p->nkids, v);
}

uint32_t emit_arith(Gen *g, const Prim *p)
{
    uint32_t v[3] = {0};
    DType    t = p->kids[0]->dtype;

    for (uint32_t i = 0; i < p->nkids && i < 3; i++)
        v[i] = emit_prim(g, p->kids[i]);
    if (g->failed)
        return 0;
    if (p->kind == PRIM_MATH)
        return function(g, p, v);
    if (dtype_is_float(t))
        return real(g, p, v);
    return dtype_is_bool(t) ? logical(g, p, v[0], v[1]) : whole(g, p, v[0], v[1]);
}

/* ---- products of bytes --------------------------------------------------------------------------- */

static bool is_dot(const Prim *p)
{
    return p->kind == PRIM_INTRIN && p->u.intrin->sums && !p->u.intrin->warp;
}

static void find_dot(void *user, const Prim *p)
{
    bool *found = user;

    *found = *found || is_dot(p);
}

bool multiplies_words(const Func *f)
{
    bool found = false;

    stmt_visit(f->body, &(TirVisit){.user = &found, .prim = find_dot});
    return found;
}

/* Of bytes of both signs the signed ones come first.  What adds to a sum itself saturates. */
uint32_t emit_dot(Gen *g, const Prim *p)
{
    const uint32_t u32 = spv_type(g->s, DT_U32);
    uint32_t       v[2], sum;
    bool           sign[2];

    if (!is_dot(p) || p->nkids != 3)
        return emit_fail(g, "vectors");
    for (int i = 0; i < 2; i++) {
        v[i] = emit_word(g, p->kids[i]);
        sign[i] = p->kids[i]->dtype.code == DT_INT;
    }
    sum = emit_prim(g, p->kids[2]);
    if (g->failed)
        return 0;
    spv_dots(g->s);
    bool turned = sign[1] && !sign[0];
    v[0] = OP3(g,
               sign[0] != sign[1] ? OpSUDotKHR
               : sign[0]          ? OpSDotKHR
                                  : OpUDotKHR,
               u32, v[turned], v[!turned], SpvPackedVectorFormat4x8BitKHR);
    return OP2(g, OpIAdd, u32, v[0], sum);
}

/* ---- conversions --------------------------------------------------------------------------------- */

/* Truncates and saturates; NaN gives 0. */
static uint32_t whole_of_real(Gen *g, uint32_t v, DType to, DType from)
{
    bool     sign = to.code == DT_INT;
    double   span = ldexp(1, to.bits), lo = sign ? -span / 2 : 0;
    double   hi = lo + span - (to.bits < 32 ? 1 : 0); /* what is not below it saturates */
    uint32_t least = spv_real(g->s, from, lo), most = spv_real(g->s, from, hi);
    uint32_t type = spv_type(g->s, to), below, above, in, i;
    int64_t  first = sign ? (int64_t)((uint64_t)-1 << (to.bits - 1)) : 0;
    int64_t  last = (int64_t)(UINT64_MAX >> (64 - to.bits + sign));

    below = OP2(g, OpFOrdLessThanEqual, boolean(g), v, least);
    above = OP2(g, OpFOrdLessThanEqual, boolean(g), most, v);
    in = both(g, OP2(g, OpFOrdLessThan, boolean(g), least, v),
              OP2(g, OpFOrdLessThan, boolean(g), v, most));
    i = OP1(g, sign ? OpConvertFToS : OpConvertFToU, type,
            choose(g, from, in, v, spv_real(g->s, from, 0)));
    i = choose(g, to, below, spv_int(g->s, to, first), i);
    return choose(g, to, above, spv_int(g->s, to, last), i);
}

static uint32_t u32(Gen *g, SpvOp op, uint32_t a, int64_t b)
{
    return OP2(g, op, spv_type(g->s, DT_U32), a, spv_int(g->s, DT_U32, b));
}

static uint32_t bitcast(Gen *g, DType to, uint32_t v)
{
    return OP1(g, OpBitcast, spv_type(g->s, to), v);
}

/* The lower half of a word. */
static uint32_t f32_of_f16(Gen *g, uint32_t h)
{
    uint32_t f32 = spv_type(g->s, DT_F32), two = spv_vector(g->s, f32, 2);

    g->s->floats |= DT_F16.bits;
    two = OP3(g, OpExtInst, two, spv_glsl(g->s), GlslUnpackHalf2x16, h);
    return OP2(g, OpCompositeExtract, f32, two, 0);
}

/* To nearest, ties to even; how PackHalf2x16 rounds is the device's own affair. */
static uint32_t f16_of_f32(Gen *g, uint32_t v)
{
    uint32_t type = spv_type(g->s, DT_U32), bits = bitcast(g, DT_U32, v);
    uint32_t sign = u32(g, OpBitwiseAnd, u32(g, OpShiftRightLogical, bits, 16), 0x8000);
    uint32_t rest = u32(g, OpBitwiseAnd, bits, 0x7fffffff);
    uint32_t odd = u32(g, OpBitwiseAnd, u32(g, OpShiftRightLogical, rest, 13), 1);
    uint32_t nan = u32(g, OpBitwiseAnd, u32(g, OpShiftRightLogical, rest, 13), 0x03ff);
    uint32_t is_nan = OP2(g, OpULessThan, boolean(g), spv_int(g->s, DT_U32, 0x7f800000), rest);
    uint32_t is_inf = OP2(g, OpULessThan, boolean(g), spv_int(g->s, DT_U32, 0x477fffff), rest);
    uint32_t is_tiny = OP2(g, OpULessThan, boolean(g), rest, spv_int(g->s, DT_U32, 0x38800000));
    uint32_t tiny, usual; /* of units of 2^-24 */

    tiny = bitcast(g, DT_U32,
                   exact(g, OpFAdd, DT_F32, bitcast(g, DT_F32, rest), spv_real(g->s, DT_F32, 0.5)));
    tiny = u32(g, OpISub, tiny, 0x3f000000);
    usual = OP2(g, OpIAdd, type, u32(g, OpISub, rest, 0x38000000 - 0x0fff), odd);
    usual = u32(g, OpShiftRightLogical, usual, 13);
    usual = choose(g, DT_U32, is_tiny, tiny, usual);
    usual = choose(g, DT_U32, is_inf, spv_int(g->s, DT_U32, 0x7c00), usual);
    usual = choose(g, DT_U32, is_nan, u32(g, OpBitwiseOr, nan, 0x7e00), usual);
    return OP2(g, OpBitwiseOr, type, sign, usual);
}

static uint32_t bf16_of_f32(Gen *g, uint32_t v)
{
    uint32_t bits = bitcast(g, DT_U32, v), high = u32(g, OpShiftRightLogical, bits, 16);
    uint32_t odd = u32(g, OpBitwiseAnd, high, 1), rest = u32(g, OpBitwiseAnd, bits, 0x7fffffff);
    uint32_t is_nan = OP2(g, OpULessThan, boolean(g), spv_int(g->s, DT_U32, 0x7f800000), rest);
    uint32_t near = OP2(g, OpIAdd, spv_type(g->s, DT_U32), u32(g, OpIAdd, bits, 0x7fff), odd);

    return choose(g, DT_U32, is_nan, u32(g, OpBitwiseOr, high, 0x0040),
                  u32(g, OpShiftRightLogical, near, 16));
}

static uint32_t whole_of_whole(Gen *g, uint32_t v, DType to, DType from)
{
    if (to.bits == 64 && from.bits < 64)
        return OP1(g, from.code == DT_INT ? OpSConvert : OpUConvert, spv_type(g->s, to), v);
    if (to.bits < 64 && from.bits == 64)
        v = OP1(g, OpUConvert, spv_type(g->s, DT_U32), v);
    return cut(g, v, to);
}

static uint32_t of_bool(Gen *g, uint32_t v, DType to)
{
    return dtype_is_float(to) ? choose(g, to, v, spv_real(g->s, to, 1), spv_real(g->s, to, 0))
                              : choose(g, to, v, spv_int(g->s, to, 1), spv_int(g->s, to, 0));
}

static uint32_t to_bool(Gen *g, uint32_t v, DType from)
{
    return dtype_is_float(from) ? OP2(g, OpFUnordNotEqual, boolean(g), v, spv_real(g->s, from, 0))
                                : OP2(g, OpINotEqual, boolean(g), v, spv_int(g->s, from, 0));
}

uint32_t emit_cast(Gen *g, uint32_t v, DType to, DType from)
{
    if (dtype_eq(to, from) || g->failed)
        return v;
    if (dtype_is_half(from)) {
        v = from.code == DT_FLOAT ? f32_of_f16(g, v)
                                  : bitcast(g, DT_F32, u32(g, OpShiftLeftLogical, v, 16));
        return emit_cast(g, v, to, DT_F32);
    }
    if (dtype_is_half(to)) {
        v = emit_cast(g, v, DT_F32, from);
        return to.code == DT_FLOAT ? f16_of_f32(g, v) : bf16_of_f32(g, v);
    }
    if (dtype_is_bool(from))
        return of_bool(g, v, to);
    if (dtype_is_bool(to))
        return to_bool(g, v, from);
    if (dtype_is_float(from))
        return dtype_is_float(to) ? OP1(g, OpFConvert, spv_type(g->s, to), v)
                                  : whole_of_real(g, v, to, from);
    if (dtype_is_float(to))
        return OP1(g, from.code == DT_INT ? OpConvertSToF : OpConvertUToF, spv_type(g->s, to), v);
    return whole_of_whole(g, v, to, from);
}

uint32_t emit_bits(Gen *g, uint32_t v, DType to, DType from)
{
    if (dtype_is_bool(from) || dtype_is_bool(to))
        return emit_cast(g, v, to, from);
    if (to.bits < 32) /* bits of 16 in a value of 32 */
        return dtype_is_half(to) ? u32(g, OpBitwiseAnd, v, 0xffff) : cut(g, v, to);
    return dtype_is_float(to) == dtype_is_float(from) ? v : bitcast(g, to, v);
}
