/* Data of tensors in files beside the model.
 *
 *     location   a path that stays below the model's folder
 *     offset     of the first byte, 0 unless given
 *     length     bytes; unless given, as many as the shape needs
 *
 * Symbolic links may not lead out of the folder either; a model that is a link itself may have its
 * data where it really lies, as caches of downloads do.  A file is mapped once, however many
 * tensors are in it, and tensors may share bytes. */
#include "frontends/onnx/onnx.h"

#include <string.h>

typedef struct {
    const char *location, *offset, *length; /* NULL: not said */
} Place;

static Place place_of(const OnnxTensor *t)
{
    Place p = {0};

    for (uint32_t i = 0; i < t->external_data.n; i++) {
        const OnnxEntry *e = t->external_data.at[i];

        if (!e->key || !e->value)
            continue;
        if (!strcmp(e->key, "location"))
            p.location = e->value;
        else if (!strcmp(e->key, "offset"))
            p.offset = e->value;
        else if (!strcmp(e->key, "length"))
            p.length = e->value;
    }
    return p;
}

static bool number(const char *text, uint64_t *out)
{
    *out = 0;
    if (!*text)
        return false;
    for (; *text; text++)
        if (*text < '0' || *text > '9' || !checked_mul(*out, (uint64_t)10, out) ||
            !checked_add(*out, (uint64_t)(*text - '0'), out))
            return false;
    return true;
}

static bool leads_out(const char *location)
{
    return location[0] == '/' || strchr(location, '\\') || !strcmp(location, "..") ||
           str_starts(location, "../") || strstr(location, "/../") || str_ends(location, "/..");
}

/* Of real paths: is it in the folder of `beside`, or below? */
static bool is_near(const char *file, const char *beside)
{
    size_t n = beside ? (size_t)(strrchr(beside, '/') - beside) + 1 : 0;

    return n && !strncmp(file, beside, n);
}

/* Where the file really lies if that is outside; what is not there is somebody else's error. */
static const char *linked_out(Import *im, const char *path)
{
    Arena      *a = im->c->scratch;
    const char *slash = strrchr(im->path, '/');
    const char *folder = slash ? arena_printf(a, "%.*s", (int)(slash - im->path), im->path) : ".";
    const char *file = file_real(a, path), *real = file_real(a, slash == im->path ? "/" : folder);

    if (!file || !real || is_near(file, arena_printf(a, "%s/", strcmp(real, "/") ? real : "")) ||
        is_near(file, file_real(a, im->path)))
        return NULL;
    return file;
}

/* The whole file. */
static bool map_beside(Import *im, const char *name, const char *location, Loc loc, Bytes *out)
{
    Ctx        *c = im->c;
    const char *slash = strrchr(im->path, '/');
    const char *path =
        slash ? intern_printf(c->strings, "%.*s/%s", (int)(slash - im->path), im->path, location)
              : intern(c->strings, location);
    const char *real;
    Bytes      *known = map_get(im->mapped, PTR_KEY(path));

    if (known) {
        *out = *known;
        return true;
    }
    if ((real = linked_out(im, path)))
        return error_at(c, E_IMPORT, loc,
                        "tensor '%s': its data may not lie outside the model's folder, but '%s' is "
                        "a link to '%s'",
                        name, location, real);
    if (!file_map(c->diags, path, out)) {
        diag_note(c->diags, loc, "it should hold the data of tensor '%s'", name);
        diag_hint(c->diags, "files with weights belong beside the model: copy them along with it");
        return false;
    }
    vec_push(c->arena, im->files, path);
    known = NEW(c->arena, Bytes);
    *known = *out;
    map_put(im->mapped, PTR_KEY(path), known);
    return true;
}

bool onnx_external(Import *im, const OnnxTensor *t, const char *name, Loc loc, uint64_t need,
                   Bytes *out)
{
    Ctx     *c = im->c;
    Place    p = place_of(t);
    uint64_t from = 0, n = need;
    Bytes    file;

    if (!p.location || !*p.location)
        return error_at(c, E_IMPORT, loc, "tensor '%s' does not say where its data are", name);
    if (leads_out(p.location))
        return error_at(c, E_IMPORT, loc,
                        "tensor '%s': its data may not lie outside the model's folder, in '%s'",
                        name, p.location);
    if (p.offset && !number(p.offset, &from))
        return error_at(c, E_IMPORT, loc, "tensor '%s': its offset in '%s' is '%s', no number",
                        name, p.location, p.offset);
    if (p.length && !number(p.length, &n))
        return error_at(c, E_IMPORT, loc, "tensor '%s': its length in '%s' is '%s', no number",
                        name, p.location, p.length);
    if (!map_beside(im, name, p.location, loc, &file))
        return false;
    if (from > file.n || n > file.n - from) {
        error_at(c, E_IMPORT, loc, "tensor '%s': '%s' has %zu bytes, not %llu from byte %llu on",
                 name, p.location, file.n, (unsigned long long)n, (unsigned long long)from);
        diag_hint(c->diags, "the file was cut off, or belongs to another model");
        return false;
    }
    *out = (Bytes){file.at + from, n};
    return true;
}
