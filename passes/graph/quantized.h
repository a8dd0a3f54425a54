/* What the parts of quantized_to_integer share: quantized values, constants, products of integers.
 */
#ifndef TVMCC_PASSES_QUANTIZED_H
#define TVMCC_PASSES_QUANTIZED_H

#include "passes/graph/graph.h"

/* A value in floats that is (q - zero) * scale. */
typedef struct {
    const Expr *q, *scale, *zero;
    int64_t     axis; /* of vector scales */
} Quantized;

/* qnn.dequantize to f32. */
bool quantized_of(const Expr *e, Quantized *v);
/* ... of 8 or 16 bits, with one constant scale and zero point for all. */
bool quantized_tensor(const Expr *e, Quantized *v, double *scale, double *zero);
bool is_8bit(DType t);
bool is_quantized_type(DType t); /* integers of 8 or 16 bits */

/* Element i of a constant; of a constant of one element always that one. */
double const_at(const Expr *k, int64_t i);
/* The value of a closed expression, NULL if it is none. */
const Expr *const_value(Ctx *c, const Expr *e);

const Expr *make_quantize(Ctx *c, const Expr *x, double scale, double zero, DType t, Loc loc);
const Expr *make_dequantize(Ctx *c, const Expr *q, const Expr *scale, const Expr *zero,
                            int64_t axis, Loc loc);
/* 8-bit data move by 128 to the type that this target's dot products take: unsigned, but for Arm.
 * False: they have it already. */
bool        wants_other_sign(const Ctx *c, DType t);
DType       other_sign(DType t);
const Expr *with_other_sign(Ctx *c, const Expr *q, double *zero, Loc loc);

/* A weight seen as [channels of the result][products of each]. */
typedef struct {
    const Expr *k, *scale, *zero; /* constants; scale NULL: the result are the sums themselves */
    int64_t     channels, products;
    bool        conv, transposed; /* transposed: the constant is [k, n] */
} Product;

/* quantized_linear.c.  Does the call multiply data by a matrix whose output channels are its rows
 * or columns? */
bool product_kind(const Expr *e, Product *p);
/* Sizes of the weight p->k. */
bool weight_sizes(Product *p);
/* Of w - zw: the sum of each output channel, the largest sum of magnitudes, and the type that holds
 * all, i8 or i16. */
DType weight_sums(const Product *p, int64_t *sums, int64_t *most);
/* What each output channel of w - zw is to be less for i8 to hold it; false: that cannot be. */
bool weight_offsets(const Product *p, int64_t *offsets);
/* w - zw in that type, [units, k] for matrices. */
const Expr *centred_weight(Ctx *c, const Product *p, DType t);
/* The type of sums of products of such data, less zx, with weights of which a channel has that sum
 * of magnitudes; a bias is to fit, too. */
DType sum_dtype(DType data, double zx, DType weight, int64_t most);
/* A constant of i32 or i64; NULL: with a sum of products it might not fit. */
const Expr *sum_vector(Ctx *c, const int64_t *v, int64_t n, DType t, const char *name, Loc loc);
const Expr *with_bias(Ctx *c, const Expr *sum, const Expr *bias, bool conv, Loc loc);

/* e itself if there is nothing to do; NULL with an error. */
const Expr *integer_product(Ctx *c, const Expr *e);
const Expr *integer_bias(Ctx *c, const Expr *e);
const Expr *integer_scale(Ctx *c, const Expr *e);
/* The product `e` over integers, summed in t, without a bias. */
const Expr *integer_call(Ctx *c, const Expr *e, const Expr *x, const Expr *w, double zx, DType t);

/* quantized_sum.c: products of integers as such, MatMulInteger and ConvInteger. */
const Expr *integer_sum(Ctx *c, const Expr *e);

/* quantized_wide.c: the same in i64 as the sum of products in i32; NULL: there is no such sum. */
const Expr *wide_product(Ctx *c, const Expr *e, const Expr *x, const Expr *k, double zx);

/* quantized_pair.c: the same of a product whose operands are both data. */
const Expr *integer_pair(Ctx *c, const Expr *e);

/* subpixel.c: transposed convolutions of quantized values as convolutions of quantized values. */
const Module *subpixel_quantized(Ctx *c, const Module *m);

/* quantized_float.c: e itself if there is nothing to do; NULL with an error. */
const Expr *integer_average(Ctx *c, const Expr *e);
const Expr *integer_reduction(Ctx *c, const Expr *e);
/* x / by, where by can be made part of the scales that x comes from; NULL: it cannot. */
const Expr *scaled_down(Ctx *c, const Expr *x, double by);
/* A constant of the shape of `k`: k / by. */
const Expr *const_over(Ctx *c, const Expr *k, double by);

#endif
