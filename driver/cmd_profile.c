/* tvmcc profile: where the time of a model goes, kernel by kernel, against what the machine can do.
 *
 * Of what a step takes (watch.c) the median over the runs counts.  Beside it stand two limits, of a
 * CPU measured in this process: multiply-adds a second of a loop that keeps all accumulators in
 * registers (made by our own code generator for the model's target), and the bytes a second at
 * which memory of the model's size is read.  Those of a device are what the model of the machine
 * knows of it, and count for what it timed itself.  A kernel's bound is the larger of the times
 * that its multiply-adds and its operands need at these rates (the roofline).
 *
 * A line below says at what share of the peak the kernels run, weighted by time, that could reach
 * all of it: convolutions and matrix products that add up at least 96 products a result and use
 * each weight more than once; Winograd's, which also transform, for themselves.
 *
 * Names and work of steps are from the plan, or from the metadata of a product (session.c says
 * where they are looked for); without them, and with several plans in one product, steps have
 * numbers and times alone.  Code of -fthreads=none tells of no steps: the run is one row.  What is
 * not known is NAN, and printed as `-` or null. */
#include "driver/html.h"
#include "driver/predict.h"
#include "driver/watch.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    const char *name;
    WorkKind    kind;
    uint32_t    calls;
    double      median, min;  /* seconds of all calls of a run */
    double      predicted;    /* ... as the model of the machine says; NAN: not asked */
    Time        of;           /* what it is made of, before that overlaps */
    double      flops, bytes; /* of all calls of a run; NAN: not known */
    bool        elsewhere;    /* not on what peak and bandwidth are of */
} Row;

typedef struct {
    Session     s;
    Watch       w;
    uint32_t    nrows;
    Row        *rows;
    double      total;           /* seconds: sum of the steps */
    double      peak, bandwidth; /* flops and bytes a second of all threads; 0: not known */
    const char *gpu;             /* that they are of; NULL: this machine */
    Predictor   predictor;
} Profile;

/* ---- what the machine can do ---- */

/* What the plan, or the product's description of its target, says of a device. */
static const Target *device_target(Profile *p)
{
    const char    *text = p->s.info->targets;
    const Backend *b;

    if (p->s.compiled)
        return session_plan(&p->s)->target;
    text = arena_printf(p->s.c->arena, "%.*s", (int)strcspn(text, " ,"), text);
    if (!(b = backend_find(text)))
        return NULL;
    text = p->s.info->targets; /* the host stands behind */
    text = strstr(text, ", ")
               ? arena_printf(p->s.c->arena, "%.*s", (int)(strstr(text, ", ") - text), text)
               : text;
    return b->parse_target(p->s.c, text);
}

static bool is_known(const Machine *m, FigureId figure)
{
    return m->from[figure] >= FROM_GPU;
}

/* Multiply-adds of f32, outside of units for matrices. */
static void know_device(Profile *p)
{
    const Target *t = p->w.timed ? device_target(p) : NULL;

    if (!t)
        return;
    Machine m = machine_of(t);
    p->gpu = t->gpu ? arena_printf(p->s.c->arena, "a GPU of %s", t->gpu) : "the device";
    if (is_known(&m, FIGURE_units) && is_known(&m, FIGURE_unit_macs) &&
        is_known(&m, FIGURE_device_ghz))
        p->peak = 2e9 * (double)m.units * (double)m.unit_macs * m.device_ghz;
    if (is_known(&m, FIGURE_device_ns))
        p->bandwidth = 1e9 * m.device_ns;
}

/* Every accumulator of a register tile takes a multiply-add a step; nothing is loaded. */
static const char peak_text[] =
    "func @peak kind(kernel) target(\"%s\") (%%x: f32[%u], %%y: f32[%u,%u] written) {\n"
    "  alloc %%a: f32[%u,%u] @reg {\n"
    "    for %%i < %u unroll { for %%j < %u vector { %%a[%%i,%%j] = %%x[%%j] } }\n"
    "    for %%k < 20000 seq {\n"
    "      for %%i1 < %u unroll { for %%j1 < %u vector {\n"
    "        %%a[%%i1,%%j1] = %s\n"
    "      } }\n"
    "    }\n"
    "    for %%i2 < %u unroll { for %%j2 < %u vector { %%y[%%i2,%%j2] = %%a[%%i2,%%j2] } }\n"
    "  }\n"
    "}\n";

static bool measure_peak(Profile *p)
{
    Ctx           *c = p->s.c;
    const Backend *b = p->s.job.k.backend ? p->s.job.k.backend : backend_cpu();
    const Target  *t = c->target ? c->target : b->parse_target(c, "llvm -mcpu=native");
    uint32_t       lanes, n;
    StrBuf         text = strbuf(c->arena);
    PassOptions    o = {.passes = "flatten,unroll,vectorize,promote", .jobs = 1};
    double         best = 0;

    if (!t || !b->jit || t->host)
        return true;
    lanes = t->vector_bytes / 4 ? t->vector_bytes / 4 : 1;
    n = t->vector_regs > 16 ? 24 : 12;
    str_printf(&text, peak_text, t->text, lanes, n, lanes, n, lanes, n, lanes, n, lanes,
               t->has_fma ? "fma(%a[%i1,%j1], %x[%j1], %x[%j1])"
                          : "%a[%i1,%j1] * %x[%j1] + %x[%j1]",
               n, lanes);
    const TirModule *m = tir_parse(c, "peak", (Bytes){(const uint8_t *)text.at, text.n});
    Jit             *j = m && (m = run_tir_passes(c, m, &o, TIR_TO_BOTH)) ? b->jit(c, m, t) : NULL;
    if (!j)
        return false;
    void (*run)(void *const *, const int64_t *);
    void *sym = b->jit_symbol(j, "peak");
    memcpy(&run, &sym, sizeof run);
    float *memory = aligned_alloc(64, ((size_t)(n + 1) * lanes * 4 + 127) / 64 * 64);
    void  *buffers[2] = {memory, memory + lanes};
    for (uint32_t i = 0; memory && i < lanes; i++)
        memory[i] = 0.5f;
    for (uint32_t i = 0; memory && sym && i < 40; i++) {
        double from = session_now();
        run(buffers, NULL);
        double rate = 2.0 * 20000 * n * lanes / (session_now() - from);
        if (rate > best)
            best = rate;
    }
    free(memory);
    b->jit_free(j);
    p->peak = best * p->s.params.threads;
    return true;
}

/* Reads as many bytes as weights and arena have, eight streams of a word. */
static void measure_bandwidth(Profile *p)
{
    size_t weights = p->s.info->nweights ? p->s.info->weights[0].bytes : 0;
    size_t n = (weights + p->s.params.arena_bytes) / 64 * 64 + 4096, words = n / 8;
    const volatile uint64_t *v;
    uint64_t                *memory = aligned_alloc(64, n), sum = 0;
    double                   best = 0;

    if (!memory)
        return;
    memset(memory, 1, n);
    v = memory;
    for (int k = 0; k < 6; k++) {
        double from = session_now();
        for (size_t i = 0; i + 64 <= words; i += 64)
            for (size_t line = 0; line < 64; line += 8)
                sum += v[i + line]; /* a word of each line moves all of it */
        double rate = (double)n / (session_now() - from);
        if (rate > best)
            best = rate;
    }
    memory[0] = sum;
    free(memory);
    p->bandwidth = best * p->s.params.threads;
}

static bool find_limits(Profile *p)
{
    if (p->s.device) {
        know_device(p);
        return true;
    }
    measure_bandwidth(p);
    return measure_peak(p);
}

/* ---- from steps to kernels ---- */

static Row *add_step(Profile *p, uint32_t step, const char *name, uint32_t calls, double flops,
                     double bytes)
{
    const Watch *w = &p->w;
    Row         *r = NULL;

    for (uint32_t i = 0; i < p->nrows && !r; i++)
        if (!strcmp(p->rows[i].name, name))
            r = &p->rows[i];
    if (!r)
        *(r = &p->rows[p->nrows++]) = (Row){.name = name};
    double *took = w->took + (size_t)step * w->nruns, median = session_median(w->nruns, took);
    r->calls += calls;
    r->median += median;
    r->min += predict_least(&p->predictor, step, took[0]);
    r->flops += flops;
    r->bytes += bytes;
    r->elsewhere = p->s.device && !w->launched[step];
    p->total += median;
    return r;
}

/* What is known of the steps: from the plan, or from the product's metadata. */
static const StepDesc *known_steps(Profile *p, uint32_t *n, int64_t *macs)
{
    ModelDesc desc;

    *n = 0;
    *macs = -1;
    if (p->s.compiled) {
        *macs = session_plan(&p->s)->macs;
        return desc_steps(p->s.c, session_plan(&p->s), n);
    }
    if (!session_metadata(&p->s, &desc))
        return NULL;
    *macs = desc.macs;
    *n = desc.nsteps;
    return desc.steps;
}

static int by_time(const void *a, const void *b)
{
    const Row *x = a, *y = b;

    return x->median != y->median ? (x->median < y->median ? 1 : -1) : strcmp(x->name, y->name);
}

static void make_rows(Profile *p)
{
    Arena          *a = p->s.driver->arena;
    const StepDesc *steps;
    uint32_t        n;
    int64_t         macs;
    bool            open = p->s.dynamic != NULL; /* what is known is of the largest sizes */

    steps = known_steps(p, &n, &macs);
    p->rows = NEW_ARRAY(a, Row, p->w.nsteps + 1);
    for (uint32_t i = 0; i < p->w.nsteps; i++) {
        const StepDesc *t = i < n ? &steps[i] : NULL;
        double          calls = t ? t->calls : 0;
        bool            known = t && t->known;

        Row *r = add_step(p, i, t ? t->kernel : arena_printf(a, "step %u", i),
                          known ? t->calls : p->w.calls[i] / p->w.nruns,
                          known && !open ? 2.0 * (double)t->macs * calls : NAN,
                          known && !open ? (double)t->bytes * calls : NAN);
        r->kind = t ? t->kind : WORK_OTHER;
        if (p->predictor.n && known && t->calls) {
            r->predicted += predict(&p->predictor, i) * calls;
            r->of = time_beside(r->of, predict_parts(&p->predictor, i, calls));
        }
    }
    if (!p->w.nsteps) {
        p->rows[p->nrows++] = (Row){.name = "run",
                                    .calls = 1,
                                    .median = p->w.wall,
                                    .min = p->w.wall,
                                    .predicted = NAN,
                                    .flops = macs < 0 || open ? NAN : 2.0 * (double)macs,
                                    .bytes = NAN};
        p->total = p->w.wall;
    }
    qsort(p->rows, p->nrows, sizeof *p->rows, by_time);
}

/* ---- the table ---- */

static double ratio(double a, double b)
{
    return b > 0 ? a / b : NAN;
}

/* Seconds that the multiply-adds or the operands need at least. */
static double bound_of(const Profile *p, const Row *r)
{
    double compute = ratio(r->flops, p->peak), memory = ratio(r->bytes, p->bandwidth);

    if (r->elsewhere)
        return NAN;
    return isnan(compute) || isnan(memory) ? NAN : compute > memory ? compute : memory;
}

static double peak_share(const Profile *p, const Row *r)
{
    return r->elsewhere ? NAN : ratio(ratio(r->flops, r->median), p->peak);
}

/* A figure of the table, `-` if it is not known. */
static const char *figure(const Profile *p, double v, int digits, const char *unit)
{
    return isnan(v) ? "-" : arena_printf(p->s.driver->arena, "%.*f%s", digits, v, unit);
}

static void print_row(const Profile *p, const Row *r, Columns *table)
{
    double      bound = bound_of(p, r), rate = ratio(r->flops, r->median);
    bool        by_memory = ratio(r->bytes, p->bandwidth) >= ratio(r->flops, p->peak);
    const char *limit = isnan(bound) ? "-" : by_memory ? "memory" : "compute";

    columns_add(table, "%s", figure(p, 100 * ratio(r->median, p->total), 1, "%"));
    columns_add(table, "%u", r->calls);
    columns_add(table, "%.2f", r->median * 1e6);
    columns_add(table, "%s", figure(p, ratio(r->median, r->calls) * 1e6, 2, ""));
    columns_add(table, "%s", figure(p, rate * 1e-9, 1, ""));
    columns_add(table, "%s", figure(p, 100 * peak_share(p, r), 1, "%"));
    columns_add(table, "%s", figure(p, ratio(r->bytes, r->median) * 1e-9, 1, ""));
    columns_add(table, "%s", figure(p, bound * 1e6, 2, ""));
    columns_add(table, "%s", limit);
    columns_add(table, "%s", figure(p, 100 * ratio(bound, r->median), 1, "%"));
    if (p->predictor.n) {
        columns_add(table, "%s", figure(p, r->predicted * 1e6, 2, ""));
        columns_add(table, "%s", figure(p, ratio(r->predicted, r->min), 2, ""));
    }
    columns_add(table, "%s", r->name);
}

static Row total_row(const Profile *p)
{
    Row t = {.name = "total"};

    for (uint32_t i = 0; i < p->nrows; i++) {
        const Row *r = &p->rows[i];
        t.calls += r->calls;
        t.median += r->median;
        t.min += r->min;
        t.flops += r->flops;
        t.bytes += r->bytes;
        t.predicted += r->predicted;
        t.elsewhere = t.elsewhere || r->elsewhere;
        t.of = time_beside(t.of, r->of);
    }
    return t;
}

static Row kind_row(const Profile *p, WorkKind kind)
{
    Row t = {.kind = kind};

    for (uint32_t i = 0; i < p->nrows; i++)
        if (p->rows[i].kind == kind && !p->rows[i].elsewhere)
            t.median += p->rows[i].median, t.flops += p->rows[i].flops;
    return t;
}

static void print_kinds(const Profile *p)
{
    Row r = kind_row(p, WORK_PRODUCTS), w = kind_row(p, WORK_WINOGRAD);

    if (r.flops > 0 && p->peak > 0)
        say(p->s.driver, "products of %d or more: %.1f%% of the time, at %.1f%% of the peak\n",
            WORK_LONG_REDUCTION, 100 * ratio(r.median, p->total), 100 * peak_share(p, &r));
    if (w.flops > 0 && p->peak > 0)
        say(p->s.driver, "Winograd: %.1f%% of the time, at %.1f%% of the peak\n",
            100 * ratio(w.median, p->total), 100 * peak_share(p, &w));
}

/* How far predictions are off, as a share of the least time: by that much or less for half of the
 * kernels. */
static double error_of(const Row *r)
{
    double off = ratio(r->predicted, r->min) - 1;

    return isnan(off) ? INFINITY : fabs(off);
}

static double median_error(const Profile *p)
{
    double *off = NEW_ARRAY(p->s.driver->arena, double, p->nrows + 1);

    for (uint32_t i = 0; i < p->nrows; i++)
        off[i] = error_of(&p->rows[i]);
    return session_median(p->nrows, off);
}

/* The share of the time of kernels whose predictions are off by no more. */
static double within(const Profile *p, double most)
{
    double sum = 0;

    for (uint32_t i = 0; i < p->nrows; i++)
        sum += error_of(&p->rows[i]) <= most ? p->rows[i].median : 0;
    return ratio(sum, p->total);
}

static void print_text(const Profile *p)
{
    static const char *const heads[] = {"share", "calls", "us",       "us/call", "GFLOP/s",
                                        "peak",  "GB/s",  "bound us", "by",      "of it"};
    Row                      t = total_row(p);
    Columns                 *table =
        columns_new(p->s.driver->arena, p->predictor.n ? "rrrrrrrrlrrrl" : "rrrrrrrrlrl");

    say(p->s.driver, "%s, %s, %s: a run takes %.4f ms, its steps %.4f ms", p->s.info->name,
        session_threads(&p->s), session_compiled_for(&p->s), p->w.wall * 1e3, p->total * 1e3);
    if (p->peak > 0)
        say(p->s.driver, "; %s makes %.1f GFLOP/s and reads %.1f GB/s",
            p->gpu ? p->gpu : "the machine", p->peak * 1e-9, p->bandwidth * 1e-9);
    say(p->s.driver, "\n");
    for (size_t i = 0; i < COUNT(heads); i++)
        columns_add(table, "%s", heads[i]);
    if (p->predictor.n) {
        columns_add(table, "predicted");
        columns_add(table, "to least");
    }
    columns_add(table, "kernel");
    for (uint32_t i = 0; i < p->nrows; i++)
        print_row(p, &p->rows[i], table);
    print_row(p, &t, table);
    say_table(p->s.driver, table);
    print_kinds(p);
    if (p->w.timed)
        say(p->s.driver, "timer: device timers%s\n",
            t.elsewhere ? ", of the host's kernels the host clock" : "");
    else if (p->s.device)
        say(p->s.driver, "timer: host clock, launch and wait included (%s)\n", p->w.untimed);
    if (p->predictor.n)
        say(p->s.driver, "predictions: half of the kernels within %.0f%%, of %.1f%% of the time\n",
            100 * median_error(p), 100 * within(p, median_error(p)));
}

/* `, "key": 1.5`, or null. */
static void add_number(StrBuf *out, const char *key, double v, int digits)
{
    str_printf(out, ", \"%s\": ", key);
    if (isnan(v))
        str_add(out, "null");
    else
        str_printf(out, "%.*f", digits, v);
}

static void row_json(const Profile *p, const Row *r, StrBuf *out)
{
    str_add(out, "{\"name\": ");
    str_add_json(out, r->name);
    str_printf(out, ", \"calls\": %u", r->calls);
    add_number(out, "us", r->median * 1e6, 3);
    add_number(out, "min_us", r->min * 1e6, 3);
    add_number(out, "share", ratio(r->median, p->total), 5);
    add_number(out, "flops", r->flops, 0);
    add_number(out, "bytes", r->bytes, 0);
    add_number(out, "peak_share", peak_share(p, r), 5);
    add_number(out, "bound_us", bound_of(p, r) * 1e6, 3);
    if (p->predictor.n) {
        add_number(out, "predicted_us", r->predicted * 1e6, 3);
        add_number(out, "compute_us", r->of.compute * 1e6, 3);
        add_number(out, "l2_us", r->of.traffic[LEVEL_L2] * 1e6, 3);
        add_number(out, "l3_us", r->of.traffic[LEVEL_L3] * 1e6, 3);
        add_number(out, "memory_us", r->of.traffic[LEVEL_MEMORY] * 1e6, 3);
    }
    str_add(out, "}");
}

static const char *timer_name(const Profile *p)
{
    return p->w.timed ? "device timers" : "host clock";
}

static void print_json(Profile *p)
{
    StrBuf out = strbuf(p->s.driver->arena);
    Row    t = total_row(p);

    session_begin_json(&p->s);
    str_add(&out, p->s.json.at);
    str_printf(&out, ", \"timer\": \"%s\"", timer_name(p));
    add_number(&out, "run_us", p->w.wall * 1e6, 3);
    add_number(&out, "peak_gflops", p->peak > 0 ? p->peak * 1e-9 : NAN, 2);
    add_number(&out, "gbytes", p->bandwidth > 0 ? p->bandwidth * 1e-9 : NAN, 2);
    str_add(&out, ", \"kernels\": [");
    for (uint32_t i = 0; i < p->nrows; i++) {
        str_add(&out, i ? ", " : "");
        row_json(p, &p->rows[i], &out);
    }
    str_add(&out, "], \"total\": ");
    row_json(p, &t, &out);
    Row products = kind_row(p, WORK_PRODUCTS), winograd = kind_row(p, WORK_WINOGRAD);
    add_number(&out, "products_peak_share", peak_share(p, &products), 5);
    add_number(&out, "winograd_peak_share", peak_share(p, &winograd), 5);
    say(p->s.driver, "%s}\n", out.at);
}

/* Times of steps were sorted when they were added up. */
static bool write_page(const Profile *p, const char *path)
{
    Arena      *a = p->s.driver->arena;
    HtmlKernel *kernels = NEW_ARRAY(a, HtmlKernel, p->nrows + 1);
    double     *steps = NEW_ARRAY(a, double, p->w.nsteps + 1);
    HtmlProfile page = {&p->s,    p->w.wall * 1e6, p->total * 1e6, p->peak, p->bandwidth,
                        p->nrows, p->w.nsteps,     kernels,        steps,   timer_name(p)};

    for (uint32_t i = 0; i < p->nrows; i++) {
        const Row *r = &p->rows[i];
        kernels[i] =
            (HtmlKernel){r->name, r->calls, r->median * 1e6, r->flops, r->bytes, r->elsewhere};
    }
    for (uint32_t i = 0; i < p->w.nsteps; i++)
        steps[i] = p->w.took[(size_t)i * p->w.nruns + p->w.nruns / 2] * 1e6;
    return html_profile(&page, path);
}

static void print(Profile *p)
{
    const Options *o = &p->s.driver->opt;

    if (o->html && !strcmp(o->html, "-"))
        return; /* standard output holds the page */
    if (o->json)
        print_json(p);
    else
        print_text(p);
}

int cmd_profile(Driver *driver)
{
    Profile p = {.s = {.driver = driver}};

    if (!driver->opt.repeat)
        driver->opt.repeat = 30;
    driver->opt.compile.passes.one_by_one = driver->opt.predict;
    p.s.timing = true;
    if (session_open(&p.s) && session_is_here(&p.s) && watch_steps(&p.w, &p.s)) {
        session_check(&p.s);
        if (find_limits(&p) && predict_open(&p.predictor, &p.s, p.w.nsteps)) {
            make_rows(&p);
            if (driver->opt.html)
                write_page(&p, driver->opt.html);
            print(&p);
        }
    }
    session_close(&p.s);
    return 0;
}
