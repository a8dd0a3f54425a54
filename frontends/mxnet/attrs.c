/* Attributes: texts, as Python prints numbers and tuples. */
#include "frontends/mxnet/mxnet.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

bool mx_is_none(const char *text)
{
    return !strcmp(text, "None");
}

/* Python 2 wrote long numbers with an L. */
bool mx_parse_int(const char *text, int64_t *out)
{
    char *end;

    errno = 0;
    *out = strtoll(text, &end, 10);
    end += *end == 'L';
    return end != text && !*end && !errno && *out > MX_NONE;
}

bool mx_parse_bool(const char *text, bool *out)
{
    static const char *const yes[] = {"True", "true", "1"}, *const no[] = {"False", "false", "0"};

    for (uint32_t i = 0; i < COUNT(yes); i++)
        if (!strcmp(text, yes[i]) || !strcmp(text, no[i])) {
            *out = !strcmp(text, yes[i]);
            return true;
        }
    return false;
}

bool mx_parse_float(const char *text, double *out)
{
    char *end;

    if (!strcmp(text, "True") || !strcmp(text, "False")) { /* numpy's scalars may be */
        *out = !strcmp(text, "True");
        return true;
    }
    *out = strtod(text, &end);
    return end != text && !*end;
}

/* The next number of a list, or None; false: the text has ended, or *bad. */
static bool next_cell(const char **at, double *number, int64_t *whole, bool *is_whole, bool *bad)
{
    const char *p = *at + strspn(*at, " ()[],");
    char       *end, *end_whole;

    if (!*p)
        return false;
    *is_whole = true;
    *whole = MX_NONE;
    *number = NAN;
    if (!strncmp(p, "None", 4)) {
        *at = p + 4;
        return true;
    }
    errno = 0;
    *whole = strtoll(p, &end_whole, 10);
    *number = strtod(p, &end);
    *is_whole = end == end_whole && !errno && *whole > MX_NONE;
    *bad = end == p;
    *at = end + (*end == 'L');
    *bad |= **at && !strchr(" ()[],", **at);
    return !*bad;
}

bool mx_parse_ints(Ctx *c, const char *text, Ints *out)
{
    VEC(int64_t) list = {0};
    double  number;
    int64_t whole;
    bool    is_whole, bad = false;

    *out = (Ints){0};
    if (mx_is_none(text))
        return true;
    while (next_cell(&text, &number, &whole, &is_whole, &bad)) {
        if (!is_whole)
            return false;
        vec_push(c->arena, &list, whole);
    }
    *out = (Ints){list.n, list.at};
    return !bad;
}

bool mx_parse_floats(Ctx *c, const char *text, uint32_t *n, double **out)
{
    VEC(double) list = {0};
    double  number;
    int64_t whole;
    bool    is_whole, bad = false;

    *n = 0;
    while (next_cell(&text, &number, &whole, &is_whole, &bad)) {
        if (isnan(number))
            return false;
        vec_push(c->arena, &list, number);
    }
    *n = list.n;
    *out = list.at;
    return !bad;
}

static bool is_word(Bytes words, const char *text)
{
    const char *at = (const char *)words.at, *end = at + words.n;
    size_t      n = strlen(text);

    while (at < end) {
        const char *bar = memchr(at, '|', (size_t)(end - at));
        size_t      len = (size_t)((bar ? bar : end) - at);

        if (len == n && !memcmp(at, text, n))
            return true;
        at += len + 1;
    }
    return false;
}

bool mx_check_value(Ctx *c, const MxAttrSpec *s, const char *text)
{
    int64_t  i;
    bool     b;
    double   f, *at;
    uint32_t n;
    Ints     v;

    if (s->maybe && mx_is_none(text))
        return true;
    switch (s->kind) {
    case MX_INT: return mx_parse_int(text, &i);
    case MX_BOOL: return mx_parse_bool(text, &b);
    case MX_FLOAT: return mx_parse_float(text, &f);
    case MX_TEXT: return true;
    case MX_WORD: return is_word(s->words, text);
    case MX_SHAPE:
    case MX_SHAPES: return mx_parse_ints(c, text, &v);
    case MX_FLOATS: return mx_parse_floats(c, text, &n, &at);
    }
    return false;
}
