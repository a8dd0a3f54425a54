/* Payloads as constants: views of the archive, unless their strides are not those of rows. */
#include "frontends/pytorch/pytorch.h"

#include <string.h>

enum { SMALL = 64 << 10 };

/* Cells in the order of rows; they were checked to be inside. */
static const uint8_t *gathered(Ctx *c, const PtPayload *p, int64_t cells, uint32_t size)
{
    uint8_t *out = arena_alloc(c->arena, (size_t)cells * size + 1);
    int64_t  at[MAX_RANK] = {0}, from = p->offset;

    for (int64_t i = 0; i < cells; i++) {
        memcpy(out + i * size, p->data.at + from * size, size);
        for (uint32_t k = p->sizes.n; k-- > 0;) {
            from += p->strides.at[k];
            if (++at[k] < p->sizes.at[k])
                break;
            from -= p->strides.at[k] * at[k];
            at[k] = 0;
        }
    }
    return out;
}

/* How many cells there are; false: one of them is not in the entry. */
static bool inside(const PtPayload *p, uint32_t size, int64_t *cells, bool *rows)
{
    int64_t last = p->offset, next = 1, far;

    *cells = 1;
    *rows = true;
    if (p->offset < 0)
        return false;
    for (uint32_t k = p->sizes.n; k-- > 0;) {
        *rows &= p->sizes.at[k] == 1 || p->strides.at[k] == next;
        if (!checked_mul(next, p->sizes.at[k], &next) || next > MAX_ELEMS)
            return false;
        if (p->sizes.at[k] > 1 && (!checked_mul(p->sizes.at[k] - 1, p->strides.at[k], &far) ||
                                   !checked_add(last, far, &last)))
            return false;
    }
    *cells = next;
    return next == 0 || (uint64_t)last < p->data.n / size;
}

/* Pairs of numbers as one dimension more. */
static const PtPayload *as_pairs(Ctx *c, const PtPayload *p)
{
    PtPayload *q = arena_dup(c->arena, p, sizeof *p);
    uint32_t   n = p->sizes.n;
    int64_t   *sizes = NEW_ARRAY(c->arena, int64_t, n + 1),
            *strides = NEW_ARRAY(c->arena, int64_t, n + 1);

    for (uint32_t i = 0; i < n; i++) {
        sizes[i] = p->sizes.at[i];
        if (!checked_mul(p->strides.at[i], 2, &strides[i]))
            return NULL;
    }
    sizes[n] = 2, strides[n] = 1;
    q->sizes = (Ints){n + 1, sizes};
    q->strides = (Ints){n + 1, strides};
    q->complex = false;
    return n < MAX_RANK && checked_mul(p->offset, 2, &q->offset) ? q : NULL;
}

const Expr *pt_constant(Ctx *c, Loc loc, const PtPayload *p)
{
    const PtPayload *pairs = p->complex && p->known ? as_pairs(c, p) : p;

    const uint8_t *at;
    int64_t        cells;
    uint32_t       size;
    bool           rows;

    if (p->pickled)
        return error_at(c, E_UNSUPPORTED, loc,
                        "'%s' is no plain tensor: the archive has it as a "
                        "pickle",
                        p->name);
    if (!p->known)
        return error_at(c, E_UNSUPPORTED, loc, "'%s' has element type %lld, which is not supported",
                        p->name, (long long)p->dtype_number);
    if (!pairs)
        return error_at(c, E_IMPORT, loc, "'%s' is too large", p->name);
    p = pairs;
    size = dtype_bytes(p->dtype);
    if (!inside(p, size, &cells, &rows))
        return error_at(c, E_IMPORT, loc, "'%s' has %zu bytes of data, which do not fit its shape",
                        p->name, p->data.n);
    if (!rows && cells * size > (int64_t)UNPACK_FREE &&
        (uint64_t)(cells * size) / UNPACK_RATIO > p->data.n)
        return error_at(c, E_IMPORT, loc, "'%s' is too large for %zu bytes", p->name, p->data.n);
    at = cells == 0 ? arena_alloc(c->arena, 1)
         : rows     ? p->data.at + p->offset * size
                    : gathered(c, p, cells, size);
    if (dtype_is_bool(p->dtype))
        for (int64_t i = 0; i < cells; i++)
            if (at[i] > 1)
                return error_at(c, E_IMPORT, loc, "'%s': a bool is %u", p->name, at[i]);
    if (cells * size < SMALL && (uintptr_t)at % size) /* larger ones are read at any address */
        at = arena_dup(c->arena, at, (size_t)(cells * size));
    return expr_const(c,
                      const_new(c, p->name, type_tensor_i64(c, p->dtype, p->sizes.n, p->sizes.at),
                                (Bytes){at, (size_t)(cells * size)}),
                      loc);
}
