/* A tensor with other cells in a range along one dimension, from another place on in each row of
 * the first: a cache of keys and values and what is new in it.
 *
 *     %1 = update_range(%0, %new, %start, axis=2);   // %0 (N, 8, 512, 64), %new (N, 8, 3, 64)
 *     %1[n, h, start[n] + t, d] = %new[n, h, t, d]
 *
 * What would lie beyond the dimension is left out; with `circular` it begins anew.  Lowering writes
 * the new cells where the tensor lies (docs/design/flow.md). */
#include "ops/common.h"

const Type *rel_update_range(Ctx *c, Loc loc, const void *attrs, const Type *const *in,
                             uint32_t nin)
{
    const UpdateRangeAttrs *a = attrs;
    uint32_t                axis;

    if (!rel_tensors(c, loc, in, nin) || !rel_same_dtype(c, loc, in[0], in[1]) ||
        !rel_int_dtype(c, loc, in[2], "the beginnings") ||
        !rel_rank(c, loc, in[1], in[0]->n, "the new cells") ||
        !rel_rank(c, loc, in[2], 1, "the beginnings") ||
        !rel_axis(c, loc, a->axis, in[0]->n, &axis))
        return NULL;
    if (axis == 0)
        return error_at(c, E_TYPE, loc, "the first dimension has a range for each of its rows");
    for (uint32_t i = 0; i < in[0]->n; i++)
        if (i != axis && !rel_dims_equal(c, loc, in[0]->dims[i], in[1]->dims[i], "new cells"))
            return NULL;
    if (in[1]->dims[axis]->hi < 1)
        return error_at(c, E_TYPE, loc, "there are no new cells in %s", type_text(c, in[1]));
    return rel_dims_equal(c, loc, in[0]->dims[0], in[2]->dims[0], "beginnings") ? in[0] : NULL;
}

/* Where the range of this row begins. */
static const Prim *beginning(Ctx *c, const Tensor *starts, const Axes *a)
{
    return prim_cast(c, DT_I64, te_at(c, starts, a->at));
}

/* x + from, counted around n cells. */
static const Idx *around(Ctx *c, const Idx *x, const Idx *from, const Idx *n)
{
    return idx_mod(c->arith, idx_add(c->arith, x, from),
                   idx_max(c->arith, n, idx_const(c->arith, 1)));
}

static const Prim *within(Ctx *c, const Prim *x, const Idx *n)
{
    return prim_and(c, prim_le(c, prim_int(c, DT_I64, 0), x),
                    prim_lt(c, x, prim_index(c, DT_I64, n)));
}

/* Each cell as it was, or the new one that comes here. */
static bool choose_cells(Ctx *c, const OpCall *call, uint32_t axis, const Tensor *const *in,
                         const Tensor **out)
{
    const UpdateRangeAttrs *u = call->attrs;
    Axes                    a = te_axes_of(c, call->out[0]);
    const Idx              *length = call->in[1]->dims[axis], *at[TE_MAX_AXES];
    const Prim             *start = beginning(c, in[2], &a), *k;

    for (uint32_t i = 0; i < call->in[0]->n; i++)
        at[i] = a.at[i];
    if (u->circular)
        k = prim_index(c, DT_I64,
                       around(c, a.at[axis], idx_mulc(c->arith, te_number_at(c, start), -1),
                              call->in[0]->dims[axis]));
    else
        k = prim_sub(c, prim_index(c, DT_I64, a.at[axis]), start);
    at[axis] = te_index(c, k, length, INDEX_CLIP);
    return te_out(c, call, &a,
                  prim_select(c, within(c, k, length), te_at(c, in[1], at), te_at(c, in[0], a.at)),
                  out);
}

/* The new cells alone. */
static bool store_cells(Ctx *c, const OpCall *call, uint32_t axis, const Tensor *const *in,
                        const Tensor **out)
{
    const UpdateRangeAttrs *u = call->attrs;
    Axes                    a = te_axes_of(c, call->in[1]);
    const Tensor           *y = te_extern_out(c, "out", call->out[0]);
    const Idx              *room = call->in[0]->dims[axis], *to[TE_MAX_AXES];
    const Prim             *start = beginning(c, in[2], &a), *k;
    const Stmt             *s;

    for (uint32_t i = 0; i < call->in[0]->n; i++)
        to[i] = a.at[i];
    if (u->circular)
        k = prim_index(c, DT_I64, around(c, a.at[axis], te_number_at(c, start), room));
    else
        k = prim_add(c, prim_index(c, DT_I64, a.at[axis]), start);
    to[axis] = te_index(c, k, room, INDEX_CLIP);
    s = stmt_store(c, y->buffer, to, te_at(c, in[1], a.at));
    for (uint32_t i = call->in[0]->n; i-- > 0;) {
        if (i == axis)
            s = stmt_if(c, within(c, k, room), s, NULL);
        s = loop_stmt(c, a.atom[i], a.extent[i], s);
    }
    out[0] = y;
    te_extern(c, 2, in + 1, 1, out, s);
    return true;
}

bool te_update_range(Ctx *c, const OpCall *call, const Tensor *const *in, const Tensor **out)
{
    const UpdateRangeAttrs *u = call->attrs;
    uint32_t                axis = axis_of(u->axis, call->in[0]->n);

    return call->in_place ? store_cells(c, call, axis, in, out)
                          : choose_cells(c, call, axis, in, out);
}
