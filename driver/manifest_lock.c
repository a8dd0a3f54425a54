/* The rows of manifest.lock: hashes of all files that builds read, versions of what compiles them,
 * targets as the compiler understands them.  The model files say themselves what else they read
 * (external data), so each is imported once. */
#include "backends/backend.h"
#include "driver/manifest_job.h"
#include "frontends/frontends.h"
#include "ops/ops.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

typedef struct {
    Driver     *driver;
    Diags      *d;
    Arena      *a;
    Lock        lock;
    Map        *seen; /* paths */
    Strings    *names;
    const char *folder; /* of the manifest: names of inputs are relative to it */
} Rows;

const char *manifest_lock_path(const Driver *driver)
{
    const char *path = manifest_path(driver), *slash = strrchr(path, '/');
    const char *dot = strrchr(path, '.');

    if (driver->opt.output && driver->opt.command->letter == 'l')
        return driver->opt.output;
    return dot && dot > (slash ? slash + 1 : path)
               ? arena_printf(driver->arena, "%.*s.lock", (int)(dot - path), path)
               : arena_printf(driver->arena, "%s.lock", path);
}

static bool add_input(Rows *r, const char *path)
{
    const char *key = intern(r->names, path);
    Bytes       file;
    char        hex[65];

    if (map_get(r->seen, PTR_KEY(key)))
        return true;
    map_put(r->seen, PTR_KEY(key), r);
    if (!file_map(r->d, path, &file))
        return false;
    sha256_hex(sha256(file), hex);
    if (*r->folder && str_starts(key, r->folder))
        key += strlen(r->folder);
    lock_add(r->a, &r->lock, "inputs", key, arena_printf(r->a, "%s", hex));
    return true;
}

/* Of an import that fails the model file alone is locked; the build will say what is wrong. */
static bool add_model(Rows *r, const ManBuild *b)
{
    const char *path = b->model->source.path.text;
    ImportFiles files = {0};
    Diags      *quiet = diags_new(r->a);
    bool        ok;

    if (map_get(r->seen, PTR_KEY(intern(r->names, path))))
        return true;
    ok = add_input(r, path);
    if (ok) {
        Ctx *c = ctx_new(r->a, quiet, op_table);

        frontend_import(c, path, b->model->format.text, NULL, &files);
        for (uint32_t i = 0; i < files.n; i++)
            ok = add_input(r, files.at[i]) && ok;
        file_unmap_all(quiet);
        ctx_free(c);
    }
    return ok;
}

static bool add_build(Rows *r, const ManBuild *b)
{
    const ManModel *m = b->model;
    bool            ok = add_model(r, b);

    for (uint32_t i = 0; i < m->source.external_data.n; i++)
        ok = add_input(r, m->source.external_data.at[i].text) && ok;
    for (uint32_t i = 0; i < m->outputs.n; i++)
        if (m->outputs.at[i].labels.given)
            ok = add_input(r, m->outputs.at[i].labels.text) && ok;
    for (uint32_t i = 0; i < b->tuning.logs.n; i++)
        ok = add_input(r, b->tuning.logs.at[i].path.text) && ok;
    if (m->verify.given)
        ok = add_input(r, m->verify.inputs.text) && add_input(r, m->verify.outputs.text) && ok;
    return ok;
}

static void add_target(Rows *r, const Manifest *m, const ManPair *p)
{
    const char    *text = manifest_target_text(r->a, manifest_host(m, p->host.text),
                                               manifest_target(m, p->target.text));
    Diags         *quiet = diags_new(r->a);
    Ctx           *c = ctx_new(r->a, quiet, op_table);
    const Backend *backend =
        backend_find(arena_printf(r->a, "%.*s", (int)strcspn(text, " ,"), text));
    const Target *t = (backend ? backend : backend_of(KIND_LLVM))->parse_target(c, text);

    lock_add(r->a, &r->lock, "targets", p->key, arena_printf(r->a, "%s", t ? t->text : text));
    ctx_free(c);
}

static bool lock_rows(Driver *driver, const Manifest *m, const ManFiles *files, Lock *out)
{
    ManBuilds   builds = manifest_builds(m, driver->arena);
    Rows        r = {.driver = driver,
                     .d = driver->diags,
                     .a = driver->arena,
                     .seen = map_new(driver->arena),
                     .names = strings_new(driver->arena)};
    bool        ok = true;
    const char *path = manifest_path(driver), *slash = strrchr(path, '/');

    r.folder = slash ? arena_printf(r.a, "%.*s", (int)(slash - path) + 1, path) : "";
    lock_add(r.a, &r.lock, "versions", "tvmcc", TVMCC_VERSION);
    lock_add(r.a, &r.lock, "versions", "llvm", TVMCC_LLVM_VERSION);
    for (uint32_t i = 0; i < files->n; i++)
        ok = add_input(&r, files->at[i]) && ok;
    for (uint32_t i = 0; i < m->pairs.n; i++)
        add_target(&r, m, &m->pairs.at[i]);
    for (uint32_t i = 0; i < builds.n; i++)
        ok = add_build(&r, &builds.at[i]) && ok;
    lock_sort(&r.lock);
    *out = r.lock;
    return ok;
}

bool manifest_write_lock(Driver *driver, const Manifest *m, const ManFiles *files)
{
    Lock   now;
    StrBuf text = strbuf(driver->arena);

    if (!lock_rows(driver, m, files, &now))
        return false;
    lock_print(&now, &text);
    return file_write(driver->diags, manifest_lock_path(driver),
                      (Bytes){(const uint8_t *)text.at, text.n});
}

bool manifest_enforce_lock(Driver *driver, const Manifest *m, const ManFiles *files)
{
    const char *path = manifest_lock_path(driver);
    Lock        was, now;
    Bytes       text;

    if (driver->opt.update_lock)
        return manifest_write_lock(driver, m, files);
    if (access(path, F_OK) != 0)
        return true;
    return file_read(driver->diags, driver->arena, path, &text) &&
           lock_parse(driver->diags, driver->arena, path, text, &was) &&
           lock_rows(driver, m, files, &now) && lock_compare(driver->diags, path, &was, &now);
}
