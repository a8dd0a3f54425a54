/* What frontends share of models: their inputs, faults and results.  How the operators of a model
 * become calls is in calls.h.
 *
 *   shapes.c     types of inputs                     values.c   values for inputs
 *   findings.c   faults of nodes, all at once        main.c     results, the module
 */
#ifndef TVMCC_FRONTENDS_COMMON_H
#define TVMCC_FRONTENDS_COMMON_H

#include "frontends/frontends.h"
#include "ops/build.h"

#define MAX_ELEMS ((int64_t)1 << 40)

/* ---- shapes.c --------------------------------------------------------------------------------- */

typedef struct {
    const char *input, *name;
    uint32_t    at;
    Ints        shape; /* of its input, -1 what is not known */
} MissingDim;

typedef struct {
    const char *name;
    const Idx  *value; /* a number, or a symbolic dimension */
} KnownDim;

/* The options, and what is learned while importing: a dimension's name used twice has one value. */
typedef struct {
    Ctx                 *c;
    const ImportOptions *o;
    bool                *used, *used_dims; /* of o->shapes, o->dims */
    bool                *later;            /* of o->dims: they may be of what nodes make */
    bool                 reshaped;         /* an input has another size than the model says */
    VEC(KnownDim) dims;
    VEC(const char *) names;  /* of the model's dimensions */
    VEC(const char *) inputs; /* that were seen */
    VEC(MissingDim) missing;
    AtomSet *decided; /* dimensions that values of the run decide (build_bound_dim) */
} Shapes;

Shapes shapes_new(Ctx *c, const ImportOptions *o);
/* Look at each input before the first is asked for: a shape given for a later one may say what a
 * name is. */
void shapes_see(Shapes *s, const char *input, uint32_t ndim, const InputDim *dims);
/* The type of an input; ndim UINT32_MAX: the model does not say its rank.  A batch without a
 * value becomes 1 with a warning.  NULL: an error, or something is missing: go on with the others,
 * then call shapes_check. */
const Type *shapes_input(Shapes *s, Loc loc, const char *input, DType t, uint32_t ndim,
                         const InputDim *dims);
/* The element type given for an input whose model does not say one. */
DType shapes_dtype(const Shapes *s, const char *input, DType fallback);
/* Dimensions without a value, and shapes and dimensions that do not exist: E_DIM. */
bool shapes_check(Shapes *s, Loc loc, uint32_t n, const char *const *inputs);
/* The bounds that --dim gives a dimension that no input has; false: none. */
bool shapes_given(Shapes *s, const char *name, int64_t *lo, int64_t *hi);
/* The bounds that the model itself gives a dimension, for which the user's go; call it after all
 * inputs were seen. */
void shapes_bound(Shapes *s, Loc loc, const char *name, int64_t lo, int64_t hi);
/* The same of dimensions that were left for later. */
bool shapes_check_dims(Shapes *s, Loc loc);
/* The most that a size can be: a number, or where there is none a form over dimensions of the
 * caller. */
const Idx *shapes_most(const Shapes *s, const Idx *size);
/* A name that says no more than that the size is not known. */
bool shapes_placeholder(const char *name);
/* For a module whose types are known: do the shapes given for its inputs agree with them? */
bool shapes_check_module(Ctx *c, const Module *m, const ImportOptions *o, Loc loc);

/* ---- values.c --------------------------------------------------------------------------------- */

const ImportValue *value_given(const ImportOptions *o, const char *input); /* NULL: none */
/* The constant that an input of type t becomes. */
const Expr *value_expr(Ctx *c, Loc loc, const ImportValue *v, const Type *t);

/* ---- findings.c: a look at all nodes before anything is built ------------------------------------- */

typedef struct {
    DiagId      id;
    const char *op; /* "Conv": the fault is one of nodes; NULL: of their kind, which `text` names */
    const char *text, *hint,
        *first;              /* hint: may be NULL; first: the name of the first node with it */
    uint32_t ordinal, count; /* of that node, 0: none; how many nodes have it */
} Finding;

typedef struct {
    const char *path, *noun; /* of the model; what the format calls a node */
    VEC(Finding) list;
} Findings;

/* One node more has it: the same fault of the same kind of node is said once. */
void finding_add(Ctx *c, Findings *f, Finding x);
void finding_addv(Ctx *c, Findings *f, Finding x, const char *fmt, va_list ap); /* its text */
/* "Conv 'y': text (and 2 more nodes)", or of a kind: "text: 3 nodes, first 'y'". */
void findings_report(Ctx *c, const Findings *f);

/* One operator more of that name; `ops` has room for all, `index` is the map of one signature. */
void signature_count(Ctx *c, Map *index, ModelSignature *s, OpTally *ops, const char *name);

/* ---- main.c: inputs and results of a model ------------------------------------------------------- */

typedef struct {
    VEC(const Expr *) at;
    VEC(const char *) names; /* interned; of inputs there are more: those that are constants */
} NamedValues;
typedef VEC(GlobalDef) GlobalDefs;

/* A tensor that a run changes and the next one begins with: an input, which a warning tells of, as
 * the result state_result(name) is to be.  first: what it is when nothing has run; NULL: not known.
 * NULL with an error. */
const Expr *state_input(Ctx *c, Shapes *s, Loc loc, const char *name, const Type *type,
                        const Expr *first, NamedValues *params);
const char *state_result(Ctx *c, const char *name); /* "<name>_out" */
/* One more; false with an error: there is one of that name, or it is no tensor; or it is NULL. */
bool result_add(Ctx *c, NamedValues *r, const char *name, const Expr *v, Loc loc);
/* Error: the model has no tensor `name`, with the nearest of those that it has. */
void *no_tensor(Ctx *c, Loc loc, const char *name, uint32_t n, const char *const *names);
#define no_tensor(...) null_of(no_tensor(__VA_ARGS__))
/* Error: it has no such signature, with all n that it has. */
void *no_signature(Ctx *c, Loc loc, const char *name, uint32_t n, const char *const *names);
#define no_signature(...) null_of(no_signature(__VA_ARGS__))
/* Is there one of that (interned) name? */
bool result_have(const NamedValues *r, const char *name);
/* Those of `tensors` that the options ask for and that are not there yet; false with an error. */
bool results_ask(Ctx *c, NamedValues *r, const ImportOptions *o, const NamedValues *tensors,
                 Loc loc);
/* main, in which the bind_dims stand around the results; it is added to the functions. */
const Module *build_module(Ctx *c, const char *path, const NamedValues *params,
                           const NamedValues *results, uint32_t nbinds, const Expr *const *binds,
                           GlobalDefs *functions);

#endif
