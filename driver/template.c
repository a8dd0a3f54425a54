/* A text with names in it, filled in: build.ninja.in becomes build.ninja.  Lines are copied one by
 * one; a section is its range of lines, expanded once for each scope of its list. */
#include "driver/template.h"

#include <string.h>

enum { MAX_DEPTH = 8 };

TemplateScope *scope_new(Arena *a, const TemplateScope *outer)
{
    TemplateScope *s = NEW(a, TemplateScope);

    s->outer = outer;
    return s;
}

static ScopeValue *own_value(Arena *a, TemplateScope *s, const char *name)
{
    for (uint32_t i = 0; i < s->values.n; i++) {
        if (strcmp(s->values.at[i].name, name) == 0)
            return &s->values.at[i];
    }
    vec_push(a, &s->values, ((ScopeValue){.name = name}));
    return &s->values.at[s->values.n - 1];
}

void scope_set(Arena *a, TemplateScope *s, const char *name, const char *text)
{
    own_value(a, s, name)->text = text ? text : "";
}

void scope_add(Arena *a, TemplateScope *s, const char *list, const TemplateScope *item)
{
    ScopeValue *v = own_value(a, s, list);

    if (item)
        vec_push(a, &v->list, item);
}

static const ScopeValue *find(const TemplateScope *s, const char *name, size_t n)
{
    for (; s; s = s->outer) {
        for (uint32_t i = 0; i < s->values.n; i++) {
            const ScopeValue *v = &s->values.at[i];

            if (strlen(v->name) == n && memcmp(v->name, name, n) == 0)
                return v;
        }
    }
    BUG("the template asks for '%.*s', which nobody sets", (int)n, name);
}

/* The line at `at`, without its end; *next is where the following one begins. */
static size_t line_length(const char *at, const char *end, const char **next)
{
    const char *stop = memchr(at, '\n', (size_t)(end - at));

    *next = stop ? stop + 1 : end;
    return (size_t)((stop ? stop : end) - at);
}

static bool line_is(const char *at, size_t n, const char *word)
{
    size_t k = strlen(word);

    return n >= k && memcmp(at, word, k) == 0;
}

/* Where the section whose body begins at `at` ends: its `#@ end` line. */
static const char *section_end(const char *at, const char *end)
{
    const char *next;
    int         depth = 1;

    for (; at < end; at = next) {
        size_t n = line_length(at, end, &next);

        if (line_is(at, n, "#@ end"))
            depth--;
        else if (line_is(at, n, "#@ "))
            depth++;
        if (depth == 0)
            return at;
    }
    BUG("a section of the template does not end");
}

static bool is_name(char ch)
{
    return (ch >= 'A' && ch <= 'Z') || ch == '_';
}

static void expand_line(const char *at, size_t n, const TemplateScope *s, StrBuf *out)
{
    const char *end = at + n;

    while (at < end) {
        const char *stop = at + 1;

        while (*at == '@' && stop < end && is_name(*stop))
            stop++;
        if (*at == '@' && stop > at + 1 && stop < end && *stop == '@') {
            str_add(out, find(s, at + 1, (size_t)(stop - at - 1))->text);
            at = stop + 1;
        } else {
            str_addc(out, *at++);
        }
    }
    str_addc(out, '\n');
}

static void expand(const char *at, const char *end, const TemplateScope *s, StrBuf *out, int depth)
{
    const char *next;

    if (depth > MAX_DEPTH)
        BUG("the template is nested too deeply");
    for (; at < end; at = next) {
        size_t n = line_length(at, end, &next);
        bool   each = line_is(at, n, "#@ each "), test = line_is(at, n, "#@ if ");

        if (each || test) {
            size_t            skip = each ? strlen("#@ each ") : strlen("#@ if ");
            const ScopeValue *v = find(s, at + skip, n - skip);
            const char       *body = next, *stop = section_end(body, end);

            for (uint32_t i = 0; each && i < v->list.n; i++)
                expand(body, stop, v->list.at[i], out, depth + 1);
            if (test && ((v->text && *v->text) || v->list.n))
                expand(body, stop, s, out, depth + 1);
            line_length(stop, end, &next);
        } else if (!line_is(at, n, "##")) {
            expand_line(at, n, s, out);
        }
    }
}

void template_expand(Bytes text, const TemplateScope *s, StrBuf *out)
{
    expand((const char *)text.at, (const char *)text.at + text.n, s, out, 0);
}
