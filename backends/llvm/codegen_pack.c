/* Numbers rounded to bytes, of several stores at a time (x86).
 *
 *   %y[0 : 8] = u8(bits(i32, minnum(hi, maxnum(lo, %a)) + 1.5 * 2^23) - 0x4b400000 + z)
 *   %y[8 : 8] = ..        what `te_quantize` makes of a result: rounded, zero z added, clamped
 *
 * One by one, each vector is clamped twice, rounded by an addition, and its bytes are gathered by
 * shuffles.  Conversions to integers round the same way, and what packs two vectors of i32 into one
 * of i16, and two of those into bytes, clamps: a number below lo, or none (NaN), becomes the least
 * one.  Only what lies above hi is clamped before, since the conversion gives the least integer for
 * what is too large for it.  Stores whose bytes lie one after the other become one store.
 *
 * The packing instructions work within quarters of 16 bytes, so groups of four neighbours come out
 * in another order; a last shuffle sorts them.  No statement may read what another one stores. */
#include "backends/llvm/llvm.h"

#include <string.h>

enum { LEAST = 2, MOST = 64, RUN = 4, GROUPS = 16, QUARTER = 16 /* bytes */ };

static const double  MAGIC = 12582912.0; /* 1.5 * 2^23: what is added to it is rounded */
static const int64_t MAGIC_BITS = 0x4b400000;

/* A store of bytes; v is the number before it is clamped. */
typedef struct {
    const StoreData *store;
    const Prim      *v;
    double           lo, hi;
    int64_t          zero;
    uint32_t         lanes;
} Packed;

static bool number(const Prim *p, double *x)
{
    if (p->kind == PRIM_SPLAT)
        p = p->kids[0];
    if (p->kind != PRIM_INT && p->kind != PRIM_FLOAT)
        return false;
    *x = p->kind == PRIM_INT ? (double)p->u.i : p->u.f;
    return true;
}

/* `p` is this operation on something and a number, which is second, or first where `before`. */
static const Prim *beside(const Prim *p, PrimKind kind, bool before, double *x)
{
    return p->kind == kind && number(p->kids[!before], x) ? p->kids[before] : NULL;
}

static uint32_t widest(const Gen *g)
{
    return g->caps & CAP_AVX512 ? 16 : g->caps & CAP_AVX2 ? 8 : 4;
}

static bool matches(const Gen *g, const Stmt *s, Packed *out)
{
    const StoreData *d = &s->u.store;
    const Prim      *p, *q;
    double           x, zero = 0;

    if (s->kind != STMT_STORE || d->mask || d->n != 1 || d->buffer->stream ||
        d->buffer->scope == SCOPE_REG || d->value->kind != PRIM_CAST)
        return false;
    DType t = d->value->dtype;
    p = d->value->kids[0];
    if (!dtype_is_int(t) || t.bits != 8 || t.lanes < 4 || t.lanes > widest(g) ||
        (t.lanes & (t.lanes - 1)) || !dtype_eq(dtype_lanes(p->dtype, 1), DT_I32))
        return false;
    q = beside(p, PRIM_ADD, false, &zero);
    p = q ? q : p;
    if (!(p = beside(p, PRIM_SUB, false, &x)) || x != (double)MAGIC_BITS || p->kind != PRIM_BITS)
        return false;
    if (!(p = beside(p->kids[0], PRIM_ADD, false, &x)) || x != MAGIC)
        return false;
    *out = (Packed){.store = d, .zero = (int64_t)zero, .lanes = t.lanes};
    if (!(p = beside(p, PRIM_MINNUM, true, &out->hi)) ||
        !(out->v = beside(p, PRIM_MAXNUM, true, &out->lo)))
        return false;
    double least = t.code == DT_INT ? -128 : 0;
    return out->lo + zero >= least && out->hi + zero <= least + 255 && out->lo <= out->hi &&
           dtype_eq(dtype_lanes(out->v->dtype, 1), DT_F32);
}

/* ---- which statements -------------------------------------------------------------------------- */

typedef struct {
    const Packed *of;
    uint32_t      n;
    bool          reads;
} Look;

static const Buffer *memory_of(const Buffer *b)
{
    while (b->alias)
        b = b->alias;
    return b;
}

static void look(void *user, const Prim *p)
{
    Look *l = user;

    for (uint32_t i = 0; p->kind == PRIM_LOAD && i < l->n; i++)
        l->reads |= memory_of(p->u.load.buffer) == memory_of(l->of[i].store->buffer);
}

/* Statements from the first on that are such stores and read nothing that one of them writes. */
static uint32_t packed_stores(const Gen *g, uint32_t n, const Stmt *const *s, Packed *of)
{
    uint32_t m = 0;

    for (; m < n && m < MOST && matches(g, s[m], &of[m]); m++) {
        Look l = {of, m + 1, false};

        stmt_visit(s[m], &(TirVisit){.user = &l, .prim = look});
        if (l.reads || of[m].store->buffer != of[0].store->buffer ||
            !dtype_eq(of[m].store->value->dtype, of[0].store->value->dtype))
            break;
    }
    return m;
}

/* ---- packing -------------------------------------------------------------------------------------- */

/* A vector and which group of four numbers lies where. */
typedef struct {
    LLVMValueRef v;
    uint8_t      group[GROUPS];
    uint32_t     n;
} Groups;

/* Lanes `first` and following. */
static LLVMValueRef part(Gen *g, LLVMValueRef v, uint32_t first, uint32_t n)
{
    LLVMValueRef at[MOST];

    for (uint32_t i = 0; i < n; i++)
        at[i] = gen_i32(g, first + i);
    return LLVMBuildShuffleVector(g->b, v, LLVMGetPoison(LLVMTypeOf(v)), LLVMConstVector(at, n),
                                  "");
}

/* Rounded, and nothing above hi; x is no number: the least integer. */
static LLVMValueRef rounded(Gen *g, const Packed *p)
{
    LLVMValueRef v = gen_prim(g, p->v), bound, less, args[4];
    LLVMTypeRef  t = LLVMTypeOf(v);
    double       least = p->store->value->dtype.code == DT_INT ? -128 : 0;

    if (p->lo + (double)p->zero > least) {
        bound = gen_splat_float(g, t, p->lo);
        less = LLVMBuildFCmp(g->b, LLVMRealOGT, v, bound, "");
        v = LLVMBuildSelect(g->b, less, v, bound, "");
    }
    bound = gen_splat_float(g, t, p->hi);
    less = LLVMBuildFCmp(g->b, LLVMRealOLT, bound, v, "");
    args[0] = LLVMBuildSelect(g->b, less, bound, v, "");
    if (p->lanes < 16)
        return gen_intrinsic_of(
            g, p->lanes == 4 ? "llvm.x86.sse2.cvtps2dq" : "llvm.x86.avx.cvt.ps2dq.256", 0, NULL, 1,
            args);
    args[1] = LLVMConstNull(gen_with_lanes_of(g->i32, t));
    args[2] = gen_int(g, g->i16, 0xffff);
    args[3] = gen_i32(g, 4); /* rounding as the mode says */
    return gen_intrinsic_of(g, "llvm.x86.avx512.mask.cvtps2dq.512", 0, NULL, 4, args);
}

/* Two vectors as one of half as wide numbers. */
static Groups pack(Gen *g, const char *what, const Groups *a, const Groups *b)
{
    static const char *const form[] = {"llvm.x86.sse2.%s.128", "llvm.x86.avx2.%s",
                                       "llvm.x86.avx512.%s.512"};
    LLVMTypeRef              t = LLVMTypeOf(a->v);
    uint32_t quarters = LLVMGetVectorSize(t) * LLVMGetIntTypeWidth(gen_elem_type(t)) / 8 / QUARTER;
    uint32_t each = a->n / quarters;
    LLVMValueRef args[2] = {a->v, b->v};
    Groups       r = {.n = 2 * a->n};

    r.v = gen_intrinsic_of(g, arena_printf(g->a, form[quarters / 2], what), 0, NULL, 2, args);
    for (uint32_t q = 0; q < quarters; q++)
        for (uint32_t i = 0; i < each; i++) {
            r.group[2 * each * q + i] = a->group[each * q + i];
            r.group[2 * each * q + each + i] = b->group[each * q + i];
        }
    return r;
}

/* Pairs of vectors; of one alone its halves, or a vector of 16 bytes twice. */
static uint32_t pack_all(Gen *g, const char *what, Groups *v, uint32_t n)
{
    uint32_t lanes = LLVMGetVectorSize(LLVMTypeOf(v[0].v)), k = v[0].n / 2;
    bool     small = lanes * LLVMGetIntTypeWidth(gen_elem_type(LLVMTypeOf(v[0].v))) / 8 == QUARTER;

    if (n == 1 && small) {
        v[0] = pack(g, what, &v[0], &v[0]);
        return 1;
    }
    if (n == 1) {
        Groups a = v[0], b = v[0];

        a.v = part(g, v[0].v, 0, lanes / 2);
        b.v = part(g, v[0].v, lanes / 2, lanes / 2);
        a.n = b.n = k;
        memcpy(b.group, v[0].group + k, k);
        v[0] = pack(g, what, &a, &b);
        return 1;
    }
    for (uint32_t i = 0; i < n / 2; i++)
        v[i] = pack(g, what, &v[2 * i], &v[2 * i + 1]);
    return n / 2;
}

/* Bytes of n stores, 1, 2 or 4, in order. */
static LLVMValueRef bytes(Gen *g, const Packed *const *p, uint32_t n)
{
    uint32_t     per = p[0]->lanes / 4, total = n * per;
    bool         sign = p[0]->store->value->dtype.code == DT_INT;
    Groups       v[RUN] = {0};
    LLVMValueRef at[GROUPS], words;

    for (uint32_t i = 0; i < n; i++) {
        v[i].v = rounded(g, p[i]);
        v[i].n = per;
        for (uint32_t k = 0; k < per; k++)
            v[i].group[k] = (uint8_t)(i * per + k);
    }
    n = pack_all(g, "packssdw", v, n);
    for (uint32_t i = 0; i < n && p[0]->zero; i++) {
        LLVMTypeRef t = LLVMTypeOf(v[i].v);
        v[i].v = gen_call2(g, "llvm.sadd.sat", t, v[i].v,
                           gen_splat_int(t, (uint64_t)p[0]->zero & 0xffff));
    }
    pack_all(g, sign ? "packsswb" : "packuswb", v, n);
    words = LLVMBuildBitCast(g->b, v[0].v, LLVMVectorType(g->i32, v[0].n), "");
    for (uint32_t i = 0; i < v[0].n; i++)
        if (v[0].group[i] < total)
            at[v[0].group[i]] = gen_i32(g, i);
    words = LLVMBuildShuffleVector(g->b, words, LLVMGetPoison(LLVMTypeOf(words)),
                                   LLVMConstVector(at, total), "");
    return LLVMBuildBitCast(g->b, words, LLVMVectorType(g->i8, 4 * total), "");
}

uint32_t gen_packed(Gen *g, uint32_t n, const Stmt *const *s)
{
    Packed of[MOST];
    bool   done[MOST] = {false};

    if (g->mask || g->arch != ARCH_X86)
        return 0;
    uint32_t m = packed_stores(g, n, s, of);
    if (m < LEAST)
        return 0;
    for (uint32_t i = 0; i < m; i++) {
        const Packed *run[RUN] = {&of[i]};
        uint32_t      at[RUN] = {i}, k = 1, align;

        if (done[i])
            continue;
        for (uint32_t j = i + 1; j < m && k < RUN; j++)
            if (!done[j] && of[j].zero == of[i].zero &&
                of[j].store->index[0] ==
                    idx_addc(g->c->arith, of[i].store->index[0], (int64_t)k * of[i].lanes))
                at[k] = j, run[k++] = &of[j];
        k = k == 3 ? 2 : k;
        for (uint32_t j = 0; j < k; j++)
            done[at[j]] = true;
        LLVMValueRef v = bytes(g, run, k);
        LLVMValueRef p = gen_address(g, of[i].store->buffer, 1, of[i].store->index, &align);

        LLVMSetAlignment(LLVMBuildStore(g->b, v, p), align);
    }
    return m;
}
