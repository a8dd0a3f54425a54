/* Functions of cells that are several operators of Relay. */
#include "frontends/calls.h"

#include <math.h>

const Expr *build_atan2(const Build *b, const Expr *y, const Expr *x)
{
    const Expr *zero = build_scalar(b, x, 0), *a, *turn;

    /* The angle of (|x|, y) or, where that is steep, of (y, |x|), then by the sign of x. */
    const Expr *ax = build1(b, "abs", x, NULL), *ay = build1(b, "abs", y, NULL);
    const Expr *most = build2(b, "maximum", ax, ay, NULL),
               *least = build2(b, "minimum", ax, ay, NULL);
    const Expr *none = build2(b, "equal", most, zero, NULL);

    a = build1(b, "atan", build_div(b, least, build_where(b, none, build_scalar(b, x, 1), most)),
               NULL);
    a = build_where(b, build_less(b, ax, ay), build_sub(b, build_scalar(b, x, M_PI / 2), a), a);
    a = build_where(b, build_less(b, x, zero), build_sub(b, build_scalar(b, x, M_PI), a), a);
    turn = build1(b, "negative", a, NULL);
    return build_where(b, build_less(b, y, zero), turn, a);
}

/* To a grid of 2^bits numbers from lo to hi, of which one is 0. */
const Expr *build_fake_quant(const Build *b, const Expr *x, double lo, double hi, int64_t bits,
                             bool narrow)
{
    int64_t least = narrow;
    double  most, scale, zero;

    if (bits < 2 || bits > 16 || !(lo <= 0) || !(hi >= 0) || !(lo < hi))
        return build_error(b, E_IMPORT, "%lld bits for %g to %g", (long long)bits, lo, hi);
    most = (double)((1 << bits) - 1);
    scale = (float)((float)(hi - lo) / (float)(most - (double)least));
    zero = (double)least - lo / scale;
    zero = zero < (double)least ? (double)least : zero > most ? most : floor(zero + 0.5);
    lo = ((double)least - zero) * scale;
    hi = (most - zero) * scale;
    x = build_by(b, "subtract", build_clip(b, x, lo, hi), lo);
    x = build1(b, "floor", build_by(b, "add", build_by(b, "multiply", x, 1 / scale), 0.5), NULL);
    return build_by(b, "add", build_by(b, "multiply", x, scale), lo);
}

/* The sum as a pooling of rows. */
const Expr *build_lrn(const Build *b, const Expr *x, int64_t before, int64_t behind, double bias,
                      double alpha, double beta)
{
    const Expr  *y;
    Pool2dAttrs *a = ATTRS(b, Pool2dAttrs);
    const Idx   *dims[4];

    if (!x)
        return NULL;
    if (before < 0 || before > 4096 || behind < 0 || behind > 4096)
        return build_error(b, E_IMPORT, "a sum over %lld channels before and %lld behind",
                           (long long)before, (long long)behind);
    if (expr_empty(x)) /* no window fits */
        return x;
    a->pool_size = ints_of(b->c, 2, (int)(before + 1 + behind), 1);
    a->padding = ints_of(b->c, 4, (int)before, 0, (int)behind, 0);
    a->count_include_pad = true;
    dims[0] = expr_form(x, 0);
    dims[1] = idx_const(b->c->arith, 1);
    dims[2] = expr_form(x, 1);
    dims[3] = idx_const(b->c->arith, 1);
    for (uint32_t i = 2; i < expr_rank(x); i++)
        dims[3] = idx_mul(b->c->arith, dims[3], expr_form(x, i));
    y = build1(b, "nn.avg_pool2d", build_reshape_to(b, build_mul(b, x, x), 4, dims), a);
    if (!y)
        return NULL;
    y = build_reshape_to(b, y, expr_rank(x), expr_forms(x).at);
    y = build_by(b, "multiply", y, alpha * (double)(before + 1 + behind));
    return build_mul(b, x, build_by(b, "power", build_by(b, "add", y, bias), -beta));
}
