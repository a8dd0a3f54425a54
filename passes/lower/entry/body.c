/* Main as the body of a function: each call of a kernel is a step, which the caller may watch and
 * before which it may end the run.
 *
 *     call @k(..)        %go[] = invoke begin @net__begin(addr(%run[]), step, part, passed)
 *                        if %go[] != 0 {
 *                          call @k(..)
 *                          invoke end @net__end(addr(%run[]), step, part) }
 *     barrier            invoke meet @net__meet(addr(%run[]), part)
 *                        %passed[] = %passed[] + 1
 *     fail -4            return (i32(-4))         in a region: %run[].status = i32(-4)  return
 *
 * A cancelled run has to leave all parts at the same barrier.  Part 0 therefore writes down *when*
 * to stop, the number of barriers passed plus one, and from there on every part skips its steps. */
#include "passes/lower/entry/entry.h"

enum { MOST_BARRIERS = 1 << 30 };

/* ---- what every part invokes ------------------------------------------------------------------- */

static const Prim *number(Entry *e, DType t, const Param *p)
{
    return prim_index(e->c, t, idx_atom(e->c->arith, p->scalar));
}

/* invoke params->instrument(user, event, step, part) */
static void tell(Entry *e, Code *code, const Buffer *result, const Buffer *params, int64_t event,
                 const Prim *step, const Prim *part)
{
    const Prim *args[4] = {get(e, params, "instrument_user"), num(e, DT_U32, event), step, part};

    invoke(e, code, result, "instrument", get(e, params, "instrument"), 4, args);
}

/* 1 if the step shall run. */
static void define_begin(Entry *e)
{
    Ctx          *c = e->c;
    const Buffer *run = struct_of(e, "run", "run", SCOPE_ARENA), *params, *answer;
    Param p[4] = {pointer(run), scalar(e, "step", 0, UINT32_MAX), scalar(e, "part", 0, UINT32_MAX),
                  scalar(e, "passed", 0, INT32_MAX)};
    const Prim *passed = number(e, DT_I32, &p[3]), *part = number(e, DT_U32, &p[2]), *quiet;
    Code        code = {0}, alone = {0};

    params = view_struct(e, &code, "params", "params", get(e, run, "params"));
    fail_if(e, &code, is_null(e, get(e, params, "instrument")), 1);
    fail_if(e, &code, prim_le(c, get(e, run, "stop"), passed), 0);
    answer = variable(e, &code, "answer", DT_I32);
    tell(e, &code, answer, params, TVMCC_EVENT_BEGIN, number(e, DT_U32, &p[1]), part);
    quiet = prim_eq(c, value_of(e, answer), status(e, 0));
    quiet = prim_or(c, quiet, prim_not(c, prim_eq(c, part, num(e, DT_U32, 0))));
    fail_if(e, &code, quiet, 1);
    /* Alone, at once; else all parts together, behind the next barrier. */
    put(e, &alone, run, "stop", passed);
    give(e, &alone, status(e, 0));
    add(e, &code,
        stmt_if(c, prim_eq(c, get(e, run, "parts"), num(e, DT_U32, 1)), code_end(e, &alone), NULL));
    put(e, &code, run, "stop", prim_add(c, passed, status(e, 1)));
    give(e, &code, status(e, 1));
    define(e, "__begin", "begin", false, 4, p, &code);
}

static void define_end(Entry *e)
{
    const Buffer *run = struct_of(e, "run", "run", SCOPE_ARENA), *params;
    Param p[3] = {pointer(run), scalar(e, "step", 0, UINT32_MAX), scalar(e, "part", 0, UINT32_MAX)};
    Code  code = {0}, some = {0};

    params = view_struct(e, &code, "params", "params", get(e, run, "params"));
    tell(e, &some, NULL, params, TVMCC_EVENT_END, number(e, DT_U32, &p[1]),
         number(e, DT_U32, &p[2]));
    add(e, &code,
        stmt_if(e->c, prim_not(e->c, is_null(e, get(e, params, "instrument"))), code_end(e, &some),
                NULL));
    define(e, "__end", "end", false, 3, p, &code);
}

/* The caller's barrier, if there are others to meet. */
static void define_meet(Entry *e)
{
    const Buffer *run = struct_of(e, "run", "run", SCOPE_ARENA), *params;
    Param         p[2] = {pointer(run), scalar(e, "part", 0, UINT32_MAX)};
    Code          code = {0}, some = {0};
    const Prim   *args[2], *alone = prim_eq(e->c, get(e, run, "parts"), num(e, DT_U32, 1));

    params = view_struct(e, &some, "params", "params", get(e, run, "params"));
    args[0] = get(e, params, "user");
    args[1] = number(e, DT_U32, &p[1]);
    invoke(e, &some, NULL, "barrier", get(e, params, "barrier"), 2, args);
    add(e, &code, stmt_if(e->c, prim_not(e->c, alone), code_end(e, &some), NULL));
    define(e, "__meet", "meet", false, 2, p, &code);
}

void define_steps_of_all(Entry *e)
{
    define_begin(e);
    define_end(e);
    define_meet(e);
}

/* ---- main's buffers ---------------------------------------------------------------------------- */

void view_main(Entry *e, Code *code, bool tensors)
{
    const Func   *f = e->main;
    uint32_t      nin = e->plan->nin, nio = nin + e->plan->nout;
    const Buffer *in = NULL, *out = NULL;

    if (tensors) {
        in = view_array(e, code, "inputs", DT_HANDLE, nin, get(e, e->run, "inputs"));
        out = view_array(e, code, "outputs", DT_HANDLE, nio - nin, get(e, e->run, "outputs"));
    }
    if (e->dims)
        add(e, code, stmt_view(e->c, e->dims, get(e, e->run, "dims"), stmt_seq(e->c, 0, NULL)));
    const Idx *computed = idx_const(e->c->arith, e->plan->symbols.n);
    for (uint32_t i = tensors ? 0 : nio; i < f->nparams; i++) {
        static const char *const own[] = {"arena", "weights", "here", "here_weights"};
        uint32_t                 n = 2 + 2 * e->plan->mixed;
        const Prim              *from = i < nin ? tensor_data(e, code, in, i, &e->plan->in[i])
                                        : i < nio ? tensor_data(e, code, out, i - nin, &e->plan->out[i - nin])
                                        : i < nio + n ? get(e, e->run, own[i - nio])
                                                      : prim_addr(e->c, e->dims, &computed, NULL);

        add(e, code, stmt_view(e->c, f->params[i].buffer, from, stmt_seq(e->c, 0, NULL)));
    }
}

/* ---- steps ------------------------------------------------------------------------------------- */

static const Prim *part_number(Entry *e)
{
    return e->part ? prim_index(e->c, DT_U32, idx_atom(e->c->arith, e->part)) : num(e, DT_U32, 0);
}

/* Nobody watches the steps: they are not numbered, and cannot be stopped between them. */
static bool unwatched(const Entry *e)
{
    return !e->part && (e->plan->device || e->plan->target->no_threads);
}

static const Stmt *watched(Entry *e, const Stmt *s)
{
    Ctx          *c = e->c;
    const Prim   *args[4] = {address(e, e->run), num(e, DT_U32, e->step), part_number(e),
                           e->passed ? value_of(e, e->passed) : status(e, 0)};
    Code          code = {0}, run = {0};
    const Buffer *go;
    const Stmt   *all;

    if (unwatched(e) && !e->plan->device)
        return s;
    e->step++;
    go = variable(e, &code, "go", DT_I32);
    invoke(e, &code, go, "begin", function(e, "__begin"), 4, args);
    if (e->plan->device)
        fail_if(e, &code, prim_eq(c, value_of(e, go), status(e, 0)), TVMCC_E_CANCELLED);
    add(e, &run, stmt_call(c, s->u.call.callee, s->u.call.nargs, s->u.call.args, false, s->loc));
    invoke(e, &run, NULL, "end", function(e, "__end"), 3, args);
    add(e, &code,
        stmt_if(c, prim_not(c, prim_eq(c, value_of(e, go), status(e, 0))), code_end(e, &run),
                NULL));
    all = code_end(e, &code);
    if (e->part && s->u.call.on0)
        all = stmt_if(c, prim_eq(c, args[2], num(e, DT_U32, 0)), all, NULL);
    return all;
}

static const Stmt *meet(Entry *e)
{
    const Prim *args[2] = {address(e, e->run), part_number(e)};
    Code        code = {0};

    if (!e->part)
        BUG("@%s: a barrier outside regions", e->main->name);
    invoke(e, &code, NULL, "meet", function(e, "__meet"), 2, args);
    set(e, &code, e->passed, prim_add(e->c, value_of(e, e->passed), status(e, 1)));
    return code_end(e, &code);
}

/* A round of a loop that a run that is cancelled should not go on with: who has to stop has nothing
 * more to do.  The parts of a region all stop behind the same barrier. */
static const Stmt *round_of(Entry *e, const Stmt *s)
{
    Ctx        *c = e->c;
    const Stmt *two[2] = {NULL, body(e, s)};
    const Prim *passed = e->passed ? value_of(e, e->passed) : status(e, 0);

    if (unwatched(e))
        return two[1];
    two[0] = stmt_if(c, prim_le(c, get(e, e->run, "stop"), passed),
                     stmt_return(c, e->part ? NULL : status(e, TVMCC_E_CANCELLED)), NULL);
    return stmt_seq(c, 2, two);
}

/* A round of a loop without an end that is known: barriers are counted anew before there are too
 * many for an i32. */
static const Stmt *endless_round(Entry *e, const Stmt *s)
{
    Ctx        *c = e->c;
    Code        anew = {0};
    const Stmt *two[2] = {NULL, round_of(e, s)};

    if (!e->passed)
        return two[1];
    set(e, &anew, e->passed, status(e, 0));
    two[0] = stmt_if(c, prim_le(c, status(e, MOST_BARRIERS), value_of(e, e->passed)),
                     code_end(e, &anew), NULL);
    return stmt_seq(c, 2, two);
}

/* All parts of a region come here together, and leave.  What a cancelled run skipped decides
 * nothing. */
static const Stmt *fail_of(Entry *e, int32_t code)
{
    Ctx        *c = e->c;
    const Prim *on = prim_eq(c, get(e, e->run, "stop"), status(e, NEVER));
    Code        leave = {0};

    if (e->part)
        put(e, &leave, e->run, "status", status(e, code));
    add(e, &leave, stmt_return(c, e->part ? NULL : status(e, code)));
    return stmt_if(c, on, code_end(e, &leave), NULL);
}

const Stmt *body(Entry *e, const Stmt *s)
{
    Ctx         *c = e->c;
    const Stmt **kids = NEW_ARRAY(c->arena, const Stmt *, s->nkids + 1);

    switch (s->kind) {
    case STMT_CALL: return watched(e, s);
    case STMT_BARRIER: return meet(e);
    case STMT_REGION: return region(e, s);
    case STMT_FOR:
        kids[0] = e->part ? round_of(e, s->kids[0]) : body(e, s->kids[0]);
        return stmt_for(c, s->u.loop, kids[0], s->loc);
    case STMT_WHILE: return stmt_while(c, s->u.cond, endless_round(e, s->kids[0]));
    case STMT_FAIL: return fail_of(e, s->u.code);
    case STMT_RETURN: return stmt_return(c, e->part ? NULL : status(e, 0));
    case STMT_LAUNCH: return device_launch(e, s);
    case STMT_COPY: return device_copy(e, s);
    case STMT_SEQ:
    case STMT_IF:
    case STMT_ALLOC:
    case STMT_VIEW:
    case STMT_SWITCH:
        for (uint32_t i = 0; i < s->nkids; i++)
            kids[i] = body(e, s->kids[i]);
        return stmt_with_kids(c, s, kids);
    case STMT_STORE:
    case STMT_PREFETCH:
    case STMT_INVOKE: return s;
    case STMT_AWAIT:
    case STMT_BLOCK: break;
    }
    BUG("@%s: a statement of kind %d", e->main->name, (int)s->kind);
}
