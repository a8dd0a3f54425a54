/* Small things that graph passes share. */
#include "passes/graph/quantized.h"

#include <string.h>

const Expr *make1(Ctx *c, const char *op, const Expr *x, const void *attrs, Loc loc)
{
    return x ? expr_call_name(c, op, 1, &x, attrs, loc) : NULL;
}

const Expr *make2(Ctx *c, const char *op, const Expr *x, const Expr *y, const void *attrs, Loc loc)
{
    const Expr *args[] = {x, y};

    return x && y ? expr_call_name(c, op, 2, args, attrs, loc) : NULL;
}

const Expr *make_cast(Ctx *c, const Expr *x, DType t, Loc loc)
{
    CastAttrs *a = ATTRS_NEW(c, CastAttrs);

    a->dtype = t;
    return make1(c, "cast", x, a, loc);
}

const Expr *make_slice(Ctx *c, const Expr *x, int64_t axis, int64_t from, int64_t to, Loc loc)
{
    StridedSliceAttrs *a = ATTRS_NEW(c, StridedSliceAttrs);

    a->begin = dims_of_i64(c, &from, 1);
    a->end = dims_of_i64(c, &to, 1);
    a->axes = ints_dup(c, &axis, 1);
    return make1(c, "strided_slice", x, a, loc);
}

const Expr *make_reshape_to(Ctx *c, const Expr *x, uint32_t n, const Idx *const *dims, Loc loc)
{
    ReshapeAttrs *a = ATTRS_NEW(c, ReshapeAttrs);
    const Type   *t;
    int64_t       cells;

    if (!x)
        return NULL;
    t = type_tensor(c, x->type->dtype, n, dims);
    if (type_elems(t, &cells) && cells == 0) /* 0 would say "as it was" */
        return expr_const(c, const_new(c, NULL, t, (Bytes){arena_alloc(c->arena, 1), 0}), loc);
    a->newshape = dims_dup(c, dims, n);
    return make1(c, "reshape", x, a, loc);
}

const Expr *make_pad(Ctx *c, const Expr *x, uint32_t i, int64_t before, int64_t behind,
                     double value, Loc loc)
{
    PadAttrs *a = ATTRS_NEW(c, PadAttrs);
    int64_t  *width = NEW_ARRAY(c->scratch, int64_t, 2 * x->type->n);

    if (!before && !behind)
        return x;
    width[2 * i] = before;
    width[2 * i + 1] = behind;
    a->pad_width = ints_dup(c, width, 2 * x->type->n);
    a->pad_value = value;
    return make1(c, "nn.pad", x, a, loc);
}

const Expr *make_reshape(Ctx *c, const Expr *x, uint32_t n, const int64_t *dims, Loc loc)
{
    return make_reshape_to(c, x, n, dims_of_i64(c, dims, n).at, loc);
}

bool static_but_first(const Expr *e)
{
    for (uint32_t i = 1; expr_has_shape(e) && i < e->type->n; i++)
        if (!idx_is_const(e->type->dims[i], NULL))
            return false;
    return expr_has_shape(e);
}

Map *count_uses(Ctx *c, const Module *m)
{
    Map *uses = map_new(c->scratch);

    for (uint32_t i = 0; i < m->nfuncs; i++) {
        ExprList list = expr_post_order(c, m->funcs[i].func);

        for (uint32_t k = 0; k < list.n; k++)
            for (uint32_t j = 0; j < list.at[k]->nkids; j++) {
                const Expr *kid = list.at[k]->kids[j];
                uintptr_t   n = (uintptr_t)map_get(uses, PTR_KEY(kid));

                map_put(uses, PTR_KEY(kid), (void *)(n + 1));
            }
    }
    return uses;
}

uint32_t uses_of(const Map *uses, const Expr *e)
{
    return (uint32_t)(uintptr_t)map_get(uses, PTR_KEY(e));
}

static bool constant_within(const Expr *e, int depth)
{
    if (e->kind == EXPR_CONST)
        return true;
    if (depth == 0 || !call_op(e))
        return false;
    for (uint32_t i = 0; i < call_nargs(e); i++)
        if (!constant_within(call_arg(e, i), depth - 1))
            return false;
    return call_nargs(e) > 0;
}

bool is_constant(const Expr *e)
{
    return constant_within(e, 6);
}

bool same_dims(const Type *a, const Type *b)
{
    return a->kind == TYPE_TENSOR && b->kind == TYPE_TENSOR && a->n == b->n &&
           (a->n == 0 || !memcmp(a->dims, b->dims, a->n * sizeof *a->dims));
}

bool is_float(const Expr *e)
{
    return e->type && e->type->kind == TYPE_TENSOR && dtype_is_float(e->type->dtype);
}

uint32_t axis_from_front(int64_t axis, uint32_t ndim)
{
    return (uint32_t)(axis < 0 ? axis + ndim : axis);
}

bool is_view(const Expr *e)
{
    return call_is(e, "reshape") || call_is(e, "squeeze") || call_is(e, "expand_dims");
}

bool is_part_view(const Expr *e)
{
    return (call_is(e, "concatenate") && ATTRS_OF(ConcatenateAttrs, e)->view) ||
           (call_is(e, "strided_slice") && ATTRS_OF(StridedSliceAttrs, e)->view);
}

bool is_update(const Expr *e)
{
    return call_is(e, "update_slice");
}

bool is_map(const Expr *e)
{
    return call_is(e, "map_batch");
}

bool is_bind(const Expr *e)
{
    return call_is(e, "bind_dims");
}

bool is_kernel(const Expr *e)
{
    return e->kind == EXPR_CALL && e->kids[0]->kind == EXPR_FUNC && e->kids[0]->u.func.primitive;
}

const Expr *kernel_on_host(Ctx *c, const Expr *call)
{
    const Expr  *f = call->kids[0];
    FuncData     data = f->u.func;
    const Expr **kids = DUP_ARRAY(c->scratch, call->kids, call->nkids);

    data.host = true;
    kids[0] = expr_func(c, func_nparams(f), f->kids, func_body(f), data, f->loc);
    return kids[0] ? expr_with_kids(c, call, kids) : NULL;
}

bool is_inline_scalar(const Expr *e)
{
    return e->kind == EXPR_CONST && e->u.constant->type->n == 0;
}

static bool calls(const Expr *e, const char *name)
{
    return e->kind == EXPR_CALL && e->kids[0]->kind == EXPR_GLOBAL && e->kids[0]->u.name == name;
}

/* How often a function names itself. */
static uint32_t self_uses(Ctx *c, const Expr *f, const char *name)
{
    ExprList list = expr_post_order(c, f);
    uint32_t n = 0;

    for (uint32_t i = 0; i < list.n; i++)
        for (uint32_t k = 0; k < list.at[i]->nkids; k++) {
            const Expr *kid = list.at[i]->kids[k];

            n += kid->kind == EXPR_GLOBAL && kid->u.name == name;
        }
    return n;
}

bool is_loop(Ctx *c, const Expr *f, const char *name, LoopForm *out)
{
    const Expr *body = func_body(f);
    uint32_t    k;

    name = intern(c->strings, name);
    if (body->kind != EXPR_IF)
        return false;
    k = calls(body->kids[1], name) ? 1 : 2;
    *out = (LoopForm){body->kids[0], body->kids[k], body->kids[3 - k], k == 2};
    return calls(body->kids[k], name) && self_uses(c, f, name) == 1;
}

bool escapes(Ctx *c, const Module *m, const char *name)
{
    name = intern(c->strings, name);
    for (uint32_t i = 0; i < m->nfuncs; i++) {
        ExprList list = expr_post_order(c, m->funcs[i].func);

        for (uint32_t k = 0; k < list.n; k++)
            for (uint32_t j = list.at[k]->kind == EXPR_CALL; j < list.at[k]->nkids; j++) {
                const Expr *kid = list.at[k]->kids[j];
                if (kid->kind == EXPR_GLOBAL && kid->u.name == name)
                    return true;
            }
    }
    return false;
}

const Expr *loop_call(Ctx *c, const Module *m, const char *name, const LoopForm *l, bool fields)
{
    const Expr *call = NULL;

    name = intern(c->strings, name);
    if (escapes(c, m, name))
        return NULL;
    for (uint32_t i = 0; i < m->nfuncs; i++) {
        ExprList list = expr_post_order(c, m->funcs[i].func);

        for (uint32_t k = 0; k < list.n; k++) {
            const Expr *e = list.at[k];

            for (uint32_t j = 0; fields && e->kind != EXPR_PROJ && j < e->nkids; j++)
                if (calls(e->kids[j], name) && e->kids[j] != l->again)
                    return NULL;
            if (!calls(e, name) || e == l->again)
                continue;
            if (call && call != e)
                return NULL;
            call = e;
        }
    }
    return call;
}

const Expr *loop_call_with(Ctx *c, const Expr *f, const Expr *call, uint32_t n,
                           const Expr *const *params, const Expr *const *more)
{
    uint32_t     had = call_nargs(call);
    const Expr **args = NEW_ARRAY(c->scratch, const Expr *, had + n);
    const Type **types = NEW_ARRAY(c->scratch, const Type *, had + n);
    const Type  *t;

    for (uint32_t i = 0; i < had + n; i++) {
        args[i] = i < had ? call_arg(call, i) : more[i - had];
        types[i] = i < had ? func_param(f, i)->type : params[i - had]->type;
    }
    t = type_func(c, had + n, types, f->type->ret);
    return expr_apply(c, expr_global(c, call->kids[0]->u.name, t, call->loc), had + n, args,
                      call->loc);
}

const Expr *loop_with(Ctx *c, const Expr *f, const Expr *body, uint32_t n, const Expr *const *more)
{
    uint32_t     had = func_nparams(f);
    const Expr **params = NEW_ARRAY(c->scratch, const Expr *, had + n);

    for (uint32_t i = 0; i < had + n; i++)
        params[i] = i < had ? func_param(f, i) : more[i - had];
    return expr_func(c, had + n, params, body, f->u.func, f->loc);
}

bool expr_number(Ctx *c, const Expr *e, int64_t *v)
{
    const Expr *k = expr_is_tensor(e) ? const_value(c, e) : NULL;
    Ints        ints;

    if (!k || dtype_is_float(k->type->dtype) || !expr_ints(c, k, &ints) || ints.n != 1)
        return false;
    *v = ints.at[0];
    return true;
}

Machine network_machine(const Ctx *c)
{
    Machine m = machine_of(c->target);

    m.weights = c->choices.weights;
    return m;
}
