/* einsum. */
#include "frontends/pytorch/pytorch.h"

static const Expr *product(const Build *b, void *user, const Expr *x, const Expr *y)
{
    (void)b;
    return pt_matmul(user, x, y);
}

bool aten_einsum(PtNode *n)
{
    const Expr **xs;
    uint32_t     count;

    if (!pt_tensors(n, "tensors", &count, &xs))
        return false;
    return pt_done(n, build_einsum(&n->b, &(BuildEinsum){pt_string(n, "equation", ""), count, xs,
                                                         product, n}));
}
