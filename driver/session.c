/* A model made ready to run in this process, for run, bench and profile.
 *
 * A model file is compiled for this machine and its code is loaded from memory, so nothing is
 * written; an archive or a shared library is opened by the runtime.  Either way the model is its
 * tvmcc_model_info, and a run is a call of info->run. */
#include "driver/session.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

double session_now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* ---- opening ---- */

/* Shapes of the given values count where the command line names none. */
static void shapes_from_inputs(Session *s)
{
    CompileOptions       *o = &s->job.options;
    const CompileOptions *given = &s->driver->opt.compile;

    memset(&o->shapes, 0, sizeof o->shapes); /* what is added is not for other models */
    for (uint32_t i = 0; i < given->shapes.n; i++)
        vec_push(s->driver->arena, &o->shapes, given->shapes.at[i]);
    for (uint32_t i = 0; i < s->ngiven; i++) {
        const Array *v = &s->given[i];
        bool         has = false;
        for (uint32_t j = 0; j < given->shapes.n; j++)
            has = has || !strcmp(given->shapes.at[j].name, v->name);
        for (uint32_t j = 0; j < given->images.n; j++) { /* not the model's shape */
            const char *input = given->images.at[j].input;
            has = has || !input || !strcmp(input, v->name);
        }
        if (!has)
            vec_push(s->driver->arena, &o->shapes,
                     ((ImportShape){.name = v->name,
                                    .ndim = v->ndim,
                                    .dims = v->dims,
                                    .from_values = true,
                                    .typed = v->code != ARRAY_OPAQUE,
                                    .dtype = (DType){v->code, v->bits, 1}}));
    }
    memset(&o->dims, 0, sizeof o->dims);
    for (uint32_t i = 0; i < given->dims.n; i++)
        vec_push(s->driver->arena, &o->dims, given->dims.at[i]);
    for (uint32_t i = 0; i < s->lengths.n; i++) {
        bool has = false;
        for (uint32_t j = 0; j < given->dims.n; j++)
            has = has || !strcmp(given->dims.at[j].name, s->lengths.at[i].name);
        if (!has)
            vec_push(s->driver->arena, &o->dims, s->lengths.at[i]);
    }
}

/* A program of its own, though the model could run in this process. */
static bool as_program(const Session *s)
{
    const Options *o = &s->driver->opt;

    return o->per_layer || o->emulator || o->cc;
}

static void *sizes_of(Session *s, const Compiled *k)
{
    return k->backend->jit_symbol(s->jit, intern_printf(s->c->strings, "%s_sizes", k->entry));
}

static bool open_model(Session *s)
{
    Compiled *k = &s->job.k;
    Bytes     object;

    shapes_from_inputs(s);
    s->job.options.pic = true;
    s->job.options.weights_mode = WEIGHTS_FILE; /* they are handed over, not loaded */
    if (!compile_all(s->c, k))
        return false;
    compile_tell(k, "code", 6, 7);
    if (remote_is_foreign(s->c, s->c->target) || as_program(s)) {
        s->remote = remote_model(s->driver, &s->job);
        s->info = s->remote ? remote_info(s->remote) : NULL;
        return s->remote != NULL;
    }
    if (!k->backend->jit_load)
        return error_at(s->c, E_UNSUPPORTED, NO_LOC, "target '%s' cannot be run here",
                        s->c->target->text);
    if (!compile_code(s->c, k, EMIT_OBJECT, &object) ||
        !(s->jit = k->backend->jit_load(s->c, k->plan->target, object)))
        return false;
    void *sym = k->backend->jit_symbol(s->jit, intern_printf(s->c->strings, "%s_info", k->entry));
    const tvmcc_model_info *(*info)(void);
    if (!sym)
        BUG("the entry point of the model was lost");
    memcpy(&info, &sym, sizeof sym);
    s->info = info();
    if ((sym = k->plan->arena ? sizes_of(s, k) : NULL)) {
        const tvmcc_size_info *(*sizes)(void);
        memcpy(&sizes, &sym, sizeof sym);
        s->sizes = sizes();
    }
    s->params.weights = k->weights.at;
    s->params.weights_bytes = k->weights.n;
    return true;
}

/* A folder or a .tar with a SHA256SUMS: its library is about to be loaded. */
static bool hashes_fit(Driver *driver, const char *path)
{
    struct stat st;
    Bytes       file = {0};
    Member     *m;
    uint32_t    n;

    if (stat(path, &st) != 0)
        return true; /* what cannot be opened is said later */
    if (!S_ISDIR(st.st_mode) && (pack_format(path) == PACK_NONE ||
                                 !file_map(driver->diags, path, &file) || !pack_looks(file)))
        return !diag_errors(driver->diags);
    return bundle_read(driver->diags, driver->arena, path, file, &m, &n);
}

static bool open_product(Session *s, const char *path)
{
    if (!job_readable(s->driver, path))
        return false;
    int32_t  rc = TVMCC_E_MISMATCH;
    uint32_t errors = diag_errors(s->driver->diags);
    bool     whole = remote_wants(path) || as_program(s);

    if (!whole && !hashes_fit(s->driver, path))
        return false;
    if (!whole)
        rc = tvmrt_model_open(&s->model, path, job_product_entry(s->driver, path));
    if (whole || (rc && remote_foreign_product(s->driver, path))) {
        s->remote = remote_product(s->driver, path);
        s->info = s->remote ? remote_info(s->remote) : NULL;
        return s->remote != NULL;
    }
    if (rc && diag_errors(s->driver->diags) > errors)
        return false; /* what is wrong with the file has been said */
    if (rc)
        return diag_error(s->driver->diags, E_RUN, (Loc){.file = path}, "%s", s->model.error);
    s->info = s->model.info;
    s->sizes = tvmrt_sizes(&s->model);
    s->params.weights = s->model.weights;
    s->params.weights_bytes = s->model.weights_bytes;
    return true;
}

/* Is it of this build? */
static bool metadata_fits(Session *s, const char *file, Bytes text, ModelDesc *out)
{
    return metadata_read(diags_new(s->driver->arena), s->driver->arena, file, text, out) &&
           !strcmp(out->entry, s->info->name) &&
           !memcmp(out->build_id.b, s->info->build_id, sizeof out->build_id.b);
}

bool session_metadata(Session *s, ModelDesc *out)
{
    Arena      *a = s->driver->arena;
    Diags      *d = diags_new(a); /* it need not be there */
    const char *path = s->driver->opt.inputs.at[0], *json;
    struct stat st;
    Bytes       file = {0};
    Member     *m;
    uint32_t    n;

    if (stat(path, &st) != 0 || (!S_ISDIR(st.st_mode) && !file_map(d, path, &file)))
        return false;
    if (S_ISDIR(st.st_mode) || pack_looks(file)) {
        if (!bundle_read(d, a, path, file, &m, &n))
            return false;
        for (uint32_t i = 0; i < n; i++)
            if (strstr(m[i].path, "share/") && str_ends(m[i].path, ".json") &&
                metadata_fits(s, m[i].path, m[i].data, out))
                return true;
        return false;
    }
    json = strrchr(path, '.');
    json = arena_printf(a, "%.*s.json", (int)(json ? (size_t)(json - path) : strlen(path)), path);
    return file_map(d, json, &file) && metadata_fits(s, json, file, out);
}

static const char *dims_text(Arena *a, uint32_t n, const int64_t *dims)
{
    StrBuf s = strbuf(a);

    str_add(&s, "[");
    for (uint32_t i = 0; i < n; i++)
        str_printf(&s, "%s%lld", i ? "," : "", (long long)dims[i]);
    str_add(&s, "]");
    return s.at;
}

const char *session_tensor_text(Session *s, const tvmcc_tensor_info *t)
{
    return arena_printf(s->driver->arena, "%s%s", dtype_text(s->c, (DType){t->code, t->bits, 1}),
                        dims_text(s->driver->arena, t->ndim, t->dims));
}

const char *session_array_text(Session *s, const Array *v)
{
    const char *dims = dims_text(s->driver->arena, v->ndim, v->dims);

    if (v->code == ARRAY_OPAQUE)
        return arena_printf(s->driver->arena, "'V%u'%s", v->bits / 8, dims);
    return arena_printf(s->driver->arena, "%s%s", dtype_text(s->c, (DType){v->code, v->bits, 1}),
                        dims);
}

/* The values of input t: those given by name, else filled. */
static bool fill_input(Session *s, uint32_t index, void *to, uint64_t *seed)
{
    const tvmcc_tensor_info *t = &s->info->inputs[index];
    const Array             *v = array_find(s->given, s->ngiven, t->name);

    if (v) {
        bool same = session_same_type(t, v) && v->ndim == t->ndim && v->data.n == t->bytes;
        for (uint32_t i = 0; same && i < t->ndim; i++)
            same = v->dims[i] == t->dims[i];
        if (!same && session_pad(s, index, v, to))
            return true;
        if (!same)
            return diag_error(s->driver->diags, E_RUN, (Loc){.file = v->file},
                              "input '%s' of the model is %s, its value here is %s", t->name,
                              session_tensor_text(s, t), session_array_text(s, v));
        if (t->bytes) /* an empty tensor has no memory */
            memcpy(to, v->data.at, t->bytes);
        return true;
    }
    DType    type = {t->code, t->bits, 1};
    uint32_t step = dtype_bytes(type);
    FillMode m = s->driver->opt.fill;
    if (s->ngiven && m == FILL_UNSAID)
        diag_warn(s->driver->diags, W_INPUT_FILLED, (Loc){.file = s->given[0].file},
                  "there is no input '%s': it is filled with random numbers", t->name);
    for (size_t i = 0; i + step <= t->bytes; i += step) {
        *seed = *seed * 6364136223846793005u + 1442695040888963407u;
        double u = (double)(*seed >> 40) / (double)(1 << 24);
        if (dtype_is_real(type))
            dtype_put_f(type, (char *)to + i, m <= FILL_RANDOM ? u * 2 - 1 : m == FILL_ONES);
        else
            dtype_put_i(type, (char *)to + i, m == FILL_ONES);
    }
    return true;
}

/* --device-number */
static bool choose_device(const Session *s, tvmrt_device_options *o)
{
    const char   *text = s->driver->opt.device_number;
    char         *end;
    unsigned long n = text ? strtoul(text, &end, 10) : TVMRT_FIRST_DEVICE;

    *o = (tvmrt_device_options){.struct_bytes = sizeof *o, .number = (uint32_t)n};
    if (text && s->info->device == TVMCC_DEVICE_CPU)
        return diag_error(s->driver->diags, E_USAGE, NO_LOC,
                          "--device-number is for models of devices, and '%s' runs on the CPU",
                          s->info->name);
    return !text || (end > text && !*end && n < TVMRT_FIRST_DEVICE) ||
           diag_error(s->driver->diags, E_USAGE, NO_LOC,
                      "--device-number is a number from 0, not '%s'", text);
}

/* A device of the session; NULL, or why there is none.  Where launches shall be timed and it cannot
 * time them it serves all the same. */
static const char *open_one(Session *s, uint32_t kind, tvmrt_device_options options)
{
    uint32_t            i = s->ndevices;
    size_t              n = (tvmrt_device_bytes(kind) + 63) / 64 * 64;
    void               *memory = n ? aligned_alloc(64, n) : NULL;
    const char         *why, *untimed = NULL;
    const tvmcc_device *d;

    options.timing = s->timing;
    d = tvmrt_device_open_with(kind, &options, memory, n, &why);
    if (!d && s->timing) {
        untimed = why;
        options.timing = 0;
        d = tvmrt_device_open_with(kind, &options, memory, n, &why);
    }
    if (!d) {
        free(memory);
        return why;
    }
    s->device_memories[i] = memory;
    s->opened[i] = d;
    s->tables[i] = *d;
    s->untimed[i] = untimed;
    s->devices[i] = s->device = &s->tables[i];
    s->ndevices++;
    return NULL;
}

bool session_times(const Session *s, const char **why)
{
    *why = NULL;
    for (uint32_t i = 0; i < s->ndevices; i++)
        if (s->device == &s->tables[i])
            *why = s->untimed[i];
    return s->device && s->timing && !*why;
}

static int32_t no_wait(void *self)
{
    (void)self;
    return TVMCC_OK;
}

void session_wait(Session *s, bool waits)
{
    for (uint32_t i = 0; i < s->ndevices; i++)
        s->tables[i].wait = waits ? s->opened[i]->wait : no_wait;
}

static bool open_state(Session *s)
{
    s->state = aligned_alloc(64, (s->info->state_bytes + 127) / 64 * 64);
    s->params.state = s->state;
    s->params.state_bytes = s->info->state_bytes;
    int32_t rc = s->info->open(s->state, &s->params);
    s->open = rc == 0;
    return s->open ||
           diag_error(s->driver->diags, E_RUN, NO_LOC,
                      "'%s' cannot be opened on the device: status %d, %s", s->info->name, (int)rc,
                      s->ndevices ? s->device->last_error(s->device->self) : "there is none");
}

static bool has_device(const Session *s, uint32_t kind)
{
    for (uint32_t i = 0; i < s->ndevices; i++)
        if (s->devices[i]->kind == kind)
            return true;
    return false;
}

/* Of a product for several targets: the devices that there are, of the number asked for.  `open`
 * takes the first target that has one, which is the session's device and info from there on; NULL:
 * the CPU, which no number is asked of. */
static bool open_one_of_several(Session *s, tvmrt_device_options options)
{
    const tvmcc_model_info *m = s->info;

    for (uint32_t i = 0; i < m->ntargets; i++)
        if (s->ndevices < MAX_TARGETS && !has_device(s, m->each_target[i]->device))
            open_one(s, m->each_target[i]->device, options);
    s->params.devices = s->devices;
    s->params.device_count = s->ndevices;
    if (!open_state(s))
        return false;
    memcpy(&s->device, (void **)s->state + TVMCC_STATE_DEVICE, sizeof s->device);
    if (s->driver->opt.device_number && !s->device)
        return diag_error(s->driver->diags, E_RUN, NO_LOC,
                          "'%s' cannot run: it opens on no device of number %s", m->name,
                          s->driver->opt.device_number);
    memcpy(&s->info, (void **)s->state + TVMCC_STATE_TARGET, sizeof s->info);
    while (m->each_target[s->target] != s->info)
        s->target++;
    return true;
}

const Plan *session_plan(const Session *s)
{
    return plan_at(s->job.k.plan, s->target);
}

/* A device for the model, and the model opened on it. */
static bool open_device(Session *s)
{
    Diags               *d = s->driver->diags;
    const char          *why;
    tvmrt_device_options options;

    if (!choose_device(s, &options))
        return false;
    if (s->info->device == TVMCC_DEVICE_CPU)
        return true;
    if (s->info->struct_bytes >= sizeof *s->info && s->info->ntargets)
        return open_one_of_several(s, options);
    if ((why = open_one(s, s->info->device, options)))
        return diag_error(d, E_RUN, NO_LOC, "'%s' cannot run: %s", s->info->name, why);
    s->params.devices = s->devices;
    s->params.device_count = 1;
    return open_state(s);
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
void session_check(const Session *s)
{
    bool ok = guard_intact(&s->arena);

    for (uint32_t i = 0; i < s->info->ninputs; i++)
        ok = ok && guard_intact(&s->in_memory[i]);
    for (uint32_t i = 0; i < s->info->noutputs; i++)
        ok = ok && guard_intact(&s->out_memory[i]);
    if (!ok)
        BUG("'%s' stored beside its memory", s->info->name);
}

/* --print-top. */
static bool top_fits(const Session *s)
{
    const tvmcc_tensor_info *t = s->info->outputs;
    uint32_t                 top = s->driver->opt.print_top;
    size_t                   n;

    if (!top || !s->info->noutputs)
        return true;
    n = t->bytes / dtype_bytes((DType){t->code, t->bits, 1});
    if (top <= n)
        return true;
    diag_error(s->driver->diags, E_USAGE, NO_LOC, "'--print-top' is %u, but '%s' has %zu values",
               top, t->name, n);
    return false;
}

bool session_open(Session *s)
{
    Driver        *driver = s->driver;
    const Options *o = &driver->opt;
    uint64_t       seed = 1;

    s->compiled = o->inputs.n != 1 || !job_is_product(s->driver->arena, o->inputs.at[0]);
    if ((!s->compiled && !o->per_layer &&
         !options_fit_product(driver->diags, o, o->inputs.at[0])) ||
        !job_start(driver, &s->job, "llvm -mcpu=native"))
        return false;
    s->c = s->job.c;
    if (s->compiled && !session_read_inputs(s))
        return false;
    if (!(s->compiled ? open_model(s) : open_product(s, o->inputs.at[0])))
        return false;
    progress_end(driver->progress);
    if (!s->given && !session_read_inputs(s))
        return false;
    session_fit_text(s);
    if (!session_bucket(s) || !session_dynamic(s))
        return false;

    const tvmcc_model_info *info = s->info;
    bool                    one = s->remote || strstr(info->targets, "-threads=0");
    if (o->threads > 1 && one) {
        diag_error(driver->diags, E_USAGE, NO_LOC, "'--threads' is %u, but '%s' runs on one: %s",
                   o->threads, info->name,
                   s->remote ? "it is a program of its own here"
                             : "it was compiled with '-fthreads=none'");
        return false;
    }
    if (!top_fits(s))
        return false;
    uint32_t threads = one ? 1 : o->threads ? o->threads : tvmrt_cpu_count();
    s->params.struct_bytes = sizeof s->params;
    s->params.threads = threads;
    int64_t arena = session_arena_bytes(s, threads);
    if (s->sizes && arena < 0)
        return false;
    s->params.arena_bytes = (size_t)arena;
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
    for (uint32_t i = 0; i < s->ngiven; i++) {
        bool known = false;
        for (uint32_t j = 0; j < info->ninputs; j++)
            known = known || !strcmp(info->inputs[j].name, s->given[i].name);
        if (known)
            continue;
        diag_error(driver->diags, E_RUN, (Loc){.file = s->given[i].file},
                   "the model has no input '%s'", s->given[i].name);
        if (info->ninputs)
            diag_hint(driver->diags, "it has %s", session_names(s, info->ninputs, info->inputs));
        return false;
    }
    for (uint32_t i = 0; i < info->ninputs; i++)
        if (!fill_input(s, i, s->in[i], &seed))
            return false;
    if (s->compiled && o->explain)
        job_explain(&s->job);
    return true;
}

const char *session_names(Session *s, uint32_t n, const tvmcc_tensor_info *t)
{
    StrBuf names = strbuf(s->driver->arena);

    for (uint32_t i = 0; i < n && i < 8; i++)
        str_printf(&names, "%s'%s'", i ? ", " : "", t[i].name);
    str_add(&names, n > 8 ? ", .." : "");
    return names.at;
}

bool session_is_here(Session *s)
{
    return !s->remote || diag_error(s->driver->diags, E_UNSUPPORTED, NO_LOC,
                                    "'%s' does not run in this process and cannot be measured",
                                    s->driver->opt.inputs.at[0]);
}

void session_close(Session *s)
{
    if (s->open && s->info->close)
        s->info->close(s->state, &s->params);
    session_free_device_memory(s);
    for (uint32_t i = 0; i < s->ndevices; i++) {
        tvmrt_device_close(s->opened[i]);
        free(s->device_memories[i]);
    }
    free(s->state);
    if (s->pool)
        tvmrt_pool_free(s->pool);
    free(s->pool_memory);
    guard_free(&s->arena);
    if (s->remote)
        remote_close(s->remote);
    if (s->info) {
        free_tensors(s->in_memory, s->info->ninputs);
        free_tensors(s->out_memory, s->info->noutputs);
    }
    if (s->jit)
        s->job.k.backend->jit_free(s->jit);
    if (s->model.handle)
        tvmrt_model_close(&s->model);
}

bool session_run(Session *s)
{
    if (s->remote)
        return remote_run(s->remote, s->info, s->in, s->out);

    int32_t rc = s->dynamic ? session_run_dynamic(s) : s->info->run(s->in, s->out, &s->params);

    if (rc && s->device && *s->device->last_error(s->device->self))
        return diag_error(s->driver->diags, E_RUN, NO_LOC, "the run ended with status %d: %s",
                          (int)rc, s->device->last_error(s->device->self));
    if (rc == TVMCC_E_CPU)
        return diag_error(s->driver->diags, E_RUN, NO_LOC,
                          "this CPU has not all that '%s' was compiled for: %s", s->info->name,
                          s->info->targets);
    if (rc == TVMCC_E_SHAPE)
        return session_shape_error(s);
    return rc == 0 || diag_error(s->driver->diags, E_RUN, NO_LOC,
                                 "the run ended with status %d: %s", (int)rc, tvmcc_strerror(rc));
}

/* `run`, `bench` and `profile` take this machine's processor where none is named. */
static bool is_native(const Session *s)
{
    return s->compiled && strstr(s->job.options.target, "-mcpu=native");
}

void session_begin_json(Session *s)
{
    s->json = strbuf(s->driver->arena);
    str_add(&s->json, "{\"model\": ");
    str_add_json(&s->json, s->info->name);
    str_printf(&s->json, ", \"threads\": %u, \"target\": ", s->params.threads);
    str_add_json(&s->json, s->info->targets);
    str_printf(&s->json, ", \"native\": %s", is_native(s) ? "true" : "false");
}

const char *session_threads(const Session *s)
{
    return s->params.threads == 1 ? "1 thread"
                                  : arena_printf(s->driver->arena, "%u threads", s->params.threads);
}

const char *session_compiled_for(const Session *s)
{
    Arena      *a = s->driver->arena;
    const char *targets = s->info->targets, *cpu = job_target_word(a, targets, "-mcpu=");
    const char *triple = job_target_word(a, targets, "-mtriple=");

    if (strchr(targets, ',') && !str_starts(targets, "llvm "))
        return arena_printf(a, "compiled for '%s'", targets);
    if (is_native(s))
        return arena_printf(a, "compiled for this CPU (%s; -mcpu=native)", cpu ? cpu : "unknown");
    if (!cpu || !triple)
        return arena_printf(a, "compiled for '%s'", targets);
    return arena_printf(a, "compiled for %s (%s)", cpu, triple);
}

/* At least two runs and 50 ms: pages are touched, threads have spread over the cores. */
bool session_warm_up(Session *s)
{
    double from = session_now();

    for (int runs = 0; runs < 2 || session_now() - from < 0.05; runs++)
        if (!session_run(s))
            return false;
    return true;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return x < y ? -1 : x > y;
}

double session_median(uint32_t n, double *at)
{
    qsort(at, n, sizeof *at, by_value);
    return n % 2 ? at[n / 2] : (at[n / 2 - 1] + at[n / 2]) / 2;
}
