/* What frontends share: the user's shapes and dimensions, and builders of Relay.
 *
 *   shapes.c   types of inputs        values.c   values for inputs
 *   common.c   builders               forms.c    arithmetic of shapes
 *
 * Builders take NULL operands and give NULL, so that a converter may nest them and look once: the
 * first failure has recorded its error. */
#ifndef TVMCC_FRONTENDS_COMMON_H
#define TVMCC_FRONTENDS_COMMON_H

#include "frontends/frontends.h"
#include "ops/ops.h"

#define MAX_RANK 16 /* of tensors in models */
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
/* Dimensions without a value, and shapes and dimensions that do not exist: E_DIM. */
bool shapes_check(Shapes *s, Loc loc, uint32_t n, const char *const *inputs);
/* The bounds that --dim gives a dimension that no input has; false: none. */
bool shapes_given(Shapes *s, const char *name, int64_t *lo, int64_t *hi);
/* The same of dimensions that were left for later. */
bool shapes_check_dims(Shapes *s, Loc loc);
/* A name that says no more than that the size is not known. */
bool shapes_placeholder(const char *name);
/* For a module whose types are known: do the shapes given for its inputs agree with them? */
bool shapes_check_module(Ctx *c, const Module *m, const ImportOptions *o, Loc loc);

/* ---- values.c --------------------------------------------------------------------------------- */

const ImportValue *value_given(const ImportOptions *o, const char *input); /* NULL: none */
/* The constant that an input of type t becomes. */
const Expr *value_expr(Ctx *c, Loc loc, const ImportValue *v, const Type *t);

/* ---- builders --------------------------------------------------------------------------------- */

typedef struct {
    Ctx        *c;
    Loc         loc;
    const char *what; /* the kind of node, for messages: "Conv" */
} Build;

#define ATTRS(b, Record) ((Record *)attrs_new((b)->c, &attrs_##Record))

bool       expr_empty(const Expr *e);  /* certainly without cells */
bool       expr_single(const Expr *e); /* of one cell */
uint32_t   expr_rank(const Expr *e);
DType      expr_dtype(const Expr *e);
const Idx *expr_form(const Expr *e, uint32_t i); /* dimension i */
Dims       expr_forms(const Expr *e);
/* Dimensions that have to be numbers: where one is symbolic, an error is recorded and 1 returned.
 */
int64_t build_dim(const Build *b, const Expr *e, uint32_t i);
Ints    build_dims(const Build *b, const Expr *e);
int64_t build_elems(const Build *b, const Expr *e);

const Expr *build_call(const Build *b, const char *op, uint32_t n, const Expr *const *args,
                       const void *attrs);
const Expr *build1(const Build *b, const char *op, const Expr *x, const void *attrs);
const Expr *build2(const Build *b, const char *op, const Expr *x, const Expr *y, const void *attrs);
const Expr *build3(const Build *b, const char *op, const Expr *x, const Expr *y, const Expr *z,
                   const void *attrs);
const Expr *build_add(const Build *b, const Expr *x, const Expr *y);
const Expr *build_sub(const Build *b, const Expr *x, const Expr *y);
const Expr *build_mul(const Build *b, const Expr *x, const Expr *y);
const Expr *build_div(const Build *b, const Expr *x, const Expr *y);
const Expr *build_less(const Build *b, const Expr *x, const Expr *y);
const Expr *build_where(const Build *b, const Expr *cond, const Expr *x, const Expr *y);
const Expr *build_clip(const Build *b, const Expr *x, double lo, double hi);
/* x op v, where v has x's element type. */
const Expr *build_by(const Build *b, const char *op, const Expr *x, double v);
/* 0, 1, .. of n cells. */
const Expr *build_arange(const Build *b, const Idx *n, DType t);
const Expr *build_proj(const Build *b, const Expr *tuple, uint32_t i);
/* Constants: a scalar of x's element type, of f64; n cells of memory (copied); all cells 0. */
const Expr *build_scalar(const Build *b, const Expr *like, double v);
const Expr *build_f64(const Build *b, double v);
const Expr *build_const(const Build *b, DType t, uint32_t ndim, const int64_t *dims,
                        const void *data);
const Expr *build_zeros(const Build *b, DType t, uint32_t ndim, const int64_t *dims);
const Expr *build_zeros_of(const Build *b, DType t, uint32_t n, const Idx *const *dims);
const Expr *build_i64s(const Build *b, uint32_t n, const int64_t *v);

const Expr *build_cast(const Build *b, const Expr *x, DType t); /* x itself if it has t */
const Expr *build_reshape(const Build *b, const Expr *x, uint32_t n, const int64_t *dims);
const Expr *build_reshape_to(const Build *b, const Expr *x, uint32_t n, const Idx *const *dims);
const Expr *build_matrix(const Build *b, const Expr *x, uint32_t axis); /* before it, from it on */
const Expr *build_transpose(const Build *b, const Expr *x, uint32_t n, const int64_t *axes);
const Expr *build_expand_dims(const Build *b, const Expr *x, int64_t axis, int64_t count);
const Expr *build_broadcast(const Build *b, const Expr *x, uint32_t n, const int64_t *dims);
const Expr *build_broadcast_to(const Build *b, const Expr *x, uint32_t n, const Idx *const *dims);
const Expr *build_concat(const Build *b, uint32_t n, const Expr *const *xs, int64_t axis);
const Expr *build_slice(const Build *b, const Expr *x, int64_t axis, int64_t begin, int64_t end);
const Expr *build_slice_to(const Build *b, const Expr *x, int64_t axis, const Idx *begin,
                           const Idx *end);
const Expr *build_take(const Build *b, const Expr *x, const Expr *indices, int64_t axis);
const Expr *build_reduce(const Build *b, const char *op, const Expr *x, uint32_t n,
                         const int64_t *axes, bool keepdims);
/* Pads: before and after of each dimension, 2 * rank numbers. */
const Expr *build_pad(const Build *b, const Expr *x, const int64_t *pads, double value,
                      const char *mode);
/* [C] -> [C, 1, 1 ..] so that it broadcasts along `axis` of a tensor of `rank` dimensions. */
const Expr *build_along(const Build *b, const Expr *x, uint32_t rank, uint32_t axis);

/* The value of a closed, small expression through the evaluator; NULL if it is not closed, too
 * large, or cannot be evaluated (no error is left behind). */
const Expr *build_fold(const Build *b, const Expr *e);

/* ---- forms.c ---------------------------------------------------------------------------------- */

/* The cells of a closed, small expression of integers as forms over dimensions; false: not known.
 */
bool build_forms(const Build *b, const Expr *e, Dims *out);
/* Forms as the cells of a tensor: a constant if they are numbers, or dim_values. */
const Expr *build_values(const Build *b, const Type *t, Dims v);
/* That of such an expression; NULL: not known. */
const Expr *build_fold_forms(const Build *b, const Expr *e);

#endif
