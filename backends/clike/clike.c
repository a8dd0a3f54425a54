/* The printer: statements, then expressions.
 *
 * Prims are interned, so a value used twice is one node; it gets a name at its first use in a
 * statement (`const float t3 = ..`), unless it reads memory and stands only in an arm of a select,
 * where it must not be evaluated early.  Loop variables are i<n>, buffers b<n>, numbered in order
 * of appearance, so that equal functions have equal text. */
#include "backends/clike/clike.h"

#include <math.h>
#include <string.h>

typedef struct {
    Ctx                *c;
    const ClikeDialect *d;
    const Func         *f;
    StrBuf             *out;
    int                 depth;
    Map                *temps;   /* prim id -> name, within one statement */
    Map                *uses;    /* prim id -> count, within one statement */
    Map                *numbers; /* of loop variables and buffers: id -> n + 1 */
    uint32_t            next_temp, next_var, next_buffer;
    const Idx          *axis[6]; /* extents of the launch */
    bool                failed;
} Clike;

static uint32_t number(Clike *x, uint64_t key, uint32_t *next)
{
    uintptr_t n = (uintptr_t)map_get(x->numbers, key);

    if (!n) {
        n = ++*next;
        map_put(x->numbers, key, (void *)n);
    }
    return (uint32_t)n - 1;
}

static uint32_t var(Clike *x, const Atom *a)
{
    return number(x, a->id, &x->next_var);
}

static uint32_t buf(Clike *x, const Buffer *b)
{
    return number(x, b->id | 1ull << 32, &x->next_buffer);
}

/* A buffer without dimensions is a variable, but a parameter is always a pointer. */
static const char *one_cell(const Clike *x, const Buffer *b)
{
    for (uint32_t i = 0; i < x->f->nparams; i++)
        if (x->f->params[i].buffer == b)
            return "[0]";
    return "";
}

static void indent(Clike *x)
{
    for (int i = 0; i < x->depth; i++)
        str_add(x->out, "    ");
}

static const char *type_name(Clike *x, DType t)
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

/* ---- indices ---- */

static void print_prim(Clike *x, const Prim *p, StrBuf *s);
static void print_idx(Clike *x, const Idx *i, StrBuf *s);

static void print_atom(Clike *x, const Atom *a, StrBuf *s)
{
    switch (a->kind) {
    case ATOM_VAR: str_printf(s, "i%u", var(x, a)); break;
    case ATOM_DIV:
    case ATOM_SYMDIV: {
        bool safe = a->a->lo >= 0; /* C truncates: the same from 0 on */
        str_add(s, safe ? "(" : "floordiv(");
        print_idx(x, a->a, s);
        str_add(s, safe ? "/" : ", ");
        if (a->kind == ATOM_DIV)
            str_printf(s, "%lld", (long long)a->k);
        else
            print_idx(x, a->b, s);
        str_add(s, ")");
        break;
    }
    case ATOM_PROD:
        str_add(s, "(");
        print_idx(x, a->a, s);
        str_add(s, "*");
        print_idx(x, a->b, s);
        str_add(s, ")");
        break;
    case ATOM_MIN:
    case ATOM_MAX:
        str_printf(s, "%s((%s)", a->kind == ATOM_MIN ? "min" : "max", x->d->index_type);
        print_idx(x, a->a, s);
        str_printf(s, ", (%s)", x->d->index_type);
        print_idx(x, a->b, s);
        str_add(s, ")");
        break;
    case ATOM_LOAD:
        str_printf(s, "(%s)", x->d->index_type);
        print_prim(x, a->load, s);
        break;
    }
}

static void print_idx(Clike *x, const Idx *i, StrBuf *s)
{
    bool one = i->nterms == 1 ? !i->c0 && i->t[0].coef == 1 : !i->nterms && i->c0 >= 0;

    if (!one)
        str_add(s, "(");
    for (uint32_t t = 0; t < i->nterms; t++) {
        int64_t k = i->t[t].coef, most = k < 0 && k != INT64_MIN ? -k : k;
        if (t)
            str_add(s, k < 0 ? " - " : " + ");
        else if (k < 0)
            str_add(s, "-");
        if (most != 1)
            str_printf(s, "%lld*", (long long)most);
        print_atom(x, i->t[t].atom, s);
    }
    if (i->nterms && i->c0)
        str_printf(s, i->c0 < 0 ? " - %llu" : " + %llu",
                   i->c0 < 0 ? -(unsigned long long)i->c0 : (unsigned long long)i->c0);
    else if (!i->nterms)
        str_printf(s, "%lld", (long long)i->c0);
    if (!one)
        str_add(s, ")");
}

/* ---- expressions ---- */

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
        str_printf(s, "(%s)NAN", type_name(x, p->dtype));
    else if (isinf(v))
        str_printf(s, "(%s)%sINFINITY", type_name(x, p->dtype), v < 0 ? "-" : "");
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
        print_prim(x, p->kids[i], s);
    }
    str_add(s, ")");
}

/* A function of the prelude: operands would otherwise stand in the text more than once. */
static void print_helper(Clike *x, const char *name, const Prim *p, StrBuf *s)
{
    str_printf(s, "%s_%s", name, type_name(x, p->dtype));
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
        wraps || p->kind == PRIM_SHL ? arena_printf(x->c->arena, "(%s)", type_name(x, u)) : "";
    if (!dtype_is_bool(p->dtype))
        str_printf(s, "(%s)", type_name(x, p->dtype));
    str_printf(s, "(%s", cast);
    print_prim(x, p->kids[0], s);
    str_printf(s, " %s %s", binary_sign(p->kind), shifts ? "(" : cast);
    print_prim(x, p->kids[1], s);
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
    print_prim(x, p->kids[0], s);
    str_printf(s, " %s ", binary_sign(p->kind));
    print_prim(x, p->kids[1], s);
    str_add(s, ")");
}

static void print_load(Clike *x, const Prim *p, StrBuf *s)
{
    const Buffer *b = p->u.load.buffer;

    if (p->u.load.mask)
        type_name(x, dtype_lanes(p->dtype, 2)); /* records the error: no masks */
    if (p->u.load.n == 0) {
        str_printf(s, "b%u%s", buf(x, b), one_cell(x, b));
        return;
    }
    str_printf(s, "b%u[", buf(x, b));
    print_idx(x, p->u.load.index[0], s);
    str_add(s, "]");
}

static void print_node(Clike *x, const Prim *p, StrBuf *s)
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
        if (!p->u.index->nterms || strcmp(type_name(x, p->dtype), x->d->index_type))
            str_printf(s, "(%s)", type_name(x, p->dtype));
        print_idx(x, p->u.index, s);
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
        print_prim(x, p->kids[0], s);
        str_add(s, ")");
        return;
    case PRIM_SELECT:
        str_add(s, "(");
        print_prim(x, p->kids[0], s);
        str_add(s, " ? ");
        print_prim(x, p->kids[1], s);
        str_add(s, " : ");
        print_prim(x, p->kids[2], s);
        str_add(s, ")");
        return;
    case PRIM_CAST:
        if (dtype_is_bool(p->dtype)) {
            str_add(s, "(");
            print_prim(x, p->kids[0], s);
            str_add(s, " != 0)");
            return;
        }
        if (dtype_is_float(p->kids[0]->dtype) && dtype_is_int(p->dtype))
            str_printf(s, "convert_%s_sat_rtz(", type_name(x, p->dtype));
        else
            str_printf(s, "(%s)(", type_name(x, p->dtype));
        print_prim(x, p->kids[0], s);
        str_add(s, ")");
        return;
    case PRIM_BITS:
        str_printf(s, "%s%s(", x->d->bits_prefix, type_name(x, p->dtype));
        print_prim(x, p->kids[0], s);
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
            print_idx(x, p->u.index, s);
            str_printf(s, " == %u ? ", i);
            print_prim(x, p->kids[i], s);
            str_add(s, " : ");
        }
        print_prim(x, p->kids[p->nkids - 1], s);
        for (uint32_t i = 0; i + 1 < p->nkids; i++)
            str_add(s, ")");
        return;
    case PRIM_DOT4:
    case PRIM_SPLAT:
    case PRIM_RAMP:
    case PRIM_VEC: break;
    }
    type_name(x, p->dtype); /* records the error: no vectors */
}

static void print_prim(Clike *x, const Prim *p, StrBuf *s)
{
    const char *name = map_get(x->temps, p->id);

    if (name)
        str_add(s, name);
    else
        print_node(x, p, s);
}

/* ---- names for values used more than once ---- */

static bool reads_memory(const Prim *p)
{
    if (p->kind == PRIM_LOAD)
        return true;
    for (uint32_t i = 0; i < p->nkids; i++)
        if (reads_memory(p->kids[i]))
            return true;
    return false;
}

static void count_uses(Clike *x, const Prim *p)
{
    uintptr_t n = (uintptr_t)map_get(x->uses, p->id) + 1;

    map_put(x->uses, p->id, (void *)n);
    if (n > 1)
        return;
    for (uint32_t i = 0; i < p->nkids; i++)
        count_uses(x, p->kids[i]);
}

/* Declare shared values of p, operands first.  `sure`: p is evaluated whatever conditions say. */
static void declare(Clike *x, const Prim *p, bool sure)
{
    if (p->kind == PRIM_INT || p->kind == PRIM_FLOAT || p->kind == PRIM_INDEX ||
        map_get(x->temps, p->id))
        return;
    for (uint32_t i = 0; i < p->nkids; i++)
        declare(x, p->kids[i],
                sure && !(p->kind == PRIM_CASE || (p->kind == PRIM_SELECT && i > 0)));
    if ((uintptr_t)map_get(x->uses, p->id) < 2 || (!sure && reads_memory(p)))
        return;
    StrBuf      s = strbuf(x->c->arena);
    const char *name = intern_printf(x->c->strings, "t%u", x->next_temp++);
    print_node(x, p, &s);
    indent(x);
    str_printf(x->out, "const %s %s = %s;\n", type_name(x, p->dtype), name, s.at);
    map_put(x->temps, p->id, (void *)(uintptr_t)name);
}

/* p as text for one statement, its shared values declared before. */
static const char *expression(Clike *x, const Prim *p)
{
    StrBuf s = strbuf(x->c->arena);

    count_uses(x, p);
    declare(x, p, true);
    print_prim(x, p, &s);
    return s.at;
}

static void fresh_statement(Clike *x)
{
    x->temps = map_new(x->c->arena);
    x->uses = map_new(x->c->arena);
}

static const char *index_text(Clike *x, const Idx *i)
{
    StrBuf s = strbuf(x->c->arena);

    print_idx(x, i, &s);
    return s.at;
}

/* ---- statements ---- */

static void print_stmt(Clike *x, const Stmt *s);

static void block(Clike *x, const Stmt *s)
{
    str_add(x->out, "{\n");
    x->depth++;
    print_stmt(x, s);
    x->depth--;
    indent(x);
    str_add(x->out, "}\n");
}

static void print_for(Clike *x, const Stmt *s)
{
    const LoopData *l = &s->u.loop;
    uint32_t        v = var(x, l->var);

    fresh_statement(x);
    indent(x);
    if (l->marks & MARK_BIND) {
        str_printf(x->out, "const %s i%u = ", x->d->index_type, v);
        if (!idx_is_const(l->lo, NULL) || l->lo->lo)
            str_printf(x->out, "%s + ", index_text(x, l->lo));
        str_printf(x->out, "%s;\n", x->d->axis(l->axis));
        if (l->extent == x->axis[l->axis]) {
            print_stmt(x, s->kids[0]);
        } else { /* the launch is sized by another loop */
            indent(x);
            str_printf(x->out, "if (%s < %s) ", x->d->axis(l->axis), index_text(x, l->extent));
            block(x, s->kids[0]);
        }
        return;
    }
    const char *lo = index_text(x, l->lo);
    bool        zero = idx_is_const(l->lo, NULL) && !l->lo->lo;
    str_printf(x->out, "for (%s i%u = %s; i%u < %s%s%s; i%u++) ", x->d->index_type, v, lo, v,
               zero ? "" : lo, zero ? "" : " + ", index_text(x, l->extent), v);
    block(x, s->kids[0]);
}

static void print_stmt(Clike *x, const Stmt *s)
{
    switch (s->kind) {
    case STMT_SEQ:
        for (uint32_t i = 0; i < s->nkids; i++) {
            const Stmt *k = s->kids[i];
            if (k->kind == STMT_FOR && (k->u.loop.marks & MARK_BIND)) { /* its variable's scope */
                indent(x);
                block(x, k);
            } else {
                print_stmt(x, k);
            }
        }
        return;
    case STMT_FOR: print_for(x, s); return;
    case STMT_IF: {
        fresh_statement(x);
        const char *cond = expression(x, s->u.cond);
        indent(x);
        str_printf(x->out, "if (%s) ", cond);
        block(x, s->kids[0]);
        if (s->nkids > 1) {
            indent(x);
            str_add(x->out, "else ");
            block(x, s->kids[1]);
        }
        return;
    }
    case STMT_WHILE:
        fresh_statement(x);
        indent(x);
        str_add(x->out, "for (;;) {\n");
        x->depth++;
        {
            const char *cond = expression(x, s->u.cond);
            indent(x);
            str_printf(x->out, "if (!(%s)) break;\n", cond);
        }
        print_stmt(x, s->kids[0]);
        x->depth--;
        indent(x);
        str_add(x->out, "}\n");
        return;
    case STMT_ALLOC: {
        const Buffer *b = s->u.buffer;
        int64_t       elems = 1, origin = 0;
        buffer_size(x->c, b, &elems, &origin);
        indent(x);
        uint32_t n = buf(x, b);
        if (b->ndim == 0)
            str_printf(x->out, "{ %s b%u;\n", type_name(x, b->dtype), n);
        else {
            const char *space = b->scope == SCOPE_SHARED ? x->d->space(SCOPE_SHARED, true) : "";
            const char *type = type_name(x, b->dtype), *gap = *space ? " " : "";
            if (b->scope == SCOPE_SHARED) { /* at the outermost level of the kernel */
                str_printf(x->out, "%s %s b%u[%lld];\n", space, type, n, (long long)elems);
                print_stmt(x, s->kids[0]);
                return;
            }
            str_printf(x->out, "{ %s%s%s %s%u[%lld];\n", space, gap, type, origin ? "s" : "b", n,
                       (long long)(elems > 0 ? elems : 1));
            if (origin) { /* cell 0 of the interior */
                indent(x);
                str_printf(x->out, "  %s%s%s *b%u = s%u + %lld;\n", space, gap, type, n, n,
                           (long long)origin);
            }
        }
        x->depth++;
        print_stmt(x, s->kids[0]);
        x->depth--;
        indent(x);
        str_add(x->out, "}\n");
        return;
    }
    case STMT_STORE: {
        const StoreData *d = &s->u.store;
        fresh_statement(x);
        const char *value = expression(x, d->value);
        indent(x);
        if (d->mask)
            type_name(x, dtype_lanes(d->value->dtype, 2)); /* records the error: no masks */
        if (d->n == 0)
            str_printf(x->out, "b%u%s = %s;\n", buf(x, d->buffer), one_cell(x, d->buffer), value);
        else
            str_printf(x->out, "b%u[%s] = %s;\n", buf(x, d->buffer), index_text(x, d->index[0]),
                       value);
        return;
    }
    case STMT_BARRIER:
        indent(x);
        str_printf(x->out, "%s\n", x->d->barrier);
        return;
    case STMT_RETURN:
        indent(x);
        str_add(x->out, "return;\n");
        return;
    case STMT_BLOCK:
    case STMT_CALL:
    case STMT_REGION:
    case STMT_LAUNCH:
    case STMT_COPY:
    case STMT_FAIL:
        BUG("%s: a statement of kind %d in device kernel '%s'", x->d->name, (int)s->kind,
            x->f->name);
    }
}

bool clike_kernel(Ctx *c, const ClikeDialect *d, const Func *f, const char *name, StrBuf *out)
{
    Clike  x = {.c = c, .d = d, .f = f, .depth = 1, .numbers = map_new(c->arena)};
    StrBuf body = strbuf(c->arena);

    func_axes(f, x.axis);
    str_printf(out, "%s %s(", d->kernel_prefix, name);
    for (uint32_t i = 0; i < f->nparams; i++) {
        const Param *p = &f->params[i];
        if (i)
            str_add(out, ", ");
        if (p->scalar) {
            str_printf(out, "const %s i%u", d->index_type, var(&x, p->scalar));
            continue;
        }
        uint32_t    b = buf(&x, p->buffer);
        const char *space = d->space(p->buffer->scope, p->written),
                   *type = type_name(&x, p->buffer->dtype);
        str_printf(out, "%s %s *%s p%u, const %s o%u", space, type, d->noalias, b, d->index_type,
                   b);
        str_printf(&body, "    %s %s *b%u = (%s %s *)((%s char *)p%u + o%u);\n", space, type, b,
                   space, type, space, b, b);
    }
    str_add(out, ")\n{\n");
    x.out = &body;
    print_stmt(&x, f->body);
    if (body.n)
        str_addn(out, body.at, body.n);
    str_add(out, "}\n\n");
    return !x.failed;
}
