/* Products of integers as such: MatMulInteger and ConvInteger, the sums themselves.
 *
 *   nn.matmul(subtract(cast(%x, i32), %zx), const @w)  ->  nn.dense(%x, const @w') - %zx * sums
 *
 * sums[o] is the sum of w' of output channel o; a zero point that is constant goes into a bias. The
 * cells around the data of a convolution stand for 0: that is a zero point which is constant as an
 * attribute, and one known only when the model runs as what the data are quantized from (a 0 of
 * floats becomes the zero point, whatever that is):
 *
 *   nn.conv2d(subtract(cast(qnn.quantize(%f, %s, %zx), i32), %zx), const @w, padding=p)
 *     -> nn.conv2d(qnn.quantize(nn.pad(%f, p), %s, %zx), const @w') - %zx * sums
 *
 * Data of other origin keep the product of numbers of 32 bits. */
#include "passes/graph/quantized.h"

#include <string.h>

/* x or x - zero in i32, of 8-bit x and a scalar zero, or that in another shape, as rows of all
 * pictures; NULL: something else. */
static const Expr *centred_data(Ctx *c, const Expr *e, const Expr **zero)
{
    const Expr *x = e;
    int64_t     n;

    if (call_is(e, "reshape")) {
        x = centred_data(c, call_arg(e, 0), zero);
        return x ? make_reshape_to(c, x, e->type->n, e->type->dims, e->loc) : NULL;
    }
    *zero = expr_scalar(c, DT_I32, 0);
    if (call_is(e, "subtract")) {
        x = call_arg(e, 0);
        *zero = call_arg(e, 1);
    }
    if (!call_is(x, "cast") || !dtype_eq(x->type->dtype, DT_I32) ||
        !is_8bit(call_arg(x, 0)->type->dtype) || !type_elems((*zero)->type, &n) || n != 1 ||
        !same_dims(e->type, x->type))
        return NULL;
    return call_arg(x, 0);
}

/* Is `zero`, in i32, what `q`, a qnn.quantize, makes of 0? */
static bool zero_point_is(Ctx *c, const Expr *q, const Expr *zero)
{
    while (call_is(zero, "reshape"))
        zero = call_arg(zero, 0);
    return call_is(zero, "cast") && expr_same(c, call_arg(zero, 0), call_arg(q, 2));
}

/* Data [n, c, h, w] with its border as further cells; NULL: only its zero point is known. */
static const Expr *bordered(Ctx *c, const Expr *x, const Expr *zero, const Ints *border)
{
    const Expr *q = x, *f, *args[3];

    while (call_is(q, "reshape"))
        q = call_arg(q, 0);
    if (!call_is(q, "qnn.quantize") || !zero_point_is(c, q, zero) || border->n != 4)
        return NULL;
    f = call_arg(q, 0);
    if (q != x)
        f = make_reshape_to(c, f, x->type->n, x->type->dims, x->loc);
    for (uint32_t i = 0; f && i < 2; i++)
        f = make_pad(c, f, 2 + i, border->at[i], border->at[2 + i], 0, x->loc);
    for (uint32_t i = 0; i < 3; i++)
        args[i] = i ? call_arg(q, i) : f;
    return f ? expr_call(c, call_op(q), 3, args, q->u.attrs, q->loc) : NULL;
}

/* The convolution `e` of x, whose border is among its cells. */
static const Expr *without_padding(Ctx *c, const Expr *e, const Expr *x)
{
    Conv2dAttrs  *a = ATTRS_COPY(c, Conv2dAttrs, e);
    const Expr   *args[2] = {x, call_arg(e, 1)};
    const int64_t none[4] = {0};

    a->padding = ints_dup(c, none, 4);
    a->pad_value = 0;
    return expr_call(c, call_op(e), 2, args, a, e->loc);
}

/* sum - zero * sums, for a zero point that is known when the model runs. */
static const Expr *less_zero(Ctx *c, const Expr *sum, const Expr *zero, const Expr *sums, bool conv,
                             Loc loc)
{
    int64_t dims[3] = {0, 1, 1};

    if (zero->type->n)
        zero = make_reshape(c, zero, 0, NULL, loc);
    if (conv && type_dim(sums->type, 0, &dims[0]))
        sums = make_reshape(c, sums, 3, dims, loc);
    return make2(c, "subtract", sum, make2(c, "multiply", zero, sums, NULL, loc), NULL, loc);
}

/* Each row of `x` times the offsets of the channels, which its product with the weights is short
 * of. */
static const Expr *offset_rows(Ctx *c, const Expr *x, const Expr *offsets, Loc loc)
{
    ReduceAttrs  *a = ATTRS_NEW(c, ReduceAttrs);
    const int64_t last = -1;

    a->axis = ints_dup(c, &last, 1);
    a->keepdims = true;
    x = make_cast(c, x, DT_I32, loc);
    x = x ? make1(c, "sum", x, a, loc) : NULL;
    return x ? make2(c, "multiply", x, offsets, NULL, loc) : NULL;
}

/* The product of x with the weights p, whose type would be i16, of matrices: the same of bytes.
 *
 *   nn.dense(%x, const @w)  ->  nn.dense(%x, const @w') + sum(%x, axis=-1) * offsets
 *
 * NULL: as it was. */
static const Expr *product_of_bytes(Ctx *c, const Expr *e, const Expr *x, Product *p)
{
    int64_t    *offsets = NEW_ARRAY(c->scratch, int64_t, (size_t)p->channels);
    const Expr *vector, *sum;

    if (p->conv || !weight_offsets(p, offsets) ||
        !(vector = sum_vector(c, offsets, p->channels, DT_I32, NULL, e->loc)))
        return NULL;
    p->zero = vector;
    sum = integer_call(c, e, x, centred_weight(c, p, DT_I8), 0, DT_I32);
    return sum ? make2(c, "add", sum, offset_rows(c, x, vector, e->loc), NULL, e->loc) : NULL;
}

const Expr *integer_sum(Ctx *c, const Expr *e)
{
    Product     p = {0};
    const Expr *x, *zero, *vector = NULL, *sum, *around = NULL;
    int64_t    *sums, most;
    DType       wt;
    double      zx = 0; /* the part of the zero point that is known */

    if (!call_op(e) || !product_kind(e, &p) || !expr_has_shape(e) ||
        !dtype_eq(e->type->dtype, DT_I32) || !(x = centred_data(c, call_arg(e, 0), &zero)) ||
        !(p.k = const_value(c, call_arg(e, 1))) || !weight_sizes(&p))
        return e;
    if (zero->kind == EXPR_CONST) {
        zx = const_at(zero, 0);
        zero = NULL;
    } else if (p.conv && !ints_all(ATTRS_OF(Conv2dAttrs, e)->padding, 0)) {
        if (!(around = bordered(c, x, zero, &ATTRS_OF(Conv2dAttrs, e)->padding)))
            return e;
    }
    if (wants_other_sign(c, x->type->dtype) &&
        (!(x = with_other_sign(c, x, &zx, e->loc)) ||
         (around && !(around = with_other_sign(c, around, &(double){0}, e->loc)))))
        return NULL;
    p.zero = expr_scalar(c, DT_I32, 0);
    sums = NEW_ARRAY(c->scratch, int64_t, (size_t)p.channels);
    wt = weight_sums(&p, sums, &most);
    if (dtype_eq(sum_dtype(x->type->dtype, zx, wt, most), DT_I64) ||
        (zero && !(vector = sum_vector(c, sums, p.channels, DT_I32, NULL, e->loc))))
        return e;
    sum = dtype_eq(wt, DT_I16) ? product_of_bytes(c, e, x, &p) : NULL;
    if (!sum)
        sum = integer_call(c, e, x, centred_weight(c, &p, wt), zx, DT_I32);
    if (sum && around)
        sum = without_padding(c, sum, around);
    if (zero && sum)
        sum = less_zero(c, sum, zero, vector, p.conv, e->loc);
    for (int64_t o = 0; o < p.channels; o++)
        sums[o] *= -(int64_t)zx;
    if (zx == 0 || !sum)
        return sum;
    vector = sum_vector(c, sums, p.channels, DT_I32, NULL, e->loc);
    return vector ? with_bias(c, sum, vector, p.conv, e->loc) : e;
}
