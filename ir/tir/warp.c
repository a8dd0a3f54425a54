/* Nests that are products by instructions of a warp, and these instructions.
 *
 *     for mi < 2 { for nj < 4 { for i < 2 { for j < 2 { for k < 16 reduce {
 *       %c[mi, nj, i, j] += f32(%a.shared[mi, i, %y, k]) * f32(%b.shared[nj, %x, j, k])
 *       ->  %a.part[4*mi : 4] = ldmatrix4(%a.shared[.. : 8])      %b.part[2*nj : 2] = ldmatrix2(..)
 *           %c[.. : 4] = mma_f16(%a.part[4*mi : 4], %b.part[2*nj : 2], %c[.. : 4])
 *
 * Thread (x, y) sums the cells that are its own part of the result (fragment.c), so such a nest
 * computes what the instruction does: the data of a depend on y alone, those of b on x alone, and
 * all lie in shared memory.  What a thread passes to the instruction it does not sum itself, which
 * is why the loads are of other cells than the nest's.
 *
 * Operands come by ldmatrix where the layout has words: thread t = 4 * y + x gives the address of
 * row t % 8 of the matrix t / 8, of 8 rows of four words, and gets word x of row y of each.  Else a
 * thread loads its own pieces:
 *
 *     %a.part[4*mi : 4] = %a.shared[16*mi + %x, 4*%y : 4]
 */
#include "ir/tir/intrin.h"

bool is_warp_store(const Stmt *s)
{
    return s->kind == STMT_STORE && s->u.store.value->kind == PRIM_INTRIN &&
           s->u.store.value->u.intrin->warp;
}

bool is_matrix_store(const StoreData *d)
{
    return d->buffer->scope == SCOPE_FRAG ||
           (d->value->kind == PRIM_LOAD && d->value->u.load.buffer->scope == SCOPE_FRAG);
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
static bool is_side(const WarpMatch *m, const Prim *p, Matrix of)
{
    const LoopData *other = m->part[of == MATRIX_A];

    return !uses(p, of == MATRIX_A ? m->x : m->y) && !(other && uses(p, other->var));
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
        m->side[i] = uses(m->a, l->var) ? MATRIX_A : MATRIX_B;
        if (l->kind != LOOP_SPATIAL || !idx_is_const(l->extent, &extent) ||
            (extent > 1 && (!result || (m->side[i] == MATRIX_A) == uses(m->b, l->var))))
            return false;
    }
    return true;
}

/* Cells of an operand that a thread loads at once. */
static int64_t loaded_cells(const Intrin *row, Matrix m)
{
    uint32_t bytes = row->warp->ldmatrix ? WARP_BYTES : warp_piece_bytes(row, m);

    return bytes / dtype_bytes(row->operand[m].dtype);
}

/* Steps of the sum lie side by side in each of so many cells of an operand. */
static bool side_by_side(Ctx *c, const Prim *p, const LoopData *k, int64_t cells)
{
    Arith          *A = c->arith;
    const LoadData *l = &p->u.load;
    int64_t         n = k->extent->lo, by;
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

/* So far apart are a thread's numbers of a row, or of a column. */
static bool is_own_step(const WarpLayout *l, uint32_t coordinate, int64_t step)
{
    for (uint32_t i = 0; i < 2; i++)
        if (l->of[MATRIX_C][coordinate][i].from == OWN)
            return step == l->of[MATRIX_C][coordinate][i].over ||
                   l->of[MATRIX_C][coordinate][i].size == 1;
    return true;
}

/* A thread's numbers of the result lie side by side, and are its own. */
static bool holds_result(Ctx *c, const WarpMatch *m, const StoreData *store)
{
    LoadData to = {.buffer = store->buffer, .n = store->n, .index = store->index};
    int64_t  step;

    for (uint32_t d = 0; d < store->n; d++)
        if (idx_uses(store->index[d], m->x) || idx_uses(store->index[d], m->y) ||
            idx_uses(store->index[d], m->part[2]->var))
            return false;
    for (uint32_t i = 0; i < 2; i++)
        if (m->part[i] &&
            (!intrin_step(c, &to, m->part[i]->var, &step) || !is_own_step(m->row->warp, i, step)))
            return false;
    return m->row->warp->opaque ? store->buffer->scope == SCOPE_FRAG
                                : store->buffer->scope != SCOPE_SHARED;
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
        const bool rows = m->side[i] == MATRIX_A;
        idx_is_const(m->tile[i]->extent, &extent);
        if (extent > 1 &&
            ((rows ? tiles : units) > 1 || !is_first(m->tile[i]) ||
             !intrin_step(c, &to, m->tile[i]->var, &step) || (!rows && step != UNIT_NUMBERS)))
            return false;
        tiles *= rows ? extent : 1;
        units *= rows ? 1 : extent;
    }
    return units <= GROUP_UNITS;
}

/* The innermost loop that is left as one of a thread's parts; of one round there may be none. */
static bool find_part(WarpMatch *m, const LoopData *const *loops, uint32_t i)
{
    const LoopKind kind = i < 2 ? LOOP_SPATIAL : LOOP_REDUCE;
    const int64_t  rounds = i < 2 ? warp_own(m->row->warp, MATRIX_C, i) : m->row->extent[2];

    if (m->ntiles && is_loop_of(loops[m->ntiles - 1], kind, rounds))
        m->part[i] = loops[--m->ntiles];
    return m->part[i] || rounds == 1;
}

bool warp_match(Ctx *c, const char *text, const LoopData *const thread[3], uint32_t nloops,
                const LoopData *const *loops, const StoreData *store, WarpMatch *out)
{
    const LoopData *x = thread[0], *y = thread[1], *z = thread[2];
    const Intrin   *row = intrin_find(c, text, 0, NULL);

    if (!row || !row->warp || !row->sums || nloops > INTRIN_AXES || store->mask ||
        store->value->dtype.lanes != 1 || !dtype_eq(store->value->dtype, row->result.dtype) ||
        !is_thread_loop(x, row->warp->x) || !is_thread_loop(y, row->warp->y))
        return false;
    *out =
        (WarpMatch){.row = row, .ntiles = nloops, .x = x->var, .y = y->var, .z = z ? z->var : NULL};
    for (uint32_t i = 3; i-- > 0;)
        if (!find_part(out, loops, i))
            return false;
    if (!find_factors(c, store, &out->a, &out->b))
        return false;
    if (!is_side(out, out->a, MATRIX_A) || !is_side(out, out->b, MATRIX_B)) {
        const Prim *b = out->a;
        out->a = out->b;
        out->b = b;
    }
    return is_side(out, out->a, MATRIX_A) && is_side(out, out->b, MATRIX_B) &&
           dtype_eq(out->a->dtype, row->operand[0].dtype) &&
           dtype_eq(out->b->dtype, row->operand[1].dtype) &&
           side_by_side(c, out->a, out->part[2], loaded_cells(row, MATRIX_A)) &&
           side_by_side(c, out->b, out->part[2], loaded_cells(row, MATRIX_B)) &&
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

static int64_t tiles_of(const WarpMatch *m, Matrix of)
{
    int64_t n = 1;

    for (uint32_t i = 0; i < m->ntiles; i++)
        n *= m->side[i] == of ? rounds(m->tile[i]) : 1;
    return n;
}

/* The number of the tile at hand among those of a side. */
static int64_t tile_at(const Write *w, Matrix of)
{
    int64_t n = 0;

    for (uint32_t i = 0; i < w->m->ntiles; i++)
        if (w->m->side[i] == of)
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

static const Prim *operand(const WarpMatch *m, Matrix of)
{
    return of == MATRIX_A ? m->a : m->b;
}

/* A coordinate of this thread's piece. */
static const Idx *coordinate(const Write *w, Matrix of, uint32_t which, uint32_t piece)
{
    Arith           *A = w->c->arith;
    const WarpDigit *digit = w->m->row->warp->of[of][which];
    const Idx       *by[] = {
        [BY_X] = idx_atom(A, w->m->x), [BY_Y] = idx_atom(A, w->m->y), [OWN] = idx_const(A, piece)};
    const Idx *at = idx_const(A, 0);

    for (uint32_t i = 0; i < 2; i++)
        at = idx_add(A, idx_mulc(A, at, digit[i].size),
                     part_of(A, by[digit[i].from], digit[i].over, digit[i].size, 1));
    return at;
}

/* In the nest, row (of a) or column (of b) `at` of an instruction is that of some thread, and in
 * its part. */
static void bind_line(const Write *w, IdxSubst *sub, Matrix of, const Idx *at)
{
    Arith           *A = w->c->arith;
    const WarpMatch *m = w->m;
    const WarpDigit *digit = m->row->warp->of[MATRIX_C][of];
    const LoopData  *own = m->part[of];

    for (uint32_t i = 0, weight = digit[1].size; i < 2; i++, weight = 1) {
        const Idx *v = part_of(A, at, weight, digit[i].size, 1);
        if (digit[i].from == OWN && own)
            subst_bind(sub, own->var, idx_add(A, own->lo, v));
        else if (digit[i].from != OWN)
            subst_bind(sub, digit[i].from == BY_X ? m->x : m->y, v);
    }
}

/* The cells that it loads from there on; NULL: they do not begin on their border. */
static const Prim *cells_at(Write *w, const Prim *p, IdxSubst *sub, int64_t cells)
{
    Ctx            *c = w->c;
    Arith          *A = c->arith;
    const LoadData *l = &p->u.load;
    const Idx     **at = NEW_ARRAY(c->arena, const Idx *, l->n + 1);
    const Idx     **stride = NEW_ARRAY(c->scratch, const Idx *, l->n + 1);
    const Idx      *lin = idx_const(A, 0);
    int64_t         by;

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

/* Where this thread's row of 16 bytes begins, of those that ldmatrix hands out: row t % 8 of matrix
 * t / 8; the matrices follow rows first, then the sum. */
static const Prim *row_of(Write *w, Matrix of)
{
    enum { ROWS = 8 };
    Arith           *A = w->c->arith;
    const WarpMatch *m = w->m;
    IdxSubst        *sub = at_tile(w);
    const Idx       *x = idx_atom(A, m->x), *y = idx_atom(A, m->y);
    const Idx       *t = idx_add(A, x, part_of(A, y, 1, 2, m->row->warp->x)); /* % 8 */
    int64_t          cells = loaded_cells(m->row, of);
    const Idx       *half = of == MATRIX_A ? part_of(A, y, 2, 2, ROWS) : idx_const(A, 0);

    bind_line(w, sub, of, idx_add(A, half, t));
    subst_bind(sub, m->part[2]->var,
               idx_add(A, m->part[2]->lo, part_of(A, y, of == MATRIX_A ? 4 : 2, 2, cells)));
    return cells_at(w, operand(m, of), sub, cells);
}

/* This thread's piece of an operand. */
static const Prim *piece_of(Write *w, Matrix of, uint32_t piece)
{
    Arith           *A = w->c->arith;
    const WarpMatch *m = w->m;
    IdxSubst        *sub = at_tile(w);
    int64_t          cells = loaded_cells(m->row, of);

    bind_line(w, sub, of, coordinate(w, of, 0, piece));
    subst_bind(sub, m->part[2]->var,
               idx_add(A, m->part[2]->lo, idx_mulc(A, coordinate(w, of, 1, piece), cells)));
    return cells_at(w, operand(m, of), sub, cells);
}

/* Numbers of a thread's part of an operand, as the instruction takes it. */
static uint16_t part_numbers(const Intrin *row, Matrix of)
{
    uint32_t bytes = row->warp->ldmatrix ? 4 : dtype_bytes(row->operand[of].dtype);

    return (uint16_t)(warp_pieces(row->warp, of) * warp_piece_bytes(row, of) / bytes);
}

static const Prim *words_at(Ctx *c, const Buffer *b, int64_t at, uint16_t n)
{
    const Idx **index = NEW_ARRAY(c->arena, const Idx *, 1);

    index[0] = idx_const(c->arith, at);
    return prim_loadv(c, b, index, n, NULL);
}

static void store_part(Write *w, const Buffer *to, int64_t at, const Prim *value)
{
    const Idx **index = NEW_ARRAY(w->c->arena, const Idx *, 1);

    w->bad = w->bad || !value;
    if (w->bad)
        return;
    index[0] = idx_const(w->c->arith, at);
    vec_push(w->c->scratch, &w->out, stmt_storev(w->c, to, index, value, NULL));
}

static void load_part(Write *w, const Buffer *to, Matrix of)
{
    Ctx           *c = w->c;
    const Intrin  *row = w->m->row;
    const int64_t  first = part_numbers(row, of) * tile_at(w, of);
    const uint32_t pieces = warp_pieces(row->warp, of);

    if (row->warp->ldmatrix) {
        const Prim *from = row_of(w, of);
        store_part(
            w, to, first,
            from ? prim_intrin(
                       c, intrin_of(c, of == MATRIX_A ? INTRIN_LDMATRIX4 : INTRIN_LDMATRIX2), &from)
                 : NULL);
        return;
    }
    for (uint32_t i = 0; i < pieces; i++)
        store_part(w, to, first + i * loaded_cells(row, of), piece_of(w, of, i));
}

static void multiply_tile(Write *w, const Buffer *a, const Buffer *b, const StoreData *store)
{
    Ctx        *c = w->c;
    IdxSubst   *sub = at_tile(w);
    const Idx **at = NEW_ARRAY(c->arena, const Idx *, store->n + 1);

    for (uint32_t i = 0; i < 2; i++)
        if (w->m->part[i])
            subst_bind(sub, w->m->part[i]->var, w->m->part[i]->lo);
    for (uint32_t d = 0; d < store->n; d++)
        at[d] = idx_subst(sub, store->index[d]);
    const Intrin  *row = w->m->row;
    const uint16_t na = part_numbers(row, MATRIX_A), nb = part_numbers(row, MATRIX_B);
    const Prim    *kid[3] = {
        words_at(c, a, na * tile_at(w, MATRIX_A), na),
        words_at(c, b, nb * tile_at(w, MATRIX_B), nb),
        prim_loadv(c, store->buffer, at, (uint16_t)warp_pieces(row->warp, MATRIX_C), NULL)};
    vec_push(c->scratch, &w->out,
             stmt_storev(c, store->buffer, at, prim_intrin(c, row, kid), NULL));
}

/* The next tile of a side, or of the result, of both; false: that was the last one. */
static bool next_tile(Write *w, Matrix side)
{
    for (uint32_t i = w->m->ntiles; i-- > 0;) {
        if (side != MATRIX_C && w->m->side[i] != side)
            continue;
        if (++w->at[i] < rounds(w->m->tile[i]))
            return true;
        w->at[i] = 0;
    }
    return false;
}

static const Buffer *part_buffer(const Write *w, Matrix of)
{
    Ctx          *c = w->c;
    const Buffer *from = operand(w->m, of)->u.load.buffer;
    const Idx    *n = idx_const(c->arith, part_numbers(w->m->row, of) * tiles_of(w->m, of));

    return buffer_new(c, intern_printf(c->strings, "%s.part", from->name),
                      w->m->row->warp->ldmatrix ? DT_U32 : from->dtype,
                      w->m->row->warp->opaque ? SCOPE_FRAG : SCOPE_LOCAL, 1, &n);
}

const Stmt *warp_stmt(Ctx *c, const WarpMatch *m, const StoreData *store)
{
    if (m->row->group)
        return group_stmt(c, m, store);
    Write         w = {.c = c, .m = m};
    const Buffer *a = part_buffer(&w, MATRIX_A);
    const Buffer *b = part_buffer(&w, MATRIX_B);

    do
        load_part(&w, a, MATRIX_A);
    while (next_tile(&w, MATRIX_A));
    do
        load_part(&w, b, MATRIX_B);
    while (next_tile(&w, MATRIX_B));
    do
        multiply_tile(&w, a, b, store);
    while (next_tile(&w, MATRIX_C));
    return w.bad ? NULL : stmt_alloc(c, a, stmt_alloc(c, b, stmt_seq(c, w.out.n, w.out.at)));
}
