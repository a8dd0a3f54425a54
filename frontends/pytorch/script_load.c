/* The archive of a module: its entries, and classes and functions by their names.
 *
 * "__torch__.torch.nn.functional.pad" is the function pad of the entry
 * code/__torch__/torch/nn/functional.py.  Files are parsed when the first of their names is asked
 * for: of a large library's code a model needs little. */
#include "frontends/pytorch/script.h"

#include <string.h>

static bool name_is(Bytes name, const char *end, size_t *root)
{
    size_t n = strlen(end);

    if (name.n < n || memcmp(name.at + name.n - n, end, n) != 0)
        return false;
    *root = name.n - n;
    return *root == 0 || name.at[*root - 1] == '/';
}

static bool is_root(Bytes name, size_t *root)
{
    return name_is(name, "data.pkl", root) || name_is(name, "model.json", root);
}

/* The folder of all entries: that of data.pkl or model.json, beside which there is code. */
static bool find_root(Bytes file, Bytes *root)
{
    ZipDir    d;
    ZipMember m;
    size_t    n;
    bool      code = false, data = false;

    if (file.n < 4 || memcmp(file.at, "PK\3\4", 4) || !zip_open(file, &d))
        return false;
    while (zip_next(&d, &m)) {
        if (!data && is_root(m.name, &n) && n < 1024) {
            data = true;
            *root = (Bytes){m.name.at, n};
        }
        for (size_t i = 0; !code && i + 5 <= m.name.n; i++)
            code = !memcmp(m.name.at + i, "code/", 5) && (i == 0 || m.name.at[i - 1] == '/');
    }
    return data && code;
}

bool ts_is_archive(Bytes file)
{
    Bytes root;

    return find_root(file, &root);
}

/* ---- entries ------------------------------------------------------------------------------------ */

bool ts_open(Script *s, Bytes file)
{
    Bytes root;

    if (!find_root(file, &root))
        return error_at(s->c, E_PARSE_MODEL, s->loc, "not an archive of TorchScript");
    s->root = intern_n(s->c->strings, root.n ? (const char *)root.at : "", root.n);
    s->files = map_new(s->c->arena);
    return (s->entries = pt_entries(s->c, s->loc, file)) != NULL;
}

bool ts_entry(Script *s, const char *name, Bytes *out)
{
    const char *path = intern_printf(s->c->strings, "%s%s", s->root, name);
    ZipMember  *m = map_get(s->entries, PTR_KEY(path));

    if (!m)
        return error_at(s->c, E_IMPORT, s->loc, "the archive has no '%s'", path);
    return zip_data(s->c->diags, s->c->arena, s->loc, m, out);
}

/* ---- code --------------------------------------------------------------------------------------- */

/* The entry of "__torch__.vision.ssd", "code/__torch__/vision/ssd.py"; NULL: there is none. */
static ZipMember *code_of(Script *s, const char *folder, const char *module)
{
    char *path = arena_printf(s->c->arena, "%s%s%s.py", s->root, folder, module);

    for (char *p = path + strlen(s->root) + strlen(folder); *p && strcmp(p, ".py") != 0; p++)
        *p = *p == '.' ? '/' : *p;
    return map_get(s->entries, PTR_KEY(intern(s->c->strings, path)));
}

/* NULL: no such file, or an error. */
static const TsFile *file_of(Script *s, const char *module)
{
    const char *key = intern(s->c->strings, module);
    TsFile     *file;
    ZipMember  *m;
    Bytes       text;

    if (map_find(s->files, PTR_KEY(key), (void **)&file))
        return file;
    file = NULL;
    if (!(m = code_of(s, "code/", module)))
        m = code_of(s, "libs/", module);
    if (m && zip_data(s->c->diags, s->c->arena, s->loc, m, &text)) {
        file = NEW(s->c->arena, TsFile);
        if (!ts_parse(s->c, s->loc, key, text, file))
            file = NULL;
    }
    map_put(s->files, PTR_KEY(key), file);
    return file;
}

/* "a.b.c" -> "a.b" and "c". */
static const TsFile *file_with(Script *s, const char *name, const char **last)
{
    const char *dot = strrchr(name, '.');

    *last = dot ? dot + 1 : name;
    return dot ? file_of(s, arena_printf(s->c->arena, "%.*s", (int)(dot - name), name)) : NULL;
}

const TsClass *ts_class(Script *s, const char *name)
{
    const char   *last;
    const TsFile *file = file_with(s, name, &last);

    for (uint32_t i = 0; file && i < file->nclasses; i++)
        if (!strcmp(file->classes[i].name, name))
            return &file->classes[i];
    return NULL;
}

const TsFunction *ts_function(Script *s, const char *name)
{
    const char   *last;
    const TsFile *file = file_with(s, name, &last);

    for (uint32_t i = 0; file && i < file->nfunctions; i++)
        if (!strcmp(file->functions[i].name, last))
            return &file->functions[i];
    return NULL;
}

const TsFunction *ts_method(const TsClass *class, const char *name)
{
    for (uint32_t i = 0; class && i < class->nmethods; i++)
        if (!strcmp(class->methods[i].name, name))
            return &class->methods[i];
    return NULL;
}
