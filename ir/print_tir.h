/* Words shared by the printer, the parser and the verifier of TIR. */
#ifndef TVMCC_IR_PRINT_TIR_H
#define TVMCC_IR_PRINT_TIR_H

#include "ir/tir.h"

const char *scope_text(Scope s);                         /* "reg" */
const char *func_kind_text(FuncKind k);                  /* "kernel" */
const char *bind_axis_text(BindAxis a);                  /* "threadIdx.x" */
const char *math_text(MathFn fn);                        /* "exp" */
void        float_print(StrBuf *out, DType t, double v); /* 1.0, inf, nan(0x7fc00000) */

/* The last value a loop variable can take, as ranges tell; `end` = lo + extent. */
static inline int64_t loop_last(const Idx *end, const Idx *lo)
{
    return end->hi - 1 < lo->lo ? lo->lo : end->hi - 1;
}

#endif
