/* How often a Loop runs whose condition counts.
 *
 *     Loop(50, true, 0, %h) { (%i, %go, %n, %h) -> less(cast(%n + 1), 50.0), %n + 1, .. }     50
 * rounds
 *
 * Exporters of TensorFlow write a loop over the steps of a sequence so.  A counter is the number of
 * the round, or a state of which each round makes one that is larger or smaller by a number.  The
 * condition holds while comparisons of counters and numbers do, all of them; anything else is for
 * the run to decide. */
#include "frontends/onnx/onnx.h"

#include <math.h>

/* What a counter is in round j: first + j * step.  most: so large it may become, as what it is cast
 * to holds no larger ones without rounding. */
typedef struct {
    int64_t first, step, most;
} Counter;

static const Expr *plain(const Expr *e)
{
    while (call_is(e, "reshape"))
        e = call_arg(e, 0);
    return e;
}

static bool whole(const Build *b, const Expr *e, int64_t *v)
{
    const Expr *k = build_fold(b, e);
    Ints        at;

    if (!k || !expr_ints(b->c, k, &at) || at.n != 1)
        return false;
    *v = at.at[0];
    return true;
}

static int64_t most_of(DType t)
{
    if (!dtype_is_float(t))
        return ((int64_t)1 << (dtype_bytes(t) < 8 ? 8 * dtype_bytes(t) - 1 : 62)) - 1;
    return (int64_t)1 << (dtype_eq(t, DT_F64)   ? 53
                          : dtype_eq(t, DT_F32) ? 24
                          : dtype_eq(t, DT_F16) ? 11
                                                : 8);
}

/* var plus a number, which is *more. */
static bool moved(const Build *b, const Expr *e, const Expr **var, int64_t *more)
{
    int64_t v;

    *more = 0;
    for (e = plain(e); call_is(e, "add") || call_is(e, "subtract"); e = plain(e)) {
        bool     minus = call_is(e, "subtract");
        uint32_t at = whole(b, call_arg(e, 1), &v) ? 1 : 0;

        if (!dtype_is_int(expr_dtype(e)) || (at == 0 && minus) ||
            (at == 0 && !whole(b, call_arg(e, 0), &v)) ||
            (minus ? !checked_sub(*more, v, more) : !checked_add(*more, v, more)))
            return false;
        e = call_arg(e, 1 - at);
    }
    *var = e;
    return e->kind == EXPR_VAR;
}

static bool counter(const Build *b, const OnnxLoop *l, const Expr *const *in,
                    const Expr *const *out, const Expr *e, Counter *k)
{
    const Expr *var, *same;
    int64_t     ahead;

    k->most = INT64_MAX;
    for (e = plain(e); call_is(e, "cast"); e = plain(call_arg(e, 0)))
        k->most = k->most < most_of(expr_dtype(e)) ? k->most : most_of(expr_dtype(e));
    if (!moved(b, e, &var, &ahead))
        return false;
    k->first = 0;
    k->step = 1;
    for (uint32_t i = 0; var != in[0]; i++) {
        if (i == l->states)
            return false;
        if (in[i + 2] != var)
            continue;
        if (!whole(b, l->first[i], &k->first) || !moved(b, out[i + 1], &same, &k->step) ||
            same != var)
            return false;
        break;
    }
    return checked_add(k->first, ahead, &k->first);
}

/* Rounds after which first + j * step < limit no longer holds. */
static bool rounds_below(const Counter *k, double limit, int64_t *rounds)
{
    double after = k->first >= limit ? 0 : ceil((limit - (double)k->first) / (double)k->step);

    if (k->first < limit && k->step <= 0)
        return false;
    *rounds = after < 1e15 ? 1 + (int64_t)after : INT64_MAX;
    return *rounds != INT64_MAX && fabs(limit) + fabs((double)k->step) <= (double)k->most;
}

static bool rounds_of(const Build *b, const OnnxLoop *l, const Expr *const *in,
                      const Expr *const *out, const Expr *cond, int64_t *rounds)
{
    static const struct {
        const char *op;
        bool        up, equal; /* counter below a number; or the number itself */
    } compare[] = {{"less", true, false},
                   {"less_equal", true, true},
                   {"greater", false, false},
                   {"greater_equal", false, true}};
    int64_t x, y;
    Counter k;
    double  limit;

    cond = plain(cond);
    if (call_is(cond, "logical_and")) {
        if (!rounds_of(b, l, in, out, call_arg(cond, 0), &x) ||
            !rounds_of(b, l, in, out, call_arg(cond, 1), &y))
            return false;
        *rounds = x < y ? x : y;
        return true;
    }
    for (uint32_t i = 0; i < COUNT(compare); i++) {
        bool        up = compare[i].up;
        const Expr *fold;

        if (!call_is(cond, compare[i].op))
            continue;
        for (uint32_t at = 0; at < 2; at++, up = !up) {
            fold = build_fold(b, call_arg(cond, 1 - at));
            if (!fold || !expr_const_f(fold, &limit) || !isfinite(limit) ||
                !counter(b, l, in, out, call_arg(cond, at), &k))
                continue;
            if (!up)
                k = (Counter){-k.first, -k.step, k.most};
            limit = up ? limit : -limit;
            return rounds_below(&k, compare[i].equal ? floor(limit) + 1 : ceil(limit), rounds);
        }
    }
    return false;
}

bool onnx_count(Node *n, const OnnxLoop *l, const Expr *const *in, const Expr *const *out,
                int64_t *rounds)
{
    int64_t most, first;

    if ((l->go && (!whole(&n->b, l->go, &first) || !first)) ||
        !rounds_of(&n->b, l, in, out, out[0], rounds))
        return false;
    if (l->limit && (!whole(&n->b, l->limit, &most) || most < 1))
        return false;
    *rounds = l->limit && most < *rounds ? most : *rounds;
    return true;
}
