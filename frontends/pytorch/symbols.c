/* Sizes as programs write them: sympy's srepr, or plain text in older ones.
 *
 *     Add(Mul(Integer(2), Symbol('s77', positive=True, integer=True)), Integer(1))  ->  (2*s77)+1
 *
 * What is written here is read again by idx_parse, over the dimensions that there are. */
#include "frontends/pytorch/pytorch.h"

#include <ctype.h>
#include <string.h>

typedef struct {
    Arena      *a;
    const char *at;
    uint32_t    depth;
} Text;

static bool take(Text *t, const char *word)
{
    while (*t->at == ' ')
        t->at++;
    if (!str_starts(t->at, word))
        return false;
    t->at += strlen(word);
    return true;
}

/* Up to the end of the call that is open. */
static bool skip_call(Text *t)
{
    for (uint32_t depth = 1; *t->at; t->at++) {
        depth += *t->at == '(';
        depth -= *t->at == ')';
        if (!depth) {
            t->at++;
            return true;
        }
    }
    return false;
}

static const char *expression(Text *t);

/* The arguments of a call, with op between them. */
static const char *joined(Text *t, const char *op)
{
    StrBuf   s = strbuf(t->a);
    uint32_t n = 0;

    do {
        const char *x = expression(t);

        if (!x)
            return NULL;
        str_printf(&s, "%s%s", n++ ? op : "", x);
    } while (take(t, ","));
    return take(t, ")") ? arena_printf(t->a, "(%s)", s.at) : NULL;
}

static const char *expression(Text *t)
{
    static const struct {
        const char *call, *op;
    } calls[] = {
        {"Add(", "+"}, {"Mul(", "*"}, {"FloorDiv(", "/"}, {"Mod(", "%"}, {"PythonMod(", "%"}};
    const char *from, *text = NULL;
    size_t      n;

    if (++t->depth > PT_MAX_NESTING)
        return NULL;
    for (uint32_t i = 0; i < COUNT(calls) && !text; i++)
        if (take(t, calls[i].call)) {
            text = joined(t, calls[i].op);
            t->depth--;
            return text;
        }
    if (take(t, "Integer(")) {
        from = t->at;
        n = strspn(from, "-0123456789");
        t->at += n;
        text = n && take(t, ")") ? arena_printf(t->a, "%.*s", (int)n, from) : NULL;
    } else if (take(t, "Symbol('")) {
        from = t->at;
        n = strcspn(from, "'");
        t->at += n;
        text = n && n < 256 && skip_call(t) ? arena_printf(t->a, "%.*s", (int)n, from) : NULL;
    }
    t->depth--;
    return text;
}

const char *pt_symbol_text(Arena *a, const char *srepr)
{
    Text        t = {.a = a, .at = srepr};
    const char *text, *p = srepr;

    if ((text = expression(&t)))
        return *t.at ? NULL : text;
    /* "s0", "2*s1": as older versions wrote it. */
    while (isalnum((unsigned char)*p) || (*p && strchr("_+-* ()", *p)))
        p++;
    return *p || p == srepr || strstr(srepr, "**") || strchr(srepr, '(') ? NULL : srepr;
}
