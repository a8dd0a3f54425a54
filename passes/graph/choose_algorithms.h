/* What choose_algorithms chooses among: the rows of algorithms.def.  An operator's rows have a
 * file, algorithm_<operator>.c. */
#ifndef TVMCC_PASSES_CHOOSE_ALGORITHMS_H
#define TVMCC_PASSES_CHOOSE_ALGORITHMS_H

#include "passes/graph/graph.h"

typedef struct Algorithm Algorithm;

#define NEVER 1e300

/* Cycles of one core for a typed call; NEVER: it cannot be computed so. */
typedef double AlgorithmTime(Ctx *c, const Expr *call, const Algorithm *a);
/* The call so computed; calls on its constants may be new, to be folded. */
typedef const Expr *AlgorithmMake(Ctx *c, const Expr *call, const Algorithm *a);

struct Algorithm {
    const char    *op, *name;
    int64_t        tile;
    AlgorithmTime *time;
    AlgorithmMake *make; /* NULL: the call as it is */
};

/* The call with the attribute `chunk`. */
const Expr *set_chunk(Ctx *c, const Expr *call, int64_t chunk);

#define none set_algorithm
#define ALGORITHM(op, name, tile, time, make) \
    AlgorithmTime time;                       \
    AlgorithmMake make;
#include "passes/graph/algorithms.def"
#undef ALGORITHM
#undef none

#endif
