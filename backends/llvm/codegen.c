/* Flat TIR to LLVM IR: functions and statements.
 *
 * A kernel or tile becomes a function over pointers and i64 scalars that is never inlined: a tile
 * inlined into its nest makes loop strength reduction spill.  Loops
 * come out rotated (test at the bottom) with one phi, `reg` variables and small buffers as allocas
 * of the entry block, which mem2reg removes. */
#include "backends/llvm/llvm.h"

#include <llvm-c/DebugInfo.h>
#include <llvm-c/IRReader.h>
#include <string.h>

enum { MAX_STACK = 1 << 20 }; /* bytes of one alloca */

/* ---- small things --------------------------------------------------------------------------- */

LLVMValueRef gen_int(Gen *g, LLVMTypeRef t, int64_t v)
{
    (void)g;
    return LLVMConstInt(t, (unsigned long long)v, true);
}

LLVMValueRef gen_i32(Gen *g, int64_t v)
{
    return gen_int(g, g->i32, v);
}

LLVMBasicBlockRef gen_bb(Gen *g, const char *name)
{
    return LLVMAppendBasicBlockInContext(g->lc, g->fn, name);
}

void gen_attr(Gen *g, LLVMValueRef fn, LLVMAttributeIndex at, const char *name, uint64_t v)
{
    unsigned kind = LLVMGetEnumAttributeKindForName(name, strlen(name));

    if (!kind)
        BUG("no attribute '%s' in this LLVM", name);
    LLVMAddAttributeAtIndex(fn, at, LLVMCreateEnumAttribute(g->lc, kind, v));
}

void gen_string_attr(Gen *g, LLVMValueRef fn, const char *name, const char *value)
{
    LLVMAttributeRef attr = LLVMCreateStringAttribute(g->lc, name, (unsigned)strlen(name), value,
                                                      (unsigned)strlen(value));

    LLVMAddAttributeAtIndex(fn, (LLVMAttributeIndex)LLVMAttributeFunctionIndex, attr);
}

LLVMValueRef gen_intrinsic_of(Gen *g, const char *name, size_t nover, LLVMTypeRef *over, uint32_t n,
                              LLVMValueRef *args)
{
    unsigned     id = LLVMLookupIntrinsicID(name, strlen(name));
    LLVMValueRef fn = LLVMGetIntrinsicDeclaration(g->mod, id, over, nover);

    return LLVMBuildCall2(g->b, LLVMIntrinsicGetType(g->lc, id, over, nover), fn, args, n, "");
}

LLVMValueRef gen_intrinsic(Gen *g, const char *name, LLVMTypeRef overload, uint32_t n,
                           LLVMValueRef *args)
{
    return gen_intrinsic_of(g, name, 1, &overload, n, args);
}

LLVMValueRef gen_alloca(Gen *g, LLVMTypeRef t, uint32_t align, const char *name)
{
    LLVMBasicBlockRef at = LLVMGetInsertBlock(g->b);
    LLVMValueRef      first = LLVMGetFirstInstruction(g->entry), v;

    if (first)
        LLVMPositionBuilderBefore(g->b, first);
    else
        LLVMPositionBuilderAtEnd(g->b, g->entry);
    v = LLVMBuildAlloca(g->b, t, name);
    if (align)
        LLVMSetAlignment(v, align);
    LLVMPositionBuilderAtEnd(g->b, at);
    return v;
}

LLVMTypeRef gen_type(Gen *g, DType t)
{
    LLVMTypeRef e;

    if (t.code == DT_BOOLEAN)
        e = g->i1;
    else if (t.code == DT_POINTER)
        e = g->ptr;
    else if (t.code == DT_FLOAT && t.bits == 32)
        e = g->f32;
    else if (t.code == DT_FLOAT && t.bits == 64)
        e = g->f64;
    else
        e = LLVMIntTypeInContext(g->lc, t.bits);
    return t.lanes > 1 ? LLVMVectorType(e, t.lanes) : e;
}

LLVMTypeRef gen_mem_type(Gen *g, DType t)
{
    if (t.code == DT_BOOLEAN)
        t.code = DT_UINT;
    return gen_type(g, t);
}

/* ---- values known at a point ------------------------------------------------------------------ */

void *memo_get(const GenMemo *m, uint64_t key)
{
    return map_get(m->map, key);
}

void memo_put(Gen *g, GenMemo *m, uint64_t key, void *v)
{
    map_put(m->map, key, v);
    vec_push(g->a, &m->keys, key);
}

static void memo_drop(GenMemo *m, uint32_t n)
{
    while (m->keys.n > n)
        map_del(m->map, m->keys.at[--m->keys.n]);
}

GenMark gen_mark(Gen *g)
{
    return (GenMark){g->block.keys.n, g->stmt.keys.n};
}

void gen_drop(Gen *g, GenMark m)
{
    memo_drop(&g->block, m.block);
    memo_drop(&g->stmt, m.stmt);
}

/* ---- statements ------------------------------------------------------------------------------------- */

/* An innermost loop of scalar stores: no schedule has arranged it, so LLVM may vectorise it. */
static bool is_plain(const Stmt *s)
{
    switch (s->kind) {
    case STMT_STORE: return s->u.store.value->dtype.lanes == 1;
    case STMT_SEQ:
    case STMT_IF:
        for (uint32_t i = 0; i < s->nkids; i++)
            if (!is_plain(s->kids[i]))
                return false;
        return true;
    case STMT_FOR:
    case STMT_WHILE:
    case STMT_ALLOC:
    case STMT_BLOCK:
    case STMT_CALL:
    case STMT_PREFETCH:
    case STMT_BARRIER:
    case STMT_AWAIT:
    case STMT_REGION:
    case STMT_LAUNCH:
    case STMT_COPY:
    case STMT_VIEW:
    case STMT_INVOKE:
    case STMT_SWITCH:
    case STMT_RETURN:
    case STMT_FAIL: break;
    }
    return false;
}

LLVMValueRef gen_loop_id(Gen *g, uint32_t n, const LLVMMetadataRef *parts)
{
    LLVMMetadataRef all[MAX_LOOP_PARTS + 1] = {LLVMTemporaryMDNode(g->lc, NULL, 0)}, node;

    memcpy(all + 1, parts, n * sizeof *parts);
    node = LLVMMDNodeInContext2(g->lc, all, n + 1);
    LLVMMetadataReplaceAllUsesWith(all[0], node);
    return LLVMMetadataAsValue(g->lc, node);
}

/* A loop's own metadata: LLVM unrolls only what is marked, and vectorises only what is plain. */
static LLVMValueRef loop_id(Gen *g, bool plain)
{
    LLVMMetadataRef word, off[2], parts[2];

    word = LLVMMDStringInContext2(g->lc, "llvm.loop.unroll.disable", 24);
    off[0] = LLVMMDStringInContext2(g->lc, "llvm.loop.vectorize.enable", 26);
    off[1] = LLVMValueAsMetadata(LLVMConstInt(g->i1, 0, false));
    parts[0] = LLVMMDNodeInContext2(g->lc, &word, 1);
    parts[1] = LLVMMDNodeInContext2(g->lc, off, 2);
    return gen_loop_id(g, plain ? 1 : 2, parts);
}

static void mark_loop(Gen *g, LLVMValueRef branch, const Stmt *s)
{
    LLVMValueRef id = gen_is_kernel(g) ? gen_kernel_loop(g, s) : loop_id(g, is_plain(s->kids[0]));

    if (id)
        LLVMSetMetadata(branch, LLVMGetMDKindIDInContext(g->lc, "llvm.loop", 9), id);
}

static void gen_for(Gen *g, const Stmt *s)
{
    const LoopData   *l = &s->u.loop;
    const Idx        *end = idx_add(g->c->arith, l->lo, l->extent);
    uint32_t          bits = gen_idx_width(g, l->lo->lo, end->hi);
    LLVMValueRef      lo, hi, i, next, phi_in[2];
    LLVMBasicBlockRef from, body, done, phi_bb[2];
    GenMark           mark = gen_mark(g);
    int64_t           n;

    if (l->extent->hi <= 0)
        return;
    lo = gen_idx_as(g, l->lo, bits);
    if (idx_is_const(l->extent, &n) && n == 1) {
        gen_bind(g, l->var, lo);
        gen_drop(g, (GenMark){g->block.keys.n, mark.stmt});
        gen_stmt(g, s->kids[0]);
        gen_drop(g, mark);
        return;
    }
    hi = gen_idx_as(g, end, bits);
    gen_drop(g, (GenMark){g->block.keys.n, mark.stmt}); /* the body may store where bounds load */
    body = gen_bb(g, l->var->name ? l->var->name : "loop");
    done = gen_bb(g, "done");
    from = LLVMGetInsertBlock(g->b);
    if (l->extent->lo >= 1)
        LLVMBuildBr(g->b, body);
    else
        LLVMBuildCondBr(g->b, LLVMBuildICmp(g->b, LLVMIntSLT, lo, hi, ""), body, done);

    LLVMPositionBuilderAtEnd(g->b, body);
    i = LLVMBuildPhi(g->b, gen_width_type(g, bits), "");
    g->depth++;
    gen_bind(g, l->var, i);
    gen_stmt(g, s->kids[0]);
    g->depth--;
    next = LLVMBuildNSWAdd(g->b, i, gen_int(g, gen_width_type(g, bits), 1), "");
    phi_in[0] = lo;
    phi_in[1] = next;
    phi_bb[0] = from;
    phi_bb[1] = LLVMGetInsertBlock(g->b);
    LLVMAddIncoming(i, phi_in, phi_bb, 2);
    hi = LLVMBuildICmp(g->b, LLVMIntSLT, next, hi, "");
    hi = LLVMBuildCondBr(g->b, hi, body, done);
    mark_loop(g, hi, s);
    gen_drop(g, mark);
    LLVMPositionBuilderAtEnd(g->b, done);
}

static void gen_while(Gen *g, const Stmt *s)
{
    LLVMBasicBlockRef head = gen_bb(g, "while"), body = gen_bb(g, "do"), done = gen_bb(g, "done");
    GenMark           mark = gen_mark(g);
    LLVMValueRef      more;

    LLVMBuildBr(g->b, head);
    LLVMPositionBuilderAtEnd(g->b, head);
    g->depth++;
    more = gen_prim(g, s->u.cond);
    LLVMBuildCondBr(g->b, more, body, done);
    gen_drop(g, mark);
    LLVMPositionBuilderAtEnd(g->b, body);
    gen_stmt(g, s->kids[0]);
    gen_drop(g, mark);
    g->depth--;
    LLVMBuildBr(g->b, head);
    LLVMPositionBuilderAtEnd(g->b, done);
}

static void gen_if(Gen *g, const Stmt *s)
{
    LLVMBasicBlockRef then = gen_bb(g, "then"), other = NULL, done = gen_bb(g, "done");
    GenMark           mark = gen_mark(g);
    LLVMValueRef      cond = gen_prim(g, s->u.cond);

    if (s->nkids > 1)
        other = gen_bb(g, "else");
    LLVMBuildCondBr(g->b, cond, then, other ? other : done);
    for (uint32_t i = 0; i < s->nkids; i++) {
        gen_drop(g, mark);
        LLVMPositionBuilderAtEnd(g->b, i ? other : then);
        gen_stmt(g, s->kids[i]);
        LLVMBuildBr(g->b, done);
    }
    gen_drop(g, mark);
    LLVMPositionBuilderAtEnd(g->b, done);
}

static void gen_alloc(Gen *g, const Stmt *s)
{
    const Buffer *b = s->u.buffer;
    DType         t = b->dtype;
    int64_t       elems = 1, origin = 0;
    uint32_t      align = b->align;
    GenMark       mark = gen_mark(g);
    LLVMTypeRef   type = b->record ? gen_record(g, b->record) : gen_mem_type(g, t);
    uint32_t      cell = b->record ? record_bytes(b->record, g->t->pointer_bits) : dtype_bytes(t);
    LLVMValueRef  p, at;

    if (b->ndim && !buffer_size(g->c, b, &elems, &origin)) {
        error_at(g->c, E_CODEGEN, s->loc, "@%s: the size of %%%s is known only at run time",
                 g->name, b->name);
        elems = 1;
    }
    if (elems > MAX_STACK / (int64_t)cell) {
        error_at(g->c, E_CODEGEN, s->loc, "@%s: %%%s has %lld cells, too many for the stack",
                 g->name, b->name, (long long)elems);
        elems = 1;
    }
    if (!align && b->record) {
        align = 16;
    } else if (!align) {
        uint64_t bytes = (uint64_t)elems * dtype_bytes(t);

        align = t.bits / 8;
        while (align * 2 <= bytes && align < g->t->vector_bytes)
            align *= 2;
    }
    if (b->ndim)
        type = LLVMArrayType2(type, (uint64_t)(elems > 0 ? gen_room(g, b, elems) : 1));
    p = b->scope != SCOPE_SHARED ? gen_alloca(g, type, align, b->name ? b->name : "")
                                 : gen_shared(g, b, type);
    at = gen_int(g, g->size, origin);
    if (origin)
        p = LLVMBuildGEP2(g->b, gen_mem_type(g, t), p, &at, 1, "");
    map_put(g->bufs, b->id, p);
    gen_stmt(g, s->kids[0]);
    gen_drop(g, mark); /* copies of a nest share the buffer, but not its memory */
}

void gen_call(Gen *g, const Stmt *s)
{
    const StmtCall *call = &s->u.call;
    GenFunc        *callee = map_get(g->funcs, PTR_KEY(intern(g->c->strings, call->callee)));
    LLVMValueRef   *args = NEW_ARRAY(g->a, LLVMValueRef, call->nargs + 1);
    GenMark         mark = gen_mark(g);
    uint32_t        n = call->nargs;

    if (!callee)
        BUG("@%s calls @%s, which is not before it", g->name, call->callee);
    if (callee->f->nparams != n)
        BUG("@%s gives @%s %u arguments", g->name, call->callee, n);
    for (uint32_t i = 0; i < n; i++) {
        const Arg *a = &call->args[i];

        if (a->buffer)
            args[i] = gen_offset(g, gen_base(g, a->buffer), a->buffer->id | 1u << 29, g->i8,
                                 a->offset ? a->offset : idx_const(g->c->arith, 0));
        else
            args[i] = gen_idx_as(g, a->scalar, 64);
    }
    LLVMBuildCall2(g->b, callee->type, callee->fn, args, n, "");
    gen_drop(g, mark);
}

static void gen_return(Gen *g, LLVMValueRef v)
{
    if (v)
        LLVMBuildRet(g->b, v);
    else
        LLVMBuildRetVoid(g->b);
    LLVMPositionBuilderAtEnd(g->b, gen_bb(g, "dead"));
}

void gen_stmt(Gen *g, const Stmt *s)
{
    GenMark mark;

    switch (s->kind) {
    case STMT_SEQ:
        if (gen_is_kernel(g)) {
            gen_kernel_seq(g, s);
            break;
        }
        for (uint32_t i = 0, done; i < s->nkids; i += done ? done : 1) {
            mark = gen_mark(g);
            done = gen_transposed(g, s->nkids - i, s->kids + i);
            done = done ? done : gen_packed(g, s->nkids - i, s->kids + i);
            done = done ? done : gen_woven(g, s->nkids - i, s->kids + i);
            mark.block = g->block.keys.n;
            gen_drop(g, mark);
            if (!done)
                gen_stmt(g, s->kids[i]);
        }
        break;
    case STMT_FOR:
        if (s->u.loop.bind && gen_is_kernel(g))
            gen_bound(g, s);
        else
            gen_for(g, s);
        break;
    case STMT_WHILE: gen_while(g, s); break;
    case STMT_IF: gen_if(g, s); break;
    case STMT_ALLOC: gen_alloc(g, s); break;
    case STMT_STORE:
        mark = gen_mark(g);
        gen_store(g, &s->u.store);
        mark.block = g->block.keys.n; /* addresses stay good for the next statements */
        gen_drop(g, mark);
        break;
    case STMT_CALL: gen_call(g, s); break;
    case STMT_PREFETCH:
        if (!gen_is_kernel(g)) /* which hide what they wait for */
            gen_prefetch(g, &s->u.prefetch);
        break;
    case STMT_BARRIER:
        if (gen_is_kernel(g)) /* else in process: one part, in line */
            gen_barrier(g);
        break;
    case STMT_AWAIT:
        if (gen_is_kernel(g)) /* else copies are made where they stand */
            gen_await(g, s->u.await.groups);
        break;
    case STMT_REGION:
        gen_bind(g, s->u.region.tid, gen_int(g, g->i64, 0));
        gen_bind(g, s->u.region.nt, gen_int(g, g->i64, 1));
        gen_stmt(g, s->kids[0]);
        break;
    case STMT_VIEW: gen_view(g, s); break;
    case STMT_INVOKE: gen_invoke(g, &s->u.invoke); break;
    case STMT_SWITCH: gen_switch(g, s); break;
    case STMT_RETURN:
        if (s->u.cond) {
            mark = gen_mark(g);
            gen_return(g, gen_prim(g, s->u.cond));
            gen_drop(g, mark);
            break;
        }
        gen_return(g, LLVMGetReturnType(LLVMGlobalGetValueType(g->fn)) == g->i32 ? gen_i32(g, 0)
                                                                                 : NULL);
        break;
    case STMT_FAIL: gen_return(g, NULL); break;
    case STMT_BLOCK: BUG("in @%s, a block reached code generation", g->name); break;
    case STMT_LAUNCH:
    case STMT_COPY:
        error_at(g->c, E_CODEGEN, s->loc, "@%s: a device operation in code for a CPU", g->name);
        break;
    }
}

/* ---- functions --------------------------------------------------------------------------------------- */

void gen_begin(Gen *g, LLVMValueRef fn, const char *name)
{
    LLVMBasicBlockRef body;

    g->name = name;
    g->fn = fn;
    g->bufs = map_new(g->a);
    g->atoms = map_new(g->a);
    g->depths = map_new(g->a);
    g->depth = 0;
    memset(&g->block, 0, sizeof g->block);
    memset(&g->stmt, 0, sizeof g->stmt);
    g->block.map = map_new(g->a);
    g->stmt.map = map_new(g->a);
    g->mask = g->nowhere = NULL;
    g->entry = gen_bb(g, "entry");
    body = gen_bb(g, "body");
    LLVMPositionBuilderAtEnd(g->b, body);
}

/* The entry block, so far only allocas, leads to the body. */
void gen_end(Gen *g)
{
    LLVMBasicBlockRef at = LLVMGetInsertBlock(g->b);

    if (!LLVMGetBasicBlockTerminator(at)) {
        LLVMTypeRef ret = LLVMGetReturnType(LLVMGlobalGetValueType(g->fn));

        if (ret == g->none)
            LLVMBuildRetVoid(g->b);
        else
            LLVMBuildRet(g->b, LLVMConstNull(ret));
    }
    LLVMPositionBuilderAtEnd(g->b, g->entry);
    LLVMBuildBr(g->b, LLVMGetNextBasicBlock(g->entry));
}

static bool params_alias(const Buffer *a, const Buffer *b)
{
    for (const Buffer *x = a; x; x = x->alias)
        for (const Buffer *y = b; y; y = y->alias)
            if (x == y)
                return true;
    return false;
}

/* Which buffers s stores through, itself or by calls; aliases count as one. */
static void find_written(Gen *g, const Stmt *s, Map *written)
{
    const StmtCall *call = &s->u.call;

    if (s->kind == STMT_STORE)
        for (const Buffer *b = s->u.store.buffer; b; b = b->alias)
            map_put(written, b->id, g);
    if (s->kind == STMT_CALL) {
        GenFunc *callee = map_get(g->funcs, PTR_KEY(intern(g->c->strings, call->callee)));

        for (uint32_t i = 0; i < call->nargs; i++)
            for (const Buffer *b = call->args[i].buffer; b; b = b->alias)
                if (!callee || callee->written[i])
                    map_put(written, b->id, g);
    }
    for (uint32_t i = 0; i < s->nkids; i++)
        find_written(g, s->kids[i], written);
}

static void param_attrs(Gen *g, const GenFunc *gf, uint32_t i)
{
    const Func   *f = gf->f;
    const Buffer *b = f->params[i].buffer;
    uint32_t      align = b->align ? b->align : b->dtype.bits / 8u;
    bool          alone = true;

    for (uint32_t j = 0; j < f->nparams; j++)
        if (j != i && f->params[j].buffer && params_alias(b, f->params[j].buffer))
            alone = false;
    if (alone)
        gen_attr(g, gf->fn, i + 1, "noalias", 0);
    gen_attr(g, gf->fn, i + 1, "nocapture", 0);
    gen_attr(g, gf->fn, i + 1, "nonnull", 0);
    gen_attr(g, gf->fn, i + 1, "noundef", 0);
    if (align > 1)
        gen_attr(g, gf->fn, i + 1, "align", align & -align);
    if (!gf->written[i] && alone)
        gen_attr(g, gf->fn, i + 1, "readonly", 0);
}

/* A kernel that is one tile: it has nothing of its own on the stack. */
static bool only_calls(const Func *f)
{
    return f->body && f->body->kind == STMT_CALL;
}

static GenFunc *declare(Gen *g, const Func *f)
{
    GenFunc     *gf = NEW(g->a, GenFunc);
    LLVMTypeRef *types = NEW_ARRAY(g->a, LLVMTypeRef, f->nparams + 1);
    const char  *name = object_symbol(g->a, g->prefix, f->name);
    Map         *written = map_new(g->a);

    gf->f = f;
    gf->written = NEW_ARRAY(g->a, bool, f->nparams + 1);
    find_written(g, f->body, written);
    for (uint32_t i = 0; i < f->nparams; i++) {
        types[i] = f->params[i].buffer ? g->ptr : g->i64;
        for (const Buffer *b = f->params[i].buffer; b; b = b->alias)
            if (map_get(written, b->id))
                gf->written[i] = true;
    }
    gf->type = LLVMFunctionType(g->none, types, f->nparams, false);
    gf->fn = LLVMAddFunction(g->mod, name, gf->type);
    if (f->kind == FUNC_KERNEL && !g->in_process)
        LLVMSetVisibility(gf->fn, LLVMHiddenVisibility);
    else
        LLVMSetLinkage(gf->fn, LLVMInternalLinkage);
    gen_attr(g, gf->fn, LLVMAttributeFunctionIndex, "nounwind", 0);
    gen_attr(g, gf->fn, LLVMAttributeFunctionIndex, "noinline", 0);
    /* Else vectors that leave registers cross lines or not, as the caller's stack happens to lie:
     * Winograd's transforms with AVX2 took 0.97 of the time on the average of four places (Zen 5),
     * tiles of 31 sums of a dilated kernel 2.1 ms or 9, from one process to the next (Zen 4). */
    if ((f->kind == FUNC_KERNEL || f->kind == FUNC_TILE) && g->arch == ARCH_X86 && !only_calls(f))
        gen_string_attr(g, gf->fn, "stackrealign", "");
    for (uint32_t i = 0; i < f->nparams; i++)
        if (f->params[i].buffer)
            param_attrs(g, gf, i);
    map_put(g->funcs, PTR_KEY(intern(g->c->strings, f->name)), gf);
    return gf;
}

/* What was stored past the caches is there for other threads. */
static void store_fence(Gen *g)
{
    gen_intrinsic_of(g, "llvm.x86.sse.sfence", 0, NULL, 0, NULL);
}

static void define(Gen *g, GenFunc *gf)
{
    const Func *f = gf->f;

    gen_begin(g, gf->fn, f->name);
    for (uint32_t i = 0; i < f->nparams; i++) {
        LLVMValueRef v = LLVMGetParam(gf->fn, i);

        if (f->params[i].buffer)
            map_put(g->bufs, f->params[i].buffer->id, v);
        else
            gen_bind(g, f->params[i].scalar, v);
    }
    gen_stmt(g, f->body);
    for (uint32_t i = 0; f->kind == FUNC_KERNEL && g->arch == ARCH_X86 && i < f->nparams; i++)
        if (f->params[i].buffer && f->params[i].buffer->stream) {
            store_fence(g);
            break;
        }
    gen_end(g);
}

/* Main is what entry functions were made of, except in process, where it is a function like others.
 */
bool gen_functions(Gen *g)
{
    uint32_t errors = diag_errors(g->c->diags);

    for (uint32_t i = 0; i < g->tir->nfuncs; i++) {
        const Func *f = g->tir->funcs[i];

        if (f->kind == FUNC_DEVICE) {
            error_at(g->c, E_CODEGEN, f->loc, "@%s is for a device, not for a CPU", f->name);
            continue;
        }
        if ((f->kind == FUNC_HOST && !g->in_process) || (f->kind == FUNC_TILE && g->host_only))
            continue;
        if (!g->in_process && map_get(g->funcs, PTR_KEY(intern(g->c->strings, f->name))))
            continue; /* another shape bucket has it too */
        GenFunc *gf = declare(g, f);

        if (!g->host_only)
            define(g, gf);
    }
    return diag_errors(g->c->diags) == errors;
}

/* void <name>.thunk(ptr buffers, ptr scalars): what jit_symbol gives. */
bool gen_thunks(Gen *g)
{
    LLVMTypeRef pair[2] = {g->ptr, g->ptr}, type = LLVMFunctionType(g->none, pair, 2, false);

    for (uint32_t i = 0; i < g->tir->nfuncs; i++) {
        const Func  *f = g->tir->funcs[i];
        GenFunc     *gf = map_get(g->funcs, PTR_KEY(intern(g->c->strings, f->name)));
        const char  *name = arena_printf(g->a, "%s.thunk", object_symbol(g->a, g->prefix, f->name));
        LLVMValueRef fn = LLVMAddFunction(g->mod, name, type);
        LLVMValueRef *args = NEW_ARRAY(g->a, LLVMValueRef, f->nparams + 1);
        uint32_t      nb = 0, ns = 0;

        gen_attr(g, fn, LLVMAttributeFunctionIndex, "nounwind", 0);
        gen_begin(g, fn, name);
        for (uint32_t k = 0; k < f->nparams; k++) {
            bool         buffer = f->params[k].buffer != NULL;
            LLVMValueRef at = gen_int(g, g->i32, buffer ? nb++ : ns++);
            LLVMTypeRef  t = buffer ? g->ptr : g->i64;
            LLVMValueRef p = LLVMBuildGEP2(g->b, t, LLVMGetParam(fn, !buffer), &at, 1, "");

            args[k] = LLVMBuildLoad2(g->b, t, p, "");
        }
        LLVMBuildCall2(g->b, gf->type, gf->fn, args, f->nparams, "");
        gen_end(g);
    }
    return true;
}

/* ---- the module ------------------------------------------------------------------------------------------ */

/* LLVM's complaints about what it was given; perhaps in another thread, so only noted. */
static void complain(LLVMDiagnosticInfoRef info, void *user)
{
    Gen *g = user;

    if (LLVMGetDiagInfoSeverity(info) == LLVMDSError && !g->complaint)
        g->complaint = LLVMGetDiagInfoDescription(info);
}

static LLVMModuleRef new_module(LLVMContextRef lc, const char *name, Arch arch)
{
    const char   *text = gen_prelude(arch);
    LLVMModuleRef m = NULL;
    char         *why = NULL;

    if (!text)
        return LLVMModuleCreateWithNameInContext(name, lc);
    if (LLVMParseIRInContext(
            lc, LLVMCreateMemoryBufferWithMemoryRange(text, strlen(text), name, true), &m, &why))
        BUG("what modules begin with: %s", why);
    return m;
}

static void set_layout(Gen *g)
{
    LLVMTargetDataRef layout = LLVMCreateTargetDataLayout(g->tm);

    LLVMSetModuleDataLayout(g->mod, layout);
    LLVMDisposeTargetData(layout);
    LLVMSetTarget(g->mod, g->t->triple);
}

Gen *gen_new(Ctx *c, const TirModule *tir, const Target *t, const char *name, const char *prefix,
             uint32_t opt_level, bool pic)
{
    LLVMTargetMachineRef tm = llvm_machine(c, t, opt_level, pic);
    Arena               *a;
    Gen                 *g;

    if (!tm)
        return NULL;
    a = arena_new(NULL);
    g = NEW(a, Gen);
    g->tm = tm;
    g->c = c;
    g->a = a;
    g->t = t;
    g->tir = tir;
    g->prefix = prefix;
    g->arch = target_arch(t);
    g->caps = target_caps(t);
    g->lc = LLVMContextCreate();
    g->mod = new_module(g->lc, name, g->arch);
    g->b = LLVMCreateBuilderInContext(g->lc);
    LLVMContextSetDiagnosticHandler(g->lc, complain, g);
    set_layout(g);
    g->i1 = LLVMInt1TypeInContext(g->lc);
    g->i8 = LLVMInt8TypeInContext(g->lc);
    g->i16 = LLVMInt16TypeInContext(g->lc);
    g->i32 = LLVMInt32TypeInContext(g->lc);
    g->i64 = LLVMInt64TypeInContext(g->lc);
    g->f32 = LLVMFloatTypeInContext(g->lc);
    g->f64 = LLVMDoubleTypeInContext(g->lc);
    g->ptr = LLVMPointerTypeInContext(g->lc, 0);
    g->size = t->pointer_bits == 32 ? g->i32 : g->i64;
    g->none = LLVMVoidTypeInContext(g->lc);
    g->funcs = map_new(a);
    return g;
}

void gen_free(Gen *g)
{
    if (g->complaint)
        LLVMDisposeMessage(g->complaint);
    LLVMDisposeBuilder(g->b);
    LLVMDisposeModule(g->mod);
    LLVMContextDispose(g->lc);
    LLVMDisposeTargetMachine(g->tm);
    arena_free(g->a);
}
