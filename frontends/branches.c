/* Branches: Relay's `if` of formats whose control flow is structured (docs/design/flow.md). */
#include "frontends/calls.h"

#include <string.h>

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

/* ---- a branch that cannot be compiled -------------------------------------------------------------- */

/* `and` and `or` of some formats are branches themselves: the one that is taken. */
static const Expr *taken(Ctx *c, void *user, const Expr *was, const Expr *now)
{
    const Expr *k = now->kind == EXPR_IF ? build_fold(user, now->kids[0]) : NULL;
    double      f;

    (void)c;
    (void)was;
    return k && expr_const_f(k, &f) ? now->kids[f != 0 ? 1 : 2] : now;
}

/* Whether the condition holds where `input` is this number in all of its cells; false with nothing
 * said: it is no number of the input's type, or other things decide, too. */
static bool holds_at(const Build *b, const Expr *cond, const Expr *input, const char *number,
                     bool *holds)
{
    ImportValue v = {.name = input->u.var.name, .text = number};
    uint32_t    before = diag_errors(b->c->diags);
    const Expr *is = value_expr(b->c, b->loc, &v, input->type), *k;
    double      f;

    k = is ? expr_bind(b->c, cond, 1, &input, &is) : NULL;
    k = k ? expr_rewrite(b->c, k, taken, (void *)(uintptr_t)b) : NULL;
    k = k ? build_fold(b, k) : NULL;
    diag_drop(b->c->diags, before);
    if (!k || !expr_const_f(k, &f))
        return false;
    *holds = f != 0;
    return true;
}

static const char *number_text(const Build *b, const Expr *e)
{
    double v;
    Ints   i;

    if (e->kind != EXPR_CONST || !expr_is_tensor(e) || !expr_single(e))
        return NULL;
    if (expr_ints(b->c, e, &i) && i.n == 1)
        return arena_printf(b->c->arena, "%lld", (long long)i.at[0]);
    return expr_const_f(e, &v) ? arena_printf(b->c->arena, "%.9g", v) : NULL;
}

/* A number for the input with which the condition holds, or does not: one that the condition names,
 * or, of a bool, one of the two. */
static const char *number_for(const Build *b, const Expr *cond, ExprList nodes, const Expr *input,
                              bool want)
{
    static const char *const bools[] = {"0", "1"};
    bool                     holds;

    for (uint32_t i = 0; i < nodes.n; i++) {
        const char *number = number_text(b, nodes.at[i]);

        if (number && holds_at(b, cond, input, number, &holds) && holds == want)
            return number;
    }
    for (uint32_t i = 0; dtype_is_bool(expr_dtype(input)) && i < COUNT(bools); i++)
        if (holds_at(b, cond, input, bools[i], &holds) && holds == want)
            return bools[i];
    return NULL;
}

static bool is_input(const Shapes *s, const Expr *e)
{
    if (e->kind != EXPR_VAR || !expr_is_tensor(e))
        return false;
    for (uint32_t i = 0; i < s->inputs.n; i++)
        if (!strcmp(s->inputs.at[i], e->u.var.name))
            return true;
    return false;
}

bool build_no_branch(const Build *b, const Shapes *s, const Expr *cond, BranchFault fault)
{
    ExprList    nodes = expr_post_order(b->c, cond);
    const Expr *input = NULL;
    const char *number = NULL;
    uint32_t    n = 0;
    StrBuf      names = strbuf(b->c->arena);

    for (uint32_t i = 0; i < nodes.n; i++) {
        if (!is_input(s, nodes.at[i]))
            continue;
        input = nodes.at[i];
        if (!expr_single(input)) /* data, for which no number stands */
            return false;
        str_printf(&names, "%s'%s'", n++ ? ", " : "", input->u.var.name);
    }
    if (n == 0)
        return false;
    if (n == 1 && fault != BRANCHES_DIFFER && dtype_is_bool(expr_dtype(cond)))
        number = number_for(b, cond, nodes, input, fault == NO_ELSE_BRANCH);
    if (number)
        diag_hint(b->c->diags, "input %s decides the branch: --value %s=%s takes the other one",
                  names.at, input->u.var.name, number);
    else
        diag_hint(b->c->diags,
                  "input%s %s decide%s the branch: --value %s=<number> chooses one when compiling",
                  n > 1 ? "s" : "", names.at, n > 1 ? "" : "s", input->u.var.name);
    return false;
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
