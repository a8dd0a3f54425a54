/* tvmcc refit: a new checkpoint in a finished product, without code generation.
 *
 *     tvmcc refit net.tar.zst new.onnx -o new.tar.zst
 *     tvmcc refit net.json new.onnx -o net.weights      where the weights are in a file
 *
 * The new model is imported, optimised and lowered as the product was: target, shapes and level are
 * in the product's metadata, other options are given again.  The hash of the plan decides: it is
 * all that code depends on.  Then weights and hashes are replaced where they stand
 * (packaging/refit.c), so the result has the bytes that a build of the new model would have.
 */
#include "driver/job.h"

#include <cjson/cJSON.h>
#include <string.h>
#include <sys/stat.h>

typedef VEC(Member) Members;

typedef struct {
    Driver     *driver;
    const char *product;
    ModelDesc   was;
    Job         job;
    Member     *m; /* of an archive or a folder */
    uint32_t    n;
} Refitting;

/* ---- the product ------------------------------------------------------------------------------------ */

/* The only metadata in it. */
static bool find_metadata(Refitting *r)
{
    Diags        *d = r->driver->diags;
    Loc           loc = {.file = r->product};
    const Member *found = NULL;

    for (uint32_t i = 0; i < r->n; i++) {
        const char *share = strstr(r->m[i].path, "share/");

        if (!share || !str_ends(r->m[i].path, ".json"))
            continue;
        if (found)
            return diag_error(d, E_PACK, loc, "it has several models: build them again");
        found = &r->m[i];
    }
    if (!found)
        return diag_error(d, E_PACK, loc, "there is no metadata of a model in it");
    return metadata_read(d, r->driver->arena, found->path, found->data, &r->was);
}

/* Its top folder's name belongs to the paths, as in archives; the folder around it does too. */
static bool open_folder(Refitting *r)
{
    Arena      *a = r->driver->arena;
    size_t      n = strlen(r->product);
    const char *path, *slash;

    if (!bundle_read(r->driver->diags, a, r->product, (Bytes){0}, &r->m, &r->n))
        return false;
    while (n > 1 && r->product[n - 1] == '/')
        n--;
    path = arena_printf(a, "%.*s", (int)n, r->product);
    slash = strrchr(path, '/');
    for (uint32_t i = 0; i < r->n; i++) {
        if (strcmp(r->m[i].path, "manifest.json") != 0)
            continue;
        for (uint32_t k = 0; k < r->n; k++)
            r->m[k].path = arena_printf(a, "%s/%s", slash ? slash + 1 : path, r->m[k].path);
        break;
    }
    return find_metadata(r);
}

static bool open_product(Refitting *r)
{
    Driver     *driver = r->driver;
    struct stat st;
    Bytes       file;

    if (stat(r->product, &st) == 0 && S_ISDIR(st.st_mode))
        return open_folder(r);
    if (!file_map(driver->diags, r->product, &file))
        return false;
    if (pack_looks(file))
        return bundle_read(driver->diags, driver->arena, r->product, file, &r->m, &r->n) &&
               find_metadata(r);
    return metadata_read(driver->diags, driver->arena, r->product, file, &r->was);
}

/* ---- the new model ---------------------------------------------------------------------------------- */

/* What the metadata say is taken unless the command line does. */
static void recorded_options(Refitting *r)
{
    Driver  *driver = r->driver;
    Options *o = &driver->opt;

    if (!o->targets.n && !o->mtriple && !o->mcpu && !o->mattr)
        vec_push(driver->arena, &o->targets, r->was.targets);
    if (!o->opt_level_given)
        o->pass.opt_level = (int)r->was.level;
    o->entry = r->was.entry;
    o->weights_mode = r->was.weights_mode;
    o->weights_section = r->was.weights_section;
    for (uint32_t i = 0; i < r->was.nin && !o->shapes.n && !o->images.n && !o->dims.n; i++) {
        if (i == 0 && (o->adds.n || o->tensors.n))
            break;
        vec_push(driver->arena, &o->shapes,
                 ((ImportShape){.name = r->was.in[i].name,
                                .ndim = r->was.in[i].ndim,
                                .dims = r->was.in[i].dims}));
    }
    o->inputs.at[0] = o->inputs.at[1];
    o->inputs.n = 1;
}

/* The plan calls its model as the product does: the name of the file is no matter here. */
static bool compile_new(Refitting *r)
{
    Compiled *k = &r->job.k;
    Ctx      *c;
    Plan     *p;

    recorded_options(r);
    if (!job_start(r->driver, &r->job, "llvm"))
        return false;
    c = r->job.c;
    r->job.options.hash_model = true;
    if (!compile_target(c, k) || !compile_import(c, k) || !compile_graph(c, k) ||
        !compile_plan(c, k) || !compile_weights(c, k) || diag_errors(c->diags))
        return false;
    p = DUP_ARRAY(c->arena, k->plan, 1);
    p->model = intern(c->strings, r->was.model);
    k->plan = p;
    return compile_desc(c, k);
}

/* ---- the result -------------------------------------------------------------------------------------- */

static bool is_derived(const char *path)
{
    return str_ends(path, "/SHA256SUMS") || str_ends(path, "/manifest.json") ||
           str_ends(path, "/sbom.spdx.json") || str_ends(path, ".cmake") || str_ends(path, ".pc") ||
           str_ends(path, "/reports/memory.json") || str_ends(path, "/reports/size.json") ||
           str_ends(path, "/reports/coverage.json") || str_ends(path, "/tvmcc/abi.h") ||
           str_ends(path, "/licenses/tvmcc.txt") || str_ends(path, ".verify.json");
}

static const char *json_text(Arena *a, const cJSON *o, const char *key)
{
    const cJSON *v = cJSON_GetObjectItemCaseSensitive(o, key);

    return cJSON_IsString(v) ? arena_printf(a, "%s", v->valuestring) : NULL;
}

/* Name, version and licence as they were, and which parts there are. */
static void same_bundle(Refitting *r, Bundle *b)
{
    Arena *a = r->driver->arena;

    for (uint32_t i = 0; i < r->n; i++) {
        const char *path = strchr(r->m[i].path, '/');
        cJSON      *root;

        if (!path)
            continue;
        b->top = arena_printf(a, "%.*s", (int)(path - r->m[i].path), r->m[i].path);
        path++;
        b->contents |= str_starts(path, "lib/cmake/")       ? 1u << CONTENT_CMAKE
                       : str_starts(path, "lib/pkgconfig/") ? 1u << CONTENT_PKGCONFIG
                       : str_starts(path, "lib/")           ? 1u << CONTENT_LIB
                       : str_starts(path, "include/")       ? 1u << CONTENT_HEADER
                       : str_starts(path, "reports/")       ? 1u << CONTENT_REPORTS
                       : str_starts(path, "licenses/")      ? 1u << CONTENT_LICENSES
                       : str_ends(path, ".weights")         ? 1u << CONTENT_WEIGHTS
                       : str_starts(path, "share/")         ? 1u << CONTENT_METADATA
                       : str_starts(path, "sbom")           ? 1u << CONTENT_SBOM
                                                            : 0;
        if (strcmp(path, "manifest.json") != 0)
            continue;
        root = cJSON_ParseWithLength((const char *)r->m[i].data.at, r->m[i].data.n);
        b->name = json_text(a, root, "name");
        b->version = json_text(a, root, "version");
        b->license = json_text(a, root, "license");
        cJSON_Delete(root);
    }
    if (b->version && strcmp(b->version, "0") == 0)
        b->version = NULL;
}

/* A member where it belongs, with what is new in it. */
static bool sort_member(Refitting *r, const Member *m, const Refit *refit, BundlePart *part,
                        Members *extra)
{
    Arena      *a = r->driver->arena;
    const char *rest = strchr(m->path, '/') ? strchr(m->path, '/') + 1 : m->path;
    Bytes       data = m->data;
    Bytes      *to = str_starts(rest, "include/")    ? &part->header
                     : str_ends(rest, ".a")          ? &part->library
                     : str_ends(rest, ".so")         ? &part->shared
                     : str_ends(rest, ".weights")    ? &part->weights
                     : str_ends(rest, ".labels")     ? &part->labels
                     : str_ends(rest, "model.relay") ? &part->relay
                     : str_starts(rest, "share/")    ? &part->metadata
                                                     : NULL;

    if (is_derived(m->path))
        return true;
    if (!to) {
        vec_push(a, extra, ((Member){.path = rest, .data = data, .executable = m->executable}));
        return true;
    }
    if (to == &part->relay) { /* the graph is the new one's */
        StrBuf relay = strbuf(a);

        relay_print(r->job.c, r->job.k.imported, (RelayPrint){0}, &relay);
        *to = (Bytes){(const uint8_t *)relay.at, relay.n};
        return true;
    }
    return refit_file(r->driver->diags, a, m->path, data, refit, to);
}

static bool write_archive(Refitting *r, const Refit *refit)
{
    Driver    *driver = r->driver;
    BundlePart part = {.desc = refit->now};
    Bundle     b = {.nparts = 1, .parts = &part, .epoch = driver->opt.epoch};
    Members    extra = {0};
    PackFormat format = pack_format(driver->opt.output);
    Member    *m;
    uint32_t   n;
    Bytes      archive;

    if (format == PACK_NONE)
        return diag_error(driver->diags, E_USAGE, NO_LOC,
                          "the suffix of '%s' names no kind of archive", driver->opt.output);
    same_bundle(r, &b);
    for (uint32_t i = 0; i < r->n; i++)
        if (!sort_member(r, &r->m[i], refit, &part, &extra))
            return false;
    b.extra = extra.at;
    b.nextra = extra.n;
    return bundle_members(driver->diags, driver->arena, &b, &m, &n) &&
           pack_archive(driver->diags, driver->arena, format, b.epoch, m, n, &archive) &&
           file_write(driver->diags, driver->opt.output, archive);
}

int cmd_refit(Driver *driver)
{
    Refitting r = {.driver = driver};
    Refit     refit;

    if (driver->opt.inputs.n != 2 || !driver->opt.output)
        return !!diag_error(driver->diags, E_USAGE, NO_LOC,
                            "'refit' takes a product, a model, and -o");
    r.product = driver->opt.inputs.at[0];
    if (!open_product(&r) || !compile_new(&r) ||
        !refit_possible(driver->diags, r.product, &r.was, r.job.k.desc))
        return 1;
    refit = (Refit){&r.was, r.job.k.desc, r.job.k.weights};
    if (r.n)
        return !write_archive(&r, &refit);
    if (weights_inside(r.was.weights_mode))
        return !!diag_error(driver->diags, E_USAGE, NO_LOC,
                            "the weights of '%s' are in its library: refit its archive", r.product);
    return !file_write(driver->diags, driver->opt.output,
                       weights_file(driver->arena, refit.weights, refit.now->weights_sha));
}
