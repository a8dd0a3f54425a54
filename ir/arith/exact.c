/* Exact quotients of indices as polynomials over their atoms: (2*N*T + 2*N)/(T + 1) is 2*N.
 *
 * Long division: the largest term of what is left, divided by the largest term of the divisor, is
 * the next term of the quotient.  Terms are ordered by their number of factors, then by the
 * factors, so that the largest term of a product is the product of the largest terms. */
#include "ir/arith/arith_impl.h"

#include <string.h>

enum { MAX_STEPS = 64 };

typedef struct {
    int64_t     coef;
    uint32_t    n;
    const Atom *f[MAX_FACTORS]; /* by falling id */
} Term;

static Term term_of(int64_t coef, const Atom *a)
{
    Term t = {.coef = coef, .n = a ? factors_of(a, 0, t.f) : 0};

    for (uint32_t i = 1; i < t.n; i++)
        for (uint32_t j = i; j && t.f[j]->id > t.f[j - 1]->id; j--) {
            const Atom *swap = t.f[j];

            t.f[j] = t.f[j - 1];
            t.f[j - 1] = swap;
        }
    return t;
}

static bool larger(const Term *a, const Term *b)
{
    if (a->n != b->n)
        return a->n > b->n;
    for (uint32_t i = 0; i < a->n; i++)
        if (a->f[i] != b->f[i])
            return a->f[i]->id > b->f[i]->id;
    return false;
}

/* x is not 0. */
static Term largest(const Idx *x)
{
    Term most = term_of(x->c0, NULL);

    for (uint32_t i = 0; i < x->nterms; i++) {
        Term t = term_of(x->t[i].coef, x->t[i].atom);

        if (larger(&t, &most))
            most = t;
    }
    return most;
}

/* a / b, or NULL. */
static const Idx *term_div(Arith *A, const Term *a, const Term *b)
{
    const Idx *q;
    uint32_t   j = 0;

    if (a->coef % b->coef)
        return NULL;
    q = idx_const(A, a->coef / b->coef);
    for (uint32_t i = 0; i < a->n; i++)
        if (j < b->n && a->f[i] == b->f[j])
            j++;
        else
            q = idx_mul(A, q, idx_atom(A, a->f[i]));
    return j == b->n ? q : NULL;
}

const Idx *idx_div_exact(Arith *A, const Idx *x, const Idx *y)
{
    const Idx *q = A->zero;
    Term       by;

    if (y == A->zero)
        return NULL;
    by = largest(y);
    for (uint32_t step = 0; x != A->zero; step++) {
        Term       t = largest(x);
        const Idx *part = step < MAX_STEPS && t.n < MAX_FACTORS ? term_div(A, &t, &by) : NULL;

        if (!part)
            return NULL;
        q = idx_add(A, q, part);
        x = idx_sub(A, x, idx_mul(A, part, y));
    }
    return q;
}
