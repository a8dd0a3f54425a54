/* The folding makers of arithmetic, comparison and conversion.  They fold constants exactly as the
 * target computes them (ir/scalar.h) and nothing that could change bits: floats keep x+0 and x*0.
 * Splats move outwards, so a vector expression of invariant operands is one scalar expression.
 *
 * Conditions on indices have one form: `0 <= e`, `e == 0` or `e != 0` over an index e of type i64,
 * decided by the range of e where that is possible; so `pred_prim` and `prim_pred` are inverse to
 * each other, and printing and parsing agree.  Integer arithmetic on indices becomes index
 * arithmetic, which is exact because both are taken modulo 2^bits. */
#include "ir/tir/prim_node.h"

#include <math.h>

bool prim_scalar_const(const Prim *p, Scalar *v)
{
    if (p->kind == PRIM_SPLAT)
        p = p->kids[0];
    if (p->kind == PRIM_INT)
        *v = (Scalar){.i = p->u.i};
    if (p->kind == PRIM_FLOAT)
        *v = (Scalar){.f = p->u.f};
    return p->kind == PRIM_INT || p->kind == PRIM_FLOAT;
}

static const Prim *number(Ctx *c, DType t, Scalar v)
{
    return dtype_is_float(t) ? prim_float(c, t, v.f) : prim_int(c, t, v.i);
}

static bool is_num(const Prim *p, double v)
{
    Scalar s;

    if (!prim_scalar_const(p, &s))
        return false;
    if (!dtype_is_float(p->dtype))
        return s.i == (int64_t)v;
    return s.f == v && !signbit(s.f) == !signbit(v);
}

static const Prim *node2(Ctx *c, PrimKind k, DType t, const Prim *a, const Prim *b)
{
    Prim p = {.kind = k, .dtype = t, .nkids = 2, .kids = (const Prim *const[]){a, b}};

    return prim_node(c, &p);
}

/* ---- integers as indices ------------------------------------------------------------------------ */

/* Indices of any size would overflow the index arithmetic at compile time; ordinary ones are small.
 */
enum { SMALL_BITS = 40 };

static bool small(const Idx *x)
{
    return x->lo >= -(1ll << SMALL_BITS) && x->hi <= 1ll << SMALL_BITS;
}

/* p as an index: an index or a number, not too large. */
static const Idx *as_index(Ctx *c, const Prim *p)
{
    const Idx *x = NULL;

    if (p->kind == PRIM_INDEX)
        x = p->u.index;
    if (p->kind == PRIM_INT && dtype_is_int(p->dtype))
        x = idx_const(c->arith, p->u.i);
    return x && small(x) ? x : NULL;
}

/* The value of p is x itself, without wrapping. */
static bool holds(DType t, const Idx *x)
{
    if (t.code == DT_UINT && x->lo < 0)
        return false;
    return scalar_wrap(t, x->lo) == x->lo && scalar_wrap(t, x->hi) == x->hi;
}

static const Prim *fold_index(Ctx *c, PrimKind k, const Prim *a, const Prim *b)
{
    const Idx *x, *y;
    int64_t    v;

    if (a->kind != PRIM_INDEX && b->kind != PRIM_INDEX)
        return NULL;
    if (!(x = as_index(c, a)) || !(y = as_index(c, b)))
        return NULL;
    switch (k) {
    case PRIM_ADD: return prim_index(c, a->dtype, idx_add(c->arith, x, y));
    case PRIM_SUB: return prim_index(c, a->dtype, idx_sub(c->arith, x, y));
    case PRIM_MUL:
        if (idx_is_const(y, &v) && v > -(1 << 20) && v < 1 << 20)
            return prim_index(c, a->dtype, idx_mulc(c->arith, x, v));
        if (idx_is_const(x, &v) && v > -(1 << 20) && v < 1 << 20)
            return prim_index(c, a->dtype, idx_mulc(c->arith, y, v));
        return NULL;
    case PRIM_DIV:
    case PRIM_REM: /* truncation is floor where nothing is negative */
        if (!idx_is_const(y, &v) || v <= 0 || x->lo < 0 || !holds(a->dtype, x))
            return NULL;
        return prim_index(c, a->dtype,
                          k == PRIM_DIV ? idx_divc(c->arith, x, v) : idx_modc(c->arith, x, v));
    default: return NULL;
    }
}

/* ---- comparisons ----------------------------------------------------------------------------------- */

/* 0 <= e */
static const Prim *ge0(Ctx *c, const Idx *e)
{
    if (e->lo >= 0)
        return prim_int(c, DT_BOOL, 1);
    if (e->hi < 0)
        return prim_int(c, DT_BOOL, 0);
    return node2(c, PRIM_LE, DT_BOOL, prim_int(c, DT_I64, 0), prim_index(c, DT_I64, e));
}

/* e == 0 or e != 0; one sign of e, and 0 <= -e where e cannot be negative */
static const Prim *eq0(Ctx *c, PrimKind k, const Idx *e)
{
    bool eq = k == PRIM_EQ;

    if (e->lo > 0 || e->hi < 0)
        return prim_int(c, DT_BOOL, !eq);
    if (e->lo == 0 && e->hi == 0)
        return prim_int(c, DT_BOOL, eq);
    if (e->nterms && e->t[0].coef < 0)
        e = idx_mulc(c->arith, e, -1);
    if (e->lo == 0)
        return eq ? ge0(c, idx_mulc(c->arith, e, -1)) : ge0(c, idx_addc(c->arith, e, -1));
    if (e->hi == 0)
        return eq ? ge0(c, e) : ge0(c, idx_addc(c->arith, idx_mulc(c->arith, e, -1), -1));
    return node2(c, k, DT_BOOL, prim_index(c, DT_I64, e), prim_int(c, DT_I64, 0));
}

static const Prim *compare_index(Ctx *c, PrimKind k, const Prim *a, const Prim *b)
{
    const Idx *x, *y, *d;

    if (a->kind != PRIM_INDEX && b->kind != PRIM_INDEX)
        return NULL;
    if (!(x = as_index(c, a)) || !(y = as_index(c, b)))
        return NULL;
    if (!holds(a->dtype, x) || !holds(b->dtype, y))
        return NULL;
    d = idx_sub(c->arith, y, x);
    if (k == PRIM_LE)
        return ge0(c, d);
    if (k == PRIM_LT)
        return ge0(c, idx_addc(c->arith, d, -1));
    return eq0(c, k, d);
}

static const Prim *compare(Ctx *c, PrimKind k, const Prim *a, const Prim *b)
{
    DType       t = dtype_lanes(DT_BOOL, a->dtype.lanes);
    Scalar      x, y;
    const Prim *folded;

    if (prim_scalar_const(a, &x) && prim_scalar_const(b, &y))
        return prim_int(c, t, scalar_bin(k, dtype_lanes(a->dtype, 1), x, y).i);
    if ((folded = compare_index(c, k, a, b)))
        return folded;
    if (a == b && !dtype_is_float(a->dtype))
        return prim_int(c, t, k == PRIM_EQ || k == PRIM_LE);
    return node2(c, k, t, a, b);
}

/* ---- arithmetic ------------------------------------------------------------------------------------- */

static const Prim *fold_float(PrimKind k, const Prim *a, const Prim *b)
{
    switch (k) {
    case PRIM_ADD: /* x + -0 = x for every x, x + 0 is not */
        if (is_num(b, -0.0))
            return a;
        return is_num(a, -0.0) ? b : NULL;
    case PRIM_SUB:
        if (is_num(b, 0.0))
            return a;
        /* -0 - (-0 - x) = x */
        if (is_num(a, -0.0) && b->kind == PRIM_SUB && is_num(b->kids[0], -0.0))
            return b->kids[1];
        return NULL;
    case PRIM_MUL:
        if (is_num(b, 1))
            return a;
        return is_num(a, 1) ? b : NULL;
    case PRIM_DIV: return is_num(b, 1) ? a : NULL;
    case PRIM_MIN:
    case PRIM_MAX:
    case PRIM_MINNUM:
    case PRIM_MAXNUM: return a == b ? a : NULL;
    default: return NULL;
    }
}

static const Prim *fold_int(Ctx *c, PrimKind k, const Prim *a, const Prim *b)
{
    bool one = dtype_is_bool(a->dtype); /* all bits set, for bool */

    switch (k) {
    case PRIM_ADD:
    case PRIM_XOR:
        if (k == PRIM_XOR && a == b)
            return prim_num(c, a->dtype, 0);
        if (is_num(b, 0))
            return a;
        return is_num(a, 0) ? b : NULL;
    case PRIM_SUB:
        if (a == b)
            return prim_num(c, a->dtype, 0);
        return is_num(b, 0) ? a : NULL;
    case PRIM_MUL:
        if (is_num(a, 0) || is_num(b, 0))
            return prim_num(c, a->dtype, 0);
        if (is_num(b, 1))
            return a;
        return is_num(a, 1) ? b : NULL;
    case PRIM_DIV: return is_num(b, 1) ? a : NULL;
    case PRIM_REM: return is_num(b, 1) ? prim_num(c, a->dtype, 0) : NULL;
    case PRIM_SHL:
    case PRIM_SHR: return is_num(b, 0) ? a : NULL;
    case PRIM_MIN:
    case PRIM_MAX:
    case PRIM_MINNUM:
    case PRIM_MAXNUM: return a == b ? a : NULL;
    case PRIM_AND:
        if (a == b || (one && is_num(b, 1)))
            return a;
        if (one && is_num(a, 1))
            return b;
        return is_num(a, 0) || is_num(b, 0) ? prim_num(c, a->dtype, 0) : NULL;
    case PRIM_OR:
        if (a == b || is_num(b, 0))
            return a;
        if (is_num(a, 0))
            return b;
        return one && (is_num(a, 1) || is_num(b, 1)) ? prim_num(c, a->dtype, 1) : NULL;
    default: return NULL;
    }
}

const Prim *prim_bin(Ctx *c, PrimKind k, const Prim *a, const Prim *b)
{
    bool        compares = k == PRIM_EQ || k == PRIM_NE || k == PRIM_LT || k == PRIM_LE;
    Scalar      x, y;
    const Prim *folded;

    if (a->dtype.lanes == 1 && b->dtype.lanes > 1)
        a = prim_splat(c, a, b->dtype.lanes);
    if (b->dtype.lanes == 1 && a->dtype.lanes > 1)
        b = prim_splat(c, b, a->dtype.lanes);
    if (!dtype_eq(a->dtype, b->dtype))
        BUG("operands of kind %d: %s and %s", (int)k, dtype_text(c, a->dtype),
            dtype_text(c, b->dtype));
    if (a->kind == PRIM_SPLAT && b->kind == PRIM_SPLAT)
        return prim_splat(c, prim_bin(c, k, a->kids[0], b->kids[0]), a->dtype.lanes);
    if (compares)
        return compare(c, k, a, b);
    if (prim_scalar_const(a, &x) && prim_scalar_const(b, &y))
        return number(c, a->dtype, scalar_bin(k, dtype_lanes(a->dtype, 1), x, y));
    folded = dtype_is_float(a->dtype) ? fold_float(k, a, b) : fold_int(c, k, a, b);
    if (!folded)
        folded = fold_index(c, k, a, b);
    return folded ? folded : node2(c, k, a->dtype, a, b);
}

const Prim *prim_add(Ctx *c, const Prim *a, const Prim *b)
{
    return prim_bin(c, PRIM_ADD, a, b);
}
const Prim *prim_sub(Ctx *c, const Prim *a, const Prim *b)
{
    return prim_bin(c, PRIM_SUB, a, b);
}
const Prim *prim_mul(Ctx *c, const Prim *a, const Prim *b)
{
    return prim_bin(c, PRIM_MUL, a, b);
}
const Prim *prim_div(Ctx *c, const Prim *a, const Prim *b)
{
    return prim_bin(c, PRIM_DIV, a, b);
}
const Prim *prim_min(Ctx *c, const Prim *a, const Prim *b)
{
    return prim_bin(c, PRIM_MIN, a, b);
}
const Prim *prim_max(Ctx *c, const Prim *a, const Prim *b)
{
    return prim_bin(c, PRIM_MAX, a, b);
}
const Prim *prim_lt(Ctx *c, const Prim *a, const Prim *b)
{
    return prim_bin(c, PRIM_LT, a, b);
}
const Prim *prim_le(Ctx *c, const Prim *a, const Prim *b)
{
    return prim_bin(c, PRIM_LE, a, b);
}
const Prim *prim_eq(Ctx *c, const Prim *a, const Prim *b)
{
    return prim_bin(c, PRIM_EQ, a, b);
}
const Prim *prim_and(Ctx *c, const Prim *a, const Prim *b)
{
    return prim_bin(c, PRIM_AND, a, b);
}
const Prim *prim_or(Ctx *c, const Prim *a, const Prim *b)
{
    return prim_bin(c, PRIM_OR, a, b);
}

const Prim *prim_neg(Ctx *c, const Prim *a)
{
    return prim_sub(c, prim_num(c, a->dtype, dtype_is_float(a->dtype) ? -0.0 : 0.0), a);
}

const Prim *prim_fma(Ctx *c, const Prim *a, const Prim *b, const Prim *d)
{
    uint16_t    lanes = a->dtype.lanes;
    const Prim *k[3] = {a, b, d};
    Prim        p = {.kind = PRIM_FMA, .nkids = 3, .kids = k};
    Scalar      x, y, z;
    bool        splats = true;

    for (int i = 1; i < 3; i++)
        lanes = k[i]->dtype.lanes > lanes ? k[i]->dtype.lanes : lanes;
    for (int i = 0; i < 3; i++) {
        k[i] = k[i]->dtype.lanes == 1 ? prim_splat(c, k[i], lanes) : k[i];
        splats = splats && k[i]->kind == PRIM_SPLAT;
        if (!dtype_eq(k[i]->dtype, k[0]->dtype))
            BUG("operands of fma differ in type");
    }
    if (splats)
        return prim_splat(c, prim_fma(c, k[0]->kids[0], k[1]->kids[0], k[2]->kids[0]), lanes);
    if (prim_scalar_const(a, &x) && prim_scalar_const(b, &y) && prim_scalar_const(d, &z))
        return number(c, k[0]->dtype, scalar_fma(dtype_lanes(k[0]->dtype, 1), x, y, z));
    p.dtype = k[0]->dtype;
    return prim_node(c, &p);
}

const Prim *prim_not(Ctx *c, const Prim *a)
{
    Prim   p = {.kind = PRIM_NOT, .dtype = a->dtype, .nkids = 1, .kids = &a};
    Scalar v;

    if (dtype_is_float(a->dtype))
        BUG("not of a float");
    if (a->kind == PRIM_SPLAT)
        return prim_splat(c, prim_not(c, a->kids[0]), a->dtype.lanes);
    if (prim_scalar_const(a, &v))
        return prim_int(c, a->dtype, scalar_not(a->dtype, v).i);
    if (a->kind == PRIM_NOT)
        return a->kids[0];
    if (a->kind == PRIM_EQ)
        return prim_bin(c, PRIM_NE, a->kids[0], a->kids[1]);
    if (a->kind == PRIM_NE)
        return prim_bin(c, PRIM_EQ, a->kids[0], a->kids[1]);
    if ((a->kind == PRIM_LT || a->kind == PRIM_LE) && !dtype_is_float(a->kids[0]->dtype))
        return prim_bin(c, a->kind == PRIM_LT ? PRIM_LE : PRIM_LT, a->kids[1], a->kids[0]);
    return prim_node(c, &p);
}

const Prim *prim_select(Ctx *c, const Prim *cond, const Prim *a, const Prim *b)
{
    uint16_t lanes = cond->dtype.lanes;
    Prim     p = {.kind = PRIM_SELECT, .nkids = 3};
    Scalar   v;

    if (!dtype_is_bool(cond->dtype))
        BUG("condition of type %s", dtype_text(c, cond->dtype));
    lanes = a->dtype.lanes > lanes ? a->dtype.lanes : lanes;
    lanes = b->dtype.lanes > lanes ? b->dtype.lanes : lanes;
    if (a->dtype.lanes == 1)
        a = prim_splat(c, a, lanes);
    if (b->dtype.lanes == 1)
        b = prim_splat(c, b, lanes);
    if (!dtype_eq(a->dtype, b->dtype))
        BUG("arms of select: %s and %s", dtype_text(c, a->dtype), dtype_text(c, b->dtype));
    if (a == b || (prim_scalar_const(cond, &v) && v.i))
        return a;
    if (prim_scalar_const(cond, &v))
        return b;
    if (cond->kind == PRIM_NOT)
        return prim_select(c, cond->kids[0], b, a);
    if (cond->kind == PRIM_SPLAT)
        cond = cond->kids[0]; /* one condition chooses the whole vector */
    if (cond->dtype.lanes == 1 && a->kind == PRIM_SPLAT && b->kind == PRIM_SPLAT)
        return prim_splat(c, prim_select(c, cond, a->kids[0], b->kids[0]), lanes);
    if (dtype_is_bool(a->dtype) && cond->dtype.lanes == lanes) {
        if (is_num(a, 1) && is_num(b, 0))
            return cond;
        if (is_num(a, 0) && is_num(b, 1))
            return prim_not(c, cond);
    }
    p.dtype = a->dtype;
    p.kids = (const Prim *const[]){cond, a, b};
    return prim_node(c, &p);
}

/* ---- conversions and functions ------------------------------------------------------------------------ */

const Prim *prim_cast(Ctx *c, DType t, const Prim *a)
{
    Prim   p = {.kind = PRIM_CAST, .dtype = t, .nkids = 1, .kids = &a};
    Scalar v;
    DType  st = dtype_lanes(t, 1), sa = dtype_lanes(a->dtype, 1);

    if (t.lanes > 1 && a->dtype.lanes == 1)
        return prim_splat(c, prim_cast(c, st, a), t.lanes);
    if (t.lanes != a->dtype.lanes)
        BUG("cast of %u lanes to %u", a->dtype.lanes, t.lanes);
    if (dtype_eq(t, a->dtype))
        return a;
    if (a->kind == PRIM_SPLAT)
        return prim_splat(c, prim_cast(c, st, a->kids[0]), t.lanes);
    if (prim_scalar_const(a, &v))
        return number(c, t, scalar_cast(st, sa, v));
    if (a->kind == PRIM_INDEX && dtype_is_int(t) && (t.bits <= sa.bits || holds(sa, a->u.index)))
        return prim_index(c, t, a->u.index);
    return prim_node(c, &p);
}

const Prim *prim_bits(Ctx *c, DType t, const Prim *a)
{
    Prim   p = {.kind = PRIM_BITS, .dtype = t, .nkids = 1, .kids = &a};
    Scalar v;
    DType  st = dtype_lanes(t, 1), sa = dtype_lanes(a->dtype, 1);

    if (t.bits != sa.bits || t.lanes != a->dtype.lanes)
        BUG("bits of %s as %s", dtype_text(c, a->dtype), dtype_text(c, t));
    if (dtype_eq(t, a->dtype))
        return a;
    if (a->kind == PRIM_SPLAT)
        return prim_splat(c, prim_bits(c, st, a->kids[0]), t.lanes);
    if (a->kind == PRIM_BITS)
        return prim_bits(c, t, a->kids[0]);
    if (prim_scalar_const(a, &v))
        return number(c, t, scalar_bits(st, sa, v));
    return prim_node(c, &p);
}

/* Only single instructions are folded: the others are polynomials or libm of the target. */
const Prim *prim_math(Ctx *c, MathFn fn, const Prim *a, const Prim *b)
{
    Prim   p = {.kind = PRIM_MATH, .dtype = a->dtype, .nkids = b ? 2 : 1, .u.math = fn};
    Scalar x, y = {.i = 0};

    if (b && b->dtype.lanes < a->dtype.lanes)
        b = prim_splat(c, b, a->dtype.lanes);
    if (b && a->dtype.lanes < b->dtype.lanes)
        a = prim_splat(c, a, b->dtype.lanes);
    if (b && !dtype_eq(a->dtype, b->dtype))
        BUG("operands of a function differ in type");
    p.dtype = a->dtype;
    if (a->kind == PRIM_SPLAT && (!b || b->kind == PRIM_SPLAT))
        return prim_splat(c, prim_math(c, fn, a->kids[0], b ? b->kids[0] : NULL), a->dtype.lanes);
    if (math_is_exact(fn) && prim_scalar_const(a, &x) && (!b || prim_scalar_const(b, &y)))
        return number(c, a->dtype, scalar_math(fn, dtype_lanes(a->dtype, 1), x, y));
    p.kids = (const Prim *const[]){a, b};
    return prim_node(c, &p);
}

/* ---- conditions on indices ------------------------------------------------------------------------------ */

const Prim *pred_prim(Ctx *c, Pred p)
{
    const Prim *all = prim_int(c, DT_BOOL, 1);

    for (uint32_t i = 0; i < p.n; i++) {
        const Prim *one = prim_le(c, prim_int(c, DT_I64, 0), prim_index(c, DT_I64, p.ge0[i]));
        all = prim_and(c, all, one);
    }
    return all;
}

bool prim_pred(Ctx *c, const Prim *p, Pred *out)
{
    Pred a, b;

    *out = PRED_TRUE;
    if (p->kind == PRIM_INT) {
        if (!p->u.i)
            *out = pred_and(c->arith, c->arena, *out, idx_const(c->arith, -1));
        return true;
    }
    if (p->kind == PRIM_AND && dtype_is_bool(p->dtype)) {
        if (!prim_pred(c, p->kids[0], &a) || !prim_pred(c, p->kids[1], &b))
            return false;
        *out = pred_and_pred(c->arith, c->arena, a, b);
        return true;
    }
    if (p->kind == PRIM_LE && p->kids[0]->kind == PRIM_INT && p->kids[1]->kind == PRIM_INDEX) {
        if (p->kids[0]->u.i != 0)
            return false;
        *out = pred_and(c->arith, c->arena, *out, p->kids[1]->u.index);
        return true;
    }
    if (p->kind == PRIM_EQ && p->kids[0]->kind == PRIM_INDEX && is_num(p->kids[1], 0)) {
        const Idx *e = p->kids[0]->u.index;
        *out = pred_and(c->arith, c->arena, *out, e);
        *out = pred_and(c->arith, c->arena, *out, idx_mulc(c->arith, e, -1));
        return true;
    }
    return false;
}
