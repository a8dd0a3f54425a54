/* Functions that call themselves as the run decides: functions of the module that call themselves
 * (docs/design/flow.md).
 *
 *     let %f = fn (%i, %s) { if (less(%i, %n)) { %f(add(%i, 1), g(%s)) } else { %s } }; %f(0, %x)
 *         ->  fn @f(%i, %s, %n) { if less(%i, %n) { @f(add(%i, 1), g(%s), %n) } else { %s } }
 *
 * It is noticed when such a function is called within itself under a condition that is not decided,
 * by arguments of the same form.  What was done since the first call is dropped, and its body is
 * carried out again with variables for all tensors in its arguments: once to find out what it comes
 * to, while calls of itself come to nothing, and once more to make the function. */
#include "frontends/tvm/tvm.h"

#include <ctype.h>

/* Calls within each other that are written out though nothing but their number ends them. */
enum { MAX_ROUNDS = 256 };

static bool same_args(TvMachine *m, const TvFunc *f, const TvData *const *a, const TvData *const *b,
                      bool types)
{
    for (uint32_t i = 0; i < f->params.n; i++)
        if (!tv_same_form(m->c, a[i], b[i], types))
            return false;
    return true;
}

uint32_t tv_loop_begins(TvMachine *m, const TvFunc *f, const TvEnv *env, const TvData *const *args)
{
    uint32_t rounds = 0, first = UINT32_MAX;

    for (uint32_t i = m->caller; i && !m->frames.at[i - 1].loop; i = m->frames.at[i - 1].caller) {
        const TvFrame *call = &m->frames.at[i - 1];

        if (call->func != f || call->outer != env)
            continue;
        if (call->undecided < m->undecided && same_args(m, f, call->args, args, false))
            return i - 1;
        if (same_args(m, f, call->args, args, true)) {
            first = i - 1;
            rounds++;
        }
    }
    return rounds < MAX_ROUNDS ? UINT32_MAX : first;
}

/* ---- calls of itself ----------------------------------------------------------------------------------- */

static TvLeaves leaves_of(TvMachine *m, uint32_t n, const TvData *const *args)
{
    TvLeaves out = {0};

    for (uint32_t i = 0; i < n; i++)
        tv_leaves(m->c, args[i], &out);
    return out;
}

/* The form of a loop's results, with the parts of what its call gives. */
static const TvData *results_of(TvMachine *m, const TvLoop *l, const Expr *call)
{
    TvLeaves           parts = {0}, leaves = leaves_of(m, 1, &l->form);
    const Expr *const *next;

    for (uint32_t i = 0; call && i < leaves.n; i++) {
        const Expr *part = leaves.n == 1 ? call : expr_proj(m->c, call, i, l->loc);

        vec_push(m->c->arena, &parts, part);
    }
    next = parts.at;
    return call ? tv_with_leaves(m->c, l->form, &next) : NULL;
}

bool tv_calls_loop(TvMachine *m, const TvTerm *t, const TvFunc *f, const TvEnv *env,
                   const TvData *const *args, const TvData **out)
{
    const TvLoop *l = m->loop;
    Loc           loc = tv_place(m->p, t->at);
    TvLeaves      in;

    *out = NULL;
    while (l && (l->func != f || l->env != env || !same_args(m, f, l->args, args, false)))
        l = l->outer;
    if (!l)
        return false;
    in = leaves_of(m, l->n, args);
    if (l != m->loop) {
        error_at(m->c, E_UNSUPPORTED, loc, "'%s' is called in a loop within it, and is one",
                 l->name);
        return true;
    }
    for (uint32_t i = 0; i < l->nvars; i++)
        if (in.at[i]->type != l->vars[i]->type) {
            error_at(m->c, E_UNSUPPORTED, loc, "'%s' calls itself with %s, was called with %s",
                     l->name, type_text(m->c, in.at[i]->type), type_text(m->c, l->vars[i]->type));
            diag_hint(m->c->diags, "a loop whose end the run decides keeps its types");
            return true;
        }
    if (!l->form)
        *out = tv_data_parts(m->c, DATA_NOTHING, NULL, 0, NULL);
    else
        *out = results_of(
            m, l, expr_apply(m->c, expr_global(m->c, l->name, l->type, loc), in.n, in.at, loc));
    return true;
}

/* ---- the loop ------------------------------------------------------------------------------------------ */

/* Of the function, with a number behind it if the module has it. */
static const char *loop_name(TvMachine *m, const TvFunc *f)
{
    const char *base = f->name && !isdigit((unsigned char)*f->name) ? f->name : "loop";
    const char *name = intern(m->c->strings, base);
    bool        taken = true;

    while (taken) {
        taken = false;
        for (uint32_t i = 0; i < m->p->defs.n; i++)
            taken |= m->p->defs.at[i].name == name;
        for (uint32_t i = 0; i < m->functions->n; i++)
            taken |= m->functions->at[i].name == name;
        for (const TvLoop *l = m->loop; l; l = l->outer)
            taken |= l->name == name;
        if (taken)
            name = intern_printf(m->c->strings, "%s_%u", base, ++m->names);
    }
    return name;
}

bool tv_begin_loop(TvMachine *m, uint32_t frame)
{
    TvFrame           *call = &m->frames.at[frame];
    Ctx               *c = m->c;
    TvLoop            *l = NEW(c->arena, TvLoop);
    TvLeaves           first = leaves_of(m, call->func->params.n, call->args);
    const TvData     **args = NEW_ARRAY(c->arena, const TvData *, call->func->params.n + 1);
    const Expr *const *next;

    *l = (TvLoop){.outer = m->loop,
                  .func = call->func,
                  .env = call->outer,
                  .name = loop_name(m, call->func),
                  .loc = tv_place(m->p, call->t->at),
                  .n = call->func->params.n,
                  .nvars = first.n,
                  .nfuncs = m->functions->n,
                  .args = args,
                  .vars = NEW_ARRAY(c->arena, const Expr *, first.n + 1),
                  .first = first.at};
    for (uint32_t i = 0, k = 0; i < l->n; i++) {
        const char *name = call->func->params.at[i].name;
        uint32_t    begin = k, end = begin + leaves_of(m, 1, &call->args[i]).n;

        for (; k < end; k++)
            l->vars[k] = expr_var(c, name, first.at[k]->type, first.at[k]->loc);
        next = l->vars + begin;
        args[i] = tv_with_leaves(c, call->args[i], &next);
    }
    m->frames.n = frame + 1;
    m->undecided = call->undecided;
    tv_restore(m, &call->cells);
    m->loop = l;
    call->loop = l;
    return tv_enter(m, frame, call->func, call->outer, args);
}

/* What it comes to is known: once more, with calls of the function. */
static bool begin_again(TvMachine *m, uint32_t frame)
{
    TvLoop      *l = m->frames.at[frame].loop;
    TvLeaves     leaves = leaves_of(m, 1, &m->value);
    const Type **types = NEW_ARRAY(m->c->arena, const Type *, l->nvars + leaves.n + 1),
               **ret = types + l->nvars;

    if (m->value->kind == DATA_NOTHING || !leaves.n)
        return error_at(m->c, E_UNSUPPORTED, l->loc, "'%s' calls itself without an end", l->name);
    for (uint32_t i = 0; i < l->nvars; i++)
        types[i] = l->vars[i]->type;
    for (uint32_t i = 0; i < leaves.n; i++)
        ret[i] = leaves.at[i]->type;
    l->form = m->value;
    l->type =
        type_func(m->c, l->nvars, types, leaves.n == 1 ? ret[0] : type_tuple(m->c, leaves.n, ret));
    m->functions->n = l->nfuncs;
    tv_restore(m, &m->frames.at[frame].cells);
    return tv_enter(m, frame, l->func, m->frames.at[frame].outer, l->args);
}

typedef struct {
    const TvLoop     *l;
    const BuildLift  *lift;
    const Expr *const self;
} Closing;

static const Expr *call_with(Ctx *c, const Closing *k, uint32_t n, const Expr *const *own,
                             const Expr *const *lifted, Loc loc)
{
    const Expr **args = NEW_ARRAY(c->arena, const Expr *, n + k->lift->params.n + 1);

    for (uint32_t i = 0; i < n; i++)
        args[i] = own[i];
    for (uint32_t i = 0; i < k->lift->params.n; i++)
        args[n + i] = lifted[i];
    return expr_apply(c, k->self, n + k->lift->params.n, args, loc);
}

/* Calls of itself pass on what is brought in. */
static const Expr *pass_on(Ctx *c, void *user, const Expr *was, const Expr *now)
{
    const Closing *k = user;

    (void)was;
    if (now->kind != EXPR_CALL || now->kids[0]->kind != EXPR_GLOBAL ||
        now->kids[0]->u.name != k->l->name)
        return now;
    return call_with(c, k, call_nargs(now), now->kids + 1, k->lift->params.at, now->loc);
}

/* The function of this body is added; a call of it. */
static const Expr *close_loop(TvMachine *m, const TvLoop *l, const Expr *body)
{
    Ctx         *c = m->c;
    Build        b = {c, l->loc, l->name};
    BuildLift    lift;
    const Expr **vars, *func;
    const Type **types, *ret = body->type;
    uint32_t     n;

    build_lift_begin(&b, &lift, l->nvars, l->vars);
    if (!(body = build_lift(&b, &lift, body)))
        return NULL;
    n = l->nvars + lift.params.n;
    vars = NEW_ARRAY(c->arena, const Expr *, n + 1);
    types = NEW_ARRAY(c->arena, const Type *, n + 1);
    for (uint32_t i = 0; i < n; i++) {
        vars[i] = i < l->nvars ? l->vars[i] : lift.params.at[i - l->nvars];
        types[i] = vars[i]->type;
    }
    Closing k = {l, &lift, expr_global(c, l->name, type_func(c, n, types, ret), l->loc)};

    if (!(body = expr_rewrite(c, body, pass_on, &k)) ||
        !(func = expr_func(c, n, vars, body, (FuncData){.ret = ret}, l->loc)))
        return NULL;
    vec_push(c->arena, m->functions, ((GlobalDef){l->name, func}));
    return call_with(c, &k, l->nvars, l->first, lift.args.at, l->loc);
}

bool tv_end_loop(TvMachine *m, uint32_t frame, const TvData **out)
{
    TvLoop  *l = m->frames.at[frame].loop;
    TvLeaves leaves;

    *out = NULL;
    if (!l->form) {
        *out = begin_again(m, frame) ? l->form : NULL;
        return false;
    }
    if (!tv_same_form(m->c, l->form, m->value, true)) {
        error_at(m->c, E_UNSUPPORTED, l->loc, "'%s' comes to %s, and to %s", l->name,
                 tv_data_text(m->c, l->form), tv_data_text(m->c, m->value));
        return false;
    }
    leaves = leaves_of(m, 1, &m->value);
    m->loop = l->outer;
    *out = results_of(m, l, close_loop(m, l, tv_pack(m->c, &leaves)));
    return *out != NULL;
}
