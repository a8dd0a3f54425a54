/* Reductions among the threads of a warp (ir/tir/lanes.c) on GPUs: each thread combines what it has
 * with what another has, whose number differs in one bit.  Where the order of two numbers counts,
 * the first thread's result is everyone's.  Threads of a warp are those along x. */
#include "backends/llvm/llvm.h"

/* What the thread has whose number is this one's with other bits `with`; 0: the first thread. */
static LLVMValueRef exchanged(Gen *g, LLVMValueRef v, uint32_t with)
{
    enum { WORD = 4 };
    LLVMTypeRef t = LLVMTypeOf(v);

    if (g->arch == ARCH_NVPTX) {
        const char  *name = arena_printf(g->a, "llvm.nvvm.shfl.sync.%s.%s", with ? "bfly" : "idx",
                                        t == g->f32 ? "f32" : "i32");
        LLVMValueRef args[] = {gen_i32(g, UINT32_MAX), v, gen_i32(g, with), gen_i32(g, 31)};
        return gen_intrinsic_of(g, name, 0, NULL, COUNT(args), args);
    }
    LLVMValueRef x = gen_intrinsic_of(g, "llvm.amdgcn.workitem.id.x", 0, NULL, 0, NULL);
    LLVMValueRef from = LLVMBuildXor(g->b, x, gen_i32(g, with), "");
    LLVMValueRef args[] = {with ? LLVMBuildMul(g->b, from, gen_i32(g, WORD), "") : gen_i32(g, 0),
                           LLVMBuildBitCast(g->b, v, g->i32, "")};
    v = gen_intrinsic_of(g, "llvm.amdgcn.ds.bpermute", 0, NULL, COUNT(args), args);
    return LLVMBuildBitCast(g->b, v, t, "");
}

/* The row's step (comb_apply) of two numbers. */
static LLVMValueRef combined(Gen *g, const Intrin *row, LLVMValueRef a, LLVMValueRef b)
{
    const PrimKind k = row->step->kind;

    if (k == PRIM_SELECT)
        return LLVMBuildSelect(g->b, LLVMBuildFCmp(g->b, LLVMRealOLT, a, b, ""), b, a, "");
    if (k == PRIM_MAX || k == PRIM_MIN)
        return gen_call2(g, k == PRIM_MAX ? "llvm.maximum" : "llvm.minimum", LLVMTypeOf(a), a, b);
    return dtype_is_float(row->result.dtype) ? LLVMBuildFAdd(g->b, a, b, "")
                                             : LLVMBuildAdd(g->b, a, b, "");
}

LLVMValueRef write_lanes(Gen *g, const GenUnits *u)
{
    LLVMValueRef v = u->operand[0];

    for (uint32_t with = warp_threads(u->row->warp) / 2; with; with /= 2)
        v = combined(g, u->row, v, exchanged(g, v, with));
    if (u->row->step->kind == PRIM_SELECT)
        v = exchanged(g, v, 0);
    return combined(g, u->row, u->operand[1], v);
}
