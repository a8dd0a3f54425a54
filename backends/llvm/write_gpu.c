/* Sums of four products of bytes on GPUs, by the rows of intrin.def: dp4a of NVIDIA's, v_dot4 of
 * AMD's.  A register is one word of each operand and one sum. */
#include "backends/llvm/llvm.h"

#include <string.h>

enum { SIGNS = 0x80808080, ONES = 0x01010101, HALF = 7 }; /* 2^7 */

static bool is_signed(const GenUnits *u, uint32_t operand)
{
    return u->row->operand[operand].dtype.code == DT_INT;
}

/* Operand i as a number, and a number as what is given back. */
static LLVMValueRef word(Gen *g, const GenUnits *u, uint32_t i)
{
    return LLVMBuildExtractElement(g->b, u->operand[i], gen_i32(g, 0), "");
}

static LLVMValueRef result(Gen *g, LLVMValueRef v)
{
    return LLVMBuildInsertElement(g->b, LLVMGetPoison(LLVMVectorType(g->i32, 1)), v, gen_i32(g, 0),
                                  "");
}

/* As text: LLVM 19 has no intrinsic of it. */
LLVMValueRef write_dp4a(Gen *g, const GenUnits *u)
{
    const char *text =
        arena_printf(g->a, "dp4a.%s.%s $0, $1, $2, $3;", is_signed(u, 0) ? "s32" : "u32",
                     is_signed(u, 1) ? "s32" : "u32");
    const char  *places = "=r,r,r,r";
    LLVMTypeRef  types[3] = {g->i32, g->i32, g->i32};
    LLVMTypeRef  type = LLVMFunctionType(g->i32, types, 3, false);
    LLVMValueRef args[3] = {word(g, u, 0), word(g, u, 1), word(g, u, 2)};
    LLVMValueRef fn = LLVMGetInlineAsm(type, text, strlen(text), places, strlen(places), false,
                                       false, LLVMInlineAsmDialectATT, false);

    return result(g, LLVMBuildCall2(g->b, type, fn, args, 3, ""));
}

static LLVMValueRef flag(Gen *g, bool on)
{
    return LLVMConstInt(LLVMInt1TypeInContext(g->lc), on, false);
}

LLVMValueRef write_sudot4(Gen *g, const GenUnits *u)
{
    LLVMValueRef args[6] = {flag(g, is_signed(u, 0)),
                            word(g, u, 0),
                            flag(g, is_signed(u, 1)),
                            word(g, u, 1),
                            word(g, u, 2),
                            flag(g, false)};

    return result(g, gen_intrinsic_of(g, "llvm.amdgcn.sudot4", 0, NULL, 6, args));
}

static LLVMValueRef dot4(Gen *g, bool sign, LLVMValueRef a, LLVMValueRef b, LLVMValueRef sum)
{
    LLVMValueRef args[4] = {a, b, sum, flag(g, false)};

    return gen_intrinsic_of(g, sign ? "llvm.amdgcn.sdot4" : "llvm.amdgcn.udot4", 0, NULL, 4, args);
}

/* Both sides have one sign.  Else u * i = (u - 128) * i + 128 * i: u with its highest bits changed
 * is u - 128, signed. */
LLVMValueRef write_v_dot4(Gen *g, const GenUnits *u)
{
    LLVMValueRef a = word(g, u, 0), b = word(g, u, 1), sum = word(g, u, 2);

    if (is_signed(u, 0) == is_signed(u, 1))
        return result(g, dot4(g, is_signed(u, 0), a, b, sum));
    if (is_signed(u, 0)) {
        LLVMValueRef other = a;
        a = b;
        b = other;
    }
    LLVMValueRef all = dot4(g, true, b, gen_int(g, g->i32, ONES), gen_i32(g, 0));
    a = LLVMBuildXor(g->b, a, gen_int(g, g->i32, SIGNS), "");
    sum = LLVMBuildAdd(g->b, sum, LLVMBuildShl(g->b, all, gen_i32(g, HALF), ""), "");
    return result(g, dot4(g, true, a, b, sum));
}
