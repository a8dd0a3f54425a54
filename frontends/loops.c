/* Loops: functions that call themselves at their end (docs/design/flow.md).
 *
 *     fn @loop(%go, %a, %b) { if %go { .. @loop(%go1, %a1, %b1) } else { (%a, %b) } }
 *
 * A body sees its variables, and constants; what else it uses can be made a variable (lift.c). */
#include "frontends/calls.h"

static const Expr *loop(const Build *b, const BuildLoop *l, GlobalDefs *functions)
{
    Ctx         *c = b->c;
    uint32_t     all = l->n + 1;
    const Expr **vars = NEW_ARRAY(c->arena, const Expr *, all),
               **args = NEW_ARRAY(c->arena, const Expr *, all);
    const Type **types = NEW_ARRAY(c->arena, const Type *, all);
    const Expr  *end, *again, *body, *func, *self;

    vars[0] = expr_var(c, "go", type_tensor(c, DT_BOOL, 0, NULL), b->loc);
    args[0] = l->next_go;
    types[0] = vars[0]->type;
    for (uint32_t i = 1; i < all; i++) {
        vars[i] = l->var[i - 1];
        args[i] = l->next[i - 1];
        types[i] = vars[i]->type;
    }
    if (!(end = expr_tuple(c, l->n, l->var, b->loc)))
        return NULL;
    self = expr_global(c, l->name, type_func(c, all, types, end->type), b->loc);
    if (!(again = expr_apply(c, self, all, args, b->loc)) ||
        !(body = expr_if(c, vars[0], again, end, b->loc)) ||
        !(func = expr_func(c, all, vars, body, (FuncData){.ret = end->type}, b->loc)))
        return NULL;
    vec_push(c->arena, functions, ((GlobalDef){l->name, func}));
    args[0] = l->first_go;
    for (uint32_t i = 1; i < all; i++)
        args[i] = l->first[i - 1];
    return expr_apply(c, self, all, args, b->loc);
}

/* The same loop with variables for what its body uses from outside. */
static bool lifted(const Build *b, const BuildLoop *l, BuildLoop *out)
{
    Arena       *a = b->c->arena;
    const Expr **round = NEW_ARRAY(a, const Expr *, l->n + 1), **v[3], *now;
    BuildLift    lift;
    uint32_t     all;

    round[0] = l->next_go;
    for (uint32_t i = 0; i < l->n; i++)
        round[i + 1] = l->next[i];
    build_lift_begin(b, &lift, l->n, l->var);
    if (!(now = build_lift(b, &lift, expr_tuple(b->c, l->n + 1, round, b->loc))))
        return false;
    all = l->n + lift.params.n;
    for (uint32_t k = 0; k < 3; k++)
        v[k] = NEW_ARRAY(a, const Expr *, all + 1);
    for (uint32_t i = 0; i < all; i++) {
        bool own = i < l->n;

        v[0][i] = own ? l->var[i] : lift.params.at[i - l->n];
        v[1][i] = own ? l->first[i] : lift.args.at[i - l->n];
        v[2][i] = own ? now->kids[i + 1] : lift.params.at[i - l->n];
    }
    *out = (BuildLoop){l->name, all, v[0], v[1], v[2], l->first_go, now->kids[0], false};
    return true;
}

const Expr *build_while(const Build *b, const BuildLoop *l, GlobalDefs *functions)
{
    BuildLoop wide;

    if (!l->lifts)
        return loop(b, l, functions);
    return lifted(b, l, &wide) ? loop(b, &wide, functions) : NULL;
}

static const Expr *folded(const Build *b, const Expr *e)
{
    const Expr *k = e ? build_fold(b, e) : NULL;

    return k ? k : e;
}

bool build_rounds(const Build *b, const char *name, const Idx *count, uint32_t n,
                  const Expr *const *first, BuildRound *fn, void *user, const Expr **out,
                  GlobalDefs *functions)
{
    Ctx         *c = b->c;
    const Type  *number = type_tensor(c, DT_I64, 0, NULL);
    const Expr  *zero = expr_scalar(c, DT_I64, 0), *limit, *i, *all;
    const Expr **var = NEW_ARRAY(c->arena, const Expr *, n + 1),
               **next = NEW_ARRAY(c->arena, const Expr *, n + 1),
               **from = NEW_ARRAY(c->arena, const Expr *, n + 1);
    int64_t rounds;

    if (idx_is_const(count, &rounds) && rounds == 1)
        return fn(b, user, zero, first, out);
    i = expr_var(c, "i", number, b->loc);
    for (uint32_t k = 0; k < n; k++) {
        if (!first[k])
            return false;
        from[k] = first[k];
        var[k] = expr_var(c, "state", first[k]->type, b->loc);
    }
    var[n] = i;
    from[n] = zero;
    next[n] = build_by(b, "add", i, 1);
    limit = build_values(b, number, (Dims){1, &count});
    BuildLoop l = {.name = name, .n = n + 1, .var = var, .first = from, .next = next};

    l.first_go = folded(b, build_less(b, zero, limit));
    l.next_go = build_less(b, next[n], limit);
    if (!l.first_go || !l.next_go || !fn(b, user, i, var, next) ||
        !(all = build_while(b, &l, functions)))
        return false;
    for (uint32_t k = 0; k < n; k++)
        if (!(out[k] = build_proj(b, all, k)))
            return false;
    return true;
}
