/* What a loop's body uses from outside: it is computed before the loop and passed on through all
 * rounds as a parameter of its own.  Constants stay where they are used. */
#include "frontends/calls.h"

/* A leaf that is not worth a parameter, or cannot be one. */
static bool stays(const Expr *e)
{
    return e->kind == EXPR_CONST || e->kind == EXPR_OP || e->kind == EXPR_GLOBAL ||
           e->kind == EXPR_CTOR || e->kind == EXPR_FUNC;
}

/* Nodes that are made of constants alone. */
static Map *closed_nodes(Ctx *c, ExprList list)
{
    Map *closed = map_new(c->scratch);

    for (uint32_t i = 0; i < list.n; i++) {
        const Expr *e = list.at[i];
        bool        all = e->kind != EXPR_VAR;

        for (uint32_t k = 0; k < e->nkids; k++)
            all = all && map_get(closed, PTR_KEY(e->kids[k]));
        if (all)
            map_put(closed, PTR_KEY(e), closed);
    }
    return closed;
}

static void bring_in(Ctx *c, BuildLift *l, const Map *closed, const Expr *e)
{
    const Expr *v;

    if (stays(e) || map_get(closed, PTR_KEY(e)) || map_get(l->inside, PTR_KEY(e)) ||
        map_get(l->brought, PTR_KEY(e)))
        return;
    v = expr_var(c, e->kind == EXPR_VAR ? e->u.var.name : "x", e->type, e->loc);
    map_put(l->brought, PTR_KEY(e), (void *)(uintptr_t)v);
    vec_push(c->arena, &l->params, v);
    vec_push(c->arena, &l->args, e);
}

static const Expr *replace(Ctx *c, void *user, const Expr *was, const Expr *now)
{
    const BuildLift *l = user;
    const Expr      *v = map_get(l->brought, PTR_KEY(was));

    (void)c;
    return v ? v : now;
}

void build_lift_begin(const Build *b, BuildLift *l, uint32_t n, const Expr *const *vars)
{
    *l = (BuildLift){.inside = map_new(b->c->scratch), .brought = map_new(b->c->scratch)};
    for (uint32_t i = 0; i < n; i++)
        map_put(l->inside, PTR_KEY(vars[i]), l->inside);
}

const Expr *build_lift(const Build *b, BuildLift *l, const Expr *round)
{
    Ctx     *c = b->c;
    ExprList list = expr_post_order(c, round);
    Map     *closed = closed_nodes(c, list);

    map_put(l->inside, PTR_KEY(round), l->inside);
    for (uint32_t i = 0; i < list.n; i++)
        for (uint32_t k = 0; k < list.at[i]->nkids; k++)
            if (map_get(l->inside, PTR_KEY(list.at[i]->kids[k])))
                map_put(l->inside, PTR_KEY(list.at[i]), l->inside);
    for (uint32_t i = 0; i < list.n; i++)
        for (uint32_t k = 0; k < list.at[i]->nkids; k++)
            if (map_get(l->inside, PTR_KEY(list.at[i])))
                bring_in(c, l, closed, list.at[i]->kids[k]);
    return expr_rewrite(c, round, replace, l);
}
