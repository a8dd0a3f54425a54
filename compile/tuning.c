/* Tuning logs in a compile: records are looked up kernel by kernel while the graph is lowered
 * (`Tuning` of passes.h), and what they cover is judged afterwards.
 *
 * A log is an input like the model: it stands in the depfile, and equal logs give equal bytes
 * whatever their order. */
#include "compile/compile.h"
#include "tune/tune.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

struct CompileTuning {
    TuneLog log;
    Tuning  passes;
};

static bool find(void *user, Sha256 workload, const Target *t, uint32_t n, TunedSchedule *out)
{
    const CompileTuning *own = user;
    const TuneRecord    *best;

    if (n >= tune_log_find(&own->log, workload, t->text, &best))
        return false;
    *out = (TunedSchedule){best[n].steps, best[n].decided, best[n].loc};
    return true;
}

bool tuning_read(Diags *d, Arena *a, uint32_t n, const char *const *paths, TuneLog *out)
{
    Bytes file;
    bool  ok = true;

    *out = (TuneLog){0};
    for (uint32_t i = 0; i < n; i++)
        ok = file_map(d, paths[i], &file) && tune_log_parse(d, a, paths[i], file, out) && ok;
    tune_log_sort(out);
    return ok;
}

bool tuning_start(Ctx *c, Compiled *k, PassOptions *passes)
{
    const CompileOptions *o = k->o;
    CompileTuning        *t = NEW(c->arena, CompileTuning);

    if (o->tuning_policy == TUNING_IGNORE || (!o->logs.n && o->tuning_policy != TUNING_REQUIRE))
        return true;
    if (!tuning_read(c->diags, c->arena, o->logs.n, o->logs.at, &t->log))
        return false;
    for (uint32_t i = 0; i < o->logs.n; i++)
        vec_push(c->arena, &k->files, o->logs.at[i]);
    t->passes = (Tuning){find, t, o->tuning_policy == TUNING_REQUIRE};
    passes->tuning = &t->passes;
    return true;
}

bool tuning_covers(Ctx *c, const Compiled *k, const Plan *p)
{
    uint32_t tuned = plan_kernels_tuned(p), percent = p->nkernels ? tuned * 100 / p->nkernels : 100;

    if (k->o->verbose && k->o->logs.n)
        fprintf(stderr, "tvmcc: tuning: %u of %u kernels (%u %%)\n", tuned, p->nkernels, percent);
    return percent >= k->o->min_coverage ||
           diag_error(c->diags, E_TUNING, NO_LOC,
                      "tuning logs cover %u of %u kernels (%u %%), and %u %% are asked for", tuned,
                      p->nkernels, percent, k->o->min_coverage);
}

/* Lines of steps on one line. */
static const char *joined(Ctx *c, const char *schedule)
{
    StrBuf s = strbuf(c->arena);

    for (const char *p = schedule ? schedule : ""; *p;) {
        size_t n = strcspn(p, "\n");

        str_add(&s, s.n ? "; " : "");
        str_addn(&s, p, n);
        p += n + (p[n] == '\n');
    }
    return s.n ? s.at : "";
}

Bytes tuning_records(Ctx *c, const Plan *p)
{
    StrBuf s = strbuf(c->arena);

    for (uint32_t i = 0; i < p->nkernels; i++) {
        const PlanKernel *k = &p->kernels[i];
        const char       *steps = joined(c, k->schedule);

        str_printf(&s, "# %s, %llu calls, %lld multiply-adds, by %s%s%s\n", k->func->name,
                   (unsigned long long)k->calls, (long long)k->macs, k->rule ? k->rule : "no rule",
                   k->decisions ? ": " : "", k->decisions ? k->decisions : "");
        for (uint32_t w = 0; w < k->nworkloads; w++) {
            TuneRecord r = {.workload = k->workloads[w],
                            .target = p->target->text,
                            .seconds = INFINITY,
                            .steps = steps};

            tune_record_print(&r, &s);
        }
    }
    return (Bytes){(const uint8_t *)s.at, s.n};
}
