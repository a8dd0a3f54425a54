/* winograd: 3x3 convolutions of stride 1 by Winograd's algorithm, where that is faster.
 *
 *   nn.conv2d(%x, const @w, padding=[1, 1, 1, 1], data_layout="NCHW16c")
 *     -> nn.contrib_conv2d_winograd_without_weight_transform(%x, const @w.u, tile_size=4, ..)
 *
 * Tiles of m by m outputs take (m+2)^2 products instead of 9*m^2, but transforms of input and
 * output come on top, and the weights grow by (m+2)^2/9.  The algorithm with the least estimated
 * cycles is taken: direct, m = 2 or m = 4.  Weights are transformed here, in double precision, so
 * they must be constant.  Runs on blocked layouts, before borders are planned; -fno-winograd turns
 * it off. Cost: one walk and the evaluation of the transforms. */
#include "passes/graph/graph.h"

#include <string.h>

typedef struct {
    double lanes;
    double in, out; /* channels */
    double y, x, n; /* cells of the result; images */
} Shape;

/* Bytes a cycle that weights and intermediate results stream at (caches beyond the second). */
#define STREAM 8.0
#define NEAR 24.0

/* Cycles of computing and of moving data overlap, though not wholly. */
static double overlap(double compute, double memory)
{
    return compute > memory ? compute + 0.3 * memory : memory + 0.3 * compute;
}

static double direct_cycles(const Shape *s)
{
    double macs = s->n * s->y * s->x * s->in * s->out * 9;

    return overlap(macs / s->lanes / 2 * 1.1, s->in * s->out * 36 / STREAM);
}

static double winograd_cycles(const Shape *s, double m)
{
    double a = m + 2, tiles = s->n * (double)(int64_t)((s->y + m - 1) / m) *
                              (double)(int64_t)((s->x + m - 1) / m);
    double macs = tiles * a * a * s->in * s->out;
    double transforms = tiles / s->lanes * (s->in * 4.2 * a * a + s->out * 3.4 * a * a);
    double moved = tiles * a * a * 8 * (s->in + s->out);

    return overlap(macs / s->lanes / 2 * 1.1 + transforms,
                   s->in * s->out * a * a * 4 / STREAM + moved / NEAR);
}

static bool shape_of(Ctx *c, const Expr *e, Shape *s)
{
    const Type *x = call_arg(e, 0)->type, *w = call_arg(e, 1)->type, *y = e->type;
    int64_t     d[5], k[4];

    if (!x || !w || !y || !dtype_eq(x->dtype, DT_F32) || x->n != 5 || y->n != 5 || w->n != 4 ||
        call_arg(e, 1)->kind != EXPR_CONST)
        return false;
    for (uint32_t i = 0; i < 5; i++)
        if (!type_dim(y, i, &d[i]))
            return false;
    for (uint32_t i = 0; i < 4; i++)
        if (!type_dim(w, i, &k[i]))
            return false;
    *s = (Shape){.lanes = (double)c->target->vector_bytes / 4,
                 .in = (double)k[1],
                 .out = (double)k[0],
                 .y = (double)d[2],
                 .x = (double)d[3],
                 .n = (double)d[0]};
    return true;
}

static const Expr *choose(Ctx *c, void *user, const Expr *was, const Expr *now)
{
    Shape       s;
    const Expr *best = now;

    (void)user;
    (void)was;
    if (!call_is(now, "nn.conv2d") || !shape_of(c, now, &s))
        return now;
    double cost = 0.85 * direct_cycles(&s);
    for (int64_t m = 2; m <= 4; m += 2) {
        double      cycles = winograd_cycles(&s, (double)m);
        const Expr *e = cycles < cost ? conv2d_winograd(c, now, m) : NULL;

        if (e)
            cost = cycles, best = e;
    }
    return best;
}

const Module *winograd(Ctx *c, const Module *m)
{
    if (!has_vectors(c) || !c->target->winograd)
        return m;
    const Module *next = module_rewrite(c, m, choose, NULL);

    return !next || next == m ? next : fold_constant(c, next);
}
