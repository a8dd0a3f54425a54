/* Does every combination of rounds of some loops come to another cell?
 *
 * Where the index is a sum of steps, the steps are compared like digits: the smaller ones together
 * must not reach the next.  Where it divides, as in tiles that threads fill in another order than
 * the one in which the cells lie, the combinations are counted out, up to MOST_ROUNDS.  Variables
 * of other loops stand still.  Used by thread_sync. */
#include "passes/tir/util.h"

#include <stdlib.h>

enum { MAX_VARS = 8, MOST_ROUNDS = 1 << 16 };

typedef struct {
    uint32_t               n;
    const LoopData *const *loop;
    int64_t                at[MAX_VARS]; /* rounds */
} Rounds;

static const LoopData *loop_of_var(const Rounds *r, const Atom *v, uint32_t *i)
{
    for (*i = 0; *i < r->n; ++*i)
        if (r->loop[*i]->var == v)
            return r->loop[*i];
    return NULL;
}

/* A quotient of variables of other loops. */
static bool stands_still(const Rounds *r, const Atom *a)
{
    if (a->kind != ATOM_DIV)
        return false;
    for (uint32_t i = 0; i < r->n; i++)
        if (idx_uses(a->a, r->loop[i]->var))
            return false;
    return true;
}

/* Steps of one form as digits, each loop once. */
static bool is_number(const Rounds *r, const Idx *x)
{
    int64_t  step[MAX_VARS], count[MAX_VARS], below = 0, e = 0;
    uint32_t n = 0, which;

    for (uint32_t i = 0; i < x->nterms; i++) {
        const Atom *a = x->t[i].atom;
        uint32_t    k = n;
        if (!loop_of_var(r, a, &which)) {
            if (a->kind != ATOM_VAR && !stands_still(r, a))
                return false;
            continue;
        }
        idx_is_const(r->loop[which]->extent, &e);
        for (; k > 0 && step[k - 1] > llabs(x->t[i].coef); k--)
            step[k] = step[k - 1], count[k] = count[k - 1];
        step[k] = llabs(x->t[i].coef);
        count[k] = e;
        n++;
    }
    for (uint32_t k = 0; k < n; k++) {
        if (step[k] <= below)
            return false;
        below += step[k] * (count[k] - 1);
    }
    for (uint32_t i = 0; i < r->n; i++)
        if (idx_is_const(r->loop[i]->extent, &e) && e > 1 && !idx_coef(x, r->loop[i]->var))
            return false;
    return true;
}

/* Nothing but these loops' variables and constants, divided or not. */
static bool is_closed(const Rounds *r, const Idx *x)
{
    uint32_t which;

    for (uint32_t i = 0; i < x->nterms; i++) {
        const Atom *a = x->t[i].atom;
        if (a->kind == ATOM_VAR ? !loop_of_var(r, a, &which)
                                : a->kind != ATOM_DIV || !is_closed(r, a->a))
            return false;
    }
    return true;
}

/* Other variables add the same to all. */
static bool can_count(const Rounds *r, const Idx *x)
{
    for (uint32_t i = 0; i < x->nterms; i++)
        if (x->t[i].atom->kind != ATOM_VAR && !stands_still(r, x->t[i].atom) &&
            (x->t[i].atom->kind != ATOM_DIV || !is_closed(r, x->t[i].atom->a)))
            return false;
    return true;
}

static int64_t value_of(void *user, const Atom *a)
{
    const Rounds *r = user;
    uint32_t      which;

    return loop_of_var(r, a, &which) ? r->at[which] : a->lo;
}

static int compare(const void *a, const void *b)
{
    const int64_t *x = a, *y = b;

    return (*x > *y) - (*x < *y);
}

static bool count_out(Ctx *c, Rounds *r, int64_t rounds, uint32_t ndim, const Idx *const *index)
{
    int64_t *cell = NEW_ARRAY(c->scratch, int64_t, (size_t)rounds), size = 1;
    IdxEnv   env = {.var = value_of, .user = r};

    for (uint32_t d = 0; d < ndim; d++)
        if (!can_count(r, index[d]) || !checked_mul(size, index[d]->hi - index[d]->lo + 1, &size))
            return false;
    for (int64_t k = 0; k < rounds; k++) {
        int64_t left = k, e = 1;
        for (uint32_t i = 0; i < r->n; i++, left /= e) {
            idx_is_const(r->loop[i]->extent, &e);
            r->at[i] = r->loop[i]->var->lo + left % e;
        }
        cell[k] = 0;
        for (uint32_t d = 0; d < ndim; d++)
            cell[k] = cell[k] * (index[d]->hi - index[d]->lo + 1) + idx_eval(index[d], &env) -
                      index[d]->lo;
    }
    qsort(cell, (size_t)rounds, sizeof *cell, compare);
    for (int64_t k = 1; k < rounds; k++)
        if (cell[k] == cell[k - 1])
            return false;
    return true;
}

bool own_cells(Ctx *c, uint32_t ndim, const Idx *const *index, const Idx *flat, uint32_t nloops,
               const LoopData *const *loops)
{
    Rounds  r = {nloops, loops, {0}};
    int64_t rounds = 1, e;

    if (nloops > MAX_VARS)
        return false;
    for (uint32_t i = 0; i < nloops; i++)
        if (!idx_is_const(loops[i]->extent, &e) || !idx_is_const(loops[i]->lo, NULL) ||
            !checked_mul(rounds, e, &rounds))
            return false;
    return (flat && is_number(&r, flat)) ||
           (rounds <= MOST_ROUNDS && count_out(c, &r, rounds, ndim, index));
}
