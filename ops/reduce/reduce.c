/* Reductions over axes: sum, mean, max, min, prod, all, any, variance.
 *
 *     %1 = mean(%0, axis=[2, 3], keepdims=true);
 *
 *     %sum[i0, i1] = sum[k0, k1] %x[i0, i1, k0, k1]        %out[i0, i1] = %sum[i0, i1] / 49
 *
 * Axes that are reduced run in the order they have in the operand. */
#include "ops/common.h"

/* ---- type relations ------------------------------------------------------------------------------ */

/* The reduced axes: named ones, or all others with `exclude`. */
static uint32_t reduced(Ints axis, bool exclude, uint32_t ndim)
{
    uint32_t set = axes_of(axis, ndim);

    return exclude && axis.n ? ~set & ((1u << ndim) - 1) : set;
}

static const Type *rel_over(Ctx *c, Loc loc, const Type *t, DType dtype, uint32_t set,
                            bool keepdims)
{
    const Idx *dims[TE_MAX_AXES];
    uint32_t   n = 0;

    for (uint32_t i = 0; i < t->n; i++) {
        if (!(set >> i & 1))
            dims[n++] = t->dims[i];
        else if (keepdims)
            dims[n++] = idx_const(c->arith, 1);
    }
    return rel_tensor(c, loc, dtype, n, dims);
}

const Type *rel_reduce(Ctx *c, Loc loc, const void *attrs, const Type *const *in, uint32_t nin)
{
    const ReduceAttrs *a = attrs;
    uint32_t           set;

    if (!rel_tensors(c, loc, in, nin) || !rel_axes(c, loc, a->axis, in[0]->n, &set))
        return NULL;
    if (!rel_number(c, loc, in[0]))
        return NULL;
    return rel_over(c, loc, in[0], in[0]->dtype, reduced(a->axis, a->exclude, in[0]->n),
                    a->keepdims);
}

const Type *rel_reduce_bool(Ctx *c, Loc loc, const void *attrs, const Type *const *in, uint32_t nin)
{
    const ReduceAttrs *a = attrs;
    uint32_t           set;

    if (!rel_tensors(c, loc, in, nin) || !rel_axes(c, loc, a->axis, in[0]->n, &set))
        return NULL;
    if (!dtype_is_bool(in[0]->dtype))
        return error_at(c, E_TYPE, loc, "the operand must be bool, not %s",
                        dtype_text(c, in[0]->dtype));
    return rel_over(c, loc, in[0], DT_BOOL, reduced(a->axis, a->exclude, in[0]->n), a->keepdims);
}

const Type *rel_variance(Ctx *c, Loc loc, const void *attrs, const Type *const *in, uint32_t nin)
{
    const VarianceAttrs *a = attrs;
    const Idx           *dims[TE_MAX_AXES];
    uint32_t             set, n;

    if (!rel_tensors(c, loc, in, nin) || !rel_same_dtype(c, loc, in[0], in[1]) ||
        !rel_number(c, loc, in[0]) || !rel_axes(c, loc, a->axis, in[0]->n, &set) ||
        !rel_bcast_dims(c, loc, in[0], in[1], &n, dims))
        return NULL;
    for (uint32_t i = 0; i < n; i++)
        if (n != in[0]->n || dims[i] != in[0]->dims[i])
            return error_at(c, E_TYPE, loc, "a mean of type %s for %s", type_text(c, in[1]),
                            type_text(c, in[0]));
    return rel_over(c, loc, in[0], in[0]->dtype, reduced(a->axis, a->exclude, in[0]->n),
                    a->keepdims);
}

/* ---- compute ------------------------------------------------------------------------------------- */

/* The result's axes, the reduced ones, and where they meet in the operand. */
typedef struct {
    Axes       out, k;
    const Idx *at[TE_MAX_AXES];
} Over;

static Over over(Ctx *c, const Type *t, const Type *out, uint32_t set, bool keepdims)
{
    static const char *const names[] = {"k0", "k1", "k2", "k3", "k4", "k5", "k6", "k7"};
    const Idx               *dims[TE_MAX_AXES];
    uint32_t                 n = 0, o = 0, k = 0;
    Over                     v;

    for (uint32_t i = 0; i < t->n; i++)
        if (set >> i & 1)
            dims[n++] = t->dims[i];
    v.out = te_axes_of(c, out);
    v.k = te_axes(c, n, dims, names);
    for (uint32_t i = 0; i < t->n; i++) {
        bool gone = set >> i & 1;

        v.at[i] = gone ? v.k.at[k++] : v.out.at[o];
        o += !gone || keepdims;
    }
    return v;
}

static Over over_call(Ctx *c, const OpCall *call)
{
    const ReduceAttrs *a = call->attrs;
    uint32_t           set = reduced(a->axis, a->exclude, call->in[0]->n);

    return over(c, call->in[0], call->out[0], set, a->keepdims);
}

/* Nothing to reduce over: a copy. */
static bool reduce(Ctx *c, const OpCall *call, const Tensor *const *in, const Tensor **out,
                   Combiner comb, const char *name)
{
    Over        v = over_call(c, call);
    const Prim *x = te_at(c, in[0], v.at);

    if (!v.k.n)
        return te_out(c, call, &v.out, x, out);
    out[0] = te_reduce(c, name, call->out[0]->dtype, v.out, comb, v.k, x);
    return true;
}

bool te_sum(Ctx *c, const OpCall *call, const Tensor *const *in, const Tensor **out)
{
    return reduce(c, call, in, out, COMB_SUM, "sum");
}

bool te_max(Ctx *c, const OpCall *call, const Tensor *const *in, const Tensor **out)
{
    return reduce(c, call, in, out, COMB_MAX, "max");
}

bool te_min(Ctx *c, const OpCall *call, const Tensor *const *in, const Tensor **out)
{
    return reduce(c, call, in, out, COMB_MIN, "min");
}

bool te_prod(Ctx *c, const OpCall *call, const Tensor *const *in, const Tensor **out)
{
    return reduce(c, call, in, out, COMB_PROD, "prod");
}

bool te_all(Ctx *c, const OpCall *call, const Tensor *const *in, const Tensor **out)
{
    return reduce(c, call, in, out, COMB_ALL, "all");
}

bool te_any(Ctx *c, const OpCall *call, const Tensor *const *in, const Tensor **out)
{
    return reduce(c, call, in, out, COMB_ANY, "any");
}

/* How many cells each result takes in, as a number of type t. */
static const Prim *cells(Ctx *c, DType t, const Over *v)
{
    const Idx *n = idx_const(c->arith, 1);

    for (uint32_t i = 0; i < v->k.n; i++)
        n = idx_mul(c->arith, n, v->k.extent[i]);
    return te_number(c, t, n);
}

/* sum / n over fresh axes. */
static bool divided(Ctx *c, const OpCall *call, const Tensor *sum, const Prim *n,
                    const Tensor **out)
{
    Axes a = te_axes_of(c, call->out[0]);

    return te_out(c, call, &a, prim_div(c, te_at(c, sum, a.at), n), out);
}

bool te_mean(Ctx *c, const OpCall *call, const Tensor *const *in, const Tensor **out)
{
    Over v = over_call(c, call);

    if (!v.k.n)
        return te_out(c, call, &v.out, te_at(c, in[0], v.at), out);
    const Prim   *n = cells(c, call->out[0]->dtype, &v);
    const Tensor *sum =
        te_reduce(c, "sum", call->out[0]->dtype, v.out, COMB_SUM, v.k, te_at(c, in[0], v.at));

    return divided(c, call, sum, n, out);
}

bool te_variance(Ctx *c, const OpCall *call, const Tensor *const *in, const Tensor **out)
{
    const VarianceAttrs *a = call->attrs;
    DType                t = call->out[0]->dtype;
    uint32_t             set = reduced(a->axis, a->exclude, call->in[0]->n);
    Over                 v = over(c, call->in[0], call->out[0], set, a->keepdims);
    const Prim *d = prim_sub(c, te_at(c, in[0], v.at), te_at_bcast(c, in[1], call->in[0]->n, v.at));
    const Tensor *sum = te_reduce(c, "sum", t, v.out, COMB_SUM, v.k, prim_mul(c, d, d));
    const Prim   *n = cells(c, t, &v);

    return divided(c, call, sum, a->unbiased ? prim_sub(c, n, prim_num(c, t, 1)) : n, out);
}
