/* dead_code_elimination: drop unused lets and functions.
 *
 *   fn @main(%x) { let %y = exp(%x); nn.relu(%x) }  fn @old() {..}    ->    fn @main(%x) {
 * nn.relu(%x) }
 *
 * A graph keeps only what its result needs, so nodes die by themselves; left are lets whose
 * variable nobody reads, if their value has no effect (no reference, no call of a function, which
 * might write one or not end) and binds no dimension that something mentions, and functions that
 * main does not reach.  Dropping a let may free another, so that part repeats. */
#include "passes/graph/graph.h"

/* Expressions without effects: node to itself. */
static Map *pure_nodes(Ctx *c, const Module *m)
{
    Map *pure = map_new(c->scratch);

    for (uint32_t i = 0; i < m->nfuncs; i++) {
        ExprList list = expr_post_order(c, m->funcs[i].func);

        for (uint32_t k = 0; k < list.n; k++) {
            const Expr *e = list.at[k];
            bool        ok = e->kind != EXPR_REF_NEW && e->kind != EXPR_REF_READ &&
                      e->kind != EXPR_REF_WRITE &&
                      (e->kind != EXPR_CALL || call_op(e) || e->kids[0]->kind == EXPR_CTOR ||
                       (e->kids[0]->kind == EXPR_FUNC && e->kids[0]->u.func.primitive));

            for (uint32_t j = 0; j < e->nkids && e->kind != EXPR_FUNC; j++)
                ok &= map_get(pure, PTR_KEY(e->kids[j])) != NULL;
            if (ok)
                map_put(pure, PTR_KEY(e), (void *)(uintptr_t)e);
        }
    }
    return pure;
}

typedef struct {
    Map *reads; /* variables that are read somewhere, dimensions that are mentioned */
    Map *pure;
} State;

static void mention(void *user, const Atom *dim)
{
    Map *reads = user;

    map_put(reads, PTR_KEY(dim), reads);
}

/* Is one of the dimensions mentioned, or a number to be checked, that a let binds? */
static bool binds_read(const Map *reads, const Expr *value)
{
    Dims        dims;
    const Atom *dim;

    for (uint32_t i = 0; expr_binds(value, &dims) && i < dims.n; i++)
        if (!idx_is_atom(dims.at[i], &dim) || map_get(reads, PTR_KEY(dim)))
            return true;
    return false;
}

static Map *read_vars(Ctx *c, const Module *m)
{
    Map *reads = map_new(c->scratch);

    for (uint32_t i = 0; i < m->nfuncs; i++) {
        ExprList list = expr_post_order(c, m->funcs[i].func);

        for (uint32_t k = 0; k < list.n; k++) {
            const Expr *e = list.at[k];
            const Op   *op = call_op(e);
            uint32_t    first = e->kind == EXPR_LET ? 1 : 0;
            uint32_t    last = e->kind == EXPR_FUNC ? e->nkids - 1 : first;

            if (op && !is_bind(e))
                attrs_mentions(op->attrs, e->u.attrs, mention, reads);
            if (e->type && e->kind != EXPR_LET)
                type_mentions(e->type, mention, reads);
            for (uint32_t j = e->kind == EXPR_FUNC ? last : first; j < e->nkids; j++)
                if (e->kids[j]->kind == EXPR_VAR)
                    map_put(reads, PTR_KEY(e->kids[j]), reads);
        }
    }
    return reads;
}

static const Expr *drop_let(Ctx *c, void *user, const Expr *was, const Expr *now)
{
    const State *s = user;

    (void)c;
    if (was->kind == EXPR_LET && !map_get(s->reads, PTR_KEY(let_var(was))) &&
        !binds_read(s->reads, let_value(was)) && map_get(s->pure, PTR_KEY(let_value(was))))
        return let_body(now);
    return now;
}

static const Module *drop_functions(Ctx *c, const Module *m)
{
    Map       *live = map_new(c->scratch);
    GlobalDef *kept = NEW_ARRAY(c->scratch, GlobalDef, m->nfuncs ? m->nfuncs : 1);
    GlobalList reached = module_reached(c, m);
    uint32_t   n = 0;

    if (!module_func(m, "main"))
        return m;
    for (uint32_t i = 0; i < reached.n; i++)
        map_put(live, PTR_KEY(intern(c->strings, reached.at[i].name)), live);
    for (uint32_t i = 0; i < m->nfuncs; i++)
        if (map_get(live, PTR_KEY(intern(c->strings, m->funcs[i].name))))
            kept[n++] = m->funcs[i];
    return n == m->nfuncs ? m : module_new(c, m, n, kept);
}

const Module *dead_code_elimination(Ctx *c, const Module *m)
{
    for (;;) {
        State         s = {read_vars(c, m), pure_nodes(c, m)};
        const Module *next = module_rewrite(c, m, drop_let, &s);

        if (!next || next == m)
            return next ? drop_functions(c, next) : NULL;
        m = next;
    }
}
