/* Regular expressions: a pattern as a tree.
 *
 * Characters are sets of code points.  Groups and the ways to repeat differ in what they capture or
 * prefer, which a match of the whole does not tell: they are alike here. */
#include "frontends/onnx/regex.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_DEPTH = 100, MAX_REPEAT = 1000, LAST_POINT = 0x10ffff };

typedef struct {
    bool fold, dot_all, lines; /* (?i) (?s) (?m) */
} Flags;

typedef struct {
    Arena         *a;
    const uint8_t *at, *end;
    Flags          flags;
    uint32_t       depth;
    const char    *why; /* the first error */
} Parser;

static void *fail(Parser *p, const char *why)
{
    if (!p->why)
        p->why = why;
    return NULL;
}

static bool accept(Parser *p, const char *text)
{
    size_t n = strlen(text);

    if ((size_t)(p->end - p->at) < n || memcmp(p->at, text, n) != 0)
        return false;
    p->at += n;
    return true;
}

/* ---- sets of code points ---------------------------------------------------------------------------- */

static void add(Parser *p, RegexRanges *s, uint32_t lo, uint32_t hi)
{
    vec_push(p->a, s, ((RegexRange){lo, hi}));
}

static int by_low(const void *x, const void *y)
{
    const RegexRange *a = x, *b = y;

    return a->lo < b->lo ? -1 : a->lo > b->lo;
}

/* In order, none meeting the next. */
static void tidy(RegexRanges *s)
{
    uint32_t k = 0;

    if (s->n)
        qsort(s->at, s->n, sizeof *s->at, by_low);
    for (uint32_t i = 0; i < s->n; i++)
        if (k && s->at[i].lo <= s->at[k - 1].hi + 1)
            s->at[k - 1].hi = s->at[i].hi > s->at[k - 1].hi ? s->at[i].hi : s->at[k - 1].hi;
        else
            s->at[k++] = s->at[i];
    s->n = k;
}

static RegexRanges complement(Parser *p, RegexRanges s)
{
    RegexRanges out = {0};
    uint32_t    from = 0;

    tidy(&s);
    for (uint32_t i = 0; i < s.n; i++) {
        if (s.at[i].lo > from)
            add(p, &out, from, s.at[i].lo - 1);
        from = s.at[i].hi + 1;
    }
    if (from <= LAST_POINT)
        add(p, &out, from, LAST_POINT);
    return out;
}

static void add_all(Parser *p, RegexRanges *s, RegexRanges of, bool negated)
{
    if (negated)
        of = complement(p, of);
    for (uint32_t i = 0; i < of.n; i++)
        vec_push(p->a, s, of.at[i]);
}

/* Pairs of the first and last of each range. */
static void add_pairs(Parser *p, RegexRanges *s, const char *pairs, bool negated)
{
    RegexRanges of = {0};

    for (; *pairs; pairs += 2)
        add(p, &of, (uint8_t)pairs[0], (uint8_t)pairs[1]);
    add_all(p, s, of, negated);
}

static const struct {
    const char *name, *pairs;
} classes[] = {
    {"alnum", "09AZaz"},
    {"alpha", "AZaz"},
    {"ascii", "\1\177"},
    {"blank", "\t\t  "},
    {"cntrl", "\1\37\177\177"},
    {"digit", "09"},
    {"graph", "!~"},
    {"lower", "az"},
    {"print", " ~"},
    {"punct", "!/:@[`{~"},
    {"space", "\t\r  "},
    {"upper", "AZ"},
    {"word", "09AZaz__"},
    {"xdigit", "09AFaf"},
};

/* \d \w \s and their opposites. */
static bool perl_class(Parser *p, uint8_t ch, RegexRanges *s)
{
    switch (ch) {
    case 'd':
    case 'D': add_pairs(p, s, "09", ch == 'D'); return true;
    case 'w':
    case 'W': add_pairs(p, s, "09AZaz__", ch == 'W'); return true;
    case 's':
    case 'S': add_pairs(p, s, "\t\n\f\r  ", ch == 'S'); return true;
    }
    return false;
}

static int hex(uint8_t ch)
{
    return ch >= '0' && ch <= '9'   ? ch - '0'
           : ch >= 'a' && ch <= 'f' ? ch - 'a' + 10
           : ch >= 'A' && ch <= 'F' ? ch - 'A' + 10
                                    : -1;
}

static bool hex_point(Parser *p, uint32_t *out)
{
    bool     brace = accept(p, "{");
    uint32_t n = 0;

    for (*out = 0; p->at < p->end && hex(*p->at) >= 0 && n < (brace ? 6 : 2); n++)
        *out = *out * 16 + (uint32_t)hex(*p->at++);
    return (n && (brace ? accept(p, "}") : n == 2) && *out <= LAST_POINT) ||
           fail(p, "\\x wants two hexadecimal digits, or some in braces");
}

static bool next_point(Parser *p, uint32_t *out)
{
    if (p->at == p->end)
        return fail(p, "it ends too early");
    *out = utf8_next(&p->at, p->end);
    return *out != UINT32_MAX || fail(p, "it is not UTF-8");
}

/* What stands for one character behind a backslash. */
static bool escaped_point(Parser *p, uint32_t *out)
{
    static const char from[] = "aftnrv", to[] = "\a\f\t\n\r\v";
    const char       *named;

    if (!next_point(p, out))
        return false;
    if (*out == 'x')
        return hex_point(p, out);
    if (*out == '0' ||
        (*out >= '1' && *out <= '7' && p->at < p->end && *p->at >= '0' && *p->at <= '7')) {
        *out -= '0';
        for (uint32_t i = 0; i < 2 && p->at < p->end && *p->at >= '0' && *p->at <= '7'; i++)
            *out = *out * 8 + (uint32_t)(*p->at++ - '0');
        return true;
    }
    if (*out >= '1' && *out <= '9')
        return fail(p, "references to groups are not regular");
    if (*out == 'p' || *out == 'P')
        return fail(p, "classes of Unicode (\\p) are not supported");
    if (*out < 0x80 && (named = memchr(from, (int)*out, sizeof from - 1))) {
        *out = (uint8_t)to[named - from];
        return true;
    }
    if (*out >= 0x80 || *out == '_' || (*out >= '0' && *out <= '9') ||
        (*out >= 'A' && *out <= 'Z') || (*out >= 'a' && *out <= 'z'))
        return fail(p, "there is no such escape");
    return true;
}

static bool fold(Parser *p, RegexRanges *s)
{
    uint32_t n = s->n;

    for (uint32_t i = 0; p->flags.fold && i < n; i++) {
        RegexRange r = s->at[i];

        for (uint32_t c = r.lo > 'A' ? r.lo : 'A'; c <= r.hi && c <= 'z'; c++)
            if (c <= 'Z' || c >= 'a')
                add(p, s, c ^ 32, c ^ 32);
        if (r.hi >= 0x80 && r.hi - r.lo < 0x1000)
            return fail(p, "case of letters beyond ASCII is not supported");
    }
    return true;
}

static const RegexTree *set_of(Parser *p, RegexRanges s)
{
    RegexTree *t = NEW(p->a, RegexTree);

    t->set = s;
    tidy(&t->set);
    return t;
}

/* [[:alpha:]] */
static bool named_class(Parser *p, RegexRanges *s)
{
    bool negated = accept(p, "^");

    for (uint32_t i = 0; i < COUNT(classes); i++) {
        const uint8_t *was = p->at;

        if (accept(p, classes[i].name) && accept(p, ":]")) {
            add_pairs(p, s, classes[i].pairs, negated);
            return true;
        }
        p->at = was;
    }
    return fail(p, "there is no such class of characters");
}

static bool class_point(Parser *p, uint32_t *out)
{
    return accept(p, "\\") ? escaped_point(p, out) : next_point(p, out);
}

/* Behind the opening bracket. */
static const RegexTree *bracket(Parser *p)
{
    bool        negated = accept(p, "^");
    RegexRanges s = {0};
    uint32_t    lo, hi;

    for (bool first = true; first || !accept(p, "]"); first = false) {
        const uint8_t *was = p->at;

        if (accept(p, "[:")) {
            if (!named_class(p, &s))
                return NULL;
            continue;
        }
        if (accept(p, "\\") && p->at < p->end && perl_class(p, *p->at, &s)) {
            p->at++;
            continue;
        }
        p->at = was;
        if (!class_point(p, &lo))
            return NULL;
        hi = lo;
        if (p->end - p->at > 1 && p->at[0] == '-' && p->at[1] != ']') {
            p->at++;
            if (!class_point(p, &hi))
                return NULL;
        }
        if (hi < lo)
            return fail(p, "a range ends before it begins");
        add(p, &s, lo, hi);
    }
    if (!fold(p, &s))
        return NULL;
    return set_of(p, negated ? complement(p, s) : s);
}

/* ---- the tree --------------------------------------------------------------------------------------- */

static const RegexTree *alternatives(Parser *p);

static const RegexTree *look_at(Parser *p, RegexLook look)
{
    RegexTree *t = NEW(p->a, RegexTree);

    t->kind = REGEX_LOOK;
    t->look = look;
    return t;
}

static const RegexTree *literal(Parser *p, uint32_t point)
{
    RegexRanges s = {0};

    add(p, &s, point, point);
    return fold(p, &s) ? set_of(p, s) : NULL;
}

/* `i`, `s-m`, .. up to ) or :; *group if it is :. */
static bool read_flags(Parser *p, bool *group)
{
    bool on = true;

    for (; p->at < p->end; p->at++)
        switch (*p->at) {
        case 'i': p->flags.fold = on; break;
        case 's': p->flags.dot_all = on; break;
        case 'm': p->flags.lines = on; break;
        case 'U': break; /* which of several matches, which does not matter here */
        case '-': on = false; break;
        case ':':
        case ')': *group = *p->at++ == ':'; return true;
        default:
            return fail(p, "there is no such group; what looks ahead or behind is not regular");
        }
    return fail(p, "a group does not end");
}

/* Behind the opening parenthesis. */
static const RegexTree *group(Parser *p)
{
    Flags            was = p->flags;
    const RegexTree *t;
    bool             inside = true;

    if (accept(p, "?P<") ||
        (p->end - p->at > 2 && p->at[2] != '=' && p->at[2] != '!' && accept(p, "?<"))) {
        while (p->at < p->end && *p->at != '>')
            p->at++;
        if (!accept(p, ">"))
            return fail(p, "a group's name does not end");
    } else if (accept(p, "?")) {
        if (!read_flags(p, &inside))
            return NULL;
        if (!inside) { /* for what follows */
            RegexTree *none = NEW(p->a, RegexTree);

            none->kind = REGEX_CAT;
            return none;
        }
    }
    if (++p->depth > MAX_DEPTH)
        return fail(p, "groups are nested too deeply");
    t = alternatives(p);
    p->depth--;
    p->flags = was;
    return t && !accept(p, ")") ? fail(p, "a group does not end") : t;
}

static const RegexTree *atom(Parser *p)
{
    RegexRanges s = {0};
    uint32_t    point;

    if (accept(p, "("))
        return group(p);
    if (accept(p, "["))
        return bracket(p);
    if (accept(p, "^"))
        return look_at(p, p->flags.lines ? REGEX_AT_LINE : REGEX_AT_BEGIN);
    if (accept(p, "$"))
        return look_at(p, p->flags.lines ? REGEX_AT_LINE_END : REGEX_AT_END);
    if (accept(p, ".")) {
        if (p->flags.dot_all)
            add(p, &s, 0, LAST_POINT);
        else
            add_pairs(p, &s, "\n\n", true);
        return set_of(p, s);
    }
    if (*p->at == '*' || *p->at == '+' || *p->at == '?')
        return fail(p, "nothing to repeat");
    if (!accept(p, "\\"))
        return next_point(p, &point) ? literal(p, point) : NULL;
    if (p->at < p->end && perl_class(p, *p->at, &s)) {
        p->at++;
        return set_of(p, s);
    }
    if (accept(p, "b"))
        return look_at(p, REGEX_AT_WORD);
    if (accept(p, "B"))
        return look_at(p, REGEX_NOT_AT_WORD);
    if (accept(p, "A"))
        return look_at(p, REGEX_AT_BEGIN);
    if (accept(p, "z"))
        return look_at(p, REGEX_AT_END);
    return escaped_point(p, &point) ? literal(p, point) : NULL;
}

static bool number(Parser *p, uint32_t *out)
{
    const uint8_t *from = p->at;

    for (*out = 0; p->at < p->end && *p->at >= '0' && *p->at <= '9' && *out < 100000; p->at++)
        *out = *out * 10 + (uint32_t)(*p->at - '0');
    return p->at > from;
}

/* {2} {2,} {2,5}; what is none of them is text. */
static bool counted(Parser *p, uint32_t *min, uint32_t *max)
{
    const uint8_t *was = p->at;

    if (accept(p, "{") && number(p, min)) {
        *max = *min;
        if (accept(p, ",") && !number(p, max))
            *max = UINT32_MAX;
        if (accept(p, "}"))
            return true;
    }
    p->at = was;
    return false;
}

static const RegexTree *repeated(Parser *p)
{
    const RegexTree *of = atom(p);
    uint32_t         min = 0, max = UINT32_MAX, times = 0;

    while (of && p->at < p->end) {
        RegexTree *t;

        if (accept(p, "*"))
            min = 0, max = UINT32_MAX;
        else if (accept(p, "+"))
            min = 1, max = UINT32_MAX;
        else if (accept(p, "?"))
            min = 0, max = 1;
        else if (!counted(p, &min, &max))
            break;
        if (times++)
            return fail(p, "a repetition is repeated");
        if (min > MAX_REPEAT || (max != UINT32_MAX && (max > MAX_REPEAT || max < min)))
            return fail(p, "a number of repetitions is too large, or below the first one");
        accept(p, "?"); /* as few as can be: which match it is does not matter here */
        t = NEW(p->a, RegexTree);
        t->kind = REGEX_REPEAT;
        t->min = min;
        t->max = max;
        vec_push(p->a, &t->kids, of);
        of = t;
    }
    return of;
}

static const RegexTree *sequence(Parser *p)
{
    RegexTree *t = NEW(p->a, RegexTree);

    t->kind = REGEX_CAT;
    while (p->at < p->end && *p->at != '|' && *p->at != ')') {
        const RegexTree *kid;

        if (accept(p, "\\Q")) {
            uint32_t point;

            while (p->at < p->end && !accept(p, "\\E")) {
                if (!next_point(p, &point) || !(kid = literal(p, point)))
                    return NULL;
                vec_push(p->a, &t->kids, kid);
            }
            continue;
        }
        if (!(kid = repeated(p)))
            return NULL;
        vec_push(p->a, &t->kids, kid);
    }
    return t;
}

static const RegexTree *alternatives(Parser *p)
{
    RegexTree *t = NEW(p->a, RegexTree);

    t->kind = REGEX_ALT;
    do {
        const RegexTree *kid = sequence(p);

        if (!kid)
            return NULL;
        vec_push(p->a, &t->kids, kid);
    } while (accept(p, "|"));
    return t;
}

const RegexTree *regex_parse(Arena *a, Bytes pattern, const char **why)
{
    const uint8_t   *at = pattern.n ? pattern.at : (const uint8_t *)"";
    Parser           p = {.a = a, .at = at, .end = at + pattern.n};
    const RegexTree *t = alternatives(&p);

    if (t && p.at < p.end)
        t = fail(&p, "a parenthesis closes no group");
    *why = p.why;
    return t;
}
