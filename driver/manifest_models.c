/* Whether the models of a manifest are what it says: each is imported once, with the options of its
 * first product, and its signature compared.  No pass runs, no weight is looked at. */
#include "driver/build.h"
#include "driver/job.h"
#include "driver/manifest_job.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

static const Expr *param_of(const Expr *f, const char *name)
{
    for (uint32_t i = 0; i < func_nparams(f); i++) {
        if (strcmp(func_param(f, i)->u.var.name, name) == 0)
            return func_param(f, i);
    }
    return NULL;
}

/* "float32", as manifests and other frameworks call it. */
static const char *dtype_name(Arena *a, DType t)
{
    if (dtype_is_bool(t))
        return "bool";
    return arena_printf(a, "%s%u",
                        t.code == DT_UINT     ? "uint"
                        : t.code == DT_INT    ? "int"
                        : t.code == DT_BFLOAT ? "bfloat"
                                              : "float",
                        t.bits);
}

static void check_input(Driver *driver, Job *job, const ManInput *in)
{
    const Expr  *f = module_func(job->k.imported, "main"), *param = param_of(f, in->key);
    const char **names = NEW_ARRAY(driver->arena, const char *, func_nparams(f)), *closest, *type;

    if (in->value.given || in->value_file.given)
        return; /* no input any more; its value was checked */
    if (!param) {
        for (uint32_t i = 0; i < func_nparams(f); i++)
            names[i] = func_param(f, i)->u.var.name;
        diag_error(driver->diags, E_MANIFEST_REF, in->loc, "the model has no input '%s'", in->key);
        if ((closest = str_closest(in->key, names, func_nparams(f))))
            diag_hint(driver->diags, "did you mean '%s'?", closest);
        else if (func_nparams(f) == 1)
            diag_hint(driver->diags, "its input is '%s'", names[0]);
        return;
    }
    if (!in->dtype.given || in->image.given || param->type->kind != TYPE_TENSOR)
        return;
    type = dtype_name(driver->arena, param->type->dtype);
    if (strcmp(type, in->dtype.text) != 0)
        diag_error(driver->diags, E_MANIFEST_REF, in->dtype.loc, "input '%s' is %s, not %s",
                   in->key, type, in->dtype.text);
}

bool manifest_job(Driver *driver, const ManBuild *b, Driver *quiet, Job *job)
{
    BuildArgs args;
    char      folder[PATH_MAX];

    *quiet = (Driver){
        .arena = driver->arena, .diags = diags_new(driver->arena), .progress = driver->progress};
    *job = (Job){0};
    if (!realpath(".", folder))
        return diag_error(driver->diags, E_IO, NO_LOC, "the current folder: %s", strerror(errno));
    if (!build_args(driver, folder, b, &args))
        return false;
    vec_push(driver->arena, &args.lower, b->model->source.path.text);
    return options_parse(quiet->diags, driver->arena, (int)args.lower.n, args.lower.at,
                         &quiet->opt) &&
           job_start(quiet, job, "llvm") && compile_target(job->c, &job->k) &&
           compile_import(job->c, &job->k);
}

void manifest_job_end(Driver *quiet)
{
    file_unmap_all(quiet->diags);
    if (quiet->c)
        ctx_free(quiet->c);
}

/* Whether the manifest says something of the model that no option of the compile would check. */
static bool says_type(const ManModel *m)
{
    for (uint32_t i = 0; i < m->inputs.n; i++) {
        if (m->inputs.at[i].dtype.given && !m->inputs.at[i].image.given)
            return true;
    }
    return false;
}

static void check_model(Driver *driver, const ManBuild *b, bool all)
{
    Driver quiet;
    Job    job;
    bool   ok = manifest_job(driver, b, &quiet, &job);

    for (uint32_t i = 0; ok && i < b->model->inputs.n; i++)
        check_input(driver, &job, &b->model->inputs.at[i]);
    if (all)
        diag_adopt(driver->diags, quiet.diags, E_MANIFEST_FILE, b->model->source.path.loc,
                   arena_printf(driver->arena, "model '%s'", b->model->key));
    manifest_job_end(&quiet);
}

bool manifest_check_models(Driver *driver, const Manifest *m, bool all)
{
    uint32_t  before = diag_errors(driver->diags);
    ManBuilds builds = manifest_builds(m, driver->arena);

    for (uint32_t i = 0; i < builds.n; i++) {
        bool first = i == 0 || strcmp(builds.at[i].model->key, builds.at[i - 1].model->key) != 0;

        if (first && (all || says_type(builds.at[i].model)))
            check_model(driver, &builds.at[i], all);
    }
    progress_end(driver->progress);
    return diag_errors(driver->diags) == before;
}
