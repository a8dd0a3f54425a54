/* Relay to TE: the tensor expressions of one primitive function.
 *
 *   fn primitive (%d, %w, %b) { nn.relu(nn.bias_add(nn.conv2d(%d, %w), %b, axis=1)) }
 *     -> te @f(%p0, %p1, %p2) -> (%out) { %pad = ..  %conv = ..  %bias = ..  %out = .. }
 *
 * Each call's compute function (ops/) is run over the tensors of its operands; tuples are lists of
 * tensors.  Parameters are named by position, and the second operand of the heavy operator %w: the
 * names schedule rules use. */
#include "passes/lower/lower.h"

typedef struct {
    uint32_t             n;
    const Tensor *const *at;
} Tensors;

uint32_t type_tensors(const Type *t)
{
    uint32_t n = 0;

    if (t->kind == TYPE_TENSOR)
        return 1;
    for (uint32_t i = 0; i < t->n; i++)
        n += type_tensors(t->parts[i]);
    return n;
}

void type_flatten(const Type *t, const Type **out, uint32_t *n)
{
    if (t->kind == TYPE_TENSOR) {
        out[(*n)++] = t;
        return;
    }
    for (uint32_t i = 0; i < t->n; i++)
        type_flatten(t->parts[i], out, n);
}

static Tensors one(Ctx *c, const Tensor *t)
{
    return (Tensors){1, DUP_ARRAY(c->arena, &t, 1)};
}

/* A constant of one element, as a definition: schedules inline it, so code sees a literal. */
static const Tensor *scalar_tensor(Ctx *c, const Expr *e)
{
    const Type *t = e->type;
    const void *p = e->u.constant->data.at;
    int64_t     n = 0;

    if (!type_elems(t, &n) || n != 1)
        return error_at(c, E_PASS, e->loc,
                        "a constant of %lld elements inside a primitive function", (long long)n);
    DType       cell = dtype_cell(t->dtype);
    const Prim *v = dtype_is_float(cell) ? prim_float(c, cell, dtype_get_f(cell, p))
                                         : prim_int(c, cell, dtype_get_i(cell, p));
    return te_compute(c, "k", cell, te_axes_of(c, t), v);
}

static bool call_tensors(Ctx *c, const Expr *e, bool in_place, Map *values, Tensors *out)
{
    const Op *op = call_op(e);

    if (!op || !op->compute)
        return error_at(c, E_PASS, e->loc, "'%s' has no compute definition and was not expanded",
                        op ? op->text : "call");
    uint32_t n = 0, nout = type_tensors(e->type), k = 0;
    for (uint32_t i = 0; i < call_nargs(e); i++)
        n += type_tensors(call_arg(e, i)->type);
    const Tensor **in = NEW_ARRAY(c->arena, const Tensor *, n + 1);
    const Type   **tin = NEW_ARRAY(c->arena, const Type *, n + 1);
    const Type   **to = NEW_ARRAY(c->arena, const Type *, nout + 1);
    const Tensor **res = NEW_ARRAY(c->arena, const Tensor *, nout + 1);
    for (uint32_t i = 0; i < call_nargs(e); i++) {
        const Tensors *v = map_get(values, call_arg(e, i)->id);
        if (!v)
            return error_at(c, E_PASS, e->loc, "'%s' has an operand that is no tensor", op->text);
        for (uint32_t j = 0; j < v->n; j++)
            in[k++] = v->at[j];
    }
    k = 0;
    for (uint32_t i = 0; i < call_nargs(e); i++)
        type_flatten(call_arg(e, i)->type, tin, &k);
    k = 0;
    type_flatten(e->type, to, &k);
    OpCall call = {op,     e->u.attrs ? e->u.attrs : op->attrs ? attrs_new(c, op->attrs) : NULL,
                   n,      nout,
                   tin,    to,
                   e->loc, in_place};
    if (!te_of_call(c, &call, in, res))
        return false;
    *out = (Tensors){nout, res};
    return true;
}

/* The first two operands that heavy operators take second; NULL where there are fewer. */
static void find_weights(const ExprList *list, const Expr **weight, const Expr **second)
{
    *weight = *second = NULL;
    for (uint32_t i = 0; i < list->n && !*second; i++) {
        const Op *op = call_op(list->at[i]);
        if (op && op->fusion == FUSE_OUT_FUSABLE && call_nargs(list->at[i]) > 1)
            *(*weight ? second : weight) = call_arg(list->at[i], 1);
    }
}

static void keep(Ctx *c, Map *values, const Expr *e, Tensors v)
{
    map_put(values, e->id, arena_dup(c->arena, &v, sizeof v));
}

/* Tensors for the parameters, as `values` of them too. */
static Tensors parameters(Ctx *c, const Expr *primitive, const Expr *call, const ExprList *list,
                          Map *values)
{
    VEC(const Tensor *) params = {0};
    const Expr *weight, *second;

    find_weights(list, &weight, &second);
    for (uint32_t i = 0; i < func_nparams(primitive); i++) {
        const Expr    *p = func_param(primitive, i);
        uint32_t       n = type_tensors(p->type), k = 0;
        const Type   **types = NEW_ARRAY(c->arena, const Type *, n + 1);
        const Tensor **at = NEW_ARRAY(c->arena, const Tensor *, n + 1);
        bool           constant = call && call_arg(call, i)->kind == EXPR_CONST;
        type_flatten(p->type, types, &k);
        for (uint32_t j = 0; j < n; j++) {
            const char *label = p == weight   ? "w"
                                : p == second ? "w2"
                                              : intern_printf(c->strings, "p%u", params.n);
            at[j] = te_param(c, label, types[j], constant, NULL);
            vec_push(c->arena, &params, at[j]);
        }
        keep(c, values, p, (Tensors){n, at});
    }
    return (Tensors){params.n, params.at};
}

static Tensors tuple_tensors(Ctx *c, const Expr *e, const Map *values)
{
    VEC(const Tensor *) all = {0};

    for (uint32_t i = 0; i < e->nkids; i++) {
        const Tensors *k = map_get(values, e->kids[i]->id);
        for (uint32_t j = 0; k && j < k->n; j++)
            vec_push(c->arena, &all, k->at[j]);
    }
    return (Tensors){all.n, all.at};
}

/* Those of the tuple's part. */
static bool part_tensors(Ctx *c, const Expr *e, const Map *values, Tensors *out)
{
    const Tensors *k = map_get(values, e->kids[0]->id);
    uint32_t       at = 0;

    if (!k)
        return error_at(c, E_PASS, e->loc, "a projection of something that is no tuple");
    for (uint32_t i = 0; i < e->u.index; i++)
        at += type_tensors(e->kids[0]->type->parts[i]);
    *out = (Tensors){type_tensors(e->type), k->at + at};
    return true;
}

static bool tensors_of(Ctx *c, const Expr *e, bool in_place, Map *values, Tensors *out)
{
    const Tensor *t;

    switch (e->kind) {
    case EXPR_CONST:
        if ((t = scalar_tensor(c, e)))
            *out = one(c, t);
        return t != NULL;
    case EXPR_TUPLE: *out = tuple_tensors(c, e, values); return true;
    case EXPR_PROJ: return part_tensors(c, e, values, out);
    case EXPR_CALL: return call_tensors(c, e, in_place, values, out);
    case EXPR_VAR:
    case EXPR_GLOBAL:
    case EXPR_OP:
    case EXPR_CTOR:
    case EXPR_LET:
    case EXPR_IF:
    case EXPR_FUNC:
    case EXPR_REF_NEW:
    case EXPR_REF_READ:
    case EXPR_REF_WRITE:
    case EXPR_MATCH: break;
    }
    return error_at(c, E_PASS, e->loc, "a primitive function may hold only operator calls");
}

const TeFunc *te_of_func(Ctx *c, const Expr *primitive, const Expr *call, bool in_place,
                         const char *name)
{
    ExprList list = expr_post_order(c, func_body(primitive));
    Map     *values = map_new(c->arena);
    Tensors  params = parameters(c, primitive, call, &list, values), v;

    for (uint32_t i = 0; i < list.n; i++) {
        const Expr *e = list.at[i];

        if (map_get(values, e->id) || e->kind == EXPR_OP)
            continue;
        if (!tensors_of(c, e, in_place, values, &v))
            return NULL;
        keep(c, values, e, v);
    }
    const Tensors *res = map_get(values, func_body(primitive)->id);
    TeFunc        *f = NEW(c->arena, TeFunc);
    const Type   **out = NEW_ARRAY(c->arena, const Type *, res->n + 1);
    uint32_t       n = 0;
    if (call)
        type_flatten(call->type, out, &n);
    for (uint32_t i = 0; i < n; i++)
        if (out[i]->halo)
            te_set_halo(res->at[i], out[i]->halo);
    if (in_place)
        params = (Tensors){params.n - 1, params.at + 1};
    *f = (TeFunc){intern(c->strings, name), params.n, res->n, params.at, res->at, primitive->loc};
    return f;
}
