/* Instructions of x86 for rows of ir/tir/intrin.def (intrin.def).
 *
 *   dot4, u8 by i8, with VNNI   one instruction
 *   dot4 otherwise              even and odd bytes as i16, two pmaddwd (whose pair sums fit 32
 *                               bits), two adds; pmaddubsw would be shorter, but saturates
 *   dot2                        a pmaddwd and an add
 *   bfdot, with AVX512-BF16     one instruction
 *   tile4, with AMX             one instruction on tile registers, whose configuration is LLVM's
 *                               matter
 *
 * and for rows of lookup.def: cells of 256 by vpermi2b of two registers, twice; by 16 pshufb. */
#include "backends/llvm/llvm.h"

static bool is_signed(const GenUnits *u, int i)
{
    return u->row->operand[i].dtype.code == DT_INT;
}

LLVMValueRef write_vpdpbusd(Gen *g, const GenUnits *u)
{
    LLVMValueRef x[3] = {u->operand[2], u->operand[is_signed(u, 0)], u->operand[!is_signed(u, 0)]};

    return gen_intrinsic_of(g, arena_printf(g->a, "llvm.x86.avx512.vpdpbusd.%u", 32 * u->n), 0,
                            NULL, 3, x);
}

/* The even (shifted up first) or odd bytes of each half word, as i16. */
static LLVMValueRef halves(Gen *g, LLVMValueRef words, unsigned n, bool sign, bool odd)
{
    LLVMValueRef v = gen_as(g, words, g->i16, 2 * n), eight = gen_splat_int(LLVMTypeOf(v), 8);

    if (!sign && !odd)
        return LLVMBuildAnd(g->b, v, gen_splat_int(LLVMTypeOf(v), 255), "");
    if (!odd)
        v = LLVMBuildShl(g->b, v, eight, "");
    return sign ? LLVMBuildAShr(g->b, v, eight, "") : LLVMBuildLShr(g->b, v, eight, "");
}

static LLVMValueRef madd(Gen *g, LLVMValueRef sum, LLVMValueRef x, LLVMValueRef y, unsigned n)
{
    const char  *name = n == 4   ? "llvm.x86.sse2.pmadd.wd"
                        : n == 8 ? "llvm.x86.avx2.pmadd.wd"
                                 : "llvm.x86.avx512.pmaddw.d.512";
    LLVMValueRef args[2] = {x, y};

    return LLVMBuildAdd(g->b, sum, gen_intrinsic_of(g, name, 0, NULL, 2, args), "");
}

LLVMValueRef write_pmaddwd_halves(Gen *g, const GenUnits *u)
{
    LLVMValueRef sum = u->operand[2];

    for (int odd = 0; odd < 2; odd++)
        sum = madd(g, sum, halves(g, u->operand[0], u->n, is_signed(u, 0), odd),
                   halves(g, u->operand[1], u->n, is_signed(u, 1), odd), u->n);
    return sum;
}

LLVMValueRef write_pmaddwd(Gen *g, const GenUnits *u)
{
    return madd(g, u->operand[2], gen_as(g, u->operand[0], g->i16, 2 * u->n),
                gen_as(g, u->operand[1], g->i16, 2 * u->n), u->n);
}

LLVMValueRef write_vdpbf16ps(Gen *g, const GenUnits *u)
{
    LLVMTypeRef  bf16 = LLVMBFloatTypeInContext(g->lc);
    LLVMValueRef x[3] = {u->operand[2], gen_as(g, u->operand[0], bf16, 2 * u->n),
                         gen_as(g, u->operand[1], bf16, 2 * u->n)};

    return gen_intrinsic_of(g, arena_printf(g->a, "llvm.x86.avx512bf16.dpbf16ps.%u", 32 * u->n), 0,
                            NULL, 3, x);
}

/* 16 rows of 64 bytes. */
static LLVMValueRef tile(Gen *g, LLVMValueRef v)
{
    LLVMValueRef words = gen_as(g, v, g->i32, 256);
    LLVMTypeRef  t = LLVMTypeOf(words);

    return gen_intrinsic_of(g, "llvm.x86.cast.vector.to.tile", 1, &t, 1, &words);
}

LLVMValueRef write_tdpbusd(Gen *g, const GenUnits *u)
{
    LLVMValueRef rows = LLVMConstInt(g->i16, 16, false), bytes = LLVMConstInt(g->i16, 64, false);
    LLVMValueRef x[6] = {
        rows, bytes, bytes, tile(g, u->operand[2]), tile(g, u->operand[0]), tile(g, u->operand[1])};
    LLVMTypeRef  t = LLVMVectorType(g->i32, 256);
    LLVMValueRef sum = gen_intrinsic_of(g, "llvm.x86.tdpbusd.internal", 0, NULL, 6, x);

    return gen_intrinsic_of(g, "llvm.x86.cast.tile.to.vector", 1, &t, 1, &sum);
}

/* ---- tables of 256 bytes ------------------------------------------------------------------------------- */

LLVMValueRef write_vpermi2b(Gen *g, LLVMValueRef table, LLVMValueRef at, unsigned n)
{
    LLVMValueRef half[2],
        high = LLVMBuildICmp(g->b, LLVMIntSLT, at, gen_splat_int(LLVMTypeOf(at), 0), "");

    for (unsigned i = 0; i < 2; i++) {
        LLVMValueRef x[3] = {gen_table_part(g, table, 2 * i * n, n), at,
                             gen_table_part(g, table, (2 * i + 1) * n, n)};
        half[i] = gen_intrinsic_of(g, "llvm.x86.avx512.vpermi2var.qi.512", 0, NULL, 3, x);
    }
    return LLVMBuildSelect(g->b, high, half[1], half[0], "");
}

static LLVMValueRef pshufb(Gen *g, LLVMValueRef part, LLVMValueRef at, unsigned n)
{
    const char  *name = n == 32 ? "llvm.x86.avx2.pshuf.b" : "llvm.x86.avx512.pshuf.b.512";
    LLVMValueRef pick[64], x[2] = {part, at};

    for (unsigned i = 0; i < n; i++)
        pick[i] = gen_i32(g, i % 16);
    x[0] = LLVMBuildShuffleVector(g->b, part, LLVMGetPoison(LLVMTypeOf(part)),
                                  LLVMConstVector(pick, n), "");
    return gen_intrinsic_of(g, name, 0, NULL, 2, x);
}

/* pshufb gives 0 where the byte that says the cell is negative, else a cell of 16 by its low four
 * bits.  Each half of the table begins with its first 16 cells; what the next 16 differ by is added
 * (exclusive or) for bytes that are not negative with 16 less, and so on.  Saturated, those of the
 * other half stay negative. */
LLVMValueRef write_pshufb(Gen *g, LLVMValueRef table, LLVMValueRef at, unsigned n)
{
    LLVMTypeRef  t = LLVMTypeOf(at);
    LLVMValueRef sum = NULL, top = gen_splat_int(t, 128);

    for (unsigned half = 0; half < 2; half++) {
        LLVMValueRef x[2] = {half ? LLVMBuildXor(g->b, at, top, "") : at, gen_splat_int(t, 16)};
        LLVMValueRef last = NULL;

        for (unsigned i = 0; i < 8; i++) {
            LLVMValueRef cells = gen_table_part(g, table, 128 * half + 16 * i, 16), part;

            part = pshufb(g, last ? LLVMBuildXor(g->b, cells, last, "") : cells, x[0], n);
            sum = sum ? LLVMBuildXor(g->b, sum, part, "") : part;
            last = cells;
            if (i < 7)
                x[0] = gen_intrinsic(g, "llvm.ssub.sat", t, 2, x);
        }
    }
    return sum;
}
