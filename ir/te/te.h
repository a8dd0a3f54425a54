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
    TENSOR_SCAN,    /* one tensor of a scan */
    TENSOR_EXTERN   /* one result of a hand-written statement */
} TensorKind;

/* COMB_MAXNUM: the largest number; NaN is ignored. */
typedef enum { COMB_SUM, COMB_PROD, COMB_MAX, COMB_MAXNUM, COMB_MIN, COMB_ANY, COMB_ALL } Combiner;

/* A scan: rounds, one after the other, for each cell of some outer axes.  A definition of a round
 * gives one cell for each of its own axes, and may read what stands before it, and what the round
 * before left in tensors that are carried: those with a start as well.
 *
 *     scan d<2 {
 *       %s[d<2,0<11,j<8]: f32 = %h0[d,j]                          start: cell 0 of 11
 *       each t<10 {
 *         %sum[d<2,t<10,j<8]: f32 = sum[k<8] %s[d,t,k] * %w[d,k,j]
 *         %s[d<2,t+1<11,j<8]: f32 = tanh(%sum[d,t,j])             each: cells 1 to 10
 *       }
 *       %last[d<2,j<8]: f32 = %s[d,10,j]                          end
 *     } */
typedef enum { SCAN_START, SCAN_EACH, SCAN_END } ScanPart;

typedef struct {
    const Tensor      *t;
    ScanPart           part;
    const Idx *const  *at;    /* the cell, over the axes of the scan and its own */
    uint32_t           naxis; /* its own */
    const Atom *const *axis;
    const Idx *const  *extent;
    bool               reduces; /* comb, nreduce .. count, as in a tensor */
    Combiner           comb;
    uint32_t           nreduce;
    const Atom *const *raxis;
    const Idx *const  *rextent;
    const Prim        *body;
} ScanDef;

typedef struct Scan Scan;

/* A hand-written statement (sort, scatter): stores to `out` buffers, loads from the
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
    const Scan          *scan;
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
/* An operator's compute function, which sees numbers where its operands or results are stored as
 * something else (stored.c). */
bool te_of_call(Ctx *c, const OpCall *call, const Tensor *const *in, const Tensor **out);
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
/* A scan, piece by piece: its axes, its tensors, its definitions in order.  What is wrong with it,
 * if anything, te_scan_end says; then its tensors are of no use. */
struct Scan {
    Axes        outer;
    const Atom *round; /* the ordered axis */
    const Idx  *t, *rounds;
    VEC(ScanDef) defs;
    VEC(const Tensor *) out, in; /* its tensors; those of others that it reads */
};
Scan         *te_scan(Ctx *c, Axes outer, const char *round, const Idx *rounds);
const Tensor *te_scan_tensor(Ctx *c, Scan *k, const char *name, DType t, uint32_t n,
                             const Idx *const *extents);
void te_scan_def(Ctx *c, Scan *k, ScanPart part, const Tensor *t, const Idx *const *at, Axes own,
                 const Prim *body);
void te_scan_reduce(Ctx *c, Scan *k, ScanPart part, const Tensor *t, const Idx *const *at, Axes own,
                    Combiner comb, Axes raxes, const Prim *body);
const char *te_scan_end(Ctx *c, Scan *k);
/* Its place in k->out; true if it has a start and an update in each round. */
bool te_carried(const Scan *k, const Tensor *t);
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
