/* Index arithmetic: one normal form, ranges, predicates, bounds.
 *
 * An index is  c0 + sum coef_i * atom_i,  interned in its `Arith`: equal means same pointer.  Terms
 * are sorted by atom id and never have coefficient 0.  There is no mod atom: e % k is built as
 * e - k*Div(e, k) and only printed as `%`.  The makers do all simplification, so nothing can fail
 * to terminate and there are no rewrite rules:
 *   Div(e, k): take out multiples of k per coefficient; if the rest lies within one period it is a
 *   constant; divide by the gcd; Div(Div(e, a), b) = Div(e, a*b).
 * A range is the interval sum, tightened by spotting  q*(e - k*Div(e,k))  in [0, q*(k-1)]  and
 * Div(u,k) - m*Div(u,k*m)  in [0, m-1].  An index has no width: arithmetic here is 64 bits,
 * checked; an overflow sets `arith_overflow` and gives 0, and the caller's runner reports it.
 *
 *   idx.c    makers
 *   range.c  ranges
 *   subst.c  substitution, evaluation
 *   bound.c  regions
 *   pred.c   predicates
 *   exact.c  exact quotients
 *   usual.c  dimensions without an upper bound
 *   text.c   print, parse
 */
#ifndef TVMCC_IR_ARITH_ARITH_H
#define TVMCC_IR_ARITH_ARITH_H

#include "base/base.h"

typedef struct Arith Arith;
typedef struct Idx   Idx;
typedef struct Atom  Atom;

typedef enum {
    ATOM_VAR,  /* a loop variable, block iterator, dimension or scalar parameter; owns its range */
    ATOM_DIV,  /* floor(a / k), k > 1 constant */
    ATOM_PROD, /* a * b, both symbolic (opaque: dynamic strides, tid * extent) */
    ATOM_SYMDIV, /* floor(a / max(b, 1)), b symbolic (opaque); a run may make b a size of 0 */
    ATOM_MIN,    /* min(a, b) */
    ATOM_MAX,    /* max(a, b) */
    ATOM_LOAD /* an integer read from a buffer: `load` is the Prim (ir/tir/tir.h), lo..hi declared
               */
} AtomKind;

struct Atom {
    AtomKind    kind;
    uint32_t    id;     /* dense, order of creation */
    int64_t     lo, hi; /* inclusive range of the value */
    const Idx  *a, *b;  /* operands, by kind */
    int64_t     k;      /* ATOM_DIV's divisor */
    const char *name;   /* ATOM_VAR: name for people, not unique */
    const void *load;   /* ATOM_LOAD: const Prim *, interned */
    const Idx  *below;  /* ATOM_VAR: a form over dimensions that the value is below, or NULL */
};

typedef struct {
    int64_t     coef;
    const Atom *atom;
} IdxTerm;

struct Idx {
    int64_t  c0;
    int64_t  lo, hi; /* inclusive range */
    uint32_t id, nterms;
    IdxTerm  t[]; /* sorted by atom id */
};

Arith *arith_new(Arena *a, Strings *s);
bool   arith_overflow(const Arith *A); /* some index overflowed 64 bits since the start */

/* ---- idx.c --------------------------------------------------------------------------------- */

const Atom *atom_var(Arith *A, const char *name, int64_t lo, int64_t hi); /* always a fresh one */
/* ... of 0 .. end - 1, where end is a number, or a form over dimensions; ranges of indices use it.
 */
const Atom *atom_upto(Arith *A, const char *name, const Idx *end);
/* ... of lo .. most, a form over dimensions; sizes end at DIM_OPEN. */
const Atom *atom_within(Arith *A, const char *name, int64_t lo, const Idx *most);
const Idx  *atom_most(Arith *A, const Atom *a); /* the largest value of a variable */
/* May a dimension be at most x?  It is a form over such whose own bounds are numbers. */
bool is_dim_bound(const Idx *x);
/* ... of the values of another variable. */
const Atom *atom_like(Arith *A, const char *name, const Atom *v);
const Idx  *idx_const(Arith *A, int64_t v);
const Idx  *idx_atom(Arith *A, const Atom *a); /* a constant if lo == hi */
const Idx  *idx_load(Arith *A, const void *load, int64_t lo, int64_t hi); /* same load, same atom */
const Idx  *idx_add(Arith *A, const Idx *x, const Idx *y);
const Idx  *idx_sub(Arith *A, const Idx *x, const Idx *y);
const Idx  *idx_addc(Arith *A, const Idx *x, int64_t c);
const Idx  *idx_mulc(Arith *A, const Idx *x, int64_t c);
const Idx  *idx_mul(Arith *A, const Idx *x, const Idx *y); /* PROD when neither is constant */
const Idx  *idx_divc(Arith *A, const Idx *x, int64_t k);   /* floor, k > 0 */
const Idx  *idx_modc(Arith *A, const Idx *x, int64_t k);   /* in [0, k), k > 0 */
/* floor(x / max(y, 1)); SYMDIV if y is symbolic */
const Idx *idx_div(Arith *A, const Idx *x, const Idx *y);
const Idx *idx_mod(Arith *A, const Idx *x, const Idx *y); /* x - y*div(x,y) */
const Idx *idx_divisor(Arith *A, const Atom *symdiv);     /* max(b, 1), for what writes code */
const Idx *idx_min(Arith *A, const Idx *x, const Idx *y); /* decided by ranges where possible */
const Idx *idx_max(Arith *A, const Idx *x, const Idx *y);

bool idx_is_const(const Idx *x, int64_t *v); /* v may be NULL */
/* x is exactly 1 * atom (of any kind) + 0. */
bool    idx_is_atom(const Idx *x, const Atom **atom);
int64_t idx_coef(const Idx *x, const Atom *a); /* of the term itself, 0 if absent */
bool    idx_uses(const Idx *x, const Atom *a); /* anywhere, inside Div and loads' indices too */
bool    idx_reads_memory(const Idx *x);        /* anywhere in it */

/* ---- exact.c ------------------------------------------------------------------------------- */

/* The q with q*y = x, as polynomials over the atoms; NULL: there is none.  768*N*T by 12*T is 64*N.
 */
const Idx *idx_div_exact(Arith *A, const Idx *x, const Idx *y);

/* ---- usual.c ------------------------------------------------------------------------------- */

/* Where the range of a dimension without an upper bound ends, and the size that is taken for it
 * where sizes only say what is worth while. */
enum { DIM_OPEN = INT32_MAX, DIM_USUAL = 1024 };

bool    atom_is_open(const Atom *a);
bool    idx_is_open(const Idx *x); /* it mentions such a dimension */
int64_t idx_usual(const Idx *x);   /* the largest value; the usual one if x is open */
int64_t atom_usual(const Atom *a); /* how many values a variable has: at most, or usually */

/* ---- text.c -------------------------------------------------------------------------------- */

/* Text (docs/ir/tir.md): `%oc*2+%ov`, `%x//6`, `%x%6` (recognised from e - k*(e//k)); names through
 * `name`, which gives a variable's printed name (NULL callback: the atom's own name). */
typedef struct {
    const char *(*name)(void *user, const Atom *a);
    void (*load)(void *user, StrBuf *out, const void *load);
    void *user;
} IdxPrinter;
void idx_print(const Idx *x, const IdxPrinter *p, StrBuf *out);

/* Parse what idx_print writes; `%` before a name is optional.  `*at` moves past the index and the
 * blanks before it; NULL: not an index, `*at` then is where it went wrong. */
typedef struct {
    const Idx *(*name)(void *user, const char *name, size_t n); /* NULL: unknown name */
    const Idx *(*load)(void *user, const char **at);            /* NULL callback or NULL: no load */
    void *user;
} IdxParser;
const Idx *idx_parse(Arith *A, const char **at, const IdxParser *p);

/* ---- subst.c ------------------------------------------------------------------------------- */

/* A substitution: variables to indices.  Memoised by index id for its own life time. */
typedef struct IdxSubst IdxSubst;
IdxSubst               *subst_new(Arith *A, Arena *scratch);
void       subst_bind(IdxSubst *s, const Atom *var, const Idx *value); /* before the first use */
const Idx *subst_get(const IdxSubst *s, const Atom *var);              /* NULL if unbound */
/* How all substitutions of A go into the Prim of an ATOM_LOAD: what fn gives has the indices
 * substituted.  Without it loads stay as they are. */
void arith_on_load(Arith *A, const void *(*fn)(void *user, IdxSubst *s, const void *load),
                   void  *user);
/* The same substitution for indices whose loads are done already. */
IdxSubst *subst_beside_loads(IdxSubst *s);
/* For this substitution alone. */
void       subst_on_load(IdxSubst *s, const void *(*fn)(void *user, const void *load), void *user);
const Idx *idx_subst(IdxSubst *s, const Idx *x);

/* Values of the variables with ids lo .. lo + n - 1, of those that are bound. */
typedef struct {
    uint32_t lo, n;
    int64_t *value;
    bool    *bound;
} IdxTable;

/* The value under an assignment of variables (and loads), by a table and by callback. */
typedef struct {
    int64_t (*var)(void *user, const Atom *a); /* for LOAD atoms, and VAR atoms the table has not */
    void           *user;
    const IdxTable *table; /* or NULL */
} IdxEnv;
int64_t idx_eval(const Idx *x, const IdxEnv *env);

/* ---- bound.c: what region an index covers --------------------------------------------------- */

/* A set of variables that run (all others are symbols). */
typedef struct AtomSet AtomSet;
AtomSet               *atomset_new(Arena *a);
void                   atomset_add(AtomSet *s, const Atom *v);
bool                   atomset_has(const AtomSet *s, const Atom *v);
bool                   idx_uses_any(const Idx *x, const AtomSet *s);

/* Lower and upper end of x while the variables of `inner` run, as indices over the others.
 * Always sound, exact where that is possible (monotone Div; a mod group is taken whole unless it
 * provably does not wrap). */
void idx_bound(Arith *A, const Idx *x, const AtomSet *inner, const Idx **lo, const Idx **hi);
/* The upper end alone, of a size, also where its range is beyond 64 bits. */
const Idx *idx_most(Arith *A, const Idx *x, const AtomSet *inner);
/* Largest value of hi - lo + 1, by the pair rule Div(u+c,k) - Div(u,k) <= ceil(c/k). */
int64_t idx_extent(Arith *A, const Idx *lo, const Idx *hi);

/* ---- pred.c: conjunctions of  e >= 0 --------------------------------------------------------- */

typedef struct {
    uint32_t          n; /* 0: true */
    const Idx *const *ge0;
} Pred;

#define PRED_TRUE ((Pred){0})
/* p and e >= 0; what is provably true is left out. */
Pred pred_and(Arith *A, Arena *a, Pred p, const Idx *e);
Pred pred_and_pred(Arith *A, Arena *a, Pred p, Pred q);
Pred pred_subst(IdxSubst *s, Arena *a, Pred p);
/* e >= 0 holds: by its range, or by the range of e minus one known fact of `known`. */
bool pred_implies(Arith *A, Pred known, const Idx *e);
/* e >= 0 can never hold (its upper end is negative). */
bool idx_never(const Idx *e);

#endif
