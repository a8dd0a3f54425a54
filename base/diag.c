/* What the user is told.
 *
 * Errors, warnings, notes and hints are recorded in order and printed later, all at once, as text
 *
 *     net.onnx:12:1: error: Conv 'Conv_12' has group 3, which does not divide its 64 ... [E0412]
 *     net.onnx:11:1: note: Relu 'Relu_11': the input comes from here
 *     hint: 'group' can be 1, 2, 4, 8, 16, 32 or 64 here
 *
 * A warning that is an error from the start says which option takes it for a warning, and what that
 * does: a hint behind the others of the first error of its kind.
 *
 * or as the JSON that GCC prints (an array; notes and hints are children), or as SARIF 2.1.0, which
 * code hosts and editors read (notes are related locations).  Where the input is
 * text, `diag_source` lets the line follow with a caret.  A message that does not mention the name
 * of its node gets it in front; one that mentions a file as a whole is not headed by it.  Names
 * come from hostile files: control characters are escaped.
 */
#include "base/base.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const kind_names[] = {"error", "warning", "note", "hint"};

typedef struct {
    const char *code, *flag, *text;
    int         status;
} Row;

#define none NULL
static const Row rows[DIAG_COUNT] = {
#define DIAG(id, code, status, flag, text) {code, flag, text, status},
#include "base/diag.def"
#undef DIAG
};
#undef none

typedef struct {
    const char *file;
    Bytes       text;
} Source;

typedef enum { FLAG_DEFAULT, FLAG_ON, FLAG_OFF } Flag;

struct Diags {
    Arena   *arena;
    uint32_t errors;
    int      status; /* of all errors; 0: of each its own */
    bool     muted;  /* the last warning was off: its notes are dropped too */
    bool     werror; /* -Werror */
    bool     quiet;  /* -w: none but those that are errors as a rule */
    bool     color;  /* of text */
    bool     offer;  /* the last record is the hint at an option */
    uint8_t  on[DIAG_COUNT], as_error[DIAG_COUNT]; /* Flag, for warnings */
    bool     offered[DIAG_COUNT];
    VEC(DiagRecord) records;
    VEC(Source) sources;
    void *mappings, *streams; /* of reader.c */
};

Diags *diags_new(Arena *a)
{
    Diags *d = NEW(a, Diags);

    d->arena = a;
    return d;
}

Arena *diag_arena(const Diags *d)
{
    return d->arena;
}

void **diag_streams(Diags *d)
{
    return &d->streams;
}

void **diag_mappings(Diags *d)
{
    return &d->mappings;
}

void diag_color(Diags *d, bool on)
{
    d->color = on;
}

const char *diag_code(DiagId id)
{
    return rows[id].code;
}

static const DiagHelp helps[] = {
#define DIAG_HELP(id, why, remedy, command, message) [id] = {why, remedy, command, message},
#include "base/diag_help.def"
#undef DIAG_HELP
};

enum {
    HELP_ROWS = 0
#define DIAG_HELP(id, why, remedy, command, message) +1
#include "base/diag_help.def"
#undef DIAG_HELP
};

_Static_assert((int)HELP_ROWS == DIAG_COUNT,
               "base/diag_help.def has a row for each of base/diag.def");

const DiagHelp *diag_explain(const char *code)
{
    for (int i = 0; i < DIAG_COUNT; i++) {
        if (strcmp(rows[i].code, code) == 0)
            return &helps[i];
    }
    return NULL;
}

const char *diag_help(const char *code)
{
    for (int i = 0; i < DIAG_COUNT; i++) {
        if (strcmp(rows[i].code, code) == 0)
            return rows[i].text;
    }
    return NULL;
}

/* ---- recording ------------------------------------------------------------------------------- */

static void record(Diags *d, DiagKind kind, DiagId id, Loc loc, const char *fmt, va_list ap)
{
    StrBuf     s = strbuf(d->arena);
    DiagRecord r = {kind, id, loc, NULL}, last;

    str_vprintf(&s, fmt, ap);
    r.text = s.at;
    d->offer = d->offer && (kind == DIAG_IS_NOTE || kind == DIAG_IS_HINT);
    if (!d->offer) {
        vec_push(d->arena, &d->records, r);
        return;
    }
    last = d->records.at[d->records.n - 1];
    if (kind == DIAG_IS_HINT && strcmp(r.text, last.text) == 0)
        return; /* the same errors are recorded once more, with their hints */
    d->records.at[d->records.n - 1] = r;
    vec_push(d->arena, &d->records, last);
}

/* The sentence of diag_help.def that says what the compile does if this is a warning: it begins
 * with the option and ends with the text. */
static void offer(Diags *d, DiagId id)
{
    const char *says = strstr(helps[id].remedy, "-Wno-error=");
    DiagRecord  r = {DIAG_IS_HINT, 0, NO_LOC, NULL};

    if (d->offered[id] || d->as_error[id] == FLAG_ON || !rows[id].status)
        return;
    r.text = arena_printf(d->arena, "%.*s", (int)strcspn(says, "."), says);
    vec_push(d->arena, &d->records, r);
    d->offer = d->offered[id] = true;
}

void *(diag_error)(Diags *d, DiagId id, Loc loc, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    record(d, DIAG_IS_ERROR, id, loc, fmt, ap);
    va_end(ap);
    d->errors++;
    d->muted = false;
    return NULL;
}

void diag_warn(Diags *d, DiagId id, Loc loc, const char *fmt, ...)
{
    va_list ap;
    bool    fatal = d->werror || rows[id].status; /* unless it is said otherwise */
    bool    error = d->as_error[id] == FLAG_ON || (fatal && d->as_error[id] != FLAG_OFF);

    d->muted = (d->quiet && !rows[id].status) || d->on[id] == FLAG_OFF;
    if (d->muted)
        return;
    va_start(ap, fmt);
    record(d, error ? DIAG_IS_ERROR : DIAG_IS_WARNING, id, loc, fmt, ap);
    va_end(ap);
    d->errors += error;
    if (error)
        offer(d, id);
}

void diag_note(Diags *d, Loc loc, const char *fmt, ...)
{
    va_list ap;

    if (d->muted)
        return;
    va_start(ap, fmt);
    record(d, DIAG_IS_NOTE, 0, loc, fmt, ap);
    va_end(ap);
}

void diag_hint(Diags *d, const char *fmt, ...)
{
    va_list ap;

    if (d->muted)
        return;
    va_start(ap, fmt);
    record(d, DIAG_IS_HINT, 0, NO_LOC, fmt, ap);
    va_end(ap);
}

uint32_t diag_count(const Diags *d)
{
    return d->records.n;
}

DiagRecord diag_at(const Diags *d, uint32_t i)
{
    return d->records.at[i];
}

uint32_t diag_errors(const Diags *d)
{
    return d->errors;
}

void diag_one_status(Diags *d, int status)
{
    d->status = status;
}

int diag_status(const Diags *d)
{
    if (d->status && d->errors)
        return d->status;
    for (uint32_t i = 0; i < d->records.n; i++) {
        const DiagRecord *r = &d->records.at[i];

        if (r->kind == DIAG_IS_ERROR)
            return rows[r->id].status ? rows[r->id].status : 1; /* 0: a warning under -Werror */
    }
    return 0;
}

bool diag_all_are(const Diags *d, uint32_t errors, DiagId id)
{
    uint32_t seen = 0;

    for (uint32_t i = 0; i < d->records.n; i++)
        if (d->records.at[i].kind == DIAG_IS_ERROR && seen++ >= errors && d->records.at[i].id != id)
            return false;
    return seen > errors;
}

void diag_cut(Diags *d, uint32_t from, uint32_t to)
{
    memmove(d->records.at + from, d->records.at + to, (d->records.n - to) * sizeof *d->records.at);
    d->records.n -= to - from;
    d->errors = 0;
    d->offer = false;
    memset(d->offered, 0, sizeof d->offered);
    for (uint32_t i = 0; i < d->records.n; i++)
        if (d->records.at[i].kind == DIAG_IS_ERROR) {
            d->errors++;
            d->offered[d->records.at[i].id] = true;
        }
}

void diag_drop(Diags *d, uint32_t errors)
{
    uint32_t seen = 0;

    for (uint32_t i = 0; i < d->records.n; i++)
        if (d->records.at[i].kind == DIAG_IS_ERROR && seen++ == errors) {
            diag_cut(d, i, d->records.n);
            return;
        }
}

void diag_adopt(Diags *d, const Diags *from, DiagId id, Loc loc, const char *who)
{
    bool error = false; /* notes and hints of warnings are dropped with them */

    for (uint32_t i = 0; i < from->records.n; i++) {
        const DiagRecord *r = &from->records.at[i];

        if (r->kind == DIAG_IS_ERROR)
            diag_error(d, id, loc, "%s: %s", who, r->text);
        else if (error && r->kind == DIAG_IS_NOTE)
            diag_note(d, r->loc, "%s", r->text);
        else if (error && r->kind == DIAG_IS_HINT)
            diag_hint(d, "%s", r->text);
        error = r->kind == DIAG_IS_ERROR || (error && r->kind != DIAG_IS_WARNING);
    }
}

static int find_flag(const char *name)
{
    for (int i = 0; i < DIAG_COUNT; i++) {
        if (rows[i].flag && strcmp(rows[i].flag, name) == 0)
            return i;
    }
    return -1;
}

const char *diag_flag_of(const char *name)
{
    for (int i = 0; i < DIAG_COUNT; i++) {
        if (rows[i].flag && (strcmp(rows[i].flag, name) == 0 || strcmp(rows[i].code, name) == 0))
            return rows[i].flag;
    }
    return NULL;
}

bool diag_flag(Diags *d, const char *option)
{
    int id;

    if (strcmp(option, "-w") == 0) {
        d->quiet = true;
        return true;
    }
    if (!str_starts(option, "-W"))
        return false;
    option += 2;
    if (strcmp(option, "error") == 0 || strcmp(option, "no-error") == 0) {
        d->werror = *option == 'e';
    } else if (str_starts(option, "error=")) {
        if ((id = find_flag(option + 6)) < 0)
            return false;
        d->as_error[id] = d->on[id] = FLAG_ON;
    } else if (str_starts(option, "no-error=")) {
        if ((id = find_flag(option + 9)) < 0)
            return false;
        d->as_error[id] = FLAG_OFF;
    } else {
        bool off = str_starts(option, "no-");

        if ((id = find_flag(option + (off ? 3 : 0))) < 0)
            return false;
        d->on[id] = off ? FLAG_OFF : FLAG_ON;
    }
    return true;
}

void diag_source(Diags *d, const char *file, Bytes text)
{
    Source s = {file, text};

    vec_push(d->arena, &d->sources, s);
}

/* ---- printing as text ------------------------------------------------------------------------ */

/* Text without control characters, which could rewrite the terminal. */
static void add_clean(StrBuf *out, const char *text)
{
    for (; *text; text++) {
        unsigned char ch = (unsigned char)*text;

        if (ch == '\n')
            str_add(out, "\\n");
        else if (ch < 0x20 || ch == 0x7f)
            str_printf(out, "\\x%02x", ch);
        else
            str_addc(out, *text);
    }
}

/* Whether the message speaks of the node, or the file, by its quoted name already. */
static bool mentions(const char *text, const char *name)
{
    size_t      n = strlen(name);
    const char *p = text;

    while ((p = strchr(p, '\''))) {
        p++;
        if (strncmp(p, name, n) == 0 && p[n] == '\'')
            return true;
    }
    return false;
}

static void add_message(StrBuf *out, const DiagRecord *r)
{
    if (r->loc.name && *r->loc.name && !mentions(r->text, r->loc.name)) {
        str_addc(out, '\'');
        str_add(out, r->loc.name);
        str_add(out, "': ");
    }
    str_add(out, r->text);
}

static const Bytes *find_source(const Diags *d, const char *file)
{
    for (uint32_t i = d->sources.n; i-- > 0;) {
        if (strcmp(d->sources.at[i].file, file) == 0)
            return &d->sources.at[i].text;
    }
    return NULL;
}

/* As C compilers have it: kinds in their colours, places bold, the caret green. */
static const char *const kind_colors[] = {"\033[1;31m", "\033[1;35m", "\033[1;36m", "\033[1;32m"};
static const char        bold[] = "\033[1m", green[] = "\033[1;32m", plain[] = "\033[0m";

static void paint(const Diags *d, StrBuf *out, const char *color)
{
    if (d->color)
        str_add(out, color);
}

/* The line of the text and a caret below, cut to 96 columns around the place. */
static void add_caret(const Diags *d, Loc loc, StrBuf *out)
{
    const Bytes *text = loc.file && loc.line ? find_source(d, loc.file) : NULL;
    size_t       start = 0, end, col = loc.col ? loc.col - 1 : 0, from = 0;

    if (!text)
        return;
    for (uint32_t line = 1; line < loc.line; line++) {
        const uint8_t *nl =
            start < text->n ? memchr(text->at + start, '\n', text->n - start) : NULL;

        if (!nl)
            return;
        start = (size_t)(nl - text->at) + 1;
    }
    for (end = start; end < text->n && text->at[end] != '\n' && text->at[end] != '\r';)
        end++;
    if (col > end - start)
        col = end - start;
    if (col > 72)
        from = col - 48;
    if (end - start - from > 96)
        end = start + from + 96;
    str_add(out, "    ");
    for (size_t i = start + from; i < end; i++) {
        uint8_t ch = text->at[i];

        str_addc(out, ch == '\t' ? ' ' : ch < 0x20 || ch == 0x7f ? '?' : (char)ch);
    }
    str_add(out, "\n    ");
    for (size_t i = start + from; i < start + col; i++) {
        if ((text->at[i] & 0xc0) != 0x80) /* one column for each UTF-8 character */
            str_addc(out, ' ');
    }
    paint(d, out, green);
    str_add(out, "^");
    paint(d, out, plain);
    str_add(out, "\n");
}

static void print_text(const Diags *d, const DiagRecord *r, StrBuf *out)
{
    StrBuf message = strbuf(out->arena);

    if (r->loc.file && (r->loc.line || !mentions(r->text, r->loc.file))) {
        paint(d, out, bold);
        add_clean(out, r->loc.file);
        if (r->loc.line)
            str_printf(out, ":%u:%u", r->loc.line, r->loc.col ? r->loc.col : 1);
        str_add(out, ":");
        paint(d, out, plain);
        str_add(out, " ");
    } else if (r->kind == DIAG_IS_ERROR || r->kind == DIAG_IS_WARNING) {
        paint(d, out, bold);
        str_add(out, "tvmcc:");
        paint(d, out, plain);
        str_add(out, " ");
    }
    paint(d, out, kind_colors[r->kind]);
    str_printf(out, "%s:", kind_names[r->kind]);
    paint(d, out, plain);
    str_add(out, " ");
    add_message(&message, r);
    add_clean(out, message.at);
    if (r->kind == DIAG_IS_ERROR || r->kind == DIAG_IS_WARNING) {
        const Row *row = &rows[r->id];

        if (row->flag)
            str_printf(out, " [-W%s%s]", r->kind == DIAG_IS_ERROR ? "error=" : "", row->flag);
        str_printf(out, " [%s]", row->code);
    }
    str_addc(out, '\n');
    add_caret(d, r->loc, out);
}

/* ---- printing as JSON ------------------------------------------------------------------------ */

/* Length of the UTF-8 character at `p`, 0 if it is not one. */
static int utf8_length(const unsigned char *p)
{
    int n = *p < 0x80                 ? 1
            : *p >= 0xc2 && *p < 0xe0 ? 2
            : (*p & 0xf0) == 0xe0     ? 3
            : *p >= 0xf0 && *p < 0xf5 ? 4
                                      : 0;

    for (int i = 1; i < n; i++) {
        if ((p[i] & 0xc0) != 0x80)
            return 0;
    }
    if (n == 3 && ((p[0] == 0xe0 && p[1] < 0xa0) || (p[0] == 0xed && p[1] >= 0xa0)))
        return 0; /* too long, or half of a surrogate pair */
    if (n == 4 && ((p[0] == 0xf0 && p[1] < 0x90) || (p[0] == 0xf4 && p[1] >= 0x90)))
        return 0;
    return n;
}

bool utf8_ok(const char *text)
{
    const unsigned char *p = (const unsigned char *)text;

    while (*p) {
        int n = utf8_length(p);

        if (n == 0)
            return false;
        p += n;
    }
    return true;
}

void str_add_json(StrBuf *out, const char *text)
{
    const unsigned char *p = (const unsigned char *)text;

    str_addc(out, '"');
    while (*p) {
        int n = utf8_length(p);

        if (n == 0)
            str_add(out, "\\ufffd");
        else if (*p == '"' || *p == '\\')
            str_printf(out, "\\%c", *p);
        else if (*p < 0x20 || *p == 0x7f)
            str_printf(out, "\\u%04x", *p);
        else
            str_addn(out, (const char *)p, (size_t)n);
        p += n ? n : 1;
    }
    str_addc(out, '"');
}

static void json_record(const DiagRecord *r, StrBuf *out)
{
    StrBuf message = strbuf(out->arena);

    add_message(&message, r);
    str_printf(out, "{\"kind\": \"%s\", \"message\": ", kind_names[r->kind]);
    str_add_json(out, message.at);
    if (r->kind == DIAG_IS_ERROR || r->kind == DIAG_IS_WARNING) {
        const Row *row = &rows[r->id];

        str_printf(out, ", \"code\": \"%s\"", row->code);
        if (row->flag)
            str_printf(out, ", \"option\": \"-W%s%s\"", r->kind == DIAG_IS_ERROR ? "error=" : "",
                       row->flag);
    }
    str_add(out, ", \"locations\": [");
    if (r->loc.file) {
        str_add(out, "{\"caret\": {\"file\": ");
        str_add_json(out, r->loc.file);
        if (r->loc.line)
            str_printf(out, ", \"line\": %u, \"column\": %u", r->loc.line,
                       r->loc.col ? r->loc.col : 1);
        str_addc(out, '}');
        if (r->loc.name) {
            str_add(out, ", \"label\": ");
            str_add_json(out, r->loc.name);
        }
        str_addc(out, '}');
    }
    str_add(out, "], \"children\": [");
}

static void print_json(const Diags *d, StrBuf *out)
{
    bool     open = false; /* inside the children of an error or warning */
    uint32_t i;

    str_addc(out, '[');
    for (i = 0; i < d->records.n; i++) {
        const DiagRecord *r = &d->records.at[i];
        bool              child = open && r->kind != DIAG_IS_ERROR && r->kind != DIAG_IS_WARNING;

        if (child) {
            if (d->records.at[i - 1].kind >= DIAG_IS_NOTE)
                str_add(out, ", ");
            json_record(r, out);
            str_add(out, "]}");
            continue;
        }
        if (open)
            str_add(out, "]}");
        if (i)
            str_add(out, ",\n ");
        json_record(r, out);
        open = r->kind == DIAG_IS_ERROR || r->kind == DIAG_IS_WARNING;
        if (!open)
            str_add(out, "]}");
    }
    if (open)
        str_add(out, "]}");
    str_add(out, "]\n");
}

/* ---- printing as SARIF ----------------------------------------------------------------------- */

static bool has_rule(const DiagRecord *r)
{
    return r->kind == DIAG_IS_ERROR || r->kind == DIAG_IS_WARNING;
}

/* A path as a URI reference: what RFC 3986 does not let stand is in hexadecimal. */
static void add_uri(StrBuf *out, const char *path)
{
    str_add(out, *path == '/' ? "\"file://" : "\"");
    for (const unsigned char *p = (const unsigned char *)path; *p; p++) {
        if ((*p >= '0' && *p <= '9') || (*p >= 'A' && *p <= 'Z') || (*p >= 'a' && *p <= 'z') ||
            strchr("/-._~", *p))
            str_addc(out, (char)*p);
        else
            str_printf(out, "%%%02X", *p);
    }
    str_addc(out, '"');
}

/* The members of a location object. */
static void sarif_location(Loc loc, StrBuf *out)
{
    if (loc.file) {
        str_add(out, "\"physicalLocation\": {\"artifactLocation\": {\"uri\": ");
        add_uri(out, loc.file);
        str_addc(out, '}');
        if (loc.line)
            str_printf(out, ", \"region\": {\"startLine\": %u, \"startColumn\": %u}", loc.line,
                       loc.col ? loc.col : 1);
        str_addc(out, '}');
    }
    if (loc.name && *loc.name) {
        str_add(out, loc.file ? ", " : "");
        str_add(out, "\"logicalLocations\": [{\"name\": ");
        str_add_json(out, loc.name);
        str_add(out, "}]");
    }
}

/* A rule for each code that occurs; `index` of an id is its place, from 1. */
static void sarif_rules(const Diags *d, uint32_t index[DIAG_COUNT], StrBuf *out)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < d->records.n; i++) {
        DiagId id = d->records.at[i].id;

        if (!has_rule(&d->records.at[i]) || index[id])
            continue;
        str_printf(out, "%s{\"id\": \"%s\", ", n ? ",\n    " : "", rows[id].code);
        if (rows[id].flag)
            str_printf(out, "\"name\": \"%s\", ", rows[id].flag);
        str_add(out, "\"shortDescription\": {\"text\": ");
        str_add_json(out, rows[id].text);
        str_add(out, "}}");
        index[id] = ++n;
    }
}

/* The record at `i` with the notes and hints that follow; hints have no place and join the text. */
static void sarif_result(const Diags *d, uint32_t i, const uint32_t index[DIAG_COUNT], StrBuf *out)
{
    const DiagRecord *r = &d->records.at[i];
    StrBuf            message = strbuf(out->arena), related = strbuf(out->arena);

    add_message(&message, r);
    for (i++; has_rule(r) && i < d->records.n && !has_rule(&d->records.at[i]); i++) {
        const DiagRecord *child = &d->records.at[i];
        StrBuf            text = strbuf(out->arena);

        add_message(&text, child);
        if (child->kind == DIAG_IS_HINT) {
            str_printf(&message, "\nhint: %s", text.at);
            continue;
        }
        str_add(&related, related.n ? ", {" : "{");
        sarif_location(child->loc, &related);
        str_add(&related, child->loc.file || (child->loc.name && *child->loc.name) ? ", " : "");
        str_add(&related, "\"message\": {\"text\": ");
        str_add_json(&related, text.at);
        str_add(&related, "}}");
    }
    str_addc(out, '{');
    if (has_rule(r))
        str_printf(out, "\"ruleId\": \"%s\", \"ruleIndex\": %u, ", rows[r->id].code,
                   index[r->id] - 1);
    str_printf(out, "\"level\": \"%s\", \"message\": {\"text\": ",
               has_rule(r) ? kind_names[r->kind] : "note");
    str_add_json(out, message.at);
    str_add(out, "}, \"locations\": [");
    if (r->loc.file || (r->loc.name && *r->loc.name)) {
        str_addc(out, '{');
        sarif_location(r->loc, out);
        str_addc(out, '}');
    }
    str_addc(out, ']');
    if (related.n)
        str_printf(out, ", \"relatedLocations\": [%s]", related.at);
    str_addc(out, '}');
}

static void print_sarif(const Diags *d, StrBuf *out)
{
    uint32_t index[DIAG_COUNT] = {0}, n = 0;

    str_add(out, "{\"version\": \"2.1.0\",\n"
                 " \"$schema\": \"https://json.schemastore.org/sarif-2.1.0.json\",\n"
                 " \"runs\": [{\"tool\": {\"driver\": {\"name\": \"tvmcc\", "
                 "\"version\": \"" TVMCC_VERSION "\", \"rules\": [");
    sarif_rules(d, index, out);
    str_add(out, "]}},\n  \"results\": [");
    for (uint32_t i = 0; i < d->records.n; i++) {
        if (!has_rule(&d->records.at[i]) && n)
            continue; /* said with the result above */
        str_add(out, n++ ? ",\n    " : "");
        sarif_result(d, i, index, out);
    }
    str_add(out, "]}]}\n");
}

void diag_print(const Diags *d, DiagFormat format, StrBuf *out)
{
    switch (format) {
    case DIAG_TEXT:
        for (uint32_t i = 0; i < d->records.n; i++)
            print_text(d, &d->records.at[i], out);
        break;
    case DIAG_JSON: print_json(d, out); break;
    case DIAG_SARIF: print_sarif(d, out); break;
    }
}

void base_bug(const char *file, int line, const char *fmt, ...)
{
    va_list ap;

    fprintf(stderr, "tvmcc: internal error: ");
    va_start(ap, fmt);
    vfprintf(stderr, fmt, ap);
    va_end(ap);
    fprintf(stderr, " (%s:%d)\n", file, line);
    fprintf(stderr, "note: this is a fault of tvmcc, not of your model\n");
    file_remove_temporaries();
    exit(70);
}
