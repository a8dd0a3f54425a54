/* What quantized models do in floats: averages, and sums of values of different scales.
 *
 *   nn.global_avg_pool2d(qnn.dequantize(%q, s, z))
 *     -> multiply(subtract(nn.global_avg_pool2d(%q, out_dtype="f32"), z), s)
 *
 * The pool sums integers, exactly, in i32, into which 32,768 cells of 16 bits fit; its mean is the
 * only float.  An average that counts padding cells stays, unless zero is what stands for zero.
 *
 *   mean(qnn.dequantize(%q, s, z))  ->  qnn.dequantize(sum(cast(%q, dtype=i32)), s / n, n * z)
 *
 * and a sum likewise, without n.
 *
 *   qnn.quantize(add(qnn.dequantize(%a, sa, za), qnn.dequantize(%b, sb, zb)), sy, zy)
 *     -> qnn.quantize(add(qnn.dequantize(%a, sa / sy, za), qnn.dequantize(%b, sb / sy, zb)), 1, zy)
 *
 * A division of each cell by the scale of the result, the slowest instruction of such a kernel,
 * becomes a division of constants. */
#include "passes/graph/quantized.h"

#include <math.h>

/* How many cells may be summed in i32. */
static int64_t most_cells(DType t)
{
    return INT32_MAX / (INT64_C(1) << t.bits);
}

/* How many cells an average is of, at most; false: not known. */
static bool window_cells(const Expr *e, int64_t *n)
{
    int64_t rows, columns;

    if (call_is(e, "nn.avg_pool2d")) {
        Ints size = ATTRS_OF(Pool2dAttrs, e)->pool_size;

        return size.n == 2 && checked_mul(size.at[0], size.at[1], n);
    }
    return type_dim(call_arg(e, 0)->type, 2, &rows) &&
           type_dim(call_arg(e, 0)->type, 3, &columns) && checked_mul(rows, columns, n);
}

const Expr *integer_average(Ctx *c, const Expr *e)
{
    Quantized   v;
    double      scale, zero;
    const Expr *mean;
    bool        whole = call_is(e, "nn.global_avg_pool2d");
    int64_t     cells;

    if ((!whole && !call_is(e, "nn.avg_pool2d")) ||
        !quantized_tensor(call_arg(e, 0), &v, &scale, &zero) ||
        (!is_8bit(v.q->type->dtype) &&
         !(window_cells(e, &cells) && cells <= most_cells(v.q->type->dtype) + 1)))
        return e;
    if (whole) {
        GlobalPool2dAttrs *a = ATTRS_COPY(c, GlobalPool2dAttrs, e);

        a->out_dtype = "f32";
        mean = make1(c, "nn.global_avg_pool2d", v.q, a, e->loc);
    } else {
        Pool2dAttrs *a = ATTRS_COPY(c, Pool2dAttrs, e);

        for (uint32_t i = 0; i < a->padding.n; i++)
            if (a->padding.at[i] && a->count_include_pad && zero != 0)
                return e;
        a->out_dtype = "f32";
        mean = make1(c, "nn.avg_pool2d", v.q, a, e->loc);
    }
    if (zero != 0)
        mean = make2(c, "subtract", mean, expr_scalar(c, DT_F32, zero), NULL, e->loc);
    return make2(c, "multiply", mean, expr_scalar(c, DT_F32, scale), NULL, e->loc);
}

/* How many cells a reduction sums; false: not known. */
static bool reduced_cells(const Expr *e, int64_t *n)
{
    const ReduceAttrs *a = ATTRS_OF(ReduceAttrs, e);
    const Type        *t = call_arg(e, 0)->type;
    int64_t            dim;

    *n = 1;
    for (uint32_t i = 0; i < a->axis.n; i++)
        if (!type_dim(t, axis_from_front(a->axis.at[i], t->n), &dim) || !checked_mul(*n, dim, n))
            return false;
    return a->axis.n > 0 && !a->exclude;
}

const Expr *integer_reduction(Ctx *c, const Expr *e)
{
    Quantized   v;
    double      scale, zero;
    int64_t     n;
    const Expr *sum;
    bool        mean = call_is(e, "mean");

    if ((!mean && !call_is(e, "sum")) || !quantized_tensor(call_arg(e, 0), &v, &scale, &zero) ||
        !reduced_cells(e, &n) || n < 1 || n > most_cells(v.q->type->dtype))
        return e;
    sum = make1(c, "sum", make_cast(c, v.q, DT_I32, e->loc), e->u.attrs, e->loc);
    return make_dequantize(c, sum, expr_scalar(c, DT_F32, mean ? scale / (double)n : scale),
                           expr_scalar(c, DT_I32, (double)n * zero), -1, e->loc);
}

const Expr *const_over(Ctx *c, const Expr *k, double by)
{
    int64_t n;
    float  *data;

    if (k->kind != EXPR_CONST || !dtype_eq(k->type->dtype, DT_F32) || !type_elems(k->type, &n))
        return NULL;
    data = arena_alloc(c->arena, (size_t)n * sizeof *data);
    for (int64_t i = 0; i < n; i++)
        data[i] = (float)const_at(k, i) / (float)by;
    return expr_const(c,
                      const_new(c, k->u.constant->name, type_plain(c, k->type),
                                (Bytes){(const uint8_t *)data, (size_t)n * sizeof *data}),
                      k->loc);
}

static const Expr *scaled_within(Ctx *c, const Expr *x, double by, int depth)
{
    Quantized   v;
    const Expr *a, *b;

    if (x->kind == EXPR_CONST)
        return const_over(c, x, by);
    if (quantized_of(x, &v)) {
        const Expr *s = const_over(c, v.scale, by);

        return s ? make_dequantize(c, v.q, s, v.zero, v.axis, x->loc) : NULL;
    }
    if (!depth || !call_op(x))
        return NULL;
    if (call_is(x, "nn.relu"))
        return make1(c, "nn.relu", scaled_within(c, call_arg(x, 0), by, depth - 1), NULL, x->loc);
    if (call_is(x, "multiply") && call_arg(x, 1)->kind == EXPR_CONST)
        return make2(c, "multiply", call_arg(x, 0), const_over(c, call_arg(x, 1), by), NULL,
                     x->loc);
    if (!call_is(x, "add") && !call_is(x, "subtract") && !call_is(x, "maximum") &&
        !call_is(x, "minimum") && !call_is(x, "nn.bias_add"))
        return NULL;
    a = scaled_within(c, call_arg(x, 0), by, depth - 1);
    b = a ? scaled_within(c, call_arg(x, 1), by, depth - 1) : NULL;
    return make2(c, call_op(x)->text, a, b, x->u.attrs, x->loc);
}

const Expr *scaled_down(Ctx *c, const Expr *x, double by)
{
    return scaled_within(c, x, by, 4);
}
