/* Quantization: qnn.quantize, qnn.dequantize, qnn.requantize.
 *
 *     %q = qnn.quantize(%x, %scale, %zero, out_dtype=i8);   // saturate(round(x / scale) + zero)
 *     %x = qnn.dequantize(%q, %scale, %zero);               // (q - zero) * scale
 *
 * Scale and zero point are scalars, or vectors along `axis`.  Rounding is half to even.
 * qnn.requantize is a dequantize and a quantize in one, bit for bit.
 *
 * On blocked data (layout "NCHW8c") a vector's channel is 8 times dimension 1 plus dimension 4;
 * surplus lanes have a scale of 0, so that they give the zero point. */
#include "ops/common.h"

/* A scale or zero point: one number, or one for each channel. */
static bool rel_param(Ctx *c, Loc loc, const Type *data, const Type *p, ChannelAxis l)
{
    int64_t n;

    return (type_elems(p, &n) && n == 1 && p->n <= 1) ||
           rel_channels(c, loc, data, p, l, "scales and zero points");
}

static bool rel_params(Ctx *c, Loc loc, const Type *const *in, uint32_t nin, ChannelAxis l)
{
    if (!rel_tensors(c, loc, in, nin))
        return false;
    for (uint32_t i = 1; i < nin; i++)
        if (!rel_param(c, loc, in[0], in[i], l))
            return false;
    for (uint32_t i = 1; i < nin; i += 2) {
        if (!dtype_is_float(in[i]->dtype))
            return error_at(c, E_TYPE, loc, "a scale of type %s", dtype_text(c, in[i]->dtype));
        if (!rel_int_dtype(c, loc, in[i + 1], "zero points"))
            return false;
    }
    return true;
}

static bool rel_out_int(Ctx *c, Loc loc, DType t)
{
    if (dtype_is_int(t) && t.bits <= 32 && !dtype_stored(t))
        return true;
    return error_at(c, E_TYPE, loc, "quantization to %s", dtype_text(c, t));
}

const Type *rel_quantize(Ctx *c, Loc loc, const void *attrs, const Type *const *in, uint32_t nin)
{
    const QuantizeAttrs *a = attrs;

    if (!rel_params(c, loc, in, nin, CHANNEL_AXIS(a)) || !rel_out_int(c, loc, a->out_dtype))
        return NULL;
    if (!dtype_is_float(in[0]->dtype))
        return error_at(c, E_TYPE, loc, "quantization of %s", dtype_text(c, in[0]->dtype));
    return rel_tensor(c, loc, a->out_dtype, in[0]->n, in[0]->dims);
}

const Type *rel_dequantize(Ctx *c, Loc loc, const void *attrs, const Type *const *in, uint32_t nin)
{
    const DequantizeAttrs *a = attrs;

    if (!rel_params(c, loc, in, nin, CHANNEL_AXIS(a)) || !rel_int_dtype(c, loc, in[0], "data"))
        return NULL;
    if (!dtype_is_float(a->out_dtype))
        return error_at(c, E_TYPE, loc, "dequantization to %s", dtype_text(c, a->out_dtype));
    return rel_tensor(c, loc, a->out_dtype, in[0]->n, in[0]->dims);
}

const Type *rel_requantize(Ctx *c, Loc loc, const void *attrs, const Type *const *in, uint32_t nin)
{
    const RequantizeAttrs *a = attrs;

    if (!rel_params(c, loc, in, nin, CHANNEL_AXIS(a)) || !rel_int_dtype(c, loc, in[0], "data") ||
        !rel_out_int(c, loc, a->out_dtype))
        return NULL;
    return rel_tensor(c, loc, a->out_dtype, in[0]->n, in[0]->dims);
}

/* ---- compute ------------------------------------------------------------------------------------- */

/* A parameter for the cell `a`, as type t; 0 for surplus lanes. */
static const Prim *param(Ctx *c, const Tensor *p, const Axes *a, ChannelAxis l, DType t)
{
    const Idx *first = idx_const(c->arith, 0);
    int64_t    n;

    if (!p->buffer->ndim || (idx_is_const(p->buffer->extent[0], &n) && n == 1))
        return prim_cast(c, t, te_at(c, p, &first));
    return te_of_channel(c, p, a, l, t);
}

/* Differences of 8- and 16-bit numbers fit i32; i32 and i64 data come with a zero point of 0, as a
 * rule. */
static const Prim *dequantized(Ctx *c, const Prim *q, const Prim *scale, const Prim *zero)
{
    DType       t = q->dtype.bits > 32 ? DT_I64 : DT_I32;
    const Prim *d = prim_sub(c, prim_cast(c, t, q), prim_cast(c, t, zero));

    return prim_mul(c, prim_cast(c, scale->dtype, d), scale);
}

/* Rounded half to even by a sum: at 2^23 + 2^22 the step of f32 is 1, so that the sum's last bits
 * are the integer, for numbers of up to 22 bits.  Two additions on any target, where a rounding and
 * a conversion that saturates are many more. */
static const Prim *rounded(Ctx *c, const Prim *x, DType t)
{
    const float offset = 12582912.0f; /* 0x4b400000 */

    if (!dtype_eq(x->dtype, DT_F32) || t.bits > 16)
        return prim_cast(c, DT_I32, prim_math(c, MATH_ROUND, x, NULL));
    x = prim_bits(c, DT_I32, prim_add(c, x, prim_float(c, DT_F32, offset)));
    return prim_sub(c, x, prim_int(c, DT_I32, 0x4b400000));
}

/* Clamped before it is rounded, which is the same, as the bounds are whole: what is rounded is then
 * small enough for an integer, and the zero point is added there.  NaN gives the lower bound. */
static const Prim *quantized(Ctx *c, const Prim *x, const Prim *scale, const Prim *zero, DType t)
{
    const Prim *z = prim_cast(c, x->dtype, zero);
    const Prim *lo = prim_sub(c, prim_float(c, x->dtype, dtype_min(t)), z);
    const Prim *hi = prim_sub(c, prim_float(c, x->dtype, dtype_max(t)), z);

    x = prim_bin(c, PRIM_MAXNUM, lo, prim_div(c, x, scale));
    x = prim_bin(c, PRIM_MINNUM, hi, x);
    return prim_cast(c, t, prim_add(c, rounded(c, x, t), zero));
}

bool te_quantize(Ctx *c, const OpCall *call, const Tensor *const *in, const Tensor **out)
{
    const QuantizeAttrs *attrs = call->attrs;
    Axes                 a = te_axes_of(c, call->out[0]);
    const Prim          *x = te_in(c, in[0], &a);
    const Prim          *scale = param(c, in[1], &a, CHANNEL_AXIS(attrs), x->dtype);
    const Prim          *zero = param(c, in[2], &a, CHANNEL_AXIS(attrs), DT_I32);

    return te_out(c, call, &a, quantized(c, x, scale, zero, attrs->out_dtype), out);
}

bool te_dequantize(Ctx *c, const OpCall *call, const Tensor *const *in, const Tensor **out)
{
    const DequantizeAttrs *attrs = call->attrs;
    Axes                   a = te_axes_of(c, call->out[0]);
    const Prim            *scale = param(c, in[1], &a, CHANNEL_AXIS(attrs), attrs->out_dtype);
    const Prim            *zero = param(c, in[2], &a, CHANNEL_AXIS(attrs), DT_I32);

    return te_out(c, call, &a, dequantized(c, te_in(c, in[0], &a), scale, zero), out);
}

bool te_requantize(Ctx *c, const OpCall *call, const Tensor *const *in, const Tensor **out)
{
    const RequantizeAttrs *attrs = call->attrs;
    Axes                   a = te_axes_of(c, call->out[0]);
    const Prim            *p[5];

    for (uint32_t i = 1; i < 5; i++)
        p[i] = param(c, in[i], &a, CHANNEL_AXIS(attrs), i % 2 ? DT_F32 : DT_I32);
    const Prim *x = dequantized(c, te_in(c, in[0], &a), p[1], p[2]);

    return te_out(c, call, &a, quantized(c, x, p[3], p[4], attrs->out_dtype), out);
}

/* ---- blocked layout ------------------------------------------------------------------------------ */

static bool is_vector(const Expr *p)
{
    int64_t n;

    return !type_elems(p->type, &n) || n != 1;
}

/* Scales that are divided by cannot be 0 in surplus lanes. */
static bool divides_lanes(const Expr *e, uint32_t block)
{
    uint32_t by = call_is(e, "qnn.quantize") ? 1 : call_is(e, "qnn.requantize") ? 3 : 0;
    int64_t  n;

    return by && is_vector(call_arg(e, by)) && !(type_dim(e->type, 1, &n) && n % block == 0);
}

const Expr *block_quantized(Ctx *c, const Expr *e, const Expr *const *args, uint32_t block)
{
    const char *layout = intern_printf(c->strings, "NCHW%uc", block);
    void       *attrs;
    bool        along = true; /* vectors are those of the channel */

    if (args[0]->type->n != 5 || divides_lanes(e, block))
        return NULL;
    if (call_is(e, "qnn.quantize")) {
        QuantizeAttrs *a = attrs = DUP_ARRAY(c->arena, ATTRS(QuantizeAttrs, e), 1);

        along = axis_of(a->axis, 4) == 1;
        a->layout = layout;
    } else if (call_is(e, "qnn.dequantize")) {
        DequantizeAttrs *a = attrs = DUP_ARRAY(c->arena, ATTRS(DequantizeAttrs, e), 1);

        along = axis_of(a->axis, 4) == 1;
        a->layout = layout;
    } else {
        RequantizeAttrs *a = attrs = DUP_ARRAY(c->arena, ATTRS(RequantizeAttrs, e), 1);

        along = axis_of(a->axis, 4) == 1;
        a->layout = layout;
    }
    for (uint32_t i = 1; i < call_nargs(e); i++)
        if (args[i]->type->n > 1 || (is_vector(args[i]) && !along))
            return NULL;
    return block_cleared(c, e, expr_call(c, call_op(e), call_nargs(e), args, attrs, e->loc), block);
}
