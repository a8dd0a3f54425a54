/* Activations: functions that settings name, and layers of their own. */
#include "frontends/keras/keras.h"

#include <math.h>
#include <string.h>

typedef struct {
    const KerasNode *n;
    const Build     *b;
    uint32_t         channels; /* the axis of softmax */
} Act;

static const Expr *scaled(const Act *a, const Expr *x, double v)
{
    return build_by(a->b, "multiply", x, v);
}

static const Expr *plus(const Act *a, const Expr *x, double v)
{
    return build_by(a->b, "add", x, v);
}

static const Expr *below(const Build *b, const Expr *x, double most)
{
    return build2(b, "minimum", x, build_scalar(b, x, most), NULL);
}

static const Expr *act_linear(const Act *a, const Expr *x)
{
    (void)a;
    return x;
}

static const Expr *act_relu6(const Act *a, const Expr *x)
{
    return build_clip(a->b, x, 0, 6);
}

static const Expr *leaky(const Build *b, const Expr *x, double slope)
{
    LeakyReluAttrs *attrs = ATTRS(b, LeakyReluAttrs);

    attrs->alpha = x ? keras_number(expr_dtype(x), slope) : 0;
    return build1(b, "nn.leaky_relu", x, attrs);
}

static const Expr *act_leaky_relu(const Act *a, const Expr *x)
{
    return leaky(a->b, x, 0.2);
}

static const Expr *act_elu(const Act *a, const Expr *x)
{
    return build_elu(a->b, x, 1, 1);
}

static const Expr *act_selu(const Act *a, const Expr *x)
{
    return build_selu(a->b, x, 1.6732632423543772, 1.0507009873554805);
}

static const Expr *act_softplus(const Act *a, const Expr *x)
{
    return build_softplus(a->b, x);
}

static const Expr *act_softsign(const Act *a, const Expr *x)
{
    return build_softsign(a->b, x);
}

/* Keras 3 has another slope than its forerunners, and computes it so. */
static const Expr *act_hard_sigmoid(const Act *a, const Expr *x)
{
    if (a->n->im->major < 3)
        return build_hard_sigmoid(a->b, x, 0.2, 0.5);
    return build_relu6_share(a->b, x);
}

static const Expr *act_hard_silu(const Act *a, const Expr *x)
{
    return build_hard_swish(a->b, x);
}

static const Expr *act_hard_tanh(const Act *a, const Expr *x)
{
    return build_clip(a->b, x, -1, 1);
}

static const Expr *act_silu(const Act *a, const Expr *x)
{
    return build_swish(a->b, x, 1);
}

static const Expr *act_mish(const Act *a, const Expr *x)
{
    return build_mish(a->b, x);
}

static const Expr *act_gelu(const Act *a, const Expr *x)
{
    return build_gelu(a->b, x, false);
}

static const Expr *act_log_sigmoid(const Act *a, const Expr *x)
{
    return build1(a->b, "negative", build_softplus(a->b, build1(a->b, "negative", x, NULL)), NULL);
}

static const Expr *act_sparse_sigmoid(const Act *a, const Expr *x)
{
    return build_clip(a->b, scaled(a, plus(a, x, 1), 0.5), 0, 1);
}

/* 0 below -1, x above 1, (x + 1)^2 / 4 between. */
static const Expr *act_sparse_plus(const Act *a, const Expr *x)
{
    const Build *b = a->b;
    const Expr  *y = plus(a, build_clip(b, x, -1, 1), 1);

    y = scaled(a, build_mul(b, y, y), 0.25);
    return build_where(b, build_less(b, x, build_scalar(b, x, 1)), y, x);
}

static const Expr *act_squareplus(const Act *a, const Expr *x)
{
    const Expr *root = build1(a->b, "sqrt", plus(a, build_mul(a->b, x, x), 4), NULL);

    return scaled(a, build_add(a->b, x, root), 0.5);
}

static const Expr *act_tanh_shrink(const Act *a, const Expr *x)
{
    return build_sub(a->b, x, build1(a->b, "tanh", x, NULL));
}

static const Expr *act_hard_shrink(const Act *a, const Expr *x)
{
    const Build *b = a->b;
    const Expr  *size = build1(b, "abs", x, NULL);

    return build_where(b, build_less(b, build_scalar(b, x, 0.5), size), x, build_scalar(b, x, 0));
}

static const Expr *act_soft_shrink(const Act *a, const Expr *x)
{
    return build_sub(a->b, x, build_clip(a->b, x, -0.5, 0.5));
}

const Expr *keras_softmax(const Build *b, const char *op, const Expr *x, uint32_t axis)
{
    SoftmaxAttrs *attrs = ATTRS(b, SoftmaxAttrs);

    attrs->axis = axis;
    return build1(b, op, x, attrs);
}

static const Expr *act_softmax(const Act *a, const Expr *x)
{
    return keras_softmax(a->b, "nn.softmax", x, a->channels);
}

static const Expr *act_log_softmax(const Act *a, const Expr *x)
{
    return keras_softmax(a->b, "nn.log_softmax", x, a->channels);
}

/* ---- by name ---------------------------------------------------------------------------------------- */

typedef struct {
    const char *name, *op;
    const Expr *(*fn)(const Act *a, const Expr *x);
} Activation;

#define none NULL
#define ACTIVATION(name, op, fn) {name, op, fn},
static const Activation activations[] = {
#include "frontends/keras/activations.def"
};
#undef ACTIVATION
#undef none

const Expr *keras_apply(const KerasNode *n, const char *activation, const Expr *x,
                        uint32_t channels)
{
    Act act = {n, &n->b, channels};

    if (!x)
        return NULL;
    for (uint32_t i = 0; i < COUNT(activations); i++)
        if (!strcmp(activation, activations[i].name))
            return activations[i].fn ? activations[i].fn(&act, x)
                                     : build1(&n->b, activations[i].op, x, NULL);
    keras_error(n, E_UNSUPPORTED, "activation '%s' is not supported", activation);
    diag_hint(n->b.c->diags,
              "functions of the user's own are Python code, which is not in the file");
    return NULL;
}

/* A text, or {"class_name": "function", "config": "relu"}; layers as activations have settings. */
static const char *name_of(const json_t *x)
{
    const char   *name = json_string_value(x), *class;
    const json_t *config = json_object_get(x, "config");

    if (name)
        return name;
    if (json_is_string(config))
        return json_string_value(config);
    class = json_string_value(json_object_get(x, "class_name"));
    return class ? class : "?";
}

const char *keras_activation_name(const KerasNode *n, const char *setting, const char *fallback)
{
    const json_t *x = keras_setting(n->layer->config, setting);

    return !x || json_is_null(x) ? fallback : intern(n->b.c->strings, name_of(x));
}

const Expr *keras_activated(KerasNode *n, const char *setting, const char *fallback, const Expr *x,
                            uint32_t channels)
{
    const json_t *at = keras_json(n, setting);
    const char   *name = keras_activation_name(n, setting, fallback);
    KerasValues   out;
    KerasValue    in = {x, NULL};
    KerasLayer   *l;

    if (!x || !json_is_object(json_object_get(at, "config")) || !json_object_get(at, "class_name"))
        return keras_apply(n, name, x, channels);
    /* A layer: its own axes are the file's, so it sees the value as it lies there. */
    if (!(l = keras_read_inside(&n->im->reading, n->layer, at, "activation")))
        return NULL;
    if (!l->row || l->foreign || *l->row->weights)
        return keras_error(n, E_UNSUPPORTED, "activation '%s' is not supported", l->class_name);
    if (channels + 1 != expr_rank(x))
        in.e = build_channels_last(&n->b, x);
    if (!keras_call(n->im, l, 1, &in, &out) || out.n != 1)
        return NULL;
    return channels + 1 != expr_rank(x) ? build_channels_first(&n->b, out.at[0].e) : out.at[0].e;
}

/* ---- layers ----------------------------------------------------------------------------------------- */

/* The last axis, wherever it lies. */
static bool last_axis(const KerasNode *n, const Expr *x, uint32_t *out)
{
    return expr_rank(x) ? keras_axis(n, -1, expr_rank(x), out) : (*out = 0, true);
}

bool keras_activation(KerasNode *n)
{
    const Expr *x = keras_in(n);
    uint32_t    last;

    return x && last_axis(n, x, &last) &&
           keras_done(n, keras_activated(n, "activation", "linear", x, last));
}

/* max_value, negative_slope and threshold of Keras's own. */
bool keras_relu(KerasNode *n)
{
    const Build *b = &n->b;
    const Expr  *x = keras_in(n), *y;
    double       slope = keras_float(n, "negative_slope", 0), from = keras_float(n, "threshold", 0);
    double       most = keras_float(n, "max_value", INFINITY);

    if (!x)
        return false;
    if (from == 0 && slope == 0)
        return keras_done(n,
                          isinf(most) ? build1(b, "nn.relu", x, NULL) : build_clip(b, x, 0, most));
    y = from == 0
            ? leaky(b, x, slope)
            : build_where(b, build_less(b, x, build_scalar(b, x, from)),
                          build_by(b, "multiply", build_by(b, "subtract", x, from), slope), x);
    return keras_done(n, isinf(most) || !y ? y : below(b, y, most));
}

bool keras_leaky_relu(KerasNode *n)
{
    return keras_done(n, leaky(&n->b, keras_in(n), keras_float(n, "negative_slope", 0.3)));
}

bool keras_elu(KerasNode *n)
{
    const Expr *x = keras_in(n);

    return x && keras_done(n, build_elu(&n->b, x, keras_float(n, "alpha", 1), 1));
}

bool keras_thresholded_relu(KerasNode *n)
{
    const Build *b = &n->b;
    const Expr  *x = keras_in(n), *zero = x ? build_scalar(b, x, 0) : NULL;
    double       theta = keras_float(n, "theta", 1);

    return x && keras_done(n, build_where(b, build_less(b, build_scalar(b, x, theta), x), x, zero));
}

/* The slopes are those of one cell of the input without its batch; shared axes have one. */
bool keras_prelu(KerasNode *n)
{
    const Build *b = &n->b;
    const Expr  *x = keras_in(n), *alpha = x ? keras_weight(n, "alpha") : NULL;

    if (!alpha)
        return false;
    if (expr_rank(alpha) + 1 != expr_rank(x))
        return keras_error(n, E_IMPORT, "its slopes are %s for data %s",
                           type_text(b->c, alpha->type), type_text(b->c, x->type));
    if (n->moved)
        alpha =
            keras_folded(n, "alpha", build_channels_first(b, build_expand_dims(b, alpha, 0, 1)));
    return keras_done(n, build_if_negative(b, x, build_mul(b, x, alpha)));
}

/* Over one axis, or several as if they were one; what a mask leaves out weighs nothing. */
bool keras_softmax_layer(KerasNode *n)
{
    const Build *b = &n->b;
    const Expr  *x = keras_in(n);
    const Expr  *mask = n->nin ? n->in[0].mask : NULL;
    Ints         axes;
    uint32_t     axis;

    if (!x || !keras_list(n, "axis", &axes))
        return false;
    if (mask && expr_rank(mask) == expr_rank(x)) {
        const Expr *far = build_scalar(b, x, dtype_eq(expr_dtype(x), DT_F16) ? -3e4 : -1e9);

        x = build_add(b, x, build_where(b, mask, build_scalar(b, x, 0), far));
    }
    if (axes.n > 1) {
        const Expr *e;
        int64_t     at[MAX_RANK];

        for (uint32_t i = 0; i < axes.n; i++) {
            if (!keras_axis(n, axes.at[i], expr_rank(x), &axis))
                return false;
            at[i] = axis;
        }
        e = build1(b, "exp", build_sub(b, x, build_reduce(b, "max", x, axes.n, at, true)), NULL);
        return keras_done(n, build_div(b, e, build_reduce(b, "sum", e, axes.n, at, true)));
    }
    return keras_axis(n, axes.n ? axes.at[0] : -1, expr_rank(x), &axis) &&
           keras_done(n, keras_softmax(b, "nn.softmax", x, axis));
}
