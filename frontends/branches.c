/* Branches: Relay's `if` of formats whose control flow is structured (docs/design/flow.md). */
#include "frontends/calls.h"

const Expr *build_condition(const Build *b, const Expr *e)
{
    const Expr *k;

    if (!e)
        return NULL;
    if (!expr_single(e))
        return build_error(b, E_IMPORT, "the condition is %s, not one cell",
                           type_text(b->c, e->type));
    e = build_reshape(b, e, 0, NULL);
    if (e && !dtype_is_bool(expr_dtype(e)))
        e = build2(b, "not_equal", e, build_scalar(b, e, 0), NULL);
    k = e && e->kind != EXPR_CONST ? build_fold(b, e) : NULL;
    return k ? k : e;
}

bool build_choose(const Build *b, const Expr *cond, uint32_t n, const Expr *const *yes,
                  const Expr *const *no, const Expr **out)
{
    const Expr *both;

    if (n == 0)
        return true;
    for (uint32_t i = 0; i < n; i++)
        if (yes[i]->type != no[i]->type)
            return build_error(b, E_UNSUPPORTED,
                               "output %u is %s in one branch and %s in the other", i,
                               type_text(b->c, yes[i]->type), type_text(b->c, no[i]->type));
    if (n == 1)
        return (out[0] = expr_if(b->c, cond, yes[0], no[0], b->loc)) != NULL;
    both = expr_if(b->c, cond, expr_tuple(b->c, n, yes, b->loc), expr_tuple(b->c, n, no, b->loc),
                   b->loc);
    for (uint32_t i = 0; i < n; i++)
        if (!(out[i] = build_proj(b, both, i)))
            return false;
    return true;
}
