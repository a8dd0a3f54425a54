/* Flat TIR made plainer, for languages that lack vectors, floats of 16 bits or wide indices. */
#ifndef TVMCC_BACKENDS_PLAIN_H
#define TVMCC_BACKENDS_PLAIN_H

#include "ir/tir/tir.h"

/* Arithmetic on floats of 16 bits as that of f32 (halves.c). */
const Func *plain_halves(Ctx *c, const Func *f);

/* Stores of vectors as loops over their lanes (lanes.c). */
const Func *plain_scalars(Ctx *c, const Func *f);

/* Instructions that the device has not as single operations (instruction.c): of those that stay,
 * copies are between memory and what a block shares, and go on beside what follows them until a
 * thread waits. */
typedef bool HasIntrinFn(const void *user, IntrinId id);
const Func  *plain_instructions(Ctx *c, const Func *f, HasIntrinFn *has, const void *user);
bool         is_async_copy(const Prim *p);

/* int32_t holds all indices of f, and what they are made of (indices.c). */
bool func_index_fits(const Func *f);

#endif
