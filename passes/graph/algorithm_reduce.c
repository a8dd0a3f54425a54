/* Algorithms of sums, means and extrema along dimensions that lie apart: all cells of a result one
 * after the other, or the outer dimensions first.
 *
 *   mean(%x, axis=[1, 3])  ->  mean(mean(%x, axis=[1], keepdims=true), axis=[1, 3])
 *
 * Where the innermost of them are short, as 15 in 2x65x52x15, each result is many short pieces of
 * rows.  The outer ones first are sums of columns, vectors of which lie side by side; what is left
 * are rows that lie together. */
#include "passes/graph/choose_algorithms.h"

enum { MAX_DIMS = 8 };

/* The dimensions of the operand, by what becomes of them: results, outer dimensions that are
 * reduced, kept ones behind them, and the innermost, which are reduced. */
typedef struct {
    bool     reduced[MAX_DIMS];
    uint32_t innermost; /* the first of them */
    double   results, outer, between, inner;
} Apart;

static bool is_apart(const Expr *call, Apart *p)
{
    const ReduceAttrs *a = ATTRS_OF(ReduceAttrs, call);
    const Type        *x = call_arg(call, 0)->type;
    uint32_t           i = x->n;
    double             n;

    *p = (Apart){.results = 1, .outer = 1, .between = 1, .inner = 1};
    if (!a->axis.n || x->n > MAX_DIMS || !dtype_is_float(x->dtype))
        return false;
    for (uint32_t k = 0; k < x->n; k++) {
        p->reduced[k] = a->exclude;
        if (x->dims[k]->lo < 1)
            return false;
    }
    for (uint32_t k = 0; k < a->axis.n; k++)
        p->reduced[axis_from_front(a->axis.at[k], x->n)] = !a->exclude;
    for (; i > 0 && (p->reduced[i - 1] || x->dims[i - 1]->hi == 1); i--)
        p->inner *= (double)idx_usual(x->dims[i - 1]);
    p->innermost = i;
    for (; i > 0; i--) {
        n = (double)idx_usual(x->dims[i - 1]);
        *(p->reduced[i - 1] ? &p->outer : p->outer > 1 ? &p->results : &p->between) *= n;
    }
    return p->inner > 1 && p->between > 1 && p->outer > 1;
}

/* ... on a target that has vectors, of so many f32. */
static bool is_apart_on(Ctx *c, const Expr *call, Apart *p, Machine *m, int64_t *lanes)
{
    if (!has_vectors(c->target) || !is_apart(call, p))
        return false;
    *m = machine_of(c->target);
    *lanes = c->target->vector_bytes / 4;
    return true;
}

static double row_cycles(const Machine *m, int64_t lanes, double cells)
{
    if (cells <= (double)limit_short_row(m))
        return hidden_cycles(m, cells * m->latency, cells);
    return row_sum_cycles(m, cells / (double)lanes, 1);
}

double time_reduce(Ctx *c, const Expr *call, const Algorithm *a)
{
    Machine m;
    int64_t lanes;
    Apart   p;

    (void)a;
    if (!is_apart_on(c, call, &p, &m, &lanes))
        return 0;
    return p.results * p.between *
           (row_cycles(&m, lanes, p.outer * p.inner) + rounds_cycles(p.outer));
}

double time_reduce_apart(Ctx *c, const Expr *call, const Algorithm *a)
{
    Machine m;
    int64_t lanes;
    Apart   p;

    (void)a;
    if (!is_apart_on(c, call, &p, &m, &lanes) || p.inner > (double)limit_short_row(&m))
        return NEVER;
    return m.start_cycles + p.results * (column_sum_cycles(&m, p.between * p.inner / (double)lanes,
                                                           p.outer, limit_most_sums(&m)) +
                                         p.between * row_cycles(&m, lanes, p.inner));
}

const Expr *make_reduce_apart(Ctx *c, const Expr *call, const Algorithm *a)
{
    ReduceAttrs *first = ATTRS_COPY(c, ReduceAttrs, call);
    int64_t      axis[MAX_DIMS];
    uint32_t     n = 0;
    Apart        p;
    const Expr  *part;

    (void)a;
    if (!is_apart(call, &p))
        return NULL;
    for (uint32_t i = 0; i < p.innermost; i++)
        if (p.reduced[i])
            axis[n++] = i;
    *first = (ReduceAttrs){.axis = ints_dup(c, axis, n), .keepdims = true};
    part = make1(c, call_op(call)->text, call_arg(call, 0), first, call->loc);
    return part ? make1(c, call_op(call)->text, part, call->u.attrs, call->loc) : NULL;
}
