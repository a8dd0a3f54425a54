/* The tables of foreign operators: converters, and what nodes may have. */
#include "frontends/frontends.h"
#include "frontends/onnx/onnx.h"

#include <stdio.h>
#include <string.h>

#define none NULL
#define LAST 0
#define ONNX(name, domain, lo, hi, relay, convert) {#name, domain, lo, hi, relay, convert},
const OnnxRow onnx_rows[] = {
#include "frontends/onnx/ops.def"
};
#undef ONNX
#undef LAST
#undef none

const uint32_t onnx_nrows = COUNT(onnx_rows);

#define ONNX_NEWEST_IR(version)
#define ONNX_NEWEST(domain, version)
#define SCHEMA(name, domain, since, inputs, outputs, attributes) \
    {#name, domain, since, inputs, outputs, attributes},
const OnnxSchema onnx_schemas[] = {
#include "frontends/onnx/schema.def"
};
#undef SCHEMA
#undef ONNX_NEWEST

const uint32_t onnx_nschemas = COUNT(onnx_schemas);

int64_t onnx_newest(const char *domain)
{
#define ONNX_NEWEST(name, version) {name, version},
#define SCHEMA(name, domain, since, inputs, outputs, attributes)
    static const struct {
        const char *domain;
        int64_t     version;
    } newest[] = {
#include "frontends/onnx/schema.def"
    };
#undef SCHEMA
#undef ONNX_NEWEST
#undef ONNX_NEWEST_IR

    for (uint32_t i = 0; i < COUNT(newest); i++)
        if (!strcmp(newest[i].domain, domain))
            return newest[i].version;
    return 0;
}

const OnnxRow *onnx_row(const char *domain, const char *op, int64_t version, const OnnxRow **other)
{
    *other = NULL;
    for (uint32_t i = 0; i < onnx_nrows; i++) {
        const OnnxRow *r = &onnx_rows[i];

        if (strcmp(r->name, op) || strcmp(r->domain, domain))
            continue;
        if (version >= r->lo && (r->hi == 0 || version <= r->hi))
            return r;
        *other = r;
    }
    return NULL;
}

const OnnxSchema *onnx_schema(const char *domain, const char *op, int64_t version)
{
    const OnnxSchema *s = NULL;

    for (uint32_t i = 0; i < onnx_nschemas; i++)
        if (!strcmp(onnx_schemas[i].name, op) && !strcmp(onnx_schemas[i].domain, domain) &&
            onnx_schemas[i].since <= version)
            s = &onnx_schemas[i];
    return s;
}

uint32_t onnx_count_inputs(const OnnxSchema *schema)
{
    uint32_t n = *schema->inputs != 0;

    for (const char *p = schema->inputs; *p; p++) {
        n += *p == ' ';
        if (*p == '*' || *p == '+')
            return UINT32_MAX;
    }
    return n;
}

bool onnx_next_word(Arena *a, const char **at, OnnxWord *w)
{
    const char *end = *at + strcspn(*at, " "), *from = *at, *stop = end, *colon, *equals;

    if (from == end)
        return false;
    *at = *end ? end + 1 : end;
    w->mark = strchr("?*+!", end[-1]) ? *--stop : 0;
    colon = memchr(from, ':', (size_t)(stop - from));
    w->name = arena_printf(a, "%.*s", (int)((colon ? colon : stop) - from), from);
    w->kind = w->fallback = NULL;
    if (!colon)
        return true;
    equals = memchr(colon, '=', (size_t)(stop - colon));
    w->kind = arena_printf(a, "%.*s", (int)((equals ? equals : stop) - colon) - 1, colon + 1);
    if (equals)
        w->fallback = arena_printf(a, "%.*s", (int)(stop - equals) - 1, equals + 1);
    return true;
}

/* -print-ops=onnx, in the order of the table. */
void onnx_list_ops(StrBuf *out)
{
    for (uint32_t i = 0; i < onnx_nrows; i++) {
        const OnnxRow *r = &onnx_rows[i];
        char           versions[48];

        if (r->hi)
            snprintf(versions, sizeof versions, "%lld-%lld", (long long)r->lo, (long long)r->hi);
        else
            snprintf(versions, sizeof versions, "%lld-", (long long)r->lo);
        str_printf(out, "%-32s %-7s %-14s %s\n", r->name, versions,
                   *r->domain ? r->domain : "ai.onnx", r->relay ? r->relay : "-");
    }
}
