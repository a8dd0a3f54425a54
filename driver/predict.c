/* tvmcc profile --predict: what the model of the machine says of kernels, against the least time
 * that they take.
 *
 * Where others use the units of this core (a neighbour in the same core, other programs), a kernel
 * of a millisecond is hardly ever left alone from beginning to end, a part of a twentieth of that
 * often.  So each kernel is run as its threads would, but one part after the other on one thread,
 * which touches memory in the order in which one thread does; of each part the shortest run counts,
 * and their sum is the kernel's. */
#include "driver/predict.h"

#include "machine/kernel.h"

#include <math.h>
#include <string.h>

enum { PARTS = 64 };

typedef struct {
    uint32_t nsteps;
    double  *took, *least; /* [step][part], seconds: of this run, of all */
    double   begin, idle;  /* `idle`: what taking the time takes */
} Parts;

static int32_t one_by_one(void *user, tvmcc_part_fn fn, void *ctx, uint32_t parts)
{
    (void)user;
    for (uint32_t i = 0; i < parts; i++)
        fn(ctx, i, parts);
    return 0;
}

static int32_t watch(void *user, uint32_t event, uint32_t step, uint32_t part)
{
    Parts *p = user;

    if (event == TVMCC_EVENT_BEGIN)
        p->begin = session_now();
    else if (step < p->nsteps && part < PARTS)
        p->took[(size_t)step * PARTS + part] += session_now() - p->begin; /* it may loop */
    return 0;
}

static double idle_time(void)
{
    double least = 1;

    for (int i = 0; i < 1000; i++) {
        double from = session_now(), took = session_now() - from;

        least = took < least ? took : least;
    }
    return least;
}

static bool measure_parts(Predictor *p, Session *s, uint32_t nsteps)
{
    const tvmcc_params given = s->params;
    size_t             n = (size_t)nsteps * PARTS;
    Arena             *a = s->driver->arena;
    Parts              parts = {nsteps, NEW_ARRAY(a, double, n + 1), NEW_ARRAY(a, double, n + 1), 0,
                                idle_time()};
    bool               ok = true;

    s->params.threads = PARTS;
    s->params.launch = one_by_one;
    s->params.barrier = NULL;
    s->params.instrument = watch;
    s->params.instrument_user = &parts;
    s->params.arena_bytes = tvmrt_arena_bytes(s->info, PARTS); /* parts share that of one */
    for (uint32_t run = 0; ok && run < s->driver->opt.repeat; run++) {
        memset(parts.took, 0, n * sizeof *parts.took);
        ok = session_run(s);
        for (size_t i = 0; i < n; i++)
            if (run == 0 || parts.took[i] < parts.least[i])
                parts.least[i] = parts.took[i];
    }
    s->params = given;
    p->least = NEW_ARRAY(a, double, nsteps + 1);
    for (size_t i = 0; i < n; i++)
        if (parts.least[i] > parts.idle)
            p->least[i / PARTS] += parts.least[i] - parts.idle;
    return ok;
}

bool predict_open(Predictor *p, Session *s, uint32_t nsteps)
{
    Plan flat;

    if (!s->driver->opt.predict)
        return true;
    if (!s->compiled || s->c->target->host || s->params.threads != 1)
        return diag_error(s->driver->diags, E_USAGE, NO_LOC,
                          "'--predict' is for a model on one thread of a CPU");
    p->machine = machine_of(s->c->target);
    if (!compile_flat(s->c, &s->job.k, &flat))
        return false;
    p->times =
        program_times(s->c, &p->machine, flat.tir, flat.tir->funcs[flat.tir->nfuncs - 1], &p->n);
    return measure_parts(p, s, nsteps);
}

double predict(const Predictor *p, uint32_t step)
{
    return step < p->n ? time_cycles(&p->machine, p->times[step]) / p->machine.ghz * 1e-9 : NAN;
}

Time predict_parts(const Predictor *p, uint32_t step, double calls)
{
    return step < p->n ? time_times(calls / p->machine.ghz * 1e-9, p->times[step]) : (Time){0};
}

double predict_least(const Predictor *p, uint32_t step, double took)
{
    return p->least && p->least[step] > 0 && p->least[step] < took ? p->least[step] : took;
}
