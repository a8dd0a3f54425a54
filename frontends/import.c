/* The table of frontends: bids, and the entry to all imports. */
#include "frontends/frontends.h"

#include <string.h>
#include <sys/stat.h>

static const Frontend table[] = {
#define FRONTEND(id, name, endings, bid_fn, import_fn, list_fn, text) \
    {name, endings, text, bid_fn, import_fn, list_fn},
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

static const Frontend *choose(Ctx *c, const char *path, const char *format, Bytes file)
{
    const Frontend *best = NULL;
    int             most = 0;

    if (format)
        best = frontend_find(format);
    for (uint32_t i = 0; !format && i < COUNT(table); i++) {
        int bid = table[i].bid(path, file);

        if (bid > most) {
            most = bid;
            best = &table[i];
        }
    }
    if (!best && format)
        error_at(c, E_USAGE, NO_LOC, "there is no model format '%s'", format);
    else if (!best)
        error_at(c, E_PARSE_MODEL, ((Loc){.file = path}), "the format of this file is not known");
    if (!best)
        hint_formats(c);
    return best;
}

const Module *frontend_import(Ctx *c, const char *path, const char *format, const ImportOptions *o,
                              ImportFiles *files)
{
    ImportOptions   none = {0};
    ImportFiles     unread = {0};
    const Frontend *f;
    struct stat     st;
    Bytes           file = {0};

    path = intern(c->strings, path);
    if ((stat(path, &st) || !S_ISDIR(st.st_mode)) && !file_map(c->diags, path, &file))
        return NULL;
    if (!(f = choose(c, path, format, file)))
        return NULL;
    if (o && o->weights && f->import != relay_import)
        return error_at(
            c, E_USAGE, NO_LOC,
            "files of the format '%s' name their weights themselves: --weights is for Relay",
            f->name);
    if (!files)
        files = &unread;
    vec_push(c->arena, files, path);
    return f->import(c, path, file, o ? o : &none, files);
}
