/* Reverse-mode differentiation: what the adjoints of operators share; no other room includes it.
 *
 *   gradient.c     the operator: its type, and its expansion
 *   adjoints.def   one row an operator
 *   elementwise.c reduce.c product.c window.c image.c move.c
 *                  adjoints by family
 *   build.c        steps that several adjoints take
 *
 * docs/design/autodiff.md is the overview. */
#ifndef TVMCC_OPS_GRADIENT_H
#define TVMCC_OPS_GRADIENT_H

#include "ops/build.h"
#include "ops/common.h"

/* A call, and the gradients of its results.  Where a gradient has other dimensions than its
 * operand, it is summed over those that the operand is broadcast along, or broadcast itself. */
typedef struct {
    const Build       *b;
    const Expr        *call; /* also the value of its result */
    const Expr *const *x;    /* operands, tuples flattened */
    const Expr *const *dy;   /* of each result */
    const Expr       **dx;   /* to be filled in, NULL as it comes: zeros */
} Adjoint;

/* Fills in dx; fails by recording an error. */
typedef void AdjointFn(const Adjoint *a);

/* The call cannot be differentiated for this reason. */
void adjoint_refuse(const Adjoint *a, const char *why);

/* ---- build.c: what adjoints share beyond ops/build.h ------------------------------------------------- */

/* All cells 0, all cells 1. */
const Expr *grad_zeros(const Build *b, const Type *t);
const Expr *grad_ones(const Build *b, const Type *t);
const Expr *grad_like(const Build *b, const Expr *x, const Expr *like); /* its dimensions */
/* Over a set of axes, which stay as dimensions of 1. */
const Expr *grad_reduce(const Build *b, const char *op, const Expr *x, uint32_t axes);
const Expr *grad_reverse(const Build *b, const Expr *x, uint32_t axis);
/* Zeros like `like`, to which updates are added at indices along the axis. */
const Expr *grad_scatter(const Build *b, const Expr *like, const Expr *indices, const Expr *updates,
                         uint32_t axis);
/* x summed over what a tensor of that type is broadcast along, and broadcast to it. */
const Expr *grad_fit(const Build *b, const Expr *x, const Type *t);
/* Cells of the type, or of some of its dimensions, as a number of x's element type. */
const Expr *grad_count(const Build *b, const Expr *x, uint32_t axes);

/* reduce.c: of a reduction over axes to its largest or smallest cells, which share it. */
const Expr *grad_of_extremum(const Adjoint *a, const Expr *x, uint32_t axes);

#define ADJOINT(id, fn) void fn(const Adjoint *a);
#include "ops/gradient/adjoints.def"
#undef ADJOINT

#endif
