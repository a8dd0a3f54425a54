/* Adjoints of what works cell by cell.  At a kink, what is usual: relu and clip pass on nothing
 * where they are flat, abs nothing at 0, of equal operands of maximum each gets half. */
#include "ops/gradient/gradient.h"

/* ---- two operands -------------------------------------------------------------------------------------- */

void adjoint_add(const Adjoint *a)
{
    a->dx[0] = a->dx[1] = a->dy[0];
}

void adjoint_subtract(const Adjoint *a)
{
    a->dx[0] = a->dy[0];
    a->dx[1] = grad_neg(a, a->dy[0]);
}

void adjoint_multiply(const Adjoint *a)
{
    a->dx[0] = grad_mul(a, a->dy[0], a->x[1]);
    a->dx[1] = grad_mul(a, a->dy[0], a->x[0]);
}

void adjoint_divide(const Adjoint *a)
{
    a->dx[0] = grad_div(a, a->dy[0], a->x[1]);
    a->dx[1] = grad_neg(a, grad_div(a, grad_mul(a, a->dy[0], a->call), a->x[1]));
}

/* y x^(y-1), 0 for y = 0; x^y log(x), 0 for x = 0 where the power is a number. */
void adjoint_power(const Adjoint *a)
{
    const Expr *x = a->x[0], *y = a->x[1], *none = grad_number(a, x, 0);
    const Expr *slope = grad_mul(a, y, grad2(a, "power", x, grad_plus(a, y, -1), NULL));
    const Expr *flat = grad2(a, "logical_and", grad_compare(a, "equal", x, 0),
                             grad_compare(a, "greater_equal", y, 0), NULL);
    const Expr *log = grad_mul(a, a->call, grad1(a, "log", x, NULL));

    slope = grad_where(a, grad_compare(a, "equal", y, 0), none, slope);
    a->dx[0] = grad_mul(a, a->dy[0], slope);
    a->dx[1] = grad_mul(a, a->dy[0], grad_where(a, flat, none, log));
}

/* x - q*y, where q, the quotient as it is rounded, is flat. */
static void remainder_of(const Adjoint *a, const char *rounding)
{
    const Expr *q = grad1(a, rounding, grad_div(a, a->x[0], a->x[1]), NULL);

    a->dx[0] = a->dy[0];
    a->dx[1] = grad_neg(a, grad_mul(a, a->dy[0], q));
}

void adjoint_mod(const Adjoint *a)
{
    remainder_of(a, "trunc");
}

void adjoint_floor_mod(const Adjoint *a)
{
    remainder_of(a, "floor");
}

/* The gradient of one of two operands, the one that is taken unless it is `loses` than the other.
 */
static const Expr *chosen(const Adjoint *a, const Expr *x, const Expr *other, const char *loses)
{
    const Expr *same = grad2(a, "equal", x, other, NULL);
    const Expr *dy = grad_where(a, same, grad_times(a, a->dy[0], 0.5), a->dy[0]);

    return grad_where(a, grad2(a, loses, x, other, NULL), grad_number(a, x, 0), dy);
}

void adjoint_maximum(const Adjoint *a)
{
    a->dx[0] = chosen(a, a->x[0], a->x[1], "less");
    a->dx[1] = chosen(a, a->x[1], a->x[0], "less");
}

void adjoint_minimum(const Adjoint *a)
{
    a->dx[0] = chosen(a, a->x[0], a->x[1], "greater");
    a->dx[1] = chosen(a, a->x[1], a->x[0], "greater");
}

void adjoint_where(const Adjoint *a)
{
    const Expr *none = grad_number(a, a->dy[0], 0);

    a->dx[1] = grad_where(a, a->x[0], a->dy[0], none);
    a->dx[2] = grad_where(a, a->x[0], none, a->dy[0]);
}

/* ---- one operand: dy times the slope ------------------------------------------------------------------- */

void adjoint_zero(const Adjoint *a)
{
    (void)a;
}

void adjoint_copy(const Adjoint *a)
{
    a->dx[0] = a->dy[0];
}

void adjoint_cast(const Adjoint *a)
{
    a->dx[0] = grad_cast(a, a->dy[0], a->x[0]->type->dtype);
}

void adjoint_negative(const Adjoint *a)
{
    a->dx[0] = grad_neg(a, a->dy[0]);
}

void adjoint_abs(const Adjoint *a)
{
    a->dx[0] = grad_mul(a, a->dy[0], grad1(a, "sign", a->x[0], NULL));
}

void adjoint_sqrt(const Adjoint *a)
{
    a->dx[0] = grad_div(a, grad_times(a, a->dy[0], 0.5), a->call);
}

void adjoint_rsqrt(const Adjoint *a)
{
    const Expr *cube = grad_mul(a, grad_mul(a, a->call, a->call), a->call);

    a->dx[0] = grad_mul(a, grad_times(a, a->dy[0], -0.5), cube);
}

void adjoint_exp(const Adjoint *a)
{
    a->dx[0] = grad_mul(a, a->dy[0], a->call);
}

void adjoint_log(const Adjoint *a)
{
    a->dx[0] = grad_div(a, a->dy[0], a->x[0]);
}

/* 1 - x^2 */
static const Expr *less_square(const Adjoint *a, const Expr *x)
{
    return grad_sub(a, grad_number(a, x, 1), grad_mul(a, x, x));
}

/* x^2 + v */
static const Expr *square_plus(const Adjoint *a, const Expr *x, double v)
{
    return grad_plus(a, grad_mul(a, x, x), v);
}

void adjoint_tanh(const Adjoint *a)
{
    a->dx[0] = grad_mul(a, a->dy[0], less_square(a, a->call));
}

/* 2 / sqrt(pi) * exp(-x^2) */
void adjoint_erf(const Adjoint *a)
{
    const Expr *x = a->x[0], *bell = grad1(a, "exp", grad_neg(a, grad_mul(a, x, x)), NULL);

    a->dx[0] = grad_mul(a, a->dy[0], grad_times(a, bell, 1.1283791670955126));
}

void adjoint_sigmoid(const Adjoint *a)
{
    const Expr *y = a->call, *other = grad_sub(a, grad_number(a, y, 1), y);

    a->dx[0] = grad_mul(a, a->dy[0], grad_mul(a, y, other));
}

void adjoint_sin(const Adjoint *a)
{
    a->dx[0] = grad_mul(a, a->dy[0], grad1(a, "cos", a->x[0], NULL));
}

void adjoint_cos(const Adjoint *a)
{
    a->dx[0] = grad_neg(a, grad_mul(a, a->dy[0], grad1(a, "sin", a->x[0], NULL)));
}

void adjoint_tan(const Adjoint *a)
{
    a->dx[0] = grad_mul(a, a->dy[0], square_plus(a, a->call, 1));
}

void adjoint_asin(const Adjoint *a)
{
    a->dx[0] = grad_div(a, a->dy[0], grad1(a, "sqrt", less_square(a, a->x[0]), NULL));
}

void adjoint_acos(const Adjoint *a)
{
    adjoint_asin(a);
    a->dx[0] = grad_neg(a, a->dx[0]);
}

void adjoint_atan(const Adjoint *a)
{
    a->dx[0] = grad_div(a, a->dy[0], square_plus(a, a->x[0], 1));
}

void adjoint_sinh(const Adjoint *a)
{
    a->dx[0] = grad_mul(a, a->dy[0], grad1(a, "cosh", a->x[0], NULL));
}

void adjoint_cosh(const Adjoint *a)
{
    a->dx[0] = grad_mul(a, a->dy[0], grad1(a, "sinh", a->x[0], NULL));
}

void adjoint_asinh(const Adjoint *a)
{
    a->dx[0] = grad_div(a, a->dy[0], grad1(a, "sqrt", square_plus(a, a->x[0], 1), NULL));
}

void adjoint_acosh(const Adjoint *a)
{
    a->dx[0] = grad_div(a, a->dy[0], grad1(a, "sqrt", square_plus(a, a->x[0], -1), NULL));
}

void adjoint_atanh(const Adjoint *a)
{
    a->dx[0] = grad_div(a, a->dy[0], less_square(a, a->x[0]));
}

/* ---- activations ------------------------------------------------------------------------------------------ */

void adjoint_clip(const Adjoint *a)
{
    const ClipAttrs *attrs = ATTRS(ClipAttrs, a->call);
    const Expr      *x = a->x[0], *inside;

    inside = grad2(a, "logical_and", grad_compare(a, "greater_equal", x, attrs->a_min),
                   grad_compare(a, "less_equal", x, attrs->a_max), NULL);
    a->dx[0] = grad_where(a, inside, a->dy[0], grad_number(a, x, 0));
}

void adjoint_relu(const Adjoint *a)
{
    a->dx[0] = grad_where(a, grad_compare(a, "less_equal", a->x[0], 0), grad_number(a, a->dy[0], 0),
                          a->dy[0]);
}

void adjoint_leaky_relu(const Adjoint *a)
{
    double slope = ATTRS(LeakyReluAttrs, a->call)->alpha;

    a->dx[0] = grad_where(a, grad_compare(a, "greater", a->x[0], 0), a->dy[0],
                          grad_times(a, a->dy[0], slope));
}

/* A vector along the axis of a tensor of `rank` dimensions. */
static const Expr *along(const Adjoint *a, const Expr *v, uint32_t axis, uint32_t rank)
{
    const Idx *dims[TE_MAX_AXES];

    dims[0] = v->type->dims[0];
    for (uint32_t i = 1; i < rank - axis; i++)
        dims[i] = idx_const(a->c->arith, 1);
    return grad_reshape(a, v, rank - axis, dims);
}

/* .. and back: what is left of the others is summed. */
static const Expr *onto(const Adjoint *a, const Expr *x, uint32_t axis, const Expr *v)
{
    return grad_like(a, x ? grad_reduce(a, "sum", x, ~(1u << axis)) : NULL, v);
}

void adjoint_prelu(const Adjoint *a)
{
    const Expr *x = a->x[0], *dy = a->dy[0], *over = grad_compare(a, "greater", x, 0);
    uint32_t    axis = axis_of(ATTRS(PReluAttrs, a->call)->axis, x->type->n);
    const Expr *slope = along(a, a->x[1], axis, x->type->n);

    a->dx[0] = grad_where(a, over, dy, grad_mul(a, dy, slope));
    a->dx[1] =
        onto(a, grad_where(a, over, grad_number(a, x, 0), grad_mul(a, dy, x)), axis, a->x[1]);
}

void adjoint_bias_add(const Adjoint *a)
{
    a->dx[0] = a->dy[0];
    a->dx[1] =
        onto(a, a->dy[0], axis_of(ATTRS(BiasAddAttrs, a->call)->axis, a->dy[0]->type->n), a->x[1]);
}
