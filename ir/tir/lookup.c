/* Which loads are lookups in tables of 256 bytes.
 *
 *     %table[read(%x[%i], 0, 255)]              x: u8
 *     %table[read(%x[%i], -128, 127) + 128]     x: i8
 *     %table[read(%x[%i], -128, 255)%256]       x: either
 *
 * The position is a byte and a number, and multiples of 256: a table of 256 cells has one cell that
 * this can be, whatever the multiples are. */
#include "ir/tir/lookup.h"

enum { CELLS = 256 };

static bool is_byte(DType t)
{
    return t.bits == 8 && t.lanes == 1 && dtype_is_int(t) && !dtype_is_bool(t);
}

bool prim_lookup(const Prim *p, Lookup *out)
{
    const LoadData *l = &p->u.load;
    int64_t         cells;

    if (p->kind != PRIM_LOAD || l->n != 1 || l->mask || l->member ||
        l->buffer->scope == SCOPE_REG || l->buffer->ndim != 1 || l->buffer->halo ||
        l->buffer->stride || !is_byte(p->dtype) || !is_byte(l->buffer->dtype) ||
        !idx_is_const(l->buffer->extent[0], &cells) || cells != CELLS)
        return false;
    const Idx *x = l->index[0];

    *out = (Lookup){.table = l->buffer, .offset = (uint8_t)x->c0};
    for (uint32_t i = 0; i < x->nterms; i++) {
        const Atom *a = x->t[i].atom;
        if (x->t[i].coef % CELLS == 0)
            continue;
        const Prim *byte = a->kind == ATOM_LOAD && x->t[i].coef == 1 ? a->load : NULL;
        if (!byte || out->byte || !is_byte(byte->dtype))
            return false;
        out->byte = byte;
    }
    return out->byte != NULL;
}
