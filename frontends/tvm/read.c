/* Tokens one after another; types, numbers and the values of attributes. */
#include "frontends/tvm/tvm.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_DEPTH = 200 };

const TvToken *tv_peek(const TvParser *p)
{
    return &p->tokens.at[p->at];
}

const TvToken *tv_next(TvParser *p)
{
    const TvToken *t = tv_peek(p);

    p->at += t->kind != TV_END;
    return t;
}

Loc tv_place(const TvParser *p, const TvToken *t)
{
    return (Loc){p->tokens.path, t->line, t->col, NULL};
}

void *tv_expected(const TvParser *p, const char *wanted)
{
    const TvToken *t = tv_peek(p);

    error_at(p->c, E_PARSE_TEXT, tv_place(p, t), "expected %s, found %s%s%s", wanted,
             t->kind == TV_END ? "the end of the text" : "'", t->text,
             t->kind == TV_END ? "" : "'");
    return NULL;
}

bool tv_is_sign(const TvParser *p, const char *sign)
{
    return (tv_peek(p)->kind == TV_SIGN || tv_peek(p)->kind == TV_ARROW) &&
           !strcmp(tv_peek(p)->text, sign);
}

bool tv_is_word(const TvParser *p, const char *word)
{
    return tv_peek(p)->kind == TV_WORD && !strcmp(tv_peek(p)->text, word);
}

bool tv_accept(TvParser *p, const char *sign)
{
    bool is = tv_is_sign(p, sign);

    p->at += is;
    return is;
}

bool tv_want(TvParser *p, const char *sign)
{
    return tv_accept(p, sign) || tv_expected(p, arena_printf(p->c->arena, "'%s'", sign)) != NULL;
}

bool tv_deeper(TvParser *p)
{
    if (++p->depth <= MAX_DEPTH)
        return true;
    return error_at(p->c, E_UNSUPPORTED, tv_place(p, tv_peek(p)), "nested deeper than %d levels",
                    MAX_DEPTH);
}

/* ---- numbers ---------------------------------------------------------------------------------------- */

/* 1, 1i64, 0.5f, 0.5f64, inff; false with an error. */
bool tv_parse_number(TvParser *p, DType *t, TvValue *out)
{
    const TvToken *x = tv_next(p);
    bool           decimal = x->text[strspn(x->text, "-0123456789")] != 0;
    char          *end;
    const char    *bits;

    *out = (TvValue){.kind = TV_INT};
    errno = 0;
    out->i = strtoll(x->text, &end, 10);
    if (decimal && *end != 'i') {
        out->kind = TV_FLOAT;
        out->f = strtod(x->text, &end);
    } else {
        out->f = (double)out->i;
        if (errno) {
            p->at--;
            return tv_expected(p, "a number of 64 bits") != NULL;
        }
    }
    /* A whole number may be written as a float: 1f. */
    bits = *end == 'f' || *end == 'i' ? end + 1 : "";
    if (*end && *end != 'f' && *end != 'i') {
        p->at--;
        return tv_expected(p, "a number") != NULL;
    }
    if (out->kind == TV_INT && *end != 'f')
        *t = !*bits || !strcmp(bits, "32") ? DT_I32 : (DType){DT_INT, (uint8_t)atoi(bits), 1};
    else
        *t = !*bits ? DT_F32 : (DType){DT_FLOAT, (uint8_t)atoi(bits), 1};
    if (!*bits && t->code == DT_INT && (out->i > INT32_MAX || out->i < INT32_MIN))
        *t = DT_I64;
    if (!dtype_known(*t) || dtype_stored(*t)) {
        p->at--;
        return tv_expected(p, "a number of a known type") != NULL;
    }
    return true;
}

/* ---- types ------------------------------------------------------------------------------------------ */

static bool parse_tensor(TvParser *p, TvParam *out)
{
    const TvToken *t;
    int64_t        dims[MAX_RANK];
    bool           known = true;

    if (!tv_want(p, "[") || !tv_want(p, "("))
        return false;
    while (!tv_accept(p, ")")) {
        DType   ignored;
        TvValue v = {.i = -1};

        if (out->rank == MAX_RANK)
            return error_at(p->c, E_UNSUPPORTED, tv_place(p, tv_peek(p)), "more than %d dimensions",
                            MAX_RANK);
        if (tv_accept(p, "?") || (tv_peek(p)->kind == TV_META && tv_next(p)))
            known = false;
        else if (tv_peek(p)->kind != TV_NUMBER)
            return tv_expected(p, "a dimension") != NULL;
        else if (!tv_parse_number(p, &ignored, &v))
            return false;
        else if (v.kind != TV_INT || v.i < 0 || v.i > MAX_ELEMS) {
            p->at--;
            return tv_expected(p, "a dimension") != NULL;
        }
        dims[out->rank] = v.i;
        out->dims[out->rank++] = (InputDim){v.i, NULL};
        if (!tv_accept(p, ",") && !tv_is_sign(p, ")"))
            return tv_expected(p, "')'") != NULL;
    }
    if (!tv_want(p, ","))
        return false;
    t = tv_peek(p);
    if (t->kind != TV_WORD || !tv_dtype(t->text, &out->dtype))
        return tv_expected(p, "the type of elements") != NULL;
    p->at++;
    out->tensor = true;
    out->type = known ? type_tensor_i64(p->c, out->dtype, out->rank, dims) : NULL;
    return tv_want(p, "]");
}

static bool parse_type_tuple(TvParser *p, TvParam *out)
{
    VEC(const Type *) parts = {0};
    bool known = true;

    while (!tv_accept(p, ")")) {
        TvParam part = {0};

        if (!tv_parse_type(p, &part))
            return false;
        known &= part.type != NULL;
        vec_push(p->c->scratch, &parts, part.type);
        if (!tv_accept(p, ",") && !tv_is_sign(p, ")"))
            return tv_expected(p, "')'") != NULL;
    }
    out->type = known ? type_tuple(p->c, parts.n, parts.at) : NULL;
    return true;
}

bool tv_parse_vars(TvParser *p)
{
    if (!tv_accept(p, "["))
        return true;
    while (!tv_accept(p, "]")) {
        if (tv_peek(p)->kind != TV_WORD)
            return tv_expected(p, "the name of a type") != NULL;
        vec_push(p->c->arena, &p->vars, tv_next(p)->text);
        if (!tv_accept(p, ",") && !tv_is_sign(p, "]"))
            return tv_expected(p, "']'") != NULL;
    }
    return true;
}

void tv_drop_vars(TvParser *p, uint32_t until)
{
    p->vars.n = until;
}

/* fn [A](List[A]) -> A, behind its fn. */
static bool parse_func_type(TvParser *p)
{
    TvParam  args = {0}, ret = {0};
    uint32_t vars = p->vars.n;
    bool     ok = tv_parse_vars(p) && tv_want(p, "(") && parse_type_tuple(p, &args) &&
              tv_want(p, "->") && tv_parse_type(p, &ret);

    tv_drop_vars(p, vars);
    return ok;
}

/* A parameter that is a type, or a data type of the module: List[Tensor[..]]. */
static bool parse_named_type(TvParser *p, const TvToken *t)
{
    bool known = map_get(p->types, PTR_KEY(t->text)) != NULL;

    for (uint32_t i = 0; !known && i < p->vars.n; i++)
        known = p->vars.at[i] == t->text;
    if (!known)
        return error_at(p->c, E_IMPORT, tv_place(p, t), "there is no type '%s'", t->text);
    if (!tv_accept(p, "["))
        return true;
    while (!tv_accept(p, "]")) {
        if (!tv_parse_type(p, &(TvParam){0}))
            return false;
        if (!tv_accept(p, ",") && !tv_is_sign(p, "]"))
            return tv_expected(p, "']'") != NULL;
    }
    return true;
}

static bool parse_type_at(TvParser *p, TvParam *out)
{
    const TvToken *t = tv_peek(p);

    if (tv_accept(p, "("))
        return parse_type_tuple(p, out);
    if (t->kind != TV_WORD && t->kind != TV_META)
        return tv_expected(p, "a type") != NULL;
    p->at++;
    if (t->kind == TV_META) /* one that was not known when it was written */
        return true;
    if (!strcmp(t->text, "Tensor"))
        return parse_tensor(p, out);
    if (tv_dtype(t->text, &out->dtype)) {
        out->tensor = true;
        out->type = type_tensor_i64(p->c, out->dtype, 0, NULL);
        return true;
    }
    if (!strcmp(t->text, "fn"))
        return parse_func_type(p);
    if (!strcmp(t->text, "ref"))
        return tv_want(p, "(") && tv_parse_type(p, &(TvParam){0}) && tv_want(p, ")");
    if (!strcmp(t->text, "_"))
        return true;
    return parse_named_type(p, t);
}

bool tv_parse_type(TvParser *p, TvParam *out)
{
    bool ok = tv_deeper(p) && parse_type_at(p, out);

    p->depth--;
    return ok;
}

/* ---- attributes ------------------------------------------------------------------------------------- */

static bool parse_value(TvParser *p, TvValue *out);

static bool parse_list(TvParser *p, const char *close, TvValue *out)
{
    VEC(TvValue) list = {0};

    while (!tv_accept(p, close)) {
        TvValue v;

        if (!parse_value(p, &v))
            return false;
        vec_push(p->c->arena, &list, v);
        if (!tv_accept(p, ",") && !tv_is_sign(p, close))
            return tv_expected(p, arena_printf(p->c->arena, "'%s'", close)) != NULL;
    }
    *out = (TvValue){.kind = TV_LIST, .n = list.n, .list = list.at};
    return true;
}

static bool parse_value_at(TvParser *p, TvValue *out)
{
    const TvToken *t = tv_peek(p);
    DType          ignored;

    *out = (TvValue){.kind = TV_NONE};
    if (t->kind == TV_NUMBER)
        return tv_parse_number(p, &ignored, out);
    if (tv_accept(p, "["))
        return parse_list(p, "]", out);
    if (tv_accept(p, "("))
        return parse_list(p, ")", out);
    if (tv_accept(p, "{")) { /* a map: of functions, which are not read */
        while (!tv_accept(p, "}"))
            if (tv_next(p)->kind == TV_END)
                return tv_expected(p, "'}'") != NULL;
        return true;
    }
    if (t->kind == TV_END || t->kind == TV_SIGN || t->kind == TV_ARROW || t->kind == TV_LOCAL)
        return tv_expected(p, "a value") != NULL;
    p->at++;
    if (t->kind == TV_TEXT)
        *out = (TvValue){.kind = TV_STRING, .text = t->text};
    else if (t->kind == TV_META)
        *out =
            (TvValue){.kind = TV_STRING, .text = intern_printf(p->c->strings, "meta[%s]", t->text)};
    else if (!strcmp(t->text, "True") || !strcmp(t->text, "False"))
        *out = (TvValue){.kind = TV_BOOL, .i = *t->text == 'T'};
    else if (!strcmp(t->text, "inff"))
        *out = (TvValue){.kind = TV_FLOAT, .f = strtod("inf", NULL)};
    else if (strcmp(t->text, "None") != 0 && strcmp(t->text, "nullptr") != 0)
        *out = (TvValue){.kind = TV_STRING, .text = t->text};
    return true;
}

static bool parse_value(TvParser *p, TvValue *out)
{
    bool ok = tv_deeper(p) && parse_value_at(p, out);

    p->depth--;
    return ok;
}

bool tv_at_attr(const TvParser *p)
{
    const TvToken *t = tv_peek(p);

    return t->kind == TV_WORD && t[1].kind == TV_SIGN && !strcmp(t[1].text, "=");
}

bool tv_parse_attr(TvParser *p, TvAttr *out)
{
    out->name = tv_next(p)->text;
    p->at++;
    return parse_value(p, &out->value);
}
