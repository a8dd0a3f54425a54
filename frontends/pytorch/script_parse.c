/* Tokens of TorchScript to trees.
 *
 *     file      = (class | function)*
 *     class     = "class" NAME ["(" NAME ")"] ":" (field | function)*
 *     field     = (NAME | __annotations__["NAME"]) ":" type ["=" value]  |  NAME "=" value
 *     function  = "def" NAME "(" (NAME [":" type] ["=" value] ",")* ")" ["->" type] ":" block
 *     statement = "if" value ":" block ["else" ":" block] | "while" value ":" block
 *               | "for" targets "in" value ":" block | "with" value ["as" NAME] ":" block
 *               | "return" [value] | "pass" | targets [":" type] "=" value | value
 *
 * A block is the lines that are indented more than the one before it.  Types are read as values. */
#include "frontends/pytorch/script.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    Ctx           *c;
    const char    *module;
    const TsToken *at;
    uint32_t       depth;
    uint32_t       bad; /* the line of the first fault, 0: none */
} Parser;

static void *fault(Parser *p)
{
    if (!p->bad)
        p->bad = p->at->line ? p->at->line : 1;
    return NULL;
}

static bool is(const Parser *p, TsTokenKind kind, const char *text)
{
    return p->at->kind == kind && !strcmp(p->at->text, text);
}

static bool take(Parser *p, const char *sign)
{
    if (!is(p, TS_SIGN, sign))
        return false;
    p->at++;
    return true;
}

static bool take_word(Parser *p, const char *word)
{
    if (!is(p, TS_NAME, word))
        return false;
    p->at++;
    return true;
}

static void expect(Parser *p, const char *sign)
{
    if (!take(p, sign))
        fault(p);
}

static const char *name(Parser *p)
{
    if (p->at->kind == TS_NAME)
        return p->at++->text;
    fault(p);
    return "";
}

/* ---- values ------------------------------------------------------------------------------------- */

typedef VEC(TsExpr *) Exprs;

static TsExpr *value(Parser *p);

static TsExpr *new_expr(Parser *p, TsExprKind kind)
{
    TsExpr *x = NEW(p->c->arena, TsExpr);

    x->kind = kind;
    x->line = p->at->line;
    return x;
}

static TsExpr *with_kids(TsExpr *x, const Exprs *kids)
{
    x->n = kids->n;
    x->kids = kids->at;
    return x;
}

static TsExpr *number(Parser *p)
{
    TsExpr     *x = new_expr(p, TS_X_INT);
    const char *text = p->at++->text;
    char       *end;

    errno = 0;
    x->i = strtoll(text, &end, 10);
    if (!*end && !errno)
        return x;
    x->kind = TS_X_FLOAT;
    x->f = strtod(text, &end);
    return *end ? fault(p) : x;
}

/* What is between brackets: values with commas between them. */
static bool list(Parser *p, const char *end, Exprs *out)
{
    bool comma = false;

    while (!p->bad && !take(p, end)) {
        vec_push(p->c->arena, out, value(p));
        comma = take(p, ",");
        if (!comma && !is(p, TS_SIGN, end))
            fault(p);
    }
    return comma;
}

static TsExpr *bracketed(Parser *p)
{
    TsExpr *x = new_expr(p, TS_X_LIST);
    Exprs   kids = {0};

    if (take(p, "[")) {
        list(p, "]", &kids);
        return with_kids(x, &kids);
    }
    if (take(p, "{")) {
        x->kind = TS_X_DICT;
        while (!p->bad && !take(p, "}")) {
            vec_push(p->c->arena, &kids, value(p));
            expect(p, ":");
            vec_push(p->c->arena, &kids, value(p));
            if (!take(p, ",") && !is(p, TS_SIGN, "}"))
                fault(p);
        }
        return with_kids(x, &kids);
    }
    expect(p, "(");
    x->kind = TS_X_TUPLE;
    if (!list(p, ")", &kids) && kids.n == 1)
        return kids.at[0];
    return with_kids(x, &kids);
}

static TsExpr *atom(Parser *p)
{
    static const struct {
        const char *word;
        TsExprKind  kind;
    } words[] = {{"True", TS_X_TRUE}, {"False", TS_X_FALSE}, {"None", TS_X_NONE}};
    TsExpr *x;

    if (p->at->kind == TS_NUMBER)
        return number(p);
    if (p->at->kind == TS_TEXT || p->at->kind == TS_NAME) {
        x = new_expr(p, p->at->kind == TS_TEXT ? TS_X_TEXT : TS_X_NAME);
        x->text = p->at++->text;
        for (uint32_t i = 0; x->kind == TS_X_NAME && i < COUNT(words); i++)
            if (!strcmp(x->text, words[i].word))
                x->kind = words[i].kind;
        while (x->kind == TS_X_TEXT && p->at->kind == TS_TEXT) /* "a" "b" is one text */
            x->text = intern_printf(p->c->strings, "%s%s", x->text, p->at++->text);
        x->dotted = x->kind == TS_X_NAME ? x->text : NULL;
        if (x->kind == TS_X_NAME && (!strcmp(x->text, "inf") || !strcmp(x->text, "nan"))) {
            x->kind = TS_X_FLOAT;
            x->f = *x->text == 'i' ? (double)INFINITY : (double)NAN;
        }
        return x;
    }
    if (p->at->kind == TS_SIGN && strchr("[({", *p->at->text))
        return bracketed(p);
    return fault(p);
}

static TsExpr *call(Parser *p, TsExpr *callee)
{
    TsExpr *x = new_expr(p, TS_X_CALL);
    Exprs   kids = {0};
    VEC(const char *) names = {0};

    vec_push(p->c->arena, &kids, callee);
    vec_push(p->c->arena, &names, NULL);
    while (!p->bad && !take(p, ")")) {
        const char *key = NULL;

        if (p->at->kind == TS_NAME && p->at[1].kind == TS_SIGN && !strcmp(p->at[1].text, "=")) {
            key = p->at->text;
            p->at += 2;
        }
        vec_push(p->c->arena, &names, key);
        vec_push(p->c->arena, &kids, value(p));
        if (!take(p, ",") && !is(p, TS_SIGN, ")"))
            fault(p);
    }
    x->names = names.at;
    return with_kids(x, &kids);
}

static TsExpr *attribute(Parser *p, TsExpr *of)
{
    TsExpr *x = new_expr(p, TS_X_ATTR);
    Exprs   kids = {0};

    vec_push(p->c->arena, &kids, of);
    x->text = name(p);
    x->dotted =
        of && of->dotted ? intern_printf(p->c->strings, "%s.%s", of->dotted, x->text) : NULL;
    return with_kids(x, &kids);
}

static TsExpr *slice_of(Parser *p, TsExpr *x, TsExpr *of, TsExpr *from)
{
    Exprs kids = {0};

    x->kind = TS_X_SLICE;
    vec_push(p->c->arena, &kids, of);
    vec_push(p->c->arena, &kids, from);
    vec_push(p->c->arena, &kids, is(p, TS_SIGN, "]") ? new_expr(p, TS_X_NONE) : value(p));
    expect(p, "]");
    return with_kids(x, &kids);
}

static TsExpr *index_of(Parser *p, TsExpr *of)
{
    TsExpr *x = new_expr(p, TS_X_INDEX), *at = new_expr(p, TS_X_TUPLE);
    Exprs   kids = {0}, inner = {0};

    if (take(p, ":"))
        return slice_of(p, x, of, new_expr(p, TS_X_NONE));
    if (!is(p, TS_SIGN, "]")) {
        vec_push(p->c->arena, &inner, value(p));
        if (take(p, ":"))
            return slice_of(p, x, of, inner.at[0]);
        if (!take(p, ",") && !is(p, TS_SIGN, "]"))
            fault(p);
    }
    list(p, "]", &inner);
    vec_push(p->c->arena, &kids, of);
    vec_push(p->c->arena, &kids, inner.n == 1 ? inner.at[0] : with_kids(at, &inner));
    return with_kids(x, &kids);
}

static TsExpr *postfix(Parser *p)
{
    TsExpr  *x = atom(p);
    uint32_t links = 0;

    while (x && !p->bad) {
        if (++links > TS_MAX_DEPTH)
            return fault(p);
        if (take(p, "."))
            x = attribute(p, x);
        else if (take(p, "("))
            x = call(p, x);
        else if (take(p, "["))
            x = index_of(p, x);
        else
            break;
    }
    return x;
}

static TsExpr *negative(Parser *p)
{
    TsExpr *x, *v;
    Exprs   kids = {0};

    if (!is(p, TS_SIGN, "-"))
        return postfix(p);
    x = new_expr(p, TS_X_NEGATIVE);
    p->at++;
    if (!(v = postfix(p)))
        return NULL;
    if (v->kind == TS_X_INT && v->i != INT64_MIN) {
        v->i = -v->i;
        return v;
    }
    if (v->kind == TS_X_FLOAT) {
        v->f = -v->f;
        return v;
    }
    vec_push(p->c->arena, &kids, v);
    return with_kids(x, &kids);
}

static TsExpr *value(Parser *p)
{
    TsExpr *x, *pick;
    Exprs   kids = {0};

    if (++p->depth > TS_MAX_DEPTH)
        return fault(p);
    x = negative(p);
    if (x && is(p, TS_NAME, "if")) {
        pick = new_expr(p, TS_X_PICK);
        p->at++;
        vec_push(p->c->arena, &kids, x);
        vec_push(p->c->arena, &kids, value(p));
        if (!take_word(p, "else"))
            fault(p);
        vec_push(p->c->arena, &kids, value(p));
        x = with_kids(pick, &kids);
    }
    p->depth--;
    return p->bad ? NULL : x;
}

/* ---- statements ------------------------------------------------------------------------------------ */

static TsBlock block(Parser *p, uint32_t indent);

/* The block behind a ':'. */
static TsBlock inner(Parser *p, uint32_t indent)
{
    expect(p, ":");
    if (p->at->kind != TS_LINE || p->at->indent <= indent) {
        fault(p);
        return (TsBlock){0};
    }
    return block(p, p->at->indent);
}

/* a, b, and (a, b). */
static void targets(Parser *p, TsExpr *first, TsStatement *s)
{
    Exprs out = {0};

    vec_push(p->c->arena, &out, first);
    while (!p->bad && take(p, ",")) {
        s->unpack = true;
        if (!is(p, TS_SIGN, "=") && !is(p, TS_SIGN, ":") && !is(p, TS_NAME, "in"))
            vec_push(p->c->arena, &out, postfix(p));
    }
    s->ntargets = out.n;
    s->targets = out.at;
}

static void assignment(Parser *p, TsStatement *s)
{
    TsExpr *first = value(p);

    s->kind = TS_EVAL;
    s->value = first;
    if (p->bad || (!is(p, TS_SIGN, ",") && !is(p, TS_SIGN, "=") && !is(p, TS_SIGN, ":")))
        return;
    s->kind = TS_ASSIGN;
    targets(p, first, s);
    if (take(p, ":"))
        value(p);
    expect(p, "=");
    s->value = p->bad ? NULL : value(p);
    if (!p->bad && is(p, TS_SIGN, ",")) { /* a, b = c, d */
        TsExpr *all = new_expr(p, TS_X_TUPLE);
        Exprs   kids = {0};

        vec_push(p->c->arena, &kids, s->value);
        while (!p->bad && take(p, ","))
            if (p->at->kind != TS_LINE && p->at->kind != TS_END)
                vec_push(p->c->arena, &kids, value(p));
        s->value = with_kids(all, &kids);
    }
}

static bool else_follows(const Parser *p, uint32_t indent)
{
    return p->at->kind == TS_LINE && p->at->indent == indent && p->at[1].kind == TS_NAME &&
           !strcmp(p->at[1].text, "else");
}

static void statement(Parser *p, uint32_t indent, TsStatement *s)
{
    s->line = p->at->line;
    if (take_word(p, "pass")) {
        s->kind = TS_PASS;
    } else if (take_word(p, "return")) {
        s->kind = TS_RETURN;
        s->value = p->at->kind == TS_LINE || p->at->kind == TS_END ? NULL : value(p);
    } else if (take_word(p, "if")) {
        s->kind = TS_IF;
        s->value = value(p);
        s->body = inner(p, indent);
        if (!p->bad && else_follows(p, indent)) {
            p->at += 2;
            s->other = inner(p, indent);
        }
    } else if (take_word(p, "while")) {
        s->kind = TS_WHILE;
        s->value = value(p);
        s->body = inner(p, indent);
    } else if (take_word(p, "for")) {
        s->kind = TS_FOR;
        targets(p, postfix(p), s);
        if (!take_word(p, "in"))
            fault(p);
        s->value = value(p);
        s->body = inner(p, indent);
    } else if (take_word(p, "with")) {
        s->kind = TS_WITH;
        s->value = value(p);
        if (take_word(p, "as"))
            name(p);
        s->body = inner(p, indent);
    } else {
        assignment(p, s);
    }
}

static TsBlock block(Parser *p, uint32_t indent)
{
    VEC(TsStatement) out = {0};

    if (++p->depth > TS_MAX_DEPTH)
        fault(p);
    while (!p->bad && p->at->kind == TS_LINE && p->at->indent == indent) {
        TsStatement s = {.kind = TS_PASS};

        p->at++;
        statement(p, indent, &s);
        vec_push(p->c->arena, &out, s);
        if (p->at->kind != TS_LINE && p->at->kind != TS_END)
            fault(p);
    }
    if (p->at->kind == TS_LINE && p->at->indent > indent)
        fault(p);
    p->depth--;
    return (TsBlock){out.n, out.at};
}

/* ---- functions and classes --------------------------------------------------------------------------- */

static void function(Parser *p, const char *where, uint32_t indent, TsFunction *out)
{
    VEC(const char *) params = {0};
    Exprs  types = {0}, defaults = {0};
    Arena *a = p->c->arena;

    *out = (TsFunction){.name = name(p), .where = where};
    expect(p, "(");
    while (!p->bad && !take(p, ")")) {
        vec_push(a, &params, name(p));
        vec_push(a, &types, take(p, ":") ? value(p) : NULL);
        vec_push(a, &defaults, take(p, "=") ? value(p) : NULL);
        if (!take(p, ",") && !is(p, TS_SIGN, ")"))
            fault(p);
    }
    if (take(p, "->"))
        value(p);
    out->nparams = params.n;
    out->params = params.at;
    out->types = types.at;
    out->defaults = defaults.at;
    out->body = inner(p, indent);
}

/* __annotations__["0"] : type; 0 : type; __parameters__ = ["weight", ] */
static void field(Parser *p, const char **field_name, TsExpr **final)
{
    TsExpr *x = postfix(p);

    *field_name = "";
    *final = NULL;
    if (p->bad)
        return;
    if (x->kind == TS_X_INDEX && x->kids[1]->kind == TS_X_TEXT)
        *field_name = x->kids[1]->text;
    else if (x->kind == TS_X_NAME)
        *field_name = x->text;
    else
        fault(p);
    if (take(p, ":"))
        value(p);
    if (take(p, "="))
        *final = value(p);
}

static void class(Parser *p, uint32_t indent, TsClass *out)
{
    VEC(TsFunction) methods = {0};
    VEC(const char *) fields = {0};
    Exprs  values = {0};
    Arena *a = p->c->arena;

    *out = (TsClass){.name = intern_printf(p->c->strings, "%s.%s", p->module, name(p))};
    if (take(p, "(")) {
        out->tuple = is(p, TS_NAME, "NamedTuple");
        name(p);
        expect(p, ")");
    }
    expect(p, ":");
    for (uint32_t at = p->at->indent; !p->bad && p->at->kind == TS_LINE && at > indent;) {
        if (p->at->indent != at)
            break;
        p->at++;
        if (take_word(p, "def")) {
            TsFunction f;

            function(p, out->name, at, &f);
            vec_push(a, &methods, f);
        } else if (!take_word(p, "pass")) {
            TsExpr     *final;
            const char *field_name;

            field(p, &field_name, &final);
            vec_push(a, &fields, field_name);
            vec_push(a, &values, final);
        }
    }
    out->nfields = fields.n;
    out->fields = fields.at;
    out->values = values.at;
    out->nmethods = methods.n;
    out->methods = methods.at;
}

bool ts_parse(Ctx *c, Loc loc, const char *module, Bytes text, TsFile *out)
{
    TsTokens t = ts_tokens(c, text);
    Parser   p = {.c = c, .module = module, .at = t.at, .bad = t.bad ? t.bad_line : 0};
    VEC(TsClass) classes = {0};
    VEC(TsFunction) functions = {0};

    while (!p.bad && p.at->kind != TS_END) {
        uint32_t indent = p.at->indent;

        if (p.at++->kind != TS_LINE) {
            fault(&p);
        } else if (take_word(&p, "class")) {
            TsClass k;

            class(&p, indent, &k);
            vec_push(c->arena, &classes, k);
        } else if (take_word(&p, "def")) {
            TsFunction f;

            function(&p, module, indent, &f);
            vec_push(c->arena, &functions, f);
        } else if (take_word(&p, "import")) { /* of older versions: "import __torch__" */
            while (p.at->kind != TS_LINE && p.at->kind != TS_END)
                p.at++;
        } else {
            assignment(&p, &(TsStatement){0}); /* "op_version_set = 1" */
        }
    }
    *out = (TsFile){classes.n, functions.n, classes.at, functions.at};
    return !p.bad ||
           error_at(c, E_PARSE_MODEL, loc, "line %u of '%s' is no TorchScript", p.bad, module);
}
