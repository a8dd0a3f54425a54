/* What terms come to.
 *
 *     @sum(Cons(%x, Cons(%y, Nil)))  ->  add(%x, add(%y, 0))
 *
 * Calls of operators are converted; functions are carried out, a match on a known constructor is
 * decided, and references are read and written, all in the order of the text.  A condition that is
 * a constant is decided, too; of others both branches are carried out, and what came of them is
 * joined (data.c).  Functions of the module from tensors to tensors stay functions, and those that
 * call themselves as the run decides become some (loop.c).
 *
 * A frame is a term being done; its kids' values come back in m->value.  There is no other stack,
 * so that depth is memory, which is bounded. */
#include "frontends/tvm/tvm.h"

#include <string.h>

enum {
    MAX_CALLS = 1 << 14,
    MAX_STEPS = 1 << 23,
    MAX_FRAMES = 1 << 17,
    MAX_DATA_DEPTH = 1 << 11,
    MAX_DATA = 1 << 18,
    MAX_REFERENCES = 1 << 12
};

#define TV_UNROLL                                                                       \
    "what ends a recursion has to be known when the module is compiled, or decided by " \
    "the run in a function that calls itself at its end"

static TvFrame *top(TvMachine *m)
{
    return &m->frames.at[m->frames.n - 1];
}

static Loc place(const TvMachine *m, const TvTerm *t)
{
    return tv_place(m->p, t->at);
}

static bool refuse(TvMachine *m, const TvTerm *t, const char *what, int64_t limit)
{
    error_at(m->c, E_UNSUPPORTED, place(m, t), what, (long long)limit);
    diag_hint(m->c->diags, "%s", TV_UNROLL);
    return false;
}

static bool push(TvMachine *m, const TvTerm *t, TvEnv *env)
{
    TvFrame f = {.t = t, .env = env, .caller = m->caller, .undecided = m->undecided};

    if (m->frames.n == MAX_FRAMES)
        return refuse(m, t, "functions call each other deeper than %lld levels", MAX_FRAMES);
    if (m->steps++ == MAX_STEPS)
        return refuse(m, t, "it takes more than %lld steps to read the module", MAX_STEPS);
    f.got = NEW_ARRAY(m->c->arena, const TvData *, t->n + 1);
    vec_push(m->c->arena, &m->frames, f);
    return true;
}

/* The frame on top is done. */
static bool finish(TvMachine *m, const TvData *d)
{
    TvFrame *f = top(m);

    if (!d)
        return false;
    if (d->depth > MAX_DATA_DEPTH)
        return refuse(m, f->t, "data within data, deeper than %lld levels", MAX_DATA_DEPTH);
    if (d->size > MAX_DATA)
        return refuse(m, f->t, "data of more than %lld parts", MAX_DATA);
    m->value = d;
    m->caller = f->caller;
    m->undecided = f->undecided;
    m->frames.n--;
    return true;
}

static const TvData *plain(TvMachine *m, TvDataKind kind)
{
    return tv_data_parts(m->c, kind, NULL, 0, NULL);
}

/* ---- references --------------------------------------------------------------------------------------- */

static TvCells copy_cells(TvMachine *m)
{
    TvCells out = {0};

    for (uint32_t i = 0; i < m->cells.n; i++)
        vec_push(m->c->arena, &out, m->cells.at[i]);
    return out;
}

void tv_restore(TvMachine *m, const TvCells *cells)
{
    m->cells.n = m->owners.n = cells->n;
    for (uint32_t i = 0; i < cells->n; i++)
        m->cells.at[i] = cells->at[i];
}

/* References that only one of two ways made keep what it wrote there. */
static bool join_cells(TvMachine *m, const TvFrame *f)
{
    for (uint32_t i = 0; i < f->written.n && i < m->cells.n; i++)
        if (f->written.at[i] != m->cells.at[i] &&
            !(m->cells.at[i] =
                  tv_join(m->c, place(m, f->t), f->cond, f->written.at[i], m->cells.at[i])))
            return false;
    return true;
}

static const TvData *new_reference(TvMachine *m, const TvTerm *t, const TvData *value)
{
    TvData *d = NEW(m->c->arena, TvData);

    if (m->cells.n == MAX_REFERENCES) {
        refuse(m, t, "more than %lld references", MAX_REFERENCES);
        return NULL;
    }
    *d = *plain(m, DATA_REF);
    d->index = m->cells.n;
    vec_push(m->c->arena, &m->cells, value);
    vec_push(m->c->arena, &m->owners, m->loop);
    return d;
}

static bool is_reference(TvMachine *m, const TvTerm *t, const TvData *d)
{
    return (d->kind == DATA_REF && d->index < m->cells.n) ||
           error_at(m->c, E_IMPORT, place(m, t), "%s is no reference that is known",
                    tv_data_text(m->c, d));
}

static const TvData *write_reference(TvMachine *m, const TvTerm *t, const TvData *ref,
                                     const TvData *value)
{
    if (!is_reference(m, t, ref))
        return NULL;
    if (m->owners.at[ref->index] != m->loop) {
        error_at(m->c, E_UNSUPPORTED, place(m, t),
                 "a reference from outside is written in a loop whose end the run decides");
        diag_hint(m->c->diags, "make it a parameter of the function that calls itself");
        return NULL;
    }
    m->cells.at[ref->index] = value;
    return plain(m, DATA_TUPLE);
}

/* ---- both ways --------------------------------------------------------------------------------------- */

static bool decided(TvMachine *m, Loc loc, const Expr *cond, bool *yes)
{
    Build       b = {m->c, loc, "if"};
    const Expr *k = build_fold(&b, cond);

    if (k)
        *yes = dtype_get_i(k->type->dtype, k->u.constant->data.at) != 0;
    return k != NULL;
}

/* Tries what is on top with a part of `choice` in place of it; the condition is not decided. */
static bool take_way(TvMachine *m, uint32_t way)
{
    TvFrame *f = top(m);
    TvFrame  again = *f;
    TvCells  none = {0};

    if (f->t->kind == TERM_IF)
        return push(m, f->t->kids[1 + way], f->env);
    again.got = NEW_ARRAY(m->c->arena, const TvData *, f->t->n + 1);
    for (uint32_t i = 0; i < f->t->n; i++)
        again.got[i] =
            f->got[i] ? tv_replaced(m->c, f->got[i], f->choice, f->choice->parts[way]) : NULL;
    again.choice = NULL;
    again.cond = NULL;
    again.first = NULL;
    again.cells = again.written = none;
    again.caller = m->caller;
    again.undecided = m->undecided;
    if (m->frames.n == MAX_FRAMES || m->steps++ == MAX_STEPS)
        return refuse(m, f->t, "functions call each other deeper than %lld levels", MAX_FRAMES);
    m->value = again.got[again.done - 1];
    vec_push(m->c->arena, &m->frames, again);
    return true;
}

static bool both_ways(TvMachine *m, const Expr *cond, const TvData *choice)
{
    TvFrame *f = top(m);

    f->cond = cond;
    f->choice = choice;
    f->cells = copy_cells(m);
    m->undecided++;
    return take_way(m, 0);
}

static bool way_done(TvMachine *m)
{
    TvFrame *f = top(m);

    if (!f->first) {
        f->first = m->value;
        f->written = copy_cells(m);
        tv_restore(m, &f->cells);
        return take_way(m, 1);
    }
    return join_cells(m, f) &&
           finish(m, tv_join(m->c, place(m, f->t), f->cond, f->first, m->value));
}

/* ---- match ------------------------------------------------------------------------------------------- */

typedef enum { FITS, FITS_NOT, FITS_MAYBE, FITS_ERROR } Fit;

/* MAYBE: `choice` has to be tried both ways first. */
static Fit fit(TvMachine *m, const TvTerm *t, const TvPattern *p, const TvData *d, TvEnv *env,
               const TvData **choice)
{
    Fit all = FITS;

    if (p->kind == TV_WILD)
        return FITS;
    if (p->kind == TV_BIND) {
        env->slots[p->slot] = d;
        return FITS;
    }
    d = tv_spread(m->c, d);
    if (d->kind == DATA_CHOICE || d->kind == DATA_NOTHING) {
        *choice = d;
        return FITS_MAYBE;
    }
    if (d->kind != (p->kind == TV_CTOR ? DATA_CTOR : DATA_TUPLE) ||
        (p->kind == TV_FIELDS && d->n != p->n)) {
        error_at(m->c, E_IMPORT, place(m, t), "a pattern of %s for %s",
                 p->kind == TV_CTOR ? p->ctor->name : "a tuple", tv_data_text(m->c, d));
        return FITS_ERROR;
    }
    if (p->kind == TV_CTOR && d->ctor != p->ctor)
        return FITS_NOT;
    for (uint32_t i = 0; all == FITS && i < p->n; i++)
        all = fit(m, t, p->kids[i], d->parts[i], env, choice);
    return all;
}

static bool step_match(TvMachine *m)
{
    TvFrame      *f = top(m);
    const TvTerm *t = f->t;
    const TvData *choice = NULL;

    if (f->done == 0) {
        f->done = 1;
        return push(m, t->kids[0], f->env);
    }
    if (f->done == 2)
        return finish(m, m->value);
    f->got[0] = m->value;
    for (uint32_t i = 0; i + 1 < t->n; i++)
        switch (fit(m, t, t->u.match[i], m->value, f->env, &choice)) {
        case FITS: f->done = 2; return push(m, t->kids[1 + i], f->env);
        case FITS_NOT: break;
        case FITS_MAYBE:
            return choice->kind == DATA_NOTHING ? finish(m, choice)
                                                : both_ways(m, choice->expr, choice);
        case FITS_ERROR: return false;
        }
    return error_at(m->c, E_IMPORT, place(m, t), "no case for %s", tv_data_text(m->c, m->value));
}

/* ---- calls ------------------------------------------------------------------------------------------- */

static const TvData *call_operator(TvMachine *m, const TvFrame *f, const TvToken *op)
{
    const TvTerm *t = f->t;
    uint32_t      n = t->n - 1;
    const Expr  **in = NEW_ARRAY(m->c->arena, const Expr *, n + 1), *e, *k;
    bool          closed = n > 0;
    TvNode        node = {.b = {m->c, tv_place(m->p, op), op->text},
                          .row = tv_row(op->text),
                          .nin = n,
                          .in = in,
                          .nattrs = t->u.call.n,
                          .attrs = t->u.call.at};

    node.b.loc.name = t->name ? t->name : op->text;
    for (uint32_t i = 0; i < n; i++) {
        if (f->got[1 + i]->kind == DATA_NOTHING)
            return f->got[1 + i];
        if (!(in[i] = tv_data_tensors(m->c, f->got[1 + i]))) {
            error_at(m->c, E_UNSUPPORTED, node.b.loc, "operand %u is %s", i,
                     tv_data_text(m->c, f->got[1 + i]));
            return NULL;
        }
        closed &= in[i]->kind == EXPR_CONST;
    }
    if (!(e = tv_convert(&node)))
        return NULL;
    /* What counts rounds is known, so that a recursion over it ends. */
    k = closed && expr_is_tensor(e) && expr_rank(e) == 0 ? build_fold(&node.b, e) : NULL;
    return tv_data_expr(m->c, k ? k : e);
}

static bool check_args(TvMachine *m, const TvTerm *t, const TvFunc *f, const TvData *const *args)
{
    bool fits = f->params.n == t->n - 1;

    for (uint32_t i = 0; fits && i < f->params.n; i++)
        fits = !f->params.at[i].type || args[i]->kind != DATA_EXPR ||
               args[i]->expr->type == f->params.at[i].type;
    return fits ||
           error_at(m->c, E_IMPORT, place(m, t), "the arguments do not fit '%s'", t->at->text);
}

bool tv_enter(TvMachine *m, uint32_t frame, const TvFunc *f, TvEnv *outer,
              const TvData *const *args)
{
    TvFrame *call = &m->frames.at[frame];
    TvEnv   *env = NEW(m->c->arena, TvEnv);

    *env = (TvEnv){outer, NEW_ARRAY(m->c->arena, const TvData *, f->nslots + 1)};
    for (uint32_t i = 0; i < f->nslots; i++)
        env->slots[i] = i < f->params.n ? args[i] : NULL;
    call->func = f;
    call->outer = outer;
    call->args = args;
    m->caller = frame + 1;
    return push(m, f->body, env);
}

/* A function of the module that stays one. */
static const TvData *call_kept(TvMachine *m, const TvFrame *f, const TvFunc *func)
{
    uint32_t     n = func->params.n;
    const Expr **in = NEW_ARRAY(m->c->arena, const Expr *, n + 1);
    Loc          loc = place(m, f->t);

    for (uint32_t i = 0; i < n; i++) {
        if (f->got[1 + i]->kind == DATA_NOTHING)
            return f->got[1 + i];
        if (!(in[i] = tv_data_tensors(m->c, f->got[1 + i]))) {
            check_args(m, f->t, func, f->got + 1);
            error_at(m->c, E_IMPORT, loc, "the arguments do not fit '%s'", f->t->at->text);
            return NULL;
        }
    }
    return tv_data_expr(
        m->c, expr_apply(m->c, expr_global(m->c, func->name, func->type, loc), n, in, loc));
}

static bool call_func(TvMachine *m, const TvData *callee)
{
    TvFrame             *f = top(m);
    const TvFunc        *func = callee->func;
    const TvData *const *args = f->got + 1;
    const TvData        *d;
    uint32_t             loop;

    if (!check_args(m, f->t, func, args))
        return false;
    if (func->type)
        return finish(m, call_kept(m, f, func));
    if (tv_calls_loop(m, f->t, func, callee->env, args, &d))
        return finish(m, d);
    if (m->calls++ == MAX_CALLS)
        return refuse(m, f->t, "functions are carried out more than %lld times", MAX_CALLS);
    loop = tv_loop_begins(m, func, callee->env, args);
    if (loop != UINT32_MAX)
        return tv_begin_loop(m, loop);
    f->cells = copy_cells(m);
    return tv_enter(m, m->frames.n - 1, func, callee->env, args);
}

static bool apply(TvMachine *m)
{
    TvFrame      *f = top(m);
    const TvData *callee = f->got[0];

    switch (callee->kind) {
    case DATA_OP: return finish(m, call_operator(m, f, callee->op));
    case DATA_MAKER:
        if (callee->ctor->nfields != f->t->n - 1)
            return error_at(m->c, E_IMPORT, place(m, f->t), "'%s' has %u fields, not %u",
                            callee->ctor->name, callee->ctor->nfields, f->t->n - 1);
        return finish(m, tv_data_parts(m->c, DATA_CTOR, callee->ctor, f->t->n - 1, f->got + 1));
    case DATA_FUNC: return call_func(m, callee);
    case DATA_CHOICE: return both_ways(m, callee->expr, callee);
    case DATA_NOTHING: return finish(m, callee);
    case DATA_EXPR:
    case DATA_TUPLE:
    case DATA_CTOR:
    case DATA_REF: break;
    }
    return error_at(m->c, E_IMPORT, place(m, f->t), "'%s' is no function", f->t->at->text);
}

static bool step_call(TvMachine *m)
{
    TvFrame      *f = top(m);
    const TvFunc *func = f->func;
    const TvData *d = m->value;

    if (f->loop) {
        bool done = tv_end_loop(m, m->frames.n - 1, &d);

        return done ? finish(m, d) : d != NULL;
    }
    if (!func)
        return apply(m);
    if (func->ret && d->kind == DATA_EXPR && d->expr->type != func->ret)
        return error_at(m->c, E_IMPORT, place(m, f->t), "'%s' is said to give %s, and gives %s",
                        f->t->at->text, type_text(m->c, func->ret), type_text(m->c, d->expr->type));
    return finish(m, d);
}

/* ---- terms ------------------------------------------------------------------------------------------- */

static const TvData *local(TvMachine *m, const TvFrame *f)
{
    const TvEnv *env = f->env;

    for (uint32_t i = 0; i < f->t->u.local.up; i++)
        env = env->up;
    if (!env->slots[f->t->u.local.slot])
        error_at(m->c, E_IMPORT, place(m, f->t), "'%%%s' has no value here", f->t->at->text);
    return env->slots[f->t->u.local.slot];
}

static const TvData *function(TvMachine *m, const TvFunc *func, TvEnv *env)
{
    TvData *d = NEW(m->c->arena, TvData);

    *d = *plain(m, DATA_FUNC);
    d->func = func;
    d->env = env;
    return d;
}

/* A term without kids. */
static const TvData *leaf(TvMachine *m, const TvFrame *f)
{
    const TvTerm *t = f->t;
    TvData       *d;

    if (t->kind == TERM_LOCAL)
        return local(m, f);
    if (t->kind == TERM_CONST)
        return tv_data_expr(m->c, t->u.constant);
    if (t->kind == TERM_FUNC)
        return function(m, t->u.func, f->env);
    if (t->kind == TERM_GLOBAL)
        return function(m, m->p->defs.at[t->u.def].func, NULL);
    d = NEW(m->c->arena, TvData);
    *d = *plain(m, t->kind == TERM_CTOR ? DATA_MAKER : DATA_OP);
    d->ctor = t->kind == TERM_CTOR ? t->u.ctor : NULL;
    d->op = t->at;
    return d;
}

static const TvData *part(TvMachine *m, const TvTerm *t, const TvData *d)
{
    const TvData *all = tv_spread(m->c, d);

    if (all->kind == DATA_NOTHING)
        return all;
    if (all->kind == DATA_TUPLE && t->u.index < all->n)
        return all->parts[t->u.index];
    error_at(m->c, E_IMPORT, place(m, t), "'%s' has no part %u", t->at->text, t->u.index);
    return NULL;
}

static bool let(TvMachine *m, const TvFrame *f)
{
    const TvTerm *t = f->t;
    const TvData *d = m->value;

    if (t->u.let.type && d->kind == DATA_EXPR && d->expr->type != t->u.let.type)
        return error_at(m->c, E_IMPORT, place(m, t), "'%%%s' is said to be %s, and is %s",
                        t->at->text, type_text(m->c, t->u.let.type),
                        type_text(m->c, d->expr->type));
    f->env->slots[t->u.let.slot] = d;
    return finish(m, d);
}

static bool step_if(TvMachine *m)
{
    TvFrame      *f = top(m);
    const TvData *d = m->value;
    const Type   *t = d->kind == DATA_EXPR ? d->expr->type : NULL;
    bool          yes;

    if (f->done == 2)
        return finish(m, d);
    if (d->kind == DATA_NOTHING)
        return finish(m, d);
    if (!t || t->kind != TYPE_TENSOR || t->n != 0 || !dtype_eq(t->dtype, DT_BOOL))
        return error_at(m->c, E_IMPORT, place(m, f->t), "a condition of %s", tv_data_text(m->c, d));
    if (!decided(m, place(m, f->t), d->expr, &yes))
        return both_ways(m, d->expr, NULL);
    f->done = 2;
    return push(m, f->t->kids[yes ? 1 : 2], f->env);
}

/* All kids of the term on top are done. */
static bool combine(TvMachine *m)
{
    TvFrame      *f = top(m);
    const TvTerm *t = f->t;

    switch (t->kind) {
    case TERM_TUPLE: return finish(m, tv_data_parts(m->c, DATA_TUPLE, NULL, t->n, f->got));
    case TERM_PROJ: return finish(m, part(m, t, f->got[0]));
    case TERM_CALL: return step_call(m);
    case TERM_LET: return let(m, f);
    case TERM_BLOCK: return finish(m, m->value);
    case TERM_REF: return finish(m, new_reference(m, t, f->got[0]));
    case TERM_READ:
        return is_reference(m, t, f->got[0]) && finish(m, m->cells.at[f->got[0]->index]);
    case TERM_WRITE: return finish(m, write_reference(m, t, f->got[0], f->got[1]));
    case TERM_CONST:
    case TERM_LOCAL:
    case TERM_GLOBAL:
    case TERM_OP:
    case TERM_CTOR:
    case TERM_FUNC: return finish(m, leaf(m, f));
    case TERM_IF:
    case TERM_MATCH: break;
    }
    BUG("a term that has no end");
}

static bool step(TvMachine *m)
{
    TvFrame      *f = top(m);
    const TvTerm *t = f->t;
    uint32_t      kids = t->kind == TERM_IF ? 1 : t->n;

    if (f->cond)
        return way_done(m);
    if (t->kind == TERM_MATCH)
        return step_match(m);
    if (f->done && f->done <= t->n && !f->func)
        f->got[f->done - 1] = m->value;
    if (f->done < kids)
        return push(m, t->kids[f->done++], f->env);
    return t->kind == TERM_IF ? step_if(m) : combine(m);
}

/* What a function comes to with these arguments. */
static const TvData *run(TvMachine *m, const TvFunc *f, uint32_t n, const Expr *const *args)
{
    TvEnv         *env = NEW(m->c->arena, TvEnv);
    const uint32_t before = diag_errors(m->c->diags);

    *env = (TvEnv){NULL, NEW_ARRAY(m->c->arena, const TvData *, f->nslots + 1)};
    for (uint32_t i = 0; i < f->nslots; i++)
        env->slots[i] = i < n ? tv_data_expr(m->c, args[i]) : NULL;
    m->frames.n = m->cells.n = m->owners.n = m->caller = m->undecided = 0;
    if (!push(m, f->body, env))
        return NULL;
    while (m->frames.n)
        if (!step(m) || diag_errors(m->c->diags) != before)
            return NULL;
    return m->value;
}

/* ---- modules ----------------------------------------------------------------------------------------- */

/* A function from tensors to tensors. */
static bool keep(TvMachine *m, const TvFunc *f)
{
    Loc           loc = tv_place(m->p, f->at);
    uint32_t      n = f->params.n;
    const Expr  **vars = NEW_ARRAY(m->c->arena, const Expr *, n + 1), *body, *func;
    const TvData *d;

    for (uint32_t i = 0; i < n; i++)
        vars[i] = expr_var(m->c, f->params.at[i].name, f->params.at[i].type, f->params.at[i].loc);
    if (!(d = run(m, f, n, vars)))
        return false;
    if (!(body = tv_data_tensors(m->c, d)) || body->type != f->ret)
        return error_at(m->c, E_IMPORT, loc, "'@%s' is said to give %s, and gives %s", f->name,
                        type_text(m->c, f->ret), tv_data_text(m->c, d));
    if (!(func = expr_func(m->c, n, vars, body, (FuncData){0}, loc)))
        return false;
    vec_push(m->c->arena, m->functions, ((GlobalDef){f->name, func}));
    return true;
}

/* Tensors in what main comes to are its results. */
static const Expr *results(TvMachine *m, const TvFunc *main, const TvData *d)
{
    const Expr *e = tv_data_tensors(m->c, d);
    TvLeaves    leaves = {0};

    if (e)
        return e;
    if (d->kind != DATA_CTOR && d->kind != DATA_TUPLE) {
        error_at(m->c, E_UNSUPPORTED, tv_place(m->p, main->at), "'@main' gives %s",
                 tv_data_text(m->c, d));
        diag_hint(m->c->diags, "%s", TV_UNROLL);
        return NULL;
    }
    tv_leaves(m->c, d, &leaves);
    return tv_pack(m->c, &leaves);
}

const Expr *tv_eval(const TvParser *p, const TvFunc *main, const Expr *const *args,
                    GlobalDefs *functions)
{
    TvMachine     m = {.c = p->c, .p = p, .functions = functions};
    const TvData *d;

    for (uint32_t i = 0; i < p->defs.n; i++)
        if (p->defs.at[i].func->type && !keep(&m, p->defs.at[i].func))
            return NULL;
    return (d = run(&m, main, main->params.n, args)) ? results(&m, main, d) : NULL;
}
