/* A vector of cells of a table of 256 bytes, each by a byte (ir/tir/lookup.h): the table in
 * registers, instead of a load for each.
 *
 *     [t[x[0]], t[x[1]], .. t[x[63]]]   ->  load x[0..63], two vpermi2b by 7 bits, a blend by the
 * 8th
 *
 * lookup.def says how, by architecture and CPU.  A row has a register of bytes
 * that say cells, and fills up shorter vectors; where there is no row the loads stay. */
#include "backends/llvm/llvm.h"
#include "ir/tir/lookup.h"

enum { MOST = 64 };

typedef LLVMValueRef LookupFn(Gen *g, LLVMValueRef table, LLVMValueRef at, unsigned n);

#define LOOKUP(arch, caps, least, bytes, function) LookupFn function;
#include "backends/llvm/lookup.def"
#undef LOOKUP

typedef struct {
    Arch      arch;
    uint32_t  caps;
    unsigned  least, bytes;
    LookupFn *write;
} Row;

static const Row rows[] = {
#define LOOKUP(arch, caps, least, bytes, function) {ARCH_##arch, caps, least, bytes, function},
#include "backends/llvm/lookup.def"
#undef LOOKUP
};

static const Row *row_for(const Gen *g, unsigned n)
{
    for (uint32_t i = 0; i < COUNT(rows); i++)
        if (rows[i].arch == g->arch && !(rows[i].caps & ~g->caps) && n >= rows[i].least &&
            n <= rows[i].bytes)
            return &rows[i];
    return NULL;
}

/* The bytes that say where, as a vector; NULL: these are no lookups in one table, or it takes a
 * load for each. */
static LLVMValueRef bytes_of(Gen *g, const Prim *p, Lookup *first)
{
    const Prim *byte[MOST], *all;
    Lookup      l;

    for (uint32_t i = 0; i < p->nkids; i++) {
        if (!prim_lookup(p->kids[i], i ? &l : first))
            return NULL;
        if (i && (l.table != first->table || l.offset != first->offset ||
                  !dtype_eq(l.byte->dtype, first->byte->dtype)))
            return NULL;
        byte[i] = i ? l.byte : first->byte;
    }
    all = prim_vec(g->c, p->nkids, byte);
    return all->kind == PRIM_LOAD  ? gen_prim(g, all)
           : all->kind == PRIM_VEC ? gen_near(g, all)
                                   : NULL;
}

LLVMValueRef gen_lookup(Gen *g, const Prim *p)
{
    unsigned     n = p->nkids;
    const Row   *row = n <= MOST ? row_for(g, n) : NULL;
    Lookup       l;
    LLVMValueRef at = row ? bytes_of(g, p, &l) : NULL, table, out;
    const Idx   *zero = idx_const(g->c->arith, 0);
    uint32_t     align;

    if (!at)
        return NULL;
    if (l.offset)
        at = LLVMBuildAdd(g->b, at, gen_splat_int(LLVMTypeOf(at), l.offset), "");
    table = gen_address(g, l.table, 1, &zero, &align);
    out = row->write(g, table, n < row->bytes ? gen_lanes_of(g, at, 0, 1, row->bytes) : at,
                     row->bytes);
    return n < row->bytes ? gen_lanes_of(g, out, 0, 1, n) : out;
}

LLVMValueRef gen_table_part(Gen *g, LLVMValueRef table, unsigned first, unsigned n)
{
    LLVMValueRef by = gen_i32(g, first), v;
    LLVMTypeRef  bytes = LLVMVectorType(g->i8, n);

    v = LLVMBuildLoad2(g->b, bytes, LLVMBuildGEP2(g->b, g->i8, table, &by, 1, ""), "");
    LLVMSetAlignment(v, 1);
    return v;
}
