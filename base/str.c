/* Text: interning, so that equal strings are the same pointer; a growing buffer; the edit
 * distance behind "did you mean"; and identifiers of C made of any text. */
#include "base/base.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

/* ---- interning: open addressing over pointers into the arena; never shrinks ------------------ */

struct Strings {
    Arena       *arena;
    const char **at;
    uint64_t    *hash;
    uint32_t     n, cap;
};

Strings *strings_new(Arena *a)
{
    Strings *s = NEW(a, Strings);

    s->arena = a;
    s->cap = 256;
    s->at = NEW_ARRAY(a, const char *, s->cap);
    s->hash = NEW_ARRAY(a, uint64_t, s->cap);
    return s;
}

static void strings_grow(Strings *s)
{
    const char **at = s->at;
    uint64_t    *hash = s->hash;
    uint32_t     cap = s->cap;

    s->at = arena_array(s->arena, (size_t)cap * 2, sizeof *s->at);
    s->hash = arena_array(s->arena, (size_t)cap * 2, sizeof *s->hash);
    s->cap = cap * 2;
    for (uint32_t i = 0; i < cap; i++) {
        uint32_t j = (uint32_t)hash[i] & (s->cap - 1);

        if (!at[i])
            continue;
        while (s->at[j])
            j = (j + 1) & (s->cap - 1);
        s->at[j] = at[i];
        s->hash[j] = hash[i];
    }
}

const char *intern_n(Strings *s, const char *text, size_t n)
{
    uint64_t h = hash_bytes(text, n, 0);
    uint32_t i = (uint32_t)h & (s->cap - 1);
    char    *copy;

    for (; s->at[i]; i = (i + 1) & (s->cap - 1)) {
        if (s->hash[i] == h && strlen(s->at[i]) == n && memcmp(s->at[i], text, n) == 0)
            return s->at[i];
    }
    if (memchr(text, 0, n)) /* a NUL inside ends the string, as everywhere in C */
        return intern_n(s, text, strlen(text));
    copy = arena_alloc(s->arena, n + 1);
    memcpy(copy, text, n);
    s->at[i] = copy;
    s->hash[i] = h;
    if (++s->n > s->cap / 2)
        strings_grow(s);
    return copy;
}

const char *intern(Strings *s, const char *text)
{
    return intern_n(s, text, strlen(text));
}

const char *intern_printf(Strings *s, const char *fmt, ...)
{
    char    small[256];
    va_list ap;
    int     n;
    StrBuf  big;

    va_start(ap, fmt);
    n = vsnprintf(small, sizeof small, fmt, ap);
    va_end(ap);
    if (n >= 0 && (size_t)n < sizeof small)
        return intern_n(s, small, (size_t)n);
    big = strbuf(s->arena);
    va_start(ap, fmt);
    str_vprintf(&big, fmt, ap);
    va_end(ap);
    return intern_n(s, big.at, big.n);
}

/* ---- StrBuf ---------------------------------------------------------------------------------- */

StrBuf strbuf(Arena *a)
{
    StrBuf s = {.arena = a, .cap = 32};

    s.at = arena_alloc(a, s.cap);
    return s;
}

void str_reserve(StrBuf *s, size_t more)
{
    size_t need = 0, cap = s->cap;
    char  *p;

    if (!checked_add(s->n, more, &need) || !checked_add(need, (size_t)1, &need))
        need = SIZE_MAX; /* the allocation reports it */
    if (need <= cap)
        return;
    cap = need < cap * 2 ? cap * 2 : need;
    p = arena_alloc(s->arena, cap);
    memcpy(p, s->at, s->n);
    s->at = p;
    s->cap = cap;
}

void str_addn(StrBuf *s, const char *text, size_t n)
{
    if (n == 0)
        return;
    str_reserve(s, n);
    memcpy(s->at + s->n, text, n);
    s->n += n;
    s->at[s->n] = 0;
}

void str_add(StrBuf *s, const char *text)
{
    str_addn(s, text, strlen(text));
}

void str_addc(StrBuf *s, char ch)
{
    str_addn(s, &ch, 1);
}

void str_vprintf(StrBuf *s, const char *fmt, va_list ap)
{
    va_list again;
    int     n;

    va_copy(again, ap);
    n = vsnprintf(s->at + s->n, s->cap - s->n, fmt, ap);
    if (n < 0)
        BUG("bad format '%s'", fmt);
    if ((size_t)n >= s->cap - s->n) {
        str_reserve(s, (size_t)n);
        vsnprintf(s->at + s->n, s->cap - s->n, fmt, again);
    }
    va_end(again);
    s->n += (size_t)n;
}

void str_printf(StrBuf *s, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    str_vprintf(s, fmt, ap);
    va_end(ap);
}

bool str_starts(const char *text, const char *prefix)
{
    return strncmp(text, prefix, strlen(prefix)) == 0;
}

bool str_ends(const char *text, const char *suffix)
{
    size_t n = strlen(text), m = strlen(suffix);

    return n >= m && memcmp(text + n - m, suffix, m) == 0;
}

bool str_star(const char *text, const char *pattern, const char **part, size_t *n)
{
    const char *star = strchr(pattern, '*');
    size_t      before = star ? (size_t)(star - pattern) : 0;

    if (!star || strlen(text) + 1 < strlen(pattern) || memcmp(text, pattern, before) != 0 ||
        !str_ends(text + before, star + 1))
        return false;
    *part = text + before;
    *n = strlen(text) + 1 - strlen(pattern);
    return true;
}

/* ---- "did you mean" -------------------------------------------------------------------------- */

enum { WORD_MAX = 64 };

/* Optimal string alignment: insert, delete, replace, or swap two neighbours, each 1. */
static unsigned edit_distance(const char *a, size_t n, const char *b, size_t m)
{
    unsigned rows[3][WORD_MAX + 1];

    for (size_t j = 0; j <= m; j++)
        rows[0][j] = (unsigned)j;
    for (size_t i = 1; i <= n; i++) {
        unsigned *now = rows[i % 3], *last = rows[(i - 1) % 3], *before = rows[(i + 1) % 3];

        now[0] = (unsigned)i;
        for (size_t j = 1; j <= m; j++) {
            unsigned best = last[j - 1] + (a[i - 1] != b[j - 1]);

            best = last[j] + 1 < best ? last[j] + 1 : best;
            best = now[j - 1] + 1 < best ? now[j - 1] + 1 : best;
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] &&
                before[j - 2] + 1 < best)
                best = before[j - 2] + 1;
            now[j] = best;
        }
    }
    return rows[n % 3][m];
}

const char *str_closest(const char *word, const char *const *candidates, size_t n)
{
    size_t      len = strlen(word);
    unsigned    best = (unsigned)(len / 3) + 1; /* beyond the limit: a third is wrong */
    const char *found = NULL;

    if (len == 0 || len > WORD_MAX)
        return NULL;
    for (size_t i = 0; i < n; i++) {
        size_t   m = strlen(candidates[i]);
        unsigned d;

        if (m == 0 || m > WORD_MAX)
            continue;
        d = edit_distance(word, len, candidates[i], m);
        if (d < best && d < m) {
            best = d;
            found = candidates[i];
        }
    }
    return found;
}

bool parse_bytes(const char *text, uint64_t *out)
{
    static const struct {
        const char *suffix;
        uint64_t    unit;
    } units[] = {{"", 1}, {"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1 << 30}};
    size_t   digits = strspn(text, "0123456789");
    uint64_t v = 0;

    for (size_t i = 0; i < digits; i++) {
        if (!checked_mul(v, 10u, &v) || !checked_add(v, (uint64_t)(text[i] - '0'), &v))
            return false;
    }
    for (size_t i = 0; i < COUNT(units); i++) {
        if (strcmp(text + digits, units[i].suffix) == 0)
            return v && checked_mul(v, units[i].unit, out) && *out <= INT64_MAX;
    }
    return false;
}

/* ---- C identifiers ---------------------------------------------------------------------------- */

static bool is_keyword(const char *word)
{
    static const char *const words[] = {
        "alignas",   "alignof",   "and",       "asm",      "auto",     "bool",     "break",
        "case",      "catch",     "char",      "class",    "compl",    "concept",  "const",
        "constexpr", "continue",  "decltype",  "default",  "delete",   "do",       "double",
        "else",      "enum",      "explicit",  "export",   "extern",   "false",    "float",
        "for",       "friend",    "goto",      "if",       "inline",   "int",      "long",
        "mutable",   "namespace", "new",       "noexcept", "not",      "nullptr",  "operator",
        "or",        "private",   "protected", "public",   "register", "requires", "restrict",
        "return",    "short",     "signed",    "sizeof",   "static",   "struct",   "switch",
        "template",  "this",      "throw",     "true",     "try",      "typedef",  "typeid",
        "typename",  "typeof",    "union",     "unsigned", "using",    "virtual",  "void",
        "volatile",  "while",     "xor",
    };

    for (size_t i = 0; i < COUNT(words); i++)
        if (strcmp(words[i], word) == 0)
            return true;
    return false;
}

const char *c_identifier(Arena *a, const char *text)
{
    StrBuf s = strbuf(a);

    for (const char *p = text; *p; p++) {
        unsigned char ch = (unsigned char)*p;

        if (ch < 128 && isalnum(ch))
            str_addc(&s, (char)tolower(ch));
        else if (s.n > 0 && s.at[s.n - 1] != '_')
            str_addc(&s, '_');
    }
    while (s.n > 1 && s.at[s.n - 1] == '_' && text[strlen(text) - 1] != '_')
        s.at[--s.n] = 0;
    if (s.n == 0 || isdigit((unsigned char)s.at[0]))
        return arena_printf(a, "t%s", s.n ? s.at : "");
    if (is_keyword(s.at))
        str_addc(&s, '_');
    return s.at;
}

const char *str_upper(Arena *a, const char *text)
{
    char *out = arena_printf(a, "%s", text);

    for (char *p = out; *p; p++)
        *p = (char)toupper((unsigned char)*p);
    return out;
}
