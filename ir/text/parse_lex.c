/* Reading text: the cursor, words and numbers, names in scope (ir/text/parse_tir.h). */
#include "ir/text/parse_tir.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_DEPTH = 1000 };

/* ---- cursor -------------------------------------------------------------------------------------- */

static Loc here(const Parser *p)
{
    Loc loc = {p->file, 1, 1, NULL};

    for (const char *s = p->text; s < p->at; s++) {
        loc.col++;
        if (*s == '\n')
            loc.line++, loc.col = 1;
    }
    return loc;
}

void parse_fail(Parser *p, const char *fmt, ...)
{
    va_list ap;
    StrBuf  s = strbuf(p->c->scratch);

    if (p->failed)
        return;
    p->failed = true;
    va_start(ap, fmt);
    str_vprintf(&s, fmt, ap);
    va_end(ap);
    error_at(p->c, E_PARSE_TEXT, here(p), "%s", s.at);
}

bool parse_enter(Parser *p)
{
    if (++p->depth > MAX_DEPTH)
        parse_fail(p, "nested more than %d deep", MAX_DEPTH);
    return !p->failed;
}

void parse_leave(Parser *p)
{
    p->depth--;
}

bool is_blank(char ch)
{
    return ch == ' ' || ch == '\t' || ch == '\n' || ch == '\r';
}

/* A comment's `//` has blanks around it; without them it divides. */
void skip_blank(Parser *p)
{
    for (;;) {
        const char *was = p->at;
        while (is_blank(*p->at))
            p->at++;
        if (p->at[0] != '/' || p->at[1] != '/' || (p->at[2] && !is_blank(p->at[2])))
            return;
        if (p->at == was && p->at > p->text && !is_blank(p->at[-1]))
            return;
        while (*p->at && *p->at != '\n')
            p->at++;
    }
}

bool is_word(char ch)
{
    return isalnum((unsigned char)ch) || ch == '_' || ch == '.';
}

bool parse_accept(Parser *p, const char *token)
{
    size_t n = strlen(token);

    if (p->failed)
        return false;
    skip_blank(p);
    if (strncmp(p->at, token, n) != 0 ||
        (isalnum((unsigned char)token[n - 1]) && is_word(p->at[n])))
        return false;
    p->at += n;
    return true;
}

bool parse_expect(Parser *p, const char *token)
{
    if (!parse_accept(p, token))
        parse_fail(p, "expected '%s'", token);
    return !p->failed;
}

const char *parse_word(Parser *p)
{
    const char *start;

    skip_blank(p);
    for (start = p->at; is_word(*p->at);)
        p->at++;
    if (p->at == start) {
        parse_fail(p, "expected a name");
        return "";
    }
    return intern_n(p->c->strings, start, (size_t)(p->at - start));
}

void print_quoted(StrBuf *out, const char *s)
{
    str_addc(out, '"');
    for (; *s; s++) {
        if (*s == '"' || *s == '\\')
            str_addc(out, '\\');
        if ((unsigned char)*s < ' ')
            str_printf(out, "\\x%02x", (unsigned char)*s);
        else
            str_addc(out, *s);
    }
    str_addc(out, '"');
}

const char *parse_string(Parser *p)
{
    StrBuf s = strbuf(p->c->scratch);

    if (!parse_expect(p, "\""))
        return "";
    for (; *p->at && *p->at != '"'; p->at++) {
        if (*p->at == '\\' && p->at[1] == 'x' && isxdigit((unsigned char)p->at[2]) &&
            isxdigit((unsigned char)p->at[3])) {
            char hex[3] = {p->at[2], p->at[3], 0};
            str_addc(&s, (char)strtol(hex, NULL, 16));
            p->at += 3;
            continue;
        }
        if (*p->at == '\\' && p->at[1])
            p->at++;
        str_addc(&s, *p->at);
    }
    if (*p->at != '"')
        parse_fail(p, "this string has no end");
    else
        p->at++;
    return intern(p->c->strings, s.n ? s.at : "");
}

int64_t parse_int(Parser *p)
{
    bool     minus = parse_accept(p, "-");
    uint64_t v = 0, most = minus ? 1ull << 63 : INT64_MAX;

    skip_blank(p);
    if (!isdigit((unsigned char)*p->at))
        parse_fail(p, "expected a whole number");
    for (; !p->failed && isdigit((unsigned char)*p->at); p->at++) {
        uint64_t digit = (uint64_t)(*p->at - '0');
        if (v > (most - digit) / 10) {
            parse_fail(p, "this number needs more than 64 bits");
            break;
        }
        v = v * 10 + digit;
    }
    return minus ? (int64_t)(0 - v) : (int64_t)v;
}

bool starts_number(const char *s)
{
    return isdigit((unsigned char)*s);
}

/* A float literal begins at s (after a sign): digits with a point or exponent, inf, nan(0x..). */
bool starts_float(const char *s)
{
    if (!strncmp(s, "inf", 3) && !is_word(s[3]))
        return true;
    if (!strncmp(s, "nan(", 4))
        return true;
    if (!starts_number(s))
        return false;
    while (isdigit((unsigned char)*s))
        s++;
    if (*s == '.')
        return isdigit((unsigned char)s[1]);
    return *s == 'e' || *s == 'E';
}

/* nan(0x..): the bits, in the width that the digits have. */
static double parse_nan(Parser *p)
{
    DType    t = DT_F32;
    uint64_t bits;
    char    *end;

    p->at += strlen("nan(");
    bits = strtoull(p->at, &end, 16);
    if (end == p->at || *end != ')')
        parse_fail(p, "expected the bits of a NaN, as in nan(0x7fc00000)");
    t.bits = end - p->at > 10 ? 64 : end - p->at > 6 ? 32 : 16;
    p->at = p->failed ? p->at : end + 1;
    return dtype_get_f(t, &bits);
}

double parse_double(Parser *p)
{
    bool   minus = parse_accept(p, "-");
    double v;
    char  *end;

    skip_blank(p);
    if (!strncmp(p->at, "nan(", 4))
        return parse_nan(p);
    if (!starts_number(p->at) && !starts_float(p->at)) {
        parse_fail(p, "expected a number");
        return 0;
    }
    v = strtod(p->at, &end);
    p->at = end;
    return minus ? -v : v;
}

DType parse_dtype(Parser *p)
{
    DType       t = DT_F32;
    const char *at, *word;

    skip_blank(p);
    at = p->at;
    word = parse_word(p);
    if (!strcmp(word, "handle"))
        return DT_HANDLE;
    if (!p->failed && (!dtype_parse(word, &t) || t.lanes == 0 || t.lanes > MAX_LANES)) {
        p->at = at;
        parse_fail(p, "'%s' is no element type", word);
    }
    return t;
}

/* ---- names --------------------------------------------------------------------------------------- */

void declare_var(Parser *p, const char *name, bool bare, const Idx *value)
{
    vec_push(p->c->scratch, &p->names, ((ParseName){name, bare, value, NULL}));
}

void declare_buffer(Parser *p, const char *name, const Buffer *b)
{
    vec_push(p->c->scratch, &p->names, ((ParseName){name, false, NULL, b}));
}

const ParseName *find_name(const Parser *p, const char *name, bool bare)
{
    for (uint32_t i = p->names.n; i-- > 0;)
        if (p->names.at[i].bare == bare && !strcmp(p->names.at[i].name, name))
            return &p->names.at[i];
    return NULL;
}

void unknown_name(Parser *p, const char *name, bool bare)
{
    const char **near = NEW_ARRAY(p->c->scratch, const char *, p->names.n + 1);
    const char  *best;
    uint32_t     n = 0;

    if (p->failed)
        return;
    for (uint32_t i = 0; i < p->names.n; i++)
        if (p->names.at[i].bare == bare)
            near[n++] = p->names.at[i].name;
    best = str_closest(name, near, n);
    parse_fail(p, "'%s%s' is not declared here", bare ? "" : "%", name);
    if (best)
        diag_hint(p->c->diags, "did you mean '%s%s'?", bare ? "" : "%", best);
}

const Buffer *parse_buffer_name(Parser *p)
{
    const char      *at, *name;
    const ParseName *n;

    skip_blank(p);
    at = p->at;
    if (!parse_expect(p, "%"))
        return NULL;
    name = parse_word(p);
    n = find_name(p, name, false);
    if (!p->failed && (!n || !n->buffer)) {
        p->at = at;
        if (n)
            parse_fail(p, "'%%%s' is no buffer", name);
        else
            unknown_name(p, name, false);
        return NULL;
    }
    return p->failed ? NULL : n->buffer;
}
