/* The text of a .cfg: `[section]` lines, each followed by `key=value` lines; blanks do not count,
 * `#` and
 * `;` begin a comment line.  Then a look at all sections before anything is built: which have no
 * row in ops.def, which keys none in keys.def, and values of another form. */
#include "frontends/darknet/darknet.h"

#include <stdlib.h>
#include <string.h>

static void *wrong(Ctx *c, const char *path, uint32_t line, const char *what)
{
    return error_at(c, E_PARSE_MODEL, ((Loc){path, line, 0, NULL}), "%s", what);
}

/* The next line without its blanks, interned; NULL at the end of the file. */
static const char *next_line(Ctx *c, Bytes *file)
{
    StrBuf s = strbuf(c->scratch);
    size_t i = 0;

    if (!file->n)
        return NULL;
    for (; i < file->n && file->at[i] != '\n'; i++)
        if (!strchr(" \t\r", file->at[i]) || !file->at[i])
            str_addc(&s, (char)file->at[i]);
    i += i < file->n;
    *file = (Bytes){file->at + i, file->n - i};
    return intern_n(c->strings, s.at ? s.at : "", s.n);
}

static bool begin_section(Ctx *c, const char *path, const char *text, uint32_t line,
                          DarknetSection *s)
{
    size_t n = strlen(text);

    if (n < 3 || text[n - 1] != ']')
        return wrong(c, path, line, "a section is a name in brackets");
    *s = (DarknetSection){.name = intern_n(c->strings, text + 1, n - 2), .line = line};
    s->row = darknet_row(s->name);
    return true;
}

bool darknet_read(Ctx *c, const char *path, Bytes file, DarknetConfig *out)
{
    VEC(DarknetSection) sections = {0};
    VEC(DarknetPair) pairs = {0};
    const char *text;

    for (uint32_t line = 1; (text = next_line(c, &file)); line++) {
        const char    *equals = strchr(text, '=');
        DarknetSection s;

        if (!*text || *text == '#' || *text == ';')
            continue;
        if (*text == '[') {
            if (!begin_section(c, path, text, line, &s))
                return false;
            if (sections.n == DARKNET_MAX_SECTIONS)
                return wrong(c, path, line, "there are too many sections");
            vec_push(c->arena, &sections, s);
            pairs.at = NULL;
            pairs.n = pairs.cap = 0;
            continue;
        }
        if (!sections.n)
            return wrong(c, path, line, "a key before the first section");
        if (!equals || equals == text)
            return wrong(c, path, line, "neither a section nor a key and its value");
        vec_push(c->arena, &pairs,
                 ((DarknetPair){intern_n(c->strings, text, (size_t)(equals - text)),
                                intern(c->strings, equals + 1), line}));
        sections.at[sections.n - 1].pairs = pairs.at;
        sections.at[sections.n - 1].npairs = pairs.n;
    }
    if (!sections.n ||
        (strcmp(sections.at[0].name, "net") && strcmp(sections.at[0].name, "network")))
        return wrong(c, path, sections.n ? sections.at[0].line : 1,
                     "the first section is not [net]");
    if (sections.n == 1)
        return wrong(c, path, sections.at[0].line, "the network has no layers");
    *out = (DarknetConfig){sections.n, sections.at};
    return true;
}

/* ---- values --------------------------------------------------------------------------------------- */

bool darknet_parse_int(const char *text, int64_t *out)
{
    char  *end;
    double v = strtod(text, &end);

    if (end == text || *end || !(v > -2e9 && v < 2e9) || v != (double)(int64_t)v)
        return false;
    *out = (int64_t)v;
    return true;
}

bool darknet_parse_float(const char *text, double *out)
{
    char *end;

    *out = strtod(text, &end);
    return end != text && !*end && *out - *out == 0; /* no NaN, no infinity */
}

static bool is_of(DarknetKind kind, const char *text)
{
    int64_t i;
    double  f;

    switch (kind) {
    case DARKNET_INT: return darknet_parse_int(text, &i);
    case DARKNET_FLOAT: return darknet_parse_float(text, &f);
    case DARKNET_TEXT: return true;
    case DARKNET_INTS:
    case DARKNET_FLOATS: return strspn(text, "0123456789+-.eE,") == strlen(text);
    }
    return false;
}

static bool same_value(const DarknetKey *k, const char *text)
{
    double a, b;

    if (k->kind == DARKNET_TEXT)
        return !strcmp(k->fallback, text);
    return darknet_parse_float(k->fallback, &a) && darknet_parse_float(text, &b) && a == b;
}

/* ---- survey --------------------------------------------------------------------------------------- */

typedef struct {
    DarknetImport        *im;
    const DarknetSection *s;
    const char           *label;
    Findings              findings;
} Survey;

static void found(Survey *v, DiagId id, uint32_t line, const char *hint, const char *fmt, ...)
    PRINTF_LIKE(5, 6);
static void found(Survey *v, DiagId id, uint32_t line, const char *hint, const char *fmt, ...)
{
    Finding f = {.id = id,
                 .op = id == E_UNSUPPORTED_OP ? NULL : v->s->name,
                 .hint = hint,
                 .first = v->label,
                 .ordinal = line};
    va_list ap;

    va_start(ap, fmt);
    finding_addv(v->im->c, &v->findings, f, fmt, ap);
    va_end(ap);
}

static const char *meant(Ctx *c, const char *near)
{
    return near ? arena_printf(c->arena, "did you mean '%s'?", near) : NULL;
}

static void check_pair(Survey *v, const char *section, const DarknetPair *p)
{
    Ctx              *c = v->im->c;
    const DarknetKey *k = darknet_key(section, p->key);

    if (!k) {
        uint32_t     most = darknet_key_count();
        const char **names = NEW_ARRAY(c->scratch, const char *, most);
        uint32_t     n = darknet_keys(section, names, most);

        found(v, W_UNKNOWN_ATTRIBUTE, p->line, meant(c, str_closest(p->key, names, n)),
              "it has no key '%s'", p->key);
    } else if (!is_of(k->kind, p->value)) {
        found(v, E_IMPORT, p->line, NULL, "'%s' cannot be '%s'", p->key, p->value);
    } else if (k->use == DARKNET_FIXED && !same_value(k, p->value)) {
        found(v, E_UNSUPPORTED, p->line, NULL, "%s=%s", p->key, p->value);
    }
}

static void check_needed(Survey *v, const char *section)
{
    const char *name;

    for (uint32_t i = 0; (name = darknet_needed(section, i)); i++) {
        bool there = false;

        for (uint32_t k = 0; k < v->s->npairs; k++)
            there |= !strcmp(v->s->pairs[k].key, name);
        if (!there)
            found(v, E_IMPORT, v->s->line, NULL, "it needs '%s'", name);
    }
}

bool darknet_survey(DarknetImport *im)
{
    Survey   v = {.im = im, .findings = {.path = im->path, .noun = "layer"}};
    uint32_t before = diag_errors(im->c->diags);

    for (uint32_t i = 0; i < im->config.n; i++) {
        const DarknetSection *s = v.s = &im->config.sections[i];

        v.label = i ? darknet_label(im->c, &im->config, i - 1) : "net";
        if (i && !s->row) {
            const char *near = darknet_nearest_section(s->name);

            found(&v, E_UNSUPPORTED_OP, s->line, meant(im->c, near), "layer [%s] is not supported",
                  s->name);
            continue;
        }
        for (uint32_t k = 0; k < s->npairs; k++)
            check_pair(&v, i ? s->row->name : "net", &s->pairs[k]);
        check_needed(&v, i ? s->row->name : "net");
    }
    findings_report(im->c, &v.findings);
    return diag_errors(im->c->diags) == before;
}
