/* clike: flat TIR as the text of a C-like language, shared by all text backends.
 *
 * A dialect says how its language spells types, addresses, thread numbers and functions; the
 * printer does the rest.  Only scalar code: the schedules of text targets do not vectorize. */
#ifndef TVMCC_BACKENDS_CLIKE_H
#define TVMCC_BACKENDS_CLIKE_H

#include "ir/tir/tir.h"

typedef struct ClikeDialect {
    const char *name;
    /* Spelling of a scalar type in registers and in memory; NULL: the language has none. */
    const char *(*type)(DType t);
    /* "__global" and its kin, before a pointer's type. */
    const char *(*space)(Scope s, bool written);
    /* Block and thread numbers, as an expression. */
    const char *(*axis)(BindAxis a);
    /* Function of MATH_x for f32, e.g. "exp"; NULL: none. */
    const char *(*math)(MathFn fn, DType t);
    const char *kernel_prefix; /* "__kernel void" */
    const char *noalias;       /* "restrict" */
    const char *barrier;       /* statement */
    const char *fma;           /* function */
    const char *bits_prefix;   /* as_ of as_float(x) */
    const char *index_type;    /* "long" or "int" */
    /* The text's prelude defines floordiv on indices and, by type, min_float, max_int,
     * minnum_float, maxnum_float, div_int, rem_int: what ir/tir/tir.h says of PRIM_MIN and its kin.
     */
} ClikeDialect;

/* One function, kind(device): a kernel whose pointer parameters are each followed by an offset in
 * bytes, since a device's API passes whole buffers.  False with E_CODEGEN recorded if the dialect
 * lacks something. */
bool clike_kernel(Ctx *c, const ClikeDialect *d, const Func *f, const char *name, StrBuf *out);

#endif
