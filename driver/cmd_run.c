/* tvmcc run and tvmcc bench: a model, or a product of it, run in this process.
 *
 * A model file is compiled for this machine and its code is loaded from memory, so nothing is
 * written; an archive or a shared library is opened by the runtime.  Either way the model is its
 * tvmcc_model_info, and a run is a call of info->run. */
#include "driver/guard.h"
#include "driver/job.h"
#include "formats/formats.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <tvmcc/runtime.h>

typedef struct {
    Driver                 *driver;
    Ctx                    *c;
    Job                     job;
    bool                    compiled; /* from a model file */
    Jit                    *jit;
    tvmrt_model             model; /* from a product */
    const tvmcc_model_info *info;
    tvmcc_params            params;
    tvmrt_pool             *pool;
    void                   *pool_memory, *device_memory, *state;
    Guarded                 arena, *in_memory, *out_memory;
    StrBuf                  json; /* of --json, without its closing brace */
    const tvmcc_device     *device;
    bool                    open; /* info->open was called */
    void                  **in, **out;
    uint32_t                n_in_npz;
    NpyArray               *in_npz;
} Session;

static double now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static const NpyArray *npz_find(const NpyArray *at, uint32_t n, const char *name)
{
    for (uint32_t i = 0; i < n; i++)
        if (!strcmp(at[i].name, name))
            return &at[i];
    return NULL;
}

static bool read_npz(Session *s, const char *path, uint32_t *n, NpyArray **out)
{
    Bytes file;

    return file_map(s->driver->diags, path, &file) &&
           npz_read(s->driver->diags, s->driver->arena, (Loc){.file = path}, file, n, out);
}

/* ---- opening ---- */

/* Shapes of the given values count where the command line names none. */
static void shapes_from_inputs(Session *s)
{
    ImportOptions *o = &s->job.options.import;
    ImportShape   *all = NEW_ARRAY(s->driver->arena, ImportShape, o->nshapes + s->n_in_npz + 1);
    uint32_t       n = 0;

    for (uint32_t i = 0; i < o->nshapes; i++)
        all[n++] = o->shapes[i];
    for (uint32_t i = 0; i < s->n_in_npz; i++) {
        const NpyArray *v = &s->in_npz[i];
        bool            has = false;
        for (uint32_t j = 0; j < o->nshapes; j++)
            has = has || !strcmp(o->shapes[j].name, v->name);
        if (!has)
            all[n++] = (ImportShape){v->name, v->ndim, v->dims};
    }
    o->shapes = all;
    o->nshapes = n;
}

static bool open_model(Session *s)
{
    Compiled      *k = &s->job.k;
    CodegenOptions o;

    shapes_from_inputs(s);
    if (!compile_all(s->c, k))
        return false;
    o = k->o->codegen;
    o.entry = k->entry;
    o.opt_level = (uint32_t)k->o->passes.opt_level;
    k->o->progress(s->driver, "code", 6, 7);
    double from = now();
    if (!k->backend->jit_plan)
        return error_at(s->c, E_UNSUPPORTED, NO_LOC, "target '%s' cannot be run here",
                        s->c->target->text);
    s->jit = k->backend->jit_plan(s->c, k->plan, &o);
    k->seconds[3] = now() - from;
    if (!s->jit)
        return false;
    void *sym = k->backend->jit_symbol(s->jit, intern_printf(s->c->strings, "%s_info", k->entry));
    const tvmcc_model_info *(*info)(void);
    if (!sym)
        BUG("the entry point of the model was lost");
    memcpy(&info, &sym, sizeof sym);
    s->info = info();
    s->params.weights = k->weights.at;
    s->params.weights_bytes = k->weights.n;
    return true;
}

static bool open_product(Session *s, const char *path)
{
    if (!job_readable(s->driver, path))
        return false;
    int32_t rc = tvmrt_model_open(&s->model, path, s->driver->opt.entry);

    if (rc)
        return diag_error(s->driver->diags, E_RUN, (Loc){.file = path}, "%s", s->model.error);
    s->info = s->model.info;
    s->params.weights = s->model.weights;
    s->params.weights_bytes = s->model.weights_bytes;
    return true;
}

static bool same_type(const tvmcc_tensor_info *t, const NpyArray *v)
{
    static const char kinds[] = {
        [TVMCC_INT] = 'i', [TVMCC_UINT] = 'u', [TVMCC_FLOAT] = 'f', [TVMCC_BOOL] = 'b'};

    return t->code < sizeof kinds && kinds[t->code] == v->kind && t->bits == v->size * 8;
}

/* The values of input t: those given by name, else filled. */
static bool fill_input(Session *s, const tvmcc_tensor_info *t, void *to, uint64_t *seed)
{
    const NpyArray *v = npz_find(s->in_npz, s->n_in_npz, t->name);

    if (v) {
        bool same = same_type(t, v) && v->ndim == t->ndim && v->data.n == t->bytes;
        for (uint32_t i = 0; same && i < t->ndim; i++)
            same = v->dims[i] == t->dims[i];
        if (!same)
            return diag_error(
                s->driver->diags, E_RUN, NO_LOC,
                "input '%s': the given value has another type or shape than the model", t->name);
        memcpy(to, v->data.at, t->bytes);
        return true;
    }
    DType    type = {t->code, t->bits, 1};
    uint32_t step = dtype_bytes(type);
    for (size_t i = 0; i + step <= t->bytes; i += step) {
        *seed = *seed * 6364136223846793005u + 1442695040888963407u;
        double   u = (double)(*seed >> 40) / (double)(1 << 24);
        FillMode m = s->driver->opt.fill;
        if (dtype_is_float(type))
            dtype_put_f(type, (char *)to + i, m == FILL_RANDOM ? u * 2 - 1 : m == FILL_ONES);
        else
            dtype_put_i(type, (char *)to + i, m == FILL_ONES);
    }
    return true;
}

/* A device for the model, and the model opened on it. */
static bool open_device(Session *s)
{
    Diags      *d = s->driver->diags;
    const char *why = "this runtime drives no such device";
    size_t      n = (tvmrt_opencl_bytes() + 63) / 64 * 64;

    if (s->info->device == TVMCC_DEVICE_CPU)
        return true;
    s->device_memory = aligned_alloc(64, n);
    if (s->info->device == TVMCC_DEVICE_OPENCL)
        s->device = tvmrt_opencl_open(s->device_memory, n, &why);
    if (!s->device)
        return diag_error(d, E_RUN, NO_LOC, "'%s' cannot run: %s", s->info->name, why);
    s->state = aligned_alloc(64, (s->info->state_bytes + 127) / 64 * 64);
    s->params.state = s->state;
    s->params.state_bytes = s->info->state_bytes;
    s->params.devices = &s->device;
    s->params.device_count = 1;
    int32_t rc = s->info->open(s->state, &s->params);
    s->open = rc == 0;
    return s->open ||
           diag_error(d, E_RUN, NO_LOC, "'%s' cannot be opened on the device: status %d, %s",
                      s->info->name, (int)rc, s->device->last_error(s->device->self));
}

/* Inputs or outputs, each between guards. */
static bool tensor_memory(Session *s, const tvmcc_tensor_info *t, uint32_t n, Guarded **memory,
                          void **at)
{
    *memory = NEW_ARRAY(s->driver->arena, Guarded, n + 1);
    for (uint32_t i = 0; i < n; i++) {
        if (!guard_new(&(*memory)[i], t[i].bytes, 64))
            return diag_error(s->driver->diags, E_RUN, NO_LOC, "no memory for '%s', %zu bytes",
                              t[i].name, t[i].bytes);
        at[i] = (*memory)[i].at;
    }
    return true;
}

static void free_tensors(Guarded *memory, uint32_t n)
{
    for (uint32_t i = 0; memory && i < n; i++)
        guard_free(&memory[i]);
}

/* A model that stores beside its memory is a defect of this compiler. */
static void check_guards(const Session *s)
{
    bool ok = guard_intact(&s->arena);

    for (uint32_t i = 0; i < s->info->ninputs; i++)
        ok = ok && guard_intact(&s->in_memory[i]);
    for (uint32_t i = 0; i < s->info->noutputs; i++)
        ok = ok && guard_intact(&s->out_memory[i]);
    if (!ok)
        BUG("'%s' stored beside its memory", s->info->name);
}

static bool open_session(Session *s)
{
    Driver        *driver = s->driver;
    const Options *o = &driver->opt;
    uint64_t       seed = 1;

    if (o->in_npz && !read_npz(s, o->in_npz, &s->n_in_npz, &s->in_npz))
        return false;
    if (!job_start(driver, &s->job, "llvm -mcpu=native"))
        return false;
    s->c = s->job.c;
    s->compiled = !job_is_product(o->inputs.at[0]);
    if (!(s->compiled ? open_model(s) : open_product(s, o->inputs.at[0])))
        return false;
    progress_end(driver->progress);

    const tvmcc_model_info *info = s->info;
    uint32_t                threads = o->threads ? o->threads : tvmrt_cpu_count();
    s->params.struct_bytes = sizeof s->params;
    s->params.threads = threads;
    s->params.arena_bytes = tvmrt_arena_bytes(info, threads);
    if (!guard_new(&s->arena, s->params.arena_bytes, 64))
        return diag_error(driver->diags, E_RUN, NO_LOC, "no memory for the arena, %zu bytes",
                          s->params.arena_bytes);
    s->params.arena = s->arena.at;
    if (threads > 1) {
        s->pool_memory = aligned_alloc(64, (tvmrt_pool_bytes(threads) + 63) / 64 * 64);
        s->pool = tvmrt_pool_new(s->pool_memory, tvmrt_pool_bytes(threads), threads);
        if (!s->pool)
            return diag_error(driver->diags, E_RUN, NO_LOC, "%u threads cannot be started",
                              threads);
        tvmrt_pool_use(s->pool, &s->params);
    }
    if (!open_device(s))
        return false;
    s->in = NEW_ARRAY(driver->arena, void *, info->ninputs + 1);
    s->out = NEW_ARRAY(driver->arena, void *, info->noutputs + 1);
    if (!tensor_memory(s, info->inputs, info->ninputs, &s->in_memory, s->in) ||
        !tensor_memory(s, info->outputs, info->noutputs, &s->out_memory, s->out))
        return false;
    for (uint32_t i = 0; i < info->ninputs; i++) {
        if (!fill_input(s, &info->inputs[i], s->in[i], &seed))
            return false;
    }
    for (uint32_t i = 0; i < s->n_in_npz; i++) {
        bool known = false;
        for (uint32_t j = 0; j < info->ninputs; j++)
            known = known || !strcmp(info->inputs[j].name, s->in_npz[i].name);
        if (!known)
            return diag_error(driver->diags, E_RUN, (Loc){.file = o->in_npz},
                              "the model has no input '%s'", s->in_npz[i].name);
    }
    if (s->compiled && o->explain)
        for (uint32_t i = 0; i < s->job.k.plan->nkernels; i++)
            job_explain(&s->job.k.plan->kernels[i]);
    return true;
}

static void close_session(Session *s)
{
    if (s->open)
        s->info->close(s->state, &s->params);
    if (s->device)
        tvmrt_opencl_close(s->device);
    free(s->device_memory);
    free(s->state);
    if (s->pool)
        tvmrt_pool_free(s->pool);
    free(s->pool_memory);
    guard_free(&s->arena);
    if (s->info) {
        free_tensors(s->in_memory, s->info->ninputs);
        free_tensors(s->out_memory, s->info->noutputs);
    }
    if (s->jit)
        s->job.k.backend->jit_free(s->jit);
    if (s->model.handle)
        tvmrt_model_close(&s->model);
}

static bool run_once(Session *s)
{
    int32_t rc = s->info->run(s->in, s->out, &s->params);

    if (rc && s->device && *s->device->last_error(s->device->self))
        return diag_error(s->driver->diags, E_RUN, NO_LOC, "the run ended with status %d: %s",
                          (int)rc, s->device->last_error(s->device->self));
    return rc == 0 ||
           diag_error(s->driver->diags, E_RUN, NO_LOC, "the run ended with status %d", (int)rc);
}

/* ---- results ---- */

static NpyArray array_of(Arena *a, const tvmcc_tensor_info *t, void *data)
{
    static const char kinds[] = {
        [TVMCC_INT] = 'i', [TVMCC_UINT] = 'u', [TVMCC_FLOAT] = 'f', [TVMCC_BOOL] = 'b'};
    int64_t *dims = DUP_ARRAY(a, t->dims, t->ndim);
    char     kind = t->code < sizeof kinds && kinds[t->code] ? kinds[t->code] : 'V';

    return (NpyArray){t->name, kind, t->bits / 8u, t->ndim, dims, {data, t->bytes}};
}

static bool write_outputs(Session *s, const char *path)
{
    NpyArray *all = NEW_ARRAY(s->driver->arena, NpyArray, s->info->noutputs + 1);

    for (uint32_t i = 0; i < s->info->noutputs; i++)
        all[i] = array_of(s->driver->arena, &s->info->outputs[i], s->out[i]);
    return file_write(s->driver->diags, path, npz_write(s->driver->arena, s->info->noutputs, all));
}

/* The largest error of each output must be at most rtol * (largest expected value) + atol. */
static bool compare(Session *s, const char *path)
{
    const Options *o = &s->driver->opt;
    uint32_t       n;
    NpyArray      *want;
    bool           ok = true;

    if (!read_npz(s, path, &n, &want))
        return false;
    for (uint32_t i = 0; i < n; i++) {
        const tvmcc_tensor_info *t = NULL;
        void                    *got = NULL;
        for (uint32_t j = 0; j < s->info->noutputs; j++)
            if (!strcmp(s->info->outputs[j].name, want[i].name))
                t = &s->info->outputs[j], got = s->out[j];
        if (!t || !same_type(t, &want[i]) || t->bytes != want[i].data.n) {
            diag_error(s->driver->diags, E_MISMATCH, (Loc){.file = path},
                       "output '%s' is missing or has another type or shape", want[i].name);
            ok = false;
            if (o->json) {
                str_add(&s->json, i ? ", " : ", \"compared\": [");
                str_add(&s->json, "{\"name\": ");
                json_string(&s->json, want[i].name);
                str_add(&s->json, ", \"agrees\": false}");
            }
            continue;
        }
        DType    type = {t->code, t->bits, 1};
        uint32_t step = dtype_bytes(type);
        double   err = 0, sum = 0, most = 0;
        size_t   at = 0, bad = 0, cells = t->bytes / step;
        for (size_t k = 0; k < cells; k++) {
            double a = dtype_get_f(type, (char *)got + k * step),
                   b = dtype_get_f(type, want[i].data.at + k * step);
            double e = fabs(a - b);
            if ((isnan(a) && isnan(b)) || a == b)
                e = 0;
            if (isnan(e))
                bad++;
            if (e > err)
                err = e, at = k;
            if (fabs(b) > most && isfinite(b))
                most = fabs(b);
            sum += e;
        }
        double limit = o->rtol * most + o->atol;
        double mean = cells ? sum / (double)cells : 0;
        bool   fits = !bad && (o->judge_mean ? mean : err) <= limit;
        if (!fits)
            diag_error(s->driver->diags, E_MISMATCH, NO_LOC,
                       "output '%s' differs by %.3g at element %zu, %.3g in the mean; at most %.3g "
                       "is allowed%s",
                       t->name, err, at, mean, limit, bad ? "; some elements are NaN" : "");
        if (o->json) {
            str_add(&s->json, i ? ", " : ", \"compared\": [");
            str_add(&s->json, "{\"name\": ");
            json_string(&s->json, t->name);
            str_printf(&s->json,
                       ", \"agrees\": %s, \"max_error\": %.6g, \"mean_error\": %.6g, "
                       "\"max_expected\": %.6g}",
                       fits ? "true" : "false", err, mean, most);
        } else if (fits) {
            say(s->driver,
                "output '%s' agrees: largest error %.3g, mean %.3g, largest value %.3g\n", t->name,
                err, mean, most);
        }
        ok = ok && fits;
    }
    if (o->json && n)
        str_add(&s->json, "]");
    return ok;
}

static void print_top(Session *s, uint32_t top)
{
    if (!s->info->noutputs)
        return;
    const tvmcc_tensor_info *t = &s->info->outputs[0];
    DType                    type = {t->code, t->bits, 1};
    size_t                   n = t->bytes / dtype_bytes(type);
    bool                    *used = NEW_ARRAY(s->driver->arena, bool, n + 1);

    for (uint32_t k = 0; k < top && k < n; k++) {
        size_t best = n;
        for (size_t i = 0; i < n; i++)
            if (!used[i] &&
                (best == n || dtype_get_f(type, (char *)s->out[0] + i * dtype_bytes(type)) >
                                  dtype_get_f(type, (char *)s->out[0] + best * dtype_bytes(type))))
                best = i;
        double value = dtype_get_f(type, (char *)s->out[0] + best * dtype_bytes(type));
        used[best] = true;
        if (s->driver->opt.json)
            str_printf(&s->json, "%s{\"index\": %zu, \"value\": %.9g}", k ? ", " : ", \"top\": [",
                       best, value);
        else
            say(s->driver, "%8zu  %.6g\n", best, value);
    }
    if (s->driver->opt.json && n)
        str_add(&s->json, "]");
}

/* ---- timing ---- */

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return x < y ? -1 : x > y;
}

typedef struct {
    double min, median, mean, p95;
} Times; /* milliseconds */

static bool measure(Session *s, Times *out)
{
    const Options *o = &s->driver->opt;
    uint32_t       repeat = o->repeat, number = o->number;
    double        *ms = NEW_ARRAY(s->driver->arena, double, repeat), sum = 0;

    for (uint32_t i = 0; i < repeat; i++) {
        double from = now();
        for (uint32_t j = 0; j < number; j++)
            if (!run_once(s))
                return false;
        ms[i] = (now() - from) * 1e3 / number;
        sum += ms[i];
    }
    qsort(ms, repeat, sizeof *ms, by_value);
    *out = (Times){ms[0], repeat % 2 ? ms[repeat / 2] : (ms[repeat / 2 - 1] + ms[repeat / 2]) / 2,
                   sum / repeat, ms[(uint32_t)(0.95 * (repeat - 1) + 0.5)]};
    return true;
}

static void add_times(StrBuf *s, const Times *t)
{
    str_printf(s, ", \"ms\": {\"min\": %.4f, \"median\": %.4f, \"mean\": %.4f, \"p95\": %.4f}",
               t->min, t->median, t->mean, t->p95);
}

/* `{"model": .., "threads": ..`, to be gone on with. */
static void begin_json(Session *s)
{
    s->json = strbuf(s->driver->arena);
    str_add(&s->json, "{\"model\": ");
    json_string(&s->json, s->info->name);
    str_printf(&s->json, ", \"threads\": %u", s->params.threads);
}

int cmd_run(Driver *driver)
{
    Session        s = {.driver = driver};
    const Options *o = &driver->opt;
    Times          t;

    if (!driver->opt.rtol)
        driver->opt.rtol = 1e-3;
    bool ok = open_session(&s);
    if (ok)
        begin_json(&s);
    ok = ok && (o->print_time ? run_once(&s) && measure(&s, &t) : run_once(&s));
    if (ok)
        check_guards(&s);
    if (ok && o->print_time) {
        if (o->json)
            add_times(&s.json, &t);
        else
            say(driver, "%.4f ms median, %.4f min, %.4f mean, %.4f p95; %u runs, %u threads\n",
                t.median, t.min, t.mean, t.p95, o->repeat * o->number, s.params.threads);
    }
    if (ok && o->print_top)
        print_top(&s, o->print_top);
    if (ok && o->out_npz)
        ok = write_outputs(&s, o->out_npz);
    if (ok && o->expect_npz)
        compare(&s, o->expect_npz);
    if (ok && o->json)
        say(driver, "%s}\n", s.json.at);
    close_session(&s);
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
        begin_json(s);
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
    say(driver, "%s, %u threads: %.4f ms min, %.4f median, %.4f mean, %.4f p95\n", s->info->name,
        s->params.threads, t->min, t->median, t->mean, t->p95);
    if (s->compiled)
        say(driver, "compile %.3f s, ", compile);
    say(driver, "code %zu bytes, weights %zu bytes, arena %zu bytes, peak RSS %ld KiB\n", code,
        weights, s->params.arena_bytes, rss);
}

/* At least two runs and 50 ms: pages are touched, threads have spread over the cores. */
static bool warm_up(Session *s)
{
    double from = now();

    for (int runs = 0; runs < 2 || now() - from < 0.05; runs++)
        if (!run_once(s))
            return false;
    return true;
}

int cmd_bench(Driver *driver)
{
    Session s = {.driver = driver};
    Times   t;

    if (driver->opt.repeat == 1)
        driver->opt.repeat = 20;
    if (open_session(&s)) {
        reset_peak();
        if (warm_up(&s) && measure(&s, &t)) {
            check_guards(&s);
            report(&s, &t);
        }
    }
    close_session(&s);
    return 0;
}
