/* keep_floats: what a kernel quantizes and dequantizes again stays in floats.
 *
 *   %1 = qnn.requantize(%0, %s, 0, 1, zy, out_dtype=u8);  qnn.dequantize(%1, sy, zy)
 *     -> multiply(round(clip(qnn.dequantize(%0, %s, 0), 0 - zy, 255 - zy)), sy)
 *
 * A residual block rounds the result of its convolution to 8 bits before it is added, and the model
 * means that.  Behind fuse_ops both calls stand in one kernel, where the integer itself serves
 * nobody: its steps are as good as a float, without the way to a byte and back.  The bits are the
 * same.  A value that something else reads too stays as it is.
 *
 *   cast(cast(%0, f16, stored=true), f32)     %0
 *
 * With mixed precision values are 16 bits wide between kernels, and within one they are not.
 * Cost: one rewrite. */
#include "passes/graph/quantized.h"

static bool known(const Expr *k, double *v)
{
    return k->kind == EXPR_CONST && expr_const_f(k, v);
}

/* The steps of q before they are bounded and rounded, as floats; NULL: it is something else. */
static const Expr *steps_of(Ctx *c, const Expr *q, double *zero)
{
    double out;

    if (call_is(q, "qnn.quantize")) {
        if (!known(call_arg(q, 1), &out) || !known(call_arg(q, 2), zero) ||
            !dtype_eq(call_arg(q, 0)->type->dtype, DT_F32))
            return NULL;
        return out == 1 ? call_arg(q, 0)
                        : make2(c, "divide", call_arg(q, 0), call_arg(q, 1), NULL, q->loc);
    }
    if (!call_is(q, "qnn.requantize") || !known(call_arg(q, 3), &out) || out != 1 ||
        !known(call_arg(q, 4), zero))
        return NULL;
    DequantizeAttrs *a = ATTRS_NEW(c, DequantizeAttrs);

    a->axis = ATTRS_OF(RequantizeAttrs, q)->axis;
    a->layout = ATTRS_OF(RequantizeAttrs, q)->layout;
    return expr_call_name(c, "qnn.dequantize", 3, q->kids + 1, a, q->loc);
}

/* What a cast of 16 bits back to f32 was before: they only were how it lies in memory. */
static const Expr *unrounded(const Expr *e)
{
    const Expr *half = call_is(e, "cast") ? call_arg(e, 0) : NULL;

    return half && call_is(half, "cast") && ATTRS_OF(CastAttrs, half)->stored &&
                   dtype_eq(e->type->dtype, call_arg(half, 0)->type->dtype)
               ? call_arg(half, 0)
               : NULL;
}

static const Expr *keep(Ctx *c, void *user, const Expr *was, const Expr *now)
{
    const Map  *uses = user;
    const Expr *x = unrounded(now);
    double      scale, zero, own;
    ClipAttrs  *a;

    if (x)
        return x;
    if (!call_is(now, "qnn.dequantize") || !expr_has_shape(now) ||
        !dtype_eq(now->type->dtype, DT_F32) || uses_of(uses, call_arg(was, 0)) != 1 ||
        !is_8bit(call_arg(now, 0)->type->dtype) || !known(call_arg(now, 1), &scale) ||
        !known(call_arg(now, 2), &own) || !(x = steps_of(c, call_arg(now, 0), &zero)) ||
        zero != own)
        return now;
    a = ATTRS_NEW(c, ClipAttrs);
    a->a_min = dtype_min(call_arg(now, 0)->type->dtype) - zero;
    a->a_max = dtype_max(call_arg(now, 0)->type->dtype) - zero;
    x = make1(c, "round", make1(c, "clip", x, a, now->loc), NULL, now->loc);
    return make2(c, "multiply", x, expr_scalar(c, DT_F32, scale), NULL, now->loc);
}

const Module *keep_floats(Ctx *c, const Module *m)
{
    return module_rewrite(c, m, keep, count_uses(c, m));
}
