/* Dimensions without an upper bound (docs/design/shapes.md).
 *
 * Their range ends at DIM_OPEN, so that what is proved by ranges holds for every size that a run
 * may have.  What is only chosen by sizes, such as tiles, would be chosen for sizes that never
 * come: it takes the usual one instead.
 *
 *     T in 1..DIM_OPEN    (T+1)*768    hi 1649267441664    usual 787200 */
#include "ir/arith/arith_impl.h"

bool atom_is_open(const Atom *a)
{
    return a->kind == ATOM_VAR && a->hi == DIM_OPEN && !a->below;
}

bool idx_is_open(const Idx *x)
{
    for (uint32_t i = 0; i < x->nterms; i++) {
        const Atom *a = x->t[i].atom;

        if (atom_is_open(a) || (a->below && idx_is_open(a->below)) || (a->a && idx_is_open(a->a)) ||
            (a->b && idx_is_open(a->b)))
            return true;
    }
    return false;
}

static int64_t usual_value(void *user, const Atom *a)
{
    int64_t end;

    (void)user;
    if (atom_is_open(a))
        return a->lo > DIM_USUAL ? a->lo : DIM_USUAL;
    if (!a->below || !idx_is_open(a->below))
        return a->hi;
    end = idx_usual(a->below);
    return end > a->lo ? end - 1 : a->lo;
}

int64_t idx_usual(const Idx *x)
{
    int64_t v;

    if (!idx_is_open(x))
        return x->hi;
    v = idx_eval(x, &(IdxEnv){.var = usual_value});
    return v < x->lo ? x->lo : v > x->hi ? x->hi : v;
}

int64_t atom_usual(const Atom *a)
{
    return usual_value(NULL, a) - a->lo + 1;
}
