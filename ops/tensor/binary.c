/* Two operands, element by element, with numpy's broadcasting.      %2 = add(%0, %1);
 *
 * Operands have one element type; comparisons give bool.  Integers: division by zero gives 0,
 * floor_divide and floor_mod round down, mod follows the sign of the dividend as C does. */
#include "ops/common.h"

/* ---- type relations
 * ------------------------------------------------------------------------------ */

static const Type *broadcast(Ctx *c, Loc loc, const Type *const *in, DType t)
{
    const Idx *dims[TE_MAX_AXES];
    uint32_t   n;

    if (!rel_bcast_dims(c, loc, in[0], in[1], &n, dims))
        return NULL;
    return rel_tensor(c, loc, t, n, dims);
}

const Type *rel_broadcast(Ctx *c, Loc loc, const void *attrs, const Type *const *in, uint32_t nin)
{
    (void)attrs;
    if (!rel_tensors(c, loc, in, nin) || !rel_same_dtype(c, loc, in[0], in[1]) ||
        !rel_number(c, loc, in[0]))
        return NULL;
    return broadcast(c, loc, in, in[0]->dtype);
}

/* Also of one operand. */
const Type *rel_bitwise(Ctx *c, Loc loc, const void *attrs, const Type *const *in, uint32_t nin)
{
    (void)attrs;
    if (!rel_tensors(c, loc, in, nin) || !rel_int_dtype(c, loc, in[0], "operands"))
        return NULL;
    if (nin == 1)
        return in[0];
    return rel_same_dtype(c, loc, in[0], in[1]) ? broadcast(c, loc, in, in[0]->dtype) : NULL;
}

const Type *rel_compare(Ctx *c, Loc loc, const void *attrs, const Type *const *in, uint32_t nin)
{
    (void)attrs;
    if (!rel_tensors(c, loc, in, nin) || !rel_same_dtype(c, loc, in[0], in[1]))
        return NULL;
    return broadcast(c, loc, in, DT_BOOL);
}

const Type *rel_logical(Ctx *c, Loc loc, const void *attrs, const Type *const *in, uint32_t nin)
{
    (void)attrs;
    if (!rel_tensors(c, loc, in, nin))
        return NULL;
    for (uint32_t i = 0; i < nin; i++)
        if (!dtype_is_bool(in[i]->dtype))
            return error_at(c, E_TYPE, loc, "operand %u must be bool, not %s", i,
                            dtype_text(c, in[i]->dtype));
    return nin == 1 ? in[0] : broadcast(c, loc, in, DT_BOOL);
}

const Type *rel_where(Ctx *c, Loc loc, const void *attrs, const Type *const *in, uint32_t nin)
{
    const Type *arms[2];

    (void)attrs;
    if (!rel_tensors(c, loc, in, nin) || !rel_same_dtype(c, loc, in[1], in[2]))
        return NULL;
    if (!dtype_is_bool(in[0]->dtype))
        return error_at(c, E_TYPE, loc, "the condition must be bool, not %s",
                        dtype_text(c, in[0]->dtype));
    arms[0] = broadcast(c, loc, in + 1, in[1]->dtype);
    arms[1] = in[0];
    return arms[0] ? broadcast(c, loc, arms, in[1]->dtype) : NULL;
}

/* ---- compute
 * ------------------------------------------------------------------------------------- */

typedef const Prim *BinaryFn(Ctx *c, const Prim *a, const Prim *b);

static bool binary(Ctx *c, const OpCall *call, const Tensor *const *in, const Tensor **out,
                   BinaryFn *fn)
{
    Axes a = te_axes_of(c, call->out[0]);

    return te_out(c, call, &a, fn(c, te_in(c, in[0], &a), te_in(c, in[1], &a)), out);
}

static bool is_float(const Prim *p)
{
    return dtype_is_float(p->dtype);
}

static const Prim *zero(Ctx *c, const Prim *like)
{
    return prim_num(c, like->dtype, 0);
}

/* Remainder r of a division that truncates: does rounding down give one less? */
static const Prim *rounds_down(Ctx *c, const Prim *r, const Prim *b)
{
    const Prim *signs = prim_bin(c, PRIM_NE, prim_lt(c, r, zero(c, r)), prim_lt(c, b, zero(c, b)));

    return prim_and(c, prim_bin(c, PRIM_NE, r, zero(c, r)), signs);
}

static const Prim *mod(Ctx *c, const Prim *a, const Prim *b)
{
    return is_float(a) ? prim_math(c, MATH_FMOD, a, b) : prim_bin(c, PRIM_REM, a, b);
}

static const Prim *floor_mod_of(Ctx *c, const Prim *a, const Prim *b)
{
    const Prim *r = mod(c, a, b);

    return a->dtype.code == DT_UINT ? r
                                    : prim_select(c, rounds_down(c, r, b), prim_add(c, r, b), r);
}

static const Prim *floor_divide(Ctx *c, const Prim *a, const Prim *b)
{
    const Prim *q = prim_div(c, a, b);

    if (is_float(a))
        return prim_math(c, MATH_FLOOR, q, NULL);
    if (a->dtype.code == DT_UINT)
        return q;
    const Prim *r = prim_bin(c, PRIM_REM, a, b);
    const Prim *down = prim_and(c, rounds_down(c, r, b), prim_bin(c, PRIM_NE, b, zero(c, b)));

    return prim_select(c, down, prim_sub(c, q, prim_int(c, a->dtype, 1)), q);
}

static const Prim *power(Ctx *c, const Prim *a, const Prim *b)
{
    if (is_float(a))
        return prim_math(c, MATH_POW, a, b);
    return prim_cast(c, a->dtype,
                     prim_math(c, MATH_POW, prim_cast(c, DT_F64, a), prim_cast(c, DT_F64, b)));
}

static const Prim *shl(Ctx *c, const Prim *a, const Prim *b)
{
    return prim_bin(c, PRIM_SHL, a, b);
}

static const Prim *shr(Ctx *c, const Prim *a, const Prim *b)
{
    return prim_bin(c, PRIM_SHR, a, b);
}

static const Prim * xor
    (Ctx * c, const Prim *a, const Prim *b) { return prim_bin(c, PRIM_XOR, a, b); }

    static const Prim *ne(Ctx *c, const Prim *a, const Prim *b)
{
    return prim_bin(c, PRIM_NE, a, b);
}

static const Prim *gt(Ctx *c, const Prim *a, const Prim *b)
{
    return prim_lt(c, b, a);
}

static const Prim *ge(Ctx *c, const Prim *a, const Prim *b)
{
    return prim_le(c, b, a);
}

bool te_add(Ctx *c, const OpCall *call, const Tensor *const *in, const Tensor **out)
{
    return binary(c, call, in, out, prim_add);
}

bool te_subtract(Ctx *c, const OpCall *call, const Tensor *const *in, const Tensor **out)
{
    return binary(c, call, in, out, prim_sub);
}

bool te_multiply(Ctx *c, const OpCall *call, const Tensor *const *in, const Tensor **out)
{
    return binary(c, call, in, out, prim_mul);
}

bool te_divide(Ctx *c, const OpCall *call, const Tensor *const *in, const Tensor **out)
{
    return binary(c, call, in, out, prim_div);
}

/* A square is common and exact; pow is a call of libm. */
bool te_power(Ctx *c, const OpCall *call, const Tensor *const *in, const Tensor **out)
{
    Axes        a = te_axes_of(c, call->out[0]);
    const Prim *x = te_in(c, in[0], &a);
    double      k;

    if (te_known(in[1], &k) && k == 2)
        return te_out(c, call, &a, prim_mul(c, x, x), out);
    return te_out(c, call, &a, power(c, x, te_in(c, in[1], &a)), out);
}

bool te_mod(Ctx *c, const OpCall *call, const Tensor *const *in, const Tensor **out)
{
    return binary(c, call, in, out, mod);
}

bool te_floor_mod(Ctx *c, const OpCall *call, const Tensor *const *in, const Tensor **out)
{
    return binary(c, call, in, out, floor_mod_of);
}

bool te_floor_divide(Ctx *c, const OpCall *call, const Tensor *const *in, const Tensor **out)
{
    return binary(c, call, in, out, floor_divide);
}

/* Against a number that is known, one instruction does; two unknowns need care for NaN. */
static bool extremum(Ctx *c, const OpCall *call, const Tensor *const *in, const Tensor **out,
                     BinaryFn *known, BinaryFn *any)
{
    Axes        a = te_axes_of(c, call->out[0]);
    const Prim *x = te_in(c, in[0], &a), *y = te_in(c, in[1], &a);
    double      k;

    if (te_known(in[1], &k) && k == k)
        return te_out(c, call, &a, known(c, x, y), out);
    if (te_known(in[0], &k) && k == k)
        return te_out(c, call, &a, known(c, y, x), out);
    return te_out(c, call, &a, any(c, x, y), out);
}

bool te_maximum(Ctx *c, const OpCall *call, const Tensor *const *in, const Tensor **out)
{
    return extremum(c, call, in, out, te_at_least, prim_max);
}

bool te_minimum(Ctx *c, const OpCall *call, const Tensor *const *in, const Tensor **out)
{
    return extremum(c, call, in, out, te_at_most, prim_min);
}

bool te_left_shift(Ctx *c, const OpCall *call, const Tensor *const *in, const Tensor **out)
{
    return binary(c, call, in, out, shl);
}

bool te_right_shift(Ctx *c, const OpCall *call, const Tensor *const *in, const Tensor **out)
{
    return binary(c, call, in, out, shr);
}

bool te_bitwise_and(Ctx *c, const OpCall *call, const Tensor *const *in, const Tensor **out)
{
    return binary(c, call, in, out, prim_and);
}

bool te_bitwise_or(Ctx *c, const OpCall *call, const Tensor *const *in, const Tensor **out)
{
    return binary(c, call, in, out, prim_or);
}

bool te_bitwise_xor(Ctx *c, const OpCall *call, const Tensor *const *in, const Tensor **out)
{
    return binary(c, call, in, out, xor);
}

bool te_logical_and(Ctx *c, const OpCall *call, const Tensor *const *in, const Tensor **out)
{
    return binary(c, call, in, out, prim_and);
}

bool te_logical_or(Ctx *c, const OpCall *call, const Tensor *const *in, const Tensor **out)
{
    return binary(c, call, in, out, prim_or);
}

bool te_logical_xor(Ctx *c, const OpCall *call, const Tensor *const *in, const Tensor **out)
{
    return binary(c, call, in, out, ne);
}

bool te_equal(Ctx *c, const OpCall *call, const Tensor *const *in, const Tensor **out)
{
    return binary(c, call, in, out, prim_eq);
}

bool te_not_equal(Ctx *c, const OpCall *call, const Tensor *const *in, const Tensor **out)
{
    return binary(c, call, in, out, ne);
}

bool te_less(Ctx *c, const OpCall *call, const Tensor *const *in, const Tensor **out)
{
    return binary(c, call, in, out, prim_lt);
}

bool te_less_equal(Ctx *c, const OpCall *call, const Tensor *const *in, const Tensor **out)
{
    return binary(c, call, in, out, prim_le);
}

bool te_greater(Ctx *c, const OpCall *call, const Tensor *const *in, const Tensor **out)
{
    return binary(c, call, in, out, gt);
}

bool te_greater_equal(Ctx *c, const OpCall *call, const Tensor *const *in, const Tensor **out)
{
    return binary(c, call, in, out, ge);
}

bool te_where(Ctx *c, const OpCall *call, const Tensor *const *in, const Tensor **out)
{
    Axes a = te_axes_of(c, call->out[0]);

    return te_out(c, call, &a,
                  prim_select(c, te_in(c, in[0], &a), te_in(c, in[1], &a), te_in(c, in[2], &a)),
                  out);
}
