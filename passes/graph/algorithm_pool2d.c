/* Algorithms of pools on plain images: all cells of a window at once, or its rows first, which are
 * stored and loaded once more.  In blocks of channels, vectors as they are, all are taken at once.
 */
#include "passes/graph/choose_algorithms.h"

static PlainWindows windows_of(const Expr *call)
{
    const Pool2dAttrs *a = ATTRS_OF(Pool2dAttrs, call);
    const Type        *out = call->type, *in = call_arg(call, 0)->type;
    const int64_t     *pad = a->padding.at;
    PlainWindows p = {.images = (double)idx_usual(out->dims[0]) * (double)idx_usual(out->dims[1]),
                      .y = (double)idx_usual(out->dims[2]),
                      .x = (double)idx_usual(out->dims[3]),
                      .in_x = (double)(idx_usual(in->dims[3]) + pad[1] + pad[3]),
                      .window = {a->pool_size.at[0], a->pool_size.at[1], a->strides.at[1],
                                 call_is(call, "nn.max_pool2d")}};

    if (a->ceil_mode || pad[0] || pad[1] || pad[2] || pad[3])
        p.copied = (double)(idx_usual(in->dims[2]) + pad[0] + pad[2]);
    return p;
}

static double plain_cycles(const Ctx *c, const Expr *call, bool rows_first)
{
    Machine      m = machine_of(c->target);
    PlainWindows p = windows_of(call);

    return plain_windows_cycles(&m, has_vectors(c->target) ? m.vector_bytes / 4 : 1, &p,
                                rows_first);
}

double plain_pool_cycles(const Ctx *c, const Expr *call)
{
    double direct = plain_cycles(c, call, false), rows = plain_cycles(c, call, true);

    return direct < rows ? direct : rows;
}

double time_pool2d(Ctx *c, const Expr *call, const Algorithm *a)
{
    const Pool2dAttrs *p = ATTRS_OF(Pool2dAttrs, call);
    Machine            m = machine_of(c->target);
    double             cells = 1;

    (void)a;
    if (call->type->n == 4)
        return plain_cycles(c, call, false);
    for (uint32_t i = 0; i < 4; i++)
        cells *= (double)idx_usual(call->type->dims[i]);
    return cells * (double)(p->pool_size.at[0] * p->pool_size.at[1]) /
           fma_rate(&m, idx_usual(call->type->dims[4]));
}

double time_pool2d_rows(Ctx *c, const Expr *call, const Algorithm *a)
{
    (void)a;
    return has_vectors(c->target) && call->type->n == 4 ? plain_cycles(c, call, true) : NEVER;
}
