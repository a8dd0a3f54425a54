/* Protocol buffers as text: `name: value`, `name { .. }`, into the structs of protobuf.c's tables.
 *
 * Fields go by their names in the table; those that it does not have are skipped, whatever they
 * hold.  Nesting is limited as that of bytes is. */
#include "formats/formats.h"

#include <stdlib.h>
#include <string.h>

typedef struct {
    Diags         *d;
    Arena         *a;
    Loc            loc;
    const uint8_t *at, *end, *start;
} Text;

static bool wrong(Text *t, const char *what)
{
    uint32_t line = 1;

    for (const uint8_t *p = t->start; p < t->at; p++)
        line += *p == '\n';
    return diag_error(t->d, E_PARSE_MODEL, t->loc, "line %u: %s", line, what);
}

static void skip_space(Text *t)
{
    for (; t->at < t->end; t->at++) {
        if (*t->at == '#')
            while (t->at + 1 < t->end && t->at[1] != '\n')
                t->at++;
        else if (!memchr(" \t\r\n", *t->at, 4))
            return;
    }
}

static bool take(Text *t, char ch)
{
    skip_space(t);
    if (t->at < t->end && *t->at == (uint8_t)ch) {
        t->at++;
        return true;
    }
    return false;
}

static bool is_word(uint8_t c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

/* A name, or a number with its sign and point. */
static Bytes read_word(Text *t, bool number)
{
    Bytes w;

    skip_space(t);
    w.at = t->at;
    while (t->at < t->end && (is_word(*t->at) || (number && memchr("+-.", *t->at, 3))))
        t->at++;
    w.n = (size_t)(t->at - w.at);
    return w;
}

static bool word_is(Bytes w, const char *text)
{
    return text && strlen(text) == w.n && !memcmp(w.at, text, w.n);
}

/* ---- strings -------------------------------------------------------------------------------------- */

static uint32_t digit(uint8_t c)
{
    return c >= '0' && c <= '9'                 ? (uint32_t)(c - '0')
           : (c | 32) >= 'a' && (c | 32) <= 'f' ? (c | 32) - 'a' + 10u
                                                : 99;
}

/* What stands behind a backslash. */
static uint8_t read_escape(Text *t)
{
    static const char from[] = "abfnrtv", to[] = "\a\b\f\n\r\t\v";
    uint8_t           c = *t->at++;
    const char       *known = strchr(from, c);
    uint32_t          v = 0, base = c == 'x' || c == 'X' ? 16 : 8, n = 0;

    if (c && known)
        return (uint8_t)to[known - from];
    if (base == 8 && digit(c) >= 8)
        return c;
    if (base == 8)
        t->at--;
    for (; n < (base == 8 ? 3u : 2u) && t->at < t->end && digit(*t->at) < base; n++)
        v = v * base + digit(*t->at++);
    return (uint8_t)v;
}

static bool read_string(Text *t, Bytes *out)
{
    StrBuf s = strbuf(t->a);

    skip_space(t);
    if (t->at >= t->end || (*t->at != '"' && *t->at != '\''))
        return wrong(t, "a string is missing");
    for (; t->at < t->end && (*t->at == '"' || *t->at == '\''); skip_space(t)) {
        uint8_t quote = *t->at++;

        while (t->at < t->end && *t->at != quote) {
            uint8_t c = *t->at++;

            if (c == '\\' && t->at < t->end)
                c = read_escape(t);
            str_addc(&s, (char)c);
        }
        if (t->at++ >= t->end) {
            t->at = t->end;
            return wrong(t, "a string does not end");
        }
    }
    *out = (Bytes){(const uint8_t *)s.at, s.n};
    return true;
}

/* ---- values --------------------------------------------------------------------------------------- */

static bool read_int(Text *t, const PbField *f, int64_t *out)
{
    Bytes w = read_word(t, true);
    char  text[32], *end;

    if (w.n == 0 || w.n >= sizeof text)
        return wrong(t, "a number is missing");
    if (word_is(w, "true") || word_is(w, "false")) {
        *out = word_is(w, "true");
        return true;
    }
    for (const PbEnum *e = f->words; e && e->text; e++)
        if (word_is(w, e->text)) {
            *out = e->number;
            return true;
        }
    memcpy(text, w.at, w.n);
    text[w.n] = 0;
    *out = *text == '-' ? strtoll(text, &end, 0) : (int64_t)strtoull(text, &end, 0);
    return *end == 0 || wrong(t, "a word where a number should be");
}

static bool read_double(Text *t, double *out)
{
    Bytes w = read_word(t, true);
    char  text[64], *end;

    if (w.n == 0 || w.n >= sizeof text)
        return wrong(t, "a number is missing");
    memcpy(text, w.at, w.n);
    text[w.n] = 0;
    *out = strtod(text, &end);
    if (*end == 'f' && end > text)
        end++;
    return *end == 0 || wrong(t, "a word where a number should be");
}

static void add_cell(Arena *a, PbPacked *p, const void *cell, size_t size)
{
    /* Rooms of powers of two. */
    size_t   n = p->data.n, cells = n / size;
    uint8_t *at = (uint8_t *)p->data.at;

    if ((cells & (cells - 1)) == 0) {
        uint8_t *room = arena_array(a, cells ? 2 * cells : 1, size);

        if (n)
            memcpy(room, at, n);
        at = room;
    }
    memcpy(at + n, cell, size);
    p->data = (Bytes){at, n + size};
}

static bool read_message(Text *t, const PbMessage *m, char close, uint32_t depth, void *out);

static bool opens(Text *t, char *close)
{
    *close = take(t, '{') ? '}' : take(t, '<') ? '>' : 0;
    return *close != 0;
}

static bool read_value(Text *t, const PbField *f, uint32_t depth, void *at)
{
    Bytes   b;
    int64_t i;
    double  x;
    float   y;
    char    close;
    void   *sub;

    switch (f->kind) {
    case PB_INT: return read_int(t, f, at);
    case PB_INTS:
        if (!read_int(t, f, &i))
            return false;
        vec_push(t->a, (PbInts *)at, i);
        return true;
    case PB_FLOAT:
    case PB_DOUBLE:
    case PB_FLOATS:
    case PB_DOUBLES:
        if (!read_double(t, &x))
            return false;
        y = (float)x;
        if (f->kind == PB_FLOAT)
            *(float *)at = y;
        else if (f->kind == PB_DOUBLE)
            *(double *)at = x;
        else if (f->kind == PB_FLOATS)
            add_cell(t->a, at, &y, sizeof y);
        else
            add_cell(t->a, at, &x, sizeof x);
        return true;
    case PB_TEXT:
    case PB_BYTES:
    case PB_TEXTS:
    case PB_BLOBS:
        if (!read_string(t, &b))
            return false;
        if (f->kind == PB_TEXT)
            *(const char **)at = (const char *)b.at;
        else if (f->kind == PB_BYTES)
            *(Bytes *)at = b;
        else if (f->kind == PB_TEXTS)
            vec_push(t->a, (PbTexts *)at, (const char *)b.at);
        else
            vec_push(t->a, (PbBlobs *)at, b);
        return true;
    case PB_MSG:
    case PB_MSGS:
        if (!opens(t, &close))
            return wrong(t, "a message does not begin");
        sub = f->kind == PB_MSG ? *(void **)at : NULL;
        if (!sub)
            sub = arena_alloc(t->a, f->sub->size);
        if (f->kind == PB_MSG)
            *(void **)at = sub;
        else
            vec_push(t->a, (PbMsgs *)at, sub);
        return read_message(t, f->sub, close, depth + 1, sub);
    }
    return false;
}

/* A value of a field that the table does not have. */
static bool skip_value(Text *t, uint32_t depth)
{
    static const PbMessage nothing = {.name = "message"};
    Bytes                  b;
    char                   close;

    if (opens(t, &close))
        return read_message(t, &nothing, close, depth + 1, NULL);
    skip_space(t);
    if (t->at < t->end && (*t->at == '"' || *t->at == '\''))
        return read_string(t, &b);
    return read_word(t, true).n > 0 || wrong(t, "a value is missing");
}

static const PbField *find_field(const PbMessage *m, Bytes name)
{
    for (uint32_t i = 0; i < m->nfields; i++)
        if (word_is(name, m->fields[i].name))
            return &m->fields[i];
    return NULL;
}

/* One field: a value, or [several]. */
static bool read_values(Text *t, const PbField *f, uint32_t depth, void *out)
{
    void *at = f ? (char *)out + f->offset : NULL;

    take(t, ':');
    if (f && f->has)
        *(bool *)((char *)out + f->has) = true;
    if (!take(t, '['))
        return f ? read_value(t, f, depth, at) : skip_value(t, depth);
    while (!take(t, ']')) {
        if (!(f ? read_value(t, f, depth, at) : skip_value(t, depth)))
            return false;
        take(t, ',');
    }
    return true;
}

static bool read_message(Text *t, const PbMessage *m, char close, uint32_t depth, void *out)
{
    if (depth > PB_MAX_DEPTH)
        return wrong(t, "messages are nested too deep");
    for (;;) {
        Bytes name;

        while (take(t, ',') || take(t, ';'))
            ;
        if (close && take(t, close))
            return true;
        skip_space(t);
        if (t->at >= t->end)
            return !close || wrong(t, "a message does not end");
        if (take(t, '[')) { /* the name of an extension */
            while (t->at < t->end && *t->at != ']')
                t->at++;
            name = (Bytes){NULL, 0};
            take(t, ']');
        } else if ((name = read_word(t, false)).n == 0) {
            return wrong(t, "the name of a field is missing");
        }
        if (!read_values(t, name.n ? find_field(m, name) : NULL, depth, out))
            return false;
    }
}

bool pb_read_text(Diags *d, Arena *a, Loc loc, const PbMessage *m, Bytes text, void *out)
{
    Text t = {d, a, loc, text.at, text.at + text.n, text.at};

    return read_message(&t, m, 0, 0, out);
}

bool pb_looks_like_text(const PbMessage *m, Bytes text)
{
    Text  t = {.at = text.at, .end = text.at + text.n, .start = text.at};
    Bytes name = read_word(&t, false);

    skip_space(&t);
    return name.n && find_field(m, name) && t.at < t.end && memchr(":{<", *t.at, 3);
}
