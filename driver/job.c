/* A compile as the command line asks for it, with its progress on the terminal. */
#include "driver/job.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static void show_progress(void *user, const char *step, uint32_t done, uint32_t total)
{
    Driver        *driver = user;
    const Options *o = &driver->opt;

    if (!step)
        progress_end(driver->progress);
    else if (o->verbose)
        fprintf(stderr, "tvmcc: %s\n", step);
    else if (!o->compile.passes.print_after && !o->compile.passes.time_passes &&
             !o->explain) /* they print, too */
        progress_step(driver->progress, step, done, total);
}

static void show_count(void *user, const char *what, uint32_t done, uint32_t total)
{
    progress_count(((Driver *)user)->progress, done, total, what);
}

const char *job_target(Driver *driver, const char *fallback)
{
    return compile_target_text(driver->diags, driver->arena, &driver->opt.compile, fallback);
}

/* What is asked for beside what the model itself says, and whom to tell. */
static void take_options(Driver *driver, Job *job)
{
    const Options *o = &driver->opt;

    job->options = o->compile;
    job->options.path = o->inputs.at[0];
    job->options.verbose = o->verbose;
    job->options.progress = show_progress;
    job->options.progress_count = show_count;
    job->options.progress_user = driver;
}

void job_options(Driver *driver, Job *job)
{
    take_options(driver, job);
    compile_settle(driver->diags, driver->arena, &job->options);
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
    take_options(driver, job);
    if (!compile_settle_model(driver->diags, driver->arena, &job->options, target))
        return false;
    job->c = driver->c = ctx_new(driver->arena, driver->diags, op_table);
    if (driver->opt.explain) {
        StrBuf none = strbuf(driver->arena);

        job->c->choices.said = DUP_ARRAY(driver->arena, &none, 1);
    }
    compile_start(job->c, &job->k, &job->options);
    return !diag_errors(driver->diags);
}

const char *job_product_entry(Driver *driver, const char *path)
{
    Diags      *quiet = diags_new(driver->arena);
    const char *found = NULL;
    Bytes       file;
    Object      elf;

    if (driver->opt.compile.entry || !str_ends(path, ".so") ||
        !file_map(driver->diags, path, &file) || !elf_read(quiet, driver->arena, path, file, &elf))
        return driver->opt.compile.entry;
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

const char *job_target_word(Arena *a, const char *target, const char *word)
{
    const char *at = strstr(target, word);

    return at ? arena_printf(a, "%.*s", (int)strcspn(at + strlen(word), " "), at + strlen(word))
              : NULL;
}

bool job_is_product(Arena *a, const char *path)
{
    struct stat st;

    if (str_ends(path, ".so") || str_ends(path, ".o") || str_ends(path, ".a") ||
        str_ends(path, ".c"))
        return true;
    if (pack_format(path) != PACK_NONE)
        return !frontend_is_model(a, path);
    return stat(path, &st) == 0 && S_ISDIR(st.st_mode) && !str_ends(path, ".mlpackage") &&
           !frontend_folder(a, path);
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

static void indented(const char *line)
{
    while (line && *line) {
        size_t n = strcspn(line, "\n");
        fprintf(stderr, "    %.*s\n", (int)n, line);
        line += n + (line[n] == '\n');
    }
}

static void explain_kernel(const PlanKernel *kernel)
{
    fprintf(stderr, "@%s: %s\n", kernel->func->name,
            kernel->rule ? kernel->rule : "no rule: its loops are as they come");
    indented(kernel->refused);
    indented(kernel->choices);
}

/* Constants that kernels read in several orders, of which none would do for all. */
static void explain_layouts(const Plan *p)
{
    for (uint32_t i = 0; i < p->nconsts; i++) {
        const PlanConst *k = &p->consts[i];
        uint64_t         bytes = 0, least = UINT64_MAX;
        uint32_t         n = 0, first = i;
        for (uint32_t j = 0; k->data && j < p->nconsts; j++) {
            if (!p->consts[j].data || p->consts[j].data->data.at != k->data->data.at)
                continue;
            first = j < first ? j : first;
            bytes += p->consts[j].bytes;
            least = p->consts[j].bytes < least ? p->consts[j].bytes : least;
            n++;
        }
        if (n < 2 || first < i)
            continue;
        fprintf(stderr,
                "constant '%s': stored in %u layouts, %llu bytes, of which one takes %llu\n",
                k->name, n, (unsigned long long)bytes, (unsigned long long)least);
        for (uint32_t j = i; j < p->nconsts; j++)
            if (p->consts[j].data && p->consts[j].data->data.at == k->data->data.at)
                fprintf(stderr, "    %s, %llu bytes\n",
                        p->consts[j].prepack ? p->consts[j].map : "as it is",
                        (unsigned long long)p->consts[j].bytes);
    }
}

void job_explain(const Job *job)
{
    const StrBuf *said = job->c->choices.said;

    fputs(said && said->at ? said->at : "", stderr);
    for (const Plan *p = job->k.plan; p; p = p->next) {
        for (uint32_t i = 0; i < p->nkernels; i++)
            explain_kernel(&p->kernels[i]);
        explain_layouts(p);
    }
}

bool job_readable(Driver *driver, const char *path)
{
    return file_readable(driver->diags, path);
}
