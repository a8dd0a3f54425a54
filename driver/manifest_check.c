/* What a manifest says about the world: that its files are there, that its target strings name
 * targets, its flags options and its passes passes.  manifest/ knows none of these.
 *
 * The compiler's own functions judge; their errors have no place, so they are recorded apart and
 * adopted at the place in the manifest that caused them. */
#include "backends/backend.h"
#include "driver/manifest_job.h"
#include "ops/ops.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

typedef struct {
    Driver         *driver;
    Diags          *d;
    Arena          *a;
    const Manifest *m;
    Map            *seen; /* places that were checked: products share their model's */
    Strings        *names;
} Check;

const char *manifest_path(const Driver *driver)
{
    const Options *o = &driver->opt;
    char           letter = o->command->letter;

    if (o->manifest)
        return o->manifest;
    /* check, fmt and lock take nothing else, so it may stand without -m */
    return strchr("kfl", letter) && o->inputs.n ? o->inputs.at[0] : "manifest.yaml";
}

/* ---- files ---------------------------------------------------------------------------------------- */

/* Once for each path at each place. */
static bool first_time(Check *k, const ManText *t)
{
    const char *key =
        intern_printf(k->names, "%s:%u:%u:%s", t->loc.file, t->loc.line, t->loc.col, t->text);

    if (map_get(k->seen, PTR_KEY(key)))
        return false;
    map_put(k->seen, PTR_KEY(key), k);
    return true;
}

static bool check_file(Check *k, const ManText *path)
{
    struct stat st;

    if (!path->given || !first_time(k, path))
        return false;
    if (stat(path->text, &st) != 0)
        return diag_error(k->d, E_MANIFEST_FILE, path->loc, "'%s': %s", path->text,
                          strerror(errno));
    return S_ISREG(st.st_mode) ||
           diag_error(k->d, E_MANIFEST_FILE, path->loc, "'%s' is not a file", path->text);
}

static void check_source(Check *k, const ManSource *s)
{
    Diags *quiet;
    Bytes  file;
    char   hex[65];

    if (check_file(k, &s->path) && s->sha256.given) {
        quiet = diags_new(k->a);
        if (file_map(quiet, s->path.text, &file)) {
            sha256_hex(sha256(file), hex);
            if (strcmp(hex, s->sha256.text) != 0) {
                diag_error(k->d, E_MANIFEST_FILE, s->sha256.loc, "'%s' is another file than this",
                           s->path.text);
                diag_hint(k->d, "its sha256 is %s", hex);
            }
        }
        diag_adopt(k->d, quiet, E_MANIFEST_FILE, s->path.loc, s->path.text);
        file_unmap_all(quiet);
    }
}

static void check_one(void *user, const ManText *path)
{
    check_file(user, path);
}

/* ---- targets --------------------------------------------------------------------------------------- */

static void try_target(Check *k, const char *text, Loc loc, const char *who)
{
    Diags         *quiet = diags_new(k->a);
    Ctx           *c = ctx_new(k->a, quiet, op_table);
    size_t         n = strcspn(text, " ,");
    const char    *kind = arena_printf(k->a, "%.*s", (int)n, text);
    const Backend *backend = backend_find(kind);

    if (!backend)
        backend = backend_cpu(); /* a bare triple */
    backend->parse_target(c, text);
    diag_adopt(k->d, quiet, E_MANIFEST_REF, loc, who);
    ctx_free(c);
}

static void check_pair(Check *k, const ManPair *p)
{
    const ManHost   *h = manifest_host(k->m, p->host.text);
    const ManTarget *t = manifest_target(k->m, p->target.text);
    const char      *who = arena_printf(k->a, "pair '%s'", p->key);

    try_target(k, manifest_target_text(k->a, h, t), p->loc, who);
    for (uint32_t i = 0; i < h->variants.n; i++) {
        ManHost variant = *h;

        variant.mcpu = h->variants.at[i];
        try_target(k, manifest_target_text(k->a, &variant, t), variant.mcpu.loc, who);
    }
    for (uint32_t i = 0; i < p->fallback.n; i++) {
        const ManText *name = &p->fallback.at[i];

        try_target(k, manifest_target_text(k->a, h, manifest_target(k->m, name->text)), name->loc,
                   who);
    }
}

/* ---- passes, flags, warnings --------------------------------------------------------------------- */

static void check_passes(Check *k, const ManTexts *list, bool disabled)
{
    const char **names = NEW_ARRAY(k->a, const char *, pass_count), *closest;

    for (uint32_t i = 0; i < pass_count; i++)
        names[i] = pass_table[i].name;
    for (uint32_t i = 0; i < list->n; i++) {
        const ManText *t = &list->at[i];

        if (!first_time(k, t))
            continue;
        if (pass_find(t->text)) {
            if (disabled && pass_find(t->text)->opt == NEEDED)
                diag_error(k->d, E_MANIFEST_REF, t->loc, "nothing is compiled without pass '%s'",
                           t->text);
            continue;
        }
        diag_error(k->d, E_MANIFEST_REF, t->loc, "there is no pass '%s'", t->text);
        if ((closest = str_closest(t->text, names, pass_count)))
            diag_hint(k->d, "did you mean '%s'?", closest);
    }
}

/* All words of the product are options, and those of `flags` do not say what keys are for. */
static void check_flags(Check *k, const ManBuild *b)
{
    const ManTexts *flags = &b->product.flags;

    for (uint32_t i = 0; i < flags->n; i++) {
        Diags      *quiet = diags_new(k->a);
        Options     o;
        const char *words[] = {"-c", flags->at[i].text, "net.onnx"};

        if (!first_time(k, &flags->at[i]))
            continue;
        options_parse(quiet, k->a, COUNT(words), words, &o);
        diag_adopt(k->d, quiet, E_MANIFEST_VALUE, flags->at[i].loc, "'flags'");
        if (flags->at[i].text[0] != '-')
            diag_error(k->d, E_MANIFEST_VALUE, flags->at[i].loc, "'flags': '%s' is no option",
                       flags->at[i].text);
        else if (o.output || o.depfile || o.show || o.emit & ~(1u << PRODUCT_OBJECT))
            diag_error(k->d, E_MANIFEST_VALUE, flags->at[i].loc,
                       "'flags': what is written, and where, is not for '%s' to say",
                       flags->at[i].text);
    }
}

static void check_warnings(Check *k, const ManDiagnostics *d)
{
    for (uint32_t i = 0; i < d->werror.n; i++) {
        const ManText *t = &d->werror.at[i];

        if (strcmp(t->text, "all") == 0 || diag_flag_of(t->text))
            continue;
        diag_error(k->d, E_MANIFEST_REF, t->loc, "there is no warning '%s'", t->text);
        diag_hint(k->d, "tvmcc --help=warnings lists them");
    }
}

/* ---- all of it --------------------------------------------------------------------------------------- */

bool manifest_check(Driver *driver, const Manifest *m)
{
    uint32_t  before = diag_errors(driver->diags);
    ManBuilds builds = manifest_builds(m, driver->arena);
    Check     k = {driver, driver->diags,          driver->arena,
                   m,      map_new(driver->arena), strings_new(driver->arena)};

    for (uint32_t i = 0; i < m->pairs.n; i++)
        check_pair(&k, &m->pairs.at[i]);
    check_warnings(&k, &m->defaults.diagnostics);
    for (uint32_t i = 0; i < builds.n; i++) {
        check_source(&k, &builds.at[i].model->source);
        manifest_build_files(&builds.at[i], check_one, &k);
        check_passes(&k, &builds.at[i].model->passes.disabled, true);
        check_passes(&k, &builds.at[i].model->passes.required, false);
        check_flags(&k, &builds.at[i]);
    }
    return diag_errors(driver->diags) == before;
}

const Manifest *manifest_open(Driver *driver, ManFiles *files)
{
    const Manifest *m = manifest_read(driver->diags, driver->arena, manifest_path(driver), files);

    return m && manifest_check(driver, m) ? m : NULL;
}
