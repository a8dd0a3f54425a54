/* How often a Loop runs whose condition counts.
 *
 *     Loop(50, true, 0, %h) { (%i, %go, %n, %h) -> less(cast(%n + 1), 50.0), %n + 1, .. }
 *     Loop(_, less(0, T), 0, T, %h) { (%i, %go, %n, %t, %h) -> less(%n + 1, %t), %n + 1, %t, .. }
 *
 * 50 rounds, and T.  Exporters of TensorFlow write a loop over the steps of a sequence so.  A
 * counter is the number of the round, or a state of which each round makes one that is larger or
 * smaller by a number; a limit a number, a form over dimensions, or a state that stays such.  The
 * condition holds while comparisons of counters and limits do, all of them; anything else is for
 * the run to decide. */
#include "frontends/onnx/onnx.h"

#include <math.h>

/* What a counter is in round j: first + j * step.  most: so large it may become, as what it is cast
 * to holds no larger ones without rounding. */
typedef struct {
    const Idx *first;
    int64_t    step, most;
} Counter;

enum { LARGEST_BITS = 53 }; /* of numbers here: sums of a few of them do not overflow */

static bool in_range(int64_t lo, int64_t hi)
{
    return lo > -((int64_t)1 << LARGEST_BITS) && hi < (int64_t)1 << LARGEST_BITS;
}

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

/* An integer as a form over dimensions. */
static const Idx *form_of(const Build *b, const Expr *e)
{
    Dims form;

    return dtype_is_int(expr_dtype(e)) && build_forms(b, e, &form) && form.n == 1 &&
                   in_range(form.at[0]->lo, form.at[0]->hi)
               ? form.at[0]
               : NULL;
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

/* What e is a cast of, and the largest number that all of these types hold. */
static const Expr *uncast(const Expr *e, int64_t *most)
{
    *most = INT64_MAX;
    for (e = plain(e); call_is(e, "cast"); e = plain(call_arg(e, 0)))
        *most = *most < most_of(expr_dtype(e)) ? *most : most_of(expr_dtype(e));
    return e;
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

    if (!moved(b, uncast(e, &k->most), &var, &ahead))
        return false;
    k->first = idx_const(b->c->arith, 0);
    k->step = 1;
    for (uint32_t i = 0; var != in[0]; i++) {
        if (i == l->states)
            return false;
        if (in[i + 2] != var)
            continue;
        if (!(k->first = form_of(b, l->first[i])) || !moved(b, out[i + 1], &same, &k->step) ||
            same != var)
            return false;
        break;
    }
    if (!in_range(k->step, k->step) || !in_range(ahead, ahead))
        return false;
    k->first = idx_addc(b->c->arith, k->first, ahead);
    return true;
}

/* The state that is handed on as it came: what it was at first; else e. */
static const Expr *unchanged(const OnnxLoop *l, const Expr *const *in, const Expr *const *out,
                             const Expr *e)
{
    for (uint32_t i = 0; i < l->states; i++)
        if (e == in[i + 2] && plain(out[i + 1]) == e)
            return l->first[i];
    return e;
}

/* What a counter is compared with, for numbers from which on `counter < limit` does not hold. NULL:
 * not known.  most: as that of a counter. */
static const Idx *limit_of(const Build *b, const OnnxLoop *l, const Expr *const *in,
                           const Expr *const *out, const Expr *e, bool up, bool equal,
                           int64_t *most)
{
    Arith      *A = b->c->arith;
    const Expr *fold = build_fold(b, e);
    const Idx  *form;
    double      v;

    *most = INT64_MAX;
    if (fold && expr_const_f(fold, &v)) {
        v = up ? v : -v;
        v = equal ? floor(v) + 1 : ceil(v);
        return fabs(v) < ldexp(1, LARGEST_BITS) ? idx_const(A, (int64_t)v) : NULL;
    }
    form = form_of(b, unchanged(l, in, out, uncast(e, most)));
    return form ? idx_addc(A, idx_mulc(A, form, up ? 1 : -1), equal) : NULL;
}

/* Rounds after which first + j * step < limit no longer holds; NULL: not known.  Dimensions without
 * bounds are taken for such that are cast to floats without rounding. */
static const Idx *rounds_below(Arith *A, const Counter *k, const Idx *limit)
{
    const Idx *above = idx_sub(A, limit, k->first);
    int64_t    most = limit->hi > -limit->lo ? limit->hi : -limit->lo;

    if (!idx_is_open(limit) && most + (k->step < 0 ? -k->step : k->step) > k->most)
        return NULL;
    if (above->hi <= 0)
        return idx_const(A, 1);
    if (k->step <= 0)
        return NULL;
    return idx_addc(
        A, idx_max(A, idx_divc(A, idx_addc(A, above, k->step - 1), k->step), idx_const(A, 0)), 1);
}

static const Idx *rounds_of(const Build *b, const OnnxLoop *l, const Expr *const *in,
                            const Expr *const *out, const Expr *cond)
{
    static const struct {
        const char *op;
        bool        up, equal; /* counter below a number; or the number itself */
    } compare[] = {{"less", true, false},
                   {"less_equal", true, true},
                   {"greater", false, false},
                   {"greater_equal", false, true}};
    Counter k;
    int64_t most;

    cond = plain(cond);
    if (call_is(cond, "logical_and")) {
        const Idx *x = rounds_of(b, l, in, out, call_arg(cond, 0));
        const Idx *y = x ? rounds_of(b, l, in, out, call_arg(cond, 1)) : NULL;

        return y ? idx_min(b->c->arith, x, y) : NULL;
    }
    for (uint32_t i = 0; i < COUNT(compare); i++) {
        bool up = compare[i].up;

        if (!call_is(cond, compare[i].op))
            continue;
        for (uint32_t at = 0; at < 2; at++, up = !up) {
            const Idx *limit =
                limit_of(b, l, in, out, call_arg(cond, 1 - at), up, compare[i].equal, &most);
            if (!limit || !counter(b, l, in, out, call_arg(cond, at), &k))
                continue;
            k.most = k.most < most ? k.most : most;
            if (!up)
                k = (Counter){idx_mulc(b->c->arith, k.first, -1), -k.step, k.most};
            return rounds_below(b->c->arith, &k, limit);
        }
    }
    return NULL;
}

const Idx *onnx_count(Node *n, const OnnxLoop *l, const Expr *const *in, const Expr *const *out)
{
    const Idx *rounds;
    Dims       go;

    if (l->go && (!build_forms(&n->b, l->go, &go) || go.n != 1 || go.at[0]->lo < 1))
        return NULL;
    if (l->limit && (!l->trips || l->trips->lo < 1))
        return NULL;
    rounds = rounds_of(&n->b, l, in, out, out[0]);
    return rounds && l->limit ? idx_min(n->b.c->arith, rounds, l->trips) : rounds;
}
