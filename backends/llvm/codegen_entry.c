/* The entry points of a model: <entry>_run, <entry>_run_ex, <entry>_info (include/tvmcc/abi.h).
 *
 *     run_ex(in, out, params) {
 *       check the arguments; fill in a `run` on the stack; the body of main }
 *     run(in, out, arena)    = run_ex with one thread and the embedded weights
 *     info()                 = the address of a constant
 *
 * Each has a second name that ends in the hash of the header (packaging/header.c): an alias. */
#include "backends/llvm/llvm.h"

#include "tvmcc/abi.h"

#include <string.h>

#ifndef TVMCC_VERSION
#define TVMCC_VERSION "0.0.0"
#endif

enum { ARENA_ALIGN = 64, WEIGHTS_ALIGN = 64 };

/* ---- checks ------------------------------------------------------------------------------------ */

static void fail_unaligned(Gen *g, LLVMValueRef p, uint32_t align)
{
    LLVMValueRef bits;

    if (align <= 1)
        return;
    bits = LLVMBuildAnd(g->b, LLVMBuildPtrToInt(g->b, p, g->size, ""),
                        gen_int(g, g->size, align - 1), "");
    host_fail_if(g, LLVMBuildICmp(g->b, LLVMIntNE, bits, LLVMConstNull(g->size), ""),
                 TVMCC_E_ALIGN);
}

/* ---- run_ex and run ------------------------------------------------------------------------------------ */

static uint64_t io_bytes(const PlanIO *io)
{
    int64_t n = 0;

    return type_elems(io->type, &n) ? (uint64_t)n * dtype_bytes(io->type->dtype) : 1;
}

static void check_tensors(Gen *g, LLVMValueRef at, uint32_t n, const PlanIO *io,
                          const Param *params)
{
    for (uint32_t i = 0; i < n; i++) {
        LLVMValueRef k = gen_int(g, g->i32, i), p;
        uint32_t     align = dtype_bytes(io[i].type->dtype);

        if (params[i].buffer->align > align)
            align = params[i].buffer->align;
        if (!io_bytes(&io[i]))
            continue;
        p = LLVMBuildLoad2(g->b, g->ptr, LLVMBuildGEP2(g->b, g->ptr, at, &k, 1, ""), "");
        host_fail_if(g, host_is_null(g, p), TVMCC_E_NULL);
        fail_unaligned(g, p, align);
    }
}

LLVMValueRef host_weights(Gen *g, LLVMValueRef params)
{
    struct Host      *h = g->host;
    LLVMValueRef      w = host_get(g, h->params_t, params, P_WEIGHTS), none, bytes, v[2], phi;
    LLVMBasicBlockRef given, own, done, from[2];

    if (!h->plan->weights_bytes)
        return w;
    given = gen_bb(g, "given");
    own = gen_bb(g, "own");
    done = gen_bb(g, "weights");
    none = host_is_null(g, w);
    if (!h->weights) {
        host_fail_if(g, none, TVMCC_E_NULL);
        none = LLVMConstInt(g->i1, 0, false);
    }
    LLVMBuildCondBr(g->b, none, own, given);
    LLVMPositionBuilderAtEnd(g->b, given);
    fail_unaligned(g, w, WEIGHTS_ALIGN);
    bytes = host_get(g, h->params_t, params, P_WEIGHTS_BYTES);
    host_fail_if(g,
                 LLVMBuildICmp(g->b, LLVMIntULT, bytes,
                               gen_int(g, g->size, (int64_t)h->plan->weights_bytes), ""),
                 TVMCC_E_MISMATCH);
    from[0] = LLVMGetInsertBlock(g->b);
    LLVMBuildBr(g->b, done);
    LLVMPositionBuilderAtEnd(g->b, own);
    from[1] = own;
    LLVMBuildBr(g->b, done);
    LLVMPositionBuilderAtEnd(g->b, done);
    phi = LLVMBuildPhi(g->b, g->ptr, "");
    v[0] = w;
    v[1] = h->weights ? h->weights : LLVMConstNull(g->ptr);
    LLVMAddIncoming(phi, v, from, 2);
    return phi;
}

/* Arena and number of threads; gives the threads, at least 1. */
static LLVMValueRef check_arena(Gen *g, LLVMValueRef params, int64_t most)
{
    struct Host *h = g->host;
    LLVMValueRef n = host_get(g, h->params_t, params, P_THREADS), arena, need, have;
    bool         any = h->plan->arena_bytes || h->plan->private_bytes;

    n = LLVMBuildSelect(g->b, LLVMBuildICmp(g->b, LLVMIntEQ, n, gen_i32(g, 0), ""), gen_i32(g, 1),
                        n, "");
    host_fail_if(g, LLVMBuildICmp(g->b, LLVMIntUGT, n, gen_i32(g, most), ""), TVMCC_E_MISMATCH);
    arena = host_get(g, h->params_t, params, P_ARENA);
    if (any)
        host_fail_if(g, host_is_null(g, arena), TVMCC_E_NULL);
    fail_unaligned(g, arena, ARENA_ALIGN);
    need = LLVMBuildMul(g->b, LLVMBuildZExt(g->b, n, g->i64, ""),
                        gen_int(g, g->i64, (int64_t)h->plan->private_bytes), "");
    need = LLVMBuildAdd(g->b, need, gen_int(g, g->i64, (int64_t)h->plan->arena_bytes), "");
    have = host_get(g, h->params_t, params, P_ARENA_BYTES);
    have = LLVMBuildZExtOrBitCast(g->b, have, g->i64, "");
    host_fail_if(g, LLVMBuildICmp(g->b, LLVMIntULT, have, need, ""), TVMCC_E_MISMATCH);
    return n;
}

static const Atom *region_nt(const Stmt *s)
{
    if (s->kind == STMT_REGION)
        return s->u.region.nt;
    for (uint32_t i = 0; i < s->nkids; i++) {
        const Atom *a = region_nt(s->kids[i]);

        if (a)
            return a;
    }
    return NULL;
}

/* The body of one plan, exported under this name or not. */
static LLVMValueRef define_run_ex(Gen *g, const char *name, LLVMLinkage linkage)
{
    struct Host *h = g->host;
    const Func  *f = h->main;
    const Atom  *nt = region_nt(f->body);
    bool         whole = !nt && !h->device && !g->t->no_threads; /* all of it in this function */
    LLVMTypeRef  in[3] = {g->ptr, g->ptr, g->ptr}, t = LLVMFunctionType(g->i32, in, 3, false);
    LLVMValueRef fn = host_function(g, name, t, linkage), params, n, weights, run, alone;
    uint64_t     bytes = g->t->pointer_bits == 64 ? 112 : 60;

    gen_begin(g, fn, "run_ex");
    params = LLVMGetParam(fn, 2);
    for (unsigned i = 0; i < 3; i++)
        host_fail_if(g, host_is_null(g, LLVMGetParam(fn, i)), TVMCC_E_NULL);
    n = host_get(g, h->params_t, params, P_STRUCT_BYTES);
    host_fail_if(g, LLVMBuildICmp(g->b, LLVMIntULT, n, gen_i32(g, (int64_t)bytes), ""),
                 TVMCC_E_MISMATCH);
    n = check_arena(g, params, nt && nt->hi > 0 && nt->hi < 1 << 16 ? nt->hi : 1 << 16);
    if (h->device)
        device_begin(g, params);
    weights = h->device ? device_memory(g, true) : host_weights(g, params);
    check_tensors(g, LLVMGetParam(fn, 0), h->plan->nin, h->plan->in, f->params);
    check_tensors(g, LLVMGetParam(fn, 1), h->plan->nout, h->plan->out, f->params + h->plan->nin);

    run = h->run = gen_alloca(g, h->run_t, 16, "run");
    alone = host_is_null(g, host_get(g, h->params_t, params, P_LAUNCH));
    n = h->device || whole ? gen_i32(g, 1) : LLVMBuildSelect(g->b, alone, gen_i32(g, 1), n, "");
    host_put(g, h->run_t, run, R_PARAMS, params);
    host_put(g, h->run_t, run, R_IN, LLVMGetParam(fn, 0));
    host_put(g, h->run_t, run, R_OUT, LLVMGetParam(fn, 1));
    host_put(g, h->run_t, run, R_ARENA,
             h->device ? device_memory(g, false) : host_get(g, h->params_t, params, P_ARENA));
    host_put(g, h->run_t, run, R_WEIGHTS, weights);
    host_put(g, h->run_t, run, R_PARTS, n);
    host_put(g, h->run_t, run, R_PHASE, gen_i32(g, 0));
    host_put(g, h->run_t, run, R_STOP, gen_i32(g, NEVER));
    host_bind_buffers(g);
    gen_stmt(g, f->body);
    if (whole) /* regions tell it themselves */
        host_fail_if(g,
                     LLVMBuildICmp(g->b, LLVMIntNE, host_get(g, h->run_t, run, R_STOP),
                                   gen_i32(g, NEVER), ""),
                     TVMCC_E_CANCELLED);
    if (h->device)
        device_end(g);
    gen_end(g);
    return fn;
}

/* `arena`: bytes that the caller's has. */
static LLVMValueRef define_run(Gen *g, LLVMValueRef run_ex, uint64_t arena)
{
    struct Host *h = g->host;
    LLVMTypeRef  in[3] = {g->ptr, g->ptr, g->ptr}, t = LLVMFunctionType(g->i32, in, 3, false);
    LLVMValueRef fn = host_function(g, "_run", t, LLVMExternalLinkage), p, args[3], code;

    gen_begin(g, fn, "run");
    p = gen_alloca(g, h->params_t, 16, "params");
    for (unsigned i = 0; i < P_COUNT; i++)
        host_put(g, h->params_t, p, i, LLVMConstNull(LLVMStructGetTypeAtIndex(h->params_t, i)));
    host_put(g, h->params_t, p, P_STRUCT_BYTES, gen_i32(g, g->t->pointer_bits == 64 ? 112 : 60));
    host_put(g, h->params_t, p, P_THREADS, gen_i32(g, 1));
    host_put(g, h->params_t, p, P_ARENA, LLVMGetParam(fn, 2));
    host_put(g, h->params_t, p, P_ARENA_BYTES, gen_int(g, g->size, (int64_t)arena));
    args[0] = LLVMGetParam(fn, 0);
    args[1] = LLVMGetParam(fn, 1);
    args[2] = p;
    code = LLVMBuildCall2(g->b, t, run_ex, args, 3, "");
    LLVMBuildRet(g->b, code);
    gen_end(g);
    return fn;
}

/* ---- info -------------------------------------------------------------------------------------------------- */

LLVMValueRef host_constant(Gen *g, LLVMValueRef v)
{
    LLVMValueRef k = LLVMAddGlobal(g->mod, LLVMTypeOf(v), "");

    LLVMSetInitializer(k, v);
    LLVMSetGlobalConstant(k, true);
    LLVMSetLinkage(k, LLVMPrivateLinkage);
    LLVMSetUnnamedAddress(k, LLVMGlobalUnnamedAddr);
    return k;
}

LLVMValueRef host_text(Gen *g, const char *s)
{
    return host_constant(g, LLVMConstStringInContext2(g->lc, s, strlen(s), false));
}

static LLVMValueRef bytes32(Gen *g, const void *p)
{
    return LLVMConstStringInContext2(g->lc, p, 32, true);
}

static LLVMValueRef record(Gen *g, uint32_t n, LLVMValueRef *fields)
{
    return LLVMConstStructInContext(g->lc, fields, n, false);
}

LLVMValueRef host_array(Gen *g, uint32_t n, LLVMValueRef *at)
{
    if (!n)
        return LLVMConstNull(g->ptr);
    return host_constant(g, LLVMConstArray2(LLVMTypeOf(at[0]), at, n));
}

static LLVMValueRef tensors(Gen *g, uint32_t n, const PlanIO *io, const Param *params)
{
    LLVMValueRef *all = NEW_ARRAY(g->a, LLVMValueRef, n + 1);

    for (uint32_t i = 0; i < n; i++) {
        const Type   *t = io[i].type;
        uint32_t      align = dtype_bytes(t->dtype);
        LLVMValueRef *dims = NEW_ARRAY(g->a, LLVMValueRef, t->n + 1);
        LLVMValueRef  field[13];

        if (params[i].buffer->align > align)
            align = params[i].buffer->align;
        for (uint32_t k = 0; k < t->n; k++) {
            int64_t d = -1;

            type_dim(t, k, &d);
            dims[k] = gen_int(g, g->i64, d);
        }
        field[0] = host_text(g, io[i].name);
        field[1] = host_array(g, t->n, dims);
        field[2] = gen_int(g, g->size, (int64_t)io_bytes(&io[i]));
        field[3] = gen_int(g, g->i8, t->dtype.code);
        field[4] = gen_int(g, g->i8, t->dtype.bits);
        field[5] = gen_int(g, g->i16, t->dtype.lanes);
        field[6] = gen_i32(g, t->n);
        field[7] = gen_i32(g, 0);
        field[8] = gen_i32(g, align);
        field[9] = LLVMConstReal(g->f32, 0);
        field[10] = gen_i32(g, 0);
        field[11] = io[i].layout ? host_text(g, io[i].layout) : LLVMConstNull(g->ptr);
        field[12] = gen_int(g, g->size, io[i].state);
        all[i] = record(g, 13, field);
    }
    return host_array(g, n, all);
}

/* What device memory a run takes beside the weights. */
static LLVMValueRef pools(Gen *g, const DeviceCode *d)
{
    LLVMValueRef f[4] = {host_text(g, "arena"), gen_int(g, g->size, (int64_t)d->arena_bytes),
                         gen_i32(g, ARENA_ALIGN), gen_i32(g, TVMCC_POOL_DEVICE)},
                 pool = record(g, 4, f);

    return host_array(g, 1, &pool);
}

/* The info of the plan at hand; `buckets`: the last members, or NULL. */
static LLVMValueRef info_record(Gen *g, const CodegenInfo *info, LLVMValueRef run_ex,
                                LLVMValueRef open, LLVMValueRef close, const HostBuckets *buckets)
{
    struct Host      *h = g->host;
    const Plan       *p = h->plan;
    const DeviceCode *d = h->o->device;
    LLVMValueRef      w[7], f[32], k;
    uint32_t          nweights = p->weights_bytes != 0, n = 0;

    w[0] = host_text(g, !h->weights || h->o->extern_weights ? ""
                        : h->o->weights_section
                            ? h->o->weights_section
                            : arena_printf(g->a, ".rodata.%s_weights", h->o->entry));
    w[1] = h->weights ? h->weights : LLVMConstNull(g->ptr);
    w[2] = gen_int(g, g->size, (int64_t)p->weights_bytes);
    w[3] = gen_i32(g, !h->weights            ? TVMCC_WEIGHTS_FILE
                      : h->o->extern_weights ? TVMCC_WEIGHTS_EXTERN
                                             : TVMCC_WEIGHTS_EMBED);
    w[4] = gen_i32(g, WEIGHTS_ALIGN);
    w[5] = bytes32(g, info->weights_sha);
    k = record(g, 6, w);

    f[n++] = gen_i32(g, TVMCC_ABI);
    f[n++] = gen_i32(g, g->t->pointer_bits == 64 ? 232 : 168);
    f[n++] = host_text(g, h->o->entry);
    f[n++] = host_text(g, "tvmcc " TVMCC_VERSION);
    f[n++] = host_text(g, d ? d->target : p->target->text);
    f[n++] = bytes32(g, info->model_sha);
    f[n++] = bytes32(g, info->build_id);
    f[n++] = gen_i32(g, p->nin);
    f[n++] = gen_i32(g, p->nout);
    f[n++] = gen_i32(g, d != NULL);
    f[n++] = gen_i32(g, nweights);
    f[n++] = tensors(g, p->nin, p->in, h->main->params);
    f[n++] = tensors(g, p->nout, p->out, h->main->params + p->nin);
    f[n++] = d ? pools(g, d) : LLVMConstNull(g->ptr);
    f[n++] = host_array(g, nweights, &k);
    f[n++] = gen_int(g, g->size, (int64_t)p->arena_bytes);
    f[n++] = gen_int(g, g->size, (int64_t)p->private_bytes);
    f[n++] = gen_i32(g, ARENA_ALIGN);
    f[n++] = gen_i32(g, d ? d->kind : TVMCC_DEVICE_CPU);
    f[n++] = gen_int(g, g->size, d ? device_state_bytes(g) : 0);
    f[n++] = run_ex;
    f[n++] = open;
    f[n++] = close;
    f[n++] = gen_i32(g, buckets ? buckets->n : 0);
    f[n++] = gen_i32(g, buckets ? buckets->ndims : 0);
    f[n++] = buckets ? buckets->infos : LLVMConstNull(g->ptr);
    f[n++] = buckets ? buckets->names : LLVMConstNull(g->ptr);
    f[n++] = buckets ? buckets->sizes : LLVMConstNull(g->ptr);
    return record(g, n, f);
}

static void define_info(Gen *g, LLVMValueRef info)
{
    LLVMTypeRef t = LLVMFunctionType(g->ptr, NULL, 0, false);

    gen_begin(g, host_function(g, "_info", t, LLVMExternalLinkage), "info");
    LLVMBuildRet(g->b, info);
    gen_end(g);
}

/* ---- weights in an object that is not ELF ------------------------------------------------------------- */

static LLVMValueRef gen_bytes_symbol(Gen *g, const char *symbol, Bytes data)
{
    LLVMValueRef v = LLVMConstStringInContext2(g->lc, (const char *)data.at, data.n, true);
    LLVMValueRef at = LLVMAddGlobal(g->mod, LLVMTypeOf(v), symbol);

    LLVMSetInitializer(at, v);
    LLVMSetGlobalConstant(at, true);
    LLVMSetAlignment(at, WEIGHTS_ALIGN);
    return at;
}

/* ---- all of it ------------------------------------------------------------------------------------------------ */

static void make_types(Gen *g)
{
    struct Host *h = g->host;
    LLVMTypeRef  s = g->size, p = g->ptr;
    LLVMTypeRef  params[P_COUNT] = {g->i32, g->i32, p, s, p, s, p, s, p, p, p, p, s, p, p};
    LLVMTypeRef  run[R_COUNT] = {p, p, p, p, p, g->i32, g->i32, g->i32};
    LLVMTypeRef  worker[3] = {p, g->i32, g->i32};

    h->params_t = LLVMStructTypeInContext(g->lc, params, P_COUNT, false);
    h->run_t = LLVMStructTypeInContext(g->lc, run, R_COUNT, false);
    h->worker_t = LLVMFunctionType(g->none, worker, 3, false);
}

/* From here on the host's functions are about this plan. */
static void host_plan(Gen *g, const Plan *p)
{
    struct Host *h = g->host;

    h->plan = p;
    h->main = p->tir->funcs[p->tir->nfuncs - 1];
    h->step = 0;
    if (h->main->kind != FUNC_HOST || h->main->nparams != p->nin + p->nout + 2)
        BUG("the plan of '%s' does not end in its host function", p->name);
}

/* One plan: it is the model. */
static void define_alone(Gen *g, const Plan *p, const CodegenInfo *info)
{
    LLVMValueRef run_ex, open = LLVMConstNull(g->ptr), close = open;
    bool         device = g->host->o->device != NULL;

    if (device)
        device_open_close(g, &open, &close);
    run_ex = define_run_ex(g, "_run_ex", LLVMExternalLinkage);
    if (!device) /* without params there is no device */
        define_run(g, run_ex, p->arena_bytes + p->private_bytes);
    define_info(g, host_constant(g, info_record(g, info, run_ex, open, close, NULL)));
}

/* Several plans, or one for a CPU that has to be asked: codegen_choice.c chooses. */
static void define_choice(Gen *g, const Plan *p, const CodegenInfo *info)
{
    HostChoice   ch = {.plan = p, .nbuckets = plan_buckets(p), .nvariants = plan_variants(p)};
    uint32_t     n = ch.nbuckets * ch.nvariants, i = 0;
    LLVMValueRef none = LLVMConstNull(g->ptr);
    uint64_t     arena = 0;

    ch.run = NEW_ARRAY(g->a, LLVMValueRef, n);
    ch.info = NEW_ARRAY(g->a, LLVMValueRef, n);
    for (const Plan *q = p; q; q = q->next, i++) {
        host_plan(g, q);
        ch.run[i] = define_run_ex(g, arena_printf(g->a, "__run%u", i), LLVMInternalLinkage);
        if (q->arena_bytes + q->private_bytes > arena)
            arena = q->arena_bytes + q->private_bytes;
    }
    choice_begin(g, &ch);
    i = 0;
    for (const Plan *q = p; q; q = q->next, i++) {
        bool        last = i % ch.nbuckets + 1 == ch.nbuckets;
        HostBuckets b = choice_buckets(g, &ch, i / ch.nbuckets);

        host_plan(g, q);
        ch.info[i] = host_constant(
            g, info_record(g, info, ch.run[i], none, none, last && q->ndims ? &b : NULL));
        if (q->ndims)
            choice_bucket_info(g, &ch, i, ch.info[i]);
        if (!q->next)
            ch.no_info = host_constant(g, info_record(g, info, ch.no_run, none, none, NULL));
    }
    choice_any_cpu(g, &ch, define_run(g, choice_run_ex(g, &ch), arena));
    choice_info(g, &ch);
    if (p->ndims) {
        choice_run_bucket(g, &ch);
        choice_select(g, &ch);
    }
}

bool gen_entry(Gen *g, const Plan *p, const CodegenOptions *o, const CodegenInfo *info)
{
    uint32_t     errors = diag_errors(g->c->diags);
    struct Host *h = NEW(g->a, struct Host);

    h->o = o;
    h->header = info->header;
    g->host = h;
    host_plan(g, p);
    make_types(g);
    if (o->embed_weights && p->weights_bytes) {
        const char *symbol = arena_printf(g->a, "%s_weights", o->entry);

        h->weights =
            object_format_of(g->t->triple) == OBJECT_ELF || o->extern_weights || !o->weights.n
                ? LLVMAddGlobal(g->mod, g->i8, symbol)
                : gen_bytes_symbol(g, symbol, o->weights);
        LLVMSetGlobalConstant(h->weights, true);
        LLVMSetAlignment(h->weights, WEIGHTS_ALIGN);
    }
    host_define_begin(g);
    host_define_end(g);
    host_define_meet(g);
    if (p->next || p->ndims || (plan_asks_cpu(p) && !o->device))
        define_choice(g, p, info);
    else
        define_alone(g, p, info);
    return diag_errors(g->c->diags) == errors;
}
