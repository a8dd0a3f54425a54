/* Predicates: conjunctions of forms  e >= 0.  A fact is kept in its smallest form (divided by the
 * gcd of its coefficients); what its range already proves is left out. */
#include "ir/arith/arith_impl.h"

static const Idx *smallest(Arith *A, const Idx *e)
{
    int64_t g = 0;
    for (uint32_t i = 0; i < e->nterms; i++)
        g = gcd_i64(g, e->t[i].coef);
    if (g <= 1)
        return e;
    IdxTerm *t = NEW_ARRAY(A->arena, IdxTerm, e->nterms);
    for (uint32_t i = 0; i < e->nterms; i++)
        t[i] = (IdxTerm){e->t[i].coef / g, e->t[i].atom};
    return idx_intern(A, floor_div(e->c0, g), e->nterms, t);
}

Pred pred_and(Arith *A, Arena *a, Pred p, const Idx *e)
{
    e = smallest(A, e);
    if (pred_implies(A, p, e))
        return p;
    const Idx **at = NEW_ARRAY(a, const Idx *, p.n + 1);
    uint32_t    n = 0;
    for (uint32_t i = 0; i < p.n; i++) /* facts that e makes superfluous go */
        if (idx_sub(A, p.ge0[i], e)->lo < 0)
            at[n++] = p.ge0[i];
    at[n++] = e;
    return (Pred){n, at};
}

Pred pred_and_pred(Arith *A, Arena *a, Pred p, Pred q)
{
    for (uint32_t i = 0; i < q.n; i++)
        p = pred_and(A, a, p, q.ge0[i]);
    return p;
}

Pred pred_subst(IdxSubst *s, Arena *a, Pred p)
{
    const Idx **at = NEW_ARRAY(a, const Idx *, p.n);
    uint32_t    n = 0;
    for (uint32_t i = 0; i < p.n; i++) {
        const Idx *e = idx_subst(s, p.ge0[i]);
        if (e->lo < 0)
            at[n++] = e;
    }
    return (Pred){n, at};
}

bool pred_implies(Arith *A, Pred known, const Idx *e)
{
    if (e->lo >= 0)
        return true;
    for (uint32_t i = 0; i < known.n; i++)
        if (known.ge0[i] == e || idx_sub(A, e, known.ge0[i])->lo >= 0)
            return true;
    return false;
}

bool idx_never(const Idx *e)
{
    return e->hi < 0;
}
