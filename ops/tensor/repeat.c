/* Tensors with repeated or chosen cells: tile, repeat, trilu, one_hot.
 *
 *     %1 = tile(%0, reps=[2, 1]);        // 0 1 0 1
 *     %1 = repeat(%0, repeats=2);        // 0 0 1 1 */
#include "ops/common.h"

const Type *rel_tile(Ctx *c, Loc loc, const void *attrs, const Type *const *in, uint32_t nin)
{
    const TileAttrs *a = attrs;
    const Idx       *dims[TE_MAX_AXES];

    if (!rel_tensors(c, loc, in, nin) || !rel_dims(c, loc, "reps", a->reps, a->reps.n, 0))
        return NULL;
    uint32_t t = in[0]->n, n = a->reps.n > t ? a->reps.n : t;

    if (n > TE_MAX_AXES)
        return error_at(c, E_TYPE, loc, "a tensor of %u dimensions; at most %u are supported", n,
                        TE_MAX_AXES);
    for (uint32_t i = 0; i < n; i++) {
        const Idx *reps =
            i < n - a->reps.n ? idx_const(c->arith, 1) : a->reps.at[i - (n - a->reps.n)];

        dims[i] = i < n - t ? reps : idx_mul(c->arith, in[0]->dims[i - (n - t)], reps);
    }
    return rel_tensor(c, loc, in[0]->dtype, n, dims);
}

bool te_tile(Ctx *c, const OpCall *call, const Tensor *const *in, const Tensor **out)
{
    const Type *t = call->in[0];
    Axes        a = te_axes_of(c, call->out[0]);
    const Idx  *at[TE_MAX_AXES];

    for (uint32_t i = 0; i < t->n; i++) {
        const Idx *x = a.at[a.n - t->n + i];
        int64_t    n;

        at[i] =
            type_dim(t, i, &n) && n < 1 ? idx_const(c->arith, 0) : idx_mod(c->arith, x, t->dims[i]);
    }
    return te_out(c, call, &a, te_at(c, in[0], at), out);
}

const Type *rel_repeat(Ctx *c, Loc loc, const void *attrs, const Type *const *in, uint32_t nin)
{
    const RepeatAttrs *a = attrs;
    const Idx         *dims[TE_MAX_AXES];
    uint32_t           axis;

    if (!rel_tensors(c, loc, in, nin) || !rel_axis(c, loc, a->axis, in[0]->n, &axis))
        return NULL;
    if (a->repeats < 1 || a->repeats > INT32_MAX)
        return error_at(c, E_TYPE, loc, "%lld repeats", (long long)a->repeats);
    for (uint32_t i = 0; i < in[0]->n; i++)
        dims[i] = i == axis ? idx_mulc(c->arith, in[0]->dims[i], a->repeats) : in[0]->dims[i];
    return rel_tensor(c, loc, in[0]->dtype, in[0]->n, dims);
}

bool te_repeat(Ctx *c, const OpCall *call, const Tensor *const *in, const Tensor **out)
{
    const RepeatAttrs *attrs = call->attrs;
    Axes               a = te_axes_of(c, call->out[0]);
    uint32_t           axis = axis_of(attrs->axis, a.n);
    const Idx         *at[TE_MAX_AXES];

    for (uint32_t i = 0; i < a.n; i++)
        at[i] = i == axis ? idx_divc(c->arith, a.at[i], attrs->repeats) : a.at[i];
    return te_out(c, call, &a, te_at(c, in[0], at), out);
}

/* ---- trilu: one triangle of the last two dimensions, zero elsewhere ---------------------------- */

const Type *rel_trilu(Ctx *c, Loc loc, const void *attrs, const Type *const *in, uint32_t nin)
{
    const TriluAttrs *a = attrs;

    if (!rel_tensors(c, loc, in, nin))
        return NULL;
    if (in[0]->n < 2 || a->k < -INT32_MAX || a->k > INT32_MAX)
        return error_at(c, E_TYPE, loc, "a triangle at diagonal %lld of %s", (long long)a->k,
                        type_text(c, in[0]));
    return in[0];
}

bool te_trilu(Ctx *c, const OpCall *call, const Tensor *const *in, const Tensor **out)
{
    const TriluAttrs *attrs = call->attrs;
    Arith            *A = c->arith;
    Axes              a = te_axes_of(c, call->out[0]);
    const Prim       *x = te_in(c, in[0], &a);
    /* column - row - k: zero on the diagonal, positive above it */
    const Idx *d = idx_addc(A, idx_sub(A, a.at[a.n - 1], a.at[a.n - 2]), -attrs->k);
    Pred       p = pred_and(A, c->arena, PRED_TRUE, attrs->upper ? d : idx_mulc(A, d, -1));

    return te_out(c, call, &a, prim_select(c, pred_prim(c, p), x, prim_num(c, x->dtype, 0)), out);
}

/* ---- one_hot --------------------------------------------------------------------------------------- */

const Type *rel_one_hot(Ctx *c, Loc loc, const void *attrs, const Type *const *in, uint32_t nin)
{
    const OneHotAttrs *a = attrs;
    const Idx         *dims[TE_MAX_AXES + 1];
    uint32_t           axis;

    if (!rel_tensors(c, loc, in, nin) || !rel_int_dtype(c, loc, in[0], "indices") ||
        !rel_same_dtype(c, loc, in[1], in[2]) || !rel_rank(c, loc, in[1], 0, "values") ||
        !rel_rank(c, loc, in[2], 0, "values") || !rel_axis(c, loc, a->axis, in[0]->n + 1, &axis))
        return NULL;
    if (!dtype_eq(in[1]->dtype, a->dtype) || a->depth < 0 || a->depth > INT32_MAX ||
        in[0]->n >= TE_MAX_AXES)
        return error_at(c, E_TYPE, loc, "depth %lld of %s for %s, values of %s",
                        (long long)a->depth, dtype_text(c, a->dtype), type_text(c, in[0]),
                        dtype_text(c, in[1]->dtype));
    for (uint32_t i = 0; i <= in[0]->n; i++)
        dims[i] = i == axis ? idx_const(c->arith, a->depth) : in[0]->dims[i < axis ? i : i - 1];
    return rel_tensor(c, loc, a->dtype, in[0]->n + 1, dims);
}

/* An index from -depth to depth - 1; others are nowhere hot. */
bool te_one_hot(Ctx *c, const OpCall *call, const Tensor *const *in, const Tensor **out)
{
    const OneHotAttrs *attrs = call->attrs;
    Axes               a = te_axes_of(c, call->out[0]);
    uint32_t           axis = axis_of(attrs->axis, a.n);
    const Idx         *at[TE_MAX_AXES];

    for (uint32_t i = 0; i + 1 < a.n; i++)
        at[i] = a.at[i < axis ? i : i + 1];
    const Prim *index = prim_cast(c, DT_I64, te_at(c, in[0], at));
    const Prim *here = prim_index(c, DT_I64, a.at[axis]);
    const Prim *wrapped = prim_index(c, DT_I64, idx_addc(c->arith, a.at[axis], -attrs->depth));
    const Prim *hot = prim_or(c, prim_eq(c, index, here), prim_eq(c, index, wrapped));

    return te_out(c, call, &a, prim_select(c, hot, te_at(c, in[1], NULL), te_at(c, in[2], NULL)),
                  out);
}
