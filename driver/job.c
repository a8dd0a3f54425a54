/* A compile as the command line asks for it: Options to CompileOptions, progress on the terminal.
 */
#include "driver/job.h"

#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static void show_progress(void *user, const char *step, uint32_t done, uint32_t total)
{
    progress_step(((Driver *)user)->progress, step, done, total);
}

static bool is_device(Arena *a, const char *target)
{
    const Backend *b = backend_find(arena_printf(a, "%.*s", (int)strcspn(target, " ,"), target));

    return b && b->kind != KIND_LLVM;
}

/* The target string from --target and the cc-like pieces. */
static const char *target_text(Driver *driver, const char *fallback)
{
    const Options *o = &driver->opt;
    StrBuf         s = strbuf(driver->arena);

    if (!o->targets.n && !o->mtriple && !o->mcpu && !o->mattr) {
        str_add(&s, fallback);
    } else {
        str_add(&s, o->targets.n ? o->targets.at[0] : "llvm");
    }
    if (is_device(driver->arena, s.at)) { /* the pieces are about the host */
        if (o->host || o->mtriple || o->mcpu || o->mattr)
            str_printf(&s, ", %s", o->host ? o->host : "llvm");
    } else if (o->host) {
        diag_error(driver->diags, E_USAGE, NO_LOC,
                   "--host is for targets that are devices, such as opencl");
    }
    if (o->mtriple)
        str_printf(&s, " -mtriple=%s", o->mtriple);
    if (o->mcpu)
        str_printf(&s, " -mcpu=%s", o->mcpu);
    if (o->mattr)
        str_printf(&s, " -mattr=%s", o->mattr);
    return s.at;
}

bool job_start(Driver *driver, Job *job, const char *target)
{
    const Options  *o = &driver->opt;
    CompileOptions *k = &job->options;

    if (o->inputs.n != 1)
        return diag_error(driver->diags, E_USAGE, NO_LOC, "%s model is needed, %u given",
                          o->inputs.n ? "one" : "a", o->inputs.n);
    job->c = driver->c = ctx_new(driver->arena, driver->diags, op_table);
    *k = (CompileOptions){.path = o->inputs.at[0],
                          .format = o->format,
                          .import = {.nshapes = o->shapes.n,
                                     .ndims = o->dims.n,
                                     .shapes = o->shapes.at,
                                     .dims = o->dims.at},
                          .passes = o->pass,
                          .target = target_text(driver, target),
                          .entry = o->entry,
                          .weights_mode = o->weights_file ? WEIGHTS_FILE : WEIGHTS_EMBED,
                          .progress = show_progress,
                          .progress_user = driver};
    if (!k->passes.jobs)
        k->passes.jobs = (uint32_t)sysconf(_SC_NPROCESSORS_ONLN);
    k->codegen = (CodegenOptions){.pic = o->pic, .jobs = k->passes.jobs, .verbose = o->verbose};
    compile_start(job->c, &job->k, k);
    return true;
}

bool job_is_product(const char *path)
{
    struct stat st;

    if (str_ends(path, ".so") || str_ends(path, ".tar"))
        return true;
    return stat(path, &st) == 0 && S_ISDIR(st.st_mode) && !str_ends(path, ".mlpackage");
}

double job_seconds(const Job *job)
{
    double sum = 0;

    for (uint32_t i = 0; i < COUNT(job->k.seconds); i++)
        sum += job->k.seconds[i];
    return sum;
}

size_t job_code_bytes(Job *job)
{
    Ctx        *c = job->c;
    Bytes       object;
    AuditReport report = {0};
    AuditRules  rules = {.entry = job->k.entry};
    double      kept = job->k.seconds[3];

    if (!compile_code(c, &job->k, EMIT_OBJECT, &object))
        return 0;
    job->k.seconds[3] = kept;
    audit_object(c->diags, c->arena, job->k.entry, object, &rules, &report);
    return report.code;
}
