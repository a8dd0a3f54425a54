/* Normalization. */
#include "frontends/keras/keras.h"

#include <string.h>

static const Expr *filled(const KerasNode *n, const Idx *cells, double v)
{
    return build_broadcast_to(&n->b, expr_scalar(n->b.c, n->dtype, v), 1, &cells);
}

/* A weight of one dimension of that many cells, or all of them `v` where the layer has none. */
static const Expr *vector(KerasNode *n, const char *name, const Idx *cells, double v)
{
    const Expr *e = keras_has_weight(n, name) ? keras_weight(n, name) : filled(n, cells, v);

    if (e && (expr_rank(e) != 1 || expr_form(e, 0) != cells))
        return keras_error(n, E_IMPORT, "its weight '%s' is %s for %s channels", name,
                           type_text(n->b.c, e->type), dim_text(n->b.c, cells));
    return e;
}

/* By statistics that are kept. */
bool keras_batch_norm(KerasNode *n)
{
    static const char *const names[] = {"gamma", "beta", "moving_mean", "moving_variance"};
    const Build             *b = &n->b;
    BatchNormAttrs          *a = ATTRS(b, BatchNormAttrs);
    const Expr              *args[5] = {keras_in(n)};
    uint32_t                 axis;
    Ints                     axes;

    if (!args[0] || !keras_list(n, "axis", &axes))
        return false;
    if (axes.n > 1 || keras_bool(n, "renorm", false) || keras_int(n, "mode", 0))
        return keras_error(n, E_UNSUPPORTED, "several axes, a mode or renorm");
    if (!keras_axis(n, axes.n ? axes.at[0] : -1, expr_rank(args[0]), &axis))
        return false;
    for (uint32_t i = 0; i < 4; i++)
        if (!(args[1 + i] = vector(n, names[i], expr_form(args[0], axis), i % 3 == 0)))
            return false;
    a->axis = axis;
    a->epsilon = keras_float(n, "epsilon", 1e-3);
    return keras_done(n, build_proj(b, build_call(b, "nn.batch_norm", 5, args, a), 0));
}

/* (x - mean) / sqrt(variance + epsilon) over those axes; without a mean: x / sqrt(mean of x^2 ..)
 */
static const Expr *normalized(const Build *b, const Expr *x, uint32_t n, const int64_t *axes,
                              double epsilon, bool centered)
{
    VarianceAttrs *a = ATTRS(b, VarianceAttrs);
    const Expr    *mean, *var;

    a->axis = ints_dup(b->c, axes, n);
    a->keepdims = true;
    if (centered) {
        mean = build_reduce(b, "mean", x, n, axes, true);
        var = build2(b, "variance", x, mean, a);
        x = build_sub(b, x, mean);
    } else {
        var = build_reduce(b, "mean", build_mul(b, x, x), n, axes, true);
    }
    return build_mul(b, x, build1(b, "rsqrt", build_by(b, "add", var, epsilon), NULL));
}

/* A weight over those axes, ascending, as a tensor that broadcasts with x. */
static const Expr *along(KerasNode *n, const char *name, const Expr *x, uint32_t count,
                         const int64_t *axes)
{
    const Expr *w = keras_weight(n, name);
    const Idx  *dims[MAX_RANK];

    if (!w || !x)
        return NULL;
    if (expr_rank(w) != count)
        return keras_error(n, E_IMPORT, "its weight '%s' is %s", name, type_text(n->b.c, w->type));
    for (uint32_t i = 0; i < expr_rank(x); i++)
        dims[i] = idx_const(n->b.c->arith, 1);
    for (uint32_t i = 0; i < count; i++) {
        if (expr_form(w, i) != expr_form(x, (uint32_t)axes[i]))
            return keras_error(n, E_IMPORT, "its weight '%s' is %s for data %s", name,
                               type_text(n->b.c, w->type), type_text(n->b.c, x->type));
        dims[axes[i]] = expr_form(w, i);
    }
    return build_reshape_to(&n->b, w, expr_rank(x), dims);
}

static bool read_axes(KerasNode *n, const Expr *x, Ints *out)
{
    uint32_t at;
    int64_t *axes;

    if (!keras_list(n, "axis", out))
        return false;
    axes = NEW_ARRAY(n->b.c->arena, int64_t, out->n + 1);
    for (uint32_t i = 0; i < out->n; i++) {
        if (!keras_axis(n, out->at[i], expr_rank(x), &at))
            return false;
        axes[i] = at;
    }
    if (out->n == 0) {
        axes[0] = expr_rank(x) - 1;
        out->n = 1;
    }
    for (uint32_t i = 1; i < out->n; i++)
        if (axes[i] <= axes[i - 1])
            return keras_error(n, E_UNSUPPORTED, "its axes do not ascend");
    out->at = axes;
    return true;
}

bool keras_layer_norm(KerasNode *n)
{
    const Build    *b = &n->b;
    LayerNormAttrs *a = ATTRS(b, LayerNormAttrs);
    const Expr     *x = keras_in(n), *gamma, *beta;
    double          epsilon = keras_float(n, "epsilon", 1e-3);
    bool            rms = keras_bool(n, "rms_scaling", false);
    Ints            axes;

    if (!keras_rank(n, x, 1, MAX_RANK) || !read_axes(n, x, &axes))
        return false;
    if (rms || axes.at[0] + axes.n != expr_rank(x) || !keras_has_weight(n, "gamma") ||
        !keras_has_weight(n, "beta")) {
        x = normalized(b, x, axes.n, axes.at, epsilon, !rms);
        if (keras_has_weight(n, "gamma"))
            x = build_mul(b, x, along(n, "gamma", x, axes.n, axes.at));
        if (keras_has_weight(n, "beta") && !rms)
            x = build_add(b, x, along(n, "beta", x, axes.n, axes.at));
        return keras_done(n, x);
    }
    gamma = keras_weight(n, "gamma");
    beta = keras_weight(n, "beta");
    a->axis = axes.at[0];
    a->epsilon = keras_number(expr_dtype(x), epsilon);
    return keras_done(n, build3(b, "nn.layer_norm", x, gamma, beta, a));
}

bool keras_rms_norm(KerasNode *n)
{
    const Build *b = &n->b;
    const Expr  *x = keras_in(n), *y;
    Ints         axes;

    if (!keras_rank(n, x, 1, MAX_RANK) || !read_axes(n, x, &axes))
        return false;
    y = normalized(b, x, axes.n, axes.at, keras_float(n, "epsilon", 1e-6), false);
    return keras_done(n, build_mul(b, y, along(n, "scale", x, axes.n, axes.at)));
}

/* Channels in groups, each with all that lies beside it. */
bool keras_group_norm(KerasNode *n)
{
    const Build *b = &n->b;
    const Expr  *x = keras_in(n), *y;
    int64_t      groups = keras_int(n, "groups", 32), channels, far[2] = {2, 1};
    int64_t      axis = keras_int(n, "axis", -1);
    const Idx   *dims[3];
    bool         last;
    uint32_t     at;

    if (!keras_rank(n, x, 2, MAX_RANK) || !keras_axis(n, axis, expr_rank(x), &at))
        return false;
    last = at + 1 == expr_rank(x) && at > 1;
    if (!last && at != 1)
        return keras_error(n, E_UNSUPPORTED, "axis %lld", (long long)axis);
    x = last ? build_channels_first(b, x) : x;
    channels = x ? build_dim(b, x, 1) : 0;
    groups = groups == -1 ? channels : groups;
    if (groups < 1 || channels % groups)
        return keras_error(n, E_IMPORT, "%lld channels in %lld groups", (long long)channels,
                           (long long)groups);
    dims[0] = expr_form(x, 0);
    dims[1] = idx_const(b->c->arith, groups);
    dims[2] = idx_const(b->c->arith, channels / groups);
    for (uint32_t i = 2; i < expr_rank(x); i++)
        dims[2] = idx_mul(b->c->arith, dims[2], expr_form(x, i));
    y = normalized(b, build_reshape_to(b, x, 3, dims), 1, far, keras_float(n, "epsilon", 1e-3),
                   true);
    y = build_reshape_to(b, y, expr_rank(x), expr_forms(x).at);
    far[0] = 1;
    if (keras_has_weight(n, "gamma"))
        y = build_mul(b, y, along(n, "gamma", y, 1, far));
    if (keras_has_weight(n, "beta"))
        y = build_add(b, y, along(n, "beta", y, 1, far));
    return keras_done(n, last ? build_channels_last(b, y) : y);
}

/* x / sqrt(max(sum of x^2, least)) */
bool keras_unit_norm(KerasNode *n)
{
    const Build *b = &n->b;
    const Expr  *x = keras_in(n), *sum;
    Ints         axes;

    if (!keras_rank(n, x, 1, MAX_RANK) || !read_axes(n, x, &axes))
        return false;
    sum = build_reduce(b, "sum", build_mul(b, x, x), axes.n, axes.at, true);
    sum = sum ? build2(b, "maximum", sum, build_scalar(b, sum, 1e-12), NULL) : NULL;
    return keras_done(n, build_mul(b, x, build1(b, "rsqrt", sum, NULL)));
}

/* Of a mean and a variance that the settings or the weights have. */
static const Expr *statistic(KerasNode *n, const char *name, const char *setting, const Expr *x,
                             uint32_t count, const int64_t *axes)
{
    const json_t *given = keras_json(n, setting);
    const Build  *b = &n->b;
    KerasArg      a = {.kind = KERAS_JSON, .json = given};
    const Idx    *dims[MAX_RANK];
    uint32_t      rank = expr_rank(x);
    KerasValue    v;

    if (!given)
        return keras_has_weight(n, name) ? along(n, name, x, count, axes) : NULL;
    if (!keras_value(n, &a, &v))
        return NULL;
    v.e = build_cast(b, v.e, n->dtype);
    if (!v.e || expr_rank(v.e) == 0 || expr_single(v.e))
        return build_reshape(b, v.e, 0, NULL);
    if (expr_rank(v.e) > count) /* [1, 1, C], as it broadcasts */
        return expr_rank(v.e) <= rank ? v.e : NULL;
    for (uint32_t i = 0; i < rank; i++)
        dims[i] = idx_const(b->c->arith, 1);
    for (uint32_t i = 0; i < expr_rank(v.e); i++)
        dims[axes[i]] = expr_form(v.e, i);
    return build_reshape_to(b, v.e, rank, dims);
}

/* (x - mean) / max(sqrt(variance), least), or back. */
bool keras_normalization(KerasNode *n)
{
    const Build *b = &n->b;
    const Expr  *x = keras_in(n), *mean, *deviation;
    int64_t      none[1] = {0};
    Ints         axes = {0, none};

    x = x ? build_cast(b, x, n->dtype) : NULL;
    if (!keras_rank(n, x, 1, MAX_RANK) || (keras_json(n, "axis") && !read_axes(n, x, &axes)))
        return false;
    mean = statistic(n, "mean", "mean", x, axes.n, axes.at);
    deviation = statistic(n, "variance", "variance", x, axes.n, axes.at);
    if (!mean || !deviation)
        return keras_error(n, E_IMPORT, "it has no mean and variance");
    deviation = build1(b, "sqrt", deviation, NULL);
    deviation =
        deviation ? build2(b, "maximum", deviation, build_scalar(b, deviation, 1e-7), NULL) : NULL;
    return keras_done(n, keras_bool(n, "invert", false)
                             ? build_add(b, mean, build_mul(b, x, deviation))
                             : build_div(b, build_sub(b, x, mean), deviation));
}
