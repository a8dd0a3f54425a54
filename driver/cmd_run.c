/* tvmcc run and tvmcc bench: what a model computes, and how fast it is. */
#include "driver/session.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

/* ---- timing ---- */

typedef struct {
    double min, median, mean, p95;
} Times; /* milliseconds */

static bool measure(Session *s, Times *out)
{
    const Options *o = &s->driver->opt;
    uint32_t       repeat = o->repeat, number = o->number;
    double        *ms = NEW_ARRAY(s->driver->arena, double, repeat), sum = 0;

    for (uint32_t i = 0; i < repeat; i++) {
        double from = session_now();
        for (uint32_t j = 0; j < number; j++)
            if (!session_run(s))
                return false;
        ms[i] = (session_now() - from) * 1e3 / number;
        sum += ms[i];
    }
    double median = session_median(repeat, ms);
    *out = (Times){ms[0], median, sum / repeat, ms[(uint32_t)(0.95 * (repeat - 1) + 0.5)]};
    return true;
}

static void add_times(StrBuf *s, const Times *t)
{
    str_printf(s, ", \"ms\": {\"min\": %.4f, \"median\": %.4f, \"mean\": %.4f, \"p95\": %.4f}",
               t->min, t->median, t->mean, t->p95);
}

int cmd_run(Driver *driver)
{
    Session        s = {.driver = driver};
    const Options *o = &driver->opt;
    Times          t;

    if (!driver->opt.repeat)
        driver->opt.repeat = 1;
    bool ok = session_open(&s);
    if (ok)
        session_begin_json(&s);
    ok = ok && (o->print_time ? session_run(&s) && measure(&s, &t) : session_run(&s));
    if (ok) {
        session_check(&s);
        session_cut(&s);
    }
    if (ok && o->print_time) {
        uint32_t runs = o->repeat * o->number;

        if (o->json)
            add_times(&s.json, &t);
        else
            say(driver, "%.4f ms median, %.4f min, %.4f mean, %.4f p95; %u run%s, %s, %s\n",
                t.median, t.min, t.mean, t.p95, runs, runs == 1 ? "" : "s", session_threads(&s),
                session_compiled_for(&s));
    }
    bool quiet = o->json || o->print_top || o->print_time || o->out_path || o->expect_path;
    if (ok && (o->print_top || !quiet))
        ok = session_labels(&s);
    if (ok && o->print_top && s.info->noutputs)
        session_print_top(&s, 0, o->print_top);
    if (ok && !quiet)
        session_show(&s);
    if (ok && o->out_path)
        ok = session_write_outputs(&s, o->out_path);
    if (ok && o->expect_path)
        session_compare(&s, o->expect_path);
    if (ok && o->json)
        say(driver, "%s}\n", s.json.at);
    session_close(&s);
    return 0;
}

/* The most memory that was resident since reset_peak, in KiB. */
static long peak_rss(void)
{
    struct rusage use;
    char          line[128];
    long          kib = 0;
    FILE         *f = fopen("/proc/self/status", "r");

    while (f && fgets(line, sizeof line, f))
        if (sscanf(line, "VmHWM: %ld kB", &kib) == 1)
            break;
    if (f)
        fclose(f);
    if (kib)
        return kib;
    getrusage(RUSAGE_SELF, &use);
    return use.ru_maxrss;
}

/* Leaves the memory of the compile out of the peak, as far as the system can. */
static void reset_peak(void)
{
    FILE *f = fopen("/proc/self/clear_refs", "w");

    if (!f)
        return;
    fputs("5", f);
    fclose(f);
}

static void report(Session *s, const Times *t)
{
    Driver     *driver = s->driver;
    long        rss = peak_rss();
    const char *path = driver->opt.inputs.at[0];
    double      compile = s->compiled ? job_seconds(&s->job) : 0;
    size_t      weights = s->info->nweights ? s->info->weights[0].bytes : 0;
    size_t      code = s->compiled ? job_code_bytes(&s->job) : job_product_code_bytes(driver, path);

    if (driver->opt.json) {
        session_begin_json(s);
        add_times(&s->json, t);
        if (s->compiled)
            str_printf(&s->json, ", \"compile_s\": %.3f", compile);
        str_printf(&s->json,
                   ", \"code_bytes\": %zu, \"weights_bytes\": %zu, \"arena_bytes\": %zu, "
                   "\"peak_rss_kib\": %ld}\n",
                   code, weights, s->params.arena_bytes, rss);
        say(driver, "%s", s->json.at);
        return;
    }
    say(driver, "%s, %s: %.4f ms min, %.4f median, %.4f mean, %.4f p95\n", s->info->name,
        session_threads(s), t->min, t->median, t->mean, t->p95);
    say(driver, "%s", session_compiled_for(s));
    if (s->compiled)
        say(driver, " in %.3f s", compile);
    say(driver, "; code %zu bytes, weights %zu bytes, arena %zu bytes, peak RSS %ld KiB\n", code,
        weights, s->params.arena_bytes, rss);
}

int cmd_bench(Driver *driver)
{
    Session s = {.driver = driver};
    Times   t;

    if (!driver->opt.repeat)
        driver->opt.repeat = 20;
    if (session_open(&s) && session_is_here(&s) &&
        (!driver->opt.device_memory || session_device_memory(&s))) {
        reset_peak();
        if (session_warm_up(&s) && measure(&s, &t)) {
            session_check(&s);
            report(&s, &t);
        }
    }
    session_close(&s);
    return 0;
}
