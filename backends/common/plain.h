/* Flat TIR made plainer, for languages that lack vectors, floats of 16 bits or wide indices. */
#ifndef TVMCC_BACKENDS_PLAIN_H
#define TVMCC_BACKENDS_PLAIN_H

#include "ir/tir/tir.h"

/* Arithmetic on floats of 16 bits as that of f32, but for operations on f16 that the language has
 * (halves.c); NULL: none. */
typedef bool HasHalfFn(const Prim *p);
const Func  *plain_halves(Ctx *c, const Func *f, HasHalfFn *has);

/* Stores of vectors as loops over their lanes, but for words of what a block shares, or moves there
 * and from there of so many bytes at most (lanes.c). */
enum { WORD = 4 };
const Func *plain_scalars(Ctx *c, const Func *f, uint32_t most);

/* Instructions that the device has not as single operations (instruction.c): of those that stay,
 * copies are between memory and what a block shares, and go on beside what follows them until a
 * thread waits. */
typedef bool HasIntrinFn(const void *user, IntrinId id);
const Func  *plain_instructions(Ctx *c, const Func *f, HasIntrinFn *has, const void *user);
bool         is_async_copy(const Prim *p);

/* Loads and stores of neighbouring cells as those of vectors, where the language has these: any
 * other value stays a single number (wide.c). */
typedef bool HasWideFn(const void *user, DType vector, Scope scope);
const Func  *plain_wide(Ctx *c, const Func *f, HasWideFn *has, const void *user);
/* .. loads of those that stay in registers (loads.c); before plain_wide. */
const Func *plain_loads(Ctx *c, const Func *f, HasWideFn *has, const void *user);
/* Cells of b in such an access: 16 bytes, WIDE_LANES of narrower numbers, at most so many; 1: there
 * is none. */
enum { WIDE_LANES = 4 };
uint16_t access_lanes(const Buffer *b, uint16_t most, HasWideFn *has, const void *user);
/* How many operands of p are computed in any case. */
uint32_t sure_kids(const Prim *p);
bool     is_param_of(const Func *f, const Buffer *b);
/* The cell lies on a border of so many bytes, as its buffer does. */
bool is_on_border(Ctx *c, const Buffer *b, const Idx *const *index, int64_t bytes);

/* int32_t holds all indices of f, and what they are made of (indices.c). */
bool func_index_fits(const Func *f);

#endif
