/* What steps take.  The instrument callback of tvmcc_params takes the time before and after each;
 * a step's time is that of its slowest part.
 *
 * With an instrument the host's program waits for each launch, which on a device takes longer than
 * many a kernel.  Where the session's device times launches, it therefore gets a table whose `wait`
 * does nothing until the run ends: launches are asked for one behind the other, and the number of
 * them before and after a step tells whose they are.  Downloads that a run decides by wait for
 * themselves.  Steps without a launch are the host's, by its clock. */
#include "driver/watch.h"

#include <string.h>

typedef struct {
    Watch              *w;
    Arena              *a;
    const tvmcc_device *timed; /* NULL: the host's clock */
    uint32_t            run, parts, first;
    double             *begin;     /* by part, of the step that it is in */
    double             *part_took; /* [part][step], of this run */
    VEC(uint32_t) owners;          /* of launches of this run: the step */
} Watcher;

enum { MAX_STEPS = 1 << 16 };

static int32_t watch(void *user, uint32_t event, uint32_t step, uint32_t part)
{
    Watcher *x = user;
    uint32_t launches = tvmrt_timed_launches(x->timed);

    if (part >= x->parts || step >= x->w->nsteps)
        return 0;
    if (event == TVMCC_EVENT_BEGIN) {
        x->w->calls[step] += part == 0;
        x->first = launches;
        x->begin[part] = session_now();
    } else if (x->timed && launches > x->first) {
        while (x->owners.n < launches)
            vec_push(x->a, &x->owners, step);
    } else { /* it may loop */
        x->part_took[part * x->w->nsteps + step] += session_now() - x->begin[part];
    }
    return 0;
}

/* How many steps there are: the largest number that is told. */
static int32_t count_steps(void *user, uint32_t event, uint32_t step, uint32_t part)
{
    uint32_t *n = user;

    (void)event;
    if (part == 0 && step + 1 > *n && step < MAX_STEPS)
        *n = step + 1;
    return 0;
}

static bool add_launches(Watcher *x, Session *s)
{
    Watch   *w = x->w;
    uint32_t n = x->owners.n;
    double  *ns = NEW_ARRAY(x->a, double, n + 1);
    int32_t  rc = tvmrt_launch_times(x->timed, n, ns);

    if (rc)
        return diag_error(s->driver->diags, E_RUN, NO_LOC,
                          "the device does not tell what its launches took: status %d, %s", (int)rc,
                          s->device->last_error(s->device->self));
    for (uint32_t i = 0; i < n; i++) {
        w->took[(size_t)x->owners.at[i] * w->nruns + x->run] += ns[i] * 1e-9;
        w->launched[x->owners.at[i]] = true;
    }
    return true;
}

static bool watched_run(Watcher *x, Session *s)
{
    Watch *w = x->w;
    bool   ok;

    if (x->timed && tvmrt_time_launches(x->timed, 1))
        return session_run(s); /* which says what is wrong */
    x->owners.n = 0;
    memset(x->part_took, 0, sizeof(double) * w->nsteps * x->parts);
    s->params.instrument = watch;
    s->params.instrument_user = x;
    session_wait(s, !x->timed);
    ok = session_run(s);
    session_wait(s, true);
    s->params.instrument = NULL;
    if (!ok || (x->timed && !add_launches(x, s)))
        return false;
    if (x->timed)
        tvmrt_time_launches(x->timed, 0);
    for (uint32_t i = 0; i < w->nsteps; i++)
        for (uint32_t k = 0; k < x->parts && !w->launched[i]; k++)
            if (x->part_took[k * w->nsteps + i] > w->took[i * w->nruns + x->run])
                w->took[i * w->nruns + x->run] = x->part_took[k * w->nsteps + i];
    return true;
}

bool watch_steps(Watch *w, Session *s)
{
    Arena  *a = s->driver->arena;
    Watcher x = {.w = w, .a = a};
    double *runs;

    w->timed = session_times(s, &w->untimed);
    x.timed = w->timed ? s->device : NULL;
    tvmrt_time_launches(x.timed, 0);
    s->params.instrument = count_steps;
    s->params.instrument_user = &w->nsteps;
    if (!session_run(s))
        return false;
    s->params.instrument = NULL;
    if (!session_warm_up(s))
        return false;
    w->nruns = s->driver->opt.repeat;
    x.parts = s->params.threads;
    x.begin = NEW_ARRAY(a, double, x.parts);
    x.part_took = NEW_ARRAY(a, double, (size_t)w->nsteps *x.parts + 1);
    w->calls = NEW_ARRAY(a, uint32_t, w->nsteps + 1);
    w->launched = NEW_ARRAY(a, bool, w->nsteps + 1);
    w->took = NEW_ARRAY(a, double, (size_t)w->nsteps * w->nruns + 1);
    runs = NEW_ARRAY(a, double, w->nruns);
    for (x.run = 0; x.run < w->nruns; x.run++) {
        double from = session_now();
        if (!session_run(s))
            return false;
        runs[x.run] = session_now() - from;
        if (!watched_run(&x, s))
            return false;
    }
    w->wall = session_median(w->nruns, runs);
    return true;
}
