/* The files of a model.  An .mlpackage is a folder with a Manifest.json, which names the model
 * file in its folder Data:
 *
 *     {"rootModelIdentifier": "593213F7..", "itemInfoEntries": {"593213F7..": {"path":
 * "com.apple.CoreML/model.mlmodel"}}}
 *
 * Weights of a program lie below the folder of the model file, @model_path. */
#include "base/json.h"
#include "frontends/coreml/coreml.h"

#include <string.h>

bool cml_is_manifest(Bytes file)
{
    static const char word[] = "\"rootModelIdentifier\"";

    return file.n && file.n < JSON_BYTES && strchr("{ \t\r\n", file.at[0]) &&
           memmem(file.at, file.n, word, sizeof word - 1);
}

static bool leads_out(const char *path)
{
    return !*path || path[0] == '/' || strchr(path, '\\') || !strcmp(path, "..") ||
           str_starts(path, "../") || strstr(path, "/../") || str_ends(path, "/..");
}

/* "below", in the folder of the file `path`. */
static const char *beside(Ctx *c, const char *path, const char *below)
{
    const char *slash = strrchr(path, '/');

    return slash ? intern_printf(c->strings, "%.*s/%s", (int)(slash - path), path, below)
                 : intern(c->strings, below);
}

bool cml_open_package(Ctx *c, const char **path, Bytes *file, ImportFiles *files)
{
    Loc          loc = {.file = *path};
    json_error_t error;
    json_t      *manifest = json_read(*file, &error), *item;
    const char  *root, *at = NULL;

    if (!manifest)
        return error_at(c, E_PARSE_MODEL, loc, "line %d: %s", error.line, error.text);
    root = json_string_value(json_object_get(manifest, "rootModelIdentifier"));
    item = root ? json_object_get(json_object_get(manifest, "itemInfoEntries"), root) : NULL;
    at = json_string_value(json_object_get(item, "path"));
    if (at)
        at = arena_printf(c->arena, "Data/%s", at);
    json_decref(manifest);
    if (!at)
        return error_at(c, E_PARSE_MODEL, loc, "the manifest does not say where the model is");
    if (leads_out(at))
        return error_at(c, E_IMPORT, loc, "the model may not lie outside the package, in '%s'", at);
    *path = beside(c, *path, at);
    if (!file_map(c->diags, *path, file)) {
        diag_note(c->diags, loc, "the manifest names it as the package's model");
        return false;
    }
    if (files)
        vec_push(c->arena, files, *path);
    return true;
}

bool cml_open_weights(Ctx *c, const char *model, const char *name, Loc loc, CmlFiles *known,
                      ImportFiles *files, Bytes *out)
{
    static const char root[] = "@model_path/";
    const char       *path;

    for (uint32_t i = 0; i < known->n; i++)
        if (!strcmp(known->at[i].name, name)) {
            *out = known->at[i].file;
            return true;
        }
    if (!str_starts(name, root) || leads_out(name + sizeof root - 1))
        return error_at(c, E_IMPORT, loc, "weights may not lie outside the model's folder, in '%s'",
                        name);
    path = beside(c, model, name + sizeof root - 1);
    if (!file_map(c->diags, path, out)) {
        diag_hint(c->diags, "a package is copied with all of its files");
        return false;
    }
    vec_push(c->arena, files, path);
    vec_push(c->arena, known, ((CmlFile){name, *out}));
    return true;
}
