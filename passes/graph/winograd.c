/* winograd: 3x3 convolutions of stride 1 by Winograd's algorithm, where that is faster.
 *
 *   nn.conv2d(%x, const @w, padding=[1, 1, 1, 1], data_layout="NCHW16c")
 *     -> nn.contrib_conv2d_winograd_without_weight_transform(%x, const @w.u, tile_size=4, ..)
 *
 * Tiles of m by m outputs take (m+2)^2 products instead of 9*m^2, but transforms of input and
 * output come on top, and the weights grow by (m+2)^2/9.  The algorithm with the least estimated
 * cycles is taken: direct, m = 2 or m = 4; the estimate is that by which sched_winograd cuts the
 * image.  Weights are transformed here, in double precision, so they must be constant.  Runs on
 * blocked layouts, before borders are planned. 8-bit integers go so too, exactly, where no
 * instruction adds four products; -fno-winograd turns it off. Cost: one walk and the
 * evaluation of the transforms. */
#include "ir/tir/intrin.h"
#include "passes/graph/graph.h"
#include "schedules/schedules.h"

#include <string.h>

double winograd_gain(const Ctx *c, const int64_t out[4], int64_t in, int64_t lanes)
{
    Conv3x3 s = {.n = out[0], .in = in, .out = out[1], .y = out[2], .x = out[3], .lanes = lanes};
    double  direct = direct_cycles(c->target, &s), best = direct;

    for (int64_t m = 2; m <= 4; m += 2) {
        double cycles = winograd_cycles(c->target, &s, m);

        best = cycles < best ? cycles : best;
    }
    return direct > 0 ? best / direct : 1;
}

/* Data of 8 bits, where four products take no less than twice two of i16: the transforms leave i16,
 * whose products are then the quickest anyway. */
static bool suits_ints(Ctx *c, DType data, const Expr *w)
{
    uint32_t pair = intrin_ops(c, "dot4", DT_I16, DT_I16);

    return dtype_is_int(data) && data.bits == 8 && dtype_eq(w->type->dtype, DT_I8) && pair &&
           intrin_ops(c, "dot4", data, DT_I8) >= 2 * pair;
}

static bool shape_of(Ctx *c, const Expr *e, Conv3x3 *s)
{
    const Type *x = call_arg(e, 0)->type, *w = call_arg(e, 1)->type, *y = e->type;
    int64_t     d[5], k[4];

    if (!x || !w || !y || x->n != 5 || y->n != 5 || w->n != 4 ||
        call_arg(e, 1)->kind != EXPR_CONST ||
        !(dtype_eq(x->dtype, DT_F32) || suits_ints(c, x->dtype, call_arg(e, 1))))
        return false;
    for (uint32_t i = 0; i < 5; i++)
        if (!type_dim(y, i, &d[i]))
            return false;
    for (uint32_t i = 0; i < 4; i++)
        if (!type_dim(w, i, &k[i]))
            return false;
    *s = (Conv3x3){.n = d[0],
                   .in = k[1],
                   .out = k[0],
                   .y = d[2],
                   .x = d[3],
                   .lanes = d[4],
                   .ints = dtype_is_int(x->dtype)};
    return true;
}

static const Expr *choose(Ctx *c, void *user, const Expr *was, const Expr *now)
{
    Conv3x3     s;
    const Expr *best = now;

    (void)user;
    (void)was;
    if (!call_is(now, "nn.conv2d") || !shape_of(c, now, &s))
        return now;
    double cost = direct_cycles(c->target, &s);
    for (int64_t m = 2; m <= 4; m += 2) {
        double      cycles = winograd_cycles(c->target, &s, m);
        const Expr *e = cycles < cost ? conv2d_winograd(c, now, m) : NULL;

        if (e)
            cost = cycles, best = e;
    }
    return best;
}

const Module *winograd(Ctx *c, const Module *m)
{
    if (!has_vectors(c->target) || !c->target->winograd)
        return m;
    const Module *next = module_rewrite(c, m, choose, NULL);

    return !next || next == m ? next : fold_constant(c, next);
}
