/* cumsum: running sums along an axis.                      %1 = cumsum(%0, axis=1);
 *
 * A statement of TIR: the loop along the axis is sequential, each cell adds to the one before. */
#include "ops/common.h"

const Type *rel_scan(Ctx *c, Loc loc, const void *attrs, const Type *const *in, uint32_t nin)
{
    const ScanAttrs *a = attrs;
    uint32_t         axis;

    if (!rel_tensors(c, loc, in, nin) || !rel_number(c, loc, in[0]) ||
        !rel_axis(c, loc, a->axis, in[0]->n, &axis))
        return NULL;
    return in[0];
}

bool te_cumsum(Ctx *c, const OpCall *call, const Tensor *const *in, const Tensor **out)
{
    const ScanAttrs *a = call->attrs;
    const Type      *t = call->out[0];
    uint32_t         axis = axis_of(a->axis, t->n);
    const Tensor    *y = te_extern_out(c, "out", t);
    const Atom      *var[TE_MAX_AXES];
    const Idx       *at[TE_MAX_AXES], *before[TE_MAX_AXES];

    for (uint32_t i = 0; i < t->n; i++) {
        var[i] = te_loop_var(c, i == axis ? "k" : "i", t->dims[i]);
        before[i] = at[i] = idx_atom(c->arith, var[i]);
    }
    before[axis] = idx_addc(c->arith, at[axis], -1);
    Pred        later = pred_and(c->arith, c->arena, PRED_TRUE, before[axis]);
    const Prim *x = te_at(c, in[0], a->exclusive ? before : at);
    const Prim *zero = prim_num(c, t->dtype, 0);
    const Prim *first = a->exclusive ? zero : te_at(c, in[0], at);
    const Prim *sum = prim_add(c, prim_load(c, y->buffer, before), x);

    if (later.n)
        sum = prim_select(c, pred_prim(c, later), sum, first);
    else
        sum = first; /* one cell */
    const Stmt *body = stmt_store(c, y->buffer, at, sum);

    body = loop_stmt(c, var[axis], t->dims[axis], 0, body);
    for (uint32_t i = t->n; i-- > 0;)
        if (i != axis)
            body = loop_stmt(c, var[i], t->dims[i], 0, body);
    out[0] = y;
    te_extern(c, 1, in, 1, out, body);
    return true;
}
