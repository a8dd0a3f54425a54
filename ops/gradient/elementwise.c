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
    a->dx[1] = build1(a->b, "negative", a->dy[0], NULL);
}

void adjoint_multiply(const Adjoint *a)
{
    a->dx[0] = build_mul(a->b, a->dy[0], a->x[1]);
    a->dx[1] = build_mul(a->b, a->dy[0], a->x[0]);
}

void adjoint_divide(const Adjoint *a)
{
    a->dx[0] = build_div(a->b, a->dy[0], a->x[1]);
    a->dx[1] = build1(a->b, "negative",
                      build_div(a->b, build_mul(a->b, a->dy[0], a->call), a->x[1]), NULL);
}

/* y x^(y-1), 0 for y = 0; x^y log(x), 0 for x = 0 where the power is a number. */
void adjoint_power(const Adjoint *a)
{
    const Expr *x = a->x[0], *y = a->x[1], *none = build_scalar(a->b, x, 0);
    const Expr *slope =
        build_mul(a->b, y, build2(a->b, "power", x, build_by(a->b, "add", y, -1), NULL));
    const Expr *flat = build2(a->b, "logical_and", build_by(a->b, "equal", x, 0),
                              build_by(a->b, "greater_equal", y, 0), NULL);
    const Expr *log = build_mul(a->b, a->call, build1(a->b, "log", x, NULL));

    slope = build_where(a->b, build_by(a->b, "equal", y, 0), none, slope);
    a->dx[0] = build_mul(a->b, a->dy[0], slope);
    a->dx[1] = build_mul(a->b, a->dy[0], build_where(a->b, flat, none, log));
}

/* x - q*y, where q, the quotient as it is rounded, is flat. */
static void remainder_of(const Adjoint *a, const char *rounding)
{
    const Expr *q = build1(a->b, rounding, build_div(a->b, a->x[0], a->x[1]), NULL);

    a->dx[0] = a->dy[0];
    a->dx[1] = build1(a->b, "negative", build_mul(a->b, a->dy[0], q), NULL);
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
    const Expr *same = build2(a->b, "equal", x, other, NULL);
    const Expr *dy = build_where(a->b, same, build_by(a->b, "multiply", a->dy[0], 0.5), a->dy[0]);

    return build_where(a->b, build2(a->b, loses, x, other, NULL), build_scalar(a->b, x, 0), dy);
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
    const Expr *none = build_scalar(a->b, a->dy[0], 0);

    a->dx[1] = build_where(a->b, a->x[0], a->dy[0], none);
    a->dx[2] = build_where(a->b, a->x[0], none, a->dy[0]);
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
    a->dx[0] = build_cast(a->b, a->dy[0], a->x[0]->type->dtype);
}

void adjoint_negative(const Adjoint *a)
{
    a->dx[0] = build1(a->b, "negative", a->dy[0], NULL);
}

void adjoint_abs(const Adjoint *a)
{
    a->dx[0] = build_mul(a->b, a->dy[0], build1(a->b, "sign", a->x[0], NULL));
}

void adjoint_sqrt(const Adjoint *a)
{
    a->dx[0] = build_div(a->b, build_by(a->b, "multiply", a->dy[0], 0.5), a->call);
}

void adjoint_rsqrt(const Adjoint *a)
{
    const Expr *cube = build_mul(a->b, build_mul(a->b, a->call, a->call), a->call);

    a->dx[0] = build_mul(a->b, build_by(a->b, "multiply", a->dy[0], -0.5), cube);
}

void adjoint_exp(const Adjoint *a)
{
    a->dx[0] = build_mul(a->b, a->dy[0], a->call);
}

void adjoint_log(const Adjoint *a)
{
    a->dx[0] = build_div(a->b, a->dy[0], a->x[0]);
}

/* 1 - x^2 */
static const Expr *less_square(const Adjoint *a, const Expr *x)
{
    return build_sub(a->b, build_scalar(a->b, x, 1), build_mul(a->b, x, x));
}

/* x^2 + v */
static const Expr *square_plus(const Adjoint *a, const Expr *x, double v)
{
    return build_by(a->b, "add", build_mul(a->b, x, x), v);
}

void adjoint_tanh(const Adjoint *a)
{
    a->dx[0] = build_mul(a->b, a->dy[0], less_square(a, a->call));
}

/* 2 / sqrt(pi) * exp(-x^2) */
void adjoint_erf(const Adjoint *a)
{
    const Expr *x = a->x[0],
               *bell =
                   build1(a->b, "exp", build1(a->b, "negative", build_mul(a->b, x, x), NULL), NULL);

    a->dx[0] = build_mul(a->b, a->dy[0], build_by(a->b, "multiply", bell, 1.1283791670955126));
}

void adjoint_sigmoid(const Adjoint *a)
{
    const Expr *y = a->call, *other = build_sub(a->b, build_scalar(a->b, y, 1), y);

    a->dx[0] = build_mul(a->b, a->dy[0], build_mul(a->b, y, other));
}

void adjoint_sin(const Adjoint *a)
{
    a->dx[0] = build_mul(a->b, a->dy[0], build1(a->b, "cos", a->x[0], NULL));
}

void adjoint_cos(const Adjoint *a)
{
    a->dx[0] = build1(a->b, "negative",
                      build_mul(a->b, a->dy[0], build1(a->b, "sin", a->x[0], NULL)), NULL);
}

void adjoint_tan(const Adjoint *a)
{
    a->dx[0] = build_mul(a->b, a->dy[0], square_plus(a, a->call, 1));
}

void adjoint_asin(const Adjoint *a)
{
    a->dx[0] = build_div(a->b, a->dy[0], build1(a->b, "sqrt", less_square(a, a->x[0]), NULL));
}

void adjoint_acos(const Adjoint *a)
{
    adjoint_asin(a);
    a->dx[0] = build1(a->b, "negative", a->dx[0], NULL);
}

void adjoint_atan(const Adjoint *a)
{
    a->dx[0] = build_div(a->b, a->dy[0], square_plus(a, a->x[0], 1));
}

void adjoint_sinh(const Adjoint *a)
{
    a->dx[0] = build_mul(a->b, a->dy[0], build1(a->b, "cosh", a->x[0], NULL));
}

void adjoint_cosh(const Adjoint *a)
{
    a->dx[0] = build_mul(a->b, a->dy[0], build1(a->b, "sinh", a->x[0], NULL));
}

void adjoint_asinh(const Adjoint *a)
{
    a->dx[0] = build_div(a->b, a->dy[0], build1(a->b, "sqrt", square_plus(a, a->x[0], 1), NULL));
}

void adjoint_acosh(const Adjoint *a)
{
    a->dx[0] = build_div(a->b, a->dy[0], build1(a->b, "sqrt", square_plus(a, a->x[0], -1), NULL));
}

void adjoint_atanh(const Adjoint *a)
{
    a->dx[0] = build_div(a->b, a->dy[0], less_square(a, a->x[0]));
}

/* ---- activations ------------------------------------------------------------------------------------------ */

void adjoint_clip(const Adjoint *a)
{
    const ClipAttrs *attrs = ATTRS(ClipAttrs, a->call);
    const Expr      *x = a->x[0], *inside;

    inside = build2(a->b, "logical_and", build_by(a->b, "greater_equal", x, attrs->a_min),
                    build_by(a->b, "less_equal", x, attrs->a_max), NULL);
    a->dx[0] = build_where(a->b, inside, a->dy[0], build_scalar(a->b, x, 0));
}

void adjoint_relu(const Adjoint *a)
{
    a->dx[0] = build_where(a->b, build_by(a->b, "less_equal", a->x[0], 0),
                           build_scalar(a->b, a->dy[0], 0), a->dy[0]);
}

void adjoint_leaky_relu(const Adjoint *a)
{
    double slope = ATTRS(LeakyReluAttrs, a->call)->alpha;

    a->dx[0] = build_where(a->b, build_by(a->b, "greater", a->x[0], 0), a->dy[0],
                           build_by(a->b, "multiply", a->dy[0], slope));
}

/* A vector along the axis of a tensor of `rank` dimensions. */
static const Expr *along(const Adjoint *a, const Expr *v, uint32_t axis, uint32_t rank)
{
    const Idx *dims[TE_MAX_AXES];

    dims[0] = v->type->dims[0];
    for (uint32_t i = 1; i < rank - axis; i++)
        dims[i] = idx_const(a->b->c->arith, 1);
    return build_reshape_to(a->b, v, rank - axis, dims);
}

/* .. and back: what is left of the others is summed. */
static const Expr *onto(const Adjoint *a, const Expr *x, uint32_t axis, const Expr *v)
{
    return grad_like(a->b, x ? grad_reduce(a->b, "sum", x, ~(1u << axis)) : NULL, v);
}

void adjoint_prelu(const Adjoint *a)
{
    const Expr *x = a->x[0], *dy = a->dy[0], *over = build_by(a->b, "greater", x, 0);
    uint32_t    axis = axis_of(ATTRS(BiasAddAttrs, a->call)->axis, x->type->n);
    const Expr *slope = along(a, a->x[1], axis, x->type->n);

    a->dx[0] = build_where(a->b, over, dy, build_mul(a->b, dy, slope));
    a->dx[1] = onto(a, build_where(a->b, over, build_scalar(a->b, x, 0), build_mul(a->b, dy, x)),
                    axis, a->x[1]);
}

void adjoint_bias_add(const Adjoint *a)
{
    a->dx[0] = a->dy[0];
    a->dx[1] =
        onto(a, a->dy[0], axis_of(ATTRS(BiasAddAttrs, a->call)->axis, a->dy[0]->type->n), a->x[1]);
}
