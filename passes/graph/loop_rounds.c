/* Rounds of a loop, by its counters.
 *
 *   fn @while(%go, %i, ..) { if %go { @while(less(add(%i, 1), 5), add(%i, 1), ..) } else { .. } }
 *   @while(true, 0, ..)   // 5 rounds
 *   fn @while(%i, ..) { if less(%i, 5) { @while(add(%i, 1), ..) } else { .. } }
 *
 * A counter is a parameter of integers that begins at a number, to which every round adds another.
 * The condition compares counters with numbers: as they are where it is an expression of them, as
 * the next round has them where it is a parameter, whose next value compares them. */
#include "passes/graph/graph.h"

typedef struct {
    Ctx            *c;
    const Expr     *f, *call;
    const LoopForm *form;
} Counted;

static bool counts(const Counted *l, uint32_t k, int64_t *from, int64_t *step)
{
    const Expr *e = call_arg(l->form->again, k), *param = func_param(l->f, k);
    DType       t = param->type->kind == TYPE_TENSOR ? param->type->dtype : DT_F32;

    if (!call_is(e, "add") || dtype_is_float(t) || dtype_eq(t, DT_BOOL) ||
        !expr_number(l->c, call_arg(l->call, k), from))
        return false;
    for (uint32_t i = 0; i < 2; i++)
        if (call_arg(e, i) == param && expr_number(l->c, call_arg(e, 1 - i), step))
            return true;
    return false;
}

bool loop_counter(Ctx *c, const Expr *f, const LoopForm *form, const Expr *call, uint32_t k,
                  int64_t *from, int64_t *step)
{
    return counts(&(Counted){c, f, call, form}, k, from, step);
}

const Expr *loop_index(Ctx *c, const Expr *f, const LoopForm *form, const Expr *call)
{
    Counted l = {c, f, call, form};
    int64_t from, step;

    for (uint32_t k = 0; k < func_nparams(f); k++)
        if (counts(&l, k, &from, &step) && from == 0 && step == 1 &&
            func_param(f, k)->type->n == 0 && dtype_eq(func_param(f, k)->type->dtype, DT_I64))
            return func_param(f, k);
    return NULL;
}

/* Rounds until `cond` is false, of counters as they are, or, `ahead`, as the next round has them;
 * INT64_MAX where it is always true. */
static bool rounds_until(const Counted *l, const Expr *cond, bool ahead, int64_t *n)
{
    int64_t a, b, most, from, step;

    if (call_is(cond, "logical_and")) {
        if (!rounds_until(l, call_arg(cond, 0), ahead, &a) ||
            !rounds_until(l, call_arg(cond, 1), ahead, &b))
            return false;
        *n = a < b ? a : b;
        return true;
    }
    if (expr_number(l->c, cond, &a)) {
        *n = INT64_MAX;
        return a != 0;
    }
    if (!call_is(cond, "less") || !expr_number(l->c, call_arg(cond, 1), &most))
        return false;
    for (uint32_t k = 0; k < func_nparams(l->f); k++) {
        const Expr *x = ahead ? call_arg(l->form->again, k) : func_param(l->f, k);

        if (call_arg(cond, 0) != x || !counts(l, k, &from, &step))
            continue;
        if (step < 1 || !checked_sub(most, from, n) || !checked_add(*n, step - 1, n))
            return false;
        *n /= step;
        return true;
    }
    return false;
}

int64_t loop_rounds(Ctx *c, const Expr *f, const LoopForm *form, const Expr *call)
{
    Counted  l = {c, f, call, form};
    uint32_t go = 0, params = func_nparams(f);
    int64_t  first, n;

    if (form->until)
        return 0;
    while (go < params && func_param(f, go) != form->cond)
        go++;
    if (go == params)
        return rounds_until(&l, form->cond, false, &n) && n > 0 && n <= INT32_MAX ? n : 0;
    if (!expr_number(c, call_arg(call, go), &first) || !first ||
        !rounds_until(&l, call_arg(form->again, go), true, &n) || n > INT32_MAX)
        return 0;
    return n > 1 ? n : 1;
}
