/* Where a condition holds, and which values there are: how many, a run decides
 * (docs/design/shapes.md). */
#include "frontends/tflite/tflite.h"

#include <string.h>

/* The dimension that holds this number, `total` of shape [1], within 0 to `most` cells. */
static const Idx *bound_dim(void *user, const Expr *total, const Idx *most)
{
    TfliteNode *n = user;
    const char *name = intern_printf(n->b.c->strings, "%s.0", tflite_out(n, 0)->name);
    const Expr *bind;
    const Idx  *k;

    if (n->scope->depth)
        return tflite_error(n, E_UNSUPPORTED, "in a graph of a branch or loop");
    if ((k = build_bound_dim(&n->b, &n->im->shapes, name, total, most, &bind)))
        vec_push(n->b.c->arena, &n->im->binds, bind);
    return k;
}

bool tflite_where(TfliteNode *n)
{
    return tflite_done(n, build_find(&n->b, &(BoundDim){bound_dim, n}, n->in[0]));
}

bool tflite_unique(TfliteNode *n)
{
    UniqueCells u;
    DType       t;

    if (n->nout != 2 || !tflite_dtype(tflite_out(n, 1)->type, &t) || !dtype_is_int(t))
        return tflite_error(n, E_IMPORT, "%u outputs, of which the second is no integer", n->nout);
    if (!build_unique(&n->b, &(BoundDim){bound_dim, n}, n->in[0], &u))
        return false;
    n->out[1] = build_cast(&n->b, u.number, t);
    return tflite_done(n, u.values);
}
