/* Nests that compute a row of ir/tir/intrin.def.
 *
 *     for %d < 4 reduce { %s[i] = %s[i] + i32(%a[.., 4*j + %d]) * i32(%b[.., 4*k + %d]) }
 *       ->  %s[i] = dot4(%a[.., 4*j : 4], %b[.., 4*k : 4], %s[i])
 *
 * A nest computes a row if its loops are the row's axes, in any order, and its store's value is the
 * row's step with other buffers.  The cells of each operand then have to lie as the row has them,
 * one after the other.  One operand may lie in small steps instead, as the columns of a depthwise
 * convolution in blocks of channels do:
 *
 *     .. i32(%a[.., x + %d, j]) * ..  ->  dot4(vec(%a[.., x, j], .. %a[.., x + 3, j]), %b[..], ..)
 *
 * The step `tensorize` asks before it marks the loops, the pass `vectorize` when it carries the
 * mark out. */
#include "ir/tir/intrin.h"

#include <math.h>
#include <string.h>

/* Steps between cells that are loaded as one vector and turned: more would be cell by cell. */
enum { MAX_STEP = 16 };

typedef struct {
    Ctx             *c;
    const StoreData *store;
    IntrinMatch     *m;
    bool             either; /* sums and products have their operands in either order */
} Match;

static uint32_t axes_of(const Intrin *row)
{
    return row->naxis + row->nreduce;
}

/* How much the index grows with var: a constant, in *by; false otherwise. */
static bool grows_by(Arith *A, const Idx *x, const Atom *var, int64_t *by)
{
    *by = 0;
    for (uint32_t i = 0; i < x->nterms; i++)
        if (x->t[i].atom == var)
            *by = x->t[i].coef;
    return !idx_uses(idx_sub(A, x, idx_mulc(A, idx_atom(A, var), *by)), var);
}

/* How many cells further a load reads with the next value of var; *small: in each dimension the
 * step is small, and forwards. */
static bool cells_by(Ctx *c, const LoadData *l, const Atom *var, int64_t *step, bool *small)
{
    const Idx **stride = NEW_ARRAY(c->scratch, const Idx *, l->n + 1);
    int64_t     by, cells, part;

    buffer_strides(c, l->buffer, stride);
    *step = 0;
    *small = true;
    for (uint32_t i = 0; i < l->n; i++) {
        if (!grows_by(c->arith, l->index[i], var, &by))
            return false;
        if (!by)
            continue;
        if (!idx_is_const(stride[i], &cells) || !checked_mul(by, cells, &part) ||
            !checked_add(*step, part, step))
            return false;
        *small &= by > 0 && by <= MAX_STEP && cells > 0 && cells <= MAX_STEP;
    }
    *small &= *step >= 1 && *step <= MAX_STEP;
    return true;
}

bool intrin_step(Ctx *c, const LoadData *l, const Atom *var, int64_t *cells)
{
    bool small;

    return cells_by(c, l, var, cells, &small);
}

/* Where a box's cells lie: one after the other, or (*apart) near each other along its axes.  Of
 * cells that threads give, one each, anywhere. */
static bool lies_well(const Match *x, const IntrinBox *box, const LoadData *l, bool *apart)
{
    const Intrin *row = x->m->row;
    int64_t       by;
    bool          small;

    *apart = false;
    if (row->lanes && box->cells > 1)
        return true;
    for (uint32_t i = 0; i < axes_of(row); i++) {
        if (!cells_by(x->c, l, x->m->var[i], &by, &small) || (by && !box->by[i]))
            return false;
        if (by == box->by[i] || row->extent[i] == 1)
            continue;
        if (!small)
            return false;
        *apart = true;
    }
    return true;
}

/* The nest's load in the place of the row's. */
static bool same_load(Match *x, const Buffer *b, const Prim *p)
{
    const Intrin *row = x->m->row;
    uint32_t      k = 0;

    while (row->operand[k].buffer != b)
        k++;
    const IntrinBox *box = &row->operand[k];

    if (p->kind != PRIM_LOAD || p->u.load.mask || !dtype_eq(p->dtype, box->dtype) ||
        (box->cells > 1 && !p->u.load.n) || (x->m->operand[k] && x->m->operand[k] != p))
        return false;
    if (b == row->result.buffer && p != prim_load(x->c, x->store->buffer, x->store->index))
        return false;
    x->m->operand[k] = p;
    return lies_well(x, box, &p->u.load, &x->m->apart[k]);
}

/* Is p the row's formula? */
static bool same_formula(Match *x, const Prim *row, const Prim *p)
{
    IntrinMatch was = *x->m;
    bool        either =
        x->either && (row->kind == PRIM_ADD || row->kind == PRIM_MUL || row->kind == PRIM_FMA);

    if (row->kind == PRIM_LOAD)
        return same_load(x, row->u.load.buffer, p);
    if (row->kind != p->kind || !dtype_eq(row->dtype, p->dtype) || row->nkids != p->nkids)
        return false;
    switch (row->kind) {
    case PRIM_INT: return row->u.i == p->u.i;
    case PRIM_FLOAT: return memcmp(&row->u.f, &p->u.f, sizeof p->u.f) == 0;
    case PRIM_MATH:
        if (row->u.math != p->u.math)
            return false;
        break;
    case PRIM_INDEX:
    case PRIM_RAMP:
    case PRIM_CASE:
    case PRIM_INTRIN:
    case PRIM_SHUFFLE: return false;
    case PRIM_LOAD:
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
    case PRIM_ADDR:
    case PRIM_SYMBOL:
    case PRIM_SIZEOF:
    case PRIM_SPLAT:
    case PRIM_VEC: break;
    }
    for (uint32_t swap = 0; swap <= either; swap++) {
        bool same = true;

        *x->m = was;
        for (uint32_t i = 0; same && i < p->nkids; i++)
            same = same_formula(x, row->kids[i], p->kids[swap && i < 2 ? 1 - i : i]);
        if (same)
            return true;
    }
    return false;
}

static bool at_most_one_apart(const IntrinMatch *m)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < m->row->n; i++)
        n += m->apart[i];
    return n <= 1;
}

/* The loops from `at` on as axes that are left; all taken: is the formula the same? */
static bool match_loops(Match *x, uint32_t n, const LoopData *const *loops, uint32_t at)
{
    const Intrin *row = x->m->row;
    int64_t       extent;

    if (at == n) {
        memset(x->m->operand, 0, sizeof x->m->operand);
        return same_formula(x, row->step, x->store->value) && at_most_one_apart(x->m);
    }
    for (uint32_t i = 0; i < axes_of(row); i++) {
        if (x->m->var[i] || loops[at]->kind != (i < row->naxis ? LOOP_SPATIAL : LOOP_REDUCE) ||
            !idx_is_const(loops[at]->extent, &extent) || extent != row->extent[i])
            continue;
        x->m->var[i] = loops[at]->var;
        x->m->lo[i] = loops[at]->lo;
        if (match_loops(x, n, loops, at + 1))
            return true;
        x->m->var[i] = NULL;
    }
    return false;
}

/* The result's cells lie one after the other. */
static bool stores_well(const Match *x)
{
    LoadData to = {.buffer = x->store->buffer, .n = x->store->n, .index = x->store->index};
    bool     apart;

    return lies_well(x, &x->m->row->result, &to, &apart) && !apart;
}

typedef struct {
    uint32_t               n;
    const LoopData *const *loops;
    bool                   found;
} LoopUse;

static void uses_loop(void *user, const Idx *x)
{
    LoopUse *u = user;

    for (uint32_t i = 0; i < u->n; i++)
        u->found = u->found || idx_uses(x, u->loops[i]->var);
}

static bool is_zero(const Prim *p)
{
    return (p->kind == PRIM_INT && p->u.i == 0) ||
           (p->kind == PRIM_FLOAT && p->u.f == 0 && !signbit(p->u.f));
}

/* What is copied where conditions hold that are alike for all cells, zeros elsewhere. */
static const Prim *copied_where(Ctx *c, uint32_t n, const LoopData *const *loops,
                                const StoreData *store, const Prim **where)
{
    const Prim *v = store->value;

    for (*where = NULL; v->kind == PRIM_SELECT && is_zero(v->kids[2]); v = v->kids[1]) {
        LoopUse use = {n, loops, false};
        prim_visit(v->kids[0], &(TirVisit){.user = &use, .idx = uses_loop});
        if (use.found)
            break;
        *where = *where ? prim_and(c, *where, v->kids[0]) : v->kids[0];
    }
    return v;
}

bool intrin_match(Ctx *c, const char *text, uint32_t nloops, const LoopData *const *loops,
                  const StoreData *store, IntrinMatch *out)
{
    const Prim *where;
    StoreData   copied = *store;

    if (store->mask || store->value->dtype.lanes != 1)
        return false;
    copied.value = copied_where(c, nloops, loops, store, &where);
    for (uint32_t i = 0; i < 2 * INTRIN_COUNT; i++) { /* first in the order that is written */
        uint32_t id = i % INTRIN_COUNT;
        Match    x = {c, store, out, i >= INTRIN_COUNT};

        if (strcmp(intrin_text((IntrinId)id), text))
            continue;
        *out = (IntrinMatch){.row = intrin_of(c, (IntrinId)id)};
        if (intrin_copies(out->row) && where) {
            out->where = where;
            x.store = &copied;
        }
        if ((!out->row->warp || out->row->lanes) && nloops == axes_of(out->row) &&
            dtype_eq(store->buffer->dtype, out->row->result.dtype) &&
            match_loops(&x, nloops, loops, 0) && stores_well(&x))
            return true;
    }
    return false;
}

/* Indices with the loops at their first values, and the axes that far on. */
static const Idx **indices_at(Ctx *c, const IntrinMatch *m, uint32_t n, const Idx *const *index,
                              const int64_t *axis)
{
    IdxSubst   *sub = subst_new(c->arith, c->scratch);
    const Idx **at = NEW_ARRAY(c->scratch, const Idx *, n + 1);

    for (uint32_t i = 0; i < axes_of(m->row); i++)
        subst_bind(sub, m->var[i], idx_addc(c->arith, m->lo[i], axis[i]));
    for (uint32_t i = 0; i < n; i++)
        at[i] = idx_subst(sub, index[i]);
    return at;
}

/* The axes at a cell of a box; those it does not have are 0. */
static void axes_at(const Intrin *row, const IntrinBox *box, uint32_t cell, int64_t *axis)
{
    for (uint32_t i = 0; i < axes_of(row); i++)
        axis[i] = box->by[i] ? cell / box->by[i] % row->extent[i] : 0;
}

static const Prim *operand_of(Ctx *c, const IntrinMatch *m, uint32_t k)
{
    const IntrinBox *box = &m->row->operand[k];
    const LoadData  *l = &m->operand[k]->u.load;
    uint32_t         n = m->apart[k] ? box->cells : 1;
    const Prim     **cell = NEW_ARRAY(c->scratch, const Prim *, n);
    int64_t          axis[INTRIN_AXES];
    uint16_t         lanes = (uint16_t)(box->cells / n);

    for (uint32_t i = 0; i < n; i++) {
        axes_at(m->row, box, i, axis);
        cell[i] = prim_loadv(c, l->buffer, indices_at(c, m, l->n, l->index, axis), lanes,
                             m->where ? prim_splat(c, m->where, lanes) : NULL);
    }
    return prim_vec(c, n, cell);
}

const Stmt *intrin_stmt(Ctx *c, const IntrinMatch *m, const StoreData *store)
{
    static const int64_t first[INTRIN_AXES];
    const Prim          *kid[INTRIN_OPERANDS];

    for (uint32_t k = 0; k < m->row->n; k++)
        kid[k] = operand_of(c, m, k);
    return stmt_storev(c, store->buffer, indices_at(c, m, store->n, store->index, first),
                       prim_intrin(c, m->row, kid), NULL);
}

const Stmt *lanes_stmt(Ctx *c, const IntrinMatch *m, const StoreData *store, const Idx *x)
{
    const LoadData *l = &m->operand[0]->u.load;
    IdxSubst       *sub = subst_new(c->arith, c->scratch);
    const Idx     **at = NEW_ARRAY(c->scratch, const Idx *, l->n + 1);

    subst_bind(sub, m->var[0], idx_add(c->arith, m->lo[0], x));
    for (uint32_t i = 0; i < l->n; i++)
        at[i] = idx_subst(sub, l->index[i]);
    const Prim *kid[2] = {prim_load(c, l->buffer, at), m->operand[1]};
    return stmt_store(c, store->buffer, store->index, prim_intrin(c, m->row, kid));
}
