/* Sorting rows: what both algorithms share (sort.c: one after the other, sort_network.c). */
#ifndef TVMCC_OPS_REDUCE_SORT_H
#define TVMCC_OPS_REDUCE_SORT_H

#include "ops/common.h"

/* The first k cells of each row of x in order: their values, their positions, or both. */
typedef struct {
    const Type   *type; /* of x */
    const Tensor *x;
    uint32_t      axis;
    const Idx    *wanted; /* k */
    bool          ascend;
    const Type   *values, *indices; /* results; NULL: not wanted */
    const char   *value_name, *index_name;
} SortRows;

/* An integer whose order is that of the elements in a row, NaN above all numbers and the zeros
 * equal: of 32 bits where the element has as many or fewer, but for u32. */
const Prim *sort_key(Ctx *c, const Prim *x, bool ascend);
DType       sort_key_type(DType t);

/* By networks of comparisons, in chunks of at most so many cells of a row (0: all of it), whose
 * runs are merged.  False, and nothing is made: for rows that do not suit it (ops.h). */
bool sort_by_network(Ctx *c, const SortRows *s, int64_t chunk, const Tensor **out);

#endif
