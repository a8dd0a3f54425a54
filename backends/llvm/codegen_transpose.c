/* Tiles that are transposed in registers.
 *
 *   %y[0 : 8] = vec(%x[0], %x[56], .., %x[392])        row 0 of y: column 0 of x
 *   %y[8 : 8] = vec(%x[1], %x[57], .., %x[393])        .. the next lines: columns 1 to 7
 *
 * Lane by lane these are 64 loads and as many insertions.  Statements whose k-th loads are
 * neighbours read rows of a tile, so each row is loaded as a vector and the tile is turned by
 * shuffles: within quarters of 16 bytes (two rounds of unpack), then quarters among vectors.  For
 * 16 lanes: 16 loads, 64 shuffles, 16 stores.  Lanes that are numbers (surplus channels) are rows
 * of that number; a tile need not be square.  Such vectors may be parts of formulas (a sum that is
 * turned, a tile that something is added to), in which each is turned for itself.  What is stored
 * must not be what is loaded: statements are no longer in order.  A sum in a register, which each
 * of them adds to, may: what lies across is in memory. */
#include "backends/llvm/llvm.h"

enum { QUARTER = 4, MOST = 16 }; /* lanes of 16 bytes; lanes of the widest vector */

enum { MOST_TILES = 4 }; /* of a formula: their vectors wait for each other, in memory if need be */

/* The vectors of single cells in what a statement stores. */
typedef struct {
    const Buffer *stored;
    const Prim   *at[MOST_TILES];
    uint32_t      n;
    bool          fails; /* too many, or it loads what is stored */
} TileColumns;

static const Buffer *memory_of(const Buffer *b)
{
    while (b->alias)
        b = b->alias;
    return b;
}

static void see_load(void *user, const Prim *p)
{
    TileColumns *c = user;

    c->fails |= p->kind == PRIM_LOAD && memory_of(p->u.load.buffer) == c->stored;
}

/* Those of p that are computed whatever its conditions are. */
static void find_columns(Gen *g, const Prim *p, TileColumns *c)
{
    VEC(const Prim *) todo = {0};
    Map *seen = map_new(g->a);

    vec_push(g->a, &todo, p);
    while (todo.n) {
        p = todo.at[--todo.n];
        if (map_get(seen, PTR_KEY(p)))
            continue;
        map_put(seen, PTR_KEY(p), c);
        if (p->kind == PRIM_VEC) {
            if (p->dtype.bits != 32 || p->dtype.lanes < QUARTER || p->dtype.lanes > MOST)
                continue;
            c->fails |= c->n == MOST_TILES;
            if (!c->fails)
                c->at[c->n++] = p;
        } else if (p->kind != PRIM_CASE) {
            for (uint32_t i = p->kind == PRIM_SELECT ? 1 : p->nkids; i-- > 0;)
                vec_push(g->a, &todo, p->kids[i]);
        }
    }
}

static TileColumns columns(Gen *g, const Stmt *s)
{
    const StoreData *d = &s->u.store;
    TileColumns      c = {.fails = s->kind != STMT_STORE || d->mask || d->member};

    c.fails = c.fails || d->value->dtype.lanes < QUARTER || d->value->dtype.lanes > MOST;
    if (c.fails)
        return c;
    c.stored = memory_of(d->buffer);
    if (d->buffer->scope != SCOPE_REG)
        stmt_visit(s, &(TirVisit){.user = &c, .prim = see_load});
    if (!c.fails)
        find_columns(g, d->value, &c);
    return c;
}

static bool is_number(const Prim *p)
{
    return p->kind == PRIM_FLOAT || p->kind == PRIM_INT;
}

/* Is lane k of a the same as of the first column, `step` cells on? */
static bool lane_follows(Gen *g, const Prim *first, const Prim *a, int64_t step)
{
    const LoadData *x = &first->u.load, *y = &a->u.load;

    if (is_number(first))
        return a == first;
    return first->kind == PRIM_LOAD && a->kind == PRIM_LOAD && x->buffer == y->buffer &&
           x->buffer->scope != SCOPE_REG && x->n == 1 && y->n == 1 && !x->mask && !y->mask &&
           idx_addc(g->c->arith, x->index[0], step) == y->index[0];
}

/* Rows that overlap are no tile: codegen_near.c does better. */
static bool rows_apart(Gen *g, const Prim *a, const Prim *b, int64_t m)
{
    int64_t d;

    if (a->kind != PRIM_LOAD || b->kind != PRIM_LOAD)
        return true;
    return !idx_is_const(idx_sub(g->c->arith, b->u.load.index[0], a->u.load.index[0]), &d) ||
           d >= m || d <= -m;
}

/* Is it the column of a tile that follows the first one as `m` statements further? */
static bool column_follows(Gen *g, const Prim *first, const Prim *p, uint32_t m)
{
    bool fits = dtype_eq(p->dtype, first->dtype);

    for (uint32_t k = 0; fits && k < first->nkids; k++)
        fits = lane_follows(g, first->kids[k], p->kids[k], m);
    return fits;
}

/* Rows of the tile of m columns whose first one is p. */
static uint32_t tile_rows(Gen *g, const Prim *p, uint32_t m)
{
    uint32_t loads = 0;

    for (uint32_t k = 0; k < p->nkids; k++) {
        if (k && !rows_apart(g, p->kids[k - 1], p->kids[k], m))
            return 0;
        loads += p->kids[k]->kind == PRIM_LOAD;
    }
    return loads;
}

/* How many statements from the first on have the columns of tiles; `c` those of each. */
static uint32_t tile_columns(Gen *g, uint32_t n, const Stmt *const *s, TileColumns *c)
{
    uint32_t m = 0;

    while (m < n && m < MOST) {
        c[m] = columns(g, s[m]);
        bool fits = !c[m].fails && c[m].n && c[m].n == c[0].n && c[m].stored == c[0].stored;
        for (uint32_t i = 0; fits && i < c[0].n; i++)
            fits = column_follows(g, c[0].at[i], c[m].at[i], m);
        if (!fits)
            break;
        m++;
    }
    for (uint32_t i = 0; m >= QUARTER && i < c[0].n; i++)
        if (tile_rows(g, c[0].at[i], m) < QUARTER)
            return 0;
    return m >= QUARTER ? m : 0;
}

/* Lanes of a and b in another order; lanes of b count from n on.  -1: any. */
static LLVMValueRef shuffle(Gen *g, LLVMValueRef a, LLVMValueRef b, const int *lane, uint32_t n)
{
    LLVMValueRef mask[MOST];

    for (uint32_t i = 0; i < n; i++)
        mask[i] = lane[i] < 0 ? LLVMGetPoison(g->i32) : gen_i32(g, lane[i]);
    return LLVMBuildShuffleVector(g->b, a, b, LLVMConstVector(mask, n), "");
}

/* v as a vector of n lanes: cut, or with any lanes behind. */
static LLVMValueRef resize(Gen *g, LLVMValueRef v, uint32_t n)
{
    uint32_t has = LLVMGetVectorSize(LLVMTypeOf(v));
    int      lane[MOST];

    for (uint32_t i = 0; i < n; i++)
        lane[i] = i < has ? (int)i : -1;
    return has == n ? v : shuffle(g, v, LLVMGetPoison(LLVMTypeOf(v)), lane, n);
}

/* In each quarter: runs of `run` lanes of the first (`high`: second) half of a's and b's by turns.
 */
static LLVMValueRef unpack(Gen *g, LLVMValueRef a, LLVMValueRef b, uint32_t n, uint32_t run,
                           bool high)
{
    int lane[MOST];

    for (uint32_t i = 0; i < n; i++) {
        uint32_t q = i / QUARTER * QUARTER, in = i % QUARTER;
        uint32_t at = q + (high ? 2u : 0u) + in / (2 * run) * run + in % run;
        lane[i] = (int)(in / run % 2 ? n + at : at);
    }
    return shuffle(g, a, b, lane, n);
}

/* Quarters of a and b by turns, from the first or second half of each. */
static LLVMValueRef weave(Gen *g, LLVMValueRef a, LLVMValueRef b, uint32_t n, bool high)
{
    int lane[MOST];

    for (uint32_t i = 0; i < n; i++) {
        uint32_t q = i / QUARTER,
                 at = (q / 2 + (high ? n / QUARTER / 2 : 0)) * QUARTER + i % QUARTER;
        lane[i] = (int)(q % 2 ? n + at : at);
    }
    return shuffle(g, a, b, lane, n);
}

/* v[n]: rows of n lanes to columns; n is 4, 8 or 16. */
static void turn(Gen *g, LLVMValueRef *v, uint32_t n)
{
    LLVMValueRef t[MOST], u[MOST];
    uint32_t     quarters = n / QUARTER;

    for (uint32_t q = 0; q < n; q += QUARTER) {
        for (uint32_t i = 0; i < 2; i++) {
            t[q + i] = unpack(g, v[q], v[q + 1], n, 1, i);
            t[q + 2 + i] = unpack(g, v[q + 2], v[q + 3], n, 1, i);
        }
        for (uint32_t i = 0; i < QUARTER; i++) /* column i of each quarter, rows q to q+3 */
            u[q + i] = unpack(g, t[q + i / 2], t[q + 2 + i / 2], n, 2, i % 2);
    }
    for (uint32_t i = 0; i < QUARTER; i++) {
        for (uint32_t q = 0; q < quarters; q++)
            t[q] = u[q * QUARTER + i];
        for (uint32_t round = 1; round < quarters; round *= 2) {
            LLVMValueRef next[QUARTER];
            for (uint32_t q = 0; q < quarters; q++)
                next[q] = weave(g, t[q / 2], t[q / 2 + quarters / 2], n, q % 2);
            for (uint32_t q = 0; q < quarters; q++)
                t[q] = next[q];
        }
        for (uint32_t q = 0; q < quarters; q++)
            v[q * QUARTER + i] = t[q];
    }
}

static LLVMValueRef number_row(Gen *g, const Prim *p, uint32_t n)
{
    LLVMValueRef v[MOST];

    for (uint32_t i = 0; i < n; i++)
        v[i] = gen_prim(g, p);
    return LLVMConstVector(v, n);
}

/* The tile whose m columns are the i-th of each: v[m]. */
static void turn_tile(Gen *g, uint32_t m, const TileColumns *c, uint32_t i, LLVMValueRef *v)
{
    const Prim *first = c[0].at[i];
    uint32_t    lanes = first->dtype.lanes, side = QUARTER;
    LLVMTypeRef row = gen_type(g, dtype_lanes(first->dtype, (uint16_t)m));

    while (side < m || side < lanes)
        side *= 2;
    for (uint32_t k = 0; k < side; k++) {
        const Prim *p = k < lanes ? first->kids[k] : NULL;

        if (!p)
            v[k] = LLVMGetPoison(row);
        else if (p->kind == PRIM_LOAD)
            v[k] = gen_load(g, &p->u.load, dtype_lanes(p->dtype, (uint16_t)m));
        else
            v[k] = number_row(g, p, m);
        v[k] = resize(g, v[k], side);
    }
    turn(g, v, side);
    for (uint32_t k = 0; k < m; k++)
        v[k] = resize(g, v[k], lanes);
}

uint32_t gen_transposed(Gen *g, uint32_t n, const Stmt *const *s)
{
    TileColumns  c[MOST];
    uint32_t     m = g->mask ? 0 : tile_columns(g, n, s, c);
    LLVMValueRef v[MOST];

    for (uint32_t i = 0; m && i < c[0].n; i++) {
        turn_tile(g, m, c, i, v);
        for (uint32_t k = 0; k < m; k++)
            gen_know(g, c[k].at[i], v[k]);
    }
    for (uint32_t k = 0; k < m; k++) {
        GenMark mark = gen_mark(g);

        gen_store(g, &s[k]->u.store);
        mark.block = g->block.keys.n;
        gen_drop(g, mark); /* a sum in a register is another one in the next statement */
    }
    return m;
}
