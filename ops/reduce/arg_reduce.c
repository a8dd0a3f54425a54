/* argmax, argmin: where the extremum lies.                 %1 = argmax(%0, axis=1, dtype=i64);
 *
 *     %max[r] = max[k] %x[r, k]
 *     %arg[r] = min[k] select(%x[r, k] == %max[r], k, n)
 *
 * Two reductions instead of one over pairs: both vectorize.  The first of equal elements wins, or
 * the last on request; a NaN is extreme. */
#include "ops/common.h"

const Type *rel_arg_reduce(Ctx *c, Loc loc, const void *attrs, const Type *const *in, uint32_t nin)
{
    const ArgReduceAttrs *a = attrs;
    const Idx            *dims[TE_MAX_AXES];
    uint32_t              axis, n = 0;

    if (!rel_tensors(c, loc, in, nin) || !rel_number(c, loc, in[0]) ||
        !rel_axis(c, loc, a->axis, in[0]->n, &axis))
        return NULL;
    if (!dtype_is_int(a->dtype))
        return error_at(c, E_TYPE, loc, "indices of type %s", dtype_text(c, a->dtype));
    if (in[0]->dims[axis]->lo < 1)
        return error_at(c, E_TYPE, loc, "the extremum of an empty dimension of %s",
                        type_text(c, in[0]));
    for (uint32_t i = 0; i < in[0]->n; i++) {
        if (i != axis)
            dims[n++] = in[0]->dims[i];
        else if (a->keepdims)
            dims[n++] = idx_const(c->arith, 1);
    }
    return rel_tensor(c, loc, a->dtype, n, dims);
}

/* Result axes, k, and the operand's index. */
static Axes row_axes(Ctx *c, const OpCall *call, uint32_t axis, Axes *k, const Idx **at)
{
    static const char *const names[] = {"k"};
    const ArgReduceAttrs    *a = call->attrs;
    Axes                     r = te_axes_of(c, call->out[0]);

    *k = te_axes(c, 1, &call->in[0]->dims[axis], names);
    for (uint32_t i = 0; i < call->in[0]->n; i++)
        at[i] = i == axis ? k->at[0] : r.at[i > axis && !a->keepdims ? i - 1 : i];
    return r;
}

static bool arg_reduce(Ctx *c, const OpCall *call, const Tensor *const *in, const Tensor **out,
                       Combiner comb, const char *name)
{
    const ArgReduceAttrs *a = call->attrs;
    uint32_t              axis = axis_of(a->axis, call->in[0]->n);
    const Idx            *at[TE_MAX_AXES], *n = call->in[0]->dims[axis];
    Axes                  k, r = row_axes(c, call, axis, &k, at);
    const Tensor *best = te_reduce(c, name, call->in[0]->dtype, r, comb, k, te_at(c, in[0], at));

    r = row_axes(c, call, axis, &k, at);
    const Prim *x = te_at(c, in[0], at), *extreme = te_at(c, best, r.at);
    const Prim *hit = prim_eq(c, x, extreme);

    if (dtype_is_float(x->dtype))
        hit = prim_or(c, hit, te_is_nan(c, x));
    /* As many lanes as the operand has. */
    bool          last = a->select_last_index, small = n->hi < INT32_MAX;
    DType         t = small ? DT_I32 : a->dtype;
    const Prim   *none = prim_index(c, t, last ? idx_const(c->arith, -1) : n);
    const Prim   *index = prim_index(c, t, k.at[0]);
    const Tensor *arg =
        te_reduce(c, "arg", t, r, last ? COMB_MAX : COMB_MIN, k, prim_select(c, hit, index, none));

    if (dtype_eq(t, a->dtype)) {
        out[0] = arg;
        return true;
    }
    r = te_axes_of(c, call->out[0]);
    return te_out(c, call, &r, prim_cast(c, a->dtype, te_at(c, arg, r.at)), out);
}

bool te_argmax(Ctx *c, const OpCall *call, const Tensor *const *in, const Tensor **out)
{
    return arg_reduce(c, call, in, out, COMB_MAX, "max");
}

bool te_argmin(Ctx *c, const OpCall *call, const Tensor *const *in, const Tensor **out)
{
    return arg_reduce(c, call, in, out, COMB_MIN, "min");
}
