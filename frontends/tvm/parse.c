/* The grammar: tokens as terms.
 *
 * A name is looked up where it stands, so that a term says which value of which function it means;
 * what a name meant before comes back where its block ends.  What terms come to is eval.c's. */
#include "frontends/tvm/tvm.h"

#include <stdlib.h>
#include <string.h>

/* ---- names ------------------------------------------------------------------------------------------ */

/* A value of the function that is read, known by this name from here on. */
static uint32_t bind(TvParser *p, const char *name)
{
    struct TvBound *b = NEW(p->c->arena, struct TvBound);

    *b = (struct TvBound){name, p->level, p->func->nslots++, map_get(p->names, PTR_KEY(name))};
    vec_push(p->c->arena, &p->bound, b);
    map_put(p->names, PTR_KEY(name), b);
    return b->slot;
}

static void unbind(TvParser *p, uint32_t until)
{
    while (p->bound.n > until) {
        const struct TvBound *b = p->bound.at[--p->bound.n];

        map_put(p->names, PTR_KEY(b->name), (void *)(uintptr_t)b->before);
    }
}

/* ---- terms ------------------------------------------------------------------------------------------ */

typedef VEC(const TvTerm *) TermList;

static TvTerm *term(TvParser *p, TvTermKind kind, const TvToken *at, uint32_t n,
                    const TvTerm *const *kids)
{
    TvTerm        *t = NEW(p->c->arena, TvTerm);
    const TvTerm **own = NEW_ARRAY(p->c->arena, const TvTerm *, n + 1);

    for (uint32_t i = 0; i < n; i++)
        own[i] = kids[i];
    *t = (TvTerm){.kind = kind, .at = at, .n = n, .kids = own};
    return t;
}

static const TvTerm *parse_expr(TvParser *p);
static const TvTerm *parse_value(TvParser *p, const char *name);
static const TvTerm *parse_atom(TvParser *p, const char *name);

/* ---- functions -------------------------------------------------------------------------------------- */

/* %x {virtual_device_=..}: type */
static bool parse_param(TvParser *p, TvParam *out)
{
    TvAttr ignored;

    *out = (TvParam){.loc = tv_place(p, tv_peek(p)), .name = tv_peek(p)->text};
    out->loc.name = out->name;
    if (tv_peek(p)->kind != TV_LOCAL)
        return tv_expected(p, "a parameter") != NULL;
    p->at++;
    if (tv_accept(p, "{"))
        while (!tv_accept(p, "}"))
            if (!tv_at_attr(p) ? tv_expected(p, "'}'") == NULL : !tv_parse_attr(p, &ignored))
                return false;
    return !tv_accept(p, ":") || tv_parse_type(p, out);
}

/* (%x: type, .., Primitive=1), behind its bracket. */
static bool parse_params(TvParser *p, TvParamList *out, TextList *results)
{
    Map *seen = map_new(p->c->scratch);

    while (!tv_accept(p, ")")) {
        if (tv_at_attr(p)) {
            TvAttr a;

            if (!tv_parse_attr(p, &a))
                return false;
            for (uint32_t i = 0; results && !strcmp(a.name, "output_tensor_names") && i < a.value.n;
                 i++)
                if (a.value.list[i].kind == TV_STRING)
                    vec_push(p->c->arena, results, a.value.list[i].text);
        } else {
            TvParam x;

            if (!parse_param(p, &x))
                return false;
            if (map_get(seen, PTR_KEY(x.name)))
                return error_at(p->c, E_IMPORT, x.loc, "'%%%s' is there twice", x.name);
            map_put(seen, PTR_KEY(x.name), p);
            vec_push(p->c->arena, out, x);
        }
        if (!tv_accept(p, ",") && !tv_is_sign(p, ")"))
            return tv_expected(p, "')'") != NULL;
    }
    return true;
}

bool tv_parse_func(TvParser *p, TvFunc *f, TextList *results)
{
    TvFunc  *outer = p->func;
    uint32_t bound = p->bound.n, vars = p->vars.n;
    TvParam  ret = {0};

    if (!tv_parse_vars(p) || !tv_want(p, "(") || !parse_params(p, &f->params, results) ||
        (tv_accept(p, "->") && !tv_parse_type(p, &ret)) || !tv_want(p, "{"))
        return false;
    f->ret = ret.type;
    p->func = f;
    p->level++;
    for (uint32_t i = 0; i < f->params.n; i++)
        bind(p, f->params.at[i].name);
    if (!(f->body = parse_expr(p)) || !tv_want(p, "}"))
        return false;
    unbind(p, bound);
    tv_drop_vars(p, vars);
    p->level--;
    p->func = outer;
    return true;
}

static const TvTerm *parse_local_func(TvParser *p, const char *name)
{
    const TvToken *at = tv_next(p);
    TvFunc        *f = NEW(p->c->arena, TvFunc);
    TvTerm        *t = term(p, TERM_FUNC, at, 0, NULL);

    *f = (TvFunc){.name = name, .at = at};
    t->u.func = f;
    return tv_parse_func(p, f, NULL) ? t : NULL;
}

/* ---- patterns --------------------------------------------------------------------------------------- */

static const TvPattern *parse_pattern(TvParser *p);

/* (.., ..), if it is there. */
static bool parse_patterns(TvParser *p, TvPattern *out)
{
    VEC(const TvPattern *) kids = {0};

    if (!tv_accept(p, "("))
        return true;
    while (!tv_accept(p, ")")) {
        const TvPattern *k = parse_pattern(p);

        if (!k)
            return false;
        vec_push(p->c->arena, &kids, k);
        if (!tv_accept(p, ",") && !tv_is_sign(p, ")"))
            return tv_expected(p, "')'") != NULL;
    }
    out->n = kids.n;
    out->kids = kids.at;
    return true;
}

static void *no_constructor(TvParser *p, const TvToken *t)
{
    error_at(p->c, E_IMPORT, tv_place(p, t), "there is no constructor '%s'", t->text);
    return NULL;
}

static bool read_pattern(TvParser *p, TvPattern *out)
{
    const TvToken *t = tv_peek(p);

    *out = (TvPattern){.kind = TV_WILD};
    if (tv_is_sign(p, "(")) {
        out->kind = TV_FIELDS;
        return parse_patterns(p, out);
    }
    if (t->kind != TV_LOCAL && t->kind != TV_WORD)
        return tv_expected(p, "a pattern") != NULL;
    p->at++;
    if (t->kind == TV_LOCAL) {
        out->kind = TV_BIND;
        out->slot = bind(p, t->text);
        return !tv_accept(p, ":") || tv_parse_type(p, &(TvParam){0});
    }
    if (!strcmp(t->text, "_"))
        return true;
    out->kind = TV_CTOR;
    if (!(out->ctor = map_get(p->ctors, PTR_KEY(t->text))))
        return no_constructor(p, t) != NULL;
    return parse_patterns(p, out) &&
           (out->n == out->ctor->nfields ||
            error_at(p->c, E_IMPORT, tv_place(p, t), "'%s' has %u fields, not %u", t->text,
                     out->ctor->nfields, out->n));
}

static const TvPattern *parse_pattern(TvParser *p)
{
    TvPattern *out = NEW(p->c->arena, TvPattern);
    bool       ok = tv_deeper(p) && read_pattern(p, out);

    p->depth--;
    return ok ? out : NULL;
}

/* match (data) { Cons(%x, _) => .., Nil => .. }; match? need not have all cases */
static const TvTerm *parse_match(TvParser *p)
{
    const TvToken *at = tv_next(p);
    TermList       kids = {0};
    VEC(const TvPattern *) patterns = {0};
    const TvTerm *e;
    TvTerm       *t;

    tv_accept(p, "?");
    if (!(e = parse_atom(p, NULL)) || !tv_want(p, "{"))
        return NULL;
    vec_push(p->c->arena, &kids, e);
    while (!tv_accept(p, "}")) {
        uint32_t         before = p->bound.n;
        const TvPattern *pattern = parse_pattern(p);

        if (!pattern || !tv_want(p, "=>") || !(e = parse_expr(p)))
            return NULL;
        unbind(p, before);
        vec_push(p->c->arena, &patterns, pattern);
        vec_push(p->c->arena, &kids, e);
        if (!tv_accept(p, ",") && !tv_is_sign(p, "}"))
            return tv_expected(p, "'}'");
    }
    t = term(p, TERM_MATCH, at, kids.n, kids.at);
    t->u.match = patterns.at;
    return t;
}

/* ---- calls ------------------------------------------------------------------------------------------ */

/* callee(arguments, attributes), behind its bracket. */
static const TvTerm *parse_call(TvParser *p, const TvTerm *callee, const char *name)
{
    TermList kids = {0};
    VEC(TvAttr) attrs = {0};
    TvTerm *t;

    vec_push(p->c->arena, &kids, callee);
    while (!tv_accept(p, ")")) {
        if (tv_at_attr(p)) {
            TvAttr a = {0};

            if (!tv_parse_attr(p, &a))
                return NULL;
            vec_push(p->c->arena, &attrs, a);
        } else {
            const TvTerm *e = parse_expr(p);

            if (!e)
                return NULL;
            vec_push(p->c->arena, &kids, e);
        }
        if (!tv_accept(p, ",") && !tv_is_sign(p, ")"))
            return tv_expected(p, "')'");
    }
    t = term(p, TERM_CALL, callee->at, kids.n, kids.at);
    t->name = name;
    t->u.call.n = attrs.n;
    t->u.call.at = attrs.at;
    return t;
}

/* ---- expressions ------------------------------------------------------------------------------------ */

static const TvTerm *constant(TvParser *p, const TvToken *at, const Expr *e)
{
    TvTerm *t = term(p, TERM_CONST, at, 0, NULL);

    t->u.constant = e;
    return t;
}

static const TvTerm *scalar(TvParser *p, const TvToken *at, DType t, const TvValue *v)
{
    void *cell = arena_alloc(p->c->arena, 8);

    if (dtype_is_int(t))
        dtype_put_i(t, cell, v->i);
    else
        dtype_put_f(t, cell, v->f);
    return constant(p, at,
                    expr_const(p->c,
                               const_new(p->c, "scalar", type_tensor_i64(p->c, t, 0, NULL),
                                         (Bytes){cell, dtype_bytes(t)}),
                               tv_place(p, at)));
}

/* A tuple, or an expression in brackets. */
static const TvTerm *parse_tuple(TvParser *p, const TvToken *at)
{
    TermList fields = {0};
    bool     comma = false;

    while (!tv_accept(p, ")")) {
        const TvTerm *e = parse_expr(p);

        if (!e)
            return NULL;
        vec_push(p->c->arena, &fields, e);
        comma |= tv_accept(p, ",");
        if (!comma && !tv_is_sign(p, ")"))
            return tv_expected(p, "')'");
    }
    return fields.n == 1 && !comma ? fields.at[0] : term(p, TERM_TUPLE, at, fields.n, fields.at);
}

static const TvTerm *parse_block(TvParser *p)
{
    const TvTerm *e;

    return tv_want(p, "{") && (e = parse_expr(p)) && tv_want(p, "}") ? e : NULL;
}

static const TvTerm *parse_if(TvParser *p)
{
    const TvToken *at = tv_next(p);
    const TvTerm  *kids[3];

    if (!tv_want(p, "(") || !(kids[0] = parse_expr(p)) || !tv_want(p, ")") ||
        !(kids[1] = parse_block(p)))
        return NULL;
    if (!tv_is_word(p, "else"))
        return tv_expected(p, "'else'");
    p->at++;
    return (kids[2] = parse_block(p)) ? term(p, TERM_IF, at, 3, kids) : NULL;
}

/* ref(value), ref_read(reference), ref_write(reference, value) */
static const TvTerm *parse_reference(TvParser *p, TvTermKind kind)
{
    const TvToken *at = tv_next(p);
    const TvTerm  *kids[2] = {0};
    uint32_t       n = kind == TERM_WRITE ? 2 : 1;

    if (!tv_want(p, "("))
        return NULL;
    for (uint32_t i = 0; i < n; i++)
        if ((i && !tv_want(p, ",")) || !(kids[i] = parse_expr(p)))
            return NULL;
    return tv_want(p, ")") ? term(p, kind, at, n, kids) : NULL;
}

static const TvTerm *parse_meta(TvParser *p)
{
    const TvToken *t = tv_next(p);
    Loc            loc = tv_place(p, t);

    if (strcmp(t->text, "relay.Constant") != 0) {
        error_at(p->c, E_UNSUPPORTED, loc, "a value of kind %s", t->text);
    } else if (!p->consts) {
        error_at(p->c, E_IMPORT, loc, "constant %u is not in the text, which has no metadata",
                 t->number);
        diag_hint(p->c->diags, "mod.astext(show_meta_data=True) writes it, and str(mod) does not");
    } else if (t->number >= p->nconsts) {
        error_at(p->c, E_IMPORT, loc, "constant %u of %u", t->number, p->nconsts);
    } else {
        return constant(p, t, expr_const(p->c, p->consts[t->number], loc));
    }
    return NULL;
}

static const TvTerm *parse_global(TvParser *p)
{
    const TvToken *t = tv_next(p);

    for (uint32_t i = 0; i < p->defs.n; i++)
        if (p->defs.at[i].name == t->text) {
            TvTerm *g = term(p, TERM_GLOBAL, t, 0, NULL);

            g->u.def = i;
            return g;
        }
    error_at(p->c, E_IMPORT, tv_place(p, t), "there is no function '@%s'", t->text);
    return NULL;
}

/* A constructor, which is called without brackets if it has no fields, or an operator. */
static const TvTerm *parse_name(TvParser *p)
{
    const TvToken *t = tv_next(p);
    const TvCtor  *k = map_get(p->ctors, PTR_KEY(t->text));
    TvTerm        *e = term(p, k ? TERM_CTOR : TERM_OP, t, 0, NULL);

    if (k)
        e->u.ctor = k;
    if (k && !k->nfields && !tv_is_sign(p, "("))
        return term(p, TERM_CALL, t, 1, (const TvTerm *[]){e});
    if (k || tv_row(t->text))
        return e;
    p->at--;
    return tv_expected(p, "an expression");
}

static const TvTerm *parse_word(TvParser *p, const char *name)
{
    const TvToken *t = tv_peek(p);

    if (!strcmp(t->text, "if"))
        return parse_if(p);
    if (!strcmp(t->text, "fn"))
        return parse_local_func(p, name);
    if (!strcmp(t->text, "ref"))
        return parse_reference(p, TERM_REF);
    if (!strcmp(t->text, "ref_read"))
        return parse_reference(p, TERM_READ);
    if (!strcmp(t->text, "ref_write"))
        return parse_reference(p, TERM_WRITE);
    if (!strcmp(t->text, "True") || !strcmp(t->text, "False")) {
        TvValue v = {.i = *t->text == 'T', .f = *t->text == 'T'};

        p->at++;
        return scalar(p, t, DT_BOOL, &v);
    }
    if (!strcmp(t->text, "inff")) {
        TvValue v = {.f = strtod("inf", NULL)};

        p->at++;
        return scalar(p, t, DT_F32, &v);
    }
    return parse_name(p);
}

static const TvTerm *parse_local(TvParser *p)
{
    const TvToken        *t = tv_next(p);
    const struct TvBound *b = map_get(p->names, PTR_KEY(t->text));
    TvTerm               *e;

    if (!b) {
        error_at(p->c, E_IMPORT, tv_place(p, t), "'%%%s' has no value here", t->text);
        return NULL;
    }
    e = term(p, TERM_LOCAL, t, 0, NULL);
    e->u.local.up = p->level - b->level;
    e->u.local.slot = b->slot;
    return e;
}

static const TvTerm *parse_first(TvParser *p, const char *name)
{
    const TvToken *t = tv_peek(p);
    TvValue        v;
    DType          type;

    switch (t->kind) {
    case TV_LOCAL: return parse_local(p);
    case TV_GLOBAL: return parse_global(p);
    case TV_WORD: return parse_word(p, name);
    case TV_META: return parse_meta(p);
    case TV_NUMBER: return tv_parse_number(p, &type, &v) ? scalar(p, t, type, &v) : NULL;
    case TV_SIGN:
        if (tv_accept(p, "("))
            return parse_tuple(p, t);
        break;
    case TV_ARROW:
    case TV_TEXT:
    case TV_END: break;
    }
    return tv_expected(p, "an expression");
}

/* .0, behind its dot */
static const TvTerm *parse_part(TvParser *p, const TvTerm *e)
{
    DType   type;
    TvValue v;
    TvTerm *part;

    if (tv_peek(p)->kind != TV_NUMBER)
        return tv_expected(p, "the number of a part");
    if (!tv_parse_number(p, &type, &v))
        return NULL;
    if (v.kind != TV_INT || v.i < 0 || v.i > UINT32_MAX) {
        p->at--;
        return tv_expected(p, "the number of a part");
    }
    part = term(p, TERM_PROJ, e->at, 1, &e);
    part->u.index = (uint32_t)v.i;
    return part;
}

/* Calls and parts are a loop: x.0(y)(z) is read without depth. */
static const TvTerm *parse_postfix(TvParser *p, const char *name, bool calls)
{
    const TvTerm *e = tv_deeper(p) ? parse_first(p, name) : NULL;

    while (e)
        if (calls && tv_accept(p, "("))
            e = parse_call(p, e, name);
        else if (tv_accept(p, "."))
            e = parse_part(p, e);
        else
            break;
    p->depth--;
    return e;
}

static const TvTerm *parse_atom(TvParser *p, const char *name)
{
    return parse_postfix(p, name, false);
}

/* Signs between expressions; the longer one of two that begin alike first. */
static const struct {
    const char *signs, *op;
    uint32_t    binds;
} infix[] = {{"<=", "less_equal", 2}, {">=", "greater_equal", 2}, {"==", "equal", 1},
             {"!=", "not_equal", 1},  {"<", "less", 2},           {">", "greater", 2},
             {"+", "add", 3},         {"-", "subtract", 3},       {"*", "multiply", 4},
             {"/", "divide", 4}};

/* The row of `infix` that comes next; COUNT(infix): none. */
static uint32_t next_infix(const TvParser *p)
{
    const TvToken *t = tv_peek(p);
    uint32_t       i = 0;

    for (; i < COUNT(infix); i++) {
        const char *s = infix[i].signs;

        if (t->kind == TV_SIGN && *t->text == s[0] &&
            (!s[1] || (t[1].kind == TV_SIGN && *t[1].text == s[1])))
            break;
    }
    return i;
}

/* Calls with signs that bind at least so firmly between them. */
static const TvTerm *parse_infix(TvParser *p, const char *name, uint32_t binds)
{
    const TvTerm *e = parse_postfix(p, name, true);
    uint32_t      row;

    while (e && (row = next_infix(p)) < COUNT(infix) && infix[row].binds >= binds) {
        TvToken      *at = NEW(p->c->arena, TvToken);
        const TvTerm *kids[3] = {NULL, e, NULL};

        *at = *tv_peek(p);
        at->text = intern(p->c->strings, infix[row].op);
        p->at += (uint32_t)strlen(infix[row].signs);
        kids[0] = term(p, TERM_OP, at, 0, NULL);
        if (!(kids[2] = parse_infix(p, NULL, infix[row].binds + 1)))
            return NULL;
        e = term(p, TERM_CALL, at, 3, kids);
    }
    return e;
}

/* What a name is bound to. */
static const TvTerm *parse_value(TvParser *p, const char *name)
{
    if (tv_is_word(p, "match"))
        return parse_match(p);
    return tv_is_sign(p, "{") ? parse_block(p) : parse_infix(p, name, 0);
}

/* let %x: type = ..; or %0 = ..;  A function may call itself by its name. */
static const TvTerm *parse_let(TvParser *p)
{
    const TvToken *t = tv_next(p);
    uint32_t       slot = 0;
    bool           func;
    TvParam        type = {0};
    const TvTerm  *e;
    TvTerm        *let;

    if (t->kind == TV_WORD && (t = tv_next(p))->kind != TV_LOCAL) {
        p->at--;
        return tv_expected(p, "a name");
    }
    if ((tv_accept(p, ":") && !tv_parse_type(p, &type)) || !tv_want(p, "="))
        return NULL;
    func = tv_is_word(p, "fn");
    if (func)
        slot = bind(p, t->text);
    if (!(e = parse_value(p, t->text)))
        return NULL;
    let = term(p, TERM_LET, t, 1, &e);
    let->u.let.slot = func ? slot : bind(p, t->text);
    let->u.let.type = type.type;
    return let;
}

static bool at_let(const TvParser *p)
{
    const TvToken *t = tv_peek(p);

    return tv_is_word(p, "let") ||
           (t->kind == TV_LOCAL && t[1].kind == TV_SIGN && *t[1].text == '=' &&
            !(t[2].kind == TV_SIGN && *t[2].text == '='));
}

/* Bindings and what is done for its effect, each with its semicolon, and a result. */
static const TvTerm *parse_list(TvParser *p)
{
    const TvToken *at = tv_peek(p);
    uint32_t       before = p->bound.n;
    TermList       kids = {0};

    for (;;) {
        bool          let = at_let(p);
        const TvTerm *e = let ? parse_let(p) : parse_value(p, NULL);

        if (!e)
            return NULL;
        vec_push(p->c->arena, &kids, e);
        if (let ? !tv_want(p, ";") : !tv_accept(p, ";")) {
            if (let)
                return NULL;
            break;
        }
    }
    unbind(p, before);
    return kids.n == 1 ? kids.at[0] : term(p, TERM_BLOCK, at, kids.n, kids.at);
}

static const TvTerm *parse_expr(TvParser *p)
{
    const TvTerm *e = tv_deeper(p) ? parse_list(p) : NULL;

    p->depth--;
    return e;
}
