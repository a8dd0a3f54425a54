/* Scalars of a manifest as typed values.
 *
 * YAML guesses types from the look of a word, and guesses badly: `no` becomes false, 1.10 becomes
 * 1.1.  Here the schema knows the type, so `N` is a name where a dimension is expected, and a word
 * that other readers would take for something else must be quoted where a text is expected: the
 * manifest then means the same to every tool that reads it.
 */
#include "manifest/tree.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { SHOWN = 60 };    /* characters of a text that messages repeat */
enum { MAX_NAME = 64 }; /* characters of a name */

#define WRONG(v, n, ...) diag_error((v)->d, E_MANIFEST_VALUE, (n)->loc, __VA_ARGS__)

static bool is_word(const char *text, const char *const *words, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (strcasecmp(text, words[i]) == 0)
            return true;
    }
    return false;
}

static bool looks_bool(const char *text)
{
    static const char *const words[] = {"yes", "no", "on", "off", "true", "false"};

    return is_word(text, words, COUNT(words));
}

static bool looks_null(const char *text)
{
    return !*text || strcmp(text, "~") == 0 || strcasecmp(text, "null") == 0;
}

/* What YAML takes for a number: 12, -1.5e3, 0x1f, 1_000, .inf. */
static bool looks_number(const char *text)
{
    const char *p = text + (*text == '-' || *text == '+');
    size_t      n = strspn(p, "0123456789_");

    if (p[0] == '0' && (p[1] == 'x' || p[1] == 'o') && p[2])
        return !p[2 + strspn(p + 2, "0123456789abcdefABCDEF_")];
    if (strcasecmp(p, ".inf") == 0 || strcasecmp(p, ".nan") == 0)
        return true;
    if (n == 0 && !(p[0] == '.' && isdigit((unsigned char)p[1])))
        return false;
    p += n;
    if (*p == '.')
        p += 1 + strspn(p + 1, "0123456789_");
    if ((*p == 'e' || *p == 'E') && isdigit((unsigned char)p[1 + (p[1] == '-' || p[1] == '+')]))
        p += 2 + strspn(p + 2, "0123456789");
    return !*p;
}

static const char *shown(const Values *v, const char *text)
{
    size_t n = strlen(text);

    if (n <= SHOWN)
        return text;
    for (n = SHOWN; n && ((unsigned char)text[n] & 0xc0) == 0x80;)
        n--;
    return arena_printf(v->a, "%.*s..", (int)n, text);
}

/* The text of a scalar; an error says what was expected instead of a list or nothing. */
static const char *scalar(const Values *v, const char *key, const Node *n, const char *expected)
{
    n = node_of(n);
    if (n->kind != NODE_SCALAR)
        return WRONG(v, n, "'%s' is %s, not a %s", key, expected,
                     n->kind == NODE_LIST ? "list" : "mapping");
    if (n->plain && looks_null(n->text))
        return WRONG(v, n, "'%s' has no value; it is %s", key, expected);
    return n->text;
}

/* ---- text ------------------------------------------------------------------------------------------ */

bool name_ok(const char *text)
{
    size_t n = strlen(text);

    return n && n <= MAX_NAME && isalnum((unsigned char)*text) &&
           strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_+-") == n;
}

static bool sha256_ok(const char *text)
{
    return strlen(text) == 64 && strspn(text, "0123456789abcdef") == 64;
}

static bool dtype_ok(const char *text)
{
    static const char *const names[] = {"float64", "float32", "float16", "bfloat16", "int64",
                                        "int32",   "int16",   "int8",    "uint64",   "uint32",
                                        "uint16",  "uint8",   "bool"};

    return is_word(text, names, COUNT(names)) && !isupper((unsigned char)*text);
}

/* `${model}`, `${target}` and `${version}`; nothing of the environment, so that a build depends on
 * files only. */
static bool check_substitutions(const Values *v, const Field *f, const Node *n)
{
    static const char *const names[] = {"model", "target", "version"};

    for (const char *p = n->text; (p = strstr(p, "${")); p += 2) {
        size_t      len = strcspn(p + 2, "}");
        const char *name = arena_printf(v->a, "%.*s", (int)len, p + 2);

        if (!v->substitutes)
            return WRONG(v, n, "'%s' takes no '${..}'", f->key);
        if (!p[2 + len])
            return WRONG(v, n, "a '${' in '%s' has no '}'", f->key);
        if (!is_word(name, names, COUNT(names))) {
            const char *closest = str_closest(name, names, COUNT(names));

            WRONG(v, n, "there is no '${%s}'", shown(v, name));
            if (closest)
                diag_hint(v->d, "did you mean '${%s}'?", closest);
            else
                diag_hint(v->d, "there are ${model}, ${target} and ${version}; the environment is "
                                "not seen");
            return false;
        }
    }
    return true;
}

/* One of "a|b|c*". */
static bool check_choice(const Values *v, const Field *f, const Node *n)
{
    VEC(const char *) words = {0};
    const char *closest;

    for (const char *p = f->arg; *p;) {
        size_t      len = strcspn(p, "|");
        bool        later = len && p[len - 1] == '*';
        const char *word = arena_printf(v->a, "%.*s", (int)(later ? len - 1 : len), p);

        if (strcmp(word, n->text) == 0 && later) {
            diag_error(v->d, E_MANIFEST_LATER, n->loc, "this version has no '%s: %s'", f->key,
                       word);
            diag_hint(v->d, "it has %s", choices_text(v->a, f->arg, false));
            return false;
        }
        if (strcmp(word, n->text) == 0)
            return true;
        vec_push(v->a, &words, word);
        p += len + (p[len] == '|');
    }
    WRONG(v, n, "'%s' is %s, not '%s'", f->key, choices_text(v->a, f->arg, false),
          shown(v, n->text));
    if ((closest = str_closest(n->text, words.at, words.n)) && words.n > 3)
        diag_hint(v->d, "did you mean '%s'?", closest);
    return false;
}

/* Functions and headers bear this name as it stands. */
static bool check_c_name(const Values *v, const Field *f, const Node *n)
{
    const char *would = arena_printf(v->a, "%.*s", MAX_NAME, c_identifier(v->a, n->text));

    if (strcmp(would, n->text) == 0)
        return true;
    WRONG(v, n, "'%s' is a C identifier in lower case, not '%s'", f->key, shown(v, n->text));
    diag_hint(v->d, "'%s' would do", c_identifier(v->a, would));
    return false;
}

static bool check_form(const Values *v, const Field *f, const Node *n)
{
    if (strcmp(f->arg, "sha256") == 0)
        return sha256_ok(n->text) || WRONG(v, n, "'%s' is 64 hex digits in lower case", f->key);
    if (strcmp(f->arg, "c-name") == 0)
        return check_c_name(v, f, n);
    if (strcmp(f->arg, "dtype") == 0) {
        if (dtype_ok(n->text))
            return true;
        WRONG(v, n, "'%s' is an element type, not '%s'", f->key, shown(v, n->text));
        diag_hint(v->d, "such as float32, float16, int64, int8, uint8 or bool");
        return false;
    }
    return name_ok(n->text) ||
           WRONG(v, n, "'%s' is a name of letters, digits, '-', '_' and '+', not '%s'", f->key,
                 shown(v, n->text));
}

static const char *join(const Values *v, const char *path)
{
    while (str_starts(path, "./") && path[2])
        path += 2;
    return *path == '/' ? path : intern_printf(v->names, "%s%s", v->folder, path);
}

bool value_text(const Values *v, const Field *f, const Node *n, ManText *out)
{
    bool        path = f->kind == KIND_PATH || f->kind == KIND_PATHS;
    bool        choice = f->kind == KIND_CHOICE || f->kind == KIND_CHOICES;
    const char *text = scalar(v, f->key, n, path ? "a path" : "a text");

    n = node_of(n);
    if (!text)
        return false;
    if (n->plain && looks_bool(text)) {
        WRONG(v, n, "'%s' is a text, and %s without quotes is a truth value", f->key, text);
        diag_hint(v->d, "write \"%s\"", text);
        return false;
    }
    if (n->plain && looks_number(text) && !sha256_ok(text)) {
        WRONG(v, n, "'%s' is a text, and %s without quotes is a number", f->key, shown(v, text));
        diag_hint(v->d, "write \"%s\"", shown(v, text));
        return false;
    }
    if (choice ? !check_choice(v, f, n) : !*text ? !WRONG(v, n, "'%s' is empty", f->key) : false)
        return false;
    if (!choice && !check_substitutions(v, f, n))
        return false;
    if (f->kind == KIND_TEXT && f->arg && !check_form(v, f, n))
        return false;
    *out = (ManText){true, n->loc, path ? join(v, text) : text};
    return true;
}

bool value_key(const Values *v, const Node *n)
{
    n = node_of(n);
    if (n->kind != NODE_SCALAR)
        return WRONG(v, n, "a key is a name, not a %s", n->kind == NODE_LIST ? "list" : "mapping");
    if (n->plain && (looks_bool(n->text) || looks_null(n->text))) {
        WRONG(v, n, "a key is a name, and %s without quotes is %s", *n->text ? n->text : "nothing",
              looks_bool(n->text) ? "a truth value" : "no value");
        diag_hint(v->d, "write \"%s\"", n->text);
        return false;
    }
    return *n->text || WRONG(v, n, "a key is empty");
}

/* ---- numbers ------------------------------------------------------------------------------------- */

bool value_bool(const Values *v, const Field *f, const Node *n, ManBool *out)
{
    const char *text = scalar(v, f->key, n, "true or false");

    n = node_of(n);
    if (!text)
        return false;
    if (!n->plain || (strcmp(text, "true") != 0 && strcmp(text, "false") != 0)) {
        static const char *const yes[] = {"yes", "on", "true", "1"};

        WRONG(v, n, "'%s' is true or false, not %s%s%s", f->key, n->plain ? "'" : "the text '",
              shown(v, text), "'");
        if (looks_bool(text))
            diag_hint(v->d, "write %s", is_word(text, yes, COUNT(yes)) ? "true" : "false");
        return false;
    }
    *out = (ManBool){true, n->loc, *text == 't'};
    return true;
}

/* Decimal digits with an optional sign; nothing of octal, sexagesimal or underscores. */
static bool parse_int(const char *text, int64_t *out)
{
    size_t n = strspn(text + (*text == '-'), "0123456789");
    char  *end;

    errno = 0;
    *out = strtoll(text, &end, 10);
    return n && !*end && !errno && (n == 1 || text[*text == '-'] != '0');
}

static bool unquoted(const Values *v, const Field *f, const Node *n, const char *expected)
{
    if (n->plain)
        return true;
    WRONG(v, n, "'%s' is %s, not the text \"%s\"", f->key, expected, shown(v, n->text));
    if (looks_number(n->text))
        diag_hint(v->d, "write %s without quotes", shown(v, n->text));
    return false;
}

bool value_int(const Values *v, const Field *f, const Node *n, ManInt *out)
{
    int64_t     low, high, value;
    const char *expected, *text;

    int_range(f, &low, &high);
    expected = arena_printf(v->a, "a number from %lld to %lld", (long long)low, (long long)high);
    if (!(text = scalar(v, f->key, n, expected)))
        return false;
    n = node_of(n);
    if (!unquoted(v, f, n, expected))
        return false;
    if (!parse_int(text, &value) || value < low || value > high)
        return WRONG(v, n, "'%s' is %s, not '%s'", f->key, expected, shown(v, text));
    *out = (ManInt){true, n->loc, value};
    return true;
}

bool value_size(const Values *v, const Field *f, const Node *n, ManInt *out)
{
    const char *text = scalar(v, f->key, n, "a size such as 65536, 64KiB or 32MiB");
    uint64_t    value;
    size_t      digits;

    n = node_of(n);
    if (!text)
        return false;
    if (parse_bytes(text, &value)) {
        *out = (ManInt){true, n->loc, (int64_t)value};
        return true;
    }
    digits = strspn(text, "0123456789");
    WRONG(v, n, "'%s' is a size such as 65536, 64KiB or 32MiB, not '%s'", f->key, shown(v, text));
    if (digits && strpbrk(text + digits, "kKmMgG") == text + digits && !str_ends(text, "iB"))
        diag_hint(v->d, "write %.*s%ciB", (int)(digits < SHOWN ? digits : SHOWN), text,
                  toupper((unsigned char)text[digits]));
    return false;
}

bool value_real(const Values *v, const Field *f, const Node *n, ManReal *out)
{
    const char *expected = f->arg ? "a number from 0" : "a number";
    const char *text = scalar(v, f->key, n, expected);
    double      value;
    char       *end;

    n = node_of(n);
    if (!text || !unquoted(v, f, n, expected))
        return false;
    value = strtod(text, &end);
    if (text[strspn(text, "0123456789.eE+-")] || end == text || *end || !(value <= 1e300) ||
        !(value >= (f->arg ? 0 : -1e300)))
        return WRONG(v, n, "'%s' is %s, not '%s'", f->key, expected, shown(v, text));
    *out = (ManReal){true, n->loc, value};
    return true;
}

/* A number, or the name of a dimension: `N` is one, whatever YAML 1.1 says. */
bool value_extent(const Values *v, const Field *f, const Node *n, ManExtent *out)
{
    const char *text = scalar(v, f->key, n, "a list of numbers and names");
    int64_t     value;

    n = node_of(n);
    if (!text)
        return false;
    *out = (ManExtent){n->loc, NULL, 0};
    if (n->plain && parse_int(text, &value)) {
        out->value = value;
        if (value >= 0 && value <= (int64_t)1 << 40)
            return true;
        WRONG(v, n, "a dimension is a number from 0 or a name, not '%s'", shown(v, text));
        if (value < 0)
            diag_hint(v->d, "give it a name, such as N, and a value under 'dims'");
        return false;
    }
    if (*text == '?' || !*text || (n->plain && looks_number(text))) {
        WRONG(v, n, "a dimension is a number from 0 or a name, not '%s'", shown(v, text));
        if (*text == '?')
            diag_hint(v->d, "give it a name, such as N, and a value under 'dims'");
        return false;
    }
    if (n->plain && looks_bool(text)) {
        WRONG(v, n, "a dimension is a number or a name, and %s without quotes is a truth value",
              text);
        diag_hint(v->d, "write \"%s\"", text);
        return false;
    }
    out->name = text;
    return true;
}
