/* A parallel region of main: a function that every part runs, and how it is called.
 *
 *     parts == 1:   worker(&run, 0, 1)
 *     barrier:      launch(user, worker, &run, parts)
 *     no barrier:   for phase < n  launch(user, phases, &run, parts)
 *
 * `worker` is the region of main; `phases` the same steps cut at the barriers, where all of them
 * stand in the region itself or begin the rounds of a loop in it (else such a run takes one part:
 * bits never depend on the parts). */
#include "passes/lower/entry/entry.h"

enum { MAX_LOOP_PHASES = 4096 };

/* ---- phases ------------------------------------------------------------------------------------ */

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
        if (stmt_has_barrier(body->kids[i]))
            return 0;
    return (uint32_t)n;
}

bool has_fail(const Stmt *s)
{
    if (s->kind == STMT_FAIL)
        return true;
    for (uint32_t i = 0; i < s->nkids; i++)
        if (has_fail(s->kids[i]))
            return true;
    return false;
}

/* The number of phases, 0 if a barrier stands inside other control flow. */
static uint32_t count_phases(const Stmt *body)
{
    uint32_t n = 1, rounds;

    if (body->kind != STMT_SEQ)
        return stmt_has_barrier(body) ? 0 : 1;
    for (uint32_t i = 0; i < body->nkids; i++) {
        if (body->kids[i]->kind == STMT_BARRIER) {
            n++;
        } else if (stmt_has_barrier(body->kids[i])) {
            rounds = loop_phases(body->kids[i]);
            /* What follows would belong to the last round. */
            if (!rounds || (i + 1 < body->nkids && body->kids[i + 1]->kind != STMT_BARRIER))
                return 0;
            n += rounds;
        }
    }
    return n;
}

/* ---- the functions of a region ----------------------------------------------------------------- */

static void begin_part(Entry *e, Code *code, const Stmt *region, Param params[3])
{
    e->run = struct_of(e, "run", "run", SCOPE_ARENA);
    e->part = region->u.region.tid;
    params[0] = pointer(e->run);
    params[1] = (Param){NULL, region->u.region.tid, false};
    params[2] = (Param){NULL, region->u.region.nt, false};
    e->passed = variable(e, code, "passed", DT_I32);
}

/* What Entry knows of the function at hand, while another one is made. */
typedef struct {
    const Buffer *run, *passed;
    const Atom   *part;
} Saved;

static Saved save(const Entry *e)
{
    return (Saved){e->run, e->passed, e->part};
}

static void restore(Entry *e, Saved s)
{
    e->run = s.run;
    e->passed = s.passed;
    e->part = s.part;
}

static void define_worker(Entry *e, const Stmt *region, const char *suffix)
{
    Saved was = save(e);
    Code  code = {0};
    Param params[3];

    begin_part(e, &code, region, params);
    set(e, &code, e->passed, status(e, 0));
    view_main(e, &code, true);
    add(e, &code, body(e, region->kids[0]));
    define(e, suffix, "part", false, 3, params, &code);
    restore(e, was);
}

/* The arms of the switch over phases. */
typedef struct {
    VEC(int64_t) end;
    VEC(const Stmt *) arm;
    Code now; /* of the arm to come */
} Arms;

static void next_arm(Entry *e, Arms *a, uint32_t phases)
{
    int64_t from = a->end.n ? a->end.at[a->end.n - 1] : 0;

    vec_push(e->c->arena, &a->end, from + phases);
    vec_push(e->c->arena, &a->arm, code_end(e, &a->now));
    a->now = (Code){0};
}

/* A round of a loop over phases, without its barrier: the loop's variable follows from the phase.
 */
static const Stmt *round_of_phase(Entry *e, const Stmt *s, int64_t first, uint32_t n,
                                  const Prim *phase)
{
    Ctx         *c = e->c;
    const Stmt  *body_of = s->kids[0];
    IdxSubst    *sub = subst_new(c->arith, c->arena);
    const Idx   *i = idx_load(c->arith, phase, first, first + n - 1);
    const Stmt **kids = NEW_ARRAY(c->arena, const Stmt *, body_of->nkids);

    subst_bind(sub, s->u.loop.var, idx_add(c->arith, idx_addc(c->arith, i, -first), s->u.loop.lo));
    for (uint32_t k = 1; k < body_of->nkids; k++)
        kids[k - 1] = body(e, stmt_subst(c, body_of->kids[k], sub));
    return stmt_seq(c, body_of->nkids - 1, kids);
}

static void define_phases(Entry *e, const Stmt *region, const char *suffix)
{
    Saved       was = save(e);
    Code        code = {0};
    Arms        arms = {0};
    Param       params[3];
    const Stmt *all = region->kids[0], *const *kid = all->kind == STMT_SEQ ? all->kids : &all;
    uint32_t    count = all->kind == STMT_SEQ ? all->nkids : 1;
    bool        open = true; /* statements may be added to the arm */

    begin_part(e, &code, region, params);
    set(e, &code, e->passed, get(e, e->run, "phase"));
    if (has_fail(region)) /* in an earlier phase */
        add(e, &code,
            stmt_if(e->c, prim_eq(e->c, get(e, e->run, "status"), status(e, 0)),
                    stmt_seq(e->c, 0, NULL), stmt_return(e->c, NULL)));
    view_main(e, &code, true);
    for (uint32_t i = 0; i < count; i++) {
        bool loop = kid[i]->kind != STMT_BARRIER && stmt_has_barrier(kid[i]);

        if (!loop && kid[i]->kind != STMT_BARRIER) {
            add(e, &arms.now, body(e, kid[i]));
            continue;
        }
        if (open)
            next_arm(e, &arms, 1);
        open = !loop;
        if (loop) {
            uint32_t n = loop_phases(kid[i]);
            int64_t  first = arms.end.at[arms.end.n - 1];

            add(e, &arms.now, round_of_phase(e, kid[i], first, n, value_of(e, e->passed)));
            next_arm(e, &arms, n);
        }
    }
    if (open)
        next_arm(e, &arms, 1);
    add(e, &code, stmt_switch(e->c, value_of(e, e->passed), arms.arm.n, arms.end.at, arms.arm.at));
    define(e, suffix, "part", false, 3, params, &code);
    restore(e, was);
}

/* ---- calls ------------------------------------------------------------------------------------- */

static void run_alone(Entry *e, Code *code, const char *worker)
{
    const Prim *args[3] = {address(e, e->run), num(e, DT_U32, 0), num(e, DT_U32, 1)};

    invoke(e, code, NULL, "part", function(e, worker), 3, args);
}

/* Leaves the entry point with the caller's code unless it is 0. */
static void launch(Entry *e, Code *code, const Buffer *params, const char *worker)
{
    const Prim   *args[4] = {get(e, params, "user"), function(e, worker), address(e, e->run),
                             get(e, e->run, "parts")};
    const Buffer *result = variable(e, code, "result", DT_I32);
    const Prim   *failed;

    invoke(e, code, result, "launch", get(e, params, "launch"), 4, args);
    failed = prim_not(e->c, prim_eq(e->c, value_of(e, result), status(e, 0)));
    add(e, code, stmt_if(e->c, failed, stmt_return(e->c, value_of(e, result)), NULL));
}

/* Without a barrier: phase after phase, or, where there are none, one part. */
static const Stmt *launch_phases(Entry *e, const Buffer *params, const char *worker,
                                 const char *phases, uint32_t n)
{
    Ctx        *c = e->c;
    Code        code = {0};
    const Atom *phase = atom_var(c->arith, "phase", 0, (int64_t)n - 1);
    LoopData    loop = {.var = phase,
                        .lo = idx_const(c->arith, 0),
                        .extent = idx_const(c->arith, n),
                        .kind = LOOP_SEQ};

    if (!n) {
        put(e, &code, e->run, "parts", num(e, DT_U32, 1));
        run_alone(e, &code, worker);
        return code_end(e, &code);
    }
    put(e, &code, e->run, "phase", prim_index(c, DT_I32, idx_atom(c->arith, phase)));
    launch(e, &code, params, phases);
    return stmt_for(c, loop, code_end(e, &code), NO_LOC);
}

const Stmt *region(Entry *e, const Stmt *s)
{
    Ctx          *c = e->c;
    uint32_t      n = e->nregions++, step = e->step, after, nphases = count_phases(s->kids[0]);
    const char   *worker = intern_printf(c->strings, "__region%u", n);
    const char   *phases = intern_printf(c->strings, "__phases%u", n);
    Code          code = {0}, alone = {0}, whole = {0}, many = {0};
    const Buffer *params;
    const Prim   *cut;

    if (e->part)
        BUG("@%s: a region inside a region", e->main->name);
    define_worker(e, s, worker);
    after = e->step;
    if (nphases) {
        e->step = step; /* the same steps under the same numbers */
        define_phases(e, s, phases);
        e->step = after;
    }
    run_alone(e, &alone, worker);
    params = view_struct(e, &many, "params", "params", get(e, e->run, "params"));
    cut = is_null(e, get(e, params, "barrier"));
    launch(e, &whole, params, worker);
    add(e, &many,
        stmt_if(c, cut, launch_phases(e, params, worker, phases, nphases), code_end(e, &whole)));
    add(e, &code,
        stmt_if(c, prim_eq(c, get(e, e->run, "parts"), num(e, DT_U32, 1)), code_end(e, &alone),
                code_end(e, &many)));
    fail_if(e, &code, prim_not(c, prim_eq(c, get(e, e->run, "stop"), status(e, NEVER))),
            TVMCC_E_CANCELLED);
    if (has_fail(s)) {
        const Prim *failed = get(e, e->run, "status");

        add(e, &code,
            stmt_if(c, prim_eq(c, failed, status(e, 0)), stmt_seq(c, 0, NULL),
                    stmt_return(c, failed)));
    }
    return code_end(e, &code);
}
