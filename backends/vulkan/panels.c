/* Shared arrays whose cells are vectors, of numbers that threads store at once: operands of
 * cooperative matrices, which nobody else loads, and words of four bytes that are multiplied
 * together. */
#include "backends/common/plain.h"
#include "backends/vulkan/vulkan.h"

enum { ALONE = 1, QUAD = 4 };

static void note(Gen *g, const Buffer *b, uint32_t numbers)
{
    uint32_t was = (uint32_t)(uintptr_t)map_get(g->panels, b->id);

    if (b->scope == SCOPE_SHARED)
        map_put(g->panels, b->id, (void *)(uintptr_t)(!was || was == numbers ? numbers : ALONE));
}

static void see_load(void *user, const Prim *p)
{
    Gen *g = user;

    if (p->kind == PRIM_LOAD)
        note(g, p->u.load.buffer,
             p->dtype.bits == 8 && p->dtype.lanes == QUAD && !p->u.load.mask &&
                     is_on_border(g->c, p->u.load.buffer, p->u.load.index, WORD)
                 ? QUAD
                 : ALONE);
}

static bool is_multiple(Gen *g, const Idx *i, int64_t by)
{
    return idx_modc(g->c->arith, i, by) == idx_const(g->c->arith, 0);
}

/* That a store moves as one cell. */
static uint32_t stored_numbers(Gen *g, const StoreData *d)
{
    const uint32_t lanes = d->value->dtype.lanes, bits = d->buffer->dtype.bits;
    const bool     fits = bits == 16 ? lanes == 2 || lanes == QUAD : bits == 8 && lanes == QUAD;

    return fits && d->n == 1 && !d->mask && is_multiple(g, d->index[0], lanes) ? lanes : ALONE;
}

static bool see(void *user, const Stmt *s)
{
    Gen             *g = user;
    TirVisit         loads = {.user = g, .prim = see_load};
    const StoreData *d = &s->u.store;

    if (s->kind == STMT_IF || s->kind == STMT_WHILE)
        prim_visit(s->u.cond, &loads);
    if (s->kind != STMT_STORE)
        return true;
    const MatrixOp *op = matrix_op(g->matrices, d);
    if (!op) {
        prim_visit(d->value, &loads);
        note(g, d->buffer, stored_numbers(g, d));
    } else if (op->memory &&
               (op->kind == MATRIX_STORE || !is_multiple(g, op->first, QUAD) || op->apart % QUAD)) {
        note(g, op->memory, ALONE);
    }
    return true;
}

void find_panels(Gen *g)
{
    g->panels = map_new(g->c->arena);
    if (has_matrices(g->matrices) || multiplies_words(g->f))
        stmt_visit(g->f->body, &(TirVisit){.user = g, .enter = see});
}

uint32_t panel_numbers(const Gen *g, const Buffer *b)
{
    uint32_t n = (uint32_t)(uintptr_t)map_get(g->panels, b->id);

    return n ? n : ALONE;
}
