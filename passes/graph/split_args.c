/* split_args: concatenations of more tensors than a kernel should have, as several.
 *
 *   concatenate((%0, %1, .. %39), axis=1)
 *
 *   %40 = concatenate((%0, .. %28), axis=1)
 *   %41 = concatenate((%29, .. %39), axis=1)
 *   concatenate((%40, %41), axis=1)
 *
 * A cell finds its tensor by a chain of conditions, as deep as there are tensors, and devices have
 * limits of their own (Target.max_buffers): Metal numbers the buffers of a kernel from 0 to 30.
 * Other kernels are kept small by fuse_ops. */
#include "passes/graph/graph.h"

enum { MAX_JOINED = 64 };

static const Expr *concatenated(Ctx *c, const Expr *call, uint32_t n, const Expr *const *parts)
{
    return make1(c, "concatenate", expr_tuple(c, n, parts, call->loc), call->u.attrs, call->loc);
}

/* A tree whose nodes have `most` operands at most. */
static const Expr *tree(Ctx *c, const Expr *call, uint32_t most, uint32_t n,
                        const Expr *const *parts)
{
    uint32_t     pieces = (n + most - 1) / most, i = 0;
    const Expr **e;

    if (n <= most)
        return concatenated(c, call, n, parts);
    e = NEW_ARRAY(c->scratch, const Expr *, pieces);
    for (uint32_t at = 0; at < n; at += most, i++) {
        uint32_t take = n - at < most ? n - at : most;

        e[i] = take > 1 ? concatenated(c, call, take, parts + at) : parts[at];
        if (!e[i])
            return NULL;
    }
    return tree(c, call, most, pieces, e);
}

static const Expr *rewrite(Ctx *c, void *user, const Expr *was, const Expr *now)
{
    const uint32_t most = *(const uint32_t *)user;
    const Expr    *all;

    (void)was;
    if (!call_is(now, "concatenate"))
        return now;
    all = call_arg(now, 0);
    return all->kind == EXPR_TUPLE && all->nkids > most ? tree(c, now, most, all->nkids, all->kids)
                                                        : now;
}

const Module *split_args(Ctx *c, const Module *m)
{
    uint32_t most = MAX_JOINED;

    if (c->target && c->target->max_buffers && c->target->max_buffers - 1 < most)
        most = c->target->max_buffers - 1;
    return module_rewrite(c, m, rewrite, &most);
}
