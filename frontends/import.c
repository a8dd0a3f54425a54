/* The table of frontends: bids, and the entry to all imports. */
#include "frontends/frontends.h"

#include <string.h>
#include <sys/stat.h>

static const Frontend table[] = {
#define FRONTEND(id, name, endings, inside, bid_fn, import_fn, describe_fn, list_fn, weights, \
                 signatures, text)                                                            \
    {name, endings, inside, text, weights, signatures, bid_fn, import_fn, describe_fn, list_fn},
#include "frontends/frontends.def"
#undef FRONTEND
};

const Frontend *const frontends = table;
const uint32_t        frontend_count = COUNT(table);

const Frontend *frontend_find(const char *name)
{
    for (uint32_t i = 0; i < COUNT(table); i++)
        if (!strcmp(table[i].name, name))
            return &table[i];
    return NULL;
}

static void hint_formats(Ctx *c)
{
    StrBuf s = strbuf(c->arena);

    for (uint32_t i = 0; i < COUNT(table); i++)
        str_printf(&s, "%s%s", i ? ", " : "", table[i].name);
    diag_hint(c->diags, "the formats are %s", s.at);
}

/* A bid above comes from the bytes, one below from the name alone. */
enum { BY_BYTES = 40 };

static const Frontend *best_bid(const char *path, Bytes file, int *most)
{
    const Frontend *best = NULL;

    for (uint32_t i = 0; i < COUNT(table); i++) {
        int bid = table[i].bid(path, file);

        if (bid > *most) {
            *most = bid;
            best = &table[i];
        }
    }
    return best;
}

bool frontend_is_model(Arena *a, const char *path)
{
    Bytes file = {0};
    int   most = BY_BYTES;

    return file_map(diags_new(a), path, &file) && best_bid(path, file, &most) != NULL;
}

static void no_model(Ctx *c, const char *path, Looks looks)
{
    error_at(c, E_PARSE_MODEL, ((Loc){.file = path}),
             "not a model in a known format; it looks like %s", looks.what);
    if (*looks.hint)
        diag_hint(c->diags, "%s", looks.hint);
    else
        hint_formats(c);
}

static const Frontend *choose(Ctx *c, const char *path, const char *format, Bytes file)
{
    const Frontend *best;
    int             most = 0;
    Looks           looks = {0};

    if (format) {
        if (!(best = frontend_find(format))) {
            error_at(c, E_USAGE, NO_LOC, "there is no model format '%s'", format);
            hint_formats(c);
            return NULL;
        }
        most = best->bid(path, file);
    } else {
        best = best_bid(path, file, &most);
    }
    if (most < BY_BYTES)
        looks = looks_of_file(file);
    if (looks.what) {
        no_model(c, path, looks);
        return NULL;
    }
    if (!best) {
        error_at(c, E_PARSE_MODEL, ((Loc){.file = path}), "the format of this file is not known");
        hint_formats(c);
    }
    return best;
}

const char *frontend_folder(Arena *a, const char *path)
{
    struct stat st;

    if (stat(path, &st) != 0 || !S_ISDIR(st.st_mode))
        return NULL;
    for (uint32_t i = 0; i < COUNT(table); i++)
        for (const char *at = table[i].inside; *at;) {
            int         n = (int)strcspn(at, " ");
            const char *file = arena_printf(a, "%s/%.*s", path, n, at);

            if (stat(file, &st) == 0 && S_ISREG(st.st_mode))
                return file;
            at += at[n] ? n + 1 : n;
        }
    return NULL;
}

/* The file of a model, which may be in a folder; false with an error. */
static bool open_model(Ctx *c, const char **path, Bytes *file)
{
    const char *inside = frontend_folder(c->arena, *path);
    struct stat st;

    *path = intern(c->strings, inside ? inside : *path);
    if (stat(*path, &st) == 0 && S_ISDIR(st.st_mode)) {
        no_model(c, *path, looks_of_folder(c->arena, *path));
        return false;
    }
    return file_map(c->diags, *path, file);
}

/* "darknet, relay": the formats whose models have signatures, or else a file of weights. */
static const char *formats_with(Ctx *c, bool signatures)
{
    StrBuf s = strbuf(c->arena);

    for (uint32_t i = 0; i < COUNT(table); i++)
        if (signatures ? table[i].signatures : table[i].weights)
            str_printf(&s, "%s%s", s.n ? ", " : "", table[i].name);
    return s.at;
}

static bool takes(Ctx *c, const Frontend *f, const ImportOptions *o)
{
    if (o->weights && !f->weights)
        return error_at(
            c, E_USAGE, NO_LOC,
            "files of the format '%s' name their weights themselves: --weights is for %s", f->name,
            formats_with(c, false));
    return !o->signature || f->signatures ||
           error_at(c, E_USAGE, NO_LOC,
                    "models of the format '%s' are one function: --signature is for %s", f->name,
                    formats_with(c, true));
}

static const ImportOptions none;

/* The file is mapped and its format known, which takes what is said; NULL with an error. */
static const Frontend *open_with(Ctx *c, const char **path, const char *format,
                                 const ImportOptions *o, Bytes *file)
{
    const Frontend *f = open_model(c, path, file) ? choose(c, *path, format, *file) : NULL;

    return f && takes(c, f, o) ? f : NULL;
}

const Module *frontend_import(Ctx *c, const char *path, const char *format, const ImportOptions *o,
                              ImportFiles *files)
{
    ImportFiles     unread = {0};
    const Frontend *f;
    Bytes           file = {0};

    o = o ? o : &none;
    if (!(f = open_with(c, &path, format, o, &file)))
        return NULL;
    if (!files)
        files = &unread;
    vec_push(c->arena, files, path);
    return f->import(c, path, file, o, files);
}

bool frontend_describe(Ctx *c, const char *path, const char *format, const ImportOptions *o,
                       ModelSignature *out)
{
    const Frontend *f;
    Bytes           file = {0};

    o = o ? o : &none;
    *out = (ModelSignature){0};
    return (f = open_with(c, &path, format, o, &file)) && f->describe(c, path, file, o, out);
}
