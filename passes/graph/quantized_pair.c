/* Products of two quantized values, such as queries and keys of attention, in integers.
 *
 *   qnn.quantize(nn.batch_matmul(qnn.dequantize(%q, sq, zq), qnn.dequantize(%k, sk, zk)), sy, zy)
 *     -> %0 = subtract(cast(%q, dtype=i16), zq);  %1 = subtract(cast(%k, dtype=i16), zk)
 *        %2 = nn.batch_matmul(%0, %1, out_dtype="i32")
 *        qnn.requantize(%2, sq * sk / sy, 0, 1, zy)
 *
 * Less their zero points, bytes are i16, or i8 where the zero points are 0; words keep their type.
 * Neither zero point is then left in the sums, which are of i32 if it holds as many of the largest
 * products as there may be, else of i64.  Where f32 holds them exactly (258 products of the largest
 * bytes) and the target has vectors, they are whole numbers in f32: the same results, sooner, as
 * data are not packed for dot products.
 *
 * Only products whose results are quantized: others may be part of something that floats do in one
 * kernel (attention.c). */
#include "passes/graph/quantized.h"

#include <math.h>

#define WHOLE_F32 16777216 /* up to 2^24 f32 holds all whole numbers */

/* The product's depth, at most; INT64_MAX if that is not known. */
static int64_t most_terms(const Expr *e)
{
    const Type *x = call_arg(e, 0)->type;
    bool        across = false; /* x is [k, m] */
    int64_t     k;

    if (call_is(e, "nn.matmul"))
        across = ATTRS_OF(MatmulAttrs, e)->transpose_a;
    else if (call_is(e, "nn.batch_matmul"))
        across = ATTRS_OF(BatchMatmulAttrs, e)->transpose_a;
    return type_dim(x, x->n - (across ? 2 : 1), &k) ? k : INT64_MAX;
}

/* The call's attributes for sums of type t; NULL: no product, or one with a type of its own. */
static const void *attrs_summing(Ctx *c, const Expr *e, const char *t)
{
    if (call_is(e, "nn.dense") && !*ATTRS_OF(DenseAttrs, e)->out_dtype) {
        DenseAttrs *a = ATTRS_COPY(c, DenseAttrs, e);

        a->out_dtype = t;
        return a;
    }
    if (call_is(e, "nn.matmul") && !*ATTRS_OF(MatmulAttrs, e)->out_dtype) {
        MatmulAttrs *a = ATTRS_COPY(c, MatmulAttrs, e);

        a->out_dtype = t;
        return a;
    }
    if (call_is(e, "nn.batch_matmul") && !*ATTRS_OF(BatchMatmulAttrs, e)->out_dtype) {
        BatchMatmulAttrs *a = ATTRS_COPY(c, BatchMatmulAttrs, e);

        a->out_dtype = t;
        return a;
    }
    return NULL;
}

static bool holds(DType t, DType of, double zero)
{
    return dtype_min(of) - zero >= dtype_min(t) && dtype_max(of) - zero <= dtype_max(t);
}

/* The narrowest type for all values less their zero points, into which they can be cast first. */
static DType centred_type(const Quantized v[2], const double zero[2])
{
    static const DType types[] = {DT_I8, DT_I16};

    for (size_t k = 0; k < COUNT(types); k++) {
        bool all = true;

        for (uint32_t i = 0; i < 2; i++) {
            DType of = v[i].q->type->dtype;

            all &= holds(types[k], of, 0) && holds(types[k], of, zero[i]);
        }
        if (all)
            return types[k];
    }
    return DT_I32;
}

/* The type that sums so many products of the largest magnitudes there may be. */
static DType pair_sum_dtype(const Ctx *c, const Expr *e, const Quantized v[2], const double zero[2])
{
    double most = (double)most_terms(e);

    for (uint32_t i = 0; i < 2; i++) {
        DType of = v[i].q->type->dtype;

        most *= fmax(dtype_max(of) - zero[i], zero[i] - dtype_min(of));
    }
    if (most <= WHOLE_F32 && has_vectors(c->target))
        return DT_F32;
    return most <= dtype_max(DT_I32) ? DT_I32 : DT_I64;
}

static const Expr *cast_to(Ctx *c, const Expr *x, DType t, Loc loc)
{
    return x && !dtype_eq(x->type->dtype, t) ? make_cast(c, x, t, loc) : x;
}

/* q - zero in type t, which holds all of them. */
static const Expr *centred(Ctx *c, const Expr *q, double zero, DType t, Loc loc)
{
    q = cast_to(c, q, t, loc);
    return q && zero != 0 ? make2(c, "subtract", q, expr_scalar(c, t, zero), NULL, loc) : q;
}

const Expr *integer_pair(Ctx *c, const Expr *e)
{
    Quantized   v[2];
    double      scale[2], zero[2];
    const Expr *x[2], *sum;
    DType       t, sums;
    float       both;

    if (!call_op(e) || call_nargs(e) != 2 || !expr_has_shape(e) || !attrs_summing(c, e, ""))
        return e;
    for (uint32_t i = 0; i < 2; i++)
        if (!quantized_tensor(call_arg(e, i), &v[i], &scale[i], &zero[i]))
            return e;
    both = (float)scale[0] * (float)scale[1];
    if (!isfinite(both) || both == 0)
        return e;
    sums = pair_sum_dtype(c, e, v, zero);
    t = dtype_is_float(sums) ? sums : centred_type(v, zero);
    for (uint32_t i = 0; i < 2; i++)
        if (!(x[i] = centred(c, v[i].q, zero[i], t, e->loc)))
            return NULL;
    sum = expr_call(c, call_op(e), 2, x,
                    dtype_is_float(sums) ? e->u.attrs : attrs_summing(c, e, dtype_text(c, sums)),
                    e->loc);
    if (dtype_is_float(sums))
        sum = cast_to(c, sum, sums = DT_I32, e->loc);
    return make_dequantize(c, sum, expr_scalar(c, DT_F32, (double)both), expr_scalar(c, sums, 0),
                           -1, e->loc);
}
