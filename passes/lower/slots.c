/* Slots: the storage of values, which may lie in one another's.
 *
 * Sizes are numbers, for the largest sizes of symbolic dimensions.  Of an open program, where one
 * of these has no bound, they are forms beside the numbers, and only the forms are true. */
#include "passes/lower/lower.h"

/* Bytes of a tensor with its halo, and from the first cell to cell 0 of the interior; for the
 * largest sizes of symbolic dimensions. */
static void type_bytes(Ctx *c, const Type *t, uint64_t *bytes, uint64_t *origin)
{
    Buffer  b = {.dtype = t->dtype, .ndim = t->n, .extent = t->dims, .halo = t->halo};
    int64_t elems = 1, first = 0;

    if (!buffer_size_most(c, &b, &elems, &first))
        elems = 0;
    *bytes = (uint64_t)elems * dtype_bytes(t->dtype);
    *origin = (uint64_t)first * dtype_bytes(t->dtype);
}

const Idx *size_most(Ctx *c, const Idx *size, uint32_t n, const BoundDim *bound)
{
    AtomSet *computed = atomset_new(c->scratch);

    for (uint32_t i = 0; i < n; i++)
        atomset_add(computed, bound[i].dim);
    return idx_most(c->arith, size, computed);
}

/* The same as a form: rows of the first dimension, with borders, of the others in them. */
static const Idx *type_room(Program *p, const Type *t)
{
    Ctx       *c = p->c;
    const Idx *dims[TE_MAX_AXES], *stride[TE_MAX_AXES], *n;
    Buffer     b = {.dtype = t->dtype, .ndim = t->n, .extent = dims, .halo = t->halo};

    if (!t->n)
        return idx_const(c->arith, dtype_bytes(t->dtype));
    for (uint32_t i = 0; i < t->n; i++)
        dims[i] = size_most(c, t->dims[i], p->bound.n, p->bound.at);
    buffer_strides(c, &b, stride);
    n = idx_addc(c->arith, dims[0], t->halo ? (int64_t)t->halo->lo[0] + t->halo->hi[0] : 0);
    return idx_mulc(c->arith, idx_mul(c->arith, n, stride[0]), dtype_bytes(t->dtype));
}

Slot *slot_new(Program *p, Place place, uint32_t index, const Type *t, const char *name)
{
    Slot *s = NEW(p->c->arena, Slot);

    *s = (Slot){
        .place = place, .index = index, .type = t, .name = name, .first = p->at, .last = p->at};
    type_bytes(p->c, t, &s->bytes, &s->origin);
    if (p->open)
        s->open.bytes = type_room(p, t);
    vec_push(p->c->arena, &p->slots, s);
    return s;
}

Slot *slot_root(const Slot *s, uint64_t *at)
{
    *at = 0;
    for (; s->in; s = s->in)
        *at += s->at;
    return (Slot *)(uintptr_t)s;
}

const Idx *slot_way(Ctx *c, const Slot *s)
{
    const Idx *at = idx_const(c->arith, 0);

    for (; s->in; s = s->in)
        at =
            s->open.at ? idx_add(c->arith, at, s->open.at) : idx_addc(c->arith, at, (int64_t)s->at);
    return at;
}

void slot_touch(Program *p, Slot *s)
{
    for (;; s = s->in) {
        if (p->at < s->first)
            s->first = p->at;
        if (p->at > s->last)
            s->last = p->at;
        if (s->kind != SLOT_SLICE)
            break;
    }
}

bool slot_fits(Program *p, const Slot *s, const Type *t)
{
    uint64_t bytes, origin;

    type_bytes(p->c, t, &bytes, &origin);
    return s->bytes == bytes && s->origin == origin &&
           (!p->open || s->open.bytes == type_room(p, t));
}

bool slot_makes_up(Program *p, const Slot *part, const Idx *rounds, const Slot *whole)
{
    return p->open ? idx_mul(p->c->arith, part->open.bytes, rounds) == whole->open.bytes
                   : part->bytes * (uint64_t)rounds->hi == whole->bytes;
}
