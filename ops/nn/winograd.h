#ifndef OPS_NN_WINOGRAD_H
#define OPS_NN_WINOGRAD_H

#include "ops/common.h"

/* Winograd's transforms of one dimension (winograd.c). */

enum { WINOGRAD_MOST_CELLS = 8, WINOGRAD_MOST_KERNEL = 7 };

/* A tile of a = 1, 4, 6 or 8 cells. */
void winograd_input(Ctx *c, int64_t a, const Prim *const *d, const Prim **v);
/* Its m outputs. */
void winograd_output(Ctx *c, int64_t a, int64_t m, const Prim *const *p, const Prim **y);
/* A tile of fewer outputs that needs 3 or 4 cells, by the weights of tiles of 6. */
void winograd_short_input(Ctx *c, int64_t cells, const Prim *const *d, const Prim **v);
void winograd_short_output(Ctx *c, int64_t cells, int64_t m, const Prim *const *p, const Prim **y);
/* A row of k weights, for tiles of a cells. */
void winograd_weight(Ctx *c, int64_t a, int64_t k, const Prim *const *g, const Prim **u);

#endif
