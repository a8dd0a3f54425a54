/* tvmcc logs: what can be done with tuning logs without a tuner.
 *
 *     tvmcc logs best a.log b.log -o best.log    the fastest record of each kernel and target
 *     tvmcc logs merge a.log b.log -o all.log    all records, each once, in order
 *     tvmcc logs coverage net.onnx --tuning=all.log --target=..    which kernels have records
 */
#include "driver/job.h"
#include "tune/tune.h"

#include <string.h>

static bool write_log(Driver *driver, const TuneLog *log, bool best)
{
    StrBuf s = strbuf(driver->arena);

    for (uint32_t i = 0; i < log->records.n; i++) {
        const TuneRecord *r = &log->records.at[i], *before = i ? r - 1 : NULL;
        bool first = !before || memcmp(before->workload.b, r->workload.b, sizeof r->workload.b) ||
                     strcmp(before->target, r->target) != 0;

        if (first || !best)
            tune_record_print(r, &s);
    }
    return file_write(driver->diags, driver->opt.output ? driver->opt.output : "-",
                      (Bytes){(const uint8_t *)s.at, s.n});
}

static bool merge(Driver *driver, bool best)
{
    TextList *in = &driver->opt.inputs;
    TuneLog   log;

    if (!in->n)
        return diag_error(driver->diags, E_USAGE, NO_LOC, "'%s' needs logs",
                          best ? "best" : "merge");
    return tuning_read(driver->diags, driver->arena, in->n, in->at, &log) &&
           write_log(driver, &log, best);
}

static bool coverage(Driver *driver)
{
    Job      job;
    uint32_t tuned, n;
    Columns *table = columns_new(driver->arena, "llrr");

    if (!job_start(driver, &job, "llvm") || !compile_target(job.c, &job.k) ||
        !compile_import(job.c, &job.k) || !compile_graph(job.c, &job.k) ||
        !compile_plan(job.c, &job.k))
        return false;
    progress_end(driver->progress);
    n = job.k.plan->nkernels;
    tuned = plan_kernels_tuned(job.k.plan);
    for (uint32_t i = 0; i < n; i++) {
        const PlanKernel *k = &job.k.plan->kernels[i];
        bool              own = k->rule && strcmp(k->rule, plan_tuned) == 0;

        columns_add(table, "%s", own ? "tuned" : "-");
        columns_add(table, "%s", k->func->name);
        columns_add(table, "%llu calls", (unsigned long long)k->calls);
        columns_add(table, "%lld multiply-adds", (long long)k->macs);
    }
    say_table(driver, table);
    say(driver, "%u of %u kernels (%u %%)\n", tuned, n, n ? tuned * 100 / n : 100);
    return true;
}

int cmd_logs(Driver *driver)
{
    TextList   *in = &driver->opt.inputs;
    const char *what = in->at[0];

    in->at++;
    in->n--;
    in->cap = in->n;
    if (strcmp(what, "best") == 0 || strcmp(what, "merge") == 0)
        merge(driver, *what == 'b');
    else if (strcmp(what, "coverage") == 0)
        coverage(driver);
    else
        diag_error(driver->diags, E_USAGE, NO_LOC,
                   "'logs' does 'best', 'merge' and 'coverage', not '%s'", what);
    return 0;
}
