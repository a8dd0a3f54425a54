/* Modules: functions and data types, found before the first body is read, since what stands in
 * front may mention what stands behind. */
#include "frontends/tvm/tvm.h"

#include <string.h>

/* Operators without a row, each once with the first place. */
static bool survey(TvParser *p)
{
    static const char *const words[] = {"fn",  "if",       "match",     "let", "def",
                                        "ref", "ref_read", "ref_write", "type"};
    Findings                 f = {.path = p->tokens.path, .noun = "call"};
    uint32_t                 before = diag_errors(p->c->diags);

    for (uint32_t i = 0; i + 1 < p->tokens.n; i++) {
        const TvToken *t = &p->tokens.at[i];
        bool word = t->kind != TV_WORD || t[1].kind != TV_SIGN || strcmp(t[1].text, "(") != 0 ||
                    map_get(p->ctors, PTR_KEY(t->text));

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

/* Up to the } that ends what began here. */
static bool skip_braces(TvParser *p)
{
    uint32_t depth = 0;

    for (;; p->at++) {
        const TvToken *t = tv_peek(p);

        if (t->kind == TV_END)
            return tv_expected(p, "'}'") != NULL;
        if (t->kind != TV_SIGN)
            continue;
        if (strchr("([{", *t->text))
            depth++;
        else if (strchr(")]}", *t->text) && depth && !--depth && *t->text == '}')
            break;
    }
    p->at++;
    return true;
}

static bool find_def(TvParser *p)
{
    TvDef d = {0};

    p->at++;
    if (tv_peek(p)->kind != TV_GLOBAL)
        return tv_expected(p, "the name of a function") != NULL;
    d.name = tv_next(p)->text;
    d.at = p->at;
    for (uint32_t i = 0; i < p->defs.n; i++)
        if (p->defs.at[i].name == d.name)
            return error_at(p->c, E_IMPORT, tv_place(p, tv_peek(p)), "'@%s' is there twice",
                            d.name);
    vec_push(p->c->arena, &p->defs, d);
    return skip_braces(p);
}

/* A constructor and the types of its fields. */
static bool parse_ctor(TvParser *p)
{
    const TvToken *t = tv_next(p);
    TvCtor        *k = NEW(p->c->arena, TvCtor);

    if (t->kind != TV_WORD) {
        p->at--;
        return tv_expected(p, "a constructor") != NULL;
    }
    if (map_get(p->ctors, PTR_KEY(t->text)))
        return error_at(p->c, E_IMPORT, tv_place(p, t), "'%s' is there twice", t->text);
    *k = (TvCtor){.name = t->text};
    map_put(p->ctors, PTR_KEY(t->text), k);
    if (!tv_accept(p, "("))
        return true;
    for (; !tv_accept(p, ")"); k->nfields++)
        if ((k->nfields && !tv_want(p, ",")) || !tv_parse_type(p, &(TvParam){0}))
            return false;
    return true;
}

/* type List[A] { Cons(A, List[A]), Nil, } */
static bool parse_type_def(TvParser *p)
{
    uint32_t vars = p->vars.n;

    p->at += tv_is_word(p, "extern");
    p->at += 2;
    if (!tv_parse_vars(p))
        return false;
    if (tv_accept(p, "{"))
        while (!tv_accept(p, "}")) {
            if (!parse_ctor(p))
                return false;
            if (!tv_accept(p, ",") && !tv_is_sign(p, "}"))
                return tv_expected(p, "'}'") != NULL;
        }
    tv_drop_vars(p, vars);
    return true;
}

/* `type` or `extern type` here, outside of all functions. */
static bool at_type_def(const TvParser *p)
{
    const TvToken *t = tv_peek(p) + tv_is_word(p, "extern");

    return t->kind == TV_WORD && !strcmp(t->text, "type") && t[1].kind == TV_WORD;
}

/* Names of types, since constructors may hold those behind them. */
static bool find_types(TvParser *p)
{
    for (p->at = 0; tv_peek(p)->kind != TV_END; p->at++)
        if (at_type_def(p)) {
            const TvToken *t = tv_peek(p) + 1 + tv_is_word(p, "extern");

            if (map_get(p->types, PTR_KEY(t->text)))
                return error_at(p->c, E_IMPORT, tv_place(p, t), "'%s' is there twice", t->text);
            map_put(p->types, PTR_KEY(t->text), p);
            p->at += tv_is_word(p, "extern");
        }
    return true;
}

/* The names of all functions and the types, so that what is in front of them may mention them. */
static bool find_defs(TvParser *p)
{
    if (!find_types(p))
        return false;
    for (p->at = 0; tv_peek(p)->kind != TV_END;)
        if (at_type_def(p)) {
            if (!parse_type_def(p))
                return false;
        } else if (tv_is_word(p, "def")) {
            if (!find_def(p))
                return false;
        } else {
            return tv_expected(p, "'def'") != NULL;
        }
    return true;
}

/* The type of a function from tensors to tensors; NULL: it is none, or not all of it is known. */
static const Type *tensor_func(TvParser *p, const TvFunc *f)
{
    VEC(const Type *) types = {0};

    for (uint32_t i = 0; i < f->params.n; i++) {
        if (!f->params.at[i].type)
            return NULL;
        vec_push(p->c->scratch, &types, f->params.at[i].type);
    }
    return f->ret ? type_func(p->c, types.n, types.at, f->ret) : NULL;
}

const TvFunc *tv_parse(TvParser *p)
{
    TvFunc *entry = NULL;

    p->names = map_new(p->c->arena);
    p->types = map_new(p->c->arena);
    p->ctors = map_new(p->c->arena);
    if (!find_defs(p) || !survey(p))
        return NULL;
    for (uint32_t i = 0; i < p->defs.n; i++) {
        TvFunc *f = NEW(p->c->arena, TvFunc);

        *f = (TvFunc){.name = p->defs.at[i].name, .at = &p->tokens.at[p->defs.at[i].at - 1]};
        p->defs.at[i].func = f;
        entry = strcmp(f->name, "main") ? entry : f;
    }
    for (uint32_t i = 0; i < p->defs.n; i++) {
        TvFunc *f = p->defs.at[i].func;

        p->at = p->defs.at[i].at;
        if (!tv_parse_func(p, f, f == entry ? &p->results : NULL))
            return NULL;
        f->type = f == entry ? NULL : tensor_func(p, f);
    }
    if (!entry)
        error_at(p->c, E_IMPORT, (Loc){.file = p->tokens.path}, "there is no '@main'");
    return entry;
}
