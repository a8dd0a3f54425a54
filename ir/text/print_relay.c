/* Relay as text (docs/ir/relay.md), canonical: printing what was parsed gives the same bytes.
 *
 * A graph has no order, a text has.  A walk from the root finds for each node the innermost scope
 * that holds all its uses (function body, branch, clause, what follows a `let`); calls, control
 * flow and shared tuples and functions become numbered statements of that scope, the rest is
 * printed where it is used:
 *
 *     fn @main(%x: Tensor[(1, 64, 56, 56), f32]) {
 *       %0 = nn.conv2d(%x, const @w, padding=[1, 1, 1, 1]) loc("net.onnx":3:Conv_3);
 *       nn.relu(%0)
 *     }
 *
 * Functions are printed first into a buffer of their own, which collects the constants and symbolic
 * dimensions that must be declared before them.  Places in texts (those with a column) are not
 * printed: they belong to the file that was read. */
#include "ir/text/relay_text.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define MAX_INLINE 12 /* nesting of tuples and projections inside one expression */

typedef struct {
    Ctx       *c;
    StrBuf    *out;
    RelayPrint how;
    Map       *info;               /* node to NodeInfo (scope.c) */
    Map       *names;              /* node or Const to its printed name */
    Map       *used, *used_consts; /* interned names taken, with the last suffix tried */
    VEC(const Const *) consts;
    VEC(const Atom *) dims;
    Map     *dims_seen;
    uint32_t next; /* number of the next statement */
    uint32_t indent;
} Printer;

/* ---- statements ----------------------------------------------------------------------------- */

static NodeInfo *info_of(Printer *p, const Expr *e)
{
    return map_get(p->info, PTR_KEY(e));
}

static bool has_halo(const Expr *e)
{
    return e->type && e->type->kind == TYPE_TENSOR && e->type->halo;
}

/* Does the node get a statement of its own? */
static bool wants_stmt(Printer *p, const Expr *e, NodeInfo *i)
{
    i->depth = 0;
    switch (e->kind) {
    case EXPR_CONST:
    case EXPR_VAR:
    case EXPR_GLOBAL:
    case EXPR_OP:
    case EXPR_CTOR: return false;
    case EXPR_FUNC: return i->uses > 1;
    case EXPR_TUPLE:
    case EXPR_PROJ:
        for (uint32_t k = 0; k < e->nkids; k++) {
            const NodeInfo *kid = info_of(p, e->kids[k]);

            if (!kid->stmt && kid->depth + 1 > i->depth)
                i->depth = kid->depth + 1;
        }
        if (i->depth > MAX_INLINE || (e->kind == EXPR_TUPLE && i->uses > 1)) {
            i->depth = 0;
            return true;
        }
        return false;
    case EXPR_CALL:
    case EXPR_LET:
    case EXPR_IF:
    case EXPR_REF_NEW:
    case EXPR_REF_READ:
    case EXPR_REF_WRITE:
    case EXPR_MATCH: return !i->result || has_halo(e);
    }
    return false;
}

/* Scopes and statements of everything under root; its scope. */
static GraphScope *analyse(Printer *p, const Expr *root)
{
    ExprList    list = expr_post_order(p->c, root);
    GraphScope *top = scopes_of(p->c, root, p->info);

    for (uint32_t i = 0; i < list.n; i++) {
        NodeInfo *n = info_of(p, list.at[i]);

        if (n && (n->stmt = wants_stmt(p, list.at[i], n)))
            vec_push(p->c->scratch, &n->scope->stmts, list.at[i]);
    }
    return top;
}

/* ---- names ---------------------------------------------------------------------------------- */

static const char *unique(Printer *p, Map *used, const char *name)
{
    Strings    *s = p->c->strings;
    const char *base = intern(s, name), *now = base;
    uint64_t    n = (uint64_t)(uintptr_t)map_get(used, PTR_KEY(base));

    while (map_get(used, PTR_KEY(now)))
        now = intern_printf(s, "%s.%llu", base, (unsigned long long)n++);
    map_put(used, PTR_KEY(base), (void *)(uintptr_t)(n ? n : 1));
    if (now != base)
        map_put(used, PTR_KEY(now), (void *)1);
    return now;
}

static void print_name(StrBuf *out, char sigil, const char *name)
{
    bool plain = name_start(name[0]);

    for (const char *s = name; *s; s++)
        plain &= name_char(*s);
    str_addc(out, sigil);
    if (plain) {
        str_add(out, name);
        return;
    }
    print_quoted(out, name);
}

static void print_var(Printer *p, const Expr *v)
{
    const char *name = map_get(p->names, PTR_KEY(v));

    if (!name) {
        name = unique(p, p->used, v->u.var.name && *v->u.var.name ? v->u.var.name : "v");
        map_put(p->names, PTR_KEY(v), (void *)(uintptr_t)name);
    }
    print_name(p->out, '%', name);
}

/* ---- types, places -------------------------------------------------------------------------- */

static void note_dim(void *user, const Atom *dim)
{
    Printer *p = user;

    if (map_get(p->dims_seen, PTR_KEY(dim)))
        return;
    map_put(p->dims_seen, PTR_KEY(dim), p);
    if (dim->below) /* of dimensions without such a bound */
        form_mentions(dim->below, note_dim, p);
    vec_push(p->c->scratch, &p->dims, dim);
}

static void print_type(Printer *p, const Type *t)
{
    type_mentions(t, note_dim, p);
    type_print(p->c, t, p->out);
}

static void print_loc(Printer *p, Loc l)
{
    bool plain = l.name && name_start(l.name[0]);

    if (!p->how.locs || !l.file || l.col || (!l.name && !l.line))
        return;
    str_add(p->out, " loc(");
    print_quoted(p->out, ctx_path(p->c, l.file));
    if (l.line)
        str_printf(p->out, ":%u", l.line);
    if (l.name) {
        for (const char *s = l.name; *s; s++)
            plain &= name_char(*s);
        str_addc(p->out, ':');
        if (plain)
            str_add(p->out, l.name);
        else
            print_quoted(p->out, l.name);
    }
    str_addc(p->out, ')');
}

/* ---- constants ------------------------------------------------------------------------------ */

/* One number; `marked` tells its type: 3, 1.5, 3_i64, 1.5_f64. */
static void print_number(Printer *p, DType t, const uint8_t *at, bool marked)
{
    StrBuf *out = p->out;
    char    text[40];

    if (dtype_is_bool(t)) {
        str_add(out, *at ? "true" : "false");
        return;
    }
    if (dtype_is_real(t)) {
        double v = dtype_get_f(t, at);

        if (isnan(v)) {
            str_add(out, "0x");
            for (uint32_t i = dtype_bytes(t); i-- > 0;)
                str_printf(out, "%02x", at[i]);
            if (marked)
                str_printf(out, "_%s", dtype_text(p->c, t));
            return;
        }
        snprintf(text, sizeof text, t.bits == 64 ? "%.17g" : "%.9g", v);
        str_add(out, text);
        if (marked && !isinf(v) && !strpbrk(text, ".e"))
            str_add(out, ".0");
    } else if (t.code == DT_UINT) {
        str_printf(out, "%llu", (unsigned long long)dtype_get_i(t, at));
    } else {
        str_printf(out, "%lld", (long long)dtype_get_i(t, at));
    }
    if (marked && !dtype_eq(t, DT_F32) && !dtype_eq(t, DT_I32))
        str_printf(out, "_%s", dtype_text(p->c, t));
}

static bool is_splat(const Const *k)
{
    size_t size = dtype_bytes(k->type->dtype);

    for (size_t i = size; i < k->data.n; i += size)
        if (memcmp(k->data.at, k->data.at + i, size) != 0)
            return false;
    return k->data.n >= size && k->data.n <= MAX_SPLAT;
}

static void print_const_value(Printer *p, const Const *k)
{
    DType    t = k->type->dtype;
    uint32_t size = dtype_bytes(t);
    char     hex[65];

    if (k->data.n <= SMALL_CONST) {
        str_addc(p->out, '[');
        for (size_t i = 0; i < k->data.n; i += size) {
            str_add(p->out, i ? ", " : "");
            print_number(p, t, k->data.at + i, false);
        }
        str_addc(p->out, ']');
    } else if (is_splat(k)) {
        str_add(p->out, "splat(");
        print_number(p, t, k->data.at, false);
        str_addc(p->out, ')');
    } else {
        sha256_hex(sha256(k->data), hex);
        str_printf(p->out, "sha256:%s", hex);
    }
}

static void print_const(Printer *p, const Const *k)
{
    const char *name;

    if (k->type->n == 0) {
        print_number(p, k->type->dtype, k->data.at, true);
        return;
    }
    name = map_get(p->names, PTR_KEY(k));
    if (!name) {
        name = unique(p, p->used_consts, k->name && *k->name ? k->name : "c");
        map_put(p->names, PTR_KEY(k), (void *)(uintptr_t)name);
        vec_push(p->c->scratch, &p->consts, k);
    }
    str_add(p->out, "const ");
    print_name(p->out, '@', name);
}

/* ---- expressions ---------------------------------------------------------------------------- */

static void print_value(Printer *p, const Expr *e);
static void print_block(Printer *p, GraphScope *s, const Expr *result);

static void newline(Printer *p)
{
    str_addc(p->out, '\n');
    for (uint32_t i = 0; i < p->indent; i++)
        str_add(p->out, "  ");
}

/* A use of e: its statement's number, or the expression itself. */
static void print_use(Printer *p, const Expr *e)
{
    const char *name = map_get(p->names, PTR_KEY(e));

    if (e->kind == EXPR_VAR)
        print_var(p, e);
    else if (name && e->kind != EXPR_CONST)
        str_printf(p->out, "%%%s", name);
    else
        print_value(p, e);
}

static void print_list(Printer *p, uint32_t n, const Expr *const *at)
{
    for (uint32_t i = 0; i < n; i++) {
        str_add(p->out, i ? ", " : "");
        print_use(p, at[i]);
    }
}

static void print_braces(Printer *p, GraphScope *s, const Expr *result)
{
    str_add(p->out, "{");
    p->indent++;
    newline(p);
    print_block(p, s, result);
    p->indent--;
    newline(p);
    str_add(p->out, "}");
}

static void print_func(Printer *p, const Expr *e, const char *global)
{
    str_add(p->out, "fn ");
    if (e->u.func.primitive)
        str_add(p->out, e->u.func.host ? "primitive host " : "primitive ");
    if (e->u.func.compiler) {
        str_add(p->out, "compiler(");
        print_quoted(p->out, e->u.func.compiler);
        str_add(p->out, ") ");
    }
    if (global)
        print_name(p->out, '@', global);
    str_addc(p->out, '(');
    for (uint32_t i = 0; i < func_nparams(e); i++) {
        const Expr *v = func_param(e, i);

        str_add(p->out, i ? ", " : "");
        print_var(p, v);
        if (v->u.var.annotation) {
            str_add(p->out, ": ");
            print_type(p, v->u.var.annotation);
        }
    }
    str_add(p->out, ")");
    if (e->u.func.ret) {
        str_add(p->out, " -> ");
        print_type(p, e->u.func.ret);
    }
    print_loc(p, e->loc);
    str_addc(p->out, ' ');
    print_braces(p, info_of(p, e)->sub[0], func_body(e));
}

static void print_pattern(Printer *p, const Pattern *q)
{
    switch (q->kind) {
    case PAT_WILD: str_addc(p->out, '_'); return;
    case PAT_VAR: print_var(p, q->var); return;
    case PAT_CTOR:
        str_add(p->out, q->ctor->name);
        if (!q->nkids)
            return;
        break;
    case PAT_TUPLE: break;
    }
    str_addc(p->out, '(');
    for (uint32_t i = 0; i < q->nkids; i++) {
        str_add(p->out, i ? ", " : "");
        print_pattern(p, q->kids[i]);
    }
    str_add(p->out, q->kind == PAT_TUPLE && q->nkids == 1 ? ",)" : ")");
}

static void print_match(Printer *p, const Expr *e)
{
    const NodeInfo *i = info_of(p, e);

    str_add(p->out, e->u.match.complete ? "match " : "match? ");
    print_use(p, e->kids[0]);
    str_add(p->out, " {");
    p->indent++;
    for (uint32_t k = 1; k < e->nkids; k++) {
        newline(p);
        print_pattern(p, e->u.match.patterns[k - 1]);
        str_add(p->out, " => ");
        print_braces(p, i->clauses[k], e->kids[k]);
        str_add(p->out, k + 1 < e->nkids ? "," : "");
    }
    p->indent--;
    newline(p);
    str_addc(p->out, '}');
}

static void print_call(Printer *p, const Expr *e)
{
    const Op *op = call_op(e);

    if (op)
        str_add(p->out, op->text);
    else
        print_use(p, e->kids[0]);
    str_addc(p->out, '(');
    print_list(p, e->nkids - 1, e->kids + 1);
    if (op && op->attrs) {
        attrs_mentions(op->attrs, e->u.attrs, note_dim, p);
        StrBuf s = strbuf(p->c->scratch);

        attrs_print(p->c, op->attrs, e->u.attrs, &s);
        if (s.n) /* it begins with a comma */
            str_add(p->out, e->nkids == 1 ? s.at + 2 : s.at);
    }
    str_addc(p->out, ')');
}

static void print_proj(Printer *p, const Expr *e)
{
    const Expr *of = e->kids[0];
    /* `%x.0` would be a name. */
    bool paren = of->kind == EXPR_VAR || of->kind == EXPR_FUNC;

    str_add(p->out, paren ? "(" : "");
    print_use(p, of);
    str_add(p->out, paren ? ")" : "");
    str_printf(p->out, ".%u", e->u.index);
}

/* The node itself, in full. */
static void print_value(Printer *p, const Expr *e)
{
    const NodeInfo *i;

    switch (e->kind) {
    case EXPR_CONST: print_const(p, e->u.constant); return;
    case EXPR_VAR: print_var(p, e); return;
    case EXPR_GLOBAL: print_name(p->out, '@', e->u.name); return;
    case EXPR_OP: str_add(p->out, e->u.op->text); return;
    case EXPR_CTOR: str_add(p->out, e->u.ctor->name); return;
    case EXPR_TUPLE:
        str_addc(p->out, '(');
        print_list(p, e->nkids, e->kids);
        str_add(p->out, e->nkids == 1 ? ",)" : ")");
        return;
    case EXPR_PROJ: print_proj(p, e); return;
    case EXPR_FUNC: print_func(p, e, NULL); return;
    case EXPR_CALL: print_call(p, e); break;
    case EXPR_LET:
        str_add(p->out, "{");
        p->indent++;
        newline(p);
        print_block(p, NULL, e);
        p->indent--;
        newline(p);
        str_add(p->out, "}");
        break;
    case EXPR_IF:
        i = info_of(p, e);
        str_add(p->out, "if ");
        print_use(p, e->kids[0]);
        str_addc(p->out, ' ');
        print_braces(p, i->sub[0], e->kids[1]);
        str_add(p->out, " else ");
        print_braces(p, i->sub[1], e->kids[2]);
        break;
    case EXPR_REF_NEW:
    case EXPR_REF_READ:
    case EXPR_REF_WRITE:
        str_add(p->out, e->kind == EXPR_REF_NEW    ? "ref("
                        : e->kind == EXPR_REF_READ ? "ref_read("
                                                   : "ref_write(");
        print_list(p, e->nkids, e->kids);
        str_addc(p->out, ')');
        break;
    case EXPR_MATCH: print_match(p, e); break;
    }
    print_loc(p, e->loc);
}

static void print_end(Printer *p, const Expr *e)
{
    str_addc(p->out, ';');
    if (p->how.types && e->type) {
        str_add(p->out, " // ");
        type_print(p->c, e->type, p->out);
    }
    newline(p);
}

static void print_stmts(Printer *p, const GraphScope *s)
{
    for (uint32_t i = 0; s && i < s->stmts.n; i++) {
        const Expr *e = s->stmts.at[i];
        const char *name = intern_printf(p->c->strings, "%u", p->next++);

        str_printf(p->out, "%%%s", name);
        if (has_halo(e)) {
            str_add(p->out, ": ");
            print_type(p, e->type);
        }
        str_add(p->out, " = ");
        print_value(p, e);
        map_put(p->names, PTR_KEY(e), (void *)(uintptr_t)name);
        print_end(p, e);
    }
}

/* Does the text of e begin with `fn`?  `let %f = fn ..` may be recursive, so there the parser
 * cannot take the variable's type from its value. */
static bool begins_with_fn(Printer *p, const Expr *e)
{
    while (!map_get(p->names, PTR_KEY(e)) &&
           ((e->kind == EXPR_CALL && !call_op(e)) || e->kind == EXPR_PROJ))
        e = e->kids[0];
    return e->kind == EXPR_FUNC && !map_get(p->names, PTR_KEY(e));
}

/* Statements of the scope, then its result; a chain of lets is a loop here. */
static void print_block(Printer *p, GraphScope *s, const Expr *result)
{
    print_stmts(p, s);
    while (result->kind == EXPR_LET && !map_get(p->names, PTR_KEY(result))) {
        const Expr *v = let_var(result), *value = let_value(result);

        str_add(p->out, "let ");
        print_var(p, v);
        if (v->u.var.annotation &&
            (v->u.var.annotation != value->type || begins_with_fn(p, value))) {
            str_add(p->out, ": ");
            print_type(p, v->u.var.annotation);
        }
        str_add(p->out, " = ");
        print_use(p, value);
        print_end(p, value);
        print_stmts(p, info_of(p, result)->sub[0]);
        result = let_body(result);
    }
    print_use(p, result);
}

/* ---- modules -------------------------------------------------------------------------------- */

static Printer printer(Ctx *c, RelayPrint how, StrBuf *out)
{
    Printer p = {.c = c, .how = how, .out = out};

    p.names = map_new(c->scratch);
    p.used_consts = map_new(c->scratch);
    p.dims_seen = map_new(c->scratch);
    p.info = map_new(c->scratch);
    p.used = map_new(c->scratch);
    return p;
}

static void print_global(Printer *p, const GlobalDef *g)
{
    p->info = map_new(p->c->scratch);
    p->used = map_new(p->c->scratch);
    p->next = 0;
    analyse(p, g->func);
    str_addc(p->out, '\n');
    print_func(p, g->func, g->name);
    str_addc(p->out, '\n');
}

static void print_adt(Printer *p, const Adt *a)
{
    str_printf(p->out, "type %s", a->name);
    for (uint32_t i = 0; i < a->nvars; i++)
        str_printf(p->out, "%s%s%s", i ? ", " : "[", a->vars[i]->name,
                   i + 1 == a->nvars ? "]" : "");
    str_add(p->out, " { ");
    for (uint32_t i = 0; i < a->nctors; i++) {
        const Ctor *k = a->ctors[i];

        str_printf(p->out, "%s%s", i ? ", " : "", k->name);
        for (uint32_t j = 0; j < k->nfields; j++) {
            str_add(p->out, j ? ", " : "(");
            print_type(p, k->fields[j]);
            str_add(p->out, j + 1 == k->nfields ? ")" : "");
        }
    }
    str_add(p->out, " }\n");
}

static bool sha_is_zero(const Sha256 *s)
{
    static const Sha256 zero;

    return !memcmp(s, &zero, sizeof zero);
}

void relay_print(Ctx *c, const Module *m, RelayPrint how, StrBuf *out)
{
    StrBuf  funcs = strbuf(c->scratch), adts = strbuf(c->scratch);
    Printer p = printer(c, how, &funcs);
    size_t  start = out->n;
    char    hex[65];

    p.out = &adts;
    for (uint32_t i = 0; i < m->nadts; i++)
        print_adt(&p, m->adts[i]);
    p.out = &funcs;
    for (uint32_t i = 0; i < m->nfuncs; i++)
        print_global(&p, &m->funcs[i]);

    p.out = out;
    if (!sha_is_zero(&m->sha)) {
        sha256_hex(m->sha, hex);
        str_printf(out, "source sha256:%s\n", hex);
    }
    if (m->products.bits)
        str_printf(out, "products %s\n", dtype_text(c, m->products));
    for (uint32_t i = 0; i < m->noutputs; i++) {
        str_add(out, i ? ", " : "outputs ");
        print_quoted(out, m->output_names[i]);
        str_add(out, i + 1 == m->noutputs ? "\n" : "");
    }
    for (uint32_t i = 0; i < p.consts.n; i++)
        type_mentions(p.consts.at[i]->type, note_dim, &p);
    for (uint32_t i = 0; i < p.dims.n; i++)
        str_printf(out, "dim %s in %lld..%s\n", p.dims.at[i]->name, (long long)p.dims.at[i]->lo,
                   dim_text(c, atom_most(c->arith, p.dims.at[i])));
    str_add(out, adts.at ? adts.at : "");
    for (uint32_t i = 0; i < p.consts.n; i++) {
        const Const *k = p.consts.at[i];

        str_add(out, "const ");
        print_name(out, '@', map_get(p.names, PTR_KEY(k)));
        str_add(out, ": ");
        type_print(c, k->type, out);
        str_add(out, " = ");
        print_const_value(&p, k);
        str_addc(out, '\n');
    }
    if (funcs.n) /* functions are set apart by empty lines, which the first needs only after a head
                  */
        str_add(out, out->n == start ? funcs.at + 1 : funcs.at);
}

const char *expr_text(Ctx *c, const Expr *e)
{
    StrBuf  s = strbuf(c->scratch);
    Printer p = printer(c, (RelayPrint){0}, &s);

    print_block(&p, analyse(&p, e), e);
    return s.at;
}

/* ---- the side file -------------------------------------------------------------------------- */

static void put_u64(uint8_t *at, uint64_t v)
{
    for (int i = 0; i < 8; i++)
        at[i] = (uint8_t)(v >> 8 * i);
}

typedef struct {
    Bytes    data;
    Sha256   sha;
    uint64_t offset;
} SideConst;

typedef VEC(SideConst) SideConsts;

static void collect_consts(Ctx *c, const Expr *root, Map *seen, SideConsts *out)
{
    ExprList list = expr_post_order(c, root);

    for (uint32_t i = 0; i < list.n; i++) {
        const Const *k = list.at[i]->kind == EXPR_CONST ? list.at[i]->u.constant : NULL;
        SideConst    s;
        uint64_t     key;

        if (!k || map_get(seen, PTR_KEY(k)))
            continue;
        map_put(seen, PTR_KEY(k), seen);
        if (k->data.n <= SMALL_CONST || is_splat(k))
            continue;
        s = (SideConst){k->data, sha256(k->data), 0};
        memcpy(&key, s.sha.b, sizeof key);
        if (map_get(seen, key | 1)) /* odd: no pointer */
            continue;
        map_put(seen, key | 1, seen);
        vec_push(c->scratch, out, s);
    }
}

Bytes relay_consts(Ctx *c, const Module *m)
{
    SideConsts list = {0};
    Map       *seen = map_new(c->scratch);
    uint64_t   at;
    uint8_t   *blob;

    for (uint32_t i = 0; i < m->nfuncs; i++)
        collect_consts(c, m->funcs[i].func, seen, &list);
    at = 24 + (uint64_t)list.n * CONSTS_ENTRY;
    for (uint32_t i = 0; i < list.n; i++) {
        at = (at + 63) / 64 * 64;
        list.at[i].offset = at;
        at += list.at[i].data.n;
    }
    if (!list.n)
        return (Bytes){0};
    blob = arena_alloc(c->arena, at);
    memcpy(blob, CONSTS_MAGIC, 16);
    put_u64(blob + 16, list.n);
    for (uint32_t i = 0; i < list.n; i++) {
        uint8_t *e = blob + 24 + (size_t)i * CONSTS_ENTRY;

        memcpy(e, list.at[i].sha.b, 32);
        put_u64(e + 32, list.at[i].offset);
        put_u64(e + 40, list.at[i].data.n);
        memcpy(blob + list.at[i].offset, list.at[i].data.at, list.at[i].data.n);
    }
    return (Bytes){blob, at};
}
