/* Arithmetic to LLVM IR, with the results of ir/scalar.h to the bit: operations of integers, of
 * floats in one rounding, of f16 and bf16, which are i16 between operations, and functions by
 * math.def. */
#include "backends/llvm/llvm.h"

#include <math.h>
#include <string.h>

/* The flags of -ffast-math on an instruction that can carry them. */
static LLVMValueRef fast(Gen *g, LLVMValueRef v)
{
    if (g->t->fast_math && LLVMIsAInstruction(v) && LLVMCanValueUseFastMathFlags(v))
        LLVMSetFastMathFlags(v, LLVMFastMathAllowReassoc | LLVMFastMathNoSignedZeros |
                                    LLVMFastMathAllowReciprocal | LLVMFastMathAllowContract);
    return v;
}

/* Truncating division without traps: x / 0 = 0, lowest / -1 = lowest; x % 0 = x % -1 = 0. */
static LLVMValueRef int_div(Gen *g, bool rem, bool sign, LLVMValueRef x, LLVMValueRef y)
{
    LLVMTypeRef  t = LLVMTypeOf(x);
    LLVMValueRef zero = LLVMConstNull(t), one = gen_splat_int(t, 1),
                 minus = gen_splat_int(t, ~0ull);
    LLVMValueRef is0 = LLVMBuildICmp(g->b, LLVMIntEQ, y, zero, ""), is1 = NULL, by = y, v;

    by = LLVMBuildSelect(g->b, is0, one, by, "");
    if (sign) {
        is1 = LLVMBuildICmp(g->b, LLVMIntEQ, y, minus, "");
        by = LLVMBuildSelect(g->b, is1, one, by, "");
    }
    if (rem) {
        /* by is 1 where the result has to be 0 */
        return sign ? LLVMBuildSRem(g->b, x, by, "") : LLVMBuildURem(g->b, x, by, "");
    }
    v = sign ? LLVMBuildSDiv(g->b, x, by, "") : LLVMBuildUDiv(g->b, x, by, "");
    if (sign)
        v = LLVMBuildSelect(g->b, is1, LLVMBuildNeg(g->b, x, ""), v, "");
    return LLVMBuildSelect(g->b, is0, zero, v, "");
}

static LLVMValueRef int_bin(Gen *g, PrimKind k, DType t, LLVMValueRef x, LLVMValueRef y)
{
    bool        sign = t.code == DT_INT;
    LLVMTypeRef lt = LLVMTypeOf(x);

    switch (k) {
    case PRIM_ADD: return LLVMBuildAdd(g->b, x, y, "");
    case PRIM_SUB: return LLVMBuildSub(g->b, x, y, "");
    case PRIM_MUL: return LLVMBuildMul(g->b, x, y, "");
    case PRIM_DIV: return int_div(g, false, sign, x, y);
    case PRIM_REM: return int_div(g, true, sign, x, y);
    case PRIM_MIN:
    case PRIM_MINNUM: return gen_call2(g, sign ? "llvm.smin" : "llvm.umin", lt, x, y);
    case PRIM_MAX:
    case PRIM_MAXNUM: return gen_call2(g, sign ? "llvm.smax" : "llvm.umax", lt, x, y);
    case PRIM_AND: return LLVMBuildAnd(g->b, x, y, "");
    case PRIM_OR: return LLVMBuildOr(g->b, x, y, "");
    case PRIM_XOR: return LLVMBuildXor(g->b, x, y, "");
    case PRIM_SHL:
    case PRIM_SHR:
        y = LLVMBuildAnd(g->b, y, gen_splat_int(lt, t.bits - 1u), "");
        if (k == PRIM_SHL)
            return LLVMBuildShl(g->b, x, y, "");
        return sign ? LLVMBuildAShr(g->b, x, y, "") : LLVMBuildLShr(g->b, x, y, "");
    case PRIM_EQ: return LLVMBuildICmp(g->b, LLVMIntEQ, x, y, "");
    case PRIM_NE: return LLVMBuildICmp(g->b, LLVMIntNE, x, y, "");
    case PRIM_LT: return LLVMBuildICmp(g->b, sign ? LLVMIntSLT : LLVMIntULT, x, y, "");
    case PRIM_LE: return LLVMBuildICmp(g->b, sign ? LLVMIntSLE : LLVMIntULE, x, y, "");
    default: BUG("in @%s, kind %d is not a binary operation of integers", g->name, (int)k);
    }
}

/* Code without libm was asked for, and `name` has no instruction on this CPU nor a polynomial. */
static LLVMValueRef no_libm(Gen *g, const char *name, DType t, LLVMValueRef x)
{
    error_at(g->c, E_CODEGEN, NO_LOC, "without libm, @%s has nothing for '%s' of %s", g->name, name,
             dtype_text(g->c, dtype_lanes(t, 1)));
    return LLVMConstNull(LLVMTypeOf(x));
}

static LLVMValueRef libm_call(Gen *g, const char *libm, DType t, uint32_t n, LLVMValueRef *x)
{
    LLVMTypeRef  vt = LLVMTypeOf(x[0]), et = gen_elem_type(vt), params[2] = {et, et};
    const char  *name = arena_printf(g->a, "%s%s", libm, t.bits == 64 ? "" : "f");
    LLVMTypeRef  type = LLVMFunctionType(et, params, n, false);
    LLVMValueRef fn = LLVMGetNamedFunction(g->mod, name), v, lane[2], out;

    if (g->t->no_libm)
        return no_libm(g, libm, t, x[0]);
    if (!fn) {
        fn = LLVMAddFunction(g->mod, name, type);
        gen_attr(g, fn, LLVMAttributeFunctionIndex, "nounwind", 0);
        gen_attr(g, fn, LLVMAttributeFunctionIndex, "willreturn", 0);
        gen_attr(g, fn, LLVMAttributeFunctionIndex, "memory", 0);
        gen_attr(g, fn, LLVMAttributeFunctionIndex, "nobuiltin", 0);
    }
    if (!gen_is_vector(vt))
        return LLVMBuildCall2(g->b, type, fn, x, n, "");
    out = LLVMGetPoison(vt);
    for (unsigned i = 0; i < LLVMGetVectorSize(vt); i++) {
        for (uint32_t k = 0; k < n; k++)
            lane[k] = LLVMBuildExtractElement(g->b, x[k], gen_i32(g, i), "");
        v = LLVMBuildCall2(g->b, type, fn, lane, n, "");
        out = LLVMBuildInsertElement(g->b, out, v, gen_i32(g, i), "");
    }
    return out;
}

static const Prim *constant_number(const Prim *p)
{
    if (p->kind == PRIM_SPLAT)
        p = p->kids[0];
    return p->kind == PRIM_FLOAT && !isnan(p->u.f) ? p : NULL;
}

/* Floats of this width are computed by the CPU, not by functions of the run-time library. */
static bool has_floats(Gen *g, LLVMTypeRef t)
{
    return (g->caps & (gen_elem_type(t) == g->f64 ? CAP_F64 : CAP_FP)) != 0;
}

/* llvm.maximum where LLVM cannot be trusted with it, as without floats in hardware.  Of equal ones,
 * zeros differ in their signs: `and` for max, `or` for min. */
static LLVMValueRef soft_minmax(Gen *g, bool max, LLVMValueRef x, LLVMValueRef y)
{
    LLVMTypeRef  t = LLVMTypeOf(x);
    LLVMTypeRef  bits = gen_with_lanes_of(gen_elem_type(t) == g->f64 ? g->i64 : g->i32, t);
    LLVMValueRef bx = LLVMBuildBitCast(g->b, x, bits, ""), by = LLVMBuildBitCast(g->b, y, bits, "");
    LLVMValueRef both = max ? LLVMBuildAnd(g->b, bx, by, "") : LLVMBuildOr(g->b, bx, by, "");
    LLVMValueRef first = LLVMBuildFCmp(g->b, max ? LLVMRealOGT : LLVMRealOLT, x, y, "");
    LLVMValueRef v;

    first = LLVMBuildOr(g->b, first, LLVMBuildFCmp(g->b, LLVMRealUNO, x, x, ""), "");
    v = LLVMBuildSelect(g->b, first, x, y, "");
    return LLVMBuildSelect(g->b, LLVMBuildFCmp(g->b, LLVMRealOEQ, x, y, ""),
                           LLVMBuildBitCast(g->b, both, t, ""), v, "");
}

/* NaN wins, and -0 < +0.  Against a constant one comparison does: it decides in favour of x when x
 * is NaN, and on equality in favour of the operand that is right for zeros. */
static LLVMValueRef float_minmax(Gen *g, bool max, const Prim *py, LLVMValueRef x, LLVMValueRef y)
{
    const Prim *k = constant_number(py);

    if (k && k->u.f != 0 && k->u.f == k->u.f) { /* as one minps or maxps takes it */
        LLVMRealPredicate p = max ? LLVMRealOLT : LLVMRealOGT;

        return LLVMBuildSelect(g->b, LLVMBuildFCmp(g->b, p, x, y, ""), y, x, "");
    }
    if (k) {
        bool keep = k->u.f == 0 && (signbit(k->u.f) != 0) == max; /* max(x, -0), min(x, +0) */
        LLVMRealPredicate p =
            max ? (keep ? LLVMRealUGE : LLVMRealUGT) : (keep ? LLVMRealULE : LLVMRealULT);

        return LLVMBuildSelect(g->b, LLVMBuildFCmp(g->b, p, x, y, ""), x, y, "");
    }
    /* LLVM narrows a rounded llvm.maximum of widened halves to one of halves, which x86 without
     * them gets wrong for NaN. */
    if (!has_floats(g, LLVMTypeOf(x)) || (LLVMIsAFPExtInst(x) && LLVMIsAFPExtInst(y)))
        return soft_minmax(g, max, x, y);
    return gen_call2(g, max ? "llvm.maximum" : "llvm.minimum", LLVMTypeOf(x), x, y);
}

/* y where it is beyond x, else x, NaN included: one minps or maxps, of registers so wide. */
static LLVMValueRef beyond_or(Gen *g, bool max, LLVMValueRef x, LLVMValueRef y, uint32_t bytes)
{
    bool         wide = gen_elem_type(LLVMTypeOf(x)) == g->f64;
    const char  *what = arena_printf(g->a, "%s.p%c", max ? "max" : "min", wide ? 'd' : 's');
    LLVMValueRef args[3] = {y, x, gen_i32(g, 4)}; /* rounding as the mode says */

    if (bytes == 64)
        return gen_intrinsic_of(g, arena_printf(g->a, "llvm.x86.avx512.%s.512", what), 0, NULL, 3,
                                args);
    if (bytes == 32)
        return gen_intrinsic_of(g, arena_printf(g->a, "llvm.x86.avx.%s.256", what), 0, NULL, 2,
                                args);
    return gen_intrinsic_of(g, arena_printf(g->a, "llvm.x86.sse%s.%s", wide ? "2" : "", what), 0,
                            NULL, 2, args);
}

/* `all` with the lanes of `piece` from lane `lane` on. */
static LLVMValueRef with_piece(Gen *g, LLVMValueRef all, LLVMValueRef piece, uint32_t lane)
{
    uint32_t      n = LLVMGetVectorSize(LLVMTypeOf(all));
    uint32_t      have = LLVMGetVectorSize(LLVMTypeOf(piece));
    LLVMValueRef *pick = NEW_ARRAY(g->a, LLVMValueRef, n);

    for (uint32_t i = 0; i < n; i++)
        pick[i] = gen_i32(g, i >= lane && i < lane + have ? n + i - lane : i);
    return LLVMBuildShuffleVector(g->b, all, gen_lanes_of(g, piece, 0, 1, n),
                                  LLVMConstVector(pick, n), "");
}

/* The same of any vector: in pieces as wide as registers, the last one filled up. */
static LLVMValueRef beyond_or_pieces(Gen *g, bool max, LLVMValueRef x, LLVMValueRef y)
{
    uint32_t     n = LLVMGetVectorSize(LLVMTypeOf(x));
    uint32_t     size = gen_elem_type(LLVMTypeOf(x)) == g->f64 ? 8 : 4;
    uint32_t     most = g->caps & CAP_AVX512 ? 64 : g->caps & CAP_AVX ? 32 : 16, lanes;
    LLVMValueRef all = NULL;

    while (most > 16 && most / 2 >= n * size)
        most /= 2;
    lanes = most / size;
    if (n == lanes)
        return beyond_or(g, max, x, y, most);
    for (uint32_t i = 0; i < n; i += lanes) {
        LLVMValueRef piece = beyond_or(g, max, gen_lanes_of(g, x, i, 1, lanes),
                                       gen_lanes_of(g, y, i, 1, lanes), most);

        all = all ? with_piece(g, all, piece, i) : gen_lanes_of(g, piece, 0, 1, n);
    }
    return all;
}

/* The next step of a reduction: x stays unless y is beyond it or NaN.  Three operations on x86,
 * where llvm.maximum takes six, each waiting for the last; it need not tell zeros apart.  As two
 * selects LLVM would make four of it, of which three wait. */
static LLVMValueRef float_extremum(Gen *g, bool max, LLVMValueRef x, LLVMValueRef y)
{
    LLVMValueRef nan = LLVMBuildFCmp(g->b, LLVMRealUNO, y, y, "");

    return LLVMBuildSelect(g->b, nan, y, beyond_or_pieces(g, max, x, y), "");
}

/* ... of one number, in a vector whose other lanes are anything. */
static LLVMValueRef number_extremum(Gen *g, bool max, LLVMValueRef x, LLVMValueRef y)
{
    uint32_t     lanes = LLVMTypeOf(x) == g->f64 ? 2 : 4;
    LLVMValueRef any = LLVMGetPoison(LLVMVectorType(LLVMTypeOf(x), lanes)), zero = gen_i32(g, 0);

    x = LLVMBuildInsertElement(g->b, any, x, zero, "");
    y = LLVMBuildInsertElement(g->b, any, y, zero, "");
    return LLVMBuildExtractElement(g->b, float_extremum(g, max, x, y), zero, "");
}

/* Number of the other wins over NaN: y if y is beyond x or x is NaN, else x. */
static LLVMValueRef float_minmaxnum(Gen *g, bool max, const Prim *px, LLVMValueRef x,
                                    LLVMValueRef y)
{
    LLVMValueRef beyond = LLVMBuildFCmp(g->b, max ? LLVMRealOGT : LLVMRealOLT, y, x, "");

    if (constant_number(px))
        return LLVMBuildSelect(g->b, beyond, y, x, "");
    LLVMValueRef nan = LLVMBuildFCmp(g->b, LLVMRealUNO, x, x, "");

    return LLVMBuildSelect(g->b, LLVMBuildOr(g->b, beyond, nan, ""), y, x, "");
}

/* Operands are f32 or f64. */
static LLVMValueRef float_bin(Gen *g, const Prim *p, DType t, LLVMValueRef x, LLVMValueRef y)
{
    LLVMValueRef pair[2] = {x, y};

    switch (p->kind) {
    case PRIM_ADD: return fast(g, LLVMBuildFAdd(g->b, x, y, ""));
    case PRIM_SUB: return fast(g, LLVMBuildFSub(g->b, x, y, ""));
    case PRIM_MUL: return fast(g, LLVMBuildFMul(g->b, x, y, ""));
    case PRIM_DIV: return fast(g, LLVMBuildFDiv(g->b, x, y, ""));
    case PRIM_REM: return libm_call(g, "fmod", t, 2, pair);
    case PRIM_MIN:
    case PRIM_MAX:
        if (p == g->step && g->arch == ARCH_X86)
            return gen_is_vector(LLVMTypeOf(x)) ? float_extremum(g, p->kind == PRIM_MAX, x, y)
                                                : number_extremum(g, p->kind == PRIM_MAX, x, y);
        if (constant_number(p->kids[0]))
            return float_minmax(g, p->kind == PRIM_MAX, p->kids[0], y, x);
        return float_minmax(g, p->kind == PRIM_MAX, p->kids[1], x, y);
    case PRIM_MINNUM: return float_minmaxnum(g, false, p->kids[0], x, y);
    case PRIM_MAXNUM: return float_minmaxnum(g, true, p->kids[0], x, y);
    case PRIM_EQ: return LLVMBuildFCmp(g->b, LLVMRealOEQ, x, y, "");
    case PRIM_NE: return LLVMBuildFCmp(g->b, LLVMRealUNE, x, y, "");
    case PRIM_LT: return LLVMBuildFCmp(g->b, LLVMRealOLT, x, y, "");
    case PRIM_LE: return LLVMBuildFCmp(g->b, LLVMRealOLE, x, y, "");
    case PRIM_INT:
    case PRIM_FLOAT:
    case PRIM_INDEX:
    case PRIM_LOAD:
    case PRIM_FMA:
    case PRIM_INTRIN:
    case PRIM_AND:
    case PRIM_OR:
    case PRIM_XOR:
    case PRIM_SHL:
    case PRIM_SHR:
    case PRIM_NOT:
    case PRIM_SELECT:
    case PRIM_CAST:
    case PRIM_BITS:
    case PRIM_ADDR:
    case PRIM_SYMBOL:
    case PRIM_SIZEOF:
    case PRIM_MATH:
    case PRIM_CASE:
    case PRIM_SPLAT:
    case PRIM_RAMP:
    case PRIM_VEC:
    case PRIM_SHUFFLE:
        BUG("in @%s, kind %d is not a binary operation of floats", g->name, (int)p->kind);
    }
}

/* min and max of halves: compared in f32, but one of the operands as it is. */
static LLVMValueRef half_minmax(Gen *g, bool max, DType t, LLVMValueRef x, LLVMValueRef y)
{
    LLVMValueRef wx = gen_widen(g, x, t), wy = gen_widen(g, y, t), first, equal, both;

    first = LLVMBuildFCmp(g->b, max ? LLVMRealOGT : LLVMRealOLT, wx, wy, "");
    first = LLVMBuildOr(g->b, first, LLVMBuildFCmp(g->b, LLVMRealUNO, wx, wx, ""), "");
    equal = LLVMBuildFCmp(g->b, LLVMRealOEQ, wx, wy, "");
    both = max ? LLVMBuildAnd(g->b, x, y, "") : LLVMBuildOr(g->b, x, y, "");
    return LLVMBuildSelect(g->b, equal, both, LLVMBuildSelect(g->b, first, x, y, ""), "");
}

LLVMValueRef gen_bin(Gen *g, const Prim *p)
{
    DType        t = p->kids[0]->dtype;
    LLVMValueRef x = gen_prim(g, p->kids[0]), y = gen_prim(g, p->kids[1]), v;

    if (!dtype_is_float(t))
        return int_bin(g, p->kind, t, x, y);
    if (dtype_is_half(t) && (p->kind == PRIM_MIN || p->kind == PRIM_MAX))
        return half_minmax(g, p->kind == PRIM_MAX, t, x, y);
    v = float_bin(g, p, t, gen_widen(g, x, t), gen_widen(g, y, t));
    return dtype_is_bool(p->dtype) ? v : gen_round_half(g, v, t);
}

/* An x86 multiply-add overwrites one of its operands.  Of those that nobody needs again LLVM takes
 * the latest: a number that was just spread, so that the sum wanders from register to register, and
 * with 16 of them some are spilled (tiles of 12x1 and 14x1 took 1.4 to 1.9 times as long, Zen 5).
 * A fence, which is no instruction, makes the sum the latest.  With 32 registers there is room to
 * wander, and DenseNet's products took 1.04 of the time behind fences. */
static LLVMValueRef stay_in_place(Gen *g, const Prim *p, LLVMValueRef sum)
{
    DType t = p->dtype;
    bool  overwrites = g->arch == ARCH_X86 && g->caps & CAP_FMA && !(g->caps & CAP_AVX512);

    if (p != g->step || !overwrites || !dtype_is_float(t) || dtype_is_half(t) || t.lanes == 1)
        return sum;
    return gen_intrinsic(g, "llvm.arithmetic.fence", LLVMTypeOf(sum), 1, &sum);
}

LLVMValueRef gen_fma(Gen *g, const Prim *p)
{
    DType        t = p->dtype;
    LLVMValueRef x[3];

    for (int i = 0; i < 3; i++)
        x[i] = gen_widen(g, gen_prim(g, p->kids[i]), t);
    x[2] = stay_in_place(g, p, x[2]);
    if (!dtype_is_float(t))
        return LLVMBuildAdd(g->b, LLVMBuildMul(g->b, x[0], x[1], ""), x[2], "");
    return gen_round_half(g,
                          fast(g, gen_intrinsic(g, g->caps & CAP_FMA ? "llvm.fma" : "llvm.fmuladd",
                                                LLVMTypeOf(x[0]), 3, x)),
                          t);
}

/* LLVM makes no call of it.  The others are not single instructions anywhere. */
static bool has_instruction(Gen *g, MathFn fn, LLVMTypeRef t)
{
    switch ((int)fn) {
    case MATH_ABS:
    case MATH_COPYSIGN: return true;
    case MATH_SQRT: return has_floats(g, t);
    case MATH_FLOOR:
    case MATH_CEIL:
    case MATH_TRUNC:
    case MATH_ROUND: return has_floats(g, t) && g->t->has_round;
    }
    return false;
}

LLVMValueRef gen_math(Gen *g, const Prim *p)
{
    static const struct {
        const char *intrinsic, *libm;
    } rows[MATH_COUNT] = {
#define MATH(id, intrinsic, libm) [MATH_##id] = {intrinsic, libm},
#include "backends/llvm/math.def"
#undef MATH
    };
    DType        t = p->dtype;
    MathFn       fn = p->u.math;
    LLVMValueRef x[2], v, one;

    for (uint32_t i = 0; i < p->nkids && i < 2; i++)
        x[i] = gen_prim(g, p->kids[i]);
    if (!dtype_is_float(t)) {
        if (fn != MATH_ABS)
            BUG("in @%s, function %d of an integer", g->name, (int)fn);
        if (t.code != DT_INT)
            return x[0];
        return gen_call2(g, "llvm.abs", LLVMTypeOf(x[0]), x[0], LLVMConstInt(g->i1, 0, false));
    }
    if (dtype_is_half(t) && fn == MATH_ABS)
        return LLVMBuildAnd(g->b, x[0], gen_splat_int(LLVMTypeOf(x[0]), 0x7fff), "");
    for (uint32_t i = 0; i < p->nkids && i < 2; i++)
        x[i] = gen_widen(g, x[i], t);
    if (fn == MATH_SIGMOID) {
        one = gen_splat_float(g, LLVMTypeOf(x[0]), 1.0);
        x[0] = LLVMBuildFNeg(g->b, x[0], "");
        v = LLVMBuildFAdd(g->b, one, libm_call(g, "exp", t, 1, x), "");
        v = LLVMBuildFDiv(g->b, one, v, "");
    } else if (g->t->no_libm && !has_instruction(g, fn, LLVMTypeOf(x[0])))
        v = no_libm(g, rows[fn].libm, t, x[0]);
    else if (*rows[fn].intrinsic)
        v = gen_intrinsic(g, rows[fn].intrinsic, LLVMTypeOf(x[0]), p->nkids, x);
    else
        v = libm_call(g, rows[fn].libm, t, p->nkids, x);
    return gen_round_half(g, v, t);
}
