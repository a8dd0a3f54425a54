/* Neighbouring cells that sums in registers take come at once, too: the taps of a window of a
 * thread's neighbouring cells, the numbers of a row that a thread adds up.
 *
 *     %a[] = max(%a[], select(c, %x[4*i], -inf));  %b[] = max(%b[], select(c, %x[4*i+1], -inf)); ..
 *       -> alloc %v: f16x4 @reg
 *          %v[] = vec(-inf, ..);  if (c) %v[] = %x[4*i : 4]
 *          %a[] = max(%a[], lane 0 of %v[]);  ..
 *
 * A run of stores to registers changes nothing that a load of memory reads, so a load stands before
 * the first of them that takes it, and others that take it again find it there.  What lies beyond a
 * border is chosen by a condition, which is the same for all cells of an access or none is made;
 * then a number stands there.  Wide accesses are as in wide.c, which has the loads of what is
 * stored in memory; what a block shares compilers load at once themselves. */
#include "backends/common/plain.h"

/* A cell of memory that is loaded, in any case or where the condition holds. */
typedef struct {
    const Prim *value; /* the load, or the choice around it */
    const Prim *load, *cond, *other;
    uint32_t    first; /* statement that has it */
    bool        joined;
} Cell;

typedef struct {
    Ctx        *c;
    const Func *f;
    HasWideFn  *has;
    const void *user;
    VEC(Cell) cells;
    Map *walked; /* prims that were looked at */
    Map *taken;  /* prim's id -> the first statement that has it anywhere, plus 1 */
    Map *now;    /* prim's id -> what takes its place */
    VEC(const Buffer *) regs;
    const Stmt **before; /* what stands before each statement of the run, or NULL */
} Loads;

/* ---- which cells a run loads ----------------------------------------------------------------------- */

static void find_memory(void *user, const Idx *x)
{
    bool *found = user;

    *found = *found || idx_reads_memory(x);
}

static void find_load(void *user, const Prim *p)
{
    bool *found = user;

    *found = *found || p->kind == PRIM_LOAD;
}

static bool reads_memory(const Prim *p)
{
    bool found = false;

    prim_visit(p, &(TirVisit){.user = &found, .prim = find_load, .idx = find_memory});
    return found;
}

static bool is_cell(const Loads *l, const Prim *p)
{
    return p->kind == PRIM_LOAD && p->u.load.n == 1 && !p->u.load.mask && p->dtype.lanes == 1 &&
           !dtype_is_bool(p->dtype) && !idx_reads_memory(p->u.load.index[0]) &&
           is_param_of(l->f, p->u.load.buffer);
}

static bool is_number(const Prim *p)
{
    return p->kind == PRIM_INT || p->kind == PRIM_FLOAT;
}

/* In an arm, too: what takes the place of a cell stands before all that have it. */
static void find_first(Loads *l, const Prim *p, uint32_t at)
{
    if (map_get(l->taken, p->id))
        return;
    map_put(l->taken, p->id, (void *)(uintptr_t)(at + 1));
    for (uint32_t i = 0; i < p->nkids; i++)
        find_first(l, p->kids[i], at);
}

static void find_cells(Loads *l, const Prim *p)
{
    const uint32_t at = (uint32_t)(uintptr_t)map_get(l->taken, p->id) - 1;

    if (map_get(l->walked, p->id))
        return;
    map_put(l->walked, p->id, l);
    if (is_cell(l, p))
        vec_push(l->c->scratch, &l->cells, ((Cell){.value = p, .load = p, .first = at}));
    else if (p->kind == PRIM_SELECT && p->kids[0]->dtype.lanes == 1 && is_cell(l, p->kids[1]) &&
             is_number(p->kids[2]) && !reads_memory(p->kids[0]))
        vec_push(l->c->scratch, &l->cells,
                 ((Cell){p, p->kids[1], p->kids[0], p->kids[2], at, false}));
    for (uint32_t i = 0; i < sure_kids(p); i++)
        find_cells(l, p->kids[i]);
}

/* ---- those that become one ------------------------------------------------------------------------- */

/* The cell at that index which is loaded as the other is. */
static Cell *cell_at(const Loads *l, const Cell *like, const Idx *at)
{
    for (uint32_t i = 0; i < l->cells.n; i++) {
        Cell *k = &l->cells.at[i];
        if (k->load->u.load.buffer == like->load->u.load.buffer && k->cond == like->cond &&
            k->other == like->other && k->load->u.load.index[0] == at)
            return k;
    }
    return NULL;
}

static void add_before(Loads *l, uint32_t at, const Stmt *s)
{
    const Stmt *both[2] = {l->before[at], s};

    l->before[at] = stmt_seq(l->c, 2, both);
}

/* The access of the cells from there on, if the run loads them all. */
static void join_cells(Loads *l, Cell *first)
{
    Ctx          *c = l->c;
    const Buffer *b = first->load->u.load.buffer;
    uint16_t      lanes = access_lanes(b, WIDE_LANES, l->has, l->user);
    uint32_t      at = first->first;
    Cell         *cell[WIDE_LANES];
    const Prim   *other[WIDE_LANES];

    if (first->joined || lanes < 2 ||
        !is_on_border(c, b, first->load->u.load.index, lanes * (int64_t)dtype_bytes(b->dtype)))
        return;
    for (uint16_t k = 0; k < lanes; k++) {
        cell[k] = cell_at(l, first, idx_addc(c->arith, first->load->u.load.index[0], k));
        if (!cell[k] || cell[k]->joined)
            return;
        at = cell[k]->first < at ? cell[k]->first : at;
        other[k] = first->other;
    }
    const Buffer *reg = buffer_new(c, intern_printf(c->strings, "v%u", l->regs.n),
                                   dtype_lanes(b->dtype, lanes), SCOPE_REG, 0, NULL);
    const Prim   *all = prim_load(c, reg, NULL);
    const Stmt   *load =
        stmt_store(c, reg, NULL, prim_loadv(c, b, first->load->u.load.index, lanes, NULL));
    if (first->cond) {
        add_before(l, at, stmt_store(c, reg, NULL, prim_vec(c, lanes, other)));
        load = stmt_if(c, first->cond, load, NULL);
    }
    add_before(l, at, load);
    vec_push(c->scratch, &l->regs, reg);
    for (uint16_t k = 0; k < lanes; k++) {
        cell[k]->joined = true;
        map_put(l->now, cell[k]->value->id, (void *)(uintptr_t)prim_shuffle(c, all, 1, &k));
    }
}

/* p with lanes in the place of cells; what indices read stays. */
static const Prim *with_lanes(Loads *l, const Prim *p)
{
    const Prim *now = map_get(l->now, p->id);

    if (now)
        return now;
    const Prim **kids = NEW_ARRAY(l->c->arena, const Prim *, p->nkids + 1);
    bool         same = true;
    for (uint32_t i = 0; i < p->nkids; i++) {
        kids[i] = with_lanes(l, p->kids[i]);
        same = same && kids[i] == p->kids[i];
    }
    now = same ? p : prim_with_kids(l->c, p, kids);
    map_put(l->now, p->id, (void *)(uintptr_t)now);
    return now;
}

/* ---- runs ------------------------------------------------------------------------------------------ */

static bool is_sum(const Stmt *s)
{
    return s->kind == STMT_STORE && s->u.store.buffer->scope == SCOPE_REG && !s->u.store.mask &&
           s->u.store.value->dtype.lanes == 1;
}

/* The run with wide loads, or as it was. */
static const Stmt *of_run(Loads *x, uint32_t n, const Stmt *const *s)
{
    Ctx         *c = x->c;
    Loads        l = {.c = c,
                      .f = x->f,
                      .has = x->has,
                      .user = x->user,
                      .walked = map_new(c->scratch),
                      .taken = map_new(c->scratch),
                      .now = map_new(c->scratch),
                      .before = NEW_ARRAY(c->scratch, const Stmt *, n)};
    const Stmt **all = NEW_ARRAY(c->scratch, const Stmt *, 2 * n);

    for (uint32_t i = 0; i < n; i++)
        find_first(&l, s[i]->u.store.value, i);
    for (uint32_t i = 0; i < n; i++)
        find_cells(&l, s[i]->u.store.value);
    for (uint32_t i = 0; i < l.cells.n; i++)
        join_cells(&l, &l.cells.at[i]);
    if (!l.regs.n)
        return stmt_seq(c, n, s);
    for (uint32_t i = 0; i < n; i++) {
        const StoreData *d = &s[i]->u.store;
        all[2 * i] = l.before[i];
        all[2 * i + 1] = stmt_store(c, d->buffer, d->index, with_lanes(&l, d->value));
    }
    const Stmt *whole = stmt_seq(c, 2 * n, all);
    for (uint32_t i = l.regs.n; i-- > 0;)
        whole = stmt_alloc(c, l.regs.at[i], whole);
    return whole;
}

static const Stmt *loads_stmt(Ctx *c, void *user, const Stmt *was, const Stmt *now)
{
    Loads       *x = user;
    const Stmt **s = NEW_ARRAY(c->arena, const Stmt *, now->nkids + 1);
    uint32_t     n = 0, end;

    (void)was;
    if (now->kind != STMT_SEQ)
        return now;
    for (uint32_t i = 0; i < now->nkids; i = end) {
        for (end = i; end < now->nkids && is_sum(now->kids[end]);)
            end++;
        end = end > i ? end : i + 1;
        s[n++] = end > i + 1 ? of_run(x, end - i, now->kids + i) : now->kids[i];
    }
    return stmt_seq(c, n, s);
}

const Func *plain_loads(Ctx *c, const Func *f, HasWideFn *has, const void *user)
{
    Loads x = {.c = c, .f = f, .has = has, .user = user};

    return func_with_body(c, f, stmt_map(c, f->body, &(TirMap){.user = &x, .stmt = loads_stmt}));
}
