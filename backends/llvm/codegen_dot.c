/* dot4: four products of 8-bit integers added to each lane of i32, exactly.
 *
 *   u8 by i8 with VNNI, bytes of one sign with dotprod    one instruction
 *   x86 otherwise    even and odd bytes as i16, two pmaddwd (whose pair sums fit 32 bits), two
 * adds; pmaddubsw would be shorter, but saturates NEON             products in i16, which hold
 * them, then pairwise sums elsewhere        products in i32, added up lane by lane
 *
 * Two products of i16 are a pmaddwd and an add on x86, else products in i32.  Bytes beside i16 are
 * widened.
 *
 * Operands are seen as words: vectors of i32 that hold four bytes a lane.  Sums wider or narrower
 * than a register are cut into registers and filled up; what fills up is dropped afterwards. */
#include "backends/llvm/llvm.h"

typedef struct {
    LLVMValueRef a, b, sum; /* <n x i32> */
    bool         sa, sb;    /* bytes of a, b are signed */
    bool         pairs;     /* words hold two i16 */
} Dot;

static LLVMValueRef as(Gen *g, LLVMValueRef v, LLVMTypeRef elem, unsigned lanes)
{
    return LLVMBuildBitCast(g->b, v, LLVMVectorType(elem, lanes), "");
}

/* Lanes first, first + step, .. of v; those beyond its end are anything. */
static LLVMValueRef lanes_of(Gen *g, LLVMValueRef v, unsigned first, unsigned step, unsigned n)
{
    LLVMValueRef at[256];
    unsigned     have = LLVMGetVectorSize(LLVMTypeOf(v));

    for (unsigned i = 0; i < n; i++)
        at[i] = first + i * step < have ? gen_i32(g, first + i * step) : LLVMGetPoison(g->i32);
    return LLVMBuildShuffleVector(g->b, v, LLVMGetPoison(LLVMTypeOf(v)), LLVMConstVector(at, n),
                                  "");
}

/* ---- one register ------------------------------------------------------------------------------------ */

/* The even (shifted up first) or odd bytes of each half word, as i16. */
static LLVMValueRef halves(Gen *g, LLVMValueRef words, unsigned n, bool sign, bool odd)
{
    LLVMValueRef v = as(g, words, g->i16, 2 * n), eight = gen_splat_int(LLVMTypeOf(v), 8);

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

static LLVMValueRef dot_madd(Gen *g, const Dot *d, unsigned n)
{
    LLVMValueRef sum = d->sum;

    for (int odd = 0; odd < 2; odd++)
        sum = madd(g, sum, halves(g, d->a, n, d->sa, odd), halves(g, d->b, n, d->sb, odd), n);
    return sum;
}

static LLVMValueRef dot_x86(Gen *g, const Dot *d, unsigned n)
{
    bool         vnni = g->caps & CAP_AVX512 ? g->caps & CAP_DOT
                                             : n < 16 && g->caps & CAP_DOT32 && g->caps & CAP_AVX2;
    LLVMValueRef x[3] = {d->sum, d->sa ? d->b : d->a, d->sa ? d->a : d->b};

    if (d->pairs)
        return madd(g, d->sum, as(g, d->a, g->i16, 2 * n), as(g, d->b, g->i16, 2 * n), n);
    if (!vnni || d->sa == d->sb)
        return dot_madd(g, d, n);
    return gen_intrinsic_of(g, arena_printf(g->a, "llvm.x86.avx512.vpdpbusd.%u", 32 * n), 0, NULL,
                            3, x);
}

static LLVMValueRef widened(Gen *g, LLVMValueRef bytes, bool sign, LLVMTypeRef elem)
{
    LLVMTypeRef t = gen_with_lanes_of(elem, LLVMTypeOf(bytes));

    return sign ? LLVMBuildSExt(g->b, bytes, t, "") : LLVMBuildZExt(g->b, bytes, t, "");
}

static LLVMValueRef dot_plain(Gen *g, const Dot *d, unsigned n)
{
    LLVMTypeRef  elem = d->pairs ? g->i16 : g->i8;
    unsigned     terms = d->pairs ? 2 : 4;
    LLVMValueRef a = widened(g, as(g, d->a, elem, terms * n), d->sa, g->i32);
    LLVMValueRef b = widened(g, as(g, d->b, elem, terms * n), d->sb, g->i32);
    LLVMValueRef p = LLVMBuildMul(g->b, a, b, ""), sum = d->sum;

    for (unsigned i = 0; i < terms; i++)
        sum = LLVMBuildAdd(g->b, sum, lanes_of(g, p, i, terms, n), "");
    return sum;
}

static LLVMValueRef dot_neon(Gen *g, const Dot *d)
{
    LLVMValueRef a = as(g, d->a, g->i8, 16), b = as(g, d->b, g->i8, 16);
    LLVMValueRef x[3] = {d->sum, a, b}, half[2];
    LLVMTypeRef  over[2] = {LLVMTypeOf(d->sum), LLVMTypeOf(a)};
    bool         sign = d->sa || d->sb;

    if (d->pairs)
        return dot_plain(g, d, 4);
    if (g->caps & CAP_DOT && d->sa == d->sb)
        return gen_intrinsic_of(g, sign ? "llvm.aarch64.neon.sdot" : "llvm.aarch64.neon.udot", 2,
                                over, 3, x);
    over[1] = LLVMVectorType(g->i16, 8);
    for (unsigned i = 0; i < 2; i++) {
        LLVMValueRef p = LLVMBuildMul(g->b, widened(g, lanes_of(g, a, 8 * i, 1, 8), d->sa, g->i16),
                                      widened(g, lanes_of(g, b, 8 * i, 1, 8), d->sb, g->i16), "");
        half[i] = gen_intrinsic_of(
            g, sign ? "llvm.aarch64.neon.saddlp" : "llvm.aarch64.neon.uaddlp", 2, over, 1, &p);
    }
    return LLVMBuildAdd(g->b, d->sum,
                        gen_intrinsic_of(g, "llvm.aarch64.neon.addp", 1, over, 2, half), "");
}

/* ---- all lanes ----------------------------------------------------------------------------------------- */

/* The lanes of a register; 0: any number. */
static unsigned register_lanes(const Gen *g, unsigned n)
{
    unsigned most = g->caps & CAP_AVX512 ? 16 : g->caps & CAP_AVX2 ? 8 : 4;

    if (!(g->caps & CAP_VEC) || (g->arch != ARCH_X86 && g->arch != ARCH_AARCH64))
        return 0;
    if (g->arch == ARCH_AARCH64)
        return 4;
    return n <= 4 || most == 4 ? 4 : n <= 8 || most == 8 ? 8 : 16;
}

static LLVMValueRef dot_register(Gen *g, const Dot *d, unsigned n)
{
    switch (g->arch) {
    case ARCH_X86: return dot_x86(g, d, n);
    case ARCH_AARCH64: return dot_neon(g, d);
    case ARCH_ARM:
    case ARCH_RISCV:
    case ARCH_WASM:
    case ARCH_NONE: break;
    }
    return dot_plain(g, d, n);
}

/* The operand as n words of `terms` numbers each; a single word is the same for all. */
static LLVMValueRef words(Gen *g, const Prim *p, unsigned n, unsigned terms)
{
    LLVMValueRef v = gen_prim(g, p);

    if (terms == 2 && p->dtype.bits == 8)
        v = widened(g, v, p->dtype.code == DT_INT, g->i16);
    v = as(g, v, g->i32, p->dtype.lanes / terms);
    if (p->dtype.lanes == terms && n > 1)
        v = LLVMBuildShuffleVector(g->b, v, LLVMGetPoison(LLVMTypeOf(v)),
                                   LLVMConstNull(LLVMVectorType(g->i32, n)), "");
    return v;
}

static LLVMValueRef joined(Gen *g, LLVMValueRef whole, LLVMValueRef part, unsigned at)
{
    for (unsigned i = 0; i < LLVMGetVectorSize(LLVMTypeOf(part)); i++) {
        if (at + i >= LLVMGetVectorSize(LLVMTypeOf(whole)))
            break;
        LLVMValueRef x = LLVMBuildExtractElement(g->b, part, gen_i32(g, i), "");
        whole = LLVMBuildInsertElement(g->b, whole, x, gen_i32(g, at + i), "");
    }
    return whole;
}

LLVMValueRef gen_dot4(Gen *g, const Prim *p)
{
    unsigned     n = p->dtype.lanes, r = register_lanes(g, n);
    LLVMValueRef out = gen_prim(g, p->kids[2]);
    unsigned     terms = dot4_terms(p->kids[0]->dtype, p->kids[1]->dtype);
    bool         pairs = terms == 2; /* then all is signed */
    Dot          d = {words(g, p->kids[0], n, terms),
                      words(g, p->kids[1], n, terms),
             n > 1 ? out : as(g, out, g->i32, 1),
                      pairs || p->kids[0]->dtype.code == DT_INT,
                      pairs || p->kids[1]->dtype.code == DT_INT,
                      pairs};

    if (!r || r == n)
        out = dot_register(g, &d, n);
    else {
        out = LLVMGetPoison(LLVMTypeOf(d.sum));
        for (unsigned at = 0; at < n; at += r) {
            Dot part = {lanes_of(g, d.a, at, 1, r),
                        lanes_of(g, d.b, at, 1, r),
                        lanes_of(g, d.sum, at, 1, r),
                        d.sa,
                        d.sb,
                        pairs};
            out = n < r ? lanes_of(g, dot_register(g, &part, r), 0, 1, n)
                        : joined(g, out, dot_register(g, &part, r), at);
        }
    }
    return n > 1 ? out : LLVMBuildExtractElement(g->b, out, gen_i32(g, 0), "");
}
