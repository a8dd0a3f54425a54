/* What is normalized by its own cells: (x - mean) / sqrt(variance + epsilon) of instances or of
 * groups of channels, then a scale and a shift for each channel. */
#include "frontends/calls.h"

const Expr *build_standardized(const Build *b, const Expr *x, uint32_t n, const int64_t *axes,
                               double epsilon)
{
    const Expr *d = x ? build_sub(b, x, build_reduce(b, "mean", x, n, axes, true)) : NULL, *var;

    var = d ? build_reduce(b, "mean", build_mul(b, d, d), n, axes, true) : NULL;
    return build_div(b, d, build1(b, "sqrt", build_by(b, "add", var, epsilon), NULL));
}

const Expr *build_instances(const Build *b, const Expr *x, double epsilon)
{
    int64_t axes[MAX_RANK];

    for (uint32_t i = 2; i < expr_rank(x); i++)
        axes[i - 2] = i;
    return build_standardized(b, x, expr_rank(x) - 2, axes, epsilon);
}

const Expr *build_grouped(const Build *b, const Expr *x, int64_t groups)
{
    int64_t    channels = build_dim(b, x, 1);
    const Idx *dims[3] = {expr_form(x, 0), idx_const(b->c->arith, groups)};

    if (groups < 1 || channels % groups)
        return build_error(b, E_IMPORT, "%lld groups of %lld channels", (long long)groups,
                           (long long)channels);
    dims[2] = idx_const(b->c->arith, channels / groups);
    for (uint32_t i = 2; i < expr_rank(x); i++)
        dims[2] = idx_mul(b->c->arith, dims[2], expr_form(x, i));
    return build_reshape_to(b, x, 3, dims);
}

const Expr *build_groups(const Build *b, const Expr *x, int64_t groups, double epsilon)
{
    const Expr *y = build_grouped(b, x, groups);

    y = y ? build_standardized(b, y, 1, (int64_t[]){2}, epsilon) : NULL;
    return y ? build_reshape_to(b, y, expr_rank(x), expr_forms(x).at) : NULL;
}

/* A constant whose cells are all v. */
static bool filled_with(const Expr *x, double v)
{
    double cell;

    return expr_const_f(x, &cell) && cell == v;
}

const Expr *build_scaled(const Build *b, const Expr *y, const Expr *gamma, const Expr *beta,
                         uint32_t axis)
{
    if (y && gamma && !filled_with(gamma, 1))
        y = build_mul(b, y, build_along(b, gamma, expr_rank(y), axis));
    return y && beta && !filled_with(beta, 0)
               ? build_add(b, y, build_along(b, beta, expr_rank(y), axis))
               : y;
}
