/* simplify_inference: operators that only training needs become simpler ones.
 *
 * Each operator says itself how (`expand` in ops.def): batch normalization becomes a multiply and
 * an add per channel, dropout its operand.  An operator with a compute function of its own stays,
 * as it has a kernel.
 *
 *   %1 = nn.batch_norm(%0, %gamma, %beta, %mean, %var);  nn.relu(%1.0)
 *     -> %2 = sqrt(add(%var, 1e-05)) ..;  %6 = multiply(%0, %4);  %7 = add(%6, %5);  nn.relu(%7)
 *
 * An expansion may hold operators that expand again, so the pass repeats until nothing changes;
 * each time is one rewrite of the module. */
#include "passes/graph/graph.h"

static const Expr *expand(Ctx *c, void *user, const Expr *was, const Expr *now)
{
    const Op *op = call_op(now);

    (void)user;
    (void)was;
    return op && op->compute ? now : op_expand(c, now);
}

const Module *simplify_inference(Ctx *c, const Module *m)
{
    for (int i = 0; i < MAX_EXPANSIONS; i++) {
        const Module *next = module_rewrite(c, m, expand, NULL);

        if (!next || next == m)
            return next;
        m = next;
    }
    return m;
}
