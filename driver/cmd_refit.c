/* tvmcc refit: a new checkpoint in a finished product, without code generation.
 *
 *     tvmcc refit net.tar.zst new.onnx -o new.tar.zst
 *     tvmcc refit net.json new.onnx -o net.weights      where the weights are in a file
 *     tvmcc refit release.tar net=new.onnx -o new.tar   one of several models; the others stay
 *
 * The new model is imported, optimised and lowered as the product was: target, shapes and level are
 * in the product's metadata, other options are given again.  The hash of the plan decides: it is
 * all that code depends on.  Then weights and hashes are replaced where they stand
 * (packaging/refit.c), so the result has the bytes that a build of the new model would have.
 */
#include "base/json.h"
#include "driver/job.h"

#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

typedef VEC(Member) Members;

/* A model for one triple. */
typedef struct {
    ModelDesc   was;
    const char *file; /* the new model; NULL: it stays */
    Refit       refit;
    Bytes       relay;  /* text of the new model */
    Bytes       source; /* ... as C, where that is what its target gives */
} Part;

typedef struct {
    Driver     *driver;
    const char *product;
    VEC(Part) parts;
    Member  *m; /* of an archive or a folder */
    uint32_t n;
} Refitting;

/* ---- the product ------------------------------------------------------------------------------------ */

static const char *below_top(const char *path)
{
    const char *slash = strchr(path, '/');

    return slash ? slash + 1 : path;
}

static bool add_part(Refitting *r, const char *file, Bytes text)
{
    Part part = {0};

    if (!metadata_read(r->driver->diags, r->driver->arena, file, text, &part.was))
        return false;
    vec_push(r->driver->arena, &r->parts, part);
    return true;
}

/* The metadata in it. */
static bool find_parts(Refitting *r)
{
    for (uint32_t i = 0; i < r->n; i++)
        if (strstr(r->m[i].path, "share/") && str_ends(r->m[i].path, ".json") &&
            !add_part(r, r->m[i].path, r->m[i].data))
            return false;
    return r->parts.n || diag_error(r->driver->diags, E_PACK, (Loc){.file = r->product},
                                    "there is no metadata of a model in it");
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
    return find_parts(r);
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
    if (pack_means(r->product, file))
        return bundle_read(driver->diags, driver->arena, r->product, file, &r->m, &r->n) &&
               find_parts(r);
    return add_part(r, r->product, file);
}

/* ---- which of its models ---------------------------------------------------------------------------- */

/* A hint with the names of all models, each once. */
static bool name_models(Refitting *r)
{
    StrBuf s = strbuf(r->driver->arena);

    for (uint32_t i = 0; i < r->parts.n; i++) {
        uint32_t k = 0;

        while (strcmp(r->parts.at[k].was.entry, r->parts.at[i].was.entry) != 0)
            k++;
        if (k == i)
            str_printf(&s, "%s'%s'", i ? ", " : "", r->parts.at[i].was.entry);
    }
    diag_hint(r->driver->diags, "its models are %s", s.at);
    return false;
}

static bool one_model(const Refitting *r)
{
    for (uint32_t i = 1; i < r->parts.n; i++)
        if (strcmp(r->parts.at[i].was.entry, r->parts.at[0].was.entry) != 0)
            return false;
    return true;
}

/* `new.onnx` for the only model, `net=new.onnx` for one by name: for all machines that it is for.
 */
static bool choose(Refitting *r, const char *word)
{
    Diags      *d = r->driver->diags;
    Loc         loc = {.file = r->product};
    const char *equals = strchr(word, '='), *file = word, *name = r->parts.at[0].was.entry;
    bool        found = false;

    if (equals && !(one_model(r) && access(word, F_OK) == 0)) {
        name = arena_printf(r->driver->arena, "%.*s", (int)(equals - word), word);
        file = equals + 1;
    } else if (!one_model(r)) {
        diag_error(d, E_USAGE, loc, "it has several models: say '<model>=%s'", word);
        return name_models(r);
    }
    for (uint32_t i = 0; i < r->parts.n; i++) {
        Part *p = &r->parts.at[i];

        if (strcmp(p->was.entry, name) != 0)
            continue;
        if (p->file)
            return diag_error(d, E_USAGE, loc, "two files for the model '%s'", name);
        p->file = file;
        found = true;
    }
    if (found)
        return true;
    diag_error(d, E_USAGE, loc, "it has no model '%s'", name);
    return name_models(r);
}

/* ---- the new model ---------------------------------------------------------------------------------- */

/* What the metadata say is taken unless the command line does. */
static void recorded_options(Driver *driver, const Part *p)
{
    Options         *o = &driver->opt;
    const ModelDesc *was = &p->was;

    if (!o->compile.targets.n && !o->compile.mtriple && !o->compile.mcpu && !o->compile.mattr)
        vec_push(driver->arena, &o->compile.targets, was->targets);
    if (!o->compile.opt_level_given)
        o->compile.passes.opt_level = (int)was->level;
    o->compile.entry = was->entry;
    o->compile.weights_mode = was->weights_mode;
    o->compile.weights_section = was->weights_section;
    for (uint32_t i = 0;
         i < was->nin && !o->compile.shapes.n && !o->compile.images.n && !o->compile.dims.n; i++) {
        if (i == 0 && (o->compile.adds.n || o->compile.tensors.n))
            break;
        vec_push(driver->arena, &o->compile.shapes,
                 ((ImportShape){
                     .name = was->in[i].name, .ndim = was->in[i].ndim, .dims = was->in[i].dims}));
    }
    o->inputs = (TextList){0};
    vec_push(driver->arena, &o->inputs, p->file);
}

/* The plan calls its model as the product does: the name of the file is no matter here. */
static bool compile_new(Driver *driver, Part *part)
{
    Job       job = {0};
    Compiled *k = &job.k;
    Ctx      *c;
    Plan     *p;
    StrBuf    relay = strbuf(driver->arena);

    recorded_options(driver, part);
    if (driver->c) /* of the model before */
        ctx_free(driver->c);
    driver->c = NULL;
    if (!job_start(driver, &job, "llvm"))
        return false;
    c = job.c;
    job.options.hash_model = true;
    if (!compile_target(c, k) || !compile_import(c, k) || !compile_graph(c, k) ||
        !compile_plan(c, k) || !compile_weights(c, k) || diag_errors(c->diags))
        return false;
    p = DUP_ARRAY(c->arena, k->plan, 1);
    p->model = intern(c->strings, part->was.model);
    k->plan = p;
    if (!compile_desc(c, k))
        return false;
    relay_print(c, k->imported, (RelayPrint){0}, &relay);
    part->relay = (Bytes){(const uint8_t *)relay.at, relay.n};
    part->refit = (Refit){&part->was, k->desc, k->weights};
    return !k->backend->is_source || compile_code(c, k, EMIT_SOURCE, &part->source);
}

/* All models that get other weights, each with the options of the command line and its own. */
static bool compile_all_new(Refitting *r)
{
    const Options given = r->driver->opt;
    bool          ok = true;

    for (uint32_t i = 0; ok && i < r->parts.n; i++) {
        Part *p = &r->parts.at[i];

        if (!p->file)
            continue;
        r->driver->opt = given;
        ok = compile_new(r->driver, p) &&
             refit_possible(r->driver->diags, r->product, &p->was, p->refit.now);
    }
    r->driver->opt = given;
    return ok;
}

/* ---- the result -------------------------------------------------------------------------------------- */

/* What was verified is no more, unless it was a model that stays. */
static bool is_outdated(const Refitting *r, const char *path)
{
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;

    if (!str_ends(path, ".verify.json"))
        return false;
    for (uint32_t i = 0; i < r->parts.n; i++) {
        const Part *p = &r->parts.at[i];

        if (!p->file && str_starts(name, p->was.entry) &&
            strcmp(name + strlen(p->was.entry), ".verify.json") == 0)
            return false;
    }
    return true;
}

static bool is_derived(const char *path)
{
    return str_ends(path, "/SHA256SUMS") || str_ends(path, "/manifest.json") ||
           str_ends(path, "/sbom.spdx.json") || str_ends(path, ".cmake") || str_ends(path, ".pc") ||
           str_ends(path, "/reports/memory.json") || str_ends(path, "/reports/size.json") ||
           str_ends(path, "/reports/coverage.json") || str_ends(path, "/tvmcc/abi.h") ||
           str_ends(path, "/licenses/tvmcc.txt");
}

static const char *json_text(Arena *a, json_t *o, const char *key)
{
    json_t *v = json_object_get(o, key);

    return json_is_string(v) ? arena_printf(a, "%s", json_string_value(v)) : NULL;
}

/* Name, version and licence as they were, and which parts there are. */
static void same_bundle(Refitting *r, Bundle *b)
{
    Arena *a = r->driver->arena;

    for (uint32_t i = 0; i < r->n; i++) {
        const char *path = strchr(r->m[i].path, '/');
        json_t     *root;

        if (!path)
            continue;
        b->top = arena_printf(a, "%.*s", (int)(path - r->m[i].path), r->m[i].path);
        path++;
        b->contents |= str_starts(path, "lib/cmake/")  ? 1u << CONTENT_CMAKE
                       : str_ends(path, ".pc")         ? 1u << CONTENT_PKGCONFIG
                       : str_starts(path, "lib/")      ? 1u << CONTENT_LIB
                       : str_starts(path, "src/")      ? 1u << CONTENT_LIB
                       : str_starts(path, "include/")  ? 1u << CONTENT_HEADER
                       : str_starts(path, "reports/")  ? 1u << CONTENT_REPORTS
                       : str_starts(path, "licenses/") ? 1u << CONTENT_LICENSES
                       : str_ends(path, ".weights")    ? 1u << CONTENT_WEIGHTS
                       : str_starts(path, "share/")    ? 1u << CONTENT_METADATA
                       : str_starts(path, "sbom")      ? 1u << CONTENT_SBOM
                                                       : 0;
        if (strcmp(path, "manifest.json") != 0)
            continue;
        root = json_read(r->m[i].data, NULL);
        b->name = json_text(a, root, "name");
        b->version = json_text(a, root, "version");
        b->license = json_text(a, root, "license");
        json_decref(root);
    }
    if (b->version && strcmp(b->version, "0") == 0)
        b->version = NULL;
}

/* Where a member belongs to: docs/archive.md.  With several triples each has a folder. */
static Bytes *place_of(Arena *a, const char *rest, const ModelDesc *d, bool several,
                       BundlePart *part)
{
    const char *own = several ? arena_printf(a, "%s/", d->triple) : "";
    const struct {
        const char *path;
        Bytes      *to;
    } rows[] = {
        {arena_printf(a, "include/%s%s.h", own, d->entry), &part->header},
        {arena_printf(a, "lib/%s/lib%s.a", d->triple, d->entry), &part->library},
        {arena_printf(a, "lib/%s/lib%s.so", d->triple, d->entry), &part->shared},
        {arena_printf(a, "src/%s.c", d->entry), &part->source},
        {arena_printf(a, "share/%s/%s%s.json", d->entry, own, d->entry), &part->metadata},
        {arena_printf(a, "share/%s/%smodel.relay", d->entry, own), &part->relay},
        {arena_printf(a, "share/%s/%s%s.labels", d->entry, own, d->entry), &part->labels},
        {arena_printf(a, "share/%s/%s%s.weights", d->entry, own, d->entry), &part->weights},
    };

    for (size_t i = 0; i < COUNT(rows); i++)
        if (strcmp(rows[i].path, rest) == 0)
            return rows[i].to;
    return NULL;
}

/* A member where it belongs, with what is new in it. */
static bool sort_member(Refitting *r, const Member *m, bool several, BundlePart *parts,
                        Members *extra)
{
    Arena      *a = r->driver->arena;
    const char *rest = below_top(m->path);

    if (is_derived(m->path) || is_outdated(r, m->path))
        return true;
    for (uint32_t i = 0; i < r->parts.n; i++) {
        const Part *p = &r->parts.at[i];
        Bytes      *to = place_of(a, rest, &p->was, several, &parts[i]);

        if (!to)
            continue;
        if (!p->file)
            *to = m->data;
        else if (to == &parts[i].relay) /* the graph is the new one's */
            *to = p->relay;
        else if (to == &parts[i].source)
            *to = p->source;
        else
            return refit_file(r->driver->diags, a, m->path, m->data, &p->refit, to);
        return true;
    }
    vec_push(a, extra, ((Member){.path = rest, .data = m->data, .executable = m->executable}));
    return true;
}

static bool write_archive(Refitting *r)
{
    Driver     *driver = r->driver;
    BundlePart *parts = NEW_ARRAY(driver->arena, BundlePart, r->parts.n);
    Bundle      b = {.nparts = r->parts.n, .parts = parts, .epoch = driver->opt.compile.epoch};
    Members     extra = {0};
    PackFormat  format = pack_format(driver->opt.output);
    Member     *m;
    uint32_t    n;
    BytesList   archive;
    bool        several;

    if (format == PACK_NONE)
        return diag_error(driver->diags, E_USAGE, NO_LOC,
                          "the suffix of '%s' names no kind of archive", driver->opt.output);
    for (uint32_t i = 0; i < r->parts.n; i++)
        parts[i].desc = r->parts.at[i].file ? r->parts.at[i].refit.now : &r->parts.at[i].was;
    several = bundle_several_triples(&b);
    same_bundle(r, &b);
    for (uint32_t i = 0; i < r->n; i++)
        if (!sort_member(r, &r->m[i], several, parts, &extra))
            return false;
    b.extra = extra.at;
    b.nextra = extra.n;
    return bundle_members(driver->diags, driver->arena, &b, &m, &n) &&
           pack_archive(driver->diags, driver->arena, format, b.epoch, m, n, &archive) &&
           file_write_pieces(driver->diags, driver->opt.output, archive);
}

int cmd_refit(Driver *driver)
{
    Refitting   r = {.driver = driver};
    const Part *p;

    if (driver->opt.inputs.n < 2 || !driver->opt.output)
        return !!diag_error(driver->diags, E_USAGE, NO_LOC,
                            "'refit' takes a product, a model, and -o");
    r.product = driver->opt.inputs.at[0];
    if (!open_product(&r))
        return 1;
    for (uint32_t i = 1; i < driver->opt.inputs.n; i++)
        if (!choose(&r, driver->opt.inputs.at[i]))
            return 1;
    if (!compile_all_new(&r))
        return 1;
    if (r.n)
        return !write_archive(&r);
    p = r.parts.at;
    if (weights_inside(p->was.weights_mode))
        return !!diag_error(driver->diags, E_USAGE, NO_LOC,
                            "the weights of '%s' are in its library: refit its archive", r.product);
    return !file_write(driver->diags, driver->opt.output,
                       weights_file(driver->arena, p->refit.weights, p->refit.now->weights_sha));
}
