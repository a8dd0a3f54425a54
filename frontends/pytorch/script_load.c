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

/* The folder of all entries: that of data.pkl, beside which there is code. */
static bool find_root(Bytes file, Bytes *root)
{
    ZipDir    d;
    ZipMember m;
    size_t    n;
    bool      code = false, data = false;

    if (file.n < 4 || memcmp(file.at, "PK\3\4", 4) || !zip_open(file, &d))
        return false;
    while (zip_next(&d, &m)) {
        if (!data && name_is(m.name, "data.pkl", &n) && n < 1024) {
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
    ZipDir    d;
    ZipMember m;
    Bytes     root, order;
    size_t    n;

    if (!find_root(file, &root) || !zip_open(file, &d))
        return error_at(s->c, E_PARSE_MODEL, s->loc, "not an archive of TorchScript");
    s->root = intern_n(s->c->strings, root.n ? (const char *)root.at : "", root.n);
    s->entries = map_new(s->c->arena);
    s->files = map_new(s->c->arena);
    while (zip_next(&d, &m)) {
        const char *name;

        if (!m.name.n || memchr(m.name.at, 0, m.name.n))
            return error_at(s->c, E_PARSE_MODEL, s->loc,
                            "an entry of the zip has no readable name");
        name = intern_n(s->c->strings, (const char *)m.name.at, m.name.n);
        if (map_get(s->entries, PTR_KEY(name)))
            return error_at(s->c, E_PARSE_MODEL, s->loc, "entry '%s' of the zip is there twice",
                            name);
        map_put(s->entries, PTR_KEY(name), DUP_ARRAY(s->c->arena, &m, 1));
        if (name_is(m.name, "byteorder", &n) &&
            zip_data(s->c->diags, s->c->arena, s->loc, &m, &order) && order.n >= 3 &&
            !memcmp(order.at, "big", 3))
            return error_at(s->c, E_UNSUPPORTED, s->loc, "the weights are big-endian");
    }
    return !d.bad || error_at(s->c, E_PARSE_MODEL, s->loc, "the directory of the zip is broken");
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

/* "__torch__.vision.ssd" -> "code/__torch__/vision/ssd.py"; NULL: no such file, or an error. */
static const TsFile *file_of(Script *s, const char *module)
{
    char       *path = arena_printf(s->c->arena, "%scode/%s.py", s->root, module);
    const char *key = intern(s->c->strings, module);
    TsFile     *file;
    ZipMember  *m;
    Bytes       text;

    if (map_find(s->files, PTR_KEY(key), (void **)&file))
        return file;
    file = NULL;
    for (char *p = path + strlen(s->root) + strlen("code/"); *p && strcmp(p, ".py") != 0; p++)
        *p = *p == '.' ? '/' : *p;
    m = map_get(s->entries, PTR_KEY(intern(s->c->strings, path)));
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
