/* A model made ready to run in this process (session.c). */
#ifndef TVMCC_DRIVER_SESSION_H
#define TVMCC_DRIVER_SESSION_H

#include "driver/guard.h"
#include "driver/job.h"
#include "driver/remote.h"
#include "formats/formats.h"

#include <tvmcc/runtime.h>

typedef struct {
    Driver                 *driver;
    Ctx                    *c;
    Job                     job;
    bool                    compiled; /* from a model file */
    Jit                    *jit;
    tvmrt_model             model;  /* from a product */
    Remote                 *remote; /* a program instead of code in this process; else NULL */
    const tvmcc_model_info *info;
    uint32_t                target; /* of a product for several targets: which of them `info` is */
    tvmcc_params            params;
    tvmrt_pool             *pool;
    void                   *pool_memory, *device_memories[MAX_TARGETS], *state;
    Guarded                 arena, *in_memory, *out_memory;
    StrBuf                  json;     /* of --json, without its closing brace */
    uint32_t                ndevices; /* that were opened */
    const tvmcc_device     *opened[MAX_TARGETS];
    tvmcc_device            tables[MAX_TARGETS]; /* copies of these, which the model uses */
    const tvmcc_device     *devices[MAX_TARGETS], *device; /* them; device: that of the model */
    bool                    timing;                        /* devices shall time launches */
    const char             *untimed[MAX_TARGETS];          /* why one does not; NULL: it does */
    bool                    open;                          /* info->open was called */
    void                  **in, **out;
    uint32_t                ndevice_tensors;
    void                  **device_tensors; /* of --device-memory */
    uint32_t                ngiven;         /* values of inputs */
    Array                  *given;
    VEC(ImportDim) lengths;            /* of sequences among them */
    const ModelSignature   *signature; /* of a model file whose format tells it; or NULL */
    const tvmcc_model_info *whole;     /* of shape buckets: what `info` was chosen from; or NULL */
    int64_t                *wanted;    /* sizes of its dimensions */
    const tvmcc_model_info *dynamic;   /* of sizes that a run decides: what `info` was; or NULL */
    const tvmcc_size_info  *sizes;     /* .. on which the arena depends; or NULL */
    tvmcc_value            *in_values, *out_values;
    void *const *in_args, *const *out_args;
    TextList labels; /* names of classes, of session_labels */
} Session;

/* From the command line, and s->timing: the model is compiled or the product opened, memory,
 * threads and device are there, inputs are filled.  False after an error; session_close is due
 * either way. */
bool session_open(Session *s);
void session_close(Session *s);
/* Error unless the model runs in this process: times of an emulator say nothing. */
bool session_is_here(Session *s);
bool session_run(Session *s);
/* Whether the model's device times launches, which s->timing asks for; `why` not. */
bool session_times(const Session *s, const char **why);
/* Whether `wait` of the devices waits.  Where it does not, nothing has happened when a run ends,
 * and who watches the steps sees launches asked for, not done. */
void session_wait(Session *s, bool waits);
/* At least two runs and 50 ms: pages are touched, threads have spread over the cores. */
bool session_warm_up(Session *s);
/* A model that stores beside its memory is a defect of this compiler. */
void session_check(const Session *s);

/* Of a compiled model: the plan that runs. */
const Plan *session_plan(const Session *s);
/* What its build wrote about an opened product: in its folder or archive, or in the .json beside a
 * library, if that is of the same build. */
bool session_metadata(Session *s, ModelDesc *out);
/* Every output that the file has agrees, as --rtol, --atol and --mean say; else E_MISMATCH. */
bool session_compare(Session *s, const char *path);
/* --per-layer: every kernel of the product against the interpreter (layers.c). */
bool session_layers(Session *s);
/* `{"model": .., "threads": .., "target": ..`, to be gone on with. */
void        session_begin_json(Session *s);
const char *session_threads(const Session *s); /* "2 threads" */
/* `compiled for this CPU (cascadelake; -mcpu=native)`: times mean nothing without it. */
const char *session_compiled_for(const Session *s);

/* ---- values.c: values of tensors in files: .npz, or folders of .pb ----
 * A sequence x is the tensors x.0, x.1, ..; an optional value the bool x.given and x itself. */

/* --inputs into s->given: before a model is imported, if its file tells the inputs' names, else
 * after it, or after the product was opened. */
bool session_read_inputs(Session *s);
/* Those expected of the outputs. */
bool session_read_expected(Session *s, const char *path, uint32_t *n, Array **out);
bool session_write_outputs(Session *s, const char *path);
/* What came out, an element of less than 8 bits a byte; sequences as their elements. */
bool session_results(Session *s, uint32_t *n, Array **out);
/* Does the model's file call this output one of strings? */
bool session_is_text(Session *s, const char *output);
/* Strings among s->given get the room that the model has for them. */
void session_fit_text(Session *s);
/* Is this the element type of t, as far as the file says it? */
bool session_same_type(const tvmcc_tensor_info *t, const Array *v);

/* ---- outputs.c: what came out of a run ---- */

/* Names of classes: those of --labels, or those that a product brings along. */
bool session_labels(Session *s);
/* The largest values of an output and their indices; into s->json with --json. */
void session_print_top(Session *s, uint32_t output, uint32_t top);
/* All outputs in short. */
void session_show(Session *s);

/* ---- bucket.c: models with shape buckets; nothing to do for others ---- */

/* s->info becomes the bucket for the given inputs. */
bool session_bucket(Session *s);
/* A value smaller than input `input` of the bucket; false if it does not fit. */
bool session_pad(Session *s, uint32_t input, const Array *v, void *to);
/* Outputs lose what pads them, after the last run; s->info tells their shapes then. */
void session_cut(Session *s);

/* ---- device_memory.c ---- */

/* --device-memory, behind session_open: inputs and outputs move to the device's memory. */
bool session_device_memory(Session *s);
void session_free_device_memory(Session *s);

/* ---- dynamic.c: models with dimensions that a run decides; nothing to do for others ---- */

/* s->info tells the sizes of the given inputs. */
bool session_dynamic(Session *s);
/* Bytes of arena for the given inputs; -1: there is no such run, an error is recorded. */
int64_t session_arena_bytes(Session *s, uint32_t threads);
/* A run, with its status; s->info tells the sizes of the outputs then. */
int32_t session_run_dynamic(Session *s);
/* False, with an error: which of the sizes that a run was given, or made, is none it can have. */
bool session_shape_error(Session *s);

/* By name, or NULL. */
const Array *array_find(const Array *a, uint32_t n, const char *name);
/* `f32[1,4]`, of the model and of a file. */
const char *session_tensor_text(Session *s, const tvmcc_tensor_info *t);
const char *session_array_text(Session *s, const Array *v);
/* `'a', 'b'`; the first eight. */
const char *session_names(Session *s, uint32_t n, const tvmcc_tensor_info *t);
double      session_now(void); /* seconds */
/* Sorts them. */
double session_median(uint32_t n, double *at);

#endif
