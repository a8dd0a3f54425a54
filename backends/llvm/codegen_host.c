/* Parallel regions of a model's host function, and what their parts call.
 *
 *     parts == 1:   worker(&run, 0, 1)
 *     barrier:      launch(user, worker, &run, parts)
 *     no barrier:   for phase < n  launch(user, phases, &run, parts)
 *
 * `worker` is the region of main, outlined; `phases` the same steps cut at the barriers, where all
 * of them stand in the region itself or begin the rounds of a loop in it (else such a run takes one
 * part: bits never depend on the parts).
 *
 * A cancelled run has to leave all parts at the same barrier.  Part 0 therefore writes down *when*
 * to stop, the number of barriers passed plus one, and from there on every part skips its steps. */
#include "backends/llvm/llvm.h"

#include "tvmcc/abi.h"

enum { MAX_LOOP_PHASES = 4096 };

/* ---- helpers --------------------------------------------------------------------------------- */

LLVMValueRef host_member(Gen *g, LLVMTypeRef t, LLVMValueRef p, unsigned i)
{
    return LLVMBuildStructGEP2(g->b, t, p, i, "");
}

LLVMValueRef host_get(Gen *g, LLVMTypeRef t, LLVMValueRef p, unsigned i)
{
    return LLVMBuildLoad2(g->b, LLVMStructGetTypeAtIndex(t, i), host_member(g, t, p, i), "");
}

void host_put(Gen *g, LLVMTypeRef t, LLVMValueRef p, unsigned i, LLVMValueRef v)
{
    LLVMBuildStore(g->b, v, host_member(g, t, p, i));
}

LLVMValueRef host_is_null(Gen *g, LLVMValueRef p)
{
    return LLVMBuildICmp(g->b, LLVMIntEQ, p, LLVMConstNull(LLVMTypeOf(p)), "");
}

/* return code if cond */
void host_fail_if(Gen *g, LLVMValueRef cond, int32_t code)
{
    LLVMBasicBlockRef bad = gen_bb(g, "bad"), good = gen_bb(g, "good");

    LLVMBuildCondBr(g->b, cond, bad, good);
    LLVMPositionBuilderAtEnd(g->b, bad);
    LLVMBuildRet(g->b, gen_i32(g, code));
    LLVMPositionBuilderAtEnd(g->b, good);
}

LLVMValueRef host_function(Gen *g, const char *name, LLVMTypeRef t, LLVMLinkage linkage)
{
    const char  *symbol = arena_printf(g->a, "%s%s", g->host->o->entry, name);
    const char  *header = g->host->header;
    LLVMValueRef fn = LLVMAddFunction(g->mod, symbol, t);

    LLVMSetLinkage(fn, linkage);
    if (linkage == LLVMExternalLinkage && header)
        LLVMAddAlias2(g->mod, t, 0, fn, arena_printf(g->a, "%s_header_%s", symbol, header));
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
void host_define_begin(Gen *g)
{
    struct Host *h = g->host;
    LLVMTypeRef  in[4] = {g->ptr, g->i32, g->i32, g->i32},
                event[4] = {g->ptr, g->i32, g->i32, g->i32};
    LLVMTypeRef       event_t = LLVMFunctionType(g->i32, event, 4, false);
    LLVMValueRef      run, params, fn, args[4], stop, cond, one;
    LLVMBasicBlockRef ask, tell, set, yes, no;

    h->begin_t = LLVMFunctionType(g->i32, in, 4, false);
    h->begin = host_function(g, "__begin", h->begin_t, LLVMInternalLinkage);
    gen_begin(g, h->begin, "begin");
    run = LLVMGetParam(h->begin, 0);
    params = host_get(g, h->run_t, run, R_PARAMS);
    fn = host_get(g, h->params_t, params, P_INSTRUMENT);
    ask = gen_bb(g, "ask");
    tell = gen_bb(g, "tell");
    set = gen_bb(g, "set");
    yes = gen_bb(g, "yes");
    no = gen_bb(g, "no");
    LLVMBuildCondBr(g->b, host_is_null(g, fn), yes, ask);

    LLVMPositionBuilderAtEnd(g->b, ask);
    stop = host_get(g, h->run_t, run, R_STOP);
    atomic(stop, 4);
    cond = LLVMBuildICmp(g->b, LLVMIntSLE, stop, LLVMGetParam(h->begin, 3), "");
    LLVMBuildCondBr(g->b, cond, no, tell);

    LLVMPositionBuilderAtEnd(g->b, tell);
    args[0] = host_get(g, h->params_t, params, P_INSTRUMENT_USER);
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
    one = LLVMBuildICmp(g->b, LLVMIntEQ, host_get(g, h->run_t, run, R_PARTS), gen_i32(g, 1), "");
    stop = LLVMBuildAdd(g->b, LLVMGetParam(h->begin, 3),
                        LLVMBuildSelect(g->b, one, gen_i32(g, 0), gen_i32(g, 1), ""), "");
    stop = LLVMBuildStore(g->b, stop, host_member(g, h->run_t, run, R_STOP));
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
void host_define_end(Gen *g)
{
    struct Host      *h = g->host;
    LLVMTypeRef       in[3] = {g->ptr, g->i32, g->i32}, event[4] = {g->ptr, g->i32, g->i32, g->i32};
    LLVMTypeRef       event_t = LLVMFunctionType(g->i32, event, 4, false);
    LLVMValueRef      params, fn, args[4];
    LLVMBasicBlockRef tell, done;

    h->end_t = LLVMFunctionType(g->none, in, 3, false);
    h->end = host_function(g, "__end", h->end_t, LLVMInternalLinkage);
    gen_begin(g, h->end, "end");
    params = host_get(g, h->run_t, LLVMGetParam(h->end, 0), R_PARAMS);
    fn = host_get(g, h->params_t, params, P_INSTRUMENT);
    tell = gen_bb(g, "tell");
    done = gen_bb(g, "done");
    LLVMBuildCondBr(g->b, host_is_null(g, fn), done, tell);
    LLVMPositionBuilderAtEnd(g->b, tell);
    args[0] = host_get(g, h->params_t, params, P_INSTRUMENT_USER);
    args[1] = gen_i32(g, TVMCC_EVENT_END);
    args[2] = LLVMGetParam(h->end, 1);
    args[3] = LLVMGetParam(h->end, 2);
    LLVMBuildCall2(g->b, event_t, fn, args, 4, "");
    LLVMBuildBr(g->b, done);
    LLVMPositionBuilderAtEnd(g->b, done);
    gen_end(g);
}

/* meet(run, part): the caller's barrier, if there are others to meet. */
void host_define_meet(Gen *g)
{
    struct Host      *h = g->host;
    LLVMTypeRef       in[2] = {g->ptr, g->i32}, barrier_t = LLVMFunctionType(g->none, in, 2, false);
    LLVMValueRef      run, params, one, args[2];
    LLVMBasicBlockRef wait, done;

    h->meet_t = barrier_t;
    h->meet = host_function(g, "__meet", h->meet_t, LLVMInternalLinkage);
    gen_begin(g, h->meet, "meet");
    run = LLVMGetParam(h->meet, 0);
    one = LLVMBuildICmp(g->b, LLVMIntEQ, host_get(g, h->run_t, run, R_PARTS), gen_i32(g, 1), "");
    wait = gen_bb(g, "wait");
    done = gen_bb(g, "done");
    LLVMBuildCondBr(g->b, one, done, wait);
    LLVMPositionBuilderAtEnd(g->b, wait);
    params = host_get(g, h->run_t, run, R_PARAMS);
    args[0] = host_get(g, h->params_t, params, P_USER);
    args[1] = LLVMGetParam(h->meet, 1);
    LLVMBuildCall2(g->b, barrier_t, host_get(g, h->params_t, params, P_BARRIER), args, 2, "");
    LLVMBuildBr(g->b, done);
    LLVMPositionBuilderAtEnd(g->b, done);
    gen_end(g);
}

/* ---- regions ---------------------------------------------------------------------------------------- */

/* The pointers that main's parameters stand for, from the run. */
void host_bind_buffers(Gen *g)
{
    struct Host *h = g->host;
    const Func  *f = h->main;
    uint32_t     nio = h->plan->nin + h->plan->nout;
    LLVMValueRef from[2] = {host_get(g, h->run_t, h->run, R_IN),
                            host_get(g, h->run_t, h->run, R_OUT)};

    for (uint32_t i = 0; i < f->nparams; i++) {
        bool         out = i >= h->plan->nin;
        LLVMValueRef at = gen_int(g, g->i32, out ? i - h->plan->nin : i), v;

        if (i == nio)
            v = host_get(g, h->run_t, h->run, R_ARENA);
        else if (i == nio + 1)
            v = host_get(g, h->run_t, h->run, R_WEIGHTS);
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
    host_bind_buffers(g);
    gen_bind(g, region->u.region.tid, LLVMBuildZExt(g->b, h->part, g->i64, ""));
    gen_bind(g, region->u.region.nt, LLVMBuildZExt(g->b, h->parts, g->i64, ""));
}

static LLVMValueRef make_worker(Gen *g, const Stmt *region, uint32_t n)
{
    Saved        s;
    LLVMValueRef fn = host_function(g, arena_printf(g->a, "__region%u", n), g->host->worker_t,
                                    LLVMInternalLinkage);

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

/* The rounds of a loop that begin with their only barrier (a kernel's phases); 0: another one. */
static uint32_t loop_phases(const Stmt *s)
{
    const Stmt *body;
    int64_t     n;

    if (s->kind != STMT_FOR || !idx_is_const(s->u.loop.extent, &n) || n < 1 || n > MAX_LOOP_PHASES)
        return 0;
    body = s->kids[0];
    if (body->kind != STMT_SEQ || !body->nkids || body->kids[0]->kind != STMT_BARRIER)
        return 0;
    for (uint32_t i = 1; i < body->nkids; i++)
        if (has_barrier(body->kids[i]))
            return 0;
    return (uint32_t)n;
}

/* The number of phases, 0 if a barrier stands inside other control flow. */
static uint32_t count_phases(const Stmt *body)
{
    uint32_t n = 1, rounds;

    if (body->kind != STMT_SEQ)
        return has_barrier(body) ? 0 : 1;
    for (uint32_t i = 0; i < body->nkids; i++) {
        if (body->kids[i]->kind == STMT_BARRIER) {
            n++;
        } else if (has_barrier(body->kids[i])) {
            rounds = loop_phases(body->kids[i]);
            /* What follows would belong to the last round. */
            if (!rounds || (i + 1 < body->nkids && body->kids[i + 1]->kind != STMT_BARRIER))
                return 0;
            n += rounds;
        }
    }
    return n;
}

/* The switch over phases of a worker that runs one of them. */
typedef struct {
    LLVMValueRef      phase, sw;
    LLVMBasicBlockRef done;
    uint32_t          n; /* phases so far */
} Phases;

/* The code that follows is that of the next `n` phases. */
static void next_phases(Gen *g, Phases *p, uint32_t n)
{
    LLVMBasicBlockRef at = gen_bb(g, "phase");

    if (p->n)
        LLVMBuildBr(g->b, p->done);
    for (uint32_t i = 0; i < n; i++)
        LLVMAddCase(p->sw, gen_i32(g, p->n++), at);
    LLVMPositionBuilderAtEnd(g->b, at);
}

/* A loop over phases, without its barrier. */
static void loop_body(Gen *g, Phases *p, const Stmt *s)
{
    uint32_t    first = p->n;
    const Stmt *body = s->kids[0];
    const Idx  *lo = s->u.loop.lo;

    next_phases(g, p, loop_phases(s));
    LLVMValueRef round = LLVMBuildSub(g->b, p->phase, gen_i32(g, first), "");
    round = LLVMBuildZExt(g->b, round, g->i64, "");
    gen_bind(g, s->u.loop.var, LLVMBuildAdd(g->b, round, gen_int(g, g->i64, lo->c0), ""));
    for (uint32_t i = 1; i < body->nkids; i++)
        gen_stmt(g, body->kids[i]);
}

static LLVMValueRef make_phases(Gen *g, const Stmt *region, uint32_t n, uint32_t nphases)
{
    Saved              s;
    const Stmt        *body = region->kids[0];
    uint32_t           count = body->kind == STMT_SEQ ? body->nkids : 1;
    const Stmt *const *kid = body->kind == STMT_SEQ ? body->kids : &body;
    LLVMValueRef       fn = host_function(g, arena_printf(g->a, "__phases%u", n), g->host->worker_t,
                                          LLVMInternalLinkage);
    Phases             p = {0};
    GenMark            mark;

    save(g, &s);
    begin_worker(g, fn, region);
    p.phase = host_get(g, g->host->run_t, g->host->run, R_PHASE);
    LLVMBuildStore(g->b, p.phase, g->host->passed);
    p.done = gen_bb(g, "end");
    p.sw = LLVMBuildSwitch(g->b, p.phase, p.done, nphases);
    next_phases(g, &p, 1);
    mark = gen_mark(g);
    for (uint32_t i = 0; i < count; i++) {
        bool barrier = kid[i]->kind == STMT_BARRIER, loop = !barrier && has_barrier(kid[i]);

        if (barrier || loop) {
            gen_drop(g, mark);
            mark = gen_mark(g);
        }
        if (barrier)
            next_phases(g, &p, 1);
        else if (loop)
            loop_body(g, &p, kid[i]);
        else
            gen_stmt(g, kid[i]);
    }
    gen_drop(g, mark);
    LLVMBuildBr(g->b, p.done);
    LLVMPositionBuilderAtEnd(g->b, p.done);
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
    LLVMValueRef      params = host_get(g, h->run_t, h->run, R_PARAMS), args[4], code;
    LLVMBasicBlockRef bad = gen_bb(g, "failed"), good = gen_bb(g, "launched");

    args[0] = host_get(g, h->params_t, params, P_USER);
    args[1] = fn;
    args[2] = h->run;
    args[3] = host_get(g, h->run_t, h->run, R_PARTS);
    code = LLVMBuildCall2(g->b, t, host_get(g, h->params_t, params, P_LAUNCH), args, 4, "");
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
    host_put(g, h->run_t, h->run, R_PHASE, phase);
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
    one = LLVMBuildICmp(g->b, LLVMIntEQ, host_get(g, h->run_t, h->run, R_PARTS), gen_i32(g, 1), "");
    LLVMBuildCondBr(g->b, one, alone, many);
    LLVMPositionBuilderAtEnd(g->b, alone);
    call_worker(g, worker);
    LLVMBuildBr(g->b, after);

    LLVMPositionBuilderAtEnd(g->b, many);
    params = host_get(g, h->run_t, h->run, R_PARAMS);
    LLVMBuildCondBr(g->b, host_is_null(g, host_get(g, h->params_t, params, P_BARRIER)), cut, whole);
    LLVMPositionBuilderAtEnd(g->b, whole);
    gen_launch(g, worker);
    LLVMBuildBr(g->b, after);

    LLVMPositionBuilderAtEnd(g->b, cut);
    if (phases)
        launch_phases(g, phases, nphases);
    else {
        host_put(g, h->run_t, h->run, R_PARTS, gen_i32(g, 1));
        call_worker(g, worker);
    }
    LLVMBuildBr(g->b, after);

    LLVMPositionBuilderAtEnd(g->b, after);
    stop = LLVMBuildICmp(g->b, LLVMIntNE, host_get(g, h->run_t, h->run, R_STOP), gen_i32(g, NEVER),
                         "");
    host_fail_if(g, stop, TVMCC_E_CANCELLED);
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
    stop = host_get(g, h->run_t, h->run, R_STOP);
    atomic(stop, 4);
    return LLVMBuildICmp(g->b, LLVMIntSGT, stop, LLVMBuildLoad2(g->b, g->i32, h->passed, ""), "");
}

void gen_step(Gen *g, const Stmt *s)
{
    struct Host      *h = g->host;
    LLVMBasicBlockRef ask, run, done;
    LLVMValueRef      args[4], go, none = gen_i32(g, 0);

    if (!h->in_region && (h->device || g->t->no_threads)) {
        gen_call(g, s);
        return;
    }
    run = gen_bb(g, "run");
    done = gen_bb(g, "done");
    if (h->in_region && s->u.call.on0) {
        ask = gen_bb(g, "part0");
        go = LLVMBuildICmp(g->b, LLVMIntEQ, h->part, gen_i32(g, 0), "");
        LLVMBuildCondBr(g->b, go, ask, done);
        LLVMPositionBuilderAtEnd(g->b, ask);
    }
    args[0] = h->run;
    args[1] = gen_i32(g, h->step++);
    args[2] = h->in_region ? h->part : none;
    args[3] = h->in_region ? LLVMBuildLoad2(g->b, g->i32, h->passed, "") : none;
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
