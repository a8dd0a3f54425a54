/* Inside ir/te only: what the makers of tensors and those of scans share. */
#ifndef TVMCC_IR_TE_IMPL_H
#define TVMCC_IR_TE_IMPL_H

#include "ir/te/te.h"

/* te.c */
typedef VEC(const Tensor *) Tensors;
Tensor *tensor_new(Ctx *c, TensorKind kind, const Buffer *b);
/* The tensors that p loads, in order of first use, behind those that are in the list. */
void add_loads(Ctx *c, const Prim *p, Tensors *to);
/* Loops from 0 around the body, the first nspatial of them spatial, the others of a reduction. */
const Stmt *loops_around(Ctx *c, uint32_t n, const Atom *const *vars, const Idx *const *extents,
                         uint32_t nspatial, const Stmt *body, Loc loc);
/* The loops of one definition, inside of loops over `around` for its first iterators. */
const Stmt *nest_of(Ctx *c, const char *name, const ScanDef *d, const Axes *iters,
                    const Atom *const *around, Loc loc);

/* scan.c */
const Stmt *scan_nest(Ctx *c, const Scan *k, const char *(*name)(void *user, const Tensor *t),
                      void *user, Loc loc);

#endif
