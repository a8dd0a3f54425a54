/* TE: what one kernel computes, as tensor expressions; and its first, unscheduled nest.
 *
 * A definition gives each cell of a tensor as a prim over its iterators (atoms that own their
 * range).  A reduction fixes what is summed; the schedule fixes the order.  `%pad`, `%conv`, .. are
 * the names that schedule steps use: an operator names its definitions by role ("conv", "pad",
 * "out"); a clash inside one function is resolved by a suffix (".1"). */
#ifndef TVMCC_IR_TE_TE_H
#define TVMCC_IR_TE_TE_H

#include "ir/tir/tir.h"

typedef enum {
    TENSOR_PARAM,   /* an input of the function */
    TENSOR_COMPUTE, /* elementwise over its axes */
    TENSOR_REDUCE,  /* comb over the reduce axes of body */
    TENSOR_EXTERN   /* one result of a hand-written statement */
} TensorKind;

/* COMB_MAXNUM: the largest number; NaN is ignored. */
typedef enum { COMB_SUM, COMB_PROD, COMB_MAX, COMB_MAXNUM, COMB_MIN, COMB_ANY, COMB_ALL } Combiner;

/* A hand-written statement (sort, LSTM cell, scatter): stores to `out` buffers, loads from the
 * buffers of `in`.  It may hold loops with marks; it becomes one opaque block. */
typedef struct {
    const Stmt          *body;
    uint32_t             nin, nout;
    const Tensor *const *in;
    const Tensor       **out;
} Extern;

struct Tensor {
    uint32_t             id;
    TensorKind           kind;
    const Buffer        *buffer; /* name, dtype, extents */
    uint32_t             naxis, nreduce;
    const Atom *const   *axis;    /* naxis = buffer->ndim */
    const Atom *const   *raxis;   /* in the order they are written */
    const Idx *const    *rextent; /* [nreduce] */
    Combiner             comb;
    const Prim          *body; /* over axis and raxis, loads of other tensors' buffers */
    const Extern        *ext;
    uint32_t             ndeps; /* tensors that body loads, in order of first use */
    const Tensor *const *deps;
};

typedef struct {
    const char          *name;
    uint32_t             nparams, nouts;
    const Tensor *const *params;
    const Tensor *const *outs;
    Loc                  loc;
} TeFunc;

/* ---- makers: an operator's compute function in a few lines -------------------------------------------- */

const Tensor *te_param(Ctx *c, const char *name, const Type *t, bool constant, const Const *data);
/* Begin a definition: fresh axes named "i0".. (or names[i]) over the given extents. */
enum { TE_MAX_AXES = 8 };
typedef struct {
    uint32_t    n;
    const Atom *atom[TE_MAX_AXES];
    const Idx  *at[TE_MAX_AXES]; /* the same as indices */
    const Idx  *extent[TE_MAX_AXES];
} Axes;
Axes te_axes(Ctx *c, uint32_t n, const Idx *const *extents, const char *const *names);
Axes te_axes_of(Ctx *c, const Type *t); /* the axes of a result type */
Axes te_raxes(Ctx *c, uint32_t n, const int64_t *extents, const char *const *names);

/* A cell of a tensor; `at` has ndim indices. */
const Prim *te_at(Ctx *c, const Tensor *t, const Idx *const *at);
/* ... with numpy broadcasting from an n-dimensional index. */
const Prim   *te_at_bcast(Ctx *c, const Tensor *t, uint32_t n, const Idx *const *at);
const Tensor *te_compute(Ctx *c, const char *name, DType t, Axes axes, const Prim *body);
const Tensor *te_reduce(Ctx *c, const char *name, DType t, Axes axes, Combiner comb, Axes raxes,
                        const Prim *body);
/* An extern definition; outs[i] get buffers of the given types; body is made by the caller over
 * te_extern_buffers first. */
const Tensor *te_extern_out(Ctx *c, const char *name,
                            const Type *t); /* its buffer is usable at once */
void te_extern(Ctx *c, uint32_t nin, const Tensor *const *in, uint32_t nout, const Tensor **outs,
               const Stmt *body);
/* Give a definition's tensor a border; only before the function is lowered. */
void        te_set_halo(const Tensor *t, const Halo *halo);
const Prim *comb_identity(Ctx *c, Combiner k, DType t);
/* a is what was combined so far. */
const Prim *comb_apply(Ctx *c, Combiner k, const Prim *a, const Prim *b);

/* Definitions of a function in order of dependency (params left out). */
typedef struct {
    uint32_t             n;
    const Tensor *const *at;
} TensorList;
TensorList te_defs(Ctx *c, const TeFunc *f);
int64_t    te_macs(Ctx *c, const TeFunc *f); /* cells times reduction lengths of sum definitions */

/* ---- lowering to the first nest --------------------------------------------------------------------------- */

/* One nest per definition, in order, each one block whose iterators are its loops (loop variables
 * are named after the axes).  Parameters: inputs, then outputs; intermediates are allocs.
 * Outputs whose definition is also read by others are fine. */
const Func *te_lower(Ctx *c, const TeFunc *f, const Target *target);

typedef VEC(const TeFunc *) TeFuncs;

void          te_print(Ctx *c, const TeFunc *f, StrBuf *out);
const TeFunc *te_parse(Ctx *c, const char *file, Bytes text); /* one function */
bool          te_parse_all(Ctx *c, const char *file, Bytes text, TeFuncs *out);

#endif
