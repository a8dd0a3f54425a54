/* Expressions to LLVM IR, with the arithmetic of ir/scalar.h to the bit.
 *
 * Within one statement an interned prim is computed once.  The arms of a select whose loads are not
 * known to be legal become branches (scalar condition) or loads under a mask (a condition per
 * lane). f16 and bf16 are i16 between operations; each operation goes through f32 and rounds, with
 * the conversion instructions of the target or, where it has none, in integer arithmetic, as LLVM
 * would otherwise call functions of its own run-time library. */
#include "backends/llvm/llvm.h"

#include <math.h>
#include <string.h>

enum { KEY_PRIM = 4 };
#define KEY(p) ((uint64_t)KEY_PRIM << 60 | (p)->id)

/* The flags of -ffast-math on an instruction that can carry them. */
static LLVMValueRef fast(Gen *g, LLVMValueRef v)
{
    if (g->t->fast_math && LLVMIsAInstruction(v) && LLVMCanValueUseFastMathFlags(v))
        LLVMSetFastMathFlags(v, LLVMFastMathAllowReassoc | LLVMFastMathNoSignedZeros |
                                    LLVMFastMathAllowReciprocal | LLVMFastMathAllowContract);
    return v;
}
/* ---- select and case --------------------------------------------------------------------------------------- */

static bool idx_reads(Gen *g, const Idx *x, Map *seen);

/* Computing p now could read memory that only this arm may read. */
static bool reads(Gen *g, const Prim *p, Map *seen)
{
    void *known;

    if (memo_get(&g->stmt, KEY(p)))
        return false;
    if (map_find(seen, p->id, &known))
        return known != NULL;
    map_put(seen, p->id, NULL);
    if (p->kind == PRIM_LOAD && p->u.load.buffer->scope != SCOPE_REG)
        goto yes;
    if (p->kind == PRIM_LOAD)
        for (uint32_t i = 0; i < p->u.load.n; i++)
            if (idx_reads(g, p->u.load.index[i], seen))
                goto yes;
    if (p->kind == PRIM_INDEX || p->kind == PRIM_RAMP || p->kind == PRIM_CASE)
        if (idx_reads(g, p->u.index, seen))
            goto yes;
    for (uint32_t i = 0; i < p->nkids; i++)
        if (reads(g, p->kids[i], seen))
            goto yes;
    return false;
yes:
    map_put(seen, p->id, seen);
    return true;
}

static bool idx_reads(Gen *g, const Idx *x, Map *seen)
{
    for (uint32_t i = 0; x && i < x->nterms; i++) {
        const Atom *a = x->t[i].atom;

        if (a->kind == ATOM_LOAD && reads(g, a->load, seen))
            return true;
        if (idx_reads(g, a->a, seen) || idx_reads(g, a->b, seen))
            return true;
    }
    return false;
}

bool gen_reads(Gen *g, const Prim *p)
{
    return reads(g, p, map_new(g->a));
}

bool gen_known(Gen *g, const Prim *p)
{
    return p->kind == PRIM_INT || p->kind == PRIM_FLOAT || memo_get(&g->stmt, KEY(p));
}

/* One arm in a block of its own, which then goes to `done`. */
static LLVMValueRef gen_arm(Gen *g, const Prim *p, LLVMBasicBlockRef at, LLVMBasicBlockRef done,
                            LLVMBasicBlockRef *end)
{
    GenMark      mark = gen_mark(g);
    LLVMValueRef v;

    LLVMPositionBuilderAtEnd(g->b, at);
    v = gen_prim(g, p);
    gen_drop(g, mark);
    *end = LLVMGetInsertBlock(g->b);
    LLVMBuildBr(g->b, done);
    return v;
}

static LLVMValueRef masked_arm(Gen *g, const Prim *p, LLVMValueRef on)
{
    LLVMValueRef outer = g->mask, v;
    GenMark      mark = gen_mark(g);

    g->mask = outer ? LLVMBuildAnd(g->b, outer, on, "") : on;
    v = gen_prim(g, p);
    g->mask = outer;
    gen_drop(g, mark);
    return v;
}

static LLVMValueRef gen_select(Gen *g, const Prim *p)
{
    LLVMValueRef      cond = gen_prim(g, p->kids[0]), v[2], phi;
    Map              *seen = map_new(g->a);
    LLVMBasicBlockRef bb[2], end[2], done;

    if (!reads(g, p->kids[1], seen) && !reads(g, p->kids[2], seen)) {
        v[0] = gen_prim(g, p->kids[1]);
        v[1] = gen_prim(g, p->kids[2]);
        return LLVMBuildSelect(g->b, cond, v[0], v[1], "");
    }
    if (gen_is_vector(LLVMTypeOf(cond))) {
        v[0] = masked_arm(g, p->kids[1], cond);
        v[1] = masked_arm(g, p->kids[2], LLVMBuildNot(g->b, cond, ""));
        return LLVMBuildSelect(g->b, cond, v[0], v[1], "");
    }
    bb[0] = gen_bb(g, "true");
    bb[1] = gen_bb(g, "false");
    done = gen_bb(g, "chosen");
    LLVMBuildCondBr(g->b, cond, bb[0], bb[1]);
    for (int i = 0; i < 2; i++)
        v[i] = gen_arm(g, p->kids[1 + i], bb[i], done, &end[i]);
    LLVMPositionBuilderAtEnd(g->b, done);
    phi = LLVMBuildPhi(g->b, LLVMTypeOf(v[0]), "");
    LLVMAddIncoming(phi, v, end, 2);
    return phi;
}

static LLVMValueRef gen_case(Gen *g, const Prim *p)
{
    LLVMValueRef       which = gen_idx(g, p->u.index), sw, phi;
    uint32_t           n = p->nkids;
    LLVMValueRef      *v = NEW_ARRAY(g->a, LLVMValueRef, n);
    LLVMBasicBlockRef *bb = NEW_ARRAY(g->a, LLVMBasicBlockRef, n);
    LLVMBasicBlockRef *end = NEW_ARRAY(g->a, LLVMBasicBlockRef, n), done;

    if (LLVMIsConstant(which)) {
        long long k = LLVMConstIntGetSExtValue(which);

        return gen_prim(g, p->kids[k >= 0 && k < n ? k : n - 1]);
    }
    for (uint32_t i = 0; i < n; i++)
        bb[i] = gen_bb(g, "arm");
    done = gen_bb(g, "chosen");
    sw = LLVMBuildSwitch(g->b, which, bb[n - 1], n - 1);
    for (uint32_t i = 0; i + 1 < n; i++)
        LLVMAddCase(sw, gen_int(g, LLVMTypeOf(which), i), bb[i]);
    for (uint32_t i = 0; i < n; i++)
        v[i] = gen_arm(g, p->kids[i], bb[i], done, &end[i]);
    LLVMPositionBuilderAtEnd(g->b, done);
    phi = LLVMBuildPhi(g->b, LLVMTypeOf(v[0]), "");
    LLVMAddIncoming(phi, v, end, n);
    return phi;
}

/* ---- arithmetic ------------------------------------------------------------------------------------------------ */

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

/* The next step of a reduction: x stays unless y is beyond it or NaN.  Three operations on x86,
 * where llvm.maximum takes six, each waiting for the last; it need not tell zeros apart. */
static LLVMValueRef float_extremum(Gen *g, bool max, LLVMValueRef x, LLVMValueRef y)
{
    LLVMValueRef beyond = LLVMBuildFCmp(g->b, max ? LLVMRealOGT : LLVMRealOLT, y, x, "");
    LLVMValueRef nan = LLVMBuildFCmp(g->b, LLVMRealUNO, y, y, "");

    return LLVMBuildSelect(g->b, nan, y, LLVMBuildSelect(g->b, beyond, y, x, ""), "");
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
        if (p == g->step && g->arch == ARCH_X86 && gen_is_vector(LLVMTypeOf(x)))
            return float_extremum(g, p->kind == PRIM_MAX, x, y);
        if (constant_number(p->kids[0]))
            return float_minmax(g, p->kind == PRIM_MAX, p->kids[0], y, x);
        return float_minmax(g, p->kind == PRIM_MAX, p->kids[1], x, y);
    case PRIM_MINNUM: return float_minmaxnum(g, false, p->kids[0], x, y);
    case PRIM_MAXNUM: return float_minmaxnum(g, true, p->kids[0], x, y);
    case PRIM_EQ: return LLVMBuildFCmp(g->b, LLVMRealOEQ, x, y, "");
    case PRIM_NE: return LLVMBuildFCmp(g->b, LLVMRealUNE, x, y, "");
    case PRIM_LT: return LLVMBuildFCmp(g->b, LLVMRealOLT, x, y, "");
    case PRIM_LE: return LLVMBuildFCmp(g->b, LLVMRealOLE, x, y, "");
    default: BUG("in @%s, kind %d is not a binary operation of floats", g->name, (int)p->kind);
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

static LLVMValueRef gen_bin(Gen *g, const Prim *p)
{
    DType        t = p->kids[0]->dtype;
    LLVMValueRef x = gen_prim(g, p->kids[0]), y = gen_prim(g, p->kids[1]), v;

    if (!dtype_is_float(t))
        return int_bin(g, p->kind, t, x, y);
    if (gen_is_half(t) && (p->kind == PRIM_MIN || p->kind == PRIM_MAX))
        return half_minmax(g, p->kind == PRIM_MAX, t, x, y);
    v = float_bin(g, p, t, gen_widen(g, x, t), gen_widen(g, y, t));
    return dtype_is_bool(p->dtype) ? v : gen_round_half(g, v, t);
}

static LLVMValueRef gen_fma(Gen *g, const Prim *p)
{
    DType        t = p->dtype;
    LLVMValueRef x[3];

    for (int i = 0; i < 3; i++)
        x[i] = gen_widen(g, gen_prim(g, p->kids[i]), t);
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

static LLVMValueRef gen_math(Gen *g, const Prim *p)
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
    if (gen_is_half(t) && fn == MATH_ABS)
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

/* ---- conversions --------------------------------------------------------------------------------------------------- */

/* Vectors of f32 on x86, for which LLVM converts lane by lane: the range is cut first.  2^31 is not
 * an i32, so it is put in afterwards; NaN fails both comparisons. */
static LLVMValueRef vector_to_int(Gen *g, LLVMValueRef v, DType to)
{
    bool         whole = to.bits == 32;
    LLVMTypeRef  t = LLVMTypeOf(v), i32 = gen_with_lanes_of(g->i32, t);
    double       span = ldexp(1, (int)to.bits), least = to.code == DT_INT ? -span / 2 : 0;
    double       most = least + span - (whole ? 0 : 1);
    LLVMValueRef lo = gen_splat_float(g, t, least), hi = gen_splat_float(g, t, most),
                 zero = LLVMConstNull(t), cut, r;

    cut = LLVMBuildSelect(g->b, LLVMBuildFCmp(g->b, LLVMRealOGT, v, lo, ""), v, lo, "");
    if (whole) {
        LLVMValueRef fits = LLVMBuildFCmp(g->b, LLVMRealOLT, v, hi, "");
        LLVMValueRef over = LLVMBuildFCmp(g->b, LLVMRealOGE, v, hi, "");

        r = LLVMBuildFPToSI(g->b, LLVMBuildSelect(g->b, fits, cut, zero, ""), i32, "");
        return LLVMBuildSelect(g->b, over, gen_splat_int(i32, INT32_MAX), r, "");
    }
    cut = LLVMBuildSelect(g->b, LLVMBuildFCmp(g->b, LLVMRealOLT, v, hi, ""), cut, hi, "");
    cut = LLVMBuildSelect(g->b, LLVMBuildFCmp(g->b, LLVMRealUNO, v, v, ""), zero, cut, "");
    r = LLVMBuildFPToSI(g->b, cut, i32, "");
    return LLVMBuildTrunc(g->b, r, gen_type(g, to), "");
}

static LLVMValueRef float_to_int(Gen *g, LLVMValueRef v, DType to)
{
    if (g->arch == ARCH_X86 && gen_is_vector(LLVMTypeOf(v)) &&
        gen_elem_type(LLVMTypeOf(v)) == g->f32 &&
        (to.bits <= 16 || (to.bits == 32 && to.code == DT_INT)))
        return vector_to_int(g, v, to);
    LLVMTypeRef over[2] = {gen_type(g, to), LLVMTypeOf(v)};
    const char *name = to.code == DT_INT ? "llvm.fptosi.sat" : "llvm.fptoui.sat";

    return gen_intrinsic_of(g, name, 2, over, 1, &v);
}

static LLVMValueRef gen_cast(Gen *g, const Prim *p)
{
    DType        to = p->dtype, from = p->kids[0]->dtype;
    LLVMValueRef v = gen_prim(g, p->kids[0]);
    LLVMTypeRef  t = gen_type(g, to), f32t = gen_with_lanes_of(g->f32, t);

    if (dtype_eq(to, from))
        return v;
    if (dtype_is_handle(from))
        return LLVMBuildPtrToInt(g->b, v, t, "");
    if (dtype_is_float(from)) {
        if (gen_is_half(to) && from.bits == 64)
            return gen_round_half(g, gen_odd_f32(g, v), to);
        v = gen_widen(g, v, from);
        if (dtype_is_bool(to))
            return LLVMBuildFCmp(g->b, LLVMRealUNE, v, LLVMConstNull(LLVMTypeOf(v)), "");
        if (!dtype_is_float(to))
            return float_to_int(g, v, to);
        if (gen_is_half(to))
            return gen_round_half(g, v, to);
        return LLVMTypeOf(v) == t ? v : LLVMBuildFPCast(g->b, v, t, "");
    }
    if (dtype_is_float(to)) {
        LLVMTypeRef ft = gen_is_half(to) ? f32t : t;

        v = from.code == DT_INT ? LLVMBuildSIToFP(g->b, v, ft, "")
                                : LLVMBuildUIToFP(g->b, v, ft, "");
        return gen_round_half(g, v, to);
    }
    if (dtype_is_bool(to))
        return LLVMBuildICmp(g->b, LLVMIntNE, v, LLVMConstNull(LLVMTypeOf(v)), "");
    return LLVMBuildIntCast2(g->b, v, t, from.code == DT_INT, "");
}

static LLVMValueRef gen_bits_of(Gen *g, const Prim *p)
{
    DType        to = p->dtype, from = p->kids[0]->dtype;
    LLVMValueRef v = gen_prim(g, p->kids[0]);

    if (dtype_is_bool(from))
        v = LLVMBuildZExt(g->b, v, gen_mem_type(g, from), "");
    v = LLVMBuildBitCast(g->b, v, gen_mem_type(g, to), "");
    return gen_from_memory(g, v, to);
}

/* ---- leaves and vectors --------------------------------------------------------------------------------------------------- */

static LLVMValueRef gen_number(Gen *g, const Prim *p)
{
    LLVMTypeRef t = gen_type(g, p->dtype);
    uint64_t    cell = 0;
    DType       one = dtype_lanes(p->dtype, 1);

    if (dtype_is_handle(p->dtype))
        return LLVMConstNull(t);
    if (p->kind == PRIM_INT && !dtype_is_float(p->dtype))
        return gen_splat_int(t, dtype_is_bool(p->dtype) ? p->u.i != 0 : (uint64_t)p->u.i);
    if (!gen_is_half(p->dtype))
        return gen_splat_float(g, t, p->u.f);
    dtype_put_f(one, &cell, p->u.f);
    return gen_splat_int(t, cell & 0xffff);
}

/* An index in the integer type t; a float one is converted. */
static LLVMValueRef index_as(Gen *g, const Idx *x, DType t)
{
    LLVMValueRef v = gen_idx(g, x);

    t.lanes = 1;
    if (dtype_is_bool(t))
        return LLVMBuildICmp(g->b, LLVMIntNE, v, LLVMConstNull(LLVMTypeOf(v)), "");
    if (dtype_is_int(t))
        return LLVMBuildIntCast2(g->b, v, gen_type(g, t), true, "");
    return gen_round_half(g, LLVMBuildSIToFP(g->b, v, t.bits == 64 ? g->f64 : g->f32, ""), t);
}

static LLVMValueRef splat(Gen *g, LLVMValueRef v, uint16_t lanes)
{
    LLVMTypeRef  t = LLVMVectorType(LLVMTypeOf(v), lanes);
    LLVMValueRef poison = LLVMGetPoison(t);

    if (lanes == 1)
        return v;
    v = LLVMBuildInsertElement(g->b, poison, v, gen_i32(g, 0), "");
    return LLVMBuildShuffleVector(g->b, v, poison, LLVMConstNull(LLVMVectorType(g->i32, lanes)),
                                  "");
}

static LLVMValueRef gen_ramp(Gen *g, const Prim *p)
{
    LLVMTypeRef  t = gen_type(g, p->dtype), et = gen_elem_type(t);
    LLVMValueRef at[64];
    uint32_t     n = p->dtype.lanes;

    if (n > 64)
        BUG("in @%s, a vector of %u lanes", g->name, n);
    for (uint32_t i = 0; i < n; i++)
        at[i] = gen_int(g, et, i);
    return LLVMBuildAdd(g->b, splat(g, index_as(g, p->u.index, p->dtype), p->dtype.lanes),
                        LLVMConstVector(at, n), "");
}

static LLVMValueRef gen_vec(Gen *g, const Prim *p)
{
    LLVMValueRef v = gen_near(g, p);

    if (v)
        return v;
    v = LLVMGetPoison(gen_type(g, p->dtype));
    for (uint32_t i = 0; i < p->nkids; i++)
        v = LLVMBuildInsertElement(g->b, v, gen_prim(g, p->kids[i]), gen_i32(g, i), "");
    return v;
}

LLVMValueRef gen_prim(Gen *g, const Prim *p)
{
    LLVMValueRef v = memo_get(&g->stmt, KEY(p));

    if (v)
        return v;
    switch (p->kind) {
    case PRIM_INT:
    case PRIM_FLOAT: return gen_number(g, p);
    case PRIM_INDEX: v = splat(g, index_as(g, p->u.index, p->dtype), p->dtype.lanes); break;
    case PRIM_LOAD: v = gen_load(g, &p->u.load, p->dtype); break;
    case PRIM_ADDR:
    case PRIM_SYMBOL: v = gen_addr(g, p); break;
    case PRIM_SIZEOF: v = gen_i32(g, record_bytes(p->u.record, g->t->pointer_bits)); break;
    case PRIM_ADD:
    case PRIM_SUB:
    case PRIM_MUL:
    case PRIM_DIV:
    case PRIM_REM:
    case PRIM_MIN:
    case PRIM_MAX:
    case PRIM_MINNUM:
    case PRIM_MAXNUM:
    case PRIM_AND:
    case PRIM_OR:
    case PRIM_XOR:
    case PRIM_SHL:
    case PRIM_SHR:
    case PRIM_EQ:
    case PRIM_NE:
    case PRIM_LT:
    case PRIM_LE: v = gen_bin(g, p); break;
    case PRIM_FMA: v = gen_fma(g, p); break;
    case PRIM_INTRIN: v = gen_instruction(g, p); break;
    case PRIM_NOT: v = LLVMBuildNot(g->b, gen_prim(g, p->kids[0]), ""); break;
    case PRIM_SELECT: v = gen_select(g, p); break;
    case PRIM_CAST: v = gen_cast(g, p); break;
    case PRIM_BITS: v = gen_bits_of(g, p); break;
    case PRIM_MATH: v = gen_math(g, p); break;
    case PRIM_CASE: v = gen_case(g, p); break;
    case PRIM_SPLAT: v = splat(g, gen_prim(g, p->kids[0]), p->dtype.lanes); break;
    case PRIM_RAMP: v = gen_ramp(g, p); break;
    case PRIM_VEC: v = gen_vec(g, p); break;
    case PRIM_SHUFFLE: v = gen_shuffle(g, p); break;
    }
    memo_put(g, &g->stmt, KEY(p), v);
    return v;
}
