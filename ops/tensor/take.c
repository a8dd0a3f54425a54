/* Cells chosen by index tensors: take, gather, gather_nd.
 *
 *     %2 = take(%table, %ids, axis=0);              // rows of a table
 *     %2 = gather(%0, %ids, axis=1);                // out[i, j] = x[i, ids[i, j]]
 *     %2 = gather_nd(%0, %ids);                     // ids [M, ..]: the first M coordinates
 *
 * An index is read as part of another: it never leaves the tensor, whatever the data say.  Mode
 * "clip" takes the nearest legal one, "wrap" counts negative ones from the end. */
#include "ops/common.h"

#include <string.h>

static bool index_mode(Ctx *c, Loc loc, const char *text, IndexMode *m)
{
    *m = !strcmp(text, "wrap") ? INDEX_WRAP : INDEX_CLIP;
    if (*m == INDEX_WRAP || !strcmp(text, "clip"))
        return true;
    return error_at(c, E_TYPE, loc, "there is no index mode '%s'", text);
}

/* Something must be there to be chosen: of a dimension that may be empty there is the room of its
 * largest size, so that cell 0 can always be read. */
static bool not_empty(Ctx *c, Loc loc, const Type *t, uint32_t axis)
{
    if (t->dims[axis]->hi > 0)
        return true;
    return error_at(c, E_TYPE, loc, "dimension %u of %s is empty", axis, type_text(c, t));
}

/* ---- take ------------------------------------------------------------------------------------------ */

static bool take_axes(Ctx *c, Loc loc, const TakeAttrs *a, const Type *const *in, uint32_t *axis,
                      uint32_t *batch)
{
    uint32_t least = in[0]->n < in[1]->n ? in[0]->n : in[1]->n;

    if (!rel_axis(c, loc, a->axis, in[0]->n, axis))
        return false;
    if (a->batch_dims < 0 || a->batch_dims > least || a->batch_dims > *axis)
        return error_at(c, E_TYPE, loc, "%lld batch dimensions of %s and %s",
                        (long long)a->batch_dims, type_text(c, in[0]), type_text(c, in[1]));
    *batch = (uint32_t)a->batch_dims;
    return true;
}

const Type *rel_take(Ctx *c, Loc loc, const void *attrs, const Type *const *in, uint32_t nin)
{
    const TakeAttrs *a = attrs;
    const Idx       *dims[TE_MAX_AXES];
    uint32_t         axis, batch, n = 0;
    IndexMode        mode;

    if (!rel_tensors(c, loc, in, nin) || !rel_int_dtype(c, loc, in[1], "indices") ||
        !index_mode(c, loc, a->mode, &mode) || !take_axes(c, loc, a, in, &axis, &batch) ||
        !not_empty(c, loc, in[0], axis))
        return NULL;
    if (in[0]->n + in[1]->n - 1 - batch > TE_MAX_AXES)
        return error_at(c, E_TYPE, loc, "a tensor of %u dimensions; at most %u are supported",
                        in[0]->n + in[1]->n - 1 - batch, TE_MAX_AXES);
    for (uint32_t i = 0; i < batch; i++)
        if (!rel_dims_equal(c, loc, in[0]->dims[i], in[1]->dims[i], "batch dimensions"))
            return NULL;
    for (uint32_t i = 0; i < axis; i++)
        dims[n++] = in[0]->dims[i];
    for (uint32_t i = batch; i < in[1]->n; i++)
        dims[n++] = in[1]->dims[i];
    for (uint32_t i = axis + 1; i < in[0]->n; i++)
        dims[n++] = in[0]->dims[i];
    return rel_tensor(c, loc, in[0]->dtype, n, dims);
}

bool te_take(Ctx *c, const OpCall *call, const Tensor *const *in, const Tensor **out)
{
    const TakeAttrs *attrs = call->attrs;
    Axes             a = te_axes_of(c, call->out[0]);
    const Idx       *at[TE_MAX_AXES], *iat[TE_MAX_AXES];
    uint32_t         axis, batch, nindex = call->in[1]->n;
    IndexMode        mode;

    if (!take_axes(c, call->loc, attrs, call->in, &axis, &batch) ||
        !index_mode(c, call->loc, attrs->mode, &mode))
        return false;
    for (uint32_t i = 0; i < nindex; i++)
        iat[i] = i < batch ? a.at[i] : a.at[axis + i - batch];
    for (uint32_t i = 0; i < call->in[0]->n; i++)
        at[i] = i < axis ? a.at[i] : i > axis ? a.at[i - 1 + nindex - batch] : NULL;
    at[axis] = te_index(c, te_at(c, in[1], iat), call->in[0]->dims[axis], mode);
    return te_out(c, call, &a, te_at(c, in[0], at), out);
}

/* ---- gather ---------------------------------------------------------------------------------------- */

const Type *rel_gather(Ctx *c, Loc loc, const void *attrs, const Type *const *in, uint32_t nin)
{
    const GatherAttrs *a = attrs;
    uint32_t           axis;
    IndexMode          mode;

    if (!rel_tensors(c, loc, in, nin) || !rel_int_dtype(c, loc, in[1], "indices") ||
        !index_mode(c, loc, a->mode, &mode) || !rel_axis(c, loc, a->axis, in[0]->n, &axis) ||
        !rel_rank(c, loc, in[1], in[0]->n, "indices") || !not_empty(c, loc, in[0], axis))
        return NULL;
    for (uint32_t i = 0; i < in[0]->n; i++)
        if (i != axis && idx_sub(c->arith, in[1]->dims[i], in[0]->dims[i])->hi > 0)
            return error_at(c, E_TYPE, loc, "indices %s reach out of %s", type_text(c, in[1]),
                            type_text(c, in[0]));
    return rel_tensor(c, loc, in[0]->dtype, in[1]->n, in[1]->dims);
}

bool te_gather(Ctx *c, const OpCall *call, const Tensor *const *in, const Tensor **out)
{
    const GatherAttrs *attrs = call->attrs;
    Axes               a = te_axes_of(c, call->out[0]);
    uint32_t           axis = axis_of(attrs->axis, a.n);
    const Idx         *at[TE_MAX_AXES];
    IndexMode          mode;

    if (!index_mode(c, call->loc, attrs->mode, &mode))
        return false;
    for (uint32_t i = 0; i < a.n; i++)
        at[i] = a.at[i];
    at[axis] = te_index(c, te_at(c, in[1], a.at), call->in[0]->dims[axis], mode);
    return te_out(c, call, &a, te_at(c, in[0], at), out);
}

/* ---- gather_nd --------------------------------------------------------------------------------------- */

const Type *rel_gather_nd(Ctx *c, Loc loc, const void *attrs, const Type *const *in, uint32_t nin)
{
    const GatherNdAttrs *a = attrs;
    const Idx           *dims[2 * TE_MAX_AXES];
    uint32_t             n = 0;
    int64_t              m;

    if (!rel_tensors(c, loc, in, nin) || !rel_int_dtype(c, loc, in[1], "indices"))
        return NULL;
    if (!in[1]->n)
        return error_at(c, E_TYPE, loc, "the indices are a scalar");
    if (!rel_dim(c, loc, in[1], 0, &m))
        return NULL;
    if (a->batch_dims < 0 || a->batch_dims >= in[1]->n || m < 0 || m > in[0]->n ||
        a->batch_dims > in[0]->n - m)
        return error_at(c, E_TYPE, loc, "%lld coordinates and %lld batch dimensions of %s",
                        (long long)m, (long long)a->batch_dims, type_text(c, in[0]));
    uint32_t first = (uint32_t)(a->batch_dims + m);

    for (uint32_t i = 0; i < a->batch_dims; i++)
        if (!rel_dims_equal(c, loc, in[0]->dims[i], in[1]->dims[i + 1], "batch dimensions"))
            return NULL;
    for (uint32_t i = (uint32_t)a->batch_dims; i < first; i++)
        if (!not_empty(c, loc, in[0], i))
            return NULL;
    for (uint32_t i = 1; i < in[1]->n; i++)
        dims[n++] = in[1]->dims[i];
    for (uint32_t i = first; i < in[0]->n; i++)
        dims[n++] = in[0]->dims[i];
    return rel_tensor(c, loc, in[0]->dtype, n, dims);
}

bool te_gather_nd(Ctx *c, const OpCall *call, const Tensor *const *in, const Tensor **out)
{
    const GatherNdAttrs *attrs = call->attrs;
    const Type          *x = call->in[0], *y = call->in[1];
    uint32_t             batch = (uint32_t)attrs->batch_dims, m = (uint32_t)dim_of(y, 0);
    Axes                 a = te_axes_of(c, call->out[0]);
    const Idx           *at[TE_MAX_AXES], *iat[TE_MAX_AXES];

    for (uint32_t i = 1; i < y->n; i++)
        iat[i] = a.at[i - 1];
    for (uint32_t i = 0; i < x->n; i++) {
        at[i] = i < batch ? a.at[i] : i >= batch + m ? a.at[y->n - 1 + i - batch - m] : NULL;
        if (at[i])
            continue;
        iat[0] = idx_const(c->arith, i - batch);
        at[i] = te_index(c, te_at(c, in[1], iat), x->dims[i], INDEX_WRAP);
    }
    return te_out(c, call, &a, te_at(c, in[0], at), out);
}
