/* Slopes below 0, which exporters write as a choice between a tensor and its multiple:
 *
 *   where(x < 0, x * v, x)            -> nn.leaky_relu(x, alpha=v)
 *   where(x < 0, x * const [C, 1], x) -> nn.prelu(x, const [C])
 *   where(x >= 0, x, x * ..)             the same
 *   nn.prelu(x, const [C] of equal v) -> nn.leaky_relu(x, alpha=v)
 *
 * All are exact; one call is what layouts and fusion know. */
#include "passes/graph/simplify.h"

/* x below 0, or with `from` x from 0 on; NULL: something else. */
static const Expr *compared(const Expr *cond, bool *from)
{
    double v;

    *from = call_is(cond, "greater_equal");
    if ((!*from && !call_is(cond, "less")) || !expr_const_f(call_arg(cond, 1), &v) || v != 0)
        return NULL;
    return call_arg(cond, 0);
}

/* The one dimension of `shape` that a constant has cells along, which broadcasts to it. */
static bool only_axis(const Type *k, const Type *shape, uint32_t *axis)
{
    uint32_t found = 0;

    for (uint32_t i = 0; i < k->n; i++) {
        int64_t cells;

        if (!type_dim(k, i, &cells))
            return false;
        if (cells == 1)
            continue;
        *axis = shape->n - k->n + i;
        if (k->dims[i] != shape->dims[*axis])
            return false;
        found++;
    }
    return found == 1;
}

static const Expr *leaky_relu(Ctx *c, const Expr *x, double v, Loc loc)
{
    LeakyReluAttrs *a = ATTRS_NEW(c, LeakyReluAttrs);

    a->alpha = v;
    return make1(c, "nn.leaky_relu", x, a, loc);
}

const Expr *simplify_slope(Ctx *c, const Expr *e)
{
    bool          from;
    const Expr   *x, *y, *k;
    BiasAddAttrs *attrs;
    uint32_t      axis;
    int64_t       cells;
    double        v;

    if (call_is(e, "nn.prelu"))
        return expr_const_f(call_arg(e, 1), &v) ? leaky_relu(c, call_arg(e, 0), v, e->loc) : e;
    x = compared(call_arg(e, 0), &from);

    if (!x || !is_float(e) || x->type != e->type || call_arg(e, from ? 1 : 2) != x)
        return e;
    y = call_arg(e, from ? 2 : 1);
    if (!call_is(y, "multiply") || (call_arg(y, 0) != x && call_arg(y, 1) != x))
        return e;
    k = call_arg(y, call_arg(y, 0) == x);
    if (k->kind != EXPR_CONST || k->type->n > e->type->n)
        return e;
    if (expr_const_f(k, &v))
        return leaky_relu(c, x, v, e->loc);
    if (!only_axis(k->type, e->type, &axis) || !type_elems(k->type, &cells))
        return e;
    attrs = ATTRS_NEW(c, BiasAddAttrs);
    attrs->axis = axis;
    return make2(c, "nn.prelu", x, make_reshape(c, k, 1, &cells, k->loc), attrs, e->loc);
}
