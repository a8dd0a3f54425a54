/* What an index covers while some variables run: its lower and upper end over the others.
 *
 * Terms are taken end by end by the sign of their coefficient (Div is monotone).  A mod group
 * q*(e - k*Div(e,k)) is taken together: [0, k-1], unless both ends of e provably lie in one period;
 * the same for q*(Div(u,k) - m*Div(u,k*m)). */
#include "ir/arith/arith_impl.h"

struct AtomSet {
    Map *m;
};

AtomSet *atomset_new(Arena *a)
{
    AtomSet *s = NEW(a, AtomSet);
    s->m = map_new(a);
    return s;
}

void atomset_add(AtomSet *s, const Atom *v)
{
    map_put(s->m, PTR_KEY(v), s);
}

bool atomset_has(const AtomSet *s, const Atom *v)
{
    return map_get(s->m, PTR_KEY(v)) != NULL;
}

enum { MAX_DEPTH = 6 };

typedef struct {
    const Idx *lo, *hi;
} Ends;

static Ends ends(Arith *A, const Idx *x, const AtomSet *inner, int depth);

static bool unbounded(int64_t lo, int64_t hi)
{
    return lo == INT64_MIN || hi == INT64_MAX;
}

/* Both ends of one atom that uses inner variables. */
static Ends atom_ends(Arith *A, const Atom *a, const AtomSet *inner, int depth)
{
    Ends whole = {idx_const(A, a->lo), idx_const(A, a->hi)};
    switch (a->kind) {
    case ATOM_VAR:
        if (a->below && idx_is_open(a->below) && !idx_uses_any(a->below, inner))
            whole.hi = idx_addc(A, a->below, -1);
        break;
    case ATOM_LOAD:
    case ATOM_SYMDIV: break;
    case ATOM_DIV: {
        Ends e = ends(A, a->a, inner, depth + 1);
        return (Ends){idx_divc(A, e.lo, a->k), idx_divc(A, e.hi, a->k)};
    }
    case ATOM_PROD: {
        bool       a_in = idx_uses_any(a->a, inner), b_in = idx_uses_any(a->b, inner);
        const Idx *run = a_in ? a->a : a->b, *fix = a_in ? a->b : a->a;
        if (a_in && b_in && a->a->lo >= 0 && a->b->lo >= 0) {
            Ends x = ends(A, a->a, inner, depth + 1), y = ends(A, a->b, inner, depth + 1);
            return (Ends){idx_mul(A, x.lo, y.lo), idx_mul(A, x.hi, y.hi)};
        }
        if ((a_in && b_in) || fix->lo < 0)
            break;
        Ends e = ends(A, run, inner, depth + 1);
        return (Ends){idx_mul(A, e.lo, fix), idx_mul(A, e.hi, fix)};
    }
    case ATOM_MIN: {
        Ends x = ends(A, a->a, inner, depth + 1), y = ends(A, a->b, inner, depth + 1);
        return (Ends){idx_min(A, x.lo, y.lo), idx_min(A, x.hi, y.hi)};
    }
    case ATOM_MAX: {
        Ends x = ends(A, a->a, inner, depth + 1), y = ends(A, a->b, inner, depth + 1);
        return (Ends){idx_max(A, x.lo, y.lo), idx_max(A, x.hi, y.hi)};
    }
    }
    return whole;
}

/* x = rest + q*(e - k*d) with rest shorter than x: its ends through the ends of e. */
static bool group_ends(Arith *A, const Idx *x, int64_t q, const Idx *e, int64_t k, const Atom *d,
                       const AtomSet *inner, int depth, Ends *out)
{
    const Idx *g = idx_lin(A, e, 1, idx_atom(A, d), -k, 0);
    const Idx *rest = idx_lin(A, x, 1, g, -q, 0);
    if (rest->nterms >= x->nterms)
        return false;
    Ends       b = ends(A, e, inner, depth + 1), r = ends(A, rest, inner, depth + 1);
    const Idx *lo = idx_const(A, 0), *hi = idx_const(A, k - 1);
    if (idx_divc(A, b.lo, k) == idx_divc(A, b.hi, k)) {
        lo = idx_modc(A, b.lo, k);
        hi = idx_lin(A, b.hi, 1, idx_divc(A, b.lo, k), -k, 0);
    }
    out->lo = idx_lin(A, r.lo, 1, q < 0 ? hi : lo, q, 0);
    out->hi = idx_lin(A, r.hi, 1, q < 0 ? lo : hi, q, 0);
    return true;
}

static bool mod_ends(Arith *A, const Idx *x, const AtomSet *inner, int depth, Ends *out)
{
    for (uint32_t i = 0; i < x->nterms; i++) {
        const Atom *d = x->t[i].atom;
        int64_t     c = x->t[i].coef;
        if (d->kind != ATOM_DIV || c == INT64_MIN || !idx_uses_any(d->a, inner))
            continue;
        if (c % d->k == 0 && group_ends(A, x, -c / d->k, d->a, d->k, d, inner, depth, out))
            return true;
        for (uint32_t j = 0; j < x->nterms; j++) {
            const Atom *z = x->t[j].atom;
            if (z->kind != ATOM_DIV || z == d || z->a != d->a || d->k % z->k)
                continue;
            int64_t m = d->k / z->k;
            if (c % m == 0 && group_ends(A, x, -c / m, idx_atom(A, z), m, d, inner, depth, out))
                return true;
        }
    }
    return false;
}

static Ends ends(Arith *A, const Idx *x, const AtomSet *inner, int depth)
{
    Ends r = {x, x};
    if (!idx_uses_any(x, inner))
        return r;
    if (depth < MAX_DEPTH && mod_ends(A, x, inner, depth, &r))
        return r;
    r.lo = r.hi = idx_const(A, x->c0);
    for (uint32_t i = 0; i < x->nterms; i++) {
        IdxTerm    one = {1, x->t[i].atom};
        int64_t    c = x->t[i].coef;
        const Idx *atom = idx_intern(A, 0, 1, &one);
        Ends       e = {atom, atom};
        if (idx_uses_any(atom, inner))
            e = atom_ends(A, x->t[i].atom, inner, depth);
        r.lo = idx_lin(A, r.lo, 1, c < 0 ? e.hi : e.lo, c, 0);
        r.hi = idx_lin(A, r.hi, 1, c < 0 ? e.lo : e.hi, c, 0);
    }
    return r;
}

void idx_bound(Arith *A, const Idx *x, const AtomSet *inner, const Idx **lo, const Idx **hi)
{
    if (unbounded(x->lo, x->hi)) { /* the ends would overflow: say no more than the range does */
        bool run = idx_uses_any(x, inner);
        *lo = run ? idx_const(A, x->lo) : x;
        *hi = run ? idx_const(A, x->hi) : x;
        return;
    }
    Ends e = ends(A, x, inner, 0);
    *lo = e.lo;
    *hi = e.hi;
    /* Where the range is tighter than an end that is constant, take the range. */
    if (!e.lo->nterms && e.lo->c0 < x->lo)
        *lo = idx_const(A, x->lo);
    if (!e.hi->nterms && e.hi->c0 > x->hi)
        *hi = idx_const(A, x->hi);
}

const Idx *idx_most(Arith *A, const Idx *x, const AtomSet *inner)
{
    return ends(A, x, inner, 0).hi;
}

int64_t idx_extent(Arith *A, const Idx *lo, const Idx *hi)
{
    if ((!lo->nterms && unbounded(lo->c0, 0)) || (!hi->nterms && unbounded(0, hi->c0)))
        return INT64_MAX;
    int64_t n, d = idx_sub(A, hi, lo)->hi; /* range.c knows the pair rule */
    return checked_add(d, 1, &n) ? n : INT64_MAX;
}
