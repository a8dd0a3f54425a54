/* quantized_to_integer: quantized models compute in integers.
 *
 *   %2 = nn.conv2d(qnn.dequantize(%x, sx, zx), qnn.dequantize(const @w, sw, 0), ..)
 *   %3 = nn.bias_add(%2, qnn.dequantize(const @b, sx * sw, 0))
 *   qnn.quantize(nn.relu(%3), sy, zy, out_dtype=u8)
 *     -> %0 = nn.conv2d(%x, const @w, out_dtype="i32", pad_value=zx)
 *        %1 = nn.bias_add(%0, const @b')
 *        qnn.requantize(%1, sx * sw / sy, 0, 1, zy, out_dtype=u8)
 *
 * Frontends say what a quantized model means: floats between dequantize and quantize.  This pass
 * moves the two together until they meet, by local rules, kids first:
 *
 *   products (quantized_linear.c), averages: dequantize goes from the operands to the result
 *   products of integers as such (quantized_sum.c): a zero point goes behind the sum
 *   a product of data before a quantize (quantized_pair.c): as products
 *   what only moves or picks cells: reshape(dequantize(q)) = dequantize(reshape(q))
 *   concatenate: quantize goes from the result to the operands
 *   relu and clip before a quantize: a clamp of the integers, or nothing where the type's own
 *       range is as narrow
 *   quantize(dequantize(q)): q itself, or qnn.requantize
 *
 * What is left in floats (add, sigmoid, ..) stands between dequantize and quantize, which fuse_ops
 * puts into its kernel, so integers of 8 or 16 bits are what lies in memory.
 *
 * 8-bit dot products take unsigned data on x86 and signed data on Arm and AMD's CDNA: activations
 * of the other sign move by 128 with their zero point where they are made.  Inputs and outputs of
 * the model keep their type.  Runs before constants are folded, or weights would be floats already.
 *
 * GPUs that have no sums of four products multiply floats as quickly as integers: there the model
 * stays as it was, and its bytes become floats where they are read.
 *
 * Rounding: sums of products are exact; qnn.requantize multiplies once, by the quotient of the
 * scales.  Results differ from the same model in floats by a step of the output scale where a sum
 * lies within rounding of a tie.  Cost: one rewrite, and a walk over the weights. */
#include "passes/graph/quantized.h"

#include <math.h>
#include <string.h>

/* ---- quantized values ----------------------------------------------------------------------- */

bool is_8bit(DType t)
{
    return dtype_is_int(t) && t.bits == 8 && t.lanes == 1;
}

bool is_quantized_type(DType t)
{
    return dtype_is_int(t) && (t.bits == 8 || t.bits == 16) && t.lanes == 1;
}

bool quantized_of(const Expr *e, Quantized *v)
{
    if (!call_is(e, "qnn.dequantize") || !expr_has_shape(e) || !dtype_eq(e->type->dtype, DT_F32))
        return false;
    *v = (Quantized){call_arg(e, 0), call_arg(e, 1), call_arg(e, 2),
                     ATTRS_OF(DequantizeAttrs, e)->axis};
    return true;
}

static bool one_number(const Expr *k, double *v)
{
    int64_t n;

    return k->kind == EXPR_CONST && type_elems(k->type, &n) && n == 1 && expr_const_f(k, v);
}

bool quantized_tensor(const Expr *e, Quantized *v, double *scale, double *zero)
{
    return quantized_of(e, v) && is_quantized_type(v->q->type->dtype) &&
           one_number(v->scale, scale) && one_number(v->zero, zero) && isfinite(*scale) &&
           *scale > 0;
}

double const_at(const Expr *k, int64_t i)
{
    DType   t = k->u.constant->type->dtype;
    int64_t n;

    if (type_elems(k->type, &n) && n == 1)
        i = 0;
    return dtype_get_f(t, (const char *)k->u.constant->data.at + (size_t)i * dtype_bytes(t));
}

const Expr *const_value(Ctx *c, const Expr *e)
{
    if (e->kind == EXPR_CONST)
        return e;
    if (!is_constant(e) || !type_static(e->type))
        return NULL;
    e = c->eval->eval(c->eval, c, e);
    return e && e->kind == EXPR_CONST ? e : NULL;
}

const Expr *make_dequantize(Ctx *c, const Expr *q, const Expr *scale, const Expr *zero,
                            int64_t axis, Loc loc)
{
    const Expr      *args[3] = {q, scale, zero};
    DequantizeAttrs *a = ATTRS_NEW(c, DequantizeAttrs);

    a->axis = axis;
    return q ? expr_call_name(c, "qnn.dequantize", 3, args, a, loc) : NULL;
}

const Expr *make_quantize(Ctx *c, const Expr *x, double scale, double zero, DType t, Loc loc)
{
    const Expr    *args[3] = {x, expr_scalar(c, DT_F32, scale), expr_scalar(c, t, zero)};
    QuantizeAttrs *a = ATTRS_NEW(c, QuantizeAttrs);

    a->out_dtype = t;
    return x ? expr_call_name(c, "qnn.quantize", 3, args, a, loc) : NULL;
}

/* (q - zero) * scale + new zero, rounded; scale may be a vector. */
static const Expr *make_requantize(Ctx *c, const Quantized *v, const Expr *scale, double zero,
                                   DType t, Loc loc)
{
    const Expr      *args[5] = {v->q, scale, v->zero, expr_scalar(c, DT_F32, 1),
                                expr_scalar(c, t, zero)};
    RequantizeAttrs *a = ATTRS_NEW(c, RequantizeAttrs);

    a->out_dtype = t;
    a->axis = v->axis;
    return v->q ? expr_call_name(c, "qnn.requantize", 5, args, a, loc) : NULL;
}

/* ---- sign ----------------------------------------------------------------------------------- */

static bool is_unsigned(DType t)
{
    return t.code == DT_UINT;
}

DType other_sign(DType t)
{
    return is_unsigned(t) ? DT_I8 : DT_U8;
}

bool wants_other_sign(const Ctx *c, DType t)
{
    DotData dots = c->target ? c->target->dots : DOTS_UNSIGNED;

    return is_8bit(t) && dots != DOTS_EITHER && is_unsigned(t) == (dots == DOTS_SIGNED);
}

/* What `shifted` made of another one. */
static bool was_shifted(const Expr *q, const Expr **from)
{
    const Expr *bits;
    double      top;

    if (!call_is(q, "cast") || !call_is(call_arg(q, 0), "bitwise_xor") || !is_8bit(q->type->dtype))
        return false;
    bits = call_arg(q, 0);
    *from = call_arg(bits, 0);
    return dtype_eq(other_sign(bits->type->dtype), q->type->dtype) &&
           one_number(call_arg(bits, 1), &top) && fabs(top) == 128;
}

/* The same numbers, 128 up or down in the other type, whatever their zero point is: their highest
 * bit is flipped. */
static const Expr *shifted(Ctx *c, const Expr *q, Loc loc)
{
    DType       t = q->type->dtype;
    const Expr *from;
    const Expr *top = expr_scalar(c, t, is_unsigned(t) ? 128 : -128);

    if (was_shifted(q, &from))
        return from;
    return make_cast(c, make2(c, "bitwise_xor", q, top, NULL, loc), other_sign(t), loc);
}

const Expr *with_other_sign(Ctx *c, const Expr *q, double *zero, Loc loc)
{
    *zero += is_unsigned(q->type->dtype) ? -128 : 128;
    return shifted(c, q, loc);
}

/* dequantize(shifted(q)) is q with another zero point. */
static const Expr *see_through_shift(Ctx *c, const Expr *e)
{
    Quantized   v;
    double      scale, zero;
    const Expr *from;

    if (!quantized_tensor(e, &v, &scale, &zero) || !was_shifted(v.q, &from))
        return e;
    zero += is_unsigned(v.q->type->dtype) ? -128 : 128;
    return make_dequantize(c, from, v.scale, expr_scalar(c, from->type->dtype, zero), v.axis,
                           e->loc);
}

/* ---- quantize meets dequantize -------------------------------------------------------------- */

/* What a quantize gives: round(x / scale) + zero, at least lo, at most hi. */
typedef struct {
    DType  t;
    double scale, zero;
    double lo, hi;
} Steps;

static double step_of(const Steps *s, double x)
{
    double q = nearbyint((double)((float)x / (float)s->scale)) + s->zero;

    return q < s->lo ? s->lo : q > s->hi ? s->hi : q;
}

static bool quantize_steps(const Expr *e, Steps *s)
{
    double scale, zero;

    if (!call_is(e, "qnn.quantize") || !expr_has_shape(e) ||
        !dtype_eq(call_arg(e, 0)->type->dtype, DT_F32) || !is_quantized_type(e->type->dtype) ||
        !one_number(call_arg(e, 1), &scale) || !one_number(call_arg(e, 2), &zero) ||
        !isfinite(scale) || !(scale > 0))
        return false;
    *s = (Steps){e->type->dtype, scale, zero, dtype_min(e->type->dtype), dtype_max(e->type->dtype)};
    return true;
}

/* Leaves out relus and clips before a quantize; `s` gets their bounds. */
static const Expr *without_bounds(const Expr *x, Steps *s)
{
    for (;; x = call_arg(x, 0)) {
        double lo = -INFINITY, hi = INFINITY;

        if (call_is(x, "nn.relu")) {
            lo = 0;
        } else if (call_is(x, "clip")) {
            lo = ATTRS_OF(ClipAttrs, x)->a_min;
            hi = ATTRS_OF(ClipAttrs, x)->a_max;
        } else {
            return x;
        }
        double a = step_of(s, lo), b = step_of(s, hi);

        s->lo = a;
        s->hi = b;
    }
}

static const Expr *clamped(Ctx *c, const Expr *q, const Steps *s, Loc loc)
{
    ClipAttrs *a;

    if (s->lo == dtype_min(s->t) && s->hi == dtype_max(s->t))
        return q;
    a = ATTRS_NEW(c, ClipAttrs);
    a->a_min = s->lo;
    a->a_max = s->hi;
    return make1(c, "clip", q, a, loc);
}

/* quantize(dequantize(q)) with these bounds; NULL: it is something else. */
static const Expr *requantized(Ctx *c, const Expr *x, const Steps *s, Loc loc)
{
    Quantized   v;
    double      scale, zero;
    const Expr *by;

    x = integer_pair(c, x);
    if (!x || !quantized_of(x, &v))
        return NULL;
    if (dtype_eq(v.q->type->dtype, s->t) && quantized_tensor(x, &v, &scale, &zero) &&
        scale == s->scale && zero == s->zero)
        return clamped(c, v.q, s, loc);
    if (is_8bit(v.q->type->dtype) && dtype_eq(other_sign(v.q->type->dtype), s->t) &&
        quantized_tensor(x, &v, &scale, &zero) && scale == s->scale &&
        s->zero - zero == (is_unsigned(s->t) ? 128 : -128))
        return clamped(c, shifted(c, v.q, loc), s, loc);
    if (!(by = const_over(c, v.scale, s->scale)))
        return NULL;
    return clamped(c, make_requantize(c, &v, by, s->zero, s->t, loc), s, loc);
}

/* A quantize of the concatenation is one of each field. */
static const Expr *concatenated(Ctx *c, const Expr *x, const Steps *s, Loc loc)
{
    const Expr  *t = call_arg(x, 0);
    const Expr **fields;
    bool         any = false;

    if (t->kind != EXPR_TUPLE)
        return NULL;
    fields = NEW_ARRAY(c->scratch, const Expr *, t->nkids + 1);
    for (uint32_t i = 0; i < t->nkids; i++) {
        const Expr *f = t->kids[i];

        any |= call_is(f, "qnn.dequantize");
        if (!(fields[i] = requantized(c, f, s, loc)))
            fields[i] = clamped(c, make_quantize(c, f, s->scale, s->zero, s->t, loc), s, loc);
    }
    if (!any)
        return NULL;
    return make1(c, "concatenate", expr_tuple(c, t->nkids, fields, t->loc), x->u.attrs, x->loc);
}

/* A quantize of what cells were put together from; NULL: it stays behind them. */
static const Expr *quantized_before(Ctx *c, const Expr *x, const Steps *s, Loc loc)
{
    const Expr *q;

    if (call_is(x, "concatenate"))
        return concatenated(c, x, s, loc);
    if (!call_is(x, "nn.depth_to_space"))
        return requantized(c, x, s, loc);
    q = quantized_before(c, call_arg(x, 0), s, loc);
    return q ? make1(c, "nn.depth_to_space", q, x->u.attrs, x->loc) : NULL;
}

/* A quantize of x with these bounds in the type that dot products take; NULL: as it was. */
static const Expr *better_quantize(Ctx *c, const Expr *e, const Expr *x, const Steps *s, bool shift)
{
    const Expr *q, *down;

    if ((q = quantized_before(c, x, s, e->loc)))
        return q;
    x = call_arg(e, 0);
    if (call_op(x) && (down = scaled_down(c, x, s->scale)))
        return make_quantize(c, down, 1, s->zero, s->t, e->loc);
    return shift ? make_quantize(c, x, s->scale, s->zero, s->t, e->loc) : NULL;
}

static const Expr *integer_quantize(Ctx *c, const Expr *e)
{
    Steps       s;
    const Expr *q;
    double      by;

    if (!quantize_steps(e, &s))
        return e;
    if (!wants_other_sign(c, s.t)) {
        q = better_quantize(c, e, without_bounds(call_arg(e, 0), &s), &s, false);
        return q ? q : e;
    }
    by = is_unsigned(s.t) ? -128 : 128;
    s = (Steps){other_sign(s.t), s.scale, s.zero + by, s.lo + by, s.hi + by};
    q = better_quantize(c, e, without_bounds(call_arg(e, 0), &s), &s, true);
    return q ? shifted(c, q, e->loc) : NULL;
}

/* ---- dequantize behind what moves or picks cells ----------------------------------------------------- */

static const char *const movers[] = {
    "reshape",
    "squeeze",
    "expand_dims",
    "transpose",
    "broadcast_to",
    "copy",
    "repeat",
    "tile",
    "reverse",
    "strided_slice",
    "layout_transform",
    "take",
    "gather",
    "split",
    "nn.max_pool2d",
    "nn.global_max_pool2d",
    "gather_nd",
    "max",
    "min",
};

static bool is_mover(const Expr *e)
{
    const Op *op = call_op(e);

    for (size_t i = 0; op && i < COUNT(movers); i++)
        if (!strcmp(op->text, movers[i]))
            return true;
    return call_is(e, "image.resize2d") &&
           !strcmp(ATTRS_OF(Resize2dAttrs, e)->method, "nearest_neighbor");
}

/* The call on integers; only its first operand is quantized.  Cells of a border stand for what they
 * stood for; NULL: there is no such integer. */
static const Expr *call_on(Ctx *c, const Expr *e, const Quantized *v, double scale, double zero)
{
    const Expr **args = NEW_ARRAY(c->scratch, const Expr *, call_nargs(e));
    const void  *attrs = e->u.attrs;

    if (call_is(e, "nn.pad")) {
        PadAttrs *a = ATTRS_COPY(c, PadAttrs, e);
        DType     t = v->q->type->dtype;

        a->pad_value = a->pad_value / scale + zero;
        if (!(a->pad_value >= dtype_min(t) && a->pad_value <= dtype_max(t)) ||
            a->pad_value != nearbyint(a->pad_value))
            return NULL;
        attrs = a;
    }

    for (uint32_t i = 0; i < call_nargs(e); i++)
        args[i] = i ? call_arg(e, i) : v->q;
    return expr_call(c, call_op(e), call_nargs(e), args, attrs, e->loc);
}

static const Expr *move_dequantize(Ctx *c, const Expr *e)
{
    Quantized   v;
    double      scale, zero;
    const Expr *of = e->kind == EXPR_PROJ ? e->kids[0] : e, *q;

    if (!(is_mover(of) || call_is(of, "nn.pad")) || call_is(e, "split") ||
        !quantized_tensor(call_arg(of, 0), &v, &scale, &zero) ||
        !(q = call_on(c, of, &v, scale, zero)))
        return e;
    if (e->kind == EXPR_PROJ)
        q = expr_proj(c, q, e->u.index, e->loc);
    return make_dequantize(c, q, v.scale, v.zero, -1, e->loc);
}

/* ---- the pass ------------------------------------------------------------------------------- */

static const Expr *(*const rules[])(Ctx *, const Expr *) = {
    integer_product, integer_sum, integer_average, integer_reduction, integer_bias, integer_scale,
};

static const Expr *rewrite(Ctx *c, void *user, const Expr *was, const Expr *now)
{
    const Expr *e = now;

    (void)user;
    (void)was;
    if (e->kind == EXPR_PROJ)
        return move_dequantize(c, e);
    if (!call_op(e) || !e->type)
        return e;
    if (call_is(e, "qnn.dequantize"))
        return see_through_shift(c, e);
    if (call_is(e, "qnn.quantize"))
        return integer_quantize(c, e);
    if (is_mover(e) || call_is(e, "nn.pad"))
        return move_dequantize(c, e);
    for (size_t i = 0; e == now && i < COUNT(rules); i++)
        e = rules[i](c, e);
    return e;
}

/* Something reads integers of 8 or 16 bits. */
static bool any_quantized(Ctx *c, const Module *m)
{
    for (uint32_t i = 0; i < m->nfuncs; i++) {
        ExprList list = expr_post_order(c, m->funcs[i].func);

        for (uint32_t k = 0; k < list.n; k++) {
            const Expr *e = list.at[k];

            if (call_op(e) && call_nargs(e) && expr_has_shape(call_arg(e, 0)) &&
                is_quantized_type(call_arg(e, 0)->type->dtype))
                return true;
        }
    }
    return false;
}

/* Sums of four products that take fewer instructions than four of floats. */
static bool has_bytes(const Target *t)
{
    return t->intrin_ops[INTRIN_DOT4_II] && t->intrin_ops[INTRIN_DOT4_II] < 4;
}

const Module *quantized_to_integer(Ctx *c, const Module *m)
{
    if ((c->target && c->target->host && !has_bytes(c->target)) || !any_quantized(c, m))
        return m;
    m = fold_constant_but(c, m, "qnn.dequantize");
    m = m ? subpixel_quantized(c, m) : NULL;
    return m ? module_rewrite(c, m, rewrite, NULL) : NULL;
}
