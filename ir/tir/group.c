/* Instructions of four warps (wgmma): a nest that is such a product, as a store for each.
 *
 *     for nj < 16 { for i < 2 { for j < 2 { for k < 64 reduce {
 *       %c[nj, i, j] += f32(%a.shared[%z, i, %y, k]) * f32(%b.shared[nj, %x, j, k])
 *       ->  %c[0 : 64] = wgmma_f16(%a.shared[%z/4*4096 : 8], %b.shared[0 : 8], %c[0 : 64])
 *
 * What the nest is like is warp.c's to see: of the 128 threads 32*z + 4*y + x, with z those of four
 * warps, each sums of a unit of 8 columns what it does of mma.sync's tile, of rows 16*z and later.
 * An instruction has one such tile of rows and up to 32 units.
 *
 * Both sides lie in shared memory as the unit that multiplies reads them, and not the threads: rows
 * of 128 bytes one after the other, eight of them on a border of 1024 bytes, of which row r has its
 * piece p of 16 bytes in place p ^ r % 8 (PTX: a K-major matrix with swizzling of 128 bytes; the
 * mark `exchanged`).  The kids are where either side begins, and all that the instruction is told:
 * the cells follow from that, so they are compared here with those of the nest, one by one. */
#include "ir/tir/intrin.h"

int64_t group_cell(DType t, int64_t at)
{
    const int64_t piece = WARP_BYTES / (int64_t)dtype_bytes(t), pieces = GROUP_LINE / WARP_BYTES;
    const int64_t p = at / piece, line = p / pieces;

    return (line * pieces + ((p % pieces) ^ (line % pieces))) * piece + at % piece;
}

typedef struct {
    Ctx             *c;
    const WarpMatch *m;
    const LoadData  *load;
    Matrix           of;
    int64_t          tile; /* of 64 rows */
} Side;

/* The loop counts tiles of that side; others have one round. */
static bool counts(const WarpMatch *m, uint32_t i, Matrix side)
{
    return m->tile[i]->extent->lo > 1 && m->side[i] == side;
}

/* Where the cell of row or column `at` lies, `k` steps on. */
static const Idx *index_of(const Side *s, int64_t at, int64_t k)
{
    const WarpMatch *m = s->m;
    Arith           *A = s->c->arith;
    IdxSubst        *sub = subst_new(A, s->c->scratch);
    const Idx       *first = idx_mulc(A, idx_divc(A, idx_atom(A, m->z), GROUP_WARPS), GROUP_WARPS);

    for (uint32_t i = 0; i < m->ntiles; i++)
        subst_bind(sub, m->tile[i]->var,
                   idx_addc(A, m->tile[i]->lo,
                            !counts(m, i, s->of) ? 0
                            : s->of == MATRIX_A  ? s->tile
                                                 : at / 8));
    subst_bind(sub, m->part[2]->var, idx_addc(A, m->part[2]->lo, k));
    if (s->of == MATRIX_A) {
        subst_bind(sub, m->z, idx_addc(A, first, at / 16));
        subst_bind(sub, m->part[0]->var, idx_addc(A, m->part[0]->lo, at / 8 % 2));
        subst_bind(sub, m->y, idx_const(A, at % 8));
    } else {
        subst_bind(sub, m->x, idx_const(A, at % 8 / 2));
        subst_bind(sub, m->part[1]->var, idx_addc(A, m->part[1]->lo, at % 2));
    }
    return idx_subst(sub, s->load->index[0]);
}

/* All cells lie where the instruction looks for them. */
static bool lies_so(const Side *s, const Idx *first, int64_t rows)
{
    Arith        *A = s->c->arith;
    const Buffer *b = s->load->buffer;
    const int64_t bytes = dtype_bytes(b->dtype), line = GROUP_LINE / bytes;
    int64_t       at;

    if (b->align < GROUP_BORDER || !idx_is_const(idx_modc(A, first, GROUP_BORDER / bytes), &at) ||
        at)
        return false;
    for (int64_t r = 0; r < rows; r++)
        for (int64_t k = 0; k < line; k += WARP_BYTES / bytes)
            if (!idx_is_const(idx_sub(A, index_of(s, r, k), first), &at) ||
                at != group_cell(b->dtype, r * line + k))
                return false;
    return true;
}

static const Prim *side_of(Ctx *c, const WarpMatch *m, Matrix of, int64_t tile, int64_t rows)
{
    Side s = {c, m, &(of == MATRIX_A ? m->a : m->b)->u.load, of, tile};

    if (s.load->n != 1)
        return NULL;
    const Idx *first = index_of(&s, 0, 0);
    return lies_so(&s, first, rows)
               ? prim_loadv(c, s.load->buffer, DUP_ARRAY(c->arena, &first, 1),
                            (uint16_t)(WARP_BYTES / dtype_bytes(s.load->buffer->dtype)), NULL)
               : NULL;
}

/* The instruction of these 64 rows. */
static const Stmt *tile_stmt(Ctx *c, const WarpMatch *m, const StoreData *store, int64_t tile,
                             int64_t units)
{
    IdxSubst   *sub = subst_new(c->arith, c->scratch);
    const Idx **at = NEW_ARRAY(c->arena, const Idx *, store->n + 1);

    for (uint32_t i = 0; i < m->ntiles; i++)
        subst_bind(sub, m->tile[i]->var,
                   idx_addc(c->arith, m->tile[i]->lo, counts(m, i, MATRIX_A) ? tile : 0));
    for (uint32_t i = 0; i < 2; i++)
        subst_bind(sub, m->part[i]->var, m->part[i]->lo);
    for (uint32_t d = 0; d < store->n; d++)
        at[d] = idx_subst(sub, store->index[d]);
    const Prim *kid[3] = {side_of(c, m, MATRIX_A, tile, GROUP_ROWS),
                          side_of(c, m, MATRIX_B, 0, 8 * units),
                          prim_loadv(c, store->buffer, at, (uint16_t)(UNIT_NUMBERS * units), NULL)};
    return kid[0] && kid[1] ? stmt_storev(c, store->buffer, at, prim_intrin(c, m->row, kid), NULL)
                            : NULL;
}

const Stmt *group_stmt(Ctx *c, const WarpMatch *m, const StoreData *store)
{
    int64_t tiles = 1, units = 1;
    VEC(const Stmt *) all = {0};

    for (uint32_t i = 0; i < m->ntiles; i++)
        *(m->side[i] == MATRIX_A ? &tiles : &units) *= m->tile[i]->extent->lo;
    for (int64_t tile = 0; tile < tiles; tile++) {
        const Stmt *s = tile_stmt(c, m, store, tile, units);
        if (!s)
            return NULL;
        vec_push(c->scratch, &all, s);
    }
    return stmt_seq(c, all.n, all.at);
}
