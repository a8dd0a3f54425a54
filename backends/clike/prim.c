/* Expressions.
 *
 * Every operation is written with the casts and parentheses that make it mean what ir/tir/tir.h
 * says, whatever C's rules of promotion: whole numbers wrap, shift amounts are taken modulo the
 * width. */
#include "backends/clike/impl.h"

#include <math.h>
#include <string.h>

/* More text than any kernel; only conditions within conditions that share their arms come near. */
enum { MAX_TEXT = 1 << 24 };

const char *clike_type(Clike *x, DType t)
{
    const char *s = t.lanes == 1 ? x->d->type(t) : NULL;

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

static void print_float(Clike *x, const Prim *p, StrBuf *s)
{
    double v = p->u.f;

    if (isnan(v))
        str_printf(s, "(%s)NAN", clike_type(x, p->dtype));
    else if (isinf(v))
        str_printf(s, "(%s)%sINFINITY", clike_type(x, p->dtype), v < 0 ? "-" : "");
    else if (p->dtype.bits == 64)
        str_printf(s, "%a", v);
    else
        str_printf(s, "%af", v);
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
    str_printf(s, "%s_%s", name, clike_type(x, p->dtype));
    print_call(x, "", p, s);
}

/* a OP b where whole numbers wrap and shift amounts are taken modulo the width. */
static void print_whole(Clike *x, const Prim *p, StrBuf *s)
{
    DType t = p->kids[0]->dtype, u = t;
    bool  shifts = p->kind == PRIM_SHL || p->kind == PRIM_SHR;
    bool  wraps = p->kind == PRIM_ADD || p->kind == PRIM_SUB || p->kind == PRIM_MUL;

    u.code = t.code == DT_INT ? DT_UINT : t.code;
    const char *cast =
        wraps || p->kind == PRIM_SHL ? arena_printf(x->c->arena, "(%s)", clike_type(x, u)) : "";
    if (!dtype_is_bool(p->dtype))
        str_printf(s, "(%s)", clike_type(x, p->dtype));
    str_printf(s, "(%s", cast);
    clike_prim(x, p->kids[0], s);
    str_printf(s, " %s %s", binary_sign(p->kind), shifts ? "(" : cast);
    clike_prim(x, p->kids[1], s);
    str_printf(s, shifts ? " & %d))" : ")", t.bits - 1);
}

static void print_binary(Clike *x, const Prim *p, StrBuf *s)
{
    if (dtype_is_int(p->kids[0]->dtype)) {
        if (p->kind == PRIM_DIV || p->kind == PRIM_REM)
            print_helper(x, p->kind == PRIM_DIV ? "div" : "rem", p, s);
        else
            print_whole(x, p, s);
        return;
    }
    str_add(s, "(");
    clike_prim(x, p->kids[0], s);
    str_printf(s, " %s ", binary_sign(p->kind));
    clike_prim(x, p->kids[1], s);
    str_add(s, ")");
}

static void print_load(Clike *x, const Prim *p, StrBuf *s)
{
    const Buffer *b = p->u.load.buffer;

    if (p->u.load.mask)
        clike_type(x, dtype_lanes(p->dtype, 2)); /* records the error: no masks */
    if (p->u.load.n == 0) {
        str_printf(s, "b%u%s", clike_buffer(x, b), clike_cell(x, b));
        return;
    }
    str_printf(s, "b%u[", clike_buffer(x, b));
    clike_index(x, p->u.load.index[0], s);
    str_add(s, "]");
}

void clike_node(Clike *x, const Prim *p, StrBuf *s)
{
    switch (p->kind) {
    case PRIM_INT:
        if (p->dtype.bits == 64)
            str_printf(s, "%lldL", (long long)p->u.i);
        else
            str_printf(s, "%lld", (long long)p->u.i);
        return;
    case PRIM_FLOAT: print_float(x, p, s); return;
    case PRIM_INDEX:
        if (!p->u.index->nterms || strcmp(clike_type(x, p->dtype), x->d->index_type))
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
    case PRIM_FMA: print_call(x, x->d->fma, p, s); return;
    case PRIM_NOT:
        str_add(s, dtype_is_bool(p->dtype) ? "(!" : "(~");
        clike_prim(x, p->kids[0], s);
        str_add(s, ")");
        return;
    case PRIM_SELECT:
        str_add(s, "(");
        clike_prim(x, p->kids[0], s);
        str_add(s, " ? ");
        clike_prim(x, p->kids[1], s);
        str_add(s, " : ");
        clike_prim(x, p->kids[2], s);
        str_add(s, ")");
        return;
    case PRIM_CAST:
        if (dtype_is_bool(p->dtype)) {
            str_add(s, "(");
            clike_prim(x, p->kids[0], s);
            str_add(s, " != 0)");
            return;
        }
        if (dtype_is_float(p->kids[0]->dtype) && dtype_is_int(p->dtype))
            str_printf(s, "convert_%s_sat_rtz(", clike_type(x, p->dtype));
        else
            str_printf(s, "(%s)(", clike_type(x, p->dtype));
        clike_prim(x, p->kids[0], s);
        str_add(s, ")");
        return;
    case PRIM_BITS:
        str_printf(s, "%s%s(", x->d->bits_prefix, clike_type(x, p->dtype));
        clike_prim(x, p->kids[0], s);
        str_add(s, ")");
        return;
    case PRIM_MATH: {
        const char *fn = x->d->math(p->u.math, p->dtype);
        if (!fn) {
            x->failed = true;
            error_at(x->c, E_CODEGEN, x->f->loc, "%s has no function %u for kernel '%s'",
                     x->d->name, (unsigned)p->u.math, x->f->name);
            return;
        }
        print_call(x, fn, p, s);
        return;
    }
    case PRIM_CASE:
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
        return;
    case PRIM_ADDR:
    case PRIM_SYMBOL:
    case PRIM_SIZEOF:
    case PRIM_INTRIN:
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
