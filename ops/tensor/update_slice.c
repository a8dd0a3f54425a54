/* A tensor with another slice in the place of one of its own.
 *
 *     %1 = update_slice(%0, %piece, %i);      // %0[%i] = %piece: %0 (8, 2, 3), %piece (2, 3)
 *
 * Where %i is no position of the first dimension, the tensor stays as it was.  A loop collects its
 * results so (docs/design/flow.md): lowering writes the piece where the tensor lies. */
#include "ops/common.h"

const Type *rel_update_slice(Ctx *c, Loc loc, const void *attrs, const Type *const *in,
                             uint32_t nin)
{
    (void)attrs;
    if (!rel_tensors(c, loc, in, nin) || !rel_same_dtype(c, loc, in[0], in[1]) ||
        !rel_int_dtype(c, loc, in[2], "the position"))
        return NULL;
    if (in[0]->n != in[1]->n + 1 || in[2]->n)
        return error_at(c, E_TYPE, loc, "%s is no slice of %s at %s", type_text(c, in[1]),
                        type_text(c, in[0]), type_text(c, in[2]));
    for (uint32_t i = 0; i < in[1]->n; i++)
        if (!rel_dims_equal(c, loc, in[0]->dims[i + 1], in[1]->dims[i], "dimensions of a slice"))
            return NULL;
    return in[0];
}

bool te_update_slice(Ctx *c, const OpCall *call, const Tensor *const *in, const Tensor **out)
{
    Axes        a = te_axes_of(c, call->out[0]);
    const Prim *at = prim_cast(c, DT_I64, te_at(c, in[2], NULL)), *here;

    here = prim_eq(c, prim_index(c, DT_I64, a.at[0]), at);
    return te_out(c, call, &a,
                  prim_select(c, here, te_at(c, in[1], a.at + 1), te_at(c, in[0], a.at)), out);
}
