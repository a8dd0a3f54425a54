/* f16 and bf16 where the language has no such numbers: each operation goes through f32 and rounds,
 * as it does in compiled code (backends/llvm/codegen_half.c).
 *
 *     max(%a[i], %b[i])     f16(max(f32(%a[i]), f32(%b[i]))) */
#include "backends/common/plain.h"

static const Prim *half_prim(Ctx *c, void *user, const Prim *p)
{
    const Prim **kids = NEW_ARRAY(c->arena, const Prim *, p->nkids + 1);
    const DType  f32 = dtype_lanes(DT_F32, p->dtype.lanes);

    (void)user;
    switch (p->kind) {
    case PRIM_ADD:
    case PRIM_SUB:
    case PRIM_MUL:
    case PRIM_DIV:
    case PRIM_REM:
    case PRIM_MIN:
    case PRIM_MAX:
    case PRIM_MINNUM:
    case PRIM_MAXNUM:
    case PRIM_FMA:
    case PRIM_MATH:
    case PRIM_EQ:
    case PRIM_NE:
    case PRIM_LT:
    case PRIM_LE: break;
    case PRIM_INT:
    case PRIM_FLOAT:
    case PRIM_INDEX:
    case PRIM_LOAD:
    case PRIM_INTRIN:
    case PRIM_AND:
    case PRIM_OR:
    case PRIM_XOR:
    case PRIM_SHL:
    case PRIM_SHR:
    case PRIM_NOT:
    case PRIM_SELECT:
    case PRIM_CAST:
    case PRIM_BITS:
    case PRIM_ADDR:
    case PRIM_SYMBOL:
    case PRIM_SIZEOF:
    case PRIM_CASE:
    case PRIM_SPLAT:
    case PRIM_RAMP:
    case PRIM_VEC:
    case PRIM_SHUFFLE: return p; /* bits stay what they are */
    }
    if (!p->nkids || !dtype_is_half(p->kids[0]->dtype))
        return p;
    for (uint32_t i = 0; i < p->nkids; i++)
        kids[i] = prim_cast(c, f32, p->kids[i]);
    const Prim *wide = prim_with_kids(c, p, kids);
    return dtype_is_bool(p->dtype) ? wide : prim_cast(c, p->dtype, wide);
}

const Func *plain_halves(Ctx *c, const Func *f)
{
    TirMap m = {.prim = half_prim};

    return func_with_body(c, f, stmt_map(c, f->body, &m));
}
