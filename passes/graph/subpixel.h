/* What the ways of pass subpixel share: the transposed convolution, and a convolution for some of
 * the places that its stride makes of a cell. */
#ifndef TVMCC_PASSES_SUBPIXEL_H
#define TVMCC_PASSES_SUBPIXEL_H

#include "passes/graph/graph.h"

typedef struct {
    int64_t n, in, out, groups; /* images, channels of a group, groups */
    int64_t size[2], k[2], s[2], d[2], top[2], size_out[2]; /* of the rows, of the columns */
    int64_t step[2], cells[2];                              /* rows y of the new result */
    int64_t filled; /* channels that a place has in it; 0: places of a channel lie together */
} Subpixel;

/* A convolution for the places from r0 to r1. */
typedef struct {
    int64_t r0[2], r1[2];
    int64_t lo[2], window[2]; /* input cells y + lo, y + lo + step, .. */
    int64_t pad[4];
} Part;

/* Vectors of products for a cell: of `outs` channels, the last ones filled up, or, as a convolution
 * of few outputs has it, of the cells of a row. */
double subpixel_vectors(int64_t outs, int64_t row, int64_t lanes);

/* subpixel_taps.c: vectors of products for a cell, and what their sums cost in such. */
double subpixel_taps_vectors(const Machine *m, const Subpixel *p, int64_t lanes);
/* The cells of each place, [N, O, rows, columns], of which there are s[0] * s[1]; `bias`, [O], is
 * added, unless NULL.  p->groups is 1. */
const Expr **subpixel_taps(Ctx *c, const Subpixel *p, const Part *all, const Expr *deconv,
                           const Expr *bias);

#endif
