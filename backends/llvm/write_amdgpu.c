/* Products of the warps of AMD's GPUs, by the rows of intrin.def: MFMA of CDNA, WMMA of RDNA.  What
 * parts of an operand a thread has is ir/tir/fragment.c's. */
#include "backends/common/plain.h"
#include "backends/llvm/llvm.h"

/* The operand's bits as a vector of that type, or as one number of it. */
static LLVMValueRef bits_as(Gen *g, LLVMValueRef v, LLVMTypeRef elem, unsigned lanes)
{
    return LLVMBuildBitCast(g->b, v, lanes > 1 ? LLVMVectorType(elem, lanes) : elem, "");
}

static unsigned operand_bytes(const GenUnits *u)
{
    return warp_pieces(u->row->warp, MATRIX_A) * warp_piece_bytes(u->row, MATRIX_A);
}

LLVMValueRef write_mfma(Gen *g, const GenUnits *u)
{
    LLVMTypeRef  half = LLVMHalfTypeInContext(g->lc), i16 = LLVMInt16TypeInContext(g->lc);
    LLVMTypeRef  elem = g->i32;
    const char  *name = NULL;
    unsigned     lanes = 1;
    LLVMValueRef args[6] = {
        [2] = u->operand[2], [3] = gen_i32(g, 0), [4] = gen_i32(g, 0), [5] = gen_i32(g, 0)};

    switch ((int)u->row->id) {
    case INTRIN_MFMA_F16: name = "f32.16x16x16f16", elem = half, lanes = 4; break;
    case INTRIN_MFMA_BF16: name = "f32.16x16x16bf16.1k", elem = i16, lanes = 4; break;
    case INTRIN_MFMA_S8K32: name = "i32.16x16x32.i8", elem = g->i64; break;
    case INTRIN_MFMA_S8: name = "i32.16x16x16i8"; break;
    }
    if (!name)
        BUG("%s is no product of CDNA's", u->row->text);
    for (uint32_t i = 0; i < 2; i++)
        args[i] = bits_as(g, u->operand[i], elem, lanes);
    return gen_intrinsic_of(g, arena_printf(g->a, "llvm.amdgcn.mfma.%s", name), 0, NULL, 6, args);
}

LLVMValueRef write_wmma(Gen *g, const GenUnits *u)
{
    const bool   of_half = u->row->operand[0].dtype.code == DT_FLOAT;
    LLVMTypeRef  elem = of_half ? LLVMHalfTypeInContext(g->lc) : LLVMInt16TypeInContext(g->lc);
    LLVMValueRef args[3] = {[2] = u->operand[2]};

    for (uint32_t i = 0; i < 2; i++)
        args[i] = bits_as(g, u->operand[i], elem, operand_bytes(u) / 2);
    LLVMTypeRef types[2] = {LLVMTypeOf(args[2]), LLVMTypeOf(args[0])};
    return gen_intrinsic_of(
        g, of_half ? "llvm.amdgcn.wmma.f32.16x16x16.f16" : "llvm.amdgcn.wmma.f32.16x16x16.bf16", 2,
        types, 3, args);
}

LLVMValueRef write_wmma_bytes(Gen *g, const GenUnits *u)
{
    LLVMTypeRef  flag = LLVMInt1TypeInContext(g->lc);
    LLVMValueRef args[6] = {[4] = u->operand[2], [5] = LLVMConstNull(flag)};

    for (uint32_t i = 0; i < 2; i++) {
        args[2 * i] = LLVMConstInt(flag, u->row->operand[i].dtype.code == DT_INT, false);
        args[2 * i + 1] = bits_as(g, u->operand[i], g->i32, operand_bytes(u) / WORD);
    }
    LLVMTypeRef types[2] = {LLVMTypeOf(args[4]), LLVMTypeOf(args[1])};
    return gen_intrinsic_of(g, "llvm.amdgcn.wmma.i32.16x16x16.iu8", 2, types, 6, args);
}
