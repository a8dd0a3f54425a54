/* simplify_loops, second half: the results of a loop that are read, and the loop of what they need.
 *
 * A result is the last value of a parameter.  Where another parameter has the same value in the
 * end, or the last row of a list is one's, or a counter tells it, or the loop never changes it, the
 * caller reads that instead.  From what is left follows which parameters are needed, in which
 * order, and the loop and its call are written anew with these. */
#include "passes/graph/simplify_loops.h"

/* ---- results -------------------------------------------------------------------------------------- */

static const Expr *without_views(const Expr *e)
{
    while (is_view(e))
        e = call_arg(e, 0);
    return e;
}

/* What is read of a result in the end: itself, or the piece that a list of one row, or of a row for
 * each round, has got last. */
static const Expr *last_piece(const Loop *l, Result *r)
{
    const Expr *e = l->next[r->param];
    int64_t     rows, at;

    if (!call_is(e, "update_slice") || call_arg(e, 0) != l->param[r->param])
        return e;
    if (!type_dim(e->type, 0, &rows))
        return NULL;
    if (rows == 1 && expr_number(l->c, call_arg(e, 2), &at))
        return call_arg(e, 1);
    r->row = !r->other && rows == l->rounds && call_arg(e, 2) == l->i;
    return r->row ? call_arg(e, 1) : NULL;
}

/* May the result be what parameter k is in the end?  Of two that rounds do not read, the first. */
static bool may_be(const Loop *l, const Result *r, uint32_t k)
{
    return k != r->param && l->value[k] == l->param[k] && !l->reads[r->param] &&
           !call_is(l->next[k], "update_slice") && l->next[k] != l->param[k] &&
           (l->reads[k] || k < r->param);
}

static void find_result(Loop *l, Result *r)
{
    uint32_t    p = r->param;
    const Expr *e;

    if (l->counts[p]) {
        r->kind = RESULT_NUMBER;
        r->number = l->last[p];
        return;
    }
    if (l->value[p]->kind == EXPR_VAR)
        p = r->param = param_at(l, l->value[p]);
    r->kind = l->value[p] != l->param[p] || l->next[p] == l->param[p] ? RESULT_FIRST : RESULT_STATE;
    r->of = p;
    if (l->rounds && l->param[p] == l->go) {
        r->kind = RESULT_NUMBER;
        r->number = 0;
    }
    if (r->kind != RESULT_STATE || !l->rounds || !(e = last_piece(l, r)))
        return;
    for (uint32_t k = 0; k < l->n; k++)
        if (may_be(l, r, k) && without_views(l->next[k]) == without_views(e)) {
            r->kind = RESULT_VIEW;
            r->of = k;
            return;
        }
    r->row = false;
}

/* Parameter k is needed, and what its next value is made of. */
static void need(Loop *l, uint32_t k)
{
    uint32_t at = l->nlive;

    if (k == UINT32_MAX || l->live[k])
        return;
    l->live[k] = true;
    l->order[l->nlive++] = k;
    for (; at < l->nlive; at++) {
        ExprList list = expr_post_order(l->c, l->next[l->order[at]]);

        for (uint32_t i = 0; i < list.n; i++) {
            uint32_t p = list.at[i]->kind == EXPR_VAR ? param_at(l, list.at[i]) : UINT32_MAX;

            if (p == UINT32_MAX || l->live[p])
                continue;
            l->live[p] = true;
            l->order[l->nlive++] = p;
        }
    }
}

static void need_all(Loop *l)
{
    ExprList list = expr_post_order(l->c, l->rounds ? l->go : l->form.cond);

    for (uint32_t i = 0; i < list.n; i++)
        if (list.at[i]->kind == EXPR_VAR)
            need(l, param_at(l, list.at[i]));
    for (uint32_t i = 0; i < l->nused; i++) {
        const Result *r = &l->result[l->used[i]];

        if (r->kind == RESULT_STATE || r->kind == RESULT_VIEW)
            need(l, r->of);
    }
}

/* ---- the loop anew -------------------------------------------------------------------------------- */

static bool is_field(const Loop *l, uint32_t k)
{
    for (uint32_t i = 0; i < l->nused; i++) {
        const Result *r = &l->result[l->used[i]];

        if ((r->kind == RESULT_STATE || r->kind == RESULT_VIEW) && r->of == k)
            return true;
    }
    return false;
}

/* Which field of the new results parameter k is. */
static uint32_t field_of(const Loop *l, uint32_t k)
{
    uint32_t at = 0;

    for (uint32_t i = 0; l->order[i] != k; i++)
        at += is_field(l, l->order[i]);
    return at;
}

/* The live ones of what all parameters have. */
static const Expr **live_of(const Loop *l, const Expr *const *all)
{
    const Expr **out = NEW_ARRAY(l->c->scratch, const Expr *, l->nlive + 1);

    for (uint32_t i = 0; i < l->nlive; i++)
        out[i] = all[l->order[i]];
    return out;
}

static const Expr *self(const Loop *l, const Type *ret)
{
    const Type **types = NEW_ARRAY(l->c->scratch, const Type *, l->nlive + 1);

    for (uint32_t i = 0; i < l->nlive; i++)
        types[i] = l->param[l->order[i]]->type;
    return expr_global(l->c, l->name, type_func(l->c, l->nlive, types, ret), l->f->loc);
}

static const Expr *new_loop(Loop *l, const Expr **global)
{
    Ctx         *c = l->c;
    Loc          loc = l->f->loc;
    const Expr **end = NEW_ARRAY(c->scratch, const Expr *, l->nlive + 1), *again, *last, *cond;
    const Expr  *body;
    FuncData     data = l->f->u.func;
    uint32_t     n = 0;

    for (uint32_t i = 0; i < l->nlive; i++)
        if (is_field(l, l->order[i]))
            end[n++] = l->param[l->order[i]];
    last = expr_tuple(c, n, end, loc);
    cond = l->rounds ? l->go : expr_rewrite(c, l->form.cond, in_round, l);
    if (!last || !cond)
        return NULL;
    *global = self(l, last->type);
    again = expr_apply(c, *global, l->nlive, live_of(l, l->next), l->form.again->loc);
    if (!again)
        return NULL;
    data.ret = last->type;
    body = expr_if(c, cond, l->form.until ? last : again, l->form.until ? again : last, loc);
    return body ? expr_func(c, l->nlive, live_of(l, l->param), body, data, loc) : NULL;
}

typedef struct {
    const Loop *l;
    const Expr *call; /* of the new loop */
} Caller;

/* What the caller reads as result r. */
static const Expr *read_result(Ctx *c, const Caller *k, const Result *r, const Type *t)
{
    const Loop *l = k->l;
    const Expr *e;

    switch (r->kind) {
    case RESULT_FIRST: return l->value[r->of]->kind == EXPR_VAR ? l->first[r->of] : l->value[r->of];
    case RESULT_NUMBER: return expr_scalar(c, l->param[r->param]->type->dtype, (double)r->number);
    case RESULT_STATE:
    case RESULT_VIEW: break;
    }
    e = expr_proj(c, k->call, field_of(l, r->of), l->call->loc);
    return !e || e->type == t ? e : make_reshape_to(c, e, t->n, t->dims, l->call->loc);
}

static const Expr *in_caller(Ctx *c, void *user, const Expr *was, const Expr *now)
{
    const Caller *k = user;
    const Loop   *l = k->l;
    uint32_t      at;

    if (is_last_row(was) && (at = result_at(l, call_arg(was, 0))) != UINT32_MAX &&
        l->result[at].row)
        return read_result(c, k, &l->result[at], was->type);
    if ((at = result_at(l, was)) == UINT32_MAX)
        return now;
    if (l->result[at].row) /* only slices read it, which become another's */
        return l->first[l->result[at].param];
    return read_result(c, k, &l->result[at], was->type);
}

const Module *loop_anew(Ctx *c, const Module *m, uint32_t at, Loop *l)
{
    GlobalDef    *defs = DUP_ARRAY(c->scratch, m->funcs, m->nfuncs);
    const Module *now;
    Caller        k = {l, NULL};
    const Expr   *global = NULL;

    for (uint32_t i = 0; i < l->nused; i++)
        find_result(l, &l->result[l->used[i]]);
    need_all(l);
    if (!(defs[at].func = new_loop(l, &global)) ||
        !(k.call = expr_apply(c, global, l->nlive, live_of(l, l->first), l->call->loc)))
        return NULL;
    for (uint32_t i = 0; i < m->nfuncs; i++)
        if (i != at && !(defs[i].func = expr_rewrite(c, defs[i].func, in_caller, &k)))
            return NULL;
    now = module_new(c, m, m->nfuncs, defs);
    return module_same(c, now, m) ? m : now;
}
