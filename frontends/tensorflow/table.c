/* The tables of operators and of their schemas. */
#include "frontends/tensorflow/tensorflow.h"

#include <string.h>

/* Schemas by name, so that rows of ops.def are checked by the compiler. */
enum {
#define SCHEMA(name, inputs, outputs, attrs) AT_##name,
#include "frontends/tensorflow/schema.def"
#undef SCHEMA
};

#define SCHEMA(name, inputs, outputs, attrs) {#name, inputs, outputs, attrs},
static const TfSchema schemas[] = {
#include "frontends/tensorflow/schema.def"
};
#undef SCHEMA

#define none NULL
#define TF(name, how, relay, convert) {#name, TF_##how, relay, convert, &schemas[AT_##name]},
const TfRow tf_rows[] = {
#include "frontends/tensorflow/ops.def"
};
#undef TF
#undef none

const uint32_t tf_nrows = COUNT(tf_rows);

const TfRow *tf_row(const char *op)
{
    for (uint32_t i = 0; i < tf_nrows; i++)
        if (!strcmp(tf_rows[i].name, op))
            return &tf_rows[i];
    return NULL;
}

/* ---- schemas ---------------------------------------------------------------------------------------- */

static Bytes part(const char *from, const char *to)
{
    return (Bytes){(const uint8_t *)from, (size_t)(to - from)};
}

bool tf_next_attr(const char **at, TfAttrSpec *out)
{
    const char *word = *at, *end = word + strcspn(word, " "), *colon, *equals;

    if (!*word)
        return false;
    colon = memchr(word, ':', (size_t)(end - word));
    equals = memchr(word, '=', (size_t)(end - word));
    *out = (TfAttrSpec){part(word, colon), part(colon + 1, equals ? equals : end), {0}};
    if (equals)
        out->fallback = part(equals + 1, end);
    *at = *end ? end + 1 : end;
    return true;
}

bool tf_attr_spec(const TfSchema *s, const char *name, TfAttrSpec *out)
{
    const char *at = s->attrs;

    while (tf_next_attr(&at, out))
        if (out->name.n == strlen(name) && !memcmp(out->name.at, name, out->name.n))
            return true;
    return false;
}

bool tf_next_arg(const char **at, TfArgSpec *out)
{
    const char *word = *at, *end = word + strcspn(word, " "), *open;

    if (!*word)
        return false;
    open = memchr(word, '[', (size_t)(end - word));
    *out = (TfArgSpec){part(word, open ? open : end), {0}};
    if (open)
        out->count = part(open + 1, end - 1);
    *at = *end ? end + 1 : end;
    return true;
}

/* -print-ops=tensorflow, in the order of the table: what it takes, and for what kinds of values. */
void tensorflow_list_ops(StrBuf *out)
{
    static const char *const hows[] = {"tensors", "cells", "axes", "values", "flow"};

    for (uint32_t i = 0; i < tf_nrows; i++) {
        const TfRow *r = &tf_rows[i];
        StrBuf       takes = strbuf(out->arena);

        for (const char *p = r->schema->inputs; *p; p++)
            str_addc(&takes, *p == ' ' ? ',' : *p);
        str_printf(out, "%-32s %-40s %-8s %s\n", r->name, takes.n ? takes.at : "-", hows[r->how],
                   r->relay ? r->relay : "-");
    }
}
