/* Instructions of a warp: which part of a product each of its threads has, and nests that are such
 * products.
 *
 *     for mi < 2 { for nj < 4 { for i < 2 { for j < 2 { for k < 16 reduce {
 *       %c[mi, nj, i, j] += f32(%a.shared[mi, i, %y, k]) * f32(%b.shared[nj, %x, j, k])
 *       ->  %a.part[4*mi : 4] = ldmatrix4(%a.shared[.. : 8])      %b.part[2*nj : 2] = ldmatrix2(..)
 *           %c[.. : 4] = mma_f16(%a.part[4*mi : 4], %b.part[2*nj : 2], %c[.. : 4])
 *
 * A warp's threads are 4 * y + x, with x < 4 and y < 8.  Rows of an operand are words of 32 bits,
 * eight of them for the steps of one instruction.  As the PTX manual has it (mma.m16n8k16 and its
 * kin), a thread has
 *
 *     of the result    numbers e < 4: row y + 8 * (e / 2), column 2 * x + e % 2
 *     of a (16 rows)   words w < 4: row y + 8 * (w % 2), word x + 4 * (w / 2)
 *     of b (8 columns) words w < 2: column y, word x + 4 * w
 *
 * and with ldmatrix thread t gives the address of row t % 8 of the matrix t / 8, of 8 rows of four
 * words, and gets word x of row y of each.
 *
 * So a nest in which thread (x, y) sums the cells of its own part computes what the instruction
 * does: the data of a depend on y alone, those of b on x alone, and all lie in shared memory.  What
 * a thread passes to the instruction it does not sum itself, which is why the loads are of other
 * cells than the nest's. */
#include "ir/tir/intrin.h"

#include <string.h>

enum { MATRIX_ROWS = 8, PARTS_A = 4, PARTS_B = 2 };

bool is_warp_store(const Stmt *s)
{
    return s->kind == STMT_STORE && s->u.store.value->kind == PRIM_INTRIN &&
           s->u.store.value->u.intrin->warp;
}

/* ---- what it computes ---------------------------------------------------------------------------- */

static void gather_rows(const Intrin *row, uint8_t (*in)[WARP_BYTES], uint8_t (*out)[WARP_BYTES])
{
    for (uint32_t t = 0; t < WARP_THREADS; t++)
        for (uint32_t i = 0; i < row->result.cells / WARP_THREADS; i++)
            memcpy(out[t] + 4 * i, in[MATRIX_ROWS * i + t / WARP_COLUMNS] + 4 * (t % WARP_COLUMNS),
                   4);
}

/* A number of a's row, b's column, by the words that the threads have. */
static const uint8_t *number(uint8_t (*part)[WARP_BYTES], uint32_t rows, uint32_t at, uint32_t k,
                             uint32_t bytes)
{
    uint32_t word = k * bytes / 4, halves = rows / MATRIX_ROWS;
    uint32_t t = WARP_COLUMNS * (at % MATRIX_ROWS) + word % WARP_COLUMNS;
    uint32_t w = at / MATRIX_ROWS + halves * (word / WARP_COLUMNS);

    return part[t] + 4 * w + k * bytes % 4;
}

static void multiply(const Intrin *row, uint8_t (*const *kid)[WARP_BYTES],
                     uint8_t (*out)[WARP_BYTES])
{
    const DType a = row->operand[0].dtype, b = row->operand[1].dtype, c = row->result.dtype;
    uint32_t    nk = (uint32_t)row->extent[2];

    for (uint32_t t = 0; t < WARP_THREADS; t++)
        for (uint32_t e = 0; e < row->result.cells / WARP_THREADS; e++) {
            uint32_t i = t / WARP_COLUMNS + MATRIX_ROWS * (e / 2),
                     j = 2 * (t % WARP_COLUMNS) + e % 2;
            double   real = 0;
            uint32_t whole = 0;

            for (uint32_t k = 0; k < nk; k++) {
                const uint8_t *x = number(kid[0], 16, i, k, dtype_bytes(a));
                const uint8_t *y = number(kid[1], 8, j, k, dtype_bytes(b));
                if (dtype_is_float(c))
                    real += dtype_get_f(a, x) * dtype_get_f(b, y);
                else
                    whole += (uint32_t)(dtype_get_i(a, x) * dtype_get_i(b, y));
            }
            if (dtype_is_float(c))
                dtype_put_f(c, out[t] + 4 * e, real + dtype_get_f(c, kid[2][t] + 4 * e));
            else
                dtype_put_i(c, out[t] + 4 * e,
                            (int32_t)(whole + (uint32_t)dtype_get_i(c, kid[2][t] + 4 * e)));
        }
}

void warp_compute(const Intrin *row, uint8_t (*const *kid)[WARP_BYTES], uint8_t (*out)[WARP_BYTES])
{
    if (row->sums)
        multiply(row, kid, out);
    else
        gather_rows(row, kid[0], out);
}

/* ---- nests that are such products ---------------------------------------------------------------- */

static bool uses(const Prim *load, const Atom *v)
{
    for (uint32_t d = 0; d < load->u.load.n; d++)
        if (idx_uses(load->u.load.index[d], v))
            return true;
    return false;
}

/* A shared number of that type, perhaps converted; NULL: it is none. */
static const Prim *shared_number(const Prim *p)
{
    if (p->kind == PRIM_CAST)
        p = p->kids[0];
    return p->kind == PRIM_LOAD && !p->u.load.mask && p->u.load.n &&
                   p->u.load.buffer->scope == SCOPE_SHARED
               ? p
               : NULL;
}

static bool find_factors(Ctx *c, const StoreData *store, const Prim **a, const Prim **b)
{
    const Prim *v = store->value, *held = prim_load(c, store->buffer, store->index), *product[2];

    if (v->kind == PRIM_FMA && v->kids[2] == held) {
        product[0] = v->kids[0], product[1] = v->kids[1];
    } else if (v->kind == PRIM_ADD && (v->kids[0] == held || v->kids[1] == held)) {
        v = v->kids[v->kids[0] == held];
        if (v->kind != PRIM_MUL)
            return false;
        product[0] = v->kids[0], product[1] = v->kids[1];
    } else {
        return false;
    }
    *a = shared_number(product[0]);
    *b = shared_number(product[1]);
    return *a && *b;
}

/* Rows depend on y and the first part's loop alone, columns on x and the second's. */
static bool is_side(const WarpMatch *m, const Prim *p, bool of_a)
{
    return !uses(p, of_a ? m->x : m->y) && !uses(p, m->part[of_a]->var);
}

static bool is_loop_of(const LoopData *l, LoopKind kind, int64_t rounds)
{
    int64_t extent;

    return l->kind == kind && idx_is_const(l->extent, &extent) && extent == rounds;
}

/* It begins with 0. */
static bool is_first(const LoopData *l)
{
    int64_t lo;

    return idx_is_const(l->lo, &lo) && lo == 0;
}

static bool is_thread_loop(const LoopData *l, int64_t rounds)
{
    int64_t extent;

    return l && idx_is_const(l->extent, &extent) && extent == rounds && is_first(l);
}

/* Loops around the parts count tiles: of rows, or of columns, and of the result. */
static bool find_tiles(WarpMatch *m, const StoreData *store, const LoopData *const *loops)
{
    for (uint32_t i = 0; i < m->ntiles; i++) {
        const LoopData *l = m->tile[i] = loops[i];
        int64_t         extent;
        bool            result = false;

        for (uint32_t d = 0; d < store->n; d++)
            result = result || idx_uses(store->index[d], l->var);
        m->of_a[i] = uses(m->a, l->var);
        if (l->kind != LOOP_SPATIAL || !idx_is_const(l->extent, &extent) ||
            (extent > 1 && (!result || m->of_a[i] == uses(m->b, l->var))))
            return false;
    }
    return true;
}

/* Steps of the sum lie side by side in each 16 bytes of an operand. */
static bool side_by_side(Ctx *c, const Prim *p, const LoopData *k)
{
    Arith          *A = c->arith;
    const LoadData *l = &p->u.load;
    int64_t         cells = WARP_BYTES / (int64_t)dtype_bytes(p->dtype), n = k->extent->lo, by;
    const Atom *run = atom_var(A, "run", 0, n / cells - 1), *at = atom_var(A, "at", 0, cells - 1);
    const Idx **stride = NEW_ARRAY(c->scratch, const Idx *, l->n + 1);
    const Idx  *first = idx_add(A, k->lo, idx_mulc(A, idx_atom(A, run), cells));
    const Idx  *apart = idx_const(A, 0);
    IdxSubst   *from = subst_new(A, c->scratch), *to = subst_new(A, c->scratch);

    subst_bind(from, k->var, first);
    subst_bind(to, k->var, idx_add(A, first, idx_atom(A, at)));
    buffer_strides(c, l->buffer, stride);
    for (uint32_t d = 0; d < l->n; d++) {
        if (!idx_is_const(stride[d], &by))
            return false;
        apart = idx_add(
            A, apart,
            idx_mulc(A, idx_sub(A, idx_subst(to, l->index[d]), idx_subst(from, l->index[d])), by));
    }
    return apart == idx_atom(A, at);
}

/* A thread's numbers of the result lie side by side, and are its own. */
static bool holds_result(Ctx *c, const WarpMatch *m, const StoreData *store)
{
    LoadData to = {.buffer = store->buffer, .n = store->n, .index = store->index};
    int64_t  row, column;

    for (uint32_t d = 0; d < store->n; d++)
        if (idx_uses(store->index[d], m->x) || idx_uses(store->index[d], m->y) ||
            idx_uses(store->index[d], m->part[2]->var))
            return false;
    return store->buffer->scope != SCOPE_SHARED && intrin_step(c, &to, m->part[0]->var, &row) &&
           intrin_step(c, &to, m->part[1]->var, &column) && row == 2 && column == 1;
}

/* Four warps have 16 rows each of an instruction, and all columns; one loop counts instructions,
 * another one columns, whose results lie side by side. */
static bool is_group(Ctx *c, const WarpMatch *m, const LoopData *z, const StoreData *store)
{
    LoadData to = {.buffer = store->buffer, .n = store->n, .index = store->index};
    int64_t  extent = 0, units = 1, tiles = 1, step;

    if (!z || !idx_is_const(z->extent, &extent) || extent % GROUP_WARPS || !is_first(z) ||
        uses(m->b, z->var))
        return false;
    for (uint32_t i = 0; i < m->ntiles; i++) {
        idx_is_const(m->tile[i]->extent, &extent);
        if (extent > 1 &&
            ((m->of_a[i] ? tiles : units) > 1 || !is_first(m->tile[i]) ||
             !intrin_step(c, &to, m->tile[i]->var, &step) || (!m->of_a[i] && step != UNIT_NUMBERS)))
            return false;
        tiles *= m->of_a[i] ? extent : 1;
        units *= m->of_a[i] ? 1 : extent;
    }
    return units <= GROUP_UNITS;
}

bool warp_match(Ctx *c, const char *text, const LoopData *const thread[3], uint32_t nloops,
                const LoopData *const *loops, const StoreData *store, WarpMatch *out)
{
    const LoopData *x = thread[0], *y = thread[1], *z = thread[2];
    const Intrin   *row = intrin_find(c, text, 0, NULL);

    if (!row || !row->warp || !row->sums || nloops < 3 || nloops > INTRIN_AXES || store->mask ||
        store->value->dtype.lanes != 1 || !dtype_eq(store->value->dtype, row->result.dtype) ||
        !is_thread_loop(x, WARP_COLUMNS) || !is_thread_loop(y, MATRIX_ROWS))
        return false;
    *out = (WarpMatch){
        .row = row, .ntiles = nloops - 3, .x = x->var, .y = y->var, .z = z ? z->var : NULL};
    for (uint32_t i = 0; i < 3; i++) {
        out->part[i] = loops[nloops - 3 + i];
        if (!is_loop_of(out->part[i], i < 2 ? LOOP_SPATIAL : LOOP_REDUCE,
                        i < 2 ? 2 : row->extent[2]))
            return false;
    }
    if (!find_factors(c, store, &out->a, &out->b))
        return false;
    if (!is_side(out, out->a, true) || !is_side(out, out->b, false)) {
        const Prim *b = out->a;
        out->a = out->b;
        out->b = b;
    }
    return is_side(out, out->a, true) && is_side(out, out->b, false) &&
           dtype_eq(out->a->dtype, row->operand[0].dtype) &&
           dtype_eq(out->b->dtype, row->operand[1].dtype) &&
           side_by_side(c, out->a, out->part[2]) && side_by_side(c, out->b, out->part[2]) &&
           find_tiles(out, store, loops) && holds_result(c, out, store) &&
           (!row->group || is_group(c, out, z, store));
}

/* ---- as instructions ----------------------------------------------------------------------------- */

typedef struct {
    Ctx             *c;
    const WarpMatch *m;
    int64_t          at[INTRIN_AXES]; /* of the tile loops */
    VEC(const Stmt *) out;
    bool bad;
} Write;

static int64_t rounds(const LoopData *l)
{
    return l->extent->lo;
}

static int64_t tiles_of(const WarpMatch *m, bool of_a)
{
    int64_t n = 1;

    for (uint32_t i = 0; i < m->ntiles; i++)
        n *= m->of_a[i] == of_a ? rounds(m->tile[i]) : 1;
    return n;
}

/* The number of the tile at hand among those of a side. */
static int64_t tile_at(const Write *w, bool of_a)
{
    int64_t n = 0;

    for (uint32_t i = 0; i < w->m->ntiles; i++)
        if (w->m->of_a[i] == of_a)
            n = n * rounds(w->m->tile[i]) + w->at[i];
    return n;
}

static IdxSubst *at_tile(const Write *w)
{
    Arith    *A = w->c->arith;
    IdxSubst *sub = subst_new(A, w->c->scratch);

    for (uint32_t i = 0; i < w->m->ntiles; i++)
        subst_bind(sub, w->m->tile[i]->var, idx_addc(A, w->m->tile[i]->lo, w->at[i]));
    return sub;
}

/* x / over % modulo * times */
static const Idx *part_of(Arith *A, const Idx *x, int64_t over, int64_t modulo, int64_t times)
{
    return idx_mulc(A, idx_modc(A, idx_divc(A, x, over), modulo), times);
}

/* Where this thread's row of 16 bytes begins, of those that ldmatrix hands out: row t % 8 of matrix
 * t / 8; the matrices follow rows first, then the sum.  NULL: not on a border of 16 bytes. */
static const Prim *row_of(Write *w, const Prim *p, bool of_a)
{
    Ctx             *c = w->c;
    Arith           *A = c->arith;
    const WarpMatch *m = w->m;
    const LoadData  *l = &p->u.load;
    IdxSubst        *sub = at_tile(w);
    const Idx       *x = idx_atom(A, m->x), *y = idx_atom(A, m->y), *lin = idx_const(A, 0);
    const Idx       *row = idx_add(A, x, part_of(A, y, 1, 2, WARP_COLUMNS)); /* t % 8 */
    const Idx      **at = NEW_ARRAY(c->arena, const Idx *, l->n + 1);
    const Idx      **stride = NEW_ARRAY(c->scratch, const Idx *, l->n + 1);
    int64_t          cells = WARP_BYTES / (int64_t)dtype_bytes(p->dtype), by;

    if (of_a) {
        subst_bind(sub, m->y, row);
        subst_bind(sub, m->part[0]->var, idx_add(A, m->part[0]->lo, part_of(A, y, 2, 2, 1)));
    } else {
        subst_bind(sub, m->x, part_of(A, row, 2, WARP_COLUMNS, 1));
        subst_bind(sub, m->part[1]->var, idx_add(A, m->part[1]->lo, part_of(A, x, 1, 2, 1)));
    }
    subst_bind(sub, m->part[2]->var,
               idx_add(A, m->part[2]->lo, part_of(A, y, of_a ? 4 : 2, 2, cells)));
    buffer_strides(c, l->buffer, stride);
    for (uint32_t d = 0; d < l->n; d++) {
        at[d] = idx_subst(sub, l->index[d]);
        if (!idx_is_const(stride[d], &by))
            return NULL;
        lin = idx_add(A, lin, idx_mulc(A, at[d], by));
    }
    if (!idx_is_const(idx_modc(A, lin, cells), &by) || by)
        return NULL;
    return prim_loadv(c, l->buffer, at, (uint16_t)cells, NULL);
}

static const Prim *words_at(Ctx *c, const Buffer *b, int64_t at, uint16_t n)
{
    const Idx **index = NEW_ARRAY(c->arena, const Idx *, 1);

    index[0] = idx_const(c->arith, at);
    return prim_loadv(c, b, index, n, NULL);
}

static void load_part(Write *w, const Buffer *to, bool of_a)
{
    Ctx        *c = w->c;
    uint16_t    n = of_a ? PARTS_A : PARTS_B;
    const Prim *from = row_of(w, of_a ? w->m->a : w->m->b, of_a);
    const Idx **index = NEW_ARRAY(c->arena, const Idx *, 1);

    if (!from) {
        w->bad = true;
        return;
    }
    index[0] = idx_const(c->arith, n * tile_at(w, of_a));
    vec_push(
        c->scratch, &w->out,
        stmt_storev(c, to, index,
                    prim_intrin(c, intrin_of(c, of_a ? INTRIN_LDMATRIX4 : INTRIN_LDMATRIX2), &from),
                    NULL));
}

static void multiply_tile(Write *w, const Buffer *a, const Buffer *b, const StoreData *store)
{
    Ctx        *c = w->c;
    IdxSubst   *sub = at_tile(w);
    const Idx **at = NEW_ARRAY(c->arena, const Idx *, store->n + 1);

    subst_bind(sub, w->m->part[0]->var, w->m->part[0]->lo);
    subst_bind(sub, w->m->part[1]->var, w->m->part[1]->lo);
    for (uint32_t d = 0; d < store->n; d++)
        at[d] = idx_subst(sub, store->index[d]);
    const Prim *kid[3] = {words_at(c, a, PARTS_A * tile_at(w, true), PARTS_A),
                          words_at(c, b, PARTS_B * tile_at(w, false), PARTS_B),
                          prim_loadv(c, store->buffer, at, 4, NULL)};
    vec_push(c->scratch, &w->out,
             stmt_storev(c, store->buffer, at, prim_intrin(c, w->m->row, kid), NULL));
}

/* The next tile of a side, or of both (-1); false: that was the last one. */
static bool next_tile(Write *w, int side)
{
    for (uint32_t i = w->m->ntiles; i-- > 0;) {
        if (side >= 0 && w->m->of_a[i] != (side == 1))
            continue;
        if (++w->at[i] < rounds(w->m->tile[i]))
            return true;
        w->at[i] = 0;
    }
    return false;
}

static const Buffer *part_buffer(Ctx *c, const Prim *load, int64_t words)
{
    const Idx *n = idx_const(c->arith, words);

    return buffer_new(c, intern_printf(c->strings, "%s.part", load->u.load.buffer->name), DT_U32,
                      SCOPE_LOCAL, 1, &n);
}

const Stmt *warp_stmt(Ctx *c, const WarpMatch *m, const StoreData *store)
{
    if (m->row->group)
        return group_stmt(c, m, store);
    Write         w = {.c = c, .m = m};
    const Buffer *a = part_buffer(c, m->a, PARTS_A * tiles_of(m, true));
    const Buffer *b = part_buffer(c, m->b, PARTS_B * tiles_of(m, false));

    do
        load_part(&w, a, true);
    while (next_tile(&w, 1));
    do
        load_part(&w, b, false);
    while (next_tile(&w, 0));
    do
        multiply_tile(&w, a, b, store);
    while (next_tile(&w, -1));
    return w.bad ? NULL : stmt_alloc(c, a, stmt_alloc(c, b, stmt_seq(c, w.out.n, w.out.at)));
}
