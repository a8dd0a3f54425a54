/* Relay from text: what print_relay.c prints, and a little more freely (IR.md, section 1).
 *
 * A recursive descent over the characters.  `%x = e;` only names a node, so the graph that comes
 * out shares what the text names; `let %x = e; rest` is a node.  Nesting is bounded, statements are
 * a loop.  The first error ends the parse: E_PARSE_TEXT for the grammar (with a caret), E_TYPE from
 * the operators' relations. */
#include "ir/relay_impl.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define MAX_NEST 200

typedef struct {
    const char *name; /* interned; numbered ones with their % */
    void       *was;  /* what the name meant outside */
} Binding;

typedef struct {
    Ctx        *c;
    const char *file, *start, *at, *line_start, *end;
    uint32_t    line, nest;
    Map        *locals; /* interned name to Expr */
    VEC(Binding) bindings;
    Map *consts;  /* interned name to Const */
    Map *dims;    /* interned name to Idx */
    Map *adts;    /* interned name to Adt */
    Map *ctors;   /* interned name to Ctor */
    Map *tvars;   /* type variables of the declaration being read, or NULL */
    Map *globals; /* interned name to its type, once known */
    Map *side;    /* hash of a sha256 to Bytes of the side file */
    VEC(GlobalDef) funcs;
    VEC(const Adt *) adt_list;
    VEC(const char *) outputs;
    Sha256 sha;
} Parser;

/* ---- characters
 * ----------------------------------------------------------------------------------- */

static Loc here(const Parser *p)
{
    return (Loc){p->file, p->line, (uint32_t)(p->at - p->line_start) + 1, NULL};
}

#define FAIL(p, ...) error_at((p)->c, E_PARSE_TEXT, here(p), __VA_ARGS__)

static void skip(Parser *p)
{
    for (;; p->at++) {
        if (*p->at == '\n') {
            p->line++;
            p->line_start = p->at + 1;
        } else if (p->at[0] == '/' && p->at[1] == '/') {
            while (*p->at && *p->at != '\n')
                p->at++;
            p->at--;
        } else if (*p->at != ' ' && *p->at != '\t' && *p->at != '\r') {
            return;
        }
    }
}

static bool peek(Parser *p, const char *token)
{
    skip(p);
    return str_starts(p->at, token);
}

static bool accept(Parser *p, const char *token)
{
    if (!peek(p, token))
        return false;
    p->at += strlen(token);
    return true;
}

/* What stands here, for messages. */
static const char *found(Parser *p)
{
    const char *s;
    size_t      n = 0;

    skip(p);
    s = p->at;
    if (!*s)
        return "the end of the text";
    if (name_char(*s))
        while (name_char(s[n]) && n < 30)
            n++;
    else
        n = 1;
    return arena_printf(p->c->scratch, "'%.*s'", (int)n, s);
}

static bool expect(Parser *p, const char *token)
{
    if (accept(p, token))
        return true;
    return FAIL(p, "expected '%s', found %s", token, found(p));
}

/* A keyword: not the beginning of a longer name. */
static bool peek_word(Parser *p, const char *word)
{
    return peek(p, word) && !name_char(p->at[strlen(word)]);
}

static bool accept_word(Parser *p, const char *word)
{
    if (!peek_word(p, word))
        return false;
    p->at += strlen(word);
    return true;
}

static const char *parse_ident(Parser *p)
{
    const char *s;

    skip(p);
    s = p->at;
    if (!name_start(*s))
        return FAIL(p, "expected a name, found %s", found(p));
    while (name_char(*p->at))
        p->at++;
    return intern_n(p->c->strings, s, (size_t)(p->at - s));
}

static int hex_digit(char ch)
{
    return ch >= '0' && ch <= '9'   ? ch - '0'
           : ch >= 'a' && ch <= 'f' ? ch - 'a' + 10
           : ch >= 'A' && ch <= 'F' ? ch - 'A' + 10
                                    : -1;
}

static const char *parse_string(Parser *p)
{
    StrBuf s = strbuf(p->c->scratch);

    if (!expect(p, "\""))
        return NULL;
    for (; *p->at != '"'; p->at++) {
        if (!*p->at || *p->at == '\n')
            return FAIL(p, "the string does not end on its line");
        if (*p->at == '\\' && p->at[1] == 'x' && hex_digit(p->at[2]) >= 0 &&
            hex_digit(p->at[3]) >= 0) {
            int ch = hex_digit(p->at[2]) * 16 + hex_digit(p->at[3]);

            if (!ch)
                return FAIL(p, "a string cannot hold a zero byte");
            str_addc(&s, (char)ch);
            p->at += 3;
        } else if (*p->at == '\\' && p->at[1] == 'n') {
            str_addc(&s, '\n');
            p->at++;
        } else {
            if (*p->at == '\\' && p->at[1] && p->at[1] != '\n')
                p->at++;
            str_addc(&s, *p->at);
        }
    }
    p->at++;
    return intern(p->c->strings, s.at ? s.at : "");
}

/* After the sigil: `name` or `"any text"`. */
static const char *parse_name(Parser *p)
{
    return *p->at == '"' ? parse_string(p) : parse_ident(p);
}

static bool parse_u64(Parser *p, uint64_t *v)
{
    char *end;

    skip(p);
    errno = 0;
    if (*p->at < '0' || *p->at > '9')
        return FAIL(p, "expected a number, found %s", found(p));
    *v = strtoull(p->at, &end, 10);
    if (errno == ERANGE)
        return FAIL(p, "the number is too large");
    p->at = end;
    return true;
}

static bool parse_i64(Parser *p, int64_t *v)
{
    bool     minus = accept(p, "-");
    uint64_t u;

    if (!parse_u64(p, &u))
        return false;
    if (u > (uint64_t)INT64_MAX)
        return FAIL(p, "the number is too large");
    *v = minus ? -(int64_t)u : (int64_t)u;
    return true;
}

static bool parse_sha(Parser *p, Sha256 *out)
{
    if (!expect(p, "sha256:"))
        return false;
    for (int i = 0; i < 32; i++, p->at += 2) {
        int hi = hex_digit(p->at[0]), lo = hi < 0 ? -1 : hex_digit(p->at[1]);

        if (lo < 0)
            return FAIL(p, "a sha256 has 64 hexadecimal digits");
        out->b[i] = (uint8_t)(hi * 16 + lo);
    }
    return true;
}

static bool enter(Parser *p)
{
    if (p->nest++ < MAX_NEST)
        return true;
    return FAIL(p, "the text nests deeper than %d", MAX_NEST);
}

/* ---- types
 * ------------------------------------------------------------------------------------------- */

static const Idx *dim_by_name(void *user, const char *name, size_t n)
{
    Parser *p = user;

    return map_get(p->dims, PTR_KEY(intern_n(p->c->strings, name, n)));
}

static const Idx *parse_dim(Parser *p)
{
    IdxParser   how = {.name = dim_by_name, .user = p};
    const Idx  *x;
    const char *was;

    skip(p);
    was = p->at;
    x = idx_parse(p->c->arith, &p->at, &how);
    if (!x || x->lo < 0) {
        p->at = was;
        return FAIL(p, "expected a dimension, a number or declared with 'dim', found %s", found(p));
    }
    return x;
}

static bool parse_dtype(Parser *p, DType *t)
{
    const char *was, *name;

    skip(p);
    was = p->at;
    if (!(name = parse_ident(p)))
        return false;
    if (dtype_parse(name, t) && t->lanes == 1)
        return true;
    p->at = was;
    return FAIL(p, "'%s' is no element type", name);
}

static bool parse_u32(Parser *p, uint32_t *v)
{
    uint64_t u;

    if (!parse_u64(p, &u))
        return false;
    if (u > INT32_MAX)
        return FAIL(p, "the number is too large");
    *v = (uint32_t)u;
    return true;
}

/* `halo(2:1+1, 3:1+1) = 0.0` */
static const Type *parse_halo(Parser *p, const Type *t)
{
    uint32_t *lo = NEW_ARRAY(p->c->scratch, uint32_t, t->n + 1);
    uint32_t *hi = NEW_ARRAY(p->c->scratch, uint32_t, t->n + 1), i;
    Halo      h = {.ndim = t->n, .lo = lo, .hi = hi};
    char     *end;

    do {
        if (!parse_u32(p, &i))
            return NULL;
        if (i >= t->n)
            return FAIL(p, "there is no dimension %u", i);
        if (!expect(p, ":") || !parse_u32(p, &lo[i]) || !expect(p, "+") || !parse_u32(p, &hi[i]))
            return NULL;
    } while (accept(p, ","));
    if (!expect(p, ")") || !expect(p, "="))
        return NULL;
    skip(p);
    h.value = strtod(p->at, &end);
    if (end == p->at)
        return FAIL(p, "expected the halo's value, found %s", found(p));
    p->at = end;
    return type_with_halo(p->c, t, &h);
}

static const Type *parse_type(Parser *p);

typedef VEC(const Type *) TypeVec;

/* Types up to `close`; `comma` tells whether the last was followed by a comma. */
static bool parse_types(Parser *p, const char *close, TypeVec *out, bool *comma)
{
    *comma = false;
    while (!accept(p, close)) {
        const Type *t;

        if (out->n && !*comma)
            return FAIL(p, "expected ',' or '%s', found %s", close, found(p));
        if (!(t = parse_type(p)))
            return false;
        vec_push(p->c->scratch, out, t);
        *comma = accept(p, ",");
    }
    return true;
}

static const Type *parse_tensor(Parser *p)
{
    VEC(const Idx *) dims = {0};
    DType dt;

    if (!expect(p, "[") || !expect(p, "("))
        return NULL;
    while (!accept(p, ")")) {
        const Idx *d;

        if (dims.n && !expect(p, ","))
            return NULL;
        if (dims.n && accept(p, ")"))
            break;
        if (!(d = parse_dim(p)))
            return NULL;
        vec_push(p->c->scratch, &dims, d);
    }
    if (!expect(p, ",") || !parse_dtype(p, &dt) || !expect(p, "]"))
        return NULL;
    if (accept(p, "halo("))
        return parse_halo(p, type_tensor(p->c, dt, dims.n, dims.at));
    return type_tensor(p->c, dt, dims.n, dims.at);
}

static const Type *parse_named_type(Parser *p)
{
    const char *was = p->at, *name = parse_ident(p);
    const Adt  *adt;
    TypeVec     args = {0};
    DType       dt;
    bool        comma;

    if (!name)
        return NULL;
    if (dtype_parse(name, &dt) && dt.lanes == 1)
        return type_tensor(p->c, dt, 0, NULL);
    if (p->tvars && map_get(p->tvars, PTR_KEY(name)))
        return map_get(p->tvars, PTR_KEY(name));
    if (!(adt = map_get(p->adts, PTR_KEY(name)))) {
        p->at = was;
        return FAIL(p, "there is no type '%s'", name);
    }
    if (accept(p, "[") && !parse_types(p, "]", &args, &comma))
        return NULL;
    if (args.n != adt->nvars)
        return FAIL(p, "'%s' takes %u type argument%s, not %u", name, adt->nvars,
                    adt->nvars == 1 ? "" : "s", args.n);
    return type_adt(p->c, name, args.n, args.at);
}

static const Type *parse_type(Parser *p)
{
    TypeVec     parts = {0};
    const Type *t = NULL;
    bool        comma;

    if (!enter(p))
        return NULL;
    skip(p);
    if (accept_word(p, "Tensor")) {
        t = parse_tensor(p);
    } else if (accept(p, "(")) {
        if (parse_types(p, ")", &parts, &comma))
            t = parts.n == 1 && !comma ? parts.at[0] : type_tuple(p->c, parts.n, parts.at);
    } else if (accept_word(p, "fn")) {
        const Type *ret;

        if (expect(p, "(") && parse_types(p, ")", &parts, &comma) && expect(p, "->") &&
            (ret = parse_type(p)))
            t = type_func(p->c, parts.n, parts.at, ret);
    } else if (accept_word(p, "ref")) {
        if (expect(p, "[") && (t = parse_type(p)))
            t = expect(p, "]") ? type_ref(p->c, t) : NULL;
    } else {
        t = parse_named_type(p);
    }
    p->nest--;
    return t;
}

/* ---- places
 * ---------------------------------------------------------------------------------------------- */

/* `loc("net.onnx":17:Conv_3)`, if it is there; `ok` false after an error. */
static Loc parse_loc(Parser *p, Loc otherwise, bool *ok)
{
    Loc l = {0};

    *ok = true;
    if (!accept(p, "loc("))
        return otherwise;
    *ok = false;
    if (!(l.file = parse_string(p)))
        return l;
    while (accept(p, ":")) {
        skip(p);
        if (*p->at >= '0' && *p->at <= '9') {
            if (!parse_u32(p, &l.line))
                return l;
        } else if (!(l.name = parse_name(p))) {
            return l;
        }
    }
    *ok = expect(p, ")");
    return l;
}

/* ---- numbers
 * -------------------------------------------------------------------------------------------------
 */

/* The text of one number: digits, sign, point, exponent, inf, nan, 0x.. */
static const char *number_text(Parser *p)
{
    const char *s, *start;

    skip(p);
    start = s = p->at;
    if (*s == '-' || *s == '+')
        s++;
    if (!strncmp(s, "inf", 3) || !strncmp(s, "nan", 3)) {
        s += 3;
    } else if (s[0] == '0' && s[1] == 'x') {
        for (s += 2; hex_digit(*s) >= 0; s++)
            ;
    } else if ((*s >= '0' && *s <= '9') || *s == '.') {
        for (; (*s >= '0' && *s <= '9') || *s == '.' || *s == 'e' || *s == 'E' ||
               ((*s == '-' || *s == '+') && (s[-1] == 'e' || s[-1] == 'E'));
             s++)
            ;
    } else {
        return FAIL(p, "expected a number, found %s", found(p));
    }
    if (s - start > 60)
        return FAIL(p, "the number is too long");
    p->at = s;
    return arena_printf(p->c->scratch, "%.*s", (int)(s - start), start);
}

static bool put_number(Parser *p, DType t, const char *s, void *out)
{
    char *end;

    errno = 0;
    if (s[0] == '0' && s[1] == 'x') {
        uint64_t bits = strtoull(s, &end, 16);

        if (errno == ERANGE || *end || (t.bits < 64 && bits >> t.bits))
            return FAIL(p, "'%s' does not fit %s", s, dtype_text(p->c, t));
        dtype_put_i((DType){DT_UINT, t.bits, 1}, out, (int64_t)bits);
        return true;
    }
    if (dtype_is_float(t)) {
        double v = strtod(s, &end);

        if (*end)
            return FAIL(p, "'%s' is no number", s);
        dtype_put_f(t, out, v);
        return true;
    }
    if (t.code == DT_UINT) {
        uint64_t v = strtoull(s, &end, 10);

        if (*end || *s == '-' || errno == ERANGE || (t.bits < 64 && v >> t.bits))
            return FAIL(p, "'%s' does not fit %s", s, dtype_text(p->c, t));
        dtype_put_i(t, out, (int64_t)v);
        return true;
    }
    {
        int64_t v = strtoll(s, &end, 10);

        if (*end || errno == ERANGE || (double)v < dtype_min(t) ||
            (t.bits < 64 && (double)v > dtype_max(t)))
            return FAIL(p, "'%s' does not fit %s", s, dtype_text(p->c, t));
        dtype_put_i(t, out, v);
    }
    return true;
}

/* A value of a known type. */
static bool parse_number(Parser *p, DType t, void *out)
{
    const char *s;

    if (dtype_is_bool(t)) {
        bool v = accept_word(p, "true");

        if (!v && !accept_word(p, "false"))
            return FAIL(p, "expected true or false, found %s", found(p));
        dtype_put_i(t, out, v);
        return true;
    }
    return (s = number_text(p)) && put_number(p, t, s, out);
}

static const Expr *scalar_const(Parser *p, DType t, const void *at, Loc loc)
{
    Bytes data = {arena_dup(p->c->arena, at, dtype_bytes(t)), dtype_bytes(t)};

    return expr_const(p->c, const_new(p->c, NULL, type_tensor(p->c, t, 0, NULL), data), loc);
}

/* 3, 1.5, 3_i64, 0x7fc00000_f32, -inf */
static const Expr *parse_literal(Parser *p)
{
    Loc         loc = here(p);
    const char *s = number_text(p);
    uint64_t    bits = 0;
    DType       t;

    if (!s)
        return NULL;
    t = strpbrk(s, ".eEin") && s[1] != 'x' ? DT_F32 : DT_I32;
    if (*p->at == '_') {
        p->at++;
        if (!parse_dtype(p, &t))
            return NULL;
    }
    return put_number(p, t, s, &bits) ? scalar_const(p, t, &bits, loc) : NULL;
}

/* ---- names in scope
 * ---------------------------------------------------------------------------------------------- */

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
        return parse_name(p);
    while (*p->at >= '0' && *p->at <= '9')
        p->at++;
    return intern_printf(p->c->strings, "%%%.*s", (int)(p->at - s < 20 ? p->at - s : 20), s);
}

/* ---- expressions
 * ----------------------------------------------------------------------------------------------------
 */

static const Expr *parse_expr(Parser *p);
static const Expr *parse_block(Parser *p);

typedef VEC(const Expr *) ExprVec;

static bool parse_exprs(Parser *p, const char *close, ExprVec *out, bool *comma)
{
    *comma = false;
    while (!accept(p, close)) {
        const Expr *e;

        if (out->n && !*comma)
            return FAIL(p, "expected ',' or '%s', found %s", close, found(p));
        if (!(e = parse_expr(p)))
            return false;
        vec_push(p->c->scratch, out, e);
        *comma = accept(p, ",");
    }
    return true;
}

/* The text of an attribute's value, strings without quotes. */
static const char *parse_attr_text(Parser *p)
{
    const char *s;

    skip(p);
    s = p->at;
    if (*s == '"')
        return parse_string(p);
    if (*s == '[' || *s == '(') {
        while (*p->at && *p->at != ']' && *p->at != ')' && *p->at != '\n')
            p->at++;
        if (*p->at != ']' && *p->at != ')')
            return FAIL(p, "the list does not end on its line");
        p->at++;
    } else {
        while (name_char(*p->at) || *p->at == '-' || *p->at == '+')
            p->at++;
    }
    if (p->at == s)
        return FAIL(p, "expected a value, found %s", found(p));
    return intern_n(p->c->strings, s, (size_t)(p->at - s));
}

static bool parse_attr(Parser *p, const Op *op, void *attrs, bool *given)
{
    const char *was = p->at, *name = parse_ident(p), *text;
    uint32_t    i, n = op->attrs ? op->attrs->nfields : 0;

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
    if (!expect(p, "="))
        return false;
    skip(p);
    was = p->at;
    if (!(text = parse_attr_text(p)))
        return false;
    if (!attrs_set_text(p->c, op->attrs, attrs, name, text)) {
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

    skip(p);
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

    for (; !accept(p, ")"); first = false) {
        const Expr *e;

        if (!first && !accept(p, ","))
            return FAIL(p, "expected ',' or ')', found %s", found(p));
        if (!first && accept(p, ")"))
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
    loc = parse_loc(p, loc, &ok);
    return ok ? expr_call(p->c, op, args.n, args.at, attrs, loc) : NULL;
}

static const Expr *parse_var(Parser *p, bool annotated)
{
    Loc         loc = here(p);
    const char *name;
    const Type *t = NULL;
    const Expr *v;

    if (!expect(p, "%") || !(name = parse_name(p)))
        return NULL;
    if (annotated && accept(p, ":") && !(t = parse_type(p)))
        return NULL;
    v = expr_var(p->c, name, t, loc);
    bind(p, name, v);
    return v;
}

/* After `fn [primitive] [compiler(..)] [@name]`: the rest of a function.  `name` is its global. */
static const Expr *parse_func_rest(Parser *p, FuncData data, const char *name, Loc loc)
{
    ExprVec     params = {0};
    uint32_t    mark = p->bindings.n;
    const Expr *body;
    bool        ok, known = true;

    if (!expect(p, "("))
        return NULL;
    while (!accept(p, ")")) {
        const Expr *v;

        if (params.n && !expect(p, ","))
            return NULL;
        if (!(v = parse_var(p, true)))
            return NULL;
        known &= v->type != NULL;
        vec_push(p->c->scratch, &params, v);
    }
    if (accept(p, "->") && !(data.ret = parse_type(p)))
        return NULL;
    loc = parse_loc(p, loc, &ok);
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

static bool parse_func_head(Parser *p, FuncData *data)
{
    *data = (FuncData){0};
    data->primitive = accept_word(p, "primitive");
    if (accept(p, "compiler("))
        return (data->compiler = parse_string(p)) && expect(p, ")");
    return true;
}

static const Expr *parse_if(Parser *p, Loc loc)
{
    const Expr *cond = parse_expr(p), *then, *other;
    bool        ok;

    if (!cond || !(then = parse_block(p)))
        return NULL;
    if (!accept_word(p, "else"))
        return FAIL(p, "expected 'else', found %s", found(p));
    if (!(other = parse_block(p)))
        return NULL;
    loc = parse_loc(p, loc, &ok);
    return ok ? expr_if(p->c, cond, then, other, loc) : NULL;
}

static const Pattern *parse_pattern(Parser *p)
{
    VEC(const Pattern *) kids = {0};
    Pattern     q = {0};
    const char *was;

    if (!enter(p))
        return NULL;
    skip(p);
    was = p->at;
    if (*p->at == '%') {
        q.kind = PAT_VAR;
        if (!(q.var = parse_var(p, false)))
            return NULL;
    } else if (accept_word(p, "_")) {
        q.kind = PAT_WILD;
    } else {
        q.kind = *p->at == '(' ? PAT_TUPLE : PAT_CTOR;
        if (q.kind == PAT_CTOR) {
            const char *name = parse_ident(p);

            if (!name)
                return NULL;
            if (!(q.ctor = map_get(p->ctors, PTR_KEY(name)))) {
                p->at = was;
                return FAIL(p, "there is no constructor '%s'", name);
            }
        }
        if (accept(p, "("))
            while (!accept(p, ")")) {
                const Pattern *k;

                if (kids.n && !expect(p, ","))
                    return NULL;
                if (kids.n && accept(p, ")"))
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
    bool        complete = !accept(p, "?"), ok;
    const Expr *value = parse_expr(p);

    if (!value || !expect(p, "{"))
        return NULL;
    while (!accept(p, "}")) {
        uint32_t       mark = p->bindings.n;
        const Pattern *q;
        const Expr    *body;

        if (bodies.n && !expect(p, ","))
            return NULL;
        if (bodies.n && accept(p, "}"))
            break;
        if (!(q = parse_pattern(p)) || !expect(p, "=>") || !(body = parse_block(p)))
            return NULL;
        leave(p, mark);
        vec_push(p->c->scratch, &patterns, q);
        vec_push(p->c->scratch, &bodies, body);
    }
    if (!bodies.n)
        return FAIL(p, "a match needs a clause");
    loc = parse_loc(p, loc, &ok);
    return ok ? expr_match(p->c, value, bodies.n, patterns.at, bodies.at, complete, loc) : NULL;
}

static const Expr *parse_ref(Parser *p, ExprKind kind, Loc loc)
{
    ExprVec  args = {0};
    uint32_t want = kind == EXPR_REF_WRITE ? 2 : 1;
    bool     comma, ok;

    if (!expect(p, "(") || !parse_exprs(p, ")", &args, &comma))
        return NULL;
    if (args.n != want)
        return FAIL(p, "expected %u operand%s, found %u", want, want == 1 ? "" : "s", args.n);
    loc = parse_loc(p, loc, &ok);
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
    Loc         loc = here(p);
    const char *was = p->at, *name;
    const Op   *op;
    const Ctor *ctor;
    FuncData    data;
    uint8_t     truth = 1;

    if (accept_word(p, "fn"))
        return parse_func_head(p, &data) ? parse_func_rest(p, data, NULL, loc) : NULL;
    if (accept_word(p, "if"))
        return parse_if(p, loc);
    if (accept_word(p, "match"))
        return parse_match(p, loc);
    if (accept_word(p, "ref"))
        return parse_ref(p, EXPR_REF_NEW, loc);
    if (accept_word(p, "ref_read"))
        return parse_ref(p, EXPR_REF_READ, loc);
    if (accept_word(p, "ref_write"))
        return parse_ref(p, EXPR_REF_WRITE, loc);
    if (accept_word(p, "true"))
        return scalar_const(p, DT_BOOL, &truth, loc);
    if (accept_word(p, "false"))
        return scalar_const(p, DT_BOOL, "", loc);
    if (accept_word(p, "const")) {
        const Const *k;

        if (!expect(p, "@") || !(name = parse_name(p)))
            return NULL;
        if (!(k = map_get(p->consts, PTR_KEY(name))))
            return FAIL(p, "there is no constant '@%s'", name);
        return expr_const(p->c, k, loc);
    }
    if (!(name = parse_ident(p)))
        return NULL;
    if ((ctor = map_get(p->ctors, PTR_KEY(name))))
        return expr_ctor(p->c, ctor);
    if (!strncmp(name, "inf", 3) || !strncmp(name, "nan", 3)) {
        p->at = was;
        return parse_literal(p);
    }
    if (!(op = op_find(p->c, name))) {
        p->at = was;
        return unknown_word(p, name);
    }
    if (accept(p, "("))
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

    skip(p);
    loc = here(p);
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
        if (!(name = parse_name(p)))
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
    case '9': return parse_literal(p);
    default: return parse_word(p);
    }
}

static const Expr *parse_expr(Parser *p)
{
    const Expr *e;

    if (!enter(p))
        return NULL;
    e = parse_primary(p);
    while (e) {
        Loc loc = here(p);

        if (*p->at == '.') {
            uint32_t i;

            p->at++;
            e = parse_u32(p, &i) ? expr_proj(p->c, e, i, loc) : NULL;
        } else if (*p->at == '(') {
            ExprVec args = {0};
            bool    comma, ok = false;

            p->at++;
            if (parse_exprs(p, ")", &args, &comma))
                loc = parse_loc(p, e->kind == EXPR_FUNC ? e->loc : loc, &ok);
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
    skip(p);
    was = p->at;
    if (*p->at != '%')
        return true;
    p->at++;
    if (!(*name = parse_local(p)))
        return false;
    if (accept(p, ":"))
        return (*t = parse_type(p)) && expect(p, "=");
    if (peek(p, "=") && p->at[1] != '=')
        return expect(p, "=");
    *name = NULL;
    p->at = was;
    p->line = line;
    p->line_start = was_line;
    skip(p);
    return true;
}

static bool parse_let(Parser *p, Let *out)
{
    const char *name;
    const Type *t = NULL;

    out->loc = here(p);
    if (!expect(p, "%") || !(name = parse_name(p)) || (accept(p, ":") && !(t = parse_type(p))) ||
        !expect(p, "="))
        return false;
    /* A function may call itself by the name it is bound to. */
    if (peek_word(p, "fn")) {
        out->var = expr_var(p->c, name, t, out->loc);
        bind(p, name, out->var);
        if (!(out->value = parse_expr(p)) || !expect(p, ";"))
            return false;
        return true;
    }
    if (!(out->value = parse_expr(p)) || !expect(p, ";"))
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

    if (!expect(p, "{") || !enter(p))
        return NULL;
    for (;;) {
        const char *name;
        const Type *t;
        Let         let;

        if (accept_word(p, "let")) {
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
        if (!expect(p, ";"))
            return NULL;
    }
    if (!expect(p, "}"))
        return NULL;
    while (lets.n && e) {
        Let l = lets.at[--lets.n];

        e = expr_let(p->c, l.var, l.value, e, l.loc);
    }
    leave(p, mark);
    p->nest--;
    return e;
}

/* ---- declarations
 * ------------------------------------------------------------------------------------------------------
 */

static bool parse_dim_decl(Parser *p)
{
    const char *name = parse_ident(p), *stored;
    int64_t     lo, hi, k = 1;
    const Idx  *x;

    if (!name || !expect(p, "in") || !parse_i64(p, &lo) || !expect(p, "..") || !parse_i64(p, &hi))
        return false;
    if (accept_word(p, "multiple") && !parse_i64(p, &k))
        return false;
    if (lo < 0 || k < 1 || hi < lo || hi / k < (lo + k - 1) / k)
        return FAIL(p, "'%s' has an empty or negative range", name);
    /* A multiple of k is stored as k times another dim, so that arithmetic knows. */
    stored = k == 1 ? name : intern_printf(p->c->strings, "%s.%lld", name, (long long)k);
    x = dim_var(p->c, stored, (lo + k - 1) / k, hi / k);
    map_put(p->dims, PTR_KEY(stored), (void *)(uintptr_t)x);
    if (k != 1)
        map_put(p->dims, PTR_KEY(name), (void *)(uintptr_t)idx_mulc(p->c->arith, x, k));
    return true;
}

static bool parse_ctor(Parser *p, const Adt *adt, uint32_t tag, const Ctor **out)
{
    const char *name = parse_ident(p);
    TypeVec     fields = {0};
    Ctor       *k = NEW(p->c->arena, Ctor);
    bool        comma;

    if (!name)
        return false;
    if (map_get(p->ctors, PTR_KEY(name)) || op_find(p->c, name))
        return FAIL(p, "the name '%s' is taken", name);
    if (accept(p, "(") && !parse_types(p, ")", &fields, &comma))
        return false;
    *k = (Ctor){name, adt, tag, fields.n, NULL};
    k->fields = fields.n ? DUP_ARRAY(p->c->arena, fields.at, fields.n) : NULL;
    map_put(p->ctors, PTR_KEY(name), k);
    *out = k;
    return true;
}

static bool parse_adt(Parser *p)
{
    const char *name = parse_ident(p);
    Adt        *adt = NEW(p->c->arena, Adt);
    TypeVec     vars = {0};
    VEC(const Ctor *) ctors = {0};

    if (!name)
        return false;
    if (map_get(p->adts, PTR_KEY(name)))
        return FAIL(p, "the type '%s' is declared twice", name);
    p->tvars = map_new(p->c->scratch);
    if (accept(p, "["))
        do {
            const char *v = parse_ident(p);

            if (!v)
                return false;
            vec_push(p->c->scratch, &vars, type_var(p->c, v));
            map_put(p->tvars, PTR_KEY(v), (void *)(uintptr_t)vars.at[vars.n - 1]);
        } while (accept(p, ","));
    if (vars.n && !expect(p, "]"))
        return false;
    adt->name = name;
    adt->nvars = vars.n;
    adt->vars = vars.n ? DUP_ARRAY(p->c->arena, vars.at, vars.n) : NULL;
    map_put(p->adts, PTR_KEY(name), adt);
    if (!expect(p, "{"))
        return false;
    do {
        const Ctor *k;

        if (!parse_ctor(p, adt, ctors.n, &k))
            return false;
        vec_push(p->c->scratch, &ctors, k);
    } while (accept(p, ","));
    adt->nctors = ctors.n;
    adt->ctors = DUP_ARRAY(p->c->arena, ctors.at, ctors.n);
    p->tvars = NULL;
    vec_push(p->c->scratch, &p->adt_list, adt);
    return expect(p, "}");
}

static uint64_t sha_key(const Sha256 *s)
{
    return hash_bytes(s->b, sizeof s->b, 1);
}

static bool const_bytes(Parser *p, const Type *t, Bytes *out)
{
    uint32_t size = dtype_bytes(t->dtype);
    int64_t  n, bytes;
    uint8_t *data;

    if (t->kind != TYPE_TENSOR || !type_elems(t, &n) || !checked_mul(n, (int64_t)size, &bytes) ||
        bytes > (INT64_C(1) << 36))
        return FAIL(p, "a constant cannot have the type %s", type_text(p->c, t));
    if (peek(p, "sha256:")) {
        const Bytes *side;
        Sha256       sha;

        if (!parse_sha(p, &sha))
            return false;
        if (!(side = map_get(p->side, sha_key(&sha))))
            return FAIL(p, "the side file has no data for this constant");
        if (side->n != (uint64_t)bytes)
            return FAIL(p, "the data have %zu bytes, the type needs %lld", side->n,
                        (long long)bytes);
        *out = *side;
        return true;
    }
    if (accept(p, "splat(")) {
        uint8_t one[16];

        if (!parse_number(p, t->dtype, one) || !expect(p, ")"))
            return false;
        if (bytes > MAX_SPLAT)
            return FAIL(p, "a splat of %lld bytes is too large", (long long)bytes);
        data = arena_alloc(p->c->arena, (size_t)bytes + 1);
        for (int64_t i = 0; i < n; i++)
            memcpy(data + i * size, one, size);
        *out = (Bytes){data, (size_t)bytes};
        return true;
    }
    if (!expect(p, "["))
        return false;
    if (n > p->end - p->at)
        return FAIL(p, "%lld values are needed", (long long)n);
    data = arena_alloc(p->c->arena, (size_t)bytes + 1);
    for (int64_t i = 0; i < n; i++)
        if ((i && !expect(p, ",")) || !parse_number(p, t->dtype, data + i * size))
            return false;
    *out = (Bytes){data, (size_t)bytes};
    return expect(p, "]");
}

static bool parse_const_decl(Parser *p)
{
    const char *name;
    const Type *t;
    Bytes       data;

    if (!expect(p, "@") || !(name = parse_name(p)) || !expect(p, ":") || !(t = parse_type(p)) ||
        !expect(p, "="))
        return false;
    if (map_get(p->consts, PTR_KEY(name)))
        return FAIL(p, "the constant '@%s' is declared twice", name);
    if (!const_bytes(p, t, &data))
        return false;
    map_put(p->consts, PTR_KEY(name), (void *)(uintptr_t)const_new(p->c, name, t, data));
    return true;
}

static bool parse_global(Parser *p)
{
    Loc         loc = here(p);
    const char *name;
    const Expr *f;
    FuncData    data;

    if (!parse_func_head(p, &data) || !expect(p, "@") || !(name = parse_name(p)))
        return false;
    for (uint32_t i = 0; i < p->funcs.n; i++)
        if (p->funcs.at[i].name == name)
            return FAIL(p, "the function '@%s' is defined twice", name);
    if (!(f = parse_func_rest(p, data, name, loc)))
        return false;
    map_put(p->globals, PTR_KEY(name), (void *)(uintptr_t)f->type);
    vec_push(p->c->scratch, &p->funcs, ((GlobalDef){name, f}));
    return true;
}

static bool parse_decl(Parser *p)
{
    if (accept_word(p, "fn"))
        return parse_global(p);
    if (accept_word(p, "const"))
        return parse_const_decl(p);
    if (accept_word(p, "dim"))
        return parse_dim_decl(p);
    if (accept_word(p, "type"))
        return parse_adt(p);
    if (accept_word(p, "source"))
        return parse_sha(p, &p->sha);
    if (accept_word(p, "outputs")) {
        do {
            const char *s = parse_string(p);

            if (!s)
                return false;
            vec_push(p->c->scratch, &p->outputs, s);
        } while (accept(p, ","));
        return true;
    }
    return FAIL(p, "expected fn, const, dim, type, outputs or source, found %s", found(p));
}

/* ---- the side file
 * --------------------------------------------------------------------------------------------------------
 */

static bool read_side(Parser *p, Bytes consts)
{
    Reader   r = reader(consts);
    Loc      loc = {p->file, 0, 0, NULL};
    Bytes    magic;
    uint64_t n;

    if (!consts.n)
        return true;
    magic = read_bytes(&r, 16);
    n = read_u64(&r);
    if (r.bad || memcmp(magic.at, CONSTS_MAGIC, 16) != 0 || n > consts.n / CONSTS_ENTRY)
        return error_at(p->c, E_PARSE_TEXT, loc, "the side file of constants is damaged");
    for (uint64_t i = 0; i < n; i++) {
        Bytes    sha = read_bytes(&r, 32), *b = NEW(p->c->scratch, Bytes);
        uint64_t offset = read_u64(&r), bytes = read_u64(&r);
        Sha256   key;

        if (r.bad || offset > consts.n || bytes > consts.n - offset || offset % 64)
            return error_at(p->c, E_PARSE_TEXT, loc, "the side file of constants is damaged");
        *b = (Bytes){consts.at + offset, bytes};
        memcpy(key.b, sha.at, 32);
        map_put(p->side, sha_key(&key), b);
    }
    return true;
}

/* Calls of functions that are defined further down have no type yet; their names must exist. */
static bool check_globals(Parser *p)
{
    for (uint32_t i = 0; i < p->funcs.n; i++) {
        ExprList list = expr_post_order(p->c, p->funcs.at[i].func);

        for (uint32_t k = 0; k < list.n; k++)
            if (list.at[k]->kind == EXPR_GLOBAL &&
                !map_find(p->globals, PTR_KEY(list.at[k]->u.name), &(void *){0}))
                return error_at(p->c, E_PARSE_TEXT, list.at[k]->loc, "there is no function '@%s'",
                                list.at[k]->u.name);
    }
    return true;
}

const Module *relay_parse(Ctx *c, const char *file, Bytes text, Bytes consts)
{
    Parser  p = {.c = c, .file = intern(c->strings, file), .line = 1};
    Module *m = NEW(c->arena, Module);
    char   *copy = arena_alloc(c->arena, text.n + 1);

    memcpy(copy, text.at, text.n);
    diag_source(c->diags, p.file, text);
    if (text.n && memchr(copy, '\0', text.n))
        return error_at(c, E_PARSE_TEXT, ((Loc){p.file, 1, 1, NULL}), "the text has a zero byte");
    p.start = p.at = p.line_start = copy;
    p.end = copy + text.n;
    p.locals = map_new(c->scratch);
    p.consts = map_new(c->scratch);
    p.dims = map_new(c->scratch);
    p.adts = map_new(c->scratch);
    p.ctors = map_new(c->scratch);
    p.globals = map_new(c->scratch);
    p.side = map_new(c->scratch);
    if (!read_side(&p, consts))
        return NULL;
    for (skip(&p); *p.at; skip(&p))
        if (!parse_decl(&p))
            return NULL;
    if (!check_globals(&p))
        return NULL;
    m->nfuncs = p.funcs.n;
    m->funcs = p.funcs.n ? DUP_ARRAY(c->arena, p.funcs.at, p.funcs.n) : NULL;
    m->nadts = p.adt_list.n;
    m->adts = p.adt_list.n ? DUP_ARRAY(c->arena, p.adt_list.at, p.adt_list.n) : NULL;
    m->noutputs = p.outputs.n;
    m->output_names = p.outputs.n ? DUP_ARRAY(c->arena, p.outputs.at, p.outputs.n) : NULL;
    m->file = p.file;
    m->sha = p.sha;
    return m;
}
