/* Constant data of the host functions: structs of tvmcc/abi.h member by member, numbers, tables of
 * addresses.  Texts stand where they are used. */
#include "backends/c/c.h"

#include <inttypes.h>
#include <string.h>

static const Data *find(Source *s, const char *name)
{
    return map_get(s->data, PTR_KEY(intern(s->c->strings, name)));
}

bool c_is_text(const Data *d)
{
    const Bytes *b = d->nitems ? &d->items[0].bytes : NULL;

    return d->nitems == 1 && d->items[0].type == ABI_NONE && b->n && !b->at[b->n - 1] &&
           strlen((const char *)b->at) + 1 == b->n;
}

static void print_text(StrBuf *out, const char *text)
{
    str_addc(out, '"');
    for (const unsigned char *p = (const unsigned char *)text; *p; p++)
        if (*p == '"' || *p == '\\' || *p == '?') /* of a trigraph */
            str_printf(out, "\\%c", *p);
        else if (*p < ' ' || *p > '~')
            str_printf(out, "\\%03o", *p);
        else
            str_addc(out, (char)*p);
    str_addc(out, '"');
}

/* The type of what an address leads to: that of the first one which is not NULL. */
const char *c_cells(Source *s, const Data *d)
{
    for (uint32_t i = 0; i < d->nitems; i++) {
        const char *to = d->items[i].symbol;
        const Data *target = to ? find(s, to) : NULL;

        if (d->record || d->items[i].type != ABI_HANDLE)
            return NULL;
        if (to && !target)
            return "tvmcc_run_fn";
        if (target && target->record)
            return arena_printf(s->c->arena, "const tvmcc_%s *", target->record->name);
        if (target)
            return "const char *";
    }
    return "const void *";
}

static void print_item(Source *s, const DataItem *x, StrBuf *out)
{
    const Data *to = x->symbol ? find(s, x->symbol) : NULL;

    if (x->size_of) {
        str_printf(out, "(uint32_t)sizeof(tvmcc_%s)", x->size_of->name);
        return;
    }
    switch (x->type) {
    case ABI_HANDLE:
        if (to && c_is_text(to))
            print_text(out, (const char *)to->items[0].bytes.at);
        else
            str_add(out, x->symbol ? c_symbol(s, x->symbol) : "NULL");
        return;
    case ABI_NONE:
    case ABI_SHA:
        str_add(out, "{");
        for (size_t i = 0; i < x->bytes.n; i++)
            str_printf(out, i ? ", %u" : "%u", x->bytes.at[i]);
        str_add(out, "}");
        return;
    case ABI_SIZE:
    case ABI_U32: c_dialect.integer(out, DT_U64, x->i); return;
    case ABI_F32: c_real(out, DT_F32, (double)x->i); return;
    case ABI_U8:
    case ABI_U16:
    case ABI_I32:
    case ABI_SHARED:
    case ABI_I64: c_dialect.integer(out, DT_I64, x->i); return;
    }
}

static void print_records(Source *s, const Data *d, StrBuf *out)
{
    uint32_t per = d->record->n;

    for (uint32_t i = 0; i < d->nitems; i++) {
        str_add(out, i % per ? ",\n" : i ? "}, {\n" : "{\n");
        str_printf(out, "    .%s = ", d->record->members[i % per].name);
        print_item(s, &d->items[i], out);
    }
    str_add(out, "\n}");
}

/* `static const int64_t net__const4[4]` */
static void print_head(Source *s, const Data *d, StrBuf *out)
{
    const char *name = c_symbol(s, d->name), *cells = c_cells(s, d);
    uint32_t    n = d->record ? d->nitems / d->record->n : d->nitems;

    if (d->record)
        str_printf(out, "static const tvmcc_%s %s[%u]", d->record->name, name, n);
    else if (cells)
        str_printf(out, "static %s const %s[%u]", cells, name, n);
    else if (d->items[0].type == ABI_NONE)
        str_printf(out, "static const uint8_t %s[%zu]", name, d->items[0].bytes.n);
    else
        str_printf(out, "static const %s %s[%u]", c_type(abi_dtype(d->items[0].type)), name, n);
}

static void print_data(Source *s, const Data *d, StrBuf *out)
{
    print_head(s, d, out);
    str_add(out, " = ");
    if (d->nitems == 1 && d->items[0].type == ABI_NONE) {
        print_item(s, &d->items[0], out);
    } else {
        str_add(out, "{");
        if (d->record)
            print_records(s, d, out);
        for (uint32_t i = 0; !d->record && i < d->nitems; i++) {
            str_add(out, i ? ", " : "");
            print_item(s, &d->items[i], out);
        }
        str_add(out, "}");
    }
    str_add(out, ";\n");
}

static bool is_printed(const Source *s, const Data *d)
{
    return d->nitems && !d->exported && !c_is_text(d) && map_get(s->live, PTR_KEY(d->name));
}

void c_data(Source *s, const TirModule *host, StrBuf *out)
{
    Map *known = map_new(s->c->scratch);

    for (uint32_t i = 0; i < host->ndata; i++) {
        const Data *d = &host->data[i];

        if (!is_printed(s, d))
            continue;
        for (uint32_t k = 0; k < d->nitems; k++) { /* structs that refer to each other */
            const Data *to = d->items[k].symbol ? find(s, d->items[k].symbol) : NULL;

            if (!to || to == d || !is_printed(s, to) || map_get(known, PTR_KEY(to)))
                continue;
            print_head(s, to, out);
            str_add(out, ";\n");
            map_put(known, PTR_KEY(to), s);
        }
        print_data(s, d, out);
        map_put(known, PTR_KEY(d), s);
    }
    str_add(out, "\n");
}
