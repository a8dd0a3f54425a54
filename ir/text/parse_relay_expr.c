/* Relay from text: expressions, functions.
 *
 * `%x = e;` only names a node, so the graph that comes out shares what the text names;
 * `let %x = e; rest` is a node.  Statements are a loop, nesting is bounded. */
#include "ir/text/parse_relay.h"

#include <string.h>

/* ---- names in scope ------------------------------------------------------------------------- */

static void bind(Parser *p, const char *name, const Expr *e)
{
    Binding b = {name, map_get(p->locals, PTR_KEY(name))};

    vec_push(p->c->scratch, &p->bindings, b);
    map_put(p->locals, PTR_KEY(name), (void *)(uintptr_t)e);
}

static void leave(Parser *p, uint32_t mark)
{
    while (p->bindings.n > mark) {
        Binding b = p->bindings.at[--p->bindings.n];

        map_put(p->locals, PTR_KEY(b.name), b.was);
    }
}

/* After `%`: `x`, `"any text"` or a number; numbers keep their % as names. */
static const char *parse_local(Parser *p)
{
    const char *s = p->at;

    if (*s < '0' || *s > '9')
        return rp_name(p);
    while (*p->at >= '0' && *p->at <= '9')
        p->at++;
    return intern_printf(p->c->strings, "%%%.*s", (int)(p->at - s < 20 ? p->at - s : 20), s);
}

/* ---- expressions ---------------------------------------------------------------------------- */

static const Expr *parse_expr(Parser *p);
static const Expr *parse_block(Parser *p);

typedef VEC(const Expr *) ExprVec;

static bool parse_exprs(Parser *p, const char *close, ExprVec *out, bool *comma)
{
    *comma = false;
    while (!rp_accept(p, close)) {
        const Expr *e;

        if (out->n && !*comma)
            return FAIL(p, "expected ',' or '%s', found %s", close, rp_found(p));
        if (!(e = parse_expr(p)))
            return false;
        vec_push(p->c->scratch, out, e);
        *comma = rp_accept(p, ",");
    }
    return true;
}

/* The text of an attribute's value, strings without quotes. */
static const char *parse_attr_text(Parser *p)
{
    const char *s;

    rp_skip(p);
    s = p->at;
    if (*s == '"')
        return rp_string(p);
    if (*s == '[' || *s == '(') {
        uint32_t open = 0;

        for (; *p->at && *p->at != '\n'; p->at++) {
            open += *p->at == '[' || *p->at == '(';
            if ((*p->at == ']' || *p->at == ')') && !--open)
                break;
        }
        if (open || *p->at == '\n')
            return FAIL(p, "the list does not end on its line");
        p->at++;
    } else {
        while (name_char(*p->at) || *p->at == '-' || *p->at == '+')
            p->at++;
    }
    if (p->at == s)
        return FAIL(p, "expected a value, found %s", rp_found(p));
    return intern_n(p->c->strings, s, (size_t)(p->at - s));
}

static bool parse_attr(Parser *p, const Op *op, void *attrs, bool *given)
{
    const char *was = p->at, *name = rp_ident(p), *text;
    uint32_t    i, n = op->attrs ? op->attrs->nfields : 0;
    IdxParser   dims = rp_dims(p);

    for (i = 0; i < n && strcmp(op->attrs->fields[i].name, name) != 0; i++)
        ;
    if (i == n) {
        const char **names = NEW_ARRAY(p->c->scratch, const char *, n + 1), *near;

        for (i = 0; i < n; i++)
            names[i] = op->attrs->fields[i].name;
        p->at = was;
        FAIL(p, "'%s' has no attribute '%s'", op->text, name);
        if ((near = str_closest(name, names, n)))
            diag_hint(p->c->diags, "did you mean '%s'?", near);
        return false;
    }
    if (!rp_expect(p, "="))
        return false;
    rp_skip(p);
    was = p->at;
    if (!(text = parse_attr_text(p)))
        return false;
    if (!attrs_set_text(p->c, op->attrs, attrs, name, text, &dims)) {
        p->at = was;
        return FAIL(p, "'%s' is no value for attribute '%s'", text, name);
    }
    given[i] = true;
    return true;
}

/* `name =`, but not `name ==`. */
static bool at_attr(Parser *p)
{
    const char *s;

    rp_skip(p);
    s = p->at;
    if (!name_start(*s))
        return false;
    while (name_char(*s))
        s++;
    while (*s == ' ')
        s++;
    return *s == '=' && s[1] != '=';
}

static const Expr *parse_op_call(Parser *p, const Op *op, Loc loc)
{
    ExprVec args = {0};
    void   *attrs = op->attrs ? attrs_new(p->c, op->attrs) : NULL;
    bool   *given = NEW_ARRAY(p->c->scratch, bool, op->attrs ? op->attrs->nfields : 1), ok;
    bool    first = true;

    for (; !rp_accept(p, ")"); first = false) {
        const Expr *e;

        if (!first && !rp_accept(p, ","))
            return FAIL(p, "expected ',' or ')', found %s", rp_found(p));
        if (!first && rp_accept(p, ")"))
            break;
        if (at_attr(p)) {
            if (!parse_attr(p, op, attrs, given))
                return NULL;
        } else {
            if (!(e = parse_expr(p)))
                return NULL;
            vec_push(p->c->scratch, &args, e);
        }
    }
    for (uint32_t i = 0; op->attrs && i < op->attrs->nfields; i++)
        if (!op->attrs->fields[i].fallback && !given[i])
            return error_at(p->c, E_PARSE_TEXT, loc, "'%s' needs the attribute '%s'", op->text,
                            op->attrs->fields[i].name);
    loc = rp_loc(p, loc, &ok);
    return ok ? expr_call(p->c, op, args.n, args.at, attrs, loc) : NULL;
}

static const Expr *parse_var(Parser *p, bool annotated)
{
    Loc         loc = rp_here(p);
    const char *name;
    const Type *t = NULL;
    const Expr *v;

    if (!rp_expect(p, "%") || !(name = rp_name(p)))
        return NULL;
    if (annotated && rp_accept(p, ":") && !(t = rp_type(p)))
        return NULL;
    v = expr_var(p->c, name, t, loc);
    bind(p, name, v);
    return v;
}

/* After `fn [primitive [host]] [compiler(..)] [@name]`: the rest of a function.  `name` is its
 * global. */
const Expr *rp_func(Parser *p, FuncData data, const char *name, Loc loc)
{
    ExprVec     params = {0};
    uint32_t    mark = p->bindings.n;
    const Expr *body;
    bool        ok, known = true;

    if (!rp_expect(p, "("))
        return NULL;
    while (!rp_accept(p, ")")) {
        const Expr *v;

        if (params.n && !rp_expect(p, ","))
            return NULL;
        if (!(v = parse_var(p, true)))
            return NULL;
        known &= v->type != NULL;
        vec_push(p->c->scratch, &params, v);
    }
    if (rp_accept(p, "->") && !(data.ret = rp_type(p)))
        return NULL;
    loc = rp_loc(p, loc, &ok);
    if (!ok)
        return NULL;
    if (name && known && data.ret) { /* its body may call it */
        const Type **t = NEW_ARRAY(p->c->scratch, const Type *, params.n + 1);

        for (uint32_t i = 0; i < params.n; i++)
            t[i] = params.at[i]->type;
        map_put(p->globals, PTR_KEY(name),
                (void *)(uintptr_t)type_func(p->c, params.n, t, data.ret));
    }
    if (!(body = parse_block(p)))
        return NULL;
    leave(p, mark);
    return expr_func(p->c, params.n, params.at, body, data, loc);
}

bool rp_func_head(Parser *p, FuncData *data)
{
    *data = (FuncData){0};
    data->primitive = rp_accept_word(p, "primitive");
    data->host = data->primitive && rp_accept_word(p, "host");
    if (rp_accept(p, "compiler("))
        return (data->compiler = rp_string(p)) && rp_expect(p, ")");
    return true;
}

static const Expr *parse_if(Parser *p, Loc loc)
{
    const Expr *cond = parse_expr(p), *then, *other;
    bool        ok;

    if (!cond || !(then = parse_block(p)))
        return NULL;
    if (!rp_accept_word(p, "else"))
        return FAIL(p, "expected 'else', found %s", rp_found(p));
    if (!(other = parse_block(p)))
        return NULL;
    loc = rp_loc(p, loc, &ok);
    return ok ? expr_if(p->c, cond, then, other, loc) : NULL;
}

static const Pattern *parse_pattern(Parser *p)
{
    VEC(const Pattern *) kids = {0};
    Pattern     q = {0};
    const char *was;

    if (!rp_enter(p))
        return NULL;
    rp_skip(p);
    was = p->at;
    if (*p->at == '%') {
        q.kind = PAT_VAR;
        if (!(q.var = parse_var(p, false)))
            return NULL;
    } else if (rp_accept_word(p, "_")) {
        q.kind = PAT_WILD;
    } else {
        q.kind = *p->at == '(' ? PAT_TUPLE : PAT_CTOR;
        if (q.kind == PAT_CTOR) {
            const char *name = rp_ident(p);

            if (!name)
                return NULL;
            if (!(q.ctor = map_get(p->ctors, PTR_KEY(name)))) {
                p->at = was;
                return FAIL(p, "there is no constructor '%s'", name);
            }
        }
        if (rp_accept(p, "("))
            while (!rp_accept(p, ")")) {
                const Pattern *k;

                if (kids.n && !rp_expect(p, ","))
                    return NULL;
                if (kids.n && rp_accept(p, ")"))
                    break;
                if (!(k = parse_pattern(p)))
                    return NULL;
                vec_push(p->c->scratch, &kids, k);
            }
        if (q.kind == PAT_CTOR && kids.n != q.ctor->nfields)
            return FAIL(p, "'%s' has %u field%s, not %u", q.ctor->name, q.ctor->nfields,
                        q.ctor->nfields == 1 ? "" : "s", kids.n);
    }
    q.nkids = kids.n;
    q.kids = kids.n ? DUP_ARRAY(p->c->arena, kids.at, kids.n) : NULL;
    p->nest--;
    return arena_dup(p->c->arena, &q, sizeof q);
}

static const Expr *parse_match(Parser *p, Loc loc)
{
    VEC(const Pattern *) patterns = {0};
    ExprVec     bodies = {0};
    bool        complete = !rp_accept(p, "?"), ok;
    const Expr *value = parse_expr(p);

    if (!value || !rp_expect(p, "{"))
        return NULL;
    while (!rp_accept(p, "}")) {
        uint32_t       mark = p->bindings.n;
        const Pattern *q;
        const Expr    *body;

        if (bodies.n && !rp_expect(p, ","))
            return NULL;
        if (bodies.n && rp_accept(p, "}"))
            break;
        if (!(q = parse_pattern(p)) || !rp_expect(p, "=>") || !(body = parse_block(p)))
            return NULL;
        leave(p, mark);
        vec_push(p->c->scratch, &patterns, q);
        vec_push(p->c->scratch, &bodies, body);
    }
    if (!bodies.n)
        return FAIL(p, "a match needs a clause");
    loc = rp_loc(p, loc, &ok);
    return ok ? expr_match(p->c, value, bodies.n, patterns.at, bodies.at, complete, loc) : NULL;
}

static const Expr *parse_ref(Parser *p, ExprKind kind, Loc loc)
{
    ExprVec  args = {0};
    uint32_t want = kind == EXPR_REF_WRITE ? 2 : 1;
    bool     comma, ok;

    if (!rp_expect(p, "(") || !parse_exprs(p, ")", &args, &comma))
        return NULL;
    if (args.n != want)
        return FAIL(p, "expected %u operand%s, found %u", want, want == 1 ? "" : "s", args.n);
    loc = rp_loc(p, loc, &ok);
    if (!ok)
        return NULL;
    return kind == EXPR_REF_NEW    ? expr_ref_new(p->c, args.at[0], loc)
           : kind == EXPR_REF_READ ? expr_ref_read(p->c, args.at[0], loc)
                                   : expr_ref_write(p->c, args.at[0], args.at[1], loc);
}

static const Expr *unknown_word(Parser *p, const char *name)
{
    const char **names = NEW_ARRAY(p->c->scratch, const char *, p->c->ops.n + 1), *near;

    for (uint32_t i = 0; i < p->c->ops.n; i++)
        names[i] = p->c->ops.at[i].text;
    FAIL(p, "there is no operator '%s'", name);
    if ((near = str_closest(name, names, p->c->ops.n)))
        diag_hint(p->c->diags, "did you mean '%s'?", near);
    return NULL;
}

static const Expr *parse_word(Parser *p)
{
    Loc         loc = rp_here(p);
    const char *was = p->at, *name;
    const Op   *op;
    const Ctor *ctor;
    FuncData    data;
    uint8_t     truth = 1;

    if (rp_accept_word(p, "fn"))
        return rp_func_head(p, &data) ? rp_func(p, data, NULL, loc) : NULL;
    if (rp_accept_word(p, "if"))
        return parse_if(p, loc);
    if (rp_accept_word(p, "match"))
        return parse_match(p, loc);
    if (rp_accept_word(p, "ref"))
        return parse_ref(p, EXPR_REF_NEW, loc);
    if (rp_accept_word(p, "ref_read"))
        return parse_ref(p, EXPR_REF_READ, loc);
    if (rp_accept_word(p, "ref_write"))
        return parse_ref(p, EXPR_REF_WRITE, loc);
    if (rp_accept_word(p, "true"))
        return rp_scalar(p, DT_BOOL, &truth, loc);
    if (rp_accept_word(p, "false"))
        return rp_scalar(p, DT_BOOL, "", loc);
    if (rp_accept_word(p, "const")) {
        const Const *k;

        if (!rp_expect(p, "@") || !(name = rp_name(p)))
            return NULL;
        if (!(k = map_get(p->consts, PTR_KEY(name))))
            return FAIL(p, "there is no constant '@%s'", name);
        return expr_const(p->c, k, loc);
    }
    if (!(name = rp_ident(p)))
        return NULL;
    if ((ctor = map_get(p->ctors, PTR_KEY(name))))
        return expr_ctor(p->c, ctor);
    if (!strncmp(name, "inf", 3) || !strncmp(name, "nan", 3)) {
        p->at = was;
        return rp_literal(p);
    }
    if (!(op = op_find(p->c, name))) {
        p->at = was;
        return unknown_word(p, name);
    }
    if (rp_accept(p, "("))
        return parse_op_call(p, op, loc);
    return expr_op(p->c, op);
}

static const Expr *parse_primary(Parser *p)
{
    ExprVec     fields = {0};
    Loc         loc;
    const char *name;
    const Expr *e;
    bool        comma;

    rp_skip(p);
    loc = rp_here(p);
    switch (*p->at) {
    case '%':
        p->at++;
        if (!(name = parse_local(p)))
            return NULL;
        if (!(e = map_get(p->locals, PTR_KEY(name)))) {
            p->at = p->line_start + loc.col - 1;
            return FAIL(p, "'%s%s' is not defined here", *name == '%' ? "" : "%", name);
        }
        return e;
    case '@':
        p->at++;
        if (!(name = rp_name(p)))
            return NULL;
        return expr_global(p->c, name, map_get(p->globals, PTR_KEY(name)), loc);
    case '(':
        p->at++;
        if (!parse_exprs(p, ")", &fields, &comma))
            return NULL;
        if (fields.n == 1 && !comma)
            return fields.at[0];
        return expr_tuple(p->c, fields.n, fields.at, loc);
    case '{': return parse_block(p);
    case '-':
    case '+':
    case '.':
    case '0':
    case '1':
    case '2':
    case '3':
    case '4':
    case '5':
    case '6':
    case '7':
    case '8':
    case '9': return rp_literal(p);
    default: return parse_word(p);
    }
}

static const Expr *parse_expr(Parser *p)
{
    const Expr *e;

    if (!rp_enter(p))
        return NULL;
    e = parse_primary(p);
    while (e) {
        Loc loc = rp_here(p);

        if (*p->at == '.') {
            uint32_t i;

            p->at++;
            e = rp_u32(p, &i) ? expr_proj(p->c, e, i, loc) : NULL;
        } else if (*p->at == '(') {
            ExprVec args = {0};
            bool    comma, ok = false;

            p->at++;
            if (parse_exprs(p, ")", &args, &comma))
                loc = rp_loc(p, e->kind == EXPR_FUNC ? e->loc : loc, &ok);
            e = ok ? expr_apply(p->c, e, args.n, args.at, loc) : NULL;
        } else {
            break;
        }
    }
    p->nest--;
    return e;
}

typedef struct {
    const Expr *var, *value;
    Loc         loc;
} Let;

/* `%x[: T] =`: names a node.  True with `name` NULL: this is no such statement. */
static bool parse_binding_head(Parser *p, const char **name, const Type **t)
{
    const char *was, *was_line = p->line_start;
    uint32_t    line = p->line;

    *name = NULL;
    *t = NULL;
    rp_skip(p);
    was = p->at;
    if (*p->at != '%')
        return true;
    p->at++;
    if (!(*name = parse_local(p)))
        return false;
    if (rp_accept(p, ":"))
        return (*t = rp_type(p)) && rp_expect(p, "=");
    if (rp_peek(p, "=") && p->at[1] != '=')
        return rp_expect(p, "=");
    *name = NULL;
    p->at = was;
    p->line = line;
    p->line_start = was_line;
    rp_skip(p);
    return true;
}

static bool parse_let(Parser *p, Let *out)
{
    const char *name;
    const Type *t = NULL;

    out->loc = rp_here(p);
    if (!rp_expect(p, "%") || !(name = rp_name(p)) || (rp_accept(p, ":") && !(t = rp_type(p))) ||
        !rp_expect(p, "="))
        return false;
    /* A function may call itself by the name it is bound to. */
    if (rp_peek_word(p, "fn")) {
        out->var = expr_var(p->c, name, t, out->loc);
        bind(p, name, out->var);
        if (!(out->value = parse_expr(p)) || !rp_expect(p, ";"))
            return false;
        return true;
    }
    if (!(out->value = parse_expr(p)) || !rp_expect(p, ";"))
        return false;
    out->var = expr_var(p->c, name, t ? t : out->value->type, out->loc);
    bind(p, name, out->var);
    return true;
}

/* `{ statements result }` */
static const Expr *parse_block(Parser *p)
{
    VEC(Let) lets = {0};
    uint32_t    mark = p->bindings.n;
    const Expr *e;

    if (!rp_expect(p, "{") || !rp_enter(p))
        return NULL;
    for (;;) {
        const char *name;
        const Type *t;
        Let         let;

        if (rp_accept_word(p, "let")) {
            if (!parse_let(p, &let))
                return NULL;
            vec_push(p->c->scratch, &lets, let);
            continue;
        }
        if (!parse_binding_head(p, &name, &t) || !(e = parse_expr(p)))
            return NULL;
        if (!name)
            break;
        if (t && e->type && type_plain(p->c, t) != type_plain(p->c, e->type))
            return FAIL(p, "'%s' is declared as %s and is %s", name, type_text(p->c, t),
                        type_text(p->c, e->type));
        if (t)
            e = expr_with_type(p->c, e, t);
        bind(p, name, e);
        if (!rp_expect(p, ";"))
            return NULL;
    }
    if (!rp_expect(p, "}"))
        return NULL;
    while (lets.n && e) {
        Let l = lets.at[--lets.n];

        e = expr_let(p->c, l.var, l.value, e, l.loc);
    }
    leave(p, mark);
    p->nest--;
    return e;
}
