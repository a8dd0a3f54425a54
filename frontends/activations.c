/* Activation functions that frameworks have as operators and Relay as a few calls, so that a
 * function is the same calls, and in the end the same kernel, from whichever format it came. */
#include "frontends/calls.h"

#include <math.h>

const Expr *build_if_negative(const Build *b, const Expr *x, const Expr *y)
{
    return build_where(b, build_by(b, "less", x, 0), y, x);
}

/* log(1 + x) of a finite x: what is lost of it in u = 1 + x, the logarithm makes up for in the same
 * proportion, log(u) * x / (u - 1). */
static const Expr *log1p_of(const Build *b, const Expr *x)
{
    const Expr *u = build_by(b, "add", x, 1), *kept = build_by(b, "add", u, -1);
    const Expr *log = build_mul(b, build1(b, "log", u, NULL), build_div(b, x, kept));

    return kept ? build_where(b, build2(b, "equal", kept, build_scalar(b, x, 0), NULL), x, log)
                : NULL;
}

const Expr *build_log1p(const Build *b, const Expr *x)
{
    return build_where(b, build1(b, "isinf", x, NULL), x, log1p_of(b, x));
}

/* Near 0 as 2t / (1 - t) with t = tanh(x/2), which loses nothing there. */
const Expr *build_expm1(const Build *b, const Expr *x)
{
    const Expr *t = build1(b, "tanh", build_by(b, "multiply", x, 0.5), NULL);
    const Expr *near =
        t ? build_div(b, build_by(b, "multiply", t, 2), build_sub(b, build_scalar(b, t, 1), t))
          : NULL;

    return build_where(b, build_by(b, "less", build1(b, "abs", x, NULL), 0.5), near,
                       build_by(b, "subtract", build1(b, "exp", x, NULL), 1));
}

/* max(x, 0) + log(1 + exp(-|x|)), which does not overflow. */
const Expr *build_softplus(const Build *b, const Expr *x)
{
    const Expr *e = build1(b, "exp", build1(b, "negative", build1(b, "abs", x, NULL), NULL), NULL);

    return build_add(b, build1(b, "nn.relu", x, NULL), log1p_of(b, e));
}

const Expr *build_softsign(const Build *b, const Expr *x)
{
    return build_div(b, x, build_by(b, "add", build1(b, "abs", x, NULL), 1));
}

const Expr *build_elu(const Build *b, const Expr *x, double alpha, double rate)
{
    const Expr *low = rate == 1 ? x : build_by(b, "multiply", x, rate);

    low = build_by(b, "add", build1(b, "exp", low, NULL), -1);
    return build_if_negative(b, x, alpha == 1 ? low : build_by(b, "multiply", low, alpha));
}

const Expr *build_selu(const Build *b, const Expr *x, double alpha, double gamma)
{
    return build_by(b, "multiply", build_elu(b, x, alpha, 1), gamma);
}

const Expr *build_gelu(const Build *b, const Expr *x, bool by_tanh)
{
    const Expr *t;

    if (by_tanh) {
        t = build_by(b, "multiply", build_mul(b, x, build_mul(b, x, x)), 0.044715);
        t = build_by(b, "multiply", build_add(b, x, t), sqrt(2 / M_PI));
        t = build1(b, "tanh", t, NULL);
    } else {
        t = build1(b, "erf", build_by(b, "multiply", x, M_SQRT1_2), NULL);
    }
    return build_mul(b, build_by(b, "multiply", x, 0.5), build_by(b, "add", t, 1));
}

const Expr *build_swish(const Build *b, const Expr *x, double rate)
{
    const Expr *at = rate == 1 ? x : build_by(b, "multiply", x, rate);

    return build_mul(b, x, build1(b, "sigmoid", at, NULL));
}

/* With e = exp(x), tanh(log(1 + e)) = e*(e + 2) / (e*(e + 2) + 2), in which nothing cancels.  From
 * the bound on it is 1, rounded; e is one that its square does not overflow. */
const Expr *build_mish(const Build *b, const Expr *x)
{
    bool        half = dtype_eq(x->type->dtype, DT_F16);
    const Expr *e = build1(b, "exp", build_by(b, "minimum", x, half ? 5 : 20), NULL);
    const Expr *n = build_mul(b, e, build_by(b, "add", e, 2));

    return build_mul(b, x, build_div(b, n, build_by(b, "add", n, 2)));
}

const Expr *build_hard_sigmoid(const Build *b, const Expr *x, double alpha, double beta)
{
    return build_clip(b, build_by(b, "add", build_by(b, "multiply", x, alpha), beta), 0, 1);
}

const Expr *build_relu6_share(const Build *b, const Expr *x)
{
    return build_by(b, "divide", build_clip(b, build_by(b, "add", x, 3), 0, 6), 6);
}

const Expr *build_hard_swish(const Build *b, const Expr *x)
{
    return build_mul(b, x, build_relu6_share(b, x));
}
