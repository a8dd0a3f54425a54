/* From a model file to code: what every verb of the driver goes through.
 *
 *   compile.c    import, graph passes, lowering, weights, description, code
 *   eval_jit.c   the evaluator behind constant folding: the same path, in this process */
#ifndef TVMCC_DRIVER_COMPILE_H
#define TVMCC_DRIVER_COMPILE_H

#include "backends/backend.h"
#include "frontends/frontends.h"
#include "packaging/packaging.h"
#include "passes/passes.h"

typedef struct {
    const char    *path, *format; /* format NULL: by the first bytes */
    ImportOptions  import;
    ProductOptions product; /* what it does beside the model */
    PassOptions    passes;
    const char    *target; /* target string, NULL: this machine's baseline */
    const char    *entry;  /* NULL: from the file's name */
    CodegenOptions codegen;
    WeightsMode    weights_mode;
    const char    *labels;     /* file with names of the classes, or NULL */
    bool           hash_model; /* the product says which file it was made from */
    void (*progress)(void *user, const char *step, uint32_t done, uint32_t total); /* or NULL */
    void *progress_user;
} CompileOptions;

typedef struct {
    const CompileOptions *o;
    const Backend        *backend;
    ImportFiles           files;             /* all that was read, for depfiles */
    const Module         *imported, *module; /* before and after the graph passes */
    const Plan           *plan;
    Bytes                 weights; /* the blob: constants packed, in the plan's order */
    ModelDesc            *desc;
    const char           *entry; /* prefix of functions, a C identifier */
    CodegenInfo           info;
    double                seconds[4]; /* import, graph, lower, code */
} Compiled;

/* A fresh compile of the options' model; the entry is decided here. */
void compile_start(Ctx *c, Compiled *k, const CompileOptions *o);
/* Each step needs those before it; false with errors recorded. */
bool compile_target(Ctx *c, Compiled *k); /* c->target and the backend */
bool compile_import(Ctx *c, Compiled *k);
bool compile_graph(Ctx *c, Compiled *k);
bool compile_plan(Ctx *c, Compiled *k);
bool compile_weights(Ctx *c, Compiled *k);
bool compile_desc(Ctx *c, Compiled *k);
bool compile_code(Ctx *c, Compiled *k, EmitKind kind, Bytes *out);
/* All steps from the target to the description. */
bool compile_all(Ctx *c, Compiled *k);

const char *compiler_version(void); /* "tvmcc 0.1.0" */

/* Constants through compiled code where that is faster than the interpreter. */
extern const Evaluator eval_jit;

#endif
