/* Operators that keep the elements in order: reshape, squeeze, expand_dims; and broadcast_to.
 *
 *     %1 = reshape(%0, newshape=[1, -1]);
 *
 * Where a cell of the result comes from is its linear position, cut up by the input's dimensions;
 * the index arithmetic removes every division that the shapes make unnecessary. */
#include "ops/common.h"

/* newshape with its 0 filled in; *hole: where it has -1, or -1. */
static bool new_dims(Ctx *c, Loc loc, Dims newshape, const Type *t, const Idx **dims, int32_t *hole)
{
    int64_t most = 1, d;

    *hole = -1;
    if (newshape.n > TE_MAX_AXES)
        return error_at(c, E_TYPE, loc, "a tensor of %u dimensions; at most %u are supported",
                        newshape.n, TE_MAX_AXES);
    for (uint32_t i = 0; i < newshape.n; i++) {
        bool number = idx_is_const(newshape.at[i], &d);

        dims[i] = newshape.at[i];
        if (number && d == 0 && i < t->n) {
            dims[i] = t->dims[i];
        } else if (number && d == -1 && *hole < 0) {
            *hole = (int32_t)i;
            continue;
        } else if (number ? d <= 0 : dims[i]->lo < 0) {
            return error_at(c, E_TYPE, loc, "newshape has %s at %u", dim_text(c, dims[i]), i);
        }
        if (!checked_mul(most, idx_usual(dims[i]), &most))
            return error_at(c, E_TYPE, loc, "the result is too large");
    }
    return type_elems_most(t, &most) || error_at(c, E_TYPE, loc, "the operand is too large");
}

const Type *rel_reshape(Ctx *c, Loc loc, const void *attrs, const Type *const *in, uint32_t nin)
{
    const ReshapeAttrs *a = attrs;
    const Idx          *dims[TE_MAX_AXES], *cells, *rest = idx_const(c->arith, 1);
    int32_t             hole;

    if (!rel_tensors(c, loc, in, nin) || !new_dims(c, loc, a->newshape, in[0], dims, &hole))
        return NULL;
    cells = type_cells(c, in[0]);
    for (uint32_t i = 0; i < a->newshape.n; i++)
        if ((int32_t)i != hole)
            rest = idx_mul(c->arith, rest, dims[i]);
    if (hole >= 0) {
        if (!(dims[hole] = idx_div_exact(c->arith, cells, rest)))
            return error_at(c, E_TYPE, loc,
                            "%s cannot take the new shape: %s elements in rows of %s",
                            type_text(c, in[0]), dim_text(c, cells), dim_text(c, rest));
    } else if (rest != cells) {
        return error_at(c, E_TYPE, loc, "%s cannot take a shape of %s elements",
                        type_text(c, in[0]), dim_text(c, rest));
    }
    return rel_tensor(c, loc, in[0]->dtype, a->newshape.n, dims);
}

const Type *rel_squeeze(Ctx *c, Loc loc, const void *attrs, const Type *const *in, uint32_t nin)
{
    const SqueezeAttrs *a = attrs;
    const Idx          *dims[TE_MAX_AXES];
    uint32_t            set, n = 0;

    if (!rel_tensors(c, loc, in, nin) || !rel_axes(c, loc, a->axis, in[0]->n, &set))
        return NULL;
    for (uint32_t i = 0; i < in[0]->n; i++) {
        int64_t v;
        bool    one = type_dim(in[0], i, &v) && v == 1;

        if (a->axis.n && set >> i & 1 && !one)
            return error_at(c, E_TYPE, loc, "dimension %u of %s is not 1", i, type_text(c, in[0]));
        if (!(set >> i & 1) || !one)
            dims[n++] = in[0]->dims[i];
    }
    return rel_tensor(c, loc, in[0]->dtype, n, dims);
}

const Type *rel_expand_dims(Ctx *c, Loc loc, const void *attrs, const Type *const *in, uint32_t nin)
{
    const ExpandDimsAttrs *a = attrs;
    const Idx             *dims[TE_MAX_AXES];
    uint32_t               axis, n;

    if (!rel_tensors(c, loc, in, nin))
        return NULL;
    if (a->num_newaxis < 0 || a->num_newaxis > TE_MAX_AXES - (int64_t)in[0]->n)
        return error_at(c, E_TYPE, loc, "%lld new dimensions for %s", (long long)a->num_newaxis,
                        type_text(c, in[0]));
    if (!rel_axis(c, loc, a->axis, in[0]->n + 1, &axis))
        return NULL;
    n = in[0]->n + (uint32_t)a->num_newaxis;
    for (uint32_t i = 0; i < n; i++) {
        bool new = i >= axis &&i < axis + a->num_newaxis;

        dims[i] =
            new ? idx_const(c->arith, 1) : in[0]->dims[i < axis ? i : i - (uint32_t)a->num_newaxis];
    }
    return rel_tensor(c, loc, in[0]->dtype, n, dims);
}

/* All three. */
bool te_reshape(Ctx *c, const OpCall *call, const Tensor *const *in, const Tensor **out)
{
    const Type *t = call->in[0];
    Axes        a = te_axes_of(c, call->out[0]);
    const Idx  *flat = idx_const(c->arith, 0), *at[TE_MAX_AXES];

    for (uint32_t i = 0; i < a.n; i++)
        flat = idx_add(c->arith, idx_mul(c->arith, flat, call->out[0]->dims[i]), a.at[i]);
    for (uint32_t i = t->n; i-- > 0;) {
        int64_t n;

        if (idx_is_const(t->dims[i], &n) && n <= 1) { /* also an empty one */
            at[i] = idx_const(c->arith, 0);
            continue;
        }
        at[i] = i ? idx_mod(c->arith, flat, t->dims[i]) : flat;
        flat = idx_div(c->arith, flat, t->dims[i]);
    }
    return te_out(c, call, &a, te_at(c, in[0], at), out);
}

const Type *rel_broadcast_to(Ctx *c, Loc loc, const void *attrs, const Type *const *in,
                             uint32_t nin)
{
    const BroadcastToAttrs *a = attrs;
    const Idx              *dims[TE_MAX_AXES];
    uint32_t                n;

    if (!rel_tensors(c, loc, in, nin) || !rel_dims(c, loc, "shape", a->shape, a->shape.n, 0))
        return NULL;
    const Type *want = rel_tensor(c, loc, in[0]->dtype, a->shape.n, a->shape.at);

    if (!want || !rel_bcast_dims(c, loc, in[0], want, &n, dims))
        return NULL;
    return rel_tensor(c, loc, in[0]->dtype, n, dims);
}

bool te_broadcast_to(Ctx *c, const OpCall *call, const Tensor *const *in, const Tensor **out)
{
    Axes a = te_axes_of(c, call->out[0]);

    return te_out(c, call, &a, te_in(c, in[0], &a), out);
}
