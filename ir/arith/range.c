/* Ranges: the interval sum of the terms, tightened where terms depend on each other.
 *
 *   q*(e - k*Div(e,k))          in q*[0, k-1]          a mod group
 *   q*(Div(u,k) - m*Div(u,k*m)) in q*[0, m-1]          a mod of a quotient
 *   q*(Div(u+c,k) - Div(u,k))   in q*[floor(c/k), ceil(c/k)]
 *   q*(e - k*Div(e,k) - r*(Div(e-r,k) - Div(e-r-1,k)))
 *                               in q*[0, k-1]          a mod group without the one size r
 *   x*(f)                       in [x.lo, x.hi] times the range of f, for x >= 0
 *   a variable v below a form E is at most E - 1, whatever a run makes of E, and Div(v,k) at most
 *                               Div(E-1,k) where that is a form; E's dimensions may be below forms
 *                               in turn
 * Each rule takes its group out and looks at the rest; three levels deep is enough in practice and
 * bounds the work.  Arithmetic saturates: a range end beyond 64 bits means "unbounded". */
#include "ir/arith/arith_impl.h"

#include <string.h>

enum { MAX_TERMS = 24, MAX_DEPTH = 3 };

typedef struct {
    int64_t  c0;
    uint32_t n;
    IdxTerm  t[2 * MAX_TERMS];
} Form;

typedef struct {
    Wide lo, hi;
} Range;

static Range form_range(const Form *f, int depth);

/* A product that cannot make sums of products overflow. */
static Wide times(int64_t a, int64_t b)
{
    Wide limit = (Wide)1 << 100, p = (Wide)a * b;
    return p > limit ? limit : p < -limit ? -limit : p;
}

static Range interval_sum(int64_t c0, uint32_t n, const IdxTerm *t)
{
    Range r = {c0, c0};
    for (uint32_t i = 0; i < n; i++) {
        Wide a = times(t[i].coef, t[i].atom->lo), b = times(t[i].coef, t[i].atom->hi);
        r.lo += a < b ? a : b;
        r.hi += a < b ? b : a;
    }
    return r;
}

/* rest = f - q*group, where group = cx*x + terms of e; true if that is shorter. */
static bool take_out(const Form *f, int64_t q, const IdxTerm *e, uint32_t ne, int64_t e0,
                     const IdxTerm *x, Form *rest)
{
    IdxTerm both[2 * MAX_TERMS];
    bool    ok;
    int64_t c;
    if (ne > MAX_TERMS || q == INT64_MIN)
        return false;
    uint32_t n = terms_add(ne, e, 1, 1, x, 1, both, &ok);
    if (!ok || n + f->n > 2 * MAX_TERMS)
        return false;
    rest->n = terms_add(f->n, f->t, 1, n, both, -q, rest->t, &ok);
    if (!ok || !checked_mul(e0, q, &c) || !checked_sub(f->c0, c, &rest->c0))
        return false;
    return rest->n < f->n;
}

/* r = r and (range of rest + q*[lo, hi]) */
static void tighten(Range *r, const Form *rest, int64_t q, int64_t lo, int64_t hi, int depth)
{
    Range s = form_range(rest, depth + 1);
    Wide  a = times(q, lo), b = times(q, hi);
    Wide  l = s.lo + (a < b ? a : b), h = s.hi + (a < b ? b : a);
    if (l > r->lo)
        r->lo = l;
    if (h < r->hi)
        r->hi = h;
}

static void mod_groups(const Form *f, Range *r, int depth)
{
    Form rest;
    for (uint32_t i = 0; i < f->n; i++) {
        const Atom *x = f->t[i].atom;
        int64_t     c = f->t[i].coef;
        if (x->kind != ATOM_DIV || c == INT64_MIN)
            continue;
        IdxTerm minus = {-x->k, x};
        if (c % x->k == 0 && take_out(f, -c / x->k, x->a->t, x->a->nterms, x->a->c0, &minus, &rest))
            tighten(r, &rest, -c / x->k, 0, x->k - 1, depth);
    }
}

/* Div(u+c,k) and Div(u,k): the same terms, another constant. */
static bool same_terms(const Idx *a, const Idx *b)
{
    if (a->nterms != b->nterms)
        return false;
    for (uint32_t i = 0; i < a->nterms; i++)
        if (a->t[i].atom != b->t[i].atom || a->t[i].coef != b->t[i].coef)
            return false;
    return true;
}

/* x = Div(e,k), one = Div(e-size,k) and next = Div(e-size-1,k), but for multiples of k: these make
 * the latter differ by the numbers that are taken off. */
static void take_size(const Form *f, const Atom *x, const Atom *one, const Atom *next, int64_t size,
                      int64_t q, Range *r, int depth)
{
    const Idx *e = x->a;
    IdxTerm t[2 * MAX_TERMS], more[2 * MAX_TERMS], a = {1, one}, b = {1, next}, minus = {-x->k, x};
    int64_t to_one, to_next, c0;
    Form    rest;
    bool    ok;

    if (next == one || next->kind != ATOM_DIV || next->k != x->k || !same_terms(next->a, e) ||
        e->nterms + 3 > MAX_TERMS || !checked_sub(e->c0 - size, one->a->c0, &to_one) ||
        !checked_sub(e->c0 - size - 1, next->a->c0, &to_next) || to_one % x->k || to_next % x->k ||
        !checked_mul(size, (to_next - to_one) / x->k, &c0) || !checked_add(c0, e->c0, &c0))
        return;
    uint32_t n = terms_add(e->nterms, e->t, 1, 1, &a, -size, t, &ok);
    n = ok ? terms_add(n, t, 1, 1, &b, size, more, &ok) : 0;
    if (ok && take_out(f, q, more, n, c0, &minus, &rest))
        tighten(r, &rest, q, 0, x->k - 1, depth);
}

/* The difference of two quotients by k is 1 if k divides e - r, else 0: then e is r modulo k. */
static void size_groups(const Form *f, Range *r, int depth)
{
    for (uint32_t i = 0; i < f->n; i++)
        for (uint32_t j = 0; j < f->n; j++) {
            const Atom *x = f->t[i].atom, *one = f->t[j].atom;
            int64_t     apart, c = f->t[j].coef;
            if (x == one || x->kind != ATOM_DIV || one->kind != ATOM_DIV || x->k != one->k ||
                !same_terms(x->a, one->a) || !checked_sub(x->a->c0, one->a->c0, &apart))
                continue;
            int64_t size = apart - floor_div(apart, x->k) * x->k;
            if (size < 1 || c == INT64_MIN || c % size)
                continue;
            for (uint32_t l = 0; l < f->n; l++)
                take_size(f, x, one, f->t[l].atom, size, -c / size, r, depth);
        }
}

static void div_pairs(const Form *f, Range *r, int depth)
{
    Form rest;
    for (uint32_t i = 0; i < f->n; i++)
        for (uint32_t j = 0; j < f->n; j++) {
            const Atom *x = f->t[i].atom, *z = f->t[j].atom;
            int64_t     cx = f->t[i].coef, cz = f->t[j].coef;
            if (x == z || x->kind != ATOM_DIV || z->kind != ATOM_DIV || cx == INT64_MIN)
                continue;
            IdxTerm plus = {1, z};
            if (x->a == z->a && x->k % z->k == 0 && cx % (x->k / z->k) == 0) {
                int64_t m = x->k / z->k;
                IdxTerm minus = {-m, x};
                if (take_out(f, -cx / m, &plus, 1, 0, &minus, &rest))
                    tighten(r, &rest, -cx / m, 0, m - 1, depth);
            } else if (x->k == z->k && cx == -cz && x->a != z->a && same_terms(x->a, z->a)) {
                IdxTerm minus = {-1, x}; /* cz * (z - x) */
                int64_t d;
                if (checked_sub(z->a->c0, x->a->c0, &d) &&
                    take_out(f, cz, &plus, 1, 0, &minus, &rest))
                    tighten(r, &rest, cz, floor_div(d, x->k), -floor_div(-d, x->k), depth);
            }
        }
}

/* What is left of a product without the factor x; NULL: x is none, or the rest has no atom of its
 * own. */
static const Atom *without_factor(const Atom *a, const Atom *x)
{
    const Atom *first, *last;

    if (a->kind != ATOM_PROD)
        return NULL;
    first = a->a->t[0].atom;
    last = a->b->t[0].atom;
    return last == x ? first : first == x ? last : NULL;
}

/* Terms of which two or more have the factor x: N*(M//2) - 3*N is at least 0 where M//2 >= 3. */
static void common_factor(const Form *f, const Atom *x, Range *r, int depth)
{
    Form with = {0}, rest = {.c0 = f->c0};

    if (x->lo < 0)
        return;
    for (uint32_t i = 0; i < f->n; i++) {
        const Atom *other = without_factor(f->t[i].atom, x);

        if (f->t[i].atom == x)
            with.c0 = f->t[i].coef;
        else if (other)
            with.t[with.n++] = (IdxTerm){f->t[i].coef, other};
        else
            rest.t[rest.n++] = f->t[i];
    }
    if (!with.n || rest.n + 2 > f->n)
        return;
    Range   g = form_range(&with, depth + 1), s = form_range(&rest, depth + 1);
    int64_t lo = clamp64(g.lo), hi = clamp64(g.hi);
    s.lo += times(lo, lo < 0 ? x->hi : x->lo);
    s.hi += times(hi, hi < 0 ? x->lo : x->hi);
    r->lo = s.lo > r->lo ? s.lo : r->lo;
    r->hi = s.hi < r->hi ? s.hi : r->hi;
}

static void common_factors(const Form *f, Range *r, int depth)
{
    for (uint32_t i = 0; i < f->n; i++) {
        const Atom *a = f->t[i].atom;

        if (a->kind != ATOM_PROD)
            continue;
        common_factor(f, a->a->t[0].atom, r, depth);
        common_factor(f, a->b->t[0].atom, r, depth);
    }
}

static Range form_range(const Form *f, int depth)
{
    Range r = interval_sum(f->c0, f->n, f->t);
    if (depth < MAX_DEPTH && f->n > 1) {
        common_factors(f, &r, depth);
        mod_groups(f, &r, depth);
        div_pairs(f, &r, depth);
        size_groups(f, &r, depth);
    }
    return r;
}

/* The largest value of a variable that is below a form, or of a quotient of such: v//12 is at most
 * N - 1 for v < 12*N. */
static bool last_value(const Atom *a, Form *out)
{
    bool ok = true, any = false;

    if (a->below && a->below->nterms > 2 * MAX_TERMS)
        return false;
    if (a->below) {
        out->c0 = a->below->c0;
        out->n = terms_add(0, NULL, 1, a->below->nterms, a->below->t, 1, out->t, &ok);
        return ok && checked_sub(out->c0, 1, &out->c0);
    }
    for (uint32_t i = 0; a->kind == ATOM_DIV && i < a->a->nterms; i++)
        any |= a->a->t[i].atom->below && a->a->t[i].coef > 0;
    if (!any)
        return false;
    out->n = 0;
    out->c0 = a->a->c0;
    for (uint32_t i = 0; i < a->a->nterms && ok; i++) {
        const IdxTerm *t = &a->a->t[i];
        const Idx     *end = t->coef > 0 ? t->atom->below : NULL;
        IdxTerm        sum[2 * MAX_TERMS];
        int64_t        c = 0;

        if (out->n + (end ? end->nterms : 1) > 2 * MAX_TERMS)
            return false;
        out->n = terms_add(out->n, out->t, 1, end ? end->nterms : 1, end ? end->t : t,
                           end ? t->coef : 1, sum, &ok);
        memcpy(out->t, sum, out->n * sizeof *sum);
        ok = ok &&
             (!end || (checked_mul(end->c0 - 1, t->coef, &c) && checked_add(out->c0, c, &out->c0)));
    }
    for (uint32_t i = 0; i < out->n; i++) {
        if (out->t[i].coef % a->k)
            return false;
        out->t[i].coef /= a->k;
    }
    out->c0 = floor_div(out->c0, a->k);
    return ok;
}

/* What counts down and has a last value has that: a form at most f.  `down` false: what counts up,
 * at least f.  False: there is none. */
static bool with_ends(const Form *f, bool down, Form *out)
{
    bool any = false, ok = true;

    *out = *f;
    for (uint32_t i = 0; i < f->n; i++) {
        int64_t  q = f->t[i].coef, c;
        IdxTerm  one = {1, f->t[i].atom}, kept[2 * MAX_TERMS];
        Form     last;
        uint32_t n;

        if ((q < 0) != down || !last_value(f->t[i].atom, &last))
            continue;
        if (q == INT64_MIN || out->n + last.n > 2 * MAX_TERMS)
            return false;
        n = terms_add(out->n, out->t, 1, 1, &one, -q, kept, &ok);
        out->n = ok ? terms_add(n, kept, 1, last.n, last.t, q, out->t, &ok) : 0;
        if (!ok || !checked_mul(last.c0, q, &c) || !checked_add(out->c0, c, &out->c0))
            return false;
        any = true;
    }
    return any;
}

void terms_range(int64_t c0, uint32_t n, const IdxTerm *t, int64_t *lo, int64_t *hi)
{
    Range r = interval_sum(c0, n, t);
    if (n > 1 && n <= MAX_TERMS) {
        Form f = {.c0 = c0, .n = n};
        for (uint32_t i = 0; i < n; i++)
            f.t[i] = t[i];
        r = form_range(&f, 0);
        Form ends, last = f;
        for (int k = 0; k < MAX_DEPTH && with_ends(&last, true, &ends); k++, last = ends) {
            Wide lo = form_range(&ends, 0).lo;
            r.lo = lo > r.lo ? lo : r.lo;
        }
        last = f;
        for (int k = 0; k < MAX_DEPTH && with_ends(&last, false, &ends); k++, last = ends) {
            Wide hi = form_range(&ends, 0).hi;
            r.hi = hi < r.hi ? hi : r.hi;
        }
    }
    *lo = clamp64(r.lo);
    *hi = clamp64(r.hi);
}
