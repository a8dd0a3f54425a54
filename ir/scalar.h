/* Arithmetic of one scalar element, exactly as compiled code does it: the folding makers (prim.c)
 * and the interpreter (ir/tir/eval.c) share it, so a folded constant has the bits that run time
 * would give.
 *
 *   integers   kept in `i`, wrapped to their width (sign- or zero-extended; u64 as its bit
 * pattern); arithmetic is modulo 2^bits; shifts take the amount modulo the width; bool is 0 or 1
 *   floats     kept in `f`, always a value of their type; f32 is computed in float, f64 in double,
 *              f16 and bf16 in float and rounded after every operation
 *   min, max   NaN wins, and -0 < +0 (IEEE 754-2019 minimum, maximum)
 *   minnum(a, b) = b < a || a is NaN ? b : a;   maxnum(a, b) = b > a || a is NaN ? b : a
 */
#ifndef TVMCC_IR_SCALAR_H
#define TVMCC_IR_SCALAR_H

#include "ir/tir/tir.h"

typedef union {
    int64_t i;
    double  f;
} Scalar;

/* t is the scalar type of the operands; comparisons give bool in `i`. */
Scalar scalar_bin(PrimKind k, DType t, Scalar a, Scalar b);
Scalar scalar_not(DType t, Scalar a);
Scalar scalar_fma(DType t, Scalar a, Scalar b, Scalar d);
Scalar scalar_math(MathFn fn, DType t, Scalar a, Scalar b);
Scalar scalar_cast(DType to, DType from, Scalar a);
Scalar scalar_bits(DType to, DType from, Scalar a);
/* Wrap to the width of t, round to the precision of t. */
int64_t scalar_wrap(DType t, int64_t v);
double  scalar_round(DType t, double v);
/* One element of memory. */
Scalar scalar_get(DType t, const void *p);
void   scalar_put(DType t, void *p, Scalar v);
/* Floats by their bits, so that -0 and NaN payloads count. */
bool scalar_same(DType t, Scalar a, Scalar b);
/* A single instruction on every target, hence exact and safe to fold. */
bool math_is_exact(MathFn fn);

#endif
