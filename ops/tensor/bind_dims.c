/* Dimensions that a value of the run decides.
 *
 *     let %k = bind_dims(%n, dims=[K]);       // %n: Tensor[(1), i64], dim K in 0..24
 *     strided_slice(%x, begin=[0], end=[K])
 *
 * The cells of the operand, i64, are those dimensions in the rest of the `let`; where one is a
 * number, its cell has to be that.  Gives the operand back.  A cell outside of the bounds ends the
 * run (docs/ir/relay.md). */
#include "ops/common.h"

const Type *rel_bind_dims(Ctx *c, Loc loc, const void *attrs, const Type *const *in, uint32_t nin)
{
    const BindDimsAttrs *a = attrs;
    const Atom          *dim;
    int64_t              n;

    if (!rel_tensors(c, loc, in, nin))
        return NULL;
    if (!dtype_eq(in[0]->dtype, DT_I64) || in[0]->n > 1 || !type_elems(in[0], &n) ||
        n != (int64_t)a->dims.n)
        return error_at(c, E_TYPE, loc,
                        "%u dimensions are bound to %s, not to as many cells of i64", a->dims.n,
                        type_text(c, in[0]));
    for (uint32_t i = 0; i < a->dims.n; i++)
        if (!idx_is_const(a->dims.at[i], NULL) &&
            !(idx_is_atom(a->dims.at[i], &dim) && is_dim(c, dim)))
            return error_at(c, E_TYPE, loc, "'%s' is bound, which is no name of a dimension",
                            dim_text(c, a->dims.at[i]));
    return in[0];
}
