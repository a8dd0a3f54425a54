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
    bool        failed; /* of the product at hand: a file cannot be read */
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

static void add_file(void *user, const ManText *path)
{
    Rows *r = user;

    r->failed = !add_input(r, path->text) || r->failed;
}

static bool add_build(Rows *r, const ManBuild *b)
{
    r->failed = !add_model(r, b);
    manifest_build_files(b, add_file, r);
    return !r->failed;
}

static void add_target_text(Rows *r, const ManHost *h, const ManTarget *target, StrBuf *out)
{
    const char    *text = manifest_target_text(r->a, h, target);
    Diags         *quiet = diags_new(r->a);
    Ctx           *c = ctx_new(r->a, quiet, op_table);
    const Backend *backend =
        backend_find(arena_printf(r->a, "%.*s", (int)strcspn(text, " ,"), text));
    const Target *t = (backend ? backend : backend_cpu())->parse_target(c, text);

    str_printf(out, "%s%s", out->n ? "; " : "", t ? t->text : text);
    ctx_free(c);
}

static void add_target(Rows *r, const Manifest *m, const ManPair *p)
{
    const ManHost *h = manifest_host(m, p->host.text);
    StrBuf         all = strbuf(r->a);

    add_target_text(r, h, manifest_target(m, p->target.text), &all);
    for (uint32_t i = 0; i < p->fallback.n; i++)
        add_target_text(r, h, manifest_target(m, p->fallback.at[i].text), &all);
    lock_add(r->a, &r->lock, "targets", p->key, all.at);
}

/* How many kernels of a product have records in its logs: the first half of its compile.  Not
 * looked at again when the lock is compared, since it follows from the inputs. */
static void add_coverage(Rows *r, const ManBuild *b)
{
    Driver quiet;
    Job    job;

    if (b->tuning.logs.n && manifest_job(r->driver, b, &quiet, &job)) {
        bool ok = compile_graph(job.c, &job.k) && compile_plan(job.c, &job.k);

        if (ok)
            lock_add(r->a, &r->lock, "coverage", b->name,
                     arena_printf(r->a, "%u of %u", plan_kernels_tuned(job.k.plan),
                                  job.k.plan->nkernels));
        diag_adopt(r->d, quiet.diags, E_LOCK, b->model->loc, b->name);
        manifest_job_end(&quiet);
    }
}

static bool lock_rows(Driver *driver, const Manifest *m, const ManFiles *files, bool coverage,
                      Lock *out)
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
    for (uint32_t i = 0; ok && coverage && i < builds.n; i++)
        add_coverage(&r, &builds.at[i]);
    lock_sort(&r.lock);
    *out = r.lock;
    return ok;
}

bool manifest_write_lock(Driver *driver, const Manifest *m, const ManFiles *files)
{
    uint32_t before = diag_errors(driver->diags);
    Lock     now;
    StrBuf   text = strbuf(driver->arena);

    if (!lock_rows(driver, m, files, true, &now) || diag_errors(driver->diags) != before)
        return false;
    lock_print(&now, &text);
    return file_write(driver->diags, manifest_lock_path(driver),
                      (Bytes){(const uint8_t *)text.at, text.n});
}

static void drop_coverage(Lock *l)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < l->rows.n; i++) {
        if (strcmp(l->rows.at[i].group, "coverage") != 0)
            l->rows.at[n++] = l->rows.at[i];
    }
    l->rows.n = n;
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
    if (!file_read(driver->diags, driver->arena, path, &text) ||
        !lock_parse(driver->diags, driver->arena, path, text, &was))
        return false;
    drop_coverage(&was);
    return lock_rows(driver, m, files, false, &now) &&
           lock_compare(driver->diags, path, &was, &now);
}
