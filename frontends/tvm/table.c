/* The table of operators. */
#include "frontends/tvm/tvm.h"

#include <string.h>

#define none NULL
#define TV(name, least, most, takes, moves, relay, attrs, convert) \
    {name, least, most, TV_##takes, TV_##moves, relay, attrs, convert},
static const TvRow rows[] = {
#include "frontends/tvm/ops.def"
};
#undef TV
#undef none

const TvRow *tv_row(const char *op)
{
    for (uint32_t i = 0; i < COUNT(rows); i++)
        if (!strcmp(rows[i].name, op))
            return &rows[i];
    return NULL;
}

static const struct {
    const char *name, *hint;
} refused[] = {
#define TV_REFUSED(name, hint) {name, hint},
#include "frontends/tvm/refused.def"
#undef TV_REFUSED
};

static const char *refusal(const char *op)
{
    for (uint32_t i = 0; i < COUNT(refused); i++)
        if (!strcmp(refused[i].name, op))
            return refused[i].hint;
    return NULL;
}

static const char *closest_hint(Ctx *c, const char *name, const TextList *names)
{
    const char *near = str_closest(name, names->at, names->n);

    return near ? arena_printf(c->arena, "did you mean '%s'?", near) : NULL;
}

const char *tv_unknown_op(Ctx *c, const char *op)
{
    const char *why = refusal(op);
    TextList    names = {0};

    for (uint32_t i = 0; i < COUNT(rows) && !why; i++)
        vec_push(c->arena, &names, rows[i].name);
    return why ? why : closest_hint(c, op, &names);
}

const char *tv_unknown_attr(Ctx *c, const TvRow *row, const char *name)
{
    const char *at = row->attrs;
    TextList    names = {0};
    TvAttrSpec  s;

    while (tv_next_attr(c, &at, &s))
        vec_push(c->arena, &names, s.name);
    return closest_hint(c, name, &names);
}

bool tv_next_attr(Ctx *c, const char **at, TvAttrSpec *out)
{
    const char *word = *at, *end = word + strcspn(word, " "), *mark = word + strcspn(word, ">=! ");

    if (!*word)
        return false;
    *out = (TvAttrSpec){.name = intern_n(c->strings, word, (size_t)(mark - word)),
                        .use = *mark == '='   ? TV_FIXED
                               : *mark == '!' ? TV_READ
                                              : TV_SAME};
    out->other = *mark == '>' || *mark == '='
                     ? intern_n(c->strings, mark + 1, (size_t)(end - mark - 1))
                     : out->name;
    *at = *end ? end + 1 : end;
    return true;
}

/* -print-ops=tvm, in the order of the table: how many operands an operator takes. */
void tvm_list_ops(StrBuf *out)
{
    for (uint32_t i = 0; i < COUNT(rows); i++) {
        const TvRow *r = &rows[i];
        const char  *operands = r->least == r->most
                                    ? arena_printf(out->arena, "%u", r->least)
                                    : arena_printf(out->arena, "%u-%u", r->least, r->most);

        str_printf(out, "%-32s %-8s %-8s %s\n", r->name, operands, "-", r->relay ? r->relay : "-");
    }
}

void tvm_list_refused(StrBuf *out)
{
    for (uint32_t i = 0; i < COUNT(refused); i++)
        str_printf(out, "%-50s %s\n", refused[i].name, refused[i].hint);
}
