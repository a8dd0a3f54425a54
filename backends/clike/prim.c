/* Expressions.
 *
 * Every operation is written with the casts and parentheses that make it mean what ir/tir/tir.h
 * says, whatever C's rules of promotion: whole numbers wrap, shift amounts are taken modulo the
 * width. */
#include "backends/clike/impl.h"

#include <string.h>

/* More text than any kernel; only conditions within conditions that share their arms come near. */
enum { MAX_TEXT = 1 << 24 };

const char *clike_type(Clike *x, DType t)
{
    const char *s = t.lanes == 1                  ? x->d->type(t)
                    : clike_is_word(x, t)         ? x->d->type(DT_U32)
                    : clike_has_vectors(x, t)     ? dtype_text(x->c, t)
                    : !x->program && x->d->vector ? x->d->vector(x->c, t)
                                                  : NULL;

    if (s)
        return s;
    if (!x->failed)
        error_at(x->c, E_CODEGEN, x->f->loc, "%s has no type %s, which kernel '%s' uses",
                 x->d->name, dtype_text(x->c, t), x->f->name);
    x->failed = true;
    return "int";
}

static const char *binary_sign(PrimKind k)
{
    switch (k) {
    case PRIM_ADD: return "+";
    case PRIM_SUB: return "-";
    case PRIM_MUL: return "*";
    case PRIM_DIV: return "/";
    case PRIM_REM: return "%";
    case PRIM_AND: return "&";
    case PRIM_OR: return "|";
    case PRIM_XOR: return "^";
    case PRIM_SHL: return "<<";
    case PRIM_SHR: return ">>";
    case PRIM_EQ: return "==";
    case PRIM_NE: return "!=";
    case PRIM_LT: return "<";
    case PRIM_LE: return "<=";
    default: return NULL;
    }
}

static void print_size(const Clike *x, SizeData size, StrBuf *s)
{
    const char *record = x->program->record(x->program->user, size.record);

    if (size.before)
        str_printf(s, "(uint32_t)offsetof(%s, %s)", record, size.before->name);
    else
        str_printf(s, "(uint32_t)sizeof(%s)", record);
}

static void print_call(Clike *x, const char *fn, const Prim *p, StrBuf *s)
{
    str_printf(s, "%s(", fn);
    for (uint32_t i = 0; i < p->nkids; i++) {
        if (i)
            str_add(s, ", ");
        clike_prim(x, p->kids[i], s);
    }
    str_add(s, ")");
}

/* A function of the prelude: operands would otherwise stand in the text more than once. */
static void print_helper(Clike *x, const char *name, const Prim *p, StrBuf *s)
{
    clike_type(x, p->dtype); /* records the error if there is none */
    print_call(x, clike_helper(x->c, name, p->dtype), p, s);
}

/* A signed number of so many bits holds p; looks at few levels of it. */
static int bits_of(const Prim *p, int levels)
{
    DType t = p->dtype;
    int   all = t.bits + (t.code != DT_INT), a, b;

    if (p->kind == PRIM_INT) {
        for (a = 1; a < 64 && p->u.i != (int64_t)((uint64_t)p->u.i << (64 - a)) >> (64 - a);)
            a++;
        return a;
    }
    if (p->kind == PRIM_CAST && dtype_is_int(p->kids[0]->dtype) && levels) {
        a = bits_of(p->kids[0], levels - 1);
        return a < all ? a : all;
    }
    if ((p->kind != PRIM_ADD && p->kind != PRIM_SUB && p->kind != PRIM_MUL) || !levels)
        return all;
    a = bits_of(p->kids[0], levels - 1), b = bits_of(p->kids[1], levels - 1);
    a = p->kind == PRIM_MUL ? a + b : (a > b ? a : b) + 1;
    return a < all ? a : all;
}

/* a + b, a - b or a * b of 32 bits or more that leaves its type for no value of what it is made of:
 * C's own arithmetic does. */
static bool stays(const Prim *p)
{
    int a, b;

    if (p->dtype.code != DT_INT || p->dtype.bits < 32)
        return false;
    a = bits_of(p->kids[0], 3), b = bits_of(p->kids[1], 3);
    return (p->kind == PRIM_MUL ? a + b : (a > b ? a : b) + 1) <= p->dtype.bits;
}

/* By how many bits: modulo the width. */
static void print_shift(Clike *x, const Prim *by, int most, StrBuf *s)
{
    if (x->d->promotes && by->kind == PRIM_INT) {
        str_printf(s, "%d", (int)(by->u.i & most));
        return;
    }
    str_add(s, "(");
    clike_prim(x, by, s);
    str_printf(s, " & %d)", most);
}

/* a OP b where whole numbers wrap and shift amounts are taken modulo the width. */
static void print_whole(Clike *x, const Prim *p, StrBuf *s)
{
    DType t = p->kids[0]->dtype, u = t;
    bool  shifts = p->kind == PRIM_SHL || p->kind == PRIM_SHR;
    bool  wraps = p->kind == PRIM_ADD || p->kind == PRIM_SUB || p->kind == PRIM_MUL;

    if (wraps && x->d->promotes && stays(p)) {
        str_add(s, "(");
        clike_prim(x, p->kids[0], s);
        str_printf(s, " %s ", binary_sign(p->kind));
        clike_prim(x, p->kids[1], s);
        str_add(s, ")");
        return;
    }
    u.code = t.code == DT_INT ? DT_UINT : t.code;
    if (x->d->promotes && u.bits < 32) /* 65535 * 65535 is too large for an int */
        u.bits = 32;
    const char *cast =
        wraps || p->kind == PRIM_SHL ? arena_printf(x->c->arena, "(%s)", clike_type(x, u)) : "";
    /* C has the result in the type of the operands, if that is not narrower than an int. */
    bool plain = x->d->promotes && t.bits >= 32 && !*cast;
    if (!dtype_is_bool(p->dtype) && !plain)
        str_printf(s, "(%s)", clike_type(x, p->dtype));
    str_printf(s, "(%s", cast);
    clike_prim(x, p->kids[0], s);
    str_printf(s, " %s ", binary_sign(p->kind));
    if (shifts)
        print_shift(x, p->kids[1], t.bits - 1, s);
    else
        str_add(s, cast), clike_prim(x, p->kids[1], s);
    str_add(s, ")");
}

static void print_side(Clike *x, const Idx *i, bool positive, StrBuf *s)
{
    const Idx *sum = idx_const(x->c->arith, 0);

    for (uint32_t t = 0; t < i->nterms; t++)
        if ((i->t[t].coef > 0) == positive)
            sum = idx_add(x->c->arith, sum,
                          idx_mulc(x->c->arith, idx_atom(x->c->arith, i->t[t].atom),
                                   positive ? i->t[t].coef : -i->t[t].coef));
    if ((i->c0 > 0) == positive && i->c0 != INT64_MIN && sum->nterms | (i->c0 != 0))
        sum = idx_addc(x->c->arith, sum, positive ? i->c0 : -i->c0);
    clike_index(x, sum, s);
}

/* 0 <= i - j and its kin as people write them: i >= j. */
static bool print_condition(Clike *x, const Prim *p, StrBuf *s)
{
    const char *sign = p->kind == PRIM_LE   ? ">="
                       : p->kind == PRIM_EQ ? "=="
                       : p->kind == PRIM_NE ? "!="
                                            : NULL;
    const Prim *a = p->kids[0], *i = p->kids[1];

    if (p->kind != PRIM_LE && a->kind == PRIM_INDEX)
        a = p->kids[1], i = p->kids[0];
    if (!sign || a->kind != PRIM_INT || a->u.i || i->kind != PRIM_INDEX || i->dtype.bits != 64 ||
        i->dtype.lanes != 1 || map_get(x->temps, i->id))
        return false;
    str_add(s, "(");
    print_side(x, i->u.index, true, s);
    str_printf(s, " %s ", sign);
    print_side(x, i->u.index, false, s);
    str_add(s, ")");
    return true;
}

static void print_binary(Clike *x, const Prim *p, StrBuf *s)
{
    if (print_condition(x, p, s))
        return;
    if (dtype_is_int(p->kids[0]->dtype)) {
        if (p->kind == PRIM_DIV || p->kind == PRIM_REM)
            print_helper(x, p->kind == PRIM_DIV ? "div" : "rem", p, s);
        else
            print_whole(x, p, s);
        return;
    }
    const char *sign = binary_sign(p->kind);
    if (x->d->promotes && (p->kind == PRIM_AND || p->kind == PRIM_OR)) /* of conditions */
        sign = p->kind == PRIM_AND ? "&&" : "||";
    str_add(s, "(");
    clike_prim(x, p->kids[0], s);
    str_printf(s, " %s ", sign);
    clike_prim(x, p->kids[1], s);
    str_add(s, ")");
}

static void print_load(Clike *x, const Prim *p, StrBuf *s)
{
    const Buffer *b = p->u.load.buffer;

    if (p->u.load.mask)
        clike_type(x, dtype_lanes(p->dtype, 2)); /* records the error: no masks */
    if (p->u.load.member) {
        bool local = b->scope == SCOPE_STACK;
        str_printf(s, "%s%s%s", clike_buffer(x, b), local ? "." : "->", p->u.load.member->name);
        return;
    }
    if (p->u.load.n == 0) {
        str_printf(s, "%s%s", clike_buffer(x, b), clike_cell(x, b));
        return;
    }
    if (clike_image(x, b))
        clike_texel(x, p, s);
    else
        str_add(s, clike_place(x, b, p->u.load.index[0]));
}

static void print_cast(Clike *x, const Prim *p, StrBuf *s)
{
    DType       from = p->kids[0]->dtype;
    const char *fn;

    if (dtype_is_bool(p->dtype)) {
        bool half = dtype_is_half(from); /* -0 is two numbers of bits */
        str_printf(s, "(%s%s", half ? clike_convert(x->c, x->d, DT_F32, from) : "",
                   half ? "(" : "");
        clike_prim(x, p->kids[0], s);
        str_add(s, half ? ") != 0)" : " != 0)");
        return;
    }
    if ((fn = clike_convert(x->c, x->d, p->dtype, from))) {
        clike_type(x, p->dtype); /* records the error if there is none */
        str_printf(s, "%s(", fn);
    } else {
        str_printf(s, "(%s)%s(", clike_type(x, p->dtype),
                   dtype_is_handle(from) ? "(uintptr_t)" : "");
    }
    clike_prim(x, p->kids[0], s);
    str_add(s, ")");
}

static void print_select(Clike *x, const Prim *p, StrBuf *s)
{
    for (uint32_t i = 0; i < 3; i++) {
        str_add(s, i == 0 ? "(" : i == 1 ? " ? " : " : ");
        clike_prim(x, p->kids[i], s);
    }
    str_add(s, ")");
}

void clike_case(Clike *x, const Prim *p, StrBuf *s)
{
    for (uint32_t i = 0; i + 1 < p->nkids; i++) {
        str_add(s, "(");
        clike_index(x, p->u.index, s);
        str_printf(s, " == %u ? ", i);
        clike_prim(x, p->kids[i], s);
        str_add(s, " : ");
    }
    clike_prim(x, p->kids[p->nkids - 1], s);
    for (uint32_t i = 0; i + 1 < p->nkids; i++)
        str_add(s, ")");
}

static void print_math(Clike *x, const Prim *p, StrBuf *s)
{
    const char *fn = x->d->math(p->u.math, p->dtype);

    if (fn) {
        print_call(x, fn, p, s);
        return;
    }
    x->failed = true;
    error_at(x->c, E_CODEGEN, x->f->loc, "%s has no function %u for kernel '%s'", x->d->name,
             (unsigned)p->u.math, x->f->name);
}

void clike_node(Clike *x, const Prim *p, StrBuf *s)
{
    if (!x->program && (p->dtype.lanes > 1 || p->kind == PRIM_SHUFFLE)) {
        clike_wide(x, p, s);
        return;
    }
    if (clike_has_vectors(x, p->dtype)) {
        clike_vector(x, p, s);
        return;
    }
    switch (p->kind) {
    case PRIM_INT:
        if (dtype_is_handle(p->dtype))
            str_add(s, "NULL");
        else
            x->d->integer(s, p->dtype, p->u.i);
        return;
    case PRIM_FLOAT:
        clike_type(x, p->dtype); /* records the error if there is none */
        x->d->real(s, p->dtype, p->u.f);
        return;
    case PRIM_INDEX:
        if (!p->u.index->nterms || strcmp(clike_type(x, p->dtype), x->index))
            str_printf(s, "(%s)", clike_type(x, p->dtype));
        clike_index(x, p->u.index, s);
        return;
    case PRIM_LOAD: print_load(x, p, s); return;
    case PRIM_ADD:
    case PRIM_SUB:
    case PRIM_MUL:
    case PRIM_DIV:
    case PRIM_REM:
    case PRIM_AND:
    case PRIM_OR:
    case PRIM_XOR:
    case PRIM_SHL:
    case PRIM_SHR:
    case PRIM_EQ:
    case PRIM_NE:
    case PRIM_LT:
    case PRIM_LE: print_binary(x, p, s); return;
    case PRIM_MIN: print_helper(x, "min", p, s); return;
    case PRIM_MAX: print_helper(x, "max", p, s); return;
    case PRIM_MINNUM: print_helper(x, dtype_is_float(p->dtype) ? "minnum" : "min", p, s); return;
    case PRIM_MAXNUM: print_helper(x, dtype_is_float(p->dtype) ? "maxnum" : "max", p, s); return;
    case PRIM_FMA:
        if (x->d->fma)
            print_call(x, x->d->fma, p, s);
        else
            print_helper(x, "fma", p, s);
        return;
    case PRIM_NOT:
        if (x->d->promotes && !dtype_is_bool(p->dtype))
            str_printf(s, "(%s)", clike_type(x, p->dtype));
        str_add(s, dtype_is_bool(p->dtype) ? "(!" : "(~");
        clike_prim(x, p->kids[0], s);
        str_add(s, ")");
        return;
    case PRIM_SELECT: print_select(x, p, s); return;
    case PRIM_CAST: print_cast(x, p, s); return;
    case PRIM_BITS:
        clike_type(x, p->dtype); /* records the error if there is none */
        print_call(x, clike_pun(x->c, x->d, p->dtype, p->kids[0]->dtype), p, s);
        return;
    case PRIM_MATH: print_math(x, p, s); return;
    case PRIM_CASE: clike_case(x, p, s); return;
    case PRIM_ADDR:
    case PRIM_SYMBOL: clike_address(x, p, s); return;
    case PRIM_SIZEOF: print_size(x, p->u.size, s); return;
    case PRIM_INTRIN: clike_sum(x, p, s); return;
    case PRIM_SPLAT:
    case PRIM_RAMP:
    case PRIM_VEC:
    case PRIM_SHUFFLE: break;
    }
    clike_type(x, p->dtype); /* records the error: no vectors */
}

void clike_prim(Clike *x, const Prim *p, StrBuf *s)
{
    const char *name = map_get(x->temps, p->id);

    if (!x->failed && s->n + x->out->n > MAX_TEXT) {
        x->failed = true;
        error_at(x->c, E_CODEGEN, x->f->loc, "kernel '%s' is too large as text of %s", x->f->name,
                 x->d->name);
    }
    if (x->failed)
        return;
    if (name)
        str_add(s, name);
    else
        clike_node(x, p, s);
}
