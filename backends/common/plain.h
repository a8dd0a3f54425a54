/* Flat TIR made plainer, for languages that lack vectors, floats of 16 bits or wide indices. */
#ifndef TVMCC_BACKENDS_PLAIN_H
#define TVMCC_BACKENDS_PLAIN_H

#include "ir/tir/tir.h"

/* Arithmetic on floats of 16 bits as that of f32 (halves.c). */
const Func *plain_halves(Ctx *c, const Func *f);

/* Stores of vectors as loops over their lanes (lanes.c). */
const Func *plain_scalars(Ctx *c, const Func *f);

/* int32_t holds all indices of f, and what they are made of (indices.c). */
bool func_index_fits(const Func *f);

#endif
