/* Products whose operands come from memory into registers, without panels in shared memory: where
 * that lies in memory itself, behind the caches that serve such loads, too, a copy of it there is
 * one more way (machine.def, shared_cached).
 *
 *     cache_read %w reg nr at ki             the numbers of a step, ..
 *     cache_read %p0 reg ki, mr at ko        .. or of a chunk whose steps lie side by side
 *     unroll ki, mr, nr                      a chunk is written out; wide loads are found there
 *
 * (backends/common/loads.c).  No barrier is needed: threads that want the same numbers find them in
 * the cache. */
#include "schedules/gpu/gpu.h"

#include <string.h>

/* ---- how an operand comes ------------------------------------------------------------------------ */

/* What the loops of a product choose of an operand: cells of memory, as far as it is read as it
 * lies there. */
typedef struct {
    const Sched     *s;
    const Product   *p;
    const BlockData *b;
    const Idx       *at;
} Walk;

static const Atom *atom_of(const Walk *w, const char *loop)
{
    for (uint32_t i = 0; i < w->b->nspatial + w->b->nreduce; i++)
        if (!strcmp(loop,
                    arena_printf(w->s->c->scratch, "%s.%s", w->p->block, w->b->iter[i]->name)))
            return w->b->iter[i];
    BUG("'%s' is no loop of '%s'", loop, w->p->block);
}

/* Runs of so many cells, the last of those that the loops choose, lie side by side, on a border. */
static bool comes_beside(const Walk *w, const Loops *loops, int64_t cells)
{
    int64_t run = 1;
    VEC(const Atom *) within = {0};

    for (uint32_t i = loops->n; i-- > 0;) {
        const Atom *v = atom_of(w, loops->at[i]);
        if (v->hi > v->lo && flat_step(w->at, v, 1) != run)
            break;
        vec_push(w->s->c->scratch, &within, v);
        run *= v->hi - v->lo + 1;
    }
    if (run % cells || w->at->c0 % cells)
        return false;
    for (uint32_t t = 0; t < w->at->nterms; t++) {
        bool inside = false;
        for (uint32_t i = 0; i < within.n; i++)
            inside = inside || w->at->t[t].atom == within.at[i];
        if (!inside && w->at->t[t].coef % cells)
            return false;
    }
    return true;
}

/* The last of the loops that has rounds. */
static const Atom *last_of(const Walk *w, const Loops *loops)
{
    for (uint32_t i = loops->n; i-- > 0;) {
        const Atom *v = atom_of(w, loops->at[i]);
        if (v->hi > v->lo)
            return v;
    }
    return NULL;
}

/* Neighbouring cells of a row read the same numbers of a window's row. */
static void share_row(const Walk *w, const Loops *side, int64_t quad, DeviceLoad *l)
{
    const Atom   *x = last_of(w, side), *tap = last_of(w, &w->p->k);
    const int64_t along = x ? flat_step(w->at, x, 1) : 0, step = tap ? flat_step(w->at, tap, 1) : 0;

    if (along <= 0 || step <= 0 || along % step || (x->hi - x->lo + 1) % quad)
        return;
    l->row = tap->hi - tap->lo + 1;
    l->apart = along / step;
}

/* What chooses by conditions, as borders of images do, is none. */
static void note_choice(void *user, const Prim *p)
{
    bool *plain = user;

    *plain = *plain && p->kind != PRIM_SELECT && p->kind != PRIM_CASE;
}

static bool is_plain(const Stmt *block)
{
    bool plain = true;

    prim_visit(block->kids[block->nkids - 1]->u.store.value,
               &(TirVisit){.user = &plain, .prim = note_choice});
    return plain;
}

DeviceLoad direct_load(Sched *s, const Product *p, const Operand *o, const Loops *side, bool moved)
{
    Machine       m = machine_of(s->target);
    const int64_t quad = device_quad(&m, dtype_bytes(o->tensor->dtype));
    const Stmt   *made = sched_block(s, o->tensor->name);
    LoadData      at = {.buffer = o->tensor, .n = o->tensor->ndim, .index = o->index};
    Walk          w = {s, p, &sched_block(s, p->block)->u.block, flat_index(s, &at)};
    const bool    columns = o == &p->b;
    DeviceLoad    l = {.cells = 1, .steps = 1, .across = columns != p->m_inner};

    l.along = !moved && (columns ? p->b_along_k : p->a_along_k);

    if (moved) /* the side's cells are the last */
        l.cells = side->cells % quad == 0 ? quad : 1;
    else if (made && !is_plain(made))
        l.chosen = true;
    else if (comes_beside(&w, &p->k, quad))
        l.steps = quad;
    else if (comes_beside(&w, side, quad))
        l.cells = quad;
    if (l.cells == 1 && l.steps == 1)
        share_row(&w, side, quad, &l);
    return l;
}

/* ---- the steps ----------------------------------------------------------------------------------- */

void load_direct(Sched *s, const Product *p, const Operand *o, const Loops *k, const Loops *rows,
                 const char *at)
{
    const char  *name = o->tensor->name;
    const bool   along = o == &p->a ? p->a_along_k : p->b_along_k;
    const Loops *sum = along ? k : &(Loops){0};
    StrBuf       all = strbuf(s->c->scratch);

    copy_cells(s, name, "reg", p->block, sum, rows, along ? at : k->at[k->n - 1]);
    for (uint32_t i = 0; i < sum->n + rows->n; i++)
        str_printf(&all, i ? ", %%%s.reg.a%u" : "%%%s.reg.a%u", name, i);
    step(s, "unroll %s", all.at);
}
