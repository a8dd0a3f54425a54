/* The adjoint of resizing: along each axis it is a matrix of weights, [in, out], which it makes
 * itself from unit pictures.  The gradient is multiplied by them from both sides. */
#include "ops/gradient/gradient.h"

/* Weights of one axis: each channel is a column, or row, with one cell set. */
static const Expr *weights(const Adjoint *a, uint32_t axis, int64_t in, int64_t out)
{
    const Resize2dAttrs *was = ATTRS(Resize2dAttrs, a->call);
    Resize2dAttrs       *attrs = arena_dup(a->c->arena, was, sizeof *attrs);
    int64_t              size[2] = {1, 1}, ids[4] = {1, in, 1, 1}, flat[2] = {in, out};
    double               scales[2] = {1, 1};
    DType                t = a->call->type->dtype;
    Dims                 units;
    ArangeAttrs         *count = NEW_ATTRS(a->c, ArangeAttrs);
    OneHotAttrs         *unit = NEW_ATTRS(a->c, OneHotAttrs);
    const Expr          *x;

    count->stop = (double)in;
    count->dtype = DT_I64;
    unit->depth = in;
    unit->dtype = t;
    x = expr_call_name(a->c, "arange", 0, NULL, count, a->loc);
    x = grad3(a, "one_hot", x, expr_scalar(a->c, t, 1), expr_scalar(a->c, t, 0), unit);
    ids[axis + 2] = in;
    units = dims_of_i64(a->c, ids, 4);
    x = grad_reshape(a, x, 4, units.at);
    size[axis] = out;
    attrs->size = dims_of_i64(a->c, size, 2);
    if (was->scales.n) {
        scales[axis] = was->scales.at[axis];
        attrs->scales.at = DUP_ARRAY(a->c->arena, scales, 2);
    }
    return grad_reshape(a, grad1(a, "image.resize2d", x, attrs), 2, dims_of_i64(a->c, flat, 2).at);
}

void adjoint_resize2d(const Adjoint *a)
{
    BatchMatmulAttrs *across = NEW_ATTRS(a->c, BatchMatmulAttrs);
    BatchMatmulAttrs *down = NEW_ATTRS(a->c, BatchMatmulAttrs);
    const Expr       *w[2];

    if (a->x[0]->type->n != 4) {
        adjoint_refuse(a, "channels in blocks");
        return;
    }
    for (uint32_t i = 0; i < 2; i++) {
        int64_t in, out;

        if (!rel_dim(a->c, a->loc, a->x[0]->type, i + 2, &in) ||
            !rel_dim(a->c, a->loc, a->call->type, i + 2, &out) || !(w[i] = weights(a, i, in, out)))
            return;
    }
    down->transpose_b = false;
    a->dx[0] = grad2(a, "nn.batch_matmul", a->dy[0], w[1], across);
    a->dx[0] = grad2(a, "nn.batch_matmul", w[0], a->dx[0], down);
}
