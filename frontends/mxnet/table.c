/* The tables of operators, of their schemas and of their other names. */
#include "frontends/mxnet/mxnet.h"

#include <string.h>

/* Schemas by name, so that rows of ops.def and aliases are checked by the compiler. */
enum {
#define SCHEMA(name, inputs, outputs, attrs) AT_##name,
#define ALIAS(name, op)
#include "frontends/mxnet/schema.def"
#undef SCHEMA
#undef ALIAS
};

#define SCHEMA(name, inputs, outputs, attrs) {#name, inputs, outputs, attrs},
#define ALIAS(name, op)
static const MxSchema schemas[] = {
#include "frontends/mxnet/schema.def"
};
#undef SCHEMA
#undef ALIAS

#define none NULL
#define MX(name, how, relay, convert) {#name, MX_##how, relay, convert, &schemas[AT_##name]},
static const MxRow rows[] = {
#include "frontends/mxnet/ops.def"
};
#undef MX
#undef none

#define SCHEMA(name, inputs, outputs, attrs)
#define ALIAS(name, op) {#name, &schemas[AT_##op]},
static const struct {
    const char     *name;
    const MxSchema *op;
} aliases[] = {
#include "frontends/mxnet/schema.def"
};
#undef SCHEMA
#undef ALIAS

const MxRow *mx_row(const char *op)
{
    for (uint32_t i = 0; i < COUNT(aliases); i++)
        if (!strcmp(aliases[i].name, op))
            op = aliases[i].op->name;
    for (uint32_t i = 0; i < COUNT(rows); i++)
        if (!strcmp(rows[i].name, op))
            return &rows[i];
    return NULL;
}

/* ---- schemas ------------------------------------------------------------------------------------------ */

static Bytes part(const char *from, const char *to)
{
    return (Bytes){(const uint8_t *)from, (size_t)(to - from)};
}

static MxKind kind_of(Bytes text)
{
    static const char *const kinds[] = {"int",  "bool",  "float",  "text",
                                        "word", "shape", "shapes", "floats"};

    for (uint32_t i = 0; i < COUNT(kinds); i++)
        if (strlen(kinds[i]) == text.n && !memcmp(kinds[i], text.at, text.n))
            return (MxKind)i;
    BUG("schema.def has an attribute of kind '%.*s'", (int)text.n, (const char *)text.at);
}

bool mx_next_attr(const char **at, MxAttrSpec *out)
{
    const char *word = *at, *end = word + strcspn(word, " "), *colon, *equals, *stop;

    if (!*word)
        return false;
    colon = memchr(word, ':', (size_t)(end - word));
    equals = memchr(word, '=', (size_t)(end - word));
    stop = equals ? equals : end;
    *out = (MxAttrSpec){.name = part(word, colon++)};
    if (equals)
        out->fallback = part(equals + 1, end);
    if ((out->maybe = stop[-1] == '?'))
        stop--;
    if (stop[-1] == ')') {
        const char *open = memchr(colon, '(', (size_t)(stop - colon));

        out->words = part(open + 1, stop - 1);
        stop = open;
    }
    out->kind = kind_of(part(colon, stop));
    *at = *end ? end + 1 : end;
    return true;
}

bool mx_attr_spec(const MxSchema *s, const char *name, MxAttrSpec *out)
{
    const char *at = s->attrs;

    while (mx_next_attr(&at, out))
        if (out->name.n == strlen(name) && !memcmp(out->name.at, name, out->name.n))
            return true;
    return false;
}

void mx_attr_names(Ctx *c, const MxSchema *s, TextList *out)
{
    const char *at = s->attrs;
    MxAttrSpec  a;

    while (mx_next_attr(&at, &a))
        vec_push(c->scratch, out, intern_n(c->strings, (const char *)a.name.at, a.name.n));
}

bool mx_next_arg(const char **at, MxArgSpec *out)
{
    const char *word = *at, *end = word + strcspn(word, " "), *stop = word + strcspn(word, "[?* ");

    if (!*word)
        return false;
    *out = (MxArgSpec){.name = part(word, stop)};
    if (*stop == '[') {
        out->count = part(stop + 1, end - 1);
    } else if (*stop == '?') {
        const char *equals = memchr(stop, '=', (size_t)(end - stop));

        out->attr = part(stop + 1, equals);
        out->value = part(equals + 1, end);
    } else {
        out->any = *stop == '*';
    }
    *at = *end ? end + 1 : end;
    return true;
}

/* -print-ops=mxnet, in the order of the table: what it takes, and its other names. */
void mxnet_list_ops(StrBuf *out)
{
    for (uint32_t i = 0; i < COUNT(rows); i++) {
        const MxRow *r = &rows[i];
        StrBuf       takes = strbuf(out->arena), other = strbuf(out->arena);

        for (const char *p = r->schema->inputs; *p; p++)
            str_addc(&takes, *p == ' ' ? ',' : *p);
        for (uint32_t k = 0; k < COUNT(aliases); k++)
            if (aliases[k].op == r->schema)
                str_printf(&other, "%s%s", other.n ? "," : "", aliases[k].name);
        str_printf(out, "%-32s %-40s %-8s %s\n", r->name, takes.n ? takes.at : "-",
                   other.n ? other.at : "-", r->relay ? r->relay : "-");
    }
}
