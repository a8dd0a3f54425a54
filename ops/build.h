/* Builders of Relay: calls of operators, for frontends and for expansions of operators.
 *
 * They take NULL operands and give NULL, so that whoever builds may nest them and look once: the
 * first failure has recorded its error. */
#ifndef TVMCC_OPS_BUILD_H
#define TVMCC_OPS_BUILD_H

#include "ops/ops.h"

#define MAX_RANK 16 /* of tensors in models */

typedef struct {
    Ctx        *c;
    Loc         loc;
    const char *what; /* the kind of node, for messages: "Conv" */
} Build;

bool       expr_empty(const Expr *e);  /* certainly without cells */
bool       expr_single(const Expr *e); /* of one cell */
uint32_t   expr_rank(const Expr *e);
DType      expr_dtype(const Expr *e);
const Idx *expr_form(const Expr *e, uint32_t i); /* dimension i */
Dims       expr_forms(const Expr *e);
bool       expr_has_forms(const Expr *e, uint32_t n, const Idx *const *dims);
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
/* Cells i of the last dimension, which is 1 then. */
const Expr *build_column(const Build *b, const Expr *x, int64_t i);
const Expr *build_slice_to(const Build *b, const Expr *x, int64_t axis, const Idx *begin,
                           const Idx *end);
const Expr *build_take(const Build *b, const Expr *x, const Expr *indices, int64_t axis);
const Expr *build_reduce(const Build *b, const char *op, const Expr *x, uint32_t n,
                         const int64_t *axes, bool keepdims);
/* Pads: before and after of each dimension, 2 * rank numbers; below 0 cells are cut off.  mode
 * NULL: constant. */
const Expr *build_pad(const Build *b, const Expr *x, const int64_t *pads, double value,
                      const char *mode);
/* [C] -> [C, 1, 1 ..] so that it broadcasts along `axis` of a tensor of `rank` dimensions. */
const Expr *build_along(const Build *b, const Expr *x, uint32_t rank, uint32_t axis);

/* The value of a closed, small expression through the evaluator; NULL if it is not closed, too
 * large, or cannot be evaluated (no error is left behind). */
const Expr *build_fold(const Build *b, const Expr *e);

#endif
