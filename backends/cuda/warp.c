/* Instructions in CUDA C, of warps, copies to shared memory and sums of products of bytes: each a
 * function that the text calls, with PTX in it.
 *
 * The functions stand where text is compiled for a GPU; elsewhere (tests/backends/cuda) a function
 * of the name `warp_` and the instruction's does the same.  ldmatrix takes an address within shared
 * memory; its asm is volatile, and so are the products: all threads of a warp come to them
 * together. */
#include "backends/cuda/cuda.h"

#include "backends/clike/clike.h"
#include "ir/tir/intrin.h"

#include <string.h>

#define FUNCTION(head, device, elsewhere)                                            \
    "static __device__ inline void " head "\n{\n#if defined(__CUDA_ARCH__)\n" device \
    "#else\n" elsewhere "#endif\n}\n"
#define MMA(name, c, constraint, op)                                                           \
    FUNCTION(name "(" c " *c, const unsigned *a, const unsigned *b)",                          \
             "    asm volatile(\"mma.sync.aligned." op " {%0, %1, %2, %3}, {%4, %5, %6, %7}, " \
             "{%8, %9}, {%0, %1, %2, %3};\"\n"                                                 \
             "        : \"+" constraint "\"(c[0]), \"+" constraint "\"(c[1]), \"+" constraint  \
             "\"(c[2]), \"+" constraint "\"(c[3])\n"                                           \
             "        : \"r\"(a[0]), \"r\"(a[1]), \"r\"(a[2]), \"r\"(a[3]), \"r\"(b[0]), "     \
             "\"r\"(b[1]));\n",                                                                \
             "    warp_" name "(c, a, b);\n")

static const char ldmatrix4[] = FUNCTION(
    "ldmatrix4(unsigned *r, const void *row)",
    "    asm volatile(\"ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];\"\n"
    "        : \"=r\"(r[0]), \"=r\"(r[1]), \"=r\"(r[2]), \"=r\"(r[3])\n"
    "        : \"r\"((unsigned)__cvta_generic_to_shared(row)) : \"memory\");\n",
    "    warp_ldmatrix4(r, row);\n");

static const char ldmatrix2[] =
    FUNCTION("ldmatrix2(unsigned *r, const void *row)",
             "    asm volatile(\"ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%0, %1}, [%2];\"\n"
             "        : \"=r\"(r[0]), \"=r\"(r[1])\n"
             "        : \"r\"((unsigned)__cvta_generic_to_shared(row)) : \"memory\");\n",
             "    warp_ldmatrix2(r, row);\n");

/* Four products of bytes, of words. */
#define DOT(name, types)                                                                  \
    "static __device__ inline int " name "(unsigned a, unsigned b, int c)\n{\n"           \
    "#if defined(__CUDA_ARCH__)\n"                                                        \
    "    int sum;\n    asm(\"dp4a." types " %0, %1, %2, %3;\" : \"=r\"(sum) : \"r\"(a), " \
    "\"r\"(b), \"r\"(c));\n    return sum;\n"                                             \
    "#else\n    return warp_" name "(a, b, c);\n#endif\n}\n"

#define COPY(head, size, operand, elsewhere)                                                 \
    FUNCTION("async_copy(void *to, const void *from" head ")",                               \
             "    asm volatile(\"cp.async.cg.shared.global [%0], [%1], 16" size ";\"\n"      \
             "        :: \"r\"((unsigned)__cvta_generic_to_shared(to)),\n"                   \
             "           \"l\"(__cvta_generic_to_global(from))" operand " : \"memory\");\n", \
             "    warp_async_copy(to, " elsewhere ");\n")

#define COPY_WHERE COPY(", int holds", ", %2", ", \"r\"(holds ? 16 : 0)", "holds ? from : 0")
#define AWAIT                                               \
    "#if defined(__CUDA_ARCH__)\n"                          \
    "#define async_await(n) \\\n"                           \
    "    asm volatile(\"cp.async.commit_group;\\n "         \
    "cp.async.wait_group %0;\" :: \"n\"(n) : \"memory\")\n" \
    "#else\n#define async_await(n) warp_async_await(n)\n#endif\n"

static const char copy[] = COPY("", "", "", "from") COPY_WHERE AWAIT;

/* What one of four warps is told of a side: where it begins, in 16 bytes; that eight rows of 128
 * bytes, whose pieces are exchanged, are 1024 bytes.  What threads have stored, copies of 16 bytes
 * too, the unit that multiplies sees behind a fence.  Sums that have been waited for are written
 * and read by an empty instruction each, so that no compiler reads them before. */
static const char wgmma[] =
    "#if defined(__CUDA_ARCH__)\n"
    "static __device__ inline unsigned long long wgmma_side(const void *first)\n{\n"
    "    return ((unsigned)__cvta_generic_to_shared(first) & 0x3ffffu) >> 4 | 1ull << 16 | "
    "64ull << 32 | 1ull << 62;\n}\n"
    "#define shared_fence() asm volatile(\"fence.proxy.async.shared::cta;\" ::: \"memory\")\n"
    "#define products_await(n) \\\n"
    "    asm volatile(\"wgmma.wait_group.sync.aligned %0;\" :: \"n\"(n) : \"memory\")\n"
    "#define sums_known(c, n) _Pragma(\"unroll\") \\\n"
    "    for (int i = 0; i < n; i++) asm volatile(\"\" : \"+f\"(c[i]) :: \"memory\")\n"
    "#else\n#define shared_fence()\n#define products_await(n) group_await(n)\n"
    "#define sums_known(c, n)\n#endif\n";

/* Threads combine what they have with what others have whose number differs in one bit; all get the
 * same where `a` and `b` may change places, else the first thread's is everyone's. */
#define COMBINED(name, t, result, all)                                                 \
    "static __device__ inline " t " combine_" name "(" t " a, " t " b)\n{\n"           \
    "    return " result ";\n}\n"                                                      \
    "static __device__ inline " t " " name "(" t " own, " t " held)\n{\n"              \
    "    for (int i = 16; i > 0; i /= 2)\n"                                            \
    "        own = combine_" name "(own, __shfl_xor_sync(0xffffffffu, own, i));\n" all \
    "    return combine_" name "(held, own);\n}\n"
#define FIRST "    own = __shfl_sync(0xffffffffu, own, 0);\n"

static const char *const text[INTRIN_COUNT] = {
    [INTRIN_MMA_F16] = MMA("mma_f16", "float", "f", "m16n8k16.row.col.f32.f16.f16.f32"),
    [INTRIN_MMA_BF16] = MMA("mma_bf16", "float", "f", "m16n8k16.row.col.f32.bf16.bf16.f32"),
    [INTRIN_MMA_S8] = MMA("mma_s8", "int", "r", "m16n8k32.row.col.s32.s8.s8.s32"),
    [INTRIN_MMA_U8] = MMA("mma_u8", "int", "r", "m16n8k32.row.col.s32.u8.u8.s32"),
    [INTRIN_MMA_U8S8] = MMA("mma_u8s8", "int", "r", "m16n8k32.row.col.s32.u8.s8.s32"),
    [INTRIN_MMA_S8U8] = MMA("mma_s8u8", "int", "r", "m16n8k32.row.col.s32.s8.u8.s32"),
    [INTRIN_DOT4_UU] = DOT("dot4_u8_u8", "u32.u32"),
    [INTRIN_DOT4_UI] = DOT("dot4_u8_i8", "u32.s32"),
    [INTRIN_DOT4_IU] = DOT("dot4_i8_u8", "s32.u32"),
    [INTRIN_DOT4_II] = DOT("dot4_i8_i8", "s32.s32"),
    [INTRIN_COPY_F16] = copy,
    [INTRIN_COPY_BF16] = copy,
    [INTRIN_COPY_F32] = copy,
    [INTRIN_COPY_I8] = copy,
    [INTRIN_COPY_U8] = copy,
    [INTRIN_LDMATRIX4] = ldmatrix4,
    [INTRIN_LDMATRIX2] = ldmatrix2,
    [INTRIN_WARP32_SUM] = COMBINED("warp32_sum_f32", "float", "a + b", ""),
    [INTRIN_WARP32_SUM_I32] =
        COMBINED("warp32_sum_i32", "int", "(int)((unsigned)a + (unsigned)b)", ""),
    [INTRIN_WARP32_MAX] =
        COMBINED("warp32_max_f32", "float",
                 "b > a || b != b || (b == a && __float_as_int(a) < 0) ? b : a", ""),
    [INTRIN_WARP32_MIN] =
        COMBINED("warp32_min_f32", "float",
                 "b < a || b != b || (b == a && __float_as_int(b) < 0) ? b : a", ""),
    [INTRIN_WARP32_MAXNUM] = COMBINED("warp32_maxnum_f32", "float", "a < b ? b : a", FIRST),
    [INTRIN_WGMMA_F16] = wgmma,
    [INTRIN_WGMMA_BF16] = wgmma,
};

/* Four instructions of 16 steps, 32 bytes of a row on, which end a group: by ptxas that is part of
 * the last, where it would be one more behind other instructions.  The sums are read before the
 * fence. */
void cuda_group(Ctx *c, const Intrin *row, uint32_t units, StrBuf *out)
{
    enum { STEPS = 4, PLACES = 2 };
    const char *name = clike_group(c, row, units), *type = dtype_text(c, row->operand[0].dtype);
    uint32_t    n = UNIT_NUMBERS * units;

    str_printf(
        out,
        "static __device__ inline void %s(float *c, const void *a, const void *b)\n{\n"
        "#if defined(__CUDA_ARCH__)\n"
        "    const unsigned long long x = wgmma_side(a), y = wgmma_side(b);\n"
        "    asm volatile(\"{.reg .pred p; setp.eq.u32 p, 0, 0; wgmma.fence.sync.aligned;\"\n",
        name);
    for (uint32_t i = 0; i < STEPS; i++) {
        str_printf(out, "        \" wgmma.mma_async.sync.aligned.m64n%uk16.f32.%s.%s {", 8 * units,
                   type, type);
        for (uint32_t k = 0; k < n; k++)
            str_printf(out, k ? ", %%%u" : "%%%u", k);
        str_printf(out, "}, %%%u, %%%u, p, 1, 1, 0, 0;\"\n", n + 2 * i, n + 2 * i + 1);
    }
    str_add(out, "        \" wgmma.commit_group.sync.aligned;}\"\n        : ");
    for (uint32_t k = 0; k < n; k++)
        str_printf(out, k ? ", \"+f\"(c[%u])" : "\"+f\"(c[%u])", k);
    str_add(out, "\n        : ");
    for (uint32_t i = 0; i < STEPS; i++)
        str_printf(out, "%s\"l\"(x + %u), \"l\"(y + %u)", i ? ", " : "", PLACES * i, PLACES * i);
    str_printf(out, "\n        : \"memory\");\n#else\n    group_%s(c, a, b);\n#endif\n}\n", name);
}

const char *cuda_instruction(IntrinId id)
{
    return text[id];
}

uint32_t cuda_first(IntrinId id)
{
    enum { DOT = 61, WARP = 80 };
    const bool early = !strncmp(intrin_text(id), "dot4", 4) || !strncmp(intrin_text(id), "warp", 4);

    return early ? DOT : WARP;
}
