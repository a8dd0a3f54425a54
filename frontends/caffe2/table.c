/* The table of operators. */
#include "frontends/caffe2/caffe2.h"

#include <stdlib.h>
#include <string.h>

#define none NULL
#define C2(name, operands, roles, relay, convert, args) \
    {#name, operands, roles, relay, convert, args},
static const C2Row rows[] = {
#include "frontends/caffe2/ops.def"
};
#undef C2
#undef none

const C2Row *c2_row(const char *type)
{
    for (uint32_t i = 0; i < COUNT(rows); i++)
        if (!strcmp(rows[i].name, type))
            return &rows[i];
    return NULL;
}

void c2_operands(const C2Row *r, uint32_t *least, uint32_t *most)
{
    char *end;

    *least = *most = (uint32_t)strtoul(r->operands, &end, 10);
    if (*end)
        *most = end[2] ? (uint32_t)strtoul(end + 2, NULL, 10) : UINT32_MAX;
}

char c2_role(const C2Row *r, uint32_t i)
{
    size_t n = strlen(r->roles);

    return n ? r->roles[i < n ? i : n - 1] : 0;
}

static const char *next_word(const char *at, size_t *n)
{
    at += strspn(at, " |");
    *n = strcspn(at, " |");
    return *n ? at : NULL;
}

bool c2_knows(const C2Row *r, const char *arg)
{
    size_t n, size = strlen(arg);

    for (const char *at = r->args; (at = next_word(at, &n)); at += n)
        if (n == size && !memcmp(at, arg, n))
            return true;
    return false;
}

void c2_arg_names(Ctx *c, const C2Row *r, TextList *out)
{
    size_t n;

    for (const char *at = r->args; (at = next_word(at, &n)); at += n)
        vec_push(c->scratch, out, intern_n(c->strings, at, n));
}

/* -print-ops=caffe2, in the order of the table: how many operands it takes. */
void caffe2_list_ops(StrBuf *out)
{
    for (uint32_t i = 0; i < COUNT(rows); i++)
        str_printf(out, "%-32s %-12s %-7s %s\n", rows[i].name, rows[i].operands, "-",
                   rows[i].relay ? rows[i].relay : "-");
}
