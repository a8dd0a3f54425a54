/* The loop that one dot4 replaces: four products of 8-bit integers, added to a 32-bit one; or two,
 * where one operand has 16 bits.
 *
 *     for %d < 4 reduce { %s[i] = %s[i] + i32(%a[.., 4*j + %d]) * i32(%b[.., 4*k + %d]) }
 *       ->  %s[i] = dot4(%a[.., 4*j : 4], %b[.., 4*k : 4], %s[i])
 *
 * The step `tensorize` asks before it marks the loop, the pass `vectorize` when it carries the mark
 * out.  Integers wrap, so the order of the sum does not matter. */
#include "ir/tir.h"

static bool is_unit_stride(const Buffer *b)
{
    int64_t n;

    return !b->stride || (idx_is_const(b->stride[b->ndim - 1], &n) && n == 1);
}

uint16_t dot4_terms(DType a, DType b)
{
    return a.bits == 16 || b.bits == 16 ? 2 : 4;
}

/* i32(%x[.., e + var]) with cells of x that lie one after the other. */
static const Prim *cells_along(Arith *A, const Prim *p, const Atom *var)
{
    const Prim *x = p->kind == PRIM_CAST && dtype_eq(p->dtype, DT_I32) ? p->kids[0] : NULL;

    if (!x || x->kind != PRIM_LOAD || x->u.load.mask || !x->u.load.n || !dtype_is_int(x->dtype) ||
        !(x->dtype.bits == 8 || dtype_eq(x->dtype, DT_I16)) || x->dtype.lanes != 1 ||
        !is_unit_stride(x->u.load.buffer))
        return NULL;
    uint32_t last = x->u.load.n - 1;
    for (uint32_t i = 0; i < last; i++)
        if (idx_uses(x->u.load.index[i], var))
            return NULL;
    const Idx *rest = idx_sub(A, x->u.load.index[last], idx_atom(A, var));
    return idx_uses(rest, var) ? NULL : x;
}

bool dot4_match(Ctx *c, const Prim *value, const Atom *var, Dot4 *out)
{
    if (value->kind != PRIM_ADD || !dtype_eq(value->dtype, DT_I32))
        return false;
    uint32_t    at = value->kids[0]->kind == PRIM_MUL ? 0 : 1;
    const Prim *mul = value->kids[at], *sum = value->kids[1 - at];
    if (mul->kind != PRIM_MUL || sum->kind != PRIM_LOAD)
        return false;
    for (uint32_t i = 0; i < sum->u.load.n; i++)
        if (idx_uses(sum->u.load.index[i], var))
            return false;
    *out = (Dot4){cells_along(c->arith, mul->kids[0], var),
                  cells_along(c->arith, mul->kids[1], var), sum};
    return out->a && out->b;
}

static const Prim *some(Ctx *c, const Prim *load, const Atom *var, const Idx *lo, uint16_t n)
{
    const LoadData *l = &load->u.load;
    const Idx     **at = NEW_ARRAY(c->scratch, const Idx *, l->n);
    IdxSubst       *first = subst_new(c->arith, c->scratch);

    subst_bind(first, var, lo);
    for (uint32_t i = 0; i < l->n; i++)
        at[i] = idx_subst(first, l->index[i]);
    return prim_loadv(c, l->buffer, at, n, NULL);
}

const Prim *dot4_prim(Ctx *c, const Dot4 *d, const Atom *var, const Idx *lo)
{
    uint16_t n = dot4_terms(d->a->dtype, d->b->dtype);

    return prim_dot4(c, some(c, d->a, var, lo, n), some(c, d->b, var, lo, n), d->sum);
}
