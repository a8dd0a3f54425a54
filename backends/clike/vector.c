/* Vectors, where the language has them: GNU's, which add, compare and cast lane by lane.
 *
 *     store_f32x8(&out[i], fma_f32x8(splat_f32x8(a), load_f32x8(&w[j]), reg));
 *
 * Arithmetic is written as C's; what C has no operator for is a function of the prelude, called
 * after the type: those that the prelude does not know compute each lane by the scalar function of
 * the same name.  A condition in lanes is a vector of int32_t, 0 or -1. */
#include "backends/clike/impl.h"

bool clike_has_vectors(const Clike *x, DType t)
{
    return x->program && x->program->vectors && t.lanes > 1;
}

/* what_f32x8(kids) */
static void call(Clike *x, const char *what, DType t, const Prim *p, StrBuf *s)
{
    str_printf(s, "%s(", clike_helper(x->c, what, t));
    for (uint32_t i = 0; i < p->nkids; i++) {
        str_add(s, i ? ", " : "");
        clike_prim(x, p->kids[i], s);
    }
    str_add(s, ")");
}

static void infix(Clike *x, const char *sign, const char *cast, const Prim *p, StrBuf *s)
{
    str_printf(s, "(%s", cast);
    clike_prim(x, p->kids[0], s);
    str_printf(s, " %s %s", sign, cast);
    clike_prim(x, p->kids[1], s);
    str_add(s, ")");
}

/* Whole numbers wrap, which unsigned ones do. */
static void wrapping(Clike *x, const char *sign, const Prim *p, StrBuf *s)
{
    DType u = p->dtype;

    if (u.code == DT_INT) {
        u.code = DT_UINT;
        str_printf(s, "(%s)", clike_type(x, p->dtype));
        infix(x, sign, arena_printf(x->c->arena, "(%s)", clike_type(x, u)), p, s);
    } else {
        infix(x, sign, "", p, s);
    }
}

static void cells(Clike *x, const char *what, const LoadData *l, DType t, StrBuf *s)
{
    str_printf(s, "%s(&%s", clike_helper(x->c, what, t), clike_place(x, l->buffer, l->index[0]));
}

static void load(Clike *x, const Prim *p, StrBuf *s)
{
    const LoadData *l = &p->u.load;

    if (!l->n) {
        str_printf(s, "%s%s", clike_buffer(x, l->buffer), clike_cell(x, l->buffer));
        return;
    }
    cells(x, l->mask ? "loadmask" : "load", l, p->dtype, s);
    if (l->mask) {
        str_add(s, ", ");
        clike_prim(x, l->mask, s);
    }
    str_add(s, ")");
}

void clike_vector_store(Clike *x, const StoreData *d)
{
    const LoadData l = {.buffer = d->buffer, .n = d->n, .index = d->index};
    const char    *value = clike_bare(x, clike_expression(x, d->value));
    StrBuf         s = strbuf(x->c->arena), mask = strbuf(x->c->arena);

    if (d->mask)
        str_printf(&mask, ", %s", clike_expression(x, d->mask));
    cells(x, d->mask ? "storemask" : "store", &l, d->value->dtype, &s);
    clike_indent(x);
    str_printf(x->out, "%s, %s%s);\n", s.at, value, d->mask ? mask.at : "");
}

/* (f32x8){a, b, ..} */
static void list(Clike *x, const Prim *p, StrBuf *s)
{
    const bool flags = dtype_is_bool(p->dtype);

    str_printf(s, "((%s){", clike_type(x, p->dtype));
    for (uint32_t i = 0; i < p->nkids; i++) {
        str_add(s, i ? ", " : "");
        clike_prim(x, p->kids[i], s);
        str_add(s, flags ? " ? -1 : 0" : "");
    }
    str_add(s, "})");
}

/* The operand has a name (names.c). */
static void shuffle(Clike *x, const Prim *p, StrBuf *s)
{
    StrBuf from = strbuf(x->c->arena);

    clike_prim(x, p->kids[0], &from);
    str_printf(s, "((%s){", clike_type(x, p->dtype));
    for (uint32_t i = 0; i < p->dtype.lanes; i++)
        str_printf(s, "%s%s[%u]", i ? ", " : "", from.n ? from.at : "0", p->u.from[i]);
    str_add(s, "})");
}

static void cast(Clike *x, const Prim *p, StrBuf *s)
{
    const char *from = dtype_text(x->c, p->kids[0]->dtype);

    str_printf(s, "%s_of_%s(", dtype_text(x->c, p->dtype), from);
    clike_prim(x, p->kids[0], s);
    str_add(s, ")");
}

static void select(Clike *x, const Prim *p, StrBuf *s)
{
    if (p->kids[0]->dtype.lanes > 1) {
        call(x, "select", p->dtype, p, s);
        return;
    }
    for (uint32_t i = 0; i < 3; i++) {
        str_add(s, i == 0 ? "(" : i == 1 ? " ? " : " : ");
        clike_prim(x, p->kids[i], s);
    }
    str_add(s, ")");
}

static void splat_of(Clike *x, const Prim *p, StrBuf *s)
{
    StrBuf number = strbuf(x->c->arena);
    DType  one = dtype_lanes(p->dtype, 1);

    if (p->kind == PRIM_FLOAT)
        x->d->real(&number, one, p->u.f);
    else if (p->kind == PRIM_INT)
        x->d->integer(&number, one, p->u.i);
    else
        str_printf(&number, "(%s)%s", clike_type(x, one), clike_index_text(x, p->u.index));
    str_printf(s, "%s(%s)", clike_helper(x->c, p->kind == PRIM_RAMP ? "ramp" : "splat", p->dtype),
               number.at);
}

void clike_vector(Clike *x, const Prim *p, StrBuf *s)
{
    const DType of = p->nkids ? p->kids[0]->dtype : p->dtype;
    const bool  real = dtype_is_float(p->dtype), flags = dtype_is_bool(p->dtype);
    const char *fn;

    switch (p->kind) {
    case PRIM_INT:
    case PRIM_FLOAT:
    case PRIM_INDEX:
    case PRIM_RAMP: splat_of(x, p, s); return;
    case PRIM_LOAD: load(x, p, s); return;
    case PRIM_ADD:
    case PRIM_SUB:
    case PRIM_MUL:
        fn = p->kind == PRIM_ADD ? "+" : p->kind == PRIM_SUB ? "-" : "*";
        if (real)
            infix(x, fn, "", p, s);
        else
            wrapping(x, fn, p, s);
        return;
    case PRIM_DIV:
        if (real)
            infix(x, "/", "", p, s);
        else
            call(x, "div", p->dtype, p, s);
        return;
    case PRIM_AND: infix(x, "&", "", p, s); return;
    case PRIM_OR: infix(x, "|", "", p, s); return;
    case PRIM_XOR: infix(x, "^", "", p, s); return;
    case PRIM_NOT:
        str_add(s, "(~");
        clike_prim(x, p->kids[0], s);
        str_add(s, ")");
        return;
    case PRIM_REM: call(x, "rem", p->dtype, p, s); return;
    case PRIM_SHL: call(x, "shl", p->dtype, p, s); return;
    case PRIM_SHR: call(x, "shr", p->dtype, p, s); return;
    case PRIM_EQ: call(x, "eq", of, p, s); return;
    case PRIM_NE: call(x, "ne", of, p, s); return;
    case PRIM_LT: call(x, "lt", of, p, s); return;
    case PRIM_LE: call(x, "le", of, p, s); return;
    case PRIM_MIN: call(x, "min", p->dtype, p, s); return;
    case PRIM_MAX: call(x, "max", p->dtype, p, s); return;
    case PRIM_MINNUM: call(x, real ? "minnum" : "min", p->dtype, p, s); return;
    case PRIM_MAXNUM: call(x, real ? "maxnum" : "max", p->dtype, p, s); return;
    case PRIM_FMA: call(x, "fma", p->dtype, p, s); return;
    case PRIM_SELECT: select(x, p, s); return;
    case PRIM_CAST: cast(x, p, s); return;
    case PRIM_BITS:
        str_printf(s, "((%s)", clike_type(x, p->dtype));
        clike_prim(x, p->kids[0], s);
        str_add(s, ")");
        return;
    case PRIM_MATH:
        if (!(fn = x->d->math(p->u.math, dtype_lanes(p->dtype, 1))))
            break;
        call(x, fn, p->dtype, p, s);
        return;
    case PRIM_SPLAT:
        str_printf(s, "%s(", clike_helper(x->c, "splat", p->dtype));
        clike_prim(x, p->kids[0], s);
        str_add(s, flags ? " ? -1 : 0)" : ")");
        return;
    case PRIM_VEC: list(x, p, s); return;
    case PRIM_SHUFFLE: shuffle(x, p, s); return;
    case PRIM_CASE: clike_case(x, p, s); return;
    case PRIM_INTRIN:
    case PRIM_ADDR:
    case PRIM_SYMBOL:
    case PRIM_SIZEOF: break;
    }
    BUG("%s: an expression of kind %d in lanes", x->d->name, (int)p->kind);
}
