/* From a module to bytes: LLVM's target machine, a short pipeline, an object or a text.
 *
 * Schedules have arranged the loops, so the pipeline only cleans up: registers for allocas, common
 * addresses, invariants out of loops.  It neither unrolls nor vectorises, keeps strict floating
 * point, and costs about half of LLVM's own -O1.  Nothing of the
 * machine, the time or the folder enters the bytes. */
#include "backends/llvm/llvm.h"

#include <llvm-c/Analysis.h>
#include <llvm-c/Error.h>
#include <llvm-c/ErrorHandling.h>
#include <llvm-c/Support.h>
#include <llvm-c/Transforms/PassBuilder.h>
#include <pthread.h>
#include <string.h>

static void fatal(const char *reason)
{
    BUG("LLVM: %s", reason);
}

static void init_once(void)
{
    LLVMInstallFatalErrorHandler(fatal);
#define CPU_FAMILY(name)                \
    LLVMInitialize##name##TargetInfo(); \
    LLVMInitialize##name##Target();     \
    LLVMInitialize##name##TargetMC();   \
    LLVMInitialize##name##AsmPrinter();
    CPU_FAMILY(X86)
    CPU_FAMILY(AArch64)
    CPU_FAMILY(ARM)
    CPU_FAMILY(RISCV)
    CPU_FAMILY(WebAssembly)
    CPU_FAMILY(NVPTX)
    CPU_FAMILY(AMDGPU)
#undef CPU_FAMILY
    LLVMInitializeX86AsmParser(); /* for CPUID */
    /* Tiles are written in the order in which registers suffice.  LLVM's machine scheduler
     * estimates the latency across iterations and moves a whole unrolled step's broadcasts to its
     * front, which spills: such tiles ran at half their speed.  What threads of a GPU share is less
     * than 4 GiB. */
    static const char *const options[] = {"tvmcc", "-enable-misched=false", "-nvptx-short-ptr"};
    LLVMParseCommandLineOptions((int)COUNT(options), options, NULL);
}

void llvm_init(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    pthread_once(&once, init_once);
}

/* Systems whose programs nobody loads: code is where the linker put it. */
static bool has_loader(const Target *t)
{
    return (!strstr(t->triple, "-none-") || strstr(t->triple, "linux")) &&
           !str_starts(t->triple, "wasm");
}

/* NEON by name where the CPU or the triple implies it: Debian's LLVM takes it out of ARMv7-A. */
static const char *machine_features(Ctx *c, const Target *t)
{
    bool neon =
        target_arch(t) == ARCH_ARM && target_caps(t) & CAP_VEC && !str_starts(t->mcpu, "cortex-m");

    return neon ? arena_printf(c->scratch, "%s%s+neon", t->features, *t->features ? "," : "")
                : t->features;
}

LLVMTargetMachineRef llvm_machine(Ctx *c, const Target *t, uint32_t opt_level, bool pic)
{
    static const LLVMCodeGenOptLevel levels[] = {LLVMCodeGenLevelNone, LLVMCodeGenLevelLess,
                                                 LLVMCodeGenLevelDefault, LLVMCodeGenLevelDefault};
    LLVMTargetMachineOptionsRef      o;
    LLVMTargetMachineRef             tm;
    LLVMTargetRef                    target;
    char                            *why = NULL;

    llvm_init();
    if (LLVMGetTargetFromTriple(t->triple, &target, &why)) {
        error_at(c, E_CODEGEN, NO_LOC, "'%s': %s", t->triple, why);
        LLVMDisposeMessage(why);
        return NULL;
    }
    o = LLVMCreateTargetMachineOptions();
    LLVMTargetMachineOptionsSetCPU(o, t->mcpu);
    LLVMTargetMachineOptionsSetFeatures(o, machine_features(c, t));
    if (*t->abi)
        LLVMTargetMachineOptionsSetABI(o, t->abi);
    LLVMTargetMachineOptionsSetCodeGenOptLevel(o, levels[opt_level > 3 ? 3 : opt_level]);
    LLVMTargetMachineOptionsSetRelocMode(o, pic && has_loader(t) ? LLVMRelocPIC : LLVMRelocStatic);
    tm = LLVMCreateTargetMachineWithOptions(target, t->triple, o);
    LLVMDisposeTargetMachineOptions(o);
    if (!tm)
        error_at(c, E_CODEGEN, NO_LOC, "no target machine for '%s'", t->text);
    return tm;
}

/* COFF objects that use floats refer to this symbol of the C run-time library. */
static void windows_symbols(Gen *g)
{
    LLVMValueRef v;

    if (!strstr(g->t->triple, "windows") || !LLVMGetFirstFunction(g->mod))
        return;
    v = LLVMAddGlobal(g->mod, g->i32, "_fltused");
    LLVMSetInitializer(v, LLVMConstNull(g->i32));
    LLVMSetGlobalConstant(v, true);
    LLVMSetLinkage(v, LLVMLinkOnceODRLinkage);
}

static void optimise(Gen *g, uint32_t level)
{
    static const char *const pipelines[] = {
        "function(sroa)",
        "function(sroa<modify-cfg>,early-cse<memssa>,instcombine<no-verify-fixpoint>,"
        "simplifycfg,loop-mssa(licm),early-cse<memssa>),globaldce",
        "function(sroa<modify-cfg>,early-cse<memssa>,instcombine<no-verify-fixpoint>,"
        "simplifycfg,loop-mssa(licm),gvn,dse,loop-vectorize,instcombine<no-verify-fixpoint>,"
        "simplifycfg,loop-mssa(licm)),globaldce",
    };
    LLVMPassBuilderOptionsRef o = LLVMCreatePassBuilderOptions();
    LLVMErrorRef              e;

    e = LLVMRunPasses(g->mod, pipelines[level > 2 ? 2 : level], g->tm, o);
    LLVMDisposePassBuilderOptions(o);
    if (e) {
        char *why = LLVMGetErrorMessage(e);

        BUG("the pass pipeline: %s", why);
    }
}

static void verify(Gen *g)
{
    char *why = NULL;

    if (LLVMVerifyModule(g->mod, LLVMReturnStatusAction, &why))
        BUG("generated code does not verify: %s", why);
    LLVMDisposeMessage(why);
}

/* -Os: short instructions and jumps; loops are not written out or aligned. */
static void ask_for_size(Gen *g)
{
    for (LLVMValueRef f = LLVMGetFirstFunction(g->mod); f; f = LLVMGetNextFunction(f))
        if (LLVMGetFirstBasicBlock(f))
            gen_attr(g, f, LLVMAttributeFunctionIndex, "optsize", 0);
}

/* The result, or NULL. */
static LLVMMemoryBufferRef emit(Gen *g, uint32_t opt_level, EmitKind kind)
{
    LLVMCodeGenFileType type = kind == EMIT_ASM ? LLVMAssemblyFile : LLVMObjectFile;
    LLVMMemoryBufferRef buf = NULL;
    char               *why = NULL;

    windows_symbols(g);
    if (g->t->small)
        ask_for_size(g);
    verify(g);
    optimise(g, opt_level);
    if (kind == EMIT_LL) {
        char *text = LLVMPrintModuleToString(g->mod);

        buf = LLVMCreateMemoryBufferWithMemoryRangeCopy(text, strlen(text), "ll");
        LLVMDisposeMessage(text);
        return buf;
    }
    if (!LLVMTargetMachineEmitToMemoryBuffer(g->tm, g->mod, type, &why, &buf))
        return buf;
    if (!g->complaint)
        g->complaint = why;
    else
        LLVMDisposeMessage(why);
    return NULL;
}

static bool take(Gen *g, LLVMMemoryBufferRef buf, Bytes *out)
{
    if (!buf || g->complaint) {
        error_at(g->c, E_CODEGEN, NO_LOC, "'%s': %s", g->t->text,
                 g->complaint ? g->complaint : "no code");
    } else {
        out->n = LLVMGetBufferSize(buf);
        char *copy = arena_alloc(g->c->arena, out->n + 1); /* texts end in NUL */
        WRITTEN_BY_LIBRARY(LLVMGetBufferStart(buf), out->n);
        out->at = memcpy(copy, LLVMGetBufferStart(buf), out->n);
    }
    if (buf)
        LLVMDisposeMemoryBuffer(buf);
    return !g->complaint && buf;
}

bool llvm_emit(Gen *g, uint32_t opt_level, EmitKind kind, Bytes *out)
{
    return take(g, emit(g, opt_level, kind), out);
}

/* ---- plans and units ----------------------------------------------------------------------------- */

/* What the entry functions are compiled for: where the CPU is asked, any of the architecture. */
static const Target *entry_target(Ctx *c, const Plan *p)
{
    Target *t;

    if (!p->level)
        return p->target;
    t = DUP_ARRAY(c->arena, p->target, 1);
    t->mcpu = "x86-64";
    t->features = "";
    return t;
}

static bool llvm_codegen(Ctx *c, const Plan *p, const CodegenOptions *o, const CodegenInfo *info,
                         EmitKind kind, Bytes *out)
{
    const char *prefix = arena_printf(c->scratch, "%s__", o->entry);
    Gen        *g;
    bool        ok;

    if (kind == EMIT_SOURCE)
        return error_at(c, E_CODEGEN, NO_LOC, "the LLVM backend has no source text");
    if (p->level && !o->host_only)
        return error_at(c, E_UNSUPPORTED, NO_LOC,
                        "code for several CPUs can be had as ELF objects only");
    if (!(g = gen_new(c, p->tir, entry_target(c, p), o->entry, prefix, o->opt_level, o->pic)))
        return false;
    g->host_only = o->host_only;
    ok = true;
    for (const Plan *q = p; q && ok; q = q->next) {
        g->tir = q->tir;
        ok = gen_functions(g);
    }
    if (ok)
        gen_host(g, o->host, info->header);
    ok = ok && llvm_emit(g, o->opt_level, kind, out);
    gen_free(g);
    return ok;
}

static bool llvm_unit(Ctx *c, const TirModule *m, const Target *t, const CodegenOptions *o,
                      Bytes *out)
{
    Gen *g = gen_new(c, m, t, "f", "", o->opt_level, o->pic);
    bool ok;

    if (!g)
        return false;
    ok = gen_functions(g) && llvm_emit(g, o->opt_level, EMIT_OBJECT, out);
    gen_free(g);
    return ok;
}

const Backend backend_llvm = {
    .name = "llvm",
    .parse_target = llvm_parse_target,
    .list_targets = llvm_list_targets,
    .codegen = llvm_codegen,
    .unit = llvm_unit,
    .jit = llvm_jit,
    .jit_load = llvm_jit_load,
    .jit_symbol = llvm_jit_symbol,
    .jit_free = llvm_jit_free,
};
