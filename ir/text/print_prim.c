/* TIR as text: names, indices and expressions.  Statements and functions are in print_tir.c, which
 * describes the language. */
#include "ir/text/print_tir.h"

#include <ctype.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

static const char *const scope_names[] = {"arena", "const",  "private", "stack",
                                          "reg",   "shared", "local",   "frag"};
static const char *const kind_names[] = {"host", "kernel", "device", "tile", "prepack", "entry"};
static const char *const axis_names[] = {"blockIdx.x",  "blockIdx.y",  "blockIdx.z",
                                         "threadIdx.x", "threadIdx.y", "threadIdx.z"};
static const char *const math_names[] = {
#define MATH(id, text, n) text,
#include "ir/tir/math.def"
#undef MATH
};

const char *scope_text(Scope s)
{
    return scope_names[s];
}

const char *func_kind_text(FuncKind k)
{
    return kind_names[k];
}

const char *bind_axis_text(BindAxis a)
{
    return axis_names[a - AXIS_BLOCK_X];
}

const char *math_text(MathFn fn)
{
    return math_names[fn];
}

/* ---- names -------------------------------------------------------------------------------------- */

Printer printer_new(Ctx *c, StrBuf *out)
{
    Printer p = {.c = c, .out = out};

    p.text = map_new(c->scratch);
    p.used = map_new(c->scratch);
    return p;
}

const char *printer_clean_name(Printer *p, const char *name)
{
    char *s = arena_printf(p->c->scratch, "%s", name && *name ? name : "v");

    for (char *at = s; *at; at++)
        if (!isalnum((unsigned char)*at) && *at != '_' && *at != '.')
            *at = '_';
    return s;
}

static bool reserved(const char *s)
{
    return isdigit((unsigned char)*s) || *s == '.' || !strcmp(s, "true") || !strcmp(s, "false") ||
           !strcmp(s, "inf") || !strcmp(s, "nan");
}

/* A unique text for key from here to the end of the scope. */
const char *printer_declare(Printer *p, const void *key, const char *sigil, const char *name)
{
    const char *base, *text;
    Strings    *strings = p->c->strings;

    if (p->positional) {
        text = intern_printf(strings, "%sn%u", sigil, p->next++);
    } else {
        base = printer_clean_name(p, name);
        if (!*sigil && reserved(base))
            sigil = "_";
        text = intern_printf(strings, "%s%s", sigil, base);
        for (uint32_t i = 1; map_get(p->used, PTR_KEY(text)); i++)
            text = intern_printf(strings, "%s%s.%u", sigil, base, i);
    }
    map_put(p->used, PTR_KEY(text), (void *)(uintptr_t)text);
    map_put(p->text, PTR_KEY(key), (void *)(uintptr_t)text);
    vec_push(p->c->scratch, &p->names, ((Named){key, text}));
    return text;
}

/* Forget what was declared since `mark`. */
void printer_end_scope(Printer *p, uint32_t mark)
{
    while (p->names.n > mark) {
        Named *n = &p->names.at[--p->names.n];
        map_del(p->used, PTR_KEY(n->text));
        map_del(p->text, PTR_KEY(n->key));
    }
}

const char *print_atom_name(void *user, const Atom *a)
{
    Printer    *p = user;
    const char *text = map_get(p->text, PTR_KEY(a));
    uint32_t    n;

    if (text)
        return text;
    if (a->below)
        idx_text(p, a->below); /* declared first */
    n = p->names.n;
    text = printer_declare(p, a, p->fragment ? "%" : "", a->name);
    p->names.n = n; /* dims are visible everywhere */
    vec_push(p->c->scratch, &p->dims, a);
    return text;
}

const char *print_buffer_name(Printer *p, const Buffer *b)
{
    const char *text = map_get(p->text, PTR_KEY(b));

    return text ? text : printer_declare(p, b, "%", b->name); /* only in fragments */
}

/* ---- indices -------------------------------------------------------------------------------------- */

static const Atom *find_load(const Idx *x, const void *load)
{
    for (uint32_t i = 0; i < x->nterms; i++) {
        const Atom *a = x->t[i].atom, *f;
        if (a->kind == ATOM_LOAD && a->load == load)
            return a;
        if (a->a && (f = find_load(a->a, load)))
            return f;
        if (a->b && (f = find_load(a->b, load)))
            return f;
    }
    return NULL;
}

static void print_load_atom(void *user, StrBuf *out, const void *load)
{
    Printer    *p = user;
    StrBuf     *was = p->out;
    const Idx  *now = p->now;
    const Atom *a = find_load(now, load);

    p->out = out;
    str_add(out, "read(");
    print_prim(p, load, 0);
    if (a)
        str_printf(out, ", %" PRId64 ", %" PRId64, a->lo, a->hi);
    str_add(out, ")");
    p->out = was;
    p->now = now;
}

void print_idx(Printer *p, const Idx *x)
{
    IdxPrinter ip = {print_atom_name, print_load_atom, p};
    const Idx *was = p->now;

    p->now = x;
    idx_print(x, &ip, p->out);
    p->now = was;
}

void print_indices(Printer *p, uint32_t n, const Idx *const *x)
{
    for (uint32_t i = 0; i < n; i++) {
        if (i)
            str_add(p->out, ",");
        print_idx(p, x[i]);
    }
}

const char *idx_text(Printer *p, const Idx *x)
{
    StrBuf  s = strbuf(p->c->scratch);
    StrBuf *was = p->out;

    p->out = &s;
    print_idx(p, x);
    p->out = was;
    return s.at;
}

/* ---- conditions on indices ----------------------------------------------------------------------- */

/* 0 <= e with the constant on its own side: `1 <= %x`, `%x < 57`.  Which side does not depend on
 * the order of atoms, so that parsing does not change it. */
static void print_ge0(Printer *p, const Idx *e)
{
    Arith     *A = p->c->arith;
    bool       negative = true;
    const Idx *rest = idx_addc(A, e, -e->c0);

    for (uint32_t i = 0; i < e->nterms; i++)
        negative = negative && e->t[i].coef < 0;
    if (negative) {
        print_idx(p, idx_mulc(A, rest, -1));
        str_printf(p->out, " < %" PRId64, e->c0 + 1);
    } else {
        str_printf(p->out, "%" PRId64 " <= ", -e->c0);
        print_idx(p, rest);
    }
}

static void print_eq0(Printer *p, const Idx *e, const char *op)
{
    Arith      *A = p->c->arith;
    const Idx  *rest = idx_addc(A, e, -e->c0);
    const char *plus = idx_text(p, rest), *minus = idx_text(p, idx_mulc(A, rest, -1));
    bool        flip = *plus == '-' ? *minus != '-' || strcmp(minus, plus) < 0
                                    : *minus != '-' && strcmp(minus, plus) < 0;

    str_printf(p->out, "%s %s %" PRId64, flip ? minus : plus, op, flip ? e->c0 : -e->c0);
}

void print_pred(Printer *p, Pred q)
{
    for (uint32_t i = 0; i < q.n; i++) {
        if (i)
            str_add(p->out, " && ");
        print_ge0(p, q.ge0[i]);
    }
}

/* ---- prims ------------------------------------------------------------------------------------------ */

enum { PREC_OR = 1, PREC_AND, PREC_CMP, PREC_SUM, PREC_PROD, PREC_UNARY };

void float_print(StrBuf *out, DType t, double v)
{
    char     text[40];
    uint64_t bits = 0;

    if (isnan(v)) {
        dtype_put_f(t, &bits, v);
        str_printf(out, "nan(0x%0*" PRIx64 ")", t.bits / 4, bits);
        return;
    }
    snprintf(text, sizeof text, t.bits == 64 ? "%.17g" : "%.9g", v);
    str_add(out, text);
    if (!strpbrk(text, ".ein"))
        str_add(out, ".0");
}

static void print_number(Printer *p, const Prim *e)
{
    if (e->kind == PRIM_INT && dtype_is_bool(e->dtype)) {
        str_add(p->out, e->u.i ? "true" : "false");
    } else if (e->kind == PRIM_INT) {
        str_printf(p->out, "%s(%" PRId64 ")", dtype_text(p->c, e->dtype), e->u.i);
    } else if (dtype_eq(e->dtype, DT_F32)) {
        float_print(p->out, e->dtype, e->u.f);
    } else {
        str_printf(p->out, "%s(", dtype_text(p->c, e->dtype));
        float_print(p->out, e->dtype, e->u.f);
        str_add(p->out, ")");
    }
}

static void print_call(Printer *p, const char *name, const Prim *e)
{
    str_printf(p->out, "%s(", name);
    for (uint32_t i = 0; i < e->nkids; i++) {
        if (i)
            str_add(p->out, ", ");
        print_prim(p, e->kids[i], 0);
    }
    str_add(p->out, ")");
}

static void print_infix(Printer *p, const Prim *e, const char *op, int own, int prec)
{
    if (own < prec)
        str_add(p->out, "(");
    print_prim(p, e->kids[0], own == PREC_CMP ? own + 1 : own);
    str_printf(p->out, " %s ", op);
    print_prim(p, e->kids[1], own + 1);
    if (own < prec)
        str_add(p->out, ")");
}

static void print_mask(Printer *p, const Prim *mask)
{
    if (!mask)
        return;
    str_add(p->out, " mask(");
    print_prim(p, mask, 0);
    str_add(p->out, ")");
}

void print_cell(Printer *p, const Buffer *b, const Idx *const *index, uint16_t lanes)
{
    str_printf(p->out, "%s[", print_buffer_name(p, b));
    print_indices(p, b->ndim, index);
    if (lanes != b->dtype.lanes)
        str_printf(p->out, " : %u", lanes);
    str_add(p->out, "]");
}

void print_member(Printer *p, const Buffer *b, const Idx *const *index, const AbiMember *m)
{
    print_cell(p, b, index, b->dtype.lanes);
    if (m)
        str_printf(p->out, ".%s", m->name);
}

static bool is_zero_i64(const Prim *e)
{
    return e->kind == PRIM_INT && dtype_eq(e->dtype, DT_I64) && e->u.i == 0;
}

static bool is_index_i64(const Prim *e)
{
    return e->kind == PRIM_INDEX && dtype_eq(e->dtype, DT_I64);
}

static void print_compare(Printer *p, const Prim *e, const char *op, int prec)
{
    bool ge = e->kind == PRIM_LE && is_zero_i64(e->kids[0]) && is_index_i64(e->kids[1]);
    bool eq = (e->kind == PRIM_EQ || e->kind == PRIM_NE) && is_index_i64(e->kids[0]) &&
              is_zero_i64(e->kids[1]);

    if (!ge && !eq) {
        print_infix(p, e, op, PREC_CMP, prec);
        return;
    }
    if (PREC_CMP < prec)
        str_add(p->out, "(");
    if (ge)
        print_ge0(p, e->kids[1]->u.index);
    else
        print_eq0(p, e->kids[0]->u.index, op);
    if (PREC_CMP < prec)
        str_add(p->out, ")");
}

static void print_expr(Printer *p, const Prim *e, int prec)
{
    bool boolean = dtype_is_bool(e->dtype);

    switch (e->kind) {
    case PRIM_INT:
    case PRIM_FLOAT: print_number(p, e); return;
    case PRIM_INDEX:
        str_printf(p->out, "%s(", dtype_text(p->c, e->dtype));
        print_idx(p, e->u.index);
        str_add(p->out, ")");
        return;
    case PRIM_LOAD:
        if (e->u.load.member) {
            print_member(p, e->u.load.buffer, e->u.load.index, e->u.load.member);
            return;
        }
        print_cell(p, e->u.load.buffer, e->u.load.index, e->dtype.lanes);
        print_mask(p, e->u.load.mask);
        return;
    case PRIM_ADDR:
        str_add(p->out, "addr(");
        print_member(p, e->u.load.buffer, e->u.load.index, e->u.load.member);
        str_add(p->out, ")");
        return;
    case PRIM_SYMBOL: str_printf(p->out, "addr(@%s)", printer_clean_name(p, e->u.symbol)); return;
    case PRIM_SIZEOF:
        if (e->u.size.before)
            str_printf(p->out, "offsetof(%s, %s)", e->u.size.record->name, e->u.size.before->name);
        else
            str_printf(p->out, "sizeof(%s)", e->u.size.record->name);
        return;
    case PRIM_ADD: print_infix(p, e, "+", PREC_SUM, prec); return;
    case PRIM_SUB: print_infix(p, e, "-", PREC_SUM, prec); return;
    case PRIM_MUL: print_infix(p, e, "*", PREC_PROD, prec); return;
    case PRIM_DIV: print_infix(p, e, "/", PREC_PROD, prec); return;
    case PRIM_REM: print_call(p, "rem", e); return;
    case PRIM_MIN: print_call(p, "min", e); return;
    case PRIM_MAX: print_call(p, "max", e); return;
    case PRIM_MINNUM: print_call(p, "minnum", e); return;
    case PRIM_MAXNUM: print_call(p, "maxnum", e); return;
    case PRIM_FMA: print_call(p, "fma", e); return;
    case PRIM_INTRIN: print_call(p, e->u.intrin->text, e); return;
    case PRIM_AND:
        if (boolean)
            print_infix(p, e, "&&", PREC_AND, prec);
        else
            print_call(p, "and", e);
        return;
    case PRIM_OR:
        if (boolean)
            print_infix(p, e, "||", PREC_OR, prec);
        else
            print_call(p, "or", e);
        return;
    case PRIM_XOR: print_call(p, "xor", e); return;
    case PRIM_SHL: print_call(p, "shl", e); return;
    case PRIM_SHR: print_call(p, "shr", e); return;
    case PRIM_NOT:
        if (!boolean) {
            print_call(p, "not", e);
            return;
        }
        str_add(p->out, "!");
        print_prim(p, e->kids[0], PREC_UNARY + 1);
        return;
    case PRIM_EQ: print_compare(p, e, "==", prec); return;
    case PRIM_NE: print_compare(p, e, "!=", prec); return;
    case PRIM_LT: print_compare(p, e, "<", prec); return;
    case PRIM_LE: print_compare(p, e, "<=", prec); return;
    case PRIM_SELECT: print_call(p, "select", e); return;
    case PRIM_CAST: print_call(p, dtype_text(p->c, e->dtype), e); return;
    case PRIM_BITS:
        str_printf(p->out, "bits(%s, ", dtype_text(p->c, e->dtype));
        print_prim(p, e->kids[0], 0);
        str_add(p->out, ")");
        return;
    case PRIM_MATH: print_call(p, math_text(e->u.math), e); return;
    case PRIM_CASE:
        str_add(p->out, "case(");
        print_idx(p, e->u.index);
        for (uint32_t i = 0; i < e->nkids; i++) {
            str_add(p->out, i ? ", " : "; ");
            print_prim(p, e->kids[i], 0);
        }
        str_add(p->out, ")");
        return;
    case PRIM_SPLAT:
        str_add(p->out, "splat(");
        print_prim(p, e->kids[0], 0);
        str_printf(p->out, ", %u)", e->dtype.lanes);
        return;
    case PRIM_RAMP:
        str_printf(p->out, "ramp(%s, ", dtype_text(p->c, e->dtype));
        print_idx(p, e->u.index);
        str_add(p->out, ")");
        return;
    case PRIM_VEC: print_call(p, "vec", e); return;
    case PRIM_SHUFFLE:
        str_add(p->out, "shuffle(");
        print_prim(p, e->kids[0], 0);
        for (uint32_t i = 0; i < e->dtype.lanes; i++)
            str_printf(p->out, "%s%u", i ? ", " : "; ", e->u.from[i]);
        str_add(p->out, ")");
        return;
    }
}

/* ---- what an expression writes down once ---------------------------------------------------------- */

/* Equal expressions are one node, so a chain of formulas that use their operand twice is short as a
 * graph and doubles with each of them as text.  Large nodes that an expression has several times
 * have a label.  It ends with the expression: what stands in another scope is made of other
 * variables when it is read. */
enum { LABEL_SIZE = 64, SHARED = 1, FIRST_LABEL = 2 };

typedef struct {
    Map *size, *uses, *shared;
} Sharing;

static void note_use(Sharing *s, const Prim *kid)
{
    uintptr_t uses = (uintptr_t)map_get(s->uses, kid->id) + 1;

    map_put(s->uses, kid->id, (void *)uses);
    if (uses > 1 && (uintptr_t)map_get(s->size, kid->id) >= LABEL_SIZE)
        map_put(s->shared, kid->id, (void *)(uintptr_t)SHARED);
}

static void note_prim(void *user, const Prim *p)
{
    Sharing  *s = user;
    uintptr_t size = 1;

    for (uint32_t i = 0; i < p->nkids; i++) {
        uintptr_t kid = (uintptr_t)map_get(s->size, p->kids[i]->id);

        size += kid < LABEL_SIZE ? kid : LABEL_SIZE;
        note_use(s, p->kids[i]);
    }
    map_put(s->size, p->id, (void *)size);
}

static Map *sharing(Arena *a, const Prim *e)
{
    Sharing s = {map_new(a), map_new(a), map_new(a)};

    prim_visit(e, &(TirVisit){.user = &s, .prim = note_prim});
    return s.shared;
}

/* Nodes of e as a tree, counted up to `most`. */
static uint32_t size_up_to(const Prim *e, uint32_t most)
{
    uint32_t n = 1;

    for (uint32_t i = 0; i < e->nkids && n < most; i++)
        n += size_up_to(e->kids[i], most - n);
    return n;
}

static void print_labelled(Printer *p, const Prim *e, int prec)
{
    uintptr_t label = p->shared ? (uintptr_t)map_get(p->shared, e->id) : 0;

    if (label >= FIRST_LABEL) {
        str_printf(p->out, "$%u", (unsigned)(label - FIRST_LABEL));
    } else if (label == SHARED) {
        str_add(p->out, "(");
        print_expr(p, e, 0);
        str_printf(p->out, " as $%u)", p->nlabels);
        map_put(p->shared, e->id, (void *)(uintptr_t)(FIRST_LABEL + p->nlabels++));
    } else {
        print_expr(p, e, prec);
    }
}

void print_prim(Printer *p, const Prim *e, int prec)
{
    if (!p->labels || p->within) {
        print_labelled(p, e, prec);
        return;
    }
    if (size_up_to(e, LABEL_SIZE) == LABEL_SIZE)
        p->shared = sharing(p->c->scratch, e);
    p->within = true;
    print_labelled(p, e, prec);
    p->within = false;
    p->shared = NULL;
}
