/* Kernels of GPUs: each as text of LLVM IR, and that text as code.
 *
 * The text is all that code depends on beside the GPU and LLVM, so it is what the cache goes by,
 * and it is compiled in a context of its own, by any thread.  Schedules have arranged the loops:
 * LLVM unrolls what they marked and what is small, and hoists what stands still; unrolling more, as
 * LLVM's own -O3 does, makes kernels spill. */
#include "backends/common/device.h"
#include "backends/llvm/llvm.h"

#include <llvm-c/Analysis.h>
#include <llvm-c/Error.h>
#include <llvm-c/IRReader.h>
#include <llvm-c/Transforms/PassBuilder.h>
#include <stdlib.h>
#include <string.h>

enum { FIRST_DOT = 61, FIRST_WARP = 80 }; /* sm_61, sm_80 */

static const AmdGpu gpus[] = {
#define GPU(name, warp, caps) {name, warp, caps},
#include "backends/llvm/gpu.def"
#undef GPU
    {0},
};

const AmdGpu *amd_gpu(const char *name)
{
    const AmdGpu *g = gpus;

    while (name && g->name && strcmp(g->name, name) != 0)
        g++;
    return name ? g : gpus;
}

uint32_t gpu_caps(Arch arch, const char *gpu)
{
    uint32_t      caps = CAP_FMA | CAP_F16C | CAP_F16D | CAP_F64 | CAP_FP | CAP_ROUND;
    unsigned long sm = arch == ARCH_NVPTX ? strtoul(gpu + strlen("sm_"), NULL, 10) : 0;

    if (arch == ARCH_AMDGPU)
        caps |= amd_gpu(gpu)->caps;
    return caps | (sm >= FIRST_DOT ? CAP_DOT : 0) | (sm >= FIRST_WARP ? CAP_WARP : 0);
}

void gpu_functions(Ctx *c, Target *t, Arch arch)
{
    const char *gpu;
    uint32_t    caps = ~0u;
    bool        halves = false; /* a warp is two steps, whose threads exchange nothing */

    t->has_round = t->has_sqrt = t->no_libm = true;
    for (uint32_t i = 0; (gpu = device_arch(c, t, i)); i++) {
        caps &= gpu_caps(arch, gpu); /* one text for all */
        halves = halves || (arch == ARCH_AMDGPU && amd_gpu(gpu)->warp < t->warp);
    }
    set_intrin_ops(t, arch, caps);
    for (uint32_t id = 0; id < INTRIN_COUNT; id++) {
        const Intrin *row = intrin_of(c, (IntrinId)id);
        if (row->warp && (t->warp != warp_threads(row->warp) || (row->lanes && halves)))
            t->intrin_ops[id] = 0;
    }
}

bool llvm_kernel(Ctx *c, const char *triple, const char *gpu, const Func *f, StrBuf *out)
{
    Target    t = *f->target;
    TirModule none = {0};

    t.triple = triple;
    t.mcpu = gpu;
    Gen *g = gen_new(c, &none, &t, "kernel", "", 2, true);
    if (!g)
        return false;
    bool ok = gen_kernel(g, f);
    if (ok) {
        char *why = NULL, *text;

        if (LLVMVerifyModule(g->mod, LLVMReturnStatusAction, &why))
            BUG("a kernel does not verify: %s", why);
        LLVMDisposeMessage(why);
        text = LLVMPrintModuleToString(g->mod);
        str_add(out, text);
        LLVMDisposeMessage(text);
    }
    gen_free(g);
    return ok;
}

/* ---- text to code -------------------------------------------------------------------------------- */

typedef struct {
    Arena               *a;
    const char          *why; /* the first error; NULL: none so far */
    LLVMContextRef       lc;
    LLVMModuleRef        mod;
    LLVMTargetMachineRef tm;
} Compile;

static void note(Compile *k, char *message)
{
    if (!k->why)
        k->why = arena_printf(k->a, "%s", message ? message : "LLVM does not say");
    LLVMDisposeMessage(message);
}

static void complain(LLVMDiagnosticInfoRef info, void *user)
{
    if (LLVMGetDiagInfoSeverity(info) == LLVMDSError)
        note(user, LLVMGetDiagInfoDescription(info));
}

static bool begin(Compile *k, const char *triple, const char *gpu, const char *text)
{
    LLVMTargetRef target;
    char         *why = NULL;

    k->lc = LLVMContextCreate();
    LLVMContextSetDiagnosticHandler(k->lc, complain, k);
    if (LLVMParseIRInContext(
            k->lc, LLVMCreateMemoryBufferWithMemoryRange(text, strlen(text), "kernel", true),
            &k->mod, &why) ||
        LLVMGetTargetFromTriple(triple, &target, &why)) {
        note(k, why);
        return false;
    }
    k->tm = LLVMCreateTargetMachine(target, triple, gpu, "", LLVMCodeGenLevelDefault, LLVMRelocPIC,
                                    LLVMCodeModelDefault);
    return true;
}

static void optimise(Compile *k)
{
    static const char pipeline[] =
        "always-inline,function(sroa<modify-cfg>,early-cse<memssa>,"
        "instcombine<no-verify-fixpoint>,simplifycfg,loop-simplify,lcssa,loop-mssa(licm),"
        "loop-unroll<O2;no-partial;no-runtime>,sroa<modify-cfg>,early-cse<memssa>,"
        "instcombine<no-verify-fixpoint>,"
        "simplifycfg,loop-mssa(licm),gvn,dse,instcombine<no-verify-fixpoint>,simplifycfg),"
        "globaldce";
    LLVMPassBuilderOptionsRef o = LLVMCreatePassBuilderOptions();
    LLVMErrorRef              e = LLVMRunPasses(k->mod, pipeline, k->tm, o);

    LLVMDisposePassBuilderOptions(o);
    if (e)
        BUG("the passes of a kernel: %s", LLVMGetErrorMessage(e));
}

static void emit(Compile *k, EmitKind kind, Bytes *out)
{
    LLVMCodeGenFileType type = kind == EMIT_OBJECT ? LLVMObjectFile : LLVMAssemblyFile;
    LLVMMemoryBufferRef buf = NULL;
    char               *why = NULL;

    if (kind == EMIT_LL) {
        char *text = LLVMPrintModuleToString(k->mod);

        buf = LLVMCreateMemoryBufferWithMemoryRangeCopy(text, strlen(text), "ll");
        LLVMDisposeMessage(text);
    } else if (LLVMTargetMachineEmitToMemoryBuffer(k->tm, k->mod, type, &why, &buf)) {
        note(k, why);
        return;
    }
    out->n = LLVMGetBufferSize(buf);
    WRITTEN_BY_LIBRARY(LLVMGetBufferStart(buf), out->n);
    char *copy = arena_alloc(k->a, out->n + 1);
    memcpy(copy, LLVMGetBufferStart(buf), out->n);
    copy[out->n] = 0;
    out->at = (const uint8_t *)copy;
    LLVMDisposeMemoryBuffer(buf);
}

bool llvm_compile_kernel(Arena *a, const char *triple, const char *gpu, EmitKind kind,
                         const char *text, Bytes *out, const char **log)
{
    Compile k = {.a = a};

    *out = (Bytes){0};
    llvm_init();
    if (begin(&k, triple, gpu, text)) {
        optimise(&k);
        emit(&k, kind, out);
        LLVMDisposeTargetMachine(k.tm);
    }
    if (k.mod)
        LLVMDisposeModule(k.mod);
    LLVMContextDispose(k.lc);
    *log = k.why;
    return !k.why;
}

/* ---- all kernels --------------------------------------------------------------------------------- */

static bool kernel_text(Ctx *c, const void *user, const Target *t, const Func *f, StrBuf *out)
{
    const LlvmGpu *g = user;

    return llvm_kernel(c, g->triple, device_least_arch(c, t), f, out);
}

static bool compile_kernel(const void *user, Arena *a, const char *gpu, const char *text,
                           Bytes *out, const char **log)
{
    const LlvmGpu *g = user;
    Bytes          code;

    if (!llvm_compile_kernel(a, g->triple, gpu, g->kind, text, &code, log))
        return false;
    *out = code;
    if (g->kind != EMIT_OBJECT)
        return true;
    *log = "its object cannot be linked";
    return elf_code_object(diags_new(a), a, code, out);
}

static bool is_text(const void *user, const char *gpu)
{
    const LlvmGpu *g = user;

    (void)gpu;
    return g->kind == EMIT_ASM;
}

bool llvm_gpu_images(Ctx *c, const LlvmGpu *g, const TirModule *m, const Target *t,
                     const CodegenOptions *o, DeviceImages *out)
{
    const DeviceCompiler compiler = {.name = g->name,
                                     .version = LLVM_VERSION_STRING,
                                     .user = g,
                                     .text = kernel_text,
                                     .compile = compile_kernel,
                                     .is_text = is_text};

    return device_images(c, &compiler, m, t, o, out);
}

bool llvm_gpu_source(Ctx *c, const LlvmGpu *g, const TirModule *m, StrBuf *out)
{
    for (uint32_t i = 0; i < m->nfuncs; i++) {
        const Func *f = m->funcs[i];
        StrBuf      ir = strbuf(c->arena);
        const char *log, *gpu;
        Bytes       code;

        if (f->kind != FUNC_DEVICE)
            continue;
        gpu = device_arch(c, f->target, 0);
        if (!kernel_text(c, g, f->target, f, &ir))
            return false;
        if (!llvm_compile_kernel(c->arena, g->triple, gpu, EMIT_ASM, ir.at, &code, &log))
            return error_at(c, E_CODEGEN, f->loc, "kernel '%s' is not compiled for %s: %s", f->name,
                            gpu, log);
        str_addn(out, (const char *)code.at, code.n);
    }
    return true;
}
