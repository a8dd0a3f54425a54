/* What host functions have beside what kernels have: structs and signatures of the ABI
 * (ir/tir/record.def), addresses of symbols, calls by address, constant data. */
#include "backends/llvm/llvm.h"

#include <string.h>

/* ---- types ------------------------------------------------------------------------------------- */

static LLVMTypeRef abi_type(Gen *g, AbiType t)
{
    switch (t) {
    case ABI_NONE: return g->none;
    case ABI_U8: return g->i8;
    case ABI_U16: return g->i16;
    case ABI_U32:
    case ABI_I32:
    case ABI_SHARED: return g->i32;
    case ABI_F32: return g->f32;
    case ABI_I64: return g->i64;
    case ABI_SIZE: return g->size;
    case ABI_HANDLE: return g->ptr;
    case ABI_SHA: return LLVMArrayType2(g->i8, abi_bytes(t, 0));
    }
    BUG("type %d of the ABI", (int)t);
}

LLVMTypeRef gen_record(Gen *g, const AbiRecord *r)
{
    LLVMTypeRef *t = NEW_ARRAY(g->a, LLVMTypeRef, r->n);

    for (uint32_t i = 0; i < r->n; i++)
        t[i] = abi_type(g, r->members[i].type);
    return LLVMStructTypeInContext(g->lc, t, r->n, false);
}

static LLVMTypeRef function_type(Gen *g, const Signature *s)
{
    LLVMTypeRef t[MAX_SIGNATURE];
    uint32_t    n = signature_params(s);

    for (uint32_t i = 0; i < n; i++)
        t[i] = abi_type(g, s->param[i]);
    return LLVMFunctionType(abi_type(g, s->result), t, n, false);
}

/* A value of TIR as the ABI has it, and back: only size_t differs, which is u64 there. */
static LLVMValueRef to_abi(Gen *g, AbiType t, LLVMValueRef v)
{
    return t == ABI_SIZE ? LLVMBuildTruncOrBitCast(g->b, v, g->size, "") : v;
}

static LLVMValueRef from_abi(Gen *g, AbiType t, LLVMValueRef v)
{
    return t == ABI_SIZE ? LLVMBuildZExtOrBitCast(g->b, v, g->i64, "") : v;
}

/* ---- members ----------------------------------------------------------------------------------- */

/* The address of a cell, or of a member of it. */
static LLVMValueRef member_address(Gen *g, const Buffer *b, uint32_t n, const Idx *const *index,
                                   const AbiMember *m)
{
    uint32_t     align;
    LLVMValueRef p = gen_address(g, b, n, index, &align);

    return m ? LLVMBuildStructGEP2(g->b, gen_record(g, b->record), p,
                                   (unsigned)(m - b->record->members), "")
             : p;
}

static void as_shared(AbiType t, LLVMValueRef access)
{
    if (t != ABI_SHARED)
        return;
    LLVMSetOrdering(access, LLVMAtomicOrderingMonotonic);
    LLVMSetAlignment(access, abi_align(t, 0));
}

LLVMValueRef gen_member_load(Gen *g, const LoadData *l)
{
    AbiType      t = l->member->type;
    LLVMValueRef p = member_address(g, l->buffer, l->n, l->index, l->member);
    LLVMValueRef v = LLVMBuildLoad2(g->b, abi_type(g, t), p, "");

    as_shared(t, v);
    return from_abi(g, t, v);
}

void gen_member_store(Gen *g, const StoreData *s)
{
    AbiType      t = s->member->type;
    LLVMValueRef v = to_abi(g, t, gen_prim(g, s->value));

    as_shared(t, LLVMBuildStore(g->b, v, member_address(g, s->buffer, s->n, s->index, s->member)));
}

/* ---- symbols and calls ------------------------------------------------------------------------- */

static LLVMValueRef symbol_address(Gen *g, const char *name)
{
    LLVMValueRef v = LLVMGetNamedFunction(g->mod, name);

    if (!v)
        v = LLVMGetNamedGlobal(g->mod, name);
    if (!v)
        BUG("@%s: there is no symbol '%s'", g->name, name);
    return v;
}

LLVMValueRef gen_addr(Gen *g, const Prim *p)
{
    const LoadData *l = &p->u.load;

    return p->kind == PRIM_SYMBOL ? symbol_address(g, p->u.symbol)
                                  : member_address(g, l->buffer, l->n, l->index, l->member);
}

/* What a host backend brings of its own. */
static bool builtin(Gen *g, const InvokeData *d)
{
    LLVMValueRef word[CPUID_WORDS], at;

    if (d->fn->kind != PRIM_SYMBOL || strcmp(d->fn->u.symbol, HOST_CPUID) != 0)
        return false;
    gen_cpuid_words(g, word);
    at = gen_prim(g, d->args[0]);
    for (uint32_t i = 0; i < CPUID_WORDS; i++) {
        LLVMValueRef k = gen_i32(g, i);

        LLVMBuildStore(g->b, word[i], LLVMBuildGEP2(g->b, g->i32, at, &k, 1, ""));
    }
    return true;
}

void gen_invoke(Gen *g, const InvokeData *d)
{
    LLVMValueRef args[MAX_SIGNATURE], v;
    GenMark      mark = gen_mark(g);

    if (!builtin(g, d)) {
        for (uint32_t i = 0; i < d->nargs; i++)
            args[i] = to_abi(g, d->sig->param[i], gen_prim(g, d->args[i]));
        v = LLVMBuildCall2(g->b, function_type(g, d->sig), gen_prim(g, d->fn), args, d->nargs, "");
        if (d->result)
            LLVMBuildStore(g->b, from_abi(g, d->sig->result, v), gen_base(g, d->result));
    }
    mark.block = g->block.keys.n;
    gen_drop(g, mark);
}

/* ---- statements -------------------------------------------------------------------------------- */

void gen_view(Gen *g, const Stmt *s)
{
    GenMark mark = gen_mark(g);

    map_put(g->bufs, s->u.view.buffer->id, gen_prim(g, s->u.view.at));
    gen_drop(g, mark);
    gen_stmt(g, s->kids[0]);
    gen_drop(g, mark);
}

void gen_switch(Gen *g, const Stmt *s)
{
    GenMark           mark = gen_mark(g);
    LLVMValueRef      value = gen_prim(g, s->u.cases.value), sw;
    LLVMBasicBlockRef done = gen_bb(g, "done");
    int64_t           v = 0;

    sw = LLVMBuildSwitch(g->b, value, done, s->nkids);
    for (uint32_t i = 0; i < s->nkids; i++) {
        LLVMBasicBlockRef arm = gen_bb(g, "arm");

        for (; v < s->u.cases.end[i]; v++)
            LLVMAddCase(sw, gen_int(g, LLVMTypeOf(value), v), arm);
        gen_drop(g, mark);
        LLVMPositionBuilderAtEnd(g->b, arm);
        gen_stmt(g, s->kids[i]);
        LLVMBuildBr(g->b, done);
    }
    gen_drop(g, mark);
    LLVMPositionBuilderAtEnd(g->b, done);
}

/* ---- data -------------------------------------------------------------------------------------- */

static LLVMTypeRef item_type(Gen *g, const DataItem *x)
{
    return x->type == ABI_NONE || x->type == ABI_SHA ? LLVMArrayType2(g->i8, x->bytes.n)
                                                     : abi_type(g, x->type);
}

static LLVMValueRef item_value(Gen *g, const DataItem *x)
{
    if (x->size_of)
        return gen_int(g, abi_type(g, x->type), record_bytes(x->size_of, g->t->pointer_bits));
    switch (x->type) {
    case ABI_NONE:
    case ABI_SHA:
        return LLVMConstStringInContext2(g->lc, (const char *)x->bytes.at, x->bytes.n, true);
    case ABI_HANDLE: return x->symbol ? symbol_address(g, x->symbol) : LLVMConstNull(g->ptr);
    case ABI_F32: return LLVMConstReal(g->f32, (double)x->i);
    case ABI_U8:
    case ABI_U16:
    case ABI_U32:
    case ABI_I32:
    case ABI_SHARED:
    case ABI_I64:
    case ABI_SIZE: return gen_int(g, abi_type(g, x->type), x->i);
    }
    BUG("data of type %d", (int)x->type);
}

static void declare_data(Gen *g, const Data *d)
{
    LLVMTypeRef *t = NEW_ARRAY(g->a, LLVMTypeRef, d->nitems + 1), type = g->i8;
    LLVMValueRef v;

    for (uint32_t i = 0; i < d->nitems; i++)
        t[i] = item_type(g, &d->items[i]);
    if (d->nitems)
        type = d->nitems == 1 ? t[0] : LLVMStructTypeInContext(g->lc, t, d->nitems, false);
    v = LLVMAddGlobal(g->mod, type, d->name);
    LLVMSetGlobalConstant(v, true);
    if (d->align)
        LLVMSetAlignment(v, d->align);
    if (d->exported || !d->nitems)
        return;
    LLVMSetLinkage(v, LLVMPrivateLinkage);
    LLVMSetUnnamedAddress(v, LLVMGlobalUnnamedAddr);
}

static void define_data(Gen *g, const Data *d)
{
    LLVMValueRef *v = NEW_ARRAY(g->a, LLVMValueRef, d->nitems + 1);

    for (uint32_t i = 0; i < d->nitems; i++)
        v[i] = item_value(g, &d->items[i]);
    if (d->nitems)
        LLVMSetInitializer(LLVMGetNamedGlobal(g->mod, d->name),
                           d->nitems == 1 ? v[0]
                                          : LLVMConstStructInContext(g->lc, v, d->nitems, false));
}

/* ---- functions --------------------------------------------------------------------------------- */

/* Code that runs before the CPU was asked is for any of its architecture. */
static void for_any_cpu(Gen *g, LLVMValueRef fn)
{
    gen_string_attr(g, fn, "target-cpu", "x86-64");
    gen_string_attr(g, fn, "target-features", "+sse2");
}

static void declare_entry(Gen *g, const Func *f, const char *header)
{
    LLVMTypeRef  t = function_type(g, f->sig);
    LLVMValueRef fn = LLVMAddFunction(g->mod, f->name, t);

    LLVMSetLinkage(fn, f->exported ? LLVMExternalLinkage : LLVMInternalLinkage);
    if (f->exported && header)
        LLVMAddAlias2(g->mod, t, 0, fn, arena_printf(g->a, "%s_header_%s", f->name, header));
    gen_attr(g, fn, LLVMAttributeFunctionIndex, "nounwind", 0);
    if (f->any_cpu)
        for_any_cpu(g, fn);
}

static void define_entry(Gen *g, const Func *f)
{
    LLVMValueRef fn = LLVMGetNamedFunction(g->mod, f->name);

    gen_begin(g, fn, f->name);
    for (uint32_t i = 0; i < f->nparams; i++) {
        LLVMValueRef v = LLVMGetParam(fn, i);

        if (f->params[i].buffer)
            map_put(g->bufs, f->params[i].buffer->id, v);
        else
            gen_bind(g, f->params[i].scalar,
                     LLVMBuildIntCast2(g->b, v, g->i64, f->sig->param[i] != ABI_U32, ""));
    }
    gen_stmt(g, f->body);
    gen_end(g);
}

void gen_host(Gen *g, const TirModule *host, const char *header)
{
    for (uint32_t i = 0; i < host->nfuncs; i++)
        declare_entry(g, host->funcs[i], header);
    for (uint32_t i = 0; i < host->ndata; i++)
        declare_data(g, &host->data[i]);
    for (uint32_t i = 0; i < host->ndata; i++)
        define_data(g, &host->data[i]);
    for (uint32_t i = 0; i < host->nfuncs; i++)
        define_entry(g, host->funcs[i]);
}
