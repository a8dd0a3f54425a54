/* Algorithms of nn.max_pool2d: all cells of a window at once, or rows first.  What is kept of the
 * rows is stored and loaded once more, so windows of 2x2 are taken at once. */
#include "passes/graph/choose_algorithms.h"

/* A vector of results takes a maximum, and as long for a load or a store, of so many cells. */
static double cycles(const Ctx *c, const Expr *call, int64_t each)
{
    Machine m = machine_of(c->target);
    double  n = (double)each * dtype_bytes(call->type->dtype);

    for (uint32_t i = 0; i < call->type->n; i++)
        n *= (double)call->type->dims[i]->lo;
    return n / (double)(m.vector_bytes ? m.vector_bytes : 1);
}

double time_max_pool2d(Ctx *c, const Expr *call, const Algorithm *a)
{
    const int64_t *k = ATTRS_OF(Pool2dAttrs, call)->pool_size.at;

    (void)a;
    return cycles(c, call, k[0] * k[1]);
}

double time_max_pool2d_rows(Ctx *c, const Expr *call, const Algorithm *a)
{
    const int64_t *k = ATTRS_OF(Pool2dAttrs, call)->pool_size.at;

    (void)a;
    return has_vectors(c->target) && call->type->n == 4 ? cycles(c, call, k[0] + k[1] + 2) : NEVER;
}
