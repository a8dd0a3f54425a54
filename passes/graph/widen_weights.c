/* widen_weights: weights of bytes that are multiplied as i16 are stored so.
 *
 *   nn.conv2d(%x, const @w, data_layout="NCHW8c")        // x: u8, w: i8
 *     -> nn.conv2d(%x, const @w.1, data_layout="NCHW8c")       // w.1: i16
 *
 * Where no instruction adds four products of bytes, convolutions multiply i16 (ops/nn/conv2d.c),
 * and would widen the weights in every tile of pixels: two of 28 instructions with AVX2.  They take
 * twice the memory, so only those that many pixels use are widened.  Cost: one walk and the casts.
 */
#include "ir/tir/intrin.h"
#include "passes/graph/graph.h"

static const Expr *widen(Ctx *c, void *user, const Expr *was, const Expr *now)
{
    (void)user;
    (void)was;
    if (!call_is(now, "nn.conv2d") || !now->type || call_arg(now, 1)->kind != EXPR_CONST ||
        !conv2d_widens_weights(c, now))
        return now;
    CastAttrs *a = ATTRS_NEW(c, CastAttrs);

    a->dtype = DT_I16;
    const Expr *w = make1(c, "cast", call_arg(now, 1), a, now->loc);

    return w ? make2(c, "nn.conv2d", call_arg(now, 0), w, now->u.attrs, now->loc) : NULL;
}

const Module *widen_weights(Ctx *c, const Module *m)
{
    if (!has_vectors(c->target) || !intrin_ops(c, "dot4", DT_I16, DT_I16))
        return m;
    const Module *next = module_rewrite(c, m, widen, NULL);

    return !next || next == m ? next : fold_constant(c, next);
}
