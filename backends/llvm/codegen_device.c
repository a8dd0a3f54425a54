/* Models whose kernels run on a device: <entry>_open, <entry>_close, launches and copies.
 *
 *     open(state, params) {
 *       find the device of our kind among those of params; remember it in the state
 *       load the embedded code, make its kernels, allocate arena and weights, upload the weights
 *       on failure: close, return the code }
 *
 * The state, which the caller keeps between the two, is an array of pointers: device, module,
 * arena, weights, kernels.  A run drives the device from the calling thread; the first call that
 * fails leaves through one exit, which waits for what is under way. */
#include "backends/llvm/llvm.h"

#include "tvmcc/abi.h"

#include <string.h>

/* Members of tvmcc_device, in order. */
enum {
    D_STRUCT_BYTES,
    D_KIND,
    D_SELF,
    D_ALLOC,
    D_FREE,
    D_UPLOAD,
    D_DOWNLOAD,
    D_COPY,
    D_MODULE_LOAD,
    D_MODULE_FREE,
    D_KERNEL,
    D_KERNEL_FREE,
    D_LAUNCH,
    D_WAIT,
    D_LAST_ERROR,
    D_COUNT
};

/* Members of the state. */
enum { S_DEVICE, S_MODULE, S_ARENA, S_WEIGHTS, S_KERNELS = STATE_POINTERS };

struct Device {
    const DeviceCode *code;
    LLVMTypeRef       device_t, arg_t;
    LLVMValueRef      open, close;
    /* in the function at hand */
    LLVMValueRef      state, device, result; /* result: alloca of the code to return */
    LLVMBasicBlockRef failed;
    LLVMValueRef      args, values, grid, block; /* allocas for launches */
};

static LLVMValueRef slot(Gen *g, LLVMValueRef state, unsigned i)
{
    LLVMValueRef at = gen_int(g, g->i32, i);

    return LLVMBuildGEP2(g->b, g->ptr, state, &at, 1, "");
}

static LLVMValueRef state_get(Gen *g, unsigned i)
{
    return LLVMBuildLoad2(g->b, g->ptr, slot(g, g->host->device->state, i), "");
}

/* device->member(self, args[1] ..) */
static LLVMValueRef ask(Gen *g, unsigned member, LLVMTypeRef ret, unsigned n, LLVMValueRef *args)
{
    struct Device *d = g->host->device;
    LLVMTypeRef    in[8];

    args[0] = host_get(g, d->device_t, d->device, D_SELF);
    for (unsigned i = 0; i < n; i++)
        in[i] = LLVMTypeOf(args[i]);
    return LLVMBuildCall2(g->b, LLVMFunctionType(ret, in, n, false),
                          host_get(g, d->device_t, d->device, member), args, n, "");
}

/* Go on if the code is 0, else keep it and leave. */
static void check(Gen *g, LLVMValueRef code)
{
    struct Device    *d = g->host->device;
    LLVMBasicBlockRef good = gen_bb(g, "good");

    LLVMBuildStore(g->b, code, d->result);
    LLVMBuildCondBr(g->b, LLVMBuildICmp(g->b, LLVMIntEQ, code, gen_i32(g, 0), ""), good, d->failed);
    LLVMPositionBuilderAtEnd(g->b, good);
}

static void need(Gen *g, unsigned member, unsigned n, LLVMValueRef *args)
{
    check(g, ask(g, member, g->i32, n, args));
}

static void begin(Gen *g, LLVMValueRef fn, const char *name)
{
    struct Device *d = g->host->device;

    gen_begin(g, fn, name);
    d->result = gen_alloca(g, g->i32, 4, "result");
    d->failed = gen_bb(g, "failed");
}

/* for i < n: body(i) */
typedef void LoopBody(Gen *g, LLVMValueRef i, void *user);
static void  loop(Gen *g, LLVMValueRef n, LoopBody *body, void *user)
{
    LLVMBasicBlockRef head = gen_bb(g, "head"), in = gen_bb(g, "in"), out = gen_bb(g, "out");
    LLVMValueRef      at = gen_alloca(g, g->size, 8, "i"), i;

    LLVMBuildStore(g->b, LLVMConstNull(g->size), at);
    LLVMBuildBr(g->b, head);
    LLVMPositionBuilderAtEnd(g->b, head);
    i = LLVMBuildLoad2(g->b, g->size, at, "");
    LLVMBuildCondBr(g->b, LLVMBuildICmp(g->b, LLVMIntULT, i, n, ""), in, out);
    LLVMPositionBuilderAtEnd(g->b, in);
    body(g, i, user);
    LLVMBuildStore(g->b, LLVMBuildAdd(g->b, i, gen_int(g, g->size, 1), ""), at);
    LLVMBuildBr(g->b, head);
    LLVMPositionBuilderAtEnd(g->b, out);
}

/* ---- open -------------------------------------------------------------------------------------- */

static void look_at(Gen *g, LLVMValueRef i, void *user)
{
    struct Host      *h = g->host;
    struct Device    *d = h->device;
    LLVMValueRef      list = host_get(g, h->params_t, user, P_DEVICES), v, kind;
    LLVMBasicBlockRef some = gen_bb(g, "some"), ours = gen_bb(g, "ours"), next = gen_bb(g, "next");

    v = LLVMBuildLoad2(g->b, g->ptr, LLVMBuildGEP2(g->b, g->ptr, list, &i, 1, ""), "");
    LLVMBuildCondBr(g->b, host_is_null(g, v), next, some);
    LLVMPositionBuilderAtEnd(g->b, some);
    kind = host_get(g, d->device_t, v, D_KIND);
    LLVMBuildCondBr(g->b, LLVMBuildICmp(g->b, LLVMIntEQ, kind, gen_i32(g, d->code->kind), ""), ours,
                    next);
    LLVMPositionBuilderAtEnd(g->b, ours);
    LLVMBuildStore(g->b, v, slot(g, d->state, S_DEVICE));
    LLVMBuildBr(g->b, next);
    LLVMPositionBuilderAtEnd(g->b, next);
}

static LLVMValueRef kernel_slot(Gen *g, LLVMValueRef i)
{
    LLVMValueRef at = LLVMBuildAdd(g->b, i, gen_int(g, g->size, S_KERNELS), "");

    return LLVMBuildGEP2(g->b, g->ptr, g->host->device->state, &at, 1, "");
}

static void make_kernel(Gen *g, LLVMValueRef i, void *names)
{
    LLVMValueRef args[4];

    args[1] = state_get(g, S_MODULE);
    args[2] = LLVMBuildLoad2(g->b, g->ptr, LLVMBuildGEP2(g->b, g->ptr, names, &i, 1, ""), "");
    args[3] = kernel_slot(g, i);
    need(g, D_KERNEL, 4, args);
}

static void clear(Gen *g, LLVMValueRef i, void *user)
{
    (void)user;
    LLVMBuildStore(g->b, LLVMConstNull(g->ptr),
                   LLVMBuildGEP2(g->b, g->ptr, g->host->device->state, &i, 1, ""));
}

static void alloc(Gen *g, uint64_t bytes, unsigned member)
{
    LLVMValueRef args[3];

    if (!bytes)
        return;
    args[1] = gen_int(g, g->size, (int64_t)bytes);
    args[2] = slot(g, g->host->device->state, member);
    need(g, D_ALLOC, 3, args);
}

static LLVMValueRef text(Gen *g, const char *s, size_t n)
{
    return host_constant(g, LLVMConstStringInContext2(g->lc, s, n, false));
}

static LLVMValueRef names_table(Gen *g)
{
    const DeviceCode *code = g->host->device->code;
    LLVMValueRef     *at = NEW_ARRAY(g->a, LLVMValueRef, code->nkernels + 1);

    for (uint32_t i = 0; i < code->nkernels; i++)
        at[i] = text(g, code->symbols[i], strlen(code->symbols[i]));
    return host_constant(g, LLVMConstArray2(g->ptr, at, code->nkernels));
}

static void define_open(Gen *g)
{
    struct Host      *h = g->host;
    struct Device    *d = h->device;
    const DeviceCode *code = d->code;
    LLVMTypeRef       in[2] = {g->ptr, g->ptr}, t = LLVMFunctionType(g->i32, in, 2, false);
    LLVMTypeRef       close_t = LLVMFunctionType(g->none, in, 2, false);
    LLVMValueRef      params, weights, args[6], both[2], n;
    int64_t           bytes = g->t->pointer_bits == 64 ? 112 : 60;

    d->open = host_function(g, "_open", t, LLVMExternalLinkage);
    begin(g, d->open, "open");
    d->state = both[0] = LLVMGetParam(d->open, 0);
    params = both[1] = LLVMGetParam(d->open, 1);
    host_fail_if(g, host_is_null(g, d->state), TVMCC_E_NULL);
    host_fail_if(g, host_is_null(g, params), TVMCC_E_NULL);
    n = host_get(g, h->params_t, params, P_STRUCT_BYTES);
    host_fail_if(g, LLVMBuildICmp(g->b, LLVMIntULT, n, gen_i32(g, bytes), ""), TVMCC_E_MISMATCH);
    n = host_get(g, h->params_t, params, P_STATE_BYTES);
    host_fail_if(g,
                 LLVMBuildICmp(g->b, LLVMIntULT, n, gen_int(g, g->size, device_state_bytes(g)), ""),
                 TVMCC_E_MISMATCH);
    loop(g, gen_int(g, g->size, S_KERNELS + code->nkernels), clear, NULL);
    weights = host_weights(g, params);
    loop(g, host_get(g, h->params_t, params, P_DEVICE_COUNT), look_at, params);
    d->device = state_get(g, S_DEVICE);
    host_fail_if(g, host_is_null(g, d->device), TVMCC_E_DEVICE);

    args[1] = gen_i32(g, code->form);
    args[2] = text(g, (const char *)code->code.at, code->code.n);
    args[3] = gen_int(g, g->size, (int64_t)code->code.n);
    args[4] = text(g, code->options, strlen(code->options));
    args[5] = slot(g, d->state, S_MODULE);
    need(g, D_MODULE_LOAD, 6, args);
    loop(g, gen_int(g, g->size, code->nkernels), make_kernel, names_table(g));
    alloc(g, code->arena_bytes, S_ARENA);
    alloc(g, h->plan->weights_bytes, S_WEIGHTS);
    if (h->plan->weights_bytes) {
        args[1] = state_get(g, S_WEIGHTS);
        args[2] = LLVMConstNull(g->size);
        args[3] = weights;
        args[4] = gen_int(g, g->size, (int64_t)h->plan->weights_bytes);
        need(g, D_UPLOAD, 5, args);
    }
    LLVMBuildRet(g->b, gen_i32(g, 0));

    LLVMPositionBuilderAtEnd(g->b, d->failed);
    LLVMBuildCall2(g->b, close_t, d->close, both, 2, "");
    LLVMBuildRet(g->b, LLVMBuildLoad2(g->b, g->i32, d->result, ""));
    LLVMPositionBuilderAtEnd(g->b, gen_bb(g, "dead"));
    gen_end(g);
}

/* ---- close ------------------------------------------------------------------------------------- */

static void release(Gen *g, LLVMValueRef at, unsigned member)
{
    LLVMBasicBlockRef some = gen_bb(g, "some"), next = gen_bb(g, "next");
    LLVMValueRef      args[2];

    args[1] = LLVMBuildLoad2(g->b, g->ptr, at, "");
    LLVMBuildCondBr(g->b, host_is_null(g, args[1]), next, some);
    LLVMPositionBuilderAtEnd(g->b, some);
    ask(g, member, g->none, 2, args);
    LLVMBuildStore(g->b, LLVMConstNull(g->ptr), at);
    LLVMBuildBr(g->b, next);
    LLVMPositionBuilderAtEnd(g->b, next);
}

static void release_kernel(Gen *g, LLVMValueRef i, void *user)
{
    (void)user;
    release(g, kernel_slot(g, i), D_KERNEL_FREE);
}

static void define_close(Gen *g)
{
    struct Device    *d = g->host->device;
    LLVMTypeRef       in[2] = {g->ptr, g->ptr}, t = LLVMFunctionType(g->none, in, 2, false);
    LLVMBasicBlockRef open, done;

    d->close = host_function(g, "_close", t, LLVMExternalLinkage);
    gen_begin(g, d->close, "close");
    d->state = LLVMGetParam(d->close, 0);
    d->device = state_get(g, S_DEVICE);
    open = gen_bb(g, "open");
    done = gen_bb(g, "done");
    LLVMBuildCondBr(g->b, host_is_null(g, d->device), done, open);
    LLVMPositionBuilderAtEnd(g->b, open);
    loop(g, gen_int(g, g->size, d->code->nkernels), release_kernel, NULL);
    release(g, slot(g, d->state, S_MODULE), D_MODULE_FREE);
    release(g, slot(g, d->state, S_ARENA), D_FREE);
    release(g, slot(g, d->state, S_WEIGHTS), D_FREE);
    LLVMBuildStore(g->b, LLVMConstNull(g->ptr), slot(g, d->state, S_DEVICE));
    LLVMBuildBr(g->b, done);
    LLVMPositionBuilderAtEnd(g->b, done);
    gen_end(g);
}

/* ---- a run --------------------------------------------------------------------------------------- */

static bool count_args(void *user, const Stmt *s)
{
    uint32_t *n = user;

    if (s->kind == STMT_LAUNCH && s->u.launch.nargs > *n)
        *n = s->u.launch.nargs;
    return true;
}

void device_begin(Gen *g, LLVMValueRef params)
{
    struct Host   *h = g->host;
    struct Device *d = h->device;
    uint32_t       most = 1;
    TirVisit       visit = {&most, count_args, NULL, NULL, NULL};
    LLVMValueRef   n = host_get(g, h->params_t, params, P_STATE_BYTES);

    stmt_visit(h->main->body, &visit);
    d->state = host_get(g, h->params_t, params, P_STATE);
    host_fail_if(g, host_is_null(g, d->state), TVMCC_E_NULL);
    host_fail_if(g,
                 LLVMBuildICmp(g->b, LLVMIntULT, n, gen_int(g, g->size, device_state_bytes(g)), ""),
                 TVMCC_E_MISMATCH);
    d->device = state_get(g, S_DEVICE);
    host_fail_if(g, host_is_null(g, d->device), TVMCC_E_DEVICE);
    d->result = gen_alloca(g, g->i32, 4, "result");
    d->args = gen_alloca(g, LLVMArrayType2(d->arg_t, 2 * (uint64_t)most), 16, "args");
    d->values = gen_alloca(g, LLVMArrayType2(g->i64, most), 8, "values");
    d->grid = gen_alloca(g, LLVMArrayType2(g->i32, 3), 4, "grid");
    d->block = gen_alloca(g, LLVMArrayType2(g->i32, 3), 4, "block");
    d->failed = gen_bb(g, "failed");
}

LLVMValueRef device_memory(Gen *g, bool weights)
{
    return state_get(g, weights ? S_WEIGHTS : S_ARENA);
}

/* Both ways out wait; the first code that is not 0 counts. */
void device_end(Gen *g)
{
    struct Device *d = g->host->device;
    LLVMValueRef   args[1];

    LLVMBuildRet(g->b, ask(g, D_WAIT, g->i32, 1, args));
    LLVMPositionBuilderAtEnd(g->b, d->failed);
    ask(g, D_WAIT, g->i32, 1, args);
    LLVMBuildRet(g->b, LLVMBuildLoad2(g->b, g->i32, d->result, ""));
    LLVMPositionBuilderAtEnd(g->b, gen_bb(g, "dead"));
}

static LLVMValueRef cell(Gen *g, LLVMTypeRef t, LLVMValueRef p, unsigned i)
{
    LLVMValueRef at = gen_int(g, g->i32, i);

    return LLVMBuildGEP2(g->b, t, p, &at, 1, "");
}

static void put_arg(Gen *g, unsigned i, uint32_t kind, LLVMValueRef p)
{
    struct Device *d = g->host->device;
    LLVMValueRef   at = cell(g, d->arg_t, d->args, i);

    host_put(g, d->arg_t, at, 0, gen_i32(g, kind));
    host_put(g, d->arg_t, at, 1, gen_i32(g, 8));
    host_put(g, d->arg_t, at, 2, p);
}

static unsigned kernel_index(Gen *g, const char *name)
{
    const DeviceCode *code = g->host->device->code;

    for (uint32_t i = 0; i < code->nkernels; i++)
        if (!strcmp(code->kernels[i], name))
            return i;
    BUG("@%s launches @%s, which the device's code lacks", g->name, name);
}

static LLVMValueRef offset_of(Gen *g, const Arg *a)
{
    return gen_idx_as(g, a->offset ? a->offset : idx_const(g->c->arith, 0), 64);
}

void device_launch(Gen *g, const Stmt *s)
{
    const LaunchData *l = &s->u.launch;
    struct Host      *h = g->host;
    struct Device    *d = h->device;
    GenMark           mark = gen_mark(g);
    LLVMValueRef      args[6], tell[4], go;
    unsigned          n = 0;

    tell[0] = h->run;
    tell[1] = gen_i32(g, h->step++);
    tell[2] = tell[3] = gen_i32(g, 0);
    go = LLVMBuildCall2(g->b, h->begin_t, h->begin, tell, 4, "");
    go = LLVMBuildICmp(g->b, LLVMIntEQ, go, gen_i32(g, 0), "");
    check(g, LLVMBuildSelect(g->b, go, gen_i32(g, TVMCC_E_CANCELLED), gen_i32(g, 0), ""));
    for (uint32_t i = 0; i < l->nargs; i++) {
        const Arg   *a = &l->args[i];
        LLVMValueRef value = cell(g, g->i64, d->values, i);

        LLVMBuildStore(g->b, a->buffer ? offset_of(g, a) : gen_idx_as(g, a->scalar, 64), value);
        if (a->buffer)
            put_arg(g, n++, TVMCC_ARG_BUFFER, map_get(g->bufs, a->buffer->id));
        put_arg(g, n++, TVMCC_ARG_VALUE, value);
    }
    for (unsigned i = 0; i < 3; i++) {
        LLVMBuildStore(g->b, gen_idx_as(g, l->grid[i], 32), cell(g, g->i32, d->grid, i));
        LLVMBuildStore(g->b, gen_idx_as(g, l->block[i], 32), cell(g, g->i32, d->block, i));
    }
    args[1] = state_get(g, S_KERNELS + kernel_index(g, l->kernel));
    args[2] = d->grid;
    args[3] = d->block;
    args[4] = d->args;
    args[5] = gen_i32(g, n);
    need(g, D_LAUNCH, 6, args);
    LLVMBuildCall2(g->b, h->end_t, h->end, tell, 3, "");
    gen_drop(g, mark);
}

void device_copy(Gen *g, const Stmt *s)
{
    const CopyData *c = &s->u.copy;
    const Arg   *host = c->to_device ? &c->src : &c->dst, *there = c->to_device ? &c->dst : &c->src;
    GenMark      mark = gen_mark(g);
    LLVMValueRef args[5], at = offset_of(g, host), p;

    p = LLVMBuildGEP2(g->b, g->i8, map_get(g->bufs, host->buffer->id), &at, 1, "");
    at = LLVMBuildTruncOrBitCast(g->b, offset_of(g, there), g->size, "");
    if (c->to_device) {
        args[1] = map_get(g->bufs, there->buffer->id);
        args[2] = at;
        args[3] = p;
    } else {
        args[1] = p;
        args[2] = map_get(g->bufs, there->buffer->id);
        args[3] = at;
    }
    args[4] = gen_int(g, g->size, c->bytes);
    need(g, c->to_device ? D_UPLOAD : D_DOWNLOAD, 5, args);
    gen_drop(g, mark);
}

/* ---- the rest ------------------------------------------------------------------------------------ */

int64_t device_state_bytes(Gen *g)
{
    return (int64_t)(S_KERNELS + g->host->device->code->nkernels) * g->t->pointer_bits / 8;
}

void device_open_close(Gen *g, LLVMValueRef *open, LLVMValueRef *close)
{
    struct Device *d = NEW(g->a, struct Device);
    LLVMTypeRef    member[D_COUNT] = {g->i32, g->i32}, arg[3] = {g->i32, g->i32, g->ptr};

    for (unsigned i = D_SELF; i < D_COUNT; i++)
        member[i] = g->ptr;
    d->code = g->host->o->device;
    d->device_t = LLVMStructTypeInContext(g->lc, member, D_COUNT, false);
    d->arg_t = LLVMStructTypeInContext(g->lc, arg, 3, false);
    g->host->device = d;
    define_close(g);
    define_open(g);
    *open = d->open;
    *close = d->close;
}
