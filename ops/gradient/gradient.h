/* Reverse-mode differentiation: what the adjoints of operators share; no other room includes it.
 *
 *   gradient.c     the operator: its type, and its expansion
 *   adjoints.def   one row an operator
 *   elementwise.c reduce.c product.c window.c image.c move.c
 *                  adjoints by family
 *   build.c        calls of operators, for adjoints
 *
 * docs/design/autodiff.md is the overview. */
#ifndef TVMCC_OPS_GRADIENT_H
#define TVMCC_OPS_GRADIENT_H

#include "ops/common.h"

/* A call, and the gradients of its results.  Where a gradient has other dimensions than its
 * operand, it is summed over those that the operand is broadcast along, or broadcast itself. */
typedef struct {
    Ctx               *c;
    Loc                loc;
    const Expr        *call; /* also the value of its result */
    const Expr *const *x;    /* operands, tuples flattened */
    const Expr *const *dy;   /* of each result */
    const Expr       **dx;   /* to be filled in, NULL as it comes: zeros */
} Adjoint;

/* Fills in dx; fails by recording an error. */
typedef void AdjointFn(const Adjoint *a);

/* The call cannot be differentiated for this reason. */
void adjoint_refuse(const Adjoint *a, const char *why);

/* ---- build.c: like the builders of frontends, NULL operands give NULL ------------------------------- */

const Expr *grad1(const Adjoint *a, const char *op, const Expr *x, const void *attrs);
const Expr *grad2(const Adjoint *a, const char *op, const Expr *x, const Expr *y,
                  const void *attrs);
const Expr *grad3(const Adjoint *a, const char *op, const Expr *x, const Expr *y, const Expr *z,
                  const void *attrs);
const Expr *grad_add(const Adjoint *a, const Expr *x, const Expr *y);
const Expr *grad_sub(const Adjoint *a, const Expr *x, const Expr *y);
const Expr *grad_mul(const Adjoint *a, const Expr *x, const Expr *y);
const Expr *grad_div(const Adjoint *a, const Expr *x, const Expr *y);
const Expr *grad_neg(const Adjoint *a, const Expr *x);
const Expr *grad_times(const Adjoint *a, const Expr *x, double v);
const Expr *grad_plus(const Adjoint *a, const Expr *x, double v);
/* x where the condition holds, else y; `op`, a comparison of x with a number. */
const Expr *grad_where(const Adjoint *a, const Expr *cond, const Expr *x, const Expr *y);
const Expr *grad_compare(const Adjoint *a, const char *op, const Expr *x, double v);
const Expr *grad_number(const Adjoint *a, const Expr *like, double v);
const Expr *grad_cast(const Adjoint *a, const Expr *x, DType t);
/* All cells 0, all cells 1. */
const Expr *grad_zeros(const Adjoint *a, const Type *t);
const Expr *grad_ones(const Adjoint *a, const Type *t);
const Expr *grad_reshape(const Adjoint *a, const Expr *x, uint32_t n, const Idx *const *dims);
const Expr *grad_like(const Adjoint *a, const Expr *x, const Expr *like); /* its dimensions */
const Expr *grad_transpose(const Adjoint *a, const Expr *x, uint32_t n, const int64_t *axes);
/* Over a set of axes, which stay as dimensions of 1. */
const Expr *grad_reduce(const Adjoint *a, const char *op, const Expr *x, uint32_t axes);
const Expr *grad_slice(const Adjoint *a, const Expr *x, uint32_t axis, const Idx *begin,
                       const Idx *end);
/* Cells before and after each dimension, in pairs; below 0: that many are cut off. */
const Expr *grad_pad(const Adjoint *a, const Expr *x, const int64_t *widths);
const Expr *grad_reverse(const Adjoint *a, const Expr *x, uint32_t axis);
/* Zeros like `like`, to which updates are added at indices along the axis. */
const Expr *grad_scatter(const Adjoint *a, const Expr *like, const Expr *indices,
                         const Expr *updates, uint32_t axis);
/* x summed over what a tensor of that type is broadcast along, and broadcast to it. */
const Expr *grad_fit(const Adjoint *a, const Expr *x, const Type *t);
/* Cells of the type, or of some of its dimensions, as a number of x's element type. */
const Expr *grad_count(const Adjoint *a, const Expr *x, uint32_t axes);

/* reduce.c: of a reduction over axes to its largest or smallest cells, which share it. */
const Expr *grad_of_extremum(const Adjoint *a, const Expr *x, uint32_t axes);

#define ADJOINT(id, fn) void fn(const Adjoint *a);
#include "ops/gradient/adjoints.def"
#undef ADJOINT

#endif
