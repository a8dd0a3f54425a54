/* Loads, stores and hints: cells of buffers as values. */
#include "backends/common/plain.h"
#include "backends/llvm/llvm.h"

#include <string.h>

enum { KEY_PREFETCH = 5 };

/* A line that was asked for: with the vector at `by`, so many times. */
typedef struct {
    const Idx *by;
    int        times;
} LineAsked;

/* Under a lane mask: p if any lane is on, else the address of zeros. */
static LLVMValueRef safe_pointer(Gen *g, LLVMValueRef p)
{
    LLVMTypeRef  bits = LLVMIntTypeInContext(g->lc, LLVMGetVectorSize(LLVMTypeOf(g->mask)));
    LLVMValueRef any = LLVMBuildBitCast(g->b, g->mask, bits, "");

    if (!g->nowhere) {
        LLVMBasicBlockRef at = LLVMGetInsertBlock(g->b);

        g->nowhere = gen_alloca(g, g->i64, 8, "nowhere");
        LLVMPositionBuilderAtEnd(g->b, g->entry);
        LLVMBuildStore(g->b, LLVMConstNull(g->i64), g->nowhere);
        LLVMPositionBuilderAtEnd(g->b, at);
    }
    any = LLVMBuildICmp(g->b, LLVMIntNE, any, LLVMConstNull(bits), "");
    return LLVMBuildSelect(g->b, any, p, g->nowhere, "");
}

LLVMValueRef gen_from_memory(Gen *g, LLVMValueRef v, DType t)
{
    if (!dtype_is_bool(t))
        return v;
    return LLVMBuildICmp(g->b, LLVMIntNE, v, LLVMConstNull(LLVMTypeOf(v)), "");
}

/* The line `after` bytes behind p; level 3 is the first cache, 2 the second. */
static void ask_for(Gen *g, LLVMValueRef p, uint64_t after, int32_t level)
{
    LLVMValueRef by = LLVMConstInt(g->i64, after, 0);
    LLVMValueRef args[4] = {LLVMBuildGEP2(g->b, LLVMInt8TypeInContext(g->lc), p, &by, 1, ""),
                            gen_i32(g, 0), gen_i32(g, level), gen_i32(g, 1)};

    gen_intrinsic(g, "llvm.prefetch", g->ptr, 4, args);
}

/* The cell that begins a line, if the first cell does, as far as the constant of an index says. */
static const Idx *line_of(Gen *g, const Idx *at, DType t)
{
    int64_t cells = CACHE_LINE / dtype_bytes((DType){t.code, t.bits, 1});

    return idx_addc(g->c->arith, at, -((at->c0 % cells + cells) % cells));
}

/* A line of a buffer that is streamed, `ahead` bytes before it is needed.  Hardware does this too,
 * but begins anew at each page.  Beyond the end it is a hint without effect.  The
 * pixels of a tile load the same vector: two of them ask, as a hint is dropped while all of a
 * core's misses are taken (Winograd's weights from memory: 5 % faster than asking once, and 4 %
 * faster than each pixel's asking, Zen 4).  Of several vectors in a line the first asks; rows of a
 * tile begin anywhere in a line. */
static void prefetch_load(Gen *g, const LoadData *l, DType t, LLVMValueRef p)
{
    enum { MOST = 2 };

    if (l->n != 1)
        return;
    const Idx *line = line_of(g, l->index[0], t);
    uint64_t   key = (uint64_t)KEY_PREFETCH << 60 | (uint64_t)l->buffer->id << 30 | line->id;
    LineAsked *asked = memo_get(&g->block, key);
    if (!asked) {
        asked = NEW(g->a, LineAsked);
        *asked = (LineAsked){.by = l->index[0]};
        memo_put(g, &g->block, key, asked);
    }
    if (asked->by != l->index[0] || asked->times == MOST)
        return; /* the vector before it asked for this line */
    asked->times++;
    ask_for(g, p, l->buffer->ahead, 3);
}

void gen_prefetch(Gen *g, const PrefetchData *d)
{
    uint32_t     align;
    LLVMValueRef p = gen_address(g, d->buffer, d->n, d->index, &align);

    for (uint32_t i = 0; i < d->lines; i++)
        ask_for(g, p, (uint64_t)i * CACHE_LINE, 2);
}

/* A known cell of a thread's own buffer: LLVM can hold it in registers. */
static bool stays(const Buffer *b, uint32_t n, const Idx *const *index)
{
    int64_t at;

    return b->scope == SCOPE_REG ||
           (b->scope == SCOPE_STACK && n == 1 && idx_is_const(index[0], &at));
}

LLVMValueRef gen_load(Gen *g, const LoadData *l, DType t)
{
    LLVMTypeRef  mt = gen_mem_type(g, t);
    uint32_t     align;
    LLVMValueRef p, v, mask = NULL;

    if (l->member)
        return gen_member_load(g, l);
    p = gen_address(g, l->buffer, l->n, l->index, &align);
    if (l->mask)
        mask = gen_prim(g, l->mask);
    if (l->buffer->scope != SCOPE_REG && g->mask) {
        if (t.lanes == LLVMGetVectorSize(LLVMTypeOf(g->mask)))
            mask = mask ? LLVMBuildAnd(g->b, mask, g->mask, "") : g->mask;
        else if (t.lanes == 1)
            p = safe_pointer(g, p);
    }
    if ((v = gen_end_load(g, l, p, t, align, mask)))
        ;
    else if (mask && gen_is_vector(mt))
        v = gen_masked_load(g, p, mt, align, mask);
    else if (!stays(l->buffer, l->n, l->index) && (v = gen_odd_load(g, p, t, align)))
        ;
    else {
        if (l->buffer->ahead && t.lanes > 1)
            prefetch_load(g, l, t, p);
        v = LLVMBuildLoad2(g->b, mt, p, "");
        LLVMSetAlignment(v, align);
    }
    return gen_from_memory(g, v, t);
}

/* What a store replaces. */
static bool is_own(const StoreData *s, const Prim *p)
{
    return p->kind == PRIM_LOAD && p->u.load.buffer == s->buffer && p->u.load.n == s->n &&
           (!s->n || !memcmp(p->u.load.index, s->index, s->n * sizeof(Idx *)));
}

/* `%t = max(%t, x)` and `%t = min(%t, x)`: a step of a reduction, all of it or where a condition
 * holds (`select(c, max(%t, x), %t)`); NULL: none. */
static const Prim *extremum_step(const StoreData *s)
{
    const Prim *v = s->value;

    if (v->kind == PRIM_SELECT && is_own(s, v->kids[2]))
        v = v->kids[1];
    bool extremum = v->kind == PRIM_MAX || v->kind == PRIM_MIN;
    return extremum && dtype_is_float(v->dtype) && is_own(s, v->kids[0]) ? v : NULL;
}

/* `%sum = fma(a, b, %sum)`, a sum in a register. */
static const Prim *sum_step(const StoreData *s)
{
    const Prim *v = s->value;

    return v->kind == PRIM_FMA && s->buffer->scope == SCOPE_REG && is_own(s, v->kids[2]) ? v : NULL;
}

/* A tile's sums take step after step of a reduction, and the loads of one step come after those of
 * the one before: LLVM puts up to four loads of a pointer together, as they lie in memory, so that
 * weights of two steps waited in registers, and with 16 of them two were spilled (6x2 with all
 * channels written out took 1.09 of the time for it, Zen 3).  A fence of this thread is no
 * instruction. */
static void begin_step(Gen *g, const StoreData *s, const Prim *sum)
{
    bool vector = sum && dtype_is_float(sum->dtype) && sum->dtype.lanes > 1;

    if (!vector || !g->begun)
        g->begun = vector ? s : NULL;
    else if (g->arch == ARCH_X86 && is_own(g->begun, sum->kids[2]))
        LLVMBuildFence(g->b, LLVMAtomicOrderingRelease, true, "");
}

static void store_past_caches(Gen *g, LLVMValueRef store)
{
    LLVMValueRef one = gen_i32(g, 1);

    LLVMSetMetadata(store, LLVMGetMDKindIDInContext(g->lc, "nontemporal", 11),
                    LLVMMDNodeInContext(g->lc, &one, 1));
}

void gen_store(Gen *g, const StoreData *s)
{
    if (s->member) {
        gen_member_store(g, s);
        return;
    }
    if (gen_is_kernel(g) && is_async_copy(s->value)) {
        gen_async_copy(g, s);
        return;
    }
    g->step = extremum_step(s);
    if (!g->step)
        begin_step(g, s, g->step = sum_step(s));
    LLVMValueRef v = gen_prim(g, s->value), mask = s->mask ? gen_prim(g, s->mask) : NULL, p, st;
    uint32_t     align;

    p = gen_address(g, s->buffer, s->n, s->index, &align);
    if (dtype_is_bool(s->value->dtype))
        v = LLVMBuildZExt(g->b, v, gen_mem_type(g, s->value->dtype), "");
    if (mask && gen_is_vector(LLVMTypeOf(v))) {
        gen_masked_store(g, v, p, align, mask);
        return;
    }
    if (!mask && gen_end_store(g, s, v, p, align))
        return;
    if (!stays(s->buffer, s->n, s->index) && gen_odd_store(g, v, p, s->value->dtype, align))
        return;
    st = LLVMBuildStore(g->b, v, p);
    LLVMSetAlignment(st, align);
    if (s->buffer->stream && s->value->dtype.lanes > 1 &&
        align >= s->value->dtype.lanes * dtype_bytes(s->buffer->dtype))
        store_past_caches(g, st);
}
