/* What the operators' files share; no other room includes it.
 *
 *   common.c   checks of type relations, small helpers of compute functions
 *   block.c    operators on blocked layouts
 *   layout.c   layouts as text: "NCHW", "NCHW8c"
 */
#ifndef TVMCC_OPS_COMMON_H
#define TVMCC_OPS_COMMON_H

#include "ops/ops.h"

/* ---- channels.c ----------------------------------------------------------------------------------- */

/* Where the channels of data are: a dimension, or blocks. */
typedef struct {
    int64_t     axis;
    const char *layout; /* "NCHW8c"; "" or plain: by the axis */
} ChannelAxis;
#define CHANNEL_AXIS(a) ((ChannelAxis){(a)->axis, (a)->layout})
/* One number for each channel of the data; what: these, in the plural.  Records E_TYPE. */
bool rel_channels(Ctx *c, Loc loc, const Type *data, const Type *numbers, ChannelAxis l,
                  const char *what);
/* The number of a cell's channel, as type t. */
const Prim *te_of_channel(Ctx *c, const Tensor *numbers, const Axes *a, ChannelAxis l, DType t);

/* ---- common.c: type relations.  All record E_TYPE and return false or NULL -------------------- */

bool rel_tensors(Ctx *c, Loc loc, const Type *const *in, uint32_t n); /* no tuples */
bool rel_rank(Ctx *c, Loc loc, const Type *t, uint32_t ndim, const char *what);
bool rel_same_dtype(Ctx *c, Loc loc, const Type *a, const Type *b);
bool rel_number(Ctx *c, Loc loc, const Type *t); /* arithmetic: not bool */
bool rel_int_dtype(Ctx *c, Loc loc, const Type *t, const char *what);
/* A dimension that has to be a number. */
bool rel_dim(Ctx *c, Loc loc, const Type *t, uint32_t i, int64_t *v);
/* -ndim <= axis < ndim, counted from the front. */
bool rel_axis(Ctx *c, Loc loc, int64_t axis, uint32_t ndim, uint32_t *out);
/* Axes as a bit set; [] is all of them. */
bool rel_axes(Ctx *c, Loc loc, Ints axes, uint32_t ndim, uint32_t *set);
/* An attribute of n numbers, each at least `least` and below 2^31. */
bool rel_ints(Ctx *c, Loc loc, const char *name, Ints v, uint32_t n, int64_t least);
bool rel_dims(Ctx *c, Loc loc, const char *name, Dims v, uint32_t n, int64_t least);
/* Do two dimensions agree; symbolic ones only if they are the same form. */
bool rel_dims_equal(Ctx *c, Loc loc, const Idx *a, const Idx *b, const char *what);
/* A tensor type, at most TE_MAX_AXES dimensions, fewer than 2^47 elements. */
const Type *rel_tensor(Ctx *c, Loc loc, DType t, uint32_t n, const Idx *const *dims);
const Type *rel_tensor_i64(Ctx *c, Loc loc, DType t, uint32_t n, const int64_t *dims);
/* Broadcast dimensions of two types, as numpy does. */
bool rel_bcast_dims(Ctx *c, Loc loc, const Type *a, const Type *b, uint32_t *n, const Idx **dims);
/* Directions of a recurrent layer, 1 or 2, by the attribute's text. */
bool rel_direction(Ctx *c, Loc loc, const char *direction, int64_t *n);
/* An attribute `algorithm`: "direct" or one of these. */
bool rel_algorithm(Ctx *c, Loc loc, const char *algorithm, uint32_t n, const char *const *known);
/* An element type by its text, `fallback` where it is "". */
bool rel_dtype(Ctx *c, Loc loc, const char *text, DType fallback, DType *out);

/* ---- common.c: compute -------------------------------------------------------------------------- */

uint32_t axis_of(int64_t axis, uint32_t ndim); /* a checked axis, from the front */
uint32_t axes_of(Ints axes, uint32_t ndim);    /* checked axes as a set */
/* Operand i at the cell of the result, broadcast. */
const Prim *te_in(Ctx *c, const Tensor *t, const Axes *a);
/* The definition "out" over the axes of the result. */
bool te_out(Ctx *c, const OpCall *call, const Axes *a, const Prim *body, const Tensor **out);
/* A tensor of one known value. */
bool te_known(const Tensor *t, double *v);
/* An integer of a tensor as it is; as an index in [0, n): clamped, or modulo n. */
typedef enum { INDEX_CLIP, INDEX_WRAP } IndexMode;
const Idx *te_number_at(Ctx *c, const Prim *load);
const Idx *te_index(Ctx *c, const Prim *load, const Idx *n, IndexMode mode);
/* The number of a dimension; BUG if it is symbolic (the relation has asked for a number). */
int64_t dim_of(const Type *t, uint32_t i);
/* An index as a number of type t, also a float. */
const Prim *te_number(Ctx *c, DType t, const Idx *x);
/* a <= x && x < b */
const Prim *te_between(Ctx *c, const Idx *a, const Idx *x, const Idx *b);
const Prim *te_magnitude(Ctx *c, const Prim *x);
const Prim *te_is_nan(Ctx *c, const Prim *x);
/* max(x, k), min(x, k) for a k that is a number: one instruction, and a NaN stays one. */
const Prim *te_at_least(Ctx *c, const Prim *x, const Prim *k);
const Prim *te_at_most(Ctx *c, const Prim *x, const Prim *k);

bool te_scan_done(Ctx *c, Scan *k); /* te_scan_end of a scan that is right */
/* `for %name < n { body }` as part of an extern statement; the loop's variable first. */
const Atom *te_loop_var(Ctx *c, const char *name, const Idx *n);
const Stmt *loop_stmt(Ctx *c, const Atom *var, const Idx *n, const Stmt *body);

/* ---- calls of operators, for expand and block functions --------------------------------------------- */

const Expr *call1(Ctx *c, const char *op, const Expr *x, const void *attrs, Loc loc);
const Expr *call2(Ctx *c, const char *op, const Expr *x, const Expr *y, const void *attrs, Loc loc);
const Expr *call_reshape(Ctx *c, const Expr *x, uint32_t n, const int64_t *dims, Loc loc);
const Expr *call_reshape_to(Ctx *c, const Expr *x, uint32_t n, const Idx *const *dims, Loc loc);
/* x, in blocks, which call e of integers became, with zeros in surplus lanes if it is of floats. */
const Expr *block_cleared(Ctx *c, const Expr *e, const Expr *x, uint32_t block);
/* Attributes of a call as its operator's struct. */
#define ATTRS(T, e) ((const T *)(e)->u.attrs)
#define NEW_ATTRS(c, T) ((T *)attrs_new((c), &attrs_##T))

/* ---- layout.c --------------------------------------------------------------------------------------- */

/* NCHW8c: the block of the channel, 0 for a plain layout; false if it is neither. */
bool layout_block(const char *layout, const char *plain, int64_t *block);
bool rel_layout(Ctx *c, Loc loc, const char *layout, const char *plain, int64_t *block);

#endif
