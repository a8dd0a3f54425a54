/* Scalar and vector expressions: interning, leaves, memory, vectors.  Equal prims are one node, so
 * makers can compare by pointer; the folding makers are in prim_fold.c. */
#include "ir/intern.h"
#include "ir/scalar.h"
#include "ir/tir/intrin.h"
#include "ir/tir/prim_node.h"

#include <string.h>

/* ---- interning ------------------------------------------------------------------------------- */

static uint64_t hash_ptr(uint64_t h, const void *p)
{
    return hash_mix(h, PTR_KEY(p));
}

static uint64_t prim_hash(const Prim *p)
{
    uint64_t h = hash_mix((uint64_t)p->kind, (uint64_t)p->dtype.code << 32 |
                                                 (uint64_t)p->dtype.bits << 16 | p->dtype.lanes);

    for (uint32_t i = 0; i < p->nkids; i++)
        h = hash_ptr(h, p->kids[i]);
    switch (p->kind) {
    case PRIM_INT: return hash_mix(h, (uint64_t)p->u.i);
    case PRIM_FLOAT: {
        uint64_t bits;
        memcpy(&bits, &p->u.f, sizeof bits);
        return hash_mix(h, bits);
    }
    case PRIM_LOAD:
    case PRIM_ADDR:
        h = hash_ptr(hash_ptr(hash_ptr(h, p->u.load.buffer), p->u.load.mask), p->u.load.member);
        for (uint32_t i = 0; i < p->u.load.n; i++)
            h = hash_ptr(h, p->u.load.index[i]);
        return h;
    case PRIM_INDEX:
    case PRIM_CASE:
    case PRIM_RAMP: return hash_ptr(h, p->u.index);
    case PRIM_MATH: return hash_mix(h, p->u.math);
    case PRIM_INTRIN: return hash_mix(h, p->u.intrin->id);
    case PRIM_SHUFFLE:
        for (uint32_t i = 0; i < p->dtype.lanes; i++)
            h = hash_mix(h, p->u.from[i]);
        return h;
    case PRIM_SYMBOL: return hash_ptr(h, p->u.symbol);
    case PRIM_SIZEOF: return hash_ptr(hash_ptr(h, p->u.size.record), p->u.size.before);
    case PRIM_ADD:
    case PRIM_SUB:
    case PRIM_MUL:
    case PRIM_DIV:
    case PRIM_REM:
    case PRIM_MIN:
    case PRIM_MAX:
    case PRIM_MINNUM:
    case PRIM_MAXNUM:
    case PRIM_FMA:
    case PRIM_AND:
    case PRIM_OR:
    case PRIM_XOR:
    case PRIM_SHL:
    case PRIM_SHR:
    case PRIM_NOT:
    case PRIM_EQ:
    case PRIM_NE:
    case PRIM_LT:
    case PRIM_LE:
    case PRIM_SELECT:
    case PRIM_CAST:
    case PRIM_BITS:
    case PRIM_SPLAT:
    case PRIM_VEC: return h;
    }
    return h;
}

static bool prim_equal(const void *node, const void *key)
{
    const Prim *a = node, *b = key;

    if (a->kind != b->kind || !dtype_eq(a->dtype, b->dtype) || a->nkids != b->nkids)
        return false;
    for (uint32_t i = 0; i < a->nkids; i++)
        if (a->kids[i] != b->kids[i])
            return false;
    switch (a->kind) {
    case PRIM_INT: return a->u.i == b->u.i;
    case PRIM_FLOAT: return memcmp(&a->u.f, &b->u.f, sizeof a->u.f) == 0;
    case PRIM_LOAD:
    case PRIM_ADDR:
        if (a->u.load.buffer != b->u.load.buffer || a->u.load.mask != b->u.load.mask ||
            a->u.load.member != b->u.load.member)
            return false;
        for (uint32_t i = 0; i < a->u.load.n; i++)
            if (a->u.load.index[i] != b->u.load.index[i])
                return false;
        return true;
    case PRIM_INDEX:
    case PRIM_CASE:
    case PRIM_RAMP: return a->u.index == b->u.index;
    case PRIM_SYMBOL: return a->u.symbol == b->u.symbol;
    case PRIM_SIZEOF:
        return a->u.size.record == b->u.size.record && a->u.size.before == b->u.size.before;
    case PRIM_MATH: return a->u.math == b->u.math;
    case PRIM_INTRIN: return a->u.intrin == b->u.intrin;
    case PRIM_SHUFFLE: return memcmp(a->u.from, b->u.from, a->dtype.lanes * sizeof *a->u.from) == 0;
    case PRIM_ADD:
    case PRIM_SUB:
    case PRIM_MUL:
    case PRIM_DIV:
    case PRIM_REM:
    case PRIM_MIN:
    case PRIM_MAX:
    case PRIM_MINNUM:
    case PRIM_MAXNUM:
    case PRIM_FMA:
    case PRIM_AND:
    case PRIM_OR:
    case PRIM_XOR:
    case PRIM_SHL:
    case PRIM_SHR:
    case PRIM_NOT:
    case PRIM_EQ:
    case PRIM_NE:
    case PRIM_LT:
    case PRIM_LE:
    case PRIM_SELECT:
    case PRIM_CAST:
    case PRIM_BITS:
    case PRIM_SPLAT:
    case PRIM_VEC: return true;
    }
    return false;
}

const Prim *prim_node(Ctx *c, const Prim *key)
{
    uint64_t    hash = prim_hash(key);
    const Prim *was = intern_find(c->nodes, NODE_PRIM, hash, prim_equal, key);
    Prim       *p;

    if (was)
        return was;
    p = arena_dup(c->arena, key, sizeof *key);
    p->id = intern_count(c->nodes, NODE_PRIM);
    if (key->nkids)
        p->kids = arena_dup(c->arena, key->kids, key->nkids * sizeof *key->kids);
    if ((key->kind == PRIM_LOAD || key->kind == PRIM_ADDR) && key->u.load.n)
        p->u.load.index =
            arena_dup(c->arena, key->u.load.index, key->u.load.n * sizeof *key->u.load.index);
    if (key->kind == PRIM_SHUFFLE)
        p->u.from = DUP_ARRAY(c->arena, key->u.from, key->dtype.lanes);
    intern_add(c->nodes, NODE_PRIM, hash, p);
    return p;
}

/* ---- leaves ------------------------------------------------------------------------------------ */

const Prim *prim_int(Ctx *c, DType t, int64_t v)
{
    Prim p = {.kind = PRIM_INT, .dtype = dtype_lanes(t, 1)};

    if (dtype_is_float(t))
        BUG("prim_int: dtype %s", dtype_text(c, t));
    p.u.i = scalar_wrap(t, v);
    return prim_splat(c, prim_node(c, &p), t.lanes);
}

const Prim *prim_float(Ctx *c, DType t, double v)
{
    Prim p = {.kind = PRIM_FLOAT, .dtype = dtype_lanes(t, 1)};

    if (!dtype_is_float(t))
        BUG("prim_float: dtype %s", dtype_text(c, t));
    p.u.f = scalar_round(p.dtype, v);
    return prim_splat(c, prim_node(c, &p), t.lanes);
}

const Prim *prim_num(Ctx *c, DType t, double v)
{
    DType f64 = DT_F64;

    if (dtype_is_float(t))
        return prim_float(c, t, v);
    return prim_int(c, t, scalar_cast(dtype_lanes(t, 1), f64, (Scalar){.f = v}).i);
}

const Prim *prim_index(Ctx *c, DType t, const Idx *x)
{
    Prim    p = {.kind = PRIM_INDEX, .dtype = dtype_lanes(t, 1), .u.index = x};
    int64_t v;

    if (!dtype_is_int(t))
        BUG("prim_index: dtype %s", dtype_text(c, t));
    if (idx_is_const(x, &v))
        return prim_int(c, t, v);
    return prim_splat(c, prim_node(c, &p), t.lanes);
}

const Prim *prim_load(Ctx *c, const Buffer *b, const Idx *const *index)
{
    Prim p = {.kind = PRIM_LOAD, .dtype = b->dtype, .u.load = {b, b->ndim, index, NULL, NULL}};

    return prim_node(c, &p);
}

const Prim *prim_loadv(Ctx *c, const Buffer *b, const Idx *const *index, uint16_t lanes,
                       const Prim *mask)
{
    Prim   p = {.kind = PRIM_LOAD,
                .dtype = dtype_lanes(b->dtype, lanes),
                .u.load = {b, b->ndim, index, mask, NULL}};
    Scalar v;

    if (lanes == b->dtype.lanes && !mask)
        return prim_load(c, b, index);
    if (lanes != 1 && (b->dtype.lanes != 1 || b->ndim == 0))
        BUG("vector load of %s[%u]", dtype_text(c, b->dtype), b->ndim);
    if (mask && mask->dtype.lanes != lanes)
        BUG("mask of %u lanes, load of %u", mask->dtype.lanes, lanes);
    if (mask && prim_scalar_const(mask, &v)) {
        if (!v.i)
            return prim_num(c, p.dtype, 0);
        p.u.load.mask = NULL;
    }
    return prim_node(c, &p);
}

const Prim *prim_member(Ctx *c, const Buffer *b, const Idx *const *index, const AbiMember *m)
{
    Prim p = {
        .kind = PRIM_LOAD, .dtype = abi_dtype(m->type), .u.load = {b, b->ndim, index, NULL, m}};

    return prim_node(c, &p);
}

const Prim *prim_addr(Ctx *c, const Buffer *b, const Idx *const *index, const AbiMember *m)
{
    Prim p = {.kind = PRIM_ADDR, .dtype = DT_HANDLE, .u.load = {b, b->ndim, index, NULL, m}};

    return prim_node(c, &p);
}

const Prim *prim_symbol(Ctx *c, const char *name)
{
    Prim p = {.kind = PRIM_SYMBOL, .dtype = DT_HANDLE, .u.symbol = intern(c->strings, name)};

    return prim_node(c, &p);
}

const Prim *prim_null(Ctx *c)
{
    return prim_int(c, DT_HANDLE, 0);
}

uint32_t size_bytes(SizeData s, uint32_t pointer_bits)
{
    return s.before ? record_offset(s.record, s.before, pointer_bits)
                    : record_bytes(s.record, pointer_bits);
}

const Prim *prim_sizeof(Ctx *c, const AbiRecord *r)
{
    return prim_offsetof(c, r, NULL);
}

const Prim *prim_offsetof(Ctx *c, const AbiRecord *r, const AbiMember *m)
{
    Prim p = {.kind = PRIM_SIZEOF, .dtype = DT_U32, .u.size = {r, m}};

    return prim_node(c, &p);
}

/* ---- vectors -------------------------------------------------------------------------------------- */

const Prim *prim_splat(Ctx *c, const Prim *scalar, uint16_t lanes)
{
    Prim p = {.kind = PRIM_SPLAT, .nkids = 1, .kids = &scalar};

    if (lanes == 1)
        return scalar;
    if (scalar->dtype.lanes != 1)
        BUG("splat of %u lanes", scalar->dtype.lanes);
    p.dtype = dtype_lanes(scalar->dtype, lanes);
    return prim_node(c, &p);
}

const Prim *prim_ramp(Ctx *c, DType t, const Idx *base, uint16_t lanes)
{
    Prim p = {.kind = PRIM_RAMP, .dtype = dtype_lanes(t, lanes), .u.index = base};

    if (!dtype_is_int(t))
        BUG("prim_ramp: dtype %s", dtype_text(c, t));
    if (lanes == 1)
        return prim_index(c, t, base);
    return prim_node(c, &p);
}

/* Loads of `lanes` consecutive cells, lane by lane. */
static const Prim *contiguous_load(Ctx *c, uint32_t lanes, const Prim *const *s)
{
    const LoadData *first = &s[0]->u.load;

    if (s[0]->kind != PRIM_LOAD || first->n == 0 || first->buffer->dtype.lanes != 1)
        return NULL;
    for (uint32_t i = 1; i < lanes; i++) {
        const LoadData *l = &s[i]->u.load;
        if (s[i]->kind != PRIM_LOAD || l->buffer != first->buffer)
            return NULL;
        for (uint32_t d = 0; d + 1 < first->n; d++)
            if (l->index[d] != first->index[d])
                return NULL;
        if (l->index[first->n - 1] != idx_addc(c->arith, first->index[first->n - 1], (int64_t)i))
            return NULL;
    }
    return prim_loadv(c, first->buffer, first->index, (uint16_t)lanes, NULL);
}

const Prim *prim_vec(Ctx *c, uint32_t lanes, const Prim *const *scalars)
{
    Prim        p = {.kind = PRIM_VEC, .nkids = lanes, .kids = scalars};
    const Prim *load;
    bool        same = true;

    if (lanes == 0 || lanes > UINT16_MAX)
        BUG("vector of %u lanes", lanes);
    if (lanes == 1)
        return scalars[0];
    for (uint32_t i = 0; i < lanes; i++) {
        if (!dtype_eq(scalars[i]->dtype, scalars[0]->dtype) || scalars[i]->dtype.lanes != 1)
            BUG("lanes of a vector differ in type");
        same = same && scalars[i] == scalars[0];
    }
    if (same)
        return prim_splat(c, scalars[0], (uint16_t)lanes);
    if ((load = contiguous_load(c, lanes, scalars)))
        return load;
    p.dtype = dtype_lanes(scalars[0]->dtype, (uint16_t)lanes);
    return prim_node(c, &p);
}

/* Lanes of a load that are neighbours are a load. */
static const Prim *part_of_load(Ctx *c, const Prim *v, uint16_t lanes, const uint16_t *from)
{
    const LoadData *l = &v->u.load;

    if (v->kind != PRIM_LOAD || l->mask || !l->n)
        return NULL;
    for (uint32_t i = 1; i < lanes; i++)
        if (from[i] != from[0] + i)
            return NULL;
    const Idx **at = DUP_ARRAY(c->scratch, l->index, l->n);

    at[l->n - 1] = idx_addc(c->arith, at[l->n - 1], from[0]);
    return prim_loadv(c, l->buffer, at, lanes, NULL);
}

const Prim *prim_shuffle(Ctx *c, const Prim *v, uint16_t lanes, const uint16_t *from)
{
    Prim        p = {.kind = PRIM_SHUFFLE, .nkids = 1, .kids = &v, .u.from = from};
    bool        same = lanes == v->dtype.lanes;
    const Prim *load, **kid;

    for (uint32_t i = 0; i < lanes; i++) {
        if (from[i] >= v->dtype.lanes)
            BUG("lane %u of %u", from[i], v->dtype.lanes);
        same = same && from[i] == i;
    }
    if (same)
        return v;
    if (v->dtype.lanes == 1)
        return prim_splat(c, v, lanes);
    if (v->kind == PRIM_SPLAT)
        return prim_splat(c, v->kids[0], lanes);
    if (v->kind == PRIM_VEC) {
        kid = NEW_ARRAY(c->scratch, const Prim *, lanes);
        for (uint32_t i = 0; i < lanes; i++)
            kid[i] = v->kids[from[i]];
        return prim_vec(c, lanes, kid);
    }
    if ((load = part_of_load(c, v, lanes, from)))
        return load;
    p.dtype = dtype_lanes(v->dtype, lanes);
    return prim_node(c, &p);
}

const Prim *prim_case(Ctx *c, const Idx *which, uint32_t n, const Prim *const *arms)
{
    Prim    p = {.kind = PRIM_CASE, .nkids = n, .kids = arms, .u.index = which};
    int64_t v;
    bool    same = true;

    if (n == 0)
        BUG("case without arms");
    if (idx_is_const(which, &v) && v >= 0 && v < n)
        return arms[v];
    for (uint32_t i = 0; i < n; i++) {
        if (!dtype_eq(arms[i]->dtype, arms[0]->dtype))
            BUG("arms of a case differ in type");
        same = same && arms[i] == arms[0];
    }
    if (same)
        return arms[0];
    p.dtype = arms[0]->dtype;
    return prim_node(c, &p);
}

/* ---- the same with other kids ------------------------------------------------------------------------ */

const Prim *prim_with_kids(Ctx *c, const Prim *p, const Prim *const *kids)
{
    uint32_t i = 0;

    while (i < p->nkids && kids[i] == p->kids[i])
        i++;
    if (i == p->nkids)
        return p;
    switch (p->kind) {
    case PRIM_INT:
    case PRIM_FLOAT:
    case PRIM_INDEX:
    case PRIM_LOAD:
    case PRIM_ADDR:
    case PRIM_SYMBOL:
    case PRIM_SIZEOF:
    case PRIM_RAMP: return p;
    case PRIM_ADD:
    case PRIM_SUB:
    case PRIM_MUL:
    case PRIM_DIV:
    case PRIM_REM:
    case PRIM_MIN:
    case PRIM_MAX:
    case PRIM_MINNUM:
    case PRIM_MAXNUM:
    case PRIM_AND:
    case PRIM_OR:
    case PRIM_XOR:
    case PRIM_SHL:
    case PRIM_SHR:
    case PRIM_EQ:
    case PRIM_NE:
    case PRIM_LT:
    case PRIM_LE: return prim_bin(c, p->kind, kids[0], kids[1]);
    case PRIM_FMA: return prim_fma(c, kids[0], kids[1], kids[2]);
    case PRIM_INTRIN: return prim_intrin(c, p->u.intrin, kids);
    case PRIM_SHUFFLE: return prim_shuffle(c, kids[0], p->dtype.lanes, p->u.from);
    case PRIM_NOT: return prim_not(c, kids[0]);
    case PRIM_SELECT: return prim_select(c, kids[0], kids[1], kids[2]);
    case PRIM_CAST: return prim_cast(c, dtype_lanes(p->dtype, kids[0]->dtype.lanes), kids[0]);
    case PRIM_BITS: return prim_bits(c, dtype_lanes(p->dtype, kids[0]->dtype.lanes), kids[0]);
    case PRIM_MATH: return prim_math(c, p->u.math, kids[0], p->nkids > 1 ? kids[1] : NULL);
    case PRIM_CASE: return prim_case(c, p->u.index, p->nkids, kids);
    case PRIM_SPLAT: return prim_splat(c, kids[0], p->dtype.lanes);
    case PRIM_VEC: return prim_vec(c, p->nkids, kids);
    }
    BUG("prim of kind %d", (int)p->kind);
}
