/* hoist_invariants: what the rounds of a loop have in common is computed before it.
 *
 *   fn @loop(%go, %s, %w) { if %go { ..  @loop(.., tanh(nn.dense(%s, cast(%w))), %w) } else { %s }
 * } fn @main(..) { @loop(%a, %b, %c) }
 *
 *     -> fn @loop(%go, %s, %w, %x) { if %go { ..  @loop(.., tanh(nn.dense(%s, %x)), %w, %x) } else
 * { %s } } fn @main(..) { @loop(%a, %b, %c, cast(%c)) }
 *
 * Frontends leave nothing of that kind, but passes do, which widen halves and change layouts.  What
 * depends only on parameters that every round passes on, with at least one of them, becomes a
 * parameter.  Not if it has more cells than what it is made of (a kernel that broadcasts as it
 * reads moves less), if it is a mere view, or if only some rounds need it.  Loops within others
 * come again when theirs are done.  Cost: two rewrites of the module for each loop with such a
 * node. */
#include "passes/graph/graph.h"

enum { MAX_NESTING = 32 }; /* of loops in loops, from which things are taken out */

typedef struct {
    const char *name;
    const Expr *f;
    LoopForm    form;
    Map        *same; /* nodes that are the same in all rounds */
    Map        *vars; /* what is taken out: its parameter */
    VEC(const Expr *) out, params;
} Hoist;

static bool kids_same(const Hoist *h, const Expr *e)
{
    for (uint32_t i = 0; i < e->nkids; i++)
        if (!map_get(h->same, PTR_KEY(e->kids[i])))
            return false;
    return e->nkids > 0;
}

/* Constants are the same, too; `varied` are those that a parameter went into. */
static void find_same(Hoist *h, ExprList list, Map *varied)
{
    for (uint32_t i = 0; i < func_nparams(h->f); i++)
        if (passes_on(h->f, &h->form, i)) {
            map_put(h->same, PTR_KEY(func_param(h->f, i)), h);
            map_put(varied, PTR_KEY(func_param(h->f, i)), h);
        }
    for (uint32_t i = 0; i < list.n; i++) {
        const Expr *e = list.at[i];
        bool        leaf = e->kind == EXPR_CONST || e->kind == EXPR_OP;

        if (leaf || ((call_op(e) || e->kind == EXPR_TUPLE || e->kind == EXPR_PROJ) && !is_map(e) &&
                     kids_same(h, e)))
            map_put(h->same, PTR_KEY(e), h);
        for (uint32_t k = 0; k < e->nkids; k++)
            if (map_get(varied, PTR_KEY(e->kids[k])))
                map_put(varied, PTR_KEY(e), h);
    }
}

static int64_t cells(const Type *t)
{
    int64_t n = 0, part;

    if (t->kind == TYPE_TENSOR)
        return type_elems_most(t, &n) ? n : INT64_MAX;
    for (uint32_t i = 0; t->kind == TYPE_TUPLE && i < t->n; i++) {
        part = cells(t->parts[i]);
        n = checked_add(n, part, &n) ? n : INT64_MAX;
    }
    return n;
}

static bool is_worth(const Expr *e)
{
    int64_t in = 0;

    if (!call_op(e) || !expr_has_shape(e) || is_view(e))
        return false;
    for (uint32_t i = 0; i < call_nargs(e); i++)
        if (!checked_add(in, cells(call_arg(e, i)->type), &in))
            in = INT64_MAX;
    return cells(e->type) <= in;
}

/* What is taken out: from the end of the round, so that nothing within it is. */
static void choose(Ctx *c, Hoist *h)
{
    ExprList list = expr_post_order(c, h->form.again);
    Map *info = map_new(c->scratch), *varied = map_new(c->scratch), *stays = map_new(c->scratch);

    scopes_of(c, h->f, info);
    find_same(h, list, varied);
    const NodeInfo *round = map_get(info, PTR_KEY(h->form.again));
    for (uint32_t i = list.n; i-- > 0;) {
        const Expr     *e = list.at[i];
        const NodeInfo *at = map_get(info, PTR_KEY(e));

        if (e != h->form.again && !map_get(stays, PTR_KEY(e)))
            continue;
        if (map_get(h->same, PTR_KEY(e)) && map_get(varied, PTR_KEY(e)) && at &&
            at->scope == round->scope && is_worth(e)) {
            const Expr *v = expr_var(c, "x", e->type, e->loc);
            map_put(h->vars, PTR_KEY(e), (void *)(uintptr_t)v);
            vec_push(c->scratch, &h->out, e);
            vec_push(c->scratch, &h->params, v);
            continue;
        }
        for (uint32_t k = 0; k < e->nkids; k++)
            map_put(stays, PTR_KEY(e->kids[k]), h);
    }
}

static const Expr *in_loop(Ctx *c, void *user, const Expr *was, const Expr *now)
{
    const Hoist *h = user;
    const Expr  *v = map_get(h->vars, PTR_KEY(was));

    if (was == h->form.again)
        return loop_call_with(c, h->f, now, h->params.n, h->params.at, h->params.at);
    return v ? v : now;
}

static const Expr *in_others(Ctx *c, void *user, const Expr *was, const Expr *now)
{
    const Hoist *h = user;
    const Expr **more;

    if (was->kind != EXPR_CALL || was->kids[0]->kind != EXPR_GLOBAL ||
        was->kids[0]->u.name != h->name)
        return now;
    more = NEW_ARRAY(c->scratch, const Expr *, h->out.n);
    for (uint32_t i = 0; i < h->out.n; i++)
        if (!(more[i] = expr_bind(c, h->out.at[i], call_nargs(now), h->f->kids, now->kids + 1)))
            return NULL;
    return loop_call_with(c, h->f, now, h->out.n, h->params.at, more);
}

static const Expr *widen_loop(Ctx *c, Hoist *h)
{
    const Expr *body = expr_rewrite(c, func_body(h->f), in_loop, h);

    return body ? loop_with(c, h->f, body, h->params.n, h->params.at) : NULL;
}

/* Function `at`, if it is a loop with something to take out; else m itself. */
static const Module *hoist(Ctx *c, const Module *m, uint32_t at)
{
    GlobalDef *defs = DUP_ARRAY(c->scratch, m->funcs, m->nfuncs);
    Hoist      h = {.name = intern(c->strings, m->funcs[at].name), .f = m->funcs[at].func};

    if (!is_loop(c, h.f, h.name, &h.form) || escapes(c, m, h.name))
        return m;
    h.same = map_new(c->scratch);
    h.vars = map_new(c->scratch);
    choose(c, &h);
    if (!h.out.n)
        return m;
    for (uint32_t i = 0; i < m->nfuncs; i++) {
        defs[i].func = i == at ? widen_loop(c, &h) : expr_rewrite(c, defs[i].func, in_others, &h);
        if (!defs[i].func)
            return NULL;
    }
    return module_new(c, m, m->nfuncs, defs);
}

const Module *hoist_invariants(Ctx *c, const Module *m)
{
    for (uint32_t depth = 0; depth < MAX_NESTING; depth++) {
        const Module *was = m;

        for (uint32_t i = 0; i < m->nfuncs; i++)
            if (!(m = hoist(c, m, i)))
                return NULL;
        if (m == was)
            break;
    }
    return m;
}
