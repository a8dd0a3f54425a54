/* What the code for a target needs of an x86 CPU, as bits of CPUID and XCR0 (cpuid.def), and the
 * code that asks for them.
 *
 *     words()    the eight words, one after the other; what a CPU does not have reads as 0
 *
 * XGETBV exists where OSXSAVE says so, leaf 7 and its second part where the highest leaf says so.
 */
#include "backends/llvm/llvm.h"

#include <string.h>

typedef enum { NONE, YMM, ZMM } Keeps;

typedef struct {
    const char *name;
    uint32_t    word, bit;
    Keeps       keeps;
    const char *implies;
} Row;

static const Row rows[] = {
#define CPUID(name, word, bit, keeps, implies) {name, word, bit, keeps, implies},
#include "backends/llvm/cpuid.def"
#undef CPUID
};

typedef struct {
    const char *name, *base, *has;
} CpuHas;

static const CpuHas cpus[] = {
#define CPU_HAS(name, base, has) {name, base, has},
#include "backends/llvm/cpuid.def"
#undef CPU_HAS
};

_Static_assert(COUNT(rows) <= 64, "a set of features is one word");

enum { OSXSAVE = 27 };

/* ---- sets of features: bit i is rows[i] ---------------------------------------------------------- */

static uint64_t closed(const char *list);

/* COUNT(rows): nobody asks for it. */
static size_t row_of(const char *name, size_t n)
{
    size_t i = 0;

    while (i < COUNT(rows) && (strncmp(rows[i].name, name, n) || rows[i].name[n]))
        i++;
    return i;
}

/* The feature and what it implies; 0 if nobody asks for it. */
static uint64_t with_implied(const char *name, size_t n)
{
    size_t i = row_of(name, n);

    return i < COUNT(rows) ? (uint64_t)1 << i | closed(rows[i].implies) : 0;
}

/* "a,b" and what they imply: implications are a few deep. */
static uint64_t closed(const char *list)
{
    uint64_t set = 0;

    for (const char *p = list; *p; p += *p == ',') {
        size_t n = strcspn(p, ",");

        set |= with_implied(p, n);
        p += n;
    }
    return set;
}

/* Without the feature and all that imply it. */
static uint64_t without(uint64_t set, const char *name, size_t n)
{
    size_t i = row_of(name, n);

    for (size_t k = 0; i < COUNT(rows) && k < COUNT(rows); k++)
        if (((uint64_t)1 << k | closed(rows[k].implies)) >> i & 1)
            set &= ~((uint64_t)1 << k);
    return set;
}

static const CpuHas *cpu_row(const char *name)
{
    for (size_t i = 0; i < COUNT(cpus); i++)
        if (!strcmp(cpus[i].name, name))
            return &cpus[i];
    BUG("cpuid.def has no row for '%s'", name);
}

static uint64_t set_of_cpu(const char *name)
{
    uint64_t set = 0;

    while (name) {
        const CpuHas *row = cpu_row(name);

        set |= closed(row->has);
        name = row->base;
    }
    return set;
}

bool cpu_has(const char *cpu, const char *feature)
{
    size_t i = row_of(feature, strlen(feature));

    return i < COUNT(rows) && set_of_cpu(cpu) >> i & 1;
}

CpuNeeds target_needs(const Target *t)
{
    CpuNeeds needs = {{0}};
    uint64_t set;

    if (target_arch(t) != ARCH_X86)
        return needs;
    set = set_of_cpu(t->mcpu);
    for (const char *p = t->features; *p; p += *p == ',') { /* "+a,-b" */
        size_t n = strcspn(p, ",");

        set = *p == '-' ? without(set, p + 1, n - 1) : set | with_implied(p + 1, n - 1);
        p += n;
    }
    for (size_t i = 0; i < COUNT(rows); i++)
        if (set >> i & 1) {
            needs.word[rows[i].word] |= (uint32_t)1 << rows[i].bit;
            if (rows[i].keeps) /* XMM and YMM; ZMM also masks and both parts of ZMM */
                needs.word[CPUID_1C] |= (uint32_t)1 << OSXSAVE;
            needs.word[CPUID_XCR0] |= rows[i].keeps == NONE  ? 0
                                      : rows[i].keeps == YMM ? 0x06
                                                             : 0xe6;
        }
    return needs;
}

bool needs_nothing(const CpuNeeds *needs)
{
    for (uint32_t i = 0; i < CPUID_WORDS; i++)
        if (needs->word[i])
            return false;
    return true;
}

/* ---- code ------------------------------------------------------------------------------------------ */

enum { EAX, EBX, ECX, EDX };

/* {eax, ebx, ecx, edx} */
static LLVMValueRef cpuid(Gen *g, int64_t leaf, int64_t part)
{
    static const char text[] = "cpuid", in_out[] = "={eax},={ebx},={ecx},={edx},{eax},{ecx}";
    LLVMTypeRef       four[4] = {g->i32, g->i32, g->i32, g->i32}, two[2] = {g->i32, g->i32};
    LLVMTypeRef t = LLVMFunctionType(LLVMStructTypeInContext(g->lc, four, 4, false), two, 2, false);
    LLVMValueRef args[2] = {gen_i32(g, leaf), gen_i32(g, part)};
    LLVMValueRef code = LLVMGetInlineAsm(t, text, strlen(text), in_out, strlen(in_out), true, false,
                                         LLVMInlineAsmDialectATT, false);

    return LLVMBuildCall2(g->b, t, code, args, 2, "");
}

static LLVMValueRef xgetbv(Gen *g)
{
    static const char text[] = "xgetbv", in_out[] = "={eax},{ecx},~{edx}";
    LLVMTypeRef       t = LLVMFunctionType(g->i32, &g->i32, 1, false);
    LLVMValueRef      zero = gen_i32(g, 0);
    LLVMValueRef code = LLVMGetInlineAsm(t, text, strlen(text), in_out, strlen(in_out), true, false,
                                         LLVMInlineAsmDialectATT, false);

    return LLVMBuildCall2(g->b, t, code, &zero, 1, "");
}

static LLVMValueRef get(Gen *g, LLVMValueRef four, unsigned i)
{
    return LLVMBuildExtractValue(g->b, four, i, "");
}

static LLVMValueRef if_else_0(Gen *g, LLVMValueRef cond, LLVMValueRef v)
{
    return LLVMBuildSelect(g->b, cond, v, gen_i32(g, 0), "");
}

/* XCR0 where there is one. */
static LLVMValueRef kept_registers(Gen *g, LLVMValueRef leaf1)
{
    LLVMBasicBlockRef at = LLVMGetInsertBlock(g->b), has = gen_bb(g, "xgetbv"),
                      on = gen_bb(g, "words"), from[2] = {at, has};
    LLVMValueRef bit = LLVMBuildAnd(g->b, leaf1, gen_i32(g, (int64_t)1 << OSXSAVE), ""), v[2], phi;

    LLVMBuildCondBr(g->b, LLVMBuildICmp(g->b, LLVMIntNE, bit, gen_i32(g, 0), ""), has, on);
    LLVMPositionBuilderAtEnd(g->b, has);
    v[0] = gen_i32(g, 0);
    v[1] = xgetbv(g);
    LLVMBuildBr(g->b, on);
    LLVMPositionBuilderAtEnd(g->b, on);
    phi = LLVMBuildPhi(g->b, g->i32, "");
    LLVMAddIncoming(phi, v, from, 2);
    return phi;
}

void gen_cpuid_words(Gen *g, LLVMValueRef word[CPUID_WORDS])
{
    LLVMValueRef leaf1 = cpuid(g, 1, 0), leaf7, part1, has7, has71;

    word[CPUID_1C] = get(g, leaf1, ECX);
    word[CPUID_XC] = get(g, cpuid(g, 0x80000001, 0), ECX); /* every CPU of 64 bits has it */
    has7 = LLVMBuildICmp(g->b, LLVMIntUGE, get(g, cpuid(g, 0, 0), EAX), gen_i32(g, 7), "");
    leaf7 = cpuid(g, 7, 0);
    word[CPUID_7B] = if_else_0(g, has7, get(g, leaf7, EBX));
    word[CPUID_7C] = if_else_0(g, has7, get(g, leaf7, ECX));
    word[CPUID_7D] = if_else_0(g, has7, get(g, leaf7, EDX));
    has71 =
        LLVMBuildICmp(g->b, LLVMIntUGE, if_else_0(g, has7, get(g, leaf7, EAX)), gen_i32(g, 1), "");
    part1 = cpuid(g, 7, 1);
    word[CPUID_71A] = if_else_0(g, has71, get(g, part1, EAX));
    word[CPUID_71D] = if_else_0(g, has71, get(g, part1, EDX));
    word[CPUID_XCR0] = kept_registers(g, word[CPUID_1C]);
}
