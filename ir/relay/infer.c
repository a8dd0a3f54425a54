/* Types of a whole module: what the makers could not know, because an operand was untyped (a
 * recursive function, an unannotated parameter, an empty list), is found here by unification.
 *
 * Every node gets a type term; unknown parts are type variables named "?1", "?2", ..  Functions,
 * branches, references and constructors give equations.  An operator's result comes from its
 * relation once its operands are known, so calls wait in a list that is gone over until nothing
 * more is learned.  Then the graph is rebuilt with the types found.  Functions are monomorphic. */
#include "ir/relay/relay.h"

#include <string.h>

typedef struct {
    Ctx          *c;
    const Module *m;
    Map          *terms;   /* node to its type term */
    Map          *solved;  /* type variable to what it stands for */
    Map          *globals; /* interned function name to its type term */
    VEC(const Expr *) waiting;
    uint32_t nvars;
} Infer;

/* ---- terms ---------------------------------------------------------------------------------- */

static const Type *fresh(Infer *s)
{
    return type_var(s->c, arena_printf(s->c->scratch, "?%u", s->nvars++));
}

static const Type *prune(Infer *s, const Type *t)
{
    const Type *to;

    while (t->kind == TYPE_VAR && (to = map_get(s->solved, PTR_KEY(t))))
        t = to;
    return t;
}

static const Type *resolve(Infer *s, const Type *t)
{
    const Type **parts;

    t = prune(s, t);
    if (t->kind == TYPE_TENSOR || t->kind == TYPE_VAR)
        return t;
    parts = NEW_ARRAY(s->c->scratch, const Type *, t->n ? t->n : 1);
    for (uint32_t i = 0; i < t->n; i++)
        parts[i] = resolve(s, t->parts[i]);
    switch (t->kind) {
    case TYPE_TUPLE: return type_tuple(s->c, t->n, parts);
    case TYPE_FUNC: return type_func(s->c, t->n, parts, resolve(s, t->ret));
    case TYPE_REF: return type_ref(s->c, parts[0]);
    case TYPE_ADT: return type_adt(s->c, t->name, t->n, parts);
    case TYPE_TENSOR:
    case TYPE_VAR: break;
    }
    return t;
}

static bool is_known(const Type *t)
{
    if (t->kind == TYPE_VAR)
        return false;
    if (t->kind != TYPE_TENSOR)
        for (uint32_t i = 0; i < t->n; i++)
            if (!is_known(t->parts[i]))
                return false;
    return !t->ret || is_known(t->ret);
}

static bool occurs(Infer *s, const Type *var, const Type *t)
{
    t = prune(s, t);
    if (t == var)
        return true;
    if (t->kind != TYPE_TENSOR)
        for (uint32_t i = 0; i < t->n; i++)
            if (occurs(s, var, t->parts[i]))
                return true;
    return t->ret && occurs(s, var, t->ret);
}

static bool unify(Infer *s, const Type *a, const Type *b)
{
    a = prune(s, a);
    b = prune(s, b);
    if (a == b)
        return true;
    if (a->kind == TYPE_VAR || b->kind == TYPE_VAR) {
        const Type *var = a->kind == TYPE_VAR ? a : b, *to = a->kind == TYPE_VAR ? b : a;

        if (occurs(s, var, to))
            return false;
        map_put(s->solved, PTR_KEY(var), (void *)(uintptr_t)to);
        return true;
    }
    if (a->kind != b->kind || a->n != b->n || a->name != b->name)
        return false;
    if (a->kind == TYPE_TENSOR)
        return type_plain(s->c, a) == type_plain(s->c, b);
    for (uint32_t i = 0; i < a->n; i++)
        if (!unify(s, a->parts[i], b->parts[i]))
            return false;
    return !a->ret || unify(s, a->ret, b->ret);
}

static bool equate(Infer *s, const Expr *e, const Type *have, const Type *want)
{
    if (unify(s, have, want))
        return true;
    return error_at(s->c, E_TYPE, e->loc, "this is %s, but %s is needed here",
                    type_text(s->c, resolve(s, have)), type_text(s->c, resolve(s, want)));
}

static const Type *term(Infer *s, const Expr *e)
{
    const Type *t = map_get(s->terms, PTR_KEY(e));

    if (!t) {
        t = e->type && is_known(e->type) ? type_plain(s->c, e->type) : fresh(s);
        map_put(s->terms, PTR_KEY(e), (void *)(uintptr_t)t);
    }
    return t;
}

/* ---- equations ------------------------------------------------------------------------------ */

/* A constructor's type with new variables for those of its ADT. */
static const Type *instantiate(Infer *s, const Adt *adt, const Type **args, const Type *t)
{
    const Type **parts;

    if (t->kind == TYPE_VAR) {
        for (uint32_t i = 0; i < adt->nvars; i++)
            if (adt->vars[i] == t)
                return args[i];
        return t;
    }
    if (t->kind == TYPE_TENSOR)
        return t;
    parts = NEW_ARRAY(s->c->scratch, const Type *, t->n ? t->n : 1);
    for (uint32_t i = 0; i < t->n; i++)
        parts[i] = instantiate(s, adt, args, t->parts[i]);
    switch (t->kind) {
    case TYPE_TUPLE: return type_tuple(s->c, t->n, parts);
    case TYPE_FUNC: return type_func(s->c, t->n, parts, instantiate(s, adt, args, t->ret));
    case TYPE_REF: return type_ref(s->c, parts[0]);
    case TYPE_ADT: return type_adt(s->c, t->name, t->n, parts);
    case TYPE_TENSOR:
    case TYPE_VAR: break;
    }
    return t;
}

static const Type *ctor_type(Infer *s, const Ctor *k, const Type **fields)
{
    const Type **args = NEW_ARRAY(s->c->scratch, const Type *, k->adt->nvars + 1);

    for (uint32_t i = 0; i < k->adt->nvars; i++)
        args[i] = fresh(s);
    for (uint32_t i = 0; i < k->nfields; i++)
        fields[i] = instantiate(s, k->adt, args, k->fields[i]);
    return type_adt(s->c, k->adt->name, k->adt->nvars, args);
}

static bool equate_pattern(Infer *s, const Expr *match, const Pattern *p, const Type *t)
{
    const Type **parts = NEW_ARRAY(s->c->scratch, const Type *, p->nkids + 1), *whole = NULL;

    switch (p->kind) {
    case PAT_WILD: return true;
    case PAT_VAR: return equate(s, match, t, term(s, p->var));
    case PAT_CTOR: whole = ctor_type(s, p->ctor, parts); break;
    case PAT_TUPLE:
        for (uint32_t i = 0; i < p->nkids; i++)
            parts[i] = fresh(s);
        whole = type_tuple(s->c, p->nkids, parts);
        break;
    }
    if (!equate(s, match, t, whole))
        return false;
    for (uint32_t i = 0; i < p->nkids; i++)
        if (!equate_pattern(s, match, p->kids[i], parts[i]))
            return false;
    return true;
}

static bool equate_call(Infer *s, const Expr *e)
{
    const Type **in = NEW_ARRAY(s->c->scratch, const Type *, e->nkids), *f;

    if (call_op(e)) {
        vec_push(s->c->scratch, &s->waiting, e);
        return true;
    }
    for (uint32_t i = 1; i < e->nkids; i++)
        in[i - 1] = term(s, e->kids[i]);
    f = prune(s, term(s, e->kids[0]));
    if (f->kind == TYPE_FUNC && f->n == e->nkids - 1) { /* say which argument does not fit */
        for (uint32_t i = 0; i < f->n; i++)
            if (!equate(s, e, in[i], f->parts[i]))
                return false;
        return equate(s, e, f->ret, term(s, e));
    }
    return equate(s, e, term(s, e->kids[0]), type_func(s->c, e->nkids - 1, in, term(s, e)));
}

/* What e says about its own type and those of its kids. */
static bool equate_node(Infer *s, const Expr *e)
{
    Ctx         *c = s->c;
    const Type **parts = NEW_ARRAY(c->scratch, const Type *, e->nkids + 1);
    const Type  *t;

    for (uint32_t i = 0; i < e->nkids; i++)
        parts[i] = term(s, e->kids[i]);
    switch (e->kind) {
    case EXPR_CONST:
    case EXPR_OP: return true;
    case EXPR_VAR: term(s, e); return true;
    case EXPR_GLOBAL:
        if (!(t = map_get(s->globals, PTR_KEY(e->u.name))))
            return error_at(c, E_TYPE, e->loc, "there is no function '@%s'", e->u.name);
        return equate(s, e, t, term(s, e));
    case EXPR_CTOR: {
        const Ctor  *k = e->u.ctor;
        const Type **fields = NEW_ARRAY(c->scratch, const Type *, k->nfields + 1);

        t = ctor_type(s, k, fields);
        return equate(s, e, type_func(c, k->nfields, fields, t), term(s, e));
    }
    case EXPR_TUPLE: return equate(s, e, type_tuple(c, e->nkids, parts), term(s, e));
    case EXPR_PROJ: vec_push(c->scratch, &s->waiting, e); return true;
    case EXPR_CALL: return equate_call(s, e);
    case EXPR_LET: return equate(s, e, parts[1], parts[0]) && equate(s, e, parts[2], term(s, e));
    case EXPR_IF:
        return equate(s, e->kids[0], parts[0], type_tensor(c, DT_BOOL, 0, NULL)) &&
               equate(s, e->kids[2], parts[2], parts[1]) && equate(s, e, parts[1], term(s, e));
    case EXPR_FUNC:
        t = parts[e->nkids - 1];
        if (e->u.func.ret && !equate(s, func_body(e), t, e->u.func.ret))
            return false;
        return equate(s, e, type_func(c, e->nkids - 1, parts, t), term(s, e));
    case EXPR_REF_NEW: return equate(s, e, type_ref(c, parts[0]), term(s, e));
    case EXPR_REF_READ: return equate(s, e, parts[0], type_ref(c, term(s, e)));
    case EXPR_REF_WRITE:
        return equate(s, e, parts[0], type_ref(c, parts[1])) &&
               equate(s, e, type_tuple(c, 0, NULL), term(s, e));
    case EXPR_MATCH:
        for (uint32_t i = 1; i < e->nkids; i++)
            if (!equate_pattern(s, e, e->u.match.patterns[i - 1], parts[0]) ||
                !equate(s, e->kids[i], parts[i], term(s, e)))
                return false;
        return true;
    }
    return false;
}

/* A waiting call or projection: *done if it could be carried out; false after an error. */
static bool try_waiting(Infer *s, const Expr *e, bool *done)
{
    Ctx         *c = s->c;
    const Type **in, *t;
    uint32_t     n;

    *done = false;
    if (e->kind == EXPR_PROJ) {
        t = prune(s, term(s, e->kids[0]));
        if (t->kind == TYPE_VAR)
            return true;
        *done = true;
        if (t->kind != TYPE_TUPLE || e->u.index >= t->n)
            return error_at(c, E_TYPE, e->loc, "'.%u' of %s", e->u.index, type_text(c, t));
        return equate(s, e, t->parts[e->u.index], term(s, e));
    }
    n = call_nargs(e);
    in = NEW_ARRAY(c->scratch, const Type *, n + 1);
    for (uint32_t i = 0; i < n; i++) {
        in[i] = resolve(s, term(s, call_arg(e, i)));
        if (!is_known(in[i]))
            return true;
    }
    *done = true;
    if (!(t = op_rel(c, call_op(e), e->loc, e->u.attrs, in, n)))
        return false;
    return equate(s, e, t, term(s, e));
}

static bool settle(Infer *s)
{
    bool progress = true;

    while (progress && s->waiting.n) {
        uint32_t n = s->waiting.n, kept = 0;

        progress = false;
        for (uint32_t i = 0; i < n; i++) {
            const Expr *e = s->waiting.at[i];
            bool        done;

            if (!try_waiting(s, e, &done))
                return false;
            if (done)
                progress = true;
            else
                s->waiting.at[kept++] = e;
        }
        s->waiting.n = kept;
    }
    if (s->waiting.n) {
        const Expr *e = s->waiting.at[0];

        return error_at(s->c, E_TYPE, e->loc,
                        "the type of the operands of '%s' cannot be found; "
                        "annotate a parameter",
                        call_op(e) ? call_op(e)->text : ".");
    }
    return true;
}

/* ---- the module ----------------------------------------------------------------------------- */

/* Every node typed, and every @name with the type that its function has? */
static bool all_typed(Ctx *c, const Module *m)
{
    for (uint32_t i = 0; i < m->nfuncs; i++) {
        ExprList list = expr_post_order(c, m->funcs[i].func);

        for (uint32_t k = 0; k < list.n; k++) {
            const Expr *e = list.at[k], *f;

            if (e->kind == EXPR_OP || e->kind == EXPR_CTOR)
                continue;
            if (!e->type || !is_known(e->type))
                return false;
            if (e->kind == EXPR_GLOBAL && (f = module_func(m, e->u.name)) && f->type != e->type)
                return false;
        }
    }
    return true;
}

static const Expr *retype(Ctx *c, void *user, const Expr *was, const Expr *now)
{
    Infer      *s = user;
    const Type *t;

    if (now->kind == EXPR_OP || now->kind == EXPR_CONST || now->kind == EXPR_CTOR)
        return now;
    if (now->type && is_known(now->type) && now->kind != EXPR_GLOBAL)
        return now;
    t = resolve(s, term(s, was));
    if (!is_known(t))
        return error_at(c, E_TYPE, was->loc, "the type of this cannot be found; it is %s",
                        type_text(c, t));
    if (now->kind == EXPR_VAR)
        return expr_var(c, now->u.var.name, t, now->loc);
    return expr_with_type(c, now, t);
}

static bool equate_func(Infer *s, const GlobalDef *g)
{
    ExprList list = expr_post_order(s->c, g->func);

    for (uint32_t i = 0; i < list.n; i++)
        if (!equate_node(s, list.at[i]))
            return false;
    return equate(s, g->func, term(s, g->func),
                  map_get(s->globals, PTR_KEY(intern(s->c->strings, g->name))));
}

const Module *relay_infer(Ctx *c, const Module *m)
{
    Infer s = {.c = c, .m = m};

    if (all_typed(c, m))
        return m;
    s.terms = map_new(c->scratch);
    s.solved = map_new(c->scratch);
    s.globals = map_new(c->scratch);
    for (uint32_t i = 0; i < m->nfuncs; i++)
        map_put(s.globals, PTR_KEY(intern(c->strings, m->funcs[i].name)),
                (void *)(uintptr_t)fresh(&s));
    for (uint32_t i = 0; i < m->nfuncs; i++)
        if (!equate_func(&s, &m->funcs[i]))
            return NULL;
    if (!settle(&s))
        return NULL;
    return module_rewrite(c, m, retype, &s);
}
