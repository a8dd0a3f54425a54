/* What a look at all nodes of a model finds, before anything is built of them. */
#include "frontends/common.h"

#include <string.h>

static bool same_text(const char *a, const char *b)
{
    return a == b || (a && b && strcmp(a, b) == 0);
}

void finding_add(Ctx *c, Findings *f, Finding x)
{
    for (uint32_t i = 0; i < f->list.n; i++) {
        Finding *had = &f->list.at[i];

        if (had->id == x.id && same_text(had->op, x.op) && same_text(had->text, x.text)) {
            had->count++;
            return;
        }
    }
    x.count = 1;
    vec_push(c->arena, &f->list, x);
}

void finding_addv(Ctx *c, Findings *f, Finding x, const char *fmt, va_list ap)
{
    StrBuf text = strbuf(c->arena);

    str_vprintf(&text, fmt, ap);
    x.text = text.at;
    finding_add(c, f, x);
}

void findings_report(Ctx *c, const Findings *f)
{
    for (uint32_t i = 0; i < f->list.n; i++) {
        const Finding *x = &f->list.at[i];
        Loc            loc = {f->path, x->ordinal, 0, intern(c->strings, x->first)};
        StrBuf         t = strbuf(c->arena);

        if (!x->op)
            str_printf(&t, "%s: %u %s%s, first '%s'", x->text, x->count, f->noun,
                       x->count > 1 ? "s" : "", x->first);
        else
            str_printf(&t, "%s '%s': %s", x->op, x->first, x->text);
        if (x->op && x->count > 1)
            str_printf(&t, " (and %u more %s%s)", x->count - 1, f->noun, x->count > 2 ? "s" : "");
        if (diag_flag_of(diag_code(x->id)))
            diag_warn(c->diags, x->id, loc, "%s", t.at);
        else
            error_at(c, x->id, loc, "%s", t.at);
        if (x->hint)
            diag_hint(c->diags, "%s", x->hint);
    }
}

void signature_count(Ctx *c, Map *index, ModelSignature *s, OpTally *ops, const char *name)
{
    uintptr_t at;

    name = intern(c->strings, name);
    if (!(at = (uintptr_t)map_get(index, PTR_KEY(name)))) {
        ops[s->nops] = (OpTally){name, 0};
        at = ++s->nops;
        map_put(index, PTR_KEY(name), (void *)at);
    }
    ops[at - 1].count++;
    s->ops = ops;
}
