/* The tables of operators and of their options. */
#include "frontends/frontends.h"
#include "frontends/tflite/tflite.h"

#include <stdlib.h>
#include <string.h>

/* Options by name, so that rows of ops.def are checked by the compiler. */
enum {
#define OPTIONS(set, type, name, fields) AT_##name,
#include "frontends/tflite/options.def"
#undef OPTIONS
    OPTIONS_COUNT
};

/* The newest versions, likewise. */
enum {
#define TFLITE_NAME(code, name, version) VERSION_##name = version,
#include "frontends/tflite/names.def"
#undef TFLITE_NAME
};

#define OPTIONS(set, type, name, fields) {set, type, #name, fields},
static const TfliteOptions options[] = {
#include "frontends/tflite/options.def"
};
#undef OPTIONS

#define none NULL
#define MANY UINT32_MAX
#define AT_none OPTIONS_COUNT
#define TFLITE(code, name, least, most, record, how, relay, convert)                       \
    {code,                                                                                 \
     #name,                                                                                \
     NULL,                                                                                 \
     VERSION_##name ? VERSION_##name : 1,                                                  \
     least,                                                                                \
     most,                                                                                 \
     (int)AT_##record < (int)OPTIONS_COUNT ? &options[AT_##record % OPTIONS_COUNT] : NULL, \
     TFLITE_##how,                                                                         \
     relay,                                                                                \
     convert},
#define TFLITE_CUSTOM_OP(name, version, least, most, how, relay, convert) \
    {TFLITE_CUSTOM, #name, #name, version, least, most, NULL, TFLITE_##how, relay, convert},
const TfliteRow tflite_rows[] = {
#include "frontends/tflite/ops.def"
};
#undef TFLITE_CUSTOM_OP
#undef TFLITE
#undef AT_none
#undef MANY
#undef none

const uint32_t tflite_nrows = COUNT(tflite_rows);

static int64_t number_of(const TfliteOpcode *code)
{
    return code->deprecated > code->code ? code->deprecated : code->code;
}

const TfliteRow *tflite_row(const TfliteOpcode *code)
{
    for (uint32_t i = 0; i < tflite_nrows; i++) {
        const TfliteRow *r = &tflite_rows[i];

        if (r->code == number_of(code) &&
            (!r->custom || (code->custom && !strcmp(r->custom, code->custom))))
            return r;
    }
    return NULL;
}

static const char *const builtin_names[] = {
#define TFLITE_NAME(code, name, version) [code] = #name,
#include "frontends/tflite/names.def"
#undef TFLITE_NAME
};

/* NULL: there is none of that number. */
static const char *builtin_name(int64_t at)
{
    return at >= 0 && at < (int64_t)COUNT(builtin_names) ? builtin_names[at] : NULL;
}

const char *tflite_op_name(Ctx *c, const TfliteOpcode *code)
{
    int64_t     at = number_of(code);
    const char *name = builtin_name(at);

    if (at == TFLITE_CUSTOM)
        return code->custom && *code->custom ? code->custom : "CUSTOM";
    return name ? name : arena_printf(c->arena, "%lld", (long long)at);
}

static const char *builtin_refusal(int64_t at)
{
    static const char *const hints[] = {
#define TFLITE_NAME(code, name, version) \
    [code] = (version) ? NULL : "LiteRT has no kernel for it, either",
#include "frontends/tflite/names.def"
#undef TFLITE_NAME
    };
    static const struct {
        const char *name, *hint;
    } refused[] = {
#define TFLITE_REFUSED(name, hint) {#name, hint},
#include "frontends/tflite/refused.def"
#undef TFLITE_REFUSED
    };
    const char *name = builtin_name(at);

    for (uint32_t i = 0; name && i < COUNT(refused); i++)
        if (!strcmp(refused[i].name, name))
            return refused[i].hint;
    return at >= 0 && at < (int64_t)COUNT(hints) ? hints[at] : NULL;
}

const char *tflite_refusal(const TfliteOpcode *code)
{
    int64_t at = number_of(code);

    if (at == TFLITE_CUSTOM)
        return code->custom && !strncmp(code->custom, "Flex", 4)
                   ? "it is TensorFlow's own: convert the model with builtin operators only"
                   : "what it does is not in the file: convert the model with builtin operators "
                     "only";
    return builtin_refusal(at);
}

/* ---- options -------------------------------------------------------------------------------------- */

const TfliteOptions *tflite_options(uint32_t set, int64_t type)
{
    for (uint32_t i = 0; i < COUNT(options); i++)
        if (options[i].set == set && options[i].type == type)
            return &options[i];
    return NULL;
}

static FbKind kind_of(const char *at, size_t n)
{
    static const struct {
        const char *name;
        FbKind      kind;
    } kinds[] = {
        {"bool", FB_BOOL}, {"i8", FB_I8},   {"i32", FB_I32},   {"u32", FB_U32},
        {"i64", FB_I64},   {"f32", FB_F32}, {"text", FB_TEXT},
    };

    for (uint32_t i = 0; i < COUNT(kinds); i++)
        if (strlen(kinds[i].name) == n && !strncmp(kinds[i].name, at, n))
            return kinds[i].kind;
    BUG("options.def: no type '%s'", at);
}

/* The next of "name:type[]=default .."; false at the end. */
static bool next_field(const char **at, TfliteField *f)
{
    const char *word = *at, *end = word + strcspn(word, " "), *colon = strchr(word, ':');
    const char *equals = memchr(word, '=', (size_t)(end - word)), *stop = equals ? equals : end;

    if (word == end || !colon)
        return false;
    f->name = word;
    f->n = (uint32_t)(colon - word);
    f->vector = stop[-1] == ']';
    f->kind = kind_of(colon + 1, (size_t)(stop - colon) - 1 - 2 * f->vector);
    f->fallback = equals ? strtod(equals + 1, NULL) : 0;
    *at = *end ? end + 1 : end;
    return true;
}

uint32_t tflite_count_fields(const TfliteOptions *o)
{
    TfliteField f;
    const char *at = o->fields;
    uint32_t    n = 0;

    while (next_field(&at, &f))
        n++;
    return n;
}

bool tflite_field(const TfliteOptions *o, const char *name, TfliteField *out)
{
    const char *at = o->fields;

    for (out->slot = 0; next_field(&at, out); out->slot++)
        if (strlen(name) == out->n && !strncmp(name, out->name, out->n))
            return true;
    return false;
}

bool tflite_field_at(const TfliteOptions *o, uint32_t slot, TfliteField *out)
{
    const char *at = o->fields;

    for (out->slot = 0; next_field(&at, out); out->slot++)
        if (out->slot == slot)
            return true;
    return false;
}

const FbTable *tflite_options_of(const TfliteOperator *p, uint32_t set, int64_t *type)
{
    *type = set == 2 ? p->options2_type : p->options_type;
    return set == 2 ? &p->options2 : &p->options;
}

/* -print-ops=tflite, in the order of the table. */
void tflite_list_ops(StrBuf *out)
{
    for (uint32_t i = 0; i < tflite_nrows; i++) {
        const TfliteRow *r = &tflite_rows[i];

        str_printf(out, "%-32s 1-%-5d %-14s %s\n", r->name, r->version,
                   r->custom ? "custom" : "builtin", r->relay ? r->relay : "-");
    }
}

void tflite_list_refused(StrBuf *out)
{
    for (uint32_t i = 0; i < COUNT(builtin_names); i++) {
        TfliteOpcode code = {.code = (int32_t)i};
        const char  *why;

        if (!builtin_names[i] || tflite_row(&code))
            continue;
        if (!(why = builtin_refusal(i)))
            BUG("%s is neither in ops.def nor in refused.def", builtin_names[i]);
        str_printf(out, "%-32s %s\n", builtin_names[i], why);
    }
}
