/* The grammar: functions, bindings, branches, tuples, calls.
 *
 * Data types, match and references are errors that name them.  A name is looked up in a map, and
 * what it meant before comes back where its block ends. */
#include "frontends/tvm/tvm.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_COPIED = 1 << 20 };

/* ---- names ------------------------------------------------------------------------------------------ */

void tv_bind(TvParser *p, const char *name, const Expr *value)
{
    struct TvBound b = {name, map_get(p->names, PTR_KEY(name))};

    vec_push(p->c->arena, &p->bound, b);
    map_put(p->names, PTR_KEY(name), (void *)(uintptr_t)value);
}

static void unbind(TvParser *p, uint32_t until)
{
    while (p->bound.n > until) {
        const struct TvBound *b = &p->bound.at[--p->bound.n];

        map_put(p->names, PTR_KEY(b->name), (void *)(uintptr_t)b->before);
    }
}

/* ---- functions -------------------------------------------------------------------------------------- */

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
            TvParam x = {.loc = tv_place(p, tv_peek(p)), .name = tv_peek(p)->text};

            if (tv_peek(p)->kind != TV_LOCAL)
                return tv_expected(p, "a parameter") != NULL;
            p->at++;
            if (!tv_accept(p, ":")) {
                error_at(p->c, E_UNSUPPORTED, x.loc, "the type of '%%%s' is not written", x.name);
                diag_hint(p->c->diags, "relay.transform.InferType() before the module is written "
                                       "fills it in");
                return false;
            }
            x.loc.name = x.name;
            if (map_get(seen, PTR_KEY(x.name)))
                return error_at(p->c, E_IMPORT, x.loc, "'%%%s' is there twice", x.name);
            map_put(seen, PTR_KEY(x.name), p);
            if (!tv_parse_type(p, &x))
                return false;
            vec_push(p->c->arena, out, x);
        }
        if (!tv_accept(p, ",") && !tv_is_sign(p, ")"))
            return tv_expected(p, "')'") != NULL;
    }
    return true;
}

static bool parse_head(TvParser *p, TvParamList *params, TvParam *ret, TextList *results)
{
    if (tv_is_sign(p, "<")) {
        error_at(p->c, E_UNSUPPORTED, tv_place(p, tv_peek(p)),
                 "a function with parameters that are types");
        return false;
    }
    if (!tv_want(p, "(") || !parse_params(p, params, results))
        return false;
    return !tv_accept(p, "->") || tv_parse_type(p, ret);
}

/* The variables of parameters, all of which have types; NULL with an error. */
static const Expr **bind_params(TvParser *p, const TvParamList *params)
{
    const Expr **vars = NEW_ARRAY(p->c->arena, const Expr *, params->n + 1);

    for (uint32_t i = 0; i < params->n; i++) {
        const TvParam *x = &params->at[i];

        if (!x->type) {
            error_at(p->c, E_UNSUPPORTED, x->loc,
                     "'%%%s': a type of dimensions that are not known, or of a function", x->name);
            return NULL;
        }
        vars[i] = expr_var(p->c, x->name, x->type, x->loc);
        tv_bind(p, x->name, vars[i]);
    }
    return vars;
}

/* Behind its head: { .. } */
static const Expr *parse_func(TvParser *p, const TvParamList *params, Loc loc)
{
    uint32_t     before = p->bound.n;
    const Expr **vars = bind_params(p, params), *body;

    if (!vars || !tv_want(p, "{") || !(body = tv_body(p)))
        return NULL;
    unbind(p, before);
    return expr_func(p->c, params->n, vars, body, (FuncData){0}, loc);
}

static const Expr *parse_local_func(TvParser *p)
{
    Loc         loc = tv_place(p, tv_peek(p));
    TvParamList params = {0};
    TvParam     ret = {0};

    p->at++;
    return parse_head(p, &params, &ret, NULL) ? parse_func(p, &params, loc) : NULL;
}

/* ---- calls ------------------------------------------------------------------------------------------ */

typedef struct {
    VEC(const Expr *) in;
    VEC(TvAttr) attrs;
} Args;

static const Expr *parse_expr(TvParser *p);

static bool parse_args(TvParser *p, Args *out)
{
    while (!tv_accept(p, ")")) {
        if (tv_at_attr(p)) {
            TvAttr a = {0};

            if (!tv_parse_attr(p, &a))
                return false;
            vec_push(p->c->arena, &out->attrs, a);
        } else {
            const Expr *e = parse_expr(p);

            if (!e)
                return false;
            vec_push(p->c->arena, &out->in, e);
        }
        if (!tv_accept(p, ",") && !tv_is_sign(p, ")"))
            return tv_expected(p, "')'") != NULL;
    }
    return true;
}

static const Expr *call_op_of(TvParser *p, const TvToken *t, const char *name)
{
    Args   args = {0};
    TvNode n = {.b = {p->c, tv_place(p, t), t->text}, .row = tv_row(t->text)};

    p->at++;
    if (!tv_want(p, "(") || !parse_args(p, &args))
        return NULL;
    n.b.loc.name = name ? name : t->text;
    n.nin = args.in.n;
    n.in = args.in.at;
    n.nattrs = args.attrs.n;
    n.attrs = args.attrs.at;
    return tv_convert(&n);
}

static bool check_call(TvParser *p, const TvToken *t, const Type *f, const Args *args)
{
    bool fits = f->n == args->in.n;

    for (uint32_t i = 0; fits && i < f->n; i++)
        fits = args->in.at[i]->type == f->parts[i];
    return fits ||
           error_at(p->c, E_IMPORT, tv_place(p, t), "the arguments do not fit '%s'", t->text);
}

static const Expr *call_func(TvParser *p, const TvToken *t, const Expr *f)
{
    Args        args = {0};
    const Expr *e;

    if (!parse_args(p, &args))
        return NULL;
    if (!f->type || f->type->kind != TYPE_FUNC) {
        error_at(p->c, E_IMPORT, tv_place(p, t), "'%s' is no function", t->text);
        return NULL;
    }
    if (!check_call(p, t, f->type, &args))
        return NULL;
    if (f->kind != EXPR_FUNC)
        return expr_apply(p->c, f, args.in.n, args.in.at, tv_place(p, t));
    p->copied += expr_post_order(p->c, func_body(f)).n;
    if (p->copied > MAX_COPIED) {
        error_at(p->c, E_UNSUPPORTED, tv_place(p, t), "local functions come to more than %d nodes",
                 MAX_COPIED);
        return NULL;
    }
    e = expr_bind(p->c, func_body(f), args.in.n, f->kids, args.in.at);
    return e;
}

/* ---- expressions ------------------------------------------------------------------------------------ */

static const Expr *scalar(TvParser *p, DType t, const TvValue *v, Loc loc)
{
    void *cell = arena_alloc(p->c->arena, 8);

    if (dtype_is_int(t))
        dtype_put_i(t, cell, v->i);
    else
        dtype_put_f(t, cell, v->f);
    return expr_const(
        p->c,
        const_new(p->c, "scalar", type_tensor_i64(p->c, t, 0, NULL), (Bytes){cell, dtype_bytes(t)}),
        loc);
}

static const Expr *parse_tuple(TvParser *p, Loc loc)
{
    VEC(const Expr *) fields = {0};
    bool comma = false;

    while (!tv_accept(p, ")")) {
        const Expr *e = parse_expr(p);

        if (!e)
            return NULL;
        vec_push(p->c->arena, &fields, e);
        comma |= tv_accept(p, ",");
        if (!comma && !tv_is_sign(p, ")"))
            return tv_expected(p, "')'");
    }
    return fields.n == 1 && !comma ? fields.at[0] : expr_tuple(p->c, fields.n, fields.at, loc);
}

static const Expr *parse_block(TvParser *p)
{
    uint32_t    before = p->bound.n;
    const Expr *e;

    if (!tv_want(p, "{") || !(e = tv_body(p)))
        return NULL;
    unbind(p, before);
    return e;
}

static const Expr *parse_if(TvParser *p, Loc loc)
{
    const Expr *cond, *then, *other;
    int64_t     cells;

    p->at++;
    if (!tv_want(p, "(") || !(cond = parse_expr(p)) || !tv_want(p, ")") || !(then = parse_block(p)))
        return NULL;
    if (!tv_is_word(p, "else"))
        return tv_expected(p, "'else'");
    p->at++;
    if (!(other = parse_block(p)))
        return NULL;
    if (!expr_is_tensor(cond) || !type_elems(cond->type, &cells) || cells != 1 ||
        cond->type->n != 0 || then->type != other->type) {
        error_at(p->c, E_IMPORT, loc, "a condition of %s, branches of %s and %s",
                 type_text(p->c, cond->type), type_text(p->c, then->type),
                 type_text(p->c, other->type));
        return NULL;
    }
    return expr_if(p->c, cond, then, other, loc);
}

static const Expr *parse_meta(TvParser *p)
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
        return expr_const(p->c, p->consts[t->number], loc);
    }
    return NULL;
}

static const Expr *parse_global(TvParser *p)
{
    const TvToken *t = tv_next(p);

    for (uint32_t i = 0; i < p->defs.n; i++)
        if (p->defs.at[i].name == t->text) {
            if (p->defs.at[i].type)
                return expr_global(p->c, t->text, p->defs.at[i].type, tv_place(p, t));
            error_at(p->c, E_UNSUPPORTED, tv_place(p, t), "the type of '@%s' is not written",
                     t->text);
            return NULL;
        }
    error_at(p->c, E_IMPORT, tv_place(p, t), "there is no function '@%s'", t->text);
    return NULL;
}

static const Expr *parse_word(TvParser *p, const char *name)
{
    static const char *const refused[] = {"match", "ref", "ref_read", "ref_write", "free_var"};
    const TvToken           *t = tv_peek(p);

    for (uint32_t i = 0; i < COUNT(refused); i++)
        if (!strcmp(t->text, refused[i])) {
            error_at(p->c, E_UNSUPPORTED, tv_place(p, t),
                     "'%s', of data types, references or parts of "
                     "programs",
                     t->text);
            diag_hint(p->c->diags, "%s", TV_EVALUATE);
            return NULL;
        }
    if (!strcmp(t->text, "if"))
        return parse_if(p, tv_place(p, t));
    if (!strcmp(t->text, "fn"))
        return parse_local_func(p);
    if (!strcmp(t->text, "True") || !strcmp(t->text, "False")) {
        TvValue v = {.i = *t->text == 'T', .f = *t->text == 'T'};

        p->at++;
        return scalar(p, DT_BOOL, &v, tv_place(p, t));
    }
    if (!strcmp(t->text, "inff")) {
        TvValue v = {.f = strtod("inf", NULL)};

        p->at++;
        return scalar(p, DT_F32, &v, tv_place(p, t));
    }
    return t[1].kind == TV_SIGN && !strcmp(t[1].text, "(") ? call_op_of(p, t, name)
                                                           : tv_expected(p, "an expression");
}

static const Expr *parse_atom(TvParser *p, const char *name)
{
    const TvToken *t = tv_peek(p);
    const Expr    *e;
    TvValue        v;
    DType          type;

    switch (t->kind) {
    case TV_LOCAL:
        p->at++;
        if (!(e = map_get(p->names, PTR_KEY(t->text)))) {
            error_at(p->c, E_IMPORT, tv_place(p, t), "'%%%s' has no value here", t->text);
            if (tv_is_sign(p, "("))
                diag_hint(p->c->diags, "a local function that calls itself is not read: "
                                       "relay.transform.LambdaLift() makes it one of the module");
        }
        return e;
    case TV_GLOBAL: return parse_global(p);
    case TV_WORD: return parse_word(p, name);
    case TV_META: return parse_meta(p);
    case TV_NUMBER:
        return tv_parse_number(p, &type, &v) ? scalar(p, type, &v, tv_place(p, t)) : NULL;
    case TV_SIGN:
        if (tv_accept(p, "("))
            return parse_tuple(p, tv_place(p, t));
        break;
    case TV_ARROW:
    case TV_TEXT:
    case TV_END: break;
    }
    return tv_expected(p, "an expression");
}

static const Expr *parse_named(TvParser *p, const char *name)
{
    const TvToken *t = tv_peek(p);
    const Expr    *e = tv_deeper(p) ? parse_atom(p, name) : NULL;

    while (e) {
        if (tv_accept(p, "(")) {
            e = call_func(p, t, e);
        } else if (tv_is_sign(p, ".")) {
            DType   type;
            TvValue v;

            p->at++;
            if (tv_peek(p)->kind != TV_NUMBER)
                e = tv_expected(p, "the number of a part");
            else if (!tv_parse_number(p, &type, &v))
                e = NULL;
            else if (!e->type || e->type->kind != TYPE_TUPLE || v.kind != TV_INT || v.i < 0 ||
                     v.i >= e->type->n) {
                error_at(p->c, E_IMPORT, tv_place(p, t), "'%s' has no part %lld", t->text,
                         (long long)v.i);
                e = NULL;
            } else {
                e = e->kind == EXPR_TUPLE ? e->kids[v.i]
                                          : expr_proj(p->c, e, (uint32_t)v.i, tv_place(p, t));
            }
        } else {
            break;
        }
    }
    p->depth--;
    return e;
}

static const Expr *parse_expr(TvParser *p)
{
    return parse_named(p, NULL);
}

const Expr *tv_body(TvParser *p)
{
    const Expr *e;

    for (;;) {
        bool           let = tv_is_word(p, "let");
        const TvToken *t = tv_peek(p) + let;

        if (let || (t->kind == TV_LOCAL && t[1].kind == TV_SIGN && !strcmp(t[1].text, "="))) {
            TvParam type = {0};

            p->at += let;
            if (tv_peek(p)->kind != TV_LOCAL)
                return tv_expected(p, "a name");
            p->at++;
            if ((tv_accept(p, ":") && !tv_parse_type(p, &type)) || !tv_want(p, "=") ||
                !(e = parse_named(p, t->text)) || !tv_want(p, ";"))
                return NULL;
            if (type.type && e->type != type.type) {
                error_at(p->c, E_IMPORT, tv_place(p, t), "'%%%s' is said to be %s, and is %s",
                         t->text, type_text(p->c, type.type), type_text(p->c, e->type));
                return NULL;
            }
            tv_bind(p, t->text, e);
        } else {
            if (!(e = parse_expr(p)))
                return NULL;
            if (!tv_accept(p, ";"))
                return tv_want(p, "}") ? e : NULL;
        }
    }
}

/* ---- modules ---------------------------------------------------------------------------------------- */

/* Operators without a row, each once with the first place. */
static bool survey(TvParser *p)
{
    static const char *const words[] = {"fn",  "if",       "match",     "let", "def",
                                        "ref", "ref_read", "ref_write", "type"};
    Findings                 f = {.path = p->tokens.path, .noun = "call"};
    uint32_t                 before = diag_errors(p->c->diags);

    for (uint32_t i = 0; i + 1 < p->tokens.n; i++) {
        const TvToken *t = &p->tokens.at[i];
        bool word = t->kind != TV_WORD || t[1].kind != TV_SIGN || strcmp(t[1].text, "(") != 0;

        for (uint32_t k = 0; k < COUNT(words); k++)
            word |= !strcmp(t->text, words[k]);
        if (word || tv_row(t->text))
            continue;
        finding_add(
            p->c, &f,
            (Finding){.id = E_UNSUPPORTED_OP,
                      .text = intern_printf(p->c->strings, "operator %s is not supported", t->text),
                      .hint = tv_unknown_op(p->c, t->text),
                      .first = i > 1 && t[-2].kind == TV_LOCAL ? t[-2].text : t->text,
                      .ordinal = t->line,
                      .count = 1});
    }
    findings_report(p->c, &f);
    return diag_errors(p->c->diags) == before;
}

/* The heads of all functions, so that they may call those behind them. */
static bool find_defs(TvParser *p)
{
    for (p->at = 0; tv_peek(p)->kind != TV_END;) {
        TvParamList params = {0};
        TvParam     ret = {0};
        TvDef       d = {0};
        VEC(const Type *) types = {0};
        uint32_t braces = 0;
        bool     known;

        if (tv_is_word(p, "type") || tv_is_word(p, "extern")) {
            error_at(p->c, E_UNSUPPORTED, tv_place(p, tv_peek(p)), "data types: '%s %s'",
                     tv_peek(p)->text, tv_peek(p)[1].text);
            diag_hint(p->c->diags, "%s", TV_EVALUATE);
            return false;
        }
        if (!tv_is_word(p, "def"))
            return tv_expected(p, "'def'") != NULL;
        p->at++;
        if (tv_peek(p)->kind != TV_GLOBAL)
            return tv_expected(p, "the name of a function") != NULL;
        d.name = tv_next(p)->text;
        d.at = p->at;
        for (uint32_t i = 0; i < p->defs.n; i++)
            if (p->defs.at[i].name == d.name)
                return error_at(p->c, E_IMPORT, tv_place(p, tv_peek(p)), "'@%s' is there twice",
                                d.name);
        if (!parse_head(p, &params, &ret, NULL))
            return false;
        known = ret.type != NULL;
        for (uint32_t i = 0; i < params.n; i++) {
            known &= params.at[i].type != NULL;
            vec_push(p->c->scratch, &types, params.at[i].type);
        }
        d.type = known ? type_func(p->c, types.n, types.at, ret.type) : NULL;
        vec_push(p->c->arena, &p->defs, d);
        if (!tv_is_sign(p, "{"))
            return tv_expected(p, "'{'") != NULL;
        do {
            if (tv_peek(p)->kind == TV_END)
                return tv_expected(p, "'}'") != NULL;
            braces += tv_is_sign(p, "{") ? 1u : tv_is_sign(p, "}") ? UINT32_MAX : 0u;
            p->at++;
        } while (braces);
    }
    return true;
}

bool tv_begin(TvParser *p, TvParamList *params, GlobalDefs *functions)
{
    const TvDef *entry = NULL;
    TvParam      ret = {0};

    p->names = map_new(p->c->arena);
    if (!find_defs(p) || !survey(p))
        return false;
    for (uint32_t i = 0; i < p->defs.n; i++) {
        const TvDef *d = &p->defs.at[i];
        TvParamList  own = {0};
        const Expr  *f;

        if (!strcmp(d->name, "main")) {
            entry = d;
            continue;
        }
        p->at = d->at;
        if (!parse_head(p, &own, &ret, NULL) ||
            !(f = parse_func(p, &own, tv_place(p, &p->tokens.at[d->at - 1]))))
            return false;
        if (d->type && f->type != d->type)
            return error_at(p->c, E_IMPORT, tv_place(p, &p->tokens.at[d->at - 1]),
                            "'@%s' is said to be %s, and is %s", d->name, type_text(p->c, d->type),
                            type_text(p->c, f->type));
        vec_push(p->c->arena, functions, ((GlobalDef){d->name, f}));
    }
    if (!entry)
        return error_at(p->c, E_IMPORT, (Loc){.file = p->tokens.path}, "there is no '@main'");
    p->at = entry->at;
    return parse_head(p, params, &ret, &p->results) && tv_want(p, "{");
}
