/* Activation functions: a message of their own in layers, operators in programs. */
#include "frontends/coreml/coreml.h"

#include <string.h>

/* ---- formulas --------------------------------------------------------------------------------------- */

static const Expr *affine(const Build *b, const Expr *x, double alpha, double beta)
{
    x = alpha != 1 ? build_by(b, "multiply", x, alpha) : x;
    return beta != 0 ? build_by(b, "add", x, beta) : x;
}

static const Expr *scaled_tanh(const Build *b, const Expr *x, double alpha, double beta)
{
    return build_by(b, "multiply", build1(b, "tanh", build_by(b, "multiply", x, beta), NULL),
                    alpha);
}

static const Expr *leaky(const Build *b, const Expr *x, double alpha)
{
    LeakyReluAttrs *a = ATTRS(b, LeakyReluAttrs);

    a->alpha = alpha;
    return build1(b, "nn.leaky_relu", x, a);
}

static const Expr *thresholded(const Build *b, const Expr *x, double alpha)
{
    const Expr *low = x ? build_less(b, x, build_scalar(b, x, alpha)) : NULL;

    return low ? build_where(b, low, build_scalar(b, x, 0), x) : NULL;
}

/* Numbers of the channels of x, which lie in dimension `axis`. */
static const Expr *along(const Build *b, const Expr *v, const Expr *x, uint32_t axis)
{
    if (!v || !x)
        return NULL;
    v = build_reshape(b, v, 1, (int64_t[]){build_elems(b, v)});
    return build_elems(b, v) == 1 ? build_reshape(b, v, 0, NULL)
                                  : build_along(b, v, expr_rank(x), axis);
}

static const Expr *prelu(const Build *b, const Expr *x, const Expr *alpha, uint32_t axis)
{
    alpha = along(b, alpha, x, axis);
    return alpha ? build_if_negative(b, x, build_mul(b, x, alpha)) : NULL;
}

static const Expr *soft(const Build *b, const Expr *x, const Expr *alpha, const Expr *beta,
                        uint32_t axis)
{
    beta = along(b, beta, x, axis);
    alpha = along(b, alpha, x, axis);
    return beta ? build_mul(b, build_softplus(b, build_mul(b, x, beta)), alpha) : NULL;
}

/* ---- layers ------------------------------------------------------------------------------------------- */

/* The third dimension from the end. */
static uint32_t channels_of(const Expr *x)
{
    return expr_rank(x) < 3 ? 0 : expr_rank(x) - 3;
}

static const Expr *vector(CmlNode *n, const CmlMessage *m, const char *field)
{
    CmlMessage w;
    int64_t    cells;

    if (!cml_read_message(m, field, 0, &w))
        return cml_error(n, E_IMPORT, "its %s is missing", field);
    cells = cml_weight_cells(&w);
    return cml_weight_of(n, &w, field, 1, &cells, 0);
}

const Expr *cml_activated(CmlNode *n, const CmlMessage *how, const Expr *x)
{
    const Build *b = &n->b;
    CmlField     f;
    CmlMessage   m;
    const char  *name;

    if (!x)
        return NULL;
    if (!cml_read_chosen(how, &f, &m))
        return cml_error(n, E_IMPORT, "its function is not said");
    name = arena_printf(b->c->arena, "%.*s", (int)f.n, f.name);
    (void)(how->read && cml_read_has(how, name));
    if (!strcmp(name, "linear"))
        return affine(b, x, cml_read_float(&m, "alpha"), cml_read_float(&m, "beta"));
    if (!strcmp(name, "leaky_relu"))
        return leaky(b, x, cml_read_float(&m, "alpha"));
    if (!strcmp(name, "thresholded_relu"))
        return thresholded(b, x, cml_read_float(&m, "alpha"));
    if (!strcmp(name, "prelu"))
        return prelu(b, x, vector(n, &m, "alpha"), channels_of(x));
    if (!strcmp(name, "scaled_tanh"))
        return scaled_tanh(b, x, cml_read_float(&m, "alpha"), cml_read_float(&m, "beta"));
    if (!strcmp(name, "sigmoid_hard"))
        return build_hard_sigmoid(b, x, cml_read_float(&m, "alpha"), cml_read_float(&m, "beta"));
    if (!strcmp(name, "elu"))
        return build_elu(b, x, cml_read_float(&m, "alpha"), 1);
    if (!strcmp(name, "parametric_softplus"))
        return soft(b, x, vector(n, &m, "alpha"), vector(n, &m, "beta"), channels_of(x));
    return cml_activation(n, name, x);
}

bool cml_layer_activation(CmlNode *n)
{
    return cml_done(n, cml_activated(n, &n->layer->message, cml_x(n, "x")));
}

/* ---- by name -------------------------------------------------------------------------------------------- */

const Expr *cml_activation(CmlNode *n, const char *name, const Expr *x)
{
    const Build *b = &n->b;

    if (!strcmp(name, "relu"))
        return build1(b, "nn.relu", x, NULL);
    if (!strcmp(name, "relu6"))
        return build_clip(b, x, 0, 6);
    if (!strcmp(name, "tanh") || !strcmp(name, "sigmoid"))
        return build1(b, name, x, NULL);
    if (!strcmp(name, "softplus"))
        return build_softplus(b, x);
    if (!strcmp(name, "softsign"))
        return build_softsign(b, x);
    if (!strcmp(name, "silu"))
        return build_swish(b, x, 1);
    if (!strcmp(name, "linear"))
        return x;
    return cml_error(n, E_UNSUPPORTED, "activation '%s'", name);
}

/* ---- operators -------------------------------------------------------------------------------------------- */

bool cml_named_activation(CmlNode *n)
{
    return cml_done(n, cml_activation(n, n->row->name, cml_x(n, "x")));
}

bool cml_linear_activation(CmlNode *n)
{
    return cml_done(
        n, affine(&n->b, cml_x(n, "x"), cml_float(n, "alpha", 1), cml_float(n, "beta", 0)));
}

bool cml_leaky_relu(CmlNode *n)
{
    return cml_done(n, leaky(&n->b, cml_x(n, "x"), cml_float(n, "alpha", 0.01)));
}

bool cml_thresholded_relu(CmlNode *n)
{
    return cml_done(n, thresholded(&n->b, cml_x(n, "x"), cml_float(n, "alpha", 1)));
}

bool cml_elu(CmlNode *n)
{
    return cml_done(n, build_elu(&n->b, cml_x(n, "x"), cml_float(n, "alpha", 1), 1));
}

bool cml_scaled_tanh(CmlNode *n)
{
    return cml_done(
        n, scaled_tanh(&n->b, cml_x(n, "x"), cml_float(n, "alpha", 1), cml_float(n, "beta", 1)));
}

bool cml_sigmoid_hard(CmlNode *n)
{
    return cml_done(n, build_hard_sigmoid(&n->b, cml_x(n, "x"), cml_float(n, "alpha", 0.2),
                                          cml_float(n, "beta", 0.5)));
}

bool cml_prelu(CmlNode *n)
{
    const Expr *x = cml_x(n, "x");

    return cml_done(n, x ? prelu(&n->b, x, cml_x(n, "alpha"), 1) : NULL);
}

bool cml_softplus_parametric(CmlNode *n)
{
    const Expr *x = cml_x(n, "x"), *alpha = x ? cml_x(n, "alpha") : NULL;

    return cml_done(n, alpha ? soft(&n->b, x, alpha, cml_x(n, "beta"), 1) : NULL);
}

/* Below 0 alpha * x, and nowhere above beta. */
bool cml_clamped_relu(CmlNode *n)
{
    double      alpha = cml_float(n, "alpha", 0), beta = cml_float(n, "beta", 0);
    const Expr *x = cml_x(n, "x");

    x = x ? build_if_negative(&n->b, x, build_by(&n->b, "multiply", x, alpha)) : NULL;
    return cml_done(n, build_by(&n->b, "minimum", x, beta));
}

/* The mode is a number in layers: exact, by tanh, by a sigmoid. */
bool cml_gelu(CmlNode *n)
{
    const Expr *x = cml_x(n, "x");
    const char *mode = n->layer ? "" : cml_text(n, "mode", "EXACT");
    int64_t     number = n->layer                                 ? cml_int(n, "mode", 0)
                         : !strcmp(mode, "EXACT")                 ? 0
                         : !strcmp(mode, "TANH_APPROXIMATION")    ? 1
                         : !strcmp(mode, "SIGMOID_APPROXIMATION") ? 2
                                                                  : 3;

    if (number < 0 || number > 2)
        return cml_error(n, E_UNSUPPORTED, "mode %s", mode);
    return cml_done(n,
                    number == 2 ? build_swish(&n->b, x, 1.702) : build_gelu(&n->b, x, number == 1));
}

static const Expr *softmax(const Build *b, const Expr *x, uint32_t axis)
{
    SoftmaxAttrs *a = ATTRS(b, SoftmaxAttrs);

    a->axis = axis;
    return build1(b, "nn.softmax", x, a);
}

bool cml_softmax(CmlNode *n)
{
    const Expr *x = cml_x(n, "x");
    uint32_t    axis;

    return x && cml_axis(n, cml_int(n, "axis", -1), expr_rank(x), &axis) &&
           cml_done(n, softmax(&n->b, x, axis));
}

/* Over the channels.  A vector is what it is most often of. */
bool cml_layer_softmax(CmlNode *n)
{
    const Build *b = &n->b;
    const Expr  *x = cml_image(n, "x", 2), *y, *one;

    if (!x)
        return false;
    one =
        expr_form(x, 2) == idx_const(b->c->arith, 1) && expr_form(x, 3) == idx_const(b->c->arith, 1)
            ? x
            : NULL;
    if (!one)
        return cml_done_image(n, softmax(b, x, 1));
    y = build_reshape_to(b, x, 2, expr_forms(x).at);
    y = softmax(b, y, 1);
    return cml_done_image(n, build_reshape_to(b, y, 4, expr_forms(x).at));
}
