/* Inside ir/arith only: the interner and a form that is not (yet) interned. */
#ifndef TVMCC_IR_ARITH_ARITH_IMPL_H
#define TVMCC_IR_ARITH_ARITH_IMPL_H

#include "ir/arith/arith.h"

struct Arith {
    Arena     *arena;
    Strings   *strings;
    Map       *idx, *atoms; /* hash -> chain of equals */
    uint32_t   nidx, natoms;
    bool       overflow;
    const Idx *zero;
    const void *(*on_load)(void *user, IdxSubst *s, const void *load);
    void *user;
};

/* cx*x + cy*y + c, interned; y may be NULL. */
const Idx *idx_lin(Arith *A, const Idx *x, int64_t cx, const Idx *y, int64_t cy, int64_t c);
/* The interned form of n terms, sorted by atom id, none with coefficient 0. */
const Idx *idx_intern(Arith *A, int64_t c0, uint32_t n, const IdxTerm *t);
/* The interned atom of a kind; for DIV (a, k), for PROD, SYMDIV, MIN, MAX (a, b). */
const Atom *atom_intern(Arith *A, AtomKind kind, const Idx *a, const Idx *b, int64_t k,
                        const void *load, int64_t lo, int64_t hi);
/* Range of a form given as terms: interval sum, tightened (range.c). */
void terms_range(int64_t c0, uint32_t n, const IdxTerm *t, int64_t *lo, int64_t *hi);
/* Writes cf*f + cg*(terms of g) to out (room for nf + ng terms); the number of terms.  False in
 * *ok if a coefficient overflows. */
uint32_t terms_add(uint32_t nf, const IdxTerm *f, int64_t cf, uint32_t ng, const IdxTerm *g,
                   int64_t cg, IdxTerm *out, bool *ok);

enum { MAX_FACTORS = 16 };

/* The factors of a product from f[n] on, or the atom itself; how many there are then, of which f
 * has MAX_FACTORS at most: a product of more counts as an overflow. */
uint32_t factors_of(const Atom *a, uint32_t n, const Atom **f);

/* 128-bit intermediate results, clamped: ranges saturate instead of overflowing. */
__extension__ typedef __int128 Wide;
static inline int64_t          clamp64(Wide v)
{
    return v > INT64_MAX ? INT64_MAX : v < INT64_MIN ? INT64_MIN : (int64_t)v;
}

#endif
