/* What a Relay module promises:
 *   - functions have distinct names, and every @name is one of them;
 *   - a variable is used only where its binder reaches (scope.c);
 *   - constants have as many bytes as their type;
 *   - what is typed is typed right: an operator call by its relation, now as when it was made;
 *   - a dimension that a `let` binds is bound once, and used in the rest of that `let` alone;
 *   - a primitive function uses nothing but its parameters, operators, tuples and constants. */
#include "ir/relay/relay.h"

#include <string.h>

typedef struct {
    Ctx          *c;
    const Module *m;
    Map          *info;   /* scope.c */
    Map          *binder; /* variable to the scope in which it has a value */
    Map          *self;   /* variables bound by let to a function, which may name itself */
    Map          *bound;  /* dimensions, and calls of bind_dims in their place, to the scope of the
                           * let that binds them */
    bool bad;
} Verify;

#define BROKEN(v, e, ...) error_at((v)->c, E_VERIFY, (e)->loc, __VA_ARGS__)

static void bind(Verify *v, const Expr *var, GraphScope *s)
{
    map_put(v->binder, PTR_KEY(var), s);
}

static void bind_pattern(Verify *v, const Pattern *p, GraphScope *s)
{
    if (p->kind == PAT_VAR)
        bind(v, p->var, s);
    for (uint32_t i = 0; i < p->nkids; i++)
        bind_pattern(v, p->kids[i], s);
}

static void bind_dims(Verify *v, const Expr *call, GraphScope *s)
{
    Dims        dims;
    const Atom *dim;

    if (!expr_binds(call, &dims))
        return;
    map_put(v->bound, PTR_KEY(call), s);
    for (uint32_t k = 0; k < dims.n; k++) {
        if (!idx_is_atom(dims.at[k], &dim))
            continue;
        if (map_get(v->bound, PTR_KEY(dim)))
            v->bad = !BROKEN(v, call, "dimension '%s' is bound twice", dim->name);
        map_put(v->bound, PTR_KEY(dim), s);
    }
}

static void bind_node(Verify *v, const Expr *e, const NodeInfo *i)
{
    if (e->kind == EXPR_FUNC) {
        for (uint32_t k = 0; k < func_nparams(e); k++)
            bind(v, func_param(e, k), i->sub[0]);
    } else if (e->kind == EXPR_LET) {
        bind(v, let_var(e), i->sub[0]);
        bind_dims(v, let_value(e), i->sub[0]);
        if (let_value(e)->kind == EXPR_FUNC)
            map_put(v->self, PTR_KEY(let_var(e)), v->self);
    } else if (e->kind == EXPR_MATCH) {
        for (uint32_t k = 1; k < e->nkids; k++)
            bind_pattern(v, e->u.match.patterns[k - 1], i->clauses[k]);
    }
}

static bool within(const GraphScope *s, const GraphScope *outer)
{
    while (s && s->depth > outer->depth)
        s = s->parent;
    return s == outer;
}

static bool check_var(Verify *v, const Expr *e, const NodeInfo *i)
{
    const GraphScope *s = map_get(v->binder, PTR_KEY(e));

    if (s && within(i->scope, s))
        return true;
    if (s && map_get(v->self, PTR_KEY(e)) && within(i->scope, s->parent))
        return true;
    return BROKEN(v, e, "'%%%s' is used where it has no value", e->u.var.name);
}

typedef struct {
    Verify           *v;
    const Expr       *e;
    const GraphScope *scope; /* of e */
    bool              broken;
} Mention;

static void check_mention(void *user, const Atom *dim)
{
    Mention          *m = user;
    const GraphScope *s = map_get(m->v->bound, PTR_KEY(dim));

    if (m->broken || !s || within(m->scope, s))
        return;
    BROKEN(m->v, m->e, "dimension '%s' is used where it has no value", dim->name);
    m->broken = true;
}

/* The type of a let or function is that of what is in it. */
static bool check_bound(Verify *v, const Expr *e, const NodeInfo *i)
{
    const Op *op = call_op(e);
    Mention   m = {v, e, i->scope, false};

    if (!map_count(v->bound) || e->kind == EXPR_LET || e->kind == EXPR_FUNC)
        return true;
    if (op && !map_get(v->bound, PTR_KEY(e)))
        attrs_mentions(op->attrs, e->u.attrs, check_mention, &m);
    if (e->type)
        type_mentions(e->type, check_mention, &m);
    return !m.broken;
}

static bool check_call(Verify *v, const Expr *e)
{
    const Op    *op = call_op(e);
    uint32_t     n = call_nargs(e);
    const Type **in = NEW_ARRAY(v->c->scratch, const Type *, n ? n : 1), *t;

    if (!op)
        return true;
    if (n < op->min_in || n > op->max_in)
        return BROKEN(v, e, "'%s' has %u operands", op->text, n);
    if (call_is(e, "bind_dims") && !map_get(v->bound, PTR_KEY(e)))
        return BROKEN(v, e, "bind_dims is not the value of a let");
    for (uint32_t i = 0; i < n; i++) {
        if (!call_arg(e, i)->type || call_arg(e, i)->type->kind == TYPE_VAR)
            return true;
        in[i] = type_plain(v->c, call_arg(e, i)->type);
    }
    if (!e->type || !op->rel)
        return true;
    if (!(t = op_rel(v->c, op, e->loc, e->u.attrs, in, n)))
        return false;
    if (t != type_plain(v->c, e->type))
        return BROKEN(v, e, "'%s' is typed %s, its operands give %s", op->text,
                      type_text(v->c, e->type), type_text(v->c, t));
    return true;
}

static bool check_primitive(Verify *v, const Expr *f)
{
    ExprList list = expr_post_order(v->c, func_body(f));
    Map     *params = map_new(v->c->scratch);

    for (uint32_t i = 0; i < func_nparams(f); i++)
        map_put(params, PTR_KEY(func_param(f, i)), params);
    for (uint32_t i = 0; i < list.n; i++) {
        const Expr *e = list.at[i];
        bool        ok = e->kind == EXPR_CONST || e->kind == EXPR_OP || e->kind == EXPR_TUPLE ||
                  e->kind == EXPR_PROJ || call_op(e) ||
                  (e->kind == EXPR_VAR && map_get(params, PTR_KEY(e)));

        if (!ok)
            return BROKEN(v, f, "a primitive function holds more than operators on its parameters");
    }
    return true;
}

static bool check_node(Verify *v, const Expr *e, const NodeInfo *i)
{
    const Const *k;
    int64_t      n;

    switch (e->kind) {
    case EXPR_CONST:
        k = e->u.constant;
        if (!type_elems(k->type, &n) || (uint64_t)n * dtype_bytes(k->type->dtype) != k->data.n)
            return BROKEN(v, e, "a constant of type %s has %zu bytes", type_text(v->c, k->type),
                          k->data.n);
        return true;
    case EXPR_VAR: return check_var(v, e, i);
    case EXPR_GLOBAL:
        if (!module_func(v->m, e->u.name))
            return BROKEN(v, e, "there is no function '@%s'", e->u.name);
        return true;
    case EXPR_CALL: return check_call(v, e);
    case EXPR_FUNC: return !e->u.func.primitive || check_primitive(v, e);
    case EXPR_OP:
    case EXPR_CTOR:
    case EXPR_TUPLE:
    case EXPR_PROJ:
    case EXPR_LET:
    case EXPR_IF:
    case EXPR_REF_NEW:
    case EXPR_REF_READ:
    case EXPR_REF_WRITE:
    case EXPR_MATCH: return true;
    }
    return false;
}

static bool verify_func(Ctx *c, const Module *m, const Expr *f, Map *bound)
{
    Verify   v = {.c = c,
                  .m = m,
                  .info = map_new(c->scratch),
                  .binder = map_new(c->scratch),
                  .self = map_new(c->scratch),
                  .bound = bound};
    ExprList list = expr_post_order(c, f);
    bool     ok = true;

    scopes_of(c, f, v.info);
    for (uint32_t i = 0; i < list.n; i++) {
        const NodeInfo *n = map_get(v.info, PTR_KEY(list.at[i]));

        if (n)
            bind_node(&v, list.at[i], n);
    }
    for (uint32_t i = 0; i < list.n; i++) {
        const NodeInfo *n = map_get(v.info, PTR_KEY(list.at[i]));

        if (n)
            ok &= check_node(&v, list.at[i], n) && check_bound(&v, list.at[i], n);
    }
    return ok && !v.bad;
}

bool relay_verify(Ctx *c, const Module *m)
{
    Map *bound = map_new(c->scratch);
    bool ok = true;

    for (uint32_t i = 0; i < m->nfuncs; i++) {
        const Expr *f = m->funcs[i].func;

        for (uint32_t k = 0; k < i; k++)
            if (!strcmp(m->funcs[i].name, m->funcs[k].name))
                return error_at(c, E_VERIFY, f->loc, "the function '@%s' is defined twice",
                                m->funcs[i].name);
        if (f->kind != EXPR_FUNC)
            return error_at(c, E_VERIFY, f->loc, "'@%s' is no function", m->funcs[i].name);
        ok &= verify_func(c, m, f, bound);
    }
    return ok;
}
