/* Vectors of which a part is loaded and stored: under a mask, or an odd number of lanes.
 *
 *   load f32x7 %x     ->  masked load f32x8 %x, 7 lanes on       with AVX-512
 *
 * Without masks LLVM makes loads of 4, 2 and 1 lanes of it.
 *
 *   alloc %exp: f32[375] @stack         room for 384
 *   store f32x7 %exp[368]  ->  store f32x16, 9 lanes of anything
 *
 * A load that wants more, or fewer, than one store before it left waits until that is in the cache.
 * So the end of a function's own buffer is stored and loaded as whole vectors. */
#include "backends/llvm/llvm.h"

LLVMValueRef gen_masked_load(Gen *g, LLVMValueRef p, LLVMTypeRef t, uint32_t align,
                             LLVMValueRef mask)
{
    LLVMTypeRef  over[2] = {t, g->ptr};
    LLVMValueRef args[4] = {p, gen_i32(g, align), mask, LLVMConstNull(t)};

    return gen_intrinsic_of(g, "llvm.masked.load", 2, over, 4, args);
}

void gen_masked_store(Gen *g, LLVMValueRef v, LLVMValueRef p, uint32_t align, LLVMValueRef mask)
{
    LLVMTypeRef  over[2] = {LLVMTypeOf(v), g->ptr};
    LLVMValueRef args[4] = {v, p, gen_i32(g, align), mask};

    gen_intrinsic_of(g, "llvm.masked.store", 2, over, 4, args);
}

/* Lanes of the vector that an odd number of lanes is a part of, where it is loaded and stored as a
 * whole under a mask, not in two or three pieces; 0: not here. */
static uint32_t whole_lanes(const Gen *g, DType t)
{
    uint32_t n = 1;

    while (n < t.lanes)
        n *= 2;
    /* What spreads operands from memory has masks. */
    return t.lanes > 2 && n > t.lanes && t.bits >= 32 && g->t->fma_mem_splat &&
                   n * dtype_bytes(dtype_lanes(t, 1)) <= g->t->vector_bytes
               ? n
               : 0;
}

/* v with n lanes, of which those that it had are the first: cut, or any lanes behind. */
static LLVMValueRef with_lanes(Gen *g, LLVMValueRef v, uint32_t n)
{
    uint32_t      has = LLVMGetVectorSize(LLVMTypeOf(v));
    LLVMValueRef *pick = NEW_ARRAY(g->a, LLVMValueRef, n);

    for (uint32_t i = 0; i < n; i++)
        pick[i] = i < has ? gen_i32(g, i) : LLVMGetPoison(g->i32);
    return LLVMBuildShuffleVector(g->b, v, LLVMGetPoison(LLVMTypeOf(v)), LLVMConstVector(pick, n),
                                  "");
}

static LLVMValueRef first_lanes(Gen *g, uint32_t on, uint32_t n)
{
    LLVMTypeRef   bit = LLVMInt1TypeInContext(g->lc);
    LLVMValueRef *lane = NEW_ARRAY(g->a, LLVMValueRef, n);

    for (uint32_t i = 0; i < n; i++)
        lane[i] = LLVMConstInt(bit, i < on, false);
    return LLVMConstVector(lane, n);
}

/* Lanes of the vectors that such a buffer has room for; 0: no buffer of this function, or whole
 * vectors. */
static uint32_t room_lanes(const Gen *g, const Buffer *b, int64_t *cells)
{
    uint32_t lanes = g->t->vector_bytes / 4;

    return !gen_is_kernel(g) && b->scope == SCOPE_STACK && !b->alias && !b->halo && !b->record &&
                   b->ndim == 1 && b->dtype.bits == 32 && b->dtype.lanes == 1 && lanes > 1 &&
                   idx_is_const(b->extent[0], cells) && *cells > lanes && *cells % lanes
               ? lanes
               : 0;
}

int64_t gen_room(const Gen *g, const Buffer *b, int64_t cells)
{
    int64_t  n;
    uint32_t lanes = room_lanes(g, b, &n);

    return lanes && n == cells ? (n + lanes - 1) / lanes * lanes : cells;
}

/* Lanes of the vector with which the buffer ends, if that is what is accessed: 0: it is not. */
static uint32_t end_lanes(Gen *g, const Buffer *b, uint32_t n, const Idx *const *index, DType t,
                          bool masked)
{
    int64_t  cells, at;
    uint32_t lanes = room_lanes(g, b, &cells);

    if (!lanes || g->mask || n != 1 || !idx_is_const(index[0], &at) || at != cells - cells % lanes)
        return 0;
    LLVMValueRef p = map_get(g->bufs, b->id);
    return p && LLVMIsAAllocaInst(p) && t.lanes == (masked ? lanes : cells % lanes) ? lanes : 0;
}

LLVMValueRef gen_end_load(Gen *g, const LoadData *l, LLVMValueRef p, DType t, uint32_t align,
                          LLVMValueRef mask)
{
    uint32_t n = end_lanes(g, l->buffer, l->n, l->index, t, mask != NULL);

    if (!n)
        return NULL;
    LLVMTypeRef  whole = gen_mem_type(g, dtype_lanes(t, (uint16_t)n));
    LLVMValueRef v = LLVMBuildLoad2(g->b, whole, p, "");

    LLVMSetAlignment(v, align);
    if (mask)
        return LLVMBuildSelect(g->b, mask, v, LLVMConstNull(whole), "");
    return t.lanes > 1 ? with_lanes(g, v, t.lanes)
                       : LLVMBuildExtractElement(g->b, v, gen_i32(g, 0), "");
}

bool gen_end_store(Gen *g, const StoreData *s, LLVMValueRef v, LLVMValueRef p, uint32_t align)
{
    uint32_t n = end_lanes(g, s->buffer, s->n, s->index, s->value->dtype, false);

    if (!n)
        return false;
    if (s->value->dtype.lanes > 1)
        v = with_lanes(g, v, n);
    else
        v = LLVMBuildInsertElement(g->b, LLVMGetPoison(LLVMVectorType(LLVMTypeOf(v), n)), v,
                                   gen_i32(g, 0), "");
    LLVMSetAlignment(LLVMBuildStore(g->b, v, p), align);
    return true;
}

LLVMValueRef gen_odd_load(Gen *g, LLVMValueRef p, DType t, uint32_t align)
{
    uint32_t n = whole_lanes(g, t);

    if (!n)
        return NULL;
    LLVMTypeRef whole = gen_mem_type(g, dtype_lanes(t, (uint16_t)n));

    return with_lanes(g, gen_masked_load(g, p, whole, align, first_lanes(g, t.lanes, n)), t.lanes);
}

bool gen_odd_store(Gen *g, LLVMValueRef v, LLVMValueRef p, DType t, uint32_t align)
{
    uint32_t n = gen_is_vector(LLVMTypeOf(v)) ? whole_lanes(g, t) : 0;

    if (n)
        gen_masked_store(g, with_lanes(g, v, n), p, align, first_lanes(g, t.lanes, n));
    return n != 0;
}
