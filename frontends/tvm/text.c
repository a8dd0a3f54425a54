/* Text as tokens, after TVM's tokenizer: comments nest, and a name may have slashes in it. */
#include "frontends/tvm/tvm.h"

#include <ctype.h>
#include <string.h>

typedef struct {
    Ctx        *c;
    TvTokens   *out;
    const char *at, *end, *line_at;
    uint32_t    line;
} Lexer;

static Loc place(const Lexer *x)
{
    return (Loc){x->out->path, x->line, (uint32_t)(x->at - x->line_at) + 1, NULL};
}

static bool bad(const Lexer *x, const char *what)
{
    return error_at(x->c, E_PARSE_TEXT, place(x), "%s", what);
}

static bool is_name(char ch)
{
    return isalnum((unsigned char)ch) || ch == '_' || ch == '/';
}

static bool starts(const Lexer *x, const char *text)
{
    size_t n = strlen(text);

    return (size_t)(x->end - x->at) >= n && !memcmp(x->at, text, n);
}

static bool skip_comment(Lexer *x)
{
    uint32_t depth = 0;

    do {
        if (starts(x, "/*") || starts(x, "*/")) {
            depth += *x->at == '/' ? 1 : UINT32_MAX;
            x->at += 2;
        } else if (x->at < x->end) {
            if (*x->at++ == '\n') {
                x->line++;
                x->line_at = x->at;
            }
        } else {
            return bad(x, "the comment does not end");
        }
    } while (depth);
    return true;
}

static bool skip_blank(Lexer *x)
{
    while (x->at < x->end) {
        if (starts(x, "/*")) {
            if (!skip_comment(x))
                return false;
        } else if (starts(x, "//")) {
            while (x->at < x->end && *x->at != '\n')
                x->at++;
        } else if (isspace((unsigned char)*x->at)) {
            if (*x->at++ == '\n') {
                x->line++;
                x->line_at = x->at;
            }
        } else {
            break;
        }
    }
    return true;
}

static void push(Lexer *x, TvKind kind, const char *text, const char *end, uint32_t number,
                 const char *from)
{
    TvToken t = {kind, x->line, (uint32_t)(from - x->line_at) + 1, number,
                 intern_n(x->c->strings, text, (size_t)(end - text))};

    vec_push(x->c->arena, x->out, t);
}

/* Names with dots: those of operators, and parts of variables that are no numbers. */
static const char *name_end(const Lexer *x, const char *p)
{
    while (p < x->end &&
           (is_name(*p) || (*p == '.' && p + 1 < x->end && is_name(p[1]) && !isdigit(p[1]))))
        p++;
    return p;
}

static bool lex_number(Lexer *x, const char *from)
{
    const char *p = from + (*from == '-');
    uint32_t    before = x->out->n;

    /* In %0.1 it is the number of a part. */
    if (before && x->out->at[before - 1].kind == TV_SIGN && *x->out->at[before - 1].text == '.') {
        while (p < x->end && isdigit((unsigned char)*p))
            p++;
    } else {
        while (p < x->end && (isalnum((unsigned char)*p) || *p == '.' ||
                              ((*p == '-' || *p == '+') && (p[-1] == 'e' || p[-1] == 'E'))))
            p++;
    }
    push(x, TV_NUMBER, from, p, 0, from);
    x->at = p;
    return true;
}

static bool lex_meta(Lexer *x)
{
    const char *from = x->at, *kind = from + 5, *p = kind, *end;
    uint64_t    number = 0;

    while (p < x->end && *p != ']' && *p != '\n')
        p++;
    end = p;
    if (x->end - p < 3 || p[0] != ']' || p[1] != '[')
        return bad(x, "'meta[' without its kind and number");
    for (p += 2; p < x->end && isdigit((unsigned char)*p) && number < UINT32_MAX; p++)
        number = number * 10 + (uint64_t)(*p - '0');
    if (p == x->end || *p != ']' || number >= UINT32_MAX)
        return bad(x, "'meta[' without its kind and number");
    push(x, TV_META, kind, end, (uint32_t)number, from);
    x->at = p + 1;
    return true;
}

/* #[version = "0.0.5"], #[metadata] */
static bool lex_section(Lexer *x)
{
    const char *from = x->at + 2, *end = memchr(x->at, ']', (size_t)(x->end - x->at));

    if (!starts(x, "#[") || !end)
        return bad(x, "'#' without a section");
    while (from < end && isspace((unsigned char)*from))
        from++;
    if (end - from >= 8 && !memcmp(from, "metadata", 8)) {
        x->out->metadata = (Bytes){(const uint8_t *)end + 1, (size_t)(x->end - end - 1)};
        x->at = x->end;
        return true;
    }
    if (end - from < 7 || memcmp(from, "version", 7) != 0)
        return bad(x, "a section that is neither 'version' nor 'metadata'");
    if (!memmem(from, (size_t)(end - from), "\"0.0.5\"", 7)) {
        error_at(x->c, E_UNSUPPORTED, place(x), "text of another version than 0.0.5: %.*s",
                 (int)(end - from), from);
        diag_hint(x->c->diags, "TVM 0.7 to 0.17 write 0.0.5: read it there and write it again");
        return false;
    }
    x->at = end + 1;
    return true;
}

static bool lex_one(Lexer *x)
{
    const char *from = x->at, *p;
    char        ch = *from;

    if (ch == '#')
        return lex_section(x);
    if (starts(x, "meta["))
        return lex_meta(x);
    if (ch == '"') {
        p = memchr(from + 1, '"', (size_t)(x->end - from - 1));
        if (!p || memchr(from, '\n', (size_t)(p - from)))
            return bad(x, "the text does not end");
        push(x, TV_TEXT, from + 1, p, 0, from);
        x->at = p + 1;
        return true;
    }
    if (starts(x, "->") || starts(x, "=>")) {
        push(x, TV_ARROW, from, from + 2, 0, from);
        x->at = from + 2;
        return true;
    }
    if (isdigit((unsigned char)ch) ||
        (ch == '-' && from + 1 < x->end && isalnum((unsigned char)from[1])))
        return lex_number(x, from);
    if (ch == '%' || ch == '@') {
        p = from + 1;
        if (p < x->end && isdigit((unsigned char)*p))
            while (p < x->end && isdigit((unsigned char)*p))
                p++;
        else
            p = name_end(x, p);
        if (p == from + 1)
            return bad(x, "a name without letters");
        push(x, ch == '%' ? TV_LOCAL : TV_GLOBAL, from + 1, p, 0, from);
        x->at = p;
        return true;
    }
    if (is_name(ch) && ch != '/') {
        p = name_end(x, from);
        push(x, TV_WORD, from, p, 0, from);
        x->at = p;
        return true;
    }
    if (!strchr("(){}[]<>=,;:.?*/+-^&!", ch) || !ch)
        return bad(x, "a character that means nothing here");
    push(x, TV_SIGN, from, from + 1, 0, from);
    x->at = from + 1;
    return true;
}

bool tv_lex(Ctx *c, const char *path, Bytes text, TvTokens *out)
{
    const char *from = (const char *)text.at;
    Lexer       x = {c, out, from, from + text.n, from, 1};

    *out = (TvTokens){.path = path};
    for (;;) {
        if (!skip_blank(&x))
            return false;
        if (x.at == x.end)
            break;
        if (!lex_one(&x))
            return false;
    }
    push(&x, TV_END, x.end, x.end, 0, x.at);
    return true;
}
