/* Instructions of ir/tir/intrin.def, by the rows of intrin.def.
 *
 * What all share: operands are seen as words, integers that each hold what one unit reads.  A word
 * that all units share is spread.  Vectors wider or narrower than a register are cut into registers
 * and filled up; what fills up is dropped afterwards. */
#include "backends/llvm/llvm.h"

typedef LLVMValueRef WriteFn(Gen *g, const GenUnits *u);

#define WRITE(id, arch, caps, bytes, ops, function) WriteFn function;
#include "backends/llvm/intrin.def"
#undef WRITE

typedef struct {
    IntrinId id;
    Arch     arch;
    uint32_t caps, bytes;
    uint8_t  ops;
    WriteFn *write;
} Row;

static const Row rows[] = {
#define WRITE(id, arch, caps, bytes, ops, function) \
    {INTRIN_##id, ARCH_##arch, caps, bytes, ops, function},
#include "backends/llvm/intrin.def"
#undef WRITE
};

static const Row *row_of(IntrinId id, Arch arch, uint32_t caps)
{
    for (uint32_t i = 0; i < COUNT(rows); i++)
        if (rows[i].id == id && rows[i].arch == arch && !(rows[i].caps & ~caps))
            return &rows[i];
    return NULL;
}

void set_intrin_ops(Target *t, Arch arch, uint32_t caps)
{
    for (uint32_t id = 0; id < INTRIN_COUNT; id++) {
        const Row *row = row_of((IntrinId)id, arch, caps);

        t->intrin_ops[id] = row ? row->ops : 0;
    }
}

bool gen_has_instruction(const Gen *g, IntrinId id)
{
    return row_of(id, g->arch, g->caps) != NULL;
}

/* ---- vectors ------------------------------------------------------------------------------------------- */

LLVMValueRef gen_as(Gen *g, LLVMValueRef v, LLVMTypeRef elem, unsigned lanes)
{
    return LLVMBuildBitCast(g->b, v, LLVMVectorType(elem, lanes), "");
}

static LLVMValueRef lanes_from(Gen *g, LLVMValueRef v, unsigned n, LLVMValueRef *at)
{
    return LLVMBuildShuffleVector(g->b, v, LLVMGetPoison(LLVMTypeOf(v)), LLVMConstVector(at, n),
                                  "");
}

LLVMValueRef gen_lanes_of(Gen *g, LLVMValueRef v, unsigned first, unsigned step, unsigned n)
{
    LLVMValueRef at[256];
    unsigned     have = LLVMGetVectorSize(LLVMTypeOf(v));

    for (unsigned i = 0; i < n; i++)
        at[i] = first + i * step < have ? gen_i32(g, first + i * step) : LLVMGetPoison(g->i32);
    return lanes_from(g, v, n, at);
}

LLVMValueRef gen_shuffle(Gen *g, const Prim *p)
{
    LLVMValueRef  v = gen_prim(g, p->kids[0]);
    LLVMValueRef *at = NEW_ARRAY(g->a, LLVMValueRef, p->dtype.lanes);

    for (uint32_t i = 0; i < p->dtype.lanes; i++)
        at[i] = gen_i32(g, p->u.from[i]);
    return p->dtype.lanes == 1 ? LLVMBuildExtractElement(g->b, v, at[0], "")
                               : lanes_from(g, v, p->dtype.lanes, at);
}

LLVMValueRef gen_extended(Gen *g, LLVMValueRef v, bool sign, LLVMTypeRef elem)
{
    LLVMTypeRef t = gen_with_lanes_of(elem, LLVMTypeOf(v));

    return sign ? LLVMBuildSExt(g->b, v, t, "") : LLVMBuildZExt(g->b, v, t, "");
}

enum { MAX_WORD = 512 };

/* ---- operands ------------------------------------------------------------------------------------------ */

/* The widest integers among the operands: narrower ones are widened first. */
static uint32_t widest(const Intrin *row)
{
    uint32_t bits = 0;

    for (uint32_t i = 0; i + row->sums < row->n; i++)
        bits = row->operand[i].dtype.bits > bits ? row->operand[i].dtype.bits : bits;
    return bits;
}

/* An operand as n words; one of more than a register stays a vector. */
static LLVMValueRef words(Gen *g, const Intrin *row, uint32_t i, const Prim *p, unsigned n)
{
    LLVMValueRef v = gen_prim(g, p);
    unsigned     cells = row->operand[i].cells, bits = widest(row);

    if (p->dtype.bits < bits)
        v = gen_extended(g, v, p->dtype.code == DT_INT, LLVMIntTypeInContext(g->lc, bits));
    if (cells * bits > MAX_WORD && p->dtype.lanes == cells)
        return v;
    v = gen_as(g, v, LLVMIntTypeInContext(g->lc, cells * bits), p->dtype.lanes / cells);
    if (p->dtype.lanes == cells && n > 1)
        v = LLVMBuildShuffleVector(g->b, v, LLVMGetPoison(LLVMTypeOf(v)),
                                   LLVMConstNull(LLVMVectorType(g->i32, n)), "");
    return v;
}

/* ---- registers ----------------------------------------------------------------------------------------- */

/* Units in a register for n of them. */
static unsigned register_units(const Gen *g, const Row *w, const Intrin *row, unsigned n)
{
    unsigned unit = row->result.cells * row->result.dtype.bits / 8, most = w->bytes, r;
    unsigned least = most < 16 ? most : 16; /* GPUs have registers of a word */

    if (g->arch == ARCH_X86 && !(g->caps & CAP_AVX512))
        most = most > 32 ? 32 : most;
    if (g->arch == ARCH_X86 && !(g->caps & CAP_AVX2))
        most = 16;
    for (r = unit < least ? least / unit : 1; r < n && 2 * r * unit <= most;)
        r *= 2;
    return r;
}

static LLVMValueRef joined(Gen *g, LLVMValueRef whole, LLVMValueRef part, unsigned at)
{
    for (unsigned i = 0; i < LLVMGetVectorSize(LLVMTypeOf(part)); i++) {
        if (at + i >= LLVMGetVectorSize(LLVMTypeOf(whole)))
            break;
        LLVMValueRef x = LLVMBuildExtractElement(g->b, part, gen_i32(g, i), "");
        whole = LLVMBuildInsertElement(g->b, whole, x, gen_i32(g, at + i), "");
    }
    return whole;
}

/* ---- of warps, and copies ------------------------------------------------------------------------------ */

static LLVMValueRef address_of(Gen *g, const Prim *load)
{
    uint32_t align;

    return gen_address(g, load->u.load.buffer, load->u.load.n, load->u.load.index, &align);
}

static LLVMValueRef of_warp(Gen *g, const Prim *p, const Row *w)
{
    GenUnits all = {.row = p->u.intrin, .n = 1};

    for (uint32_t i = 0; i < p->nkids; i++)
        all.operand[i] = p->u.intrin->sums ? gen_prim(g, p->kids[i]) : address_of(g, p->kids[i]);
    return w->write(g, &all);
}

void gen_async_copy(Gen *g, const StoreData *s)
{
    GenUnits all = {.row = s->value->u.intrin, .n = 1};
    uint32_t align;

    all.operand[0] = gen_address(g, s->buffer, s->n, s->index, &align);
    all.operand[1] = address_of(g, s->value->kids[0]);
    if (s->value->kids[0]->u.load.mask) {
        LLVMValueRef holds = gen_prim(g, s->value->kids[0]->u.load.mask->kids[0]);
        all.operand[2] = LLVMBuildSelect(g->b, holds, gen_i32(g, 16), gen_i32(g, 0), "");
    }
    row_of(all.row->id, g->arch, g->caps)->write(g, &all);
}

LLVMValueRef gen_instruction(Gen *g, const Prim *p)
{
    const Intrin *row = p->u.intrin;
    const Row    *w = row_of(row->id, g->arch, g->caps);
    unsigned      lanes = p->dtype.lanes, cells = row->result.cells, n = lanes / cells, r;
    GenUnits      all = {.row = row, .n = n};
    LLVMValueRef  out;

    if (!w)
        return gen_prim(g, intrin_expand(g->c, p));
    if (row->warp)
        return of_warp(g, p, w);
    if (row->sums) {
        out = gen_prim(g, p->kids[row->n - 1]);
        all.operand[row->n - 1] = lanes > 1 ? out : gen_as(g, out, LLVMTypeOf(out), 1);
    }
    for (uint32_t i = 0; i + row->sums < row->n; i++)
        all.operand[i] = words(g, row, i, p->kids[i], n);
    r = register_units(g, w, row, n);
    if (r == n) {
        out = w->write(g, &all);
    } else {
        out = LLVMGetPoison(LLVMVectorType(gen_type(g, dtype_lanes(p->dtype, 1)), lanes));
        for (unsigned at = 0; at < n; at += r) {
            GenUnits part = {.row = row, .n = r};
            for (uint32_t i = 0; i + row->sums < row->n; i++)
                part.operand[i] = gen_lanes_of(g, all.operand[i], at, 1, r);
            if (row->sums)
                part.operand[row->n - 1] =
                    gen_lanes_of(g, all.operand[row->n - 1], at * cells, 1, r * cells);
            out = n < r ? gen_lanes_of(g, w->write(g, &part), 0, 1, lanes)
                        : joined(g, out, w->write(g, &part), at * cells);
        }
    }
    return lanes > 1 ? out : LLVMBuildExtractElement(g->b, out, gen_i32(g, 0), "");
}
