/* The table of operators. */
#include "frontends/pytorch/pytorch.h"

#include <string.h>

#define none NULL
#define ATEN(name, overloads, args, alias, relay, convert) \
    {name, overloads, args, alias, relay, convert},
const PtRow pt_rows[] = {
#include "frontends/pytorch/ops.def"
};
#undef ATEN
#undef none

const uint32_t pt_nrows = COUNT(pt_rows);

/* Is the word, of n bytes, in the list? */
static bool lists(const char *list, const char *word, size_t n)
{
    for (; *list; list += strspn(list, " ")) {
        size_t len = strcspn(list, " ");

        if (len == n && !memcmp(list, word, n))
            return true;
        list += len;
    }
    return false;
}

static const PtRow *find(const char *name, size_t n, const char *overload)
{
    for (uint32_t i = 0; i < pt_nrows; i++)
        if (strlen(pt_rows[i].name) == n && !memcmp(pt_rows[i].name, name, n) &&
            lists(pt_rows[i].overloads, overload, strlen(overload)))
            return &pt_rows[i];
    return NULL;
}

const PtRow *pt_row(const char *target, bool *in_place)
{
    const char  *dot = strrchr(target, '.'), *first = strchr(target, '.');
    bool         overloaded = dot && dot != first;
    size_t       n = overloaded ? (size_t)(dot - target) : strlen(target);
    const char  *overload = overloaded ? dot + 1 : "default";
    const PtRow *row = find(target, n, overload);

    *in_place = false;
    if (row || n < 2 || target[n - 1] != '_' || target[n - 2] == '_')
        return row;
    row = find(target, n - 1, overload);
    *in_place = row != NULL;
    return row;
}

bool pt_row_has(const PtRow *row, const char *arg, bool *ignored)
{
    size_t n = strlen(arg);

    for (const char *at = row->args; *at; at += strspn(at, " ")) {
        size_t len = strcspn(at, " ");
        bool   ignore = *at == '~';

        if (len - ignore == n && !memcmp(at + ignore, arg, n)) {
            *ignored = ignore;
            return true;
        }
        at += len;
    }
    return false;
}

/* -print-ops=pytorch, in the order of the table: operator, overloads, namespace. */
void pytorch_list_ops(StrBuf *out)
{
    for (uint32_t i = 0; i < pt_nrows; i++) {
        const PtRow *r = &pt_rows[i];
        const char  *dot = strchr(r->name, '.');
        uint32_t     from = out->n;

        str_printf(out, "%-32s ", dot + 1);
        for (const char *p = r->overloads; *p; p++)
            str_addc(out, *p == ' ' ? ',' : *p);
        str_printf(out, "%*s %-14.*s %s\n", out->n - from < 56 ? (int)(56 - (out->n - from)) : 0,
                   "", (int)(dot - r->name), r->name, r->relay ? r->relay : "-");
    }
}
