/* The loop that one dot4 replaces: four products of 8-bit integers, added to a 32-bit one; or two,
 * where one operand has 16 bits.
 *
 *     for %d < 4 reduce { %s[i] = %s[i] + i32(%a[.., 4*j + %d]) * i32(%b[.., 4*k + %d]) }
 *       ->  %s[i] = dot4(%a[.., 4*j : 4], %b[.., 4*k : 4], %s[i])
 *
 * One operand may lie in steps, as the columns of a depthwise convolution in blocks of channels do:
 *
 *     .. i32(%a[.., x + %d, j]) * ..  ->  dot4(vec(%a[.., x, j], .. %a[.., x + 3, j]), %b[..],
 * %s[..])
 *
 * The step `tensorize` asks before it marks the loop, the pass `vectorize` when it carries the mark
 * out.  Integers wrap, so the order of the sum does not matter. */
#include "ir/tir/tir.h"

uint16_t dot4_terms(DType a, DType b)
{
    return a.bits == 16 || b.bits == 16 ? 2 : 4;
}

/* Steps between cells that are loaded as one vector and turned: more would be cell by cell. */
enum { MAX_STEP = 16 };

/* How much the index grows with var: a constant, in *by; false otherwise. */
static bool grows_by(Arith *A, const Idx *x, const Atom *var, int64_t *by)
{
    *by = 0;
    for (uint32_t i = 0; i < x->nterms; i++)
        if (x->t[i].atom == var)
            *by = x->t[i].coef;
    return !idx_uses(idx_sub(A, x, idx_mulc(A, idx_atom(A, var), *by)), var);
}

/* i32(%x[.., e + var]) with cells of x that lie one after the other, or in small steps (*apart). */
static const Prim *cells_along(Ctx *c, const Prim *p, const Atom *var, bool *apart)
{
    const Prim     *x = p->kind == PRIM_CAST && dtype_eq(p->dtype, DT_I32) ? p->kids[0] : NULL;
    const LoadData *l = x ? &x->u.load : NULL;
    const Idx     **stride;
    int64_t         step = 0, by, cells;

    if (!x || x->kind != PRIM_LOAD || l->mask || !l->n || !dtype_is_int(x->dtype) ||
        !(x->dtype.bits == 8 || dtype_eq(x->dtype, DT_I16)) || x->dtype.lanes != 1)
        return NULL;
    stride = NEW_ARRAY(c->scratch, const Idx *, l->n);
    buffer_strides(c, l->buffer, stride);
    for (uint32_t i = 0; i < l->n; i++) {
        if (!grows_by(c->arith, l->index[i], var, &by))
            return NULL;
        if (by && (by < 0 || by > MAX_STEP || !idx_is_const(stride[i], &cells) ||
                   cells > MAX_STEP || cells < 1))
            return NULL;
        step += by ? by * cells : 0;
    }
    *apart = step > 1;
    return step >= 1 && step <= MAX_STEP ? x : NULL;
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
    *out = (Dot4){.sum = sum};
    out->a = cells_along(c, mul->kids[0], var, &out->apart[0]);
    out->b = cells_along(c, mul->kids[1], var, &out->apart[1]);
    return out->a && out->b && !(out->apart[0] && out->apart[1]);
}

static const Prim *some(Ctx *c, const Prim *load, const Atom *var, const Idx *lo, uint16_t n,
                        bool apart)
{
    const LoadData *l = &load->u.load;
    const Idx     **at = NEW_ARRAY(c->scratch, const Idx *, l->n);
    const Prim     *cell[4];

    for (uint16_t k = 0; k < (apart ? n : 1); k++) {
        IdxSubst *sub = subst_new(c->arith, c->scratch);

        subst_bind(sub, var, idx_addc(c->arith, lo, k));
        for (uint32_t i = 0; i < l->n; i++)
            at[i] = idx_subst(sub, l->index[i]);
        cell[k] = prim_loadv(c, l->buffer, at, apart ? 1 : n, NULL);
    }
    return apart ? prim_vec(c, n, cell) : cell[0];
}

const Prim *dot4_prim(Ctx *c, const Dot4 *d, const Atom *var, const Idx *lo)
{
    uint16_t n = dot4_terms(d->a->dtype, d->b->dtype);

    return prim_dot4(c, some(c, d->a, var, lo, n, d->apart[0]),
                     some(c, d->b, var, lo, n, d->apart[1]), d->sum);
}
