/* widen_half: f16 and bf16 models compute in f32.
 *
 *   %1 = nn.conv2d(%0, const @w);  nn.relu(%1)                       // all f16
 *     -> %1 = nn.conv2d(cast(%0, "f32"), cast(const @w, "f32"));  cast(nn.relu(%1), "f16")
 *
 * A sum in 16 bits loses its small terms, and processors compute f16 through f32 anyway.  So each
 * call that takes or gives half floats takes them as f32 and rounds its result; where such a result
 * goes on to another call the rounding between is left out, so only inputs, results, and what
 * operators that name a type themselves (cast, full, ..) see are in 16 bits.  Results differ from
 * those rounded after every operator by less than these differ from the exact ones.
 *
 * Where all products of a model are of one such type, the module says so: to_mixed_precision gives
 * them to a target that multiplies 16 bits by instructions of warps as they were.
 *
 * The weights become f32 by constant folding; the driver stores them in the model's type again
 * (passes/lower/narrow.c), so they take the memory they had. */
#include "passes/graph/graph.h"

static bool is_half(const Type *t)
{
    return t && t->kind == TYPE_TENSOR && dtype_is_half(t->dtype);
}

/* Its result's type stands in its attributes, or it only looks at shapes. */
static bool names_type(const Expr *call)
{
    const Op *op = call_op(call);

    for (uint32_t i = 0; op && op->attrs && i < op->attrs->nfields; i++)
        if (op->attrs->fields[i].type == ATTR_DTYPE)
            return true;
    return false;
}

/* A value of half type as f32; NULL is an error. */
static const Expr *widened(Ctx *c, const Expr *x)
{
    if (x->kind == EXPR_TUPLE) {
        const Expr **fields = NEW_ARRAY(c->scratch, const Expr *, x->nkids + 1);

        for (uint32_t i = 0; i < x->nkids; i++)
            if (!(fields[i] = widened(c, x->kids[i])))
                return NULL;
        return expr_tuple(c, x->nkids, fields, x->loc);
    }
    if (!is_half(x->type))
        return x;
    if (call_is(x, "cast") && dtype_eq(call_arg(x, 0)->type->dtype, DT_F32))
        return call_arg(x, 0);
    return make_cast(c, x, DT_F32, x->loc);
}

/* As `like` was: half where that is. */
static const Expr *narrowed(Ctx *c, const Expr *x, const Type *like)
{
    const Expr **fields;

    if (!x || like->kind != TYPE_TUPLE)
        return x && is_half(like) && !is_half(x->type) ? make_cast(c, x, like->dtype, x->loc) : x;
    fields = NEW_ARRAY(c->scratch, const Expr *, like->n + 1);
    for (uint32_t i = 0; i < like->n; i++)
        if (like->parts[i]->kind != TYPE_TENSOR ||
            !(fields[i] = narrowed(c, expr_proj(c, x, i, x->loc), like->parts[i])))
            return NULL;
    return expr_tuple(c, like->n, fields, x->loc);
}

static bool takes_half(const Expr *call)
{
    for (uint32_t i = 0; i < call_nargs(call); i++) {
        const Expr *x = call_arg(call, i);

        if (is_half(x->type))
            return true;
        for (uint32_t k = 0; x->kind == EXPR_TUPLE && k < x->nkids; k++)
            if (is_half(x->kids[k]->type))
                return true;
    }
    return false;
}

static const Expr *widen_call(Ctx *c, void *user, const Expr *was, const Expr *now)
{
    const Expr **args;
    uint32_t     n;

    (void)user;
    if (now->kind == EXPR_PROJ && now->kids[0]->kind == EXPR_TUPLE)
        return now->kids[0]->kids[now->u.index];
    if (!call_op(now) || !was->type || names_type(now) || !takes_half(now))
        return now;
    n = call_nargs(now);
    args = NEW_ARRAY(c->scratch, const Expr *, n + 1);
    for (uint32_t i = 0; i < n; i++)
        if (!(args[i] = widened(c, call_arg(now, i))))
            return NULL;
    return narrowed(c, expr_call(c, call_op(now), n, args, now->u.attrs, now->loc), was->type);
}

/* The 16 bits that all products of the model take; bits 0: there is none, or another type. */
static DType products_type(Ctx *c, const Module *m)
{
    DType t = {0};

    for (uint32_t i = 0; i < m->nfuncs; i++) {
        ExprList list = expr_post_order(c, m->funcs[i].func);
        for (uint32_t k = 0; k < list.n; k++) {
            if (!mixed_is_product(list.at[k]))
                continue;
            for (uint32_t a = 0; a < 2; a++) {
                const Type *of = call_arg(list.at[k], a)->type;
                if (!is_half(of) || (t.bits && !dtype_eq(t, of->dtype)))
                    return (DType){0};
                t = of->dtype;
            }
        }
    }
    return t;
}

const Module *widen_half(Ctx *c, const Module *m)
{
    const DType   products = products_type(c, m);
    const Module *now = module_rewrite(c, m, widen_call, NULL);

    if (!now || !products.bits)
        return now;
    Module *marked = arena_dup(c->arena, now, sizeof *now);
    marked->products = products;
    return marked;
}
