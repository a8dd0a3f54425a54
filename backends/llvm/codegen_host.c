/* The entry points of a model: <entry>_run, <entry>_run_ex, <entry>_info (include/tvmcc/abi.h).
 *
 *     run_ex(in, out, params) {
 *       check the arguments; fill in a `run` on the stack
 *       parts == 1:   worker(&run, 0, 1)
 *       barrier:      launch(user, worker, &run, parts)
 *       no barrier:   for phase < n  launch(user, phases, &run, parts)   }
 *
 * `worker` is the region of main, outlined; `phases` the same steps cut at the barriers, where all
 * of them stand in the region itself (else such a run takes one part: bits never depend on the
 * parts).
 *
 * A cancelled run has to leave all parts at the same barrier.  Part 0 therefore writes down *when*
 * to stop, the number of barriers passed plus one, and from there on every part skips its steps. */
#include "backends/llvm/llvm.h"

#include "tvmcc/abi.h"

#include <string.h>

#ifndef TVMCC_VERSION
#define TVMCC_VERSION "0.0.0"
#endif

enum { ARENA_ALIGN = 64, WEIGHTS_ALIGN = 64, NEVER = INT32_MAX };

/* Members of tvmcc_params, in order. */
enum {
    P_STRUCT_BYTES,
    P_THREADS,
    P_ARENA,
    P_ARENA_BYTES,
    P_WEIGHTS,
    P_WEIGHTS_BYTES,
    P_STATE,
    P_STATE_BYTES,
    P_LAUNCH,
    P_BARRIER,
    P_USER,
    P_DEVICES,
    P_DEVICE_COUNT,
    P_INSTRUMENT,
    P_INSTRUMENT_USER,
    P_COUNT
};

/* Members of a run, what the parts of a region share. */
enum { R_PARAMS, R_IN, R_OUT, R_ARENA, R_WEIGHTS, R_PARTS, R_PHASE, R_STOP, R_COUNT };

struct Host {
    const Plan           *plan;
    const Func           *main;
    const CodegenOptions *o;
    LLVMTypeRef           params_t, run_t, worker_t;
    LLVMValueRef          begin, end, meet, weights;
    LLVMTypeRef           begin_t, end_t, meet_t;
    /* in the function at hand */
    bool         in_region;
    LLVMValueRef run, part, parts, passed; /* passed: alloca, barriers so far */
    uint32_t     step, nregions;
};

/* ---- helpers --------------------------------------------------------------------------------- */

static LLVMValueRef member(Gen *g, LLVMTypeRef t, LLVMValueRef p, unsigned i)
{
    return LLVMBuildStructGEP2(g->b, t, p, i, "");
}

static LLVMValueRef get(Gen *g, LLVMTypeRef t, LLVMValueRef p, unsigned i)
{
    return LLVMBuildLoad2(g->b, LLVMStructGetTypeAtIndex(t, i), member(g, t, p, i), "");
}

static void put(Gen *g, LLVMTypeRef t, LLVMValueRef p, unsigned i, LLVMValueRef v)
{
    LLVMBuildStore(g->b, v, member(g, t, p, i));
}

static LLVMValueRef is_null(Gen *g, LLVMValueRef p)
{
    return LLVMBuildICmp(g->b, LLVMIntEQ, p, LLVMConstNull(LLVMTypeOf(p)), "");
}

/* return code if cond */
static void fail_if(Gen *g, LLVMValueRef cond, int32_t code)
{
    LLVMBasicBlockRef bad = gen_bb(g, "bad"), good = gen_bb(g, "good");

    LLVMBuildCondBr(g->b, cond, bad, good);
    LLVMPositionBuilderAtEnd(g->b, bad);
    LLVMBuildRet(g->b, gen_i32(g, code));
    LLVMPositionBuilderAtEnd(g->b, good);
}

static void fail_unaligned(Gen *g, LLVMValueRef p, uint32_t align)
{
    LLVMValueRef bits;

    if (align <= 1)
        return;
    bits = LLVMBuildAnd(g->b, LLVMBuildPtrToInt(g->b, p, g->size, ""),
                        gen_int(g, g->size, align - 1), "");
    fail_if(g, LLVMBuildICmp(g->b, LLVMIntNE, bits, LLVMConstNull(g->size), ""), TVMCC_E_ALIGN);
}

static LLVMValueRef function(Gen *g, const char *name, LLVMTypeRef t, LLVMLinkage linkage)
{
    LLVMValueRef fn =
        LLVMAddFunction(g->mod, arena_printf(g->a, "%s%s", g->host->o->entry, name), t);

    LLVMSetLinkage(fn, linkage);
    gen_attr(g, fn, LLVMAttributeFunctionIndex, "nounwind", 0);
    return fn;
}

static void atomic(LLVMValueRef access, uint32_t align)
{
    LLVMSetOrdering(access, LLVMAtomicOrderingMonotonic);
    LLVMSetAlignment(access, align);
}

/* ---- what every part calls ------------------------------------------------------------------------ */

/* i32 begin(run, step, part, passed): 1 if the step shall run. */
static void define_begin(Gen *g)
{
    struct Host *h = g->host;
    LLVMTypeRef  in[4] = {g->ptr, g->i32, g->i32, g->i32},
                event[4] = {g->ptr, g->i32, g->i32, g->i32};
    LLVMTypeRef       event_t = LLVMFunctionType(g->i32, event, 4, false);
    LLVMValueRef      run, params, fn, args[4], stop, cond, one;
    LLVMBasicBlockRef ask, tell, set, yes, no;

    h->begin_t = LLVMFunctionType(g->i32, in, 4, false);
    h->begin = function(g, "__begin", h->begin_t, LLVMInternalLinkage);
    gen_begin(g, h->begin, "begin");
    run = LLVMGetParam(h->begin, 0);
    params = get(g, h->run_t, run, R_PARAMS);
    fn = get(g, h->params_t, params, P_INSTRUMENT);
    ask = gen_bb(g, "ask");
    tell = gen_bb(g, "tell");
    set = gen_bb(g, "set");
    yes = gen_bb(g, "yes");
    no = gen_bb(g, "no");
    LLVMBuildCondBr(g->b, is_null(g, fn), yes, ask);

    LLVMPositionBuilderAtEnd(g->b, ask);
    stop = get(g, h->run_t, run, R_STOP);
    atomic(stop, 4);
    cond = LLVMBuildICmp(g->b, LLVMIntSLE, stop, LLVMGetParam(h->begin, 3), "");
    LLVMBuildCondBr(g->b, cond, no, tell);

    LLVMPositionBuilderAtEnd(g->b, tell);
    args[0] = get(g, h->params_t, params, P_INSTRUMENT_USER);
    args[1] = gen_i32(g, TVMCC_EVENT_BEGIN);
    args[2] = LLVMGetParam(h->begin, 1);
    args[3] = LLVMGetParam(h->begin, 2);
    cond = LLVMBuildCall2(g->b, event_t, fn, args, 4, "");
    cond = LLVMBuildICmp(g->b, LLVMIntNE, cond, gen_i32(g, 0), "");
    cond = LLVMBuildAnd(
        g->b, cond, LLVMBuildICmp(g->b, LLVMIntEQ, LLVMGetParam(h->begin, 2), gen_i32(g, 0), ""),
        "");
    LLVMBuildCondBr(g->b, cond, set, yes);

    /* Alone, at once; else all parts together, behind the next barrier. */
    LLVMPositionBuilderAtEnd(g->b, set);
    one = LLVMBuildICmp(g->b, LLVMIntEQ, get(g, h->run_t, run, R_PARTS), gen_i32(g, 1), "");
    stop = LLVMBuildAdd(g->b, LLVMGetParam(h->begin, 3),
                        LLVMBuildSelect(g->b, one, gen_i32(g, 0), gen_i32(g, 1), ""), "");
    stop = LLVMBuildStore(g->b, stop, member(g, h->run_t, run, R_STOP));
    atomic(stop, 4);
    LLVMBuildCondBr(g->b, one, no, yes);

    LLVMPositionBuilderAtEnd(g->b, yes);
    LLVMBuildRet(g->b, gen_i32(g, 1));
    LLVMPositionBuilderAtEnd(g->b, no);
    LLVMBuildRet(g->b, gen_i32(g, 0));
    LLVMPositionBuilderAtEnd(g->b, g->entry);
    LLVMBuildBr(g->b, LLVMGetNextBasicBlock(g->entry));
}

/* end(run, step, part) */
static void define_end(Gen *g)
{
    struct Host      *h = g->host;
    LLVMTypeRef       in[3] = {g->ptr, g->i32, g->i32}, event[4] = {g->ptr, g->i32, g->i32, g->i32};
    LLVMTypeRef       event_t = LLVMFunctionType(g->i32, event, 4, false);
    LLVMValueRef      params, fn, args[4];
    LLVMBasicBlockRef tell, done;

    h->end_t = LLVMFunctionType(g->none, in, 3, false);
    h->end = function(g, "__end", h->end_t, LLVMInternalLinkage);
    gen_begin(g, h->end, "end");
    params = get(g, h->run_t, LLVMGetParam(h->end, 0), R_PARAMS);
    fn = get(g, h->params_t, params, P_INSTRUMENT);
    tell = gen_bb(g, "tell");
    done = gen_bb(g, "done");
    LLVMBuildCondBr(g->b, is_null(g, fn), done, tell);
    LLVMPositionBuilderAtEnd(g->b, tell);
    args[0] = get(g, h->params_t, params, P_INSTRUMENT_USER);
    args[1] = gen_i32(g, TVMCC_EVENT_END);
    args[2] = LLVMGetParam(h->end, 1);
    args[3] = LLVMGetParam(h->end, 2);
    LLVMBuildCall2(g->b, event_t, fn, args, 4, "");
    LLVMBuildBr(g->b, done);
    LLVMPositionBuilderAtEnd(g->b, done);
    gen_end(g);
}

/* meet(run, part): the caller's barrier, if there are others to meet. */
static void define_meet(Gen *g)
{
    struct Host      *h = g->host;
    LLVMTypeRef       in[2] = {g->ptr, g->i32}, barrier_t = LLVMFunctionType(g->none, in, 2, false);
    LLVMValueRef      run, params, one, args[2];
    LLVMBasicBlockRef wait, done;

    h->meet_t = barrier_t;
    h->meet = function(g, "__meet", h->meet_t, LLVMInternalLinkage);
    gen_begin(g, h->meet, "meet");
    run = LLVMGetParam(h->meet, 0);
    one = LLVMBuildICmp(g->b, LLVMIntEQ, get(g, h->run_t, run, R_PARTS), gen_i32(g, 1), "");
    wait = gen_bb(g, "wait");
    done = gen_bb(g, "done");
    LLVMBuildCondBr(g->b, one, done, wait);
    LLVMPositionBuilderAtEnd(g->b, wait);
    params = get(g, h->run_t, run, R_PARAMS);
    args[0] = get(g, h->params_t, params, P_USER);
    args[1] = LLVMGetParam(h->meet, 1);
    LLVMBuildCall2(g->b, barrier_t, get(g, h->params_t, params, P_BARRIER), args, 2, "");
    LLVMBuildBr(g->b, done);
    LLVMPositionBuilderAtEnd(g->b, done);
    gen_end(g);
}

/* ---- regions ---------------------------------------------------------------------------------------- */

/* The pointers that main's parameters stand for, from the run. */
static void bind_buffers(Gen *g)
{
    struct Host *h = g->host;
    const Func  *f = h->main;
    uint32_t     nio = h->plan->nin + h->plan->nout;
    LLVMValueRef from[2] = {get(g, h->run_t, h->run, R_IN), get(g, h->run_t, h->run, R_OUT)};

    for (uint32_t i = 0; i < f->nparams; i++) {
        bool         out = i >= h->plan->nin;
        LLVMValueRef at = gen_int(g, g->i32, out ? i - h->plan->nin : i), v;

        if (i == nio)
            v = get(g, h->run_t, h->run, R_ARENA);
        else if (i == nio + 1)
            v = get(g, h->run_t, h->run, R_WEIGHTS);
        else
            v = LLVMBuildLoad2(g->b, g->ptr, LLVMBuildGEP2(g->b, g->ptr, from[out], &at, 1, ""),
                               "");
        map_put(g->bufs, f->params[i].buffer->id, v);
    }
}

/* What is going on in g while another function is made. */
typedef struct {
    Gen               g;
    struct Host       h;
    LLVMBasicBlockRef at;
} Saved;

static void save(Gen *g, Saved *s)
{
    s->g = *g;
    s->h = *g->host;
    s->at = LLVMGetInsertBlock(g->b);
}

static void restore(Gen *g, const Saved *s)
{
    struct Host *h = g->host;
    uint32_t     step = h->step;

    *g = s->g;
    *h = s->h;
    h->step = step;
    LLVMPositionBuilderAtEnd(g->b, s->at);
}

static void begin_worker(Gen *g, LLVMValueRef fn, const Stmt *region)
{
    struct Host *h = g->host;

    gen_begin(g, fn, "region");
    h->in_region = true;
    h->run = LLVMGetParam(fn, 0);
    h->part = LLVMGetParam(fn, 1);
    h->parts = LLVMGetParam(fn, 2);
    h->passed = gen_alloca(g, g->i32, 4, "passed");
    LLVMBuildStore(g->b, gen_i32(g, 0), h->passed);
    bind_buffers(g);
    gen_bind(g, region->u.region.tid, LLVMBuildZExt(g->b, h->part, g->i64, ""));
    gen_bind(g, region->u.region.nt, LLVMBuildZExt(g->b, h->parts, g->i64, ""));
}

static LLVMValueRef make_worker(Gen *g, const Stmt *region, uint32_t n)
{
    Saved        s;
    LLVMValueRef fn =
        function(g, arena_printf(g->a, "__region%u", n), g->host->worker_t, LLVMInternalLinkage);

    save(g, &s);
    begin_worker(g, fn, region);
    gen_stmt(g, region->kids[0]);
    gen_end(g);
    restore(g, &s);
    return fn;
}

static bool has_barrier(const Stmt *s)
{
    if (s->kind == STMT_BARRIER)
        return true;
    for (uint32_t i = 0; i < s->nkids; i++)
        if (has_barrier(s->kids[i]))
            return true;
    return false;
}

/* The number of phases, 0 if a barrier stands inside control flow. */
static uint32_t count_phases(const Stmt *body)
{
    uint32_t n = 1;

    if (body->kind != STMT_SEQ)
        return has_barrier(body) ? 0 : 1;
    for (uint32_t i = 0; i < body->nkids; i++) {
        if (body->kids[i]->kind == STMT_BARRIER)
            n++;
        else if (has_barrier(body->kids[i]))
            return 0;
    }
    return n;
}

static LLVMValueRef make_phases(Gen *g, const Stmt *region, uint32_t n, uint32_t nphases)
{
    Saved        s;
    const Stmt  *body = region->kids[0];
    LLVMValueRef fn =
        function(g, arena_printf(g->a, "__phases%u", n), g->host->worker_t, LLVMInternalLinkage);
    LLVMValueRef      phase, sw;
    LLVMBasicBlockRef done;

    save(g, &s);
    begin_worker(g, fn, region);
    phase = get(g, g->host->run_t, g->host->run, R_PHASE);
    LLVMBuildStore(g->b, phase, g->host->passed);
    done = gen_bb(g, "end");
    sw = LLVMBuildSwitch(g->b, phase, done, nphases);
    for (uint32_t p = 0, i = 0; p < nphases; p++) {
        LLVMBasicBlockRef at = gen_bb(g, "phase");
        GenMark           mark = gen_mark(g);

        LLVMAddCase(sw, gen_i32(g, p), at);
        LLVMPositionBuilderAtEnd(g->b, at);
        if (body->kind != STMT_SEQ)
            gen_stmt(g, body);
        else
            for (; i < body->nkids && body->kids[i]->kind != STMT_BARRIER; i++)
                gen_stmt(g, body->kids[i]);
        i++;
        gen_drop(g, mark);
        LLVMBuildBr(g->b, done);
    }
    LLVMPositionBuilderAtEnd(g->b, done);
    gen_end(g);
    restore(g, &s);
    return fn;
}

/* launch(user, fn, run, parts); leaves the entry point with its code unless it is 0. */
static void gen_launch(Gen *g, LLVMValueRef fn)
{
    struct Host      *h = g->host;
    LLVMTypeRef       in[4] = {g->ptr, g->ptr, g->ptr, g->i32};
    LLVMTypeRef       t = LLVMFunctionType(g->i32, in, 4, false);
    LLVMValueRef      params = get(g, h->run_t, h->run, R_PARAMS), args[4], code;
    LLVMBasicBlockRef bad = gen_bb(g, "failed"), good = gen_bb(g, "launched");

    args[0] = get(g, h->params_t, params, P_USER);
    args[1] = fn;
    args[2] = h->run;
    args[3] = get(g, h->run_t, h->run, R_PARTS);
    code = LLVMBuildCall2(g->b, t, get(g, h->params_t, params, P_LAUNCH), args, 4, "");
    LLVMBuildCondBr(g->b, LLVMBuildICmp(g->b, LLVMIntEQ, code, gen_i32(g, 0), ""), good, bad);
    LLVMPositionBuilderAtEnd(g->b, bad);
    LLVMBuildRet(g->b, code);
    LLVMPositionBuilderAtEnd(g->b, good);
}

static void launch_phases(Gen *g, LLVMValueRef fn, uint32_t n)
{
    struct Host      *h = g->host;
    LLVMBasicBlockRef loop = gen_bb(g, "next"), out = gen_bb(g, "ran"), in_bb[2];
    LLVMValueRef      phase, more, in_v[2];

    in_bb[0] = LLVMGetInsertBlock(g->b);
    LLVMBuildBr(g->b, loop);
    LLVMPositionBuilderAtEnd(g->b, loop);
    phase = LLVMBuildPhi(g->b, g->i32, "");
    put(g, h->run_t, h->run, R_PHASE, phase);
    gen_launch(g, fn);
    in_v[0] = gen_i32(g, 0);
    in_v[1] = LLVMBuildNSWAdd(g->b, phase, gen_i32(g, 1), "");
    in_bb[1] = LLVMGetInsertBlock(g->b);
    LLVMAddIncoming(phase, in_v, in_bb, 2);
    more = LLVMBuildICmp(g->b, LLVMIntSLT, in_v[1], gen_i32(g, n), "");
    LLVMBuildCondBr(g->b, more, loop, out);
    LLVMPositionBuilderAtEnd(g->b, out);
}

static void call_worker(Gen *g, LLVMValueRef fn)
{
    LLVMValueRef args[3] = {g->host->run, gen_i32(g, 0), gen_i32(g, 1)};

    LLVMBuildCall2(g->b, g->host->worker_t, fn, args, 3, "");
}

void gen_region(Gen *g, const Stmt *s)
{
    struct Host      *h = g->host;
    uint32_t          n, nphases, step;
    LLVMValueRef      worker, phases = NULL, one, params, stop;
    LLVMBasicBlockRef alone, many, whole, cut, after;

    if (!h) { /* in process: one part, in line */
        gen_bind(g, s->u.region.tid, gen_int(g, g->i64, 0));
        gen_bind(g, s->u.region.nt, gen_int(g, g->i64, 1));
        gen_stmt(g, s->kids[0]);
        return;
    }
    if (h->in_region)
        BUG("@%s: a region inside a region", g->name);
    n = h->nregions++;
    step = h->step;
    nphases = count_phases(s->kids[0]);
    worker = make_worker(g, s, n);
    if (nphases) {
        uint32_t after_worker = h->step;

        h->step = step; /* the same steps under the same numbers */
        phases = make_phases(g, s, n, nphases);
        h->step = after_worker;
    }
    alone = gen_bb(g, "alone");
    many = gen_bb(g, "many");
    whole = gen_bb(g, "whole");
    cut = gen_bb(g, "cut");
    after = gen_bb(g, "after");
    one = LLVMBuildICmp(g->b, LLVMIntEQ, get(g, h->run_t, h->run, R_PARTS), gen_i32(g, 1), "");
    LLVMBuildCondBr(g->b, one, alone, many);
    LLVMPositionBuilderAtEnd(g->b, alone);
    call_worker(g, worker);
    LLVMBuildBr(g->b, after);

    LLVMPositionBuilderAtEnd(g->b, many);
    params = get(g, h->run_t, h->run, R_PARAMS);
    LLVMBuildCondBr(g->b, is_null(g, get(g, h->params_t, params, P_BARRIER)), cut, whole);
    LLVMPositionBuilderAtEnd(g->b, whole);
    gen_launch(g, worker);
    LLVMBuildBr(g->b, after);

    LLVMPositionBuilderAtEnd(g->b, cut);
    if (phases)
        launch_phases(g, phases, nphases);
    else {
        put(g, h->run_t, h->run, R_PARTS, gen_i32(g, 1));
        call_worker(g, worker);
    }
    LLVMBuildBr(g->b, after);

    LLVMPositionBuilderAtEnd(g->b, after);
    stop = LLVMBuildICmp(g->b, LLVMIntNE, get(g, h->run_t, h->run, R_STOP), gen_i32(g, NEVER), "");
    fail_if(g, stop, TVMCC_E_CANCELLED);
}

void gen_barrier(Gen *g)
{
    struct Host *h = g->host;
    LLVMValueRef args[2], n;

    if (!h)
        return;
    if (!h->in_region)
        BUG("@%s: a barrier outside regions", g->name);
    args[0] = h->run;
    args[1] = h->part;
    LLVMBuildCall2(g->b, h->meet_t, h->meet, args, 2, "");
    n = LLVMBuildLoad2(g->b, g->i32, h->passed, "");
    LLVMBuildStore(g->b, LLVMBuildAdd(g->b, n, gen_i32(g, 1), ""), h->passed);
}

LLVMValueRef gen_going(Gen *g)
{
    struct Host *h = g->host;
    LLVMValueRef stop;

    if (!h || !h->in_region)
        return NULL;
    stop = get(g, h->run_t, h->run, R_STOP);
    atomic(stop, 4);
    return LLVMBuildICmp(g->b, LLVMIntSGT, stop, LLVMBuildLoad2(g->b, g->i32, h->passed, ""), "");
}

void gen_step(Gen *g, const Stmt *s)
{
    struct Host      *h = g->host;
    LLVMBasicBlockRef ask, run, done;
    LLVMValueRef      args[4], go;

    if (!h->in_region) {
        gen_call(g, s);
        return;
    }
    run = gen_bb(g, "run");
    done = gen_bb(g, "done");
    if (s->u.call.on0) {
        ask = gen_bb(g, "part0");
        go = LLVMBuildICmp(g->b, LLVMIntEQ, h->part, gen_i32(g, 0), "");
        LLVMBuildCondBr(g->b, go, ask, done);
        LLVMPositionBuilderAtEnd(g->b, ask);
    }
    args[0] = h->run;
    args[1] = gen_i32(g, h->step++);
    args[2] = h->part;
    args[3] = LLVMBuildLoad2(g->b, g->i32, h->passed, "");
    go = LLVMBuildCall2(g->b, h->begin_t, h->begin, args, 4, "");
    LLVMBuildCondBr(g->b, LLVMBuildICmp(g->b, LLVMIntNE, go, gen_i32(g, 0), ""), run, done);
    LLVMPositionBuilderAtEnd(g->b, run);
    gen_call(g, s);
    LLVMBuildCall2(g->b, h->end_t, h->end, args, 3, "");
    LLVMBuildBr(g->b, done);
    LLVMPositionBuilderAtEnd(g->b, done);
}

void gen_fail(Gen *g, int32_t code)
{
    LLVMTypeRef ret = LLVMGetReturnType(LLVMGlobalGetValueType(g->fn));

    if (g->host && g->host->in_region)
        BUG("@%s: a fail inside a region", g->name);
    if (ret == g->i32)
        LLVMBuildRet(g->b, gen_i32(g, code));
    else
        LLVMBuildRetVoid(g->b);
    LLVMPositionBuilderAtEnd(g->b, gen_bb(g, "dead"));
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
        fail_if(g, is_null(g, p), TVMCC_E_NULL);
        fail_unaligned(g, p, align);
    }
}

/* The weights to use: the caller's, else the embedded ones. */
static LLVMValueRef check_weights(Gen *g, LLVMValueRef params)
{
    struct Host      *h = g->host;
    LLVMValueRef      w = get(g, h->params_t, params, P_WEIGHTS), none, bytes, v[2], phi;
    LLVMBasicBlockRef given = gen_bb(g, "given"), own = gen_bb(g, "own"),
                      done = gen_bb(g, "weights");
    LLVMBasicBlockRef from[2];

    if (!h->plan->weights_bytes)
        return w;
    none = is_null(g, w);
    if (!h->weights) {
        fail_if(g, none, TVMCC_E_NULL);
        none = LLVMConstInt(g->i1, 0, false);
    }
    LLVMBuildCondBr(g->b, none, own, given);
    LLVMPositionBuilderAtEnd(g->b, given);
    fail_unaligned(g, w, WEIGHTS_ALIGN);
    bytes = get(g, h->params_t, params, P_WEIGHTS_BYTES);
    fail_if(g,
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
    LLVMValueRef n = get(g, h->params_t, params, P_THREADS), arena, need, have;
    bool         any = h->plan->arena_bytes || h->plan->private_bytes;

    n = LLVMBuildSelect(g->b, LLVMBuildICmp(g->b, LLVMIntEQ, n, gen_i32(g, 0), ""), gen_i32(g, 1),
                        n, "");
    fail_if(g, LLVMBuildICmp(g->b, LLVMIntUGT, n, gen_i32(g, most), ""), TVMCC_E_MISMATCH);
    arena = get(g, h->params_t, params, P_ARENA);
    if (any)
        fail_if(g, is_null(g, arena), TVMCC_E_NULL);
    fail_unaligned(g, arena, ARENA_ALIGN);
    need = LLVMBuildMul(g->b, LLVMBuildZExt(g->b, n, g->i64, ""),
                        gen_int(g, g->i64, (int64_t)h->plan->private_bytes), "");
    need = LLVMBuildAdd(g->b, need, gen_int(g, g->i64, (int64_t)h->plan->arena_bytes), "");
    have = get(g, h->params_t, params, P_ARENA_BYTES);
    have = LLVMBuildZExtOrBitCast(g->b, have, g->i64, "");
    fail_if(g, LLVMBuildICmp(g->b, LLVMIntULT, have, need, ""), TVMCC_E_MISMATCH);
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

static LLVMValueRef define_run_ex(Gen *g)
{
    struct Host *h = g->host;
    const Func  *f = h->main;
    const Atom  *nt = region_nt(f->body);
    LLVMTypeRef  in[3] = {g->ptr, g->ptr, g->ptr}, t = LLVMFunctionType(g->i32, in, 3, false);
    LLVMValueRef fn = function(g, "_run_ex", t, LLVMExternalLinkage), params, n, weights, run,
                 alone;
    uint64_t bytes = g->t->pointer_bits == 64 ? 112 : 60;

    gen_begin(g, fn, "run_ex");
    params = LLVMGetParam(fn, 2);
    for (unsigned i = 0; i < 3; i++)
        fail_if(g, is_null(g, LLVMGetParam(fn, i)), TVMCC_E_NULL);
    n = get(g, h->params_t, params, P_STRUCT_BYTES);
    fail_if(g, LLVMBuildICmp(g->b, LLVMIntULT, n, gen_i32(g, (int64_t)bytes), ""),
            TVMCC_E_MISMATCH);
    n = check_arena(g, params, nt && nt->hi > 0 && nt->hi < 1 << 16 ? nt->hi : 1 << 16);
    weights = check_weights(g, params);
    check_tensors(g, LLVMGetParam(fn, 0), h->plan->nin, h->plan->in, f->params);
    check_tensors(g, LLVMGetParam(fn, 1), h->plan->nout, h->plan->out, f->params + h->plan->nin);

    run = h->run = gen_alloca(g, h->run_t, 16, "run");
    alone = is_null(g, get(g, h->params_t, params, P_LAUNCH));
    n = LLVMBuildSelect(g->b, alone, gen_i32(g, 1), n, "");
    put(g, h->run_t, run, R_PARAMS, params);
    put(g, h->run_t, run, R_IN, LLVMGetParam(fn, 0));
    put(g, h->run_t, run, R_OUT, LLVMGetParam(fn, 1));
    put(g, h->run_t, run, R_ARENA, get(g, h->params_t, params, P_ARENA));
    put(g, h->run_t, run, R_WEIGHTS, weights);
    put(g, h->run_t, run, R_PARTS, n);
    put(g, h->run_t, run, R_PHASE, gen_i32(g, 0));
    put(g, h->run_t, run, R_STOP, gen_i32(g, NEVER));
    bind_buffers(g);
    gen_stmt(g, f->body);
    gen_end(g);
    return fn;
}

static void define_run(Gen *g, LLVMValueRef run_ex)
{
    struct Host *h = g->host;
    LLVMTypeRef  in[3] = {g->ptr, g->ptr, g->ptr}, t = LLVMFunctionType(g->i32, in, 3, false);
    LLVMValueRef fn = function(g, "_run", t, LLVMExternalLinkage), p, args[3], code;
    uint64_t     arena = h->plan->arena_bytes + h->plan->private_bytes;

    gen_begin(g, fn, "run");
    p = gen_alloca(g, h->params_t, 16, "params");
    for (unsigned i = 0; i < P_COUNT; i++)
        put(g, h->params_t, p, i, LLVMConstNull(LLVMStructGetTypeAtIndex(h->params_t, i)));
    put(g, h->params_t, p, P_STRUCT_BYTES, gen_i32(g, g->t->pointer_bits == 64 ? 112 : 60));
    put(g, h->params_t, p, P_THREADS, gen_i32(g, 1));
    put(g, h->params_t, p, P_ARENA, LLVMGetParam(fn, 2));
    put(g, h->params_t, p, P_ARENA_BYTES, gen_int(g, g->size, (int64_t)arena));
    args[0] = LLVMGetParam(fn, 0);
    args[1] = LLVMGetParam(fn, 1);
    args[2] = p;
    code = LLVMBuildCall2(g->b, t, run_ex, args, 3, "");
    LLVMBuildRet(g->b, code);
    gen_end(g);
}

/* ---- info -------------------------------------------------------------------------------------------------- */

static LLVMValueRef constant(Gen *g, LLVMValueRef v)
{
    LLVMValueRef k = LLVMAddGlobal(g->mod, LLVMTypeOf(v), "");

    LLVMSetInitializer(k, v);
    LLVMSetGlobalConstant(k, true);
    LLVMSetLinkage(k, LLVMPrivateLinkage);
    LLVMSetUnnamedAddress(k, LLVMGlobalUnnamedAddr);
    return k;
}

static LLVMValueRef text(Gen *g, const char *s)
{
    return constant(g, LLVMConstStringInContext2(g->lc, s, strlen(s), false));
}

static LLVMValueRef bytes32(Gen *g, const void *p)
{
    return LLVMConstStringInContext2(g->lc, p, 32, true);
}

static LLVMValueRef record(Gen *g, uint32_t n, LLVMValueRef *fields)
{
    return LLVMConstStructInContext(g->lc, fields, n, false);
}

static LLVMValueRef array(Gen *g, uint32_t n, LLVMValueRef *at)
{
    if (!n)
        return LLVMConstNull(g->ptr);
    return constant(g, LLVMConstArray2(LLVMTypeOf(at[0]), at, n));
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
        field[0] = text(g, io[i].name);
        field[1] = array(g, t->n, dims);
        field[2] = gen_int(g, g->size, (int64_t)io_bytes(&io[i]));
        field[3] = gen_int(g, g->i8, t->dtype.code);
        field[4] = gen_int(g, g->i8, t->dtype.bits);
        field[5] = gen_int(g, g->i16, t->dtype.lanes);
        field[6] = gen_i32(g, t->n);
        field[7] = gen_i32(g, 0);
        field[8] = gen_i32(g, align);
        field[9] = LLVMConstReal(g->f32, 0);
        field[10] = gen_i32(g, 0);
        field[11] = LLVMConstNull(g->ptr);
        field[12] = gen_int(g, g->size, 0);
        all[i] = record(g, 13, field);
    }
    return array(g, n, all);
}

static void define_info(Gen *g, const CodegenInfo *info, LLVMValueRef run_ex)
{
    struct Host *h = g->host;
    const Plan  *p = h->plan;
    LLVMTypeRef  t = LLVMFunctionType(g->ptr, NULL, 0, false);
    LLVMValueRef fn, w[7], f[24], k;
    uint32_t     nweights = p->weights_bytes != 0, n = 0;

    w[0] = text(g, h->weights ? arena_printf(g->a, ".rodata.%s_weights", h->o->entry) : "");
    w[1] = h->weights ? h->weights : LLVMConstNull(g->ptr);
    w[2] = gen_int(g, g->size, (int64_t)p->weights_bytes);
    w[3] = gen_i32(g, h->weights ? TVMCC_WEIGHTS_EMBED : TVMCC_WEIGHTS_FILE);
    w[4] = gen_i32(g, WEIGHTS_ALIGN);
    w[5] = bytes32(g, info->weights_sha);
    k = record(g, 6, w);

    f[n++] = gen_i32(g, TVMCC_ABI);
    f[n++] = gen_i32(g, g->t->pointer_bits == 64 ? 200 : 148);
    f[n++] = text(g, h->o->entry);
    f[n++] = text(g, "tvmcc " TVMCC_VERSION);
    f[n++] = text(g, g->t->text);
    f[n++] = bytes32(g, info->model_sha);
    f[n++] = bytes32(g, info->build_id);
    f[n++] = gen_i32(g, p->nin);
    f[n++] = gen_i32(g, p->nout);
    f[n++] = gen_i32(g, 0);
    f[n++] = gen_i32(g, nweights);
    f[n++] = tensors(g, p->nin, p->in, h->main->params);
    f[n++] = tensors(g, p->nout, p->out, h->main->params + p->nin);
    f[n++] = LLVMConstNull(g->ptr);
    f[n++] = array(g, nweights, &k);
    f[n++] = gen_int(g, g->size, (int64_t)p->arena_bytes);
    f[n++] = gen_int(g, g->size, (int64_t)p->private_bytes);
    f[n++] = gen_i32(g, ARENA_ALIGN);
    f[n++] = gen_i32(g, TVMCC_DEVICE_CPU);
    f[n++] = gen_int(g, g->size, 0);
    f[n++] = run_ex;
    f[n++] = LLVMConstNull(g->ptr);
    f[n++] = LLVMConstNull(g->ptr);

    fn = function(g, "_info", t, LLVMExternalLinkage);
    gen_begin(g, fn, "info");
    LLVMBuildRet(g->b, constant(g, record(g, n, f)));
    gen_end(g);
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

bool gen_entry(Gen *g, const Plan *p, const CodegenOptions *o, const CodegenInfo *info)
{
    uint32_t     errors = diag_errors(g->c->diags);
    struct Host *h = NEW(g->a, struct Host);
    LLVMValueRef run_ex;

    h->plan = p;
    h->o = o;
    h->main = p->tir->funcs[p->tir->nfuncs - 1];
    if (h->main->kind != FUNC_HOST || h->main->nparams != p->nin + p->nout + 2)
        BUG("the plan of '%s' does not end in its host function", p->name);
    g->host = h;
    make_types(g);
    if (o->embed_weights && p->weights_bytes) {
        h->weights = LLVMAddGlobal(g->mod, g->i8, arena_printf(g->a, "%s_weights", o->entry));
        LLVMSetGlobalConstant(h->weights, true);
        LLVMSetAlignment(h->weights, WEIGHTS_ALIGN);
    }
    define_begin(g);
    define_end(g);
    define_meet(g);
    run_ex = define_run_ex(g);
    define_run(g, run_ex);
    define_info(g, info, run_ex);
    return diag_errors(g->c->diags) == errors;
}
