/* Instructions of AArch64 for rows of ir/tir/intrin.def (intrin.def).
 *
 *   dot4, bytes of one sign, with dotprod   one instruction
 *   dot4 otherwise                          products in i16, which hold them, then pairwise sums
 *   mmla, with i8mm                         one instruction
 *
 * and for rows of lookup.def: cells of 256 by tbl and three tbx of four registers. */
#include "backends/llvm/llvm.h"

LLVMValueRef write_dotprod(Gen *g, const GenUnits *u)
{
    LLVMValueRef a = gen_as(g, u->operand[0], g->i8, 16), b = gen_as(g, u->operand[1], g->i8, 16);
    LLVMValueRef x[3] = {u->operand[2], a, b};
    LLVMTypeRef  over[2] = {LLVMTypeOf(x[0]), LLVMTypeOf(a)};
    bool         sign = u->row->operand[0].dtype.code == DT_INT;

    return gen_intrinsic_of(g, sign ? "llvm.aarch64.neon.sdot" : "llvm.aarch64.neon.udot", 2, over,
                            3, x);
}

LLVMValueRef write_addlp(Gen *g, const GenUnits *u)
{
    LLVMValueRef a = gen_as(g, u->operand[0], g->i8, 16), b = gen_as(g, u->operand[1], g->i8, 16);
    LLVMTypeRef  over[2] = {LLVMTypeOf(u->operand[2]), LLVMVectorType(g->i16, 8)};
    bool         sa = u->row->operand[0].dtype.code == DT_INT;
    bool         sb = u->row->operand[1].dtype.code == DT_INT;
    LLVMValueRef half[2];

    for (unsigned i = 0; i < 2; i++) {
        LLVMValueRef p =
            LLVMBuildMul(g->b, gen_extended(g, gen_lanes_of(g, a, 8 * i, 1, 8), sa, g->i16),
                         gen_extended(g, gen_lanes_of(g, b, 8 * i, 1, 8), sb, g->i16), "");
        half[i] = gen_intrinsic_of(
            g, sa || sb ? "llvm.aarch64.neon.saddlp" : "llvm.aarch64.neon.uaddlp", 2, over, 1, &p);
    }
    return LLVMBuildAdd(g->b, u->operand[2],
                        gen_intrinsic_of(g, "llvm.aarch64.neon.addp", 1, over, 2, half), "");
}

LLVMValueRef write_mmla(Gen *g, const GenUnits *u)
{
    LLVMValueRef a = gen_as(g, u->operand[0], g->i8, 16), b = gen_as(g, u->operand[1], g->i8, 16);
    LLVMValueRef x[3] = {u->operand[2], a, b};
    LLVMTypeRef  over[2] = {LLVMTypeOf(x[0]), LLVMTypeOf(a)};
    bool         sa = u->row->operand[0].dtype.code == DT_INT;
    bool         sb = u->row->operand[1].dtype.code == DT_INT;

    return gen_intrinsic_of(g,
                            sa   ? "llvm.aarch64.neon.smmla"
                            : sb ? "llvm.aarch64.neon.usmmla"
                                 : "llvm.aarch64.neon.ummla",
                            2, over, 3, x);
}

/* tbl gives 0 for bytes beyond its 64 cells, tbx leaves what was there. */
LLVMValueRef write_tbl(Gen *g, LLVMValueRef table, LLVMValueRef at, unsigned n)
{
    LLVMTypeRef  t = LLVMTypeOf(at);
    LLVMValueRef sum = NULL;

    for (unsigned i = 0; i < 4; i++) {
        LLVMValueRef x[6] = {sum}, *cells = x + (i > 0);

        for (unsigned k = 0; k < 4; k++)
            cells[k] = gen_table_part(g, table, (4 * i + k) * n, n);
        cells[4] = i ? LLVMBuildSub(g->b, at, gen_splat_int(t, 64 * i), "") : at;
        sum = gen_intrinsic(g, i ? "llvm.aarch64.neon.tbx4" : "llvm.aarch64.neon.tbl4", t,
                            i ? 6 : 5, x);
    }
    return sum;
}
