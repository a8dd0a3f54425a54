/* Normalization. */
#include "frontends/coreml/coreml.h"

#include <string.h>

static const Expr *filled(const Build *b, const Expr *x, uint32_t axis, double v)
{
    const Idx *cells = expr_form(x, axis);

    return build_broadcast_to(b, build_scalar(b, x, v), 1, &cells);
}

/* ---- layers ------------------------------------------------------------------------------------------ */

/* A weight of the channels that may be left out; false with an error. */
static bool channel_weight(CmlNode *n, const char *field, int64_t channels, const Expr **out)
{
    *out = NULL;
    return !cml_has(n, field) || (*out = cml_weight(n, field, 1, &channels, 0)) != NULL;
}

bool cml_layer_batch_norm(CmlNode *n)
{
    static const char *const names[] = {"gamma", "beta", "mean", "variance"};
    const Build             *b = &n->b;
    BatchNormAttrs          *a = ATTRS(b, BatchNormAttrs);
    int64_t                  channels = cml_int(n, "channels", 0);
    bool                     own = cml_bool(n, "compute_mean_var", false);
    bool                     instance = cml_bool(n, "instance_normalization", false);
    const Expr              *args[5] = {cml_image(n, "x", 2)};

    a->epsilon = cml_float(n, "epsilon", 0);
    if (a->epsilon == 0)
        a->epsilon = 1e-5;
    if (!args[0])
        return false;
    if (build_dim(b, args[0], 1) != channels)
        return cml_error(n, E_IMPORT, "it is for %lld channels, the data are %s",
                         (long long)channels, type_text(b->c, args[0]->type));
    for (uint32_t i = 0; i < 4; i++)
        if (!channel_weight(n, names[i], channels, &args[1 + i]))
            return false;
    if (own) {
        const Expr *y = instance
                            ? build_instances(b, args[0], a->epsilon)
                            : build_standardized(b, args[0], 3, (int64_t[]){0, 2, 3}, a->epsilon);

        return cml_done_image(n, build_scaled(b, y, args[1], args[2], 1));
    }
    for (uint32_t i = 0; i < 4; i++)
        if (!args[1 + i])
            args[1 + i] = filled(b, args[0], 1, i == 0 || i == 3);
    return cml_done_image(n, build_proj(b, build_call(b, "nn.batch_norm", 5, args, a), 0));
}

bool cml_mvn(CmlNode *n)
{
    const Build *b = &n->b;
    bool         across = cml_bool(n, "across_channels", false);
    bool         variance = cml_bool(n, "normalize_variance", false);
    double       eps = cml_float(n, "epsilon", 0);
    const Expr  *x = cml_image(n, "x", 2);
    int64_t      axes[3] = {2, 3, 1};
    uint32_t     count = across ? 3 : 2;

    eps = eps != 0 ? eps : 1e-5;
    if (!x)
        return false;
    return cml_done_image(n, variance
                                 ? build_standardized(b, x, count, axes, eps)
                                 : build_sub(b, x, build_reduce(b, "mean", x, count, axes, true)));
}

bool cml_layer_layer_norm(CmlNode *n)
{
    const Build    *b = &n->b;
    LayerNormAttrs *a = ATTRS(b, LayerNormAttrs);
    const Expr     *x = cml_x(n, "x"), *gamma, *beta;
    Ints            shape;

    a->epsilon = cml_float(n, "eps", 0);
    if (a->epsilon == 0)
        a->epsilon = 1e-5;
    if (!x || !cml_ints(n, "normalized_shape", &shape))
        return false;
    if (shape.n < 1 || shape.n > expr_rank(x))
        return cml_error(n, E_IMPORT, "normalized_shape has %u dimensions, the data are %s",
                         shape.n, type_text(b->c, x->type));
    a->axis = expr_rank(x) - shape.n;
    gamma = cml_weight(n, "gamma", shape.n, shape.at, shape.n);
    beta = cml_weight(n, "beta", shape.n, shape.at, shape.n);
    return cml_done(n, build3(b, "nn.layer_norm", x, gamma, beta, a));
}

/* ---- of both ------------------------------------------------------------------------------------------- */

/* By all cells of the last three dimensions. */
bool cml_l2_norm(CmlNode *n)
{
    const Build *b = &n->b;
    double       eps = cml_float(n, "epsilon", 1e-6);
    const Expr  *x = cml_image(n, "x", 2), *sum;

    eps = eps != 0 ? eps : 1e-6;
    sum = x ? build_reduce(b, "sum", build_mul(b, x, x), 3, (int64_t[]){1, 2, 3}, true) : NULL;
    return cml_done_image(n,
                          build_div(b, x, build1(b, "sqrt", build_by(b, "add", sum, eps), NULL)));
}

/* The size is `local_size` in layers. */
bool cml_lrn(CmlNode *n)
{
    int64_t size = cml_int(n, n->layer ? "local_size" : "size", 1);
    double  alpha = cml_float(n, "alpha", 1e-4), beta = cml_float(n, "beta", 0.75);
    double  k = cml_float(n, "k", 1);

    if (n->layer && k == 0)
        k = 1;
    if (size < 1 || size > INT32_MAX)
        return cml_error(n, E_IMPORT, "size %lld", (long long)size);
    return cml_done_image(n, build_lrn(&n->b, cml_image(n, "x", 2), (size - 1) / 2, size / 2, k,
                                       alpha / (double)size, beta));
}

/* ---- operators --------------------------------------------------------------------------------------- */

bool cml_batch_norm(CmlNode *n)
{
    static const char *const names[] = {"gamma", "beta", "mean", "variance"};
    const Build             *b = &n->b;
    BatchNormAttrs          *a = ATTRS(b, BatchNormAttrs);
    const Expr              *args[5] = {cml_x(n, "x")};

    a->epsilon = cml_float(n, "epsilon", 1e-5);
    if (!args[0])
        return false;
    if (expr_rank(args[0]) < 2)
        return cml_error(n, E_IMPORT, "the data are %s", type_text(b->c, args[0]->type));
    for (uint32_t i = 0; i < 4; i++) {
        if (!cml_maybe(n, names[i], &args[1 + i]))
            return false;
        if (!args[1 + i])
            args[1 + i] = filled(b, args[0], 1, i == 0);
    }
    return cml_done(n, build_proj(b, build_call(b, "nn.batch_norm", 5, args, a), 0));
}

bool cml_instance_norm(CmlNode *n)
{
    const Expr *x = cml_x(n, "x"), *gamma, *beta;
    double      eps = cml_float(n, "epsilon", 1e-5);

    if (!x || !cml_maybe(n, "gamma", &gamma) || !cml_maybe(n, "beta", &beta))
        return false;
    if (expr_rank(x) < 3)
        return cml_error(n, E_IMPORT, "the data are %s", type_text(n->b.c, x->type));
    return cml_done(n, build_scaled(&n->b, build_instances(&n->b, x, eps), gamma, beta, 1));
}

/* Where they stand among the dimensions of x, whose other ones are 1. */
static const Expr *spread(const Build *b, const Expr *v, const Expr *x, uint32_t count,
                          const int64_t *axes)
{
    const Idx *dims[MAX_RANK];

    for (uint32_t i = 0; i < expr_rank(x); i++)
        dims[i] = idx_const(b->c->arith, 1);
    for (uint32_t i = 0; i < count && i < expr_rank(v); i++)
        dims[axes[i]] = expr_form(v, i);
    return build_reshape_to(b, v, expr_rank(x), dims);
}

bool cml_layer_norm(CmlNode *n)
{
    const Build    *b = &n->b;
    LayerNormAttrs *a = ATTRS(b, LayerNormAttrs);
    const Expr     *x = cml_x(n, "x"), *gamma, *beta, *y;
    double          eps = cml_float(n, "epsilon", 1e-5);
    int64_t         axes[MAX_RANK];
    uint32_t        count, rank;
    bool            last = true;

    if (!x || !cml_axes(n, "axes", rank = expr_rank(x), &count, axes) ||
        !cml_maybe(n, "gamma", &gamma) || !cml_maybe(n, "beta", &beta))
        return false;
    for (uint32_t i = 0; !count && i < rank; i++)
        axes[i] = i;
    count = count ? count : rank;
    for (uint32_t i = 0; i < count; i++)
        last &= axes[i] == (int64_t)(rank - count + i);
    if (last) {
        Dims d = expr_forms(x);

        a->axis = rank - count;
        a->epsilon = eps;
        gamma = gamma ? gamma : build_broadcast_to(b, build_scalar(b, x, 1), count, d.at + a->axis);
        beta = beta ? beta : build_broadcast_to(b, build_scalar(b, x, 0), count, d.at + a->axis);
        return cml_done(n, build3(b, "nn.layer_norm", x, gamma, beta, a));
    }
    y = build_standardized(b, x, count, axes, eps);
    if (y && gamma)
        y = build_mul(b, y, spread(b, gamma, x, count, axes));
    if (y && beta)
        y = build_add(b, y, spread(b, beta, x, count, axes));
    return cml_done(n, y);
}
