/* f16 and bf16, which are i16 between operations: each operation goes through f32 and rounds, with
 * the conversion instructions of the target or, where it has none, in integer arithmetic, as LLVM
 * would otherwise call functions of its own run-time library.  Beside them, constants and calls on
 * values that may be vectors. */
#include "backends/llvm/llvm.h"

#include <string.h>

/* ---- helpers on values that may be vectors -------------------------------------------------------- */

bool gen_is_vector(LLVMTypeRef t)
{
    return LLVMGetTypeKind(t) == LLVMVectorTypeKind;
}

LLVMTypeRef gen_with_lanes_of(LLVMTypeRef elem, LLVMTypeRef like)
{
    return gen_is_vector(like) ? LLVMVectorType(elem, LLVMGetVectorSize(like)) : elem;
}

LLVMTypeRef gen_elem_type(LLVMTypeRef t)
{
    return gen_is_vector(t) ? LLVMGetElementType(t) : t;
}

/* A constant of type t (perhaps a vector) with every lane the bits v. */
LLVMValueRef gen_splat_int(LLVMTypeRef t, uint64_t v)
{
    LLVMValueRef k = LLVMConstInt(gen_elem_type(t), v, true), at[64];
    unsigned     n;

    if (!gen_is_vector(t))
        return k;
    n = LLVMGetVectorSize(t);
    if (n > 64)
        BUG("a vector of %u lanes", n);
    for (unsigned i = 0; i < n; i++)
        at[i] = k;
    return LLVMConstVector(at, n);
}

LLVMValueRef gen_splat_float(Gen *g, LLVMTypeRef t, double v)
{
    uint64_t    bits = 0;
    LLVMTypeRef it;

    if (gen_elem_type(t) == g->f32) {
        float f = (float)v;

        memcpy(&bits, &f, sizeof f);
        it = g->i32;
    } else {
        memcpy(&bits, &v, sizeof v);
        it = g->i64;
    }
    return LLVMConstBitCast(gen_splat_int(gen_with_lanes_of(it, t), bits), t);
}

LLVMValueRef gen_call1(Gen *g, const char *name, LLVMTypeRef t, LLVMValueRef a)
{
    return gen_intrinsic(g, name, t, 1, &a);
}

LLVMValueRef gen_call2(Gen *g, const char *name, LLVMTypeRef t, LLVMValueRef a, LLVMValueRef b)
{
    LLVMValueRef args[2] = {a, b};

    return gen_intrinsic(g, name, t, 2, args);
}

/* ---- f16 and bf16 ------------------------------------------------------------------------------------- */

/* f16 bits in i32 lanes to f32: the exponent is moved by a multiplication, exact for subnormals
 * too; infinities and NaNs get the exponent all ones again. */
static LLVMValueRef soft_f16_to_f32(Gen *g, LLVMValueRef h, LLVMTypeRef i32t)
{
    LLVMTypeRef  f32t = gen_with_lanes_of(g->f32, i32t);
    LLVMValueRef mag = LLVMBuildAnd(g->b, h, gen_splat_int(i32t, 0x7fff), ""), sign, v, top;

    sign = LLVMBuildShl(g->b, LLVMBuildAnd(g->b, h, gen_splat_int(i32t, 0x8000), ""),
                        gen_splat_int(i32t, 16), "");
    v = LLVMBuildBitCast(g->b, LLVMBuildShl(g->b, mag, gen_splat_int(i32t, 13), ""), f32t, "");
    v = LLVMBuildFMul(g->b, v, gen_splat_float(g, f32t, 0x1p112), "");
    v = LLVMBuildBitCast(g->b, v, i32t, "");
    top = LLVMBuildICmp(g->b, LLVMIntUGE, mag, gen_splat_int(i32t, 0x7c00), "");
    top = LLVMBuildSelect(g->b, top, gen_splat_int(i32t, 0x7f800000), gen_splat_int(i32t, 0), "");
    v = LLVMBuildOr(g->b, LLVMBuildOr(g->b, v, top, ""), sign, "");
    return LLVMBuildBitCast(g->b, v, f32t, "");
}

/* To nearest even.  A normal result: shift the exponent down and round by adding; a subnormal one:
 * add 2^(-14-10+23-1) = 0.5, whose unit in the last place is that of f16's subnormals. */
static LLVMValueRef soft_f32_to_f16(Gen *g, LLVMValueRef f, LLVMTypeRef i32t)
{
    LLVMTypeRef  f32t = gen_with_lanes_of(g->f32, i32t);
    LLVMValueRef bits = LLVMBuildBitCast(g->b, f, i32t, ""), mag, sign, odd, normal, small, nan, v;

    mag = LLVMBuildAnd(g->b, bits, gen_splat_int(i32t, 0x7fffffff), "");
    sign = LLVMBuildAnd(g->b, LLVMBuildLShr(g->b, bits, gen_splat_int(i32t, 16), ""),
                        gen_splat_int(i32t, 0x8000), "");
    odd = LLVMBuildAnd(g->b, LLVMBuildLShr(g->b, mag, gen_splat_int(i32t, 13), ""),
                       gen_splat_int(i32t, 1), "");
    normal = LLVMBuildAdd(g->b, mag, gen_splat_int(i32t, (uint64_t)(0xfffu - (112u << 23))), "");
    normal = LLVMBuildLShr(g->b, LLVMBuildAdd(g->b, normal, odd, ""), gen_splat_int(i32t, 13), "");
    small = LLVMBuildFAdd(g->b, LLVMBuildBitCast(g->b, mag, f32t, ""),
                          gen_splat_float(g, f32t, 0.5), "");
    small = LLVMBuildSub(g->b, LLVMBuildBitCast(g->b, small, i32t, ""),
                         gen_splat_int(i32t, 0x3f000000), "");
    v = LLVMBuildSelect(g->b,
                        LLVMBuildICmp(g->b, LLVMIntULT, mag, gen_splat_int(i32t, 113u << 23), ""),
                        small, normal, "");
    /* 65520 and above: infinity */
    v = LLVMBuildSelect(g->b,
                        LLVMBuildICmp(g->b, LLVMIntUGE, mag, gen_splat_int(i32t, 0x477ff000), ""),
                        gen_splat_int(i32t, 0x7c00), v, "");
    nan = LLVMBuildAnd(g->b, LLVMBuildLShr(g->b, mag, gen_splat_int(i32t, 13), ""),
                       gen_splat_int(i32t, 0x3ff), "");
    nan = LLVMBuildOr(g->b, nan, gen_splat_int(i32t, 0x7e00), "");
    v = LLVMBuildSelect(g->b,
                        LLVMBuildICmp(g->b, LLVMIntUGT, mag, gen_splat_int(i32t, 0x7f800000), ""),
                        nan, v, "");
    return LLVMBuildOr(g->b, v, sign, "");
}

static LLVMValueRef f32_to_bf16(Gen *g, LLVMValueRef f, LLVMTypeRef i32t)
{
    LLVMValueRef bits = LLVMBuildBitCast(g->b, f, i32t, ""), odd, v, nan, is_nan;

    odd = LLVMBuildAnd(g->b, LLVMBuildLShr(g->b, bits, gen_splat_int(i32t, 16), ""),
                       gen_splat_int(i32t, 1), "");
    v = LLVMBuildAdd(g->b, LLVMBuildAdd(g->b, bits, gen_splat_int(i32t, 0x7fff), ""), odd, "");
    v = LLVMBuildLShr(g->b, v, gen_splat_int(i32t, 16), "");
    nan = LLVMBuildLShr(g->b, bits, gen_splat_int(i32t, 16), "");
    nan = LLVMBuildOr(g->b, nan, gen_splat_int(i32t, 0x40), "");
    is_nan = LLVMBuildFCmp(g->b, LLVMRealUNO, f, f, "");
    return LLVMBuildSelect(g->b, is_nan, nan, v, "");
}

/* The value of a half (as i16) in f32. */
LLVMValueRef gen_widen(Gen *g, LLVMValueRef v, DType t)
{
    LLVMTypeRef i32t = gen_with_lanes_of(g->i32, LLVMTypeOf(v));
    LLVMTypeRef f32t = gen_with_lanes_of(g->f32, LLVMTypeOf(v));

    if (!dtype_is_half(t))
        return v;
    if (t.code == DT_FLOAT && (g->caps & CAP_F16C)) {
        LLVMTypeRef half = gen_with_lanes_of(LLVMHalfTypeInContext(g->lc), LLVMTypeOf(v));

        return LLVMBuildFPExt(g->b, LLVMBuildBitCast(g->b, v, half, ""), f32t, "");
    }
    v = LLVMBuildZExt(g->b, v, i32t, "");
    if (t.code == DT_FLOAT)
        return soft_f16_to_f32(g, v, i32t);
    return LLVMBuildBitCast(g->b, LLVMBuildShl(g->b, v, gen_splat_int(i32t, 16), ""), f32t, "");
}

/* f32 rounded to t, a half. */
LLVMValueRef gen_round_half(Gen *g, LLVMValueRef f, DType t)
{
    LLVMTypeRef i32t = gen_with_lanes_of(g->i32, LLVMTypeOf(f));
    LLVMTypeRef i16t = gen_with_lanes_of(g->i16, LLVMTypeOf(f));

    if (!dtype_is_half(t))
        return f;
    if (t.code == DT_FLOAT && (g->caps & CAP_F16C)) {
        LLVMTypeRef half = gen_with_lanes_of(LLVMHalfTypeInContext(g->lc), LLVMTypeOf(f));

        return LLVMBuildBitCast(g->b, LLVMBuildFPTrunc(g->b, f, half, ""), i16t, "");
    }
    f = t.code == DT_FLOAT ? soft_f32_to_f16(g, f, i32t) : f32_to_bf16(g, f, i32t);
    return LLVMBuildTrunc(g->b, f, i16t, "");
}

/* f64 to f32 rounding to odd: a second rounding to a half then gives what one would have given. */
LLVMValueRef gen_odd_f32(Gen *g, LLVMValueRef d)
{
    LLVMTypeRef  f32t = gen_with_lanes_of(g->f32, LLVMTypeOf(d));
    LLVMTypeRef  i32t = gen_with_lanes_of(g->i32, LLVMTypeOf(d)), f64t = LLVMTypeOf(d);
    LLVMValueRef f = LLVMBuildFPTrunc(g->b, d, f32t, ""), back = LLVMBuildFPExt(g->b, f, f64t, "");
    LLVMValueRef inexact = LLVMBuildFCmp(g->b, LLVMRealONE, back, d, "");
    LLVMValueRef above = LLVMBuildFCmp(g->b, LLVMRealOGT, gen_call1(g, "llvm.fabs", f64t, back),
                                       gen_call1(g, "llvm.fabs", f64t, d), "");
    LLVMValueRef bits = LLVMBuildBitCast(g->b, f, i32t, "");

    bits = LLVMBuildSub(g->b, bits, LLVMBuildZExt(g->b, above, i32t, ""), "");
    bits = LLVMBuildOr(g->b, bits, LLVMBuildZExt(g->b, inexact, i32t, ""), "");
    return LLVMBuildBitCast(g->b, bits, f32t, "");
}
