/* Index forms and addresses to LLVM IR.
 *
 * An address is built from the outermost loop variable inwards, the constant last, so that each
 * part leaves the loops it does not depend on and the constant ends in the addressing mode:
 *
 *     %p + (%kc*107648) + (%x*8 + %i) + 464     ->     gep(gep(gep %p, outer), inner), 464
 *
 * Indices are 64 bits wide; on 32-bit targets 32 where their range fits, which it nearly always
 * does, and in kernels of GPUs where that is so of all of them. A value stays known until the block
 * that computed it ends (GenMemo). */
#include "backends/llvm/llvm.h"

/* ---- indices ------------------------------------------------------------------------------------ */

enum { KEY_IDX = 1, KEY_ATOM = 2, KEY_ADDRESS = 3 };
#define KEY(tag, a, b) ((uint64_t)(tag) << 60 | (uint64_t)(a) << 30 | (b))

uint32_t gen_idx_width(const Gen *g, int64_t lo, int64_t hi)
{
    return (g->t->pointer_bits == 32 || g->narrow) && lo >= INT32_MIN && hi <= INT32_MAX ? 32 : 64;
}

LLVMTypeRef gen_width_type(Gen *g, uint32_t bits)
{
    return bits == 32 ? g->i32 : g->i64;
}

LLVMValueRef gen_to_width(Gen *g, LLVMValueRef v, uint32_t bits)
{
    return LLVMBuildIntCast2(g->b, v, LLVMIntTypeInContext(g->lc, bits), true, "");
}

static bool atom_loads(const Atom *a);

static bool idx_loads(const Idx *x)
{
    for (uint32_t i = 0; i < x->nterms; i++)
        if (atom_loads(x->t[i].atom))
            return true;
    return false;
}

static bool atom_loads(const Atom *a)
{
    if (a->kind == ATOM_LOAD)
        return true;
    return (a->a && idx_loads(a->a)) || (a->b && idx_loads(a->b));
}

static uint32_t atom_depth(Gen *g, const Atom *a)
{
    uint32_t d = 0;

    if (a->kind == ATOM_VAR)
        return (uint32_t)(uintptr_t)map_get(g->depths, a->id);
    if (a->kind == ATOM_LOAD)
        return g->depth;
    for (int side = 0; side < 2; side++) {
        const Idx *x = side ? a->b : a->a;

        for (uint32_t i = 0; x && i < x->nterms; i++) {
            uint32_t e = atom_depth(g, x->t[i].atom);

            if (e > d)
                d = e;
        }
    }
    return d;
}

static LLVMValueRef floor_div_const(Gen *g, const Idx *x, int64_t k, uint32_t bits)
{
    LLVMValueRef v = gen_idx_as(g, x, bits), kv = gen_int(g, gen_width_type(g, bits), k), q, r;

    if (x->lo >= 0)
        return LLVMBuildUDiv(g->b, v, kv, "");
    if ((k & (k - 1)) == 0)
        return LLVMBuildAShr(g->b, v,
                             gen_int(g, gen_width_type(g, bits), __builtin_ctzll((uint64_t)k)), "");
    q = LLVMBuildSDiv(g->b, v, kv, "");
    r = LLVMBuildICmp(g->b, LLVMIntSLT, LLVMBuildSRem(g->b, v, kv, ""),
                      gen_int(g, gen_width_type(g, bits), 0), "");
    return LLVMBuildAdd(g->b, q, LLVMBuildSExt(g->b, r, gen_width_type(g, bits), ""), "");
}

static LLVMValueRef floor_div_idx(Gen *g, const Atom *a, uint32_t bits)
{
    LLVMValueRef x = gen_idx_as(g, a->a, bits),
                 y = gen_idx_as(g, idx_divisor(g->c->arith, a), bits), r;

    if (a->a->lo >= 0)
        return LLVMBuildUDiv(g->b, x, y, "");
    r = LLVMBuildICmp(g->b, LLVMIntSLT, LLVMBuildSRem(g->b, x, y, ""),
                      gen_int(g, gen_width_type(g, bits), 0), "");
    return LLVMBuildAdd(g->b, LLVMBuildSDiv(g->b, x, y, ""),
                        LLVMBuildSExt(g->b, r, gen_width_type(g, bits), ""), "");
}

/* In the width of the atom's own range. */
static LLVMValueRef gen_atom(Gen *g, const Atom *a)
{
    bool         loads = atom_loads(a);
    GenMemo     *memo = loads ? &g->stmt : &g->block;
    uint64_t     key = KEY(KEY_ATOM, 0, a->id);
    LLVMValueRef v = a->kind == ATOM_VAR ? map_get(g->atoms, a->id) : memo_get(memo, key);
    uint32_t     own = gen_idx_width(g, a->lo, a->hi), bits = own;

    if (v)
        return v;
    if (a->a && gen_idx_width(g, a->a->lo, a->a->hi) == 64)
        bits = 64;
    if (a->b && gen_idx_width(g, a->b->lo, a->b->hi) == 64)
        bits = 64;
    switch (a->kind) {
    case ATOM_VAR: BUG("in @%s, %%%s has no value", g->name, a->name); break;
    case ATOM_DIV: v = floor_div_const(g, a->a, a->k, bits); break;
    case ATOM_SYMDIV: v = floor_div_idx(g, a, bits); break;
    case ATOM_PROD:
        v = LLVMBuildMul(g->b, gen_idx_as(g, a->a, bits), gen_idx_as(g, a->b, bits), "");
        break;
    case ATOM_MIN:
    case ATOM_MAX: {
        LLVMValueRef args[2] = {gen_idx_as(g, a->a, bits), gen_idx_as(g, a->b, bits)};

        v = gen_intrinsic(g, a->kind == ATOM_MIN ? "llvm.smin" : "llvm.smax",
                          gen_width_type(g, bits), 2, args);
        break;
    }
    case ATOM_LOAD: {
        const Prim *p = a->load;

        v = gen_prim(g, p);
        if (p->dtype.code == DT_INT)
            v = LLVMBuildSExtOrBitCast(g->b, v, g->i64, "");
        else
            v = LLVMBuildZExtOrBitCast(g->b, v, g->i64, "");
        break;
    }
    }
    v = gen_to_width(g, v, own);
    memo_put(g, memo, key, v);
    return v;
}

/* No partial sum of x, in any order, leaves `bits` signed bits. */
static bool no_wrap(const Idx *x, uint32_t bits)
{
    int64_t sum = x->c0 < 0 ? -x->c0 : x->c0, limit = bits == 32 ? INT32_MAX : INT64_MAX / 4;

    if (sum < 0)
        return false;
    for (uint32_t i = 0; i < x->nterms; i++) {
        const Atom *a = x->t[i].atom;
        int64_t     lo, hi;

        if (!checked_mul(a->lo, x->t[i].coef, &lo) || !checked_mul(a->hi, x->t[i].coef, &hi))
            return false;
        if (lo == INT64_MIN || hi == INT64_MIN)
            return false;
        lo = lo < 0 ? -lo : lo;
        hi = hi < 0 ? -hi : hi;
        if (!checked_add(sum, lo > hi ? lo : hi, &sum))
            return false;
    }
    return sum <= limit;
}

/* The terms of x whose deepest variable has depth d, plus c0; NULL when there are none. */
static LLVMValueRef sum_at_depth(Gen *g, const Idx *x, uint32_t d, uint32_t bits, bool nsw,
                                 LLVMValueRef sum)
{
    for (uint32_t i = 0; i < x->nterms; i++) {
        int64_t      k = x->t[i].coef;
        LLVMValueRef v;

        if (atom_depth(g, x->t[i].atom) != d)
            continue;
        v = gen_to_width(g, gen_atom(g, x->t[i].atom), bits);
        if (k == -1 && sum) {
            sum = nsw ? LLVMBuildNSWSub(g->b, sum, v, "") : LLVMBuildSub(g->b, sum, v, "");
            continue;
        }
        if (k != 1) {
            LLVMValueRef kv = gen_int(g, gen_width_type(g, bits), k);

            v = nsw ? LLVMBuildNSWMul(g->b, v, kv, "") : LLVMBuildMul(g->b, v, kv, "");
        }
        if (!sum)
            sum = v;
        else
            sum = nsw ? LLVMBuildNSWAdd(g->b, sum, v, "") : LLVMBuildAdd(g->b, sum, v, "");
    }
    return sum;
}

LLVMValueRef gen_idx(Gen *g, const Idx *x)
{
    uint32_t     bits = gen_idx_width(g, x->lo, x->hi);
    GenMemo     *memo;
    uint64_t     key = KEY(KEY_IDX, 0, x->id);
    LLVMValueRef v = NULL;
    bool         nsw;

    if (!x->nterms)
        return gen_int(g, gen_width_type(g, bits), x->c0);
    memo = idx_loads(x) ? &g->stmt : &g->block;
    if ((v = memo_get(memo, key)))
        return v;
    nsw = no_wrap(x, bits);
    for (uint32_t d = 0; d <= g->depth; d++)
        v = sum_at_depth(g, x, d, bits, nsw, v);
    if (x->c0) {
        LLVMValueRef k = gen_int(g, gen_width_type(g, bits), x->c0);

        v = nsw ? LLVMBuildNSWAdd(g->b, v, k, "") : LLVMBuildAdd(g->b, v, k, "");
    }
    memo_put(g, memo, key, v);
    return v;
}

LLVMValueRef gen_idx_as(Gen *g, const Idx *x, uint32_t bits)
{
    return gen_to_width(g, gen_idx(g, x), bits);
}

void gen_bind(Gen *g, const Atom *var, LLVMValueRef v)
{
    map_put(g->atoms, var->id, gen_to_width(g, v, gen_idx_width(g, var->lo, var->hi)));
    map_put(g->depths, var->id, (void *)(uintptr_t)g->depth);
}

/* ---- addresses ------------------------------------------------------------------------------------ */

static uint32_t low_bit(uint64_t v, uint32_t limit)
{
    uint64_t bit = v & -v;

    return v == 0 || bit > limit ? limit : (uint32_t)bit;
}

static const Idx *cell_offset(Gen *g, const Buffer *b, uint32_t n, const Idx *const *index)
{
    const Idx  *x = idx_const(g->c->arith, 0);
    const Idx **stride;

    if (n != b->ndim)
        BUG("in @%s, %%%s has %u dimensions, not %u", g->name, b->name, b->ndim, n);
    if (n == 0)
        return x;
    if (n == 1 && !b->stride)
        return index[0];
    stride = NEW_ARRAY(g->a, const Idx *, n);
    buffer_strides(g->c, b, stride);
    for (uint32_t i = 0; i < n; i++)
        x = idx_add(g->c->arith, x, idx_mul(g->c->arith, index[i], stride[i]));
    return x;
}

/* base + x elements of type t, x's constant last. */
LLVMValueRef gen_offset(Gen *g, LLVMValueRef base, uint32_t base_id, LLVMTypeRef t, const Idx *x)
{
    const Idx   *var = idx_addc(g->c->arith, x, -x->c0);
    GenMemo     *memo = idx_loads(var) ? &g->stmt : &g->block;
    uint64_t     key = KEY(KEY_ADDRESS, base_id, var->id);
    LLVMValueRef p = memo_get(memo, key);

    if (!p) {
        uint32_t bits = g->narrow ? 32 : g->t->pointer_bits;
        bool     nsw = no_wrap(var, bits);

        p = base;
        for (uint32_t d = 0; d <= g->depth; d++) {
            LLVMValueRef v = sum_at_depth(g, var, d, bits, nsw, NULL);

            if (v)
                p = LLVMBuildGEP2(g->b, t, p, &v, 1, "");
        }
        memo_put(g, memo, key, p);
    }
    if (x->c0) {
        LLVMValueRef k = gen_int(g, g->size, x->c0);

        p = LLVMBuildGEP2(g->b, t, p, &k, 1, "");
    }
    return p;
}

LLVMValueRef gen_base(Gen *g, const Buffer *b)
{
    LLVMValueRef p = NULL;

    for (const Buffer *a = b; a && !p; a = a->alias)
        p = map_get(g->bufs, a->id);
    if (!p)
        BUG("in @%s, buffer %%%s has no memory", g->name, b->name);
    return p;
}

LLVMValueRef gen_address(Gen *g, const Buffer *b, uint32_t n, const Idx *const *index,
                         uint32_t *align)
{
    DType      cell = b->dtype;
    uint32_t   elem = dtype_bytes(b->dtype), known = (uint32_t)cell.bits / 8;
    const Idx *x = cell_offset(g, b, n, index);

    if (b->align || b->scope == SCOPE_SHARED)
        known = b->align ? b->align : SHARED_ALIGN;
    else if (gen_is_kernel(g) && n && (b->scope == SCOPE_ARENA || b->scope == SCOPE_CONST))
        known = SHARED_ALIGN; /* as each tensor in a device's memory */
    known = low_bit(known, 1u << 12);
    known = low_bit((uint64_t)x->c0 * elem, known);
    for (uint32_t i = 0; i < x->nterms; i++)
        known = low_bit((uint64_t)x->t[i].coef * elem, known);
    *align = known;
    return gen_offset(g, gen_base(g, b), b->id,
                      b->record ? gen_record(g, b->record) : gen_mem_type(g, cell), x);
}
