/* Text of TorchScript to tokens: names, numbers, texts, signs, and where lines begin.  Line ends
 * within brackets and empty lines are none. */
#include "frontends/pytorch/script.h"

#include <ctype.h>
#include <string.h>

typedef struct {
    Ctx        *c;
    const char *at, *end;
    uint32_t    line, brackets;
    VEC(TsToken) out;
    bool bad;
} Lexer;

static void add(Lexer *l, TsTokenKind kind, const char *text)
{
    vec_push(l->c->arena, &l->out, ((TsToken){.kind = kind, .text = text, .line = l->line}));
}

static const char *word(Lexer *l, const char *from)
{
    return intern_n(l->c->strings, from, (size_t)(l->at - from));
}

static void number(Lexer *l)
{
    const char *from = l->at;

    while (l->at < l->end) {
        bool sign = (*l->at == '-' || *l->at == '+') && (l->at[-1] == 'e' || l->at[-1] == 'E');

        if (!isalnum((unsigned char)*l->at) && *l->at != '.' && !(l->at > from && sign))
            break;
        l->at++;
    }
    add(l, TS_NUMBER, word(l, from));
}

static uint32_t digits(Lexer *l, uint32_t base, uint32_t most)
{
    uint32_t v = 0;

    for (uint32_t i = 0; i < most && l->at < l->end && isxdigit((unsigned char)*l->at); i++) {
        int      ch = tolower((unsigned char)*l->at);
        uint32_t d = (uint32_t)(ch <= '9' ? ch - '0' : ch - 'a' + 10);

        if (d >= base)
            break;
        v = v * base + d;
        l->at++;
    }
    return v;
}

static char escaped(Lexer *l)
{
    char ch = *l->at++;

    switch (ch) {
    case 'n': return '\n';
    case 't': return '\t';
    case 'r': return '\r';
    case 'a': return '\a';
    case 'b': return '\b';
    case 'f': return '\f';
    case 'v': return '\v';
    case 'x': return (char)digits(l, 16, 2);
    }
    if (ch >= '0' && ch <= '7') {
        l->at--;
        return (char)digits(l, 8, 3);
    }
    return ch;
}

static void text(Lexer *l)
{
    char   quote = *l->at++;
    StrBuf s = strbuf(l->c->arena);

    while (l->at < l->end && *l->at != quote && *l->at != '\n') {
        bool escape = *l->at == '\\' && l->at + 1 < l->end;
        char ch = *l->at++;

        if (escape)
            ch = escaped(l);
        if (ch)
            str_addc(&s, ch);
    }
    l->bad |= l->at >= l->end || *l->at != quote;
    l->at += l->at < l->end;
    add(l, TS_TEXT, intern_n(l->c->strings, s.n ? s.at : "", s.n));
}

static void sign(Lexer *l)
{
    const char *from = l->at++;

    if (*from == '-' && l->at < l->end && *l->at == '>')
        l->at++;
    l->brackets += strchr("([{", *from) != NULL;
    if (strchr(")]}", *from)) {
        l->bad |= l->brackets == 0;
        l->brackets -= l->brackets > 0;
    }
    l->bad |= !strchr("()[]{}:,.=-", *from);
    add(l, TS_SIGN, word(l, from));
}

/* The indentation of a line that is not empty begins a token of its own. */
static void begin_line(Lexer *l)
{
    const char *from = l->at;

    while (l->at < l->end && *l->at == ' ')
        l->at++;
    if (l->at < l->end && *l->at != '\n' && *l->at != '#' && !l->brackets) {
        add(l, TS_LINE, NULL);
        l->out.at[l->out.n - 1].indent = (uint32_t)(l->at - from);
    }
}

TsTokens ts_tokens(Ctx *c, Bytes bytes)
{
    Lexer l = {.c = c, .at = (const char *)bytes.at, .line = 1};

    if (bytes.n >= UINT32_MAX || memchr(bytes.at, 0, bytes.n))
        return (TsTokens){.bad = true, .bad_line = 1};
    l.end = l.at + bytes.n;
    begin_line(&l);
    while (l.at < l.end && !l.bad) {
        const char *from = l.at;
        char        ch = *l.at;

        if (ch == '\n') {
            l.line++;
            l.at++;
            begin_line(&l);
        } else if (ch == ' ' || ch == '\t' || ch == '\r') {
            l.at++;
        } else if (ch == '#') {
            while (l.at < l.end && *l.at != '\n')
                l.at++;
        } else if (isalpha((unsigned char)ch) || ch == '_') {
            while (l.at < l.end && (isalnum((unsigned char)*l.at) || *l.at == '_'))
                l.at++;
            add(&l, TS_NAME, word(&l, from));
        } else if (isdigit((unsigned char)ch) ||
                   (ch == '.' && l.at + 1 < l.end && isdigit((unsigned char)l.at[1]))) {
            number(&l);
        } else if (ch == '"' || ch == '\'') {
            text(&l);
        } else {
            sign(&l);
        }
    }
    add(&l, TS_END, NULL);
    return (TsTokens){l.out.n, l.out.at, l.bad, l.line};
}
