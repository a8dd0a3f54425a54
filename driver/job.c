/* A compile as the command line asks for it: Options to CompileOptions, progress on the terminal.
 */
#include "driver/job.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static void show_progress(void *user, const char *step, uint32_t done, uint32_t total)
{
    Driver *driver = user;

    const Options *o = &driver->opt;

    if (o->verbose)
        fprintf(stderr, "tvmcc: %s\n", step);
    else if (!o->pass.print_after && !o->pass.time_passes && !o->explain) /* they print, too */
        progress_step(driver->progress, step, done, total);
}

static void show_count(void *user, const char *what, uint32_t done, uint32_t total)
{
    progress_count(((Driver *)user)->progress, done, total, what);
}

static bool is_device(Arena *a, const char *target)
{
    const Backend *b = backend_find(arena_printf(a, "%.*s", (int)strcspn(target, " ,"), target));

    return b && b->kind != KIND_LLVM;
}

/* The parts of --target come in order, joined as `opencl, llvm`; the cc-like pieces are about the
 * last of them, the host of a device. */
const char *job_target(Driver *driver, const char *fallback)
{
    const Options *o = &driver->opt;
    StrBuf         s = strbuf(driver->arena);
    bool given = o->targets.n || o->mtriple || o->mcpu || o->mattr || o->mabi || o->mfloat_abi;

    str_add(&s, o->targets.n ? o->targets.at[0] : given ? "llvm" : fallback);
    for (uint32_t i = 1; i < o->targets.n; i++)
        str_printf(&s, ", %s", o->targets.at[i]);
    if (is_device(driver->arena, s.at)) {
        bool host = strchr(s.at, ',');
        if (host && o->host)
            diag_error(driver->diags, E_USAGE, NO_LOC, "two hosts, '%s' and '%s'", s.at, o->host);
        given = o->host || o->mtriple || o->mcpu || o->mattr || o->mabi || o->mfloat_abi;
        if (!host &&
            (given || o->fast_math || !o->winograd || !o->libm || o->no_threads || !o->cpu_check))
            str_printf(&s, ", %s", o->host ? o->host : "llvm");
    } else {
        if (o->host)
            diag_error(driver->diags, E_USAGE, NO_LOC,
                       "--host is for targets that are devices, such as opencl");
        if (o->targets.n > 1)
            diag_error(driver->diags, E_USAGE, NO_LOC,
                       "'%s' is not a device: only a device takes a second target",
                       o->targets.at[0]);
    }
    if (o->mtriple)
        str_printf(&s, " -mtriple=%s", o->mtriple);
    if (o->mcpu)
        str_printf(&s, " -mcpu=%s", o->mcpu);
    if (o->mattr)
        str_printf(&s, " -mattr=%s", o->mattr);
    if (o->mabi)
        str_printf(&s, " -mabi=%s", o->mabi);
    if (o->mfloat_abi)
        str_printf(&s, " -mfloat-abi=%s", o->mfloat_abi);
    if (o->fast_math)
        str_add(&s, " -fast-math=1");
    if (!o->winograd)
        str_add(&s, " -winograd=0");
    if (!o->libm)
        str_add(&s, " -libm=0");
    if (o->no_threads)
        str_add(&s, " -threads=0");
    if (!o->cpu_check)
        str_add(&s, " -cpu-check=0");
    return s.at;
}

void job_options(Driver *driver, Job *job)
{
    const Options *o = &driver->opt;

    job->options = (CompileOptions){.path = o->inputs.at[0],
                                    .format = o->format,
                                    .import = {.nshapes = o->shapes.n,
                                               .ndims = o->dims.n,
                                               .shapes = o->shapes.at,
                                               .dims = o->dims.at,
                                               .weights = o->weights},
                                    .product = {.nimages = o->images.n,
                                                .images = o->images.at,
                                                .nadds = o->adds.n,
                                                .adds = o->adds.at,
                                                .noutputs = o->tensors.n,
                                                .outputs = o->tensors.at,
                                                .nstates = o->states.n,
                                                .states = o->states.at},
                                    .labels = o->labels,
                                    .nvariants = o->variants.n,
                                    .variants = o->variants.at,
                                    .nbucket_dims = o->buckets.n,
                                    .bucket_dims = o->buckets.at,
                                    .passes = o->pass,
                                    .entry = o->entry,
                                    .pic = o->pic,
                                    .weights_mode = o->weights_mode,
                                    .weights_section = o->weights_section,
                                    .cache = driver_cache(driver),
                                    .tuning_policy = o->tuning_policy,
                                    .min_coverage = o->min_coverage,
                                    .nlogs = o->logs.n,
                                    .logs = o->logs.at,
                                    .max_code = o->max_code,
                                    .max_weights = o->max_weights,
                                    .max_arena = o->max_arena,
                                    .verbose = o->verbose,
                                    .progress = show_progress,
                                    .progress_count = show_count,
                                    .progress_user = driver};
    job->c->npath_maps = o->path_maps.n;
    job->c->path_maps = o->path_maps.at;
    job->options.passes.with = o->with.at;
    job->options.passes.nwith = o->with.n;
    job->options.passes.without = o->without.at;
    job->options.passes.nwithout = o->without.n;
    if (!job->options.passes.jobs)
        job->options.passes.jobs = (uint32_t)sysconf(_SC_NPROCESSORS_ONLN);
}

bool job_start(Driver *driver, Job *job, const char *target)
{
    const Options *o = &driver->opt;

    if (o->inputs.n != 1)
        return diag_error(driver->diags, E_USAGE, NO_LOC, "%s model is needed, %u given",
                          o->inputs.n ? "one" : "a", o->inputs.n);
    if (o->shard)
        return diag_error(driver->diags, E_USAGE, NO_LOC, "'--shard' is for plans, not for '%s'",
                          o->inputs.at[0]);
    if (o->weights_section && o->weights_mode != WEIGHTS_SECTION)
        return diag_error(driver->diags, E_USAGE, NO_LOC,
                          "'--weights-section' is for '-fweights=section'");
    if (o->weights_section && !weights_section_ok(o->weights_section))
        return diag_error(driver->diags, E_USAGE, NO_LOC, "'%s' is no name of a section",
                          o->weights_section);
    if (o->variants.n && (o->mcpu || o->mattr))
        return diag_error(driver->diags, E_USAGE, NO_LOC,
                          "'--cpu-variants' names the processors; '%s' does too",
                          o->mcpu ? "-mcpu" : "-mattr");
    job->c = driver->c = ctx_new(driver->arena, driver->diags, op_table);
    job_options(driver, job);
    job->options.target = job_target(driver, target);
    compile_start(job->c, &job->k, &job->options);
    return !diag_errors(driver->diags);
}

const char *job_product_entry(Driver *driver, const char *path)
{
    Diags      *quiet = diags_new(driver->arena);
    const char *found = NULL;
    Bytes       file;
    Object      elf;

    if (driver->opt.entry || !str_ends(path, ".so") || !file_map(driver->diags, path, &file) ||
        !elf_read(quiet, driver->arena, path, file, &elf))
        return driver->opt.entry;
    for (uint32_t i = 0; i < elf.nsymbols; i++) {
        const ObjectSymbol *s = &elf.symbols[i];
        size_t              n = strlen(s->name);

        if (!s->section || s->hidden || !str_ends(s->name, "_run_ex"))
            continue;
        const char *entry = arena_printf(driver->arena, "%.*s", (int)(n - 7), s->name);
        if (found && strcmp(found, entry))
            return NULL;
        found = entry;
    }
    return found;
}

bool job_is_product(const char *path)
{
    struct stat st;

    if (str_ends(path, ".so") || str_ends(path, ".o") || str_ends(path, ".a") ||
        pack_format(path) != PACK_NONE)
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
    AuditRules  rules = {.entry = job->k.entry, .no_pic = true};
    double      kept = job->k.seconds[3];

    if (!compile_code(c, &job->k, EMIT_OBJECT, &object))
        return 0;
    job->k.seconds[3] = kept;
    audit_object(c->diags, c->arena, job->k.entry, object, &rules, &report);
    return report.code;
}

/* Executable sections of an ELF file. */
static size_t code_of(Driver *driver, Bytes file)
{
    Object   elf;
    uint64_t n = 0;

    if (!elf_read(driver->diags, driver->arena, driver->opt.inputs.at[0], file, &elf))
        return 0;
    for (uint32_t i = 0; i < elf.nsections; i++)
        if (elf.sections[i].flags & SECTION_EXEC)
            n += elf.sections[i].size;
    return n;
}

size_t job_product_code_bytes(Driver *driver, const char *path)
{
    Bytes       file;
    Member     *members;
    uint32_t    n;
    struct stat st;

    if (stat(path, &st) || S_ISDIR(st.st_mode) || !file_map(driver->diags, path, &file))
        return 0;
    if (str_ends(path, ".so"))
        return code_of(driver, file);
    if (!pack_read(driver->diags, driver->arena, path, file, PACK_LIMIT, &members, &n))
        return 0;
    for (uint32_t i = 0; i < n; i++)
        if (str_ends(members[i].path, ".so"))
            return code_of(driver, members[i].data);
    return 0;
}

void job_explain(const PlanKernel *kernel)
{
    fprintf(stderr, "@%s: %s\n", kernel->func->name,
            kernel->rule ? kernel->rule : "no rule: its loops are as they come");
    for (const char *line = kernel->refused; line && *line;) {
        size_t n = strcspn(line, "\n");
        fprintf(stderr, "    %.*s\n", (int)n, line);
        line += n + (line[n] == '\n');
    }
}

bool job_readable(Driver *driver, const char *path)
{
    return access(path, R_OK) == 0 || diag_error(driver->diags, E_IO, (Loc){.file = path},
                                                 "cannot read '%s': %s", path, strerror(errno));
}
