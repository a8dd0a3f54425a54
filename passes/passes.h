/* Passes: pure functions from module to module.  With nothing to do they return their argument.
 * passes.def lists them all; pipeline.c says which run at -O0 to -O3. */
#ifndef TVMCC_PASSES_H
#define TVMCC_PASSES_H

#include "ir/plan/code.h"
#include "ir/sched/sched.h"

/* Levels: GRAPH is Relay to Relay, TIR is flat-ward TIR to TIR, PROGRAM changes the program of
 * calls and their finished kernels (passes/lower/lower.h). */
typedef enum { LEVEL_GRAPH, LEVEL_TIR, LEVEL_PROGRAM } PassLevel;

enum { NEEDED = -1 };

typedef const Module    *GraphPass(Ctx *c, const Module *m);
typedef const TirModule *TirPass(Ctx *c, const TirModule *m);
typedef struct Program   Program;
typedef bool             ProgramPass(Program *p); /* false: an error */

typedef struct {
    const char  *name;
    PassLevel    level;
    int          opt; /* runs from this -O level, or NEEDED */
    const char  *about;
    GraphPass   *graph; /* by level; all NULL: an algorithm of choose_algorithms */
    TirPass     *tir;
    ProgramPass *program;
    bool         code;      /* runs when code is generated, not before a plan is made */
    uint64_t     algorithm; /* its bit in Choices.without; 0: it is a pass */
} Pass;

extern const Pass     pass_table[];
extern const uint32_t pass_count;
const Pass           *pass_find(const char *name);

#define GRAPH_PASS(name, opt, about) GraphPass name;
#define ALGORITHM(name, opt, about)
#define TIR_PASS(name, opt, about) TirPass name;
#define PROGRAM_PASS(name, opt, about) ProgramPass name;
#define CODE_PASS(name, opt, about) TirPass name;
#include "passes/passes.def"
#undef GRAPH_PASS
#undef ALGORITHM
#undef TIR_PASS
#undef PROGRAM_PASS
#undef CODE_PASS

/* How the runner runs (driver options). */
/* What tuning logs are for: nothing, to be used where they fit, or to schedule every kernel. */
typedef enum { TUNING_PREFER, TUNING_IGNORE, TUNING_REQUIRE } TuningPolicy;

typedef struct {
    const char *text; /* steps with `;` between them, or decisions behind the name of their rule */
    bool        decided;
    Loc         loc;
} TunedSchedule;

/* Schedules that were measured, for kernels that have some; the driver's, from tuning logs. */
typedef struct {
    /* The n-th best schedule of a kernel.  False: there are no more. */
    bool (*find)(void *user, Sha256 workload, const Target *t, uint32_t n, TunedSchedule *out);
    void *user;
    bool  require; /* steps that do not fit are errors, and so are kernels without any */
} Tuning;

typedef struct {
    int         opt_level;
    const char *passes; /* "a,b,c" instead of the pipeline, or NULL */
    /* without --passes: passes of the pipeline that are left out, or run at every level */
    uint32_t           nwithout, nwith;
    const char *const *without, *const *with;
    const char           *stop_after;
    const char           *print_after; /* "all" or a name; to stderr */
    bool                  verify_each, time_passes;
    uint32_t              jobs;
    const Tuning         *tuning;  /* NULL: rules alone schedule */
    DType                 weights; /* f16, bf16: large constants are stored so; else as they are */
    const MixedPrecision *mixed;   /* NULL: products are as the model has them */
    /* Constants stay where they are in memory: the plan's offsets are distances between them.  For
     * code that runs once, in this process. */
    bool in_place;
    /* One thread runs the parts of a kernel one after the other, so that they may share the memory
     * that each thread has of its own. */
    bool one_by_one;
} PassOptions;

/* Are there passes of the names that -fpass= and -fno-pass= give, operators of mixed precision? */
bool passes_check(Ctx *c, const PassOptions *o);
/* Can all operators that are named take 16 bits?  E_USAGE if not. */
bool mixed_precision_check(Ctx *c, const MixedPrecision *x);
/* Run the graph pipeline for -O<n>. */
const Module *run_graph_passes(Ctx *c, const Module *m, const PassOptions *o);
/* The TIR pipeline, in the order of passes.def: from scheduled nests to what a plan holds, from
 * there to what backends take, or both. */
typedef enum { TIR_TO_PLAN = 1, TIR_TO_CODE = 2, TIR_TO_BOTH = 3 } TirPart;
const TirModule *run_tir_passes(Ctx *c, const TirModule *m, const PassOptions *o, TirPart part);
/* Those between the two parts; false: an error. */
bool run_program_passes(Ctx *c, Program *p, const PassOptions *o);

/* ---- passes/product: what the product does beside the model --------------------------------- */

/* An input that takes pictures as they come from a camera or a decoder, instead of the model's
 * tensor: converted, transposed and normalised in the first kernel. */
typedef struct {
    const char   *input;        /* NULL: the model's only input */
    const char   *layout;       /* of the picture: "NHWC" unless given */
    const char   *model_layout; /* NULL: the axis with 1, 3 or 4 cells is C */
    DType         dtype;        /* of the picture; bits 0: u8 */
    bool          swap;         /* the picture's channels are in the other order: RGB and BGR */
    double        scale;        /* multiplied first; 0: none */
    uint32_t      nmean, nstd;  /* 0: none, 1: for all channels, else one for each of the model's */
    const double *mean, *std;   /* subtracted, divided by */
} ProductImage;

typedef enum { ADD_SOFTMAX, ADD_ARGMAX, ADD_TOPK } ProductAddKind;

/* A result computed behind `output`: named <output>_softmax, <output>_argmax, or <output>_topk (the
 * values) and <output>_topk_index. */
typedef struct {
    ProductAddKind kind;
    int64_t        k;      /* ADD_TOPK */
    const char    *output; /* a tensor of the model; NULL: the first output */
} ProductAdd;

/* The result `out` is the next run's input `in` and may lie in the same memory. */
typedef struct {
    const char *out, *in;
} ProductState;

typedef struct {
    uint32_t            nimages, nadds, noutputs, nstates;
    const ProductImage *images;
    const ProductAdd   *adds;
    const char *const  *outputs; /* results of the product in this order, tensors inside the model
                                  * and added ones too; none: the model's, then what is added */
    const ProductState *states;
} ProductOptions;

/* The tensors of the model that the options need as results, for ImportOptions; `only`: they are
 * all that is needed. */
const char *const *product_tensors(Ctx *c, const ProductOptions *o, uint32_t *n, bool *only);
/* The module with all of that, before the graph passes. */
const Module *product_edit(Ctx *c, const Module *m, const ProductOptions *o);

/* passes/lower: Relay (fused, typed, static) to a plan. */
const Plan *lower(Ctx *c, const Module *m, const char *entry, const PassOptions *o);
/* passes/lower/entry: the functions that a caller of the model calls, and those they share, made of
 * main; what code generation gets beside the kernels (CodegenOptions.host). */
const TirModule *entry_functions(Ctx *c, const Plan *p, const CodegenOptions *o,
                                 const CodegenInfo *info);
/* TE of one primitive function.  `call` is the call that is compiled (or NULL): a parameter whose
 * argument is a constant is marked so, which lets schedules repack it; results get the halos of the
 * call's type.  `in_place`: of a single update (FUSE_UPDATE), whose first operand is no parameter:
 * the result's memory holds it. */
const TeFunc *te_of_func(Ctx *c, const Expr *primitive, const Expr *call, bool in_place,
                         const char *name);
/* The rules that did not fit a kernel: all, a line each, for PlanKernel, and the first one. */
typedef struct {
    const char *all, *rule, *why; /* NULL: there are none */
} Refusals;
/* The schedule rule that fits, applied; the unscheduled nest at -O0 or when all rules refuse.
 * `rule` is for PlanKernel. */
Sched *schedule_kernel(Ctx *c, const TeFunc *te, const Op *anchor, const Target *t,
                       const PassOptions *o, const char **rule, Refusals *refused);

#endif
