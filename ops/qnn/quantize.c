/* Quantization: qnn.quantize, qnn.dequantize, qnn.requantize.
 *
 *     %q = qnn.quantize(%x, %scale, %zero, out_dtype=i8);        // saturate(round(x / scale) +
 * zero) %x = qnn.dequantize(%q, %scale, %zero);                    // (q - zero) * scale
 *
 * Scale and zero point are scalars, or vectors along `axis`.  Rounding is half to even.
 * qnn.requantize is a dequantize and a quantize in one, bit for bit. */
#include "ops/common.h"

/* A scale or zero point: one number, or one for each cell of the axis. */
static bool rel_param(Ctx *c, Loc loc, const Type *data, const Type *p, int64_t axis)
{
    int64_t  n;
    uint32_t at;

    if (type_elems(p, &n) && n == 1 && p->n <= 1)
        return true;
    return rel_rank(c, loc, p, 1, "scales and zero points") &&
           rel_axis(c, loc, axis, data->n, &at) &&
           rel_dims_equal(c, loc, data->dims[at], p->dims[0], "channels and scales");
}

static bool rel_params(Ctx *c, Loc loc, const Type *const *in, uint32_t nin, int64_t axis)
{
    if (!rel_tensors(c, loc, in, nin))
        return false;
    for (uint32_t i = 1; i < nin; i++)
        if (!rel_param(c, loc, in[0], in[i], axis))
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
    if (dtype_is_int(t) && t.bits <= 32)
        return true;
    return error_at(c, E_TYPE, loc, "quantization to %s", dtype_text(c, t));
}

const Type *rel_quantize(Ctx *c, Loc loc, const void *attrs, const Type *const *in, uint32_t nin)
{
    const QuantizeAttrs *a = attrs;

    if (!rel_params(c, loc, in, nin, a->axis) || !rel_out_int(c, loc, a->out_dtype))
        return NULL;
    if (!dtype_is_float(in[0]->dtype))
        return error_at(c, E_TYPE, loc, "quantization of %s", dtype_text(c, in[0]->dtype));
    return rel_tensor(c, loc, a->out_dtype, in[0]->n, in[0]->dims);
}

const Type *rel_dequantize(Ctx *c, Loc loc, const void *attrs, const Type *const *in, uint32_t nin)
{
    const DequantizeAttrs *a = attrs;

    if (!rel_params(c, loc, in, nin, a->axis) || !rel_int_dtype(c, loc, in[0], "data"))
        return NULL;
    if (!dtype_is_float(a->out_dtype))
        return error_at(c, E_TYPE, loc, "dequantization to %s", dtype_text(c, a->out_dtype));
    return rel_tensor(c, loc, a->out_dtype, in[0]->n, in[0]->dims);
}

const Type *rel_requantize(Ctx *c, Loc loc, const void *attrs, const Type *const *in, uint32_t nin)
{
    const RequantizeAttrs *a = attrs;

    if (!rel_params(c, loc, in, nin, a->axis) || !rel_int_dtype(c, loc, in[0], "data") ||
        !rel_out_int(c, loc, a->out_dtype))
        return NULL;
    return rel_tensor(c, loc, a->out_dtype, in[0]->n, in[0]->dims);
}

/* ---- compute ------------------------------------------------------------------------------------- */

/* A parameter for the cell `a`, as type t. */
static const Prim *param(Ctx *c, const Tensor *p, const Axes *a, int64_t axis, DType t)
{
    const Idx *at = idx_const(c->arith, 0);
    int64_t    n;

    if (p->buffer->ndim && !(idx_is_const(p->buffer->extent[0], &n) && n == 1))
        at = a->at[axis_of(axis, a->n)];
    return prim_cast(c, t, te_at(c, p, &at));
}

/* Differences of 8- and 16-bit numbers fit i32; i32 data come with a zero point of 0, as a rule. */
static const Prim *dequantized(Ctx *c, const Prim *q, const Prim *scale, const Prim *zero)
{
    const Prim *d = prim_sub(c, prim_cast(c, DT_I32, q), zero);

    return prim_mul(c, prim_cast(c, scale->dtype, d), scale);
}

static const Prim *quantized(Ctx *c, const Prim *x, const Prim *scale, const Prim *zero, DType t)
{
    const Prim *r = prim_math(c, MATH_ROUND, prim_div(c, x, scale), NULL);

    r = prim_add(c, r, prim_cast(c, x->dtype, zero));
    r = te_at_least(c, r, prim_float(c, x->dtype, dtype_min(t)));
    r = te_at_most(c, r, prim_float(c, x->dtype, dtype_max(t)));
    return prim_cast(c, t, r);
}

bool te_quantize(Ctx *c, const OpCall *call, const Tensor *const *in, const Tensor **out)
{
    const QuantizeAttrs *attrs = call->attrs;
    Axes                 a = te_axes_of(c, call->out[0]);
    const Prim          *x = te_in(c, in[0], &a);
    const Prim          *scale = param(c, in[1], &a, attrs->axis, x->dtype);
    const Prim          *zero = param(c, in[2], &a, attrs->axis, DT_I32);

    return te_out(c, call, &a, quantized(c, x, scale, zero, attrs->out_dtype), out);
}

bool te_dequantize(Ctx *c, const OpCall *call, const Tensor *const *in, const Tensor **out)
{
    const DequantizeAttrs *attrs = call->attrs;
    Axes                   a = te_axes_of(c, call->out[0]);
    const Prim            *scale = param(c, in[1], &a, attrs->axis, attrs->out_dtype);
    const Prim            *zero = param(c, in[2], &a, attrs->axis, DT_I32);

    return te_out(c, call, &a, dequantized(c, te_in(c, in[0], &a), scale, zero), out);
}

bool te_requantize(Ctx *c, const OpCall *call, const Tensor *const *in, const Tensor **out)
{
    const RequantizeAttrs *attrs = call->attrs;
    Axes                   a = te_axes_of(c, call->out[0]);
    const Prim            *p[5];

    for (uint32_t i = 1; i < 5; i++)
        p[i] = param(c, in[i], &a, attrs->axis, i % 2 ? DT_F32 : DT_I32);
    const Prim *x = dequantized(c, te_in(c, in[0], &a), p[1], p[2]);

    return te_out(c, call, &a, quantized(c, x, p[3], p[4], attrs->out_dtype), out);
}
