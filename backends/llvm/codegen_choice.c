/* Entry points that choose between the plans of one product: by CPU, by shape bucket.
 *
 *     which()              1 + the highest variant that this CPU runs, 0: none.  No memory of it,
 * as there is no writable data; CPUID costs some hundred cycles at most, or about a microsecond
 * where a hypervisor intercepts it run_ex(..)           table[which()][last](..) run_bucket(b, ..)
 * table[which()][b](..) info()               infos[which()]: what it gives asks no more
 *     select(dims)         the first bucket whose sizes hold dims
 *
 * Row 0 of the tables is for a CPU that no variant fits: TVMCC_E_CPU. */
#include "backends/llvm/llvm.h"

#include "tvmcc/abi.h"

#include <string.h>

/* ---- which CPU ------------------------------------------------------------------------------------ */

/* The levels of the x86-64 psABI, as bits of CPUID. */
enum {
    LEAF1_V2 = 1 << 0 | 1 << 9 | 1 << 13 | 1 << 19 | 1 << 20 | 1 << 23, /* SSE3 SSSE3 CX16 SSE4.1
                                                                         * SSE4.2 POPCNT */
    LEAF1_V3 = 1 << 12 | 1 << 22 | 1 << 27 | 1 << 28 | 1 << 29, /* FMA MOVBE OSXSAVE AVX F16C */
    EXT_V2 = 1 << 0,                                            /* LAHF */
    EXT_V3 = 1 << 5,                                            /* LZCNT */
    LEAF7_V3 = 1 << 3 | 1 << 5 | 1 << 8,                        /* BMI1 AVX2 BMI2 */
    XCR0_V3 = 0x06,                                             /* the system keeps XMM and YMM */
    XCR0_V4 = 0xe6                                              /* ... and masks and ZMM */
};
#define LEAF7_V4 \
    ((int64_t)1 << 16 | 1 << 17 | 1 << 28 | 1 << 30 | (int64_t)1 << 31) /* F DQ CD BW VL */

/* Register `i` of eax, ebx, ecx, edx. */
static LLVMValueRef cpuid(Gen *g, int64_t leaf, unsigned i)
{
    static const char text[] = "cpuid", in_out[] = "={eax},={ebx},={ecx},={edx},{eax},{ecx}";
    LLVMTypeRef       four[4] = {g->i32, g->i32, g->i32, g->i32}, two[2] = {g->i32, g->i32};
    LLVMTypeRef t = LLVMFunctionType(LLVMStructTypeInContext(g->lc, four, 4, false), two, 2, false);
    LLVMValueRef args[2] = {gen_i32(g, leaf), gen_i32(g, 0)};
    LLVMValueRef code = LLVMGetInlineAsm(t, text, strlen(text), in_out, strlen(in_out), true, false,
                                         LLVMInlineAsmDialectATT, false);

    return LLVMBuildExtractValue(g->b, LLVMBuildCall2(g->b, t, code, args, 2, ""), i, "");
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

/* return `row` unless `v` has all bits of `mask` */
static void need(Gen *g, LLVMValueRef v, int64_t mask, uint32_t row)
{
    LLVMValueRef bits = LLVMBuildAnd(g->b, v, gen_i32(g, mask), "");

    host_fail_if(g, LLVMBuildICmp(g->b, LLVMIntNE, bits, gen_i32(g, mask), ""), (int32_t)row);
}

/* The row for a CPU of that level. */
static uint32_t row_of(const HostChoice *ch, uint32_t level)
{
    uint32_t row = 0;

    for (uint32_t v = 0; v < ch->nvariants; v++)
        if (plan_at(ch->plan, v * ch->nbuckets)->level <= level)
            row = v + 1;
    return row;
}

static void define_which(Gen *g, HostChoice *ch)
{
    LLVMTypeRef  t = LLVMFunctionType(g->i32, NULL, 0, false);
    uint32_t     top = plan_at(ch->plan, (ch->nvariants - 1) * ch->nbuckets)->level;
    LLVMValueRef leaf1, ext, leaf7, xcr0;

    ch->which = host_function(g, "__which", t, LLVMInternalLinkage);
    gen_begin(g, ch->which, "which");
    if (top >= 2) {
        leaf1 = cpuid(g, 1, 2);
        need(g, leaf1, LEAF1_V2, row_of(ch, 1));
        ext = cpuid(g, 0x80000001, 2);
        need(g, ext, EXT_V2, row_of(ch, 1));
        if (top >= 3) {
            need(g, leaf1, LEAF1_V3, row_of(ch, 2));
            need(g, ext, EXT_V3, row_of(ch, 2));
            xcr0 = xgetbv(g); /* OSXSAVE is known by now */
            need(g, xcr0, XCR0_V3, row_of(ch, 2));
            leaf7 = cpuid(g, 7, 1); /* every CPU with all of the above has it */
            need(g, leaf7, LEAF7_V3, row_of(ch, 2));
            if (top >= 4) {
                need(g, leaf7, LEAF7_V4, row_of(ch, 3));
                need(g, xcr0, XCR0_V4, row_of(ch, 3));
            }
        }
    }
    LLVMBuildRet(g->b, gen_i32(g, row_of(ch, top)));
    gen_end(g);
}

/* ---- tables ----------------------------------------------------------------------------------------- */

static LLVMTypeRef run_type(Gen *g)
{
    LLVMTypeRef in[3] = {g->ptr, g->ptr, g->ptr};

    return LLVMFunctionType(g->i32, in, 3, false);
}

/* table[which() * width + column], both of constants. */
static LLVMValueRef pick(Gen *g, const HostChoice *ch, LLVMValueRef table, uint32_t width,
                         LLVMValueRef column)
{
    LLVMTypeRef  t = LLVMFunctionType(g->i32, NULL, 0, false);
    LLVMValueRef at = column;

    if (ch->which) {
        at = LLVMBuildCall2(g->b, t, ch->which, NULL, 0, "");
        at = LLVMBuildAdd(g->b, LLVMBuildMul(g->b, at, gen_i32(g, width), ""), column, "");
    }
    at = LLVMBuildZExtOrBitCast(g->b, at, g->size, "");
    return LLVMBuildLoad2(g->b, g->ptr, LLVMBuildGEP2(g->b, g->ptr, table, &at, 1, ""), "");
}

/* All run functions; the row of a CPU that does not fit comes first, if the CPU is asked. */
static LLVMValueRef run_table(Gen *g, const HostChoice *ch)
{
    uint32_t      n = ch->nvariants * ch->nbuckets, first = ch->which ? ch->nbuckets : 0;
    LLVMValueRef *at = NEW_ARRAY(g->a, LLVMValueRef, n + first);

    for (uint32_t i = 0; i < n + first; i++)
        at[i] = i < first ? ch->no_run : ch->run[i - first];
    return host_array(g, n + first, at);
}

static LLVMValueRef call_run(Gen *g, LLVMValueRef fn, LLVMValueRef at, unsigned first)
{
    LLVMValueRef args[3];

    for (unsigned i = 0; i < 3; i++)
        args[i] = LLVMGetParam(fn, first + i);
    return LLVMBuildCall2(g->b, run_type(g), at, args, 3, "");
}

/* ---- the functions ------------------------------------------------------------------------------------ */

void choice_begin(Gen *g, HostChoice *ch)
{
    const Plan   *p = ch->plan;
    LLVMValueRef *names = NEW_ARRAY(g->a, LLVMValueRef, p->ndims + 1);
    LLVMValueRef *sizes = NEW_ARRAY(g->a, LLVMValueRef, p->ndims * ch->nbuckets + 1);

    if (p->level)
        define_which(g, ch);
    ch->no_run = host_function(g, "__no_cpu", run_type(g), LLVMInternalLinkage);
    gen_begin(g, ch->no_run, "no_cpu");
    LLVMBuildRet(g->b, gen_i32(g, TVMCC_E_CPU));
    gen_end(g);
    if (!p->ndims)
        return;
    for (uint32_t k = 0; k < p->ndims; k++)
        names[k] = host_text(g, p->dims[k].name);
    for (uint32_t b = 0; b < ch->nbuckets; b++)
        for (uint32_t k = 0; k < p->ndims; k++)
            sizes[b * p->ndims + k] = gen_int(g, g->i64, plan_at(p, b)->dims[k].size);
    ch->names = host_array(g, p->ndims, names);
    ch->sizes = host_array(g, p->ndims * ch->nbuckets, sizes);
    ch->infos = NEW_ARRAY(g->a, LLVMValueRef, ch->nvariants);
    ch->entries = NEW_ARRAY(g->a, LLVMValueRef *, ch->nvariants);
    for (uint32_t v = 0; v < ch->nvariants; v++) { /* filled in by choice_bucket_info */
        ch->entries[v] = NEW_ARRAY(g->a, LLVMValueRef, ch->nbuckets);
        for (uint32_t b = 0; b < ch->nbuckets; b++)
            ch->entries[v][b] = LLVMConstNull(g->ptr);
        ch->infos[v] = host_array(g, ch->nbuckets, ch->entries[v]);
    }
}

HostBuckets choice_buckets(Gen *g, const HostChoice *ch, uint32_t variant)
{
    (void)g;
    if (!ch->plan->ndims)
        return (HostBuckets){0};
    return (HostBuckets){ch->nbuckets, ch->plan->ndims, ch->infos[variant], ch->names, ch->sizes};
}

void choice_bucket_info(Gen *g, HostChoice *ch, uint32_t plan, LLVMValueRef info)
{
    uint32_t v = plan / ch->nbuckets;

    ch->entries[v][plan % ch->nbuckets] = info;
    LLVMSetInitializer(ch->infos[v], LLVMConstArray2(g->ptr, ch->entries[v], ch->nbuckets));
}

LLVMValueRef choice_run_ex(Gen *g, HostChoice *ch)
{
    LLVMValueRef fn = host_function(g, "_run_ex", run_type(g), LLVMExternalLinkage), at;

    gen_begin(g, fn, "run_ex");
    at = pick(g, ch, run_table(g, ch), ch->nbuckets, gen_i32(g, ch->nbuckets - 1));
    LLVMBuildRet(g->b, call_run(g, fn, at, 0));
    gen_end(g);
    return fn;
}

void choice_run_bucket(Gen *g, HostChoice *ch)
{
    LLVMTypeRef  in[4] = {g->i32, g->ptr, g->ptr, g->ptr};
    LLVMTypeRef  t = LLVMFunctionType(g->i32, in, 4, false);
    LLVMValueRef fn = host_function(g, "_run_bucket", t, LLVMExternalLinkage), at, b;

    gen_begin(g, fn, "run_bucket");
    b = LLVMGetParam(fn, 0);
    host_fail_if(g, LLVMBuildICmp(g->b, LLVMIntUGE, b, gen_i32(g, ch->nbuckets), ""),
                 TVMCC_E_SHAPE);
    at = pick(g, ch, run_table(g, ch), ch->nbuckets, b);
    LLVMBuildRet(g->b, call_run(g, fn, at, 1));
    gen_end(g);
}

void choice_info(Gen *g, HostChoice *ch)
{
    LLVMTypeRef   t = LLVMFunctionType(g->ptr, NULL, 0, false);
    LLVMValueRef  fn = host_function(g, "_info", t, LLVMExternalLinkage);
    LLVMValueRef *at = NEW_ARRAY(g->a, LLVMValueRef, ch->nvariants + 1);
    uint32_t      n = 0;

    if (ch->which)
        at[n++] = ch->no_info;
    for (uint32_t v = 0; v < ch->nvariants; v++)
        at[n++] = ch->info[(v + 1) * ch->nbuckets - 1];
    gen_begin(g, fn, "info");
    LLVMBuildRet(g->b, pick(g, ch, host_array(g, n, at), 1, gen_i32(g, 0)));
    gen_end(g);
}

/* i32 select(dims): unrolled, as buckets are few. */
void choice_select(Gen *g, HostChoice *ch)
{
    LLVMTypeRef  t = LLVMFunctionType(g->i32, &g->ptr, 1, false);
    LLVMValueRef fn = host_function(g, "_select", t, LLVMExternalLinkage), dims;
    uint32_t     n = ch->plan->ndims;

    gen_begin(g, fn, "select");
    dims = LLVMGetParam(fn, 0);
    host_fail_if(g, host_is_null(g, dims), TVMCC_E_NULL);
    for (uint32_t b = 0; b < ch->nbuckets; b++) {
        const Plan  *p = plan_at(ch->plan, b);
        LLVMValueRef holds = LLVMConstInt(g->i1, 1, false);

        for (uint32_t k = 0; k < n; k++) {
            LLVMValueRef i = gen_i32(g, k), v, size = gen_int(g, g->i64, p->dims[k].size);

            /* unsigned: a negative size fits nowhere */
            v = LLVMBuildLoad2(g->b, g->i64, LLVMBuildGEP2(g->b, g->i64, dims, &i, 1, ""), "");
            v = LLVMBuildICmp(g->b, LLVMIntULE, v, size, "");
            holds = LLVMBuildAnd(g->b, holds, v, "");
        }
        host_fail_if(g, holds, (int32_t)b);
    }
    LLVMBuildRet(g->b, gen_i32(g, TVMCC_E_SHAPE));
    gen_end(g);
}
