/* One operand, element by element.                                  %1 = sqrt(%0);
 *
 * Transcendental functions take floats only; rounding leaves integers as they are. */
#include "ops/common.h"

#include <math.h>

/* ---- type relations
 * ------------------------------------------------------------------------------ */

const Type *rel_same(Ctx *c, Loc loc, const void *attrs, const Type *const *in, uint32_t nin)
{
    (void)attrs;
    return rel_tensors(c, loc, in, nin) ? in[0] : NULL;
}

const Type *rel_arithmetic(Ctx *c, Loc loc, const void *attrs, const Type *const *in, uint32_t nin)
{
    (void)attrs;
    return rel_tensors(c, loc, in, nin) && rel_number(c, loc, in[0]) ? in[0] : NULL;
}

const Type *rel_float(Ctx *c, Loc loc, const void *attrs, const Type *const *in, uint32_t nin)
{
    (void)attrs;
    if (!rel_tensors(c, loc, in, nin))
        return NULL;
    if (!dtype_is_float(in[0]->dtype))
        return error_at(c, E_TYPE, loc, "the operand must be floats, not %s",
                        dtype_text(c, in[0]->dtype));
    return in[0];
}

/* isnan, isinf */
const Type *rel_test(Ctx *c, Loc loc, const void *attrs, const Type *const *in, uint32_t nin)
{
    (void)attrs;
    return rel_tensors(c, loc, in, nin) ? type_tensor(c, DT_BOOL, in[0]->n, in[0]->dims) : NULL;
}

const Type *rel_cast(Ctx *c, Loc loc, const void *attrs, const Type *const *in, uint32_t nin)
{
    const CastAttrs *a = attrs;

    return rel_tensors(c, loc, in, nin) ? type_tensor(c, a->dtype, in[0]->n, in[0]->dims) : NULL;
}

const Type *rel_bitcast(Ctx *c, Loc loc, const void *attrs, const Type *const *in, uint32_t nin)
{
    const BitcastAttrs *a = attrs;

    if (!rel_tensors(c, loc, in, nin))
        return NULL;
    if (dtype_stored(a->dtype) || dtype_stored(in[0]->dtype))
        return error_at(c, E_TYPE, loc, "a bitcast of %s to %s", dtype_text(c, in[0]->dtype),
                        dtype_text(c, a->dtype));
    if (a->dtype.bits != in[0]->dtype.bits)
        return error_at(c, E_TYPE, loc, "%s has not as many bits as %s", dtype_text(c, a->dtype),
                        dtype_text(c, in[0]->dtype));
    return type_tensor(c, a->dtype, in[0]->n, in[0]->dims);
}

/* ---- compute
 * ------------------------------------------------------------------------------------- */

typedef const Prim *UnaryFn(Ctx *c, const Prim *x);

static bool unary(Ctx *c, const OpCall *call, const Tensor *const *in, const Tensor **out,
                  UnaryFn *fn)
{
    Axes a = te_axes_of(c, call->out[0]);

    return te_out(c, call, &a, fn(c, te_in(c, in[0], &a)), out);
}

static bool math(Ctx *c, const OpCall *call, const Tensor *const *in, const Tensor **out, MathFn fn)
{
    Axes a = te_axes_of(c, call->out[0]);

    return te_out(c, call, &a, prim_math(c, fn, te_in(c, in[0], &a), NULL), out);
}

/* A rounding function: nothing to do on integers. */
static bool rounding(Ctx *c, const OpCall *call, const Tensor *const *in, const Tensor **out,
                     MathFn fn)
{
    Axes        a = te_axes_of(c, call->out[0]);
    const Prim *x = te_in(c, in[0], &a);

    return te_out(c, call, &a, dtype_is_float(x->dtype) ? prim_math(c, fn, x, NULL) : x, out);
}

static const Prim *rsqrt(Ctx *c, const Prim *x)
{
    return prim_div(c, prim_float(c, x->dtype, 1), prim_math(c, MATH_SQRT, x, NULL));
}

/* NaN and zeros are their own sign. */
static const Prim *sign(Ctx *c, const Prim *x)
{
    const Prim *zero = prim_num(c, x->dtype, 0), *one = prim_num(c, x->dtype, 1);

    if (x->dtype.code == DT_UINT)
        return prim_select(c, prim_lt(c, zero, x), one, zero);
    return prim_select(c, prim_lt(c, zero, x), one,
                       prim_select(c, prim_lt(c, x, zero), prim_num(c, x->dtype, -1), x));
}

static const Prim *is_inf(Ctx *c, const Prim *x)
{
    if (!dtype_is_float(x->dtype))
        return prim_int(c, DT_BOOL, 0);
    return prim_eq(c, te_magnitude(c, x), prim_float(c, x->dtype, INFINITY));
}

bool te_copy(Ctx *c, const OpCall *call, const Tensor *const *in, const Tensor **out)
{
    Axes a = te_axes_of(c, call->out[0]);

    return te_out(c, call, &a, te_in(c, in[0], &a), out);
}

bool te_negative(Ctx *c, const OpCall *call, const Tensor *const *in, const Tensor **out)
{
    return unary(c, call, in, out, prim_neg);
}

bool te_abs(Ctx *c, const OpCall *call, const Tensor *const *in, const Tensor **out)
{
    return unary(c, call, in, out, te_magnitude);
}

bool te_sign(Ctx *c, const OpCall *call, const Tensor *const *in, const Tensor **out)
{
    return unary(c, call, in, out, sign);
}

bool te_sqrt(Ctx *c, const OpCall *call, const Tensor *const *in, const Tensor **out)
{
    return math(c, call, in, out, MATH_SQRT);
}

bool te_rsqrt(Ctx *c, const OpCall *call, const Tensor *const *in, const Tensor **out)
{
    return unary(c, call, in, out, rsqrt);
}

bool te_exp(Ctx *c, const OpCall *call, const Tensor *const *in, const Tensor **out)
{
    return math(c, call, in, out, MATH_EXP);
}

bool te_log(Ctx *c, const OpCall *call, const Tensor *const *in, const Tensor **out)
{
    return math(c, call, in, out, MATH_LOG);
}

bool te_tanh(Ctx *c, const OpCall *call, const Tensor *const *in, const Tensor **out)
{
    return math(c, call, in, out, MATH_TANH);
}

bool te_erf(Ctx *c, const OpCall *call, const Tensor *const *in, const Tensor **out)
{
    return math(c, call, in, out, MATH_ERF);
}

bool te_sigmoid(Ctx *c, const OpCall *call, const Tensor *const *in, const Tensor **out)
{
    return math(c, call, in, out, MATH_SIGMOID);
}

bool te_sin(Ctx *c, const OpCall *call, const Tensor *const *in, const Tensor **out)
{
    return math(c, call, in, out, MATH_SIN);
}

bool te_cos(Ctx *c, const OpCall *call, const Tensor *const *in, const Tensor **out)
{
    return math(c, call, in, out, MATH_COS);
}

bool te_tan(Ctx *c, const OpCall *call, const Tensor *const *in, const Tensor **out)
{
    return math(c, call, in, out, MATH_TAN);
}

bool te_asin(Ctx *c, const OpCall *call, const Tensor *const *in, const Tensor **out)
{
    return math(c, call, in, out, MATH_ASIN);
}

bool te_acos(Ctx *c, const OpCall *call, const Tensor *const *in, const Tensor **out)
{
    return math(c, call, in, out, MATH_ACOS);
}

bool te_atan(Ctx *c, const OpCall *call, const Tensor *const *in, const Tensor **out)
{
    return math(c, call, in, out, MATH_ATAN);
}

bool te_sinh(Ctx *c, const OpCall *call, const Tensor *const *in, const Tensor **out)
{
    return math(c, call, in, out, MATH_SINH);
}

bool te_cosh(Ctx *c, const OpCall *call, const Tensor *const *in, const Tensor **out)
{
    return math(c, call, in, out, MATH_COSH);
}

bool te_asinh(Ctx *c, const OpCall *call, const Tensor *const *in, const Tensor **out)
{
    return math(c, call, in, out, MATH_ASINH);
}

bool te_acosh(Ctx *c, const OpCall *call, const Tensor *const *in, const Tensor **out)
{
    return math(c, call, in, out, MATH_ACOSH);
}

bool te_atanh(Ctx *c, const OpCall *call, const Tensor *const *in, const Tensor **out)
{
    return math(c, call, in, out, MATH_ATANH);
}

bool te_floor(Ctx *c, const OpCall *call, const Tensor *const *in, const Tensor **out)
{
    return rounding(c, call, in, out, MATH_FLOOR);
}

bool te_ceil(Ctx *c, const OpCall *call, const Tensor *const *in, const Tensor **out)
{
    return rounding(c, call, in, out, MATH_CEIL);
}

bool te_round(Ctx *c, const OpCall *call, const Tensor *const *in, const Tensor **out)
{
    return rounding(c, call, in, out, MATH_ROUND);
}

bool te_trunc(Ctx *c, const OpCall *call, const Tensor *const *in, const Tensor **out)
{
    return rounding(c, call, in, out, MATH_TRUNC);
}

bool te_logical_not(Ctx *c, const OpCall *call, const Tensor *const *in, const Tensor **out)
{
    return unary(c, call, in, out, prim_not);
}

bool te_bitwise_not(Ctx *c, const OpCall *call, const Tensor *const *in, const Tensor **out)
{
    return unary(c, call, in, out, prim_not);
}

bool te_isnan(Ctx *c, const OpCall *call, const Tensor *const *in, const Tensor **out)
{
    return unary(c, call, in, out, te_is_nan);
}

bool te_isinf(Ctx *c, const OpCall *call, const Tensor *const *in, const Tensor **out)
{
    return unary(c, call, in, out, is_inf);
}

bool te_cast(Ctx *c, const OpCall *call, const Tensor *const *in, const Tensor **out)
{
    Axes a = te_axes_of(c, call->out[0]);

    return te_out(c, call, &a, prim_cast(c, call->out[0]->dtype, te_in(c, in[0], &a)), out);
}

/* A bool is a byte 0 or 1 in memory only. */
bool te_bitcast(Ctx *c, const OpCall *call, const Tensor *const *in, const Tensor **out)
{
    Axes        a = te_axes_of(c, call->out[0]);
    DType       t = call->out[0]->dtype;
    const Prim *x = te_in(c, in[0], &a);

    if (dtype_is_bool(x->dtype))
        x = prim_cast(c, DT_U8, x);
    return te_out(c, call, &a, dtype_is_bool(t) ? prim_cast(c, t, x) : prim_bits(c, t, x), out);
}

/* A bound as a number of the element type; bounds outside its range do nothing. */
static const Prim *bound(Ctx *c, DType t, double v, bool low)
{
    if (isnan(v) || (dtype_is_float(t) && isinf(v) && (v < 0) == low))
        return NULL;
    if (dtype_is_float(t))
        return prim_float(c, t, v);
    if (low ? v <= dtype_min(t) : v >= dtype_max(t))
        return NULL;
    v = low ? ceil(v) : floor(v);
    return prim_num(c, t, fmin(fmax(v, dtype_min(t)), dtype_max(t)));
}

bool te_clip(Ctx *c, const OpCall *call, const Tensor *const *in, const Tensor **out)
{
    const ClipAttrs *attrs = call->attrs;
    Axes             a = te_axes_of(c, call->out[0]);
    const Prim      *x = te_in(c, in[0], &a);
    const Prim      *lo = bound(c, x->dtype, attrs->a_min, true);
    const Prim      *hi = bound(c, x->dtype, attrs->a_max, false);

    if (lo)
        x = te_at_least(c, x, lo);
    if (hi)
        x = te_at_most(c, x, hi);
    return te_out(c, call, &a, x, out);
}
