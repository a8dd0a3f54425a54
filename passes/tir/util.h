/* What several TIR passes share. */
#ifndef TVMCC_PASSES_TIR_UTIL_H
#define TVMCC_PASSES_TIR_UTIL_H

#include "ir/tir/tir.h"

/* s with every access of `from` going to `to` (same indices). */
const Stmt *buffer_replace(Ctx *c, const Stmt *s, const Buffer *from, const Buffer *to);

/* The chain of spatial loops of constant extent, none of them to be written out, that s begins
 * with: what is inside, and how often it runs; s itself and 1 if there is none. */
const Stmt *spatial_chain(Ctx *c, const Stmt *s, const Idx **total);
/* `in`, the inside of that chain, for iteration `at` of all; only below total if `guard`. */
const Stmt *chain_at(Ctx *c, const Stmt *s, const Stmt *in, const Idx *total, const Idx *at,
                     bool guard);

/* The threads of a device function's block: a loop for each axis that has a constant number of them
 * (var NULL: it has not), and its variable in place of those of all loops that are bound to it. */
typedef struct {
    LoopData  loop[3];
    IdxSubst *numbers;
} Threads;
Threads threads_of(Ctx *c, const Func *f);

/* own_cells.c: the index, whose number of a cell is `flat` (NULL: not known), is another one in
 * every combination of rounds of these loops. */
bool own_cells(Ctx *c, uint32_t ndim, const Idx *const *index, const Idx *flat, uint32_t nloops,
               const LoopData *const *loops);

/* cooperate.c: buffers of scope `shared` in the bound nest s, filled by the threads of a block. */
const Stmt *cooperate(Ctx *c, const Stmt *s);

#endif
