/* A vector of scalars that lie near each other in memory, as at a stride of two: a few contiguous
 * loads between the first and the last of them, and shuffles, instead of a load for each.
 *
 *     [x[0], x[2], x[4], x[6]]  ->  shuffle(load x[0..3], load x[3..6]; 0 2 5 7)
 *
 * Nothing outside the first and the last cell is read: the last window ends at the last cell. */
#include "backends/llvm/llvm.h"

enum { MAX_NEAR = 64, MAX_WINDOWS = 4 };

typedef struct {
    const LoadData *load;
    uint32_t        lanes, windows;
    int64_t         least, span;
    int64_t         at[MAX_NEAR]; /* cells behind the least */
} Near;

/* The cells of p as distances; false unless its kids are plain loads close together. */
static bool near_loads(Gen *g, const Prim *p, Near *n)
{
    const LoadData *first = &p->kids[0]->u.load;
    int64_t         most = 0;

    if (g->mask || p->nkids < 4 || p->nkids > MAX_NEAR || dtype_is_bool(p->dtype))
        return false;
    *n = (Near){.load = first, .lanes = p->nkids};
    for (uint32_t i = 0; i < p->nkids; i++) {
        const Prim     *k = p->kids[i];
        const LoadData *l = &k->u.load;

        if (k->kind != PRIM_LOAD || k->dtype.lanes > 1 || l->mask || l->n != 1 ||
            l->buffer != first->buffer || l->buffer->scope == SCOPE_REG ||
            !idx_is_const(idx_sub(g->c->arith, l->index[0], first->index[0]), &n->at[i]))
            return false;
        n->least = n->at[i] < n->least ? n->at[i] : n->least;
        most = n->at[i] > most ? n->at[i] : most;
    }
    n->span = most - n->least + 1;
    n->windows = (uint32_t)((n->span + n->lanes - 1) / n->lanes);
    for (uint32_t i = 0; i < n->lanes; i++)
        n->at[i] -= n->least;
    return n->span >= n->lanes && n->windows <= MAX_WINDOWS;
}

static int64_t window_start(const Near *n, uint32_t w)
{
    return w + 1 < n->windows ? (int64_t)w * n->lanes : n->span - n->lanes;
}

/* Lanes of the result from windows w and w+1; those from elsewhere are left open. */
static LLVMValueRef from_pair(Gen *g, const Near *n, const LLVMValueRef *load, uint32_t w)
{
    LLVMValueRef pick[MAX_NEAR];
    bool         two = w + 1 < n->windows;

    for (uint32_t i = 0; i < n->lanes; i++) {
        uint32_t from = (uint32_t)(n->at[i] / n->lanes);
        if (from == w || (two && from == w + 1))
            pick[i] = gen_i32(g, (uint32_t)(n->at[i] - window_start(n, from)) +
                                     (from == w ? 0 : n->lanes));
        else
            pick[i] = LLVMGetPoison(g->i32);
    }
    return LLVMBuildShuffleVector(g->b, load[w],
                                  two ? load[w + 1] : LLVMGetPoison(LLVMTypeOf(load[w])),
                                  LLVMConstVector(pick, n->lanes), "");
}

LLVMValueRef gen_near(Gen *g, const Prim *p)
{
    LLVMValueRef load[MAX_WINDOWS], pick[MAX_NEAR], low;
    Near         n;

    if (!near_loads(g, p, &n))
        return NULL;
    for (uint32_t w = 0; w < n.windows; w++) {
        const Idx *at = idx_addc(g->c->arith, n.load->index[0], n.least + window_start(&n, w));
        LoadData   l = {.buffer = n.load->buffer, .n = 1, .index = &at};

        load[w] = gen_load(g, &l, p->dtype);
    }
    low = from_pair(g, &n, load, 0);
    if (n.windows <= 2)
        return low;
    for (uint32_t i = 0; i < n.lanes; i++)
        pick[i] = gen_i32(g, i + (n.at[i] / n.lanes >= 2 ? n.lanes : 0));
    return LLVMBuildShuffleVector(g->b, low, from_pair(g, &n, load, 2),
                                  LLVMConstVector(pick, n.lanes), "");
}
