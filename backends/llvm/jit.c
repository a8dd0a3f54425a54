/* Code loaded into this process: an object in memory, linked by ORC.
 *
 * The same pipeline as for files makes the object, so what folds constants and answers `tvmcc run`
 * is the code that would ship.  Symbols outside it are only those of the list below, by address:
 * the process itself is not searched. */
#include "backends/llvm/llvm.h"

#include <llvm-c/Error.h>
#include <llvm-c/LLJIT.h>
#include <llvm-c/Orc.h>
#include <math.h>
#include <string.h>

struct Jit {
    Ctx            *c;
    LLVMOrcLLJITRef jit;
    bool            thunks;
};

typedef void (*Code)(void);

static const struct {
    const char *name;
    Code        code;
} outside[] = {
#define F(name) {#name, (Code)name}
#define MATH2(name) F(name), F(name##f)
    {"memcpy", (Code)memcpy},
    {"memset", (Code)memset},
    {"memmove", (Code)memmove},
    MATH2(exp),
    MATH2(log),
    MATH2(tanh),
    MATH2(erf),
    MATH2(sqrt),
    MATH2(fabs),
    MATH2(floor),
    MATH2(ceil),
    MATH2(trunc),
    MATH2(nearbyint),
    MATH2(rint),
    MATH2(round),
    MATH2(copysign),
    MATH2(pow),
    MATH2(fmod),
    MATH2(sin),
    MATH2(cos),
    MATH2(tan),
    MATH2(asin),
    MATH2(acos),
    MATH2(atan),
    MATH2(atan2),
    MATH2(sinh),
    MATH2(cosh),
    MATH2(asinh),
    MATH2(acosh),
    MATH2(atanh),
    MATH2(fma),
    MATH2(fmax),
    MATH2(fmin),
    MATH2(exp2),
    MATH2(log2),
    MATH2(ldexp),
#undef MATH2
#undef F
};

static bool failed(Ctx *c, LLVMErrorRef e, const char *what)
{
    char *why;

    if (!e)
        return false;
    why = LLVMGetErrorMessage(e);
    error_at(c, E_CODEGEN, NO_LOC, "%s: %s", what, why);
    LLVMDisposeErrorMessage(why);
    return true;
}

/* This machine can run what is compiled for t. */
static bool runs_here(Ctx *c, const Target *t)
{
    CpuNeeds      needs = target_needs(t), have;
    const Target *here;
    char         *host;
    bool          all = true;

    llvm_init();
    host = LLVMGetDefaultTargetTriple();
    here = llvm_parse_target(c, arena_printf(c->scratch, "llvm -mtriple=%s -mcpu=native", host));
    LLVMDisposeMessage(host);
    if (!here)
        return false;
    have = target_needs(here);
    for (uint32_t i = 0; i < CPUID_WORDS; i++)
        all = all && !(needs.word[i] & ~have.word[i]);
    if (all && target_arch(here) == target_arch(t) && here->pointer_bits == t->pointer_bits &&
        !(target_caps(t) & ~target_caps(here)))
        return true;
    return error_at(c, E_CODEGEN, NO_LOC, "this machine cannot run code for '%s'", t->text);
}

static bool define_outside(Jit *j)
{
    LLVMOrcCSymbolMapPair         pairs[COUNT(outside)];
    LLVMOrcMaterializationUnitRef unit;
    LLVMOrcJITDylibRef            lib = LLVMOrcLLJITGetMainJITDylib(j->jit);

    for (size_t i = 0; i < COUNT(outside); i++) {
        pairs[i].Name = LLVMOrcLLJITMangleAndIntern(j->jit, outside[i].name);
        pairs[i].Sym.Address = (LLVMOrcExecutorAddress)(uintptr_t)outside[i].code;
        pairs[i].Sym.Flags.GenericFlags =
            LLVMJITSymbolGenericFlagsExported | LLVMJITSymbolGenericFlagsCallable;
        pairs[i].Sym.Flags.TargetFlags = 0;
    }
    unit = LLVMOrcAbsoluteSymbols(pairs, COUNT(outside));
    return !failed(j->c, LLVMOrcJITDylibDefine(lib, unit), "loading code");
}

static Jit *load(Ctx *c, Bytes object, bool thunks)
{
    Jit                *j = NEW(c->arena, Jit);
    LLVMMemoryBufferRef buf;

    j->c = c;
    j->thunks = thunks;
    if (failed(c, LLVMOrcCreateLLJIT(&j->jit, NULL), "loading code"))
        return NULL;
    buf = LLVMCreateMemoryBufferWithMemoryRangeCopy((const char *)object.at, object.n, "code");
    if (define_outside(j) &&
        !failed(c, LLVMOrcLLJITAddObjectFile(j->jit, LLVMOrcLLJITGetMainJITDylib(j->jit), buf),
                "loading code"))
        return j;
    llvm_jit_free(j);
    return NULL;
}

Jit *llvm_jit(Ctx *c, const TirModule *m, const Target *t)
{
    Bytes object;
    Gen  *g;
    bool  ok;

    if (!runs_here(c, t) || !(g = gen_new(c, m, t, "jit", "", 2, true)))
        return NULL;
    g->in_process = true;
    ok = gen_functions(g) && gen_thunks(g) && llvm_emit(g, 2, EMIT_OBJECT, &object);
    gen_free(g);
    return ok ? load(c, object, true) : NULL;
}

Jit *llvm_jit_load(Ctx *c, const Target *t, Bytes object)
{
    return runs_here(c, t) ? load(c, object, false) : NULL;
}

void *llvm_jit_symbol(Jit *j, const char *func)
{
    LLVMOrcExecutorAddress at = 0;
    const char            *name = func;

    if (j->thunks)
        name = arena_printf(j->c->scratch, "%s.thunk", object_symbol(j->c->scratch, "", func));
    if (failed(j->c, LLVMOrcLLJITLookup(j->jit, &at, name), "loading code"))
        return NULL;
    return (void *)(uintptr_t)at;
}

void llvm_jit_free(Jit *j)
{
    LLVMErrorRef e = j && j->jit ? LLVMOrcDisposeLLJIT(j->jit) : NULL;

    if (e)
        LLVMConsumeError(e);
    if (j)
        j->jit = NULL;
}
