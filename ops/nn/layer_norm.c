/* nn.layer_norm over the dimensions from `axis` on.        %3 = nn.layer_norm(%0, %gamma, %beta);
 *
 *     %sum[r] = sum[k] %x[r, k]                       %mean = %sum / n
 *     %var[r] = sum[k] (%x[r, k] - %mean[r])^2        %out = (x - mean) / sqrt(var / n + epsilon)
 *
 * times gamma plus beta, both of the normalized dimensions.  What is computed is of their type:
 * data and result may be of 16 bits where they are of 32. */
#include "ops/common.h"

const Type *rel_layer_norm(Ctx *c, Loc loc, const void *attrs, const Type *const *in, uint32_t nin)
{
    const LayerNormAttrs *a = attrs;
    uint32_t              axis;
    DType                 t;

    if (!rel_tensors(c, loc, in, nin) || !rel_axis(c, loc, a->axis, in[0]->n, &axis))
        return NULL;
    if (!dtype_is_float(in[0]->dtype))
        return error_at(c, E_TYPE, loc, "layer normalization of %s", dtype_text(c, in[0]->dtype));
    for (uint32_t i = 1; i < nin; i++) {
        bool widened = dtype_is_half(in[0]->dtype) && dtype_eq(in[i]->dtype, DT_F32);

        if ((i > 1 && !rel_same_dtype(c, loc, in[1], in[i])) ||
            (!widened && !rel_same_dtype(c, loc, in[0], in[i])) ||
            !rel_rank(c, loc, in[i], in[0]->n - axis, "scale and shift"))
            return NULL;
        for (uint32_t k = axis; k < in[0]->n; k++)
            if (!rel_dims_equal(c, loc, in[0]->dims[k], in[i]->dims[k - axis],
                                "dimensions of the data and of scale and shift"))
                return NULL;
    }
    if (!rel_dtype(c, loc, a->out_dtype, in[0]->dtype, &t))
        return NULL;
    if (!dtype_is_float(t))
        return error_at(c, E_TYPE, loc, "layer normalization of %s as %s",
                        dtype_text(c, in[0]->dtype), a->out_dtype);
    return dtype_eq(t, in[0]->dtype) ? in[0] : type_tensor(c, t, in[0]->n, in[0]->dims);
}

/* Axes of the rows and of what is normalized, and the index over both. */
static void split_axes(Ctx *c, const Type *t, uint32_t axis, Axes *row, Axes *k, const Idx **at)
{
    static const char *const names[] = {"k0", "k1", "k2", "k3", "k4", "k5", "k6", "k7"};

    *row = te_axes(c, axis, t->dims, NULL);
    *k = te_axes(c, t->n - axis, t->dims + axis, names);
    for (uint32_t i = 0; i < t->n; i++)
        at[i] = i < axis ? row->at[i] : k->at[i - axis];
}

static const Tensor *row_mean(Ctx *c, const char *name, const Tensor *sum, const Prim *n, Axes row)
{
    return te_compute(c, name, sum->buffer->dtype, row, prim_div(c, te_at(c, sum, row.at), n));
}

bool te_layer_norm(Ctx *c, const OpCall *call, const Tensor *const *in, const Tensor **out)
{
    const LayerNormAttrs *attrs = call->attrs;
    const Type           *t = call->in[0];
    DType                 dtype = call->in[1]->dtype; /* of what is computed */
    uint32_t              axis = axis_of(attrs->axis, t->n);
    const Idx            *at[TE_MAX_AXES], *cells = idx_const(c->arith, 1);
    Axes                  row, k;

    for (uint32_t i = axis; i < t->n; i++)
        cells = idx_mul(c->arith, cells, t->dims[i]);
    const Prim *n = te_number(c, dtype, cells);

    split_axes(c, t, axis, &row, &k, at);
    const Tensor *sum =
        te_reduce(c, "sum", dtype, row, COMB_SUM, k, prim_cast(c, dtype, te_at(c, in[0], at)));
    const Tensor *mean = row_mean(c, "mean", sum, n, te_axes(c, axis, t->dims, NULL));

    split_axes(c, t, axis, &row, &k, at);
    const Prim   *d = prim_sub(c, prim_cast(c, dtype, te_at(c, in[0], at)), te_at(c, mean, row.at));
    const Tensor *square = te_reduce(c, "var", dtype, row, COMB_SUM, k, prim_mul(c, d, d));

    Axes        a = te_axes_of(c, t);
    const Prim *var = prim_div(c, te_at(c, square, a.at), n);
    const Prim *dev =
        prim_math(c, MATH_SQRT, prim_add(c, var, prim_float(c, dtype, attrs->epsilon)), NULL);
    const Prim *y = prim_div(
        c, prim_sub(c, prim_cast(c, dtype, te_at(c, in[0], a.at)), te_at(c, mean, a.at)), dev);

    if (attrs->scale)
        y = prim_mul(c, y, te_at(c, in[1], a.at + axis));
    if (attrs->center)
        y = prim_add(c, y, te_at(c, in[2], a.at + axis));
    return te_out(c, call, &a, prim_cast(c, call->out[0]->dtype, y), out);
}
