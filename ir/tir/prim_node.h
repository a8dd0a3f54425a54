/* Shared by the files that make prims: prim.c (interning, leaves, vectors) and prim_fold.c. */
#ifndef TVMCC_IR_TIR_PRIM_NODE_H
#define TVMCC_IR_TIR_PRIM_NODE_H

#include "ir/scalar.h"

/* The interned copy of `key`; no folding. */
const Prim *prim_node(Ctx *c, const Prim *key);
/* A number, or a splat of one. */
bool prim_scalar_const(const Prim *p, Scalar *v);

#endif
