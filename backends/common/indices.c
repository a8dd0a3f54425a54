/* Whether indices of 32 bits do: on most devices those of 64 cost several instructions. */
#include "backends/common/plain.h"

#include <math.h>

static double largest(double lo, double hi)
{
    return -lo > hi ? -lo : hi;
}

/* No partial sum of x, in whatever order, leaves 31 bits; nor does one of its parts. */
static bool idx_fits(const Idx *x)
{
    double sum = fabs((double)x->c0);

    for (uint32_t i = 0; i < x->nterms; i++) {
        const Atom *a = x->t[i].atom;
        double      most = largest((double)a->lo, (double)a->hi);

        if (most > INT32_MAX || (a->a && !idx_fits(a->a)) || (a->b && !idx_fits(a->b)) ||
            a->k > INT32_MAX)
            return false;
        if (a->kind == ATOM_PROD && largest((double)a->a->lo, (double)a->a->hi) *
                                            largest((double)a->b->lo, (double)a->b->hi) >
                                        INT32_MAX)
            return false;
        sum += fabs((double)x->t[i].coef) * most;
    }
    return sum <= INT32_MAX;
}

static void visit_idx(void *user, const Idx *i)
{
    bool *fits = user;

    *fits = *fits && idx_fits(i);
}

static bool visit_stmt(void *user, const Stmt *s)
{
    bool *fits = user;

    if (s->kind == STMT_FOR)
        *fits = *fits && idx_fits(s->u.loop.lo) && idx_fits(s->u.loop.extent) &&
                s->u.loop.lo->hi + s->u.loop.extent->hi <= INT32_MAX;
    return *fits;
}

bool func_index_fits(const Func *f)
{
    bool     fits = true;
    TirVisit v = {.user = &fits, .enter = visit_stmt, .idx = visit_idx};

    for (uint32_t i = 0; i < f->nparams; i++)
        if (f->params[i].scalar &&
            (f->params[i].scalar->lo < INT32_MIN || f->params[i].scalar->hi > INT32_MAX))
            return false;
    stmt_visit(f->body, &v);
    return fits;
}
