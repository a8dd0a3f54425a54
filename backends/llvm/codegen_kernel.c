/* Functions of kind device to LLVM IR: kernels of GPUs.
 *
 *     func @k.0 kind(device) (%x: f32[64], %y: f32[64] written)
 *         void @k_k_0(ptr addrspace(1) %x, i64 %offset, ptr addrspace(1) %y, i64 %offset)
 *
 * Each buffer is followed by an offset in bytes, since a device's API passes whole buffers; numbers
 * are i64.  Indices have 32 bits where these hold all of the function.  What a block shares is a
 * variable of the module. */
#include "backends/common/device.h"
#include "backends/common/plain.h"
#include "backends/llvm/llvm.h"

#include <llvm-c/DebugInfo.h>
#include <string.h>

enum { SPACE_GLOBAL = 1, SPACE_SHARED = 3, MOVED = 16 }; /* ; bytes of a thread at once */

/* What GPUs have in the words of LLVM; by Arch. */
static const struct {
    const char *thread, *block; /* .. and an axis */
    unsigned    convention;
} kinds[] = {
    [ARCH_NVPTX] = {"llvm.nvvm.read.ptx.sreg.tid.", "llvm.nvvm.read.ptx.sreg.ctaid.",
                    LLVMPTXKernelCallConv},
    [ARCH_AMDGPU] = {"llvm.amdgcn.workitem.id.", "llvm.amdgcn.workgroup.id.",
                     LLVMAMDGPUKERNELCallConv},
};

/* A fence has a scope, which LLVM's C API has no word for. */
const char *gen_prelude(Arch arch)
{
    return arch != ARCH_AMDGPU
               ? NULL
               : "define internal void @block_barrier() alwaysinline convergent nounwind {\n"
                 "  fence syncscope(\"workgroup\") release\n"
                 "  call void @llvm.amdgcn.s.barrier()\n"
                 "  fence syncscope(\"workgroup\") acquire\n"
                 "  ret void\n"
                 "}\n"
                 "declare void @llvm.amdgcn.s.barrier()\n";
}

/* ---- statements ---------------------------------------------------------------------------------- */

/* The number of this thread, or of its block, along an axis: i32. */
static LLVMValueRef number_of(Gen *g, BindAxis a)
{
    bool         block = a < AXIS_THREAD_X;
    char         axis = (char)('x' + (block ? a - AXIS_BLOCK_X : a - AXIS_THREAD_X));
    const char  *what = block ? kinds[g->arch].block : kinds[g->arch].thread;
    LLVMValueRef v;

    what = arena_printf(g->a, "%s%c", what, axis);
    v = gen_intrinsic_of(g, what, 0, NULL, 0, NULL);
    return v;
}

void gen_bound(Gen *g, const Stmt *s)
{
    const LoopData   *l = &s->u.loop;
    LLVMValueRef      at = number_of(g, l->bind), v;
    LLVMBasicBlockRef then, done;
    GenMark           mark = gen_mark(g);
    uint32_t          bits = gen_idx_width(g, l->var->lo, l->var->hi);

    v = LLVMBuildZExtOrBitCast(g->b, at, gen_width_type(g, bits), "");
    if (!idx_is_const(l->lo, NULL) || l->lo->lo)
        v = LLVMBuildNSWAdd(g->b, v, gen_idx_as(g, l->lo, bits), "");
    gen_bind(g, l->var, v);
    if (l->extent == g->axis[l->bind]) {
        gen_stmt(g, s->kids[0]);
        return;
    }
    then = gen_bb(g, "then"); /* the launch is sized by another loop */
    done = gen_bb(g, "done");
    v = LLVMBuildICmp(g->b, LLVMIntSLT, at, gen_idx_as(g, l->extent, 32), "");
    LLVMBuildCondBr(g->b, v, then, done);
    LLVMPositionBuilderAtEnd(g->b, then);
    gen_stmt(g, s->kids[0]);
    LLVMBuildBr(g->b, done);
    gen_drop(g, mark);
    LLVMPositionBuilderAtEnd(g->b, done);
}

/* Loops that are marked are unrolled, others where LLVM finds it worth it, but not those whose
 * rounds meet: with the chunks of a product side by side all their copies would be begun at once.
 */
LLVMValueRef gen_kernel_loop(Gen *g, const Stmt *s)
{
    const uint32_t  rounds = s->u.loop.rounds;
    const char     *how = rounds ? "llvm.loop.unroll.count" : "llvm.loop.unroll.disable";
    LLVMMetadataRef word[2], part;

    if (!rounds && !stmt_has_barrier(s))
        return NULL;
    word[0] = LLVMMDStringInContext2(g->lc, how, strlen(how));
    word[1] = LLVMValueAsMetadata(gen_i32(g, rounds));
    part = LLVMMDNodeInContext2(g->lc, word, rounds ? 2 : 1);
    return gen_loop_id(g, 1, &part);
}

void gen_barrier(Gen *g)
{
    LLVMValueRef fn = LLVMGetNamedFunction(g->mod, "block_barrier");

    if (fn)
        LLVMBuildCall2(g->b, LLVMGlobalGetValueType(fn), fn, NULL, 0, "");
    else
        gen_intrinsic_of(g, "llvm.nvvm.barrier0", 0, NULL, 0, NULL);
}

static LLVMValueRef shared_array(Gen *g, LLVMTypeRef type, const char *name)
{
    LLVMValueRef v = LLVMAddGlobalInAddressSpace(g->mod, type, name, SPACE_SHARED);

    LLVMSetInitializer(v, LLVMGetUndef(type));
    LLVMSetLinkage(v, LLVMInternalLinkage);
    LLVMSetAlignment(v, SHARED_ALIGN);
    return v;
}

LLVMValueRef gen_shared(Gen *g, const Buffer *b, LLVMTypeRef type)
{
    if (!g->shared)
        return shared_array(g, type, b->name ? b->name : "");
    LLVMValueRef at = gen_int(g, g->size, shared_at(g->c, b, &g->shared_bytes));
    return LLVMBuildGEP2(g->b, g->i8, g->shared, &at, 1, "");
}

static bool find_place(void *user, const Stmt *s)
{
    bool *found = user;

    *found = *found || (s->kind == STMT_ALLOC && s->u.buffer->place);
    return !*found;
}

/* What all shared buffers lie in: where they have places, and where NVIDIA's kernel needs more than
 * it may declare and its launch gives it memory. */
static void block_memory(Gen *g, const Func *f)
{
    const int64_t bytes = func_shared_bytes(g->c, f);
    const bool    given = g->arch == ARCH_NVPTX && bytes > NVIDIA_DECLARED;
    bool          found = given;

    g->shared = NULL;
    g->shared_bytes = 0;
    stmt_visit(f->body, &(TirVisit){.user = &found, .enter = find_place});
    if (!found)
        return;
    g->shared = shared_array(g, LLVMArrayType2(g->i8, given ? 0 : (uint64_t)bytes),
                             given ? "given_memory" : "block_memory");
    if (given) {
        LLVMSetInitializer(g->shared, NULL);
        LLVMSetLinkage(g->shared, LLVMExternalLinkage);
    }
    LLVMSetAlignment(g->shared, (unsigned)func_shared_border(f));
}

void gen_kernel_seq(Gen *g, const Stmt *s)
{
    for (uint32_t i = 0; i < s->nkids; i++) {
        GenMark mark = gen_mark(g);

        gen_stmt(g, s->kids[i]);
        mark.block = g->block.keys.n;
        gen_drop(g, mark);
    }
}

/* ---- functions ----------------------------------------------------------------------------------- */

static bool are_aliases(const Buffer *a, const Buffer *b)
{
    for (const Buffer *x = a; x; x = x->alias)
        for (const Buffer *y = b; y; y = y->alias)
            if (x == y)
                return true;
    return false;
}

static void buffer_attrs(Gen *g, const Func *f, uint32_t i, uint32_t at)
{
    for (uint32_t j = 0; j < f->nparams; j++)
        if (j != i && f->params[j].buffer && are_aliases(f->params[i].buffer, f->params[j].buffer))
            return;
    gen_attr(g, g->fn, at, "noalias", 0);
    if (!f->params[i].written)
        gen_attr(g, g->fn, at, "readonly", 0);
}

/* What a launch need not pass beside the arguments, nor set up, on AMD's GPUs. */
static void spare_inputs(Gen *g)
{
    static const char *const always[] = {
        "implicitarg-ptr",    "dispatch-ptr", "queue-ptr",     "dispatch-id",
        "heap-ptr",           "hostcall-ptr", "default-queue", "completion-action",
        "multigrid-sync-arg", "lds-kernel-id"};
    static const char *const axes[] = {"workgroup-id-x", "workgroup-id-y", "workgroup-id-z",
                                       "workitem-id-x",  "workitem-id-y",  "workitem-id-z"};

    for (size_t i = 0; i < COUNT(always); i++)
        gen_string_attr(g, g->fn, arena_printf(g->a, "amdgpu-no-%s", always[i]), "");
    for (int i = 0; i < 6; i++)
        if (!g->axis[i < 3 ? AXIS_BLOCK_X + i : AXIS_THREAD_X + i - 3])
            gen_string_attr(g, g->fn, arena_printf(g->a, "amdgpu-no-%s", axes[i]), "");
}

/* Code objects of version 4, which HIP takes from ROCm 5.2 (not 5) to those of today: beside the
 * arguments, of which kernels have none but their own, later versions say nothing else. */
static void code_version(Gen *g)
{
    static const char flag[] = "amdhsa_code_object_version";

    LLVMAddModuleFlag(g->mod, LLVMModuleFlagBehaviorError, flag, sizeof flag - 1,
                      LLVMValueAsMetadata(gen_i32(g, 400)));
}

/* Blocks have so many threads, along each axis; 0: a run decides. */
static void launch_bounds(Gen *g, const Func *f)
{
    const Target *t = f->target;
    uint64_t      n[3], all = 1;

    for (int i = 0; i < 3; i++) {
        const Idx *x = g->axis[AXIS_THREAD_X + i];

        n[i] = !x ? 1 : idx_is_const(x, NULL) ? (uint64_t)x->lo : 0;
        all *= n[i];
    }
    if (g->arch == ARCH_AMDGPU) {
        code_version(g);
        spare_inputs(g);
        gen_string_attr(
            g, g->fn, "amdgpu-flat-work-group-size",
            all ? arena_printf(g->a, "%llu,%llu", (unsigned long long)all, (unsigned long long)all)
                : arena_printf(g->a, "1,%u", t->max_threads));
        gen_string_attr(g, g->fn, "uniform-work-group-size", "true");
        if (t->warp == 64)
            gen_string_attr(g, g->fn, "target-features", "+wavefrontsize64");
        return;
    }
    for (int i = 0; i < 3 && all; i++) {
        const char     *what = arena_printf(g->a, "reqntid%c", 'x' + i);
        LLVMMetadataRef row[3] = {LLVMValueAsMetadata(g->fn),
                                  LLVMMDStringInContext2(g->lc, what, strlen(what)),
                                  LLVMValueAsMetadata(gen_i32(g, (int64_t)n[i]))};

        LLVMAddNamedMetadataOperand(
            g->mod, "nvvm.annotations",
            LLVMMetadataAsValue(g->lc, LLVMMDNodeInContext2(g->lc, row, 3)));
    }
}

static void declare_kernel(Gen *g, const Func *f)
{
    LLVMTypeRef *types = NEW_ARRAY(g->a, LLVMTypeRef, 2 * f->nparams + 1);
    LLVMTypeRef  global = LLVMPointerTypeInContext(g->lc, SPACE_GLOBAL);
    uint32_t     n = 0;

    for (uint32_t i = 0; i < f->nparams; i++) {
        if (f->params[i].buffer)
            types[n++] = global;
        types[n++] = g->i64;
    }
    g->fn = LLVMAddFunction(g->mod, device_symbol(g->c, f->name),
                            LLVMFunctionType(g->none, types, n, false));
    LLVMSetFunctionCallConv(g->fn, kinds[g->arch].convention);
    gen_attr(g, g->fn, LLVMAttributeFunctionIndex, "nounwind", 0);
    n = 0;
    for (uint32_t i = 0; i < f->nparams; i++) {
        if (f->params[i].buffer)
            buffer_attrs(g, f, i, ++n);
        n++;
    }
    launch_bounds(g, f);
}

typedef struct {
    const Gen  *g;
    const Func *f;
} Kernel;

/* The kernel's GPUs all have it. */
static bool has_instruction(const void *user, IntrinId id)
{
    const Kernel *k = user;

    return k->f->target->intrin_ops[id] && gen_has_instruction(k->g, id);
}

static bool has_vector(const void *user, DType vector, Scope scope)
{
    (void)user, (void)vector;
    return scope != SCOPE_SHARED; /* LLVM joins those */
}

bool gen_kernel(Gen *g, const Func *f)
{
    uint32_t errors = diag_errors(g->c->diags), n = 0;

    f = plain_instructions(g->c, f, has_instruction, &(Kernel){g, f});
    f = plain_scalars(g->c, f, MOVED);
    f = plain_wide(g->c, plain_loads(g->c, f, has_vector, NULL), has_vector, NULL);
    g->narrow = func_index_fits(f);
    func_axes(g->c, f, g->axis);
    block_memory(g, f);
    declare_kernel(g, f);
    gen_begin(g, g->fn, f->name);
    for (uint32_t i = 0; i < f->nparams; i++) {
        LLVMValueRef v = LLVMGetParam(g->fn, n++);

        if (f->params[i].buffer) {
            LLVMValueRef by = LLVMGetParam(g->fn, n++);

            v = LLVMBuildGEP2(g->b, g->i8, v, &by, 1, "");
            map_put(g->bufs, f->params[i].buffer->id, v);
        } else {
            gen_bind(g, f->params[i].scalar, v);
        }
    }
    gen_stmt(g, f->body);
    gen_end(g);
    return diag_errors(g->c->diags) == errors;
}
