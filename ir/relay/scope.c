/* Where the nodes of a graph belong: a graph has no order and no blocks, but a node must be
 * computed somewhere.  Function bodies, branches, clauses and what follows a `let` are scopes; a
 * node belongs to the innermost scope that holds all its uses.  Parents are seen before kids, so
 * one pass does it. */
#include "ir/relay/relay.h"

typedef struct {
    Ctx *c;
    Map *info;
} Walk;

static GraphScope *scope_new(Walk *w, GraphScope *parent)
{
    GraphScope *s = NEW(w->c->scratch, GraphScope);

    s->parent = parent;
    s->depth = parent ? parent->depth + 1 : 0;
    return s;
}

/* NULL where two functions share a node. */
static GraphScope *scope_join(GraphScope *a, GraphScope *b)
{
    while (a != b)
        if (!b || (a && a->depth >= b->depth))
            a = a->parent;
        else
            b = b->parent;
    return a;
}

static void use(Walk *w, const Expr *kid, GraphScope *s, bool result)
{
    NodeInfo *i = map_get(w->info, PTR_KEY(kid));

    if (!i) {
        i = NEW(w->c->scratch, NodeInfo);
        map_put(w->info, PTR_KEY(kid), i);
    }
    i->scope = i->uses ? scope_join(i->scope, s) : s;
    i->result = result && !i->uses;
    i->uses++;
}

static void use_kids(Walk *w, const Expr *e, NodeInfo *i)
{
    switch (e->kind) {
    case EXPR_FUNC:
        i->sub[0] = scope_new(w, i->scope);
        use(w, func_body(e), i->sub[0], true);
        return;
    case EXPR_LET:
        i->sub[0] = scope_new(w, i->scope);
        use(w, let_value(e), i->scope, true);
        use(w, let_body(e), i->sub[0], true);
        return;
    case EXPR_IF:
        i->sub[0] = scope_new(w, i->scope);
        i->sub[1] = scope_new(w, i->scope);
        use(w, e->kids[0], i->scope, false);
        use(w, e->kids[1], i->sub[0], true);
        use(w, e->kids[2], i->sub[1], true);
        return;
    case EXPR_MATCH:
        i->clauses = NEW_ARRAY(w->c->scratch, GraphScope *, e->nkids);
        use(w, e->kids[0], i->scope, false);
        for (uint32_t k = 1; k < e->nkids; k++) {
            i->clauses[k] = scope_new(w, i->scope);
            use(w, e->kids[k], i->clauses[k], true);
        }
        return;
    case EXPR_CONST:
    case EXPR_VAR:
    case EXPR_GLOBAL:
    case EXPR_OP:
    case EXPR_CTOR:
    case EXPR_TUPLE:
    case EXPR_PROJ:
    case EXPR_CALL:
    case EXPR_REF_NEW:
    case EXPR_REF_READ:
    case EXPR_REF_WRITE:
        for (uint32_t k = 0; k < e->nkids; k++)
            use(w, e->kids[k], i->scope, false);
        return;
    }
}

GraphScope *scopes_of(Ctx *c, const Expr *root, Map *info)
{
    Walk        w = {c, info};
    ExprList    list = expr_post_order(c, root);
    GraphScope *top = scope_new(&w, NULL);

    use(&w, root, top, true);
    for (uint32_t i = list.n; i-- > 0;) {
        NodeInfo *n = map_get(info, PTR_KEY(list.at[i]));

        if (n)
            use_kids(&w, list.at[i], n);
    }
    return top;
}
