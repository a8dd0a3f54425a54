/* view_axes: which dimensions of a tensor make up those of what views and transposes show of it.
 *
 *   transpose(reshape(%x: [1, 204, 32], [1, 102, 2, 32]), [2, 3, 0, 1]): [2, 32, 1, 102]
 *     -> of %x, three parts: 2 (of dimension 1, the inner one), 32 (of 2), 102 (of 1, the outer)
 *
 * The result's dimensions are parts in order; going down, a view gathers them anew, and cuts those
 * that a dimension below takes only the outer cells of.  Dimensions of 1 are no parts: wherever
 * they stand, the same cells come in the same order. */
#include "passes/graph/graph.h"

#include <string.h>

void axes_of_transpose(const Expr *e, uint32_t *axes)
{
    const TransposeAttrs *a = ATTRS_OF(TransposeAttrs, e);
    uint32_t              n = e->type->n;

    for (uint32_t i = 0; i < n; i++)
        axes[i] = a->axes.n ? axis_from_front(a->axes.at[i], n) : n - 1 - i;
}

typedef struct {
    ViewAxes *v;
    uint32_t  order[MAX_PARTS]; /* numbers of the parts, as the tensor at hand has them */
    uint32_t  in[MAX_PARTS];    /* its dimension, of each part */
} Walk;

/* Part p as an outer one of `size` and an inner one, which follow each other in both orders. */
static bool cut(Ctx *c, Walk *w, uint32_t place, int64_t all, int64_t size)
{
    ViewAxes *v = w->v;
    uint32_t  p = w->order[place];

    if (v->n == MAX_PARTS || all % size)
        return false;
    memmove(v->part + p + 1, v->part + p, (v->n - p) * sizeof *v->part);
    memmove(w->in + p + 1, w->in + p, (v->n - p) * sizeof *w->in);
    for (uint32_t i = 0; i < v->n; i++)
        w->order[i] += w->order[i] > p;
    memmove(w->order + place + 1, w->order + place, (v->n - place) * sizeof *w->order);
    w->order[place + 1] = p + 1;
    v->part[p].size = idx_const(c->arith, size);
    v->part[p + 1].size = idx_const(c->arith, all / size);
    v->n++;
    return true;
}

/* The parts in order are those of a tensor of type t. */
static bool regroup(Ctx *c, Walk *w, const Type *t)
{
    uint32_t  place = 0;
    ViewAxes *v = w->v;

    for (uint32_t i = 0; i < t->n; i++) {
        int64_t left, size;

        if (!idx_is_const(t->dims[i], &left)) { /* a symbol is one part */
            if (place == v->n || v->part[w->order[place]].size != t->dims[i])
                return false;
            w->in[w->order[place++]] = i;
            continue;
        }
        for (; left > 1; place++) {
            if (place == v->n || !idx_is_const(v->part[w->order[place]].size, &size))
                return false;
            if (left % size != 0) {
                if (size < left || !cut(c, w, place, size, left))
                    return false;
                size = left;
            }
            w->in[w->order[place]] = i;
            left /= size;
        }
        if (left == 0)
            return false;
    }
    return place == v->n;
}

/* The order of the operand's cells: by its dimensions, parts of one as they were. */
static void transposed(Walk *w, const Expr *e)
{
    uint32_t axes[MAX_PARTS], was[MAX_PARTS], n = 0;

    axes_of_transpose(e, axes);
    memcpy(was, w->order, sizeof was);
    for (uint32_t i = 0; i < w->v->n; i++)
        w->in[i] = axes[w->in[i]];
    for (uint32_t axis = 0; axis < e->type->n; axis++)
        for (uint32_t i = 0; i < w->v->n; i++)
            if (w->in[was[i]] == axis)
                w->order[n++] = was[i];
}

static bool is_step_down(const Expr *e)
{
    return (is_view(e) || call_is(e, "transpose")) && expr_has_shape(e) &&
           expr_has_shape(call_arg(e, 0)) && e->type->n <= MAX_PARTS;
}

bool view_axes(Ctx *c, const Expr *e, ViewAxes *v)
{
    Walk    w = {.v = v};
    int64_t size;

    v->n = 0;
    if (!expr_has_shape(e))
        return false;
    for (uint32_t i = 0; i < e->type->n; i++) {
        if (idx_is_const(e->type->dims[i], &size) && size == 1)
            continue;
        if (v->n == MAX_PARTS)
            return false;
        w.order[v->n] = v->n;
        w.in[v->n] = i;
        v->part[v->n++] = (AxisPart){.size = e->type->dims[i]};
    }
    for (uint32_t i = 0; i < v->n; i++)
        v->part[i].dim = w.in[i];
    for (; is_step_down(e); e = call_arg(e, 0))
        if (call_is(e, "transpose"))
            transposed(&w, e);
        else if (!regroup(c, &w, call_arg(e, 0)->type))
            return false;
    v->of = e;
    for (uint32_t i = 0; i < v->n; i++) {
        v->part[w.order[i]].from = w.in[w.order[i]];
        v->part[w.order[i]].place = i;
    }
    return true;
}

bool in_order(const ViewAxes *v)
{
    for (uint32_t i = 0; i < v->n; i++)
        if (v->part[i].place != i)
            return false;
    return true;
}
