/* Expressions to LLVM IR: what is no arithmetic (codegen_arith.c).
 *
 * Within one statement an interned prim is computed once.  The arms of a select whose loads are not
 * known to be legal become branches (scalar condition) or loads under a mask (a condition per
 * lane). */
#include "backends/llvm/llvm.h"

#include <math.h>
#include <string.h>

enum { KEY_PRIM = 4 };
#define KEY(p) ((uint64_t)KEY_PRIM << 60 | (p)->id)

/* ---- select and case --------------------------------------------------------------------------------------- */

static bool idx_reads(Gen *g, const Idx *x, Map *seen);

/* Computing p now could read memory that only this arm may read. */
static bool reads(Gen *g, const Prim *p, Map *seen)
{
    void *known;

    if (memo_get(&g->stmt, KEY(p)))
        return false;
    if (map_find(seen, p->id, &known))
        return known != NULL;
    map_put(seen, p->id, NULL);
    if (p->kind == PRIM_LOAD && p->u.load.buffer->scope != SCOPE_REG)
        goto yes;
    if (p->kind == PRIM_LOAD)
        for (uint32_t i = 0; i < p->u.load.n; i++)
            if (idx_reads(g, p->u.load.index[i], seen))
                goto yes;
    if (p->kind == PRIM_INDEX || p->kind == PRIM_RAMP || p->kind == PRIM_CASE)
        if (idx_reads(g, p->u.index, seen))
            goto yes;
    for (uint32_t i = 0; i < p->nkids; i++)
        if (reads(g, p->kids[i], seen))
            goto yes;
    return false;
yes:
    map_put(seen, p->id, seen);
    return true;
}

static bool idx_reads(Gen *g, const Idx *x, Map *seen)
{
    for (uint32_t i = 0; x && i < x->nterms; i++) {
        const Atom *a = x->t[i].atom;

        if (a->kind == ATOM_LOAD && reads(g, a->load, seen))
            return true;
        if (idx_reads(g, a->a, seen) || idx_reads(g, a->b, seen))
            return true;
    }
    return false;
}

bool gen_reads(Gen *g, const Prim *p)
{
    return reads(g, p, map_new(g->a));
}

bool gen_known(Gen *g, const Prim *p)
{
    return p->kind == PRIM_INT || p->kind == PRIM_FLOAT || memo_get(&g->stmt, KEY(p));
}

void gen_know(Gen *g, const Prim *p, LLVMValueRef v)
{
    memo_put(g, &g->stmt, KEY(p), v);
}

/* One arm in a block of its own, which then goes to `done`. */
static LLVMValueRef gen_arm(Gen *g, const Prim *p, LLVMBasicBlockRef at, LLVMBasicBlockRef done,
                            LLVMBasicBlockRef *end)
{
    GenMark      mark = gen_mark(g);
    LLVMValueRef v;

    LLVMPositionBuilderAtEnd(g->b, at);
    v = gen_prim(g, p);
    gen_drop(g, mark);
    *end = LLVMGetInsertBlock(g->b);
    LLVMBuildBr(g->b, done);
    return v;
}

static LLVMValueRef masked_arm(Gen *g, const Prim *p, LLVMValueRef on)
{
    LLVMValueRef outer = g->mask, v;
    GenMark      mark = gen_mark(g);

    g->mask = outer ? LLVMBuildAnd(g->b, outer, on, "") : on;
    v = gen_prim(g, p);
    g->mask = outer;
    gen_drop(g, mark);
    return v;
}

static LLVMValueRef gen_select(Gen *g, const Prim *p)
{
    LLVMValueRef      cond = gen_prim(g, p->kids[0]), v[2], phi;
    Map              *seen = map_new(g->a);
    LLVMBasicBlockRef bb[2], end[2], done;

    if (!reads(g, p->kids[1], seen) && !reads(g, p->kids[2], seen)) {
        v[0] = gen_prim(g, p->kids[1]);
        v[1] = gen_prim(g, p->kids[2]);
        return LLVMBuildSelect(g->b, cond, v[0], v[1], "");
    }
    if (gen_is_vector(LLVMTypeOf(cond))) {
        v[0] = masked_arm(g, p->kids[1], cond);
        v[1] = masked_arm(g, p->kids[2], LLVMBuildNot(g->b, cond, ""));
        return LLVMBuildSelect(g->b, cond, v[0], v[1], "");
    }
    bb[0] = gen_bb(g, "true");
    bb[1] = gen_bb(g, "false");
    done = gen_bb(g, "chosen");
    LLVMBuildCondBr(g->b, cond, bb[0], bb[1]);
    for (int i = 0; i < 2; i++)
        v[i] = gen_arm(g, p->kids[1 + i], bb[i], done, &end[i]);
    LLVMPositionBuilderAtEnd(g->b, done);
    phi = LLVMBuildPhi(g->b, LLVMTypeOf(v[0]), "");
    LLVMAddIncoming(phi, v, end, 2);
    return phi;
}

static LLVMValueRef gen_case(Gen *g, const Prim *p)
{
    LLVMValueRef       which = gen_idx(g, p->u.index), sw, phi;
    uint32_t           n = p->nkids;
    LLVMValueRef      *v = NEW_ARRAY(g->a, LLVMValueRef, n);
    LLVMBasicBlockRef *bb = NEW_ARRAY(g->a, LLVMBasicBlockRef, n);
    LLVMBasicBlockRef *end = NEW_ARRAY(g->a, LLVMBasicBlockRef, n), done;

    if (LLVMIsConstant(which)) {
        long long k = LLVMConstIntGetSExtValue(which);

        return gen_prim(g, p->kids[k >= 0 && k < n ? k : n - 1]);
    }
    for (uint32_t i = 0; i < n; i++)
        bb[i] = gen_bb(g, "arm");
    done = gen_bb(g, "chosen");
    sw = LLVMBuildSwitch(g->b, which, bb[n - 1], n - 1);
    for (uint32_t i = 0; i + 1 < n; i++)
        LLVMAddCase(sw, gen_int(g, LLVMTypeOf(which), i), bb[i]);
    for (uint32_t i = 0; i < n; i++)
        v[i] = gen_arm(g, p->kids[i], bb[i], done, &end[i]);
    LLVMPositionBuilderAtEnd(g->b, done);
    phi = LLVMBuildPhi(g->b, LLVMTypeOf(v[0]), "");
    LLVMAddIncoming(phi, v, end, n);
    return phi;
}

/* ---- conversions --------------------------------------------------------------------------------------------------- */

static LLVMValueRef larger_of(Gen *g, LLVMValueRef x, LLVMValueRef y)
{
    return LLVMBuildSelect(g->b, LLVMBuildICmp(g->b, LLVMIntSGT, x, y, ""), x, y, "");
}

/* Whole parts of f32 from -2^63 on, below 2^63, as i64 by shifts: m * 2^e of 24 bits m.  AVX2 has
 * no instruction for it, and numbers one by one took 1.6 times as long (Zen 4). */
static LLVMValueRef shifted_to_i64(Gen *g, LLVMValueRef v)
{
    enum { FRACTION = 23, BIAS = 127 + FRACTION, MOST = 63 };
    LLVMTypeRef t = LLVMTypeOf(v), i32s = gen_with_lanes_of(g->i32, t),
                i64s = gen_with_lanes_of(g->i64, t);
    LLVMValueRef b = LLVMBuildBitCast(g->b, v, i32s, ""), zero = LLVMConstNull(i32s);
    LLVMValueRef m = LLVMBuildAnd(g->b, b, gen_splat_int(i32s, (1 << FRACTION) - 1), "");
    LLVMValueRef e = LLVMBuildLShr(g->b, b, gen_splat_int(i32s, FRACTION), ""), right, sign;

    m = LLVMBuildOr(g->b, m, gen_splat_int(i32s, 1 << FRACTION), "");
    e = LLVMBuildAnd(g->b, e, gen_splat_int(i32s, 255), "");
    e = LLVMBuildSub(g->b, e, gen_splat_int(i32s, BIAS), "");
    right = larger_of(g, LLVMBuildNeg(g->b, e, ""), zero);
    right =
        LLVMBuildSelect(g->b, LLVMBuildICmp(g->b, LLVMIntSLT, right, gen_splat_int(i32s, MOST), ""),
                        right, gen_splat_int(i32s, MOST), "");
    m = LLVMBuildShl(g->b, LLVMBuildZExt(g->b, m, i64s, ""),
                     LLVMBuildZExt(g->b, larger_of(g, e, zero), i64s, ""), "");
    m = LLVMBuildLShr(g->b, m, LLVMBuildZExt(g->b, right, i64s, ""), "");
    sign = LLVMBuildSExt(g->b, LLVMBuildAShr(g->b, b, gen_splat_int(i32s, 31), ""), i64s, "");
    return LLVMBuildSub(g->b, LLVMBuildXor(g->b, m, sign, ""), sign, "");
}

/* Vectors of f32 on x86, for which LLVM converts lane by lane: the range is cut first.  2^31 is not
 * an i32, nor 2^63 an i64, so it is put in afterwards; NaN fails both comparisons. */
static LLVMValueRef vector_to_int(Gen *g, LLVMValueRef v, DType to)
{
    bool         whole = to.bits >= 32;
    LLVMTypeRef  t = LLVMTypeOf(v), ints = gen_with_lanes_of(to.bits == 64 ? g->i64 : g->i32, t);
    double       span = ldexp(1, (int)to.bits), least = to.code == DT_INT ? -span / 2 : 0;
    double       most = least + span - (whole ? 0 : 1);
    LLVMValueRef lo = gen_splat_float(g, t, least), hi = gen_splat_float(g, t, most),
                 zero = LLVMConstNull(t), cut, r;

    cut = LLVMBuildSelect(g->b, LLVMBuildFCmp(g->b, LLVMRealOGT, v, lo, ""), v, lo, "");
    if (whole) {
        LLVMValueRef fits = LLVMBuildFCmp(g->b, LLVMRealOLT, v, hi, "");
        LLVMValueRef over = LLVMBuildFCmp(g->b, LLVMRealOGE, v, hi, "");

        cut = LLVMBuildSelect(g->b, fits, cut, zero, "");
        r = to.bits == 64 && g->caps & CAP_AVX2 && !(g->caps & CAP_AVX512)
                ? shifted_to_i64(g, cut)
                : LLVMBuildFPToSI(g->b, cut, ints, "");
        return LLVMBuildSelect(g->b, over,
                               gen_splat_int(ints, to.bits == 64 ? INT64_MAX : INT32_MAX), r, "");
    }
    cut = LLVMBuildSelect(g->b, LLVMBuildFCmp(g->b, LLVMRealOLT, v, hi, ""), cut, hi, "");
    cut = LLVMBuildSelect(g->b, LLVMBuildFCmp(g->b, LLVMRealUNO, v, v, ""), zero, cut, "");
    r = LLVMBuildFPToSI(g->b, cut, ints, "");
    return LLVMBuildTrunc(g->b, r, gen_type(g, to), "");
}

static LLVMValueRef float_to_int(Gen *g, LLVMValueRef v, DType to)
{
    if (g->arch == ARCH_X86 && gen_is_vector(LLVMTypeOf(v)) &&
        gen_elem_type(LLVMTypeOf(v)) == g->f32 && (to.bits <= 16 || to.code == DT_INT))
        return vector_to_int(g, v, to);
    LLVMTypeRef over[2] = {gen_type(g, to), LLVMTypeOf(v)};
    const char *name = to.code == DT_INT ? "llvm.fptosi.sat" : "llvm.fptoui.sat";

    return gen_intrinsic_of(g, name, 2, over, 1, &v);
}

/* Vectors of f32 that become i64 and f32 again: in f32, where all lanes of a register are used. */
static bool is_whole_part(const Gen *g, const Prim *p)
{
    const Prim *k = p->kids[0];

    return g->arch == ARCH_X86 && g->caps & CAP_AVX && p->dtype.lanes > 1 && k->kind == PRIM_CAST &&
           dtype_eq(p->dtype, k->kids[0]->dtype) && dtype_eq(dtype_lanes(p->dtype, 1), DT_F32) &&
           dtype_eq(dtype_lanes(k->dtype, 1), DT_I64);
}

/* NaN becomes 0, what an i64 does not hold 2^63 or -2^63, -0 0. */
static LLVMValueRef whole_part(Gen *g, LLVMValueRef v)
{
    LLVMTypeRef  t = LLVMTypeOf(v);
    LLVMValueRef lo = gen_splat_float(g, t, -ldexp(1, 63)),
                 hi = gen_splat_float(g, t, ldexp(1, 63));
    LLVMValueRef zero = LLVMConstNull(t), r = gen_call1(g, "llvm.trunc", t, v);

    r = LLVMBuildSelect(g->b, LLVMBuildFCmp(g->b, LLVMRealOGT, r, lo, ""), r, lo, "");
    r = LLVMBuildSelect(g->b, LLVMBuildFCmp(g->b, LLVMRealOLT, r, hi, ""), r, hi, "");
    r = LLVMBuildSelect(g->b, LLVMBuildFCmp(g->b, LLVMRealUNO, v, v, ""), zero, r, "");
    return LLVMBuildFAdd(g->b, r, zero, "");
}

static LLVMValueRef gen_cast(Gen *g, const Prim *p)
{
    if (is_whole_part(g, p))
        return whole_part(g, gen_prim(g, p->kids[0]->kids[0]));
    DType        to = p->dtype, from = p->kids[0]->dtype;
    LLVMValueRef v = gen_prim(g, p->kids[0]);
    LLVMTypeRef  t = gen_type(g, to), f32t = gen_with_lanes_of(g->f32, t);

    if (dtype_eq(to, from))
        return v;
    if (dtype_is_handle(from))
        return LLVMBuildPtrToInt(g->b, v, t, "");
    if (dtype_is_float(from)) {
        if (dtype_is_half(to) && from.bits == 64)
            return gen_round_half(g, gen_odd_f32(g, v), to);
        v = gen_widen(g, v, from);
        if (dtype_is_bool(to))
            return LLVMBuildFCmp(g->b, LLVMRealUNE, v, LLVMConstNull(LLVMTypeOf(v)), "");
        if (!dtype_is_float(to))
            return float_to_int(g, v, to);
        if (dtype_is_half(to))
            return gen_round_half(g, v, to);
        return LLVMTypeOf(v) == t ? v : LLVMBuildFPCast(g->b, v, t, "");
    }
    if (dtype_is_float(to)) {
        LLVMTypeRef ft = dtype_is_half(to) ? f32t : t;

        v = from.code == DT_INT ? LLVMBuildSIToFP(g->b, v, ft, "")
                                : LLVMBuildUIToFP(g->b, v, ft, "");
        return gen_round_half(g, v, to);
    }
    if (dtype_is_bool(to))
        return LLVMBuildICmp(g->b, LLVMIntNE, v, LLVMConstNull(LLVMTypeOf(v)), "");
    return LLVMBuildIntCast2(g->b, v, t, from.code == DT_INT, "");
}

static LLVMValueRef gen_bits_of(Gen *g, const Prim *p)
{
    DType        to = p->dtype, from = p->kids[0]->dtype;
    LLVMValueRef v = gen_prim(g, p->kids[0]);

    if (dtype_is_bool(from))
        v = LLVMBuildZExt(g->b, v, gen_mem_type(g, from), "");
    v = LLVMBuildBitCast(g->b, v, gen_mem_type(g, to), "");
    return gen_from_memory(g, v, to);
}

/* ---- leaves and vectors --------------------------------------------------------------------------------------------------- */

static LLVMValueRef gen_number(Gen *g, const Prim *p)
{
    LLVMTypeRef t = gen_type(g, p->dtype);
    uint64_t    cell = 0;
    DType       one = dtype_lanes(p->dtype, 1);

    if (dtype_is_handle(p->dtype))
        return LLVMConstNull(t);
    if (p->kind == PRIM_INT && !dtype_is_float(p->dtype))
        return gen_splat_int(t, dtype_is_bool(p->dtype) ? p->u.i != 0 : (uint64_t)p->u.i);
    if (!dtype_is_half(p->dtype))
        return gen_splat_float(g, t, p->u.f);
    dtype_put_f(one, &cell, p->u.f);
    return gen_splat_int(t, cell & 0xffff);
}

/* An index in the integer type t; a float one is converted. */
static LLVMValueRef index_as(Gen *g, const Idx *x, DType t)
{
    LLVMValueRef v = gen_idx(g, x);

    t.lanes = 1;
    if (dtype_is_bool(t))
        return LLVMBuildICmp(g->b, LLVMIntNE, v, LLVMConstNull(LLVMTypeOf(v)), "");
    if (dtype_is_int(t))
        return LLVMBuildIntCast2(g->b, v, gen_type(g, t), true, "");
    return gen_round_half(g, LLVMBuildSIToFP(g->b, v, t.bits == 64 ? g->f64 : g->f32, ""), t);
}

static LLVMValueRef splat(Gen *g, LLVMValueRef v, uint16_t lanes)
{
    LLVMTypeRef  t = LLVMVectorType(LLVMTypeOf(v), lanes);
    LLVMValueRef poison = LLVMGetPoison(t);

    if (lanes == 1)
        return v;
    v = LLVMBuildInsertElement(g->b, poison, v, gen_i32(g, 0), "");
    return LLVMBuildShuffleVector(g->b, v, poison, LLVMConstNull(LLVMVectorType(g->i32, lanes)),
                                  "");
}

static LLVMValueRef gen_ramp(Gen *g, const Prim *p)
{
    LLVMTypeRef  t = gen_type(g, p->dtype), et = gen_elem_type(t);
    LLVMValueRef at[64];
    uint32_t     n = p->dtype.lanes;

    if (n > 64)
        BUG("in @%s, a vector of %u lanes", g->name, n);
    for (uint32_t i = 0; i < n; i++)
        at[i] = gen_int(g, et, i);
    return LLVMBuildAdd(g->b, splat(g, index_as(g, p->u.index, p->dtype), p->dtype.lanes),
                        LLVMConstVector(at, n), "");
}

static LLVMValueRef gen_vec(Gen *g, const Prim *p)
{
    LLVMValueRef v = gen_near(g, p);

    if (v || (v = gen_lookup(g, p)))
        return v;
    v = LLVMGetPoison(gen_type(g, p->dtype));
    for (uint32_t i = 0; i < p->nkids; i++)
        v = LLVMBuildInsertElement(g->b, v, gen_prim(g, p->kids[i]), gen_i32(g, i), "");
    return v;
}

LLVMValueRef gen_prim(Gen *g, const Prim *p)
{
    LLVMValueRef v = memo_get(&g->stmt, KEY(p));

    if (v)
        return v;
    switch (p->kind) {
    case PRIM_INT:
    case PRIM_FLOAT: return gen_number(g, p);
    case PRIM_INDEX: v = splat(g, index_as(g, p->u.index, p->dtype), p->dtype.lanes); break;
    case PRIM_LOAD: v = gen_load(g, &p->u.load, p->dtype); break;
    case PRIM_ADDR:
    case PRIM_SYMBOL: v = gen_addr(g, p); break;
    case PRIM_SIZEOF: v = gen_i32(g, size_bytes(p->u.size, g->t->pointer_bits)); break;
    case PRIM_ADD:
    case PRIM_SUB:
    case PRIM_MUL:
    case PRIM_DIV:
    case PRIM_REM:
    case PRIM_MIN:
    case PRIM_MAX:
    case PRIM_MINNUM:
    case PRIM_MAXNUM:
    case PRIM_AND:
    case PRIM_OR:
    case PRIM_XOR:
    case PRIM_SHL:
    case PRIM_SHR:
    case PRIM_EQ:
    case PRIM_NE:
    case PRIM_LT:
    case PRIM_LE: v = gen_bin(g, p); break;
    case PRIM_FMA: v = gen_fma(g, p); break;
    case PRIM_INTRIN: v = gen_instruction(g, p); break;
    case PRIM_NOT: v = LLVMBuildNot(g->b, gen_prim(g, p->kids[0]), ""); break;
    case PRIM_SELECT: v = gen_select(g, p); break;
    case PRIM_CAST: v = gen_cast(g, p); break;
    case PRIM_BITS: v = gen_bits_of(g, p); break;
    case PRIM_MATH: v = gen_math(g, p); break;
    case PRIM_CASE: v = gen_case(g, p); break;
    case PRIM_SPLAT: v = splat(g, gen_prim(g, p->kids[0]), p->dtype.lanes); break;
    case PRIM_RAMP: v = gen_ramp(g, p); break;
    case PRIM_VEC: v = gen_vec(g, p); break;
    case PRIM_SHUFFLE: v = gen_shuffle(g, p); break;
    }
    memo_put(g, &g->stmt, KEY(p), v);
    return v;
}
