/* Entry points that ask which CPU runs them, and choose between the plans of one product: by CPU,
 * by shape bucket.
 *
 *     which()              1 + the highest variant that this CPU runs, 0: none
 *     noted(params)        the same, as the arena has it from the run before
 *     run_ex(..)           table[noted(..)][last](..)
 *     run_bucket(b, ..)    table[noted(..)][b](..)
 *     info()               infos[which()]: what it gives asks no more
 *     select(dims)         the first bucket whose sizes hold dims
 *
 * Row 0 of the tables is for a CPU that no variant fits: TVMCC_E_CPU.  CPUID traps where a
 * hypervisor runs: a microsecond each, up to 70 where that is itself a guest, and there is no
 * writable data to remember the answer.  So it is noted in the first bytes of the caller's arena,
 * which the plan leaves free (CPU_NOTE_BYTES): two words that depend on what is asked for, so that
 * whatever else lies there makes the run ask again. */
#include "backends/llvm/llvm.h"

#include "tvmcc/abi.h"

#include <stdio.h>
#include <string.h>

/* ---- which CPU ------------------------------------------------------------------------------------ */

void choice_any_cpu(Gen *g, const HostChoice *ch, LLVMValueRef fn)
{
    static const char *const attr[2][2] = {{"target-cpu", "x86-64"}, {"target-features", "+sse2"}};

    for (size_t i = 0; ch->which && i < COUNT(attr); i++)
        LLVMAddAttributeAtIndex(fn, (LLVMAttributeIndex)LLVMAttributeFunctionIndex,
                                LLVMCreateStringAttribute(g->lc, attr[i][0],
                                                          (unsigned)strlen(attr[i][0]), attr[i][1],
                                                          (unsigned)strlen(attr[i][1])));
}

static CpuNeeds needs_of(const HostChoice *ch, uint32_t variant)
{
    return target_needs(plan_at(ch->plan, variant * ch->nbuckets)->target);
}

static void define_which(Gen *g, HostChoice *ch)
{
    LLVMTypeRef  t = LLVMFunctionType(g->i32, NULL, 0, false);
    LLVMValueRef word[CPUID_WORDS];

    ch->which = host_function(g, "__which", t, LLVMInternalLinkage);
    choice_any_cpu(g, ch, ch->which);
    gen_begin(g, ch->which, "which");
    gen_cpuid_words(g, word);
    for (uint32_t v = ch->nvariants; v-- > 0;) {
        CpuNeeds needs = needs_of(ch, v);

        host_fail_if(g, gen_cpu_has(g, &needs, word), (int32_t)v + 1);
    }
    LLVMBuildRet(g->b, gen_i32(g, 0));
    gen_end(g);
}

/* The two words of a note for row 0. */
static void note_of(Gen *g, const HostChoice *ch, LLVMValueRef word[2])
{
    Sha256Ctx h;
    Sha256    sum;
    uint64_t  w[2] = {0};

    sha256_init(&h);
    for (uint32_t v = 0; v < ch->nvariants; v++) {
        CpuNeeds needs = needs_of(ch, v);
        char     line[16 * CPUID_WORDS] = "cpu";
        int      n = 3;

        for (uint32_t i = 0; i < CPUID_WORDS; i++)
            n += snprintf(line + n, sizeof line - (size_t)n, " %08x", needs.word[i]);
        sha256_add(&h, line, (size_t)n);
    }
    sum = sha256_end(&h);
    for (uint32_t i = 0; i < 16; i++)
        w[i / 8] = w[i / 8] << 8 | sum.b[i];
    for (uint32_t i = 0; i < 2; i++)
        word[i] = LLVMConstInt(g->i64, w[i], false);
}

/* Go on at `otherwise` if cond. */
static void leave_if(Gen *g, LLVMValueRef cond, LLVMBasicBlockRef otherwise)
{
    LLVMBasicBlockRef on = gen_bb(g, "on");

    LLVMBuildCondBr(g->b, cond, otherwise, on);
    LLVMPositionBuilderAtEnd(g->b, on);
}

/* i32 noted(params): run_ex itself refuses params and arenas that are wrong. */
static void define_noted(Gen *g, HostChoice *ch)
{
    struct Host      *h = g->host;
    LLVMTypeRef       t = LLVMFunctionType(g->i32, &g->ptr, 1, false), one_t;
    LLVMValueRef      params, arena, note[2], at[2], eight = gen_i32(g, 8), row, n, low;
    LLVMBasicBlockRef only_ask, ask, write;

    ch->noted = host_function(g, "__noted", t, LLVMInternalLinkage);
    choice_any_cpu(g, ch, ch->noted);
    gen_begin(g, ch->noted, "noted");
    only_ask = gen_bb(g, "only_ask");
    ask = gen_bb(g, "ask");
    params = LLVMGetParam(ch->noted, 0);
    leave_if(g, host_is_null(g, params), only_ask);
    n = host_get(g, h->params_t, params, P_STRUCT_BYTES);
    leave_if(
        g, LLVMBuildICmp(g->b, LLVMIntULT, n, gen_i32(g, g->t->pointer_bits == 64 ? 112 : 60), ""),
        only_ask);
    arena = host_get(g, h->params_t, params, P_ARENA);
    leave_if(g, host_is_null(g, arena), only_ask);
    n = host_get(g, h->params_t, params, P_ARENA_BYTES);
    leave_if(g, LLVMBuildICmp(g->b, LLVMIntULT, n, gen_int(g, g->size, CPU_NOTE_BYTES), ""),
             only_ask);
    low =
        LLVMBuildAnd(g->b, LLVMBuildPtrToInt(g->b, arena, g->size, ""), gen_int(g, g->size, 7), "");
    leave_if(g, LLVMBuildICmp(g->b, LLVMIntNE, low, LLVMConstNull(g->size), ""), only_ask);

    note_of(g, ch, note);
    at[0] = arena;
    at[1] = LLVMBuildGEP2(g->b, g->i8, arena, &eight, 1, "");
    row = LLVMBuildSub(g->b, LLVMBuildLoad2(g->b, g->i64, at[1], ""), note[1], "");
    leave_if(g,
             LLVMBuildICmp(g->b, LLVMIntNE, LLVMBuildLoad2(g->b, g->i64, at[0], ""), note[0], ""),
             ask);
    n = LLVMBuildSub(g->b, row, LLVMConstInt(g->i64, 1, false), ""); /* row 0 is never noted */
    leave_if(g, LLVMBuildICmp(g->b, LLVMIntUGE, n, LLVMConstInt(g->i64, ch->nvariants, false), ""),
             ask);
    LLVMBuildRet(g->b, LLVMBuildTrunc(g->b, row, g->i32, ""));

    one_t = LLVMFunctionType(g->i32, NULL, 0, false);
    LLVMPositionBuilderAtEnd(g->b, ask);
    write = gen_bb(g, "write");
    row = LLVMBuildCall2(g->b, one_t, ch->which, NULL, 0, "");
    LLVMBuildCondBr(g->b, LLVMBuildICmp(g->b, LLVMIntNE, row, gen_i32(g, 0), ""), write, only_ask);
    LLVMPositionBuilderAtEnd(g->b, write);
    LLVMBuildStore(g->b, note[0], at[0]);
    LLVMBuildStore(g->b, LLVMBuildAdd(g->b, note[1], LLVMBuildZExt(g->b, row, g->i64, ""), ""),
                   at[1]);
    LLVMBuildRet(g->b, row);
    LLVMPositionBuilderAtEnd(g->b, only_ask);
    LLVMBuildRet(g->b, LLVMBuildCall2(g->b, one_t, ch->which, NULL, 0, ""));
    gen_end(g);
}

/* ---- tables ----------------------------------------------------------------------------------------- */

static LLVMTypeRef run_type(Gen *g)
{
    LLVMTypeRef in[3] = {g->ptr, g->ptr, g->ptr};

    return LLVMFunctionType(g->i32, in, 3, false);
}

/* table[row * width + column], both of constants; without params the CPU is asked. */
static LLVMValueRef pick(Gen *g, const HostChoice *ch, LLVMValueRef params, LLVMValueRef table,
                         uint32_t width, LLVMValueRef column)
{
    LLVMTypeRef  t = LLVMFunctionType(g->i32, &g->ptr, params != NULL, false);
    LLVMValueRef at = column;

    if (ch->which) {
        at = LLVMBuildCall2(g->b, t, params ? ch->noted : ch->which, &params, params != NULL, "");
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

    if (plan_asks_cpu(p)) {
        define_which(g, ch);
        define_noted(g, ch);
    }
    ch->no_run = host_function(g, "__no_cpu", run_type(g), LLVMInternalLinkage);
    choice_any_cpu(g, ch, ch->no_run);
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

    choice_any_cpu(g, ch, fn);
    gen_begin(g, fn, "run_ex");
    at = pick(g, ch, LLVMGetParam(fn, 2), run_table(g, ch), ch->nbuckets,
              gen_i32(g, ch->nbuckets - 1));
    LLVMBuildRet(g->b, call_run(g, fn, at, 0));
    gen_end(g);
    return fn;
}

void choice_run_bucket(Gen *g, HostChoice *ch)
{
    LLVMTypeRef  in[4] = {g->i32, g->ptr, g->ptr, g->ptr};
    LLVMTypeRef  t = LLVMFunctionType(g->i32, in, 4, false);
    LLVMValueRef fn = host_function(g, "_run_bucket", t, LLVMExternalLinkage), at, b;

    choice_any_cpu(g, ch, fn);
    gen_begin(g, fn, "run_bucket");
    b = LLVMGetParam(fn, 0);
    host_fail_if(g, LLVMBuildICmp(g->b, LLVMIntUGE, b, gen_i32(g, ch->nbuckets), ""),
                 TVMCC_E_SHAPE);
    at = pick(g, ch, LLVMGetParam(fn, 3), run_table(g, ch), ch->nbuckets, b);
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
    choice_any_cpu(g, ch, fn);
    gen_begin(g, fn, "info");
    LLVMBuildRet(g->b, pick(g, ch, NULL, host_array(g, n, at), 1, gen_i32(g, 0)));
    gen_end(g);
}

/* i32 select(dims): unrolled, as buckets are few. */
void choice_select(Gen *g, HostChoice *ch)
{
    LLVMTypeRef  t = LLVMFunctionType(g->i32, &g->ptr, 1, false);
    LLVMValueRef fn = host_function(g, "_select", t, LLVMExternalLinkage), dims;
    uint32_t     n = ch->plan->ndims;

    choice_any_cpu(g, ch, fn);
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
