/* schema.def as tables, and as the reference in docs/manifest.md. */
#include "manifest/tree.h"

#include <string.h>

static const char backend_words[] =
#define BACKEND(name, about) #name "|"
#define DEVICE(name, about, product, text, suffix, what) #name "|"
#define SIBLING(name, about, product) #name "|"
#define SOURCE(name, about, product, text, suffix, what) #name "|"
#include "backends/backends.def"
    ;

#define REQUIRED true
#define OPTIONAL false

/* A record's arg is a type, of which only the function matters; others have a text. */
#define TYPE_TEXT(arg) arg, NULL
#define TYPE_CHOICE(arg) arg, NULL
#define TYPE_PATH(arg) arg, NULL
#define TYPE_REF(arg) arg, NULL
#define TYPE_BOOL(arg) arg, NULL
#define TYPE_INT(arg) arg, NULL
#define TYPE_SIZE(arg) arg, NULL
#define TYPE_REAL(arg) arg, NULL
#define TYPE_SHAPE(arg) arg, NULL
#define TYPE_TEXTS(arg) arg, NULL
#define TYPE_CHOICES(arg) arg, NULL
#define TYPE_PATHS(arg) arg, NULL
#define TYPE_REFS(arg) arg, NULL
#define TYPE_INTS(arg) arg, NULL
#define TYPE_REALS(arg) arg, NULL
#define TYPE_TABLE(arg) arg, NULL
#define TYPE_ONE(arg) NULL, record_##arg
#define TYPE_MANY(arg) NULL, record_##arg
#define TYPE_MAP(arg) NULL, record_##arg

/* A function for each record, so that the name `Self` can stand for its struct. */
#define RECORD(T, short, about)                                \
    static const Record *record_##T(void)                      \
    {                                                          \
        typedef T                Self;                         \
        static const char *const head[] = {#T, #short, about}; \
        static const Field       fields[] = {
#define FIELD(key, kind, arg, need, help) \
    {#key, KIND_##kind, TYPE_##kind(arg), need, offsetof(Self, key), help},
#define LATER(key, why) {#key, KIND_LATER, NULL, NULL, false, 0, why},
#define END(T)                                                           \
    }                                                                    \
    ;                                                                    \
    static Record const r = {head, fields, COUNT(fields), sizeof(Self)}; \
    return &r;                                                           \
    }
#include "manifest/schema.def"

const Record *schema_root(void)
{
    return record_Manifest();
}

const char *record_shorthand(const Record *r)
{
    return strcmp(r->head[1], "none") == 0 ? NULL : r->head[1];
}

const Field *record_field(const Record *r, const char *key)
{
    for (uint32_t i = 0; i < r->n; i++) {
        if (strcmp(r->fields[i].key, key) == 0)
            return &r->fields[i];
    }
    return NULL;
}

/* "nchw|nhwc*" as "'nchw' or 'nhwc'"; `all` with what is known but refused. */
const char *choices_text(Arena *a, const char *choices, bool all)
{
    StrBuf s = strbuf(a);
    VEC(const char *) words = {0};

    for (const char *p = choices; *p;) {
        size_t n = strcspn(p, "|");
        bool   later = n && p[n - 1] == '*';

        if (all || !later)
            vec_push(a, &words, arena_printf(a, "%.*s", (int)(later ? n - 1 : n), p));
        p += n + (p[n] == '|');
    }
    for (uint32_t i = 0; i < words.n; i++)
        str_printf(&s, "%s'%s'", i == 0 ? "" : i + 1 == words.n ? " or " : ", ", words.at[i]);
    return s.at;
}

void int_range(const Field *f, int64_t *low, int64_t *high)
{
    const char *p = f->arg;

    for (*low = 0; *p >= '0' && *p <= '9'; p++)
        *low = *low * 10 + (*p - '0');
    for (*high = 0, p += 2; *p >= '0' && *p <= '9'; p++)
        *high = *high * 10 + (*p - '0');
}

/* ---- the reference ------------------------------------------------------------------------------ */

static const char *form_text(Arena *a, const Field *f)
{
    int64_t low, high;

    switch (f->kind) {
    case KIND_TEXT: return f->arg && strcmp(f->arg, "sha256") == 0 ? "64 hex digits" : "text";
    case KIND_CHOICE: return choices_text(a, f->arg, false);
    case KIND_PATH: return "path";
    case KIND_REF: return arena_printf(a, "name of `%s`", f->arg);
    case KIND_BOOL: return "`true` or `false`";
    case KIND_INT:
        int_range(f, &low, &high);
        return arena_printf(a, "%lld to %lld", (long long)low, (long long)high);
    case KIND_SIZE: return "size: `32MiB`";
    case KIND_REAL: return f->arg ? "number from 0" : "number";
    case KIND_SHAPE: return "list of numbers and names";
    case KIND_TEXTS: return "list of texts";
    case KIND_CHOICES: return arena_printf(a, "list of %s", choices_text(a, f->arg, false));
    case KIND_PATHS: return "list of paths";
    case KIND_REFS: return arena_printf(a, "names of `%s`", f->arg);
    case KIND_INTS: return "list of numbers";
    case KIND_REALS: return "list of numbers";
    case KIND_TABLE: return "free keys with plain values";
    case KIND_ONE: return arena_printf(a, "[%s](#%s)", f->key, f->key);
    case KIND_MANY: return arena_printf(a, "list of [%s](#%s)", f->key, f->key);
    case KIND_MAP: return arena_printf(a, "names, each with [%s](#%s)", f->key, f->key);
    case KIND_LATER: return "not in this version";
    }
    return NULL;
}

static void add_record(StrBuf *out, const Record *r, const char *key)
{
    const char *shorthand = record_shorthand(r);

    str_printf(out, "\n### %s\n\n%c%s.", key, r->head[2][0] & ~0x20, r->head[2] + 1);
    if (shorthand)
        str_printf(out, " A plain value instead of the mapping is its `%s`.", shorthand);
    str_add(out, "\n\n| Key | Value | |\n|---|---|---|\n");
    for (uint32_t i = 0; i < r->n; i++) {
        const Field *f = &r->fields[i];
        const char  *help = *f->help ? f->help : f->type ? f->type()->head[2] : "";

        str_printf(out, "| `%s`%s | %s | %s |\n", f->key, f->required ? " (required)" : "",
                   form_text(out->arena, f), help);
    }
}

void manifest_reference(StrBuf *out)
{
    VEC(const Field *) queue = {0};

    add_record(out, schema_root(), "manifest");
    for (uint32_t i = 0; i < schema_root()->n; i++) {
        if (schema_root()->fields[i].type)
            vec_push(out->arena, &queue, &schema_root()->fields[i]);
    }
    /* Breadth first; a record that several others have is described once. */
    for (uint32_t i = 0; i < queue.n; i++) {
        const Record *r = queue.at[i]->type();
        bool          seen = false;

        for (uint32_t k = 0; k < i; k++)
            seen = seen || queue.at[k]->type() == r;
        if (seen)
            continue;
        add_record(out, r, queue.at[i]->key);
        for (uint32_t k = 0; k < r->n; k++) {
            if (r->fields[k].type)
                vec_push(out->arena, &queue, &r->fields[k]);
        }
    }
}
