/* gather.c: which files belong to which model.
 *
 * A bundle is packed from the files that build steps wrote, in any order, from any folder.  Each
 * model brings its metadata; every other file says itself where it belongs:
 *
 *   libraries             hold the build id of the metadata, in the model's info
 *   models as C           do, too
 *   header                gives its functions the names of the metadata's interface
 *   weights               hold the hash that the metadata names
 *   objects               are members of the library of the only model
 *   net.relay net.labels  are named like the metadata, or like its entry
 *   *.log                 go to tuning/, *.coverage.json and *.verify.json to reports/,
 *                         LICENSE, COPYING, NOTICE and *.license to licenses/
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* memmem */
#endif
#include "packaging/packaging.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_PARTS = 4096, WEIGHTS_HEADER = 64, WEIGHTS_SHA = 32 };

typedef VEC(BundlePart) Parts;
typedef VEC(Member) Members;

typedef struct {
    Diags *d;
    Arena *a;
    Parts  parts;
    VEC(const char *) stems; /* of the metadata of each part: path without suffix */
    Members objects, extra;
} Gather;

static const char *file_name(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash ? slash + 1 : path;
}

static const char *without(Arena *a, const char *text, const char *suffix)
{
    return arena_printf(a, "%.*s", (int)(strlen(text) - strlen(suffix)), text);
}

static bool is_report(const char *name)
{
    return str_ends(name, ".coverage.json") || str_ends(name, ".verify.json") ||
           strcmp(name, "coverage.json") == 0 || strcmp(name, "verify.json") == 0;
}

static bool is_license(const char *name)
{
    return str_starts(name, "LICENSE") || str_starts(name, "COPYING") ||
           str_starts(name, "NOTICE") || str_ends(name, ".license");
}

/* An error if the part has one already. */
static bool set(Gather *g, Bytes *field, const Member *f, const char *what, const BundlePart *p)
{
    if (field->n && (field->n != f->data.n || memcmp(field->at, f->data.at, f->data.n) != 0))
        return diag_error(g->d, E_PACK, (Loc){.file = f->path}, "a second %s of '%s'", what,
                          p->desc->entry);
    *field = f->data;
    return true;
}

static bool nobodys(Gather *g, const Member *f)
{
    diag_error(g->d, E_PACK, (Loc){.file = f->path},
               "this file belongs to none of the models that are packed");
    diag_hint(g->d, "the metadata of its model (.json) must be there too, from the same build");
    return false;
}

/* ---- one file --------------------------------------------------------------------------------------- */

static bool has_build_id(const BundlePart *p, const Member *f)
{
    return memmem(f->data.at, f->data.n, p->desc->build_id.b, 32) != NULL;
}

static bool is_header_of(Arena *a, const BundlePart *p, const Member *f)
{
    const char *e = p->desc->entry;
    const char *line =
        arena_printf(a, "#define %s_run_ex %s_run_ex_header_%s\n", e, e, p->desc->header);

    return memmem(f->data.at, f->data.n, line, strlen(line)) != NULL;
}

static bool check_soname(Gather *g, const Member *f, const BundlePart *p)
{
    const char *want = arena_printf(g->a, "lib%s.so", p->desc->entry);
    Object      o;

    if (!elf_read(diags_new(g->a), g->a, "", f->data, &o) || !o.soname ||
        strcmp(o.soname, want) == 0)
        return true;
    diag_error(g->d, E_PACK, (Loc){.file = f->path},
               "programs would look for '%s', but the archive has '%s'", o.soname, want);
    diag_hint(g->d, "link it with -o %s", want);
    return false;
}

static bool add_library(Gather *g, const Member *f, bool shared)
{
    for (uint32_t i = 0; i < g->parts.n; i++) {
        BundlePart *p = &g->parts.at[i];

        if (has_build_id(p, f))
            return (!shared || check_soname(g, f, p)) &&
                   set(g, shared ? &p->shared : &p->library, f,
                       shared ? "shared library" : "library", p);
    }
    return nobodys(g, f);
}

/* Under the name that the archive gives it. */
static bool includes_header(Gather *g, const Member *f, const BundlePart *p)
{
    const char *line = arena_printf(g->a, "#include \"%s.h\"\n", p->desc->entry);

    if (memmem(f->data.at, f->data.n, line, strlen(line)))
        return true;
    diag_error(g->d, E_PACK, (Loc){.file = f->path}, "it does not include '%s.h', its header here",
               p->desc->entry);
    diag_hint(g->d, "write it with -o %s.c", p->desc->entry);
    return false;
}

static bool add_source(Gather *g, const Member *f, const SourceInfo *info)
{
    for (uint32_t i = 0; i < g->parts.n; i++) {
        BundlePart *p = &g->parts.at[i];

        if (memcmp(p->desc->build_id.b, info->build_id.b, sizeof info->build_id.b) == 0)
            return includes_header(g, f, p) && set(g, &p->source, f, "C file", p);
    }
    return nobodys(g, f);
}

/* A model for several machines may have the same interface on all of them. */
static bool add_header(Gather *g, const Member *f)
{
    bool found = strcmp(file_name(f->path), "abi.h") == 0;

    for (uint32_t i = 0; i < g->parts.n; i++)
        if (is_header_of(g->a, &g->parts.at[i], f)) {
            g->parts.at[i].header = f->data;
            found = true;
        }
    return found || nobodys(g, f);
}

/* Several builds may share one weights file. */
static bool add_weights(Gather *g, const Member *f)
{
    bool found = false, ok = true;

    for (uint32_t i = 0; i < g->parts.n; i++) {
        BundlePart *p = &g->parts.at[i];

        if (weights_inside(p->desc->weights_mode) ||
            memcmp(f->data.at + WEIGHTS_SHA, p->desc->weights_sha.b, 32) != 0)
            continue;
        found = true;
        ok = set(g, &p->weights, f, "weights file", p) && ok;
    }
    return found ? ok : nobodys(g, f);
}

/* By name: like the metadata beside it, or like the entry, or the only model's. */
static bool add_by_name(Gather *g, const Member *f, const char *suffix, size_t field)
{
    const char *stem = without(g->a, f->path, suffix);
    BundlePart *found = g->parts.n == 1 ? &g->parts.at[0] : NULL;

    for (uint32_t i = 0; i < g->parts.n && !found; i++)
        if (strcmp(g->stems.at[i], stem) == 0)
            found = &g->parts.at[i];
    for (uint32_t i = 0; i < g->parts.n && !found; i++)
        if (strcmp(g->parts.at[i].desc->entry, file_name(stem)) == 0)
            found = &g->parts.at[i];
    return found ? set(g, (Bytes *)(void *)((char *)found + field), f, suffix + 1, found)
                 : nobodys(g, f);
}

static bool add_metadata(Gather *g, const Member *f)
{
    ModelDesc *desc = NEW(g->a, ModelDesc);
    BundlePart p = {.desc = desc, .metadata = f->data};

    if (!metadata_read(g->d, g->a, f->path, f->data, desc))
        return false;
    for (uint32_t i = 0; i < g->parts.n; i++) /* the same file again is no mistake */
        if (memcmp(g->parts.at[i].desc->build_id.b, desc->build_id.b, 32) == 0 &&
            strcmp(g->parts.at[i].desc->entry, desc->entry) == 0)
            return set(g, &g->parts.at[i].metadata, f, "metadata", &g->parts.at[i]);
    if (g->parts.n >= MAX_PARTS)
        return diag_error(g->d, E_PACK, NO_LOC, "more than %d models", MAX_PARTS);
    vec_push(g->a, &g->parts, p);
    vec_push(g->a, &g->stems, without(g->a, f->path, ".json"));
    return true;
}

static void add_extra(Gather *g, const char *folder, const Member *f)
{
    Member m = {.path = arena_printf(g->a, "%s/%s", folder, file_name(f->path)), .data = f->data};

    vec_push(g->a, &g->extra, m);
}

static bool add_file(Gather *g, const Member *f)
{
    const char *name = file_name(f->path);
    SourceInfo  source;

    if (ar_is_library(f->data))
        return add_library(g, f, false);
    if (object_is_shared(f->data))
        return add_library(g, f, true);
    if (f->data.n >= WEIGHTS_HEADER && memcmp(f->data.at, "TVMCCWT1", 8) == 0)
        return add_weights(g, f);
    if (object_format(f->data) == OBJECT_ELF || str_ends(name, ".o") || str_ends(name, ".obj")) {
        vec_push(g->a, &g->objects, *f);
        return true;
    }
    if (str_ends(name, ".h"))
        return add_header(g, f);
    if (source_read(g->a, f->data, &source))
        return add_source(g, f, &source);
    if (str_ends(name, ".relay"))
        return add_by_name(g, f, ".relay", offsetof(BundlePart, relay));
    if (str_ends(name, ".labels"))
        return add_by_name(g, f, ".labels", offsetof(BundlePart, labels));
    if (str_ends(name, ".log") || is_report(name) || is_license(name)) {
        add_extra(g, is_report(name) ? "reports" : is_license(name) ? "licenses" : "tuning", f);
        return true;
    }
    diag_error(g->d, E_PACK, (Loc){.file = f->path},
               "no part of an archive is made of such a file");
    diag_hint(g->d, "--add=<path in the archive>=<file> takes any");
    return false;
}

/* ---- all files --------------------------------------------------------------------------------------- */

/* Members of a library are in byte order of their names, whatever the order of the files was. */
static int by_name(const void *a, const void *b)
{
    return strcmp(file_name(((const Member *)a)->path), file_name(((const Member *)b)->path));
}

static bool add_objects(Gather *g)
{
    BundlePart *p = g->parts.at;
    Bytes       library;

    if (!g->objects.n)
        return true;
    if (g->parts.n != 1 || p->library.n)
        return diag_error(g->d, E_PACK, (Loc){.file = g->objects.at[0].path},
                          "objects are packed for one model without a library, not %u; link them "
                          "to libraries first",
                          g->parts.n);
    qsort(g->objects.at, g->objects.n, sizeof *g->objects.at, by_name);
    if (!ar_library(g->d, g->a, g->objects.at, g->objects.n, &library))
        return false;
    p->library = library;
    return true;
}

static int by_entry(const void *a, const void *b)
{
    const ModelDesc *x = ((const BundlePart *)a)->desc, *y = ((const BundlePart *)b)->desc;
    int              order = strcmp(x->entry, y->entry);

    return order ? order : strcmp(x->triple, y->triple);
}

static bool complete(Gather *g)
{
    for (uint32_t i = 0; i < g->parts.n; i++) {
        const BundlePart *p = &g->parts.at[i];

        if (!p->library.n && !p->shared.n && !p->source.n)
            return diag_error(g->d, E_PACK, NO_LOC, "the %s of '%s' for '%s' is not there",
                              strcmp(p->desc->triple, "any") == 0 ? "C file" : "library",
                              p->desc->entry, p->desc->triple);
        if (!p->header.n)
            return diag_error(g->d, E_PACK, NO_LOC, "the header of '%s' for '%s' is not there",
                              p->desc->entry, p->desc->triple);
        if (!weights_inside(p->desc->weights_mode) && !p->weights.n)
            return diag_error(g->d, E_PACK, NO_LOC, "the weights of '%s' for '%s' are not there",
                              p->desc->entry, p->desc->triple);
    }
    return true;
}

static bool is_metadata(const Member *f)
{
    return str_ends(f->path, ".json") && !is_report(file_name(f->path));
}

bool bundle_gather(Diags *d, Arena *a, const Member *files, uint32_t n, Bundle *b)
{
    Gather g = {.d = d, .a = a};
    bool   ok = true;

    for (uint32_t i = 0; i < n; i++)
        if (is_metadata(&files[i]))
            ok = add_metadata(&g, &files[i]) && ok;
    if (ok && !g.parts.n)
        return diag_error(d, E_PACK, NO_LOC, "the metadata of a model (.json) is needed");
    for (uint32_t i = 0; i < n; i++)
        if (!is_metadata(&files[i]))
            ok = add_file(&g, &files[i]) && ok;
    ok = ok && add_objects(&g) && complete(&g);
    if (g.parts.n)
        qsort(g.parts.at, g.parts.n, sizeof *g.parts.at, by_entry);
    b->parts = g.parts.at;
    b->nparts = g.parts.n;
    b->extra = g.extra.at;
    b->nextra = g.extra.n;
    return ok;
}
