/* The printer: statements, then expressions.
 *
 * Prims are interned, so a value used twice is one node; it gets a name at its first use in a
 * statement (`const float t3 = ..`).  What reads memory and stands only in an arm of a select must
 * not be evaluated early: such a select becomes an `if` with a block for each arm, in which the
 * values that the arm alone needs have their names:
 *
 *     float t3;  if (c) { const float t4 = b0[i0]; t3 = t4 * t4; } else { t3 = 0; }
 *
 * Loop variables are i<n>, buffers b<n>, numbered in order
 * of appearance, so that equal functions have equal text. */
#include "backends/clike/impl.h"
#include "ir/tir/intrin.h"

#include <math.h>
#include <string.h>

/* More text than any kernel; only conditions within conditions that share their arms come near. */
enum { MAX_TEXT = 1 << 24 };

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
        clike_prim(x, p->kids[i], s);
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
        type_name(x, dtype_lanes(p->dtype, 2)); /* records the error: no masks */
    if (p->u.load.n == 0) {
        str_printf(s, "b%u%s", clike_buffer(x, b), one_cell(x, b));
        return;
    }
    str_printf(s, "b%u[", clike_buffer(x, b));
    clike_index(x, p->u.load.index[0], s);
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
            str_printf(s, "convert_%s_sat_rtz(", type_name(x, p->dtype));
        else
            str_printf(s, "(%s)(", type_name(x, p->dtype));
        clike_prim(x, p->kids[0], s);
        str_add(s, ")");
        return;
    case PRIM_BITS:
        str_printf(s, "%s%s(", x->d->bits_prefix, type_name(x, p->dtype));
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
    case PRIM_INTRIN:
    case PRIM_SPLAT:
    case PRIM_RAMP:
    case PRIM_VEC:
    case PRIM_SHUFFLE: break;
    }
    type_name(x, p->dtype); /* records the error: no vectors */
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
        print_node(x, p, s);
}

/* ---- names for values used more than once ---- */

/* Only one of the operands from here on is computed: the last one if nothing says another. */
static uint32_t first_arm(const Prim *p)
{
    return p->kind == PRIM_SELECT ? 1 : p->kind == PRIM_CASE ? 0 : p->nkids;
}

static void add_loads(Clike *x, const Idx *at, PrimList *out)
{
    for (uint32_t i = 0; i < at->nterms; i++) {
        const Atom *a = at->t[i].atom;

        if (a->a)
            add_loads(x, a->a, out);
        if (a->b)
            add_loads(x, a->b, out);
        if (a->kind == ATOM_LOAD)
            vec_push(x->c->arena, out, (const Prim *)a->load);
    }
}

/* All that is computed when p is, but for its arms: operands, and loads within its indices. */
static PrimList operands(Clike *x, const Prim *p)
{
    PrimList out = {0};

    for (uint32_t i = 0; i < first_arm(p); i++)
        vec_push(x->c->arena, &out, p->kids[i]);
    if (p->kind == PRIM_INDEX || p->kind == PRIM_CASE)
        add_loads(x, p->u.index, &out);
    for (uint32_t i = 0; p->kind == PRIM_LOAD && i < p->u.load.n; i++)
        add_loads(x, p->u.load.index[i], &out);
    return out;
}

static void count_uses(Clike *x, const Prim *p)
{
    uintptr_t n = (uintptr_t)map_get(x->uses, p->id) + 1;

    if (p->kind == PRIM_INT || p->kind == PRIM_FLOAT)
        return;
    map_put(x->uses, p->id, (void *)n);
    if (n == 2 && p->kind != PRIM_INDEX) {
        vec_push(x->c->arena, &x->shared, p);
        map_put(x->bits, p->id, (void *)(uintptr_t)x->shared.n);
    }
    if (n > 1)
        return;
    PrimList of = operands(x, p);
    for (uint32_t i = 0; i < of.n; i++)
        count_uses(x, of.at[i]);
    for (uint32_t i = first_arm(p); i < p->nkids; i++)
        count_uses(x, p->kids[i]);
}

static const uint64_t *sure(Clike *x, const Prim *p)
{
    uint32_t  words = x->shared.n / 64 + 1;
    uint64_t *set = map_get(x->sure, p->id);
    uintptr_t bit = (uintptr_t)map_get(x->bits, p->id);
    PrimList  of = {0};

    if (set)
        return set;
    set = NEW_ARRAY(x->c->arena, uint64_t, words);
    memset(set, 0, words * sizeof *set);
    map_put(x->sure, p->id, set);
    of = operands(x, p);
    for (uint32_t i = 0; i < of.n; i++) {
        const uint64_t *k = sure(x, of.at[i]);
        for (uint32_t w = 0; w < words; w++)
            set[w] |= k[w];
    }
    for (uint32_t w = 0; w < words && first_arm(p) < p->nkids; w++) {
        uint64_t all = ~UINT64_C(0); /* in every arm */
        for (uint32_t i = first_arm(p); i < p->nkids; i++)
            all &= sure(x, p->kids[i])[w];
        set[w] |= all;
    }
    if (bit)
        set[(bit - 1) / 64] |= UINT64_C(1) << (bit - 1) % 64;
    return set;
}

/* Has p shared values without a name? */
static bool hides(Clike *x, const Prim *p, Map *seen)
{
    if (map_get(x->temps, p->id) || map_get(seen, p->id))
        return false;
    if (map_get(x->bits, p->id))
        return true;
    map_put(seen, p->id, x);
    PrimList of = operands(x, p);
    for (uint32_t i = 0; i < of.n; i++)
        if (hides(x, of.at[i], seen))
            return true;
    for (uint32_t i = first_arm(p); i < p->nkids; i++)
        if (hides(x, p->kids[i], seen))
            return true;
    return false;
}

static const char *new_name(Clike *x)
{
    return intern_printf(x->c->strings, "t%u", x->next_temp++);
}

static void set_name(Clike *x, const Prim *p, const char *name)
{
    map_put(x->temps, p->id, (void *)(uintptr_t)name);
    vec_push(x->c->arena, &x->named, p);
}

static void declare(Clike *x, const Prim *p);

/* Shared values that are computed whenever p is; the last were found deepest, so no arm computes
 * again what is needed anyway. */
static void declare_sure(Clike *x, const Prim *p)
{
    const uint64_t *set = sure(x, p);

    for (uint32_t k = x->shared.n; k-- > 0;)
        if (set[k / 64] >> k % 64 & 1)
            declare(x, x->shared.at[k]); /* but not p, which has been walked */
}

static void print_arm(Clike *x, const Prim *arm, const char *result)
{
    Map     *walked = x->walked;
    uint32_t before = x->named.n;
    StrBuf   s = strbuf(x->c->arena);

    str_add(x->out, "{\n");
    x->depth++;
    x->walked = map_new(x->c->arena);
    declare_sure(x, arm);
    declare(x, arm);
    clike_prim(x, arm, &s);
    indent(x);
    str_printf(x->out, "%s = %s;\n", result, s.n ? s.at : "0");
    while (x->named.n > before)
        map_del(x->temps, x->named.at[--x->named.n]->id);
    x->walked = walked;
    x->depth--;
    indent(x);
    str_add(x->out, "}");
}

/* A select or case as a statement. */
static void declare_choice(Clike *x, const Prim *p)
{
    const char *result = new_name(x);

    indent(x);
    str_printf(x->out, "%s %s;\n", type_name(x, p->dtype), result);
    indent(x);
    for (uint32_t i = first_arm(p); i + 1 < p->nkids; i++) {
        StrBuf cond = strbuf(x->c->arena);
        if (p->kind == PRIM_SELECT) {
            clike_prim(x, p->kids[0], &cond);
        } else {
            clike_index(x, p->u.index, &cond);
            str_printf(&cond, " == %u", i);
        }
        str_printf(x->out, "if (%s) ", cond.n ? cond.at : "0");
        print_arm(x, p->kids[i], result);
        str_add(x->out, " else ");
    }
    print_arm(x, p->kids[p->nkids - 1], result);
    str_add(x->out, "\n");
    set_name(x, p, result);
}

/* Declare shared values of p, which is computed in any case, operands first. */
static void declare(Clike *x, const Prim *p)
{
    uint32_t first = first_arm(p);
    bool     blocks = false;

    if (p->kind == PRIM_INT || p->kind == PRIM_FLOAT || x->failed || map_get(x->temps, p->id) ||
        map_get(x->walked, p->id))
        return;
    map_put(x->walked, p->id, x);
    PrimList of = operands(x, p);
    for (uint32_t i = 0; i < of.n; i++)
        declare(x, of.at[i]);
    if (first < p->nkids)
        declare_sure(x, p);
    for (uint32_t i = first; i < p->nkids && !blocks; i++)
        blocks = hides(x, p->kids[i], map_new(x->c->arena));
    if (blocks) {
        declare_choice(x, p);
    } else if (map_get(x->bits, p->id)) {
        StrBuf      s = strbuf(x->c->arena);
        const char *name = new_name(x);
        print_node(x, p, &s);
        indent(x);
        str_printf(x->out, "const %s %s = %s;\n", type_name(x, p->dtype), name, s.n ? s.at : "0");
        set_name(x, p, name);
    }
}

/* p as text for one statement, its shared values declared before. */
static const char *expression(Clike *x, const Prim *p)
{
    StrBuf s = strbuf(x->c->arena);

    count_uses(x, p);
    declare_sure(x, p);
    declare(x, p);
    clike_prim(x, p, &s);
    return s.n ? s.at : "0";
}

static void fresh_statement(Clike *x)
{
    x->temps = map_new(x->c->arena);
    x->uses = map_new(x->c->arena);
    x->bits = map_new(x->c->arena);
    x->sure = map_new(x->c->arena);
    x->walked = map_new(x->c->arena);
    x->shared = x->named = (PrimList){0};
}

static const char *index_text(Clike *x, const Idx *i)
{
    StrBuf s = strbuf(x->c->arena);

    clike_index(x, i, &s);
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
    uint32_t        v = clike_var(x, l->var);

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
        uint32_t n = clike_buffer(x, b);
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
            str_printf(x->out, "b%u%s = %s;\n", clike_buffer(x, d->buffer), one_cell(x, d->buffer),
                       value);
        else
            str_printf(x->out, "b%u[%s] = %s;\n", clike_buffer(x, d->buffer),
                       index_text(x, d->index[0]), value);
        return;
    }
    case STMT_PREFETCH: return; /* threads of a device hide what they wait for */
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
    case STMT_VIEW:
    case STMT_INVOKE:
    case STMT_SWITCH:
    case STMT_FAIL:
        BUG("%s: a statement of kind %d in device kernel '%s'", x->d->name, (int)s->kind,
            x->f->name);
    }
}

bool clike_kernel(Ctx *c, const ClikeDialect *d, const Func *f, const char *name, StrBuf *out)
{
    f = intrins_expand(c, f); /* no dialect has instructions of its own */

    Clike  x = {.c = c, .d = d, .f = f, .depth = 1, .numbers = map_new(c->arena)};
    StrBuf body = strbuf(c->arena);

    func_axes(f, x.axis);
    str_printf(out, "%s %s(", d->kernel_prefix, name);
    for (uint32_t i = 0; i < f->nparams; i++) {
        const Param *p = &f->params[i];
        if (i)
            str_add(out, ", ");
        if (p->scalar) {
            str_printf(out, "const %s i%u", d->index_type, clike_var(&x, p->scalar));
            continue;
        }
        uint32_t    b = clike_buffer(&x, p->buffer);
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
