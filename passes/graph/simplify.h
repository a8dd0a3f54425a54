/* What simplify_expr.c, its parts and passes before it share. */
#ifndef TVMCC_PASSES_SIMPLIFY_H
#define TVMCC_PASSES_SIMPLIFY_H

#include "passes/graph/graph.h"

/* simplify_pick.c: a call that picks or orders cells, in fewer steps; e if there are none. */
const Expr *simplify_pick(Ctx *c, const Expr *e);
/* A `where` whose constant operand is one number. */
const Expr *where_number(Ctx *c, const Expr *e);

/* simplify_slope.c: `where` or nn.prelu as the one call that its slope below 0 is; e if it is none.
 */
const Expr *simplify_slope(Ctx *c, const Expr *e);

/* What e, views and transposes of a tensor that is reversed along what is dimension `axis` of e, is
 * of the tensor in order; NULL: it is not reversed. */
const Expr *unreversed(Ctx *c, const Expr *e, uint32_t axis);

#endif
