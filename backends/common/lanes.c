/* What stays a vector where schedules make none, written as loops over lanes.
 *
 *     %b[i : 8] = splat(0.0, 8)     for l < 8 { %b[i+l] = 0.0 }
 *
 * Values whose lanes are not alike (`vec`, `shuffle`) are written out lane by lane.  All lanes are
 * read before one is stored: where the value reads the buffer at other cells, it goes through an
 * array of its own. */
#include "backends/common/plain.h"
#include "ir/tir/intrin.h"

typedef struct {
    Ctx          *c;
    const Idx    *lane;   /* a loop's variable, or a number */
    const Buffer *stored; /* and where */
    const Idx    *at;
    bool          alike;    /* no lane is another expression than its neighbour */
    bool          overlaps; /* the value reads other cells of `stored` */
} Lanes;

static const Prim *load_lane(Lanes *v, const Prim *p)
{
    const LoadData *l = &p->u.load;
    const Idx      *index;

    if (l->mask)
        return p;
    if (!l->n) { /* a register of several numbers */
        int64_t n = 0;
        v->alike = v->alike && idx_is_const(v->lane, &n);
        return prim_shuffle(v->c, p, 1, &(uint16_t){(uint16_t)n});
    }
    index = idx_add(v->c->arith, l->index[l->n - 1], v->lane);
    for (const Buffer *b = l->buffer; b; b = b->alias)
        for (const Buffer *s = v->stored; s; s = s->alias)
            v->overlaps = v->overlaps || (b == s && l->index[0] != v->at);
    return prim_load(v->c, l->buffer, &index);
}

static const Prim *lane_of(Lanes *v, const Prim *p)
{
    const Prim **kids = NEW_ARRAY(v->c->arena, const Prim *, p->nkids + 1);
    int64_t      n = 0;

    if (p->dtype.lanes == 1)
        return p;
    if (p->kind == PRIM_SPLAT)
        return p->kids[0];
    if (p->kind == PRIM_LOAD)
        return load_lane(v, p);
    if (p->kind == PRIM_RAMP)
        return prim_index(v->c, dtype_lanes(p->dtype, 1),
                          idx_add(v->c->arith, p->u.index, v->lane));
    if (p->kind == PRIM_VEC || p->kind == PRIM_SHUFFLE) {
        if (!idx_is_const(v->lane, &n)) {
            v->alike = false;
            return p;
        }
        if (p->kind == PRIM_VEC)
            return p->kids[n];
        const Idx *was = v->lane;
        v->lane = idx_const(v->c->arith, p->u.from[n]);
        p = lane_of(v, p->kids[0]);
        v->lane = was;
        return p;
    }
    for (uint32_t i = 0; i < p->nkids; i++)
        kids[i] = lane_of(v, p->kids[i]);
    if (!v->alike)
        return p;
    if (p->kind == PRIM_CAST)
        return prim_cast(v->c, dtype_lanes(p->dtype, 1), kids[0]);
    if (p->kind == PRIM_BITS)
        return prim_bits(v->c, dtype_lanes(p->dtype, 1), kids[0]);
    return prim_with_kids(v->c, p, kids);
}

/* b[at + lane] = value of that lane, under the mask's. */
static const Stmt *store_lane(Lanes *v, const Buffer *b, const Idx *at, const Prim *value,
                              const Prim *mask)
{
    const Idx  *cell = idx_add(v->c->arith, at, v->lane);
    const Stmt *s = stmt_store(v->c, b, &cell, lane_of(v, value));

    return mask ? stmt_if(v->c, lane_of(v, mask), s, NULL) : s;
}

static const Stmt *all_lanes(Lanes *v, const Buffer *b, const Idx *at, const Prim *value,
                             const Prim *mask)
{
    Ctx        *c = v->c;
    uint16_t    n = value->dtype.lanes;
    const Atom *lane = atom_var(c->arith, "lane", 0, n - 1);
    LoopData    loop = {.var = lane,
                        .lo = idx_const(c->arith, 0),
                        .extent = idx_const(c->arith, n),
                        .kind = LOOP_SEQ};
    const Stmt *one;

    v->alike = true;
    v->lane = idx_atom(c->arith, lane);
    one = store_lane(v, b, at, value, mask);
    if (v->alike)
        return stmt_for(c, loop, one, NO_LOC);
    const Stmt **each = NEW_ARRAY(c->arena, const Stmt *, n);
    for (uint16_t i = 0; i < n; i++) {
        v->lane = idx_const(c->arith, i);
        v->alike = true;
        each[i] = store_lane(v, b, at, value, mask);
    }
    return stmt_seq(c, n, each);
}

/* Numbers that shared memory gets at once: as they lie, or one by one. */
static bool comes_at_once(Ctx *c, const Prim *p)
{
    switch ((int)p->kind) {
    case PRIM_INT:
    case PRIM_FLOAT:
    case PRIM_SPLAT:
    case PRIM_VEC: return true;
    case PRIM_LOAD:
        return !p->u.load.mask &&
               (!p->u.load.n ||
                is_on_border(c, p->u.load.buffer, p->u.load.index, dtype_bytes(p->dtype)));
    case PRIM_SELECT:
        return p->kids[0]->dtype.lanes == 1 && comes_at_once(c, p->kids[1]) &&
               comes_at_once(c, p->kids[2]);
    }
    return false;
}

/* A store to shared memory, or from there, of a word or so many bytes at most, which lie on their
 * border. */
static bool moves_at_once(Ctx *c, const StoreData *d, uint32_t most)
{
    const uint32_t bytes = dtype_bytes(d->value->dtype);
    const Prim    *v = d->value;

    if (bytes < WORD || bytes > most || bytes & (bytes - 1) || dtype_is_bool(v->dtype) || d->mask)
        return false;
    if (d->buffer->scope == SCOPE_SHARED)
        return is_on_border(c, d->buffer, d->index, bytes);
    return most > WORD && v->kind == PRIM_LOAD && v->u.load.buffer->scope == SCOPE_SHARED &&
           comes_at_once(c, v);
}

/* The store as that of a vector, what a word holds computed lane by lane too; NULL: a lane is not
 * known so. */
static const Stmt *store_at_once(Lanes *v, const Stmt *s)
{
    const StoreData *d = &s->u.store;
    const Prim      *lane[WORD];
    uint16_t         n = d->value->dtype.lanes;

    if (comes_at_once(v->c, d->value))
        return s;
    if (dtype_bytes(d->value->dtype) > WORD)
        return NULL;
    v->alike = true;
    for (uint16_t i = 0; i < n; i++) {
        v->lane = idx_const(v->c->arith, i);
        lane[i] = lane_of(v, d->value);
        if (lane[i]->dtype.lanes > 1)
            return NULL;
    }
    return stmt_store(v->c, d->buffer, d->index, prim_vec(v->c, n, lane));
}

static const Stmt *scalar_stmt(Ctx *c, void *user, const Stmt *was, const Stmt *now)
{
    const StoreData *d = &now->u.store;
    Lanes            v = {.c = c};
    const Idx       *zero = idx_const(c->arith, 0);

    (void)was;
    if (now->kind != STMT_STORE || d->value->dtype.lanes == 1 || d->n != 1 ||
        d->buffer->dtype.lanes > 1 || d->value->kind == PRIM_INTRIN || is_matrix_store(d))
        return now;
    v.stored = d->buffer;
    v.at = d->index[0];
    const Stmt *once = moves_at_once(c, d, *(const uint32_t *)user) ? store_at_once(&v, now) : NULL;
    if (once)
        return once;
    const Stmt *s = all_lanes(&v, d->buffer, d->index[0], d->value, d->mask);
    if (!v.overlaps)
        return s;
    const Idx    *n = idx_const(c->arith, d->value->dtype.lanes);
    const Buffer *held = buffer_new(c, "held", d->buffer->dtype, SCOPE_STACK, 1, &n);
    const Stmt   *both[2] = {all_lanes(&v, held, zero, d->value, NULL),
                             all_lanes(&v, d->buffer, d->index[0],
                                       prim_loadv(c, held, &zero, d->value->dtype.lanes, NULL),
                                       d->mask)};
    return stmt_alloc(c, held, stmt_seq(c, 2, both));
}

const Func *plain_scalars(Ctx *c, const Func *f, uint32_t most)
{
    TirMap m = {.user = &most, .stmt = scalar_stmt};

    return func_with_body(c, f, stmt_map(c, f->body, &m));
}
