/* Instructions of ir/tir/intrin.def on NVIDIA's GPUs, by the rows of intrin.def: products of warps,
 * rows of shared memory in the order that these want, copies to shared memory.  What parts of an
 * operand a thread has is the PTX manual's and ir/tir/warp.c's. */
#include "backends/llvm/llvm.h"

#include <string.h>

enum { PARTS_A = 4, PARTS_B = 2, PARTS_C = 4 };

/* Lanes of v as arguments of that type. */
static uint32_t spread(Gen *g, LLVMValueRef v, uint32_t n, LLVMTypeRef t, LLVMValueRef *out)
{
    for (uint32_t i = 0; i < n; i++)
        out[i] = LLVMBuildBitCast(g->b, LLVMBuildExtractElement(g->b, v, gen_i32(g, i), ""), t, "");
    return n;
}

/* Members of a struct as a vector. */
static LLVMValueRef gathered(Gen *g, LLVMValueRef v, uint32_t n, LLVMTypeRef t)
{
    LLVMValueRef out = LLVMGetPoison(LLVMVectorType(t, n));

    for (uint32_t i = 0; i < n; i++)
        out = LLVMBuildInsertElement(g->b, out, LLVMBuildExtractValue(g->b, v, i, ""),
                                     gen_i32(g, i), "");
    return out;
}

static const char *product_name(IntrinId id)
{
    switch ((int)id) {
    case INTRIN_MMA_F16: return "m16n8k16.row.col.f32.f32";
    case INTRIN_MMA_BF16: return "m16n8k16.row.col.bf16";
    case INTRIN_MMA_S8: return "m16n8k32.row.col.s8";
    case INTRIN_MMA_U8: return "m16n8k32.row.col.u8";
    case INTRIN_MMA_U8S8: return "m16n8k32.row.col.u8.s8";
    case INTRIN_MMA_S8U8: return "m16n8k32.row.col.s8.u8";
    }
    BUG("no product of warps has number %d", (int)id);
}

LLVMValueRef write_mma(Gen *g, const GenUnits *u)
{
    LLVMValueRef args[PARTS_A + PARTS_B + PARTS_C];
    LLVMTypeRef  words =
        u->row->id == INTRIN_MMA_F16 ? LLVMVectorType(LLVMHalfTypeInContext(g->lc), 2) : g->i32;
    LLVMTypeRef sums = gen_type(g, u->row->result.dtype);
    const char *name = arena_printf(g->a, "llvm.nvvm.mma.%s", product_name(u->row->id));
    uint32_t    n = spread(g, u->operand[0], PARTS_A, words, args);

    n += spread(g, u->operand[1], PARTS_B, words, args + n);
    n += spread(g, u->operand[2], PARTS_C, sums, args + n);
    return gathered(g, gen_intrinsic_of(g, name, 0, NULL, n, args), PARTS_C, sums);
}

static LLVMValueRef ldmatrix(Gen *g, const GenUnits *u, uint32_t n)
{
    LLVMValueRef from = u->operand[0];
    LLVMTypeRef  space = LLVMTypeOf(from);
    const char  *name = arena_printf(g->a, "llvm.nvvm.ldmatrix.sync.aligned.m8n8.x%u.b16", n);

    return gathered(g, gen_intrinsic_of(g, name, 1, &space, 1, &from), n, g->i32);
}

LLVMValueRef write_ldmatrix4(Gen *g, const GenUnits *u)
{
    return ldmatrix(g, u, PARTS_A);
}

LLVMValueRef write_ldmatrix2(Gen *g, const GenUnits *u)
{
    return ldmatrix(g, u, PARTS_B);
}

/* As text: LLVM's intrinsic wants both addresses in 64 bits.  The third operand says how many bytes
 * are read; the others are zeros. */
LLVMValueRef write_cp_async(Gen *g, const GenUnits *u)
{
    const unsigned n = u->operand[2] ? 3 : 2;
    const char    *text = n > 2 ? "cp.async.cg.shared.global [$0], [$1], 16, $2;"
                                : "cp.async.cg.shared.global [$0], [$1], 16;";
    const char    *places = n > 2 ? "r,l,r,~{memory}" : "r,l,~{memory}";
    LLVMTypeRef    types[3] = {g->i32, g->i64, g->i32};
    LLVMTypeRef    type = LLVMFunctionType(g->none, types, n, false);
    LLVMValueRef   fn = LLVMGetInlineAsm(type, text, strlen(text), places, strlen(places), true,
                                         false, LLVMInlineAsmDialectATT, false);
    LLVMValueRef   args[3] = {[2] = u->operand[2]};

    for (uint32_t i = 0; i < 2; i++)
        args[i] = LLVMBuildPtrToInt(g->b, u->operand[i], types[i], "");
    return LLVMBuildCall2(g->b, type, fn, args, n, "");
}

void gen_await(Gen *g, uint32_t groups)
{
    LLVMValueRef n = gen_int(g, g->i32, groups);

    gen_intrinsic_of(g, "llvm.nvvm.cp.async.commit.group", 0, NULL, 0, NULL);
    gen_intrinsic_of(g, "llvm.nvvm.cp.async.wait.group", 0, NULL, 1, &n);
}
