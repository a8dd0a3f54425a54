/* Makers of index forms.
 *
 * Forms and atoms are interned in hash chains.  Every maker ends in idx_intern, so equal forms are
 * equal pointers; the only simplification that is not linear algebra lives in idx_divc.  A variable
 * (or any atom) with a range of one value is that value: unit loops never show up in an index. */
#include "ir/arith/arith_impl.h"
#include "ir/tir/tir.h"

#include <string.h>

typedef struct IdxLink {
    const Idx      *x;
    struct IdxLink *next;
} IdxLink;

typedef struct AtomLink {
    const Atom      *a;
    struct AtomLink *next;
} AtomLink;

Arith *arith_new(Arena *a, Strings *s)
{
    Arith *A = NEW(a, Arith);
    A->arena = a;
    A->strings = s;
    A->idx = map_new(a);
    A->atoms = map_new(a);
    A->zero = idx_intern(A, 0, 0, NULL);
    return A;
}

bool arith_overflow(const Arith *A)
{
    return A->overflow;
}

static const Idx *overflowed(Arith *A)
{
    A->overflow = true;
    return A->zero;
}

const Idx *idx_intern(Arith *A, int64_t c0, uint32_t n, const IdxTerm *t)
{
    uint64_t h = hash_mix(0x1d5, (uint64_t)c0);
    for (uint32_t i = 0; i < n; i++)
        h = hash_mix(hash_mix(h, (uint64_t)t[i].coef), t[i].atom->id);
    IdxLink *first = map_get(A->idx, h);
    for (IdxLink *l = first; l; l = l->next) {
        bool same = l->x->c0 == c0 && l->x->nterms == n;
        for (uint32_t i = 0; same && i < n; i++)
            same = l->x->t[i].coef == t[i].coef && l->x->t[i].atom == t[i].atom;
        if (same)
            return l->x;
    }
    Idx *x = arena_alloc(A->arena, sizeof *x + n * sizeof *t);
    x->c0 = c0;
    x->id = A->nidx++;
    x->nterms = n;
    if (n)
        memcpy(x->t, t, n * sizeof *t);
    terms_range(c0, n, t, &x->lo, &x->hi);
    IdxLink *l = NEW(A->arena, IdxLink);
    *l = (IdxLink){x, first};
    map_put(A->idx, h, l);
    return x;
}

const Atom *atom_intern(Arith *A, AtomKind kind, const Idx *a, const Idx *b, int64_t k,
                        const void *load, int64_t lo, int64_t hi)
{
    uint64_t h = hash_mix(kind, a ? a->id : 0);
    h = hash_mix(hash_mix(h, b ? b->id : 0), (uint64_t)k);
    h = hash_mix(h, PTR_KEY(load));
    AtomLink *first = map_get(A->atoms, h);
    for (AtomLink *l = first; l; l = l->next) {
        const Atom *x = l->a;
        if (x->kind == kind && x->a == a && x->b == b && x->k == k && x->load == load)
            return x;
    }
    Atom *x = NEW(A->arena, Atom);
    *x = (Atom){
        .kind = kind, .id = A->natoms++, .lo = lo, .hi = hi, .a = a, .b = b, .k = k, .load = load};
    AtomLink *l = NEW(A->arena, AtomLink);
    *l = (AtomLink){x, first};
    map_put(A->atoms, h, l);
    return x;
}

const Atom *atom_var(Arith *A, const char *name, int64_t lo, int64_t hi)
{
    Atom *x = NEW(A->arena, Atom);
    *x = (Atom){
        .kind = ATOM_VAR, .id = A->natoms++, .lo = lo, .hi = hi, .name = intern(A->strings, name)};
    return x;
}

const Atom *atom_upto(Arith *A, const char *name, const Idx *end)
{
    /* An empty dimension has no index at all; its variable still needs a range that is one.  A
     * variable that may have no value, and else one, stays a variable: its end says when. */
    int64_t least = end->nterms ? 1 : 0, hi = end->hi - 1 > least ? end->hi - 1 : least;
    Atom   *x = (Atom *)(uintptr_t)atom_var(A, name, 0, hi);

    x->below = end->nterms ? end : NULL;
    return x;
}

const Atom *atom_within(Arith *A, const char *name, int64_t lo, const Idx *most)
{
    int64_t hi = most->hi < DIM_OPEN ? most->hi : DIM_OPEN;
    Atom   *x = (Atom *)(uintptr_t)atom_var(A, name, lo, hi > lo ? hi : lo + 1);

    x->below = most->nterms ? idx_addc(A, most, 1) : NULL;
    return x;
}

const Idx *atom_most(Arith *A, const Atom *a)
{
    return a->below ? idx_addc(A, a->below, -1) : idx_const(A, a->hi);
}

bool is_dim_bound(const Idx *x)
{
    for (uint32_t i = 0; i < x->nterms; i++) {
        const Atom *a = x->t[i].atom;

        if (a->below || a->kind == ATOM_LOAD || (a->a && !is_dim_bound(a->a)) ||
            (a->b && !is_dim_bound(a->b)))
            return false;
    }
    return true;
}

const Atom *atom_like(Arith *A, const char *name, const Atom *v)
{
    Atom *x = (Atom *)(uintptr_t)atom_var(A, name, v->lo, v->hi);

    x->below = v->below;
    return x;
}

const Idx *idx_const(Arith *A, int64_t v)
{
    return idx_intern(A, v, 0, NULL);
}

const Idx *idx_atom(Arith *A, const Atom *a)
{
    IdxTerm t = {1, a};
    return a->lo == a->hi ? idx_const(A, a->lo) : idx_intern(A, 0, 1, &t);
}

const Idx *idx_load(Arith *A, const void *load, int64_t lo, int64_t hi)
{
    return idx_atom(A, atom_intern(A, ATOM_LOAD, NULL, NULL, 0, load, lo, hi));
}

/* ---- linear forms ------------------------------------------------------------------------------
 */

uint32_t terms_add(uint32_t nf, const IdxTerm *f, int64_t cf, uint32_t ng, const IdxTerm *g,
                   int64_t cg, IdxTerm *out, bool *ok)
{
    uint32_t n = 0, i = 0, j = 0;
    *ok = true;
    while (i < nf || j < ng) {
        bool        left = j == ng || (i < nf && f[i].atom->id <= g[j].atom->id);
        bool        right = i == nf || (j < ng && g[j].atom->id <= f[i].atom->id);
        int64_t     a = 0, b = 0, sum;
        const Atom *atom = left ? f[i].atom : g[j].atom;
        if (left)
            *ok &= checked_mul(f[i++].coef, cf, &a);
        if (right)
            *ok &= checked_mul(g[j++].coef, cg, &b);
        *ok &= checked_add(a, b, &sum) && sum != INT64_MIN; /* has no negative to be printed */
        if (sum)
            out[n++] = (IdxTerm){sum, atom};
    }
    return n;
}

const Idx *idx_lin(Arith *A, const Idx *x, int64_t cx, const Idx *y, int64_t cy, int64_t c)
{
    enum { FEW = 32 };
    IdxTerm  few[FEW], *t = few;
    uint32_t ny = y ? y->nterms : 0;
    if (x->nterms + ny > FEW)
        t = NEW_ARRAY(A->arena, IdxTerm, x->nterms + ny);
    int64_t  a, b = 0, c0;
    bool     ok;
    uint32_t n = terms_add(x->nterms, x->t, cx, ny, y ? y->t : NULL, cy, t, &ok);
    ok = ok && checked_mul(x->c0, cx, &a) && (!y || checked_mul(y->c0, cy, &b)) &&
         checked_add(a, b, &c0) && checked_add(c0, c, &c0) && !(n && c0 == INT64_MIN);
    return ok ? idx_intern(A, c0, n, t) : overflowed(A);
}

const Idx *idx_add(Arith *A, const Idx *x, const Idx *y)
{
    return idx_lin(A, x, 1, y, 1, 0);
}
const Idx *idx_sub(Arith *A, const Idx *x, const Idx *y)
{
    return idx_lin(A, x, 1, y, -1, 0);
}
const Idx *idx_addc(Arith *A, const Idx *x, int64_t c)
{
    return idx_lin(A, x, 1, NULL, 0, c);
}
const Idx *idx_mulc(Arith *A, const Idx *x, int64_t c)
{
    return idx_lin(A, x, c, NULL, 0, 0);
}

/* (x // b) * b is at most x, and less than b below it. */
static void quotient_range(const Idx *quotient, const Idx *b, int64_t *lo, int64_t *hi)
{
    const Atom *q = quotient->t[0].atom;

    if (q->kind != ATOM_SYMDIV || q->b != b)
        return;
    int64_t least = clamp64((Wide)q->a->lo - b->hi + 1);
    *lo = least > *lo ? least : *lo;
    *hi = q->a->hi < *hi ? q->a->hi : *hi;
}

/* Products are sizes and places in memory: a run refuses dimensions that ask for more bytes
 * (passes/lower/entry/sizes.c), where their largest product would leave no room for a factor. */
static const int64_t MOST_CELLS = INT64_C(1) << 48;

static void product_range(const Idx *a, const Idx *b, int64_t *lo, int64_t *hi)
{
    Wide p[4] = {(Wide)a->lo * b->lo, (Wide)a->lo * b->hi, (Wide)a->hi * b->lo,
                 (Wide)a->hi * b->hi};
    Wide l = p[0], h = p[0];
    for (int i = 1; i < 4; i++) {
        if (p[i] < l)
            l = p[i];
        if (p[i] > h)
            h = p[i];
    }
    *lo = clamp64(l);
    *hi = clamp64(h);
    quotient_range(a, b, lo, hi);
    quotient_range(b, a, lo, hi);
    if (a->lo >= 0 && b->lo >= 0 && *hi > MOST_CELLS && *lo < MOST_CELLS)
        *hi = MOST_CELLS;
}

uint32_t factors_of(const Atom *a, uint32_t n, const Atom **f)
{
    /* PROD is left-nested: a is a product or an atom, b an atom. */
    for (; a->kind == ATOM_PROD; n++, a = a->a->t[0].atom)
        if (n < MAX_FACTORS)
            f[n] = a->b->t[0].atom;
    if (n < MAX_FACTORS)
        f[n] = a;
    return n + 1;
}

/* Product of two atoms: factors sorted by id, so that the order of multiplication never shows. */
static const Idx *atoms_mul(Arith *A, const Atom *x, const Atom *y)
{
    const Atom *f[MAX_FACTORS];
    uint32_t    n = factors_of(y, factors_of(x, 0, f), f);

    if (n > MAX_FACTORS)
        return overflowed(A);
    for (uint32_t i = 1; i < n; i++)
        for (uint32_t j = i; j && f[j]->id < f[j - 1]->id; j--) {
            const Atom *swap = f[j];
            f[j] = f[j - 1];
            f[j - 1] = swap;
        }
    IdxTerm    one = {1, f[0]};
    const Idx *p = idx_intern(A, 0, 1, &one);
    for (uint32_t i = 1; i < n; i++) {
        one.atom = f[i];
        const Idx *b = idx_intern(A, 0, 1, &one);
        int64_t    lo, hi;
        product_range(p, b, &lo, &hi);
        one.atom = atom_intern(A, ATOM_PROD, p, b, 0, NULL, lo, hi);
        p = idx_intern(A, 0, 1, &one);
    }
    return p;
}

const Idx *idx_mul(Arith *A, const Idx *x, const Idx *y)
{
    if (!y->nterms)
        return idx_mulc(A, x, y->c0);
    if (!x->nterms)
        return idx_mulc(A, y, x->c0);
    const Idx *sum = idx_lin(A, x, y->c0, NULL, 0, 0);
    for (uint32_t j = 0; j < y->nterms; j++) {
        IdxTerm one = {1, y->t[j].atom};
        int64_t cross;
        if (!checked_mul(x->c0, y->t[j].coef, &cross))
            return overflowed(A);
        sum = idx_lin(A, sum, 1, idx_intern(A, 0, 1, &one), cross, 0);
        for (uint32_t i = 0; i < x->nterms; i++) {
            if (!checked_mul(x->t[i].coef, y->t[j].coef, &cross))
                return overflowed(A);
            sum = idx_lin(A, sum, 1, atoms_mul(A, x->t[i].atom, y->t[j].atom), cross, 0);
        }
    }
    return sum;
}

/* ---- division
 * ------------------------------------------------------------------------------------ */

/* floor((g*u + r) / k) = floor(u / (k/g)) where g divides k and r lies in [0, g-1].  Finds the
 * largest such split of x (terms by falling coefficient), sets *u and *g; false if there is none.
 */
static bool div_group(Arith *A, const Idx *x, int64_t k, const Idx **u, int64_t *g_out)
{
    enum { FEW = 32 };
    if (x->nterms > FEW)
        return false;
    uint32_t order[FEW];
    for (uint32_t i = 0; i < x->nterms; i++) {
        order[i] = i;
        for (uint32_t j = i; j && x->t[order[j]].coef > x->t[order[j - 1]].coef; j--) {
            uint32_t swap = order[j];
            order[j] = order[j - 1];
            order[j - 1] = swap;
        }
    }
    int64_t g = k;
    for (uint32_t i = 0; i < x->nterms; i++) {
        g = gcd_i64(g, x->t[order[i]].coef);
        if (g == 1)
            return false;
        if (i + 1 < x->nterms && x->t[order[i + 1]].coef == x->t[order[i]].coef)
            continue;
        IdxTerm  big[FEW], small[FEW];
        uint32_t nb = 0, ns = 0;
        for (uint32_t j = 0; j < x->nterms; j++) {
            if (x->t[j].coef >= x->t[order[i]].coef)
                big[nb++] = (IdxTerm){x->t[j].coef / g, x->t[j].atom};
            else
                small[ns++] = x->t[j];
        }
        int64_t lo, hi;
        terms_range(floor_mod(x->c0, g), ns, small, &lo, &hi);
        if (lo >= 0 && hi < g) {
            *u = idx_intern(A, floor_div(x->c0, g), nb, big);
            *g_out = g;
            return true;
        }
    }
    return false;
}

/* e%m + multiples of k, where k does not divide m: the quotient keeps e%m whole, whose range is
 * known, and would not be if m*(e//m) were split by k.  NULL: x is not of that form. */
static const Idx *div_rest(Arith *A, const Idx *x, int64_t k)
{
    for (uint32_t i = 0; i < x->nterms; i++) {
        const Atom *d = x->t[i].atom;

        if (d->kind != ATOM_DIV || x->t[i].coef != -d->k || d->k % k == 0)
            continue;
        const Idx *rest = idx_sub(A, idx_mulc(A, idx_atom(A, d), -d->k), x); /* minus the others */
        rest = idx_add(A, d->a, rest);
        bool whole = rest->c0 % k == 0 && rest->nterms + d->a->nterms < x->nterms;
        for (uint32_t j = 0; j < rest->nterms; j++)
            whole = whole && rest->t[j].coef % k == 0;
        if (!whole)
            continue;
        const Idx *mod = idx_add(A, x, rest); /* e - m*(e//m) */
        if (mod->lo != 0 || mod->hi != d->k - 1)
            continue;
        const Atom *q = atom_intern(A, ATOM_DIV, mod, NULL, k, NULL, 0, mod->hi / k);
        return idx_sub(A, mod->hi < k ? A->zero : idx_atom(A, q), idx_divc(A, rest, k));
    }
    return NULL;
}

const Idx *idx_divc(Arith *A, const Idx *x, int64_t k)
{
    if (k <= 0)
        return overflowed(A);
    if (k == 1)
        return x;
    if (floor_div(x->lo, k) == floor_div(x->hi, k))
        return idx_const(A, floor_div(x->lo, k));
    const Idx *kept = div_rest(A, x, k);
    if (kept)
        return kept;
    enum { FEW = 32 };
    IdxTerm  few[2 * FEW], *q = few, *r;
    uint32_t nq = 0, nr = 0;
    if (x->nterms > FEW)
        q = NEW_ARRAY(A->arena, IdxTerm, 2 * (size_t)x->nterms);
    r = q + (x->nterms > FEW ? x->nterms : FEW);
    for (uint32_t i = 0; i < x->nterms; i++) {
        int64_t d = floor_div(x->t[i].coef, k), m = floor_mod(x->t[i].coef, k);
        if (d)
            q[nq++] = (IdxTerm){d, x->t[i].atom};
        if (m)
            r[nr++] = (IdxTerm){m, x->t[i].atom};
    }
    const Idx *whole = idx_intern(A, floor_div(x->c0, k), nq, q);
    const Idx *rest = idx_intern(A, floor_mod(x->c0, k), nr, r);
    if (floor_div(rest->lo, k) == floor_div(rest->hi, k))
        return idx_addc(A, whole, floor_div(rest->lo, k));
    int64_t    g;
    const Idx *u;
    if (div_group(A, rest, k, &u, &g))
        return idx_add(A, whole, idx_divc(A, u, k / g));
    /* (e//a + c)//k = (e + c*a)//(a*k) */
    if (rest->nterms == 1 && rest->t[0].coef == 1 && rest->t[0].atom->kind == ATOM_DIV) {
        const Atom *d = rest->t[0].atom;
        int64_t     ak, ca;
        if (checked_mul(d->k, k, &ak) && checked_mul(rest->c0, d->k, &ca))
            return idx_add(A, whole, idx_divc(A, idx_addc(A, d->a, ca), ak));
    }
    const Atom *d = atom_intern(A, ATOM_DIV, rest, NULL, k, NULL, floor_div(rest->lo, k),
                                floor_div(rest->hi, k));
    return idx_add(A, whole, idx_atom(A, d));
}

const Idx *idx_modc(Arith *A, const Idx *x, int64_t k)
{
    return k <= 0 ? overflowed(A) : idx_lin(A, x, 1, idx_divc(A, x, k), -k, 0);
}

/* Terms of x that contain y (if y is one atom) come out whole; the rest is opaque. */
const Idx *idx_div(Arith *A, const Idx *x, const Idx *y)
{
    if (!y->nterms)
        return idx_divc(A, x, y->c0 > 1 ? y->c0 : 1);
    if (x == y)
        return idx_const(A, 1);
    const Idx *whole = A->zero, *rest = x;
    if (y->nterms == 1 && !y->c0) {
        const Atom *d = y->t[0].atom;
        int64_t     cy = y->t[0].coef;
        for (uint32_t i = 0; i < x->nterms; i++) {
            const Atom *f[MAX_FACTORS];
            uint32_t    n = factors_of(x->t[i].atom, 0, f), at = n;
            for (uint32_t j = 0; j < n; j++)
                if (f[j] == d)
                    at = j;
            if (at == n || x->t[i].coef % cy)
                continue;
            IdxTerm    one = {1, x->t[i].atom};
            const Idx *others = idx_const(A, 1);
            for (uint32_t j = 0; j < n; j++)
                if (j != at)
                    others = idx_mul(A, others, idx_atom(A, f[j]));
            whole = idx_lin(A, whole, 1, others, x->t[i].coef / cy, 0);
            rest = idx_lin(A, rest, 1, idx_intern(A, 0, 1, &one), -x->t[i].coef, 0);
        }
    }
    if (rest->lo >= 0 && idx_sub(A, rest, y)->hi < 0)
        return whole;
    int64_t ylo = y->lo > 0 ? y->lo : 1, yhi = y->hi > 0 ? y->hi : 1;
    int64_t lo = floor_div(rest->lo, rest->lo < 0 ? ylo : yhi);
    int64_t hi = floor_div(rest->hi, rest->hi < 0 ? yhi : ylo);
    return idx_add(A, whole, idx_atom(A, atom_intern(A, ATOM_SYMDIV, rest, y, 0, NULL, lo, hi)));
}

const Idx *idx_mod(Arith *A, const Idx *x, const Idx *y)
{
    return idx_sub(A, x, idx_mul(A, y, idx_div(A, x, y)));
}

const Idx *idx_divisor(Arith *A, const Atom *symdiv)
{
    return idx_max(A, symdiv->b, idx_const(A, 1));
}

/* min(x, y) or max(x, y) where it is known which; NULL. */
static const Idx *known_end(Arith *A, AtomKind kind, const Idx *x, const Idx *y)
{
    const Idx *d = idx_sub(A, x, y);

    return d->hi <= 0 ? (kind == ATOM_MIN ? x : y) : d->lo >= 0 ? (kind == ATOM_MIN ? y : x) : NULL;
}

static const Idx *min_max(Arith *A, AtomKind kind, const Idx *x, const Idx *y);

/* min(x, min(a, b) + c) where x need not be compared with both, likewise max; NULL. */
static const Idx *absorb(Arith *A, AtomKind kind, const Idx *x, const Idx *pair)
{
    if (pair->nterms != 1 || pair->t[0].coef != 1 || pair->t[0].atom->kind != kind)
        return NULL;
    for (int side = 0; side < 2; side++) {
        const Atom *v = pair->t[0].atom;
        const Idx  *one = idx_addc(A, side ? v->b : v->a, pair->c0);
        const Idx  *other = idx_addc(A, side ? v->a : v->b, pair->c0);
        const Idx  *end = known_end(A, kind, x, one);

        if (end)
            return end == one ? pair : min_max(A, kind, x, other);
    }
    return NULL;
}

static const Idx *min_max(Arith *A, AtomKind kind, const Idx *x, const Idx *y)
{
    const Idx *end = known_end(A, kind, x, y);

    if (end || (end = absorb(A, kind, x, y)) || (end = absorb(A, kind, y, x)))
        return end;
    bool    swap = x->id > y->id, min = kind == ATOM_MIN;
    int64_t lo = (x->lo < y->lo) == min ? x->lo : y->lo;
    int64_t hi = (x->hi < y->hi) == min ? x->hi : y->hi;
    return idx_atom(A, atom_intern(A, kind, swap ? y : x, swap ? x : y, 0, NULL, lo, hi));
}

const Idx *idx_min(Arith *A, const Idx *x, const Idx *y)
{
    return min_max(A, ATOM_MIN, x, y);
}
const Idx *idx_max(Arith *A, const Idx *x, const Idx *y)
{
    return min_max(A, ATOM_MAX, x, y);
}

/* ---- questions
 * ------------------------------------------------------------------------------------- */

bool idx_is_const(const Idx *x, int64_t *v)
{
    if (x->nterms)
        return false;
    if (v)
        *v = x->c0;
    return true;
}

bool idx_is_atom(const Idx *x, const Atom **atom)
{
    if (x->nterms != 1 || x->c0 || x->t[0].coef != 1)
        return false;
    if (atom)
        *atom = x->t[0].atom;
    return true;
}

int64_t idx_coef(const Idx *x, const Atom *a)
{
    for (uint32_t i = 0; i < x->nterms; i++)
        if (x->t[i].atom == a)
            return x->t[i].coef;
    return 0;
}

typedef struct {
    const Atom    *atom;
    const AtomSet *set;
} Sought;

static bool prim_has(const Prim *p, const Sought *s);

static bool idx_has(const Idx *x, const Sought *s)
{
    for (uint32_t i = 0; i < x->nterms; i++) {
        const Atom *a = x->t[i].atom;
        if (a == s->atom || (s->set && atomset_has(s->set, a)))
            return true;
        if (a->a && idx_has(a->a, s))
            return true;
        if (a->b && idx_has(a->b, s))
            return true;
        if (a->load && prim_has(a->load, s))
            return true;
    }
    return false;
}

static bool prim_has(const Prim *p, const Sought *s)
{
    if ((p->kind == PRIM_INDEX || p->kind == PRIM_CASE || p->kind == PRIM_RAMP) &&
        idx_has(p->u.index, s))
        return true;
    if (p->kind == PRIM_LOAD)
        for (uint32_t i = 0; i < p->u.load.n; i++)
            if (idx_has(p->u.load.index[i], s))
                return true;
    for (uint32_t i = 0; i < p->nkids; i++)
        if (prim_has(p->kids[i], s))
            return true;
    return false;
}

bool idx_reads_memory(const Idx *x)
{
    for (uint32_t i = 0; i < x->nterms; i++) {
        const Atom *a = x->t[i].atom;
        if (a->kind == ATOM_LOAD || (a->a && idx_reads_memory(a->a)) ||
            (a->b && idx_reads_memory(a->b)))
            return true;
    }
    return false;
}

bool idx_uses(const Idx *x, const Atom *a)
{
    return idx_has(x, &(Sought){a, NULL});
}

bool idx_uses_any(const Idx *x, const AtomSet *set)
{
    return idx_has(x, &(Sought){NULL, set});
}
