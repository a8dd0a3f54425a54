/* The adjoint of resizing: along each axis it is a matrix of weights, [in, out], which it makes
 * itself from unit pictures.  The gradient is multiplied by them from both sides. */
#include "ops/gradient/gradient.h"

/* Weights of one axis: each channel is a column, or row, with one cell set. */
static const Expr *weights(const Adjoint *a, uint32_t axis, int64_t in, int64_t out)
{
    const Resize2dAttrs *was = ATTRS(Resize2dAttrs, a->call);
    Resize2dAttrs       *attrs = arena_dup(a->b->c->arena, was, sizeof *attrs);
    int64_t              size[2] = {1, 1}, ids[4] = {1, in, 1, 1}, flat[2] = {in, out};
    double               scales[2] = {1, 1};
    DType                t = a->call->type->dtype;
    Dims                 units;
    ArangeAttrs         *count = NEW_ATTRS(a->b->c, ArangeAttrs);
    OneHotAttrs         *unit = NEW_ATTRS(a->b->c, OneHotAttrs);
    const Expr          *x;

    count->stop = (double)in;
    count->dtype = DT_I64;
    unit->depth = in;
    unit->dtype = t;
    x = expr_call_name(a->b->c, "arange", 0, NULL, count, a->b->loc);
    x = build3(a->b, "one_hot", x, expr_scalar(a->b->c, t, 1), expr_scalar(a->b->c, t, 0), unit);
    ids[axis + 2] = in;
    units = dims_of_i64(a->b->c, ids, 4);
    x = build_reshape_to(a->b, x, 4, units.at);
    size[axis] = out;
    attrs->size = dims_of_i64(a->b->c, size, 2);
    if (was->scales.n) {
        scales[axis] = was->scales.at[axis];
        attrs->scales.at = DUP_ARRAY(a->b->c->arena, scales, 2);
    }
    return build_reshape_to(a->b, build1(a->b, "image.resize2d", x, attrs), 2,
                            dims_of_i64(a->b->c, flat, 2).at);
}

void adjoint_resize2d(const Adjoint *a)
{
    BatchMatmulAttrs *across = NEW_ATTRS(a->b->c, BatchMatmulAttrs);
    BatchMatmulAttrs *down = NEW_ATTRS(a->b->c, BatchMatmulAttrs);
    const Expr       *w[2];

    if (a->x[0]->type->n != 4) {
        adjoint_refuse(a, "channels in blocks");
        return;
    }
    for (uint32_t i = 0; i < 2; i++) {
        int64_t in, out;

        if (!rel_dim(a->b->c, a->b->loc, a->x[0]->type, i + 2, &in) ||
            !rel_dim(a->b->c, a->b->loc, a->call->type, i + 2, &out) ||
            !(w[i] = weights(a, i, in, out)))
            return;
    }
    down->transpose_b = false;
    a->dx[0] = build2(a->b, "nn.batch_matmul", a->dy[0], w[1], across);
    a->dx[0] = build2(a->b, "nn.batch_matmul", w[0], a->dx[0], down);
}
