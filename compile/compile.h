/* compile: from a model to what comes out of it, in steps.  It knows nothing of a command line.
 *
 *   options.h         what is asked for
 *   compile.c         import, graph passes, lowering, description, code
 *   weights.c         constants as the kernels want them
 *   alternatives.c    all of that for CPU variants and shape buckets, joined to one product
 *   host.c            host programs of very many steps
 *   units.c           kernels one by one: cache, threads, shards
 *   identity.c        S.id: which model and weights a plan goes with
 *   tuning.c          schedules from tuning logs
 *   machine.c         what work costs, from a file
 *   budget.c          is the plan within --max-weights and --max-arena?
 *   eval_jit.c        the evaluator behind constant folding: the same path, in this process
 *   products.h emit.def   what can come out
 */
#ifndef TVMCC_COMPILE_H
#define TVMCC_COMPILE_H

#include "backends/backend.h"
#include "compile/options.h"
#include "packaging/packaging.h"

/* ---- what can come out ----------------------------------------------------------------------- */

typedef enum {
#define EMIT(id, text, suffix, about) PRODUCT_##id,
#include "compile/emit.def"
#undef EMIT
    PRODUCT_COUNT
} Product;

typedef struct {
    const char *text, *suffix, *about;
} ProductRow;

extern const ProductRow product_table[];
bool                    product_find(Diags *d, const char *text, Product *out);
/* The program of a device, or text for another compiler. */
bool product_is_program(Product p);
/* What takes the place of an object for a target whose code is text; PRODUCT_COUNT: nothing. */
Product  product_of_source(const char *target);
uint32_t product_sources(void); /* the set of these */
/* The backend whose text it is; NULL: of none alone. */
const char *product_owner(Product p);
bool        product_fits(Product p, const char *target); /* it is that of any, or of this one's */
/* By the longest suffix that fits (".tar.gz" before ".gz"); PRODUCT_COUNT if none does. */
Product product_of_path(const char *path);

/* In weights files and in objects with large weights they begin here, whatever else is in them. */
enum { WEIGHTS_AT = 64 };

/* Which files a plan goes with. */
typedef struct {
    Sha256         plan, model, weights, build;
    uint64_t       weights_bytes;
    uint32_t       nops;
    const OpCount *ops;
} Identity;

typedef struct {
    const CompileOptions *o;
    const Backend        *backend;
    ImportFiles           files;             /* all that was read, for depfiles */
    const Module         *imported, *module; /* before and after the graph passes */
    int64_t               macs;              /* of the model, as it was imported */
    const Plan           *plan;
    Bytes                 weights;  /* the blob: constants packed, in the plan's order */
    uint64_t              narrowed; /* bytes of it that are f32 rounded to 16 bits */
    double          narrow_error;   /* the largest of these, relative to its constant's largest */
    const char     *narrow_worst;   /* ... which is this one */
    ModelDesc      *desc;
    const char     *entry;  /* prefix of functions, a C identifier */
    const char     *header; /* file that source text includes; NULL: <entry>.h */
    CodegenInfo     info;
    const Identity *id;                    /* of compile_read_id, or NULL */
    double          seconds[4];            /* import, graph, lower, code */
    uint32_t        units, units_compiled; /* kernels whose code was wanted, and made */
} Compiled;

/* Some of a plan's kernels: those whose hash is `at` modulo `of`. */
typedef struct {
    uint32_t at, of;
} Shard;

/* A fresh compile of the options' model; the entry is decided here. */
void compile_start(Ctx *c, Compiled *k, const CompileOptions *o);
/* Each step needs those before it; false with errors recorded. */
bool compile_target(Ctx *c, Compiled *k); /* c->target and the backend */
bool compile_import(Ctx *c, Compiled *k);
/* Instead of an import: what the file says that it would take and give; false: nothing. */
bool compile_describe(Ctx *c, const CompileOptions *o, ModelSignature *out);
bool compile_graph(Ctx *c, Compiled *k);
bool compile_plan(Ctx *c, Compiled *k);
bool compile_weights(Ctx *c, Compiled *k);
bool compile_desc(Ctx *c, Compiled *k);
/* All of the plan but the weights, as one object or text. */
bool compile_code(Ctx *c, Compiled *k, EmitKind kind, Bytes *out);
/* The same in pieces, objects to be merged or linked: a shard's kernels; the host program, for
 * targets without units (device code, other object formats) with everything. */
/* Whether kernels for it are compiled one by one, and merged. */
bool compile_has_units(const Compiled *k, const Target *t);
bool compile_units(Ctx *c, Compiled *k, Shard shard, Bytes *out);
bool compile_host(Ctx *c, Compiled *k, Bytes *out);
/* The weights as a symbol of an object; when they are in a file or there are none, an empty one. */
bool compile_blob(Ctx *c, Compiled *k, Bytes *out);
/* The object of compile_code and the weights as one object, unless they are elsewhere. */
bool compile_join(Ctx *c, Compiled *k, Bytes code, BytesList *out);
/* The same up to the weights for each CPU variant and shape bucket, joined: alternatives.c */
bool compile_alternatives(Ctx *c, Compiled *k);
/* Options for the largest of them alone, all having been checked; the options as they are where
 * there are none. */
bool compile_largest(Ctx *c, const CompileOptions *o, CompileOptions *out);
/* Step `done` of `total` begins; `step` NULL: something is printed now. */
void compile_tell(const Compiled *k, const char *step, uint32_t done, uint32_t total);
/* All steps from the target to the description. */
bool compile_all(Ctx *c, Compiled *k);
/* False, with E_BUDGET and what is largest: weights or arena are over the limits of the options. */
bool budget_fits(Ctx *c, const Compiled *k);

/* The plan with the code passes run on all functions. */
bool compile_flat(Ctx *c, const Compiled *k, Plan *out);
/* All functions as text: kernels, main, and the entry functions that are made of it. */
bool compile_tir(Ctx *c, const Compiled *k, StrBuf *out);
/* What the backend is to know, from the plan. */
CodegenOptions compile_code_options(const Compiled *k);

/* ---- plans that were written down (docs/design/build.md) ---- */

/* In place of the steps up to the plan. */
bool compile_read_plan(Ctx *c, Compiled *k, const char *path);
bool compile_plan_text(Ctx *c, Compiled *k, const char *path, Bytes text);
/* In place of compile_weights and compile_desc: hashes from S.id. */
bool   compile_read_id(Ctx *c, Compiled *k, const char *path);
bool   identity_parse(Ctx *c, const char *path, Bytes text, Identity *id);
Bytes  compile_id_text(Ctx *c, const Compiled *k);
Sha256 compile_plan_hash(Ctx *c, const Plan *p); /* of its text */
/* S.weights; it must be the file that the id tells of, if that was read. */
bool compile_read_weights(Ctx *c, Compiled *k, const char *path);

/* ---- tuning.c: schedules from logs ---- */

/* ---- machine.c: what work costs, from a file ---- */

/* A target string as a target, with what --machine says of its costs (NULL: nothing).  `backend`
 * may be NULL. */
const Target *target_with(Ctx *c, const char *text, const char *machine, const Backend **backend);
/* SHA-256 of the figures that a target was given, in hex; NULL: none. */
const char *target_machine(Ctx *c, const Target *t);

typedef struct CompileTuning CompileTuning;
struct TuneLog;

/* Before lowering: reads the logs, notes them as inputs, tells the passes. */
bool tuning_start(Ctx *c, Compiled *k, PassOptions *passes);
/* After it: enough kernels were scheduled by a log (E_TUNING). */
bool tuning_covers(Ctx *c, const Compiled *k, const Plan *p);
/* The plan's schedules as records of a log, with a remark before each. */
Bytes tuning_records(Ctx *c, const Plan *p);
/* Several logs as one, sorted. */
bool tuning_read(Diags *d, Arena *a, uint32_t n, const char *const *paths, struct TuneLog *out);

const char *compiler_version(void); /* "tvmcc 0.1.0" */

/* Constants through compiled code where that is faster than the interpreter. */
extern const Evaluator eval_jit;

/* The level at which to compile a host program that is asked for at `level`. */
uint32_t host_level(const TirModule *host, uint32_t level);

#endif
