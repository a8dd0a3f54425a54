/* layer_norm: normalization of rows that a model has written out becomes nn.layer_norm.
 *
 *   %0 = mean(%x, axis=[2], keepdims=true);  %1 = subtract(%x, %0);  %2 = multiply(%1, %1)
 *   %3 = rsqrt(add(mean(%2, axis=[2], keepdims=true), 1e-05))
 *   add(multiply(multiply(%1, %3), %gamma), %beta)
 *     -> nn.layer_norm(%x, %gamma, %beta, axis=2)
 *
 * The factor may be multiplied with the root first, as TensorFlow's batch normalization does it:
 *
 *   %4 = multiply(%3, %gamma);  add(multiply(%x, %4), subtract(%beta, multiply(%0, %4)))
 *
 * The root is rsqrt, 1 / sqrt or the divisor itself.  Operands of sums and products stand in any
 * order.  Rounding differs from that of the separate operators.  Cost: one walk and one rewrite. */
#include "passes/graph/graph.h"

#include <math.h>

typedef struct {
    const Expr *x, *mean, *gamma, *beta;
    uint32_t    axis; /* from here on */
    double      epsilon;
} Norm;

/* Operand i of a call of two, in the order that `swap` says. */
static const Expr *operand(const Expr *e, bool swap, uint32_t i)
{
    return call_arg(e, swap ? 1 - i : i);
}

/* The mean of x along its last dimensions, which stay as 1s. */
static bool is_row_mean(const Expr *e, const Expr *x, uint32_t *axis)
{
    const ReduceAttrs *a;
    uint32_t           n;

    if (!call_is(e, "mean") || call_arg(e, 0) != x || !expr_has_shape(x))
        return false;
    a = ATTRS_OF(ReduceAttrs, e);
    n = x->type->n;
    if (!a->keepdims || a->exclude || a->axis.n < 1 || a->axis.n > n)
        return false;
    *axis = n - a->axis.n;
    for (uint32_t i = 0; i < a->axis.n; i++) /* in order */
        if (axis_from_front(a->axis.at[i], n) != *axis + i)
            return false;
    return true;
}

/* x - mean(x) */
static bool is_centred(const Expr *e, Norm *m)
{
    if (!call_is(e, "subtract") || !is_row_mean(call_arg(e, 1), call_arg(e, 0), &m->axis))
        return false;
    if (m->x && (m->x != call_arg(e, 0) || m->mean != call_arg(e, 1)))
        return false;
    m->x = call_arg(e, 0);
    m->mean = call_arg(e, 1);
    return true;
}

/* The mean of the squares of what is centred, plus epsilon. */
static bool is_variance(const Expr *e, Norm *m)
{
    const Expr *square, *v;
    uint32_t    axis;

    if (!call_is(e, "add"))
        return false;
    v = call_arg(e, expr_const_f(call_arg(e, 1), &m->epsilon) ? 0 : 1);
    if (!expr_const_f(call_arg(e, v == call_arg(e, 0) ? 1 : 0), &m->epsilon) || !(m->epsilon > 0) ||
        !call_is(v, "mean"))
        return false;
    square = call_arg(v, 0);
    return call_is(square, "multiply") && call_arg(square, 0) == call_arg(square, 1) &&
           is_centred(call_arg(square, 0), m) && is_row_mean(v, square, &axis) && axis == m->axis;
}

static bool is_deviation(const Expr *e, Norm *m)
{
    return call_is(e, "sqrt") && is_variance(call_arg(e, 0), m);
}

/* 1 / sqrt(variance + epsilon) */
static bool is_root(const Expr *e, Norm *m)
{
    double one;

    if (call_is(e, "rsqrt"))
        return is_variance(call_arg(e, 0), m);
    return call_is(e, "divide") && expr_const_f(call_arg(e, 0), &one) && one == 1 &&
           is_deviation(call_arg(e, 1), m);
}

/* The root times gamma. */
static bool is_factor(const Expr *e, Norm *m)
{
    for (int swap = 0; call_is(e, "multiply") && swap < 2; swap++)
        if (is_root(operand(e, swap, 0), m)) {
            m->gamma = operand(e, swap, 1);
            return true;
        }
    return false;
}

/* beta - mean * factor */
static bool is_rest(const Expr *e, const Expr *factor, Norm *m)
{
    bool plus = call_is(e, "add");

    if (!plus && !call_is(e, "subtract"))
        return false;
    for (int swap = 0; swap < (plus ? 2 : 1); swap++) {
        const Expr *p = operand(e, swap, 1);

        for (int turn = 0; call_is(p, "multiply") && turn < 2; turn++) {
            const Expr *mean = operand(p, turn, 0);

            if (plus)
                mean = call_is(mean, "negative") ? call_arg(mean, 0) : NULL;
            if (mean == m->mean && operand(p, turn, 1) == factor) {
                m->beta = operand(e, swap, 0);
                return true;
            }
        }
    }
    return false;
}

/* x * factor + (beta - mean * factor) */
static bool by_factor(const Expr *p, const Expr *q, Norm *m)
{
    for (int swap = 0; call_is(p, "multiply") && swap < 2; swap++) {
        const Expr *factor = operand(p, swap, 1);

        *m = (Norm){0};
        if (is_factor(factor, m) && operand(p, swap, 0) == m->x && is_rest(q, factor, m))
            return true;
    }
    return false;
}

/* What is centred, by the root. */
static bool is_normal(const Expr *e, Norm *m)
{
    if (call_is(e, "divide"))
        return is_deviation(call_arg(e, 1), m) && is_centred(call_arg(e, 0), m);
    for (int swap = 0; call_is(e, "multiply") && swap < 2; swap++)
        if (is_root(operand(e, swap, 1), m) && is_centred(operand(e, swap, 0), m))
            return true;
    return false;
}

/* (x - mean) * root * gamma + beta */
static bool by_steps(const Expr *p, const Expr *beta, Norm *m)
{
    for (int swap = 0; call_is(p, "multiply") && swap < 2; swap++) {
        *m = (Norm){.beta = beta};
        if (is_normal(operand(p, swap, 0), m)) {
            m->gamma = operand(p, swap, 1);
            return true;
        }
        *m = (Norm){.beta = beta};
        if (is_factor(operand(p, swap, 1), m) && is_centred(operand(p, swap, 0), m))
            return true;
    }
    return false;
}

/* The same for all rows: as nn.layer_norm takes it; NULL: it is not. */
static const Expr *of_cells(Ctx *c, const Expr *v, const Norm *m)
{
    const Type *t = m->x->type;
    uint32_t    n = t->n - m->axis;

    if (!expr_has_shape(v) || v->type->n < n || !dtype_eq(v->type->dtype, t->dtype))
        return NULL;
    for (uint32_t i = 0; i < v->type->n; i++) {
        uint32_t back = v->type->n - 1 - i;

        if (back < n ? v->type->dims[i] != t->dims[t->n - 1 - back]
                     : v->type->dims[i] != idx_const(c->arith, 1))
            return NULL;
    }
    return v->type->n == n ? v : make_reshape_to(c, v, n, t->dims + m->axis, v->loc);
}

static const Expr *normalized(Ctx *c, const Expr *e, const Norm *m)
{
    LayerNormAttrs *a = ATTRS_NEW(c, LayerNormAttrs);
    const Expr     *args[] = {m->x, of_cells(c, m->gamma, m), of_cells(c, m->beta, m)};

    if (!args[1] || !args[2] || e->type != m->x->type)
        return e;
    a->axis = m->axis;
    a->epsilon = m->epsilon;
    return expr_call_name(c, "nn.layer_norm", 3, args, a, e->loc);
}

static const Expr *match(Ctx *c, void *user, const Expr *was, const Expr *e)
{
    Norm m;

    (void)user, (void)was;
    for (int swap = 0; call_is(e, "add") && is_float(e) && expr_has_shape(e) && swap < 2; swap++)
        if (by_factor(operand(e, swap, 0), operand(e, swap, 1), &m) ||
            by_steps(operand(e, swap, 0), operand(e, swap, 1), &m))
            return normalized(c, e, &m);
    return e;
}

const Module *layer_norm(Ctx *c, const Module *m)
{
    const Module *now = module_rewrite(c, m, match, NULL);

    return now && now != m ? fold_constant(c, now) : now;
}
