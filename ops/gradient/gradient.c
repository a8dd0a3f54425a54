/* gradient: a function's gradient by reverse-mode differentiation.
 *
 *     %2 = gradient(fn (%x: Tensor[(2, 3), f32], %w: Tensor[(3), f32]) { .. }, %0, %1);   // %2.0,
 * %2.1
 *
 * The result of the function is summed; %2.i is the derivative of that sum by parameter i, at the
 * operands.  With `params=k` there are those of the first k parameters alone.
 *
 * The call expands, as calls do that have no kernel of their own:
 *
 *     gradient(fn (%x) { exp(%x) }, %0)  ->  (multiply(ones(..), exp(%0)),)
 *
 * The function's nodes are gone through from its result to its parameters.  Each gives the
 * gradients of its operands, as its row of adjoints.def says; those of a node's uses are added.
 * Only nodes that depend on a parameter and are floats take part.  The gradient is Relay like any
 * other, so it may be differentiated again. */
#include "ops/gradient/gradient.h"

/* ---- the table ---------------------------------------------------------------------------------------- */

#define ADJOINT(id, fn) [OP_##id] = fn,
static AdjointFn *const adjoints[OP_COUNT] = {
#include "ops/gradient/adjoints.def"
};
#undef ADJOINT

bool op_has_adjoint(const Op *op)
{
    return adjoints[op->id] != NULL;
}

/* There is no gradient of this; names the model's node, as it may be far from the call. */
static void *refuse(Ctx *c, Loc loc, const char *what)
{
    if (!loc.name || !*loc.name)
        return error_at(c, E_UNSUPPORTED, loc, "there is no gradient of %s", what);
    return error_at(c, E_UNSUPPORTED, loc, "'%s': there is no gradient of %s", loc.name, what);
}

void adjoint_refuse(const Adjoint *a, const char *why)
{
    refuse(a->b->c, a->b->loc,
           arena_printf(a->b->c->arena, "'%s' with %s", call_op(a->call)->text, why));
}

/* ---- type relation ------------------------------------------------------------------------------------ */

static bool is_float_tensor(const Type *t)
{
    return t->kind == TYPE_TENSOR && dtype_is_float(t->dtype);
}

static uint32_t params_of(const void *attrs, const Type *f)
{
    int64_t n = ((const GradientAttrs *)attrs)->params;

    return n ? (uint32_t)n : f->n;
}

const Type *rel_gradient(Ctx *c, Loc loc, const void *attrs, const Type *const *in, uint32_t nin)
{
    const Type *f = in[0];
    int64_t     n = ((const GradientAttrs *)attrs)->params;

    if (f->kind != TYPE_FUNC || f->n != nin - 1 || !f->n)
        return error_at(
            c, E_TYPE, loc,
            "gradient takes a function and an operand for each of its parameters, not %s",
            type_text(c, f));
    if (n < 0 || n > f->n)
        return error_at(c, E_TYPE, loc, "'params' is %lld, the function has %u", (long long)n,
                        f->n);
    if (!is_float_tensor(f->ret))
        return error_at(c, E_TYPE, loc, "the gradient of %s, which is no tensor of floats",
                        type_text(c, f->ret));
    for (uint32_t i = 0; i < f->n; i++) {
        if (in[i + 1] != f->parts[i])
            return error_at(c, E_TYPE, loc, "operand %u is %s, the parameter %s", i,
                            type_text(c, in[i + 1]), type_text(c, f->parts[i]));
        if (i < params_of(attrs, f) && !is_float_tensor(f->parts[i]))
            return error_at(c, E_TYPE, loc,
                            "the gradient by parameter %u, which is %s, no tensor of floats", i,
                            type_text(c, f->parts[i]));
    }
    return type_tuple(c, params_of(attrs, f), f->parts);
}

/* ---- the function, of operators that have adjoints ---------------------------------------------------- */

static const Expr *expand_node(Ctx *c, void *user, const Expr *was, const Expr *now)
{
    const Op *op = call_op(now);

    (void)user;
    (void)was;
    return op && adjoints[op->id] ? now : op_expand(c, now);
}

/* ---- from the result to the parameters ----------------------------------------------------------------- */

typedef struct {
    Ctx *c;
    Loc  loc;
    Map *active; /* nodes that depend on a parameter in question */
    Map *sums;   /* node to its gradient so far: an Expr a field of it; NULL: zeros */
} Reverse;

static uint32_t fields_of(const Type *t)
{
    return t->kind == TYPE_TUPLE ? t->n : 1;
}

static const Type *field_type(const Type *t, uint32_t i)
{
    return t->kind == TYPE_TUPLE ? t->parts[i] : t;
}

static const Expr **sums_of(Reverse *r, const Expr *e)
{
    const Expr **sums = map_get(r->sums, PTR_KEY(e));

    if (!sums) {
        sums = NEW_ARRAY(r->c->scratch, const Expr *, fields_of(e->type) + 1);
        map_put(r->sums, PTR_KEY(e), sums);
    }
    return sums;
}

static void add_to(Reverse *r, const Expr *e, uint32_t field, const Expr *g)
{
    Build        b = {.c = r->c, .loc = e->loc, .what = "gradient"};
    const Expr **sums;
    const Type  *t = field_type(e->type, field);

    if (!g || !map_get(r->active, PTR_KEY(e)) || !is_float_tensor(t))
        return;
    sums = sums_of(r, e);
    if ((g = grad_fit(&b, g, type_plain(r->c, t))))
        sums[field] = sums[field] ? build_add(&b, sums[field], g) : g;
}

static bool through_call(Reverse *r, const Expr *e, const Expr *const *sums)
{
    Ctx         *c = r->c;
    const Op    *op = call_op(e);
    uint32_t     n = 0, ny = fields_of(e->type), k = 0, errors = diag_errors(c->diags);
    const Expr **x, **dx, **dy = NEW_ARRAY(c->scratch, const Expr *, ny + 1);
    Build        b = {.c = c, .loc = e->loc, .what = "gradient"};
    Adjoint      a = {.b = &b, .call = e};

    if (!op)
        return refuse(c, e->loc, "the call of a function");
    if (!adjoints[op->id])
        return refuse(c, e->loc, arena_printf(c->arena, "'%s'", op->text));
    for (uint32_t i = 0; i < call_nargs(e); i++)
        n += fields_of(call_arg(e, i)->type);
    x = NEW_ARRAY(c->scratch, const Expr *, n + 1);
    dx = NEW_ARRAY(c->scratch, const Expr *, n + 1);
    for (uint32_t i = 0; i < call_nargs(e); i++) {
        const Expr *arg = call_arg(e, i);

        for (uint32_t f = 0; f < fields_of(arg->type); f++)
            x[k++] = arg->type->kind != TYPE_TUPLE ? arg
                     : arg->kind == EXPR_TUPLE     ? arg->kids[f]
                                                   : expr_proj(c, arg, f, e->loc);
    }
    for (uint32_t i = 0; i < ny; i++) {
        const Type *t = type_plain(c, field_type(e->type, i));

        dy[i] = sums[i] || !is_float_tensor(t) ? sums[i] : grad_zeros(&b, t);
    }
    a.x = x;
    a.dx = dx;
    a.dy = dy;
    adjoints[op->id](&a);
    if (diag_errors(c->diags) != errors)
        return false;
    k = 0;
    for (uint32_t i = 0; i < call_nargs(e); i++)
        for (uint32_t f = 0; f < fields_of(call_arg(e, i)->type); f++)
            add_to(r, call_arg(e, i), f, dx[k++]);
    return diag_errors(c->diags) == errors;
}

static bool through(Reverse *r, const Expr *e)
{
    const Expr *const *sums = map_get(r->sums, PTR_KEY(e));

    if (!sums)
        return true;
    switch (e->kind) {
    case EXPR_CALL: return through_call(r, e, sums);
    case EXPR_PROJ: add_to(r, e->kids[0], e->u.index, sums[0]); return true;
    case EXPR_TUPLE:
        for (uint32_t i = 0; i < e->nkids; i++)
            add_to(r, e->kids[i], 0, sums[i]);
        return true;
    case EXPR_VAR:
    case EXPR_CONST: return true;
    case EXPR_LET:
    case EXPR_IF:
    case EXPR_FUNC:
    case EXPR_GLOBAL:
    case EXPR_OP:
    case EXPR_CTOR:
    case EXPR_MATCH:
    case EXPR_REF_NEW:
    case EXPR_REF_READ:
    case EXPR_REF_WRITE: break;
    }
    return refuse(r->c, e->loc.file ? e->loc : r->loc, "control flow");
}

/* Numbers that are no floats change by steps: nothing depends on a parameter through them. */
static bool depends(const Reverse *r, const Expr *e)
{
    bool floats = false;

    for (uint32_t i = 0; e->type && i < fields_of(e->type); i++)
        floats |= is_float_tensor(field_type(e->type, i));
    for (uint32_t i = 0; floats && i < e->nkids; i++)
        if (map_get(r->active, PTR_KEY(e->kids[i])))
            return true;
    return false;
}

const Expr *expand_gradient(Ctx *c, const Expr *call)
{
    const Expr *f = call_arg(call, 0), *body, **result;
    uint32_t    n = fields_of(call->type), nparams = f->nkids - 1, errors = diag_errors(c->diags);
    Reverse     r = {.c = c, .loc = call->loc, .active = map_new(c->scratch)};
    Build       b = {.c = c, .loc = call->loc, .what = "gradient"};
    ExprList    nodes;

    if (f->kind != EXPR_FUNC)
        return error_at(c, E_UNSUPPORTED, call->loc,
                        "gradient takes a function that is written in the call");
    body = func_body(f);
    for (uint32_t i = 0; i < MAX_EXPANSIONS; i++) {
        const Expr *next = expr_rewrite(c, body, expand_node, NULL);

        if (!next || next == body)
            break;
        body = next;
    }
    if (diag_errors(c->diags) != errors)
        return NULL;
    r.sums = map_new(c->scratch);
    nodes = expr_post_order(c, body);
    for (uint32_t i = 0; i < n; i++)
        map_put(r.active, PTR_KEY(func_param(f, i)), r.active);
    for (uint32_t i = 0; i < nodes.n; i++)
        if (depends(&r, nodes.at[i]))
            map_put(r.active, PTR_KEY(nodes.at[i]), r.active);
    add_to(&r, body, 0, grad_ones(&b, type_plain(c, body->type)));
    for (uint32_t i = nodes.n; i-- > 0;)
        if (!through(&r, nodes.at[i]))
            return NULL;
    result = NEW_ARRAY(c->scratch, const Expr *, n);
    for (uint32_t i = 0; i < n; i++) {
        const Expr *const *sums = map_get(r.sums, PTR_KEY(func_param(f, i)));

        result[i] = sums && sums[0] ? sums[0] : grad_zeros(&b, func_param(f, i)->type);
    }
    return expr_bind(c, expr_tuple(c, n, result, call->loc), nparams, f->kids, call->kids + 2);
}
